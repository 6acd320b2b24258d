use super::*;
use crate::exchange::{Data, ResponseHead, SseEvent};
use crate::frame::{Body, encode_event};
use crate::rpc::{DefectKind, parse};
use core::time::Duration;
use proptest::prelude::*;

fn stream(max_event: usize) -> Body {
    let headers = crate::exchange::Headers::new().with("Content-Type", "Text/Event-Stream; charset=utf-8");
    Body::of_response(&ResponseHead { status: 200, headers }, &FrameLimits { max_event, ..FrameLimits::default() })
}

/// All events of the pieces, and whether the stream broke.
fn feed<'a>(max_event: usize, pieces: impl IntoIterator<Item = &'a [u8]>, end: bool) -> (Vec<SseEvent>, bool) {
    let mut body = stream(max_event);
    let mut events = Vec::new();
    let mut drain = |body: &mut Body| {
        while let Some(item) = body.poll_item() {
            match item {
                Item::Event(event) => events.push(event),
                item => assert_eq!(item, Item::End),
            }
        }
    };
    for piece in pieces {
        body.bytes(Bytes::copy_from_slice(piece));
        drain(&mut body);
    }
    if end {
        body.end();
    }
    drain(&mut body);
    (events, body.broken().is_some())
}

fn check(bytes: &[u8], events: &[SseEvent]) {
    let follow = [bytes, b"\n\nid:after\n\n"].concat();
    let after = feed(1000, [&follow[..]], true);
    for end in [false, true] {
        let seen = feed(1000, [bytes], end);
        assert_eq!((&seen.0[..], seen.1), (events, false), "{:?}", bytes.escape_ascii().to_string());
        for at in 0..bytes.len() {
            let (a, b) = bytes.split_at(at);
            assert_eq!(feed(1000, [a, b], end), seen, "{at} of {:?}", bytes.escape_ascii().to_string());
        }
        assert_eq!(feed(1000, bytes.chunks(1), end), seen);
        assert_eq!(feed(1000, follow.chunks(1), end), after);
    }
    assert_eq!(after.0.last().unwrap().id.as_deref(), Some("after"));
}

fn message(method: &str) -> SseEvent {
    SseEvent { id: None, retry: None, data: Data::Message(note(method)) }
}

fn other(event: &str, data: &'static str) -> SseEvent {
    let data = Data::Other { event: event.into(), data: Bytes::from_static(data.as_bytes()) };
    SseEvent { id: None, retry: None, data }
}

fn none(id: Option<&str>, retry: Option<u64>) -> SseEvent {
    SseEvent { id: id.map(Into::into), retry: retry.map(Duration::from_millis), data: Data::None }
}

// covers: B-001, B-002, B-003, B-006
#[test]
fn every_line_end_ends_a_line_however_it_is_cut() {
    let text = note_text("é😀");
    for end in ["\n", "\r", "\r\n"] {
        let stream =
            format!(":hello{end}{end}data: {text}{end}:{end}{end}event:message{end}: x{end}data:{text}{end}{end}");
        check(stream.as_bytes(), &[message("é😀"), message("é😀")]);
    }
    check(format!("data:{text}\r\r\ndata:{text}\r\n\n").as_bytes(), &[message("é😀"), message("é😀")]);
}

// covers: B-004, B-005, B-007, B-011, B-012
#[test]
fn fields_mean_what_the_standard_says() {
    check(b"event: a\ndata: 1\ndata:  2\ndata\ndata:3:4\n\n", &[other("a", "1\n 2\n\n3:4")]);
    check(b"event:a\nevent: b\ndata: \xEF\xBB\xBF\n\n", &[other("b", "\u{feff}")]);
    check(b"event: ping\ndata: {}\n\ndata\n\n", &[other("ping", "{}"), none(None, None)]);
    check(b"id: 1\ndata:\n\n", &[none(Some("1"), None)]);
    check(
        b"id: a\0b\nid\n\nretry: 12\n\nretry: -1\n\nretry: 1x\n\nretry:\n\n",
        &[none(Some(""), None), none(None, Some(12))],
    );
    check(b"id: 1\nid: 2\0\n\n", &[none(Some("1"), None)]);
    check(b"retry: 99999999999999999999999\n\n", &[none(None, Some(u64::MAX))]);
    check(b"\xEF\xBB\xBFevent: x\ndata: 1\n\n", &[other("x", "1")]);
    check(b"\xEF\xBB\xBF: comment\n\n", &[]);
    check(
        b"\n\xEF\xBB\xBFevent: x\ndata: 1\nx\n\n",
        &[SseEvent { data: Data::Bad(parse(Bytes::from_static(b"1"), 128).unwrap_err()), ..none(None, None) }],
    );
    check(b"unknown: 1\nDATA: 2\n data: 3\n\n", &[]);
}

// covers: B-008
#[test]
fn a_bad_message_costs_its_event_and_no_other() {
    let (events, broken) =
        feed(1000, [format!("data: no\n\ndata: \u{ff}\n\ndata: {}\n\n", note_text("m")).as_bytes()], false);
    assert!(!broken);
    let kinds: Vec<_> =
        events.iter().map(|event| if let Data::Bad(defect) = &event.data { Some(defect.kind) } else { None }).collect();
    assert_eq!(kinds, [Some(DefectKind::Syntax), Some(DefectKind::Syntax), None]);
    assert_eq!(events[2], message("m"));
    let (events, _) = feed(1000, [&b"data: \"\xff\"\n\n"[..]], false);
    assert!(matches!(&events[0].data, Data::Bad(defect) if defect.kind == DefectKind::Utf8));
}

#[test]
fn an_unfinished_event_is_discarded_but_its_retry_counts() {
    let unfinished = b"id: 7\ndata: 1\n";
    assert_eq!(feed(1000, [&unfinished[..]], true), (Vec::new(), false));
    assert_eq!(feed(1000, unfinished.chunks(1), true), (Vec::new(), false));
    assert_eq!(feed(1000, [&b"id: 7\nretry: 5\ndata: 1"[..]], true).0, [none(None, Some(5))]);
    assert_eq!(feed(1000, [&b"retry: 5"[..]], true).0, []);
}

// covers: B-013, B-015
#[test]
fn an_event_over_the_limit_breaks_the_stream_and_frees_it() {
    let event = b"event:abcd\ndata:123456\n\n";
    // Four bytes of type, and the longest line beside it.
    let fits = 4 + "data:123456".len();
    assert!(!feed(fits, [&event[..]], false).1);
    for pieces in [event.chunks(1), event.chunks(5), event.chunks(100)] {
        assert_eq!(feed(fits - 1, pieces, false), (Vec::new(), true));
    }
    let mut body = stream(10_000);
    for _ in 0..1000 {
        body.bytes(Bytes::from(alloc::vec![b'x'; 100]));
        assert_eq!(body.poll_item(), None);
        assert!(body.buffered() <= 2 * 10_100);
    }
    assert!(body.broken().is_some());
    assert_eq!(body.buffered(), 0);
    // Comments and events that are done do not count.
    let comment = [&b":"[..], &[b'x'; 5000], b"\n"].concat();
    assert!(!feed(fits, [&comment[..], &event.repeat(1000)], false).1);
}

// covers: B-009
#[test]
fn a_million_events_that_mean_nothing_are_passed_over_without_recursion() {
    let mut bytes = b":\n\n".repeat(1_000_000);
    bytes.extend_from_slice(b"id: 1\n\n");
    assert_eq!(feed(100, [&bytes[..]], true).0, [none(Some("1"), None)]);
}

proptest! {
    // covers: STDIO-B-002, B-127
    #[test]
    fn what_is_written_reads_back(id in proptest::option::of("\\PC{0,8}"), retry in proptest::option::of(0..100_000_u64), method in "\\PC{0,8}") {
        let text = crate::rpc::notification(&method, None);
        let bytes = encode_event(id.as_deref(), retry.map(Duration::from_millis), &text);
        let id = id.filter(|id| !id.contains(['\r', '\n', '\0']));
        let expected = SseEvent { data: Data::Message(note(&method)), ..none(id.as_deref(), retry) };
        prop_assert_eq!(feed(1000, [&bytes[..]], false).0, [expected]);
    }

    // covers: B-001, B-002, B-004, B-010, B-011, B-012
    #[test]
    fn any_stream_in_any_pieces_is_read_as_the_twin_reads_it(
        pieces in proptest::collection::vec(prop::sample::select(PIECES), 0..30),
        cut in 1..7_usize,
    ) {
        let bytes = pieces.concat();
        prop_assert_eq!(feed(10_000, bytes.as_bytes().chunks(cut), false).0, twin(&bytes));
    }
}

#[test]
fn data_and_ids_cannot_break_out_of_their_lines() {
    let bytes = encode_event(Some("1\ndata: x"), None, &Bytes::from_static(b"a\nid: 2\r\rb"));
    assert_eq!(bytes, "data: a\ndata: id: 2\ndata: \ndata: b\n\n");
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
];

/// The standard read aloud: all line ends made equal, all blocks taken apart, all lines of a block in turn.
fn twin(stream: &str) -> Vec<SseEvent> {
    let stream = stream.strip_prefix('\u{feff}').unwrap_or(stream).replace("\r\n", "\n").replace('\r', "\n");
    let mut lines: Vec<&str> = stream.split('\n').collect();
    lines.pop();
    let mut events = Vec::new();
    for block in lines.split_inclusive(|line| line.is_empty()) {
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
            events.push(SseEvent {
                data: match kind {
                    _ if data.is_empty() => Data::None,
                    "" | "message" => match parse(Bytes::from(data), 128) {
                        Ok(message) => Data::Message(message),
                        Err(defect) => Data::Bad(defect),
                    },
                    _ => Data::Other { event: kind.into(), data: data.into() },
                },
                ..none(id, retry)
            });
        }
    }
    events
}
