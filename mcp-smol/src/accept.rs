//! Servers that listen: one task accepts and keeps the time of the engine, one task serves each connection.

use crate::channel::{Reader, Writer};
use crate::clock::Alarm;
use crate::config::Service;
use crate::connection::Connection;
use crate::server::Shared;
use crate::sync::spawn;
use async_io::{Async, Timer};
use mcp_proto::exchange::Peer;
use mcp_proto::stats::ServerStats;
use mcp_proto::wired::Kind;
use smol::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

/// How long accepting rests when the operating system has no descriptor left.
const REST: Duration = Duration::from_millis(50);

/// A listening socket.
pub(crate) trait Listener: Send + Unpin + 'static {
    /// What its connections speak.
    const KIND: Kind;

    /// Takes the next connection, without waiting for one.
    fn accept(&self) -> io::Result<(Reader, Writer, Peer)>;
}

/// A server that listens. Dropping it ends every connection at once.
#[derive(Debug)]
pub(crate) struct Listening(Arc<Shared>);

impl Listening {
    /// Serves what comes.
    pub(crate) fn start<L: Listener>(service: Service, listener: Async<L>) -> io::Result<Self> {
        let shared = Shared::new(service)?;
        spawn(Acceptor { shared: shared.clone(), listener, alarm: Alarm::new(), rest: None });
        Ok(Self(shared))
    }

    pub(crate) fn stats(&self) -> ServerStats {
        self.0.lock().hub.stats()
    }

    /// Waits until it has been stopped and every connection has ended.
    pub(crate) async fn wait(&self) {
        self.0.over().await;
    }

    /// Accepts no more, gives running requests so long to end, then ends every connection.
    pub(crate) async fn stop(&self, grace: Duration) {
        self.0.tell(|hub, now| hub.shutdown(now, grace));
        self.wait().await;
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// Accepts connections, and keeps the time of the engine.
struct Acceptor<L> {
    shared: Arc<Shared>,
    listener: Async<L>,
    alarm: Alarm,
    rest: Option<Timer>,
}

impl<L: Listener> Acceptor<L> {
    fn poll_accept(&mut self, cx: &mut Context<'_>) {
        loop {
            if let Some(rest) = &mut self.rest {
                if Pin::new(rest).poll(cx).is_pending() {
                    return;
                }
                self.rest = None;
            }
            match self.listener.get_ref().accept() {
                // A connection that cannot be served is closed, which is all that can be said to it.
                Ok((reader, writer, peer)) => {
                    if let Some(connection) = Connection::join(&self.shared, L::KIND, peer, reader, writer, false) {
                        spawn(connection);
                    }
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                    if self.listener.poll_readable(cx).is_pending() {
                        return;
                    }
                }
                // The peer went away before it was accepted.
                Err(e) if matches!(e.kind(), io::ErrorKind::ConnectionAborted | io::ErrorKind::Interrupted) => {}
                Err(_) => self.rest = Some(Timer::after(REST)),
            }
        }
    }
}

impl<L: Listener> Future for Acceptor<L> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        while this.shared.poll_time(cx, &mut this.alarm) {}
        if this.shared.is_ending() {
            return Poll::Ready(());
        }
        this.poll_accept(cx);
        Poll::Pending
    }
}
