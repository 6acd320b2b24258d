//! Handlers that do not return.

use super::*;
use mcp_proto::error::DiagnosticKind;
use mcp_proto::server::Event;
use std::collections::BTreeMap;

/// Long enough for a test in which no wait is to end.
const LONG: Option<Duration> = Some(Duration::from_secs(3600));

/// A server whose tool `stuck` waits for its release, and whose tool `ready` returns at once.
struct Stuck {
    narrow: Narrow,
    entered: mpsc::Receiver<()>,
    open: mpsc::Sender<()>,
    events: mpsc::Receiver<Event>,
}

impl Stuck {
    fn new(bounds: PoolBounds, deadline: Option<Duration>) -> Self {
        let (told, entered) = mpsc::channel();
        let (open, gate) = mpsc::channel::<()>();
        let (told, gate) = (Mutex::new(told), Mutex::new(gate));
        let router = Router::new("stuck", "1")
            .tool(tool("stuck"), move |_cx, (): ()| {
                lock(&told).send(()).expect("heard");
                lock(&gate).recv_timeout(BOUND).expect("opened");
                Ok("late")
            })
            .tool(tool("ready"), |_cx, (): ()| Ok("ready"))
            .configure(move |config| config.limits.server.handler_deadline = deadline);
        let (happened, events) = mpsc::channel();
        let options = ServerOptions::new().on_event(move |event| happened.send(event).expect("heard"));
        Self { narrow: Narrow::bounded(router, options, bounds), entered, open, events }
    }

    /// Calls the stuck tool with these ids, and waits until all of them run.
    fn enter(&self, client: &mut UnixStream, ids: std::ops::RangeInclusive<u32>) {
        ids.clone().for_each(|id| call(client, id));
        ids.for_each(|_| self.entered.recv_timeout(BOUND).expect("entered"));
    }

    fn release(&self, count: usize) {
        (0..count).for_each(|_| self.open.send(()).expect("waits"));
    }

    /// Returns the kinds of the diagnostics so far.
    fn diagnostics(&self) -> BTreeMap<DiagnosticKind, u64> {
        self.narrow.server.stats().diagnostics
    }
}

/// Returns the next line of the server.
fn answer(client: &UnixStream) -> String {
    read_to(client, "\n")
}

fn ready(client: &mut UnixStream, id: u32) {
    call_tool(client, id, "ready", "{}");
    let said = answer(client);
    assert!(said.contains(&format!(r#""id":{id},"#)) && said.contains(r#""text":"ready""#), "{said}");
}

fn refused(client: &UnixStream, id: u32, message: &str) {
    let said = answer(client);
    let error = format!(r#""error":{{"code":-32603,"message":"{message}"}}"#);
    assert!(said.contains(&format!(r#""id":{id},"#)) && said.contains(&error), "{said}");
}

// covers: B-174
#[test]
fn abandoned_handlers_stop_no_other_call_and_answer_none() {
    let stuck = Stuck::new(PoolBounds { threads: 2, share: 2, abandoned: 4, patience: LONG }, None);
    let mut client = stuck.narrow.connect(Kind::Lines);
    for ids in [1..=2, 3..=4] {
        stuck.enter(&mut client, ids.clone());
        ids.for_each(|id| cancel(&mut client, id));
    }
    ready(&mut client, 5);
    assert_eq!(stuck.narrow.held(), (0, 4));
    // Their results have no receiver.
    stuck.release(4);
    until(|| stuck.narrow.held() == (0, 0));
    (6..20).for_each(|id| ready(&mut client, id));
    drop(client);
    stuck.narrow.stop();
}

// covers: B-174
#[test]
fn waiting_call_takes_the_place_of_a_cancelled_one() {
    let stuck = Stuck::new(PoolBounds { threads: 1, share: 1, abandoned: 1, patience: LONG }, None);
    let mut client = stuck.narrow.connect(Kind::Lines);
    stuck.enter(&mut client, 1..=1);
    call_tool(&mut client, 2, "ready", "{}");
    until(|| stuck.narrow.driver.waiting_handlers() == 1);
    cancel(&mut client, 1);
    assert!(answer(&client).contains(r#""id":2,"#));
    assert_eq!(stuck.narrow.driver.waiting_handlers(), 0);
    stuck.release(1);
    drop(client);
    stuck.narrow.stop();
}

// covers: B-174
#[test]
fn deadline_and_disconnect_free_the_place_of_a_handler() {
    // The other tool has it as well.
    for deadline in [Some(Duration::from_secs(3)), None] {
        let stuck = Stuck::new(PoolBounds { threads: 1, share: 1, abandoned: 1, patience: LONG }, deadline);
        let mut client = stuck.narrow.connect(Kind::Lines);
        stuck.enter(&mut client, 1..=1);
        if deadline.is_some() {
            assert!(answer(&client).contains("-32603"), "the deadline is over");
        } else {
            drop(client);
            client = stuck.narrow.connect(Kind::Lines);
        }
        ready(&mut client, 2);
        stuck.release(1);
        drop(client);
        stuck.narrow.stop();
    }
}

// covers: B-174
#[test]
fn full_pool_emits_a_diagnostic_and_answers_busy() {
    let patience = Some(Duration::from_millis(200));
    let stuck = Stuck::new(PoolBounds { threads: 1, share: 1, abandoned: 1, patience }, None);
    let mut client = stuck.narrow.connect(Kind::Lines);
    stuck.enter(&mut client, 1..=1);
    call_tool(&mut client, 2, "ready", "{}");
    refused(&client, 2, "the server is busy");
    let told = stuck.events.recv_timeout(BOUND).expect("a diagnostic");
    let Event::Diagnostic(told) = told else { panic!("{told:?}") };
    assert_eq!((told.kind, told.kind.code()), (DiagnosticKind::StuckHandlers, "stuck-handlers"));
    assert_eq!(told.detail, "1 handlers run, 0 of them abandoned; 1 requests waited");
    // At once, without another diagnostic.
    for id in 3..9 {
        call_tool(&mut client, id, "ready", "{}");
        refused(&client, id, "the server is busy");
    }
    assert_eq!(stuck.diagnostics(), [(DiagnosticKind::StuckHandlers, 1)].into());
    stuck.release(1);
    assert!(answer(&client).contains("late"));
    until(|| {
        call_tool(&mut client, 9, "ready", "{}");
        answer(&client).contains(r#""text":"ready""#)
    });
    drop(client);
    stuck.narrow.stop();
}

// covers: B-174
#[test]
fn more_abandoned_handlers_than_permitted_are_an_error() {
    let stuck = Stuck::new(PoolBounds { threads: 1, share: 1, abandoned: 2, patience: LONG }, None);
    let mut client = stuck.narrow.connect(Kind::Lines);
    for id in 1..=3 {
        stuck.enter(&mut client, id..=id);
        cancel(&mut client, id);
    }
    until(|| stuck.diagnostics().contains_key(&DiagnosticKind::StuckHandlers));
    for id in 4..9 {
        call_tool(&mut client, id, "ready", "{}");
        refused(&client, id, "handlers do not return");
    }
    assert_eq!((stuck.narrow.held(), stuck.diagnostics().len()), ((0, 3), 1));
    // One that returns makes room.
    stuck.release(1);
    until(|| {
        call_tool(&mut client, 9, "ready", "{}");
        answer(&client).contains(r#""text":"ready""#)
    });
    stuck.release(2);
    drop(client);
    stuck.narrow.stop();
}

/// Sends a POST of 2025-11-25.
fn post(client: &mut UnixStream, session: Option<&str>, body: &str) {
    let session = session.map_or(String::new(), |id| format!("Mcp-Session-Id: {id}\r\n"));
    write!(
        client,
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: application/json, text/event-stream\r\n\
         Content-Type: application/json\r\nMCP-Protocol-Version: 2025-11-25\r\n{session}Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .expect("written");
}

fn legacy_call(id: u32, tool: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","arguments":{{}}}}}}"#)
}

/// Reads a response up to this text. Returns what was read.
fn read_to(client: &UnixStream, last: &str) -> String {
    client.set_read_timeout(Some(BOUND)).expect("a socket");
    let (mut said, mut byte) = (Vec::new(), [0]);
    while !said.ends_with(last.as_bytes()) {
        (&mut &*client)
            .read_exact(&mut byte)
            .unwrap_or_else(|e| panic!("{e} after {}", String::from_utf8_lossy(&said)));
        said.push(byte[0]);
    }
    String::from_utf8(said).expect("text")
}

// covers: B-174
#[test]
fn client_that_leaves_and_cannot_resume_frees_its_place() {
    let patience = Some(Duration::from_secs(3));
    let stuck = Stuck::new(PoolBounds { threads: 1, share: 1, abandoned: 1, patience }, None);
    let hello = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;
    let mut client = stuck.narrow.connect(Kind::HttpServer);
    post(&mut client, None, hello);
    let head = read_to(&client, "\r\n\r\n");
    let session = head.lines().find_map(|line| {
        let (name, value) = line.split_once(": ")?;
        name.eq_ignore_ascii_case("mcp-session-id").then(|| value.trim().to_owned())
    });
    let session = session.expect("a session");
    let ready = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    post(&mut client, Some(&session), ready);
    read_to(&client, "HTTP/1.1 202");
    // A client that closes with an unread response resets its connection.
    let mut gone = stuck.narrow.connect(Kind::HttpServer);
    post(&mut gone, Some(&session), r#"{"jsonrpc":"2.0","id":0,"method":"ping"}"#);
    post(&mut gone, Some(&session), &legacy_call(1, "stuck"));
    stuck.entered.recv_timeout(BOUND).expect("entered");
    drop(gone);
    // It is not cancelled.
    until(|| stuck.narrow.held() == (1, 1));
    post(&mut client, Some(&session), &legacy_call(2, "ready"));
    read_to(&client, r#""text":"ready""#);
    stuck.release(1);
    until(|| stuck.narrow.held() == (0, 0));
    drop(client);
    stuck.narrow.stop();
}
