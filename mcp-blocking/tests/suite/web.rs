//! HTTP servers: limits, admission, streams of another listener, busy threads, and shutdown, with
//! raw bytes.

use crate::common::{BOUND, bounded, until};
use crate::own::{Count, Seen, router};
use mcp_blocking::{
    Admission, CallError, Change, ClientOptions, ElicitResult, Hosts, Object, Peer, Policy, Principal, RequestHead,
    Router, Server, ServerEvent, ServerOptions, Termination, connect_with, serve_http, tool, tools,
};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
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

fn say(stream: &mut impl Write, words: &str) {
    stream.write_all(words.as_bytes()).expect("written");
}

fn read_until(stream: &mut impl Read, enough: &str) -> String {
    let (mut all, mut buffer) = (Vec::new(), [0; 4096]);
    while !String::from_utf8_lossy(&all).contains(enough) {
        let n = stream.read(&mut buffer).expect("bytes");
        assert!(n > 0, "the end came before {enough:?}: {}", String::from_utf8_lossy(&all));
        all.extend_from_slice(&buffer[..n]);
    }
    String::from_utf8(all).expect("text")
}

/// Leaves the bytes unread, so that dropping the stream resets the connection.
fn peek_until(stream: &TcpStream, enough: &str) -> String {
    let mut buffer = [0; 4096];
    loop {
        let n = stream.peek(&mut buffer).expect("bytes");
        let text = String::from_utf8_lossy(&buffer[..n]);
        assert!(n > 0, "the end came before {enough:?}: {text}");
        if text.contains(enough) {
            return text.into_owned();
        }
        thread::yield_now();
    }
}

/// Reads a response that has a length: its head and its body.
fn answer(stream: &mut impl Read) -> String {
    let (mut all, mut buffer) = (String::new(), [0; 4096]);
    loop {
        if let Some((head, body)) = all.split_once("\r\n\r\n") {
            let small = head.to_lowercase();
            let length = small.lines().find_map(|line| line.strip_prefix("content-length:")).unwrap_or("0");
            if body.len() >= length.trim().parse().expect("a length") {
                return all;
            }
        }
        let n = stream.read(&mut buffer).expect("bytes");
        assert!(n > 0, "the end came within {all:?}");
        all.push_str(&String::from_utf8_lossy(&buffer[..n]));
    }
}

/// Reads everything up to the end.
fn rest(stream: &mut impl Read) -> String {
    let mut said = String::new();
    stream.read_to_string(&mut said).expect("an end in order");
    said
}

fn sum(stream: &mut (impl Read + Write)) {
    say(stream, &add());
    let answer = answer(stream);
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains(r#""text":"3""#), "{answer}");
}

fn dial(server: &Server) -> TcpStream {
    TcpStream::connect(server.local_addr().expect("an address")).expect("connected")
}

fn limited(change: impl FnOnce(&mut mcp_proto::ServerConfig)) -> (Server, Arc<Seen>) {
    let (router, seen) = router();
    (serve_http(router.configure(change), "127.0.0.1:0").expect("listens"), seen)
}

// covers: B-189
#[test]
fn connection_beyond_the_limit_is_refused_with_a_response() {
    bounded(|| {
        let (server, _seen) = limited(|config| config.limits.server.max_exchanges = 2);
        let (mut first, mut second) = (dial(&server), dial(&server));
        sum(&mut first);
        sum(&mut second);
        for _ in 0..200 {
            let mut third = dial(&server);
            // Its request is not read, but it must still receive the response.
            say(&mut third, &add());
            let told = rest(&mut third);
            assert!(told.starts_with("HTTP/1.1 503") && told.to_lowercase().contains("retry-after:"), "{told}");
        }
        sum(&mut first);
        drop(second);
        until(|| server.stats().channels == 1);
        sum(&mut dial(&server));
    });
}

// covers: B-189, B-174
#[test]
fn silent_clients_beyond_the_limit_delay_no_other_client() {
    bounded(|| {
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
    });
}

// covers: HTTP-S-002, B-181, B-141
#[test]
fn only_named_hosts_are_served_on_every_address() {
    bounded(|| {
        let named = Hosts::Only(vec!["mcp.example".into()]);
        for (hosts, served, foreign) in
            [(Hosts::Loopback, "localhost", "mcp.example"), (named, "mcp.example", "localhost")]
        {
            let (router, _seen) = router();
            let server = serve_http(router.configure(|config| config.hosts = hosts), "0.0.0.0:0").expect("listens");
            for (host, status) in [(served, "HTTP/1.1 200"), (foreign, "HTTP/1.1 403")] {
                let mut stream = TcpStream::connect(("127.0.0.1", server.local_addr().expect("an address").port()))
                    .expect("connected");
                say(&mut stream, &add().replace("Host: localhost", &format!("Host: {host}")));
                let told = answer(&mut stream);
                assert!(told.starts_with(status), "{host}: {told}");
            }
            // No further connection could wake it.
            server.stop(Duration::ZERO);
        }
    });
}

// covers: B-180
#[test]
fn client_on_another_address_is_refused_by_default() {
    bounded(|| {
        let server = serve_http(router().0, "0.0.0.0:0").expect("listens");
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
            say(&mut stream, &add());
            let told = answer(&mut stream);
            assert!(told.starts_with(status), "{ip}: {told}");
        }
    });
}

// covers: S3-03
#[test]
fn streams_of_any_listener_share_one_engine() {
    bounded(|| {
        let server = Server::new(router().0, ServerOptions::new()).expect("threads");
        let serve = |stream| {
            let server = server.clone();
            thread::spawn(move || server.serve_http(stream, Peer::default()))
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
        let halves = (theirs.try_clone().expect("a clone"), theirs);
        let by_line = thread::spawn(move || other.serve(halves, Peer::default()));
        say(&mut lines, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n");
        read_until(&mut lines, "\n");
        drop(lines);
        by_line.join().expect("no panic").expect("served");
        server.stop(BOUND);
        streams.iter_mut().for_each(|stream| assert_eq!(rest(stream), ""));
        serving.into_iter().for_each(|serving| serving.join().expect("no panic").expect("served"));
        // It is over, and closes what it is given.
        let (mut late, theirs) = UnixStream::pair().expect("a pair");
        let refusing = serve(theirs);
        assert_eq!(rest(&mut late), "");
        refusing.join().expect("no panic").expect("closed");
    });
}

// covers: B-149
#[test]
fn dropping_the_last_server_ends_orphans_and_no_connection() {
    bounded(|| {
        let (router, seen) = router();
        let server = Server::new(router, ServerOptions::new()).expect("threads");
        let serve = |server: Server| {
            let (ours, theirs) = UnixStream::pair().expect("a pair");
            (ours, thread::spawn(move || server.serve_http(theirs, Peer::default())))
        };
        let (mut away, left) = serve(server.clone());
        let session = open_session(&mut away);
        say(&mut away, &older("POST", &session, &older_call("slow")));
        seen.wait(|counts| counts.begun == 1);
        drop(away);
        left.join().expect("no panic").expect("served");
        assert_eq!((server.stats().channels, server.stats().running), (0, 1));
        let (mut ours, serving) = serve(server.clone());
        drop(server);
        // The serving thread holds the last clone.
        sum(&mut ours);
        drop(ours);
        serving.join().expect("no panic").expect("served");
        seen.wait(|counts| counts.cancelled == 1);
    });
}

// covers: B-174, B-075
#[test]
fn request_cancelled_before_it_runs_waits_for_no_thread() {
    bounded(|| {
        let (told, waits) = mpsc::channel();
        let (open, gate) = mpsc::channel::<()>();
        let gate = Mutex::new(gate);
        let router = Router::new("narrow", "1")
            .tool(tool("stuck"), move |_cx, (): ()| {
                told.send(()).expect("heard");
                gate.lock().expect("no panic").recv_timeout(BOUND).expect("opened");
                Ok("free")
            })
            .tool(tool("add"), |_cx, ()| Ok(3));
        let server = serve_http((router, ServerOptions::new().threads(1)), "127.0.0.1:0").expect("listens");
        let mut first = dial(&server);
        say(&mut first, &call("stuck", "{}", ""));
        waits.recv_timeout(BOUND).expect("entered");
        // Each is cancelled before a thread takes it. If one remained, the last would wait behind
        // it.
        for _ in 0..50 {
            let mut impatient = dial(&server);
            say(&mut impatient, &call("stuck", "{}", ""));
            until(|| server.stats().running == 2);
            drop(impatient);
            until(|| server.stats().running == 1);
        }
        let mut last = dial(&server);
        say(&mut last, &call("add", "{}", ""));
        open.send(()).expect("the first is there");
        assert!(answer(&mut first).contains("free"));
        assert!(answer(&mut last).contains(r#""text":"3""#));
        assert!(waits.try_recv().is_err(), "a handler of a cancelled request was run");
    });
}

/// Creates a server that admits `ada`, and has a tool that returns the principal.
fn guarded(threads: usize) -> Server {
    let router = Router::new("guarded", "1").tool(tool("who"), |cx, (): ()| {
        let context = cx.context();
        let agent = context.http.as_ref().and_then(|head| head.headers.get("User-Agent").map(str::to_owned));
        Ok(format!("{:?} with {:?}", context.principal, agent))
    });
    let token = |head: Option<&RequestHead>| head?.headers.get("Authorization").map(str::to_owned);
    let serving = ServerOptions::new().threads(threads).on_admit(move |head, _peer| match token(head).as_deref() {
        Some("Bearer ada") => Admission::Accept(Some(Principal("ada".into()))),
        Some("Bearer weak") => Admission::Forbidden(Some("Bearer error=\"insufficient_scope\"".into())),
        Some("Bearer boom") => panic!("on purpose"),
        Some("Bearer slow") => {
            thread::park_timeout(Duration::from_secs(6));
            Admission::Accept(None)
        }
        _ => Admission::Unauthorized("Bearer realm=\"calc\"".into()),
    });
    let router = router.configure(|config| config.limits.server.admit_timeout = Duration::from_secs(3));
    serve_http((router, serving), "127.0.0.1:0").expect("listens")
}

// covers: S3-45, HTTP-S-006, SHTTP-S-006
#[test]
fn request_is_admitted_or_refused_by_its_head() {
    bounded(|| {
        let server = guarded(2);
        for (token, status, told) in [
            ("ada", "200", r#"Some(Principal(\"ada\")) with Some(\"t/1\")"#),
            ("weak", "403", "insufficient_scope"),
            ("boom", "403", "\r\n"),
            ("slow", "503", "\r\n"),
            ("eve", "401", "WWW-Authenticate: Bearer realm=\"calc\""),
        ] {
            let mut stream = dial(&server);
            let fields = format!("User-Agent: t/1\r\nConnection: close\r\nAuthorization: Bearer {token}\r\n");
            say(&mut stream, &call("who", "{}", &fields));
            let answer = rest(&mut stream);
            assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{token}: {answer}");
            assert!(answer.to_lowercase().contains(&told.to_lowercase()), "{token}: {answer}");
        }
    });
}

#[test]
fn handlers_and_admission_see_the_client_address() {
    bounded(|| {
        let router = Router::new("who", "1").tool(tool("who"), |cx, ()| Ok(format!("{:?}", cx.context().peer.name)));
        let (tell, told) = mpsc::channel();
        let tell = Mutex::new(tell);
        let serving = ServerOptions::new().on_admit(move |_, peer| {
            drop(tell.lock().expect("no panic").send(peer.clone()));
            Admission::Accept(None)
        });
        let server = serve_http((router, serving), "127.0.0.1:0").expect("listens");
        let mut stream = dial(&server);
        let address = stream.local_addr().expect("an address");
        for _ in 0..2 {
            say(&mut stream, &call("who", "{}", ""));
            let answer = answer(&mut stream);
            assert!(answer.contains(&format!(r#"Some(\"{address}\")"#)), "{answer}");
            let mut peer = Peer::tcp(address);
            peer.connection = Some(1);
            assert_eq!(told.recv_timeout(BOUND), Ok(peer));
        }
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
fn open_session(stream: &mut (impl Read + Write)) -> String {
    open_session_with(stream, "")
}

/// The same, with these fields before the one with the id.
fn open_session_with(stream: &mut (impl Read + Write), fields: &str) -> String {
    let hello = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;
    say(stream, &older("POST", fields, hello));
    let hello = answer(stream);
    let session = hello.lines().find(|line| line.to_lowercase().starts_with("mcp-session-id:")).expect("a session");
    let field = format!("{fields}{}\r\n", session.trim());
    say(stream, &older("POST", &field, r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#));
    let accepted = answer(stream);
    assert!(accepted.starts_with("HTTP/1.1 202"), "{accepted}");
    field
}

fn older_call(tool: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{tool}","arguments":{{}}}}}}"#)
}

/// Starts a server that streams at once. Returns its events, and the gate that its tool `wait`
/// waits for.
fn streaming() -> (Server, mpsc::Receiver<String>, mpsc::Sender<()>, Arc<Seen>) {
    let (told, heard) = mpsc::channel();
    let (open, gate) = mpsc::channel::<()>();
    let (told, gate) = (Mutex::new(told), Mutex::new(gate));
    let (router, seen) = router();
    let router = router
        .tools_change()
        .tool(tool("wait"), move |_cx, (): ()| {
            gate.lock().expect("no panic").recv_timeout(BOUND).expect("opened");
            Ok("waited")
        })
        .tool(tool("change"), |cx, ()| {
            cx.publish(Change::Tools);
            Ok(())
        })
        .configure(|config| (config.stream_after, config.store) = (Duration::ZERO, true));
    let serving = ServerOptions::new().on_event(move |event| {
        let event = match event {
            ServerEvent::Store(append) => format!("Store {} {}", append.id, append.data.len()),
            other => format!("{other:?}"),
        };
        // Fails when the test is over.
        let _ = told.lock().expect("no panic").send(event);
    });
    (serve_http((router, serving), "127.0.0.1:0").expect("listens"), heard, open, seen)
}

// covers: SHTTP-S-028, B-222, B-039, S3-13, S3-34
#[test]
fn running_call_outlives_its_connection_and_can_be_resumed() {
    bounded(|| {
        let (server, heard, open, _) = streaming();
        let mut stream = dial(&server);
        let session = open_session(&mut stream);
        say(&mut stream, &older("POST", &session, &older_call("wait")));
        let begun = peek_until(&stream, "\n\n");
        let id = begun.lines().find_map(|line| line.strip_prefix("id:")).expect("an id").trim().to_owned();
        drop(stream);
        until(|| server.stats().channels == 0);
        assert_eq!(server.stats().running, 1);
        open.send(()).expect("waits");
        until(|| server.stats().running == 0);
        let mut stream = dial(&server);
        say(&mut stream, &older("GET", &format!("{session}Last-Event-ID: {id}\r\n"), ""));
        let resumed = read_until(&mut stream, "waited");
        assert!(resumed.starts_with("HTTP/1.1 200") && resumed.contains(r#""id":1"#), "{resumed}");
        let mut stream = dial(&server);
        say(&mut stream, &older("DELETE", &session, ""));
        assert!(answer(&mut stream).starts_with("HTTP/1.1 200"));
        let heard: Vec<String> = (0..4).map(|_| heard.recv_timeout(BOUND).expect("told")).collect();
        assert!(heard[0].starts_with("SessionOpened") && heard[3].starts_with("SessionEnded"), "{heard:?}");
        assert!(heard[3].contains("Deleted"), "{heard:?}");
        assert_eq!(heard[1], format!("Store {id} 0"));
        assert!(heard[2].starts_with("Store"), "{heard:?}");
    });
}

// covers: SHTTP-S-028, B-149
#[test]
fn end_of_a_session_ends_its_handlers() {
    bounded(|| {
        let (server, _heard, _open, seen) = streaming();
        let mut stream = dial(&server);
        let session = open_session(&mut stream);
        say(&mut stream, &older("POST", &session, &older_call("slow")));
        seen.wait(|counts| counts.begun == 1);
        drop(stream);
        let mut stream = dial(&server);
        assert_eq!(server.stats().running, 1, "a client that goes away cancels nothing");
        say(&mut stream, &older("DELETE", &session, ""));
        assert!(answer(&mut stream).starts_with("HTTP/1.1 200"));
        seen.wait(|counts| counts.cancelled == 1);
    });
}

// covers: S3-45, B-111
#[test]
fn revoked_principal_loses_its_sessions_streams_and_connections() {
    bounded(|| {
        let (router, seen) = router();
        let serving =
            ServerOptions::new().on_admit(|head, _peer| match head.map(|head| head.headers.get("Authorization")) {
                Some(Some(who)) => Admission::Accept(Some(who.into())),
                Some(None) => Admission::Unauthorized("Bearer".into()),
                None => Admission::Accept(Some("ada".into())),
            });
        let server = Server::new(router, serving).expect("threads");
        let connection = |http| {
            let (ours, theirs) = UnixStream::pair().expect("a pair");
            let (server, peer) = (server.clone(), Peer::unix(None));
            thread::spawn(move || if http { server.serve_http(theirs, peer) } else { server.serve(theirs, peer) });
            ours
        };
        let mut opened = Vec::new();
        for who in ["ada", "eve"] {
            let mut stream = connection(true);
            let fields = open_session_with(&mut stream, &format!("Authorization: {who}\r\n"));
            say(&mut stream, &older("GET", &fields, ""));
            read_until(&mut stream, "text/event-stream");
            opened.push((fields, stream));
        }
        let mut by_line = connection(false);
        let call = call("slow", "{}", "");
        say(&mut by_line, &format!("{}\n", call.split_once("\r\n\r\n").expect("a body").1));
        seen.wait(|counts| counts.begun == 1);

        server.revoke(&"ada".into());
        seen.wait(|counts| counts.cancelled == 1);
        let last = rest(&mut by_line);
        assert!(last.contains("-32603") && last.contains(r#""id":1"#), "{last}");
        let [(ada, own), (eve, _other)] = &mut opened[..] else { panic!("two") };
        // The chunk that ends the body: the connection stays open.
        read_until(own, "0\r\n\r\n");
        let ping = r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#;
        for (fields, status) in [(ada, "HTTP/1.1 404"), (eve, "HTTP/1.1 200")] {
            let mut stream = connection(true);
            say(&mut stream, &older("POST", fields, ping));
            let told = answer(&mut stream);
            assert!(told.starts_with(status), "{told}");
        }
        assert_eq!((server.stats().sessions, server.stats().running), (1, 0));
        server.stop(Duration::ZERO);
    });
}

// covers: B-173, S3-08
#[test]
fn change_reaches_every_stream_and_stop_ends_them() {
    bounded(|| {
        let (server, _heard, _open, _) = streaming();
        let listen = |_| {
            let mut stream = dial(&server);
            let session = open_session(&mut stream);
            say(&mut stream, &older("GET", &session, ""));
            let head = read_until(&mut stream, "\r\n\r\n");
            assert!(head.contains("text/event-stream"), "{head}");
            stream
        };
        let mut streams: Vec<_> = (0..3).map(listen).collect();
        server.publish(Change::Tools);
        streams.iter_mut().for_each(|stream| drop(read_until(stream, "notifications/tools/list_changed")));
        let mut other = dial(&server);
        say(&mut other, &call("change", "{}", ""));
        answer(&mut other);
        streams.iter_mut().for_each(|stream| drop(read_until(stream, "notifications/tools/list_changed")));
        // Nothing runs, so there is nothing to wait for.
        server.stop(Duration::MAX);
        for stream in &mut streams {
            let said = rest(stream);
            assert!(said.ends_with("0\r\n\r\n") && !said.contains("data: {"), "{said}");
        }
    });
}

// covers: B-173
#[test]
fn request_that_ends_within_the_grace_period_is_answered() {
    bounded(|| {
        for _ in 0..50 {
            let (server, _heard, open, _) = streaming();
            let mut stream = dial(&server);
            say(&mut stream, &call("wait", "{}", ""));
            until(|| server.stats().running == 1);
            thread::scope(|scope| {
                scope.spawn(|| server.stop(BOUND));
                open.send(()).expect("waits");
                assert!(answer(&mut stream).contains("waited"));
                // There is no wait for it any more.
                drop(stream);
            });
        }
    });
}

// covers: B-187, B-274
#[test]
fn slow_application_delays_clients_and_misses_no_session() {
    const SESSIONS: usize = 30;
    bounded(|| {
        let (told, heard) = mpsc::channel();
        let (open, gate) = mpsc::channel::<()>();
        let gate = Mutex::new(gate);
        let slow = ServerOptions::new().on_event(move |event| {
            // The other end is dropped once all may pass.
            let _ = gate.lock().expect("no panic").recv_timeout(BOUND);
            told.send(format!("{event:?}")).expect("heard");
        });
        let router = router().0.configure(|config| config.limits.server.max_queued_events = 4);
        let server = serve_http((router, slow), "127.0.0.1:0").expect("listens");
        let (mut stream, opened) = (dial(&server), AtomicUsize::new(0));
        thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..SESSIONS {
                    open_session(&mut stream);
                    opened.fetch_add(1, Ordering::SeqCst);
                }
            });
            until(|| opened.load(Ordering::SeqCst) > 4);
            // Other clients make twice as many requests meanwhile. They are answered, and delayed
            // as well: each opens a connection.
            let others: Vec<TcpStream> = (0..4 * SESSIONS)
                .map(|_| {
                    let mut other = dial(&server);
                    sum(&mut other);
                    assert!(opened.load(Ordering::SeqCst) < 10, "nothing holds the client up");
                    assert!(server.stats().queued < 10);
                    other
                })
                .collect();
            drop(others);
            drop(open);
        });
        let heard: Vec<String> = (0..SESSIONS).map(|_| heard.recv_timeout(BOUND).expect("told")).collect();
        assert!(heard.iter().all(|event| event.starts_with("SessionOpened")), "{heard:?}");
    });
}

// covers: S3-28, B-033
#[test]
fn timers_fire_without_traffic() {
    bounded(|| {
        let (server, _seen) = limited(|config| config.keep_alive = Some(Duration::from_millis(20)));
        let mut stream = dial(&server);
        let session = open_session(&mut stream);
        say(&mut stream, &older("GET", &session, ""));
        (0..3).for_each(|_| drop(read_until(&mut stream, "\n:")));
    });
}

// covers: S3-03, B-073, S3-30
#[test]
fn clients_of_both_eras_share_one_endpoint() {
    bounded(|| {
        let server = serve_http(router().0, "127.0.0.1:0").expect("listens");
        let url = format!("http://{}/mcp", server.local_addr().expect("an address"));
        thread::scope(|scope| {
            for policy in [Policy::Legacy, Policy::Modern, Policy::Legacy] {
                let url = url.as_str();
                scope.spawn(move || {
                    let config = ClientOptions::new()
                        .set(move |config| config.policy = policy)
                        .on_elicit(|_| ElicitResult::Accept(Object::new().with("name", "ada")));
                    let client = connect_with(url, config).expect("connected");
                    let mut told = Vec::new();
                    let count = tools::call("count").arguments(&Count { to: 5 });
                    let counted = client.call(count.on_progress(|progress| told.push(progress.progress)));
                    assert_eq!(counted.expect("an answer").first_text(), Some("5"));
                    assert_eq!(told.last(), Some(&5.0));
                    let greeting = client.call(tools::call("greet")).expect("an answer");
                    assert_eq!(greeting.first_text(), Some("hello ada"));
                    let failed = client.call(tools::call("boom")).expect_err("an error");
                    assert!(matches!(&failed, CallError::Rpc(error) if error.code == -32603), "{failed:?}");
                    assert_eq!(client.close(), Termination::Requested);
                });
            }
        });
        until(|| server.stats().channels == 0);
        assert_eq!(server.stats().running, 0);
    });
}

/// Set for the child that another test starts.
const FEW: &str = "MCP_BLOCKING_TEST_FEW";

/// A server with a low limit for open files: this binary, which runs only the test below.
fn few() {
    let (router, _) = router();
    let server = serve_http(router, "127.0.0.1:0").expect("listens");
    println!("listens at {}!", server.local_addr().expect("an address"));
    std::io::stdin().read_to_end(&mut Vec::new()).expect("an end");
}

// covers: B-174, B-189
#[test]
fn server_without_descriptors_recovers() {
    if std::env::var_os(FEW).is_some() {
        return few();
    }
    bounded(|| {
        let me = std::env::current_exe().expect("a path");
        let mut few = Command::new("/bin/sh")
            .args(["-c", "ulimit -n 24; exec \"$0\" --exact web::server_without_descriptors_recovers --nocapture --test-threads=1"])
            .arg(me)
            .env(FEW, "1")
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
    });
}
