//! A kept connection that the server has closed, or forgotten, by the time the next request is written to it.

use super::*;
use alloc::vec;

/// How far the request on the connection has come when it dies.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Moment {
    /// The driver has not yet taken the request.
    Queued,
    /// So many bytes of the request were accepted.
    Written(usize),
    /// All bytes of the request were.
    Asked,
    /// So many bytes of the answer came.
    Answered(usize),
}

/// The ways in which a driver may learn that a connection is dead.
fn deaths() -> Vec<Vec<IoEvent>> {
    vec![
        vec![IoEvent::Closed(Closed::Reset)],
        vec![IoEvent::Closed(Closed::Eof)],
        vec![IoEvent::Eof, IoEvent::Closed(Closed::Eof)],
        vec![IoEvent::Eof, IoEvent::Closed(Closed::Aborted)],
    ]
}

/// A client that asks on connection 1, used before, which dies at this moment. Gives what is told and what had been written.
fn die(repeatable: bool, moment: Moment, death: Vec<IoEvent>) -> (Hand, Vec<String>, Vec<u8>) {
    let mut hand = Hand::ready(16);
    hand.silent = true;
    let call = if repeatable { tools::call("x").repeatable() } else { tools::call("x") };
    let mut told = Vec::new();
    hand.client.call(hand.now, call).expect("it is accepted");
    let fact = |hand: &mut Hand, wire| {
        hand.client.apply(hand.now, Input::Event(ConnectionId(1), wire)).expect("a fact cannot fail");
    };
    if moment != Moment::Queued {
        assert_eq!(hand.told(), ["write 1"]);
    }
    let asked = hand.asked.get(&1).cloned().unwrap_or_default();
    match moment {
        Moment::Queued => {}
        Moment::Written(n) => fact(&mut hand, IoEvent::Written(n)),
        Moment::Asked => fact(&mut hand, IoEvent::Written(asked.len())),
        Moment::Answered(n) => {
            fact(&mut hand, IoEvent::Written(asked.len()));
            let answer = hand.response(1).slice(..n);
            fact(&mut hand, IoEvent::Bytes(answer));
        }
    }
    for wire in death {
        fact(&mut hand, wire);
    }
    told.extend(hand.told());
    // What was never taken is not written to a connection that is closed: a driver drops it.
    let asked = if moment == Moment::Queued { hand.asked.remove(&1).unwrap_or_default() } else { asked };
    told.retain(|line| line != "close 1 Abort" && line != "write 1");
    hand.silent = false;
    (hand, told, asked)
}

const BEFORE_THE_ANSWER: [Moment; 5] =
    [Moment::Queued, Moment::Written(0), Moment::Written(1), Moment::Written(100), Moment::Asked];

// covers: B-154
#[test]
fn a_repeatable_request_that_met_a_dead_connection_is_written_to_a_new_one_and_that_answers() {
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
fn it_is_written_a_second_time_and_never_a_third() {
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
fn any_other_request_that_met_a_dead_connection_is_lost_and_said_to_be() {
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
fn a_request_whose_answer_has_begun_is_not_written_again() {
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
fn a_connection_that_died_before_the_request_takes_none() {
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
fn a_connection_whose_other_side_has_forgotten_it_costs_a_repeatable_request_only_time() {
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
fn a_connection_dies_with_a_full_pool_and_the_repeated_request_waits_for_its_place() {
    let mut hand = Hand::ready(1);
    assert_eq!(hand.call(true).1, ["write 1"]);
    assert_eq!(hand.call(true).1, NOTHING);
    assert_eq!(
        hand.handle_event(1, IoEvent::Eof),
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
fn repeated_request_refused_then_connection_refused_may_have_run() {
    let mut config = ClientConfig::url("http://localhost/mcp").expect("it is a url");
    config.authorize = true;
    let mut hand = Hand::with(config);
    assert_eq!(hand.call(true).1, ["write 1"]);
    assert_eq!(hand.closed(1), ["open 2"], "the server may have read the request on connection 1");
    assert_eq!(hand.open(2), ["write 2"]);
    let refusal = b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    assert!(
        hand.handle_event(2, IoEvent::Bytes(Bytes::from_static(refusal)))
            .last()
            .expect("a challenge")
            .starts_with("AuthNeeded")
    );
    hand.closed(2);
    let credentials = Authorization::Headers(Headers::new().with("Authorization", "Bearer 1"));
    let command = ClientCommand::Authorize(AuthKey(1), credentials);
    hand.client.apply(hand.now, Input::Command(command)).expect("the challenge is open");
    assert_eq!(hand.told(), ["open 3"]);
    assert_eq!(hand.handle_event(3, IoEvent::Closed(Closed::Refused)), ["call 1 Maybe Refused"]);
}
