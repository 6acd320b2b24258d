//! The errors of the library in the words of the command: one line, without names of its options in
//! Rust and without the body of a web page.

use crate::output::one_line;
use mcp_blocking::mcp_proto::error::{AuthError, NegotiationCause, NegotiationError, RefusedAttempt};
use mcp_blocking::mcp_proto::exchange::Closed;
use mcp_blocking::mcp_proto::rpc::InvalidKind;
use mcp_blocking::{CallError, ConnectError, HttpError, StreamEnd};

/// What the library says of a message beyond a limit: on a line, in a body, in an event stream, and
/// on a WebSocket. It has no variant of its own for it.
const TOO_LARGE: [&str; 4] = [
    InvalidKind::TooLong.as_str(),
    "the body is larger than the limit",
    "an event is larger than ",
    "a message over the limit",
];

/// What is said instead, on every transport.
const LARGE: &str = "the server sent a message larger than the limit of this command";

/// Number of bytes in which the title of a web page is looked for.
const PAGE: usize = 4 << 10;

/// Returns why a connection failed in the first place, if its negotiation did.
pub(crate) fn cause(error: &ConnectError) -> Option<&NegotiationCause> {
    match error {
        ConnectError::Negotiation(error) => Some(&error.cause),
        _ => None,
    }
}

fn says_too_large(text: &str) -> bool {
    TOO_LARGE.iter().any(|known| text.contains(known))
}

fn is_closed_by_limit(why: &Closed) -> bool {
    matches!(why, Closed::Broken(how) if says_too_large(how))
}

fn is_cause_limit(cause: &NegotiationCause) -> bool {
    match cause {
        NegotiationCause::Closed(why) | NegotiationCause::NoEndpoint(StreamEnd::Closed(why)) => is_closed_by_limit(why),
        NegotiationCause::Decode(e) => says_too_large(&e.to_string()),
        _ => false,
    }
}

/// Returns whether a connection failed since the server sent more than this side accepts.
pub(crate) fn is_connect_limit(error: &ConnectError) -> bool {
    match error {
        ConnectError::Negotiation(error) => is_cause_limit(&error.cause),
        ConnectError::Closed(why) => is_closed_by_limit(why),
        _ => false,
    }
}

/// Returns whether a call failed since the server sent more than this side accepts: in one message,
/// or altogether.
pub(crate) fn is_call_limit(error: &CallError) -> bool {
    // The only hook that denies is `list::bounded`.
    is_call_too_large(error) || matches!(error, CallError::TooManyPages(_) | CallError::Denied { .. })
}

/// Returns whether a call failed since one message was too large.
pub(crate) fn is_call_too_large(error: &CallError) -> bool {
    match error {
        CallError::Closed { why, .. } | CallError::NoResponse { cause: StreamEnd::Closed(why), .. } => {
            is_closed_by_limit(why)
        }
        CallError::Decode(e) => says_too_large(&e.to_string()),
        CallError::Negotiation(e) => is_cause_limit(&e.cause),
        _ => false,
    }
}

/// Returns why a connection got no credentials, if that is the reason.
pub(crate) fn connect_login(error: &ConnectError) -> Option<&AuthError> {
    match error {
        ConnectError::Negotiation(error) => error.unauthorized(),
        ConnectError::Closed(Closed::Unauthorized(error)) => Some(error),
        _ => None,
    }
}

/// Returns the code of JSON-RPC and the status of HTTP of an error, as far as it has them.
pub(crate) fn codes(error: &CallError) -> (Option<i64>, Option<u16>) {
    match error {
        CallError::Rpc(e) | CallError::Input(e) => (Some(e.code), None),
        CallError::Http(http) => (http.error.as_ref().map(|e| e.code), Some(http.status)),
        CallError::ContentType { status, .. } => (None, Some(*status)),
        CallError::Negotiation(e) => cause_codes(&e.cause),
        _ => (None, None),
    }
}

/// Returns the same of the cause of a failed negotiation.
pub(crate) fn cause_codes(cause: &NegotiationCause) -> (Option<i64>, Option<u16>) {
    match cause {
        NegotiationCause::Rpc(e) => (Some(e.code), None),
        NegotiationCause::Http(http) => (http.error.as_ref().map(|e| e.code), Some(http.status)),
        _ => (None, None),
    }
}

/// Returns the error of a connection as one line.
pub(crate) fn connect_error(error: &ConnectError) -> String {
    match error {
        ConnectError::Negotiation(error) => negotiation(error),
        error => error.to_string(),
    }
}

/// Returns the error of a call as one line.
pub(crate) fn call_error(error: &CallError) -> String {
    match error {
        _ if is_call_too_large(error) => LARGE.to_owned(),
        CallError::Http(http) => http_error(http),
        CallError::Negotiation(error) => negotiation(error),
        CallError::Denied { reason, .. } => one_line(reason),
        error => error.to_string(),
    }
}

fn negotiation(error: &NegotiationError) -> String {
    if error.first.is_some() {
        return error.to_string();
    }
    let last = cause_text(&error.cause);
    let mut text = format!("{} failed after {} ms: {last}", error.stage, error.after.as_millis());
    // A server that refuses every way for the same reason has said it once.
    let mut said = vec![last];
    for RefusedAttempt { stage, cause } in &error.earlier {
        let cause = cause_text(cause);
        if !said.contains(&cause) {
            text.push_str(&format!("; before that, {stage}: {cause}"));
            said.push(cause);
        }
    }
    text
}

fn cause_text(cause: &NegotiationCause) -> String {
    match cause {
        _ if is_cause_limit(cause) => LARGE.to_owned(),
        NegotiationCause::Http(http) => http_error(http),
        cause => cause.to_string(),
    }
}

/// Returns an HTTP error. Of a web page it has the title.
fn http_error(http: &HttpError) -> String {
    if !is_web_page(&http.body_head) {
        return http.to_string();
    }
    let mut bare = http.clone();
    bare.body_head.clear();
    let status = format!("HTTP {}", http.status);
    let rest = bare.to_string();
    let rest = rest.strip_prefix(&status).unwrap_or_default();
    let title = title(&http.body_head).map(|title| format!(" ({title:?})")).unwrap_or_default();
    format!("{status} with a web page{title}{rest}")
}

/// Returns whether a body is HTML.
pub(crate) fn is_web_page(body: &[u8]) -> bool {
    let head = page_head(body).to_ascii_lowercase();
    let head = head.trim_start();
    ["<!doctype html", "<html", "<head", "<body"].iter().any(|start| head.starts_with(start))
        || head.starts_with('<') && head.contains("<html")
}

fn page_head(body: &[u8]) -> String {
    String::from_utf8_lossy(&body[..body.len().min(PAGE)]).into_owned()
}

/// Returns the title of a web page, of at most 60 characters, as one line.
fn title(body: &[u8]) -> Option<String> {
    let head = page_head(body);
    // Of the same length, so that its positions are those of the text.
    let lower = head.to_ascii_lowercase();
    let start = lower.find("<title")?;
    let start = start + lower[start..].find('>')? + 1;
    let end = start + lower[start..].find('<')?;
    let words: Vec<&str> = head[start..end].split_whitespace().collect();
    let title: String = one_line(&words.join(" ")).chars().take(60).collect();
    (!title.is_empty()).then_some(title)
}

#[cfg(test)]
mod tests {
    use super::*;
    use mcp_blocking::mcp_proto::exchange::Sent;

    #[test]
    fn web_page_is_one_line_with_its_title() {
        let page = |status, body: &'static str| {
            let mut http = HttpError::new(status);
            http.body_head = body.as_bytes().into();
            http_error(&http)
        };
        let html = "<!DOCTYPE html>\n<html><head><TITLE lang=en>404\n Not \"Found\"</TITLE></head>";
        assert_eq!(page(404, html), r#"HTTP 404 with a web page ("404 Not \"Found\"")"#);
        assert_eq!(page(502, " \r\n<html><body>x"), "HTTP 502 with a web page");
        assert_eq!(page(404, "<?xml version='1'?><html>"), "HTTP 404 with a web page");
        assert_eq!(page(404, "no <html> here"), "HTTP 404: no <html> here");
        assert_eq!(page(404, ""), "HTTP 404");
        // The title of a page cannot control the terminal.
        assert!(!page(404, "<html><title>\u{1b}[2J\u{202e}</title>").contains(['\u{1b}', '\u{202e}']));
    }

    #[test]
    fn every_form_of_a_message_over_the_limit_is_one() {
        let broken = |how: &str| CallError::Closed { sent: Sent::Maybe, why: Closed::Broken(how.to_owned()) };
        assert!(is_call_limit(&broken("an event is larger than 16 bytes")));
        assert!(is_call_limit(&CallError::TooManyPages(1000)));
        assert!(!is_call_limit(&broken("a bad chunk")));
    }
}
