//! A verifier with an issuer around it, in virtual time. The signature `c2ln` is valid.

use crate::auth::{
    Access, AccessDenial, Check, CheckId, Resource, StepId, StoreFault, Verification, Verifier, VerifierConfig,
    VerifierOutput, VerifierReport,
};
use crate::exchange::{Headers, RequestHead};
use crate::fetch::{FetchError, FetchRequest, FetchResponse};
use crate::rpc::{Object, RawJson};
use crate::time::Instant;
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use core::time::Duration;

pub(super) const SELF: &str = "https://mcp.example/mcp";
pub(super) const ISSUER: &str = "https://as.example";
/// The Unix time of the origin.
pub(super) const EPOCH: u64 = 1_800_000_000;
pub(super) const HEADER: &str = r#"{"alg":"ES256","typ":"at+jwt","kid":"a"}"#;
const KEY: &str = r#""kty":"EC","crv":"P-256","x":"l8tFrhx-34tV3hRICRDY9zCkDlpBhF42UQUfWVAWBFs","y":"9VE4jf_Ok_o64zbTTlcuNJajHmt6v9TDVrU0CdvGRDA""#;
/// The thumbprint of the key.
pub(super) const JKT: &str = "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I";

pub(super) type Decision = Result<Arc<Access>, AccessDenial>;

/// Returns a token with these claims in place of its own.
pub(super) fn token(header: &str, claims: &[(&str, &str)]) -> String {
    let mut all = Object::new().with("iss", ISSUER).with("sub", "u1").with("client_id", "c1").with("aud", SELF);
    all.set("exp", EPOCH + 3600);
    for (name, value) in claims {
        all.set(name, json(value));
    }
    signed(header, &all)
}

fn json(text: &str) -> RawJson {
    RawJson::parse(text.as_bytes().to_vec()).unwrap()
}

fn signed(header: &str, claims: &Object) -> String {
    format!("{}.{}.c2ln", URL_SAFE_NO_PAD.encode(header), URL_SAFE_NO_PAD.encode(claims.to_json().as_bytes()))
}

/// Returns a proof for a POST with this token.
pub(super) fn proof(token: &str, jti: &str, issued: u64, nonce: Option<&str>) -> String {
    let ath = URL_SAFE_NO_PAD.encode(hmac_sha256::Hash::hash(token.as_bytes()));
    let claims = Object::new().with("jti", jti).with("htm", "POST").with("htu", SELF).with("iat", issued);
    let claims = claims.with("ath", ath).with_opt("nonce", nonce);
    signed(&format!(r#"{{"alg":"ES256","typ":"dpop+jwt","jwk":{{{KEY}}}}}"#), &claims)
}

/// See the [module](self).
pub(super) struct Rig {
    pub(super) verifier: Verifier,
    pub(super) now: Instant,
    /// The names of the keys that the issuer publishes.
    pub(super) kids: Vec<&'static str>,
    /// The responses of the issuer in place of the usual ones.
    pub(super) faults: VecDeque<u16>,
    /// What the issuer knows of tokens that are no JSON Web Tokens.
    pub(super) opaque: BTreeMap<String, String>,
    /// Whether fetches and verifications wait.
    pub(super) is_held: bool,
    pub(super) held: VecDeque<VerifierOutput>,
    pub(super) urls: Vec<String>,
    pub(super) bodies: Vec<String>,
    pub(super) verifications: Vec<Verification>,
    pub(super) decisions: BTreeMap<u64, Decision>,
    pub(super) reports: Vec<VerifierReport>,
    last_id: u64,
}

impl Rig {
    pub(super) fn new(config: VerifierConfig) -> Self {
        Self::with(config, Resource::new(SELF, [ISSUER]))
    }

    pub(super) fn with(config: VerifierConfig, resource: Resource) -> Self {
        let epoch = Duration::from_secs(EPOCH);
        Self {
            verifier: Verifier::new(Arc::new(config), Arc::new(resource), epoch, [7; 32], Instant::ZERO),
            now: Instant::ZERO,
            kids: ["a"].into(),
            faults: VecDeque::new(),
            opaque: BTreeMap::new(),
            is_held: false,
            held: VecDeque::new(),
            urls: Vec::new(),
            bodies: Vec::new(),
            verifications: Vec::new(),
            decisions: BTreeMap::new(),
            reports: Vec::new(),
            last_id: 0,
        }
    }

    /// Begins a check of a POST with these fields. Returns its number.
    pub(super) fn begin(&mut self, fields: &[(&str, &str)]) -> u64 {
        self.last_id += 1;
        let headers = fields.iter().fold(Headers::new(), |headers, (name, value)| headers.with(name, value));
        let head = RequestHead { method: "POST".into(), target: "/mcp".into(), headers };
        self.verifier.check(self.now, Check { id: CheckId(self.last_id), head: &head });
        self.run();
        self.last_id
    }

    /// Checks a bearer token. Returns the decision.
    pub(super) fn check(&mut self, token: &str) -> Decision {
        let id = self.begin(&[("Authorization", &format!("Bearer {token}"))]);
        self.decisions.remove(&id).unwrap_or_else(|| panic!("{id} waits"))
    }

    /// Checks a token with a proof. Returns the decision.
    pub(super) fn check_proof(&mut self, token: &str, proof: &str) -> Decision {
        let id = self.begin(&[("Authorization", &format!("DPoP {token}")), ("DPoP", proof)]);
        self.decisions.remove(&id).unwrap_or_else(|| panic!("{id} waits"))
    }

    pub(super) fn pass(&mut self, time: Duration) {
        self.now = self.now + time;
        while let Some(at) = self.verifier.poll_timeout().filter(|at| *at <= self.now) {
            self.verifier.handle_timeout(at);
        }
    }

    /// Does what the verifier wants, until nothing is left.
    pub(super) fn run(&mut self) {
        while let Some(output) = self.verifier.poll_output() {
            match output {
                VerifierOutput::Decided(CheckId(id), decision) => {
                    assert!(self.decisions.insert(id, decision).is_none(), "{id} was decided twice");
                }
                VerifierOutput::Report(report) => self.reports.push(report),
                other if self.is_held => self.held.push_back(other),
                other => self.answer(other),
            }
        }
    }

    /// Answers what waits.
    pub(super) fn release(&mut self) {
        self.is_held = false;
        while let Some(output) = self.held.pop_front() {
            self.answer(output);
            self.run();
        }
    }

    fn answer(&mut self, output: VerifierOutput) {
        match output {
            VerifierOutput::Fetch(step, request) => {
                let outcome = self.respond(&request);
                self.verifier.fetched(self.now, step, &outcome);
            }
            VerifierOutput::Verify(step, verification) => {
                let is_valid = *verification.signature == *b"sig";
                self.verifications.push(*verification);
                self.verifier.verified(self.now, step, Ok(is_valid));
            }
            other => panic!("{other:?}"),
        }
    }

    /// Ends all verifications that wait: there is no cryptography.
    pub(super) fn fail_verifications(&mut self) {
        for output in core::mem::take(&mut self.held) {
            let VerifierOutput::Verify(step, _) = output else { panic!("{output:?}") };
            self.verifier.verified(self.now, step, Err(StoreFault("no provider".into())));
        }
        self.run();
    }

    /// Answers one of the steps that wait: as usual, or with one of several faults.
    pub(super) fn answer_one(&mut self, which: usize, fault: u8) {
        let Some(output) = self.held.remove(which % self.held.len().max(1)) else { return };
        match (output, fault) {
            (output, 0) => self.answer(output),
            (VerifierOutput::Fetch(step, _), 1) => self.verifier.fetched(self.now, step, &Err(FetchError::TooLong)),
            (VerifierOutput::Fetch(step, request), _) => {
                let (status, body) = if fault == 2 { (503, "") } else { (200, r#"{"active":1,"keys":[{}]}"#) };
                let response = FetchResponse::new(status, Headers::new(), body, request.url.original.clone());
                self.verifier.fetched(self.now, step, &Ok(response.into()));
            }
            (VerifierOutput::Verify(step, _), 1) => self.verifier.verified(self.now, step, Ok(false)),
            (VerifierOutput::Verify(step, _), _) => {
                self.verifier.verified(self.now, step, Err(StoreFault("no provider".into())));
            }
            (other, _) => panic!("{other:?}"),
        }
        self.run();
    }

    fn respond(&mut self, request: &FetchRequest) -> Result<Box<FetchResponse>, FetchError> {
        let url = request.url.original.clone();
        self.urls.push(url.clone());
        let ok = |body: String| Ok(FetchResponse::new(200, Headers::new(), body, url.clone()).into());
        if let Some(status) = self.faults.pop_front() {
            return Ok(FetchResponse::new(status, Headers::new(), "", url.clone()).into());
        }
        if url.contains("/.well-known/") {
            let origin = url.split("/.well-known").next().unwrap_or_default();
            let members = Object::new().with("issuer", origin).with("jwks_uri", format!("{origin}/jwks"));
            return ok(members.with("introspection_endpoint", format!("{origin}/introspect")).to_json().to_string());
        }
        if url.ends_with("/jwks") {
            let keys: Vec<_> = self.kids.iter().map(|kid| format!(r#"{{{KEY},"kid":"{kid}"}}"#)).collect();
            return ok(format!(r#"{{"keys":[{}]}}"#, keys.join(",")));
        }
        let body = core::str::from_utf8(&request.body).unwrap().to_string();
        let token = body.split('&').find_map(|field| field.strip_prefix("token=")).unwrap();
        let answer = self.opaque.get(token).cloned().unwrap_or_else(|| r#"{"active":false}"#.into());
        self.bodies.push(body);
        ok(answer)
    }

    /// Answers a step that nothing waits for.
    pub(super) fn answer_stale(&mut self, step: u64) {
        let response = FetchResponse::new(200, Headers::new(), "{}", "https://as.example/");
        self.verifier.fetched(self.now, StepId(step), &Ok(response.into()));
        self.verifier.verified(self.now, StepId(step), Ok(true));
        self.run();
    }
}

pub(super) fn invalid(why: &'static str) -> Decision {
    Err(AccessDenial::Invalid(why))
}

pub(super) fn is_unavailable(decision: &Decision) -> bool {
    matches!(decision, Err(AccessDenial::Unavailable { .. }))
}
