//! The codec of one connection, for each protocol.

use super::http1;
use super::input::LARGE;
use super::line::Lines;
use super::work::Work;
use super::ws::{CloseCode, WsChannel, WsHandshakeCodec, WsSide, WsSupport};
use crate::exchange::{BadRequest, Body, Closed, Inbound, Outbound, ResponseHead, WsDialect};
use crate::http_support::HttpSupport;
use crate::limits::FrameLimits;
use crate::short_queue::ShortQueue;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use bytes::Bytes;

/// The protocol of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Newline-delimited messages in both directions.
    Lines,
    /// HTTP/1.1, as the client. Without the feature `http`, the connection is
    /// [`broken`](Conn::broken).
    HttpClient,
    /// HTTP/1.1, as the server. Without the feature `http`, the connection is
    /// [`broken`](Conn::broken). It becomes a WebSocket with a response of
    /// [`Body::WebSocket`](crate::exchange::Body::WebSocket).
    HttpServer,
    /// A WebSocket, as the client: an HTTP/1.1 exchange, then messages. Without the feature `ws`,
    /// the connection is [`broken`](Conn::broken). It needs a seed: [`Conn::seeded`].
    WsClient(WsDialect),
}

/// The codec of one connection. It holds bytes that are not parsed completely, and framed bytes
/// that are not written.
///
/// Neither how the bytes are split nor when [`poll_item`](Self::poll_item) is called changes the
/// parts, except for the boundaries between the pieces of an [`Inbound::Body`].
#[derive(Debug)]
pub struct Conn {
    kind: Kind,
    codec: Codec,
    written: ShortQueue<Bytes>,
    refused: Option<&'static str>,
}

const NO_HTTP: &str = "HTTP is not compiled in";
const NO_WEB_SOCKET: &str = "WebSocket is not compiled in";
const NO_SEED: &str = "a websocket without a seed";

#[derive(Debug)]
enum Codec {
    Lines(Lines),
    Client(http1::ClientCodec),
    Server(http1::ServerCodec),
    /// A client's WebSocket before the handshake is complete. Boxed: it is short-lived and large.
    Opening(Box<WsHandshakeCodec>),
    /// Boxed: most connections are no WebSockets.
    Ws(Box<WsChannel>),
    /// A protocol that is not compiled in, or whose handshake failed, and why nothing is parsed.
    Unsupported(String),
}

impl Conn {
    /// Creates a codec for a new connection.
    pub fn new(kind: Kind, limits: &FrameLimits) -> Self {
        Self::sharing(kind, Arc::new(limits.clone()))
    }

    /// Like [`new`](Self::new), with limits that are not copied.
    pub(crate) fn sharing(kind: Kind, limits: Arc<FrameLimits>) -> Self {
        let codec = match (kind, HttpSupport::get()) {
            (Kind::Lines, _) => Codec::Lines(Lines::new(limits)),
            (Kind::HttpClient, Some(support)) => Codec::Client(http1::ClientCodec::new(limits, support)),
            (Kind::HttpServer, Some(support)) => Codec::Server(http1::ServerCodec::new(limits, support)),
            (Kind::HttpClient | Kind::HttpServer, None) => Codec::Unsupported(NO_HTTP.into()),
            (Kind::WsClient(_), _) => Codec::Unsupported(NO_SEED.into()),
        };
        Self { kind, codec, written: ShortQueue::new(), refused: None }
    }

    /// Creates the codec of a connection that needs random bytes, which must be unpredictable and
    /// are used for nothing else: the key and the masks of a WebSocket. The other protocols ignore
    /// them.
    pub fn seeded(kind: Kind, limits: &FrameLimits, seed: [u8; 32]) -> Self {
        let limits = Arc::new(limits.clone());
        Self::sharing(kind, Arc::clone(&limits)).with_seed(&limits, seed)
    }

    /// As [`seeded`](Self::seeded), for a codec that was created without a seed.
    pub(crate) fn with_seed(mut self, limits: &Arc<FrameLimits>, seed: [u8; 32]) -> Self {
        if let Kind::WsClient(dialect) = self.kind {
            self.codec = match (WsSupport::get(), HttpSupport::get()) {
                (Some(support), Some(http)) => {
                    let http = http1::ClientCodec::new(Arc::clone(limits), http);
                    Codec::Opening(Box::new(WsHandshakeCodec::new(http, dialect, Arc::clone(limits), seed, support)))
                }
                _ => Codec::Unsupported(NO_WEB_SOCKET.into()),
            };
        }
        self
    }

    /// Sets whether the codec waits for [`Outbound::Continue`] before it parses. On an HTTP server
    /// this applies to the body of each request. The codec then sends `100 Continue` to a client
    /// that waits for it (`Expect: 100-continue`); without waiting, it sends it when the part after
    /// the head is polled. A response that is encoded instead of `Continue` is the last one of the
    /// connection, unless the whole body has arrived: it is dropped then. For lines, it applies to
    /// everything. It has no effect on an HTTP client. Off by default.
    pub fn set_holding(&mut self, holding: bool) {
        match &mut self.codec {
            Codec::Lines(lines) => lines.held = holding,
            Codec::Client(_) | Codec::Opening(_) | Codec::Ws(_) | Codec::Unsupported(_) => {}
            Codec::Server(server) => server.set_holding(holding),
        }
    }

    /// Sets whether the bodies of an HTTP connection may have a content coding (RFC 9110 section
    /// 8.4). A client then asks for gzip and deflate, and decodes them; a server decodes the bodies
    /// of requests, and sends JSON of more than 1 KiB in gzip to a client that asks for it, but
    /// never an event stream. All limits apply to the decoded bytes. On by default with the feature
    /// `gzip`, and always off without it: then a coded body breaks a client, and a server rejects
    /// it.
    pub fn set_coding(&mut self, on: bool) {
        match &mut self.codec {
            Codec::Client(client) => client.reader.set_coding(on),
            Codec::Server(server) => server.reader.set_coding(on),
            Codec::Opening(opening) => opening.http.reader.set_coding(on),
            Codec::Lines(_) | Codec::Ws(_) | Codec::Unsupported(_) => {}
        }
    }

    /// Returns whether a body, or the input of a connection by lines, is held back now: see
    /// [`set_holding`](Self::set_holding).
    pub fn is_held(&self) -> bool {
        match &self.codec {
            Codec::Lines(lines) => lines.held,
            Codec::Client(_) | Codec::Opening(_) | Codec::Ws(_) | Codec::Unsupported(_) => false,
            Codec::Server(server) => server.is_held(),
        }
    }

    /// Returns whether the client of the current request waits for `100 Continue` (`Expect:
    /// 100-continue`), which was not sent.
    pub fn expects(&self) -> bool {
        match &self.codec {
            Codec::Server(server) => server.expects(),
            _ => false,
        }
    }

    /// Returns the protocol.
    pub const fn kind(&self) -> Kind {
        self.kind
    }

    /// Adds bytes that were read. It parses nothing; [`poll_item`](Self::poll_item) does. It drops
    /// the bytes after [`eof`](Self::eof), once the framing is [`broken`](Self::broken), and after
    /// an [`Inbound::Reject`].
    ///
    /// A large frame may keep `bytes` alive instead of being copied. Do not pass a small part of a
    /// large buffer.
    pub fn bytes(&mut self, bytes: Bytes) {
        match &mut self.codec {
            Codec::Lines(lines) => lines.bytes(bytes),
            Codec::Client(client) => client.reader.bytes(bytes),
            Codec::Server(server) => server.reader.bytes(bytes),
            Codec::Opening(opening) => opening.http.reader.bytes(bytes),
            Codec::Ws(channel) => channel.bytes(bytes),
            Codec::Unsupported(_) => {}
        }
    }

    /// Reports that the peer sends nothing more. The effect shows once everything before it was
    /// polled:
    ///
    /// * lines: an unfinished line counts as ended. It is a message if it is complete, and
    ///   otherwise usually an invalid one of the kind `Truncated`, without an id. Then
    ///   [`Inbound::End`] follows.
    /// * HTTP: a body that is delimited by the end of the connection ends with [`Inbound::End`]. A
    ///   truncated head or body is [`broken`](Self::broken). Between two exchanges, or before the
    ///   first byte of a response, nothing follows.
    pub fn eof(&mut self) {
        match &mut self.codec {
            Codec::Lines(lines) => lines.eof(),
            Codec::Client(client) => client.reader.eof(),
            Codec::Server(server) => server.reader.eof(),
            Codec::Opening(opening) => opening.http.reader.eof(),
            Codec::Ws(channel) => channel.eof(),
            Codec::Unsupported(_) => {}
        }
    }

    /// Returns the next part. Parses only as far as it needs to.
    pub fn poll_item(&mut self) -> Option<Inbound> {
        self.poll_within(&mut Work::unlimited())
    }

    /// Returns the next part. `None` also if the work is done before it:
    /// [`Work::is_stopped`] tells.
    pub(crate) fn poll_within(&mut self, work: &mut Work) -> Option<Inbound> {
        match &mut self.codec {
            Codec::Lines(lines) => lines.poll_item(work),
            Codec::Client(client) => client.poll_item(work),
            Codec::Server(server) => server.poll_item(&mut self.written, work),
            Codec::Opening(_) | Codec::Ws(_) => self.poll_web_socket(work),
            Codec::Unsupported(_) => None,
        }
    }

    /// [`poll_within`](Self::poll_within) of a WebSocket, out of the way of the other protocols.
    #[inline(never)]
    fn poll_web_socket(&mut self, work: &mut Work) -> Option<Inbound> {
        match &mut self.codec {
            Codec::Opening(opening) => {
                let item = opening.http.poll_item(work)?;
                match opening.open(&item, &mut self.written) {
                    None => {}
                    Some(Ok(channel)) => self.codec = Codec::Ws(Box::new(channel)),
                    Some(Err(why)) => {
                        self.codec = Codec::Unsupported(why.into());
                        return None;
                    }
                }
                Some(item)
            }
            Codec::Ws(channel) => channel.poll_item(&mut self.written, work),
            _ => None,
        }
    }

    /// WebSocket: returns how the peer ended the connection, once, after its last message was
    /// polled. The answer of this side is among the bytes to write.
    pub fn take_end(&mut self) -> Option<Closed> {
        match &mut self.codec {
            Codec::Ws(channel) => channel.take_end(),
            _ => None,
        }
    }

    /// WebSocket: returns the next text message as it is, instead of a part: for messages that are
    /// no JSON-RPC. `None` until more bytes arrive, and once the connection [has
    /// ended](Self::take_end).
    #[cfg(feature = "ws")]
    pub fn poll_text(&mut self) -> Option<Bytes> {
        match &mut self.codec {
            Codec::Ws(channel) => channel.poll_text(&mut self.written, &mut Work::unlimited()),
            _ => None,
        }
    }

    /// Returns whether the connection is an open WebSocket.
    pub const fn is_web_socket(&self) -> bool {
        matches!(self.codec, Codec::Ws(_))
    }

    /// WebSocket: closes the connection with this code.
    pub(crate) fn close(&mut self, code: CloseCode) {
        if let Codec::Ws(channel) = &mut self.codec {
            channel.close(code, &mut self.written);
        }
    }

    /// WebSocket: closes the connection with this code, and drops what the peer sends. Returns
    /// whether it is open.
    pub(crate) fn give_up_web_socket(&mut self, code: CloseCode) -> bool {
        match &mut self.codec {
            Codec::Ws(channel) => {
                channel.give_up(code, &mut self.written);
                true
            }
            _ => false,
        }
    }

    /// WebSocket: asks the peer for a sign of life.
    pub(crate) fn ping(&mut self) {
        if let Codec::Ws(channel) = &mut self.codec {
            channel.ping(&mut self.written);
        }
    }

    /// WebSocket: returns the answer to a ping of the peer. Call it only once everything that
    /// [`poll_write`](Self::poll_write) returned is written, so that a peer that reads nothing
    /// cannot cause many of them.
    pub fn poll_pong(&mut self) -> Option<Bytes> {
        match &mut self.codec {
            Codec::Ws(channel) => channel.poll_pong(),
            _ => None,
        }
    }

    /// Rejects the request that a server has received in part, like a malformed one. `None` for the
    /// other protocols.
    pub(crate) fn give_up(&mut self, defect: BadRequest) -> Option<Inbound> {
        match (&mut self.codec, defect) {
            (Codec::Server(server), defect) => Some(server.give_up(defect)),
            _ => None,
        }
    }

    /// Returns the reason, once the framing is broken, so that nothing more can be parsed. No part
    /// follows then, except for the end of a connection by lines. Only 16 MiB of blank lines break
    /// its framing.
    pub fn broken(&self) -> Option<&String> {
        match &self.codec {
            Codec::Lines(lines) => lines.broken(),
            Codec::Client(client) => client.reader.broken(),
            Codec::Server(server) => server.reader.broken(),
            Codec::Opening(opening) => opening.http.reader.broken(),
            Codec::Ws(_) => None,
            Codec::Unsupported(why) => Some(why),
        }
    }

    /// Frames one outbound part. Large payloads are shared and not copied. On a connection by
    /// lines, a part is a [`Message`](Outbound::Message), and an [`End`](Outbound::End) writes
    /// nothing.
    ///
    /// An HTTP head cannot inject anything into the connection. If a field name is not a token, or
    /// a value has a control character, a server writes a bare 500 instead of the response, and a
    /// client is [`broken`](Self::broken) and writes nothing. `Content-Length` and
    /// `Transfer-Encoding` of a given head are ignored, since the codec sets them; `Connection:
    /// close` is respected. The codec adds `Accept-Encoding` to a request without that field:
    /// see [`set_coding`](Self::set_coding).
    ///
    /// A part that cannot be sent at this point is not written, and
    /// [`take_refused`](Self::take_refused) returns the reason: a part of another protocol, a
    /// message with a line feed on a connection by lines, and on a server an event, a comment or an
    /// end without a stream, or a response inside one.
    pub fn encode(&mut self, outgoing: Outbound) {
        if let Outbound::Response { head, body: Body::WebSocket(dialect) } = &outgoing
            && let Codec::Server(_) = self.codec
        {
            return self.switch(head, *dialect);
        }
        let encoded = match &mut self.codec {
            Codec::Lines(lines) => match outgoing {
                Outbound::Message(message) if memchr::memchr(b'\n', &message).is_some() => {
                    Err("a message with a line feed")
                }
                Outbound::Message(message) => {
                    write(&mut self.written, Vec::new(), message, b"\n");
                    Ok(())
                }
                Outbound::End => Ok(()),
                Outbound::Continue if core::mem::take(&mut lines.held) => Ok(()),
                _ => Err("a part of http on a channel of lines"),
            },
            Codec::Client(client) => client.encode(outgoing, &mut self.written),
            Codec::Server(server) => server.encode(outgoing, &mut self.written),
            Codec::Opening(opening) => opening.encode(outgoing, &mut self.written),
            Codec::Ws(channel) => channel.encode(outgoing, &mut self.written),
            Codec::Unsupported(_) => Err("a part on a broken connection"),
        };
        self.refused = encoded.err();
    }

    /// Answers the opening request of a WebSocket with this response, on a server.
    #[inline(never)]
    fn switch(&mut self, head: &ResponseHead, dialect: WsDialect) {
        let Codec::Server(server) = &mut self.codec else { return };
        let Some(support) = WsSupport::get() else {
            self.refused = Some(NO_WEB_SOCKET);
            return;
        };
        let is_eof = server.reader.is_eof();
        match server.switch(head, &mut self.written) {
            Ok((rest, limits)) => {
                let mut channel = WsChannel::new(WsSide::Server, dialect, limits, support);
                rest.for_each(|bytes| channel.bytes(bytes));
                if is_eof {
                    channel.eof();
                }
                self.codec = Codec::Ws(Box::new(channel));
            }
            Err(why) => self.refused = Some(why),
        }
    }

    /// Returns why the latest part was not written. `None` if it was, and after the first call.
    pub fn take_refused(&mut self) -> Option<&'static str> {
        self.refused.take()
    }

    /// Returns whether an HTTP server is inside the stream of a response.
    pub(crate) fn is_streaming(&self) -> bool {
        match &self.codec {
            Codec::Server(server) => server.is_streaming(),
            _ => false,
        }
    }

    /// Returns the next framed bytes to write.
    pub fn poll_write(&mut self) -> Option<Bytes> {
        self.written.pop_front()
    }

    /// Returns the number of bytes that were read and not parsed (the capacity held for them).
    pub fn buffered(&self) -> usize {
        match &self.codec {
            Codec::Lines(lines) => lines.buffered(),
            Codec::Client(client) => client.reader.buffered(),
            Codec::Server(server) => server.reader.buffered(),
            Codec::Opening(opening) => opening.http.reader.buffered(),
            Codec::Ws(channel) => channel.buffered(),
            Codec::Unsupported(_) => 0,
        }
    }

    /// A client over HTTP: sets whether the body of the next response is read as bytes, whatever
    /// its media type.
    pub(crate) fn reads_raw(&mut self, raw: bool) {
        if let Codec::Client(client) = &mut self.codec {
            client.reads_raw(raw);
        }
    }

    /// HTTP: returns the number of content bytes of the current body that were polled since the
    /// last call. Heads and the framing of chunks do not count. Always 0 for lines, and once the
    /// body has ended.
    pub(crate) fn take_content(&mut self) -> usize {
        match &mut self.codec {
            Codec::Client(client) => client.reader.take_content(),
            Codec::Server(server) => server.reader.take_content(),
            _ => 0,
        }
    }

    /// Returns whether the connection could end here in order, since nothing is parsed in part.
    /// Bytes that were not polled count as parsed in part. A client that waits for the first byte
    /// of a response is at a boundary.
    pub fn at_boundary(&self) -> bool {
        match &self.codec {
            Codec::Lines(lines) => lines.at_boundary(),
            Codec::Client(client) => client.at_boundary(),
            Codec::Server(server) => server.at_boundary(),
            Codec::Opening(opening) => opening.http.at_boundary(),
            Codec::Ws(channel) => channel.at_boundary(),
            Codec::Unsupported(_) => true,
        }
    }

    /// HTTP: returns whether the connection may carry another exchange after the current one (RFC
    /// 9112 section 9.3). Always true for lines.
    ///
    /// On a server this is final once the response was encoded; a response before the end of the
    /// request is the last one, unless its body was held back and has arrived. On a client it is
    /// final once the response has ended.
    pub fn keep_alive(&self) -> bool {
        match &self.codec {
            Codec::Lines(_) => true,
            Codec::Opening(_) | Codec::Ws(_) | Codec::Unsupported(_) => false,
            Codec::Client(client) => client.keep_alive(),
            Codec::Server(server) => server.keep_alive(),
        }
    }
}

/// Writes a payload and the framing around it: a small one in one piece, so that the driver needs
/// one write; a large one without a copy.
pub(super) fn write(out: &mut ShortQueue<Bytes>, mut before: Vec<u8>, payload: Bytes, after: &'static [u8]) {
    if payload.len() < LARGE {
        before.reserve_exact(payload.len() + after.len());
        before.extend_from_slice(&payload);
        before.extend_from_slice(after);
        out.push_back(before.into());
    } else {
        let pieces = [before.into(), payload, Bytes::from_static(after)];
        out.extend(pieces.into_iter().filter(|piece: &Bytes| !piece.is_empty()));
    }
}
