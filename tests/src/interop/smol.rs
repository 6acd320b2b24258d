//! The peers over `mcp-smol`.

use std::future::ready;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use mcp_smol::{CallError, Client, Config, ElicitResult, Object, Policy, Stderr, tools};
use serde_json::Value;
use smol::Timer;
use smol::future::{self, FutureExt};
use smol::stream::StreamExt;

use super::{Answer, Asked, BEFORE_CANCEL, Peer, Session};

/// How long a cancelled call may take to end, and a closed client.
const SOON: Duration = Duration::from_secs(10);

/// Connects to a peer.
pub fn connect(peer: &Peer, policy: Policy) -> Result<Box<dyn Session>, String> {
    let asked = Arc::new(Mutex::new(Asked::default()));
    let asking = Arc::clone(&asked);
    let config = Config::new().set(move |config| config.policy = policy).stderr(Stderr::Discard).on_elicit(move |_| {
        let mut asked = asking.lock().unwrap_or_else(PoisonError::into_inner);
        asked.count += 1;
        ready(asked.form.clone().map_or(ElicitResult::Decline, ElicitResult::Accept))
    });
    let (client, driver) = mcp_smol::connect_with(peer.command(), config).map_err(|why| why.to_string())?;
    let driver = smol::spawn(driver);
    smol::block_on(client.ready()).map_err(|why| why.to_string())?;
    Ok(Box::new(Smol { client, driver: Box::pin(driver), asked }))
}

struct Smol {
    client: Client,
    driver: future::Boxed<()>,
    asked: Arc<Mutex<Asked>>,
}

impl Session for Smol {
    fn revision(&self) -> String {
        self.client.server().map(|server| server.version.to_string()).unwrap_or_default()
    }

    fn tools(&mut self) -> Result<Vec<String>, String> {
        let names = self.client.pages(tools::list()).map(|tool| tool.map(|tool| tool.name));
        smol::block_on(names.try_collect()).map_err(|why: CallError| why.to_string())
    }

    fn call(&mut self, tool: &str, arguments: &Value, form: Option<&Value>) -> Result<Answer, String> {
        let form = form.map(Object::encode).transpose().map_err(|why| why.to_string())?;
        *self.asked.lock().unwrap_or_else(PoisonError::into_inner) = Asked { count: 0, form };
        let mut progress = Vec::new();
        let call = tools::call(tool).arguments(arguments).on_progress(|step| progress.push(step.progress));
        let result = smol::block_on(self.client.call(call)).map_err(|why| why.to_string())?;
        let questions = self.asked.lock().unwrap_or_else(PoisonError::into_inner).count;
        Ok(Answer::new(&result, progress, questions))
    }

    fn cancel(&mut self, tool: &str, arguments: &Value) -> Result<(), String> {
        let mut call = self.client.start(tools::call(tool).arguments(arguments));
        smol::block_on(async {
            if let Some(ended) = within(BEFORE_CANCEL, &mut call).await {
                return Err(format!("it ended before it was cancelled: {ended:?}"));
            }
            call.cancel(Some("no longer needed"));
            match within(SOON, call).await {
                Some(Err(CallError::Cancelled { .. })) => Ok(()),
                Some(other) => Err(format!("it ended otherwise: {other:?}")),
                None => Err("it did not end".to_owned()),
            }
        })
    }

    fn close(self: Box<Self>) -> Result<(), String> {
        let Self { client, driver, .. } = *self;
        smol::block_on(async {
            client.close().await;
            within(SOON, driver).await.ok_or_else(|| "the driver goes on".to_owned())
        })
    }
}

async fn within<T>(time: Duration, future: impl Future<Output = T>) -> Option<T> {
    async { Some(future.await) }
        .or(async {
            Timer::after(time).await;
            None
        })
        .await
}
