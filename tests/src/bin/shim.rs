//! The shim of both adapters for `hostile --driver`: `shim --adapter blocking` or `--adapter smol`.
#![forbid(unsafe_code)]

use mcp_proto::adapter::{ClientOptions, ConnectError, Service, block_on};
use mcp_proto::client::Target;
use mcp_proto::input::CallId;
use mcp_proto::route::BoxFuture;
use mcp_proto::rpc::Object;
use mcp_proto::stats::ServerStats;
use mcp_proto::tools::CallTool;
use mcp_proto::{Call, CallError, CallToolResult, Refusal};
use mcp_tests::shim::{Driver, Started, run};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use std::{env, io, thread};

/// Any free port of this machine.
const NOWHERE: &str = "127.0.0.1:0";

fn main() -> io::Result<()> {
    let args: Vec<String> = env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args.as_slice() {
        ["--adapter", "blocking"] => run(Blocking),
        ["--adapter", "smol"] => run(Smol),
        _ => Err(io::Error::other("shim --adapter blocking|smol")),
    }
}

/// `mcp-blocking`: each task is a thread, in which its calls block.
struct Blocking;

impl Driver for Blocking {
    type Client = mcp_blocking::Client;
    type Server = mcp_blocking::Server;

    fn spawn(&self, task: BoxFuture<()>) {
        thread::spawn(|| block_on(task));
    }

    async fn connect(&self, target: Target, options: ClientOptions) -> Result<Self::Client, ConnectError> {
        mcp_blocking::connect_with(target, options)
    }

    async fn call(
        &self,
        client: Arc<Self::Client>,
        call: Call<CallTool>,
        started: Started,
    ) -> Result<CallToolResult, CallError> {
        let pending = client.start(call);
        started.with(pending.id());
        pending.wait()
    }

    fn cancel(&self, client: &Self::Client, call: CallId) {
        client.cancel(call, None);
    }

    fn notify(&self, client: &Self::Client, method: &str) -> Result<(), Refusal> {
        client.notify(method, Object::new()).map(drop)
    }

    async fn close(&self, client: Arc<Self::Client>) {
        client.close();
    }

    async fn serve(&self, service: Service) -> io::Result<(Self::Server, SocketAddr)> {
        let server = mcp_blocking::serve_http(service, NOWHERE)?;
        let address = server.local_addr().ok_or(io::ErrorKind::AddrNotAvailable)?;
        Ok((server, address))
    }

    fn stats(&self, server: &Self::Server) -> ServerStats {
        server.stats()
    }

    async fn stop(&self, server: Arc<Self::Server>) {
        server.stop(Duration::ZERO);
    }
}

/// `mcp-smol`, on the global executor.
struct Smol;

impl Driver for Smol {
    type Client = mcp_smol::Client;
    type Server = mcp_smol::Server;

    fn spawn(&self, task: BoxFuture<()>) {
        smol::spawn(task).detach();
    }

    async fn connect(&self, target: Target, options: ClientOptions) -> Result<Self::Client, ConnectError> {
        mcp_smol::connect_with(target, options).await
    }

    async fn call(
        &self,
        client: Arc<Self::Client>,
        call: Call<CallTool>,
        started: Started,
    ) -> Result<CallToolResult, CallError> {
        let pending = client.start(call);
        started.with(pending.id());
        pending.await
    }

    fn cancel(&self, client: &Self::Client, call: CallId) {
        client.cancel(call, None);
    }

    fn notify(&self, client: &Self::Client, method: &str) -> Result<(), Refusal> {
        client.notify(method, Object::new()).map(drop)
    }

    async fn close(&self, client: Arc<Self::Client>) {
        client.close().await;
    }

    async fn serve(&self, service: Service) -> io::Result<(Self::Server, SocketAddr)> {
        let server = mcp_smol::serve_http(service, NOWHERE).await?;
        let address = server.local_addr().ok_or(io::ErrorKind::AddrNotAvailable)?;
        Ok((server, address))
    }

    fn stats(&self, server: &Self::Server) -> ServerStats {
        server.stats()
    }

    async fn stop(&self, server: Arc<Self::Server>) {
        server.stop(Duration::ZERO).await;
    }
}
