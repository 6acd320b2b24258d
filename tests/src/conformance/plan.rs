//! The actions of the client in each scenario, as data: its calls and its answers.

use serde_json::{Value, json};

use super::login::Login;

/// The actions of a connected client.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// In this order.
    pub steps: Vec<Step>,
    /// The values that the user enters in a form, by field name. Fields that a form lacks are not
    /// sent. Other fields have their defaults.
    pub form: Value,
    /// Whether the server speaks both eras, whatever revision the scenario is started for.
    pub both_eras: bool,
    /// How it logs in. `None`: it cannot.
    pub login: Option<Login>,
}

/// One action.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Lists the tools, with all pages, and keeps them for later steps.
    List,
    /// Calls tools by name, with arguments. All calls are started before the first is awaited.
    Call(Vec<(String, Value)>),
    /// Calls each listed tool with these arguments, one after the other.
    CallListed(Value),
    /// Calls `to`, with the received schema of the listed tool `of` as its argument `argument`.
    Echo {
        /// The tool of the schema.
        of: &'static str,
        /// The tool to call.
        to: &'static str,
        /// The name of its argument.
        argument: &'static str,
    },
    /// Lists the skills, and reads nothing of them.
    ListSkills,
    /// Lists the skills, and loads each: its `SKILL.md`, and then its other files unless that is
    /// refused.
    LoadSkills,
    /// Makes a request that the library has no type for, with these params.
    Ask(&'static str, Value),
}

/// Returns the plan of a scenario. `context` is the further input of the suite.
///
/// # Errors
/// There is none, or its context is malformed.
pub fn plan(scenario: &str, context: Option<&Value>) -> Result<Plan, String> {
    let call = |name: &str, arguments| Step::Call(vec![(name.to_owned(), arguments)]);
    let steps = match scenario {
        "initialize" | "request-metadata" | "json-schema-ref-no-deref" => vec![Step::List],
        "tools_call" => vec![Step::List, call("add_numbers", json!({ "a": 2, "b": 3 }))],
        "elicitation-sep1034-client-defaults" => vec![Step::List, call("test_client_elicitation_defaults", json!({}))],
        "sse-retry" => vec![Step::List, call("test_reconnection", json!({}))],
        "sep-2322-client-request-state" => {
            let both = ["test_mrtr_echo_state", "test_mrtr_unrelated"].map(|name| (name.to_owned(), json!({})));
            let others = ["test_mrtr_no_state", "test_mrtr_no_result_type"].map(|name| call(name, json!({})));
            [vec![Step::List, Step::Call(both.to_vec())], others.to_vec()].concat()
        }
        "http-standard-headers" => vec![
            Step::List,
            call("test_headers", json!({})),
            call("my-hyphenated-tool", json!({})),
            Step::Ask("resources/list", json!({})),
            Step::Ask("resources/read", json!({ "uri": "file:///path/to/file%20name.txt" })),
            Step::Ask("resources/read", json!({ "uri": "https://example.com/resource?id=123" })),
            Step::Ask("prompts/list", json!({})),
            Step::Ask("prompts/get", json!({ "name": "test_prompt" })),
        ],
        "http-custom-headers" => {
            let calls = context.and_then(|context| context.get("toolCalls")).and_then(Value::as_array);
            let calls = calls.ok_or("the context has no `toolCalls`")?;
            let told = calls.iter().map(|told| Some(call(told.get("name")?.as_str()?, told.get("arguments")?.clone())));
            let told: Option<Vec<Step>> = told.collect();
            [vec![Step::List], told.ok_or("a call of the context has no name or no arguments")?].concat()
        }
        // A tool that must not be used is called if it is listed.
        "http-invalid-tool-headers" => vec![Step::List, Step::CallListed(json!({ "region": "us-east1" }))],
        "json-schema-2020-12-preservation" => {
            vec![Step::List, Step::Echo { of: "json_schema_2020_12_tool", to: "json_schema_echo", argument: "schema" }]
        }
        "sep-2640-client-no-prefetch" => vec![Step::ListSkills],
        _ if scenario.starts_with("sep-2640-client-verify-") => vec![Step::LoadSkills],
        // With the login that the first request begins, and further ones for the call.
        _ if scenario.starts_with("auth/") => vec![Step::List, call("test-tool", json!({}))],
        _ => return Err(format!("no plan for the scenario {scenario:?}")),
    };
    let both_eras = scenario.starts_with("sep-2640-");
    Ok(Plan { steps, form: json!({ "confirmed": true }), both_eras, login: Login::of(scenario, context)? })
}
