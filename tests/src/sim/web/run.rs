//! One run: the random actions of the application, and the invariants of its calls for any actions
//! of network and server.

use super::super::app::Work;
use super::super::client::{late, some_answer, stray, stray_answer};
use super::super::digest::log::Log;
use super::super::net::Net;
use super::super::report::Report;
use super::super::world::NEVER;
use super::model::Model;
use super::site::Web;
use super::tap::Serves;
use super::{Rng, Scenario};
use mcp_proto::client::{Event, ListenerStart, Repeat, Resume, State, Termination};
use mcp_proto::exchange::{ConnectionId, Headers};
use mcp_proto::input::{Authorization, CallId, ClientCommand, Input};
use mcp_proto::rpc::Object;
use mcp_proto::{CallError, ClientConfig, Era, Instant, tools};
use std::collections::BTreeMap;
use std::time::Duration;

/// The timeout of calls without their own.
const TIMEOUT: Duration = Duration::from_secs(30);
/// The maximum recovery time of the client without faults: the longest `retry`, and a margin.
const RECOVERY: Duration = Duration::from_secs(420);

/// The configuration of the client of a scenario.
pub(in crate::sim) fn configure(scenario: &Scenario) -> ClientConfig {
    let settings = &scenario.settings;
    let mut config = ClientConfig::url("http://localhost/mcp?x=1").expect("a url").with_elicitation();
    config.policy = settings.policy;
    config.timeout = Some(TIMEOUT);
    config.limits.client.max_calls = 12;
    config.headers = Headers::new().with("X-App", "of ours");
    config.authorize = settings.authorize;
    config.watch.tools = settings.watch_tools;
    config.compat.listener = settings.listener;
    config.resume = settings.resume;
    config.repeat = settings.repeat;
    config.compat.sse_decode = settings.sse_decode;
    config.ping = settings.ping;
    config.listener_idle = Some(settings.idle);
    config.limits.client.max_queued_events = usize::MAX;
    config
}

impl Web<Model> {
    /// A run at its beginning; `trace` prints what happens.
    pub(in crate::sim) fn begin(scenario: &Scenario, trace: bool, log: Log) -> Self {
        let mut rng = Rng::new(scenario.seed);
        let net = Net::new(scenario.chaos(Rng::new(rng.draw())), scenario.capacity);
        Self::new(Model::new(scenario), net, Some(rng), &scenario.less, trace, log).with_client(configure(scenario))
    }

    /// Runs to the end: the operations, a time without faults in which a call must succeed, then
    /// the end. After that no state may be left.
    pub(in crate::sim) fn run(&mut self) -> Report {
        while self.operations < self.end.scenario.operations {
            self.advance();
        }
        self.wait(Duration::from_secs(130), |web| web.clients[0].alive.is_empty());
        self.net.chaos.rate = 0;
        self.end.token = None;
        // A server that is polled needs a client that polls.
        let settings = &self.end.scenario.settings;
        let is_fit = !settings.flavour.polling || settings.resume == Resume::Progress;
        if is_fit && self.per_mille(300) {
            self.recover();
        }
        self.apply(0, Input::Command(ClientCommand::Close));
        while self.clients[0].state() == State::Closing && self.next().is_some() {
            if self.per_mille(600) {
                self.burst();
            }
            self.step(NEVER);
        }
        self.wait(Duration::from_secs(60), |web| web.clients[0].ended.is_some());
        self.end.stop();
        self.wait(Duration::from_secs(600), |web| web.next().is_none());
        self.check_rest();
        for input in late("HTTP/1.1 200 OK\r\n\r\n") {
            self.apply(0, input);
        }
        self.apply(0, Input::Tick);
        assert!(self.net.is_empty(), "something happens after the end");
        self.log_stats(0);
        self.count()
    }

    /// Nothing goes wrong any more: the client finds its way back, unless it has ended.
    fn recover(&mut self) {
        self.wait(RECOVERY, |web| web.clients[0].ended.is_some());
        for n in (0..self.clients[0].questions.len()).rev() {
            self.answer(n);
        }
        while !self.clients[0].challenges.is_empty() {
            self.authorize(0);
        }
        self.wait(RECOVERY, |web| web.clients[0].ended.is_some());
        let client = &self.clients[0];
        if client.ended.is_some() || client.closing {
            return;
        }
        let state = client.state();
        assert!(matches!(state, State::Ready | State::Lapsed), "it is {state:?} though nothing goes wrong");
        // Without faults, every change by a watched server of tools is known in the end.
        let scenario = &self.end.scenario;
        let flavour = &scenario.settings.flavour;
        let is_watched = scenario.settings.watch_tools && (flavour.listener || flavour.era == Era::Modern);
        if is_watched && scenario.faults == 0 && scenario.settings.listener != ListenerStart::Never {
            let settled = self.net.now - Instant::from_millis(100_000);
            let last = self.end.changes.iter().rfind(|at| at.since_origin() <= settled).copied();
            let known = client.changed;
            assert!(known >= last, "the tools changed at {last:?}, which was last reported at {known:?}");
        }
        let before = self.report.completed;
        let work = Work { millis: 10, harmless: Some(false), ..Work::default() };
        let call = self.work(&work, Some(TIMEOUT));
        self.wait(TIMEOUT, |web| web.clients[0].alive.is_empty());
        if let Some(call) = call.and_then(|call| self.clients[0].made.get(&call)) {
            assert!(call.ended && self.report.completed > before, "a call fails though nothing goes wrong");
        }
    }

    fn advance(&mut self) {
        if self.next().is_some_and(|at| at < self.next_operation) {
            self.step(self.next_operation);
            return;
        }
        self.net.now = self.net.now.max(self.next_operation);
        let pause = self.of(&[30, 400, 400, 8_000]);
        if self.begins_operation(pause) {
            self.operate();
        }
        self.clients[0].look(self.net.now);
    }

    // ---- the application

    fn operate(&mut self) {
        let state = self.clients[0].state();
        if matches!(state, State::Probing | State::Initializing | State::Lapsed) && self.per_mille(400) {
            return self.burst();
        }
        let client = &self.clients[0];
        let (calls, questions, is_challenged) =
            (client.made.len() as u64, client.questions.len() as u64, !client.challenges.is_empty());
        let call = CallId(1 + self.below(calls + 1));
        let command = match self.below(40) {
            0..=19 => return self.some_work(),
            20..=22 => {
                self.call(0, None, Some(TIMEOUT), tools::list());
                return;
            }
            23..=25 => ClientCommand::Cancel(call, Some("no longer wanted".into())),
            26..=31 if is_challenged => return self.authorize(26),
            26..=31 if questions == 0 => return,
            26..=31 => {
                let n = self.rng().clone().below(questions);
                return self.answer(n as usize);
            }
            32 => ClientCommand::NotifyTracked("acme/note".into(), Object::new()),
            33 if self.per_mille(300) => ClientCommand::Close,
            _ => return self.spurious(),
        };
        self.apply(0, Input::Command(command));
    }

    /// A client that is not ready, or not any more, is looked at closely.
    fn burst(&mut self) {
        let lapsed = self.clients[0].state() == State::Lapsed;
        for _ in 0..self.below(if lapsed { 12 } else { 4 }) {
            let command = match self.below(8) {
                2..=6 if lapsed && self.per_mille(700) => {
                    self.spurious();
                    continue;
                }
                0 => ClientCommand::Cancel(CallId(1 + self.below(4)), None),
                1 | 2 => stray_answer(),
                3 | 4 => ClientCommand::Notify("acme/note".into(), Object::new()),
                5 if self.clients[0].closing || self.per_mille(250) => ClientCommand::Close,
                6 => return self.spurious(),
                7 if lapsed => ClientCommand::Cancel(CallId(1), None),
                _ => return self.some_work(),
            };
            self.apply(0, Input::Command(command));
        }
    }

    fn some_work(&mut self) {
        self.tag += 1;
        let millis = self.of(&[0, 10, 500, 5_000, 40_000]);
        let padding = self.of(&[0, 100, 8_000]);
        let (ticks, questions) = (self.below(4), self.below(8).saturating_sub(5));
        let harmless = Some(self.per_mille(500));
        let limit = match self.below(6) {
            0 => None,
            1 => Some(Duration::from_secs(3)),
            _ => Some(TIMEOUT),
        };
        self.work(&Work { tag: self.tag, millis, ticks, questions, padding, harmless, ..Work::default() }, limit);
    }

    fn work(&mut self, work: &Work, limit: Option<Duration>) -> Option<CallId> {
        let mut call = tools::call("work").arguments(work).timeout(limit);
        if work.harmless == Some(true) {
            call = call.repeatable();
        } else {
            self.clients[0].once.insert(work.tag);
        }
        if self.per_mille(500) {
            call = call.progress();
        }
        self.call(0, Some(work.tag), limit, call)
    }

    fn answer(&mut self, n: usize) {
        let key = self.clients[0].take_question(n);
        let answer = some_answer(self.below(10), "yes");
        self.apply(0, Input::Command(ClientCommand::Answer(key, answer)));
    }

    /// Returns the token for the oldest challenge. With `other`, perhaps another one or none.
    fn authorize(&mut self, other: u64) {
        let (key, challenge) = self.clients[0].challenges.remove(0);
        let with = match self.below(other + 4) {
            4 => Authorization::Refuse,
            n => {
                let text = challenge.hints.www_authenticate.first().map(String::as_str).unwrap_or_default();
                let realm = text.split("realm=\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap_or_default();
                let value = if n == 5 { "Bearer 0".into() } else { format!("Bearer {realm}") };
                self.clients[0].grant(value)
            }
        };
        self.apply(0, Input::Command(ClientCommand::Authorize(key, with)));
    }

    /// Applies an input that no correct driver sends.
    fn spurious(&mut self) {
        let channel = ConnectionId(1 + self.below(40));
        let is_known = self.net.is_known(0, channel);
        let input = stray(self.below(9), channel, is_known);
        self.apply(0, input);
    }

    // ---- invariants

    /// Checks an event of the client.
    pub(super) fn check(&self, event: &Event) {
        let (client, scenario) = (&self.clients[0], &self.end.scenario);
        match event {
            Event::Ended { call, outcome } => {
                if let (Ok(result), Some(tag)) = (outcome, client.made[call].tag) {
                    let text = result.json.as_str();
                    assert!(text.contains(&format!("\"text\":\"{tag}:")), "{call:?} with tag {tag} got {text}");
                }
                if scenario.faults > 0 || client.closing {
                    return;
                }
                let is_expected = match outcome {
                    Ok(_) | Err(CallError::Timeout { .. } | CallError::Cancelled { .. } | CallError::Input(_)) => true,
                    // A server that is polled needs a client that polls.
                    Err(CallError::NoResponse { .. }) => {
                        scenario.settings.flavour.polling && scenario.settings.resume != Resume::Progress
                    }
                    Err(_) => false,
                };
                assert!(is_expected, "nothing goes wrong, and {call:?} ends with {outcome:?}");
            }
            Event::AuthNeeded { challenge, .. } => {
                assert!(scenario.settings.authorize, "a challenge without a callback for it");
                let equal = client.challenges.iter().filter(|(_, open)| open == challenge);
                assert_eq!(equal.count(), 1, "the same challenge twice");
            }
            Event::Terminated(why @ Termination::Negotiation(_)) => {
                assert!(scenario.faults > 0, "nothing goes wrong, and {why:?}");
            }
            _ => {}
        }
    }

    fn check_rest(&self) {
        let (client, tap) = (&self.clients[0], self.clients[0].tap());
        client.check_rest();
        assert!(self.net.is_empty(), "connections that were not closed");
        for ((tag, round), n) in &self.end.runs {
            let is_once = client.once.contains(tag) && self.end.scenario.settings.repeat != Repeat::Always;
            let most = if is_once { 1 } else { 4 };
            let is_unsent = client.unsent.contains(tag);
            assert!(!is_unsent, "the call {tag} ran, and its end says that it certainly did not");
            assert!(*n <= most, "the call {tag} ran {n} times in round {round}");
        }
        let mut posts = BTreeMap::<u64, u32>::new();
        for sent in tap.sent("POST") {
            if let Some(Serves::Work(tag)) = sent.stream.map(|stream| &tap.streams[stream].serves) {
                *posts.entry(*tag).or_default() += 1;
            }
        }
        assert!(posts.values().all(|n| *n <= 16), "a request that is made again and again: {posts:?}");
    }

    fn count(&mut self) -> Report {
        let tap = self.clients[0].tap();
        let resumed = tap.sent("GET").filter(|sent| sent.request.header("last-event-id").is_some());
        let is_handshake = |method: &str| matches!(method, "initialize" | "server/discover");
        let handshakes = tap.log.iter().filter(|sent| sent.body["method"].as_str().is_some_and(is_handshake));
        (self.report.requests, self.report.resumed) = (tap.log.len() as u64, resumed.count() as u64);
        self.report.handshakes = handshakes.count() as u64;
        self.report.ended = u64::from(!matches!(self.clients[0].ended, Some(Termination::Requested)));
        self.results()
    }
}
