//! The answers of a token endpoint.

use super::login::{self, Login, Surroundings};
use super::script::Script;
use mcp_proto::auth::{AuthConfig, Browse};
use mcp_proto::client::{FetchError, FetchRequest, FetchResponse};
use mcp_proto::exchange::{Closed, Sent};
use serde_json::Value;

const FORM: &str = "application/x-www-form-urlencoded";

/// The first bytes select a status and a media type, the others are the body of every token
/// response.
///
/// A login with it ends. There is a token only after a success without an error, and it is the one
/// of the body; a plain answer with a token is always accepted.
///
/// # Panics
/// If not.
pub fn check(data: &[u8]) {
    let mut script = Script::new(data);
    let status = *script.pick(&[200, 200, 201, 204, 400, 401, 403, 429, 500, 302, 0]);
    let media_type = *script.pick(&["application/json", FORM, "text/html", ""]);
    let body = script.rest();
    let login = Login::run(AuthConfig::new("fuzz"), None, &mut Endpoint { status, media_type, body });
    let codes = login.token_requests().filter(|form| form.iter().any(|(name, _)| name == "code")).count();
    assert_eq!(codes, 1, "a code is sent once");
    let entries = login.record.iter().flat_map(|record| &record.entries);
    let token = entries.filter_map(|entry| entry.tokens.as_ref()).map(|tokens| tokens.access_token.expose()).next();
    let is_success = (200..300).contains(&status);
    if let Some(token) = token {
        assert!(matches!(login.ends.last(), Some(Ok(_))) && is_success, "{:?} at {status}", login.ends);
        assert!(!token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic()) && token.len() <= 16 << 10);
        let is_there = match parsed(body) {
            Ok(json) => json.get("error").is_none_or(|error| error.is_null() || error == "") && has(&json, token),
            Err(_) => {
                media_type == FORM
                    && login::parameters(&String::from_utf8_lossy(body)).iter().any(|(_, value)| value == token)
            }
        };
        // A parser may differ about JSON that names a member twice.
        assert!(is_there || repeats(body), "another token: {token}");
    } else {
        assert!(matches!(login.ends.last(), Some(Err(_))), "{:?}", login.ends);
        assert!(!(is_success && is_plain(body)), "a token is refused: {:?}", login.ends);
    }
}

/// Parses a body. A line end in a text is tolerated, as a space.
fn parsed(body: &[u8]) -> Result<Value, serde_json::Error> {
    let body: Vec<u8> = body.iter().map(|byte| if matches!(byte, b'\r' | b'\n') { b' ' } else { *byte }).collect();
    serde_json::from_slice(&body)
}

fn has(json: &Value, token: &str) -> bool {
    json.get("access_token").is_some_and(|found| found == token)
}

/// Returns whether a body may name a member twice.
fn repeats(body: &[u8]) -> bool {
    let text = String::from_utf8_lossy(body);
    text.contains('\\') || ["access_token", "error"].iter().any(|name| text.matches(&format!("\"{name}\"")).count() > 1)
}

/// Returns whether it is an object with a bearer token and nothing that could be refused.
fn is_plain(body: &[u8]) -> bool {
    let Ok(Value::Object(members)) = parsed(body) else { return false };
    let token = members.get("access_token").and_then(Value::as_str);
    let kind = members.get("token_type").and_then(Value::as_str);
    let is_token = |text: &str| !text.is_empty() && text.len() < 100 && text.bytes().all(|b| b.is_ascii_alphanumeric());
    let is_known = |name: &String| matches!(&**name, "access_token" | "token_type");
    token.is_some_and(is_token)
        && kind.is_some_and(|kind| kind.eq_ignore_ascii_case("bearer"))
        && members.keys().all(is_known)
        && !repeats(body)
}

struct Endpoint<'a> {
    status: u16,
    media_type: &'static str,
    body: &'a [u8],
}

impl Surroundings for Endpoint<'_> {
    fn answer(&mut self, request: &FetchRequest) -> Result<Box<FetchResponse>, FetchError> {
        match request.url.path.as_str() {
            "/token" if self.status == 0 => Err(FetchError::Closed { sent: Sent::Maybe, why: Closed::Reset }),
            "/token" => Ok(login::respond(self.status, self.media_type, self.body.to_vec(), &login::url(request))),
            _ => Ok(login::honest(request)),
        }
    }

    fn visit(&mut self, page: &Browse) -> Vec<String> {
        vec![login::redirect(page)]
    }
}
