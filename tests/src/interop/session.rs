//! Our client, on either adapter.

use std::future::ready;
use std::sync::Arc;
use std::time::Duration;

use mcp_driver::{ClientOptions, ConnectError};
use mcp_proto::client::{Cache, ResultValidation, Verdict};
use mcp_proto::process::Stderr;
use mcp_proto::{CallError, LogLevel, Watch, ping, schema, tools};
use serde_json::Value;

use super::ear::Ear;
use super::servers::{MODERN, versions};
use super::{Answer, BEFORE_CANCEL, EXIT, Place, Plan, SOON};
use crate::adapters::{Adapter, Client};

/// A client that is connected to a peer.
pub struct Session {
    client: Client,
    ear: Ear,
    is_web: bool,
}

impl Session {
    /// Connects to a server.
    ///
    /// # Errors
    /// Why it cannot connect.
    pub fn connect(adapter: Adapter, plan: Plan<'_>) -> Result<Self, String> {
        let ear = Ear::new(&plan.root);
        let [user, pages, model, roots, events, lines] = [(); 6].map(|()| ear.clone());
        let (policy, versions, verdict) = (plan.policy, versions(plan.revision), plan.verdict);
        let options = ClientOptions::new()
            .set(move |config| {
                config.policy = policy;
                config.versions = versions;
                config.verdict = verdict;
                config.watch = Watch::new().with_tools().with_prompts().with_resources();
                config.log_level = Some(LogLevel::Warning);
                config.validate = Some(ResultValidation::reject(schema::validator()));
                config.limits.frame.exit_timeout = EXIT;
                config.cache = Some(Cache::default());
            })
            .stderr(Stderr::Lines(Arc::new(move |line| lines.line(line))))
            .on_event(move |event| events.event(event));
        let options = match adapter {
            Adapter::Blocking => options
                .on_elicit(move |_| user.elicit())
                .on_elicit_url(move |page| pages.open(page))
                .on_sample_with_tools(move |question| model.sample(&question))
                .on_roots(move || roots.roots()),
            Adapter::Smol => options
                .on_elicit(move |_| ready(user.elicit()))
                .on_elicit_url(move |page| ready(pages.open(page)))
                .on_sample_with_tools(move |question| ready(model.sample(&question)))
                .on_roots(move || ready(roots.roots())),
        };
        let is_web = matches!(plan.place, Place::Url(_));
        let client = match plan.place {
            Place::Program(command) => adapter.connect_driven(command, options),
            Place::Url(url) => adapter.connect_driven(url, options),
        };
        Ok(Self { client: client.map_err(|why: ConnectError| why.to_string())?, ear, is_web })
    }

    /// Returns the client.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Returns whether it is over HTTP.
    pub fn is_web(&self) -> bool {
        self.is_web
    }

    /// Checks that the server announces changed tools, where it says whether it does.
    pub fn announced(&self) -> Result<(), String> {
        let refused = self.ear.look(|heard| heard.watching.last().is_some_and(|watch| !watch.tools));
        if refused && self.revision() == MODERN {
            return Err("the server does not announce changed tools".to_owned());
        }
        Ok(())
    }

    /// Returns the revision in use.
    pub fn revision(&self) -> String {
        self.client.server().map(|server| server.version.to_string()).unwrap_or_default()
    }

    /// Returns what the client found out about the server.
    pub fn verdict(&self) -> Option<Verdict> {
        self.client.verdict()
    }

    /// Returns the names of all tools, from all pages.
    pub fn tools(&self) -> Result<Vec<String>, String> {
        let tools = self.client.all(tools::list()).map_err(|why| why.to_string())?;
        Ok(tools.into_iter().map(|tool| tool.name).collect())
    }

    /// Calls a tool, and reports progress as it arrives. A request to the user is accepted with
    /// `form`, or declined without one.
    pub fn call_told(
        &self,
        tool: &str,
        arguments: &Value,
        form: Option<&Value>,
        told: &mut dyn FnMut(f64),
    ) -> Result<Answer, String> {
        self.ear.begin(form)?;
        let mut progress = Vec::new();
        let call = tools::call(tool).arguments(arguments).on_progress(|step| {
            progress.push(step.progress);
            told(step.progress);
        });
        let result = self.client.call(call).map_err(|why| why.to_string())?;
        Ok(Answer::new(&result, progress, self.ear.asked()))
    }

    /// Calls a tool.
    pub fn call(&self, tool: &str, arguments: &Value, form: Option<&Value>) -> Result<Answer, String> {
        self.call_told(tool, arguments, form, &mut |_| ())
    }

    /// Calls a tool with a timeout. `Ok` only if the call ended because of it.
    pub fn time_out(&self, tool: &str, arguments: &Value, limit: Duration) -> Result<(), String> {
        match self.client.call(tools::call(tool).arguments(arguments).timeout(limit)) {
            Err(CallError::Timeout { .. }) => Ok(()),
            other => Err(format!("it ended otherwise: {other:?}")),
        }
    }

    /// Starts all calls of a tool before it waits for the first. Returns the results in the order
    /// of the arguments.
    pub fn many(&self, tool: &str, arguments: &[Value]) -> Result<Vec<Answer>, String> {
        let begin = |arguments| self.client.start(tools::call(tool).arguments(arguments));
        let begun: Vec<_> = arguments.iter().map(begin).collect();
        let answers = begun.into_iter().map(|call| call.wait().map(|one| Answer::new(&one, Vec::new(), Vec::new())));
        answers.collect::<Result<_, _>>().map_err(|why| why.to_string())
    }

    /// Calls a tool, cancels the call, and waits for its end. `Ok` only if it ended as cancelled.
    pub fn cancel(&self, tool: &str, arguments: &Value) -> Result<(), String> {
        let call = match self.client.start(tools::call(tool).arguments(arguments)).wait_timeout(BEFORE_CANCEL) {
            Ok(ended) => return Err(format!("it ended before it was cancelled: {ended:?}")),
            Err(call) => call,
        };
        call.cancel(Some("no longer needed"));
        match call.wait_timeout(SOON) {
            Ok(Err(CallError::Cancelled { .. })) => Ok(()),
            Ok(other) => Err(format!("it ended otherwise: {other:?}")),
            Err(_) => Err("it did not end".to_owned()),
        }
    }

    /// Checks that the server responds.
    pub fn ping(&self) -> Result<(), String> {
        self.client.call(ping()).map(drop).map_err(|why| why.to_string())
    }

    /// Returns the events so far.
    pub fn ear(&self) -> &Ear {
        &self.ear
    }

    /// Closes the session. `Ok` only if nothing of it remains in this process.
    pub fn close(self) -> Result<(), String> {
        self.client.close().map(drop)
    }
}
