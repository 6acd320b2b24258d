//! What a flow wants of its surroundings, and their answers: the *steps*. An answer names the
//! [`StepId`] of its step. One to a step that is not open, or of another kind, changes nothing.

use super::config::{LoopbackHost, Port};
use super::jws::{Alg, KeyPair, SignRequest};
use super::record::{Record, StoreKey, Version};
use super::scopes::Scopes;
use super::secret::Secret;
use crate::error::AuthError;
use crate::fetch::FetchRequest;
use crate::time::Instant;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

/// Identifies a step. A flow never reuses an id.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
pub struct StepId(pub u64);

/// Counts the credentials of a flow: each change of them has the next number. `0`: there were none.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
pub struct Generation(pub u64);

/// An output of a flow.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum Output {
    /// Make this HTTP request. Answer with [`Flow::fetched`](super::Flow::fetched). A
    /// [`Client`](crate::Client) makes it itself.
    Fetch(StepId, Box<FetchRequest>),
    /// Cancel the HTTP request of this step, whose answer is no longer wanted.
    CancelFetch(StepId),
    /// Take a lease of the record, and wait for another holder. Answer with [`Input::Leased`].
    Lease(StepId, StoreKey, Purpose),
    /// Release a lease. If it was not granted yet, its step is over.
    Release(StoreKey, Purpose),
    /// Load the record. Answer with [`Input::Loaded`].
    Load(StepId, StoreKey),
    /// Replace the record if it has this version. `None` removes it. Answer with [`Input::Saved`].
    Save(StepId, StoreKey, Version, Option<Box<Record>>),
    /// Listen for a redirect. Answer with [`Input::Listening`], then with [`Input::Redirected`] for
    /// each request to the path.
    Listen(StepId, Listen),
    /// Show this page to the user. Answer with [`Input::Redirected`] or [`Input::Declined`].
    Browse(StepId, Browse),
    /// Show this code to the user, who enters it at a page on any device (RFC 8628 section 3.3).
    /// [`Input::Declined`] ends the login; otherwise no answer is needed.
    ShowCode(StepId, Box<DeviceCode>),
    /// Make a key pair for this algorithm. Answer with [`Input::KeyMade`].
    NewKey(StepId, Alg),
    /// Sign this. Answer with [`Input::Signed`].
    Sign(StepId, Box<SignRequest>),
    /// Provide an assertion. Answer with [`Input::Asserted`].
    Assert(StepId, Box<AssertionRequest>),
    /// The latest redirect that this listener received is none of this login: respond 404, and go
    /// on.
    Ignore(StepId),
    /// The step [`Listen`](Self::Listen), [`Browse`](Self::Browse) or [`ShowCode`](Self::ShowCode)
    /// is over: stop the listener after its last response, which shows this result.
    Finish(StepId, PageResult),
    /// A run has ended: requests that wait go out, with the credentials of this generation. A
    /// [`Client`](crate::Client) handles it itself.
    Changed(Generation),
    /// A run has ended without credentials. Requests that wait end with this error.
    Failed(Box<AuthError>),
    /// What happened, for a user or a log.
    Report(AuthReport),
}

/// The purpose of a lease of a record.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
pub enum Purpose {
    /// A login whose page is open. One is held for minutes.
    Login,
    /// A change of the record, with the token request before it. One is held for seconds.
    Change,
}

/// What to listen for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Listen {
    /// The host.
    pub host: LoopbackHost,
    /// The port that is tried first: that of a registration.
    pub first: Option<u16>,
    /// The ports.
    pub port: Port,
    /// The path of the redirect. Requests for another one get 404.
    pub path: String,
    /// When the listener ends.
    pub until: Instant,
}

/// A page that the user opens to log in. Its URL was checked: it is an `https:` URL, or one of a
/// loopback host, of at most 8 KiB.
#[derive(Clone, PartialEq, Eq)]
pub struct Browse {
    /// The URL. It has the `state` of the login, which is no secret to the user.
    pub url: String,
    /// The issuer.
    pub issuer: String,
    /// The requested scopes.
    pub scopes: Scopes,
    /// The redirect URI, to recognize the URL at which the browser arrives.
    pub redirect_uri: String,
    /// When the login ends without an answer.
    pub until: Instant,
}

/// A code that a user enters at a page on any device (RFC 8628 section 3.2).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeviceCode {
    /// The code. It is for the eyes of this user only.
    pub user_code: Secret,
    /// The URL of the page, which the user may have to type.
    pub verification_uri: String,
    /// The same with the code in it, for a link or an image.
    pub verification_uri_complete: Option<Secret>,
    /// The issuer.
    pub issuer: String,
    /// The requested scopes.
    pub scopes: Scopes,
    /// When the code expires.
    pub until: Instant,
}

/// An assertion that is needed (RFC 7521).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AssertionRequest {
    /// What it is for.
    pub purpose: AssertionPurpose,
    /// The issuer that it is presented to.
    pub audience: String,
    /// Its token endpoint.
    pub token_endpoint: String,
    /// The identifier of the resource, if there is one.
    pub resource: Option<String>,
}

/// What an assertion is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AssertionPurpose {
    /// It is the grant itself: the identity of a workload (RFC 7523 section 2.1).
    Workload,
    /// It is the identity of a user at an identity provider, which exchanges it (RFC 8693).
    Identity,
}

/// The result that the last page of a login shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PageResult {
    /// The redirect was accepted.
    Accepted,
    /// The authorization server or the client refused.
    Refused,
    /// The login ended otherwise: nothing is shown.
    Ended,
}

/// An answer to a step.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum Input {
    /// A lease is held, or cannot be.
    Leased(StepId, Result<Lease, StoreFault>),
    /// The record, and its version.
    Loaded(StepId, Result<Stored, StoreFault>),
    /// The version of the record after it was replaced.
    Saved(StepId, Result<Version, SaveFault>),
    /// The redirect URI of the listener, with its port. An error if there is no listener: the
    /// user can still give the URL by hand.
    Listening(StepId, Result<String, StoreFault>),
    /// The URL of a redirect, or one that the user gave. It has the code in it.
    Redirected(StepId, Secret),
    /// The user does not want to log in.
    Declined(StepId),
    /// The key pair.
    KeyMade(StepId, Result<Box<KeyPair>, StoreFault>),
    /// The signature, as RFC 7518 section 3 defines it: for ECDSA the two numbers, one after the
    /// other.
    Signed(StepId, Result<Vec<u8>, StoreFault>),
    /// The assertion.
    Asserted(StepId, Result<Secret, StoreFault>),
}

/// A lease that is held, or held by another process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
pub enum Lease {
    /// It is held now.
    Held,
    /// Another process holds it. [`Held`](Self::Held) follows for the same step once it is free.
    Waiting,
}

/// A record as a store has it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
pub struct Stored {
    /// The record. `None`: there is none.
    pub record: Option<Box<Record>>,
    /// Its version. [`Version::ABSENT`] without a record.
    pub version: Version,
}

/// Why a store or a listener failed, as a text.
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
pub struct StoreFault(pub String);

impl core::fmt::Display for StoreFault {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        crate::peer_text::Visible(&self.0).fmt(f)
    }
}

impl core::error::Error for StoreFault {}

/// Why a record was not replaced.
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
pub enum SaveFault {
    /// It has another version: this is it.
    Conflict(Stored),
    /// The store failed.
    Fault(StoreFault),
}

/// What happened during authorization, for a user or a log. Its `Display` has
/// [escapes](crate::error#text-of-a-peer).
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum AuthReport {
    /// There are new tokens.
    Authorized {
        /// The issuer.
        issuer: String,
        /// The granted scopes.
        scopes: Scopes,
        /// The lifetime of the access token, if the issuer named one.
        expires_in: Option<Duration>,
        /// Whether a refresh token renews it.
        can_refresh: bool,
    },
    /// The record was removed.
    LoggedOut {
        /// Whether the authorization server confirmed that it revoked the tokens. `None` if it
        /// offers no revocation, or there were no tokens.
        revoked: Option<bool>,
    },
    /// Another process shows a page for this record. This one waits for its end.
    OtherLogin,
    /// The store failed: the login is kept in memory alone.
    NoStore(StoreFault),
    /// The tokens are used, and could not be stored.
    NotSaved(StoreFault),
    /// There is no listener, so the user has to give the URL of the redirect by hand.
    NoListener(StoreFault),
    /// A redirect was ignored. The login goes on. At most 16 are reported.
    WrongRedirect(&'static str),
    /// A deviation from a specification that is tolerated, or a setting without effect.
    Deviation(String),
    /// The issuer sends no `iss` in its redirects, and the redirect URI does not depend on it: a
    /// server that names several issuers could mix them up (RFC 9700 section 2.1).
    MixUpUnprotected(String),
}

impl core::fmt::Debug for Browse {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let Self { url, issuer, scopes, redirect_uri, until } = self;
        f.debug_struct("Browse")
            .field("url", &crate::redact::Url(url))
            .field("issuer", issuer)
            .field("scopes", scopes)
            .field("redirect_uri", redirect_uri)
            .field("until", until)
            .finish()
    }
}

impl core::fmt::Display for AuthReport {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        use crate::peer_text::Visible;
        match self {
            Self::Authorized { issuer, scopes, expires_in, .. } => {
                write!(f, "logged in at {}", Visible(issuer))?;
                if !scopes.is_empty() {
                    write!(f, " for {scopes}")?;
                }
                expires_in.map_or(Ok(()), |after| write!(f, ", for {} s", after.as_secs()))
            }
            Self::LoggedOut { revoked: Some(true) } => f.write_str("logged out, and the tokens are revoked"),
            Self::LoggedOut { revoked: Some(false) } => {
                f.write_str("logged out; the authorization server did not confirm that it revoked the tokens")
            }
            Self::LoggedOut { revoked: None } => f.write_str("logged out"),
            Self::OtherLogin => f.write_str("another process shows a page for this login"),
            Self::NoStore(why) => write!(f, "the store of logins failed: {why}"),
            Self::NotSaved(why) => write!(f, "the tokens could not be stored: {why}"),
            Self::NoListener(why) => write!(f, "nothing listens for the redirect: {why}"),
            Self::WrongRedirect(why) => write!(f, "a redirect was ignored: {why}"),
            Self::Deviation(text) => Visible(text).fmt(f),
            Self::MixUpUnprotected(issuer) => {
                write!(f, "{} does not name itself in its redirects", Visible(issuer))
            }
        }
    }
}
