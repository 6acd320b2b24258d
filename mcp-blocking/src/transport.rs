//! The connections that an application gives to a client or to a server.

use crate::Service;
use crate::socket::Socket;
use mcp_proto::Router;
use mcp_proto::adapter::{ConnectError, IntoTarget, Target};
use std::fmt;
use std::io::{self, Read, Write};
use std::net::TcpStream;
#[cfg(unix)]
use std::os::unix::net::UnixStream;

pub(crate) type Reader = Box<dyn Read + Send>;
pub(crate) type Writer = Box<dyn Write + Send>;

/// An open connection: a TCP or Unix domain socket, or a `(reader, writer)` pair. A `read` of a
/// pair that blocks forever occupies its thread and nothing else. Unlike a read of a socket, it
/// cannot be woken.
///
/// A pair is read and written at the same time, on two threads. The two ends of one TLS stream
/// behind a lock are not such a pair: a waiting read would block every write. Terminate TLS in a
/// proxy, or use `mcp-smol`.
pub struct Stream {
    pub(crate) reader: Reader,
    pub(crate) writer: Writer,
    /// To wake its threads.
    pub(crate) socket: Option<Socket>,
}

impl From<TcpStream> for Stream {
    fn from(socket: TcpStream) -> Self {
        Socket::Tcp(socket.into()).into()
    }
}

#[cfg(unix)]
impl From<UnixStream> for Stream {
    fn from(socket: UnixStream) -> Self {
        Socket::Unix(socket.into()).into()
    }
}

impl From<Socket> for Stream {
    fn from(socket: Socket) -> Self {
        let (reader, writer) = socket.ends();
        Self { reader, writer, socket: Some(socket) }
    }
}

impl<R: Read + Send + 'static, W: Write + Send + 'static> From<(R, W)> for Stream {
    fn from((reader, writer): (R, W)) -> Self {
        Self { reader: Box::new(reader), writer: Box::new(writer), socket: None }
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream").field("socket", &self.socket).finish_non_exhaustive()
    }
}

/// A target that the engine does not open: creates the two ends of its connection.
pub struct Given(pub(crate) Box<dyn FnOnce() -> io::Result<(Reader, Writer)> + Send>);

impl fmt::Debug for Given {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Given(..)")
    }
}

/// A connection with newline-delimited messages. Each end has its own thread. A `read` that blocks
/// forever occupies that thread, not the client.
impl<R: Read + Send + 'static, W: Write + Send + 'static> IntoTarget<Given> for (R, W) {
    fn into_target(self) -> Result<Target<Given>, ConnectError> {
        Ok(Target::given(Given(Box::new(move || Ok((Box::new(self.0) as Reader, Box::new(self.1) as Writer))))))
    }
}

/// Serves it in this process, over a pair of pipes. It ends with the client.
impl IntoTarget<Given> for Router {
    fn into_target(self) -> Result<Target<Given>, ConnectError> {
        Service::from(self).into_target()
    }
}

/// Serves it in this process, over a pair of pipes. It ends with the client.
impl IntoTarget<Given> for Service {
    fn into_target(self) -> Result<Target<Given>, ConnectError> {
        Ok(Target::given(Given(Box::new(move || {
            let (from_server, to_client) = crate::os::pipe()?;
            let (from_client, to_server) = crate::os::pipe()?;
            crate::sync::spawn("mcp-router", move || drop(crate::serve(self, from_client, to_client)))?;
            Ok((from_server, to_server))
        }))))
    }
}
