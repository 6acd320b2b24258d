//! What surrounds the handlers of a router, and the trace that a call belongs to: both adapters on
//! each side, over HTTP.

use mcp_driver::ClientOptions;
use mcp_proto::client::Policy;
use mcp_proto::route::{Key, Rate, RateLimit};
use mcp_proto::{CallError, Cx, Outcome, Router, TraceContext, tool, tools};
use mcp_tests::adapters::{Adapter, Client, Server};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;

fn serve(adapter: Adapter, router: Router) -> Server {
    adapter.serve_http(router, "127.0.0.1:0").expect("it listens")
}

fn connect(adapter: Adapter, server: &Server, policy: Policy) -> Client {
    let options = ClientOptions::new().set(move |config| config.policy = policy);
    adapter.connect(&*format!("http://{}/mcp", server.address()), options).expect("it connects")
}

fn pairs() -> impl Iterator<Item = (Adapter, Adapter)> {
    Adapter::ALL.into_iter().flat_map(|server| Adapter::ALL.map(|client| (server, client)))
}

/// Two calls whose handlers wait for each other: none holds up what the other needs.
#[test]
fn handlers_that_block_within_a_future_run_beside_each_other() {
    for (of_server, of_client) in pairs() {
        let both = Arc::new(Barrier::new(2));
        let router = Router::new("s", "1")
            .around_async(|cx, next| async move {
                let mut outcome = next.run(cx).await;
                if let Outcome::Complete(result) = &mut outcome {
                    result.set("around", true);
                }
                outcome
            })
            .tool(tool("meet"), move |_, ()| {
                both.wait();
                Ok("met")
            });
        let server = serve(of_server, router);
        let client = connect(of_client, &server, Policy::Auto);
        let results = thread::scope(|scope| {
            let calls = [(); 2].map(|()| scope.spawn(|| client.call(tools::call("meet"))));
            calls.map(|call| call.join().expect("no panic").expect("a result"))
        });
        for result in results {
            assert_eq!(result.first_text(), Some("met"));
            assert!(result.other.contains("around"), "{of_server:?} {of_client:?}");
        }
        client.close().expect("in order");
        server.stop(Duration::ZERO);
    }
}

// covers: TOOL-S-028
#[test]
fn requests_over_a_rate_are_errors_that_say_when_to_come_again() {
    for (of_server, of_client) in pairs() {
        let router =
            Router::new("s", "1").before(RateLimit::by(Key::Tool, Rate::per_hour(1))).tool(tool("t"), |_, ()| Ok("1"));
        let server = serve(of_server, router);
        for policy in [Policy::Modern, Policy::Legacy] {
            let client = connect(of_client, &server, policy);
            // One in all, from any client.
            let outcomes = [(); 2].map(|()| client.call(tools::call("t")));
            let passed = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
            assert_eq!(passed, usize::from(policy == Policy::Modern));
            let [_, Err(CallError::Rpc(error))] = outcomes else { panic!("{outcomes:?}") };
            let data = error.data.expect("data");
            assert!(error.code == 429 && data.as_str().contains("retryAfterMs"), "{data:?}");
            client.close().expect("in order");
        }
        server.stop(Duration::ZERO);
    }
}

// covers: META-B-020
#[test]
fn call_and_handler_are_parts_of_one_trace() {
    let trace = TraceContext::new([7; 16], [9; 8], true).expect("ids").with_state("a=1").with_baggage("user=x");
    for (of_server, of_client) in pairs() {
        let router = Router::new("s", "1").tool(tool("t"), |cx: &Cx, ()| {
            let text =
                |trace: TraceContext| format!("{} {:?} {:?}", trace.traceparent(), trace.state(), trace.baggage());
            Ok(cx.trace().map(text).unwrap_or_default())
        });
        let server = serve(of_server, router);
        for policy in [Policy::Modern, Policy::Legacy] {
            let client = connect(of_client, &server, policy);
            let seen = client.call(tools::call("t").trace(&trace)).expect("a result");
            let expected = format!("{} {:?} {:?}", trace.traceparent(), trace.state(), trace.baggage());
            assert_eq!(seen.first_text(), Some(&*expected));
            assert_eq!(client.call(tools::call("t")).expect("a result").first_text(), Some(""));
            client.close().expect("in order");
        }
        server.stop(Duration::ZERO);
    }
}
