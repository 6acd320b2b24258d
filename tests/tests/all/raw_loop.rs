//! The raw loop of the guide runs: with a server, with a peer that never responds, and with one
//! that disconnects.

use mcp_blocking::{Router, tool};
use mcp_proto::CallError;
use mcp_proto::client::Policy;
use std::thread;

include!("raw_loop/readme.rs");

fn config() -> ClientConfig {
    let mut config = ClientConfig::given();
    config.policy = Policy::Legacy;
    config.initialize_timeout = Duration::from_millis(50);
    config.limits.frame.linger_timeout = Duration::from_millis(50);
    config
}

#[test]
fn guide_shows_this_loop_in_at_most_40_lines() {
    let source = include_str!("raw_loop/readme.rs");
    assert!(source.lines().count() <= 40);
    let body: Vec<&str> = source.lines().collect();
    let guide: Vec<&str> = include_str!("../../../mcp-proto/driver/src/guide/loops.md").lines().collect();
    assert!(guide.windows(body.len()).any(|lines| lines == body), "the guide shows another loop");
}

// covers: B-283
#[test]
fn raw_loop_lists_the_tools_of_a_server() {
    let (ours, theirs) = UnixStream::pair().expect("a pair");
    let mut router = Router::new("raw", "1.0");
    for n in 0..200 {
        router = router.tool(tool(&format!("tool-{n}")).describe("x".repeat(1_000)), |_cx, ()| Ok("done"));
    }
    let server = thread::spawn(move || {
        let reader = theirs.try_clone().expect("a clone");
        mcp_blocking::serve(router, reader, theirs)
    });
    let page = tools_of(ours, ClientConfig::given(), [7; 32]).expect("a page");
    assert!(!page.elements.is_empty() && page.elements[0].name == "tool-0");
    server.join().expect("no panic").expect("served");
}

// covers: TIME-B-001
#[test]
fn raw_loop_ends_by_its_timers_and_with_its_peer() {
    let (ours, theirs) = UnixStream::pair().expect("a pair");
    let error = tools_of(ours, config(), [7; 32]).expect_err("nobody responds");
    assert!(matches!(error.downcast_ref(), Some(CallError::Negotiation(_))), "{error:?}");
    drop(theirs);
    let (ours, theirs) = UnixStream::pair().expect("a pair");
    drop(theirs);
    tools_of(ours, config(), [7; 32]).expect_err("nobody is there");
}
