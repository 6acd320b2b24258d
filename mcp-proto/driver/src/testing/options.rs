//! What a test chooses for a link.

use super::time::Time;
use crate::{ClientOptions, ServerOptions};

/// The options of a [`Link`](super::Link): its time, and the callbacks of both sides.
#[derive(Debug, Default)]
#[must_use]
pub struct LinkOptions {
    pub(super) time: Time,
    pub(super) client: ClientOptions,
    pub(super) server: ServerOptions,
}

impl LinkOptions {
    /// Creates options without callbacks, with a time of their own.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the time of the link, for handlers that wait.
    pub fn time(mut self, time: &Time) -> Self {
        self.time = time.clone();
        self
    }

    /// Sets the options of the client, as for an adapter: its callbacks and changes of its
    /// configuration. A panic in a callback for events fails the test. The link has no use for
    /// [`ClientOptions::stderr`], and carries out no step of a login.
    pub fn client(mut self, options: ClientOptions) -> Self {
        self.client = options;
        self
    }

    /// Sets the options of the server, as for an adapter. A panic in the callback for events fails
    /// the test. The link has no use for [`ServerOptions::threads`] and
    /// [`ServerOptions::on_executor`]: callbacks run in the thread of the test.
    pub fn server(mut self, options: ServerOptions) -> Self {
        self.server = options;
        self
    }
}

/// A direction of the bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Flow {
    /// From the client to the server.
    ToServer,
    /// From the server to the client.
    ToClient,
    /// Both directions.
    Both,
}

impl Flow {
    /// Returns whether it includes the bytes to the server, and those to the client.
    pub(super) const fn directions(self) -> [bool; 2] {
        match self {
            Self::ToServer => [true, false],
            Self::ToClient => [false, true],
            Self::Both => [true, true],
        }
    }
}
