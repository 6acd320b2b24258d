//! The feature `ws` as a value. Code for WebSocket compiles without the feature, and cannot run.

/// Evidence that the feature `ws` is on. Without it the type has no value. The tests of this crate
/// always have WebSocket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct WsSupport(#[cfg(not(any(test, feature = "ws")))] core::convert::Infallible);

#[cfg(any(test, feature = "ws"))]
impl WsSupport {
    /// Returns `None` without the feature `ws`.
    pub(crate) const fn get() -> Option<Self> {
        Some(Self())
    }

    /// Returns the SHA-1 of the parts as one text. The handshake needs it against no attacker: it
    /// only shows that the server understands WebSocket (RFC 6455 section 10.8).
    pub(super) fn sha1(self, parts: [&str; 2]) -> [u8; 20] {
        let mut sha1 = sha1_smol::Sha1::new();
        parts.iter().for_each(|part| sha1.update(part.as_bytes()));
        sha1.digest().bytes()
    }
}

#[cfg(not(any(test, feature = "ws")))]
impl WsSupport {
    pub(crate) const fn get() -> Option<Self> {
        None
    }

    pub(super) fn sha1(self, _parts: [&str; 2]) -> [u8; 20] {
        match self.0 {}
    }
}
