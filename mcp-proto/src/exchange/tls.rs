//! How TLS fails. The core knows no certificate and no key: a driver reports this.

use crate::peer_text::Visible;
use alloc::string::String;
use core::fmt;

/// Why TLS failed. Its `Display` has [escapes](crate::error#text-of-a-peer).
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct TlsFailure {
    /// The kind, for programs.
    pub kind: TlsFailureKind,
    /// The details, for people: the names or the dates of a certificate, for example. It may
    /// contain text of the peer. Often empty.
    pub detail: String,
}

/// The kinds of [`TlsFailure`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum TlsFailureKind {
    /// The driver has no TLS: it was built without, or cannot load the trusted roots.
    Unavailable,
    /// The certificate of the peer has expired.
    Expired,
    /// The certificate of the peer is not valid yet.
    NotYetValid,
    /// The certificate is for other names (RFC 9525 section 6).
    WrongName,
    /// No trusted authority has issued the certificate.
    UnknownIssuer,
    /// The certificate was revoked.
    Revoked,
    /// The certificate is not acceptable for another reason: its purpose or its signature, for
    /// example.
    BadCertificate,
    /// The peer does not speak TLS, but perhaps plain HTTP.
    NotTls,
    /// The two sides have no version, cipher suite or application protocol in common.
    Incompatible,
    /// The peer refused with an alert: it does not accept our certificate, for example.
    Refused,
    /// The connection ended without `close_notify`: what was read may be incomplete (RFC 8446
    /// section 6.1).
    Truncated,
    /// The peer violated the protocol.
    Violation,
}

impl TlsFailure {
    /// Creates a failure.
    pub fn new(kind: TlsFailureKind, detail: impl Into<String>) -> Self {
        Self { kind, detail: detail.into() }
    }
}

impl TlsFailureKind {
    const fn text(self) -> &'static str {
        match self {
            Self::Unavailable => "TLS is not available",
            Self::Expired => "the certificate of the peer has expired",
            Self::NotYetValid => "the certificate of the peer is not valid yet",
            Self::WrongName => "the certificate of the peer is for another name",
            Self::UnknownIssuer => "no trusted authority has issued the certificate of the peer",
            Self::Revoked => "the certificate of the peer was revoked",
            Self::BadCertificate => "the certificate of the peer is not acceptable",
            Self::NotTls => "the peer does not speak TLS",
            Self::Incompatible => "both sides have no version, cipher suite or protocol of TLS in common",
            Self::Refused => "the peer refused TLS",
            Self::Truncated => "the connection ended without the end of TLS",
            Self::Violation => "the peer violated TLS",
        }
    }
}

impl fmt::Display for TlsFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind.text())?;
        if self.detail.is_empty() { Ok(()) } else { write!(f, ": {}", Visible(&self.detail)) }
    }
}
