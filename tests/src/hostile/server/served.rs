//! How the tools run on each driver, and the service that a shim serves.

use super::tools::{self, Tool};
use crate::shim::Options;
use mcp_driver::{ServerOptions, Service};
use mcp_proto::exchange::RequestHead;
use mcp_proto::input::{Admission, Principal};
use mcp_proto::route::Cx;
use mcp_proto::{Handler, ServerConfig};
use std::future::{Future, ready};
use std::thread;
use std::time::Duration;

/// The delay before an unfinished tool is called again.
const AGAIN: Duration = Duration::from_millis(5);

/// Admits every client that names its principal, except one.
pub(super) fn admit(head: &RequestHead) -> Admission {
    match head.headers.get("Authorization").and_then(|value| value.strip_prefix("Bearer ")) {
        None => Admission::Unauthorized("Bearer realm=\"target\"".into()),
        Some("stranger") => Admission::Forbidden(None),
        Some(name) => Admission::Accept(Some(Principal(name.into()))),
    }
}

/// A refused client reads the response at once, so the server needs no linger time.
pub(super) fn linger(config: &mut ServerConfig) {
    config.limits.frame.linger_timeout = Duration::from_secs(1);
}

pub(super) fn on_a_thread(tool: Tool) -> Handler {
    Handler::sync(move |cx| {
        loop {
            match tool(cx) {
                Some(outcome) => return outcome,
                None => thread::park_timeout(AGAIN),
            }
        }
    })
}

/// A task waits for the time of its executor.
pub(super) fn in_a_task(tool: Tool) -> Handler {
    task(tool, || smol::Timer::after(AGAIN))
}

fn task<F: Future + Send + 'static>(tool: Tool, again: fn() -> F) -> Handler {
    /// A cancelled task is dropped.
    struct Running(Option<Cx>);
    impl Running {
        fn is_done(&mut self) {
            self.0.take();
        }
    }
    impl Drop for Running {
        fn drop(&mut self) {
            self.0.as_ref().inspect(|cx| tools::dropped(cx));
        }
    }
    Handler::future(move |cx| {
        let mut running = Running(Some(cx.clone()));
        async move {
            loop {
                if let Some(outcome) = tool(&cx) {
                    running.is_done();
                    return outcome;
                }
                again().await;
            }
        }
    })
}

/// Returns what a shim serves: the same tools, on any executor.
pub(crate) fn service(options: Options) -> Service {
    let mut serving = ServerOptions::new();
    if options.admit {
        serving = serving.on_admit_async(|head, _| ready(head.map_or(Admission::Forbidden(None), |head| admit(&head))));
    }
    let router = tools::router(in_a_task, |_| {}).configure(|config| options.set(config)).configure(linger);
    (router, serving).into()
}
