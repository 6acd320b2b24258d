//! The connections that an application gives to a client or to a server.

use crate::Service;
use crate::direct::Direct;
use crate::polled::{self, PolledSource};
use crate::server::serve_stream;
use crate::socket::Socket;
use mcp_driver::{ConnectError, IntoTarget, Target};
use mcp_proto::Router;
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
/// behind a lock are not such a pair: a waiting read would block every write. The feature `tls` has
/// TLS of its own.
pub struct Stream {
    pub(crate) reader: Reader,
    /// To read without being stuck, if possible.
    pub(crate) polled: Option<PolledSource>,
    pub(crate) writer: Writer,
    /// To write without waiting, if possible.
    pub(crate) direct: Option<Direct>,
    /// To wake its threads.
    pub(crate) socket: Option<Socket>,
}

/// The two ends of a stream that is no socket.
pub(crate) struct Ends {
    pub(crate) reader: Reader,
    pub(crate) polled: Option<PolledSource>,
    pub(crate) writer: Writer,
    pub(crate) direct: Option<Direct>,
}

impl Ends {
    /// Returns the ends of a stream of the application, which may do anything.
    fn foreign(reader: impl Read + Send + 'static, writer: impl Write + Send + 'static) -> Self {
        Self { reader: Box::new(reader), polled: None, writer: Box::new(writer), direct: None }
    }
}

impl Stream {
    pub(crate) fn of(ends: Ends) -> Self {
        let Ends { reader, polled, writer, direct } = ends;
        Self { reader, polled, writer, direct, socket: None }
    }
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
        #[cfg(unix)]
        let direct: Option<Direct> = Some(Box::new(socket.clone()));
        #[cfg(not(unix))]
        let direct = None;
        Self { reader, polled: polled::socket(&socket), writer, direct, socket: Some(socket) }
    }
}

impl<R: Read + Send + 'static, W: Write + Send + 'static> From<(R, W)> for Stream {
    fn from((reader, writer): (R, W)) -> Self {
        Self::of(Ends::foreign(reader, writer))
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream").field("socket", &self.socket).finish_non_exhaustive()
    }
}

/// A target that the engine does not open: creates the two ends of its connection.
pub struct Given(pub(crate) Box<dyn FnOnce() -> io::Result<Ends> + Send>);

impl fmt::Debug for Given {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Given(..)")
    }
}

/// A connection with newline-delimited messages. Each end has its own thread. A `read` that blocks
/// forever occupies that thread, not the client.
impl<R: Read + Send + 'static, W: Write + Send + 'static> IntoTarget<Given> for (R, W) {
    fn into_target(self) -> Result<Target<Given>, ConnectError> {
        Ok(Target::given(Given(Box::new(move || Ok(Ends::foreign(self.0, self.1))))))
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
            let (client, server) = crate::os::pipes()?;
            crate::sync::spawn("mcp-router", move || drop(serve_stream(self, Stream::of(server))))?;
            Ok(client)
        }))))
    }
}
