//! The clients: sessions of an older revision, whose calls may become streams, and subscriptions of
//! the newest one. A client resumes a stream at any server.

use super::super::fault::Fault;
use super::node::{LIFETIME, NodeId};
use super::world::{SimEvent, World};
use mcp_proto::Instant;
use mcp_proto::exchange::{Body, ExchangeId, Headers, RequestHead, ResponseHead};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// The principal whose access ends now and then.
pub(super) const REVOKED: &str = "eve";

/// An exchange, at a server.
pub(super) type Key = (NodeId, ExchangeId);

/// A session of an older revision.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) principal: &'static str,
    pub(super) id: String,
    /// Its client has ended it, or it was told that there is none.
    pub(super) is_over: bool,
    pub(super) is_revoked: bool,
    /// The store knows that it is revoked. The server that was told could have died before.
    pub(super) is_gone: bool,
    pub(super) calls: BTreeMap<u64, Call>,
    pub(super) last_call: u64,
    /// When a server has last served it, and whether anything has followed `initialize`.
    used: (Instant, bool),
    /// The last event of its own stream.
    cursor: Option<String>,
    /// The questions that it has answered.
    answered: BTreeSet<String>,
}

/// A call of a session.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) of: String,
    /// The last event of its stream.
    cursor: Option<String>,
    /// Where its response was: an event, or an exchange.
    pub(super) place: Option<String>,
    /// What it ended with.
    pub(super) error: Option<i64>,
    pub(super) is_cancelled: bool,
    /// Its client knows no way to its response.
    pub(super) is_lost: bool,
}

/// A client that is to learn of each change: by the own stream of a session, or a subscription.
#[derive(Debug)]
pub(super) struct Watcher {
    pub(super) session: Option<usize>,
    /// Since when it has had its stream. `None`: it has none.
    pub(super) since: Option<Instant>,
    /// When it was last told of a change.
    pub(super) told: Instant,
}

#[derive(Debug)]
pub(super) struct Exchange {
    pub(super) kind: Kind,
    /// The number of its last event.
    last: Option<u64>,
}

/// What an exchange is for.
#[derive(Clone, Debug)]
pub(super) enum Kind {
    Initialize(&'static str),
    Call(usize, u64),
    Own(usize),
    Subscription(usize),
    /// A message without a response: a session, and the message if it is sent again.
    Message(usize, Option<String>),
    Delete(usize),
    /// Somebody else uses a session or a task.
    Theft,
    /// A session that was revoked is used.
    Revoked,
    NewTask(usize),
    GetTask(usize),
    Task,
    /// A call of the newest revision, with the rest of its params.
    Modern(&'static str, String),
}

impl World {
    /// Sends a request to any server.
    pub(super) fn send(&mut self, kind: Kind, method: &str, headers: Headers, body: Option<String>) {
        let at = self.rng.below(self.nodes.len() as u64) as usize;
        self.send_to(at, kind, method, headers, body);
    }

    pub(super) fn send_to(&mut self, at: usize, kind: Kind, method: &str, headers: Headers, body: Option<String>) {
        // A call that asks its client needs a stream.
        let is_mute = body.as_ref().is_some_and(|body| !body.contains("\"ask\""));
        let accept = match &kind {
            Kind::Call(..) if is_mute && self.rng.per_mille(200) => "application/json",
            _ if method == "GET" => "text/event-stream",
            _ => "application/json, text/event-stream",
        };
        let last = headers.get("last-event-id").and_then(number_of);
        let headers = headers.with("Accept", accept).with("Content-Type", "application/json").with("Host", "localhost");
        let head = RequestHead { method: method.to_owned().into(), target: "/mcp".into(), headers };
        let (id, x) = (self.nodes[at].id, self.nodes[at].exchange());
        // So that streams are resumed elsewhere.
        let cuts = if matches!(kind, Kind::Call(..)) { 800 } else { 100 };
        self.exchanges.insert((id, x), Exchange { kind, last });
        let after = self.soon(20);
        self.later(after, SimEvent::Request(id, x, head, body));
        if self.hit(Fault::ConnectionCut, cuts) {
            let most = self.rng.of(&[20, 300, 5000]);
            let after = self.soon(most);
            self.later(after, SimEvent::Cut(id, x));
        }
    }

    /// Returns the fields of a request in a session.
    pub(super) fn fields(&self, session: usize) -> Headers {
        self.fields_of(session, self.sessions[session].principal)
    }

    /// Returns them with another principal.
    pub(super) fn fields_of(&self, session: usize, principal: &str) -> Headers {
        let id = self.sessions[session].id.as_str();
        let headers = Headers::new().with("Authorization", principal).with("Mcp-Session-Id", id);
        headers.with("MCP-Protocol-Version", "2025-11-25")
    }

    pub(super) fn initialize(&mut self, principal: &'static str) {
        let body = json!({"jsonrpc": "2.0", "id": "init", "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {"elicitation": {}},
            "clientInfo": {"name": "c", "version": "1"},
        }});
        let headers = Headers::new().with("Authorization", principal);
        self.send(Kind::Initialize(principal), "POST", headers, Some(body.to_string()));
    }

    /// Calls a tool in a session.
    pub(super) fn call(&mut self, session: usize, tool: &str) {
        self.last_name += 1;
        let (headers, name) = (self.fields(session), self.last_name);
        let state = &mut self.sessions[session];
        state.last_call += 1;
        let (id, of) = (state.last_call, format!("{} {name}", state.principal));
        let call = Call { of: of.clone(), cursor: None, place: None, error: None, is_cancelled: false, is_lost: false };
        state.calls.insert(id, call);
        self.report.calls += 1;
        let body = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {
            "name": tool, "arguments": {"of": of}, "_meta": {"progressToken": id},
        }});
        self.send(Kind::Call(session, id), "POST", headers, Some(body.to_string()));
    }

    /// A client resumes a call whose stream has ended.
    pub(super) fn resume(&mut self, session: usize, call: u64) {
        let headers = self.fields(session);
        let state = &self.sessions[session];
        let Some(cursor) = state.calls[&call].cursor.clone().filter(|_| !state.is_over && !self.is_over) else {
            return;
        };
        self.report.resumed += 1;
        self.send(Kind::Call(session, call), "GET", headers.with("Last-Event-ID", cursor), None);
    }

    /// A client opens the own stream of its session.
    pub(super) fn open_own(&mut self, session: usize) {
        let (headers, state) = (self.fields(session), &self.sessions[session]);
        if state.is_over || self.is_over {
            return;
        }
        let headers = match &state.cursor {
            Some(cursor) => headers.with("Last-Event-ID", cursor.as_str()),
            None => headers,
        };
        self.send(Kind::Own(session), "GET", headers, None);
    }

    /// A client of the newest revision subscribes.
    pub(super) fn subscribe(&mut self, watcher: usize) {
        if self.is_over {
            return;
        }
        let params = modern(&json!({"notifications": {"toolsListChanged": true}}));
        let body = json!({"jsonrpc": "2.0", "id": watcher + 1, "method": "subscriptions/listen", "params": params});
        let headers = modern_fields("ada", "subscriptions/listen", None);
        self.send(Kind::Subscription(watcher), "POST", headers, Some(body.to_string()));
    }

    /// A client sends a message of a session that has no response.
    pub(super) fn answer(&mut self, session: usize, body: String) {
        if !self.sessions[session].is_over && !self.is_over {
            let headers = self.fields(session);
            self.send(Kind::Message(session, Some(body.clone())), "POST", headers, Some(body));
        }
    }

    // ---- what arrives

    pub(super) fn response(&mut self, key: Key, head: &ResponseHead, body: &Body) {
        let Some(exchange) = self.exchanges.get(&key) else { return };
        let kind = exchange.kind.clone();
        let text = match body {
            Body::Full(text) => Some(String::from_utf8(text.to_vec()).expect("text")),
            _ => None,
        };
        *self.report.statuses.entry(head.status).or_default() += 1;
        if text.is_some() {
            self.exchanges.remove(&key);
        }
        let value: Value = text.as_deref().map_or(Value::Null, |text| serde_json::from_str(text).unwrap_or_default());
        match (&kind, head.status) {
            (Kind::Initialize(principal), 200) => self.session_opens(principal, head),
            (Kind::Call(session, call), 200) if text.is_some() => {
                self.used(*session);
                self.ended(*session, *call, format!("{key:?}"), &value);
            }
            (Kind::Call(session, call), 404) => {
                self.is_unknown(*session);
                self.lose(*session, *call);
            }
            (Kind::Call(session, call), 400) => self.lose_cursor(*session, *call, &value),
            (Kind::Call(session, call), 503) if self.sessions[*session].calls[call].cursor.is_some() => {
                self.resume_soon(*session, *call);
            }
            (Kind::Call(session, call), _) if text.is_some() => self.lose(*session, *call),
            (Kind::Own(session), 200) => {
                self.used(*session);
                let (session, now) = (*session, self.now);
                let watcher = self.watcher_of(session);
                self.watchers[watcher].since = Some(now);
            }
            (Kind::Own(session), 404) => self.is_unknown(*session),
            (Kind::Own(session), status) => {
                if status == 400 {
                    self.sessions[*session].cursor = None;
                }
                let after = self.soon(3000);
                self.later(after, SimEvent::Listen(*session));
            }
            (Kind::Subscription(watcher), 200) => self.watchers[*watcher].since = Some(self.now),
            (Kind::Subscription(watcher), _) => {
                let after = self.soon(3000);
                self.later(after, SimEvent::Subscribe(*watcher));
            }
            (Kind::Message(session, _), 202) => self.used(*session),
            (Kind::Message(session, _), 404) => self.is_unknown(*session),
            (Kind::Message(session, Some(body)), 503) => {
                let (after, session, body) = (self.soon(2000), *session, body.clone());
                self.later(after, SimEvent::Answer(session, body));
            }
            (Kind::Delete(session), 200) => self.sessions[*session].is_over = true,
            (Kind::Theft, status) => {
                let is_refused = status >= 400 || value["error"].is_object();
                assert!(is_refused, "somebody else gets {status}: {value}");
            }
            (Kind::Revoked, status) => assert!(status == 404, "a revoked session gets {status}: {value}"),
            (Kind::NewTask(task), 200) => self.task_created(*task, &value),
            (Kind::GetTask(task), 200) => self.task_read(*task, &value),
            (Kind::Modern(principal, of), 200) => self.modern_ended(principal, of.clone(), &value),
            _ => {}
        }
    }

    fn session_opens(&mut self, principal: &'static str, head: &ResponseHead) {
        let Some(id) = head.headers.get("mcp-session-id") else { return };
        self.report.sessions += 1;
        let session = Session {
            principal,
            id: id.to_owned(),
            is_over: false,
            is_revoked: false,
            is_gone: false,
            calls: BTreeMap::new(),
            last_call: 0,
            used: (self.now, false),
            cursor: None,
            answered: BTreeSet::new(),
        };
        self.sessions.push(session);
        let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        self.later(Duration::ZERO, SimEvent::Answer(self.sessions.len() - 1, ready.to_string()));
    }

    fn used(&mut self, session: usize) {
        self.sessions[session].used = (self.now, true);
    }

    /// A server knows nothing of a session.
    fn is_unknown(&mut self, session: usize) {
        let (used, has_begun) = self.sessions[session].used;
        let idle = self.now - used;
        let may_end = idle > if has_begun { LIFETIME / 2 } else { LIFETIME / 8 };
        let state = &mut self.sessions[session];
        let may_end = may_end || state.is_over || state.principal == REVOKED;
        assert!(may_end || self.store.has_lost, "{} is unknown after {idle:?}", state.id);
        state.is_over = true;
    }

    fn lose(&mut self, session: usize, call: u64) {
        if let Some(call) = self.sessions[session].calls.get_mut(&call) {
            call.is_lost = true;
        }
    }

    /// An event is not kept any more.
    fn lose_cursor(&mut self, session: usize, call: u64, value: &Value) {
        let idle = self.now - self.sessions[session].used.0;
        let is_kept = !self.store.has_lost && !self.scenario.settings.behind && idle < LIFETIME / 8;
        let is_kept = is_kept && !self.sessions[session].is_over;
        let state = &self.sessions[session].calls[&call];
        let is_kept = is_kept && state.place.is_none() && !state.is_cancelled;
        assert!(!is_kept, "the events of {state:?} are not kept: {value}");
        self.lose(session, call);
    }

    fn resume_soon(&mut self, session: usize, call: u64) {
        let most = self.rng.of(&[10, 500, 5000]);
        let after = self.soon(most);
        self.later(after, SimEvent::Resume(session, call));
    }

    /// An exchange ends.
    pub(super) fn closed(&mut self, key: Key) {
        let Some(exchange) = self.exchanges.remove(&key) else { return };
        match exchange.kind {
            Kind::Call(session, id) => {
                let Some(call) = self.sessions[session].calls.get_mut(&id) else { return };
                match call.cursor.is_some() {
                    _ if call.place.is_some() => {}
                    // Its client does not wait for it. Its stream may be over without an answer.
                    _ if call.is_cancelled => call.is_lost = true,
                    true => self.resume_soon(session, id),
                    false => call.is_lost = true,
                }
            }
            Kind::Own(session) => {
                let (watcher, after) = (self.watcher_of(session), self.soon(3000));
                self.watchers[watcher].since = None;
                self.later(after, SimEvent::Listen(session));
            }
            Kind::Subscription(watcher) => {
                self.watchers[watcher].since = None;
                let after = self.soon(3000);
                self.later(after, SimEvent::Subscribe(watcher));
            }
            Kind::Message(session, Some(body)) => {
                let after = self.soon(3000);
                self.later(after, SimEvent::Answer(session, body));
            }
            Kind::NewTask(task) => self.tasks[task].is_lost = true,
            _ => {}
        }
    }

    pub(super) fn event(&mut self, key: Key, id: Option<String>, data: &[u8]) {
        let Some(exchange) = self.exchanges.get_mut(&key) else { return };
        let kind = exchange.kind.clone();
        let text = std::str::from_utf8(data).expect("text");
        let session = match kind {
            Kind::Call(session, _) | Kind::Own(session) => Some(session),
            _ => None,
        };
        if let (Some(session), Some(id)) = (session, &id) {
            let number = number_of(id).expect("a number");
            let before = exchange.last.replace(number);
            if !self.store.has_lost && !self.scenario.settings.behind {
                assert!(before.is_none_or(|before| before + 1 == number), "{before:?}, and then {id} {text}");
                let known = self.events.insert((session, id.clone()), text.to_owned());
                self.report.replayed += u64::from(known.is_some());
                assert!(known.as_deref().is_none_or(|known| known == text), "{id} was {known:?}, and is {text}");
            }
            self.used(session);
        }
        match kind {
            Kind::Call(session, call) => {
                if let Some(call) = self.sessions[session].calls.get_mut(&call) {
                    call.cursor = id.clone().or(call.cursor.take());
                }
            }
            Kind::Own(session) => {
                let state = &mut self.sessions[session];
                state.cursor = id.clone().or(state.cursor.take());
            }
            _ => {}
        }
        if text.is_empty() {
            return;
        }
        let value: Value = serde_json::from_str(text).expect("JSON");
        let place = id.unwrap_or_else(|| format!("{key:?}"));
        match (kind, value["method"].as_str()) {
            (Kind::Call(session, _), Some("elicitation/create")) => self.asked(session, &value),
            (Kind::Call(session, call), None) => self.ended(session, call, place, &value),
            (Kind::Own(session), Some("notifications/tools/list_changed")) => {
                let watcher = self.watcher_of(session);
                self.watchers[watcher].told = self.now;
                self.report.changes += 1;
            }
            (Kind::Subscription(watcher), Some("notifications/tools/list_changed")) => {
                self.watchers[watcher].told = self.now;
                self.report.changes += 1;
            }
            (Kind::NewTask(task), None) => self.task_created(task, &value),
            (Kind::GetTask(task), None) => self.task_read(task, &value),
            (Kind::Modern(principal, of), None) => self.modern_ended(principal, of, &value),
            (Kind::Theft | Kind::Revoked, _) => assert!(value["error"].is_object(), "somebody else gets {value}"),
            _ => {}
        }
    }

    /// A server asks the client of a session.
    fn asked(&mut self, session: usize, question: &Value) {
        let of = question["params"]["message"].as_str().unwrap_or_default();
        let is_own = self.sessions[session].calls.values().any(|call| call.of == of);
        assert!(is_own, "a client is asked for {of}");
        if !self.sessions[session].answered.insert(question["id"].to_string()) {
            return;
        }
        let result = json!({"action": "accept", "content": {"it": of}});
        let answer = json!({"jsonrpc": "2.0", "id": question["id"], "result": result});
        let after = self.soon(3000);
        self.later(after, SimEvent::Answer(session, answer.to_string()));
    }

    /// A call has its response.
    fn ended(&mut self, session: usize, call: u64, place: String, value: &Value) {
        if value["id"] != json!(call) {
            return;
        }
        let Some(call) = self.sessions[session].calls.get_mut(&call) else { return };
        if let Some(of) = value["result"]["of"].as_str() {
            assert_eq!(of, call.of, "an answer of another call");
            self.report.completed += 1;
        }
        call.error = value["error"]["code"].as_i64();
        let before = call.place.replace(place.clone());
        let has_lost = self.store.has_lost || self.scenario.settings.behind;
        assert!(has_lost || before.as_ref().is_none_or(|before| *before == place), "{call:?} ended at {before:?}");
        let is_expected = call.error.is_none() || self.scenario.faults > 0 || call.is_cancelled;
        let state = &self.sessions[session];
        let is_expected = is_expected || state.is_over || state.principal == REVOKED;
        assert!(is_expected, "nothing goes wrong, and a call ends with {value}");
    }

    /// Returns the watcher of the own stream of a session.
    fn watcher_of(&mut self, session: usize) -> usize {
        let known = self.watchers.iter().position(|watcher| watcher.session == Some(session));
        known.unwrap_or_else(|| {
            self.watchers.push(Watcher { session: Some(session), since: None, told: Instant::ZERO });
            self.watchers.len() - 1
        })
    }
}

/// Returns the number of an event in its stream.
fn number_of(id: &str) -> Option<u64> {
    id.rsplit_once('-')?.1.parse().ok()
}

/// Returns the params of a request of the newest revision.
pub(super) fn modern(params: &Value) -> Value {
    let mut params = params.clone();
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {
            "elicitation": {}, "extensions": {"io.modelcontextprotocol/tasks": {}},
        },
    });
    params
}

/// Returns the fields of a request of the newest revision.
pub(super) fn modern_fields(principal: &str, method: &str, name: Option<&str>) -> Headers {
    let headers = Headers::new().with("Authorization", principal).with("MCP-Protocol-Version", "2026-07-28");
    let headers = headers.with("Mcp-Method", method);
    match name {
        Some(name) => headers.with("Mcp-Name", name),
        None => headers,
    }
}
