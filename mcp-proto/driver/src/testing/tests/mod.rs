//! A link as a test of a program uses it: every transport, both eras, and the exact times.

mod asking;
mod callbacks;
mod calls;
mod connections;
mod log;
mod offers;
mod replace;
mod watching;

use super::{Link, LinkOptions, Time};
use alloc::string::String;
use core::time::Duration;
use mcp_proto::client::Policy;
use mcp_proto::server::SsePaths;
use mcp_proto::{CallError, CallToolResult, ClientConfig, Progress, Router, tool};

/// Four seconds pass between two signs of life of the tool `steps`.
const STEP: Duration = Duration::from_secs(4);

const NANOSECOND: Duration = Duration::from_nanos(1);

/// Returns the configuration of each transport in each era that it has.
fn all_configs() -> impl Iterator<Item = ClientConfig> {
    standard_configs().chain(web_socket().into_iter().flat_map(in_each_era)).chain([over_sse()])
}

/// The same of the transports of every revision.
fn standard_configs() -> impl Iterator<Item = ClientConfig> {
    [ClientConfig::given(), over_http()].into_iter().flat_map(in_each_era)
}

fn in_each_era(config: ClientConfig) -> [ClientConfig; 2] {
    [Policy::Modern, Policy::Legacy].map(|policy| {
        let mut config = config.clone();
        config.policy = policy;
        config
    })
}

fn over_http() -> ClientConfig {
    ClientConfig::url("http://localhost/mcp").expect("it is a URL")
}

fn over_sse() -> ClientConfig {
    let mut config = ClientConfig::url("http://localhost/sse").expect("it is a URL");
    config.policy = Policy::Legacy;
    config
}

/// Returns the configuration of a WebSocket, if there is one.
fn web_socket() -> Option<ClientConfig> {
    cfg!(feature = "ws").then(over_web_socket)
}

fn over_web_socket() -> ClientConfig {
    ClientConfig::url("ws://localhost/mcp").expect("it is a URL")
}

/// Returns a router that serves every transport, with nothing to offer.
fn offering() -> Router {
    Router::new("server", "1").configure(|config| {
        config.sse = Some(SsePaths::default());
        config.web_socket = true;
    })
}

/// Returns a router with the tools `hello` and `steps`. The latter reports progress after each of
/// three steps.
fn router(time: &Time) -> Router {
    let time = time.clone();
    let steps = move |cx: mcp_proto::Cx, ()| {
        let time = time.clone();
        async move {
            for step in 1..=3 {
                time.after(STEP).await;
                // Without a progress token, nothing is reported.
                let _ = cx.progress(Progress::new(f64::from(step)));
            }
            Ok("done")
        }
    };
    offering().tool(tool("hello"), |_cx, ()| Ok("hello")).tool_async(tool("steps"), steps)
}

fn link(config: ClientConfig) -> Link {
    let time = Time::new();
    Link::with(router(&time), config, LinkOptions::new().time(&time))
}

fn text(outcome: Result<CallToolResult, CallError>) -> Result<String, CallError> {
    outcome.map(|result| result.first_text().unwrap_or_default().into())
}
