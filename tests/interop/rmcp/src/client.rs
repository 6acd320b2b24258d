//! The client.

use std::error::Error;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rmcp::model::*;
use rmcp::service::{NotificationContext, PeerRequestOptions, RequestContext, RunningService, ServiceError};
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::transport::{StreamableHttpClientTransport, TokioChildProcess};
use rmcp::{ClientHandler, ClientLifecycleMode, ClientServiceExt, ErrorData, RoleClient};
use serde_json::{Value, json};
use tokio::process::Command;
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

use crate::beside;

const MANY: usize = 100;
const LARGE: usize = 1 << 20;
pub const SOON: Duration = Duration::from_secs(10);
const TOOLS: [&str; 17] = [
    "add",
    "cancelled",
    "change",
    "consult",
    "count",
    "echo",
    "fail",
    "greet",
    "log",
    "note",
    "page",
    "poll",
    "print",
    "roots",
    "sample",
    "touch",
    "wait",
];
/// The revision with subscriptions.
pub const MODERN: &str = "2026-07-28";

pub type Step = Result<(), String>;

/// What the callbacks have heard, and what the user answers.
#[derive(Default)]
pub struct Heard {
    pub asked: Vec<&'static str>,
    progress: Vec<f64>,
    declines: bool,
    pub declines_pages: bool,
    pub pages: Vec<Value>,
    pub completed: Vec<String>,
    pub logged: Vec<String>,
    pub updated: Vec<String>,
}

#[derive(Clone, Default)]
pub struct Handler {
    heard: Arc<Mutex<Heard>>,
    noted: Arc<Notify>,
    changed: Arc<Notify>,
}

impl Handler {
    pub fn hear<T>(&self, hear: impl FnOnce(&mut Heard) -> T) -> T {
        hear(&mut self.heard.lock().expect("no callback panics"))
    }

    pub fn asked(&self, what: &[&str]) -> Step {
        same(&self.hear(|heard| std::mem::take(&mut heard.asked)), &what.to_vec())
    }
}

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        ClientConfig::new(beside::capabilities(), Implementation::new("interop-rmcp", "1.0.0"))
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        if let ElicitRequestParams::UrlElicitationParams { .. } = request {
            let declines = self.hear(|heard| {
                heard.asked.push("page");
                heard.pages.push(json!(request));
                heard.declines_pages
            });
            let action = if declines { ElicitationAction::Decline } else { ElicitationAction::Accept };
            return Ok(ElicitResult::new(action));
        }
        let declines = self.hear(|heard| {
            heard.asked.push("user");
            heard.declines
        });
        Ok(if declines {
            ElicitResult::new(ElicitationAction::Decline)
        } else {
            ElicitResult::new(ElicitationAction::Accept).with_content(json!({ "name": "Ann" }))
        })
    }

    #[expect(deprecated, reason = "it is how a server asks a model")]
    async fn create_message(
        &self,
        request: CreateMessageRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        self.hear(|heard| heard.asked.push("model"));
        Ok(beside::sample(&request))
    }

    #[expect(deprecated, reason = "it is how a server asks for roots")]
    async fn list_roots(&self, _: RequestContext<RoleClient>) -> Result<ListRootsResult, ErrorData> {
        self.hear(|heard| heard.asked.push("roots"));
        Ok(ListRootsResult::new(vec![Root::new("file:///somewhere")]))
    }

    async fn on_progress(&self, told: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        self.hear(|heard| heard.progress.push(told.progress));
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.changed.notify_one();
    }

    async fn on_custom_notification(&self, told: CustomNotification, _: NotificationContext<RoleClient>) {
        match told.method.as_str() {
            "notifications/interop" => self.noted.notify_one(),
            "notifications/elicitation/complete" => {
                let id = told.params.and_then(|params| Some(params.get("elicitationId")?.as_str()?.to_owned()));
                self.hear(|heard| heard.completed.extend(id));
            }
            _ => {}
        }
    }

    #[expect(deprecated, reason = "the revisions have log messages")]
    async fn on_logging_message(&self, told: LoggingMessageNotificationParam, _: NotificationContext<RoleClient>) {
        let told = json!(told);
        let words = ["level", "logger", "data"].map(|name| told[name].as_str().unwrap_or_default().to_owned());
        self.hear(|heard| heard.logged.push(words.join(" ")));
    }

    async fn on_resource_updated(&self, told: ResourceUpdatedNotificationParam, _: NotificationContext<RoleClient>) {
        self.hear(|heard| heard.updated.push(told.uri));
    }
}

pub struct Session {
    pub service: RunningService<RoleClient, Handler>,
    pub handler: Handler,
}

/// Runs all steps: in an era, which must come to a revision.
pub async fn run(era: &str, revision: &str, command: &[String]) -> Result<(), Box<dyn Error>> {
    let (program, arguments) = command.split_first().ok_or("no program")?;
    let preferred_versions = vec![ProtocolVersion::V_2026_07_28];
    let mode = match era {
        "auto" => ClientLifecycleMode::Auto { preferred_versions, legacy_version: None },
        "modern" => ClientLifecycleMode::Discover { preferred_versions },
        _ => ClientLifecycleMode::Initialize,
    };
    let handler = Handler::default();
    let web = program.starts_with("http:");
    let served = if web {
        let config = StreamableHttpClientTransportConfig::with_uri(program.as_str());
        handler.clone().serve_with_lifecycle(StreamableHttpClientTransport::from_config(config), mode).await
    } else {
        let mut command = Command::new(program);
        command.args(arguments);
        handler.clone().serve_with_lifecycle(TokioChildProcess::new(command)?, mode).await
    };
    let service = match served {
        Ok(service) => service,
        Err(why) => {
            told("connect", Err(why.to_string()));
            return Err("not connected".into());
        }
    };
    let session = Session { service, handler };
    told("revision", session.revision(revision));
    told("list", session.list().await);
    // Whether there is what needs a session, in the era that has some.
    let lasts = era != "stateless";
    session.beside(revision, lasts).await;
    told("structured", session.add(2, 3).await);
    told("text", session.echo("gr\u{fc}\u{df} \u{2028}\u{1f600}\n").await);
    told("progress", session.counted(30).await);
    if lasts {
        told("form", session.ask("greet", "hello Ann", "user").await);
        session.handler.hear(|heard| heard.declines = true);
        told("declined", session.ask("greet", "no name: decline", "user").await);
        told("model", session.ask("sample", "the model said: forty-two", "model").await);
        told("roots", session.ask("roots", "roots: file:///somewhere", "roots").await);
    }
    told("failing", session.says("fail", json!({}), "this tool always fails", true).await);
    told("unknown", session.unknown().await);
    told("bad arguments", session.bad_arguments().await);
    if lasts {
        told("cancel", session.cancel().await);
        told("cancelled", session.says("cancelled", json!({}), "1 cancelled", false).await);
    }
    told("after", session.add(20, 3).await);
    told("many", session.many().await);
    told("large", session.large().await);
    told("print", session.says("print", json!({}), "printed", false).await);
    told("note", session.note().await);
    if revision < MODERN {
        told("ping", session.ping().await);
    }
    told("burst", session.counted(0).await);
    if lasts {
        told("changed", session.changed(revision).await);
    }
    if web {
        // Whether the client can come back for the rest of a stream.
        let resumes = lasts && revision == "2025-11-25";
        if lasts {
            told("resumed", session.resumed(resumes).await);
        }
        if resumes {
            told("cut", session.cut().await);
            told("changed again", session.changed(revision).await);
        }
        ask("restart").await?;
        // It begins a new session by itself where the server knows nothing of the one before.
        told("restarted", session.add(2, 3).await);
        if lasts {
            told("changed still", session.changed(revision).await);
        }
    }
    told("close", session.service.cancel().await.map(drop).map_err(|why| why.to_string()));
    println!("done");
    Ok(())
}

/// Asks the parent process for an action, and waits until it is done.
async fn ask(what: &str) -> Result<(), Box<dyn Error>> {
    println!("{what}");
    tokio::task::spawn_blocking(|| std::io::stdin().read_line(&mut String::new())).await??;
    Ok(())
}

pub fn told(name: &str, step: Step) {
    match step {
        Ok(()) => println!("ok {name}"),
        Err(why) => println!("FAIL {name}: {}", why.replace('\n', " ").chars().take(500).collect::<String>()),
    }
}

pub fn same<T: PartialEq + std::fmt::Debug>(got: &T, wanted: &T) -> Step {
    if got == wanted { Ok(()) } else { Err(format!("{got:?}, expected {wanted:?}")) }
}

pub fn text(result: &CallToolResult) -> String {
    let texts: Vec<&str> = result.content.iter().filter_map(|block| Some(block.as_text()?.text.as_str())).collect();
    texts.join("\n")
}

pub fn params(tool: &str, arguments: Value) -> CallToolRequestParams {
    CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments.as_object().cloned().unwrap_or_default())
}

impl Session {
    async fn call(&self, tool: &str, arguments: Value) -> Result<CallToolResult, String> {
        let called = timeout(SOON, self.service.call_tool(params(tool, arguments))).await;
        called.map_err(|_| "no answer".to_owned())?.map_err(|why| why.to_string())
    }

    pub async fn says(&self, tool: &str, arguments: Value, wanted: &str, fails: bool) -> Step {
        let result = self.call(tool, arguments).await?;
        same(&(text(&result), result.is_error.unwrap_or(false)), &(wanted.to_owned(), fails))
    }

    fn revision(&self, wanted: &str) -> Step {
        let info = self.service.peer().peer_info().ok_or("nothing is known of the server")?;
        same(&info.protocol_version.as_str(), &wanted)
    }

    async fn list(&self) -> Step {
        let mut tools = self.names().await?;
        tools.retain(|name| !name.starts_with("changed-"));
        same(&tools, &TOOLS.map(str::to_owned).to_vec())
    }

    async fn names(&self) -> Result<Vec<String>, String> {
        let tools = self.service.peer().list_all_tools().await.map_err(|why| why.to_string())?;
        Ok(tools.into_iter().map(|tool| tool.name.into_owned()).collect())
    }

    async fn add(&self, a: i64, b: i64) -> Step {
        let result = self.call("add", json!({ "a": a, "b": b })).await?;
        same(&result.structured_content, &Some(json!({ "sum": a + b })))
    }

    async fn echo(&self, said: &str) -> Step {
        self.says("echo", json!({ "text": said }), said, false).await
    }

    /// A call that pauses this number of milliseconds after each of its steps. The SDK reports
    /// progress to one handler of the client, which may run after the call has ended.
    async fn counted(&self, pause: u64) -> Step {
        self.progressed("count", json!({ "steps": 3, "pause": pause }), "counted to 3", pause > 0).await
    }

    /// The server closes the stream of the call at each step, and at last before the result.
    async fn resumed(&self, resumes: bool) -> Step {
        let closed = if resumes { "closed 3 times" } else { "closed 0 times" };
        self.progressed("poll", json!({ "times": 3 }), closed, false).await
    }

    /// All connections are cut at the first progress.
    async fn cut(&self) -> Step {
        self.handler.hear(|heard| heard.progress.clear());
        let call = self.says("count", json!({ "steps": 3, "pause": 300 }), "counted to 3", false);
        let cut = async {
            while self.handler.hear(|heard| heard.progress.is_empty()) {
                sleep(Duration::from_millis(5)).await;
            }
            ask("cut").await.map_err(|why| why.to_string())
        };
        tokio::try_join!(call, cut)?;
        let until = tokio::time::Instant::now() + SOON;
        while self.handler.hear(|heard| !heard.progress.contains(&3.0)) && tokio::time::Instant::now() < until {
            sleep(Duration::from_millis(5)).await;
        }
        let mut seen = self.handler.hear(|heard| heard.progress.clone());
        seen.sort_by(f64::total_cmp);
        // Of what a server tells meanwhile, the newest is enough.
        if seen == [1.0, 3.0] { Ok(()) } else { same(&seen, &vec![1.0, 2.0, 3.0]) }
    }

    /// The list is another one once the client has heard of the change.
    async fn changed(&self, revision: &str) -> Step {
        let before = self.names().await?;
        self.hears_of_a_change(revision).await?;
        if self.names().await? == before { Err(format!("the list is still {before:?}")) } else { Ok(()) }
    }

    async fn hears_of_a_change(&self, revision: &str) -> Step {
        if revision >= MODERN {
            let wanted = SubscriptionFilter::builder().tools_list_changed().build();
            let mut subscription = self.service.peer().listen(wanted).await.map_err(|why| why.to_string())?;
            self.says("change", json!({}), "changed", false).await?;
            let told = timeout(SOON, subscription.next()).await.map_err(|_| "it did not come".to_owned())?;
            let told = told.map_err(|why| why.to_string())?;
            subscription.cancel().await.map_err(|why| why.to_string())?;
            return if told.is_some() { Ok(()) } else { Err("the subscription ended".to_owned()) };
        }
        let until = tokio::time::Instant::now() + SOON;
        // The stream for it may not be open yet, or again.
        while tokio::time::Instant::now() < until {
            self.says("change", json!({}), "changed", false).await?;
            if timeout(Duration::from_millis(300), self.handler.changed.notified()).await.is_ok() {
                return Ok(());
            }
        }
        Err("it did not come".to_owned())
    }

    async fn progressed(&self, tool: &str, arguments: Value, says: &str, in_order: bool) -> Step {
        self.handler.hear(|heard| heard.progress.clear());
        self.says(tool, arguments, says, false).await?;
        let until = tokio::time::Instant::now() + SOON;
        while self.handler.hear(|heard| heard.progress.len()) < 3 && tokio::time::Instant::now() < until {
            sleep(Duration::from_millis(5)).await;
        }
        let mut seen = self.handler.hear(|heard| heard.progress.clone());
        if !in_order {
            // Each notification is a task of its own, so that they may overtake each other.
            seen.sort_by(f64::total_cmp);
        }
        same(&seen, &vec![1.0, 2.0, 3.0])
    }

    async fn ask(&self, tool: &str, wanted: &str, who: &str) -> Step {
        self.handler.hear(|heard| heard.asked.clear());
        self.says(tool, json!({}), wanted, false).await?;
        self.handler.asked(&[who])
    }

    async fn unknown(&self) -> Step {
        match self.call("no-such-tool", json!({})).await {
            Err(why) if why.contains("no-such-tool") => Ok(()),
            other => Err(format!("{other:?}, expected an error")),
        }
    }

    async fn bad_arguments(&self) -> Step {
        let result = self.call("add", json!({ "a": "two" })).await?;
        let bad = result.is_error == Some(true) && text(&result).contains("invalid arguments");
        if bad { Ok(()) } else { Err(format!("{result:?}")) }
    }

    async fn cancel(&self) -> Step {
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params("wait", json!({}))));
        let sent = self.service.peer().send_cancellable_request(request, PeerRequestOptions::no_options()).await;
        let handle = sent.map_err(|why: ServiceError| why.to_string())?;
        sleep(Duration::from_millis(200)).await;
        handle.cancel(Some("no longer needed".to_owned())).await.map_err(|why| why.to_string())
    }

    async fn many(&self) -> Step {
        let texts: Vec<String> = (0..MANY).map(|n| format!("number {n}")).collect();
        let calls: Vec<_> = texts
            .iter()
            .map(|text| {
                let (peer, params) = (self.service.peer().clone(), params("echo", json!({ "text": text })));
                tokio::spawn(async move { peer.call_tool(params).await })
            })
            .collect();
        let mut said = Vec::new();
        for call in calls {
            said.push(text(&call.await.map_err(|why| why.to_string())?.map_err(|why| why.to_string())?));
        }
        same(&said, &texts)
    }

    async fn large(&self) -> Step {
        let mut said = String::new();
        let mut n = 0;
        while said.len() < LARGE {
            said.push_str(&format!("{n}\u{fc} "));
            n += 1;
        }
        let result = self.call("echo", json!({ "text": said })).await?;
        if text(&result) == said { Ok(()) } else { Err("another text came back".to_owned()) }
    }

    async fn note(&self) -> Step {
        self.says("note", json!({}), "noted", false).await?;
        timeout(SOON, self.handler.noted.notified()).await.map_err(|_| "it did not come".to_owned())
    }

    async fn ping(&self) -> Step {
        let ping = ClientRequest::PingRequest(PingRequest::default());
        self.service.peer().send_request(ping).await.map(drop).map_err(|why| why.to_string())
    }
}
