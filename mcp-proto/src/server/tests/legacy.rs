//! Connections that begin with `initialize`.

use super::*;

const CALL: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}"#;

// covers: INIT-S-003, INIT-S-009, INIT-S-019, INIT-B-014, VER-S-015, VER-S-017, B-090
#[test]
fn supported_revision_is_accepted() {
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let mut bench = Bench::with(|config| {
            config.capabilities.tools = Some(Default::default());
            config.instructions = Some("use it".into());
        })
        .open(A);
        let said = bench.say(A, &initialize(version, "{}"));
        let result = result(&said[0]);
        assert_eq!(result.required::<String>("protocolVersion").unwrap(), version);
        assert_eq!(result.object("capabilities").unwrap(), object(r#"{"tools":{}}"#));
        assert_eq!(result.object("serverInfo").unwrap(), object(r#"{"name":"bench","version":"1.0"}"#));
        assert_eq!(result.required::<String>("instructions").unwrap(), "use it");
        assert!(result.get("resultType").is_none() && result.get("_meta").is_none());
        let (_, incoming) = bench.request(A, CALL);
        assert_eq!(incoming.context.version.as_str(), version);
        assert_eq!(incoming.context.client().unwrap().name, "c");
    }
}

// covers: INIT-S-010, INIT-S-011, B-090
#[test]
fn unsupported_revision_gets_the_newest_of_the_era() {
    for asked in ["1999-01-01", "2026-07-28", "2099-01-01", ""] {
        let mut bench = Bench::new().open(A);
        let said = bench.say(A, &initialize(asked, "{}"));
        assert_eq!(result(&said[0]).required::<String>("protocolVersion").unwrap(), "2025-11-25");
    }
    let old = Versions::new([ProtocolVersion::V2024_11_05, ProtocolVersion::V2025_03_26]);
    let mut bench = Bench::with(|config| config.versions = old).open(A);
    let said = bench.say(A, &initialize("2025-11-25", "{}"));
    assert_eq!(result(&said[0]).required::<String>("protocolVersion").unwrap(), "2025-03-26");
}

// covers: VER-S-021
#[test]
fn modern_only_server_rejects_initialize_with_revisions() {
    let mut bench = Bench::with(|config| config.versions = Versions::new([ProtocolVersion::V2026_07_28])).open(A);
    let error = error(&bench.say(A, &initialize("2025-11-25", "{}"))[0]);
    assert_eq!(error.code, -32022);
    assert_eq!(error.data.unwrap().as_str(), r#"{"supported":["2026-07-28"],"requested":"2025-11-25"}"#);
    let without = bench.say(A, CALL);
    assert_eq!(super::error(&without[0]).code, -32602);
}

// covers: INIT-B-001, PING-B-001, B-068, S0-04
#[test]
fn only_ping_is_answered_before_initialize() {
    let mut bench = Bench::new().open(A);
    assert_eq!(
        bench.say(A, r#"{"jsonrpc":"2.0","id":0,"method":"ping"}"#),
        [r#"{"jsonrpc":"2.0","id":0,"result":{}}"#]
    );
    bench.item(A, read(CALL));
    let outputs = bench.outputs();
    assert_eq!(error(&on(A, &outputs[1]).unwrap()).code, -32600);
    assert!(matches!(&outputs[0], Output::Event(Event::Diagnostic(d)) if d.kind == DiagnosticKind::BeforeInitialize));
    bench.say(A, &initialize("2025-06-18", "{}"));
    assert_eq!(bench.say(A, &legacy("\"p\"", "ping", "{}")), [r#"{"jsonrpc":"2.0","id":"p","result":{}}"#]);
    bench.runs(A, CALL);
}

// covers: B-085
#[test]
fn requests_are_served_before_initialized() {
    let mut bench = Bench::new().initialized(A, "2025-06-18", "{}");
    let (responder, _) = bench.request(A, CALL);
    bench.complete(responder, "{}");
    assert_eq!(bench.heard(A), [r#"{"jsonrpc":"2.0","id":1,"result":{}}"#]);
    assert!(bench.say(A, r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).is_empty());
    bench.runs(A, CALL);
}

// covers: B-086
#[test]
fn second_initialize_is_refused() {
    let mut bench = Bench::new().initialized(A, "2024-11-05", "{}");
    let said = bench.say(A, &initialize("2025-11-25", r#"{"roots":{}}"#));
    assert_eq!(error(&said[0]).code, -32600);
    let (_, incoming) = bench.request(A, CALL);
    assert_eq!(incoming.context.version, ProtocolVersion::V2024_11_05);
    assert!(incoming.context.capabilities().roots.is_none());
}

// covers: B-044, B-046, B-047, RPC-B-009, RPC-B-003, S2-42, S2-01
#[test]
fn response_repeats_the_id_exactly() {
    let mut bench = Bench::new().initialized(A, "2025-06-18", "{}");
    for id in ["0", "\"\"", "\"0\"", "1", "\"1\"", "-5", "9223372036854775807", "-9223372036854775808", "\"ä\\\"\""] {
        let (responder, _) = bench.request(A, &legacy(id, "tools/call", "{}"));
        bench.complete(responder, r#"{"content":[]}"#);
        assert_eq!(bench.heard(A), [format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[]}}}}"#)]);
    }
    assert!(bench.at_rest());
}

// covers: B-048, RPC-B-005
#[test]
fn duplicate_id_in_flight_refuses_only_the_new_request() {
    let mut bench = Bench::new().initialized(A, "2025-06-18", "{}");
    let (first, _) = bench.request(A, CALL);
    bench.item(A, read(CALL));
    let outputs = bench.outputs();
    assert_eq!(outputs.len(), 2, "{outputs:?}");
    assert_eq!(error(&on(A, &outputs[1]).unwrap()).code, -32600);
    bench.complete(first, r#"{"first":true}"#);
    assert_eq!(bench.heard(A), [r#"{"jsonrpc":"2.0","id":1,"result":{"first":true}}"#]);
    bench.runs(A, CALL);
}

// covers: RPC-B-005, X-03
#[test]
fn answered_id_is_refused_without_id_reuse() {
    let mut bench = Bench::with(|config| config.compat.reuse_ids = false).initialized(A, "2025-06-18", "{}");
    let (first, _) = bench.request(A, CALL);
    bench.complete(first, "{}");
    assert_eq!(error(&bench.say(A, CALL)[1]).code, -32600);
    bench.runs(A, &legacy("\"1\"", "x", "{}"));
    // The modern era forbids it only while the first is in flight.
    let (first, _) = bench.request(A, &modern("7", "tools/call", ""));
    bench.complete(first, "{}");
    bench.outputs();
    bench.runs(A, &modern("7", "tools/call", ""));
}

// covers: B-049, B-072
#[test]
fn equal_ids_on_two_exchanges_are_independent() {
    let mut bench = Bench::new().initialized(A, "2025-06-18", r#"{"roots":{}}"#).initialized(B, "2024-11-05", "{}");
    let (a, for_a) = bench.request(A, CALL);
    let (b, for_b) = bench.request(B, CALL);
    assert_ne!(a.key(), b.key());
    assert!(for_a.context.capabilities().roots.is_some() && for_b.context.capabilities().roots.is_none());
    // Cancels the second request, so that a lookup by id alone would find the first one.
    bench.item(B, read(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#));
    assert_eq!(bench.events(), [Event::Cancelled(b.key())]);
    bench.complete(b, r#"{"for":"b"}"#);
    bench.complete(a, r#"{"for":"a"}"#);
    let outputs = bench.outputs();
    assert_eq!(outputs.len(), 1);
    assert_eq!(on(A, &outputs[0]).unwrap(), r#"{"jsonrpc":"2.0","id":1,"result":{"for":"a"}}"#);
}

// covers: RPC-B-043, RPC-B-045, RPC-C-044, X-06
#[test]
fn batch_response_is_one_array_where_supported() {
    let mut bench = Bench::new().initialized(A, "2025-03-26", "{}");
    let batch = format!(
        r#"[{CALL},{{"jsonrpc":"2.0","id":2,"method":"ping"}},{{"jsonrpc":"2.0","method":"notifications/x"}},{},{{"id":3,"method":1,"jsonrpc":"2.0"}}]"#,
        initialize("2025-03-26", "{}")
    );
    bench.item(A, read(&batch));
    let (responder, _) = bench.handed();
    assert!(bench.heard(A).is_empty());
    bench.complete(responder, r#"{"late":1}"#);
    let said = bench.heard(A);
    assert_eq!(said.len(), 1);
    let Inbound::Batch(answers) = read(&said[0]) else { panic!("{said:?}") };
    assert_eq!(answers.len(), 4);
    assert!(said[0].contains(r#"{"jsonrpc":"2.0","id":2,"result":{}}"#) && said[0].contains(r#""late":1"#));
    assert!(said[0].contains(r#""id":"init","error":{"code":-32600"#) && said[0].contains(r#""id":3,"error""#));
    // A batch without requests has no response, nor has a batch whose requests were all cancelled.
    assert!(bench.say(A, r#"[{"jsonrpc":"2.0","method":"notifications/x"}]"#).is_empty());
    bench.runs(A, &format!("[{CALL}]"));
    assert!(
        bench.say(A, r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#).is_empty()
    );
    assert!(bench.at_rest());
}

// covers: RPC-B-046, X-06, X-35, RPC-B-018, RPC-B-019
#[test]
fn batch_is_an_error_where_unsupported() {
    let batch = format!("[{CALL}]");
    let mut bench = Bench::new().initialized(A, "2025-11-25", "{}");
    let said = bench.say(A, &batch);
    assert_eq!(said, [r#"{"jsonrpc":"2.0","error":{"code":-32600,"message":"a batch is not allowed here"}}"#]);
    let mut bench = Bench::new().initialized(A, "2025-06-18", "{}");
    bench.item(A, read(&batch));
    let outputs = bench.outputs();
    assert!(matches!(&outputs[0], Output::Event(Event::Diagnostic(d)) if d.kind == DiagnosticKind::UnexpectedBatch));
    assert!(on(A, &outputs[1]).unwrap().starts_with(r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32600"#));
}

// covers: S0-31, S2-12, R-07, RPC-B-018, RPC-B-019, RPC-B-041, B-051, X-35
#[test]
fn invalid_line_gets_an_error_and_ends_nothing() {
    let cases: [(&str, &str, Option<i64>); 8] = [
        // Without an id, an error is sent only in a revision that has such errors.
        ("2025-06-18", "nonsense", None),
        ("2025-11-25", "nonsense", Some(-32700)),
        ("2025-11-25", "\"text\"", Some(-32600)),
        ("2025-11-25", "[]", Some(-32600)),
        // With an id and a method, it is a request of the client.
        ("2024-11-05", r#"{"jsonrpc":"2.0","id":4,"method":"x","params":[1]}"#, Some(-32602)),
        ("2024-11-05", r#"{"jsonrpc":"1.0","id":4,"method":"x"}"#, Some(-32600)),
        // Anything like a response is never answered.
        ("2025-11-25", r#"{"jsonrpc":"2.0","id":4,"result":1,"error":{"code":1,"message":""}}"#, None),
        ("2025-11-25", r#"{"jsonrpc":"2.0","error":{"code":1,"message":"m"}}"#, None),
    ];
    for (version, line, code) in cases {
        let mut bench = Bench::new().initialized(A, version, "{}");
        bench.item(A, read(line));
        let outputs = bench.outputs();
        assert!(matches!(&outputs[0], Output::Event(Event::Diagnostic(_))), "{line}");
        let said: Vec<_> = outputs.iter().filter_map(|output| on(A, output)).collect();
        assert_eq!(said.first().map(|said| error(said).code), code, "{line}");
        if line.contains("\"method\"") {
            assert!(said[0].contains(r#""id":4,"#), "{said:?}");
        }
        bench.runs(A, CALL);
    }
    let mut bench = Bench::new().open(A);
    assert!(bench.say(A, "nonsense").is_empty());
}

// covers: RPC-B-008, X-19, B-064, B-289
#[test]
fn notifications_get_no_response_and_end_nothing() {
    let mut bench = Bench::new().initialized(A, "2025-06-18", "{}");
    for line in [
        r#"{"jsonrpc":"2.0","method":"no/such/thing","params":{"a":[1]}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled"}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}"#,
        r#"{"jsonrpc":"2.0","method":"initialize"}"#,
    ] {
        assert!(bench.say(A, line).is_empty(), "{line}");
    }
    bench.item(A, read(r#"{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}"#));
    let method = "notifications/roots/list_changed".into();
    assert_eq!(bench.events(), [Event::Notification { exchange: A, method, params: None }]);
}

// covers: RPC-B-011, RPC-B-013, RPC-B-014, RPC-B-016, RPC-B-012, S2-03, S0-12
#[test]
fn error_of_the_application_is_sent_unchanged() {
    let mut bench = Bench::new().initialized(A, "2025-06-18", "{}");
    let (responder, _) = bench.request(A, CALL);
    let error = ErrorObject::new(7, "no").with_data(RawJson::from(true));
    bench.answer(responder, Outcome::Error(error));
    assert_eq!(bench.heard(A), [r#"{"jsonrpc":"2.0","id":1,"error":{"code":7,"message":"no","data":true}}"#]);
}

// covers: B-287
#[test]
fn absent_null_and_empty_params_are_the_same() {
    let mut bench = Bench::new().initialized(A, "2025-06-18", "{}");
    for line in [
        r#"{"jsonrpc":"2.0","id":1,"method":"m"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"m","params":null}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":null}}"#,
    ] {
        let (responder, incoming) = bench.request(A, line);
        assert!(incoming.params.is_empty() && incoming.meta.is_empty(), "{line}");
        bench.complete(responder, "{}");
        bench.outputs();
    }
    assert_eq!(error(&bench.say(A, &legacy("1", "m", r#"{"_meta":1}"#))[0]).code, -32602);
}
