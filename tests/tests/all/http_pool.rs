//! The connections of an HTTP client over real sockets, in both adapters: calls that wait for a
//! connection, and notifications that were accepted before the client is closed.

use mcp_driver::ClientOptions;
use mcp_proto::exchange::Sent;
use mcp_proto::rpc::Object;
use mcp_proto::{CallError, ClientConfig, tools};
use mcp_tests::adapters::{Adapter, Client};
use mcp_tests::stub::{Ask, Step, Stub, good_legacy, good_modern, whole};
use std::time::{Duration, Instant};

fn connect(adapter: Adapter, stub: &Stub, change: impl FnOnce(&mut ClientConfig) + Send + 'static) -> Client {
    adapter.connect_driven(stub.url(), ClientOptions::new().set(change)).expect("it connects")
}

/// Makes `count` calls at once, each with its timeout, and returns the result of each.
fn calls(client: &Client, count: usize, limit: fn(usize) -> Duration) -> Vec<Result<(), CallError>> {
    let calls: Vec<_> = (0..count).map(|n| client.start(tools::call("slow").timeout(limit(n)))).collect();
    calls.into_iter().map(|call| call.wait().map(drop)).collect()
}

fn notify(client: &Client) {
    client.notify("custom/told", Object::new()).expect("accepted");
}

fn slow(answer: impl Fn(&Ask) -> Vec<Step> + Send + Sync + 'static) -> Stub {
    Stub::start(move |ask| if ask.what == "tools/call slow" { answer(ask) } else { good_modern(ask) })
        .expect("a socket")
}

#[test]
fn calls_that_time_out_in_the_pool_were_not_sent() {
    for adapter in Adapter::ALL {
        let stub = slow(|_| vec![Step::Hold]);
        let client = connect(adapter, &stub, |config| {
            config.limits.frame.max_connections_per_origin = 16;
        });
        // The sent calls continue until the others have timed out: otherwise their connections
        // would be free too early.
        let ends = calls(&client, 64, |n| Duration::from_secs(if n < 16 { 4 } else { 1 }));
        let sent = ends.iter().filter(|end| end.as_ref().is_err_and(|error| error.sent() == Sent::Maybe)).count();
        let unsent = ends.iter().filter(|end| end.as_ref().is_err_and(|error| error.sent() == Sent::No)).count();
        let seen = stub.times("tools/call slow");
        assert_eq!((seen, sent, unsent), (16, 16, 48), "{adapter:?}: seen by the server, `Maybe`, `No`");
        client.close().expect("in order");
    }
}

#[test]
fn sixty_four_parallel_calls_do_not_wait() {
    for adapter in Adapter::ALL {
        let stub = slow(|ask| [vec![Step::Wait(Duration::from_millis(700))], good_modern(ask)].concat());
        let client = connect(adapter, &stub, |_| ());
        let failed = calls(&client, 64, |_| Duration::from_secs(2)).iter().filter(|end| end.is_err()).count();
        assert_eq!(failed, 0, "{adapter:?}: calls that timed out");
        client.close().expect("in order");
    }
}

#[test]
fn accepted_notifications_arrive_before_the_delete() {
    const COUNT: usize = 18;
    for adapter in Adapter::ALL {
        let late = Duration::from_millis(50);
        let stub = Stub::start(move |ask| match ask.what.as_str() {
            "custom/told" => vec![Step::Wait(late), whole("202 Accepted", "", "")],
            _ => good_legacy(ask),
        });
        let stub = stub.expect("a socket");
        let client = connect(adapter, &stub, |_| ());
        for _ in 0..COUNT {
            notify(&client);
        }
        client.close().expect("in order");
        let arrived = stub.times("custom/told");
        assert_eq!(arrived, COUNT, "{adapter:?}: notifications that arrived");
        assert!(stub.was_asked("DELETE", 1), "{adapter:?}");
        let last = stub.asks().into_iter().next_back().expect("it was asked");
        assert_eq!(last.what, "DELETE", "{adapter:?}");
    }
}

#[test]
fn cancellations_are_sent_despite_an_immediate_close() {
    const COUNT: usize = 24;
    for adapter in Adapter::ALL {
        let stub = Stub::start(|ask| match ask.what.as_str() {
            "tools/call slow" => vec![Step::Hold],
            _ => good_legacy(ask),
        });
        let stub = stub.expect("a socket");
        let client = connect(adapter, &stub, |_| ());
        let calls: Vec<_> = (0..COUNT).map(|_| client.start(tools::call("slow"))).collect();
        assert!(stub.was_asked("tools/call slow", COUNT));
        drop(calls);
        client.close().expect("in order");
        assert_eq!(stub.times("notifications/cancelled"), COUNT, "{adapter:?}");
    }
}

#[test]
fn close_ends_in_time_without_notification_responses() {
    for adapter in Adapter::ALL {
        let stub = Stub::start(|ask| match ask.what.as_str() {
            "custom/told" | "DELETE" => vec![Step::Hold],
            _ => good_legacy(ask),
        });
        let stub = stub.expect("a socket");
        let client = connect(adapter, &stub, |config| {
            config.limits.client.session_end_time = Duration::from_millis(300);
        });
        notify(&client);
        assert!(stub.was_asked("custom/told", 1));
        let began = Instant::now();
        client.close().expect("in order");
        let took = began.elapsed();
        assert!(took >= Duration::from_millis(300) && took < Duration::from_secs(5), "{adapter:?}: {took:?}");
        assert!(stub.was_asked("DELETE", 1), "{adapter:?}");
    }
}
