use super::*;
use crate::error::{NegotiationCause, Stage};

const MODERN: &str = "2026-07-28";
const LEGACY: &str = "2025-11-25";

/// Returns the cause of the failed negotiation. Closes the exchange first, if it is still open.
fn cause(rig: &mut Rig) -> (Stage, NegotiationCause) {
    if rig.client.state() == State::Closing {
        rig.handle_event(rig.exchange(), ExchangeEvent::Failed { sent: Sent::Maybe, why: Closed::Aborted });
    }
    match rig.termination() {
        Some(Termination::Negotiation(e)) => (e.stage, e.cause.clone()),
        other => panic!("{other:?}"),
    }
}

/// A client in the state `Initializing`, after a refused probe.
fn fallen_back() -> Rig {
    let mut rig = Rig::program();
    rig.open();
    let id = rig.last_id();
    rig.say(error(&id, -32601));
    assert_eq!(rig.client.state(), State::Initializing);
    rig
}

// covers: VER-C-022, VER-C-027, VER-C-023, DISC-C-003, META-C-009, META-C-010, META-C-024,
// VER-C-018, RPC-B-030
#[test]
fn probe_detects_a_modern_server() {
    let mut rig = Rig::program();
    assert_eq!(rig.methods(), ["server/discover"]);
    let meta = rig.sent[0]["params"]["_meta"].clone();
    assert_eq!(meta["io.modelcontextprotocol/protocolVersion"], MODERN);
    assert_eq!(meta["io.modelcontextprotocol/clientCapabilities"], json!({}));
    assert!(meta["io.modelcontextprotocol/clientInfo"]["name"].is_string());
    rig.open();
    rig.answer(&rig.last_id(), discover(&["2099-01-01", MODERN, LEGACY]));
    assert!(matches!(&rig.events[..], [Event::Ready(info)] if info.version.as_str() == MODERN));
    assert_eq!(rig.client.verdict().unwrap().version.as_str(), MODERN);
    rig.call(tools::list());
    assert_eq!(rig.methods(), ["server/discover", "tools/list"]);
    assert_eq!(rig.sent[1]["params"]["_meta"], meta);
    assert_ne!(rig.sent[1]["id"], rig.sent[0]["id"]);
}

// covers: VER-C-025, VER-C-026, VER-C-020, INIT-B-001, INIT-C-002, INIT-C-004, INIT-C-007,
// INIT-C-008, B-093, S0-02, RPC-B-031
#[test]
fn other_probe_errors_fall_back_to_initialize() {
    for code in [-32601, -32602, -32600, -32000, -32001, 1, -32700] {
        let mut rig = Rig::program();
        rig.open();
        let id = rig.last_id();
        rig.say(error(&id, code));
        assert_eq!(rig.methods(), ["server/discover", "initialize"]);
        let params = &rig.sent[1]["params"];
        assert_eq!(params["protocolVersion"], LEGACY);
        assert_eq!(params["capabilities"], json!({}));
        assert!(params["clientInfo"]["version"].is_string());
        assert!(params.get("_meta").is_none());
        let first = rig.call(tools::list());
        assert_eq!(rig.sent.len(), 2, "nothing is asked before the answer");
        rig.answer(&rig.last_id(), initialized(LEGACY));
        assert_eq!(rig.methods()[2..], ["notifications/initialized", "tools/list"]);
        assert!(rig.sent[2].get("id").is_none());
        assert!(rig.sent[3].get("params").is_none(), "no metadata in the legacy era");
        let id = rig.last_id();
        rig.answer(&id, json!({"tools": []}));
        assert!(rig.outcome(first).is_ok());
    }
}

// covers: VER-C-025, B-094
#[test]
fn unanswered_probe_falls_back_to_initialize() {
    let mut rig = Rig::program();
    rig.open();
    let probe = rig.last_id();
    rig.tick(ms(9_999));
    assert_eq!(rig.client.state(), State::Probing);
    rig.tick(ms(1));
    assert_eq!(rig.methods(), ["server/discover", "initialize"], "the probe is not named in a cancellation");
    rig.answer(&probe, discover(&[MODERN]));
    assert_eq!(rig.client.state(), State::Initializing);
    assert!(rig.diagnostics().contains(&DiagnosticKind::LateAnswer));
    rig.answer(&rig.last_id(), initialized(LEGACY));
    assert_eq!(rig.client.server_info().unwrap().version.as_str(), LEGACY);
}

#[test]
fn server_that_exits_on_the_probe_is_started_again_once() {
    let mut rig = Rig::program();
    rig.open();
    let first = rig.exchange();
    rig.handle_event(first, ExchangeEvent::Inbound(Inbound::End));
    rig.handle_event(first, ExchangeEvent::Failed { sent: Sent::Maybe, why: exited(1) });
    assert_eq!(rig.starts.len(), 2);
    assert_eq!(rig.starts[1].1, Start::Duplex(Endpoint::Program(Program::new("server"))));
    assert_eq!(rig.methods(), ["server/discover", "initialize"]);
    rig.open();
    let second = rig.exchange();
    rig.handle_event(second, ExchangeEvent::Failed { sent: Sent::Maybe, why: exited(2) });
    assert_eq!(cause(&mut rig), (Stage::Initialize, NegotiationCause::Closed(exited(2))));
    assert_eq!(rig.starts.len(), 2, "only once");
}

#[test]
fn end_of_output_on_the_probe_starts_the_server_again() {
    let mut rig = Rig::program();
    rig.open();
    let first = rig.exchange();
    rig.handle_event(first, ExchangeEvent::Inbound(Inbound::End));
    assert_eq!(rig.ended, [first]);
    rig.tick(ms(500));
    assert_eq!(rig.aborted, [first]);
    assert_eq!(rig.starts.len(), 2);
    assert_eq!(rig.client.state(), State::Initializing);
}

// covers: B-087, B-094
#[test]
fn program_that_never_started_is_not_started_again() {
    let mut rig = Rig::program();
    let call = rig.call(tools::list());
    let why = Closed::Unreachable("no such file".into());
    rig.handle_event(rig.exchange(), ExchangeEvent::Failed { sent: Sent::No, why: why.clone() });
    assert_eq!(cause(&mut rig), (Stage::Connect, NegotiationCause::Closed(why)));
    let outcome = rig.outcome(call).clone().unwrap_err();
    assert!(matches!(outcome, CallError::Negotiation(_)));
    assert_eq!(outcome.sent(), Sent::No);
    rig.assert_at_rest();
}

#[test]
fn given_connection_that_ends_on_the_probe_fails() {
    let mut rig = Rig::new(ClientConfig::given());
    rig.open();
    rig.handle_event(rig.exchange(), ExchangeEvent::Failed { sent: Sent::Maybe, why: Closed::Eof });
    assert_eq!(cause(&mut rig), (Stage::Discover, NegotiationCause::Closed(Closed::Eof)));
}

// covers: VER-C-003, VER-C-024, VER-C-020
#[test]
fn unsupported_version_error_retries_the_probe_once() {
    let mut rig = Rig::program();
    rig.open();
    let refuse = |rig: &mut Rig, supported: Value| {
        let data = json!({"supported": supported, "requested": MODERN});
        let error = json!({"code": -32022, "message": "no", "data": data});
        rig.say(json!({"jsonrpc": "2.0", "id": rig.last_id(), "error": error}));
    };
    refuse(&mut rig, json!(["2099-01-01"]));
    assert_eq!(cause(&mut rig), (Stage::Discover, NegotiationCause::NoMutualVersion(vec!["2099-01-01".into()])));

    let mut rig = Rig::program();
    rig.open();
    refuse(&mut rig, json!(["2099-01-01", "2025-06-18"]));
    assert_eq!(rig.sent.last().unwrap()["params"]["protocolVersion"], "2025-06-18");

    let mut rig = Rig::program();
    rig.open();
    refuse(&mut rig, json!([MODERN]));
    assert_eq!(rig.methods(), ["server/discover"; 2], "it names the one that it refused: once more, and no more");
    refuse(&mut rig, json!([MODERN]));
    assert!(matches!(cause(&mut rig), (Stage::Discover, NegotiationCause::NoMutualVersion(_))));

    // An unreadable list proves nothing. It counts as any other error.
    let mut rig = Rig::program();
    rig.open();
    refuse(&mut rig, json!("2025-06-18"));
    assert_eq!(rig.client.state(), State::Initializing);
}

// covers: VER-C-024
#[test]
fn modern_error_never_leads_to_initialize() {
    for code in [-32020, -32021] {
        let mut rig = Rig::program();
        rig.open();
        let id = rig.last_id();
        rig.say(error(&id, code));
        assert!(matches!(cause(&mut rig), (Stage::Discover, NegotiationCause::Rpc(e)) if e.code == code));
        assert_eq!(rig.methods(), ["server/discover"]);
    }
}

#[test]
fn common_legacy_revision_is_used_for_initialize() {
    let mut rig = Rig::program();
    rig.open();
    rig.answer(&rig.last_id(), discover(&["2099-01-01", "2025-03-26", "2024-11-05"]));
    assert_eq!(rig.sent.last().unwrap()["method"], "initialize");
    assert_eq!(rig.sent.last().unwrap()["params"]["protocolVersion"], "2025-03-26");
}

// covers: INIT-S-010, INIT-C-012, B-090, INIT-B-015
#[test]
fn initialize_result_must_name_a_supported_revision() {
    for version in ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"] {
        let mut rig = fallen_back();
        rig.answer(&rig.last_id(), initialized(version));
        assert_eq!(rig.client.server_info().unwrap().version.as_str(), version);
    }
    for version in ["2023-01-01", MODERN, ""] {
        let mut rig = fallen_back();
        rig.answer(&rig.last_id(), initialized(version));
        assert_eq!(cause(&mut rig), (Stage::Initialize, NegotiationCause::NoMutualVersion(vec![version.into()])));
        assert_eq!(rig.methods(), ["server/discover", "initialize"], "no `initialized`, no request");
        assert_eq!(rig.ended, [rig.exchange()], "it disconnects");
    }
}

// covers: INIT-S-016
#[test]
fn refused_initialize_is_retried_once_from_the_list() {
    let mut rig = fallen_back();
    let refuse = |rig: &mut Rig| {
        let error =
            json!({"code": -32602, "message": "Unsupported protocol version", "data": {"supported": ["2024-11-05"]}});
        rig.say(json!({"jsonrpc": "2.0", "id": rig.last_id(), "error": error}));
    };
    refuse(&mut rig);
    assert_eq!(rig.sent.last().unwrap()["params"]["protocolVersion"], "2024-11-05");
    refuse(&mut rig);
    assert!(matches!(cause(&mut rig), (Stage::Initialize, NegotiationCause::Rpc(e)) if e.code == -32602));
}

// covers: INIT-B-015, CANC-C-008, B-062, B-094
#[test]
fn initialize_times_out_and_is_never_cancelled() {
    let mut rig = fallen_back();
    rig.tick(ms(30_000));
    assert_eq!(cause(&mut rig), (Stage::Initialize, NegotiationCause::Timeout(ms(30_000))));
    assert_eq!(rig.methods(), ["server/discover", "initialize"]);
    let mut rig = fallen_back();
    rig.client.close(rig.now);
    rig.drain();
    assert_eq!(rig.methods(), ["server/discover", "initialize"]);
}

#[test]
fn policies_try_only_their_era() {
    let legacy = ClientConfig { policy: Policy::Legacy, ..ClientConfig::given() };
    let mut rig = Rig::new(legacy);
    assert_eq!(rig.methods(), ["initialize"]);
    rig.open();
    let id = rig.last_id();
    rig.say(error(&id, -32022));
    assert!(matches!(cause(&mut rig), (Stage::Initialize, NegotiationCause::Rpc(_))));

    let modern = ClientConfig { policy: Policy::Modern, ..ClientConfig::given() };
    let mut rig = Rig::new(modern);
    rig.open();
    let id = rig.last_id();
    rig.say(error(&id, -32601));
    assert!(matches!(cause(&mut rig), (Stage::Discover, NegotiationCause::Rpc(e)) if e.code == -32601));
    assert_eq!(rig.methods(), ["server/discover"]);
}

// covers: VER-C-019
#[test]
fn remembered_era_is_tried_first_and_probed_again_if_wrong() {
    let verdict = Some(Verdict::new(ProtocolVersion::V2025_06_18));
    let mut rig = Rig::new(ClientConfig { verdict, ..ClientConfig::given() });
    assert_eq!(rig.methods(), ["initialize"]);
    assert_eq!(rig.sent[0]["params"]["protocolVersion"], "2025-06-18");
    rig.open();
    let id = rig.last_id();
    rig.say(error(&id, -32601));
    assert_eq!(rig.methods(), ["initialize", "server/discover"]);
    rig.answer(&rig.last_id(), discover(&[MODERN]));
    assert_eq!(rig.client.verdict().unwrap().version.as_str(), MODERN);

    // Refused in both eras, the client terminates and does not loop.
    let mut rig = Rig::new(ClientConfig { verdict, ..ClientConfig::given() });
    rig.open();
    for _ in 0..2 {
        let id = rig.last_id();
        rig.say(error(&id, -32601));
    }
    assert!(matches!(cause(&mut rig), (Stage::Discover, NegotiationCause::Rpc(_))));
}

#[test]
fn error_without_an_id_answers_only_the_probe() {
    let mut rig = Rig::program();
    rig.open();
    rig.say(json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32600, "message": "what?"}}));
    assert_eq!(rig.client.state(), State::Initializing);
    rig.say(json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32600, "message": "what?"}}));
    assert_eq!(rig.client.state(), State::Initializing);
}

#[test]
fn malformed_probe_result_falls_back_to_initialize() {
    for result in
        [json!({}), json!({"supportedVersions": "x", "capabilities": {}}), json!(null), json!({"resultType": "odd"})]
    {
        let mut rig = Rig::program();
        rig.open();
        rig.answer(&rig.last_id(), result);
        assert_eq!(rig.client.state(), State::Initializing);
    }
    // An invalid response to `initialize` terminates the client.
    let mut rig = fallen_back();
    rig.answer(&rig.last_id(), json!({"capabilities": {}}));
    assert!(matches!(cause(&mut rig), (Stage::Initialize, NegotiationCause::Decode(_))));
}

// covers: INIT-C-018, ELIC-C-001, INIT-B-014, INIT-B-013
#[test]
fn declared_capabilities_follow_the_revision() {
    let config = || ClientConfig { policy: Policy::Legacy, ..ClientConfig::given().with_elicitation() };
    let mut form = config();
    form.capabilities.elicitation.get_or_insert_default().form = Some(Object::new());
    form.capabilities.roots = Some(Default::default());
    let rig = Rig::new(form.clone());
    assert_eq!(rig.sent[0]["params"]["capabilities"], json!({"elicitation": {"form": {}}, "roots": {}}));
    let old = ClientConfig { versions: Versions::new([ProtocolVersion::V2025_03_26]), ..form.clone() };
    assert_eq!(Rig::new(old).sent[0]["params"]["capabilities"], json!({"roots": {}}));
    let middle = ClientConfig { versions: Versions::new([ProtocolVersion::V2025_06_18]), ..form };
    assert_eq!(Rig::new(middle).sent[0]["params"]["capabilities"], json!({"elicitation": {}, "roots": {}}));
    let modern = ClientConfig { policy: Policy::Modern, ..config() };
    let meta = &Rig::new(modern).sent[0]["params"]["_meta"];
    assert_eq!(meta["io.modelcontextprotocol/clientCapabilities"], json!({"elicitation": {}}));
}

#[test]
fn config_without_revisions_is_an_error() {
    let mut rig = Rig::new(ClientConfig { versions: Versions::new([]), ..ClientConfig::given() });
    assert!(rig.starts.is_empty());
    assert!(matches!(cause(&mut rig), (Stage::Connect, NegotiationCause::NoMutualVersion(_))));
}

// covers: B-201
#[test]
fn refused_revision_after_a_slow_probe_probes_once_more() {
    let refuse = |rig: &mut Rig| {
        let data = json!({"supported": [MODERN], "requested": LEGACY});
        let id = rig.last_id();
        rig.say(json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32022, "message": "no", "data": data}}));
    };
    let slow = || {
        let mut rig = Rig::program();
        rig.open();
        rig.tick(ms(10_000));
        assert_eq!(rig.client.state(), State::Initializing);
        rig
    };
    let mut rig = slow();
    refuse(&mut rig);
    assert_eq!(rig.methods(), ["server/discover", "initialize", "server/discover"]);
    rig.answer(&rig.last_id(), discover(&[MODERN]));
    assert_eq!(rig.client.server_info().unwrap().version.as_str(), MODERN);

    // A server that contradicts itself is given up, regardless of its response to the second probe.
    let mut rig = slow();
    refuse(&mut rig);
    rig.answer(&rig.last_id(), discover(&[LEGACY]));
    refuse(&mut rig);
    assert!(matches!(cause(&mut rig), (Stage::Initialize, NegotiationCause::Rpc(e)) if e.code == -32022));
    assert_eq!(rig.methods().len(), 4);
}

// covers: B-199
#[test]
fn server_that_exits_after_the_probe_is_started_again_once() {
    let mut rig = Rig::program();
    rig.open();
    let first = rig.exchange();
    let id = rig.last_id();
    rig.say(error(&id, -32600));
    assert_eq!(rig.methods(), ["server/discover", "initialize"]);
    rig.handle_event(first, ExchangeEvent::Inbound(Inbound::End));
    rig.handle_event(first, ExchangeEvent::Failed { sent: Sent::Maybe, why: exited(1) });
    assert_eq!(rig.starts.len(), 2);
    assert_eq!(rig.methods(), ["server/discover", "initialize", "initialize"]);
    rig.open();
    let second = rig.exchange();
    rig.handle_event(second, ExchangeEvent::Failed { sent: Sent::Maybe, why: exited(2) });
    assert_eq!(cause(&mut rig), (Stage::Initialize, NegotiationCause::Closed(exited(2))));
    assert_eq!(rig.starts.len(), 2, "only once");
}

/// A client whose program exited with this status during the probe.
fn exited_on_probe(config: ClientConfig, status: Closed) -> Rig {
    let mut rig = Rig::new(config);
    rig.open();
    rig.handle_event(rig.exchange(), ExchangeEvent::Failed { sent: Sent::Maybe, why: status });
    rig
}

fn program() -> ClientConfig {
    ClientConfig::program(Program::new("server"))
}

/// Returns the text of the negotiation error.
fn text(rig: &Rig) -> String {
    match rig.termination() {
        Some(Termination::Negotiation(e)) => e.to_string(),
        other => panic!("{other:?}"),
    }
}

// covers: B-087
#[test]
fn exit_status_of_a_missing_command_starts_no_second_process() {
    for code in [126, 127] {
        let mut rig = exited_on_probe(program(), exited(code));
        assert_eq!(rig.starts.len(), 1, "{code}");
        assert_eq!(cause(&mut rig), (Stage::Discover, NegotiationCause::Closed(exited(code))));
    }
    for status in [exited(1), exited(125), exited(128), Closed::Exited(ExitStatus::killed(9))] {
        assert_eq!(exited_on_probe(program(), status.clone()).starts.len(), 2, "{status}");
    }
}

// covers: B-094, B-087
#[test]
fn failed_second_start_reports_both_ends() {
    let mut rig = exited_on_probe(program(), exited(1));
    rig.open();
    rig.handle_event(
        rig.exchange(),
        ExchangeEvent::Failed { sent: Sent::Maybe, why: Closed::Exited(ExitStatus::killed(9)) },
    );
    let said = text(&rig);
    assert!(said.contains("started twice: exit 1 after server/discover, signal 9 after initialize"), "{said}");
}

// covers: B-094
#[test]
fn error_of_a_silent_program_names_stage_and_elapsed_time() {
    let mut rig = Rig::program();
    rig.open();
    rig.tick(ms(10_000));
    rig.tick(ms(30_000));
    rig.tick(ms(2_000));
    rig.handle_event(
        rig.exchange(),
        ExchangeEvent::Failed { sent: Sent::Maybe, why: Closed::Exited(ExitStatus::killed(15)) },
    );
    assert_eq!(text(&rig), "initialize failed after 40000 ms: no response within 30000 ms");
}

// covers: B-094, B-135
#[test]
fn connect_timeout_bounds_retries_and_the_second_start() {
    let config = || ClientConfig { connect_timeout: ms(15_000), ..program() };
    let expired = |rig: &Rig| text(rig) == "initialize failed after 15000 ms: the start took longer than 15000 ms";
    // An unanswered probe, which leaves half of the time for `initialize`: 40 s by their own
    // limits.
    let mut rig = Rig::new(config());
    rig.open();
    rig.tick(ms(7_500));
    rig.tick(ms(7_499));
    assert_eq!(rig.client.state(), State::Initializing);
    rig.tick(ms(1));
    assert_eq!(cause(&mut rig), (Stage::Initialize, NegotiationCause::StartTimeout(ms(15_000))));
    assert!(expired(&rig), "{}", text(&rig));
    rig.assert_at_rest();
    // The second process does not restart the timeout.
    let mut rig = Rig::new(config());
    rig.open();
    rig.tick(ms(7_000));
    rig.handle_event(rig.exchange(), ExchangeEvent::Failed { sent: Sent::Maybe, why: exited(1) });
    rig.open();
    rig.tick(ms(8_000));
    assert_eq!(cause(&mut rig), (Stage::Initialize, NegotiationCause::StartTimeout(ms(15_000))));
    let said = text(&rig);
    assert!(said.ends_with("longer than 15000 ms; started twice: exit 1 after server/discover"), "{said}");
}

// covers: B-094, B-135
#[test]
fn connect_timeout_names_the_stage_that_took_too_long() {
    let config = |config: ClientConfig| ClientConfig { connect_timeout: ms(3_000), ..config };
    for (given, stage) in [(ClientConfig::unix("/s"), "connecting"), (ClientConfig::given(), "connecting")] {
        let mut rig = Rig::new(config(given));
        rig.tick(ms(3_000));
        assert_eq!(rig.aborted, [rig.exchange()], "nothing was seen of it, and nothing is waited for");
        assert_eq!(text(&rig), format!("{stage} failed after 3000 ms: the start took longer than 3000 ms"));
    }
    for (policy, stage) in [(Policy::Auto, "initialize"), (Policy::Modern, "server/discover")] {
        let mut rig = Rig::new(ClientConfig { policy, ..config(program()) });
        rig.open();
        assert_eq!(rig.client.closing(), None);
        rig.tick(ms(3_000));
        assert_eq!(rig.ended, [rig.exchange()], "a program is given time to exit");
        let told = |why: &Termination| matches!(why, Termination::Negotiation(e) if e.cause.is_timeout());
        assert!(rig.client.closing().is_some_and(told), "the reason is known meanwhile");
        rig.tick(ms(1_000));
        rig.handle_event(rig.exchange(), ExchangeEvent::Failed { sent: Sent::Maybe, why: exited(0) });
        assert_eq!(text(&rig), format!("{stage} failed after 3000 ms: the start took longer than 3000 ms"));
        assert_eq!(rig.client.closing(), None);
    }
}

// covers: B-198, B-094
#[test]
fn probe_leaves_half_of_the_time_to_initialize() {
    for (connect, probe, limit) in [(60_000, 10_000, 10_000), (2_000, 10_000, 1_000), (2_000, 300, 300)] {
        let config = ClientConfig { connect_timeout: ms(connect), probe_timeout: ms(probe), ..ClientConfig::given() };
        let mut rig = Rig::new(config);
        rig.open();
        let probe = rig.last_id();
        rig.tick(ms(limit - 1));
        assert_eq!(rig.client.state(), State::Probing);
        rig.tick(ms(1));
        assert_eq!(rig.methods(), ["server/discover", "initialize"]);
        rig.answer(&probe, discover(&[MODERN]));
        rig.answer(&rig.last_id(), initialized(LEGACY));
        assert_eq!(rig.client.server_info().unwrap().version.as_str(), LEGACY);
    }
    // What is left, not the whole: here after a probe that was refused.
    let mut rig = Rig::new(ClientConfig { connect_timeout: ms(8_000), ..ClientConfig::given() });
    rig.open();
    rig.tick(ms(2_000));
    let data = json!({"supported": [MODERN], "requested": MODERN});
    let id = rig.last_id();
    rig.say(json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32022, "message": "no", "data": data}}));
    assert_eq!(rig.client.state(), State::Probing);
    rig.tick(ms(2_999));
    assert_eq!(rig.client.state(), State::Probing);
    rig.tick(ms(1));
    assert_eq!(rig.client.state(), State::Initializing);
}

// covers: B-198, B-094
#[test]
fn probe_that_nothing_can_follow_has_all_of_the_time() {
    let modern = [ProtocolVersion::V2026_07_28];
    for config in [
        ClientConfig { policy: Policy::Modern, ..program() },
        ClientConfig { versions: Versions::new(modern), ..program() },
    ] {
        let mut rig = Rig::new(config.clone());
        rig.open();
        rig.tick(ms(59_999));
        assert_eq!(rig.client.state(), State::Probing);
        rig.answer(&rig.last_id(), discover(&[MODERN]));
        assert_eq!(rig.client.state(), State::Ready);
        let mut rig = Rig::new(config);
        rig.open();
        rig.tick(ms(60_000));
        assert_eq!(cause(&mut rig), (Stage::Discover, NegotiationCause::StartTimeout(ms(60_000))));
        assert_eq!(rig.methods(), ["server/discover"]);
    }
}

/// Refuses the last request with this error, and returns the exchange it was sent on.
fn refuse_last(rig: &mut Rig, error: Value) -> ExchangeId {
    let id = rig.last_id();
    rig.say(json!({"jsonrpc": "2.0", "id": id, "error": error}));
    rig.exchange()
}

/// Some bridges take the probe for the beginning of the session.
// covers: B-199
#[test]
fn server_that_the_probe_has_spoilt_is_started_again_once() {
    let spoilt = || json!({"code": -32000, "message": "Server already initialized"});
    for is_silent in [false, true] {
        let mut rig = Rig::program();
        rig.open();
        if is_silent {
            rig.tick(ms(10_000));
        } else {
            refuse_last(&mut rig, json!({"code": -32000, "message": "HTTP 400: Bad Request"}));
        }
        let first = refuse_last(&mut rig, spoilt());
        // The first process ends in order before the second one starts.
        assert_eq!((rig.starts.len(), &rig.ended[..]), (1, &[first][..]));
        assert_eq!(rig.client.timeout_reason(), Some(Timer::Start));
        rig.say(json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {}}));
        rig.handle_event(first, ExchangeEvent::Failed { sent: Sent::Maybe, why: exited(0) });
        assert_eq!(rig.starts.len(), 2);
        assert_eq!(rig.methods(), ["server/discover", "initialize", "initialize"]);
        rig.open();
        rig.answer(&rig.last_id(), initialized(LEGACY));
        assert_eq!(rig.client.state(), State::Ready);
    }
    // A second refusal is final, and both are reported.
    let mut rig = Rig::program();
    rig.open();
    refuse_last(&mut rig, json!({"code": -32601, "message": "no"}));
    let first = refuse_last(&mut rig, spoilt());
    rig.handle_event(first, ExchangeEvent::Failed { sent: Sent::Maybe, why: exited(0) });
    rig.open();
    refuse_last(&mut rig, json!({"code": -32002, "message": "no login"}));
    assert!(matches!(cause(&mut rig), (Stage::Initialize, NegotiationCause::Rpc(e)) if e.code == -32002));
    assert_eq!(rig.starts.len(), 2);
    let said = text(&rig);
    assert!(said.contains("before that, initialize: ") && said.contains("Server already initialized"), "{said}");
}

// covers: B-199, B-087
#[test]
fn refused_initialize_starts_no_process_where_it_cannot_help() {
    let error = |code: i64, supported: Value| json!({"code": code, "message": "", "data": {"supported": supported}});
    let verdict = Some(Verdict::new(ProtocolVersion::V2025_11_25));
    for (config, error) in [
        (ClientConfig { restart_after_probe: false, ..program() }, error(-32000, json!([]))),
        (ClientConfig { policy: Policy::Legacy, ..program() }, error(-32000, json!([]))),
        (ClientConfig { verdict, policy: Policy::Legacy, ..program() }, error(-32000, json!([]))),
        (ClientConfig::given(), error(-32000, json!([]))),
        // The server says what is wrong.
        (program(), error(-32602, json!(["2099-01-01"]))),
        (program(), error(-32022, json!(["2099-01-01"]))),
    ] {
        let mut rig = Rig::new(config);
        rig.open();
        if rig.client.state() == State::Probing {
            refuse_last(&mut rig, json!({"code": -32601, "message": "no"}));
        }
        refuse_last(&mut rig, error);
        assert!(matches!(cause(&mut rig), (Stage::Initialize, NegotiationCause::Rpc(_))));
        assert_eq!(rig.starts.len(), 1);
    }
    // Neither a list that is empty nor one that cannot be read names a revision.
    for supported in [json!([]), json!(7)] {
        for code in [-32602, -32022] {
            let mut rig = Rig::program();
            rig.open();
            refuse_last(&mut rig, json!({"code": -32601, "message": "no"}));
            let first = refuse_last(&mut rig, error(code, supported.clone()));
            rig.handle_event(first, ExchangeEvent::Failed { sent: Sent::Maybe, why: exited(0) });
            assert_eq!(rig.starts.len(), 2, "{code} {supported}");
        }
    }
}

// covers: B-199, B-135
#[test]
fn program_that_ends_late_is_awaited_before_its_second_start() {
    // It closes its output, and does not exit.
    let mut rig = Rig::program();
    rig.open();
    refuse_last(&mut rig, json!({"code": -32601, "message": "no"}));
    let first = refuse_last(&mut rig, json!({"code": -32000, "message": "spoilt"}));
    rig.handle_event(first, ExchangeEvent::Inbound(Inbound::End));
    rig.tick(ms(500));
    assert_eq!((&rig.aborted[..], rig.starts.len()), (&[first][..], 2));
    assert_eq!(rig.ended, [first], "its input was closed once");
    // It does nothing at all, and the start as a whole is limited.
    let mut rig = Rig::new(ClientConfig { connect_timeout: ms(3_000), ..program() });
    rig.open();
    refuse_last(&mut rig, json!({"code": -32601, "message": "no"}));
    let first = refuse_last(&mut rig, json!({"code": -32000, "message": "spoilt"}));
    rig.tick(ms(3_000));
    rig.handle_event(first, ExchangeEvent::Failed { sent: Sent::Maybe, why: exited(0) });
    assert_eq!(cause(&mut rig), (Stage::Initialize, NegotiationCause::StartTimeout(ms(3_000))));
    assert_eq!(rig.starts.len(), 1);
}

#[test]
fn connect_timeout_ends_with_the_start() {
    let mut rig = Rig::new(ClientConfig { connect_timeout: ms(15_000), ..program() });
    rig.open();
    rig.answer(&rig.last_id(), discover(&[MODERN]));
    assert_eq!(rig.client.poll_timeout(), None, "{:?}", rig.client.timeout_reason());
    rig.tick(ms(60_000));
    assert_eq!(rig.client.state(), State::Ready);
}

// covers: B-087
#[test]
fn program_is_started_once_where_a_second_start_is_forbidden() {
    let verdict = Some(Verdict::new(ProtocolVersion::V2025_11_25));
    for (config, stage) in [
        (ClientConfig { restart_after_probe: false, ..program() }, Stage::Discover),
        (ClientConfig { policy: Policy::Legacy, ..program() }, Stage::Initialize),
        (ClientConfig { policy: Policy::Modern, ..program() }, Stage::Discover),
        (ClientConfig { verdict, ..program() }, Stage::Initialize),
    ] {
        let mut rig = exited_on_probe(config, exited(1));
        assert_eq!(rig.starts.len(), 1, "{stage}");
        assert_eq!(cause(&mut rig), (stage, NegotiationCause::Closed(exited(1))));
        assert_eq!(text(&rig), format!("{stage} failed after 0 ms: the program exited with code 1"));
    }
    // The same holds after a response to the probe.
    let mut rig = Rig::new(ClientConfig { restart_after_probe: false, ..program() });
    rig.open();
    let id = rig.last_id();
    rig.say(error(&id, -32601));
    rig.handle_event(rig.exchange(), ExchangeEvent::Failed { sent: Sent::Maybe, why: exited(1) });
    assert_eq!(rig.starts.len(), 1);
    assert_eq!(cause(&mut rig), (Stage::Initialize, NegotiationCause::Closed(exited(1))));
}
