//! The end of a server: in order, at once, or without a free descriptor.

use super::raw::{addition, answer, call, dial, large, limited, read_message, say, served, serving};
use super::*;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::net::TcpStream;
use std::process::Stdio;
use std::thread::scope;

// covers: B-141, B-149
#[test]
fn stop_ends_everything_in_time() {
    let _limit = limit();
    with_endless(|tool| {
        let (server, seen, client) = served();
        let running = client.start(tools::call(tool));
        seen.wait(|counts| counts.begun == 1);
        // One sends nothing, and one never reads its response.
        let (mute, mut deaf) = (dial(&server), dial(&server));
        say(&mut deaf, &large());
        until(|| server.stats().requests == 2 && server.stats().running == 1);
        let began = Instant::now();
        stop(&server, Duration::from_millis(100));
        assert!(began.elapsed() < BOUND, "{:?}", began.elapsed());
        assert!(!STOP_AWAITS_CALLBACKS || seen.counts().cancelled == 1);
        assert_eq!(server.stats().channels, 0);
        running.wait().expect_err("no result");
        seen.wait(|counts| counts.cancelled == 1);
        let address = server.local_addr().expect("an address");
        assert!(TcpStream::connect_timeout(&address, Duration::from_secs(1)).is_err());
        over(&server);
        drop((mute, deaf));
    });
}

#[test]
fn stop_lets_running_requests_end_then_closes_everything() {
    let _limit = limit();
    let (server, seen, client) = served();
    let meet = |to| client.start(tools::call("meet").arguments(&Count { to }));
    let first = meet(2);
    seen.wait(|counts| counts.met == 1);
    scope(|scope| {
        scope.spawn(|| stop(&server, BOUND));
        seen.count(|counts| counts.met += 1);
        assert_eq!(text(first.wait()), "met");
    });
    // The client may not have read the end of its connection yet.
    until(|| meet(1).wait().expect_err("stopped").sent() == Sent::No);
}

// covers: B-173
#[test]
fn request_that_ends_within_the_grace_period_is_answered() {
    let _limit = limit();
    for _ in 0..50 {
        let (server, seen) = limited(|config| config.stream_after = Duration::ZERO);
        let mut stream = dial(&server);
        say(&mut stream, &call("meet", r#"{"to":2}"#, ""));
        seen.wait(|counts| counts.met == 1);
        scope(|scope| {
            scope.spawn(|| stop(&server, BOUND));
            seen.count(|counts| counts.met += 1);
            assert!(answer(&mut stream).contains("met"));
            // There is no wait for it any more.
            drop(stream);
        });
    }
}

#[test]
fn stop_accepts_the_maximum_duration() {
    let _limit = limit();
    stop(&serving().0, Duration::MAX);
}

// covers: B-149
#[test]
fn dropping_the_server_ends_its_listener_and_handlers() {
    let _limit = limit();
    with_endless(|tool| {
        let (server, seen, client) = served();
        let address = server.local_addr().expect("an address");

        let running = client.start(tools::call(tool));
        seen.wait(|counts| counts.begun == 1);
        drop(server);
        let ended = running.wait().expect_err("no answer");
        assert!(matches!(ended, CallError::Closed { why: Closed::Reset | Closed::Eof, .. }), "{ended:?}");
        seen.wait(|counts| counts.cancelled == 1);
        until(|| TcpStream::connect_timeout(&address, BOUND).is_err());
        assert!(add(&client).is_err());
    });
}

/// Set for the child that another test starts.
const FULL: &str = "MCP_TEST_FULL";

/// A server that is stopped without a free descriptor: this binary, which runs only the test below.
fn full() {
    let (server, _seen, _url) = serving();
    let mut stream = dial(&server);
    say(&mut stream, &addition());
    read_message(&mut BufReader::new(&stream)).expect("an answer");
    let taken: Vec<File> = std::iter::from_fn(|| File::open("/dev/null").ok()).collect();
    stop(&server, Duration::ZERO);
    println!("stopped at {}!", server.local_addr().expect("an address"));
    std::io::stdin().read_to_end(&mut Vec::new()).expect("an end");
    drop(taken);
}

// covers: B-141, B-189
#[test]
fn server_without_descriptors_closes_its_listener_on_stop() {
    if std::env::var_os(FULL).is_some() {
        return full();
    }
    let _limit = limit();
    let mut full = limited_to(64, module_path!(), "server_without_descriptors_closes_its_listener_on_stop", FULL)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("started");
    let mut said = BufReader::new(full.stdout.take().expect("a pipe"));
    let mut line = String::new();
    while !line.contains('!') {
        line.clear();
        assert!(said.read_line(&mut line).expect("readable") > 0, "it ends");
    }
    let address = line.split("stopped at ").nth(1).and_then(|rest| rest.split('!').next()).expect("an address");
    let refused = TcpStream::connect(address).expect_err("it listens still");
    assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
    drop(full.stdin.take());
    assert!(full.wait().expect("an end").success());
}
