//! A server that listens: its connections are accepted on a thread of their own until it is stopped.

use crate::accepted::Stream;
use crate::os::Flag;
use crate::server::{Router, Serving};
use crate::service::Service;
use crate::sync::{self, lock};
use mcp_proto::exchange::Peer;
use mcp_proto::input::{Change, Principal};
use mcp_proto::stats::ServerStats;
use mcp_proto::wired::Kind;
use std::io::{self, ErrorKind};
use std::sync::{Arc, mpsc};
use std::time::Duration;

/// How long the accepting thread rests when the system has no room for a further connection.
const REST: Duration = Duration::from_millis(50);

/// How long the accepting thread may take to be woken, and to end.
pub(crate) const WAKE: Duration = Duration::from_secs(1);

pub(crate) struct Listening {
    service: Arc<Service>,
    stopping: Arc<Flag>,
    /// Disconnected once nothing listens any more.
    ended: sync::Mutex<mpsc::Receiver<()>>,
}

impl Listening {
    /// Serves whatever `accept` waits for and yields.
    pub(crate) fn start(
        router: Router,
        serving: Serving,
        kind: Kind,
        accept: impl Fn() -> io::Result<(Stream, Peer)> + Send + 'static,
    ) -> io::Result<Self> {
        let (open, ended) = mpsc::channel();
        let (service, stopping) = (Service::start(router, serving)?, Arc::<Flag>::default());
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

    /// Ends the accepting. Its thread is in a wait, which `wake` ends.
    pub(crate) fn close(&self, wake: impl FnOnce()) {
        if !self.stopping.set() {
            wake();
            // An error either way: it has ended, or it is not waited for any longer.
            let _ = lock(&self.ended).recv_timeout(WAKE);
        }
    }

    /// Gives what runs so much time to end, and closes every connection.
    pub(crate) fn stop(&self, grace: Duration) {
        self.service.stop(grace);
    }
}

fn serve_next(accept: &impl Fn() -> io::Result<(Stream, Peer)>, service: &Arc<Service>, kind: Kind, stopping: &Flag) {
    let joined = accept().and_then(|(stream, peer)| {
        if stopping.is_set() {
            return Ok(());
        }
        if let Err(stream) = service.join(kind, peer, stream)? {
            service.refuse(kind, stream);
        }
        Ok(())
    });
    match joined.map_err(|e| e.kind()) {
        Ok(()) | Err(ErrorKind::Interrupted | ErrorKind::ConnectionAborted) => {}
        Err(_) if stopping.is_set() => {}
        // Out of descriptors or threads: connections that end make room.
        Err(_) => service.rest(REST),
    }
}

#[cfg(all(test, any(unix, feature = "http"), not(shuttle)))]
mod tests {
    use super::*;
    use crate::server::Serving;
    use std::time::Instant;

    // covers: B-189
    #[test]
    fn a_listener_without_descriptors_rests_between_its_attempts() {
        const ATTEMPTS: u32 = 10;
        let (tries, tried) = mpsc::sync_channel(1);
        let accept = move || {
            // Without room it is one of many at once.
            let _ = tries.try_send(());
            Err(ErrorKind::OutOfMemory.into())
        };
        let began = Instant::now();
        let listening =
            Listening::start(Router::new("full", "1"), Serving::new(), Kind::Lines, accept).expect("a thread");
        (0..ATTEMPTS).for_each(|_| tried.recv_timeout(Duration::from_secs(20)).expect("it goes on"));
        assert!(began.elapsed() >= REST * (ATTEMPTS - 1), "it spins: {:?}", began.elapsed());
        listening.close(|| ());
        listening.stop(Duration::ZERO);
    }
}
