//! Why an HTTP request got no credentials.

use crate::peer_text::{Visible, beginning, write_list};
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

/// Why a request has no credentials that its server accepts. Its `Display` has
/// [escapes](crate::error#text-of-a-peer), and no secret.
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum AuthError {
    /// A user has to log in first, and this client begins no login by itself.
    LoginRequired,
    /// The user declined to log in.
    Declined,
    /// The user did not finish the page in time.
    PageTimeout,
    /// The application configured credentials of its own beside the login, which would replace
    /// them.
    OwnCredentials {
        /// The name of their header field.
        field: String,
    },
    /// A login was tried shortly before, and failed with this error.
    Quiet(Box<Self>),
    /// No document names an issuer that can be used.
    Discovery {
        /// What was tried, in order.
        tried: Vec<TriedUrl>,
    },
    /// The metadata of the resource is for another server (RFC 9728 section 3.3).
    ResourceMismatch {
        /// The URL of the metadata.
        url: String,
        /// The URL of the server.
        wanted: String,
        /// The identifier in the metadata.
        found: String,
    },
    /// A URL of a peer may not be used.
    BadUrl {
        /// The purpose of the URL: the name of its member in a document.
        purpose: String,
        /// The URL.
        url: String,
        /// Why not.
        fault: UrlFault,
    },
    /// The metadata of the issuer lists the methods of PKCE, and S256 is not among them, or lists
    /// none (RFC 7636 section 4.2).
    NoPkce {
        /// The issuer.
        issuer: String,
        /// Whether it lists any. If not, [`AuthCompat::unlisted_pkce`] accepts it.
        ///
        /// [`AuthCompat::unlisted_pkce`]: crate::auth::AuthCompat::unlisted_pkce
        listed: bool,
    },
    /// The issuer offers no way to register that this client has.
    NoRegistration {
        /// The issuer.
        issuer: String,
    },
    /// The configured client is registered at another issuer than the server names.
    OtherIssuer {
        /// The issuers of the configured clients.
        given: Vec<String>,
        /// The issuer of the server.
        issuer: String,
    },
    /// The issuer offers none of the ways in which this client can authenticate at its token
    /// endpoint.
    NoClientAuth {
        /// The issuer.
        issuer: String,
        /// The ways that it offers.
        offered: Vec<String>,
    },
    /// The issuer offers no login with a code that a user enters at another device (RFC 8628).
    NoDeviceGrant {
        /// The issuer.
        issuer: String,
    },
    /// The client could not sign with its key. The text says why.
    Signature(String),
    /// The platform or the application provided no assertion that can be sent. The text says why.
    Assertion(String),
    /// The issuer refused the registration.
    Registration(Problem),
    /// The issuer refused the authorization.
    Authorization(Problem),
    /// The issuer refused a token request.
    Token(Problem),
    /// The redirect came from another issuer (RFC 9207 section 2.4). Its texts are not shown.
    WrongIssuer {
        /// The issuer that the login is at.
        wanted: String,
        /// The issuer that the redirect names, if any.
        found: Option<String>,
    },
    /// The server demands scopes that were granted already, or that it refused before.
    Scope {
        /// The demanded scopes, with spaces between them.
        scopes: String,
    },
    /// The server refused credentials that were just issued.
    Rejected,
    /// The configuration demands tokens that are bound to a key ([`Dpop::Required`]), and the
    /// server or its issuer accepts no proof of this client.
    ///
    /// [`Dpop::Required`]: crate::auth::Dpop::Required
    NoDpop {
        /// The issuer.
        issuer: String,
    },
    /// The server refused the proof that the client has the key of its token (RFC 9449 section
    /// 7.1). A clock may be wrong.
    ProofRefused,
    /// Another process changes the same login, and did not finish in time.
    Busy,
    /// The authorization server cannot be reached now, or failed. A later request tries again.
    Unavailable(Problem),
    /// A run needed more than a limit allows. The text names the limit.
    Limit(String),
    /// The client was closed, or the user logged out meanwhile.
    Ended,
}

/// A URL that was tried for a document, and what came of it.
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
pub struct TriedUrl {
    /// The URL.
    pub url: String,
    /// The status of the response, if there was one.
    pub status: Option<u16>,
    /// Why its document is not used.
    pub why: String,
}

/// What an endpoint of an issuer answered, or why it did not.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
pub struct Problem {
    /// The URL of the endpoint, or the issuer of a page.
    pub url: String,
    /// The status of the response, if there was one.
    pub status: Option<u16>,
    /// The error code (RFC 6749 section 5.2, and others), as sent.
    pub error: Option<String>,
    /// The description for a developer, as sent. At most 1 KiB.
    pub description: Option<String>,
    /// What is wrong beside an error code: the connection, or the form of the response.
    pub why: Option<String>,
}

/// Why a URL of a peer may not be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum UrlFault {
    /// It is no absolute `http:` or `https:` URL with a host.
    Form,
    /// It is an `http:` URL, and not one of a loopback host for a server on such a host.
    Plain,
    /// It names a user.
    User,
    /// It has a fragment.
    Fragment,
    /// An issuer has no query.
    Query,
    /// It is longer than a limit.
    TooLong,
    /// Its host is an address to which the client does not connect for this server.
    Reach,
}

impl Problem {
    /// Maximum length of an error code that is shown, and of a description.
    pub(crate) const MAX_CODE: usize = 256;
    const MAX_DESCRIPTION: usize = 1024;

    /// Returns the problem with what the endpoint said of it.
    pub(crate) fn saying(self, error: Option<&str>, description: Option<&str>) -> Self {
        let text = |text: Option<&str>, max| text.map(|text| beginning(text, max).into());
        Self { error: text(error, Self::MAX_CODE), description: text(description, Self::MAX_DESCRIPTION), ..self }
    }
}

impl AuthError {
    /// Returns whether a later attempt may succeed although no user did anything.
    pub(super) const fn is_transient(&self) -> bool {
        matches!(self, Self::Busy | Self::Unavailable(_))
    }
}

impl fmt::Display for AuthError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LoginRequired => f.write_str("a user has to log in first"),
            Self::Declined => f.write_str("the user declined to log in"),
            Self::PageTimeout => f.write_str("the login was not finished in time"),
            Self::OwnCredentials { field } => {
                write!(f, "a login and the header field {field} exclude each other: remove one")
            }
            Self::Quiet(why) => write!(f, "a login failed shortly before: {why}"),
            Self::Discovery { tried } => {
                f.write_str("no authorization server was found")?;
                let mut tried = tried.iter();
                tried.try_for_each(|TriedUrl { url, why, .. }| write!(f, "; {}: {}", Visible(url), Visible(why)))
            }
            Self::ResourceMismatch { url, wanted, found } => write!(
                f,
                "the metadata at {} is for the resource {}, not for {}",
                Visible(url),
                Visible(found),
                Visible(wanted)
            ),
            Self::BadUrl { purpose, url, fault } => {
                write!(f, "{}: the URL {} cannot be used: {fault}", Visible(purpose), Visible(url))
            }
            Self::NoPkce { issuer, listed: true } => {
                write!(f, "{} does not support PKCE with S256", Visible(issuer))
            }
            Self::NoPkce { issuer, listed: false } => {
                write!(f, "{} does not say that it supports PKCE with S256 (setting: unlisted_pkce)", Visible(issuer))
            }
            Self::NoRegistration { issuer } => {
                write!(f, "{} offers no registration, so it needs a client identifier", Visible(issuer))
            }
            Self::OtherIssuer { given, issuer } => {
                f.write_str("the client identifier is one of ")?;
                write_list(f, given.iter().map(String::as_str))?;
                write!(f, ", but the server uses {}", Visible(issuer))
            }
            Self::NoClientAuth { issuer, offered } => {
                write!(f, "{} has no way to authenticate this client; it offers ", Visible(issuer))?;
                write_list(f, offered.iter().map(String::as_str))
            }
            Self::NoDeviceGrant { issuer } => {
                write!(f, "{} offers no login with a code on another device", Visible(issuer))
            }
            Self::Signature(why) => write!(f, "the client could not sign: {}", Visible(why)),
            Self::Assertion(why) => write!(f, "there is no assertion: {}", Visible(why)),
            Self::Registration(problem) => write!(f, "the registration failed: {problem}"),
            Self::Authorization(problem) => write!(f, "the login failed: {problem}"),
            Self::Token(problem) => write!(f, "the token request failed: {problem}"),
            Self::WrongIssuer { wanted, found: Some(found) } => {
                write!(f, "the redirect names the issuer {}, not {}", Visible(found), Visible(wanted))
            }
            Self::WrongIssuer { wanted, found: None } => {
                write!(f, "the redirect names no issuer, although {} says that it does", Visible(wanted))
            }
            Self::Scope { scopes } => write!(f, "the server demands more than was granted: {}", Visible(scopes)),
            Self::Rejected => f.write_str("the server refused credentials that were just issued"),
            Self::NoDpop { issuer } => {
                write!(f, "{} and the server bind no token to a key of this client", Visible(issuer))
            }
            Self::ProofRefused => f.write_str("the server refused the proof of possession of the key of the token"),
            Self::Busy => f.write_str("another process changes the same login"),
            Self::Unavailable(problem) => write!(f, "the authorization server is not available: {problem}"),
            Self::Limit(limit) => write!(f, "the login needs more than its limit: {}", Visible(limit)),
            Self::Ended => f.write_str("the login has ended"),
        }
    }
}

impl core::error::Error for AuthError {}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { url, status, error, description, why } = self;
        Visible(url).fmt(f)?;
        status.map_or(Ok(()), |status| write!(f, ": HTTP {status}"))?;
        [error, description, why].into_iter().flatten().try_for_each(|text| write!(f, ": {}", Visible(text)))
    }
}

impl fmt::Display for UrlFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Form => "it is no absolute http: or https: URL",
            Self::Plain => "it has no TLS",
            Self::User => "it names a user",
            Self::Fragment => "it has a fragment",
            Self::Query => "it has a query",
            Self::TooLong => "it is too long",
            Self::Reach => "its host is not one that this server may name",
        })
    }
}

impl core::error::Error for UrlFault {}
