//! The message hooks of both sides of a real pair: they see redacted messages, and their refusals
//! reach the waiting calls.

use super::*;
use std::thread::spawn;

/// Returns a hook that refuses calls with a word, in one direction, and keeps the messages that it
/// sees.
fn refusing(
    word: &'static str,
    direction: Direction,
    seen: &Arc<Mutex<Vec<String>>>,
) -> impl Fn(&WireMessage<'_>) -> Result<(), Denial> + use<> {
    let seen = Arc::clone(seen);
    move |message| {
        seen.lock().expect("no panic").push(format!("{message:?}"));
        assert!(!message.raw().contains("panic"), "a panic refuses");
        let refuses = message.direction() == direction && message.raw().contains(word);
        if refuses { Err(Denial::new(format!("{word} is refused"))) } else { Ok(()) }
    }
}

// covers: S2-44
#[test]
fn hooks_of_both_sides_run_in_both_eras() {
    let _limit = limit();
    for policy in [Policy::Modern, Policy::Legacy] {
        let (ours, (input, output)) = duplex();
        let (at_client, at_server) = (Arc::default(), Arc::default());
        let serving = ServerOptions::new().on_message(refusing("unwelcome", Direction::In, &at_server));
        let serving = spawn(move || serve((router().0, serving), input, output).wait());
        let config = ClientOptions::new().on_message(refusing("unsent", Direction::Out, &at_client));
        let config = quick(config).set(move |config| {
            config.policy = policy;
            config.timeout = Some(BOUND);
        });
        let client = connect_with(ours, config).wait().expect("connected");
        let echo = |text: &str| client.call(tools::call("echo").arguments(&Text { text: text.into() })).wait();
        let denied = |reason: &str| CallError::Denied { sent: Sent::No, reason: reason.into() };
        assert_eq!(echo("unsent"), Err(denied("unsent is refused")));
        assert_eq!(echo("panic"), Err(denied("the hook panicked")));
        let told = echo("unwelcome").expect_err("the server refuses it");
        assert_eq!(told.to_string(), "MCP error -32603: the message was refused");
        assert!(echo("a token=hunter2 b").is_ok());
        assert_eq!(add(&client).as_deref(), Ok("3"));
        assert_eq!(client.close().wait(), Termination::Requested);
        serving.join().expect("no panic").expect("served");
        for seen in [at_client, at_server] {
            let seen = seen.lock().expect("no panic");
            let shown = seen.concat();
            assert!(shown.contains("a token=xxxxxxx b") && !shown.contains("hunter2"), "{shown}");
            assert!(seen.iter().any(|message| message.starts_with("In ")), "{shown}");
            assert!(seen.iter().any(|message| message.starts_with("Out ")), "{shown}");
        }
    }
}

// The hook of a server applies wherever its router is served.
#[test]
fn hook_of_a_router_is_kept_when_it_is_served() {
    let _limit = limit();
    let hook = MessageHook::new(refusing("unwelcome", Direction::In, &Arc::default()));
    let router = router().0.configure(|config| config.on_message = Some(hook));
    let client = connect_with(router, quick(ClientOptions::new())).wait().expect("connected");
    let echo = |text: &str| client.call(tools::call("echo").arguments(&Text { text: text.into() })).wait();
    assert!(echo("unwelcome").is_err());
    assert!(echo("welcome").is_ok());
}
