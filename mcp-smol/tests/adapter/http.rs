//! HTTP over loopback, with this client and with raw bytes.

use crate::calc::{Add, Count, Nothing, Seen, Text, name, router};
use crate::common::{run, until};
use mcp_proto::CallError;
use mcp_proto::exchange::{Closed, Sent};
use mcp_smol::{
    Authorization, Client, ClientOptions, ConnectError, ElicitResult, Headers, Server, Termination, connect,
    connect_driven, serve_http, tools,
};
use smol::io::{AsyncReadExt, AsyncWriteExt};
use smol::net::TcpStream;
use smol::stream::StreamExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

async fn serving(seen: &Seen) -> (Server, String) {
    let server = serve_http(router(seen), "127.0.0.1:0").await.expect("an address");
    let url = format!("http://{}/mcp", server.local_addr().expect("an address"));
    (server, url)
}

async fn connected(seen: &Seen) -> (Server, Client) {
    let (server, url) = serving(seen).await;
    let client = connect(url.as_str()).await.expect("connected");
    (server, client)
}

fn post(method: &str, name: Option<&str>, params: &str) -> String {
    let meta = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"progressToken":7}"#;
    let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{{params}{meta}}}}}"#);
    let name = name.map(|name| format!("Mcp-Name: {name}\r\n")).unwrap_or_default();
    let length = body.len();
    format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
         MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: {method}\r\n{name}Content-Length: {length}\r\n\r\n{body}"
    )
}

/// Reads until `enough` has been read.
async fn read_until(stream: &mut TcpStream, enough: &str) -> String {
    let (mut all, mut buffer) = (Vec::new(), [0; 4096]);
    while !String::from_utf8_lossy(&all).contains(enough) {
        let n = stream.read(&mut buffer).await.expect("bytes");
        assert!(n > 0, "the end came before {enough:?}: {}", String::from_utf8_lossy(&all));
        all.extend_from_slice(&buffer[..n]);
    }
    String::from_utf8(all).expect("text")
}

#[test]
fn notifications_can_be_awaited_over_http_and_after_close() {
    run(async {
        let (_server, client) = connected(&Seen::default()).await;
        let note = || client.notify("custom/told", mcp_smol::Object::new());
        note().expect("accepted").await.expect("taken");
        drop(note().expect("accepted"));
        let late = note().expect("accepted");
        client.close().await;
        assert_eq!(late.await, Ok(()));
        assert_eq!(note().unwrap_err(), mcp_proto::Refusal::Closed);
    });
}

#[test]
fn notification_ends_when_the_driver_is_dropped() {
    run(async {
        let (_server, url) = serving(&Seen::default()).await;
        let (client, driver) = connect_driven(url.as_str(), ClientOptions::new()).expect("a url");
        let driver = smol::spawn(driver);
        client.ready().await.expect("ready");
        let note = client.notify("custom/told", mcp_smol::Object::new()).expect("accepted");
        driver.cancel().await;
        // It may have been delivered before.
        let ended = note.await;
        assert!(matches!(ended, Ok(()) | Err(CallError::Closed { .. })), "{ended:?}");
    });
}

// covers: S0-14, S0-15
#[test]
fn client_makes_calls_over_http() {
    run(async {
        let (_server, client) = connected(&Seen::default()).await;
        let sum = client.call(tools::call("add").arguments(&Add { a: 1, b: 2 })).await.expect("an answer");
        assert_eq!(sum.first_text(), Some("3"));
        let tools = client.pages(tools::list()).all().await.expect("pages");
        assert!(tools.iter().any(|tool| tool.name == "add"));
        assert_eq!(client.close().await, Termination::Requested);
    });
}

// covers: S0-16, S0-17, B-078
#[test]
fn progress_events_precede_the_response() {
    run(async {
        let (_server, client) = connected(&Seen::default()).await;
        let mut seen = Vec::new();
        let counted =
            tools::call("count").arguments(&Count { count: 5 }).on_progress(|progress| seen.push(progress.progress));
        assert_eq!(client.call(counted).await.expect("an answer").first_text(), Some("5"));
        assert_eq!(seen, [1.0, 2.0, 3.0, 4.0, 5.0]);
    });
}

#[test]
fn handler_requests_input_over_http() {
    run(async {
        let (_server, url) = serving(&Seen::default()).await;
        let config = ClientOptions::new().on_elicit_async(|_| async { ElicitResult::Accept(name("ada")) });
        let (client, driver) = connect_driven(url, config).expect("a target");
        let _driver = smol::spawn(driver);
        let greeting = client.call(tools::call("greet").arguments(&Nothing {})).await.expect("an answer");
        assert_eq!(greeting.first_text(), Some("hello ada"));
    });
}

// covers: B-149
#[test]
fn dropping_a_call_drops_only_its_handler() {
    run(async {
        let seen = Seen::default();
        let (_server, client) = connected(&seen).await;
        let hang = || client.start(tools::call("hang").arguments(&Nothing {}));
        let (first, second) = (hang(), hang());
        until(|| seen.entered.load(Ordering::SeqCst) == 2).await;
        drop(first);
        until(|| seen.dropped.load(Ordering::SeqCst) == 1).await;
        client.call(tools::call("add").arguments(&Add { a: 1, b: 2 })).await.expect("an answer");
        assert_eq!(seen.dropped.load(Ordering::SeqCst), 1);
        drop(second);
        until(|| seen.dropped.load(Ordering::SeqCst) == 2).await;
    });
}

#[test]
fn many_calls_with_large_bodies_share_few_connections() {
    run(async {
        let (_server, client) = connected(&Seen::default()).await;
        let text = "x".repeat(1 << 20);
        let calls: Vec<_> =
            (0..40).map(|n| (n, client.start(tools::call("add").arguments(&Add { a: n, b: 1 })))).collect();
        let echo = client.call(tools::call("echo").arguments(&Text { text: text.clone() })).await.expect("an answer");
        assert_eq!(echo.first_text(), Some(text.as_str()));
        for (n, call) in calls {
            assert_eq!(call.await.expect("an answer").first_text(), Some((n + 1).to_string().as_str()));
        }
    });
}

// covers: S2-19, B-153
#[test]
fn sequential_calls_use_one_connection() {
    run(async {
        let (server, client) = connected(&Seen::default()).await;
        for n in 0..20 {
            let sum = client.call(tools::call("add").arguments(&Add { a: n, b: 1 })).await.expect("an answer");
            assert_eq!(sum.first_text(), Some((n + 1).to_string().as_str()));
            assert_eq!((client.stats().channels, server.stats().channels), (1, 1));
        }
    });
}

#[test]
fn panicking_handler_responds_with_an_error_over_http() {
    run(async {
        let (_server, client) = connected(&Seen::default()).await;
        let failed = client.call(tools::call("panic").arguments(&Nothing {})).await.expect_err("an error");
        assert!(matches!(failed, CallError::Rpc(_) | CallError::Http(_)), "{failed:?}");
        client.call(tools::call("add").arguments(&Add { a: 1, b: 2 })).await.expect("an answer");
    });
}

#[test]
fn one_connection_carries_a_json_response_then_a_stream() {
    run(async {
        let (server, _) = serving(&Seen::default()).await;
        let mut stream = TcpStream::connect(server.local_addr().expect("an address")).await.expect("connected");
        let add = post("tools/call", Some("add"), r#""name":"add","arguments":{"a":1,"b":2},"#);
        stream.write_all(add.as_bytes()).await.expect("written");
        let answer = read_until(&mut stream, r#""text":"3""#).await.to_ascii_lowercase();
        assert!(answer.starts_with("http/1.1 200") && answer.contains("content-type: application/json"), "{answer}");
        let count = post("tools/call", Some("count"), r#""name":"count","arguments":{"count":2},"#);
        stream.write_all(count.as_bytes()).await.expect("written");
        let answer = read_until(&mut stream, r#""text":"2""#).await.to_ascii_lowercase();
        assert!(answer.starts_with("http/1.1 200") && answer.contains("content-type: text/event-stream"), "{answer}");
        assert_eq!(answer.matches("notifications/progress").count(), 2, "{answer}");
    });
}

#[test]
fn non_http_bytes_get_a_400_and_a_close() {
    run(async {
        let (server, _) = serving(&Seen::default()).await;
        let mut stream = TcpStream::connect(server.local_addr().expect("an address")).await.expect("connected");
        stream.write_all(b"POST /mcp HTTP/1.1\r\nno field\r\n\r\n").await.expect("written");
        stream.shutdown(std::net::Shutdown::Write).expect("shut down");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.expect("text");
        assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
    });
}

#[test]
fn port_without_listener_fails_the_connect() {
    run(async {
        let (server, url) = serving(&Seen::default()).await;
        let address = server.local_addr().expect("an address");
        drop(server);
        // The listener closes when its task has noticed the end.
        while TcpStream::connect(address).await.is_ok() {}
        let failed = connect(url).await.expect_err("nothing listens");
        assert!(failed.to_string().contains("refused"), "{failed}");
        assert!(matches!(failed, ConnectError::Negotiation(_)));
    });
}

#[test]
fn unusable_urls_fail_at_once() {
    assert!(matches!(connect_driven("ftp://localhost/", ClientOptions::new()), Err(ConnectError::Url(_))));
    run(async {
        let failed = connect("https://127.0.0.1:1/").await.expect_err("no TLS");
        assert!(failed.to_string().contains("https needs TLS"), "{failed}");
        let failed = connect("http://no-such-host.invalid/").await.expect_err("no address");
        assert!(failed.to_string().contains("no address"), "{failed}");
    });
}

#[test]
fn stop_lets_running_requests_end_then_closes_everything() {
    run(async {
        let seen = Seen::default();
        let (server, client) = connected(&seen).await;
        let meet = |count| client.start(tools::call("meet").arguments(&Count { count }));
        let first = meet(2);
        until(|| seen.arrived.load(Ordering::SeqCst) == 1).await;
        let stopping = smol::future::zip(server.stop(Duration::from_secs(20)), async {
            seen.arrived.fetch_add(1, Ordering::SeqCst);
            assert_eq!(first.await.expect("an answer").first_text(), Some("met"));
        });
        stopping.await;
        let refused = meet(1).await.expect_err("stopped");
        assert_eq!(refused.sent(), Sent::No, "{refused:?}");
    });
}

#[test]
fn stop_ends_requests_that_exceed_the_grace_period() {
    run(async {
        let seen = Seen::default();
        let (server, client) = connected(&seen).await;
        let hang = client.start(tools::call("hang").arguments(&Nothing {}));
        until(|| seen.entered.load(Ordering::SeqCst) == 1).await;
        let start = Instant::now();
        server.stop(Duration::from_millis(50)).await;
        assert!(start.elapsed() < Duration::from_secs(15), "{:?}", start.elapsed());
        assert_eq!(seen.dropped.load(Ordering::SeqCst), 1);
        hang.await.expect_err("no result");
    });
}

#[test]
fn dropping_the_server_ends_connections_and_handlers() {
    run(async {
        let seen = Seen::default();
        let (server, client) = connected(&seen).await;
        let hang = client.start(tools::call("hang").arguments(&Nothing {}));
        until(|| seen.entered.load(Ordering::SeqCst) == 1).await;
        drop(server);
        let ended = hang.await.expect_err("no answer");
        assert!(matches!(ended, CallError::Closed { why: Closed::Reset | Closed::Eof, .. }), "{ended:?}");
        until(|| seen.dropped.load(Ordering::SeqCst) == 1).await;
    });
}

/// A server that requires credentials: it responds with 401 without them, and otherwise with a
/// matching result.
async fn guarded_server() -> String {
    let listener = smol::net::TcpListener::bind("127.0.0.1:0").await.expect("listens");
    let url = format!("http://{}/mcp", listener.local_addr().expect("an address"));
    let serve = |mut stream: TcpStream| async move {
        let (mut all, mut buffer) = (Vec::new(), [0; 4096]);
        loop {
            let n = stream.read(&mut buffer).await.unwrap_or(0);
            if n == 0 {
                return;
            }
            all.extend_from_slice(&buffer[..n]);
            let text = String::from_utf8_lossy(&all).to_lowercase();
            let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
            let length = head
                .lines()
                .find_map(|line| line.strip_prefix("content-length: "))
                .map_or(0, |n| n.parse().expect("a length"));
            if body.len() < length {
                continue;
            }
            let id = body.split("\"id\":").nth(1).and_then(|rest| rest.split(',').next()).unwrap_or("0").to_owned();
            let result = if body.contains("server/discover") {
                r#"{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}"#
            } else {
                r#"{"resultType":"complete","content":[{"type":"text","text":"3"}]}"#
            };
            let answer = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#);
            let bytes = if head.contains("authorization: bearer good") {
                format!(
                    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{answer}",
                    answer.len()
                )
            } else {
                "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Bearer\r\nContent-Length: 0\r\n\r\n".into()
            };
            stream.write_all(bytes.as_bytes()).await.expect("written");
            all.clear();
        }
    };
    smol::spawn(async move {
        while let Some(Ok(stream)) = listener.incoming().next().await {
            smol::spawn(serve(stream)).detach();
        }
    })
    .detach();
    url
}

// covers: S0-45
#[test]
fn credentials_are_requested_once_and_the_request_repeated() {
    run(async {
        let url = guarded_server().await;
        let asked = Arc::new(AtomicUsize::new(0));
        let heard = Arc::clone(&asked);
        let config = ClientOptions::new().on_authorize_async(move |challenge| {
            heard.fetch_add(1, Ordering::SeqCst);
            assert_eq!((challenge.status, challenge.hints.www_authenticate), (401, vec!["Bearer".to_owned()]));
            async { Authorization::Headers(Headers::new().with("Authorization", "Bearer good")) }
        });
        let client = mcp_smol::connect_with(url.as_str(), config).await.expect("connected");
        for _ in 0..2 {
            let sum = client.call(tools::call("add").arguments(&Add { a: 1, b: 2 })).await.expect("an answer");
            assert_eq!(sum.first_text(), Some("3"));
        }
        client.close().await;
        assert_eq!(asked.load(Ordering::SeqCst), 1);
        let refused = mcp_smol::connect_with(
            url.as_str(),
            ClientOptions::new().on_authorize_async(|_| async { Authorization::Refuse }),
        )
        .await;
        assert!(matches!(refused, Err(ConnectError::Negotiation(_))), "{refused:?}");
        let panics = ClientOptions::new().on_authorize_async(|_| async { panic!("on purpose") });
        assert!(matches!(mcp_smol::connect_with(url.as_str(), panics).await, Err(ConnectError::Negotiation(_))));
    });
}

#[test]
fn error_names_the_address_in_use() {
    run(async {
        let (server, _url) = serving(&Seen::default()).await;
        let in_use =
            serve_http(router(&Seen::default()), server.local_addr().expect("an address")).await.expect_err("in use");
        assert_eq!(in_use.kind(), std::io::ErrorKind::AddrInUse);
        assert!(
            in_use.to_string().contains(&format!("cannot listen at {}: ", server.local_addr().expect("an address"))),
            "{in_use}"
        );
    });
}
