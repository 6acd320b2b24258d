//! The vocabulary between the engines and the bytes (seam B), and between the connections and the driver (seam A).
//! Types only: no state, no clock, no codec.
#![cfg_attr(feature = "http", doc = include_str!("exchange/seam_b.md"))]

mod peer;
mod program;

pub use peer::{Credentials, Peer, PeerKind};
pub use program::{Group, Inherit, Program};

use crate::peer_text::Visible;
use crate::redact::{Field, Side, Url};
use crate::rpc::{Document, Id, InvalidMessage, Message};
use alloc::string::String;
use alloc::vec::Vec;
use bytes::Bytes;
use core::fmt;
use core::time::Duration;

/// One exchange: a duplex channel for as long as it lives, or one HTTP request with its response. Never reused within an engine.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ExchangeId(pub u64);

impl ExchangeId {
    /// The bits that count exchanges within a connection.
    const SEQUENCE_BITS: u32 = 24;

    /// The last sequence number of a connection; it accepts no exchange after it, so that no id is used twice.
    pub(crate) const MAX_SEQUENCE: u64 = (1 << Self::SEQUENCE_BITS) - 1;

    /// The `sequence`-th exchange that the connection `connection` accepted.
    pub const fn accepted(connection: u64, sequence: u64) -> Self {
        Self(connection << Self::SEQUENCE_BITS | sequence & Self::MAX_SEQUENCE)
    }

    /// The connection that accepted this exchange. Only meaningful for an exchange that a [`Connection`](crate::wired::Connection) minted.
    pub const fn connection(self) -> u64 {
        self.0 >> Self::SEQUENCE_BITS
    }
}

/// One channel: a socket, a pipe pair, or a process. Never reused within an engine.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ConnectionId(pub u64);

/// What the other side said, in the order in which it said it.
#[derive(Clone, PartialEq, Debug)]
pub enum Inbound {
    /// A message: a line of a duplex exchange, or the whole body of an HTTP one.
    Message(Message),
    /// An array of messages. It stays one item, since a binding answers it as a whole.
    Batch(Vec<Result<Message, InvalidMessage>>),
    /// Bytes where a message should be.
    Invalid(InvalidMessage),
    /// The head of an HTTP request; begins an exchange of a server.
    Request(RequestHead),
    /// The head of an HTTP response.
    Response(ResponseHead),
    /// Bytes of a body that is neither JSON nor an event stream.
    Body(Bytes),
    /// A server-sent event.
    Event(SseEvent),
    /// A comment line of an event stream, told when it has ended. Its text means nothing and is not kept (WHATWG HTML section 9.2.6): it
    /// shows only that the other side lives. Never between the pieces of anything else, and it changes no event around it.
    Comment,
    /// The side has said all it will say.
    End,
    /// A server got a request that it cannot serve for reasons of HTTP; it answers with the status and closes.
    Reject(BadRequest),
}

impl From<Result<Document, InvalidMessage>> for Inbound {
    fn from(read: Result<Document, InvalidMessage>) -> Self {
        match read {
            Ok(Document::Message(message)) => Self::Message(message),
            Ok(Document::Batch(elements)) => Self::Batch(elements),
            Err(defect) => Self::Invalid(defect),
        }
    }
}

/// What we say, in the order in which it is to be written.
#[derive(Clone, PartialEq, Debug)]
pub enum Outbound {
    /// A message of a duplex exchange, without a newline.
    Message(Bytes),
    /// The request of an HTTP exchange; a client's connection gets it first and alone.
    Request {
        /// Its head; `Content-Length` and `Host` are added by the codec.
        head: RequestHead,
        /// Its body.
        body: Bytes,
    },
    /// The response of an HTTP exchange, whole or its head.
    Response {
        /// Its head; the length or the coding is added by the codec.
        head: ResponseHead,
        /// The body, or that events follow.
        body: Body,
    },
    /// A server-sent event on a response that streams.
    Event {
        /// The event's id.
        id: Option<String>,
        /// The reconnection time it announces.
        retry: Option<Duration>,
        /// Its data, without CR and LF; may be empty.
        data: Bytes,
    },
    /// A comment of this text on a response that streams, to keep it alive. It may be empty.
    Comment(String),
    /// Read on: the body of an HTTP request is wanted (RFC 9110 section 10.1.1), or a duplex exchange is admitted. A server sends it for
    /// what the application has admitted, see [`ServerConfig::admit`](crate::server::ServerConfig::admit); until then a connection reads no further.
    Continue,
    /// We have said all.
    End,
}

/// The body of a response.
#[derive(Clone, PartialEq, Debug)]
pub enum Body {
    /// All of it; nothing follows.
    Full(Bytes),
    /// Events follow, then [`Outbound::End`].
    Stream,
}

/// What became of an exchange. After `Failed` nothing more is said of it.
#[derive(Clone, PartialEq, Debug)]
pub enum ExchangeEvent {
    /// A duplex exchange is open; on a server, this begins it. Reported to a client for an HTTP exchange: the request has a connection, and
    /// its bytes may reach the server from now on. A driver that reported [`Waiting`](Self::Waiting) reports this before the first write.
    Opened(Peer),
    /// Reported to a client for an HTTP exchange: the request waits for a connection, and the driver has written no byte of it. Optional. A
    /// request that the client aborts while it waits was not sent ([`Sent::No`]). Without this report the client assumes that it may have been.
    Waiting,
    /// HTTP: who sends the request that follows. Told to a server directly before the [`Inbound::Request`] of the exchange, since only the
    /// latest is remembered, and left out where nothing is known of the peer.
    From(Peer),
    /// The other side said something.
    Inbound(Inbound),
    /// So many bytes of what we said are not written yet.
    Unsent(usize),
    /// HTTP, client only: the driver sends the request a second time, since its first connection turned out to be dead (see
    /// [`Start::Http`]). The server may have read it there. Reported before anything of the second attempt; never for a request that is not
    /// `repeatable`.
    Repeated,
    /// A [`MessageHook`](crate::hook::MessageHook) refused a message of the engine on a duplex exchange, which the driver did not write. The
    /// exchange continues. Reported before the next [`Unsent`](Self::Unsent).
    Unsendable {
        /// The id of the request, if it was one: it gets no response.
        id: Option<Id>,
        /// Why it was refused.
        reason: String,
    },
    /// HTTP, server only: the client closed its sending side after its whole request, before the response was complete. On 2026-07-28 this is
    /// a disconnect: the engine cancels the request and aborts the exchange. A request of an older revision continues and gets its response;
    /// a stream that responds to no request is aborted. A driver that cannot distinguish this from a closed connection reports `Failed`.
    ReadClosed,
    /// The exchange was cut, or never began.
    Failed {
        /// Whether anything of it can have reached the other side.
        sent: Sent,
        /// How it ended.
        why: Closed,
    },
}

/// How an exchange of a client begins.
#[derive(Clone, PartialEq, Debug)]
pub enum Start {
    /// Messages both ways.
    Duplex(Endpoint),
    /// One HTTP request and its response.
    Http {
        /// Where to.
        origin: Origin,
        /// The head.
        head: RequestHead,
        /// The body.
        body: Bytes,
        /// Whether the driver may send the request again, on another connection, if a reused one turns out to be dead before any response.
        /// The driver first reports [`ExchangeEvent::Repeated`]: a refusal of the second attempt does not prove that the first did not run.
        repeatable: bool,
        /// Whether the driver opens a connection for it beyond the maximum, since other requests depend on it: a response to a request of the
        /// server, `notifications/cancelled`, and the DELETE of a session.
        urgent: bool,
    },
}

/// Whether anything of an exchange or a request can have reached the other side.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sent {
    /// Certainly not: repeating it is safe.
    No,
    /// Some or all of it may have arrived.
    Maybe,
}

/// Where a channel leads.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Endpoint {
    /// A child process, spoken to over its standard input and output.
    Program(Program),
    /// A TCP connection, perhaps with TLS.
    Origin(Origin),
    /// A Unix domain socket.
    Unix(String),
    /// A channel that the driver already holds. It cannot be opened a second time.
    Given,
}

/// The path of a Unix domain socket, as something to connect to or to serve at.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnixSocket(pub String);

/// Scheme, host and port of a URL.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Origin {
    /// Whether the scheme is `https`.
    pub tls: bool,
    /// The host: a name, an IPv4 address, or an IPv6 address without its brackets.
    pub host: String,
    /// The port.
    pub port: u16,
}

/// How to end a channel. A program: close its input, `SIGTERM` to its group, `SIGKILL` to it. A socket: half-close, nothing, reset.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shutdown {
    /// We have nothing more to write, once what was handed over is written.
    WriteHalf,
    /// Ask it to end.
    Terminate,
    /// End it now; what was not written is dropped. The driver reports [`Closed`] soon after.
    Abort,
}

/// How a channel or an exchange ended. Its `Display` has [escapes](crate::error#text-of-a-peer).
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Closed {
    /// The other side ended it in order.
    Eof,
    /// It was cut.
    Reset,
    /// Nobody listens there.
    Refused,
    /// The name has no address.
    Unresolved,
    /// There is no way to it, or the program could not be started; the text is the operating system's.
    Unreachable(String),
    /// The program ended.
    Exited(ExitStatus),
    /// We ended it.
    Aborted,
    /// It took too long.
    Timeout,
    /// The other side broke the framing, so that nothing more can be understood; the text says how.
    Broken(String),
    /// It never began: a [`MessageHook`](crate::hook::MessageHook) refused its message, for this reason.
    Denied(String),
}

impl fmt::Display for Closed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Eof => f.write_str("the other side ended the connection"),
            Self::Reset => f.write_str("the connection was reset"),
            Self::Refused => f.write_str("the connection was refused"),
            Self::Unresolved => f.write_str("the host name has no address"),
            Self::Unreachable(why) => write!(f, "unreachable: {}", Visible(why)),
            Self::Exited(status) => status.fmt(f),
            Self::Aborted => f.write_str("the connection was closed by this side"),
            Self::Timeout => f.write_str("the connection took too long"),
            Self::Broken(how) => write!(f, "the framing is broken: {}", Visible(how)),
            Self::Denied(reason) => write!(f, "refused by the message hook: {}", Visible(reason)),
        }
    }
}

impl core::error::Error for Closed {}

/// How a program ended: an exit code, or the signal that killed it. Its `Display` shows the last line of [`stderr`](Self::stderr) with
/// [escapes](crate::error#text-of-a-peer).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct ExitStatus {
    /// The exit code, if it exited.
    pub code: Option<i32>,
    /// The signal, if one killed it.
    pub signal: Option<i32>,
    /// The end of what it wrote to standard error, if the driver reads that; else empty. At most
    /// [`STDERR_TAIL`](Self::STDERR_TAIL) bytes. Not redacted: a program may write secrets there.
    pub stderr: String,
}

impl ExitStatus {
    /// The most that is kept of standard error, in bytes.
    pub const STDERR_TAIL: usize = 4 << 10;

    /// It exited with this code.
    pub fn exited(code: i32) -> Self {
        Self { code: Some(code), ..Self::default() }
    }

    /// This signal killed it.
    pub fn killed(signal: i32) -> Self {
        Self { signal: Some(signal), ..Self::default() }
    }

    /// The last line that it wrote to standard error, usually its reason to exit.
    pub(crate) fn last_words(&self) -> Option<&str> {
        self.stderr.trim_end().lines().next_back().map(str::trim)
    }

    /// With the end of what it wrote to standard error.
    #[must_use]
    pub fn with_stderr(mut self, tail: impl Into<String>) -> Self {
        self.stderr = tail.into();
        self
    }
}

impl fmt::Display for ExitStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.code, self.signal) {
            (Some(code), _) => write!(f, "the program exited with code {code}")?,
            (None, Some(signal)) => write!(f, "the program was killed by signal {signal}")?,
            (None, None) => f.write_str("the program ended")?,
        }
        self.last_words().map_or(Ok(()), |last| write!(f, "; its last words: {}", Visible(last)))
    }
}

/// Header fields in their order. Names compare without case (RFC 9110 section 5.1).
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Headers(Vec<(String, String)>);

impl Headers {
    /// No fields.
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Adds a field.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        self.push(name, value);
        self
    }

    /// Adds a field.
    pub fn push(&mut self, name: &str, value: impl Into<String>) {
        self.0.push((name.into(), value.into()));
    }

    /// The value of the first field of that name.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, v)| v.as_str())
    }

    /// The values of all fields of that name.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, v)| v.as_str())
    }

    /// Bytes that they hold on the heap.
    pub(crate) fn heap_size(&self) -> usize {
        let texts: usize = self.0.iter().map(|(name, value)| name.capacity() + value.capacity()).sum();
        self.0.capacity() * size_of::<(String, String)>() + texts
    }

    /// All fields.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(n, v)| (n.as_str(), v.as_str()))
    }
}

impl fmt::Debug for Headers {
    /// Shows the values of fields that a client writes itself: no other field is known to hold no credential.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Shown(self, Side::Request).fmt(f)
    }
}

/// Fields as `Debug` shows those of one side.
struct Shown<'a>(&'a Headers, Side);

impl fmt::Debug for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(headers, side) = *self;
        f.debug_map().entries(headers.iter().map(|(name, value)| (name, Field { name, value, side }))).finish()
    }
}

/// A token (RFC 9110 section 5.6.2): all that the name of a method or a field, or a part of one, may be.
pub(crate) fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

/// The head of an HTTP request.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct RequestHead {
    /// The method, as written.
    pub method: String,
    /// The request target. A client writes it unchanged. On a server it is the path and the query as received, also for a target in absolute
    /// form (RFC 9112 section 3.2.2), whose host equals the `Host` field; or `*`, for `OPTIONS` only. Never empty; visible ASCII without `#`;
    /// at most [`FrameLimits::max_target`](crate::limits::FrameLimits::max_target) bytes as received.
    pub target: String,
    /// The fields.
    pub headers: Headers,
}

impl fmt::Debug for RequestHead {
    /// Shows no credential, neither in the fields nor in the query.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestHead")
            .field("method", &self.method)
            .field("target", &Url(&self.target))
            .field("headers", &self.headers)
            .finish()
    }
}

/// The head of an HTTP response.
#[derive(Clone, PartialEq, Eq)]
pub struct ResponseHead {
    /// The status code.
    pub status: u16,
    /// The fields.
    pub headers: Headers,
}

impl fmt::Debug for ResponseHead {
    /// Shows the values of standard fields that hold no credential.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let headers = Shown(&self.headers, Side::Response);
        f.debug_struct("ResponseHead").field("status", &self.status).field("headers", &headers).finish()
    }
}

/// One server-sent event (WHATWG HTML section 9.2).
#[derive(Clone, PartialEq, Debug)]
pub struct SseEvent {
    /// Its `id` field, if it had one.
    pub id: Option<String>,
    /// Its `retry` field, if it had one.
    pub retry: Option<Duration>,
    /// Its data.
    pub data: Data,
}

/// The data of an event.
#[derive(Clone, PartialEq, Debug)]
pub enum Data {
    /// Absent or empty.
    None,
    /// A message.
    Message(Message),
    /// An array of messages, which revision 2025-03-26 has.
    Batch(Vec<Result<Message, InvalidMessage>>),
    /// Not a message, though the event is of the type `message`.
    Bad(InvalidMessage),
    /// An event of another type.
    Other {
        /// The type.
        event: String,
        /// The data as it stood.
        data: Bytes,
    },
}

impl From<Result<Document, InvalidMessage>> for Data {
    fn from(read: Result<Document, InvalidMessage>) -> Self {
        match read {
            Ok(Document::Message(message)) => Self::Message(message),
            Ok(Document::Batch(elements)) => Self::Batch(elements),
            Err(defect) => Self::Bad(defect),
        }
    }
}

/// A request that HTTP forbids to serve.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BadRequest {
    /// The status to answer.
    pub status: u16,
    /// Why, for people.
    pub why: &'static str,
}

/// What a driver does next (seam A). Each names its channel; all come out of one queue, in order.
#[derive(Clone, PartialEq, Debug)]
#[must_use]
pub enum Action<E> {
    /// Open a channel to this endpoint, then report [`opened`](crate::wired::WiredClient::opened) or
    /// [`closed`](crate::wired::WiredClient::closed). Emitted once for a channel.
    Open(ConnectionId, Endpoint),
    /// Write these bytes after those of earlier writes. Never before the channel is open.
    Write(ConnectionId, Bytes),
    /// End the channel in this way. May come more than once, each time harder.
    Close(ConnectionId, Shutdown),
    /// Something for the application.
    Event(E),
}
