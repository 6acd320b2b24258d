#![forbid(unsafe_code)]
//! Installs servers that this project did not write, and runs our client against each, over stdio, in both adapters and every era that the
//! server has. What cannot be installed fails.

use std::process::ExitCode;

use mcp_tests::interop::{Connect, blocking, peers, run, smol};

/// The adapters by name.
const ADAPTERS: [(&str, Connect); 2] = [("mcp-blocking", blocking::connect), ("mcp-smol", smol::connect)];

fn main() -> ExitCode {
    let peers = match peers() {
        Ok(peers) => peers,
        Err(why) => {
            eprintln!("interop: {why}");
            return ExitCode::FAILURE;
        }
    };
    let (mut passed, mut failed) = (0, 0);
    for (peer, (adapter, connect)) in peers.iter().flat_map(|peer| ADAPTERS.map(|adapter| (peer, adapter))) {
        for reached in peer.reached {
            println!("{} over {adapter}, {:?}", peer.name, reached.0);
            for line in run(peer, *reached, connect) {
                match line {
                    Ok(what) => {
                        passed += 1;
                        println!("    ok   {what}");
                    }
                    Err(why) => {
                        failed += 1;
                        println!("    FAIL {why}");
                    }
                }
            }
        }
    }
    println!("interop: {passed} passed, {failed} failed");
    if failed == 0 && passed > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
