//! The example on tokio as a user runs it: against programs, and against the clients and servers of
//! another adapter.

#[path = "../../examples/tokio/driver.rs"]
mod driver;
#[path = "../../examples/tokio/streams.rs"]
mod streams;

use driver::Io;
use mcp_driver::{Client, ClientOptions, Server, ServerOptions, Target};
use mcp_proto::client::{Policy, Termination};
use mcp_proto::exchange::{Closed, Peer, Program, Sent, UnixSocket};
use mcp_proto::process::Stderr;
use mcp_proto::{CallError, CallToolResult, ElicitResult, Form, Object, Progress, Router, ToolError, tool, tools};
use mcp_tests::orphans::Pids;
use std::future::{Future, pending};
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, Once, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use tokio::runtime::Builder;
use tokio::sync::mpsc::unbounded_channel;
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::timeout;

/// The message of a handler that panics.
const ON_PURPOSE: &str = "on purpose";

/// Maximum time of a test.
const BOUND: Duration = Duration::from_secs(60);

/// Panics of tasks: of a driver that broke a rule of the engine, or of a handler.
static PANICS: Mutex<Vec<String>> = Mutex::new(Vec::new());

fn watch_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            let text = info.to_string();
            if !text.contains(ON_PURPOSE) {
                PANICS.lock().unwrap_or_else(PoisonError::into_inner).push(text);
            }
            before(info);
        }));
    });
}

/// Runs a test on one thread and on several, since a driver must not depend on either. No task may
/// panic, except for a handler that does so on purpose.
fn run<F: Future<Output = ()>>(test: impl Fn() -> F) {
    watch_panics();
    for mut runtime in [Builder::new_current_thread(), Builder::new_multi_thread()] {
        let runtime = runtime.enable_all().build().expect("a runtime");
        runtime.block_on(async { timeout(BOUND, test()).await.expect("it ends in time") });
    }
    let panics = PANICS.lock().unwrap_or_else(PoisonError::into_inner).clone();
    assert!(panics.is_empty(), "{panics:?}");
}

#[derive(serde::Serialize, serde::Deserialize)]
struct Text {
    text: String,
}

/// A tool of each kind.
fn router() -> Router {
    let text = |length: usize| "x".repeat(length);
    Router::new("served", "1.0")
        .tool_async(tool("quick"), |_cx, ()| async { Ok("done") })
        .tool(tool("slow"), |_cx, ()| {
            thread::park_timeout(Duration::from_millis(100));
            Ok("done")
        })
        .tool_async(tool("never"), |cx, ()| async move {
            let _ = cx.progress(Progress::new(0.0));
            pending::<Result<(), ToolError>>().await
        })
        .tool(tool("large"), move |_cx, ()| Ok(text(1 << 20)))
        .tool_async(tool("large_async"), move |_cx, ()| async move { Ok(text(1 << 20)) })
        .tool(tool("length"), |_cx, Text { text }| Ok(text.len()))
        .tool_async(tool("panics"), |_cx, ()| async { panics() })
        .tool(tool("panics_on_a_thread"), |_cx, ()| panics())
        .tool(tool("greets"), |cx, ()| {
            let asked: Option<Text> = cx.elicit("text", Form::new("Say something").text("text"))?.content()?;
            Ok(asked.map_or_else(String::new, |asked| asked.text))
        })
}

fn panics() -> Result<(), ToolError> {
    panic!("{ON_PURPOSE}")
}

/// The engine of each server checks the drivers of its connections.
fn service() -> (Router, ServerOptions) {
    (router(), ServerOptions::new().checked())
}

/// The engine of each client checks the driver.
fn options() -> ClientOptions {
    ClientOptions::new()
        .checked()
        .stderr(Stderr::Discard)
        .on_elicit(|_| ElicitResult::Accept(Object::new().with("text", "hello")))
}

fn first(result: Result<CallToolResult, CallError>) -> String {
    result.expect("it succeeds").first_text().expect("a text").to_owned()
}

/// Makes calls of all kinds.
async fn converse(client: &Client) {
    client.ready().await.expect("connected");
    assert_eq!(client.pages(tools::list()).all().await.expect("a list").len(), 9);
    assert_eq!(first(client.call(tools::call("greets")).await), "hello");
    for name in ["large", "large_async"] {
        assert_eq!(first(client.call(tools::call(name)).await).len(), 1 << 20);
    }
    let large = Text { text: "x".repeat(1 << 20) };
    assert_eq!(first(client.call(tools::call("length").arguments(&large)).await), (1 << 20).to_string());
    for name in ["panics", "panics_on_a_thread"] {
        let failed = client.call(tools::call(name)).await;
        assert!(failed.as_ref().map_or(true, |result| result.is_error), "{failed:?}");
    }
    let many = (0..128).map(|n| client.start(tools::call(["quick", "slow"][n % 2])));
    for call in many.collect::<Vec<_>>() {
        assert_eq!(first(call.await), "done");
    }
    interrupt(client).await;
    assert_eq!(first(client.call(tools::call("quick")).await), "done");
}

/// Makes a call that is cancelled, one that is dropped, and one that takes too long.
async fn interrupt(client: &Client) {
    let (tell, mut told) = unbounded_channel();
    let never = || {
        let tell = tell.clone();
        client.start(tools::call("never").on_progress(move |_| tell.send(()).expect("the test waits")))
    };
    let call = never();
    let id = call.id().expect("it runs");
    let (ended, ()) = tokio::join!(call, async {
        told.recv().await.expect("it has begun");
        client.cancel(id, Some("no longer needed"));
    });
    assert!(matches!(ended, Err(CallError::Cancelled { .. })), "{ended:?}");
    tokio::select! {
        ended = never() => panic!("{ended:?}"),
        begun = told.recv() => begun.expect("it has begun"),
    }
    let began = Instant::now();
    let ended = client.call(tools::call("never").timeout(Duration::from_millis(300))).await;
    assert!(matches!(ended, Err(CallError::Timeout { .. })), "{ended:?}");
    assert!(began.elapsed() >= Duration::from_millis(300), "{:?}", began.elapsed());
}

/// Closes the client in order. Its driver then ends.
async fn close(client: Client, driver: JoinHandle<()>) {
    assert_eq!(client.close().await, Termination::Requested);
    driver.await.expect("no panic");
}

/// Makes the same calls with the client of the other adapter, on threads.
async fn converse_blocking(connect: impl FnOnce() -> mcp_blocking::Client + Send + 'static) {
    let conversation = move || {
        let client = connect();
        assert_eq!(first(client.call(tools::call("greets"))), "hello");
        for name in ["large", "large_async"] {
            assert_eq!(first(client.call(tools::call(name))).len(), 1 << 20);
        }
        let large = Text { text: "x".repeat(1 << 20) };
        assert_eq!(first(client.call(tools::call("length").arguments(&large))), (1 << 20).to_string());
        for name in ["panics", "panics_on_a_thread"] {
            let failed = client.call(tools::call(name));
            assert!(failed.as_ref().map_or(true, |result| result.is_error), "{failed:?}");
        }
        let many = (0..128).map(|n| client.start(tools::call(["quick", "slow"][n % 2])));
        many.collect::<Vec<_>>().into_iter().for_each(|call| assert_eq!(first(call.wait()), "done"));
        let ended = client.call(tools::call("never").timeout(Duration::from_millis(300)));
        assert!(matches!(ended, Err(CallError::Timeout { .. })), "{ended:?}");
        let call = client.start(tools::call("never"));
        call.cancel(Some("no longer needed"));
        assert!(matches!(call.wait(), Err(CallError::Cancelled { .. })));
        assert_eq!(client.close(), Termination::Requested);
    };
    spawn_blocking(conversation).await.expect("no panic");
}

/// Stops a server whose clients have gone. Nothing of them may be left.
async fn stop(server: &Server) {
    server.stop(Duration::from_secs(10)).await;
    server.wait().await;
    server.callbacks_ended().await;
    let stats = server.stats();
    assert_eq!((stats.channels, stats.running), (0, 0), "{stats:?}");
}

/// Both eras.
const POLICIES: [Policy; 2] = [Policy::Modern, Policy::Legacy];

fn of(policy: Policy) -> ClientOptions {
    options().set(move |config| config.policy = policy)
}

// ---- The client ----

#[test]
fn client_calls_the_http_server_of_another_adapter() {
    run(|| async {
        let server = mcp_blocking::serve_http(router(), "127.0.0.1:0").expect("listens");
        let url = format!("http://{}/mcp", server.local_addr().expect("an address"));
        for policy in POLICIES {
            let (client, driver) = driver::connect(url.as_str(), of(policy)).expect("a target");
            converse(&client).await;
            close(client, driver).await;
        }
        spawn_blocking(move || server.stop(Duration::from_secs(10))).await.expect("no panic");
    });
}

#[test]
fn client_calls_a_unix_socket_of_another_adapter() {
    run(|| async {
        let path = socket("client");
        let server = mcp_blocking::serve_unix(router(), &path).expect("listens");
        let target = UnixSocket(path.to_str().expect("unicode").into());
        let (client, driver) = driver::connect(target, options()).expect("a target");
        converse(&client).await;
        close(client, driver).await;
        spawn_blocking(move || server.stop(Duration::from_secs(10))).await.expect("no panic");
    });
}

#[test]
fn client_reports_a_target_that_cannot_be_opened() {
    run(|| async {
        let closed = std::net::TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        let refusing = format!("http://{}/mcp", closed.expect("a port"));
        let targets: [(Target<Io>, &str); 3] = [
            (target(Program::new("/nowhere/at/all")), "/nowhere/at/all: "),
            (target(refusing), "the connection was refused"),
            (target(UnixSocket("/nowhere/mcp.sock".into())), "/nowhere/mcp.sock: "),
        ];
        for (target, expected) in targets {
            let (client, driver) = driver::connect(target, options()).expect("a target");
            let why = client.ready().await.expect_err("no server").to_string();
            assert!(why.contains(expected), "{why}");
            driver.await.expect("no panic");
        }
    });
}

fn target(place: impl mcp_driver::IntoTarget<Io>) -> Target<Io> {
    place.into_target().expect("valid")
}

// ---- Programs ----

fn misbehaving(args: &[&str]) -> (Program, Pids) {
    let pids = Pids::default();
    (pids.of(Program::new(env!("CARGO_BIN_EXE_misbehaving")).args(args.iter().copied())), pids)
}

/// Waits until all processes have ended. A dead orphan may wait to be reaped by another process.
async fn end(pids: &Pids) {
    let began = Instant::now();
    while pids.count(|state, _| state != 'Z') > 0 {
        assert!(began.elapsed() < Duration::from_secs(10), "a process is left");
        tokio::task::yield_now().await;
    }
}

fn socket(name: &str) -> PathBuf {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    std::env::temp_dir().join(format!("mcp-tokio-{name}-{}-{count}.sock", std::process::id()))
}

#[test]
fn programs_in_their_own_way_are_understood_and_ended() {
    run(|| async {
        for args in [&[][..], &["--crlf"], &["--bom"], &["--logs"]] {
            let (program, pids) = misbehaving(args);
            let (client, driver) = driver::connect(program, options()).expect("a target");
            let text = Text { text: "x".repeat(1 << 20) };
            assert_eq!(first(client.call(tools::call("echo").arguments(&text)).await), text.text, "{args:?}");
            close(client, driver).await;
            assert_eq!(pids.all().len(), 1);
            end(&pids).await;
        }
    });
}

// covers: B-133
#[test]
fn descendant_that_holds_the_output_ends_with_the_client() {
    run(|| async {
        for args in [&["--grandchild"][..], &["--grandchild", "--ignore-eof"], &["--fork"]] {
            let (program, pids) = misbehaving(args);
            let quick = |config: &mut mcp_proto::ClientConfig| {
                let limits = &mut config.limits.frame;
                (limits.exit_timeout, limits.terminate_timeout) =
                    (Duration::from_millis(200), Duration::from_millis(200));
            };
            let (client, driver) = driver::connect(program, options().set(quick)).expect("a target");
            // A program that forks has exited. Its descendants then end, whether it was ready or
            // not.
            let _ = client.ready().await;
            let began = Instant::now();
            client.close().await;
            driver.await.expect("no panic");
            assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
            assert!(pids.all().len() >= 2);
            end(&pids).await;
        }
    });
}

#[test]
fn aborted_driver_kills_the_program_and_ends_the_calls() {
    run(|| async {
        let (program, pids) = misbehaving(&["--ignore-eof", "--ignore-term", "--grandchild"]);
        let (client, driver) = driver::connect(program, options()).expect("a target");
        client.ready().await.expect("connected");
        let call = client.start(tools::call("wait"));
        driver.abort();
        assert!(driver.await.expect_err("aborted").is_cancelled());
        let ended = call.await;
        assert!(matches!(ended, Err(CallError::Closed { .. })), "{ended:?}");
        end(&pids).await;
    });
}

#[test]
fn exit_of_a_program_has_its_status_and_its_last_words() {
    run(|| async {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&lines);
        let line = move |line: &str| heard.lock().unwrap_or_else(PoisonError::into_inner).push(line.to_owned());
        let (program, _pids) = misbehaving(&[]);
        let told = options().stderr(Stderr::Lines(Arc::new(line)));
        let (client, driver) = driver::connect(program, told).expect("a target");
        let ended = client.call(tools::call("crash")).await;
        let Err(CallError::Closed { sent: Sent::Maybe, why: Closed::Exited(status) }) = ended else {
            panic!("{ended:?}")
        };
        assert_eq!((status.code, status.signal), (None, Some(6)));
        assert!(status.to_string().contains("about to crash"), "{status}");
        driver.await.expect("no panic");
        let lines = lines.lock().unwrap_or_else(PoisonError::into_inner);
        assert!(lines.iter().any(|line| line == "about to crash"), "{lines:?}");
    });
}

// ---- The server ----

#[test]
fn http_server_serves_the_client_of_another_adapter() {
    run(|| async {
        let server = driver::server(service()).expect("a seed");
        let address = driver::listen_http(&server, "127.0.0.1:0").await.expect("listens");
        for policy in POLICIES {
            let url = format!("http://{address}/mcp");
            converse_blocking(move || mcp_blocking::connect_with(url, of(policy)).expect("connected")).await;
        }
        stop(&server).await;
        let refused = tokio::net::TcpStream::connect(address).await;
        assert!(refused.is_err(), "nothing listens any more");
    });
}

#[test]
fn unix_server_serves_the_client_of_another_adapter() {
    run(|| async {
        let path = socket("server");
        let server = driver::server(service()).expect("a seed");
        streams::listen_unix(&server, &path).expect("listens");
        let target = UnixSocket(path.to_str().expect("unicode").into());
        converse_blocking(move || mcp_blocking::connect_with(target, options()).expect("connected")).await;
        stop(&server).await;
        assert!(!path.exists(), "the file is left");
    });
}

#[test]
fn stdio_server_serves_the_client_of_another_adapter() {
    run(|| async {
        for policy in POLICIES {
            let ((input, to), (from, output)) = (io::pipe().expect("a pipe"), io::pipe().expect("a pipe"));
            let serving = tokio::spawn(streams::serve_blocking(service(), input, output));
            converse_blocking(move || mcp_blocking::connect_with((from, to), of(policy)).expect("connected")).await;
            serving.await.expect("no panic").expect("a seed");
        }
    });
}

#[test]
fn client_and_server_share_a_runtime_over_given_streams() {
    run(|| async {
        let (ours, theirs) = tokio::io::duplex(4 << 10);
        let serving = tokio::spawn(streams::serve(service(), pair(theirs)));
        let (client, driver) = driver::connect(Target::given(pair(ours)), options()).expect("a target");
        converse(&client).await;
        close(client, driver).await;
        serving.await.expect("no panic").expect("a seed");
    });
}

fn pair(stream: tokio::io::DuplexStream) -> Io {
    let (reader, writer) = tokio::io::split(stream);
    Io::new(reader, writer, Peer::default())
}

#[test]
fn stop_of_a_server_ends_requests_that_run() {
    run(|| async {
        let server = driver::server(service()).expect("a seed");
        let address = driver::listen_http(&server, "127.0.0.1:0").await.expect("listens");
        let (client, driver) = driver::connect(format!("http://{address}/mcp"), options()).expect("a target");
        let (tell, mut told) = unbounded_channel();
        let call = client.start(tools::call("never").on_progress(move |_| tell.send(()).expect("the test waits")));
        let running = tokio::spawn(call);
        told.recv().await.expect("it has begun");
        assert_eq!(server.stats().running, 1);
        let began = Instant::now();
        server.stop(Duration::from_millis(200)).await;
        server.wait().await;
        server.callbacks_ended().await;
        assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
        let ended = running.await.expect("no panic");
        assert!(ended.as_ref().map_or(true, |result| result.is_error), "{ended:?}");
        client.close().await;
        driver.await.expect("no panic");
    });
}

#[test]
fn idle_client_and_server_do_not_spin() {
    run(|| async {
        let (ours, theirs) = tokio::io::duplex(4 << 10);
        let serving = tokio::spawn(streams::serve(service(), pair(theirs)));
        let (client, driver) = driver::connect(Target::given(pair(ours)), options()).expect("a target");
        client.ready().await.expect("connected");
        let call = client.start(tools::call("never").timeout(Duration::from_millis(700)));
        let before = cpu();
        let ended = call.await;
        assert!(matches!(ended, Err(CallError::Timeout { .. })), "{ended:?}");
        let spent = cpu() - before;
        assert!(spent < Duration::from_millis(350), "{spent:?} of processor time in 700 ms of waiting");
        close(client, driver).await;
        serving.await.expect("no panic").expect("a seed");
    });
}

/// Returns the processor time of this thread.
fn cpu() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).expect("below a second"))
}
