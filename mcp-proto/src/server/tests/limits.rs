//! Every limit, and the behaviour at it.

use super::*;

// covers: B-187
#[test]
fn request_above_the_limit_is_refused_at_once() {
    let mut bench = Bench::with(|config| {
        config.limits.server.client_shares = 1;
        config.limits.server.max_running_requests = 3;
        config.limits.server.max_running_per_exchange = 2;
    })
    .initialized(A, "2025-06-18", "{}")
    .initialized(B, "2025-06-18", "{}");
    let (first, _) = bench.request(A, &legacy("1", "x", "{}"));
    bench.runs(A, &legacy("2", "x", "{}"));
    assert_eq!(error(&bench.say(A, &legacy("3", "x", "{}"))[0]).code, -32603);
    bench.runs(B, &legacy("1", "x", "{}"));
    bench.item(B, read(&legacy("2", "x", "{}")));
    assert_eq!(bench.codes(), ["too-many-requests"]);
    assert_eq!(bench.server.running(), 3);
    assert_eq!(bench.say(B, &legacy("3", "ping", "{}")).len(), 1);
    bench.complete(first, "{}");
    bench.runs(B, &legacy("2", "x", "{}"));
}

// covers: B-103
#[test]
fn exchange_above_the_limit_is_aborted() {
    let mut bench = Bench::with(|config| config.limits.server.max_exchanges = 1).open(A);
    bench.handle_event(B, ExchangeEvent::Opened(Peer::default()));
    let outputs = bench.outputs();
    assert!(matches!(&outputs[0], Output::Event(Event::Diagnostic(d)) if d.kind == DiagnosticKind::TooManyExchanges));
    assert_eq!(outputs[1], Output::Abort(B));
    bench.handle_event(A, failed());
    bench.handle_event(B, ExchangeEvent::Opened(Peer::default()));
    assert!(bench.outputs().is_empty());
}

// covers: B-074, B-187
#[test]
fn only_the_stalled_exchange_is_aborted() {
    let mut bench = Bench::new().initialized(A, "2025-06-18", "{}").initialized(B, "2025-06-18", "{}");
    let (stuck, _) = bench.request(A, &legacy("1", "x", "{}"));
    bench.runs(B, &legacy("1", "x", "{}"));
    bench.handle_event(A, ExchangeEvent::Unsent(10));
    bench.pass(Duration::from_secs(20));
    bench.handle_event(A, ExchangeEvent::Unsent(9));
    bench.pass(Duration::from_secs(20));
    // More unsent bytes are no progress.
    bench.handle_event(A, ExchangeEvent::Unsent(500));
    bench.pass(Duration::from_millis(9_999));
    assert!(bench.outputs().is_empty());
    bench.pass(Duration::from_millis(1));
    let outputs = bench.outputs();
    assert!(matches!(&outputs[0], Output::Event(Event::Diagnostic(d)) if d.kind == DiagnosticKind::WriteStalled));
    assert_eq!(outputs[1..], [Output::Abort(A), Output::Event(Event::Cancelled(stuck.key()))]);
    assert_eq!(bench.server.running(), 1);
    bench.handle_event(B, ExchangeEvent::Unsent(5));
    bench.handle_event(B, ExchangeEvent::Unsent(0));
    assert!(bench.server.poll_timeout().is_none());
}

// covers: B-187
#[test]
fn client_that_sends_pings_and_never_reads_is_aborted() {
    let mut bench = Bench::with(|config| config.limits.server.max_unsent = 1000).open(A);
    bench.handle_event(A, ExchangeEvent::Unsent(1000));
    let mut pings = 0;
    while bench.server.wire.env.exchanges.contains_key(&A) {
        bench.item(A, read(&legacy("1", "ping", "{}")));
        pings += 1;
        assert!(pings < 100);
    }
    assert!(pings > 10);
    assert_eq!(bench.outputs().last(), Some(&Output::Abort(A)));
}

// covers: B-274
#[test]
fn lost_events_are_counted_at_their_position() {
    let mut bench = Bench::with(|config| config.limits.server.max_queued_events = 2).open(A);
    let note = r#"{"jsonrpc":"2.0","method":"n"}"#;
    for _ in 0..5 {
        bench.item(A, read(note));
    }
    bench.item(A, read("nonsense"));
    bench.item(A, read(&modern("1", "x", "")));
    assert!(matches!(bench.server.poll_output(), Some(Output::Event(Event::Notification { .. }))));
    bench.item(A, read(note));
    let events = bench.events();
    assert!(matches!(events[0], Event::Notification { .. }));
    assert!(matches!(events[1], Event::Request(..)));
    assert_eq!(events[2], Event::Lost { notifications: 3, diagnostics: 1 });
    assert!(matches!(events[3], Event::Notification { .. }));
    assert_eq!(events.len(), 4);
    for _ in 0..3 {
        bench.item(A, read(note));
    }
    assert_eq!(bench.events().last(), Some(&Event::Lost { notifications: 1, diagnostics: 0 }));
    assert!(bench.outputs().is_empty());
}

#[test]
fn diagnostics_stay_small() {
    let mut bench = Bench::new().initialized(A, "2025-06-18", "{}");
    bench.item(A, read(&"ä".repeat(5000)));
    let [Event::Diagnostic(diagnostic)] = &bench.events()[..] else { panic!() };
    assert!(diagnostic.detail.len() < 1000);
}

#[test]
fn debug_shows_no_key() {
    let bench = Bench::with(|config| config.state_keys = Some([0xab; 32].into()));
    let shown = format!("{:?} {:?} {:?}", bench.server, bench.server.config(), bench.server.shared);
    assert!(!shown.contains("171") && !shown.contains("ab, "), "{shown}");
}

// covers: B-187
#[test]
fn client_that_sends_batches_and_never_reads_is_aborted() {
    let mut bench = Bench::with(|config| config.limits.server.max_unsent = 1000).initialized(A, "2025-03-26", "{}");
    bench.handle_event(A, ExchangeEvent::Unsent(1000));
    let mut batches = 0;
    while bench.server.wire.env.exchanges.contains_key(&A) {
        bench.item(A, read(&format!("[{},{}]", legacy("1", "ping", "{}"), legacy("2", "ping", "{}"))));
        batches += 1;
        assert!(batches < 100);
    }
    assert_eq!(bench.outputs().last(), Some(&Output::Abort(A)));
}

// covers: B-187, B-074
#[test]
fn client_that_never_reads_starts_no_more_handlers() {
    let mut bench = Bench::with(|config| {
        config.limits.server.max_unsent = 1000;
        config.limits.server.max_backlog = 1000;
    })
    .initialized(A, "2025-06-18", "{}");
    let (mut unsent, mut ran) = (0, 0);
    while bench.server.wire.env.exchanges.contains_key(&A) && ran < 100 {
        bench.item(A, read(&legacy("1", "tools/call", "{}")));
        for output in bench.outputs() {
            match output {
                Output::Event(Event::Request(responder, _)) => {
                    ran += 1;
                    bench.complete(responder, &format!(r#"{{"x":"{}"}}"#, "x".repeat(400)));
                }
                Output::Send(_, outgoing) => unsent += size(&outgoing),
                _ => {}
            }
        }
        unsent += bench.heard(A).iter().map(String::len).sum::<usize>();
        bench.handle_event(A, ExchangeEvent::Unsent(unsent));
    }
    assert_eq!(ran, 3, "and then {unsent} bytes wait");
    assert!(!bench.server.wire.env.exchanges.contains_key(&A));
}

// covers: B-059, B-187
#[test]
fn extreme_driver_numbers_do_not_overflow() {
    let mut bench =
        Bench::with(|config| config.origin_unix = Duration::from_secs(1)).initialized(A, "2025-06-18", "{}");
    bench.handle_event(A, ExchangeEvent::Unsent(usize::MAX));
    assert_eq!(bench.say(A, &legacy("1", "ping", "{}")).len(), 1);
    bench.handle_event(A, ExchangeEvent::Unsent(usize::MAX));
    bench.handle_event(A, ExchangeEvent::Unsent(0));
    bench.now = Instant::new(Duration::MAX);
    let (responder, _) = bench.request(A, &legacy("2", "tools/call", "{}"));
    bench.complete(responder, "{}");
    assert_eq!(bench.heard(A).len(), 1);
    bench.pass(Duration::MAX);
}

// covers: B-187
#[test]
fn requests_share_the_capabilities_of_initialize() {
    let members: Vec<String> = (0..1_000).map(|n| format!("\"{n}\":0")).collect();
    let mut bench = Bench::new().initialized(A, "2025-06-18", &format!("{{{}}}", members.join(",")));
    let handed: Vec<Handed> = (0..200).map(|n| bench.request(A, &legacy(&n.to_string(), "x", "{}"))).collect();
    let shared = |(_, incoming): &Handed| Arc::as_ptr(&incoming.context.capabilities());
    assert!(handed.iter().all(|one| shared(one) == shared(&handed[0])));
}

// covers: B-187
#[test]
fn client_info_and_capabilities_are_bounded() {
    let initialize = |capabilities: usize, info: usize, junk: usize| {
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{{"protocolVersion":"2025-11-25","capabilities":{{"x":"{}"}},"clientInfo":{{"name":"{}","version":"1"}},"junk":"{}"}}}}"#,
            "c".repeat(capabilities),
            "i".repeat(info),
            "j".repeat(junk)
        )
    };
    let mut bench = Bench::new().open(A).open(B);
    assert_eq!(error(&bench.say(A, &initialize(20_000, 1, 0))[0]).code, -32602);
    assert_eq!(error(&bench.say(A, &initialize(10_000, 10_000, 0))[0]).code, -32602, "together");
    let text = Bytes::from(initialize(10_000, 20_000, 1_000_000));
    bench.item(A, parse_batch_or_message(text.clone(), &Limits::default().frame).into());
    assert!(result(&bench.heard(A)[0]).get("protocolVersion").is_some());
    assert!(text.is_unique(), "the rest of the message is kept with it");
    let (_, incoming) = bench.request(A, &legacy("2", "x", "{}"));
    assert_eq!(incoming.context.client(), None, "a name that is too long is none");
    assert!(incoming.context.capabilities().other.contains("x"));
}

// covers: B-187
#[test]
fn bytes_of_running_requests_are_bounded() {
    let mut bench = Bench::with(|config| {
        config.limits.server.client_shares = 1;
        config.limits.server.max_running_bytes = 170_000;
    })
    .initialized(A, "2025-06-18", "{}")
    .initialized(B, "2025-06-18", "{}");
    let large = |id: u32| legacy(&id.to_string(), "x", &format!(r#"{{"data":"{}"}}"#, "x".repeat(60_000)));
    let (first, _) = bench.request(A, &large(1));
    let (second, _) = bench.request(B, &large(1));
    assert_eq!(error(&bench.say(B, &large(2))[0]).code, -32603);
    let held = bench.server.running_bytes();
    assert!((120_000..=170_000).contains(&held), "{held}");
    bench.complete(first, "{}");
    let text = Bytes::from(format!(
        r#"{{"jsonrpc":"2.0","id":3,"method":"x","params":{{}},"junk":"{}"}}"#,
        "j".repeat(60_000)
    ));
    bench.item(B, parse_batch_or_message(text.clone(), &Limits::default().frame).into());
    let (third, _) = bench.handed();
    assert!(text.is_unique(), "what is no part of its params is kept with it");
    bench.complete(second, "{}");
    bench.complete(third, "{}");
    assert_eq!(bench.server.running_bytes(), 0);
}

// covers: B-187
#[test]
fn request_counts_its_parsed_size() {
    let counted = |line: &str, version: Option<&str>| {
        let mut bench = match version {
            Some(version) => Bench::new().initialized(A, version, "{}"),
            None => Bench::new().open(A),
        };
        bench.runs(A, line);
        bench.server.running_bytes()
    };
    let short: Vec<String> = (0..1000).map(|n| format!(r#""{n}":1"#)).collect();
    let short = format!("{{{}}}", short.join(","));
    let older = |params: &str| counted(&legacy("1", "tools/call", params), Some("2025-11-25"));
    let newer = |rest: &str| counted(&modern("1", "tools/call", rest), None);
    let members = short.trim_matches(['{', '}']);
    let size = Object::read(&RawJson::parse(short.clone()).unwrap()).unwrap().heap_size();
    assert!(older(&short) > older("{}") + size);
    assert!(newer(&format!(",{members}")) > newer("") + size);
    let id = "i".repeat(1000);
    assert!(counted(&modern(&format!("{id:?}"), "x", ""), None) > counted(&modern("1", "x", ""), None) + 3000);
    let method = "m".repeat(10_000);
    assert!(counted(&legacy("1", &method, "{}"), Some("2025-11-25")) > older("{}") + 30_000);
}

// covers: B-187
#[test]
fn request_with_long_id_gets_an_error() {
    let id = |length: usize| format!("{:?}", "i".repeat(length));
    let mut bench = Bench::new().initialized(A, "2025-03-26", "{}").open(B);
    bench.runs(A, &legacy(&id(1024), "x", "{}"));
    bench.runs(B, &modern(&id(1024), "x", ""));
    let held = bench.server.running_bytes();
    for line in
        [legacy(&id(1025), "x", "{}"), legacy(&id(1025), "ping", "{}"), legacy(&id(1 << 20), "initialize", "{}")]
    {
        bench.item(A, read(&line));
        let outputs = bench.outputs();
        assert!(matches!(&outputs[0], Output::Event(Event::Diagnostic(d)) if d.kind == DiagnosticKind::LongId));
        let said = on(A, &outputs[1]).unwrap();
        assert_eq!(error(&said).code, -32600);
        let echoed = &line[..line.find(r#","method""#).unwrap()];
        assert!(said.starts_with(echoed), "the id is echoed");
    }
    assert_eq!(error(&bench.say(B, &modern(&id(1025), "x", ""))[0]).code, -32600);
    let listen = modern(&id(1025), "subscriptions/listen", r#","notifications":{}"#);
    assert_eq!(error(&bench.say(B, &listen)[0]).code, -32600);
    // In a batch it is one answer of the array.
    let said = bench.say(A, &format!("[{},{}]", legacy(&id(1025), "ping", "{}"), legacy("5", "ping", "{}")));
    assert_eq!(said.len(), 1);
    assert!(said[0].contains("-32600") && said[0].contains(r#""id":5,"result""#), "{said:?}");
    assert_eq!((bench.server.running(), bench.server.running_bytes()), (2, held));
}

// covers: B-187
#[test]
fn client_that_sends_long_ids_and_never_reads_is_aborted() {
    let mut bench = Bench::with(|config| config.limits.server.max_unsent = 100_000).initialized(A, "2025-11-25", "{}");
    bench.handle_event(A, ExchangeEvent::Unsent(1));
    let line = legacy(&format!("{:?}", "i".repeat(10_000)), "x", "{}");
    let mut lines = 0;
    while bench.server.wire.env.exchanges.contains_key(&A) {
        bench.item(A, read(&line));
        lines += 1;
        assert!(lines < 100);
    }
    assert_eq!(bench.outputs().last(), Some(&Output::Abort(A)));
}

// covers: B-187
#[test]
fn long_progress_tokens_and_cancelled_ids_are_ignored() {
    let mut bench = Bench::new().initialized(A, "2025-11-25", "{}");
    let long = "i".repeat(1025);
    let params = |token: &str| format!(r#"{{"_meta":{{"progressToken":"{token}"}}}}"#);
    bench.item(A, read(&legacy("1", "x", &params(&long))));
    let outputs = bench.outputs();
    assert!(matches!(&outputs[0], Output::Event(Event::Diagnostic(d)) if d.kind == DiagnosticKind::LongId));
    let Output::Event(Event::Request(_, incoming)) = &outputs[1] else { panic!("{outputs:?}") };
    assert!(!incoming.context.wants_progress && incoming.meta.is_empty());
    let (_, incoming) = bench.request(A, &legacy("2", "x", &params(&long[1..])));
    assert!(incoming.context.wants_progress);
    let cancel =
        |id: &str| format!(r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":"{id}"}}}}"#);
    bench.item(A, read(&cancel(&long)));
    assert_eq!(bench.codes(), ["long-id"]);
    bench.item(A, read(&cancel(&long[1..])));
    assert_eq!(bench.codes(), ["unknown-cancel"]);
    assert_eq!(bench.server.running(), 2);
}

// covers: B-187
#[test]
fn long_id_over_http_gets_400_with_the_id() {
    use crate::exchange::Headers;
    let long = format!("{:?}", "i".repeat(1025));
    let mut site = web::Site::new();
    let client = site.session("2025-11-25", "{}");
    let newer = |method: &str| {
        Headers::new().with("MCP-Protocol-Version", "2026-07-28").with("Mcp-Method", method).with("Mcp-Name", "t")
    };
    let asks = [
        (client.headers(), legacy(&long, "tools/call", r#"{"name":"t"}"#)),
        (client.headers(), legacy(&long, "ping", "{}")),
        (Headers::new(), legacy(&long, "initialize", "{}")),
        (newer("tools/call"), modern(&long, "tools/call", r#","name":"t""#)),
        (newer("server/discover"), modern(&long, "server/discover", "")),
    ];
    for (headers, body) in asks {
        let x = site.post(headers, &body);
        assert_eq!(site.codes(), ["long-id"]);
        let said = site.said(x);
        let (status, answer) = said[0].split_once(' ').unwrap();
        assert_eq!((status, error(answer).code), ("400", -32600));
        assert!(answer.contains(&long), "the id is echoed");
    }
    assert_eq!(site.bench.server.running(), 0);
}

// covers: B-187
#[test]
fn responses_of_the_client_count_for_their_request() {
    let mut bench = Bench::with(|config| {
        config.limits.server.client_shares = 1;
        config.limits.server.max_running_bytes = 180_000;
    })
    .initialized(A, "2025-06-18", r#"{"elicitation":{}}"#);
    let reply = |id: usize| {
        let long = "x".repeat(60_000);
        let what = match id {
            1 => format!(r#""error":{{"code":1,"message":"m","data":"{long}"}}"#),
            _ => format!(r#""result":{{"action":"accept","content":{{"it":"{long}"}}}}"#),
        };
        format!(r#"{{"jsonrpc":"2.0","id":{id},{what}}}"#)
    };
    for id in 1..=3 {
        let (responder, _) = bench.request(A, &legacy(&id.to_string(), "tools/call", "{}"));
        bench.answer(responder, ask("q"));
    }
    bench.heard(A);
    let mut again = Vec::new();
    for id in 1..=3 {
        bench.item(A, read(&reply(id)));
        again.push(bench.handed());
    }
    let held = |handed: &Handed| match &handed.1.inputs["q"] {
        Ok(result) => result.as_str().len(),
        Err(error) => error.data.as_ref().map_or(0, |data| data.as_str().len()),
    };
    assert_eq!(again.iter().map(|handed| held(handed) > 60_000).collect::<Vec<_>>(), [true, true, false]);
    let large = legacy("4", "tools/call", &format!(r#"{{"data":"{}"}}"#, "x".repeat(60_000)));
    assert_eq!(error(&bench.say(A, &large)[0]).code, -32603);
    // A repeated input request drops its earlier response.
    let (first, _) = again.remove(0);
    bench.answer(first, ask("q"));
    assert!(bench.server.running_bytes() < 100_000);
    bench.heard(A);
    bench.item(A, read(r#"{"jsonrpc":"2.0","id":4,"result":{"action":"decline"}}"#));
    again.push(bench.handed());
    for (responder, _) in again {
        bench.complete(responder, "{}");
    }
    assert_eq!(bench.server.running_bytes(), 0);
}

// covers: B-059
#[test]
fn zero_intervals_do_not_loop() {
    let cases: [fn(&mut ServerConfig); 3] = [
        |config| config.keep_alive = Some(Duration::ZERO),
        |config| config.limits.server.session_sweep = Duration::ZERO,
        |config| config.limits.server.history_keep = Duration::ZERO,
    ];
    for change in cases {
        let mut site = web::Site::with(change);
        let client = site.session("2025-11-25", "{}");
        let own = site.bare("GET", client.headers());
        let x = client.call(&mut site, 1);
        let (responder, _) = site.handed();
        site.pass(Duration::from_secs(1));
        // From here on the driver reports no more bytes.
        site.unsent(x, 0);
        site.complete(responder, "{}");
        for _ in 0..3 {
            site.pass(Duration::from_secs(20));
        }
        site.cut(x);
        site.cut(own);
        site.bare("DELETE", client.headers());
        assert!(site.at_rest());
    }
}
