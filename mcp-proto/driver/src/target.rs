//! The targets of a client.

use super::connect::ConnectError;
use alloc::string::String;
use core::fmt;
use mcp_proto::client::{self, ClientConfig};
use mcp_proto::exchange::{Program, UnixSocket};
use std::process::Command;

/// The location of a server, created by [`IntoTarget`]. `S` is what an adapter needs beyond it: the
/// streams of a connection that the application provides, or a router to serve in this process.
pub struct Target<S> {
    config: ClientConfig,
    given: Option<S>,
}

impl<S> Target<S> {
    /// Returns a target that the engine opens.
    pub fn new(config: ClientConfig) -> Self {
        Self { config, given: None }
    }

    /// Returns a target that is open: see [`ClientConfig::given`].
    pub fn given(given: S) -> Self {
        Self { config: ClientConfig::given(), given: Some(given) }
    }

    /// Returns the configuration of a client of this target, and what the driver is given.
    pub fn into_parts(self) -> (ClientConfig, Option<S>) {
        (self.config, self.given)
    }
}

impl<S> fmt::Debug for Target<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Target").field(&self.config.target).finish()
    }
}

/// A value that names a server: a [`Program`] or a [`Command`] to start, an `http:` or `ws:` URL, a
/// [`UnixSocket`], and what the adapter adds: a `(reader, writer)` pair, and a
/// [`Router`](mcp_proto::Router) to serve in this process.
pub trait IntoTarget<S> {
    /// Converts it to a target.
    ///
    /// # Errors
    /// [`ConnectError`] if it is invalid.
    fn into_target(self) -> Result<Target<S>, ConnectError>;
}

impl<S> IntoTarget<S> for Target<S> {
    fn into_target(self) -> Result<Self, ConnectError> {
        Ok(self)
    }
}

impl<S> IntoTarget<S> for client::Target {
    fn into_target(self) -> Result<Target<S>, ConnectError> {
        Ok(Target::new(ClientConfig::new(self)))
    }
}

impl<S> IntoTarget<S> for Program {
    fn into_target(self) -> Result<Target<S>, ConnectError> {
        Ok(Target::new(ClientConfig::program(self)))
    }
}

/// Each message is a line, as over a pair of streams.
impl<S> IntoTarget<S> for UnixSocket {
    fn into_target(self) -> Result<Target<S>, ConnectError> {
        Ok(Target::new(ClientConfig::unix(self.0)))
    }
}

/// Uses the command with its arguments, directory and environment, and replaces its streams.
impl<S> IntoTarget<S> for &Command {
    fn into_target(self) -> Result<Target<S>, ConnectError> {
        Program::try_from(self).map_err(ConnectError::Command)?.into_target()
    }
}

/// As for `&Command`, to accept a chain of its builder methods.
impl<S> IntoTarget<S> for &mut Command {
    fn into_target(self) -> Result<Target<S>, ConnectError> {
        (&*self).into_target()
    }
}

/// As for `&Command`.
impl<S> IntoTarget<S> for Command {
    fn into_target(self) -> Result<Target<S>, ConnectError> {
        (&self).into_target()
    }
}

/// An absolute `http:` URL, or with the feature `ws` a `ws:` URL.
impl<S> IntoTarget<S> for &str {
    fn into_target(self) -> Result<Target<S>, ConnectError> {
        Ok(Target::new(ClientConfig::url(self).map_err(ConnectError::Url)?))
    }
}

/// As for `&str`.
impl<S> IntoTarget<S> for String {
    fn into_target(self) -> Result<Target<S>, ConnectError> {
        self.as_str().into_target()
    }
}
