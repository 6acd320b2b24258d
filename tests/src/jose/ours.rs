//! Our verifier, with its issuer and its cryptography around it.

use super::keys::Keys;
use super::{ISSUER, LEEWAY, NOW, RESOURCE};
use mcp_driver::keys;
use mcp_proto::auth::{
    Access, AccessDenial, Check, CheckId, IssuerConfig, Resource, StoreFault, Verifier, VerifierConfig, VerifierOutput,
};
use mcp_proto::client::FetchResponse;
use mcp_proto::exchange::{Headers, RequestHead};
use mcp_proto::time::Instant;
use serde_json::json;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// See the [module](self).
pub(super) struct Ours {
    verifier: Verifier,
    key_set: String,
    last_id: u64,
}

impl fmt::Debug for Ours {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ours").finish_non_exhaustive()
    }
}

impl Ours {
    /// A verifier for tokens that these keys sign.
    pub(super) fn new(keys: &Keys) -> Self {
        let keys: Vec<_> = keys.own.iter().map(super::keys::Key::jwk).collect();
        let issuer = IssuerConfig::jwt(ISSUER).jwks_uri(format!("{ISSUER}/keys")).leeway(Duration::from_secs(LEEWAY));
        let resource = Resource::new(RESOURCE, [ISSUER]).dpop(false);
        let (config, resource) = (Arc::new(VerifierConfig::new(issuer)), Arc::new(resource));
        let verifier = Verifier::new(config, resource, Duration::from_secs(NOW), [7; 32], Instant::ZERO);
        Self { verifier, key_set: json!({ "keys": keys }).to_string(), last_id: 0 }
    }

    /// Decides about a bearer token.
    pub(super) fn token(&mut self, token: &str) -> Result<Arc<Access>, AccessDenial> {
        self.decide(Headers::new().with("Authorization", format!("Bearer {token}")))
    }

    /// Decides about a POST with a bound token and its proof.
    pub(super) fn proof(&mut self, token: &str, proof: &str) -> Result<Arc<Access>, AccessDenial> {
        self.decide(Headers::new().with("Authorization", format!("DPoP {token}")).with("DPoP", proof))
    }

    fn decide(&mut self, headers: Headers) -> Result<Arc<Access>, AccessDenial> {
        self.last_id += 1;
        let head = RequestHead { method: "POST".into(), target: "/mcp".into(), headers };
        self.verifier.check(Instant::ZERO, Check { id: CheckId(self.last_id), head: &head });
        let mut decision = None;
        while let Some(output) = self.verifier.poll_output() {
            match output {
                VerifierOutput::Fetch(step, request) => {
                    let url = request.url.original.clone();
                    let response = FetchResponse::new(200, Headers::new(), self.key_set.clone(), url);
                    self.verifier.fetched(Instant::ZERO, step, &Ok(response.into()));
                }
                VerifierOutput::Verify(step, verification) => {
                    let outcome = keys::verify(&verification).map_err(StoreFault);
                    self.verifier.verified(Instant::ZERO, step, outcome);
                }
                VerifierOutput::Decided(_, outcome) => decision = Some(outcome),
                _ => {}
            }
        }
        decision.unwrap_or(Err(AccessDenial::Unavailable { retry_after: Duration::ZERO }))
    }
}
