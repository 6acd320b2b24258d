//! The configuration of a verifier: a value with methods that build it.

use super::source;
use crate::auth::support::AuthSupport;
use crate::auth::{Alg, Scopes, Secret};
use crate::error::AuthError;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

/// How a server verifies tokens.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct VerifierConfig {
    /// The issuers whose tokens are accepted. A token that is no JSON Web Token goes to the first
    /// one that is [asked](Trust::Introspection).
    pub issuers: Vec<IssuerConfig>,
    /// The scopes that a scope implies, closed: those that an implied scope implies are listed too.
    pub implied: BTreeMap<String, Scopes>,
    /// How old the proof of possession of a key may be, and how far in the future, if the clock of
    /// the client differs (RFC 9449 section 4.3). Default 5 minutes, the most that MCP permits.
    pub proof_window: Duration,
    /// Whether a proof of possession needs a nonce of this server (RFC 9449 section 9): the first
    /// proof of a client is then refused once in about two minutes, and its clock does not matter
    /// any more. Default no.
    pub nonces: bool,
    /// Maximum number of requests that wait for a decision. One beyond it is refused as
    /// [unavailable](super::AccessDenial::Unavailable). Default 256.
    pub max_waiting: usize,
    support: AuthSupport,
}

/// How tokens of one issuer are verified.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct IssuerConfig {
    /// The issuer: an `https:` URL, or one with `http:` of this machine. A slash more or less at
    /// the end than in its own metadata does not count; the tokens need the spelling of the
    /// metadata.
    pub issuer: String,
    /// How its tokens are verified.
    pub trust: Trust,
    /// The accepted audiences: a token is for one of them (`aud`). Default none: it is for the
    /// identifier of the resource.
    pub audiences: Vec<String>,
    /// The algorithms of signatures. Default [all](Alg::ALL).
    pub algs: Vec<Alg>,
    /// Whether tokens may have another type than that of access tokens, `at+jwt` (RFC 9068 section
    /// 4), as those of issuers that do not follow RFC 9068. A token then needs a scope, since an ID
    /// token may look the same otherwise. Default no.
    pub any_typ: bool,
    /// The claim with the scopes. Default `None`: `scope`, or else `scp`.
    pub scope_claim: Option<String>,
    /// By how much the clock of the issuer may differ. Default 60 s.
    pub leeway: Duration,
    /// The URL of the keys. Default `None`: that in the metadata of the issuer.
    pub jwks_uri: Option<String>,
    /// The URL of the introspection. Default `None`: that in the metadata of the issuer.
    pub introspection_endpoint: Option<String>,
}

/// How the tokens of an issuer are verified.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum Trust {
    /// By their signature: they are JSON Web Tokens (RFC 9068).
    Jwt,
    /// By asking the issuer (RFC 7662), as this client.
    Introspection {
        /// The client identifier of this server at the issuer.
        client_id: String,
        /// Its secret.
        client_secret: Secret,
    },
}

#[cfg(any(test, feature = "auth"))]
impl VerifierConfig {
    /// Verifies tokens of this issuer.
    pub fn new(issuer: IssuerConfig) -> Self {
        Self {
            issuers: [issuer].into(),
            implied: BTreeMap::new(),
            proof_window: Duration::from_secs(300),
            nonces: false,
            max_waiting: 256,
            support: AuthSupport::ON,
        }
    }

    /// Verifies JSON Web Tokens of this issuer. Use [`new`](Self::new) to configure more of it.
    pub fn jwt(issuer: impl Into<String>) -> Self {
        Self::new(IssuerConfig::jwt(issuer))
    }

    /// Verifies tokens by asking this issuer, as this client of it. Use [`new`](Self::new) to
    /// configure more of it.
    pub fn introspection(
        issuer: impl Into<String>,
        client_id: impl Into<String>,
        client_secret: impl Into<Secret>,
    ) -> Self {
        Self::new(IssuerConfig::introspection(issuer, client_id, client_secret))
    }
}

impl VerifierConfig {
    /// Accepts tokens of this issuer as well.
    #[must_use]
    pub fn and_issuer(mut self, issuer: IssuerConfig) -> Self {
        self.issuers.push(issuer);
        self
    }

    /// A token with this scope has those as well (2026-07-28 authorization, scope hierarchies). The
    /// relation is transitive.
    #[must_use]
    pub fn implies<'a>(mut self, scope: &str, implied: impl IntoIterator<Item = &'a str>) -> Self {
        let implied: Scopes = implied.into_iter().collect();
        let known = self.implied.entry(scope.into()).or_default();
        *known = known.union(&implied);
        self.close();
        self
    }

    /// Demands nonces of proofs. See [`nonces`](Self::nonces).
    #[must_use]
    pub fn with_nonces(mut self) -> Self {
        self.nonces = true;
        self
    }

    /// Checks the URLs of the issuers. With a bad one, the tokens of its issuer cannot be verified.
    ///
    /// # Errors
    /// [`AuthError::BadUrl`] with the first one that has neither `https:` nor a host of this
    /// machine, or is no URL.
    pub fn check(&self) -> Result<(), AuthError> {
        for issuer in &self.issuers {
            let urls = [
                ("issuer", Some(&issuer.issuer)),
                ("jwks_uri", issuer.jwks_uri.as_ref()),
                ("introspection_endpoint", issuer.introspection_endpoint.as_ref()),
            ];
            for (purpose, url) in urls.into_iter().filter_map(|(purpose, url)| Some((purpose, url?))) {
                source::own_url(url).map_err(|fault| AuthError::BadUrl {
                    purpose: purpose.into(),
                    url: url.clone(),
                    fault,
                })?;
            }
        }
        Ok(())
    }

    /// Adds what implied scopes imply, until nothing changes. The size of a set has a limit, so
    /// this ends.
    fn close(&mut self) {
        loop {
            let wider: BTreeMap<_, _> =
                self.implied.iter().map(|(scope, all)| (scope.clone(), self.widen(all))).collect();
            if wider == self.implied {
                return;
            }
            self.implied = wider;
        }
    }

    /// Returns these scopes and those that they imply.
    pub(super) fn widen(&self, scopes: &Scopes) -> Scopes {
        let implied = scopes.iter().filter_map(|scope| self.implied.get(scope));
        implied.fold(scopes.clone(), |all, more| all.union(more))
    }
}

impl IssuerConfig {
    /// Verifies JSON Web Tokens of this issuer.
    pub fn jwt(issuer: impl Into<String>) -> Self {
        Self {
            issuer: issuer.into(),
            trust: Trust::Jwt,
            audiences: Vec::new(),
            algs: Alg::ALL.into(),
            any_typ: false,
            scope_claim: None,
            leeway: Duration::from_secs(60),
            jwks_uri: None,
            introspection_endpoint: None,
        }
    }

    /// Verifies tokens by asking this issuer, as this client of it.
    pub fn introspection(
        issuer: impl Into<String>,
        client_id: impl Into<String>,
        client_secret: impl Into<Secret>,
    ) -> Self {
        let (client_id, client_secret) = (client_id.into(), client_secret.into());
        Self { trust: Trust::Introspection { client_id, client_secret }, ..Self::jwt(issuer) }
    }

    /// Accepts tokens for this audience, in place of the identifier of the resource. Call it again
    /// for further ones.
    #[must_use]
    pub fn audience(mut self, audience: impl Into<String>) -> Self {
        self.audiences.push(audience.into());
        self
    }

    /// Accepts these algorithms alone.
    #[must_use]
    pub fn algs(mut self, algs: impl IntoIterator<Item = Alg>) -> Self {
        self.algs = algs.into_iter().collect();
        self
    }

    /// Accepts tokens of any type. See [`any_typ`](Self::any_typ).
    #[must_use]
    pub const fn any_typ(mut self) -> Self {
        self.any_typ = true;
        self
    }

    /// Reads the scopes from this claim.
    #[must_use]
    pub fn scope_claim(mut self, claim: impl Into<String>) -> Self {
        self.scope_claim = Some(claim.into());
        self
    }

    /// Sets by how much the clock of the issuer may differ.
    #[must_use]
    pub const fn leeway(mut self, leeway: Duration) -> Self {
        self.leeway = leeway;
        self
    }

    /// Sets the URL of the keys. The metadata of the issuer is not needed then.
    #[must_use]
    pub fn jwks_uri(mut self, url: impl Into<String>) -> Self {
        self.jwks_uri = Some(url.into());
        self
    }

    /// Sets the URL of the introspection. The metadata of the issuer is not needed then.
    #[must_use]
    pub fn introspection_endpoint(mut self, url: impl Into<String>) -> Self {
        self.introspection_endpoint = Some(url.into());
        self
    }
}
