use super::*;
use crate::InputAnswer;
use crate::model::roots::Roots;
use proptest::prelude::*;

// covers: S0-27, S0-33, S2-13, B-066, B-067, B-095, S0-60
#[test]
fn server_exit_ends_every_call_and_then_the_client() {
    let mut rig = Rig::modern();
    let calls = [rig.echo(), rig.echo()];
    let exchange = rig.exchange();
    rig.handle_event(exchange, ExchangeEvent::Inbound(Inbound::End));
    assert_eq!(rig.ended, [exchange]);
    assert!(!rig.has_ended(calls[0]), "the exit status is awaited");
    let refused = rig.client.call(rig.now, tools::list()).unwrap_err();
    assert_eq!(refused.why, Refusal::Closed);
    rig.handle_event(exchange, ExchangeEvent::Failed { sent: Sent::Maybe, why: exited(3) });
    for call in calls {
        let error = rig.outcome(call).clone().unwrap_err();
        assert_eq!(error, CallError::Closed { sent: Sent::Maybe, why: exited(3) });
        assert_eq!(error.to_string(), "Transport closed: the program exited with code 3");
    }
    assert_eq!(rig.events.last(), Some(&Event::Terminated(Termination::Closed(exited(3)))));
    assert_eq!(rig.starts.len(), 1, "nothing is started or sent again");
    rig.assert_at_rest();
}

#[test]
fn wait_for_the_exit_status_is_bounded() {
    let mut rig = Rig::legacy();
    let call = rig.echo();
    rig.handle_event(rig.exchange(), ExchangeEvent::Inbound(Inbound::End));
    rig.tick(ms(499));
    assert!(!rig.has_ended(call));
    rig.tick(ms(1));
    assert!(matches!(rig.outcome(call), Err(CallError::Closed { why: Closed::Eof, .. })));
    assert_eq!(rig.termination(), None, "the channel still closes");
    rig.handle_event(rig.exchange(), ExchangeEvent::Failed { sent: Sent::Maybe, why: exited(0) });
    assert_eq!(rig.termination(), Some(&Termination::Closed(Closed::Eof)));
    assert_eq!(rig.ended.len(), 1);
}

// covers: INIT-B-017, B-272, B-070, S0-26, CANC-C-008
#[test]
fn close_is_idempotent_and_ends_calls() {
    for close_at in 0..3 {
        let mut rig = Rig::new(ClientConfig { policy: Policy::Legacy, ..ClientConfig::given() });
        rig.open();
        if close_at > 0 {
            rig.answer(&rig.last_id(), initialized("2025-11-25"));
        }
        let call = rig.echo();
        if close_at > 1 {
            rig.handle_event(rig.exchange(), ExchangeEvent::Inbound(Inbound::End));
        }
        for _ in 0..3 {
            rig.client.close(rig.now);
        }
        rig.drain();
        let sent = if close_at == 0 { Sent::No } else { Sent::Maybe };
        assert_eq!(*rig.outcome(call), Err(CallError::Closed { sent, why: Closed::Aborted }));
        assert_eq!(rig.ended, [rig.exchange()]);
        assert_eq!(rig.client.poll_timeout(), None);
        assert!(!rig.methods().contains(&"notifications/cancelled"));
        assert_eq!(rig.client.call(rig.now, tools::list()).unwrap_err().why, Refusal::Closed);
        rig.handle_event(rig.exchange(), ExchangeEvent::Failed { sent: Sent::Maybe, why: Closed::Eof });
        assert_eq!(rig.events.last(), Some(&Event::Terminated(Termination::Requested)));
        let (events, sent) = (rig.events.len(), rig.sent.len());
        rig.say(json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}));
        rig.handle_event(rig.exchange(), ExchangeEvent::Failed { sent: Sent::Maybe, why: Closed::Eof });
        rig.client.close(rig.now);
        rig.tick(Duration::from_secs(3600));
        assert_eq!((rig.events.len(), rig.sent.len()), (events, sent), "nothing after termination");
        rig.assert_at_rest();
    }
}

// covers: S0-31, S0-35, S2-12, B-120, B-121, B-124, B-290
#[test]
fn malformed_input_is_reported_or_fatal_if_configured() {
    let bad = || Inbound::Invalid(parse(Bytes::from_static(b"hello, I am a banner"), 128).unwrap_err());
    let mut rig = Rig::legacy();
    let call = rig.echo();
    rig.handle_event(rig.exchange(), ExchangeEvent::Inbound(bad()));
    assert_eq!(rig.diagnostics(), [DiagnosticKind::BadMessage]);
    assert!(rig.sent.len() == 1, "a client does not answer noise");
    rig.answer(&rig.last_id(), json!({}));
    assert!(rig.outcome(call).is_ok());

    let config = given_with(|compat| compat.malformed = OnMalformed::Fatal);
    let mut rig = Rig::ready(ProtocolVersion::V2025_11_25, config);
    let call = rig.echo();
    rig.handle_event(rig.exchange(), ExchangeEvent::Inbound(bad()));
    assert!(matches!(rig.outcome(call), Err(CallError::Closed { why: Closed::Broken(_), .. })));
    assert_eq!(rig.aborted, [rig.exchange()]);
    assert!(matches!(rig.termination(), Some(Termination::Closed(Closed::Broken(_)))));
}

// covers: RPC-B-042, RPC-B-043, RPC-B-045, RPC-B-046
#[test]
fn batch_is_read_and_reported_where_unsupported() {
    for (version, reported) in [(ProtocolVersion::V2025_03_26, 0), (ProtocolVersion::V2025_11_25, 1)] {
        let mut rig = Rig::ready(version, ClientConfig::given());
        let calls = [rig.echo(), rig.echo()];
        assert!(rig.sent.iter().all(Value::is_object), "we never send one");
        let answer = |id: &Value| parse(json!({"jsonrpc": "2.0", "id": id, "result": {}}).to_string().into(), 128);
        let batch = rig.sent.iter().map(|m| answer(&m["id"])).collect();
        rig.handle_event(rig.exchange(), ExchangeEvent::Inbound(Inbound::Batch(batch)));
        assert!(calls.iter().all(|call| rig.outcome(*call).is_ok()));
        assert_eq!(rig.diagnostics().len(), reported);
    }
}

// covers: S0-03
#[test]
fn client_sends_requests_and_reports_server_events() {
    let mut rig = Rig::ready(ProtocolVersion::V2025_11_25, ClientConfig::given().with_elicitation());
    let call = rig.call(custom::<Value>("acme/sum", &json!({"a": 1})));
    rig.client.notify(rig.now, "acme/note", Object::new().with("b", 2i64)).unwrap();
    rig.drain();
    assert_eq!(rig.methods(), ["acme/sum", "acme/note"]);
    assert_eq!(rig.client.state(), State::Ready, "it is connected");
    rig.say(json!({"jsonrpc": "2.0", "method": "acme/told", "params": {"c": 3}}));
    let form = json!({"message": "?", "requestedSchema": {"type": "object", "properties": {}}});
    rig.say(json!({"jsonrpc": "2.0", "id": 1, "method": "elicitation/create", "params": form}));
    rig.say(json!({"jsonrpc": "2.0", "id": "nobody", "result": {}}));
    rig.client.close(rig.now);
    rig.drain();
    rig.handle_event(rig.exchange(), ExchangeEvent::Failed { sent: Sent::Maybe, why: Closed::Eof });
    let told: Vec<&str> = rig
        .events
        .iter()
        .map(|event| match event {
            Event::Notification { .. } => "notification",
            Event::InputNeeded { .. } => "request",
            Event::Diagnostic(_) => "error",
            Event::Ended { .. } => "end of the call",
            Event::InputWithdrawn(_) => "request withdrawn",
            Event::Terminated(_) => "closed",
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(told, ["notification", "request", "error", "end of the call", "request withdrawn", "closed"]);
    assert!(matches!(rig.outcome(call), Err(CallError::Closed { .. })));
    assert!(rig.client.is_terminated());
}

// covers: RPC-B-007
#[test]
fn client_notifications_have_no_id() {
    for mut rig in [Rig::legacy(), Rig::modern()] {
        let call = rig.echo();
        rig.client.cancel(rig.now, call, Some("late"));
        rig.client.notify(rig.now, "notifications/roots/list_changed", Object::new()).unwrap();
        rig.client.notify(rig.now, "acme/news", Object::new()).unwrap();
        rig.drain();
        let is_note = |m: &&Value| {
            m["method"].as_str().is_some_and(|method| method.contains("notifications/") || method == "acme/news")
        };
        let notes: Vec<&Value> = rig.sent.iter().filter(is_note).collect();
        assert!(notes.len() >= 3, "{notes:?}");
        assert!(notes.iter().all(|note| note.get("id").is_none()), "{notes:?}");
    }
}

// covers: B-064, S0-11, RPC-B-008, B-289
#[test]
fn notifications_are_reported_and_never_answered() {
    for mut rig in [Rig::legacy(), Rig::modern()] {
        for method in ["notifications/acme", "acme/news", "$/x", ""] {
            rig.say(json!({"jsonrpc": "2.0", "method": method, "params": {"a": [null]}}));
            rig.say(json!({"jsonrpc": "2.0", "method": method}));
        }
        let seen = rig.events.iter().filter(|event| matches!(event, Event::Notification { .. })).count();
        assert_eq!(seen, 8);
        assert!(rig.sent.is_empty());
    }
}

#[test]
fn limits_refuse_calls_and_count_lost_events() {
    let mut config = ClientConfig::given();
    config.limits.client.max_calls = 2;
    config.limits.client.max_unsent = 1000;
    config.limits.client.max_queued_events = 3;
    let mut rig = Rig::ready(ProtocolVersion::V2025_11_25, config);
    let first = rig.echo();
    rig.echo();
    let refused = rig.client.call(rig.now, tools::list()).unwrap_err();
    assert_eq!((refused.why, refused.value), (Refusal::Full, tools::list()));
    rig.client.cancel(rig.now, first, None);
    rig.echo();
    rig.client.cancel(rig.now, CallId(2), None);
    rig.handle_event(rig.exchange(), ExchangeEvent::Unsent(1000));
    assert_eq!(rig.client.call(rig.now, tools::list()).unwrap_err().why, Refusal::Full);
    assert_eq!(rig.client.notify(rig.now, "x", Object::new()).unwrap_err().why, Refusal::Full);
    rig.handle_event(rig.exchange(), ExchangeEvent::Unsent(999));
    rig.call(tools::list());
    rig.drain();
    rig.clear();
    let note = |n: u64| parse(json!({"jsonrpc": "2.0", "method": format!("n{n}")}).to_string().into(), 128).unwrap();
    for n in 0..10 {
        let exchange = rig.exchange();
        rig.client.handle_event(rig.now, exchange, ExchangeEvent::Inbound(Inbound::Message(note(n))));
    }
    rig.client.cancel(rig.now, CallId(3), None);
    rig.drain();
    let seen: Vec<bool> = rig.events.iter().map(|event| matches!(event, Event::Notification { .. })).collect();
    assert_eq!(seen[..3], [true; 3]);
    assert!(matches!(rig.events[3], Event::Ended { .. }), "events of calls are never dropped");
    assert_eq!(rig.events[4], Event::Lost { notifications: 7, diagnostics: 0 });
}

#[test]
fn calls_before_negotiation_are_bounded_in_bytes() {
    let mut config = ClientConfig::given();
    config.limits.client.max_unsent = 100;
    let mut rig = Rig::new(config);
    let big = || tools::call("x").arguments(&json!({"a": "y".repeat(60)}));
    rig.client.call(rig.now, big()).unwrap();
    assert_eq!(rig.client.call(rig.now, big()).unwrap_err().why, Refusal::Full);
}

#[test]
fn time_never_moves_back() {
    let mut rig = Rig::legacy();
    rig.tick(ms(10_000));
    rig.now = Instant::ZERO;
    let call = rig.echo();
    assert_eq!(rig.client.poll_timeout(), Some(Instant::from_millis(40_000)));
    rig.tick(ms(39_999));
    assert!(!rig.has_ended(call));
}

#[test]
fn events_of_unknown_exchanges_are_reported() {
    let mut rig = Rig::legacy();
    rig.handle_event(ExchangeId(0), ExchangeEvent::Opened(Peer::default()));
    assert!(rig.events.is_empty());
    rig.handle_event(ExchangeId(77), ExchangeEvent::Opened(Peer::default()));
    assert_eq!(rig.diagnostics(), [DiagnosticKind::UnknownExchange]);
}

/// An input of a client.
#[derive(Clone, Debug)]
enum Step {
    Say(String),
    Call(bool),
    Cancel(u64),
    Answer(u64),
    Tick(u64),
    End,
    Fail,
    Unsent(usize),
    Batch(Vec<String>),
    Close,
}

fn message() -> impl Strategy<Value = String> {
    let id = prop_oneof![
        (0..6i64).prop_map(|n| n.to_string()),
        (0..6i64).prop_map(|n| format!("\"{n}\"")),
        Just("null".into())
    ];
    let body = prop_oneof![
        Just(r#""result":{"supportedVersions":["2026-07-28"],"capabilities":{}}"#.to_string()),
        Just(
            r#""result":{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"a","version":"b"}}"#
                .to_string()
        ),
        Just(r#""result":{"resultType":"input_required","requestState":"s"}"#.to_string()),
        Just(r#""result":{"resultType":"input_required","inputRequests":{"r":{"method":"roots/list"}}}"#.to_string()),
        Just(r#""error":{"code":-32022,"message":"","data":{"supported":["2025-03-26"]}}"#.to_string()),
        Just(r#""error":{"code":-32601,"message":""}"#.to_string()),
        Just(r#""method":"ping""#.to_string()),
        Just(r#""method":"roots/list""#.to_string()),
        Just(r#""method":"notifications/cancelled","params":{"requestId":3}"#.to_string()),
        Just(r#""method":"notifications/progress","params":{"progressToken":3,"progress":1}"#.to_string()),
    ];
    prop_oneof![
        4 => (id, body.clone()).prop_map(|(id, body)| format!(r#"{{"jsonrpc":"2.0","id":{id},{body}}}"#)),
        1 => body.prop_map(|body| format!(r#"{{"jsonrpc":"2.0",{body}}}"#)),
        1 => "\\PC{0,20}",
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => message().prop_map(Step::Say),
        3 => any::<bool>().prop_map(Step::Call),
        1 => (1..6u64).prop_map(Step::Cancel),
        2 => (1..6u64).prop_map(Step::Answer),
        2 => (0..20_000u64).prop_map(Step::Tick),
        1 => Just(Step::End),
        1 => Just(Step::Fail),
        1 => (0..4usize).prop_map(Step::Unsent),
        1 => prop::collection::vec(message(), 1..4).prop_map(Step::Batch),
        1 => Just(Step::Close),
    ]
}

proptest! {
    // covers: B-281, B-283, B-066, S0-27
    #[test]
    fn random_runs_end_every_call_once_and_replay_identically(
        steps in prop::collection::vec(step(), 0..60),
    ) {
        let run = |steps: &[Step]| {
            let mut config = ClientConfig::program(Program::new("x"));
            config.capabilities.roots = Some(Default::default());
            let mut rig = Rig::new(config);
            let mut calls = vec![];
            for step in steps {
                let exchange = rig.exchange();
                let event = match step {
                    Step::Say(text) => match parse(text.clone().into(), 128) {
                        Ok(message) => ExchangeEvent::Inbound(Inbound::Message(message)),
                        Err(defect) => ExchangeEvent::Inbound(Inbound::Invalid(defect)),
                    },
                    Step::Batch(texts) => {
                        ExchangeEvent::Inbound(Inbound::Batch(texts.iter().map(|text| parse(text.clone().into(), 128)).collect()))
                    }
                    Step::End => ExchangeEvent::Inbound(Inbound::End),
                    Step::Fail => ExchangeEvent::Failed { sent: Sent::Maybe, why: exited(1) },
                    Step::Unsent(n) => ExchangeEvent::Unsent(*n),
                    Step::Call(progress) => {
                        let call = if *progress { tools::call("x").progress() } else { tools::call("x") };
                        calls.extend(rig.client.call(rig.now, call).map(|c| c.id()).ok());
                        continue;
                    }
                    Step::Cancel(n) => {
                        rig.client.cancel(rig.now, CallId(*n), None);
                        continue;
                    }
                    Step::Answer(n) => {
                        rig.reply(InputKey::new(*n), InputAnswer::Roots(Roots::default()));
                        continue;
                    }
                    Step::Tick(n) => {
                        rig.tick(ms(*n));
                        continue;
                    }
                    Step::Close => {
                        rig.client.close(rig.now);
                        continue;
                    }
                };
                rig.handle_event(exchange, event);
            }
            rig.client.close(rig.now);
            rig.drain();
            rig.handle_event(rig.exchange(), ExchangeEvent::Failed { sent: Sent::Maybe, why: Closed::Aborted });
            for call in calls {
                let _ = rig.outcome(call);
            }
            assert!(matches!(rig.events.last(), Some(Event::Terminated(_))));
            rig.assert_at_rest();
            (format!("{:?}", rig.events), rig.sent)
        };
        prop_assert_eq!(run(&steps), run(&steps));
    }
}

// covers: B-272
#[test]
fn nothing_is_sent_on_an_exchange_after_its_end() {
    // The server has closed its output, and its exit status is awaited. Meanwhile calls time out
    // and are cancelled.
    let mut config = ClientConfig::given();
    config.capabilities.roots = Some(Default::default());
    let mut rig = Rig::ready(ProtocolVersion::V2025_11_25, config);
    rig.say(json!({"jsonrpc": "2.0", "id": 5, "method": "roots/list"}));
    let (question, _) = rig.questions()[0];
    let slow = rig.echo();
    let quick = rig.call(tools::call("echo").max_total(ms(100)));
    rig.clear();
    rig.handle_event(rig.exchange(), ExchangeEvent::Inbound(Inbound::End));
    assert_eq!(rig.ended.len(), 1);
    assert_eq!(rig.events, [Event::InputWithdrawn(question)], "an answer could not be sent any more");
    rig.tick(ms(100));
    assert!(matches!(rig.outcome(quick), Err(CallError::Timeout { .. })));
    rig.client.cancel(rig.now, slow, None);
    rig.reply(question, InputAnswer::roots(["file:///"]));
    assert!(rig.sent.is_empty(), "{:?}", rig.sent);
}

// covers: B-272, B-066
#[test]
fn batch_is_not_read_after_the_end_of_the_client() {
    let bad = || parse(Bytes::from_static(b"{"), 128);
    let ping = || parse(json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}).to_string().into(), 128);
    let config = given_with(|compat| compat.malformed = OnMalformed::Fatal);
    let mut rig = Rig::ready(ProtocolVersion::V2025_03_26, config);
    rig.handle_event(rig.exchange(), ExchangeEvent::Inbound(Inbound::Batch(vec![bad(), ping()])));
    assert!(matches!(rig.events.last(), Some(Event::Terminated(_))));
    assert!(rig.sent.is_empty(), "{:?}", rig.sent);

    let mut rig = Rig::new(ClientConfig { policy: Policy::Legacy, ..ClientConfig::given() });
    rig.open();
    let refused = parse(error(&rig.last_id(), -32601).to_string().into(), 128);
    rig.clear();
    rig.handle_event(rig.exchange(), ExchangeEvent::Inbound(Inbound::Batch(vec![refused, ping()])));
    assert_eq!(rig.ended.len(), 1);
    assert!(rig.sent.is_empty(), "{:?}", rig.sent);
}

// covers: B-059
#[test]
fn instants_do_not_overflow_ids() {
    let given = given_with(|compat| compat.ids = IdPolicy::Snowflake { node: u16::MAX });
    let config = ClientConfig { origin_unix: Duration::from_secs(1), ..given };
    let mut client = Client::new(Arc::new(config), [7; 32], Instant::new(Duration::MAX));
    assert_eq!(client.state(), State::Probing);
    // At the end of time, every timer is due at once.
    client.handle_timeout(Instant::new(Duration::MAX));
    assert_eq!(client.state(), State::Terminated);
}

#[test]
fn diagnostics_quote_a_bounded_part_of_a_message() {
    let mut rig = Rig::legacy();
    let long = "ü".repeat(1 << 20);
    rig.say(json!({"jsonrpc": "2.0", "id": long, "result": {}}));
    rig.say(json!({"jsonrpc": "2.0", "id": 1, "method": long}));
    rig.say(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": long}}));
    let details = rig.events.iter().filter_map(|event| match event {
        Event::Diagnostic(diagnostic) => Some(diagnostic.detail.capacity()),
        _ => None,
    });
    let details: Vec<usize> = details.collect();
    assert_eq!(details.len(), 3);
    assert!(details.iter().all(|length| (1..=1024).contains(length)), "{details:?}");
}
