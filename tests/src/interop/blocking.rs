//! Our client over `mcp-blocking`.

use std::sync::Arc;

use mcp_blocking::{CallError, Client, Config, Stderr, ping, tools};
use mcp_proto::client::Policy;
use serde_json::Value;

use super::servers::{Server, versions};
use super::{Answer, BEFORE_CANCEL, Ear, SOON, Session};

/// Connects to a server.
///
/// # Errors
/// Why it is not connected.
pub fn connect(server: &Server, policy: Policy, revision: &str) -> Result<Box<dyn Session>, String> {
    let ear = Ear::new(&server.root());
    let [user, model, roots, events, lines] = [(); 5].map(|()| ear.clone());
    let versions = versions(revision);
    let config = Config::new()
        .set(move |config| {
            config.policy = policy;
            config.versions = versions;
        })
        .stderr(Stderr::Lines(Arc::new(move |line| lines.line(line))))
        .on_elicit(move |_| user.elicit())
        .on_sample(move |question| model.sample(&question))
        .on_roots(move || roots.roots())
        .on_event(move |event| events.event(event));
    let client = mcp_blocking::connect_with(server.command()?, config).map_err(|why| why.to_string())?;
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

    fn tools(&mut self) -> Result<Vec<String>, String> {
        let names = self.client.pages(tools::list()).map(|tool| tool.map(|tool| tool.name));
        names.collect::<Result<_, _>>().map_err(|why| why.to_string())
    }

    fn call(&mut self, tool: &str, arguments: &Value, form: Option<&Value>) -> Result<Answer, String> {
        self.ear.begin(form)?;
        let mut progress = Vec::new();
        let call = tools::call(tool).arguments(arguments).on_progress(|step| progress.push(step.progress));
        let result = self.client.call(call).map_err(|why| why.to_string())?;
        Ok(Answer::new(&result, progress, self.ear.asked()))
    }

    fn many(&mut self, tool: &str, arguments: &[Value]) -> Result<Vec<Answer>, String> {
        let begun = arguments.iter().map(|arguments| self.client.start(tools::call(tool).arguments(arguments)));
        let begun = begun.collect::<Result<Vec<_>, _>>().map_err(|why| why.to_string())?;
        let answers =
            begun.into_iter().map(|call| call.wait().map(|result| Answer::new(&result, Vec::new(), Vec::new())));
        answers.collect::<Result<_, _>>().map_err(|why| why.to_string())
    }

    fn cancel(&mut self, tool: &str, arguments: &Value) -> Result<(), String> {
        let call = self.client.start(tools::call(tool).arguments(arguments)).map_err(|why| why.to_string())?;
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
