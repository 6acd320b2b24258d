//! The types of the two seams. Seam A lies between connections and the driver, which does their
//! I/O: bytes. Seam B lies between an engine and its exchanges, which connections or an HTTP
//! library carry: messages and parts. No state, no clock, no codec.
#![cfg_attr(feature = "http", doc = include_str!("exchange/seam_b.md"))]

mod auth;
mod closed;
mod dialect;
mod field;
mod headers;
mod peer;
mod program;
mod proxy;
mod reach;
mod tls;
mod upgrade;

pub use auth::{AuthError, Problem, TriedUrl, UrlFault};
pub use closed::Closed;
pub use dialect::{Dialect, WsDialect};
pub(crate) use field::{is_clean, is_token, members, trim_blanks};
pub use headers::Headers;
pub use peer::{Credentials, Peer, PeerKind, UnixSocket};
pub use program::{Group, Inherit, Program};
pub use proxy::{ProxyFailure, ProxyFailureKind};
pub use reach::Reach;
pub use tls::{TlsFailure, TlsFailureKind};
pub use upgrade::{RedirectRefusal, UpgradeRefusal};

use crate::peer_text::Visible;
use crate::redact::{HeaderField, Side, Url};
use crate::rpc::{Document, Id, InvalidMessage, Message};
use alloc::borrow::Cow;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use bytes::Bytes;
use core::fmt;
use core::time::Duration;

/// Identifies an exchange: a duplex connection for as long as it lives, or one HTTP request and its
/// response. An engine never reuses an id.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ExchangeId(pub u64);

impl ExchangeId {
    /// Bits of the id that count the exchanges of a connection.
    const SEQUENCE_BITS: u32 = 24;

    /// The last sequence number of a connection. The connection accepts no exchange after it, so
    /// that no id is used twice.
    pub(crate) const MAX_SEQUENCE: u64 = (1 << Self::SEQUENCE_BITS) - 1;

    /// Returns the id of the `sequence`-th exchange that `connection` accepted. Only the lower 24
    /// bits of `sequence` and the lower 40 bits of `connection` count.
    pub const fn accepted(connection: u64, sequence: u64) -> Self {
        Self(connection << Self::SEQUENCE_BITS | sequence & Self::MAX_SEQUENCE)
    }

    /// Returns the number of the connection that accepted this exchange. Meaningful only if a
    /// [`Connection`](crate::wired::Connection) minted the id.
    pub const fn connection(self) -> u64 {
        self.0 >> Self::SEQUENCE_BITS
    }
}

/// Identifies a connection: a socket, a pipe pair or a process. An engine never reuses an id.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
pub struct ConnectionId(pub u64);

/// One received part of an exchange, in order.
#[derive(Clone, PartialEq, Debug)]
pub enum Inbound {
    /// A message: one line of a duplex exchange, or the whole body of an HTTP exchange.
    Message(Message),
    /// A batch: an array of messages. One part, since one response answers all of it.
    Batch(Vec<Result<Message, InvalidMessage>>),
    /// Bytes that are not a message, where a message is expected.
    Invalid(InvalidMessage),
    /// The head of an HTTP request. It begins an HTTP exchange of a server.
    Request(RequestHead),
    /// The head of an HTTP response.
    Response(ResponseHead),
    /// Bytes of a body that is neither JSON nor an event stream, in pieces of any length.
    Body(Bytes),
    /// A server-sent event.
    Event(SseEvent),
    /// A comment line of an event stream, reported at the end of the line. Its text has no meaning
    /// and is not kept (WHATWG HTML section 9.2.6); it proves only that the peer is alive.
    Comment,
    /// The peer has sent everything that it will send on this exchange.
    End,
    /// An HTTP request that violates HTTP or a limit. The server responds with the status and
    /// closes the connection.
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

/// One part that an engine sends on an exchange, in the order of writing.
#[derive(Clone, PartialEq, Debug)]
pub enum Outbound {
    /// A message of a duplex exchange, without its newline.
    Message(Bytes),
    /// The HTTP request of an exchange: the first and only part that a client sends on it.
    Request {
        /// The head. The codec adds `Content-Length` and `Host`.
        head: RequestHead,
        /// Its body.
        body: Bytes,
    },
    /// The HTTP response of an exchange, or its head.
    Response {
        /// The head. The codec adds `Content-Length` or `Transfer-Encoding`.
        head: ResponseHead,
        /// The whole body, or [`Body::Stream`] if events follow.
        body: Body,
    },
    /// A server-sent event of a streamed response.
    Event {
        /// The `event` field: the type. `None`: `message`.
        event: Option<&'static str>,
        /// The `id` field.
        id: Option<String>,
        /// The `retry` field: the reconnection time.
        retry: Option<Duration>,
        /// The data, without CR and LF. May be empty.
        data: Bytes,
    },
    /// A comment of a streamed response, which keeps the connection alive. May be empty.
    Comment(String),
    /// Tells the connection to continue reading. A server sends it once the application has
    /// admitted an HTTP request, whose body may follow then (`100 Continue`, RFC 9110 section
    /// 10.1.1), or a duplex connection. Until then an HTTP connection parses nothing after the
    /// head, and a duplex connection parses nothing. See
    /// [`ServerConfig::admit`](crate::server::ServerConfig::admit).
    Continue,
    /// The engine sends nothing more on this exchange.
    End,
}

/// The body of a response.
#[derive(Clone, PartialEq, Debug)]
pub enum Body {
    /// The whole body.
    Full(Bytes),
    /// A body of events, up to [`Outbound::End`].
    Stream,
    /// No body: the response has the status 101, and the connection is a WebSocket from now on (RFC
    /// 6455). The exchange continues as a duplex one, whose parts are messages in this form. The
    /// fields of the head complete the handshake.
    WebSocket(WsDialect),
}

/// An event of an exchange, which the connections of seam A, or a driver with an HTTP library,
/// report to the engine. No event of an exchange follows `Failed`.
#[derive(Clone, PartialEq, Debug)]
pub enum ExchangeEvent {
    /// Duplex: the exchange is open. On a server, this is its first event. HTTP, client only: the
    /// HTTP request has a connection, and its bytes may reach the server from now on. A driver that
    /// reported [`Waiting`](Self::Waiting) reports `Opened` before the first write.
    Opened(Peer),
    /// HTTP, client only: the HTTP request waits for a connection, and no byte of it was written.
    /// Optional. An HTTP request that the client aborts in this state was not sent ([`Sent::No`]).
    /// Without this event the client assumes that it may have been.
    Waiting,
    /// HTTP, server only: the peer that sends the next HTTP request. Report it directly before the
    /// [`Inbound::Request`] of the exchange, since the server remembers only the latest one. Omit
    /// it if nothing is known of the peer.
    From(Arc<Peer>),
    /// The peer sent this part.
    Inbound(Inbound),
    /// The number of bytes that the engine has sent on this exchange and the driver has not written
    /// yet.
    Unsent(usize),
    /// HTTP, client only: the driver sends the HTTP request again, since its first connection was
    /// dead (see [`Start::Http`]). The server may have read it there. Report it before any event of
    /// the second attempt, and only for an HTTP request that is `repeatable`.
    Repeated,
    /// A [`MessageHook`](crate::hook::MessageHook) refused a message of the engine on a duplex
    /// exchange, and the driver did not write it. The exchange continues. Report it before the next
    /// [`Unsent`](Self::Unsent).
    Unsendable {
        /// The id of the request, if it was one: it gets no response.
        id: Option<Id>,
        /// Why it was refused.
        reason: String,
    },
    /// HTTP, server only: the client closed its sending side after its HTTP request, before the
    /// response was complete. In revision 2026-07-28 this is a disconnect: the engine cancels the
    /// request and aborts the exchange. A legacy request continues and gets its response; a stream
    /// that responds to no request is aborted. A driver that cannot distinguish this from a closed
    /// connection reports `Failed`.
    ReadClosed,
    /// The exchange failed, or never began.
    Failed {
        /// Whether any byte of it can have reached the peer.
        sent: Sent,
        /// How it ended.
        why: Closed,
    },
}

/// An I/O event of a connection, for
/// [`WiredClient::handle_io`](crate::wired::WiredClient::handle_io),
/// [`WiredServer::handle_io`](crate::wired::WiredServer::handle_io) or
/// [`Connection::handle_io`](crate::wired::Connection::handle_io). The engine ignores events after
/// `Closed`, and `Read`, `ReadClosed` and `Written` of a connection that is not open yet.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
pub enum IoEvent {
    /// The connection is open. A driver reports it for a connection that it opened, before any
    /// other event but `Closed`, and never for one that it accepted.
    Opened(Peer),
    /// TLS is established: the answer to [`Action::Secure`]. From now on `Read` and `Written` mean
    /// the bytes inside of it.
    Secured,
    /// The driver read these bytes.
    Read(#[cfg_attr(feature = "record", serde(with = "crate::record::value"))] Bytes),
    /// The peer will send nothing more. The engine still parses the bytes that were read before,
    /// and the driver continues to write.
    ReadClosed,
    /// The operating system took this number of the bytes that were given to the driver to write.
    Written(usize),
    /// The connection is closed, or could not be opened. The last event of every connection.
    Closed(Closed),
}

/// How a client begins an exchange.
#[derive(Clone, PartialEq, Debug)]
pub enum Start {
    /// Messages in both directions, over a connection to this endpoint.
    Duplex(Endpoint),
    /// Messages in both directions, over a WebSocket (RFC 6455).
    WebSocket {
        /// The server.
        origin: Origin,
        /// The addresses to which the connection may lead.
        reach: Reach,
        /// The head of the handshake. The codec adds the fields that begin with `Sec-WebSocket`,
        /// `Upgrade` and `Connection`.
        head: RequestHead,
        /// The form of the messages.
        dialect: WsDialect,
    },
    /// One HTTP request and its response.
    Http {
        /// The server.
        origin: Origin,
        /// The addresses to which the connection may lead. A connection that was opened for another
        /// reach does not carry the request.
        reach: Reach,
        /// The head.
        head: RequestHead,
        /// The body.
        body: Bytes,
        /// Whether the driver may send the HTTP request again, on another connection, if a reused
        /// one is dead before any response. The driver reports [`ExchangeEvent::Repeated`] first: a
        /// refusal of the second attempt does not prove that the first one did not run.
        repeatable: bool,
        /// Whether the driver opens a connection for it beyond the maximum, since other requests
        /// depend on it: a response to a request of the server, `notifications/cancelled`, the
        /// DELETE of a session.
        urgent: bool,
        /// Whether the parts of the body of the response are [`Inbound::Body`], whatever its media
        /// type: it is no message, and the message hook does not see it.
        raw: bool,
    },
}

/// Whether any byte of an exchange or a request can have reached the peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
pub enum Sent {
    /// No byte. It is safe to repeat the request.
    No,
    /// Some or all of it may have arrived, and the peer may have acted on it.
    Maybe,
}

/// The target of a connection.
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum Endpoint {
    /// A child process, over its standard input and output.
    Program(Program),
    /// A TCP address: that of a server, or that of a proxy. With `tls`, an [`Action::Secure`]
    /// follows on the connection, so that a driver can prepare for it.
    Origin(Origin),
    /// The same, with only the addresses within this reach of those that the host has. If it has
    /// none, the driver reports [`Closed::NotPublic`].
    Within(Origin, Reach),
    /// A Unix domain socket.
    Unix(String),
    /// A connection that the application has opened. It cannot be opened a second time.
    Given,
}

/// Scheme, host and port of a URL.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Origin {
    /// Whether the scheme is `https`.
    pub tls: bool,
    /// The host: a name, an IPv4 address, or an IPv6 address without its brackets.
    pub host: Arc<str>,
    /// The port.
    pub port: u16,
}

impl Origin {
    /// Creates an origin. The host is a name, an IPv4 address, or an IPv6 address without its
    /// brackets.
    pub fn new(tls: bool, host: impl Into<Arc<str>>, port: u16) -> Self {
        Self { tls, host: host.into(), port }
    }
}

/// How to end a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "record", derive(serde::Serialize))]
pub enum Shutdown {
    /// Close the writing side once everything queued is written: the standard input of a program,
    /// or one direction of a socket (half-close).
    WriteHalf,
    /// Ask a program to exit: `SIGTERM` to its group. Not emitted for a socket.
    Terminate,
    /// End it now, and drop the unwritten bytes: `SIGKILL` to the group of a program, a reset of a
    /// socket. The driver then reports [`IoEvent::Closed`].
    Abort,
}

/// How a program exited: an exit code, or the signal that killed it. Its `Display` shows the last
/// line of [`stderr`](Self::stderr) with [escapes](crate::error#text-of-a-peer). If that line says
/// nothing, as the frames of a stack and the version that Node.js writes last, it shows up to three
/// lines before it that do.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct ExitStatus {
    /// The exit code, unless a signal killed it.
    pub code: Option<i32>,
    /// The signal that killed it, if one did.
    pub signal: Option<i32>,
    /// The end of its standard error, at most [`STDERR_TAIL`](Self::STDERR_TAIL) bytes. Empty if
    /// the driver does not read it. Not redacted: a program may write secrets to it.
    pub stderr: String,
}

impl ExitStatus {
    /// Maximum length of [`stderr`](Self::stderr), in bytes.
    pub const STDERR_TAIL: usize = 4 << 10;

    /// Returns the status of a program that exited with this code.
    pub fn exited(code: i32) -> Self {
        Self { code: Some(code), ..Self::default() }
    }

    /// Returns the status of a program that this signal killed.
    pub fn killed(signal: i32) -> Self {
        Self { signal: Some(signal), ..Self::default() }
    }

    /// Returns the lines of standard error that say why the program exited, at most three: the
    /// last one, or those before it if it says nothing.
    pub(crate) fn last_words(&self) -> LastWords<'_> {
        const MAX: usize = 3;
        let mut lines = self.stderr.lines().rev().map(str::trim).filter(|line| !line.is_empty());
        let last = lines.next();
        let said = last.filter(|last| !says_something(last));
        let mut words: Vec<&str> =
            said.map_or_else(Vec::new, |_| lines.filter(|l| says_something(l)).take(MAX).collect());
        if words.is_empty() {
            words.extend(last);
        }
        words.reverse();
        LastWords(words)
    }

    /// Sets the end of standard error.
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
        self.last_words().fmt(f)
    }
}

/// Lines of standard error, in order. Its `Display` is the end of a sentence.
pub(crate) struct LastWords<'a>(Vec<&'a str>);

impl LastWords<'_> {
    /// Returns whether the program wrote nothing.
    pub(crate) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Display for LastWords<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some((first, more)) = self.0.split_first() else { return Ok(()) };
        let ending = if more.is_empty() { "" } else { "s" };
        write!(f, "; last line{ending} of its standard error: {}", Visible(first))?;
        more.iter().try_for_each(|line| write!(f, " | {}", Visible(line)))
    }
}

/// Returns whether a line of standard error can be the reason of an exit. What runtimes and package
/// runners write after the reason is none: the frames of a stack, their version, where to read on.
fn says_something(line: &str) -> bool {
    const AFTER: [&str; 6] = [
        "... ",
        "Node.js v",
        "Bun v",
        "note: run with `RUST_BACKTRACE",
        "npm error A complete log",
        "npm ERR! A complete log",
    ];
    let ends_in_number =
        line.rsplit_once(':').is_some_and(|(_, n)| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()));
    let is_frame = line.starts_with("at ") && (line.ends_with([')', '{']) || ends_in_number);
    line.contains(char::is_alphanumeric) && !is_frame && !AFTER.iter().any(|start| line.starts_with(start))
}

/// Header fields of one side, for `Debug`.
struct ShownHeaders<'a>(&'a Headers, Side);

impl fmt::Debug for ShownHeaders<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(headers, side) = *self;
        f.debug_map().entries(headers.iter().map(|(name, value)| (name, HeaderField { name, value, side }))).finish()
    }
}

/// The head of an HTTP request.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct RequestHead {
    /// The method, case preserved.
    pub method: Cow<'static, str>,
    /// The request target. A client writes it unchanged. On a server it is the path and the query
    /// as received; for a target in absolute form (RFC 9112 section 3.2.2), those of the target,
    /// whose host then replaces the field `Host`; or `*`, for `OPTIONS` only. Never empty, visible
    /// ASCII without `#`, as received at most
    /// [`FrameLimits::max_target`](crate::limits::FrameLimits::max_target) bytes.
    pub target: Arc<str>,
    /// The fields.
    pub headers: Headers,
}

impl fmt::Debug for RequestHead {
    /// Masks credentials in the fields and in the query.
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
    /// Shows the values of the standard fields that never hold a credential.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let headers = ShownHeaders(&self.headers, Side::Response);
        f.debug_struct("ResponseHead").field("status", &self.status).field("headers", &headers).finish()
    }
}

/// One server-sent event (WHATWG HTML section 9.2).
#[derive(Clone, PartialEq, Debug)]
pub struct SseEvent {
    /// The `id` field, if the event has one.
    pub id: Option<String>,
    /// The `retry` field, if the event has one.
    pub retry: Option<Duration>,
    /// The data.
    pub data: Data,
}

/// The data of an event.
#[derive(Clone, PartialEq, Debug)]
pub enum Data {
    /// Absent or empty.
    None,
    /// A message.
    Message(Message),
    /// A batch (2025-03-26).
    Batch(Vec<Result<Message, InvalidMessage>>),
    /// Not a message, although the type of the event is `message`.
    Invalid(InvalidMessage),
    /// An event of another type.
    Other {
        /// The type.
        event: String,
        /// The data, unparsed.
        data: Bytes,
    },
}

impl From<Result<Document, InvalidMessage>> for Data {
    fn from(read: Result<Document, InvalidMessage>) -> Self {
        match read {
            Ok(Document::Message(message)) => Self::Message(message),
            Ok(Document::Batch(elements)) => Self::Batch(elements),
            Err(defect) => Self::Invalid(defect),
        }
    }
}

/// An HTTP request that a server must not serve.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BadRequest {
    /// The status of the response.
    pub status: u16,
    /// The reason, for people.
    pub why: &'static str,
}

/// A change of a connection of a client. Dropped and counted like a diagnostic when the queue is
/// full.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ConnectionNotice {
    /// The client ends the connection in this way. Emitted after the [`Action::Close`], once for
    /// each step. Not emitted for a step that was unnecessary because the program had exited.
    Closing(Shutdown),
    /// The connection is closed, in this way. Emitted at most once for every connection, after its
    /// effects on calls.
    Closed(Closed),
}

/// The next step of a driver (seam A). All actions of an engine leave through one queue, in order.
#[derive(Clone, PartialEq, Debug)]
#[must_use]
pub enum Action<E> {
    /// Open a connection to this endpoint, then report [`IoEvent::Opened`] or [`IoEvent::Closed`].
    /// Emitted once for each connection of a client.
    Open(ConnectionId, Endpoint),
    /// Begin TLS on an open connection, as its client (RFC 8446). The text is the name to verify: a
    /// host name, or an IP address without brackets. Then report [`IoEvent::Secured`], or
    /// [`IoEvent::Closed`] with [`Closed::Tls`]. Before it, only a request to a proxy is written,
    /// and all of that is reported as written. Emitted once for each connection to an origin with
    /// TLS. A server emits none: its driver begins TLS before it passes a connection on.
    Secure(ConnectionId, Arc<str>),
    /// Write these bytes, after those of earlier writes. Never emitted before the connection is
    /// open. Before it is secured, emitted only for a request to a proxy.
    Write(ConnectionId, Bytes),
    /// Stop reading from the connection (`false`), or read from it again (`true`). A driver reads
    /// from the start, and only changes are emitted. Not emitted before the connection is open,
    /// after the peer has ended it, or after an [`Shutdown::Abort`], which ends reading too.
    Read(ConnectionId, bool),
    /// End the connection in this way. May be emitted again, with a stronger [`Shutdown`] each
    /// time.
    Close(ConnectionId, Shutdown),
    /// A change of a connection, for an application that wants it. The driver does nothing. A
    /// client emits it. A server does not.
    Notice(ConnectionId, ConnectionNotice),
    /// An event for the application.
    Event(E),
}
