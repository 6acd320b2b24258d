//! The server as OAuth 2.1 sees it: a *resource* (RFC 9728), what a client may do at it, and why
//! not.

mod challenge;
mod check;
mod config;
mod credentials;
mod document;
mod expiring;
mod introspection;
mod jwt;
mod keys;
mod pending;
mod proof;
mod source;
mod verifier;

pub(crate) use challenge::{DenialResponse, INSUFFICIENT_SCOPE, INVALID_TOKEN};
pub use check::{Check, CheckId, Verification, VerifierOutput, VerifierReport};
pub use config::{IssuerConfig, Trust, VerifierConfig};
pub(crate) use document::ResourceDocument;
pub use verifier::Verifier;

use super::principal::Principal;
use super::scopes::Scopes;
use super::support::AuthSupport;
use crate::fetch::{BadUrl, HttpTarget};
use crate::rpc::Object;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

/// A server that accepts tokens of these issuers (RFC 9728 section 2). The engine serves its
/// metadata document, and writes the challenges of responses from it.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct Resource {
    /// The identifier: the URL under which the clients reach the server. Tokens are for this one
    /// (`aud`). It is never taken from a request. [`check`](Self::check) tells whether it is valid.
    pub identifier: String,
    /// The issuers of tokens, at least one.
    pub authorization_servers: Vec<String>,
    /// The scopes that clients may request. Default none: the document lists none.
    pub scopes_supported: Scopes,
    /// The scopes without which a token is of no use here. A client without a token is asked for
    /// these, and a token without them is refused. Default none: a client is asked for
    /// [`scopes_supported`](Self::scopes_supported), and every token will do.
    pub scopes_required: Scopes,
    /// A name for people.
    pub name: Option<String>,
    /// The URL of a page for developers.
    pub documentation: Option<String>,
    /// Whether tokens are bound to a key of their client. Default [`ProofUse::Off`].
    pub dpop: ProofUse,
    support: AuthSupport,
}

/// Whether the tokens for a resource are bound to a key of their client (RFC 9449).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ProofUse {
    /// They are not, and a bound token is refused.
    #[default]
    Off,
    /// They may be. A bound token needs its proof.
    Accepted,
    /// All are.
    Required,
}

#[cfg(any(test, feature = "auth"))]
impl Resource {
    /// Creates a resource with this identifier, which accepts tokens of these issuers.
    pub fn new<S: Into<String>>(identifier: impl Into<String>, issuers: impl IntoIterator<Item = S>) -> Self {
        Self {
            identifier: identifier.into(),
            authorization_servers: issuers.into_iter().map(Into::into).collect(),
            scopes_supported: Scopes::new(),
            scopes_required: Scopes::new(),
            name: None,
            documentation: None,
            dpop: ProofUse::Off,
            support: AuthSupport::ON,
        }
    }
}

impl Resource {
    /// Sets the scopes that clients may request.
    #[must_use]
    pub fn scopes_supported<'a>(mut self, scopes: impl IntoIterator<Item = &'a str>) -> Self {
        self.scopes_supported = scopes.into_iter().collect();
        self
    }

    /// Sets the scopes without which a token is of no use.
    ///
    /// # Panics
    /// If one is no scope token (RFC 6749 section 3.3), or they are more than a set can have.
    #[must_use]
    pub fn scopes_required<'a>(mut self, scopes: impl IntoIterator<Item = &'a str>) -> Self {
        self.scopes_required = Scopes::demanded(scopes);
        self
    }

    /// Sets a name for people.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Sets the URL of a page for developers.
    #[must_use]
    pub fn documentation(mut self, url: impl Into<String>) -> Self {
        self.documentation = Some(url.into());
        self
    }

    /// Accepts tokens that are bound to a key of their client (RFC 9449). `required`: no others.
    #[must_use]
    pub const fn dpop(mut self, required: bool) -> Self {
        self.dpop = if required { ProofUse::Required } else { ProofUse::Accepted };
        self
    }

    /// Checks the identifier (RFC 9728 section 1.2). With a bad one, the engine serves no document,
    /// and challenges name none.
    ///
    /// # Errors
    /// [`BadUrl`] if it is no `http:` or `https:` URL, or has a fragment.
    pub fn check(&self) -> Result<(), BadUrl> {
        self.target().map(drop)
    }

    /// Returns the parsed identifier.
    fn target(&self) -> Result<HttpTarget, BadUrl> {
        if self.identifier.contains('#') { Err(BadUrl) } else { HttpTarget::parse(&self.identifier) }
    }
}

/// What a verified token says: who may do what, and until when.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct Access {
    /// The principal of the requests: for a verified token the JSON text of an array with the
    /// issuer, the subject and the client.
    pub principal: Principal,
    /// The issuer of the token.
    pub issuer: String,
    /// The subject: the user, or the client itself.
    pub subject: Option<String>,
    /// The client identifier.
    pub client: Option<String>,
    /// The granted scopes, with those that they imply.
    pub scopes: Scopes,
    /// The Unix time at which the token expires, with the leeway of the verifier. `None`: never. At
    /// that time the engine ends what the token has opened: a stream of GET, a subscription, a
    /// connection. Requests that run go on.
    pub expires: Option<Duration>,
    /// All claims of the token, or the whole response to an introspection.
    pub claims: Object,
}

impl Access {
    /// Returns the access of a principal, for an application that verifies tokens by itself.
    pub fn new(principal: impl Into<Principal>) -> Self {
        Self {
            principal: principal.into(),
            issuer: String::new(),
            subject: None,
            client: None,
            scopes: Scopes::new(),
            expires: None,
            claims: Object::new(),
        }
    }

    /// Returns the bytes that it holds on the heap.
    pub(crate) fn heap_size(&self) -> usize {
        let texts = [Some(&self.issuer), self.subject.as_ref(), self.client.as_ref()];
        let texts: usize = texts.into_iter().flatten().map(String::capacity).sum();
        self.principal.0.len() + texts + self.scopes.heap_size() + self.claims.heap_size()
    }
}

/// Why a request is refused. The engine writes the response, with a challenge (RFC 6750 section 3,
/// RFC 9728 section 5.1).
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum AccessDenial {
    /// It has no token: 401, without an error code.
    Missing,
    /// The token is not valid: 401, `invalid_token`. The text is for the client.
    Invalid(&'static str),
    /// The proof of possession is missing or not valid: 401, `invalid_dpop_proof` (RFC 9449 section
    /// 7.1). The text is for the client.
    Proof(&'static str),
    /// The proof of possession needs this nonce: 401, `use_dpop_nonce` with `DPoP-Nonce` (RFC 9449
    /// section 9).
    Nonce(String),
    /// The request is malformed, for example by two tokens: 400, `invalid_request`. The text is for
    /// the client.
    Malformed(&'static str),
    /// The token does not suffice: 403, `insufficient_scope` with all these scopes.
    Scope(Scopes),
    /// Whether the token is valid cannot be found out now: 503, with this `Retry-After`.
    Unavailable {
        /// When to try again.
        retry_after: Duration,
    },
}
