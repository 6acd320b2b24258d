//! Servers that listen: a task accepts, and one task serves each connection.

use crate::channel::{Reader, Writer};
use crate::clock::after;
use crate::server::Shared;
use crate::serving::{Server, host};
use async_io::Async;
use mcp_proto::exchange::Peer;
use mcp_proto::wired::Kind;
use smol::future::{or, yield_now};
use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::time::Duration;

/// How long accepting rests when the operating system has no descriptor left.
const REST: Duration = Duration::from_millis(50);

/// A listening socket.
pub(crate) trait Listener: Send + Sync + 'static {
    /// What its connections speak.
    const KIND: Kind;

    /// Takes the next connection, without waiting for one.
    fn accept(&self) -> io::Result<((Reader, Writer), Peer)>;
}

/// Serves what comes, until the server accepts no more.
pub(crate) fn listen<L: Listener>(server: &Server, listener: Async<L>) {
    let listening = Listening::begin(server.shared().clone());
    server.shared().spawn(async move {
        // Once it is over, the listener is closed first, then that is told.
        or(listening.0.closing(), accept_all(&listening.0, listener)).await;
    });
}

/// Notes that something listens, for as long as it lives.
struct Listening(Arc<Shared>);

impl Listening {
    fn begin(shared: Arc<Shared>) -> Self {
        shared.lock().listeners += 1;
        Self(shared)
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.0.lock().listeners -= 1;
        self.0.changed();
    }
}

async fn accept_all<L: Listener>(shared: &Arc<Shared>, listener: Async<L>) {
    loop {
        match listener.get_ref().accept() {
            Ok((streams, peer)) => {
                shared.spawn(host(shared.clone(), L::KIND, peer, streams));
                yield_now().await;
            }
            Err(e) => match e.kind() {
                // Failing to wait is noticed by accepting again.
                ErrorKind::WouldBlock => drop(listener.readable().await),
                // The peer went away before it was accepted.
                ErrorKind::ConnectionAborted | ErrorKind::Interrupted => {}
                // No descriptor or memory is left. Connections that end make room.
                _ => after(REST).await,
            },
        }
    }
}
