//! Sessions and streams of 2025-11-25, with raw bytes.

use super::raw::{
    answer, call, dial, listening, older, older_call, open_session, peek_until, read_until, rest, say, sum,
};
use super::*;
use std::os::unix::net::UnixStream;
use std::thread;

/// Starts a server that streams at once. Returns its events, and the gate that its tool `wait`
/// waits for.
fn streaming() -> (Server, mpsc::Receiver<String>, mpsc::Sender<()>, Arc<Seen>) {
    let (told, heard) = mpsc::channel();
    let (open, gate) = mpsc::channel::<()>();
    let gate = Mutex::new(gate);
    let (router, seen) = router();
    let router = router
        .tools_change()
        .tool(tool("wait"), move |cx, (): ()| {
            gate.lock().expect("no panic").recv_timeout(BOUND).expect("opened");
            Ok(if cx.is_cancelled() { "cancelled" } else { "waited" })
        })
        .configure(|config| (config.stream_after, config.report_kept) = (Duration::ZERO, true));
    let serving = ServerOptions::new().on_event(move |event| {
        let event = match event {
            ServerEvent::Kept(kept) => format!("Kept {} {}", kept.id, kept.data.len()),
            other => format!("{other:?}"),
        };
        // Fails when the test is over.
        let _ = told.send(event);
    });
    (listening(router, serving), heard, open, seen)
}

// covers: SHTTP-S-028, B-222, B-039, S3-13, S3-34
#[test]
fn running_call_outlives_its_connection_and_can_be_resumed() {
    let _limit = limit();
    let (server, heard, open, _) = streaming();
    let mut stream = dial(&server);
    let session = open_session(&mut stream, "");
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
    assert_eq!(heard[1], format!("Kept {id} 0"));
    assert!(heard[2].starts_with("Kept"), "{heard:?}");
}

// covers: SHTTP-S-028, B-149
#[test]
fn end_of_a_session_ends_its_handlers() {
    let _limit = limit();
    with_endless(|tool| {
        let (server, _heard, _open, seen) = streaming();
        let mut stream = dial(&server);
        let session = open_session(&mut stream, "");
        say(&mut stream, &older("POST", &session, &older_call(tool)));
        seen.wait(|counts| counts.begun == 1);
        drop(stream);
        let mut stream = dial(&server);
        assert_eq!(server.stats().running, 1, "a client that goes away cancels nothing");
        say(&mut stream, &older("DELETE", &session, ""));
        assert!(answer(&mut stream).starts_with("HTTP/1.1 200"));
        seen.wait(|counts| counts.cancelled == 1);
    });
}

// covers: B-149
#[test]
fn dropping_the_last_server_ends_orphans_and_no_connection() {
    let _limit = limit();
    with_endless(|tool| {
        let (router, seen) = router();
        let server = Server::new(router, ServerOptions::new()).expect("threads");
        let serve = |server: Server| {
            let (ours, theirs) = UnixStream::pair().expect("a pair");
            (ours, thread::spawn(move || attend(&server, stream(theirs), Peer::default(), true)))
        };
        let (mut away, left) = serve(server.clone());
        let session = open_session(&mut away, "");
        say(&mut away, &older("POST", &session, &older_call(tool)));
        seen.wait(|counts| counts.begun == 1);
        drop(away);
        left.join().expect("no panic");
        assert_eq!((server.stats().channels, server.stats().running), (0, 1));
        let (mut ours, serving) = serve(server.clone());
        drop(server);
        // The serving thread holds the last clone.
        sum(&mut ours);
        drop(ours);
        serving.join().expect("no panic");
        seen.wait(|counts| counts.cancelled == 1);
    });
}

// covers: S3-45, B-111
#[test]
fn revoked_principal_loses_its_sessions_streams_and_connections() {
    let _limit = limit();
    with_endless(revoke_while_running);
}

/// Runs this tool, on behalf of a principal that is revoked. The server admits with a function for
/// one tool, and with a future for the other.
fn revoke_while_running(tool: &str) {
    let (router, seen) = router();
    let admit = |who: Option<Option<&str>>| match who {
        Some(Some(who)) => Admission::Accept(Some(who.into())),
        Some(None) => Admission::Unauthorized("Bearer".into()),
        None => Admission::Accept(Some("ada".into())),
    };
    let serving = match tool {
        "slow" => {
            ServerOptions::new().on_admit(move |head, _| admit(head.map(|head| head.headers.get("Authorization"))))
        }
        _ => ServerOptions::new().on_admit_async(move |head, _| async move {
            admit(head.as_ref().map(|head| head.headers.get("Authorization")))
        }),
    };
    let server = Server::new(router, serving).expect("threads");
    let connection = |http| {
        let (ours, theirs) = UnixStream::pair().expect("a pair");
        let (server, peer) = (server.clone(), Peer::unix(None));
        thread::spawn(move || attend(&server, stream(theirs), peer, http));
        ours
    };
    let mut opened = Vec::new();
    for who in ["ada", "eve"] {
        let mut stream = connection(true);
        let fields = open_session(&mut stream, &format!("Authorization: {who}\r\n"));
        say(&mut stream, &older("GET", &fields, ""));
        read_until(&mut stream, "text/event-stream");
        opened.push((fields, stream));
    }
    let mut by_line = connection(false);
    let call = call(tool, "{}", "");
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
    stop(&server, Duration::ZERO);
}

// covers: B-173, S3-08
#[test]
fn change_reaches_every_stream_and_stop_ends_them() {
    let _limit = limit();
    let (server, _heard, _open, _) = streaming();
    let listen = |_| {
        let mut stream = dial(&server);
        let session = open_session(&mut stream, "");
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
    assert!(answer(&mut other).contains("told"));
    streams.iter_mut().for_each(|stream| drop(read_until(stream, "notifications/tools/list_changed")));
    // Nothing runs, so there is nothing to wait for.
    stop(&server, Duration::MAX);
    for stream in &mut streams {
        let said = rest(stream);
        assert!(said.ends_with("0\r\n\r\n") && !said.contains("data: {"), "{said}");
    }
}
