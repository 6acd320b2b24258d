//! The identity behind a request.

use alloc::string::String;
use alloc::sync::Arc;

/// The identity behind a request, as the application names it: a subject with its issuer, an
/// account, the owner of a key. Do not use the credentials themselves, since they change: a session
/// belongs to the principal that opened it. A name is not a secret: `Debug` shows it, also in a
/// [`Context`](crate::server::Context). A clone shares the name.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Principal(pub Arc<str>);

impl Principal {
    /// Returns the name that the application chose.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for Principal {
    fn from(name: &str) -> Self {
        Self(name.into())
    }
}

impl From<String> for Principal {
    fn from(name: String) -> Self {
        Self(name.into())
    }
}
