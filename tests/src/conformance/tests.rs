//! Tests of the checks themselves: a run that proves nothing must not pass.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{self, Command};
use std::time::{Duration, Instant};
use std::{env, fs};

use mcp_proto::{ElicitResult, Form, RawJson};
use serde_json::{Value, json};

use super::checks::{Check, Expected, expected, judge, scenarios};
use super::client::fill;
use super::failures::Failures;
use super::plan::{Step, plan};
use super::refusing;
use super::servers::LEAN;
use super::setup::folder;
use super::started::Started;
use super::suite::wait;

/// Required checks of a client, in each revision.
const MUST: [(&str, &[&str]); 11] = [
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
const MUST_2026: [&str; 40] = [
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
];

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
    let context = json!({ "toolCalls": [{ "name": "t", "arguments": { "n": null } }] });
    for (scenario, _) in MUST {
        let plan = plan(scenario, Some(&context)).expect("a plan");
        assert_eq!(plan.steps.first(), Some(&Step::List), "{scenario}");
    }
    plan("another", None).expect_err("it is not planned");
    plan("http-custom-headers", None).expect_err("it needs to be told the calls");
}

#[test]
fn every_required_server_scenario_is_listed_and_succeeds() {
    let list = expected("server").expect("the list can be read");
    let listed = scenarios(&list);
    let must = MUST_2025.map(|scenario| (scenario, "2025-11-25")).into_iter();
    let must: Vec<_> = must.chain(MUST_2026.map(|scenario| (scenario, "2026-07-28"))).collect();
    assert_eq!(listed, must);
    for (scenario, revision) in must {
        let mut of_it =
            list.iter().filter(|line| (line.scenario.as_str(), line.revision.as_str()) == (scenario, revision));
        assert!(of_it.any(|line| line.status == "SUCCESS" && line.id != "wire-schema-valid"), "{scenario} {revision}");
    }
    assert!(list.iter().all(|line| line.status != "SKIPPED"));
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

#[test]
fn refusing_server_refuses_every_request() {
    let server = refusing::serve().expect("loopback");
    let url = server.url();
    let address = url.strip_prefix("http://").and_then(|rest| rest.strip_suffix("/mcp")).expect("of this form");
    for body in [r#"{"jsonrpc":"2.0","id":7,"method":"tools/list"}"#, ""] {
        let mut connection = TcpStream::connect(address).expect("it listens");
        let head = format!("POST /mcp HTTP/1.1\r\nHost: {address}\r\nContent-Length: {}\r\n\r\n", body.len());
        connection.write_all((head + body).as_bytes()).expect("it reads");
        let mut answer = String::new();
        connection.read_to_string(&mut answer).expect("it answers and closes");
        let (head, answer) = answer.split_once("\r\n\r\n").expect("a head");
        assert!(head.starts_with("HTTP/1.1 404 "), "{head}");
        let answer: Value = serde_json::from_str(answer).expect("JSON");
        assert_eq!(answer["error"]["code"], -32601);
        assert_eq!(answer["id"], if body.is_empty() { Value::Null } else { json!(7) });
    }
}

#[test]
fn program_that_does_not_listen_is_not_a_server() {
    let log = || env::temp_dir().join(format!("mcp-conformance-{}.log", process::id()));
    let why = Started::start(Path::new("true"), log()).expect_err("it ends at once");
    assert!(why.contains("does not listen"), "{why}");
    let why = Started::start(Path::new("echo"), log()).expect_err("it says something else");
    assert!(why.contains("it says"), "{why}");
    fs::remove_file(log()).expect("both wrote there");
}

#[test]
fn form_is_filled_with_defaults_and_entered_values() {
    let schema = json!({ "type": "object", "properties": {
        "age": { "type": "integer", "default": 30 },
        "score": { "type": "number", "default": 95.5 },
        "status": { "type": "string", "enum": ["active", "inactive"], "default": "active" },
        "confirmed": { "type": "boolean" },
        "empty": { "type": "string" },
    } });
    let question = Form::with_schema("?", RawJson::parse(schema.to_string()).expect("JSON"));
    let filled = fill(&json!({ "confirmed": true, "age": 31, "another": 1 }), &question);
    let ElicitResult::Accept(_) = filled else { panic!("{filled:?}") };
    let content: Value = filled.content().expect("an object").expect("accepted");
    assert_eq!(content, json!({ "age": 31, "score": 95.5, "status": "active", "confirmed": true }));
}

#[test]
fn hanging_run_is_ended() {
    let began = Instant::now();
    let status = wait(Command::new("sleep").arg("60"), Duration::from_millis(20)).expect("there is `sleep`");
    assert_eq!(status, None);
    assert!(began.elapsed() < Duration::from_secs(30));
    let status = wait(&mut Command::new("true"), Duration::from_secs(30)).expect("there is `true`");
    assert!(status.is_some_and(|status| status.success()));
}
