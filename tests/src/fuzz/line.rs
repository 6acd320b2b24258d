//! Lines: the first byte chooses the limit, the second the cuts of the rest.

use super::script::{Script, pieces};
use bytes::Bytes;
use mcp_proto::exchange::Inbound;
use mcp_proto::frame::{Conn, Kind};
use mcp_proto::limits::FrameLimits;
use mcp_proto::rpc::{InvalidKind, InvalidMessage, parse, parse_batch_or_message};

/// Any cut of a stream of lines gives the items of the whole stream and of a naive twin, and holds
/// no more than one line.
///
/// # Panics
/// If not.
pub fn check(data: &[u8]) {
    let mut script = Script::new(data);
    let mut limits = FrameLimits::default();
    limits.max_line = *script.pick(&[40, 8, 1, 300, 5000, 1 << 20]);
    limits.max_batch = 3;
    limits.max_depth = *script.pick(&[128, 3]);
    let cut = u64::from(script.byte());
    let bytes = script.rest();
    let expected = twin(bytes, &limits);
    let mut whole = read([Bytes::copy_from_slice(bytes)], &limits, true);
    assert_eq!(read(pieces(bytes, cut), &limits, true), whole, "in pieces");
    assert_eq!(read(pieces(bytes, cut), &limits, false), whole, "in pieces, polled late");
    // The twin does not read the rest of a line that is too long.
    whole.retain(|item| !matches!(item, Inbound::Invalid(defect) if defect.head.is_empty()));
    assert_eq!(whole, expected, "whole");
}

fn read(pieces: impl IntoIterator<Item = Bytes>, limits: &FrameLimits, polls: bool) -> Vec<Inbound> {
    let mut conn = Conn::new(Kind::Lines, limits);
    let mut items = Vec::new();
    for piece in pieces {
        conn.bytes(piece);
        if polls {
            items.extend(std::iter::from_fn(|| conn.poll_item()));
            assert!(conn.buffered() <= limits.max_line, "{} bytes are held", conn.buffered());
        }
    }
    conn.eof();
    items.extend(std::iter::from_fn(|| conn.poll_item()));
    assert_eq!((conn.buffered(), conn.at_boundary()), (0, true), "nothing is left after the end");
    items
}

/// An independent parser: the whole stream at once, one line after the other.
fn twin(bytes: &[u8], limits: &FrameLimits) -> Vec<Inbound> {
    let mut items = Vec::new();
    for (n, line) in bytes.split(|&byte| byte == b'\n').enumerate() {
        let marked = n == 0 && line.starts_with(b"\xEF\xBB\xBF");
        let line = if marked { line } else { line.trim_ascii_start() };
        if line.len() > limits.max_line {
            let part = Bytes::copy_from_slice(&line[..limits.max_line]);
            let defect = parse(part.clone(), limits.max_depth).err();
            let defect = defect.unwrap_or_else(|| InvalidMessage::new(InvalidKind::TooLong, &part));
            items.push(Inbound::Invalid(InvalidMessage { kind: InvalidKind::TooLong, ..defect }));
            continue;
        }
        let text = if marked { &line[3..] } else { line }.trim_ascii();
        if !text.is_empty() {
            items.push(parse_batch_or_message(Bytes::copy_from_slice(text), limits).into());
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
