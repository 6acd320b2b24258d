//! Codecs: bytes to inbound parts, and outbound parts to bytes. No clock, no exchange, no engine.
//!
//! [`Conn`] is the codec of a connection. An application with its own HTTP stack needs only
//! [`BodyDecoder`], [`encode_event`] and [`encode_comment`]; one that makes a single request needs
//! only [`one_shot`].

mod body;
mod coding;
mod conn;
mod http1;
mod input;
mod line;
mod one_shot;
mod sse;
mod work;
mod ws;

#[cfg(test)]
mod tests;

pub use body::BodyDecoder;
pub(crate) use body::{Media, media_of, media_type};
pub use conn::{Conn, Kind};
pub(crate) use http1::{ConnectCodec, false_coding};
pub use one_shot::one_shot;
pub use sse::{encode_comment, encode_event};
pub(crate) use work::Work;
pub(crate) use ws::WsSupport;
#[cfg(feature = "ws")]
pub use ws::handshake::accept_web_socket;
pub(crate) use ws::handshake::{HandshakeReply, Upgrade, check_request, refusal_fields};
pub use ws::{CloseCode, CloseFrame, FrameReader, WsItem};
