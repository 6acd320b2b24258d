//! The server that the suite meets: [`tools`] says what it offers, an adapter adds how to listen, to wait and to return.

pub mod blocking;
pub mod smol;
pub mod tools;

use std::env;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use mcp_proto::input::Change;
use mcp_proto::{CallToolResult, Cx, Denied, Progress, Router, Tool, ToolError, WireMessage};

/// A tool: what a handler does on the way, and what it returns in the end. A handler of either adapter is made of it.
pub struct Fixture {
    /// What is listed.
    pub tool: Tool,
    /// What is done first, in this order.
    pub steps: Vec<Step>,
    /// What comes of it.
    pub end: fn(&Cx) -> Result<CallToolResult, ToolError>,
}

/// Something that a handler does before it returns.
#[derive(Clone, Debug)]
pub enum Step {
    /// Takes this long.
    Pause(Duration),
    /// Tells how far it is, if it was asked to.
    Progress(Progress),
    /// Ends the event stream of its request for now, where the client can come back.
    CloseStream,
    /// Tells every client that wants to know.
    Publish(Change),
}

/// What the program is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Where it serves.
    pub over: Over,
    /// Whether it writes every message to standard error.
    pub verbose: bool,
}

/// Where the program serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Over {
    /// Its standard input and output.
    Stdio,
    /// HTTP, at this address.
    Http(String),
}

/// Runs the program on an adapter, until it is ended or, over standard input, its client is gone.
pub fn run(serve: impl FnOnce(Options) -> io::Result<()>) -> ExitCode {
    let Some(options) = Options::read(env::args().skip(1)) else {
        eprintln!("usage: [--verbose] --http ADDR | --stdio");
        return ExitCode::from(2);
    };
    match serve(options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("failed: {why}");
            ExitCode::FAILURE
        }
    }
}

impl Options {
    fn read(mut words: impl Iterator<Item = String>) -> Option<Self> {
        let (mut over, mut verbose) = (None, false);
        while let Some(word) = words.next() {
            let told = match word.as_str() {
                "--verbose" => {
                    verbose = true;
                    continue;
                }
                "--stdio" => Over::Stdio,
                "--http" => Over::Http(words.next()?),
                _ => return None,
            };
            if over.replace(told).is_some() {
                return None;
            }
        }
        Some(Self { over: over?, verbose })
    }
}

impl Step {
    /// Does it, but for waiting: returns how long to.
    fn take(&self, cx: &Cx) -> Option<Duration> {
        // What is refused is of no use to this client, or has none any more: nothing is lost.
        let _ = match self {
            Self::Pause(time) => return Some(*time),
            Self::Progress(progress) => cx.progress(progress.clone()),
            Self::CloseStream => cx.close_stream(None),
            Self::Publish(change) => {
                cx.publish(*change);
                Ok(())
            }
        };
        None
    }
}

/// A router with every tool, each run by the handler that `handler` makes of it.
fn router<H>(handler: impl Fn(Vec<Step>, fn(&Cx) -> Result<CallToolResult, ToolError>) -> H) -> Router<H> {
    let router = Router::new("everything-server", env!("CARGO_PKG_VERSION"))
        .tools_change()
        // The suite sends answers with its first call (`input-required-result-ignore-extra-params`).
        .configure(|config| config.unasked_answers = true);
    let tools = tools::all().into_iter();
    tools.fold(router, |router, Fixture { tool, steps, end }| router.add(tool, handler(steps, end)))
}

/// Says where the server listens, once it does.
fn announce(address: SocketAddr) -> io::Result<()> {
    let mut output = io::stdout().lock();
    writeln!(output, "LISTENING {address}")?;
    output.flush()
}

/// Writes a message to standard error, its secrets masked.
fn tell(message: &WireMessage<'_>) -> Result<(), Denied> {
    eprintln!("{message:?}");
    Ok(())
}

#[cfg(test)]
mod tests;
