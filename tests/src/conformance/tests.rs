//! What judges must itself be right: a run that proves nothing must not pass.

use std::process::Command;
use std::time::{Duration, Instant};

use mcp_proto::{ElicitRequest, ElicitResult, RawJson};
use serde_json::{Value, json};

use super::checks::{Check, Expected, expected, judge, scenarios};
use super::client::fill;
use super::plan::{Step, plan};
use super::suite::wait;

/// What must pass, in each revision.
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
fn only_what_is_listed_passes_and_all_of_it() {
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
    let list = expected().expect("the list can be read");
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
    plan("another", None).expect_err("nobody has planned it");
    plan("http-custom-headers", None).expect_err("it needs to be told the calls");
}

#[test]
fn a_form_is_filled_with_its_defaults_and_with_what_is_entered() {
    let schema = json!({ "type": "object", "properties": {
        "age": { "type": "integer", "default": 30 },
        "score": { "type": "number", "default": 95.5 },
        "status": { "type": "string", "enum": ["active", "inactive"], "default": "active" },
        "confirmed": { "type": "boolean" },
        "empty": { "type": "string" },
    } });
    let question = ElicitRequest::new("?", RawJson::parse(schema.to_string()).expect("JSON"));
    let filled = fill(&json!({ "confirmed": true, "age": 31, "another": 1 }), &question);
    let ElicitResult::Accept(_) = filled else { panic!("{filled:?}") };
    let content: Value = filled.content().expect("an object").expect("accepted");
    assert_eq!(content, json!({ "age": 31, "score": 95.5, "status": "active", "confirmed": true }));
}

#[test]
fn a_run_that_hangs_is_ended() {
    let began = Instant::now();
    let status = wait(Command::new("sleep").arg("60"), Duration::from_millis(20)).expect("there is `sleep`");
    assert_eq!(status, None);
    assert!(began.elapsed() < Duration::from_secs(30));
    let status = wait(&mut Command::new("true"), Duration::from_secs(30)).expect("there is `true`");
    assert!(status.is_some_and(|status| status.success()));
}
