//! Requests that carry their own metadata (2026-07-28) on a duplex exchange.

use super::*;
use crate::Change;

// covers: DISC-S-001, DISC-S-002, DISC-S-005, VER-S-004, CACHE-S-001, CACHE-S-005, RPC-S-020,
// RPC-S-021, META-S-017, VER-S-016, RPC-B-030
#[test]
fn discover_returns_revisions_capabilities_and_ttl() {
    let mut bench = Bench::with(|config| {
        config.capabilities.tools = Some(Default::default());
        config.discover_cache =
            crate::model::lifecycle::CacheHints::new(500, crate::model::lifecycle::CacheScope::Public);
        config.instructions = Some("use it".into());
    })
    .open(A);
    let result = result(&bench.say(A, &modern("1", "server/discover", ""))[0]);
    let versions: Vec<String> = result.required("supportedVersions").unwrap();
    assert_eq!(versions, ["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"]);
    assert_eq!(result.object("capabilities").unwrap(), object(r#"{"tools":{}}"#));
    assert_eq!(result.required::<String>("instructions").unwrap(), "use it");
    assert_eq!(result.required::<String>("resultType").unwrap(), "complete");
    assert_eq!(
        (result.required::<u64>("ttlMs").unwrap(), result.required::<String>("cacheScope").unwrap()),
        (500, "public".into())
    );
    let info = result.object("_meta").unwrap().object("io.modelcontextprotocol/serverInfo").unwrap();
    assert_eq!(info, object(r#"{"name":"bench","version":"1.0"}"#));
    assert!(result.get("serverInfo").is_none());
}

// covers: RPC-S-020, RPC-S-021, META-S-017
#[test]
fn modern_result_has_type_server_info_and_meta() {
    let mut bench = Bench::new().open(A);
    let (responder, _) = bench.request(A, &modern("1", "x/y", ""));
    bench.complete(responder, r#"{"a":1,"_meta":{"k":"v"}}"#);
    let result = result(&bench.heard(A)[0]);
    assert_eq!(result.required::<String>("resultType").unwrap(), "complete");
    let meta = result.object("_meta").unwrap();
    assert_eq!(meta.required::<String>("k").unwrap(), "v");
    assert!(meta.get("io.modelcontextprotocol/serverInfo").is_some());
}

// covers: META-B-008
#[test]
fn unknown_metadata_reaches_the_handler_unchanged() {
    let odd = [
        (r#""io.modelcontextprotocol/later""#, r#"[null,{"a":1.0}]"#),
        (r#""com.mcp.tools/x""#, "7"),
        (r#""traceparent""#, "false"),
        (r#""own""#, r#""x""#),
    ];
    let members: String = odd.iter().map(|(key, value)| format!("{key}:{value},")).collect();
    let mut bench = bench_after_initialize();
    for line in [modern("1", "tools/call", ""), legacy("2", "tools/call", r#"{"_meta":{"progressToken":1}}"#)] {
        let (_, incoming) = bench.request(A, &line.replace(r#""_meta":{"#, &format!(r#""_meta":{{{members}"#)));
        for (key, value) in odd {
            assert_eq!(incoming.meta.get(key.trim_matches('"')).unwrap().as_str(), value, "{key}");
        }
    }
}

// covers: META-B-001, META-B-021
#[test]
fn own_metadata_has_only_reserved_keys() {
    let mut bench = Bench::with(watching::announces).open(A);
    let [server, subscription] = ["io.modelcontextprotocol/serverInfo", "io.modelcontextprotocol/subscriptionId"];
    let keys = |text: &String, part: &str| {
        let meta = object(text).object(part).unwrap().object("_meta").unwrap();
        meta.iter().map(|(key, _)| key.into_owned()).collect::<BTreeSet<_>>()
    };
    let discovered = bench.say(A, &modern("1", "server/discover", ""));
    assert_eq!(keys(&discovered[0], "result"), [server.into()].into());
    let acknowledged = bench.say(A, &watching::listen("2", r#"{"toolsListChanged":true}"#));
    assert_eq!(keys(&acknowledged[0], "params"), [subscription.into()].into());
    bench.server.publish(bench.now, Change::Tools);
    assert_eq!(keys(&bench.heard(A)[0], "params"), [subscription.into()].into());
    bench.server.shutdown(bench.now, Duration::ZERO);
    assert_eq!(keys(&bench.heard(A)[0], "result"), [server.into(), subscription.into()].into());
}

// covers: META-S-011
#[test]
fn metadata_without_a_required_member_is_refused() {
    let version = r#""io.modelcontextprotocol/protocolVersion":"2026-07-28""#;
    let capabilities = r#""io.modelcontextprotocol/clientCapabilities":{}"#;
    let wrong = r#""io.modelcontextprotocol/clientCapabilities":[]"#;
    let number = r#""io.modelcontextprotocol/protocolVersion":20260728"#;
    for meta in [
        version.to_string(),
        capabilities.to_string(),
        format!("{version},{wrong}"),
        format!("{number},{capabilities}"),
    ] {
        let mut bench = Bench::new().open(A);
        let said = bench.say(A, &legacy("1", "tools/list", &format!(r#"{{"_meta":{{{meta}}}}}"#)));
        assert_eq!(error(&said[0]).code, -32602, "{meta}");
    }
    let mut bench = Bench::new().open(A);
    assert_eq!(error(&bench.say(A, &legacy("1", "server/discover", "{}"))[0]).code, -32602);
}

// covers: VER-S-001, X-15
#[test]
fn unsupported_revision_error_lists_the_supported_ones() {
    for (requested, modern_only) in [("2099-01-01", false), ("2025-11-25", false), ("", false), ("2025-11-25", true)] {
        let mut bench = Bench::with(|config| {
            if modern_only {
                config.versions = Versions::new([ProtocolVersion::V2026_07_28]);
            }
        })
        .open(A);
        let said = bench.say(A, &modern("1", "tools/list", "").replace("2026-07-28", requested));
        let error = error(&said[0]);
        assert_eq!(error.code, -32022);
        let data = Object::read(&error.data.unwrap()).unwrap();
        assert_eq!(data.required::<String>("requested").unwrap(), requested);
        let supported: Vec<String> = data.required("supported").unwrap();
        assert_eq!(supported.len(), if modern_only { 1 } else { 5 });
    }
    let legacy_only = [ProtocolVersion::V2025_11_25];
    let mut bench = Bench::with(|config| config.versions = Versions::new(legacy_only)).open(A);
    assert_eq!(error(&bench.say(A, &modern("1", "server/discover", ""))[0]).code, -32022);
}

// covers: PING-S-006, X-20, X-41, VER-S-016
#[test]
fn methods_of_the_handshake_do_not_exist_for_modern_requests() {
    let mut bench = Bench::new().open(A);
    for method in ["initialize", "ping"] {
        assert_eq!(error(&bench.say(A, &modern("1", method, ""))[0]).code, -32601);
    }
    assert_eq!(error(&bench.say(A, &legacy("1", "tools/list", "{}"))[0]).code, -32600);
    let mut bench = bench_after_initialize();
    assert_eq!(error(&bench.say(A, &legacy("1", "server/discover", "{}"))[0]).code, -32601);
}

// covers: VER-S-006, VER-S-007, META-S-013, META-S-014, X-16, VER-S-015, VER-B-010
#[test]
fn requests_share_no_metadata() {
    let mut bench = bench_after_initialize();
    let first = modern_with("1", "tools/call", r#"{"elicitation":{},"x":{}}"#, "");
    let (_, first) = bench.request(
        A,
        &first.replace(r#""_meta":{"#, r#""_meta":{"io.modelcontextprotocol/clientInfo":{"name":"n","version":"1"},"#),
    );
    assert_eq!(first.context.client().unwrap().name, "n");
    assert!(first.context.capabilities().elicits_forms());
    let (_, second) = bench.request(A, &modern("2", "tools/call", ""));
    assert_eq!(second.context.version, ProtocolVersion::V2026_07_28);
    assert!(second.context.client().is_none() && *second.context.capabilities() == ClientCapabilities::default());
    let (_, third) = bench.request(A, &legacy("3", "tools/call", "{}"));
    assert_eq!(third.context.version, ProtocolVersion::V2025_06_18);
    assert!(third.context.capabilities().roots.is_some());
}

// covers: RPC-B-035, RPC-B-037, X-07
#[test]
fn legacy_error_codes_are_not_sent_in_the_modern_era() {
    let mut bench = bench_after_initialize();
    for (code, modern_code) in [
        (-32002, -32602),
        (-32023, -32603),
        (-32099, -32603),
        (-32100, -32100),
        (-32020, -32020),
        (-32603, -32603),
        (7, 7),
    ] {
        let (responder, _) = bench.request(A, &modern("1", "resources/read", ""));
        bench.answer(responder, Outcome::Error(ErrorObject::new(code, "m")));
        assert_eq!(error(&bench.heard(A)[0]).code, modern_code);
        let (responder, _) = bench.request(A, &legacy("1", "resources/read", "{}"));
        bench.answer(responder, Outcome::Error(ErrorObject::new(code, "m")));
        assert_eq!(error(&bench.heard(A)[0]).code, code);
    }
}

// covers: CACHE-S-001, CACHE-S-005
#[test]
fn cacheable_results_get_default_hints() {
    let cacheable = ["tools/list", "resources/list", "resources/templates/list", "resources/read", "prompts/list"];
    let mut bench = bench_after_initialize();
    for method in cacheable {
        for (given, hints) in [
            ("{}", ("0", r#""private""#)),
            (r#"{"resultType":"complete"}"#, ("0", r#""private""#)),
            (r#"{"ttlMs":5}"#, ("5", r#""private""#)),
            (r#"{"cacheScope":"public"}"#, ("0", r#""public""#)),
            (r#"{"ttlMs":5,"cacheScope":"public"}"#, ("5", r#""public""#)),
        ] {
            let (ttl, scope) = hints;
            let expected = (Some(ttl.to_string()), Some(scope.to_string()));
            assert_eq!(hints_of(&mut bench, &modern("1", method, ""), given), expected, "{method} {given}");
        }
        assert_eq!(hints_of(&mut bench, &legacy("2", method, "{}"), "{}"), (None, None), "{method}, 2025-06-18");
    }
}

// covers: CACHE-S-002
#[test]
fn only_complete_cacheable_results_get_hints() {
    let mut bench = Bench::new().open(A);
    for method in ["tools/call", "prompts/get", "completion/complete", "x/y"] {
        assert_eq!(hints_of(&mut bench, &modern("1", method, ""), "{}"), (None, None), "{method}");
    }
    for kind in ["input_required", "task"] {
        let given = format!(r#"{{"resultType":"{kind}"}}"#);
        assert_eq!(hints_of(&mut bench, &modern("1", "resources/read", ""), &given), (None, None), "{kind}");
    }
    let (responder, _) = bench.request(A, &modern_with("1", "resources/read", r#"{"elicitation":{}}"#, ""));
    bench.answer(responder, ask("q"));
    let asked = result(&bench.heard(A)[0]);
    assert_eq!(asked.required::<String>("resultType").unwrap(), "input_required");
    assert!(asked.get("ttlMs").is_none() && asked.get("cacheScope").is_none());
}

/// Returns `ttlMs` and `cacheScope` of the response as JSON text, for a handler that returns this
/// result.
fn hints_of(bench: &mut Bench, request: &str, given: &str) -> (Option<String>, Option<String>) {
    let (responder, _) = bench.request(A, request);
    bench.complete(responder, given);
    let result = result(&bench.heard(A)[0]);
    let text = |key: &str| result.get(key).map(|value| value.as_str().to_string());
    (text("ttlMs"), text("cacheScope"))
}

// covers: X-05, B-052
#[test]
fn unexpected_responses_are_reported_and_dropped() {
    let mut bench = Bench::new().open(A);
    bench.item(A, read(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#));
    assert_eq!(bench.codes(), ["unexpected-response"]);
    let mut bench = bench_after_initialize();
    bench.item(A, read(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#));
    bench.item(A, read(r#"{"jsonrpc":"2.0","error":{"code":-1,"message":"m"}}"#));
    assert_eq!(bench.codes(), ["unknown-id", "idless-error"]);
    bench.runs(A, &legacy("1", "tools/list", "{}"));
}

// covers: RPC-B-046, X-06
#[test]
fn modern_only_server_answers_invalid_lines() {
    let mut bench = Bench::with(|config| config.versions = Versions::new([ProtocolVersion::V2026_07_28])).open(A);
    assert_eq!(error(&bench.say(A, "[1]")[0]).code, -32600);
    assert_eq!(error(&bench.say(A, "{")[0]).code, -32700);
}

fn bench_after_initialize() -> Bench {
    Bench::new().initialized(A, "2025-06-18", r#"{"roots":{}}"#)
}
