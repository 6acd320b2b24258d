//! Recordings read back exactly, and replays reproduce their runs.

mod findings;
mod login;
mod proxied;
mod web;

use super::log::{ReadLine, WrittenLine};
use super::value::{BytesForm, Value};
use super::*;
use crate::call::{CallId, CallOptions, LogLevel, RawCall};
use crate::client::{
    Cache, CancelSignal, ClientCommands, Event, FetchId, IdPolicy, OnMalformed, Policy, ResultValidation, Target,
    Termination, Verdict,
};
use crate::error::StreamEnd;
use crate::exchange::{
    Action, Closed, ConnectionId, Credentials, Endpoint, ExitStatus, Group, Inherit, IoEvent, Peer, PeerKind, Program,
};
use crate::hook::Ruling;
use crate::input::{ClientCommand, Input, InputAnswer, InputKey, NotificationId, Watch, WiredClientInput};
use crate::model::elicitation::ElicitResult;
use crate::model::icon::{Icon, Theme};
use crate::model::roots::Roots;
use crate::model::sampling::SampleResult;
use crate::rpc::{EncodeError, ErrorObject, Object, RawJson};
use crate::version::{ProtocolVersion, Versions};
use alloc::string::ToString;
use alloc::vec;
use bytes::Bytes;
use core::net::IpAddr;
use core::time::Duration;
use proptest::collection::vec as list;
use proptest::prelude::*;
use std::sync::Mutex;

const SEED: [u8; 32] = [7; 32];

/// Each error keeps its kind, and has none of its texts any more.
#[test]
fn bare_errors_have_no_texts() {
    const SECRET: &str = "hunter2";
    for error in crate::error::tests::calls(SECRET) {
        let bare = bare::call(&error);
        assert!(!format!("{bare:?}").contains(SECRET), "{bare:?}");
        assert_eq!(core::mem::discriminant(&bare), core::mem::discriminant(&error));
    }
    for why in crate::error::tests::closed(SECRET).map(Termination::Closed) {
        let bare = bare::termination(&why);
        assert!(!format!("{bare:?}").contains(SECRET), "{bare:?}");
        let end = match why {
            Termination::Closed(why) => bare::stream_end(&StreamEnd::Closed(why)),
            other => panic!("{other:?}"),
        };
        assert!(!format!("{end:?}").contains(SECRET), "{end:?}");
    }
}

/// The first response to a legacy client.
const HELLO: &[u8] =
    b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"protocolVersion\":\"2025-06-18\",\"capabilities\":{},\
\"serverInfo\":{\"name\":\"s\",\"version\":\"1\"}}}\n";

fn config() -> ClientConfig {
    let inherit = Inherit::Only(vec!["HOME".into()]);
    let program = Program::new("serve").arg("--key=k").env("A", "b").inherit(inherit).group(Group::Inherit);
    let mut config = ClientConfig::program(program.current_dir("/"));
    config.info.title = Some("Title \"1\"\n".into());
    config.info = config.info.icon(Icon::new("data:,").mime("image/png").theme(Theme::Dark));
    config.info.other = Object::new().with("color", "blue");
    config.capabilities.sampling.get_or_insert_default().other =
        Object::new().with("deep", Object::new().with("er", 1u64));
    config.policy = Policy::Modern;
    config.versions = Versions::new([ProtocolVersion::V2025_03_26, ProtocolVersion::V2026_07_28]);
    config.verdict = Some(Verdict::new(ProtocolVersion::V2025_11_25));
    config.timeout = None;
    config.watch = Watch::new().with_prompts().with_uri("file:///a");
    config.log_level = Some(LogLevel::Notice);
    config.cache = Some(Cache { stale_on_error: Some(Duration::MAX), ..Cache::default() });
    config.max_total = Duration::MAX;
    config.compat.cancel_signal = CancelSignal::LocalOnly;
    config.ping = Some(Duration::from_secs(1));
    config.compat.ids = IdPolicy::Snowflake { node: 1023 };
    config.compat.malformed = OnMalformed::Fatal;
    config.origin_unix = Duration::new(1_700_000_000, 1);
    config.validate = Some(ResultValidation::content());
    config.limits.client.max_queued_events = usize::MAX;
    config.limits.server.handshake_timeout = Some(Duration::from_nanos(1));
    config
}

#[test]
fn configuration_round_trips() {
    for config in [
        config(),
        ClientConfig::given(),
        ClientConfig::unix("/run/x.sock"),
        ClientConfig::url("https://[::1]:8080/mcp?q=%20#part").unwrap(),
    ] {
        assert_eq!(RawJson::encode(&config).unwrap().decode().as_ref(), Ok(&config));
    }
}

fn json() -> impl Strategy<Value = Object> {
    let value = prop_oneof![
        Just(RawJson::null()),
        any::<i64>().prop_map(RawJson::from),
        any::<String>().prop_map(|text| text.as_str().into()),
        list(any::<bool>().prop_map(RawJson::from), 0..3).prop_map(RawJson::from),
        Just(RawJson::parse("{\"a\" : [1.50, {}] }").unwrap()),
    ];
    list((any::<String>(), value), 0..4).prop_map(|members| members.into_iter().collect())
}

fn closed() -> impl Strategy<Value = Closed> {
    prop_oneof![
        Just(Closed::Eof),
        Just(Closed::Reset),
        Just(Closed::Refused),
        Just(Closed::Unresolved),
        Just(Closed::Aborted),
        Just(Closed::Timeout),
        any::<String>().prop_map(Closed::Unreachable),
        any::<String>().prop_map(Closed::Broken),
        (any::<i32>(), any::<String>()).prop_map(|(n, text)| Closed::Exited(ExitStatus::exited(n).with_stderr(text))),
        any::<i32>().prop_map(|n| Closed::Exited(ExitStatus::killed(n))),
    ]
}

fn peer() -> impl Strategy<Value = Peer> {
    let kind = prop_oneof![Just(PeerKind::Given), Just(PeerKind::Unix), Just(PeerKind::Tcp)];
    let credentials = any::<Option<(Option<u32>, u32, u32)>>();
    (any::<Option<String>>(), kind, any::<Option<IpAddr>>(), credentials, any::<Option<u64>>()).prop_map(
        |(name, kind, address, credentials, connection)| {
            let credentials = credentials.map(|(pid, uid, gid)| Credentials { pid, uid, gid });
            Peer { name, kind, address, credentials, connection }
        },
    )
}

fn level() -> impl Strategy<Value = Option<LogLevel>> {
    proptest::option::of(proptest::sample::select(&LogLevel::ALL[..]))
}

fn any_input() -> impl Strategy<Value = WiredClientInput> {
    let wire = prop_oneof![
        peer().prop_map(IoEvent::Opened),
        list(any::<u8>(), 0..9).prop_map(|bytes| IoEvent::Read(bytes.into())),
        any::<String>().prop_map(|text| IoEvent::Read(text.into())),
        Just(IoEvent::ReadClosed),
        any::<usize>().prop_map(IoEvent::Written),
        closed().prop_map(IoEvent::Closed),
    ];
    let time = || any::<Duration>();
    let options =
        (proptest::option::of(proptest::option::of(time())), any::<Option<bool>>(), any::<Option<Duration>>());
    let options =
        (options, any::<bool>(), any::<bool>(), level()).prop_map(|(times, progress, repeatable, log_level)| {
            let (timeout, reset_on_progress, max_total) = times;
            CallOptions {
                timeout,
                reset_on_progress,
                max_total,
                progress,
                repeatable,
                log_level,
                ..CallOptions::default()
            }
        });
    let params = prop_oneof![
        4 => json().prop_map(Ok),
        1 => any::<String>().prop_map(|text| Err(EncodeError::new(text))),
    ];
    let call = (any::<String>(), params, options)
        .prop_map(|(method, params, options)| ClientCommand::Call(RawCall { method: method.into(), params, options }));
    let error = (any::<i64>(), any::<String>(), proptest::option::of(json()))
        .prop_map(|(code, message, data)| ErrorObject { code, message, data: data.map(RawJson::from) });
    let answer = prop_oneof![
        json().prop_map(|content| InputAnswer::Elicitation(ElicitResult::Accept(content))),
        Just(InputAnswer::Elicitation(ElicitResult::Decline)),
        Just(InputAnswer::Elicitation(ElicitResult::Cancel)),
        json().prop_map(|other| InputAnswer::Sampling(SampleResult { other, ..SampleResult::text("m", "t") })),
        json().prop_map(|other| InputAnswer::Roots(Roots { other, ..Roots::new(["file:///a"]) })),
        error.prop_map(InputAnswer::Error),
    ];
    let command = prop_oneof![
        call,
        (any::<u64>(), any::<Option<String>>()).prop_map(|(id, reason)| ClientCommand::Cancel(CallId(id), reason)),
        (any::<u64>(), answer).prop_map(|(id, answer)| ClientCommand::Answer(InputKey::new(id), answer)),
        (any::<String>(), json()).prop_map(|(method, params)| ClientCommand::Notify(method, params)),
        (any::<String>(), json()).prop_map(|(method, params)| ClientCommand::NotifyTracked(method, params)),
        any::<u64>().prop_map(|id| ClientCommand::Untrack(NotificationId(id))),
        (any::<[bool; 3]>(), list(any::<String>(), 0..3)).prop_map(|([tools, prompts, resources], uris)| {
            let uris = uris.into_iter().collect();
            ClientCommand::Watch(Watch { tools, prompts, resources, uris, ..Watch::new() })
        }),
        level().prop_map(ClientCommand::LogLevel),
        Just(ClientCommand::RootsChanged),
        Just(ClientCommand::CredentialsChanged),
        any::<String>().prop_map(ClientCommand::Elicited),
        any::<u64>().prop_map(|id| ClientCommand::CancelFetch(FetchId(id))),
        Just(ClientCommand::Close),
    ];
    prop_oneof![
        1 => Just(Input::Tick),
        5 => (any::<u64>(), wire).prop_map(|(id, wire)| Input::Event(ConnectionId(id), wire)),
        5 => command.prop_map(Input::Command),
    ]
}

/// Returns the mask for a client with a duplex connection.
fn mask(redaction: Redaction) -> Mask {
    Mask::new(redaction, &ClientConfig::given().target)
}

fn line_of(input: &WiredClientInput, redaction: Redaction) -> RawJson {
    let input = mask(redaction).input(input);
    WrittenLine::<WiredClient>::Input(Instant::new(Duration::new(3, 5)), &input).json().unwrap()
}

/// Reads the line of an input.
fn input_of(line: &RawJson) -> WiredClientInput {
    match line.decode::<ReadLine<WiredClient>>() {
        Ok(ReadLine::<WiredClient>::Input(at, input)) if at == Instant::new(Duration::new(3, 5)) => input,
        other => panic!("{other:?}"),
    }
}

proptest! {
    #[test]
    fn input_round_trips(input in any_input()) {
        let line = line_of(&input, Redaction::Raw);
        prop_assert!(!line.as_bytes().contains(&b'\n'));
        prop_assert_eq!(input_of(&line), input);
    }

    #[test]
    fn redaction_is_idempotent(input in any_input()) {
        let once = line_of(&input, Redaction::Redacted);
        prop_assert_eq!(line_of(&input_of(&once), Redaction::Redacted), once);
    }
}

#[test]
fn invalid_values_are_refused() {
    assert!(Instant::read(Duration::from_secs(u32::MAX.into())).is_ok());
    assert!(Instant::read(Duration::from_secs(1 << 32)).is_err());
    assert!(Bytes::read(BytesForm::Base64("?".into())).is_err());
    assert!(RawJson::read("[".into()).is_err());
    assert!(<Object as Value>::read("[]".into()).is_err());
    assert!(Option::<Option<Duration>>::read(vec![None, None]).is_err());
    let time = |nanos: &str| RawJson::parse(format!("{{\"secs\":{},\"nanos\":{nanos}}}", u64::MAX)).unwrap();
    assert_eq!(time("999999999").decode(), Ok(Duration::MAX));
    assert!(time("1000000000").decode::<Duration>().is_err());
}

/// Creates a recorder that writes to memory.
fn recorder(redaction: Redaction) -> (Recorder, Arc<Mutex<Vec<u8>>>) {
    let kept = Arc::<Mutex<Vec<u8>>>::default();
    let file = kept.clone();
    let sink = move |line: &[u8]| {
        assert!(line.is_empty() || line.ends_with(b"\n"));
        file.lock().unwrap().extend_from_slice(line);
        Ok(())
    };
    (Recorder::new(redaction, sink), kept)
}

fn drain(client: &mut WiredClient) -> usize {
    core::iter::from_fn(|| client.poll_output()).count()
}

/// Runs a client that receives more notifications than its application takes.
fn run(redaction: Redaction) -> Vec<u8> {
    let mut config = ClientConfig::given().with_elicitation();
    config.policy = Policy::Legacy;
    config.limits.client.max_queued_events = 2;
    let (recorder, kept) = recorder(redaction);
    let at = Instant::from_millis;
    let mut client = recorder.client(Arc::new(config), SEED, at(5));
    let channel = ConnectionId(1);
    client.handle_io(at(6), channel, IoEvent::Opened(Peer::default()));
    client.handle_io(at(7), channel, IoEvent::Read(Bytes::from_static(HELLO)));
    // Not UTF-8, and not a message; more than the queue holds.
    for _ in 0..5 {
        client.handle_io(at(8), channel, IoEvent::Read(Bytes::from_static(b"\xff\n")));
    }
    let _ = client.poll_output();
    let call = client.call(at(9), crate::call::ping()).unwrap();
    client.cancel(at(10), call.id(), Some("enough"));
    drain(&mut client);
    // An earlier instant, an early tick, an event of an unknown connection, a refusal.
    client.handle_timeout(at(1));
    client.handle_io(at(11), ConnectionId(99), IoEvent::ReadClosed);
    let unencodable = crate::call::Call::<crate::call::Ping>::new("m", Err(EncodeError::new("no")));
    assert!(client.call(at(12), unencodable).is_err());
    client.close(at(13));
    drain(&mut client);
    let status = ExitStatus::killed(9).with_stderr("password hunter2\nbye");
    client.handle_io(at(14), channel, IoEvent::Closed(Closed::Exited(status)));
    drain(&mut client);
    client.handle_timeout(at(15));
    kept.lock().unwrap().clone()
}

#[test]
fn run_is_replayed_with_losses_refusals_and_late_events() {
    for redaction in [Redaction::Raw, Redaction::Redacted] {
        let file = run(redaction);
        let recording = Recording::read(&file).unwrap();
        let summary = recording.replay().unwrap();
        assert!(summary.complete);
        assert_eq!((summary.inputs, summary.time), (14, Duration::from_millis(9)));
        let text = String::from_utf8(file).unwrap();
        assert!(text.contains("\"what\":\"lost\"") && text.contains("{\"Refused\":"), "{text}");
        assert_eq!(text.contains("hunter2"), redaction == Redaction::Raw);
    }
}

#[test]
fn run_with_a_cache_is_replayed() {
    for redaction in [Redaction::Raw, Redaction::Redacted] {
        let (recorder, kept) = recorder(redaction);
        let config = ClientConfig { policy: Policy::Legacy, cache: Some(Cache::default()), ..ClientConfig::given() };
        let mut client = recorder.client(Arc::new(config), SEED, Instant::ZERO);
        let (at, channel) = (Instant::from_millis, ConnectionId(1));
        client.handle_io(at(1), channel, IoEvent::Opened(Peer::default()));
        client.handle_io(at(2), channel, IoEvent::Read(Bytes::from_static(HELLO)));
        let _ = client.call(at(3), crate::model::tools::list()).unwrap();
        let page = b"{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"tools\":[],\"ttlMs\":5,\"api_key\":\"k\"}}\n";
        client.handle_io(at(4), channel, IoEvent::Read(Bytes::from_static(page)));
        for time in [5, 8, 9] {
            let _ = client.call(at(time), crate::model::tools::list()).unwrap();
        }
        client.credentials_changed(at(10));
        client.close(at(11));
        assert_eq!((client.stats().cache.hits, client.stats().cache.misses), (2, 2));
        drain(&mut client);
        client.handle_io(at(12), channel, IoEvent::Closed(Closed::Eof));
        drain(&mut client);
        let file = kept.lock().unwrap().clone();
        assert!(Recording::read(&file).unwrap().replay().unwrap().complete);
    }
}

#[test]
fn websocket_is_recorded_as_it_is_or_not_at_all() {
    for redaction in [Redaction::Raw, Redaction::Redacted] {
        let (recorder, kept) = recorder(redaction);
        let config = ClientConfig::url("ws://localhost/mcp?token=secret").unwrap();
        let mut client = recorder.client(Arc::new(config), SEED, Instant::ZERO);
        let channel = ConnectionId(1);
        client.handle_io(Instant::ZERO, channel, IoEvent::Opened(Peer::default()));
        client.handle_io(Instant::ZERO, channel, IoEvent::Read(Bytes::from_static(b"HTTP/1.1 404 \r\n\r\n")));
        client.handle_io(Instant::ZERO, channel, IoEvent::Closed(Closed::Aborted));
        let events = core::iter::from_fn(|| client.poll_output());
        let ended = events.filter(|action| format!("{action:?}").contains("RecordingEnded")).count();
        let file = kept.lock().unwrap().clone();
        match redaction {
            Redaction::Raw => {
                assert_eq!((Recording::read(&file).unwrap().replay().unwrap().complete, ended), (true, 0));
            }
            Redaction::Redacted => assert_eq!((file.len(), ended), (0, 1)),
        }
    }
}

#[test]
fn read_error_names_its_line() {
    let file = String::from_utf8(run(Redaction::Raw)).unwrap();
    let lines = file.lines().count();
    let failed = |file: &str| Recording::read(file.as_bytes()).expect_err("no recording");
    let cases = [
        (String::new(), 1, ReadProblem::NotARecording),
        ("seed = 1\n".into(), 1, ReadProblem::NotARecording),
        ("{\"mcp-recording\":true}\n".into(), 1, ReadProblem::NotARecording),
        (file.replacen("recording\":3", "recording\":4", 1), 1, ReadProblem::Format(4)),
        (file[..file.len() - 1].into(), lines, ReadProblem::Cut),
        (format!("{file}{{\"Note\":{{\"Denied\":[0,\"\"]}}}}\n"), lines + 1, ReadProblem::AfterEnd),
        (file.replacen("\"inputs\":14", "\"inputs\":15", 1), lines, ReadProblem::Count),
    ];
    for (file, line, why) in cases {
        assert_eq!(failed(&file), ReadError { line, why }, "{file}");
    }
    for (old, new) in [
        ("\"version\":\"", "\"version\":[],\"v\":\""),
        ("\"ReadClosed\"", "\"x\""),
        ("\"start\":", "\"s\":"),
        ("{\"Output\":", "{\"Put\":"),
    ] {
        let e = failed(&file.replacen(old, new, 1));
        assert!(matches!(e.why, ReadProblem::Line(_)) && !e.to_string().is_empty(), "{e}");
    }
}

#[test]
fn failed_sink_is_reported_once_and_dropped() {
    let dropped = Arc::new(());
    let held = dropped.clone();
    let mut lines = 0;
    let sink = move |_: &[u8]| {
        let _held = &held;
        lines += 1;
        if lines < 4 { Ok(()) } else { Err("disk full".into()) }
    };
    let mut client = Recorder::new(Redaction::Raw, sink).client(Arc::new(ClientConfig::given()), SEED, Instant::ZERO);
    let mut told = 0;
    for _ in 0..5 {
        client.handle_timeout(Instant::ZERO);
        while let Some(action) = client.poll_output() {
            if let Action::Event(Event::Diagnostic(diagnostic)) = action {
                assert_eq!(diagnostic.to_string(), "recording-ended: disk full (nothing more is recorded)");
                told += 1;
            }
        }
    }
    assert_eq!((told, Arc::strong_count(&dropped)), (1, 1));
}

/// Everything that varies depends on the seed: with another one, the client waits for a different
/// time.
#[test]
fn the_seed_is_part_of_a_run() {
    let mut config = ClientConfig::program(Program::new("serve"));
    (config.policy, config.watch) = (Policy::Modern, Watch::new().with_tools());
    let (recorder, kept) = recorder(Redaction::Raw);
    let mut client = recorder.client(Arc::new(config), SEED, Instant::ZERO);
    client.handle_io(Instant::ZERO, ConnectionId(1), IoEvent::Opened(Peer::default()));
    // The server ends the subscription, and the client opens it again after a while.
    let said = concat!(
        r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"#,
        r#""capabilities":{"tools":{"listChanged":true}}}}"#,
        "\n",
        r#"{"jsonrpc":"2.0","id":2,"result":{"resultType":"complete","#,
        r#""_meta":{"io.modelcontextprotocol/subscriptionId":2}}}"#,
        "\n",
    );
    client.handle_io(Instant::ZERO, ConnectionId(1), IoEvent::Read(Bytes::from_static(said.as_bytes())));
    drain(&mut client);
    let file = String::from_utf8(kept.lock().unwrap().clone()).unwrap();
    assert!(file.contains("\"reconnecting\"") && Recording::read(file.as_bytes()).unwrap().replay().is_ok(), "{file}");
    let other = file.replacen("\"seed\":[7,", "\"seed\":[8,", 1);
    let difference = Recording::read(other.as_bytes()).unwrap().replay().expect_err("another seed");
    assert!(difference.recorded.is_some_and(|line| line.contains("reconnecting")));
}

/// A hook is a function of the application: its refusals and replacements are recorded, and the
/// replay does not call it.
#[test]
fn rulings_of_a_hook_are_replayed() {
    for redaction in [Redaction::Raw, Redaction::Redacted] {
        let mut config = ClientConfig::given();
        config.policy = Policy::Legacy;
        let asked = core::sync::atomic::AtomicUsize::new(0);
        config.on_message = Some(crate::hook::MessageHook::new(move |message| {
            // Each ping in another way, which a function of the message alone could not do.
            let n =
                asked.fetch_add(usize::from(message.method() == Some("ping")), core::sync::atomic::Ordering::Relaxed);
            match n % 3 {
                0 => Ok(Ruling::Pass),
                1 => Err(crate::hook::Denial::new("every third one")),
                _ => Ok(Ruling::Replace(message.raw().replacen('}', ",\"params\":{\"token\":\"secret\"}}", 1).into())),
            }
        }));
        let (recorder, kept) = recorder(redaction);
        let mut client = recorder.client(Arc::new(config), SEED, Instant::ZERO);
        client.handle_io(Instant::ZERO, ConnectionId(1), IoEvent::Opened(Peer::default()));
        client.handle_io(Instant::ZERO, ConnectionId(1), IoEvent::Read(Bytes::from_static(HELLO)));
        for _ in 0..6 {
            client.call(Instant::ZERO, crate::call::ping()).unwrap();
            drain(&mut client);
        }
        let file = kept.lock().unwrap().clone();
        let text = String::from_utf8(file.clone()).unwrap();
        let notes = ["Denied", "Replaced"].map(|note| text.matches(&format!("{{\"Note\":{{\"{note}\":")).count());
        assert_eq!(notes, [2, 2], "{text}");
        assert_eq!(text.contains("secret"), redaction == Redaction::Raw);
        assert_eq!(Recording::read(&file).unwrap().replay().map(|summary| summary.inputs), Ok(8));
        for note in ["Denied", "Replaced"] {
            let note = format!("{{\"Note\":{{\"{note}\":");
            let without: String = text.split_inclusive('\n').filter(|line| !line.starts_with(&note)).collect();
            assert!(Recording::read(without.as_bytes()).unwrap().replay().is_err());
        }
    }
}

/// JSON that is nested too deeply cannot be read back, so it is not recorded. The lines before it
/// stay usable.
#[test]
fn unreadable_input_ends_the_recording() {
    let deep = |depth: usize| RawJson::parse("[".repeat(depth) + &"]".repeat(depth)).unwrap();
    let (recorder, kept) = recorder(Redaction::Redacted);
    let mut client = recorder.client(Arc::new(ClientConfig::given()), SEED, Instant::ZERO);
    for depth in [127, 128] {
        drain(&mut client);
        let _ = client.notify(Instant::ZERO, "m", Object::new().with("deep", deep(depth)));
    }
    let Some(Action::Event(Event::Diagnostic(diagnostic))) = client.poll_output() else { panic!("a diagnostic") };
    assert_eq!(diagnostic.kind, crate::error::DiagnosticKind::RecordingEnded);
    let recording = Recording::read(&kept.lock().unwrap()).unwrap();
    assert_eq!(recording.replay().map(|summary| (summary.inputs, summary.complete)), Ok((1, false)));
}

#[test]
fn difference_shows_the_first_divergence() {
    let long = "x".repeat(1000);
    let difference = Difference { line: 3, recorded: Some(long.clone() + "a"), replayed: Some(long + "b") };
    let text = difference.to_string();
    assert!(text.len() < 1000 && text.contains("xa") && text.contains("xb") && text.contains('…'), "{text}");
    let nothing = Difference { line: 3, recorded: None, replayed: Some("b".into()) };
    assert_eq!(nothing.to_string(), "\nrecorded: nothing\nreplayed: b");
}

/// The header omits arguments, values of the environment and secrets that are known by name. The
/// names stay.
#[test]
fn redacted_head_has_no_field_values() {
    let mask = mask(Redaction::Redacted);
    let masked = mask.config(&config());
    let Target::Duplex(Endpoint::Program(program)) = &masked.target else { panic!("a program") };
    assert_eq!((program.command.as_str(), program.args.as_slice()), ("serve", &["xxxxxxx".to_string()][..]));
    assert_eq!(program.env, [("A".to_string(), Some("x".to_string()))]);
    assert_eq!(mask.config(&masked), masked);
}

/// Text of the application is masked in inputs as in outputs.
#[test]
fn redacted_input_holds_only_its_redacted_form() {
    let words = || "Bearer hunter2 password=hunter2".to_string();
    let error = ErrorObject { code: 1, message: words(), data: None };
    for command in [
        ClientCommand::Cancel(CallId(1), Some(words())),
        ClientCommand::Answer(InputKey::new(1), InputAnswer::Error(error)),
    ] {
        let line = line_of(&Input::Command(command), Redaction::Redacted);
        assert!(line.as_str().contains("Bearer xxxxxxx password=xxxxxxx"), "{line:?}");
    }
}

/// Events of a closed connection leave no state.
#[test]
fn mask_forgets_closed_connections() {
    let mut mask = mask(Redaction::Redacted);
    let known = |mask: &Mask| format!("{mask:?}").matches("ConnectionId").count();
    for number in 0..3 {
        let channel = ConnectionId(number);
        mask.follow(&Input::Event(channel, IoEvent::Opened(Peer::default())));
        assert_eq!(mask.read(channel, &Bytes::from_static(b"{\"token\":\"a")).as_ref(), b"{\"token\":\"x");
        assert_eq!(mask.read(channel, &Bytes::from_static(b"b")).as_ref(), b"x", "it goes on where it was");
        assert_eq!(known(&mask), 1);
        mask.follow(&Input::Event(channel, IoEvent::Closed(Closed::Eof)));
        assert_eq!(mask.written(channel, &Bytes::from_static(b"{\"token\":\"a")).as_ref(), b"{\"token\":\"x");
        assert_eq!(known(&mask), 0);
    }
}

/// The refusals of a hook are kept for a recording, and only while it exists.
#[test]
fn hook_is_dropped_with_the_recording() {
    let heard = Overheard::default();
    let kept = Arc::downgrade(&heard.0);
    let _hook = heard.listen(crate::hook::MessageHook::new(|_| Ok(())));
    assert!(kept.upgrade().is_some());
    drop(heard);
    assert!(kept.upgrade().is_none());
}
