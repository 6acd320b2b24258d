//! The older revisions over HTTP, at the engine: requests as their parts, and the outputs of each
//! exchange as lines of text.

mod elicitations;
mod expiry;
mod listening;
mod nodes;
mod rates;
mod requests;
mod resource;
mod revoke;
mod sessions;
mod sse;
mod streams;
mod tasks;
mod tool_stream;
mod watching;

use super::*;
use crate::exchange::{Headers, ResponseHead};
use crate::input::Admission;
use alloc::collections::{BTreeMap, VecDeque};

/// A server, its open exchanges, and the pending outputs of each.
pub(super) struct Site {
    pub(super) bench: Bench,
    /// The sender of the requests.
    pub(super) peer: Peer,
    last: u64,
    said: BTreeMap<ExchangeId, VecDeque<String>>,
    heads: BTreeMap<ExchangeId, ResponseHead>,
    requests: VecDeque<Handed>,
    events: VecDeque<Event>,
}

/// An open session: its id and its revision.
#[derive(Clone)]
pub(super) struct Client {
    pub(super) session: String,
    version: &'static str,
}

impl Site {
    pub(super) fn new() -> Self {
        Self::with(|_| {})
    }

    pub(super) fn with(change: impl FnOnce(&mut ServerConfig)) -> Self {
        let bench = Bench::with(change);
        Self {
            bench,
            peer: Peer::default(),
            last: 0,
            said: BTreeMap::new(),
            heads: BTreeMap::new(),
            requests: VecDeque::new(),
            events: VecDeque::new(),
        }
    }

    /// Sends a request without a body, or with a body that follows.
    pub(super) fn begin(&mut self, method: &str, headers: Headers) -> ExchangeId {
        self.begin_at("/mcp", method, headers)
    }

    /// As [`begin`](Self::begin), at another target.
    pub(super) fn begin_at(&mut self, target: &str, method: &str, headers: Headers) -> ExchangeId {
        self.last += 1;
        let x = ExchangeId(self.last);
        if self.peer != Peer::default() {
            self.bench.handle_event(x, ExchangeEvent::From(self.peer.clone().into()));
        }
        self.bench.item(
            x,
            Inbound::Request(RequestHead { method: method.to_owned().into(), target: target.into(), headers }),
        );
        self.take();
        x
    }

    /// Admits everything that waits, for one principal.
    pub(super) fn admit_all(&mut self) {
        for event in core::mem::take(&mut self.events) {
            if let Event::Admit(token, _) = event {
                let admission = Admission::Accept(Some("somebody".into()));
                self.bench.server.admit(self.bench.now, token, admission);
            }
        }
        self.take();
    }

    /// Sends a POST with this body.
    pub(super) fn post(&mut self, headers: Headers, body: &str) -> ExchangeId {
        self.post_at("/mcp", headers, body)
    }

    /// As [`post`](Self::post), at another target.
    pub(super) fn post_at(&mut self, target: &str, headers: Headers, body: &str) -> ExchangeId {
        let headers = if headers.get("content-type").is_none() {
            headers.with("Content-Type", "application/json")
        } else {
            headers
        };
        let x = self.begin_at(target, "POST", headers);
        self.bench.item(x, read(body));
        self.bench.item(x, Inbound::End);
        self.take();
        x
    }

    /// Sends a request without a body.
    pub(super) fn bare(&mut self, method: &str, headers: Headers) -> ExchangeId {
        self.bare_at("/mcp", method, headers)
    }

    /// As [`bare`](Self::bare), at another target.
    pub(super) fn bare_at(&mut self, target: &str, method: &str, headers: Headers) -> ExchangeId {
        let x = self.begin_at(target, method, headers);
        self.bench.item(x, Inbound::End);
        self.take();
        x
    }

    /// Opens a session of this revision and sends `notifications/initialized`.
    pub(super) fn session(&mut self, version: &'static str, capabilities: &str) -> Client {
        let x = self.post(Headers::new(), &initialize(version, capabilities));
        let session = self.head(x).headers.get("mcp-session-id").expect("a session is opened").into();
        let client = Client { session, version };
        let x = self.post(client.headers(), r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        assert_eq!(self.said(x), ["202 "]);
        client
    }

    /// Returns the outputs on an exchange since the last call. A response is its status and body,
    /// an event its type or id, `|` and its data.
    pub(super) fn said(&mut self, x: ExchangeId) -> Vec<String> {
        self.take();
        self.said.remove(&x).unwrap_or_default().into()
    }

    /// Returns the head of the response.
    pub(super) fn head(&mut self, x: ExchangeId) -> &ResponseHead {
        self.take();
        self.heads.get(&x).expect("it was answered")
    }

    /// Returns the status of the response, and the code of its JSON-RPC error.
    pub(super) fn refusal(&mut self, x: ExchangeId) -> (u16, i64) {
        let said = self.said(x);
        let [only] = &said[..] else { panic!("{said:?}") };
        let (status, body) = only.split_once(' ').unwrap();
        (status.parse().unwrap(), error(body).code)
    }

    /// Returns the oldest pending request.
    pub(super) fn handed(&mut self) -> Handed {
        self.take();
        self.requests.pop_front().expect("a request was handed out")
    }

    pub(super) fn complete(&mut self, responder: Responder, result: &str) {
        self.bench.complete(responder, result);
        self.take();
    }

    /// Returns the next event that is neither a request nor a diagnostic.
    pub(super) fn event(&mut self) -> Option<Event> {
        self.take();
        let at = self.events.iter().position(|event| !matches!(event, Event::Diagnostic(_)))?;
        self.events.remove(at)
    }

    /// Returns the codes of the diagnostics since the last call.
    pub(super) fn codes(&mut self) -> Vec<&'static str> {
        self.take();
        let (told, rest) = self.events.drain(..).partition(|event| matches!(event, Event::Diagnostic(_)));
        self.events = rest;
        let told: VecDeque<Event> = told;
        told.iter()
            .filter_map(|event| if let Event::Diagnostic(d) = event { Some(d.kind.code()) } else { None })
            .collect()
    }

    /// The client of an exchange disconnects.
    pub(super) fn cut(&mut self, x: ExchangeId) {
        self.bench.handle_event(x, failed());
        self.take();
    }

    /// The driver reports the number of unsent bytes.
    pub(super) fn unsent(&mut self, x: ExchangeId, n: usize) {
        self.bench.handle_event(x, ExchangeEvent::Unsent(n));
        self.take();
    }

    pub(super) fn pass(&mut self, time: Duration) {
        self.bench.pass(time);
        self.take();
    }

    /// Returns whether no state of any client is left.
    pub(super) fn at_rest(&self) -> bool {
        let server = &self.bench.server;
        self.bench.at_rest()
            && server.wire.env.exchanges.is_empty()
            && server.wire.http.is_empty()
            && server.wire.env.shares.is_empty()
    }

    /// Returns the bytes of all histories.
    pub(super) fn kept(&self) -> usize {
        self.bench.server.wire.env.shares.all(Bound::History)
    }

    pub(super) fn take(&mut self) {
        for output in self.bench.outputs() {
            match output {
                Output::Event(Event::Request(responder, incoming)) => self.requests.push_back((responder, incoming)),
                Output::Event(event) => self.events.push_back(event),
                Output::Send(x, outgoing) => {
                    if let Outbound::Response { head, .. } = &outgoing {
                        self.heads.insert(x, head.clone());
                    }
                    let text = |bytes: &Bytes| String::from_utf8(bytes.to_vec()).unwrap();
                    let line = match &outgoing {
                        Outbound::Event { event, id, retry, data } => {
                            let id = event.or(id.as_deref());
                            let retry = retry.map(|retry| format!("({})", retry.as_millis())).unwrap_or_default();
                            format!("{}{retry}|{}", id.unwrap_or_default(), text(data))
                        }
                        _ => on(x, &Output::Send(x, outgoing)).unwrap(),
                    };
                    self.said.entry(x).or_default().push_back(line);
                }
                Output::Abort(x) => self.said.entry(x).or_default().push_back("abort".into()),
            }
        }
    }
}

impl Client {
    /// Returns the fields of every request in the session.
    pub(super) fn headers(&self) -> Headers {
        Headers::new().with("Mcp-Session-Id", self.session.as_str()).with("MCP-Protocol-Version", self.version)
    }

    /// Returns the fields of a request that resumes a stream.
    pub(super) fn after(&self, cursor: &str) -> Headers {
        self.headers().with("Last-Event-ID", cursor)
    }

    /// Calls a tool.
    pub(super) fn call(&self, site: &mut Site, id: u32) -> ExchangeId {
        site.post(self.headers(), &call(id))
    }
}

pub(super) fn call(id: u32) -> String {
    legacy(&id.to_string(), "tools/call", r#"{"name":"t","_meta":{"progressToken":"p"}}"#)
}

/// Returns the response to [`call`] with an empty result, as sent.
pub(super) fn answer(id: u32) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#)
}

/// Returns the id of an event, and its data.
pub(super) fn event(line: &str) -> (&str, &str) {
    let (id, data) = line.split_once('|').unwrap_or_else(|| panic!("no event: {line}"));
    (id.split('(').next().unwrap(), data)
}
