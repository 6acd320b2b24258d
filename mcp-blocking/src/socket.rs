//! Sockets that a channel may be: TCP, and Unix domain sockets.

#[cfg(feature = "http")]
use crate::os::Clock;
use crate::target::{Reader, Writer};
#[cfg(any(unix, feature = "http"))]
use mcp_proto::driver::not_opened;
#[cfg(feature = "http")]
use mcp_proto::driver::{Attempts, without_tls};
#[cfg(any(unix, feature = "http"))]
use mcp_proto::exchange::Closed;
#[cfg(feature = "http")]
use mcp_proto::exchange::Origin;
use std::io;
#[cfg(any(unix, feature = "http"))]
use std::io::{IoSlice, Read, Write};
use std::net::Shutdown;
#[cfg(feature = "http")]
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
#[cfg(unix)]
use std::os::unix::net::UnixStream;
#[cfg(any(unix, feature = "http"))]
use std::sync::Arc;
use std::time::Duration;

/// An open socket. Its clones share one descriptor.
#[derive(Clone, Debug)]
pub(crate) enum Socket {
    #[cfg(feature = "http")]
    Tcp(Arc<TcpStream>),
    #[cfg(unix)]
    Unix(Arc<UnixStream>),
}

impl Socket {
    /// Its two directions, for a thread each.
    #[cfg(any(unix, feature = "http"))]
    pub(crate) fn ends(&self) -> (Reader, Writer) {
        (Box::new(self.clone()), Box::new(self.clone()))
    }

    /// Lets each read and each write of it wait at most so long.
    pub(crate) fn limit(&self, patience: Duration) -> io::Result<()> {
        // None is no limit, and zero not allowed.
        let patience = Some(patience.max(Duration::from_millis(1)));
        match *self {
            #[cfg(feature = "http")]
            Self::Tcp(ref socket) => {
                socket.set_read_timeout(patience).and_then(|()| socket.set_write_timeout(patience))
            }
            #[cfg(unix)]
            Self::Unix(ref socket) => {
                socket.set_read_timeout(patience).and_then(|()| socket.set_write_timeout(patience))
            }
        }
    }

    /// Ends directions of it, and wakes whoever reads or writes there. It fails if that has happened, which is what is wanted.
    pub(crate) fn shutdown(&self, how: Shutdown) {
        match *self {
            #[cfg(feature = "http")]
            Self::Tcp(ref socket) => drop(socket.shutdown(how)),
            #[cfg(unix)]
            Self::Unix(ref socket) => drop(socket.shutdown(how)),
        }
    }
}

#[cfg(any(unix, feature = "http"))]
impl Read for Socket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match *self {
            #[cfg(feature = "http")]
            Self::Tcp(ref socket) => (&**socket).read(buffer),
            #[cfg(unix)]
            Self::Unix(ref socket) => (&**socket).read(buffer),
        }
    }
}

#[cfg(any(unix, feature = "http"))]
impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_vectored(&[IoSlice::new(bytes)])
    }

    fn write_vectored(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        match *self {
            #[cfg(feature = "http")]
            Self::Tcp(ref socket) => (&**socket).write_vectored(pieces),
            #[cfg(unix)]
            Self::Unix(ref socket) => (&**socket).write_vectored(pieces),
        }
    }

    /// Nothing is held back.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Connects to an origin: to its addresses in turn, until one answers, within `limit`.
#[cfg(feature = "http")]
pub(crate) fn connect(origin: &Origin, limit: Duration, clock: &Clock) -> Result<Socket, Closed> {
    without_tls(origin)?;
    let began = clock.now();
    let addresses = (origin.host.as_str(), origin.port).to_socket_addrs().map_err(|_| Closed::Unresolved)?;
    dial(addresses, limit, || clock.now().since(began)).map(|socket| Socket::Tcp(socket.into()))
}

/// Connects to the first of these addresses that answers.
#[cfg(feature = "http")]
fn dial(
    addresses: impl IntoIterator<Item = SocketAddr>,
    limit: Duration,
    elapsed: impl Fn() -> Duration,
) -> Result<TcpStream, Closed> {
    let mut attempts = Attempts::new(addresses, limit);
    while let Some((address, patience)) = attempts.next(elapsed()) {
        match TcpStream::connect_timeout(&address, patience) {
            Ok(socket) => {
                // Requests are small and waited for. Where the option does not exist they are merely slower.
                drop(socket.set_nodelay(true));
                return Ok(socket);
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
