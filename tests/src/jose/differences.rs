//! What we decide otherwise than a library, with the reason. A difference that is not in this
//! table fails the run.

use super::{LEEWAY, NOW};
use crate::base64url;
use serde_json::Value;

/// A difference.
pub(super) struct Difference {
    /// What tokens it is about, and why we decide as we do.
    pub(super) what: &'static str,
    /// The libraries that decide otherwise.
    pub(super) peers: &'static [&'static str],
    /// What we say of one: one of these. None: we accept it, and they refuse it.
    pub(super) says: &'static [&'static str],
    /// Whether a token is one of these.
    pub(super) applies: fn(&Facts) -> bool,
}

/// The names of the libraries.
pub(super) const JOSE: &str = "jose";
/// See [`JOSE`].
pub(super) const JOSERFC: &str = "joserfc";

const BOTH: &[&str] = &[JOSE, JOSERFC];
const NODE: &[&str] = &[JOSE];
const PYTHON: &[&str] = &[JOSERFC];

/// What a third reader knows of a token.
#[derive(Clone, Debug)]
pub(super) struct Facts {
    text: String,
    /// The bytes of the first two parts, decoded as leniently as any library does.
    header_text: Vec<u8>,
    claims_text: Vec<u8>,
    header: Value,
    claims: Value,
}

impl Facts {
    pub(super) fn new(text: &str) -> Self {
        let mut parts = text.split('.').map(lenient);
        let (header_text, claims_text) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        // What serde_json does not read is replaced, so that the other members can be looked at.
        let read = |bytes: &[u8]| {
            let text = String::from_utf8_lossy(bytes).replace(['\n', '\r'], " ").replace('\u{feff}', "");
            let text = ["-1e999", "1e999", "-Infinity", "Infinity", "NaN"].iter().fold(text, |text, word| {
                let text = text.replace(&format!(":{word}"), ":0");
                text.replace(&format!(": {word}"), ":0")
            });
            serde_json::from_str(&text.replace("\\ud800", "")).unwrap_or_default()
        };
        let (header, claims) = (read(&header_text), read(&claims_text));
        Self { text: text.to_owned(), header_text, claims_text, header, claims }
    }

    fn texts(&self) -> [&[u8]; 2] {
        [&self.header_text, &self.claims_text]
    }

    /// Returns whether the latest value of a claim has no finite number.
    fn is_infinite(&self, claim: &str) -> bool {
        let text = String::from_utf8_lossy(&self.claims_text).into_owned();
        let Some((_, after)) = text.rsplit_once(&format!("\"{claim}\"")) else { return false };
        let value: String =
            after.chars().filter(|c| !c.is_whitespace() && *c != ':').take_while(|c| *c != ',').collect();
        value.trim_end_matches('}').parse::<f64>().is_ok_and(f64::is_infinite) && value.contains('e')
    }

    fn has(&self, claim: &str) -> bool {
        self.claims.get(claim).is_some()
    }

    /// Returns whether a member of the header is there, and this does not hold.
    fn breaks(&self, member: &str, holds: impl Fn(&Value) -> bool) -> bool {
        self.header.get(member).is_some_and(|value| !holds(value))
    }

    fn is_text(&self, claim: &str) -> bool {
        self.claims[claim].is_string()
    }
}

/// The table for access tokens and proofs: what holds for each JSON Web Token.
pub(super) const COMMON: &[Difference] = &[
    Difference {
        what: "Base64 has no padding, no spaces, and no bits after the end (RFC 7515 section 2)",
        peers: NODE,
        says: &["no JSON Web Token", "has no token"],
        applies: |facts| facts.text.split('.').any(|part| base64url::decode(part).is_none()),
    },
    Difference {
        what: "the text is UTF-8 without a mark of its order of bytes (RFC 8259 section 8.1)",
        peers: BOTH,
        says: &["no JSON Web Token"],
        applies: |facts| facts.texts().iter().any(|text| text.starts_with(b"\xef\xbb\xbf")),
    },
    Difference {
        what: "a number has digits (RFC 8259 section 6)",
        peers: PYTHON,
        says: &["no JSON Web Token"],
        applies: |facts| String::from_utf8_lossy(&facts.claims_text).contains("NaN") || infinity(facts),
    },
    Difference {
        what: "half a surrogate pair is no character (RFC 8259 section 8.2)",
        peers: BOTH,
        says: &["no JSON Web Token"],
        applies: |facts| facts.texts().iter().any(|text| String::from_utf8_lossy(text).contains("\\ud800")),
    },
    Difference {
        what: "values are nested at most 128 deep, so that reading needs a limited stack",
        peers: BOTH,
        says: &["no JSON Web Token"],
        applies: |facts| String::from_utf8_lossy(&facts.claims_text).contains(&"[".repeat(128)),
    },
    Difference {
        what: "a token has at most 8 KiB, so that no request holds more",
        peers: BOTH,
        says: &["too long"],
        applies: |facts| facts.text.len() > 8 << 10,
    },
    Difference {
        what: "a line end inside a text is read as a space, as in indented JSON",
        peers: BOTH,
        says: &[],
        applies: |facts| facts.texts().iter().any(|text| has_line_in_text(text)),
    },
    Difference {
        what: "no extension is understood, the one for payloads that are not encoded included (RFC 7797)",
        peers: NODE,
        says: &["demands an extension"],
        applies: |facts| {
            let listed = facts.header["crit"].as_array();
            let is_known = listed.is_some_and(|names| !names.is_empty() && names.iter().all(|name| *name == "b64"));
            is_known && facts.header["b64"] == true
        },
    },
    Difference {
        what: "an empty list of extensions, or one of registered members, is malformed (RFC 7515 section 4.1.11)",
        peers: PYTHON,
        says: &["demands an extension"],
        applies: |facts| {
            let listed = facts.header["crit"].as_array();
            listed.is_some_and(|names| {
                let is_there = |name: &Value| name.as_str().is_some_and(|name| facts.header.get(name).is_some());
                names.iter().all(is_there)
            })
        },
    },
    Difference {
        what: "members of the header that decide nothing are not looked at",
        peers: PYTHON,
        says: &[],
        applies: |facts| {
            let is_url = |value: &Value| value.as_str().is_some_and(|url| url.starts_with("http"));
            let is_list = |value: &Value| value.as_array().is_some_and(|list| list.iter().all(Value::is_string));
            ["jku", "x5u"].iter().any(|member| facts.breaks(member, is_url))
                || ["x5t", "x5t#S256", "cty", "kid"].iter().any(|member| facts.breaks(member, Value::is_string))
                || facts.breaks("x5c", is_list)
                || facts.breaks("b64", |value| *value == true)
                || facts.breaks("jwk", Value::is_object)
        },
    },
];

/// The table for access tokens.
pub(super) const TOKENS: &[Difference] = &[
    Difference {
        what: "a time is a finite number",
        peers: NODE,
        says: &["a time of the token is malformed"],
        applies: |facts| facts.is_infinite("exp") || facts.is_infinite("nbf"),
    },
    Difference {
        what: "an ID token is no access token (OpenID Connect Core section 2)",
        peers: BOTH,
        says: &["is an ID token"],
        applies: |facts| ["nonce", "at_hash", "c_hash"].iter().any(|claim| facts.has(claim)),
    },
    Difference {
        what: "a token names a subject or a client, since the principal is made of them",
        peers: BOTH,
        says: &["names no subject"],
        applies: |facts| {
            !facts.is_text("sub") && !["client_id", "azp", "cid", "appid"].iter().any(|claim| facts.is_text(claim))
        },
    },
    Difference {
        what: "a subject is a text (RFC 7519 section 4.1.2)",
        peers: NODE,
        says: &["the subject of the token is malformed"],
        applies: |facts| !facts.is_text("sub") && !facts.claims["sub"].is_null(),
    },
    Difference {
        what: "a token that is bound to a key needs its proof (RFC 9449 section 7.2)",
        peers: BOTH,
        says: &["bound to"],
        applies: |facts| !facts.claims["cnf"].is_null(),
    },
    Difference {
        what: "an audience is a text or an array of texts (RFC 7519 section 4.1.3)",
        peers: NODE,
        says: &["the audience of the token is malformed"],
        applies: |facts| facts.claims["aud"].as_array().is_some_and(|all| !all.iter().all(Value::is_string)),
    },
    Difference {
        what: "scopes are a text or an array of texts (RFC 8693 section 4.2)",
        peers: BOTH,
        says: &["the scope of the token is malformed"],
        applies: |facts| {
            let scopes = if facts.has("scope") { &facts.claims["scope"] } else { &facts.claims["scp"] };
            match scopes {
                Value::Array(all) => !all.iter().all(Value::is_string),
                scopes => !scopes.is_null() && !scopes.is_string(),
            }
        },
    },
    Difference {
        what: "a claim that is null is absent, as in responses to an introspection",
        peers: BOTH,
        says: &[],
        applies: |facts| ["nbf", "iat"].iter().any(|claim| facts.has(claim) && facts.claims[claim].is_null()),
    },
    Difference {
        what: "the same of a subject and an identifier",
        peers: PYTHON,
        says: &[],
        applies: |facts| ["sub", "jti"].iter().any(|claim| facts.has(claim) && facts.claims[claim].is_null()),
    },
    Difference {
        what: "the time of issue decides nothing",
        peers: BOTH,
        says: &[],
        applies: |facts| facts.has("iat") && !facts.claims["iat"].is_number(),
    },
    Difference {
        what: "the same of one in the future, and of an identifier that is no text",
        peers: PYTHON,
        says: &[],
        applies: |facts| {
            let is_future = facts.claims["iat"].as_f64().is_some_and(|issued| issued > (NOW + LEEWAY) as f64);
            is_future || facts.has("jti") && !facts.is_text("jti")
        },
    },
];

/// The table for proofs of possession.
pub(super) const PROOFS: &[Difference] = &[
    Difference {
        what: "members of a key that are not of the key itself do not count",
        peers: BOTH,
        says: &[],
        applies: |facts| {
            let names = ["use", "alg", "key_ops", "ext", "kid", "x5u"];
            names.iter().any(|name| facts.header["jwk"].get(name).is_some())
        },
    },
    Difference {
        what: "a URL is compared in its normal form, without query and fragment (RFC 9449 section 4.3)",
        peers: BOTH,
        says: &[],
        applies: |facts| facts.claims["htu"].as_str().is_some_and(|url| super::proofs::EQUIVALENTS.contains(&url)),
    },
    Difference {
        what: "a coordinate has the length of its curve (RFC 7518 section 6.2.1.2)",
        peers: BOTH,
        says: &["the key has a wrong length"],
        applies: |facts| {
            let jwk = &facts.header["jwk"];
            let length = |name: &str| jwk[name].as_str().and_then(base64url::decode).map(|bytes| bytes.len());
            let wanted = if jwk["crv"] == "P-384" { 48 } else { 32 };
            jwk["kty"] == "EC" && (length("x") != Some(wanted) || length("y") != Some(wanted))
        },
    },
];

/// Decodes as leniently as any library does: without what is no Base64, and with what is left over.
fn lenient(part: &str) -> Vec<u8> {
    let digits: String = part.chars().filter(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_')).collect();
    let whole = digits.len() - usize::from(digits.len() % 4 == 1);
    let exact = base64url::decode(&digits[..whole]);
    // The last character may have bits too many.
    let endings = "AEIMQUYcgkosw048".chars().map(|last| format!("{}{last}", &digits[..whole.saturating_sub(1)]));
    exact.or_else(|| endings.filter_map(|text| base64url::decode(&text)).next()).unwrap_or_default()
}

fn infinity(facts: &Facts) -> bool {
    String::from_utf8_lossy(&facts.claims_text).contains("Infinity")
}

/// Returns whether a line ends inside a text.
fn has_line_in_text(json: &[u8]) -> bool {
    let (mut inside, mut escaped) = (false, false);
    json.iter().any(|byte| {
        let is_plain = !std::mem::take(&mut escaped);
        match byte {
            b'\\' => escaped = is_plain && inside,
            b'"' if is_plain => inside = !inside,
            _ => {}
        }
        inside && matches!(byte, b'\r' | b'\n')
    })
}
