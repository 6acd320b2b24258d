//! The targets of a client.

use crate::ends::{Reader, Writer};
use crate::{Router, Service};
use mcp_proto::adapter::ConnectError;
use mcp_proto::client::ClientConfig;
use mcp_proto::exchange::Program;
#[cfg(unix)]
use mcp_proto::exchange::UnixSocket;
use smol::io::{AsyncRead, AsyncWrite};
use std::fmt;
use std::process::Command;

/// The location of a server, created by [`IntoTarget`].
pub struct Target(pub(crate) Place);

pub(crate) enum Place {
    Known(mcp_proto::client::Target),
    Pair(Reader, Writer),
    Here(Box<Service>),
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Place::Known(target) => target.fmt(f),
            Place::Pair(..) => f.write_str("a reader and a writer"),
            Place::Here(_) => f.write_str("a router in this process"),
        }
    }
}

/// The argument of [`connect`](crate::connect): a [`Program`] or a [`Command`] to start, an `http:`
/// URL, a `UnixSocket` (on Unix), a reader and a writer, or a [`Router`](crate::Router) or
/// [`Service`] to serve in this process.
pub trait IntoTarget {
    /// Converts it to a target.
    ///
    /// # Errors
    /// [`ConnectError`] if it is invalid.
    fn into_target(self) -> Result<Target, ConnectError>;
}

impl IntoTarget for Target {
    fn into_target(self) -> Result<Target, ConnectError> {
        Ok(self)
    }
}

impl IntoTarget for mcp_proto::client::Target {
    fn into_target(self) -> Result<Target, ConnectError> {
        Ok(Target(Place::Known(self)))
    }
}

impl IntoTarget for Program {
    fn into_target(self) -> Result<Target, ConnectError> {
        ClientConfig::program(self).target.into_target()
    }
}

#[cfg(unix)]
impl IntoTarget for UnixSocket {
    fn into_target(self) -> Result<Target, ConnectError> {
        ClientConfig::unix(self.0).target.into_target()
    }
}

impl IntoTarget for &Command {
    /// Uses the command with its arguments, directory and environment, and replaces its streams.
    fn into_target(self) -> Result<Target, ConnectError> {
        Program::try_from(self).map_err(ConnectError::Command)?.into_target()
    }
}

impl IntoTarget for &mut Command {
    /// As for `&Command`, to accept a chain of its builder methods.
    fn into_target(self) -> Result<Target, ConnectError> {
        (&*self).into_target()
    }
}

impl IntoTarget for Command {
    /// As for `&Command`.
    fn into_target(self) -> Result<Target, ConnectError> {
        (&self).into_target()
    }
}

impl IntoTarget for &str {
    /// An absolute `http:` URL.
    fn into_target(self) -> Result<Target, ConnectError> {
        ClientConfig::url(self).map_err(ConnectError::Url)?.target.into_target()
    }
}

impl IntoTarget for String {
    /// An absolute `http:` URL.
    fn into_target(self) -> Result<Target, ConnectError> {
        self.as_str().into_target()
    }
}

impl<R, W> IntoTarget for (R, W)
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    fn into_target(self) -> Result<Target, ConnectError> {
        Ok(Target(Place::Pair(Box::new(self.0), Box::new(self.1))))
    }
}

impl IntoTarget for Router {
    fn into_target(self) -> Result<Target, ConnectError> {
        Service::from(self).into_target()
    }
}

impl IntoTarget for Service {
    fn into_target(self) -> Result<Target, ConnectError> {
        Ok(Target(Place::Here(Box::new(self))))
    }
}
