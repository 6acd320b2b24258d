//! Server-sent events, to the letter of WHATWG HTML section 9.2: LF, CR and CRLF end a line however they are cut, comments mean nothing,
//! data lines are joined by LF, an unfinished event is discarded. What differs is told on [`Events::poll`].

use super::input::Input;
use crate::exchange::{Data, SseEvent};
use crate::rpc;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use bytes::Bytes;
use core::mem;
use core::time::Duration;

/// Writes one event: `id` and `retry` if given (whole milliseconds), and `data` always, even if empty. Without an `event` field, so that
/// its type is `message`. An `id` that holds CR, LF or NUL is left out: no reader could get it. `data` with line breaks becomes several
/// `data` lines.
///
/// ```
/// use bytes::Bytes;
/// use mcp_proto::frame::encode_event;
///
/// let event = encode_event(Some("7"), None, &Bytes::from_static(br#"{"jsonrpc":"2.0","method":"m"}"#));
/// assert_eq!(event, "id: 7\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"m\"}\n\n");
/// ```
pub fn encode_event(id: Option<&str>, retry: Option<Duration>, data: &Bytes) -> Bytes {
    let mut out = event_head(id, retry);
    out.reserve_exact(data.len() + 2);
    if memchr::memchr2(b'\r', b'\n', data).is_none() {
        out.extend_from_slice(data);
    } else {
        for (n, line) in data.split(|byte| matches!(byte, b'\r' | b'\n')).enumerate() {
            if n > 0 {
                out.extend_from_slice(b"\ndata: ");
            }
            out.extend_from_slice(line);
        }
    }
    out.extend_from_slice(b"\n\n");
    out.into()
}

/// Everything before the data.
pub(super) fn event_head(id: Option<&str>, retry: Option<Duration>) -> Vec<u8> {
    let mut out = Vec::with_capacity(64);
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

/// The decoder of one stream.
#[derive(Debug)]
pub(super) struct Events {
    max_event: usize,
    max_depth: u32,
    line: Vec<u8>,
    /// The line is a comment: it is not held.
    comment: bool,
    /// The last byte was the CR that ended a line: an LF belongs to it.
    cr: bool,
    /// No line has ended yet: a byte-order mark may stand in front.
    first: bool,
    event: String,
    id: Option<String>,
    retry: Option<Duration>,
    /// Each data line with an LF behind it.
    data: Vec<u8>,
    /// A field that we know was seen since the last event.
    any: bool,
}

/// The event is larger than the limit.
#[derive(Debug)]
pub(super) struct TooLong;

impl Events {
    pub(super) fn new(max_event: usize, max_depth: u32) -> Self {
        Self {
            max_event,
            max_depth,
            line: Vec::new(),
            comment: false,
            cr: false,
            first: true,
            event: String::new(),
            id: None,
            retry: None,
            data: Vec::new(),
            any: false,
        }
    }

    pub(super) fn buffered(&self) -> usize {
        self.line.capacity()
            + self.data.capacity()
            + self.event.capacity()
            + self.id.as_ref().map_or(0, String::capacity)
    }

    /// The next event. Other than WHATWG says, an event without data is handed out too, if a field was set: its `id` and `retry` count.
    pub(super) fn poll(&mut self, input: &mut Input) -> Result<Option<SseEvent>, TooLong> {
        while let Some(front) = input.front() {
            if mem::take(&mut self.cr) && front[0] == b'\n' {
                input.skip(1);
                continue;
            }
            if self.line.is_empty() && front[0] == b':' {
                self.comment = true;
            }
            let end = memchr::memchr2(b'\r', b'\n', front);
            let count = end.unwrap_or(front.len());
            if !self.comment {
                let held =
                    self.line.len() + self.data.len() + self.event.len() + self.id.as_ref().map_or(0, String::len);
                if held + count > self.max_event {
                    return Err(TooLong);
                }
                self.line.extend_from_slice(&front[..count]);
            }
            self.cr = end.is_some_and(|at| front[at] == b'\r');
            input.skip(count + usize::from(end.is_some()));
            if end.is_some()
                && let Some(event) = self.end_line()
            {
                return Ok(Some(event));
            }
        }
        Ok(None)
    }

    /// The stream has ended. The event that is not finished is discarded; but a `retry` counts from its own line on.
    pub(super) fn end(&mut self) -> Option<SseEvent> {
        let retry = self.retry.take()?;
        Some(SseEvent { id: None, retry: Some(retry), data: Data::None })
    }

    fn end_line(&mut self) -> Option<SseEvent> {
        let mut line = mem::take(&mut self.line);
        let event = if mem::take(&mut self.comment) {
            None
        } else {
            let bom: &[u8] = if self.first { b"\xEF\xBB\xBF" } else { b"" };
            let text = line.strip_prefix(bom).unwrap_or(&line);
            if text.is_empty() {
                self.dispatch()
            } else {
                self.field(text);
                None
            }
        };
        self.first = false;
        // The buffer serves the next line, unless it is large.
        if line.capacity() <= super::input::LARGE {
            line.clear();
            self.line = line;
        }
        event
    }

    fn field(&mut self, line: &[u8]) {
        let (name, value) = match memchr::memchr(b':', line) {
            Some(0) => return,
            Some(colon) => (&line[..colon], &line[colon + 1..]),
            None => (line, &[][..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match name {
            b"data" => {
                self.data.extend_from_slice(value);
                self.data.push(b'\n');
            }
            b"event" => self.event = String::from_utf8_lossy(value).into_owned(),
            b"id" if memchr::memchr(0, value).is_none() => self.id = Some(String::from_utf8_lossy(value).into_owned()),
            b"retry" if !value.is_empty() && value.iter().all(u8::is_ascii_digit) => {
                let digit = |n: u64, d: &u8| n.saturating_mul(10).saturating_add(u64::from(d - b'0'));
                self.retry = Some(Duration::from_millis(value.iter().fold(0, digit)));
            }
            _ => return,
        }
        self.any = true;
    }

    fn dispatch(&mut self) -> Option<SseEvent> {
        let event = mem::take(&mut self.event);
        let mut data = mem::take(&mut self.data);
        let (id, retry) = (self.id.take(), self.retry.take());
        if !mem::take(&mut self.any) {
            return None;
        }
        data.pop();
        let data = Bytes::from(data);
        let data = if data.is_empty() {
            Data::None
        } else if !matches!(event.as_str(), "" | "message") {
            Data::Other { event, data }
        } else {
            match rpc::parse(data, self.max_depth) {
                Ok(message) => Data::Message(message),
                Err(defect) => Data::Bad(defect),
            }
        };
        Some(SseEvent { id, retry, data })
    }
}
