//! The world of one run: its links, its next steps, and the invariants of every run.

use super::super::app::{self, Deed, Made, Task, Work};
use super::super::digest::log::{Engine, Log, Op};
use super::super::link::Pipe;
use super::super::report::{InputKind, Report, Transcript};
use super::super::rng::Rng;
use super::{Scenario, Transport};
use mcp_proto::client::{self, State, Termination, Timer};
use mcp_proto::exchange::{Action, Closed, ConnectionId, ConnectionNotice, ExitStatus, IoEvent, Shutdown};
use mcp_proto::input::Input;
use mcp_proto::input::{
    CallId, ClientCommand, InputAnswer, InputKey, InputToken, NotificationId, RequestKey, WiredClientInput,
};
use mcp_proto::model::elicitation::ElicitResult;
use mcp_proto::record::Redaction;
use mcp_proto::rpc::Object;
use mcp_proto::wired::{WiredClient, WiredServer, WiredTimer};
use mcp_proto::{Call, CallError, ClientConfig, Instant, Router, server, tools};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

pub(super) struct Side {
    pub(super) engine: WiredClient,
    pub(super) made: BTreeMap<CallId, Made>,
    pub(super) questions: Vec<(InputToken, InputKey)>,
    pub(super) open_questions: BTreeSet<InputKey>,
    /// Tracked notifications that have not ended.
    pub(super) notes: BTreeSet<NotificationId>,
    pub(super) terminated: Option<Termination>,
    /// Connections whose opening gets no response.
    pub(super) hanging: BTreeSet<ConnectionId>,
    pub(super) closing: bool,
    pub(super) config: Arc<ClientConfig>,
    pub(super) seed: [u8; 32],
    /// Every input with its time, for a replay.
    pub(super) log: Vec<(Instant, WiredClientInput)>,
    pub(super) said: Transcript,
    pub(super) seen: Seen,
    /// The output of the recorder.
    pub(super) tape: Arc<Mutex<Vec<u8>>>,
}

/// The observations of a client, for the comparison with its own numbers.
#[derive(Default)]
pub(super) struct Seen {
    pub(super) opened: u64,
    pub(super) closed: u64,
    pub(super) steps_taken: u64,
    pub(super) steps_told: u64,
    pub(super) restarts: u64,
    pub(super) pings_missed: u64,
    pub(super) diagnostics: u64,
    /// Bytes that it received, and bytes that it wrote.
    pub(super) told: u64,
    pub(super) written: u64,
}

pub(super) struct Link {
    pub(super) client: usize,
    pub(super) at_client: ConnectionId,
    pub(super) at_server: ConnectionId,
    pub(super) up: Pipe,
    pub(super) down: Pipe,
    /// Whether the last byte written ended a line, so that a line can be slipped in.
    pub(super) boundary: [bool; 2],
    /// Whether the server and the client read.
    pub(super) reads: [bool; 2],
    /// When the program behind it exits.
    pub(super) exit: Option<Instant>,
}

enum Next {
    Arrive { link: usize, up: bool },
    Accept { link: usize, up: bool },
    ClientTimer(usize),
    ServerTimer,
    Exit(usize),
    Task(RequestKey),
    Open(usize),
    Operation,
}

/// A server, its clients, and their links.
pub struct World {
    pub(super) scenario: Scenario,
    pub(super) rng: Rng,
    pub(super) now: Instant,
    pub(super) server: WiredServer,
    pub(super) router: Router,
    pub(super) tasks: BTreeMap<RequestKey, Task>,
    pub(super) server_terminated: bool,
    pub(super) clients: Vec<Side>,
    pub(super) links: Vec<Link>,
    pub(super) opening: Vec<(Instant, usize, ConnectionId)>,
    pub(super) operations: u64,
    /// The number of random faults.
    pub(super) faults: u64,
    pub(super) next_operation: Instant,
    pub(super) tag: u64,
    /// Tags of calls that the server's application was given.
    pub(super) ran: BTreeSet<u64>,
    pub(super) trace: bool,
    pub(super) record: bool,
    pub(super) tape: Option<Redaction>,
    pub(super) quiet: bool,
    /// The inputs of the engines, if they are recorded.
    pub(in crate::sim) log: Log,
    /// The results so far.
    pub report: Report,
}

impl World {
    /// A world at its beginning; `trace` prints what happens.
    pub fn new(scenario: &Scenario, trace: bool) -> Self {
        Self::with(scenario, trace, false, None, Log::default())
    }

    /// A world that records the inputs and outputs of its clients, for [`refeed`](Self::refeed).
    pub fn recorded(scenario: &Scenario) -> Self {
        Self::with(scenario, false, true, None, Log::default())
    }

    /// A world whose clients are recorded as those of a program are.
    pub fn taped(scenario: &Scenario, redaction: Redaction) -> Self {
        Self::with(scenario, false, false, Some(redaction), Log::default())
    }

    /// A world that records the inputs of its engines.
    pub(in crate::sim) fn logged(scenario: &Scenario) -> Self {
        Self::with(scenario, false, false, None, Log::on())
    }

    pub(super) fn with(scenario: &Scenario, trace: bool, record: bool, tape: Option<Redaction>, mut log: Log) -> Self {
        let mut rng = Rng::new(scenario.seed);
        let router = app::router();
        let seed = rng.seed();
        let server = WiredServer::new(Arc::new(super::server(&router)), seed, Instant::ZERO);
        log.push(Engine::Server, Instant::ZERO, || Op::Server(seed));
        let mut world = Self {
            operations: 0,
            faults: 0,
            scenario: scenario.clone(),
            now: Instant::ZERO,
            server,
            router,
            tasks: BTreeMap::new(),
            server_terminated: false,
            clients: Vec::new(),
            links: Vec::new(),
            opening: Vec::new(),
            next_operation: Instant::ZERO,
            tag: 0,
            ran: BTreeSet::new(),
            trace,
            record,
            tape,
            quiet: false,
            log,
            report: Report::default(),
            rng,
        };
        for _ in 0..scenario.settings.clients {
            world.add_client();
        }
        world
    }

    pub(super) fn add_client(&mut self) {
        let (config, seed) = (Arc::new(self.scenario.settings.client()), self.rng.seed());
        let number = self.clients.len() as u64;
        self.log.push(Engine::Client(number), self.now, || Op::Client { rng: 0, seed });
        let tape = Arc::<Mutex<Vec<u8>>>::default();
        let engine = self.engine(&config, seed, &tape);
        self.clients.push(Side {
            engine,
            tape,
            config,
            seed,
            made: BTreeMap::new(),
            questions: Vec::new(),
            open_questions: BTreeSet::new(),
            notes: BTreeSet::new(),
            terminated: None,
            hanging: BTreeSet::new(),
            closing: false,
            log: Vec::new(),
            said: Transcript::default(),
            seen: Seen::default(),
        });
        self.drain_client(self.clients.len() - 1);
    }

    /// How many clients there are.
    pub fn clients(&self) -> usize {
        self.clients.len()
    }

    /// Runs to the end: the operations, then the close of all clients. After that no state may be
    /// left.
    pub fn run(&mut self) -> Report {
        self.drive_bounded(1_000_000);
        self.quiet = true;
        for client in 0..self.clients.len() {
            self.input(client, Input::Command(ClientCommand::Close));
        }
        self.drive_bounded(200_000);
        self.log.push(Engine::Server, self.now, || Op::Shutdown(1_000));
        self.server.shutdown(self.now, Duration::from_secs(1));
        self.drain_server();
        self.drive_bounded(200_000);
        self.check_rest();
        self.spurious_after_the_end();
        self.log.push(Engine::Server, self.now, || Op::Stats(format!("{:?}", self.server.stats())));
        for (number, side) in self.clients.iter().enumerate() {
            let stats = || Op::Stats(format!("{:?}", side.engine.stats()));
            self.log.push(Engine::Client(number as u64), self.now, stats);
        }
        self.report.clone()
    }

    /// Steps until nothing is left to happen.
    ///
    /// # Panics
    /// If that takes more than `most` steps: something goes round in a circle.
    pub fn drive_bounded(&mut self, most: u64) {
        for _ in 0..most {
            if !self.step() {
                return;
            }
        }
        panic!("still busy after {most} steps at {:?}", self.now);
    }

    /// Executes the next step. Returns false if there is none.
    pub fn step(&mut self) -> bool {
        let Some(next) = self.choose() else { return false };
        match next {
            Next::Operation => self.operate(),
            Next::Open(n) => self.open(n),
            Next::Accept { link, up } => self.accept(link, up),
            Next::Arrive { link, up } => self.arrive(link, up),
            Next::ClientTimer(client) => {
                self.report.steps += 1;
                self.input(client, Input::Tick);
            }
            Next::ServerTimer => {
                self.report.steps += 1;
                self.trace(|| "server tick".into());
                self.log.push(Engine::Server, self.now, || Op::Tick);
                self.server.handle_timeout(self.now);
                self.drain_server();
            }
            Next::Exit(link) => {
                let status = ExitStatus::exited(1);
                self.cut(link, Closed::Exited(status), Closed::Reset);
            }
            Next::Task(key) => self.act(key),
        }
        true
    }

    /// Of all steps at the earliest time, a random one comes first.
    fn choose(&mut self) -> Option<Next> {
        let mut options: Vec<(Instant, Next)> = Vec::new();
        if self.has_operations() {
            options.push((self.next_operation, Next::Operation));
        }
        for (n, (at, ..)) in self.opening.iter().enumerate() {
            options.push((*at, Next::Open(n)));
        }
        for (n, link) in self.links.iter().enumerate() {
            if let Some(at) = link.exit {
                options.push((at, Next::Exit(n)));
            }
            for (up, pipe, reads) in [(true, &link.up, link.reads[0]), (false, &link.down, link.reads[1])] {
                if pipe.may_accept() {
                    options.push((pipe.stalled_until(), Next::Accept { link: n, up }));
                }
                if let (Some(at), true) = (pipe.next_arrival(), reads) {
                    options.push((at, Next::Arrive { link: n, up }));
                }
            }
        }
        for (n, client) in self.clients.iter().enumerate() {
            if let Some(at) = client.engine.poll_timeout() {
                // Pings never end, but a run does.
                if self.has_operations() || client.engine.timeout_reason() != Some(WiredTimer::Engine(Timer::Ping)) {
                    options.push((at, Next::ClientTimer(n)));
                }
            }
        }
        if let Some(at) = self.server.poll_timeout() {
            options.push((at, Next::ServerTimer));
        }
        for (key, task) in &self.tasks {
            options.push((task.next, Next::Task(*key)));
        }
        let first = options.iter().map(|(at, _)| (*at).max(self.now)).min()?;
        options.retain(|(at, _)| *at <= first);
        self.now = first;
        let chosen = self.rng.below(options.len() as u64) as usize;
        Some(options.swap_remove(chosen).1)
    }

    const fn has_operations(&self) -> bool {
        self.operations < self.scenario.operations
    }

    /// Returns the number of random faults, and of operations.
    pub(super) const fn drawn(&self) -> (u64, u64) {
        (self.faults, self.operations)
    }

    pub(super) fn trace(&self, text: impl FnOnce() -> String) {
        if self.trace {
            println!("{:>12?} {}", self.now, text());
        }
    }

    // ---- the applications

    pub(super) fn operate(&mut self) {
        self.operations += 1;
        self.next_operation = self.now + Duration::from_millis(self.rng.below(400));
        if self.scenario.less.operations.contains(&(self.operations - 1)) {
            return;
        }
        let client = self.rng.below(self.clients.len() as u64) as usize;
        let call = self.some_call(client);
        let command = match self.rng.below(26) {
            0..=9 => return self.work(client),
            20..=24 => return self.spurious(client),
            10 | 11 => return self.list(client),
            12 | 13 => ClientCommand::Cancel(call, Some("no longer wanted".into())),
            14..=17 => return self.answer(client),
            18 => ClientCommand::NotifyTracked("acme/note".into(), Object::new()),
            _ if self.rng.per_mille(500) => ClientCommand::Close,
            _ => return self.spurious(client),
        };
        self.input(client, Input::Command(command));
    }

    pub(super) fn some_call(&mut self, client: usize) -> CallId {
        let calls = &self.clients[client].made;
        CallId(1 + self.rng.below(calls.len() as u64 + 1))
    }

    pub(super) fn work(&mut self, client: usize) {
        self.tag += 1;
        let millis = [0, 10, 500, 40_000][self.rng.below(4) as usize];
        let padding = [0, 100, 4 * self.scenario.capacity.min(8192)][self.rng.below(3) as usize];
        let (ticks, questions) = (self.rng.below(4), self.rng.below(8).saturating_sub(5));
        let api_key = Some(app::SECRET.into());
        let work = Work { tag: self.tag, millis, ticks, questions, padding, api_key, ..Work::default() };
        let mut call = tools::call("work").arguments(&work);
        if self.rng.per_mille(500) {
            call = call.progress();
        }
        if self.rng.per_mille(200) {
            call = call.reset_on_progress(true).max_total(Duration::from_secs(90));
        }
        let brief = millis <= 500 && questions == 0;
        self.make(client, Some(self.tag), brief, call);
    }

    pub(super) fn list(&mut self, client: usize) {
        self.make(client, None, true, tools::list());
    }

    pub(super) fn make<M: mcp_proto::Method>(&mut self, client: usize, tag: Option<u64>, brief: bool, call: Call<M>) {
        let input = Input::Command(ClientCommand::Call(call.into_raw()));
        if let Some(call) = self.input(client, input) {
            self.report.calls += 1;
            let sent = self.clients[client].engine.client().state() == State::Ready;
            let made = Made { call, tag, brief, sent, progress: f64::NEG_INFINITY, ended: None };
            self.clients[client].made.entry(call).or_insert(made);
            self.drain_client(client);
        }
    }

    pub(super) fn answer(&mut self, client: usize) {
        let side = &mut self.clients[client];
        if side.questions.is_empty() {
            return;
        }
        let at = self.rng.below(side.questions.len() as u64) as usize;
        let (token, key) = side.questions.swap_remove(at);
        drop(token);
        side.open_questions.remove(&key);
        let answer = match self.rng.below(10) {
            0 => ElicitResult::Decline,
            1 => ElicitResult::Cancel,
            _ => ElicitResult::Accept(Object::new().with("answer", "yes")),
        };
        self.input(client, Input::Command(ClientCommand::Answer(key, InputAnswer::Elicitation(answer))));
    }

    pub(super) fn act(&mut self, key: RequestKey) {
        let Some(task) = self.tasks.get_mut(&key) else { return };
        self.log.push(Engine::Server, self.now, || Op::Act(key.number()));
        match task.act(self.now) {
            Deed::Note(key, note, _) => {
                let _ = self.server.notify(self.now, key, note);
            }
            Deed::Answer(responder, outcome) => {
                self.tasks.remove(&key);
                self.server.respond(self.now, responder.write(outcome));
            }
        }
        self.drain_server();
    }

    // ---- the engines

    pub(super) fn input(&mut self, client: usize, input: WiredClientInput) -> Option<CallId> {
        let side = &mut self.clients[client];
        let state = side.engine.client().state();
        *self.report.pairs.entry((state, InputKind::of(&input))).or_default() += 1;
        if self.trace {
            println!("{:>12?} client {client} {state:?} <- {input:?}", self.now);
        }
        if let Input::Event(_, IoEvent::Read(bytes)) = &input {
            side.seen.told += bytes.len() as u64;
        }
        side.closing |= input == Input::Command(ClientCommand::Close);
        if self.record {
            side.log.push((self.now, input.clone()));
        }
        self.log.client(client as u64, self.now, &input);
        let applied = side.engine.apply(self.now, input);
        let after = side.engine.client().state();
        assert!(self.scenario.settings.may_follow(state, after), "{state:?} -> {after:?}");
        assert!(side.engine.client().running() <= 16, "more calls than the limit");
        let call = match applied {
            Ok(mcp_proto::input::Applied::Call(call)) => Some(call),
            Ok(mcp_proto::input::Applied::Notification(id)) => {
                side.notes.insert(id);
                None
            }
            Ok(mcp_proto::input::Applied::Done) | Err(_) => None,
        };
        if call.is_none() {
            self.drain_client(client);
        }
        call
    }

    pub(super) fn drain_client(&mut self, client: usize) {
        while let Some(action) = self.clients[client].engine.poll_output() {
            if self.trace {
                println!("{:>12?} client {client} -> {action:?}", self.now);
            }
            assert!(self.clients[client].terminated.is_none(), "nothing follows the end");
            if self.record {
                self.clients[client].said.push(&action);
            }
            match action {
                Action::Open(channel, endpoint) => {
                    self.clients[client].seen.opened += 1;
                    self.want_open(client, channel, &endpoint);
                }
                Action::Write(channel, bytes) => {
                    self.clients[client].seen.written += bytes.len() as u64;
                    self.write(self.link_of(client, channel), true, bytes);
                }
                Action::Close(channel, how) => {
                    self.clients[client].seen.steps_taken += 1;
                    self.close(client, channel, how);
                }
                Action::Read(channel, reads) => {
                    if let Some(n) = self.link_of(client, channel) {
                        self.links[n].reads[1] = reads;
                    }
                }
                Action::Notice(_, ConnectionNotice::Closing(_)) => self.clients[client].seen.steps_told += 1,
                Action::Notice(_, ConnectionNotice::Closed(_)) => self.clients[client].seen.closed += 1,
                Action::Event(event) => self.on_client_event(client, event),
            }
        }
    }

    pub(super) fn on_client_event(&mut self, client: usize, event: client::Event) {
        let side = &mut self.clients[client];
        match event {
            client::Event::Progress { call, progress } => {
                let made = side.made.get_mut(&call).expect("progress of a call that was made");
                assert!(made.ended.is_none(), "progress after the end of {call:?}");
                assert!(progress.progress > made.progress, "progress increases");
                made.progress = progress.progress;
            }
            client::Event::NotificationEnded { notification, outcome } => {
                assert!(side.notes.remove(&notification), "{notification:?} ended twice: {outcome:?}");
            }
            client::Event::Ended { call, outcome } => {
                let made = side.made.get_mut(&call).expect("the end of a call that was made");
                assert!(made.ended.is_none(), "{call:?} ended twice");
                if let (Ok(result), Some(tag)) = (&outcome, made.tag) {
                    let text = result.json.as_str();
                    let right = text.contains(&format!("\"text\":\"{tag}:")) || text.contains("\"isError\":true");
                    assert!(right, "{call:?} with tag {tag} got {text}");
                    self.report.completed += 1;
                }
                // Without errors and delays, a slow response is never lost.
                let clean = self.scenario.faults == 0 && self.scenario.settings.transport == Transport::Lines;
                if clean && self.scenario.capacity >= 1024 && made.brief {
                    assert!(!matches!(outcome, Err(CallError::Timeout { .. })), "{call:?} was never answered");
                }
                made.ended = Some(outcome.map(drop));
            }
            client::Event::Ready(_) => side.made.values_mut().for_each(|made| made.sent = true),
            client::Event::Restarting { .. } => {
                self.report.restarts += 1;
                side.seen.restarts += 1;
                let lost = side.made.values().filter(|made| made.sent && made.ended.is_none()).count();
                assert_eq!(lost, 0, "calls that outlived their server");
                assert!(side.open_questions.is_empty(), "questions that outlived their server");
            }
            client::Event::PingMissed { .. } => {
                side.seen.pings_missed += 1;
                self.report.pings_missed += 1;
                assert!(self.scenario.faults > 0 || self.scenario.capacity < 1024, "a server that is there is heard");
            }
            client::Event::Diagnostic(_) => side.seen.diagnostics += 1,
            client::Event::InputNeeded { token, .. } => {
                let key = token.key();
                assert!(side.open_questions.insert(key), "asked twice");
                side.questions.push((token, key));
            }
            client::Event::InputWithdrawn(key) => assert!(side.open_questions.remove(&key), "withdrawn twice"),
            client::Event::Terminated(why) => {
                let open = side.made.values().filter(|made| made.ended.is_none()).count();
                assert_eq!(open, 0, "calls that never ended");
                assert!(side.notes.is_empty(), "notifications that never ended");
                match &why {
                    Termination::Requested => assert!(side.closing, "client {client} ended without a request to end"),
                    Termination::Closed(Closed::Broken(what)) => {
                        panic!("client {client} ended by what it read: {what}")
                    }
                    Termination::Closed(_) | Termination::Negotiation(_) => {}
                }
                side.terminated = Some(why);
            }
            _ => {}
        }
    }

    pub(super) fn drain_server(&mut self) {
        while let Some(action) = self.server.poll_output() {
            if self.trace {
                println!("{:>12?} server -> {action:?}", self.now);
            }
            assert!(!self.server_terminated, "nothing follows the end of the server");
            match action {
                Action::Open(..) | Action::Notice(..) => panic!("a server emits no {action:?}"),
                Action::Read(channel, reads) => {
                    let links = self.links.iter_mut().filter(|link| link.at_server == channel);
                    links.for_each(|link| link.reads[0] = reads);
                }
                Action::Write(channel, bytes) => {
                    let link = self.links.iter().position(|link| link.at_server == channel);
                    self.write(link, false, bytes);
                }
                Action::Close(channel, how) => {
                    let Some(n) = self.links.iter().position(|link| link.at_server == channel) else { continue };
                    match how {
                        Shutdown::WriteHalf => self.links[n].down.end(),
                        Shutdown::Terminate => {}
                        Shutdown::Abort => self.cut(n, Closed::Reset, Closed::Aborted),
                    }
                }
                Action::Event(server::Event::Request(responder, incoming)) => {
                    let key = responder.key();
                    match app::take(&self.router, responder, incoming, 0, self.now) {
                        Ok(task) => {
                            self.ran.insert(task.mark.tag);
                            assert!(self.tasks.insert(key, task).is_none(), "a key was used twice");
                        }
                        Err(answer) => self.server.respond(self.now, answer),
                    }
                }
                Action::Event(server::Event::Cancelled(key)) => drop(self.tasks.remove(&key)),
                Action::Event(server::Event::Terminated) => self.server_terminated = true,
                Action::Event(_) => {}
            }
        }
    }
}
