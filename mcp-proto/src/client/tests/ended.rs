//! The end of the server of a duplex connection.

use super::*;
use crate::InputAnswer;

const LEGACY: ProtocolVersion = ProtocolVersion::V2025_11_25;
const MODERN: ProtocolVersion = ProtocolVersion::V2026_07_28;

/// The server exits.
fn exits(rig: &mut Rig) {
    rig.handle_event(rig.exchange(), ExchangeEvent::Failed { sent: Sent::Maybe, why: exited(3) });
}

// covers: S0-33
#[test]
fn client_ends_with_its_server_whatever_the_target() {
    let mut targets =
        vec![ClientConfig::given(), ClientConfig::unix("/run/it"), ClientConfig::program(Program::new("server"))];
    if cfg!(feature = "ws") {
        targets.push(ClientConfig::url("ws://localhost/mcp").unwrap());
    }
    for (config, version) in targets.into_iter().zip([LEGACY, MODERN].into_iter().cycle()) {
        let mut rig = Rig::ready(version, config);
        let (first, second) = (rig.echo(), rig.echo());
        exits(&mut rig);
        let lost = Err(CallError::Closed { sent: Sent::Maybe, why: exited(3) });
        assert_eq!((rig.outcome(first), rig.outcome(second)), (&lost, &lost));
        assert_eq!(rig.events.last(), Some(&Event::Terminated(Termination::Closed(exited(3)))), "the calls end first");
        assert_eq!((rig.client.server_info(), rig.client.verdict()), (None, Some(Verdict::new(version))));
        assert_eq!(rig.client.call(rig.now, tools::list()).unwrap_err().why, Refusal::Closed);
        // Late messages of the dead server are dropped.
        let before = rig.events.len();
        rig.handle_event(rig.exchange(), ExchangeEvent::Opened(Peer::default()));
        rig.handle_event(rig.exchange(), ExchangeEvent::Inbound(Inbound::End));
        exits(&mut rig);
        rig.tick(Duration::from_secs(3600));
        assert_eq!((rig.events.len(), rig.starts.len()), (before, 1));
        rig.assert_at_rest();
    }
}

#[test]
fn input_requests_end_with_their_server() {
    let mut rig = Rig::ready(LEGACY, ClientConfig::given().with_elicitation());
    let call = rig.echo();
    rig.say(json!({"jsonrpc": "2.0", "id": 9, "method": "elicitation/create", "params": {"message": "?",
        "requestedSchema": {"type": "object", "properties": {}}}}));
    let (key, _) = rig.questions()[0];
    rig.clear();
    rig.handle_event(rig.exchange(), ExchangeEvent::Inbound(Inbound::End));
    assert_eq!(rig.events, [Event::InputWithdrawn(key)], "the client can send no more answers");
    rig.reply(key, InputAnswer::internal("late"));
    exits(&mut rig);
    assert!(rig.has_ended(call) && rig.sent.is_empty());
    rig.assert_at_rest();
}

#[test]
fn program_that_was_started_twice_is_not_started_again() {
    let mut rig = Rig::program();
    rig.open();
    exits(&mut rig);
    rig.open();
    let id = rig.last_id();
    rig.answer(&id, initialized(LEGACY.as_str()));
    assert_eq!((rig.starts.len(), rig.client.state()), (2, State::Ready));
    exits(&mut rig);
    assert_eq!(rig.termination(), Some(&Termination::Closed(exited(3))));
    assert_eq!(rig.starts.len(), 2);
}
