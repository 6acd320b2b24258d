//! Web servers that stall, and calls without a timeout: each wait ends by its own timer.

use super::*;
use mcp_proto::limits::FrameLimits;
use mcp_tests::stub::{Ask, Step, Stub, good_modern, say};

/// How a server stalls at a call.
#[derive(Clone, Copy)]
enum Stop {
    /// It does not read the request.
    Deaf,
    /// It writes this and nothing more.
    After(&'static str),
}

/// Starts a server that responds to `server/discover`.
fn server(stop: Stop) -> Stub {
    let script = move |ask: &Ask| match (ask.what.as_str(), stop) {
        ("server/discover", Stop::Deaf) => good_modern(ask).into_iter().chain([Step::Vanish]).collect(),
        ("tools/call echo", Stop::After(text)) => vec![say(text), Step::Hold],
        _ => good_modern(ask),
    };
    Stub::start(script).expect("listens")
}

/// Creates a client without a timeout, with a limit for one of its waits.
fn patient(url: String, set: fn(&mut FrameLimits)) -> Client {
    let config = ClientOptions::new().set(move |config| {
        config.timeout = None;
        set(&mut config.limits.frame);
    });
    connect_with(url, config).wait().expect("connected")
}

fn ends(stop: Stop, text: usize, set: fn(&mut FrameLimits)) {
    let _limit = limit();
    let server = server(stop);
    let client = patient(server.url(), set);
    let call = tools::call("echo").arguments(&Text { text: "x".repeat(text) });
    let ended = client.call(call).wait().expect_err("no answer");
    assert_eq!(ended, CallError::Closed { sent: Sent::Maybe, why: Closed::Timeout });
}

/// Long enough for `server/discover` on a busy machine, which it applies to as well.
const SHORT: Duration = Duration::from_secs(2);

// covers: B-164
#[test]
fn server_that_reads_no_request_fails_the_call() {
    ends(Stop::Deaf, 8 << 20, |limits| limits.write_stall = SHORT);
}

// covers: B-164
#[test]
fn response_timeout_fails_the_call() {
    ends(Stop::After(""), 1, |limits| limits.response_timeout = Some(SHORT));
    ends(Stop::After("HTTP/1.1 200 O"), 1, |limits| limits.response_timeout = Some(SHORT));
}

// covers: B-164
#[test]
fn server_that_stalls_in_its_response_fails_the_call() {
    const HEAD: &str = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{";
    ends(Stop::After(HEAD), 1, |limits| limits.body_timeout = SHORT);
}
