//! One run: the requests of all processes, the answers of servers, store and users, and random
//! actions.

use super::super::fault::{Chaos, Fault};
use super::super::report::{LoginInput, Report};
use super::check::Checks;
use super::issuer::{ISSUER_PORTS, Issuer, PROVIDER_PORT, Response};
use super::keys::Keys;
use super::process::{Process, StepKind, configure};
use super::servers::Nonces;
use super::settings::{ClientKind, GrantKind, Settings};
use super::store::{ProcessId, Store};
use super::tokens::Assertions;
use super::{Day, Rng, Scenario};
use mcp_proto::Instant;
use mcp_proto::auth::{self, Alg, AuthConfig, Dpop, Lease};
use mcp_proto::client::{ClientCommands, Event, Output};
use mcp_proto::exchange::{Closed, ExchangeEvent, ExchangeId, Sent, Start};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// The port of the guarded server.
pub(super) const SERVER_PORT: u16 = 8000;
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
    /// A user enters a code, and agrees or not.
    Entered(String, bool),
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
    config: Arc<AuthConfig>,
    /// Those of the server, and the identity provider.
    pub(super) issuers: [Issuer; 3],
    /// The issuer that the server accepts now.
    pub(super) current: usize,
    /// The scopes that the tool `write` demands.
    pub(super) demanded: BTreeSet<String>,
    pub(super) store: Store,
    pub(super) keys: Keys,
    pub(super) assertions: Assertions,
    pub(super) nonces: Nonces,
    pub(super) checks: Checks,
    pub(super) agenda: BTreeMap<(Instant, u64), SimEvent>,
    pub(super) sequence: u64,
    pub(super) operations: u64,
    pub(super) next_operation: Instant,
    /// Whether anything happened after which calls may fail, or a user has to log in again.
    pub(super) is_disturbed: bool,
    /// Actions after which a user may have to log in: those of the application, and scopes.
    pub(super) reasons_to_log_in: u64,
    /// The inputs that were provoked since the state of the settings occurred.
    pub(super) probes: u64,
    pub(super) report: Report,
}

impl World {
    pub(super) fn begin(scenario: &Scenario, trace: bool) -> Self {
        let mut rng = Rng::new(scenario.seed);
        let mut chaos = scenario.chaos(Rng::new(rng.draw()));
        let settings = &scenario.settings;
        chaos.favourite = settings.favourite;
        let [first, second] = ISSUER_PORTS;
        let mut issuers = [first, second, PROVIDER_PORT].map(|port| Issuer::new(port, settings));
        let mut keys = Keys::default();
        let config = configure(settings, &mut issuers, &mut keys);
        let mut checks = Checks::default();
        issuers.iter_mut().for_each(|issuer| checks.minted(std::mem::take(&mut issuer.secrets)));
        let mut world = Self {
            scenario: scenario.clone(),
            trace,
            now: Instant::ZERO,
            rng,
            chaos,
            processes: Vec::new(),
            last_process: 0,
            config: Arc::new(config),
            issuers,
            current: 0,
            demanded: BTreeSet::from(["basic".to_owned(), "write".to_owned()]),
            store: Store::default(),
            keys,
            assertions: Assertions::default(),
            nonces: Nonces::default(),
            checks,
            agenda: BTreeMap::new(),
            sequence: 0,
            operations: 0,
            next_operation: Instant::ZERO,
            is_disturbed: false,
            reasons_to_log_in: 1,
            probes: 0,
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
        self.processes.iter().for_each(|process| self.checks.shown(&process.client));
        (0..self.processes.len()).for_each(|at| self.close(at));
        self.run_for(LONG);
        self.processes.iter().for_each(Checks::at_rest);
        Checks::store_at_rest(&self.store);
        self.report.steps = self.chaos.steps;
        self.report.faults.clone_from(&self.chaos.faults);
        self.report.refreshes = self.issuers.iter().map(|issuer| issuer.refreshes).sum();
        self.report.grants = self.issuers.iter().map(|issuer| issuer.grants).sum();
        self.report.proofs = self.keys.proofs;
        self.report.registrations = self.issuers.iter().map(|issuer| issuer.registrations).sum();
        self.report.clone()
    }

    /// Without a disturbance a user logs in once, and once more for each reason.
    fn check_pages(&self) {
        if !self.scenario.settings.grant.needs_user() {
            assert_eq!(self.report.pages, 0, "a page, and no user");
        }
        if !self.is_disturbed && self.scenario.faults == 0 {
            // The second one is for the scopes of the other tool.
            let most = if self.is_calm() { 2 } else { self.reasons_to_log_in };
            let pages = self.report.pages;
            assert!(pages <= most, "{pages} pages, and {most} reasons to log in");
        }
    }

    pub(super) fn start(&mut self) {
        self.last_process += 1;
        let ahead = if self.last_process == 2 { self.scenario.settings.ahead } else { 0 };
        let unix = Duration::from_secs(EPOCH.saturating_add_signed(ahead));
        let process = Process::start(self.last_process, Arc::clone(&self.config), self.rng.seed(), self.now, unix);
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
            Some(happening) => self.take(happening),
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

    pub(super) fn take(&mut self, happening: SimEvent) {
        match happening {
            SimEvent::Respond(id, exchange, response) => self.respond(id, exchange, response),
            SimEvent::Fail(id, exchange) => {
                let failed = ExchangeEvent::Failed { sent: Sent::Maybe, why: Closed::Reset };
                self.exchange_ends(id, exchange, |client, now| client.handle_event(now, exchange, failed));
            }
            SimEvent::Answer(id, input) => {
                if let Some(at) = self.place(id) {
                    self.auth(at, input);
                }
            }
            SimEvent::Entered(code, agrees) => self.entered(&code, agrees),
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

    pub(super) fn disturb(&mut self) {
        self.is_disturbed = true;
    }

    /// Returns whether a fault happens here after which calls may fail.
    pub(super) fn hit(&mut self, fault: Fault, scale: u64) -> bool {
        let hit = self.chaos.hit(fault, scale);
        self.is_disturbed |= hit;
        hit
    }

    // ---- inputs

    fn auth(&mut self, at: usize, input: auth::Input) {
        let kind = match &input {
            auth::Input::Leased(..) => LoginInput::Leased,
            auth::Input::Loaded(..) => LoginInput::Loaded,
            auth::Input::Saved(..) => LoginInput::Saved,
            auth::Input::Listening(..) => LoginInput::Listening,
            auth::Input::Redirected(..) => LoginInput::Redirected,
            auth::Input::Declined(_) => LoginInput::Declined,
            auth::Input::KeyMade(..) => LoginInput::KeyMade,
            auth::Input::Signed(..) => LoginInput::Signed,
            _ => LoginInput::Asserted,
        };
        let (steps, step) = (&mut self.processes[at].steps, input.step());
        let lasts = matches!(steps.get(&step), Some(StepKind::Listen | StepKind::Page));
        if !lasts && !matches!(input, auth::Input::Leased(_, Ok(Lease::Waiting))) {
            steps.remove(&step);
        }
        self.count(at, kind);
        self.print(|| format!("{at}: {input:?}"));
        self.processes[at].client.auth(self.now, input);
        self.drain(at);
    }

    pub(super) fn count(&mut self, at: usize, input: LoginInput) {
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
                Output::Start(exchange, Start::Http { origin, head, body, .. }) => {
                    self.begin_exchange(at, exchange, &origin, &head, &body);
                }
                Output::Start(..) | Output::Send(..) => panic!("not a request: {output:?}"),
                Output::Abort(exchange) => {
                    self.processes[at].open.remove(&exchange);
                }
                Output::Event(event) => self.event(at, event),
            }
        }
        self.look(at);
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
pub fn day(seed: u64, grant: GrantKind, processes: u64, lifetime: u64, time: Duration) -> Day {
    let mut scenario = <Settings as super::scenario::Settings>::from_seed(seed);
    (scenario.faults, scenario.operations) = (0, 0);
    scenario.settings = Settings {
        processes,
        lifetime,
        rotates: true,
        store_fails: false,
        names_issuer: true,
        ahead: 0,
        grant,
        client: ClientKind::Post,
        dpop: Dpop::Off,
        asks_proofs: false,
        alg: Alg::Es256,
        nonces: false,
        favourite: None,
        probe: None,
    };
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
    let refreshes = report.refreshes + report.grants;
    Day { pages: report.pages, refreshes, ideal, calls: (calls, report.completed), time }
}
