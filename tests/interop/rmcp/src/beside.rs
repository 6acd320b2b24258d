//! The steps of the client with what a server offers beside tools that answer.

#![expect(deprecated, reason = "2026-07-28 has log messages and questions to the model")]

use rmcp::model::*;
use rmcp::service::ServiceError;
use serde_json::{Value, json};
use tokio::time::{Duration, Instant, sleep, timeout};

use crate::client::{Heard, MODERN, SOON, Session, Step, params, same, text, told};

const ONE: &str = "note://one";

/// What the client can do.
pub fn capabilities() -> ClientCapabilities {
    let modes = ElicitationCapability::new().with_form(Default::default()).with_url(Default::default());
    ClientCapabilities::builder()
        .enable_elicitation_with(modes)
        .enable_sampling()
        .enable_sampling_tools()
        .enable_roots()
        .build()
}

/// The model uses the offered tool, and then says what the tool has said.
pub fn sample(params: &CreateMessageRequestParams) -> CreateMessageResult {
    let params = json!(params);
    let last = params["messages"].as_array().and_then(|messages| messages.last()).map(|last| &last["content"]);
    let last = last.map(|content| content.get(0).unwrap_or(content)).cloned().unwrap_or_default();
    let (content, stop) = if last["type"] == "tool_result" {
        let said = format!("{} gave {}", word(&last["toolUseId"]), word(&last["content"][0]["text"]));
        (json!({ "type": "text", "text": said }), "endTurn")
    } else if let Some(tool) = params["tools"].get(0) {
        let input = json!({ "a": 6, "b": 7 });
        (json!([{ "type": "tool_use", "id": "use-1", "name": tool["name"], "input": input }]), "toolUse")
    } else {
        (json!({ "type": "text", "text": "forty-two" }), "endTurn")
    };
    let result = json!({ "role": "assistant", "model": "none", "content": content, "stopReason": stop });
    serde_json::from_value(result).expect("it is a result")
}

fn word(json: &Value) -> &str {
    json.as_str().unwrap_or_default()
}

fn said(why: ServiceError) -> String {
    why.to_string()
}

impl Session {
    /// Runs the steps. `lasts`: there is what needs a session, in the era that has some.
    pub async fn beside(&self, revision: &str, lasts: bool) {
        told("resources", self.resources().await);
        told("read", self.reads(ONE, json!({ "uri": ONE, "mimeType": "text/plain", "text": "the first note" })).await);
        let bytes = json!({ "uri": "note://bytes", "mimeType": "application/octet-stream", "blob": "AAEC/w==" });
        told("blob", self.reads("note://bytes", bytes).await);
        told("templates", self.templates().await);
        let ann = json!({ "uri": "greet://Ann", "mimeType": "text/plain", "text": "hello Ann" });
        told("template", self.reads("greet://Ann", ann).await);
        told("missing", self.missing(revision).await);
        told("prompts", self.prompts().await);
        told("prompt", self.prompt().await);
        let peer = self.service.peer();
        let completed = |done: Result<CompletionInfo, ServiceError>, wanted: &[&str]| {
            same(&done.map_err(said)?.values, &wanted.iter().map(|name| (*name).to_owned()).collect())
        };
        let prompt = peer.complete_prompt_argument("greeting", "name", "An", None).await;
        told("completion", completed(prompt, &["Ann", "Anton"]));
        let template = peer.complete_resource_argument("greet://{name}", "name", "B", None).await;
        told("variable", completed(template, &["Bob"]));
        told("schema", self.schema().await);
        if !lasts {
            return;
        }
        told("logging", self.logging(revision).await);
        told("updated", self.updated(revision).await);
        if revision < "2025-11-25" {
            return;
        }
        self.handler.hear(|heard| heard.asked.clear());
        told("consult", self.consult().await);
        told("page", self.page().await);
        if revision < MODERN {
            told("page told", self.page_told().await);
        }
        self.handler.hear(|heard| heard.declines_pages = true);
        told("page refused", self.says("page", json!({}), "page: decline", false).await);
    }

    async fn resources(&self) -> Step {
        let listed = self.service.peer().list_all_resources().await.map_err(said)?;
        let listed: Vec<_> = listed.iter().map(|one| (one.uri.as_str(), one.mime_type.as_deref())).collect();
        let wanted = [("note://bytes", "application/octet-stream"), (ONE, "text/plain")];
        same(&listed, &wanted.map(|(uri, mime)| (uri, Some(mime))).to_vec())
    }

    async fn reads(&self, uri: &str, wanted: Value) -> Step {
        let read = self.service.peer().read_resource(ReadResourceRequestParams::new(uri)).await.map_err(said)?;
        same(&json!(read.contents), &json!([wanted]))
    }

    async fn templates(&self) -> Step {
        let listed = self.service.peer().list_all_resource_templates().await.map_err(said)?;
        same(&listed.iter().map(|one| one.uri_template.as_str()).collect::<Vec<_>>(), &vec!["greet://{name}"])
    }

    async fn missing(&self, revision: &str) -> Step {
        let code = if revision < MODERN { -32002 } else { -32602 };
        match self.service.peer().read_resource(ReadResourceRequestParams::new("note://none")).await {
            Err(ServiceError::McpError(why)) => {
                same(&(why.code.0, why.data), &(code, Some(json!({ "uri": "note://none" }))))
            }
            other => Err(format!("{other:?}")),
        }
    }

    async fn prompts(&self) -> Step {
        let listed = self.service.peer().list_all_prompts().await.map_err(said)?;
        let wanted = json!([{ "name": "greeting", "arguments": [{ "name": "name", "required": true }] }]);
        same(&json!(listed), &wanted)
    }

    async fn prompt(&self) -> Step {
        let arguments = json!({ "name": "Ann" }).as_object().cloned().unwrap_or_default();
        let get = GetPromptRequestParams::new("greeting").with_arguments(arguments);
        let prompt = self.service.peer().get_prompt(get).await.map_err(said)?;
        let wanted = json!([{ "role": "user", "content": { "type": "text", "text": "Say hello to Ann." } }]);
        same(&json!(prompt.messages), &wanted)
    }

    async fn schema(&self) -> Step {
        let tools = self.service.peer().list_all_tools().await.map_err(said)?;
        let add = tools.iter().find(|tool| tool.name == "add").and_then(|tool| tool.output_schema.clone());
        let sum = add.and_then(|schema| schema.get("properties")?.get("sum").cloned());
        same(&sum, &Some(json!({ "type": "integer" })))
    }

    /// The server logs a message below this level first.
    async fn logging(&self, revision: &str) -> Step {
        let mut call = params("log", json!({}));
        if revision < MODERN {
            let level = SetLevelRequestParams::new(LoggingLevel::Warning);
            self.service.peer().set_level(level).await.map_err(said)?;
        } else {
            call.meta.get_or_insert_default().set_log_level(LoggingLevel::Warning);
        }
        same(&text(&self.service.call_tool(call).await.map_err(said)?), &"logged".to_owned())?;
        self.until(|heard| !heard.logged.is_empty()).await?;
        same(&self.handler.hear(|heard| heard.logged.clone()), &vec!["warning interop high".to_owned()])
    }

    async fn updated(&self, revision: &str) -> Step {
        if revision >= MODERN {
            let wanted = SubscriptionFilter::builder().resource_subscriptions([ONE]).build();
            let mut subscription = self.service.peer().listen(wanted).await.map_err(said)?;
            self.says("touch", json!({}), "touched", false).await?;
            let told = timeout(SOON, subscription.next()).await.map_err(|_| "it did not come".to_owned())?;
            let told = told.map_err(said)?;
            subscription.cancel().await.map_err(said)?;
            let uri = match &told {
                Some(ServerNotification::ResourceUpdatedNotification(updated)) => updated.params.uri.as_str(),
                _ => return Err(format!("{told:?}")),
            };
            return same(&uri, &ONE);
        }
        self.service.peer().subscribe(SubscribeRequestParams::new(ONE)).await.map_err(said)?;
        self.says("touch", json!({}), "touched", false).await?;
        self.until(|heard| !heard.updated.is_empty()).await?;
        self.service.peer().unsubscribe(UnsubscribeRequestParams::new(ONE)).await.map_err(said)?;
        same(&self.handler.hear(|heard| heard.updated.clone()), &vec![ONE.to_owned()])
    }

    async fn consult(&self) -> Step {
        self.says("consult", json!({}), "the model said: use-1 gave 42", false).await?;
        self.handler.asked(&["model", "model"])
    }

    async fn page(&self) -> Step {
        self.says("page", json!({}), "page: accept", false).await?;
        let pages = self.handler.hear(|heard| heard.pages.clone());
        let pages: Vec<_> = pages.iter().map(|page| (word(&page["url"]), word(&page["message"]))).collect();
        same(&pages, &vec![("https://example.org/page", "Please log in.")])
    }

    /// The page of the step before is complete.
    async fn page_told(&self) -> Step {
        self.until(|heard| !heard.completed.is_empty()).await?;
        let (completed, pages) = self.handler.hear(|heard| (heard.completed.clone(), heard.pages.clone()));
        same(&completed, &pages.iter().map(|page| word(&page["elicitationId"]).to_owned()).collect())
    }

    /// Waits until something was heard.
    async fn until(&self, look: impl Fn(&Heard) -> bool) -> Step {
        let end = Instant::now() + SOON;
        while !self.handler.hear(|heard| look(heard)) {
            if Instant::now() > end {
                return Err("it did not come".to_owned());
            }
            sleep(Duration::from_millis(5)).await;
        }
        Ok(())
    }
}
