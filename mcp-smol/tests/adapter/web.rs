//! HTTP servers: limits, admission, streams of another listener, executors, and shutdown, with raw
//! bytes.

use crate::calc::{Count, Nothing, Seen, name, router};
use crate::common::{run, until};
use mcp_smol::{
    Admission, CallError, Change, ClientOptions, ElicitResult, Hosts, IntoTarget, Peer, Policy, Principal, Router,
    Server, ServerEvent, ServerOptions, Termination, connect_with, serve_http, tool, tools,
};
use smol::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use smol::net::TcpStream;
use smol::net::unix::UnixStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Returns a call of 2026-07-28, with further lines in its head.
fn call(tool: &str, arguments: &str, fields: &str) -> String {
    let meta = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"}}"#;
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{tool}","arguments":{arguments},{meta}}}}}"#
    );
    let length = body.len();
    format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
         MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: {tool}\r\n{fields}Content-Length: {length}\r\n\r\n{body}"
    )
}

fn add() -> String {
    call("add", r#"{"a":1,"b":2}"#, "")
}

async fn read_until(stream: &mut (impl AsyncRead + Unpin), enough: &str) -> String {
    let (mut all, mut buffer) = (Vec::new(), [0; 4096]);
    while !String::from_utf8_lossy(&all).contains(enough) {
        let n = stream.read(&mut buffer).await.expect("bytes");
        assert!(n > 0, "the end came before {enough:?}: {}", String::from_utf8_lossy(&all));
        all.extend_from_slice(&buffer[..n]);
    }
    String::from_utf8(all).expect("text")
}

/// Leaves the bytes unread, so that dropping the stream resets the connection.
async fn peek_until(stream: &TcpStream, enough: &str) -> String {
    let mut buffer = [0; 4096];
    loop {
        let n = stream.peek(&mut buffer).await.expect("bytes");
        let text = String::from_utf8_lossy(&buffer[..n]);
        assert!(n > 0, "the end came before {enough:?}: {text}");
        if text.contains(enough) {
            return text.into_owned();
        }
        smol::future::yield_now().await;
    }
}

/// Reads a response that has a length: its head and its body.
async fn answer(stream: &mut (impl AsyncRead + Unpin)) -> String {
    let (mut all, mut buffer) = (String::new(), [0; 4096]);
    loop {
        if let Some((head, body)) = all.split_once("\r\n\r\n") {
            let small = head.to_lowercase();
            let length = small.lines().find_map(|line| line.strip_prefix("content-length:")).unwrap_or("0");
            if body.len() >= length.trim().parse().expect("a length") {
                return all;
            }
        }
        let n = stream.read(&mut buffer).await.expect("bytes");
        assert!(n > 0, "the end came within {all:?}");
        all.push_str(&String::from_utf8_lossy(&buffer[..n]));
    }
}

/// Reads everything up to the end.
async fn rest(stream: &mut (impl AsyncRead + Unpin)) -> String {
    let mut said = String::new();
    stream.read_to_string(&mut said).await.expect("an end in order");
    said
}

async fn say(stream: &mut (impl AsyncWrite + Unpin), words: &str) {
    stream.write_all(words.as_bytes()).await.expect("written");
}

async fn sum(stream: &mut (impl AsyncRead + AsyncWrite + Unpin)) {
    say(stream, &add()).await;
    let answer = answer(stream).await;
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains(r#""text":"3""#), "{answer}");
}

async fn dial(server: &Server) -> TcpStream {
    TcpStream::connect(server.local_addr().expect("an address")).await.expect("connected")
}

// covers: B-189
#[test]
fn connection_beyond_the_limit_is_refused_with_a_response() {
    run(async {
        let limited = router(&Seen::default()).configure(|config| config.limits.server.max_exchanges = 2);
        let server = serve_http(limited, "127.0.0.1:0").await.expect("an address");
        let (mut first, mut second) = (dial(&server).await, dial(&server).await);
        sum(&mut first).await;
        sum(&mut second).await;
        for _ in 0..200 {
            let mut third = dial(&server).await;
            // Its request is not read, but it must still receive the response.
            say(&mut third, &add()).await;
            let told = rest(&mut third).await;
            assert!(told.starts_with("HTTP/1.1 503") && told.to_lowercase().contains("retry-after:"), "{told}");
        }
        sum(&mut first).await;
        drop(second);
        until(|| server.stats().channels == 1).await;
        sum(&mut dial(&server).await).await;
    });
}

// covers: B-075
#[test]
fn silent_clients_beyond_the_limit_are_closed() {
    run(async {
        let limited = router(&Seen::default()).configure(|config| {
            config.limits.server.max_exchanges = 1;
            config.limits.frame.linger_timeout = Duration::from_millis(50);
        });
        let server = serve_http(limited, "127.0.0.1:0").await.expect("an address");
        let mut first = dial(&server).await;
        sum(&mut first).await;
        let mut silent = Vec::new();
        for _ in 0..100 {
            silent.push(dial(&server).await);
        }
        let mut told = 0;
        for stream in &mut silent {
            let mut said = Vec::new();
            let ended = stream.read_to_end(&mut said).await;
            // A connection that exceeds the limit for responses as well is closed without one, and
            // possibly reset.
            let reset = ended.as_ref().is_err_and(|e| e.kind() == std::io::ErrorKind::ConnectionReset);
            assert!(ended.is_ok() || reset, "{ended:?}");
            assert!(said.is_empty() || said.starts_with(b"HTTP/1.1 503 "), "{}", String::from_utf8_lossy(&said));
            told += usize::from(!said.is_empty());
        }
        assert!(told > 0, "none of them was told");
        assert_eq!(server.stats().channels, 1);
        sum(&mut first).await;
    });
}

// covers: HTTP-S-002, B-181, B-141
#[test]
fn only_named_hosts_are_served_on_every_address() {
    run(async {
        let named = Hosts::Only(vec!["mcp.example".into()]);
        for (hosts, served, foreign) in
            [(Hosts::Loopback, "localhost", "mcp.example"), (named, "mcp.example", "localhost")]
        {
            let router = router(&Seen::default()).configure(|config| config.hosts = hosts);
            let server = serve_http(router, "0.0.0.0:0").await.expect("an address");
            for (host, status) in [(served, "HTTP/1.1 200"), (foreign, "HTTP/1.1 403")] {
                let at = ("127.0.0.1", server.local_addr().expect("an address").port());
                let mut stream = TcpStream::connect(at).await.expect("connected");
                say(&mut stream, &add().replace("Host: localhost", &format!("Host: {host}"))).await;
                let told = answer(&mut stream).await;
                assert!(told.starts_with(status), "{host}: {told}");
            }
            // No further connection could wake it.
            server.stop(Duration::ZERO).await;
        }
    });
}

// covers: B-180
#[test]
fn client_on_another_address_is_refused_by_default() {
    run(async {
        let server = serve_http(router(&Seen::default()), "0.0.0.0:0").await.expect("an address");
        let port = server.local_addr().expect("an address").port();
        let mut statuses = vec![("127.0.0.1".parse().expect("an address"), "HTTP/1.1 200")];
        // No packet is sent: the system only selects the source address.
        let route = std::net::UdpSocket::bind("0.0.0.0:0").expect("a socket");
        if route.connect("192.0.2.1:9").is_ok() {
            let own = route.local_addr().expect("an address").ip();
            statuses.extend((!own.is_loopback()).then_some((own, "HTTP/1.1 403")));
        }
        for (ip, status) in statuses {
            let mut stream = TcpStream::connect((ip, port)).await.expect("connected");
            say(&mut stream, &add()).await;
            let told = answer(&mut stream).await;
            assert!(told.starts_with(status), "{ip}: {told}");
        }
    });
}

// covers: S3-03, B-081
#[test]
fn streams_of_any_listener_share_one_engine() {
    run(async {
        let server = Server::new(router(&Seen::default()), ServerOptions::new()).expect("a seed");
        let mut streams = Vec::new();
        for _ in 0..3 {
            let (ours, theirs) = UnixStream::pair().expect("a pair");
            smol::spawn(server.serve_http(theirs, Peer::default())).detach();
            streams.push(ours);
        }
        for stream in &mut streams {
            sum(stream).await;
        }
        assert_eq!((server.stats().channels, server.stats().requests), (3, 3));
        let (mut lines, theirs) = UnixStream::pair().expect("a pair");
        let serving = smol::spawn(server.serve(theirs, Peer::default()));
        say(&mut lines, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n").await;
        read_until(&mut lines, "\n").await;
        drop(lines);
        serving.await;
        server.stop(Duration::from_secs(20)).await;
        for stream in &mut streams {
            assert_eq!(rest(stream).await, "");
        }
        // It is over, and closes what it is given.
        let (mut late, theirs) = UnixStream::pair().expect("a pair");
        server.serve_http(theirs, Peer::default()).await;
        assert_eq!(rest(&mut late).await, "");
    });
}

// covers: B-141, B-149
#[test]
fn dropping_the_last_server_ends_connections_and_handlers() {
    run(async {
        let seen = Seen::default();
        let server = Server::new(router(&seen), ServerOptions::new()).expect("a seed");
        let (mut ours, theirs) = UnixStream::pair().expect("a pair");
        let serving = smol::spawn(server.serve_http(theirs, Peer::default()));
        say(&mut ours, &call("hang", "{}", "")).await;
        until(|| seen.entered.load(Ordering::SeqCst) == 1).await;
        let other = server.clone();
        drop(server);
        assert_eq!(other.stats().running, 1);
        drop(other);
        serving.await;
        until(|| seen.dropped.load(Ordering::SeqCst) == 1).await;
    });
}

// covers: CANC-S-003, B-149
#[test]
fn dropped_serving_future_cancels_its_request_and_frees_slot() {
    run(async {
        let seen = Seen::default();
        let server =
            Server::new(router(&seen).configure(|config| config.limits.server.max_exchanges = 1), ServerOptions::new())
                .expect("a seed");
        let (mut ours, theirs) = UnixStream::pair().expect("a pair");
        let serving = smol::spawn(server.serve_http(theirs, Peer::default()));
        say(&mut ours, &call("hang", "{}", "")).await;
        until(|| seen.entered.load(Ordering::SeqCst) == 1).await;
        assert_eq!(server.stats().running, 1);
        serving.cancel().await;
        // The engine notices at once. The task of the handler ends soon.
        assert_eq!((server.stats().running, server.stats().channels), (0, 0));
        until(|| seen.dropped.load(Ordering::SeqCst) == 1).await;
        assert_eq!(rest(&mut ours).await, "");
        let (mut ours, theirs) = UnixStream::pair().expect("a pair");
        smol::spawn(server.serve_http(theirs, Peer::default())).detach();
        sum(&mut ours).await;
    });
}

// covers: B-141, B-149
#[test]
fn dropping_the_future_of_stop_does_not_stop_the_shutdown() {
    run(async {
        let seen = Seen::default();
        let server = Server::new(router(&seen), ServerOptions::new()).expect("a seed");
        let (mut ours, theirs) = UnixStream::pair().expect("a pair");
        let serving = smol::spawn(server.serve_http(theirs, Peer::default()));
        say(&mut ours, &call("hang", "{}", "")).await;
        until(|| seen.entered.load(Ordering::SeqCst) == 1).await;
        let stop = server.stop(Duration::from_millis(50));
        assert!(smol::future::poll_once(stop).await.is_none(), "the call has not ended");
        // The stop continues without a waiter: the grace period ends, and with it the call and the
        // connection.
        server.wait().await;
        serving.await;
        until(|| seen.dropped.load(Ordering::SeqCst) == 1).await;
    });
}

// covers: CANC-S-003, B-149
#[test]
fn disconnect_cancels_the_request() {
    run(async {
        let seen = Seen::default();
        let server = serve_http(router(&seen), "127.0.0.1:0").await.expect("an address");
        let mut stream = dial(&server).await;
        say(&mut stream, &call("hang", "{}", "")).await;
        until(|| seen.entered.load(Ordering::SeqCst) == 1).await;
        drop(stream);
        until(|| seen.dropped.load(Ordering::SeqCst) == 1).await;
        until(|| server.stats().running == 0).await;
    });
}

// covers: B-081
#[test]
fn server_runs_on_the_configured_executor() {
    run(async {
        let (executor, seen) = (Arc::new(smol::Executor::new()), Seen::default());
        let (there, spawned) = (executor.clone(), Arc::<AtomicUsize>::default());
        let count = spawned.clone();
        let options = ServerOptions::new().on_executor(move |task| {
            count.fetch_add(1, Ordering::SeqCst);
            there.spawn(task).detach();
        });
        let server = executor.run(serve_http((router(&seen), options), "127.0.0.1:0")).await.expect("an address");
        let before = spawned.load(Ordering::SeqCst);
        let mut stream = dial(&server).await;
        say(&mut stream, &add()).await;
        executor.run(read_until(&mut stream, r#""text":"3""#)).await;
        // One for the connection. A handler that completes at once needs no task.
        assert_eq!(spawned.load(Ordering::SeqCst), before + 1);
        say(&mut stream, &call("meet", r#"{"count":2}"#, "")).await;
        executor.run(until(|| seen.arrived.load(Ordering::SeqCst) == 1)).await;
        assert_eq!(spawned.load(Ordering::SeqCst), before + 2);
        seen.arrived.fetch_add(1, Ordering::SeqCst);
        executor.run(read_until(&mut stream, "met")).await;
        executor.run(server.stop(Duration::ZERO)).await;
    });
}

// covers: B-066, B-281
#[test]
fn request_of_a_dropped_handler_gets_an_error() {
    run(async {
        let seen = Seen::default();
        let tasks = Arc::<AtomicUsize>::default();
        let options = ServerOptions::new().on_executor(move |task| {
            // Timers, listener, connection; then a handler.
            match tasks.fetch_add(1, Ordering::SeqCst) {
                3 => drop(task),
                _ => smol::spawn(task).detach(),
            }
        });
        let server = serve_http((router(&seen), options), "127.0.0.1:0").await.expect("an address");
        let mut stream = dial(&server).await;
        say(&mut stream, &call("hang", "{}", "")).await;
        let answer = answer(&mut stream).await;
        assert!(answer.contains("-32603") && answer.contains("the handler was dropped"), "{answer}");
        sum(&mut stream).await;
    });
}

/// Creates a server that admits `ada`, and has a tool that returns the principal.
fn guarded() -> (Router, ServerOptions) {
    let router = Router::new("guarded", "1").tool_async(tool("who"), |cx, _: Nothing| async move {
        let context = cx.context();
        let agent = context.http.as_ref().and_then(|head| head.headers.get("User-Agent").map(str::to_owned));
        Ok(format!("{:?} with {:?}", context.principal, agent))
    });
    (
        router.configure(|config| config.limits.server.admit_timeout = Duration::from_secs(3)),
        ServerOptions::new().on_admit_async(|head, _peer| async move {
            smol::future::yield_now().await;
            match head.as_ref().and_then(|head| head.headers.get("Authorization")) {
                Some("Bearer ada") => Admission::Accept(Some(Principal("ada".into()))),
                Some("Bearer weak") => Admission::Forbidden(Some("Bearer error=\"insufficient_scope\"".into())),
                Some("Bearer boom") => panic!("on purpose"),
                Some("Bearer slow") => smol::future::pending().await,
                _ => Admission::Unauthorized("Bearer realm=\"calc\"".into()),
            }
        }),
    )
}

// covers: S3-45, HTTP-S-006, SHTTP-S-006
#[test]
fn request_is_admitted_or_refused_by_its_head() {
    run(async {
        let server = serve_http(guarded(), "127.0.0.1:0").await.expect("an address");
        for (token, status, told) in [
            ("ada", "200", r#"Some(Principal(\"ada\")) with Some(\"t/1\")"#),
            ("weak", "403", "insufficient_scope"),
            ("boom", "403", "\r\n"),
            ("slow", "503", "\r\n"),
            ("eve", "401", "WWW-Authenticate: Bearer realm=\"calc\""),
        ] {
            let mut stream = dial(&server).await;
            let fields = format!("User-Agent: t/1\r\nConnection: close\r\nAuthorization: Bearer {token}\r\n");
            say(&mut stream, &call("who", "{}", &fields)).await;
            let answer = rest(&mut stream).await;
            assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{token}: {answer}");
            assert!(answer.to_lowercase().contains(&told.to_lowercase()), "{token}: {answer}");
        }
    });
}

#[test]
fn handlers_and_admission_see_the_client_address() {
    run(async {
        let router = Router::new("who", "1")
            .tool_async(tool("who"), |cx, _: Nothing| async move { Ok(format!("{:?}", cx.context().peer.name)) });
        let (tell, told) = smol::channel::unbounded();
        let options = ServerOptions::new().on_admit_async(move |_, peer| {
            drop(tell.try_send(peer));
            std::future::ready(Admission::Accept(None))
        });
        let server = serve_http((router, options), "127.0.0.1:0").await.expect("an address");
        let mut stream = dial(&server).await;
        let address = stream.local_addr().expect("an address");
        for _ in 0..2 {
            say(&mut stream, &call("who", "{}", "")).await;
            let answer = answer(&mut stream).await;
            assert!(answer.contains(&format!(r#"Some(\"{address}\")"#)), "{answer}");
            let mut peer = Peer::tcp(address);
            peer.connection = Some(1);
            assert_eq!(told.recv().await, Ok(peer));
        }
    });
}

// covers: B-141
#[test]
fn stop_ends_silent_and_stalled_clients() {
    run(async {
        let server = serve_http(router(&Seen::default()), "127.0.0.1:0").await.expect("an address");
        let (mute, mut deaf) = (dial(&server).await, dial(&server).await);
        let large = call("echo", &format!(r#"{{"text":"{}"}}"#, "x".repeat(3 << 20)), "");
        say(&mut deaf, &large).await;
        until(|| server.stats().requests == 1 && server.stats().running == 0).await;
        server.stop(Duration::from_millis(100)).await;
        assert_eq!(server.stats().channels, 0);
        assert!(TcpStream::connect(server.local_addr().expect("an address")).await.is_err());
        drop((mute, deaf));
    });
}

/// Returns a request of 2025-11-25.
fn older(method: &str, fields: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "{method} /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
         MCP-Protocol-Version: 2025-11-25\r\n{fields}Content-Length: {length}\r\n\r\n{body}"
    )
}

/// Opens a session over this connection. Returns the field with its id.
async fn open_session(stream: &mut (impl AsyncRead + AsyncWrite + Unpin)) -> String {
    open_session_with(stream, "").await
}

/// The same, with these fields before the one with the id.
async fn open_session_with(stream: &mut (impl AsyncRead + AsyncWrite + Unpin), fields: &str) -> String {
    let hello = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;
    say(stream, &older("POST", fields, hello)).await;
    let hello = answer(stream).await;
    let session = hello.lines().find(|line| line.to_lowercase().starts_with("mcp-session-id:")).expect("a session");
    let field = format!("{fields}{}\r\n", session.trim());
    say(stream, &older("POST", &field, r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#)).await;
    let accepted = answer(stream).await;
    assert!(accepted.starts_with("HTTP/1.1 202"), "{accepted}");
    field
}

fn older_call(tool: &str, arguments: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{tool}","arguments":{arguments}}}}}"#)
}

/// Starts a server with the router of these tests, which streams at once. Returns its events.
async fn streaming(seen: &Seen) -> (Server, Arc<Mutex<Vec<String>>>) {
    let heard = Arc::<Mutex<Vec<String>>>::default();
    let told = heard.clone();
    let router = router(seen)
        .tools_change()
        .tool_async(tool("change"), |cx, _: Nothing| async move {
            cx.publish(Change::Tools);
            Ok("told")
        })
        .configure(|config| (config.stream_after, config.store) = (Duration::ZERO, true));
    let options = ServerOptions::new().on_event(move |event| {
        told.lock().expect("no panic").push(match event {
            ServerEvent::Store(append) => format!("Store {} {}", append.id, append.data.len()),
            other => format!("{other:?}"),
        });
    });
    (serve_http((router, options), "127.0.0.1:0").await.expect("an address"), heard)
}

// covers: SHTTP-S-028, B-222, B-039, S3-13, S3-34
#[test]
fn running_call_outlives_its_connection_and_can_be_resumed() {
    run(async {
        let seen = Seen::default();
        let (server, heard) = streaming(&seen).await;
        let mut stream = dial(&server).await;
        let session = open_session(&mut stream).await;
        say(&mut stream, &older("POST", &session, &older_call("meet", r#"{"count":2}"#))).await;
        let begun = peek_until(&stream, "\n\n").await;
        let id = begun.lines().find_map(|line| line.strip_prefix("id:")).expect("an id").trim().to_owned();
        drop(stream);
        until(|| server.stats().channels == 0).await;
        assert_eq!(server.stats().running, 1);
        seen.arrived.fetch_add(1, Ordering::SeqCst);
        until(|| server.stats().running == 0).await;
        let mut stream = dial(&server).await;
        say(&mut stream, &older("GET", &format!("{session}Last-Event-ID: {id}\r\n"), "")).await;
        let resumed = read_until(&mut stream, "met").await;
        assert!(resumed.starts_with("HTTP/1.1 200") && resumed.contains(r#""id":1"#), "{resumed}");
        let mut stream = dial(&server).await;
        say(&mut stream, &older("DELETE", &session, "")).await;
        assert!(answer(&mut stream).await.starts_with("HTTP/1.1 200"));
        let heard = heard.lock().expect("no panic");
        assert!(heard[0].starts_with("SessionOpened") && heard[3].starts_with("SessionEnded"), "{heard:?}");
        assert!(heard[3].contains("Deleted") && heard.len() == 4, "{heard:?}");
        assert_eq!(heard[1], format!("Store {id} 0"));
        assert!(heard[2].starts_with("Store"), "{heard:?}");
    });
}

// covers: SHTTP-S-028, B-149
#[test]
fn end_of_a_session_ends_its_handlers() {
    run(async {
        let seen = Seen::default();
        let (server, _) = streaming(&seen).await;
        let mut stream = dial(&server).await;
        let session = open_session(&mut stream).await;
        say(&mut stream, &older("POST", &session, &older_call("hang", "{}"))).await;
        until(|| seen.entered.load(Ordering::SeqCst) == 1).await;
        drop(stream);
        let mut stream = dial(&server).await;
        assert_eq!(server.stats().running, 1, "a client that goes away cancels nothing");
        say(&mut stream, &older("DELETE", &session, "")).await;
        assert!(answer(&mut stream).await.starts_with("HTTP/1.1 200"));
        until(|| seen.dropped.load(Ordering::SeqCst) == 1).await;
    });
}

// covers: S3-45, B-111
#[test]
fn revoked_principal_loses_its_sessions_streams_and_connections() {
    run(async {
        let seen = Seen::default();
        let options = ServerOptions::new().on_admit_async(|head, _peer| async move {
            let Some(head) = head else { return Admission::Accept(Some("ada".into())) };
            match head.headers.get("Authorization") {
                Some(who) => Admission::Accept(Some(who.into())),
                None => Admission::Unauthorized("Bearer".into()),
            }
        });
        let server = Server::new(router(&seen), options).expect("a seed");
        let connection = |http: bool| {
            let (ours, theirs) = UnixStream::pair().expect("a pair");
            let (server, peer) = (server.clone(), Peer::unix(None));
            let serving = async move {
                if http { server.serve_http(theirs, peer).await } else { server.serve(theirs, peer).await }
            };
            smol::spawn(serving).detach();
            ours
        };
        let mut opened = Vec::new();
        for who in ["ada", "eve"] {
            let mut stream = connection(true);
            let fields = open_session_with(&mut stream, &format!("Authorization: {who}\r\n")).await;
            say(&mut stream, &older("GET", &fields, "")).await;
            read_until(&mut stream, "text/event-stream").await;
            opened.push((fields, stream));
        }
        let mut by_line = connection(false);
        let call = call("hang", "{}", "");
        say(&mut by_line, &format!("{}\n", call.split_once("\r\n\r\n").expect("a body").1)).await;
        until(|| seen.entered.load(Ordering::SeqCst) == 1).await;

        server.revoke(&"ada".into());
        until(|| seen.dropped.load(Ordering::SeqCst) == 1).await;
        let last = rest(&mut by_line).await;
        assert!(last.contains("-32603") && last.contains(r#""id":1"#), "{last}");
        let [(ada, own), (eve, _other)] = &mut opened[..] else { panic!("two") };
        // The chunk that ends the body: the connection stays open.
        read_until(own, "0\r\n\r\n").await;
        for (fields, status) in [(ada, "HTTP/1.1 404"), (eve, "HTTP/1.1 200")] {
            let mut stream = connection(true);
            say(&mut stream, &older("POST", fields, r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#)).await;
            let told = answer(&mut stream).await;
            assert!(told.starts_with(status), "{told}");
        }
        assert_eq!((server.stats().sessions, server.stats().running), (1, 0));
    });
}

// covers: B-173, S3-08
#[test]
fn change_reaches_every_stream_and_stop_ends_them() {
    run(async {
        let (server, _) = streaming(&Seen::default()).await;
        let mut streams = Vec::new();
        for _ in 0..3 {
            let mut stream = dial(&server).await;
            let session = open_session(&mut stream).await;
            say(&mut stream, &older("GET", &session, "")).await;
            let head = read_until(&mut stream, "\r\n\r\n").await;
            assert!(head.contains("text/event-stream"), "{head}");
            streams.push(stream);
        }
        server.publish(Change::Tools);
        for stream in &mut streams {
            read_until(stream, "notifications/tools/list_changed").await;
        }
        let mut other = dial(&server).await;
        say(&mut other, &call("change", "{}", "")).await;
        assert!(answer(&mut other).await.contains("told"));
        for stream in &mut streams {
            read_until(stream, "notifications/tools/list_changed").await;
        }
        // Nothing runs, so there is nothing to wait for.
        server.stop(Duration::MAX).await;
        for stream in &mut streams {
            let said = rest(stream).await;
            assert!(said.ends_with("0\r\n\r\n") && !said.contains("data: {"), "{said}");
        }
    });
}

// covers: S3-28, B-033
#[test]
fn timers_fire_without_traffic() {
    run(async {
        let often = router(&Seen::default()).configure(|config| config.keep_alive = Some(Duration::from_millis(20)));
        let server = Server::new(often, ServerOptions::new()).expect("a seed");
        let (mut stream, theirs) = UnixStream::pair().expect("a pair");
        smol::spawn(server.serve_http(theirs, Peer::default())).detach();
        let session = open_session(&mut stream).await;
        say(&mut stream, &older("GET", &session, "")).await;
        for _ in 0..3 {
            read_until(&mut stream, "\n:").await;
        }
    });
}

// covers: B-174, B-074
#[test]
fn clients_that_read_nothing_delay_no_other_client() {
    run(async {
        let server = serve_http(router(&Seen::default()), "127.0.0.1:0").await.expect("an address");
        let large = call("echo", &format!(r#"{{"text":"{}"}}"#, "x".repeat(3 << 20)), "");
        let mut deaf = Vec::new();
        for _ in 0..10 {
            let mut stream = dial(&server).await;
            say(&mut stream, &large).await;
            deaf.push(stream);
        }
        until(|| server.stats().requests == 10 && server.stats().running == 0).await;
        for _ in 0..10 {
            sum(&mut dial(&server).await).await;
        }
        assert!(server.stats().channels >= 10);
    });
}

async fn calls_of(policy: Policy, target: impl IntoTarget<mcp_smol::Given>) {
    let config = ClientOptions::new()
        .set(move |config| config.policy = policy)
        .on_elicit_async(|_| async { ElicitResult::Accept(name("ada")) });
    let client = connect_with(target, config).await.expect("connected");
    let mut seen = Vec::new();
    let counted =
        tools::call("count").arguments(&Count { count: 5 }).on_progress(|progress| seen.push(progress.progress));
    assert_eq!(client.call(counted).await.expect("an answer").first_text(), Some("5"));
    assert_eq!(seen, [1.0, 2.0, 3.0, 4.0, 5.0]);
    let greeting = client.call(tools::call("greet").arguments(&Nothing {})).await.expect("an answer");
    assert_eq!(greeting.first_text(), Some("hello ada"));
    let failed = client.call(tools::call("panic").arguments(&Nothing {})).await.expect_err("an error");
    assert!(matches!(&failed, CallError::Rpc(error) if error.code == -32603), "{failed:?}");
    assert_eq!(client.close().await, Termination::Requested);
}

// covers: S3-03, B-073, S3-30
#[test]
fn clients_of_both_eras_share_one_endpoint() {
    run(async {
        let server = serve_http(router(&Seen::default()), "127.0.0.1:0").await.expect("an address");
        let url = format!("http://{}/mcp", server.local_addr().expect("an address"));
        let older = smol::future::zip(calls_of(Policy::Legacy, url.as_str()), calls_of(Policy::Legacy, url.as_str()));
        smol::future::zip(older, calls_of(Policy::Modern, url.as_str())).await;
        until(|| server.stats().channels == 0).await;
        assert_eq!(server.stats().running, 0);
    });
}

/// Set for the child that another test starts.
#[cfg(target_os = "linux")]
const FEW: &str = "MCP_SMOL_TEST_FEW";

/// A server with a low limit for open files: this binary, which runs only the test below.
#[cfg(target_os = "linux")]
fn few() {
    smol::block_on(async {
        let server = serve_http(router(&Seen::default()), "127.0.0.1:0").await.expect("an address");
        println!("listens at {}!", server.local_addr().expect("an address"));
        smol::unblock(|| std::io::Read::read_to_end(&mut std::io::stdin(), &mut Vec::new())).await.expect("an end");
    });
}

// covers: B-189
#[cfg(target_os = "linux")]
#[test]
fn server_without_descriptors_recovers() {
    if std::env::var_os(FEW).is_some() {
        return few();
    }
    run(async {
        let mut few = smol::process::Command::new("/bin/sh")
            .args(["-c", "ulimit -n 24; exec \"$0\" --exact web::server_without_descriptors_recovers --nocapture --test-threads=1"])
            .arg(std::env::current_exe().expect("a path"))
            .env(FEW, "1")
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .expect("started");
        let said = read_until(few.stdout.as_mut().expect("a pipe"), "!").await;
        let address = said.split("listens at ").nth(1).and_then(|rest| rest.split('!').next()).expect("an address");
        let dial = || async { TcpStream::connect(address).await.expect("connected") };
        let mut first = dial().await;
        sum(&mut first).await;
        // More than it can accept: the rest waits in the queue of the system.
        let mut many = Vec::new();
        for _ in 0..60 {
            many.push(dial().await);
        }
        sum(&mut first).await;
        // As connections end, waiting ones are served.
        let mut last = many.pop().expect("sixty");
        drop(many);
        sum(&mut last).await;
        drop(few.stdin.take());
        assert!(few.status().await.expect("an end").success());
    });
}
