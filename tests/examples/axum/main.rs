//! The engine behind a web framework that a program has already: axum.
//!
//! ```text
//! cargo run --example axum -- 127.0.0.1:8000    serves /mcp, and /health as before
//! ```
#![forbid(unsafe_code)]

mod routes;

use mcp_proto::{Router, tool};
use std::io;
use std::net::SocketAddr;

fn main() -> io::Result<()> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:8000".into());
    let clock = Router::new("clock", "1.0").tool_async(tool("tick"), |_cx, ()| async { Ok("tock") });
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(async {
        let listener = tokio::net::TcpListener::bind(address).await?;
        axum::serve(listener, routes::routes(clock)?.into_make_service_with_connect_info::<SocketAddr>()).await
    })
}
