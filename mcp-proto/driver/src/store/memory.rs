//! A store in the memory of this process.

use super::{StoreDriver, StorePort};
use crate::os::Clock;
use crate::sync::{Mutex, lock};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;
use mcp_proto::server::store::{Incarnation, Memory, Serves, StoreRequest};
use std::io;
use std::thread;

/// A store in the memory of this process, for servers that share it: for tests, and for a program
/// with several servers. A clone is the same store.
///
/// ```
/// use mcp_driver::ServerOptions;
/// use mcp_driver::store::SharedMemory;
///
/// let store = SharedMemory::new();
/// let (first, second) =
///     (ServerOptions::new().store(store.clone()), ServerOptions::new().store(store));
/// # drop((first, second));
/// ```
#[derive(Clone)]
pub struct SharedMemory(Arc<Shared>);

struct Shared {
    clock: Clock,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    memory: Memory,
    /// The servers that have joined.
    nodes: Vec<(Incarnation, StorePort)>,
}

impl SharedMemory {
    /// Creates an empty store.
    pub fn new() -> Self {
        Self(Arc::new(Shared { clock: Clock::start(), state: Mutex::default() }))
    }

    /// Returns the number of servers that are members.
    pub fn members(&self) -> usize {
        lock(&self.0.state).memory.members(self.0.clock.now().since_origin())
    }
}

impl Default for SharedMemory {
    fn default() -> Self {
        Self::new()
    }
}

impl StoreDriver for SharedMemory {
    fn serves(&self) -> Serves {
        Memory::SERVES
    }

    fn start(&self, port: StorePort) -> io::Result<()> {
        let shared = Arc::clone(&self.0);
        thread::Builder::new().name("mcp-store".into()).spawn(move || shared.serve(&port)).map(drop)
    }
}

impl Shared {
    /// Carries out the requests of one server.
    fn serve(&self, port: &StorePort) {
        while let Some(requests) = port.take(Duration::MAX) {
            for (token, request) in requests {
                // Items arrive in the order of the store, so this is held until they are delivered.
                // No server holds its lock while it waits for this one.
                let mut state = lock(&self.state);
                match &request {
                    StoreRequest::Join { node, .. } => state.nodes.push((*node, port.clone())),
                    StoreRequest::Leave { node } => state.nodes.retain(|(known, _)| known != node),
                    _ => {}
                }
                let now = self.clock.now().since_origin();
                let reply = state.memory.apply(now, request);
                port.reply(token, Ok(reply));
                state.deliver(now);
            }
        }
    }
}

impl State {
    fn deliver(&mut self, now: Duration) {
        let Self { memory, nodes } = self;
        for (node, port) in nodes.iter() {
            memory.take_arrived(now, *node).into_iter().for_each(|item| port.deliver(item));
        }
        nodes.retain(|(_, port)| !port.has_ended());
    }
}

impl fmt::Debug for SharedMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SharedMemory(..)")
    }
}
