//! Messages and the frames that carry them.

use super::*;

// covers: WS-B-016, WS-B-020, WS-B-021
#[test]
fn examples_of_the_standard_are_read() {
    let client = |bytes: &[u8], items: &[WsItem]| Reader::Client.check(1 << 16, bytes, items);
    let server = |bytes: &[u8], items: &[WsItem]| Reader::Server.check(1 << 16, bytes, items);
    client(b"\x81\x05\x48\x65\x6c\x6c\x6f", &[text("Hello")]);
    server(b"\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58", &[text("Hello")]);
    client(b"\x01\x03\x48\x65\x6c\x80\x02\x6c\x6f", &[text("Hello")]);
    client(b"\x89\x05\x48\x65\x6c\x6c\x6f", &[WsItem::Ping("Hello".into())]);
    server(b"\x8a\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58", &[WsItem::Pong("Hello".into())]);
    let binary = fail(CloseCode::Unsupported, "a binary message");
    client(&[b"\x82\x7e\x01\x00", &[0; 256][..]].concat(), core::slice::from_ref(&binary));
    client(&[b"\x82\x7f\0\0\0\0\0\x01\0\0", &[0; 65536][..]].concat(), &[binary]);
    // The same lengths of text.
    client(&[b"\x81\x7e\x01\x00", "x".repeat(256).as_bytes()].concat(), &[text(&"x".repeat(256))]);
    client(&[b"\x81\x7f\0\0\0\0\0\x01\0\0", "x".repeat(65536).as_bytes()].concat(), &[text(&"x".repeat(65536))]);
}

// covers: WS-B-016, B-270
#[test]
fn frame_with_a_mask_of_the_wrong_side_fails() {
    for first in [0x81, 0x01, 0x89, 0x8a, 0x88] {
        Reader::Server.check(MAX, &frame(first, None, b""), &[protocol("a client that does not mask")]);
        Reader::Client.check(MAX, &frame(first, Some(KEY), b""), &[protocol("a server that masks")]);
    }
    // Within a message too.
    let bytes = [frame(0x01, Some(KEY), b"a"), frame(0x80, None, b"b")].concat();
    Reader::Server.check(MAX, &bytes, &[protocol("a client that does not mask")]);
}

// covers: WS-B-017, WS-B-019, WS-B-020
#[test]
fn every_first_byte_is_judged() {
    for first in 0..=u8::MAX {
        let fin = first & 0x80 != 0;
        let items = match (first & 0x70, first & 0x0f) {
            (1.., _) => protocol("a reserved bit is set"),
            (_, 3..=7 | 11..=15) => protocol("a reserved opcode"),
            (_, 8..=10) if !fin => protocol("a fragmented control frame"),
            (_, 0) => protocol("a continuation without a message"),
            (_, 1) if fin => text(""),
            (_, 1) => {
                check(&[(first, b"")], &[]);
                continue;
            }
            (_, 2) => fail(CloseCode::Unsupported, "a binary message"),
            (_, 8) => close(None, ""),
            (_, 9) => WsItem::Ping(Bytes::new()),
            _ => WsItem::Pong(Bytes::new()),
        };
        check(&[(first, b"")], &[items]);
    }
}

// covers: WS-B-018
#[test]
fn length_must_have_its_shortest_form() {
    let long = protocol("a length in a form that is too long");
    let cases: [(&[u8], WsItem); 8] = [
        (b"\x7e\0\0", long.clone()),
        (b"\x7e\0\x7d", long.clone()),
        (b"\x7f\0\0\0\0\0\0\0\0", long.clone()),
        (b"\x7f\0\0\0\0\0\0\0\x05", long.clone()),
        (b"\x7f\0\0\0\0\0\0\xff\xff", long),
        (b"\x7f\x80\0\0\0\0\0\0\0", protocol("a length of more than 63 bits")),
        (b"\x7f\xff\xff\xff\xff\xff\xff\xff\xff", protocol("a length of more than 63 bits")),
        (b"\x7f\x7f\xff\xff\xff\xff\xff\xff\xff", fail(CloseCode::TooBig, TOO_LARGE)),
    ];
    for (length, item) in cases {
        Reader::Client.check(1 << 20, &[b"\x81", length].concat(), core::slice::from_ref(&item));
        let masked = [b"\x81", &[length[0] | 0x80], &length[1..], &KEY].concat();
        Reader::Server.check(1 << 20, &masked, &[item]);
    }
    for len in [0, 1, 125, 126, 127, 65535, 65536, 65537] {
        let message = "y".repeat(len);
        for reader in BOTH {
            reader.check(1 << 20, &reader.wire(&[(0x81, message.as_bytes())]), &[text(&message)]);
        }
    }
}

// covers: WS-B-019
#[test]
fn control_frame_has_at_most_125_bytes() {
    let (most, more) = ([b'x'; 125], [b'x'; 126]);
    check(&[(0x89, &most)], &[WsItem::Ping(Bytes::copy_from_slice(&most))]);
    check(&[(0x8a, &most)], &[WsItem::Pong(Bytes::copy_from_slice(&most))]);
    let body = [&1000_u16.to_be_bytes(), &most[2..]].concat();
    check(&[(0x88, &body)], &[close(1000, &"x".repeat(123))]);
    for first in [0x88, 0x89, 0x8a] {
        check(&[(first, &more)], &[protocol("a control frame of more than 125 bytes")]);
    }
    // The limit of messages is not theirs.
    let seen = Reader::Client.seen(0, &frame(0x89, None, &most), false);
    assert_eq!(seen.items, [WsItem::Ping(Bytes::copy_from_slice(&most))]);
}

// covers: WS-B-019, WS-B-020, B-270
#[test]
fn fragments_are_joined_around_control_frames() {
    check(&[(0x01, b"a"), (0x00, b"b"), (0x00, b""), (0x80, b"c")], &[text("abc")]);
    check(&[(0x01, b""), (0x00, b""), (0x80, b"")], &[text("")]);
    check(&[(0x01, b""), (0x80, b"abc"), (0x81, b"d")], &[text("abc"), text("d")]);
    check(
        &[(0x01, b"a"), (0x89, b"1"), (0x00, "é".as_bytes()), (0x8a, b"2"), (0x89, b""), (0x80, b"c")],
        &[WsItem::Ping("1".into()), WsItem::Pong("2".into()), WsItem::Ping(Bytes::new()), text("aéc")],
    );
    check(&[(0x01, b"a"), (0x88, b""), (0x80, b"b")], &[close(None, "")]);
    let inside = protocol("a message inside another one");
    check(&[(0x01, b"a"), (0x81, b"b")], core::slice::from_ref(&inside));
    check(&[(0x01, b"a"), (0x01, b"b")], core::slice::from_ref(&inside));
    check(&[(0x01, b"a"), (0x82, b"b")], core::slice::from_ref(&inside));
    check(&[(0x01, b""), (0x89, b"1"), (0x02, b"b")], &[WsItem::Ping("1".into()), inside]);
    let alone = protocol("a continuation without a message");
    check(&[(0x80, b"a")], core::slice::from_ref(&alone));
    check(&[(0x01, b"a"), (0x80, b"b"), (0x00, b"c")], &[text("ab"), alone]);
}

/// Invalid UTF-8, and the number of its bytes that are valid or the start of a character.
const INVALID: [(&[u8], usize); 14] = [
    (b"\x80", 0),
    (b"a\xff", 1),
    (b"\xc0\xaf", 0),
    (b"\xc1", 0),
    (b"\xc3(", 1),
    (b"\xe0\x9f", 1),
    (b"\xe2\x82(", 2),
    (b"\xed\xa0\x80", 1),
    (b"\xf0\x8f", 1),
    (b"\xf0\x9f\x98(", 3),
    (b"\xf4\x90", 1),
    (b"\xf5", 0),
    ("κόσμε\u{d7ff}".as_bytes(), usize::MAX),
    ("\u{0}\u{7f}\u{80}\u{7ff}\u{800}\u{ffff}\u{10000}\u{10ffff}".as_bytes(), usize::MAX),
];

// covers: WS-B-025
#[test]
fn text_that_is_not_utf8_fails_at_its_first_bad_byte() {
    let invalid = fail(CloseCode::InvalidText, NOT_UTF8);
    for (bytes, valid) in INVALID.into_iter().filter(|(_, valid)| *valid < usize::MAX) {
        check(&[(0x81, bytes)], core::slice::from_ref(&invalid));
        check(&[(0x01, bytes)], core::slice::from_ref(&invalid));
        let cut = bytes.len() / 2;
        check(
            &[(0x01, &bytes[..cut]), (0x89, b""), (0x00, &bytes[cut..])],
            &[WsItem::Ping(Bytes::new()), invalid.clone()][usize::from(cut > valid)..],
        );
        // Although neither the frame nor the message is complete.
        for reader in BOTH {
            let long = reader.wire(&[(0x01, &[&b"aa"[..], bytes, &[b'x'; 100]].concat())]);
            let start = long.len() - 100 - bytes.len();
            reader.check(MAX, &long[..start + valid], &[]);
            reader.check(MAX, &long[..=start + valid], core::slice::from_ref(&invalid));
        }
        // Nor does a later fragment repair it.
        let good = "é".as_bytes();
        check(&[(0x01, &good[..1]), (0x80, b"x")], core::slice::from_ref(&invalid));
    }
    // A message that ends inside a character.
    for end in [&b"\xc3"[..], b"a\xe2\x82", b"\xf0\x9f\x98"] {
        check(&[(0x81, end)], core::slice::from_ref(&invalid));
        check(&[(0x01, end), (0x80, b"")], core::slice::from_ref(&invalid));
    }
}

// covers: WS-B-020, WS-B-025
#[test]
fn characters_may_be_split_over_fragments() {
    for (bytes, _) in INVALID.into_iter().filter(|(_, valid)| *valid == usize::MAX) {
        let whole = text(core::str::from_utf8(bytes).unwrap());
        for cut in 0..=bytes.len() {
            let (a, b) = bytes.split_at(cut);
            check(&[(0x01, a), (0x8a, b""), (0x80, b)], &[WsItem::Pong(Bytes::new()), whole.clone()]);
        }
        let mut frames: Vec<(u8, &[u8])> = bytes.chunks(1).map(|byte| (0x00, byte)).collect();
        frames[0].0 = 0x01;
        frames.push((0x80, b""));
        check(&frames, &[whole]);
    }
}

// covers: WS-B-026
#[test]
fn message_over_the_limit_fails_before_it_is_held() {
    let too_big = fail(CloseCode::TooBig, TOO_LARGE);
    let (most, more) = ([b'x'; MAX], [b'x'; MAX + 1]);
    check(&[(0x81, &most)], &[text(&"x".repeat(MAX))]);
    check(&[(0x01, &most), (0x00, b""), (0x80, b"")], &[text(&"x".repeat(MAX))]);
    check(&[(0x01, &most), (0x89, b"p"), (0x80, b"x")], &[WsItem::Ping("p".into()), too_big.clone()]);
    for reader in BOTH {
        // The header alone is enough, of one frame and of a fragment.
        for first in [0x81, 0x01] {
            let bytes = reader.wire(&[(first, &more)]);
            reader.check(MAX, &bytes[..bytes.len() - more.len()], core::slice::from_ref(&too_big));
        }
        let bytes = reader.wire(&[(0x01, b"a"), (0x00, &most)]);
        reader.check(MAX, &bytes[..bytes.len() - most.len()], core::slice::from_ref(&too_big));
    }
    // Not even the largest length overflows.
    let bytes = [frame(0x01, None, b"a"), b"\x00\x7f\x7f\xff\xff\xff\xff\xff\xff\xffbcd".to_vec()].concat();
    Reader::Client.check(usize::MAX, &bytes, &[]);
    Reader::Client.check(usize::MAX >> 1, &bytes, &[too_big]);
}

// covers: WS-B-026
#[test]
fn announced_length_reserves_no_memory() {
    for reader in BOTH {
        let (mut codec, mut out) = (reader.codec(1 << 30), ShortQueue::new());
        let bytes = frame(0x81, reader.key(), &[b'x'; 1 << 20]);
        // An announcement of 2^29 bytes. Only some follow.
        let header = [&bytes[..2], &(1_u64 << 29).to_be_bytes(), &bytes[10..bytes.len() - (1 << 20)]].concat();
        codec.bytes(header.into());
        let mut sent = 0;
        for piece in bytes[bytes.len() - (1 << 20)..].chunks(1000) {
            sent += piece.len();
            codec.bytes(Bytes::copy_from_slice(piece));
            assert_eq!(codec.poll(&mut out), None);
            assert!(codec.buffered() <= 2 * sent, "{} of {sent}", codec.buffered());
        }
        assert!(!codec.at_boundary());
        // What fails releases everything.
        codec.bytes(Bytes::from_static(&[0xff; 8]));
        assert!(matches!(codec.poll(&mut out), Some(WsItem::Fail { code: CloseCode::InvalidText, .. })));
        codec.bytes(Bytes::from_static(&[0; 99]));
        assert_eq!((codec.buffered(), codec.at_boundary(), codec.poll(&mut out)), (0, true, None));
    }
}

// covers: WS-B-016
#[test]
fn large_unmasked_message_shares_its_buffer() {
    for (size, count, shared) in [(10, 1, false), (5000, 1, true), (5000, 3, false), (100_000, 1, true)] {
        let bytes = Bytes::from(frame(0x81, None, &"x".repeat(size).into_bytes()).repeat(count));
        let (mut codec, mut out) = (Reader::Client.codec(1 << 20), ShortQueue::new());
        codec.bytes(bytes.clone());
        for _ in 0..count {
            let Some(WsItem::Text(message)) = codec.poll(&mut out) else { panic!() };
            assert_eq!((message.len(), bytes.as_ptr_range().contains(&message.as_ptr())), (size, shared));
            if shared {
                break;
            }
        }
        codec.poll(&mut out);
        assert_eq!(codec.buffered(), 0);
    }
}
