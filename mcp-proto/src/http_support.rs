//! The feature `http` as a value. Code for HTTP compiles without the feature, and cannot run.

/// Evidence that the feature `http` is on. Without it the type has no value. A type that holds one
/// has none either, so the compiler removes the code that handles it. The tests of this crate
/// always have HTTP.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct HttpSupport(#[cfg(not(any(test, feature = "http")))] core::convert::Infallible);

impl HttpSupport {
    /// Returns `None` without the feature `http`.
    pub(crate) const fn get() -> Option<Self> {
        #[cfg(any(test, feature = "http"))]
        let support = Some(Self());
        #[cfg(not(any(test, feature = "http")))]
        let support = None;
        support
    }
}
