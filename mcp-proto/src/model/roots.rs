//! Roots: the directories that a client lets a server work in (`roots/list`). 2026-07-28 deprecates
//! them: new servers take directories as arguments of tools or as resources.

use crate::rpc::{DecodeError, Object, RawJson};
use alloc::string::String;
use alloc::vec::Vec;

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

    fn read(json: &RawJson) -> Result<Self, DecodeError> {
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
    /// Other members, unchanged.
    pub other: Object,
}

impl Roots {
    /// Creates a list of roots.
    pub fn new<R: Into<Root>>(roots: impl IntoIterator<Item = R>) -> Self {
        Self { roots: roots.into_iter().map(Into::into).collect(), other: Object::new() }
    }

    /// Decodes the result of `roots/list`.
    ///
    /// # Errors
    /// [`DecodeError`] if there is no list, or if a root has no URI.
    pub(crate) fn read(result: Object) -> Result<Self, DecodeError> {
        let roots = result.array("roots")?.iter().map(Root::read).collect::<Result<_, _>>()?;
        Ok(Self { roots, other: result.without(&["roots", "resultType"]) })
    }

    /// Encodes the result of `roots/list`.
    pub(crate) fn write(&self) -> Object {
        let roots: Vec<_> = self.roots.iter().map(Root::write).collect();
        Object::new().with("roots", roots).with_all(&self.other)
    }
}
