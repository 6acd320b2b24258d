//! The server.

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rmcp::model::*;
use rmcp::service::{RequestContext, SubscriptionContext, SubscriptionSink};
use rmcp::transport::stdio;
use rmcp::{ErrorData, RoleServer, ServerHandler, ServiceExt};
use serde_json::{Value, json};
use tokio::sync::{Mutex, MutexGuard, Semaphore};

use crate::areas::{self, Areas};

/// Tools on a page: the list takes four pages.
const PAGE: usize = 3;

/// The tools and the arguments that they need.
const TOOLS: [(&str, &[(&str, &str)]); 18] = [
    ("add", &[("a", "integer"), ("b", "integer")]),
    ("echo", &[("text", "string")]),
    ("count", &[("steps", "integer")]),
    // As the one before, and may not be asked to twice.
    ("tally", &[("steps", "integer")]),
    ("greet", &[]),
    ("sample", &[]),
    ("roots", &[]),
    ("fail", &[]),
    ("wait", &[]),
    ("cancelled", &[]),
    ("note", &[]),
    ("touch", &[]),
    ("log", &[]),
    ("consult", &[]),
    ("page", &[]),
    ("gate", &[]),
    ("grow", &[]),
    ("late", &[]),
];

/// One server, whatever it is reached by.
#[derive(Clone)]
pub struct Interop {
    cancelled: Arc<Semaphore>,
    pub areas: Areas,
    /// Those who want to know of changes, in the revision with subscriptions.
    listening: Arc<Mutex<Vec<SubscriptionSink>>>,
    /// How many were acknowledged, which the SDK does before it tells of them, and how many there
    /// were.
    acknowledged: Arc<AtomicUsize>,
    told: Arc<AtomicUsize>,
}

impl Interop {
    /// Those who want to know of changes, with the latest one that was acknowledged.
    pub async fn listening(&self) -> MutexGuard<'_, Vec<SubscriptionSink>> {
        while self.told.load(Ordering::SeqCst) < self.acknowledged.load(Ordering::SeqCst) {
            tokio::task::yield_now().await;
        }
        self.listening.lock().await
    }
}

impl Default for Interop {
    fn default() -> Self {
        Self {
            cancelled: Arc::new(Semaphore::new(0)),
            areas: Areas::default(),
            listening: Arc::default(),
            acknowledged: Arc::default(),
            told: Arc::default(),
        }
    }
}

/// Serves standard input and output until the client is gone.
pub async fn run() -> Result<(), Box<dyn Error>> {
    Interop::default().serve(stdio()).await?.waiting().await?;
    Ok(())
}

impl ServerHandler for Interop {
    #[expect(deprecated, reason = "the revisions have log messages")]
    fn get_info(&self) -> ServerConfig {
        let all = ServerCapabilities::builder()
            .enable_logging()
            .enable_completions()
            .enable_prompts()
            .enable_prompts_list_changed()
            .enable_resources()
            .enable_resources_list_changed()
            .enable_resources_subscribe()
            .enable_tools()
            .enable_tool_list_changed();
        ServerConfig::new(all.build())
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Ok(self.areas.resources())
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(self.areas.templates())
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        self.areas.read(&request.uri)
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Ok(self.areas.prompts())
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        self.areas.prompt(&request)
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        self.areas.complete(&request)
    }

    #[expect(deprecated, reason = "the revisions have log messages")]
    async fn set_level(&self, request: SetLevelRequestParams, _: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        self.areas.set_level(request.level).await;
        Ok(())
    }

    async fn subscribe(&self, request: SubscribeRequestParams, _: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        self.areas.subscribe(request.uri).await;
        Ok(())
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.areas.unsubscribe(&request.uri).await;
        Ok(())
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        self.acknowledged.fetch_add(1, Ordering::SeqCst);
        Some(requested.clone())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        self.listening.lock().await.push(context.sink().clone());
        self.told.fetch_add(1, Ordering::SeqCst);
        context.cancelled().await;
        Ok(())
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let cursor = request.and_then(|request| request.cursor);
        let from: usize = cursor.map_or(Ok(0), |cursor| cursor.parse()).map_err(|_| wrong("the cursor"))?;
        let there = &TOOLS[..TOOLS.len() - usize::from(!self.areas.has_grown())];
        let page = there.iter().skip(from).take(PAGE).map(|(name, arguments)| tool(name, arguments)).collect();
        let mut list = ListToolsResult::with_all_items(page);
        list.next_cursor = (from + PAGE < there.len()).then(|| (from + PAGE).to_string());
        Ok(list)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = Value::Object(request.arguments.clone().unwrap_or_default());
        let text = |text: String| Ok(CallToolResult::success(vec![ContentBlock::text(text)]).into());
        match request.name.as_ref() {
            "add" => {
                let (a, b) = (arguments["a"].as_i64(), arguments["b"].as_i64());
                let (a, b) = a.zip(b).ok_or_else(|| wrong("the numbers"))?;
                Ok(CallToolResult::structured(json!({ "sum": a + b })).into())
            }
            "echo" => text(arguments["text"].as_str().ok_or_else(|| wrong("the text"))?.to_owned()),
            "count" | "tally" => {
                let pause = Duration::from_secs_f64(arguments["pause"].as_f64().unwrap_or_default());
                let steps = arguments["steps"].as_u64().ok_or_else(|| wrong("the steps"))?;
                for step in 1..=steps {
                    let token = request.meta.as_ref().and_then(|meta| meta.get_progress_token());
                    let token = token.or_else(|| context.meta.get_progress_token());
                    if let Some(token) = token {
                        let progress = ProgressNotificationParam::new(token, step as f64).with_total(steps as f64);
                        context.peer.notify_progress(progress).await.map_err(failed)?;
                    }
                    tokio::time::sleep(pause).await;
                }
                text(format!("counted to {steps}"))
            }
            "greet" => match ask(&request, &context, "question", form()).await? {
                Asked::Not(response) => Ok(response),
                Asked::Answer(answer) if answer["action"] == "accept" => {
                    text(format!("hello {}", answer["content"]["name"].as_str().unwrap_or_default()))
                }
                Asked::Answer(answer) => text(format!("no name: {}", answer["action"].as_str().unwrap_or_default())),
            },
            "sample" => match ask(&request, &context, "question", question()).await? {
                Asked::Not(response) => Ok(response),
                Asked::Answer(answer) => {
                    text(format!("the model said: {}", answer["content"]["text"].as_str().unwrap_or_default()))
                }
            },
            #[expect(deprecated, reason = "it is how a server asks for roots")]
            "roots" => {
                match ask(&request, &context, "question", InputRequest::ListRoots(ListRootsRequest::default())).await? {
                    Asked::Not(response) => Ok(response),
                    Asked::Answer(answer) => {
                        let roots = answer["roots"].as_array().into_iter().flatten();
                        let uris: Vec<&str> = roots.filter_map(|root| root["uri"].as_str()).collect();
                        text(format!("roots: {}", uris.join(", ")))
                    }
                }
            }
            "fail" => Ok(CallToolResult::error(vec![ContentBlock::text("this tool always fails")]).into()),
            "wait" => {
                context.ct.cancelled().await;
                self.cancelled.add_permits(1);
                text("unreachable".to_owned())
            }
            "cancelled" => {
                let seen = tokio::time::timeout(Duration::from_secs(5), self.cancelled.acquire()).await;
                text(if seen.is_ok() { "1 cancelled" } else { "0 cancelled" }.to_owned())
            }
            "note" => {
                let mut listening = self.listening().await;
                let mut left = Vec::new();
                for sink in listening.drain(..) {
                    let changed = ToolListChangedNotification::default();
                    // One that cannot be told is gone.
                    if sink.send(ServerNotification::ToolListChangedNotification(changed)).await.is_ok() {
                        left.push(sink);
                    }
                }
                *listening = left;
                if listening.is_empty() {
                    context.peer.notify_tool_list_changed().await.map_err(failed)?;
                }
                text("noted".to_owned())
            }
            _ => areas::call(self, &request, &context).await,
        }
    }
}

/// What came of a question.
pub enum Asked {
    /// The client is asked by this response, and calls again with the answer.
    Not(CallToolResponse),
    /// The answer.
    Answer(Value),
}

/// Asks in the form of the revision: with the result in 2026-07-28, with a request of the server
/// before.
pub async fn ask(
    request: &CallToolRequestParams,
    context: &RequestContext<RoleServer>,
    name: &str,
    question: InputRequest,
) -> Result<Asked, ErrorData> {
    if let Some(answer) = request.input_responses.as_ref().and_then(|answers| answers.get(name)) {
        return Ok(Asked::Answer(answer.clone()));
    }
    let version = context.protocol_version();
    if version.is_some_and(|version| version.as_str() >= ProtocolVersion::V_2026_07_28.as_str()) {
        let questions = InputRequests::from([(name.to_owned(), question)]);
        return Ok(Asked::Not(InputRequiredResult::new(Some(questions), None).into()));
    }
    // Deprecated, and all there is for older clients.
    #[expect(deprecated, reason = "it is how older revisions ask")]
    let answer = match question {
        InputRequest::Elicitation(request) => {
            json!(context.peer.create_elicitation(request.params).await.map_err(failed)?)
        }
        InputRequest::CreateMessage(request) => {
            json!(context.peer.create_message(request.params).await.map_err(failed)?)
        }
        InputRequest::ListRoots(_) => json!(context.peer.list_roots().await.map_err(failed)?),
        _ => return Err(wrong("the question")),
    };
    Ok(Asked::Answer(answer))
}

fn form() -> InputRequest {
    let schema = json!({ "type": "object", "properties": { "name": { "type": "string" } }, "required": ["name"] });
    InputRequest::Elicitation(ElicitRequest::new(ElicitRequestParams::FormElicitationParams {
        meta: None,
        message: "What is your name?".to_owned(),
        requested_schema: serde_json::from_value(schema).expect("it is a schema"),
    }))
}

#[expect(deprecated, reason = "it is how a server asks a model")]
fn question() -> InputRequest {
    let message = SamplingMessage::user_text("What is six times seven?");
    InputRequest::CreateMessage(CreateMessageRequest::new(CreateMessageRequestParams::new(vec![message], 20)))
}

fn tool(name: &'static str, arguments: &[(&str, &str)]) -> Tool {
    let properties: JsonObject =
        arguments.iter().map(|(name, kind)| ((*name).to_owned(), json!({ "type": kind }))).collect();
    let required: Vec<&str> = arguments.iter().map(|(name, _)| *name).collect();
    let schema = json!({ "type": "object", "properties": properties, "required": required });
    let mut tool = Tool::new(name, "A tool to try a client with", schema.as_object().cloned().unwrap_or_default());
    let sum = json!({ "type": "object", "properties": { "sum": { "type": "integer" } }, "required": ["sum"] });
    tool.output_schema = sum.as_object().cloned().filter(|_| name == "add").map(Arc::new);
    tool.with_annotations(ToolAnnotations::new().read_only(["add", "count"].contains(&name)))
}

pub fn wrong(what: &str) -> ErrorData {
    ErrorData::invalid_params(format!("wrong: {what}"), None)
}

pub fn failed(why: impl Error) -> ErrorData {
    ErrorData::internal_error(why.to_string(), None)
}
