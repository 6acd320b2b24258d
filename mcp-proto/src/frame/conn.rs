//! One channel's codec, whatever is spoken on it.

#[cfg(feature = "http")]
use super::http1;
use super::input::LARGE;
use super::line::Lines;
use crate::exchange::{BadRequest, Inbound, Outbound};
use crate::limits::FrameLimits;
use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use bytes::Bytes;

/// What is spoken on a channel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Newline-delimited messages, both ways.
    Lines,
    /// HTTP/1.1, we are the client.
    #[cfg(feature = "http")]
    HttpClient,
    /// HTTP/1.1, we are the server.
    #[cfg(feature = "http")]
    HttpServer,
}

/// The codec of one channel: holds what is half read, and what is framed and not yet taken.
///
/// How the bytes were cut, and when [`poll_item`](Self::poll_item) is called between them, never changes the items, but for where
/// one [`Inbound::Body`] ends and the next begins.
#[derive(Debug)]
pub struct Conn {
    codec: Codec,
    written: VecDeque<Bytes>,
    refused: Option<&'static str>,
}

#[derive(Debug)]
enum Codec {
    Lines(Lines),
    #[cfg(feature = "http")]
    Client(http1::Client),
    #[cfg(feature = "http")]
    Server(http1::Server),
}

impl Conn {
    /// A codec at the start of a channel.
    pub fn new(kind: Kind, limits: &FrameLimits) -> Self {
        Self::sharing(kind, Arc::new(limits.clone()))
    }

    /// Like [`new`](Self::new), with limits that are not copied.
    pub(crate) fn sharing(kind: Kind, limits: Arc<FrameLimits>) -> Self {
        let codec = match kind {
            Kind::Lines => Codec::Lines(Lines::new(limits)),
            #[cfg(feature = "http")]
            Kind::HttpClient => Codec::Client(http1::Client::new(limits)),
            #[cfg(feature = "http")]
            Kind::HttpServer => Codec::Server(http1::Server::new(limits)),
        };
        Self { codec, written: VecDeque::new(), refused: None }
    }

    /// HTTP server: whether the body of each request stays unread, as bytes, until [`Outbound::Continue`] is encoded. A client that waits to
    /// be asked for its body (`Expect: 100-continue`) is asked then, and else when the item after its head is polled. A response that is
    /// encoded instead is the last of the channel. Lines: whether everything stays unread until [`Outbound::Continue`] is encoded. Changes
    /// nothing on an HTTP client. At first it is not so.
    pub fn set_holding(&mut self, holding: bool) {
        match &mut self.codec {
            Codec::Lines(lines) => lines.held = holding,
            #[cfg(feature = "http")]
            Codec::Client(_) => {}
            #[cfg(feature = "http")]
            Codec::Server(server) => server.set_holding(holding),
        }
    }

    /// Whether a body, or what comes by line, is held back now: see [`set_holding`](Self::set_holding).
    pub fn is_held(&self) -> bool {
        match &self.codec {
            Codec::Lines(lines) => lines.held,
            #[cfg(feature = "http")]
            Codec::Client(_) => false,
            #[cfg(feature = "http")]
            Codec::Server(server) => server.is_held(),
        }
    }

    /// Whether the client of the request that is read waits to be asked for its body (`Expect: 100-continue`), and was not.
    pub fn expects(&self) -> bool {
        match &self.codec {
            Codec::Lines(_) => false,
            #[cfg(feature = "http")]
            Codec::Client(_) => false,
            #[cfg(feature = "http")]
            Codec::Server(server) => server.expects(),
        }
    }

    /// What is spoken.
    pub fn kind(&self) -> Kind {
        match &self.codec {
            Codec::Lines(_) => Kind::Lines,
            #[cfg(feature = "http")]
            Codec::Client(_) => Kind::HttpClient,
            #[cfg(feature = "http")]
            Codec::Server(_) => Kind::HttpServer,
        }
    }

    /// Takes bytes that were read. Parses nothing; [`poll_item`](Self::poll_item) does. They are dropped after [`eof`](Self::eof), once
    /// the framing is [`broken`](Self::broken), and after an [`Inbound::Reject`].
    ///
    /// A large frame may keep `bytes` alive instead of a copy, so they should not be a small part of a large buffer.
    pub fn bytes(&mut self, bytes: Bytes) {
        match &mut self.codec {
            Codec::Lines(lines) => lines.bytes(bytes),
            #[cfg(feature = "http")]
            Codec::Client(client) => client.bytes(bytes),
            #[cfg(feature = "http")]
            Codec::Server(server) => server.bytes(bytes),
        }
    }

    /// The other side will send no more. What that means shows once everything before it was polled:
    ///
    /// * lines: an unfinished line is read as if it had ended, so that it is a message if it is complete, and else mostly a defect
    ///   `Truncated`, without an id; then [`Inbound::End`];
    /// * HTTP: a body that the end of the connection delimits ends with [`Inbound::End`]; a head or body that is cut short is
    ///   [`broken`](Self::broken); between two exchanges, or before the first byte of a response, nothing follows.
    pub fn eof(&mut self) {
        match &mut self.codec {
            Codec::Lines(lines) => lines.eof(),
            #[cfg(feature = "http")]
            Codec::Client(client) => client.eof(),
            #[cfg(feature = "http")]
            Codec::Server(server) => server.eof(),
        }
    }

    /// The next item; parses as far as needed for it and no farther.
    pub fn poll_item(&mut self) -> Option<Inbound> {
        match &mut self.codec {
            Codec::Lines(lines) => lines.poll_item(),
            #[cfg(feature = "http")]
            Codec::Client(client) => client.poll_item(),
            #[cfg(feature = "http")]
            Codec::Server(server) => server.poll_item(&mut self.written),
        }
    }

    /// A server gives up the request that is half read: it is rejected like one that is malformed. `None` on the other kinds.
    pub(crate) fn give_up(&mut self, defect: BadRequest) -> Option<Inbound> {
        match (&mut self.codec, defect) {
            #[cfg(feature = "http")]
            (Codec::Server(server), defect) => Some(server.give_up(defect)),
            _ => None,
        }
    }

    /// Set once the framing is broken so that nothing more can be understood; no item follows. The text says how. Never set for lines.
    pub fn broken(&self) -> Option<&String> {
        match &self.codec {
            Codec::Lines(_) => None,
            #[cfg(feature = "http")]
            Codec::Client(client) => client.broken(),
            #[cfg(feature = "http")]
            Codec::Server(server) => server.broken(),
        }
    }

    /// Frames one outgoing; large payloads are shared, not copied. Lines: a [`Message`](Outbound::Message); an
    /// [`End`](Outbound::End) writes nothing.
    ///
    /// HTTP heads can carry nothing into the channel but themselves: a field name that is no token, or a value with a control character,
    /// makes a server write a bare 500 in place of the response, and a client is [`broken`](Self::broken) and writes nothing.
    /// `Content-Length` and `Transfer-Encoding` of a given head are ignored, the codec knows better; `Connection: close` is heeded.
    /// A request without `Accept-Encoding` asks for `identity`, since no coding is understood.
    ///
    /// What cannot be written where it stands is not written, and [`take_refused`](Self::take_refused) says why: a part of another kind of
    /// channel, a message with a line feed on a channel of lines, and on a server an event, a comment or an end without a stream, or a
    /// response inside one.
    pub fn encode(&mut self, outgoing: Outbound) {
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
            #[cfg(feature = "http")]
            Codec::Client(client) => client.encode(outgoing, &mut self.written),
            #[cfg(feature = "http")]
            Codec::Server(server) => server.encode(outgoing, &mut self.written),
        };
        self.refused = encoded.err();
    }

    /// Why the part that was encoded last was not written. `None` if it was, and once this was called.
    pub fn take_refused(&mut self) -> Option<&'static str> {
        self.refused.take()
    }

    /// The next framed bytes to write.
    pub fn poll_write(&mut self) -> Option<Bytes> {
        self.written.pop_front()
    }

    /// Bytes that were read and are not yet items (capacity held for them).
    pub fn buffered(&self) -> usize {
        match &self.codec {
            Codec::Lines(lines) => lines.buffered(),
            #[cfg(feature = "http")]
            Codec::Client(client) => client.buffered(),
            #[cfg(feature = "http")]
            Codec::Server(server) => server.buffered(),
        }
    }

    /// HTTP: bytes of content of the current body that were polled since this was last called. Neither heads nor the framing of chunks are
    /// content. Always 0 for lines, and once the body has ended.
    pub(crate) fn take_content(&mut self) -> usize {
        match &mut self.codec {
            Codec::Lines(_) => 0,
            #[cfg(feature = "http")]
            Codec::Client(client) => client.take_content(),
            #[cfg(feature = "http")]
            Codec::Server(server) => server.take_content(),
        }
    }

    /// Whether nothing is half read: the channel could end here in order. Bytes that were not polled count as half read. A client that
    /// waits for a response of which no byte has come is at a boundary.
    pub fn at_boundary(&self) -> bool {
        match &self.codec {
            Codec::Lines(lines) => lines.at_boundary(),
            #[cfg(feature = "http")]
            Codec::Client(client) => client.at_boundary(),
            #[cfg(feature = "http")]
            Codec::Server(server) => server.at_boundary(),
        }
    }

    /// HTTP: whether the channel may carry another exchange after the current one (RFC 9112 section 9.3). Always true for lines.
    ///
    /// On a server it is final once the response was encoded: one that is given before the whole request was polled is the last.
    /// On a client it is final once the response has ended.
    pub fn keep_alive(&self) -> bool {
        match &self.codec {
            Codec::Lines(_) => true,
            #[cfg(feature = "http")]
            Codec::Client(client) => client.keep_alive(),
            #[cfg(feature = "http")]
            Codec::Server(server) => server.keep_alive(),
        }
    }
}

/// Writes a payload with what frames it: a small one as one piece, so that it is one write of the driver; a large one uncopied.
pub(super) fn write(out: &mut VecDeque<Bytes>, mut before: Vec<u8>, payload: Bytes, after: &'static [u8]) {
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
