//! The timeouts of an HTTP client.

use super::http::{begun, request, response};
use super::*;

const STREAM: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";

/// A client with an unwritten request, and with a timeout for the head of the response.
fn asking() -> Bench {
    let limits = FrameLimits { response_timeout: Some(Duration::from_secs(5)), ..FrameLimits::default() };
    let mut bench = Bench::client_within(Kind::HttpClient, false, &limits);
    bench.send(request());
    bench
}

fn asked() -> Bench {
    let mut bench = asking();
    bench.open();
    bench.all_written();
    bench
}

fn pass(bench: &mut Bench, millis: u64) {
    bench.now = bench.now + Duration::from_millis(millis);
}

// covers: B-164
#[test]
fn each_client_wait_has_its_timer() {
    let mut bench = asking();
    assert_eq!(bench.timer(), Some(10_000), "to connect");
    pass(&mut bench, 4_000);
    bench.open();
    assert_eq!(bench.timer(), Some(30_000), "until some of the request is taken");
    pass(&mut bench, 20_000);
    bench.written(1);
    assert_eq!(bench.timer(), Some(30_000), "some of it was");
    pass(&mut bench, 20_000);
    bench.all_written();
    assert_eq!(bench.timer(), Some(5_000), "until the head is there");
    let text = response(1);
    let (head, body) = text.split_at(text.find('{').expect("a body"));
    pass(&mut bench, 3_000);
    bench.feed(&head[..9]);
    assert_eq!(bench.timer(), Some(2_000), "a part of the head extends nothing");
    bench.feed(&head[9..]);
    assert_eq!(bench.timer(), Some(30_000), "between two parts of the body");
    for byte in 0..body.len() - 1 {
        pass(&mut bench, 29_000);
        bench.feed(&body[byte..=byte]);
        assert_eq!(bench.timer(), Some(30_000));
    }
    assert_eq!(bench.feed(&body[body.len() - 1..]), ["7 result 1", "7 end"]);
    assert_eq!(bench.timer(), Some(60_000), "idle");
}

// covers: B-164
#[test]
fn unread_request_times_out() {
    let mut bench = Bench::client(Kind::HttpClient, false);
    bench.open();
    bench.send(request());
    assert_eq!(bench.timer(), Some(30_000));
    assert_eq!(bench.tick(), ["7 failed Maybe Timeout", "close Abort"]);
    assert!(!bench.connection.is_idle());

    let mut reused = begun();
    reused.feed(&response(1));
    reused.connection.begin(ExchangeId(8));
    reused.send(request());
    assert_eq!(reused.tick(), ["8 failed Maybe Timeout", "close Abort"], "an idle connection may be half open");
}

// covers: B-164
#[test]
fn missing_head_times_out_only_with_a_response_timeout() {
    assert_eq!(begun().timer(), None, "a call has a time of its own");
    assert_eq!(asked().tick(), ["7 failed Maybe Timeout", "close Abort"]);

    let mut interim = asked();
    pass(&mut interim, 4_000);
    assert_eq!(interim.feed("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 2"), NOTHING);
    assert_eq!(interim.timer(), Some(1_000), "an interim response is no answer");
    assert_eq!(interim.tick(), ["7 failed Maybe Timeout", "close Abort"]);
}

// covers: B-164
#[test]
fn stalled_body_of_any_type_fails_its_exchange() {
    for head in [
        "content-type: application/json\r\ncontent-length: 100",
        "content-type: application/json\r\ntransfer-encoding: chunked",
        "content-type: text/html\r\ncontent-length: 100",
        "content-type: text/html",
        "content-length: 1",
    ] {
        let mut bench = begun();
        assert_eq!(bench.feed(&format!("HTTP/1.1 200 OK\r\n{head}\r\n\r\n")), ["7 200"]);
        assert_eq!(bench.timer(), Some(30_000), "{head}");
        assert_eq!(bench.tick(), ["7 failed Maybe Timeout", "close Abort"], "{head}");
    }
}

// covers: B-164
#[test]
fn chunk_framing_earns_no_time_for_a_response_body() {
    let mut bench = begun();
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n";
    assert_eq!(bench.feed(head), ["7 200"]);
    for part in ["1;", "aaaa", "\r\n"] {
        pass(&mut bench, 1_000);
        assert_eq!(bench.feed(part), NOTHING);
    }
    assert_eq!(bench.timer(), Some(27_000));
    bench.feed("1");
    assert_eq!(bench.timer(), Some(30_000), "content");
    pass(&mut bench, 1_000);
    bench.feed("\r\n0\r\nx: y\r\n");
    assert_eq!(bench.timer(), Some(29_000), "nor does a trailer");
    assert_eq!(bench.tick(), ["7 failed Maybe Timeout", "close Abort"]);
}

// covers: B-164
#[test]
fn idle_event_stream_has_no_timer() {
    let mut bench = asked();
    assert_eq!(bench.feed(STREAM), ["7 200"]);
    assert!(bench.connection.is_streaming());
    assert_eq!(bench.timer(), None);
    pass(&mut bench, 3_600_000);
    bench.connection.handle_timeout(bench.now);
    assert_eq!(bench.told(), NOTHING);
    assert_eq!(bench.feed("data: {\"jsonrpc\":\"2.0\",\"method\":\"m\"}\n\n"), ["7 event"]);
    assert_eq!((bench.timer(), bench.connection.is_streaming()), (None, true));
    assert_eq!(bench.eof(), ["7 end", "close Abort"]);
    assert!(!bench.connection.is_streaming());
}

#[test]
fn early_response_has_its_own_timeout() {
    for (head, timer) in [("HTTP/1.1 413 Too Large\r\ncontent-length: 1\r\n\r\n", Some(30_000)), (STREAM, None)] {
        let mut bench = asking();
        bench.open();
        pass(&mut bench, 10_000);
        bench.feed(head);
        assert_eq!(bench.timer(), timer);
        bench.written(1);
        assert_eq!(bench.timer(), timer, "what is taken of the request changes nothing any more");
    }
}

#[test]
fn response_before_the_tick_wins_over_the_timer() {
    let mut bench = asked();
    pass(&mut bench, 5_000);
    assert_eq!(bench.feed(&response(1)), ["7 200", "7 result 1", "7 end"]);
    bench.connection.handle_timeout(bench.now);
    assert_eq!(bench.told(), NOTHING);
    assert!(bench.connection.is_idle());
}
