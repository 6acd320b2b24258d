use super::*;
use crate::frame::line::Lines;
use crate::frame::work::Work;
use crate::rpc::{Id, InvalidKind, InvalidMessage, parse, parse_batch_or_message};
use alloc::string::ToString;
use alloc::vec;
use proptest::prelude::*;

fn limits(max_line: usize) -> FrameLimits {
    FrameLimits { max_line, ..FrameLimits::default() }
}

/// Checks the bytes alone, at the end of the stream, and with a line after them.
fn check(max_line: usize, bytes: &[u8], items: &[Inbound]) {
    let case = |bytes, eof| Case { kind: Kind::Lines, limits: limits(max_line), sent: None, eof, bytes };
    let unfinished = !bytes.ends_with(b"\n");
    if !unfinished {
        let seen = case(bytes, false).seen();
        assert_eq!(seen.items, items, "{:?}", bytes.escape_ascii().to_string());
        assert!(seen.at_boundary && seen.keep_alive && seen.broken.is_none());
    }
    let mut ended = items.to_vec();
    ended.push(Inbound::End);
    assert_eq!(case(bytes, true).seen().items, ended, "{:?}", bytes.escape_ascii().to_string());
    let mut followed = bytes.to_vec();
    if unfinished {
        followed.push(b'\n');
    }
    followed.extend_from_slice(note_text("z").as_bytes());
    followed.push(b'\n');
    let mut after = items.to_vec();
    after.push(Inbound::Message(note("z")));
    assert_eq!(case(&followed, false).seen().items, after, "{:?}", bytes.escape_ascii().to_string());
}

fn bad(kind: InvalidKind, text: &[u8]) -> Inbound {
    Inbound::Invalid(InvalidMessage::new(kind, text))
}

// covers: STDIO-B-002, S0-35, S2-06, S2-11, S3-01, B-116, B-122, B-125
#[test]
fn lines_are_framed_with_any_end_and_any_split() {
    let (a, b) = (Inbound::Message(note("é😀")), Inbound::Message(note("b")));
    let text = note_text("é😀");
    let b_text = note_text("b");
    check(200, format!("{text}\n").as_bytes(), core::slice::from_ref(&a));
    check(200, format!("{text}\r\n{b_text}\n").as_bytes(), &[a.clone(), b.clone()]);
    check(200, format!("\n\r\n \t\n  {text} \t\r\n\n\n{b_text}").as_bytes(), &[a.clone(), b]);
    check(200, b"", &[]);
    check(200, b"\n \r\n\t", &[]);
    // One byte-order mark, and only at the very start.
    check(200, format!("\u{feff}{text}\n").as_bytes(), core::slice::from_ref(&a));
    check(200, "\u{feff}\n".as_bytes(), &[]);
    check(200, format!("\u{feff} {text}").as_bytes(), &[a]);
    let late = format!("\u{feff}{text}");
    check(200, format!("\n{late}\n").as_bytes(), &[bad(InvalidKind::Syntax, late.as_bytes())]);
    check(200, format!(" {late}\n").as_bytes(), &[bad(InvalidKind::Syntax, late.as_bytes())]);
    check(200, format!("\u{feff}{late}\n").as_bytes(), &[bad(InvalidKind::Syntax, late.as_bytes())]);
}

// covers: S0-31, S2-12, B-120, B-121, B-123, B-124, B-128
#[test]
fn invalid_line_affects_no_other_line() {
    check(200, b"npm notice\n", &[bad(InvalidKind::Syntax, b"npm notice")]);
    check(200, b"\xff\xfe\n", &[bad(InvalidKind::Utf8, b"\xff\xfe")]);
    check(
        200,
        b"7\nnull\n[]\n",
        &[
            bad(InvalidKind::NotAnObject, b"7"),
            bad(InvalidKind::NotAnObject, b"null"),
            bad(InvalidKind::EmptyBatch, b"[]"),
        ],
    );
    let cut = br#"{"jsonrpc":"2.0","id":7,"result":{"x"#;
    let defect = InvalidMessage { id: Some(Id::Int(7)), ..InvalidMessage::new(InvalidKind::Truncated, cut) };
    check(200, &[cut, &b"\n"[..]].concat(), &[Inbound::Invalid(defect)]);
    check(200, format!("[{}]", note_text("m")).as_bytes(), &[Inbound::Batch(vec![Ok(note("m"))])]);
}

// covers: B-141
#[test]
fn truncated_last_line_is_dropped() {
    let bytes: &[u8] = br#"{"jsonrpc":"2.0","id":7,"result":{"x"#;
    let seen = Case { kind: Kind::Lines, limits: limits(200), sent: None, eof: true, bytes }.seen();
    assert_eq!(seen.items, [bad(InvalidKind::Truncated, bytes), Inbound::End]);
}

// covers: B-118
#[test]
fn line_over_the_limit_is_one_invalid_message_with_its_id() {
    let text = note_text("mm");
    check(text.len(), format!("{text}\n").as_bytes(), &[Inbound::Message(note("mm"))]);
    let cut = &text.as_bytes()[..text.len() - 1];
    let defect = InvalidMessage { has_method: true, ..InvalidMessage::new(InvalidKind::TooLong, cut) };
    check(cut.len(), format!("{text}\n").as_bytes(), &[Inbound::Invalid(defect.clone())]);
    check(cut.len(), text.as_bytes(), &[Inbound::Invalid(defect)]);
    let defect =
        InvalidMessage { id: Some(Id::Int(5)), ..InvalidMessage::new(InvalidKind::TooLong, br#"{"id":5,"result":"x"#) };
    let long = format!("{{\"id\":5,\"result\":\"{}\"}}\n", "x".repeat(90));
    let Seen { items, .. } =
        Case { kind: Kind::Lines, limits: limits(19), sent: None, eof: false, bytes: long.as_bytes() }.seen();
    assert_eq!(items, [Inbound::Invalid(defect)]);
}

// covers: B-118
#[test]
fn rest_of_a_long_line_is_not_held() {
    let mut conn = Conn::new(Kind::Lines, &limits(10_000));
    let mut found = Vec::new();
    for _ in 0..10_000 {
        conn.bytes(vec![b'x'; 1000].into());
        poll(&mut conn, &mut found);
        assert!(conn.buffered() <= 11_000, "{}", conn.buffered());
    }
    let [Inbound::Invalid(defect)] = &found[..] else { panic!("{found:?}") };
    assert_eq!((defect.kind, defect.head.len()), (InvalidKind::TooLong, InvalidMessage::HEAD));
    assert!(!conn.at_boundary());
    assert_eq!(conn.buffered(), 0);
}

// covers: B-119
#[test]
fn large_line_in_small_reads_is_scanned_once_and_released() {
    const SIZE: usize = 1 << 20;
    let mut lines = Lines::new(alloc::sync::Arc::new(limits(SIZE)));
    let text = format!(r#"{{"jsonrpc":"2.0","method":"m","x":"{}"}}"#, "x".repeat(SIZE - 37));
    assert_eq!(text.len(), SIZE);
    for piece in text.as_bytes().chunks(1024) {
        lines.bytes(Bytes::copy_from_slice(piece));
        assert_eq!(lines.poll_item(&mut Work::unlimited()), None);
        assert!(lines.buffered() <= SIZE);
    }
    lines.bytes(Bytes::from_static(b"\n"));
    assert_eq!(lines.poll_item(&mut Work::unlimited()), Some(Inbound::Message(note("m"))));
    assert_eq!(lines.scanned, SIZE + 1);
    assert_eq!(lines.buffered(), 0);
    assert!(lines.at_boundary());
}

/// Returns whether the params of the item are a part of the buffer.
fn shares(item: &Inbound, buffer: &Bytes) -> bool {
    let Inbound::Message(Message::Notification(note)) = item else { panic!("{item:?}") };
    buffer.as_ptr_range().contains(&note.params.as_ref().unwrap().as_bytes().as_ptr())
}

// covers: B-119
#[test]
fn small_lines_are_copied_and_large_ones_share_the_buffer() {
    let line = |size: usize| {
        format!("{{\"jsonrpc\":\"2.0\",\"method\":\"m\",\"params\":{{\"x\":\"{}\"}}}}\n", "x".repeat(size))
    };
    for (size, lines, shared) in
        [(10, 1, false), (10, 50, false), (5000, 1, true), (5000, 2, false), (100_000, 1, true)]
    {
        let buffer = Bytes::from("\n".to_string() + &line(size).repeat(lines));
        let mut conn = Conn::new(Kind::Lines, &FrameLimits::default());
        conn.bytes(buffer.clone());
        for _ in 0..lines {
            assert_eq!(shares(&conn.poll_item().unwrap(), &buffer), shared, "{size} {lines}");
        }
        assert_eq!((conn.poll_item(), conn.buffered()), (None, 0));
    }
}

// covers: B-118, S0-31
#[test]
fn response_over_the_limit_is_known_by_an_id_at_its_end() {
    let long = format!(r#"{{"result":{{"x":"{}"}},"jsonrpc":"2.0","id":7}}"#, "x".repeat(60));
    let first = bad(InvalidKind::TooLong, &long.as_bytes()[..50]);
    let defect = InvalidMessage { id: Some(Id::Int(7)), ..InvalidMessage::new(InvalidKind::TooLong, b"") };
    check(50, format!("{long}\n").as_bytes(), &[first.clone(), Inbound::Invalid(defect.clone())]);
    check(50, format!(" {long} \r\n").as_bytes(), &[first.clone(), Inbound::Invalid(defect)]);
    // Not its end, a request, and the id of another object.
    let cut = &long[..long.len() - 1];
    for other in [cut.to_string(), format!(r#"{cut},"method":"m"}}"#), format!(r#"{{"x":{long}}}"#)] {
        check(50, format!("{other}\n").as_bytes(), &[bad(InvalidKind::TooLong, &other.as_bytes()[..50])]);
    }
}

// covers: S0-35
#[test]
fn nothing_is_parsed_before_it_is_polled() {
    let mut conn = Conn::new(Kind::Lines, &FrameLimits::default());
    let line = note_text("m") + "\n";
    conn.bytes(Bytes::from(line.repeat(3)));
    assert!(conn.buffered() >= 3 * line.len() && !conn.at_boundary());
    assert_eq!(conn.poll_item(), Some(Inbound::Message(note("m"))));
    assert!(!conn.at_boundary());
    let mut rest = Vec::new();
    poll(&mut conn, &mut rest);
    assert_eq!((rest.len(), conn.buffered(), conn.at_boundary()), (2, 0, true));
    conn.eof();
    conn.bytes(Bytes::from(line));
    assert_eq!((conn.poll_item(), conn.poll_item()), (Some(Inbound::End), None));
}

// covers: STDIO-B-002, S2-09, S2-10, B-122
#[test]
fn message_is_written_whole_and_large_one_without_copy() {
    let mut conn = Conn::new(Kind::Lines, &FrameLimits::default());
    conn.encode(Outbound::Message(Bytes::from_static(b"{}")));
    let large = Bytes::from(vec![b' '; 5000]);
    conn.encode(Outbound::Message(large.clone()));
    conn.encode(Outbound::End);
    assert_eq!(conn.poll_write().unwrap(), "{}\n");
    assert_eq!(conn.poll_write().unwrap().as_ptr(), large.as_ptr());
    assert_eq!(conn.poll_write().unwrap(), "\n");
    assert_eq!(conn.poll_write(), None);
}

/// An independent parser: it takes the whole stream at once, line by line.
fn twin(max_line: usize, bytes: &[u8]) -> Vec<Inbound> {
    let mut items = Vec::new();
    for (n, line) in bytes.split(|&byte| byte == b'\n').enumerate() {
        let marked = n == 0 && line.starts_with(b"\xEF\xBB\xBF");
        let line = if marked { line } else { line.trim_ascii_start() };
        if line.len() > max_line {
            let part = Bytes::copy_from_slice(&line[..max_line]);
            let defect =
                parse(part.clone(), 128).err().unwrap_or_else(|| InvalidMessage::new(InvalidKind::TooLong, &part));
            items.push(Inbound::Invalid(InvalidMessage { kind: InvalidKind::TooLong, ..defect }));
            continue;
        }
        let text = if marked { &line[3..] } else { line }.trim_ascii();
        if !text.is_empty() {
            items.push(parse_batch_or_message(Bytes::copy_from_slice(text), &limits(max_line)).into());
        }
    }
    // A truncated last line is dropped.
    let cut = bytes.rsplit(|&byte| byte == b'\n').next().is_some_and(|last| !last.trim_ascii().is_empty());
    if let Some(Inbound::Invalid(defect)) = items.last_mut().filter(|_| cut)
        && defect.kind == InvalidKind::Truncated
    {
        defect.id = None;
    }
    items.push(Inbound::End);
    items
}

const PIECES: &[&[u8]] = &[
    b"\n",
    b"\r",
    b" ",
    b"\r\n",
    b"\xEF\xBB\xBF",
    b"\xEF",
    b"{",
    b"}",
    b"[]",
    b"7",
    b"\"",
    b"\xff",
    b"{\"id\":1,",
    b"{\"jsonrpc\":\"2.0\",\"method\":\"m\"}",
    b"xxxxxxxxxxxxxxxxxxxxxxxx",
];

proptest! {
    // covers: B-116, B-118, B-122, B-123, B-125, B-128
    #[test]
    fn any_split_of_any_stream_matches_the_independent_parser(
        pieces in proptest::collection::vec(prop::sample::select(PIECES), 0..20),
        cuts in proptest::collection::vec(1..9_usize, 1..20),
    ) {
        let bytes = pieces.concat();
        let mut conn = Conn::new(Kind::Lines, &limits(40));
        let (mut items, mut rest, mut cuts) = (Vec::new(), &bytes[..], cuts.iter().cycle());
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(rest.len().min(*cuts.next().unwrap()));
            conn.bytes(Bytes::copy_from_slice(piece));
            poll(&mut conn, &mut items);
            rest = after;
        }
        conn.eof();
        poll(&mut conn, &mut items);
        // The twin does not read the rest of a line that is too long.
        items.retain(|item| !matches!(item, Inbound::Invalid(defect) if defect.head.is_empty()));
        prop_assert_eq!(items, twin(40, &bytes));
    }
}
