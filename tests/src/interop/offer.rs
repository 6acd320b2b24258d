//! Our server for the clients of other SDKs: every kind of tool, in both adapters. The servers that
//! this project writes with other SDKs offer the same tools, so that one list of steps applies to
//! all.

mod areas;

use std::fs::OpenOptions;
use std::future::ready;
use std::io::{self, Write};
use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use mcp_driver::ServerOptions;
use mcp_proto::model::sampling::SampleRequest;
use mcp_proto::server::{Event, Sessions, SsePaths};
use mcp_proto::{
    Cx, ElicitResult, Era, Form, IntoOutput, Json, Object, Progress, Refusal, Router, ServerConfig, Tool, ToolError,
    Versions, schema, tool,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use smol::Timer;

use crate::adapters::Adapter;

/// Number of tools per page. The list has six pages.
const PAGE: usize = 3;
/// Interval at which a waiting tool checks its condition.
const LOOK: Duration = Duration::from_millis(10);
/// Number of checks of `cancelled`.
const LOOKS: usize = 500;
/// Time after which a client resumes a stream.
const RETRY: Duration = Duration::from_millis(50);
/// Time for which `poll` continues while its stream is closed, so that the client resumes it
/// meanwhile.
const AWAY: Duration = Duration::from_millis(300);

/// The server to run.
#[derive(Clone, Debug)]
pub struct Offer {
    /// The adapter.
    pub adapter: Adapter,
    /// The supported revisions. `None` supports all.
    pub versions: Option<Versions>,
    /// Whether it has no sessions over HTTP.
    pub stateless: bool,
    /// Whether it also serves HTTP+SSE.
    pub sse: bool,
    /// Whether it also accepts WebSockets.
    pub web_socket: bool,
}

impl Offer {
    /// Serves standard input and output until the client disconnects. Writes its start and its
    /// orderly end to the file `report`, as lines `started PID` and `ended PID`, since a client
    /// hides the exit of its server.
    ///
    /// # Errors
    /// The error of the operating system.
    pub fn serve(&self, report: Option<&Path>) -> io::Result<()> {
        let tell = |what: &str| match report {
            // One write, so that two servers of one client do not mix their lines.
            Some(path) => OpenOptions::new()
                .create(true)
                .append(true)
                .open(path)?
                .write_all(format!("{what} {}\n", std::process::id()).as_bytes()),
            None => Ok(()),
        };
        tell("started")?;
        self.adapter.serve_stdio(self.router())?;
        tell("ended")
    }

    /// Serves HTTP on a loopback port (0: any free one) forever. Prints its address, the beginning
    /// and the end of sessions, and the diagnostics of the engine.
    ///
    /// # Errors
    /// The error of the operating system.
    pub fn serve_http(&self, port: u16) -> io::Result<()> {
        let options = ServerOptions::new().on_event(|event| tell(&event));
        let (service, address) = ((self.router(), options), (Ipv4Addr::LOCALHOST, port));
        let server = match super::tls::server() {
            Some(tls) => self.adapter.serve_https(service, address, tls)?,
            None => self.adapter.serve_http(service, address)?,
        };
        println!("LISTENING {}", server.address());
        server.wait();
        Ok(())
    }

    fn router(&self) -> Router {
        let ended = Arc::new(AtomicUsize::new(0));
        let (cancelled, changes) = (Arc::clone(&ended), AtomicUsize::new(0));
        let router = Router::new("interop", env!("CARGO_PKG_VERSION")).tools_change();
        let router = areas::add(router.configure(|config| self.configure(config)), self.adapter);
        Tools { adapter: self.adapter, router }
            .at_once(add(), |_, add: Add| Ok(Json(Sum { sum: add.a.checked_add(add.b).ok_or("too large")? })))
            .at_once(echo(), |_, echo: Echo| Ok(echo.text))
            .add(count(), counted)
            .at_once(tool("greet"), |cx, _: Nothing| greet(&cx))
            .at_once(tool("sample"), |cx, _: Nothing| sample(&cx))
            .at_once(tool("roots"), |cx, _: Nothing| roots(&cx))
            .at_once(tool("fail"), |_, _: Nothing| Err::<String, _>(ToolError::from("this tool always fails")))
            .add(tool("wait"), move |cx, _: Nothing| wait(cx, Ended(Arc::clone(&ended))))
            .add(tool("cancelled"), move |_, _: Nothing| count_cancelled(Arc::clone(&cancelled)))
            .at_once(tool("print"), |_, _: Nothing| {
                println!("this is no message");
                Ok("printed")
            })
            .at_once(tool("note"), |cx, _: Nothing| {
                cx.notify("notifications/interop", Object::new().with("n", 1_i64)).map_err(|why| why.to_string())?;
                Ok("noted")
            })
            .at_once(tool("change"), move |cx, _: Nothing| change(&cx, changes.fetch_add(1, Ordering::Relaxed)))
            .add(poll(), polled)
            .at_once(tool("touch"), |cx, _: Nothing| areas::touch(&cx))
            .at_once(tool("log"), |cx, _: Nothing| areas::log(&cx))
            .at_once(tool("consult"), |cx, _: Nothing| areas::consult(&cx))
            .at_once(tool("page"), |cx, _: Nothing| areas::page(&cx))
            .router
    }

    /// Returns the revisions with `initialize`.
    pub fn older() -> Versions {
        Versions::new(Versions::all().newest_first().filter(|version| version.era() == Era::Legacy))
    }

    /// Sets what differs from the defaults.
    fn configure(&self, config: &mut ServerConfig) {
        config.limits.server.page_size = PAGE;
        config.validate = Some(schema::validator());
        if let Some(versions) = &self.versions {
            config.versions = versions.clone();
        }
        if self.stateless {
            config.sessions = Sessions::Off;
        }
        config.sse = self.sse.then(SsePaths::default);
        config.web_socket = self.web_socket;
    }
}

/// Puts a tool with the next number in the place of the one with this number.
fn change(cx: &Cx, number: usize) -> Result<&'static str, ToolError> {
    cx.update(|router| {
        let next = tool(&format!("changed-{}", number + 1));
        router.without_tool(&format!("changed-{number}")).tool(next, |_, _: Nothing| Ok("changed"))
    })?;
    Ok("changed")
}

/// A router whose handlers are of the kind of an adapter.
struct Tools {
    adapter: Adapter,
    router: Router,
}

impl Tools {
    fn add<A, O, R>(self, tool: Tool, handler: impl Fn(Cx, A) -> R + Send + Sync + 'static) -> Self
    where
        A: DeserializeOwned,
        O: IntoOutput + 'static,
        R: Future<Output = Result<O, ToolError>> + Send + 'static,
    {
        Self { router: self.adapter.add_tool(self.router, tool, handler), ..self }
    }

    /// Adds a tool that does not wait.
    fn at_once<A, O>(self, tool: Tool, handler: impl Fn(Cx, A) -> Result<O, ToolError> + Send + Sync + 'static) -> Self
    where
        A: DeserializeOwned,
        O: IntoOutput + Send + 'static,
    {
        self.add(tool, move |cx, arguments| ready(handler(cx, arguments)))
    }
}

async fn counted(cx: Cx, count: Count) -> Result<String, ToolError> {
    for step in 1..=count.steps {
        let step = Progress::new(f64::from(step)).total(f64::from(count.steps));
        cx.progress(step).map_err(|why| why.to_string())?;
        Timer::after(Duration::from_millis(count.pause)).await;
    }
    Ok(format!("counted to {}", count.steps))
}

fn greet(cx: &Cx) -> Result<String, ToolError> {
    match cx.elicit("name", Form::new("What is your name?").text("name"))? {
        answer @ ElicitResult::Accept(_) => {
            let name = answer.content::<Name>()?.map(|form| form.name).unwrap_or_default();
            Ok(format!("hello {name}"))
        }
        ElicitResult::Decline => Ok("no name: decline".to_owned()),
        ElicitResult::Cancel => Ok("no name: cancel".to_owned()),
    }
}

/// Counts the end of a cancelled handler: it returns, or its future is dropped.
struct Ended(Arc<AtomicUsize>);

impl Drop for Ended {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

async fn wait(cx: Cx, _ended: Ended) -> Result<(), ToolError> {
    while !cx.is_cancelled() {
        Timer::after(LOOK).await;
    }
    Ok(())
}

async fn count_cancelled(cancelled: Arc<AtomicUsize>) -> Result<String, ToolError> {
    for _ in 0..LOOKS {
        if cancelled.load(Ordering::Relaxed) > 0 {
            break;
        }
        Timer::after(LOOK).await;
    }
    Ok(format!("{} cancelled", cancelled.load(Ordering::Relaxed)))
}

async fn polled(cx: Cx, poll: Poll) -> Result<String, ToolError> {
    let mut closed = 0;
    for step in 1..=poll.times {
        cx.progress(Progress::new(f64::from(step))).map_err(|why| why.to_string())?;
        closed += u32::from(hang_up(&cx)?);
        if step < poll.times {
            Timer::after(AWAY).await;
        }
    }
    Ok(format!("closed {closed} times"))
}

/// Prints an event of a server.
fn tell(event: &Event) {
    match event {
        Event::SessionOpened(_) => println!("session opened"),
        Event::SessionEnded(_, why) => println!("session ended: {why:?}"),
        Event::Diagnostic(diagnostic) => println!("diagnostic {diagnostic}"),
        _ => {}
    }
}

/// Ends the stream of a call for now. Returns `false` if its client cannot resume it.
fn hang_up(cx: &Cx) -> Result<bool, String> {
    match cx.close_stream(Some(RETRY)) {
        Ok(()) => Ok(true),
        Err(Refusal::NotWanted) => Ok(false),
        Err(why) => Err(why.to_string()),
    }
}

#[derive(Deserialize)]
struct Add {
    a: i64,
    b: i64,
}

#[derive(Serialize)]
struct Sum {
    sum: i64,
}

#[derive(Deserialize)]
struct Echo {
    text: String,
}

#[derive(Deserialize)]
struct Count {
    steps: u32,
    /// Milliseconds after each step.
    #[serde(default)]
    pause: u64,
}

#[derive(Deserialize)]
struct Poll {
    times: u32,
}

/// A tool without arguments.
#[derive(Deserialize)]
struct Nothing {}

#[derive(Deserialize)]
struct Name {
    name: String,
}

fn described(name: &str, what: &str, properties: Value) -> Tool {
    let required: Vec<&String> = properties.as_object().into_iter().flat_map(|object| object.keys()).collect();
    tool(name).describe(what).input_schema(json!({
        "type": "object", "properties": properties, "required": required,
    }))
}

fn add() -> Tool {
    let numbers = json!({ "a": { "type": "integer" }, "b": { "type": "integer" } });
    let sum = json!({ "type": "object", "properties": { "sum": { "type": "integer" } }, "required": ["sum"] });
    described("add", "Adds two integers", numbers).output_schema(sum).read_only()
}

fn echo() -> Tool {
    described("echo", "Says the same", json!({ "text": { "type": "string" } }))
}

fn count() -> Tool {
    described("count", "Counts, and reports each step", json!({ "steps": { "type": "integer" } }))
}

fn poll() -> Tool {
    described(
        "poll",
        "Reports progress, and closes its own stream each time",
        json!({ "times": { "type": "integer" } }),
    )
}

/// Asks the client's model.
fn sample(cx: &Cx) -> Result<String, ToolError> {
    let result = cx.sample("model", SampleRequest::new(20).user("What is six times seven?"))?;
    Ok(format!("the model said: {}", result.first_text().unwrap_or_default()))
}

/// Lists the roots of the client.
fn roots(cx: &Cx) -> Result<String, ToolError> {
    let roots = cx.roots("roots")?;
    let uris: Vec<&str> = roots.iter().map(|root| root.uri.as_str()).collect();
    Ok(format!("roots: {}", uris.join(", ")))
}
