//! Servers that refuse: for a time, every session, or every call.

use super::*;
use alloc::boxed::Box;
use mcp_proto::error::{HttpError, NegotiationCause, NegotiationError, Stage, StreamEnd};
use mcp_proto::exchange::UpgradeRefusal;

fn refused(cause: NegotiationCause) -> Termination {
    let (stage, after, first, earlier) = (Stage::Initialize, ms(5), None, vec![]);
    Termination::Negotiation(NegotiationError { stage, cause, after, first, earlier })
}

/// The end of a client whose server asked for a pause of this number of seconds.
fn throttled(seconds: Option<u64>) -> Termination {
    let mut error = HttpError::new(429);
    error.retry_after = seconds.map(Duration::from_secs);
    refused(NegotiationCause::Http(Box::new(error)))
}

/// The end of an attempt to open a stream that the server refused for this number of seconds.
fn put_off(seconds: u64) -> StreamEnd {
    StreamEnd::Status { status: 503, retry_after: Some(Duration::from_secs(seconds)) }
}

fn status(status: u16) -> CallError {
    CallError::Http(Box::new(HttpError::new(status)))
}

fn answered() -> CallError {
    CallError::Rpc(mcp_proto::rpc::ErrorObject::new(-32602, "no"))
}

// covers: S0-61
#[test]
fn next_attempt_is_not_before_the_time_that_the_server_asks_for() {
    for (asked, expected) in [(None, 500), (Some(0), 500), (Some(60), 60_000), (Some(86_400), 300_000)] {
        let mut rig = Rig::new(exact());
        rig.supervisor.add(rig.now, "a", web()).unwrap();
        let client = rig.connects();
        rig.supervisor.ended(rig.now, client, throttled(asked));
        let cause = rig.supervisor.health(&"a").unwrap().cause.unwrap();
        assert_eq!(cause.retry_after(), asked.map(Duration::from_secs));
        let event = Event::Reconnecting { key: "a", attempt: 1, wait: ms(expected), cause };
        assert_eq!(rig.take(), [Output::Event(event)]);
        let (wait, client) = rig.next_attempt();
        assert_eq!(wait, ms(expected));
        // Without it, the usual delay follows.
        rig.supervisor.ended(rig.now, client, exited());
        assert_eq!(rig.next_attempt().0, ms(1000));
    }
}

// covers: S0-61
#[test]
fn server_that_is_down_is_not_probed_before_its_time() {
    let mut rig = Rig::new(exact());
    rig.supervisor.add(rig.now, "a", web()).unwrap();
    let mut client = rig.connects();
    for _ in 0..4 {
        rig.end(client);
        client = rig.next_attempt().1;
    }
    for expected in [100_000, 100_000, 120_000] {
        rig.supervisor.ended(rig.now, client, throttled(Some(100)));
        assert!(matches!(rig.state(), ServerState::Down { next: Some(at), .. } if at == rig.now + ms(expected)));
        let (wait, next) = rig.next_attempt();
        assert_eq!(wait, ms(expected));
        client = next;
    }
}

// covers: S0-61
#[test]
fn application_may_connect_before_the_time_the_server_asks_for() {
    let mut rig = Rig::new(exact());
    rig.supervisor.add(rig.now, "a", web()).unwrap();
    let client = rig.connects();
    rig.supervisor.ended(rig.now, client, throttled(Some(60)));
    rig.take();
    rig.pass(ms(1000));
    assert_eq!(rig.started(), []);
    assert!(rig.supervisor.reconnect(rig.now, &"a"));
    let client = rig.connects();
    rig.end(client);
    assert_eq!(rig.next_attempt().0, ms(500));
}

// covers: S0-61
#[test]
fn every_refusal_may_ask_for_a_time() {
    let mut socket = UpgradeRefusal::new(503);
    socket.retry_after = Some(ms(7000));
    let socket = Closed::NotUpgraded(Box::new(socket));
    let Termination::Negotiation(negotiation) = throttled(Some(7)) else { panic!("an error") };
    let mut http = HttpError::new(503);
    http.retry_after = Some(ms(7000));
    let http = CallError::Http(Box::new(http));
    for cause in [
        Cause::Ended(refused(NegotiationCause::Closed(socket.clone()))),
        Cause::Ended(Termination::Closed(socket.clone())),
        Cause::Unreachable(CallError::Negotiation(negotiation)),
        Cause::Unreachable(CallError::Closed { sent: Sent::No, why: socket }),
        Cause::SessionLost(put_off(7)),
        Cause::Ended(refused(NegotiationCause::NoEndpoint(put_off(7)))),
        Cause::NotListed(ListFault { list: ListKind::Tools, error: http.clone() }),
        Cause::CallsRefused(http),
    ] {
        assert_eq!(cause.retry_after(), Some(ms(7000)), "{cause}");
    }
    let session = Cause::SessionLost(StreamEnd::Ended);
    let unreachable = Cause::Unreachable(lost(Sent::No));
    for cause in [Cause::Ended(exited()), unreachable, session, Cause::Requested, Cause::ResolveTimeout] {
        assert_eq!(cause.retry_after(), None, "{cause}");
    }
}

// covers: S0-61
#[test]
fn next_client_waits_as_the_refused_stream_asked() {
    for (asked, expected) in [(0, 500), (60, 60_000), (86_400, 300_000)] {
        let (mut rig, old) = Rig::ready(web());
        rig.supervisor.session_lost(rig.now, old, put_off(asked));
        let event =
            Event::Reconnecting { key: "a", attempt: 1, wait: ms(expected), cause: Cause::SessionLost(put_off(asked)) };
        assert!(rig.take().contains(&Output::Event(event)));
        assert!(matches!(rig.state(), ServerState::Waiting { until } if until == rig.now + ms(expected)));
        // The old client may end without a word about the time.
        rig.end(old);
        assert_eq!(rig.next_attempt().0, ms(expected));
    }
}

/// Resuming the stream of its response was refused: the call would come before the time as well.
// covers: S0-61, S0-62
#[test]
fn call_is_not_repeated_before_the_time_the_server_asks_for() {
    let (mut rig, _) = Rig::ready(web());
    for (cause, verdict) in [(StreamEnd::Ended, Verdict::Again), (put_off(60), Verdict::Final)] {
        let call = rig.call(CallPlan::new(CallKind::Read));
        let error = CallError::NoResponse { id: 7.into(), attempts: 2, any_message: false, cause };
        assert_eq!(rig.finish(call, Err(&error)), verdict);
        rig.supervisor.cancel(rig.now, call);
    }
}

/// Three handshakes in one session each, or in one client each.
// covers: S0-61, B-025
#[test]
fn session_that_is_lost_after_each_handshake_is_a_failure() {
    for handshakes in [1, 2, 3] {
        let mut rig = Rig::new(Supervision { max_attempts: 100, ..exact() });
        rig.supervisor.add(rig.now, "a", web()).unwrap();
        let mut client = rig.connects();
        let mut waits = Vec::new();
        let mut made = 0;
        while !matches!(rig.state(), ServerState::Down { .. }) {
            for _ in 0..handshakes {
                rig.up(client);
            }
            made += handshakes;
            rig.take();
            rig.supervisor.ended(rig.now, client, refused(NegotiationCause::Http(Box::new(HttpError::new(404)))));
            let counters = rig.supervisor.health(&"a").unwrap().counters;
            assert_eq!(counters.failures > 0, made >= 3, "{handshakes}: {counters:?} after {made}");
            assert_eq!(counters.failures + counters.losses, counters.attempts);
            if matches!(rig.state(), ServerState::Down { .. }) {
                break;
            }
            let (wait, next) = rig.next_attempt();
            waits.push(wait);
            client = next;
            assert!(waits.len() < 20, "{waits:?}");
        }
        let expected: &[u64] = match handshakes {
            1 => &[500, 500, 500, 1000, 2000, 4000],
            2 => &[500, 500, 1000, 2000, 4000],
            _ => &[500, 1000, 2000, 4000],
        };
        assert_eq!(waits, expected.iter().map(|wait| ms(*wait)).collect::<Vec<_>>());
    }
}

// covers: S0-61
#[test]
fn session_with_a_response_or_that_lasts_is_no_failure() {
    for useful in 0..4 {
        let mut rig = Rig::new(exact());
        rig.supervisor.add(rig.now, "a", web()).unwrap();
        let mut client = rig.connects();
        for _ in 0..10 {
            rig.up(client);
            match useful {
                0 => rig.supervisor.loaded(rig.now, client, ListKind::Tools, Ok(Listing::none(ListKind::Tools).into())),
                1 | 2 => {
                    let call = rig.call(tool_plan("x"));
                    let error = answered();
                    let _ = rig.finish(call, if useful == 1 { Ok(()) } else { Err(&error) });
                }
                _ => rig.pass(ms(30_000)),
            }
            rig.end(client);
            let (wait, next) = rig.next_attempt();
            assert_eq!(wait, ms(500), "{useful}");
            // Not more than the permitted number of attempts.
            rig.pass(ms(30_000));
            client = next;
        }
        assert_eq!(rig.supervisor.health(&"a").unwrap().counters.failures, 0);
    }
}

/// Fails this number of calls with a status, one after the other.
fn fail(rig: &mut Rig, calls: usize, error: &CallError) {
    for _ in 0..calls {
        let call = rig.call(tool_plan("x"));
        assert_eq!(rig.finish(call, Err(error)), Verdict::Final);
    }
}

// covers: S0-61, B-100
#[test]
fn server_that_refuses_three_calls_gets_a_fresh_session_once() {
    for code in [400, 404] {
        let (mut rig, client) = Rig::ready(web());
        fail(&mut rig, 2, &status(code));
        assert!(matches!(rig.state(), ServerState::Ready { .. }));
        rig.take();
        fail(&mut rig, 1, &status(code));
        let cause = Cause::CallsRefused(status(code));
        assert_eq!(cause.to_string(), format!("three calls in a row were refused: HTTP {code}"));
        let event = Event::Reconnecting { key: "a", attempt: 1, wait: ms(500), cause };
        let outputs = rig.take();
        assert!(outputs.contains(&Output::Event(event)), "{outputs:?}");
        assert!(outputs.contains(&Output::Close(client)), "{outputs:?}");
        rig.end(client);
        let (_, next) = rig.next_attempt();
        rig.up(next);
        // The lists of the fresh session may load, and its calls may still fail.
        rig.supervisor.loaded(rig.now, next, ListKind::Tools, Ok(Listing::none(ListKind::Tools).into()));
        fail(&mut rig, 10, &status(code));
        assert!(matches!(rig.state(), ServerState::Ready { generation, .. } if generation == next));
        // A call that the server has answered, and the next time is another one.
        fail(&mut rig, 1, &answered());
        fail(&mut rig, 2, &status(code));
        assert!(matches!(rig.state(), ServerState::Ready { .. }));
        fail(&mut rig, 1, &status(code));
        assert!(matches!(rig.state(), ServerState::Waiting { .. }));
    }
}

// covers: S0-61
#[test]
fn other_ends_of_calls_interrupt_the_row_of_refusals() {
    let timeout =
        CallError::Timeout { after: ms(1), sent: Sent::Maybe, awaited: mcp_proto::error::WaitReason::Response };
    let (mut rig, client) = Rig::ready(web());
    for other in [answered(), timeout, status(500), status(403)] {
        fail(&mut rig, 2, &status(400));
        fail(&mut rig, 1, &other);
    }
    fail(&mut rig, 2, &status(404));
    rig.supervisor.loaded(rig.now, client, ListKind::Tools, Ok(Listing::none(ListKind::Tools).into()));
    fail(&mut rig, 2, &status(404));
    assert!(matches!(rig.state(), ServerState::Ready { generation, .. } if generation == client));
}
