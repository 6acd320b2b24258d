//! The log of a [`Link`](super::Link): a line for each thing that happened.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use bytes::Bytes;
use core::fmt;
use mcp_proto::client;
use mcp_proto::exchange::ConnectionId;
use mcp_proto::frame::{FrameReader, WsItem};
use mcp_proto::limits::FrameLimits;
use mcp_proto::peer_text::Visible;
use mcp_proto::redact::{Redactor, redact_message};
use mcp_proto::rpc::{self, Document, Message, Object, Payload, RawJson};
use mcp_proto::server;
use mcp_proto::time::Instant;

/// Maximum length of the text of a message, in characters.
const LONGEST: usize = 100;

/// What happened in a [`Link`](super::Link), in order. There is a line for each message that was
/// written, for each that arrived later than it was written, for each timer, and for each event of
/// either side. Equal tests have equal logs. Secrets that are known by name are masked: see
/// [`redact`](mcp_proto::redact).
///
/// ```text
///        0.000 ms  client -> server  [1] tools/call #2 {"name":"hello"}
///        0.000 ms  server            tools/call hello waits 60s
///     5000.000 ms  client            timer: Call(CallId(1))
///     5000.000 ms  client -> server  [1] notifications/cancelled {"reason":"timed out", …
///     5000.000 ms  client            call 1 failed: no response within 5000 ms
/// ```
///
/// `[1]` is the number of the connection at the client. A message is shown without its `_meta`, and
/// at most its first 100 characters.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Log(Vec<String>);

/// One of the two sides.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum LinkSide {
    Client,
    Server,
}

impl LinkSide {
    pub(super) const fn other(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Server => "server",
        }
    }
}

impl Log {
    /// Returns the lines, oldest first.
    pub fn lines(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    /// Adds what happened at one side.
    pub(super) fn note(&mut self, now: Instant, side: LinkSide, what: impl fmt::Display) {
        self.add(now, side.name(), what);
    }

    /// Adds what happened to a connection at one side.
    pub(super) fn connection(&mut self, now: Instant, side: LinkSide, id: ConnectionId, what: impl fmt::Display) {
        self.add(now, side.name(), format_args!("[{}] {what}", id.0));
    }

    /// Adds what one side wrote.
    pub(super) fn write(&mut self, now: Instant, from: LinkSide, id: ConnectionId, what: &str) {
        let ends = format!("{} -> {}", from.name(), from.other().name());
        self.add(now, &ends, format_args!("[{}] {what}", id.0));
    }

    /// Adds what arrived at one side.
    pub(super) fn read(&mut self, now: Instant, at: LinkSide, id: ConnectionId, what: &str) {
        let reader = format!("{} reads", at.name());
        self.add(now, &reader, format_args!("[{}] {what}", id.0));
    }

    /// Adds what the test did.
    pub(super) fn test(&mut self, now: Instant, what: impl fmt::Display) {
        self.add(now, "test", what);
    }

    fn add(&mut self, now: Instant, subject: &str, what: impl fmt::Display) {
        let micros = now.since_origin().as_micros();
        let (millis, rest) = (micros / 1000, micros % 1000);
        self.0.push(format!("{millis:>8}.{rest:03} ms  {subject:<16}  {}", Visible(&what.to_string())));
    }
}

impl fmt::Display for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|line| writeln!(f, "{line}"))
    }
}

impl fmt::Debug for Log {
    /// Shows the lines as `Display` does, so that a failed `assert_eq!` is legible.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\n{self}")
    }
}

/// The text of the bytes of one direction.
#[derive(Debug, Default)]
pub(super) struct LogRedactor {
    redactor: Redactor,
    /// The frames that follow the handshake of a WebSocket.
    frames: Option<FrameReader>,
}

impl LogRedactor {
    /// Returns a line for each message in these bytes, which follow the ones before: all that one
    /// engine wrote at once. An HTTP head is a part of the first line. A message that was split is
    /// shown as its size.
    pub(super) fn lines(&mut self, bytes: &[u8]) -> Vec<String> {
        if let Some(frames) = &mut self.frames {
            return frame_lines(frames, bytes);
        }
        let text = self.redactor.redact(bytes);
        let text = String::from_utf8_lossy(&text);
        let (head, body) = match text.split_once("\r\n\r\n") {
            Some((head, body)) if head.contains("HTTP/1.1") => (head.lines().next(), body),
            _ => (None, &*text),
        };
        let mut lines: Vec<String> = body.lines().filter_map(body_line).collect();
        if let Some(head) = head.map(|head| head.replace("HTTP/1.1", "")) {
            let first = if lines.is_empty() { String::new() } else { lines.remove(0) };
            lines.insert(0, format!("{} {first}", head.trim()).trim_end().to_owned());
        }
        if lines.is_empty() {
            lines.push(without_message(body, bytes.len()));
        }
        self.frames = is_handshake(&text).map(|masked| FrameReader::new(masked, usize::MAX));
        lines
    }
}

/// Returns whether frames follow this text: the handshake of a WebSocket, which an engine writes at
/// once. The value is whether they are masked.
fn is_handshake(text: &str) -> Option<bool> {
    let is_request = text.starts_with("GET ") && text.contains("\r\nUpgrade: ");
    (is_request || text.starts_with("HTTP/1.1 101 ")).then_some(is_request)
}

/// Returns a line for each message and control frame that these bytes complete.
fn frame_lines(frames: &mut FrameReader, bytes: &[u8]) -> Vec<String> {
    frames.bytes(Bytes::copy_from_slice(bytes));
    let mut lines: Vec<String> = core::iter::from_fn(|| frames.poll()).map(frame_line).collect();
    if lines.is_empty() {
        lines.push(format!("{} bytes", bytes.len()));
    }
    lines
}

fn frame_line(item: WsItem) -> String {
    match item {
        WsItem::Text(text) => {
            let text = redact_message(&text);
            let text = String::from_utf8_lossy(&text);
            body_line(&text).unwrap_or_else(|| shorten(&text))
        }
        WsItem::Ping(_) => "ping".into(),
        WsItem::Pong(_) => "pong".into(),
        WsItem::Close(close) => match close.code {
            Some(code) => format!("close {code} {}", close.reason).trim_end().to_owned(),
            None => "close".into(),
        },
        WsItem::Fail { why, .. } => why.into(),
        WsItem::End => "end".into(),
    }
}

/// Returns the text of one line of a body or of a duplex connection. `None` if it is framing.
fn body_line(line: &str) -> Option<String> {
    let line = line.strip_prefix("data:").unwrap_or(line).trim();
    if line.starts_with(':') {
        return Some("comment".into());
    }
    line.starts_with(['{', '[']).then(|| shorten(&document(line).unwrap_or_else(|| line.to_owned())))
}

/// Returns the text of bytes without a message.
fn without_message(body: &str, size: usize) -> String {
    if let Some(name) = body.lines().find_map(|line| line.strip_prefix("event:")) {
        return format!("event {}", name.trim());
    }
    match body.trim_end() {
        // The last chunk (RFC 9112 section 7.1).
        "0" => "end of the stream".into(),
        _ if body.lines().any(|line| line.starts_with("id:") || line.starts_with("retry:")) => "empty event".into(),
        _ => format!("{size} bytes"),
    }
}

fn document(line: &str) -> Option<String> {
    let read = rpc::parse_batch_or_message(line.to_owned().into(), &FrameLimits::default()).ok()?;
    Some(match read {
        Document::Message(message) => self::message(&message),
        Document::Batch(elements) => format!("batch of {}", elements.len()),
    })
}

fn message(message: &Message) -> String {
    let text = match message {
        Message::Request(request) => {
            format!("{} #{} {}", request.method, request.id, content(request.params.as_ref()))
        }
        Message::Notification(notification) => {
            format!("{} {}", notification.method, content(notification.params.as_ref()))
        }
        Message::Response(response) => match &response.payload {
            Payload::Result(result) => format!("result of #{} {}", response.id, content(Some(result))),
            Payload::Error(error) => format!("error of #{}: {error}", response.id),
        },
        Message::Error(error) => format!("error without an id: {error}"),
    };
    text.trim_end().to_owned()
}

/// Returns params or a result without `_meta`.
fn content(json: Option<&RawJson>) -> String {
    let Some(json) = json else { return String::new() };
    match Object::read(json) {
        Ok(mut object) => {
            object.remove("_meta");
            if object.is_empty() { String::new() } else { object.to_json().as_str().to_owned() }
        }
        Err(_) => json.as_str().to_owned(),
    }
}

fn shorten(text: &str) -> String {
    match text.char_indices().nth(LONGEST) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

/// Returns the text of an event of the client.
pub(super) fn client_event(event: &client::Event) -> String {
    match event {
        client::Event::Ready(info) => format!("ready, revision {}", info.version),
        client::Event::Progress { call, progress } => format!("call {}: progress {}", call.0, progress.progress),
        client::Event::Ended { call, outcome: Ok(_) } => format!("call {} succeeded", call.0),
        client::Event::Ended { call, outcome: Err(error) } => format!("call {} failed: {error}", call.0),
        client::Event::Diagnostic(diagnostic) => format!("diagnostic {diagnostic}"),
        client::Event::Terminated(why) => shorten(&format!("terminated: {why:?}")),
        other => shorten(&format!("{other:?}")),
    }
}

/// Returns the text of an event of the server.
pub(super) fn server_event(event: &server::Event) -> String {
    match event {
        server::Event::Diagnostic(diagnostic) => format!("diagnostic {diagnostic}"),
        server::Event::Terminated => "terminated".into(),
        other => shorten(&format!("{other:?}")),
    }
}
