//! What a request does to become a task, to ask and to end, and what clients of 2026-07-28 do with
//! tasks.

use super::entry::NewTask;
use super::stored::CreatedTask;
use super::{TaskEnd, TaskEntry, TaskQuestion, TaskStage};
use crate::error::{DiagnosticKind, Refusal, excerpt};
use crate::exchange::ExchangeId;
use crate::input::{InputAnswer, Inputs, LegacyInputRequest, Principal, RequestKey};
use crate::model::tasks::{TaskOptions, relate, undeclared};
use crate::rpc::{ErrorObject, Message, Object, Payload, RawJson, code, parse, result_response};
use crate::server::client::Bound;
use crate::server::env::ServerEnv;
use crate::server::era::RequestParts;
use crate::server::keys::{ReplyTo, TaskKey};
use crate::server::requests::Requests;
use crate::server::response::{ErrorReply, SerializedResponse};
use crate::server::running::{RequestStage, TaskPlace};
use crate::server::wire::Wire;
use crate::server::{Event, Server, weight};
use crate::version::{Era, ProtocolVersion};
use alloc::collections::BTreeMap;
use alloc::collections::btree_map::Entry;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use bytes::Bytes;
use core::time::Duration;

pub(in crate::server) const GET: &str = "tasks/get";
pub(in crate::server) const UPDATE: &str = "tasks/update";
pub(in crate::server) const CANCEL: &str = "tasks/cancel";

/// The shortest time that a client is asked to wait between two requests for the state of a task.
const LEAST_POLL: Duration = Duration::from_millis(1);

impl Server {
    /// The handler of a request says that it takes long: the client gets a task as the result.
    pub(in crate::server) fn make_task(&mut self, key: RequestKey, options: TaskOptions) -> Result<(), Refusal> {
        let reply_to = self.requests.make_task(&mut self.wire, key, options)?;
        self.end_if_quiet(reply_to);
        Ok(())
    }

    /// Handles a request of 2026-07-28 about a task. Returns the result, before it is completed.
    pub(in crate::server) fn task_request(
        &mut self,
        x: ExchangeId,
        method: &str,
        parts: &RequestParts,
    ) -> Result<Object, ErrorReply> {
        if !parts.declares_tasks() {
            return Err(ErrorReply::of(DiagnosticKind::MissingCapability, undeclared()));
        }
        let principal = self.wire.env.rights(x).principal;
        let key = self.wire.env.task_named(&parts.params, principal.as_ref())?;
        match method {
            GET => Ok(self.wire.env.tasks.get(key).map(TaskEntry::detailed).unwrap_or_default()),
            UPDATE => self.requests.answer_task(&mut self.wire, key, &parts.params).map(|()| Object::new()),
            _ => {
                self.requests.cancel_task(&mut self.wire, key);
                Ok(Object::new())
            }
        }
    }

    /// Ends the tasks whose time is over.
    pub(in crate::server) fn on_task_timeout(&mut self) {
        let (over, late) = self.wire.env.due_tasks();
        for key in over {
            match self.shared.config.shares_tasks() {
                true => self.let_go_of_task(key),
                false => self.wire.env.remove_task(key),
            }
        }
        for key in late {
            if let Some(request) = self.wire.env.tasks.get(key).and_then(TaskEntry::request) {
                self.requests.end_request(&mut self.wire, request, "the time of the task is over");
            }
        }
    }
}

impl ServerEnv {
    /// Returns the task that a request names, if this principal may have it. It does not tell an
    /// unknown one from one of another principal.
    pub(in crate::server) fn task_named(
        &self,
        params: &Object,
        principal: Option<&Principal>,
    ) -> Result<TaskKey, ErrorReply> {
        let id = params.required_str("taskId").map_err(|e| ErrorReply::params(format!("{e}")))?;
        match self.tasks.find(&id, principal) {
            Some((key, _)) => Ok(key),
            None => Err(ErrorReply::params("there is no such task")),
        }
    }

    /// Changes what happens in a task that has not ended.
    pub(super) fn set_task(&mut self, key: TaskKey, stage: TaskStage) {
        let unix = self.now.unix(self.config.origin_unix);
        if let Some(task) = self.tasks.get_mut(key).filter(|task| !task.has_ended()) {
            task.set(stage, unix);
            self.task_is_unstored(key);
            self.tasks.changed.insert(key);
        }
    }

    /// A task of the store waits for its client here.
    pub(super) fn adopt_stage(&mut self, key: TaskKey, stage: TaskStage) {
        if let Some(task) = self.tasks.get_mut(key) {
            *task.stage_mut() = stage;
        }
    }
}

impl Requests {
    /// Makes a task of a request whose handler runs. Returns where its request is answered.
    fn make_task(&mut self, wire: &mut Wire, key: RequestKey, options: TaskOptions) -> Result<ReplyTo, Refusal> {
        let limits = wire.env.config.limits.server.clone();
        let running = self.in_handler(key).ok_or(Refusal::Gone)?;
        let (TaskPlace::Reserved, Some(entry)) = (running.place, &running.entry) else {
            return Err(Refusal::NotWanted);
        };
        let Some(slot) = &entry.incoming.task else { return Err(Refusal::NotWanted) };
        // An application without a `Cx` says so only here. The responder has to know.
        slot.take();
        let wanted = entry.incoming.wanted_task.as_deref().copied().unwrap_or_default();
        let (ttl, poll) = (options.ttl.or(wanted.ttl), options.poll);
        let (reply_to, batch, version, id) = (running.reply_to, running.batch, running.version, running.id.clone());
        let session = wire.session_of(reply_to).filter(|_| version.era() == Era::Legacy);
        let new = NewTask {
            id: slot.id(),
            owner: entry.incoming.context.principal.clone(),
            client: running.client,
            version,
            session,
            request: key,
            ttl: ttl.unwrap_or(limits.task_ttl).min(limits.max_task_ttl),
            poll: poll.unwrap_or(limits.task_poll).max(LEAST_POLL),
            reruns: options.reruns,
        };
        let task_key = slot.key();
        self.leave_reply_target(wire, key);
        let task = TaskEntry::new(new, wire.env.now, wire.env.config.origin_unix);
        let result = self.created(version, &task);
        wire.env.add_task(task_key, task);
        if let Some(running) = self.get_mut(key) {
            (running.place, running.reply_to, running.batch) =
                (TaskPlace::Taken(task_key), ReplyTo::Task(session), None);
        }
        wire.env.timers.set(crate::server::keys::ServerTimer::Handler(key), None);
        let message = result_response(&id, &result);
        if wire.env.config.shares_tasks() && wire.env.node.is_some() {
            wire.env.tasks.created.insert(task_key, CreatedTask { reply_to, id, batch, message });
        } else {
            wire.reply(reply_to, SerializedResponse { batch, ..SerializedResponse::new(message, None) });
        }
        Ok(reply_to)
    }

    /// Returns the result of a request that has become a task.
    fn created(&self, version: ProtocolVersion, task: &TaskEntry) -> Object {
        let task_object = task.task().write(version);
        match version.era() {
            Era::Modern => self.shared().complete(version, "tools/call", task_object, "task"),
            Era::Legacy => {
                let mut result = Object::new().with("task", task_object);
                relate(&mut result, &task.id);
                result
            }
        }
    }

    /// Keeps the answers of the rounds before a request became a task. Its handler gets them again.
    pub(in crate::server) fn keep_earlier(
        &mut self,
        wire: &mut Wire,
        key: RequestKey,
        (inputs, rounds): (Inputs, u32),
    ) {
        let Some(running) = self.get_mut(key) else { return };
        let Some(entry) = &mut running.entry else { return };
        entry.rounds = entry.rounds.max(rounds);
        for (name, input) in inputs {
            let held = weight::of_input(&name, &input);
            if let Entry::Vacant(vacant) = entry.inputs.entry(name) {
                vacant.insert(input);
                running.size += held;
                wire.env.shares.add(running.client, Bound::RunningBytes, held);
            }
        }
    }

    /// The handler of a task asks its client: the questions wait in the task.
    pub(in crate::server) fn ask_in_task(
        &mut self,
        wire: &mut Wire,
        (key, task_key): (RequestKey, TaskKey),
        questions: Vec<LegacyInputRequest>,
        state: Option<RawJson>,
    ) {
        let Some(task) = wire.env.tasks.get_mut(task_key) else { return };
        if questions.iter().any(|question| task.asked.contains(&question.name)) {
            let why = "a question of the task has the name of an earlier one";
            wire.env.diagnose(DiagnosticKind::InvalidInputRequest, why);
            return self.finish_with_error(wire, key, why);
        }
        task.asked.extend(questions.iter().map(|question| question.name.clone()));
        if let Err((kind, why)) = self.open_pages(wire, key, &questions) {
            wire.env.diagnose(kind, why);
            return self.finish_with_error(wire, key, why);
        }
        let Some(request) = self.rekey(wire, key) else { return };
        let Some(running) = self.get_mut(request) else { return };
        running.stage = RequestStage::Waiting;
        if let Some(entry) = &mut running.entry {
            entry.rounds += 1;
        }
        let questions: BTreeMap<String, TaskQuestion> = questions
            .into_iter()
            .map(|asked| (asked.name.clone(), TaskQuestion { request: asked, sent: None }))
            .collect();
        if questions.is_empty() {
            return self.resume_task(&mut wire.env, task_key, request, state);
        }
        wire.env.set_task(task_key, TaskStage::Asking { request, questions, state });
    }

    /// Runs the handler of a task again: its questions are answered.
    fn resume_task(&mut self, env: &mut ServerEnv, key: TaskKey, request: RequestKey, state: Option<RawJson>) {
        env.set_task(key, TaskStage::Working(request));
        self.enter_again(env, request, state);
    }

    /// Takes answers of the client, of 2026-07-28. Those to what is not asked do not count.
    fn answer_task(&mut self, wire: &mut Wire, key: TaskKey, params: &Object) -> Result<(), ErrorReply> {
        let responses = params.object("inputResponses").map_err(|e| ErrorReply::params(format!("{e}")))?;
        let Some(TaskStage::Asking { request, questions, .. }) = wire.env.tasks.get(key).map(TaskEntry::stage) else {
            return Ok(());
        };
        let request = *request;
        let mut answers = Vec::new();
        for (name, answer) in responses.iter() {
            let Some(question) = questions.get(&*name) else { continue };
            InputAnswer::read(question.request.method, &answer)
                .map_err(|e| ErrorReply::params(format!("`inputResponses`: `{}`: {e}", excerpt(&name))))?;
            answers.push((name.into_owned(), Ok(answer.detached())));
        }
        let more: usize = answers.iter().map(|(name, answer)| weight::of_input(name, answer)).sum();
        let client = self.get(request).and_then(|running| wire.env.shares.client(running.client));
        let room = client.map(|client| wire.env.check_share(client, Bound::RunningBytes, more));
        room.unwrap_or(Ok(())).map_err(|full| full.reject("there is no room for the answers"))?;
        for (name, answer) in answers {
            if let Ok(answer) = &answer {
                wire.env.diagnose_answer(&name, answer);
            }
            self.take_task_answer(wire, key, name, answer);
        }
        Ok(())
    }

    /// Takes one answer. With the last one the handler runs again.
    pub(super) fn take_task_answer(
        &mut self,
        wire: &mut Wire,
        key: TaskKey,
        name: String,
        answer: Result<RawJson, ErrorObject>,
    ) {
        let Some(TaskStage::Asking { request, questions, state }) =
            wire.env.tasks.get_mut(key).map(TaskEntry::stage_mut)
        else {
            return;
        };
        if questions.remove(&name).is_none() {
            return;
        }
        let (request, is_last) = (*request, questions.is_empty());
        let state = if is_last { state.take() } else { None };
        wire.env.tasks.changed.insert(key);
        let held = weight::of_input(&name, &answer);
        if let Some(running) = self.get_mut(request)
            && let Some(entry) = &mut running.entry
        {
            running.size += held;
            wire.env.shares.add(running.client, Bound::RunningBytes, held);
            entry.inputs.insert(name, answer);
        }
        if is_last {
            self.resume_task(&mut wire.env, key, request, state);
        } else {
            wire.env.touch_task(key);
        }
    }

    /// Sets the text of the status of a task.
    pub(in crate::server) fn say_in_task(
        &mut self,
        env: &mut ServerEnv,
        key: RequestKey,
        text: &str,
    ) -> Result<(), Refusal> {
        match self.in_handler(key).ok_or(Refusal::Gone)?.place {
            TaskPlace::Taken(task) => {
                env.say_in_task(task, text);
                Ok(())
            }
            TaskPlace::None | TaskPlace::Reserved => Err(Refusal::NotWanted),
        }
    }

    /// Ends a task with the response of its request.
    pub(in crate::server) fn end_task(&mut self, wire: &mut Wire, key: TaskKey, response: &Bytes) {
        self.withdraw_task_questions(wire, key);
        wire.env.keep_ended_task(key, TaskEnd::Outcome(outcome(response)));
    }

    /// Ends a task because its client says so. Does nothing if it has ended.
    pub(super) fn cancel_task(&mut self, wire: &mut Wire, key: TaskKey) {
        let Some(request) = wire.env.tasks.get(key).and_then(TaskEntry::request) else { return };
        self.withdraw_task_questions(wire, key);
        if let Some(running) = self.forget(wire, request)
            && matches!(running.stage, RequestStage::Handler)
        {
            wire.env.emit(Event::Cancelled(request));
        }
        wire.env.keep_ended_task(key, TaskEnd::Cancelled);
    }
}

/// Returns the outcome in a response that this engine has written. It shares no memory with it.
fn outcome(response: &Bytes) -> Result<RawJson, ErrorObject> {
    match parse(response.clone(), u32::MAX) {
        Ok(Message::Response(response)) => match response.payload {
            Payload::Result(result) => Ok(result.detached()),
            Payload::Error(error) => Err(ErrorObject { data: error.data.map(|data| data.detached()), ..error }),
        },
        Ok(Message::Request(_) | Message::Notification(_) | Message::Error(_)) | Err(_) => {
            Err(ErrorObject::new(code::INTERNAL_ERROR, "the outcome of the task cannot be read"))
        }
    }
}
