//! Our client over `mcp-blocking`.

use std::sync::Arc;
use std::time::Duration;

use mcp_blocking::{CallError, Client, ClientOptions, ConnectError, IntoTarget, Stderr, ping, tools};
use mcp_proto::client::Verdict;
use serde_json::Value;

use super::servers::versions;
use super::{Answer, BEFORE_CANCEL, EXIT, Ear, Place, Plan, SOON, Session};

/// Connects to a server.
///
/// # Errors
/// Why it cannot connect.
pub fn connect(plan: Plan<'_>) -> Result<Box<dyn Session>, String> {
    let ear = Ear::new(&plan.root);
    let [user, model, roots, events, lines] = [(); 5].map(|()| ear.clone());
    let (policy, versions, verdict) = (plan.policy, versions(plan.revision), plan.verdict);
    let config = ClientOptions::new()
        .set(move |config| {
            config.policy = policy;
            config.versions = versions;
            config.verdict = verdict;
            config.watch_tools = true;
            config.limits.frame.exit_timeout = EXIT;
        })
        .stderr(Stderr::Lines(Arc::new(move |line| lines.line(line))))
        .on_elicit(move |_| user.elicit())
        .on_sample(move |question| model.sample(&question))
        .on_roots(move || roots.roots())
        .on_event(move |event| events.event(event));
    let told = |why: ConnectError| why.to_string();
    let target = match plan.place {
        Place::Program(command) => command.into_target(),
        Place::Url(url) => url.into_target(),
    };
    let client = mcp_blocking::connect_with(target.map_err(told)?, config).map_err(told)?;
    Ok(Box::new(Blocking { client, ear }))
}

struct Blocking {
    client: Client,
    ear: Ear,
}

impl Session for Blocking {
    fn revision(&self) -> String {
        self.client.server().map(|server| server.version.to_string()).unwrap_or_default()
    }

    fn verdict(&self) -> Option<Verdict> {
        self.client.verdict()
    }

    fn tools(&mut self) -> Result<Vec<String>, String> {
        let names = self.client.pages(tools::list()).map(|tool| tool.map(|tool| tool.name));
        names.collect::<Result<_, _>>().map_err(|why| why.to_string())
    }

    fn call_told(
        &mut self,
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

    fn time_out(&mut self, tool: &str, arguments: &Value, limit: Duration) -> Result<(), String> {
        match self.client.call(tools::call(tool).arguments(arguments).timeout(limit)) {
            Err(CallError::Timeout { .. }) => Ok(()),
            other => Err(format!("it ended otherwise: {other:?}")),
        }
    }

    fn many(&mut self, tool: &str, arguments: &[Value]) -> Result<Vec<Answer>, String> {
        let begun = arguments.iter().map(|arguments| self.client.start(tools::call(tool).arguments(arguments)));
        let begun: Vec<_> = begun.collect();
        let answers =
            begun.into_iter().map(|call| call.wait().map(|result| Answer::new(&result, Vec::new(), Vec::new())));
        answers.collect::<Result<_, _>>().map_err(|why| why.to_string())
    }

    fn cancel(&mut self, tool: &str, arguments: &Value) -> Result<(), String> {
        let call = self.client.start(tools::call(tool).arguments(arguments));
        let call = match call.wait_timeout(BEFORE_CANCEL) {
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

    fn ping(&mut self) -> Result<(), String> {
        self.client.call(ping()).map(drop).map_err(|why| why.to_string())
    }

    fn ear(&self) -> &Ear {
        &self.ear
    }

    fn close(self: Box<Self>) -> Result<(), String> {
        let why = self.client.close();
        let left = self.client.stats();
        if left.channels == 0 { Ok(()) } else { Err(format!("{why:?}, but {left:?}")) }
    }
}
