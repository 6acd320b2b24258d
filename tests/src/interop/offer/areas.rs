//! What our server offers beside tools that answer: resources, a template, a prompt and their
//! completions, log messages, updates, and questions to the model and the user.

use mcp_proto::input::Change;
use mcp_proto::model::elicitation::UrlRequest;
use mcp_proto::model::sampling::{SampleRequest, SamplingMessage, ToolChoice, ToolResult};
use mcp_proto::{
    Cx, ElicitResult, LogLevel, Prompt, Resource, ResourceTemplate, Router, ToolError, prompt, resource, template, tool,
};
use serde::Deserialize;
use serde_json::json;
use std::future::ready;

use crate::adapters::Adapter;

/// The template, and the names that complete its variable.
const GREETED: &str = "greet://{name}";
const NAMES: [&str; 3] = ["Ann", "Anton", "Bob"];

/// The arguments of the prompt.
#[derive(Deserialize)]
struct Greeted {
    name: String,
}

/// The arguments of the model's tool.
#[derive(Deserialize)]
struct Factors {
    a: i64,
    b: i64,
}

/// Adds the resources, the prompt and the completions, with the kind of handlers of an adapter.
pub(super) fn add(router: Router, adapter: Adapter) -> Router {
    let router = router.watchable().logging();
    match adapter {
        Adapter::Blocking => router
            .resource(one(), |_cx| Ok("the first note"))
            .resource(bytes(), |_cx| Ok(vec![0, 1, 2, 255]))
            .template(greeted(), greet)
            .prompt(greeting(), |_cx, greeted: Greeted| Ok(say(&greeted)))
            .complete_prompt("greeting", "name", |_cx, entered| Ok(names(entered)))
            .complete_template(GREETED, "name", |_cx, entered| Ok(names(entered))),
        Adapter::Smol => router
            .resource_async(one(), |_cx| ready(Ok("the first note")))
            .resource_async(bytes(), |_cx| ready(Ok(vec![0, 1, 2, 255])))
            .template_async(greeted(), |cx| ready(greet(&cx)))
            .prompt_async(greeting(), |_cx, greeted: Greeted| ready(Ok(say(&greeted))))
            .complete_prompt("greeting", "name", |_cx, entered| ready(Ok(names(entered))))
            .complete_template(GREETED, "name", |_cx, entered| ready(Ok(names(entered)))),
    }
}

fn one() -> Resource {
    resource("note://one").name("one").mime("text/plain")
}

fn bytes() -> Resource {
    resource("note://bytes").name("bytes").mime("application/octet-stream")
}

fn greeted() -> ResourceTemplate {
    template(GREETED).name("greeted").mime("text/plain")
}

fn greet(cx: &Cx) -> Result<String, ToolError> {
    let name: String = cx.variable("name")?;
    Ok(format!("hello {name}"))
}

fn greeting() -> Prompt {
    prompt("greeting").argument("name")
}

fn say(greeted: &Greeted) -> String {
    format!("Say hello to {}.", greeted.name)
}

fn names(entered: &str) -> Vec<&'static str> {
    NAMES.into_iter().filter(|name| name.starts_with(entered)).collect()
}

/// Says that a resource has changed.
pub(super) fn touch(cx: &Cx) -> Result<&'static str, ToolError> {
    cx.publish(Change::Resource("note://one".to_owned()));
    Ok("touched")
}

/// Logs a message below the level that the clients want, and one of this level.
pub(super) fn log(cx: &Cx) -> Result<&'static str, ToolError> {
    // Whether a message is wanted is up to the client.
    let _ = cx.log(LogLevel::Info, "interop", "low");
    let _ = cx.log(LogLevel::Warning, "interop", "high");
    Ok("logged")
}

/// Asks the client's model, which uses a tool.
pub(super) fn consult(cx: &Cx) -> Result<String, ToolError> {
    let numbers = json!({ "a": { "type": "integer" }, "b": { "type": "integer" } });
    let multiply = tool("multiply").input_schema(json!({ "type": "object", "properties": numbers }));
    let question = SampleRequest::new(20).user("What is six times seven?").tool(multiply);
    let answer = cx.sample("first", question.clone().tool_choice(ToolChoice::Required))?;
    let used = answer.uses().next().ok_or("the model used no tool")?.clone();
    let factors: Factors = used.input.to_json().decode()?;
    let result = ToolResult::text(&used, (factors.a * factors.b).to_string());
    let question = question.message(answer.into_message()).message(SamplingMessage::results([result]));
    let answer = cx.sample("second", question)?;
    Ok(format!("the model said: {}", answer.first_text().unwrap_or_default()))
}

/// Asks the user to open a web page, and tells the client that it is complete.
pub(super) fn page(cx: &Cx) -> Result<&'static str, ToolError> {
    let id = cx.elicitation_id("page");
    let page = UrlRequest::new("Please log in.", "https://example.org/page").id(id.as_str());
    Ok(match cx.elicit_url("page", page)? {
        ElicitResult::Accept(_) => {
            cx.elicited(&id);
            "page: accept"
        }
        ElicitResult::Decline => "page: decline",
        ElicitResult::Cancel => "page: cancel",
    })
}
