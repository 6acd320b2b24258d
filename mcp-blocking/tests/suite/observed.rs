//! Statistics and pings of a connection.

use crate::common::{BOUND, bounded, legacy, server, until};
use mcp_blocking::{connect_with, tools};
use mcp_proto::client::{Event, Termination};
use std::sync::mpsc;
use std::time::Duration;

// covers: PING-B-003
#[test]
fn hanging_program_misses_pings_and_its_call_continues() {
    bounded(|| {
        let (told, events) = mpsc::channel();
        let config = legacy().on_event(move |event| drop(told.send(event))).set(|config| {
            config.ping = Some(Duration::from_millis(20));
            config.ping_timeout = Duration::from_millis(30);
        });
        let client = connect_with(server("while read -r line; do :; done"), config).expect("hello");
        for n in 1..=3 {
            let missed = loop {
                if let Event::PingMissed { waited, in_a_row } = events.recv_timeout(BOUND).expect("a miss") {
                    break (waited >= Duration::from_millis(30), in_a_row);
                }
            };
            assert_eq!(missed, (true, n));
        }
        let stats = client.stats();
        assert!(stats.pings_missed >= 3, "{stats:?}");
        assert_eq!((stats.calls, stats.calls_made), (0, 0), "a ping is no call");
        assert_eq!(client.close(), Termination::Requested);
    });
}

#[test]
fn statistics_count_the_calls_of_a_client() {
    bounded(|| {
        let client = connect_with(server("while read -r line; do :; done"), legacy()).expect("hello");
        let before = client.stats();
        assert_eq!((before.calls, before.channels, before.traffic.messages_in), (0, 1, 1));
        let pending = client.start(tools::call("add"));
        until(|| client.stats().unsent == 0);
        let during = client.stats();
        assert_eq!((during.calls, during.calls_made), (1, 1));
        assert_eq!(during.traffic.messages_out, before.traffic.messages_out + 1);
        assert!(during.traffic.bytes_out > before.traffic.bytes_out);
        drop(pending);
        assert_eq!((client.stats().calls, client.stats().calls_made), (0, 1));
        client.close();
        let after = client.stats();
        assert_eq!((after.channels, after.unsent, after.calls_made), (0, 0, 1));
    });
}

#[cfg(feature = "http")]
#[test]
fn statistics_of_both_sides_agree_over_http() {
    bounded(|| {
        let (router, _seen) = crate::own::router();
        let server = mcp_blocking::serve_http(router, "127.0.0.1:0").expect("listens");
        let url = format!("http://{}/mcp", server.local_addr().expect("an address"));
        let client = mcp_blocking::connect(url.as_str()).expect("hello");
        for _ in 0..3 {
            client.call(tools::call("add").arguments(&crate::own::Add { a: 1, b: 2 })).expect("a sum");
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
        server.stop(Duration::ZERO);
        assert_eq!((server.stats().channels, server.stats().requests), (0, 3));
    });
}

// covers: PING-B-003
#[cfg(feature = "http")]
#[test]
fn pings_over_http_are_answered_and_not_reported() {
    bounded(|| {
        let (router, _seen) = crate::own::router();
        let server = mcp_blocking::serve_http(router, "127.0.0.1:0").expect("listens");
        let url = format!("http://{}/mcp", server.local_addr().expect("an address"));
        let config = mcp_blocking::ClientOptions::new().set(|config| config.ping = Some(Duration::from_millis(10)));
        let client = connect_with(url.as_str(), config).expect("hello");
        until(|| client.stats().traffic.messages_in >= 4);
        let stats = client.stats();
        assert_eq!((stats.calls_made, stats.pings_missed), (0, 0));
        assert_eq!(server.stats().requests, 0, "the application is not asked");
    });
}
