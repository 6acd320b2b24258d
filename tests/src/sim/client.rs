//! A client of a world and its application: its calls, its questions, and the invariants of its
//! events.

use super::report::{Report, Transcript};
use super::rng::Rng;
use super::web::Tap;
use mcp_proto::client::{ClientConfig, Event, State, Target, Termination};
use mcp_proto::error::RefusedCommand;
use mcp_proto::exchange::{Action, Closed, ConnectionId, ConnectionNotice, Headers, IoEvent, Peer, Sent};
use mcp_proto::input::Change;
use mcp_proto::input::{
    AuthKey, Authorization, CallId, Challenge, ClientCommand, Input, InputAnswer, InputKey, InputResult,
    NotificationId, WiredClientInput,
};
use mcp_proto::model::elicitation::ElicitResult;
use mcp_proto::rpc::Object;
use mcp_proto::wired::WiredClient;
use mcp_proto::{CallError, Instant, LogLevel, Watch, tools};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// The record of a call.
#[derive(Debug)]
pub struct Made {
    /// The tag that its answer must carry; `None` for a list.
    pub tag: Option<u64>,
    at: Instant,
    limit: Option<Duration>,
    progress: f64,
    /// Whether it has ended.
    pub ended: bool,
}

/// The observations of a client, for the comparison with its own numbers.
#[derive(Debug, Default)]
struct Seen {
    opened: u64,
    closed: u64,
    steps_taken: u64,
    steps_reported: u64,
    pings_missed: u64,
    diagnostics: u64,
    /// Bytes that it received, and bytes that it wrote.
    read: u64,
    written: u64,
}

/// A client and its application.
pub struct Client<X> {
    /// Its number.
    pub number: u64,
    /// The engine.
    pub engine: WiredClient,
    /// The check of the bytes on its connections, if it is one over HTTP.
    pub tap: Option<Tap>,
    /// What only the clients of its world have.
    pub own: X,
    /// Until when nothing moves at it.
    pub asleep: Instant,
    /// Its calls.
    pub made: BTreeMap<CallId, Made>,
    /// Those that have not ended, and were never held up by a question.
    timed: BTreeSet<CallId>,
    /// Tags of calls that run.
    pub alive: BTreeSet<u64>,
    /// Tags of calls that may run once only.
    pub once: BTreeSet<u64>,
    /// Tags of calls that ended as if they had certainly not run.
    pub unsent: BTreeSet<u64>,
    /// Questions that the application has not answered.
    pub questions: Vec<InputKey>,
    /// Challenges that the application has not answered.
    pub challenges: Vec<(AuthKey, Challenge)>,
    /// The time of the latest event about a change of the tools.
    pub changed: Option<Instant>,
    /// The resources that it has ever watched.
    watched: BTreeSet<String>,
    /// Whether the application has closed it.
    pub closing: bool,
    /// How it ended.
    pub ended: Option<Termination>,
    /// Its outputs, if they are kept.
    pub said: Option<Transcript>,
    /// Questions that were neither answered nor withdrawn.
    open_questions: BTreeSet<InputKey>,
    /// Tracked notifications that have not ended.
    notes: BTreeSet<NotificationId>,
    seen: Seen,
}

impl<X> Client<X> {
    /// A client that has begun.
    pub fn new(number: u64, engine: WiredClient, own: X) -> Self {
        let config = engine.client().config();
        let is_http = matches!(config.target, Target::Http(_));
        Self {
            number,
            tap: is_http.then(|| Tap::new(config)),
            engine,
            own,
            asleep: Instant::ZERO,
            made: BTreeMap::new(),
            timed: BTreeSet::new(),
            alive: BTreeSet::new(),
            once: BTreeSet::new(),
            unsent: BTreeSet::new(),
            questions: Vec::new(),
            challenges: Vec::new(),
            changed: None,
            watched: BTreeSet::new(),
            closing: false,
            ended: None,
            said: None,
            open_questions: BTreeSet::new(),
            notes: BTreeSet::new(),
            seen: Seen::default(),
        }
    }

    /// Its state.
    pub fn state(&self) -> State {
        self.engine.client().state()
    }

    /// Its configuration.
    pub fn config(&self) -> &ClientConfig {
        self.engine.client().config()
    }

    /// The check of the bytes on its connections.
    ///
    /// # Panics
    /// If it is a client over lines.
    pub fn tap(&self) -> &Tap {
        self.tap.as_ref().expect("a client over HTTP")
    }

    pub(super) fn apply(
        &mut self,
        now: Instant,
        input: WiredClientInput,
    ) -> Result<InputResult, RefusedCommand<WiredClientInput>> {
        if let Input::Event(_, IoEvent::Read(bytes)) = &input {
            self.seen.read += bytes.len() as u64;
        }
        if let Input::Command(ClientCommand::Watch(watch)) = &input {
            self.watched.extend(watch.uris.iter().cloned());
        }
        self.closing |= input == Input::Command(ClientCommand::Close);
        if let Some(tap) = &mut self.tap {
            tap.input(now, &input);
        }
        let applied = self.engine.apply(now, input);
        if let Ok(InputResult::Notification(id)) = applied {
            self.notes.insert(id);
        }
        let most = self.config().limits.client.max_calls;
        assert!(self.engine.client().running() <= most, "more calls than the limit");
        applied
    }

    pub(super) fn next_action(&mut self) -> Option<Action<Event>> {
        let action = self.engine.poll_output()?;
        assert!(self.ended.is_none(), "{action:?} after the end");
        match &action {
            Action::Open(..) => self.seen.opened += 1,
            Action::Write(_, bytes) => self.seen.written += bytes.len() as u64,
            Action::Close(..) => self.seen.steps_taken += 1,
            Action::Notice(_, ConnectionNotice::Closing(_)) => self.seen.steps_reported += 1,
            Action::Notice(_, ConnectionNotice::Closed(_)) => self.seen.closed += 1,
            Action::Secure(..) | Action::Read(..) | Action::Event(_) => {}
        }
        if let Some(said) = &mut self.said {
            said.push(&action);
        }
        if let Some(tap) = &mut self.tap {
            tap.action(&action);
            tap.look_at_requests(&self.alive, |call| self.made.get(&call)?.tag);
        }
        Some(action)
    }

    /// A call was made.
    pub(super) fn made(&mut self, now: Instant, call: CallId, tag: Option<u64>, limit: Option<Duration>) {
        let held = !self.open_questions.is_empty() || !self.challenges.is_empty();
        let made = Made { tag, at: now, limit, progress: f64::NEG_INFINITY, ended: false };
        self.timed.extend((!held && limit.is_some()).then_some(call));
        assert!(self.made.insert(call, made).is_none(), "{call:?} twice");
    }

    /// Takes a question to answer it.
    pub(super) fn take_question(&mut self, n: usize) -> InputKey {
        let key = self.questions.swap_remove(n);
        self.open_questions.remove(&key);
        key
    }

    /// Returns credentials, which all later requests must have.
    pub(super) fn grant(&mut self, value: String) -> Authorization {
        if let Some(tap) = &mut self.tap {
            tap.grant(value.clone());
        }
        Authorization::Headers(Headers::new().with("Authorization", value))
    }

    /// Keeps an event, and checks what holds in every world.
    pub(super) fn event(&mut self, now: Instant, event: &Event, report: &mut Report) {
        match event {
            Event::Progress { call, progress } => {
                let made = self.made.get_mut(call).expect("progress of a call that was made");
                assert!(!made.ended, "progress after the end of {call:?}");
                assert!(progress.progress > made.progress, "progress increases");
                made.progress = progress.progress;
            }
            Event::NotificationEnded { notification, outcome } => {
                assert!(self.notes.remove(notification), "{notification:?} ended twice: {outcome:?}");
            }
            Event::Task { call, .. } => {
                let made = &self.made[call];
                assert!(!made.ended, "the state of a task after the end of {call:?}");
                // From now on its timeout limits each request about the task.
                self.timed.remove(call);
                report.tasks += 1;
            }
            Event::Ended { call, outcome } => {
                let made = self.made.get_mut(call).expect("the end of a call that was made");
                assert!(!made.ended, "{call:?} ended twice");
                made.ended = true;
                self.timed.remove(call);
                if let (Err(CallError::Timeout { .. }), Some(limit)) = (outcome, made.limit) {
                    assert!(now >= made.at + limit, "{call:?} timed out early");
                }
                if let Some(tag) = made.tag {
                    self.alive.remove(&tag);
                    report.completed += u64::from(outcome.is_ok());
                    let is_unsent = outcome.as_ref().is_err_and(|error| error.sent() == Sent::No);
                    self.unsent.extend(is_unsent.then_some(tag));
                }
            }
            Event::PingMissed { .. } => self.seen.pings_missed += 1,
            Event::InputNeeded { token, .. } => {
                assert!(self.open_questions.insert(token.key()), "asked twice");
                self.questions.push(token.key());
                self.timed.clear();
            }
            Event::InputWithdrawn(key) => assert!(self.open_questions.remove(key), "withdrawn twice"),
            Event::AuthNeeded { token, challenge, .. } => {
                self.challenges.push((token.key(), challenge.clone()));
                self.timed.clear();
            }
            Event::Changed(Change::Tools) => self.changed = Some(now),
            Event::Changed(Change::Resource(uri)) => {
                let whole = uri.split('/').next().expect("a text has a first part");
                assert!(self.watched.contains(whole), "an update of {uri}, which was never watched");
            }
            Event::Diagnostic(_) => self.seen.diagnostics += 1,
            Event::Terminated(why) => {
                assert!(self.made.values().all(|made| made.ended), "calls that never ended");
                assert!(self.open_questions.is_empty(), "questions that were never withdrawn");
                assert!(self.notes.is_empty(), "notifications that never ended");
                let is_asked = self.closing || !matches!(why, Termination::Requested);
                assert!(is_asked, "client {} ended without a request to end", self.number);
                let is_possible = self.tap.is_none() || !matches!(why, Termination::Closed(_));
                assert!(is_possible, "a client over HTTP ends with no connection: {why:?}");
                self.ended = Some(why.clone());
            }
            _ => {}
        }
    }

    /// Checks the invariants after each step.
    pub(super) fn look(&mut self, now: Instant) {
        if let Some(tap) = &mut self.tap {
            tap.look(&self.alive);
        }
        for call in &self.timed {
            let made = &self.made[call];
            let is_overdue = made.limit.is_some_and(|limit| now > (made.at + limit).max(self.asleep));
            assert!(!is_overdue, "{call:?} outlives its timeout");
        }
    }

    /// Compares the ends of its calls with how often they were handed out in each round.
    pub(super) fn check_runs(&self, handed: &BTreeMap<(u64, usize), u32>) {
        let ran = self.unsent.iter().find(|tag| handed.contains_key(&(**tag, 0)));
        assert_eq!(ran, None, "a call ran, and its end says that it certainly did not");
        let twice = handed.iter().find(|((tag, _), n)| self.once.contains(tag) && **n > 1);
        assert_eq!(twice, None, "a call ran twice");
    }

    /// Checks that no state is left, and that the counters of the engine equal the observations.
    pub(super) fn check_rest(&self) {
        assert!(self.ended.is_some(), "client {} never ended: {:?}", self.number, self.state());
        assert_eq!(self.engine.poll_timeout(), None, "it waits after its end");
        assert_eq!(self.engine.client().running(), 0);
        let (stats, seen) = (self.engine.stats(), &self.seen);
        assert_eq!((stats.calls, stats.questions, stats.channels, stats.unsent, stats.queued), (0, 0, 0, 0, 0));
        assert_eq!(stats.calls_made, self.made.len() as u64);
        assert_eq!(stats.pings_missed, seen.pings_missed);
        assert_eq!(stats.diagnostics.values().sum::<u64>(), seen.diagnostics);
        assert_eq!((stats.lost_notifications, stats.lost_diagnostics), (0, 0));
        // Not equal: a dead connection receives bytes as well, and an aborted one never reports its
        // writes.
        assert!(stats.traffic.bytes_in <= seen.read && stats.traffic.bytes_out <= seen.written);
        assert_eq!(seen.steps_taken, seen.steps_reported, "each step of an end is reported");
        assert_eq!(seen.opened, seen.closed, "the end of each channel is reported");
    }
}

/// An answer to a question that was never asked.
pub(super) const fn stray_answer() -> ClientCommand {
    ClientCommand::Answer(InputKey::new(9999), InputAnswer::Elicitation(ElicitResult::Cancel))
}

/// An answer to a question: it is declined with 0, cancelled with 1, and has this text otherwise.
pub(super) fn some_answer(n: u64, text: &str) -> InputAnswer {
    InputAnswer::Elicitation(match n {
        0 => ElicitResult::Decline,
        1 => ElicitResult::Cancel,
        _ => ElicitResult::Accept(Object::new().with("answer", text)),
    })
}

/// A command about what is watched and logged.
pub(super) fn watch_or_log(rng: &mut Rng) -> ClientCommand {
    match rng.below(8) {
        0 => ClientCommand::RootsChanged,
        1 | 2 => ClientCommand::LogLevel(LogLevel::ALL.get(rng.below(9) as usize).copied()),
        _ => {
            let mut watch = Watch::new();
            (watch.tools, watch.prompts) = (rng.per_mille(600), rng.per_mille(300));
            ClientCommand::Watch((0..rng.below(4)).fold(watch, |watch, n| watch.with_uri(format!("sim:{n}"))))
        }
    }
}

/// An input that no correct driver sends. The last of seven is one that is allowed.
pub(super) fn stray(n: u64, channel: ConnectionId, is_known: bool) -> WiredClientInput {
    let event = match n {
        0 => return Input::Tick,
        1 => return Input::Command(ClientCommand::Cancel(CallId(9999), None)),
        2 => return Input::Command(stray_answer()),
        3 if !is_known => IoEvent::Read("late\n".into()),
        4 if !is_known => IoEvent::ReadClosed,
        5 if !is_known => IoEvent::Closed(Closed::Reset),
        6 if !is_known => IoEvent::Opened(Peer::default()),
        _ => IoEvent::Written(0),
    };
    Input::Event(channel, event)
}

/// Every input of a client but the last tick, for the time after its end.
pub(super) fn late(text: &'static str) -> impl Iterator<Item = WiredClientInput> {
    let events = [
        IoEvent::Opened(Peer::default()),
        IoEvent::Read(text.into()),
        IoEvent::ReadClosed,
        IoEvent::Written(10),
        IoEvent::Closed(Closed::Eof),
    ];
    let commands = [
        ClientCommand::Call(tools::list().into_raw()),
        ClientCommand::Cancel(CallId(1), None),
        ClientCommand::Answer(InputKey::new(1), InputAnswer::Elicitation(ElicitResult::Cancel)),
        ClientCommand::Notify("x".into(), Object::new()),
        ClientCommand::Close,
    ];
    let events = events.into_iter().map(|event| Input::Event(ConnectionId(1), event));
    events.chain(commands.into_iter().map(Input::Command))
}
