//! No `Display` and no `Debug` writes a control character of a peer to a terminal or a log.

use super::*;
use crate::exchange::{
    ExitStatus, Origin, ProxyFailure, ProxyFailureKind, RedirectRefusal, TlsFailure, TlsFailureKind, UpgradeRefusal,
};
use crate::hook::{Denial, Direction, MessageHook};
use crate::input::InputRequest;
use crate::limits::FrameLimits;
use crate::model::resources::BadResource;
use crate::model::tools::BadTool;
use crate::redact::Url;
use crate::route::ToolError;
use crate::rpc::{Message, Notification, Object, RawJson};
use alloc::format;
use alloc::string::ToString;
use alloc::vec;
use std::sync::Mutex;

/// Clears a screen, forges a log line, sets a colour with C1, reverses the text, and hides a
/// character.
const HOSTILE: &str = "a\u{1b}[2Jb\r\nc\u{9b}31md\u{202e}e\u{2066}f\u{2028}g\u{7f}h\u{85}i\u{200b}j";
/// The same, as a `Display` writes it.
const SHOWN: &str = r"a\u{1b}[2Jb\r\nc\u{9b}31md\u{202e}e\u{2066}f\u{2028}g\u{7f}h\u{85}i\u{200b}j";

const PLAIN: &str = "Größe 100 %, \"naïve\" \\ 日本語 😀";

/// Returns whether a terminal or a line reader would interpret it, or show nothing. This list is
/// independent of that in the code.
fn is_control(c: char) -> bool {
    let c = u32::from(c);
    c < 0x20
        || (0x7f..0xa0).contains(&c)
        || (0x2028..=0x202e).contains(&c)
        || (0x200b..=0x200f).contains(&c)
        || (0x2060..=0x206f).contains(&c)
        || [0x61c, 0xfeff].contains(&c)
}

fn rpc(text: &str) -> ErrorObject {
    ErrorObject::new(-32000, text)
}

fn program(text: &str) -> Closed {
    Closed::Exited(ExitStatus::exited(1).with_stderr(format!("{text}\n")))
}

/// Returns an error with every optional part of a response.
fn http(text: &str, error: Option<ErrorObject>) -> HttpError {
    let auth = AuthHints { www_authenticate: vec![text.into(), text.into()], auth_server: Some(text.into()) };
    HttpError { error, auth, location: Some(text.into()), body_head: text.to_string().into(), ..HttpError::new(401) }
}

fn negotiation(cause: NegotiationCause, first: Option<Closed>) -> NegotiationError {
    let first = first.map(|why| Box::new(StartFailure { stage: Stage::Discover, why }));
    NegotiationError { stage: Stage::Initialize, cause, after: Duration::ZERO, first, earlier: Vec::new() }
}

pub(crate) fn closed(text: &str) -> [Closed; 8] {
    let text = || String::from(text);
    let redirect = Some(RedirectRefusal::Loop);
    let not_upgraded = UpgradeRefusal { location: Some(text()), redirect, ..UpgradeRefusal::new(302) };
    [
        Closed::Unreachable(text()),
        program(&text()),
        Closed::Broken(text()),
        Closed::Denied(text()),
        Closed::Tls(TlsFailure::new(TlsFailureKind::WrongName, text())),
        Closed::Proxy(ProxyFailure::new(ProxyFailureKind::Broken, "proxy:1", text())),
        Closed::WebSocket { code: Some(1008), reason: text() },
        Closed::NotUpgraded(Box::new(not_upgraded)),
    ]
}

fn streams(text: &str) -> Vec<StreamEnd> {
    let ends = closed(text).map(StreamEnd::Closed).into_iter();
    ends.chain([StreamEnd::ContentType(Some(text.into())), StreamEnd::Error(rpc(text))]).collect()
}

fn causes(text: &str) -> Vec<NegotiationCause> {
    let causes = closed(text).map(NegotiationCause::Closed).into_iter();
    let others = [
        NegotiationCause::Rpc(rpc(text)),
        NegotiationCause::Http(Box::new(http(text, None))),
        NegotiationCause::Decode(DecodeError::new(text)),
        NegotiationCause::NoMutualVersion(vec![text.into(), text.into()]),
        NegotiationCause::Denied(text.into()),
    ];
    causes.chain(others).collect()
}

fn negotiations(text: &str) -> Vec<NegotiationError> {
    let alone = causes(text).into_iter().map(|cause| negotiation(cause, None));
    let after = causes(text).into_iter().map(|cause| negotiation(cause, Some(Closed::Reset)));
    let first = closed(text).into_iter().map(|first| negotiation(NegotiationCause::Closed(Closed::Eof), Some(first)));
    alone.chain(after).chain(first).collect()
}

pub(crate) fn calls(text: &str) -> Vec<CallError> {
    let mut calls = vec![
        CallError::Rpc(rpc(text)),
        CallError::Cancelled { reason: Some(text.into()) },
        CallError::Http(Box::new(http(text, None))),
        CallError::Http(Box::new(http(text, Some(rpc(text))))),
        CallError::ContentType { status: 200, content_type: Some(text.into()) },
        CallError::Decode(DecodeError::new(text)),
        CallError::Input(rpc(text)),
        CallError::Refused(Refusal::Unencodable(EncodeError::new(text))),
        CallError::NotRepeated(EncodeError::new(text)),
        CallError::Denied { sent: Sent::No, reason: text.into() },
    ];
    calls.extend(closed(text).map(|why| CallError::Closed { sent: Sent::Maybe, why }));
    for cause in streams(text) {
        let (id, attempts) = (Id::from(text), 2);
        calls.extend([true, false].map(|any_message| CallError::NoResponse {
            id: id.clone(),
            attempts,
            any_message,
            cause: cause.clone(),
        }));
    }
    calls.extend(negotiations(text).into_iter().map(CallError::Negotiation));
    calls
}

/// Returns what a hook sees of a message of a peer.
fn hooked(text: &str) -> String {
    let seen = std::sync::Arc::<Mutex<String>>::default();
    let kept = seen.clone();
    let hook = MessageHook::new(move |message| {
        assert_eq!(message.direction(), Direction::In);
        *kept.lock().unwrap() = format!("{message:?}");
        Ok(())
    });
    let params = Object::new().with("text", text).into();
    let message = Message::Notification(Notification { method: text.to_string().into(), params: Some(params) });
    hook.incoming(crate::exchange::Inbound::Message(message), &FrameLimits::default());
    seen.lock().unwrap().clone()
}

/// Returns all displayed texts, with the text of a peer wherever there can be one.
fn shown(text: &str) -> Vec<String> {
    let mut shown: Vec<String> = calls(text).iter().map(CallError::to_string).collect();
    shown.extend(streams(text).iter().map(StreamEnd::to_string));
    shown.extend(closed(text).iter().map(Closed::to_string));
    shown.extend(negotiations(text).iter().map(NegotiationError::to_string));
    // It shows only the status of a program.
    let failures = closed(text).into_iter().filter(|why| !matches!(why, Closed::Exited(_)));
    shown.extend(failures.map(|why| StartFailure { stage: Stage::Connect, why }.to_string()));
    let json = RawJson::from(text);
    let question = (text.to_string(), InputRequest::Roots);
    shown.extend([
        rpc(text).to_string(),
        http(text, None).to_string(),
        http(text, None).to_rpc_error().to_string(),
        Diagnostic::new(DiagnosticKind::BadMessage, text).to_string(),
        DecodeError::new(text).to_string(),
        EncodeError::new(text).to_string(),
        Id::from(text).to_string(),
        RefusedCommand { value: (), why: Refusal::Unencodable(EncodeError::new(text)) }.to_string(),
        Denial::new(text).to_string(),
        BadTool { name: text.into(), why: text.into() }.to_string(),
        BadResource { uri: text.into(), why: text.into() }.to_string(),
        ToolError::Failed(text.into()).to_string(),
        ToolError::Protocol(rpc(text)).to_string(),
        ToolError::Ask { requests: vec![question.clone(), question], state: None }.to_string(),
        Url(text).to_string(),
        Url(&format!("https://{text}/{text}?{text}={text}&a={text}#{text}")).to_string(),
        format!("{json:?}"),
        format!("{:?}", Object::new().with(text, text)),
        format!("{:?}", Origin { tls: true, host: text.into(), port: 1 }),
        hooked(text),
    ]);
    #[cfg(feature = "record")]
    shown.extend(of_recordings(text));
    // Errors of decoding, with the text as the name of a member and as a value.
    let object = Object::new().with(text, text);
    shown.push(object.required::<u64>(text).unwrap_err().to_string());
    shown.push(json.decode::<u64>().unwrap_err().to_string());
    shown
}

#[cfg(feature = "record")]
fn of_recordings(text: &str) -> [String; 2] {
    use crate::record::{Difference, ReadError, ReadProblem};
    let text = || Some(String::from(text));
    let why = ReadProblem::Line(DecodeError::new(text().unwrap()));
    let difference = Difference { line: 1, recorded: text(), replayed: text() };
    [ReadError { line: 1, why }.to_string(), difference.to_string().replace('\n', "")]
}

// covers: S2-44
#[test]
fn text_of_a_peer_is_displayed_with_escapes() {
    assert!(HOSTILE.chars().filter(|c| is_control(*c)).count() == 10 && !SHOWN.chars().any(is_control));
    let shown = shown(HOSTILE);
    for text in &shown {
        assert!(!text.chars().any(is_control), "{text:?}");
    }
    // All of them show their text. `Debug` and JSON have their own escapes for C0. Of a program
    // only the last line is shown.
    for text in &shown {
        assert!(text.contains(r"c\u{9b}31md\u{202e}e\u{2066}f\u{2028}g"), "{text}");
    }
    let whole = shown.iter().filter(|text| text.contains(SHOWN)).count();
    assert!(whole > 80, "{whole} of {}", shown.len());
}

// covers: S2-44
#[test]
fn text_in_any_script_is_displayed_unchanged() {
    let shown = shown(PLAIN);
    let quoted = format!("{PLAIN:?}");
    let [quoted, plain] = [quoted.trim_matches('"'), PLAIN];
    for text in &shown {
        assert!(text.contains(plain) || text.contains(quoted), "{text}");
    }
}

// covers: S2-44
#[test]
fn fields_hold_the_text_unescaped() {
    assert_eq!(rpc(HOSTILE).message, HOSTILE);
    assert_eq!(Diagnostic::new(DiagnosticKind::BadMessage, HOSTILE).detail, HOSTILE);
    assert_eq!(http(HOSTILE, None).auth.www_authenticate, [HOSTILE, HOSTILE]);
    let Closed::Exited(status) = program(HOSTILE) else { panic!("a program") };
    assert!(status.stderr.contains(HOSTILE));
}

/// A challenge in Latin-1 with the C1 control that begins a terminal sequence, parsed by the codec.
// covers: S2-44
#[test]
fn latin_1_challenge_is_displayed_with_escapes() {
    use crate::exchange::{Headers, Inbound, Outbound, RequestHead};
    use crate::frame::{Conn, Kind};
    use crate::limits::FrameLimits;
    let mut conn = Conn::new(Kind::HttpClient, &FrameLimits::default());
    let head = RequestHead { method: "GET".into(), target: "/".into(), headers: Headers::new().with("Host", "h") };
    conn.encode(Outbound::Request { head, body: Default::default() });
    conn.bytes(b"HTTP/1.1 401 no\r\nContent-Length: 0\r\nWWW-Authenticate: Basic \x9b2J\r\n\r\n".as_slice().into());
    let Some(Inbound::Response(head)) = conn.poll_item() else { panic!("a response") };
    let challenge = head.headers.get("www-authenticate").unwrap();
    assert_eq!(challenge, "Basic \u{9b}2J");
    let auth = AuthHints { www_authenticate: vec![challenge.into()], auth_server: None };
    let error = HttpError { auth, ..HttpError::new(401) };
    assert_eq!(error.to_string(), r"HTTP 401 [WWW-Authenticate: Basic \u{9b}2J]");
}

// covers: RES-C-011, X-07
#[test]
fn missing_resource_has_the_code_of_any_revision() {
    let uri = || Object::new().with("uri", "x:y");
    let error = |code: i64, data: Object| CallError::Rpc(ErrorObject::new(code, "no").with_data(data.into()));
    let missing = [error(-32602, uri()), error(-32002, uri()), CallError::Rpc(ErrorObject::new(-32002, "no"))];
    assert!(missing.iter().all(CallError::is_not_found));
    let other = [
        CallError::Rpc(ErrorObject::new(-32602, "no")),
        error(-32602, Object::new().with("uri", 7_i64)),
        error(-32602, Object::new().with("name", "x")),
        error(-32603, uri()),
        error(-32601, uri()),
        CallError::Input(ErrorObject::new(-32002, "no")),
        CallError::SessionEnded,
    ];
    assert!(!other.iter().any(CallError::is_not_found));
}

#[test]
fn every_error_of_a_call_can_be_passed_on() {
    let error = ErrorObject::new(-32042, "consent").with_data(Object::new().with("k", 1_i64).into());
    assert_eq!(CallError::Rpc(error.clone()).to_rpc_error(), error);
    for call in calls("text") {
        let passed = call.to_rpc_error();
        match &call {
            CallError::Rpc(error) | CallError::Input(error) => assert_eq!(&passed, error),
            CallError::Http(http) => assert_eq!(passed, http.to_rpc_error()),
            other => assert_eq!((passed.code, passed.message), (code::INTERNAL_ERROR, other.to_string())),
        }
    }
}

// covers: S2-12
#[test]
fn diagnostic_can_be_passed_on_as_an_error() {
    for (kind, code) in [
        (DiagnosticKind::BadMessage, code::PARSE_ERROR),
        (DiagnosticKind::UnknownMethod, code::METHOD_NOT_FOUND),
        (DiagnosticKind::BadParams, code::INVALID_PARAMS),
        (DiagnosticKind::LateAnswer, code::INTERNAL_ERROR),
    ] {
        let diagnostic = Diagnostic::new(kind, "a\u{1b}b");
        let error = diagnostic.to_rpc_error();
        assert_eq!((error.code, &error.message), (code, &diagnostic.to_string()));
        assert!(!error.message.contains('\u{1b}'));
        let data = format!(r#"{{"code":"{}"}}"#, kind.code());
        assert_eq!(error.data.unwrap().as_str(), data);
    }
}

#[test]
fn cause_has_its_own_type_in_the_chain_of_sources() {
    let failed = negotiation(NegotiationCause::Http(Box::new(http("no", None))), None);
    let call = CallError::Http(Box::new(http("no", None)));
    for error in [&failed as &dyn core::error::Error, &call] {
        let mut chain = core::iter::successors(Some(error), |error| error.source());
        let found = chain.find_map(|error| error.downcast_ref::<HttpError>());
        assert_eq!(found, Some(&http("no", None)), "{error}");
    }
}

// covers: B-141
#[test]
fn exit_quotes_the_lines_that_say_why() {
    let quote = |stderr: &str| {
        let shown = ExitStatus::exited(1).with_stderr(stderr).to_string();
        shown.strip_prefix("the program exited with code 1").unwrap().to_owned()
    };
    let one = |line: &str| format!("; last line of its standard error: {line}");
    let more = |lines: &str| format!("; last lines of its standard error: {lines}");
    assert_eq!(quote(""), "");
    assert_eq!(quote(" \n\n"), "");
    assert_eq!(quote("reading\nno licence\n\n"), one("no licence"));
    // Node.js writes its version last, Bun too, before it the frames of the stack.
    let thrown = "/a/b.js:1\nthrow new Error('x')\n^\n\nError: no licence\n    at Object.<anonymous> (/a/b.js:1:7)\n\n";
    let said = more("/a/b.js:1 | throw new Error('x') | Error: no licence");
    assert_eq!(quote(&format!("{thrown}Node.js v20.11.0\n")), said);
    assert_eq!(quote(&format!("{thrown}Bun v1.1.0 (Linux x64)\n")), said);
    let object = "Error: Cannot find module 'x'\n    at f (a:1:1) {\n  code: 'MODULE_NOT_FOUND',\n  requireStack: []\n}\n\nNode.js v20";
    assert_eq!(quote(object), more("Error: Cannot find module 'x' | code: 'MODULE_NOT_FOUND', | requireStack: []"));
    assert_eq!(quote("Exception: no\n\tat a.B.c(B.java:1)\n\t... 5 more\n"), one("Exception: no"));
    let npm =
        "npm error code E404\nnpm error 404 Not Found\nnpm error A complete log of this run can be found in: /x\n";
    assert_eq!(quote(npm), more("npm error code E404 | npm error 404 Not Found"));
    let rust =
        "thread 'main' panicked at src/main.rs:1:1:\nboom\nnote: run with `RUST_BACKTRACE=1` environment variable\n";
    assert_eq!(quote(rust), more("thread 'main' panicked at src/main.rs:1:1: | boom"));
    assert_eq!(quote("usage: x\nat least one of --a, --b is required"), one("at least one of --a, --b is required"));
    // If no line says anything, the last one is all there is.
    assert_eq!(quote("Node.js v20\n"), one("Node.js v20"));
}
