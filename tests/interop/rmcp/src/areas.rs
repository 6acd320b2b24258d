//! What the server offers beside tools that answer: resources, a prompt, completions, log messages,
//! changes, and questions to the model and the user.

#![expect(deprecated, reason = "2026-07-28 has log messages and questions to the model")]

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rmcp::model::*;
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde_json::{Value, json};
use tokio::sync::Mutex;

use crate::server::{Asked, Interop, ask, failed, wrong};

const PAGE: &str = "https://example.org/page";

/// What the clients have asked for, and what they have caused.
#[derive(Clone, Default)]
pub struct Areas {
    /// The resources to which the client has subscribed, in the revisions without subscriptions.
    subscribed: Arc<Mutex<BTreeSet<String>>>,
    /// The level of the client, in the revisions that have one for all requests.
    level: Arc<Mutex<Option<LoggingLevel>>>,
    grown: Arc<AtomicBool>,
    passed: Arc<AtomicBool>,
}

/// Builds a part of the model from JSON.
macro_rules! made {
    ($json:expr) => {
        serde_json::from_value($json).expect("it is of this type")
    };
}

impl Areas {
    pub fn resources(&self) -> ListResourcesResult {
        let mut resources = vec![
            json!({ "uri": "note://one", "name": "one", "mimeType": "text/plain" }),
            json!({ "uri": "note://bytes", "name": "bytes", "mimeType": "application/octet-stream" }),
        ];
        resources.extend(self.has_grown().then(|| json!({ "uri": "note://late", "name": "late" })));
        ListResourcesResult::with_all_items(made!(json!(resources)))
    }

    pub fn templates(&self) -> ListResourceTemplatesResult {
        let template = json!({ "uriTemplate": "greet://{name}", "name": "greeted" });
        ListResourceTemplatesResult::with_all_items(made!(json!([template])))
    }

    pub fn read(&self, uri: &str) -> Result<ReadResourceResponse, ErrorData> {
        let contents = match (uri, uri.strip_prefix("greet://")) {
            ("note://one", _) => json!({ "uri": uri, "mimeType": "text/plain", "text": "the first note" }),
            ("note://bytes", _) => json!({ "uri": uri, "mimeType": "application/octet-stream", "blob": "AAEC/w==" }),
            ("note://late", _) if self.has_grown() => json!({ "uri": uri, "text": "came later" }),
            (_, Some(name)) => json!({ "uri": uri, "text": format!("hello {name}") }),
            _ => return Err(ErrorData::resource_not_found("no such note", Some(json!({ "uri": uri })))),
        };
        Ok(ReadResourceResult::new(made!(json!([contents]))).into())
    }

    pub fn prompts(&self) -> ListPromptsResult {
        let mut prompts = vec![json!({ "name": "greeting", "arguments": [{ "name": "name", "required": true }] })];
        prompts.extend(self.has_grown().then(|| json!({ "name": "late" })));
        ListPromptsResult::with_all_items(made!(json!(prompts)))
    }

    pub fn prompt(&self, request: &GetPromptRequestParams) -> Result<GetPromptResponse, ErrorData> {
        let name = request.arguments.as_ref().and_then(|arguments| arguments.get("name")?.as_str());
        let name = name.ok_or_else(|| wrong("the arguments"))?;
        let text = json!({ "type": "text", "text": format!("Say hello to {name}.") });
        Ok(GetPromptResult::new(made!(json!([{ "role": "user", "content": text }]))).into())
    }

    pub fn complete(&self, request: &CompleteRequestParams) -> Result<CompleteResult, ErrorData> {
        let names = ["Ann", "Anton", "Bob"].iter().filter(|name| name.starts_with(&request.argument.value));
        let info = CompletionInfo::new(names.map(|name| (*name).to_owned()).collect());
        Ok(CompleteResult::new(info.map_err(|why| wrong(&why))?))
    }

    pub async fn subscribe(&self, uri: String) {
        self.subscribed.lock().await.insert(uri);
    }

    pub async fn unsubscribe(&self, uri: &str) {
        self.subscribed.lock().await.remove(uri);
    }

    pub async fn set_level(&self, level: LoggingLevel) {
        *self.level.lock().await = Some(level);
    }

    /// Whether there is a tool, a prompt and a resource more.
    pub fn has_grown(&self) -> bool {
        self.grown.load(Ordering::SeqCst)
    }
}

/// Calls one of these tools.
pub async fn call(
    server: &Interop,
    request: &CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let text = |text: &str| Ok(CallToolResult::success(vec![ContentBlock::text(text)]).into());
    let areas = &server.areas;
    match request.name.as_ref() {
        "touch" => {
            if areas.subscribed.lock().await.contains("note://one") {
                let updated = ResourceUpdatedNotificationParam::new("note://one");
                context.peer.notify_resource_updated(updated).await.map_err(failed)?;
            }
            for sink in server.listening().await.iter() {
                // One without this resource, or without a client.
                let _ = sink.notify_resource_updated("note://one").await;
            }
            text("touched")
        }
        "log" => {
            log(areas, request, context).await?;
            text("logged")
        }
        "grow" => {
            areas.grown.store(true, Ordering::SeqCst);
            let listening = server.listening().await;
            for sink in listening.iter() {
                // One without this list, or without a client.
                let _ = sink.notify_tool_list_changed().await;
                let _ = sink.notify_prompt_list_changed().await;
                let _ = sink.notify_resource_list_changed().await;
            }
            if listening.is_empty() {
                context.peer.notify_tool_list_changed().await.map_err(failed)?;
                context.peer.notify_prompt_list_changed().await.map_err(failed)?;
                context.peer.notify_resource_list_changed().await.map_err(failed)?;
            }
            text("grown")
        }
        "late" if areas.has_grown() => text("came later"),
        "consult" => consult(request, context).await,
        "page" => match ask(request, context, "page", page("page-1")).await? {
            Asked::Not(response) => Ok(response),
            Asked::Answer(answer) => {
                let action = answer["action"].as_str().unwrap_or_default();
                if action == "accept" {
                    let params = Some(json!({ "elicitationId": "page-1" }));
                    let complete = CustomNotification::new("notifications/elicitation/complete", params);
                    let complete = ServerNotification::CustomNotification(complete);
                    context.peer.send_notification(complete).await.map_err(failed)?;
                }
                text(&format!("page: {action}"))
            }
        },
        "gate" if !areas.passed.swap(true, Ordering::SeqCst) => {
            let page = json!({ "mode": "url", "message": "Please log in.", "url": PAGE, "elicitationId": "gate-1" });
            Err(ErrorData::new(ErrorCode(-32042), "a page is required", Some(json!({ "elicitations": [page] }))))
        }
        "gate" => text("let in"),
        other => Err(wrong(&format!("the tool {other}"))),
    }
}

async fn log(
    areas: &Areas,
    request: &CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<(), ErrorData> {
    let own = request.meta.as_ref().and_then(|meta| meta.log_level()).or_else(|| context.meta.log_level());
    let of_session = *areas.level.lock().await;
    for (level, said) in [(LoggingLevel::Info, "low"), (LoggingLevel::Warning, "high")] {
        if own.or(of_session).is_some_and(|least| level as u8 >= least as u8) {
            let message = LoggingMessageNotificationParam::new(level, json!(said)).with_logger("interop");
            context.peer.notify_logging_message(message).await.map_err(failed)?;
        }
    }
    Ok(())
}

/// Asks the model twice: it uses a tool, and then has its result.
async fn consult(
    request: &CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let answers = request.input_responses.as_ref();
    let second = match answers.and_then(|answers| answers.get("second")) {
        Some(answer) => Asked::Answer(answer.clone()),
        None => {
            let question = json!({ "role": "user", "content": { "type": "text", "text": "What is six times seven?" } });
            let first = ask(request, context, "first", sampled(json!([question]), "required")).await?;
            let used = match first {
                Asked::Not(response) => return Ok(response),
                Asked::Answer(answer) => one(&answer["content"]).clone(),
            };
            let product = used["input"]["a"].as_i64().zip(used["input"]["b"].as_i64()).map(|(a, b)| a * b);
            let product = product.ok_or_else(|| wrong("the use of the tool"))?.to_string();
            let result = json!({
                "type": "tool_result", "toolUseId": used["id"], "content": [{ "type": "text", "text": product }],
            });
            let messages = json!([
                question,
                { "role": "assistant", "content": [used] },
                { "role": "user", "content": [result] },
            ]);
            ask(request, context, "second", sampled(messages, "auto")).await?
        }
    };
    match second {
        Asked::Not(response) => Ok(response),
        Asked::Answer(answer) => {
            let said = one(&answer["content"])["text"].as_str().unwrap_or_default();
            Ok(CallToolResult::success(vec![ContentBlock::text(format!("the model said: {said}"))]).into())
        }
    }
}

/// The first block of a message, which may have one in place of an array.
fn one(content: &Value) -> &Value {
    content.get(0).unwrap_or(content)
}

fn sampled(messages: Value, mode: &str) -> InputRequest {
    let numbers = json!({ "a": { "type": "integer" }, "b": { "type": "integer" } });
    let tool = json!({ "name": "multiply", "inputSchema": { "type": "object", "properties": numbers } });
    let params = json!({ "messages": messages, "maxTokens": 20, "tools": [tool], "toolChoice": { "mode": mode } });
    InputRequest::CreateMessage(CreateMessageRequest::new(made!(params)))
}

fn page(id: &str) -> InputRequest {
    InputRequest::Elicitation(ElicitRequest::new(ElicitRequestParams::UrlElicitationParams {
        meta: None,
        message: "Please log in.".to_owned(),
        url: PAGE.to_owned(),
        elicitation_id: id.to_owned(),
    }))
}
