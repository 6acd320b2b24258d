//! However a client or its surroundings end, its program is ended, nothing waits forever, and a
//! panic is contained.

use crate::calc::{Add, Nothing, Seen, name, router};
use crate::common::{group, legacy, members, run, server, sh, until};
use mcp_proto::exchange::{Closed, Group};
use mcp_proto::{CallError, CallToolResult};
use mcp_smol::{
    Client, ClientOptions, ElicitResult, Policy, ServerOptions, Service, Termination, ToolError, connect,
    connect_driven, tool, tools,
};
use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

async fn call(client: &Client) -> Result<CallToolResult, CallError> {
    client.call(tools::call("add").arguments(&Add { a: 1, b: 2 })).await
}

fn spawned(target: impl mcp_smol::IntoTarget<mcp_smol::Given>, config: ClientOptions) -> Client {
    let (client, driver) = connect_driven(target, config).expect("a target");
    smol::spawn(driver).detach();
    client
}

/// Returns a field of `/proc/PID/stat`, counted from the state of the process. `None` if there is
/// no such process.
fn stat(pid: u32, field: usize) -> Option<String> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit(')').next()?.split_whitespace().nth(field).map(String::from)
}

fn is_alive(pid: u32) -> bool {
    stat(pid, 0).is_some_and(|state| state != "Z")
}

/// Returns the children of a process.
fn children(pid: u32) -> Vec<u32> {
    let listed = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    listed.split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}

fn kill(pid: u32) {
    let killed = std::process::Command::new("kill").args(["-9", &pid.to_string()]).status();
    assert!(killed.expect("a status").success());
}

/// Panics when it is dropped, and counts it.
struct Grenade(Arc<AtomicUsize>);

impl Drop for Grenade {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
        std::panic::resume_unwind(Box::new("on purpose"));
    }
}

// covers: B-133, B-134
#[test]
fn program_leads_its_own_group_or_inherits() {
    run(async {
        let script = "sleep 1000 >&- 2>&- <&- & trap 'exit 9' TERM; while :; do read -r line || sleep 0.01; done";
        let config = || {
            legacy().set(|config| {
                config.limits.frame.exit_timeout = Duration::from_millis(50);
                config.limits.frame.terminate_timeout = Duration::from_secs(20);
            })
        };
        for own in [true, false] {
            let program = server(script).group(if own { Group::Own } else { Group::Inherit });
            let client = spawned(program, config());
            client.ready().await.expect("ready");
            let pid = group(&client);
            assert_eq!(stat(pid, 2) == Some(pid.to_string()), own);
            assert_eq!(stat(pid, 2) == stat(std::process::id(), 2), !own);
            until(|| !children(pid).is_empty()).await;
            let sleep = children(pid)[0];
            client.close().await;
            assert!(stat(pid, 0).is_none(), "reaped");
            if own {
                until(|| !is_alive(sleep)).await;
            } else {
                assert!(is_alive(sleep), "our group is not ours to signal");
                kill(sleep);
            }
        }
    });
}

// covers: B-133
#[test]
fn dropped_executor_ends_the_group_and_the_calls() {
    let executor = smol::Executor::new();
    let (client, driver) =
        connect_driven(server("trap '' TERM; sleep 1000 & while :; do read -r line || sleep 1; done"), legacy())
            .expect("a target");
    executor.spawn(driver).detach();
    let waiting = run(executor.run(async {
        client.ready().await.expect("ready");
        let client = client.clone();
        std::thread::spawn(move || smol::block_on(call(&client)))
    }));
    let group = group(&client);
    assert!(!members(group).is_empty());
    drop(executor);
    let ended = waiting.join().expect("no panic").expect_err("no answer");
    assert!(matches!(ended, CallError::Closed { why: Closed::Aborted, .. } | CallError::Refused(_)), "{ended:?}");
    run(async {
        until(|| members(group).is_empty() && stat(group, 0).is_none()).await;
        assert_eq!(client.close().await, Termination::Requested);
    });
}

/// Returns a script that rejects the probe, completes a legacy handshake with the process id as its
/// name, and then continues.
fn older(script: &str) -> mcp_smol::Program {
    let hello = r#"read -r line; echo '{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"?"}}'; read -r line;
        printf '{"jsonrpc":"2.0","id":2,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"%s","version":"1"}}}\n' $$;"#;
    sh(&format!("{hello}{script}"))
}

// covers: B-133
#[test]
fn panic_in_the_main_future_ends_the_group() {
    let (told, pid) = std::sync::mpsc::channel();
    let main = std::thread::spawn(move || {
        run(async move {
            let client =
                connect(older("trap '' TERM; sleep 1000 & while :; do sleep 1000; done")).await.expect("connected");
            told.send(group(&client)).expect("awaited");
            until(|| members(group(&client)).len() > 1).await;
            std::panic::resume_unwind(Box::new("on purpose"));
        })
    });
    let pid = pid.recv().expect("connected");
    assert!(main.join().is_err());
    assert!(stat(pid, 0).is_none(), "it was awaited");
    run(async { until(|| members(pid).is_empty()).await });
}

// covers: B-138
#[test]
fn close_does_not_wait_for_grandchild_in_another_session() {
    run(async {
        let client = spawned(server("setsid sleep 1000 & read -r line; read -r line"), legacy());
        client.ready().await.expect("ready");
        let pid = group(&client);
        // The shell has started it when it reads on, and `setsid` has been replaced by its command.
        until(|| children(pid).first().is_some_and(|child| stat(*child, 2) == Some(child.to_string()))).await;
        let sleep = children(pid)[0];
        let start = Instant::now();
        assert_eq!(client.close().await, Termination::Requested);
        let took = start.elapsed();
        assert!(took < Duration::from_secs(10), "{took:?}");
        assert!(stat(pid, 0).is_none(), "reaped");
        assert!(is_alive(sleep), "it has left the group");
        kill(sleep);
    });
}

// covers: B-278
#[test]
fn panic_in_the_event_callback_is_caught() {
    run(async {
        let events = Arc::new(AtomicUsize::new(0));
        let count = events.clone();
        let config = ClientOptions::new().on_event(move |_| {
            count.fetch_add(1, Ordering::SeqCst);
            std::panic::resume_unwind(Box::new("on purpose"));
        });
        let (client, driver) = connect_driven(router(&Seen::default()), config).expect("a target");
        let driver = smol::spawn(driver);
        client.ready().await.expect("ready");
        assert_eq!(call(&client).await.expect("an answer").first_text(), Some("3"));
        assert_eq!(client.close().await, Termination::Requested);
        driver.await;
        assert!(events.load(Ordering::SeqCst) >= 2, "ready, and the end");
    });
}

// covers: B-278
#[test]
fn panic_in_the_event_callback_of_a_server_is_caught() {
    run(async {
        let events = Arc::new(AtomicUsize::new(0));
        let count = events.clone();
        let service = Service::from((
            router(&Seen::default()),
            ServerOptions::new().on_event(move |_| {
                count.fetch_add(1, Ordering::SeqCst);
                std::panic::resume_unwind(Box::new("on purpose"));
            }),
        ));
        let client = connect(service).await.expect("connected");
        client.notify("custom/note", mcp_smol::Object::new()).expect("accepted").await.expect("its bytes are written");
        assert_eq!(call(&client).await.expect("an answer").first_text(), Some("3"));
        assert!(events.load(Ordering::SeqCst) > 0);
        client.close().await;
    });
}

/// Creates a server with a tool that never ends and panics when it is dropped. Returns how often it
/// was entered and dropped.
fn grenades() -> (mcp_smol::Router, Arc<AtomicUsize>, Arc<AtomicUsize>) {
    let (entered, dropped) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (enter, count) = (entered.clone(), dropped.clone());
    let router = router(&Seen::default()).tool_async(tool("grenade"), move |_cx, _: Nothing| {
        enter.fetch_add(1, Ordering::SeqCst);
        let grenade = Grenade(count.clone());
        async move {
            let _grenade = grenade;
            pending::<Result<String, ToolError>>().await
        }
    });
    (router, entered, dropped)
}

// covers: B-149
#[test]
fn panic_while_dropping_a_cancelled_handler_is_caught() {
    run(async {
        let (router, entered, dropped) = grenades();
        let client = connect(router).await.expect("connected");
        let cancelled = client.start(tools::call("grenade").arguments(&Nothing {}));
        until(|| entered.load(Ordering::SeqCst) == 1).await;
        drop(cancelled);
        until(|| dropped.load(Ordering::SeqCst) == 1).await;
        assert_eq!(call(&client).await.expect("an answer").first_text(), Some("3"));
        assert_eq!(client.close().await, Termination::Requested);
    });
}

// covers: B-149
#[test]
fn panic_while_dropping_handlers_of_a_connection_is_caught() {
    run(async {
        let (router, entered, dropped) = grenades();
        let client = connect(router).await.expect("connected");
        let held = [(); 2].map(|()| client.start(tools::call("grenade").arguments(&Nothing {})));
        until(|| entered.load(Ordering::SeqCst) == 2).await;
        assert_eq!(client.close().await, Termination::Requested);
        until(|| dropped.load(Ordering::SeqCst) == 2).await;
        for held in held {
            held.await.expect_err("no answer");
        }
    });
}

// covers: B-278
#[test]
fn panic_while_dropping_an_unneeded_answer_is_caught() {
    run(async {
        let (asked, dropped) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (ask, count) = (asked.clone(), dropped.clone());
        let config = ClientOptions::new().set(|config| config.policy = Policy::Legacy).on_elicit_async(move |_| {
            ask.fetch_add(1, Ordering::SeqCst);
            let grenade = Grenade(count.clone());
            async move {
                let _grenade = grenade;
                pending::<()>().await;
                ElicitResult::Accept(name("nobody"))
            }
        });
        let client = spawned(router(&Seen::default()), config);
        let greeted = client.start(tools::call("greet").arguments(&Nothing {}));
        until(|| asked.load(Ordering::SeqCst) == 1).await;
        drop(greeted);
        until(|| dropped.load(Ordering::SeqCst) == 1).await;
        assert_eq!(call(&client).await.expect("an answer").first_text(), Some("3"));
        client.close().await;
    });
}

// covers: B-141, B-149
#[test]
fn dropping_the_future_of_close_does_not_stop_the_close() {
    run(async {
        let (router, entered, dropped) = grenades();
        let (client, driver) = connect_driven(router, ClientOptions::new()).expect("a target");
        let driver = smol::spawn(driver);
        let held = client.start(tools::call("grenade").arguments(&Nothing {}));
        until(|| entered.load(Ordering::SeqCst) == 1).await;
        // Polled often enough to request the end, and not often enough to see it.
        drop(smol::future::poll_once(client.close()).await);
        driver.await;
        held.await.expect_err("no answer");
        until(|| dropped.load(Ordering::SeqCst) == 1).await;
        assert_eq!(client.close().await, Termination::Requested);
    });
}
