//! Recorded supervisors: their inputs read back, and replays repeat their outputs.

use super::SupervisorRecording;
use crate::{
    CallKind, CallPlan, Catalogue, ConnectWhen, Event, Generation, Input, InputReply, ListKind, Listing, Lists,
    LoadedList, Output, ServerSpec, Supervision, Supervisor, Ticket, WhenDown,
};
use alloc::sync::Arc;
use core::time::Duration;
use mcp_proto::call::SkippedList;
use mcp_proto::client::{ClientConfig, Termination};
use mcp_proto::error::{CallError, NegotiationCause, NegotiationError, Refusal, Stage, StartFailure, StreamEnd};
use mcp_proto::exchange::{
    Closed, ExitStatus, Program, ProxyFailure, ProxyFailureKind, Sent, TlsFailure, TlsFailureKind,
};
use mcp_proto::input::Change;
use mcp_proto::model::capabilities::{ListCapability, ServerCapabilities};
use mcp_proto::record::{ReadError, ReadProblem, Recorder, Redaction, engine_of};
use mcp_proto::rpc::{DecodeError, EncodeError, ErrorObject, Object, RawJson};
use mcp_proto::time::Instant;
use proptest::collection::vec as list;
use proptest::prelude::*;
use std::sync::Mutex;

const SEED: [u8; 32] = [7; 32];

/// Must not be in a redacted recording.
const SECRET: &str = "hunter2";

fn config() -> ClientConfig {
    ClientConfig::program(Program::new("serve").arg("--key=k").env("A", "b"))
}

fn recorder(redaction: Redaction) -> (Recorder, Arc<Mutex<Vec<u8>>>) {
    let kept = Arc::<Mutex<Vec<u8>>>::default();
    let file = kept.clone();
    let sink = move |line: &[u8]| {
        file.lock().unwrap().extend_from_slice(line);
        Ok(())
    };
    (Recorder::new(redaction, sink), kept)
}

fn catalogue(text: &str) -> Catalogue {
    let tool =
        format!(r#"{{"name":"t","description":"{text}","inputSchema":{{}},"annotations":{{"readOnlyHint":true}}}}"#);
    let rest = r#""prompts":[{"name":"p"}],"resources":[{"uri":"file:///a","name":"r"}]"#;
    let templates = r#""resourceTemplates":[{"uriTemplate":"file:///{x}","name":"r"}]"#;
    let text = format!("{{\"tools\":[{tool}],{rest},{templates}}}");
    Catalogue::read(&RawJson::parse(text).unwrap()).unwrap()
}

fn capabilities() -> ServerCapabilities {
    let other = Object::new().with("password", SECRET).with("tasks", Object::new());
    let mut capabilities = ServerCapabilities::default();
    capabilities.other = other;
    capabilities.tools = Some(ListCapability::default());
    capabilities
}

fn spec() -> ServerSpec {
    let mut spec = ServerSpec::new(config());
    spec.connect = ConnectWhen::OnDemand;
    spec.lists = Lists::NONE.with(ListKind::Tools).with(ListKind::Prompts);
    spec.catalogue = catalogue("text");
    spec
}

fn exited() -> Closed {
    Closed::Exited(ExitStatus::exited(1).with_stderr(SECRET))
}

fn rpc_error() -> ErrorObject {
    ErrorObject { data: Some(Object::new().with("x", SECRET).into()), ..ErrorObject::new(-32000, SECRET) }
}

fn negotiation() -> NegotiationError {
    let first = StartFailure { stage: Stage::Discover, why: exited() };
    NegotiationError {
        stage: Stage::Initialize,
        cause: NegotiationCause::Rpc(rpc_error()),
        after: Duration::from_secs(1),
        first: Some(Box::new(first)),
        earlier: Vec::new(),
    }
}

/// Ends of connections, with a secret in each text that they have, and others.
fn closed() -> Vec<Closed> {
    vec![
        Closed::Eof,
        Closed::Timeout,
        Closed::Unreachable(SECRET.into()),
        Closed::Broken(SECRET.into()),
        Closed::Denied(SECRET.into()),
        Closed::Tls(TlsFailure::new(TlsFailureKind::WrongName, SECRET)),
        Closed::Proxy(ProxyFailure::new(ProxyFailureKind::Broken, "proxy:1", SECRET)),
        Closed::WebSocket { code: Some(1008), reason: SECRET.into() },
        Closed::Exited(ExitStatus::killed(9)),
        exited(),
    ]
}

/// Errors with a secret in each text that they have, and others.
fn call_errors() -> Vec<CallError> {
    let mut errors = vec![
        CallError::Rpc(rpc_error()),
        CallError::Input(rpc_error()),
        CallError::Cancelled { reason: Some(SECRET.into()) },
        CallError::ContentType { status: 200, content_type: Some(SECRET.into()) },
        CallError::Decode(DecodeError::new(SECRET)),
        CallError::Refused(Refusal::Unencodable(EncodeError::new(SECRET))),
        CallError::Denied { sent: Sent::No, reason: SECRET.into() },
    ];
    errors.extend(closed().into_iter().map(|why| CallError::Closed { sent: Sent::Maybe, why }));
    let cause = StreamEnd::Status { status: 503, retry_after: Some(Duration::from_secs(60)) };
    let unresumed = CallError::NoResponse { id: 7.into(), attempts: 2, any_message: false, cause };
    errors.extend([CallError::SessionEnded, CallError::TooManyRounds(3), unresumed]);
    errors
}

/// What a list has left out, with a secret in its name.
fn skipped() -> impl Strategy<Value = SkippedList> {
    (0..3_usize).prop_map(|count| {
        let element = RawJson::from(Object::new().with("name", SECRET));
        let mut skipped = SkippedList::default();
        (0..count).for_each(|index| skipped.push(index, &element, &DecodeError::new("`x` is missing")));
        skipped
    })
}

fn any_input() -> impl Strategy<Value = Input<String>> {
    let key = any::<String>;
    let generation = || any::<u64>().prop_map(Generation);
    let spec = || {
        let lists = list(proptest::sample::select(&ListKind::ALL[..]), 0..4);
        (lists, any::<bool>(), "[a-z\u{e9} ]{0,9}").prop_map(|(lists, resolve, text)| {
            let lists = lists.into_iter().fold(Lists::NONE, Lists::with);
            ServerSpec { resolve, lists, catalogue: catalogue(&text), ..spec() }
        })
    };
    let listing = proptest::sample::select(&ListKind::ALL[..]).prop_flat_map(|list| {
        let listings = [Listing::none(list), catalogue("a").get(list).unwrap()];
        let loaded = (proptest::sample::select(listings.to_vec()), skipped())
            .prop_map(|(of, skipped)| LoadedList::new(of, skipped));
        let outcome = prop_oneof![loaded.prop_map(Ok), proptest::sample::select(call_errors()).prop_map(Err)];
        outcome.prop_map(move |outcome| (list, outcome))
    });
    let ended = prop_oneof![
        Just(Termination::Requested),
        proptest::sample::select(closed()).prop_map(Termination::Closed),
        Just(Termination::Negotiation(negotiation())),
    ];
    let session_end = prop_oneof![
        Just(StreamEnd::Error(rpc_error())),
        any::<(u16, Option<u32>)>().prop_map(|(status, after)| {
            let retry_after = after.map(|after| Duration::from_secs(after.into()));
            StreamEnd::Status { status, retry_after }
        }),
    ];
    let change = prop_oneof![
        Just(Change::Tools),
        Just(Change::Prompts),
        Just(Change::Resources),
        any::<String>().prop_map(Change::Resource),
    ];
    let kind = prop_oneof![any::<String>().prop_map(CallKind::Tool), Just(CallKind::Read), Just(CallKind::Other)];
    let plan =
        (kind, any::<Option<Duration>>()).prop_map(|(kind, timeout)| CallPlan { timeout, ..CallPlan::new(kind) });
    let outcome = proptest::sample::select(call_errors());
    let outcome = proptest::option::of(outcome).prop_map(|error| error.map_or(Ok(()), Err));
    prop_oneof![
        (key(), spec()).prop_map(|(key, spec)| Input::Add(key, spec)),
        (key(), spec()).prop_map(|(key, spec)| Input::Replace(key, spec)),
        key().prop_map(Input::Remove),
        key().prop_map(Input::Reconnect),
        generation().prop_map(|of| Input::Resolved(of, Ok(Arc::new(config())))),
        (generation(), any::<String>()).prop_map(|(of, why)| Input::Resolved(of, Err(why))),
        generation().prop_map(|of| Input::Ready(of, capabilities())),
        (generation(), ended).prop_map(|(of, why)| Input::Ended(of, why)),
        (generation(), session_end).prop_map(|(of, end)| Input::SessionLost(of, end)),
        (generation(), change).prop_map(|(of, change)| Input::Changed(of, change)),
        (generation(), any::<u32>()).prop_map(|(of, pings)| Input::PingMissed(of, pings)),
        (generation(), listing).prop_map(|(of, (list, listing))| Input::Loaded(of, list, listing)),
        (key(), plan).prop_map(|(key, plan)| Input::Call(key, plan)),
        (any::<u64>(), outcome).prop_map(|(ticket, outcome)| Input::Finished(Ticket(ticket), outcome)),
        any::<u64>().prop_map(|ticket| Input::NotBegun(Ticket(ticket))),
        any::<u64>().prop_map(|ticket| Input::Cancel(Ticket(ticket))),
        Just(Input::Close),
        Just(Input::Tick),
    ]
}

proptest! {
    #[test]
    fn input_of_a_supervisor_round_trips(input in any_input()) {
        let line = RawJson::encode(&input).unwrap();
        prop_assert!(!line.as_bytes().contains(&b'\n'));
        prop_assert_eq!(line.decode::<Input<String>>(), Ok(input));
    }

    /// Any inputs, in any order, are recorded and replayed, and no secret is in a redacted file.
    #[test]
    fn any_inputs_of_a_supervisor_are_replayed(
        inputs in list((0..40_000u64, any_input()), 0..40),
        raw in any::<bool>(),
    ) {
        let redaction = if raw { Redaction::Raw } else { Redaction::Redacted };
        let (recorder, kept) = recorder(redaction);
        let mut supervisor = Supervisor::recorded(Supervision::default(), SEED, recorder);
        let mut now = Instant::ZERO;
        for (millis, input) in inputs {
            now = now + Duration::from_millis(millis);
            let _ = supervisor.apply(now, few(input));
            core::iter::from_fn(|| supervisor.poll_output()).for_each(drop);
        }
        let file = kept.lock().unwrap().clone();
        let recording = SupervisorRecording::<String>::read(&file).unwrap();
        prop_assert!(recording.replay().is_ok());
        prop_assert!(raw || !String::from_utf8(file).unwrap().contains(SECRET));
    }
}

/// Returns the input with few keys and numbers, so that it is about something.
fn few(input: Input<String>) -> Input<String> {
    let key = |key: String| String::from(if key.len().is_multiple_of(2) { "a" } else { "b" });
    let client = |of: Generation| Generation(of.0 % 8);
    match input {
        Input::Add(of, spec) => Input::Add(key(of), spec),
        Input::Replace(of, spec) => Input::Replace(key(of), spec),
        Input::Remove(of) => Input::Remove(key(of)),
        Input::Reconnect(of) => Input::Reconnect(key(of)),
        Input::Resolved(of, config) => Input::Resolved(client(of), config),
        Input::Ready(of, capabilities) => Input::Ready(client(of), capabilities),
        Input::Ended(of, why) => Input::Ended(client(of), why),
        Input::SessionLost(of, cause) => Input::SessionLost(client(of), cause),
        Input::Changed(of, change) => Input::Changed(client(of), change),
        Input::PingMissed(of, pings) => Input::PingMissed(client(of), pings),
        Input::Loaded(of, list, listing) => Input::Loaded(client(of), list, listing),
        Input::Call(of, plan) => Input::Call(key(of), plan),
        Input::Finished(ticket, outcome) => Input::Finished(Ticket(ticket.0 % 8), outcome),
        Input::NotBegun(ticket) => Input::NotBegun(Ticket(ticket.0 % 8)),
        Input::Cancel(ticket) => Input::Cancel(Ticket(ticket.0 % 8)),
        Input::Close | Input::Tick => input,
    }
}

fn connected(supervisor: &mut Supervisor<String>) -> Generation {
    let connected = |output| match output {
        Output::Connect { generation, .. } => Some(generation),
        _ => None,
    };
    core::iter::from_fn(|| supervisor.poll_output()).filter_map(connected).last().unwrap()
}

/// A server that connects, is called, is lost, is reconnected, replaced and closed.
fn run(redaction: Redaction) -> Vec<u8> {
    let (recorder, kept) = recorder(redaction);
    let at = Instant::from_millis;
    let mut supervisor: Supervisor<String> = Supervisor::recorded(Supervision::default(), SEED, recorder);
    let mut first = spec();
    let mut config = ClientConfig::program(Program::new("serve").arg(SECRET).env("KEY", SECRET));
    config.headers = mcp_proto::exchange::Headers::new().with("x-key", SECRET);
    first.config = Arc::new(config);
    supervisor.add(at(1), "a".into(), first.clone()).unwrap();
    assert!(supervisor.add(at(1), "a".into(), first).is_err());
    let ticket = supervisor.call(at(2), &"a".into(), CallPlan::new(CallKind::Read)).unwrap();
    let client = connected(&mut supervisor);
    supervisor.ready(at(3), client, &capabilities());
    supervisor.loaded(at(4), client, ListKind::Tools, Ok(catalogue("other").get(ListKind::Tools).unwrap().into()));
    let lost = CallError::Closed { sent: Sent::Maybe, why: exited() };
    supervisor.finished(at(5), ticket, Err(&lost));
    supervisor.ended(at(6), client, Termination::Closed(exited()));
    while let Some(due) = supervisor.poll_timeout().filter(|due| *due < at(1000)) {
        supervisor.handle_timeout(due);
    }
    let client = connected(&mut supervisor);
    supervisor.ready(at(1001), client, &capabilities());
    supervisor.finished(at(1001), ticket, Ok(()));
    supervisor.changed(at(1002), client, &Change::Resource(format!("file:///?token={SECRET}")));
    supervisor.replace(at(1003), &"a".into(), spec());
    assert!(supervisor.call(at(1004), &"none".into(), CallPlan::new(CallKind::Other)).is_err());
    supervisor.ended(at(1005), client, Termination::Negotiation(negotiation()));
    supervisor.close(at(1006));
    let open: Vec<_> = core::iter::from_fn(|| supervisor.poll_output())
        .filter_map(|output| if let Output::Close(generation) = output { Some(generation) } else { None })
        .collect();
    open.into_iter().for_each(|client| supervisor.ended(at(1007), client, Termination::Requested));
    core::iter::from_fn(|| supervisor.poll_output()).for_each(drop);
    supervisor.handle_timeout(at(1008));
    kept.lock().unwrap().clone()
}

// covers: S0-61
#[test]
fn run_of_a_supervisor_is_replayed() {
    for redaction in [Redaction::Raw, Redaction::Redacted] {
        let file = run(redaction);
        assert_eq!(engine_of(&file).as_deref(), Some("supervisor"));
        let recording = SupervisorRecording::<String>::read(&file).unwrap();
        let summary = recording.replay().unwrap();
        assert!(summary.complete && recording.complete && recording.redaction == redaction);
        assert_eq!(summary.time, Duration::from_millis(1007));
        let text = String::from_utf8(file).unwrap();
        assert!(
            text.contains("{\"Output\":{\"Run\":[1,2,")
                && text.contains("{\"Output\":{\"End\":1}}")
                && text.contains("{\"Output\":{\"Event\":[\"reconnecting\""),
            "{text}"
        );
        assert_eq!(text.contains(SECRET), redaction == Redaction::Raw, "{text}");
        assert!(text.contains("tasks"), "no revision but one has this capability: {text}");
        // The delay of the attempt to connect again is longer by a random part.
        let other = text.replacen("\"seed\":[7,", "\"seed\":[8,", 1);
        let replayed = SupervisorRecording::<String>::read(other.as_bytes()).unwrap().replay();
        assert!(replayed.is_err(), "{replayed:?}");
    }
}

#[test]
fn read_error_of_a_supervisor_names_its_line() {
    let file = String::from_utf8(run(Redaction::Raw)).unwrap();
    let lines = file.lines().count();
    let failed = |file: &str| SupervisorRecording::<String>::read(file.as_bytes()).expect_err("no recording");
    let inputs = file.matches("{\"Input\":").count();
    let cases = [
        (String::new(), 1, ReadProblem::NotARecording),
        (file.replacen("\"supervisor\"", "\"client\"", 1), 1, ReadProblem::NotARecording),
        ("{\"mcp-recording\":true}\n".into(), 1, ReadProblem::NotARecording),
        (file.replacen("recording\":3", "recording\":4", 1), 1, ReadProblem::Format(4)),
        (file[..file.len() - 1].into(), lines, ReadProblem::Cut),
        (format!("{file}{{\"Output\":0}}\n"), lines + 1, ReadProblem::AfterEnd),
        (file.replacen(&format!("\"inputs\":{inputs}"), "\"inputs\":0", 1), lines, ReadProblem::Count),
    ];
    for (file, line, why) in cases {
        assert_eq!(failed(&file), ReadError { line, why }, "{file}");
    }
    for (old, new) in [("\"start\":", "\"s\":"), (",\"Close\"]", ",\"x\"]"), ("{\"Output\":", "{\"Put\":")] {
        let e = failed(&file.replacen(old, new, 1));
        assert!(matches!(e.why, ReadProblem::Line(_)) && !e.to_string().is_empty(), "{e}");
    }
}

#[test]
fn failed_sink_of_a_supervisor_is_reported_once() {
    let mut lines = 0;
    let sink = move |_: &[u8]| {
        lines += 1;
        if lines < 4 { Ok(()) } else { Err("disk full".into()) }
    };
    let mut supervisor: Supervisor<String> =
        Supervisor::recorded(Supervision::default(), SEED, Recorder::new(Redaction::Raw, sink));
    let mut told = Vec::new();
    for _ in 0..5 {
        assert_eq!(supervisor.apply(Instant::ZERO, Input::Tick), InputReply::Nothing);
        told.extend(core::iter::from_fn(|| supervisor.poll_output()));
    }
    assert_eq!(told, [Output::Event(Event::RecordingEnded { why: "disk full".into() })]);
}

/// "Never" is a delay as well.
#[test]
fn longest_delays_do_not_overflow() {
    let mut policy = Supervision { waits: vec![Duration::MAX], ..Supervision::default() };
    policy.when_down = WhenDown::Probe { first: Duration::MAX, max: Duration::MAX };
    let mut supervisor = Supervisor::new(policy, SEED);
    supervisor.add(Instant::ZERO, "a", ServerSpec::new(config())).unwrap();
    for generation in [1, 2] {
        supervisor.ended(Instant::ZERO, Generation(generation), Termination::Closed(Closed::Eof));
        assert!(supervisor.poll_timeout() > Some(Instant::from_millis(u64::MAX / 2)));
        supervisor.reconnect(Instant::ZERO, &"a");
    }
}

/// Whatever a policy says, an input returns.
#[test]
fn policy_without_delays_does_not_keep_the_supervisor() {
    let zero = Duration::ZERO;
    let mut policy =
        Supervision { waits: vec![zero], max_attempts: usize::MAX, within: zero, ..Supervision::default() };
    (policy.close_timeout, policy.when_down) = (zero, WhenDown::Probe { first: zero, max: zero });
    let mut supervisor = Supervisor::new(policy, SEED);
    let mut config = ClientConfig::program(Program::new("serve"));
    config.connect_timeout = zero;
    let spec = ServerSpec { resolve: true, ..ServerSpec::new(config) };
    supervisor.add(Instant::ZERO, "a", spec).unwrap();
    let mut attempts = 0;
    for millis in 0..10 {
        supervisor.handle_timeout(Instant::from_millis(millis));
        attempts += core::iter::from_fn(|| supervisor.poll_output())
            .filter(|output| matches!(output, Output::Resolve { .. }))
            .count();
    }
    assert!((8..=12).contains(&attempts), "{attempts}");
}
