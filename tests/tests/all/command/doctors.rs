//! `mcp doctor` with servers that deviate.

use super::run_with;
use mcp_tests::stub::{EVENTS, Step, Stub, good_modern, say, whole};
use std::time::{Duration, Instant};

// A redirect within the origin that the client follows is no fault.
#[test]
fn followed_redirect_is_no_fault() {
    let stub = Stub::start(|ask| match (ask.what.as_str(), ask.count) {
        ("server/discover", 0) => vec![whole("307 Temporary Redirect", "Location: /mcp/\r\n", "")],
        _ => good_modern(ask),
    });
    let stub = stub.expect("it listens");
    let found = run_with(&["doctor", &stub.url()], "");
    assert!(!found.out.contains("FAIL"), "{}", found.out);
    found.is(0, &["ok    redirect", "ok    connect", "ok    Streamable HTTP"], &[]);
}

// A GET that opens a stream without events is no HTTP+SSE, which takes no whole limit to see.
#[test]
fn silent_stream_is_soon_no_http_sse() {
    let stub = Stub::start(|ask| match ask.what.as_str() {
        "GET" => vec![say(EVENTS), Step::Hold],
        _ => good_modern(ask),
    });
    let stub = stub.expect("it listens");
    let began = Instant::now();
    let found = run_with(&["doctor", &stub.url()], "");
    // Less than an attempt that waits for its limit, which is 15 s.
    assert!(began.elapsed() < Duration::from_secs(14), "{:?}: {}", began.elapsed(), found.out);
    found.is(0, &["ok    Streamable HTTP", "no    HTTP+SSE"], &[]);
}

// A server that demands a login, and says nothing of it.
#[test]
fn doctor_says_that_no_document_names_an_issuer() {
    let stub = Stub::start(|_| vec![whole("401 Unauthorized", "", "")]).expect("it listens");
    let found = run_with(&["doctor", &stub.url()], "");
    let origin = stub.url().trim_end_matches("/mcp").to_owned();
    let document = format!("no    document         {origin}/.well-known/oauth-protected-resource: HTTP 401");
    let issuer = format!("no    issuer           {origin} has no metadata: as 2025-03-26 permits");
    found.is(7, &["no    challenge        none", &document, &issuer], &[]);
}
