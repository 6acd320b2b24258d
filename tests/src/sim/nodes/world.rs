//! One run: the time, the servers, and what happens when.

use super::super::fault::{Chaos, Fault};
use super::super::report::Report;
use super::client::{Exchange, Session, Watcher};
use super::node::{LIFETIME, Node, NodeId};
use super::store::Store;
use super::task::Task;
use super::{Rng, Scenario};
use mcp_proto::Instant;
use mcp_proto::exchange::{Closed, ExchangeEvent, ExchangeId, Inbound, Outbound, RequestHead, Sent};
use mcp_proto::input::{Admission, Principal, RequestKey, ServerCommand};
use mcp_proto::server::store::{StoreError, StoreReply, StoreRequest, StoreToken};
use mcp_proto::server::{Event, Output};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// The time without faults in which everything ends that has begun: the work of a task, and once
/// more after its server was missed.
const SETTLES: Duration = Duration::from_secs(150);

/// The most servers at a time.
const MAX_NODES: usize = 5;

/// Maximum number of steps of a run. Most have some 20,000.
const MAX_STEPS: u64 = 1_000_000;

/// What happens later.
#[derive(Debug)]
pub(super) enum SimEvent {
    AtStore(NodeId, StoreToken, StoreRequest),
    Reply(NodeId, StoreToken, Result<StoreReply, StoreError>),
    /// A server reads what others have said.
    Items(NodeId),
    /// A request arrives at a server, with its body.
    Request(NodeId, ExchangeId, RequestHead, Option<String>),
    /// The connection of a request is lost.
    Cut(NodeId, ExchangeId),
    Work(NodeId, RequestKey),
    Wake(NodeId),
    StartNode,
    /// A client resumes a call whose stream has ended.
    Resume(usize, u64),
    /// A client opens the own stream of its session again.
    Listen(usize),
    /// A client answers a question.
    Answer(usize, String),
    /// A client subscribes again.
    Subscribe(usize),
    /// A client asks for its task.
    GetTask(usize),
}

/// See the [module](self).
#[derive(Debug)]
pub(super) struct World {
    pub(super) scenario: Scenario,
    trace: bool,
    pub(super) now: Instant,
    pub(super) rng: Rng,
    chaos: Chaos,
    pub(super) nodes: Vec<Node>,
    last_node: u64,
    pub(super) store: Store,
    pub(super) sessions: Vec<Session>,
    pub(super) exchanges: BTreeMap<(NodeId, ExchangeId), Exchange>,
    pub(super) watchers: Vec<Watcher>,
    pub(super) tasks: Vec<Task>,
    /// The names of the calls that were made, which no other has.
    pub(super) last_name: u64,
    /// What each event of a stream was, by session and id.
    pub(super) events: BTreeMap<(usize, String), String>,
    /// What servers that sleep have not seen.
    held: BTreeMap<NodeId, Vec<SimEvent>>,
    agenda: BTreeMap<(Instant, u64), SimEvent>,
    sequence: u64,
    pub(super) operations: u64,
    next_operation: Instant,
    /// The operations are over: clients go on with what they have begun.
    pub(super) is_settling: bool,
    /// Clients are gone.
    pub(super) is_over: bool,
    pub(super) report: Report,
}

impl World {
    pub(super) fn begin(scenario: &Scenario, trace: bool) -> Self {
        let mut rng = Rng::new(scenario.seed);
        let mut chaos = scenario.chaos(Rng::new(rng.draw()));
        chaos.favourite = scenario.settings.favourite;
        let mut world = Self {
            scenario: scenario.clone(),
            trace,
            now: Instant::ZERO,
            rng,
            chaos,
            nodes: Vec::new(),
            last_node: 0,
            store: Store::default(),
            sessions: Vec::new(),
            exchanges: BTreeMap::new(),
            watchers: Vec::new(),
            tasks: Vec::new(),
            last_name: 0,
            events: BTreeMap::new(),
            held: BTreeMap::new(),
            agenda: BTreeMap::new(),
            sequence: 0,
            operations: 0,
            next_operation: Instant::from_millis(500),
            is_settling: false,
            is_over: false,
            report: Report::default(),
        };
        (0..scenario.settings.nodes).for_each(|_| world.start_node());
        world
    }

    /// Returns the numbers of random faults and of operations so far.
    pub(super) fn drawn(&self) -> (u64, u64) {
        (self.chaos.drawn, self.operations)
    }

    /// Runs to the end: the operations, a time without faults, then the end of all clients, and of
    /// all servers.
    pub(super) fn run(&mut self) -> Report {
        while self.operations < self.scenario.operations {
            self.advance();
        }
        self.chaos.rate = 0;
        self.is_settling = true;
        self.mend_store();
        (0..self.nodes.len()).for_each(|at| self.wake(at));
        self.run_for(SETTLES);
        self.check_settled();
        self.is_over = true;
        let open: Vec<_> = self.exchanges.keys().copied().collect();
        open.into_iter().for_each(|(id, x)| self.cut(id, x));
        self.run_for(LIFETIME * 2);
        self.check_at_rest();
        for at in 0..self.nodes.len() {
            self.command(at, ServerCommand::Shutdown(Duration::ZERO));
        }
        self.run_for(Duration::from_secs(30));
        self.check_ended();
        self.report.steps = self.chaos.steps;
        self.report.faults.clone_from(&self.chaos.faults);
        self.report.clone()
    }

    // ---- time

    fn next_event(&self) -> Option<Instant> {
        let timers = self.nodes.iter().filter_map(Node::due);
        timers.chain(self.agenda.keys().next().map(|(at, _)| *at)).min()
    }

    /// Lets the next thing happen, which is an operation if nothing else is due before it.
    fn advance(&mut self) {
        match self.next_event().filter(|at| *at < self.next_operation) {
            Some(at) => self.happen(at),
            None => {
                self.now = self.now.max(self.next_operation);
                let pause = self.rng.of(&[5, 50, 500, 3000, 12_000]);
                self.next_operation = self.now + Duration::from_millis(self.rng.below(pause));
                self.operations += 1;
                if !self.scenario.less.operations.contains(&(self.operations - 1)) {
                    self.operate();
                }
            }
        }
    }

    pub(super) fn run_for(&mut self, time: Duration) {
        let until = self.now + time;
        while let Some(at) = self.next_event().filter(|at| *at <= until) {
            self.happen(at);
        }
        self.now = until;
    }

    fn happen(&mut self, at: Instant) {
        self.now = self.now.max(at);
        self.chaos.steps += 1;
        assert!(self.chaos.steps < MAX_STEPS, "the servers never come to rest");
        let due = self.agenda.keys().next().copied().filter(|(due, _)| *due <= self.now);
        match due.and_then(|due| self.agenda.remove(&due)) {
            Some(event) => self.take(event),
            None => {
                let now = self.now;
                let Some(at) = self.nodes.iter().position(|node| node.due().is_some_and(|at| at <= now)) else {
                    return;
                };
                self.nodes[at].tick(now);
                self.drain(at);
            }
        }
    }

    fn take(&mut self, event: SimEvent) {
        let for_node = match &event {
            SimEvent::Reply(id, ..)
            | SimEvent::Items(id)
            | SimEvent::Request(id, ..)
            | SimEvent::Cut(id, _)
            | SimEvent::Work(id, _) => Some(*id),
            _ => None,
        };
        if let Some(id) = for_node
            && self.place(id).is_some_and(|at| self.nodes[at].is_asleep)
        {
            return self.held.entry(id).or_default().push(event);
        }
        match event {
            SimEvent::AtStore(id, token, request) => self.at_store(id, token, request),
            SimEvent::Reply(id, token, result) => {
                if let Some(at) = self.place(id) {
                    self.command(at, ServerCommand::Stored(token, result));
                }
            }
            SimEvent::Items(id) => self.read_items(id),
            SimEvent::Request(id, x, head, body) => self.arrive(id, x, head, body),
            SimEvent::Cut(id, x) => self.cut(id, x),
            SimEvent::Work(id, key) => self.work(id, key),
            SimEvent::Wake(id) => {
                if let Some(at) = self.place(id) {
                    self.wake(at);
                }
            }
            SimEvent::StartNode => self.start_node(),
            SimEvent::Resume(session, call) => self.resume(session, call),
            SimEvent::Listen(session) => self.open_own(session),
            SimEvent::Answer(session, body) => self.answer(session, body),
            SimEvent::Subscribe(watcher) => self.subscribe(watcher),
            SimEvent::GetTask(task) => self.get_task(task),
        }
    }

    pub(super) fn later(&mut self, after: Duration, event: SimEvent) {
        self.at(self.now + after, event);
    }

    pub(super) fn at(&mut self, at: Instant, event: SimEvent) {
        self.sequence += 1;
        self.agenda.insert((at, self.sequence), event);
    }

    /// Returns a short time.
    pub(super) fn soon(&mut self, most: u64) -> Duration {
        Duration::from_millis(1 + self.rng.below(most))
    }

    pub(super) fn hit(&mut self, fault: Fault, scale: u64) -> bool {
        self.chaos.hit(fault, scale)
    }

    pub(super) fn print(&self, line: impl FnOnce() -> String) {
        if self.trace {
            println!("{:>10.4} {}", self.now.since_origin().as_secs_f64(), line());
        }
    }

    // ---- servers

    pub(super) fn place(&self, id: NodeId) -> Option<usize> {
        self.nodes.iter().position(|node| node.id == id)
    }

    fn start_node(&mut self) {
        self.last_node += 1;
        let (id, seed) = (NodeId(self.last_node), self.rng.seed());
        self.nodes.push(Node::start(id, &self.scenario.settings, seed, self.now));
        self.drain(self.nodes.len() - 1);
    }

    pub(super) fn wake(&mut self, at: usize) {
        self.nodes[at].is_asleep = false;
        let held = self.held.remove(&self.nodes[at].id).unwrap_or_default();
        held.into_iter().for_each(|event| self.at(self.now, event));
    }

    /// Something happens to the servers.
    pub(super) fn node_fault(&mut self) {
        if self.hit(Fault::NodeKilled, 60) && self.nodes.len() > 1 {
            let at = self.rng.below(self.nodes.len() as u64) as usize;
            let node = self.nodes.remove(at);
            self.held.remove(&node.id);
            self.print(|| format!("{:?} is killed", node.id));
            let open: BTreeSet<_> = self.exchanges.keys().filter(|(id, _)| *id == node.id).copied().collect();
            open.into_iter().for_each(|key| self.closed(key));
            let after = self.soon(20_000);
            self.later(after, SimEvent::StartNode);
        }
        if self.hit(Fault::NodeAsleep, 60) {
            let at = self.rng.below(self.nodes.len() as u64) as usize;
            self.nodes[at].is_asleep = true;
            let most = self.rng.of(&[100, 5000, 40_000]);
            let (id, after) = (self.nodes[at].id, self.soon(most));
            self.print(|| format!("{id:?} sleeps for {after:?}"));
            self.later(after, SimEvent::Wake(id));
        }
        if self.nodes.len() < MAX_NODES && self.hit(Fault::NodeJoins, 150) {
            self.start_node();
        }
    }

    pub(super) fn command(&mut self, at: usize, command: ServerCommand) {
        self.print(|| format!("{:?} {command:?}", self.nodes[at].id));
        let now = self.now;
        self.nodes[at].command(now, command);
        self.drain(at);
    }

    /// A request arrives at a server, or finds none.
    fn arrive(&mut self, id: NodeId, x: ExchangeId, head: RequestHead, body: Option<String>) {
        if !self.exchanges.contains_key(&(id, x)) {
            return;
        }
        let Some(at) = self.place(id) else { return self.closed((id, x)) };
        self.print(|| format!("{id:?} {x:?} {head:?} {body:?}"));
        let mut items = vec![Inbound::Request(head)];
        if let Some(body) = body {
            items.push(Inbound::Message(mcp_proto::rpc::parse(body.into(), 100).expect("a message")));
        }
        for item in items.into_iter().chain([Inbound::End]) {
            let now = self.now;
            self.nodes[at].handle(now, x, ExchangeEvent::Inbound(item));
            self.drain(at);
        }
    }

    /// The connection of a request is lost.
    pub(super) fn cut(&mut self, id: NodeId, x: ExchangeId) {
        if !self.exchanges.contains_key(&(id, x)) {
            return;
        }
        self.print(|| format!("{id:?} {x:?} is cut"));
        self.closed((id, x));
        if let Some(at) = self.place(id) {
            let (now, event) = (self.now, ExchangeEvent::Failed { sent: Sent::Maybe, why: Closed::Reset });
            self.nodes[at].handle(now, x, event);
            self.drain(at);
        }
    }

    /// Takes the outputs of a server.
    fn drain(&mut self, at: usize) {
        let id = self.nodes[at].id;
        while let Some(at) = self.place(id)
            && let Some(output) = self.nodes[at].engine.poll_output()
        {
            self.print(|| format!("{id:?} {output:?}"));
            match output {
                Output::Send(x, outbound) => self.said(id, x, outbound),
                Output::Abort(x) => self.closed((id, x)),
                Output::Event(Event::Store(token, request)) => self.ask_store(at, token, request),
                Output::Event(Event::Admit(token, head)) => {
                    let name = head.as_ref().and_then(|head| head.headers.get("authorization"));
                    let principal = name.map(|name| Principal(name.into()));
                    let (now, key) = (self.now, token.key());
                    self.nodes[at].command(now, ServerCommand::Admit(key, Admission::Accept(principal)));
                }
                Output::Event(Event::Request(responder, incoming)) => self.request(at, responder, incoming),
                Output::Event(Event::Cancelled(key)) => {
                    // Some handlers hear it, and some answer nevertheless.
                    if self.rng.per_mille(500) {
                        self.nodes[at].handlers.remove(&key);
                    }
                }
                Output::Event(_) => {}
            }
        }
    }

    fn said(&mut self, id: NodeId, x: ExchangeId, outbound: Outbound) {
        let key = (id, x);
        match outbound {
            Outbound::Response { head, body } => self.response(key, &head, &body),
            Outbound::Event { id, data, .. } => self.event(key, id, &data),
            Outbound::End => self.closed(key),
            _ => {}
        }
    }
}
