//! Connections that were accepted: by our own listeners, or by whoever owns one.

use crate::socket::Socket;
use crate::target::{Reader, Writer};
use mcp_proto::wired::{Kind, refusal};
use std::fmt;
use std::io::{self, Read, Write};
#[cfg(feature = "http")]
use std::net::TcpStream;
#[cfg(unix)]
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// A connection that was accepted: made of a TCP or Unix domain socket, or of a `(reader, writer)` pair. A `read` of a pair that blocks for
/// ever costs its thread, and no more: it cannot be woken, as one of a socket is.
///
/// A pair is read and written at the same time, on two threads. The two ends of one TLS stream behind a lock are no such pair: a read that
/// waits would hold up every write. Let a proxy end the TLS, or take `mcp-smol`.
pub struct Stream {
    pub(crate) socket: Option<Socket>,
    pub(crate) reader: Reader,
    pub(crate) writer: Writer,
}

#[cfg(feature = "http")]
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
    #[cfg(any(unix, feature = "http"))]
    fn of(socket: Socket) -> Self {
        let (reader, writer) = socket.ends();
        Self { socket: Some(socket), reader, writer }
    }

    /// Says to a client that there is no room for it, if there is a way to say that, and waits a while until it was heard: whoever closes
    /// earlier may take the words back (RFC 9112 section 9.6). The streams of a pair are not waited for.
    pub(crate) fn refuse(mut self, kind: Kind, patience: Duration) -> io::Result<()> {
        let Some(words) = refusal(kind) else { return Ok(()) };
        let began = Instant::now();
        if let Some(socket) = &self.socket {
            socket.limit(patience)?;
        }
        self.writer.write_all(&words)?;
        self.writer.flush()?;
        if let Some(socket) = &self.socket {
            socket.shutdown(std::net::Shutdown::Write);
            while began.elapsed() < patience && self.reader.read(&mut [0; 1024])? > 0 {}
        }
        Ok(())
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream").field("socket", &self.socket).finish_non_exhaustive()
    }
}
