//! An idle connection that the server has closed, or lost, when the client writes the next request
//! to it.

use super::*;
use crate::client::ClientCommands;
use alloc::vec;

/// The progress of the request on the connection when the connection dies.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Moment {
    /// The driver has not yet taken the request.
    Queued,
    /// This number of bytes of the request was accepted.
    Written(usize),
    /// All bytes of the request were accepted.
    Asked,
    /// This number of bytes of the response arrived.
    Answered(usize),
}

/// The reports by which a driver learns that a connection is dead.
fn deaths() -> Vec<Vec<IoEvent>> {
    vec![
        vec![IoEvent::Closed(Closed::Reset)],
        vec![IoEvent::Closed(Closed::Eof)],
        vec![IoEvent::ReadClosed, IoEvent::Closed(Closed::Eof)],
        vec![IoEvent::ReadClosed, IoEvent::Closed(Closed::Aborted)],
    ]
}

/// Sends a request on connection 1, an idle connection, which dies at this moment. Returns the
/// outputs and the bytes written before.
fn die(repeatable: bool, moment: Moment, death: Vec<IoEvent>) -> (Hand, Vec<String>, Vec<u8>) {
    let mut hand = Hand::ready(16);
    hand.silent = true;
    let call = if repeatable { tools::call("x").repeatable() } else { tools::call("x") };
    let mut told = Vec::new();
    hand.client.call(hand.now, call).expect("it is accepted");
    let apply = |hand: &mut Hand, wire| {
        hand.client.apply(hand.now, Input::Event(ConnectionId(1), wire)).expect("an event cannot fail");
    };
    if moment != Moment::Queued {
        assert_eq!(hand.told(), ["write 1"]);
    }
    let asked = hand.asked.get(&1).cloned().unwrap_or_default();
    match moment {
        Moment::Queued => {}
        Moment::Written(n) => apply(&mut hand, IoEvent::Written(n)),
        Moment::Asked => apply(&mut hand, IoEvent::Written(asked.len())),
        Moment::Answered(n) => {
            apply(&mut hand, IoEvent::Written(asked.len()));
            let answer = hand.response(1).slice(..n);
            apply(&mut hand, IoEvent::Read(answer));
        }
    }
    for wire in death {
        apply(&mut hand, wire);
    }
    told.extend(hand.told());
    // Bytes that the driver has not taken are not written to a closed connection: the driver drops
    // them.
    let asked = if moment == Moment::Queued { hand.asked.remove(&1).unwrap_or_default() } else { asked };
    told.retain(|line| line != "close 1 Abort" && line != "write 1");
    hand.silent = false;
    (hand, told, asked)
}

const BEFORE_THE_ANSWER: [Moment; 5] =
    [Moment::Queued, Moment::Written(0), Moment::Written(1), Moment::Written(100), Moment::Asked];

// covers: B-154
#[test]
fn repeatable_request_moves_to_a_new_connection() {
    for moment in BEFORE_THE_ANSWER {
        for death in deaths() {
            let (mut hand, told, asked) = die(true, moment, death.clone());
            assert_eq!(told, ["open 2"], "{moment:?} {death:?}");
            assert_eq!(hand.open(2), ["write 2"]);
            assert_eq!(hand.asked.get(&2), Some(&asked), "the same bytes");
            assert_eq!(hand.answer(2), ["call 1 succeeded"], "{moment:?} {death:?}");
            assert_eq!(hand.call(true).1, ["write 2"], "the dead one is never used again");
        }
    }
}

// covers: B-154
#[test]
fn request_is_written_at_most_twice() {
    for moment in BEFORE_THE_ANSWER {
        let (mut hand, _, _) = die(true, moment, deaths().remove(0));
        hand.open(2);
        assert_eq!(hand.closed(2), ["call 1 Maybe Reset"], "{moment:?}");
        assert_eq!(hand.call(true).1, ["open 3"]);
    }
    let (mut unopened, _, _) = die(true, Moment::Asked, deaths().remove(0));
    assert_eq!(
        unopened.handle_event(2, IoEvent::Closed(Closed::Refused)),
        ["call 1 Maybe Refused"],
        "the first may have read it"
    );
}

// covers: B-154
#[test]
fn other_request_on_a_dead_connection_fails() {
    for moment in BEFORE_THE_ANSWER {
        for death in deaths() {
            let why = if death[0] == IoEvent::Closed(Closed::Reset) { "Reset" } else { "Eof" };
            let (mut hand, told, _) = die(false, moment, death);
            assert_eq!(told, [format!("call 1 Maybe {why}")], "{moment:?}");
            assert_eq!(hand.call(false).1, ["open 2"], "the dead one is never used again");
        }
    }
}

// covers: B-154
#[test]
fn request_is_not_repeated_after_its_response_began() {
    let whole = {
        let mut hand = Hand::ready(16);
        hand.call(true);
        hand.response(1).len()
    };
    for n in 1..whole {
        for repeatable in [true, false] {
            let (_, told, _) = die(repeatable, Moment::Answered(n), deaths().remove(0));
            assert_eq!(told, ["call 1 Maybe Reset"], "{n} bytes of the answer came");
        }
    }
    for death in deaths() {
        let (mut hand, told, _) = die(true, Moment::Answered(whole), death);
        assert_eq!(told, ["call 1 succeeded"]);
        assert_eq!(hand.call(true).1, ["open 2"]);
    }
}

// covers: B-154
#[test]
fn known_dead_connection_gets_no_request() {
    for repeatable in [true, false] {
        for death in deaths() {
            let mut hand = Hand::ready(16);
            let told: Vec<_> = death.into_iter().flat_map(|wire| hand.handle_event(1, wire)).collect();
            assert!(told.iter().all(|line| line == "close 1 Abort"), "{told:?}");
            assert_eq!(hand.call(repeatable).1, ["open 2"]);
            assert_eq!(hand.open(2), ["write 2"]);
            assert_eq!(hand.answer(2), ["call 1 succeeded"]);
        }
    }
}

// covers: B-154
#[test]
fn half_open_connection_only_delays_repeatable_request() {
    let mut config = ClientConfig::url("http://localhost/mcp").expect("it is a url");
    config.limits.frame.response_timeout = Some(core::time::Duration::from_secs(5));
    for repeatable in [true, false] {
        let mut hand = Hand::with(config.clone());
        assert_eq!(hand.call(repeatable).1, ["write 1"]);
        hand.now = hand.client.poll_timeout().expect("the time of the head");
        hand.client.handle_timeout(hand.now);
        let told = hand.told();
        if repeatable {
            assert_eq!(told, ["close 1 Abort", "open 2"]);
            hand.open(2);
            assert_eq!(hand.answer(2), ["call 1 succeeded"]);
        } else {
            assert_eq!(told, ["close 1 Abort", "call 1 Maybe Timeout"]);
        }
    }
}

// covers: B-154
#[test]
fn repeated_request_waits_for_a_place_in_a_full_pool() {
    let mut hand = Hand::ready(1);
    assert_eq!(hand.call(true).1, ["write 1"]);
    assert_eq!(hand.call(true).1, NOTHING);
    assert_eq!(
        hand.handle_event(1, IoEvent::ReadClosed),
        ["close 1 Abort"],
        "the place of a connection is free once it is closed"
    );
    assert_eq!(hand.closed(1), ["open 2"]);
    assert_eq!(hand.open(2), ["write 2"]);
    assert_eq!(hand.answer(2), ["write 2", "call 1 succeeded"], "it goes before those that came after it");
    assert_eq!(hand.answer(2), ["call 2 succeeded"]);
}

// covers: B-100, B-154
#[test]
fn repeated_request_without_a_connection_may_have_run() {
    let mut config = ClientConfig::url("http://localhost/mcp").expect("it is a url");
    config.authorize = true;
    let mut hand = Hand::with(config);
    assert_eq!(hand.call(true).1, ["write 1"]);
    assert_eq!(hand.closed(1), ["open 2"], "the server may have read the request on connection 1");
    assert_eq!(hand.open(2), ["write 2"]);
    let refusal = b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    assert!(
        hand.handle_event(2, IoEvent::Read(Bytes::from_static(refusal)))
            .last()
            .expect("a challenge")
            .starts_with("AuthNeeded")
    );
    hand.closed(2);
    let credentials = Authorization::Headers(Headers::new().with("Authorization", "Bearer 1"));
    let command = ClientCommand::Authorize(AuthKey::new(1), credentials);
    hand.client.apply(hand.now, Input::Command(command)).expect("the challenge is open");
    assert_eq!(hand.told(), ["open 3"]);
    assert_eq!(hand.handle_event(3, IoEvent::Closed(Closed::Refused)), ["call 1 Maybe Refused"]);
}
