//! The message hooks of both sides of a real pair: they see redacted messages, and their refusals
//! reach the waiting calls.

use crate::calc::{Add, Seen, Text, router};
use crate::common::run;
use mcp_proto::exchange::Sent;
use mcp_proto::{CallError, Denied, Direction, WireMessage};
use mcp_smol::{ClientOptions, Policy, ServerOptions, Service, Termination, connect_driven, serve, tools};
use smol::net::unix::UnixStream;
use std::sync::{Arc, Mutex};

/// Returns a hook that refuses calls with a word, in one direction, and keeps the messages that it
/// sees.
fn refusing(
    word: &'static str,
    direction: Direction,
    seen: &Arc<Mutex<Vec<String>>>,
) -> impl Fn(&WireMessage<'_>) -> Result<(), Denied> + use<> {
    let seen = Arc::clone(seen);
    move |message| {
        seen.lock().expect("no panic").push(format!("{message:?}"));
        assert!(!message.raw().contains("panic"), "a panic refuses");
        let refuses = message.direction() == direction && message.raw().contains(word);
        if refuses { Err(Denied::new(format!("{word} is refused"))) } else { Ok(()) }
    }
}

// covers: S2-44
#[test]
fn hooks_of_both_sides_run_in_both_eras() {
    for policy in [Policy::Modern, Policy::Legacy] {
        run(async move {
            let (ours, theirs) = UnixStream::pair().expect("a pair");
            let (at_client, at_server) = (Arc::default(), Arc::default());
            let options = ServerOptions::new().on_message(refusing("unwelcome", Direction::In, &at_server));
            let service = Service::from((router(&Seen::default()), options));
            let serving = smol::spawn(serve(service, theirs.clone(), theirs));
            let config = ClientOptions::new().on_message(refusing("unsent", Direction::Out, &at_client));
            let config = config.set(move |config| config.policy = policy);
            let (client, driver) = connect_driven((ours.clone(), ours), config).expect("a target");
            smol::spawn(driver).detach();
            let echo = |text: &str| client.call(tools::call("echo").arguments(&Text { text: text.into() }));
            let denied = |reason: &str| CallError::Denied { sent: Sent::No, reason: reason.into() };
            assert_eq!(echo("unsent").await, Err(denied("unsent is refused")));
            assert_eq!(echo("panic").await, Err(denied("the hook panicked")));
            let told = echo("unwelcome").await.expect_err("the server refuses it");
            assert_eq!(told.to_string(), "MCP error -32603: the message was refused");
            assert!(echo("a token=hunter2 b").await.is_ok());
            let sum = client.call(tools::call("add").arguments(&Add { a: 1, b: 2 })).await.expect("an answer");
            assert_eq!(sum.first_text(), Some("3"));
            assert_eq!(client.close().await, Termination::Requested);
            serving.await.expect("served");
            for seen in [at_client, at_server] {
                let seen = seen.lock().expect("no panic");
                let shown = seen.concat();
                assert!(shown.contains("a token=xxxxxxx b") && !shown.contains("hunter2"), "{shown}");
                assert!(seen.iter().any(|message| message.starts_with("In ")), "{shown}");
                assert!(seen.iter().any(|message| message.starts_with("Out ")), "{shown}");
            }
        });
    }
}
