//! Tests of what the fuzz targets use: the scripts of peers, and the model of WebSocket frames.

use mcp_proto::limits::FrameLimits;
use mcp_tests::fuzz::script::Script;
use mcp_tests::fuzz::server::run;
use mcp_tests::fuzz::talk::{Said, of_client, request};
use mcp_tests::fuzz::web_socket_model::{Last, Model, Part, Utf8, utf8};
use mcp_tests::sim::rng::Rng;

fn told(masked: bool, bytes: &[u8]) -> (Vec<Part>, Last) {
    Model { rest: bytes, masked, max: 5 }.read()
}

#[test]
fn examples_of_the_standard_are_read() {
    let hello = Part::Text(b"Hello".to_vec());
    let cut = Last::Cut { whole: true };
    let masked = b"\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58";
    assert_eq!(told(true, masked), (vec![hello.clone()], cut.clone()));
    assert_eq!(told(false, b"\x01\x03Hel\x89\x01a\x80\x02lo"), (vec![Part::Ping(b"a".to_vec()), hello], cut));
    assert_eq!(told(false, b"\x88\x04\x03\xe9by\x81"), (vec![], Last::Close(Some(1001), "by".into())));
}

#[test]
fn faults_have_the_codes_of_the_standard() {
    let cases: [(&[u8], &[u16]); 9] = [
        (b"\x81\x80", &[1002]),
        (b"\xc1\x00", &[1002]),
        (b"\x82\x80", &[1002, 1003]),
        (b"\x81\x06", &[1009]),
        (b"\x81\x7e\x00\x06", &[1002, 1009]),
        (b"\x81\x02\xc0", &[1007]),
        (b"\x81\x01\xc2", &[1007]),
        (b"\x88\x02\x03\xed", &[1002]),
        (b"\x88\x03\x03\xe8\xff", &[1007]),
    ];
    for (bytes, codes) in cases {
        assert_eq!(told(false, bytes), (vec![], Last::Fail(codes.to_vec())), "{}", bytes.escape_ascii());
    }
}

/// The table of the grammar against the standard library, over all starts of two bytes.
#[test]
fn grammar_of_utf8_is_that_of_the_library() {
    for start in 0..=u16::MAX {
        for tail in [&b""[..], b"\x80", b"\xbf\x80", b"a", b"\x80a"] {
            let bytes = [&start.to_be_bytes(), tail].concat();
            let expected = match std::str::from_utf8(&bytes) {
                Ok(_) => Utf8::Whole,
                Err(fault) if fault.error_len().is_none() => Utf8::Cut,
                Err(_) => Utf8::Bad,
            };
            assert_eq!(utf8(&bytes), expected, "{bytes:x?}");
        }
    }
}

// covers: B-281
#[test]
fn client_sends_long_ids_states_batches_and_lengths() {
    const SEALED: &str = "c2VhbGVkIGJ5IHRoZSBzZXJ2ZXI";
    let longest = FrameLimits::default().max_id;
    let (within, beyond) = ("i".repeat(longest), "i".repeat(longest + 1));
    let mut rng = Rng::new(1);
    let said: Vec<String> = (0..4000)
        .map(|_| {
            let data: Vec<u8> = (0..200).map(|_| rng.draw() as u8).collect();
            let mut script = Script::new(&data);
            let mut said = Said { sealed: SEALED.to_owned(), work: String::new() };
            let (method, text) = of_client(&mut script, &mut said);
            request(&mut script, method, &text)
        })
        .collect();
    let count = |part: &str| said.iter().filter(|text| text.contains(part)).count();
    let sealed = format!("\"requestState\":\"{SEALED}\"");
    for part in [&within, &beyond, &sealed, "\r\n\r\n[{", "\r\ncontent-length:", "QUJDQUJD", "[[[[[[["] {
        assert!(count(part) > 20, "{part} {}", count(part));
    }
    let is_spoilt = |text: &&String| text.contains("\"requestState\":\"c2Vh") && !text.contains(&sealed);
    assert!(said.iter().filter(is_spoilt).count() > 20);
    let is_repeated = |text: &&String| {
        let value = text.split("Content-Length: ").nth(1).and_then(|rest| rest.lines().next()).unwrap_or_default();
        value.split_once(", ").is_some_and(|(one, other)| one == other)
    };
    assert!(said.iter().filter(is_repeated).count() > 20);
}

/// A client of 2026-07-28 that calls a tool which asks once, and then returns the state in this
/// way.
fn rounds(way: u8) -> String {
    let call = [2, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0];
    let again = [2, 0, 1, 0, 1, 5, way, 1, 0];
    let text = run(&[&[0, 0][..], &call, &[8, 0], &again, &[8, 0]].concat());
    String::from_utf8(text).expect("lines of text")
}

// covers: B-281
#[test]
fn script_returns_the_sealed_state() {
    let (whole, spoilt) = (rounds(0), rounds(2));
    for said in [&whole, &spoilt] {
        assert!(said.contains("\"requestState\":\""), "{said}");
    }
    assert!(whole.contains("\"text\":\"1:\""), "{whole}");
    assert!(spoilt.contains("-32602") && !spoilt.contains("\"text\":\"1:\""), "{spoilt}");
}
