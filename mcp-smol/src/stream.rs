//! The connections that an application gives to a client or to a server.

use crate::Service;
use mcp_proto::Router;
use mcp_proto::adapter::{ConnectError, IntoTarget, Target};
use smol::io::{AsyncRead, AsyncWrite};
use smol::net::TcpStream;
#[cfg(unix)]
use smol::net::unix::UnixStream;
use std::fmt;

/// The reading half.
pub(crate) type Reader = Box<dyn AsyncRead + Send + Unpin>;
/// The writing half.
pub(crate) type Writer = Box<dyn AsyncWrite + Send + Unpin>;

/// An open connection: a TCP or Unix domain socket, or a `(reader, writer)` pair. For a TLS stream
/// use `smol::io::split`.
pub struct Stream {
    pub(crate) reader: Reader,
    pub(crate) writer: Writer,
    pub(crate) is_pair: bool,
}

impl From<TcpStream> for Stream {
    fn from(socket: TcpStream) -> Self {
        Self { is_pair: false, ..Self::from((socket.clone(), socket)) }
    }
}

#[cfg(unix)]
impl From<UnixStream> for Stream {
    fn from(socket: UnixStream) -> Self {
        Self { is_pair: false, ..Self::from((socket.clone(), socket)) }
    }
}

impl<R, W> From<(R, W)> for Stream
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    fn from((reader, writer): (R, W)) -> Self {
        Self { reader: Box::new(reader), writer: Box::new(writer), is_pair: true }
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
