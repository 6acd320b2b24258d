use super::*;
use crate::exchange::{Data, Headers, ResponseHead, SseEvent};
use crate::frame::{BodyDecoder, encode_comment, encode_event};
use crate::rpc::{InvalidKind, InvalidMessage, parse};
use crate::sizes::scaled;
use alloc::vec;
use core::time::Duration;
use proptest::prelude::*;

fn stream(max_event: usize) -> BodyDecoder {
    let headers = Headers::new().with("Content-Type", "Text/Event-Stream; charset=utf-8");
    BodyDecoder::of_response(
        &ResponseHead { status: 200, headers },
        &FrameLimits { max_event, ..FrameLimits::default() },
    )
}

/// Returns all items of the pieces except the end, and whether the stream broke.
fn feed<'a>(max_event: usize, pieces: impl IntoIterator<Item = &'a [u8]>, end: bool) -> (Vec<Inbound>, bool) {
    let mut body = stream(max_event);
    let mut items = Vec::new();
    for piece in pieces {
        body.bytes(Bytes::copy_from_slice(piece));
        items.extend(core::iter::from_fn(|| body.poll_item()));
        // Three buffers stay for the next event.
        assert!(body.buffered() <= 3 * max_event, "{} bytes are held of what was polled", body.buffered());
    }
    if end {
        body.end();
        items.extend(core::iter::from_fn(|| body.poll_item()));
        assert!(items.pop() == Some(Inbound::End) || body.broken().is_some());
    }
    (items, body.broken().is_some())
}

fn check(bytes: &[u8], items: &[Inbound]) {
    let follow = [bytes, b"\n\nid:after\n\n"].concat();
    let after = feed(1000, [&follow[..]], true);
    for end in [false, true] {
        let seen = feed(1000, [bytes], end);
        assert_eq!((&seen.0[..], seen.1), (items, false), "{:?}", bytes.escape_ascii().to_string());
        for at in 0..bytes.len() {
            let (a, b) = bytes.split_at(at);
            assert_eq!(feed(1000, [a, b], end), seen, "{at} of {:?}", bytes.escape_ascii().to_string());
        }
        assert_eq!(feed(1000, bytes.chunks(1), end), seen);
        assert_eq!(feed(1000, follow.chunks(1), end), after);
    }
    assert_eq!(after.0.last(), Some(&none(Some("after"), None)));
}

fn event(id: Option<&str>, retry: Option<u64>, data: Data) -> Inbound {
    Inbound::Event(SseEvent { id: id.map(Into::into), retry: retry.map(Duration::from_millis), data })
}

fn message(method: &str) -> Inbound {
    event(None, None, Data::Message(note(method)))
}

fn other(event: &str, data: &[u8]) -> Data {
    Data::Other { event: event.into(), data: Bytes::copy_from_slice(data) }
}

fn none(id: Option<&str>, retry: Option<u64>) -> Inbound {
    event(id, retry, Data::None)
}

fn bad(data: &'static [u8]) -> Inbound {
    event(None, None, bad_data(data))
}

fn bad_data(data: &'static [u8]) -> Data {
    Data::Invalid(parse(Bytes::from_static(data), 128).unwrap_err())
}

// covers: B-001, B-002, B-003, B-006, HTTP-C-025
#[test]
fn every_line_end_works_with_any_split() {
    let text = note_text("é😀");
    let expected = [
        Inbound::Comment,
        message("é😀"),
        Inbound::Comment,
        Inbound::Comment,
        message("é😀"),
        Inbound::Comment,
        message("é😀"),
    ];
    for end in ["\n", "\r", "\r\n"] {
        let stream = format!(
            ":hello{end}{end}data: {text}{end}{end}:{end}{end}event:message{end}: x{end}data:{text}{end}{end}\
             data: {text}{end}:data: 1{end}{end}"
        );
        check(stream.as_bytes(), &expected);
    }
    check(format!("data:{text}\r\r\ndata:{text}\r\n\n").as_bytes(), &[message("é😀"), message("é😀")]);
    check(b"data: 1\r\ndata: 2\rdata: 3\n\r\nid\r\r", &[bad(b"1\n2\n3"), none(Some(""), None)]);
}

// covers: B-011
#[test]
fn byte_order_mark_is_ignored_at_the_start_only() {
    let x = || event(None, None, other("x", b"1"));
    check(b"\xEF\xBB\xBFevent: x\ndata: 1\n\n", &[x()]);
    check(b"\xEF\xBB\xBF\nevent: x\ndata: 1\n\n", &[x()]);
    check(b"\xEF\xBB\xBF:\n\n", &[Inbound::Comment]);
    // A second mark, a part of one, or one in a later line begins an unknown name.
    for name in [&b"\xEF\xBB\xBF\xEF\xBB\xBFevent"[..], b"\xEF\xBBevent", b"\xEFevent", b"\n\xEF\xBB\xBFevent"] {
        check(&[name, b": x\ndata: 1\n\n"].concat(), &[bad(b"1")]);
    }
    check(b"\xEF\xBB\n\n", &[]);
    check(
        "event: x\ndata: \u{feff}\nid: \u{feff}\n\n".as_bytes(),
        &[event(Some("\u{feff}"), None, other("x", b"\xEF\xBB\xBF"))],
    );
}

// covers: B-004, B-012
#[test]
fn fields_follow_the_standard() {
    check(b"event: a\ndata: 1\ndata:  2\ndata\ndata:3:4\n\n", &[event(None, None, other("a", b"1\n 2\n\n3:4"))]);
    check(b"event: a\ndata\ndata\n\n", &[event(None, None, other("a", b"\n"))]);
    check(b"event:a\nevent: b\ndata: 1\n\n", &[event(None, None, other("b", b"1"))]);
    check(b"event: a\nevent\ndata: 1\n\n", &[bad(b"1")]);
    check(b"id: a\0b\nid\n\n", &[none(Some(""), None)]);
    check(b"id: 1\nid: 2\0\n\n", &[none(Some("1"), None)]);
    check(b"id: 1\nid: 2\n\nid:  3 \n\n", &[none(Some("2"), None), none(Some(" 3 "), None)]);
    check(b"id: \xFF\n\n", &[none(Some("\u{fffd}"), None)]);
    check(b"unknown: 1\nDATA: 2\n data: 3\ndat: 4\ndatas: 5\nevent : x\nretry1: 6\n: data: 7\n\n", &[Inbound::Comment]);
    // An empty line starts a new event, even after an event without data.
    check(b"event: a\n\ndata: 1\n\n", &[none(None, None), bad(b"1")]);
}

#[test]
fn reconnection_time_consists_of_digits() {
    check(b"retry: 12\n\nretry:0\n\nretry: 007\n\n", &[none(None, Some(12)), none(None, Some(0)), none(None, Some(7))]);
    for text in ["-1", "+1", "1x", "", " 1", "1 ", "1.5", "\u{664}", "1\0", "0x1"] {
        check(format!("retry: {text}\n\n").as_bytes(), &[]);
    }
    check(b"retry\n\nretry: 5\nretry: x\n\n", &[none(None, Some(5))]);
    check(b"retry: 99999999999\n\n", &[none(None, Some(99_999_999_999))]);
    check(b"retry: 99999999999999999999999\n\n", &[none(None, Some(u64::MAX))]);
}

// covers: B-005, B-007, S4-01, S4-02
#[test]
fn only_a_message_with_data_is_parsed_as_json() {
    let text = note_text("m");
    for name in ["", "event:\n", "event: message\n", "event: x\nevent: message\n"] {
        check(format!("{name}data: {text}\n\n").as_bytes(), &[message("m")]);
    }
    for name in ["ping", "endpoint", "error", "Message", "message ", " message", "messages"] {
        let stream = format!("event: {name}\ndata: {text}\n\nevent: {name}\ndata: {{\n\ndata: {text}\n\n");
        let control = |data: &str| event(None, None, other(name, data.as_bytes()));
        check(stream.as_bytes(), &[control(&text), control("{"), message("m")]);
    }
    check(
        b"data\n\ndata:\n\nid: 1\ndata:\n\nevent: ping\n\n",
        &[none(None, None), none(None, None), none(Some("1"), None), none(None, None)],
    );
}

// covers: S4-11
#[test]
fn event_of_another_type_has_its_id_and_retry() {
    check(
        b"event: ping\nid: 7\nretry: 3\ndata: x\n\nevent: ping\nid: 8\n\n",
        &[event(Some("7"), Some(3), other("ping", b"x")), none(Some("8"), None)],
    );
}

// covers: B-008
#[test]
fn invalid_message_affects_no_other_event() {
    let text = format!("data: no\n\ndata: \u{ff}\n\ndata: {}\n\n", note_text("m"));
    check(text.as_bytes(), &[bad(b"no"), bad("\u{ff}".as_bytes()), message("m")]);
    let (items, _) = feed(1000, [&b"data: \"\xff\"\n\n"[..]], false);
    let [Inbound::Event(SseEvent { data: Data::Invalid(InvalidMessage { kind: InvalidKind::Utf8, .. }), .. })] =
        &items[..]
    else {
        panic!("{items:?}")
    };
}

#[test]
fn unfinished_event_is_discarded_but_its_retry_counts() {
    for unfinished in ["id: 7\ndata: 1\n", "id: 7\ndata: 1", "id: 7", "data", "retry: 5", ":"] {
        check_cut(unfinished.as_bytes(), &[]);
    }
    check_cut(b"id: 7\nretry: 5\ndata: 1", &[none(None, Some(5))]);
    check_cut(b"retry: 5\r", &[none(None, Some(5))]);
    check_cut(b":\nid: 1\n", &[Inbound::Comment]);
}

/// Checks a stream that ends inside an event.
fn check_cut(bytes: &[u8], items: &[Inbound]) {
    for at in 0..=bytes.len() {
        let (a, b) = bytes.split_at(at);
        assert_eq!(feed(1000, [a, b], true), (items.to_vec(), false), "{:?}", bytes.escape_ascii().to_string());
    }
}

// covers: B-013, B-015
#[test]
fn event_over_the_limit_breaks_and_frees_the_stream() {
    // What counts is what is held: the values, and the LF between data lines.
    let one = b"event:abcd\nid: 1\ndata:12345\ndata: 6\n\n";
    let fits = 4 + 1 + 7;
    assert!(!feed(fits, [&one[..]], false).1);
    for pieces in [one.chunks(1), one.chunks(5), one.chunks(100)] {
        assert_eq!(feed(fits - 1, pieces, false), (vec![], true));
    }
    assert!(!feed(fits, [&one.repeat(1000)[..]], false).1, "an event that is done does not count");
}

// covers: B-009, B-013
#[test]
fn endless_fields_are_limited_and_ignored_ones_hold_nothing() {
    const LIMIT: usize = 10_000;
    // The smallest buffer of a field has 64 bytes, whatever it holds.
    const SMALL: usize = 3 * 64;
    let cases = [
        ("data: ", "x", true),
        ("", "data: x\n", true),
        ("", "data\n", true),
        ("id: ", "x", true),
        ("event: ", "x", true),
        ("retry: ", "1", false),
        ("id: 1\ndata: 1\nid: 2", "\0", true),
        // Fields that replace themselves, and skipped lines.
        ("", "id: 12345\n", false),
        ("", "event: 12345\n", false),
        ("", "retry: 12345\n", false),
        ("", "data: 1\n\n", false),
        (":", "x", false),
        ("\u{feff}:", "x", false),
        ("data", "x", false),
        ("", "unknown", false),
        ("unknown: ", "x", false),
        ("", "unknown: x\n", false),
        ("", ":\r", false),
        ("", "\r\n", false),
    ];
    for (begin, more, breaks) in cases {
        let mut body = stream(LIMIT);
        body.bytes(Bytes::from_static(begin.as_bytes()));
        let chunk = Bytes::from(more.repeat(50));
        for _ in 0..scaled(4000) {
            body.bytes(chunk.clone());
            while body.poll_item().is_some() {}
            let most = if breaks { LIMIT + SMALL } else { SMALL };
            assert!(body.buffered() <= most, "{begin}{more}: {} bytes are held", body.buffered());
        }
        assert_eq!((body.broken().is_some(), body.buffered() > SMALL), (breaks, false), "{begin}{more}");
        assert!(body.broken().is_none_or(|why| why == "an event is larger than 10000 bytes"));
    }
}

/// Bytes that belong to no event, however they are cut.
#[test]
fn stream_without_an_event_breaks_after_16_mib() {
    const LIMIT: usize = 16 << 20;
    const EVENT: &str = "data: {\"jsonrpc\":\"2.0\",\"method\":\"m\"}\n\n";
    // The events before the stream breaks.
    let read = |part: &[u8], count: usize, pieces: usize| {
        let mut body = stream(LIMIT);
        let whole = Bytes::from([&part.repeat(count)[..], EVENT.as_bytes()].concat());
        let mut events = 0;
        for at in 0..pieces {
            body.bytes(whole.slice(whole.len() * at / pieces..whole.len() * (at + 1) / pieces));
            while let Some(item) = body.poll_item() {
                events += usize::from(matches!(item, Inbound::Event(_)));
            }
        }
        (events, body.broken().map(String::as_str) == Some("the event stream has no event in 16777216 bytes"))
    };
    let comment = [b":".repeat(1 << 15), b"\r\n".to_vec()].concat();
    let unknown = [b"x".repeat(1 << 16), b"\n".to_vec()].concat();
    for (part, most) in [(&b"\n"[..], LIMIT), (b"\r\n", LIMIT / 2), (&comment, 511), (&unknown, 255)] {
        for pieces in [1, 3000] {
            assert_eq!(read(part, most, pieces), (1, false), "{pieces}");
            assert_eq!(read(part, most + 1, pieces), (0, true), "{pieces}");
        }
    }
    // An event begins the count again, and the data of one has a limit of its own.
    let part = [&b"\n".repeat(1 << 20)[..], EVENT.as_bytes()].concat();
    assert_eq!(read(&part, 17, 7), (18, false));
    assert_eq!(read(&[&b"data: "[..], &b"1".repeat(1 << 20), b"\n"].concat(), 15, 7), (1, false));
}

/// One reason for one stream, wherever it is cut.
#[test]
fn value_without_an_end_breaks_the_stream_for_its_size() {
    const LIMIT: usize = 16 << 20;
    let part = Bytes::from(b"9".repeat(1 << 18));
    for (before, after) in [("id:", ""), ("i", "d:"), ("", "event: ")] {
        let mut body = stream(LIMIT);
        body.bytes(Bytes::from(before));
        body.bytes(Bytes::from(after));
        for _ in 0..LIMIT / part.len() {
            body.bytes(part.clone());
            assert_eq!((body.poll_item(), body.broken()), (None, None), "{before}{after}");
        }
        body.bytes(Bytes::from_static(b"9"));
        assert_eq!(body.poll_item(), None);
        let why = body.broken().map(String::as_str);
        assert_eq!(why, Some("an event is larger than 16777216 bytes"), "{before}{after}");
    }
    // Lines that end still count.
    let mut body = stream(LIMIT);
    let line = Bytes::from([&b"id:"[..], &b"9".repeat(1 << 20), b"\n"].concat());
    for _ in 0..16 {
        body.bytes(line.clone());
        assert_eq!(body.poll_item(), None);
    }
    assert_eq!(body.broken().map(String::as_str), Some("the event stream has no event in 16777216 bytes"));
}

// covers: B-009
#[test]
fn very_many_ignored_lines_need_no_recursion() {
    const MANY: usize = scaled(1_000_000);
    // A recursive reader would need far more stack than a test has.
    for (skipped, tells) in [("\n", None), (":\n", Some(Inbound::Comment)), ("x: y\r\n", None), ("id: \0\r", None)] {
        let mut body = stream(100);
        body.bytes([skipped.repeat(MANY).as_bytes(), b"id: 1\n\n"].concat().into());
        let whole = body.buffered();
        let mut count = 0;
        while let Some(item) = body.poll_item() {
            // The codec holds nothing except the buffer that it was given.
            assert!(body.buffered() <= whole + 100);
            if item == none(Some("1"), None) {
                break;
            }
            assert_eq!(Some(item), tells);
            count += 1;
        }
        assert_eq!((count, body.poll_item()), (if tells.is_some() { MANY } else { 0 }, None));
        assert!(body.buffered() <= 100);
    }
}

proptest! {
    // covers: STDIO-B-002, B-127
    #[test]
    fn written_events_read_back(id in proptest::option::of("\\PC{0,8}"), retry in proptest::option::of(0..100_000_u64), method in "\\PC{0,8}") {
        let text = crate::rpc::notification(&method, None);
        let bytes = encode_event(None, id.as_deref(), retry.map(Duration::from_millis), &text);
        let id = id.filter(|id| !id.contains(['\r', '\n', '\0']));
        let expected = event(id.as_deref(), retry, Data::Message(note(&method)));
        prop_assert_eq!(feed(1000, [&bytes[..]], false).0, [expected]);
    }

    // covers: B-001, B-002, B-004, B-010, B-011, B-012
    #[test]
    fn any_split_of_any_stream_matches_the_independent_parser(
        pieces in proptest::collection::vec(prop::sample::select(PIECES), 0..30),
        cut in 1..7_usize,
    ) {
        let bytes = pieces.concat();
        prop_assert_eq!(feed(10_000, bytes.as_bytes().chunks(cut), false).0, twin(&bytes));
    }
}

#[test]
fn data_and_ids_cannot_inject_lines() {
    let bytes = encode_event(None, Some("1\ndata: x"), None, &Bytes::from_static(b"a\nid: 2\r\rb\r\nc\n"));
    assert_eq!(bytes, "data: a\ndata: id: 2\ndata: \ndata: b\ndata: c\ndata: \n\n");
    check(&bytes, &[bad(b"a\nid: 2\n\nb\nc\n")]);
    for id in ["1\n", "\r", "a\0"] {
        assert_eq!(encode_event(None, Some(id), None, &Bytes::new()), "data: \n\n");
    }
    check(&encode_event(None, Some(""), Some(Duration::MAX), &Bytes::new()), &[none(Some(""), Some(u64::MAX))]);
    check(
        &encode_event(None, Some(" : "), None, &Bytes::from_static(b" : ")),
        &[event(Some(" : "), None, bad_data(b" : "))],
    );
}

#[test]
fn any_text_of_a_comment_stays_a_comment() {
    for (text, lines) in [("", 1), ("heartbeat", 1), ("a\n\ndata: 1\r\rid: 2\r\n\r\nretry: 3", 7), ("\n", 2), (":", 1)]
    {
        check(&encode_comment(text), &vec![Inbound::Comment; lines]);
    }
}

const PIECES: &[&str] = &[
    "\n",
    "\r",
    "\r\n",
    "\n\n",
    "data",
    "id",
    "event",
    "retry",
    ":",
    ": ",
    " ",
    "x",
    "1",
    "7",
    "\0",
    "\u{feff}",
    "é",
    "data: 1",
    "data:2\r",
    "event: e\n",
    "id: 5\r\n",
    ": x\n",
];

/// The standard, implemented literally: normalize all line ends, split into blocks, then handle the
/// lines of each block.
fn twin(stream: &str) -> Vec<Inbound> {
    let stream = stream.strip_prefix('\u{feff}').unwrap_or(stream).replace("\r\n", "\n").replace('\r', "\n");
    let mut lines: Vec<&str> = stream.split('\n').collect();
    lines.pop();
    let mut items = Vec::new();
    for block in lines.split_inclusive(|line| line.is_empty()) {
        // A comment counts at once, fields at the end of their block.
        items.extend(block.iter().filter(|line| line.starts_with(':')).map(|_| Inbound::Comment));
        let [fields @ .., ""] = block else { continue };
        let (mut id, mut retry, mut kind, mut data, mut any) = (None, None, "", Vec::new(), false);
        for field in fields {
            let (name, value) = field.split_once(':').unwrap_or((field, ""));
            let value = value.strip_prefix(' ').unwrap_or(value);
            let known = match name {
                "id" if !value.contains('\0') => {
                    id = Some(value);
                    true
                }
                "retry" if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) => {
                    retry = Some(value.parse().unwrap_or(u64::MAX));
                    true
                }
                "event" => {
                    kind = value;
                    true
                }
                "data" => {
                    data.push(value);
                    true
                }
                _ => false,
            };
            any |= known;
        }
        let data = data.join("\n");
        if any {
            let data = match kind {
                _ if data.is_empty() => Data::None,
                "" | "message" => crate::rpc::parse_batch_or_message(Bytes::from(data), &FrameLimits::default()).into(),
                _ => other(kind, data.as_bytes()),
            };
            items.push(event(id, retry, data));
        }
    }
    items
}
