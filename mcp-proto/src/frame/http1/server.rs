//! The server side: request heads and bodies in, responses out.

use super::super::coding::{self, Decoder};
use super::head::{self, Gather, GivenFields, OwnFields, defect};
use super::length::{DeclaredLength, Length, declared};
use super::{BodyDecoder, BodyError, BodyGate, FramedBody, MessageReader, ReadState};
use crate::exchange::{self, BadRequest, Headers, Inbound, Outbound, RequestHead, ResponseHead};
use crate::frame::body::{Media, media_type};
use crate::frame::conn::write;
use crate::frame::input::LARGE;
use crate::frame::sse;
use crate::frame::work::Work;
use crate::http_support::HttpSupport;
use crate::limits::FrameLimits;
use crate::short_queue::ShortQueue;
use alloc::format;
use alloc::sync::Arc;
use alloc::vec::Vec;
use bytes::Bytes;
use core::mem;

/// The codec of a connection of a server.
#[derive(Debug)]
pub(in crate::frame) struct ServerCodec {
    _support: HttpSupport,
    pub(in crate::frame) reader: MessageReader,
    /// Whether the body of a request is read only after `Continue`.
    holding: bool,
    request: ReceivedRequest,
    keep_alive: bool,
    response: ResponseState,
}

/// What the latest request means for its response.
#[derive(Debug, Default)]
struct ReceivedRequest {
    /// It is HTTP/1.0, which has no chunks.
    old: bool,
    body: WantedBody,
}

/// The body that a client wants.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum WantedBody {
    #[default]
    Plain,
    /// It takes it also in gzip.
    Gzip,
    /// None: the request is a `HEAD`.
    None,
}

/// The response that is being written, with the framing of its parts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ResponseState {
    /// None is.
    Idle,
    /// One is, whose body must not be written.
    Silent,
    Chunked,
    /// Up to the end of the connection, for HTTP/1.0.
    Close,
}

/// The first byte of a client that begins with TLS (RFC 8446 section 5.1).
const HANDSHAKE: u8 = 22;
const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";
const TLS: &str = "the client speaks TLS, and this port plain HTTP";

impl ServerCodec {
    pub(in crate::frame) fn new(limits: Arc<FrameLimits>, support: HttpSupport) -> Self {
        Self {
            _support: support,
            reader: MessageReader::new(limits, ReadState::Head(Gather::default())),
            holding: false,
            request: ReceivedRequest::default(),
            keep_alive: true,
            response: ResponseState::Idle,
        }
    }

    pub(in crate::frame) fn set_holding(&mut self, holding: bool) {
        self.holding = holding;
    }

    fn gate(&self) -> BodyGate {
        match &self.reader.state {
            ReadState::Body(framed) => framed.gate,
            _ => BodyGate::Open,
        }
    }

    pub(in crate::frame) fn is_held(&self) -> bool {
        matches!(self.gate(), BodyGate::Held { .. })
    }

    pub(in crate::frame) fn expects(&self) -> bool {
        matches!(self.gate(), BodyGate::Held { expects: true } | BodyGate::Expected)
    }

    pub(in crate::frame) fn at_boundary(&self) -> bool {
        match &self.reader.state {
            ReadState::Head(gather) => gather.is_blank() && self.reader.input.is_empty(),
            ReadState::Body(_) => false,
            ReadState::Idle | ReadState::Rejected | ReadState::Broken(_) => true,
        }
    }

    pub(in crate::frame) fn is_streaming(&self) -> bool {
        self.response != ResponseState::Idle
    }

    pub(in crate::frame) fn keep_alive(&self) -> bool {
        self.keep_alive && self.reader.may_read()
    }

    pub(in crate::frame) fn poll_item(&mut self, out: &mut ShortQueue<Bytes>, work: &mut Work) -> Option<Inbound> {
        let reader = &mut self.reader;
        match &mut reader.state {
            ReadState::Idle | ReadState::Rejected | ReadState::Broken(_) => None,
            ReadState::Head(gather) => {
                let first = reader.input.front().and_then(|front| front.first());
                if first != Some(&HANDSHAKE)
                    && let Some(len) = gather.whole_request(&reader.input, &reader.limits)
                {
                    let mut input = mem::take(&mut reader.input);
                    let begun = self.begin(input.front().and_then(|front| front.get(..len)).unwrap_or_default());
                    input.skip(len);
                    self.reader.input = input;
                    return Some(begun.unwrap_or_else(|defect| self.reject(defect)));
                }
                self.poll_head()
            }
            ReadState::Body(framed) => {
                match framed.gate {
                    BodyGate::Held { .. } => return None,
                    // Not before: a server that responds to the head alone does not read the body.
                    BodyGate::Expected => out.push_back(Bytes::from_static(CONTINUE)),
                    BodyGate::Open => {}
                }
                framed.gate = BodyGate::Open;
                match framed.poll_item(&mut reader.input, reader.eof, work) {
                    Ok(Some(Inbound::End)) => {
                        reader.state = ReadState::Head(Gather::default());
                        Some(Inbound::End)
                    }
                    Ok(item) => item,
                    Err(BodyError::Limit(_)) => Some(self.reject(defect(413, "the body is larger than the limit"))),
                    Err(BodyError::Cut) => self.cut("the request body is cut short"),
                    Err(BodyError::Framing(why)) => Some(self.reject(defect(400, why))),
                }
            }
        }
    }

    /// Parses a head that arrives in pieces, or is wrong.
    fn poll_head(&mut self) -> Option<Inbound> {
        let reader = &mut self.reader;
        let ReadState::Head(gather) = &mut reader.state else { return None };
        match gather.poll_request(&mut reader.input, &reader.limits) {
            Ok(Some(head)) if head.first() == Some(&HANDSHAKE) => Some(self.give_up(defect(400, TLS))),
            Ok(None) | Err(_) if gather.first() == Some(HANDSHAKE) => Some(self.give_up(defect(400, TLS))),
            Ok(Some(head)) => Some(self.begin(&head).unwrap_or_else(|defect| self.reject(defect))),
            Ok(None) if reader.eof && !self.at_boundary() => self.cut("the request head is cut short"),
            Ok(None) => None,
            Err(defect) => Some(self.give_up(defect)),
        }
    }

    fn begin(&mut self, bytes: &[u8]) -> Result<Inbound, BadRequest> {
        self.request = ReceivedRequest::default();
        let MessageReader { limits, coding, state, .. } = &mut self.reader;
        let (line, mut headers) = head::read_request(bytes, limits)?;
        let (old, method) = (line.old, line.method.clone());
        self.request.old = old;
        if method == "HEAD" {
            self.request.body = WantedBody::None;
        }
        self.keep_alive = head::persists(&headers, old);
        let target = head::path_of(line, &mut headers)?;
        if old && headers.get("upgrade").is_some() {
            // HTTP/1.0 cannot switch protocols, and such a field is ignored (RFC 9110 section 7.8).
            let others = headers.iter().filter(|(name, _)| !name.eq_ignore_ascii_case("upgrade"));
            headers = others.fold(Headers::new(), |all, (name, value)| all.with(name, value));
        }
        if method != "HEAD" && coding.is_some() && coding::takes_gzip(&headers) {
            self.request.body = WantedBody::Gzip;
        }
        let Ok(coded) = head::content_coding(&headers, *coding) else {
            return Err(defect(415, "the body has a content-encoding"));
        };
        let length = match declared(&headers, old) {
            DeclaredLength::Known(length) if length > limits.max_request_body as u64 => {
                return Err(defect(413, "the body is larger than the limit"));
            }
            DeclaredLength::Known(length) => Length::Known(length),
            DeclaredLength::Chunked => Length::chunked_request(),
            DeclaredLength::Nothing if matches!(&*method, "POST" | "PUT" | "PATCH") => {
                return Err(defect(411, "the length of the body is missing"));
            }
            DeclaredLength::Nothing => Length::Known(0),
            DeclaredLength::Unknown => return Err(defect(501, "the transfer-encoding is not known")),
            DeclaredLength::Unfinished => return Err(defect(400, "the last transfer-encoding is not chunked")),
            DeclaredLength::Invalid(why) => return Err(defect(400, why)),
        };
        let mut expects = false;
        for expectation in head::members(&headers, "expect").filter(|_| !old) {
            if !expectation.eq_ignore_ascii_case("100-continue") {
                return Err(defect(417, "the expectation is not known"));
            }
            expects = !matches!(length, Length::Known(0));
        }
        let request = RequestHead { method, target, headers };
        let empty = matches!(length, Length::Known(0)) && request.method != "POST";
        // For an empty body, the type does not matter.
        let body = if empty { BodyDecoder::none(limits) } else { BodyDecoder::request(&request, limits) };
        let decoder = coded.map(|(coding, support)| Decoder::new(coding, support));
        let gate = match (self.holding, expects) {
            (true, expects) => BodyGate::Held { expects },
            (false, true) => BodyGate::Expected,
            (false, false) => BodyGate::Open,
        };
        *state = ReadState::Body(FramedBody::new(gate, length, decoder, body));
        Ok(Inbound::Request(request))
    }

    /// Rejects the request that was received in part. If its head is incomplete, nothing is known
    /// of it.
    pub(in crate::frame) fn give_up(&mut self, defect: BadRequest) -> Inbound {
        if matches!(self.reader.state, ReadState::Head(_)) {
            self.request = ReceivedRequest::default();
        }
        self.reject(defect)
    }

    fn reject(&mut self, defect: BadRequest) -> Inbound {
        self.reader.stop(ReadState::Rejected);
        Inbound::Reject(defect)
    }

    fn cut(&mut self, why: &str) -> Option<Inbound> {
        self.reader.stop(ReadState::Broken(why.into()));
        None
    }

    /// The error names a part that cannot be sent at this point.
    pub(in crate::frame) fn encode(
        &mut self,
        outgoing: Outbound,
        out: &mut ShortQueue<Bytes>,
    ) -> Result<(), &'static str> {
        match outgoing {
            Outbound::Response { .. } if self.response != ResponseState::Idle => {
                return Err("a response inside a stream");
            }
            Outbound::Response { head, body } => self.respond(&head, body, out),
            Outbound::Event { .. } | Outbound::Comment(_) | Outbound::End if self.response == ResponseState::Idle => {
                return Err("a part of a stream without its response");
            }
            Outbound::Event { event, id, retry, data } => {
                let clean = memchr::memchr2(b'\r', b'\n', &data).is_none();
                if data.len() >= LARGE && clean {
                    let before = sse::event_head(event, id.as_deref(), retry);
                    self.chunk(&[before.into(), data, Bytes::from_static(b"\n\n")], out);
                } else {
                    self.chunk(&[sse::encode_event(event, id.as_deref(), retry, &data)], out);
                }
            }
            Outbound::Continue => {
                if let ReadState::Body(framed) = &mut self.reader.state
                    && let BodyGate::Held { expects } = framed.gate
                {
                    framed.gate = BodyGate::Open;
                    out.extend(expects.then(|| Bytes::from_static(CONTINUE)));
                }
            }
            Outbound::Comment(text) => self.chunk(&[sse::encode_comment(&text)], out),
            Outbound::End => {
                if self.response == ResponseState::Chunked {
                    out.push_back(Bytes::from_static(b"0\r\n\r\n"));
                }
                self.response = ResponseState::Idle;
            }
            Outbound::Message(_) => return Err("a message outside a response"),
            Outbound::Request { .. } => return Err("a request on a server"),
        }
        Ok(())
    }

    /// Switches protocols with this response. Returns the bytes after the request.
    pub(in crate::frame) fn switch(
        &mut self,
        response: &ResponseHead,
        out: &mut ShortQueue<Bytes>,
    ) -> Result<(impl Iterator<Item = Bytes> + use<>, Arc<FrameLimits>), &'static str> {
        let is_free = self.response == ResponseState::Idle && matches!(self.reader.state, ReadState::Head(_));
        let Some(fields) = GivenFields::new(&response.headers).filter(|_| is_free) else {
            return Err("a switch of protocols inside a request");
        };
        let own = OwnFields { connection: head::UPGRADE, ..OwnFields::default() };
        head::write_head(out, &["HTTP/1.1 101 Switching Protocols"], &fields, &own, Bytes::new());
        Ok((self.reader.take_rest(), Arc::clone(&self.reader.limits)))
    }

    /// Drops a body that is held back and has arrived as a whole. The connection can go on then.
    fn drop_held_body(&mut self) {
        if let ReadState::Body(framed) = &self.reader.state
            && matches!(framed.gate, BodyGate::Held { .. })
            && let Length::Known(length) = framed.length
            && self.reader.input.drop_first(length)
        {
            self.reader.state = ReadState::Head(Gather::default());
        }
    }

    fn respond(&mut self, response: &ResponseHead, body: exchange::Body, out: &mut ShortQueue<Bytes>) {
        self.drop_held_body();
        let unread = !matches!(self.reader.state, ReadState::Head(_));
        if let ReadState::Body(framed) = &mut self.reader.state {
            // The response tells the client that its wait is over.
            framed.gate = match framed.gate {
                BodyGate::Held { .. } => BodyGate::Held { expects: false },
                BodyGate::Expected | BodyGate::Open => BodyGate::Open,
            };
        }
        if unread || self.reader.eof || head::has_token(&response.headers, "connection", "close") {
            self.keep_alive = false;
        }
        let streams = body == exchange::Body::Stream;
        if streams && self.request.old {
            self.keep_alive = false;
        }
        let fields = GivenFields::new(&response.headers).filter(|_| (200..1000).contains(&response.status));
        let Some(fields) = fields else {
            self.keep_alive = false;
            // The events of that response must not be written.
            self.response = if streams { ResponseState::Silent } else { ResponseState::Idle };
            let own = OwnFields { length: Some(0), connection: head::CLOSE, ..OwnFields::default() };
            return head::write_head(out, &["HTTP/1.1 500 ", reason(500)], &GivenFields::NONE, &own, Bytes::new());
        };
        let bodiless = matches!(response.status, 204 | 304);
        let mut own = OwnFields::default();
        let body = self.compress(response, body, bodiless, &mut own);
        let full = self.declare_body(body, bodiless, &mut own);
        match (self.keep_alive, self.request.old) {
            (false, _) => own.connection = head::CLOSE,
            // It is the default of HTTP/1.1, but some proxies keep an idle stream open only if they
            // see it.
            (true, old) if old || streams => own.connection = "connection: keep-alive\r\n",
            (true, _) => {}
        }
        if response.headers.get("upgrade").is_some() {
            own.connection = if self.keep_alive { head::UPGRADE } else { "connection: close, upgrade\r\n" };
        }
        let digits = [100, 10, 1].map(|place| b'0' + (response.status / place % 10) as u8);
        let status = core::str::from_utf8(&digits).unwrap_or_default();
        let first_line = ["HTTP/1.1 ", status, " ", reason(response.status)];
        head::write_head(out, &first_line, &fields, &own, full);
    }

    /// Returns the body in gzip if it is JSON, large enough, and the client takes it. Never one in
    /// parts: each would wait for the next.
    fn compress(
        &self,
        response: &ResponseHead,
        body: exchange::Body,
        bodiless: bool,
        own: &mut OwnFields,
    ) -> exchange::Body {
        let Some(support) = self.reader.coding.filter(|_| self.request.body == WantedBody::Gzip && !bodiless) else {
            return body;
        };
        let exchange::Body::Full(text) = body else { return body };
        let is_open = media_type(&response.headers) == Media::Json
            && response.headers.get("content-encoding").is_none()
            && !head::has_token(&response.headers, "cache-control", "no-transform");
        match Some(support).filter(|_| is_open).and_then(|support| coding::gzip(&text, support)) {
            Some(coded) => {
                own.coding = "content-encoding: gzip\r\nvary: accept-encoding\r\n";
                exchange::Body::Full(coded)
            }
            None => exchange::Body::Full(text),
        }
    }

    /// Sets the field for the length of the body, and the framing of its parts. Returns the
    /// bytes of a body that is complete already.
    fn declare_body(&mut self, body: exchange::Body, bodiless: bool, own: &mut OwnFields) -> Bytes {
        self.response = ResponseState::Idle;
        match body {
            exchange::Body::Full(body) if !bodiless => {
                own.length = Some(body.len());
                if self.request.body != WantedBody::None {
                    return body;
                }
            }
            exchange::Body::Full(_) => {}
            exchange::Body::Stream if !bodiless && !self.request.old => {
                own.coding = "transfer-encoding: chunked\r\n";
                self.response =
                    if self.request.body == WantedBody::None { ResponseState::Silent } else { ResponseState::Chunked };
            }
            exchange::Body::Stream if bodiless || self.request.body == WantedBody::None => {
                self.response = ResponseState::Silent
            }
            exchange::Body::Stream => self.response = ResponseState::Close,
            exchange::Body::WebSocket(_) => {}
        }
        Bytes::new()
    }

    /// Writes the parts as one chunk.
    fn chunk(&self, parts: &[Bytes], out: &mut ShortQueue<Bytes>) {
        let chunked = match self.response {
            ResponseState::Idle | ResponseState::Silent => return,
            ResponseState::Chunked => true,
            ResponseState::Close => false,
        };
        let length: usize = parts.iter().map(Bytes::len).sum();
        let mut before = if chunked { format!("{length:x}\r\n").into_bytes() } else { Vec::new() };
        let after: &'static [u8] = if chunked { b"\r\n" } else { b"" };
        match parts {
            [whole] => write(out, before, whole.clone(), after),
            _ => {
                before.extend_from_slice(&parts[0]);
                out.push_back(before.into());
                out.extend(parts[1..].iter().cloned());
                out.extend((!after.is_empty()).then(|| Bytes::from_static(after)));
            }
        }
    }
}

/// Returns the reason phrase, which has no meaning and helps people. Empty for a status that this
/// crate does not use.
fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        202 => "Accepted",
        204 => "No Content",
        304 => "Not Modified",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        406 => "Not Acceptable",
        408 => "Request Timeout",
        409 => "Conflict",
        411 => "Length Required",
        413 => "Content Too Large",
        414 => "URI Too Long",
        415 => "Unsupported Media Type",
        417 => "Expectation Failed",
        426 => "Upgrade Required",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        503 => "Service Unavailable",
        505 => "HTTP Version Not Supported",
        _ => "",
    }
}
