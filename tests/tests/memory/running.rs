//! The memory of running requests, measured by a counting allocator, compared with the size that
//! the engine counts.

use bytes::Bytes;
use mcp_proto::exchange::{ExchangeEvent, ExchangeId, Headers, Inbound, Outbound, Peer, RequestHead};
use mcp_proto::limits::Limits;
use mcp_proto::rpc::parse_batch_or_message;
use mcp_proto::server::{Event, IncomingRequest, Output, Responder};
use mcp_proto::{Implementation, Instant, Server, ServerConfig};
use mcp_tests::heap::used;
use std::sync::Arc;

/// The form in which the requests arrive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Way {
    /// By line, from a client of 2025-03-26.
    Older,
    /// By line, 2026-07-28.
    Modern,
    /// Over HTTP, 2026-07-28.
    Http,
    /// By line, as one batch of 2025-03-26.
    Batch,
}

const NOW: Instant = Instant::from_millis(0);

/// A server, the client of one connection, and an application that keeps its requests.
struct Bench {
    server: Server,
    limits: Limits,
    way: Way,
    exchanges: u64,
    held: Vec<(Responder, IncomingRequest)>,
    answers: usize,
}

impl Bench {
    fn new(way: Way, change: impl FnOnce(&mut Limits)) -> Self {
        let mut config = ServerConfig::new(Implementation::new("memory", "1"));
        // The one client of the test gets every share.
        config.limits.server.client_shares = 1;
        change(&mut config.limits);
        let limits = config.limits.clone();
        let server = Server::new(Arc::new(config), [7; 32], NOW);
        let held = Vec::with_capacity(2048);
        let mut bench = Self { server, limits, way, exchanges: 1, held, answers: 0 };
        if way != Way::Http {
            bench.server.handle_event(NOW, ExchangeId(1), ExchangeEvent::Opened(Peer::default()));
        }
        if matches!(way, Way::Older | Way::Batch) {
            let client =
                r#"{"protocolVersion":"2025-03-26","capabilities":{},"clientInfo":{"name":"c","version":"1"}}"#;
            bench.say(format!(r#"{{"jsonrpc":"2.0","id":"first","method":"initialize","params":{client}}}"#));
            bench.say(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#.into());
        }
        bench
    }

    /// One request with these members in its params.
    fn request(&self, id: &str, members: &str) -> String {
        let meta =
            r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}"#;
        let meta = if self.way == Way::Batch || self.way == Way::Older { "" } else { meta };
        let comma = if members.is_empty() { "" } else { "," };
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"t","_meta":{{{meta}}}{comma}{members}}}}}"#
        )
    }

    fn say(&mut self, text: String) {
        let item = Inbound::from(parse_batch_or_message(Bytes::from(text), &self.limits.frame));
        let exchange = ExchangeId(self.exchanges);
        if self.way == Way::Http {
            let headers = Headers::new()
                .with("Host", "localhost")
                .with("Accept", "application/json, text/event-stream")
                .with("Content-Type", "application/json")
                .with("MCP-Protocol-Version", "2026-07-28")
                .with("Mcp-Method", "tools/call")
                .with("Mcp-Name", "t");
            let head = RequestHead { method: "POST".into(), target: "/mcp".into(), headers };
            self.server.handle_event(NOW, exchange, ExchangeEvent::Inbound(Inbound::Request(head)));
            self.server.handle_event(NOW, exchange, ExchangeEvent::Inbound(item));
            self.server.handle_event(NOW, exchange, ExchangeEvent::Inbound(Inbound::End));
            self.exchanges += 1;
        } else {
            self.server.handle_event(NOW, exchange, ExchangeEvent::Inbound(item));
        }
        while let Some(output) = self.server.poll_output() {
            match output {
                Output::Event(Event::Request(responder, incoming)) => self.held.push((responder, incoming)),
                Output::Send(x, Outbound::Message(_) | Outbound::Response { .. }) => {
                    self.answers += 1;
                    self.server.handle_event(NOW, x, ExchangeEvent::Unsent(0));
                }
                _ => {}
            }
        }
    }
}

/// Members of params with this number of bytes.
fn fill(part: impl Fn(usize) -> String, bytes: usize) -> String {
    let mut text = String::with_capacity(bytes + 100);
    for n in 0.. {
        let part = part(n);
        if text.len() + part.len() > bytes {
            return text;
        }
        if !text.is_empty() {
            text.push(',');
        }
        text.push_str(&part);
    }
    text
}

/// A shape of requests: their number, their ids, and the members of their params.
type Shape = (&'static str, usize, fn(usize) -> String, fn() -> String);

fn plain(n: usize) -> String {
    n.to_string()
}

const SHAPES: &[Shape] = &[
    ("no params", 1000, plain, String::new),
    ("many ids", 1000, |n| format!("\"request-{n}\""), || r#""arguments":{"a":1}"#.into()),
    ("ids at the limit", 1000, |n| format!("\"{n:0>1024}\""), String::new),
    ("many short members", 1, plain, || fill(|n| format!("\"{n:x}\":1"), 1 << 16)),
    ("many repeated members", 4, plain, || fill(|n| format!("\"{:x}\":1", n % 1000), 1 << 16)),
    ("escaped keys", 4, plain, || fill(|n| format!("\"\\u0061{n:x}\":1"), 1 << 16)),
    ("short members of arguments", 1, plain, || {
        format!("\"arguments\":{{{}}}", fill(|n| format!("\"{n:x}\":1"), 1 << 16))
    }),
    ("deep nesting", 16, plain, || fill(|n| format!("\"{n}\":{}{}", "[".repeat(100), "]".repeat(100)), 1 << 16)),
    ("long strings", 16, plain, || format!("\"arguments\":{{\"text\":\"{}\"}}", "x".repeat(1 << 20))),
    ("long keys", 16, plain, || fill(|n| format!("\"{}{n}\":1", "k".repeat(1 << 14)), 1 << 18)),
    ("answers to questions", 4, plain, || {
        format!("\"inputResponses\":{{{}}}", fill(|n| format!("\"{n:x}\":{{}}"), 1 << 16))
    }),
    ("a long state", 16, plain, || format!("\"requestState\":\"{}\"", "x".repeat(60_000))),
];

fn mib(bytes: usize) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

/// The memory of this number of requests, and the size that the engine counts.
fn measure(way: Way, count: usize, id: fn(usize) -> String, members: &str) -> (usize, usize) {
    let mut bench = Bench::new(way, |limits| {
        limits.server.max_running_per_exchange = 2000;
        limits.frame.max_batch = 2000;
        limits.server.max_running_requests = 2000;
    });
    let before = used();
    if way == Way::Batch {
        let all: Vec<String> = (0..count).map(|n| bench.request(&id(n), members)).collect();
        bench.say(format!("[{}]", all.join(",")));
    } else {
        for n in 0..count {
            bench.say(bench.request(&id(n), members));
        }
    }
    let held = used() - before;
    assert_eq!(bench.held.len(), count, "all of them run");
    (held, bench.server.running_bytes())
}

// covers: B-187
#[test]
fn running_requests_hold_no_more_than_counted_and_at_least_half() {
    let _alone = crate::alone();
    let mut wrong = Vec::new();
    for (name, count, id, members) in SHAPES {
        let members = members();
        for way in [Way::Older, Way::Modern, Way::Http, Way::Batch] {
            let (held, counted) = measure(way, *count, *id, &members);
            let ratio = counted as f64 / held as f64;
            println!("{name}, {way:?}: {:.2} MiB held, {:.2} MiB counted, {ratio:.2}", mib(held), mib(counted));
            if !(1.0..=2.0).contains(&ratio) {
                wrong.push(format!("{name}, {way:?}: {held} held, {counted} counted, {ratio:.2}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));

    // Ids of 1 MiB are answered and not kept.
    for way in [Way::Modern, Way::Http] {
        let mut bench = Bench::new(way, |limits| limits.server.max_running_per_exchange = 1024);
        let before = used();
        for n in 0..64 {
            let id = format!("\"{n}{}\"", "x".repeat(1 << 20));
            bench.say(bench.request(&id, ""));
        }
        let held = used().saturating_sub(before);
        println!("64 requests with ids of 1 MiB, {way:?}: {:.2} MiB held, {} run", mib(held), bench.held.len());
        assert_eq!((bench.held.len(), bench.answers), (0, 64));
        assert!(held < 1 << 20, "{way:?}: {held} bytes are held");
    }

    // A quarter of the permitted text, in short members, is sixteen times as large when parsed.
    for (way, count, size) in [(Way::Older, 4, 62 << 12), (Way::Modern, 4, 62 << 12), (Way::Http, 16, 62 << 10)] {
        let members = fill(|n| format!("\"{n:x}\":1"), size);
        let mut bench = Bench::new(way, |limits| limits.server.max_running_bytes = 4 << 20);
        let before = used();
        for n in 0..count {
            bench.say(bench.request(&plain(n), &members));
        }
        let (held, most) = (used() - before, bench.limits.server.max_running_bytes);
        let (runs, refused) = (bench.held.len(), bench.answers);
        println!("1 MiB of short members, {way:?}: {:.2} MiB held, {runs} run, {refused} are refused", mib(held));
        assert!(held <= most && bench.server.running_bytes() <= most, "{way:?}: {held} bytes are held");
        assert_eq!(runs + refused - usize::from(way == Way::Older), count);
    }
}
