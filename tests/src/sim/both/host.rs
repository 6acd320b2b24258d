//! One client and its application: its calls, its events, and their comparison with the actions of
//! the handlers.

use super::super::digest::log::{Engine, Log, Op};
use super::super::report::InputKind;
use super::super::web::Tap;
use super::Report;
use super::app::{Mark, Work, reply};
use super::{Rng, Scenario};
use mcp_proto::client::{Event, ListenerStart, Policy, Repeat, Resume, State, Termination};
use mcp_proto::error::{DiagnosticKind, Refused};
use mcp_proto::exchange::{Action, Headers, IoEvent, Sent};
use mcp_proto::input::{
    Applied, AuthKey, Authorization, CallId, ClientCommand, Input, InputAnswer, InputKey, InputRequest,
    WiredClientInput,
};
use mcp_proto::model::elicitation::ElicitResult;
use mcp_proto::rpc::Object;
use mcp_proto::server::Sessions;
use mcp_proto::wired::WiredClient;
use mcp_proto::{Call, CallError, ClientConfig, Instant, ProtocolVersion, Versions, tools};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// The timeout of calls without their own.
pub(super) const TIMEOUT: Duration = Duration::from_secs(30);
/// How many calls may run at once.
const MOST: usize = 12;

/// What one run of a handler did.
#[derive(Debug)]
pub(super) struct Done {
    /// Whose it was.
    pub(super) mark: Mark,
    /// The notifications that the server took.
    pub(super) said: Vec<u64>,
    /// Whether it answered, and did not ask.
    pub(super) answered: bool,
    /// Whether that answer reached its client.
    pub(super) delivered: bool,
}

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

/// A question that waits for an answer.
struct Question {
    key: InputKey,
    tag: u64,
}

/// A client and its application.
pub(super) struct Host {
    pub(super) number: u64,
    pub(super) principal: u64,
    pub(super) engine: WiredClient,
    pub(super) tap: Tap,
    /// The revision of the client, if it is a legacy one.
    pub(super) older: Option<ProtocolVersion>,
    /// Until when nothing moves at it.
    pub(super) asleep: Instant,
    pub(super) ended: Option<Termination>,
    pub(super) closing: bool,
    /// The time of the latest event about a change of the tools.
    pub(super) changed: Option<Instant>,
    /// Whether it watches the tools.
    pub(super) watches: bool,
    /// Tags of calls that run.
    pub(super) alive: BTreeSet<u64>,
    /// Tags of calls that must run at most once, and of calls that were reported as not sent.
    pub(super) once: BTreeSet<u64>,
    pub(super) unsent: BTreeSet<u64>,
    repeat: Repeat,
    asks: bool,
    rng: Rng,
    made: BTreeMap<CallId, Made>,
    questions: Vec<Question>,
    open_questions: BTreeSet<InputKey>,
    challenges: Vec<AuthKey>,
    tokens: u64,
    /// The received notifications of each run.
    heard: BTreeMap<u64, Vec<u64>>,
    diagnostics: u64,
    /// Connections whose end was reported to it.
    pub(super) channels: u64,
    answered: u64,
}

/// Returns the configuration of a client, and its revision, if that is a legacy one.
pub(super) fn configure(scenario: &Scenario, rng: &mut Rng) -> (ClientConfig, Option<ProtocolVersion>) {
    let older = [
        Some(ProtocolVersion::V2025_11_25),
        Some(ProtocolVersion::V2025_11_25),
        Some(ProtocolVersion::V2025_06_18),
        Some(ProtocolVersion::V2025_03_26),
        None,
        None,
    ][rng.below(6) as usize];
    let mut config = ClientConfig::url("http://localhost/mcp").expect("a url").with_elicitation();
    config.policy = if older.is_some() { Policy::Legacy } else { Policy::Modern };
    config.versions = older.map_or_else(Versions::all, |version| Versions::new([version]));
    if older.is_none() && rng.per_mille(300) {
        config.policy = Policy::Auto;
    }
    config.timeout = Some(TIMEOUT);
    config.headers = Headers::new().with("X-App", "of ours");
    config.authorize = scenario.settings.admit;
    config.watch_tools = rng.per_mille(600);
    config.compat.listener = match rng.below(6) {
        0 => ListenerStart::Never,
        1 => ListenerStart::BeforeInitialized,
        _ => ListenerStart::AfterInitialized,
    };
    config.resume = if rng.per_mille(900) { Resume::Progress } else { Resume::Strict(2) };
    config.repeat = [Repeat::Safe, Repeat::Safe, Repeat::Never, Repeat::Always][rng.below(4) as usize];
    config.ping = rng.per_mille(150).then_some(Duration::from_secs(10));
    config.limits.client.max_calls = MOST;
    config.limits.client.max_queued_events = usize::MAX;
    (config, older)
}

impl Host {
    pub(super) fn new(
        number: u64,
        principal: u64,
        scenario: &Scenario,
        rng: &mut Rng,
        now: Instant,
        log: &mut Log,
    ) -> Self {
        let state = rng.state();
        let (config, older) = configure(scenario, rng);
        let has_sessions = scenario.settings.sessions != Sessions::Off;
        let asks = older.is_none_or(|version| has_sessions && version.rules().elicitation);
        let watches =
            config.watch_tools && (older.is_none() || config.compat.listener != ListenerStart::Never && has_sessions);
        let (config, seed) = (Arc::new(config), rng.seed());
        log.push(Engine::Client(number), now, || Op::Client { rng: state, seed });
        Self {
            number,
            principal,
            tap: Tap::new(&config),
            repeat: config.repeat,
            engine: WiredClient::new(config, seed, now),
            older,
            asleep: Instant::ZERO,
            ended: None,
            closing: false,
            changed: None,
            watches,
            alive: BTreeSet::new(),
            once: BTreeSet::new(),
            unsent: BTreeSet::new(),
            asks,
            rng: Rng::new(rng.draw()),
            made: BTreeMap::new(),
            questions: Vec::new(),
            open_questions: BTreeSet::new(),
            challenges: Vec::new(),
            tokens: 0,
            heard: BTreeMap::new(),
            diagnostics: 0,
            channels: 0,
            answered: 0,
        }
    }

    pub(super) fn state(&self) -> State {
        self.engine.client().state()
    }

    /// Applies an input to the client.
    pub(super) fn tell(
        &mut self,
        now: Instant,
        input: WiredClientInput,
        report: &mut Report,
    ) -> Result<Applied, Refused<WiredClientInput>> {
        let state = self.state();
        *report.pairs.entry((state, InputKind::of(&input))).or_default() += 1;
        self.closing |= input == Input::Command(ClientCommand::Close);
        self.tap.input(now, state, &input);
        if let Input::Event(channel, IoEvent::Read(bytes)) = &input {
            self.tap.heard(*channel, bytes);
        }
        if let Input::Event(channel, IoEvent::ReadClosed | IoEvent::Closed(_)) = &input {
            self.tap.ended(*channel);
        }
        self.engine.apply(now, input)
    }

    /// Makes the next step of the client.
    pub(super) fn next_action(&mut self) -> Option<Action<Event>> {
        let action = self.engine.poll_output()?;
        assert!(self.ended.is_none(), "{action:?} after the end");
        self.tap.action(&action);
        self.tap.look_at_requests(&self.alive, |call| self.made.get(&call)?.tag);
        Some(action)
    }

    // ---- actions of the application

    /// Some work for the server, which is to be asked for under this tag.
    pub(super) fn some_work(&mut self, tag: u64) -> Work {
        let rng = &mut self.rng;
        let closes = rng.per_mille(400);
        Work {
            tag,
            millis: [0, 10, 500, 2_000, 5_000, 20_000][rng.below(6) as usize],
            ticks: rng.below(4),
            says: Some(rng.below(5)),
            questions: if self.asks { rng.below(8).saturating_sub(5) } else { 0 },
            padding: [0, 100, 8_000][rng.below(3) as usize],
            harmless: Some(rng.per_mille(500)),
            closes: Some(closes),
            ..Work::marked(self.number)
        }
    }

    /// The call that asks for it, and how long it may take.
    pub(super) fn ask_for(&mut self, work: &Work) -> (Call<tools::CallTool>, Option<Duration>) {
        let limit = match self.rng.below(6) {
            0 => Some(Duration::from_secs(120)),
            1 => Some(Duration::from_secs(3)),
            _ => Some(TIMEOUT),
        };
        let mut call = tools::call("work").arguments(work).timeout(limit);
        let harmless = work.harmless == Some(true);
        if harmless {
            call = call.repeatable();
        }
        if self.rng.per_mille(500) {
            call = call.progress();
        }
        if !harmless && self.repeat != Repeat::Always {
            self.once.insert(work.tag);
        }
        (call, limit)
    }

    /// A call was made.
    pub(super) fn made(&mut self, now: Instant, call: CallId, tag: Option<u64>, limit: Option<Duration>) {
        let held = !self.open_questions.is_empty() || !self.challenges.is_empty();
        let made = Made { tag, at: now, limit, held, progress: f64::NEG_INFINITY, ended: false };
        assert!(self.made.insert(call, made).is_none(), "{call:?} twice");
    }

    /// One of the calls that were made, or none.
    pub(super) fn some_call(&mut self) -> CallId {
        let last = self.made.len() as u64;
        CallId(last.saturating_sub(self.rng.below(6)))
    }

    /// An answer to one of the questions.
    pub(super) fn answer(&mut self, kindly: bool) -> Option<ClientCommand> {
        let at = self.rng.below(self.questions.len() as u64) as usize;
        let question = (at < self.questions.len()).then(|| self.questions.swap_remove(at))?;
        self.open_questions.remove(&question.key);
        let text = reply(self.number, question.tag);
        let answer = match self.rng.below(12) {
            0 if !kindly => ElicitResult::Decline,
            1 if !kindly => ElicitResult::Cancel,
            _ => ElicitResult::Accept(Object::new().with("answer", text.as_str())),
        };
        self.answered += 1;
        Some(ClientCommand::Answer(question.key, InputAnswer::Elicitation(answer)))
    }

    /// Credentials for one of the challenges.
    pub(super) fn authorize(&mut self, kindly: bool) -> Option<ClientCommand> {
        let key = (!self.challenges.is_empty()).then(|| self.challenges.remove(0))?;
        if !kindly && self.rng.per_mille(50) {
            return Some(ClientCommand::Authorize(key, Authorization::Refuse));
        }
        self.tokens += 1;
        let value = format!("Bearer {}.{}", self.principal, self.tokens);
        self.tap.grant(value.clone());
        let fields = Headers::new().with("Authorization", value);
        Some(ClientCommand::Authorize(key, Authorization::Headers(fields)))
    }

    // ---- events

    pub(super) fn event(&mut self, now: Instant, event: Event, done: &mut BTreeMap<u64, Done>, report: &mut Report) {
        match event {
            Event::Progress { call, progress } => {
                let made = self.made.get_mut(&call).expect("progress of a call that was made");
                assert!(!made.ended, "progress after the end of {call:?}");
                assert!(progress.progress > made.progress, "progress increases");
                made.progress = progress.progress;
                let run = &done[&Mark::run_of(progress.progress)];
                assert_eq!((run.mark.host, Some(run.mark.tag)), (self.number, made.tag), "progress of something else");
            }
            Event::Notification { method, params } => {
                assert_eq!(method, "acme/said");
                let params = Object::read(&params.expect("it has params")).expect("an object");
                let text: String = params.required("mark").expect("a mark");
                let n: u64 = params.required("n").expect("a number");
                let mark = Mark::all(&text)[0];
                assert_eq!(mark, done[&mark.run].mark);
                assert_eq!(mark.host, self.number, "a notification for another client");
                let heard = self.heard.entry(mark.run).or_default();
                assert!(heard.last().is_none_or(|last| *last < n), "{n} after {heard:?} of {mark:?}");
                heard.push(n);
            }
            Event::Ended { call, outcome } => self.ended_call(now, call, outcome, done, report),
            Event::InputNeeded { token, request, .. } => {
                let InputRequest::Elicitation(request) = request else { panic!("{request:?}") };
                let text = format!("{request:?}");
                let marks = Mark::all(&text);
                assert!(!marks.is_empty() && marks.iter().all(|mark| mark.host == self.number), "asked {text}");
                assert!(self.open_questions.insert(token.key()), "asked twice");
                self.questions.push(Question { key: token.key(), tag: marks[0].tag });
                self.made.values_mut().for_each(|made| made.held = true);
            }
            Event::InputWithdrawn(key) => {
                assert!(self.open_questions.remove(&key), "withdrawn twice");
            }
            Event::AuthNeeded { token, .. } => {
                self.challenges.push(token.key());
                self.made.values_mut().for_each(|made| made.held = true);
            }
            Event::ToolsChanged => {
                self.changed = Some(now);
                report.changes += 1;
            }
            Event::ListenerLost { again: None, .. } => self.watches = false,
            Event::Diagnostic(diagnostic) => {
                self.diagnostics += 1;
                // After a final refusal it does not try again.
                self.watches &= diagnostic.kind != DiagnosticKind::ListenerOff;
            }
            Event::Terminated(why) => {
                let open = self.made.values().filter(|made| !made.ended).count();
                assert_eq!(open, 0, "calls that never ended");
                assert!(self.open_questions.is_empty(), "questions that were never withdrawn");
                match &why {
                    Termination::Requested => assert!(self.closing, "it ended without a request to end"),
                    Termination::Negotiation(_) => {}
                    Termination::Closed(_) => panic!("a client over HTTP ends with no connection: {why:?}"),
                }
                self.ended = Some(why);
            }
            _ => {}
        }
    }

    fn ended_call(
        &mut self,
        now: Instant,
        call: CallId,
        outcome: Result<mcp_proto::call::RawResult, CallError>,
        done: &mut BTreeMap<u64, Done>,
        report: &mut Report,
    ) {
        let Some(made) = self.made.get_mut(&call) else { panic!("the end of a call that was not made") };
        assert!(!made.ended, "{call:?} ended twice");
        made.ended = true;
        if let (Err(CallError::Timeout { .. }), Some(limit)) = (&outcome, made.limit) {
            assert!(now >= made.at + limit, "{call:?} timed out early");
        }
        let Some(tag) = made.tag else { return };
        self.alive.remove(&tag);
        match outcome {
            Ok(result) => {
                report.completed += 1;
                let text = result.json.as_str();
                let marks = Mark::all(text);
                assert!(!marks.is_empty(), "{call:?} with tag {tag} got {text}");
                for mark in marks {
                    assert_eq!((mark.host, mark.tag), (self.number, tag), "the answer to another call: {text}");
                    let run = done.get_mut(&mark.run).expect("a run of a handler");
                    assert!(run.answered, "an answer that no handler made: {text}");
                    assert!(!std::mem::replace(&mut run.delivered, true), "an answer twice: {text}");
                    let heard = self.heard.remove(&mark.run).unwrap_or_default();
                    assert_eq!(heard, run.said, "what was said before the answer of {mark:?}");
                }
            }
            Err(error) => {
                self.unsent.extend(Some(tag).filter(|_| error.sent() == Sent::No));
                if let CallError::Rpc(error) = &error {
                    let marks = Mark::all(&error.message);
                    assert!(marks.iter().all(|mark| (mark.host, mark.tag) == (self.number, tag)), "{error:?}");
                }
            }
        }
    }

    /// Checks the invariants after each step.
    pub(super) fn look(&mut self, now: Instant) {
        self.tap.look(&self.alive);
        for (call, made) in self.made.iter().filter(|(_, made)| !made.ended && !made.held) {
            let overdue = made.limit.is_some_and(|limit| now > (made.at + limit).max(self.asleep));
            assert!(!overdue, "{call:?} outlives its timeout");
        }
        assert!(self.engine.client().running() <= MOST, "more calls than the limit");
    }

    /// Checks the invariants at the end.
    pub(super) fn check_rest(&self) {
        assert!(self.ended.is_some(), "client {} never ended: {:?}", self.number, self.state());
        assert_eq!(self.engine.poll_timeout(), None, "it waits after its end");
        let stats = self.engine.stats();
        assert_eq!((stats.calls, stats.questions, stats.channels, stats.unsent, stats.queued), (0, 0, 0, 0, 0));
        assert_eq!(stats.calls_made, self.made.len() as u64);
        assert_eq!(self.channels, self.tap.opened, "the end of each channel is reported");
        assert_eq!(stats.diagnostics.values().sum::<u64>(), self.diagnostics);
    }

    /// How many questions it has answered.
    pub(super) const fn answers(&self) -> u64 {
        self.answered
    }

    /// Returns whether it has a pending message that the server waits for.
    pub(super) fn is_waited_for(&self) -> bool {
        !self.questions.is_empty() || !self.challenges.is_empty()
    }
}
