//! The context of a handler.

mod ask;

use super::handler::BoxFuture;
use super::output::{IntoOutput, ToolError};
use super::target::{HandlerTarget, ListTarget};
use super::{BadReplacement, Router};
use crate::auth::Access;
use crate::error::Refusal;
use crate::input::{Change, Note, Outcome, ServerCommand};
use crate::model::Progress;
use crate::model::content::Content;
use crate::model::lifecycle::meta;
use crate::model::logging::{LogLevel, LogMessage};
use crate::model::tasks::TaskOptions;
use crate::model::tools::CallToolResult;
use crate::rpc::{ErrorObject, Object, RawJson, code};
use crate::server::{Context, IncomingRequest, RequestState, TaskSlot};
use crate::time::Instant;
use crate::trace_context::TraceContext;
use crate::version::{Era, ProtocolVersion};
use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use core::fmt;
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// One run of a handler: its arguments, the answers of earlier rounds, and the state that it kept.
#[derive(Clone, PartialEq, Debug)]
pub struct Invocation {
    incoming: IncomingRequest,
    /// The arguments of a tool or a prompt, or the params of any other method.
    arguments: RawJson,
    target: HandlerTarget,
    /// What it becomes before the handler runs.
    begins_as: Option<Box<TaskOptions>>,
    /// Whether its task may run again at another server.
    reruns: bool,
    received_at: Instant,
}

impl Invocation {
    pub(super) const fn new(incoming: IncomingRequest, target: HandlerTarget, arguments: RawJson) -> Self {
        Self { incoming, arguments, target, begins_as: None, reruns: false, received_at: Instant::ZERO }
    }

    /// Makes it a task before the handler runs. `reruns`: its task may run again.
    pub(super) fn beginning_as(self, begins_as: Option<TaskOptions>, reruns: bool) -> Self {
        Self { begins_as: begins_as.map(Box::new), reruns, ..self }
    }

    /// Takes what it becomes before the handler runs, for another to do it.
    pub(super) fn take_beginning(&mut self) -> Option<TaskOptions> {
        self.begins_as.take().map(|options| *options)
    }

    /// Sets the time at which the engine got the request.
    pub(super) fn received_at(self, received_at: Instant) -> Self {
        Self { received_at, ..self }
    }

    /// Creates one whose arguments are the params.
    pub(super) fn of_params(incoming: IncomingRequest, target: HandlerTarget) -> Self {
        let arguments = incoming.params.to_json();
        Self::new(incoming, target, arguments)
    }

    /// Returns the peer, the revision and the session of the request.
    pub const fn context(&self) -> &Context {
        &self.incoming.context
    }

    /// Returns the request.
    pub const fn incoming(&self) -> &IncomingRequest {
        &self.incoming
    }
}

/// The functions of a driver that a handler uses. Each adapter implements it once.
pub trait Port: Send + Sync {
    /// Sends a notification on the request.
    ///
    /// # Errors
    /// The reason why it was not sent.
    fn note(&self, note: Note) -> Result<(), Refusal>;
    /// Gives a command to the server that is never refused: to publish a change, or that a web page
    /// is complete. The default does nothing.
    fn command(&self, command: ServerCommand) {
        let _ = command;
    }
    /// Replaces the router of the server by what this function makes of it, and publishes the lists
    /// that differ: see [`Router::replace`]. The default refuses.
    ///
    /// # Errors
    /// [`BadReplacement`]. Nothing has changed then.
    fn update(&self, change: &mut dyn FnMut(Router) -> Router) -> Result<(), BadReplacement> {
        let _ = change;
        Err(BadReplacement::Unsupported)
    }
    /// Runs a function that may block, within a future of this driver. The default runs it where
    /// the future is polled: right for a driver that polls futures on threads that may wait.
    fn block(&self, run: BlockingCall) -> BoxFuture<Outcome> {
        block_here(run)
    }
    /// Returns whether the request was cancelled.
    fn is_cancelled(&self) -> bool;
}

/// A handler that may block, for [`Port::block`].
pub type BlockingCall = Box<dyn FnOnce() -> Outcome + Send>;

/// Runs a handler that may block where its future is polled: the default of [`Port::block`].
pub fn block_here(run: BlockingCall) -> BoxFuture<Outcome> {
    Box::pin(async move { run() })
}

/// The context of a handler. Cheap to clone.
///
/// A handler that requests input runs again from its beginning with the answers, in every revision.
/// Request input before any action that must not happen twice.
#[derive(Clone)]
pub struct Cx {
    invocation: Arc<Invocation>,
    port: Arc<dyn Port>,
}

impl Cx {
    /// Creates the context for this invocation. A call that is a task from its beginning becomes
    /// one now.
    pub fn new(invocation: Invocation, port: Arc<dyn Port>) -> Self {
        let begins_as = invocation.begins_as.as_deref().copied();
        let cx = Self { invocation: Arc::new(invocation), port };
        if let Some(options) = begins_as {
            // An error means that the request is over.
            drop(cx.into_task(options));
        }
        cx
    }

    /// Like [`new`](Self::new), with a flag that is set when the request is cancelled, a function
    /// that sends a notification on it, and one that notifies all clients. For a driver that runs
    /// handlers on another thread: it sets the flag at
    /// [`Event::Cancelled`](crate::server::Event::Cancelled). If the functions only queue commands
    /// for the engine, the first returns `Ok(())`, and the refusal of the engine is dropped.
    pub fn linked(
        invocation: Invocation,
        cancelled: Arc<AtomicBool>,
        note: impl Fn(Note) -> Result<(), Refusal> + Send + Sync + 'static,
        publish: impl Fn(Change) + Send + Sync + 'static,
    ) -> Self {
        struct LinkedPort<F, P>(Arc<AtomicBool>, F, P);
        impl<F, P> Port for LinkedPort<F, P>
        where
            F: Fn(Note) -> Result<(), Refusal> + Send + Sync,
            P: Fn(Change) + Send + Sync,
        {
            fn note(&self, note: Note) -> Result<(), Refusal> {
                (self.1)(note)
            }

            fn command(&self, command: ServerCommand) {
                if let ServerCommand::Publish(change) = command {
                    (self.2)(change);
                }
            }

            fn is_cancelled(&self) -> bool {
                self.0.load(Ordering::Relaxed)
            }
        }
        Self::new(invocation, Arc::new(LinkedPort(cancelled, note, publish)))
    }

    /// Like [`new`](Self::new), for a driver that runs a handler to its end before anything else.
    /// Notifications are refused with [`Refusal::NotWanted`], and the request never counts as
    /// cancelled.
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

    /// Returns the peer, the revision and the session of the request.
    pub fn context(&self) -> &Context {
        self.invocation.context()
    }

    /// Returns the method of the request.
    pub fn method(&self) -> &str {
        &self.invocation.incoming.method
    }

    /// Returns what the request is about: the name of the tool or the prompt, the URI of the
    /// resource, or the name or URI of what is completed. `None` for a list, and for a method of
    /// the application.
    pub fn name(&self) -> Option<Cow<'_, str>> {
        let params = &self.invocation.incoming.params;
        match self.target() {
            HandlerTarget::Tool => params.str("name"),
            HandlerTarget::Prompt(prompt) => Some(Cow::Borrowed(&prompt.name)),
            HandlerTarget::Resource(resource) => Some(Cow::Borrowed(&resource.uri)),
            HandlerTarget::Completion(_) => {
                let of = params.object("ref").ok()?;
                of.str("name").or_else(|| of.str("uri")).map(|name| Cow::Owned(name.into_owned()))
            }
            HandlerTarget::Method | HandlerTarget::List(_) | HandlerTarget::Router => None,
        }
    }

    /// Returns the place of the request in a trace, if its client says so in a valid form.
    pub fn trace(&self) -> Option<TraceContext> {
        TraceContext::read(self.meta())
    }

    /// Returns when the engine got the request, in its own time.
    pub fn received_at(&self) -> Instant {
        self.invocation.received_at
    }

    /// Returns a text that tells where the request comes from.
    pub(super) fn source(&self) -> String {
        self.invocation.incoming.source()
    }

    pub(super) fn port(&self) -> &Arc<dyn Port> {
        &self.port
    }

    /// Returns what the verified token of the client says: who it is, and what it may do. `None` if
    /// the request came without one, as over standard input and output.
    pub fn granted(&self) -> Option<&Access> {
        self.context().access.as_deref()
    }

    /// Decodes the arguments of a tool or a prompt, or the params of any other method. `()` accepts
    /// an empty object.
    ///
    /// # Errors
    /// Arguments that cannot be decoded become the response that the revision requires: for a
    /// tool from 2025-11-25 on a result with `isError`, which a model can react to, before that,
    /// and for everything else, the error `-32602`.
    pub fn arguments<A: DeserializeOwned>(&self) -> Result<A, ToolError> {
        let arguments = &self.invocation.arguments;
        let decoded = arguments.decode().or_else(|e| {
            // Types without members, such as `()`, decode from `null` and not from `{}`.
            let empty = Object::read(arguments).is_ok_and(|object| object.is_empty());
            if empty { RawJson::null().decode().map_err(|_| e) } else { Err(e) }
        });
        decoded.map_err(|e| {
            let text = format!("invalid arguments: {e}");
            match self.invocation.target == HandlerTarget::Tool {
                true => ToolError::invalid_arguments(self.context().version, text),
                false => ToolError::Protocol(ErrorObject::new(code::INVALID_PARAMS, text)),
            }
        })
    }

    /// Makes a task of the request, since it takes long: its client gets a response now, and asks
    /// for the result later. The handler goes on, and its outcome becomes that of the task. Call it
    /// after all that may refuse the call, and after questions that the call depends on: what a
    /// handler asks before this is a round of the request, and what it asks later waits in the
    /// task. Each question of a task needs a name of its own.
    ///
    /// Returns false if the request cannot become one: its client has no tasks, or there is no room
    /// ([`max_tasks`](crate::limits::ServerLimits::max_tasks)). Go on then, as without it. Returns
    /// true and does nothing if it is one already. The tool must
    /// [support](crate::Tool::task) tasks.
    ///
    /// # Errors
    /// [`ToolError::Failed`] if the request is over.
    pub fn into_task(&self, options: TaskOptions) -> Result<bool, ToolError> {
        let Some(slot) = &self.invocation.incoming.task else { return Ok(false) };
        if slot.take() {
            let options = options.rerun(options.reruns || self.invocation.reruns);
            let noted = self.port.note(Note::IntoTask(options));
            noted.map_err(|why| ToolError::Failed(format!("the call cannot become a task: {why}")))?;
        }
        Ok(true)
    }

    /// Sets the text of the status of the task, for people.
    ///
    /// # Errors
    /// [`Refusal::NotWanted`] if the request is no task, [`Refusal::Gone`] after it has ended.
    pub fn status(&self, text: &str) -> Result<(), Refusal> {
        if self.task().is_none() {
            return Err(Refusal::NotWanted);
        }
        self.port.note(Note::Status(text.into()))
    }

    /// Returns the id of the task that the request is. `None`: it is none.
    pub fn task(&self) -> Option<String> {
        self.invocation.incoming.task.as_ref().filter(|slot| slot.is_taken()).map(TaskSlot::id)
    }

    /// Returns how often the request has asked its client before this run of the handler.
    pub fn round(&self) -> u32 {
        self.invocation.incoming.rounds
    }

    /// Returns the arguments of a tool or a prompt, or the params of any other method, as received.
    pub fn raw(&self) -> &RawJson {
        &self.invocation.arguments
    }

    /// Returns the `_meta` of the request, which includes the trace context.
    pub fn meta(&self) -> &Object {
        &self.invocation.incoming.meta
    }

    /// Reports progress. Most handlers ignore the result, since progress is optional.
    ///
    /// # Errors
    /// [`Refusal::NotWanted`] if the request did not ask for progress, [`Refusal::NotIncreasing`],
    /// [`Refusal::Gone`] after the request was answered or cancelled.
    pub fn progress(&self, progress: Progress) -> Result<(), Refusal> {
        self.port.note(Note::Progress(progress))
    }

    /// Sends a log message on the request, if its client wants this level. `logger` names the part
    /// of the server that logs. The server must declare [`logging`](crate::Router::logging). Most
    /// handlers ignore the result. Log messages are deprecated since 2026-07-28.
    ///
    /// On 2026-07-28 a client wants messages at or above the `logLevel` of this request, and none
    /// without one (logging: per-request log level). Before, it wants those at or above the level
    /// of its session, and all until it sets one.
    ///
    /// ```
    /// # use mcp_proto::{LogLevel, Router, tool};
    /// let router = Router::new("copier", "1.0").logging().tool(tool("copy"), |cx, ()| {
    ///     cx.log(LogLevel::Info, "disk", &"copying").ok();
    ///     Ok("copied")
    /// });
    /// # drop(router);
    /// ```
    ///
    /// # Errors
    /// [`Refusal::NotWanted`] if the client does not want it, or the server does not declare
    /// `logging`; [`Refusal::Unencodable`]; [`Refusal::Full`] while the client does not read: the
    /// message is dropped, and a diagnostic reports how many were
    /// ([`DroppedLog`](crate::error::DiagnosticKind::DroppedLog)); [`Refusal::Gone`] after the
    /// request was answered or cancelled.
    pub fn log<'a>(
        &self,
        level: LogLevel,
        logger: impl Into<Option<&'a str>>,
        data: &(impl Serialize + ?Sized),
    ) -> Result<(), Refusal> {
        let least = || LogLevel::read(&self.meta().get(meta::LOG_LEVEL)?);
        // Usually nothing is wanted, so nothing is encoded.
        if self.context().version.era() == Era::Modern && least().is_none_or(|least| level < least) {
            return Err(Refusal::NotWanted);
        }
        let data = RawJson::encode(data).map_err(Refusal::Unencodable)?;
        let message = LogMessage::new(level, data);
        let message = match logger.into() {
            Some(name) => message.logger(name),
            None => message,
        };
        self.port.note(Note::Log(message))
    }

    /// Sends a notification on the request, before its response. It is meant for custom methods.
    /// The engine sends most notifications of the protocol itself, and refuses them here:
    ///
    /// | method | a handler may send it | instead, or because |
    /// |---|---|---|
    /// | `notifications/progress` | never | [`progress`](Self::progress) |
    /// | `notifications/cancelled` | never | the engine cancels its own requests |
    /// | `notifications/tools/list_changed`, `notifications/prompts/list_changed`, `notifications/resources/list_changed`, `notifications/resources/updated` | never | [`publish`](Self::publish) |
    /// | `notifications/message` | never | [`log`](Self::log) |
    /// | `notifications/elicitation/complete` | never | [`elicited`](Self::elicited) |
    /// | `notifications/subscriptions/acknowledged` | never | the engine opens subscriptions |
    /// | `notifications/tasks` | never | it belongs on a subscription |
    /// | `notifications/initialized`, `notifications/roots/list_changed` | never | only clients send them |
    /// | `notifications/tasks/status` | on 2025-11-25, if the server declares `tasks` | no other revision has it |
    /// | any other | always | |
    ///
    /// # Errors
    /// [`Refusal::NotWanted`] as in the table, [`Refusal::Full`] while the client does not read,
    /// [`Refusal::Gone`] after the request was answered or cancelled.
    pub fn notify(&self, method: &str, params: Object) -> Result<(), Refusal> {
        self.port.note(Note::Custom(method.into(), params))
    }

    /// Ends the event stream of the request for now, so that a long request holds no connection. A
    /// client of 2025-11-25 resumes it after this time, or after
    /// [`ServerConfig::retry`](crate::server::ServerConfig::retry).
    ///
    /// # Errors
    /// [`Refusal::NotWanted`] if the client cannot resume: on every other revision and transport,
    /// and without a session. [`Refusal::Gone`] after the request was answered or cancelled.
    pub fn close_stream(&self, retry: Option<Duration>) -> Result<(), Refusal> {
        self.port.note(Note::CloseStream(retry))
    }

    /// Shows the client an element of the content of the result before the handler has ended. The
    /// result must contain it again. Most handlers ignore the error, since the result has
    /// everything.
    ///
    /// # Errors
    /// [`Refusal::NotWanted`] unless the client takes parts of a result:
    /// [`Dialect::ToolStream`](crate::Dialect::ToolStream). MCP has none. [`Refusal::Full`] while
    /// the client does not read, [`Refusal::Gone`] after the request was answered or cancelled.
    pub fn part(&self, content: impl Into<Content>) -> Result<(), Refusal> {
        self.port.note(Note::Part(content.into()))
    }

    /// Announces a change to every client that subscribed to it, not only to the client of this
    /// request. Never fails and never waits: see
    /// [`Server::publish`](crate::ServerCommands::publish). It does not change the list itself.
    pub fn publish(&self, change: Change) {
        self.port.command(ServerCommand::Publish(change));
    }

    /// Replaces the router of the server, and announces the lists that differ: see
    /// [`Router::replace`]. This request keeps the router that it began with.
    ///
    /// # Errors
    /// [`BadReplacement`]. Nothing has changed then.
    pub fn replace(&self, router: Router) -> Result<(), BadReplacement> {
        self.port.update(&mut |_| router.clone())
    }

    /// Replaces the router of the server by what this function makes of it, as
    /// [`replace`](Self::replace) does. The function runs again if another replacement came
    /// between, so that none is lost. It must not replace the router itself.
    ///
    /// ```
    /// # use mcp_proto::{Router, tool};
    /// let router = Router::new("editor", "1.0").tools_change().tool(tool("open"), |cx, ()| {
    ///     cx.update(|router| router.tool(tool("save"), |_cx, ()| Ok("saved")))?;
    ///     Ok("opened")
    /// });
    /// # drop(router);
    /// ```
    ///
    /// # Errors
    /// [`BadReplacement`]. Nothing has changed then.
    pub fn update(&self, mut change: impl FnMut(Router) -> Router) -> Result<(), BadReplacement> {
        self.port.update(&mut change)
    }

    /// Returns whether the request was cancelled. The handler should then stop soon. Its result is
    /// dropped.
    pub fn is_cancelled(&self) -> bool {
        self.port.is_cancelled()
    }

    /// Returns the settings with which the client declared an extension.
    ///
    /// # Errors
    /// [`ToolError::Protocol`] with the code `-32021` on 2026-07-28, and [`ToolError::Failed`]
    /// before, if the client did not declare it (2026-07-28 versioning, extension negotiation).
    pub fn require_extension(&self, id: &str) -> Result<Object, ToolError> {
        if let Some(settings) = self.context().capabilities().extensions.get(id) {
            return Ok(settings);
        }
        let text = format!("the client lacks the extension: {id}");
        if self.context().version.era() == Era::Legacy {
            return Err(ToolError::Failed(text));
        }
        let required = Object::new().with("extensions", Object::new().with(id, Object::new()));
        let data = Object::new().with("requiredCapabilities", required);
        Err(ErrorObject::new(code::MISSING_CLIENT_CAPABILITY, text).with_data(data.into()).into())
    }

    /// Returns the state that an earlier run kept with [`ToolError::remember`]. `None` in the first
    /// run, and if it has another shape.
    pub fn state<T: DeserializeOwned>(&self) -> Option<T> {
        self.kept().and_then(|state| state.decode().ok())
    }

    /// Returns the nonce of the round whose answers this run has: see [`IncomingRequest::nonce`].
    pub fn nonce(&self) -> Option<&str> {
        self.invocation.incoming.nonce.as_deref()
    }

    /// Converts the return value of a handler of a tool or a method to an outcome that the revision
    /// of the request can represent.
    pub fn outcome(&self, output: impl IntoOutput) -> Outcome {
        match (output.into_output(), self.target()) {
            (output, HandlerTarget::Tool) => tool_outcome(self.context().version, output),
            (Ok(result), _) => method_result(result),
            (Err(e), _) => self.failed(e),
        }
    }

    /// Returns the outcome of a handler that has no result.
    pub(super) fn failed(&self, error: ToolError) -> Outcome {
        match error {
            error if *self.target() == HandlerTarget::Tool => tool_outcome(self.context().version, Err(error)),
            ToolError::Ask { requests, state } => Outcome::NeedInput { requests, state },
            ToolError::Failed(text) => Outcome::Error(ErrorObject::new(code::INTERNAL_ERROR, text)),
            ToolError::NotFound => Outcome::Error(self.not_found()),
            ToolError::Protocol(error) => Outcome::Error(error),
        }
    }

    /// Returns what the run is about.
    pub(super) fn target(&self) -> &HandlerTarget {
        &self.invocation.target
    }

    /// Returns the requested page of a list.
    pub(super) fn list(&self) -> Option<&ListTarget> {
        match self.target() {
            HandlerTarget::List(list) => Some(list),
            _ => None,
        }
    }

    fn kept(&self) -> Option<&RawJson> {
        match &self.invocation.incoming.state {
            Some(RequestState::Kept(state)) => Some(state),
            _ => None,
        }
    }
}

impl fmt::Debug for Cx {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cx").field("method", &self.invocation.incoming.method).finish_non_exhaustive()
    }
}

/// Converts the result of a tool to an outcome that a revision can represent.
pub(super) fn tool_outcome(version: ProtocolVersion, result: Result<CallToolResult, ToolError>) -> Outcome {
    let complete = |result: CallToolResult| Outcome::Complete(result.lower(version).write());
    match result {
        Ok(result) => complete(result),
        Err(ToolError::Ask { requests, state }) => Outcome::NeedInput { requests, state },
        Err(ToolError::Failed(text)) => complete(CallToolResult::error(text)),
        Err(e @ ToolError::NotFound) => complete(CallToolResult::error(e.to_string())),
        Err(ToolError::Protocol(error)) => Outcome::Error(error),
    }
}

/// Returns the result of a method: structured content that is an object, or nothing.
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
