//! The server of 2025-11-25: `initialize`, an optional session, resumable streams, a listener, and
//! its own requests on either.

use super::{Job, Model, Place, Session};
use crate::sim::fault::Fault;
use crate::sim::net::Net;
use crate::sim::web::site::Conn;
use crate::sim::web::wire::{self, Request};
use serde_json::{Value, json};
use std::time::Duration;

impl Model {
    pub(super) fn legacy_post(&mut self, conn: Conn, request: &Request, net: &mut Net) {
        let body = request.json();
        let method = body["method"].as_str().unwrap_or_default().to_string();
        if method == "initialize" {
            return self.initialize(conn, &body, net);
        }
        if method == "server/discover" {
            return self.unknown_probe(conn, &body, net);
        }
        let Some(session) = self.admit(conn, request, net) else { return };
        let Some(id) = body.get("id").filter(|_| !method.is_empty()).cloned() else {
            return self.legacy_note(conn, &method, &body, net);
        };
        let mut more = vec![];
        if self.flavour.sessions {
            more.extend([Fault::SessionLost; 4]);
        }
        if method == "tools/call" {
            more.extend(
                [Fault::BadEvent, Fault::ControlEvent, Fault::ForeignId, Fault::Twice, Fault::CommentsOnly].repeat(2),
            );
            if self.flavour.ids {
                more.extend([Fault::IdsOnly, Fault::RetryZero, Fault::RetryHuge].repeat(8));
            }
        }
        let fault = self.draw(1700, &more, net);
        if let Some(fault) = fault
            && self.spoil(conn, fault, &body, net)
        {
            return;
        }
        let result = match method.as_str() {
            "ping" => json!({}),
            "tools/list" => json!({"tools": []}),
            "tools/call" => return self.legacy_call(conn, &body, session, fault, net),
            _ => {
                let error = json!({"code": -32601, "message": "Method not found"});
                return self.json(conn, 200, &[], &json!({"jsonrpc": "2.0", "id": id, "error": error}), net);
            }
        };
        let answer = json!({"jsonrpc": "2.0", "id": id, "result": result});
        self.legacy_answer(conn, session, &answer, &[], net);
    }

    fn legacy_answer(
        &mut self,
        conn: Conn,
        session: Option<String>,
        answer: &Value,
        headers: &[(&str, &str)],
        net: &mut Net,
    ) {
        if net.chaos.rng.per_mille(self.flavour.streams) {
            let stream = self.open(session);
            self.attach(stream, conn, 0, headers, net);
            self.answer_on(stream, answer, net);
        } else {
            self.json(conn, 200, headers, answer, net);
        }
    }

    /// How servers of that time answer a request that they do not know, outside of a session.
    fn unknown_probe(&mut self, conn: Conn, body: &Value, net: &mut Net) {
        let error = json!({"code": -32601, "message": "Method not found"});
        let answer = json!({"jsonrpc": "2.0", "id": body["id"], "error": error});
        match net.chaos.rng.below(4) {
            0 => self.json(conn, 200, &[], &answer, net),
            1 => self.json(conn, 404, &[], &answer, net),
            2 => {
                let error = json!({"code": -32600, "message": "Missing session ID"});
                self.json(conn, 400, &[], &json!({"jsonrpc": "2.0", "id": null, "error": error}), net);
            }
            _ => self.reply(conn, wire::response(400, &[], "Bad Request"), net),
        }
    }

    fn initialize(&mut self, conn: Conn, body: &Value, net: &mut Net) {
        let scale = if self.lost > 0 { 800 } else { 100 };
        if let Some(fault) = self.draw(scale, &[], net)
            && self.spoil(conn, fault, body, net)
        {
            return;
        }
        let result = json!({
            "protocolVersion": self.flavour.version,
            "capabilities": {"tools": {"listChanged": true}},
            "serverInfo": {"name": "model", "version": "1"},
        });
        let answer = json!({"jsonrpc": "2.0", "id": body["id"], "result": result});
        if !self.flavour.sessions {
            return self.legacy_answer(conn, None, &answer, &[], net);
        }
        self.next += 1;
        let session = format!("session-{}", self.next);
        self.sessions.insert(session.clone(), Session::default());
        self.legacy_answer(conn, Some(session.clone()), &answer, &[("Mcp-Session-Id", &session)], net);
    }

    /// The session of a request, if it may pass.
    fn admit(&mut self, conn: Conn, request: &Request, net: &mut Net) -> Option<Option<String>> {
        if !self.flavour.sessions {
            return Some(None);
        }
        match request.header("mcp-session-id") {
            Some(session) if self.sessions.contains_key(session) => return Some(Some(session.into())),
            Some(_) => self.reply(conn, wire::response(404, &[], "Session not found"), net),
            None => self.reply(conn, wire::response(400, &[], "Missing session ID"), net),
        }
        None
    }

    /// A notification, or the answer to a question.
    fn legacy_note(&mut self, conn: Conn, method: &str, body: &Value, net: &mut Net) {
        if let Some(fault) = net.chaos.pick(&[Fault::Status5xx, Fault::Status429, Fault::Refusal], 60)
            && self.spoil(conn, fault, body, net)
        {
            return;
        }
        self.reply(conn, wire::response(202, &[], ""), net);
        if method == "notifications/cancelled" {
            let id = body.pointer("/params/requestId").cloned();
            let task = self.tasks.iter().find(|(_, task)| Some(&task.id) == id.as_ref()).map(|(n, _)| *n);
            if let Some(task) = task.and_then(|task| self.tasks.remove(&task))
                && let Place::Stream(stream) = task.place
            {
                self.detach(stream, net);
                self.streams.remove(&stream);
            }
        }
        if method.is_empty() {
            let id = body["id"].as_str().unwrap_or_default();
            let waiting = self.tasks.iter_mut().find(|(_, task)| task.waits.as_deref() == Some(id));
            if let Some((&n, task)) = waiting {
                task.waits = None;
                let at = net.now + task.step;
                self.at(at, Job::Act(n));
            }
        }
    }

    fn legacy_call(&mut self, conn: Conn, body: &Value, session: Option<String>, fault: Option<Fault>, net: &mut Net) {
        let slow = fault == Some(Fault::Slow);
        let odd = fault.filter(|fault| *fault != Fault::Slow);
        if odd.is_none() && !net.chaos.rng.per_mille(self.flavour.streams) {
            return self.run(body, 0, Place::Json(conn), session, slow, net);
        }
        let stream = self.open(session.clone());
        if let Some(stream) = self.streams.get_mut(&stream) {
            stream.mute = odd.filter(|fault| matches!(fault, Fault::IdsOnly | Fault::CommentsOnly));
            stream.extra = odd;
            stream.retry = match odd {
                Some(Fault::RetryZero) => Some(0),
                Some(Fault::RetryHuge) => Some(99_999_999_999),
                _ => stream.retry,
            };
        }
        self.attach(stream, conn, 0, &[], net);
        self.run(body, 0, Place::Stream(stream), session, slow, net);
    }

    /// Asks on the stream of the call or on the listener. False if there is neither.
    pub(super) fn ask(&mut self, of: u64, net: &mut Net) -> bool {
        self.next += 1;
        let id = format!("q{}", self.next);
        let Some(task) = self.tasks.get_mut(&of) else { return false };
        let listener = task.session.as_ref().and_then(|session| self.sessions.get(session)?.listener);
        let own = match task.place {
            Place::Stream(stream) if !self.flavour.asks_on_listener => Some(stream),
            _ => None,
        };
        let Some(stream) = own.or(listener) else { return false };
        task.waits = Some(id.clone());
        let form = json!({"type": "object", "properties": {"answer": {"type": "string"}}});
        let params = json!({"message": "go on?", "requestedSchema": form});
        self.emit(stream, &json!({"jsonrpc": "2.0", "id": id, "method": "elicitation/create", "params": params}), net);
        true
    }

    pub(super) fn legacy_get(&mut self, conn: Conn, request: &Request, net: &mut Net) {
        let Some(session) = self.admit(conn, request, net) else { return };
        let from = request.header("last-event-id").map(ToOwned::to_owned);
        if from.is_none() && !self.flavour.listener {
            return self.reply(conn, wire::response(405, &[("Allow", "POST")], ""), net);
        }
        let more = if self.flavour.sessions { &[Fault::SessionLost][..] } else { &[] };
        match self.draw(400, more, net) {
            Some(Fault::Slow) => {
                let after = Duration::from_millis(500 + net.chaos.rng.below(60_000));
                return self.at(net.now + after, Job::Reply(conn, wire::response(503, &[], "")));
            }
            Some(fault) if self.spoil(conn, fault, &Value::Null, net) => return,
            _ => {}
        }
        let Some(from) = from else {
            let stream = match session.as_ref().and_then(|session| self.sessions.get(session)?.listener) {
                Some(stream) => stream,
                None => self.open(session.clone()),
            };
            if let Some(session) = session.and_then(|session| self.sessions.get_mut(&session)) {
                session.listener = Some(stream);
            }
            let end = self.streams.get(&stream).map_or(0, |stream| stream.history.len());
            return self.attach(stream, conn, end, &[], net);
        };
        let place = from.strip_prefix('s').and_then(|rest| rest.split_once('-'));
        let place = place.and_then(|(stream, n)| Some((stream.parse().ok()?, n.parse::<usize>().ok()?)));
        match place.filter(|(stream, _)| self.streams.get(stream).is_some_and(|s| s.session == session)) {
            Some((stream, n)) => self.attach(stream, conn, n + 1, &[], net),
            None => self.reply(conn, wire::response(400, &[], "no such event"), net),
        }
    }

    pub(super) fn legacy_delete(&mut self, conn: Conn, request: &Request, net: &mut Net) {
        let Some(session) = self.admit(conn, request, net) else { return };
        if let Some(session) = session {
            self.sessions.remove(&session);
            self.forget(&session, net);
        }
        self.reply(conn, wire::response(200, &[], ""), net);
    }
}
