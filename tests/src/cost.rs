//! What a call costs the engines: the allocations of a client and a server in memory, without a
//! socket or a thread, counted for each side. The numbers are exact, so a busy machine does not
//! change them.

mod pair;

pub use pair::{Era, Pair, Transport};

use mcp_proto::rpc::{Id, Object, RawJson};
use mcp_proto::{client, server, wired};
use std::fmt::Write;

/// Calls before a measurement, so that every queue has its size.
const WARM: u64 = 64;

/// Calls in a measurement.
const COUNT: u64 = 1000;

/// Allocations.
#[derive(Clone, Copy, Debug, Default)]
pub struct Heap {
    /// Number of allocations and reallocations.
    pub count: usize,
    /// Their sizes together, in bytes.
    pub bytes: usize,
}

/// Returns the allocations of this process so far.
pub type Meter = fn() -> Heap;

/// Returns a table with a line for each number.
pub fn table(meter: Meter) -> String {
    let mut table = String::new();
    for transport in [Transport::Lines, Transport::Http] {
        for era in [Era::Modern, Era::Legacy] {
            let mut pair = Pair::new(transport, era, meter);
            (0..WARM).for_each(|_| pair.call());
            pair.reset();
            (0..COUNT).for_each(|_| pair.call());
            for (side, heap) in [("client", pair.client_heap()), ("server", pair.server_heap())] {
                let each = |total: usize| total as f64 / COUNT as f64;
                let (count, bytes) = (each(heap.count), each(heap.bytes));
                let row = format!("call over {transport}, {era}, {side}");
                _ = writeln!(table, "{row:<40} {count:>8.2} allocations {bytes:>8.0} bytes");
            }
        }
    }
    for (name, size) in SIZES {
        _ = writeln!(table, "{name:<40} {size:>8} bytes");
    }
    table
}

/// The sizes of what is moved or kept for each request.
const SIZES: [(&str, usize); 7] = [
    ("size of Object", size_of::<Object>()),
    ("size of RawJson", size_of::<RawJson>()),
    ("size of Id", size_of::<Id>()),
    ("size of client::Event", size_of::<client::Event>()),
    ("size of server::Event", size_of::<server::Event>()),
    ("size of server::Incoming", size_of::<server::Incoming>()),
    ("size of wired::ConnectionOutput", size_of::<wired::ConnectionOutput>()),
];
