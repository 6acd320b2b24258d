//! The feature `auth` as a value. Code for authorization compiles without the feature, and cannot
//! run.

/// Evidence that the feature `auth` is on. Without it the type has no value, and neither has a type
/// that holds one, so the compiler removes the code that handles it. The tests of this crate always
/// have it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct AuthSupport(#[cfg(not(any(test, feature = "auth")))] Never);

/// A type without values. [`core::convert::Infallible`] has no form in a recording.
#[cfg(not(any(test, feature = "auth")))]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
enum Never {}

#[cfg(any(test, feature = "auth"))]
impl AuthSupport {
    /// The evidence.
    pub(crate) const ON: Self = Self();
}
