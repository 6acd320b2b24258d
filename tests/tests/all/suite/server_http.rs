//! HTTP servers, with raw bytes: limits, hosts, streams of another listener, and busy machines.

use super::raw::{
    PING, addition, answer, dial, large, limited, numbered, older, open_session, read_message, read_until, rest, say,
    serving, sum,
};
use super::*;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::process::Stdio;
use std::thread;

// covers: S2-19
#[test]
fn server_keeps_the_connection_and_responds_in_order() {
    let _limit = limit();
    let (server, _seen, _url) = serving();
    let mut stream = dial(&server);
    let mut answers = BufReader::new(stream.try_clone().expect("a clone"));
    for id in 1..=2 {
        write!(stream, "{}", numbered(id, "add", r#"{"a":1,"b":2}"#, "")).expect("written");
        let (head, body) = read_message(&mut answers).expect("an answer");
        assert!(head.starts_with("http/1.1 200") && head.contains("content-type: application/json"), "{head}");
        assert!(body.contains(&format!(r#""id":{id}"#)) && body.contains(r#""text":"3""#), "{body}");
    }
    // Two at once: the second is held until the first is answered.
    let (first, second) = (numbered(3, "count", r#"{"to":3}"#, ""), numbered(4, "add", r#"{"a":2,"b":2}"#, ""));
    write!(stream, "{first}{second}").expect("written");
    let (head, _) = read_message(&mut answers).expect("an answer");
    assert!(head.contains("content-type: text/event-stream"), "{head}");
    let mut stream = String::new();
    while !stream.ends_with("\n0\r\n\r\n") {
        assert!(answers.read_line(&mut stream).expect("readable") > 0, "{stream}");
    }
    assert!(stream.contains(r#""progress":1"#) && stream.contains(r#""id":3"#), "{stream}");
    assert!(!EVERY_PROGRESS || stream.matches("notifications/progress").count() == 3, "{stream}");
    let (_, body) = read_message(&mut answers).expect("an answer");
    assert!(body.contains(r#""id":4"#) && body.contains(r#""text":"4""#), "{body}");
}

// covers: B-189
#[test]
fn connection_beyond_the_limit_is_refused_with_a_response() {
    let _limit = limit();
    let (server, _seen) = limited(|config| config.limits.server.max_exchanges = 2);
    let (mut first, mut second) = (dial(&server), dial(&server));
    sum(&mut first);
    sum(&mut second);
    for _ in 0..200 {
        let mut third = dial(&server);
        // Its request is not read, but it must still receive the response.
        say(&mut third, &addition());
        let told = rest(&mut third);
        assert!(told.starts_with("HTTP/1.1 503") && told.to_lowercase().contains("retry-after:"), "{told}");
    }
    sum(&mut first);
    drop(second);
    until(|| server.stats().channels == 1);
    sum(&mut dial(&server));
}

// covers: B-075, B-189, B-174
#[test]
fn silent_clients_beyond_the_limit_delay_no_other_client() {
    let _limit = limit();
    let (server, _seen) = limited(|config| {
        config.limits.server.max_exchanges = 1;
        config.limits.frame.linger_timeout = Duration::from_millis(50);
    });
    let mut first = dial(&server);
    sum(&mut first);
    let mut silent: Vec<_> = (0..100).map(|_| dial(&server)).collect();
    sum(&mut first);
    let mut told = 0;
    for stream in &mut silent {
        stream.set_read_timeout(Some(BOUND)).expect("a timeout");
        let mut said = Vec::new();
        let ended = stream.read_to_end(&mut said);
        // A connection that exceeds the limit for responses as well is closed without one, and
        // possibly reset.
        let reset = ended.as_ref().is_err_and(|e| e.kind() == std::io::ErrorKind::ConnectionReset);
        assert!(ended.is_ok() || reset, "{ended:?}");
        assert!(said.is_empty() || said.starts_with(b"HTTP/1.1 503 "), "{}", String::from_utf8_lossy(&said));
        told += usize::from(!said.is_empty());
    }
    assert!(told > 0, "none of them was told");
    assert_eq!(server.stats().channels, 1);
    sum(&mut first);
}

// covers: HTTP-S-002, B-181, B-141
#[test]
fn only_named_hosts_are_served_on_every_address() {
    let _limit = limit();
    let named = Hosts::Only(vec!["mcp.example".into()]);
    for (hosts, served, foreign) in [(Hosts::Loopback, "localhost", "mcp.example"), (named, "mcp.example", "localhost")]
    {
        let (router, _seen) = router();
        let server = serve_http(router.configure(|config| config.hosts = hosts), "0.0.0.0:0").wait().expect("listens");
        for (host, status) in [(served, "HTTP/1.1 200"), (foreign, "HTTP/1.1 403")] {
            let mut stream =
                TcpStream::connect(("127.0.0.1", server.local_addr().expect("an address").port())).expect("connected");
            say(&mut stream, &addition().replace("Host: localhost", &format!("Host: {host}")));
            let told = answer(&mut stream);
            assert!(told.starts_with(status), "{host}: {told}");
        }
        // No further connection could wake it.
        stop(&server, Duration::ZERO);
    }
}

// covers: B-180
#[test]
fn client_on_another_address_is_refused_by_default() {
    let _limit = limit();
    let server = serve_http(router().0, "0.0.0.0:0").wait().expect("listens");
    let port = server.local_addr().expect("an address").port();
    let mut statuses = vec![("127.0.0.1".parse().expect("an address"), "HTTP/1.1 200")];
    // No packet is sent: the system only selects the source address.
    let route = std::net::UdpSocket::bind("0.0.0.0:0").expect("a socket");
    if route.connect("192.0.2.1:9").is_ok() {
        let own = route.local_addr().expect("an address").ip();
        statuses.extend((!own.is_loopback()).then_some((own, "HTTP/1.1 403")));
    }
    for (ip, status) in statuses {
        let mut stream = TcpStream::connect((ip, port)).expect("connected");
        say(&mut stream, &addition());
        let told = answer(&mut stream);
        assert!(told.starts_with(status), "{ip}: {told}");
    }
}

// covers: S3-03, B-081
#[test]
fn streams_of_any_listener_share_one_engine() {
    let _limit = limit();
    let server = Server::new(router().0, ServerOptions::new()).expect("threads");
    let serve = |socket| {
        let server = server.clone();
        thread::spawn(move || attend(&server, stream(socket), Peer::default(), true))
    };
    let (mut streams, mut serving) = (Vec::new(), Vec::new());
    for _ in 0..3 {
        let (ours, theirs) = UnixStream::pair().expect("a pair");
        serving.push(serve(theirs));
        streams.push(ours);
    }
    streams.iter_mut().for_each(sum);
    assert_eq!((server.stats().channels, server.stats().requests), (3, 3));
    let (mut lines, theirs) = UnixStream::pair().expect("a pair");
    let other = server.clone();
    // Two halves, as from an application without a socket.
    let by_line = thread::spawn(move || attend(&other, pair(theirs), Peer::default(), false));
    say(&mut lines, PING);
    read_until(&mut lines, "\n");
    drop(lines);
    by_line.join().expect("no panic");
    stop(&server, BOUND);
    streams.iter_mut().for_each(|stream| assert_eq!(rest(stream), ""));
    serving.into_iter().for_each(|serving| serving.join().expect("no panic"));
    // It is over, and closes what it is given.
    let (mut late, theirs) = UnixStream::pair().expect("a pair");
    let refusing = serve(theirs);
    assert_eq!(rest(&mut late), "");
    refusing.join().expect("no panic");
}

// covers: CANC-S-003, B-149
#[test]
fn disconnect_cancels_the_request() {
    let _limit = limit();
    with_endless(|tool| {
        let (server, seen, _url) = serving();
        let mut stream = dial(&server);
        say(&mut stream, &numbered(1, tool, "{}", ""));
        seen.wait(|counts| counts.begun == 1);
        drop(stream);
        seen.wait(|counts| counts.cancelled == 1);
        until(|| server.stats().running == 0);
    });
}

// covers: B-174, B-074
#[test]
fn clients_that_read_nothing_delay_no_other_client() {
    let _limit = limit();
    let (server, _seen, _url) = serving();
    let mut deaf: Vec<_> = (0..10).map(|_| dial(&server)).collect();
    deaf.iter_mut().for_each(|stream| say(stream, &large()));
    until(|| server.stats().requests == 10 && server.stats().running == 0);
    (0..10).for_each(|_| sum(&mut dial(&server)));
    assert!(server.stats().channels >= 10);
}

// covers: S3-28, B-033
#[test]
fn timers_fire_without_traffic() {
    let _limit = limit();
    let (server, _seen) = limited(|config| config.keep_alive = Some(Duration::from_millis(20)));
    let (mut own, theirs) = UnixStream::pair().expect("a pair");
    let other = server.clone();
    thread::spawn(move || attend(&other, stream(theirs), Peer::default(), true));
    let mut accepted = dial(&server);
    let session = open_session(&mut accepted, "");
    say(&mut accepted, &older("GET", &session, ""));
    (0..3).for_each(|_| drop(read_until(&mut accepted, "\n:")));
    let session = open_session(&mut own, "");
    say(&mut own, &older("GET", &session, ""));
    (0..3).for_each(|_| drop(read_until(&mut own, "\n:")));
}

// covers: S3-03, B-073, S3-30
#[test]
fn clients_of_both_eras_share_one_endpoint() {
    let _limit = limit();
    let (server, _seen, url) = serving();
    thread::scope(|scope| {
        for policy in [Policy::Legacy, Policy::Modern, Policy::Legacy] {
            let url = url.as_str();
            scope.spawn(move || {
                let config = ClientOptions::new()
                    .set(move |config| config.policy = policy)
                    .on_elicit(|_| ElicitResult::Accept(Object::new().with("name", "ada")));
                let client = connect_with(url, config).wait().expect("connected");
                let mut told = Vec::new();
                let count = tools::call("count").arguments(&Count { to: 5 });
                let counted = client.call(count.on_progress(|progress| told.push(progress.progress))).wait();
                assert_eq!(text(counted), "5");
                assert_eq!(told.last(), Some(&5.0));
                assert!(!EVERY_PROGRESS || told.len() == 5, "{told:?}");
                assert_eq!(text(call(&client, "greet")), "hello ada");
                let failed = call(&client, "boom").expect_err("an error");
                assert!(matches!(&failed, CallError::Rpc(error) if error.code == -32603), "{failed:?}");
                assert_eq!(add(&client).as_deref(), Ok("3"));
                assert_eq!(client.close().wait(), Termination::Requested);
            });
        }
    });
    until(|| server.stats().channels == 0);
    assert_eq!(server.stats().running, 0);
}

/// Set for the child that another test starts.
const FEW: &str = "MCP_TEST_FEW";

/// A server with a low limit for open files: this binary, which runs only the test below.
fn few() {
    let (server, _seen, _url) = serving();
    println!("listens at {}!", server.local_addr().expect("an address"));
    std::io::stdin().read_to_end(&mut Vec::new()).expect("an end");
}

// covers: B-174, B-189
#[test]
fn server_without_descriptors_recovers() {
    if std::env::var_os(FEW).is_some() {
        return few();
    }
    let _limit = limit();
    let mut few = limited_to(24, module_path!(), "server_without_descriptors_recovers", FEW)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("started");
    let said = read_until(few.stdout.as_mut().expect("a pipe"), "!");
    let address = said.split("listens at ").nth(1).and_then(|rest| rest.split('!').next()).expect("an address");
    let dial = || TcpStream::connect(address).expect("connected");
    let mut first = dial();
    sum(&mut first);
    // More than it can accept: the rest waits in the queue of the system.
    let mut many: Vec<TcpStream> = (0..60).map(|_| dial()).collect();
    sum(&mut first);
    // As connections end, waiting ones are served.
    let mut last = many.pop().expect("sixty");
    drop(many);
    sum(&mut last);
    drop(few.stdin.take());
    assert!(few.wait().expect("an end").success());
}

#[test]
fn error_names_the_address_in_use() {
    let (server, _seen, _url) = serving();
    let in_use = serve_http(router().0, server.local_addr().expect("an address")).wait().expect_err("in use");
    assert_eq!(in_use.kind(), std::io::ErrorKind::AddrInUse);
    assert!(
        in_use.to_string().contains(&format!("cannot listen at {}: ", server.local_addr().expect("an address"))),
        "{in_use}"
    );
}
