//! A client and a server joined in memory. The bytes of each reach the other in pieces of a given
//! size. The application answers only after all bytes have arrived, so that its responses do not
//! depend on the pieces.

use crate::Limits;
use crate::call::{Call, CallHandle, Method};
use crate::client::{self, ClientCommands, ClientConfig};
use crate::exchange::*;
use crate::frame::Kind;
use crate::input::*;
use crate::model::Progress;
use crate::model::lifecycle::Implementation;
use crate::rpc::{Object, RawJson};
use crate::server::{self, IncomingRequest, Responder, ServerConfig};
use crate::time::Instant;
use crate::wired::{WiredClient, WiredServer};
use alloc::collections::{BTreeMap, VecDeque};
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use bytes::Bytes;

/// The inputs of a server, in order, for a replay.
#[derive(Clone, Debug)]
enum Told {
    Accept(Kind),
    Input(WiredServerInput),
}

/// The directions of a connection that have ended, as carried out by the net.
#[derive(Default)]
struct Halves {
    client: bool,
    server: bool,
}

pub(super) struct Net {
    pub(super) client: WiredClient,
    pub(super) server: WiredServer,
    pub(super) now: Instant,
    config: (Arc<ClientConfig>, Arc<ServerConfig>),
    chunk: usize,
    /// The server's connection for each connection of the client.
    ends: BTreeMap<ConnectionId, ConnectionId>,
    halves: BTreeMap<ConnectionId, Halves>,
    waiting: VecDeque<(Responder, IncomingRequest)>,
    /// Requests of the tool `slow`, which the tests answer.
    pub(super) held: Vec<Responder>,
    /// Events, as text.
    pub(super) log: Vec<String>,
    /// Every action of the client and of the server.
    pub(super) actions: (Vec<String>, Vec<String>),
    /// Every input of the client, and of the server.
    client_told: Vec<(Instant, WiredClientInput)>,
    server_told: Vec<(Instant, Told)>,
    /// Bytes written in either direction of each connection of the client.
    pub(super) wire: BTreeMap<(ConnectionId, bool), Vec<u8>>,
}

impl Net {
    pub(super) fn new(client: ClientConfig, limits: Limits, chunk: usize) -> Self {
        let mut server = ServerConfig::new(Implementation::new("server", "1"));
        server.limits = limits;
        Self::between(client, server, chunk)
    }

    pub(super) fn between(client: ClientConfig, mut server: ServerConfig, chunk: usize) -> Self {
        server.capabilities.tools = Some(Default::default());
        let config = (Arc::new(client), Arc::new(server));
        Self {
            client: WiredClient::new(config.0.clone(), [1; 32], Instant::ZERO),
            server: WiredServer::new(config.1.clone(), [2; 32], Instant::ZERO),
            now: Instant::ZERO,
            config,
            chunk,
            ends: BTreeMap::new(),
            halves: BTreeMap::new(),
            waiting: VecDeque::new(),
            held: Vec::new(),
            log: Vec::new(),
            actions: Default::default(),
            client_told: Vec::new(),
            server_told: Vec::new(),
            wire: BTreeMap::new(),
        }
    }

    pub(super) fn call<M: Method>(&mut self, call: Call<M>) -> CallHandle<M> {
        self.client_told.push((self.now, Input::Command(ClientCommand::Call(call.clone().into_raw()))));
        self.client.call(self.now, call).expect("the call is accepted")
    }

    /// Applies an input to the client.
    pub(super) fn tell(&mut self, input: WiredClientInput) {
        self.client_told.push((self.now, input.clone()));
        self.client.apply(self.now, input).expect("it is accepted");
    }

    /// Applies an input to the server.
    pub(super) fn tell_server(&mut self, input: WiredServerInput) {
        self.server_told.push((self.now, Told::Input(input.clone())));
        self.server.apply(self.now, input).expect("it is accepted");
    }

    /// Runs until nothing more happens without time.
    pub(super) fn rest(&mut self) {
        loop {
            self.carry();
            let Some((responder, incoming)) = self.waiting.pop_front() else { break };
            self.handle(responder, &incoming);
        }
    }

    /// Fires the next timer of either side.
    pub(super) fn tick(&mut self) {
        let next = [self.client.poll_timeout(), self.server.poll_timeout()].into_iter().flatten().min();
        self.now = next.expect("a timer is armed");
        self.tell(Input::Tick);
        self.tell_server(Input::Tick);
        self.rest();
    }

    pub(super) fn answer(&mut self, responder: Responder, text: &str) {
        let content = RawJson::parse(format!(r#"[{{"type":"text","text":"{text}"}}]"#)).expect("it is json");
        let answer = responder.write(Outcome::Complete(Object::new().with("content", content)));
        self.tell_server(Input::Command(ServerCommand::Respond(answer)));
    }

    /// Takes the log.
    pub(super) fn log(&mut self) -> Vec<String> {
        core::mem::take(&mut self.log)
    }

    pub(super) fn channels(&self) -> usize {
        self.actions.0.iter().filter(|action| action.starts_with("Open(")).count()
    }

    /// Replays the recorded inputs on new engines, and takes the outputs only at the end. The
    /// actions must be the recorded ones.
    pub(super) fn check_replay(&self) {
        let mut client = WiredClient::new(self.config.0.clone(), [1; 32], Instant::ZERO);
        for (now, input) in &self.client_told {
            client.apply(*now, input.clone()).expect("it was accepted");
        }
        let actions: Vec<String> = core::iter::from_fn(|| client.poll_output()).map(|a| format!("{a:?}")).collect();
        assert_eq!(actions, self.actions.0);

        let mut server = WiredServer::new(self.config.1.clone(), [2; 32], Instant::ZERO);
        for (now, told) in &self.server_told {
            match told.clone() {
                Told::Accept(kind) => drop(server.accept(*now, kind, Peer::default())),
                Told::Input(input) => assert!(server.apply(*now, input).is_ok()),
            }
        }
        let actions: Vec<String> = core::iter::from_fn(|| server.poll_output()).map(|a| format!("{a:?}")).collect();
        assert_eq!(actions, self.actions.1);
    }

    fn carry(&mut self) {
        loop {
            if let Some(action) = self.client.poll_output() {
                self.actions.0.push(format!("{action:?}"));
                self.client_action(action);
            } else if let Some(action) = self.server.poll_output() {
                self.actions.1.push(format!("{action:?}"));
                self.server_action(action);
            } else {
                break;
            }
        }
    }

    fn client_action(&mut self, action: Action<client::Event>) {
        match action {
            Action::Open(channel, endpoint) => {
                let kind = if matches!(endpoint, Endpoint::Origin(_)) { Kind::HttpServer } else { Kind::Lines };
                self.server_told.push((self.now, Told::Accept(kind)));
                let end = self.server.accept(self.now, kind, Peer::default());
                self.ends.insert(channel, end);
                self.tell(Input::Event(channel, IoEvent::Opened(Peer::default())));
            }
            Action::Secure(channel, _) => self.tell(Input::Event(channel, IoEvent::Secured)),
            Action::Write(channel, bytes) => {
                self.wire.entry((channel, true)).or_default().extend_from_slice(&bytes);
                self.tell(Input::Event(channel, IoEvent::Written(bytes.len())));
                let end = self.ends[&channel];
                for piece in pieces(&bytes, self.chunk) {
                    self.tell_server(Input::Event(end, IoEvent::Read(piece)));
                }
            }
            Action::Close(channel, Shutdown::WriteHalf) => {
                let end = self.ends[&channel];
                self.tell_server(Input::Event(end, IoEvent::ReadClosed));
                self.halves.entry(channel).or_default().client = true;
                self.end_if_both(channel);
            }
            Action::Close(channel, Shutdown::Terminate | Shutdown::Abort) => {
                self.tell(Input::Event(channel, IoEvent::Closed(Closed::Aborted)));
                if let Some(end) = self.ends.get(&channel).copied() {
                    self.tell_server(Input::Event(end, IoEvent::Closed(Closed::Reset)));
                }
            }
            // Other tests cover the end of connections.
            Action::Notice(..) | Action::Read(..) => {}
            Action::Event(event) => self.log.push(client_event(&event)),
        }
    }

    fn server_action(&mut self, action: Action<server::Event>) {
        let start = |end: &ConnectionId, ends: &BTreeMap<ConnectionId, ConnectionId>| {
            ends.iter().find(|(_, to)| *to == end).map(|(from, _)| *from).expect("it was accepted")
        };
        match action {
            Action::Open(..) | Action::Secure(..) | Action::Notice(..) => panic!("a server emits no {action:?}"),
            Action::Read(..) => {}
            Action::Write(end, bytes) => {
                let channel = start(&end, &self.ends);
                self.wire.entry((channel, false)).or_default().extend_from_slice(&bytes);
                self.tell_server(Input::Event(end, IoEvent::Written(bytes.len())));
                for piece in pieces(&bytes, self.chunk) {
                    self.tell(Input::Event(channel, IoEvent::Read(piece)));
                }
            }
            Action::Close(end, Shutdown::WriteHalf) => {
                let channel = start(&end, &self.ends);
                self.tell(Input::Event(channel, IoEvent::ReadClosed));
                self.halves.entry(channel).or_default().server = true;
                self.end_if_both(channel);
            }
            Action::Close(end, Shutdown::Terminate | Shutdown::Abort) => {
                let channel = start(&end, &self.ends);
                self.tell_server(Input::Event(end, IoEvent::Closed(Closed::Aborted)));
                self.tell(Input::Event(channel, IoEvent::Closed(Closed::Reset)));
            }
            Action::Event(server::Event::Request(responder, incoming)) => {
                self.waiting.push_back((responder, incoming));
            }
            Action::Event(event) => self.log.push(server_event(&event)),
        }
    }

    fn end_if_both(&mut self, channel: ConnectionId) {
        let halves = &self.halves[&channel];
        if halves.client && halves.server {
            let end = self.ends[&channel];
            self.tell_server(Input::Event(end, IoEvent::Closed(Closed::Eof)));
            self.tell(Input::Event(channel, IoEvent::Closed(Closed::Eof)));
        }
    }

    fn handle(&mut self, responder: Responder, incoming: &IncomingRequest) {
        let tool: String = incoming.params.optional("name").ok().flatten().unwrap_or_default();
        self.log.push(format!("server: {} {tool}", incoming.method));
        match tool.as_str() {
            "slow" => self.held.push(responder),
            "steps" => {
                for n in 1..=2 {
                    let note = Note::Progress(Progress::new(f64::from(n)));
                    self.tell_server(Input::Command(ServerCommand::Notify(responder.key(), note)));
                }
                self.answer(responder, "steps");
            }
            other => self.answer(responder, other),
        }
    }
}

fn pieces(bytes: &Bytes, size: usize) -> impl Iterator<Item = Bytes> + use<> {
    let bytes = bytes.clone();
    (0..bytes.len()).step_by(size).map(move |at| bytes.slice(at..bytes.len().min(at.saturating_add(size))))
}

fn client_event(event: &client::Event) -> String {
    match event {
        client::Event::Ready(info) => format!("ready {}", info.version),
        client::Event::Progress { call, progress } => format!("call {} is at {}", call.0, progress.progress),
        client::Event::Ended { call, outcome: Ok(_) } => format!("call {} succeeded", call.0),
        client::Event::Ended { call, outcome: Err(error) } => format!("call {}: {error}", call.0),
        client::Event::Diagnostic(diagnostic) => format!("diagnostic {}", diagnostic.kind.code()),
        client::Event::Terminated(why) => format!("terminated {why:?}"),
        other => format!("{other:?}"),
    }
}

fn server_event(event: &server::Event) -> String {
    match event {
        server::Event::Cancelled(_) => "server: cancelled".into(),
        server::Event::Diagnostic(diagnostic) => format!("server: diagnostic {}", diagnostic.kind.code()),
        server::Event::Terminated => "server: terminated".into(),
        other => format!("server: {other:?}"),
    }
}
