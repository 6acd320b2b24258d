//! The targets of a client.

use crate::ends::{Reader, Writer};
use mcp_proto::ClientConfig;
use mcp_proto::Router;
use mcp_proto::adapter::ConnectError;
use mcp_proto::exchange::Program;
#[cfg(unix)]
use mcp_proto::exchange::UnixSocket;
use std::fmt;
use std::io::{self, Read, Write};
use std::process::Command;

/// A value that names a server: a [`Program`] or a [`Command`], an `http:` URL, a [`UnixSocket`], a
/// `(reader, writer)` pair, or a [`Router`] to serve in this process.
pub trait IntoTarget {
    /// Converts it to a target.
    ///
    /// # Errors
    /// [`ConnectError`] if it is invalid.
    fn into_target(self) -> Result<Target, ConnectError>;
}

/// A server to connect to, created by [`IntoTarget`].
pub struct Target {
    pub(crate) config: ClientConfig,
    pub(crate) given: Option<Given>,
}

/// Creates the two ends of a connection that the engine need not open.
pub(crate) type Given = Box<dyn FnOnce() -> io::Result<(Reader, Writer)> + Send>;

impl IntoTarget for Target {
    fn into_target(self) -> Result<Target, ConnectError> {
        Ok(self)
    }
}

impl IntoTarget for Program {
    fn into_target(self) -> Result<Target, ConnectError> {
        Ok(Target { config: ClientConfig::program(self), given: None })
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
        Ok(Target { config: ClientConfig::url(self).map_err(ConnectError::Url)?, given: None })
    }
}

impl IntoTarget for String {
    /// An absolute `http:` URL.
    fn into_target(self) -> Result<Target, ConnectError> {
        self.as_str().into_target()
    }
}

#[cfg(unix)]
impl IntoTarget for UnixSocket {
    /// The server that listens there, with newline-delimited messages as over a pair of streams.
    fn into_target(self) -> Result<Target, ConnectError> {
        Ok(Target { config: ClientConfig::unix(self.0), given: None })
    }
}

impl<R: Read + Send + 'static, W: Write + Send + 'static> IntoTarget for (R, W) {
    /// A connection with newline-delimited messages. Each end has its own thread. A `read` that
    /// blocks forever occupies that thread, not the client.
    fn into_target(self) -> Result<Target, ConnectError> {
        let given: Given = Box::new(move || Ok((Box::new(self.0) as Reader, Box::new(self.1) as Writer)));
        Ok(Target { config: ClientConfig::given(), given: Some(given) })
    }
}

impl IntoTarget for Router {
    /// Serves it in this process, over a pair of pipes. It ends with the client.
    fn into_target(self) -> Result<Target, ConnectError> {
        let given: Given = Box::new(move || {
            let (from_server, to_client) = crate::os::pipe()?;
            let (from_client, to_server) = crate::os::pipe()?;
            crate::sync::spawn("mcp-router", move || drop(crate::serve(self, from_client, to_client)))?;
            Ok((from_server, to_server))
        });
        Ok(Target { config: ClientConfig::given(), given: Some(given) })
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Target").field(&self.config.target).finish()
    }
}
