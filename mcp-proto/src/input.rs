//! All inputs of an engine, as data that fuzzing, simulation, recordings and replay share. Keys are
//! `Copy` and identify the subject of a token. A token is emitted once and returned once.

mod key;
pub(crate) mod store;
mod watch;

use crate::auth;
pub use crate::auth::Principal;
pub use crate::call::CallId;
use crate::call::RawCall;
use crate::error::{AuthHints, Diagnostic};
use crate::exchange::{ConnectionId, ExchangeEvent, ExchangeId, Headers, IoEvent, Peer};
use crate::fetch::{FetchId, FetchRequest};
use crate::model::capabilities::ClientCapabilities;
use crate::model::content::Content;
use crate::model::elicitation::{ElicitRequest, ElicitResult, Form, UrlRequest};
use crate::model::logging::{LogLevel, LogMessage};
use crate::model::roots::{Root, Roots};
use crate::model::sampling::{SampleRequest, SampleResult};
use crate::model::tasks::TaskOptions;
use crate::rpc::{DecodeError, ErrorObject, Object, RawJson, ToObject, code};
use crate::telemetry::SpanOutcome;
use crate::version::ProtocolVersion;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use bytes::Bytes;
use core::any::Any;
use core::fmt;
use core::time::Duration;
pub use key::{
    AdmitKey, AuthKey, AuthToken, HttpSession, InputKey, InputToken, Key, KeyKind, RequestKey, RunningRequest,
    SessionKey, Token,
};
use store::{NodeItem, StoreError, StoreReply, StoreToken};
pub use watch::{Change, Watch};

/// One input of an engine. `K` identifies the exchange or connection of an event, `F` is the event,
/// `C` a command of the application.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
pub enum Input<K, F, C> {
    /// An event.
    Event(K, F),
    /// A command of the application.
    Command(C),
    /// Time has passed. Due timers fire.
    Tick,
}

/// The inputs of a [`Client`](crate::client::Client).
pub type ClientInput = Input<ExchangeId, ExchangeEvent, ClientCommand>;
/// The inputs of a [`Server`](crate::server::Server).
pub type ServerInput = Input<ExchangeId, ExchangeEvent, ServerCommand>;
/// The inputs of a [`WiredClient`](crate::wired::WiredClient).
pub type WiredClientInput = Input<ConnectionId, IoEvent, ClientCommand>;
/// The inputs of a [`WiredServer`](crate::wired::WiredServer).
pub type WiredServerInput = Input<ConnectionId, IoEvent, ServerCommand>;

/// A command of the application to a client.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
pub enum ClientCommand {
    /// Make a call.
    Call(RawCall),
    /// Cancel a call.
    Cancel(CallId, Option<String>),
    /// Answer a request for input.
    Answer(#[cfg_attr(feature = "record", serde(with = "crate::record::value"))] InputKey, InputAnswer),
    /// Send a notification of a custom method.
    Notify(String, #[cfg_attr(feature = "record", serde(with = "crate::record::value"))] Object),
    /// The same, and report its end.
    NotifyTracked(String, #[cfg_attr(feature = "record", serde(with = "crate::record::value"))] Object),
    /// Stop reporting the end of this notification.
    Untrack(NotificationId),
    /// Watch these changes, and no others.
    Watch(Watch),
    /// Request log messages of this level or above. `None`: request none.
    LogLevel(Option<LogLevel>),
    /// The application has other credentials.
    CredentialsChanged,
    /// Notify the server that the roots have changed.
    RootsChanged,
    /// The user says that a web page is complete.
    Elicited(String),
    /// Make an HTTP request that is not MCP.
    Fetch(FetchId, Box<FetchRequest>),
    /// Cancel such a request.
    CancelFetch(FetchId),
    /// Respond to a challenge.
    Authorize(#[cfg_attr(feature = "record", serde(with = "crate::record::value"))] AuthKey, Authorization),
    /// Answer a step of a login.
    Auth(Box<auth::Input>),
    /// Begin a login.
    Login,
    /// Remove the login.
    Logout,
    /// Shut down in order.
    Close,
}

/// A command of the application to a server.
#[derive(Clone, PartialEq, Debug)]
pub enum ServerCommand {
    /// Answer a request.
    Respond(Answer),
    /// Send a notification on a request, before its response.
    Notify(RequestKey, Note),
    /// Notify every client that subscribed to this change.
    Publish(Change),
    /// Notify the client that was asked to open this web page: it is complete.
    Elicited(String),
    /// End everything that was admitted for this principal.
    Revoke(Principal),
    /// The store has carried out a request, or has not.
    Stored(StoreToken, Result<StoreReply, StoreError>),
    /// Another node of the store says this.
    Arrived(NodeItem),
    /// Decide on an HTTP request or a connection.
    Admit(AdmitKey, Admission),
    /// Accept no more requests, and end when the running ones have ended or this time is over.
    Shutdown(Duration),
}

/// The result of an input.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InputResult {
    /// Applied.
    Done,
    /// The call has this id.
    Call(CallId),
    /// The notification has this id.
    Notification(NotificationId),
}

/// Identifies a tracked notification of a client. An engine never reuses an id.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
pub struct NotificationId(pub u64);

/// The right to decide on one HTTP request or one connection, once.
#[derive(PartialEq, Eq, Debug)]
#[must_use = "without a decision, the server refuses the request or connection at a timeout"]
pub struct AdmitToken {
    key: AdmitKey,
    peer: Arc<Peer>,
}

impl AdmitToken {
    pub(crate) const fn new(key: AdmitKey, peer: Arc<Peer>) -> Self {
        Self { key, peer }
    }

    /// Returns the key that identifies the HTTP request or the connection in an [`Input`].
    pub const fn key(&self) -> AdmitKey {
        self.key
    }

    /// Returns what is known of the peer. Behind a proxy, the peer is the proxy.
    pub fn peer(&self) -> &Peer {
        &self.peer
    }
}

/// The decision on an HTTP request, based on its head, or on a connection, based on its peer. The
/// server closes a rejected connection unread, since there is no request to answer. If the text of
/// a challenge is not a valid header field value, the response to the HTTP request is 500.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum Admission {
    /// Accepted. The HTTP request, or every request of the connection, counts as coming from this
    /// principal, if there is one.
    Accept(Option<Principal>),
    /// Missing or invalid credentials: 401 with this `WWW-Authenticate` (RFC 9110 section 11.6.1).
    /// For tokens of OAuth use [`Denied`](Self::Denied), whose challenge names the metadata
    /// document.
    Unauthorized(String),
    /// Insufficient credentials: 403, with this `WWW-Authenticate` if another scope would suffice
    /// (RFC 6750 section 3.1).
    Forbidden(Option<String>),
    /// Accepted with a verified token. The HTTP request, or every request of the connection, has
    /// this access. When it expires, the engine ends what the token has opened and what no request
    /// bounds: the stream of a GET, a subscription, a connection. Requests that run go on.
    Granted(Arc<auth::Access>),
    /// Refused for its token, or for want of one. The engine writes the response with its
    /// challenge, which names the metadata document of
    /// [`ServerConfig::resource`](crate::ServerConfig::resource) if that is set. It closes a
    /// connection that is no HTTP request.
    Denied(auth::AccessDenial),
}

impl From<Result<Arc<auth::Access>, auth::AccessDenial>> for Admission {
    fn from(decision: Result<Arc<auth::Access>, auth::AccessDenial>) -> Self {
        match decision {
            Ok(access) => Self::Granted(access),
            Err(denial) => Self::Denied(denial),
        }
    }
}

/// A demand of a server for credentials: a status 401 or 403 and its fields (RFC 9110 section 11;
/// 2025-11-25 authorization).
#[derive(Clone, PartialEq, Eq, Debug, PartialOrd, Ord)]
#[non_exhaustive]
pub struct Challenge {
    /// 401: the credentials are missing or invalid. 403: they do not suffice.
    pub status: u16,
    /// The fields of the response.
    pub hints: AuthHints,
}

impl Challenge {
    pub(crate) const fn new(status: u16, hints: AuthHints) -> Self {
        Self { status, hints }
    }
}

/// The response to a [`Challenge`].
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
pub enum Authorization {
    /// The client adds these fields to every request from now on, replacing those of an earlier
    /// response, and repeats the requests that wait. Usually there is one: `Authorization`. The
    /// client ignores fields that HTTP or this protocol defines (`Host`, `Accept`,
    /// `Mcp-Session-Id`, …) and invalid ones.
    Headers(Headers),
    /// There are no credentials. The requests that wait end with the status.
    Refuse,
}

/// A request of a server to its client for input, in every revision: a handler makes it, and the
/// application of the client answers it.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum InputRequest {
    /// Input of the user (`elicitation/create`).
    Elicitation(ElicitRequest),
    /// A message of a language model (`sampling/createMessage`). In a box, since it is large.
    Sampling(Box<SampleRequest>),
    /// The roots (`roots/list`).
    Roots,
}

/// The answer to an [`InputRequest`].
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum InputAnswer {
    /// The response of the user.
    Elicitation(ElicitResult),
    /// The message of the language model.
    Sampling(#[cfg_attr(feature = "record", serde(with = "crate::record::value"))] SampleResult),
    /// The roots.
    Roots(#[cfg_attr(feature = "record", serde(with = "crate::record::value"))] Roots),
    /// There is no answer. A legacy server receives this error. With a modern server, the call
    /// fails.
    Error(ErrorObject),
}

impl InputRequest {
    /// Returns the method on the wire.
    pub const fn method(&self) -> &'static str {
        match self {
            Self::Elicitation(_) => "elicitation/create",
            Self::Sampling(_) => "sampling/createMessage",
            Self::Roots => "roots/list",
        }
    }

    /// Returns whether a client with these capabilities supports the request.
    pub fn is_supported_by(&self, declared: &ClientCapabilities) -> bool {
        match self {
            Self::Elicitation(ElicitRequest::Form(_)) => declared.elicits_forms(),
            Self::Elicitation(ElicitRequest::Url(_)) => declared.elicits_urls(),
            Self::Sampling(request) if request.uses_tools() => declared.samples_with_tools(),
            Self::Sampling(_) => declared.sampling.is_some(),
            Self::Roots => declared.roots.is_some(),
        }
    }

    /// Returns whether the revision has the request.
    pub(crate) fn exists_in(&self, version: ProtocolVersion) -> bool {
        let rules = version.rules();
        match self {
            Self::Elicitation(ElicitRequest::Form(_)) => rules.elicitation,
            Self::Elicitation(ElicitRequest::Url(_)) => rules.elicitation_modes,
            Self::Sampling(request) => rules.sampling_tools || !request.uses_tools(),
            Self::Roots => true,
        }
    }

    /// Returns the web page that the user is asked to open.
    pub(crate) const fn page(&self) -> Option<&UrlRequest> {
        match self {
            Self::Elicitation(ElicitRequest::Url(page)) => Some(page),
            Self::Elicitation(ElicitRequest::Form(_)) | Self::Sampling(_) | Self::Roots => None,
        }
    }

    /// Checks the rules of the protocol that the type cannot express: the schema of a form, the URL
    /// of a web page, the balance of the uses and results of tools.
    pub(crate) fn check(&self) -> Result<(), DecodeError> {
        match self {
            Self::Elicitation(ElicitRequest::Url(page)) => page.check(),
            Self::Elicitation(ElicitRequest::Form(form)) => form.check_schema(),
            Self::Sampling(request) => request.check(),
            Self::Roots => Ok(()),
        }
    }

    /// Adds the capabilities that the request needs.
    pub(crate) fn require(&self, required: &mut ClientCapabilities) {
        match self {
            Self::Elicitation(request) => {
                let modes = required.elicitation.get_or_insert_default();
                let mode = match request {
                    ElicitRequest::Form(_) => &mut modes.form,
                    ElicitRequest::Url(_) => &mut modes.url,
                };
                *mode = Some(Object::new());
            }
            Self::Sampling(request) => {
                let sampling = required.sampling.get_or_insert_default();
                if request.uses_tools() {
                    sampling.tools = Some(Object::new());
                }
            }
            Self::Roots => drop(required.roots.get_or_insert_default()),
        }
    }

    /// Returns the params on the wire, as this revision has them. `roots/list` has none.
    pub fn params(&self, version: ProtocolVersion) -> Option<Object> {
        match self {
            Self::Elicitation(request) => Some(request.write(version)),
            Self::Sampling(request) => Some(request.write(version)),
            Self::Roots => None,
        }
    }

    /// Decodes a request for input. `Ok(None)` if the method is not one.
    ///
    /// # Errors
    /// [`DecodeError`] if the params do not have the shape of the method.
    pub fn read(method: &str, params: Option<&RawJson>) -> Result<Option<Self>, DecodeError> {
        let params = || Object::read_opt(params);
        Ok(Some(match method {
            "elicitation/create" => Self::Elicitation(ElicitRequest::read(&params()?)?),
            "sampling/createMessage" => Self::Sampling(Box::new(SampleRequest::read(params()?)?)),
            "roots/list" => Self::Roots,
            _ => return Ok(None),
        }))
    }

    /// Decodes the answer to this request.
    ///
    /// # Errors
    /// [`DecodeError`] if the result does not have the shape of the method.
    pub fn read_answer(&self, result: &RawJson) -> Result<InputAnswer, DecodeError> {
        InputAnswer::read(self.method(), result)
    }
}

impl From<Form> for InputRequest {
    fn from(form: Form) -> Self {
        Self::Elicitation(form.into())
    }
}

impl From<UrlRequest> for InputRequest {
    fn from(request: UrlRequest) -> Self {
        Self::Elicitation(request.into())
    }
}

impl From<SampleRequest> for InputRequest {
    fn from(request: SampleRequest) -> Self {
        Self::Sampling(Box::new(request))
    }
}

impl InputAnswer {
    /// Decodes the answer to a request of this method.
    pub(crate) fn read(method: &str, result: &RawJson) -> Result<Self, DecodeError> {
        let result = Object::read(result)?;
        Ok(match method {
            "elicitation/create" => Self::Elicitation(ElicitResult::read(&result)?),
            "sampling/createMessage" => Self::Sampling(SampleResult::read(result)?),
            _ => Self::Roots(Roots::read(result)?),
        })
    }

    /// Returns the result on the wire, as this revision has it.
    ///
    /// # Errors
    /// The error of [`InputAnswer::Error`].
    pub fn to_object(&self, version: ProtocolVersion) -> Result<Object, ErrorObject> {
        match self {
            Self::Elicitation(result) => Ok(result.to_object()),
            Self::Sampling(result) => Ok(result.write(version)),
            Self::Roots(roots) => Ok(roots.write()),
            Self::Error(error) => Err(error.clone()),
        }
    }

    /// Creates the answer with these roots.
    pub fn roots<R: Into<Root>>(roots: impl IntoIterator<Item = R>) -> Self {
        Self::Roots(Roots::new(roots))
    }

    /// Creates the answer of a user who accepts the form with these values, as
    /// [`ElicitResult::accept`].
    ///
    /// ```
    /// # use mcp_proto::model::elicitation::{ElicitResult, Field, Form};
    /// # use mcp_proto::{InputAnswer, Object};
    /// let express = Field::boolean("express").default_value(false);
    /// let form = Form::new("Ship it?").text("to").field(express);
    /// let answer = InputAnswer::accept(&form.fill(Object::new().with("to", "Paris")));
    /// let all = Object::new().with("to", "Paris").with("express", false);
    /// assert_eq!(answer, InputAnswer::Elicitation(ElicitResult::Accept(all)));
    /// ```
    ///
    /// # Panics
    /// If the value does not serialize to a JSON object.
    pub fn accept<T: ToObject + ?Sized>(values: &T) -> Self {
        Self::Elicitation(ElicitResult::accept(values))
    }

    /// Creates the answer of a user who accepts the form unchanged. Each field with a default has
    /// it.
    ///
    /// ```
    /// # use mcp_proto::model::elicitation::{ElicitResult, Field, Form};
    /// # use mcp_proto::{InputAnswer, Object};
    /// let size = Field::choice("size", ["s", "l"]).default_value("l");
    /// let form = Form::new("Which copies?").field(size);
    /// let answer = InputAnswer::accept_defaults(&form);
    /// let content = Object::new().with("size", "l");
    /// assert_eq!(answer, InputAnswer::Elicitation(ElicitResult::Accept(content)));
    /// ```
    pub fn accept_defaults(form: &Form) -> Self {
        Self::Elicitation(ElicitResult::accept_defaults(form))
    }

    /// Creates an error of this side (`-32603`): the callback panicked, or there is none.
    pub fn internal(text: &str) -> Self {
        Self::Error(ErrorObject::new(code::INTERNAL_ERROR, text))
    }
}

/// The outcome of one run of a handler.
#[derive(Clone, PartialEq, Debug)]
pub enum Outcome {
    /// The result.
    Complete(Object),
    /// The handler needs input. It runs again with the answers and the state.
    NeedInput {
        /// The requests by name. The answers have the same names. Each name is unique.
        requests: Vec<(String, InputRequest)>,
        /// The state that the handler needs in its next run. In the modern era it is sealed and
        /// sent through the client.
        state: Option<RawJson>,
    },
    /// The request failed.
    Error(ErrorObject),
}

impl Outcome {
    /// Creates an error of the handler itself (`-32603`): it panicked, or was dropped before it
    /// answered.
    pub fn internal(text: &str) -> Self {
        Self::Error(ErrorObject::new(code::INTERNAL_ERROR, text))
    }
}

/// The serialized response to a request. [`Responder::write`](crate::server::Responder::write)
/// creates it.
#[derive(Clone, PartialEq, Debug)]
pub struct Answer {
    pub(crate) key: RequestKey,
    pub(crate) what: RequestAnswer,
}

impl Answer {
    /// Returns the key of its request.
    pub const fn key(&self) -> RequestKey {
        self.key
    }
}

/// The router of a request, which the engine keeps for its further rounds and does not look into.
#[derive(Clone)]
pub(crate) struct KeptRouter(pub(crate) Arc<dyn Any + Send + Sync>);

impl PartialEq for KeptRouter {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl fmt::Debug for KeptRouter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeptRouter")
    }
}

/// The input responses of earlier rounds, by name.
pub(crate) type Inputs = BTreeMap<String, Result<RawJson, ErrorObject>>;

#[derive(Clone, PartialEq, Debug)]
pub(crate) enum RequestAnswer {
    /// The whole message, what it says, and a diagnostic for the application.
    Message { bytes: Bytes, outcome: SpanOutcome, diagnostic: Option<Diagnostic> },
    /// The same for a request that needs these scopes, since its client lacks one.
    Denied { bytes: Bytes, code: i64, scopes: auth::Scopes },
    /// The changes that a subscription may include.
    Listen(Watch),
    /// Requests for input, for a legacy client.
    Ask {
        questions: Vec<LegacyInputRequest>,
        state: Option<RawJson>,
        router: Option<KeptRouter>,
        /// The input responses of the rounds before a request became a task, and the number of
        /// these rounds (2026-07-28).
        earlier: Option<(Inputs, u32)>,
        diagnostic: Option<Diagnostic>,
    },
}

/// A request for input of a legacy client, with serialized params.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct LegacyInputRequest {
    pub(crate) name: String,
    pub(crate) method: &'static str,
    pub(crate) params: Option<Object>,
    /// The id of a web page.
    pub(crate) elicitation: Option<String>,
}

/// The result on the wire of 2026-07-28.
impl TryFrom<InputAnswer> for Object {
    /// That of [`InputAnswer::Error`].
    type Error = ErrorObject;

    fn try_from(answer: InputAnswer) -> Result<Self, ErrorObject> {
        answer.to_object(ProtocolVersion::V2026_07_28)
    }
}

/// A notification that belongs to one request.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum Note {
    /// Progress. Sent only if the request has a progress token and the number increases.
    Progress(crate::model::Progress),
    /// A log message. Sent only if the client wants its level, and dropped while the client does
    /// not read.
    Log(LogMessage),
    /// A notification of another method. [`Cx::notify`](crate::Cx::notify) lists the methods that
    /// the engine refuses.
    Custom(String, Object),
    /// Ends the event stream of the request for now, so that a long request holds no connection.
    /// The client resumes it after this time, or after
    /// [`ServerConfig::retry`](crate::server::ServerConfig::retry) (2025-11-25 transports, sending
    /// messages to the server: a server may close the connection after an event with an id).
    /// Refused with [`Refusal::NotWanted`](crate::Refusal::NotWanted) if the client cannot resume:
    /// on every other revision and transport, and without a session.
    CloseStream(Option<Duration>),
    /// The request takes long: its client gets a task as the response
    /// ([`Cx::into_task`](crate::Cx::into_task)). Refused with
    /// [`Refusal::NotWanted`](crate::Refusal::NotWanted) if the client takes none, there is no
    /// room, or it is one already.
    IntoTask(TaskOptions),
    /// The text of the status of a task. Refused with
    /// [`Refusal::NotWanted`](crate::Refusal::NotWanted) if the request is none.
    Status(String),
    /// An element of the content of the result of a tool, before the result. Refused with
    /// [`Refusal::NotWanted`](crate::Refusal::NotWanted) unless the client takes it:
    /// [`Dialect::ToolStream`](crate::Dialect::ToolStream).
    Part(Content),
}
