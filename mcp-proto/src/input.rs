//! Everything that can be told to an engine, as data: fuzzing, simulation, recordings and replay share it.
//! Keys are `Copy` and name what a token stands for; a token is handed out once and given back once.

pub use crate::call::CallId;
use crate::call::RawCall;
use crate::error::{AuthHints, Diagnostic};
use crate::exchange::{Closed, ConnectionId, ExchangeEvent, ExchangeId, Headers, Peer};
use crate::model::elicitation::{ElicitRequest, ElicitResult};
use crate::rpc::{DecodeError, ErrorObject, Object, RawJson, code};
use alloc::string::String;
use alloc::vec::Vec;
use bytes::Bytes;
use core::time::Duration;

/// One input of an engine. `K` names where a fact happened, `F` is the fact, `C` a command of the application.
#[derive(Clone, PartialEq, Debug)]
pub enum Input<K, F, C> {
    /// Something happened.
    Event(K, F),
    /// The application asks for something.
    Command(C),
    /// Time has passed; due timers fire.
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

/// What happened to a channel. `Closed` is the last fact of every channel, also of one that never opened.
#[derive(Clone, PartialEq, Debug)]
pub enum IoEvent {
    /// It is open.
    Opened(Peer),
    /// These bytes were read.
    Bytes(Bytes),
    /// The other side will send no more.
    Eof,
    /// So many bytes of what was handed over are written.
    Written(usize),
    /// It is gone.
    Closed(Closed),
}

/// What an application may ask of a client.
#[derive(Clone, PartialEq, Debug)]
pub enum ClientCommand {
    /// Make a call.
    Call(RawCall),
    /// Cancel a call.
    Cancel(CallId, Option<String>),
    /// Answer a question of the server.
    Answer(InputKey, InputAnswer),
    /// Send a notification of a custom method.
    Notify(String, Object),
    /// The same, and report its end.
    NotifyTracked(String, Object),
    /// Do not report the end of this notification.
    Untrack(NotificationId),
    /// Answer a challenge of the server.
    Authorize(AuthKey, Authorization),
    /// End in order.
    Close,
}

/// What an application may ask of a server.
#[derive(Clone, PartialEq, Debug)]
pub enum ServerCommand {
    /// Answer a request.
    Respond(Answer),
    /// Send a notification on a request, before its answer.
    Notify(RequestKey, Note),
    /// Tell every client that wants to know of it.
    Publish(Change),
    /// End everything that was admitted as coming from this principal.
    Revoke(Principal),
    /// Decide about an HTTP request or a connection.
    Admit(AdmitKey, Admission),
    /// Stop accepting requests, and end when those that run have ended or the time is over.
    Shutdown(Duration),
}

/// What a command came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Applied {
    /// Done.
    Done,
    /// The call has this id.
    Call(CallId),
    /// The notification has this id.
    Notification(NotificationId),
}

/// Identifies a tracked notification of a client. Never reused within an engine.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct NotificationId(pub u64);

/// A request that a server runs. Never reused within an engine, and not the id on the wire.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct RequestKey(pub u64);

/// A question of a server to the application of a client. Never reused within an engine.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct InputKey(pub u64);

/// The right to answer one question of the server, once.
#[derive(PartialEq, Eq, Debug)]
#[must_use = "a question that is never answered holds its call until the total time limit"]
pub struct InputToken(InputKey);

impl InputToken {
    pub(crate) const fn new(key: InputKey) -> Self {
        Self(key)
    }

    /// The key that names the question in an [`Input`].
    pub const fn key(&self) -> InputKey {
        self.0
    }
}

/// A challenge that waits for credentials. Never reused within an engine.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct AuthKey(pub u64);

/// The right to answer one challenge, once.
#[derive(PartialEq, Eq, Debug)]
#[must_use = "a challenge that is never answered holds its requests until their total time limit"]
pub struct AuthToken(AuthKey);

impl AuthToken {
    #[cfg(feature = "http")]
    pub(crate) const fn new(key: AuthKey) -> Self {
        Self(key)
    }

    /// The key that names the challenge in an [`Input`].
    pub const fn key(&self) -> AuthKey {
        self.0
    }
}

/// An HTTP request or a connection that waits for its admission. Never reused within an engine.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct AdmitKey(pub u64);

/// The right to decide about one HTTP request or one connection, once.
#[derive(PartialEq, Eq, Debug)]
#[must_use = "what is never decided about is refused when its time is over"]
pub struct AdmitToken {
    key: AdmitKey,
    peer: Peer,
}

impl AdmitToken {
    pub(crate) const fn new(key: AdmitKey, peer: Peer) -> Self {
        Self { key, peer }
    }

    /// The key that names the request or the connection in an [`Input`].
    pub const fn key(&self) -> AdmitKey {
        self.key
    }

    /// Who is at the other end of the connection, as far as that is known. Behind a proxy that is the proxy.
    pub const fn peer(&self) -> &Peer {
        &self.peer
    }
}

/// The decision about an HTTP request, made from its head, or about a connection, made from its peer. A connection that is not accepted is
/// closed unread, since it has no request to answer. Where the text of a challenge is none that a header field can hold, the answer to an
/// HTTP request is 500.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Admission {
    /// It is served, with all requests of a connection, as coming from this principal; `None`: without one.
    Accept(Option<Principal>),
    /// It has no credentials, or they are not valid: 401 with this `WWW-Authenticate` (RFC 9110 section 11.6.1). A document that it points
    /// to (`resource_metadata`, RFC 9728) is for whatever stands before the server to serve: it answers on its one path alone.
    Unauthorized(String),
    /// Its credentials do not suffice: 403, with this `WWW-Authenticate` if another scope would (RFC 6750 section 3.1).
    Forbidden(Option<String>),
}

/// Who a request comes from, as the application names it: a subject and its issuer, an account, a key's owner. Not the credentials
/// themselves, which change: what belongs to a session belongs to the principal that opened it. A name is no secret: `Debug` shows it, also
/// that of a [`Context`](crate::server::Context).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Principal(pub String);

impl Principal {
    /// The name that the application gave.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for Principal {
    fn from(name: &str) -> Self {
        Self(name.into())
    }
}

impl From<String> for Principal {
    fn from(name: String) -> Self {
        Self(name)
    }
}

/// A session of a client of the older revisions over HTTP. Never reused within an engine, and not the id on the wire.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SessionKey(pub u64);

/// What a server can tell all its clients of.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[non_exhaustive]
pub enum Change {
    /// The list of tools is another one (`notifications/tools/list_changed`).
    Tools,
}

/// Why a server wants (other) credentials: a status 401 or 403 and what came with it (RFC 9110 section 11; 2025-11-25 authorization).
#[derive(Clone, PartialEq, Eq, Debug, PartialOrd, Ord)]
#[non_exhaustive]
pub struct Challenge {
    /// 401: there are none, or they are not valid. 403: they do not suffice.
    pub status: u16,
    /// What the response says.
    pub hints: AuthHints,
}

impl Challenge {
    #[cfg(feature = "http")]
    pub(crate) const fn new(status: u16, hints: AuthHints) -> Self {
        Self { status, hints }
    }
}

/// The answer to a [`Challenge`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Authorization {
    /// These fields go with every request from now on, in place of those of an earlier answer; the requests that wait are made once more.
    /// Mostly one: `Authorization`. A field that HTTP or this protocol gives a meaning of its own (`Host`, `Accept`, `Mcp-Session-Id`, …)
    /// and one that is not legal is left out.
    Headers(Headers),
    /// There are no credentials: the requests that wait end with the status.
    Refuse,
}

/// A question of a server to a client: what a handler asks and what an application is asked, in every revision.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum InputRequest {
    /// Ask the user, with a form (`elicitation/create`).
    Elicitation(ElicitRequest),
    /// Ask a language model (`sampling/createMessage`); the params as they are on the wire.
    Sampling(Object),
    /// Ask for the roots (`roots/list`).
    Roots,
}

/// The answer to an [`InputRequest`].
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum InputAnswer {
    /// What the user said.
    Elicitation(ElicitResult),
    /// The result of `sampling/createMessage` as it is on the wire.
    Sampling(Object),
    /// The result of `roots/list` as it is on the wire.
    Roots(Object),
    /// No answer can be given. An older server gets this error; towards a modern one the call fails.
    Error(ErrorObject),
}

impl InputRequest {
    /// The method on the wire.
    pub const fn method(&self) -> &'static str {
        match self {
            Self::Elicitation(_) => "elicitation/create",
            Self::Sampling(_) => "sampling/createMessage",
            Self::Roots => "roots/list",
        }
    }

    /// The name of the client capability that it needs.
    pub const fn capability(&self) -> &'static str {
        match self {
            Self::Elicitation(_) => "elicitation",
            Self::Sampling(_) => "sampling",
            Self::Roots => "roots",
        }
    }

    /// The params on the wire; `roots/list` has none.
    pub fn params(&self) -> Option<Object> {
        match self {
            Self::Elicitation(request) => Some(request.to_object()),
            Self::Sampling(params) => Some(params.clone()),
            Self::Roots => None,
        }
    }

    /// Reads a question from the wire. `Ok(None)`: the method asks nothing of a client.
    ///
    /// # Errors
    /// [`DecodeError`] if the params are not of the method's shape.
    pub fn read(method: &str, params: Option<&RawJson>) -> Result<Option<Self>, DecodeError> {
        let params = || Object::read_opt(params);
        Ok(Some(match method {
            "elicitation/create" => Self::Elicitation(ElicitRequest::read(&params()?)?),
            "sampling/createMessage" => Self::Sampling(params()?),
            "roots/list" => Self::Roots,
            _ => return Ok(None),
        }))
    }

    /// Reads the answer to this question from the wire.
    ///
    /// # Errors
    /// [`DecodeError`] if the result is not of the method's shape.
    pub fn read_answer(&self, result: &RawJson) -> Result<InputAnswer, DecodeError> {
        let result = Object::read(result)?;
        Ok(match self {
            Self::Elicitation(_) => InputAnswer::Elicitation(ElicitResult::read(&result)?),
            Self::Sampling(_) => InputAnswer::Sampling(result),
            Self::Roots => {
                result.array("roots")?;
                InputAnswer::Roots(result)
            }
        })
    }
}

impl InputAnswer {
    /// The result on the wire, or the error.
    ///
    /// # Errors
    /// The error of [`InputAnswer::Error`].
    pub fn to_object(&self) -> Result<Object, ErrorObject> {
        match self {
            Self::Elicitation(result) => Ok(result.to_object()),
            Self::Sampling(result) | Self::Roots(result) => Ok(result.clone()),
            Self::Error(error) => Err(error.clone()),
        }
    }
}

impl InputAnswer {
    /// The roots with these URIs, without names.
    pub fn roots<S: AsRef<str>>(uris: impl IntoIterator<Item = S>) -> Self {
        let roots: Vec<RawJson> = uris.into_iter().map(|uri| Object::new().with("uri", uri.as_ref()).into()).collect();
        Self::Roots(Object::new().with("roots", roots))
    }

    /// The user filled the form in and left the rest as it was: what `content` omits has the default that the form gives it.
    ///
    /// ```
    /// # use mcp_proto::model::elicitation::{ElicitRequest, ElicitResult, Field};
    /// # use mcp_proto::{InputAnswer, Object};
    /// let form = ElicitRequest::form("Ship it?").text("to").field(Field::boolean("express").default_value(false));
    /// let answer = InputAnswer::accept(&form, Object::new().with("to", "Paris"));
    /// let all = Object::new().with("to", "Paris").with("express", false);
    /// assert_eq!(answer, InputAnswer::Elicitation(ElicitResult::Accept(all)));
    /// ```
    pub fn accept(request: &ElicitRequest, content: Object) -> Self {
        Self::Elicitation(ElicitResult::accept(request, content))
    }

    /// The user sent the form off as it was: each field that has a default has it.
    ///
    /// ```
    /// # use mcp_proto::model::elicitation::{ElicitRequest, ElicitResult, Field};
    /// # use mcp_proto::{InputAnswer, Object};
    /// let form = ElicitRequest::form("Which copies?").field(Field::choice("size", ["s", "l"]).default_value("l"));
    /// let answer = InputAnswer::accept_defaults(&form);
    /// assert_eq!(answer, InputAnswer::Elicitation(ElicitResult::Accept(Object::new().with("size", "l"))));
    /// ```
    pub fn accept_defaults(request: &ElicitRequest) -> Self {
        Self::Elicitation(ElicitResult::accept_defaults(request))
    }

    /// No answer can be given for a reason of our own: the callback panicked, or there is none (`-32603`).
    pub fn internal(text: &str) -> Self {
        Self::Error(ErrorObject::new(code::INTERNAL_ERROR, text))
    }
}

/// How a handler's turn ended.
#[derive(Clone, PartialEq, Debug)]
pub enum Outcome {
    /// The result.
    Complete(Object),
    /// The handler needs answers first, and will be entered again with them and with the state.
    NeedInput {
        /// The questions by name; the names come back with the answers. Unique.
        requests: Vec<(String, InputRequest)>,
        /// What the handler wants to remember. On a modern connection it travels through the client, sealed.
        state: Option<RawJson>,
    },
    /// The request failed.
    Error(ErrorObject),
}

impl Outcome {
    /// The handler itself failed: it panicked, or was dropped before it answered (`-32603`).
    pub fn internal(text: &str) -> Self {
        Self::Error(ErrorObject::new(code::INTERNAL_ERROR, text))
    }
}

/// An answer as it will be written: made by [`Responder::write`](crate::server::Responder::write) outside any lock.
#[derive(Clone, PartialEq, Debug)]
pub struct Answer {
    pub(crate) key: RequestKey,
    pub(crate) what: Answered,
}

impl Answer {
    /// The request that it answers.
    pub const fn key(&self) -> RequestKey {
        self.key
    }
}

#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Answered {
    /// The whole message, the code if it is an error, and what the application should hear of it.
    Message { bytes: Bytes, code: Option<i64>, diagnostic: Option<Diagnostic> },
    /// Questions for a client of an older revision, to be sent as requests of our own.
    Ask { questions: Vec<Question>, state: Option<RawJson> },
}

/// A question for a client of an older revision, its params serialised.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Question {
    pub(crate) name: String,
    pub(crate) method: &'static str,
    pub(crate) params: Option<Object>,
}

/// A notification that belongs to one request.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum Note {
    /// How far the request is. Sent only if the request gave a token and the number increases.
    Progress(crate::model::Progress),
    /// A notification of another method. [`Cx::notify`](crate::Cx::notify) lists the methods that the engine refuses.
    Custom(String, Object),
    /// End the event stream of the request for now; the client comes back for the rest after this time, or after
    /// [`ServerConfig::retry`](crate::server::ServerConfig::retry) (2025-11-25 transports, sending messages to the server: a server may
    /// close the connection after an event with an id). So a request that takes long holds no connection. Refused with
    /// [`Refusal::NotWanted`](crate::Refusal::NotWanted) wherever the client could not come back: on every other revision and transport,
    /// and without a session.
    CloseStream(Option<Duration>),
}
