//! The shim of a driver that is written on the fronts of `mcp_driver`.

use super::{Driver, Started};
use mcp_driver::{Client, ClientOptions, ConnectError, Server, Service};
use mcp_proto::client::Target;
use mcp_proto::input::CallId;
use mcp_proto::route::BoxFuture;
use mcp_proto::rpc::Object;
use mcp_proto::stats::ServerStats;
use mcp_proto::tools::CallTool;
use mcp_proto::{Call, CallError, CallToolResult, ClientConfig, Refusal};
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// A driver of [`Client`] and [`Server`].
pub trait Port: Send + Sync + 'static {
    /// Runs a task to its end, on any thread.
    fn spawn(&self, task: BoxFuture<()>);

    /// Creates a client, and begins to drive it.
    ///
    /// # Errors
    /// The operating system lacks a resource.
    fn connect(&self, config: ClientConfig, options: ClientOptions) -> Result<Client, ConnectError>;

    /// Serves over HTTP, on a free port of 127.0.0.1.
    fn serve(&self, service: Service) -> impl Future<Output = io::Result<(Server, SocketAddr)>> + Send;
}

/// The shim of a port. Its engines check the driver.
#[derive(Debug)]
pub struct Fronts<P>(pub P);

impl<P: Port> Driver for Fronts<P> {
    type Client = Client;
    type Server = Server;

    fn spawn(&self, task: BoxFuture<()>) {
        self.0.spawn(task);
    }

    async fn connect(&self, target: Target, options: ClientOptions) -> Result<Client, ConnectError> {
        let client = self.0.connect(ClientConfig::new(target), options.checked())?;
        client.ready().await?;
        Ok(client)
    }

    async fn call(
        &self,
        client: Arc<Client>,
        call: Call<CallTool>,
        started: Started,
    ) -> Result<CallToolResult, CallError> {
        let pending = client.start(call);
        started.with(pending.id());
        pending.await
    }

    fn cancel(&self, client: &Client, call: CallId) {
        client.cancel(call, None);
    }

    fn notify(&self, client: &Client, method: &str) -> Result<(), Refusal> {
        client.notify(method, Object::new()).map(drop)
    }

    async fn close(&self, client: Arc<Client>) {
        client.close().await;
    }

    async fn serve(&self, service: Service) -> io::Result<(Server, SocketAddr)> {
        let Service { router, options } = service;
        self.0.serve((router, options.checked()).into()).await
    }

    fn stats(&self, server: &Server) -> ServerStats {
        server.stats()
    }

    async fn stop(&self, server: Arc<Server>) {
        server.stop(Duration::ZERO).await;
    }
}
