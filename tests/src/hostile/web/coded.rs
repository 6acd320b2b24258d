//! Responses with a content coding that hold more than they seem to, or not what they claim.

use super::parts::{broken, closed, ends, idle_or_late, impatient, late, modern, row};
use crate::hostile::coding::{bomb, gzip, nothing};
use crate::hostile::rows::{DRIVERS, row_on};
use crate::hostile::{Bench, Row};
use crate::stub::{Step, say};
use mcp_proto::exchange::Closed;
use std::sync::LazyLock;

pub(super) const ROWS: &[Row] = &[
    // One body of the maximum size may be held.
    row_on("a coded body of 1 GiB, JSON", DRIVERS, 64, |b| {
        fails(b, JSON, &MANY_ARRAYS, "the body is larger than the limit")
    }),
    row_on("a coded event of 1 GiB", DRIVERS, 64, |b| fails(b, EVENTS, &LONG_EVENT, "an event is larger")),
    row("coded comments of 1 GiB", |b| {
        ends(b, vec![say(EVENTS), Step::Bytes(&COMMENTS), Step::Hold], impatient(), idle_or_late)
    }),
    row("coded events of 1 GiB", |b| ends(b, vec![say(EVENTS), Step::Bytes(&NAMES), Step::Hold], impatient(), late)),
    row("a coded body of empty blocks", |b| fails(b, JSON, &NOTHING, "the coded body has no content")),
    row("a coded event stream of empty blocks", |b| fails(b, EVENTS, &NOTHING, "the coded body has no content")),
    row("a coded body cut short", |b| {
        ends(b, vec![say(JSON), Step::Bytes(&CUT), Step::Close], modern(), closed(Closed::Eof))
    }),
    row("a coded body cut short, in chunks", |b| fails(b, CHUNKS, &CHUNKED_CUT, "the coded body is cut short")),
    row("a coded body with a wrong checksum", |b| fails(b, JSON, &WRONG, "the checksum of the coded body is wrong")),
    row("a coded body and more behind it", |b| fails(b, JSON, &MORE, "the coded body is not gzip")),
];

const JSON: &str = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Encoding: gzip\r\n\r\n";
pub(in crate::hostile) const EVENTS: &str =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Encoding: gzip\r\n\r\n";

const CHUNKS: &str =
    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n";

static MANY_ARRAYS: LazyLock<Vec<u8>> = LazyLock::new(|| bomb("", "[", 1024));
static LONG_EVENT: LazyLock<Vec<u8>> = LazyLock::new(|| bomb("data: ", "x", 1024));
static COMMENTS: LazyLock<Vec<u8>> = LazyLock::new(|| bomb("", ": \n\n", 1024));
static NAMES: LazyLock<Vec<u8>> = LazyLock::new(|| bomb("", "event: x\ndata: yy\n\n", 1024));
static NOTHING: LazyLock<Vec<u8>> = LazyLock::new(|| nothing(1 << 20));

static CUT: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let whole = gzip(ANSWER);
    whole[..whole.len() - 1].to_vec()
});
static CHUNKED_CUT: LazyLock<Vec<u8>> =
    LazyLock::new(|| [format!("{:x}\r\n", CUT.len()).as_bytes(), &CUT, b"\r\n0\r\n\r\n"].concat());
static WRONG: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut whole = gzip(ANSWER);
    let checksum = whole.len() - 8;
    whole[checksum] ^= 1;
    whole
});
static MORE: LazyLock<Vec<u8>> = LazyLock::new(|| [&gzip(ANSWER)[..], b"more"].concat());

/// The response to the first call.
const ANSWER: &[u8] = br#"{"jsonrpc":"2.0","id":2,"result":{"content":[]}}"#;

/// The call with this response ends so at once.
fn fails(bench: &Bench, head: &'static str, body: &'static [u8], says: &str) -> Result<String, String> {
    ends(bench, vec![say(head), Step::Bytes(body), Step::Close], modern(), broken(says))
}
