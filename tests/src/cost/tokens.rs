//! The time in which a server decides about a token: one that it remembers, and a new one, beside
//! the verification of the signature alone with the same cryptography.
//!
//! Each time is one of the processor, and the three take turns in short rounds, so that a busy
//! machine slows down all of them. What is printed are medians over the rounds.

use super::codec::median;
use super::{Goal, Row};
use crate::tokens::TokenSigner;
use mcp_driver::keys::verify;
use mcp_proto::Instant;
use mcp_proto::auth::{Check, CheckId, Resource, StoreFault, Verifier, VerifierConfig, VerifierOutput};
use mcp_proto::client::FetchResponse;
use mcp_proto::exchange::{Headers, RequestHead};
use rustix::time::{ClockId, clock_gettime};
use rustls::crypto::ring::default_provider;
use rustls::pki_types::{SignatureVerificationAlgorithm, alg_id};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const ISSUER: &str = "http://127.0.0.1:9000";
const RESOURCE: &str = "http://127.0.0.1:8000/mcp";

/// The rounds, and the tokens of each.
const ROUNDS: usize = 100;
const COUNT: usize = 50;

/// Returns the rows.
///
/// # Panics
/// If a token is refused.
pub fn rows() -> Vec<Row> {
    let signer = TokenSigner::new(ISSUER, RESOURCE);
    let mut bench = TokenBench::new(&signer);
    // The keys of the issuer are fetched.
    bench.decide(&head(&signer.token("first")));
    let times: Vec<Times> = (0..ROUNDS).map(|round| bench.measure(round)).collect();
    let each = |number: fn(&Times) -> f64| median(times.iter().map(number).collect());
    vec![
        Row::new("decision about a known token, us", each(|times| times.known), Goal::AtMost(10.0)),
        Row::new("decision about a new token, us", each(|times| times.new), None),
        Row::new("its ECDSA verification alone, us", each(|times| times.alone), None),
        Row::new("decision about a new token, of that", each(|times| times.new / times.alone), Goal::AtMost(1.2)),
    ]
}

/// Returns the time of the processor for the verification of a signature alone.
pub(crate) fn verification(signer: &TokenSigner) -> Duration {
    let bench = TokenBench::new(signer);
    let signed = signer.sign_der(b"input");
    let verify = |_: &()| {
        bench.algorithm.verify_signature(signer.point(), b"input", &signed).expect("a valid signature");
    };
    Duration::from_secs_f64(each(&[(); COUNT], verify) / 1e6)
}

/// The microseconds for each token of a round.
struct Times {
    known: f64,
    new: f64,
    alone: f64,
}

/// What decides about tokens.
struct TokenBench<'a> {
    signer: &'a TokenSigner,
    verifier: Verifier,
    /// The verification alone.
    algorithm: &'static dyn SignatureVerificationAlgorithm,
    last: u64,
}

impl<'a> TokenBench<'a> {
    fn new(signer: &'a TokenSigner) -> Self {
        let (config, resource) = (VerifierConfig::jwt(ISSUER), Resource::new(RESOURCE, [ISSUER]));
        let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let verifier = Verifier::new(Arc::new(config), Arc::new(resource), unix, [1; 32], Instant::ZERO);
        let known = default_provider().signature_verification_algorithms.all;
        let is_it = |known: &&&dyn SignatureVerificationAlgorithm| {
            known.public_key_alg_id() == alg_id::ECDSA_P256 && known.signature_alg_id() == alg_id::ECDSA_SHA256
        };
        let algorithm = *known.iter().find(is_it).expect("ES256");
        Self { signer, verifier, algorithm, last: 0 }
    }

    fn measure(&mut self, round: usize) -> Times {
        let users = (0..COUNT).map(|number| format!("user {}", round * COUNT + number));
        let tokens: Vec<String> = users.map(|user| self.signer.token(&user)).collect();
        let heads: Vec<RequestHead> = tokens.iter().map(|token| head(token)).collect();
        let inputs = tokens.iter().filter_map(|token| token.rsplit_once('.')).map(|(input, _)| input.as_bytes());
        let signed: Vec<(&[u8], Vec<u8>)> = inputs.map(|input| (input, self.signer.sign_der(input))).collect();
        let new = each(&heads, |head| self.decide(head));
        let known = each(&heads, |head| self.decide(head));
        let point = self.signer.point();
        let alone = each(&signed, |(input, signature)| {
            self.algorithm.verify_signature(point, input, signature).expect("a valid signature");
        });
        Times { known, new, alone }
    }

    /// Decides about a request with a valid token.
    fn decide(&mut self, head: &RequestHead) {
        self.last += 1;
        let now = Instant::ZERO;
        self.verifier.check(now, Check { id: CheckId(self.last), head });
        loop {
            match self.verifier.poll_output().expect("the verifier decides") {
                VerifierOutput::Decided(_, decision) => return assert!(decision.is_ok(), "{decision:?}"),
                VerifierOutput::Verify(step, verification) => {
                    self.verifier.verified(now, step, verify(&verification).map_err(StoreFault));
                }
                VerifierOutput::Fetch(step, request) => {
                    let metadata = format!(r#"{{"issuer":"{ISSUER}","jwks_uri":"{ISSUER}/keys"}}"#);
                    let body = if request.url.path == "/keys" { self.signer.keys() } else { metadata };
                    let response = FetchResponse::new(200, Headers::new(), body, ISSUER);
                    self.verifier.fetched(now, step, &Ok(Box::new(response)));
                }
                other => panic!("{other:?}"),
            }
        }
    }
}

fn head(token: &str) -> RequestHead {
    let headers = Headers::new().with("Host", "127.0.0.1:8000").with("Authorization", format!("Bearer {token}"));
    RequestHead { method: "POST".into(), target: "/mcp".into(), headers }
}

/// Returns the microseconds of the processor for each.
fn each<T>(all: &[T], work: impl FnMut(&T)) -> f64 {
    let spent = || {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        time.tv_sec as f64 * 1e6 + time.tv_nsec as f64 / 1e3
    };
    let before = spent();
    all.iter().for_each(work);
    (spent() - before) / all.len() as f64
}
