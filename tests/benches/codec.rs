//! How fast messages are read from bytes, beside floors: see [`mcp_tests::cost::codec`]. `cargo
//! bench -p mcp-tests`; words select benchmarks by name, and `--help` prints the options. What is
//! under the names `mcp-proto` and `mcp-proto again` is the same: their difference is the noise of
//! the machine.
#![forbid(unsafe_code)]

use divan::Bencher;
use divan::counter::BytesCount;
use mcp_tests::cost::codec::{Contest, Reader, contests};
use std::fmt;

fn main() {
    divan::main();
}

/// A reader of an input.
struct Entry(Contest, Reader);

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.0.name, self.1.name)
    }
}

fn entries() -> impl Iterator<Item = Entry> {
    let entries =
        |contest: Contest| contest.readers.clone().into_iter().map(move |reader| Entry(contest.clone(), reader));
    contests().into_iter().flat_map(entries)
}

#[divan::bench(args = entries())]
fn read(bencher: Bencher<'_, '_>, Entry(contest, reader): &Entry) {
    bencher.counter(BytesCount::new(contest.whole.len())).bench(|| (reader.read)(contest));
}
