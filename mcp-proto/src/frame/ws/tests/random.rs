//! Random frames, against a decoder that knows all bytes at once, and against our own writer.

use super::*;
use alloc::string::String;
use alloc::vec;
use proptest::prelude::*;

/// One message of a peer: its text, where it is cut, and the control frames before each fragment.
#[derive(Clone, Debug)]
pub(super) struct Sent {
    text: String,
    cuts: Vec<usize>,
    controls: Vec<Vec<(u8, Vec<u8>)>>,
}

/// Returns the bytes of a frame with its first byte, payload and key.
pub(super) type Frames = Vec<(u8, Vec<u8>, [u8; 4])>;

impl Sent {
    fn frames(&self) -> Vec<(u8, Vec<u8>)> {
        let text = self.text.as_bytes();
        let mut cuts: Vec<usize> = self.cuts.iter().map(|cut| cut % (text.len() + 1)).collect();
        cuts.sort_unstable();
        cuts.push(text.len());
        let (mut start, mut frames, last) = (0, Vec::new(), cuts.len() - 1);
        for (at, end) in cuts.into_iter().enumerate() {
            frames.extend(self.controls.get(at).into_iter().flatten().cloned());
            let first = if at == 0 { 0x01 } else { 0x00 } | if at == last { 0x80 } else { 0 };
            frames.push((first, text[start..end].to_vec()));
            start = end;
        }
        frames
    }
}

fn control() -> impl Strategy<Value = (u8, Vec<u8>)> {
    (prop::sample::select(vec![0x89, 0x8a]), prop::collection::vec(any::<u8>(), 0..126))
}

fn sent() -> impl Strategy<Value = Sent> {
    let text = prop_oneof![8 => "\\PC{0,40}", 1 => "[a-zé😀]{126,400}"];
    let controls = prop::collection::vec(prop::collection::vec(control(), 0..3), 0..4);
    (text, prop::collection::vec(any::<usize>(), 0..5), controls).prop_map(|(text, cuts, controls)| Sent {
        text,
        cuts,
        controls,
    })
}

/// Returns the frames of some messages, perhaps with a `Close` or another frame somewhere.
pub(super) fn frames() -> impl Strategy<Value = Frames> {
    let odd = prop_oneof![
        2 => Just((0x88, vec![])),
        2 => (prop::sample::select(vec![1000_u16, 1001, 1005, 1014, 1015, 3000, 4999, 5000, 9]), "\\PC{0,9}")
            .prop_map(|(code, why)| (0x88, [&code.to_be_bytes(), why.as_bytes()].concat())),
        1 => (any::<u8>(), prop::collection::vec(any::<u8>(), 0..130)),
        1 => (prop::sample::select(vec![0x00, 0x01, 0x02, 0x80, 0x81]), prop::collection::vec(any::<u8>(), 0..9)),
    ];
    let messages = prop::collection::vec(sent(), 0..6);
    (messages, prop::option::of((odd, any::<prop::sample::Index>())), any::<u64>()).prop_map(|(sent, odd, salt)| {
        let mut frames: Vec<_> = sent.iter().flat_map(Sent::frames).collect();
        if let Some((frame, index)) = odd {
            frames.insert(index.index(frames.len() + 1), frame);
        }
        let key = |at: usize| ((salt as u32).wrapping_mul(at as u32 + 1)).to_be_bytes();
        frames.into_iter().enumerate().map(|(at, (first, payload))| (first, payload, key(at))).collect()
    })
}

pub(super) fn wire(reader: Reader, frames: &Frames) -> Vec<u8> {
    let keyed = |key| (reader == Reader::Server).then_some(key);
    frames.iter().flat_map(|(first, payload, key)| frame(*first, keyed(*key), payload)).collect()
}

/// Reads the bytes in pieces of these lengths, then the end of the connection.
pub(super) fn ours(reader: Reader, max: usize, bytes: &[u8], cuts: &[usize]) -> Vec<WsItem> {
    let (mut pieces, mut rest, mut cuts) = (Vec::new(), bytes, cuts.iter().cycle());
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(rest.len().min(*cuts.next().unwrap()));
        pieces.push(piece);
        rest = after;
    }
    reader.feed(max, pieces, false, true).items
}

/// An independent decoder: it sees all bytes at once, one frame after another.
fn twin(reader: Reader, max: usize, mut bytes: &[u8]) -> Vec<WsItem> {
    let (mut items, mut message) = (Vec::new(), None::<Vec<u8>>);
    loop {
        match twin_frame(reader, max, &mut bytes, &mut message) {
            Ok(Some(item)) => items.push(item),
            Ok(None) => {}
            Err(item) => {
                items.push(item);
                return items;
            }
        }
    }
}

/// Reads one frame. Returns the item that it completes, or the last one.
fn twin_frame(
    reader: Reader,
    max: usize,
    bytes: &mut &[u8],
    message: &mut Option<Vec<u8>>,
) -> Result<Option<WsItem>, WsItem> {
    let mut next = |count: usize| {
        let there = count.min(bytes.len());
        let (taken, rest) = bytes.split_at(there);
        *bytes = rest;
        if there == count { Ok(taken) } else { Err(taken) }
    };
    let &[first, second] = next(2).map_err(|_| WsItem::End)? else { panic!() };
    let (fin, opcode, masked, short) = (first >= 128, first % 16, second >= 128, u64::from(second % 128));
    let control = opcode >= 8;
    let why = if first % 128 >= 16 {
        Some("a reserved bit is set")
    } else if !matches!(opcode, 0 | 1 | 2 | 8 | 9 | 10) {
        Some("a reserved opcode")
    } else if control && !fin {
        Some("a fragmented control frame")
    } else if control && short > 125 {
        Some("a control frame of more than 125 bytes")
    } else if opcode == 0 && message.is_none() {
        Some("a continuation without a message")
    } else if matches!(opcode, 1 | 2) && message.is_some() {
        Some("a message inside another one")
    } else if opcode == 2 {
        return Err(fail(CloseCode::Unsupported, "a binary message"));
    } else if masked != (reader == Reader::Server) {
        Some(if masked { "a server that masks" } else { "a client that does not mask" })
    } else {
        None
    };
    if let Some(why) = why {
        return Err(protocol(why));
    }
    let digits = if short < 126 { 0 } else { [2, 8][usize::from(short == 127)] };
    let announced = next(digits).map_err(|_| WsItem::End)?.iter().fold(0_u64, |sum, byte| sum << 8 | u64::from(*byte));
    let key = next(if masked { 4 } else { 0 }).map_err(|_| WsItem::End)?.to_vec();
    if short == 126 && announced < 126 || short == 127 && announced < 65536 {
        return Err(protocol("a length in a form that is too long"));
    }
    if announced >= 1 << 63 {
        return Err(protocol("a length of more than 63 bits"));
    }
    let len = if digits == 0 { short } else { announced };
    let before = message.as_ref().map_or(0, Vec::len) as u64;
    if !control && len + before > max as u64 {
        return Err(fail(CloseCode::TooBig, TOO_LARGE));
    }
    let (payload, complete) = match next(len as usize) {
        Ok(payload) => (payload, true),
        Err(payload) => (payload, false),
    };
    let plain = payload.iter().enumerate().map(|(at, byte)| byte ^ key.get(at % 4).copied().unwrap_or(0));
    let plain: Vec<u8> = plain.collect();
    if !control {
        let so_far = [message.take().unwrap_or_default(), plain].concat();
        let ended = complete && fin;
        if ended && core::str::from_utf8(&so_far).is_err() || !begins_text(&so_far) {
            return Err(fail(CloseCode::InvalidText, NOT_UTF8));
        }
        if ended {
            return Ok(Some(WsItem::Text(so_far.into())));
        }
        *message = Some(so_far);
        return if complete { Ok(None) } else { Err(WsItem::End) };
    }
    match (complete, opcode) {
        (false, _) => Err(WsItem::End),
        (_, 9) => Ok(Some(WsItem::Ping(plain.into()))),
        (_, 10) => Ok(Some(WsItem::Pong(plain.into()))),
        _ if plain.is_empty() => Err(close(None, "")),
        _ if plain.len() == 1 => Err(protocol("half of a close code")),
        _ => {
            let code = u16::from(plain[0]) << 8 | u16::from(plain[1]);
            if code < 1000 || matches!(code, 1004..=1006 | 1015..=2999) || code >= 5000 {
                return Err(protocol("a close code that must not be sent"));
            }
            match core::str::from_utf8(&plain[2..]) {
                Ok(reason) => Err(close(code, reason)),
                Err(_) => Err(fail(CloseCode::InvalidText, NOT_UTF8)),
            }
        }
    }
}

/// Returns whether some bytes after these make them UTF-8.
fn begins_text(bytes: &[u8]) -> bool {
    let next = [0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf];
    let more = next.iter().flat_map(|byte| [&[*byte][..], &[*byte, 0x80], &[*byte, 0x80, 0x80]].map(<[u8]>::to_vec));
    more.chain([vec![]]).any(|more| core::str::from_utf8(&[bytes, &more].concat()).is_ok())
}

proptest! {
    // covers: WS-B-016, WS-B-017, WS-B-018, WS-B-019, WS-B-020, WS-B-022, WS-B-024, WS-B-025,
    // WS-B-026
    #[test]
    fn any_split_of_any_frames_matches_the_independent_decoder(
        frames in frames(),
        faults in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..3),
        cut in prop::option::of(any::<prop::sample::Index>()),
        cuts in prop::collection::vec(1..40_usize, 1..20),
        max in prop::sample::select(vec![0, 10, 100, 100_000]),
        is_client in any::<bool>(),
    ) {
        let reader = if is_client { Reader::Client } else { Reader::Server };
        let mut bytes = wire(reader, &frames);
        for (index, byte) in faults.iter().filter(|_| !bytes.is_empty()).collect::<Vec<_>>() {
            let at = index.index(bytes.len());
            bytes[at] = *byte;
        }
        bytes.truncate(cut.map_or(usize::MAX, |cut| cut.index(bytes.len() + 1)));
        prop_assert_eq!(ours(reader, max, &bytes, &cuts), twin(reader, max, &bytes));
    }

    // covers: WS-B-016, WS-B-018, WS-C-015
    #[test]
    fn what_one_side_writes_the_other_reads(
        parts in prop::collection::vec((0..3, "\\PC{0,200}", prop::sample::select(vec![1, 1, 1, 10, 200])), 0..8),
        reason in "\\PC{0,60}",
        cuts in prop::collection::vec(1..5000_usize, 1..20),
        is_client in any::<bool>(),
    ) {
        let (reader, writer) =
            if is_client { (Reader::Client, Reader::Server) } else { (Reader::Server, Reader::Client) };
        let (mut codec, mut out, mut items, mut written) = (writer.codec(0), ShortQueue::new(), vec![], vec![]);
        for (kind, part, times) in parts {
            match kind {
                0 => {
                    let mut end = part.len().min(125);
                    while !part.is_char_boundary(end) {
                        end -= 1;
                    }
                    let payload = Bytes::copy_from_slice(&part.as_bytes()[..end]);
                    codec.ping(payload.clone(), &mut out).unwrap();
                    items.push(WsItem::Ping(payload));
                }
                1 => {
                    codec.pong(Bytes::from_static(b"p"));
                    out.extend(codec.poll_pong());
                    items.push(WsItem::Pong(Bytes::from_static(b"p")));
                }
                _ => {
                    let message = part.repeat(times);
                    codec.text(message.clone().into(), &mut out).unwrap();
                    items.push(text(&message));
                }
            }
            written.extend(drain(&mut out));
        }
        codec.close(CloseCode::Normal, &reason, &mut out);
        written.extend(drain(&mut out));
        let seen = ours(reader, 1 << 20, &written, &cuts);
        prop_assert_eq!(&seen[..items.len()], &items[..]);
        let [WsItem::Close(CloseFrame { code: Some(1000), reason: seen })] = &seen[items.len()..] else { panic!() };
        prop_assert!(reason.starts_with(&**seen) && (seen.len() > 119 || *seen == reason));
    }
}
