//! The shim of this port for `hostile --driver`.

use crate::driver;
use mcp_driver::{Client, ClientOptions, ConnectError, Server, Service, Target};
use mcp_proto::ClientConfig;
use mcp_proto::route::BoxFuture;
use mcp_tests::shim::Port;
use std::io;
use std::net::SocketAddr;
use tokio::runtime::Handle;

/// The port on a runtime.
pub(crate) struct Tokio(pub(crate) Handle);

impl Port for Tokio {
    fn spawn(&self, task: BoxFuture<()>) {
        self.0.spawn(task);
    }

    fn connect(&self, config: ClientConfig, options: ClientOptions) -> Result<Client, ConnectError> {
        driver::connect(Target::new(config), options).map(|(client, _)| client)
    }

    async fn serve(&self, service: Service) -> io::Result<(Server, SocketAddr)> {
        let server = driver::server(service)?;
        let address = driver::listen_http(&server, "127.0.0.1:0").await?;
        Ok((server, address))
    }
}
