//! Properties that hold for any input: no panic, at most one response for each request, nothing
//! after the end, and no leftover state.

use super::*;
use crate::input::Admission;
use crate::input::AdmitToken;
use alloc::collections::BTreeMap;
use proptest::prelude::*;

/// A step of a random run.
#[derive(Clone, Debug)]
enum Step {
    ExchangeEvent(u64, ExchangeEvent),
    /// Answer the n-th pending responder.
    Answer(usize, u8),
    Note(usize, f64),
    /// Revoke the access of the one principal.
    Revoke,
    /// Decide about the n-th pending exchange.
    Admit(usize, bool),
    Pass(u64),
    Drain,
    Shutdown(u64),
}

fn line() -> impl Strategy<Value = String> {
    let id = prop_oneof![Just("1"), Just("2"), Just("3"), Just("\"1\""), Just("0"), Just("1.5")];
    let method = prop_oneof![
        Just("tools/call"),
        Just("ping"),
        Just("initialize"),
        Just("server/discover"),
        Just("notifications/cancelled"),
        Just("resources/read"),
        Just("notifications/progress"),
        Just("x")
    ];
    let all = r#"{"elicitation":{},"roots":{}}"#;
    prop_oneof![
        4 => (id.clone(), method.clone()).prop_map(|(id, method)| modern_with(id, method, r#"{"elicitation":{}}"#, r#","name":"t""#)),
        4 => (id.clone(), method.clone()).prop_map(|(id, method)| legacy(id, method, r#"{"_meta":{"progressToken":1},"name":"t"}"#)),
        2 => method.prop_map(|m| format!(r#"{{"jsonrpc":"2.0","method":"{m}","params":{{"requestId":1}}}}"#)),
        2 => prop_oneof![Just("2024-11-05"), Just("2025-03-26"), Just("2025-11-25")].prop_map(move |v| initialize(v, all)),
        2 => id.clone().prop_map(|id| format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"action":"cancel"}}}}"#)),
        1 => id.clone().prop_map(|id| format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":1,"message":""}}}}"#)),
        1 => (id, Just("x")).prop_map(|(id, m)| format!("[{},{},7]", legacy(id, m, "{}"), legacy("2", "ping", "{}"))),
        1 => "[\\PC]{0,12}",
    ]
}

fn exchange_event() -> impl Strategy<Value = ExchangeEvent> {
    let request = |method: &str| {
        let headers = crate::exchange::Headers::new()
            .with("Content-Type", "application/json")
            .with("MCP-Protocol-Version", "2026-07-28")
            .with("Mcp-Method", "tools/call")
            .with("Mcp-Name", "t");
        ExchangeEvent::Inbound(Inbound::Request(RequestHead {
            method: method.to_owned().into(),
            target: "/mcp".into(),
            headers,
        }))
    };
    prop_oneof![
        4 => Just(ExchangeEvent::Opened(Peer::default())),
        2 => Just(ExchangeEvent::Opened(Peer::unix(None))),
        1 => Just(ExchangeEvent::From(Arc::new(Peer::tcp(([192, 0, 2, 1], 50_000).into())))),
        20 => line().prop_map(|line| ExchangeEvent::Inbound(read(&line))),
        2 => prop_oneof![Just("POST"), Just("GET")].prop_map(request),
        1 => Just(ExchangeEvent::Inbound(Inbound::End)),
        1 => Just(ExchangeEvent::Inbound(Inbound::Body(Bytes::from_static(b"x")))),
        1 => Just(ExchangeEvent::Inbound(Inbound::Reject(crate::exchange::BadRequest { status: 400, why: "bad" }))),
        2 => (0_usize..3000).prop_map(ExchangeEvent::Unsent),
        1 => Just(failed()),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        12 => (1_u64..4, exchange_event()).prop_map(|(x, event)| Step::ExchangeEvent(x, event)),
        5 => (0_usize..4, any::<u8>()).prop_map(|(n, how)| Step::Answer(n, how)),
        2 => (0_usize..4, 0.0..9.0).prop_map(|(n, progress)| Step::Note(n, progress)),
        4 => (0_usize..3, prop::bool::weighted(0.7)).prop_map(|(n, how)| Step::Admit(n, how)),
        1 => Just(Step::Revoke),
        2 => (0_u64..400_000).prop_map(Step::Pass),
        2 => Just(Step::Drain),
        1 => (0_u64..5_000).prop_map(Step::Shutdown),
    ]
}

/// A server under test and its simulated application.
struct World {
    bench: Bench,
    held: Vec<Responder>,
    tokens: Vec<AdmitToken>,
    handed: BTreeSet<RequestKey>,
    over: BTreeSet<RequestKey>,
    said: Vec<Output>,
    terminated: bool,
}

impl World {
    fn new() -> Self {
        Self::admitting(false)
    }

    fn admitting(admit: bool) -> Self {
        let bench = Bench::with(|config| {
            config.admit = admit;
            let limits = &mut config.limits.server;
            limits.max_running_requests = 5;
            limits.max_running_per_exchange = 3;
            limits.max_exchanges = 2;
            limits.max_unsent = 2000;
            limits.max_queued_events = 3;
            limits.max_rounds = 2;
            limits.handler_deadline = Some(Duration::from_secs(60));
            limits.handshake_timeout = Some(Duration::from_secs(100));
        });
        Self {
            bench,
            held: Vec::new(),
            tokens: Vec::new(),
            handed: BTreeSet::new(),
            over: BTreeSet::new(),
            said: Vec::new(),
            terminated: false,
        }
    }

    fn step(&mut self, step: &Step) {
        if matches!(step, Step::Answer(..)) {
            // Let the application see every earlier cancellation first.
            self.drain();
        }
        let bench = &mut self.bench;
        match step {
            Step::ExchangeEvent(x, event) => bench.handle_event(ExchangeId(*x), event.clone()),
            Step::Answer(n, how) if *n < self.held.len() => {
                let responder = self.held.remove(*n);
                self.over.insert(responder.key());
                let outcome = match how % 4 {
                    0 => ask("q"),
                    1 => Outcome::Error(ErrorObject::new(1, "m")),
                    2 => Outcome::NeedInput { requests: vec![], state: Some(RawJson::null()) },
                    _ => Outcome::Complete(Object::new()),
                };
                bench.answer(responder, outcome);
            }
            Step::Note(n, progress) => {
                if let Some(responder) = self.held.get(*n) {
                    let note = match progress {
                        // Also without a token: over HTTP this makes the response a stream.
                        7.0.. => Note::Custom("x".into(), Object::new()),
                        _ => Note::Progress(crate::model::Progress::new(*progress)),
                    };
                    let _ = bench.server.notify(bench.now, responder.key(), note);
                }
            }
            Step::Admit(n, how) if *n < self.tokens.len() => {
                let admission = if *how { Admission::Accept(Some("p".into())) } else { Admission::Forbidden(None) };
                bench.server.admit(bench.now, self.tokens.remove(*n), admission);
            }
            Step::Revoke => bench.server.revoke(bench.now, &"p".into()),
            Step::Pass(millis) => bench.pass(Duration::from_millis(*millis)),
            Step::Drain => self.drain(),
            Step::Shutdown(millis) => bench.server.shutdown(bench.now, Duration::from_millis(*millis)),
            Step::Answer(..) | Step::Admit(..) => {}
        }
        let limits = self.bench.server.config().limits.server.clone();
        assert!(self.bench.server.running() <= limits.max_running_requests);
        assert!(self.bench.server.wire.env.exchanges.len() <= limits.max_exchanges);
        assert!(self.bench.server.poll_timeout().is_none_or(|_| !self.bench.server.is_terminated()));
    }

    fn drain(&mut self) {
        for output in self.bench.outputs() {
            assert!(!self.terminated, "after the end: {output:?}");
            match output {
                Output::Event(Event::Request(responder, _)) => {
                    assert!(self.handed.insert(responder.key()), "a key is used once");
                    self.held.push(responder);
                }
                Output::Event(Event::Cancelled(key)) => {
                    assert!(self.handed.contains(&key), "cancelled, never handed out");
                    assert!(self.over.insert(key), "cancelled after it was over");
                }
                Output::Event(Event::Admit(token, _)) => self.tokens.push(token),
                Output::Event(Event::Terminated) => self.terminated = true,
                other => self.said.push(other),
            }
        }
    }
}

/// A random event of an exchange.
#[derive(Clone, Copy, Debug)]
enum Form {
    Duplex,
    Owed,
    Stream,
}

proptest! {
    // covers: B-281, B-066, B-050, B-063, B-075, INIT-B-015
    #[test]
    fn no_input_breaks_the_engine(admit: bool, steps in prop::collection::vec(step(), 1..60)) {
        let mut world = World::admitting(admit);
        for step in &steps {
            world.step(step);
        }
        // All exchanges end: no state remains, and the end is reported once.
        world.drain();
        for responder in core::mem::take(&mut world.held) {
            world.bench.complete(responder, "{}");
        }
        for x in 1..4 {
            world.bench.handle_event(ExchangeId(x), failed());
        }
        world.drain();
        prop_assert!(world.bench.at_rest(), "{:?}", world.bench.server);
        prop_assert!(world.bench.server.wire.env.exchanges.is_empty());
        world.bench.server.shutdown(world.bench.now, Duration::ZERO);
        world.drain();
        prop_assert!(world.terminated && world.bench.server.is_terminated());
        world.drain();
    }

    #[test]
    fn time_of_taking_outputs_does_not_change_them(events in prop::collection::vec((1_u64..4, exchange_event(), 0_u64..50_000), 1..40)) {
        // Reports of unsent bytes depend on the outputs that were taken, so they are left out.
        let events: Vec<_> = events.into_iter().filter(|(_, event, _)| !matches!(event, ExchangeEvent::Unsent(_))).collect();
        let run = |early: bool| {
            let mut bench = Bench::with(|config| {
                config.limits.server.handler_deadline = Some(Duration::from_secs(60));
                config.limits.server.max_running_per_exchange = 3;
            });
            let mut outputs = Vec::new();
            for (x, event, millis) in &events {
                bench.handle_event(ExchangeId(*x), event.clone());
                bench.pass(Duration::from_millis(*millis));
                if early {
                    outputs.extend(bench.outputs());
                }
            }
            bench.server.shutdown(bench.now, Duration::ZERO);
            outputs.extend(bench.outputs());
            outputs
        };
        prop_assert_eq!(run(true), run(false));
    }

    // covers: B-063, B-167, HTTP-S-030
    #[test]
    fn outputs_of_every_exchange_have_the_right_form(admit: bool, steps in prop::collection::vec(step(), 1..80)) {
        let mut world = World::admitting(admit);
        let mut open: BTreeMap<ExchangeId, Form> = BTreeMap::new();
        for step in &steps {
            if let Step::ExchangeEvent(x, event) = step {
                let form = match event {
                    ExchangeEvent::Opened(_) => Some(Form::Duplex),
                    // The rest of an answered request is not a second request.
                    ExchangeEvent::Inbound(Inbound::Reject(_)) if world.bench.server.wire.env.unread.contains(&ExchangeId(*x)) => None,
                    ExchangeEvent::Inbound(Inbound::Request(_) | Inbound::Reject(_)) => Some(Form::Owed),
                    _ => None,
                };
                if let (Some(form), false) = (form, open.contains_key(&ExchangeId(*x))) {
                    open.insert(ExchangeId(*x), form);
                }
            }
            world.step(step);
            world.drain();
            for output in core::mem::take(&mut world.said) {
                let (x, outgoing) = match output {
                    Output::Send(x, outgoing) => (x, Some(outgoing)),
                    Output::Abort(x) => (x, None),
                    Output::Event(_) => continue,
                };
                let form = open.remove(&x);
                prop_assert!(form.is_some(), "on an exchange that is over: {outgoing:?}");
                let goes_on = match (form.unwrap(), &outgoing) {
                    (_, None) | (Form::Duplex | Form::Stream, Some(Outbound::End)) => None,
                    (Form::Owed, Some(Outbound::Response { body: Body::Full(_), .. })) => None,
                    (Form::Duplex, Some(Outbound::Message(_) | Outbound::Continue)) => Some(Form::Duplex),
                    (Form::Owed, Some(Outbound::Continue)) => Some(Form::Owed),
                    (Form::Owed, Some(Outbound::Response { body: Body::Stream, .. })) => Some(Form::Stream),
                    (Form::Stream, Some(Outbound::Event { .. } | Outbound::Comment(_))) => Some(Form::Stream),
                    (form, outgoing) => panic!("{outgoing:?} in {form:?}"),
                };
                open.extend(goes_on.map(|form| (x, form)));
            }
            if let Step::ExchangeEvent(x, ExchangeEvent::Failed { .. }) = step {
                open.remove(&ExchangeId(*x));
            }
        }
    }

    // covers: B-283
    #[test]
    fn the_same_inputs_give_the_same_outputs(steps in prop::collection::vec(step(), 1..40)) {
        let (mut one, mut two) = (World::new(), World::new());
        for step in &steps {
            one.step(step);
            two.step(step);
        }
        one.drain();
        two.drain();
        prop_assert_eq!(one.said, two.said);
    }
}
