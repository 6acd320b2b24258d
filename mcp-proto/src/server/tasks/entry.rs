//! One task.

use super::record::{StoredStage, TaskRecord, TaskRequest};
use super::stored::StoredVersion;
use crate::input::{LegacyInputRequest, Principal, RequestKey};
use crate::model::tasks::{Task, TaskStatus, iso8601, relate};
use crate::rpc::{ErrorObject, Id, Object, RawJson, code, request};
use crate::server::client::ClientKey;
use crate::server::keys::{ReplyTo, SessionRef};
use crate::time::Instant;
use crate::version::{Era, ProtocolVersion};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use bytes::Bytes;
use core::time::Duration;

/// A task: plain data, but for the keys that lead to its running request.
#[derive(Debug)]
pub(in crate::server) struct TaskEntry {
    pub(in crate::server) id: String,
    /// The principal of its request. Only its requests find the task.
    pub(in crate::server) owner: Option<Principal>,
    /// The client that its place and its bytes count for.
    pub(in crate::server) client: ClientKey,
    pub(in crate::server) version: ProtocolVersion,
    /// The session of its request, of an older revision.
    pub(in crate::server) session: Option<SessionRef>,
    stage: TaskStage,
    message: Option<String>,
    /// The names of all questions that it has asked, which are the keys of answers. None is used
    /// twice.
    pub(in crate::server) asked: BTreeSet<String>,
    /// The Unix times of its creation and of its latest change.
    created: Duration,
    updated: Duration,
    ttl: Duration,
    poll: Duration,
    /// When its time is over. Once it has ended: when it is removed.
    pub(in crate::server) due: Instant,
    pub(in crate::server) ended: Option<Instant>,
    /// The memory of its outcome, in bytes, as estimated.
    pub(in crate::server) weight: usize,
    /// Counts its changes.
    pub(in crate::server) changes: u64,
    /// The change that its session was told of: that of its creation by the response itself.
    pub(super) told: u64,
    /// Whether a client of 2025-11-25 has asked for its state, and can tell that a question is of
    /// the task.
    pub(super) is_known: bool,
    /// Whether its handler may run again at another server.
    reruns: bool,
    /// What the store has of it.
    pub(super) stored: StoredVersion,
}

/// What happens in a task.
#[derive(Debug)]
pub(in crate::server) enum TaskStage {
    /// The handler of this request runs.
    Working(RequestKey),
    /// This request waits for its client.
    Asking {
        request: RequestKey,
        /// The questions without an answer, by name.
        questions: BTreeMap<String, TaskQuestion>,
        /// The state that the handler receives again.
        state: Option<RawJson>,
    },
    Ended(TaskEnd),
}

/// A question without an answer.
#[derive(Debug)]
pub(in crate::server) struct TaskQuestion {
    pub(in crate::server) request: LegacyInputRequest,
    /// What carries it to a client of 2025-11-25.
    pub(in crate::server) sent: Option<SentQuestion>,
}

/// The request of the engine that carries a question: its session, its id and where it was sent.
pub(in crate::server) type SentQuestion = (SessionRef, i64, ReplyTo);

/// A question of a task as a request of the engine (2025-11-25).
pub(in crate::server) struct QuestionRequest {
    pub(super) task: String,
    pub(super) question: LegacyInputRequest,
}

impl QuestionRequest {
    /// Returns the message under this id.
    pub(super) fn write(&self, id: i64) -> Bytes {
        let mut params = self.question.params.clone().unwrap_or_default();
        relate(&mut params, &self.task);
        request(&Id::Int(id), self.question.method, Some(&params))
    }
}

/// How a task has ended.
#[derive(Clone, PartialEq, Debug)]
pub(in crate::server) enum TaskEnd {
    /// The outcome of the request.
    Outcome(Result<RawJson, ErrorObject>),
    Cancelled,
}

impl TaskEnd {
    /// The end of a task whose outcome has no room.
    pub(super) fn no_room() -> Self {
        Self::Outcome(Err(ErrorObject::new(code::INTERNAL_ERROR, "there is no room for the result of the task")))
    }

    /// Returns its memory, in bytes, as estimated.
    pub(super) fn weight(&self) -> usize {
        match self {
            Self::Outcome(Ok(result)) => result.as_bytes().len(),
            Self::Outcome(Err(error)) => {
                error.message.len() + error.data.as_ref().map_or(0, |data| data.as_bytes().len())
            }
            Self::Cancelled => 0,
        }
    }

    fn status(&self, version: ProtocolVersion) -> TaskStatus {
        let has_failed = |result: &RawJson| {
            let result = Object::read(result).ok();
            result.and_then(|result| result.optional("isError").ok().flatten()).unwrap_or(false)
        };
        match self {
            // An error of a tool is a result. 2025-11-25 counts it as a failure.
            Self::Outcome(Ok(result)) if version.era() == Era::Legacy && has_failed(result) => TaskStatus::Failed,
            Self::Outcome(Ok(_)) => TaskStatus::Completed,
            Self::Outcome(Err(_)) => TaskStatus::Failed,
            Self::Cancelled => TaskStatus::Cancelled,
        }
    }
}

/// What a new task has.
pub(in crate::server) struct NewTask {
    pub(in crate::server) id: String,
    pub(in crate::server) owner: Option<Principal>,
    pub(in crate::server) client: ClientKey,
    pub(in crate::server) version: ProtocolVersion,
    pub(in crate::server) session: Option<SessionRef>,
    pub(in crate::server) request: RequestKey,
    pub(in crate::server) ttl: Duration,
    pub(in crate::server) poll: Duration,
    pub(in crate::server) reruns: bool,
}

impl TaskEntry {
    pub(in crate::server) fn new(new: NewTask, now: Instant, origin_unix: Duration) -> Self {
        let NewTask { id, owner, client, version, session, request, ttl, poll, reruns } = new;
        let unix = now.unix(origin_unix);
        Self {
            id,
            owner,
            client,
            version,
            session,
            stage: TaskStage::Working(request),
            message: None,
            asked: BTreeSet::new(),
            created: unix,
            updated: unix,
            ttl,
            poll,
            due: now + ttl,
            ended: None,
            weight: 0,
            changes: 1,
            told: 1,
            is_known: false,
            reruns,
            stored: StoredVersion::default(),
        }
    }

    /// A task of the store, which this server works on.
    pub(super) fn adopted(new: NewTask, record: &TaskRecord, kept: u64, now: Instant, origin_unix: Duration) -> Self {
        let rest = (record.created + record.ttl).saturating_sub(now.unix(origin_unix));
        Self {
            created: record.created,
            updated: record.updated,
            message: record.message.clone(),
            asked: record.asked.clone(),
            due: now + rest,
            is_known: true,
            stored: StoredVersion { kept, ..StoredVersion::default() },
            ..Self::new(new, now, origin_unix)
        }
    }

    /// A task of the store, to show it to a client. Nothing works on it here.
    pub(in crate::server) fn view(record: &TaskRecord) -> Self {
        let new = NewTask {
            id: record.id.clone(),
            owner: record.owner.clone(),
            client: ClientKey(0),
            version: record.version,
            session: None,
            request: RequestKey::new(0),
            ttl: record.ttl,
            poll: record.poll,
            reruns: record.reruns,
        };
        let mut view = Self::adopted(new, record, 0, Instant::ZERO, Duration::ZERO);
        view.stage = match &record.stage {
            StoredStage::Working => TaskStage::Working(RequestKey::new(0)),
            StoredStage::Asking { questions, state } => {
                let question = |(name, request): (&String, &LegacyInputRequest)| {
                    (name.clone(), TaskQuestion { request: request.clone(), sent: None })
                };
                let questions = questions.iter().map(question).collect();
                TaskStage::Asking { request: RequestKey::new(0), questions, state: state.clone() }
            }
            StoredStage::Ended(end) => TaskStage::Ended(end.clone()),
        };
        view
    }

    /// Returns what the store has to keep of it. `request`: what it needs to run its handler again.
    pub(super) fn record(&self, request: TaskRequest) -> TaskRecord {
        TaskRecord {
            id: self.id.clone(),
            owner: self.owner.clone(),
            version: self.version,
            created: self.created,
            updated: self.updated,
            ttl: self.ttl,
            poll: self.poll,
            message: self.message.clone(),
            asked: self.asked.clone(),
            reruns: self.reruns,
            request,
            stage: match &self.stage {
                TaskStage::Working(_) => StoredStage::Working,
                TaskStage::Asking { questions, state, .. } => StoredStage::Asking {
                    questions: questions.iter().map(|(name, asked)| (name.clone(), asked.request.clone())).collect(),
                    state: state.clone(),
                },
                TaskStage::Ended(end) => StoredStage::Ended(end.clone()),
            },
        }
    }

    /// Returns whether the store has nothing of it.
    pub(super) const fn is_new(&self) -> bool {
        self.stored.kept == 0
    }

    /// Returns the version that the store has.
    pub(in crate::server) const fn stored_version(&self) -> u64 {
        self.stored.kept
    }

    pub(in crate::server) const fn stage(&self) -> &TaskStage {
        &self.stage
    }

    pub(in crate::server) const fn stage_mut(&mut self) -> &mut TaskStage {
        &mut self.stage
    }

    pub(in crate::server) const fn has_ended(&self) -> bool {
        matches!(self.stage, TaskStage::Ended(_))
    }

    /// Returns its request, if it has not ended.
    pub(in crate::server) const fn request(&self) -> Option<RequestKey> {
        match &self.stage {
            TaskStage::Working(request) | TaskStage::Asking { request, .. } => Some(*request),
            TaskStage::Ended(_) => None,
        }
    }

    /// Changes what happens in it. A message of an earlier stage does not apply any more.
    pub(in crate::server) fn set(&mut self, stage: TaskStage, unix: Duration) {
        self.message = match &stage {
            // A task that has failed says why.
            TaskStage::Ended(TaskEnd::Outcome(Err(error))) => Some(error.message.as_str().into()),
            _ => None,
        };
        self.stage = stage;
        self.touch(unix);
    }

    /// Sets the text of its status.
    pub(in crate::server) fn say(&mut self, message: &str, unix: Duration) {
        self.message = Some(message.into());
        self.touch(unix);
    }

    pub(super) fn touch(&mut self, unix: Duration) {
        self.updated = unix;
        self.changes += 1;
    }

    /// Returns it as its clients see it.
    pub(in crate::server) fn task(&self) -> Task {
        Task {
            id: self.id.clone(),
            status: match &self.stage {
                TaskStage::Working(_) => TaskStatus::Working,
                TaskStage::Asking { .. } => TaskStatus::InputRequired,
                TaskStage::Ended(end) => end.status(self.version),
            },
            message: self.message.clone(),
            created_at: iso8601(self.created),
            updated_at: iso8601(self.updated),
            ttl: Some(self.ttl),
            poll: Some(self.poll),
        }
    }

    /// Returns it with what its status has: the questions, the result or the error (2026-07-28).
    pub(in crate::server) fn detailed(&self) -> Object {
        let task = self.task().write(self.version);
        match &self.stage {
            TaskStage::Working(_) | TaskStage::Ended(TaskEnd::Cancelled) => task,
            TaskStage::Asking { questions, .. } => {
                let mut requests = Object::new();
                for (name, TaskQuestion { request, .. }) in questions {
                    let params = request.params.as_ref();
                    requests.set(name, Object::new().with("method", request.method).with_opt("params", params));
                }
                task.with("inputRequests", requests)
            }
            TaskStage::Ended(TaskEnd::Outcome(Ok(result))) => task.with("result", result),
            TaskStage::Ended(TaskEnd::Outcome(Err(error))) => task.with("error", error.write()),
        }
    }
}
