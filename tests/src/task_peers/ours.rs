//! Our server and our clients.

use mcp_driver::{ClientOptions, ConnectError};
use mcp_proto::client::Policy;
use mcp_proto::tasks::Detached;
use mcp_proto::{Cx, ElicitResult, Form, Object, Router, TaskOptions, TaskSupport, ToolError, tool, tools};
use std::io::Write as _;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use std::{io, thread};

use crate::adapters::{Adapter, AnyTarget, Client};

/// The word for the program that is a server over standard input and output.
pub const SERVER: &str = "task-server";
/// The word for the program that leaves a task behind.
pub const CLIENT: &str = "task-client";

/// How often clients ask for the state.
const POLL: Duration = Duration::from_millis(50);

#[derive(serde::Deserialize)]
struct Nothing {}

/// Becomes a task, asks for a name in it, and greets.
async fn greet(cx: Cx) -> Result<String, ToolError> {
    let is_task = cx.into_task(TaskOptions::new().poll(POLL))?;
    // An error means that it is none.
    let _ = cx.status("half");
    let name: Option<String> = match cx.elicit("name", Form::new("Who?").text("name"))? {
        ElicitResult::Accept(content) => content.optional("name")?,
        ElicitResult::Decline | ElicitResult::Cancel => None,
    };
    Ok(format!("hello {}, {is_task}", name.unwrap_or_default()))
}

/// A server with a tool that asks, and one that runs until it is cancelled. `sees` gets true when a
/// call of that begins, and false when it ends.
pub fn router(adapter: Adapter, sees: impl Fn(bool) + Send + Sync + 'static) -> Router {
    let long = |name: &str| tool(name).task(TaskSupport::Optional);
    let router = adapter.add_tool(Router::new("tasks", "1"), long("greet"), |cx, _: Nothing| greet(cx));
    router.tool(long("forever").at_once(), move |cx, _: Nothing| {
        sees(true);
        while !cx.is_cancelled() {
            thread::sleep(Duration::from_millis(1));
        }
        sees(false);
        Ok("too late")
    })
}

/// Serves it over standard input and output.
pub fn serve(adapter: Adapter) -> ExitCode {
    match adapter.serve_stdio(router(adapter, |_| ())) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// A client whose user is called Ada. Counts the questions.
///
/// # Errors
/// Why it cannot connect.
pub fn connect(
    adapter: Adapter,
    target: impl AnyTarget,
    policy: Policy,
    asked: &Arc<AtomicUsize>,
) -> Result<Client, ConnectError> {
    let asked = Arc::clone(asked);
    let options = ClientOptions::new().tasks().set(move |config| config.policy = policy);
    let options = options.on_elicit(move |_| {
        asked.fetch_add(1, Ordering::Relaxed);
        ElicitResult::accept(&Object::new().with("name", "Ada"))
    });
    adapter.connect(target, options)
}

/// Begins a task at this URL, prints its handle, and waits to be killed.
pub fn client(adapter: Adapter, args: &[String]) -> ExitCode {
    let [url] = args else {
        eprintln!("usage: {CLIENT} blocking|smol URL");
        return ExitCode::from(2);
    };
    let begin = || {
        let client = connect(adapter, url.as_str(), Policy::Modern, &Arc::default()).map_err(|why| why.to_string())?;
        let call = tools::call("greet").arguments(&Object::new()).detach();
        match client.call(call).map_err(|why| why.to_string())? {
            Detached::Task(handle) => Ok((client, handle)),
            Detached::Result(result) => Err(format!("it is no task: {result:?}")),
        }
    };
    match begin() {
        Ok((_client, handle)) => {
            println!("{}", handle.to_json().as_str());
            let _ = io::stdout().flush();
            loop {
                thread::park();
            }
        }
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}
