//! Proofs of possession: good ones, and ones that deviate.

use super::keys::Key;
use super::tokens::{Members, deviate, members, object};
use super::{NOW, RESOURCE, Rng};
use crate::base64url;
use mcp_proto::auth::Alg;

/// Other spellings of the URL of the server.
pub(super) const EQUIVALENTS: [&str; 5] = [
    "https://mcp.example/mcp?a=b",
    "https://mcp.example/mcp#f",
    "HTTPS://MCP.example:443/mcp",
    "https://mcp.example/a/../mcp",
    "https://mcp.example/m%63p",
];

/// What a proof may have in place of a member of its header. Without a value it lacks the member.
/// `$K` is its key, `$P` with the private part, `$S` with a short coordinate.
const HEADERS: &[(&str, &str)] = &[
    ("typ", ""),
    ("typ", "\"DPoP+JWT\""),
    ("typ", "\"application/dpop+jwt\""),
    ("typ", "\"at+jwt\""),
    ("typ", "\"JWT\""),
    ("alg", ""),
    ("alg", "\"none\""),
    ("alg", "\"HS256\""),
    ("alg", "\"ES256\""),
    ("alg", "\"EdDSA\""),
    ("alg", "\"Ed25519\""),
    ("crit", "[\"b64\"]"),
    ("crit", "[]"),
    ("b64", "true"),
    ("kid", "\"x\""),
    ("kid", "7"),
    ("jku", "\"evil\""),
    ("jwk", ""),
    ("jwk", "null"),
    ("jwk", "[]"),
    ("jwk", "{\"kty\":\"oct\",\"k\":\"AAAA\"}"),
    ("jwk", "{$K,\"d\":\"AAAA\"}"),
    ("jwk", "{$K,\"use\":\"sig\"}"),
    ("jwk", "{$K,\"use\":\"enc\"}"),
    ("jwk", "{$K,\"alg\":\"ES256\"}"),
    ("jwk", "{$K,\"alg\":\"RS256\"}"),
    ("jwk", "{$K,\"key_ops\":[\"verify\"]}"),
    ("jwk", "{$K,\"key_ops\":[\"sign\"]}"),
    ("jwk", "{$K,\"kid\":\"x\",\"other\":1}"),
    ("jwk", "{$S}"),
    ("jwk", "{$K,\"crv\":\"P-521\"}"),
    ("jwk", "{$K,\"kty\":\"EC\"}"),
];

/// The same of its claims. `$T` followed by a number is a time that is this number of seconds from
/// now.
const CLAIMS: &[(&str, &str)] = &[
    ("jti", ""),
    ("jti", "\"\""),
    ("jti", "7"),
    ("jti", "null"),
    ("htm", ""),
    ("htm", "\"GET\""),
    ("htm", "\"post\""),
    ("htm", "[\"POST\"]"),
    ("htu", ""),
    ("htu", "\"https://mcp.example/mcp?a=b\""),
    ("htu", "\"https://mcp.example/mcp#f\""),
    ("htu", "\"HTTPS://MCP.example:443/mcp\""),
    ("htu", "\"https://mcp.example/a/../mcp\""),
    ("htu", "\"https://mcp.example/m%63p\""),
    ("htu", "\"https://mcp.example/mcp/\""),
    ("htu", "\"https://mcp.example/MCP\""),
    ("htu", "\"https://mcp.example:444/mcp\""),
    ("htu", "\"http://mcp.example/mcp\""),
    ("htu", "\"https://u@mcp.example/mcp\""),
    ("htu", "\"/mcp\""),
    ("htu", "[\"https://mcp.example/mcp\"]"),
    ("iat", ""),
    ("iat", "null"),
    ("iat", "$T-300"),
    ("iat", "$T-299"),
    ("iat", "$T-299.5"),
    ("iat", "$T300"),
    ("iat", "$T300.5"),
    ("iat", "$T301"),
    ("iat", "\"1800000000\""),
    ("iat", "1e300"),
    ("ath", ""),
    ("ath", "null"),
    ("ath", "\"fUHyO2r2Z3DZ53EsNrWBb0xWXoaNy59IiKCAqksmQEo\""),
    ("nonce", "\"n\""),
    ("nonce", "7"),
    ("exp", "$T600"),
    ("other", "\"\\ud800\""),
    ("other", "\"a\nb\""),
    ("other", "NaN"),
];

/// A proof to be signed.
pub(super) struct ProofDraft {
    pub(super) alg: Alg,
    pub(super) header: String,
    pub(super) claims: String,
    /// Whether nothing deviates.
    pub(super) is_good: bool,
}

/// Drafts a proof of this key for a POST with a token.
pub(super) fn draft(key: &Key, token: &str, rng: &mut Rng) -> ProofDraft {
    let alg = rng.of(key.algs);
    let hash = base64url::encode(hmac_sha256::Hash::hash(token.as_bytes()));
    let mut header: Members =
        members(&[("typ", "\"dpop+jwt\""), ("alg", &format!("\"{}\"", alg.as_str())), ("jwk", "{$K}")]);
    let mut claims: Members = members(&[
        ("jti", &format!("\"{:x}\"", rng.draw())),
        ("htm", "\"POST\""),
        ("htu", &format!("\"{RESOURCE}\"")),
        ("iat", &(NOW - rng.below(290) + rng.below(290)).to_string()),
        ("ath", &format!("\"{hash}\"")),
    ]);
    let deviations = rng.of(&[0, 0, 1, 1, 1, 2]);
    for _ in 0..deviations {
        match rng.below(2) {
            0 => deviate(rng, &mut header, HEADERS),
            _ => deviate(rng, &mut claims, CLAIMS),
        }
    }
    let jwk = key.bare_jwk().to_string();
    let own = jwk.trim_start_matches('{').trim_end_matches('}');
    let short = own.replacen("\"x\":\"", "\"x\":\"AAAA", 1);
    let header = object(rng, &header, false).replace("$K", own).replace("$S", &short);
    ProofDraft { alg, header, claims: object(rng, &claims, false), is_good: deviations == 0 }
}
