//! Our server, as other peoples' clients meet it: every kind of tool, in both adapters. Every server of this folder's table that this
//! project starts on another SDK offers the same tools, so that one list of steps fits all.

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

/// So many tools a page: the list takes four.
const PAGE: usize = 3;
/// How often a tool that waits looks again.
const LOOK: Duration = Duration::from_millis(10);
/// How long `cancelled` waits, in looks.
const LOOKS: usize = 500;
/// When a client is to come back for the rest of a stream.
const RETRY: Duration = Duration::from_millis(50);
/// How long `poll` goes on while its stream is closed: the client comes back meanwhile.
const AWAY: Duration = Duration::from_millis(300);

/// What is to be served.
#[derive(Clone, Debug, Default)]
pub struct Offer {
    /// With the adapter for smol, not with threads.
    pub smol: bool,
    /// In these revisions; without, in all.
    pub versions: Option<Versions>,
    /// Without sessions over HTTP.
    pub stateless: bool,
}

impl Offer {
    /// Serves standard input and output until the client is gone. Both the beginning and the orderly end are told in the file `report`, as
    /// lines `started PID` and `ended PID`: a client hides how its server ended.
    ///
    /// # Errors
    /// What the operating system says.
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

    /// Serves a port of loopback over HTTP (0: any that is free) for ever. Lines on standard output tell where it listens, which sessions
    /// begin and end, and what the engine complains of.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn serve_http(&self, port: u16) -> io::Result<()> {
        if self.smol { smol::serve_http(self, port) } else { blocking::serve_http(self, port) }
    }

    /// Only the revisions with `initialize`.
    pub fn older() -> Versions {
        Versions::new(Versions::all().newest_first().filter(|version| version.era() == Era::Legacy))
    }

    /// What differs from the defaults.
    fn configure(&self, config: &mut ServerConfig) {
        config.limits.server.page_size = PAGE;
        for capability in ["resources", "prompts"] {
            config.capabilities.other.set(capability, Object::new().into());
        }
        if let Some(versions) = &self.versions {
            config.versions = versions.clone();
        }
        if self.stateless {
            config.sessions = Sessions::Off;
        }
    }
}

/// Tells where a server listens.
fn listening(address: SocketAddr) {
    println!("LISTENING {address}");
}

/// Tells what a server says of its clients.
fn tell(event: &Event) {
    match event {
        Event::SessionOpened(_) => println!("session opened"),
        Event::SessionEnded(_, why) => println!("session ended: {why:?}"),
        Event::Diagnostic(diagnostic) => println!("diagnostic {diagnostic}"),
        _ => {}
    }
}

/// Ends the stream of a call for now, where its client can come back for the rest; otherwise `false`.
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

/// What the methods return that the router serves raw, without the members that 2026-07-28 adds.
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

/// What `sample` asks a language model.
fn question() -> Vec<(String, InputRequest)> {
    let message = json!({ "role": "user", "content": { "type": "text", "text": "What is six times seven?" } });
    let params = Object::new().with("messages", RawJson::encode(&[message]).unwrap_or_else(|_| RawJson::null()));
    vec![("model".to_owned(), InputRequest::Sampling(params.with("maxTokens", 20_i64)))]
}

/// What came of it.
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

/// What `roots` asks.
fn whereabouts() -> Vec<(String, InputRequest)> {
    vec![("roots".to_owned(), InputRequest::Roots)]
}

/// What came of it.
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
