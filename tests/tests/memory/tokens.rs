//! The memory of a verifier after bad tokens.

use crate::alone;
use mcp_proto::Instant;
use mcp_proto::auth::{Check, CheckId, Resource, Verifier, VerifierConfig, VerifierOutput};
use mcp_proto::client::FetchResponse;
use mcp_proto::exchange::{Headers, RequestHead};
use mcp_tests::heap::used;
use mcp_tests::tokens::TokenSigner;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const ISSUER: &str = "http://127.0.0.1:9000";
const RESOURCE: &str = "http://127.0.0.1:8000/mcp";

/// The bad tokens of a round: more than are remembered.
const COUNT: usize = if cfg!(debug_assertions) { 1200 } else { 10_000 };

struct World {
    verifier: Verifier,
    signer: TokenSigner,
    now: Instant,
    last: u64,
}

impl World {
    fn new() -> Self {
        let config = Arc::new(VerifierConfig::jwt(ISSUER));
        let resource = Arc::new(Resource::new(RESOURCE, [ISSUER]));
        let unix = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
        let verifier = Verifier::new(config, resource, unix, [1; 32], Instant::ZERO);
        Self { verifier, signer: TokenSigner::new(ISSUER, RESOURCE), now: Instant::ZERO, last: 0 }
    }

    /// Returns whether a token is accepted. Its signature is valid if `is_signed`.
    fn check(&mut self, token: &str, is_signed: bool) -> bool {
        self.last += 1;
        let headers = Headers::new().with("Authorization", format!("Bearer {token}"));
        let head = RequestHead { method: "POST".into(), target: "/mcp".into(), headers };
        self.verifier.check(self.now, Check { id: CheckId(self.last), head: &head });
        loop {
            match self.verifier.poll_output().expect("a decision") {
                VerifierOutput::Decided(_, decision) => return decision.is_ok(),
                VerifierOutput::Verify(step, _) => self.verifier.verified(self.now, step, Ok(is_signed)),
                VerifierOutput::Fetch(step, request) => {
                    let is_keys = &*request.url.path == "/keys";
                    let metadata = format!(r#"{{"issuer":"{ISSUER}","jwks_uri":"{ISSUER}/keys"}}"#);
                    let body = if is_keys { self.signer.keys() } else { metadata };
                    let response = FetchResponse::new(200, Headers::new(), body, ISSUER);
                    self.verifier.fetched(self.now, step, &Ok(Box::new(response)));
                }
                other => panic!("{other:?}"),
            }
        }
    }

    /// Sends bad tokens of all kinds, and lets the time pass in which they are remembered.
    fn storm(&mut self, round: usize) {
        for number in 0..COUNT {
            let number = round * COUNT + number;
            assert!(!self.check(&self.signer.forged(number), false));
            assert!(!self.check(&self.signer.of_unknown_key(number), false));
            assert!(!self.check(&format!("nonsense-{number}"), false));
        }
        while let Some(at) = self.verifier.poll_timeout() {
            self.now = at;
            self.verifier.handle_timeout(at);
        }
    }
}

#[test]
fn bad_tokens_leave_nothing() {
    let _alone = alone();
    let mut world = World::new();
    let good = world.signer.token("ada");
    assert!(world.check(&good, true));
    // Queues that grew are kept.
    world.storm(0);
    let before = used();
    for round in 1..4 {
        world.storm(round);
        assert_eq!(used(), before, "after round {round}");
    }
    world.now = world.now + Duration::from_secs(1);
    assert!(world.check(&good, true));
}
