//! A server with arbitrary input: the first byte configures it, the rest are steps of its handlers,
//! its driver and its clients.

use super::script::Script;
use super::talk;
use crate::sim::app::{self, Application};
use crate::sim::{accept, is_of_refused};
use bytes::Bytes;
use mcp_proto::LogLevel;
use mcp_proto::exchange::{
    Action, Closed, ConnectionId, Headers, Inbound, IoEvent, Outbound, Peer, RequestHead, Shutdown,
};
use mcp_proto::frame::{Conn, Kind};
use mcp_proto::input::{Change, Input, Note, RequestKey, ServerCommand};
use mcp_proto::limits::FrameLimits;
use mcp_proto::model::logging::LogMessage;
use mcp_proto::server::{Event, ServerCommands};
use mcp_proto::wired::WiredServer;
use mcp_proto::{Instant, ServerConfig};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// Maximum steps of one script. A shorter script finds the same faults.
const STEPS: usize = 200;

/// For any input, no request is handed out, cancelled or answered twice, the output is well formed,
/// nothing follows the end, limits hold, and no state is left. The same script gives the same
/// bytes.
///
/// # Panics
/// If not.
pub fn check(data: &[u8]) {
    assert_eq!(run(data), run(data), "the same script says the same");
}

/// Runs a script. Returns the whole output of the server.
pub fn run(data: &[u8]) -> Vec<u8> {
    let mut script = Script::new(data);
    let mut run = Run::new(&mut script);
    for _ in 0..STEPS {
        if script.is_over() {
            break;
        }
        run.step(&mut script);
    }
    run.end();
    run.text
}

fn config(script: &mut Script<'_>, mut config: ServerConfig) -> ServerConfig {
    let flags = script.byte();
    config.capabilities.resources.get_or_insert_default().subscribe = true;
    config.capabilities.logging.get_or_insert_default();
    let limits = &mut config.limits;
    if flags & 1 == 1 {
        limits.server.max_running_requests = 4;
        limits.server.max_running_per_exchange = 2;
        limits.server.max_exchanges = 3;
        limits.server.max_unsent = 600;
        limits.server.max_backlog = 2000;
        limits.server.max_rounds = 2;
        limits.server.max_elicitations = 1;
        limits.server.max_queued_events = 3;
        limits.frame.max_line = 600;
        limits.frame.max_request_body = 500;
        limits.frame.max_read_ahead = 300;
    }
    if flags & 2 == 2 {
        limits.server.handler_deadline = Some(Duration::from_secs(20));
        limits.server.handshake_timeout = Some(Duration::from_secs(3));
    }
    config.compat.reuse_ids = flags & 4 == 0;
    limits.server.page_size = 3;
    config
}

/// The state that a message of the server requires in the retry.
fn state(bytes: &[u8]) -> Option<String> {
    let text = str::from_utf8(bytes).ok()?;
    let (_, rest) = text.split_once("\"requestState\":\"")?;
    rest.split_once('"').map(|(state, _)| state.to_owned()).filter(|state| state.is_ascii())
}

struct Channel {
    kind: Kind,
    /// Reads the output of the server, as a client would.
    reads: Conn,
    /// Whether a request is in progress on `reads`, for HTTP.
    asked: bool,
    closed: bool,
    unwritten: usize,
}

struct Run {
    engine: WiredServer,
    app: Application,
    config: Arc<ServerConfig>,
    now: Instant,
    channels: BTreeMap<ConnectionId, Channel>,
    keys: BTreeSet<RequestKey>,
    terminated: bool,
    aborted: Vec<ConnectionId>,
    /// The whole output.
    text: Vec<u8>,
    /// The messages of the clients in both directions.
    said: talk::Said,
}

impl Run {
    fn new(script: &mut Script<'_>) -> Self {
        let app = Application::new(app::router());
        let config = Arc::new(config(script, app.router.config()));
        let mut run = Self {
            engine: WiredServer::new(config.clone(), [7; 32], Instant::ZERO),
            app,
            config,
            now: Instant::ZERO,
            channels: BTreeMap::new(),
            keys: BTreeSet::new(),
            terminated: false,
            aborted: Vec::new(),
            text: Vec::new(),
            said: talk::Said::default(),
        };
        run.accept(script);
        run
    }

    fn step(&mut self, script: &mut Script<'_>) {
        match script.below(16) {
            0 => self.now = self.now + talk::time(script),
            1 => self.accept(script),
            2..=6 => {
                let (method, text) = talk::of_client(script, &mut self.said);
                let channel = self.channel(script);
                let kind = self.channels.get(&channel).map_or(Kind::Lines, |channel| channel.kind);
                let text = match kind {
                    Kind::Lines => text + "\n",
                    _ => talk::request(script, method, &text),
                };
                self.handle_event(channel, IoEvent::Read(text.into()));
            }
            7 => {
                let bytes = Bytes::copy_from_slice(script.chunk());
                let channel = self.channel(script);
                self.handle_event(channel, IoEvent::Read(bytes));
            }
            8 | 9 => self.act(script),
            10 => self.tick(),
            11 => self.write_all(),
            12 => {
                let channel = self.channel(script);
                let wire = match script.below(4) {
                    0 => IoEvent::ReadClosed,
                    1 => IoEvent::Opened(Peer::default()),
                    2 => IoEvent::Written(usize::from(script.byte()) * 7),
                    _ => IoEvent::Closed(talk::closed(script)),
                };
                self.handle_event(channel, wire);
            }
            13 => {
                // The request may never have existed, or has ended.
                let n = script.below(8) as u64;
                let custom = Note::Custom("acme/note".into(), mcp_proto::Object::new());
                if n == 5 {
                    let changes = self.app.replace(script.below(2) == 1, self.engine.config());
                    let publish = |change| self.tell(Input::Command(ServerCommand::Publish(change)));
                    return changes.into_iter().for_each(publish);
                }
                self.tell(Input::Command(match n {
                    6 => ServerCommand::Publish(Change::Resource("a:1/part".into())),
                    7 => ServerCommand::Notify(RequestKey::new(1), Note::Log(LogMessage::new(LogLevel::Error, "d"))),
                    _ => ServerCommand::Notify(RequestKey::new(n), custom),
                }));
                self.tell(Input::Command(ServerCommand::Elicited("1".into())));
            }
            14 => self.abort_all(),
            _ if script.below(8) == 0 => self.tell(Input::Command(ServerCommand::Shutdown(talk::time(script)))),
            _ => self.tick(),
        }
    }

    /// All clients disconnect.
    fn end(&mut self) {
        self.drive_tasks();
        self.tell(Input::Command(ServerCommand::Shutdown(Duration::from_secs(1))));
        for _ in 0..10_000 {
            if self.terminated {
                break;
            }
            self.abort_all();
            self.drive_tasks();
            match self.engine.poll_timeout() {
                Some(at) => self.now = self.now.max(at),
                None => {
                    let Some(id) = self.open().next() else { break };
                    self.handle_event(id, IoEvent::Closed(Closed::Eof));
                }
            }
            self.tick();
        }
        assert!(self.terminated, "it never ends: {:?}", self.engine);
        assert_eq!((self.engine.running(), self.engine.poll_timeout()), (0, None));
        assert!(self.app.tasks.is_empty(), "requests that were not cancelled: {:?}", self.app.tasks.keys());
        assert_eq!(accept(&mut self.engine, self.now, Kind::Lines), None);
        for wire in [IoEvent::Read(Bytes::from_static(b"{}\n")), IoEvent::ReadClosed, IoEvent::Closed(Closed::Eof)] {
            self.handle_event(ConnectionId(1), wire);
        }
        self.tick();
    }

    // ---- the handlers

    /// One of the tasks makes its next step.
    fn act(&mut self, script: &mut Script<'_>) {
        let n = script.below(3);
        if let Some(key) = self.app.tasks.keys().nth(n).copied() {
            self.does(key);
        }
    }

    fn drive_tasks(&mut self) {
        while let Some(key) = self.app.tasks.keys().next().copied() {
            self.does(key);
        }
    }

    fn does(&mut self, key: RequestKey) {
        if let Some(command) = self.app.act(key, self.now) {
            self.tell(Input::Command(command));
        }
    }

    // ---- the driver

    fn accept(&mut self, script: &mut Script<'_>) {
        let kind = *script.pick(&[Kind::Lines, Kind::HttpServer]);
        let open = self.open().count();
        if let Some(id) = accept(&mut self.engine, self.now, kind) {
            assert!(open < self.config.limits.server.max_exchanges, "one channel too many");
            let reads = Conn::new(if kind == Kind::Lines { kind } else { Kind::HttpClient }, &FrameLimits::default());
            let channel = Channel { kind, reads, asked: false, closed: false, unwritten: 0 };
            assert!(self.channels.insert(id, channel).is_none(), "{id:?} is used twice");
        }
        self.drain();
    }

    fn tell(&mut self, input: mcp_proto::input::WiredServerInput) {
        let timeout = self.engine.poll_timeout();
        if let Err(refused) = self.engine.apply(self.now, input.clone()) {
            assert_eq!(refused.value, input, "it is handed back");
            assert_eq!(self.engine.poll_timeout(), timeout, "a refusal changes nothing");
            assert!(self.engine.poll_output().is_none(), "a refusal says nothing");
        }
        self.drain();
        let limits = &self.config.limits.server;
        assert!(self.engine.running() <= limits.max_running_requests, "too many requests run");
    }

    fn handle_event(&mut self, channel: ConnectionId, wire: IoEvent) {
        if let Some(known) = self.channels.get_mut(&channel) {
            match &wire {
                IoEvent::Closed(_) => known.closed = true,
                IoEvent::Written(n) => known.unwritten = known.unwritten.saturating_sub(*n),
                IoEvent::Opened(_) | IoEvent::Secured | IoEvent::Read(_) | IoEvent::ReadClosed => {}
            }
        }
        self.tell(Input::Event(channel, wire));
    }

    fn tick(&mut self) {
        self.tell(Input::Tick);
        assert!(self.engine.poll_timeout().is_none_or(|at| at > self.now), "a due timer has not fired");
    }

    fn open(&self) -> impl Iterator<Item = ConnectionId> + '_ {
        self.channels.iter().filter(|(_, channel)| !channel.closed).map(|(id, _)| *id)
    }

    /// Returns one of the newest connections, mostly.
    fn channel(&self, script: &mut Script<'_>) -> ConnectionId {
        let back = script.below(4);
        self.channels.keys().rev().nth(back).or(self.channels.keys().next_back()).copied().unwrap_or(ConnectionId(9))
    }

    fn write_all(&mut self) {
        let ids: Vec<_> = self.open().filter(|id| self.channels[id].unwritten > 0).collect();
        for id in ids {
            let count = self.channels[&id].unwritten;
            self.handle_event(id, IoEvent::Written(count));
        }
    }

    fn abort_all(&mut self) {
        for id in std::mem::take(&mut self.aborted) {
            if !self.channels[&id].closed {
                self.handle_event(id, IoEvent::Closed(Closed::Aborted));
            }
        }
    }

    fn drain(&mut self) {
        while let Some(action) = self.engine.poll_output() {
            assert!(!self.terminated, "after the end: {action:?}");
            if is_of_refused(&action) {
                continue;
            }
            match action {
                Action::Open(..) | Action::Secure(..) | Action::Notice(..) => panic!("a server emits no {action:?}"),
                Action::Read(id, _) => assert!(self.channels.contains_key(&id), "{id:?} was never accepted"),
                Action::Write(id, bytes) => self.wrote(id, bytes),
                Action::Close(id, how) => {
                    assert!(self.channels.contains_key(&id), "{id:?} was never accepted");
                    if how == Shutdown::Abort {
                        self.aborted.push(id);
                    }
                }
                Action::Event(event) => self.event(event),
            }
        }
    }

    fn wrote(&mut self, id: ConnectionId, bytes: Bytes) {
        self.text.extend_from_slice(&bytes);
        if let Some(state) = state(&bytes) {
            self.said.sealed = state;
        }
        let channel = self.channels.get_mut(&id).expect("a channel that was accepted");
        assert!(!channel.closed, "{id:?} is closed");
        assert!(!bytes.is_empty(), "an empty write");
        channel.unwritten += bytes.len();
        if channel.kind != Kind::Lines && !channel.asked {
            let head =
                RequestHead { method: "POST".into(), target: "/".into(), headers: Headers::new().with("Host", "a") };
            channel.reads.encode(Outbound::Request { head, body: Bytes::new() });
            while channel.reads.poll_write().is_some() {}
            channel.asked = true;
        }
        channel.reads.bytes(bytes);
        while let Some(item) = channel.reads.poll_item() {
            match item {
                Inbound::End => channel.asked = false,
                Inbound::Invalid(defect) => panic!("a server wrote {defect:?}"),
                Inbound::Reject(defect) => panic!("a server wrote {defect:?}"),
                _ => {}
            }
        }
        assert_eq!(channel.reads.broken(), None, "what a server writes is well formed");
    }

    fn event(&mut self, event: Event) {
        match event {
            Event::Request(responder, incoming) => {
                let key = responder.key();
                assert!(self.keys.insert(key), "{key:?} is handed out twice");
                if let Some(answer) = self.app.request(responder, incoming, self.now) {
                    let _ = self.engine.act(self.now, answer);
                }
            }
            Event::Cancelled(key) => {
                assert!(self.app.tasks.remove(&key).is_some(), "{key:?} does not run");
            }
            Event::Terminated => self.terminated = true,
            _ => {}
        }
    }
}
