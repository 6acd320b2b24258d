//! Statistics and pings of a connection.

use super::raw::{served, serving};
use super::*;

// covers: PING-B-003
#[test]
fn hanging_program_misses_pings_and_its_call_continues() {
    let _limit = limit();
    let (config, events) = told(legacy().set(|config| {
        config.ping = Some(Duration::from_millis(20));
        config.ping_timeout = Duration::from_millis(30);
    }));
    let client = connect_with(server("while read -r line; do :; done"), config).wait().expect("hello");
    for n in 1..=3 {
        let missed = loop {
            if let ClientEvent::PingMissed { waited, in_a_row } = events.recv_timeout(BOUND).expect("a miss") {
                break (waited >= Duration::from_millis(30), in_a_row);
            }
        };
        assert_eq!(missed, (true, n));
    }
    let stats = client.stats();
    assert!(stats.pings_missed >= 3, "{stats:?}");
    assert_eq!((stats.calls, stats.calls_made), (0, 0), "a ping is no call");
    assert_eq!(client.close().wait(), Termination::Requested);
}

#[test]
fn statistics_count_the_calls_of_a_client() {
    let _limit = limit();
    let client = connect_with(server("while read -r line; do :; done"), legacy()).wait().expect("hello");
    until(|| client.stats().unsent == 0);
    let before = client.stats();
    assert_eq!((before.calls, before.channels, before.traffic.messages_in), (0, 1, 1));
    let pending = client.start(tools::call("add"));
    until(|| client.stats().unsent == 0);
    let during = client.stats();
    assert_eq!((during.calls, during.calls_made), (1, 1));
    assert_eq!(during.traffic.messages_out, before.traffic.messages_out + 1);
    until(|| client.stats().traffic.bytes_out > before.traffic.bytes_out);
    drop(pending);
    assert_eq!((client.stats().calls, client.stats().calls_made), (0, 1));
    client.close().wait();
    let after = client.stats();
    assert_eq!((after.channels, after.unsent, after.calls_made), (0, 0, 1));
}

#[test]
fn statistics_of_both_sides_agree_over_http() {
    let _limit = limit();
    let (server, _seen, client) = served();
    for _ in 0..3 {
        assert_eq!(add(&client).as_deref(), Ok("3"));
    }
    // The writer is notified a little later, and the last chunk of a stream follows its
    // response.
    until(|| server.stats().traffic.bytes_out == client.stats().traffic.bytes_in);
    let (ours, theirs) = (client.stats().traffic, server.stats());
    assert_eq!((theirs.requests, theirs.running), (3, 0));
    assert!(theirs.channels >= 1);
    until(|| client.stats().traffic.bytes_out == theirs.traffic.bytes_in);
    // The probe and three calls.
    assert_eq!((theirs.traffic.messages_in, theirs.traffic.messages_out), (4, 4));
    assert_eq!((ours.messages_in, ours.messages_out), (4, 4));
    stop(&server, Duration::ZERO);
    assert_eq!((server.stats().channels, server.stats().requests), (0, 3));
}

// covers: PING-B-003
#[test]
fn pings_over_http_are_answered_and_not_reported() {
    let _limit = limit();
    let (server, _seen, url) = serving();
    let config = ClientOptions::new().set(|config| config.ping = Some(Duration::from_millis(10)));
    let client = connect_with(url.as_str(), config).wait().expect("hello");
    until(|| client.stats().traffic.messages_in >= 4);
    let stats = client.stats();
    assert_eq!((stats.calls_made, stats.pings_missed), (0, 0));
    assert_eq!(server.stats().requests, 0, "the application is not asked");
}
