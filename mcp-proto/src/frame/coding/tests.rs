use super::*;
use crate::exchange::Headers;
use crate::frame::input::LARGE;
use alloc::string::String;
use alloc::vec;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
use proptest::prelude::*;
use std::io::{Read, Write};

const TEXT: &[u8] = br#"{"jsonrpc":"2.0","id":7,"result":{"content":[]}}"#;

/// [`TEXT`] of Python's `gzip` and `zlib`. The data, and the trailer of gzip.
const DATA: &[u8] =
    b"\xabV\xca*\xce\xcf+*HV\xb2R2\xd23P\xd2Q\xcaLQ\xb22\xd7Q*J-.\xcd)Q\xb2\xaaVJ\xce\xcf+I\xcd\x032\xa3ckk\x01";
const AFTER: &[u8] = b"\x87\xa08>0\x00\x00\x00";
const PLAIN: &[u8] = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03";
/// With every optional field, and the checksum of the header.
const FULL: &[u8] = b"\x1f\x8b\x08\x1f\x00\x00\x00\x00\x00\x03\x06\x00ab\x02\x00xyn\x00a comment\x00S\xd6";

/// What a decoder did with a body.
#[derive(Debug, PartialEq)]
struct Outcome {
    decoded: Vec<u8>,
    /// Whether the body may end here.
    end: Result<bool, &'static str>,
}

fn feed<'a>(coding: ContentCoding, pieces: impl IntoIterator<Item = &'a [u8]>) -> Outcome {
    let mut decoder = Decoder::new(coding, GzipSupport::get().unwrap());
    let mut decoded = Vec::new();
    for piece in pieces {
        decoder.bytes(Bytes::copy_from_slice(piece));
        loop {
            match decoder.next() {
                Ok(Some(bytes)) => decoded.extend_from_slice(&bytes),
                Ok(None) => break,
                Err(why) => return Outcome { decoded, end: Err(why) },
            }
        }
    }
    Outcome { decoded, end: Ok(decoder.is_complete()) }
}

/// Decodes a body whole, at every split, and byte by byte, which must make no difference.
#[track_caller]
fn decode(coding: ContentCoding, coded: &[u8]) -> Outcome {
    let whole = feed(coding, [coded]);
    for at in 0..=coded.len() {
        let (a, b) = coded.split_at(at);
        assert_eq!(feed(coding, [a, b]), whole, "cut at {at}");
    }
    assert_eq!(feed(coding, coded.chunks(1)), whole, "byte by byte");
    whole
}

fn text(decoded: &[u8]) -> Outcome {
    Outcome { decoded: decoded.to_vec(), end: Ok(true) }
}

#[track_caller]
fn fails(coding: ContentCoding, coded: &[u8], says: &str) {
    let outcome = decode(coding, coded);
    assert!(outcome.end.is_err_and(|why| why.contains(says)), "{outcome:?}, not {says}");
}

use ContentCoding::{Deflate, Gzip};

#[test]
fn bodies_of_another_peer_are_decoded() {
    let zlib = [b"x\x9c", DATA, b"i\x96\x0fj"].concat();
    let named = [b"\x1f\x8b\x08\x08\x00\xf1Se\x02\xffanswer.json\x00", DATA, AFTER].concat();
    let stored = [b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x04\x03\x010\x00\xcf\xff", TEXT, AFTER].concat();
    let plain = [PLAIN, DATA, AFTER].concat();
    let full = [FULL, DATA, AFTER].concat();
    for (coding, coded) in [(Gzip, &plain), (Gzip, &named), (Gzip, &full), (Gzip, &stored), (Deflate, &zlib)] {
        assert_eq!(decode(coding, coded), text(TEXT), "{coded:?}");
        for cut in 1..coded.len() {
            let part = feed(coding, [&coded[..cut]]);
            assert_eq!(part.end, Ok(false), "cut at {cut}");
            assert!(TEXT.starts_with(&part.decoded));
        }
        assert_eq!(decode(coding, b""), text(b""));
    }
    // Deflate without zlib, which begins with no header.
    assert_eq!(decode(Deflate, DATA), text(TEXT));
    assert_eq!(decode(Deflate, b"\xcb\xc8\x04\x00"), text(b"hi"));
}

#[test]
fn several_members_are_one_body() {
    let member = [PLAIN, DATA, AFTER].concat();
    let empty = [PLAIN, b"\x03\x00\x00\x00\x00\x00\x00\x00\x00\x00"].concat();
    let body = [&member[..], &empty, &[FULL, DATA, AFTER].concat(), &empty].concat();
    assert_eq!(decode(Gzip, &body), text(&[TEXT, TEXT].concat()));
    assert_eq!(decode(Gzip, &empty), text(b""));
}

#[test]
fn damaged_bodies_are_errors() {
    let gzip = [PLAIN, DATA, AFTER].concat();
    let zlib = [b"x\x9c", DATA, b"i\x96\x0fj"].concat();
    let damaged = |coded: &[u8], at: usize| {
        let mut coded = coded.to_vec();
        coded[at] ^= 0x80;
        coded
    };
    let data = PLAIN.len() + DATA.len();
    for at in data..gzip.len() {
        fails(Gzip, &damaged(&gzip, at), "checksum");
    }
    for at in zlib.len() - 4..zlib.len() {
        fails(Deflate, &damaged(&zlib, at), "checksum");
    }
    fails(Gzip, &damaged(&gzip, 0), "not gzip");
    fails(Gzip, &damaged(&gzip, 1), "not gzip");
    fails(Gzip, &damaged(&gzip, 2), "not deflate");
    fails(Gzip, &damaged(&gzip, 3), "unknown flags");
    let full = [FULL, DATA, AFTER].concat();
    for at in [4, 13, 18, 20, FULL.len() - 2, FULL.len() - 1] {
        fails(Gzip, &damaged(&full, at), "checksum of a gzip header");
    }
    // A block of the reserved type, alone and after some text.
    fails(Deflate, b"\x07\x00", "not deflate");
    let broken = [b"\x00\x02\x00\xfd\xffhi", &b"\x07\x00"[..]].concat();
    assert_eq!(
        decode(Deflate, &broken),
        Outcome { decoded: b"hi".to_vec(), end: Err("the coded body is not deflate") }
    );
    // Every damage of the data is found, some of it only by the checksum.
    for at in PLAIN.len()..data {
        for bit in 0..8 {
            let mut coded = gzip.clone();
            coded[at] ^= 1 << bit;
            let outcome = feed(Gzip, [&coded[..]]);
            assert!(outcome.end != Ok(true), "{at}, {bit}: {outcome:?}");
        }
    }
}

#[test]
fn bytes_after_a_body_are_an_error() {
    let gzip = [PLAIN, DATA, AFTER].concat();
    let zlib = [b"x\x9c", DATA, b"i\x96\x0fj"].concat();
    for garbage in [&b"\0"[..], b"\0\0\0\0", b"{}", &gzip[1..]] {
        fails(Gzip, &[&gzip, garbage].concat(), "not gzip");
        fails(Deflate, &[&zlib, garbage].concat(), "bytes after the end");
    }
    fails(Deflate, &[DATA, b"\0"].concat(), "bytes after the end");
    fails(Deflate, &[&zlib[..], &zlib].concat(), "bytes after the end");
}

#[test]
fn coded_bytes_without_content_come_to_an_end() {
    let empty_member = [PLAIN, b"\x03\x00\x00\x00\x00\x00\x00\x00\x00\x00"].concat();
    let long_name = [b"\x1f\x8b\x08\x08\x00\x00\x00\x00\x00\x03".to_vec(), vec![b'x'; MAX_IDLE]].concat();
    for (coding, coded) in [
        (Gzip, empty_member.repeat(MAX_IDLE / empty_member.len() + 1)),
        (Gzip, long_name),
        (Deflate, b"\x00\x00\x00\xff\xff".repeat(MAX_IDLE / 5 + 1)),
        (Deflate, [b"\x78\x9c".to_vec(), b"\x00\x00\x00\xff\xff".repeat(MAX_IDLE / 5 + 1)].concat()),
    ] {
        let outcome = feed(coding, coded.chunks(1000));
        assert_eq!(outcome, Outcome { decoded: Vec::new(), end: Err("the coded body has no content") });
        let fewer = feed(coding, coded[..coded.len() - 1000].chunks(1000));
        assert_ne!(fewer.end, outcome.end);
    }
    // A stream may be silent for any time: each flush of it has content.
    let mut stream = ZlibEncoder::new(Vec::new(), Compression::fast());
    for _ in 0..MAX_IDLE / 5 {
        stream.write_all(b":\n\n").unwrap();
        stream.flush().unwrap();
    }
    let coded = stream.finish().unwrap();
    assert_eq!(feed(Deflate, coded.chunks(100)), text(&b":\n\n".repeat(MAX_IDLE / 5)));
}

#[test]
fn bomb_is_decoded_in_pieces() {
    const SIZE: usize = 2 << 20;
    let mut bomb = GzEncoder::new(Vec::new(), Compression::best());
    let zeros = vec![0; 1 << 20];
    (0..SIZE >> 20).for_each(|_| bomb.write_all(&zeros).unwrap());
    let coded = bomb.finish().unwrap();
    assert!(coded.len() < SIZE / 900, "{}", coded.len());
    let most = coded.len() + Inflate::HELD + 1000;
    let mut decoder = Decoder::new(Gzip, GzipSupport::get().unwrap());
    decoder.bytes(coded.into());
    let mut size = 0;
    while let Some(piece) = decoder.next().unwrap() {
        assert!(piece.len() <= 32 << 10, "{}", piece.len());
        assert!(decoder.buffered() <= most, "{}", decoder.buffered());
        size += piece.len();
    }
    assert_eq!((size, decoder.is_complete()), (SIZE, true));
}

#[test]
fn sync_flush_yields_everything_before_it() {
    for (bytes, event) in [
        (&b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03JI,I\xb4R0\xe4\xe2\x02\x00\x00\x00\xff\xff"[..], "data: 1\n\n"),
        (b"J\x013\x8c\xb8\xb8\x00\x00\x00\x00\xff\xff", "data: 2\n\n"),
    ]
    .into_iter()
    .scan(Vec::new(), |before, (bytes, event)| {
        before.extend_from_slice(bytes);
        Some((before.clone(), event))
    }) {
        let outcome = decode(Gzip, &bytes);
        assert!(outcome.decoded.ends_with(event.as_bytes()), "{outcome:?}");
        assert_eq!(outcome.end, Ok(false));
    }
}

/// Asks for codings.
fn takes(value: &str) -> bool {
    takes_gzip(&Headers::new().with("Accept-Encoding", value))
}

#[test]
fn accept_encoding_is_respected() {
    for value in [
        "gzip",
        "GZIP",
        "x-gzip",
        "deflate, gzip",
        "gzip;q=0.001",
        "gzip ; q=1.000",
        "br;q=1.0, gzip;Q=0.8, *;q=0.1",
        "*",
        "*;q=0.5, br",
        "gzip;q=1, identity;q=0.5, *;q=0",
        "gzip, identity",
        "identity;q=0, *",
    ] {
        assert!(takes(value), "{value}");
    }
    for value in [
        "",
        "identity",
        "deflate",
        "br, zstd",
        "gzip;q=0",
        "gzip; q=0.0",
        "gzip;q=0.000, *",
        "*;q=0",
        "gzip;q=0, gzip",
        "x-gzip;q=0, gzip",
        "gzip;q=0.5, identity",
        "gzip;q=0.5, identity;q=0.6",
        "gzipped",
        "gzip;q=",
        "gzip;q=2",
        "gzip;q=1.001",
        "gzip;q=0.1234",
        "gzip;q=-1",
        "gzip;x=1",
    ] {
        assert!(!takes(value), "{value}");
    }
    assert!(!takes_gzip(&Headers::new()));
    let two = Headers::new().with("accept-encoding", "br").with("Accept-Encoding", "gzip;q=0.5");
    assert!(takes_gzip(&two));
}

fn compressed(text: &[u8]) -> Option<Bytes> {
    gzip(text, GzipSupport::get().unwrap())
}

fn inflated(coded: &[u8]) -> Vec<u8> {
    let mut text = Vec::new();
    GzDecoder::new(coded).read_to_end(&mut text).unwrap();
    text
}

#[test]
fn large_text_is_compressed_always_the_same() {
    let text = br#"{"name":"tool","description":"adds"},"#.repeat(10_000);
    let coded = compressed(&text).unwrap();
    assert!(coded.len() < text.len() / 20, "{}", coded.len());
    assert_eq!(inflated(&coded), text);
    assert_eq!(compressed(&text), Some(coded));
    assert_eq!(compressed(&text[..WORTH]), None);
    let smallest = compressed(&text[..WORTH + 1]).unwrap();
    assert_eq!(inflated(&smallest), &text[..WORTH + 1]);
    // What does not get smaller stays as it is.
    let noise: Vec<u8> = (0u32..3000).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    let coded = compressed(&noise);
    assert!(coded.is_none_or(|coded| coded.len() < noise.len() && inflated(&coded) == noise));
    let mut random = crate::seed::Seed::new([1; 32]);
    let noise: Vec<u8> = (0..100).flat_map(|_| random.next_bytes()).collect();
    assert_eq!(compressed(&noise), None);
}

/// Somebody else's encoder.
enum Encoder {
    Gzip(GzEncoder<Vec<u8>>),
    Zlib(ZlibEncoder<Vec<u8>>),
    Raw(DeflateEncoder<Vec<u8>>),
}

impl Encoder {
    fn new(kind: usize, level: u32) -> Self {
        let level = Compression::new(level);
        match kind {
            0 => Self::Gzip(GzEncoder::new(Vec::new(), level)),
            1 => Self::Zlib(ZlibEncoder::new(Vec::new(), level)),
            _ => Self::Raw(DeflateEncoder::new(Vec::new(), level)),
        }
    }

    fn coding(&self) -> ContentCoding {
        if matches!(self, Self::Gzip(_)) { Gzip } else { Deflate }
    }

    fn write(&mut self, text: &[u8]) -> usize {
        let write: &mut dyn Write = match self {
            Self::Gzip(encoder) => encoder,
            Self::Zlib(encoder) => encoder,
            Self::Raw(encoder) => encoder,
        };
        write.write_all(text).unwrap();
        write.flush().unwrap();
        match self {
            Self::Gzip(encoder) => encoder.get_ref().len(),
            Self::Zlib(encoder) => encoder.get_ref().len(),
            Self::Raw(encoder) => encoder.get_ref().len(),
        }
    }

    fn finish(self) -> Vec<u8> {
        match self {
            Self::Gzip(encoder) => encoder.finish(),
            Self::Zlib(encoder) => encoder.finish(),
            Self::Raw(encoder) => encoder.finish(),
        }
        .unwrap()
    }
}

/// Text with repetitions, short and long.
fn parts() -> impl Strategy<Value = Vec<String>> {
    let part = prop_oneof![
        "[a-e]{0,40}",
        "(data: \\{\"x\":[0-9]\\}\n\n){1,9}",
        (".{1,8}", 0..6000usize).prop_map(|(text, times)| text.repeat(times)),
    ];
    prop::collection::vec(part, 0..6)
}

proptest! {
    #[test]
    fn any_text_of_another_encoder_is_decoded(parts in parts(), kind in 0..3usize, level in 0..10u32, size in 1..5000usize) {
        let mut encoder = Encoder::new(kind, level);
        let coding = encoder.coding();
        let mut ends = Vec::new();
        for part in &parts {
            ends.push(encoder.write(part.as_bytes()));
        }
        let coded = encoder.finish();
        let whole = parts.concat();
        prop_assert_eq!(feed(coding, coded.chunks(size)), text(whole.as_bytes()));
        // After a flush, nothing of what was written before it is held back.
        let mut before = 0;
        for (part, end) in parts.iter().zip(ends) {
            before += part.len();
            let outcome = feed(coding, coded[..end].chunks(size));
            prop_assert_eq!(outcome.decoded.len(), before);
        }
    }

    #[test]
    fn any_bytes_have_one_meaning(bytes in prop::collection::vec(any::<u8>(), 0..200), kind in 0..3usize, size in 1..50usize) {
        let (coding, before) = [(Gzip, PLAIN), (Deflate, &b"x\x9c"[..]), (Deflate, b"")][kind];
        let coded = [before, &bytes].concat();
        prop_assert_eq!(feed(coding, coded.chunks(size)), feed(coding, [&coded[..]]));
    }

    #[test]
    fn any_text_is_compressed_for_another_decoder(parts in parts()) {
        let text = parts.concat();
        if let Some(coded) = compressed(text.as_bytes()) {
            prop_assert!(coded.len() < text.len() && text.len() > WORTH);
            prop_assert_eq!(inflated(&coded), text.as_bytes());
            prop_assert_eq!(feed(Gzip, coded.chunks(LARGE)).decoded, text.as_bytes());
        }
    }
}
