//! The timeouts of an HTTP server, and the delivery of its responses.

use super::http::{event, full, post, stream};
use super::*;
use crate::sizes::scaled;

fn pass(bench: &mut Bench, millis: u64) {
    bench.now = bench.now + Duration::from_millis(millis);
}

/// A server that holds each body back until the engine has seen the head.
fn holding(limits: &FrameLimits) -> Bench {
    let mut bench = Bench::server_within(Kind::HttpServer, limits);
    bench.connection = bench.connection.holding(true);
    bench
}

fn expecting(id: u32) -> String {
    post(id).replace("host: h", "host: h\r\nexpect: 100-continue")
}

#[test]
fn body_is_held_back_until_continue() {
    for text in [post(1), expecting(1)] {
        for cut in 0..text.len() {
            let mut bench = holding(&FrameLimits::default());
            let mut told = bench.feed(&text[..cut]);
            told.extend(bench.feed(&text[cut..]));
            assert_eq!(told, ["1 POST /mcp"], "cut at {cut}");
            let asked = text.contains("expect").then_some("> HTTP/1.1 100 Continue");
            assert_eq!(
                bench.say(Outbound::Continue),
                ["1 request 1", "1 end"].into_iter().chain(asked).collect::<Vec<_>>()
            );
            bench.all_written();
            assert_eq!(bench.say(Outbound::Continue), NOTHING, "it was asked for");
            assert_eq!(bench.say(full(200)), ["> HTTP/1.1 200 OK"]);
            bench.all_written();
            assert_eq!(bench.feed(&text), ["2 POST /mcp"], "and so is that of the next request");
        }
    }
    let mut get = holding(&FrameLimits::default());
    assert_eq!(get.feed("GET /mcp HTTP/1.1\r\nhost: h\r\n\r\n"), ["1 GET /mcp"]);
    assert_eq!(get.say(Outbound::Continue), ["1 end"], "also where there is none");
}

// covers: S3-45
#[test]
fn accepted_connection_of_lines_is_read_once_it_is_admitted() {
    let ping = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n";
    let connection = |peer, holding| {
        let mut bench = Bench::server(Kind::Lines);
        bench.connection =
            Connection::server(1, Kind::Lines, peer, &FrameLimits::default(), Instant::ZERO).holding(holding);
        assert_eq!(bench.told(), ["1 opened"]);
        bench
    };
    for (peer, holding) in [(Peer::default(), true), (Peer::unix(None), false)] {
        let mut bench = connection(peer, holding);
        assert!(bench.connection.wants_read());
        assert_eq!(bench.feed(ping), ["1 request 1"]);
        assert_eq!(bench.say(Outbound::Continue), ["diagnostic out-of-place"]);
    }
    let mut bench = connection(Peer::unix(None), true);
    assert!(!bench.connection.wants_read());
    // Bytes that a driver reads nevertheless are held.
    assert_eq!(bench.feed(ping), NOTHING);
    assert_eq!(bench.timer(), None);
    assert_eq!(bench.say(Outbound::Continue), ["1 request 1"]);
    assert!(bench.connection.wants_read());
    assert_eq!((bench.timer(), bench.feed(ping)), (None, vec!["1 request 1".to_string()]));
    let mut bench = connection(Peer::unix(None), true);
    assert_eq!(bench.feed(ping), NOTHING);
    bench.connection.abort(bench.now, ExchangeId::accepted(1, 1));
    assert_eq!(bench.told(), ["close Abort"], "unread");
    let mut bench = connection(Peer::unix(None), true);
    assert_eq!((bench.feed(ping), bench.eof()), (vec![], vec![]));
    assert_eq!(bench.closed(Closed::Reset), ["1 failed No Reset"], "unread");
}

#[test]
fn no_continue_after_a_response_to_the_head() {
    let mut bench = Bench::server(Kind::HttpServer);
    let text = expecting(1);
    bench.connection.handle_io(
        bench.now,
        IoEvent::Read(Bytes::copy_from_slice(&text.as_bytes()[..text.find('{').expect("a body")])),
    );
    let (exchange, event) = bench.connection.poll_event().expect("the head");
    assert_eq!(event_text(&event), "POST /mcp");
    bench.connection.send(bench.now, exchange, full(403));
    assert_eq!(without_unsent(bench.told()), ["> HTTP/1.1 403 Forbidden", "close WriteHalf"]);
}

#[test]
fn head_reaches_the_engine_before_continue_is_sent() {
    for (answer, said) in [(None, "> HTTP/1.1 100 Continue"), (Some(full(403)), "> HTTP/1.1 403 Forbidden")] {
        let mut bench = Bench::server(Kind::HttpServer);
        let text = expecting(1);
        let head = text.split('{').next().expect("a head");
        bench.connection.handle_io(bench.now, IoEvent::Read(Bytes::copy_from_slice(head.as_bytes())));
        let events = bench.connection.take_turn().events;
        let [(exchange, event)] = &events[..] else { panic!("{events:?}") };
        assert_eq!(event_text(event), "POST /mcp");
        assert_eq!(bench.connection.poll_output(), None);
        answer.into_iter().for_each(|answer| bench.connection.send(bench.now, *exchange, answer));
        while !bench.connection.take_turn().is_empty() {}
        assert_eq!(bench.told()[0], said);
    }
}

#[test]
fn peer_precedes_every_request() {
    let known = || {
        let mut bench = Bench::server(Kind::HttpServer);
        let peer = Peer::default().named("ann");
        bench.connection = Connection::server(1, Kind::HttpServer, peer, &FrameLimits::default(), Instant::ZERO);
        bench
    };
    let mut bench = known();
    let told = bench.feed(&format!("{}{}GET\r\n\r\n", post(1), post(2)));
    assert_eq!(told, [r#"1 from Some("ann")"#, "1 POST /mcp", "1 request 1", "1 end"]);
    assert_eq!(bench.say(full(200)), ["> HTTP/1.1 200 OK"]);
    assert_eq!(bench.all_written(), [r#"2 from Some("ann")"#, "2 POST /mcp", "2 request 2", "2 end"]);
    assert_eq!(bench.say(full(200)), ["> HTTP/1.1 200 OK"]);
    assert_eq!(bench.all_written(), ["3 reject 400"], "which is no request");
    // The peer and the head can come in one turn, or with events of other connections in between.
    let mut bench = known();
    let text = expecting(1);
    let head = text.split('{').next().expect("a head");
    bench.connection.handle_io(bench.now, IoEvent::Read(Bytes::copy_from_slice(head.as_bytes())));
    let told: Vec<_> = bench.connection.take_turn().events.iter().map(|(_, event)| event_text(event)).collect();
    assert_eq!(told, [r#"from Some("ann")"#, "POST /mcp"]);
    assert_eq!(bench.connection.poll_output(), None, "the client is not asked yet");
    // For an unknown peer, no peer is reported.
    assert_eq!(Bench::server(Kind::HttpServer).feed(&post(1)), ["1 POST /mcp", "1 request 1", "1 end"]);
}

#[test]
fn no_timer_runs_while_a_body_is_held_back() {
    let mut bench = holding(&FrameLimits::default());
    let text = expecting(1);
    let (head, body) = text.split_at(text.find('{').expect("a body"));
    bench.feed(head);
    assert_eq!(bench.timer(), None, "the client waits for us");
    bench.feed(&body[..1]);
    assert_eq!(bench.timer(), None, "whatever it sends meanwhile");
    pass(&mut bench, 3_600_000);
    bench.connection.handle_timeout(bench.now);
    assert_eq!(bench.told(), NOTHING);
    bench.send(Outbound::Continue);
    assert_eq!(bench.timer(), Some(30_000), "its time begins when it is asked");
    assert_eq!(bench.feed(&body[1..]), ["1 request 1", "1 end"]);
}

#[test]
fn unrequested_body_stops_reading_at_the_limit() {
    let limits = FrameLimits { max_read_ahead: 1_000, ..FrameLimits::default() };
    let mut bench = holding(&limits);
    let body = format!("{{\"jsonrpc\":\"2.0\",\"method\":\"{}\"}}", "m".repeat(100_000));
    let head = "POST /mcp HTTP/1.1\r\nhost: h\r\ncontent-type: application/json\r\n";
    bench.feed(&format!("{head}content-length: {}\r\n\r\n", body.len()));
    let mut pieces = body.as_bytes().chunks(100);
    while bench.connection.wants_read() {
        let piece = pieces.next().expect("the bound comes first");
        assert_eq!(bench.handle_io(IoEvent::Read(Bytes::copy_from_slice(piece))), NOTHING);
        assert!(bench.connection.conn.buffered() < 1_200);
    }
    bench.send(Outbound::Continue);
    assert!(bench.connection.wants_read());
    let told: Vec<String> =
        pieces.flat_map(|piece| bench.handle_io(IoEvent::Read(Bytes::copy_from_slice(piece)))).collect();
    assert_eq!(told, [format!("1 note {}", "m".repeat(100_000)), "1 end".into()]);
}

#[test]
fn only_changes_of_reading_are_outputs() {
    let limits = FrameLimits { max_read_ahead: 1_000, ..FrameLimits::default() };
    let mut connection = Connection::server(1, Kind::HttpServer, Peer::default(), &limits, Instant::ZERO);
    let reads = |connection: &mut Connection| {
        while connection.poll_event().is_some() {}
        let outputs = core::iter::from_fn(|| connection.poll_output());
        outputs.filter(|output| matches!(output, ConnectionOutput::Read(_))).collect::<Vec<_>>()
    };
    connection.handle_io(Instant::ZERO, IoEvent::Read(post(1).into()));
    assert_eq!(reads(&mut connection), [], "a driver reads from the start");
    let exchange = connection.exchange().expect("a request");
    connection.handle_io(Instant::ZERO, IoEvent::Read(post(2).repeat(20).into()));
    assert_eq!(reads(&mut connection), [ConnectionOutput::Read(false)]);
    assert_eq!(reads(&mut connection), []);
    connection.send(Instant::ZERO, exchange, full(200));
    assert_eq!(reads(&mut connection), [], "the response is not written");
    connection.abort(Instant::ZERO, exchange);
    assert_eq!(reads(&mut connection), [], "its end ends reading too");

    let mut reading = Connection::server(2, Kind::HttpServer, Peer::default(), &limits, Instant::ZERO);
    reading.handle_io(Instant::ZERO, IoEvent::Read(post(1).into()));
    assert_eq!(reads(&mut reading), []);
    reading.abort(Instant::ZERO, reading.exchange().expect("a request"));
    assert_eq!(reads(&mut reading), [], "its end ends reading too");
}

#[test]
fn request_refused_by_its_head_closes_in_order() {
    for text in [post(1), expecting(1)] {
        let mut bench = holding(&FrameLimits::default());
        bench.feed(&text[..text.len() - 1]);
        assert_eq!(bench.say(full(401)), ["> HTTP/1.1 401 Unauthorized", "close WriteHalf"]);
        assert_eq!(bench.feed(&post(2)), NOTHING, "read on, unparsed");
        assert!(bench.connection.wants_read());
        bench.all_written();
        assert_eq!(bench.timer(), Some(2_000));
        assert_eq!(bench.tick(), ["close Abort"]);
    }
}

#[test]
fn refused_request_that_has_arrived_leaves_the_connection_open() {
    for text in [post(1), "GET / HTTP/1.1\r\nhost: h\r\n\r\n".into()] {
        let mut bench = holding(&FrameLimits::default());
        bench.feed(&(text + &post(2)));
        assert_eq!(bench.say(full(401)), ["> HTTP/1.1 401 Unauthorized"]);
        bench.all_written();
        assert_eq!(bench.say(full(200)), ["> HTTP/1.1 200 OK"], "the next one");
        bench.all_written();
        assert_eq!(bench.timer(), Some(60_000));
        assert_eq!(bench.tick(), ["close Abort"]);
    }
}

#[test]
fn client_can_disconnect_while_its_body_is_held_back() {
    for gone in [IoEvent::ReadClosed, IoEvent::Closed(Closed::Reset)] {
        let mut bench = holding(&FrameLimits::default());
        bench.feed(&post(1));
        let told = bench.handle_io(gone);
        assert!(told[0].starts_with("1 failed No"), "{told:?}");
        assert_eq!(bench.send(Outbound::Continue), NOTHING);
    }
}

/// Responses of every form, each as its items in order.
fn answers() -> [Vec<Outbound>; 3] {
    [vec![full(200)], vec![stream(), event(), Outbound::End], vec![stream(), Outbound::End]]
}

// covers: B-167
#[test]
fn unsent_bytes_of_a_response_are_reported_to_the_last() {
    for answer in answers() {
        let mut bench = Bench::server(Kind::HttpServer);
        bench.feed(&post(1));
        answer.into_iter().for_each(|said| drop(bench.send(said)));
        assert_eq!(bench.connection.exchange(), None, "it is over");
        while bench.connection.unsent > 0 {
            let left = bench.connection.unsent - 1;
            assert_eq!(bench.written(1), [format!("1 unsent {left}")]);
        }
        assert_eq!(bench.closed(Closed::Reset), NOTHING, "it was written");
    }
}

// covers: B-167
#[test]
fn response_cut_at_any_byte_fails_once() {
    for answer in answers() {
        let lost = |written: usize, end: &dyn Fn(&mut Bench) -> Vec<String>| {
            let mut bench = Bench::server(Kind::HttpServer);
            bench.feed(&post(1));
            answer.iter().for_each(|said| drop(bench.send(said.clone())));
            let all = bench.connection.unsent;
            bench.written(written);
            let mut told = without_unsent(end(&mut bench));
            told.extend(bench.closed(Closed::Aborted));
            assert!(bench.connection.is_closed());
            (all, told)
        };
        let (all, _) = lost(0, &|_| Vec::new());
        for written in 0..all {
            assert_eq!(lost(written, &|bench| bench.closed(Closed::Reset)).1, ["1 failed Maybe Reset"], "{written}");
            assert_eq!(lost(written, &Bench::tick).1, ["1 failed Maybe Timeout", "close Abort"], "{written}");
        }
        // The end of the input is not the end of the connection.
        assert_eq!(lost(0, &Bench::eof).1, ["close WriteHalf", "1 failed Maybe Aborted"]);
        assert_eq!(lost(all, &|bench| bench.closed(Closed::Reset)).1, NOTHING);
    }
}

#[test]
fn response_can_be_aborted_until_it_is_written() {
    let mut bench = Bench::server(Kind::HttpServer);
    bench.feed(&post(1));
    let exchange = bench.connection.exchange().expect("it is on");
    bench.send(full(200));
    bench.connection.abort(bench.now, exchange);
    assert_eq!(bench.told(), ["close Abort"]);
    assert_eq!(bench.closed(Closed::Aborted), NOTHING);

    let mut written = Bench::server(Kind::HttpServer);
    written.feed(&post(1));
    written.send(full(200));
    written.all_written();
    written.connection.abort(written.now, exchange);
    assert_eq!(written.told(), NOTHING, "it is over");
}

// covers: B-189
#[test]
fn each_wait_for_a_client_has_its_timeout() {
    let mut silent = Bench::server(Kind::HttpServer);
    assert_eq!(silent.timer(), Some(10_000), "the first head from the accept");
    assert_eq!(silent.tick(), ["close Abort"], "nothing was asked, so nothing is answered");

    let mut idle = Bench::server(Kind::HttpServer);
    idle.feed(&post(1));
    idle.send(full(200));
    idle.all_written();
    assert_eq!(idle.timer(), Some(60_000), "another request");
    pass(&mut idle, 50_000);
    for line in ["\r\n", "\r", "\n"] {
        idle.feed(line);
        assert_eq!(idle.timer(), Some(10_000), "which an empty line does not begin, nor half of one");
    }
    assert_eq!(idle.tick(), ["close Abort"]);

    let mut lingering = Bench::server(Kind::HttpServer);
    lingering.feed("x\n");
    lingering.send(full(400));
    lingering.all_written();
    for _ in 0..4 {
        pass(&mut lingering, 400);
        lingering.feed(&post(1));
    }
    assert_eq!(lingering.timer(), Some(400), "what comes after a refusal extends nothing");
    assert_eq!(lingering.tick(), ["close Abort"]);
}

// covers: B-189
#[test]
fn incomplete_request_is_rejected_with_408() {
    let text = post(1);
    let body = text.find('{').expect("a body");
    for cut in 1..text.len() {
        let mut bench = Bench::server(Kind::HttpServer);
        let told = bench.feed(&text[..cut]);
        assert_eq!(told.is_empty(), cut < body, "cut at {cut}");
        assert_eq!(bench.timer(), Some(if cut < body { 10_000 } else { 30_000 }));
        assert_eq!(bench.tick(), ["1 reject 408"], "cut at {cut}");
        assert_eq!(bench.timer(), None, "the engine has to answer");
        assert_eq!(bench.feed(&text[cut..]), NOTHING, "too late");
        assert_eq!(bench.say(full(408)), ["> HTTP/1.1 408 Request Timeout", "close WriteHalf"]);
        bench.all_written();
        assert_eq!(bench.tick(), ["close Abort"]);
    }
    // The second request has its own exchange.
    let mut second = Bench::server(Kind::HttpServer);
    second.feed(&text);
    second.send(full(200));
    second.all_written();
    second.feed(&text[..5]);
    assert_eq!(second.tick(), ["2 reject 408"]);
    // After a part of the response a 408 cannot be sent. The engine handles that case.
    let mut streaming = Bench::server(Kind::HttpServer);
    streaming.feed(&text[..text.len() - 1]);
    streaming.say(stream());
    assert_eq!(streaming.tick(), ["1 reject 408"]);
}

// covers: B-189
#[test]
fn slow_head_has_the_timeout_of_a_stalled_head() {
    let mut bench = Bench::server(Kind::HttpServer);
    let text = post(1);
    for byte in 0..9 {
        bench.feed(&text[byte..=byte]);
        pass(&mut bench, 1_000);
    }
    assert_eq!(bench.timer(), Some(1_000));
    assert_eq!(bench.tick(), ["1 reject 408"]);
}

// covers: B-189
#[test]
fn slow_body_has_the_time_that_its_rate_earns() {
    let head = "POST /mcp HTTP/1.1\r\nhost: h\r\ncontent-type: application/json\r\ncontent-length: 1000000\r\n\r\n";
    let sent = |piece: usize, limits: &FrameLimits| {
        let mut bench = Bench::server_within(Kind::HttpServer, limits);
        bench.feed(head);
        let mut told = Vec::new();
        for second in 1..=900 {
            bench.now = Instant::from_millis(second * 1_000);
            bench.connection.handle_timeout(bench.now);
            told.extend(bench.told());
            if !told.is_empty() {
                return (second, told);
            }
            bench.feed(&" ".repeat(piece));
        }
        (0, told)
    };
    let limits = FrameLimits::default();
    let late = vec![String::from("1 reject 408")];
    assert_eq!(sent(1, &limits), (31, late.clone()), "a byte each second");
    assert_eq!(sent(512, &limits), (59, late.clone()), "half the rate, twice the time");
    assert_eq!(sent(1_024, &limits), (0, Vec::new()));
    let strict = FrameLimits { min_rate: 10_000, ..limits.clone() };
    assert_eq!(sent(1_024, &strict), (34, late));
    let lenient = FrameLimits { min_rate: 0, ..limits };
    assert_eq!(sent(1, &lenient), (0, Vec::new()));

    let mut standing = Bench::server(Kind::HttpServer);
    standing.feed(head);
    standing.feed(&" ".repeat(900_000));
    assert_eq!(standing.timer(), Some(30_000), "whatever came before, it may not stand still for longer");
    pass(&mut standing, 10_000);
    standing.feed(&" ".repeat(5 << 10));
    assert_eq!(standing.timer(), Some(25_000), "five of the ten seconds are made good");
    standing.feed(&" ".repeat(90_000));
    assert_eq!(standing.timer(), Some(30_000), "and now all of them");
    assert_eq!(standing.tick(), ["1 reject 408"]);
}

/// A client that is fast at first, and then transfers one byte every `every` ms. Returns the time
/// from then until its connection is closed.
fn slowed(body: bool, every: u64) -> u128 {
    let mut bench = Bench::server(Kind::HttpServer);
    let goes = |bench: &mut Bench, n: usize| if body { bench.feed(&" ".repeat(n)) } else { bench.written(n) };
    if body {
        let head = "POST /mcp HTTP/1.1\r\nhost: h\r\ncontent-type: application/json\r\n";
        bench.feed(&format!("{head}content-length: {}\r\n\r\n", 4 << 20));
    } else {
        bench.feed(&post(1));
        let head = ResponseHead { status: 200, headers: Headers::new() };
        bench.send(Outbound::Response { head, body: Body::Full(vec![b'1'; 4 << 20].into()) });
    }
    pass(&mut bench, 1_000);
    goes(&mut bench, (4 << 20) - 100_000);
    let slow = bench.now;
    for _ in 0..10_000 {
        let next = bench.now + Duration::from_millis(every);
        let at = bench.connection.poll_timeout().expect("it is timed");
        if at <= next {
            let told = bench.tick();
            let outcome = if body { "1 reject 408" } else { "1 failed Maybe Timeout" };
            assert!(told.iter().any(|told| told == outcome), "{told:?}");
            return at.since(slow).as_millis();
        }
        bench.now = next;
        goes(&mut bench, 1);
    }
    panic!("a trickle holds the connection");
}

// covers: B-189
#[test]
fn early_speed_earns_no_time_for_later_bytes() {
    for body in [true, false] {
        // The extra milliseconds are earned by the trickled bytes.
        assert_eq!(slowed(body, 29_000), 30_000);
        assert_eq!(slowed(body, 1_000), 30_029);
        assert_eq!(slowed(body, 10), 33_246);
    }
}

#[test]
fn out_of_place_item_is_only_a_diagnostic() {
    let event = || Outbound::Event { event: None, id: None, retry: None, data: "{}".into() };
    let stream =
        || Outbound::Response { head: ResponseHead { status: 200, headers: Headers::new() }, body: Body::Stream };
    let mut bench = Bench::server(Kind::HttpServer);
    bench.feed(&post(1));
    let refused = ["1 unsent 0", "diagnostic out-of-place"];
    assert_eq!(bench.send(event()), refused);
    assert_eq!(bench.send(Outbound::End), refused, "the exchange is not over");
    assert_eq!(bench.say(stream()).len(), 1);
    let unsent = bench.connection.unsent();
    assert_eq!(bench.send(stream()), [format!("1 unsent {unsent}").as_str(), "diagnostic out-of-place"]);
    assert_eq!(bench.say(event()).len(), 1);
    bench.all_written();
    assert_eq!(bench.say(Outbound::End).len(), 1);
    assert!(bench.connection.exchange().is_none());
}

// covers: B-189
#[test]
fn chunk_framing_earns_no_time_for_a_request_body() {
    let head = "POST /mcp HTTP/1.1\r\nhost: h\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n";
    let given_up = |each: &str, min_rate: usize| {
        let mut bench = Bench::server_within(Kind::HttpServer, &FrameLimits { min_rate, ..FrameLimits::default() });
        bench.feed(head);
        for second in 1..=100 {
            pass(&mut bench, 1_000);
            bench.connection.handle_timeout(bench.now);
            if bench.told() != NOTHING {
                return second;
            }
            bench.feed(each);
        }
        0
    };
    // More than 1 KiB per second in total, with only 50 bytes of content.
    let framing = "0000000000000001\r\n \r\n".repeat(50);
    assert_eq!(given_up(&framing, 1 << 10), 32);
    let padded = format!("1;{}\r\n \r\n", "x".repeat(100));
    assert_eq!(given_up(&padded, 1 << 10), 31);
    assert_eq!(given_up(&padded, 0), 0, "without a rate any content will do");
    let half = format!("1;{}", "x".repeat(20));
    assert_eq!(given_up(&half, 0), 30, "but framing alone stands still");
}

#[test]
fn client_at_the_minimum_rate_never_times_out() {
    let text = "POST /mcp HTTP/1.1\r\nhost: h\r\ncontent-type: application/json\r\ncontent-length: 4194304\r\n\r\n";
    for (min_rate, every, n) in
        [(1_000, 1, 1), (1 << 10, 250, 256), (1 << 10, 1_000, 1 << 10), (1 << 10, 29_000, 29 << 10)]
    {
        let limits = FrameLimits { min_rate, ..FrameLimits::default() };
        let mut bench = Bench::server_within(Kind::HttpServer, &limits);
        bench.feed(text);
        for _ in 0..140 {
            pass(&mut bench, every);
            bench.connection.handle_timeout(bench.now);
            assert_eq!(bench.feed(&" ".repeat(n)), NOTHING);
            assert_eq!(bench.timer(), Some(30_000), "{n} bytes every {every} ms");
        }
    }
}

#[test]
fn earned_time_is_independent_of_pieces() {
    let head = "POST /mcp HTTP/1.1\r\nhost: h\r\ncontent-type: application/json\r\ncontent-length: 1000000\r\n\r\n";
    let deadline = |n: usize, piece: usize, rate: usize| {
        let limits = FrameLimits { min_rate: rate, ..FrameLimits::default() };
        let mut bench = Bench::server_within(Kind::HttpServer, &limits);
        bench.feed(head);
        pass(&mut bench, 20_000);
        (0..n / piece).for_each(|_| drop(bench.feed(&" ".repeat(piece))));
        bench.connection.poll_timeout()
    };
    for rate in [0, 7, 1_000, 1 << 10, 999_983] {
        let whole = deadline(9_600, 9_600, rate);
        for piece in [1, 2, 3, 100, 4_800] {
            assert_eq!(deadline(9_600, piece, rate), whole, "{rate} a second, in pieces of {piece}");
        }
    }
}

// covers: B-189
#[test]
fn unread_response_closes_its_connection() {
    let large = || {
        let head = ResponseHead { status: 200, headers: Headers::new() };
        Outbound::Response { head, body: Body::Full(vec![b'1'; 1_000_000].into()) }
    };
    let close = || post(1).replace("host: h", "host: h\r\nconnection: close");
    for text in [post(1), close()] {
        let begun = || {
            let mut bench = Bench::server(Kind::HttpServer);
            bench.feed(&text);
            bench.send(large());
            bench
        };
        let mut never = begun();
        assert_eq!(never.timer(), Some(30_000));
        assert_eq!(never.tick(), ["1 failed Maybe Timeout", "close Abort"]);

        let mut stalled = begun();
        pass(&mut stalled, 20_000);
        stalled.written(500_000);
        assert_eq!(stalled.timer(), Some(30_000), "some of it was taken");
        assert_eq!(stalled.tick(), ["1 failed Maybe Timeout", "close Abort"]);

        let mut trickling = begun();
        for second in 1..=30 {
            trickling.now = Instant::from_millis(second * 1_000);
            trickling.written(1);
        }
        assert_eq!(trickling.timer(), Some(29), "a byte each second earns next to nothing");
        assert_eq!(without_unsent(trickling.tick()), ["1 failed Maybe Timeout", "close Abort"]);
    }
}

/// Returns the outputs of a server for these bytes, in pieces. Each request is answered at once,
/// and each response is written.
fn served(bytes: &[u8], size: usize, limits: &FrameLimits) -> (Vec<String>, usize) {
    let mut bench = Bench::server_within(Kind::HttpServer, limits);
    let (mut told, mut held, mut rest) = (Vec::new(), 0, bytes.chunks(size));
    let mut events = without_unsent(bench.told());
    loop {
        let asked = events.iter().any(|event| event.ends_with(" end"));
        let refused = events.iter().any(|event| event.contains(" reject "));
        told.append(&mut events);
        held = held.max(bench.connection.conn.buffered());
        if asked || refused {
            told.extend(bench.say(full(if refused { 400 } else { 200 })));
            events = bench.all_written();
        } else if let Some(piece) = bench.connection.wants_read().then(|| rest.next()).flatten() {
            events = without_unsent(bench.handle_io(IoEvent::Read(Bytes::copy_from_slice(piece))));
        } else {
            return (told, held);
        }
    }
}

#[test]
fn many_requests_in_one_write_are_answered_in_order() {
    const MANY: u32 = scaled(10_000) as u32;
    let all: String = (1..=MANY).map(post).collect();
    let limits = FrameLimits { max_read_ahead: 10_000, ..FrameLimits::default() };
    for size in [all.len(), 4_096] {
        let (told, held) = served(all.as_bytes(), size, &limits);
        let expected = (1..=MANY).flat_map(|n| {
            [format!("{n} POST /mcp"), format!("{n} request {n}"), format!("{n} end"), "> HTTP/1.1 200 OK".into()]
        });
        assert!(told.iter().eq(expected.collect::<Vec<_>>().iter()));
        assert!(held < size + 20_000, "{held} bytes are held");
    }
}

#[test]
fn garbage_after_a_request_ends_the_reading() {
    for garbage in
        ["\0\n", "hello\r\n\r\n", "GET / HTTP/1.1\r\n\r\n", "POST / HTTP/1.1\r\nhost: h\r\nhost: h\r\n\r\n", "\n"]
    {
        let bytes = format!("{}{garbage}{}", post(1), post(2));
        for size in [bytes.len(), 7, 1] {
            let (told, _) = served(bytes.as_bytes(), size, &FrameLimits::default());
            let expected = [
                "1 POST /mcp",
                "1 request 1",
                "1 end",
                "> HTTP/1.1 200 OK",
                "2 reject 400",
                "> HTTP/1.1 400 Bad Request",
                "close WriteHalf",
            ];
            assert_eq!(told, expected, "{garbage:?} in pieces of {size}");
        }
    }
}

#[test]
fn request_after_an_open_stream_is_held_as_bytes() {
    let limits = FrameLimits { max_read_ahead: 1_000, ..FrameLimits::default() };
    let mut bench = Bench::server_within(Kind::HttpServer, &limits);
    bench.feed(&format!("{}{}", post(1), post(2)));
    assert_eq!(bench.say(stream()), ["> HTTP/1.1 200 OK"]);
    bench.all_written();
    for n in 3..100 {
        if bench.connection.wants_read() {
            assert_eq!(bench.feed(&post(n)), NOTHING);
        }
        bench.send(event());
        assert_eq!(bench.all_written(), NOTHING, "the stream goes on");
        assert!(bench.connection.conn.buffered() < 2_000, "and what waits stays bounded");
    }
    assert!(!bench.connection.wants_read());
    bench.send(Outbound::End);
    assert_eq!(bench.all_written(), ["2 POST /mcp", "2 request 2", "2 end"]);
}
