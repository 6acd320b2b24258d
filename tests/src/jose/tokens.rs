//! Tokens: good ones, and ones that deviate in what is signed or after that.

use super::keys::{Key, Keys};
use super::{ISSUER, NOW, RESOURCE, Rng};
use crate::base64url;
use mcp_proto::auth::Alg;
use serde_json::Value;

/// The members of an object, with their values as JSON text.
pub(super) type Members = Vec<(String, String)>;

/// What is to be signed, and by which key.
#[derive(Clone, Debug)]
pub(super) struct Draft {
    pub(super) key: Key,
    pub(super) alg: Alg,
    pub(super) header: String,
    pub(super) claims: String,
    /// Whether nothing deviates.
    pub(super) is_good: bool,
}

/// What a token may have in place of a member of its header. Without a value it lacks the member.
const HEADERS: &[(&str, &str)] = &[
    ("alg", ""),
    ("alg", "\"none\""),
    ("alg", "\"HS256\""),
    ("alg", "\"RS256\""),
    ("alg", "\"PS256\""),
    ("alg", "\"ES256\""),
    ("alg", "\"ES512\""),
    ("alg", "\"EdDSA\""),
    ("alg", "\"es256\""),
    ("alg", "[\"ES256\"]"),
    ("alg", "null"),
    ("kid", ""),
    ("kid", "\"p256\""),
    ("kid", "\"p\\u003256\""),
    ("kid", "\"rsa\""),
    ("kid", "\"unknown\""),
    ("kid", "\"\""),
    ("kid", "1"),
    ("kid", "null"),
    ("typ", ""),
    ("typ", "null"),
    ("typ", "\"JWT\""),
    ("typ", "\"AT+JWT\""),
    ("typ", "\"at+jwt \""),
    ("typ", "\"application/at+jwt\""),
    ("typ", "\"APPLICATION/at+jwt\""),
    ("typ", "\"application/application/at+jwt\""),
    ("typ", "\"text/at+jwt\""),
    ("typ", "\"dpop+jwt\""),
    ("typ", "[\"at+jwt\"]"),
    ("crit", "[]"),
    ("crit", "null"),
    ("crit", "[\"b64\"]"),
    ("crit", "[\"kid\"]"),
    ("crit", "[\"exp\"]"),
    ("crit", "[\"b64\",\"b64\"]"),
    ("crit", "\"b64\""),
    ("b64", "true"),
    ("b64", "false"),
    ("b64", "\"true\""),
    ("jku", "\"https://evil.example/keys\""),
    ("jku", "\"evil\""),
    ("jwk", "{\"kty\":\"oct\",\"k\":\"AAAA\"}"),
    ("jwk", "1"),
    ("x5u", "7"),
    ("x5c", "[\"AAAA\"]"),
    ("x5c", "\"AAAA\""),
    ("x5t", "\"AAAA\""),
    ("x5t#S256", "7"),
    ("cty", "\"JWT\""),
    ("cty", "7"),
    ("other", "{\"a\":[1,2,{}]}"),
    ("other", "1e999"),
    ("other", "\"\\ud800\""),
    ("other", "\"\\ud83d\\udd11\""),
    ("\\u0061lg", "\"ES256\""),
    ("__proto__", "{\"alg\":\"none\"}"),
    ("constructor", "1"),
];

/// The same of its claims. `$A` is the issuer, `$R` the server, `$T` followed by a number a time
/// that is this number of seconds from now.
const CLAIMS: &[(&str, &str)] = &[
    ("iss", ""),
    ("iss", "null"),
    ("iss", "\"$A/\""),
    ("iss", "\"https:\\/\\/as.example\""),
    ("iss", "\"HTTPS://as.example\""),
    ("iss", "\"https://evil.example\""),
    ("iss", "\"$A\\u0000\""),
    ("iss", "[\"$A\"]"),
    ("iss", "\"\""),
    ("aud", ""),
    ("aud", "null"),
    ("aud", "\"\""),
    ("aud", "[]"),
    ("aud", "[\"x\",\"$R\"]"),
    ("aud", "[\"x\",\"y\"]"),
    ("aud", "[5,\"$R\"]"),
    ("aud", "[[\"$R\"]]"),
    ("aud", "\"$R/\""),
    ("aud", "\"https://mcp.example/m\\u0063p\""),
    ("aud", "{\"$R\":1}"),
    ("exp", ""),
    ("exp", "null"),
    ("exp", "0"),
    ("exp", "-1"),
    ("exp", "$T-61"),
    ("exp", "$T-60"),
    ("exp", "$T-59"),
    ("exp", "$T-59.5"),
    ("exp", "$T-60.25"),
    ("exp", "$T0"),
    ("exp", "$T1"),
    ("exp", "1.9e9"),
    ("exp", "19E8"),
    ("exp", "1e300"),
    ("exp", "1e999"),
    ("exp", "-1e999"),
    ("exp", "99999999999999999999999999"),
    ("exp", "\"1900000000\""),
    ("exp", "true"),
    ("exp", "[1900000000]"),
    ("exp", "{}"),
    ("nbf", "null"),
    ("nbf", "$T0"),
    ("nbf", "$T59.75"),
    ("nbf", "$T60"),
    ("nbf", "$T60.5"),
    ("nbf", "$T61"),
    ("nbf", "-1"),
    ("nbf", "-1e999"),
    ("nbf", "1e999"),
    ("nbf", "\"0\""),
    ("nbf", "false"),
    ("iat", "$T0"),
    ("iat", "$T-90000"),
    ("iat", "$T60"),
    ("iat", "$T61"),
    ("iat", "null"),
    ("iat", "\"0\""),
    ("sub", ""),
    ("sub", "null"),
    ("sub", "7"),
    ("sub", "\"\""),
    ("sub", "{\"a\":1}"),
    ("sub", "\"\u{e9}\u{1f511}\\n\""),
    ("sub", "\"\\ud83d\\udd11\""),
    ("client_id", ""),
    ("client_id", "7"),
    ("client_id", "\"c2\""),
    ("azp", "\"c3\""),
    ("jti", "\"j\""),
    ("jti", "7"),
    ("jti", "null"),
    ("scope", ""),
    ("scope", "\"a b\""),
    ("scope", "[\"a\",\"b\"]"),
    ("scope", "[\"a\",1]"),
    ("scope", "7"),
    ("scp", "7"),
    ("nonce", "\"n\""),
    ("at_hash", "\"h\""),
    ("c_hash", "null"),
    ("cnf", "null"),
    ("cnf", "{\"jkt\":\"0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I\"}"),
    ("cnf", "{\"x5t#S256\":\"a\"}"),
    ("other", "1e999"),
    ("other", "NaN"),
    ("other", "-Infinity"),
    ("exp", "Infinity"),
    ("exp", "NaN"),
    ("other", "01"),
    ("other", ".5"),
    ("other", "+1"),
    ("other", "'a'"),
    ("other", "nul"),
    ("other", "\"\\x41\""),
    ("other", "\"\\ud800\""),
    ("other", "\"a\nb\""),
    ("other", "\"a\tb\""),
    ("\\u0065xp", "1"),
    ("__proto__", "{\"iss\":\"x\"}"),
    ("other", "$D120"),
    ("other", "$D140"),
    ("other", "$L"),
];

/// Drafts a token.
pub(super) fn draft(keys: &Keys, rng: &mut Rng) -> Draft {
    let at = [0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 3][rng.below(11) as usize];
    let key = keys.own[at].clone();
    let alg = rng.of(key.algs);
    let typ = rng.of(&["\"at+jwt\"", "\"at+jwt\"", "\"application/at+jwt\""]);
    let name = if alg == Alg::EdDsa && rng.below(2) == 0 { "Ed25519" } else { alg.as_str() };
    let mut header = members(&[("alg", &format!("\"{name}\"")), ("typ", typ), ("kid", &format!("\"{}\"", key.kid))]);
    let mut claims = members(&[
        ("iss", "\"$A\""),
        ("aud", rng.of(&["\"$R\"", "[\"$R\"]"])),
        ("sub", &format!("\"u{}\"", rng.below(1000))),
        ("client_id", "\"c1\""),
        ("exp", &format!("$T{}", 1 + rng.below(100_000))),
        ("iat", &format!("$T-{}", rng.below(1000))),
        ("jti", &format!("\"{:x}\"", rng.draw())),
    ]);
    let deviations = rng.of(&[0, 0, 1, 1, 1, 2, 3]);
    for _ in 0..deviations {
        match rng.below(5) {
            0 | 1 => deviate(rng, &mut header, HEADERS),
            _ => deviate(rng, &mut claims, CLAIMS),
        }
    }
    let is_odd = deviations > 0 && rng.below(8) == 0;
    let (header, claims) = (object(rng, &header, is_odd), object(rng, &claims, is_odd));
    // A stranger has the same kind of key.
    let is_strange = rng.below(30) == 0;
    let key = if is_strange { keys.strangers[at].clone() } else { key };
    Draft { key, alg, header, claims, is_good: deviations == 0 && !is_strange }
}

/// Changes a token that is signed. Returns whether it changed.
pub(super) fn mutate(token: &mut String, other: &str, rng: &mut Rng) -> bool {
    let before = token.clone();
    let parts: Vec<String> = token.split('.').map(str::to_owned).collect();
    let others: Vec<&str> = other.split('.').collect();
    if let ([header, claims, signature], [their_header, their_claims, their_signature]) = (&*parts, &*others) {
        *token = match rng.below(20) {
            0 => format!("{header}.{claims}.{their_signature}"),
            1 => format!("{header}.{their_claims}.{signature}"),
            2 => format!("{their_header}.{claims}.{signature}"),
            3 => format!("{header}.{claims}.{signature}{}", rng.of(&["=", "==", "A", "AA", ".", "~", "\u{e9}"])),
            4 => format!("{header}{}.{claims}.{signature}", rng.of(&["=", "==", "A", " ", "."])),
            5 => format!("{header}.{claims}{}.{signature}", rng.of(&["=", "==", "A", "\t", "+"])),
            6 => format!("{header}.{claims}."),
            7 => format!("{header}.{claims}"),
            8 => format!("{header}..{signature}"),
            9 => before.chars().take(before.len().saturating_sub(1 + rng.below(9) as usize)).collect(),
            10 => before.chars().skip(1 + rng.below(9) as usize).collect(),
            11 => format!("{header}.{claims}.{}", changed_signature(signature, rng)),
            12 => format!("{header}.{claims}.{}", last_bits(signature)),
            13 => signature_in_der(header, claims, signature),
            14 => before.replace('-', "+").replace('_', "/"),
            15 => format!(
                "{header}.{claims}.{} {}",
                &signature[..20.min(signature.len())],
                &signature[20.min(signature.len())..]
            ),
            _ => {
                let at = rng.below(before.len() as u64) as usize;
                let to = rng.of(&['A', 'b', '0', '-', '_', '.', '=', '+', ',']);
                before.chars().enumerate().map(|(index, c)| if index == at { to } else { c }).collect()
            }
        };
    }
    *token = token.trim().to_owned();
    *token != before
}

/// Changes a signature of two numbers, or of a point and a number.
fn changed_signature(signature: &str, rng: &mut Rng) -> String {
    /// The order of the group of Ed25519, the lowest byte first (RFC 8032 section 5.1).
    const ORDER: [u8; 32] = [
        0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7, 0xa2, 0xde, 0xf9, 0xde, 0x14, 0, 0, 0, 0, 0,
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10,
    ];

    let mut bytes = base64url::decode(signature).unwrap_or_default();
    let half = bytes.len() / 2;
    match rng.below(7) {
        0 => bytes.rotate_left(half),
        1 => bytes[..half].fill(0),
        2 => bytes[half..].fill(0),
        3 => bytes.fill(0xff),
        4 => bytes.insert(0, 0),
        5 => bytes.truncate(bytes.len().saturating_sub(1)),
        // The same signature with a number that is too large by the order.
        _ => {
            let mut carry = 0;
            for (byte, add) in bytes.iter_mut().skip(32).zip(ORDER) {
                let sum = u16::from(*byte) + u16::from(add) + carry;
                (*byte, carry) = (sum as u8, sum >> 8);
            }
        }
    }
    base64url::encode(bytes)
}

/// Sets the bits of the last character that belong to no byte.
fn last_bits(part: &str) -> String {
    let Some((before, last)) = part.split_at_checked(part.len().saturating_sub(1)) else { return part.to_owned() };
    let next = match last {
        "A" => "B",
        "Q" => "R",
        "g" => "h",
        "w" => "x",
        other => other,
    };
    format!("{before}{next}")
}

fn signature_in_der(header: &str, claims: &str, signature: &str) -> String {
    let bytes = base64url::decode(signature).unwrap_or_default();
    let integer = |number: &[u8]| {
        let sign: &[u8] = if number.first().is_some_and(|first| *first >= 0x80) { &[0] } else { &[] };
        [&[2, (number.len() + sign.len()) as u8], sign, number].concat()
    };
    let (r, s) = bytes.split_at(bytes.len() / 2);
    let content = [integer(r), integer(s)].concat();
    format!("{header}.{claims}.{}", base64url::encode([&[0x30, content.len() as u8], &content[..]].concat()))
}

pub(super) fn members(members: &[(&str, &str)]) -> Members {
    members.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// Replaces, removes, adds or repeats a member.
pub(super) fn deviate(rng: &mut Rng, members: &mut Members, deviations: &[(&str, &str)]) {
    let (name, value) = rng.of(deviations);
    if rng.below(4) != 0 {
        members.retain(|(known, _)| known != name);
    }
    if !value.is_empty() {
        let at = rng.below(members.len() as u64 + 1) as usize;
        members.insert(at, (name.to_owned(), value.to_owned()));
    }
}

/// Writes an object, with spaces and line ends between its tokens, and with more around it if it is
/// to be odd.
pub(super) fn object(rng: &mut Rng, members: &Members, is_odd: bool) -> String {
    let space = rng.of(&["", "", "", " ", "\n", "\r\n\t"]);
    let members: Vec<String> =
        members.iter().map(|(name, value)| format!("\"{name}\"{space}:{}", filled(value))).collect();
    let text = format!("{space}{{{}}}{space}", members.join(&format!("{space},{space}")));
    match if is_odd { rng.below(8) } else { 8 } {
        0 => format!("\u{feff}{text}"),
        1 => format!("{text}{text}"),
        2 => format!("[{text}]"),
        3 => text.replace('}', ",}"),
        4 => format!("{text}\0"),
        5 => text.replace(':', ": \u{a0}"),
        6 => text.chars().take(text.len() / 2).collect(),
        7 => text.replace("\"c1\"", "\"\u{7f}\u{2028}\\u2028\""),
        _ => text,
    }
}

fn filled(value: &str) -> String {
    if let Some(seconds) = value.strip_prefix("$T").and_then(|offset| offset.parse::<f64>().ok()) {
        return (NOW as f64 + seconds).to_string();
    }
    if let Some(depth) = value.strip_prefix("$D").and_then(|depth| depth.parse().ok()) {
        return format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    }
    if value == "$L" {
        return format!("\"{}\"", "x".repeat(7000));
    }
    value.replace("$A", ISSUER).replace("$R", RESOURCE)
}

/// Returns what a library that writes JSON by itself can sign.
pub(super) fn signable(draft: &Draft) -> Option<(Value, Value)> {
    let read = |text: &str| serde_json::from_str(text).ok().filter(Value::is_object);
    let is_plain = !draft.header.contains("__proto__") && !draft.claims.contains("__proto__");
    is_plain.then(|| Some((read(&draft.header)?, read(&draft.claims)?)))?
}
