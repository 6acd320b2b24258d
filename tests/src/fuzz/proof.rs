//! Proofs of possession at a server that accepts bound tokens.

use super::guarded::{ED25519, EPOCH, GuardedResource, ISSUER, NotRead, P256, SELF, is_type, parts};
use super::script::Script;
use crate::base64url;
use mcp_proto::auth::{AccessDenial, Resource, VerifierConfig};
use mcp_proto::exchange::Headers;
use serde_json::Value;
use std::collections::BTreeMap;

/// The thumbprint of the key that the token is bound to.
const JKT: &str = "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I";

/// The position of the token that is not bound.
const UNBOUND: usize = 3;

/// How old a proof may be, in seconds.
const WINDOW: u64 = 300;
/// How long a nonce is valid at most, and a proof with it; at least it is half of that.
const NONCE_TIME: u64 = 240;

/// What a proof has for the latest nonce.
const LATEST: &str = "\"$N\"";

/// The requests.
const METHODS: [&str; 4] = ["POST", "GET", "DELETE", "post"];
const TARGETS: [&str; 6] = ["/mcp", "/mcp?a=b", "/", "/.well-known/x", "/mcp/", "/m%63p"];

/// What a produced proof may have in place of a member. Without a value it lacks the member.
const HEADERS: [(&str, &str); 24] = [
    ("typ", ""),
    ("typ", "\"JWT\""),
    ("typ", "\"DPOP+jwt\""),
    ("typ", "\"application/dpop+jwt\""),
    ("typ", "\"at+jwt\""),
    ("typ", "1"),
    ("alg", ""),
    ("alg", "\"none\""),
    ("alg", "\"HS256\""),
    ("alg", "\"ES384\""),
    ("alg", "\"EdDSA\""),
    ("crit", "[\"x\"]"),
    ("kid", "5"),
    ("jwk", ""),
    ("jwk", "{}"),
    ("jwk", "\"a\""),
    ("jwk", "{\"kty\":\"oct\",\"k\":\"AAAA\"}"),
    ("jwk", "$P"),
    ("jwk", "$X"),
    ("jwk", "$E"),
    ("jwk", "$R"),
    ("jwk", "$Y"),
    ("x", "1e999"),
    ("", "1"),
];
const CLAIMED: [(&str, &str); 37] = [
    ("jti", ""),
    ("jti", "\"\""),
    ("jti", "1"),
    ("jti", "\"j1\""),
    ("jti", "\"j2\""),
    ("jti", "\"\\u006a1\""),
    ("htm", ""),
    ("htm", "\"GET\""),
    ("htm", "\"post\""),
    ("htm", "[\"POST\"]"),
    ("htu", ""),
    ("htu", "\"https://mcp.example/\""),
    ("htu", "\"https://mcp.example/mcp/\""),
    ("htu", "\"https://mcp.example/mcp?a=b#c\""),
    ("htu", "\"HTTPS://MCP.example:443/mcp\""),
    ("htu", "\"https://mcp.example/a/../m%63p\""),
    ("htu", "\"https://mcp.example/MCP\""),
    ("htu", "\"http://mcp.example/mcp\""),
    ("htu", "\"https://u@mcp.example/mcp\""),
    ("htu", "\"https://evil.example/mcp\""),
    ("htu", "\"/mcp\""),
    ("htu", "1"),
    ("iat", ""),
    ("iat", "\"1800000000\""),
    ("iat", "1799999700"),
    ("iat", "1799999701"),
    ("iat", "1800000300"),
    ("iat", "1800000301"),
    ("iat", "1.8e9"),
    ("iat", "1e300"),
    ("ath", ""),
    ("ath", "\"fUHyO2r2Z3DZ53EsNrWBb0xWXoaNy59IiKCAqksmQEo\""),
    ("ath", "null"),
    ("nonce", ""),
    ("nonce", "\"x\""),
    ("nonce", "1"),
    ("exp", "1"),
];

/// The first bytes select settings and what happens. The others are a proof, or choices that
/// produce one for each request.
///
/// Each request is decided once. It is accepted only with one proof that has the key of the token,
/// is for this request and this token, is recent or has a nonce that is, and was not used before,
/// as far as a second reader knows. A proof without deviations is accepted once.
///
/// # Panics
/// If not.
pub fn check(data: &[u8]) {
    let mut script = Script::new(data);
    let (is_raw, settings) = (script.below(3) == 0, script.byte());
    let mut steps = Script::new(script.chunk());
    let raw = if is_raw { Some(String::from_utf8_lossy(script.rest()).into_owned()) } else { None };
    let (nonces, required) = (settings & 1 != 0, settings & 2 != 0);
    let mut config = VerifierConfig::jwt(ISSUER);
    config.nonces = nonces;
    let resource = Resource::new(SELF, [ISSUER]).dpop(required);
    let bound = access_token(&format!(r#"{{"jkt":"{JKT}"}}"#));
    let tokens = [bound.clone(), bound, access_token(r#"{"jkt":"x"}"#), access_token("null")];
    let mut run = Run {
        guarded: GuardedResource::new(config, resource),
        tokens,
        nonces: nonces.then(BTreeMap::new),
        required,
        latest: String::new(),
        begun: BTreeMap::new(),
        used: BTreeMap::new(),
    };
    for number in 0..16 {
        match steps.below(8) {
            0..=2 => {
                let proof = raw.clone().unwrap_or_else(|| run.produced(&mut script, number));
                run.begin(&mut steps, &proof);
            }
            3..=5 => run.guarded.answer(steps.below(8), steps.below(8) == 7),
            6 => run.guarded.pass(*steps.pick(&[1, 30, 119, 241, 301])),
            _ => {
                if let Some(id) = run.guarded.withdraw(steps.below(8)) {
                    run.begun.remove(&id);
                }
            }
        }
        run.judge();
    }
    run.guarded.end();
    run.judge();
    assert!(run.begun.is_empty());
}

/// A request.
struct Request {
    method: &'static str,
    target: &'static str,
    /// Which token it has.
    token: usize,
    /// Whether it has the scheme for bound tokens.
    is_bound: bool,
    /// The proofs.
    proofs: Vec<String>,
    /// When it began.
    began: u64,
    /// Whether it was good then.
    at_begin: Option<bool>,
}

struct Run {
    guarded: GuardedResource,
    tokens: [String; 4],
    /// When each nonce was told, if nonces are demanded.
    nonces: Option<BTreeMap<String, u64>>,
    /// Whether each token has to be bound.
    required: bool,
    latest: String,
    begun: BTreeMap<u64, Request>,
    /// Until when the identifier of a proof is in use.
    used: BTreeMap<String, f64>,
}

impl Run {
    fn begin(&mut self, steps: &mut Script<'_>, proof: &str) {
        let (method, target) = match steps.below(3) {
            0 => (*steps.pick(&METHODS), *steps.pick(&TARGETS)),
            _ => ("POST", "/mcp"),
        };
        let (token, is_bound) = (steps.below(8) & 3, steps.below(16) != 15);
        let proofs = vec![proof.to_owned(); [1, 1, 1, 1, 1, 1, 0, 2][steps.below(8)]];
        let scheme = if is_bound { "DPoP" } else { "Bearer" };
        let headers = Headers::new().with("Authorization", format!("{scheme} {}", self.tokens[token]));
        let headers = proofs.iter().fold(headers, |headers, proof| headers.with("DPoP", proof));
        let began = self.guarded.unix();
        let mut request = Request { method, target, token, is_bound, proofs, began, at_begin: None };
        request.at_begin = self.reading(&request, false);
        let texts = [&*self.tokens[token], proof];
        let id = self.guarded.begin((method, target), headers, &texts);
        self.begun.insert(id, request);
        self.judge();
    }

    /// Compares the decisions with what a second reader says.
    fn judge(&mut self) {
        while let Some((id, decision)) = self.guarded.decision() {
            let request = self.begun.remove(&id).expect("it was begun");
            let at_end = self.reading(&request, true);
            let shown = || format!("{decision:?} on {} {}: {:?}", request.method, request.target, request.proofs);
            match &decision {
                Ok(_) => {
                    assert_ne!(request.at_begin, Some(false), "{}", shown());
                    assert_ne!(at_end, Some(false), "{}", shown());
                    self.note_use(&request);
                }
                Err(AccessDenial::Unavailable { .. }) => {}
                Err(AccessDenial::Nonce(nonce)) => {
                    assert_ne!(request.at_begin, Some(true), "{}", shown());
                    let now = self.guarded.unix();
                    let nonces = self.nonces.as_mut().expect("nonces are demanded");
                    nonces.insert(nonce.clone(), now);
                    self.latest.clone_from(nonce);
                }
                Err(_) => {
                    let is_good = request.at_begin == Some(true) && at_end == Some(true);
                    assert!(!is_good, "{}", shown());
                }
            }
        }
    }

    /// Returns whether a request is to be accepted at its beginning, or at its end. `None`: the
    /// second reader does not know.
    fn reading(&self, request: &Request, at_end: bool) -> Option<bool> {
        if !request.is_bound {
            return Some(request.token == UNBOUND && !self.required);
        }
        let [proof] = &*request.proofs else { return Some(false) };
        let proof = proof.trim();
        let (header, claims, signature) = match parts(proof) {
            Ok(parts) => parts,
            Err(NotRead::Wrong) => return Some(false),
            Err(NotRead::Unsure) => return None,
        };
        let text = |name: &str| claims[name].as_str().unwrap_or_default();
        let Some(is_for_url) = is_for(text("htu"), request.target) else { return Some(false) };
        let now = self.guarded.unix();
        let Some(issued) = claims["iat"].as_f64() else { return Some(false) };
        let is_recent = match &self.nonces {
            Some(_) if at_end => now < request.began + NONCE_TIME,
            // The second reader knows when a nonce was told, not when it began.
            Some(nonces) => match nonces.get(text("nonce")) {
                None => false,
                Some(told) if now < told + NONCE_TIME / 2 => true,
                Some(told) if now >= told + NONCE_TIME => false,
                Some(_) => return None,
            },
            None => issued + WINDOW as f64 > now as f64 && issued <= (now + WINDOW) as f64,
        };
        let hash = base64url::encode(hmac_sha256::Hash::hash(self.tokens[request.token].as_bytes()));
        let jwk = &header["jwk"];
        let holds = proof.len() <= 8192
            && request.token < 2
            && header["typ"].as_str().is_some_and(|typ| is_type(typ, "dpop+jwt"))
            && header["alg"] == "ES256"
            && header.get("crit").is_none()
            && is_own_key(jwk)
            && text("htm") == request.method
            && text("ath") == hash
            && !text("jti").is_empty()
            && is_recent
            && self.used.get(text("jti")).is_none_or(|until| *until <= now as f64)
            && signature == b"sig";
        if holds && !is_for_url { None } else { Some(holds) }
    }

    /// Notes that the identifier of a proof was used.
    fn note_use(&mut self, request: &Request) {
        if !request.is_bound {
            return;
        }
        let Some(Ok((_, claims, _))) = request.proofs.first().map(|proof| parts(proof.trim())) else { return };
        let (Some(id), Some(issued)) = (claims["jti"].as_str(), claims["iat"].as_f64()) else { return };
        let with_nonce = self.nonces.as_ref().map(|_| (request.began + NONCE_TIME) as f64);
        let until = with_nonce.unwrap_or(issued + WINDOW as f64);
        self.used.insert(id.to_owned(), until);
    }

    /// Produces a proof: a good one for a POST, with up to two deviations.
    fn produced(&self, script: &mut Script<'_>, number: usize) -> String {
        let mut header = owned(&[("typ", "\"dpop+jwt\""), ("alg", "\"ES256\""), ("jwk", "$P")]);
        let hash = base64url::encode(hmac_sha256::Hash::hash(self.tokens[0].as_bytes()));
        let issued = (self.guarded.unix() - u64::from(script.byte() & 7)).to_string();
        let mut claims = owned(&[("htm", "\"POST\""), ("htu", "\"https://mcp.example/mcp\""), ("nonce", LATEST)]);
        claims.extend(owned(&[("jti", &format!("\"n{number}\"")), ("iat", &issued), ("ath", &format!("\"{hash}\""))]));
        for _ in 0..script.below(3) {
            match script.below(3) {
                0 => deviate(script, &mut header, &HEADERS),
                _ => deviate(script, &mut claims, &CLAIMED),
            }
        }
        let keys = [
            ("$P", format!("{{{P256}}}")),
            ("$X", format!("{{{P256},\"d\":\"AAAA\"}}")),
            ("$E", format!("{{{ED25519}}}")),
            ("$R", format!("{{{},\"use\":\"sig\",\"kid\":5}}", P256)),
            ("$Y", format!("{{{}}}", P256.replace("\"y\":\"9", "\"y\":\"8"))),
            ("$N", self.latest.clone()),
        ];
        let filled =
            |members: &Members| keys.iter().fold(object(members), |text, (key, value)| text.replace(key, value));
        let signature = if script.below(16) == 0 { "c2lh" } else { "c2ln" };
        format!("{}.{}.{signature}", base64url::encode(filled(&header)), base64url::encode(filled(&claims)))
    }
}

/// Returns whether a URL is certainly that of a request (`true`) or may be (`false`). `None`: it is
/// another one, whatever the spelling.
fn is_for(url: &str, target: &str) -> Option<bool> {
    let path = |text: &str| text.split(['?', '#']).next().unwrap_or_default().to_owned();
    let (url, wanted) = (path(url), format!("https://mcp.example{}", path(target)));
    if url == wanted {
        return Some(true);
    }
    let plain = |text: &str| {
        let text = text.to_ascii_lowercase().replace(":443/", "/").replace("/a/..", "").replace("%63", "c");
        text.trim_end_matches('/').to_owned()
    };
    let is_odd = url.contains('%') || [':', '.'].iter().any(|odd| url.matches(*odd).count() > 1);
    (plain(&url) == plain(&wanted) || is_odd).then_some(false)
}

/// Returns whether a key is the one that the token is bound to, and nothing secret.
fn is_own_key(jwk: &Value) -> bool {
    let own: Value = serde_json::from_str(&format!("{{{P256}}}")).expect("it is JSON");
    let private = ["d", "p", "q", "dp", "dq", "qi", "oth", "k"];
    ["kty", "crv", "x", "y"].iter().all(|name| jwk[name] == own[name])
        && private.iter().all(|name| jwk.get(name).is_none())
}

fn access_token(confirmation: &str) -> String {
    let claims =
        format!(r#"{{"iss":"{ISSUER}","sub":"u1","aud":"{SELF}","exp":{},"cnf":{confirmation}}}"#, EPOCH + 1_000_000);
    let header = r#"{"alg":"ES256","typ":"at+jwt","kid":"a"}"#;
    format!("{}.{}.c2ln", base64url::encode(header), base64url::encode(claims))
}

type Members = Vec<(String, String)>;

fn owned(members: &[(&str, &str)]) -> Members {
    members.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// Replaces, removes, adds or repeats a member.
fn deviate(script: &mut Script<'_>, members: &mut Members, deviations: &[(&str, &str)]) {
    let (name, value) = *script.pick(deviations);
    if script.below(4) != 0 {
        members.retain(|(known, _)| known != name);
    }
    if !value.is_empty() {
        let at = script.below(members.len() + 1);
        members.insert(at, (name.to_owned(), value.to_owned()));
    }
}

fn object(members: &Members) -> String {
    let members: Vec<String> = members.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
    format!("{{{}}}", members.join(","))
}
