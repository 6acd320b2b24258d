//! TCP and Unix domain sockets.

#[cfg(unix)]
use crate::direct::WriteNow;
use crate::transport::{Reader, Writer};
#[cfg(unix)]
use mcp_driver::send_now;
use mcp_driver::{Attempts, Clock, TlsConnector, not_opened};
use mcp_proto::exchange::Closed;
use mcp_proto::exchange::{Origin, Peer, Reach};
use std::io;
use std::io::{IoSlice, Read, Write};
use std::net::Shutdown;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
#[cfg(unix)]
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

/// An open socket. Its clones share one descriptor.
#[derive(Clone, Debug)]
pub(crate) enum Socket {
    Tcp(Arc<TcpStream>),
    #[cfg(unix)]
    Unix(Arc<UnixStream>),
}

impl Socket {
    /// Returns its two directions, for a thread each.
    pub(crate) fn ends(&self) -> (Reader, Writer) {
        (Box::new(self.clone()), Box::new(SendHalf(self.clone())))
    }

    /// Shuts down directions of the socket, and wakes the threads that read or write there. An
    /// error means that the socket is already shut down, which is harmless.
    pub(crate) fn shutdown(&self, how: Shutdown) {
        match *self {
            Self::Tcp(ref socket) => drop(socket.shutdown(how)),
            #[cfg(unix)]
            Self::Unix(ref socket) => drop(socket.shutdown(how)),
        }
    }
}

#[cfg(unix)]
impl WriteNow for Socket {
    fn write_now(&self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Self::Tcp(socket) => send_now(socket, pieces),
            Self::Unix(socket) => send_now(socket, pieces),
        }
    }
}

impl Read for Socket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match *self {
            Self::Tcp(ref socket) => (&**socket).read(buffer),
            #[cfg(unix)]
            Self::Unix(ref socket) => (&**socket).read(buffer),
        }
    }
}

/// The sending direction. Dropping it ends that direction.
struct SendHalf(Socket);

impl Drop for SendHalf {
    fn drop(&mut self) {
        self.0.shutdown(Shutdown::Write);
    }
}

impl Write for SendHalf {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_vectored(&[IoSlice::new(bytes)])
    }

    fn write_vectored(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        match self.0 {
            Socket::Tcp(ref socket) => (&**socket).write_vectored(pieces),
            #[cfg(unix)]
            Socket::Unix(ref socket) => (&**socket).write_vectored(pieces),
        }
    }

    /// Nothing is buffered.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Connects to the addresses of an origin, one after another, within `limit`. TLS begins later.
pub(crate) fn connect(
    origin: &Origin,
    reach: Reach,
    limit: Duration,
    clock: &Clock,
    connector: &TlsConnector,
) -> Result<(Socket, Peer), Closed> {
    if origin.tls {
        connector.prepare().map_err(Closed::Tls)?;
    }
    let began = clock.now();
    let addresses = (&*origin.host, origin.port).to_socket_addrs().map_err(|_| Closed::Unresolved)?;
    let (socket, address) = dial(Attempts::within(reach, addresses, limit), || clock.now().since(began))?;
    Ok((Socket::Tcp(socket.into()), Peer::tcp(address)))
}

/// Connects to the first address that accepts.
fn dial(mut attempts: Attempts<SocketAddr>, elapsed: impl Fn() -> Duration) -> Result<(TcpStream, SocketAddr), Closed> {
    while let Some((address, patience)) = attempts.next(elapsed()) {
        match TcpStream::connect_timeout(&address, patience) {
            Ok(socket) => {
                // Otherwise small requests would wait for the acknowledgement of earlier ones. A
                // failure is harmless.
                drop(socket.set_nodelay(true));
                return Ok((socket, address));
            }
            Err(e) => attempts.failed(address, not_opened(&address, &e)),
        }
    }
    Err(attempts.why())
}

/// Connects to the socket at this path.
#[cfg(unix)]
pub(crate) fn connect_unix(path: &str) -> Result<Socket, Closed> {
    UnixStream::connect(path).map(|socket| Socket::Unix(socket.into())).map_err(|e| not_opened(&path, &e))
}

#[cfg(all(test, unix, feature = "http", not(shuttle)))]
mod tests;
