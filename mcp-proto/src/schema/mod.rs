//! The validation of JSON values against JSON Schemas: what the engines and the router need of a
//! validator. The engines contain none. An application gives one in
//! [`ClientConfig::validate`](crate::ClientConfig::validate) and
//! [`ServerConfig::validate`](crate::ServerConfig::validate): `schema::validator()` of the feature
//! `schema`, or one of its own. Without one, nothing is validated.
//!
//! A [`Validator`] compiles a schema once. The [`Checker`] that it returns checks any number of
//! values. This module fetches nothing, and knows no method and no revision.

mod fault;
#[cfg(feature = "schema")]
mod library;
#[cfg(feature = "schema")]
mod typed;

#[cfg(test)]
mod tests;

pub use fault::{BadSchema, Mismatch, SchemaLimit};
#[cfg(feature = "schema")]
pub use library::{Bounds, validator, validator_with};
#[cfg(feature = "schema")]
pub use schemars;
#[cfg(feature = "schema")]
pub(crate) use typed::{Property, properties};
#[cfg(feature = "schema")]
pub use typed::{TextMember, input_schema, output_schema, text_members};

use crate::rpc::RawJson;
use alloc::sync::Arc;
use core::fmt;

/// Compiles JSON Schemas. Implemented for functions.
pub trait Compile: Send + Sync {
    /// Compiles a schema. It fetches nothing: a reference that leads out of the schema is an error
    /// (2026-07-28, JSON Schema usage). The schema may come from a peer that wants to exhaust this
    /// side, so the time and the memory must be bounded.
    ///
    /// # Errors
    /// [`BadSchema`] if it cannot validate under this schema.
    fn compile(&self, schema: &RawJson) -> Result<Checker, BadSchema>;
}

/// Checks values against one schema. Implemented for functions.
pub trait Check: Send + Sync {
    /// Checks a value, within bounded time.
    ///
    /// # Errors
    /// [`Mismatch`] if the value does not match the schema, or if the check would take too long.
    fn check(&self, value: &RawJson) -> Result<(), Mismatch>;
}

impl<F: Fn(&RawJson) -> Result<Checker, BadSchema> + Send + Sync> Compile for F {
    fn compile(&self, schema: &RawJson) -> Result<Checker, BadSchema> {
        self(schema)
    }
}

impl<F: Fn(&RawJson) -> Result<(), Mismatch> + Send + Sync> Check for F {
    fn check(&self, value: &RawJson) -> Result<(), Mismatch> {
        self(value)
    }
}

/// A [`Compile`] as a value of a configuration. Clones share it.
///
/// ```
/// use mcp_proto::{Object, RawJson};
/// use mcp_proto::schema::{Checker, Mismatch, Validator};
///
/// // A validator that knows one keyword.
/// let validator = Validator::new(|schema: &RawJson| {
///     let required: Option<Vec<String>> = Object::read(schema)?.optional("required")?;
///     let required = required.unwrap_or_default();
///     Ok(Checker::new(move |value: &RawJson| {
///         let value = Object::read(value).map_err(|e| Mismatch::new("", e.to_string()))?;
///         match required.iter().find(|name| !value.contains(name)) {
///             None => Ok(()),
///             Some(name) => Err(Mismatch::new("", format!("`{name}` is missing"))),
///         }
///     }))
/// });
/// let checker = validator.compile(&RawJson::parse(r#"{"required":["a"]}"#).unwrap())?;
/// assert!(checker.check(&RawJson::parse(r#"{"a":1}"#).unwrap()).is_ok());
/// assert!(checker.check(&RawJson::empty_object()).is_err());
/// # Ok::<(), mcp_proto::schema::BadSchema>(())
/// ```
#[derive(Clone)]
pub struct Validator(Arc<dyn Compile>);

/// A [`Check`] as a value. Clones share it.
#[derive(Clone)]
pub struct Checker(Arc<dyn Check>);

impl Validator {
    /// Creates a validator.
    pub fn new(compile: impl Compile + 'static) -> Self {
        Self(Arc::new(compile))
    }

    /// Compiles a schema.
    ///
    /// # Errors
    /// Those of the [`Compile`]. With the feature `std` also [`BadSchema::Panicked`].
    pub fn compile(&self, schema: &RawJson) -> Result<Checker, BadSchema> {
        guarded(|| self.0.compile(schema)).unwrap_or(Err(BadSchema::Panicked))
    }
}

impl Checker {
    /// Creates a checker.
    pub fn new(check: impl Check + 'static) -> Self {
        Self(Arc::new(check))
    }

    /// Checks a value.
    ///
    /// # Errors
    /// Those of the [`Check`]. With the feature `std` also a [`Mismatch`] if it panics.
    pub fn check(&self, value: &RawJson) -> Result<(), Mismatch> {
        guarded(|| self.0.check(value)).unwrap_or_else(|| Err(Mismatch::new("", "the validator panicked")))
    }
}

/// Runs code of the application. `None` if it panicked.
pub(crate) fn guarded<T>(f: impl FnOnce() -> T) -> Option<T> {
    #[cfg(feature = "std")]
    return std::panic::catch_unwind(std::panic::AssertUnwindSafe(f)).ok();
    #[cfg(not(feature = "std"))]
    return Some(f());
}

impl PartialEq for Validator {
    /// Returns whether both are the same value.
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl PartialEq for Checker {
    /// Returns whether both are the same value.
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl fmt::Debug for Validator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Validator(..)")
    }
}

impl fmt::Debug for Checker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Checker(..)")
    }
}
