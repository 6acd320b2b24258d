//! One run: the random actions of the application, and the invariants of its calls for any actions
//! of network and server.

use super::super::app::Work;
use super::super::digest::log::{Engine, Entry, Log, Op};
use super::super::fault::Chaos;
use super::super::report::Report;
use super::model::Model;
use super::net::Web;
use super::tap::Serves;
use super::{Rng, Scenario};
use bytes::Bytes;
use mcp_proto::client::{Event, ListenerStart, Repeat, Resume, State, Termination};
use mcp_proto::exchange::{Closed, ConnectionId, Headers, IoEvent, Peer, Sent};
use mcp_proto::input::{
    Applied, CallId, ClientCommand, Input, InputAnswer, InputKey, InputToken, NotificationId, WiredClientInput,
};
use mcp_proto::input::{AuthKey, Authorization, Challenge};
use mcp_proto::model::elicitation::ElicitResult;
use mcp_proto::rpc::Object;
use mcp_proto::{Call, CallError, ClientConfig, Era, Instant, tools};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// The timeout of calls without their own.
const TIMEOUT: Duration = Duration::from_secs(30);
/// The maximum recovery time of the client without faults: the longest `retry`, and a margin.
const RECOVERY: Duration = Duration::from_secs(420);
/// How many calls may run at once.
const MOST: usize = 12;

/// The record of a call.
struct Made {
    tag: Option<u64>,
    at: Instant,
    limit: Option<Duration>,
    /// Whether its timeout may have been paused.
    held: bool,
    progress: f64,
    ended: bool,
}

pub(super) struct Run {
    web: Web<Model>,
    scenario: Scenario,
    rng: Rng,
    operations: u64,
    next_operation: Instant,
    tag: u64,
    made: BTreeMap<CallId, Made>,
    /// Tags of calls that run.
    alive: BTreeSet<u64>,
    /// Tags of calls that may run once only.
    once: BTreeSet<u64>,
    /// Tracked notifications that have not ended.
    notes: BTreeSet<NotificationId>,
    /// Tags of calls that ended as if they had certainly not run.
    unsent: BTreeSet<u64>,
    questions: Vec<(InputToken, InputKey)>,
    open_questions: BTreeSet<InputKey>,
    challenges: Vec<(AuthKey, Challenge)>,
    /// The time of the latest notification about a change of the tools.
    changed: Option<Instant>,
    ended: Option<Termination>,
    closing: bool,
    seen: Seen,
    report: Report,
}

/// The observations of the client, for the comparison with its own numbers.
#[derive(Default)]
struct Seen {
    diagnostics: u64,
}

/// The configuration of the client of a scenario.
pub(super) fn configure(scenario: &Scenario) -> ClientConfig {
    let mut config = ClientConfig::url("http://localhost/mcp?x=1").expect("a url").with_elicitation();
    config.policy = scenario.settings.policy;
    config.timeout = Some(TIMEOUT);
    config.limits.client.max_calls = MOST;
    config.headers = Headers::new().with("X-App", "of ours");
    config.authorize = scenario.settings.authorize;
    config.watch_tools = scenario.settings.watch_tools;
    config.compat.listener = scenario.settings.listener;
    config.resume = scenario.settings.resume;
    config.repeat = scenario.settings.repeat;
    config.compat.sse_decode = scenario.settings.sse_decode;
    config.ping = scenario.settings.ping;
    config.listener_idle = Some(scenario.settings.idle);
    config.limits.client.max_queued_events = usize::MAX;
    config
}

impl Run {
    pub(super) fn new(scenario: &Scenario, trace: bool) -> Self {
        Self::with(scenario, trace, Log::default())
    }

    /// A run that records all inputs of its client.
    pub(super) fn record(scenario: &Scenario) -> Vec<Entry> {
        let mut run = Self::with(scenario, false, Log::on());
        run.run();
        let stats = format!("{:?}", run.web.engine().stats());
        run.web.log.push(Engine::Client(0), run.web.net.now, || Op::Stats(stats));
        run.web.log.take()
    }

    fn with(scenario: &Scenario, trace: bool, log: Log) -> Self {
        let mut rng = Rng::new(scenario.seed);
        let mut model = Model::new(scenario.settings.flavour.clone());
        model.wants_tokens = scenario.settings.authorize;
        let mut chaos = Chaos::new(Rng::new(rng.draw()), scenario.faults);
        chaos.skip.clone_from(&scenario.less.faults);
        Self {
            web: Web::with(configure(scenario), model, chaos, scenario.capacity, trace, log),
            scenario: scenario.clone(),
            operations: 0,
            next_operation: Instant::ZERO,
            rng,
            tag: 0,
            made: BTreeMap::new(),
            alive: BTreeSet::new(),
            once: BTreeSet::new(),
            notes: BTreeSet::new(),
            unsent: BTreeSet::new(),
            questions: Vec::new(),
            open_questions: BTreeSet::new(),
            challenges: Vec::new(),
            changed: None,
            ended: None,
            closing: false,
            seen: Seen::default(),
            report: Report::default(),
        }
    }

    /// Runs to the end: the operations, a time without faults in which a call must succeed, then
    /// the end. After that no state may be left.
    pub(super) fn run(&mut self) -> Report {
        while self.operations < self.scenario.operations {
            self.advance();
        }
        self.wait(Duration::from_secs(130), |run| run.alive.is_empty());
        self.web.net.chaos.rate = 0;
        self.web.site.token = None;
        // A server that is polled needs a client that polls.
        let fit = !self.scenario.settings.flavour.polling || self.scenario.settings.resume == Resume::Progress;
        if fit && self.rng.per_mille(300) {
            self.recover();
        }
        self.tell(Input::Command(ClientCommand::Close));
        while self.web.engine().client().state() == State::Closing && self.web.next().is_some() {
            if self.rng.per_mille(600) {
                self.burst();
            }
            self.web.step();
            self.look();
        }
        self.wait(Duration::from_secs(60), |run| run.ended.is_some());
        self.web.site.stop();
        self.wait(Duration::from_secs(600), |run| run.web.next().is_none());
        self.check_rest();
        self.spurious_after_the_end();
        self.count()
    }

    /// Nothing goes wrong any more: the client finds its way back, unless it has ended.
    fn recover(&mut self) {
        self.wait(RECOVERY, |run| run.ended.is_some());
        for n in (0..self.questions.len()).rev() {
            self.answer(n);
        }
        while !self.challenges.is_empty() {
            self.authorize(0);
        }
        self.wait(RECOVERY, |run| run.ended.is_some());
        if self.ended.is_some() || self.closing {
            return;
        }
        let state = self.web.engine().client().state();
        assert!(matches!(state, State::Ready | State::Lapsed), "it is {state:?} though nothing goes wrong");
        // Without faults, every change by a watched server of tools is known in the end.
        let flavour = &self.scenario.settings.flavour;
        let watched = self.scenario.settings.watch_tools && (flavour.listener || flavour.era == Era::Modern);
        if watched && self.scenario.faults == 0 && self.scenario.settings.listener != ListenerStart::Never {
            let settled = self.web.net.now - Instant::from_millis(100_000);
            let last = self.web.site.changes.iter().rfind(|at| at.since_origin() <= settled).copied();
            assert!(self.changed >= last, "the tools changed at {last:?}, which was last told at {:?}", self.changed);
        }
        let before = self.report.completed;
        let call = self.work(Work { millis: 10, harmless: Some(false), ..Work::default() }, Some(TIMEOUT));
        self.wait(TIMEOUT, |run| run.alive.is_empty());
        if let Some(call) = call.and_then(|call| self.made.get(&call)) {
            assert!(call.ended && self.report.completed > before, "a call fails though nothing goes wrong");
        }
    }

    /// Steps until so much time has passed, or `done`.
    fn wait(&mut self, most: Duration, done: impl Fn(&Self) -> bool) {
        let until = self.web.net.now + most;
        for _ in 0..200_000 {
            if done(self) {
                return;
            }
            match self.web.next() {
                Some(at) if at <= until => {
                    self.web.step();
                    self.look();
                }
                _ => {
                    self.web.net.now = until;
                    return;
                }
            }
        }
        panic!("still busy at {:?}", self.web.net.now);
    }

    fn advance(&mut self) {
        match self.web.next() {
            Some(at) if at < self.next_operation => self.web.step(),
            _ => {
                self.web.net.now = self.web.net.now.max(self.next_operation);
                self.next_operation =
                    self.web.net.now + Duration::from_millis([30, 400, 400, 8_000][self.rng.below(4) as usize]);
                if !self.scenario.less.operations.contains(&self.operations) {
                    self.operate();
                }
                self.operations += 1;
            }
        }
        self.look();
    }

    /// Returns the number of random faults, and of operations.
    pub(super) fn drawn(&self) -> (u64, u64) {
        (self.web.net.chaos.drawn, self.operations)
    }

    // ---- the application

    fn operate(&mut self) {
        let state = self.web.engine().client().state();
        if matches!(state, State::Probing | State::Initializing | State::Lapsed) && self.rng.per_mille(400) {
            return self.burst();
        }
        let call = CallId(1 + self.rng.below(self.made.len() as u64 + 1));
        let command = match self.rng.below(40) {
            0..=19 => return self.some_work(),
            20..=22 => {
                self.call(None, true, Some(TIMEOUT), tools::list());
                return;
            }
            23..=25 => ClientCommand::Cancel(call, Some("no longer wanted".into())),
            26..=31 if !self.challenges.is_empty() => return self.authorize(26),
            26..=31 if self.questions.is_empty() => return,
            26..=31 => return self.answer(self.rng.clone().below(self.questions.len() as u64) as usize),
            32 => ClientCommand::NotifyTracked("acme/note".into(), Object::new()),
            33 if self.rng.per_mille(300) => ClientCommand::Close,
            _ => return self.spurious(),
        };
        self.tell(Input::Command(command));
    }

    /// A client that is not ready, or not any more, is looked at closely.
    fn burst(&mut self) {
        let lapsed = self.web.engine().client().state() == State::Lapsed;
        for _ in 0..self.rng.below(if lapsed { 12 } else { 4 }) {
            let command = match self.rng.below(8) {
                2..=6 if lapsed && self.rng.per_mille(700) => {
                    self.spurious();
                    continue;
                }
                0 => ClientCommand::Cancel(CallId(1 + self.rng.below(4)), None),
                1 | 2 => ClientCommand::Answer(InputKey::new(9999), InputAnswer::Elicitation(ElicitResult::Cancel)),
                3 | 4 => ClientCommand::Notify("acme/note".into(), Object::new()),
                5 if self.closing || self.rng.per_mille(250) => ClientCommand::Close,
                6 => return self.spurious(),
                7 if lapsed => ClientCommand::Cancel(CallId(1), None),
                _ => return self.some_work(),
            };
            self.tell(Input::Command(command));
        }
    }

    fn some_work(&mut self) {
        self.tag += 1;
        let millis = [0, 10, 500, 5_000, 40_000][self.rng.below(5) as usize];
        let padding = [0, 100, 8_000][self.rng.below(3) as usize];
        let (ticks, questions) = (self.rng.below(4), self.rng.below(8).saturating_sub(5));
        let harmless = Some(self.rng.per_mille(500));
        let limit = match self.rng.below(6) {
            0 => None,
            1 => Some(Duration::from_secs(3)),
            _ => Some(TIMEOUT),
        };
        self.work(Work { tag: self.tag, millis, ticks, questions, padding, harmless, ..Work::default() }, limit);
    }

    fn work(&mut self, work: Work, limit: Option<Duration>) -> Option<CallId> {
        let mut call = tools::call("work").arguments(&work).timeout(limit);
        let harmless = work.harmless == Some(true);
        if harmless {
            call = call.repeatable();
        }
        if self.rng.per_mille(500) {
            call = call.progress();
        }
        self.call(Some(work.tag), harmless, limit, call)
    }

    fn call<M: mcp_proto::Method>(
        &mut self,
        tag: Option<u64>,
        harmless: bool,
        limit: Option<Duration>,
        call: Call<M>,
    ) -> Option<CallId> {
        self.alive.extend(tag);
        let at = self.web.net.now;
        match self.web.tell(Input::Command(ClientCommand::Call(call.into_raw()))) {
            Ok(Applied::Call(call)) => {
                let held = !self.open_questions.is_empty() || !self.challenges.is_empty();
                let progress = f64::NEG_INFINITY;
                self.made.insert(call, Made { tag, at, limit, held, progress, ended: false });
                self.report.calls += 1;
                self.once.extend(tag.filter(|_| !harmless));
                self.look();
                Some(call)
            }
            _ => {
                tag.map(|tag| self.alive.remove(&tag));
                self.look();
                None
            }
        }
    }

    fn answer(&mut self, n: usize) {
        let (token, key) = self.questions.swap_remove(n);
        drop(token);
        self.open_questions.remove(&key);
        let answer = match self.rng.below(10) {
            0 => ElicitResult::Decline,
            1 => ElicitResult::Cancel,
            _ => ElicitResult::Accept(Object::new().with("answer", "yes")),
        };
        self.tell(Input::Command(ClientCommand::Answer(key, InputAnswer::Elicitation(answer))));
    }

    /// Returns the token for the oldest challenge. With `other`, perhaps another one or none.
    fn authorize(&mut self, other: u64) {
        let (key, challenge) = self.challenges.remove(0);
        let with = match self.rng.below(other + 4) {
            4 => Authorization::Refuse,
            n => {
                let text = challenge.hints.www_authenticate.first().map(String::as_str).unwrap_or_default();
                let realm = text.split("realm=\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap_or_default();
                let value = if n == 5 { "Bearer 0".into() } else { format!("Bearer {realm}") };
                self.web.tap.grant(value.clone());
                Authorization::Headers(Headers::new().with("Authorization", value))
            }
        };
        self.tell(Input::Command(ClientCommand::Authorize(key, with)));
    }

    /// Applies an input that no correct driver sends.
    fn spurious(&mut self) {
        let channel = ConnectionId(1 + self.rng.below(40));
        let known = self.web.is_known(channel);
        let input = match self.rng.below(9) {
            0 => Input::Tick,
            1 => Input::Command(ClientCommand::Cancel(CallId(9999), None)),
            2 => Input::Command(ClientCommand::Answer(
                InputKey::new(9999),
                InputAnswer::Elicitation(ElicitResult::Cancel),
            )),
            3 if !known => Input::Event(channel, IoEvent::Read(Bytes::from_static(b"late\n"))),
            4 if !known => Input::Event(channel, IoEvent::ReadClosed),
            5 if !known => Input::Event(channel, IoEvent::Closed(Closed::Reset)),
            6 if !known => Input::Event(channel, IoEvent::Opened(Peer::default())),
            _ => Input::Event(channel, IoEvent::Written(0)),
        };
        self.tell(input);
    }

    fn spurious_after_the_end(&mut self) {
        let channel = ConnectionId(1);
        let events = [
            IoEvent::Opened(Peer::default()),
            IoEvent::Read(Bytes::from_static(b"HTTP/1.1 200 OK\r\n\r\n")),
            IoEvent::ReadClosed,
            IoEvent::Written(10),
            IoEvent::Closed(Closed::Eof),
        ];
        for event in events {
            self.tell(Input::Event(channel, event));
        }
        for command in [
            ClientCommand::Call(tools::list().into_raw()),
            ClientCommand::Cancel(CallId(1), None),
            ClientCommand::Answer(InputKey::new(1), InputAnswer::Elicitation(ElicitResult::Cancel)),
            ClientCommand::Notify("x".into(), Object::new()),
            ClientCommand::Close,
        ] {
            self.tell(Input::Command(command));
        }
        self.tell(Input::Tick);
        assert!(self.web.is_empty(), "something happens after the end");
    }

    fn tell(&mut self, input: WiredClientInput) {
        self.closing |= input == Input::Command(ClientCommand::Close);
        if let Ok(Applied::Notification(id)) = self.web.tell(input) {
            self.notes.insert(id);
        }
        self.look();
    }

    // ---- invariants

    /// Checks the outputs of the last step.
    fn look(&mut self) {
        self.web.tap.look_at_requests(&self.alive, |call| self.made.get(&call)?.tag);
        while let Some((at, event)) = self.web.events.pop_front() {
            assert!(self.ended.is_none(), "{event:?} after the end");
            self.event(at, event);
        }
        self.web.tap.look(&self.alive);
        let now = self.web.net.now;
        for (call, made) in self.made.iter().filter(|(_, made)| !made.ended && !made.held) {
            assert!(made.limit.is_none_or(|limit| now <= made.at + limit), "{call:?} outlives its timeout");
        }
        assert!(self.web.engine().client().running() <= MOST, "more calls than the limit");
    }

    fn event(&mut self, now: Instant, event: Event) {
        match event {
            Event::Progress { call, progress } => {
                let made = self.made.get_mut(&call).expect("progress of a call that was made");
                assert!(!made.ended, "progress after the end of {call:?}");
                assert!(progress.progress > made.progress, "progress increases");
                made.progress = progress.progress;
            }
            Event::Ended { call, outcome } => {
                let Some(made) = self.made.get_mut(&call) else { panic!("the end of a call that was not made") };
                assert!(!made.ended, "{call:?} ended twice");
                made.ended = true;
                if let (Ok(result), Some(tag)) = (&outcome, made.tag) {
                    let text = result.json.as_str();
                    assert!(text.contains(&format!("\"text\":\"{tag}:")), "{call:?} with tag {tag} got {text}");
                    self.report.completed += 1;
                }
                if let Some(tag) = made.tag {
                    self.alive.remove(&tag);
                    let unsent = outcome.as_ref().is_err_and(|error| error.sent() == Sent::No);
                    self.unsent.extend(Some(tag).filter(|_| unsent));
                }
                if let (Err(CallError::Timeout { .. }), Some(limit)) = (&outcome, made.limit) {
                    assert!(now >= made.at + limit, "{call:?} timed out early");
                }
                if self.scenario.faults == 0 && !self.closing {
                    let expected = matches!(
                        &outcome,
                        Ok(_) | Err(CallError::Timeout { .. } | CallError::Cancelled { .. } | CallError::Input(_))
                    );
                    // A server that is polled needs a client that polls.
                    let expected = expected
                        || matches!(&outcome, Err(CallError::NoResponse { .. }))
                            && self.scenario.settings.flavour.polling
                            && self.scenario.settings.resume != Resume::Progress;
                    assert!(expected, "nothing goes wrong, and {call:?} ends with {outcome:?}");
                }
            }
            Event::InputNeeded { token, .. } => {
                let key = token.key();
                assert!(self.open_questions.insert(key), "asked twice");
                self.questions.push((token, key));
                self.made.values_mut().for_each(|made| made.held = true);
            }
            Event::AuthNeeded { token, challenge, .. } => {
                assert!(self.scenario.settings.authorize, "a challenge without a callback for it");
                assert!(self.challenges.iter().all(|(_, open)| *open != challenge), "the same challenge twice");
                self.challenges.push((token.key(), challenge));
                self.made.values_mut().for_each(|made| made.held = true);
            }
            Event::ToolsChanged => self.changed = Some(now),
            Event::InputWithdrawn(key) => assert!(self.open_questions.remove(&key), "withdrawn twice"),
            Event::NotificationEnded { notification, outcome } => {
                assert!(self.notes.remove(&notification), "{notification:?} ended twice: {outcome:?}");
            }
            Event::Diagnostic(_) => self.seen.diagnostics += 1,
            Event::Terminated(why) => {
                let open = self.made.values().filter(|made| !made.ended).count();
                assert_eq!(open, 0, "calls that never ended");
                assert!(self.open_questions.is_empty(), "questions that were never withdrawn");
                assert!(self.notes.is_empty(), "notifications that never ended");
                match &why {
                    Termination::Requested => assert!(self.closing, "it ended without a request to end"),
                    Termination::Negotiation(_) => assert!(self.scenario.faults > 0, "nothing goes wrong, and {why:?}"),
                    Termination::Closed(_) => panic!("a client over HTTP ends with no connection: {why:?}"),
                }
                self.ended = Some(why);
            }
            _ => {}
        }
    }

    fn check_rest(&mut self) {
        assert!(self.ended.is_some(), "it never ended: {:?}", self.web.engine().client().state());
        assert_eq!(self.web.engine().poll_timeout(), None, "it waits after its end");
        assert!(self.web.is_empty(), "connections that were not closed");
        let stats = self.web.engine().stats();
        assert_eq!((stats.calls, stats.questions, stats.channels, stats.unsent, stats.queued), (0, 0, 0, 0, 0));
        assert_eq!(stats.calls_made, self.made.len() as u64);
        assert_eq!(self.web.closed, self.web.tap.opened, "the end of each channel is reported");
        assert_eq!(stats.diagnostics.values().sum::<u64>(), self.seen.diagnostics);
        assert!(stats.traffic.bytes_in <= self.web.tap.bytes.0 && stats.traffic.bytes_out <= self.web.tap.bytes.1);
        for ((tag, round), n) in &self.web.site.runs {
            let most = if self.once.contains(tag) && self.scenario.settings.repeat != Repeat::Always { 1 } else { 4 };
            assert!(!self.unsent.contains(tag), "the call {tag} ran, and its end says that it certainly did not");
            assert!(*n <= most, "the call {tag} ran {n} times in round {round}");
        }
        let mut posts = BTreeMap::<u64, u32>::new();
        for sent in self.web.tap.sent("POST") {
            if let Some(Serves::Work(tag)) = sent.stream.map(|stream| &self.web.tap.streams[stream].serves) {
                *posts.entry(*tag).or_default() += 1;
            }
        }
        assert!(posts.values().all(|n| *n <= 16), "a request that is made again and again: {posts:?}");
    }

    fn count(&mut self) -> Report {
        let tap = &self.web.tap;
        self.report.steps = self.web.net.chaos.steps;
        self.report.faults = self.web.net.chaos.faults.clone();
        self.report.pairs = tap.pairs.clone();
        self.report.requests = tap.log.len() as u64;
        self.report.resumed =
            tap.sent("GET").filter(|sent| sent.request.header("last-event-id").is_some()).count() as u64;
        let handshake = |method: &str| matches!(method, "initialize" | "server/discover");
        let handshakes = tap.log.iter().filter(|sent| sent.body["method"].as_str().is_some_and(handshake));
        self.report.handshakes = handshakes.count() as u64;
        self.report.ended = u64::from(!matches!(self.ended, Some(Termination::Requested)));
        std::mem::take(&mut self.report)
    }
}
