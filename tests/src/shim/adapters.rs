//! The shim of both adapters. With `mcp-blocking` each task is a thread, in which its calls block;
//! with `mcp-smol` it runs on the global executor.

use super::{Driver, Started};
use crate::adapters::{Adapter, Client, Pending, Server};
use mcp_driver::{ClientOptions, ConnectError, Service, block_on};
use mcp_proto::client::Target;
use mcp_proto::input::CallId;
use mcp_proto::route::BoxFuture;
use mcp_proto::rpc::Object;
use mcp_proto::stats::ServerStats;
use mcp_proto::tools::CallTool;
use mcp_proto::{Call, CallError, CallToolResult, Refusal};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use std::{io, thread};

/// Any free port of this machine.
const NOWHERE: &str = "127.0.0.1:0";

impl Driver for Adapter {
    type Client = Client;
    type Server = Server;

    fn spawn(&self, task: BoxFuture<()>) {
        match self {
            Self::Blocking => drop(thread::spawn(|| block_on(task))),
            Self::Smol => smol::spawn(task).detach(),
        }
    }

    async fn connect(&self, target: Target, options: ClientOptions) -> Result<Client, ConnectError> {
        Ok(match self {
            Self::Blocking => Client::Blocking(mcp_blocking::connect_with(target, options)?),
            Self::Smol => Client::Smol(mcp_smol::connect_with(target, options).await?, None),
        })
    }

    async fn call(
        &self,
        client: Arc<Client>,
        call: Call<CallTool>,
        started: Started,
    ) -> Result<CallToolResult, CallError> {
        let pending = client.start(call);
        started.with(pending.id());
        match pending {
            Pending::Blocking(pending) => pending.wait(),
            Pending::Smol(pending) => pending.await,
        }
    }

    fn cancel(&self, client: &Client, call: CallId) {
        match client {
            Client::Blocking(client) => client.cancel(call, None),
            Client::Smol(client, _) => client.cancel(call, None),
        }
    }

    fn notify(&self, client: &Client, method: &str) -> Result<(), Refusal> {
        client.notify(method, Object::new())
    }

    async fn close(&self, client: Arc<Client>) {
        match &*client {
            Client::Blocking(client) => drop(client.close()),
            Client::Smol(client, _) => drop(client.close().await),
        }
    }

    async fn serve(&self, service: Service) -> io::Result<(Server, SocketAddr)> {
        let server = match self {
            Self::Blocking => Server::Blocking(mcp_blocking::serve_http(service, NOWHERE)?),
            Self::Smol => Server::Smol(mcp_smol::serve_http(service, NOWHERE).await?),
        };
        let address = server.address();
        Ok((server, address))
    }

    fn stats(&self, server: &Server) -> ServerStats {
        server.stats()
    }

    async fn stop(&self, server: Arc<Server>) {
        match &*server {
            Server::Blocking(server) => server.stop(Duration::ZERO),
            Server::Smol(server) => server.stop(Duration::ZERO).await,
        }
    }
}
