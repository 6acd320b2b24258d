//! Completion by a router, requested as text in both eras.

use crate::route::tests::{Bench, outcome};
use crate::rpc::{ErrorObject, Object};
use crate::{Completion, Router, ToolError, prompt};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

fn router() -> Router {
    Router::new("complete", "1")
        .prompt(prompt("greet").argument("tone").argument("name"), |_cx, _: Texts| Ok("hi"))
        .template("db://{table}/{id}", |_cx| Ok(""))
        .resource("x:fixed", |_cx| Ok(""))
        .complete_prompt("greet", "tone", |_cx, entered| {
            Ok(["formal", "friendly", "curt"].into_iter().filter(|tone| tone.starts_with(entered)).collect::<Vec<_>>())
        })
        .complete_template("db://{table}/{id}", "id", |cx, entered| {
            let table = cx.known("table").unwrap_or_default();
            Ok((0..250).map(|n: u32| format!("{table}{entered}{n}")).collect::<Vec<_>>())
        })
        .complete_template("db://{table}/{id}", "table", |_cx, _entered| Ok(Completion::new(["users"]).total(9).more()))
        .complete_prompt("later", "x", |_cx, _entered| Err::<Completion, _>(ToolError::NotFound))
}

type Texts = alloc::collections::BTreeMap<String, String>;

fn complete(bench: &mut Bench, rest: &str) -> Result<Object, ErrorObject> {
    bench.modern("completion/complete", &format!(",{rest}")).map(|result| result.object("completion").unwrap())
}

fn of_prompt(name: &str, argument: &str, value: &str) -> String {
    format!(r#""ref":{{"type":"ref/prompt","name":"{name}"}},"argument":{{"name":"{argument}","value":"{value}"}}"#)
}

fn of_template(uri: &str, argument: &str) -> String {
    format!(r#""ref":{{"type":"ref/resource","uri":"{uri}"}},"argument":{{"name":"{argument}","value":"v"}}"#)
}

#[test]
fn arguments_and_variables_are_completed() {
    let mut bench = Bench::new(router());
    let mut said = |rest: &str| complete(&mut bench, rest).unwrap().to_json().as_str().to_string();
    assert_eq!(said(&of_prompt("greet", "tone", "f")), r#"{"values":["formal","friendly"],"total":2,"hasMore":false}"#);
    assert_eq!(said(&of_template("db://{table}/{id}", "table")), r#"{"values":["users"],"total":9,"hasMore":true}"#);
    let none = r#"{"values":[],"hasMore":false}"#;
    assert_eq!(said(&of_prompt("greet", "name", "")), none);
    assert_eq!(said(&of_template("x:fixed", "a")), none);
}

// covers: COMP-S-002
#[test]
fn flood_of_values_is_cut() {
    let mut bench = Bench::new(router());
    let context = r#","context":{"arguments":{"table":"t"}}"#;
    let flood = complete(&mut bench, &format!("{}{context}", of_template("db://{table}/{id}", "id"))).unwrap();
    let values: Vec<String> = flood.required("values").unwrap();
    assert_eq!((values.len(), &*values[0], &*values[99]), (100, "tv0", "tv99"));
    assert_eq!((flood.required("total"), flood.required("hasMore")), (Ok(250), Ok(true)));
}

// covers: COMP-S-003
#[test]
fn invalid_request_for_completion_reaches_no_handler() {
    let mut bench = Bench::new(router());
    let argument = r#""argument":{"name":"tone","value":""}"#;
    let prompt = r#""ref":{"type":"ref/prompt","name":"greet"}"#;
    let bad = [
        of_prompt("no", "tone", ""),
        of_template("db://{other}", "id"),
        of_prompt("later", "x", ""),
        prompt.into(),
        argument.into(),
        format!(r#"{prompt},"argument":{{"name":"tone"}}"#),
        format!(r#"{prompt},"argument":{{"value":""}}"#),
        format!(r#"{prompt},"argument":{{"name":"tone","value":7}}"#),
        format!(r#"{prompt},{argument},"context":{{"arguments":{{"name":7}}}}"#),
        format!(r#"{prompt},{argument},"context":7"#),
        format!(r#""ref":{{"type":"ref/tool","name":"greet"}},{argument}"#),
        format!(r#""ref":{{"type":"ref/prompt"}},{argument}"#),
        format!(r#""ref":{{"type":"ref/resource"}},{argument}"#),
        format!(r#""ref":"greet",{argument}"#),
    ];
    for rest in bad {
        assert_eq!(complete(&mut bench, &rest).unwrap_err().code, -32602, "{rest}");
    }
}

// covers: COMP-S-001, COMP-S-003
#[test]
fn completions_are_declared_if_the_revision_has_that() {
    let declared = Bench::new(router()).modern("server/discover", "").unwrap().object("capabilities").unwrap();
    assert_eq!(declared.get("completions").unwrap().as_str(), "{}");
    for version in ["2024-11-05", "2025-03-26", "2025-11-25"] {
        let mut bench = Bench::new(router());
        let params = format!(
            r#"{{"protocolVersion":"{version}","capabilities":{{}},"clientInfo":{{"name":"c","version":"0"}}}}"#
        );
        let result = outcome(&bench.say("initialize", &params)[0]).unwrap();
        let declared = result.object("capabilities").unwrap();
        assert_eq!(declared.contains("completions"), version != "2024-11-05", "{version}");
        // The method exists in every revision.
        let said = bench.say("completion/complete", &format!("{{{}}}", of_prompt("greet", "tone", "c")));
        assert!(said[0].contains("curt"), "{said:?}");
    }
    let mut bench = Bench::new(Router::new("n", "1").prompt("greet", |_cx, ()| Ok("hi")));
    assert!(!bench.modern("server/discover", "").unwrap().object("capabilities").unwrap().contains("completions"));
    assert_eq!(complete(&mut bench, &of_prompt("greet", "tone", "")).unwrap_err().code, -32601);
}
