//! A task that a call waits for.

use crate::client::call_table::InputState;
use crate::client::ctx::Ctx;
use crate::input::{CallId, InputKey};
use crate::model::tasks::{Task, TaskHandle};
use crate::rpc::{Object, RawJson};
use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

/// The interval between two requests for the state of a task: without a word of the server, the
/// shortest and the longest.
const POLL: Duration = Duration::from_secs(1);
const LEAST_POLL: Duration = Duration::from_millis(50);
const MOST_POLL: Duration = Duration::from_secs(60 * 60);

/// The shortest interval that makes it worth to be told of changes.
const LONG_POLL: Duration = Duration::from_secs(5);

/// How much longer the interval is while the server tells of changes.
const TOLD: u32 = 5;

/// The longest delay before a request is repeated that failed for a time.
const LAST_WAIT: Duration = Duration::from_secs(30);

/// See the [module](self).
#[derive(Debug)]
pub(in crate::client) struct AwaitedTask {
    handle: TaskHandle,
    poll: Duration,
    /// The names of the questions that were put to the application.
    asked: BTreeSet<String>,
    /// Those whose answers the server does not have.
    pub(in crate::client) questions: Vec<(String, InputState)>,
    /// The request of the engine that has not ended.
    step: Option<(CallId, TaskStep)>,
    /// Number of requests in a row that failed for a time.
    failures: u32,
}

/// What a request of the engine about a task is for.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum TaskStep {
    Get,
    /// It carries the answers to these questions.
    Update(Vec<String>),
    /// It waits for the outcome (2025-11-25).
    Result,
}

impl TaskStep {
    pub(super) const fn method(&self) -> &'static str {
        match self {
            Self::Get => "tasks/get",
            Self::Update(_) => "tasks/update",
            Self::Result => "tasks/result",
        }
    }
}

impl AwaitedTask {
    pub(super) fn new(handle: TaskHandle) -> Self {
        let (poll, asked) = (interval(handle.poll), handle.answered.clone());
        Self { handle, poll, asked, questions: Vec::new(), step: None, failures: 0 }
    }

    pub(super) fn id(&self) -> &str {
        &self.handle.id
    }

    pub(super) const fn handle(&self) -> &TaskHandle {
        &self.handle
    }

    /// Returns whether its state is asked for so seldom that the client wants to be told.
    pub(super) fn wants_to_be_told(&self) -> bool {
        self.poll >= LONG_POLL
    }

    /// Returns whether a request of the engine about it is open.
    pub(in crate::client) const fn has_step(&self) -> bool {
        self.step.is_some()
    }

    pub(super) fn begin(&mut self, own: CallId, step: TaskStep) {
        self.step = Some((own, step));
    }

    /// Returns the request that has ended. `None`: it is of no interest any more.
    pub(super) fn end(&mut self, own: CallId) -> Option<TaskStep> {
        self.step.take_if(|(open, _)| *open == own).map(|(_, step)| step)
    }

    /// A request has failed for a time.
    pub(super) const fn fails(&mut self) {
        self.failures = self.failures.saturating_add(1);
    }

    /// Its state was received.
    pub(super) fn is_seen(&mut self, task: &Task) {
        (self.failures, self.poll) = (0, interval(task.poll));
        (self.handle.ttl, self.handle.poll) = (task.ttl, task.poll);
    }

    /// Returns the delay before the next request, with jitter that only lengthens it.
    pub(super) fn delay(&self, is_told: bool, random: u64) -> Duration {
        let delay = match self.failures {
            0 if is_told => self.poll.saturating_mul(TOLD).min(MOST_POLL.max(self.poll)),
            0 => self.poll,
            n => Duration::from_secs(1 << (n - 1).min(5)).min(LAST_WAIT).max(self.poll),
        };
        let tenth = u64::try_from(delay.as_millis() / 10).unwrap_or(u64::MAX);
        delay + Duration::from_millis(random % tenth.saturating_add(1))
    }

    /// Returns the params of a request.
    pub(super) fn params(&self, step: &TaskStep) -> Object {
        let params = Object::new().with("taskId", self.id());
        let TaskStep::Update(names) = step else { return params };
        let mut responses = Object::new();
        for (name, state) in self.questions.iter().filter(|(name, _)| names.contains(name)) {
            if let InputState::Answered(answer) = state {
                responses.set(name, answer);
            }
        }
        params.with("inputResponses", responses)
    }

    /// Returns the names of the questions whose answers the server does not have.
    pub(super) fn answered(&self) -> Vec<String> {
        let is_answered = |(_, state): &&(String, InputState)| matches!(state, InputState::Answered(_));
        self.questions.iter().filter(is_answered).map(|(name, _)| name.clone()).collect()
    }

    /// The server has the answers to these questions.
    pub(super) fn are_taken(&mut self, names: &[String]) {
        self.failures = 0;
        self.questions.retain(|(name, _)| !names.contains(name));
        self.handle.answered.extend(names.iter().cloned());
    }

    /// The server asks these questions. Returns those that it does not ask any more, and those that
    /// are new.
    pub(super) fn is_asked(&mut self, requests: Vec<(String, RawJson)>) -> (Vec<InputState>, Vec<(String, RawJson)>) {
        let is_gone = |name: &String| !requests.iter().any(|(asked, _)| asked == name);
        let gone = self.questions.extract_if(.., |(name, _)| is_gone(name)).map(|(_, state)| state).collect();
        let fresh = requests.into_iter().filter(|(name, _)| !self.asked.contains(name)).collect();
        (gone, fresh)
    }

    /// A question was put to the application.
    pub(super) fn asks(&mut self, name: String, key: InputKey) {
        self.asked.insert(name.clone());
        self.questions.push((name, InputState::Open(key)));
    }

    /// Withdraws its questions. Returns its request that has not ended.
    pub(in crate::client) fn withdraw(self, cx: &mut Ctx) -> Option<CallId> {
        for (_, state) in self.questions {
            if let InputState::Open(key) = state {
                cx.questions.withdraw(&mut cx.env, key);
            }
        }
        self.step.map(|(own, _)| own)
    }
}

fn interval(poll: Option<Duration>) -> Duration {
    poll.unwrap_or(POLL).clamp(LEAST_POLL, MOST_POLL)
}
