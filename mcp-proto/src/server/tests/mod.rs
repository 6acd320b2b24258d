//! The engine driven directly: events made from JSON text, outputs taken apart. No bytes, no
//! connections.

mod admission;
mod cancel;
mod cors;
mod elicitations;
mod headers;
mod hosts;
mod http;
mod legacy;
mod limits;
mod modern;
mod notes;
mod progress;
mod properties;
mod rounds;
mod sampling;
mod shares;
mod store;
mod tasks;
mod tolerance;
mod watching;
mod web;

use super::*;
use crate::error::Diagnostic;
use crate::exchange::RequestHead;
use crate::exchange::{Body, Closed, Sent};
use crate::input::{InputRequest, Outcome};
use crate::limits::Limits;
use crate::model::capabilities::ClientCapabilities;
use crate::model::elicitation::Form;
use crate::model::lifecycle::Implementation;
use crate::rpc::{ErrorObject, Object, Payload, RawJson, parse_batch_or_message};
use crate::version::{ProtocolVersion, Versions};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use bytes::Bytes;

pub(super) const A: ExchangeId = ExchangeId(1);
pub(super) const B: ExchangeId = ExchangeId(2);

/// A server, its clock, and its pending outputs.
pub(super) struct Bench {
    pub(super) server: Server,
    pub(super) now: Instant,
}

/// A request that the engine gave to the application.
pub(super) type Handed = (Responder, IncomingRequest);

impl Bench {
    pub(super) fn new() -> Self {
        Self::with(|_| {})
    }

    pub(super) fn with(change: impl FnOnce(&mut ServerConfig)) -> Self {
        Self::seeded([7; 32], change)
    }

    pub(super) fn seeded(seed: [u8; 32], change: impl FnOnce(&mut ServerConfig)) -> Self {
        let mut config = ServerConfig::new(Implementation::new("bench", "1.0"));
        change(&mut config);
        Self { server: Server::new(Arc::new(config), seed, Instant::ZERO), now: Instant::ZERO }
    }

    /// A server with this exchange open and no message on it.
    pub(super) fn open(mut self, x: ExchangeId) -> Self {
        self.server.handle_event(self.now, x, ExchangeEvent::Opened(Peer::default()));
        self
    }

    /// A server with this exchange open, on which `initialize` chose `version`.
    pub(super) fn initialized(mut self, x: ExchangeId, version: &str, capabilities: &str) -> Self {
        self = self.open(x);
        let said = self.say(x, &initialize(version, capabilities));
        assert!(said[0].contains(&format!(r#""protocolVersion":"{version}""#)), "{said:?}");
        self
    }

    pub(super) fn handle_event(&mut self, x: ExchangeId, event: ExchangeEvent) {
        self.server.handle_event(self.now, x, event);
    }

    pub(super) fn item(&mut self, x: ExchangeId, item: Inbound) {
        self.handle_event(x, ExchangeEvent::Inbound(item));
    }

    /// Receives a line and returns the responses on the same exchange.
    pub(super) fn say(&mut self, x: ExchangeId, line: &str) -> Vec<String> {
        self.item(x, read(line));
        self.heard(x)
    }

    /// Returns the messages sent on an exchange. Drops all other outputs.
    pub(super) fn heard(&mut self, x: ExchangeId) -> Vec<String> {
        self.outputs().iter().filter_map(|output| on(x, output)).collect()
    }

    pub(super) fn outputs(&mut self) -> Vec<Output> {
        core::iter::from_fn(|| self.server.poll_output()).collect()
    }

    pub(super) fn events(&mut self) -> Vec<Event> {
        let event = |output| if let Output::Event(event) = output { Some(event) } else { None };
        self.outputs().into_iter().filter_map(event).collect()
    }

    /// Returns the codes of the pending diagnostics.
    pub(super) fn codes(&mut self) -> Vec<&'static str> {
        let code = |event| if let Event::Diagnostic(d) = event { Some(d.kind.code()) } else { None };
        self.events().into_iter().filter_map(code).collect()
    }

    /// Receives a line that must produce one request.
    pub(super) fn request(&mut self, x: ExchangeId, line: &str) -> Handed {
        self.item(x, read(line));
        self.handed()
    }

    /// Receives a line that must produce one request, which stays unanswered.
    pub(super) fn runs(&mut self, x: ExchangeId, line: &str) {
        let _ = self.request(x, line);
    }

    /// Returns the one pending request.
    pub(super) fn handed(&mut self) -> Handed {
        let outputs = self.outputs();
        let text = format!("{outputs:?}");
        let handed = outputs.into_iter().find_map(|output| match output {
            Output::Event(Event::Request(responder, incoming)) => Some((responder, incoming)),
            _ => None,
        });
        handed.unwrap_or_else(|| panic!("no request: {text}"))
    }

    pub(super) fn complete(&mut self, responder: Responder, result: &str) {
        self.answer(responder, Outcome::Complete(object(result)));
    }

    pub(super) fn answer(&mut self, responder: Responder, outcome: Outcome) {
        let answer = responder.write(outcome);
        self.server.respond(self.now, answer);
    }

    pub(super) fn pass(&mut self, time: Duration) {
        self.now = self.now + time;
        self.server.handle_timeout(self.now);
    }

    /// Returns whether every table is in its initial state, except for the open exchanges.
    pub(super) fn at_rest(&self) -> bool {
        let idle = self.server.wire.env.exchanges.values().all(|exchange| match &exchange.binding {
            Binding::Duplex(duplex) => duplex.is_idle(),
            Binding::Http(_) => true,
        });
        idle && self.server.requests.is_empty()
            && self.server.wire.env.admitting.is_empty()
            && self.server.wire.env.timers.next().is_none()
    }
}

/// Returns the text that an output sends on an exchange.
pub(super) fn on(x: ExchangeId, output: &Output) -> Option<String> {
    let text = |bytes: &Bytes| String::from_utf8(bytes.to_vec()).unwrap();
    match output {
        Output::Send(at, outgoing) if *at == x => Some(match outgoing {
            Outbound::Message(bytes) | Outbound::Event { data: bytes, .. } => text(bytes),
            Outbound::Response { head, body: Body::Full(bytes) } => format!("{} {}", head.status, text(bytes)),
            Outbound::Response { head, body: Body::Stream } => format!("{} stream", head.status),
            Outbound::Comment(text) => format!(":{text}"),
            Outbound::End => "end".into(),
            other => format!("{other:?}"),
        }),
        Output::Abort(at) if *at == x => Some("abort".into()),
        _ => None,
    }
}

pub(super) fn read(line: &str) -> Inbound {
    parse_batch_or_message(Bytes::copy_from_slice(line.as_bytes()), &Limits::default().frame).into()
}

pub(super) fn object(text: &str) -> Object {
    Object::read(&RawJson::parse(text.as_bytes().to_vec()).unwrap()).unwrap()
}

/// A parsed message of the server.
pub(super) fn message(text: &str) -> crate::rpc::Message {
    crate::rpc::parse(Bytes::copy_from_slice(text.as_bytes()), 128).unwrap()
}

/// Returns the result of a response.
pub(super) fn result(text: &str) -> Object {
    match message(text) {
        crate::rpc::Message::Response(response) => match response.payload {
            Payload::Result(result) => Object::read(&result).unwrap(),
            Payload::Error(error) => panic!("{error}"),
        },
        other => panic!("{other:?}"),
    }
}

/// Returns the error of a response.
pub(super) fn error(text: &str) -> ErrorObject {
    match message(text) {
        crate::rpc::Message::Response(response) => match response.payload {
            Payload::Error(error) => error,
            Payload::Result(result) => panic!("{result:?}"),
        },
        crate::rpc::Message::Error(error) => error,
        other => panic!("{other:?}"),
    }
}

pub(super) fn initialize(version: &str, capabilities: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":"init","method":"initialize","params":{{"protocolVersion":"{version}","capabilities":{capabilities},"clientInfo":{{"name":"c","version":"0"}}}}}}"#
    )
}

pub(super) fn legacy(id: &str, method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#)
}

/// A request of 2026-07-28. `rest` has further members of the params, each after a comma.
pub(super) fn modern(id: &str, method: &str, rest: &str) -> String {
    modern_with(id, method, "{}", rest)
}

pub(super) fn modern_with(id: &str, method: &str, capabilities: &str, rest: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{"_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{capabilities}}}{rest}}}}}"#
    )
}

pub(super) fn failed() -> ExchangeEvent {
    ExchangeEvent::Failed { sent: Sent::Maybe, why: Closed::Reset }
}

pub(super) fn ask(name: &str) -> Outcome {
    Outcome::NeedInput { requests: vec![question(name)], state: None }
}

pub(super) fn question(name: &str) -> (String, InputRequest) {
    (name.to_string(), Form::new("?").text("it").into())
}
