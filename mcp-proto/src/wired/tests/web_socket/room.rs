//! The common memory limit for incomplete messages on all WebSockets of a server.

use super::*;

/// Bytes of a part of a message, and the maximum number of messages of three parts within the
/// limit.
const PART: usize = 60_000;
const FIT: usize = (1 << 20) / (3 * PART);

impl ServerPeer {
    /// Opens another WebSocket.
    fn another(&mut self) -> ConnectionId {
        self.id = self.server.accept(self.now, Kind::HttpServer, Peer::default());
        self.read(HELLO.as_bytes());
        assert!(self.take().starts_with(b"HTTP/1.1 101 "));
        self.id
    }

    /// Opens this number of WebSockets, which all begin a large message. Returns those that are not
    /// closed.
    fn begin(&mut self, n: usize) -> Vec<ConnectionId> {
        let is_read_on = |peer: &mut Self| {
            let mut call = CALL.to_vec();
            call.resize(PART, b' ');
            let id = peer.another();
            for part in [frame(0x01, &call), frame(0x00, &[b' '; PART]), frame(0x00, &[b' '; PART])] {
                peer.read(&part);
            }
            let said = peer.take();
            if !said.is_empty() {
                assert_eq!(said, [0x88, 2, 0x03, 0xf5], "1013: try again later");
                assert_eq!(core::mem::take(&mut peer.closes), [Shutdown::WriteHalf]);
            }
            said.is_empty().then_some(id)
        };
        (0..n).filter_map(|_| is_read_on(self)).collect()
    }
}

// covers: B-189, WS-B-026
#[test]
fn large_messages_beyond_the_limit_close_their_websockets() {
    let mut peer = ServerPeer::server(server_config(|config| config.limits.server.max_held = 1 << 20));
    for _ in 0..3 {
        let begun = peer.begin(3 * FIT);
        assert!((2..=FIT).contains(&begun.len()), "{} of them", begun.len());
        // A small message has room.
        peer.another();
        peer.read(&frame(TEXT, CALL));
        assert_eq!(core::mem::take(&mut peer.requests).len(), 1);
        for id in &begun {
            peer.id = *id;
            peer.read(&frame(0x80, b" "));
        }
        assert_eq!(core::mem::take(&mut peer.requests).len(), begun.len(), "whoever had room is served");
    }
}

// covers: B-189
#[test]
fn end_of_a_websocket_frees_its_part_of_the_limit() {
    let mut peer = ServerPeer::server(server_config(|config| config.limits.server.max_held = 1 << 20));
    let first = peer.begin(3 * FIT);
    assert!(first.len() <= FIT);
    for id in &first {
        peer.server.handle_io(peer.now, *id, IoEvent::Closed(Closed::Reset));
    }
    peer.drain();
    assert_eq!(peer.begin(3 * FIT).len(), first.len());
}
