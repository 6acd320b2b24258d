//! A client for the suite, on either adapter: its input, its actions, and its end.

use std::future::ready;
use std::process::{ExitCode, exit};
use std::time::Duration;
use std::{env, thread};

use mcp_driver::ClientOptions;
use mcp_proto::client::{ClientConfig, Policy};
use mcp_proto::model::sampling::SampleResult;
use mcp_proto::skills::Held;
use mcp_proto::{
    Call, ElicitResult, Era, Form, Implementation, Object, ProtocolVersion, RawJson, Skill, Tool, Versions, custom,
    skills, tools,
};
use serde_json::Value;

use super::plan::{Plan, Step, plan};
use crate::adapters::{Adapter, Client};

/// A root that the client declares.
const ROOT: &str = "file:///conformance";
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

/// Carries out the plan, with the arguments of the program. Returns the exit code, and writes the
/// traffic to standard error.
pub fn run(adapter: Adapter, args: Vec<String>) -> ExitCode {
    thread::spawn(|| {
        thread::sleep(WATCHDOG);
        eprintln!("not done after {} s", WATCHDOG.as_secs());
        exit(1);
    });
    match Task::told(args).and_then(|task| task.perform(adapter)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("failed: {why}");
            ExitCode::FAILURE
        }
    }
}

impl Task {
    /// Reads the environment and the arguments.
    fn told(mut words: Vec<String>) -> Result<Self, String> {
        let told = |name: &str| env::var(name).map_err(|why| format!("{name}: {why}"));
        let scenario = told("MCP_CONFORMANCE_SCENARIO")?;
        let revision = told("MCP_CONFORMANCE_PROTOCOL_VERSION")?;
        let revision = ProtocolVersion::parse(&revision).ok_or_else(|| format!("an unknown revision: {revision}"))?;
        let context = env::var("MCP_CONFORMANCE_CONTEXT").ok().map(|text| serde_json::from_str::<Value>(&text));
        let context = context.transpose().map_err(|why| format!("the context: {why}"))?;
        let url = words.pop().ok_or("no URL")?;
        let fixed = words.iter().any(|word| word == "--fixed");
        Ok(Self { url, revision, fixed, plan: plan(&scenario, context.as_ref())? })
    }

    /// Configures the client.
    fn configure(&self, config: &mut ClientConfig) {
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

    fn connect(&self, adapter: Adapter) -> Result<Client, String> {
        let (settings, form) = (self.clone(), self.plan.form.clone());
        let options = ClientOptions::new()
            .set(move |config| settings.configure(config))
            .roots([ROOT])
            .on_event(|event| eprintln!("{event:?}"))
            .on_message(|message| {
                eprintln!("{message:?}");
                Ok(())
            });
        let options = match &self.plan.login {
            Some(login) => options.oauth(login.options(&self.url)?),
            None => options,
        };
        let options = match adapter {
            Adapter::Blocking => options.on_elicit(move |question| fill(&form, &question)).on_sample(|_| Ok(model())),
            Adapter::Smol => {
                options.on_elicit(move |question| ready(fill(&form, &question))).on_sample(|_| ready(Ok(model())))
            }
        };
        adapter.connect(self.url.as_str(), options).map_err(|why| why.to_string())
    }

    fn perform(&self, adapter: Adapter) -> Result<(), String> {
        let client = self.connect(adapter)?;
        let agreed = client.server().map(|server| server.version).ok_or("agreed on nothing")?;
        // A server of an older revision speaks the later ones with `initialize` too.
        let may_be_later = !self.fixed && self.revision < ProtocolVersion::V2025_11_25;
        let is_agreed = agreed == self.revision || (may_be_later && agreed.era() == self.revision.era());
        if !is_agreed && (self.fixed || !self.plan.both_eras) {
            return Err(format!("agreed on {agreed} in place of {}", self.revision));
        }
        let mut listed = Vec::new();
        for step in &self.plan.steps {
            step.take(&client, &mut listed).map_err(|why| format!("{step:?}: {why}"))?;
        }
        client.close().map(drop)
    }
}

impl Step {
    fn take(&self, client: &Client, listed: &mut Vec<Tool>) -> Result<(), String> {
        match self {
            Self::List => *listed = client.all(tools::list()).map_err(|why| why.to_string())?,
            Self::Call(calls) => {
                call(client, calls.iter().map(|(name, arguments)| tools::call(name).arguments(arguments)).collect())?;
            }
            Self::CallListed(arguments) => {
                for tool in listed.iter() {
                    call(client, vec![tools::call(&tool.name).arguments(arguments)])?;
                }
            }
            Self::Echo { of, to, argument } => {
                let tool = listed.iter().find(|tool| tool.name == *of).ok_or("the tool is not listed")?;
                let arguments: RawJson = Object::new().with(argument, tool.input_schema.clone()).into();
                call(client, vec![tools::call(to).param("arguments", Ok(arguments))])?;
            }
            Self::ListSkills => drop(list_skills(client)?),
            Self::LoadSkills => list_skills(client)?.into_iter().try_for_each(|skill| load(client, skill))?,
            Self::Ask(method, params) => {
                let result = client.call(custom::<Value>(*method, params).repeatable());
                result.map_err(|why| why.to_string())?;
            }
        }
        Ok(())
    }
}

/// Makes these calls at once, and waits for all of them. A failed tool is a failure.
fn call(client: &Client, calls: Vec<Call<tools::CallTool>>) -> Result<(), String> {
    let begun: Vec<_> = calls.into_iter().map(|call| client.start(call)).collect();
    let results: Result<Vec<_>, _> = begun.into_iter().map(|call| call.wait()).collect();
    match results.map_err(|why| why.to_string())?.iter().find(|result| result.is_error) {
        None => Ok(()),
        Some(result) => Err(format!("the tool failed: {:?}", result.first_text())),
    }
}

fn list_skills(client: &Client) -> Result<Vec<Skill>, String> {
    let server = client.server().ok_or("agreed on nothing")?;
    let list = skills::list(&server).map_err(|why| why.to_string())?;
    client.all(list).map_err(|why| why.to_string())
}

/// Loads a skill. One that is refused is left.
fn load(client: &Client, skill: Skill) -> Result<(), String> {
    let held = Held::new("conformance", skill).map_err(|why| why.to_string())?;
    let uri = &held.skill().uri;
    if let Err(why) = client.read_skill(&held, uri) {
        eprintln!("refused: {why}");
        return Ok(());
    }
    let mut others = held.skill().files().iter().filter(|file| file.uri != *uri);
    others.try_for_each(|file| client.read_skill(&held, &file.uri).map(drop).map_err(|why| why.to_string()))
}

/// Returns the user's response to a form: the entered values of the fields that the form has, and
/// the defaults of the others.
pub fn fill(entered: &Value, question: &Form) -> ElicitResult {
    let Ok(fields) = question.fields() else { return ElicitResult::Decline };
    let mut content = Object::new();
    for field in fields {
        let value = entered.get(&field.name).and_then(|value| RawJson::parse(value.to_string()).ok());
        if let Some(value) = value {
            content.set(&field.name, value);
        }
    }
    ElicitResult::accept(&question.fill(content))
}

/// Returns the response of the language model to any request.
fn model() -> SampleResult {
    SampleResult::text("none", "forty-two")
}
