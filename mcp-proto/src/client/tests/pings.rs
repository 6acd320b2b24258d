//! The periodic pings of a client.

use super::*;

const LEGACY: ProtocolVersion = ProtocolVersion::V2025_11_25;
const MODERN: ProtocolVersion = ProtocolVersion::V2026_07_28;
const PERIOD: Duration = Duration::from_secs(60);
const PATIENCE: Duration = Duration::from_secs(5);

fn config() -> ClientConfig {
    ClientConfig { ping: Some(PERIOD), ping_timeout: PATIENCE, ..ClientConfig::program(Program::new("server")) }
}

impl Rig {
    /// Returns the reported missed pings.
    fn missed(&self) -> Vec<(Duration, u32)> {
        let missed = |event: &Event| match event {
            Event::PingMissed { waited, in_a_row } => Some((*waited, *in_a_row)),
            _ => None,
        };
        self.events.iter().filter_map(missed).collect()
    }
}

// covers: PING-B-003
#[test]
fn ping_is_sent_once_a_period_without_events() {
    for (version, method) in [(LEGACY, "ping"), (MODERN, "server/discover")] {
        let mut rig = Rig::ready(version, config());
        for n in 1..=3 {
            assert_eq!(rig.client.timeout_reason(), Some(Timer::Ping));
            rig.tick(PERIOD - ms(1));
            assert_eq!(rig.sent.len(), n - 1, "not before its time");
            rig.tick(ms(1));
            assert_eq!(rig.methods().len(), n);
            assert_eq!(rig.methods().last(), Some(&method));
            assert_eq!(rig.sent[n - 1]["params"]["_meta"].is_object(), version == MODERN);
            // The period begins with the response.
            rig.tick(ms(700));
            let id = rig.last_id();
            match n {
                1 => rig.answer(&id, json!({})),
                2 => rig.say(error(&id, -32601)),
                _ => rig.say(json!({"jsonrpc": "2.0", "id": id, "result": 1, "error": 2})),
            }
        }
        assert_eq!(rig.missed(), []);
        assert!(rig.events.iter().all(|event| matches!(event, Event::Diagnostic(_))), "{:?}", rig.events);
        assert_eq!(rig.client.running(), 0);
        rig.client.close(rig.now);
        rig.drain();
        rig.handle_event(rig.exchange(), ExchangeEvent::Failed { sent: Sent::Maybe, why: exited(0) });
        rig.assert_at_rest();
    }
}

// covers: PING-B-003
#[test]
fn missed_ping_is_reported_and_ends_nothing() {
    let mut rig = Rig::ready(LEGACY, config());
    let call = rig.call(tools::call("slow").timeout(None));
    for n in 1..=3 {
        rig.tick(PERIOD);
        rig.tick(PATIENCE - ms(1));
        assert_eq!(rig.missed().len(), n as usize - 1, "not before its time");
        rig.tick(ms(1));
        assert_eq!(rig.missed().last(), Some(&(PATIENCE, n)));
    }
    assert_eq!(rig.methods()[1..], ["ping", "notifications/cancelled"].repeat(3), "each is given up before the next");
    assert_eq!((rig.client.state(), rig.has_ended(call)), (State::Ready, false));
    // A late response is dropped. A response in time resets the count.
    let id = rig.last_id();
    rig.answer(&id, json!({}));
    assert_eq!(rig.diagnostics(), [DiagnosticKind::LateAnswer]);
    rig.tick(PERIOD);
    let id = rig.last_id();
    rig.answer(&id, json!({}));
    rig.tick(PERIOD);
    rig.tick(PATIENCE);
    assert_eq!(rig.missed().last(), Some(&(PATIENCE, 1)));
}

#[test]
fn server_that_does_not_read_gets_one_ping() {
    let mut limited = config();
    limited.limits.client.max_unsent = 100;
    let mut rig = Rig::ready(LEGACY, limited);
    rig.handle_event(rig.exchange(), ExchangeEvent::Unsent(100));
    for n in 1..=3 {
        rig.tick(PERIOD);
        assert_eq!((rig.missed().last(), rig.sent.len()), (Some(&(Duration::ZERO, n)), 0));
    }
    rig.handle_event(rig.exchange(), ExchangeEvent::Unsent(99));
    rig.tick(PERIOD);
    assert_eq!(rig.methods(), ["ping"]);
}

#[test]
fn pings_are_off_by_default_and_have_a_minimum_period() {
    let mut rig = Rig::ready(LEGACY, ClientConfig::given());
    assert_eq!(rig.client.poll_timeout(), None);
    rig.tick(Duration::from_secs(1_000_000));
    assert!(rig.sent.is_empty());
    let mut rig = Rig::ready(LEGACY, ClientConfig { ping: Some(Duration::ZERO), ..config() });
    rig.tick(ms(9));
    assert!(rig.sent.is_empty());
    rig.tick(Duration::from_secs(1000));
    assert_eq!(rig.methods(), ["ping"], "one, however late the tick comes");
}

#[test]
fn pings_end_with_the_output_of_the_server() {
    let mut rig = Rig::ready(LEGACY, config());
    rig.tick(PERIOD);
    rig.tick(PATIENCE);
    rig.tick(PERIOD);
    assert_eq!((rig.missed().len(), rig.methods().len()), (1, 3));
    rig.handle_event(rig.exchange(), ExchangeEvent::Inbound(Inbound::End));
    assert_eq!(rig.client.timeout_reason(), Some(Timer::ExitGrace));
    rig.handle_event(rig.exchange(), ExchangeEvent::Failed { sent: Sent::Maybe, why: exited(1) });
    assert_eq!((rig.missed().len(), rig.termination()), (1, Some(&Termination::Closed(exited(1)))));
    rig.assert_at_rest();
}
