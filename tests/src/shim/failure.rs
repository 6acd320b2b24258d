//! The errors of a client as JSON: a `kind`, and the fields that a row checks.

use bytes::Bytes;
use mcp_proto::CallError;
use mcp_proto::adapter::ConnectError;
use mcp_proto::error::{
    Awaited, HttpError, NegotiationCause, NegotiationError, Refusal, Stage, StartFailure, StreamEnd,
};
use mcp_proto::exchange::{Closed, Sent};
use mcp_proto::rpc::{DecodeError, EncodeError, ErrorObject, Id};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// A failed call. The variants are those of [`CallError`]. Times are in milliseconds.
#[derive(Serialize, Deserialize, Debug)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum CallFailure {
    /// The server responded with this error.
    Rpc { error: ErrorObject },
    /// No response arrived in time.
    Timeout { after_ms: u64, sent: Reach, awaited: Wait },
    /// The application cancelled it.
    Cancelled { reason: Option<String> },
    /// The connection ended first.
    Closed { sent: Reach, why: Closed },
    /// The response ended without a message.
    NoResponse { request: RequestId, attempts: u32, any_message: bool, cause: End },
    /// An HTTP status of failure.
    Http(HttpFailure),
    /// Neither JSON nor an event stream.
    ContentType { status: u16, content_type: Option<String> },
    /// The session ended.
    SessionEnded,
    /// The result cannot be decoded.
    Decode { text: String },
    /// Negotiation failed.
    Negotiation(Box<NegotiationFailure>),
    /// The server requested input in vain.
    Input { error: ErrorObject },
    /// Too many rounds of input.
    TooManyRounds { rounds: u32 },
    /// Too many pages.
    TooManyPages { pages: usize },
    /// The engine refused it: `full`, `closed` and so on.
    Refused { why: Refused },
    /// A message hook refused it.
    Denied { sent: Reach, reason: String },
    /// Any other error. No row expects it.
    Other { text: String },
}

/// A failed connection. The variants are those of [`ConnectError`].
#[derive(Serialize, Deserialize, Debug)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum ConnectFailure {
    /// Negotiation failed.
    Negotiation(Box<NegotiationFailure>),
    /// The connection ended.
    Closed { why: Closed },
    /// The operating system lacks a resource.
    System { text: String },
    /// No thread can be started.
    Thread { text: String },
    /// Any other error. No row expects it.
    Other { text: String },
}

/// Whether a request can have reached the server.
#[derive(Serialize, Deserialize, Clone, Copy, Debug)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Reach {
    No,
    Maybe,
}

/// What a call waited for.
#[derive(Serialize, Deserialize, Clone, Copy, Debug)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Wait {
    Start,
    Connection,
    Response,
}

/// Why the engine refused a command.
#[derive(Serialize, Deserialize, Clone, Copy, Debug)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Refused {
    Full,
    Closed,
    Gone,
    NotWanted,
    NotIncreasing,
    NotReopenable,
    Unencodable,
}

/// The id of a request.
#[derive(Serialize, Deserialize, Debug)]
#[serde(untagged)]
pub(crate) enum RequestId {
    Int(i64),
    Text(String),
}

/// How a stream ended.
#[derive(Serialize, Deserialize, Debug)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum End {
    Ended,
    Closed { why: Closed },
    Status { status: u16 },
    ContentType { content_type: Option<String> },
    Error { error: ErrorObject },
    Idle,
}

/// An HTTP status of failure.
#[derive(Serialize, Deserialize, Debug)]
pub(crate) struct HttpFailure {
    status: u16,
    error: Option<ErrorObject>,
    www_authenticate: Vec<String>,
    auth_server: Option<String>,
    location: Option<String>,
    retry_after_ms: Option<u64>,
    /// As text: what is not UTF-8 is replaced.
    body_head: String,
}

/// A failed negotiation.
#[derive(Serialize, Deserialize, Debug)]
pub(crate) struct NegotiationFailure {
    stage: Step,
    cause: Cause,
    after_ms: u64,
    /// The step, and the end of the first process, if the server was started twice.
    first: Option<(Step, Closed)>,
}

/// A step of negotiation.
#[derive(Serialize, Deserialize, Clone, Copy, Debug)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Step {
    Connect,
    Discover,
    Initialize,
}

/// The cause of a failed negotiation.
#[derive(Serialize, Deserialize, Debug)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum Cause {
    Rpc { error: ErrorObject },
    Http(HttpFailure),
    Decode { text: String },
    Timeout { limit_ms: u64 },
    StartTimeout { limit_ms: u64 },
    Closed { why: Closed },
    NoMutualVersion { versions: Vec<String> },
    Denied { reason: String },
    Other { text: String },
}

fn ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// An error without a counterpart.
fn unknown(text: &str) -> String {
    format!("an error of an unknown kind: {text}")
}

impl From<&CallError> for CallFailure {
    fn from(error: &CallError) -> Self {
        match error {
            CallError::Rpc(error) => Self::Rpc { error: error.clone() },
            CallError::Timeout { after, sent, awaited } => {
                Self::Timeout { after_ms: ms(*after), sent: (*sent).into(), awaited: (*awaited).into() }
            }
            CallError::Cancelled { reason } => Self::Cancelled { reason: reason.clone() },
            CallError::Closed { sent, why } => Self::Closed { sent: (*sent).into(), why: why.clone() },
            CallError::NoResponse { id, attempts, any_message, cause } => Self::NoResponse {
                request: id.into(),
                attempts: *attempts,
                any_message: *any_message,
                cause: cause.into(),
            },
            CallError::Http(error) => Self::Http((&**error).into()),
            CallError::ContentType { status, content_type } => {
                Self::ContentType { status: *status, content_type: content_type.clone() }
            }
            CallError::SessionEnded => Self::SessionEnded,
            CallError::Decode(error) => Self::Decode { text: error.to_string() },
            CallError::Negotiation(error) => Self::Negotiation(Box::new(error.into())),
            CallError::Input(error) => Self::Input { error: error.clone() },
            CallError::TooManyRounds(rounds) => Self::TooManyRounds { rounds: *rounds },
            CallError::TooManyPages(pages) => Self::TooManyPages { pages: *pages },
            CallError::Refused(why) => why.into(),
            CallError::Denied { sent, reason } => Self::Denied { sent: (*sent).into(), reason: reason.clone() },
            other => Self::Other { text: other.to_string() },
        }
    }
}

impl CallFailure {
    /// Returns the error of the call.
    ///
    /// # Errors
    /// The text of an error that has no form.
    pub(crate) fn error(self) -> Result<CallError, String> {
        Ok(match self {
            Self::Rpc { error } => CallError::Rpc(error),
            Self::Timeout { after_ms, sent, awaited } => CallError::Timeout {
                after: Duration::from_millis(after_ms),
                sent: sent.into(),
                awaited: match awaited {
                    Wait::Start => Awaited::Start,
                    Wait::Connection => Awaited::Connection,
                    Wait::Response => Awaited::Response,
                },
            },
            Self::Cancelled { reason } => CallError::Cancelled { reason },
            Self::Closed { sent, why } => CallError::Closed { sent: sent.into(), why },
            Self::NoResponse { request, attempts, any_message, cause } => {
                CallError::NoResponse { id: request.into(), attempts, any_message, cause: cause.into() }
            }
            Self::Http(error) => CallError::Http(Box::new(error.into())),
            Self::ContentType { status, content_type } => CallError::ContentType { status, content_type },
            Self::SessionEnded => CallError::SessionEnded,
            Self::Decode { text } => CallError::Decode(DecodeError::new(text)),
            Self::Negotiation(error) => CallError::Negotiation(error.error()?),
            Self::Input { error } => CallError::Input(error),
            Self::TooManyRounds { rounds } => CallError::TooManyRounds(rounds),
            Self::TooManyPages { pages } => CallError::TooManyPages(pages),
            Self::Refused { why } => CallError::Refused(why.refusal()),
            Self::Denied { sent, reason } => CallError::Denied { sent: sent.into(), reason },
            Self::Other { text } => return Err(unknown(&text)),
        })
    }
}

impl From<&ConnectError> for ConnectFailure {
    fn from(error: &ConnectError) -> Self {
        match error {
            ConnectError::Negotiation(error) => Self::Negotiation(Box::new(error.into())),
            ConnectError::Closed(why) => Self::Closed { why: why.clone() },
            ConnectError::System(text) => Self::System { text: text.clone() },
            ConnectError::Thread(text) => Self::Thread { text: text.clone() },
            other => Self::Other { text: other.to_string() },
        }
    }
}

impl ConnectFailure {
    /// Returns the error of the connection.
    ///
    /// # Errors
    /// The text of an error that has no form.
    pub(crate) fn error(self) -> Result<ConnectError, String> {
        Ok(match self {
            Self::Negotiation(error) => ConnectError::Negotiation(error.error()?),
            Self::Closed { why } => ConnectError::Closed(why),
            Self::System { text } => ConnectError::System(text),
            Self::Thread { text } => ConnectError::Thread(text),
            Self::Other { text } => return Err(unknown(&text)),
        })
    }
}

impl From<&Refusal> for CallFailure {
    fn from(why: &Refusal) -> Self {
        let why = match why {
            Refusal::Full => Refused::Full,
            Refusal::Closed => Refused::Closed,
            Refusal::Gone => Refused::Gone,
            Refusal::NotWanted => Refused::NotWanted,
            Refusal::NotIncreasing => Refused::NotIncreasing,
            Refusal::NotReopenable => Refused::NotReopenable,
            Refusal::Unencodable(_) => Refused::Unencodable,
            other => return Self::Other { text: other.to_string() },
        };
        Self::Refused { why }
    }
}

impl Refused {
    /// Returns the refusal.
    pub(crate) fn refusal(self) -> Refusal {
        match self {
            Self::Full => Refusal::Full,
            Self::Closed => Refusal::Closed,
            Self::Gone => Refusal::Gone,
            Self::NotWanted => Refusal::NotWanted,
            Self::NotIncreasing => Refusal::NotIncreasing,
            Self::NotReopenable => Refusal::NotReopenable,
            Self::Unencodable => Refusal::Unencodable(EncodeError::new("as the shim says")),
        }
    }
}

impl From<Sent> for Reach {
    fn from(sent: Sent) -> Self {
        if sent == Sent::No { Self::No } else { Self::Maybe }
    }
}

impl From<Reach> for Sent {
    fn from(sent: Reach) -> Self {
        match sent {
            Reach::No => Self::No,
            Reach::Maybe => Self::Maybe,
        }
    }
}

impl From<Awaited> for Wait {
    fn from(awaited: Awaited) -> Self {
        match awaited {
            Awaited::Start => Self::Start,
            Awaited::Connection => Self::Connection,
            _ => Self::Response,
        }
    }
}

impl From<&Id> for RequestId {
    fn from(id: &Id) -> Self {
        match id {
            Id::Int(number) => Self::Int(*number),
            Id::Text(text) => Self::Text(text.clone()),
        }
    }
}

impl From<RequestId> for Id {
    fn from(id: RequestId) -> Self {
        match id {
            RequestId::Int(number) => Self::Int(number),
            RequestId::Text(text) => Self::Text(text),
        }
    }
}

impl From<&StreamEnd> for End {
    fn from(end: &StreamEnd) -> Self {
        match end {
            StreamEnd::Closed(why) => Self::Closed { why: why.clone() },
            StreamEnd::Status(status) => Self::Status { status: *status },
            StreamEnd::ContentType(kind) => Self::ContentType { content_type: kind.clone() },
            StreamEnd::Error(error) => Self::Error { error: error.clone() },
            StreamEnd::Idle => Self::Idle,
            _ => Self::Ended,
        }
    }
}

impl From<End> for StreamEnd {
    fn from(end: End) -> Self {
        match end {
            End::Ended => Self::Ended,
            End::Closed { why } => Self::Closed(why),
            End::Status { status } => Self::Status(status),
            End::ContentType { content_type } => Self::ContentType(content_type),
            End::Error { error } => Self::Error(error),
            End::Idle => Self::Idle,
        }
    }
}

impl From<&HttpError> for HttpFailure {
    fn from(error: &HttpError) -> Self {
        Self {
            status: error.status,
            error: error.error.clone(),
            www_authenticate: error.auth.www_authenticate.clone(),
            auth_server: error.auth.auth_server.clone(),
            location: error.location.clone(),
            retry_after_ms: error.retry_after.map(ms),
            body_head: String::from_utf8_lossy(&error.body_head).into_owned(),
        }
    }
}

impl From<HttpFailure> for HttpError {
    fn from(failure: HttpFailure) -> Self {
        let mut error = Self::new(failure.status);
        error.error = failure.error;
        error.auth.www_authenticate = failure.www_authenticate;
        error.auth.auth_server = failure.auth_server;
        error.location = failure.location;
        error.retry_after = failure.retry_after_ms.map(Duration::from_millis);
        error.body_head = Bytes::from(failure.body_head);
        error
    }
}

impl From<Stage> for Step {
    fn from(stage: Stage) -> Self {
        match stage {
            Stage::Connect => Self::Connect,
            Stage::Discover => Self::Discover,
            Stage::Initialize => Self::Initialize,
        }
    }
}

impl From<Step> for Stage {
    fn from(step: Step) -> Self {
        match step {
            Step::Connect => Self::Connect,
            Step::Discover => Self::Discover,
            Step::Initialize => Self::Initialize,
        }
    }
}

impl From<&NegotiationError> for NegotiationFailure {
    fn from(error: &NegotiationError) -> Self {
        let cause = match &error.cause {
            NegotiationCause::Rpc(error) => Cause::Rpc { error: error.clone() },
            NegotiationCause::Http(error) => Cause::Http((&**error).into()),
            NegotiationCause::Decode(error) => Cause::Decode { text: error.to_string() },
            NegotiationCause::Timeout(limit) => Cause::Timeout { limit_ms: ms(*limit) },
            NegotiationCause::StartTimeout(limit) => Cause::StartTimeout { limit_ms: ms(*limit) },
            NegotiationCause::Closed(why) => Cause::Closed { why: why.clone() },
            NegotiationCause::NoMutualVersion(versions) => Cause::NoMutualVersion { versions: versions.clone() },
            NegotiationCause::Denied(reason) => Cause::Denied { reason: reason.clone() },
            other => Cause::Other { text: other.to_string() },
        };
        let first = error.first.as_ref().map(|first| (first.stage.into(), first.why.clone()));
        Self { stage: error.stage.into(), cause, after_ms: ms(error.after), first }
    }
}

impl NegotiationFailure {
    fn error(self) -> Result<NegotiationError, String> {
        let cause = match self.cause {
            Cause::Rpc { error } => NegotiationCause::Rpc(error),
            Cause::Http(error) => NegotiationCause::Http(Box::new(error.into())),
            Cause::Decode { text } => NegotiationCause::Decode(DecodeError::new(text)),
            Cause::Timeout { limit_ms } => NegotiationCause::Timeout(Duration::from_millis(limit_ms)),
            Cause::StartTimeout { limit_ms } => NegotiationCause::StartTimeout(Duration::from_millis(limit_ms)),
            Cause::Closed { why } => NegotiationCause::Closed(why),
            Cause::NoMutualVersion { versions } => NegotiationCause::NoMutualVersion(versions),
            Cause::Denied { reason } => NegotiationCause::Denied(reason),
            Cause::Other { text } => return Err(unknown(&text)),
        };
        let first = self.first.map(|(stage, why)| Box::new(StartFailure { stage: stage.into(), why }));
        Ok(NegotiationError { stage: self.stage.into(), cause, after: Duration::from_millis(self.after_ms), first })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mcp_proto::exchange::ExitStatus;

    fn http() -> Box<HttpError> {
        let mut error = HttpError::new(401);
        error.error = Some(ErrorObject::new(-32600, "who is it?"));
        error.auth.www_authenticate.push("Bearer".into());
        error.location = Some("http://127.0.0.1/".into());
        error.retry_after = Some(Duration::from_secs(1));
        error.body_head = Bytes::from_static(b"no");
        Box::new(error)
    }

    fn negotiation(cause: NegotiationCause) -> NegotiationError {
        let first = StartFailure { stage: Stage::Discover, why: Closed::Exited(ExitStatus::exited(1)) };
        let after = Duration::from_millis(20);
        NegotiationError { stage: Stage::Initialize, cause, after, first: Some(Box::new(first)) }
    }

    /// Returns what the reader of a line gets.
    fn read<T: Serialize + for<'a> Deserialize<'a>>(failure: &T) -> T {
        serde_json::from_str(&serde_json::to_string(failure).expect("it has a form")).expect("it is read")
    }

    #[test]
    fn failed_calls_keep_their_fields() {
        let rpc = ErrorObject::new(-32602, "no such tool").with_data(true.into());
        let late = Duration::from_millis(300);
        let errors = [
            CallError::Rpc(rpc.clone()),
            CallError::Timeout { after: late, sent: Sent::No, awaited: Awaited::Connection },
            CallError::Cancelled { reason: Some("enough".into()) },
            CallError::Closed { sent: Sent::Maybe, why: Closed::Broken("no head".into()) },
            CallError::NoResponse { id: Id::Int(3), attempts: 2, any_message: true, cause: StreamEnd::Status(500) },
            CallError::Http(http()),
            CallError::ContentType { status: 200, content_type: None },
            CallError::SessionEnded,
            CallError::Decode(DecodeError::new("no object")),
            CallError::Negotiation(negotiation(NegotiationCause::Timeout(late))),
            CallError::Input(rpc),
            CallError::TooManyRounds(10),
            CallError::TooManyPages(1000),
            CallError::Refused(Refusal::Full),
            CallError::Denied { sent: Sent::Maybe, reason: "secret".into() },
        ];
        for error in errors {
            assert_eq!(read(&CallFailure::from(&error)).error(), Ok(error));
        }
    }

    #[test]
    fn failed_connections_keep_their_fields() {
        let causes = [
            NegotiationCause::Rpc(ErrorObject::new(-32600, "no")),
            NegotiationCause::Http(http()),
            NegotiationCause::Decode(DecodeError::new("no object")),
            NegotiationCause::StartTimeout(Duration::from_secs(60)),
            NegotiationCause::Closed(Closed::Exited(ExitStatus::killed(9).with_stderr("why"))),
            NegotiationCause::NoMutualVersion(vec!["2020-01-01".into()]),
            NegotiationCause::Denied("secret".into()),
        ];
        let others = [ConnectError::Closed(Closed::Refused), ConnectError::System("no pipe".into())];
        for error in causes.map(|cause| ConnectError::Negotiation(negotiation(cause))).into_iter().chain(others) {
            assert_eq!(read(&ConnectFailure::from(&error)).error(), Ok(error));
        }
    }

    #[test]
    fn error_without_a_form_is_reported() {
        let error = CallError::Refused(Refusal::Unencodable(EncodeError::new("x")));
        assert!(CallFailure::from(&error).error().is_ok());
        let other = CallFailure::Other { text: "a new kind".into() };
        assert_eq!(other.error(), Err("an error of an unknown kind: a new kind".into()));
    }
}
