//! One run: the requests of all processes, the answers of servers, store and users, and random
//! actions.

use super::super::fault::{Chaos, Fault};
use super::super::report::{LoginInput, Report};
use super::check::Checks;
use super::issuer::{Issuer, Response};
use super::process::Process;
use super::store::{ProcessId, Store};
use super::{Day, Rng, Scenario};
use mcp_proto::Instant;
use mcp_proto::auth::{self, FlowState, Lease, StepId, Version};
use mcp_proto::client::{ClientCommands, Event, Output};
use mcp_proto::exchange::{Closed, ExchangeEvent, ExchangeId, Sent, Start};
use mcp_proto::input::{ClientCommand, Input};
use mcp_proto::tools;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// The port of the guarded server.
pub(super) const SERVER_PORT: u16 = 8000;
/// The ports of its authorization servers.
const ISSUER_PORTS: [u16; 2] = [9001, 9002];
/// The states of a login with a user.
pub(super) const STATES: &[FlowState] = &[
    FlowState::Idle,
    FlowState::Loading,
    FlowState::Leasing,
    FlowState::Discovering,
    FlowState::Listening,
    FlowState::Registering,
    FlowState::Authorizing,
    FlowState::Redeeming,
    FlowState::Waiting,
    FlowState::Saving,
    FlowState::Revoking,
    FlowState::Holding,
    FlowState::Empty,
];
/// The Unix time at the beginning.
const EPOCH: u64 = 1_800_000_000;
/// Longer than every timeout.
pub(super) const LONG: Duration = Duration::from_secs(1000);

/// What happens later.
#[derive(Debug)]
pub(super) enum SimEvent {
    Respond(ProcessId, ExchangeId, Response),
    Fail(ProcessId, ExchangeId),
    Answer(ProcessId, auth::Input),
}

/// See the [module](self).
#[derive(Debug)]
pub(super) struct World {
    pub(super) scenario: Scenario,
    pub(super) trace: bool,
    pub(super) now: Instant,
    pub(super) rng: Rng,
    pub(super) chaos: Chaos,
    pub(super) processes: Vec<Process>,
    pub(super) last_process: ProcessId,
    pub(super) issuers: [Issuer; 2],
    /// The issuer that the server accepts now.
    pub(super) current: usize,
    /// The scopes that the tool `write` demands.
    pub(super) demanded: BTreeSet<String>,
    pub(super) store: Store,
    pub(super) checks: Checks,
    pub(super) agenda: BTreeMap<(Instant, u64), SimEvent>,
    pub(super) sequence: u64,
    pub(super) operations: u64,
    pub(super) next_operation: Instant,
    /// Whether anything happened after which calls may fail, or a user has to log in again.
    pub(super) is_disturbed: bool,
    /// Actions after which a user may have to log in: those of the application, and scopes.
    pub(super) reasons_to_log_in: u64,
    pub(super) report: Report,
}

impl World {
    pub(super) fn begin(scenario: &Scenario, trace: bool) -> Self {
        let mut rng = Rng::new(scenario.seed);
        let chaos = scenario.chaos(Rng::new(rng.draw()));
        let settings = &scenario.settings;
        let issuer = |port| Issuer::new(port, settings.lifetime, settings.rotates, settings.names_issuer);
        let mut world = Self {
            scenario: scenario.clone(),
            trace,
            now: Instant::ZERO,
            rng,
            chaos,
            processes: Vec::new(),
            last_process: 0,
            issuers: ISSUER_PORTS.map(issuer),
            current: 0,
            demanded: BTreeSet::from(["basic".to_owned(), "write".to_owned()]),
            store: Store::default(),
            checks: Checks::default(),
            agenda: BTreeMap::new(),
            sequence: 0,
            operations: 0,
            next_operation: Instant::ZERO,
            is_disturbed: false,
            reasons_to_log_in: 1,
            report: Report::default(),
        };
        (0..scenario.settings.processes).for_each(|_| world.start());
        world
    }

    /// Returns the numbers of random faults and of operations so far.
    pub(super) fn drawn(&self) -> (u64, u64) {
        (self.chaos.drawn, self.operations)
    }

    /// Runs to the end: the operations, a time without faults, then the end of all processes.
    pub(super) fn run(&mut self) -> Report {
        while self.operations < self.scenario.operations {
            self.advance();
        }
        self.chaos.rate = 0;
        self.run_for(LONG);
        for at in 0..self.processes.len() {
            let running = self.processes[at].calls.values().filter(|ends| **ends == 0).count();
            assert_eq!(running, 0, "a call does not end: {:?}", self.processes[at].client.login_state());
        }
        self.check_pages();
        (0..self.processes.len()).for_each(|at| self.command(at, ClientCommand::Close));
        self.run_for(LONG);
        self.processes.iter().for_each(Checks::at_rest);
        Checks::store_at_rest(&self.store);
        self.report.steps = self.chaos.steps;
        self.report.faults.clone_from(&self.chaos.faults);
        self.report.refreshes = self.issuers.iter().map(|issuer| issuer.refreshes).sum();
        self.report.registrations = self.issuers.iter().map(|issuer| issuer.registrations).sum();
        self.report.clone()
    }

    /// Without a disturbance a user logs in once, and once more for each reason.
    fn check_pages(&self) {
        if !self.is_disturbed && self.scenario.faults == 0 {
            let (pages, most) = (self.report.pages, self.reasons_to_log_in);
            assert!(pages <= most, "{pages} pages, and {most} reasons to log in");
        }
    }

    fn start(&mut self) {
        self.last_process += 1;
        let ahead = if self.last_process == 2 { self.scenario.settings.ahead } else { 0 };
        let unix = Duration::from_secs(EPOCH.saturating_add_signed(ahead));
        let process = Process::start(self.last_process, self.rng.seed(), self.now, unix);
        self.processes.push(process);
        self.drain(self.processes.len() - 1);
    }

    // ---- time

    fn next_event(&self) -> Option<Instant> {
        let timers = self.processes.iter().filter_map(|process| process.client.poll_timeout());
        timers.chain(self.agenda.keys().next().map(|(at, _)| *at)).min()
    }

    /// Lets the next thing happen, which is an operation if nothing else is due before it.
    fn advance(&mut self) {
        match self.next_event().filter(|at| *at < self.next_operation) {
            Some(at) => self.happen(at),
            None => {
                self.now = self.now.max(self.next_operation);
                let pause = self.rng.of(&[20, 500, 3_000, 30_000, 400_000]);
                self.next_operation = self.now + Duration::from_millis(self.rng.below(pause));
                self.operations += 1;
                if !self.scenario.less.operations.contains(&(self.operations - 1)) {
                    self.operate();
                }
            }
        }
    }

    fn run_for(&mut self, time: Duration) {
        let until = self.now + time;
        while let Some(at) = self.next_event().filter(|at| *at <= until) {
            self.happen(at);
        }
        self.now = until;
    }

    fn happen(&mut self, at: Instant) {
        self.now = self.now.max(at);
        self.chaos.steps += 1;
        let due = self.agenda.keys().next().copied().filter(|(due, _)| *due <= self.now);
        match due.and_then(|due| self.agenda.remove(&due)) {
            Some(SimEvent::Respond(id, exchange, response)) => self.respond(id, exchange, response),
            Some(SimEvent::Fail(id, exchange)) => {
                let failed = ExchangeEvent::Failed { sent: Sent::Maybe, why: Closed::Reset };
                self.exchange_ends(id, exchange, |client, now| client.handle_event(now, exchange, failed));
            }
            Some(SimEvent::Answer(id, input)) => {
                if let Some(at) = self.place(id) {
                    self.auth(at, input);
                }
            }
            None => {
                let now = self.now;
                let due = |process: &Process| process.client.poll_timeout().is_some_and(|at| at <= now);
                let Some(at) = self.processes.iter().position(due) else { return };
                self.count(at, LoginInput::Tick);
                self.processes[at].client.handle_timeout(now);
                self.drain(at);
            }
        }
    }

    pub(super) fn later(&mut self, after: Duration, happening: SimEvent) {
        self.sequence += 1;
        self.agenda.insert((self.now + after, self.sequence), happening);
    }

    pub(super) fn soon(&mut self) -> Duration {
        Duration::from_millis(self.rng.below(400))
    }

    pub(super) fn place(&self, id: ProcessId) -> Option<usize> {
        self.processes.iter().position(|process| process.id == id)
    }

    // ---- the application

    fn operate(&mut self) {
        let at = self.rng.below(self.processes.len() as u64) as usize;
        if self.processes[at].client.is_terminated() {
            self.processes.remove(at);
            return self.start();
        }
        match self.rng.below(24) {
            0..=13 => self.call(at, "whoami"),
            14..=16 => self.call(at, "write"),
            17 => self.log_in(at),
            18 => self.log_out(at),
            19 if self.chaos.hit(Fault::ProcessDies, 500) => self.kill(at),
            20 if self.chaos.hit(Fault::IssuerMoved, 200) => {
                self.current = 1 - self.current;
                self.disturb();
            }
            21 if self.chaos.hit(Fault::GrantDead, 300) => {
                self.issuers[self.current].revoke_latest();
                self.disturb();
            }
            22 if self.chaos.hit(Fault::ClientForgotten, 300) => {
                self.issuers[self.current].forget_client();
                self.disturb();
            }
            _ => self.spurious(at),
        }
    }

    pub(super) fn disturb(&mut self) {
        self.is_disturbed = true;
    }

    fn call(&mut self, at: usize, tool: &str) {
        if tool == "write" {
            self.reasons_to_log_in += 1;
        }
        if tool == "write" && self.chaos.hit(Fault::ScopeDemanded, 300) {
            let scope = format!("scope-{}", self.demanded.len());
            self.demanded.insert(scope);
        }
        self.count(at, LoginInput::Call);
        let (process, now) = (&mut self.processes[at], self.now);
        if let Ok(call) = process.client.call(now, tools::call(tool)) {
            process.calls.insert(call.id(), 0);
            self.report.calls += 1;
        }
        self.drain(at);
    }

    fn log_in(&mut self, at: usize) {
        self.reasons_to_log_in += 1;
        self.processes[at].logins += 1;
        self.disturb();
        self.count(at, LoginInput::Login);
        self.command(at, ClientCommand::Login);
    }

    fn log_out(&mut self, at: usize) {
        self.reasons_to_log_in += 1;
        self.disturb();
        self.count(at, LoginInput::Logout);
        self.command(at, ClientCommand::Logout);
    }

    fn command(&mut self, at: usize, command: ClientCommand) {
        if command == ClientCommand::Close {
            self.count(at, LoginInput::Close);
            self.processes[at].is_closing = true;
        }
        let (process, now) = (&mut self.processes[at], self.now);
        // A client that has ended refuses it.
        let _ = process.client.apply(now, Input::Command(command));
        self.drain(at);
    }

    /// Nothing of a process moves any more, and the system releases its leases.
    fn kill(&mut self, at: usize) {
        let process = self.processes.remove(at);
        self.disturb();
        for purpose in [auth::Purpose::Login, auth::Purpose::Change] {
            self.release(process.id, purpose);
        }
        self.agenda.retain(|_, happening| match happening {
            SimEvent::Respond(id, ..) | SimEvent::Fail(id, _) | SimEvent::Answer(id, _) => *id != process.id,
        });
        self.start();
    }

    /// Applies an input that no correct driver gives, or that comes at any time.
    fn spurious(&mut self, at: usize) {
        let step = StepId(1 + self.rng.below(400));
        let input = match self.rng.below(12) {
            0 | 1 => auth::Input::Leased(step, Ok(Lease::Held)),
            2 | 3 => auth::Input::Loaded(step, Ok(self.store.stored())),
            4 | 5 => auth::Input::Saved(step, Ok(Version(1))),
            6 => auth::Input::Listening(step, Ok("http://127.0.0.1:1/callback".into())),
            7 | 8 => auth::Input::Redirected(step, "http://127.0.0.1:1/callback?code=x&state=y".into()),
            9 => auth::Input::Declined(step),
            10 => {
                self.count(at, LoginInput::Tick);
                self.processes[at].client.handle_timeout(self.now);
                return self.drain(at);
            }
            _ => return self.call(at, "whoami"),
        };
        // An answer to a step that is open would be a true one.
        let is_open =
            self.agenda.values().any(|happening| matches!(happening, SimEvent::Answer(_, of) if of.step() == step))
                || self.processes[at].listener == Some(step)
                || self.processes[at].pages.contains(&step)
                || !self.store.is_at_rest();
        if !is_open {
            self.auth(at, input);
        }
    }

    // ---- inputs

    fn auth(&mut self, at: usize, input: auth::Input) {
        let kind = match &input {
            auth::Input::Leased(..) => LoginInput::Leased,
            auth::Input::Loaded(..) => LoginInput::Loaded,
            auth::Input::Saved(..) => LoginInput::Saved,
            auth::Input::Listening(..) => LoginInput::Listening,
            auth::Input::Redirected(..) => LoginInput::Redirected,
            _ => LoginInput::Declined,
        };
        self.count(at, kind);
        self.print(|| format!("{at}: {input:?}"));
        self.processes[at].client.auth(self.now, input);
        self.drain(at);
    }

    fn count(&mut self, at: usize, input: LoginInput) {
        if let Some(state) = self.processes[at].client.login_state() {
            *self.report.login_pairs.entry((state, input)).or_default() += 1;
        }
    }

    fn print(&self, line: impl FnOnce() -> String) {
        if self.trace {
            println!("{:>10.3} {}", self.now.since_origin().as_secs_f64(), line());
        }
    }

    // ---- outputs

    pub(super) fn drain(&mut self, at: usize) {
        while let Some(output) = self.processes[at].client.poll_output() {
            self.print(|| format!("{at}: {output:?}"));
            match output {
                Output::Start(exchange, Start::Http { origin, head, body, raw, .. }) => {
                    self.begin_exchange(at, exchange, &origin, &head, &body, raw);
                }
                Output::Start(..) | Output::Send(..) => panic!("not a request: {output:?}"),
                Output::Abort(exchange) => {
                    self.processes[at].open.remove(&exchange);
                }
                Output::Event(event) => self.event(at, event),
            }
        }
        // A state that does not last is looked at closely.
        let is_brief = self.processes[at]
            .client
            .login_state()
            .is_some_and(|state| !matches!(state, FlowState::Holding | FlowState::Empty | FlowState::Idle));
        if self.scenario.faults > 0 && is_brief && self.rng.per_mille(60) {
            match self.rng.below(40) {
                0 => self.log_in(at),
                1 => self.log_out(at),
                2 if self.rng.per_mille(300) => self.command(at, ClientCommand::Close),
                _ => self.spurious(at),
            }
        }
    }

    fn event(&mut self, at: usize, event: Event) {
        self.checks.shown(&event);
        match event {
            Event::Auth(step) => self.step(at, *step),
            Event::Ended { call, outcome } => {
                *self.processes[at].calls.get_mut(&call).expect("it was made") += 1;
                if let Err(why) = &outcome {
                    assert!(!why.to_string().contains(super::check::MARK), "a secret is shown: {why}");
                }
                self.report.completed += u64::from(outcome.is_ok());
                let is_expected = outcome.is_ok() || self.is_disturbed || self.scenario.faults > 0;
                let is_expected = is_expected || self.processes[at].is_closing;
                assert!(is_expected, "nothing goes wrong, and a call ends with {outcome:?}");
            }
            _ => {}
        }
    }
}

/// Runs processes with one store for this time, without faults. Each calls a tool every minute.
///
/// # Panics
/// If a standing property is violated, or a call fails.
pub fn day(seed: u64, processes: u64, lifetime: u64, time: Duration) -> Day {
    let mut scenario = <super::Settings as super::scenario::Settings>::from_seed(seed);
    (scenario.faults, scenario.operations) = (0, 0);
    scenario.settings =
        super::Settings { processes, lifetime, rotates: true, store_fails: false, names_issuer: true, ahead: 0 };
    let mut world = World::begin(&scenario, false);
    let minute = Duration::from_secs(60);
    let mut calls = 0;
    while world.now.since_origin() < time {
        for at in 0..world.processes.len() {
            world.call(at, "whoami");
            calls += 1;
        }
        world.run_for(minute);
    }
    let report = world.run();
    // Each token is renewed a minute before its end.
    let ideal = 1000 * time.as_secs() / (lifetime - 60);
    Day { pages: report.pages, refreshes: report.refreshes, ideal, calls: (calls, report.completed), time }
}
