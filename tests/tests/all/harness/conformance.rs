//! Tests of the checks of conformance: a run that proves nothing must not pass.

use mcp_tests::conformance::checks::{Check, Expected, expected, judge, scenarios};
use mcp_tests::conformance::failures::Failures;
use mcp_tests::conformance::plan::{Step, plan};
use mcp_tests::conformance::servers::LEAN;
use mcp_tests::conformance::setup::folder;
use serde_json::{Value, json};

/// Required checks of a client, in each revision.
const MUST: [(&str, &[&str]); 48] = [
    ("initialize", &["2025-11-25"]),
    ("tools_call", &["2025-11-25", "2026-07-28"]),
    ("elicitation-sep1034-client-defaults", &["2025-11-25"]),
    ("sse-retry", &["2025-11-25"]),
    ("request-metadata", &["2026-07-28"]),
    ("sep-2322-client-request-state", &["2026-07-28"]),
    ("http-standard-headers", &["2026-07-28"]),
    ("http-custom-headers", &["2026-07-28"]),
    ("http-invalid-tool-headers", &["2026-07-28"]),
    ("json-schema-ref-no-deref", &["2026-07-28"]),
    ("json-schema-2020-12-preservation", &["2025-11-25", "2026-07-28"]),
    ("auth/metadata-default", &["2025-11-25", "2026-07-28"]),
    ("auth/metadata-var1", &["2025-11-25", "2026-07-28"]),
    ("auth/metadata-var2", &["2025-11-25", "2026-07-28"]),
    ("auth/metadata-var3", &["2025-11-25", "2026-07-28"]),
    ("auth/basic-cimd", &["2025-11-25", "2026-07-28"]),
    ("auth/pre-registration", &["2025-11-25", "2026-07-28"]),
    ("auth/token-endpoint-auth-basic", &["2025-11-25", "2026-07-28"]),
    ("auth/token-endpoint-auth-post", &["2025-11-25", "2026-07-28"]),
    ("auth/token-endpoint-auth-none", &["2025-11-25", "2026-07-28"]),
    ("auth/scope-from-www-authenticate", &["2025-11-25", "2026-07-28"]),
    ("auth/scope-from-scopes-supported", &["2025-11-25", "2026-07-28"]),
    ("auth/scope-omitted-when-undefined", &["2025-11-25", "2026-07-28"]),
    ("auth/scope-step-up", &["2025-11-25", "2026-07-28"]),
    ("auth/scope-retry-limit", &["2025-11-25", "2026-07-28"]),
    ("auth/offline-access-scope", &["2026-07-28"]),
    ("auth/offline-access-not-supported", &["2026-07-28"]),
    ("auth/authorization-server-migration", &["2026-07-28"]),
    ("auth/iss-supported", &["2026-07-28"]),
    ("auth/iss-not-advertised", &["2026-07-28"]),
    ("auth/iss-supported-missing", &["2026-07-28"]),
    ("auth/iss-wrong-issuer", &["2026-07-28"]),
    ("auth/iss-unexpected", &["2026-07-28"]),
    ("auth/iss-normalized", &["2026-07-28"]),
    ("auth/resource-mismatch", &["2026-07-28"]),
    ("auth/metadata-issuer-mismatch", &["2026-07-28"]),
    ("auth/dpop", &["2025-11-25", "2026-07-28"]),
    ("auth/dpop-nonce", &["2025-11-25", "2026-07-28"]),
    ("auth/2025-03-26-oauth-metadata-backcompat", &["2025-03-26"]),
    ("auth/2025-03-26-oauth-endpoint-fallback", &["2025-03-26"]),
    ("auth/client-credentials-basic", &["2025-11-25", "2026-07-28"]),
    ("auth/client-credentials-jwt", &["2025-11-25", "2026-07-28"]),
    ("auth/enterprise-managed-authorization", &["2025-11-25", "2026-07-28"]),
    ("auth/wif-jwt-bearer", &["2025-11-25", "2026-07-28"]),
    ("sep-2640-client-no-prefetch", &["2025-11-25", "2026-07-28"]),
    ("sep-2640-client-verify-digest", &["2025-11-25", "2026-07-28"]),
    ("sep-2640-client-verify-frontmatter", &["2025-11-25", "2026-07-28"]),
    ("sep-2640-client-verify-size", &["2025-11-25", "2026-07-28"]),
];

/// Required scenarios of a server of 2025-11-25.
const MUST_2025: [&str; 33] = [
    "server-initialize",
    "logging-set-level",
    "ping",
    "tools-list",
    "tools-call-simple-text",
    "tools-call-image",
    "tools-call-audio",
    "tools-call-embedded-resource",
    "tools-call-mixed-content",
    "tools-call-with-logging",
    "tools-call-error",
    "tools-call-with-progress",
    "tools-call-elicitation",
    "tools-call-sampling",
    "elicitation-sep1034-defaults",
    "elicitation-sep1330-enums",
    "resources-subscribe",
    "resources-unsubscribe",
    "server-sse-multiple-streams",
    "dns-rebinding-protection",
    "server-session-lifecycle",
    "server-sse-polling",
    "json-schema-2020-12",
    "completion-complete",
    "prompts-get-embedded-resource",
    "prompts-get-simple",
    "prompts-get-with-args",
    "prompts-get-with-image",
    "prompts-list",
    "resources-list",
    "resources-read-binary",
    "resources-read-text",
    "resources-templates-read",
];

/// Required scenarios of a server of 2026-07-28.
const MUST_2026: [&str; 49] = [
    "server-stateless",
    "tools-list",
    "tools-call-simple-text",
    "tools-call-image",
    "tools-call-audio",
    "tools-call-embedded-resource",
    "tools-call-mixed-content",
    "tools-call-error",
    "tools-call-with-progress",
    "server-sse-multiple-streams",
    "dns-rebinding-protection",
    "input-required-result-basic-elicitation",
    "input-required-result-basic-sampling",
    "input-required-result-basic-list-roots",
    "input-required-result-request-state",
    "input-required-result-multiple-input-requests",
    "input-required-result-multi-round",
    "input-required-result-missing-input-response",
    "input-required-result-result-type",
    "input-required-result-unsupported-methods",
    "input-required-result-tampered-state",
    "input-required-result-capability-check",
    "input-required-result-ignore-extra-params",
    "input-required-result-validate-input",
    "http-header-validation",
    "http-custom-header-server-validation",
    "json-schema-2020-12",
    "caching",
    "completion-complete",
    "input-required-result-non-tool-request",
    "prompts-get-embedded-resource",
    "prompts-get-simple",
    "prompts-get-with-args",
    "prompts-get-with-image",
    "prompts-list",
    "resources-list",
    "resources-read-binary",
    "resources-read-text",
    "resources-templates-read",
    "sep-2164-resource-not-found",
    "tasks-lifecycle",
    "tasks-capability-negotiation",
    "tasks-wire-fields",
    "tasks-request-state-removal",
    "tasks-mrtr-input",
    "tasks-mrtr-composition",
    "tasks-request-headers",
    "tasks-required-task-error",
    "tasks-dispatch-and-envelope",
];

/// Required scenarios of a server in both revisions.
const MUST_BOTH: [&str; 3] = ["sep-2640-skills-directory", "sep-2640-skills-enumeration", "sep-2640-skills-manifest"];

fn listed(lines: &[(&str, &str)]) -> Vec<Expected> {
    let line = |(name, status): &(&str, &str)| Expected {
        scenario: "s".to_owned(),
        revision: "2026-07-28".to_owned(),
        status: (*status).to_owned(),
        id: "id".to_owned(),
        name: (*name).to_owned(),
    };
    lines.iter().map(line).collect()
}

fn written(lines: &[(&str, &str)]) -> Vec<Check> {
    let line = |(name, status): &(&str, &str)| json!({ "id": "id", "name": name, "status": status, "extra": 1 });
    serde_json::from_value(Value::Array(lines.iter().map(line).collect())).expect("checks as the suite writes them")
}

#[test]
fn only_listed_scenarios_pass_and_all_of_them() {
    let judged = |list: &[(&str, &str)], suite: &[(&str, &str)]| {
        let (passed, faults) = judge(&listed(list), ("s", "2026-07-28"), &written(suite));
        (passed, faults.len())
    };
    let list: &[_] = &[("A", "SUCCESS"), ("B", "SKIPPED")];
    assert_eq!(judged(list, &[("A", "SUCCESS"), ("B", "SKIPPED"), ("told", "INFO")]), (2, 0));
    assert_eq!(judged(list, &[("A", "SUCCESS")]), (1, 1), "missing");
    assert_eq!(judged(list, &[]), (0, 2), "a run in which nothing happened");
    for status in ["FAILURE", "WARNING", "SKIPPED", "new"] {
        assert_eq!(judged(list, &[("A", status), ("B", "SKIPPED")]), (1, 1), "{status}");
    }
    assert_eq!(judged(list, &[("A", "SUCCESS"), ("B", "SUCCESS")]), (1, 1), "not skipped, as is listed");
    assert_eq!(judged(list, &[("A", "SUCCESS"), ("A", "FAILURE"), ("B", "SKIPPED")]), (2, 1), "twice");
    assert_eq!(judged(list, &[("A", "SUCCESS"), ("B", "SKIPPED"), ("C", "SUCCESS")]), (2, 1), "not listed");
    let (passed, faults) = judge(&listed(list), ("s", "2025-11-25"), &[]);
    assert_eq!((passed, faults.len()), (0, 1), "nothing is listed of it");
}

#[test]
fn every_scenario_that_must_pass_is_listed_and_has_a_plan() {
    let list = expected("client").expect("the list can be read");
    let must = MUST.iter().flat_map(|(scenario, revisions)| revisions.iter().map(|revision| (*scenario, *revision)));
    assert_eq!(scenarios(&list), must.collect::<Vec<_>>());
    let skipped: Vec<&str> =
        list.iter().filter(|line| line.status == "SKIPPED").map(|line| line.scenario.as_str()).collect();
    assert_eq!(skipped, ["http-standard-headers"; 2]);
    let context = json!({
        "toolCalls": [{ "name": "t", "arguments": { "n": null } }],
        "issuer": "http://localhost:1", "client_id": "i", "client_secret": "s",
        "private_key_pem": "p", "signing_algorithm": "ES256", "valid_jwt": "j", "idp_client_id": "i",
        "idp_issuer": "http://localhost:2", "idp_token_endpoint": "http://localhost:2/t", "idp_id_token": "t",
    });
    for (scenario, _) in MUST {
        let plan = plan(scenario, Some(&context)).expect("a plan");
        let first = match scenario {
            "sep-2640-client-no-prefetch" => Step::ListSkills,
            _ if scenario.starts_with("sep-2640-") => Step::LoadSkills,
            _ => Step::List,
        };
        assert_eq!(plan.steps.first(), Some(&first), "{scenario}");
        assert_eq!(plan.login.is_some(), scenario.starts_with("auth/"), "{scenario}");
    }
    plan("another", None).expect_err("it is not planned");
    plan("http-custom-headers", None).expect_err("it needs to be told the calls");
    plan("auth/pre-registration", None).expect_err("it needs to be told the client");
}

#[test]
fn every_required_server_scenario_is_listed_and_succeeds() {
    let list = expected("server").expect("the list can be read");
    let listed = scenarios(&list);
    let must = MUST_2025.map(|scenario| (scenario, "2025-11-25")).into_iter();
    let must = must.chain(MUST_2026.map(|scenario| (scenario, "2026-07-28")));
    let both = MUST_BOTH.into_iter().flat_map(|scenario| [(scenario, "2025-11-25"), (scenario, "2026-07-28")]);
    let must: Vec<_> = must.chain(both).collect();
    assert_eq!(listed, must);
    for (scenario, revision) in must {
        let mut of_it =
            list.iter().filter(|line| (line.scenario.as_str(), line.revision.as_str()) == (scenario, revision));
        assert!(of_it.any(|line| line.status == "SUCCESS" && line.id != "wire-schema-valid"), "{scenario} {revision}");
    }
    // Cache hints, which a legacy list does not have.
    let skipped = list.iter().filter(|line| line.status == "SKIPPED");
    let skipped: Vec<_> = skipped.map(|line| (line.scenario.as_str(), line.revision.as_str())).collect();
    assert_eq!(skipped, [("sep-2640-skills-enumeration", "2025-11-25"); 2]);
    let polling = |line: &Expected| line.scenario == "server-sse-polling" && line.id == "server-sse-disconnect-resume";
    assert!(list.iter().any(|line| polling(line) && line.status == "SUCCESS"), "the rest of the stream is awaited");
    // The scenario that another one depends on precedes it.
    for (leaning, on) in LEAN {
        let at = |scenario| listed.iter().position(|(of, revision)| *of == scenario && *revision == "2026-07-28");
        assert!(at(on) < at(leaning) && at(on).is_some(), "{leaning} leans on {on}");
    }
}

#[test]
fn only_expected_failures_may_fail() {
    let text = "server:\n  # why\n  - whole\n  - part:id\nclient:\n  - other\n";
    let failures = Failures::of(text);
    let judge = |scenario, lines: &[(&str, &str)]| failures.judge(scenario, &written(lines)).is_none();
    assert!(judge("whole", &[("A", "SUCCESS"), ("B", "FAILURE")]));
    assert!(judge("whole", &[("A", "WARNING")]));
    assert!(!judge("whole", &[("A", "SUCCESS"), ("B", "SKIPPED")]), "it passes");
    assert!(judge("whole", &[("A", "SKIPPED")]), "nothing is checked of it");
    assert!(judge("part", &[("A", "FAILURE")]));
    assert!(!judge("part", &[("A", "SUCCESS")]), "it passes");
    let other = [("another", "FAILURE"), ("id", "FAILURE")]
        .map(|(id, status)| json!({ "id": id, "name": "A", "status": status }));
    let other: Vec<Check> = serde_json::from_value(other.to_vec().into()).expect("checks as the suite writes them");
    assert!(failures.judge("part", &other).is_some(), "another check fails too");
    assert!(!judge("other", &[("A", "FAILURE")]), "expected of a client alone");
    assert!(!judge("new", &[("A", "SUCCESS")]), "listed nowhere");
    Failures::read(&folder().join("expected-failures.yml")).expect("the file that the suite gets");
}
