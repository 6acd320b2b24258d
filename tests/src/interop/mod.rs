//! Other peoples' servers: how they are installed, started, and what they must answer.
//!
//! `tests/interop` holds exact versions. They are installed below the target folder, once for each content of the lock file; what cannot be
//! installed is a failure, never a reason to skip.

pub mod blocking;
pub mod smol;

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use std::{env, fs};

use mcp_proto::client::Policy;
use mcp_proto::{CallToolResult, Object};
use serde_json::{Value, json};

use crate::sources;

/// How long a call runs before it is cancelled, so that the server has begun it. What it would take by itself is far more.
const BEFORE_CANCEL: Duration = Duration::from_millis(200);

/// A server that this project did not write.
#[derive(Clone, Debug)]
pub struct Peer {
    /// What it is called in the table.
    pub name: &'static str,
    /// The program and its arguments.
    pub command: Vec<OsString>,
    /// The policies it can be reached with, and the revision that each leads to.
    pub reached: &'static [(Policy, &'static str)],
    /// Names of tools that it must list.
    pub tools: &'static [&'static str],
    /// What to call and what comes back.
    pub steps: Vec<Step>,
}

/// One call and what must come of it.
#[derive(Clone, Debug)]
pub struct Step {
    /// The tool.
    pub tool: &'static str,
    /// Its arguments.
    pub arguments: Value,
    /// What is expected.
    pub expect: Expect,
}

/// What must come of a call.
#[derive(Clone, Debug, PartialEq)]
pub enum Expect {
    /// A success whose text contains this.
    Text(&'static str),
    /// A success whose text contains this, after so many progress notifications.
    Progress(usize, &'static str),
    /// A question; a form is accepted with this content, or declined; then a success whose text contains this.
    Question(Option<Value>, &'static str),
    /// A tool error whose text contains this.
    ToolError(&'static str),
    /// Nothing until it is cancelled; then the call ends as cancelled, and the connection still works.
    Cancel,
}

/// What a call returned.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// The texts of the result, joined by line feeds.
    pub text: String,
    /// Whether the tool failed.
    pub is_error: bool,
    /// The progress values in the order they came.
    pub progress: Vec<f64>,
    /// How many questions were asked.
    pub questions: usize,
}

impl Peer {
    /// What starts it.
    pub fn command(&self) -> Command {
        let (program, arguments) = self.command.split_first().expect("invariant: every peer has a program");
        let mut command = Command::new(program);
        command.args(arguments);
        command
    }
}

impl Answer {
    fn new(result: &CallToolResult, progress: Vec<f64>, questions: usize) -> Self {
        let texts: Vec<&str> = result.content.iter().filter_map(|block| block.as_text()).collect();
        Self { text: texts.join("\n"), is_error: result.is_error, progress, questions }
    }
}

/// A client of one adapter, connected to a peer. The program runs the same steps with each.
pub trait Session {
    /// The revision in use.
    fn revision(&self) -> String;
    /// The names of all tools, through all pages.
    fn tools(&mut self) -> Result<Vec<String>, String>;
    /// Calls a tool and listens to progress. A question is accepted with `form`, or declined without one.
    fn call(&mut self, tool: &str, arguments: &Value, form: Option<&Value>) -> Result<Answer, String>;
    /// Calls a tool, cancels the call, and waits for its end. `Ok` only if it ended as cancelled.
    fn cancel(&mut self, tool: &str, arguments: &Value) -> Result<(), String>;
    /// Ends the session. `Ok` only if the process is gone.
    fn close(self: Box<Self>) -> Result<(), String>;
}

/// What a session's callback for questions shares with its calls.
#[derive(Default)]
struct Asked {
    count: usize,
    /// What to answer; none declines.
    form: Option<Object>,
}

/// How an adapter reaches a peer.
pub type Connect = fn(&Peer, Policy) -> Result<Box<dyn Session>, String>;

/// Runs one peer with one policy over one adapter. Every line is one thing checked.
pub fn run(peer: &Peer, (policy, revision): (Policy, &str), connect: Connect) -> Vec<Result<String, String>> {
    let mut session = match connect(peer, policy) {
        Ok(session) => session,
        Err(why) => return vec![Err(format!("connect: {why}"))],
    };
    let got = session.revision();
    let mut lines =
        vec![if got == revision { Ok(format!("speaks {got}")) } else { Err(format!("speaks {got}, not {revision}")) }];
    lines.push(session.tools().and_then(|names| {
        match peer.tools.iter().find(|tool| !names.iter().any(|name| name == *tool)) {
            None => Ok(format!("lists {} tools", names.len())),
            Some(tool) => Err(format!("does not list {tool}")),
        }
    }));
    for step in &peer.steps {
        let checked = step.check(session.as_mut());
        lines.push(checked.map(|what| format!("{}: {what}", step.tool)).map_err(|why| format!("{}: {why}", step.tool)));
    }
    lines.push(session.close().map(|()| "closes".to_owned()).map_err(|why| format!("close: {why}")));
    lines
}

impl Step {
    /// Says what came of it.
    fn check(&self, session: &mut dyn Session) -> Result<String, String> {
        let (form, text, is_error, progress, questions) = match &self.expect {
            Expect::Text(text) => (None, text, false, 0, 0),
            Expect::Progress(count, text) => (None, text, false, *count, 0),
            Expect::Question(form, text) => (form.as_ref(), text, false, 0, 1),
            Expect::ToolError(text) => (None, text, true, 0, 0),
            Expect::Cancel => return session.cancel(self.tool, &self.arguments).map(|()| "cancelled".to_owned()),
        };
        let answer = session.call(self.tool, &self.arguments, form)?;
        let rising = answer.progress.windows(2).all(|pair| pair[0] < pair[1]);
        let same = (answer.is_error, answer.progress.len(), answer.questions) == (is_error, progress, questions);
        if !same || !rising || !answer.text.contains(text) {
            return Err(format!("{answer:?}, expected {:?}", self.expect));
        }
        Ok(match (is_error, progress, questions) {
            (true, ..) => format!("fails with {text:?}"),
            (_, 0, 0) => format!("{text:?}"),
            (_, 0, _) => format!("asks, then {text:?}"),
            (_, count, _) => format!("{count} steps, then {text:?}"),
        })
    }
}

/// Installs what is missing and hands back the peers.
pub fn peers() -> Result<Vec<Peer>, String> {
    let (node, python) = (install_node()?, install_python()?);
    let step = |tool, arguments, expect| Step { tool, arguments, expect };
    let everything = Peer {
        name: "server-everything 2026.8.31 (Node)",
        command: vec![node.0, node.1.into(), "stdio".into()],
        reached: &[(Policy::Auto, "2025-11-25"), (Policy::Legacy, "2025-11-25")],
        tools: &["echo", "get-sum", "trigger-long-running-operation", "trigger-elicitation-request"],
        steps: vec![
            step(
                "echo",
                json!({ "message": "gr\u{fc}\u{df} dich \u{2028} \u{1f600}" }),
                Expect::Text("Echo: gr\u{fc}\u{df} dich \u{2028} \u{1f600}"),
            ),
            step("get-sum", json!({ "a": 2, "b": 3 }), Expect::Text("The sum of 2 and 3 is 5.")),
            step(
                "trigger-long-running-operation",
                json!({ "duration": 0.4, "steps": 4 }),
                Expect::Progress(4, "Steps: 4"),
            ),
            step(
                "trigger-elicitation-request",
                json!({}),
                Expect::Question(Some(json!({ "name": "Ann" })), "- Name: Ann"),
            ),
            step("trigger-elicitation-request", json!({}), Expect::Question(None, "declined")),
            step("no-such-tool", json!({}), Expect::ToolError("not found")),
            step("trigger-long-running-operation", json!({ "duration": 60, "steps": 1 }), Expect::Cancel),
            step("get-sum", json!({ "a": 20, "b": 3 }), Expect::Text("is 23.")),
        ],
    };
    let sdk = Peer {
        name: "mcp 2.3.0 (Python)",
        command: vec![python.into(), sources::root().join("tests/interop/python/server.py").into()],
        reached: &[(Policy::Auto, "2026-07-28"), (Policy::Modern, "2026-07-28"), (Policy::Legacy, "2025-11-25")],
        tools: &["add", "count", "greet", "wait", "fail"],
        steps: vec![
            step("add", json!({ "a": 2, "b": 3 }), Expect::Text("5")),
            step("count", json!({ "steps": 3 }), Expect::Progress(3, "counted to 3")),
            step("greet", json!({}), Expect::Question(Some(json!({ "name": "Ann" })), "hello Ann")),
            step("greet", json!({}), Expect::Question(None, "no name: decline")),
            step("fail", json!({}), Expect::ToolError("fail")),
            step("no-such-tool", json!({}), Expect::ToolError("Unknown tool")),
            step("wait", json!({}), Expect::Cancel),
            step("add", json!({ "a": 20, "b": 3 }), Expect::Text("23")),
        ],
    };
    Ok(vec![everything, sdk])
}

/// The program that runs it, and the file of the server.
fn install_node() -> Result<(OsString, PathBuf), String> {
    let node = env::var_os("NODE").unwrap_or_else(|| "node".into());
    let place = place("node");
    let from = sources::root().join("tests/interop/node");
    install(&place, &from.join("package-lock.json"), || {
        for file in ["package.json", "package-lock.json", ".npmrc"] {
            fs::copy(from.join(file), place.join(file)).map_err(|why| format!("{file}: {why}"))?;
        }
        execute(Command::new("npm").args(["ci", "--ignore-scripts", "--loglevel=error"]).current_dir(&place))
    })?;
    Ok((node, place.join("node_modules/@modelcontextprotocol/server-everything/dist/index.js")))
}

/// The interpreter that has the packages.
fn install_python() -> Result<PathBuf, String> {
    let system = env::var_os("PYTHON").unwrap_or_else(|| "python3".into());
    let place = place("python");
    let python = place.join("venv/bin/python");
    let list = sources::root().join("tests/interop/python/requirements.txt");
    install(&place, &list, || {
        execute(Command::new(&system).args([OsStr::new("-m"), OsStr::new("venv"), place.join("venv").as_os_str()]))?;
        let options = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "-r"];
        execute(Command::new(&python).args(options).arg(&list))
    })?;
    Ok(python)
}

fn place(name: &str) -> PathBuf {
    let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| sources::root().join("target"), PathBuf::from);
    target.join("interop").join(name)
}

/// Runs `steps` in a fresh folder unless it was done before for the same list. The mark is written last, so what broke off is done again.
fn install(place: &Path, list: &Path, steps: impl FnOnce() -> Result<(), String>) -> Result<(), String> {
    let told = |why: std::io::Error| format!("{}: {why}", place.display());
    let wanted = fs::read(list).map_err(|why| format!("{}: {why}", list.display()))?;
    let mark = place.join("installed");
    if fs::read(&mark).ok().as_ref() == Some(&wanted) {
        return Ok(());
    }
    if place.exists() {
        fs::remove_dir_all(place).map_err(told)?;
    }
    fs::create_dir_all(place).map_err(told)?;
    steps()?;
    fs::write(mark, wanted).map_err(told)
}

fn execute(command: &mut Command) -> Result<(), String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output().map_err(|why| format!("{name}: {why}"))?;
    if output.status.success() {
        return Ok(());
    }
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Err(format!("{command:?}: {}\n{}{}", output.status, text(&output.stdout), text(&output.stderr)))
}
