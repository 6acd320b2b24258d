//! A client and a server that exchange bytes in memory.

use super::guard::{Guard, RESOURCE};
use super::{Heap, Meter};
use bytes::Bytes;
use mcp_proto::call::RawResult;
use mcp_proto::client::{self, Cache, ClientCommands, Policy};
use mcp_proto::exchange::{Action, Closed, ConnectionId, IoEvent, Peer, Shutdown};
use mcp_proto::input::ClientCommand;
use mcp_proto::model::lifecycle::{CacheHints, CacheScope};
use mcp_proto::route::{Cx, RouteResult};
use mcp_proto::server::{self, ServerCommands, Sessions};
use mcp_proto::span::Span;
use mcp_proto::telemetry::{Observe, SpanEnd, SpanOutcome, Telemetry};
use mcp_proto::tools::CallTool;
use mcp_proto::wired::{Kind, WiredClient, WiredServer};
use mcp_proto::{CallError, CallHandle, CallToolResult, ClientConfig, Instant, Router, tool, tools};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

/// How the two are connected.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Transport {
    /// Lines, as over stdio.
    Lines,
    /// Streamable HTTP.
    Http,
}

/// The revisions of the protocol.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Era {
    /// 2026-07-28.
    Modern,
    /// 2025-11-25; over HTTP in a session.
    Legacy,
}

impl Transport {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Lines, Self::Http];
}

impl Era {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Modern, Self::Legacy];
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Lines => "stdio",
            Self::Http => "HTTP",
        })
    }
}

impl fmt::Display for Era {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Modern => "2026-07-28",
            Self::Legacy => "2025-11-25",
        })
    }
}

#[derive(Clone, Serialize, Deserialize)]
struct Echo {
    text: String,
}

/// A client and a server of one tool, which returns its argument of 64 bytes.
pub struct Pair {
    client: WiredClient,
    server: WiredServer,
    router: Router,
    now: Instant,
    kind: Kind,
    echo: Echo,
    /// The server's end of each connection of the client, and the reverse.
    to_server: BTreeMap<ConnectionId, ConnectionId>,
    to_client: BTreeMap<ConnectionId, ConnectionId>,
    /// Bytes under way, with the connection at their receiver.
    requests: Vec<(ConnectionId, Bytes)>,
    responses: Vec<(ConnectionId, Bytes)>,
    outcome: Option<Result<RawResult, CallError>>,
    /// The span of the call.
    span: Option<Box<Span>>,
    /// What decides about the token of the client, if it has one.
    guard: Option<Guard>,
    meter: Meter,
    /// Allocations of the client and of the server.
    heaps: [Heap; 2],
}

/// An observer that keeps nothing.
struct Counter;

impl Observe for Counter {
    fn ended(&self, end: &SpanEnd<'_>) {
        assert_eq!((end.span.method, end.outcome), ("tools/call", SpanOutcome::Complete));
    }
}

/// Which side makes the allocations.
#[derive(Clone, Copy)]
enum Side {
    Client,
    Server,
}

impl Pair {
    /// Creates both. The first call connects them.
    pub fn new(transport: Transport, era: Era, meter: Meter) -> Self {
        Self::with(transport, era, meter, None)
    }

    /// The same over HTTP: the client holds a token, which the server verifies and remembers.
    pub fn guarded(era: Era, meter: Meter) -> Self {
        Self::with(Transport::Http, era, meter, Some(Guard::new()))
    }

    /// The same over stdio, with functions around the handler and telemetry on both sides.
    pub fn observed(era: Era, meter: Meter) -> Self {
        Self::of(Transport::Lines, era, meter, None, |router, config| {
            config.observe = Some(Telemetry::new(Counter));
            router
                .inline(|router| router.before(|_: &Cx| Ok(())).after(|_, _| {}))
                .configure(|config| config.observe = Some(Telemetry::new(Counter)))
        })
    }

    /// The same on 2026-07-28: the client keeps results, and the list of tools lasts.
    pub fn caching(transport: Transport, meter: Meter) -> Self {
        Self::of(transport, Era::Modern, meter, None, |router, config| {
            config.cache = Some(Cache::default());
            router
        })
    }

    fn with(transport: Transport, era: Era, meter: Meter, guard: Option<Guard>) -> Self {
        Self::of(transport, era, meter, guard, |router, _| router)
    }

    fn of(
        transport: Transport,
        era: Era,
        meter: Meter,
        guard: Option<Guard>,
        set: impl FnOnce(Router, &mut ClientConfig) -> Router,
    ) -> Self {
        let mut router = Router::new("cost", "1")
            .configure(|config| config.list_cache = CacheHints::new(60_000, CacheScope::Private))
            .inline(|router| router.tool(tool("echo").describe("Echo"), |_cx, echo: Echo| Ok(echo.text)));
        if (transport, era) == (Transport::Http, Era::Modern) {
            router = router.configure(|config| config.sessions = Sessions::Off);
        }
        let (mut config, kind) = match transport {
            Transport::Lines => (ClientConfig::given(), Kind::Lines),
            Transport::Http => (ClientConfig::url(RESOURCE).expect("it is a url"), Kind::HttpServer),
        };
        if let Some(guard) = &guard {
            guard.client(&mut config);
            router = router.configure(|config| guard.server(config));
        }
        config.policy = if era == Era::Legacy { Policy::Legacy } else { Policy::Modern };
        let router = set(router, &mut config);
        Self {
            client: WiredClient::new(Arc::new(config), [1; 32], Instant::ZERO),
            server: WiredServer::new(Arc::new(router.config()), [2; 32], Instant::ZERO),
            router,
            now: Instant::ZERO,
            kind,
            echo: Echo { text: "the same words again ".chars().cycle().take(64).collect() },
            to_server: BTreeMap::new(),
            to_client: BTreeMap::new(),
            requests: Vec::new(),
            responses: Vec::new(),
            outcome: None,
            span: None,
            guard,
            meter,
            heaps: [Heap::default(); 2],
        }
    }

    /// Sets both counters to zero.
    pub fn reset(&mut self) {
        self.heaps = [Heap::default(); 2];
    }

    /// Returns the allocations of the client since the last [`reset`](Self::reset).
    pub fn client_heap(&self) -> Heap {
        self.heaps[Side::Client as usize]
    }

    /// Returns the allocations of the server.
    pub fn server_heap(&self) -> Heap {
        self.heaps[Side::Server as usize]
    }

    /// Makes one call, and checks its result.
    pub fn call(&mut self) {
        self.now = self.now + Duration::from_micros(50);
        let calling = self.counted(Side::Client, Self::start);
        while self.outcome.is_none() {
            self.client_turn();
            self.server_turn();
        }
        let outcome = self.outcome.take().expect("the call has ended");
        let result = self.counted(Side::Client, |pair| {
            let version = outcome.as_ref().ok().map(|result| result.version);
            if let Some(span) = pair.span.take() {
                span.end_call(&outcome, version, pair.now).report();
            }
            finish(calling, outcome)
        });
        assert_eq!(result.first_text(), Some(self.echo.text.as_str()));
    }

    /// Asks for the list of tools, whose result is not decoded.
    pub fn list(&mut self) {
        self.now = self.now + Duration::from_micros(50);
        self.counted(Side::Client, |pair| pair.client.call(pair.now, tools::list())).expect("there is room");
        while self.outcome.is_none() {
            self.client_turn();
            self.server_turn();
        }
        let outcome = self.outcome.take().expect("the call has ended");
        self.counted(Side::Client, |_| drop(black_box(outcome.expect("a result"))));
    }

    #[inline(never)]
    fn start(&mut self) -> CallHandle<CallTool> {
        let mut call = tools::call("echo").arguments(&self.echo);
        let config = self.client.client().config();
        let begin = |telemetry| Box::new(Span::of_call(telemetry, call.raw_mut(), &config.target, self.now));
        self.span = config.observe.as_ref().map(begin);
        self.client.call(self.now, call).expect("there is room")
    }

    /// Adds the allocations of `work` to those of `side`.
    fn counted<T>(&mut self, side: Side, work: impl FnOnce(&mut Self) -> T) -> T {
        let before = (self.meter)();
        let done = match side {
            Side::Client => measured_client(self, work),
            Side::Server => measured_server(self, work),
        };
        let (after, heap) = ((self.meter)(), &mut self.heaps[side as usize]);
        heap.count += after.count - before.count;
        heap.bytes += after.bytes - before.bytes;
        done
    }

    /// Passes the bytes that have arrived to the client, and carries out its actions.
    fn client_turn(&mut self) {
        for (connection, bytes) in std::mem::take(&mut self.responses) {
            self.counted(Side::Client, |pair| client_io(pair, connection, IoEvent::Read(bytes)));
        }
        while let Some(action) = self.counted(Side::Client, |pair| pair.client.poll_output()) {
            match action {
                Action::Open(connection, _) => {
                    let peer = Peer::tcp(([127, 0, 0, 1], 50_000).into());
                    let accepted = self.server.accept(self.now, self.kind, peer.clone());
                    self.to_server.insert(connection, accepted);
                    self.to_client.insert(accepted, connection);
                    client_io(self, connection, IoEvent::Opened(peer));
                }
                Action::Secure(connection, _) => client_io(self, connection, IoEvent::Secured),
                Action::Write(connection, bytes) => {
                    let written = IoEvent::Written(bytes.len());
                    self.counted(Side::Client, |pair| client_io(pair, connection, written));
                    // As a socket does, the other side gets bytes of its own.
                    self.requests.push((self.to_server[&connection], Bytes::copy_from_slice(&bytes)));
                }
                Action::Close(connection, Shutdown::WriteHalf) => {
                    self.server.handle_io(self.now, self.to_server[&connection], IoEvent::ReadClosed);
                }
                Action::Close(connection, _) => client_io(self, connection, IoEvent::Closed(Closed::Aborted)),
                Action::Event(client::Event::Ended { outcome, .. }) => self.outcome = Some(outcome),
                Action::Event(client::Event::Auth(step)) => {
                    if let Some(answer) = self.guard.as_ref().and_then(|guard| guard.answer(*step)) {
                        let refused = self.client.act(self.now, ClientCommand::Auth(Box::new(answer)));
                        assert!(refused.is_ok(), "{refused:?}");
                    }
                }
                Action::Read(..) | Action::Notice(..) | Action::Event(_) => {}
            }
        }
    }

    /// The same for the server, whose handler runs in between.
    fn server_turn(&mut self) {
        for (connection, bytes) in std::mem::take(&mut self.requests) {
            self.counted(Side::Server, |pair| server_io(pair, connection, IoEvent::Read(bytes)));
        }
        while let Some(action) = self.counted(Side::Server, |pair| pair.server.poll_output()) {
            match action {
                Action::Write(connection, bytes) => {
                    let written = IoEvent::Written(bytes.len());
                    self.counted(Side::Server, |pair| server_io(pair, connection, written));
                    self.responses.push((self.to_client[&connection], Bytes::copy_from_slice(&bytes)));
                }
                Action::Event(server::Event::Request(responder, mut incoming)) => {
                    self.counted(Side::Server, |pair| {
                        let telemetry = responder.config().observe.as_ref();
                        let begin =
                            |telemetry| Box::new(Span::of_request(telemetry, &responder, &mut incoming, pair.now));
                        let span = telemetry.map(begin);
                        let answer = match pair.router.route(responder, incoming) {
                            RouteResult::Answer(answer) => answer,
                            RouteResult::Handle { handler, invocation, responder } => {
                                responder.write(handler.call(&Cx::detached(invocation)).expect("no future"))
                            }
                        };
                        if let Some(span) = span {
                            span.end_request(&answer, false, pair.now).report();
                        }
                        pair.server.respond(pair.now, answer);
                    });
                }
                Action::Event(server::Event::Admit(token, head)) => {
                    self.counted(Side::Server, |pair| {
                        let guard = pair.guard.as_mut().expect("a server that verifies tokens");
                        let admission = guard.admit(pair.now, &head.expect("the head of a request"));
                        pair.server.admit(pair.now, token, admission);
                    });
                }
                _ => {}
            }
        }
    }
}

/// What is inside of it is the client's. The name is for programs that look at this one from
/// outside. The side keeps the compiler from merging it with the next one.
#[inline(never)]
fn measured_client<T>(pair: &mut Pair, work: impl FnOnce(&mut Pair) -> T) -> T {
    black_box(Side::Client);
    work(pair)
}

/// What is inside of it is the server's.
#[inline(never)]
fn measured_server<T>(pair: &mut Pair, work: impl FnOnce(&mut Pair) -> T) -> T {
    black_box(Side::Server);
    work(pair)
}

#[inline(never)]
fn client_io(pair: &mut Pair, connection: ConnectionId, event: IoEvent) {
    pair.client.handle_io(pair.now, connection, event);
}

#[inline(never)]
fn server_io(pair: &mut Pair, connection: ConnectionId, event: IoEvent) {
    pair.server.handle_io(pair.now, connection, event);
}

#[inline(never)]
fn finish(calling: CallHandle<CallTool>, outcome: Result<RawResult, CallError>) -> CallToolResult {
    calling.finish(outcome).expect("the call succeeds")
}
