//! A server that exits and is restarted.

use super::*;

const LEGACY: ProtocolVersion = ProtocolVersion::V2025_11_25;
const MODERN: ProtocolVersion = ProtocolVersion::V2026_07_28;

fn config() -> ClientConfig {
    ClientConfig { restart: Some(Restart::default()), ..ClientConfig::program(Program::new("server")) }
}

fn failed(why: Closed) -> ExchangeEvent {
    ExchangeEvent::Failed { sent: Sent::Maybe, why }
}

impl Rig {
    /// The server exits.
    fn exits(&mut self) {
        self.handle_event(self.exchange(), failed(exited(3)));
    }

    /// The latest server opens and answers the handshake.
    fn agrees(&mut self, version: ProtocolVersion) {
        self.open();
        let id = self.last_id();
        match version.era() {
            Era::Modern => self.answer(&id, discover(&[version.as_str()])),
            Era::Legacy => self.answer(&id, initialized(version.as_str())),
        }
        assert_eq!(self.client.state(), State::Ready);
    }

    /// Returns the announced starts: attempt, wait in milliseconds, cause.
    fn announced(&self) -> Vec<(u32, u64, Closed)> {
        let restarting = |event: &Event| match event {
            Event::Restarting { attempt, wait, why } => Some((*attempt, wait.as_millis() as u64, why.clone())),
            _ => None,
        };
        self.events.iter().filter_map(restarting).collect()
    }

    fn readies(&self) -> usize {
        self.events.iter().filter(|event| matches!(event, Event::Ready(_))).count()
    }
}

// covers: STDIO-C-019, R-32, R-33
#[test]
fn server_that_exits_ends_its_calls_and_is_restarted() {
    for version in [LEGACY, MODERN] {
        let mut rig = Rig::ready(version, config());
        let (first, second) = (rig.echo(), rig.echo());
        let dead = rig.exchange();
        rig.exits();
        let lost = Err(CallError::Closed { sent: Sent::Maybe, why: exited(3) });
        assert_eq!((rig.outcome(first), rig.outcome(second)), (&lost, &lost));
        assert_eq!(rig.announced(), [(1, 500, exited(3))]);
        assert!(matches!(rig.events.last(), Some(Event::Restarting { .. })), "the calls end first");
        assert_eq!((rig.client.state(), rig.client.server_info()), (State::Restarting, None));
        assert_eq!((rig.starts.len(), rig.client.timeout_reason()), (1, Some(Timer::Restart)));

        let third = rig.echo();
        rig.clear();
        rig.tick(ms(499));
        assert_eq!(rig.starts.len(), 1, "not before its time");
        rig.tick(ms(1));
        assert_eq!(rig.starts.len(), 2);
        assert!(matches!(&rig.starts[1].1, Start::Duplex(Endpoint::Program(program)) if program.command == "server"));
        let hello = if version == MODERN { "server/discover" } else { "initialize" };
        assert_eq!(rig.methods(), [hello], "what was learnt comes first");
        rig.agrees(version);
        assert_eq!(rig.readies(), 1);
        assert_eq!(rig.methods().last(), Some(&"tools/call"), "what waited is sent, and nothing is repeated");
        assert_eq!(rig.methods().iter().filter(|method| **method == "tools/call").count(), 1);
        // Late messages of the dead server are dropped.
        let before = rig.events.len();
        rig.handle_event(dead, ExchangeEvent::Opened(Peer::default()));
        rig.handle_event(dead, ExchangeEvent::Inbound(Inbound::End));
        rig.handle_event(dead, failed(Closed::Reset));
        assert_eq!((rig.events.len(), rig.client.state()), (before, State::Ready));
        let id = rig.last_id();
        rig.answer(&id, json!({"content": []}));
        assert!(rig.outcome(third).is_ok());
        rig.client.close(rig.now);
        rig.drain();
        rig.exits();
        assert_eq!(rig.termination(), Some(&Termination::Requested));
        rig.assert_at_rest();
    }
}

// covers: S0-33
#[test]
fn no_restart_unless_configured() {
    let given = ClientConfig { target: ClientConfig::given().target, ..config() };
    let unwanted = ClientConfig { restart: None, ..config() };
    for config in [given, unwanted] {
        let mut rig = Rig::ready(LEGACY, config);
        let call = rig.echo();
        rig.exits();
        assert_eq!(rig.outcome(call), &Err(CallError::Closed { sent: Sent::Maybe, why: exited(3) }));
        assert_eq!(rig.termination(), Some(&Termination::Closed(exited(3))));
        assert_eq!((rig.announced().len(), rig.starts.len()), (0, 1));
        rig.assert_at_rest();
    }
}

#[test]
fn socket_is_reconnected_until_a_server_listens() {
    let mut rig = Rig::ready(LEGACY, ClientConfig { target: ClientConfig::unix("/run/it").target, ..config() });
    rig.handle_event(rig.exchange(), failed(Closed::Eof));
    rig.tick(ms(500));
    rig.handle_event(rig.exchange(), ExchangeEvent::Failed { sent: Sent::No, why: Closed::Refused });
    assert_eq!(rig.announced(), [(1, 500, Closed::Eof), (2, 1000, Closed::Refused)]);
    rig.tick(ms(1000));
    rig.agrees(LEGACY);
    assert_eq!(rig.starts.len(), 3);
}

//
#[test]
fn server_that_always_exits_exhausts_its_restarts() {
    for hello in [true, false] {
        let mut rig = Rig::ready(LEGACY, config());
        let mut waiting = None;
        for wait in [500, 1000, 2000, 4000] {
            rig.exits();
            assert_eq!(rig.announced().last().map(|(_, told, _)| *told), Some(wait));
            waiting = waiting.or_else(|| Some(rig.echo()).filter(|_| !hello));
            rig.tick(ms(wait));
            rig.open();
            if hello {
                rig.agrees(LEGACY);
            }
        }
        rig.exits();
        assert_eq!(rig.termination(), Some(&Termination::Closed(exited(3))));
        assert_eq!((rig.starts.len(), rig.announced().len()), (5, 4));
        if let Some(call) = waiting {
            let never = CallError::Closed { sent: Sent::No, why: exited(3) };
            assert_eq!(rig.outcome(call), &Err(never), "it waited for a server that never came");
        }
        rig.assert_at_rest();
    }
}

//
#[test]
fn long_run_resets_the_backoff() {
    let mut rig = Rig::ready(LEGACY, config());
    for _ in 0..20 {
        rig.tick(Duration::from_secs(31));
        rig.exits();
        assert_eq!(rig.announced().last(), Some(&(1, 500, exited(3))));
        rig.tick(ms(500));
        rig.agrees(LEGACY);
    }
    assert_eq!(rig.termination(), None);
}

#[test]
fn restart_wait_is_configurable() {
    let restart = |waits: Vec<Duration>, jitter| Restart { waits, jitter, max_starts: 100, ..Restart::default() };
    let waits = |restart| {
        let mut rig = Rig::ready(LEGACY, ClientConfig { restart: Some(restart), ..config() });
        for _ in 0..4 {
            rig.exits();
            let wait = rig.announced().last().map_or(0, |(_, wait, _)| *wait);
            rig.tick(ms(wait));
            rig.agrees(LEGACY);
        }
        rig.announced().iter().map(|(_, wait, _)| *wait).collect::<Vec<_>>()
    };
    assert_eq!(waits(restart(vec![], Duration::ZERO)), [0, 0, 0, 0]);
    assert_eq!(waits(restart(vec![ms(10), ms(70)], Duration::ZERO)), [10, 70, 70, 70]);
    let random = waits(restart(vec![ms(10)], ms(1000)));
    assert!(random.iter().all(|wait| (10..=1010).contains(wait)), "{random:?}");
    assert!(random.iter().any(|wait| *wait != random[0]), "{random:?}");
}

#[test]
fn close_during_the_wait_terminates_at_once() {
    let mut rig = Rig::ready(LEGACY, config());
    rig.exits();
    let call = rig.echo();
    rig.client.close(rig.now);
    rig.drain();
    assert_eq!(rig.outcome(call), &Err(CallError::Closed { sent: Sent::No, why: Closed::Aborted }));
    assert_eq!(rig.termination(), Some(&Termination::Requested));
    rig.assert_at_rest();
    rig.tick(Duration::from_secs(60));
    assert_eq!(rig.starts.len(), 1);
}

#[test]
fn call_during_the_wait_has_its_own_timeout() {
    let mut rig = Rig::ready(LEGACY, config());
    rig.exits();
    let (call, cancelled) = (rig.call(tools::call("echo").timeout(ms(300))), rig.echo());
    rig.client.cancel(rig.now, cancelled, None);
    rig.tick(ms(300));
    let late = CallError::Timeout { after: ms(300), sent: Sent::No, awaited: Awaited::Start };
    assert_eq!(rig.outcome(call), &Err(late));
    assert_eq!(rig.outcome(cancelled), &Err(CallError::Cancelled { reason: None }));
    rig.tick(ms(200));
    rig.agrees(LEGACY);
    assert!(!rig.methods().contains(&"tools/call") && !rig.methods().contains(&"notifications/cancelled"));
}

#[test]
fn input_requests_end_with_their_server() {
    let mut rig = Rig::ready(LEGACY, config().with_elicitation());
    let call = rig.echo();
    rig.say(json!({"jsonrpc": "2.0", "id": 9, "method": "elicitation/create", "params": {"message": "?",
        "requestedSchema": {"type": "object", "properties": {}}}}));
    let (key, _) = rig.questions()[0];
    rig.exits();
    assert!(rig.has_ended(call) && rig.events.contains(&Event::InputWithdrawn(key)));
    rig.tick(ms(500));
    rig.agrees(LEGACY);
    rig.clear();
    rig.reply(key, InputAnswer::internal("late"));
    assert!(rig.sent.is_empty(), "the new server asked nothing");
    // No timeout is paused any more.
    let call = rig.call(tools::call("echo").timeout(ms(100)));
    rig.tick(ms(100));
    assert!(rig.has_ended(call));
}

#[test]
fn old_server_exits_before_the_next_one_starts() {
    let mut rig = Rig::ready(LEGACY, config());
    let call = rig.echo();
    rig.handle_event(rig.exchange(), ExchangeEvent::Inbound(Inbound::End));
    assert_eq!((rig.client.state(), rig.ended.len()), (State::Ending, 1));
    let later = rig.echo();
    rig.tick(ms(500));
    assert_eq!(rig.outcome(call), &Err(CallError::Closed { sent: Sent::Maybe, why: Closed::Eof }));
    assert!(!rig.has_ended(later), "it was never sent");
    assert_eq!(rig.announced(), [(1, 500, Closed::Eof)]);
    rig.tick(ms(500));
    assert_eq!((rig.client.state(), rig.starts.len()), (State::Restarting, 1), "the ladder is not at its end");
    rig.handle_event(rig.exchange(), failed(Closed::Exited(ExitStatus::killed(15))));
    assert_eq!((rig.client.state(), rig.starts.len()), (State::Initializing, 2));
    rig.agrees(LEGACY);
    assert_eq!(rig.methods().last(), Some(&"tools/call"));
}

#[test]
fn restarted_server_may_have_another_revision() {
    // The remembered era is tried first. A server of another revision is detected as at the first
    // start.
    let mut rig = Rig::new(config());
    rig.open();
    let id = rig.last_id();
    rig.say(error(&id, -32601));
    rig.agrees(LEGACY);
    rig.exits();
    rig.clear();
    rig.tick(ms(500));
    rig.open();
    assert_eq!(rig.methods(), ["initialize"]);
    let id = rig.last_id();
    rig.say(error(&id, -32601));
    rig.agrees(MODERN);
    assert_eq!(rig.methods(), ["initialize", "server/discover"]);
    assert_eq!(rig.client.verdict(), Some(Verdict::new(MODERN)));
    // A failed negotiation terminates the client.
    let mut rig = Rig::ready(MODERN, config());
    rig.exits();
    rig.tick(ms(500));
    rig.open();
    let id = rig.last_id();
    rig.say(error(&id, -32601));
    assert!(matches!(rig.termination(), None | Some(Termination::Negotiation(_))));
    rig.handle_event(rig.exchange(), failed(exited(0)));
    assert!(matches!(rig.termination(), Some(Termination::Negotiation(_))));
}

#[test]
fn silent_restarted_server_counts_as_failed() {
    let mut rig = Rig::ready(LEGACY, config());
    rig.exits();
    rig.tick(ms(500));
    rig.open();
    let silent = rig.exchange();
    rig.tick(Duration::from_secs(30));
    assert_eq!(rig.aborted, [silent]);
    assert_eq!(rig.announced().last(), Some(&(1, 500, Closed::Timeout)), "30 s later the first start no longer counts");
    rig.tick(ms(500));
    rig.agrees(LEGACY);
}

#[test]
fn exit_during_the_probe_after_a_restart_counts() {
    let mut rig = Rig::new(config());
    rig.agrees(MODERN);
    rig.exits();
    rig.tick(ms(500));
    rig.open();
    rig.exits();
    // It has answered the probe before, so the client does not fall back at once.
    assert_eq!((rig.client.state(), rig.announced().len(), rig.starts.len()), (State::Restarting, 2, 2));
}

#[test]
fn exit_on_the_first_probe_is_no_restart() {
    let mut rig = Rig::new(config());
    rig.open();
    rig.exits();
    rig.agrees(LEGACY);
    assert_eq!(rig.starts.len(), 2);
    rig.exits();
    assert_eq!(rig.announced(), [(1, 500, exited(3))]);
}

#[test]
fn finished_wait_does_not_shorten_later_ones() {
    let mut rig = Rig::ready(LEGACY, config());
    for (starts, wait) in [(1, 500), (2, 1000)] {
        // The server closes its output, keeps running, and exits after the last shutdown step.
        rig.handle_event(rig.exchange(), ExchangeEvent::Inbound(Inbound::End));
        rig.tick(ms(500));
        if starts == 2 {
            rig.exits();
        }
        rig.tick(ms(wait - 1));
        assert_eq!((rig.client.state(), rig.starts.len()), (State::Restarting, starts));
        rig.tick(ms(1));
        if starts == 1 {
            rig.exits();
        }
        assert_eq!(rig.starts.len(), starts + 1);
        rig.agrees(LEGACY);
    }
}

#[test]
fn connect_timeout_bounds_each_start_after_a_restart() {
    let mut rig = Rig::ready(LEGACY, ClientConfig { connect_timeout: ms(5_000), ..config() });
    rig.exits();
    rig.tick(ms(500));
    rig.open();
    rig.tick(ms(4_999));
    assert_eq!(rig.client.state(), State::Initializing);
    rig.tick(ms(1));
    assert_eq!(rig.announced().last(), Some(&(2, 1000, Closed::Timeout)), "a start that takes too long is lost");
    rig.tick(ms(1000));
    rig.agrees(LEGACY);
    rig.tick(ms(60_000));
    assert_eq!(rig.client.state(), State::Ready);
}
