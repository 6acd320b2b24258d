//! Admission of duplex connections by the application.

use super::*;
use crate::exchange::{Credentials, PeerKind};
use crate::input::Admission;
use crate::input::AdmitToken;
use crate::input::Principal;

const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;

fn peer() -> Peer {
    Peer::unix(Some(Credentials { pid: Some(7), uid: 1000, gid: 100 }))
}

fn guarded() -> Bench {
    Bench::with(|config| config.admit = true)
}

/// Opens an exchange that needs admission, and returns the token of the event.
fn shown(bench: &mut Bench, x: ExchangeId) -> AdmitToken {
    bench.handle_event(x, ExchangeEvent::Opened(peer()));
    let [Output::Event(Event::Admit(token, None))] = <[Output; 1]>::try_from(bench.outputs()).expect("one output")
    else {
        panic!("it is shown, without a head")
    };
    token
}

fn admit(bench: &mut Bench, token: AdmitToken, admission: Admission) {
    bench.server.admit(bench.now, token, admission);
}

fn accept(who: &str) -> Admission {
    Admission::Accept(Some(who.into()))
}

/// Opens an exchange and admits it with this principal.
fn admitted(bench: &mut Bench, x: ExchangeId, who: &str) {
    let token = shown(bench, x);
    admit(bench, token, accept(who));
    assert_eq!(bench.heard(x), ["Continue"]);
}

// covers: S3-45
#[test]
fn connection_is_served_once_it_is_admitted() {
    let mut bench = guarded();
    let token = shown(&mut bench, A);
    assert_eq!(token.peer(), &peer());
    // A driver may have read further.
    bench.item(A, read(&initialize("2025-11-25", "{}")));
    assert_eq!(bench.outputs(), []);
    assert_eq!(bench.server.poll_timeout(), Some(Instant::from_millis(10_000)));
    admit(&mut bench, token, accept("ada"));
    let said = bench.heard(A);
    assert!(said[0] == "Continue" && said[1].contains("protocolVersion") && said.len() == 2, "{said:?}");
    assert_eq!(bench.server.poll_timeout(), None);
    for id in ["1", "2"] {
        let (responder, incoming) = bench.request(A, &legacy(id, "tools/call", r#"{"name":"t"}"#));
        assert_eq!(incoming.context.principal, Some(Principal("ada".into())));
        assert_eq!(*incoming.context.peer, peer());
        bench.complete(responder, "{}");
    }
    assert!(bench.at_rest());
}

// covers: S3-45
#[test]
fn connection_that_is_not_admitted_is_closed_unserved() {
    let refusals = [
        Some(Admission::Unauthorized("Bearer".into())),
        Some(Admission::Forbidden(None)),
        Some(Admission::Forbidden(Some("Bearer".into()))),
        None,
    ];
    for refusal in refusals {
        let mut bench = guarded();
        let token = shown(&mut bench, A);
        bench.item(A, read(PING));
        let late = match refusal {
            Some(refusal) => {
                admit(&mut bench, token, refusal);
                None
            }
            None => {
                bench.pass(Duration::from_millis(9_999));
                assert_eq!(bench.outputs(), []);
                bench.pass(Duration::from_millis(1));
                Some(token)
            }
        };
        let mut outputs = bench.outputs();
        // The application has not decided, and need not any more.
        let withdrawn: Vec<_> = late.iter().map(|token| Output::Event(Event::AdmitWithdrawn(token.key()))).collect();
        assert_eq!(outputs.split_off(2), withdrawn);
        assert!(
            matches!(&outputs[..], [Output::Event(Event::Diagnostic(d)), Output::Abort(A)] if d.kind == DiagnosticKind::NotAdmitted),
            "{outputs:?}"
        );
        assert!(bench.server.wire.env.exchanges.is_empty() && bench.at_rest());
        late.into_iter().for_each(|token| admit(&mut bench, token, accept("ada")));
        assert_eq!(bench.outputs(), []);
    }
}

// covers: S3-45
#[test]
fn only_accepted_connections_need_admission() {
    let mut bench = guarded();
    let given = Peer::default().named("the parent");
    assert_eq!(given.kind, PeerKind::Given);
    bench.handle_event(A, ExchangeEvent::Opened(given));
    assert_eq!(bench.say(A, &modern("1", "server/discover", "")).len(), 1, "served at once");
    bench.handle_event(B, ExchangeEvent::Opened(Peer::tcp(([127, 0, 0, 1], 1).into())));
    assert!(matches!(&bench.events()[..], [Event::Admit(_, None)]));
    // Without the option, connections are served without admission.
    let mut open = Bench::new();
    open.handle_event(A, ExchangeEvent::Opened(peer()));
    assert_eq!(open.say(A, &modern("1", "server/discover", "")).len(), 1);
}

// covers: B-187
#[test]
fn input_before_admission_is_bounded() {
    let mut bench = guarded();
    // One message and the end of the input are kept, as a shell pipe sends them.
    let token = shown(&mut bench, A);
    bench.item(A, read(&modern("1", "server/discover", "")));
    bench.item(A, Inbound::End);
    admit(&mut bench, token, accept("ada"));
    let said = bench.heard(A);
    assert!(said[0] == "Continue" && said[1].contains("result") && said[2] == "end" && said.len() == 3, "{said:?}");
    // A second message is not kept.
    for second in [read(PING), read("[]"), read("nonsense")] {
        let token = shown(&mut bench, A);
        bench.item(A, read(PING));
        bench.item(A, second);
        let outputs = bench.outputs();
        let [Output::Event(Event::Diagnostic(_)), Output::Abort(A), Output::Event(Event::AdmitWithdrawn(key))] =
            &outputs[..]
        else {
            panic!("{outputs:?}")
        };
        assert_eq!(*key, token.key());
        admit(&mut bench, token, accept("ada"));
        assert_eq!(bench.outputs(), []);
        assert!(bench.server.wire.env.exchanges.is_empty() && bench.at_rest());
    }
}

#[test]
fn connection_closed_before_admission_leaves_no_state() {
    let mut bench = guarded();
    let token = shown(&mut bench, A);
    bench.item(A, read(PING));
    bench.handle_event(A, failed());
    assert_eq!(bench.outputs(), [Output::Event(Event::AdmitWithdrawn(token.key()))]);
    assert!(bench.server.wire.env.exchanges.is_empty() && bench.at_rest());
    // Another exchange with the same number needs its own admission.
    let other = shown(&mut bench, A);
    admit(&mut bench, token, accept("eve"));
    assert_eq!(bench.outputs(), []);
    admit(&mut bench, other, accept("ada"));
    assert_eq!(bench.heard(A), ["Continue"]);
    let waits = shown(&mut bench, B);
    bench.server.shutdown(bench.now, Duration::ZERO);
    assert_eq!(bench.heard(B), ["end"]);
    admit(&mut bench, waits, accept("ada"));
    assert!(bench.outputs().is_empty() && bench.at_rest());
}

#[test]
fn first_request_timeout_starts_at_admission() {
    let mut bench = Bench::with(|config| {
        config.admit = true;
        config.limits.server.handshake_timeout = Some(Duration::from_secs(1));
    });
    let token = shown(&mut bench, A);
    bench.pass(Duration::from_secs(5));
    admit(&mut bench, token, accept("ada"));
    bench.pass(Duration::from_millis(999));
    assert_eq!(bench.heard(A), ["Continue"]);
    bench.pass(Duration::from_millis(1));
    assert_eq!(bench.heard(A), ["abort"]);
}

// covers: ELIC-S-032, MRTR-S-012
#[test]
fn sealed_state_is_bound_to_the_principal_of_the_connection() {
    let mut bench = guarded();
    admitted(&mut bench, A, "ada");
    admitted(&mut bench, B, "eve");
    let call =
        |id: &str, rest: &str| modern_with(id, "tools/call", r#"{"elicitation":{}}"#, &format!(r#","name":"t"{rest}"#));
    let (responder, _) = bench.request(A, &call("1", ""));
    bench.answer(responder, ask("q"));
    let state: String = result(&bench.heard(A)[0]).required("requestState").unwrap();
    for (x, good) in [(A, true), (B, false)] {
        let (mut responder, mut incoming) = bench.request(x, &call("2", &format!(r#","requestState":"{state}""#)));
        assert_eq!(responder.open(&mut incoming).is_ok(), good, "{x:?}");
        bench.complete(responder, "{}");
    }
}
