//! Attempts to connect: their delays, their limits, their identity.

use super::*;
use alloc::sync::Arc;

// covers: S0-61, R-33, R-32
#[test]
fn lost_server_is_reconnected_after_delays_and_then_down() {
    let (mut rig, mut client) = Rig::ready(program());
    for (attempt, expected) in [(1, 500), (2, 1000), (3, 2000), (4, 4000)] {
        rig.end(client);
        let event = Event::Reconnecting { key: "a", attempt, wait: ms(expected), cause: Cause::Ended(exited()) };
        assert!(rig.outputs.contains(&Output::Event(event)), "{:?}", rig.outputs);
        let (wait, next) = rig.next_attempt();
        assert_eq!(wait, ms(expected));
        assert_ne!(next, client);
        client = next;
    }
    rig.end(client);
    let next = Some(rig.now + ms(30_000));
    assert_eq!(rig.take(), [Output::Event(Event::Down { key: "a", next, cause: Cause::Ended(exited()) })]);
    // Calls fail at once.
    let refused = rig.supervisor.call(rig.now, &"a", tool_plan("x")).unwrap_err();
    assert_eq!(refused, CallRefusal::Unavailable { since: rig.now, next, cause: Cause::Ended(exited()) });
    let health = rig.supervisor.health(&"a").unwrap();
    assert_eq!((health.counters.attempts, health.counters.failures, health.counters.losses), (5, 4, 1));
    // The delays begin again once it is connected.
    let (wait, client) = rig.next_attempt();
    assert_eq!(wait, ms(30_000));
    rig.up(client);
    rig.end(client);
    assert_eq!(rig.next_attempt().0, ms(500));
}

// covers: S0-61, R-33
#[test]
fn server_that_is_down_is_probed_after_twice_the_time_each_time() {
    let (mut rig, mut client) = Rig::ready(program());
    for _ in 0..4 {
        rig.end(client);
        client = rig.next_attempt().1;
    }
    let down_since = rig.now;
    for expected in [30, 60, 120, 240, 300, 300] {
        rig.end(client);
        assert!(matches!(rig.state(), ServerState::Down { since, .. } if since == down_since));
        let (wait, next) = rig.next_attempt();
        assert_eq!(wait, ms(1000 * expected));
        // The server counts as down until the probe succeeds.
        assert_eq!(rig.state(), ServerState::Connecting { generation: next, probe: true });
        let refused = rig.supervisor.call(rig.now, &"a", tool_plan("x")).unwrap_err();
        assert!(matches!(refused, CallRefusal::Unavailable { since, .. } if since == down_since));
        client = next;
    }
    // A server that works for a moment has not recovered.
    rig.up(client);
    rig.pass(ms(29_999));
    for _ in 0..5 {
        rig.end(client);
        client = rig.next_attempt().1;
    }
    rig.end(client);
    assert_eq!(rig.next_attempt().0, ms(300_000));
}

//
#[test]
fn server_that_recovers_is_probed_as_at_first() {
    let (mut rig, mut client) = Rig::ready(program());
    for round in 0..2 {
        for _ in 0..4 {
            rig.end(client);
            client = rig.next_attempt().1;
        }
        rig.end(client);
        let (wait, probe) = rig.next_attempt();
        assert_eq!(wait, ms(30_000), "{round}");
        rig.up(probe);
        rig.pass(ms(30_000));
        client = probe;
    }
}

// covers: S0-61
#[test]
fn server_is_given_up_if_the_application_wants_that() {
    let mut rig = Rig::new(Supervision { when_down: WhenDown::GiveUp, ..exact() });
    rig.supervisor.add(rig.now, "a", program()).unwrap();
    let mut client = rig.connects();
    for _ in 0..4 {
        rig.end(client);
        client = rig.next_attempt().1;
    }
    rig.end(client);
    assert_eq!((rig.state(), rig.supervisor.poll_timeout()), (ServerState::Down { since: rig.now, next: None }, None));
    // The application can ask for an attempt, after the limit of attempts.
    rig.take();
    assert!(!rig.supervisor.reconnect(rig.now, &"a"));
    rig.pass(ms(30_000));
    assert!(rig.supervisor.call(rig.now, &"a", tool_plan("x")).is_err());
    assert!(rig.supervisor.reconnect(rig.now, &"a"));
    let client = rig.connects();
    // Calls wait for it.
    let ticket = rig.call(tool_plan("x"));
    rig.up(client);
    assert_eq!(rig.runs(), [(ticket, client)]);
}

// covers: R-33, B-025
#[test]
fn server_that_always_ends_is_down_after_five_attempts() {
    let (mut rig, mut client) = Rig::ready(program());
    let mut attempts = 1;
    while attempts < 20 {
        rig.end(client);
        let at = rig.supervisor.poll_timeout().unwrap();
        rig.pass(at - rig.now);
        // The sixth attempt would be within the 30 s.
        let Some(next) = rig.started().first().copied() else { break };
        attempts += 1;
        client = next;
        rig.up(client);
    }
    assert_eq!(attempts, 5);
    assert!(matches!(rig.state(), ServerState::Down { next: Some(_), .. }));
}

// covers: B-025
#[test]
fn many_triggers_cause_one_attempt() {
    let (mut rig, client) = Rig::ready(program());
    let calls: Vec<_> = (0..50).map(|_| rig.call(tool_plan("x"))).collect();
    for ticket in &calls {
        assert_eq!(rig.finish(*ticket, Err(&lost(Sent::No))), Verdict::Again);
    }
    assert_eq!(rig.closed(), [client]);
    rig.end(client);
    rig.end(client);
    let (wait, next) = rig.next_attempt();
    assert_eq!(wait, ms(500));
    // Nor do requests of the application cause another one.
    for _ in 0..10 {
        assert!(rig.supervisor.reconnect(rig.now, &"a"));
    }
    assert_eq!(rig.started(), []);
    rig.up(next);
    assert_eq!(rig.runs(), calls.iter().map(|ticket| (*ticket, next)).collect::<Vec<_>>());
}

// covers: B-025, R-33
#[test]
fn jitter_only_lengthens_a_delay_by_at_most_a_quarter() {
    let mut seen = Vec::new();
    for seed in 0..40 {
        let mut supervisor = Supervisor::new(Supervision::default(), [seed; 32]);
        supervisor.add(Instant::ZERO, "a", program()).unwrap();
        let Some(Output::Connect { generation, .. }) = supervisor.poll_output() else { panic!("no attempt") };
        supervisor.ended(Instant::ZERO, generation, exited());
        let wait = supervisor.poll_timeout().unwrap() - Instant::ZERO;
        assert!((ms(500)..=ms(625)).contains(&wait), "{wait:?}");
        seen.push(wait);
    }
    seen.sort();
    seen.dedup();
    assert!(seen.len() > 20, "{seen:?}");
}

// covers: B-084
#[test]
fn reports_of_an_old_client_change_nothing_of_the_new_one() {
    let (mut rig, old) = Rig::ready(program());
    rig.end(old);
    let (_, new) = rig.next_attempt();
    rig.up(new);
    rig.take();
    let before = rig.supervisor.health(&"a");
    rig.end(old);
    rig.up(old);
    rig.supervisor.resolved(rig.now, old, Err("late".into()));
    rig.supervisor.changed(rig.now, old, &Change::Tools);
    rig.supervisor.loaded(rig.now, old, ListKind::Tools, Ok(Listing::none(ListKind::Tools).into()));
    assert_eq!((rig.supervisor.health(&"a"), rig.take()), (before, vec![]));
    assert_eq!(rig.supervisor.freshness(&"a", ListKind::Tools), Freshness::Unknown);
}

// covers: B-136, B-084
#[test]
fn program_is_replaced_only_after_its_end() {
    let (mut rig, old) = Rig::ready(program());
    let running = rig.call(tool_plan("x"));
    rig.take();
    assert!(rig.supervisor.replace(rig.now, &"a", program()));
    assert_eq!(
        rig.take(),
        [Output::Refuse { ticket: running, why: CallRefusal::Replaced }, Output::Close(old)],
        "no second program runs beside the first"
    );
    // A call that is made now waits for the new server, and the old answer is ignored.
    let waiting = rig.call(tool_plan("x"));
    assert_eq!(rig.finish(running, Ok(())), Verdict::Ignore);
    rig.end(old);
    let new = rig.connects();
    rig.up(new);
    assert_eq!(rig.runs(), [(waiting, new)]);
}

// covers: B-136, B-273
#[test]
fn program_without_a_reported_end_is_replaced_in_time() {
    let (mut rig, old) = Rig::ready(program());
    assert!(rig.supervisor.replace(rig.now, &"a", program()));
    assert_eq!(rig.closed(), [old]);
    let (wait, new) = rig.next_attempt();
    assert_eq!(wait, ms(30_000));
    rig.up(new);
    rig.end(old);
    assert!(matches!(rig.state(), ServerState::Ready { generation, .. } if generation == new));
}

// covers: B-136
#[test]
fn program_that_is_removed_and_added_again_runs_once() {
    let (mut rig, old) = Rig::ready(program());
    assert!(rig.supervisor.remove(rig.now, &"a"));
    assert_eq!(rig.closed(), [old]);
    rig.supervisor.add(rig.now, "a", program()).unwrap();
    assert_eq!(rig.started(), []);
    rig.end(old);
    assert_ne!(rig.connects(), old);
}

// covers: B-227
#[test]
fn requested_connection_takes_the_place_of_the_old_one_at_once() {
    let (mut rig, old) = Rig::ready(program());
    assert!(rig.supervisor.reconnect(rig.now, &"a"));
    assert_eq!(rig.closed(), [old]);
    rig.end(old);
    let new = rig.connects();
    rig.up(new);
    let health = rig.supervisor.health(&"a").unwrap();
    assert_eq!((health.counters.losses, health.counters.failures, health.cause), (0, 0, Some(Cause::Requested)));
    // Requests without end do not disturb a server that works.
    for _ in 0..3 {
        assert!(rig.supervisor.reconnect(rig.now, &"a"));
        let old = rig.closed()[0];
        rig.end(old);
        let new = rig.connects();
        rig.up(new);
    }
    rig.take();
    assert!(!rig.supervisor.reconnect(rig.now, &"a"));
    assert!(matches!(rig.state(), ServerState::Ready { .. }) && rig.take().is_empty());
}

// covers: S0-61
#[test]
fn configuration_is_resolved_before_each_attempt() {
    let mut rig = Rig::new(exact());
    let spec = ServerSpec { resolve: true, lists: Lists::NONE, ..program() };
    rig.supervisor.add(rig.now, "a", spec.clone()).unwrap();
    let asked = |outputs: Vec<Output<&'static str>>| match &outputs[..] {
        [.., Output::Resolve { key: "a", generation, config }] if *config == spec.config => *generation,
        other => panic!("{other:?}"),
    };
    let first = asked(rig.take());
    let given = Arc::new(ClientConfig::program(Program::new("other")));
    rig.supervisor.resolved(rig.now, first, Ok(Arc::clone(&given)));
    assert_eq!(rig.take(), [Output::Connect { key: "a", generation: first, config: given }]);
    // A second report is late.
    rig.supervisor.resolved(rig.now, first, Err("late".into()));
    rig.up(first);
    rig.end(first);
    // One that fails, and one that is not answered, are failed attempts.
    rig.take();
    rig.pass(ms(500));
    let second = asked(rig.take());
    rig.supervisor.resolved(rig.now, second, Err("no token".into()));
    let cause = Cause::Unresolved("no token".into());
    assert_eq!(cause.to_string(), "the configuration cannot be resolved: no token");
    let event = Event::Reconnecting { key: "a", attempt: 2, wait: ms(1000), cause };
    assert_eq!(rig.take(), [Output::Event(event)]);
    rig.pass(ms(1000));
    let third = asked(rig.take());
    rig.pass(spec.config.connect_timeout);
    let cause = Cause::ResolveTimeout;
    let event = Event::Reconnecting { key: "a", attempt: 3, wait: ms(2000), cause };
    assert_eq!(rig.take(), [Output::Event(event)]);
    rig.supervisor.resolved(rig.now, third, Ok(spec.config.clone()));
    assert_eq!(rig.take(), []);
}

// covers: S0-61
#[test]
fn server_on_demand_is_connected_by_its_first_call() {
    let mut rig = Rig::new(exact());
    rig.supervisor.add(rig.now, "a", ServerSpec { connect: ConnectWhen::OnDemand, ..program() }).unwrap();
    assert_eq!((rig.state(), rig.take()), (ServerState::Idle, vec![]));
    let ticket = rig.call(tool_plan("x"));
    let client = rig.connects();
    rig.up(client);
    assert_eq!(rig.runs(), [(ticket, client)]);
}

// covers: B-227, S0-61
#[test]
fn calls_wait_for_a_probe_that_was_asked_for() {
    let mut rig = Rig::new(exact());
    rig.supervisor.add(rig.now, "a", program()).unwrap();
    let first = rig.connects();
    rig.end(first);
    for _ in 0..4 {
        let (_, client) = rig.next_attempt();
        rig.end(client);
    }
    let (_, probe) = rig.next_attempt();
    assert!(matches!(rig.state(), ServerState::Connecting { probe: true, .. }));
    let refused = rig.supervisor.call(rig.now, &"a", tool_plan("x"));
    assert!(matches!(refused, Err(CallRefusal::Unavailable { .. })), "{refused:?}");
    assert!(rig.supervisor.reconnect(rig.now, &"a"));
    assert_eq!(rig.started(), [], "the probe is the attempt");
    let call = rig.call(tool_plan("x"));
    // The delays begin again, too.
    rig.end(probe);
    let (wait, next) = rig.next_attempt();
    assert_eq!(wait, ms(500));
    rig.up(next);
    assert_eq!(rig.runs(), [(call, next)]);
}

// covers: S0-61
#[test]
fn all_clients_are_closed_at_the_end_within_a_limit() {
    let mut rig = Rig::new(exact());
    for key in ["a", "b", "c"] {
        rig.supervisor.add(rig.now, key, program()).unwrap();
    }
    let clients = rig.started();
    rig.up(clients[0]);
    let running = rig.call(tool_plan("x"));
    let waiting = rig.supervisor.call(rig.now, &"b", tool_plan("x")).unwrap();
    rig.take();
    rig.supervisor.close(rig.now);
    rig.supervisor.close(rig.now);
    let outputs = rig.take();
    for ticket in [running, waiting] {
        assert!(outputs.contains(&Output::Refuse { ticket, why: CallRefusal::Closed }), "{outputs:?}");
    }
    let closes = |client: &Generation| outputs.iter().filter(|output| **output == Output::Close(*client)).count();
    assert_eq!(clients.iter().map(closes).collect::<Vec<_>>(), [1, 1, 1]);
    assert_eq!(rig.supervisor.call(rig.now, &"a", tool_plan("x")), Err(CallRefusal::Closed));
    assert!(rig.supervisor.add(rig.now, "a", program()).is_err());
    rig.end(clients[0]);
    rig.end(clients[1]);
    assert_eq!(rig.take(), []);
    let mut stuck = Rig { supervisor: rig.supervisor, now: rig.now, outputs: Vec::new() };
    stuck.pass(ms(30_000));
    assert_eq!(stuck.take(), [Output::Event(Event::Closed { left: 1 })]);
    assert_eq!(stuck.supervisor.poll_timeout(), None);
    stuck.end(clients[2]);
    assert_eq!(stuck.take(), []);
}

// covers: B-227
#[test]
fn server_is_lost_after_several_missed_pings_only() {
    for is_program in [true, false] {
        let (mut rig, client) = Rig::ready(spec_of(is_program));
        let call = rig.call(CallPlan::new(CallKind::Read));
        assert_eq!(rig.runs(), [(call, client)]);
        for in_a_row in [1, 2, 1, 2] {
            rig.supervisor.ping_missed(rig.now, client, in_a_row);
            assert_eq!(rig.take(), []);
        }
        rig.supervisor.ping_missed(rig.now, client, 3);
        let cause = Cause::Unresponsive { pings: 3 };
        assert_eq!(rig.supervisor.health(&"a").unwrap().cause, Some(cause.clone()));
        let outputs = rig.take();
        let closes = outputs.contains(&Output::Close(client));
        // Over HTTP the calls of the old client may still get their answers.
        assert_eq!(closes, is_program, "{outputs:?}");
        let announced = |output: &Output<_>| match output {
            Output::Event(Event::Reconnecting { cause, .. }) => Some(cause.clone()),
            _ => None,
        };
        assert!(outputs.iter().filter_map(announced).eq([cause]));
        // Further pings of the old client change nothing.
        rig.supervisor.ping_missed(rig.now, client, 4);
        assert_eq!(rig.take(), []);
        if is_program {
            rig.end(client);
        }
        let (_, next) = rig.next_attempt();
        rig.supervisor.ping_missed(rig.now, next, 3);
        rig.up(next);
        assert!(matches!(rig.state(), ServerState::Ready { generation, .. } if generation == next));
    }
}

fn spec_of(is_program: bool) -> ServerSpec {
    if is_program { program() } else { web() }
}
