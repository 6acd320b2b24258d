//! Sockets that a channel may be: TCP, and Unix domain sockets.

use crate::target::{Reader, Writer};
#[cfg(any(unix, feature = "http"))]
use mcp_proto::driver::not_opened;
#[cfg(any(unix, feature = "http"))]
use mcp_proto::exchange::Closed;
#[cfg(feature = "http")]
use mcp_proto::exchange::Origin;
use std::io;
use std::net::Shutdown;
#[cfg(feature = "http")]
use std::net::{TcpStream, ToSocketAddrs};
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

/// Connects to an origin: to each of its addresses in turn, until one answers.
#[cfg(feature = "http")]
pub(crate) fn connect(origin: &Origin, timeout: Duration) -> Result<Socket, Closed> {
    if origin.tls {
        return Err(Closed::Unreachable("this build cannot do tls".into()));
    }
    let addresses = (origin.host.as_str(), origin.port).to_socket_addrs().map_err(|_| Closed::Unresolved)?;
    let mut last = Closed::Unresolved;
    for address in addresses {
        match TcpStream::connect_timeout(&address, timeout) {
            Ok(socket) => {
                drop(socket.set_nodelay(true));
                return Ok(Socket::Tcp(socket));
            }
            Err(e) => last = not_opened(&address, &e),
        }
    }
    Err(last)
}

/// Connects to the socket at this path.
#[cfg(unix)]
pub(crate) fn connect_unix(path: &str) -> Result<Socket, Closed> {
    UnixStream::connect(path).map(Socket::Unix).map_err(|e| not_opened(&path, &e))
}
