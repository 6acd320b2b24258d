//! Questions of a server of 2025-11-25 that are tasks: the server gets a task at once, and fetches
//! the answer of the application later. See
//! [`ClientConfig::answer_as_tasks`](super::ClientConfig::answer_as_tasks).

use super::ctx::Ctx;
use super::env::ClientEnv;
use super::{Client, Timer};
use crate::error::DiagnosticKind;
use crate::exchange::ExchangeId;
use crate::input::InputKey;
use crate::model::tasks::{Task, TaskStatus, iso8601, relate};
use crate::rpc::{ErrorObject, Id, Object, RawJson, Request, code};
use crate::time::Instant;
use crate::version::ProtocolVersion;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use core::time::Duration;

/// Maximum number of tasks, including those with an answer.
const MAX: usize = 64;
/// The time for which a task exists, unless the server wants another, and the longest one.
const TTL: Duration = Duration::from_secs(10 * 60);
const MAX_TTL: Duration = Duration::from_secs(60 * 60);
/// Maximum number of requests that wait for the answer of one task.
const MAX_WAITING: usize = 8;

/// The tasks of one session, by id.
#[derive(Debug, Default)]
pub(super) struct AnswerTasks(BTreeMap<String, AnswerTask>);

#[derive(Debug)]
struct AnswerTask {
    stage: AnswerStage,
    /// The Unix times of its creation and of its end.
    created: Duration,
    updated: Duration,
    ttl: Duration,
    due: Instant,
    /// The requests that wait for the answer.
    waiting: Vec<(ExchangeId, Id)>,
}

#[derive(Debug)]
enum AnswerStage {
    /// The application has not answered. The key comes right after the task.
    Open(Option<InputKey>),
    Answered(Result<Object, ErrorObject>),
    Cancelled,
}

impl AnswerTask {
    fn task(&self, id: &str) -> Object {
        let status = match self.stage {
            AnswerStage::Open(_) => TaskStatus::Working,
            AnswerStage::Answered(Ok(_)) => TaskStatus::Completed,
            AnswerStage::Answered(Err(_)) => TaskStatus::Failed,
            AnswerStage::Cancelled => TaskStatus::Cancelled,
        };
        let message = match &self.stage {
            AnswerStage::Answered(Err(error)) => Some(error.message.as_str().into()),
            _ => None,
        };
        let task = Task {
            id: id.into(),
            status,
            message,
            created_at: iso8601(self.created),
            updated_at: iso8601(self.updated),
            ttl: Some(self.ttl),
            poll: None,
        };
        task.write(ProtocolVersion::V2025_11_25)
    }

    /// Returns what a request for the answer gets, once there is one.
    fn outcome(&self, id: &str) -> Option<Result<Object, ErrorObject>> {
        match &self.stage {
            AnswerStage::Open(_) => None,
            AnswerStage::Answered(answer) => Some(answer.clone().map(|mut answer| {
                relate(&mut answer, id);
                answer
            })),
            AnswerStage::Cancelled => Some(Err(ErrorObject::new(code::INVALID_PARAMS, "the task was cancelled"))),
        }
    }
}

impl ClientEnv {
    /// Returns whether questions of the server may be tasks.
    pub(super) fn answers_as_tasks(&self) -> bool {
        self.config.answer_as_tasks && self.version().is_some_and(|version| version.rules().tasks)
    }
}

impl AnswerTasks {
    /// Makes a task of a question, whose key follows. Returns its id, and what the server gets.
    pub(super) fn begin(&mut self, env: &mut ClientEnv, wanted: &Object) -> Result<(String, Object), ErrorObject> {
        if self.0.len() >= MAX {
            // One that the server has not fetched in time makes room.
            let ended = self.0.iter().filter(|(_, task)| !matches!(task.stage, AnswerStage::Open(_)));
            let oldest = ended.min_by_key(|(_, task)| task.updated).map(|(id, _)| id.clone());
            let Some(oldest) = oldest else {
                env.diagnose(DiagnosticKind::TooManyInputs, "tasks");
                return Err(ErrorObject::new(code::INTERNAL_ERROR, "Too many tasks"));
            };
            self.0.remove(&oldest);
        }
        let wanted = wanted.optional::<u64>("ttl").ok().flatten().map(Duration::from_millis);
        let (ttl, now) = (wanted.unwrap_or(TTL).min(MAX_TTL), env.now.unix(env.config.origin_unix));
        let id = URL_SAFE_NO_PAD.encode(&env.seed.next_bytes()[..24]);
        let (stage, due) = (AnswerStage::Open(None), env.now + ttl);
        let task = AnswerTask { stage, created: now, updated: now, ttl, due, waiting: Vec::new() };
        let created = Object::new().with("task", task.task(&id));
        self.0.insert(id.clone(), task);
        self.arm(env);
        Ok((id, created))
    }

    /// The application was asked the question of a task.
    pub(super) fn is_asked(&mut self, id: &str, key: InputKey) {
        if let Some(task) = self.0.get_mut(id) {
            task.stage = AnswerStage::Open(Some(key));
        }
    }

    /// Ends a task. Returns the requests that waited for it, and what they get.
    fn end(&mut self, env: &ClientEnv, id: &str, stage: AnswerStage) -> Vec<(ExchangeId, Id)> {
        let Some(task) = self.0.get_mut(id) else { return Vec::new() };
        task.stage = stage;
        task.updated = env.now.unix(env.config.origin_unix);
        core::mem::take(&mut task.waiting)
    }

    fn arm(&self, env: &mut ClientEnv) {
        env.timers.set(Timer::AnswerTasks, self.0.values().map(|task| task.due).min());
    }

    /// Forgets everything: the session has ended, and its questions were withdrawn.
    pub(super) fn clear(&mut self, env: &mut ClientEnv) {
        self.0.clear();
        self.arm(env);
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}

impl Ctx {
    /// The application has answered the question of a task.
    pub(super) fn end_answer_task(&mut self, id: &str, answer: Result<Object, ErrorObject>) {
        self.set_answer_stage(id, AnswerStage::Answered(answer));
    }

    fn set_answer_stage(&mut self, id: &str, stage: AnswerStage) {
        let waiting = self.answer_tasks.end(&self.env, id, stage);
        for (exchange, request) in waiting {
            if let Some(outcome) = self.answer_tasks.0.get(id).and_then(|task| task.outcome(id)) {
                self.reply(exchange, &request, outcome);
            }
        }
    }

    /// Returns the task that a request names.
    fn answer_task(&self, params: Option<&RawJson>) -> Result<(String, &AnswerTask), ErrorObject> {
        let unknown = || ErrorObject::new(code::INVALID_PARAMS, "there is no such task");
        let params = Object::read_opt(params).map_err(|_| unknown())?;
        let id = params.str("taskId").ok_or_else(unknown)?.into_owned();
        let task = self.answer_tasks.0.get(&id).ok_or_else(unknown)?;
        Ok((id, task))
    }

    /// Cancels the question of a task.
    fn cancel_answer_task(&mut self, params: Option<&RawJson>) -> Result<Object, ErrorObject> {
        let (id, task) = self.answer_task(params)?;
        let AnswerStage::Open(key) = task.stage else {
            return Err(ErrorObject::new(code::INVALID_PARAMS, "the task has ended already"));
        };
        self.set_answer_stage(&id, AnswerStage::Cancelled);
        if let Some(key) = key {
            self.questions.withdraw(&mut self.env, key);
        }
        Ok(self.answer_tasks.0.get(&id).map(|task| task.task(&id)).unwrap_or_default())
    }
}

impl Client {
    /// Handles a request of the server about a task. Returns false if it is about none.
    pub(super) fn on_answer_task_request(&mut self, exchange: ExchangeId, request: &Request) -> bool {
        let cx = &mut self.cx;
        let params = request.params.as_ref();
        let reply = match &*request.method {
            "tasks/get" => cx.answer_task(params).map(|(id, task)| task.task(&id)),
            "tasks/list" => {
                let tasks: Vec<RawJson> = cx.answer_tasks.0.iter().map(|(id, task)| task.task(id).into()).collect();
                Ok(Object::new().with("tasks", tasks))
            }
            "tasks/cancel" => cx.cancel_answer_task(params),
            "tasks/result" => {
                let found = cx.answer_task(params).map(|(id, task)| (task.outcome(&id), task.waiting.len(), id));
                match found {
                    Err(error) => Err(error),
                    Ok((Some(outcome), ..)) => outcome,
                    Ok((None, MAX_WAITING.., _)) => {
                        Err(ErrorObject::new(code::INTERNAL_ERROR, "Too many requests wait for the task"))
                    }
                    Ok((None, _, id)) => {
                        if let Some(task) = cx.answer_tasks.0.get_mut(&id) {
                            task.waiting.push((exchange, request.id.clone()));
                        }
                        return true;
                    }
                }
            }
            _ => return false,
        };
        cx.reply(exchange, &request.id, reply);
        cx.update_clocks();
        true
    }

    /// Ends the tasks whose time is over.
    pub(super) fn on_answer_tasks_timeout(&mut self) {
        let cx = &mut self.cx;
        let is_over = |(_, task): &(&String, &AnswerTask)| task.due <= cx.env.now;
        let over: Vec<String> = cx.answer_tasks.0.iter().filter(is_over).map(|(id, _)| id.clone()).collect();
        for id in over {
            if let Some(AnswerStage::Open(Some(key))) = cx.answer_tasks.0.get(&id).map(|task| &task.stage) {
                let key = *key;
                cx.questions.withdraw(&mut cx.env, key);
            }
            let why = ErrorObject::new(code::INTERNAL_ERROR, "the time of the task is over");
            cx.set_answer_stage(&id, AnswerStage::Answered(Err(why)));
            cx.answer_tasks.0.remove(&id);
        }
        cx.answer_tasks.arm(&mut cx.env);
        cx.update_clocks();
    }
}
