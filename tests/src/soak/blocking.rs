//! The scenes with `mcp-blocking`.

use super::{Client, Echo, Heap, Nothing, Server, To};
use mcp_blocking::{CallError, ClientOptions, Router, ToolError, connect_with, serve_http, serve_stdio, tool, tools};
use mcp_proto::client::{Policy, Restart};
use std::net::SocketAddr;
use std::process::Command;
use std::thread;
use std::time::Duration;

/// Interval at which a tool checks whether its call was cancelled.
const LOOK: Duration = Duration::from_millis(1);

/// The tools of every server.
fn router(heap: Heap) -> Router {
    Router::new("soak", env!("CARGO_PKG_VERSION"))
        .tool(tool("echo"), |_cx, echo: Echo| Ok(echo.text))
        .tool(tool("wait"), |cx, _: Nothing| {
            while !cx.is_cancelled() {
                thread::sleep(LOOK);
            }
            Ok("cancelled")
        })
        .tool(tool("exit"), |_cx, _: Nothing| -> Result<(), ToolError> { std::process::exit(0) })
        .tool(tool("held"), move |_cx, _: Nothing| Ok(heap().to_string()))
}

/// Serves over stdio until the end of its input.
///
/// # Errors
/// A standard stream fails.
pub fn serve_pipe(heap: Heap) -> Result<(), String> {
    serve_stdio(router(heap)).map_err(|why| why.to_string())
}

pub(super) fn serve(address: SocketAddr) -> Result<Box<dyn Server>, String> {
    let server = serve_http(router(|| 0), address).map_err(|why| format!("{address}: {why}"))?;
    Ok(Box::new(Listening(server)))
}

struct Listening(mcp_blocking::Server);

impl Server for Listening {
    fn address(&self) -> SocketAddr {
        self.0.local_addr().expect("an address")
    }

    fn stop(self: Box<Self>) {
        self.0.stop(Duration::from_millis(100));
    }
}

pub(super) fn connect(to: To<'_>) -> Result<Box<dyn Client>, String> {
    let client = match to {
        To::Program(soak, adapter) => {
            let mut command = Command::new(soak);
            command.args(["serve", adapter.name()]);
            let mut restart = Restart::default();
            restart.waits.clear();
            connect_with(
                command,
                ClientOptions::new().set(super::fill_soon).set(|config| config.restart = Some(restart)),
            )
        }
        To::Url(address, in_session) => {
            let policy = if in_session { Policy::Legacy } else { Policy::Modern };
            connect_with(
                format!("http://{address}/mcp").as_str(),
                ClientOptions::new().set(move |config| config.policy = policy),
            )
        }
    };
    Ok(Box::new(Connected(client.map_err(|why| why.to_string())?)))
}

struct Connected(mcp_blocking::Client);

impl Connected {
    fn text(&self, tool: &str) -> Result<String, CallError> {
        let result = self.0.call(tools::call(tool).arguments(&Nothing {}))?;
        Ok(result.first_text().unwrap_or_default().to_owned())
    }
}

impl Client for Connected {
    fn echo(&self, text: &str) -> Result<String, String> {
        let echo = Echo { text: text.to_owned() };
        let result = self.0.call(tools::call("echo").arguments(&echo)).map_err(|why| why.to_string())?;
        Ok(result.first_text().unwrap_or_default().to_owned())
    }

    fn cancel(&self) -> Result<(), String> {
        let call = self.0.start(tools::call("wait").arguments(&Nothing {}));
        call.cancel(Some("enough"));
        match call.wait() {
            Err(CallError::Cancelled { .. }) => Ok(()),
            other => Err(format!("a cancelled call ended with {other:?}")),
        }
    }

    fn forget(&self) -> Result<(), String> {
        drop(self.0.start(tools::call("wait").arguments(&Nothing {})));
        Ok(())
    }

    fn exit(&self) -> Result<(), String> {
        match self.text("exit") {
            Err(CallError::Closed { .. }) => Ok(()),
            other => Err(format!("the call that ends the server ended with {other:?}")),
        }
    }

    fn held(&self) -> Result<i64, String> {
        let text = self.text("held").map_err(|why| why.to_string())?;
        text.parse().map_err(|_| format!("{text:?} is no size"))
    }

    fn close(self: Box<Self>) {
        self.0.close();
    }
}
