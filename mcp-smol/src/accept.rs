//! Servers that listen: one task accepts connections, and one task serves each of them.

use crate::clock::after;
use crate::ends::{Reader, Writer};
use crate::server::Shared;
use crate::serving::{Server, host};
use async_io::Async;
use mcp_proto::exchange::Peer;
use mcp_proto::wired::Kind;
use smol::future::{or, yield_now};
use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::time::Duration;

/// Delay before the next accept if the operating system has no descriptor left.
const REST: Duration = Duration::from_millis(50);

/// A listening socket.
pub(crate) trait Listener: Send + Sync + 'static {
    /// The protocol of its connections.
    const KIND: Kind;

    /// Accepts the next connection, without blocking.
    fn accept(&self) -> io::Result<((Reader, Writer), Peer)>;
}

/// Serves connections until the server accepts no more.
pub(crate) fn listen<L: Listener>(server: &Server, listener: Async<L>) {
    let listening = Listening::begin(server.shared().clone());
    server.shared().spawn(async move {
        // At the end, closes the listener before reporting it.
        or(listening.0.wait_until(|state| state.closing), accept_all(&listening.0, listener)).await;
    });
}

/// Counts as a listener while it exists.
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
                // If waiting fails, the next accept reports the error.
                ErrorKind::WouldBlock => drop(listener.readable().await),
                // The peer disconnected before it was accepted.
                ErrorKind::ConnectionAborted | ErrorKind::Interrupted => {}
                // No descriptor or memory is left. Connections that end free some.
                _ => after(REST).await,
            },
        }
    }
}

#[cfg(all(test, unix, not(shuttle)))]
mod tests {
    use super::*;
    use crate::{Router, ServerOptions};
    use smol::channel::{Sender, bounded};
    use std::os::fd::{AsFd, BorrowedFd};
    use std::os::unix::net::UnixStream;
    use std::time::Instant;

    /// A listener of a system without free descriptors. It reports each attempt, as far as its
    /// channel has room.
    struct Exhausted(UnixStream, Sender<()>);

    impl AsFd for Exhausted {
        fn as_fd(&self) -> BorrowedFd<'_> {
            self.0.as_fd()
        }
    }

    impl Listener for Exhausted {
        const KIND: Kind = Kind::Lines;

        fn accept(&self) -> io::Result<((Reader, Writer), Peer)> {
            // A full channel means that there are many attempts at once.
            let _ = self.1.try_send(());
            Err(ErrorKind::OutOfMemory.into())
        }
    }

    // covers: B-189
    #[test]
    fn listener_without_descriptors_waits_between_attempts() {
        const ATTEMPTS: u32 = 10;
        smol::block_on(async {
            let shared = Shared::new(Router::new("full", "1"), ServerOptions::new(), None).expect("a seed");
            let (tries, tried) = bounded(1);
            let socket = UnixStream::pair().expect("a pair").0;
            let listener = Async::new(Exhausted(socket, tries)).expect("a socket");
            let began = Instant::now();
            let counted = async {
                for _ in 0..ATTEMPTS {
                    tried.recv().await.expect("it goes on");
                }
            };
            or(accept_all(&shared, listener), counted).await;
            assert!(began.elapsed() >= REST * (ATTEMPTS - 1), "it spins: {:?}", began.elapsed());
        });
    }
}
