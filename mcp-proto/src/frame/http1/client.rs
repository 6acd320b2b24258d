//! The client side: one request out and its response in, then the next.

use super::super::coding::Decoder;
use super::head::{self, Gather, GivenFields, OwnFields};
use super::length::{DeclaredLength, Length, declared};
use super::{BodyDecoder, BodyError, BodyGate, FramedBody, MessageReader, ReadState};
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
pub(in crate::frame) struct ClientCodec {
    _support: HttpSupport,
    pub(in crate::frame) reader: MessageReader,
    persistence: Persistence,
    request: SentRequest,
    /// The body of the response is read as bytes.
    raw: bool,
}

/// Whether the connection may carry another exchange.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Persistence {
    KeepAlive,
    /// The request declared itself the last one. Its response is still due.
    LastRequest,
    Close,
}

/// What the latest request means for its response.
#[derive(Debug, Default)]
struct SentRequest {
    /// It is a `HEAD`: its response has no body.
    head_only: bool,
    /// It asks the server to switch protocols.
    upgrades: bool,
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
    pub(in crate::frame) fn new(limits: Arc<FrameLimits>, support: HttpSupport) -> Self {
        Self {
            _support: support,
            reader: MessageReader::new(limits, ReadState::Idle),
            persistence: Persistence::KeepAlive,
            request: SentRequest::default(),
            raw: false,
        }
    }

    pub(in crate::frame) const fn reads_raw(&mut self, raw: bool) {
        self.raw = raw;
    }

    pub(in crate::frame) fn at_boundary(&self) -> bool {
        match &self.reader.state {
            ReadState::Idle => self.reader.input.is_empty(),
            ReadState::Head(gather) => gather.is_empty() && self.reader.input.is_empty(),
            ReadState::Body(_) => false,
            ReadState::Rejected | ReadState::Broken(_) => true,
        }
    }

    /// Bytes after a response belong to no exchange. Such a connection carries no further exchange.
    pub(in crate::frame) fn keep_alive(&self) -> bool {
        let stray = matches!(self.reader.state, ReadState::Idle) && !self.reader.input.is_empty();
        self.persistence != Persistence::Close && !stray && self.reader.may_read()
    }

    pub(in crate::frame) fn poll_item(&mut self, work: &mut Work) -> Option<Inbound> {
        loop {
            let reader = &mut self.reader;
            match &mut reader.state {
                ReadState::Rejected | ReadState::Broken(_) => return None,
                ReadState::Idle if reader.input.is_empty() => return None,
                ReadState::Idle => return self.fail("bytes that no request asked for".into()),
                ReadState::Head(gather) => {
                    let begun = match gather.whole_response(&reader.input, &reader.limits) {
                        Some(len) => {
                            let mut input = mem::take(&mut reader.input);
                            let begun =
                                self.begin(input.front().and_then(|front| front.get(..len)).unwrap_or_default());
                            input.skip(len);
                            self.reader.input = input;
                            begun
                        }
                        None => match gather.poll(&mut reader.input, &reader.limits) {
                            Ok(Some(head)) => self.begin(&head),
                            // A server of another protocol may wait for us after a line of its own.
                            Ok(None) | Err(_) if !gather.begins_with(HTTP) => {
                                let why = not_http(gather.first());
                                return self.fail(why);
                            }
                            Ok(None) if reader.eof && !self.at_boundary() => {
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
                ReadState::Body(framed) => match framed.poll_item(&mut reader.input, reader.eof, work) {
                    Ok(Some(Inbound::End)) => {
                        reader.state = ReadState::Idle;
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
    fn begin(&mut self, bytes: &[u8]) -> Result<Option<ResponseHead>, String> {
        let MessageReader { limits, coding, state, .. } = &mut self.reader;
        if !bytes.starts_with(HTTP) {
            return Err(not_http(bytes.first().copied()));
        }
        let (status, old, headers) = head::read_response(bytes, limits).map_err(|defect| defect.why)?;
        match status {
            101 if self.request.upgrades => {
                *state = ReadState::Idle;
                return Ok(Some(ResponseHead { status, headers }));
            }
            101 => return Err("the server switched protocols, which was not asked for".into()),
            100..200 => {
                if let ReadState::Head(gather) = state {
                    gather.skip_interim(bytes.len(), limits)?;
                }
                return Ok(None);
            }
            200..1000 => {}
            _ => return Err(format!("the status is {status}")),
        }
        let bodiless = self.request.head_only || matches!(status, 204 | 304);
        let length = body_length(declared(&headers, old), bodiless)?;
        if self.persistence == Persistence::LastRequest
            || !head::persists(&headers, old)
            || matches!(length, Length::Close)
        {
            self.persistence = Persistence::Close;
        }
        let decoder = match head::content_coding(&headers, *coding) {
            _ if matches!(length, Length::Known(0)) => None,
            Ok(coding) => coding.map(|(coding, support)| Decoder::new(coding, support)),
            Err(name) => {
                return Err(format!("the response has the content-encoding {name:?}, which was not asked for"));
            }
        };
        let response = ResponseHead { status, headers };
        let body = match bodiless {
            true => BodyDecoder::none(limits),
            false if self.raw => BodyDecoder::raw_response(limits),
            false => BodyDecoder::response(&response, limits),
        };
        if let Length::Known(length) = length
            && !body.is_event_stream()
            && length > limits.max_response_body as u64
        {
            return Err("the body is larger than the limit".into());
        }
        *state = ReadState::Body(FramedBody::new(BodyGate::Open, length, decoder, body));
        Ok(Some(response))
    }

    fn fail(&mut self, why: String) -> Option<Inbound> {
        self.reader.stop(ReadState::Broken(why));
        None
    }

    /// The error names a part that a client does not send.
    pub(in crate::frame) fn encode(
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
        if self.reader.broken().is_some() {
            return;
        }
        if !self.at_boundary() || !matches!(self.reader.state, ReadState::Idle) {
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
            own.coding = match self.reader.coding {
                Some(_) => "accept-encoding: gzip, deflate\r\n",
                None => "accept-encoding: identity\r\n",
            };
        }
        if head::has_token(&request.headers, "connection", "close") {
            own.connection = head::CLOSE;
            if self.persistence == Persistence::KeepAlive {
                self.persistence = Persistence::LastRequest;
            }
        }
        let upgrades = request.headers.get("upgrade").is_some();
        if upgrades {
            own.connection = head::UPGRADE;
        }
        let first_line = [&*request.method, " ", &request.target, " HTTP/1.1"];
        head::write_head(out, &first_line, &fields, &own, body);
        self.request = SentRequest { head_only: request.method == "HEAD", upgrades };
        self.reader.state = ReadState::Head(Gather::default());
    }
}

/// Returns the length of the body of a response, or why it has none that is known.
fn body_length(declared: DeclaredLength, bodiless: bool) -> Result<Length, String> {
    match declared {
        DeclaredLength::Invalid(why) => Err(why.into()),
        _ if bodiless => Ok(Length::Known(0)),
        DeclaredLength::Unknown | DeclaredLength::Unfinished => Err("the transfer-encoding is not known".into()),
        DeclaredLength::Known(length) => Ok(Length::Known(length)),
        DeclaredLength::Chunked => Ok(Length::chunked_response()),
        DeclaredLength::Nothing => Ok(Length::Close),
    }
}
