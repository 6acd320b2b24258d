//! Two sides in memory, with certificates of the tests: what each sees, whatever arrives.

mod certificates;
mod faults;
mod transfers;

use super::{Tls, TlsAcceptor, TlsConnector, TlsOutput};
use alloc::sync::Arc;
use alloc::vec::Vec;
use bytes::Bytes;
use certificates::{Authority, Leaf};
use mcp_proto::exchange::{TlsFailure, TlsFailureKind};
use rustls::{ClientConfig, ServerConfig};

/// One side, and what it has seen.
struct Side {
    tls: Tls,
    /// Bytes for the network that the other side has not got.
    wire: Vec<u8>,
    read: Vec<u8>,
    is_secured: bool,
    read_closed: bool,
    failed: Option<TlsFailure>,
}

impl Side {
    fn new(tls: Tls) -> Self {
        let (wire, read) = (Vec::new(), Vec::new());
        let mut side = Self { tls, wire, read, is_secured: false, read_closed: false, failed: None };
        side.take();
        side
    }

    fn take(&mut self) {
        while let Some(output) = self.tls.poll_output() {
            match output {
                TlsOutput::Write(bytes) => self.wire.extend_from_slice(&bytes),
                TlsOutput::Secured => assert!(!core::mem::replace(&mut self.is_secured, true), "once"),
                TlsOutput::Read(bytes) => {
                    assert!(self.is_secured && !self.read_closed && self.failed.is_none() && !bytes.is_empty());
                    self.read.extend_from_slice(&bytes);
                }
                TlsOutput::ReadClosed => self.read_closed = true,
                TlsOutput::Failed(why) => assert!(self.failed.replace(why).is_none(), "once"),
            }
        }
    }

    fn write(&mut self, text: &[u8]) {
        self.tls.write(text);
        self.take();
    }

    fn get(&mut self, bytes: &[u8]) {
        self.tls.read(bytes);
        self.take();
    }

    fn close(&mut self) {
        self.tls.close();
        self.take();
    }

    fn end(&mut self) {
        self.tls.read_end();
        self.take();
    }
}

/// Carries bytes in pieces of this size until there are none.
fn run(client: &mut Side, server: &mut Side, piece: usize) {
    while !(client.wire.is_empty() && server.wire.is_empty()) {
        for piece in core::mem::take(&mut client.wire).chunks(piece) {
            server.get(piece);
        }
        for piece in core::mem::take(&mut server.wire).chunks(piece) {
            client.get(piece);
        }
    }
}

/// Returns both sides after what their configurations make of the handshake.
fn shake(client: Arc<ClientConfig>, server: Arc<ServerConfig>, name: &str) -> (Side, Side) {
    let client = TlsConnector::new(client).connect(name).expect("a name");
    let server = TlsAcceptor::new(server).accept().expect("a configuration");
    let (mut client, mut server) = (Side::new(client), Side::new(server));
    run(&mut client, &mut server, usize::MAX);
    (client, server)
}

fn pair() -> (Side, Side) {
    let authority = Authority::new();
    let (client, server) = shake(authority.client(), authority.server(&Leaf::good()), "localhost");
    assert!(client.is_secured && server.is_secured);
    (client, server)
}

// covers: S2-21
#[test]
fn bytes_arrive_in_both_directions_however_they_are_split() {
    let authority = Authority::new();
    for piece in [1, 7, 4096, usize::MAX] {
        let client = TlsConnector::new(authority.client()).connect("localhost").expect("a name");
        let server = TlsAcceptor::new(authority.server(&Leaf::good())).accept().expect("a configuration");
        let (mut client, mut server) = (Side::new(client), Side::new(server));
        run(&mut client, &mut server, piece);
        assert!(client.is_secured && server.is_secured, "{piece}");
        let long: Vec<u8> = (0..100_000_u32).map(|n| n as u8).collect();
        client.write(b"hello");
        client.write(&long);
        server.write(&long);
        run(&mut client, &mut server, piece);
        assert_eq!(client.read, long, "{piece}");
        assert_eq!(server.read, [b"hello", &*long].concat(), "{piece}");
    }
}

// covers: TLS-B-005
#[test]
fn each_direction_ends_for_itself() {
    let (mut client, mut server) = pair();
    client.write(b"last");
    client.close();
    run(&mut client, &mut server, usize::MAX);
    assert!(server.read_closed && server.read == b"last");
    server.write(b"answer");
    run(&mut client, &mut server, usize::MAX);
    assert_eq!((&*client.read, client.read_closed), (&b"answer"[..], false));
    server.close();
    run(&mut client, &mut server, usize::MAX);
    assert!(client.read_closed);
    // The end of the network's bytes adds nothing, and neither do bytes after the end.
    client.end();
    server.get(b"junk");
    assert!(client.failed.is_none() && server.failed.is_none() && server.read == b"last");
}

// covers: TLS-C-006
#[test]
fn end_without_close_notify_is_a_truncation() {
    let (mut client, mut server) = pair();
    server.write(b"a part");
    let record = core::mem::take(&mut server.wire);
    client.get(&record[..record.len() - 1]);
    assert!(client.read.is_empty());
    client.end();
    let failed = client.failed.expect("it has failed");
    assert_eq!(failed.kind, TlsFailureKind::Truncated);
    let (mut client, mut server) = pair();
    server.write(b"all");
    run(&mut client, &mut server, usize::MAX);
    client.end();
    assert_eq!(client.read, b"all");
    assert_eq!(client.failed.expect("it has failed").to_string(), "the connection ended without the end of TLS");
}

/// The bytes of the engine were dropped, so the peer must not take what it has for everything.
#[test]
fn close_after_a_failure_sends_no_close_notify() {
    let (mut client, mut server) = pair();
    server.write(b"a part");
    run(&mut client, &mut server, usize::MAX);
    server.end();
    server.write(b", and the rest");
    server.close();
    assert_eq!(server.failed.map(|why| why.kind), Some(TlsFailureKind::Truncated));
    client.get(&server.wire);
    assert!(client.read == b"a part" && !client.read_closed);
}

#[test]
fn configuration_is_replaced_for_new_connections() {
    let (first, second) = (Authority::new(), Authority::named("another authority"));
    let acceptor = TlsAcceptor::new(first.server(&Leaf::good()));
    let shake = |client: &Arc<ClientConfig>, acceptor: &TlsAcceptor| {
        let mut client = Side::new(TlsConnector::new(Arc::clone(client)).connect("localhost").expect("a name"));
        let mut server = Side::new(acceptor.accept().expect("a configuration"));
        run(&mut client, &mut server, usize::MAX);
        client.is_secured
    };
    let (of_first, of_second) = (first.client(), second.client());
    let clone = acceptor.clone();
    assert!(shake(&of_first, &clone) && !shake(&of_second, &clone));
    acceptor.set(second.server(&Leaf::good()));
    assert!(!shake(&of_first, &clone) && shake(&of_second, &clone));
}

// covers: TLS-C-008, TLS-B-007
#[test]
fn only_http_1_1_is_offered_and_no_early_data() {
    let authority = Authority::new();
    let mut config = (*authority.client()).clone();
    config.alpn_protocols = alloc::vec![b"h2".to_vec()];
    config.enable_early_data = true;
    let client = Side::new(TlsConnector::new(Arc::new(config)).connect("localhost").expect("a name"));
    let hello = &client.wire;
    let contains = |text: &[u8]| hello.windows(text.len()).any(|part| part == text);
    assert!(contains(b"\x08http/1.1") && !contains(b"\x02h2"));
    // Extension 42 is `early_data`, and 43 `supported_versions`: 1.3, then 1.2.
    assert!(!contains(&[0, 42, 0, 0]) && contains(&[0, 43, 0, 5, 4, 3, 4, 3, 3]));
}

// covers: TLS-C-004
#[test]
fn server_name_is_sent_for_names_only() {
    let authority = Authority::new();
    for (name, is_sent) in [("example.test", true), ("example.test.", true), ("127.0.0.1", false), ("::1", false)] {
        let client = Side::new(TlsConnector::new(authority.client()).connect(name).expect("a name"));
        let host = name.trim_end_matches('.').as_bytes();
        let is_there = client.wire.windows(host.len()).any(|part| part == host);
        assert_eq!(is_there, is_sent, "{name}");
        let with_dot = client.wire.windows(name.len()).any(|part| part == b"example.test.");
        assert!(!with_dot);
    }
}

fn bytes(text: &'static str) -> Bytes {
    Bytes::from_static(text.as_bytes())
}
