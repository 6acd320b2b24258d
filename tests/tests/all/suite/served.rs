//! This server with this client: as a program, in this process, and over given streams, in both
//! eras.

use super::raw::{INITIALIZE, PING};
use super::*;
use mcp_proto::Era;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread::{scope, spawn};

/// Set in the child that serves.
const CHILD: &str = "MCP_TEST_CHILD";

/// Returns this test program as a server on its standard streams: it runs only the test that serves
/// in a child. The test harness first writes a line, which is an invalid message for a client.
pub(super) fn child() -> Program {
    let this = std::env::current_exe().expect("a path");
    let this = Program::new(this.to_str().expect("unicode"));
    this.args(only(module_path!(), "server_program_responds_and_exits_at_eof")).env(CHILD, "1")
}

/// Serves and exits if this is the child.
fn serve_if_child() {
    if std::env::var_os(CHILD).is_some() {
        serve_stdio(router().0).wait().expect("served");
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
    let _limit = limit();
    test(Policy::Modern);
    test(Policy::Legacy);
}

fn tell_name(name: &'static str) -> impl Fn(Form) -> ElicitResult {
    move |request| {
        assert_eq!(request.message, "who are you?");
        ElicitResult::Accept(Object::new().with("name", name))
    }
}

// covers: S0-25, S0-26, S2-45, B-080, B-143, STDIO-S-017
#[test]
fn server_program_responds_and_exits_at_eof() {
    serve_if_child();
    both_eras(|policy| {
        let client = connect_with(child(), config(policy)).wait().expect("connected");
        assert_eq!(client.server().and_then(|server| server.implementation).expect("told").name, "served");
        let era = client.server().expect("told").version.era();
        assert_eq!(era, if policy == Policy::Modern { Era::Modern } else { Era::Legacy });
        assert_eq!(client.verdict(), client.server().map(|server| Verdict::new(server.version)));
        assert_eq!(add(&client).as_deref(), Ok("3"));
        assert!(tools_of(&client).iter().any(|tool| tool.name == "add"));
        let pid: u32 = text(call(&client, "pid")).parse().expect("a number");
        assert!(!members(pid).is_empty());
        assert_eq!(client.close().wait(), Termination::Requested);
        assert!(is_reaped(pid) && members(pid).is_empty());
    });
}

// covers: B-138
#[test]
fn limits_beyond_the_range_of_the_clock_are_no_limits() {
    let _limit = limit();
    let config = config(Policy::Modern).set(|config| {
        config.limits.frame.exit_timeout = Duration::MAX;
        config.limits.frame.terminate_timeout = Duration::MAX;
        config.limits.frame.linger_timeout = Duration::MAX;
    });
    let client = connect_with(router().0, config).wait().expect("connected");
    let call = client.start(tools::call("add").arguments(&Add { a: 1, b: 2 }));
    assert_eq!(text(wait_for(call, Duration::MAX).expect("ended")), "3");
    assert_eq!(client.close().wait(), Termination::Requested);
}

// covers: B-126, STDIO-S-006, S3-01, S2-07
#[test]
fn output_of_a_handler_or_its_child_never_reaches_the_wire() {
    both_eras(|policy| {
        let (config, events) = told(config(policy));
        let client = connect_with(child(), config).wait().expect("connected");
        assert!(text(call(&client, "print")).contains("exit status: 0"));
        assert_eq!(add(&client).as_deref(), Ok("3"));
        client.close().wait();
        drop(client);
        let events: Vec<String> = all(&events).iter().map(|event| format!("{event:?}")).collect();
        assert!(!events.iter().any(|event| event.contains("no message") || event.contains("not this")), "{events:?}");
    });
}

// covers: B-274
#[test]
fn output_of_a_program_before_it_serves_is_reported() {
    both_eras(|policy| {
        let (config, told) = told(config(policy));
        let client = connect_with(child(), config).wait().expect("connected");
        assert_eq!(codes(client, &told), ["bad-message"]);
    });
}

// covers: B-143
#[test]
fn server_on_files_responds_and_ends() {
    let file = |name: &str| {
        let path = temp(name);
        let file = File::options().create_new(true).read(true).write(true).open(&path).expect("a file");
        std::fs::remove_file(path).expect("a file");
        file
    };
    let (mut input, mut output) = (file("input"), file("output"));
    writeln!(input, "{INITIALIZE}").expect("written");
    input.seek(SeekFrom::Start(0)).expect("rewound");
    let mut command = child().to_command([]);
    command.stdin(input).stdout(output.try_clone().expect("a file")).stderr(Stdio::null());
    assert!(command.status().expect("a status").success());
    output.seek(SeekFrom::Start(0)).expect("rewound");
    let mut said = String::new();
    output.read_to_string(&mut said).expect("text");
    let answers: Vec<_> = said.lines().filter(|line| line.starts_with('{')).collect();
    assert!(answers.len() == 1 && answers[0].contains(r#""id":1"#), "{said}");
}

// covers: B-143, B-147
#[test]
fn server_without_input_ends_and_restores_standard_output() {
    let _limit = limit();
    let mut served = child().to_command([]);
    let served = served.stdin(Stdio::null()).stdout(Stdio::piped()).output().expect("started");
    let said = String::from_utf8(served.stdout).expect("unicode");
    assert!(said.contains("standard output is ours again"), "{said}");
    assert!(served.status.success());
}

// covers: S2-01, PAGE-C-001
#[test]
fn router_in_this_process_lists_its_tools() {
    both_eras(|policy| {
        let router = router().0.configure(|config| config.limits.server.page_size = 3);
        let client = connect_with(router, config(policy)).wait().expect("connected");
        let names: Vec<String> = tools_of(&client).into_iter().map(|tool| tool.name).collect();
        let first = ["add", "boom", "boom at once", "boom later", "change", "count", "echo", "greet", "hang"];
        assert_eq!(names[..9], first);
        assert_eq!(names[9..], ["meet", "pid", "print", "roots", "roots and model", "slow"]);
        assert_eq!(client.close().wait(), Termination::Requested);
        let held = |stats: ClientStats| (stats.calls, stats.channels, stats.detached_threads);
        until(|| held(client.stats()) == (0, 0, 0));
    });
}

// covers: PROG-B-003, B-054
#[test]
fn progress_callback_runs_on_waiting_thread_and_may_borrow() {
    both_eras(|policy| {
        let client = connect_with(router().0, config(policy)).wait().expect("connected");
        let here = std::thread::current().id();
        let mut told = Vec::new();
        let count = tools::call("count").arguments(&Count { to: 5 }).on_progress(|progress| {
            assert_eq!(std::thread::current().id(), here);
            told.push(progress.progress);
        });
        assert_eq!(text(client.call(count).wait()), "5");
        assert!(told.last() == Some(&5.0) && told.windows(2).all(|pair| pair[0] < pair[1]), "{told:?}");
        assert!(!EVERY_PROGRESS || told.len() == 5, "{told:?}");
    });
}

// covers: B-073, S0-04, R-26
#[test]
fn callback_answers_a_request_for_input() {
    both_eras(|policy| {
        let later = |request| async move {
            yield_once().await;
            tell_name("ada")(request)
        };
        for config in [config(policy).on_elicit(tell_name("ada")), config(policy).on_elicit(later)] {
            let client = connect_with(child(), config).wait().expect("connected");
            assert_eq!(text(call(&client, "greet")), "hello ada");
        }
    });
}

// covers: B-073
#[test]
fn callbacks_answer_sampling_and_roots() {
    both_eras(|policy| {
        let config = config(policy).roots(["file:///tmp"]).on_sample(|_| Ok(SampleResult::text("none", "yes")));
        let client = connect_with(router().0, config).wait().expect("connected");
        let answer = text(call(&client, "roots and model"));
        assert!(answer.contains("file:///tmp") && answer.contains("yes"), "{answer}");
        assert!(text(call(&client, "roots")).contains("file:///tmp"));
        // A callback declares the capability.
        let client = connect(router().0).wait().expect("connected");
        let failed = call(&client, "roots").expect_err("not declared");
        assert!(matches!(failed, CallError::Rpc(_)), "{failed:?}");
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
            let name = text(client.call(tools::call("echo").arguments(&Text { text: "bob".into() })).wait());
            ElicitResult::Accept(Object::new().with("name", name.as_str()))
        });
        let client = connect_with(router().0, config).wait().expect("connected");
        own.set(client.clone()).expect("once");
        assert_eq!(text(call(&client, "greet")), "hello bob");
        client.close().wait();
    });
}

// covers: B-066, B-281
#[test]
fn panicking_callback_answers_with_an_error() {
    both_eras(|policy| {
        let fails = |_: Form| -> ElicitResult { std::panic::resume_unwind(Box::new("the callback fails")) };
        let later = |_: Form| async { std::panic::resume_unwind(Box::new("the callback fails")) };
        for config in [config(policy).on_elicit(fails), config(policy).on_elicit(later)] {
            let client = connect_with(router().0, config).wait().expect("connected");
            let greeted = call(&client, "greet");
            match policy {
                // A modern call fails on the client. A legacy server receives an error, and
                // returns it.
                Policy::Modern => assert!(matches!(greeted, Err(CallError::Input(_))), "{greeted:?}"),
                _ => assert!(greeted.expect("a result").is_error),
            }
            assert_eq!(add(&client).as_deref(), Ok("3"));
        }
    });
}

// covers: B-281, B-066
#[test]
fn panicking_handler_responds_with_an_error() {
    both_eras(|policy| {
        let client = connect_with(router().0, config(policy)).wait().expect("connected");
        for tool in ["boom", "boom later", "boom at once"] {
            let failed = call(&client, tool).expect_err("no result");
            assert!(matches!(&failed, CallError::Rpc(error) if error.code == -32603), "{failed:?}");
            assert_eq!(add(&client).as_deref(), Ok("3"));
        }
    });
}

// covers: STDIO-S-013, CANC-B-010, CANC-C-002, S0-29, B-149
#[test]
fn cancellation_reaches_only_its_handler() {
    both_eras(|policy| {
        with_endless(|tool| {
            let (router, seen) = router();
            let client = connect_with(router, config(policy)).wait().expect("connected");
            let (told, dropped) = (client.start(tools::call(tool)), client.start(tools::call(tool)));
            seen.wait(|counts| counts.begun == 2);
            told.cancel(Some("enough"));
            assert_eq!(told.wait(), Err(CallError::Cancelled { reason: Some("enough".into()) }));
            seen.wait(|counts| counts.cancelled == 1);
            assert_eq!(add(&client).as_deref(), Ok("3"));
            assert_eq!(seen.counts().cancelled, 1);
            drop(dropped);
            seen.wait(|counts| counts.cancelled == 2);
            assert_eq!(add(&client).as_deref(), Ok("3"));
        });
    });
}

// covers: TIME-B-002, B-060
#[test]
fn timeout_reaches_the_handler() {
    both_eras(|policy| {
        let (router, seen) = router();
        let client = connect_with(router, config(policy)).wait().expect("connected");
        let ended = client.call(tools::call("slow").timeout(Duration::from_millis(100))).wait();
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
        let client = connect_with(router, config(policy)).wait().expect("connected");
        let began = Instant::now();
        let failed = call(&client, "slow").expect_err("no result");
        assert!(matches!(&failed, CallError::Rpc(error) if error.code == -32603), "{failed:?}");
        assert!(began.elapsed() < BOUND / 2, "{:?}", began.elapsed());
        seen.wait(|counts| counts.begun == counts.cancelled);
    });
}

// covers: B-149
#[test]
fn handlers_see_the_end_of_their_connection() {
    both_eras(|policy| {
        with_endless(|tool| {
            let (router, seen) = router();
            let client = connect_with(router, config(policy)).wait().expect("connected");
            let running = client.start(tools::call(tool));
            seen.wait(|counts| counts.begun == 1);
            client.close().wait();
            assert!(matches!(running.wait(), Err(CallError::Closed { .. })));
            seen.wait(|counts| counts.cancelled == 1);
        });
    });
}

// covers: B-073
#[test]
fn handlers_run_concurrently() {
    both_eras(|policy| {
        let client = connect_with(router().0, config(policy)).wait().expect("connected");
        let calls = [(); 2].map(|()| client.start(tools::call("meet").arguments(&Count { to: 2 })));
        calls.into_iter().for_each(|call| assert_eq!(text(call.wait()), "met"));
    });
}

// covers: B-277, S0-25, B-081
#[test]
fn calls_from_many_threads_end_once_with_any_drops() {
    let _limit = limit();
    let client = connect(router().0).wait().expect("connected");
    scope(|scope| {
        for thread in 0..4 {
            let client = &client;
            scope.spawn(move || {
                for n in 0..200 {
                    let call = client.start(tools::call("add").arguments(&Add { a: thread, b: n }));
                    match n % 3 {
                        0 => drop(call),
                        _ => assert_eq!(text(call.wait()), (thread + n).to_string()),
                    }
                }
            });
        }
    });
    assert_eq!(client.close().wait(), Termination::Requested);
}

// covers: B-064
#[test]
fn unknown_method_and_invalid_argument_are_server_errors() {
    let _limit = limit();
    let client = connect(router().0).wait().expect("connected");
    let unknown = client.call(custom::<Count>("no/such", &Count { to: 1 })).wait();
    assert!(matches!(unknown, Err(CallError::Rpc(_))));
    let wrong = client.call(tools::call("add").arguments(&Count { to: 1 })).wait();
    assert!(wrong.map_or(true, |result| result.is_error));
}

// covers: B-131, S2-09
#[test]
fn large_messages_in_both_directions_do_not_deadlock() {
    both_eras(|policy| {
        let client = connect_with(child(), config(policy)).wait().expect("connected");
        scope(|scope| {
            for letter in ["a", "b", "c", "d", "e", "f", "g", "h"] {
                let client = &client;
                scope.spawn(move || {
                    let large = letter.repeat(1 << 20);
                    let echoed = text(client.call(tools::call("echo").arguments(&Text { text: large.clone() })).wait());
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
        let client = connect_with(router, config(policy)).wait().expect("connected");
        scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| assert!(matches!(call(&client, "slow"), Err(CallError::Closed { .. }))));
            }
            seen.wait(|counts| counts.begun == 3);
            for _ in 0..2 {
                scope.spawn(|| assert_eq!(client.close().wait(), Termination::Requested));
            }
        });
        assert!(matches!(call(&client, "add"), Err(CallError::Refused(_))));
    });
}

// covers: B-140, B-142, B-143, B-149, S2-45, STDIO-S-017
#[test]
fn server_returns_at_eof_after_writing_all_responses() {
    let _limit = limit();
    let (mut ours, theirs) = UnixStream::pair().expect("a pair");
    let ((router, seen), (input, output)) = (router(), pair(theirs));
    let serving = spawn(move || serve(router, input, output).wait());
    let call = |id: &str, name: &str, arguments: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":"{id}","method":"tools/call","params":{{"name":"{name}","arguments":{arguments}}}}}"#
        )
    };
    let (add, slow) = (call("one", "add", r#"{"a":1,"b":2}"#), call("two", "slow", "{}"));
    write!(ours, "{INITIALIZE}\n{add}\n{slow}\n").expect("written");
    let mut lines = BufReader::new(ours.try_clone().expect("a clone")).lines().map(|line| line.expect("a line"));
    assert!(lines.next().expect("a line").contains(r#""protocolVersion":"2025-06-18""#));
    let sum = lines.next().expect("a line");
    assert!(sum.contains(r#""id":"one""#) && sum.contains(r#""text":"3""#), "{sum}");
    seen.wait(|counts| counts.begun == 1);
    write!(ours, r#"{{"jsonrpc":"2.0","id":"three","method":"ping"}}"#).expect("written");
    ours.shutdown(Shutdown::Write).expect("ended");
    // The last line has no newline, and counts.
    assert!(lines.next().expect("a line").contains(r#""id":"three""#));
    assert_eq!(lines.next(), None);
    serving.join().expect("no panic").expect("no error");
    seen.wait(|counts| counts.cancelled == 1);
}

#[test]
fn end_of_a_server_lets_a_cancelled_handler_end() {
    let _limit = limit();
    let (mut ours, theirs) = UnixStream::pair().expect("a pair");
    let ended = Arc::new(AtomicBool::new(false));
    let ((begin, begun), told) = (mpsc::channel(), Arc::clone(&ended));
    let router = Router::new("s", "1").tool(tool("poll"), move |cx, ()| {
        begin.send(()).expect("the test waits");
        while !cx.is_cancelled() {
            std::thread::park_timeout(Duration::from_millis(200));
        }
        told.store(true, Ordering::SeqCst);
        Ok("late")
    });
    let (input, output) = pair(theirs);
    let serving = spawn(move || serve(router, input, output).wait());
    let call = r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"poll","arguments":{}}}"#;
    write!(ours, "{INITIALIZE}\n{call}\n").expect("written");
    begun.recv_timeout(BOUND).expect("the handler has begun");
    let cancelled = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}"#;
    writeln!(ours, "{cancelled}").expect("written");
    ours.shutdown(Shutdown::Write).expect("ended");
    serving.join().expect("no panic").expect("no error");
    assert!(ended.load(Ordering::SeqCst), "the handler was cut off");
}

// covers: CUST-B-001, CUST-B-005
#[test]
fn pair_of_streams_connects_both_sides() {
    both_eras(|policy| {
        let (ours, theirs) = UnixStream::pair().expect("a pair");
        let (input, output) = pair(theirs);
        let serving = spawn(move || serve(router().0, input, output).wait());
        let client = connect_with(pair(ours), config(policy)).wait().expect("connected");
        assert_eq!(add(&client).as_deref(), Ok("3"));
        let closing = Instant::now();
        assert_eq!(client.close().wait(), Termination::Requested);
        assert!(closing.elapsed() < BOUND / 2, "{:?}", closing.elapsed());
        drop(client);
        drop(serving);
    });
}

// covers: B-064
#[test]
fn custom_methods_and_notifications_pass() {
    both_eras(|policy| {
        let router = router().0.method("custom/double", |_cx, count: Count| Ok(Json(Count { to: count.to * 2 })));
        let (told, noted) = mpsc::channel();
        let (ours, (input, output)) = duplex();
        let serving = ServerOptions::new().threads(2).on_event(move |event| {
            if let ServerEvent::Notification { method, .. } = event {
                drop(told.send(method));
            }
        });
        spawn(move || serve((router, serving), input, output).wait());
        let client = connect_with(ours, config(policy)).wait().expect("connected");
        client.notify("custom/note", Object::new()).expect("accepted").wait().expect("its bytes are written");
        let doubled: Count = client.call(custom("custom/double", &Count { to: 4 })).wait().expect("a result");
        assert_eq!(doubled.to, 8);
        assert_eq!(noted.recv_timeout(BOUND).as_deref(), Ok("custom/note"));
    });
}

#[test]
fn wait_returns_when_the_server_was_stopped() {
    let _limit = limit();
    let server = Server::new(router().0, ServerOptions::new()).expect("threads");
    let stopped = AtomicBool::new(false);
    let (mut ours, theirs) = UnixStream::pair().expect("a pair");
    scope(|scope| {
        let waiting = scope.spawn(|| {
            over(&server);
            assert!(stopped.load(Ordering::SeqCst), "it waited for something else");
        });
        let serving = scope.spawn(|| attend(&server, pair(theirs), Peer::default(), false));
        ours.write_all(PING.as_bytes()).expect("written");
        BufReader::new(&ours).read_line(&mut String::new()).expect("an answer");
        drop(ours);
        serving.join().expect("no panic");
        // The last connection has ended, but there may be others.
        assert_eq!((server.stats().channels, waiting.is_finished()), (0, false));
        stopped.store(true, Ordering::SeqCst);
        stop(&server, BOUND);
        waiting.join().expect("no panic");
    });
}
