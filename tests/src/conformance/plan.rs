//! What the client does in each scenario: which calls it makes and what it answers, as data.

use serde_json::{Value, json};

/// What a client does once it is connected.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// In this order.
    pub steps: Vec<Step>,
    /// What the user enters in a form, by the name of the field. Fields that a form does not have are not sent; the others have their
    /// defaults.
    pub form: Value,
}

/// One thing to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Lists the tools, all pages of them, and keeps them for later steps.
    List,
    /// Calls tools by name, with arguments. All are begun before the first is waited for.
    Call(Vec<(String, Value)>),
    /// Calls each tool that was listed with these arguments, one after the other.
    CallListed(Value),
    /// Calls `to`, with the schema of the listed tool `of` as it was received for its argument `argument`.
    Echo {
        /// Whose schema.
        of: &'static str,
        /// Which tool is called.
        to: &'static str,
        /// What its argument is called.
        argument: &'static str,
    },
    /// Makes a request that the library has no type for, with these params.
    Ask(&'static str, Value),
}

/// The plan of a scenario; `context` is what the suite tells besides its name.
///
/// # Errors
/// There is none for it, or its context is not as it must be.
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
        // As far as a client without authorization comes.
        _ if scenario.starts_with("auth/") => vec![Step::List, call("test-tool", json!({}))],
        _ => return Err(format!("no plan for the scenario {scenario:?}")),
    };
    Ok(Plan { steps, form: json!({ "confirmed": true }) })
}
