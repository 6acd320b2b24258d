#![forbid(unsafe_code)]
//! `interop-rmcp serve`: a server on the official Rust SDK, one tool for everything that can pass
//! between a client and a server. `interop-rmcp listen PORT [--stateless] [--json]`: the same over
//! HTTP. `interop-rmcp auto|modern|legacy REVISION PROGRAM ARGUMENTS...`, or a URL in the place of
//! the program: a client that tries a server with these tools, one line for each step.

mod areas;
mod beside;
mod client;
mod server;
mod web;

use std::process::ExitCode;

#[tokio::main]
async fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let done = match words.split_first() {
        Some((word, [])) if word == "serve" => server::run().await,
        Some((word, [port, flags @ ..])) if word == "listen" => web::run(port, flags).await,
        Some((era, [revision, command @ ..])) => client::run(era, revision, command).await,
        _ => Err("serve, or an era, a revision and a program".into()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("interop-rmcp: {why}");
            ExitCode::FAILURE
        }
    }
}
