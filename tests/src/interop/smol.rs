//! Our client over `mcp-smol`.

use std::future::ready;
use std::sync::Arc;
use std::time::Duration;

use mcp_proto::client::Verdict;
use mcp_smol::{CallError, Client, ClientOptions, ConnectError, IntoTarget, Stderr, ping, tools};
use serde_json::Value;
use smol::Timer;
use smol::future::{self, FutureExt};

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
        .on_elicit_async(move |_| ready(user.elicit()))
        .on_sample_async(move |question| ready(model.sample(&question)))
        .on_roots_async(move || ready(roots.roots()))
        .on_event(move |event| events.event(event));
    let told = |why: ConnectError| why.to_string();
    let target = match plan.place {
        Place::Program(command) => command.into_target(),
        Place::Url(url) => url.into_target(),
    };
    let (client, driver) = mcp_smol::connect_driven(target.map_err(told)?, config).map_err(told)?;
    let driver = smol::spawn(driver);
    smol::block_on(client.ready()).map_err(|why| why.to_string())?;
    Ok(Box::new(Smol { client, driver: Box::pin(driver), ear }))
}

struct Smol {
    client: Client,
    driver: future::Boxed<()>,
    ear: Ear,
}

impl Session for Smol {
    fn revision(&self) -> String {
        self.client.server().map(|server| server.version.to_string()).unwrap_or_default()
    }

    fn verdict(&self) -> Option<Verdict> {
        self.client.verdict()
    }

    fn tools(&mut self) -> Result<Vec<String>, String> {
        let tools = smol::block_on(self.client.pages(tools::list()).all()).map_err(|why| why.to_string())?;
        Ok(tools.into_iter().map(|tool| tool.name).collect())
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
        let result = smol::block_on(self.client.call(call)).map_err(|why| why.to_string())?;
        Ok(Answer::new(&result, progress, self.ear.asked()))
    }

    fn time_out(&mut self, tool: &str, arguments: &Value, limit: Duration) -> Result<(), String> {
        match smol::block_on(self.client.call(tools::call(tool).arguments(arguments).timeout(limit))) {
            Err(CallError::Timeout { .. }) => Ok(()),
            other => Err(format!("it ended otherwise: {other:?}")),
        }
    }

    fn many(&mut self, tool: &str, arguments: &[Value]) -> Result<Vec<Answer>, String> {
        let begin = |arguments| self.client.start(tools::call(tool).arguments(arguments));
        let begun: Vec<_> = arguments.iter().map(begin).collect();
        smol::block_on(async {
            let mut answers = Vec::new();
            for call in begun {
                answers.push(Answer::new(&call.await.map_err(|why| why.to_string())?, Vec::new(), Vec::new()));
            }
            Ok(answers)
        })
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

    fn ping(&mut self) -> Result<(), String> {
        smol::block_on(self.client.call(ping())).map(drop).map_err(|why| why.to_string())
    }

    fn ear(&self) -> &Ear {
        &self.ear
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
