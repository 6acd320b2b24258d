//! What has gone from one server to another, by the log of nginx: streams that were resumed, and
//! questions that were answered.

use serde::Deserialize;
use serde_json::Value;
use std::collections::HashMap;
use std::fmt;

/// A line of the log, for nginx.
pub(super) const FORMAT: &str = r#"{"at":"$msec","took":"$request_time","method":"$request_method","session":"$http_mcp_session_id","event":"$http_last_event_id","server":"$upstream_addr","status":"$status","body":"$request_body"}"#;

/// The numbers of all clients.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Crossed {
    /// Streams of a server that clients have resumed at another one.
    pub(super) resumed: u64,
    /// Questions of a server that were answered through another one, in sessions.
    pub(super) answered: u64,
    /// The same on 2026-07-28: the call was repeated at another server.
    pub(super) repeated: u64,
}

#[derive(Deserialize)]
struct Line {
    at: String,
    took: String,
    method: String,
    session: String,
    event: String,
    server: String,
    status: String,
    body: String,
}

/// A request.
struct Request {
    begun: f64,
    method: String,
    session: String,
    event: String,
    server: String,
    status: u16,
    message: Value,
}

impl Crossed {
    /// Reads a log.
    pub(super) fn read(log: &str) -> Self {
        let mut requests: Vec<Request> = log.lines().filter_map(Request::read).collect();
        requests.sort_by(|a, b| a.begun.total_cmp(&b.begun));
        let (mut crossed, mut servers) = (Self::default(), HashMap::new());
        // The servers of the latest call of a session, and of a call with this text.
        let (mut calls, mut asked) = (HashMap::new(), HashMap::new());
        for request in requests.iter().filter(|request| request.method == "POST") {
            let Request { session, server, message, .. } = request;
            let params = &message["params"];
            let text = params["arguments"]["text"].as_str();
            match (message["method"].as_str(), message["id"].as_u64()) {
                (Some("tools/call"), _) if !session.is_empty() => drop(calls.insert(session, server)),
                (Some("tools/call"), _) if request.status == 200 && params["requestState"].is_null() => {
                    asked.insert(text, server);
                }
                (Some("tools/call"), _) if request.status == 200 => {
                    crossed.repeated += u64::from(asked.get(&text).is_some_and(|first| *first != server));
                }
                // A client of these has one call at a time.
                (None, Some(id)) if request.status == 202 && message["result"].is_object() => {
                    if let Some(asks) = calls.get(session) {
                        servers.insert(id >> 32, *asks);
                        crossed.answered += u64::from(*asks != server);
                    }
                }
                _ => {}
            }
        }
        // The numbers of streams and of questions begin with that of their server.
        let elsewhere = |request: &&Request| {
            let stream = request.event.strip_prefix('s').and_then(|id| id.split('-').next()?.parse::<u64>().ok());
            let server = stream.and_then(|stream| servers.get(&(stream >> 32)));
            request.method == "GET" && request.status == 200 && server.is_some_and(|server| **server != request.server)
        };
        crossed.resumed = requests.iter().filter(elsewhere).count() as u64;
        crossed
    }
}

impl Request {
    fn read(line: &str) -> Option<Self> {
        let Line { at, took, method, session, event, server, status, body } = serde_json::from_str(line).ok()?;
        Some(Self {
            begun: at.parse::<f64>().ok()? - took.parse::<f64>().ok()?,
            method,
            session,
            event,
            // The last one that nginx has tried.
            server: server.rsplit(", ").next()?.to_owned(),
            status: status.parse().ok()?,
            message: serde_json::from_str(&body).unwrap_or_default(),
        })
    }
}

impl fmt::Display for Crossed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { resumed, answered, repeated } = self;
        write!(
            f,
            "{resumed} streams resumed elsewhere, {} questions answered through another server",
            answered + repeated
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn line(at: u32, fields: [&str; 5], body: &Value) -> String {
        let [method, session, event, server, status] = fields;
        let body = if body.is_null() { String::new() } else { body.to_string() };
        json!({"at": at.to_string(), "took": "0.000", "method": method, "session": session, "event": event,
            "server": server, "status": status, "body": body})
        .to_string()
    }

    fn call(at: u32, session: &str, server: &str, params: &Value) -> String {
        line(at, ["POST", session, "", server, "200"], &json!({"id": 1, "method": "tools/call", "params": params}))
    }

    fn answer(at: u32, server: &str, status: &str) -> String {
        line(at, ["POST", "s", "", server, status], &json!({"id": 7_u64 << 32 | 2, "result": {}}))
    }

    fn resume(server: &str, status: &str, stream: u64) -> String {
        line(9, ["GET", "s", &format!("s{stream}-4"), server, status], &Value::Null)
    }

    #[test]
    fn only_what_goes_to_another_server_counts() {
        let first = json!({"arguments": {"text": "1"}});
        let again = json!({"arguments": {"text": "1"}, "requestState": "x"});
        for (lines, resumed, answered, repeated) in [
            (vec![call(0, "s", "a", &first), answer(1, "a", "202"), resume("a", "200", 7 << 32)], 0, 0, 0),
            (vec![resume("b", "200", 7 << 32 | 9), answer(1, "b", "202"), call(0, "s", "a", &first)], 1, 1, 0),
            (vec![call(0, "s", "a", &first), answer(1, "c, b", "202"), resume("b", "503", 7 << 32)], 0, 1, 0),
            (vec![call(0, "s", "a", &first), answer(1, "b", "404"), resume("b", "200", 7 << 32)], 0, 0, 0),
            (vec![call(0, "s", "a", &first), answer(1, "a", "202"), resume("b", "200", 8 << 32)], 0, 0, 0),
            (vec![call(0, "", "a", &first), call(1, "", "b", &again), call(2, "", "a", &again)], 0, 0, 1),
            (vec!["{".to_owned(), call(0, "", "b", &again)], 0, 0, 0),
        ] {
            assert_eq!(Crossed::read(&lines.join("\n")), Crossed { resumed, answered, repeated }, "{lines:?}");
        }
    }
}
