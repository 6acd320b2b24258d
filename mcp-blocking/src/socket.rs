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
use std::net::Shutdown;
#[cfg(feature = "http")]
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
#[cfg(unix)]
use std::os::unix::net::UnixStream;
#[cfg(feature = "http")]
use std::time::Duration;

/// An open socket.
#[derive(Debug)]
pub(crate) enum Socket {
    #[cfg(feature = "http")]
    Tcp(TcpStream),
    #[cfg(unix)]
    Unix(UnixStream),
}

impl Socket {
    /// Its two directions, for a thread each.
    pub(crate) fn ends(&self) -> io::Result<(Reader, Writer)> {
        match *self {
            #[cfg(feature = "http")]
            Self::Tcp(ref socket) => Ok((Box::new(socket.try_clone()?), Box::new(socket.try_clone()?))),
            #[cfg(unix)]
            Self::Unix(ref socket) => Ok((Box::new(socket.try_clone()?), Box::new(socket.try_clone()?))),
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

/// Connects to an origin: to its addresses in turn, until one answers, within `limit`.
#[cfg(feature = "http")]
pub(crate) fn connect(origin: &Origin, limit: Duration, clock: &Clock) -> Result<Socket, Closed> {
    without_tls(origin)?;
    let began = clock.now();
    let addresses = (origin.host.as_str(), origin.port).to_socket_addrs().map_err(|_| Closed::Unresolved)?;
    dial(addresses, limit, || clock.now().since(began)).map(Socket::Tcp)
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
    UnixStream::connect(path).map(Socket::Unix).map_err(|e| not_opened(&path, &e))
}

#[cfg(all(test, unix, feature = "http", not(shuttle)))]
mod tests;
