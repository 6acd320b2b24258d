//! What only these clients have, the choices of their applications, and the comparison of their
//! events with the actions of the handlers.

use super::super::app::{Mark, Work, reply};
use super::super::client::{Client, some_answer, watch_or_log};
use super::super::report::Report;
use super::{Rng, Scenario};
use mcp_proto::client::{Event, ListenerStart, Policy, Repeat, Resume};
use mcp_proto::error::DiagnosticKind;
use mcp_proto::exchange::Headers;
use mcp_proto::input::Change;
use mcp_proto::input::{Authorization, CallId, ClientCommand, InputKey, InputRequest};
use mcp_proto::model::elicitation::ElicitRequest;
use mcp_proto::rpc::Object;
use mcp_proto::server::Sessions;
use mcp_proto::{Call, CallError, ClientConfig, ProtocolVersion, Versions, tools};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// The timeout of calls without their own.
pub(in crate::sim) const TIMEOUT: Duration = Duration::from_secs(30);

/// What one run of a handler did.
#[derive(Debug)]
pub(in crate::sim) struct Done {
    /// Whose it was.
    pub(in crate::sim) mark: Mark,
    /// The notifications that the server took.
    pub(in crate::sim) said: Vec<u64>,
    /// Whether it answered, and did not ask.
    pub(in crate::sim) answered: bool,
    /// Whether that answer reached its client.
    pub(in crate::sim) delivered: bool,
}

impl Done {
    /// A run that has begun.
    pub(in crate::sim) const fn begun(mark: Mark) -> Self {
        Self { mark, said: Vec::new(), answered: false, delivered: false }
    }
}

/// What only the clients of this world have.
pub struct Host {
    pub(super) principal: u64,
    /// Whether it watches the tools.
    pub(super) watches: bool,
    /// Questions that were answered.
    pub(super) answered: u64,
    asks: bool,
    rng: Rng,
    /// The calls of questions.
    asked: BTreeMap<InputKey, u64>,
    tokens: u64,
    /// The ids of the web pages that the server has named and not called complete.
    pages: BTreeSet<String>,
    /// The received notifications of each run.
    heard: BTreeMap<u64, Vec<u64>>,
}

/// Returns the configuration of a client, and its revision, if that is a legacy one.
pub(super) fn configure(scenario: &Scenario, rng: &mut Rng) -> (ClientConfig, Option<ProtocolVersion>) {
    let older = rng.of(&[
        Some(ProtocolVersion::V2025_11_25),
        Some(ProtocolVersion::V2025_11_25),
        Some(ProtocolVersion::V2025_06_18),
        Some(ProtocolVersion::V2025_03_26),
        None,
        None,
    ]);
    let mut config = ClientConfig::url(scenario.settings.road.url()).expect("a url").with_elicitation();
    let modes = config.capabilities.elicitation.get_or_insert_default();
    (modes.form, modes.url) = (Some(Object::new()), Some(Object::new()));
    config.policy = if older.is_some() { Policy::Legacy } else { Policy::Modern };
    config.versions = older.map_or_else(Versions::all, |version| Versions::new([version]));
    if older.is_none() && rng.per_mille(300) {
        config.policy = Policy::Auto;
    }
    config.timeout = Some(TIMEOUT);
    config.headers = Headers::new().with("X-App", "of ours");
    config.proxies = scenario.settings.road.proxies();
    config.authorize = scenario.settings.admit;
    config.watch.tools = rng.per_mille(600);
    config.compat.listener = match rng.below(6) {
        0 => ListenerStart::Never,
        1 => ListenerStart::BeforeInitialized,
        _ => ListenerStart::AfterInitialized,
    };
    config.resume = if rng.per_mille(900) { Resume::Progress } else { Resume::Strict(2) };
    config.repeat = rng.of(&[Repeat::Safe, Repeat::Safe, Repeat::Never, Repeat::Always]);
    config.ping = rng.per_mille(150).then_some(Duration::from_secs(10));
    config.limits.client.max_calls = 12;
    config.limits.client.max_queued_events = usize::MAX;
    (config, older)
}

impl Host {
    /// What belongs to a client with this configuration.
    pub(in crate::sim) fn new(
        principal: u64,
        config: &ClientConfig,
        older: Option<ProtocolVersion>,
        sessions: Sessions,
        rng: Rng,
    ) -> Self {
        let (has_sessions, listener) = (sessions != Sessions::Off, config.compat.listener);
        // Another client may fall back to a legacy revision after a probe without an answer.
        let is_modern = config.policy == Policy::Modern;
        let has_questions = older.is_none_or(|version| version.rules().elicitation);
        Self {
            principal,
            watches: config.watch.tools && (is_modern || listener != ListenerStart::Never && has_sessions),
            answered: 0,
            asks: is_modern || has_sessions && has_questions,
            rng,
            asked: BTreeMap::new(),
            pages: BTreeSet::new(),
            tokens: 0,
            heard: BTreeMap::new(),
        }
    }
}

impl Client<Host> {
    // ---- actions of the application

    /// Some work for the server, which is to be asked for under this tag.
    pub(in crate::sim) fn some_work(&mut self, tag: u64) -> Work {
        let rng = &mut self.own.rng;
        let closes = rng.per_mille(400);
        Work {
            tag,
            millis: rng.of(&[0, 10, 500, 2_000, 5_000, 20_000]),
            ticks: rng.below(4),
            says: Some(rng.below(5)),
            questions: if self.own.asks { rng.below(8).saturating_sub(5) } else { 0 },
            padding: rng.of(&[0, 100, 8_000]),
            harmless: Some(rng.per_mille(500)),
            closes: Some(closes),
            ..Work::marked(self.number)
        }
    }

    /// The call that asks for it, and how long it may take.
    pub(in crate::sim) fn ask_for(&mut self, work: &Work) -> (Call<tools::CallTool>, Option<Duration>) {
        let limit = match self.own.rng.below(6) {
            0 => Some(Duration::from_secs(120)),
            1 => Some(Duration::from_secs(3)),
            _ => Some(TIMEOUT),
        };
        let mut call = tools::call("work").arguments(work).timeout(limit);
        if work.harmless == Some(true) {
            call = call.repeatable();
        } else if self.config().repeat != Repeat::Always {
            self.once.insert(work.tag);
        }
        if self.own.rng.per_mille(500) {
            call = call.progress();
        }
        (call, limit)
    }

    /// A command about what is watched and logged.
    pub(in crate::sim) fn watch_or_log(&mut self) -> ClientCommand {
        watch_or_log(&mut self.own.rng)
    }

    /// Whether it watches the tools now, and is sure to receive their changes.
    pub(super) fn watches(&self) -> bool {
        self.own.watches && self.engine.client().watched().tools
    }

    /// One of the calls that were made, or none.
    pub(in crate::sim) fn some_call(&mut self) -> CallId {
        let last = self.made.len() as u64;
        CallId(last.saturating_sub(self.own.rng.below(6)))
    }

    /// Returns whether it has a pending message that the server waits for.
    pub(in crate::sim) fn is_waited_for(&self) -> bool {
        !self.questions.is_empty() || !self.challenges.is_empty()
    }

    /// Credentials for a challenge, or an answer to one of the questions.
    pub(in crate::sim) fn oblige(&mut self, kindly: bool) -> Option<ClientCommand> {
        if self.challenges.is_empty() { self.answer(kindly) } else { Some(self.authorize(kindly)) }
    }

    fn answer(&mut self, kindly: bool) -> Option<ClientCommand> {
        if self.questions.is_empty() {
            return None;
        }
        let at = self.own.rng.below(self.questions.len() as u64) as usize;
        let key = self.take_question(at);
        let choice = self.own.rng.below(12);
        self.own.answered += 1;
        let text = reply(self.number, self.own.asked[&key]);
        Some(ClientCommand::Answer(key, some_answer(if kindly { 12 } else { choice }, &text)))
    }

    fn authorize(&mut self, kindly: bool) -> ClientCommand {
        let (key, _) = self.challenges.remove(0);
        if !kindly && self.own.rng.per_mille(50) {
            return ClientCommand::Authorize(key, Authorization::Refuse);
        }
        self.own.tokens += 1;
        let value = format!("Bearer {}.{}", self.own.principal, self.own.tokens);
        ClientCommand::Authorize(key, self.grant(value))
    }

    // ---- events

    /// Compares an event with what the handlers did.
    pub(in crate::sim) fn check(&mut self, event: Event, done: &mut BTreeMap<u64, Done>, report: &mut Report) {
        match event {
            Event::Progress { call, progress } => {
                let (mark, tag) = (done[&Mark::run_of(progress.progress)].mark, self.made[&call].tag);
                assert_eq!((mark.host, Some(mark.tag)), (self.number, tag), "progress of something else");
            }
            Event::Notification { method, params } => {
                assert_eq!(method, "acme/said");
                let params = Object::read(&params.expect("it has params")).expect("an object");
                let text: String = params.required("mark").expect("a mark");
                let n: u64 = params.required("n").expect("a number");
                let mark = Mark::all(&text)[0];
                assert_eq!(mark, done[&mark.run].mark);
                assert_eq!(mark.host, self.number, "a notification for another client");
                let heard = self.own.heard.entry(mark.run).or_default();
                assert!(heard.last().is_none_or(|last| *last < n), "{n} after {heard:?} of {mark:?}");
                heard.push(n);
            }
            Event::Ended { call, outcome } => {
                let Some(tag) = self.made[&call].tag else { return };
                match outcome {
                    Ok(result) => self.check_answer(tag, result.json.as_str(), done),
                    Err(CallError::Rpc(error)) => {
                        let marks = Mark::all(&error.message);
                        assert!(marks.iter().all(|mark| (mark.host, mark.tag) == (self.number, tag)), "{error:?}");
                    }
                    Err(_) => {}
                }
            }
            Event::InputNeeded { token, request, .. } => {
                let InputRequest::Elicitation(request) = request else { panic!("{request:?}") };
                let text = format!("{request:?}");
                let marks = Mark::all(&text);
                assert!(!marks.is_empty() && marks.iter().all(|mark| mark.host == self.number), "asked {text}");
                self.own.asked.insert(token.key(), marks[0].tag);
                if let ElicitRequest::Url(page) = request {
                    self.own.pages.extend(page.elicitation_id);
                }
            }
            Event::Elicited(id) => assert!(self.own.pages.remove(&id), "the page {id} is unknown, or complete"),
            Event::Changed(Change::Tools) => report.changes += 1,
            Event::Log { message, .. } => {
                let marks = Mark::all(message.data.as_str());
                assert!(!marks.is_empty() && marks.iter().all(|mark| mark.host == self.number), "{message:?}");
            }
            Event::ListenerLost { again: None, .. } => self.own.watches = false,
            // After a final refusal it does not try again.
            Event::Diagnostic(diagnostic) => self.own.watches &= diagnostic.kind != DiagnosticKind::ListenerOff,
            _ => {}
        }
    }

    fn check_answer(&mut self, tag: u64, text: &str, done: &mut BTreeMap<u64, Done>) {
        let marks = Mark::all(text);
        assert!(!marks.is_empty(), "the call {tag} got {text}");
        for mark in marks {
            assert_eq!((mark.host, mark.tag), (self.number, tag), "the answer to another call: {text}");
            let run = done.get_mut(&mark.run).expect("a run of a handler");
            assert!(run.answered, "an answer that no handler made: {text}");
            assert!(!std::mem::replace(&mut run.delivered, true), "an answer twice: {text}");
            let heard = self.own.heard.remove(&mark.run).unwrap_or_default();
            assert_eq!(heard, run.said, "what was said before the answer of {mark:?}");
        }
    }
}
