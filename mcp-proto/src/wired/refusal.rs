//! What is said on a connection that is not taken in.

#[cfg(feature = "http")]
use crate::frame::Conn;
use crate::frame::Kind;
#[cfg(feature = "http")]
use crate::limits::FrameLimits;
#[cfg(feature = "http")]
use crate::server::unavailable;
#[cfg(feature = "http")]
use alloc::vec::Vec;
use bytes::Bytes;

/// The bytes to write to a channel that [`SharedServer::join`](super::SharedServer::join) or [`WiredServer::accept`](super::WiredServer::accept) did not take
/// in, before it is closed; `None` where nothing is said.
///
/// An HTTP client gets a whole answer before it has asked, 503 with `Retry-After`: it takes that for the answer to its first request. Write
/// what can be written without waiting, end the writing side, read what is there already, and close. What is unread would make the
/// operating system reset the connection, and a client that gets a reset has lost the reason, nothing else. On newline-delimited messages
/// there is no request to answer.
pub fn refusal(kind: Kind) -> Option<Bytes> {
    match kind {
        #[cfg(feature = "http")]
        Kind::HttpServer => Some(busy()),
        _ => None,
    }
}

#[cfg(feature = "http")]
fn busy() -> Bytes {
    let mut conn = Conn::new(Kind::HttpServer, &FrameLimits::default());
    conn.encode(unavailable("the server takes no more connections for now"));
    core::iter::from_fn(|| conn.poll_write()).flatten().collect::<Vec<u8>>().into()
}
