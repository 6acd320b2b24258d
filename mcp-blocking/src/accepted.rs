//! Accepted connections, from a listener of this crate or of the application.

use crate::ends::{Reader, Writer};
use crate::socket::Socket;
use std::fmt;
use std::io::{Read, Write};
use std::net::TcpStream;
#[cfg(unix)]
use std::os::unix::net::UnixStream;

/// An accepted connection: a TCP or Unix domain socket, or a `(reader, writer)` pair. A `read` of a
/// pair that blocks forever occupies its thread and nothing else. Unlike a read of a socket, it
/// cannot be woken.
///
/// A pair is read and written at the same time, on two threads. The two ends of one TLS stream
/// behind a lock are not such a pair: a waiting read would block every write. Terminate TLS in a
/// proxy, or use `mcp-smol`.
pub struct Stream {
    pub(crate) socket: Option<Socket>,
    pub(crate) reader: Reader,
    pub(crate) writer: Writer,
}

impl From<TcpStream> for Stream {
    fn from(socket: TcpStream) -> Self {
        Self::of(Socket::Tcp(socket.into()))
    }
}

#[cfg(unix)]
impl From<UnixStream> for Stream {
    fn from(socket: UnixStream) -> Self {
        Self::of(Socket::Unix(socket.into()))
    }
}

impl<R: Read + Send + 'static, W: Write + Send + 'static> From<(R, W)> for Stream {
    fn from((reader, writer): (R, W)) -> Self {
        Self { socket: None, reader: Box::new(reader), writer: Box::new(writer) }
    }
}

impl Stream {
    fn of(socket: Socket) -> Self {
        let (reader, writer) = socket.ends();
        Self { socket: Some(socket), reader, writer }
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream").field("socket", &self.socket).finish_non_exhaustive()
    }
}
