//! A client at seam B and a server, over connections that deliver everything in time, or break.

use super::super::accept;
use super::bare::{Bare, Deed};
use super::log::{Engine, Entry, Log, Op};
use crate::sim::app::{self, Application, Mark, Work};
use crate::sim::rng::Rng;
use mcp_proto::client::{Event, ListenerStart, Policy};
use mcp_proto::exchange::{Action, Closed, ConnectionId, IoEvent, Program, Shutdown};
use mcp_proto::input::{
    CallId, ClientCommand, Input, InputAnswer, InputKey, RequestKey, ServerCommand, WiredClientInput,
};
use mcp_proto::model::elicitation::ElicitResult;
use mcp_proto::rpc::Object;
use mcp_proto::wired::WiredServer;
use mcp_proto::{ClientConfig, Instant, ServerCommands, server, tools};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// How many things the application of a run does.
const OPERATIONS: u64 = 30;
/// How many things happen in a run at most.
const STEPS: u64 = 20_000;

/// The configuration of the client of a run, drawn from a generator.
pub fn configure(rng: &mut Rng) -> ClientConfig {
    let mut config = if rng.per_mille(400) {
        ClientConfig::program(Program::new("sim"))
    } else {
        ClientConfig::url("http://localhost/mcp").expect("a url")
    };
    config = config.with_elicitation();
    config.policy = [Policy::Auto, Policy::Legacy, Policy::Modern][rng.below(3) as usize];
    config.watch.tools = rng.per_mille(500);
    config.compat.listener = [ListenerStart::Never, ListenerStart::AfterInitialized][rng.below(2) as usize];
    config.ping = rng.per_mille(300).then_some(Duration::from_secs(5));
    config.limits.client.max_queued_events = usize::MAX;
    config
}

enum Delivery {
    ToClient(u64, IoEvent),
    ToServer(u64, IoEvent),
    Task(RequestKey),
}

/// A run of one client and one server.
struct Pair {
    rng: Rng,
    now: Instant,
    client: Bare,
    server: WiredServer,
    app: Application,
    calls: u64,
    /// Questions that wait for an answer, and the call of each.
    questions: Vec<(InputKey, u64)>,
    /// The connections by the exchange at the client.
    at_server: BTreeMap<u64, ConnectionId>,
    /// The items in transit, in the order of delivery.
    deliveries: BTreeMap<(Instant, u64), Delivery>,
    sequence: u64,
    breaks: bool,
    is_over: bool,
    log: Log,
}

/// Runs the world of a seed, and returns the inputs of its client.
pub fn record(seed: u64) -> Vec<Entry> {
    let mut rng = Rng::new(seed ^ 0x7061_6972);
    let state = rng.draw();
    let (client_seed, server_seed) = (rng.seed(), rng.seed());
    let config = Arc::new(configure(&mut Rng::new(state)));
    let app = Application::new(app::marked_router());
    let mut log = Log::on();
    log.push(Engine::Client(0), Instant::ZERO, || Op::Client { rng: state, seed: client_seed });
    let mut pair = Pair {
        now: Instant::ZERO,
        client: Bare::new(config, client_seed, Instant::ZERO),
        server: WiredServer::new(Arc::new(app.router.config()), server_seed, Instant::ZERO),
        app,
        calls: 0,
        questions: Vec::new(),
        at_server: BTreeMap::new(),
        deliveries: BTreeMap::new(),
        sequence: 0,
        breaks: rng.per_mille(500),
        is_over: false,
        log,
        rng,
    };
    pair.drain();
    pair.run();
    pair.log.take()
}

impl Pair {
    fn run(&mut self) {
        let mut next_operation = Instant::ZERO;
        let (mut operations, mut steps) = (0, 0);
        while !self.is_over && steps < STEPS {
            steps += 1;
            let delivery = self.deliveries.keys().next().map(|(at, _)| *at);
            let operation = (operations <= OPERATIONS).then_some(next_operation);
            let times = [operation, delivery, self.client.next_timeout(), self.server.poll_timeout()];
            let Some(first) = times.into_iter().flatten().min() else { return };
            self.now = self.now.max(first);
            if operation.is_some_and(|at| at <= self.now) {
                operations += 1;
                next_operation = self.now + Duration::from_millis([5, 100, 1_000][self.rng.below(3) as usize]);
                let command = if operations > OPERATIONS { Some(ClientCommand::Close) } else { self.some_command() };
                if let Some(command) = command {
                    self.tell(Input::Command(command));
                }
            } else if delivery.is_some_and(|at| at <= self.now) {
                let Some((_, delivery)) = self.deliveries.pop_first() else { return };
                self.deliver(delivery);
            } else if self.server.poll_timeout().is_some_and(|at| at <= self.now) {
                self.server.handle_timeout(self.now);
                self.drain_server();
            } else {
                self.tell(Input::Tick);
            }
        }
    }

    fn some_command(&mut self) -> Option<ClientCommand> {
        Some(match self.rng.below(10) {
            0..=4 => {
                self.calls += 1;
                let work = Work {
                    tag: self.calls,
                    millis: [0, 50, 3_000, 60_000][self.rng.below(4) as usize],
                    ticks: self.rng.below(3),
                    says: Some(self.rng.below(3)),
                    questions: self.rng.below(6).saturating_sub(4),
                    padding: [0, 9_000][self.rng.below(2) as usize],
                    ..Work::marked(0)
                };
                let mut call = tools::call("work").arguments(&work);
                if self.rng.per_mille(500) {
                    call = call.progress();
                }
                if self.rng.per_mille(300) {
                    call = call.repeatable();
                }
                ClientCommand::Call(call.into_raw())
            }
            5 => {
                self.calls += 1;
                ClientCommand::Call(tools::list().into_raw())
            }
            6 => ClientCommand::Cancel(CallId(1 + self.rng.below(self.calls + 1)), Some("no longer wanted".into())),
            7 => ClientCommand::Notify("acme/note".into(), Object::new()),
            8 => {
                self.server.publish(self.now, mcp_proto::input::Change::Tools);
                self.drain_server();
                return None;
            }
            _ => {
                let (key, tag) = self.questions.pop()?;
                let answer = match self.rng.below(3) {
                    0 => ElicitResult::Decline,
                    1 => ElicitResult::Cancel,
                    _ => ElicitResult::Accept(Object::new().with("answer", app::reply(0, tag).as_str())),
                };
                ClientCommand::Answer(key, InputAnswer::Elicitation(answer))
            }
        })
    }

    fn tell(&mut self, input: WiredClientInput) {
        self.log.client(0, self.now, &input);
        self.client.tell(self.now, input);
        self.drain();
    }

    fn later(&mut self, delivery: Delivery) {
        self.sequence += 1;
        // One latency for all: the delivery keeps the order of sending.
        self.deliveries.insert((self.now + Duration::from_millis(3), self.sequence), delivery);
    }

    fn deliver(&mut self, delivery: Delivery) {
        match delivery {
            Delivery::ToClient(exchange, wire) => self.tell(Input::Event(ConnectionId(exchange), wire)),
            Delivery::ToServer(exchange, wire) => {
                let Some(&connection) = self.at_server.get(&exchange) else { return };
                if matches!(wire, IoEvent::Read(_)) && self.breaks && self.rng.per_mille(40) {
                    return self.cut(exchange, Closed::Reset);
                }
                if matches!(wire, IoEvent::Closed(_)) {
                    self.at_server.remove(&exchange);
                }
                let _ = self.server.apply(self.now, Input::Event(connection, wire));
                self.drain_server();
            }
            Delivery::Task(key) => {
                let command = self.app.act(key, self.now);
                self.command(key, command);
                self.drain_server();
            }
        }
    }

    fn cut(&mut self, exchange: u64, why: Closed) {
        self.later(Delivery::ToClient(exchange, IoEvent::Closed(why)));
        self.later(Delivery::ToServer(exchange, IoEvent::Closed(Closed::Reset)));
    }

    fn drain(&mut self) {
        drop(self.client.take_said());
        while let Some(deed) = self.client.next_deed() {
            match deed {
                Deed::Open(exchange, kind) => match accept(&mut self.server, self.now, kind) {
                    Some(connection) => {
                        self.at_server.insert(exchange, connection);
                        self.later(Delivery::ToClient(exchange, IoEvent::Opened(Default::default())));
                        self.drain_server();
                    }
                    None => self.later(Delivery::ToClient(exchange, IoEvent::Closed(Closed::Refused))),
                },
                Deed::Write(exchange, bytes) => {
                    self.later(Delivery::ToClient(exchange, IoEvent::Written(bytes.len())));
                    self.later(Delivery::ToServer(exchange, IoEvent::Read(bytes)));
                }
                Deed::Close(exchange, Shutdown::WriteHalf) => {
                    self.later(Delivery::ToServer(exchange, IoEvent::ReadClosed))
                }
                Deed::Close(_, Shutdown::Terminate) => {}
                Deed::Close(exchange, Shutdown::Abort) => self.cut(exchange, Closed::Aborted),
                Deed::Event(Event::InputNeeded { token, request, .. }) => {
                    let marks = Mark::all(&format!("{request:?}"));
                    self.questions.push((token.key(), marks[0].tag));
                }
                Deed::Event(Event::InputWithdrawn(key)) => self.questions.retain(|(question, _)| *question != key),
                Deed::Event(Event::Terminated(_)) => self.is_over = true,
                Deed::Event(_) => {}
            }
        }
    }

    fn drain_server(&mut self) {
        while let Some(action) = self.server.poll_output() {
            match action {
                Action::Write(connection, bytes) => {
                    let Some(exchange) = self.exchange_on(connection) else { continue };
                    self.later(Delivery::ToServer(exchange, IoEvent::Written(bytes.len())));
                    self.later(Delivery::ToClient(exchange, IoEvent::Read(bytes)));
                }
                Action::Close(connection, how) => {
                    let Some(exchange) = self.exchange_on(connection) else { continue };
                    match how {
                        Shutdown::WriteHalf => self.later(Delivery::ToClient(exchange, IoEvent::ReadClosed)),
                        Shutdown::Terminate => {}
                        Shutdown::Abort => self.cut(exchange, Closed::Reset),
                    }
                }
                Action::Event(server::Event::Request(responder, incoming)) => {
                    let key = responder.key();
                    let answer = self.app.request(responder, incoming, self.now);
                    self.command(key, answer);
                }
                Action::Event(server::Event::Cancelled(key)) => drop(self.app.tasks.remove(&key)),
                Action::Event(_) | Action::Open(..) | Action::Secure(..) | Action::Read(..) | Action::Notice(..) => {}
            }
        }
    }

    fn exchange_on(&self, connection: ConnectionId) -> Option<u64> {
        self.at_server.iter().find(|(_, at)| **at == connection).map(|(exchange, _)| *exchange)
    }

    /// Executes a command of the application for a request, which then has its next turn.
    fn command(&mut self, key: RequestKey, command: Option<ServerCommand>) {
        if let Some(task) = self.app.tasks.get(&key) {
            self.sequence += 1;
            self.deliveries.insert((task.next, self.sequence), Delivery::Task(key));
        }
        if let Some(command) = command {
            let _ = self.server.act(self.now, command);
        }
    }
}
