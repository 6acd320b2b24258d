//! The errors of a server in place of a response, or in it.

use super::{Job, Model, Session};
use crate::sim::fault::Fault;
use crate::sim::net::Net;
use crate::sim::web::site::Conn;
use crate::sim::web::wire;
use mcp_proto::Era;
use serde_json::{Value, json};
use std::time::Duration;

/// Wrong responses to a request.
const ANY: [Fault; 13] = [
    Fault::Status5xx,
    Fault::Status429,
    Fault::Status408,
    Fault::Refusal,
    Fault::Redirect,
    Fault::WrongType,
    Fault::Accepted,
    Fault::Empty,
    Fault::EmptyStream,
    Fault::Truncated,
    Fault::ChunkGarbage,
    Fault::Slow,
    Fault::Unauthorized,
];

impl Model {
    /// Whether something goes wrong with this request, and what.
    pub(super) fn draw(&self, scale: u64, more: &[Fault], net: &mut Net) -> Option<Fault> {
        let mut faults = ANY.to_vec();
        faults.extend_from_slice(more);
        net.chaos.pick(&faults, scale)
    }

    /// Sends the wrong response. `ran` states whether the request ran nevertheless. Returns false
    /// if it is not a response by itself.
    pub(super) fn spoil(&mut self, conn: Conn, fault: Fault, body: &Value, net: &mut Net) -> bool {
        let chance = net.chaos.rng.per_mille(500);
        let ran = match fault {
            Fault::Status5xx => chance,
            Fault::WrongType | Fault::Accepted | Fault::Empty | Fault::EmptyStream | Fault::Truncated => true,
            Fault::ChunkGarbage => true,
            _ => false,
        };
        if ran && (self.flavour.era == Era::Legacy || body.pointer("/params/requestState").is_none()) {
            self.count_run(body, 0);
        }
        let text = json!({"jsonrpc": "2.0", "id": body.get("id"), "result": {"content": [], "resultType": "complete"}});
        let text = text.to_string();
        let bytes = match fault {
            Fault::Status5xx => {
                let status = [500, 502, 503, 504][net.chaos.rng.below(4) as usize];
                wire::response(status, &[("Content-Type", "text/plain")], "out of order")
            }
            Fault::Status429 if chance => wire::response(429, &[("Retry-After", "3")], ""),
            Fault::Status429 => wire::response(429, &[], ""),
            Fault::Status408 => wire::response(408, &[("Connection", "close")], ""),
            Fault::Refusal => wire::response([400, 403, 405, 410][net.chaos.rng.below(4) as usize], &[], "no"),
            Fault::Redirect => {
                let status = [301, 302, 303, 307, 308][net.chaos.rng.below(5) as usize];
                let targets = ["http://elsewhere/mcp", "/mcp/", "?again", "other", "/mcp", "https://elsewhere/"];
                let target = targets[net.chaos.rng.below(6) as usize];
                wire::response(status, &[("Location", target)], "")
            }
            Fault::WrongType => wire::response(200, &[("Content-Type", "text/html")], "<p>hello</p>"),
            Fault::Accepted => wire::response(202, &[], ""),
            Fault::Empty if chance => wire::response(200, &[("Content-Type", "application/json")], ""),
            Fault::Empty => wire::response(200, &[], ""),
            Fault::EmptyStream => {
                let head = wire::stream_head(&[], true);
                [&head[..], wire::LAST_CHUNK.as_bytes()].concat().into()
            }
            Fault::Truncated => {
                let length = text.len().to_string();
                let head = wire::head_text(200, &[("Content-Type", "application/json"), ("Content-Length", &length)]);
                let some = net.chaos.rng.below(text.len() as u64) as usize;
                net.write(conn, head + &text[..some]);
                net.end(conn);
                return true;
            }
            Fault::ChunkGarbage => {
                let head = wire::stream_head(&[], true);
                net.write(conn, [&head[..], b"4\r\n: x\n\r\nzz\r\n", text.as_bytes()].concat());
                net.end(conn);
                return true;
            }
            Fault::Unauthorized => {
                self.tokens += u64::from(self.wants_tokens);
                self.token = self.wants_tokens.then_some(self.tokens);
                self.challenge(conn, net);
                return true;
            }
            Fault::Slow if body["method"] != "tools/call" => {
                let after = Duration::from_millis(31_000 + net.chaos.rng.below(60_000));
                let bytes = wire::response(200, &[("Content-Type", "application/json")], &text);
                self.at(net.now + after, Job::Reply(conn, bytes));
                return true;
            }
            Fault::SessionLost => {
                self.lose_sessions(net);
                wire::response(404, &[], "")
            }
            Fault::HeaderMismatch => return self.refuse(conn, -32020, "header mismatch", body, net),
            Fault::MissingCapability => return self.refuse(conn, -32021, "missing capability", body, net),
            _ => return false,
        };
        self.reply(conn, bytes, net);
        true
    }

    fn refuse(&mut self, conn: Conn, code: i64, text: &str, body: &Value, net: &mut Net) -> bool {
        let error = json!({"code": code, "message": text, "data": {"requiredCapabilities": {}}});
        let body = json!({"jsonrpc": "2.0", "id": body.get("id"), "error": error});
        self.json(conn, 400, &[], &body, net);
        true
    }

    /// Wants a token.
    pub(super) fn challenge(&mut self, conn: Conn, net: &mut Net) {
        let text = format!("Bearer error=\"invalid_token\", realm=\"{}\"", self.token.unwrap_or_default());
        self.reply(conn, wire::response(401, &[("WWW-Authenticate", &text)], ""), net);
    }

    /// All sessions end, and all that runs in them.
    pub(super) fn lose_sessions(&mut self, net: &mut Net) {
        self.lost += 1;
        for (id, Session { .. }) in std::mem::take(&mut self.sessions) {
            self.forget(&id, net);
        }
    }

    /// What belongs to a session is no more.
    pub(super) fn forget(&mut self, session: &str, net: &mut Net) {
        let of = |s: &Option<String>| s.as_deref() == Some(session);
        self.tasks.retain(|_, task| !of(&task.session));
        let streams: Vec<u64> = self.streams.iter().filter(|(_, s)| of(&s.session)).map(|(n, _)| *n).collect();
        for stream in streams {
            self.detach(stream, net);
            self.streams.remove(&stream);
        }
    }

    /// Returns a message on a stream before its response.
    pub(super) fn say_extra(&mut self, of: u64, extra: Option<Fault>, answer: &Value, net: &mut Net) {
        let Some(conn) = self.streams.get(&of).and_then(|stream| stream.conn) else { return };
        let chunked = self.flavour.chunked;
        let text = match extra {
            Some(Fault::BadEvent) => wire::event(None, None, "{\"jsonrpc\": oops"),
            Some(Fault::ControlEvent) => format!("event: endpoint\n{}", wire::event(None, None, "/elsewhere")),
            Some(Fault::ForeignId) => {
                let mut other = answer.clone();
                other["id"] = json!("foreign1");
                wire::event(None, None, &other.to_string())
            }
            Some(Fault::Twice) => wire::event(None, None, &answer.to_string()),
            _ => return,
        };
        net.write(conn, wire::piece(&text, chunked));
    }
}
