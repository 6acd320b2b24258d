//! A server that listens: a thread accepts connections until the server is stopped.

use crate::accepted::Stream;
use crate::service::Service;
use crate::sync::{self, lock, wait};
use mcp_proto::Router;
use mcp_proto::adapter::ServerOptions;
use mcp_proto::exchange::Peer;
use mcp_proto::input::{Change, Principal};
use mcp_proto::stats::ServerStats;
use mcp_proto::wired::Kind;
use std::io::{self, ErrorKind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

/// Delay before the next accept if the system has no room for another connection.
const REST: Duration = Duration::from_millis(50);

/// Maximum time for the accepting thread to wake up and to end.
pub(crate) const WAKE: Duration = Duration::from_secs(1);

/// A flag that is set once.
#[derive(Default, Debug)]
pub(crate) struct Flag(AtomicBool);

impl Flag {
    /// Sets the flag. Returns whether it was set before.
    pub(crate) fn set(&self) -> bool {
        self.0.swap(true, Ordering::SeqCst)
    }

    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}

pub(crate) struct Listening {
    service: Arc<Service>,
    stopping: Arc<Flag>,
    /// Disconnected once the accepting thread has ended.
    ended: sync::Mutex<mpsc::Receiver<()>>,
}

impl Listening {
    /// Serves the connections that `accept` returns.
    pub(crate) fn start(
        router: Router,
        options: ServerOptions,
        kind: Kind,
        accept: impl Fn() -> io::Result<(Stream, Peer)> + Send + 'static,
    ) -> io::Result<Self> {
        let (open, ended) = mpsc::channel();
        let (service, stopping) = (Service::start(router, options)?, Arc::<Flag>::default());
        let listening = Self { service, stopping, ended: sync::Mutex::new(ended) };
        let (service, stopping) = (Arc::clone(&listening.service), Arc::clone(&listening.stopping));
        let spawned = sync::spawn("mcp-accept", move || {
            while !stopping.is_set() {
                serve_next(&accept, &service, kind, &stopping);
            }
            drop(accept);
            drop::<mpsc::Sender<()>>(open);
        });
        if spawned.is_err() {
            listening.service.end();
        }
        spawned.map(|()| listening)
    }

    pub(crate) fn wait(&self) {
        self.service.wait_end();
    }

    pub(crate) fn stats(&self) -> ServerStats {
        self.service.stats()
    }

    pub(crate) fn revoke(&self, principal: &Principal) {
        self.service.revoke(principal);
    }

    pub(crate) fn publish(&self, change: Change) {
        self.service.publish(change);
    }

    /// Ends the accepting thread. `wake` ends its wait for a connection.
    pub(crate) fn close(&self, wake: impl FnOnce()) {
        if !self.stopping.set() {
            wake();
            // An error in both cases: the thread has ended, or the time is over.
            let _ = lock(&self.ended).recv_timeout(WAKE);
        }
    }

    /// Gives running requests `grace` to end, and closes every connection.
    pub(crate) fn stop(&self, grace: Duration) {
        self.service.stop(grace);
    }
}

fn serve_next(accept: &impl Fn() -> io::Result<(Stream, Peer)>, service: &Arc<Service>, kind: Kind, stopping: &Flag) {
    let joined = accept().and_then(|(stream, peer)| {
        if stopping.is_set() {
            return Ok(());
        }
        service.accept(kind, peer, stream).map(drop)
    });
    match joined.map_err(|e| e.kind()) {
        Ok(()) | Err(ErrorKind::Interrupted | ErrorKind::ConnectionAborted) => {}
        Err(_) if stopping.is_set() => {}
        // Out of descriptors or threads. Connections that end free some.
        Err(_) => drop(wait(&service.changed, service.lock(), Some(REST))),
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;
    use std::time::Instant;

    // covers: B-189
    #[test]
    fn listener_without_descriptors_waits_between_attempts() {
        const ATTEMPTS: u32 = 10;
        let (tries, tried) = mpsc::sync_channel(1);
        let accept = move || {
            // A full channel means that there are many attempts at once.
            let _ = tries.try_send(());
            Err(ErrorKind::OutOfMemory.into())
        };
        let began = Instant::now();
        let listening =
            Listening::start(Router::new("full", "1"), ServerOptions::new(), Kind::Lines, accept).expect("a thread");
        (0..ATTEMPTS).for_each(|_| tried.recv_timeout(Duration::from_secs(20)).expect("it goes on"));
        assert!(began.elapsed() >= REST * (ATTEMPTS - 1), "it spins: {:?}", began.elapsed());
        listening.close(|| ());
        listening.stop(Duration::ZERO);
    }
}
