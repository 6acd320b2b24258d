//! TLS inside a [`Transfer`]: which events the engine gets, and when.

use super::certificates::{Authority, Leaf};
use super::*;
use crate::{Step, Transfer, TransferOutput};
use mcp_proto::exchange::{Closed, Endpoint, IoEvent, Origin, Peer, Shutdown, TlsFailureKind};
use mcp_proto::time::Instant;
use mcp_proto::wired::ConnectionOutput;

const NOW: Instant = Instant::ZERO;

/// A client as its driver has it, and the server behind it.
struct Driven {
    transfer: Transfer,
    server: Side,
    events: Vec<IoEvent>,
}

impl Driven {
    fn new() -> Self {
        let authority = Authority::new();
        let origin = Origin::new(true, "localhost", 443);
        let connector = TlsConnector::new(authority.client());
        let mut transfer = Transfer::opening(&Endpoint::Origin(origin)).with_connector(connector);
        assert!(transfer.opened(NOW, Peer::default(), false));
        transfer.act(NOW, ConnectionOutput::Secure("localhost".into()));
        let server = Side::new(TlsAcceptor::new(authority.server(&Leaf::good())).accept().expect("a configuration"));
        Self { transfer, server, events: Vec::new() }
    }

    /// Writes at most `piece` bytes at a time to the server, and carries its answers back.
    fn run(&mut self, piece: usize) {
        loop {
            let mut moved = false;
            while let Some(step) = self.transfer.step() {
                let taken = match step {
                    Step::Write(pieces) => {
                        let bytes = pieces.iter().next().expect("a piece");
                        let n = bytes.len().min(piece);
                        self.server.get(&bytes[..n]);
                        n
                    }
                    Step::Flush => 0,
                    Step::End => {
                        self.server.end();
                        0
                    }
                };
                self.transfer.wrote(Ok(taken));
                moved = true;
            }
            let answer = core::mem::take(&mut self.server.wire);
            for part in answer.chunks(piece) {
                self.transfer.read(Ok(Bytes::copy_from_slice(part)));
                moved = true;
            }
            while let Some(output) = self.transfer.poll_output(NOW) {
                let TransferOutput::Event(event) = output else { panic!("a signal") };
                self.events.push(event);
            }
            if !moved {
                return;
            }
        }
    }

    fn events(&mut self) -> Vec<IoEvent> {
        core::mem::take(&mut self.events)
    }
}

#[test]
fn engine_counts_its_own_bytes() {
    for piece in [1, 1000, usize::MAX] {
        let mut driven = Driven::new();
        driven.run(piece);
        assert_eq!(driven.events(), [IoEvent::Opened(Peer::default()), IoEvent::Secured]);
        for length in [1, 5, 50_000] {
            driven.transfer.act(NOW, ConnectionOutput::Write(alloc::vec![b'x'; length].into()));
        }
        driven.run(piece);
        let written = driven.events().into_iter().map(|event| match event {
            IoEvent::Written(n) => n,
            other => panic!("{other:?}"),
        });
        let written: Vec<_> = written.collect();
        assert_eq!(written.iter().sum::<usize>(), 50_006, "{piece}");
        assert!(piece > 1000 || written.iter().all(|n| *n <= 16 << 10), "progress is reported: {written:?}");
        assert_eq!(driven.server.read.len(), 50_006);
    }
}

// covers: TLS-B-005
#[test]
fn half_close_sends_close_notify_before_the_end() {
    let mut driven = Driven::new();
    driven.run(usize::MAX);
    driven.transfer.act(NOW, ConnectionOutput::Write(bytes("bye")));
    driven.transfer.act(NOW, ConnectionOutput::Close(Shutdown::WriteHalf));
    driven.run(usize::MAX);
    assert!(driven.server.read_closed && driven.server.failed.is_none());
    assert_eq!(driven.server.read, b"bye");
    driven.server.write(b"good bye");
    driven.server.close();
    driven.run(usize::MAX);
    let events = driven.events().split_off(3);
    assert_eq!(events, [IoEvent::Read(bytes("good bye")), IoEvent::ReadClosed, IoEvent::Closed(Closed::Eof)]);
}

// covers: TLS-C-006
#[test]
fn truncation_is_no_end() {
    let mut driven = Driven::new();
    driven.run(usize::MAX);
    driven.server.write(b"a part");
    driven.run(usize::MAX);
    driven.transfer.read(Ok(Bytes::new()));
    driven.run(usize::MAX);
    let events = driven.events().split_off(2);
    let [IoEvent::Read(read), IoEvent::Closed(Closed::Tls(why))] = &*events else { panic!("{events:?}") };
    assert_eq!((&**read, why.kind), (&b"a part"[..], TlsFailureKind::Truncated));
}

#[test]
fn alert_is_written_before_the_connection_closes() {
    let mut driven = Driven::new();
    driven.run(usize::MAX);
    driven.server.write(b"hello");
    *driven.server.wire.last_mut().expect("a record") ^= 1;
    driven.run(usize::MAX);
    assert_eq!(driven.server.failed.as_ref().expect("the alert has arrived").kind, TlsFailureKind::Refused);
    let last = driven.events().pop();
    assert!(
        matches!(&last, Some(IoEvent::Closed(Closed::Tls(why))) if why.kind == TlsFailureKind::Violation),
        "{last:?}"
    );
    assert!(driven.transfer.is_closed());
}

/// The engine hears of a failure only once the alert is written, and may write until then.
#[test]
fn bytes_of_the_engine_after_a_failure_are_dropped() {
    let mut driven = Driven::new();
    driven.run(usize::MAX);
    driven.server.write(b"hello");
    let mut record = core::mem::take(&mut driven.server.wire);
    *record.last_mut().expect("a record") ^= 1;
    driven.transfer.read(Ok(record.into()));
    driven.transfer.act(NOW, ConnectionOutput::Write("late".into()));
    driven.transfer.act(NOW, ConnectionOutput::Close(Shutdown::WriteHalf));
    driven.run(usize::MAX);
    assert!(driven.server.read.is_empty());
    assert_eq!(driven.server.failed.as_ref().expect("the alert has arrived").kind, TlsFailureKind::Refused);
    let last = driven.events().pop();
    assert!(matches!(last, Some(IoEvent::Closed(Closed::Tls(_)))), "{last:?}");
}

#[test]
fn engine_of_a_server_hears_nothing_of_tls() {
    let authority = Authority::new();
    let mut transfer = Transfer::accepted();
    transfer.accept_tls(TlsAcceptor::new(authority.server(&Leaf::good())).accept());
    let mut client = Side::new(TlsConnector::new(authority.client()).connect("localhost").expect("a name"));
    let mut events = Vec::new();
    client.write(b"GET / HTTP/1.1\r\n\r\n");
    for _ in 0..4 {
        transfer.read(Ok(core::mem::take(&mut client.wire).into()));
        while let Some(step) = transfer.step() {
            let n = match step {
                Step::Write(pieces) => {
                    let bytes = pieces.iter().next().expect("a piece");
                    client.get(&bytes);
                    bytes.len()
                }
                Step::Flush | Step::End => 0,
            };
            transfer.wrote(Ok(n));
        }
        while let Some(TransferOutput::Event(event)) = transfer.poll_output(NOW) {
            events.push(event);
        }
        if client.wire.is_empty() {
            break;
        }
    }
    assert_eq!(events, [IoEvent::Read(bytes("GET / HTTP/1.1\r\n\r\n"))]);
}

#[test]
fn name_without_a_certificate_closes_the_connection() {
    let origin = Origin::new(true, "a b", 443);
    let connector = TlsConnector::new(Authority::new().client());
    let mut transfer = Transfer::opening(&Endpoint::Origin(origin)).with_connector(connector);
    assert!(transfer.opened(NOW, Peer::default(), false));
    transfer.act(NOW, ConnectionOutput::Secure("a b".into()));
    while transfer.step().is_some() {
        transfer.wrote(Ok(0));
    }
    let _ = transfer.poll_output(NOW);
    let Some(TransferOutput::Event(IoEvent::Closed(Closed::Tls(why)))) = transfer.poll_output(NOW) else {
        panic!("it has not closed")
    };
    assert_eq!(why.kind, TlsFailureKind::WrongName);
}
