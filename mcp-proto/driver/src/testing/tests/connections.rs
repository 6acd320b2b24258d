//! Connections: their breaks and stalls, their latency, and their end.

use super::{all_configs, link, offering, over_http, text, web_socket};
use crate::testing::pipe::CAPACITY;
use crate::testing::{Flow, Link};
use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use core::time::Duration;
use mcp_proto::client::{ClientCommands, Event, Policy, Termination};
use mcp_proto::exchange::{Closed, ExitStatus, Program, Sent};
use mcp_proto::server::ServerCommands;
use mcp_proto::{CallError, ClientConfig, Instant, Object, Refusal, tool, tools};

/// Returns whether the log has a line that contains each of these texts.
fn has_line(link: &Link, texts: &[&str]) -> bool {
    link.log().lines().any(|line| texts.iter().all(|text| line.contains(text)))
}

#[test]
fn cut_ends_the_pending_call() {
    for mut config in all_configs() {
        // A legacy client over HTTP would resume the stream of the response.
        config.resume = mcp_proto::client::Resume::Never;
        let mut link = link(config.clone());
        let call = link.call(tools::call("steps")).expect("it is accepted");
        link.advance(Duration::from_secs(1));
        assert!(link.server().running() == 1 && link.outcome(&call).is_none());
        link.cut();
        let outcome = link.outcome(&call).expect("it has ended").expect_err("there is no response");
        assert!(outcome.to_string().contains("the connection was reset"), "{outcome}");
        assert_eq!(outcome.sent(), Sent::Maybe);
        if config.target == ClientConfig::given().target {
            assert_eq!(outcome, CallError::Closed { sent: Sent::Maybe, why: Closed::Reset });
            assert_eq!(link.events().pop(), Some(Event::Terminated(Termination::Closed(Closed::Reset))));
            assert_eq!(link.server().running(), 0);
        }
    }
}

#[test]
fn client_over_http_connects_again_after_a_cut() {
    for policy in [Policy::Modern, Policy::Legacy] {
        let mut config = over_http();
        config.policy = policy;
        let mut link = link(config);
        let call = link.call(tools::call("hello")).expect("it is accepted");
        assert!(link.wait(&call).is_ok());
        link.cut();
        let call = link.call(tools::call("hello")).expect("it is accepted");
        assert_eq!(text(link.wait(&call)).as_deref(), Ok("hello"), "{}", link.log());
    }
}

#[test]
fn legacy_call_is_resumed_after_a_cut() {
    let mut config = over_http();
    config.policy = Policy::Legacy;
    let mut link = link(config);
    let call = link.call(tools::call("steps")).expect("it is accepted");
    link.advance(Duration::from_secs(5));
    link.cut();
    assert_eq!(text(link.wait(&call)).as_deref(), Ok("done"), "{}", link.log());
    assert_eq!(link.now(), Instant::from_millis(12_000));
    assert!(link.events().iter().any(|event| matches!(event, Event::Reconnecting { .. })));
}

#[test]
fn cancellation_arrives_after_a_stall() {
    for config in all_configs() {
        let mut link = link(config);
        let call = link.call(tools::call("steps").timeout(Duration::from_secs(5))).expect("it is accepted");
        link.stall(Flow::ToServer);
        assert!(matches!(link.wait(&call), Err(CallError::Timeout { .. })));
        assert_eq!(link.server().running(), 1, "{}", link.log());
        link.advance(Duration::from_secs(1));
        assert_eq!(link.server().running(), 1);
        link.resume(Flow::ToServer);
        assert_eq!(link.server().running(), 0, "{}", link.log());
        assert!(has_line(&link, &["6000.000 ms", "tools/call steps is cancelled"]), "{}", link.log());
    }
}

#[test]
fn response_arrives_after_a_stall() {
    for config in all_configs() {
        let mut link = link(config);
        link.settle();
        link.stall(Flow::ToClient);
        let call = link.call(tools::call("hello").timeout(None)).expect("it is accepted");
        link.advance(Duration::from_secs(9));
        assert_eq!(link.outcome(&call), None);
        link.resume(Flow::ToServer);
        assert_eq!(link.outcome(&call), None);
        link.resume(Flow::Both);
        assert_eq!(link.outcome(&call).map(text), Some(Ok("hello".into())), "{}", link.log());
    }
}

#[test]
fn stalled_direction_accepts_no_more_than_its_capacity() {
    let length = |_cx: &mcp_proto::Cx, arguments: BTreeMap<String, String>| Ok(arguments["text"].len());
    let router = offering().tool(tool("length"), length);
    let mut link = Link::new(router, ClientConfig::given());
    link.settle();
    link.stall(Flow::ToServer);
    let text = Object::new().with("text", "a".repeat(5 * CAPACITY).as_str());
    let call = link.call(tools::call("length").arguments(&text)).expect("it is accepted");
    let unsent = link.client().stats().unsent;
    assert!((4 * CAPACITY..4 * CAPACITY + 1000).contains(&unsent), "{unsent}");
    link.resume(Flow::ToServer);
    assert_eq!(link.client().stats().unsent, 0);
    assert_eq!(link.outcome(&call).map(self::text), Some(Ok((5 * CAPACITY).to_string())), "{}", link.log());
}

#[test]
fn latency_delays_each_direction() {
    let latency = Duration::from_millis(30);
    for (config, trips) in [(ClientConfig::given(), 4), (ClientConfig::unix("socket"), 6), (over_http(), 6)] {
        let mut link = link(config);
        link.set_latency(latency);
        let call = link.call(tools::call("hello")).expect("it is accepted");
        assert!(link.wait(&call).is_ok());
        // To open a socket, the negotiation, and the call take a round trip each.
        assert_eq!(link.now(), Instant::new(latency * trips), "{}", link.log());
    }
}

#[test]
fn tls_succeeds_at_once() {
    for url in ["https://localhost/mcp", "https://localhost/sse"]
        .into_iter()
        .chain(web_socket().map(|_| "wss://localhost/mcp"))
    {
        let mut link = link(ClientConfig::url(url).expect("it is a URL"));
        let call = link.call(tools::call("hello")).expect("it is accepted");
        assert_eq!(text(link.wait(&call)).as_deref(), Ok("hello"), "{}", link.log());
        assert!(has_line(&link, &["client", "begins TLS with localhost"]), "{}", link.log());
    }
}

#[test]
fn connection_does_not_open_during_a_stall() {
    let mut config = over_http();
    config.limits.frame.open_timeout = Duration::from_secs(3);
    for flow in [Flow::ToServer, Flow::ToClient] {
        let mut link = link(config.clone());
        link.stall(flow);
        let call = link.call(tools::call("hello")).expect("it is accepted");
        let error = link.wait(&call).expect_err("there is no connection");
        assert_eq!((error.sent(), link.now()), (Sent::No, Instant::from_millis(3000)), "{error}");
    }
}

#[test]
fn client_ends_with_its_killed_program() {
    let mut link = link(ClientConfig::program(Program::new("server")));
    let lost = link.call(tools::call("steps")).expect("it is accepted");
    link.cut();
    let why = Closed::Exited(ExitStatus::killed(9));
    assert_eq!(link.outcome(&lost), Some(Err(CallError::Closed { sent: Sent::Maybe, why: why.clone() })));
    assert_eq!(link.events().pop(), Some(Event::Terminated(Termination::Closed(why))), "{}", link.log());
    let refused = link.call(tools::call("hello")).expect_err("the client has ended");
    assert_eq!((refused.why, link.poll_timeout()), (Refusal::Closed, None));
}

#[test]
fn program_exits_when_its_client_closes() {
    let mut link = link(ClientConfig::program(Program::new("server")));
    link.settle();
    link.with_client(|client, now| client.close(now));
    assert_eq!(link.events().pop(), Some(Event::Terminated(Termination::Requested)), "{}", link.log());
    assert!(has_line(&link, &["client", "closed: the program exited with code 0"]), "{}", link.log());
    assert_eq!((link.now(), link.poll_timeout()), (Instant::ZERO, None));
}

#[test]
fn stalled_program_is_killed_when_its_client_closes() {
    let mut link = link(ClientConfig::program(Program::new("server")));
    link.settle();
    link.stall(Flow::Both);
    link.with_client(|client, now| client.close(now));
    link.advance(Duration::from_secs(10));
    assert_eq!(link.events().pop(), Some(Event::Terminated(Termination::Requested)), "{}", link.log());
    assert!(has_line(&link, &["client", "closed: the program was killed by signal 15"]), "{}", link.log());
    link.resume(Flow::Both);
    assert!(has_line(&link, &["server", "closed"]), "{}", link.log());
}

#[test]
fn both_sides_terminate_in_order() {
    for config in all_configs() {
        let mut link = link(config);
        let call = link.call(tools::call("hello")).expect("it is accepted");
        assert!(link.wait(&call).is_ok());
        link.with_client(|client, now| client.close(now));
        link.with_server(|server, now| server.shutdown(now, Duration::ZERO));
        link.advance(Duration::from_secs(10));
        assert_eq!(link.events().pop(), Some(Event::Terminated(Termination::Requested)), "{}", link.log());
        assert_eq!(link.server_events().pop(), Some(mcp_proto::server::Event::Terminated), "{}", link.log());
        assert_eq!(link.poll_timeout(), None);
    }
}
