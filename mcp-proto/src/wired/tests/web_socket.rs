//! WebSockets: both engines joined, and each side against scripted bytes.

mod bare;
mod expiry;
mod redirects;
mod room;

use super::net::Net;
use crate::Limits;
use crate::client::{self, ClientCommands, ClientConfig, Policy};
use crate::error::{CallError, DiagnosticKind};
use crate::exchange::*;
use crate::frame::Kind;
use crate::input::*;
use crate::model::lifecycle::Implementation;
use crate::model::tools;
use crate::server::{self, ServerCommands, ServerConfig};
use crate::time::Instant;
use crate::version::{ProtocolVersion, Versions};
use crate::wired::{Connection, ConnectionOutput, WiredClient, WiredServer};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use bytes::Bytes;
use core::time::Duration;

const URL: &str = "ws://localhost/mcp";
const CHUNKS: [usize; 4] = [usize::MAX, 64, 7, 1];

fn config(policy: Policy) -> ClientConfig {
    let mut config = ClientConfig::url(URL).unwrap();
    config.policy = policy;
    config
}

fn server_config(change: impl FnOnce(&mut ServerConfig)) -> ServerConfig {
    let mut config = ServerConfig::new(Implementation::new("server", "1"));
    config.web_socket = true;
    change(&mut config);
    config
}

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

// covers: WS-B-001, WS-C-002, WS-C-003, S2-31, S2-34, S2-36, B-054
#[test]
fn conversation_over_a_websocket_is_independent_of_pieces() {
    for (policy, version) in [(Policy::Modern, "2026-07-28"), (Policy::Legacy, "2025-11-25")] {
        let mut logs = Vec::new();
        for chunk in CHUNKS {
            let mut net = Net::between(config(policy), server_config(|_| {}), chunk);
            // Made before the connection is open.
            net.call(tools::call("early"));
            net.rest();
            net.call(tools::call("steps").progress());
            let slow = net.call(tools::call("slow"));
            net.rest();
            net.tell(Input::Command(ClientCommand::Cancel(slow.id(), None)));
            net.rest();
            let late = net.held.pop().expect("the slow call was handed out");
            net.answer(late, "too late");
            net.call(tools::call("after"));
            net.rest();
            net.tell(Input::Command(ClientCommand::Close));
            net.rest();
            assert_eq!(net.channels(), 1);
            net.check_replay();
            let mut log = net.log();
            log.sort();
            let ready = format!("ready {version}");
            for line in
                [ready.as_str(), "call 1 succeeded", "call 2 succeeded", "call 3: cancelled", "call 4 succeeded"]
            {
                assert!(log.iter().any(|told| told == line), "{line}: {log:?}");
            }
            assert!(log.contains(&"terminated Requested".to_string()), "{log:?}");
            assert!(!log.iter().any(|line| line.contains("diagnostic")), "{log:?}");
            logs.push(log);
        }
        assert!(logs.windows(2).all(|pair| pair[0] == pair[1]));
    }
}

// covers: WS-B-001, S2-33, S2-35, WS-C-007
#[test]
fn handshake_names_the_host_and_has_the_given_fields() {
    let mut config = config(Policy::Auto);
    config.headers = Headers::new().with("Authorization", "Bearer 1");
    let mut net = Net::between(config, server_config(|_| {}), usize::MAX);
    net.rest();
    let wire = String::from_utf8_lossy(&net.wire[&(ConnectionId(1), true)]).into_owned();
    let head = wire.split("\r\n\r\n").next().unwrap().to_ascii_lowercase();
    for line in [
        "get /mcp http/1.1",
        "host: localhost",
        "authorization: bearer 1",
        "upgrade: websocket",
        "connection: upgrade",
        "sec-websocket-version: 13",
        "sec-websocket-protocol: mcp",
    ] {
        assert!(head.lines().any(|of| of == line), "{line}: {head}");
    }
    let wire = String::from_utf8_lossy(&net.wire[&(ConnectionId(1), false)]).into_owned();
    assert!(wire.starts_with("HTTP/1.1 101 Switching Protocols\r\n"), "{wire}");
}

// covers: WS-C-010, S2-41
#[test]
fn server_without_websockets_is_reported_by_its_status() {
    for (path, status) in [("ws://localhost/mcp", 405), ("ws://localhost/other", 404)] {
        let mut net = Net::between(
            ClientConfig::url(path).unwrap(),
            server_config(|config| {
                config.web_socket = false;
                config.versions = Versions::new([ProtocolVersion::V2026_07_28]);
            }),
            usize::MAX,
        );
        let call = net.call(tools::call("x"));
        net.rest();
        let log = net.log();
        let told = format!("HTTP {status} in place of a websocket");
        assert!(
            log.iter().any(|line| line.starts_with(&format!("call {}:", call.id().0)) && line.contains(&told)),
            "{log:?}"
        );
    }
}

// covers: WS-S-014, B-271
#[test]
fn origin_host_and_path_are_checked_before_the_upgrade() {
    for (change, status) in [
        ("Origin: https://evil.example\r\n", "403"),
        ("Host: evil.example\r\n", "403"),
        ("Sec-WebSocket-Version: 12\r\n", "426"),
        ("Sec-WebSocket-Key: short\r\n", "400"),
    ] {
        let mut peer = ServerPeer::server(server_config(|_| {}));
        let mut head = String::from("GET /mcp HTTP/1.1\r\n");
        for line in [
            "Host: localhost\r\n",
            "Upgrade: websocket\r\n",
            "Connection: Upgrade\r\n",
            "Sec-WebSocket-Version: 13\r\n",
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n",
        ] {
            let name = |line: &str| line.split(':').next().map(ToString::to_string);
            head.push_str(if name(line) == name(change) { change } else { line });
        }
        if change.starts_with("Origin") {
            head.push_str(change);
        }
        head.push_str("\r\n");
        peer.read(head.as_bytes());
        let said = peer.take();
        let said = String::from_utf8_lossy(&said);
        assert!(said.starts_with(&format!("HTTP/1.1 {status} ")), "{change} {said}");
        if status == "426" {
            assert!(said.to_ascii_lowercase().contains("sec-websocket-version: 13\r\n"), "{said}");
        }
    }
}

/// A server, and the bytes that it has written.
struct ServerPeer {
    server: WiredServer,
    now: Instant,
    id: ConnectionId,
    closes: Vec<Shutdown>,
    events: Vec<String>,
    requests: Vec<server::Responder>,
    written: Vec<u8>,
    /// Whether the driver reports the written bytes.
    writes: bool,
    unreported: usize,
}

const HELLO: &str = "GET /mcp HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
    Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

/// A frame of a client, with the mask zero.
fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::from([first]);
    match payload.len() {
        len @ 0..=125 => out.push(0x80 | len as u8),
        len => {
            out.push(0x80 | 126);
            out.extend_from_slice(&(len as u16).to_be_bytes());
        }
    }
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(payload);
    out
}

const TEXT: u8 = 0x81;
const PING: u8 = 0x89;
const CLOSE: u8 = 0x88;

impl ServerPeer {
    fn server(config: ServerConfig) -> Self {
        let mut config = config;
        config.capabilities.tools = Some(Default::default());
        let mut server = WiredServer::new(Arc::new(config), [3; 32], Instant::ZERO);
        let id = server.accept(Instant::ZERO, Kind::HttpServer, Peer::default());
        let (closes, events, requests) = Default::default();
        let now = Instant::ZERO;
        Self { server, now, id, closes, events, requests, written: Vec::new(), writes: true, unreported: 0 }
    }

    /// A server with an open websocket.
    fn open() -> Self {
        let mut peer = Self::server(server_config(|_| {}));
        peer.read(HELLO.as_bytes());
        let said = String::from_utf8_lossy(&peer.take()).into_owned();
        assert!(said.contains("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="), "{said}");
        assert!(said.ends_with("\r\n\r\n"));
        peer
    }

    fn read(&mut self, bytes: &[u8]) {
        self.server.handle_io(self.now, self.id, IoEvent::Read(Bytes::copy_from_slice(bytes)));
        self.drain();
    }

    fn drain(&mut self) {
        while let Some(action) = self.server.poll_output() {
            match action {
                Action::Write(_, bytes) => {
                    self.written.extend_from_slice(&bytes);
                    if self.writes {
                        self.server.handle_io(self.now, self.id, IoEvent::Written(bytes.len()));
                    } else {
                        self.unreported += bytes.len();
                    }
                }
                Action::Close(_, how) => self.closes.push(how),
                Action::Event(server::Event::Request(responder, _)) => self.requests.push(responder),
                Action::Event(event) => self.events.push(format!("{event:?}")),
                _ => {}
            }
        }
    }

    fn pass(&mut self, time: Duration) {
        self.now = self.now + time;
        self.server.handle_timeout(self.now);
        self.drain();
    }

    fn take(&mut self) -> Vec<u8> {
        core::mem::take(&mut self.written)
    }
}

const CALL: &[u8] = br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;

// covers: WS-B-006, WS-B-016, WS-B-017, WS-B-019, WS-B-025, S2-40, B-269, B-270
#[test]
fn violation_of_a_client_gets_its_code_and_ends_what_runs() {
    for (bytes, code) in [
        (Vec::from([0x81, 0x01, b'x']), 1002_u16),
        (frame(0xc1, b"{}"), 1002),
        (frame(0x82, b"x"), 1003),
        (frame(0x81, b"\xff"), 1007),
        (frame(0x09, b"x"), 1002),
        (frame(CLOSE, &1005_u16.to_be_bytes()), 1002),
        ([&[0x81, 0xff][..], &(17_u64 << 20).to_be_bytes(), &[0; 4]].concat(), 1009),
    ] {
        let mut peer = ServerPeer::open();
        peer.read(&frame(TEXT, CALL));
        assert_eq!(peer.requests.len(), 1);
        peer.read(&bytes);
        let said = peer.take();
        assert_eq!(said[0], CLOSE, "{bytes:?}");
        assert_eq!(said[2..4], code.to_be_bytes(), "{bytes:?}");
        assert!(peer.events.iter().any(|event| event.starts_with("Cancelled")), "{:?}", peer.events);
        assert_eq!(peer.closes, [Shutdown::WriteHalf], "the server closes first");
        peer.read(&frame(TEXT, CALL));
        assert_eq!(peer.requests.len(), 1, "nothing after it counts");
        peer.pass(ms(2_000));
        assert_eq!(peer.closes, [Shutdown::WriteHalf, Shutdown::Abort]);
    }
}

// covers: WS-B-001, B-270
#[test]
fn text_of_two_messages_is_no_message() {
    let mut peer = ServerPeer::open();
    for between in ["", " ", "\n", "\r\n"] {
        peer.read(&frame(TEXT, &[CALL, between.as_bytes(), CALL].concat()));
        assert!(peer.requests.is_empty(), "{between:?}");
        let told = peer.events.pop().expect("a diagnostic");
        assert!(told.contains("BadMessage"), "{told}");
    }
    peer.read(&frame(TEXT, CALL));
    assert_eq!(peer.requests.len(), 1, "the connection goes on");
}

// covers: WS-B-022, WS-B-006
#[test]
fn close_of_a_client_is_answered_with_its_code() {
    for (payload, answer) in [
        (&1000_u16.to_be_bytes()[..], &[0x88, 2, 3, 232][..]),
        (b"", &[0x88, 0]),
        (b"\x0b\xb8bye", &[0x88, 2, 0x0b, 0xb8]),
    ] {
        let mut peer = ServerPeer::open();
        peer.read(&frame(CLOSE, payload));
        assert_eq!(peer.take(), answer);
        assert_eq!(peer.closes, [Shutdown::WriteHalf]);
        peer.server.handle_io(peer.now, peer.id, IoEvent::Closed(Closed::Eof));
        peer.drain();
        assert_eq!(peer.server.stats().channels, 0);
    }
}

// covers: WS-B-021, B-271
#[test]
fn ping_flood_leaves_one_pong_unwritten() {
    let mut peer = ServerPeer::open();
    peer.read(&frame(PING, b"a"));
    assert_eq!(peer.take(), [0x8a, 1, b'a']);
    peer.writes = false;
    for n in 0..10_000_u32 {
        peer.read(&frame(PING, &n.to_be_bytes()));
    }
    assert_eq!(peer.written.len(), 6, "one is on its way");
    peer.writes = true;
    peer.server.handle_io(peer.now, peer.id, IoEvent::Written(peer.unreported));
    peer.drain();
    assert_eq!(peer.take()[6..], [&[0x8a, 4][..], &9_999_u32.to_be_bytes()].concat(), "and the latest follows");
}

// covers: B-271, S3-50
#[test]
fn silent_client_is_checked_with_a_ping() {
    let mut peer = ServerPeer::open();
    peer.pass(ms(29_999));
    assert_eq!(peer.take(), Vec::<u8>::new());
    peer.pass(ms(1));
    assert_eq!(peer.take(), [0x89, 0]);
    peer.read(&frame(0x8a, b""));
    peer.pass(ms(20_000));
    assert_eq!(peer.closes, [], "it has answered");
    peer.pass(ms(10_000));
    assert_eq!(peer.take(), [0x89, 0]);
    peer.pass(ms(20_000));
    assert_eq!(peer.closes, [Shutdown::Abort]);
}

// covers: WS-B-006, S2-40
#[test]
fn shutdown_and_revocation_of_a_server_have_their_codes() {
    let mut peer = ServerPeer::open();
    peer.server.shutdown(peer.now, Duration::ZERO);
    peer.drain();
    assert_eq!(peer.take(), [0x88, 2, 0x03, 0xe9], "1001: it goes away");
    // A connection without a request.
    let mut peer = ServerPeer::server(server_config(|config| {
        config.limits.server.handshake_timeout = Some(ms(1_000));
    }));
    peer.read(HELLO.as_bytes());
    peer.take();
    peer.pass(ms(1_000));
    assert_eq!(peer.take(), [0x88, 2, 0x03, 0xf0], "1008: it breaks a rule of the server");
    assert_eq!(peer.closes, [Shutdown::WriteHalf]);
}

// covers: WS-B-006, S2-40
#[test]
fn unsendable_part_closes_with_the_code_of_an_internal_error() {
    let now = Instant::ZERO;
    let mut connection = Connection::server(1, Kind::HttpServer, Peer::default(), &Limits::default().frame, now);
    connection.handle_io(now, IoEvent::Read(HELLO.into()));
    let (exchange, _) = core::iter::from_fn(|| connection.poll_event()).last().expect("the request");
    let head = ResponseHead { status: 101, headers: Headers::new() };
    connection.send(now, exchange, Outbound::Response { head, body: Body::WebSocket(WsDialect::JsonRpc) });
    while connection.poll_output().is_some() {}
    connection.send(now, exchange, Outbound::Comment(String::new()));
    let written = connection.poll_output().expect("a `Close`");
    assert_eq!(written, ConnectionOutput::Write(Bytes::from_static(&[0x88, 2, 0x03, 0xf3])), "1011");
    assert_eq!(connection.poll_diagnostic().map(|diagnostic| diagnostic.kind), Some(DiagnosticKind::OutOfPlace));
}

/// A client, and the bytes that it has written after its handshake.
struct ClientPeer {
    client: WiredClient,
    now: Instant,
    id: ConnectionId,
    /// The server of the latest connection.
    endpoint: Option<Endpoint>,
    closes: Vec<Shutdown>,
    events: Vec<client::Event>,
    written: Vec<u8>,
}

impl ClientPeer {
    fn new(config: ClientConfig) -> Self {
        Self::reaching(config, Peer::default())
    }

    /// The first connection leads to this peer.
    fn reaching(config: ClientConfig, reached: Peer) -> Self {
        let client = WiredClient::new(Arc::new(config), [4; 32], Instant::ZERO);
        let (closes, events, written) = Default::default();
        let (now, id) = (Instant::ZERO, ConnectionId(1));
        let mut peer = Self { client, now, id, endpoint: None, closes, events, written };
        peer.drain();
        peer.client.handle_io(peer.now, peer.id, IoEvent::Opened(reached));
        peer.drain();
        peer
    }

    fn accepted() -> Self {
        let mut peer = Self::new(config(Policy::Modern));
        peer.accept();
        peer
    }

    /// The server accepts the handshake.
    fn accept(&mut self) {
        let head = String::from_utf8(core::mem::take(&mut self.written)).unwrap();
        let accept = accept(&head);
        self.read(
            format!(
                "HTTP/1.1 101 x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {accept}\r\n\r\n"
            )
            .as_bytes(),
        );
    }

    fn read(&mut self, bytes: &[u8]) {
        self.client.handle_io(self.now, self.id, IoEvent::Read(Bytes::copy_from_slice(bytes)));
        self.drain();
    }

    fn pass(&mut self, time: Duration) {
        self.now = self.now + time;
        self.client.handle_timeout(self.now);
        self.drain();
    }

    fn drain(&mut self) {
        while let Some(action) = self.client.poll_output() {
            match action {
                Action::Open(id, endpoint) => {
                    assert!(matches!(endpoint, Endpoint::Origin(_) | Endpoint::Within(..)));
                    (self.id, self.endpoint) = (id, Some(endpoint));
                }
                Action::Write(id, bytes) => {
                    self.written.extend_from_slice(&bytes);
                    self.client.handle_io(self.now, id, IoEvent::Written(bytes.len()));
                }
                Action::Close(_, how) => self.closes.push(how),
                Action::Event(event) => self.events.push(event),
                _ => {}
            }
        }
    }

    /// Returns the code of the `Close` that it has written.
    fn close_code(&self) -> u16 {
        let mask = &self.written[2..6];
        u16::from_be_bytes([self.written[6] ^ mask[0], self.written[7] ^ mask[1]])
    }

    fn outcome(&self) -> Option<&CallError> {
        self.events.iter().find_map(|event| match event {
            client::Event::Ended { outcome: Err(error), .. } => Some(error),
            _ => None,
        })
    }
}

/// The answer to the key of a handshake.
fn accept(head: &str) -> String {
    use base64::Engine as _;
    let key = head.lines().find_map(|line| line.strip_prefix("Sec-WebSocket-Key: ")).expect("a key");
    let digest = sha1_smol::Sha1::from(format!("{key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11")).digest().bytes();
    base64::engine::general_purpose::STANDARD.encode(digest)
}

// covers: WS-C-002, S2-32
#[test]
fn nothing_is_sent_before_the_handshake_is_accepted() {
    let mut peer = ClientPeer::new(config(Policy::Modern));
    peer.client.call(peer.now, tools::call("x")).unwrap();
    peer.drain();
    assert!(peer.written.starts_with(b"GET ") && peer.written.ends_with(b"\r\n\r\n"));
    let head = String::from_utf8(core::mem::take(&mut peer.written)).unwrap();
    peer.read(format!("HTTP/1.1 101 x\r\nUpgrade: WebSocket\r\nconnection: keep-alive, upgrade\r\nSec-WebSocket-Accept: {}\r\n\r\n", accept(&head)).as_bytes());
    assert_eq!(peer.written[0], 0x81, "the probe");
    assert!(peer.written[1] & 0x80 != 0, "masked");
}

// covers: WS-C-008, WS-C-009
#[test]
fn wrong_handshake_of_a_server_fails_the_connection() {
    for response in [
        "HTTP/1.1 101 x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: bm8=\r\n\r\n",
        "HTTP/1.1 101 x\r\nConnection: Upgrade\r\n\r\n",
        "nonsense\r\n\r\n",
    ] {
        let mut peer = ClientPeer::new(config(Policy::Modern));
        let call = peer.client.call(peer.now, tools::call("x")).unwrap();
        peer.read(response.as_bytes());
        let error = peer.outcome().unwrap_or_else(|| panic!("{response}: {call:?} {:?}", peer.events)).to_string();
        assert!(error.contains("framing is broken"), "{response}: {error}");
        assert_eq!(peer.closes, [Shutdown::Abort]);
    }
    // Silence, and an end.
    let mut peer = ClientPeer::new(config(Policy::Modern));
    peer.client.call(peer.now, tools::call("x")).unwrap();
    peer.pass(ms(10_000));
    assert!(peer.outcome().is_some());
    let mut peer = ClientPeer::new(config(Policy::Modern));
    peer.client.call(peer.now, tools::call("x")).unwrap();
    peer.client.handle_io(peer.now, peer.id, IoEvent::ReadClosed);
    peer.drain();
    assert!(peer.outcome().is_some());
}

// covers: WS-C-005, WS-C-023, WS-B-024, S2-38, S2-39, S2-41
#[test]
fn close_of_a_server_reaches_every_waiting_call_once() {
    for (payload, why) in [
        (&b"\x03\xf3boom"[..], "the peer closed the websocket with code 1011: boom"),
        (b"\x03\xe9", "the peer closed the websocket with code 1001"),
        (b"", "the peer closed the websocket"),
    ] {
        let mut peer = ClientPeer::accepted();
        for _ in 0..3 {
            peer.client.call(peer.now, tools::call("x")).unwrap();
        }
        peer.drain();
        peer.written.clear();
        let mut close = Vec::from([0x88, payload.len() as u8]);
        close.extend_from_slice(payload);
        peer.read(&close);
        assert_eq!(peer.written[0], 0x88, "answered");
        let ended: Vec<String> = peer
            .events
            .iter()
            .filter_map(|event| match event {
                client::Event::Ended { outcome: Err(error), .. } => Some(error.to_string()),
                _ => None,
            })
            .collect();
        assert_eq!(ended.len(), 3, "{:?}", peer.events);
        assert!(ended.iter().all(|error| error.contains(why)), "{ended:?}");
        // The server closes the connection, and the client waits for that.
        assert_eq!(peer.closes, []);
        peer.pass(ms(2_000));
        assert_eq!(peer.closes, [Shutdown::Abort]);
    }
}

// covers: WS-C-023, WS-B-006, WS-B-022
#[test]
fn client_that_closes_waits_for_the_server_for_a_limited_time() {
    for answers in [true, false] {
        let mut peer = ClientPeer::accepted();
        peer.written.clear();
        peer.client.close(peer.now);
        peer.drain();
        assert_eq!((peer.written[0], peer.written[1] & 0x7f), (0x88, 2));
        assert_eq!(peer.close_code(), 1000);
        assert_eq!(peer.closes, []);
        if answers {
            peer.read(&[0x88, 2, 3, 232]);
            assert_eq!(peer.closes, []);
            peer.client.handle_io(peer.now, peer.id, IoEvent::ReadClosed);
            peer.drain();
        } else {
            peer.pass(ms(2_000));
        }
        assert_eq!(peer.closes, [Shutdown::Abort]);
        peer.client.handle_io(peer.now, peer.id, IoEvent::Closed(Closed::Aborted));
        peer.drain();
        assert!(matches!(peer.events.last(), Some(client::Event::Terminated(client::Termination::Requested))));
    }
}

// covers: WS-C-010, S0-45
#[test]
fn challenge_of_the_handshake_is_answered_with_credentials_once() {
    challenge_is_answered_once(config(Policy::Modern));
}

/// The handshake of a client with this configuration is challenged twice.
fn challenge_is_answered_once(mut config: ClientConfig) {
    config.authorize = true;
    let mut peer = ClientPeer::new(config);
    peer.client.call(peer.now, tools::call("x").timeout(Some(ms(5_000)))).unwrap();
    for round in 0..2 {
        peer.written.clear();
        peer.read(b"HTTP/1.1 401 x\r\nWWW-Authenticate: Bearer\r\nContent-Length: 0\r\n\r\n");
        peer.client.handle_io(peer.now, peer.id, IoEvent::Closed(Closed::Aborted));
        peer.drain();
        if round == 1 {
            break;
        }
        let token = peer.events.iter().find_map(|event| match event {
            client::Event::AuthNeeded { token, challenge, .. } => Some((token.key(), challenge.clone())),
            _ => None,
        });
        let (key, challenge) = token.expect("it is reported");
        assert_eq!(challenge.status, 401);
        // The clock of the call is stopped meanwhile.
        peer.pass(ms(60_000));
        let with = Authorization::Headers(Headers::new().with("Authorization", "Bearer 1"));
        peer.client.apply(peer.now, Input::Command(ClientCommand::Authorize(key, with))).unwrap();
        peer.drain();
        peer.client.handle_io(peer.now, peer.id, IoEvent::Opened(Peer::default()));
        peer.drain();
        let head = String::from_utf8_lossy(&peer.written).into_owned();
        assert!(head.contains("Authorization: Bearer 1\r\n"), "{head}");
    }
    assert!(peer.outcome().unwrap().to_string().contains("HTTP 401"), "{:?}", peer.events);
}

// covers: WS-C-010, S0-45
#[test]
fn challenge_for_more_scopes_follows_the_first_one() {
    let mut config = config(Policy::Modern);
    config.authorize = true;
    let mut peer = ClientPeer::new(config);
    peer.client.call(peer.now, tools::call("x")).unwrap();
    let more = "403 x\r\nWWW-Authenticate: Bearer error=\"insufficient_scope\"";
    for status in ["401 x\r\nWWW-Authenticate: Bearer", more] {
        peer.read(format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n").as_bytes());
        peer.client.handle_io(peer.now, peer.id, IoEvent::Closed(Closed::Aborted));
        peer.drain();
        let last = peer.events.iter().rev().find_map(|event| match event {
            client::Event::AuthNeeded { token, challenge, .. } => Some((token.key(), challenge.status)),
            _ => None,
        });
        let (key, asked) = last.expect("it is reported");
        assert!(status.starts_with(&asked.to_string()), "{asked}");
        let with = Authorization::Headers(Headers::new().with("Authorization", "Bearer 1"));
        peer.client.apply(peer.now, Input::Command(ClientCommand::Authorize(key, with))).unwrap();
        peer.drain();
        peer.client.handle_io(peer.now, peer.id, IoEvent::Opened(Peer::default()));
        peer.drain();
    }
    peer.read(format!("HTTP/1.1 {more}\r\nContent-Length: 0\r\n\r\n").as_bytes());
    peer.client.handle_io(peer.now, peer.id, IoEvent::Closed(Closed::Aborted));
    peer.drain();
    assert!(peer.outcome().unwrap().to_string().contains("HTTP 403"), "{:?}", peer.events);
}

// covers: WS-B-026, WS-B-006
#[test]
fn limits_of_messages_hold_for_a_client() {
    let mut limits = Limits::default();
    limits.frame.max_line = 64;
    let mut config = config(Policy::Modern);
    config.limits = limits;
    let mut peer = ClientPeer::new(config);
    let head = String::from_utf8(core::mem::take(&mut peer.written)).unwrap();
    let response = format!(
        "HTTP/1.1 101 x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {}\r\n\r\n",
        accept(&head)
    );
    peer.read(response.as_bytes());
    peer.written.clear();
    peer.read(&[0x81, 65]);
    assert_eq!((peer.written[0], peer.close_code()), (0x88, 1009));
}
