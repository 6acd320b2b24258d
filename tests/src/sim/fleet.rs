//! A supervisor of many servers in virtual time: servers die, hang, refuse, ask for a pause,
//! announce changes and end late, applications resolve late or never, and calls are made all the
//! time. After it, all is at rest, and nothing may be missing.

use super::rng::Rng;
use mcp_proto::client::{ClientConfig, Termination};
use mcp_proto::error::{HttpError, NegotiationCause, NegotiationError, Stage, StreamEnd};
use mcp_proto::exchange::{Closed, Program, Sent};
use mcp_proto::model::capabilities::{ListCapability, ServerCapabilities};
use mcp_proto::model::page::ListElement;
use mcp_proto::{CallError, Change, Instant, Object, Prompt};
use mcp_supervisor::{
    CallKind, CallPlan, ConnectWhen, Event, Freshness, Generation, ListKind, Listing, Lists, Output, RetryTool,
    ServerSpec, ServerState, Supervision, Supervisor, Ticket,
};
use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

/// What a run is made of.
#[derive(Clone, Copy, Debug)]
pub struct Fleet {
    /// Servers.
    pub servers: u32,
    /// Each second, this share of the servers dies, in thousandths.
    pub deaths: u64,
    /// The length of the run before its rest.
    pub length: Duration,
    /// The seed.
    pub seed: u64,
}

/// What a run was.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FleetReport {
    /// Attempts to connect.
    pub attempts: u64,
    /// Servers that died while they were connected.
    pub deaths: u64,
    /// Times that a server was down.
    pub downs: u64,
    /// Calls, and how many of them ended with a result, ran twice, or were refused.
    pub calls: u64,
    /// Calls that ended with a result.
    pub answered: u64,
    /// Calls that ran a second time.
    pub retried: u64,
    /// Calls that ended without a client.
    pub refused: u64,
    /// Lists that were loaded.
    pub loads: u64,
    /// Specifications that were replaced, and connections that were asked for.
    pub requests: u64,
    /// A hash of all outputs, in order.
    pub digest: u64,
}

/// How long the rest is, without faults: longer than every delay of a supervisor.
const REST: Duration = Duration::from_secs(1200);

/// Something that happens at its time.
#[derive(Clone, Copy, Debug)]
enum Happening {
    /// A part of the servers dies.
    Deaths,
    /// The application does something.
    Application,
    Ready(Generation),
    Ended(Generation),
    /// The server refuses a client, and asks for a pause of this number of seconds.
    Throttled(Generation, u64),
    /// A client over HTTP loses its session, with its calls, and still exists.
    SessionLost(Generation),
    Resolved(Generation),
    Loaded(Generation, ListKind),
    /// The server has run the call.
    Answered(Ticket, Generation),
    /// The server has refused the call with HTTP 400.
    Refused(Ticket, Generation),
    /// The call has ended with the session of its client.
    Lost(Ticket, Generation),
    /// The client takes no calls any more.
    NotBegun(Ticket),
    Changed(u32),
}

/// What the world knows of a call.
#[derive(Debug)]
struct Called {
    /// It changes nothing, so it may run again.
    is_read: bool,
    /// The end of its time.
    until: Instant,
    runs: u32,
    /// What its client reported last: a result, or the end of the connection.
    is_answered: bool,
    is_lost: bool,
}

/// What the world knows of a server.
#[derive(Clone, Debug, Default)]
struct Fake {
    /// It takes no connection until then.
    dead_until: Instant,
    /// The version of its list.
    version: u64,
    /// The times of the latest attempts to connect.
    attempts: VecDeque<Instant>,
    /// The client that is connected, or connects.
    client: Option<Generation>,
    /// No attempt may begin before, unless the application asks for one.
    not_before: Instant,
}

/// A client of the world.
#[derive(Clone, Debug)]
struct Client {
    server: u32,
    is_up: bool,
    is_closing: bool,
    /// It takes no calls any more, and ends in a moment.
    is_ending: bool,
    calls: Vec<Ticket>,
}

struct World {
    fleet: Fleet,
    rng: Rng,
    now: Instant,
    supervisor: Supervisor<u32>,
    fakes: Vec<Fake>,
    clients: BTreeMap<Generation, Client>,
    /// The calls that have not ended.
    calls: BTreeMap<Ticket, Called>,
    queue: BTreeMap<(Instant, u64), Happening>,
    queued: u64,
    report: FleetReport,
    is_resting: bool,
}

impl Fleet {
    /// Runs the world.
    ///
    /// # Errors
    /// The violation of an invariant.
    pub fn run(self) -> Result<FleetReport, String> {
        self.run_with(Supervisor::new)
    }

    /// As [`run`](Self::run), with a supervisor that is created by this function.
    ///
    /// # Errors
    /// The violation of an invariant.
    pub fn run_with(
        self,
        create: impl FnOnce(Supervision, [u8; 32]) -> Supervisor<u32>,
    ) -> Result<FleetReport, String> {
        let mut rng = Rng::new(self.seed);
        let supervisor = create(Supervision::default(), rng.seed());
        let fakes = vec![Fake::default(); self.servers as usize];
        let mut world = World {
            fleet: self,
            rng,
            now: Instant::ZERO,
            supervisor,
            fakes,
            clients: BTreeMap::new(),
            calls: BTreeMap::new(),
            queue: BTreeMap::new(),
            queued: 0,
            report: FleetReport::default(),
            is_resting: false,
        };
        for key in 0..self.servers {
            let spec = world.spec(key);
            world.supervisor.add(world.now, key, spec).map_err(|e| e.to_string())?;
        }
        world.after(1000, Happening::Deaths);
        world.after(10, Happening::Application);
        world.advance(Instant::ZERO + self.length)?;
        world.is_resting = true;
        world.advance(Instant::ZERO + self.length + REST)?;
        world.check_rest()?;
        world.supervisor.close(world.now);
        world.advance(world.now + Duration::from_secs(60))?;
        if !world.clients.is_empty() || world.supervisor.poll_timeout().is_some() {
            return Err(format!("{} clients are left after the end", world.clients.len()));
        }
        Ok(world.report)
    }
}

impl World {
    fn spec(&mut self, key: u32) -> ServerSpec {
        let config = if key.is_multiple_of(3) {
            ClientConfig::url("http://localhost/mcp").expect("a URL")
        } else {
            ClientConfig::program(Program::new("server"))
        };
        let mut spec = ServerSpec::new(config);
        spec.resolve = key.is_multiple_of(5);
        spec.retry = self.rng.of(&[RetryTool::Safe, RetryTool::Always, RetryTool::Never]);
        spec.lists = Lists::NONE.with(ListKind::Prompts);
        if key.is_multiple_of(7) {
            spec.connect = ConnectWhen::OnDemand;
        }
        spec
    }

    fn after(&mut self, millis: u64, what: Happening) {
        self.queued += 1;
        self.queue.insert((self.now + Duration::from_millis(millis), self.queued), what);
    }

    /// Lets time pass.
    fn advance(&mut self, end: Instant) -> Result<(), String> {
        loop {
            self.drain()?;
            let next = self.queue.first_key_value().map(|((at, _), _)| *at);
            let timer = self.supervisor.poll_timeout();
            let Some(at) = next.into_iter().chain(timer).min().filter(|at| *at <= end) else { break };
            self.now = self.now.max(at);
            if timer.is_some_and(|timer| timer <= self.now) {
                self.supervisor.handle_timeout(self.now);
            } else if let Some((_, what)) = self.queue.pop_first() {
                self.happens(what)?;
            }
        }
        self.now = end;
        Ok(())
    }

    fn happens(&mut self, what: Happening) -> Result<(), String> {
        match what {
            Happening::Deaths => {
                if !self.is_resting {
                    for server in 0..self.fleet.servers {
                        if self.rng.per_mille(self.fleet.deaths) {
                            self.dies(server);
                        }
                    }
                    self.after(1000, Happening::Deaths);
                }
            }
            Happening::Application => {
                if !self.is_resting {
                    self.application();
                    self.after(10, Happening::Application);
                }
            }
            Happening::Ready(generation) => {
                let Some(client) = self.clients.get_mut(&generation) else { return Ok(()) };
                if client.is_closing {
                    return Ok(());
                }
                client.is_up = true;
                let mut capabilities = ServerCapabilities::default();
                capabilities.prompts = Some(ListCapability::default());
                self.supervisor.ready(self.now, generation, &capabilities);
            }
            Happening::Ended(generation) => self.ended(generation)?,
            Happening::Throttled(generation, seconds) => self.throttled(generation, Duration::from_secs(seconds))?,
            Happening::SessionLost(generation) => self.session_lost(generation),
            Happening::Resolved(generation) => {
                let config = match self.rng.per_mille(900) {
                    true => Ok(Arc::new(ClientConfig::program(Program::new("resolved")))),
                    false => Err("no token".to_string()),
                };
                self.supervisor.resolved(self.now, generation, config);
            }
            Happening::Loaded(generation, list) => {
                let Some(client) = self.clients.get(&generation).filter(|client| client.is_up) else { return Ok(()) };
                let listing = self.listing(client.server);
                let failed = !self.is_resting && self.rng.per_mille(100);
                let outcome = if failed { Err(CallError::TooManyPages(1)) } else { Ok(listing.into()) };
                self.report.loads += 1;
                self.supervisor.loaded(self.now, generation, list, outcome);
            }
            Happening::Answered(ticket, generation) => {
                if self.takes_call(ticket, generation) {
                    self.finished(ticket, Ok(()));
                }
            }
            Happening::Refused(ticket, generation) => {
                if self.takes_call(ticket, generation) {
                    self.finished(ticket, Err(&CallError::Http(Box::new(HttpError::new(400)))));
                }
            }
            Happening::Lost(ticket, generation) => {
                if self.takes_call(ticket, generation) {
                    self.finished(ticket, Err(&CallError::Closed { sent: Sent::Maybe, why: Closed::Reset }));
                }
            }
            Happening::NotBegun(ticket) => self.supervisor.not_begun(self.now, ticket),
            Happening::Changed(server) => {
                self.fakes[server as usize].version += 1;
                let client = self.fakes[server as usize].client;
                if let Some(generation) = client.filter(|of| self.clients.get(of).is_some_and(|of| of.is_up)) {
                    self.supervisor.changed(self.now, generation, &Change::Prompts);
                }
            }
        }
        Ok(())
    }

    /// Takes a call from the client on which it runs. Returns false if it does not.
    fn takes_call(&mut self, ticket: Ticket, generation: Generation) -> bool {
        let Some(client) = self.clients.get_mut(&generation) else { return false };
        let before = client.calls.len();
        client.calls.retain(|of| *of != ticket);
        client.calls.len() < before
    }

    fn listing(&self, server: u32) -> Listing {
        let name = self.fakes[server as usize].version.to_string();
        let prompt = Prompt::read(&Object::new().with("name", &*name).into()).expect("a prompt");
        Listing::Prompts([prompt].into())
    }

    /// A server dies, and takes connections again after a while.
    fn dies(&mut self, server: u32) {
        let pause = self.rng.of(&[0, 0, 100, 2000, 20_000, 100_000]);
        let fake = &mut self.fakes[server as usize];
        fake.dead_until = self.now + Duration::from_millis(pause);
        if let Some(generation) = fake.client {
            self.report.deaths += 1;
            let late = self.rng.below(50);
            let only_session = server.is_multiple_of(3) && self.rng.per_mille(500);
            let what = if only_session { Happening::SessionLost(generation) } else { Happening::Ended(generation) };
            if let Some(client) = self.clients.get_mut(&generation) {
                client.is_ending |= !only_session;
            }
            self.after(late, what);
        }
    }

    /// The client learns of it before its calls do, and they end in any order.
    fn session_lost(&mut self, generation: Generation) {
        let Some(client) = self.clients.get(&generation).filter(|client| client.is_up) else { return };
        let calls = client.calls.clone();
        self.supervisor.session_lost(self.now, generation, StreamEnd::Closed(Closed::Eof));
        for ticket in calls {
            let late = self.rng.below(3);
            self.after(late, Happening::Lost(ticket, generation));
        }
    }

    /// A client could not connect, since the server asks for a pause.
    fn throttled(&mut self, generation: Generation, pause: Duration) -> Result<(), String> {
        let Some(server) = self.clients.get(&generation).map(|client| client.server) else { return Ok(()) };
        let mut error = HttpError::new(429);
        error.retry_after = Some(pause);
        let cause = NegotiationCause::Http(Box::new(error));
        let (stage, after, first, earlier) = (Stage::Initialize, Duration::ZERO, None, Vec::new());
        let connects = self.supervisor.health(&server).map(|health| health.state);
        if matches!(connects, Some(ServerState::Connecting { generation: of, .. }) if of == generation) {
            self.fakes[server as usize].not_before = self.now + pause.min(Duration::from_secs(300));
        }
        let why = NegotiationError { stage, cause, after, first, earlier };
        self.ended_with(generation, Termination::Negotiation(why))
    }

    /// The client ends, after its calls.
    fn ended(&mut self, generation: Generation) -> Result<(), String> {
        self.ended_with(generation, Termination::Closed(Closed::Eof))
    }

    fn ended_with(&mut self, generation: Generation, why: Termination) -> Result<(), String> {
        let Some(client) = self.clients.remove(&generation) else { return Ok(()) };
        let fake = &mut self.fakes[client.server as usize];
        if fake.client == Some(generation) {
            fake.client = None;
        }
        for ticket in client.calls {
            let sent = self.rng.of(&[Sent::No, Sent::Maybe, Sent::Maybe]);
            let why = if client.is_closing { Closed::Aborted } else { Closed::Reset };
            self.finished(ticket, Err(&CallError::Closed { sent, why }));
            // What follows may be carried out before the next report, or after it.
            if self.rng.per_mille(500) {
                self.drain()?;
            }
        }
        let why = if client.is_closing { Termination::Requested } else { why };
        self.supervisor.ended(self.now, generation, why);
        Ok(())
    }

    fn application(&mut self) {
        let server = self.rng.below(self.fleet.servers.into()) as u32;
        match self.rng.below(1000) {
            0 => {
                let spec = self.spec(server);
                self.report.requests += 1;
                // The attempts of another specification are its own.
                self.fakes[server as usize].attempts.clear();
                self.fakes[server as usize].not_before = Instant::ZERO;
                self.supervisor.replace(self.now, &server, spec);
            }
            1..5 => {
                self.report.requests += 1;
                if self.supervisor.reconnect(self.now, &server) {
                    self.fakes[server as usize].not_before = Instant::ZERO;
                }
            }
            5..20 => self.after(0, Happening::Changed(server)),
            20..30 => {
                if let Some(ticket) = self.calls.keys().next().copied() {
                    self.supervisor.cancel(self.now, ticket);
                    self.calls.remove(&ticket);
                    self.report.refused += 1;
                    self.clients.values_mut().for_each(|client| client.calls.retain(|of| *of != ticket));
                }
            }
            _ => {
                let kind = match self.rng.below(3) {
                    0 => CallKind::Read,
                    1 => CallKind::Other,
                    _ => CallKind::Tool("tool".into()),
                };
                self.report.calls += 1;
                let (plan, is_read) = (CallPlan::new(kind.clone()), kind == CallKind::Read);
                let until = self.now + plan.timeout.expect("a default");
                match self.supervisor.call(self.now, &server, plan) {
                    Ok(ticket) => {
                        self.calls
                            .insert(ticket, Called { is_read, until, runs: 0, is_answered: false, is_lost: false });
                    }
                    Err(_) => self.report.refused += 1,
                }
            }
        }
    }

    fn finished(&mut self, ticket: Ticket, outcome: Result<(), &CallError>) {
        if let Some(call) = self.calls.get_mut(&ticket) {
            call.is_answered = outcome.is_ok();
            call.is_lost = matches!(outcome, Err(CallError::Closed { .. }));
        }
        self.supervisor.finished(self.now, ticket, outcome);
    }

    fn drain(&mut self) -> Result<(), String> {
        while let Some(output) = self.supervisor.poll_output() {
            self.digest(&output);
            self.carry_out(output)?;
        }
        Ok(())
    }

    fn digest(&mut self, output: &Output<u32>) {
        let mut text = String::new();
        let _ = write!(text, "{:?} ", self.now);
        let _ = match output {
            Output::Resolve { generation, .. } | Output::Connect { generation, .. } => write!(text, "+{generation:?}"),
            other => write!(text, "{other:?}"),
        };
        for byte in text.bytes() {
            self.report.digest = (self.report.digest ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn carry_out(&mut self, output: Output<u32>) -> Result<(), String> {
        match output {
            Output::Resolve { key, generation, .. } => {
                self.attempt(key)?;
                let late = self.rng.of(&[0, 5, 500]);
                if self.is_resting || self.rng.per_mille(980) {
                    self.after(late, Happening::Resolved(generation));
                }
            }
            Output::Connect { key, generation, config } => self.connect(key, generation, &config)?,
            Output::Close(generation) => {
                let Some(client) = self.clients.get_mut(&generation) else { return Ok(()) };
                if std::mem::replace(&mut client.is_closing, true) {
                    return Err(format!("{generation:?} is closed twice"));
                }
                // Some programs take their time.
                let late = self.rng.of(&[0, 1, 10, 3000]);
                self.after(late, Happening::Ended(generation));
            }
            Output::Load { generation, list } => {
                let late = 1 + self.rng.below(200);
                self.after(late, Happening::Loaded(generation, list));
            }
            Output::Run { ticket, generation, .. } => {
                let call = self.calls.get_mut(&ticket).ok_or_else(|| format!("{ticket:?} runs after its end"))?;
                match self.clients.get_mut(&generation).filter(|client| client.is_up && !client.is_ending) {
                    Some(client) => {
                        call.runs += 1;
                        if call.runs > 2 {
                            return Err(format!("{ticket:?} runs {} times", call.runs));
                        }
                        self.report.retried += u64::from(call.runs == 2);
                        client.calls.push(ticket);
                        let is_refused = client.server.is_multiple_of(3) && !self.is_resting && self.rng.per_mille(100);
                        let late = 1 + self.rng.below(300);
                        let what = if is_refused { Happening::Refused } else { Happening::Answered };
                        self.after(late, what(ticket, generation));
                    }
                    // It ends or has ended, and the supervisor learns it in a moment.
                    None => self.after(0, Happening::NotBegun(ticket)),
                }
            }
            Output::End { ticket } => {
                let call = self.calls.remove(&ticket).ok_or_else(|| format!("{ticket:?} has ended twice"))?;
                if call.is_lost && call.is_read && call.runs == 1 && self.now < call.until {
                    return Err(format!("{ticket:?} changes nothing, was lost once, and does not run again"));
                }
                self.report.answered += u64::from(call.is_answered);
            }
            Output::Refuse { ticket, .. } => {
                if self.calls.remove(&ticket).is_none() {
                    return Err(format!("{ticket:?} is refused after its end"));
                }
                self.report.refused += 1;
            }
            Output::Event(Event::Down { .. }) => self.report.downs += 1,
            Output::Event(Event::Closed { left }) if left > 0 => return Err(format!("{left} clients are left")),
            Output::Event(_) => {}
        }
        Ok(())
    }

    fn attempt(&mut self, key: u32) -> Result<(), String> {
        self.report.attempts += 1;
        let not_before = self.fakes[key as usize].not_before;
        if self.now < not_before {
            return Err(format!(
                "server {key}: an attempt at {:?}, which asked for none before {not_before:?}",
                self.now
            ));
        }
        let attempts = &mut self.fakes[key as usize].attempts;
        attempts.push_back(self.now);
        if attempts.len() > 6 {
            attempts.pop_front();
        }
        let within = attempts.back().zip(attempts.front()).map(|(last, first)| last.since(*first));
        match within {
            Some(within) if attempts.len() == 6 && within < Duration::from_secs(30) => {
                Err(format!("server {key}: six attempts within {within:?}"))
            }
            _ => Ok(()),
        }
    }

    fn connect(&mut self, key: u32, generation: Generation, config: &ClientConfig) -> Result<(), String> {
        if !key.is_multiple_of(5) {
            self.attempt(key)?;
        }
        let is_program = matches!(config.target, mcp_proto::client::Target::Duplex(_));
        if is_program && self.clients.values().any(|client| client.server == key && !client.is_closing && client.is_up)
        {
            return Err(format!("server {key}: a second client beside one that is connected"));
        }
        self.clients.insert(
            generation,
            Client { server: key, is_up: false, is_closing: false, is_ending: false, calls: Vec::new() },
        );
        let fake = &mut self.fakes[key as usize];
        fake.client = Some(generation);
        let is_dead = self.now < fake.dead_until;
        let late = self.rng.of(&[1, 20, 200]);
        match (is_dead, self.rng.per_mille(if self.is_resting { 0 } else { 20 })) {
            // It hangs until the client gives up.
            (_, true) => self.after(60_000, Happening::Ended(generation)),
            (true, _) => {
                let seconds = self.rng.of(&[0, 0, 0, 5, 60, 3600]);
                self.after(late, Happening::Throttled(generation, seconds));
            }
            (false, _) => self.after(late, Happening::Ready(generation)),
        }
        Ok(())
    }

    /// Checks that nothing is missing.
    fn check_rest(&self) -> Result<(), String> {
        if let Some((ticket, call)) = self.calls.first_key_value() {
            return Err(format!("{} calls have not ended: {ticket:?} after {} runs", self.calls.len(), call.runs));
        }
        for server in 0..self.fleet.servers {
            let health = self.supervisor.health(&server).ok_or("a server is missing")?;
            let catalogue = self.supervisor.catalogue(&server).ok_or("a server is missing")?;
            match health.state {
                ServerState::Ready { .. } => {}
                ServerState::Idle if server.is_multiple_of(7) => continue,
                other => return Err(format!("server {server} is not connected at rest: {other:?}")),
            }
            let freshness = self.supervisor.freshness(&server, ListKind::Prompts);
            let version = self.fakes[server as usize].version.to_string();
            let names: Vec<_> = catalogue.prompts.iter().flat_map(|list| list.iter().map(|one| &*one.name)).collect();
            if freshness != Freshness::Fresh || names != [version.as_str()] {
                return Err(format!("server {server} has version {version}, and its list {freshness:?} {names:?}"));
            }
        }
        Ok(())
    }
}
