//! A server that verifies tokens, with an issuer and cryptography around it, in virtual time. The
//! signature `sig` is valid, and no other one.

use crate::base64url;
use mcp_proto::auth::{
    Access, AccessDenial, Alg, Check, CheckId, Principal, Resource, StoreFault, Verification, Verifier, VerifierConfig,
    VerifierOutput,
};
use mcp_proto::client::{FetchError, FetchResponse};
use mcp_proto::exchange::{Headers, RequestHead};
use mcp_proto::time::Instant;
use serde_json::Value;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

/// The identifier of the server.
pub const SELF: &str = "https://mcp.example/mcp";
/// Its issuer.
pub const ISSUER: &str = "https://as.example";
/// The Unix time of the beginning.
pub const EPOCH: u64 = 1_800_000_000;
/// Maximum number of requests that wait.
pub const MAX_WAITING: usize = 4;

/// The public keys of RFC 9449 section 4.1 and RFC 8037 appendix A.2: members of a JSON Web Key.
pub const P256: &str = r#""kty":"EC","crv":"P-256","x":"l8tFrhx-34tV3hRICRDY9zCkDlpBhF42UQUfWVAWBFs","y":"9VE4jf_Ok_o64zbTTlcuNJajHmt6v9TDVrU0CdvGRDA""#;
/// See [`P256`].
pub const ED25519: &str = r#""kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo""#;
/// The key of RFC 7638 section 3.1.
const RSA: &str = r#""kty":"RSA","e":"AQAB","n":"0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZCiFV4n3oknjhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu6qMQvRL5hajrn1n91CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8awapJzKnqDKgw""#;

/// The names of the keys of the issuer, and what each is for.
pub const KIDS: [(&str, &str); 4] = [("a", "ES256"), ("b", "EdDSA"), ("c", "RSA"), ("d", "EdDSA")];

/// A decision on a request.
pub type Decision = Result<Arc<Access>, AccessDenial>;

/// See the [module](self).
pub struct GuardedResource {
    verifier: Verifier,
    now: Instant,
    /// Fetches and verifications that have no answer yet.
    held: VecDeque<VerifierOutput>,
    /// What the requests without a decision carry to be verified.
    open: BTreeMap<u64, Vec<String>>,
    /// What was verified lately, whether or not its request still waits.
    texts: Vec<String>,
    decided: VecDeque<(u64, Decision)>,
    fetches: usize,
    passes: usize,
    last_id: u64,
}

impl GuardedResource {
    /// A server with this configuration. The URL of the keys is set here.
    pub fn new(mut config: VerifierConfig, resource: Resource) -> Self {
        config.max_waiting = MAX_WAITING;
        for issuer in &mut config.issuers {
            issuer.jwks_uri = Some(format!("{ISSUER}/keys"));
        }
        let epoch = Duration::from_secs(EPOCH);
        Self {
            verifier: Verifier::new(Arc::new(config), Arc::new(resource), epoch, [7; 32], Instant::ZERO),
            now: Instant::ZERO,
            held: VecDeque::new(),
            open: BTreeMap::new(),
            texts: Vec::new(),
            decided: VecDeque::new(),
            fetches: 0,
            passes: 0,
            last_id: 0,
        }
    }

    /// The Unix time in seconds.
    pub fn unix(&self) -> u64 {
        EPOCH + (self.now - Instant::ZERO).as_secs()
    }

    /// Begins a check of a request with these fields, which have these texts to verify.
    pub fn begin(&mut self, (method, target): (&str, &str), headers: Headers, texts: &[&str]) -> u64 {
        self.last_id += 1;
        let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
        self.texts.extend(texts.iter().cloned());
        self.open.insert(self.last_id, texts);
        let head = RequestHead { method: method.to_owned().into(), target: target.into(), headers };
        self.verifier.check(self.now, Check { id: CheckId(self.last_id), head: &head });
        self.settle();
        self.last_id
    }

    /// Withdraws one of the requests that wait. Returns it.
    pub fn withdraw(&mut self, which: usize) -> Option<u64> {
        let id = *self.open.keys().nth(which % self.open.len().max(1))?;
        self.open.remove(&id);
        self.verifier.withdraw(CheckId(id));
        self.settle();
        Some(id)
    }

    /// Answers one of the steps that wait. `fails`: by a failure.
    pub fn answer(&mut self, which: usize, fails: bool) {
        let Some(output) = self.held.remove(which % self.held.len().max(1)) else { return };
        match output {
            VerifierOutput::Fetch(step, request) => {
                assert_eq!(request.url.original, format!("{ISSUER}/keys"));
                let keys = KIDS.map(|(kid, alg)| {
                    let key = match alg {
                        "ES256" => P256,
                        "EdDSA" => ED25519,
                        _ => RSA,
                    };
                    format!(r#"{{{key},"kid":"{kid}"}}"#)
                });
                let body = format!(r#"{{"keys":[{}]}}"#, keys.join(","));
                let response = FetchResponse::new(200, Headers::new(), body, request.url.original.clone());
                let outcome = if fails { Err(FetchError::TooLong) } else { Ok(response.into()) };
                self.verifier.fetched(self.now, step, &outcome);
            }
            VerifierOutput::Verify(step, verification) => {
                self.check_verification(&verification);
                let is_valid = *verification.signature == *b"sig";
                let outcome = if fails { Err(StoreFault("no provider".into())) } else { Ok(is_valid) };
                self.verifier.verified(self.now, step, outcome);
            }
            other => panic!("{other:?} is no step"),
        }
        self.settle();
    }

    /// Lets time pass.
    pub fn pass(&mut self, seconds: u64) {
        self.passes += 1;
        self.now = self.now + Duration::from_secs(seconds);
        while let Some(at) = self.verifier.poll_timeout().filter(|at| *at <= self.now) {
            self.verifier.handle_timeout(at.max(self.now));
        }
    }

    /// Forgets the tokens of a principal.
    pub fn forget(&mut self, principal: &str) {
        self.verifier.forget(&Principal::from(principal));
    }

    /// Returns the next decision.
    pub fn decision(&mut self) -> Option<(u64, Decision)> {
        self.decided.pop_front()
    }

    /// Answers all steps, and checks that each request has its decision.
    ///
    /// # Panics
    /// If not, or if `Debug` shows a token.
    pub fn end(&mut self) {
        let shown = format!("{:?}", self.verifier);
        let long = self.texts.iter().filter(|text| text.len() > 40);
        long.for_each(|text| assert!(!shown.contains(&**text), "`Debug` shows a token"));
        while !self.held.is_empty() {
            self.answer(0, false);
        }
        assert!(self.open.is_empty(), "no decision on {:?}", self.open.keys());
    }

    fn settle(&mut self) {
        while let Some(output) = self.verifier.poll_output() {
            match output {
                VerifierOutput::Decided(CheckId(id), decision) => {
                    assert!(self.open.remove(&id).is_some(), "{id} was decided twice, or after its end");
                    self.decided.push_back((id, decision));
                }
                VerifierOutput::Report(report) => {
                    let shown = format!("{report} {report:?}");
                    assert!(!self.texts.iter().any(|text| text.len() > 40 && shown.contains(&**text)), "{shown}");
                }
                step => {
                    self.fetches += usize::from(matches!(step, VerifierOutput::Fetch(..)));
                    self.held.push_back(step);
                }
            }
        }
        assert!(self.held.len() <= MAX_WAITING + 1 && self.open.len() <= MAX_WAITING, "{} steps", self.held.len());
        assert!(self.fetches <= self.passes + 1, "{} fetches of keys", self.fetches);
    }

    /// Checks that what is verified is in a text, with the algorithm of that text.
    fn check_verification(&self, verification: &Verification) {
        let Verification { alg, key, input, signature } = verification;
        assert!(key.fits(*alg), "{alg:?} does not fit {key:?}");
        let is_of = |text: &String| {
            let Some((signed, after)) = text.trim().rsplit_once('.') else { return false };
            let header = signed.split('.').next().and_then(base64url::decode).and_then(|header| parsed(&header).ok());
            // A second reader may not know all numbers.
            let named = header.is_none_or(|header| header["alg"].as_str().and_then(Alg::parse) == Some(*alg));
            named && signed.as_bytes() == &input[..] && base64url::decode(after).as_deref() == Some(&signature[..])
        };
        assert!(self.texts.iter().any(is_of), "something else is verified: {verification:?}");
    }
}

/// What a second reader says of a text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NotRead {
    /// It is no JSON.
    Wrong,
    /// It may be JSON: the readers differ in which numbers they know.
    Unsure,
}

/// Parses JSON once more. A line end in a text is tolerated, as a space.
pub fn parsed(bytes: &[u8]) -> Result<Value, NotRead> {
    let bytes: Vec<u8> = bytes.iter().map(|byte| if matches!(byte, b'\r' | b'\n') { b' ' } else { *byte }).collect();
    serde_json::from_slice(&bytes).map_err(|why| {
        let why = why.to_string();
        let is_unsure = ["out of range", "recursion"].iter().any(|word| why.contains(word));
        if is_unsure { NotRead::Unsure } else { NotRead::Wrong }
    })
}

/// The parts of a token: header and claims.
///
/// # Errors
/// It is none, or the second reader does not know.
pub fn parts(token: &str) -> Result<(Value, Value, Vec<u8>), NotRead> {
    let parts: Vec<&str> = token.split('.').collect();
    let [header, claims, signature] = *parts else { return Err(NotRead::Wrong) };
    let decoded = |part: &str| base64url::decode(part).ok_or(NotRead::Wrong);
    let (header, claims, signature) = (decoded(header)?, decoded(claims)?, decoded(signature)?);
    // Wrong is what one of them says, whatever the other one may be.
    let both = match (parsed(&header), parsed(&claims)) {
        (Ok(header), Ok(claims)) => (header, claims),
        (Err(NotRead::Wrong), _) | (_, Err(NotRead::Wrong)) => return Err(NotRead::Wrong),
        _ => return Err(NotRead::Unsure),
    };
    if both.0.is_object() && both.1.is_object() { Ok((both.0, both.1, signature)) } else { Err(NotRead::Wrong) }
}

/// Returns whether a type is this one (RFC 7515 section 4.1.9).
pub fn is_type(typ: &str, wanted: &str) -> bool {
    let typ = typ.to_ascii_lowercase();
    typ.strip_prefix("application/").unwrap_or(&typ) == wanted
}
