//! A client for the suite: its input, its actions, and its end. An adapter adds how to connect and
//! to wait.

use std::process::{ExitCode, exit};
use std::time::Duration;
use std::{env, thread};

use mcp_proto::call::Custom;
use mcp_proto::client::{ClientConfig, Policy};
use mcp_proto::{
    Call, CallToolResult, ElicitRequest, ElicitResult, Era, Implementation, Object, ProtocolVersion, RawJson, Tool,
    Versions, custom, tools,
};
use serde_json::Value;

use super::plan::{Plan, Step, plan};

/// A root that the client declares.
pub const ROOT: &str = "file:///conformance";
/// Time after which the program exits by itself: the suite stops only the shell that started it,
/// and waits for its output to close.
const WATCHDOG: Duration = Duration::from_secs(25);
/// Maximum time of a call, so that the client reports what hangs, and not the watchdog.
const CALL: Duration = Duration::from_secs(20);

/// The input of the program.
#[derive(Clone, Debug)]
pub struct Task {
    /// The URL of its server.
    pub url: String,
    /// The revision of the server.
    pub revision: ProtocolVersion,
    /// Whether the client gets the era and the revision instead of negotiating.
    pub fixed: bool,
    /// The actions.
    pub plan: Plan,
}

/// A connected client.
pub trait Session {
    /// Returns the negotiated revision.
    fn revision(&self) -> Option<ProtocolVersion>;

    /// Returns all tools.
    ///
    /// # Errors
    /// The failure.
    fn tools(&mut self) -> Result<Vec<Tool>, String>;

    /// Makes these calls at once, and waits for all of them.
    ///
    /// # Errors
    /// The failure.
    fn calls(&mut self, calls: Vec<Call<tools::CallTool>>) -> Result<Vec<CallToolResult>, String>;

    /// Makes a request of any method.
    ///
    /// # Errors
    /// The failure.
    fn ask(&mut self, call: Call<Custom<Value>>) -> Result<Value, String>;

    /// Closes the client in order.
    ///
    /// # Errors
    /// What remains.
    fn close(self: Box<Self>) -> Result<(), String>;
}

/// Carries out the plan. Returns the exit code, and writes the traffic to standard error.
pub fn run(connect: impl FnOnce(&Task) -> Result<Box<dyn Session>, String>) -> ExitCode {
    thread::spawn(|| {
        thread::sleep(WATCHDOG);
        eprintln!("not done after {} s", WATCHDOG.as_secs());
        exit(1);
    });
    match Task::told().and_then(|task| task.perform(connect)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("failed: {why}");
            ExitCode::FAILURE
        }
    }
}

impl Task {
    /// Reads the environment and the arguments.
    fn told() -> Result<Self, String> {
        let told = |name: &str| env::var(name).map_err(|why| format!("{name}: {why}"));
        let scenario = told("MCP_CONFORMANCE_SCENARIO")?;
        let revision = told("MCP_CONFORMANCE_PROTOCOL_VERSION")?;
        let revision = ProtocolVersion::parse(&revision).ok_or_else(|| format!("an unknown revision: {revision}"))?;
        let context = env::var("MCP_CONFORMANCE_CONTEXT").ok().map(|text| serde_json::from_str::<Value>(&text));
        let context = context.transpose().map_err(|why| format!("the context: {why}"))?;
        let mut words: Vec<String> = env::args().skip(1).collect();
        let url = words.pop().ok_or("no URL")?;
        let fixed = words.iter().any(|word| word == "--fixed");
        Ok(Self { url, revision, fixed, plan: plan(&scenario, context.as_ref())? })
    }

    /// Configures the client.
    pub fn configure(&self, config: &mut ClientConfig) {
        config.info = Implementation::new("conformance-client", env!("CARGO_PKG_VERSION"));
        config.timeout = Some(CALL);
        if self.fixed {
            config.versions = Versions::new([self.revision]);
            config.policy = match self.revision.era() {
                Era::Legacy => Policy::Legacy,
                Era::Modern => Policy::Modern,
            };
        }
    }

    fn perform(&self, connect: impl FnOnce(&Self) -> Result<Box<dyn Session>, String>) -> Result<(), String> {
        let mut session = connect(self)?;
        if session.revision() != Some(self.revision) {
            return Err(format!("agreed on {:?} in place of {}", session.revision(), self.revision));
        }
        let mut listed = Vec::new();
        for step in &self.plan.steps {
            step.take(session.as_mut(), &mut listed).map_err(|why| format!("{step:?}: {why}"))?;
        }
        session.close()
    }
}

impl Step {
    fn take(&self, session: &mut dyn Session, listed: &mut Vec<Tool>) -> Result<(), String> {
        match self {
            Self::List => *listed = session.tools()?,
            Self::Call(calls) => {
                call(session, calls.iter().map(|(name, arguments)| tools::call(name).arguments(arguments)).collect())?;
            }
            Self::CallListed(arguments) => {
                for tool in listed.iter() {
                    call(session, vec![tools::call(&tool.name).arguments(arguments)])?;
                }
            }
            Self::Echo { of, to, argument } => {
                let tool = listed.iter().find(|tool| tool.name == *of).ok_or("the tool is not listed")?;
                let arguments: RawJson = Object::new().with(argument, tool.input_schema.clone()).into();
                call(session, vec![tools::call(to).param("arguments", Ok(arguments))])?;
            }
            Self::Ask(method, params) => {
                session.ask(custom(*method, params).repeatable())?;
            }
        }
        Ok(())
    }
}

/// Makes these calls. A failed tool is a failure.
fn call(session: &mut dyn Session, calls: Vec<Call<tools::CallTool>>) -> Result<(), String> {
    let results = session.calls(calls)?;
    match results.iter().find(|result| result.is_error) {
        None => Ok(()),
        Some(result) => Err(format!("the tool failed: {:?}", result.first_text())),
    }
}

/// Returns the user's response to a form: the entered values of the fields that the form has, and
/// the defaults of the others.
pub fn fill(entered: &Value, question: &ElicitRequest) -> ElicitResult {
    let Ok(fields) = question.fields() else { return ElicitResult::Decline };
    let mut content = Object::new();
    for field in fields {
        let value = entered.get(&field.name).and_then(|value| RawJson::parse(value.to_string()).ok());
        if let Some(value) = value {
            content.set(&field.name, value);
        }
    }
    ElicitResult::accept(question, content)
}

/// Returns the response of the language model to any request.
pub fn model() -> Object {
    let text = Object::new().with("type", "text").with("text", "forty-two");
    Object::new().with("role", "assistant").with("model", "none").with("content", text)
}
