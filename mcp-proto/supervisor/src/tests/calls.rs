//! Calls: when they run, when they run again, and their one end.

use super::*;
use mcp_proto::call::{Call, Method, custom, ping};
use mcp_proto::error::Refusal;
use mcp_proto::model::page::ListElement;
use mcp_proto::model::tools::Tool;
use mcp_proto::model::{completion, prompts, resources, tools};
use mcp_proto::rpc::Object;

/// A tool with these hints.
fn tool(name: &str, read_only: Option<bool>, idempotent: Option<bool>) -> Tool {
    let schema = Object::new().with("type", "object");
    let mut annotations = Object::new();
    for (hint, value) in [("readOnlyHint", read_only), ("idempotentHint", idempotent)] {
        if let Some(value) = value {
            annotations = annotations.with(hint, value);
        }
    }
    let tool = Object::new().with("name", name).with("inputSchema", schema).with("annotations", annotations);
    Tool::read(&tool.into()).unwrap()
}

/// A server that is connected, with three tools.
fn with_tools(spec: ServerSpec) -> (Rig, Generation) {
    let (mut rig, client) = Rig::ready(spec);
    let tools =
        [tool("plain", None, Some(false)), tool("reads", Some(true), None), tool("repeats", Some(false), Some(true))];
    rig.supervisor.loaded(rig.now, client, ListKind::Tools, Ok(Listing::Tools(tools.to_vec().into()).into()));
    rig.take();
    (rig, client)
}

// covers: S0-62, R-29
#[test]
fn call_runs_a_second_time_only_where_that_is_safe() {
    let other = CallError::Timeout { after: ms(1), sent: Sent::No, awaited: mcp_proto::error::WaitReason::Response };
    let tool = |name: &str| CallKind::Tool(name.into());
    for (kind, retry, error, expected) in [
        (tool("plain"), RetryTool::Safe, lost(Sent::No), true),
        (tool("plain"), RetryTool::Safe, lost(Sent::Maybe), false),
        (tool("unknown"), RetryTool::Safe, lost(Sent::Maybe), false),
        (tool("reads"), RetryTool::Safe, lost(Sent::Maybe), true),
        (tool("repeats"), RetryTool::Safe, lost(Sent::Maybe), true),
        (tool("reads"), RetryTool::Safe, CallError::SessionEnded, true),
        (tool("plain"), RetryTool::Safe, CallError::SessionEnded, false),
        (tool("plain"), RetryTool::Always, lost(Sent::Maybe), true),
        (tool("plain"), RetryTool::Always, other.clone(), false),
        (tool("reads"), RetryTool::Never, lost(Sent::No), false),
        (tool("reads"), RetryTool::Never, lost(Sent::Maybe), false),
        (CallKind::Read, RetryTool::Never, lost(Sent::Maybe), true),
        (tool("plain"), RetryTool::Always, CallError::Refused(Refusal::Full), false),
        (CallKind::Other, RetryTool::Always, lost(Sent::Maybe), false),
        (CallKind::Other, RetryTool::Never, lost(Sent::No), true),
        (CallKind::Read, RetryTool::Always, other, false),
        (tool("reads"), RetryTool::Always, CallError::Closed { sent: Sent::No, why: Closed::Aborted }, false),
    ] {
        let (mut rig, client) = with_tools(ServerSpec { retry, ..program() });
        let ticket = rig.call(CallPlan::new(kind.clone()));
        assert_eq!(rig.runs(), [(ticket, client)]);
        let verdict = rig.finish(ticket, Err(&error));
        let told = format!("{kind:?} {retry:?} {error}");
        assert_eq!(verdict, if expected { Verdict::Again } else { Verdict::Final }, "{told}");
        rig.end(client);
        if expected {
            let (_, next) = rig.next_attempt();
            rig.up(next);
            assert_eq!(rig.runs(), [(ticket, next)], "{told}");
            // Once.
            assert_eq!(rig.finish(ticket, Err(&lost(Sent::No))), Verdict::Final, "{told}");
        }
        assert_eq!(rig.finish(ticket, Ok(())), Verdict::Ignore, "{told}");
    }
}

// covers: S0-62
#[test]
fn call_to_a_reconnecting_server_waits_within_its_own_time() {
    let (mut rig, client) = Rig::ready(program());
    rig.end(client);
    let mut short = tool_plan("x");
    short.timeout = Some(ms(200));
    let short = rig.call(short);
    let mut long = tool_plan("x");
    long.timeout = Some(ms(2000));
    let long = rig.call(long);
    let mut endless = tool_plan("x");
    endless.timeout = None;
    let endless = rig.call(endless);
    rig.pass(ms(200));
    assert_eq!(rig.refused(), [(short, CallRefusal::Timeout { after: ms(200) })]);
    rig.pass(ms(300));
    let next = rig.connects();
    rig.pass(ms(1000));
    rig.up(next);
    let runs: Vec<_> = rig.take().into_iter().filter(|output| matches!(output, Output::Run { .. })).collect();
    let run = |ticket, timeout| Output::Run { ticket, generation: next, timeout };
    assert_eq!(runs, [run(long, Some(ms(500))), run(endless, None)]);
    // What runs has its time from the client.
    rig.pass(ms(10_000));
    assert_eq!(rig.refused(), []);
}

// covers: S0-61
#[test]
fn calls_that_wait_fail_when_the_server_is_down() {
    let (mut rig, mut client) = Rig::ready(program());
    rig.end(client);
    let ticket = rig.call(tool_plan("x"));
    for _ in 0..4 {
        client = rig.next_attempt().1;
        rig.end(client);
    }
    let refused = rig.refused();
    assert!(
        matches!(&refused[..], [(of, CallRefusal::Unavailable { next: Some(_), .. })] if *of == ticket),
        "{refused:?}"
    );
    assert_eq!(refused[0].1.to_string(), "the server is down: the peer closed the connection");
    // Also one that was to run again.
    assert_eq!(rig.finish(ticket, Err(&lost(Sent::No))), Verdict::Ignore);
}

// covers: S0-62
#[test]
fn calls_of_a_client_end_before_it_and_tell_of_its_end() {
    let (mut rig, client) = with_tools(program());
    let again = rig.call(tool_plan("reads"));
    let over = rig.call(tool_plan("plain"));
    rig.take();
    assert_eq!(rig.finish(again, Err(&lost(Sent::Maybe))), Verdict::Again);
    assert_eq!(rig.finish(over, Err(&lost(Sent::Maybe))), Verdict::Final);
    rig.end(client);
    // Its cause is that of the client, which both report.
    let event = Event::Reconnecting { key: "a", attempt: 1, wait: ms(500), cause: Cause::Ended(exited()) };
    assert_eq!(rig.take(), [Output::Close(client), Output::Event(event)]);
    let (wait, next) = rig.next_attempt();
    assert_eq!(wait, ms(500));
    rig.up(next);
    assert_eq!(rig.runs(), [(again, next)]);
    assert_eq!(rig.supervisor.health(&"a").unwrap().counters.retries, 1);
    assert_eq!(rig.finish(again, Ok(())), Verdict::Final);
}

// covers: S0-62, R-29
#[test]
fn client_over_http_is_closed_when_its_calls_have_ended() {
    let (mut rig, old) = Rig::ready(web());
    let (slow, quick) = (rig.call(tool_plan("x")), rig.call(tool_plan("x")));
    rig.take();
    // A response that breaks off tells nothing of the others.
    let broken = rig.call(CallPlan::new(CallKind::Read));
    rig.take();
    assert_eq!(rig.finish(broken, Err(&lost(Sent::Maybe))), Verdict::Again);
    assert_eq!(rig.runs(), [(broken, old)]);
    assert_eq!(rig.finish(broken, Ok(())), Verdict::Final);
    // A server that cannot be reached gets a new client, and the old one keeps its other call.
    assert_eq!(rig.finish(quick, Err(&lost(Sent::No))), Verdict::Again);
    assert_eq!(rig.closed(), []);
    let (wait, new) = rig.next_attempt();
    assert_eq!(wait, ms(500));
    rig.up(new);
    assert_eq!(rig.runs(), [(quick, new)]);
    assert_eq!(rig.finish(slow, Ok(())), Verdict::Final);
    assert_eq!(rig.closed(), [old]);
    rig.end(old);
    assert!(matches!(rig.state(), ServerState::Ready { generation, .. } if generation == new));
}

// covers: S0-62, R-29
#[test]
fn call_that_its_client_never_began_waits_for_the_next_one() {
    let mut spec = program();
    spec.retry = RetryTool::Never;
    let (mut rig, mut client) = Rig::ready(spec);
    let call = rig.call(tool_plan("x"));
    for closes in [true, false, true] {
        assert_eq!(rig.runs(), [(call, client)]);
        // The client closes, or has ended.
        if closes {
            rig.not_begun(call);
        }
        rig.end(client);
        if !closes {
            rig.not_begun(call);
        }
        client = rig.next_attempt().1;
        rig.up(client);
    }
    assert_eq!(rig.runs(), [(call, client)]);
    assert_eq!(rig.supervisor.health(&"a").unwrap().counters.retries, 0);
    // One that may have run does not run again.
    assert_eq!(rig.finish(call, Err(&lost(Sent::Maybe))), Verdict::Final);
}

// covers: S0-62
#[test]
fn call_that_its_client_never_began_times_out_at_its_deadline() {
    let (mut rig, client) = Rig::ready(program());
    let mut plan = tool_plan("x");
    plan.timeout = Some(ms(200));
    let call = rig.call(plan);
    assert_eq!(rig.runs(), [(call, client)]);
    rig.pass(ms(200));
    // The client closed before: no error of it tells that the time is over.
    rig.not_begun(call);
    assert_eq!(rig.refused(), [(call, CallRefusal::Timeout { after: ms(200) })]);
    assert_eq!(rig.finish(call, Ok(())), Verdict::Ignore);
}

// covers: S0-62
#[test]
fn retired_client_that_has_not_begun_its_last_call_is_closed() {
    let (mut rig, old) = Rig::ready(web());
    let call = rig.call(tool_plan("x"));
    assert_eq!(rig.runs(), [(call, old)]);
    assert!(rig.supervisor.reconnect(rig.now, &"a"));
    let new = rig.connects();
    // The application has closed it meanwhile.
    rig.not_begun(call);
    assert_eq!(rig.closed(), [old]);
    rig.end(old);
    rig.up(new);
    assert_eq!(rig.runs(), [(call, new)]);
}

// covers: S0-62, R-29
#[test]
fn calls_of_a_client_that_is_closed_were_lost() {
    let aborted = |sent| CallError::Closed { sent, why: Closed::Aborted };
    let (mut rig, client) = with_tools(program());
    let calls = ["reads", "reads", "plain", "plain", "reads"].map(|name| rig.call(tool_plan(name)));
    let [unwritten, reads, unsent, pays, late] = calls;
    rig.take();
    // The program takes no more bytes. Its client is closed, which ends its other calls.
    assert_eq!(rig.finish(unwritten, Err(&lost(Sent::No))), Verdict::Again);
    assert_eq!(rig.closed(), [client]);
    assert_eq!(rig.finish(reads, Err(&aborted(Sent::Maybe))), Verdict::Again);
    assert_eq!(rig.finish(unsent, Err(&aborted(Sent::No))), Verdict::Again);
    assert_eq!(rig.finish(pays, Err(&aborted(Sent::Maybe))), Verdict::Final);
    assert_eq!(rig.finish(late, Err(&aborted(Sent::Maybe))), Verdict::Again);
    rig.end(client);
    let (_, next) = rig.next_attempt();
    rig.up(next);
    assert_eq!(rig.runs(), [unwritten, reads, unsent, late].map(|call| (call, next)));
}

// covers: S0-61, S0-62, B-084
#[test]
fn client_without_a_session_is_replaced_by_another() {
    let (mut rig, old) = Rig::ready(web());
    let (reads, pays) = (rig.call(CallPlan::new(CallKind::Read)), rig.call(tool_plan("x")));
    assert_eq!(rig.runs(), [(reads, old), (pays, old)]);
    let cause = StreamEnd::Closed(Closed::Eof);
    rig.supervisor.session_lost(rig.now, old, cause.clone());
    assert_eq!(rig.supervisor.health(&"a").unwrap().cause, Some(Cause::SessionLost(cause.clone())));
    // Its calls end with the session. It is closed after the last one.
    assert_eq!(rig.finish(reads, Err(&lost(Sent::Maybe))), Verdict::Again);
    assert_eq!(rig.closed(), []);
    assert_eq!(rig.finish(pays, Err(&lost(Sent::Maybe))), Verdict::Final);
    assert_eq!(rig.closed(), [old]);
    // Nothing more of it matters.
    rig.supervisor.session_lost(rig.now, old, cause.clone());
    rig.end(old);
    let (wait, new) = rig.next_attempt();
    assert_eq!(wait, ms(500));
    rig.supervisor.session_lost(rig.now, old, cause);
    rig.up(new);
    assert_eq!(rig.runs(), [(reads, new)]);
}

// covers: B-084
#[test]
fn replaced_server_answers_none_of_its_calls() {
    let (mut rig, old) = Rig::ready(web());
    let (slow, quick) = (rig.call(tool_plan("x")), rig.call(tool_plan("x")));
    // A call that runs on a client before the current one.
    assert_eq!(rig.finish(quick, Err(&lost(Sent::No))), Verdict::Again);
    let (_, current) = rig.next_attempt();
    rig.up(current);
    assert_eq!(rig.runs(), [(quick, current)]);
    assert!(rig.supervisor.replace(rig.now, &"a", web()));
    let outputs = rig.take();
    for (ticket, client) in [(slow, old), (quick, current)] {
        assert!(outputs.contains(&Output::Refuse { ticket, why: CallRefusal::Replaced }), "{outputs:?}");
        assert!(outputs.contains(&Output::Close(client)), "{outputs:?}");
        assert_eq!(rig.finish(ticket, Ok(())), Verdict::Ignore);
    }
}

#[test]
fn cancelled_call_ends_without_an_output() {
    let (mut rig, client) = Rig::ready(program());
    let running = rig.call(tool_plan("x"));
    rig.end(client);
    let waiting = rig.call(tool_plan("x"));
    rig.take();
    for ticket in [running, waiting] {
        rig.supervisor.cancel(rig.now, ticket);
        assert_eq!(rig.finish(ticket, Ok(())), Verdict::Ignore);
    }
    let (_, next) = rig.next_attempt();
    rig.up(next);
    assert_eq!(rig.runs(), []);
    assert_eq!(rig.supervisor.health(&"a").unwrap().waiting, 0);
}

#[test]
fn number_of_waiting_calls_is_limited() {
    let mut rig = Rig::new(Supervision { max_waiting: 2, ..exact() });
    rig.supervisor.add(rig.now, "a", program()).unwrap();
    for _ in 0..2 {
        rig.call(tool_plan("x"));
    }
    assert_eq!(rig.supervisor.call(rig.now, &"a", tool_plan("x")), Err(CallRefusal::Full));
    assert_eq!(rig.supervisor.call(rig.now, &"b", tool_plan("x")), Err(CallRefusal::Unknown));
    assert_eq!(
        rig.supervisor.add(rig.now, "a", program()).unwrap_err().to_string(),
        "the key is in use, or the supervisor is closed"
    );
}

#[test]
fn calls_of_a_removed_server_end() {
    let (mut rig, client) = Rig::ready(program());
    let running = rig.call(tool_plan("x"));
    rig.take();
    assert!(rig.supervisor.remove(rig.now, &"a") && !rig.supervisor.remove(rig.now, &"a"));
    assert_eq!(rig.take(), [Output::Refuse { ticket: running, why: CallRefusal::Removed }, Output::Close(client)]);
    assert_eq!(rig.supervisor.health(&"a"), None);
    rig.end(client);
    assert_eq!((rig.take(), rig.supervisor.poll_timeout()), (vec![], None));
}

/// Returns the calls of this server that its client has not begun, after the end of the client and
/// before the reports of that.
fn ended_with_calls() -> (Rig, [Ticket; 2]) {
    let (mut rig, client) = Rig::ready(program());
    let calls = [rig.call(tool_plan("x")), rig.call(tool_plan("x"))];
    rig.end(client);
    rig.take();
    (rig, calls)
}

// covers: S0-62, B-084
#[test]
fn calls_that_their_client_never_began_end_with_their_server() {
    type Step = fn(&mut Rig);
    let steps: [(Step, CallRefusal); 3] = [
        (|rig| assert!(rig.supervisor.remove(rig.now, &"a")), CallRefusal::Removed),
        (|rig| assert!(rig.supervisor.replace(rig.now, &"a", program())), CallRefusal::Replaced),
        (|rig| rig.supervisor.close(rig.now), CallRefusal::Closed),
    ];
    for (step, why) in steps {
        let (mut rig, calls) = ended_with_calls();
        step(&mut rig);
        assert_eq!(rig.refused(), calls.map(|ticket| (ticket, why.clone())));
        assert_eq!(rig.finish(calls[0], Ok(())), Verdict::Ignore, "{why:?}");
        rig.not_begun(calls[1]);
        assert_eq!(rig.take(), [], "{why:?}");
    }
}

// covers: S0-62
#[test]
fn calls_of_a_client_that_does_not_end_are_refused_at_the_close() {
    let (mut rig, client) = Rig::ready(program());
    let call = rig.call(tool_plan("x"));
    assert!(rig.supervisor.reconnect(rig.now, &"a"));
    let (_, next) = rig.next_attempt();
    rig.up(next);
    rig.take();
    rig.supervisor.close(rig.now);
    assert_eq!(rig.refused(), [(call, CallRefusal::Closed)]);
    rig.end(next);
    assert_eq!(rig.take(), [], "the first client is still open");
    rig.end(client);
    assert_eq!(rig.take(), [Output::Event(Event::Closed { left: 0 })]);
}

// covers: S0-62
#[test]
fn kind_of_a_call_follows_its_method() {
    fn kind<M: Method>(call: &Call<M>) -> CallKind {
        CallKind::of(call)
    }
    assert_eq!(kind(&tools::call("pay")), CallKind::Tool("pay".into()));
    assert_eq!(kind(&tools::call("pay").repeatable()), CallKind::Read);
    assert_eq!(kind(&tools::list()), CallKind::Read);
    assert_eq!(kind(&resources::list()), CallKind::Read);
    assert_eq!(kind(&resources::templates()), CallKind::Read);
    assert_eq!(kind(&resources::read("file:///a")), CallKind::Read);
    assert_eq!(kind(&prompts::list()), CallKind::Read);
    assert_eq!(kind(&prompts::get("greet")), CallKind::Read);
    assert_eq!(kind(&completion::prompt("greet")), CallKind::Read);
    assert_eq!(kind(&ping()), CallKind::Read);
    assert_eq!(kind(&custom::<()>("acme/pay", &Object::new())), CallKind::Other);
    assert_eq!(kind(&custom::<()>("tools/call", &Object::new())), CallKind::Other);
}
