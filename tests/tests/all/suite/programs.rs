//! Programs as servers, correct and faulty: the results of their calls, and their end.

use super::*;
use mcp_proto::error::WaitReason;
use mcp_proto::exchange::{ConnectionNotice, Shutdown};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

fn connected(program: Program) -> Client {
    connect_with(program, legacy()).wait().expect("hello")
}

/// Connects, and waits for the first notification of a program.
fn noticed(program: Program, config: ClientOptions) -> Client {
    let (tell, ready) = mpsc::channel();
    let config = config.on_event(move |event| {
        if matches!(event, ClientEvent::Notification { .. }) {
            tell.send(()).expect("heard");
        }
    });
    let client = connect_with(program, config).wait().expect("hello");
    ready.recv_timeout(BOUND).expect("a notification");
    client
}

/// Adds a receiver of every notice about its connections, with its time.
fn with_notices(config: ClientOptions) -> (ClientOptions, mpsc::Receiver<(Instant, ConnectionNotice)>) {
    let (told, notices) = mpsc::channel();
    (config.on_notice(move |_, notice| drop(told.send((Instant::now(), notice)))), notices)
}

/// The notification of a script that is ready.
const NOTICE: &str = r#"echo '{"jsonrpc":"2.0","method":"custom/ready"}'"#;

/// Ends when its input ends.
const DRAINS: &str = "while read -r line; do :; done";

fn pid(pid: u32) -> Pid {
    Pid::from_raw(pid.try_into().expect("small")).expect("not zero")
}

/// Returns a call with a mebibyte of arguments.
fn large() -> Call<tools::CallTool> {
    let arguments = Object::new().with("text", "y".repeat(1 << 20).as_str());
    tools::call("add").param("arguments", Ok(arguments.into()))
}

// covers: B-141, S0-27, S0-33, S2-13
#[test]
fn server_exit_during_a_call_ends_it_with_status_or_signal() {
    let _limit = limit();
    let client = connected(server("read -r line; exit 3"));
    let ended = call(&client, "add").expect_err("no answer");
    assert_eq!(ended, CallError::Closed { sent: Sent::Maybe, why: exited(3) });
    assert_eq!(ended.to_string(), "Transport closed: the program exited with code 3");
    assert_eq!(client.close().wait(), Termination::Closed(exited(3)));
    let refused = call(&client, "add").expect_err("closed");
    assert!(matches!(refused, CallError::Refused(_) | CallError::Closed { sent: Sent::No, .. }), "{refused:?}");
    let client = connected(server("read -r line; kill -9 $$"));
    assert_eq!(call(&client, "add"), Err(CallError::Closed { sent: Sent::Maybe, why: killed(9) }));
}

// covers: B-141
#[test]
fn output_before_the_exit_is_read() {
    let _limit = limit();
    // A descendant writes the last part when the program has exited and is not reaped.
    let late = format!("{{ while ! grep -q ') Z' /proc/$$/stat; do :; done; {ANSWER}; }} & exit 0");
    // It has half a second, which a busy machine may exceed. If nothing were read after the
    // exit, no attempt would succeed.
    let attempt = || call(&connected(server(&format!("read -r line; {late}"))), "add");
    let answer = (0..10).find_map(|_| attempt().ok()).expect("an answer");
    assert_eq!(answer.first_text(), Some("3"));
}

// covers: S0-28, S0-63, TIME-B-001, TIME-B-002, TIME-B-003, B-060, B-061
#[test]
fn unresponsive_server_times_out_the_call_and_gets_a_cancel() {
    let _limit = limit();
    let told = r#"read -r line; read -r line; case "$line" in *notifications/cancelled*) ;; *) exit 1;; esac
        read -r line; echo '{"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"told"}]}}'; read -r line"#;
    let client = connected(server(told));
    let after = Duration::from_millis(50);
    let began = Instant::now();
    let ended = client.call(tools::call("add").timeout(after)).wait().expect_err("no answer");
    // A timer thread sleeps until a later deadline, and is woken for this one.
    assert!(began.elapsed() >= after && began.elapsed() < BOUND / 2, "{:?}", began.elapsed());
    assert_eq!(ended, CallError::Timeout { after, sent: Sent::Maybe, awaited: WaitReason::Response });
    assert_eq!(text(call(&client, "add")), "told");
}

// covers: S0-29, S0-64, CANC-C-001, CANC-B-012, B-052
#[test]
fn cancelled_call_notifies_server_and_drops_late_response() {
    let _limit = limit();
    let late = format!(
        r#"read -r line; read -r line; case "$line" in *notifications/cancelled*"too slow"*) ;; *) exit 1;; esac
        {ANSWER}; read -r line; echo '{{"jsonrpc":"2.0","id":3,"result":{{"content":[{{"type":"text","text":"next"}}]}}}}'; read -r line"#
    );
    let client = connected(server(&late));
    let pending = client.start(tools::call("add"));
    pending.cancel(Some("too slow"));
    assert_eq!(pending.wait(), Err(CallError::Cancelled { reason: Some("too slow".into()) }));
    assert_eq!(text(call(&client, "add")), "next");
}

// covers: S0-29, CANC-C-001, B-066
#[test]
fn dropped_call_alone_is_cancelled_and_leaves_nothing() {
    let _limit = limit();
    let told = r#"read -r line; read -r line; case "$line" in *notifications/cancelled*'"requestId":2'*) ;; *) exit 1;; esac
        read -r line; echo '{"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"told"}]}}'; read -r line"#;
    let client = connected(server(told));
    drop(client.start(tools::call("add")));
    assert_eq!(client.stats().calls, 0);
    assert_eq!(text(call(&client, "add")), "told");
}

// covers: S0-31, B-120, B-274
#[test]
fn each_invalid_line_is_one_diagnostic() {
    let _limit = limit();
    let early = r#"echo 'Listening on stdio...'; printf '\377\376\n'; echo '{"half":'"#;
    let noise = format!("{early}; read -r line; echo '{{]'; echo; {ANSWER}; read -r line");
    let (config, told) = told(legacy());
    let client = connect_with(server(&noise), config).wait().expect("hello");
    assert_eq!(text(call(&client, "add")), "3");
    assert_eq!(codes(client, &told), ["bad-message"; 4]);
}

// covers: B-052, S0-13
#[test]
fn second_and_late_responses_are_ignored_and_reported() {
    let _limit = limit();
    let again = ANSWER.replace(r#""id":2"#, r#""id":3"#);
    let last = ANSWER.replace(r#""id":2"#, r#""id":4"#);
    // Twice for the first call; for the second only after its cancellation; then once for the
    // third.
    let script =
        format!("read -r a; {ANSWER}; {ANSWER}; read -r b; read -r cancel; {again}; read -r c; {last}; read -r d");
    let (config, told) = told(legacy());
    let client = connect_with(server(&script), config).wait().expect("hello");
    assert_eq!(text(call(&client, "add")), "3");
    drop(client.start(tools::call("add")));
    assert_eq!(text(call(&client, "add")), "3");
    assert_eq!(codes(client, &told), ["late-answer"; 2]);
}

// covers: B-141
#[test]
fn truncated_last_message_is_reported_and_ends_the_call() {
    let _limit = limit();
    let (config, told) = told(legacy());
    let script = r#"read -r line; printf '{"jsonrpc":"2.0","id":2,"resu'; exit 6"#;
    let client = connect_with(server(script), config).wait().expect("hello");
    let ended = call(&client, "add").expect_err("no answer");
    assert_ne!(ended.sent(), Sent::No, "{ended:?}");
    assert_eq!(codes(client, &told), ["bad-message"]);
}

// covers: S0-26, STDIO-C-015, STDIO-C-016, B-137, B-138
#[test]
fn close_ends_a_program_by_closing_its_input() {
    let _limit = limit();
    let config = legacy().set(|config| config.limits.frame.exit_timeout = BOUND);
    let client = connect_with(server(&format!("{DRAINS}; exit 0")), config).wait().expect("hello");
    let group = group(&client);
    let began = Instant::now();
    assert_eq!(client.close().wait(), Termination::Requested);
    assert!(began.elapsed() < BOUND, "it was waited for: {:?}", began.elapsed());
    assert!(members(group).is_empty(), "left: {:?}", members(group));
    assert_eq!(client.stats().channels, 0);
    assert_eq!(client.close().wait(), Termination::Requested);
    until(|| client.stats().detached_threads == 0);
}

// covers: B-133, B-134, B-137, B-272, S0-26
#[test]
fn close_ends_and_reaps_the_whole_group() {
    let _limit = limit();
    let client = connected(server("sleep 1000 & read -r line"));
    let group = group(&client);
    until(|| members(group).len() == 2);
    assert_eq!(client.close().wait(), Termination::Requested);
    until(|| members(group).is_empty());
    assert!(is_reaped(group));
    assert_eq!(client.close().wait(), Termination::Requested);
    assert!(matches!(call(&client, "add"), Err(CallError::Refused(_))));
}

// covers: B-138, B-139, STDIO-C-016
#[test]
fn program_that_ignores_eof_is_terminated() {
    let _limit = limit();
    let file = temp("term");
    // Before the handshake; otherwise it could be ended before it handles the signal.
    let trap = format!("trap 'echo terminated > {}; exit 0' TERM", file.display());
    let program = sh(&format!("{trap}\n{HELLO}while :; do sleep 0.02; done"));
    let config = quick(legacy()).set(|config| config.limits.frame.terminate_timeout = BOUND);
    let client = connect_with(program, config).wait().expect("hello");
    let group = group(&client);
    assert_eq!(client.close().wait(), Termination::Requested);
    until(|| members(group).is_empty());
    assert_eq!(std::fs::read_to_string(&file).expect("what the trap wrote"), "terminated\n");
    std::fs::remove_file(&file).expect("removed");
}

// covers: B-133, B-134, B-138
#[test]
fn unresponsive_program_is_killed_with_its_group_in_time() {
    let _limit = limit();
    let script = "sh -c 'while :; do sleep 600; done' & while :; do sleep 600; done";
    let mut quickest = Duration::MAX;
    // There is no other wait, but a busy machine may need several attempts to show it.
    while quickest >= Duration::from_millis(1200) {
        // Before the handshake; otherwise it could be ended before it ignores the signal.
        let program = sh(&format!("trap '' TERM\n{HELLO}{script}"));
        let client = connect_with(program, quick(legacy())).wait().expect("hello");
        let group = group(&client);
        until(|| members(group).len() >= 4);
        let began = Instant::now();
        assert_eq!(client.close().wait(), Termination::Requested);
        quickest = quickest.min(began.elapsed());
        assert!(quickest >= Duration::from_millis(200), "{quickest:?}");
        until(|| members(group).is_empty());
    }
}

// covers: B-133, B-277, S0-26
#[test]
fn dropping_the_last_handle_on_any_thread_ends_the_program() {
    let _limit = limit();
    for script in [format!("{HELLO}{DRAINS}"), format!("trap '' TERM\n{HELLO}while :; do sleep 1000; done")] {
        let client = connect_with(sh(&script), quick(legacy())).wait().expect("hello");
        let group = group(&client);
        let other = client.clone();
        drop(client);
        assert!(!members(group).is_empty() && other.server().is_some(), "a handle is left");
        std::thread::spawn(move || drop(other)).join().expect("no panic");
        // `main` could return here. Its children were killed, and the system needs a moment.
        assert!(is_reaped(group), "it was not awaited");
        until(|| members(group).is_empty());
    }
}

// covers: B-133
#[test]
fn panic_that_drops_the_client_ends_the_program() {
    let _limit = limit();
    for script in [DRAINS, "sleep 1000 & read -r line"] {
        let (said, group) = mpsc::channel();
        let panicked = std::thread::spawn(move || {
            let client = connected(server(script));
            said.send(super::group(&client)).expect("heard");
            std::panic::resume_unwind(Box::new("the application fails"));
        });
        let group = group.recv_timeout(BOUND).expect("hello");
        assert!(panicked.join().is_err());
        assert!(is_reaped(group), "it was not awaited");
        until(|| members(group).is_empty());
    }
}

// covers: B-134, B-138, B-141, B-137
#[test]
fn grandchild_that_holds_the_output_delays_the_end_briefly() {
    let _limit = limit();
    let client = connected(server("sleep 600 & read -r line; exit 3"));
    let group = group(&client);
    let began = Instant::now();
    assert_eq!(call(&client, "add"), Err(CallError::Closed { sent: Sent::Maybe, why: exited(3) }));
    assert!(began.elapsed() < BOUND / 2, "{:?}", began.elapsed());
    until(|| members(group).is_empty());
}

// covers: B-148, B-138
#[test]
fn stuck_reader_is_counted_and_not_waited_for() {
    let _limit = limit();
    // The grandchild leaves the group and so survives. It holds the output of the program until
    // something is written to the fifo.
    let fifo = temp("fifo");
    let escapes = format!(r#"{NOTICE}; read -r line <{}"#, fifo.display()).replace('\'', r"'\''");
    let script = format!("mkfifo {}; setsid sh -c '{escapes}' & {DRAINS}", fifo.display());
    let client = noticed(server(&script), quick(legacy()));
    let group = group(&client);
    let began = Instant::now();
    assert_eq!(client.close().wait(), Termination::Requested);
    assert!(began.elapsed() < BOUND / 2, "{:?}", began.elapsed());
    assert!(is_reaped(group), "it was not awaited");
    until(|| members(group).is_empty());
    // One for its standard error, and one for its output unless it had not begun to read again.
    let stuck = stuck_threads(1)..=stuck_threads(2);
    until(|| stuck.contains(&client.stats().detached_threads));
    // Returns only if the grandchild lives and reads.
    std::fs::write(&fifo, "go\n").expect("written");
    until(|| client.stats().detached_threads == 0);
    std::fs::remove_file(&fifo).expect("removed");
}

// covers: B-141, B-138, STDIO-S-018, S0-27
#[test]
fn program_that_closes_its_output_is_ended() {
    let _limit = limit();
    let program = server("read -r line; exec >&-; while :; do sleep 600; done");
    let client = connect_with(program, quick(legacy())).wait().expect("hello");
    let group = group(&client);
    let ended = call(&client, "add").expect_err("no answer");
    assert!(matches!(ended, CallError::Closed { sent: Sent::Maybe, .. }), "{ended:?}");
    assert!(matches!(client.close().wait(), Termination::Closed(_)));
    until(|| members(group).is_empty());
}

// covers: STDIO-C-015, STDIO-C-016, B-138
#[test]
fn shutdown_of_unresponsive_program_reports_each_step_in_time() {
    let _limit = limit();
    let (config, notices) = with_notices(quick(legacy()));
    // Before the handshake; otherwise it could be ended before it ignores the signal.
    let script = format!("trap '' TERM\n{HELLO}while :; do read -r line || sleep 0.02; done");
    let client = connect_with(sh(&script), config).wait().expect("hello");
    let began = Instant::now();
    assert_eq!(client.close().wait(), Termination::Requested);
    let (mut steps, mut ends) = (Vec::new(), Vec::new());
    drop(client);
    for (at, notice) in all(&notices) {
        match notice {
            ConnectionNotice::Closing(step) => steps.push((step, at - began)),
            ConnectionNotice::Closed(why) => ends.push(why),
        }
    }
    let order: Vec<Shutdown> = steps.iter().map(|(step, _)| *step).collect();
    assert_eq!(order, [Shutdown::WriteHalf, Shutdown::Terminate, Shutdown::Abort]);
    for ((step, at), millis) in steps.iter().zip([0, 100, 200]) {
        let due = Duration::from_millis(millis);
        // With a tolerance upwards, since the machine may be busy; exact downwards.
        assert!(*at >= due && *at < due + BOUND / 2, "{step:?} after {at:?}");
    }
    assert_eq!(ends, [killed(9)]);
}

// covers: B-141
#[test]
fn closed_program_still_reports_its_status() {
    let _limit = limit();
    let (config, notices) = with_notices(legacy());
    let client = connect_with(server("while read -r line; do :; done; exit 5"), config).wait().expect("hello");
    assert_eq!(client.close().wait(), Termination::Requested);
    drop(client);
    assert_eq!(all(&notices).pop().map(|(_, notice)| notice), Some(ConnectionNotice::Closed(exited(5))));
}

// covers: B-131
#[test]
fn full_pipes_in_both_directions_do_not_deadlock() {
    let _limit = limit();
    // A server that writes a mebibyte before it reads one. Neither fits into a pipe.
    let early = format!(
        r#"head -c 1048576 /dev/zero | tr '\0' 'x'; echo; read -r line; case ${{#line}} in ???????) ;; *) exit 1;; esac; {ANSWER}; read -r line"#
    );
    // At the first byte of the request, a mebibyte of blanks before it reads more; after the
    // rest of it, as many again.
    let blank = "head -c 1048576 /dev/zero | tr '\\0' ' '; echo";
    let within = format!("head -c 1 > /dev/null; {blank}; head -n 1 > /dev/null; {blank}; {ANSWER}; cat > /dev/null");
    for script in [early, within] {
        assert_eq!(text(connected(server(&script)).call(large()).wait()), "3");
    }
}

// covers: B-129, B-130, S2-07, STDIO-C-004, STDIO-C-005
#[test]
fn standard_error_is_always_read_line_by_line() {
    let _limit = limit();
    let lines = "i=0; while [ $i -lt 3000 ]; do echo \"line $i of a server that has much to say, and says it at some length\" >&2; i=$((i+1)); done";
    let flood = "head -c 1048576 /dev/zero | tr '\\0' 'x' >&2; echo >&2; echo last >&2";
    let script = format!("{lines}; {flood}\n{HELLO}read -r line; {ANSWER}; exit 0");
    let (told, heard) = mpsc::channel();
    let stderr = Stderr::Lines(Arc::new(move |line: &str| drop(told.send(line.to_owned()))));
    let client = connect_with(sh(&script), legacy().stderr(stderr)).wait().expect("hello");
    assert_eq!(text(call(&client, "add")), "3");
    client.close().wait();
    drop(client);
    let mut heard = all(&heard);
    assert_eq!(heard.pop().as_deref(), Some("last"));
    let flood = heard.split_off(3000);
    for (n, line) in heard.iter().enumerate() {
        assert!(line.starts_with(&format!("line {n} of")), "{line}");
    }
    assert!(flood.iter().all(|line| line.len() <= 64 << 10 && line.bytes().all(|byte| byte == b'x')));
    assert_eq!(flood.iter().map(String::len).sum::<usize>(), 1 << 20);
}

// covers: B-144, S0-34
#[test]
fn program_that_closes_its_input_does_not_break_the_client() {
    let _limit = limit();
    let client = noticed(server(&format!("exec <&-; {NOTICE}; while :; do sleep 600; done")), legacy());
    // The program does not read it, and the write fails. A response could still arrive.
    let pending = client.start(tools::call("add"));
    let pending = wait_for(pending, Duration::from_millis(50)).expect_err("not ended");
    kill_process_group(pid(group(&client)), Signal::KILL).expect("killed");
    assert_eq!(pending.wait(), Err(CallError::Closed { sent: Sent::Maybe, why: killed(9) }));
}

// covers: B-144
#[test]
fn broken_pipe_is_an_error_value() {
    let _limit = limit();
    let client = connected(server("exec <&-; echo; sleep 0.2; exit 4"));
    let ended = client.call(large()).wait().expect_err("no answer");
    assert!(matches!(ended, CallError::Closed { why: Closed::Exited(_), .. }), "{ended:?}");
}

// covers: S0-10, B-277
#[test]
fn concurrent_calls_of_two_threads_get_their_own_responses() {
    let _limit = limit();
    // Responds to both calls in reverse order.
    let script = r#"read -r line; read -r line
        echo '{"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"3"}]}}'
        echo '{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"2"}]}}'
        read -r line"#;
    let client = connected(server(script));
    let texts: Vec<String> = std::thread::scope(|scope| {
        let calls: Vec<_> = (0..2).map(|_| scope.spawn(|| text(call(&client, "add")))).collect();
        calls.into_iter().map(|call| call.join().expect("no panic")).collect()
    });
    assert!(texts == ["2", "3"] || texts == ["3", "2"], "{texts:?}");
}

// covers: B-133, B-134, S0-26
#[test]
fn program_leads_its_own_group_or_is_ended_alone() {
    let _limit = limit();
    for own in [true, false] {
        let file = temp("sleeper");
        let sleeps = format!("sleep 600 >&- 2>&- <&- & echo $! > {}", file.display());
        let script = format!("trap '' TERM; {sleeps}; {NOTICE}; while :; do sleep 0.05; done");
        let program = server(&script).group(if own { Group::Own } else { Group::Inherit });
        let client = noticed(program, quick(legacy()));
        let (leader, ours) = (group(&client), group_of(std::process::id()).expect("we run"));
        assert_eq!(group_of(leader), Some(if own { leader } else { ours }));
        let sleeper = take_pid(&file);
        assert_eq!(client.close().wait(), Termination::Requested);
        assert!(is_reaped(leader));
        if own {
            until(|| group_of(sleeper).is_none());
        } else {
            assert_eq!(group_of(sleeper), Some(ours), "our group is not ours to signal");
            kill_process(pid(sleeper), Signal::KILL).expect("killed");
        }
    }
}

// covers: B-138, B-139, STDIO-C-016
#[test]
fn program_in_inherited_group_gets_its_own_signal() {
    let _limit = limit();
    let config = quick(legacy()).set(|config| config.limits.frame.terminate_timeout = BOUND);
    let script = "trap 'exit 6' TERM; while :; do sleep 0.02; done";
    let client = connect_with(server(script).group(Group::Inherit), config).wait().expect("hello");
    let pid = group(&client);
    assert_eq!(client.close().wait(), Termination::Requested);
    assert_eq!(group_of(pid), None);
}

// covers: B-148, B-138, B-131
#[test]
fn stuck_writer_is_counted_and_not_waited_for() {
    let _limit = limit();
    // The grandchild leaves the group and so survives. It holds all streams of the program, and
    // reads none.
    let fifo = temp("deaf");
    let escapes = format!("{NOTICE}; read -r line <{}", fifo.display()).replace('\'', r"'\''");
    let script =
        format!("exec 3<&0; mkfifo {}; setsid sh -c '{escapes}' & while :; do sleep 0.05; done", fifo.display());
    let client = noticed(server(&script), quick(legacy()));
    let call = client.start(large());
    let (group, began) = (group(&client), Instant::now());
    assert_eq!(client.close().wait(), Termination::Requested);
    assert!(began.elapsed() < BOUND, "{:?}", began.elapsed());
    assert!(matches!(call.wait(), Err(CallError::Closed { sent: Sent::Maybe, .. })));
    until(|| members(group).is_empty());
    until(|| client.stats().detached_threads == stuck_threads(3));
    std::fs::write(&fifo, "go\n").expect("written");
    until(|| client.stats().detached_threads == 0);
    std::fs::remove_file(&fifo).expect("removed");
}
