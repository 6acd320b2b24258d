//! The client side: one request out and its response in, then the next.

use super::super::coding::{Decoder, GzipSupport};
use super::head::{self, Gather, GivenFields, OwnFields};
use super::length::{Declared, Length, declared};
use super::{BodyDecoder, BodyError, ByteQueue, Framed};
use crate::exchange::{BadRequest, Inbound, Outbound, RequestHead, ResponseHead, is_token};
use crate::frame::work::Work;
use crate::http_support::HttpSupport;
use crate::limits::FrameLimits;
use crate::short_queue::ShortQueue;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use bytes::Bytes;
use core::mem;

/// The codec of a connection of a client.
#[derive(Debug)]
pub(in super::super) struct ClientCodec {
    _support: HttpSupport,
    /// Content codings, if they are used.
    coding: Option<GzipSupport>,
    limits: Arc<FrameLimits>,
    input: ByteQueue,
    reading: ResponseReading,
    eof: bool,
    broken: Option<String>,
    keep_alive: bool,
    /// The request declared itself the last one.
    last: bool,
    /// The request asks the server to switch protocols.
    upgrades: bool,
    /// The body of the response is read as bytes.
    raw: bool,
}

#[derive(Debug)]
enum ResponseReading {
    /// No request is in flight.
    Idle,
    Head {
        gather: Gather,
        /// The request was a `HEAD`: its response has no body.
        head_only: bool,
        /// Bytes of the interim responses so far. The final response is still due.
        interim: usize,
    },
    Body(Framed),
}

/// The beginning of every response.
const HTTP: &[u8] = b"HTTP/";
const NOT_HTTP: &str = "the response is not HTTP";
/// The first byte of an alert, with which TLS answers plain text (RFC 8446 section 5.1).
const ALERT: u8 = 21;
const TLS: &str = "the server speaks TLS: the URL must begin with `https` or `wss`";

/// Returns the fault of a response that begins with this byte, in place of [`HTTP`].
fn not_http(first: Option<u8>) -> String {
    if first == Some(ALERT) { TLS } else { NOT_HTTP }.into()
}

impl ClientCodec {
    pub(in super::super) fn new(limits: Arc<FrameLimits>, support: HttpSupport) -> Self {
        Self {
            _support: support,
            coding: GzipSupport::get(),
            limits,
            input: ByteQueue::default(),
            reading: ResponseReading::Idle,
            eof: false,
            broken: None,
            keep_alive: true,
            last: false,
            upgrades: false,
            raw: false,
        }
    }

    pub(in super::super) const fn reads_raw(&mut self, raw: bool) {
        self.raw = raw;
    }

    /// Sets whether responses may have a content coding.
    pub(in super::super) fn set_coding(&mut self, on: bool) {
        self.coding = GzipSupport::get().filter(|_| on);
    }

    /// Returns the bytes after the response that switched protocols.
    pub(in super::super) fn take_rest(&mut self) -> impl Iterator<Item = Bytes> + use<> {
        mem::take(&mut self.input).into_rest()
    }

    pub(in super::super) fn bytes(&mut self, bytes: Bytes) {
        if !self.eof && self.broken.is_none() {
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
                ResponseReading::Idle => 0,
                ResponseReading::Head { gather, .. } => gather.buffered(),
                ResponseReading::Body(framed) => framed.buffered(),
            }
    }

    /// Returns the number of content bytes of the current body that were read since the last call.
    pub(in super::super) fn take_content(&mut self) -> usize {
        match &mut self.reading {
            ResponseReading::Body(framed) => framed.take_content(),
            _ => 0,
        }
    }

    pub(in super::super) fn at_boundary(&self) -> bool {
        match &self.reading {
            ResponseReading::Idle => self.input.is_empty(),
            ResponseReading::Head { gather, interim, .. } => {
                *interim == 0 && gather.is_empty() && self.input.is_empty()
            }
            ResponseReading::Body(_) => false,
        }
    }

    /// Bytes after a response belong to no exchange. Such a connection carries no further exchange.
    pub(in super::super) fn keep_alive(&self) -> bool {
        let stray = matches!(self.reading, ResponseReading::Idle) && !self.input.is_empty();
        self.keep_alive && !stray && !self.eof && self.broken.is_none()
    }

    pub(in super::super) fn poll_item(&mut self, work: &mut Work) -> Option<Inbound> {
        loop {
            if self.broken.is_some() {
                return None;
            }
            match &mut self.reading {
                ResponseReading::Idle if self.input.is_empty() => return None,
                ResponseReading::Idle => return self.fail("bytes that no request asked for".into()),
                ResponseReading::Head { gather, head_only, interim } => {
                    let (head_only, interim) = (*head_only, *interim);
                    let begun = match gather.whole_response(&self.input, &self.limits) {
                        Some(len) => {
                            let mut input = mem::take(&mut self.input);
                            let head = input.front().and_then(|front| front.get(..len)).unwrap_or_default();
                            let begun = self.begin(head, head_only, interim);
                            input.skip(len);
                            self.input = input;
                            begun
                        }
                        None => match gather.poll(&mut self.input, &self.limits) {
                            Ok(Some(head)) => self.begin(&head, head_only, interim),
                            // A server of another protocol may wait for us after a line of its own.
                            Ok(None) | Err(_) if !gather.begins_with(HTTP) => {
                                let why = not_http(gather.first());
                                return self.fail(why);
                            }
                            Ok(None) if self.eof && !self.at_boundary() => {
                                return self.fail("the response head is cut short".into());
                            }
                            Ok(None) => return None,
                            Err(BadRequest { why, .. }) => return self.fail(why.into()),
                        },
                    };
                    match begun {
                        Ok(Some(response)) => return Some(Inbound::Response(response)),
                        Ok(None) => {}
                        Err(why) => return self.fail(why),
                    }
                }
                ResponseReading::Body(framed) => match framed.poll_item(&mut self.input, self.eof, work) {
                    Ok(Some(Inbound::End)) => {
                        self.reading = ResponseReading::Idle;
                        return Some(Inbound::End);
                    }
                    Ok(item) => return item,
                    Err(BodyError::Cut) => return self.fail("the response body is cut short".into()),
                    Err(BodyError::Limit(why)) => return self.fail(why),
                    Err(BodyError::Framing(why)) => return self.fail(why.into()),
                },
            }
        }
    }

    /// Returns `None` for an interim response, which is ignored.
    fn begin(&mut self, bytes: &[u8], head_only: bool, interim: usize) -> Result<Option<ResponseHead>, String> {
        if !bytes.starts_with(HTTP) {
            return Err(not_http(bytes.first().copied()));
        }
        let (status, old, headers) = head::read_response(bytes, &self.limits).map_err(|defect| defect.why)?;
        match status {
            101 if self.upgrades => {
                self.reading = ResponseReading::Idle;
                return Ok(Some(ResponseHead { status, headers }));
            }
            101 => return Err("the server switched protocols, which was not asked for".into()),
            100..200 => {
                let interim = interim + bytes.len();
                if interim > self.limits.max_head {
                    return Err("too many interim responses".into());
                }
                self.reading = ResponseReading::Head { gather: Gather::default(), head_only, interim };
                return Ok(None);
            }
            200..1000 => {}
            _ => return Err(format!("the status is {status}")),
        }
        self.keep_alive = head::persists(&headers, old) && !self.last;
        let bodiless = head_only || matches!(status, 204 | 304);
        let length = body_length(declared(&headers, old), bodiless)?;
        self.keep_alive &= !matches!(length, Length::Close);
        let decoder = match head::content_coding(&headers, self.coding) {
            _ if matches!(length, Length::Known(0)) => None,
            Ok(coding) => coding.map(|(coding, support)| Decoder::new(coding, support)),
            Err(name) => {
                return Err(format!("the response has the content-encoding {name:?}, which was not asked for"));
            }
        };
        let response = ResponseHead { status, headers };
        let body = match bodiless {
            true => BodyDecoder::none(&self.limits),
            false if self.raw => BodyDecoder::raw_response(&self.limits),
            false => BodyDecoder::response(&response, &self.limits),
        };
        if let Length::Known(length) = length
            && !body.is_event_stream()
            && length > self.limits.max_response_body as u64
        {
            return Err("the body is larger than the limit".into());
        }
        self.reading = ResponseReading::Body(Framed::new(length, decoder, body));
        Ok(Some(response))
    }

    fn fail(&mut self, why: String) -> Option<Inbound> {
        self.input.clear();
        self.reading = ResponseReading::Idle;
        self.broken = Some(why);
        None
    }

    /// The error names a part that a client does not send.
    pub(in super::super) fn encode(
        &mut self,
        outgoing: Outbound,
        out: &mut ShortQueue<Bytes>,
    ) -> Result<(), &'static str> {
        match outgoing {
            Outbound::Request { head, body } => self.request(&head, body, out),
            Outbound::End => {}
            Outbound::Message(_) => return Err("a message outside a request"),
            Outbound::Response { .. } | Outbound::Event { .. } | Outbound::Comment(_) | Outbound::Continue => {
                return Err("a part of a response on a client");
            }
        }
        Ok(())
    }

    fn request(&mut self, request: &RequestHead, body: Bytes, out: &mut ShortQueue<Bytes>) {
        if self.broken.is_some() {
            return;
        }
        if !self.at_boundary() || !matches!(self.reading, ResponseReading::Idle) {
            // Any bytes that are there would count as the response to this request.
            self.fail("a request on a connection that is not free".into());
            return;
        }
        let legal = is_token(&request.method) && head::is_target(&request.target);
        let fields = GivenFields::new(&request.headers).filter(|_| legal && request.headers.all("Host").count() == 1);
        let Some(fields) = fields else {
            self.fail("the request head cannot be written".into());
            return;
        };
        let mut own = OwnFields::default();
        if !body.is_empty() || matches!(&*request.method, "POST" | "PUT" | "PATCH") {
            own.length = Some(body.len());
        }
        if request.headers.get("accept-encoding").is_none() {
            // Without it, a server may use any coding (RFC 9110 section 12.5.3).
            own.coding = match self.coding {
                Some(_) => "accept-encoding: gzip, deflate\r\n",
                None => "accept-encoding: identity\r\n",
            };
        }
        if head::has_token(&request.headers, "connection", "close") {
            own.connection = head::CLOSE;
            self.last = true;
        }
        self.upgrades = request.headers.get("upgrade").is_some();
        if self.upgrades {
            own.connection = head::UPGRADE;
        }
        let first_line = [&*request.method, " ", &request.target, " HTTP/1.1"];
        head::write_head(out, &first_line, &fields, &own, body);
        self.reading =
            ResponseReading::Head { gather: Gather::default(), head_only: request.method == "HEAD", interim: 0 };
    }
}

/// Returns the length of the body of a response, or why it has none that is known.
fn body_length(declared: Declared, bodiless: bool) -> Result<Length, String> {
    match declared {
        Declared::Invalid(why) => Err(why.into()),
        _ if bodiless => Ok(Length::Known(0)),
        Declared::Unknown | Declared::Unfinished => Err("the transfer-encoding is not known".into()),
        Declared::Known(length) => Ok(Length::Known(length)),
        Declared::Chunked => Ok(Length::chunked_response()),
        Declared::Nothing => Ok(Length::Close),
    }
}
