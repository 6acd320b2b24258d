//! The connections that an application gives to a client or to a server.

use crate::Service;
use crate::source::{End, Half, Readiness};
use async_io::Async;
use mcp_driver::{ConnectError, IntoTarget, Target};
use mcp_proto::Router;
use smol::io::{AsyncRead, AsyncWrite};
use smol::net::TcpStream;
#[cfg(unix)]
use smol::net::unix::UnixStream;
use std::fmt;
use std::io::{Read, Write};
use std::sync::Arc;
use std::task::{Context, Poll};

/// The reading half.
pub(crate) struct Reader {
    pub(crate) stream: Box<dyn AsyncRead + Send + Unpin>,
    /// `None` for a stream of the application: only a read tells.
    readiness: Option<Arc<dyn Readiness>>,
}

/// The writing half.
pub(crate) type Writer = Box<dyn AsyncWrite + Send + Unpin>;

impl Reader {
    /// Returns the reader of a stream of the application.
    pub(crate) fn new(stream: impl AsyncRead + Send + Unpin + 'static) -> Self {
        Self { stream: Box::new(stream), readiness: None }
    }

    /// Returns the reader of a stream of the operating system.
    pub(crate) fn of_system<T: Send + Sync + 'static>(source: Arc<Async<T>>) -> Self
    where
        for<'a> &'a T: Read,
    {
        Self { readiness: Some(source.clone()), stream: Box::new(Half(source)) }
    }

    /// Waits until there is something to read, if that is known. Otherwise ready.
    pub(crate) fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.readiness.as_ref().map_or(Poll::Ready(()), |readiness| readiness.poll_readable(cx))
    }
}

/// An open connection: a TCP or Unix domain socket, or a `(reader, writer)` pair. For a TLS stream
/// use `smol::io::split`.
pub struct Stream {
    pub(crate) reader: Reader,
    pub(crate) writer: Writer,
    pub(crate) is_pair: bool,
}

impl Stream {
    /// Returns the stream of a socket.
    fn of_socket<T: End + Send + Sync + 'static>(socket: Arc<Async<T>>) -> Self
    where
        for<'a> &'a T: Read + Write,
    {
        Self { reader: Reader::of_system(socket.clone()), writer: Box::new(Half(socket)), is_pair: false }
    }
}

impl From<TcpStream> for Stream {
    fn from(socket: TcpStream) -> Self {
        Self::of_socket(socket.into())
    }
}

#[cfg(unix)]
impl From<UnixStream> for Stream {
    fn from(socket: UnixStream) -> Self {
        Self::of_socket(socket.into())
    }
}

impl<R, W> From<(R, W)> for Stream
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    fn from((reader, writer): (R, W)) -> Self {
        Self { reader: Reader::new(reader), writer: Box::new(writer), is_pair: true }
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream").field("is_pair", &self.is_pair).finish_non_exhaustive()
    }
}

/// A target that the engine does not open.
#[derive(Debug)]
pub struct Given(pub(crate) GivenKind);

#[derive(Debug)]
pub(crate) enum GivenKind {
    Stream(Stream),
    /// A server in this process.
    Service(Box<Service>),
}

/// A connection with newline-delimited messages.
impl<R, W> IntoTarget<Given> for (R, W)
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    fn into_target(self) -> Result<Target<Given>, ConnectError> {
        Ok(Target::given(Given(GivenKind::Stream(self.into()))))
    }
}

/// Serves it in this process. It ends with the client.
impl IntoTarget<Given> for Router {
    fn into_target(self) -> Result<Target<Given>, ConnectError> {
        Service::from(self).into_target()
    }
}

/// Serves it in this process. It ends with the client.
impl IntoTarget<Given> for Service {
    fn into_target(self) -> Result<Target<Given>, ConnectError> {
        Ok(Target::given(Given(GivenKind::Service(Box::new(self)))))
    }
}
