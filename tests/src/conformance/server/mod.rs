//! The server for the suite, on either adapter. [`tools`] has its tools, and [`offers`] everything
//! else that it offers.

pub mod offers;
pub mod tasks;
pub mod tools;

use std::env;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::thread::sleep;
use std::time::Duration;

use crate::adapters::Adapter;
use crate::exit_code;
use mcp_driver::ServerOptions;
use mcp_proto::input::Change;
use mcp_proto::model::tasks::TaskOptions;
use mcp_proto::{
    CallToolResult, Cx, Denial, Handler, LogLevel, Progress, Refusal, Router, Tool, ToolError, WireMessage,
};

/// A tool: the steps of its handler, and its result. It is converted to a handler of either
/// adapter.
pub struct Fixture {
    /// The listed tool.
    pub tool: Tool,
    /// The steps before the result, in order.
    pub steps: Vec<Step>,
    /// Returns the result.
    pub end: End,
}

/// A step of a handler before its result.
#[derive(Clone, Debug)]
pub enum Step {
    /// Waits for this time.
    Pause(Duration),
    /// Waits for as many seconds as the arguments say.
    PauseOf(fn(&Cx) -> f64),
    /// Makes a task of its request, if the client has tasks.
    IntoTask,
    /// Reports progress, if the client requested it.
    Progress(Progress),
    /// Ends the event stream of its request for now, if the client can resume it.
    CloseStream,
    /// Notifies the clients that subscribed to a change.
    Publish(Change),
    /// Sends a log message of this text, if the client wants it.
    Log(&'static str),
}

/// The options of the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The transport.
    pub over: Over,
    /// Whether it writes every message to standard error.
    pub verbose: bool,
}

/// The transport of the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Over {
    /// Its standard input and output.
    Stdio,
    /// HTTP, at this address.
    Http(String),
}

/// Runs the program on an adapter, until it is killed or, over standard input, its client has
/// disconnected.
pub fn run(adapter: Adapter, args: Vec<String>) -> ExitCode {
    let Some(options) = Options::read(args.into_iter()) else {
        eprintln!("usage: [--verbose] --http ADDR | --stdio");
        return ExitCode::from(2);
    };
    exit_code("failed", options.serve(adapter).map(|()| true))
}

impl Options {
    /// Reads the arguments of the program. `None` if they are wrong.
    pub fn read(mut words: impl Iterator<Item = String>) -> Option<Self> {
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

    fn serve(self, adapter: Adapter) -> io::Result<()> {
        let router = router(match adapter {
            Adapter::Blocking => on_a_thread,
            Adapter::Smol => in_a_task,
        });
        let callbacks = ServerOptions::new();
        let callbacks = if self.verbose { callbacks.on_message(tell) } else { callbacks };
        match self.over {
            Over::Stdio => adapter.serve_stdio((router, callbacks)),
            Over::Http(address) => {
                let server = adapter.serve_http((router, callbacks), address)?;
                announce(server.address())?;
                server.wait();
                Ok(())
            }
        }
    }
}

impl Step {
    /// Carries out the step, except for waiting. Returns how long to wait.
    fn take(&self, cx: &Cx) -> Option<Duration> {
        // A refusal is harmless: the step is of no use to this client, or it has disconnected.
        let _ = match self {
            Self::Pause(time) => return Some(*time),
            Self::PauseOf(seconds) => return Duration::try_from_secs_f64(seconds(cx)).ok(),
            Self::IntoTask => cx.into_task(TaskOptions::new()).map(drop).map_err(|_| Refusal::Gone),
            Self::Progress(progress) => cx.progress(progress.clone()),
            Self::CloseStream => cx.close_stream(None),
            Self::Log(text) => cx.log(LogLevel::Info, None, *text),
            Self::Publish(change) => {
                cx.publish(change.clone());
                Ok(())
            }
        };
        None
    }
}

/// Returns the result of a tool.
pub type End = fn(&Cx) -> Result<CallToolResult, ToolError>;

fn on_a_thread(steps: Vec<Step>, end: End) -> Handler {
    Handler::sync(move |cx| {
        steps.iter().filter_map(|step| step.take(cx)).for_each(sleep);
        cx.outcome(end(cx))
    })
}

fn in_a_task(steps: Vec<Step>, end: End) -> Handler {
    let steps = Arc::new(steps);
    Handler::future(move |cx| {
        let steps = Arc::clone(&steps);
        async move {
            for pause in steps.iter().filter_map(|step| step.take(&cx)) {
                smol::Timer::after(pause).await;
            }
            cx.outcome(end(&cx))
        }
    })
}

/// Creates a router with everything. `handler` creates the handlers of tools.
pub fn router(handler: fn(Vec<Step>, End) -> Handler) -> Router {
    let router = Router::new("everything-server", env!("CARGO_PKG_VERSION"))
        .tools_change()
        .prompts_change()
        .watchable()
        .logging()
        // The suite sends answers with its first call
        // (`input-required-result-ignore-extra-params`).
        .configure(|config| config.compat.unasked_answers = true);
    let tools = tools::all().into_iter().chain(tasks::all());
    offers::offer(tools.fold(router, |router, Fixture { tool, steps, end }| router.add(tool, handler(steps, end))))
}

/// Prints the address of the server once it listens.
fn announce(address: SocketAddr) -> io::Result<()> {
    let mut output = io::stdout().lock();
    writeln!(output, "LISTENING {address}")?;
    output.flush()
}

/// Writes a message to standard error, redacted.
fn tell(message: &WireMessage<'_>) -> Result<(), Denial> {
    eprintln!("{message:?}");
    Ok(())
}
