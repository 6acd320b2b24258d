//! How fast messages are read from bytes, beside floors: the least that a reader has to do, which
//! checks as much and keeps nothing, and beside another reader of event streams. All read one input
//! within one process, in turns, and what counts is the ratio in each round.

use super::{Goal, Row, raw};
use bytes::Bytes;
use mcp_proto::exchange::{Data, Headers, Inbound, ResponseHead};
use mcp_proto::frame::{BodyDecoder, Conn, Kind};
use mcp_proto::limits::FrameLimits;
use mcp_proto::rpc;
use serde::Deserialize;
use serde::de::IgnoredAny;
use smol::stream::{StreamExt, iter};
use sse_stream::SseByteStream;
use std::borrow::Cow;
use std::convert::Infallible;
use std::hint::black_box;
use std::iter::from_fn;
use std::str;
use std::time::{Duration, Instant};

/// Rounds. In each, every reader has a turn.
const ROUNDS: usize = 9;

/// The shortest turn.
const TURN: Duration = Duration::from_millis(25);

/// Depth of JSON. There is little here.
const DEPTH: u32 = 64;

/// Bytes as they arrive, and who reads them.
#[derive(Clone)]
pub struct Contest {
    /// What they are.
    pub name: &'static str,
    /// All of them.
    pub whole: Bytes,
    /// The same, as they arrive.
    pub chunks: Vec<Bytes>,
    /// The number of messages in them.
    pub messages: usize,
    /// The readers: the floor, ours, and others. The last is ours once more, whose ratio to ours is
    /// the noise.
    pub readers: Vec<Reader>,
    /// The least ratio of ours to the floor.
    least: Option<f64>,
}

/// A reader of bytes.
#[derive(Clone, Copy)]
pub struct Reader {
    /// Its name.
    pub name: &'static str,
    /// Reads all, and returns the number of messages.
    pub read: fn(&Contest) -> usize,
}

const FLOOR: &str = "floor";
const OURS: &str = "mcp-proto";
const AGAIN: &str = "mcp-proto again";
const THEIRS: &str = "sse-stream and serde";

/// Returns all contests.
pub fn contests() -> Vec<Contest> {
    let (sse, json, http) = (Kinds::Events, Kinds::Message, Kinds::Http);
    vec![
        contest("SSE, small events in reads of 16 KiB", &sse, events(4000, 32, 16 << 10), 0.6),
        contest("SSE, events of 64 KiB in reads of 16 KiB", &sse, events(32, 64 << 10, 16 << 10), 0.9),
        contest("SSE, an event of 4 MiB in reads of 16 KiB", &sse, events(1, 4 << 20, 16 << 10), 0.8),
        contest("SSE, small events in chunks of 1 byte", &sse, events(500, 32, 1), None),
        contest("JSON-RPC, message of 343 bytes", &json, message(343), 0.8),
        contest("JSON-RPC, message of 4 KiB", &json, message(4 << 10), 1.0),
        contest("JSON-RPC, message of 1 MiB", &json, message(1 << 20), 1.0),
        contest("HTTP, POST of 343 bytes", &http, post(343), 0.35),
    ]
}

/// What the bytes of a contest are.
enum Kinds {
    Events,
    Message,
    Http,
}

fn contest(
    name: &'static str,
    kind: &Kinds,
    (whole, size, messages): (String, usize, usize),
    least: impl Into<Option<f64>>,
) -> Contest {
    let whole = Bytes::from(whole);
    let chunks = (0..whole.len()).step_by(size).map(|at| whole.slice(at..whole.len().min(at + size))).collect();
    let reader = |name, read| Reader { name, read };
    let readers = match kind {
        Kinds::Events => {
            vec![reader(FLOOR, floor_events), reader(OURS, our_events), reader(THEIRS, their_events)]
        }
        Kinds::Message => vec![reader(FLOOR, floor_message), reader(OURS, our_message)],
        Kinds::Http => vec![reader(FLOOR, floor_http), reader(OURS, our_http)],
    };
    let again = Reader { name: AGAIN, ..readers[1] };
    Contest { name, whole, chunks, messages, readers: [readers, vec![again]].concat(), least: least.into() }
}

/// A number of events, each with this number of characters besides its frame, in chunks of a size.
fn events(count: usize, length: usize, size: usize) -> (String, usize, usize) {
    let text: String = "the same words again ".chars().cycle().take(length).collect();
    let event = |at| {
        format!(
            "event: message\nid: {at}\ndata: {{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\
             \"params\":{{\"level\":\"info\",\"data\":\"{text} {at:012}\"}}}}\n\n"
        )
    };
    ((0..count).map(event).collect(), size, count)
}

/// A call of a tool with this number of bytes, which arrives whole: its text, the maximum size of a
/// chunk, and the number of messages.
pub fn message(length: usize) -> (String, usize, usize) {
    let text = raw::call(42, length - raw::call(42, 0).len());
    (text, usize::MAX, 1)
}

fn post(length: usize) -> (String, usize, usize) {
    (raw::post(&message(length).0), usize::MAX, 1)
}

/// Returns a row for each ratio that has a goal.
pub fn rows() -> Vec<Row> {
    contests().iter().flat_map(Contest::rows).collect()
}

impl Contest {
    fn rows(&self) -> Vec<Row> {
        let rounds: Vec<Vec<f64>> = (0..ROUNDS).map(|round| self.round(round)).collect();
        let at = |name| self.readers.iter().position(|reader| reader.name == name);
        let ours = |round: &[f64]| round[1];
        let mut rows = Vec::new();
        let mut ratio = |title: &str, name, goal: Option<Goal>| {
            if let Some(at) = at(name) {
                let ratio = median(rounds.iter().map(|round| ours(round) / round[at]).collect());
                rows.push(Row::new(format!("{}, throughput beside {title}", self.name), ratio, goal));
            }
        };
        if self.least.is_some() {
            ratio("the floor", FLOOR, self.least.map(Goal::AtLeast));
        }
        ratio("sse-stream and serde", THEIRS, Some(Goal::Above(1.0)));
        ratio("itself", AGAIN, None);
        let goal = self.least.is_none().then_some(Goal::AtLeast(30.0));
        let rate = median(rounds.iter().map(|round| ours(round) / 1e6).collect());
        rows.push(Row::new(format!("{}, MB/s", self.name), rate, goal));
        rows
    }

    /// Gives each reader a turn, beginning with another one in each round, and returns their bytes
    /// per second.
    fn round(&self, round: usize) -> Vec<f64> {
        let mut rates = vec![0.0; self.readers.len()];
        for turn in 0..self.readers.len() {
            let at = (round + turn) % self.readers.len();
            let (began, mut times) = (Instant::now(), 0);
            while began.elapsed() < TURN {
                assert_eq!((self.readers[at].read)(black_box(self)), self.messages, "{}", self.readers[at].name);
                times += 1;
            }
            rates[at] = (times * self.whole.len()) as f64 / began.elapsed().as_secs_f64();
        }
        rates
    }
}

pub(super) fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers.get(numbers.len() / 2).copied().unwrap_or(f64::NAN)
}

/// The envelope of a message: what is borrowed from it is not copied, and what is not needed is
/// only checked.
#[derive(Deserialize)]
struct Envelope<'a> {
    jsonrpc: &'a str,
    id: Option<u64>,
    // serde borrows no text in an `Option`.
    #[serde(borrow, default)]
    method: Cow<'a, str>,
    params: Option<IgnoredAny>,
    result: Option<IgnoredAny>,
    error: Option<IgnoredAny>,
}

/// Returns 1 if it is a message.
fn envelope(text: &[u8]) -> usize {
    let text = str::from_utf8(text).unwrap_or_default();
    let Ok(Envelope { jsonrpc, id, method, params, result, error }) = serde_json::from_str(text) else { return 0 };
    let has_payload = [params, result, error].iter().any(Option::is_some);
    usize::from(jsonrpc == "2.0" && (id.is_some() || !method.is_empty()) && has_payload)
}

fn floor_message(contest: &Contest) -> usize {
    envelope(&contest.whole)
}

fn our_message(contest: &Contest) -> usize {
    usize::from(rpc::parse(contest.whole.clone(), DEPTH).is_ok())
}

/// Lines of one text, as if it had not arrived in pieces.
fn floor_events(contest: &Contest) -> usize {
    let (mut messages, mut data, mut at) = (0, &[][..], 0);
    for end in memchr::memchr_iter(b'\n', &contest.whole) {
        let line = &contest.whole[at..end];
        at = end + 1;
        if line.is_empty() {
            messages += envelope(data);
        } else if let Some(value) = line.strip_prefix(b"data: ") {
            data = value;
        }
    }
    messages
}

fn our_events(contest: &Contest) -> usize {
    let headers = Headers::new().with("content-type", "text/event-stream");
    let mut body = BodyDecoder::of_response(&ResponseHead { status: 200, headers }, &FrameLimits::default());
    let mut messages = 0;
    for chunk in &contest.chunks {
        body.bytes(chunk.clone());
        for item in from_fn(|| body.poll_item()) {
            if let Inbound::Event(event) = black_box(item) {
                messages += usize::from(matches!(event.data, Data::Message(_)));
            }
        }
    }
    messages
}

fn their_events(contest: &Contest) -> usize {
    let mut stream = SseByteStream::new(iter(contest.chunks.iter().cloned().map(Ok::<_, Infallible>)));
    smol::block_on(async {
        let mut messages = 0;
        while let Some(Ok(event)) = stream.next().await {
            messages += envelope(event.data.unwrap_or_default().as_bytes());
        }
        messages
    })
}

fn floor_http(contest: &Contest) -> usize {
    let mut fields = [httparse::EMPTY_HEADER; 32];
    let mut request = httparse::Request::new(&mut fields);
    let Ok(httparse::Status::Complete(body)) = request.parse(&contest.whole) else { return 0 };
    let mut lengths = request.headers.iter().filter(|field| field.name.eq_ignore_ascii_case("content-length"));
    let length = lengths.next().and_then(|field| str::from_utf8(field.value).ok()?.parse::<usize>().ok());
    length.map_or(0, |length| contest.whole.get(body..body + length).map_or(0, envelope))
}

fn our_http(contest: &Contest) -> usize {
    let mut conn = Conn::new(Kind::HttpServer, &FrameLimits::default());
    conn.bytes(contest.whole.clone());
    from_fn(|| conn.poll_item()).filter(|item| matches!(item, Inbound::Message(_))).count()
}
