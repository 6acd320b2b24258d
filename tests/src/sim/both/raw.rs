//! A malicious peer with its own principal: it knows the bytes of other connections, repeats them,
//! guesses, sends invalid HTTP, and sends nothing. None of it may reveal anything to it, or affect
//! another client.

use super::super::app::Work;
use super::super::secured;
use super::end::RAW;
use super::{Fault, World};
use bytes::Bytes;
use mcp_proto::exchange::{Closed, ConnectionId};
use mcp_proto::server::Sessions;
use serde_json::{Value, json};
use std::time::Duration;

/// Its message, and its next action.
struct Attack {
    text: String,
    /// It is no HTTP.
    opaque: bool,
    /// He reads the answer.
    reads: bool,
}

impl Attack {
    const fn of(text: String) -> Self {
        Self { text, opaque: false, reads: true }
    }
}

impl World {
    /// One of the things that he does.
    pub(super) fn attack(&mut self) {
        let Some(attack) = self.some_attack() else { return };
        self.end.raw_channel += 1;
        let Ok(n) = self.connect(RAW, ConnectionId(self.end.raw_channel)) else { return };
        let gives_up = self.net.now + Duration::from_millis(self.of(&[500, 5_000, 90_000]));
        let link = &mut self.net.links[n];
        (link.reads[0], link.until) = (attack.reads, Some((gives_up, Closed::Reset)));
        let at_server = link.at_server;
        let bytes = Bytes::from(attack.text);
        if attack.opaque {
            self.end.watch.make_opaque(at_server);
        }
        self.end.watch.says(at_server, &bytes);
        if !attack.opaque && self.end.scenario.settings.road.is_tls() {
            self.begin_tls(n, secured::HOST);
        }
        // What is opaque is no TLS either.
        if let Some(n) = self.net.link_at(at_server) {
            self.send(n, true, bytes);
        }
        self.drain_server();
    }

    fn some_attack(&mut self) -> Option<Attack> {
        let own = self.own_session();
        let lot = self.below(48);
        if let (None, true) = (&own, self.end.scenario.settings.sessions != Sessions::Off && (21..=34).contains(&lot)) {
            return Some(Attack::of(self.hello()));
        }
        let text = match lot {
            // It has its own session with running work.
            0 | 47 => self.own_work(&own?),
            1..=20 if !self.end.scenario.settings.admit => return self.nonsense(),
            1..=6 => {
                let (victim, _) = self.victim()?;
                self.net.chaos.count(Fault::StolenSession);
                let body = self.some_work_of_his();
                self.post(Some(&victim), &body)
            }
            7..=13 => {
                let (victim, cursor) = self.victim()?;
                self.net.chaos.count(Fault::StolenCursor);
                self.ask("GET", Some(&victim), Some(&cursor?), "")
            }
            14..=20 => {
                let (victim, _) = self.victim()?;
                self.net.chaos.count(Fault::StolenEnd);
                self.ask("DELETE", Some(&victim), None, "")
            }
            21..=26 => {
                let (_, cursor) = self.victim()?;
                self.net.chaos.count(Fault::ForeignCursor);
                self.ask("GET", Some(&own?), Some(&cursor?), "")
            }
            27 | 28 => {
                self.net.chaos.count(Fault::ForeignCancel);
                let id = self.some_request();
                let params = json!({"requestId": id});
                let body = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
                self.post(Some(&own?), &body)
            }
            29..=31 => {
                self.net.chaos.count(Fault::ForeignAnswer);
                let id = self.some_question();
                let result = json!({"action": "accept", "content": {"answer": "stolen"}});
                self.post(Some(&own?), &json!({"jsonrpc": "2.0", "id": id, "result": result}))
            }
            32..=34 => {
                self.net.chaos.count(Fault::GuessedCursor);
                let cursor = format!("s{}-{}", self.below(100), self.below(1_000_000) + 100_000);
                self.ask("GET", Some(&own?), Some(&cursor), "")
            }
            35..=37 => {
                self.net.chaos.count(Fault::GuessedSession);
                let guess = self.guess();
                let body = self.some_work_of_his();
                self.post(Some(&guess), &body)
            }
            38..=40 => {
                self.net.chaos.count(Fault::ForeignHost);
                let body = self.some_work_of_his();
                let text = self.post(None, &body);
                match self.below(2) {
                    0 => text.replace("Host: localhost", "Host: evil.example"),
                    _ => text.replace("Host: localhost", "Host: localhost\r\nOrigin: http://evil.example"),
                }
            }
            // It resumes its own streams, however old, and opens sessions that it does not use.
            41 | 42 => {
                let own = own?;
                let at = self.below(self.end.watch.sessions[&own].ids.len() as u64) as usize;
                let cursor = self.end.watch.sessions[&own].ids.keys().nth(at)?.clone();
                self.ask("GET", Some(&own), Some(&cursor), "")
            }
            43..=45 => self.hello(),
            _ => return self.nonsense(),
        };
        Some(Attack::of(text))
    }

    /// Returns an invalid request, an incomplete one, or too many.
    fn nonsense(&mut self) -> Option<Attack> {
        match self.below(4) {
            0 => {
                self.net.chaos.count(Fault::Garbage);
                let texts = [
                    "\u{16}\u{3}\u{1}\u{2}",
                    "GET\r\n\r\n",
                    "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
                    "POST /mcp HTTP/1.1\r\nHost : localhost\r\n\r\n",
                    "POST /mcp HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
                    "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 4\r\n\r\n{\"a\"",
                    "POST /other HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}",
                ];
                let text = self.of(&texts).into();
                Some(Attack { text, opaque: true, reads: true })
            }
            1 => {
                self.net.chaos.count(Fault::HalfOpen);
                let body = self.some_work_of_his();
                let mut text = self.post(None, &body);
                text.truncate(self.below(text.len() as u64) as usize);
                Some(Attack { text, opaque: true, reads: true })
            }
            _ => {
                self.net.chaos.count(Fault::Unread);
                let body = self.some_work_of_his();
                let own = self.own_session();
                let text = self.post(own.as_deref(), &body).repeat(1 + self.below(20) as usize);
                Some(Attack { text, opaque: false, reads: false })
            }
        }
    }

    // ---- its knowledge

    /// His own session, if there is one.
    fn own_session(&self) -> Option<String> {
        let own = |session: &super::watch::Session| session.peer.number == RAW && !session.over;
        self.end.watch.sessions.iter().find(|(_, session)| own(session)).map(|(id, _)| id.clone())
    }

    /// The session of a client, and one of its events.
    fn victim(&mut self) -> Option<(String, Option<String>)> {
        let Self { rng: Some(rng), end, .. } = self else { return None };
        let others = end.watch.sessions.iter().filter(|(_, session)| session.peer.number != RAW && !session.over);
        let mut others: Vec<_> = others.collect();
        if others.iter().any(|(_, session)| !session.ids.is_empty()) {
            others.retain(|(_, session)| !session.ids.is_empty());
        }
        let (id, session) = *others.get(rng.below(others.len() as u64) as usize)?;
        let at = rng.below(session.ids.len() as u64) as usize;
        Some((id.clone(), session.ids.keys().nth(at).cloned()))
    }

    /// The id of a request of a client that runs, if there is one.
    fn some_request(&mut self) -> Value {
        let running: Vec<u64> =
            self.end.app.tasks.values().filter(|task| task.mark.host != RAW).map(|task| task.mark.tag).collect();
        let tag = running.get(self.below(running.len() as u64) as usize);
        let works = self.end.watch.sessions.values().flat_map(|session| &session.works);
        let id = works.filter(|(_, of)| Some(*of) == tag).map(|(id, _)| id.clone()).next();
        id.and_then(|id| serde_json::from_str(&id).ok()).unwrap_or_else(|| json!(1 + self.below(12)))
    }

    fn some_question(&mut self) -> Value {
        let at = self.below(self.end.watch.questions.len() as u64) as usize;
        match self.end.watch.questions.get(at) {
            Some((_, id)) => id.clone(),
            None => json!(self.below(9)),
        }
    }

    fn guess(&mut self) -> String {
        match (self.victim(), self.below(3)) {
            (Some((id, _)), 0) => {
                let last = if id.ends_with('0') { "1" } else { "0" };
                format!("{}{last}", &id[..id.len() - 1])
            }
            (Some((id, _)), 1) => format!("{id}0"),
            _ => format!("{:032x}", self.rng().draw()),
        }
    }

    // ---- its messages

    fn some_work_of_his(&mut self) -> Value {
        self.tag += 1;
        let (says, millis) = (self.of(&[2, 30]), self.of(&[100, 10_000]));
        let work = Work { tag: self.tag, millis, says: Some(says), harmless: Some(true), ..Work::marked(RAW) };
        let params = json!({"name": "work", "arguments": work});
        json!({"jsonrpc": "2.0", "id": self.tag, "method": "tools/call", "params": params})
    }

    fn own_work(&mut self, session: &str) -> String {
        let body = self.some_work_of_his();
        self.post(Some(session), &body)
    }

    fn hello(&mut self) -> String {
        let info = json!({"name": "raw", "version": "1"});
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": {"elicitation": {}}, "clientInfo": info});
        let body = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
        self.post(None, &body)
    }

    fn post(&self, session: Option<&str>, body: &Value) -> String {
        self.ask("POST", session, None, &body.to_string())
    }

    fn ask(&self, method: &str, session: Option<&str>, cursor: Option<&str>, body: &str) -> String {
        let mut text = format!("{method} /mcp HTTP/1.1\r\nHost: localhost\r\n");
        let mut field = |name: &str, value: &str| text.extend([name, ": ", value, "\r\n"]);
        if method == "POST" {
            field("Content-Type", "application/json");
            field("Content-Length", &body.len().to_string());
        }
        field("Accept", "application/json, text/event-stream");
        if self.end.scenario.settings.admit {
            field("Authorization", &format!("Bearer {RAW}.1"));
        }
        if let Some(session) = session {
            field("Mcp-Session-Id", session);
            field("MCP-Protocol-Version", "2025-11-25");
        }
        if let Some(cursor) = cursor {
            field("Last-Event-ID", cursor);
        }
        text + "\r\n" + body
    }
}
