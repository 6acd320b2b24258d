//! Roots: the directories that a client lets a server work in (`roots/list`). 2026-07-28 deprecates
//! them: new servers take directories as arguments of tools or as resources.

use super::skipped::{SkippedList, read_list};
use crate::rpc::{DecodeError, Object, RawJson};
use alloc::string::String;
use alloc::vec::Vec;
use iri_string::types::UriStr;

/// A root.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct Root {
    /// Its URI, which begins with `file://`.
    pub uri: String,
    /// Its name, for people.
    pub name: Option<String>,
    /// Other members, such as `_meta`, unchanged.
    pub other: Object,
}

impl Root {
    /// Creates a root without a name.
    pub fn new(uri: impl Into<String>) -> Self {
        Self { uri: uri.into(), name: None, other: Object::new() }
    }

    /// Sets its name, for people.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Checks its URI: a `file://` URI (RFC 8089) without a segment `.` or `..`, so that it names
    /// the directory that it seems to name.
    ///
    /// ```
    /// # use mcp_proto::model::roots::Root;
    /// assert!(Root::new("file:///home/ann/notes").check().is_ok());
    /// assert!(Root::new("https://notes.example/").check().is_err());
    /// assert!(Root::new("file:///home/ann/../bob").check().is_err());
    /// ```
    ///
    /// # Errors
    /// [`DecodeError`] with the rule that it violates.
    pub fn check(&self) -> Result<(), DecodeError> {
        let uri = UriStr::new(&self.uri).map_err(|_| DecodeError::new("the URI of a root is not a URI"))?;
        if !self.uri.starts_with("file://") {
            return Err(DecodeError::new("the URI of a root does not begin with `file://`"));
        }
        // A server may decode the path before it splits it.
        let path = uri.path_str().to_ascii_lowercase().replace("%2e", ".").replace("%2f", "/").replace("%5c", "/");
        match path.split('/').any(|segment| matches!(segment, "." | "..")) {
            true => Err(DecodeError::new("the URI of a root has a segment of dots")),
            false => Ok(()),
        }
    }

    pub(super) fn read(json: &RawJson) -> Result<Self, DecodeError> {
        let object = Object::read(json)?;
        let (uri, name) = (object.required("uri")?, object.optional("name")?);
        Ok(Self { uri, name, other: object.without(&["uri", "name"]) })
    }

    fn write(&self) -> Object {
        let object = Object::new().with("uri", self.uri.as_str()).with_opt("name", self.name.as_deref());
        object.with_all(&self.other)
    }
}

impl From<&str> for Root {
    fn from(uri: &str) -> Self {
        Self::new(uri)
    }
}

impl From<String> for Root {
    fn from(uri: String) -> Self {
        Self::new(uri)
    }
}

/// The result of `roots/list`.
#[derive(Clone, PartialEq, Debug, Default)]
#[non_exhaustive]
pub struct Roots {
    /// The roots.
    pub roots: Vec<Root>,
    /// The roots of a client that could not be decoded, which are not among the others.
    pub skipped: SkippedList,
    /// Other members, unchanged.
    pub other: Object,
}

impl Roots {
    /// Creates a list of roots.
    pub fn new<R: Into<Root>>(roots: impl IntoIterator<Item = R>) -> Self {
        Self { roots: roots.into_iter().map(Into::into).collect(), ..Self::default() }
    }

    /// Checks each root: [`Root::check`].
    pub(crate) fn check(&self) -> Result<(), DecodeError> {
        self.roots.iter().try_for_each(Root::check)
    }

    /// Decodes the result of `roots/list`.
    ///
    /// # Errors
    /// [`DecodeError`] if there is no list.
    pub(crate) fn read(result: Object) -> Result<Self, DecodeError> {
        let (roots, skipped) = read_list(result.array("roots")?, Root::read);
        Ok(Self { roots, skipped, other: result.without(&["roots", "resultType"]) })
    }

    /// Encodes the result of `roots/list`.
    pub(crate) fn write(&self) -> Object {
        let roots: Vec<_> = self.roots.iter().map(Root::write).collect();
        Object::new().with("roots", roots).with_all(&self.other)
    }
}

#[cfg(test)]
mod tests;
