//! The other transports over TCP, between this client and this server: HTTP+SSE of 2024-11-05, and
//! WebSocket. Nothing but the URL names them.

use super::raw::{dial, listening, read_until, say};
use super::*;
use mcp_proto::client::{HttpTransport, Policy};
use mcp_proto::server::SsePaths;
use mcp_proto::{Dialect, Refusal, WsDialect};
use std::net::SocketAddr;

/// Returns a server at this address that offers every transport.
pub(super) fn serve(at: &str) -> (Server, Arc<Seen>) {
    let (router, seen) = router();
    let router = router.configure(|config| {
        config.sse = Some(SsePaths::default());
        config.web_socket = true;
    });
    (serve_http((router, ServerOptions::new()), at).wait().expect("listens"), seen)
}

pub(super) fn address(server: &Server) -> SocketAddr {
    server.local_addr().expect("an address")
}

pub(super) fn options(policy: Policy) -> ClientOptions {
    ClientOptions::new().on_elicit(|_form| ElicitResult::Accept(Object::new().with("name", "ann"))).set(move |config| {
        config.policy = policy;
        config.timeout = Some(BOUND);
    })
}

/// What every transport carries.
pub(super) fn use_all(client: &Client, seen: &Seen) {
    assert_eq!(add(client).as_deref(), Ok("3"));
    let mut last = 0.0;
    let count = tools::call("count").arguments(&Count { to: 3 }).on_progress(|progress| last = progress.progress);
    assert_eq!(text(client.call(count).wait()), "3");
    assert!(last > 0.0);
    assert!(text(call(client, "greet")).contains("ann"));
    let large = "x".repeat(1 << 20);
    let echo = tools::call("echo").arguments(&Text { text: large.clone() });
    assert_eq!(text(client.call(echo).wait()), large);
    let begun = seen.counts().begun;
    let pending = client.start(tools::call("slow").timeout(Some(Duration::from_millis(300))));
    seen.wait(|counts| counts.begun > begun);
    assert!(matches!(pending.wait(), Err(CallError::Timeout { .. })));
    seen.wait(|counts| counts.cancelled > 0);
}

// covers: S3-46, S3-47, S3-49, SSE24-C-005, SSE24-C-007, SSE24-S-003, SSE24-S-006
#[test]
fn url_of_http_sse_is_enough() {
    let _limit = limit();
    let (server, seen) = serve("127.0.0.1:0");
    let url = format!("http://{}/sse", address(&server));
    let (options, events) = told(options(Policy::Auto));
    let client = connect_with(url.as_str(), options).wait().expect("connected");
    let verdict = client.verdict().expect("ready");
    assert_eq!(verdict.transport, HttpTransport::Sse);
    use_all(&client, &seen);
    assert_eq!(codes(client, &events), ["fell-back-to-legacy", "fell-back-to-sse"]);
    // The verdict saves the ladder.
    let (options, events) = told(self::options(Policy::Auto).set(move |config| config.verdict = Some(verdict)));
    let client = connect_with(url.as_str(), options).wait().expect("connected");
    assert_eq!(add(&client).as_deref(), Ok("3"));
    assert_eq!(codes(client, &events), Vec::<&str>::new());
    // Streamable HTTP is served beside it.
    let client = connect(format!("http://{}/mcp", address(&server))).wait().expect("connected");
    assert_eq!(client.verdict().expect("ready").transport, HttpTransport::Streamable);
    client.close().wait();
    stop(&server, BOUND);
}

// covers: B-264, B-265, B-266, S4-05, S4-12
#[test]
fn client_of_http_sse_outlives_a_restart_of_its_server() {
    let _limit = limit();
    let (server, _) = serve("127.0.0.1:0");
    let at = address(&server);
    let (options, events) = told(options(Policy::Auto).set(|config| config.watch.tools = true));
    let client = connect_with(format!("http://{at}/sse"), options).wait().expect("connected");
    assert_eq!(add(&client).as_deref(), Ok("3"));
    stop(&server, Duration::ZERO);
    drop(server);
    let (server, _) = serve(&at.to_string());
    assert_eq!(add(&client).as_deref(), Ok("3"), "in a new session");
    stop(&server, Duration::ZERO);
    client.close().wait();
    drop(client);
    let ready = all(&events).iter().filter(|event| matches!(event, ClientEvent::Ready(_))).count();
    assert_eq!(ready, 2);
}

// covers: WS-B-001, WS-C-002, S2-31, S2-34, S2-36
#[test]
fn url_of_a_websocket_is_enough() {
    let _limit = limit();
    let (server, seen) = serve("127.0.0.1:0");
    let url = format!("ws://{}/mcp", address(&server));
    for policy in [Policy::Auto, Policy::Legacy] {
        let (options, events) = told(options(policy));
        let client = connect_with(url.as_str(), options).wait().expect("connected");
        use_all(&client, &seen);
        assert_eq!(codes(client, &events), Vec::<&str>::new());
    }
    stop(&server, BOUND);
}

// covers: WS-C-005, WS-B-006, S2-38, S2-40, S2-41
#[test]
fn server_that_stops_ends_its_websockets_with_a_code() {
    let _limit = limit();
    let (server, seen) = serve("127.0.0.1:0");
    let url = format!("ws://{}/mcp", address(&server));
    let client = connect_with(url.as_str(), options(Policy::Auto)).wait().expect("connected");
    let pending = client.start(tools::call("slow"));
    seen.wait(|counts| counts.begun > 0);
    stop(&server, Duration::ZERO);
    // The call is answered before the connection ends.
    assert!(matches!(pending.wait(), Err(CallError::Rpc(_))));
    until(|| call(&client, "add").is_err());
    let ended = client.close().wait();
    assert_eq!(ended, Termination::Closed(Closed::WebSocket { code: Some(1001), reason: String::new() }));
}

// covers: WS-C-010, WS-S-014, S3-45
#[test]
fn websocket_is_admitted_by_the_head_of_its_handshake() {
    let _limit = limit();
    let who = Router::new("guarded", "1").tool(tool("who"), |cx, (): ()| {
        let context = cx.context();
        let path = context.http.as_ref().map(|head| head.target.to_string());
        Ok(format!("{:?} at {path:?}", context.principal))
    });
    let options = ServerOptions::new().on_admit(|head, _peer| {
        match head.and_then(|head| head.headers.get("Authorization").map(str::to_owned)).as_deref() {
            Some("Bearer ada") => Admission::Accept(Some(Principal("ada".into()))),
            _ => Admission::Unauthorized("Bearer".into()),
        }
    });
    let server = listening(who.configure(|config| config.web_socket = true), options);
    let url = format!("ws://{}/mcp", address(&server));
    let refused = connect(url.as_str()).wait().expect_err("no credentials").to_string();
    assert!(refused.contains("HTTP 401"), "{refused}");
    let asked = Arc::new(OnceLock::new());
    let told = Arc::clone(&asked);
    let options = ClientOptions::new().on_authorize(move |challenge| {
        let _ = told.set(challenge.status);
        Authorization::Headers(Headers::new().with("Authorization", "Bearer ada"))
    });
    let client = connect_with(url.as_str(), options).wait().expect("connected");
    assert_eq!(asked.get(), Some(&401));
    assert_eq!(text(call(&client, "who")), "Some(Principal(\"ada\")) at Some(\"/mcp\")");
    client.close().wait();
    stop(&server, Duration::ZERO);
}

/// Returns a server that also serves clients without negotiation.
fn plain() -> (Server, Arc<Seen>) {
    let (router, seen) = router();
    let router = router
        .tool(tool("two parts"), |cx, ()| {
            cx.part("one").ok();
            cx.part("two").ok();
            Ok(vec![Content::text("one"), Content::text("two")])
        })
        .configure(|config| {
            config.web_socket = true;
            config.dialect = Dialect::ToolStream;
            config.ws_dialect = WsDialect::BareTool;
        });
    (listening(router, ServerOptions::new()), seen)
}

// covers: S2-22, S2-24, S2-27, S2-31, S2-33, S2-35
#[test]
fn tools_are_called_without_negotiation() {
    let _limit = limit();
    let (server, seen) = plain();
    for scheme in ["http", "ws"] {
        let url = format!("{scheme}://{}/mcp", address(&server));
        let (options, events) = told(options(Policy::Auto).set(|config| {
            config.dialect = Dialect::ToolStream;
            config.ws_dialect = WsDialect::BareTool;
        }));
        let client = connect_with(url.as_str(), options).wait().expect("connected");
        assert_eq!(add(&client).as_deref(), Ok("3"));
        let both = call(&client, "two parts").expect("a result");
        let texts: Vec<_> = both.content.iter().filter_map(Content::as_text).collect();
        assert_eq!(texts, ["one", "two"]);
        let large = "x".repeat(1 << 20);
        let echo = tools::call("echo").arguments(&Text { text: large.clone() });
        assert_eq!(text(client.call(echo).wait()), large);
        let calls: Vec<_> = (0..8).map(|_| client.start(tools::call("pid"))).collect();
        calls.into_iter().for_each(|call| assert!(call.wait().is_ok()));
        assert!(matches!(call(&client, "none"), Err(CallError::Rpc(_))));
        let listed = client.call(tools::list()).wait();
        assert!(matches!(listed, Err(CallError::Refused(Refusal::NotInDialect))), "{listed:?}");
        let begun = seen.counts().begun;
        let pending = client.start(tools::call("slow").timeout(Some(Duration::from_millis(300))));
        seen.wait(|counts| counts.begun > begun);
        assert!(matches!(pending.wait(), Err(CallError::Timeout { .. })));
        if scheme == "http" {
            seen.wait(|counts| counts.cancelled > 0);
        }
        assert_eq!(codes(client, &events), Vec::<&str>::new());
    }
    stop(&server, BOUND);
}

// covers: S2-23, S2-29, S2-30
#[test]
fn parts_of_a_result_are_events_on_the_wire() {
    let _limit = limit();
    let (server, _) = plain();
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"two parts"}}"#;
    let mut stream = dial(&server);
    let length = body.len();
    let request = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json";
    say(&mut stream, &format!("{request}\r\nContent-Length: {length}\r\n\r\n{body}"));
    let said = read_until(&mut stream, "0\r\n\r\n");
    assert!(said.starts_with("HTTP/1.1 200") && said.contains("\r\nContent-Type: text/event-stream\r\n"), "{said}");
    let events: Vec<_> = said.lines().filter(|line| line.starts_with("event: ")).collect();
    assert_eq!(events, ["event: result", "event: result", "event: complete"]);
    let data: Vec<_> = said.lines().filter_map(|line| line.strip_prefix("data: ")).collect();
    assert_eq!(data[0], r#"{"content":[{"type":"text","text":"one"}]}"#);
    assert!(data[2].contains(r#""id":1"#) && data[2].contains("one") && data[2].contains("two"), "{said}");
    stop(&server, BOUND);
}
