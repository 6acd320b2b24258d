//! The peers over `mcp-blocking`.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use mcp_blocking::{CallError, Client, Config, ElicitResult, Object, Stderr, tools};
use mcp_proto::client::Policy;
use serde_json::Value;

use super::{Answer, Asked, BEFORE_CANCEL, Peer, Session};

/// Connects to a peer.
pub fn connect(peer: &Peer, policy: Policy) -> Result<Box<dyn Session>, String> {
    let asked = Arc::new(Mutex::new(Asked::default()));
    let asking = Arc::clone(&asked);
    let config = Config::new().set(move |config| config.policy = policy).stderr(Stderr::Discard).on_elicit(move |_| {
        let mut asked = asking.lock().unwrap_or_else(PoisonError::into_inner);
        asked.count += 1;
        asked.form.clone().map_or(ElicitResult::Decline, ElicitResult::Accept)
    });
    let client = mcp_blocking::connect_with(peer.command(), config).map_err(|why| why.to_string())?;
    Ok(Box::new(Blocking { client, asked }))
}

struct Blocking {
    client: Client,
    asked: Arc<Mutex<Asked>>,
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
        let form = form.map(Object::encode).transpose().map_err(|why| why.to_string())?;
        *self.asked.lock().unwrap_or_else(PoisonError::into_inner) = Asked { count: 0, form };
        let mut progress = Vec::new();
        let call = tools::call(tool).arguments(arguments).on_progress(|step| progress.push(step.progress));
        let result = self.client.call(call).map_err(|why| why.to_string())?;
        let questions = self.asked.lock().unwrap_or_else(PoisonError::into_inner).count;
        Ok(Answer::new(&result, progress, questions))
    }

    fn cancel(&mut self, tool: &str, arguments: &Value) -> Result<(), String> {
        let call = self.client.start(tools::call(tool).arguments(arguments)).map_err(|why| why.to_string())?;
        let call = match call.wait_timeout(BEFORE_CANCEL) {
            Ok(ended) => return Err(format!("it ended before it was cancelled: {ended:?}")),
            Err(call) => call,
        };
        call.cancel(Some("no longer needed"));
        match call.wait_timeout(Duration::from_secs(5)) {
            Ok(Err(CallError::Cancelled { .. })) => Ok(()),
            Ok(other) => Err(format!("it ended otherwise: {other:?}")),
            Err(_) => Err("it did not end".to_owned()),
        }
    }

    fn close(self: Box<Self>) -> Result<(), String> {
        let why = self.client.close();
        let left = self.client.stats();
        if left.channels == 0 { Ok(()) } else { Err(format!("{why:?}, but {left:?}")) }
    }
}
