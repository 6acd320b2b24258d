//! What kills the servers.

use super::file::Entry;
use super::processes::marked;
use crate::interop::listening::Listening;
use crate::sim::rng::Rng;
use std::sync::mpsc::sync_channel;
use std::thread;
use std::time::{Duration, Instant};

/// The time between two kills, in milliseconds.
const BETWEEN: (u64, u64) = (100, 500);

/// How often a server with a URL may fail to start: another process may have its port for a moment.
const STARTS: usize = 3;

/// What was killed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Kills {
    pub(super) programs: u64,
    pub(super) urls: u64,
    /// Chosen servers without a process, since they were just killed.
    pub(super) none: u64,
}

/// Kills random servers for this time. One with a URL is started again at once, on the same port.
pub(super) fn kill(
    run: &str,
    entries: &[Entry],
    listening: &mut [Listening],
    length: Duration,
    rng: &mut Rng,
) -> Result<Kills, String> {
    thread::scope(|scope| {
        let (mut orders, mut keepers) = (Vec::new(), Vec::new());
        for server in listening {
            // Without room in it, an order is only taken while the server runs.
            let (order, taken) = sync_channel(0);
            orders.push(order);
            keepers.push(scope.spawn(move || taken.into_iter().try_for_each(|()| restart(server))));
        }
        let (mut kills, end) = (Kills::default(), Instant::now() + length);
        while Instant::now() < end {
            thread::sleep(Duration::from_millis(BETWEEN.0 + rng.below(BETWEEN.1 - BETWEEN.0)));
            let entry = &entries[rng.below(entries.len() as u64) as usize];
            let killed = match entry.url {
                Some(url) => orders[url].try_send(()).is_ok(),
                None => {
                    let mut own = marked(run).into_iter().filter(|process| process.key == entry.key);
                    own.find(|process| process.pid == process.group).is_some_and(|process| process.kill())
                }
            };
            let count = match (killed, entry.url) {
                (true, Some(_)) => &mut kills.urls,
                (true, None) => &mut kills.programs,
                (false, _) => &mut kills.none,
            };
            *count += 1;
        }
        drop(orders);
        for keeper in keepers {
            keeper.join().map_err(|_| "a keeper panicked")??;
        }
        Ok(kills)
    })
}

/// Kills a server with a URL, and waits until it listens again.
fn restart(server: &mut Listening) -> Result<(), String> {
    let mut started = server.restart();
    for _ in 1..STARTS {
        if started.is_ok() {
            break;
        }
        started = server.restart();
    }
    started
}
