use super::*;
use crate::rpc::RawJson;
use alloc::vec;

fn jwk(text: &str) -> Object {
    Object::read(&RawJson::parse(text.to_owned()).unwrap()).unwrap()
}

fn key(text: &str) -> PublicKey {
    PublicKey::read(&jwk(text)).unwrap()
}

/// RFC 7638 section 3.1.
const RSA: &str = r#"{"kty":"RSA","n":"0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZCiFV4n3oknjhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu6qMQvRL5hajrn1n91CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8awapJzKnqDKgw","e":"AQAB","alg":"RS256","kid":"2011-04-29"}"#;

/// RFC 9449 section 4.1, with the thumbprint of section 6.1.
const P256: &str = r#"{"kty":"EC","x":"l8tFrhx-34tV3hRICRDY9zCkDlpBhF42UQUfWVAWBFs","y":"9VE4jf_Ok_o64zbTTlcuNJajHmt6v9TDVrU0CdvGRDA","crv":"P-256"}"#;

/// RFC 8037 appendix A.2.
const ED25519: &str = r#"{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}"#;

// covers: DPOP-S-012
#[test]
fn thumbprints_are_those_of_the_standards() {
    for (text, thumbprint) in [
        (RSA, "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs"),
        (P256, "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I"),
        (ED25519, "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k"),
    ] {
        assert_eq!(key(text).thumbprint(), thumbprint);
        // What is written is the key, and no other member.
        assert_eq!(PublicKey::read(&key(text).write()).unwrap(), key(text));
        assert!(!key(text).write().contains("kid"));
    }
}

#[test]
fn key_has_the_bytes_that_libraries_verify_with() {
    let point = key(P256).verification_bytes();
    assert_eq!((point.len(), point[0], &point[1..3]), (65, 4, &[0x97, 0xcb][..]));
    let point = PublicKey::P384 { x: vec![1; 48], y: vec![2; 48] }.verification_bytes();
    assert_eq!(point, [&[4][..], &[1; 48], &[2; 48]].concat());
    // RFC 8032 section 7.1, test 1.
    assert_eq!(key(ED25519).verification_bytes()[..4], [0xd7, 0x5a, 0x98, 0x01]);
    let rsa = key(RSA).verification_bytes();
    // A SEQUENCE of 266 bytes, an INTEGER of 257 bytes with a zero before its high bit.
    assert_eq!(rsa[..9], [0x30, 0x82, 0x01, 0x0a, 0x02, 0x82, 0x01, 0x01, 0x00]);
    assert_eq!((rsa.len(), &rsa[265..]), (270, &[0x02, 0x03, 0x01, 0x00, 0x01][..]));
    let small = PublicKey::Rsa { n: vec![0x7f], e: vec![3] }.verification_bytes();
    assert_eq!(small, [0x30, 0x06, 0x02, 0x01, 0x7f, 0x02, 0x01, 0x03]);
}

#[test]
fn spki_of_a_known_curve_is_read() {
    let point = key(P256).verification_bytes();
    let spki = [&SPKI_P256[..SPKI_P256.len() - 1], &point].concat();
    assert_eq!(PublicKey::from_spki(&spki), Some(key(P256)));
    let large = PublicKey::P384 { x: vec![1; 48], y: vec![2; 48] };
    let spki_of_large = [&SPKI_P384[..SPKI_P384.len() - 1], &large.verification_bytes()].concat();
    assert_eq!(PublicKey::from_spki(&spki_of_large), Some(large));
    // RFC 8410 section 10.1.
    let ed = [SPKI_ED25519, b"\x19\xbf\x44\x09\x69\x84\xcd\xfe\x85\x41\xba\xc1\x67\xdc\x3b\x96\xc8\x50\x86\xaa\x30\xb6\xb6\xcb\x0c\x5c\x38\xad\x70\x31\x66\xe1"]
        .concat();
    assert!(matches!(PublicKey::from_spki(&ed), Some(PublicKey::Ed25519(key)) if key[..2] == [0x19, 0xbf]));
    for wrong in [&spki[..90], &[&spki[..], &[0]].concat(), &ed[1..], &[]] {
        assert_eq!(PublicKey::from_spki(wrong), None);
    }
}

// covers: RSRC-S-004, DPOP-S-012
#[test]
fn key_that_is_not_public_or_not_whole_is_refused() {
    let short = RSA.replace("0vx7agoebGcQSuuP", "");
    let zeros = RSA.replace(r#""n":"0vx7"#, r#""n":"AAAA"#);
    for text in [
        r#"{"kty":"oct","k":"AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T"}"#,
        &P256.replace("}", r#","d":"AAAA"}"#),
        &ED25519.replace("}", r#","d":"AAAA"}"#),
        &RSA.replace("}", r#","p":"AAAA"}"#),
        &P256.replace("P-256", "P-384"),
        &P256.replace("P-256", "secp256k1"),
        &P256.replace("Fs\"", "E\""),
        &P256.replace("\"y\"", "\"z\""),
        &P256.replace("\"x\":\"", "\"x\":\"="),
        &ED25519.replace("Ed25519", "X25519"),
        &RSA.replace("AQAB", ""),
        &RSA.replace("AQAB", "AAAA"),
        &RSA.replace("AQAB", "AQABAQABAQABAQAB"),
        &short,
        &zeros,
        "{}",
    ] {
        assert!(PublicKey::read(&jwk(text)).is_err(), "{text}");
    }
}

// covers: RSRC-S-004
#[test]
fn algorithm_fits_one_type_of_key() {
    let keys = [key(P256), PublicKey::P384 { x: vec![1; 48], y: vec![2; 48] }, key(ED25519), key(RSA)];
    for alg in Alg::ALL {
        let fitting: Vec<usize> = (0..keys.len()).filter(|at| keys[*at].fits(alg)).collect();
        let wanted = match alg.as_str().as_bytes() {
            b"ES256" => 0,
            b"ES384" => 1,
            b"EdDSA" => 2,
            _ => 3,
        };
        assert_eq!(fitting, [wanted], "{alg:?}");
    }
}
