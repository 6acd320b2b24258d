//! The calls about tasks. A call whose result is a task needs none of them: see
//! [`ClientConfig::tasks`](crate::ClientConfig::tasks).

use super::{Task, TaskHandle};
use crate::call::{Call, Method, RawResult};
use crate::model::page::{List, ListElement};
use crate::model::tools::{CallTool, CallToolResult};
use crate::rpc::{DecodeError, EncodeError, ErrorObject, Object, RawJson};
use crate::version::{Era, ProtocolVersion};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

/// Creates a call that waits for the outcome of a task that an earlier call has left: see
/// [`Call::detach`]. It is as that call after its response: it puts the questions of the task that
/// have no answer, and its end before the outcome cancels the task.
///
/// It ends with [`CallError::Refused`](crate::CallError::Refused) and
/// [`Refusal::OtherServer`](crate::Refusal::OtherServer) if the task is not of this server, and
/// with [`CallError::TaskLost`](crate::CallError::TaskLost) if the server does not know it any
/// more.
pub fn attach(handle: TaskHandle) -> Call<CallTool> {
    let call = Call::new("tools/call", Ok(Object::new()));
    call.with_options(|options| options.attach = Some(handle.into()))
}

/// Creates a call that returns the state of a task (`tasks/get`).
pub fn get(id: &str) -> Call<GetTask> {
    Call::new("tasks/get", Ok(about(id))).repeatable()
}

/// Creates a call that answers questions of a task (`tasks/update`, 2026-07-28), by the names that
/// [`TaskState::questions`] has. An answer is an [`InputAnswer`](crate::InputAnswer), or its result
/// as it is on the wire. The server ignores answers to what it does not ask.
///
/// Starting the call fails if an answer is an error, which a task cannot get.
pub fn update<'a, A>(id: &str, answers: impl IntoIterator<Item = (&'a str, A)>) -> Call<UpdateTask>
where
    A: TryInto<Object, Error: fmt::Display>,
{
    let mut responses = Object::new();
    for (name, answer) in answers {
        match answer.try_into() {
            Ok(answer) => responses.set(name, answer),
            Err(e) => {
                let why = EncodeError::new(format!("the answer to `{name}` is an error: {e}"));
                return Call::new("tasks/update", Err(why));
            }
        }
    }
    Call::new("tasks/update", Ok(about(id).with("inputResponses", responses)))
}

/// Creates a call that cancels a task (`tasks/cancel`). A server may go on with it. On 2025-11-25
/// the call of a task that has ended is an error.
pub fn cancel(id: &str) -> Call<CancelTask> {
    Call::new("tasks/cancel", Ok(about(id)))
}

/// Creates a call that returns the first page of the tasks of this client (`tasks/list`,
/// 2025-11-25 only).
pub fn list() -> Call<List<Task>> {
    List::call()
}

fn about(id: &str) -> Object {
    Object::new().with("taskId", id)
}

/// The state of a task.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct TaskState {
    /// The task.
    pub task: Task,
    /// Its outcome: the result of the call, or its error. `None`: it has not ended, it was
    /// cancelled, or its outcome has to be fetched (2025-11-25).
    pub outcome: Option<Result<RawJson, ErrorObject>>,
    /// Its questions without an answer, by name: requests of the server, as received (2026-07-28).
    pub questions: Vec<(String, RawJson)>,
}

impl TaskState {
    /// Decodes it.
    ///
    /// # Errors
    /// [`DecodeError`] if it is no task, or lacks what its status has.
    pub(crate) fn read(object: &Object, version: ProtocolVersion) -> Result<Self, DecodeError> {
        use super::TaskStatus::{Cancelled, Completed, Failed, InputRequired, Working};
        let task = Task::read(object, version)?;
        let is_modern = version.era() == Era::Modern;
        let (mut outcome, mut questions) = (None, Vec::new());
        match task.status {
            Completed if is_modern => outcome = Some(Ok(RawJson::from(object.object("result")?))),
            Failed if is_modern => {
                let error = object.object("error")?;
                let (code, message) = (error.required("code")?, error.required("message")?);
                outcome = Some(Err(ErrorObject { code, message, data: error.get("data") }));
            }
            InputRequired if is_modern => {
                let requests = object.object("inputRequests")?;
                questions = requests.iter().map(|(name, request)| (name.into_owned(), request)).collect();
            }
            Working | InputRequired | Completed | Failed | Cancelled => {}
        }
        Ok(Self { task, outcome, questions })
    }
}

/// The method `tasks/get`.
#[derive(Debug)]
pub struct GetTask;

impl Method for GetTask {
    type Output = TaskState;

    fn decode(result: RawResult) -> Result<TaskState, DecodeError> {
        TaskState::read(&Object::read(&result.json)?, result.version)
    }
}

/// The method `tasks/update`.
#[derive(Debug)]
pub struct UpdateTask;

impl Method for UpdateTask {
    type Output = ();

    fn decode(_: RawResult) -> Result<(), DecodeError> {
        Ok(())
    }
}

/// The method `tasks/cancel`.
#[derive(Debug)]
pub struct CancelTask;

impl Method for CancelTask {
    type Output = ();

    fn decode(_: RawResult) -> Result<(), DecodeError> {
        Ok(())
    }
}

impl ListElement for Task {
    const METHOD: &'static str = "tasks/list";
    const MEMBER: &'static str = "tasks";

    fn key(&self) -> &str {
        &self.id
    }

    fn read(json: &RawJson) -> Result<Self, DecodeError> {
        Self::read(&Object::read(json)?, ProtocolVersion::V2025_11_25)
    }

    fn write(&self, version: ProtocolVersion) -> Object {
        self.write(version)
    }
}

impl Call<CallTool> {
    /// Ends the call as soon as its result is a task: the handle of the task is its result then,
    /// and the task goes on. Keep the handle, also over the end of the program, and wait for the
    /// outcome with [`attach`].
    #[must_use]
    pub fn detach(self) -> Call<DetachTool> {
        let raw = self.with_options(|options| options.detach = true).into_raw();
        Call::from_raw(raw)
    }
}

/// The method `tools/call`, without the wait for a task: see [`Call::detach`].
#[derive(Debug)]
pub struct DetachTool;

/// The result of a call that does not wait for a task.
#[derive(Clone, PartialEq, Debug)]
pub enum Detached {
    /// The call is a task, which goes on.
    Task(TaskHandle),
    /// The call is complete.
    Result(CallToolResult),
}

impl Method for DetachTool {
    type Output = Detached;

    fn decode(result: RawResult) -> Result<Detached, DecodeError> {
        match result.task {
            Some(handle) => Ok(Detached::Task(*handle)),
            None => CallTool::decode(result).map(Detached::Result),
        }
    }
}
