//! The limits of a connection to a program: nothing before it begins, and the end of everything
//! after a fatal error.

use mcp_driver::ClientOptions;
use mcp_proto::client::{OnMalformed, Termination};
use mcp_proto::exchange::{Closed, Sent};
use mcp_proto::{CallError, ClientConfig, Program, tools};
use mcp_tests::adapters::Adapter;
use mcp_tests::orphans::Pids;
use mcp_tests::poll_loop::PollLoop;
use serde_json::json;
use std::time::{Duration, Instant};

/// A server, and its processes.
fn program() -> (Program, Pids) {
    let pids = Pids::default();
    (pids.of(Program::new(env!("CARGO_BIN_EXE_misbehaving"))), pids)
}

// covers: S0-24
#[test]
fn client_before_its_start_has_no_program_and_no_calls() {
    let (server, pids) = program();
    let (client, driver) = mcp_smol::connect_driven(server.clone(), ClientOptions::new()).expect("a target");
    let bare = PollLoop::new(ClientConfig::program(server)).expect("there is randomness");
    assert!(client.server().is_none());
    assert!(bare.engine.client().server_info().is_none());
    assert_eq!(bare.engine.client().running(), 0, "calls");
    drop((client, driver, bare));
    assert!(pids.all().is_empty(), "a program was started");
}

/// Waits for a while until a program has ended: it is reaped in the background.
fn until_gone(pids: &Pids) {
    assert_eq!(pids.all().len(), 1, "it ran");
    let end = Instant::now() + Duration::from_secs(10);
    while pids.count(|_, _| true) > 0 {
        assert!(Instant::now() < end, "it is still there");
        std::thread::park_timeout(Duration::from_millis(2));
    }
}

fn broken(ended: &CallError) {
    let is_so = matches!(ended, CallError::Closed { sent: Sent::Maybe, why: Closed::Broken(_) });
    assert!(is_so, "{ended:?}");
}

// covers: S0-32, S0-27
#[test]
fn fatal_bad_bytes_end_the_client_and_the_program() {
    let nonsense = || tools::call("nonsense").arguments(&json!({"amount": 1}));
    let fatal = |config: &mut ClientConfig| config.compat.malformed = OnMalformed::Fatal;

    for adapter in Adapter::ALL {
        let (server, pids) = program();
        let client = adapter.connect_driven(server, ClientOptions::new().set(fatal)).expect("hello");
        broken(&client.call(nonsense()).expect_err("it is ended"));
        assert!(matches!(client.close(), Ok(Termination::Closed(Closed::Broken(_)))));
        until_gone(&pids);
    }
}
