//! The server side: request heads and bodies in, responses out.

use super::super::coding::{self, Decoder, GzipSupport};
use super::head::{self, Gather, GivenFields, OwnFields, defect};
use super::length::{Declared, Length, declared};
use super::{BodyDecoder, BodyError, ByteQueue, Framed};
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
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use bytes::Bytes;
use core::mem;

/// The codec of a connection of a server.
#[derive(Debug)]
pub(in super::super) struct ServerCodec {
    _support: HttpSupport,
    /// Content codings, if they are used.
    coding: Option<GzipSupport>,
    limits: Arc<FrameLimits>,
    input: ByteQueue,
    reading: RequestReading,
    eof: bool,
    broken: Option<String>,
    /// The current request is HTTP/1.0, which has no chunks.
    old: bool,
    /// The client takes a response to the current request in gzip.
    takes_gzip: bool,
    /// The response to the current request has no body.
    head_only: bool,
    keep_alive: bool,
    stream: ResponseFraming,
    /// Whether the body of a request is read only after `Continue`.
    holding: bool,
    /// The body of the current request is held back.
    held: bool,
    /// The client waits for `100 Continue`.
    expects: bool,
}

#[derive(Debug)]
enum RequestReading {
    Head(Gather),
    Body(Framed),
    /// After a `Reject`: no byte that follows can be trusted.
    Nothing,
}

/// The framing of the current streamed response.
#[derive(Debug, PartialEq)]
enum ResponseFraming {
    /// No response is streaming.
    None,
    /// A response is streaming, and its body must not be written.
    Silent,
    Chunked,
    /// Up to the end of the connection, for HTTP/1.0.
    Close,
}

/// The first byte of a client that begins with TLS (RFC 8446 section 5.1).
const HANDSHAKE: u8 = 22;
const TLS: &str = "the client speaks TLS, and this port plain HTTP";

impl ServerCodec {
    pub(in super::super) fn new(limits: Arc<FrameLimits>, support: HttpSupport) -> Self {
        Self {
            _support: support,
            coding: GzipSupport::get(),
            takes_gzip: false,
            limits,
            input: ByteQueue::default(),
            reading: RequestReading::Head(Gather::default()),
            eof: false,
            broken: None,
            old: false,
            head_only: false,
            keep_alive: true,
            stream: ResponseFraming::None,
            holding: false,
            held: false,
            expects: false,
        }
    }

    /// Sets whether bodies may have a content coding.
    pub(in super::super) fn set_coding(&mut self, on: bool) {
        self.coding = GzipSupport::get().filter(|_| on);
    }

    pub(in super::super) fn set_holding(&mut self, holding: bool) {
        self.holding = holding;
    }

    pub(in super::super) fn is_held(&self) -> bool {
        self.held
    }

    pub(in super::super) fn expects(&self) -> bool {
        self.expects
    }

    pub(in super::super) fn bytes(&mut self, bytes: Bytes) {
        if !self.eof && self.broken.is_none() && !matches!(self.reading, RequestReading::Nothing) {
            self.input.push(bytes);
        }
    }

    pub(in super::super) fn eof(&mut self) {
        self.eof = true;
    }

    /// Returns whether the peer sends nothing more, as far as was reported.
    pub(in super::super) fn is_eof(&self) -> bool {
        self.eof
    }

    pub(in super::super) fn broken(&self) -> Option<&String> {
        self.broken.as_ref()
    }

    pub(in super::super) fn buffered(&self) -> usize {
        self.input.held()
            + match &self.reading {
                RequestReading::Head(gather) => gather.buffered(),
                RequestReading::Body(framed) => framed.buffered(),
                RequestReading::Nothing => 0,
            }
    }

    /// Returns the number of content bytes of the current body that were read since the last call.
    pub(in super::super) fn take_content(&mut self) -> usize {
        match &mut self.reading {
            RequestReading::Body(framed) => framed.take_content(),
            _ => 0,
        }
    }

    pub(in super::super) fn at_boundary(&self) -> bool {
        match &self.reading {
            RequestReading::Head(gather) => gather.is_blank() && self.input.is_empty(),
            RequestReading::Body(_) => false,
            RequestReading::Nothing => true,
        }
    }

    pub(in super::super) fn is_streaming(&self) -> bool {
        self.stream != ResponseFraming::None
    }

    pub(in super::super) fn keep_alive(&self) -> bool {
        self.keep_alive && !self.eof && self.broken.is_none() && !matches!(self.reading, RequestReading::Nothing)
    }

    pub(in super::super) fn poll_item(&mut self, out: &mut ShortQueue<Bytes>, work: &mut Work) -> Option<Inbound> {
        if self.broken.is_some() {
            return None;
        }
        if matches!(self.reading, RequestReading::Body(_)) && !self.held {
            // Not before: a server that responds to the head alone does not read the body.
            self.ask(out);
        }
        match &mut self.reading {
            RequestReading::Nothing => None,
            RequestReading::Body(_) if self.held => None,
            RequestReading::Head(gather) => {
                let first = self.input.front().and_then(|front| front.first());
                if first != Some(&HANDSHAKE)
                    && let Some(len) = gather.whole_request(&self.input, &self.limits)
                {
                    let mut input = mem::take(&mut self.input);
                    let begun = self.begin(input.front().and_then(|front| front.get(..len)).unwrap_or_default());
                    input.skip(len);
                    self.input = input;
                    return Some(begun.unwrap_or_else(|defect| self.reject(defect)));
                }
                self.poll_head()
            }
            RequestReading::Body(framed) => match framed.poll_item(&mut self.input, self.eof, work) {
                Ok(Some(Inbound::End)) => {
                    self.reading = RequestReading::Head(Gather::default());
                    Some(Inbound::End)
                }
                Ok(item) => item,
                Err(BodyError::Limit(_)) => Some(self.reject(defect(413, "the body is larger than the limit"))),
                Err(BodyError::Cut) => self.cut("the request body is cut short"),
                Err(BodyError::Framing(why)) => Some(self.reject(defect(400, why))),
            },
        }
    }

    /// Parses a head that arrives in pieces, or is wrong.
    fn poll_head(&mut self) -> Option<Inbound> {
        let RequestReading::Head(gather) = &mut self.reading else { return None };
        match gather.poll_request(&mut self.input, &self.limits) {
            Ok(Some(head)) if head.first() == Some(&HANDSHAKE) => Some(self.give_up(defect(400, TLS))),
            Ok(None) | Err(_) if gather.first() == Some(HANDSHAKE) => Some(self.give_up(defect(400, TLS))),
            Ok(Some(head)) => Some(self.begin(&head).unwrap_or_else(|defect| self.reject(defect))),
            Ok(None) if self.eof && !self.at_boundary() => self.cut("the request head is cut short"),
            Ok(None) => None,
            Err(defect) => Some(self.give_up(defect)),
        }
    }

    fn begin(&mut self, bytes: &[u8]) -> Result<Inbound, BadRequest> {
        (self.old, self.head_only, self.takes_gzip) = (false, false, false);
        let (line, mut headers) = head::read_request(bytes, &self.limits)?;
        let (old, method) = (line.old, line.method.clone());
        self.old = old;
        self.head_only = method == "HEAD";
        self.keep_alive = head::persists(&headers, old);
        let target = head::path_of(line, &mut headers)?;
        if old && headers.get("upgrade").is_some() {
            // HTTP/1.0 cannot switch protocols, and such a field is ignored (RFC 9110 section 7.8).
            let others = headers.iter().filter(|(name, _)| !name.eq_ignore_ascii_case("upgrade"));
            headers = others.fold(Headers::new(), |all, (name, value)| all.with(name, value));
        }
        self.takes_gzip = self.coding.is_some() && coding::takes_gzip(&headers);
        let Ok(coded) = head::content_coding(&headers, self.coding) else {
            return Err(defect(415, "the body has a content-encoding"));
        };
        let length = match declared(&headers, old) {
            Declared::Known(length) if length > self.limits.max_request_body as u64 => {
                return Err(defect(413, "the body is larger than the limit"));
            }
            Declared::Known(length) => Length::Known(length),
            Declared::Chunked => Length::chunked_request(),
            Declared::Nothing if matches!(&*method, "POST" | "PUT" | "PATCH") => {
                return Err(defect(411, "the length of the body is missing"));
            }
            Declared::Nothing => Length::Known(0),
            Declared::Unknown => return Err(defect(501, "the transfer-encoding is not known")),
            Declared::Unfinished => return Err(defect(400, "the last transfer-encoding is not chunked")),
            Declared::Invalid(why) => return Err(defect(400, why)),
        };
        self.expects = false;
        for expectation in head::members(&headers, "expect").filter(|_| !old) {
            if !expectation.eq_ignore_ascii_case("100-continue") {
                return Err(defect(417, "the expectation is not known"));
            }
            self.expects = !matches!(length, Length::Known(0));
        }
        let request = RequestHead { method, target, headers };
        let empty = matches!(length, Length::Known(0)) && request.method != "POST";
        // For an empty body, the type does not matter.
        let body = if empty { BodyDecoder::none(&self.limits) } else { BodyDecoder::request(&request, &self.limits) };
        let decoder = coded.map(|(coding, support)| Decoder::new(coding, support));
        self.reading = RequestReading::Body(Framed::new(length, decoder, body));
        self.held = self.holding;
        Ok(Inbound::Request(request))
    }

    /// Sends `100 Continue` to a client that waits for it (RFC 9110 section 10.1.1).
    fn ask(&mut self, out: &mut ShortQueue<Bytes>) {
        if mem::take(&mut self.expects) {
            out.push_back(Bytes::from_static(b"HTTP/1.1 100 Continue\r\n\r\n"));
        }
    }

    /// Rejects the request that was received in part. If its head is incomplete, nothing is known
    /// of it.
    pub(in super::super) fn give_up(&mut self, defect: BadRequest) -> Inbound {
        if matches!(self.reading, RequestReading::Head(_)) {
            (self.old, self.head_only, self.takes_gzip) = (false, false, false);
        }
        self.reject(defect)
    }

    fn reject(&mut self, defect: BadRequest) -> Inbound {
        self.input.clear();
        self.reading = RequestReading::Nothing;
        self.keep_alive = false;
        self.held = false;
        Inbound::Reject(defect)
    }

    fn cut(&mut self, why: &str) -> Option<Inbound> {
        self.input.clear();
        self.reading = RequestReading::Nothing;
        self.broken = Some(why.into());
        None
    }

    /// The error names a part that cannot be sent at this point.
    pub(in super::super) fn encode(
        &mut self,
        outgoing: Outbound,
        out: &mut ShortQueue<Bytes>,
    ) -> Result<(), &'static str> {
        match outgoing {
            Outbound::Response { .. } if self.stream != ResponseFraming::None => {
                return Err("a response inside a stream");
            }
            Outbound::Response { head, body } => self.respond(&head, body, out),
            Outbound::Event { .. } | Outbound::Comment(_) | Outbound::End if self.stream == ResponseFraming::None => {
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
                if mem::take(&mut self.held) {
                    self.ask(out);
                }
            }
            Outbound::Comment(text) => self.chunk(&[sse::encode_comment(&text)], out),
            Outbound::End => {
                if self.stream == ResponseFraming::Chunked {
                    out.push_back(Bytes::from_static(b"0\r\n\r\n"));
                }
                self.stream = ResponseFraming::None;
            }
            Outbound::Message(_) => return Err("a message outside a response"),
            Outbound::Request { .. } => return Err("a request on a server"),
        }
        Ok(())
    }

    /// Switches protocols with this response. Returns the bytes after the request.
    pub(in super::super) fn switch(
        &mut self,
        response: &ResponseHead,
        out: &mut ShortQueue<Bytes>,
    ) -> Result<(impl Iterator<Item = Bytes> + use<>, Arc<FrameLimits>), &'static str> {
        let is_free = self.stream == ResponseFraming::None && matches!(self.reading, RequestReading::Head(_));
        let Some(fields) = GivenFields::new(&response.headers).filter(|_| is_free) else {
            return Err("a switch of protocols inside a request");
        };
        let own = OwnFields { connection: head::UPGRADE, ..OwnFields::default() };
        head::write_head(out, &["HTTP/1.1 101 Switching Protocols"], &fields, &own, Bytes::new());
        Ok((mem::take(&mut self.input).into_rest(), Arc::clone(&self.limits)))
    }

    fn respond(&mut self, response: &ResponseHead, body: exchange::Body, out: &mut ShortQueue<Bytes>) {
        let unread = match &self.reading {
            RequestReading::Head(_) => false,
            RequestReading::Body(_) | RequestReading::Nothing => true,
        };
        self.expects = false;
        if unread || self.eof || head::has_token(&response.headers, "connection", "close") {
            self.keep_alive = false;
        }
        let streams = body == exchange::Body::Stream;
        if streams && self.old {
            self.keep_alive = false;
        }
        let fields = GivenFields::new(&response.headers).filter(|_| (200..1000).contains(&response.status));
        let Some(fields) = fields else {
            self.keep_alive = false;
            // The events of that response must not be written.
            self.stream = if streams { ResponseFraming::Silent } else { ResponseFraming::None };
            let own = OwnFields { length: Some(0), connection: head::CLOSE, ..OwnFields::default() };
            return head::write_head(out, &["HTTP/1.1 500 ", reason(500)], &GivenFields::NONE, &own, Bytes::new());
        };
        let bodiless = matches!(response.status, 204 | 304);
        let mut own = OwnFields::default();
        let body = self.compress(response, body, bodiless, &mut own);
        let full = self.declare_body(body, bodiless, &mut own);
        match (self.keep_alive, self.old) {
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
        let Some(support) = self.coding.filter(|_| self.takes_gzip && !self.head_only && !bodiless) else {
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
        self.stream = ResponseFraming::None;
        match body {
            exchange::Body::Full(body) if !bodiless => {
                own.length = Some(body.len());
                if !self.head_only {
                    return body;
                }
            }
            exchange::Body::Full(_) => {}
            exchange::Body::Stream if !bodiless && !self.old => {
                own.coding = "transfer-encoding: chunked\r\n";
                self.stream = if self.head_only { ResponseFraming::Silent } else { ResponseFraming::Chunked };
            }
            exchange::Body::Stream if bodiless || self.head_only => self.stream = ResponseFraming::Silent,
            exchange::Body::Stream => self.stream = ResponseFraming::Close,
            exchange::Body::WebSocket(_) => {}
        }
        Bytes::new()
    }

    /// Writes the parts as one chunk.
    fn chunk(&self, parts: &[Bytes], out: &mut ShortQueue<Bytes>) {
        let chunked = match self.stream {
            ResponseFraming::None | ResponseFraming::Silent => return,
            ResponseFraming::Chunked => true,
            ResponseFraming::Close => false,
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
