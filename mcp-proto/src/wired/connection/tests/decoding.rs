//! A response that becomes much larger by its content coding.

use super::super::timers::{DECODED_AT_ONCE, PAUSE};
use super::*;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::Write;

/// Returns a connection that has sent a GET.
fn asked() -> Connection {
    let mut connection = Connection::client(Kind::HttpClient, false, &FrameLimits::default(), Instant::ZERO);
    connection.begin(ExchangeId(7));
    connection.handle_io(Instant::ZERO, IoEvent::Opened(Peer::default()));
    let head = RequestHead { method: "GET".into(), target: "/".into(), headers: Headers::new().with("host", "h") };
    connection.send(Instant::ZERO, ExchangeId(7), Outbound::Request { head, body: Bytes::new() });
    connection
}

/// Returns an event stream of this many comments of twelve bytes.
fn comments(count: usize) -> Bytes {
    let mut coded = GzEncoder::new(Vec::new(), Compression::fast());
    coded.write_all(&b":ccccccccc\n\n".repeat(count)).unwrap();
    let coded = coded.finish().unwrap();
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-encoding: gzip\r\n";
    let length = coded.len();
    [format!("{head}content-length: {length}\r\n\r\n").as_bytes(), &coded].concat().into()
}

fn events(connection: &mut Connection) -> Vec<ExchangeEvent> {
    core::iter::from_fn(|| connection.poll_event()).map(|(_, event)| event).collect()
}

#[test]
fn large_expansion_of_a_few_bytes_has_pauses() {
    const COUNT: usize = DECODED_AT_ONCE as usize / 4;
    for ends in [false, true] {
        let (mut connection, mut now) = (asked(), Instant::ZERO);
        events(&mut connection);
        connection.handle_io(now, IoEvent::Read(comments(COUNT)));
        let (mut all, mut pauses) = (events(&mut connection), 0);
        assert!(connection.pauses());
        if ends {
            // Like a timeout, it begins another part.
            pauses += 1;
            connection.handle_io(now, IoEvent::Closed(Closed::Eof));
        }
        loop {
            let some = events(&mut connection);
            assert!(some.len() <= (DECODED_AT_ONCE as usize + (32 << 10)) / 12 + 2, "{}", some.len());
            all.extend(some);
            let Some(at) = connection.poll_timeout().filter(|at| *at <= now + PAUSE) else { break };
            assert!(!connection.wants_read() && at == now + PAUSE);
            // A timeout that comes too early changes nothing but the pause.
            pauses += 1;
            now = at;
            connection.handle_timeout(now);
        }
        assert_eq!(pauses, 3, "{ends}");
        let is_comment = |event: &&ExchangeEvent| matches!(event, ExchangeEvent::Inbound(Inbound::Comment));
        assert_eq!(all.iter().filter(is_comment).count(), COUNT);
        assert_eq!(all.last(), Some(&ExchangeEvent::Inbound(Inbound::End)));
        assert_eq!(connection.exchange(), None);
    }
}

#[test]
fn small_expansion_has_no_pause() {
    let mut connection = asked();
    events(&mut connection);
    connection.handle_io(Instant::ZERO, IoEvent::Read(comments(1000)));
    assert_eq!(events(&mut connection).len(), 1002);
    assert_eq!(connection.exchange(), None);
    assert!(connection.poll_timeout().is_some_and(|at| at > Instant::ZERO + PAUSE));
}
