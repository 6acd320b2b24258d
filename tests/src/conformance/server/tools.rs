//! The tools of the server, as data and functions, with the results that the suite requires.

use std::time::Duration;

use mcp_proto::input::Change;
use mcp_proto::model::content::Content;
use mcp_proto::model::elicitation::Field;
use mcp_proto::model::resources::ResourceContents;
use mcp_proto::model::sampling::SampleRequest;
use mcp_proto::{
    CallToolResult, Cx, ElicitResult, Form, InputAnswer, InputRequest, IntoOutput, Progress, ProtocolVersion, RawJson,
    Tool, ToolError, tool,
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Fixture, Step};

/// A red pixel.
pub(super) const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR42mP4z8AAAAMBAQD3A0FDAAAAAElFTkSuQmCC";
/// A millisecond of silence.
const WAV: &str = "UklGRiwAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQgAAACAgICAgICAgA==";

/// Delay between two progress notifications.
const BETWEEN: Duration = Duration::from_millis(50);
/// Time for which the client is disconnected from its closed stream. Longer than it takes to
/// reconnect, so that it waits for the response.
const AWAY: Duration = Duration::from_millis(300);

pub(super) type Returned = Result<CallToolResult, ToolError>;

/// Returns all tools, in the order of the list. The first can be called without arguments.
pub fn all() -> Vec<Fixture> {
    [content(), on_the_way(), of_arguments(), questions_to_the_user(), rounds()].into_iter().flatten().collect()
}

/// Returns the tools with an immediate result.
fn content() -> Vec<Fixture> {
    vec![
        fixture("test_simple_text", "Returns a line of text", |_| said("This is a simple text response for testing.")),
        fixture("test_image_content", "Returns an image", |_| Content::image(PNG, "image/png").into_output()),
        fixture("test_audio_content", "Returns a sound", |_| Content::audio(WAV, "audio/wav").into_output()),
        fixture("test_embedded_resource", "Returns a resource", |_| {
            resource("test://embedded-resource", "text/plain", "This is an embedded resource content.").into_output()
        }),
        fixture("test_multiple_content_types", "Returns a text, an image and a resource", |_| {
            let data = r#"{"test":"data","value":123}"#;
            vec![
                Content::text("Multiple content types test:"),
                Content::image(PNG, "image/png"),
                resource("test://mixed-content-resource", "application/json", data),
            ]
            .into_output()
        }),
        fixture("test_error_handling", "Fails", |_| Err("This tool intentionally returns an error for testing".into())),
    ]
}

/// Returns the tools with steps before the result.
fn on_the_way() -> Vec<Fixture> {
    let progress = |done: f64| Step::Progress(Progress::new(done).total(100.0));
    let pause = || Step::Pause(BETWEEN);
    vec![
        Fixture {
            steps: vec![progress(0.0), pause(), progress(50.0), pause(), progress(100.0)],
            ..fixture("test_tool_with_progress", "Reports progress three times", |_| said("Done, with progress."))
        },
        Fixture {
            steps: vec![Step::CloseStream, Step::Pause(AWAY)],
            ..fixture("test_reconnection", "Closes its stream before it answers", |_| {
                said("The stream was closed before this answer.")
            })
        },
        Fixture {
            steps: vec![
                Step::Log("Tool execution started"),
                pause(),
                Step::Log("Tool processing data"),
                pause(),
                Step::Log("Tool execution completed"),
            ],
            ..fixture("test_tool_with_logging", "Logs three times", |_| said("Done, with log messages."))
        },
        Fixture {
            steps: vec![Step::Log("Logged on request")],
            ..fixture("test_logging_tool", "Logs if the client asks for it", |_| said("Done."))
        },
        Fixture {
            steps: vec![Step::Publish(Change::Prompts)],
            ..fixture("test_trigger_prompt_change", "Says that the list of prompts has changed", |_| said("Said."))
        },
        Fixture {
            steps: vec![Step::Publish(Change::Tools)],
            ..fixture("test_trigger_tool_change", "Says that the list of tools has changed", |_| said("Said."))
        },
    ]
}

/// Returns the tools with arguments.
fn of_arguments() -> Vec<Fixture> {
    let header = json!({
        "type": "object",
        "properties": { "value": { "type": "string", "x-mcp-header": "Value" } },
        "required": ["value"],
    });
    vec![
        described(
            tool("test_custom_header").describe("Returns a value that is also in a header").input_schema(header),
            |cx| {
                #[derive(Deserialize)]
                struct Arguments {
                    value: String,
                }
                let Arguments { value } = cx.arguments()?;
                said(format!("The value is: {value}"))
            },
        ),
        described(
            tool("json_schema_2020_12_tool").describe("Has a schema with newer keywords").input_schema(newer_schema()),
            |cx| said(format!("Called with: {}", cx.raw().as_str())),
        ),
    ]
}

/// Returns a schema with every keyword that a list of tools must preserve.
fn newer_schema() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": { "street": { "type": "string" }, "city": { "type": "string" } },
            },
        },
        "properties": {
            "name": { "type": "string" },
            "address": { "$ref": "#/$defs/address" },
            "contactMethod": { "type": "string", "enum": ["phone", "email"] },
            "phone": { "type": "string" },
            "email": { "type": "string" },
        },
        "allOf": [{ "anyOf": [{ "required": ["phone"] }, { "required": ["email"] }] }],
        "if": { "properties": { "contactMethod": { "const": "phone" } }, "required": ["contactMethod"] },
        "then": { "required": ["phone"] },
        "else": { "required": ["email"] },
        "additionalProperties": false,
    })
}

/// Returns the tools that request input of the user with a form, in the way of the revision.
fn questions_to_the_user() -> Vec<Fixture> {
    let message =
        json!({ "type": "object", "properties": { "message": { "type": "string" } }, "required": ["message"] });
    let prompt = json!({ "type": "object", "properties": { "prompt": { "type": "string" } }, "required": ["prompt"] });
    vec![
        described(tool("test_elicitation").describe("Asks who the user is").input_schema(message), |cx| {
            #[derive(Deserialize)]
            struct Arguments {
                message: String,
            }
            let Arguments { message } = cx.arguments()?;
            let form = Form::new(message)
                .field(Field::text("username").describe("The user's name"))
                .field(Field::text("email").describe("The user's address"));
            said(format!("User response: {}", answer(&cx.elicit("user", form)?)))
        }),
        described(tool("test_sampling").describe("Asks a language model").input_schema(prompt), |cx| {
            #[derive(Deserialize)]
            struct Arguments {
                prompt: String,
            }
            let Arguments { prompt } = cx.arguments()?;
            let result = cx.sample("model", SampleRequest::new(100).user(prompt))?;
            said(format!("LLM response: {}", result.first_text().unwrap_or_default()))
        }),
        fixture("test_elicitation_sep1034_defaults", "Asks with a form whose fields have defaults", |cx| {
            let form = Form::new("Check what is filled in.")
                .field(Field::text("name").optional().default_value("John Doe"))
                .field(Field::integer("age").optional().default_value(30_i64))
                .field(Field::number("score").optional().default_value(RawJson::encode(&95.5)?))
                .field(Field::choice("status", ["active", "inactive", "pending"]).optional().default_value("active"))
                .field(Field::boolean("verified").optional().default_value(true));
            said(format!("Elicitation completed: {}", answer(&cx.elicit("defaults", form)?)))
        }),
        fixture("test_elicitation_sep1330_enums", "Asks with a form of every kind of choice", |cx| {
            let form = Form::with_schema("Choose.", RawJson::encode(&choices())?);
            said(format!("Elicitation completed: {}", answer(&cx.elicit("choices", form)?)))
        }),
        fixture("test_streaming_elicitation", "Asks the user while it runs", |cx| {
            said(format!("Confirmed: {}", answer(&cx.elicit("confirm", consent())?)))
        }),
        fixture("test_missing_capability", "Needs a client that can ask a language model", |cx| {
            said(format!("The model said: {}", result(&cx.ask(vec![model("question", "Say anything.")])?)))
        }),
    ]
}

/// Returns one field for each form of a choice on the wire.
fn choices() -> Value {
    let plain = ["option1", "option2", "option3"];
    let titled = |titles: [&str; 3]| -> Vec<Value> {
        let options = ["value1", "value2", "value3"].into_iter().zip(titles);
        options.map(|(value, title)| json!({ "const": value, "title": title })).collect()
    };
    json!({
        "type": "object",
        "properties": {
            "untitledSingle": { "type": "string", "enum": plain },
            "titledSingle": { "type": "string", "oneOf": titled(["First Option", "Second Option", "Third Option"]) },
            "legacyEnum": {
                "type": "string",
                "enum": ["opt1", "opt2", "opt3"],
                "enumNames": ["Option One", "Option Two", "Option Three"],
            },
            "untitledMulti": { "type": "array", "items": { "type": "string", "enum": plain } },
            "titledMulti": { "type": "array", "items": { "anyOf": titled(["First Choice", "Second Choice", "Third Choice"]) } },
        },
    })
}

/// Returns the tools that run again with the answers, once or several times.
fn rounds() -> Vec<Fixture> {
    vec![
        fixture("test_input_required_result_elicitation", "Asks for a name", |cx| {
            said(format!("Hello: {}", answer(&cx.elicit("user_name", name())?)))
        }),
        fixture("test_input_required_result_sampling", "Asks a language model", |cx| {
            let question = model("capital_question", "What is the capital of France?");
            said(format!("The model said: {}", result(&cx.ask(vec![question])?)))
        }),
        fixture("test_input_required_result_list_roots", "Asks for the roots", |cx| {
            said(format!("The roots: {}", result(&cx.ask(vec![roots()])?)))
        }),
        fixture("test_input_required_result_request_state", "Asks, and remembers something meanwhile", |cx| {
            cx.elicit("confirm", consent()).map_err(|ask| ask.remember("remembered"))?;
            match cx.state::<String>().as_deref() {
                Some("remembered") => said("state-ok"),
                other => Err(format!("in place of what was to be remembered: {other:?}").into()),
            }
        }),
        fixture("test_input_required_result_multiple_inputs", "Asks three things at once", |cx| {
            let user = ("user_name".to_owned(), name().into());
            said(format!("All answered: {}", result(&cx.ask(vec![user, model("greeting", "Greet."), roots()])?)))
        }),
        fixture("test_input_required_result_multi_round", "Asks twice, one after the other", |cx| {
            let user = cx.elicit("step1", name()).map_err(|ask| ask.remember("step1"))?;
            let color = Form::new("Step 2: What is your favorite color?").text("color");
            let color = cx.elicit("step2", color).map_err(|ask| ask.remember("step2"))?;
            said(format!("After {:?}: {}, {}", cx.state::<String>(), answer(&user), answer(&color)))
        }),
        fixture("test_input_required_result_tampered_state", "Remembers what must not be changed meanwhile", |cx| {
            let confirmed = cx.elicit("confirm", consent()).map_err(|ask| ask.remember("untouched"))?;
            said(format!("{:?}: {}", cx.state::<String>(), answer(&confirmed)))
        }),
        fixture("test_input_required_result_capabilities", "Asks whatever the client can be asked", |cx| {
            let user = ("user_name".to_owned(), name().into());
            let mut questions = vec![user, model("greeting", "Greet."), roots()];
            questions.retain(|(_, question)| question.is_supported_by(&cx.context().capabilities()));
            said(format!("Answered: {}", result(&cx.ask(questions)?)))
        }),
    ]
}

fn fixture(name: &str, what: &str, end: fn(&Cx) -> Returned) -> Fixture {
    described(tool(name).describe(what), end)
}

pub(super) fn described(tool: Tool, end: fn(&Cx) -> Returned) -> Fixture {
    Fixture { tool, steps: Vec::new(), end }
}

pub(super) fn said(text: impl Into<String>) -> Returned {
    Ok(CallToolResult::text(text))
}

fn resource(uri: &str, mime_type: &str, text: &str) -> Content {
    Content::resource(ResourceContents::text(uri, text).mime(mime_type))
}

pub(super) fn name() -> Form {
    Form::new("What is your name?").text("name")
}

fn consent() -> Form {
    Form::new("Please confirm").field(Field::boolean("ok"))
}

/// Returns a request to a language model.
fn model(name: &str, text: &str) -> (String, InputRequest) {
    (name.to_owned(), SampleRequest::new(100).user(text).into())
}

fn roots() -> (String, InputRequest) {
    ("client_roots".to_owned(), InputRequest::Roots)
}

/// Describes the response of the user.
pub(super) fn answer(said: &ElicitResult) -> String {
    match said {
        ElicitResult::Accept(content) => format!("action=accept, content={}", content.to_json().as_str()),
        ElicitResult::Decline => "action=decline".to_owned(),
        ElicitResult::Cancel => "action=cancel".to_owned(),
    }
}

/// Describes the answers.
pub(super) fn result(answers: &[InputAnswer]) -> String {
    let answers = answers.iter().map(|answer| match answer.to_object(ProtocolVersion::V2026_07_28) {
        Ok(result) => result.to_json().as_str().to_owned(),
        Err(error) => error.to_string(),
    });
    answers.collect::<Vec<_>>().join(", ")
}
