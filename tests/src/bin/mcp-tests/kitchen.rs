//! Prints how long a small server and its client are with this library and with two official SDKs,
//! and runs each client with each server. Installs the SDKs as `interop` does.

use mcp_tests::kitchen::{KITCHENS, install, meet};
use std::process::ExitCode;

pub(crate) fn main(_args: Vec<String>) -> ExitCode {
    mcp_tests::exit_code("kitchen", run())
}

fn run() -> Result<bool, String> {
    println!("| lines without imports, comments and blank lines | server | client |\n|---|---:|---:|");
    KITCHENS.iter().for_each(|kitchen| println!("{kitchen}"));
    let [servers, clients] = install()?;
    let (mut passed, mut failed) = (0, 0);
    for (by, client) in KITCHENS.iter().zip(&clients) {
        for (of, server) in KITCHENS.iter().zip(&servers) {
            match meet(client, server) {
                Ok(()) => passed += 1,
                Err(why) => {
                    failed += 1;
                    println!("FAILED: the client of {} with the server of {}: {why}", by.name, of.name);
                }
            }
        }
    }
    println!("kitchen: {passed} passed, {failed} failed");
    Ok(failed == 0)
}
