//! A client and a server over sockets in memory, in virtual time. One correct driver runs both. It
//! makes one error if a test plants it.

use super::super::rules::Rule;
use super::checked;
use crate::{Step, Transfer, TransferOutput};
use alloc::collections::{BTreeMap, VecDeque};
use alloc::format;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use bytes::Bytes;
use core::time::Duration;
use mcp_proto::call::{CallId, RawResult};
use mcp_proto::client::{self, ClientCommands, ClientConfig};
use mcp_proto::error::CallError;
use mcp_proto::exchange::*;
use mcp_proto::input::{Admission, AdmitToken, Answer, Outcome};
use mcp_proto::model::lifecycle::Implementation;
use mcp_proto::model::tools;
use mcp_proto::rpc::{Object, RawJson};
use mcp_proto::server::{self, Responder, ServerCommands, ServerConfig};
use mcp_proto::time::{Instant, earliest};
use mcp_proto::wired::{Connection, ConnectionOutput, Kind, SharedServer, WiredClient, WiredServer};
use std::io::{self, ErrorKind};

/// An engine with its application, as the driver sees it.
pub(super) trait Driven {
    fn accept(&mut self, now: Instant, kind: Kind, peer: Peer) -> ConnectionId;
    fn handle_io(&mut self, now: Instant, id: ConnectionId, event: IoEvent);
    fn handle_timeout(&mut self, now: Instant);
    /// Returns the next output for a connection. Passes the events on.
    fn poll_output(&mut self, now: Instant) -> Option<(ConnectionId, Output)>;
    fn poll_timeout(&self) -> Option<Instant>;
}

pub(super) enum Output {
    Open(Endpoint),
    Act(ConnectionOutput),
}

/// Returns the output of an action, or its event.
fn sorted<E>(action: Action<E>) -> Result<(ConnectionId, Output), Option<E>> {
    Ok(match action {
        Action::Open(id, endpoint) => (id, Output::Open(endpoint)),
        Action::Secure(id, name) => (id, Output::Act(ConnectionOutput::Secure(name))),
        Action::Write(id, bytes) => (id, Output::Act(ConnectionOutput::Write(bytes))),
        Action::Read(id, reads) => (id, Output::Act(ConnectionOutput::Read(reads))),
        Action::Close(id, how) => (id, Output::Act(ConnectionOutput::Close(how))),
        Action::Notice(..) => return Err(None),
        Action::Event(event) => return Err(Some(event)),
    })
}

/// A client and the outcomes of its calls.
pub(super) struct Caller {
    pub(super) client: WiredClient,
    pub(super) outcomes: Vec<Result<RawResult, CallError>>,
    pub(super) is_terminated: bool,
}

impl Driven for Caller {
    fn accept(&mut self, _: Instant, _: Kind, _: Peer) -> ConnectionId {
        unreachable!("a client accepts nothing")
    }

    fn handle_io(&mut self, now: Instant, id: ConnectionId, event: IoEvent) {
        self.client.handle_io(now, id, event);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.client.handle_timeout(now);
    }

    fn poll_output(&mut self, _: Instant) -> Option<(ConnectionId, Output)> {
        loop {
            match sorted(self.client.poll_output()?) {
                Ok(output) => return Some(output),
                Err(Some(client::Event::Ended { outcome, .. })) => self.outcomes.push(outcome),
                Err(Some(client::Event::Terminated(_))) => self.is_terminated = true,
                Err(_) => {}
            }
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.client.poll_timeout()
    }
}

/// The application of a server.
#[derive(Default)]
pub(super) struct Application {
    /// Length of the text of each response.
    pub(super) size: usize,
    /// It does not answer.
    pub(super) holds: bool,
    held: Vec<Responder>,
    admissions: Vec<AdmitToken>,
    pub(super) is_terminated: bool,
}

impl Application {
    fn handle(&mut self, event: server::Event) -> Option<Answer> {
        match event {
            server::Event::Request(responder, _) if self.holds => self.held.push(responder),
            server::Event::Request(responder, _) => {
                let text = "x".repeat(self.size);
                let content = RawJson::parse(format!(r#"[{{"type":"text","text":"{text}"}}]"#)).expect("json");
                return Some(responder.write(Outcome::Complete(Object::new().with("content", content))));
            }
            server::Event::Admit(token, _) => self.admissions.push(token),
            server::Event::Terminated => self.is_terminated = true,
            _ => {}
        }
        None
    }
}

/// A server in one loop, or with a task for each connection.
pub(super) trait Serves: Driven {
    fn create(config: ServerConfig, planted: Option<Rule>) -> Self;
    fn application(&mut self) -> &mut Application;
    fn admit(&mut self, now: Instant, to: AdmitToken);
    fn shutdown(&mut self, now: Instant);
}

pub(super) struct Loop {
    server: WiredServer,
    application: Application,
}

impl Serves for Loop {
    fn create(config: ServerConfig, _: Option<Rule>) -> Self {
        let server = checked(WiredServer::new(Arc::new(config), [1; 32], Instant::ZERO));
        Self { server, application: Application::default() }
    }

    fn application(&mut self) -> &mut Application {
        &mut self.application
    }

    fn admit(&mut self, now: Instant, to: AdmitToken) {
        self.server.admit(now, to, Admission::Accept(None));
    }

    fn shutdown(&mut self, now: Instant) {
        self.server.shutdown(now, Duration::ZERO);
    }
}

impl Driven for Loop {
    fn accept(&mut self, now: Instant, kind: Kind, peer: Peer) -> ConnectionId {
        self.server.accept(now, kind, peer)
    }

    fn handle_io(&mut self, now: Instant, id: ConnectionId, event: IoEvent) {
        self.server.handle_io(now, id, event);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.server.handle_timeout(now);
    }

    fn poll_output(&mut self, now: Instant) -> Option<(ConnectionId, Output)> {
        loop {
            let event = match sorted(self.server.poll_output()?) {
                Ok(output) => return Some(output),
                Err(event) => event,
            };
            if let Some(answer) = event.and_then(|event| self.application.handle(event)) {
                self.server.respond(now, answer);
            }
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.server.poll_timeout()
    }
}

pub(super) struct Tasks {
    server: SharedServer,
    tasks: BTreeMap<ConnectionId, Connection>,
    application: Application,
    takes_turns: bool,
}

impl Serves for Tasks {
    fn create(config: ServerConfig, planted: Option<Rule>) -> Self {
        Self {
            server: SharedServer::new(Arc::new(config), [1; 32], Instant::ZERO),
            tasks: BTreeMap::new(),
            application: Application::default(),
            takes_turns: planted != Some(Rule::Turn),
        }
    }

    fn application(&mut self) -> &mut Application {
        &mut self.application
    }

    fn admit(&mut self, now: Instant, to: AdmitToken) {
        self.server.admit(now, to, Admission::Accept(None));
    }

    fn shutdown(&mut self, now: Instant) {
        self.server.shutdown(now, Duration::ZERO);
    }
}

impl Tasks {
    /// Takes turns until all are empty.
    fn take_turns(&mut self, now: Instant) {
        let mut moved = true;
        while core::mem::take(&mut moved) {
            for task in self.tasks.values_mut() {
                let turn = task.take_turn();
                moved |= !turn.is_empty();
                let reply = self.server.exchange(now, turn);
                moved |= !reply.is_empty();
                task.apply(now, reply);
            }
            while let Some(event) = self.server.poll_event() {
                moved = true;
                if let Some(answer) = self.application.handle(event) {
                    self.server.respond(now, answer);
                }
            }
        }
    }
}

impl Driven for Tasks {
    fn accept(&mut self, now: Instant, kind: Kind, peer: Peer) -> ConnectionId {
        let connection = self.server.accept(now, kind, peer);
        let id = ConnectionId(connection.number());
        self.tasks.insert(id, checked(connection));
        id
    }

    fn handle_io(&mut self, now: Instant, id: ConnectionId, event: IoEvent) {
        self.tasks.get_mut(&id).expect("a task").handle_io(now, event);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.server.handle_timeout(now);
        self.tasks.values_mut().for_each(|task| task.handle_timeout(now));
    }

    fn poll_output(&mut self, now: Instant) -> Option<(ConnectionId, Output)> {
        if self.takes_turns {
            self.take_turns(now);
        }
        let output = self.tasks.iter_mut().find_map(|(id, task)| Some((*id, Output::Act(task.poll_output()?))));
        self.tasks.retain(|_, task| !task.is_closed());
        output
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.tasks.values().map(Connection::poll_timeout).fold(self.server.poll_timeout(), earliest)
    }
}

/// One direction of a socket.
#[derive(Default)]
pub(super) struct Pipe {
    pub(super) bytes: VecDeque<u8>,
    /// Its writer has ended.
    pub(super) is_ended: bool,
    /// One of its ends no longer exists.
    is_cut: bool,
}

/// The sockets: each is the pipe to the server, and the one to the client.
pub(super) struct Net {
    pub(super) sockets: Vec<[Pipe; 2]>,
    backlog: VecDeque<usize>,
    pub(super) refuses: bool,
    /// Maximum number of bytes in a pipe.
    pub(super) room: usize,
    /// Maximum number of bytes that are read at a time.
    pub(super) piece: usize,
    /// Number of reads in each millisecond, if they take time.
    pub(super) pace: Option<usize>,
    reads_left: usize,
}

impl Net {
    pub(super) fn connect(&mut self) -> usize {
        self.sockets.push(Default::default());
        self.backlog.push_back(self.sockets.len() - 1);
        self.sockets.len() - 1
    }

    fn read(&mut self, socket: usize, direction: usize) -> Option<io::Result<Bytes>> {
        let pipe = &mut self.sockets[socket][direction];
        if !pipe.bytes.is_empty() {
            self.reads_left = self.reads_left.checked_sub(1)?;
            let n = self.piece.min(pipe.bytes.len());
            return Some(Ok(pipe.bytes.drain(..n).collect::<Vec<_>>().into()));
        }
        if pipe.is_ended {
            return Some(Ok(Bytes::new()));
        }
        pipe.is_cut.then(|| Err(ErrorKind::ConnectionReset.into()))
    }

    fn write(&mut self, socket: usize, direction: usize, bytes: &[u8]) -> Option<io::Result<usize>> {
        let pipe = &mut self.sockets[socket][direction];
        if pipe.is_cut {
            return Some(Err(ErrorKind::BrokenPipe.into()));
        }
        let n = bytes.len().min(self.room - pipe.bytes.len());
        pipe.bytes.extend(&bytes[..n]);
        (n > 0).then_some(Ok(n))
    }

    fn release(&mut self, socket: usize) {
        self.sockets[socket].iter_mut().for_each(|pipe| pipe.is_cut = true);
    }

    /// Returns when more can be read.
    fn poll_timeout(&self, now: Instant) -> Option<Instant> {
        let waits = self.sockets.iter().flatten().any(|pipe| !pipe.bytes.is_empty());
        self.pace.filter(|_| waits).map(|_| now + Duration::from_millis(1))
    }
}

struct Link {
    transfer: Transfer,
    socket: Option<usize>,
}

/// A driver: an engine and its connections.
pub(super) struct Side<E> {
    pub(super) engine: E,
    links: BTreeMap<ConnectionId, Link>,
    /// The pipe of each socket that it writes to.
    direction: usize,
    planted: Option<Rule>,
    has_timed_out: bool,
}

impl<E: Driven> Side<E> {
    fn new(engine: E, direction: usize, planted: Option<Rule>) -> Self {
        Self { engine, links: BTreeMap::new(), direction, planted, has_timed_out: false }
    }

    /// Carries out the outputs of the engine, and reports what happened, until there is neither.
    /// Returns whether there was any.
    fn turn(&mut self, now: Instant, net: &mut Net) -> bool {
        let mut moved = false;
        loop {
            while !self.plants(Rule::Outputs, self.has_timed_out)
                && let Some((id, output)) = self.engine.poll_output(now)
            {
                moved = true;
                self.act(now, net, id, output);
            }
            let Some((id, event)) = self.next_event(now, net) else { return moved };
            moved = true;
            self.report(now, id, event);
        }
    }

    fn accept(&mut self, now: Instant, kind: Kind, net: &mut Net) {
        while let Some(socket) = net.backlog.pop_front() {
            let id = self.engine.accept(now, kind, Peer::unix(None));
            self.links.insert(id, Link { transfer: Transfer::accepted(), socket: Some(socket) });
        }
    }

    fn act(&mut self, now: Instant, net: &mut Net, id: ConnectionId, output: Output) {
        match output {
            Output::Open(endpoint) => {
                let mut transfer = Transfer::opening(&endpoint);
                let socket = (!net.refuses).then(|| net.connect());
                match socket {
                    Some(_) => assert!(transfer.opened(now, Peer::default(), false)),
                    None => transfer.not_opened(Closed::Refused),
                }
                self.links.insert(id, Link { transfer, socket });
            }
            Output::Act(output) => {
                if let Some(link) = self.links.get_mut(&id) {
                    link.transfer.act(now, output);
                }
            }
        }
    }

    fn next_event(&mut self, now: Instant, net: &mut Net) -> Option<(ConnectionId, IoEvent)> {
        let reads_always = self.plants(Rule::ReadOff, true);
        for (id, link) in &mut self.links {
            loop {
                match link.transfer.poll_output(now) {
                    Some(TransferOutput::Event(event)) => {
                        if let Some(socket) = link.socket.filter(|_| link.transfer.is_closed()) {
                            net.release(socket);
                        }
                        return Some((*id, event));
                    }
                    Some(TransferOutput::Signal(signal)) => unreachable!("{signal:?} to a socket"),
                    None if link.transfer(net, self.direction, reads_always) => {}
                    None => break,
                }
            }
        }
        None
    }

    /// Reports an event. This is where an error is planted.
    fn report(&mut self, mut now: Instant, mut id: ConnectionId, event: IoEvent) {
        if matches!(event, IoEvent::Closed(_)) {
            self.links.remove(&id);
        }
        let mut events = vec![event.clone()];
        match (self.planted, &event) {
            (Some(Rule::TimeBack), IoEvent::Written(_)) if now > Instant::ZERO => {
                now = Instant::new(now.since_origin() - Duration::from_secs(1));
            }
            (Some(Rule::Unknown), _) => id = ConnectionId(77),
            (Some(Rule::AfterClosed), IoEvent::Closed(_))
            | (Some(Rule::OpenedTwice), IoEvent::Opened(_))
            | (Some(Rule::AfterReadClosed), IoEvent::ReadClosed) => events.push(event),
            (Some(Rule::BeforeOpened), IoEvent::Opened(_))
            | (Some(Rule::Aborted | Rule::BothEnded), IoEvent::Closed(_)) => events.clear(),
            (Some(Rule::EmptyRead), IoEvent::ReadClosed) => events = vec![IoEvent::Read(Bytes::new())],
            (Some(Rule::Written), IoEvent::Written(n)) => events = vec![IoEvent::Written(2 * n)],
            (Some(Rule::EarlyEof), IoEvent::ReadClosed) => events.push(IoEvent::Closed(Closed::Eof)),
            _ => {}
        }
        events.into_iter().for_each(|event| self.engine.handle_io(now, id, event));
    }

    fn handle_timeout(&mut self, now: Instant) {
        if self.poll_timeout().is_some_and(|at| at <= now) {
            self.has_timed_out = true;
            self.engine.handle_timeout(now);
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let late = if self.plants(Rule::Timer, true) { Duration::from_secs(11) } else { Duration::ZERO };
        self.engine.poll_timeout().map(|at| at + late)
    }

    fn plants(&self, rule: Rule, when: bool) -> bool {
        when && self.planted == Some(rule)
    }
}

impl Link {
    /// Writes and reads once. Returns whether anything happened.
    fn transfer(&mut self, net: &mut Net, direction: usize, reads_always: bool) -> bool {
        let Some(socket) = self.socket else { return false };
        let wrote = match self.transfer.step() {
            Some(Step::Write(pieces)) => net.write(socket, direction, &pieces.slices()[0]),
            Some(Step::Flush) => Some(Ok(0)),
            Some(Step::End) => {
                net.sockets[socket][direction].is_ended = true;
                Some(Ok(0))
            }
            None => None,
        };
        let has_written = wrote.is_some();
        wrote.into_iter().for_each(|wrote| self.transfer.wrote(wrote));
        let reads = self.transfer.wants_read() || reads_always && self.transfer.reads();
        let read = if reads { net.read(socket, 1 - direction) } else { None };
        let has_read = read.is_some();
        read.into_iter().for_each(|read| self.transfer.read(read));
        has_written || has_read
    }
}

/// Both sides, the sockets between them, and the time.
pub(super) struct World<S> {
    pub(super) now: Instant,
    pub(super) net: Net,
    pub(super) client: Side<Caller>,
    pub(super) server: Side<S>,
    kind: Kind,
}

impl<S: Serves> World<S> {
    /// Returns a client and a server. The driver of the side with an error makes this one.
    pub(super) fn new(kind: Kind, errors: [Option<Rule>; 2]) -> Self {
        Self::with(kind, errors, |_, _| {})
    }

    /// The same, with other configurations.
    pub(super) fn with(
        kind: Kind,
        [at_client, at_server]: [Option<Rule>; 2],
        configure: impl FnOnce(&mut ClientConfig, &mut ServerConfig),
    ) -> Self {
        let mut calls = match kind {
            Kind::Lines => ClientConfig::given(),
            Kind::HttpClient | Kind::HttpServer => ClientConfig::url("http://localhost/mcp").expect("a URL"),
            Kind::WsClient(_) => ClientConfig::url("ws://localhost/mcp").expect("a URL"),
        };
        let mut server = ServerConfig::new(Implementation::new("server", "1"));
        server.capabilities.tools = Some(Default::default());
        configure(&mut calls, &mut server);
        let client = checked(WiredClient::new(Arc::new(calls), [2; 32], Instant::ZERO));
        let caller = Caller { client, outcomes: Vec::new(), is_terminated: false };
        let (sockets, backlog) = (Vec::new(), VecDeque::new());
        let (room, piece) = (usize::MAX, usize::MAX);
        Self {
            now: Instant::ZERO,
            net: Net { sockets, backlog, refuses: false, room, piece, pace: None, reads_left: usize::MAX },
            client: Side::new(caller, 0, at_client),
            server: Side::new(S::create(server, at_server), 1, at_server),
            kind,
        }
    }

    /// Runs to this time, in milliseconds. Then both sides have nothing to do.
    pub(super) fn run(&mut self, until: u64) {
        let until = Instant::from_millis(until);
        loop {
            self.settle();
            let at = [self.client.poll_timeout(), self.server.poll_timeout(), self.net.poll_timeout(self.now)];
            let next = at.into_iter().flatten().min().unwrap_or(until);
            if next > until || self.now >= until {
                break;
            }
            self.now = self.now.max(next);
            self.client.handle_timeout(self.now);
            self.server.handle_timeout(self.now);
        }
        self.now = until;
    }

    /// Runs until nothing happens without time.
    fn settle(&mut self) {
        self.net.reads_left = self.net.pace.unwrap_or(usize::MAX);
        loop {
            let moved = self.client.turn(self.now, &mut self.net);
            self.server.accept(self.now, self.kind, &mut self.net);
            if !self.server.turn(self.now, &mut self.net) && !moved {
                return;
            }
        }
    }

    /// Makes a call with a timeout, in seconds.
    pub(super) fn call(&mut self, timeout: u64) -> CallId {
        let call = tools::call("hello").timeout(Duration::from_secs(timeout));
        self.client.engine.client.call(self.now, call).expect("the call is accepted").id()
    }

    pub(super) fn application(&mut self) -> &mut Application {
        self.server.engine.application()
    }

    /// Admits the connections that wait for it.
    pub(super) fn admit(&mut self) {
        for token in core::mem::take(&mut self.application().admissions) {
            self.server.engine.admit(self.now, token);
        }
    }

    pub(super) fn shutdown(&mut self) {
        self.server.engine.shutdown(self.now);
    }

    /// Ends both sides, each in order.
    pub(super) fn end(&mut self) {
        self.client.engine.client.close(self.now);
        self.run(self.now.since_origin().as_millis() as u64 + 15_000);
        self.shutdown();
        self.run(self.now.since_origin().as_millis() as u64 + 15_000);
        assert!(self.client.engine.is_terminated, "the client has ended");
        assert!(self.application().is_terminated, "the server has ended");
        assert!(self.client.links.is_empty() && self.server.links.is_empty(), "every connection has closed");
    }
}
