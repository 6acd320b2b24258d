//! The work and the memory for peers that send little at a time.

use super::*;
use crate::frame::work::{MAX_IDLE, Work};
use crate::sizes::scaled;

/// Returns the bytes that were scanned or moved. Checks the memory that is held.
fn cost(reader: Reader, wire: &[u8], piece: usize, max: usize, items: usize) -> usize {
    let mut frames = FrameReader::new(reader == Reader::Server, max);
    let mut found = 0;
    for part in wire.chunks(piece) {
        frames.bytes(Bytes::copy_from_slice(part));
        while let Some(item) = frames.poll() {
            assert!(!is_final(&item), "{item:?}");
            found += 1;
        }
        assert!(frames.buffered() <= max + 125, "{}", frames.buffered());
    }
    assert_eq!(found, items);
    frames.scanned
}

/// Returns a message in fragments of this length.
fn fragments(reader: Reader, message: &[u8], len: usize) -> Vec<u8> {
    let mut frames: Vec<(u8, &[u8])> = message.chunks(len).map(|part| (0x00, part)).collect();
    frames[0].0 = 0x01;
    frames.push((0x80, b""));
    reader.wire(&frames)
}

// covers: WS-B-020, WS-B-026
#[test]
fn tiny_fragments_and_reads_cost_linear_work() {
    const SIZE: usize = scaled(20_000);
    let texts = [b"x".repeat(SIZE), "😀".repeat(SIZE / 4).into_bytes()];
    for (reader, message) in BOTH.into_iter().flat_map(|reader| texts.iter().map(move |text| (reader, text))) {
        for len in [1, 3, 1000, SIZE] {
            let wire = fragments(reader, message, len);
            for piece in [1, 2, 1500, wire.len()] {
                // At most three bytes of a character are scanned again with each read, and a
                // growing buffer moves less than twice its length.
                let scanned = cost(reader, &wire, piece, SIZE, 1);
                assert!(scanned <= wire.len() + 7 * SIZE, "{reader:?} {len} {piece}: {scanned}");
            }
        }
        // One frame in one read: each byte is scanned at most once, and moved at most once.
        let wire = reader.wire(&[(0x81, message)]);
        assert!(cost(reader, &wire, wire.len(), SIZE, 1) <= 2 * wire.len());
    }
}

// covers: WS-B-020, WS-B-021
#[test]
fn empty_frames_cost_their_headers() {
    for reader in BOTH {
        let empty = reader.wire(&[(0x00, b"")]).repeat(20_000);
        let wire = [reader.wire(&[(0x01, b"")]), empty, reader.wire(&[(0x80, b"")])].concat();
        for piece in [1, wire.len()] {
            let mut frames = FrameReader::new(reader == Reader::Server, 10);
            let mut items = Vec::new();
            for part in wire.chunks(piece) {
                frames.bytes(Bytes::copy_from_slice(part));
                items.extend(core::iter::from_fn(|| frames.poll()));
                assert_eq!(frames.buffered(), 0);
            }
            assert_eq!((items, frames.scanned), ([text("")].to_vec(), wire.len()));
        }
        let pings = reader.wire(&[(0x89, b"p"), (0x8a, b"")]).repeat(2_000);
        assert!(cost(reader, &pings, 1, 10, 4_000) <= 2 * pings.len());
    }
}

/// A peer that sends only frames without a message stops a turn, and in the end the connection.
#[test]
fn frames_without_a_message_are_bounded_work() {
    for reader in BOTH {
        let control = [0; 125];
        for (frames, count) in [(&[(0x89, &b""[..])][..], 60_000), (&[(0x8a, &control)], 10_000)] {
            let mut codec = reader.codec(MAX);
            codec.bytes(reader.wire(frames).repeat(count).into());
            let (mut out, mut turns) = (ShortQueue::new(), 0);
            let mut polled = 0;
            while polled < count {
                let mut work = Work::of_turn();
                while codec.poll_within(&mut out, &mut work).is_some() {
                    polled += 1;
                }
                turns += 1;
                assert!(work.is_stopped() || polled == count);
                assert!(polled <= turns * (Work::AT_ONCE / Work::UNIT), "{polled} in {turns}");
            }
            assert!(turns > 4, "{turns}");
        }
        // The headers of empty fragments belong to no message either.
        let header = reader.wire(&[(0x89, b"")]).len();
        let (full, fragment) = (reader.wire(&[(0x89, &control)]), reader.wire(&[(0x00, b"")]));
        let pings = MAX_IDLE / full.len();
        let (message, begin) = (reader.wire(&[(0x81, b"x")]), reader.wire(&[(0x01, b"x")]));
        for (start, repeated, count) in [(vec![], full, pings), (begin, fragment, MAX_IDLE / header - 1)] {
            let mut frames = FrameReader::new(reader == Reader::Server, MAX);
            frames.bytes(start.into());
            let piece = Bytes::from(repeated.repeat(1000));
            let fail = fail(CloseCode::Policy, "16 MiB of frames without a message");
            let mut feed = |count: usize| {
                let mut last = None;
                for at in 0..count.div_ceil(1000) {
                    frames.bytes(piece.slice(..repeated.len() * (count - 1000 * at).min(1000)));
                    while let Some(item) = frames.poll() {
                        last = Some(item);
                    }
                }
                last
            };
            if repeated.len() > 100 {
                assert!(matches!(feed(count), Some(WsItem::Ping(_))));
                assert_eq!(feed(1), Some(fail));
            } else {
                assert_eq!(feed(count), None);
                assert_eq!(feed(1), Some(fail));
            }
        }
        // A message begins the count again.
        let mut frames = FrameReader::new(reader == Reader::Server, MAX);
        let piece = Bytes::from([reader.wire(&[(0x89, &control)]).repeat(80_000), message].concat());
        for _ in 0..3 {
            frames.bytes(piece.clone());
            let last = core::iter::from_fn(|| frames.poll()).last();
            assert_eq!(last, Some(text("x")));
        }
    }
}

// covers: WS-B-026
#[test]
fn a_message_holds_at_most_twice_its_length() {
    for reader in BOTH {
        let message = "x".repeat(10_001);
        let (mut codec, mut out) = (reader.codec(1 << 20), ShortQueue::new());
        for (sent, byte) in fragments(reader, message.as_bytes(), 1).chunks(1).enumerate() {
            codec.bytes(Bytes::copy_from_slice(byte));
            if let Some(item) = codec.poll(&mut out) {
                assert_eq!(item, text(&message));
            }
            assert!(codec.buffered() <= (2 * sent).max(64), "{} after {sent}", codec.buffered());
        }
        assert_eq!((codec.buffered(), codec.at_boundary()), (0, true));
        // One frame holds no more than it announces.
        let wire = reader.wire(&[(0x81, message.as_bytes())]);
        for byte in wire[..wire.len() - 1].chunks(1) {
            codec.bytes(Bytes::copy_from_slice(byte));
            assert_eq!(codec.poll(&mut out), None);
            assert!(codec.buffered() <= message.len(), "{}", codec.buffered());
        }
    }
}
