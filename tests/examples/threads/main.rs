//! The driver of the porting guide, on plain threads: `driver.rs` is the text of the guide, which a
//! test compares. `hostile --driver` runs its rows against this program.
#![forbid(unsafe_code)]

include!("driver.rs");

use mcp_proto::ClientConfig;
use mcp_proto::route::BoxFuture;
use mcp_tests::shim::{Fronts, Port, run as run_shim};
use std::future::pending;
use std::net::SocketAddr;

struct Threads;

impl Port for Threads {
    fn spawn(&self, task: BoxFuture<()>) {
        spawn(|| block_on(task));
    }

    fn connect(&self, config: ClientConfig, options: ClientOptions) -> Result<Client, ConnectError> {
        let (client, driving) = Client::begin(config, options, |_| Box::pin(pending()))?;
        spawn(move || driving.block(carry_out));
        Ok(client)
    }

    async fn serve(&self, service: Service) -> io::Result<(Server, SocketAddr)> {
        let Service { router, options } = service;
        let (server, driving) = Server::begin(router, options, |_| Box::pin(pending()))?;
        spawn(move || driving.block(carry_out));
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let (address, serving) = (listener.local_addr()?, server.clone());
        spawn(move || listen(&serving, &listener));
        Ok((server, address))
    }
}

fn main() -> io::Result<()> {
    run_shim(Fronts(Threads))
}
