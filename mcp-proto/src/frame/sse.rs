//! Server-sent events (WHATWG HTML section 9.2): one byte-order mark at the start is ignored; LF,
//! CR and CRLF end a line however they are split; data lines are joined by LF; an unfinished event
//! is discarded. [`EventDecoder::read`] documents the differences.

use super::input::{BOM, LARGE};
use super::work::{MAX_IDLE, Work};
use crate::exchange::{Data, Inbound, SseEvent};
use crate::limits::FrameLimits;
use crate::rpc;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use bytes::Bytes;
use core::mem;
use core::time::Duration;

/// Writes one event: `id` and `retry` if given (in whole milliseconds), and always `data`, even if
/// it is empty. Without `event`, the type is `message`. An `event` with CR or LF and an `id` with
/// CR, LF or NUL are omitted, since no reader could receive them. `data` with line breaks (LF, CR
/// or CRLF) becomes several `data` lines, which a reader joins by LF.
///
/// ```
/// use bytes::Bytes;
/// use mcp_proto::frame::encode_event;
///
/// let data = Bytes::from_static(br#"{"jsonrpc":"2.0","method":"m"}"#);
/// let event = encode_event(None, Some("7"), None, &data);
/// assert_eq!(event, "id: 7\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"m\"}\n\n");
/// ```
pub fn encode_event(event: Option<&str>, id: Option<&str>, retry: Option<Duration>, data: &Bytes) -> Bytes {
    let mut out = event_head(event, id, retry);
    out.reserve_exact(data.len() + 2);
    let mut rest = &data[..];
    while let Some(at) = memchr::memchr2(b'\r', b'\n', rest) {
        out.extend_from_slice(&rest[..at]);
        out.extend_from_slice(b"\ndata: ");
        rest = &rest[at + if rest[at..].starts_with(b"\r\n") { 2 } else { 1 }..];
    }
    out.extend_from_slice(rest);
    out.extend_from_slice(b"\n\n");
    out.into()
}

/// Writes one comment, which keeps a stream alive and has no meaning for the reader. An empty
/// comment is a single colon. `text` with line breaks (LF, CR or CRLF) becomes several comment
/// lines, so that no part of it can be a field or end an event (WHATWG HTML section 9.2.6).
///
/// ```
/// use mcp_proto::frame::encode_comment;
///
/// assert_eq!(encode_comment(""), ":\n\n");
/// assert_eq!(encode_comment("heartbeat"), ": heartbeat\n\n");
/// assert_eq!(encode_comment("a\r\ndata: b"), ": a\n: data: b\n\n");
/// ```
pub fn encode_comment(text: &str) -> Bytes {
    let mut out = Vec::with_capacity(text.len() + 4);
    for line in text.split("\r\n").flat_map(|part| part.split(['\r', '\n'])) {
        out.extend_from_slice(if line.is_empty() { b":" } else { b": " });
        out.extend_from_slice(line.as_bytes());
        out.push(b'\n');
    }
    out.push(b'\n');
    out.into()
}

/// Returns everything before the data.
pub(super) fn event_head(event: Option<&str>, id: Option<&str>, retry: Option<Duration>) -> Vec<u8> {
    let mut out = Vec::with_capacity(64);
    if let Some(event) = event.filter(|event| !event.contains(['\r', '\n'])) {
        for part in ["event: ", event, "\n"] {
            out.extend_from_slice(part.as_bytes());
        }
    }
    if let Some(id) = id.filter(|id| !id.contains(['\r', '\n', '\0'])) {
        for part in ["id: ", id, "\n"] {
            out.extend_from_slice(part.as_bytes());
        }
    }
    if let Some(retry) = retry {
        for part in ["retry: ", &retry.as_millis().to_string(), "\n"] {
            out.extend_from_slice(part.as_bytes());
        }
    }
    out.extend_from_slice(b"data: ");
    out
}

/// The decoder of one stream. It reads slices, and holds only what the event needs. Comments and
/// unknown fields use no memory.
#[derive(Debug)]
pub(super) struct EventDecoder {
    limits: Arc<FrameLimits>,
    line: LineState,
    /// The last byte was a CR that ended a line. An LF after it belongs to the same line end.
    cr: bool,
    /// The value of an `event` or `id` field, so far.
    value: Vec<u8>,
    /// The value of a `retry` field, so far. It uses no more memory, however long the field is.
    number: Number,
    event: Vec<u8>,
    id: Option<Vec<u8>>,
    retry: Option<Duration>,
    /// The data lines, joined by LF. The last one may be incomplete.
    data: Vec<u8>,
    /// There is a data line.
    has_data: bool,
    /// A known field has occurred since the last event.
    has_field: bool,
    /// Bytes since the last event, except those of data lines.
    idle: usize,
}

/// The position of the next byte in its line.
#[derive(Clone, Copy, Debug)]
enum LineState {
    /// At the start of the stream, after this many bytes of a byte-order mark.
    ByteOrderMark(usize),
    /// In a field name, after this many bytes, which are kept.
    Name([u8; LONGEST], usize),
    /// After the colon, where one space is dropped.
    Colon(FieldName),
    Value(FieldName),
    Comment,
    /// In an unknown field.
    Unknown,
}

/// The value of a `retry` field. Only a number of digits is valid.
#[derive(Clone, Copy, Debug)]
enum Number {
    Empty,
    Digits(u64),
    Invalid,
}

/// The name of a field that WHATWG defines. The parser ignores all others.
#[derive(Clone, Copy, Debug)]
enum FieldName {
    Data,
    Event,
    Id,
    Retry,
}

/// Length of the longest known field name.
const LONGEST: usize = 5;

/// Size of the smallest buffer, in bytes, so that single bytes do not grow it again and again.
const SMALLEST: usize = 64;

/// Maximum size of a buffer that an idle stream keeps, in bytes.
const KEPT: usize = 512;

/// Why the rest of a stream cannot be read.
#[derive(Debug)]
pub(super) enum EventFault {
    /// The event exceeds the limit.
    TooLong,
    /// More than [`MAX_IDLE`] bytes belong to no event.
    None,
}

impl EventDecoder {
    pub(super) fn new(limits: Arc<FrameLimits>) -> Self {
        Self {
            limits,
            line: LineState::ByteOrderMark(0),
            cr: false,
            value: Vec::new(),
            number: Number::Empty,
            event: Vec::new(),
            id: None,
            retry: None,
            data: Vec::new(),
            has_data: false,
            has_field: false,
            idle: 0,
        }
    }

    pub(super) fn buffered(&self) -> usize {
        let id = self.id.as_ref().map_or(0, Vec::capacity);
        self.value.capacity() + self.event.capacity() + self.data.capacity() + id
    }

    /// Reads bytes up to the end of an event or a comment, which it returns, and removes them from
    /// `rest`. There are three differences from WHATWG. An event without data is returned too if it
    /// has a known field, since its `id` and `retry` count. `id` is that of the event itself; the
    /// caller keeps track of the last event id of the stream. Data that is not UTF-8 is kept
    /// unchanged, so that it is an invalid message and not a different one. `None` if more bytes
    /// are needed, or if the work is done.
    pub(super) fn read(&mut self, rest: &mut &[u8], work: &mut Work) -> Result<Option<Inbound>, EventFault> {
        while !rest.is_empty() && !work.stops() {
            if let LineState::ByteOrderMark(seen) = self.line {
                *rest = self.skip_mark(seen, rest);
                continue;
            }
            if self.cr && rest[0] == b'\n' {
                self.cr = false;
                *rest = &rest[1..];
                self.idle(1)?;
                continue;
            }
            if let Some(blank) = self.blank_lines(rest) {
                work.spend(blank);
                *rest = &rest[blank..];
                self.idle(blank)?;
                continue;
            }
            let Some(end) = memchr::memchr2(b'\r', b'\n', rest) else {
                work.spend(rest.len() + Work::UNIT);
                self.read_within_line(mem::take(rest))?;
                break;
            };
            self.read_line(&rest[..end])?;
            self.cr = rest[end] == b'\r';
            work.spend(end + 1 + Work::UNIT);
            *rest = &rest[end + 1..];
            if !self.is_in_data() && !self.ends_event() {
                self.idle(end + 1)?;
            }
            if let Some(item) = self.end_line()? {
                return Ok(Some(item));
            }
        }
        Ok(None)
    }

    /// Reads bytes that end no line, so that no event is complete.
    pub(super) fn read_within_line(&mut self, mut bytes: &[u8]) -> Result<(), EventFault> {
        if let LineState::ByteOrderMark(seen) = self.line {
            bytes = self.skip_mark(seen, bytes);
        }
        self.cr = false;
        self.read_line(bytes)?;
        if self.is_in_data() {
            return Ok(());
        }
        self.idle += bytes.len();
        self.check_idle_within_line()
    }

    /// Returns the number of bytes of the blank lines at the front, if there are any and they end
    /// no event.
    fn blank_lines(&mut self, front: &[u8]) -> Option<usize> {
        let ends_nothing = matches!(self.line, LineState::Name(_, 0)) && !self.has_field && !self.has_data;
        let is_end = |byte: &&u8| matches!(byte, b'\r' | b'\n');
        let count = front.iter().take_while(is_end).count();
        let last = front[..count].last().filter(|_| ends_nothing)?;
        self.cr = *last == b'\r';
        Some(count)
    }

    /// Returns whether the line that ends now is blank and ends an event: the others are
    /// [`blank_lines`](Self::blank_lines).
    fn ends_event(&self) -> bool {
        matches!(self.line, LineState::Name(_, 0))
    }

    /// Counts bytes that belong to no event.
    fn idle(&mut self, count: usize) -> Result<(), EventFault> {
        self.idle += count;
        self.check_idle()
    }

    const fn check_idle(&self) -> Result<(), EventFault> {
        if self.idle > MAX_IDLE { Err(EventFault::None) } else { Ok(()) }
    }

    /// As [`check_idle`](Self::check_idle), before the end of a line. A value that is held has its
    /// own limit: where the bytes are cut must not decide which of the two it reaches first.
    const fn check_idle_within_line(&self) -> Result<(), EventFault> {
        match self.line {
            LineState::Colon(FieldName::Event | FieldName::Id) | LineState::Value(FieldName::Event | FieldName::Id) => {
                Ok(())
            }
            _ => self.check_idle(),
        }
    }

    /// Returns whether the line so far is one of data, whose size has a limit of its own.
    fn is_in_data(&self) -> bool {
        matches!(self.line, LineState::Colon(FieldName::Data) | LineState::Value(FieldName::Data))
    }

    /// Reports the end of the stream. The unfinished event is discarded, but a `retry` counts as
    /// soon as its line is complete.
    pub(super) fn end(&mut self) -> Option<Inbound> {
        let retry = self.retry.take()?;
        Some(Inbound::Event(SseEvent { id: None, retry: Some(retry), data: Data::None }))
    }

    /// Reads the start of the stream, which is not empty. Returns the bytes after a byte-order
    /// mark.
    fn skip_mark<'a>(&mut self, seen: usize, bytes: &'a [u8]) -> &'a [u8] {
        let more = BOM[seen..].iter().zip(bytes).take_while(|(mark, byte)| mark == byte).count();
        let rest = &bytes[more..];
        self.idle += more;
        self.line = match (seen + more, rest) {
            (0, _) | (3.., _) => LineState::BEGIN,
            (seen, []) => LineState::ByteOrderMark(seen),
            // A malformed byte-order mark.
            _ => LineState::Unknown,
        };
        rest
    }

    /// Reads a line without its end, or the next part of one.
    fn read_line(&mut self, part: &[u8]) -> Result<(), EventFault> {
        match self.line {
            _ if part.is_empty() => Ok(()),
            LineState::Name(name, len) => self.read_name(name, len, part),
            LineState::Colon(field) => self.read_value(field, part),
            LineState::Value(field) => self.append(field, part),
            LineState::ByteOrderMark(_) | LineState::Comment | LineState::Unknown => Ok(()),
        }
    }

    /// Reads the next part of a line whose first `len` bytes are in `name`.
    fn read_name(&mut self, mut name: [u8; LONGEST], len: usize, part: &[u8]) -> Result<(), EventFault> {
        let colon = part[..part.len().min(LONGEST + 1 - len)].iter().position(|byte| *byte == b':');
        let more = &part[..colon.unwrap_or(part.len())];
        if len > 0 || colon.is_none() {
            let Some(room) = name.get_mut(len..len + more.len()) else {
                self.line = LineState::Unknown;
                return Ok(());
            };
            room.copy_from_slice(more);
        }
        let Some(colon) = colon else {
            self.line = LineState::Name(name, len + more.len());
            return Ok(());
        };
        // The common case is a whole name, which is not copied.
        let whole = if len > 0 { &name[..len + colon] } else { more };
        if let Some(field) = FieldName::parse(whole) {
            self.begin_field(field)?;
            return self.read_value(field, &part[colon + 1..]);
        }
        self.line = if whole.is_empty() { LineState::Comment } else { LineState::Unknown };
        Ok(())
    }

    /// Reads what follows the colon.
    fn read_value(&mut self, field: FieldName, value: &[u8]) -> Result<(), EventFault> {
        if value.is_empty() {
            self.line = LineState::Colon(field);
            return Ok(());
        }
        self.line = LineState::Value(field);
        self.append(field, value.strip_prefix(b" ").unwrap_or(value))
    }

    /// The name of a field is complete.
    fn begin_field(&mut self, field: FieldName) -> Result<(), EventFault> {
        match field {
            FieldName::Data if mem::replace(&mut self.has_data, true) => return self.append(field, b"\n"),
            FieldName::Retry => self.number = Number::Empty,
            FieldName::Data | FieldName::Event | FieldName::Id => {}
        }
        Ok(())
    }

    /// Appends to the value of a field. The buffer doubles, but never exceeds the limit.
    fn append(&mut self, field: FieldName, part: &[u8]) -> Result<(), EventFault> {
        if let FieldName::Retry = field {
            self.number = part.iter().fold(self.number, Number::and);
            return Ok(());
        }
        let id = self.id.as_ref().map_or(0, Vec::len);
        let held = self.value.len() + self.event.len() + self.data.len() + id;
        let room = self.limits.max_event.saturating_sub(held);
        if part.len() > room {
            return Err(EventFault::TooLong);
        }
        let buffer = match field {
            FieldName::Data => &mut self.data,
            FieldName::Event | FieldName::Id | FieldName::Retry => &mut self.value,
        };
        let needed = buffer.len() + part.len();
        if needed > buffer.capacity() {
            let most = buffer.len() + room;
            let target = needed.max(buffer.capacity() * 2).max(SMALLEST);
            buffer.reserve_exact(target.min(most) - buffer.len());
        }
        buffer.extend_from_slice(part);
        Ok(())
    }

    fn end_line(&mut self) -> Result<Option<Inbound>, EventFault> {
        match mem::replace(&mut self.line, LineState::BEGIN) {
            LineState::Name(_, 0) => return Ok(self.dispatch()),
            LineState::Comment => return Ok(Some(Inbound::Comment)),
            LineState::Name(name, len) => {
                if let Some(field) = FieldName::parse(&name[..len]) {
                    self.begin_field(field)?;
                    self.end_field(field);
                }
            }
            LineState::Colon(field) | LineState::Value(field) => self.end_field(field),
            LineState::ByteOrderMark(_) | LineState::Unknown => {}
        }
        Ok(None)
    }

    fn end_field(&mut self, field: FieldName) {
        match field {
            FieldName::Data => {}
            FieldName::Event => {
                mem::swap(&mut self.event, &mut self.value);
                keep_small(&mut self.value);
            }
            FieldName::Id => {
                let value = mem::take(&mut self.value);
                if memchr::memchr(0, &value).is_some() {
                    return;
                }
                self.id = Some(value);
            }
            FieldName::Retry => match self.number {
                Number::Digits(millis) => self.retry = Some(Duration::from_millis(millis)),
                Number::Empty | Number::Invalid => return,
            },
        }
        self.has_field = true;
    }

    fn dispatch(&mut self) -> Option<Inbound> {
        self.has_data = false;
        let (id, retry) = (self.id.take().map(text), self.retry.take());
        // Without a known field, there is neither data nor an event name.
        if !mem::take(&mut self.has_field) {
            return None;
        }
        let data = if self.data.is_empty() {
            Data::None
        } else if !matches!(&self.event[..], b"" | b"message") {
            Data::Other { event: text(mem::take(&mut self.event)), data: mem::take(&mut self.data).into() }
        } else if self.data.len() < LARGE {
            rpc::parse_small(&self.data, &self.limits).into()
        } else {
            rpc::parse_batch_or_message(mem::take(&mut self.data).into(), &self.limits).into()
        };
        keep_small(&mut self.data);
        keep_small(&mut self.event);
        self.idle = 0;
        Some(Inbound::Event(SseEvent { id, retry, data }))
    }
}

impl Number {
    fn and(self, byte: &u8) -> Self {
        match (self, byte.wrapping_sub(b'0')) {
            (Self::Empty, digit @ 0..=9) => Self::Digits(digit.into()),
            (Self::Digits(n), digit @ 0..=9) => Self::Digits(n.saturating_mul(10).saturating_add(digit.into())),
            _ => Self::Invalid,
        }
    }
}

impl LineState {
    /// The start of a line.
    const BEGIN: Self = Self::Name([0; LONGEST], 0);
}

impl FieldName {
    fn parse(name: &[u8]) -> Option<Self> {
        match name {
            b"data" => Some(Self::Data),
            b"event" => Some(Self::Event),
            b"id" => Some(Self::Id),
            b"retry" => Some(Self::Retry),
            _ => None,
        }
    }
}

/// Empties a buffer. A small one keeps its memory for the next event.
fn keep_small(buffer: &mut Vec<u8>) {
    match buffer.capacity() {
        0..=KEPT => buffer.clear(),
        _ => *buffer = Vec::new(),
    }
}

/// Replaces invalid UTF-8, as WHATWG requires.
fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned())
}
