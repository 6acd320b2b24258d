//! The bare loop in both roles: over a program's streams, over a socket pair, over HTTP.
//!
//! No test waits, except for the real shutdown timers. A hanging test ends by the timeouts of the
//! engine.

use mcp_driver::check;
use mcp_proto::client::{ClientCommands, Event, Policy, Termination};
use mcp_proto::error::{DiagnosticKind, NegotiationCause, Stage};
use mcp_proto::exchange::{Closed, ExitStatus, Program, Sent};
use mcp_proto::input::CallId;
use mcp_proto::rpc::Object;
use mcp_proto::{Call, CallError, ClientConfig, ElicitResult, InputAnswer, Method, Router, tools};
use mcp_tests::poll_loop::{self, Hooks, PollLoop};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

const TESTS: &str = env!("CARGO_BIN_EXE_mcp-tests");
const SERVER: &str = "bare-server";
const MODERN: &str = "2026-07-28";

fn program(policy: Policy) -> ClientConfig {
    let mut config = ClientConfig::program(Program::new(TESTS).args([SERVER])).with_elicitation();
    config.policy = policy;
    // A server that ignores the end of its input would be noticed.
    config.limits.frame.exit_timeout = Duration::from_secs(20);
    config
}

/// The loop panics if it breaks a rule for drivers.
fn checked(mut client: PollLoop) -> PollLoop {
    check(&mut client.engine);
    client
}

fn start(config: ClientConfig) -> PollLoop {
    checked(PollLoop::new(config).expect("there is randomness"))
}

/// Makes a call, and prints every event until it has ended.
fn run<M: Method>(
    client: &mut PollLoop,
    call: Call<M>,
    mut told: impl FnMut(&mut PollLoop, CallId, Event),
) -> Result<M::Output, CallError> {
    let now = client.now();
    let calling = client.engine.call(now, call).expect("there is room");
    loop {
        while let Some(event) = client.next_event() {
            match event {
                Event::Ended { call, outcome } if call == calling.id() => return calling.finish(outcome),
                event => told(client, calling.id(), event),
            }
        }
        client.turn().expect("poll works");
    }
}

fn text(client: &mut PollLoop, tool: &str, arguments: &Value) -> String {
    let result = client.call(tools::call(tool).arguments(arguments)).expect("it succeeds");
    result.first_text().expect("it says something").to_string()
}

/// Every action of a client, once.
fn conversation(client: &mut PollLoop) {
    assert_eq!(text(client, "add", &json!({"a": 2, "b": 3})), "5");

    let mut steps = Vec::new();
    let count = tools::call("count").arguments(&json!({"to": 3})).progress();
    let counted = run(client, count, |_, _, event| {
        if let Event::Progress { progress, .. } = event {
            steps.push(progress.progress);
        }
    });
    assert_eq!(counted.expect("it succeeds").first_text(), Some("3"));
    assert_eq!(steps, [1.0, 2.0, 3.0]);

    for (answer, said) in
        [(ElicitResult::Accept(Object::new().with("why", "because")), "done"), (ElicitResult::Decline, "left alone")]
    {
        let confirmed = run(client, tools::call("confirm"), |client, _, event| {
            if let Event::InputNeeded { token, .. } = event {
                let now = client.now();
                client.engine.answer(now, token, InputAnswer::Elicitation(answer.clone()));
            }
        });
        assert_eq!(confirmed.expect("it succeeds").first_text(), Some(said));
    }

    // Cancelled once it runs: the handler has sent progress.
    let cancelled = run(client, tools::call("wait").progress(), |client, id, event| {
        if let Event::Progress { .. } = event {
            let now = client.now();
            client.engine.cancel(now, id, Some("enough"));
        }
    });
    assert_eq!(cancelled, Err(CallError::Cancelled { reason: Some("enough".into()) }));
    // Over HTTP this call has another connection, and may overtake the end of the cancelled one.
    let has_stopped = (0..1000).any(|_| text(client, "stopped", &json!({})) == "1");
    assert!(has_stopped, "the handler stopped");
}

/// Returns the negotiated version, and the number of tools.
fn greet(client: &mut PollLoop) -> (String, usize) {
    let mut version = String::new();
    let page = run(client, tools::list(), |_, _, event| {
        if let Event::Ready(info) = event {
            version = info.version.to_string();
        }
    });
    (version, page.expect("it succeeds").elements.len())
}

// covers: STDIO-C-001, STDIO-C-008, STDIO-C-012, STDIO-S-013, STDIO-S-017, B-137, S2-04, S2-45
#[test]
fn conversation_with_a_program_works_in_both_eras() {
    for (policy, version) in [(Policy::Auto, MODERN), (Policy::Legacy, "2025-11-25")] {
        let mut client = start(program(policy));
        assert_eq!(greet(&mut client), (version.to_string(), 8));
        conversation(&mut client);
        let pid = text(&mut client, "pid", &json!({})).parse().expect("it is a number");
        let begin = Instant::now();
        client.close().expect("poll works");
        assert!(begin.elapsed() < Duration::from_secs(10), "the server ends when its input does");
        assert!(!exists(pid), "it was reaped");
        let refused = client.call(tools::list());
        assert!(matches!(refused, Err(CallError::Refused(_))), "{refused:?}");
    }
}

// covers: S2-09, S2-10, B-117
#[test]
fn messages_larger_than_the_pipe_pass_in_both_directions() {
    let mut client = start(program(Policy::Auto));
    let texts: Vec<String> = (0..6).map(|n| char::from(b'a' + n).to_string().repeat(300_000)).collect();
    let mut callings = Vec::new();
    for text in &texts {
        let now = client.now();
        let call = tools::call("echo").arguments(&json!({"text": text}));
        callings.push(client.engine.call(now, call).expect("there is room").id());
    }
    let mut ended = Vec::new();
    while ended.len() < texts.len() {
        client.turn().expect("poll works");
        while let Some(event) = client.next_event() {
            if let Event::Ended { call, outcome } = event {
                ended.push((call, outcome.expect("it succeeds").json.as_str().to_string()));
            }
        }
    }
    ended.sort();
    for ((call, json), (id, text)) in ended.iter().zip(callings.iter().zip(&texts)) {
        assert_eq!(call, id);
        assert!(json.contains(text.as_str()), "the answer to call {} is another's", call.0);
    }
    client.close().expect("poll works");
}

// covers: STDIO-C-015, STDIO-C-016, B-133, B-137
#[test]
fn unwilling_program_is_killed_with_its_children() {
    let stubborn = "trap '' TERM; sleep 1000 & echo $$ $!; exec sleep 1000";
    let mut config = ClientConfig::program(Program::new("sh").args(["-c", stubborn]));
    config.limits.frame.exit_timeout = Duration::from_millis(20);
    config.limits.frame.terminate_timeout = Duration::from_millis(20);
    let mut client = start(config);
    // It is not a server: its line is reported, and contains the process id to check.
    let line = loop {
        match client.next_event() {
            Some(Event::Diagnostic(diagnostic)) if diagnostic.kind == DiagnosticKind::BadMessage => {
                break diagnostic.detail;
            }
            Some(_) => {}
            None => assert!(client.turn().expect("poll works")),
        }
    };
    let numbers = line.split(|c: char| !c.is_ascii_digit()).filter_map(|number| number.parse().ok());
    let pids: Vec<i32> = numbers.filter(|pid| *pid > 1).collect();
    assert!(pids.len() == 2 && pids.iter().all(|pid| runs(*pid)), "{line}");
    client.close().expect("poll works");
    assert!(!exists(pids[0]), "the program was reaped");
    // Its orphan is dead, and reaped by another process.
    let end = Instant::now() + Duration::from_secs(10);
    while runs(pids[1]) {
        assert!(Instant::now() < end, "the program's child still runs");
        thread::yield_now();
    }
}

// covers: S0-33, S2-13
#[test]
fn exit_of_a_program_ends_its_calls_with_its_status() {
    let mut client = start(program(Policy::Auto));
    greet(&mut client);
    let why = Closed::Exited(ExitStatus::exited(3));
    assert_eq!(client.call(tools::call("exit")), Err(CallError::Closed { sent: Sent::Maybe, why: why.clone() }));
    while client.turn().expect("poll works") {}
    let last = std::iter::from_fn(|| client.next_event()).last();
    assert_eq!(last, Some(Event::Terminated(Termination::Closed(why))));
}

#[test]
fn failed_open_is_reported() {
    let port =
        TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("there is a port").port();
    let refusing = ClientConfig::url(&format!("http://127.0.0.1:{port}/mcp")).expect("it is a url");
    for (config, expected) in [
        (ClientConfig::program(Program::new("/nowhere/at/all")), "/nowhere/at/all: "),
        (ClientConfig::given(), "the given channel: "),
        (refusing, "the connection was refused"),
    ] {
        let mut client = start(config);
        while client.turn().expect("poll works") {}
        let last = std::iter::from_fn(|| client.next_event()).last();
        let Some(Event::Terminated(Termination::Negotiation(error))) = last else { panic!("{last:?}") };
        assert_eq!(error.stage, Stage::Connect);
        let NegotiationCause::Closed(why) = error.cause else { panic!("{error}") };
        assert!(why.to_string().contains(expected), "{why}");
    }
}

/// Starts a server over HTTP that accepts this number of connections. Returns it with the
/// configuration of a client.
fn serve_http(connections: &str) -> (Guard, ClientConfig) {
    let mut command = Command::new(TESTS);
    let mut child = command.args([SERVER, "http", connections]).stdout(Stdio::piped()).spawn().expect("it starts");
    let mut url = String::new();
    BufReader::new(child.stdout.take().expect("it is a pipe")).read_line(&mut url).expect("it says where it is");
    (Guard(child), ClientConfig::url(url.trim()).expect("it is a url").with_elicitation())
}

/// Ends the process if the test fails before that.
struct Guard(Child);

impl Guard {
    fn succeeds(&mut self) -> bool {
        self.0.wait().expect("it is our child").success()
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

// covers: HTTP-C-016, S2-19, B-153
#[test]
fn one_connection_carries_json_and_streams_in_turn() {
    let (mut server, config) = serve_http("1");
    let mut client = start(config);
    assert_eq!(greet(&mut client), (MODERN.to_string(), 8));
    // Each response fits one write. Otherwise its last bytes may follow the result, and the next
    // call opens another connection.
    for n in 1..13 {
        assert_eq!(text(&mut client, "add", &json!({"a": n, "b": n})), (n + n).to_string());
        let count = tools::call("count").arguments(&json!({"to": n})).progress();
        let mut seen = 0;
        let counted = run(&mut client, count, |_, _, event| seen += i64::from(matches!(event, Event::Progress { .. })));
        assert_eq!((counted.expect("it succeeds").first_text(), seen), (Some(n.to_string().as_str()), n));
    }
    client.close().expect("poll works");
    assert!(server.succeeds(), "the server ends with its only connection");
}

// covers: HTTP-S-028, HTTP-S-029, CANC-S-003
#[test]
fn conversation_over_http_works_and_cancels_by_closing() {
    let (mut server, config) = serve_http("2");
    let mut client = start(config);
    conversation(&mut client);
    client.close().expect("poll works");
    assert!(server.succeeds(), "the cancelled call took one of two connections with it");
}

// covers: B-189
#[test]
fn connection_beyond_the_limit_gets_the_reason() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("there is a port");
    let address = listener.local_addr().expect("it is bound");
    let server = thread::spawn(move || {
        let router = Router::new("capped", "1.0").configure(|config| config.limits.server.max_exchanges = 1);
        poll_loop::serve_http(&router, listener, 2, Hooks { begin: |server| drop(check(server)), ..Hooks::default() })
    });
    let first = TcpStream::connect(address).expect("it listens");
    let mut second = TcpStream::connect(address).expect("it listens");
    second.set_read_timeout(Some(Duration::from_secs(20))).expect("it is not zero");
    let mut text = String::new();
    second.read_to_string(&mut text).expect("it is answered, and closed in order");
    assert!(text.starts_with("HTTP/1.1 503 ") && text.to_lowercase().contains("retry-after: "), "{text}");
    drop((first, second));
    server.join().expect("no panic").expect("no error");
}

/// Forwards all input until its end, and returns it.
fn relay(mut from: UnixStream, mut to: UnixStream) -> JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let (mut seen, mut buffer) = (Vec::new(), [0; 4096]);
        while let Ok(n @ 1..) = from.read(&mut buffer) {
            seen.extend_from_slice(&buffer[..n]);
            to.write_all(&buffer[..n]).expect("the other side reads on");
        }
        to.shutdown(Shutdown::Write).expect("it is open");
        seen
    })
}

/// The messages, one in each line.
fn messages(bytes: &[u8]) -> Vec<Value> {
    assert_eq!(bytes.last(), Some(&b'\n'));
    let text = std::str::from_utf8(bytes).expect("it is utf-8");
    let messages: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("it is json")).collect();
    assert!(messages.iter().all(|message| message["jsonrpc"] == "2.0"));
    messages
}

/// Runs the conversation over a Unix socket pair, and returns the messages in either direction.
fn over_a_socket_pair(policy: Policy) -> (Vec<Value>, Vec<Value>) {
    let pair = || UnixStream::pair().expect("there are descriptors");
    let ((ours, client_end), (server_end, theirs)) = (pair(), pair());
    let twice = |socket: &UnixStream| socket.try_clone().expect("there are descriptors");
    let streams = [twice(&theirs), theirs].map(OwnedFd::from).map(Stdio::from);
    let [input, output] = streams;
    // The command keeps its copies of the socket until it is dropped.
    let child = Command::new(TESTS).arg(SERVER).stdin(input).stdout(output).spawn().expect("it starts");
    let mut server = Guard(child);
    let up = relay(twice(&client_end), twice(&server_end));
    let down = relay(server_end, client_end);

    let mut config = ClientConfig::given().with_elicitation();
    config.policy = policy;
    let mut client = checked(PollLoop::over(config, ours).expect("there is randomness"));
    conversation(&mut client);
    client.close().expect("poll works");
    assert!(server.succeeds(), "the server ends when its input does");
    (messages(&up.join().expect("no panic")), messages(&down.join().expect("no panic")))
}

// covers: CUST-B-002, CUST-B-005, CUST-B-006, STDIO-B-002, STDIO-S-006, STDIO-C-007, STDIO-C-009,
// STDIO-S-010, STDIO-B-021
#[test]
fn socket_pair_carries_the_modern_era_like_stdio() {
    let (up, down) = over_a_socket_pair(Policy::Modern);
    assert_eq!(up[0]["method"], "server/discover");
    for message in &up {
        assert!(message["method"].is_string(), "only requests and notifications go up: {message}");
        if message.get("id").is_some() {
            let meta = &message["params"]["_meta"];
            assert_eq!(meta["io.modelcontextprotocol/protocolVersion"], MODERN, "{message}");
            assert!(meta["io.modelcontextprotocol/clientCapabilities"]["elicitation"].is_object(), "{message}");
        }
    }
    for message in &down {
        let response = message.get("method").is_none();
        assert_eq!(response, message.get("id").is_some(), "only responses and notifications go down: {message}");
    }
    let cancel = up.iter().find(|message| message["method"] == "notifications/cancelled").expect("one was cancelled");
    let answered = down.iter().any(|message| message["id"] == cancel["params"]["requestId"]);
    assert!(!answered, "a cancelled request is not answered");
}

// covers: CUST-B-003, CUST-B-005, INIT-B-001, INIT-C-002, INIT-S-003, INIT-C-004, INIT-B-017
#[test]
fn socket_pair_keeps_the_legacy_lifecycle() {
    let (up, down) = over_a_socket_pair(Policy::Legacy);
    let methods: Vec<_> = up.iter().take(3).map(|message| message["method"].as_str()).collect();
    assert_eq!(methods, [Some("initialize"), Some("notifications/initialized"), Some("tools/call")]);
    assert_eq!(up[0]["params"]["protocolVersion"], "2025-11-25");
    assert!(up[0]["params"]["capabilities"]["elicitation"].is_object());
    assert!(up[0]["params"]["clientInfo"]["name"].is_string());
    assert_eq!(down[0]["id"], up[0]["id"]);
    let result = &down[0]["result"];
    assert_eq!((&result["protocolVersion"], &result["serverInfo"]["name"]), (&json!("2025-11-25"), &json!("bare")));
    assert!(result["capabilities"]["tools"].is_object());
    // The input request goes down as a request, and its response up: this era has both.
    let asked = down.iter().find(|message| message["method"] == "elicitation/create").expect("the user was asked");
    assert!(up.iter().any(|message| message["id"] == asked["id"] && message.get("result").is_some()));
    assert!(up.iter().all(|message| message["method"] != "shutdown" && message["method"] != "exit"));
}

fn exists(pid: i32) -> bool {
    rustix::process::Pid::from_raw(pid).is_some_and(|pid| rustix::process::test_kill_process(pid).is_ok())
}

/// Returns whether it exists and has not ended. An orphan that is not reaped yet exists, but has
/// ended.
fn runs(pid: i32) -> bool {
    let state = Command::new("ps").args(["-o", "stat=", "-p", &pid.to_string()]).output();
    exists(pid) && state.is_ok_and(|state| !state.stdout.starts_with(b"Z"))
}
