//! A login that holds a token, and what verifies it, both in memory and without cryptography: the
//! signature counts as valid.

use crate::tokens::TokenSigner;
use bytes::Bytes;
use mcp_proto::auth::{
    AuthConfig, AuthMethod, Check, CheckId, ClientSource, Entry, Input, Lease, Output, Record, RegisteredClient,
    Resource, Scopes, Secret, Stored, TokenType, Tokens, Verifier, VerifierConfig, VerifierOutput, Version,
};
use mcp_proto::client::{FetchRequest, FetchResponse};
use mcp_proto::exchange::{Headers, RequestHead};
use mcp_proto::input::Admission;
use mcp_proto::{ClientConfig, Instant, ServerConfig};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// What the client calls the server.
pub(super) const RESOURCE: &str = "http://127.0.0.1:8000/mcp";

const ISSUER: &str = "http://127.0.0.1:9000";

/// A verifier that remembers the token of a login.
pub(super) struct Guard {
    signer: TokenSigner,
    resource: Arc<Resource>,
    verifier: Verifier,
    origin_unix: Duration,
    last: u64,
}

impl Guard {
    pub(super) fn new() -> Self {
        let signer = TokenSigner::new(ISSUER, RESOURCE);
        let resource = Arc::new(Resource::new(RESOURCE, [ISSUER]));
        let config = Arc::new(VerifierConfig::jwt(ISSUER));
        let origin_unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let verifier = Verifier::new(config, Arc::clone(&resource), origin_unix, [3; 32], Instant::ZERO);
        Self { signer, resource, verifier, origin_unix, last: 0 }
    }

    /// Lets a client log in.
    pub(super) fn client(&self, config: &mut ClientConfig) {
        config.auth = Some(Arc::new(AuthConfig::new("cost")));
        config.origin_unix = self.origin_unix;
    }

    /// Lets a server ask this.
    pub(super) fn server(&self, config: &mut ServerConfig) {
        config.resource = Some(Arc::clone(&self.resource));
        config.admit = true;
        config.origin_unix = self.origin_unix;
    }

    /// Returns the answer to a step of the login: a token is stored.
    pub(super) fn answer(&self, step: Output) -> Option<Input> {
        match step {
            Output::Lease(step, ..) => Some(Input::Leased(step, Ok(Lease::Held))),
            Output::Load(step, _) => {
                let record = Some(Box::new(self.record()));
                Some(Input::Loaded(step, Ok(Stored { record, version: Version(1) })))
            }
            _ => None,
        }
    }

    fn record(&self) -> Record {
        let client = RegisteredClient {
            client_id: "app".into(),
            client_secret: None,
            secret_expires: None,
            method: AuthMethod::None,
            redirect_uri: None,
            scopes: Scopes::new(),
            source: ClientSource::Dynamic,
        };
        let tokens = Tokens {
            access_token: Secret::new(self.signer.token("ada")),
            token_type: TokenType::Bearer,
            dpop_key: None,
            refresh_token: None,
            expires: None,
            lifetime: None,
            granted: Scopes::new(),
            generation: 1,
        };
        let (issuer, resource) = (ISSUER.into(), RESOURCE.into());
        Record { entries: vec![Entry { issuer, resource, client, requested: Scopes::new(), tokens: Some(tokens) }] }
    }

    /// Decides about a request.
    pub(super) fn admit(&mut self, now: Instant, head: &RequestHead) -> Admission {
        self.last += 1;
        self.verifier.check(now, Check { id: CheckId(self.last), head });
        loop {
            match self.verifier.poll_output().expect("the verifier decides") {
                VerifierOutput::Decided(_, decision) => return decision.into(),
                VerifierOutput::Verify(step, _) => self.verifier.verified(now, step, Ok(true)),
                VerifierOutput::Fetch(step, request) => {
                    self.verifier.fetched(now, step, &Ok(Box::new(self.document(&request))));
                }
                other => panic!("{other:?}"),
            }
        }
    }

    fn document(&self, request: &FetchRequest) -> FetchResponse {
        let body = if request.url.path == "/keys" {
            self.signer.keys()
        } else {
            format!(r#"{{"issuer":"{ISSUER}","jwks_uri":"{ISSUER}/keys"}}"#)
        };
        FetchResponse::new(200, Headers::new(), Bytes::from(body), format!("{ISSUER}{}", request.url.path))
    }
}
