//! The client engine alone: events in, outputs out, no bytes.

mod answer_tasks;
mod ask;
mod cache;
mod calls;
mod control;
mod elicitations;
mod ended;
mod era;
mod heads;
mod http;
mod hygiene;
mod logging;
mod notifications;
mod pings;
mod refresh;
mod sampling;
mod subscription;
mod tasks;
mod tolerance;
mod validate;
mod watching;

use super::*;
use crate::Call;
use crate::CallHandle;
use crate::InputAnswer;
use crate::Method;
use crate::call::{Custom, Pages, RawResult, custom, ping};
use crate::error::{CallError, DiagnosticKind, NegotiationError, Refusal, WaitReason};
use crate::exchange::{Closed, Endpoint, ExitStatus, Inbound, Outbound, Peer, Program, Sent, Start};
use crate::input::{Challenge, Change, InputKey, InputRequest, Watch};
use crate::model::tools;
use crate::rpc::{Message, Object, RawJson, parse};
use crate::version::{Era, ProtocolVersion, Versions};
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use alloc::{format, vec};
use bytes::Bytes;
use core::time::Duration;
use serde_json::{Value, json};

/// The configuration of a client over a given connection, with changed settings for the server.
fn given_with(change: impl FnOnce(&mut ClientCompat)) -> ClientConfig {
    let mut config = ClientConfig::given();
    change(&mut config.compat);
    config
}

/// A client and its recorded outputs.
struct Rig {
    client: Client,
    now: Instant,
    /// Messages on duplex exchanges, in order.
    sent: Vec<Value>,
    events: Vec<Event>,
    starts: Vec<(ExchangeId, Start)>,
    /// Exchanges whose `End` was sent.
    ended: Vec<ExchangeId>,
    aborted: Vec<ExchangeId>,
    /// HTTP exchanges whose last event the driver has reported.
    over: Vec<ExchangeId>,
}

impl Rig {
    fn new(config: ClientConfig) -> Self {
        let client = Client::new(Arc::new(config), [7; 32], Instant::ZERO);
        let (sent, events, starts) = (vec![], vec![], vec![]);
        let now = Instant::ZERO;
        let mut rig = Self { client, now, sent, events, starts, ended: vec![], aborted: vec![], over: vec![] };
        rig.drain();
        rig
    }

    /// A client of a program.
    fn program() -> Self {
        Self::new(ClientConfig::program(Program::new("server")))
    }

    /// A client after negotiation of this revision. Its recorded outputs are cleared.
    fn ready(version: ProtocolVersion, config: ClientConfig) -> Self {
        let mut rig = Self::new(ClientConfig { versions: Versions::new([version]), ..config });
        rig.open();
        let id = rig.last_id();
        match version.era() {
            Era::Modern => rig.say(json!({"jsonrpc": "2.0", "id": id, "result": discover(&[version.as_str()])})),
            Era::Legacy => rig.say(json!({"jsonrpc": "2.0", "id": id, "result": initialized(version.as_str())})),
        }
        assert_eq!(rig.client.state(), State::Ready);
        rig.clear();
        rig
    }

    fn modern() -> Self {
        Self::ready(ProtocolVersion::V2026_07_28, ClientConfig::given())
    }

    fn legacy() -> Self {
        Self::ready(ProtocolVersion::V2025_11_25, ClientConfig::given())
    }

    fn drain(&mut self) {
        while let Some(output) = self.client.poll_output() {
            match output {
                Output::Start(exchange, start) => self.starts.push((exchange, start)),
                Output::Send(exchange, outgoing) => {
                    assert!(self.is_open(exchange) && !self.ended.contains(&exchange), "{outgoing:?} after the end");
                    match outgoing {
                        Outbound::Message(bytes) => self.sent.push(serde_json::from_slice(&bytes).unwrap()),
                        Outbound::End => self.ended.push(exchange),
                        other => panic!("{other:?}"),
                    }
                }
                Output::Abort(exchange) => {
                    assert!(self.is_open(exchange), "ended twice");
                    assert!(!self.over.contains(&exchange), "ended after its end");
                    self.aborted.push(exchange);
                }
                Output::Event(event) => self.events.push(event),
            }
        }
    }

    fn is_open(&self, exchange: ExchangeId) -> bool {
        self.starts.iter().any(|(x, _)| *x == exchange) && !self.aborted.contains(&exchange)
    }

    fn clear(&mut self) {
        self.sent.clear();
        self.events.clear();
    }

    /// Returns the exchange that was started last.
    fn exchange(&self) -> ExchangeId {
        self.starts.last().unwrap().0
    }

    fn open(&mut self) {
        self.handle_event(self.exchange(), ExchangeEvent::Opened(Peer::default()));
    }

    fn handle_event(&mut self, exchange: ExchangeId, event: ExchangeEvent) {
        let is_http = self.starts.iter().any(|(x, start)| *x == exchange && matches!(start, Start::Http { .. }));
        if is_http && matches!(event, ExchangeEvent::Inbound(Inbound::End) | ExchangeEvent::Failed { .. }) {
            self.over.push(exchange);
        }
        self.client.handle_event(self.now, exchange, event);
        self.drain();
    }

    /// Receives a message of the server on the duplex exchange.
    fn say(&mut self, message: Value) {
        let bytes = Bytes::from(message.to_string());
        let item = match parse(bytes, 128) {
            Ok(message) => Inbound::Message(message),
            Err(defect) => Inbound::Invalid(defect),
        };
        self.handle_event(self.exchange(), ExchangeEvent::Inbound(item));
    }

    fn answer(&mut self, id: &Value, result: Value) {
        self.say(json!({"jsonrpc": "2.0", "id": id, "result": result}));
    }

    fn tick(&mut self, after: Duration) {
        self.now = self.now + after;
        self.client.handle_timeout(self.now);
        self.drain();
    }

    fn call(&mut self, call: Call<impl Method>) -> CallId {
        let id = self.client.call(self.now, call).unwrap().id();
        self.drain();
        id
    }

    fn echo(&mut self) -> CallId {
        self.call(tools::call("echo"))
    }

    /// Returns the id of the last request sent.
    fn last_id(&self) -> Value {
        self.sent.iter().rev().find(|m| m.get("method").is_some() && m.get("id").is_some()).unwrap()["id"].clone()
    }

    fn methods(&self) -> Vec<&str> {
        self.sent.iter().filter_map(|m| m["method"].as_str()).collect()
    }

    /// Returns the outcome of `call`. Panics unless it ended exactly once.
    fn outcome(&self, call: CallId) -> &Result<RawResult, CallError> {
        let mut found = self.events.iter().filter_map(|event| match event {
            Event::Ended { call: c, outcome } if *c == call => Some(outcome),
            _ => None,
        });
        let outcome = found.next().unwrap();
        assert!(found.next().is_none(), "ended twice");
        outcome
    }

    fn has_ended(&self, call: CallId) -> bool {
        self.events.iter().any(|event| matches!(event, Event::Ended { call: c, .. } if *c == call))
    }

    fn diagnostics(&self) -> Vec<DiagnosticKind> {
        let kind = |event: &Event| match event {
            Event::Diagnostic(diagnostic) => Some(diagnostic.kind),
            _ => None,
        };
        self.events.iter().filter_map(kind).collect()
    }

    /// Returns the input requests so far, in the order of their keys.
    fn questions(&self) -> Vec<(InputKey, InputRequest)> {
        let question = |event: &Event| match event {
            Event::InputNeeded { token, request, .. } => Some((token.key(), request.clone())),
            _ => None,
        };
        self.events.iter().filter_map(question).collect()
    }

    fn reply(&mut self, key: InputKey, answer: InputAnswer) {
        let input = Input::Command(ClientCommand::Answer(key, answer));
        self.client.apply(self.now, input).unwrap();
        self.drain();
    }

    fn termination(&self) -> Option<&Termination> {
        self.events.iter().find_map(|event| match event {
            Event::Terminated(why) => Some(why),
            _ => None,
        })
    }

    /// Asserts that no call, input request or timer is left.
    fn assert_at_rest(&self) {
        assert!(self.client.cx.calls.first().is_none());
        assert!(self.client.cx.questions.len() == 0);
        assert_eq!(self.client.poll_timeout(), None);
        assert_eq!(self.client.cx.env.ids.pending(), 0);
    }
}

fn discover(versions: &[&str]) -> Value {
    json!({
        "resultType": "complete", "supportedVersions": versions, "capabilities": {"tools": {}}, "ttlMs": 0, "cacheScope": "private",
        "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "peer", "version": "1"}},
    })
}

fn initialized(version: &str) -> Value {
    json!({"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": {"name": "peer", "version": "1"}})
}

fn error(id: &Value, code: i64) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": "no"}})
}

fn exited(code: i32) -> Closed {
    Closed::Exited(ExitStatus::exited(code))
}

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}
