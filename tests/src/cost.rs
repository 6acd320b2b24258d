//! What a call costs the engines: the allocations of a client and a server in memory, without a
//! socket or a thread, counted for each side. The numbers are exact, so a busy machine does not
//! change them.

pub mod anchors;
pub mod codec;
pub mod growth;
mod guard;
mod held;
pub mod https;
pub mod instructions;
mod kept;
mod pair;
pub mod programs;
pub mod raw;
pub mod resting;
mod row;
pub mod supervised;
pub mod syscalls;
pub mod tokens;

pub use kept::Kept;
pub use pair::{Era, Pair, Transport};
pub use row::{Goal, Row};

use crate::load;
use bytes::Bytes;
use mcp_proto::exchange::{Headers, ResponseHead};
use mcp_proto::frame::BodyDecoder;
use mcp_proto::limits::FrameLimits;
use mcp_proto::rpc::{Id, Object, RawJson};
use mcp_proto::{client, server, wired};
use std::fmt::Write;
use std::process::Command;

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

/// Returns the compiler and the target, as a comment in a kept table. Others may allocate in
/// another way, and lay out types differently.
///
/// # Panics
/// If there is no compiler.
pub fn compiler() -> String {
    let printed = Command::new("rustc").arg("-vV").output().expect("there is a compiler").stdout;
    let printed = String::from_utf8(printed).expect("it prints text");
    let line = |key: &str| printed.lines().find_map(|line| line.strip_prefix(key)).unwrap_or_default().to_owned();
    format!("# {} {}", line("release: "), line("host: "))
}

/// Returns a table with a line for each number.
pub fn table(meter: Meter) -> String {
    let mut table = String::new();
    for transport in Transport::ALL {
        for era in Era::ALL {
            table += &calls(&format!("call over {transport}, {era}"), Pair::new(transport, era, meter), Pair::call);
        }
    }
    for era in Era::ALL {
        table += &calls(&format!("call with a token, {era}"), Pair::guarded(era, meter), Pair::call);
    }
    for transport in Transport::ALL {
        table += &calls(&format!("cached list over {transport}"), Pair::caching(transport, meter), Pair::list);
    }
    for era in Era::ALL {
        table += &calls(&format!("call with spans, {era}"), Pair::observed(era, meter), Pair::call);
    }
    for chunk in [16 << 10, 1] {
        let heap = events(meter, chunk);
        let each = |total: usize| total as f64 / COUNT as f64;
        let row = format!("server-sent event, reads of {chunk} bytes");
        _ = writeln!(table, "{row:<40} {:>8.2} allocations {:>8.0} bytes", each(heap.count), each(heap.bytes));
    }
    for (name, size) in SIZES {
        _ = writeln!(table, "{name:<40} {size:>8} bytes");
    }
    table
}

/// Returns a line for each side of a pair: its allocations for a call.
fn calls(name: &str, mut pair: Pair, call: fn(&mut Pair)) -> String {
    (0..WARM).for_each(|_| call(&mut pair));
    pair.reset();
    (0..COUNT).for_each(|_| call(&mut pair));
    let mut table = String::new();
    for (side, heap) in [("client", pair.client_heap()), ("server", pair.server_heap())] {
        let each = |total: usize| total as f64 / COUNT as f64;
        let (count, bytes) = (each(heap.count), each(heap.bytes));
        let row = format!("{name}, {side}");
        _ = writeln!(table, "{row:<40} {count:>8.2} allocations {bytes:>8.0} bytes");
    }
    table
}

/// Returns the allocations of decoding events of a stream, each with a notification.
fn events(meter: Meter, chunk: usize) -> Heap {
    let headers = Headers::new().with("Content-Type", "text/event-stream");
    let mut decoder = BodyDecoder::of_response(&ResponseHead { status: 200, headers }, &FrameLimits::default());
    let message = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":7,"progress":1}}"#;
    let stream: String = (0..COUNT).map(|n| format!("event: message\nid: {n}\ndata: {message}\n\n")).collect();
    let stream = Bytes::from(stream);
    let before = meter();
    let mut count = 0;
    for start in (0..stream.len()).step_by(chunk) {
        decoder.bytes(stream.slice(start..stream.len().min(start + chunk)));
        count += std::iter::from_fn(|| decoder.poll_item()).count() as u64;
    }
    let after = meter();
    assert_eq!(count, COUNT);
    Heap { count: after.count - before.count, bytes: after.bytes - before.bytes }
}

/// Calls in flight on a client whose heap is measured.
const IN_FLIGHT: [usize; 2] = [1000, 10_000];

/// Servers of a supervisor whose heap is measured.
const SUPERVISED: usize = 1000;

/// Returns a line for each thing that an engine holds between two inputs: its heap. `used`: the
/// bytes of the heap of this process that are in use.
///
/// # Panics
/// If one stays when it is gone.
pub fn held(used: fn() -> usize) -> String {
    let mut table = String::new();
    for (name, bytes) in load::heap::held(used) {
        let bytes = bytes.unwrap_or_else(|why| panic!("{name}: {why}"));
        _ = writeln!(table, "{:<40} {bytes:>8} bytes", format!("heap of a {name}"));
    }
    for count in IN_FLIGHT {
        let row = format!("heap of each of {count} calls in flight");
        _ = writeln!(table, "{row:<40} {:>8} bytes", held::calls_in_flight(count, used));
    }
    let row = format!("heap of each of {SUPERVISED} supervised servers");
    _ = writeln!(table, "{row:<40} {:>8} bytes", held::supervised_servers(SUPERVISED, used));
    table
}

/// The sizes of what is moved or kept for each request.
const SIZES: [(&str, usize); 7] = [
    ("size of Object", size_of::<Object>()),
    ("size of RawJson", size_of::<RawJson>()),
    ("size of Id", size_of::<Id>()),
    ("size of client::Event", size_of::<client::Event>()),
    ("size of server::Event", size_of::<server::Event>()),
    ("size of server::Incoming", size_of::<server::IncomingRequest>()),
    ("size of wired::ConnectionOutput", size_of::<wired::ConnectionOutput>()),
];
