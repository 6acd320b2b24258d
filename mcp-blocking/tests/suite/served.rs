//! This server with this client: as a program, in this process, and over given streams, in both
//! eras.

use crate::common::{BOUND, bounded, quick, until};
use crate::own::{Add, Count, Text, router};
use mcp_blocking::{
    CallError, CallToolResult, Client, ClientOptions, ElicitRequest, ElicitResult, Object, Peer, Program, Server,
    ServerOptions, connect, connect_with, custom, serve, serve_stdio, tools,
};
use mcp_proto::Era;
use mcp_proto::client::{Policy, Termination, Verdict};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::{scope, spawn};
use std::time::Duration;

/// Set in the child that serves.
const CHILD: &str = "MCP_BLOCKING_TEST_CHILD";

/// Returns this test program as a server on its standard streams: it runs only the test that serves
/// in a child. Its client ignores what the test harness prints before.
fn child() -> Program {
    let this = std::env::current_exe().expect("a path");
    let this = this.to_str().expect("unicode");
    Program::new(this)
        .args(["served::server_program_responds_and_exits_at_eof", "--exact", "--quiet", "--nocapture"])
        .env(CHILD, "1")
}

/// Serves and exits if this is the child.
fn serve_if_child() {
    if std::env::var_os(CHILD).is_some() {
        serve_stdio(router().0).expect("served");
        println!("after the protocol, standard output is ours again");
        std::process::exit(0);
    }
}

fn config(policy: Policy) -> ClientOptions {
    quick(ClientOptions::new()).set(move |config| {
        config.policy = policy;
        config.timeout = Some(BOUND);
    })
}

fn both_eras(test: fn(Policy)) {
    bounded(move || test(Policy::Modern));
    bounded(move || test(Policy::Legacy));
}

fn text(result: Result<CallToolResult, CallError>) -> String {
    result.expect("a result").first_text().expect("a text").to_owned()
}

fn tell_name(name: &'static str) -> impl Fn(ElicitRequest) -> ElicitResult {
    move |request| {
        assert_eq!(request.message, "who are you?");
        ElicitResult::Accept(Object::new().with("name", name))
    }
}

fn without_arguments(client: &Client, name: &str) -> Result<CallToolResult, CallError> {
    client.call(tools::call(name))
}

// covers: S0-25, S0-26, B-143, STDIO-S-017
#[test]
fn server_program_responds_and_exits_at_eof() {
    serve_if_child();
    both_eras(|policy| {
        let client = connect_with(child(), config(policy)).expect("connected");
        assert_eq!(client.server().and_then(|server| server.implementation).expect("told").name, "served");
        let era = client.server().expect("told").version.era();
        assert_eq!(era, if policy == Policy::Modern { Era::Modern } else { Era::Legacy });
        assert_eq!(client.verdict(), client.server().map(|server| Verdict { version: server.version }));
        assert_eq!(text(client.call(tools::call("add").arguments(&Add { a: 1, b: 2 }))), "3");
        let pid: u32 = text(without_arguments(&client, "pid")).parse().expect("a number");
        assert!(!crate::common::members(pid).is_empty());
        assert_eq!(client.close(), Termination::Requested);
        assert!(crate::common::members(pid).is_empty());
    });
}

/// A given stream that fails with a panic.
struct Panics;

impl Read for Panics {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        std::panic::resume_unwind(Box::new("the reader fails"))
    }
}

impl Write for Panics {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        std::panic::resume_unwind(Box::new("the writer fails"))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn panic_of_a_given_stream_ends_the_serving() {
    bounded(|| {
        serve(router().0, Panics, io::sink()).expect("served");
        let (input, mut asks) = io::pipe().expect("a pipe");
        asks.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n").expect("written");
        // Its input stays open, so only the writer can end it.
        serve(router().0, input, Panics).expect("served");
        drop(asks);
    });
}

// covers: B-138
#[test]
fn limits_beyond_the_range_of_the_clock_are_no_limits() {
    bounded(|| {
        let config = config(Policy::Modern).set(|config| {
            config.limits.frame.exit_timeout = Duration::MAX;
            config.limits.frame.terminate_timeout = Duration::MAX;
            config.limits.frame.linger_timeout = Duration::MAX;
        });
        let client = connect_with(router().0, config).expect("connected");
        let call = client.start(tools::call("add").arguments(&Add { a: 1, b: 2 }));
        assert_eq!(text(call.wait_timeout(Duration::MAX).expect("ended")), "3");
        assert_eq!(client.close(), Termination::Requested);
    });
}

// covers: B-126, STDIO-S-006, S3-01, S2-07
#[test]
fn output_of_a_handler_or_its_child_never_reaches_the_wire() {
    both_eras(|policy| {
        let (told, events) = std::sync::mpsc::channel();
        let config = config(policy).on_event(move |event| drop(told.send(format!("{event:?}"))));
        let client = connect_with(child(), config).expect("connected");
        assert!(text(without_arguments(&client, "print")).contains("exit status: 0"));
        assert_eq!(text(client.call(tools::call("add").arguments(&Add { a: 1, b: 2 }))), "3");
        client.close();
        drop(client);
        let events: Vec<String> = events.iter().collect();
        assert!(!events.iter().any(|event| event.contains("no message") || event.contains("not this")), "{events:?}");
    });
}

// covers: B-147
#[test]
fn standard_output_is_restored_after_serving() {
    bounded(|| {
        let mut served = child().to_command([]);
        let served = served.stdin(Stdio::null()).stdout(Stdio::piped()).output().expect("started");
        let said = String::from_utf8(served.stdout).expect("unicode");
        assert!(said.contains("standard output is ours again"), "{said}");
        assert!(served.status.success());
    });
}

// covers: S2-01, PAGE-C-001
#[test]
fn router_in_this_process_lists_its_tools() {
    both_eras(|policy| {
        let router = router().0.configure(|config| config.limits.server.page_size = 3);
        let client = connect_with(router, config(policy)).expect("connected");
        let names: Vec<String> = client.pages(tools::list()).map(|tool| tool.expect("a tool").name).collect();
        assert_eq!(names, ["add", "echo", "boom", "pid", "print", "count", "greet", "roots", "slow", "meet"]);
        assert_eq!(client.close(), Termination::Requested);
        let held = |stats: mcp_blocking::ClientStats| (stats.calls, stats.channels, stats.detached_threads);
        until(|| held(client.stats()) == (0, 0, 0));
    });
}

// covers: PROG-B-003, B-054
#[test]
fn progress_callback_runs_on_waiting_thread_and_may_borrow() {
    both_eras(|policy| {
        let client = connect_with(router().0, config(policy)).expect("connected");
        let here = std::thread::current().id();
        let mut told = Vec::new();
        let count = tools::call("count").arguments(&Count { to: 5 }).on_progress(|progress| {
            assert_eq!(std::thread::current().id(), here);
            told.push(progress.progress);
        });
        assert_eq!(text(client.call(count)), "5");
        // Progress that the server could not send in time is reduced to the newest.
        assert_eq!(told.last(), Some(&5.0));
        assert!(told.windows(2).all(|pair| pair[0] < pair[1]), "{told:?}");
    });
}

// covers: B-073, S0-04
#[test]
fn callback_answers_a_request_for_input() {
    both_eras(|policy| {
        let client = connect_with(router().0, config(policy).on_elicit(tell_name("ada"))).expect("connected");
        assert_eq!(text(without_arguments(&client, "greet")), "hello ada");
    });
}

// covers: B-073
#[test]
fn callbacks_answer_sampling_and_roots() {
    both_eras(|policy| {
        let said = Object::new().with("role", "assistant").with("model", "none");
        let said = said.with("content", Object::new().with("type", "text").with("text", "yes"));
        let config = config(policy).roots(["file:///tmp"]).on_sample(move |_| Ok(said.clone()));
        let client = connect_with(router().0, config).expect("connected");
        let answer = text(without_arguments(&client, "roots"));
        assert!(answer.contains("file:///tmp") && answer.contains("yes"), "{answer}");
    });
}

// covers: B-073, B-280
#[test]
fn callback_may_call_the_same_client() {
    both_eras(|policy| {
        let own: Arc<OnceLock<Client>> = Arc::default();
        let seen = Arc::clone(&own);
        let config = config(policy).on_elicit(move |_| {
            let client = seen.get().expect("connected");
            let name = text(client.call(tools::call("echo").arguments(&Text { text: "bob".into() })));
            ElicitResult::Accept(Object::new().with("name", name.as_str()))
        });
        let client = connect_with(router().0, config).expect("connected");
        own.set(client.clone()).expect("once");
        assert_eq!(text(without_arguments(&client, "greet")), "hello bob");
        client.close();
    });
}

// covers: B-066, B-281
#[test]
fn panicking_callback_answers_with_an_error() {
    both_eras(|policy| {
        let fails = |_: ElicitRequest| std::panic::resume_unwind(Box::new("the callback fails"));
        let client = connect_with(router().0, config(policy).on_elicit(fails)).expect("connected");
        let greeted = without_arguments(&client, "greet");
        match policy {
            // A modern call fails on the client. A legacy server receives an error, and returns it.
            Policy::Modern => assert!(matches!(greeted, Err(CallError::Input(_))), "{greeted:?}"),
            _ => assert!(greeted.expect("a result").is_error),
        }
        assert_eq!(text(client.call(tools::call("add").arguments(&Add { a: 1, b: 2 }))), "3");
    });
}

// covers: B-281, B-066
#[test]
fn panicking_handler_responds_with_an_error() {
    both_eras(|policy| {
        let client = connect_with(router().0, config(policy)).expect("connected");
        let failed = without_arguments(&client, "boom").expect_err("no result");
        assert!(matches!(&failed, CallError::Rpc(error) if error.code == -32603), "{failed:?}");
        assert_eq!(text(client.call(tools::call("add").arguments(&Add { a: 1, b: 2 }))), "3");
    });
}

// covers: STDIO-S-013, CANC-B-010, CANC-C-002, S0-29
#[test]
fn cancellation_reaches_the_handler() {
    both_eras(|policy| {
        let (router, seen) = router();
        let client = connect_with(router, config(policy)).expect("connected");
        let slow = client.start(tools::call("slow"));
        seen.wait(|counts| counts.begun == 1);
        slow.cancel(Some("enough"));
        assert_eq!(slow.wait(), Err(CallError::Cancelled { reason: Some("enough".into()) }));
        seen.wait(|counts| counts.cancelled == 1);
        let dropped = client.start(tools::call("slow"));
        seen.wait(|counts| counts.begun == 2);
        drop(dropped);
        seen.wait(|counts| counts.cancelled == 2);
        assert_eq!(text(client.call(tools::call("add").arguments(&Add { a: 1, b: 2 }))), "3");
    });
}

// covers: TIME-B-002, B-060
#[test]
fn timeout_reaches_the_handler() {
    both_eras(|policy| {
        let (router, seen) = router();
        let client = connect_with(router, config(policy)).expect("connected");
        let ended = client.call(tools::call("slow").timeout(Duration::from_millis(100)));
        assert!(matches!(ended, Err(CallError::Timeout { .. })), "{ended:?}");
        // It may have been cancelled before it began.
        seen.wait(|counts| counts.begun == counts.cancelled);
    });
}

#[test]
fn request_of_a_slow_handler_gets_an_error() {
    both_eras(|policy| {
        let (router, seen) = router();
        let router = router.configure(|config| config.limits.server.handler_deadline = Some(Duration::from_millis(50)));
        let client = connect_with(router, config(policy)).expect("connected");
        let began = std::time::Instant::now();
        let failed = without_arguments(&client, "slow").expect_err("no result");
        assert!(matches!(&failed, CallError::Rpc(error) if error.code == -32603), "{failed:?}");
        assert!(began.elapsed() < BOUND / 2, "{:?}", began.elapsed());
        seen.wait(|counts| counts.begun == counts.cancelled);
    });
}

// covers: B-149
#[test]
fn handlers_see_the_end_of_their_connection() {
    both_eras(|policy| {
        let (router, seen) = router();
        let client = connect_with(router, config(policy)).expect("connected");
        let slow = client.start(tools::call("slow"));
        seen.wait(|counts| counts.begun == 1);
        client.close();
        assert!(matches!(slow.wait(), Err(CallError::Closed { .. })));
        seen.wait(|counts| counts.cancelled == 1);
    });
}

// covers: B-073
#[test]
fn handlers_run_concurrently() {
    both_eras(|policy| {
        let client = connect_with(router().0, config(policy)).expect("connected");
        let met: Vec<String> = scope(|scope| {
            let calls: Vec<_> = (0..2).map(|_| scope.spawn(|| text(without_arguments(&client, "meet")))).collect();
            calls.into_iter().map(|call| call.join().expect("no panic")).collect()
        });
        assert_eq!(met, ["met", "met"]);
    });
}

// covers: B-131, S2-09
#[test]
fn large_messages_in_both_directions_do_not_deadlock() {
    both_eras(|policy| {
        let client = connect_with(child(), config(policy)).expect("connected");
        scope(|scope| {
            for letter in ["a", "b", "c", "d"] {
                let client = &client;
                scope.spawn(move || {
                    let large = letter.repeat(1 << 20);
                    let echoed = text(client.call(tools::call("echo").arguments(&Text { text: large.clone() })));
                    assert!(echoed == large, "something else came back");
                });
            }
        });
    });
}

// covers: B-277, B-272, S0-26
#[test]
fn any_thread_may_close_while_others_wait() {
    both_eras(|policy| {
        let (router, seen) = router();
        let client = connect_with(router, config(policy)).expect("connected");
        scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| assert!(matches!(without_arguments(&client, "slow"), Err(CallError::Closed { .. }))));
            }
            seen.wait(|counts| counts.begun == 3);
            for _ in 0..2 {
                scope.spawn(|| assert_eq!(client.close(), Termination::Requested));
            }
        });
        assert!(matches!(without_arguments(&client, "add"), Err(CallError::Refused(_))));
    });
}

// covers: B-140, B-142, B-143, B-149, S2-45, STDIO-S-017
#[test]
fn server_returns_at_eof_after_writing_all_responses() {
    bounded(|| {
        let ((input, mut ask), (answers, output)) = (io::pipe().expect("a pipe"), io::pipe().expect("a pipe"));
        let (router, seen) = router();
        let serving = spawn(move || serve(router, input, output));
        let hello = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;
        let call = |id: &str, name: &str, arguments: &str| {
            format!(
                r#"{{"jsonrpc":"2.0","id":"{id}","method":"tools/call","params":{{"name":"{name}","arguments":{arguments}}}}}"#
            )
        };
        let (add, slow) = (call("one", "add", r#"{"a":1,"b":2}"#), call("two", "slow", "{}"));
        write!(ask, "{hello}\n{add}\n{slow}\n").expect("written");
        let mut lines = BufReader::new(answers).lines().map(|line| line.expect("a line"));
        assert!(lines.next().expect("a line").contains(r#""protocolVersion":"2025-06-18""#));
        let sum = lines.next().expect("a line");
        assert!(sum.contains(r#""id":"one""#) && sum.contains(r#""text":"3""#), "{sum}");
        seen.wait(|counts| counts.begun == 1);
        write!(ask, r#"{{"jsonrpc":"2.0","id":"three","method":"ping"}}"#).expect("written");
        drop(ask);
        // The last line has no newline, and counts.
        assert!(lines.next().expect("a line").contains(r#""id":"three""#));
        assert_eq!(lines.next(), None);
        serving.join().expect("no panic").expect("no error");
        seen.wait(|counts| counts.cancelled == 1);
    });
}

// covers: CUST-B-001, CUST-B-005
#[test]
fn pair_of_streams_connects_both_sides() {
    both_eras(|policy| {
        let (ours, theirs) = std::os::unix::net::UnixStream::pair().expect("a pair");
        let serving = spawn(move || serve(router().0, theirs.try_clone().expect("a clone"), theirs));
        let pair = (ours.try_clone().expect("a clone"), ours);
        let client = connect_with(pair, config(policy)).expect("connected");
        assert_eq!(text(client.call(tools::call("add").arguments(&Add { a: 1, b: 2 }))), "3");
        let closing = std::time::Instant::now();
        assert_eq!(client.close(), Termination::Requested);
        assert!(closing.elapsed() < BOUND / 2, "{:?}", closing.elapsed());
        drop(client);
        drop(serving);
    });
}

// covers: B-064
#[test]
fn custom_methods_and_notifications_pass() {
    both_eras(|policy| {
        let noted: Arc<Mutex<Vec<String>>> = Arc::default();
        let router =
            router().0.method("custom/double", |_cx, count: Count| Ok(mcp_blocking::Json(Count { to: count.to * 2 })));
        let told = Arc::clone(&noted);
        let ((input, ask), (answers, output)) = (io::pipe().expect("a pipe"), io::pipe().expect("a pipe"));
        let serving = ServerOptions::new().threads(2).on_event(move |event| {
            if let mcp_proto::server::Event::Notification { method, .. } = event {
                told.lock().expect("no panic").push(method);
            }
        });
        spawn(move || serve((router, serving), input, output));
        let client = connect_with((answers, ask), config(policy)).expect("connected");
        client.notify("custom/note", Object::new()).expect("accepted").wait().expect("its bytes are written");
        let doubled: Count = client.call(custom("custom/double", &Count { to: 4 })).expect("a result");
        assert_eq!(doubled.to, 8);
        until(|| *noted.lock().expect("no panic") == ["custom/note"]);
    });
}

// covers: S0-25
#[test]
fn default_path_needs_one_argument() {
    bounded(|| {
        let client = connect(router().0).expect("connected");
        assert_eq!(text(client.call(tools::call("add").arguments(&Add { a: 2, b: 2 }))), "4");
    });
}

#[test]
fn wait_returns_when_the_server_was_stopped() {
    bounded(|| {
        let server = Server::new(router().0, ServerOptions::new()).expect("threads");
        let stopped = AtomicBool::new(false);
        let ((input, mut ask), (answers, output)) = (io::pipe().expect("a pipe"), io::pipe().expect("a pipe"));
        scope(|scope| {
            let waiting = scope.spawn(|| {
                server.wait();
                assert!(stopped.load(Ordering::SeqCst), "it waited for something else");
            });
            let serving = scope.spawn(|| server.serve((input, output), Peer::default()));
            ask.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n").expect("written");
            let mut answer = String::new();
            BufReader::new(answers).read_line(&mut answer).expect("an answer");
            drop(ask);
            serving.join().expect("no panic").expect("served");
            // The last connection has ended, but there may be others.
            assert_eq!((server.stats().channels, waiting.is_finished()), (0, false));
            stopped.store(true, Ordering::SeqCst);
            server.stop(BOUND);
            waiting.join().expect("no panic");
        });
    });
}
