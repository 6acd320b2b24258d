//! What a handler is given.

use super::output::{IntoOutput, ToolError};
use crate::error::Refusal;
use crate::input::{Change, InputAnswer, InputRequest, Note, Outcome};
use crate::model::Progress;
use crate::model::elicitation::{ElicitRequest, ElicitResult};
use crate::model::tools::CallToolResult;
use crate::rpc::{ErrorObject, Object, RawJson, code};
use crate::server::{Context, Incoming, RequestState};
use crate::version::Era;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use serde::de::DeserializeOwned;

/// One entry of a handler: its arguments, the answers of earlier rounds, what it remembered.
#[derive(Clone, PartialEq, Debug)]
pub struct Invocation {
    incoming: Incoming,
    /// The arguments of a tool, or the params of a method.
    arguments: RawJson,
    is_tool: bool,
}

impl Invocation {
    pub(super) fn of_tool(incoming: Incoming, arguments: RawJson) -> Self {
        Self { incoming, arguments, is_tool: true }
    }

    pub(super) fn of_method(incoming: Incoming) -> Self {
        let arguments = incoming.params.to_json();
        Self { incoming, arguments, is_tool: false }
    }

    /// Who asks, and under which rules.
    pub const fn context(&self) -> &Context {
        &self.incoming.context
    }

    /// The request.
    pub const fn incoming(&self) -> &Incoming {
        &self.incoming
    }
}

/// What a handler's surroundings offer it: implemented once by each adapter.
pub trait Port: Send + Sync {
    /// Sends a notification on the request.
    ///
    /// # Errors
    /// Why it was not sent.
    fn note(&self, note: Note) -> Result<(), Refusal>;
    /// Tells every client of the server, with [`Server::publish`](crate::Server::publish) or a form of it. By default nobody is told.
    fn publish(&self, change: Change) {
        let _ = change;
    }
    /// Whether the request was cancelled.
    fn is_cancelled(&self) -> bool;
}

/// What a handler is given. Cheap to clone.
///
/// A handler that asks is entered again from its beginning when the answers are there, in every revision; so ask before doing anything
/// that must not happen twice.
#[derive(Clone)]
pub struct Cx {
    invocation: Arc<Invocation>,
    port: Arc<dyn Port>,
}

impl Cx {
    /// What the handler of this invocation is given.
    pub fn new(invocation: Invocation, port: Arc<dyn Port>) -> Self {
        Self { invocation: Arc::new(invocation), port }
    }

    /// As [`new`](Self::new), of a flag that says whether the request was cancelled, a function that sends a notification on it, and one
    /// that tells every client of the server. For a driver that runs its handlers elsewhere: it sets the flag at
    /// [`Event::Cancelled`](crate::server::Event::Cancelled). Where the functions only pass on what the engine is to be told, the first
    /// returns `Ok(())`; what the engine then refuses is dropped.
    pub fn linked(
        invocation: Invocation,
        cancelled: Arc<AtomicBool>,
        note: impl Fn(Note) -> Result<(), Refusal> + Send + Sync + 'static,
        publish: impl Fn(Change) + Send + Sync + 'static,
    ) -> Self {
        struct Link<F, P>(Arc<AtomicBool>, F, P);
        impl<F, P> Port for Link<F, P>
        where
            F: Fn(Note) -> Result<(), Refusal> + Send + Sync,
            P: Fn(Change) + Send + Sync,
        {
            fn note(&self, note: Note) -> Result<(), Refusal> {
                (self.1)(note)
            }

            fn publish(&self, change: Change) {
                (self.2)(change);
            }

            fn is_cancelled(&self) -> bool {
                self.0.load(Ordering::Relaxed)
            }
        }
        Self::new(invocation, Arc::new(Link(cancelled, note, publish)))
    }

    /// As [`new`](Self::new), for a driver that runs a handler to its end before it does anything else: notifications are refused with
    /// [`Refusal::NotWanted`], and the request never counts as cancelled.
    pub fn detached(invocation: Invocation) -> Self {
        struct Nowhere;
        impl Port for Nowhere {
            fn note(&self, _: Note) -> Result<(), Refusal> {
                Err(Refusal::NotWanted)
            }

            fn is_cancelled(&self) -> bool {
                false
            }
        }
        Self::new(invocation, Arc::new(Nowhere))
    }

    /// Who asks, and under which rules.
    pub fn context(&self) -> &Context {
        self.invocation.context()
    }

    /// Reads the arguments of a tool, or the params of a method. `()` reads what has no members.
    ///
    /// # Errors
    /// What cannot be decoded becomes the answer that the revision demands: a tool's result with `isError` from 2025-11-25 on, which a
    /// model can learn from, else the error `-32602`, which a method always gets.
    pub fn arguments<A: DeserializeOwned>(&self) -> Result<A, ToolError> {
        let arguments = &self.invocation.arguments;
        let decoded = arguments.decode().or_else(|e| {
            // Types without members, `()` among them, are read from nothing rather than from `{}`.
            let empty = Object::read(arguments).is_ok_and(|object| object.is_empty());
            if empty { RawJson::null().decode().map_err(|_| e) } else { Err(e) }
        });
        decoded.map_err(|e| {
            let text = format!("invalid arguments: {e}");
            if self.invocation.is_tool && self.context().version.rules().invalid_arguments_as_result {
                ToolError::Failed(text)
            } else {
                ToolError::Protocol(ErrorObject::new(code::INVALID_PARAMS, text))
            }
        })
    }

    /// The arguments of a tool, or the params of a method, as they came.
    pub fn raw(&self) -> &RawJson {
        &self.invocation.arguments
    }

    /// The `_meta` of the request, trace context among it.
    pub fn meta(&self) -> &Object {
        &self.invocation.incoming.meta
    }

    /// Tells how far the request is. Nothing is lost where nobody listens: most handlers ignore the outcome.
    ///
    /// # Errors
    /// [`Refusal::NotWanted`] if the request did not ask for progress, [`Refusal::NotIncreasing`], [`Refusal::Gone`] once the request is
    /// over or cancelled.
    pub fn progress(&self, progress: Progress) -> Result<(), Refusal> {
        self.port.note(Note::Progress(progress))
    }

    /// Sends a notification on the request, before its response. It is meant for custom methods. The engine sends most notifications of the
    /// protocol itself, and refuses them here:
    ///
    /// | method | a handler may send it | instead, or because |
    /// |---|---|---|
    /// | `notifications/progress` | never | [`progress`](Self::progress) |
    /// | `notifications/cancelled` | never | the engine cancels its own requests |
    /// | `notifications/tools/list_changed` | never | [`publish`](Self::publish) |
    /// | `notifications/prompts/list_changed`, `notifications/resources/list_changed` | never | no command for them yet |
    /// | `notifications/subscriptions/acknowledged` | never | the engine opens subscriptions |
    /// | `notifications/tasks` | never | it belongs on a subscription |
    /// | `notifications/initialized`, `notifications/roots/list_changed` | never | only clients send them |
    /// | `notifications/message` | if the client wants its `level` | see below |
    /// | `notifications/resources/updated` | before 2026-07-28, if the server declares `resources.subscribe` | later it belongs on a subscription |
    /// | `notifications/tasks/status` | on 2025-11-25, if the server declares `tasks` | no other revision has it |
    /// | `notifications/elicitation/complete` | on 2025-11-25 | no other revision has it |
    /// | any other | always | |
    ///
    /// On 2026-07-28 a client wants log messages at or above the `logLevel` in the `_meta` of this request, and none without that field
    /// (2026-07-28, logging: per-request log level). Before, they pass if the server declares `logging`: at or above the level of the last
    /// `logging/setLevel` that your handler answered with a result, and all before the first. A message whose `level` is not one of the
    /// eight is refused. A server that sends log messages must declare `logging` in every revision
    /// ([`ServerCapabilities::other`](crate::model::lifecycle::ServerCapabilities::other)).
    ///
    /// # Errors
    /// [`Refusal::NotWanted`] as the table says, [`Refusal::Full`] while the client does not read, [`Refusal::Gone`] once the request is
    /// over or cancelled.
    pub fn notify(&self, method: &str, params: Object) -> Result<(), Refusal> {
        self.port.note(Note::Custom(method.into(), params))
    }

    /// Ends the event stream of the request for now: a client of 2025-11-25 comes back for the rest after this time, or after
    /// [`ServerConfig::retry`](crate::server::ServerConfig::retry), so that a request that takes long holds no connection.
    ///
    /// # Errors
    /// [`Refusal::NotWanted`] on every other revision and transport, where a client could not come back, and for a request without a
    /// session; [`Refusal::Gone`] once the request is over or cancelled.
    pub fn close_stream(&self, retry: Option<Duration>) -> Result<(), Refusal> {
        self.port.note(Note::CloseStream(retry))
    }

    /// Tells every client that wants to know, not only the one that asks: a tool came, or went. It never fails and never waits; see
    /// [`Server::publish`](crate::Server::publish). It says that something changed, and does not change it.
    pub fn publish(&self, change: Change) {
        self.port.publish(change);
    }

    /// Whether the request was cancelled. A handler that is, should stop soon; what it returns is dropped.
    pub fn is_cancelled(&self) -> bool {
        self.port.is_cancelled()
    }

    /// Asks the user. The first time this returns [`ToolError::Ask`], to be passed on with `?`; the handler is entered again with the
    /// answer. `name` tells the questions of one request apart.
    ///
    /// # Errors
    /// [`ToolError::Ask`]; [`ToolError::Failed`] if the client answered with an error, or the user's answer does not fit the form (what
    /// came is checked, ELIC-S-024; ask under another name to ask again).
    pub fn elicit(&self, name: &str, request: impl Into<ElicitRequest>) -> Result<ElicitResult, ToolError> {
        let request = request.into();
        match self.answer(name, &InputRequest::Elicitation(request.clone()))? {
            Some(InputAnswer::Elicitation(ElicitResult::Accept(content))) => match request.check(&content) {
                Ok(()) => Ok(ElicitResult::Accept(content)),
                Err(e) => Err(ToolError::Failed(format!("the answer to `{name}` does not fit the form: {e}"))),
            },
            Some(InputAnswer::Elicitation(result)) => Ok(result),
            Some(InputAnswer::Error(e)) => Err(ToolError::Failed(format!("`{name}` was not answered: {}", e.message))),
            _ => Err(self.need(alloc::vec![(name.into(), InputRequest::Elicitation(request))])),
        }
    }

    /// Asks several things at once, also of the model or for the roots. The answers come in the order of the questions; one that the
    /// client answered with an error is [`InputAnswer::Error`], and nothing is checked against a form.
    ///
    /// # Errors
    /// [`ToolError::Ask`] as long as an answer is missing, with what is missing alone; [`ToolError::Protocol`] if one cannot be read.
    pub fn ask(&self, requests: Vec<(String, InputRequest)>) -> Result<Vec<InputAnswer>, ToolError> {
        let (mut answers, mut missing) = (Vec::new(), Vec::new());
        for (name, request) in requests {
            match self.answer(&name, &request)? {
                Some(answer) => answers.push(answer),
                None => missing.push((name, request)),
            }
        }
        if missing.is_empty() { Ok(answers) } else { Err(self.need(missing)) }
    }

    /// What an earlier entry remembered with [`ToolError::remember`]; `None` the first time, and if it is of another shape.
    pub fn state<T: DeserializeOwned>(&self) -> Option<T> {
        self.kept().and_then(|state| state.decode().ok())
    }

    /// Names the round whose answers this entry has: see [`Incoming::nonce`].
    pub fn nonce(&self) -> Option<&str> {
        self.invocation.incoming.nonce.as_deref()
    }

    /// The outcome of what the handler returned, as the revision of the request can carry it.
    pub fn outcome(&self, output: impl IntoOutput) -> Outcome {
        let result = output.into_output();
        match (result, self.invocation.is_tool) {
            (Ok(result), true) => self.complete(&result),
            (Ok(result), false) => method_result(result),
            (Err(ToolError::Ask { requests, state }), _) => Outcome::NeedInput { requests, state },
            (Err(ToolError::Failed(text)), true) => self.complete(&CallToolResult::error(text)),
            (Err(ToolError::Failed(text)), false) => Outcome::Error(ErrorObject::new(code::INTERNAL_ERROR, text)),
            (Err(ToolError::Protocol(error)), _) => Outcome::Error(error),
        }
    }

    fn complete(&self, result: &CallToolResult) -> Outcome {
        Outcome::Complete(result.lower(self.context().version).write())
    }

    /// What asks for these. What was remembered before is kept unless it is replaced.
    fn need(&self, requests: Vec<(String, InputRequest)>) -> ToolError {
        ToolError::Ask { requests, state: self.kept().cloned() }
    }

    fn kept(&self) -> Option<&RawJson> {
        match &self.invocation.incoming.state {
            Some(RequestState::Kept(state)) => Some(state),
            _ => None,
        }
    }

    /// The answer to a question, if it is there.
    fn answer(&self, name: &str, request: &InputRequest) -> Result<Option<InputAnswer>, ToolError> {
        match self.invocation.incoming.inputs.get(name) {
            None => Ok(None),
            Some(Err(error)) => Ok(Some(InputAnswer::Error(error.clone()))),
            Some(Ok(result)) => request.read_answer(result).map(Some).map_err(|e| {
                // On a modern connection the answer is part of the request; on an older one it came by itself, and the request is innocent.
                let modern = self.context().version.era() == Era::Modern;
                let code = if modern { code::INVALID_PARAMS } else { code::INTERNAL_ERROR };
                ToolError::Protocol(ErrorObject::new(code, format!("the answer to `{name}` cannot be read: {e}")))
            }),
        }
    }
}

impl fmt::Debug for Cx {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cx").field("method", &self.invocation.incoming.method).finish_non_exhaustive()
    }
}

/// The result of a method: the structured content, which is an object, or nothing at all.
fn method_result(result: CallToolResult) -> Outcome {
    let object = match &result.structured {
        Some(json) => Object::read(json).map_err(|e| e.to_string()),
        None if result.content.is_empty() => Ok(result.other),
        None => Err("the handler of a method returns an object".into()),
    };
    match object {
        Ok(object) => Outcome::Complete(object),
        Err(why) => Outcome::Error(ErrorObject::new(code::INTERNAL_ERROR, why)),
    }
}
