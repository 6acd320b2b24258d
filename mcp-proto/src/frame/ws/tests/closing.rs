//! Pings, and the closing handshake.

use super::*;

fn polled(codec: &mut WsCodec, out: &mut ShortQueue<Bytes>, bytes: &[u8]) -> Vec<WsItem> {
    codec.bytes(Bytes::copy_from_slice(bytes));
    core::iter::from_fn(|| codec.poll(out)).collect()
}

/// Returns the items that the other side reads.
fn read_by_peer(reader: Reader, written: &[u8]) -> Vec<WsItem> {
    let peer = if reader == Reader::Client { Reader::Server } else { Reader::Client };
    peer.feed(MAX, [written], false, false).items
}

// covers: WS-B-021
#[test]
fn ping_is_answered_with_its_payload() {
    for reader in BOTH {
        let (mut codec, mut out) = (reader.codec(MAX), ShortQueue::new());
        for payload in [&b"p"[..], b"", &[0xff; 125]] {
            polled(&mut codec, &mut out, &reader.wire(&[(0x89, payload)]));
            assert!(out.is_empty());
            let pong = codec.poll_pong().unwrap();
            assert_eq!(read_by_peer(reader, &pong), [WsItem::Pong(Bytes::copy_from_slice(payload))]);
            assert_eq!(codec.poll_pong(), None);
        }
        // An unsolicited pong, and a message, make none due.
        polled(&mut codec, &mut out, &reader.wire(&[(0x8a, b"p"), (0x81, b"m")]));
        assert_eq!((codec.poll_pong(), out.is_empty()), (None, true));
    }
}

// covers: WS-B-021
#[test]
fn flood_of_pings_leaves_one_pong() {
    for reader in BOTH {
        let (mut codec, mut out) = (reader.codec(MAX), ShortQueue::new());
        codec.text("m".into(), &mut out).unwrap();
        for n in 0..10_000_u32 {
            let items = polled(&mut codec, &mut out, &reader.wire(&[(0x89, &n.to_be_bytes())]));
            assert_eq!(items.len(), 1);
            assert!(codec.buffered() <= 125);
        }
        assert_eq!(read_by_peer(reader, &drain(&mut out)), [text("m")]);
        let latest = Bytes::copy_from_slice(&9999_u32.to_be_bytes());
        assert_eq!(read_by_peer(reader, &codec.poll_pong().unwrap()), [WsItem::Pong(latest)]);
        assert_eq!(codec.poll_pong(), None);
    }
}

// covers: WS-B-022, WS-B-024
#[test]
fn close_is_answered_once_with_its_code() {
    for (body, code) in [(&b""[..], None), (b"\x03\xe8", Some(1000)), (b"\x0f\xa0why \xc3\xa9", Some(4000))] {
        let reason = body.get(2..).map_or("", |reason| core::str::from_utf8(reason).unwrap());
        for reader in BOTH {
            let bytes = reader.wire(&[(0x89, b"p"), (0x88, body), (0x89, b"q"), (0x81, b"late")]);
            let seen = reader.seen(MAX, &bytes, false);
            assert_eq!(seen.items, [WsItem::Ping("p".into()), close(code, reason)]);
            // The reason is not repeated.
            assert_eq!(read_by_peer(reader, &seen.written), [WsItem::Pong("p".into()), close(code, "")]);
        }
    }
}

// covers: WS-B-022
#[test]
fn nothing_follows_a_close_that_was_sent() {
    for reader in BOTH {
        let (mut codec, mut out) = (reader.codec(MAX), ShortQueue::new());
        codec.text("m".into(), &mut out).unwrap();
        polled(&mut codec, &mut out, &reader.wire(&[(0x89, b"p")]));
        assert!(!codec.is_close_sent());
        codec.close(CloseCode::GoingAway, "bye", &mut out);
        assert!(codec.is_close_sent() && !codec.is_ended());
        let written = drain(&mut out);
        assert_eq!(read_by_peer(reader, &written), [text("m"), WsItem::Pong("p".into()), close(1001, "bye")]);
        assert_eq!(codec.text("n".into(), &mut out), Err(CLOSED));
        assert_eq!(codec.ping("n".into(), &mut out), Err(CLOSED));
        codec.close(CloseCode::Normal, "", &mut out);
        // The peer may still send messages. Its `Close` is not answered again, and no ping is.
        let items = polled(&mut codec, &mut out, &reader.wire(&[(0x81, b"late"), (0x89, b"p"), (0x88, b"\x03\xe9")]));
        assert_eq!(items, [text("late"), WsItem::Ping("p".into()), close(1001, "")]);
        assert_eq!((codec.poll_pong(), out.is_empty(), codec.is_ended()), (None, true, true));
    }
}

// covers: WS-B-022
#[test]
fn violation_is_answered_with_a_close() {
    let cases: [(&[u8], CloseCode); 4] = [
        (b"\xff\x80", CloseCode::Protocol),
        (b"\x82\x80", CloseCode::Unsupported),
        (b"\x81\x81\0\0\0\0\xff", CloseCode::InvalidText),
        (b"\x81\xfe\xff\xff\0\0\0\0", CloseCode::TooBig),
    ];
    for (bytes, expected) in cases {
        let seen = Reader::Server.seen(MAX, bytes, false);
        let [WsItem::Fail { code, why }] = seen.items[..] else { panic!("{seen:?}") };
        assert_eq!(code, expected);
        assert_eq!(read_by_peer(Reader::Server, &seen.written), [close(code.number(), why)]);
        // Not if one was sent.
        let (mut codec, mut out) = (Reader::Server.codec(MAX), ShortQueue::new());
        codec.close(CloseCode::Normal, "", &mut out);
        drain(&mut out);
        assert_eq!(polled(&mut codec, &mut out, bytes), seen.items);
        assert!(out.is_empty() && codec.is_ended());
    }
}

// covers: WS-B-024
#[test]
fn every_close_code_is_judged() {
    let reserved = protocol("a close code that must not be sent");
    for code in 0..=u16::MAX {
        let legal = matches!(code, 1000..=1003 | 1007..=1014 | 3000..=4999);
        let item = if legal { close(code, "") } else { reserved.clone() };
        let seen = Reader::Client.feed(MAX, [&frame(0x88, None, &code.to_be_bytes())[..]], false, false);
        assert_eq!(seen.items, [item]);
    }
    for code in [0, 999, 1004, 1005, 1006, 1015, 1016, 2999, 5000, 65535_u16] {
        check(&[(0x88, &code.to_be_bytes())], core::slice::from_ref(&reserved));
    }
    check(&[(0x88, b"\x03")], &[protocol("half of a close code")]);
}

// covers: WS-B-025
#[test]
fn reason_of_a_close_is_utf8() {
    check(&[(0x88, b"\x03\xe8\xff")], &[fail(CloseCode::InvalidText, NOT_UTF8)]);
    check(&[(0x88, b"\x03\xe8\xe2\x82")], &[fail(CloseCode::InvalidText, NOT_UTF8)]);
    check(&[(0x88, b"\x03\xe8\xe2\x82\xac")], &[close(1000, "€")]);
}

#[test]
fn end_without_a_close_is_an_item() {
    for reader in BOTH {
        let whole = reader.wire(&[(0x01, b"a"), (0x89, b"p"), (0x80, b"b"), (0x81, b"c")]);
        for at in 0..=whole.len() {
            let seen = reader.feed(MAX, [&whole[..at]], true, true);
            assert_eq!(seen.items.last(), Some(&WsItem::End), "{seen:?}");
            assert!(seen.at_boundary);
        }
        let (mut codec, mut out) = (reader.codec(MAX), ShortQueue::new());
        codec.eof();
        codec.bytes(whole.into());
        assert_eq!((codec.poll(&mut out), codec.poll(&mut out)), (Some(WsItem::End), None));
        // This side can still send.
        codec.text("m".into(), &mut out).unwrap();
        assert_eq!(read_by_peer(reader, &drain(&mut out)), [text("m")]);
    }
}
