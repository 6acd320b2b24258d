//! Tasks: a server whose tools run in its `TaskManager`, and a client that follows the task of a
//! server.

use std::error::Error;
use std::time::Duration;

use rmcp::model::*;
use rmcp::service::RequestContext;
use rmcp::task_manager::{TaskExit, TaskManager, TaskOptions};
use rmcp::transport::{TokioChildProcess, stdio};
use rmcp::{ClientHandler, ClientLifecycleMode, ClientServiceExt, ErrorData, RoleServer, ServerHandler, ServiceExt};
use serde_json::json;
use tokio::process::Command;

use crate::server::{failed, wrong};

#[derive(Clone, Default)]
struct Tasks(TaskManager);

/// Serves standard input and output until the client is gone.
pub async fn serve() -> Result<(), Box<dyn Error>> {
    Tasks::default().serve(stdio()).await?.waiting().await?;
    Ok(())
}

impl ServerHandler for Tasks {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().enable_tasks().build())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let schema = json!({ "type": "object" }).as_object().cloned().unwrap_or_default();
        let tool = |name| Tool::new(name, "A tool whose calls are tasks", schema.clone());
        Ok(ListToolsResult::with_all_items(vec![tool("greet"), tool("forever")]))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let greets = match request.name.as_ref() {
            "greet" => true,
            "forever" => false,
            _ => return Err(wrong("the name")),
        };
        let task = self.0.spawn(TaskOptions::new().with_poll_interval_ms(50), move |task| {
            Box::pin(async move {
                if !greets {
                    task.cancelled().await;
                    return Err(TaskExit::Cancelled);
                }
                task.set_status_message("half");
                let schema = json!({ "type": "object", "properties": { "name": { "type": "string" } } });
                let form = ElicitRequestParams::FormElicitationParams {
                    meta: None,
                    message: "What is your name?".to_owned(),
                    requested_schema: serde_json::from_value(schema).expect("it is a schema"),
                };
                let answer = task.request_input("name", InputRequest::Elicitation(ElicitRequest::new(form))).await?;
                let name = answer["content"]["name"].as_str().unwrap_or_default().to_owned();
                Ok(CallToolResult::success(vec![ContentBlock::text(format!("hello {name}"))]))
            })
        });
        Ok(CallToolResponse::Task(CreateTaskResult::new(task)))
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        Ok(GetTaskResult::new(self.0.get_task(&request.task_id)?))
    }

    async fn update_task(&self, request: UpdateTaskParams, _: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        self.0.update_task(&request.task_id, request.input_responses)
    }

    async fn cancel_task(&self, request: CancelTaskParams, _: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        self.0.cancel_task(&request.task_id)
    }
}

#[derive(Clone, Default)]
struct Client;

impl ClientHandler for Client {
    fn get_info(&self) -> ClientConfig {
        let capabilities = ClientCapabilities::builder().enable_elicitation().enable_tasks().build();
        ClientConfig::new(capabilities, Implementation::new("tasks-rmcp", "1.0.0"))
    }
}

/// Calls the tool `greet` of a server, answers the question of its task, and prints the outcome.
/// Then cancels the task of the tool `forever`.
pub async fn follow(command: &[String]) -> Result<(), Box<dyn Error>> {
    let (program, arguments) = command.split_first().ok_or("a program")?;
    let mut program = Command::new(program);
    program.args(arguments);
    let transport = TokioChildProcess::new(program)?;
    let mode = ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] };
    let client = Client.serve_with_lifecycle(transport, mode).await?;
    let CallToolResponse::Task(created) = client.call_tool_once(CallToolRequestParams::new("greet")).await? else {
        return Err("the call is no task".into());
    };
    let id = created.task.task_id.clone();
    let mut asked = 0;
    let text = loop {
        let state = client.get_task(GetTaskParams::new(&id)).await?;
        match state.task.payload {
            TaskPayload::Working => {}
            TaskPayload::InputRequired { input_requests } => {
                asked += input_requests.len();
                let answer = json!({ "action": "accept", "content": { "name": "Ada" } });
                let answers = input_requests.into_keys().map(|name| (name, answer.clone())).collect();
                client.update_task(UpdateTaskParams::new(&id, answers)).await?;
            }
            TaskPayload::Completed { result } => break result["content"][0]["text"].clone(),
            other => return Err(format!("it ended as {other:?}").into()),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    let CallToolResponse::Task(created) = client.call_tool_once(CallToolRequestParams::new("forever")).await? else {
        return Err("the call is no task".into());
    };
    let id = created.task.task_id.clone();
    client.cancel_task(CancelTaskParams::new(&id)).await?;
    let state = client.get_task(GetTaskParams::new(&id)).await?;
    println!("{}", json!({ "text": text, "asked": asked, "status": state.task.status() }));
    client.cancel().await.map_err(failed)?;
    Ok(())
}
