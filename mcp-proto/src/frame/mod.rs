//! Codecs: bytes to items and outgoings to bytes. No clock, no exchange, no engine.
//!
//! [`Conn`] is the codec of a whole channel. Whoever has an HTTP stack of their own uses only [`Body`], [`encode_event`] and
//! [`encode_comment`].

#[cfg(feature = "http")]
mod body;
mod conn;
#[cfg(feature = "http")]
mod http1;
mod input;
mod line;
#[cfg(feature = "http")]
mod sse;

#[cfg(test)]
mod tests;

#[cfg(feature = "http")]
pub use body::Body;
#[cfg(feature = "http")]
pub(crate) use body::{Media, media_type};
pub use conn::{Conn, Kind};
#[cfg(feature = "http")]
pub use sse::{encode_comment, encode_event};
