//! Our server for the clients of other SDKs: every kind of tool, in both adapters. The servers that
//! this project writes with other SDKs offer the same tools, so that one list of steps applies to
//! all.

mod blocking;
mod smol;

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use mcp_proto::server::{Event, Sessions};
use mcp_proto::{
    Cx, Era, InputAnswer, InputRequest, Object, RawJson, Refusal, ServerConfig, Tool, ToolError, Versions, tool,
};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Number of tools per page. The list has four pages.
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
#[derive(Clone, Debug, Default)]
pub struct Offer {
    /// Whether it uses the adapter for smol instead of threads.
    pub smol: bool,
    /// The supported revisions. `None` supports all.
    pub versions: Option<Versions>,
    /// Whether it has no sessions over HTTP.
    pub stateless: bool,
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
        if self.smol {
            smol::serve(self)?
        } else {
            blocking::serve(self)?
        }
        tell("ended")
    }

    /// Serves HTTP on a loopback port (0: any free one) forever. Prints its address, the beginning
    /// and the end of sessions, and the diagnostics of the engine.
    ///
    /// # Errors
    /// The error of the operating system.
    pub fn serve_http(&self, port: u16) -> io::Result<()> {
        if self.smol { smol::serve_http(self, port) } else { blocking::serve_http(self, port) }
    }

    /// Returns the revisions with `initialize`.
    pub fn older() -> Versions {
        Versions::new(Versions::all().newest_first().filter(|version| version.era() == Era::Legacy))
    }

    /// Sets what differs from the defaults.
    fn configure(&self, config: &mut ServerConfig) {
        config.limits.server.page_size = PAGE;
        for capability in ["resources", "prompts"] {
            config.capabilities.other.set(capability, Object::new());
        }
        if let Some(versions) = &self.versions {
            config.versions = versions.clone();
        }
        if self.stateless {
            config.sessions = Sessions::Off;
        }
    }
}

/// Prints the address of a server.
fn listening(address: SocketAddr) {
    println!("LISTENING {address}");
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

#[derive(Deserialize)]
struct Read {
    uri: String,
}

/// Returns the results of the methods that the router serves raw, without the members that
/// 2026-07-28 adds.
fn resources() -> serde_json::Value {
    json!({ "resources": [{ "uri": "note://one", "name": "one" }] })
}

fn templates() -> serde_json::Value {
    json!({ "resourceTemplates": [{ "uriTemplate": "note://{name}", "name": "notes" }] })
}

fn resource(read: &Read) -> serde_json::Value {
    json!({ "contents": [{ "uri": read.uri, "text": "the first note" }] })
}

fn prompts() -> serde_json::Value {
    json!({ "prompts": [{ "name": "greeting" }] })
}

fn described(name: &str, what: &str, properties: serde_json::Value) -> Tool {
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

/// Returns the request of `sample` to a language model.
fn question() -> Vec<(String, InputRequest)> {
    let message = json!({ "role": "user", "content": { "type": "text", "text": "What is six times seven?" } });
    let params = Object::new().with("messages", RawJson::encode(&[message]).unwrap_or_else(|_| RawJson::null()));
    vec![("model".to_owned(), InputRequest::Sampling(params.with("maxTokens", 20_i64)))]
}

/// Returns its result.
fn said(answers: &[InputAnswer]) -> Result<String, ToolError> {
    #[derive(Deserialize)]
    struct Content {
        text: String,
    }
    match answers {
        [InputAnswer::Sampling(result)] => {
            Ok(format!("the model said: {}", result.required::<Content>("content")?.text))
        }
        other => Err(format!("no answer of a model: {other:?}").into()),
    }
}

/// Returns the request of `roots`.
fn whereabouts() -> Vec<(String, InputRequest)> {
    vec![("roots".to_owned(), InputRequest::Roots)]
}

/// Returns its result.
fn listed(answers: &[InputAnswer]) -> Result<String, ToolError> {
    #[derive(Deserialize)]
    struct Root {
        uri: String,
    }
    match answers {
        [InputAnswer::Roots(result)] => {
            let roots: Vec<Root> = result.required("roots")?;
            let uris: Vec<&str> = roots.iter().map(|root| root.uri.as_str()).collect();
            Ok(format!("roots: {}", uris.join(", ")))
        }
        other => Err(format!("no roots: {other:?}").into()),
    }
}
