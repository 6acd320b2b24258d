//! Decodes the body of an HTTP request or response, without its transfer and content codings.

use super::input::{BOM, ByteQueue, LARGE};
use super::sse::{EventDecoder, EventFault};
use super::work::{MAX_IDLE, Work};
use crate::exchange::{Headers, Inbound, RequestHead, ResponseHead};
use crate::limits::FrameLimits;
use crate::rpc;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use bytes::Bytes;
use core::mem;

/// Decodes the body of one HTTP message: bytes, split in any way, with its `Content-Type`, into the
/// [`Inbound`] parts of its exchange. For applications with their own HTTP stack, which decodes the
/// content coding, if there is one.
///
/// * `application/json`: one [`Inbound::Message`], [`Inbound::Batch`] or [`Inbound::Invalid`] at
///   its end. One byte-order mark at its start is ignored (RFC 8259 section 8.1). In a response
///   whose status is not 2xx, a body that is not a message is one [`Inbound::Body`], as for an
///   error page. An empty body of a response has no part.
/// * `text/event-stream`, in a response: [`Inbound::Event`]s and [`Inbound::Comment`]s.
/// * any other type: [`Inbound::Body`] pieces.
///
/// [`Inbound::End`] follows.
///
/// ```
/// use mcp_proto::exchange::{Headers, Inbound, ResponseHead};
/// use mcp_proto::frame::BodyDecoder;
/// use mcp_proto::limits::FrameLimits;
///
/// let headers = Headers::new().with("content-type", "text/event-stream");
/// let head = ResponseHead { status: 200, headers };
/// let mut body = BodyDecoder::of_response(&head, &FrameLimits::default());
/// body.bytes("data: {\"jsonrpc\":\"2.0\",".into());
/// assert_eq!(body.poll_item(), None);
/// body.bytes("\"method\":\"m\"}\n\n".into());
/// assert!(matches!(body.poll_item(), Some(Inbound::Event(_))));
/// body.end();
/// assert_eq!(body.poll_item(), Some(Inbound::End));
/// ```
#[derive(Debug)]
pub struct BodyDecoder {
    input: ByteQueue,
    content: BodyContent,
    limits: Arc<FrameLimits>,
    /// Bytes that may still arrive. An event stream has a limit for each event instead.
    room: usize,
    ended: bool,
    done: bool,
    broken: Option<String>,
}

/// The content, by its media type.
#[derive(Debug)]
enum BodyContent {
    /// The JSON text so far, and the HTTP message that it is from.
    Json(JsonText, JsonOrigin),
    Events(Box<EventDecoder>),
    Other,
}

/// A text that arrives in pieces. A large one that arrives in one piece is not copied.
#[derive(Debug, Default)]
struct JsonText {
    whole: Bytes,
    joined: Vec<u8>,
}

/// The HTTP message that a JSON text is from. It decides how a text that is no JSON-RPC message is
/// treated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum JsonOrigin {
    Request,
    Success,
    Failure,
}

impl BodyDecoder {
    /// Creates a decoder for the body of this request, which may have at most
    /// [`FrameLimits::max_request_body`] bytes.
    pub fn of_request(head: &RequestHead, limits: &FrameLimits) -> Self {
        Self::request(head, &Arc::new(limits.clone()))
    }

    /// Like [`of_request`](Self::of_request), with limits that are not copied.
    pub(super) fn request(head: &RequestHead, limits: &Arc<FrameLimits>) -> Self {
        let content = match media_type(&head.headers) {
            Media::Json => BodyContent::Json(JsonText::default(), JsonOrigin::Request),
            _ => BodyContent::Other,
        };
        Self::new(content, limits.max_request_body, limits)
    }

    /// Creates a decoder for the body of this response, which may have at most
    /// [`FrameLimits::max_response_body`] bytes. An event stream has no maximum, but each event has
    /// at most [`FrameLimits::max_event`] bytes, and at most 16 MiB that belong to no event come
    /// between two of them: blank lines, comments, unknown fields.
    pub fn of_response(head: &ResponseHead, limits: &FrameLimits) -> Self {
        Self::response(head, &Arc::new(limits.clone()))
    }

    /// Like [`of_response`](Self::of_response), with limits that are not copied.
    pub(super) fn response(head: &ResponseHead, limits: &Arc<FrameLimits>) -> Self {
        let content = match media_type(&head.headers) {
            Media::Json => {
                let is_success = (200..300).contains(&head.status);
                let origin = if is_success { JsonOrigin::Success } else { JsonOrigin::Failure };
                BodyContent::Json(JsonText::default(), origin)
            }
            Media::EventStream => BodyContent::Events(Box::new(EventDecoder::new(Arc::clone(limits)))),
            Media::Other => BodyContent::Other,
        };
        Self::new(content, limits.max_response_body, limits)
    }

    /// Creates a decoder for the body of a response that is read as bytes.
    pub(super) fn raw_response(limits: &Arc<FrameLimits>) -> Self {
        Self::new(BodyContent::Other, limits.max_response_body, limits)
    }

    /// Creates a decoder for an absent body, whatever the type.
    pub(super) fn none(limits: &Arc<FrameLimits>) -> Self {
        Self::new(BodyContent::Other, 0, limits)
    }

    fn new(content: BodyContent, room: usize, limits: &Arc<FrameLimits>) -> Self {
        let limits = Arc::clone(limits);
        Self { input: ByteQueue::default(), content, limits, room, ended: false, done: false, broken: None }
    }

    /// Returns whether the body is an event stream.
    pub fn is_event_stream(&self) -> bool {
        matches!(self.content, BodyContent::Events(_))
    }

    /// Returns whether [`read`](Self::read) takes the next `count` bytes. `is_rest`: they are all
    /// that is left of the body.
    pub(super) fn reads(&self, count: usize, is_rest: bool) -> bool {
        match &self.content {
            BodyContent::Events(_) => self.input.is_empty(),
            BodyContent::Json(text, _) => {
                is_rest && count < LARGE && count <= self.room && text.is_empty() && self.input.is_empty()
            }
            BodyContent::Other => false,
        }
    }

    /// Reads bytes without keeping them, and removes them from `rest`: the lines of an event
    /// stream, or a small JSON text that is all of the body. Returns the part that they complete.
    pub(super) fn read(&mut self, rest: &mut &[u8], work: &mut Work) -> Option<Inbound> {
        match &mut self.content {
            BodyContent::Events(events) => match events.read(rest, work) {
                Ok(item) => item,
                Err(fault) => self.event_fault(fault),
            },
            BodyContent::Json(_, origin) => {
                let (text, origin) = (mem::take(rest), mem::replace(origin, JsonOrigin::Success));
                self.room = 0;
                let json = text.strip_prefix(BOM).unwrap_or(text);
                Some(self.item(rpc::parse_small(json, &self.limits), origin, || Bytes::copy_from_slice(text)))
            }
            BodyContent::Other => None,
        }
    }

    /// Adds the next bytes. Large ones may be kept alive instead of being copied. Drops them after
    /// [`end`](Self::end) and once [`broken`](Self::broken).
    pub fn bytes(&mut self, bytes: Bytes) {
        if self.ended || self.broken.is_some() {
            return;
        }
        if let BodyContent::Events(events) = &mut self.content
            && self.input.is_empty()
            && is_few(&bytes)
        {
            // A peer that sends single bytes needs no queue for them.
            if let Err(fault) = events.read_within_line(&bytes) {
                self.event_fault(fault);
            }
            return;
        }
        self.input.push(bytes);
    }

    /// Reports the regular end of the body. Do not call it for a truncated body: drop the decoder
    /// instead.
    pub fn end(&mut self) {
        self.ended = true;
    }

    /// Returns the part of a truncated body that still counts.
    pub(super) fn cut(&mut self) -> Option<Inbound> {
        match &mut self.content {
            BodyContent::Events(events) => events.end(),
            BodyContent::Json(..) | BodyContent::Other => None,
        }
    }

    /// Returns the next part.
    pub fn poll_item(&mut self) -> Option<Inbound> {
        self.poll_within(&mut Work::unlimited())
    }

    /// Returns the next part. `None` also if the work is done before it. Only the lines of an event
    /// stream count as work.
    pub(super) fn poll_within(&mut self, work: &mut Work) -> Option<Inbound> {
        if self.broken.is_some() || self.input.is_empty() && !self.ended {
            return None;
        }
        let item = match &mut self.content {
            BodyContent::Events(events) => {
                while let Some(mut rest) = self.input.front() {
                    let len = rest.len();
                    let item = match events.read(&mut rest, work) {
                        Ok(item) => item,
                        Err(fault) => return self.event_fault(fault),
                    };
                    let count = len - rest.len();
                    self.input.skip(count);
                    if item.is_some() || work.is_stopped() {
                        return item;
                    }
                }
                None
            }
            BodyContent::Json(text, _) => {
                while let Some(front) = self.input.front() {
                    let count = front.len();
                    if count > self.room {
                        return self.too_long();
                    }
                    self.room -= count;
                    text.push(&mut self.input);
                }
                None
            }
            BodyContent::Other => match self.input.front().map(<[u8]>::len) {
                Some(_) if self.room == 0 => return self.too_long(),
                Some(count) => {
                    // The part that fits is returned before the body breaks, as it would have been
                    // if it had arrived alone.
                    let count = count.min(self.room);
                    self.room -= count;
                    Some(Inbound::Body(self.input.take(count)))
                }
                None => None,
            },
        };
        if item.is_some() || !self.ended || self.done || !self.input.is_empty() {
            return item;
        }
        if let Some(item) = self.last_item() {
            return Some(item);
        }
        self.done = true;
        Some(Inbound::End)
    }

    /// Returns a part that only the end of the body completes.
    fn last_item(&mut self) -> Option<Inbound> {
        match &mut self.content {
            BodyContent::Events(events) => events.end(),
            BodyContent::Json(text, kind) => {
                let (text, kind) = (mem::take(text), mem::replace(kind, JsonOrigin::Success));
                self.json(text.into_bytes(), kind)
            }
            BodyContent::Other => None,
        }
    }

    /// Returns the reason, once the body exceeds a limit. No part follows then.
    pub fn broken(&self) -> Option<&String> {
        self.broken.as_ref()
    }

    /// Returns the number of bytes that are held and not parsed.
    pub fn buffered(&self) -> usize {
        let held = match &self.content {
            BodyContent::Json(text, _) => text.whole.len() + text.joined.capacity(),
            BodyContent::Events(events) => events.buffered(),
            BodyContent::Other => 0,
        };
        self.input.held() + held
    }

    fn json(&self, text: Bytes, kind: JsonOrigin) -> Option<Inbound> {
        if text.is_empty() && kind != JsonOrigin::Request {
            return None;
        }
        let json = if text.starts_with(BOM) { text.slice(BOM.len()..) } else { text.clone() };
        Some(self.item(rpc::parse_batch_or_message(json, &self.limits), kind, || text))
    }

    /// Returns the part for a JSON text that was parsed.
    fn item(
        &self,
        parsed: Result<rpc::Document, rpc::InvalidMessage>,
        origin: JsonOrigin,
        text: impl FnOnce() -> Bytes,
    ) -> Inbound {
        match Inbound::from(parsed) {
            Inbound::Invalid(_) if origin == JsonOrigin::Failure => Inbound::Body(text()),
            item => item,
        }
    }

    fn too_long(&mut self) -> Option<Inbound> {
        self.fail("the body is larger than the limit".into())
    }

    fn event_fault(&mut self, fault: EventFault) -> Option<Inbound> {
        self.fail(match fault {
            EventFault::TooLong => format!("an event is larger than {} bytes", self.limits.max_event),
            EventFault::None => format!("the event stream has no event in {MAX_IDLE} bytes"),
        })
    }

    fn fail(&mut self, why: String) -> Option<Inbound> {
        self.input.clear();
        self.content = BodyContent::Other;
        self.broken = Some(why);
        None
    }
}

impl JsonText {
    fn is_empty(&self) -> bool {
        self.whole.is_empty() && self.joined.is_empty()
    }

    /// Moves the next buffer of a queue to the end of the text.
    fn push(&mut self, input: &mut ByteQueue) {
        let Some(front) = input.front() else { return };
        let count = front.len();
        if self.is_empty() && count >= LARGE {
            self.whole = input.take(count);
            return;
        }
        self.joined.extend_from_slice(&mem::take(&mut self.whole));
        self.joined.extend_from_slice(front);
        input.skip(count);
    }

    fn into_bytes(self) -> Bytes {
        if self.whole.is_empty() { self.joined.into() } else { self.whole }
    }
}

/// Returns whether bytes end no line, and are so few that the search for a line end is cheap.
fn is_few(bytes: &[u8]) -> bool {
    matches!(bytes.len(), 1..=8) && !bytes.iter().any(|byte| matches!(byte, b'\r' | b'\n'))
}

/// The type of a body, from its `Content-Type`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Media {
    Json,
    EventStream,
    Other,
}

/// Media types compare without case and without their parameters (RFC 9110 section 8.3.1).
pub(crate) fn media_type(headers: &Headers) -> Media {
    media_of(headers.get("Content-Type").unwrap_or_default())
}

/// Returns the media type of one value of `Content-Type`.
pub(crate) fn media_of(value: &str) -> Media {
    match value {
        // Most peers send these.
        "application/json" => Media::Json,
        "text/event-stream" => Media::EventStream,
        value => {
            let essence = value.split(';').next().unwrap_or_default().trim();
            if essence.eq_ignore_ascii_case("application/json") {
                Media::Json
            } else if essence.eq_ignore_ascii_case("text/event-stream") {
                Media::EventStream
            } else {
                Media::Other
            }
        }
    }
}
