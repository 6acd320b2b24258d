use super::{DrivenConnection, DriverHandle, Server, Task, TurnResult};
use crate::{Client, ClientOptions, Gateway, Part, ServerOptions, block_on_for};
use alloc::boxed::Box;
use alloc::string::String;
use bytes::Bytes;
use core::future::{Future, pending};
use core::pin::pin;
#[cfg(feature = "auth")]
use core::task::Poll;
use core::task::{Context, Waker};
use core::time::Duration;
#[cfg(feature = "auth")]
use mcp_proto::auth::{Resource, VerifierConfig};
use mcp_proto::client::ClientConfig;
#[cfg(feature = "auth")]
use mcp_proto::exchange::ResponseHead;
use mcp_proto::exchange::{Headers, Peer, RequestHead};
#[cfg(feature = "auth")]
use mcp_proto::input::Admission;
use mcp_proto::route::Router;
use mcp_proto::wired::Kind;
use std::panic::{AssertUnwindSafe, catch_unwind};

const PING: &[u8] = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n";

/// A token for the server of these tests, until the year 3000, with a signature of zeros.
#[cfg(feature = "auth")]
const TOKEN: &str = "eyJhbGciOiJFUzI1NiIsInR5cCI6ImF0K2p3dCJ9.eyJpc3MiOiJodHRwczovL2FzLmV4YW1wbGUiLCJhdWQiOiJodHRwczovL2N\
     hbGMuZXhhbXBsZS9tY3AiLCJzdWIiOiJhZGEiLCJjbGllbnRfaWQiOiJhcHAiLCJleHAiOjMyNTAzNjgwMDAwfQ.AAAAAAAAAAAA\
     AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

/// A proof for it, with a signature of zeros and without a nonce.
#[cfg(feature = "auth")]
const PROOF: &str = "eyJ0eXAiOiJkcG9wK2p3dCIsImFsZyI6IkVTMjU2IiwiandrIjp7Imt0eSI6IkVDIiwiY3J2IjoiUC0yNTYiLCJ4IjoibDh0\
     RnJoeC0zNHRWM2hSSUNSRFk5ekNrRGxwQmhGNDJVUVVmV1ZBV0JGcyIsInkiOiI5VkU0amZfT2tfbzY0emJUVGxjdU5KYWpI\
     bXQ2djlURFZyVTBDZHZHUkRBIn19.eyJqdGkiOiIxIiwiaHRtIjoiUE9TVCIsImh0dSI6Imh0dHBzOi8vY2FsYy5leGFtcGx\
     lL21jcCIsImlhdCI6MSwiYXRoIjoiYnNIZ1p5YWFaR2ZadVVVcHpQd3JsUjJRRkNxM254QjVHVlRfYXZUQkZlQSJ9.AAAAAA\
     AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

fn server(options: ServerOptions) -> (Server, DriverHandle) {
    let router = Router::new("calc", "1.0");
    Server::begin(router, options, |_| Box::pin(pending())).expect("the system has random bytes")
}

/// Takes turns, and drops the tasks of the connection and of its engine.
fn drive(connection: &mut DrivenConnection, driving: &DriverHandle) {
    while connection.turn(Waker::noop()) != TurnResult::Done {}
    while let Some(task) = connection.next_task().or_else(|| driving.next_task_of_command()) {
        drop(task);
    }
}

fn text_of_panic(f: impl FnOnce()) -> String {
    let panic = catch_unwind(AssertUnwindSafe(f)).expect_err("it panics");
    *panic.downcast::<String>().expect("a text")
}

/// Answers a ping, and says that more was written than there is.
fn writes_too_much(options: ServerOptions) {
    let (server, driving) = server(options);
    let mut connection = server.accept(Kind::Lines, Peer::default(), false);
    connection.transfer().read(Ok(Bytes::from_static(PING)));
    drive(&mut connection, &driving);
    assert!(connection.transfer().step().is_some(), "the response");
    connection.transfer().wrote(Ok(4000));
    drive(&mut connection, &driving);
}

#[test]
fn checked_server_panics_when_its_driver_breaks_a_rule() {
    let text = text_of_panic(|| writes_too_much(ServerOptions::new().checked()));
    assert!(text.starts_with("connection 1: 4000 bytes written of "), "{text}");
}

#[test]
fn server_without_checks_ignores_a_wrong_report() {
    writes_too_much(ServerOptions::new());
}

#[test]
fn checked_client_panics_when_its_driver_breaks_a_rule() {
    let (_client, driving) =
        Client::begin(ClientConfig::given(), ClientOptions::new().checked(), |_| Box::pin(pending()))
            .expect("the system has random bytes");
    let Some(Task::Open(mut connection, _)) = driving.next_task() else { panic!("it opens its connection") };
    let now = connection.clock().now();
    assert!(connection.transfer().opened(now, Peer::default(), false));
    drive(&mut connection, &driving);
    assert!(connection.transfer().step().is_some(), "the first request");
    connection.transfer().wrote(Ok(4000));
    let text = text_of_panic(|| drive(&mut connection, &driving));
    assert!(text.starts_with("connection 1: 4000 bytes written of "), "{text}");
}

// Nothing was negotiated, so nothing ended the wait.
#[test]
fn client_without_a_server_is_ready_at_once() {
    let (client, _driving) = Client::begin(ClientConfig::fetcher(), ClientOptions::new(), |_| Box::pin(pending()))
        .expect("the system has random bytes");
    assert!(block_on_for(Duration::from_secs(20), client.ready()).expect("it does not wait").is_ok());
}

#[test]
fn end_of_a_checked_connection_breaks_no_rule() {
    let (server, driving) = server(ServerOptions::new().checked());
    let mut left = server.accept(Kind::Lines, Peer::default(), false);
    drive(&mut left, &driving);
    drop(left);
    let mut ended = server.accept(Kind::Lines, Peer::default(), false);
    ended.transfer().read(Ok(Bytes::new()));
    drive(&mut ended, &driving);
    while ended.transfer().step().is_some() {
        ended.transfer().wrote(Ok(0));
        drive(&mut ended, &driving);
    }
    assert!(ended.transfer().is_closed());
    drop(ended);
}

/// Begins an exchange, and returns whether its body is wanted, before and after some of it, and the
/// first part of its response.
fn late_exchange(gateway: &Gateway) -> (bool, bool, Part) {
    let head = RequestHead { method: "POST".into(), target: "/mcp".into(), headers: Headers::new() };
    let mut exchange = gateway.begin_exchange(Peer::default(), head);
    let soon = Duration::from_secs(20);
    let wants = block_on_for(soon, exchange.wants_body()).expect("it is decided");
    let more = exchange.body(Bytes::from_static(b"{}"));
    exchange.end();
    (wants, more, block_on_for(soon, exchange.part()).expect("a part"))
}

#[test]
fn exchange_after_the_end_of_its_gateway_is_cut() {
    let (gateway, driving) = Gateway::begin(Router::new("calc", "1.0"), ServerOptions::new()).expect("a seed");
    let mut stop = pin!(gateway.stop(Duration::ZERO));
    let mut cx = Context::from_waker(Waker::noop());
    while stop.as_mut().poll(&mut cx).is_pending() {
        driving.handle_timeout();
        while driving.next_task().is_some() {}
    }
    assert_eq!(late_exchange(&gateway), (false, false, Part::Cut), "stopped");
    let (gateway, driving) = Gateway::begin(Router::new("calc", "1.0"), ServerOptions::new()).expect("a seed");
    drop(driving);
    assert_eq!(late_exchange(&gateway), (false, false, Part::Cut), "without a driver");
}

/// Runs the driver of a guarded gateway until the exchange has a response, and returns its head.
/// `drives` is for the client that makes the fetches.
#[cfg(feature = "auth")]
fn guarded_head(router: Router, fields: Headers, mut drives: impl FnMut(DriverHandle)) -> ResponseHead {
    let resource = Resource::new("https://calc.example/mcp", ["https://as.example"]).dpop(false);
    let options = ServerOptions::new().verify(resource, VerifierConfig::jwt("https://as.example").with_nonces());
    let (gateway, driving) = Gateway::begin(router, options).expect("a seed");
    let headers = fields.with("Host", "localhost");
    let head = RequestHead { method: "POST".into(), target: "/mcp".into(), headers };
    let mut exchange = gateway.begin_exchange(Peer::default(), head);
    let mut part = pin!(exchange.part());
    loop {
        match part.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Part::Head(head, _)) => return head,
            Poll::Ready(other) => panic!("{other:?}"),
            Poll::Pending => {}
        }
        match driving.next_task().expect("there is a task until there is a response") {
            Task::Route(routing) => assert!(routing.route().is_none(), "the guard needs no thread"),
            Task::Drive(driving, _) => drives(driving),
            other => drop(other),
        }
    }
}

#[cfg(feature = "auth")]
#[test]
fn guard_without_fetches_refuses_tokens_as_not_verifiable() {
    let guarded_status =
        |fields, drives: &mut dyn FnMut(DriverHandle)| guarded_head(Router::new("calc", "1.0"), fields, drives).status;
    assert_eq!(guarded_status(Headers::new(), &mut drop), 401, "there is no token");
    let mut dropped = 0;
    let bearer = Headers::new().with("Authorization", alloc::format!("Bearer {TOKEN}"));
    assert_eq!(guarded_status(bearer, &mut |_| dropped += 1), 503);
    assert_eq!(dropped, 1);
}

#[cfg(feature = "auth")]
#[test]
fn servers_with_one_state_key_have_the_same_nonces() {
    let nonce = |state_keys: Option<[u8; 32]>| {
        let router = Router::new("calc", "1.0").configure(|config| config.state_keys = state_keys.map(Into::into));
        let fields = Headers::new().with("Authorization", alloc::format!("DPoP {TOKEN}")).with("DPoP", PROOF);
        let head = guarded_head(router, fields, drop);
        assert_eq!(head.status, 401);
        String::from(head.headers.get("dpop-nonce").expect("a nonce"))
    };
    let (first, second, third) = (nonce(Some([1; 32])), nonce(Some([1; 32])), nonce(Some([1; 32])));
    // The time of a nonce may end between two of them.
    assert!(second == first || second == third);
    assert!(![&first, &second, &third].contains(&&nonce(Some([2; 32]))));
    assert_ne!(nonce(None), nonce(None));
}

#[cfg(feature = "auth")]
#[test]
fn later_of_two_ways_to_admit_counts() {
    let resource = Resource::new("https://calc.example/mcp", ["https://as.example"]);
    let verify = |options: ServerOptions| options.verify(resource.clone(), VerifierConfig::jwt("https://as.example"));
    let on_admit = |options: ServerOptions| options.on_admit(|_, _| Admission::Accept(None));
    for (options, is_guarded) in
        [(verify(on_admit(ServerOptions::new())), true), (on_admit(verify(ServerOptions::new())), false)]
    {
        let mut config = Router::new("calc", "1.0").config();
        options.configure(&mut config);
        assert_eq!((config.admit, config.resource.is_some()), (true, is_guarded));
    }
}
