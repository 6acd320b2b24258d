//! Statistics and pings of a connection.

use crate::common::{legacy, run, server, until};
use mcp_smol::{ClientEvent, Peer, Router, Server, ServerOptions, Termination, connect, connect_driven, tool, tools};
use std::sync::{Arc, Mutex};
use std::time::Duration;

// covers: PING-B-003
#[test]
fn hanging_program_misses_pings_and_its_call_continues() {
    run(async {
        let missed = Arc::new(Mutex::new(Vec::new()));
        let told = missed.clone();
        let config = legacy().set(|config| {
            config.ping = Some(Duration::from_millis(20));
            config.ping_timeout = Duration::from_millis(30);
        });
        let config = config.on_event(move |event| {
            if let ClientEvent::PingMissed { waited, in_a_row } = event {
                told.lock().expect("no panic").push((waited >= Duration::from_millis(30), in_a_row));
            }
        });
        let (client, driver) = connect_driven(server("while read -r line; do :; done"), config).expect("a target");
        let driver = smol::spawn(driver);
        client.ready().await.expect("hello");
        until(|| missed.lock().expect("no panic").len() >= 3).await;
        assert_eq!(missed.lock().expect("no panic")[..3], [(true, 1), (true, 2), (true, 3)]);
        let stats = client.stats();
        assert!(stats.pings_missed >= 3, "{stats:?}");
        assert_eq!((stats.calls, stats.calls_made), (0, 0), "a ping is no call");
        assert_eq!(client.close().await, Termination::Requested);
        driver.await;
    });
}

#[test]
fn statistics_count_the_calls_of_a_client() {
    run(async {
        let (client, driver) = connect_driven(server("while read -r line; do :; done"), legacy()).expect("a target");
        let driver = smol::spawn(driver);
        client.ready().await.expect("hello");
        until(|| client.stats().unsent == 0).await;
        let before = client.stats();
        assert_eq!((before.calls, before.channels, before.traffic.messages_in), (0, 1, 1));
        let pending = client.start(tools::call("add"));
        until(|| client.stats().unsent == 0).await;
        let during = client.stats();
        assert_eq!((during.calls, during.calls_made), (1, 1));
        assert_eq!(during.traffic.messages_out, before.traffic.messages_out + 1);
        until(|| client.stats().traffic.bytes_out > before.traffic.bytes_out).await;
        drop(pending);
        assert_eq!((client.stats().calls, client.stats().calls_made), (0, 1));
        client.close().await;
        driver.await;
        let after = client.stats();
        assert_eq!((after.channels, after.unsent, after.calls_made), (0, 0, 1));
    });
}

// covers: B-174, B-187
#[cfg(unix)]
#[test]
fn handler_that_ignores_cancellation_counts_until_it_returns() {
    run(async {
        let (tell, entered) = smol::channel::unbounded();
        let (open, gate) = std::sync::mpsc::channel::<()>();
        let gate = Arc::new(Mutex::new(gate));
        let router = Router::new("stuck", "1").tool_async(tool("stuck"), move |_cx, _: crate::calc::Nothing| {
            let (tell, gate) = (tell.clone(), gate.clone());
            async move {
                // The rest runs in a separate task, which it blocks.
                smol::future::yield_now().await;
                let _ = tell.try_send(());
                let opened = gate.lock().expect("no panic").recv_timeout(Duration::from_secs(20));
                opened.map_err(|e| e.to_string().into()).map(|()| "done")
            }
        });
        let on_threads = |task: smol::future::Boxed<()>| drop(std::thread::spawn(|| smol::block_on(task)));
        let server = Server::new(router, ServerOptions::new().on_executor(on_threads)).expect("a seed");
        let held = || (server.stats().running, server.stats().abandoned_handlers);
        let (ours, theirs) = smol::net::unix::UnixStream::pair().expect("a pair");
        let serving = smol::spawn(server.serve(theirs, Peer::default()));
        let client = connect((ours.clone(), ours)).await.expect("hello");
        let call = client.start(tools::call("stuck").arguments(&crate::calc::Nothing {}));
        entered.recv().await.expect("entered");
        assert_eq!(held(), (1, 0));
        drop(call);
        until(|| held() == (0, 1)).await;
        open.send(()).expect("waits");
        until(|| held() == (0, 0)).await;
        client.close().await;
        serving.await;
    });
}

#[cfg(feature = "http")]
#[test]
fn statistics_of_both_sides_agree_over_http() {
    run(async {
        let router = crate::calc::router(&crate::calc::Seen::default());
        let server = mcp_smol::serve_http(router, "127.0.0.1:0").await.expect("an address");
        let url = format!("http://{}/mcp", server.local_addr().expect("an address"));
        let client = connect(url.as_str()).await.expect("hello");
        for _ in 0..3 {
            client.call(tools::call("add").arguments(&crate::calc::Add { a: 1, b: 2 })).await.expect("a sum");
        }
        // The writer is notified a little later, and the last chunk of a stream follows its
        // response.
        until(|| server.stats().traffic.bytes_out == client.stats().traffic.bytes_in).await;
        let (ours, theirs) = (client.stats().traffic, server.stats());
        assert_eq!((theirs.requests, theirs.running), (3, 0));
        assert!(theirs.channels >= 1);
        until(|| client.stats().traffic.bytes_out == theirs.traffic.bytes_in).await;
        // The probe and three calls.
        assert_eq!((theirs.traffic.messages_in, theirs.traffic.messages_out), (4, 4));
        assert_eq!((ours.messages_in, ours.messages_out), (4, 4));
        client.close().await;
        server.stop(Duration::ZERO).await;
        assert_eq!((server.stats().channels, server.stats().requests), (0, 3));
    });
}
