//! Real servers: this binary as a child over standard input and output, socket pairs, and a router
//! in this process.

use crate::calc::{Add, Count, Nothing, Seen, Text, name, router};
use crate::common::{run, until};
use mcp_proto::CallError;
use mcp_proto::exchange::{Closed, Program};
use mcp_smol::{
    Client, ClientEvent, ClientOptions, ElicitResult, Policy, Stderr, Termination, connect, connect_driven, custom,
    serve, serve_stdio, tool, tools,
};
use smol::net::unix::UnixStream;
use std::fs::File;
use std::future::{Future, poll_fn};
use std::io::{Read, Seek, SeekFrom, Write};
use std::pin::Pin;
use std::process::Stdio;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, OnceLock};
use std::task::{Context, Wake, Waker};

/// Set for the child that other tests start.
const CHILD: &str = "MCP_SMOL_TEST_CHILD";

/// The server that other tests start: this binary, which runs only this test. Serves and exits if
/// it is that child.
fn serve_if_child() {
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    let server = router(&Seen::default()).tool_async(tool("print"), |_cx, _: Nothing| async {
        println!("this is no message");
        let child = smol::process::Command::new("/bin/sh").args(["-c", "cat; echo not this either"]).status().await;
        Ok(format!("{:?}", child.map(|status| status.code())))
    });
    let served = smol::block_on(serve_stdio(server));
    println!("standard output is ours again");
    // At once, so that the test harness does not write to the connection.
    std::process::exit(if served.is_ok() { 0 } else { 1 });
}

/// Returns this binary as a server. The harness first writes a line, which is an invalid message
/// for a client.
fn me() -> Program {
    let me = std::env::current_exe().expect("a path");
    let args = ["--exact", "serve::child_negotiates_responds_and_exits", "--nocapture", "--test-threads=2"];
    Program::new(me.to_str().expect("unicode")).args(args).env(CHILD, "1")
}

fn spawned(target: impl mcp_smol::IntoTarget<mcp_smol::Given>, config: ClientOptions) -> Client {
    let (client, driver) = connect_driven(target, config).expect("a target");
    smol::spawn(driver).detach();
    client
}

// covers: S0-25, S2-45, B-080
#[test]
fn child_negotiates_responds_and_exits() {
    serve_if_child();
    run(async {
        let client = connect(me()).await.expect("connected");
        let sum = client.call(tools::call("add").arguments(&Add { a: 1, b: 2 })).await.expect("an answer");
        assert_eq!(sum.first_text(), Some("3"));
        let tools = client.pages(tools::list()).all().await.expect("pages");
        assert!(tools.iter().any(|tool| tool.name == "add"));
        assert_eq!(client.server().and_then(|server| server.implementation).expect("a name").name, "calc");
        assert_eq!(client.close().await, Termination::Requested);
    });
}

#[test]
fn same_child_supports_the_legacy_revisions() {
    run(async {
        let config = ClientOptions::new().stderr(Stderr::Discard).set(|config| config.policy = Policy::Legacy);
        let client = spawned(me(), config);
        let sum = client.call(tools::call("add").arguments(&Add { a: 1, b: 2 })).await.expect("an answer");
        assert_eq!(sum.first_text(), Some("3"));
        client.close().await;
    });
}

// covers: B-054
#[test]
fn progress_precedes_the_response_and_its_callback_may_borrow() {
    run(async {
        let client = connect(me()).await.expect("connected");
        let mut seen = Vec::new();
        let counted =
            tools::call("count").arguments(&Count { count: 5 }).on_progress(|progress| seen.push(progress.progress));
        assert_eq!(client.call(counted).await.expect("an answer").first_text(), Some("5"));
        assert_eq!(seen, [1.0, 2.0, 3.0, 4.0, 5.0]);
        client.close().await;
    });
}

async fn asked(policy: Policy) {
    let config = ClientOptions::new().set(move |config| config.policy = policy).on_elicit_async(|request| async move {
        assert_eq!(request.message, "Who are you?");
        smol::future::yield_now().await;
        ElicitResult::Accept(name("ada"))
    });
    let client = spawned(me(), config.stderr(Stderr::Discard));
    let greeting = client.call(tools::call("greet").arguments(&Nothing {})).await.expect("an answer");
    assert_eq!(greeting.first_text(), Some("hello ada"));
    client.close().await;
}

// covers: B-073
#[test]
fn handler_requests_input_in_either_era() {
    run(async {
        asked(Policy::Modern).await;
        asked(Policy::Legacy).await;
    });
}

// covers: B-073
#[test]
fn callback_may_call_the_same_client() {
    run(async {
        let here = Arc::new(OnceLock::<Client>::new());
        let there = here.clone();
        let config = ClientOptions::new().on_elicit_async(move |_| {
            let client = there.get().expect("set").clone();
            async move {
                let sum = client.call(tools::call("add").arguments(&Add { a: 20, b: 22 })).await.expect("an answer");
                ElicitResult::Accept(name(sum.first_text().unwrap_or_default()))
            }
        });
        let client = spawned(router(&Seen::default()), config);
        here.set(client.clone()).expect("once");
        let greeting = client.call(tools::call("greet").arguments(&Nothing {})).await.expect("an answer");
        assert_eq!(greeting.first_text(), Some("hello 42"));
        client.close().await;
    });
}

#[test]
fn registering_a_callback_declares_the_capability() {
    run(async {
        let ask = || tools::call("roots").arguments(&Nothing {});
        let client = spawned(router(&Seen::default()), ClientOptions::new().roots(["file:///home"]));
        let roots = client.call(ask()).await.expect("an answer");
        assert!(roots.first_text().is_some_and(|text| text.contains("file:///home")), "{roots:?}");
        client.close().await;
        let client = connect(router(&Seen::default())).await.expect("connected");
        let failed = client.call(ask()).await.expect_err("not declared");
        assert!(matches!(failed, CallError::Rpc(_)), "{failed:?}");
        client.close().await;
    });
}

#[test]
fn panicking_callback_fails_only_its_call() {
    run(async {
        let config =
            ClientOptions::new().on_elicit_async(|_| async { std::panic::resume_unwind(Box::new("on purpose")) });
        let client = spawned(router(&Seen::default()), config);
        client.call(tools::call("greet").arguments(&Nothing {})).await.expect_err("no answer");
        client.call(tools::call("add").arguments(&Add { a: 1, b: 2 })).await.expect("an answer");
        client.close().await;
    });
}

// covers: B-149
#[test]
fn cancelling_drops_only_the_future_of_its_handler() {
    run(async {
        let seen = Seen::default();
        let client = connect(router(&seen)).await.expect("connected");
        let (first, second) = (
            client.start(tools::call("hang").arguments(&Nothing {})),
            client.start(tools::call("hang").arguments(&Nothing {})),
        );
        until(|| seen.entered.load(Ordering::SeqCst) == 2).await;
        drop(first);
        until(|| seen.dropped.load(Ordering::SeqCst) == 1).await;
        client.call(tools::call("add").arguments(&Add { a: 1, b: 2 })).await.expect("an answer");
        assert_eq!(seen.dropped.load(Ordering::SeqCst), 1);
        drop(second);
        until(|| seen.dropped.load(Ordering::SeqCst) == 2).await;
        client.close().await;
    });
}

// covers: B-149
#[test]
fn end_of_a_connection_drops_its_handlers() {
    run(async {
        let seen = Seen::default();
        let (ours, theirs) = UnixStream::pair().expect("a pair");
        let serving = smol::spawn(serve(router(&seen), theirs.clone(), theirs));
        let (client, driver) = connect_driven((ours.clone(), ours), ClientOptions::new()).expect("a target");
        let driver = smol::spawn(driver);
        let pending = client.start(tools::call("hang").arguments(&Nothing {}));
        until(|| seen.entered.load(Ordering::SeqCst) == 1).await;
        driver.cancel().await;
        let ended = pending.await.expect_err("no answer");
        assert!(matches!(ended, CallError::Closed { why: Closed::Aborted, .. }), "{ended:?}");
        until(|| seen.dropped.load(Ordering::SeqCst) == 1).await;
        serving.await.expect("an end in order");
    });
}

#[test]
fn dropping_the_serving_future_ends_the_connection() {
    run(async {
        let seen = Seen::default();
        let (ours, theirs) = UnixStream::pair().expect("a pair");
        let serving = smol::spawn(serve(router(&seen), theirs.clone(), theirs));
        let client = connect((ours.clone(), ours)).await.expect("connected");
        let pending = client.start(tools::call("hang").arguments(&Nothing {}));
        until(|| seen.entered.load(Ordering::SeqCst) == 1).await;
        serving.cancel().await;
        assert!(matches!(pending.await, Err(CallError::Closed { .. })));
        assert_eq!(seen.dropped.load(Ordering::SeqCst), 1);
        assert!(matches!(client.close().await, Termination::Closed(_) | Termination::Requested));
    });
}

#[test]
fn panicking_handler_responds_and_the_server_continues() {
    run(async {
        let client = connect(router(&Seen::default())).await.expect("connected");
        for tool in ["panic", "panic at once"] {
            let failed = client.call(tools::call(tool).arguments(&Nothing {})).await.expect_err("an error");
            assert!(matches!(failed, CallError::Rpc(_)), "{failed:?}");
        }
        client.call(tools::call("add").arguments(&Add { a: 1, b: 2 })).await.expect("an answer");
        client.close().await;
    });
}

#[test]
fn many_calls_are_handled_concurrently() {
    run(async {
        let client = connect(me()).await.expect("connected");
        let calls: Vec<_> =
            (0..200).map(|_| client.start(tools::call("meet").arguments(&Count { count: 200 }))).collect();
        for call in calls {
            assert_eq!(call.await.expect("an answer").first_text(), Some("met"));
        }
        client.close().await;
    });
}

// covers: B-131
#[test]
fn large_messages_in_both_directions_do_not_deadlock() {
    run(async {
        let client = connect(me()).await.expect("connected");
        let text = "x".repeat(1 << 20);
        let calls: Vec<_> =
            (0..8).map(|_| client.start(tools::call("echo").arguments(&Text { text: text.clone() }))).collect();
        for call in calls {
            assert_eq!(call.await.expect("an answer").first_text(), Some(text.as_str()));
        }
        client.close().await;
    });
}

// covers: B-143
#[test]
fn server_on_files_responds_and_ends() {
    let file = |name: &str| {
        let path = std::env::temp_dir().join(format!("mcp-smol-{}-{name}", std::process::id()));
        let file = File::options().create(true).truncate(true).read(true).write(true).open(&path).expect("a file");
        std::fs::remove_file(path).expect("a file");
        file
    };
    let (mut input, mut output) = (file("input"), file("output"));
    let request = r#"{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;
    writeln!(input, "{request}").expect("written");
    input.seek(SeekFrom::Start(0)).expect("rewound");
    let mut command = me().to_command([]);
    command.stdin(input).stdout(output.try_clone().expect("a file")).stderr(Stdio::null());
    assert!(command.status().expect("a status").success());
    output.seek(SeekFrom::Start(0)).expect("rewound");
    let mut said = String::new();
    output.read_to_string(&mut said).expect("text");
    let answers: Vec<_> = said.lines().filter(|line| line.starts_with('{')).collect();
    assert_eq!(answers.len(), 1, "{said}");
    assert!(answers[0].contains(r#""id":"i""#), "{said}");
}

// covers: B-143, B-147
#[test]
fn server_without_input_ends_and_restores_standard_output() {
    let mut command = me().to_command([]);
    let ended = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).output().expect("started");
    assert!(ended.status.success());
    let said = String::from_utf8(ended.stdout).expect("unicode");
    assert!(said.contains("standard output is ours again"), "{said}");
}

// covers: B-126, STDIO-S-006
#[test]
fn output_of_a_handler_or_its_child_never_reaches_the_wire() {
    run(async {
        let (told, events) = std::sync::mpsc::channel();
        let config = ClientOptions::new().on_event(move |event| drop(told.send(format!("{event:?}"))));
        let client = spawned(me(), config.stderr(Stderr::Discard));
        let printed = client.call(tools::call("print").arguments(&Nothing {})).await.expect("an answer");
        assert_eq!(printed.first_text(), Some("Ok(Some(0))"), "and its child found no input");
        client.close().await;
        let events: Vec<String> = events.try_iter().collect();
        assert!(!events.iter().any(|event| event.contains("no message") || event.contains("not this")), "{events:?}");
    });
}

// covers: B-081
#[test]
fn client_and_server_run_on_one_thread_without_an_executor() {
    run(async {
        let (client, driver) = connect_driven(router(&Seen::default()), ClientOptions::new()).expect("a target");
        let work = async {
            let sum = client.call(tools::call("add").arguments(&Add { a: 1, b: 2 })).await.expect("an answer");
            assert_eq!(sum.first_text(), Some("3"));
            client.close().await
        };
        let (ended, ()) = smol::future::zip(work, driver).await;
        assert_eq!(ended, Termination::Requested);
    });
}

/// A task that only its wakers keep alive, as in executors without a list of their tasks.
struct Loose(Mutex<Option<smol::future::Boxed<()>>>);

impl Wake for Loose {
    fn wake(self: Arc<Self>) {}
}

/// Polls the future in `slot` once, in a task that also holds `kept`, and drops the task.
fn poll_once<P: Future<Output: Send> + Unpin + Send + 'static>(
    slot: &Arc<Mutex<Option<P>>>,
    kept: impl Send + 'static,
) {
    let slot = Arc::clone(slot);
    let work = async move {
        poll_fn(|cx| Pin::new(slot.lock().expect("a lock").as_mut().expect("a future")).poll(cx)).await;
        drop(kept);
    };
    let task = Arc::new(Loose(Mutex::new(Some(Box::pin(work)))));
    let waker = Waker::from(Arc::clone(&task));
    let mut work = task.0.lock().expect("a lock");
    let polled = work.as_mut().expect("a task").as_mut().poll(&mut Context::from_waker(&waker));
    assert!(polled.is_pending());
}

// covers: B-277
#[test]
fn last_waker_of_a_task_is_dropped_outside_the_lock() {
    let (done, ended) = std::sync::mpsc::channel();
    // On a thread, since a failure would block it.
    std::thread::spawn(move || {
        run(async {
            let hang = |client: &Client| client.start(tools::call("hang").arguments(&Nothing {}));
            let client = spawned(router(&Seen::default()), ClientOptions::new());
            // Dropped with the waker: a call, whose drop takes the lock.
            let slot = Arc::new(Mutex::new(Some(hang(&client))));
            poll_once(&slot, hang(&client));
            drop(slot.lock().expect("a lock").take());
            // The same when another task polls the call.
            let slot = Arc::new(Mutex::new(Some(hang(&client))));
            poll_once(&slot, hang(&client));
            let mut moved = slot.lock().expect("a lock").take().expect("a call");
            assert!(Pin::new(&mut moved).poll(&mut Context::from_waker(Waker::noop())).is_pending());
            drop(moved);
            client.close().await;
            done.send(()).expect("awaited");
        });
    });
    ended.recv_timeout(std::time::Duration::from_secs(20)).expect("nothing blocks");
}

// covers: B-081
#[test]
fn calls_from_many_threads_end_once_with_any_drops() {
    run(async {
        let (client, driver) = connect_driven(router(&Seen::default()), ClientOptions::new()).expect("a target");
        let driver = std::thread::spawn(move || smol::block_on(driver));
        let threads: Vec<_> = (0..4)
            .map(|thread| {
                let client = client.clone();
                std::thread::spawn(move || {
                    smol::block_on(async {
                        for n in 0..200 {
                            let call = client.start(tools::call("add").arguments(&Add { a: thread, b: n }));
                            if n % 3 == 0 {
                                drop(call);
                                continue;
                            }
                            let sum = call.await.expect("an answer");
                            assert_eq!(sum.first_text(), Some((thread + n).to_string().as_str()));
                        }
                    });
                })
            })
            .collect();
        for thread in threads {
            smol::unblock(move || thread.join()).await.expect("no panic");
        }
        client.close().await;
        driver.join().expect("no panic");
    });
}

#[test]
fn dropped_client_ends_its_driver() {
    run(async {
        let (client, driver) = connect_driven(me(), ClientOptions::new()).expect("a target");
        drop(client);
        driver.await;
    });
}

// covers: B-274
#[test]
fn notifications_and_diagnostics_reach_the_callback() {
    run(async {
        let events = Arc::new(Mutex::new(Vec::new()));
        let told = events.clone();
        let config = ClientOptions::new().stderr(Stderr::Discard).on_event(move |event| {
            if let ClientEvent::Diagnostic(diagnostic) = event {
                told.lock().expect("no panic").push(diagnostic.kind.code());
            }
        });
        let client = spawned(me(), config);
        client.ready().await.expect("ready");
        // The output of the test harness before the server began.
        assert_eq!(*events.lock().expect("no panic"), ["bad-message"]);
        client.close().await;
    });
}

#[test]
fn unknown_method_and_invalid_argument_are_server_errors() {
    run(async {
        let client = connect(router(&Seen::default())).await.expect("connected");
        let unknown = client.call(custom::<Nothing>("no/such", &Nothing {})).await;
        assert!(matches!(unknown, Err(CallError::Rpc(_))));
        let wrong = client.call(tools::call("add").arguments(&Count { count: 1 })).await;
        assert!(wrong.map_or(true, |result| result.is_error));
        client.close().await;
    });
}
