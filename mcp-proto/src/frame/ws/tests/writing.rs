//! The bytes that are written.

use super::*;
use alloc::collections::BTreeSet;

// covers: WS-B-016, WS-B-018
#[test]
fn server_writes_the_shortest_length_and_no_mask() {
    for len in [0, 1, 125, 126, 4000, 65535, 65536, 70_000] {
        let message = "é".repeat(len / 2) + &"x".repeat(len % 2);
        let (mut codec, mut out) = (Reader::Server.codec(MAX), ShortQueue::new());
        codec.text(message.clone().into(), &mut out).unwrap();
        assert_eq!(drain(&mut out), frame(0x81, None, message.as_bytes()));
    }
    let (mut codec, mut out) = (Reader::Server.codec(MAX), ShortQueue::new());
    codec.ping("p".into(), &mut out).unwrap();
    codec.close(CloseCode::Normal, "é", &mut out);
    assert_eq!(drain(&mut out), b"\x89\x01p\x88\x04\x03\xe8\xc3\xa9");
}

// covers: WS-C-015
#[test]
fn client_masks_each_frame_with_a_new_key() {
    let (mut codec, mut out, mut keys) = (Reader::Client.codec(MAX), ShortQueue::new(), BTreeSet::new());
    for len in (0..1000).chain([65535, 65536]) {
        let message: Vec<u8> = (0..len).map(|at| b'a' + (at % 26) as u8).collect();
        codec.text(message.clone().into(), &mut out).unwrap();
        let written = drain(&mut out);
        let key_at = written.len() - message.len() - 4;
        let key = *written[key_at..].first_chunk().unwrap();
        assert_eq!(written, frame(0x81, Some(key), &message));
        assert!(keys.insert(key), "{key:?} occurs twice");
    }
    codec.ping("p".into(), &mut out).unwrap();
    codec.close(CloseCode::Normal, "", &mut out);
    let written = drain(&mut out);
    assert_eq!((written[1], written[8]), (0x81, 0x82));
    // All keys come from the seed of the connection.
    let keys = |seed: u8| {
        let mut codec = WsCodec::new(WsSide::Client(Masks::new(Seed::new([seed; 32]))), 0, WsSupport::get().unwrap());
        let mut out = ShortQueue::new();
        (0..20).for_each(|_| codec.text(Bytes::new(), &mut out).unwrap());
        drain(&mut out)
    };
    assert_eq!(keys(1), keys(1));
    assert_ne!(keys(1), keys(2));
}

#[test]
fn eight_keys_cost_one_draw_and_are_not_shown() {
    let mut masks = Masks::new(Seed::new([1; 32]));
    for drawn in [0, 1, 1, 2] {
        assert_eq!(alloc::format!("{masks:?}"), alloc::format!("Masks {{ seed: Seed {{ drawn: {drawn}, .. }}, .. }}"));
        (0..4).for_each(|_| _ = masks.next());
    }
}

#[test]
fn large_message_of_a_server_is_not_copied() {
    let (mut codec, mut out) = (Reader::Server.codec(MAX), ShortQueue::new());
    let large = Bytes::from(Vec::from([b'x'; 5000]));
    codec.text(large.clone(), &mut out).unwrap();
    assert_eq!(out.pop_front().unwrap(), &b"\x81\x7e\x13\x88"[..]);
    assert_eq!(out.pop_front().unwrap().as_ptr(), large.as_ptr());
    codec.text("small".into(), &mut out).unwrap();
    assert_eq!(out.pop_front().unwrap(), "\u{81}\x05small".chars().map(|c| c as u8).collect::<Vec<_>>());
    assert!(out.is_empty());
}

#[test]
fn long_reason_ends_at_a_character() {
    let written = |reason: &str| {
        let (mut codec, mut out) = (Reader::Server.codec(MAX), ShortQueue::new());
        codec.close(CloseCode::Policy, reason, &mut out);
        Reader::Client.feed(MAX, [&drain(&mut out)[..]], false, false).items
    };
    assert_eq!(written(&"x".repeat(123)), [close(1008, &"x".repeat(123))]);
    assert_eq!(written(&"x".repeat(124)), [close(1008, &"x".repeat(123))]);
    assert_eq!(written(&"é".repeat(100)), [close(1008, &"é".repeat(61))]);
    assert_eq!(written(&"😀".repeat(31)), [close(1008, &"😀".repeat(30))]);
}

#[test]
fn ping_over_125_bytes_is_not_sent() {
    let (mut codec, mut out) = (Reader::Server.codec(MAX), ShortQueue::new());
    codec.ping(Bytes::from_static(&[b'x'; 125]), &mut out).unwrap();
    assert_eq!(drain(&mut out).len(), 127);
    assert_eq!(codec.ping(Bytes::from_static(&[b'x'; 126]), &mut out), Err("a ping of more than 125 bytes"));
    assert!(out.is_empty());
}

// covers: WS-B-024
#[test]
fn codes_that_are_sent_may_be_sent() {
    use CloseCode::*;
    let codes = [Normal, GoingAway, Protocol, Unsupported, InvalidText, Policy, TooBig, Internal, TryLater];
    assert_eq!(codes.map(CloseCode::number), [1000, 1001, 1002, 1003, 1007, 1008, 1009, 1011, 1013]);
    for code in codes {
        check(&[(0x88, &code.number().to_be_bytes())], &[close(code.number(), "")]);
    }
}

#[test]
fn mask_is_that_of_the_standard_at_any_length() {
    for len in 0..40 {
        let plain: Vec<u8> = (0..len).collect();
        let mut masked = plain.clone();
        write::mask(&mut masked, KEY);
        assert!(masked.iter().enumerate().all(|(at, byte)| *byte == plain[at] ^ KEY[at % 4]));
    }
}
