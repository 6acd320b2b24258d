//! Bearer tokens at a server that verifies JSON Web Tokens.

use super::guarded::{Decision, EPOCH, GuardedResource, ISSUER, KIDS, NotRead, SELF, is_type, parts};
use super::script::Script;
use crate::base64url;
use mcp_proto::auth::{AccessDenial, Alg, IssuerConfig, Resource, VerifierConfig};
use mcp_proto::exchange::Headers;
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;

/// The principal of a token without deviations.
const PRINCIPAL: &str = r#"["https://as.example","u1","c1"]"#;

/// How long a refusal is remembered, in seconds.
const REFUSED: u64 = 5;

/// Members of the header, and claims, of a good token.
const HEADER: [(&str, &str); 3] = [("alg", "\"ES256\""), ("typ", "\"at+jwt\""), ("kid", "\"a\"")];
const CLAIMS: [(&str, &str); 6] = [
    ("iss", "\"https://as.example\""),
    ("sub", "\"u1\""),
    ("client_id", "\"c1\""),
    ("aud", "\"https://mcp.example/mcp\""),
    ("exp", "1800003600"),
    ("scope", "\"read write\""),
];

/// What a produced token may have in place of a member of its header. Without a value it lacks the
/// member.
const HEADERS: [(&str, &str); 36] = [
    ("alg", ""),
    ("alg", "\"none\""),
    ("alg", "\"HS256\""),
    ("alg", "\"RS256\""),
    ("alg", "\"PS512\""),
    ("alg", "\"EdDSA\""),
    ("alg", "\"Ed25519\""),
    ("alg", "\"es256\""),
    ("alg", "[\"ES256\"]"),
    ("alg", "null"),
    ("kid", ""),
    ("kid", "\"b\""),
    ("kid", "\"c\""),
    ("kid", "\"x\""),
    ("kid", "1"),
    ("kid", "null"),
    ("typ", ""),
    ("typ", "null"),
    ("typ", "\"JWT\""),
    ("typ", "\"AT+JWT\""),
    ("typ", "\"application/at+jwt\""),
    ("typ", "\"Application/At+Jwt\""),
    ("typ", "\"logout+jwt\""),
    ("typ", "\"application/dpop+jwt\""),
    ("typ", "1"),
    ("crit", "[\"b64\"]"),
    ("crit", "[]"),
    ("crit", "null"),
    ("jku", "\"https://evil.example/\""),
    ("jwk", "{}"),
    ("x5c", "[1]"),
    ("x", "1e999"),
    ("x", "\"\\ud800\""),
    ("x", "nul"),
    ("\\u0061lg", "\"HS256\""),
    ("", "{}"),
];

/// The same of its claims.
const CLAIMED: [(&str, &str); 60] = [
    ("iss", ""),
    ("iss", "null"),
    ("iss", "\"https://as.example/\""),
    ("iss", "\"https:\\/\\/as.example\""),
    ("iss", "\"HTTPS://AS.EXAMPLE\""),
    ("iss", "\"https://evil.example\""),
    ("iss", "[\"https://as.example\"]"),
    ("aud", ""),
    ("aud", "null"),
    ("aud", "[]"),
    ("aud", "[\"x\",\"https://mcp.example/mcp\"]"),
    ("aud", "[5,\"https://mcp.example/mcp\"]"),
    ("aud", "\"https://mcp.example/mcp/\""),
    ("aud", "\"https://mcp.example/m\\u0063p\""),
    ("aud", "\"https://mcp.example/mcp\n\""),
    ("aud", "{}"),
    ("exp", ""),
    ("exp", "null"),
    ("exp", "0"),
    ("exp", "-1"),
    ("exp", "1799999939"),
    ("exp", "1799999940"),
    ("exp", "1799999941"),
    ("exp", "1799999999"),
    ("exp", "1800000000.5"),
    ("exp", "1.8000001e9"),
    ("exp", "1e300"),
    ("exp", "1e999"),
    ("exp", "18000036000000000000000000000"),
    ("exp", "\"1800003600\""),
    ("exp", "true"),
    ("exp", "[1800003600]"),
    ("nbf", "null"),
    ("nbf", "1800000060"),
    ("nbf", "1800000061"),
    ("nbf", "1800000100"),
    ("nbf", "-5e9"),
    ("nbf", "\"0\""),
    ("sub", ""),
    ("sub", "null"),
    ("sub", "7"),
    ("sub", "\"\""),
    ("sub", "\"u\\\",1\""),
    ("sub", "\"\\udc00\""),
    ("client_id", ""),
    ("client_id", "7"),
    ("azp", "\"c2\""),
    ("appid", "\"c3\""),
    ("scope", ""),
    ("scope", "\"\""),
    ("scope", "[\"a\",\"b\"]"),
    ("scope", "3"),
    ("scp", "\"admin\""),
    ("nonce", "\"n\""),
    ("at_hash", "null"),
    ("c_hash", "1"),
    ("cnf", "null"),
    ("cnf", "{\"jkt\":\"0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I\"}"),
    ("cnf", "{\"x5t#S256\":\"a\"}"),
    ("", "{}"),
];

/// The first bytes select settings and what happens. The others are a token, or choices that
/// produce one.
///
/// Each request is decided once. A token is accepted if and only if its algorithm, type, issuer,
/// audience, times and key hold when it is decided on, as far as a second reader knows.
///
/// # Panics
/// If not.
pub fn check(data: &[u8]) {
    let mut script = Script::new(data);
    let is_raw = script.below(3) == 0;
    let settings = Settings::read(&mut script);
    let mut steps = Script::new(script.chunk());
    let token = if is_raw { String::from_utf8_lossy(script.rest()).into_owned() } else { produced(&mut script) };
    let mut issuer = IssuerConfig::jwt(ISSUER).leeway(Duration::from_secs(settings.leeway));
    issuer.any_typ = settings.any_typ;
    issuer.algs = if settings.one_alg { [Alg::Es256].into() } else { Alg::ALL.into() };
    let guarded = GuardedResource::new(VerifierConfig::new(issuer), Resource::new(SELF, [ISSUER]));
    let mut run = Run { guarded, settings, begun: BTreeMap::new(), refused: BTreeMap::new() };
    let good = signed(&object(&HEADER), &object(&CLAIMS));
    run.begin(&token);
    for _ in 0..24 {
        match steps.below(10) {
            0 | 1 => run.begin(&token),
            2 => run.begin(&good),
            3..=6 => run.guarded.answer(steps.below(8), steps.below(8) == 7),
            7 => run.guarded.pass(*steps.pick(&[1, 4, 30, 301, 3600])),
            8 => {
                if let Some(id) = run.guarded.withdraw(steps.below(8)) {
                    run.begun.remove(&id);
                }
            }
            _ => run.guarded.forget(PRINCIPAL),
        }
        run.judge();
    }
    run.guarded.end();
    run.judge();
    assert!(run.begun.is_empty());
}

#[derive(Clone, Copy, Debug)]
struct Settings {
    any_typ: bool,
    one_alg: bool,
    leeway: u64,
}

impl Settings {
    fn read(script: &mut Script<'_>) -> Self {
        let byte = script.byte();
        Self { any_typ: byte & 1 != 0, one_alg: byte & 2 != 0, leeway: if byte & 4 != 0 { 0 } else { 60 } }
    }
}

struct Run {
    guarded: GuardedResource,
    settings: Settings,
    /// The token of each request, and what a second reader said of it at its beginning.
    begun: BTreeMap<u64, (String, Option<bool>)>,
    /// When a token was refused.
    refused: BTreeMap<String, u64>,
}

impl Run {
    fn begin(&mut self, token: &str) {
        let reading = self.reading(token);
        let field = format!("Bearer {token}");
        let id = self.guarded.begin(("POST", "/mcp"), Headers::new().with("Authorization", field), &[token]);
        self.begun.insert(id, (token.to_owned(), reading));
        self.judge();
    }

    /// Compares the decisions with what a second reader says.
    fn judge(&mut self) {
        while let Some((id, decision)) = self.guarded.decision() {
            let (token, at_begin) = self.begun.remove(&id).expect("it was begun");
            let (now, at_end) = (self.guarded.unix(), self.reading(&token));
            match &decision {
                Ok(access) => {
                    assert_ne!(at_end, Some(false), "accepted: {token}");
                    if let Ok((_, claims, _)) = parts(token.trim()) {
                        assert_eq!(access.issuer, ISSUER);
                        assert_eq!(access.subject.as_deref(), claims["sub"].as_str(), "{token}");
                    }
                }
                // It was not looked at.
                Err(AccessDenial::Unavailable { .. }) => {}
                Err(AccessDenial::Invalid(_) | AccessDenial::Malformed(_)) => {
                    let before = self.refused.get(&token);
                    let is_remembered = before.is_some_and(|at| now < at + REFUSED);
                    let is_good = at_begin == Some(true) && at_end == Some(true);
                    assert!(is_remembered || !is_good, "{decision:?}: {token}");
                    if !is_remembered {
                        self.refused.insert(token, now);
                    }
                }
                Err(_) => assert!(token.trim().is_empty(), "{decision:?}: {token}"),
            }
            check_bounds(&decision);
        }
    }

    /// Returns whether a token is to be accepted now. `None`: the second reader does not know.
    fn reading(&self, token: &str) -> Option<bool> {
        let token = token.trim();
        let (header, claims, signature) = match parts(token) {
            Ok(parts) => parts,
            Err(NotRead::Wrong) => return Some(false),
            Err(NotRead::Unsure) => return None,
        };
        let (unix, leeway) = (self.guarded.unix() as f64, self.settings.leeway as f64);
        let time = |name: &str| match &claims[name] {
            Value::Null => Ok(None),
            value => value.as_f64().map(Some).ok_or(()),
        };
        let (Ok(expires), Ok(begin)) = (time("exp"), time("nbf")) else { return Some(false) };
        let Some(expires) = expires else { return Some(false) };
        if (expires + leeway - unix).abs() < 0.001 && expires.fract() != 0.0 {
            return None;
        }
        let scopes = if claims.get("scope").is_some() { &claims["scope"] } else { &claims["scp"] };
        let words: Vec<&str> = texts(scopes).iter().flat_map(|text| text.split(' ')).collect();
        let is_plain = |word: &&str| word.bytes().all(|byte| byte.is_ascii_alphanumeric()) && word.len() < 100;
        if words.len() > 20 || !words.iter().all(is_plain) {
            return None;
        }
        let has_scope = words.iter().any(|word| !word.is_empty());
        let is_text = |name: &str| claims[name].is_string();
        let client = ["client_id", "azp", "cid", "appid"].iter().any(|name| is_text(name));
        let holds = token.len() <= 8192
            && self.has_key(&header)
            && header.get("crit").is_none()
            && self.is_typed(&header["typ"], header.get("typ").is_some(), has_scope)
            && claims["iss"] == ISSUER
            && texts(&claims["aud"]).contains(&SELF)
            && expires + leeway > unix
            && begin.is_none_or(|begin| begin <= unix + leeway)
            && ["nonce", "at_hash", "c_hash"].iter().all(|name| claims.get(name).is_none())
            && claims["cnf"].is_null()
            && (is_text("sub") || claims["sub"].is_null() && client)
            && is_well_formed(scopes)
            && is_well_formed(&claims["aud"])
            && signature == b"sig";
        Some(holds)
    }

    /// Returns whether the issuer has the key for a header.
    fn has_key(&self, header: &Value) -> bool {
        let Some(alg) = header["alg"].as_str() else { return false };
        let kind = match alg {
            "ES256" => "ES256",
            "EdDSA" | "Ed25519" => "EdDSA",
            "RS256" | "RS384" | "RS512" | "PS256" | "PS384" | "PS512" => "RSA",
            _ => return false,
        };
        if self.settings.one_alg && alg != "ES256" {
            return false;
        }
        let fitting = KIDS.iter().filter(|(_, of)| *of == kind);
        match header.get("kid") {
            None => fitting.count() == 1,
            Some(kid) => fitting.into_iter().any(|(known, _)| kid == *known),
        }
    }

    fn is_typed(&self, typ: &Value, is_there: bool, has_scope: bool) -> bool {
        match typ.as_str() {
            Some(typ) if is_type(typ, "at+jwt") => true,
            Some(typ) => self.settings.any_typ && has_scope && !typ.to_ascii_lowercase().ends_with("+jwt"),
            None => self.settings.any_typ && has_scope && !is_there,
        }
    }
}

/// The texts of a claim: a text, or an array. Of another value there are none.
fn texts(value: &Value) -> Vec<&str> {
    match value {
        Value::Array(values) => values.iter().filter_map(Value::as_str).collect(),
        value => value.as_str().into_iter().collect(),
    }
}

/// Returns whether a claim is absent, a text, or an array of texts.
fn is_well_formed(value: &Value) -> bool {
    match value {
        Value::Array(values) => values.iter().all(Value::is_string),
        value => value.is_null() || value.is_string(),
    }
}

fn check_bounds(decision: &Decision) {
    if let Ok(access) = decision {
        assert!(access.scopes.iter().count() <= 64 && access.expires.is_some(), "{access:?}");
        assert!(access.expires.is_some_and(|expires| expires.as_secs() >= EPOCH));
    }
}

/// Produces a token: a good one, with up to three deviations.
fn produced(script: &mut Script<'_>) -> String {
    let (mut header, mut claims) = (owned(&HEADER), owned(&CLAIMS));
    for _ in 0..script.below(4) {
        match script.below(3) {
            0 => deviate(script, &mut header, &HEADERS),
            _ => deviate(script, &mut claims, &CLAIMED),
        }
    }
    let token = signed(&joined(script, &header), &joined(script, &claims));
    match script.below(16) {
        0 => format!("{token}="),
        1 => format!("{}.{}", token.rsplit_once('.').map_or("", |(signed, _)| signed), "c2lh"),
        2 => format!("{token}."),
        3 => token.replacen('.', "..", 1),
        4 => token.chars().skip(script.below(9)).collect(),
        5 => token.chars().take(token.len() - script.below(9)).collect(),
        6 => token.replacen('.', "=.", 1),
        7 => {
            let at = usize::from(script.byte()) * 3 % token.len();
            let other = char::from(*script.pick(b"ABab01-_+/= ,."));
            token.char_indices().map(|(index, c)| if index == at { other } else { c }).collect()
        }
        _ => token,
    }
}

type Members = Vec<(String, String)>;

fn owned(members: &[(&str, &str)]) -> Members {
    members.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// Replaces, removes, adds or repeats a member.
fn deviate(script: &mut Script<'_>, members: &mut Members, deviations: &[(&str, &str)]) {
    let (name, value) = *script.pick(deviations);
    let repeats = script.below(4) == 0;
    if !repeats {
        members.retain(|(known, _)| known != name);
    }
    if !value.is_empty() {
        let at = script.below(members.len() + 1);
        members.insert(at, (name.to_owned(), value.to_owned()));
    }
}

/// Writes an object, with one of several spaces between its tokens.
fn joined(script: &mut Script<'_>, members: &Members) -> String {
    let space = *script.pick(&["", "", "", " ", "\n", "\r\n\t"]);
    let members: Vec<String> = members.iter().map(|(name, value)| format!("\"{name}\"{space}:{value}")).collect();
    format!("{space}{{{space}{}}}{space}", members.join(&format!("{space},{space}")))
}

fn object(members: &[(&str, &str)]) -> String {
    let members: Vec<String> = members.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
    format!("{{{}}}", members.join(","))
}

fn signed(header: &str, claims: &str) -> String {
    format!("{}.{}.c2ln", base64url::encode(header), base64url::encode(claims))
}
