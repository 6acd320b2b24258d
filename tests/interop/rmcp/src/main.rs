#![forbid(unsafe_code)]
//! `interop-rmcp serve`: a server on the official Rust SDK, one tool for everything that can pass
//! between a client and a server. `interop-rmcp listen PORT [--stateless] [--json]`: the same over
//! HTTP. `interop-rmcp auto|modern|legacy REVISION PROGRAM ARGUMENTS...`, or a URL in the place of
//! the program: a client that tries a server with these tools, one line for each step.
//! `interop-rmcp serve tasks`: a server whose calls are tasks. `interop-rmcp follow PROGRAM
//! ARGUMENTS...`: a client that follows the task of such a server. `interop-rmcp serve skills
//! FOLDER`: a server of the skills in a folder. `interop-rmcp skills PROGRAM ARGUMENTS...`: a
//! client that reads those of a server. `interop-rmcp nodes URL COUNT MODE`: clients that call all
//! the time.
//!
//! With feature `https`: `interop-rmcp serve http` and `interop-rmcp drive http`, a server with one
//! tool over HTTPS and a client that calls it. `RT=current` in the environment: everything runs on
//! one thread.

mod areas;
mod beside;
mod client;
#[cfg(feature = "https")]
mod https;
mod nodes;
mod server;
mod skills;
mod tasks;
mod web;

use std::env;
use std::error::Error;
use std::process::ExitCode;

use tokio::runtime::Builder;

fn main() -> ExitCode {
    let mut runtime = match env::var("RT").as_deref() {
        Ok("current") => Builder::new_current_thread(),
        _ => Builder::new_multi_thread(),
    };
    let words: Vec<String> = env::args().skip(1).collect();
    let done = runtime.enable_all().build().map_err(Into::into).and_then(|runtime| runtime.block_on(run(&words)));
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("interop-rmcp: {why}");
            ExitCode::FAILURE
        }
    }
}

async fn run(words: &[String]) -> Result<(), Box<dyn Error>> {
    match words.split_first() {
        Some((word, [])) if word == "serve" => server::run().await,
        Some((word, [what])) if word == "serve" && what == "tasks" => tasks::serve().await,
        Some((word, [what, folder])) if word == "serve" && what == "skills" => skills::serve(folder).await,
        Some((word, [url, count, mode])) if word == "nodes" => nodes::run(url, count, mode).await,
        Some((word, command)) if word == "skills" => skills::read(command).await,
        Some((word, command)) if word == "follow" => tasks::follow(command).await,
        Some((word, [port, flags @ ..])) if word == "listen" => web::run(port, flags).await,
        #[cfg(feature = "https")]
        Some((word, [http, ..])) if word == "serve" && http == "http" => https::serve().await,
        #[cfg(feature = "https")]
        Some((word, [http, options @ ..])) if word == "drive" && http == "http" => https::drive(options).await,
        Some((era, [revision, command @ ..])) => client::run(era, revision, command).await,
        _ => Err("serve, or an era, a revision and a program".into()),
    }
}
