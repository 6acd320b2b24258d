//! Servers that refuse: the probe, for a time, every session, or every call.

use super::*;
use mcp_proto::ClientConfig;
use mcp_proto::error::{NegotiationCause, Stage};
use mcp_supervisor::{Cause, Health};
use mcp_tests::stub::{Ask, Step, Stub, good_legacy, json, whole};

/// Returns a supervisor of one server `a` at this stub, and a receiver of its events.
fn supervised(stub: &Stub, wait: Duration) -> (Supervisor, mpsc::Receiver<SupervisorEvent<String>>) {
    let mut policy = Supervision::default();
    (policy.waits, policy.jitter) = (vec![wait; 4], false);
    let (tell, told) = mpsc::channel();
    let options = SupervisorOptions::new().policy(policy).on_event(move |event| drop(tell.send(event)));
    let supervisor = supervise(options).expect("a supervisor");
    supervisor.add("a", ServerSpec::new(ClientConfig::url(&stub.url()).expect("a URL"))).expect("a new key");
    (supervisor, told)
}

fn health(supervisor: &Supervisor) -> Health {
    supervisor.health("a").expect("a server")
}

/// Waits for the next delay before an attempt. Returns it with its cause.
fn delay(told: &mpsc::Receiver<SupervisorEvent<String>>) -> (Duration, Cause) {
    loop {
        if let SupervisorEvent::Reconnecting { wait, cause, .. } = told.recv_timeout(BOUND).expect("an event") {
            return (wait, cause);
        }
    }
}

fn initialized(session: &str, cookie: &str) -> Step {
    let result =
        r#""protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}"#;
    let fields = format!("Content-Type: application/json\r\nMcp-Session-Id: {session}\r\n{cookie}");
    whole("200 OK", fields, format!(r#"{{"jsonrpc":"2.0","id":{{id}},"result":{{{result}}}}}"#))
}

// covers: S0-61
#[test]
fn server_that_asks_for_a_pause_is_left_alone() {
    let _limit = limit();
    for status in ["429 Too Many Requests", "503 Service Unavailable"] {
        // It says nothing before it is asked.
        let refused = move |ask: &Ask| match ask.what.as_str() {
            "open" => Vec::new(),
            _ => vec![whole(status, "Retry-After: 60\r\n", "slow down")],
        };
        let stub = Stub::start(refused).expect("listens");
        let (supervisor, told) = supervised(&stub, Duration::from_millis(1));
        let (wait, cause) = delay(&told);
        assert_eq!((wait, cause.retry_after()), (Duration::from_secs(60), Some(wait)), "{cause}");
        assert_eq!(stub.asks().len(), 1);
        // The application may know better.
        assert!(supervisor.reconnect("a"));
        assert!(stub.was_asked("server/discover", 2));
        assert_eq!(delay(&told).0, Duration::from_secs(60));
        assert_eq!(supervisor.close().wait(), 0);
        assert_eq!(stub.asks().len(), 2);
    }
}

// covers: S0-61
#[test]
fn list_refused_for_a_time_is_left_alone() {
    let _limit = limit();
    let stub = Stub::start(|ask: &Ask| match ask.what.as_str() {
        "initialize" => vec![initialized("s1", "")],
        "tools/list" => vec![whole("429 Too Many Requests", "Retry-After: 60\r\n", "slow down")],
        _ => good_legacy(ask),
    });
    let stub = stub.expect("listens");
    let (supervisor, told) = supervised(&stub, Duration::from_millis(1));
    let asked = || health(&supervisor).cause.and_then(|cause| cause.retry_after());
    until(|| asked() == Some(Duration::from_secs(60)));
    assert_eq!(stub.times("tools/list"), 1);
    // The application may know better.
    assert!(supervisor.reconnect("a"));
    assert!(stub.was_asked("tools/list", 2));
    assert_eq!(supervisor.close().wait(), 0);
    drop(told);
}

/// A load balancer that forgets each session at once, since the client sends no cookie back. It may
/// answer what needs no session.
// covers: S0-61, B-025
#[test]
fn session_lost_at_once_fails_after_four_handshakes() {
    let _limit = limit();
    const UNKNOWN: &str = r#"{"jsonrpc":"2.0","id":{id},"error":{"code":-32601,"message":"Method not found"}}"#;
    for answers_others in [false, true] {
        let stub = Stub::start(move |ask: &Ask| match ask.what.as_str() {
            "initialize" => vec![initialized("s1", "Set-Cookie: LB=node1; Path=/\r\n")],
            "server/discover" => good_legacy(ask),
            what if answers_others && !what.starts_with("tools/") && !ask.id.starts_with("null") => vec![json(UNKNOWN)],
            _ if ask.body.get("id").is_some() => vec![whole("404 Not Found", "", "no such session on this node")],
            _ => good_legacy(ask),
        });
        let stub = stub.expect("listens");
        let (supervisor, told) = supervised(&stub, Duration::from_millis(1));
        until(|| health(&supervisor).counters.failures > 0);
        let first = stub.times("initialize");
        until(|| matches!(health(&supervisor).state, ServerState::Down { .. }));
        let counters = health(&supervisor).counters;
        let asked: std::collections::BTreeMap<_, usize> =
            stub.asks().into_iter().fold(Default::default(), |mut counts, ask| {
                *counts.entry(ask.what).or_default() += 1;
                counts
            });
        assert_eq!(counters.losses + counters.failures, counters.attempts, "{counters:?}");
        assert!(counters.losses == 0 && first <= 8, "{counters:?} with {first}: {asked:?}");
        assert!(asked["initialize"] as u64 <= 4 * counters.attempts, "{counters:?}: {asked:?}");
        assert_eq!(supervisor.close().wait(), 0);
        drop(told);
    }
}

/// A server that says nothing of a session that it has lost, and refuses its calls.
// covers: S0-61
#[test]
fn refused_calls_cause_one_connection_with_a_fresh_session() {
    let _limit = limit();
    for (status, code) in [("400 Bad Request", 400), ("404 Not Found", 404)] {
        let stub = Stub::start(move |ask: &Ask| match ask.what.as_str() {
            // A session that the server does not name cannot end with a 404.
            "initialize" if code == 404 => vec![json(
                r#"{"jsonrpc":"2.0","id":{id},"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"1"}}}"#,
            )],
            "initialize" => vec![initialized(&format!("s{}", ask.count), "")],
            "tools/call bad" => vec![whole(status, "", "no")],
            _ => good_legacy(ask),
        });
        let stub = stub.expect("listens");
        let (supervisor, told) = supervised(&stub, Duration::from_millis(1));
        let refused = |supervisor: &Supervisor| {
            let error = supervisor.call("a", tools::call("bad")).wait().expect_err("it is refused");
            assert!(matches!(&error, SupervisedError::Call(CallError::Http(e)) if e.status == code), "{error}");
        };
        // A list that is loaded between the calls would interrupt their row.
        settle(&supervisor);
        (0..3).for_each(|_| refused(&supervisor));
        assert!(matches!(delay(&told).1, Cause::CallsRefused(_)));
        (0..7).for_each(|_| refused(&supervisor));
        assert_eq!(stub.times("initialize"), 2, "once");
        assert!(supervisor.call("a", tools::call("good")).wait().is_ok());
        (0..3).for_each(|_| refused(&supervisor));
        assert!(matches!(delay(&told).1, Cause::CallsRefused(_)));
        assert!(supervisor.call("a", tools::call("good")).wait().is_ok());
        assert_eq!(stub.times("initialize"), 3);
        assert_eq!(supervisor.close().wait(), 0);
    }
}

// covers: B-198
#[test]
fn server_that_ignores_the_probe_over_http_is_legacy() {
    let _limit = limit();
    let modern = r#"{"jsonrpc":"2.0","id":{id},"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{}}}"#;
    for late in [vec![Step::Hold], vec![Step::After("initialize"), json(modern)]] {
        let stub = Stub::start(move |ask: &Ask| match ask.what.as_str() {
            "server/discover" => late.clone(),
            _ => good_legacy(ask),
        });
        let stub = stub.expect("listens");
        let (options, told) = told(ClientOptions::new().set(|config| config.probe_timeout = Duration::from_millis(50)));
        let client = connect_with(stub.url(), options).wait().expect("connected");
        assert_eq!(text(call(&client, "add")), "add");
        assert_eq!(client.server().map(|server| server.version.as_str()), Some("2025-11-25"));
        assert_eq!(codes(client, &told), ["fell-back-to-legacy"]);
    }
}

/// The probe makes some bridges open the session themselves.
// covers: B-199
#[test]
fn server_that_the_probe_has_spoilt_is_started_again() {
    let _limit = limit();
    let starts = temp("spoilt");
    let script = r#"
        echo start >> "$FILE"
        id() { id=${line#*'"id":'}; id=${id%%[,\}]*}; }
        first=yes
        while read -r line; do
            case $line in
            *'"initialize"'*) id
                if [ $first = yes ]; then
                    echo '{"jsonrpc":"2.0","id":'$id',"result":{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"old","version":"1"}}}'
                else
                    echo '{"jsonrpc":"2.0","id":'$id',"error":{"code":-32000,"message":"HTTP 400: Invalid Request: Server already initialized"}}'
                fi;;
            *'"tools/call"'*) id
                echo '{"jsonrpc":"2.0","id":'$id',"result":{"content":[{"type":"text","text":"ok"}]}}';;
            *'"id"'*) id
                echo '{"jsonrpc":"2.0","id":'$id',"error":{"code":-32601,"message":"Method not found"}}';;
            esac
            first=no
        done
    "#;
    let program = || sh(script).env("FILE", starts.to_str().expect("unicode"));
    let quiet = || ClientOptions::new().stderr(Stderr::Discard);
    let client = connect_with(program(), quiet()).wait().expect("connected");
    assert_eq!(text(call(&client, "echo")), "ok");
    client.close().wait();
    let started = || std::fs::read_to_string(&starts).expect("it was started").lines().count();
    assert_eq!(started(), 2);
    // A server that must not start twice is not started twice.
    let options = quiet().set(|config| config.restart_after_probe = false);
    let failed = connect_with(program(), options).wait().expect_err("it refuses");
    let ConnectError::Negotiation(e) = failed else { panic!("{failed:?}") };
    assert!(matches!((e.stage, &e.cause), (Stage::Initialize, NegotiationCause::Rpc(e)) if e.code == -32000), "{e}");
    assert_eq!(started(), 3);
    std::fs::remove_file(&starts).expect("removed");
}
