//! Clients over HTTP on loopback: of servers of the same crate, and of others written by hand.

use super::raw::{CALLED, responds, result, served, serving};
use super::*;
use mcp_proto::Refusal;
use mcp_proto::error::{NegotiationCause, Stage};
use mcp_tests::stub::{Ask, Step, Stub, say, whole};
use std::future::ready;
use std::net::TcpListener;
use std::thread::scope;

// covers: S0-17, B-078, S2-14, S2-16, S2-22, S0-14, S0-15, S0-16
#[test]
fn url_responds_as_json_and_as_a_stream() {
    let _limit = limit();
    let (server, _seen, client) = served();
    assert_eq!(add(&client).as_deref(), Ok("3"));
    let mut told = Vec::new();
    let count = tools::call("count").arguments(&Count { to: 5 }).on_progress(|progress| told.push(progress.progress));
    assert_eq!(text(client.call(count).wait()), "5");
    assert!(told.last() == Some(&5.0) && told.windows(2).all(|pair| pair[0] < pair[1]), "{told:?}");
    assert!(!EVERY_PROGRESS || told.len() == 5, "{told:?}");
    assert!(tools_of(&client).iter().any(|tool| tool.name == "add"));
    assert_eq!(add(&client).as_deref(), Ok("3"));
    assert_eq!(client.close().wait(), Termination::Requested);
    stop(&server, Duration::ZERO);
}

#[test]
fn closing_an_http_client_leaves_no_thread_behind() {
    let _limit = limit();
    let (_server, _seen, client) = served();
    assert_eq!(add(&client).as_deref(), Ok("3"));
    // Its writing thread waits for more bytes when the client is closed.
    client.close().wait();
    until(|| client.stats().detached_threads == 0);
}

#[test]
fn notifications_can_be_awaited_over_http_and_after_close() {
    let _limit = limit();
    let (_server, _seen, client) = served();
    client.notify("custom/told", Object::new()).expect("accepted").wait().expect("taken");
    drop(client.notify("custom/told", Object::new()).expect("accepted"));
    let late = client.notify("custom/told", Object::new()).expect("accepted");
    client.close().wait();
    assert_eq!(late.wait(), Ok(()));
    assert_eq!(client.notify("custom/told", Object::new()).unwrap_err(), Refusal::Closed);
}

// covers: B-073
#[test]
fn elicitation_works_over_http() {
    let _limit = limit();
    let (_server, _seen, url) = serving();
    let eve = || ElicitResult::Accept(Object::new().with("name", "eve"));
    let (at_once, later) = (ClientOptions::new(), ClientOptions::new());
    for config in [at_once.on_elicit(move |_| eve()), later.on_elicit(move |_| ready(eve()))] {
        let client = connect_with(url.as_str(), config).wait().expect("connected");
        assert_eq!(text(call(&client, "greet")), "hello eve");
    }
}

// covers: B-049, B-072
#[test]
fn clients_with_equal_ids_get_their_own_responses() {
    let _limit = limit();
    let (_server, _seen, url) = serving();
    scope(|scope| {
        for name in ["a", "b", "c", "d"] {
            let url = &url;
            scope.spawn(move || {
                let client = connect(url.as_str()).wait().expect("connected");
                for n in 0..10 {
                    let mine = Text { text: format!("{name}{n}") };
                    assert_eq!(text(client.call(tools::call("echo").arguments(&mine)).wait()), mine.text);
                }
            });
        }
    });
}

// covers: S2-19, S0-14, S0-15
#[test]
fn client_uses_one_connection_for_sequential_calls() {
    let _limit = limit();
    let script = |ask: &Ask| match ask.what.as_str() {
        "tools/call add" if ask.count.is_multiple_of(2) => {
            // A call between the event and the last chunk would rightly open a second connection.
            let answer = format!(r#"{{"jsonrpc":"2.0","id":{},"result":{CALLED}}}"#, ask.id);
            let body = format!("data: {{\"jsonrpc\":\"2.0\",\"method\":\"custom/note\"}}\n\ndata: {answer}\n\n");
            let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked";
            vec![say(format!("{head}\r\n\r\n{:x}\r\n{body}\r\n0\r\n\r\n", body.len()))]
        }
        _ => responds(ask),
    };
    let stub = Stub::start(script).expect("listens");
    let client = connect(stub.url()).wait().expect("connected");
    for _ in 0..4 {
        assert_eq!(add(&client).as_deref(), Ok("3"));
    }
    assert_eq!((client.stats().channels, stub.connections()), (1, 1));
    client.close().wait();
    assert_eq!((stub.asks().len(), stub.times("server/discover"), stub.times("tools/call add")), (5, 1, 4));
}

// covers: S2-19, B-153
#[test]
fn sequential_calls_use_one_connection() {
    let _limit = limit();
    let (server, _seen, client) = served();
    for n in 0..20 {
        let sum = client.call(tools::call("add").arguments(&Add { a: n, b: 1 })).wait();
        assert_eq!(text(sum), (n + 1).to_string());
        assert_eq!((client.stats().channels, server.stats().channels), (1, 1));
    }
}

// covers: CANC-S-003, TIME-B-002, S0-42, B-149
#[test]
fn cancelling_a_call_closes_its_stream_and_stops_its_handler() {
    let _limit = limit();
    with_endless(|tool| {
        let (_server, seen, client) = served();
        let (cancelled, dropped) = (client.start(tools::call(tool)), client.start(tools::call(tool)));
        seen.wait(|counts| counts.begun == 2);
        cancelled.cancel(None);
        assert_eq!(cancelled.wait(), Err(CallError::Cancelled { reason: None }));
        seen.wait(|counts| counts.cancelled == 1);
        assert_eq!(add(&client).as_deref(), Ok("3"));
        assert_eq!(seen.counts().cancelled, 1);
        drop(dropped);
        seen.wait(|counts| counts.cancelled == 2);
        let ended = client.call(tools::call(tool).timeout(Duration::from_millis(200))).wait();
        assert!(matches!(ended, Err(CallError::Timeout { .. })), "{ended:?}");
        seen.wait(|counts| counts.begun == counts.cancelled);
        assert_eq!(add(&client).as_deref(), Ok("3"));
    });
}

// covers: B-087, B-094
#[test]
fn connect_without_listener_fails_with_the_reason() {
    let _limit = limit();
    let address = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("an address");
    let failed = connect(format!("http://{address}")).wait().expect_err("nothing listens");
    assert!(failed.to_string().contains("refused"), "{failed}");
    let ConnectError::Negotiation(e) = &failed else { panic!("{failed:?}") };
    assert_eq!((e.stage, &e.cause), (Stage::Connect, &NegotiationCause::Closed(Closed::Refused)));
}

// covers: B-087
#[test]
fn invalid_and_unusable_urls_are_refused() {
    let _limit = limit();
    assert!(matches!(connect("localhost:8000").wait(), Err(ConnectError::Url(_))));
    assert!(matches!(connect("ftp://localhost/").wait(), Err(ConnectError::Url(_))));
    let failed = connect("http://no-such-host.invalid/").wait().expect_err("no address");
    assert!(failed.to_string().contains("no address"), "{failed}");
}

// covers: S2-09
#[test]
fn large_and_many_messages_pass_in_both_directions() {
    let _limit = limit();
    let (_server, _seen, url) = serving();
    let client =
        connect_with(url, ClientOptions::new().set(|config| config.timeout = Some(BOUND))).wait().expect("connected");
    let large = "z".repeat(1 << 20);
    let small: Vec<_> = (0..40).map(|n| (n, client.start(tools::call("add").arguments(&Add { a: n, b: 1 })))).collect();
    scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let echoed = text(client.call(tools::call("echo").arguments(&Text { text: large.clone() })).wait());
                assert!(echoed == large, "something else came back");
            });
        }
    });
    small.into_iter().for_each(|(n, sum)| assert_eq!(text(sum.wait()), (n + 1).to_string()));
}

/// Starts a server that requires credentials: it responds with 401 without them.
fn guarded_server() -> Stub {
    let script = |ask: &Ask| match ask.field("authorization") {
        None if ask.what != "open" => vec![whole("401 Unauthorized", "WWW-Authenticate: Bearer realm=\"x\"\r\n", "")],
        _ => responds(ask),
    };
    Stub::start(script).expect("listens")
}

/// Sets a callback for credentials: one that blocks, or one that returns a future.
fn authorized(is_async: bool, answer: impl Fn(Challenge) -> Authorization + Send + Sync + 'static) -> ClientOptions {
    let answer = Arc::new(answer);
    match is_async {
        false => ClientOptions::new().on_authorize(move |challenge| answer(challenge)),
        true => ClientOptions::new().on_authorize(move |challenge| {
            let answer = Arc::clone(&answer);
            async move { answer(challenge) }
        }),
    }
}

// covers: S0-45
#[test]
fn credentials_are_requested_once_and_the_request_repeated() {
    let _limit = limit();
    for is_async in [false, true] {
        let server = guarded_server();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&asked);
        let config = authorized(is_async, move |challenge| {
            heard.lock().expect("no panic").push((challenge.status, challenge.hints.www_authenticate));
            Authorization::Headers(Headers::new().with("Authorization", "Bearer good"))
        });
        let client = connect_with(server.url(), config).wait().expect("connected");
        assert_eq!(add(&client).as_deref(), Ok("3"));
        assert_eq!(add(&client).as_deref(), Ok("3"));
        client.close().wait();
        assert_eq!(*asked.lock().expect("no panic"), [(401, vec!["Bearer realm=\"x\"".to_owned()])]);
        let sent: Vec<_> = server.asks().iter().map(|ask| ask.field("authorization").map(str::to_owned)).collect();
        let good = || Some("Bearer good".to_owned());
        assert_eq!(sent, [None, good(), good(), good()]);
        // There are no credentials.
        let refused = connect_with(server.url(), authorized(is_async, |_| Authorization::Refuse)).wait();
        let Err(ConnectError::Negotiation(e)) = refused else { panic!("{refused:?}") };
        let said = e.to_string();
        assert!(said.starts_with("server/discover failed after "), "{said}");
        assert!(said.ends_with(" ms: HTTP 401 [WWW-Authenticate: Bearer realm=\"x\"]"), "{said}");
        // Nor does a callback that panics provide any.
        let panicked = connect_with(server.url(), authorized(is_async, |_| panic!("on purpose"))).wait();
        assert!(matches!(panicked, Err(ConnectError::Negotiation(_))));
    }
}

/// Answers for a server with one tool, whose argument `a` is mirrored: into `Mcp-Param-Old` as it
/// is listed first, and into `Mcp-Param-New`, which it requires, as it is listed later. Every
/// request must have the field of the application.
fn renamed(ask: &Ask) -> Vec<Step> {
    assert!(ask.what == "open" || ask.field("x-user") == Some("José"), "{ask:?}");
    match ask.what.as_str() {
        "tools/list" => {
            let header = if ask.count == 0 { "Old" } else { "New" };
            let a = format!(r#"{{"type":"integer","x-mcp-header":"{header}"}}"#);
            vec![result(&format!(
                r#"{{"resultType":"complete","tools":[{{"name":"add","inputSchema":{{"type":"object","properties":{{"a":{a}}}}}}}],"ttlMs":0,"cacheScope":"private"}}"#
            ))]
        }
        "tools/call add" if ask.field("mcp-param-new") != Some("1") => {
            assert_eq!(ask.field("mcp-param-old"), Some("1"), "{ask:?}");
            let error = r#"{"jsonrpc":"2.0","id":{id},"error":{"code":-32020,"message":"HeaderMismatch"}}"#;
            vec![whole("400 Bad Request", "Content-Type: application/json\r\n", error)]
        }
        _ => responds(ask),
    }
}

// covers: HDR-C-016, HDR-C-040, B-217, S2-15
#[test]
fn arguments_and_application_fields_are_sent_in_the_header() {
    let _limit = limit();
    let stub = Stub::start(renamed).expect("listens");
    assert!(ClientOptions::new().header("X-User", "a\r\nHost: b").is_err());
    let config = ClientOptions::new().header("X-User", "José").expect("a legal field");
    let client = connect_with(stub.url(), config).wait().expect("connected");
    let tools: Vec<_> = tools_of(&client).into_iter().map(|tool| tool.name).collect();
    assert_eq!(tools, ["add"]);
    assert_eq!(add(&client).as_deref(), Ok("3"));
    client.close().wait();
    let asks: Vec<String> = stub.asks().into_iter().map(|ask| ask.what).collect();
    assert_eq!(asks, ["server/discover", "tools/list", "tools/call add", "tools/list", "tools/call add"]);
}
