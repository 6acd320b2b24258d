//! Our server and our client, and what the two do over any path between them.

use std::future::ready;
use std::net::SocketAddr;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use mcp_driver::{ClientOptions, ConnectError};
use mcp_proto::client::{Policy, Proxies};
use mcp_proto::server::{Hosts, SsePaths};
use mcp_proto::{CallError, ElicitResult, Form, Object, Progress, Router, ToolError, tool, tools};
use rustls::{ClientConfig, ServerConfig};
use serde::{Deserialize, Serialize};
use smol::Timer;
use smol::channel::{Sender, TryRecvError, unbounded};

use super::{BOUND, expect};
use crate::adapters::{Adapter, Client, Server};

/// The progress notifications of the tool `steps`.
pub(super) const STEPS: u32 = 3;

/// Interval at which a condition is checked.
const LOOK: Duration = Duration::from_millis(5);

/// Bytes of a call that no buffer of a proxy holds at once.
const LARGE: usize = 300_000;

/// The arguments of `echo`.
#[derive(Serialize, Deserialize)]
pub(super) struct Echo {
    pub(super) text: String,
}

/// The arguments of the other tools.
#[derive(Serialize, Deserialize)]
struct Nothing {}

/// A server of ours. Dropping it stops it.
pub(super) struct Ours {
    server: Server,
    seen: Sender<()>,
}

impl Ours {
    /// Serves every transport, with TLS if there is a configuration for it.
    pub(super) fn serve(adapter: Adapter, tls: Option<Arc<ServerConfig>>) -> Result<Self, String> {
        Self::serve_as(adapter, tls, Hosts::Loopback)
    }

    /// The same, for requests to these hosts.
    pub(super) fn serve_as(adapter: Adapter, tls: Option<Arc<ServerConfig>>, hosts: Hosts) -> Result<Self, String> {
        let (seen, steps) = unbounded();
        let router = Router::new("ours", env!("CARGO_PKG_VERSION")).configure(|config| {
            config.sse = Some(SsePaths::default());
            config.web_socket = true;
            config.hosts = hosts;
        });
        let router = adapter.add_tool(router, tool("echo"), |_cx, echo: Echo| async move { Ok(echo.text) });
        let router = adapter.add_tool(router, tool("greet"), |cx, _: Nothing| async move {
            match cx.elicit("name", Form::new("What is your name?").text("name"))? {
                ElicitResult::Accept(form) => Ok(format!("Hello, {form:?}")),
                ElicitResult::Decline | ElicitResult::Cancel => Err(ToolError::from("no name")),
            }
        });
        // It does not go on before the client has seen its last progress.
        let router = adapter.add_tool(router, tool("steps"), move |cx, _: Nothing| {
            let steps = steps.clone();
            async move {
                for step in 1..=STEPS {
                    let _ = cx.progress(Progress::new(f64::from(step)));
                    while let Err(why) = steps.try_recv() {
                        if cx.is_cancelled() || why == TryRecvError::Closed {
                            return Err(ToolError::from("cancelled"));
                        }
                        Timer::after(LOOK).await;
                    }
                }
                Ok("done")
            }
        });
        let nowhere = "127.0.0.1:0";
        let server = match tls {
            Some(tls) => adapter.serve_https(router, nowhere, tls),
            None => adapter.serve_http(router, nowhere),
        };
        Ok(Self { server: server.map_err(|why| why.to_string())?, seen })
    }

    /// Returns its address.
    pub(super) fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// Lets `steps` go on once.
    pub(super) fn next(&self) {
        // Fails only if the server has ended.
        let _ = self.seen.try_send(());
    }

    /// Waits until no request runs.
    pub(super) fn is_idle(&self) -> Result<(), String> {
        self.until("requests run", |server| server.stats().running == 0)
    }

    /// Waits until every connection is closed.
    pub(super) fn is_left(&self) -> Result<(), String> {
        self.until("connections are open", |server| server.stats().channels == 0)
    }

    fn until(&self, what: &str, is_so: impl Fn(&Server) -> bool) -> Result<(), String> {
        let until = Instant::now() + BOUND;
        while !is_so(&self.server) {
            expect(Instant::now() < until, || format!("{what}: {:?}", self.server.stats()))?;
            thread::sleep(LOOK);
        }
        Ok(())
    }
}

/// Connects a client of ours.
pub(super) fn connect(
    adapter: Adapter,
    url: &str,
    policy: Policy,
    tls: Option<Arc<ClientConfig>>,
) -> Result<Client, ConnectError> {
    connect_through(adapter, url, policy, tls, Proxies::none())
}

/// The same, through these proxies.
pub(super) fn connect_through(
    adapter: Adapter,
    url: &str,
    policy: Policy,
    tls: Option<Arc<ClientConfig>>,
    proxies: Proxies,
) -> Result<Client, ConnectError> {
    let options = ClientOptions::new().environment_proxies(false).set(move |config| {
        config.proxies = proxies;
        config.policy = policy;
        config.timeout = Some(BOUND);
    });
    let name = |_| ElicitResult::Accept(Object::new().with("name", "Ada"));
    let options = match adapter {
        Adapter::Blocking => options.on_elicit(name),
        Adapter::Smol => options.on_elicit(move |form| ready(name(form))),
    };
    let options = match tls {
        Some(tls) => options.tls(tls),
        None => options,
    };
    adapter.connect_driven(url, options)
}

/// Uses everything that a path may break: a large body in both directions, an event stream that is
/// not held back, a request to the user, and a cancellation. Closes the client.
pub(super) fn use_all(client: Client, ours: &Ours) -> Result<String, String> {
    let text = |call| client.call(call).map_err(|why| why.to_string());
    let large = "x".repeat(LARGE);
    let answer = text(tools::call("echo").arguments(&Echo { text: large.clone() }))?;
    expect(answer.first_text() == Some(&large), || "echo: another text".to_owned())?;
    let mut seen = 0;
    let call = tools::call("steps").on_progress(|_| {
        seen += 1;
        ours.next();
    });
    client.call(call).map_err(|why| format!("steps, after {seen} of {STEPS}: {why}"))?;
    expect(seen == STEPS, || format!("steps: {seen} of {STEPS} were delivered"))?;
    let answer = text(tools::call("greet"))?;
    let greeting = answer.first_text().unwrap_or_default();
    expect(greeting.contains("Ada"), || format!("greet: {greeting}"))?;
    cancel(&client)?;
    ours.is_idle()?;
    let version = client.server().map(|server| server.version.to_string()).unwrap_or_default();
    let transport = client.verdict().map(|verdict| verdict.transport);
    client.close()?;
    Ok(format!("{version} over {transport:?}: {LARGE} bytes, {STEPS} steps, a question, a cancellation"))
}

/// Cancels a call that has begun.
fn cancel(client: &Client) -> Result<(), String> {
    let (told, has_begun) = mpsc::channel();
    let mut call = client.start(tools::call("steps").on_progress(move |_| {
        // Fails after the call has begun.
        let _ = told.send(());
    }));
    while has_begun.try_recv().is_err() {
        call = match call.wait_timeout(LOOK) {
            Ok(ended) => return Err(format!("the call to cancel ended with {ended:?}")),
            Err(call) => call,
        };
    }
    call.cancel(Some("not needed"));
    match call.wait() {
        Err(CallError::Cancelled { .. }) => Ok(()),
        other => Err(format!("the cancelled call ended with {other:?}")),
    }
}
