mod vectors;

use super::{der, generate, sign, verify};
use alloc::format;
use alloc::vec;
use alloc::vec::Vec;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use bytes::Bytes;
use mcp_proto::auth::{Alg, KeyPair, PublicKey, SignKey, Verification};
use rcgen::PublicKeyData as _;

/// A key of RSA, made for these tests: Base64 of PKCS#8.
const RSA: &str = "\
    MIIEvAIBADANBgkqhkiG9w0BAQEFAASCBKYwggSiAgEAAoIBAQDMBaJRig7ac+faADVLevVPSDytK0MlvTxAmQ9Mb3bPw2GHspy/\
    Ewxo28MAuLBYC/1SkweBn6aQU0Y+pXs9Spq5swbbYbLCJ6AkMb/DXqaOyUEKamTbTBa9PXay91K3mAIaI5TBfjkBqrAXjLSX4ZYG\
    8eDshwtunmmxPXqZv9ZuM94453Aw4rC8vQA+489dLrk5WzHiRI42GlO89figwgdxaVstj0DIeXmnd2IXHBXR8nXxH34I6wZ6E2TL\
    vpuNQ68dQPDtm75Pf1Z/1Qnz4Y1zZrWGi+eYr8HpF2QPF0aPqjeNIK9m7x46eQ43ykcZ3spBnrdjCoa6yxZrVjksrpkbAgMBAAEC\
    ggEAJ8SfX6J4A7fdBR7ORKC6iVIs1Zpds9D/mh3boAwIDjZo3+D+cbY+UIApsg3N/dOUdNCJAYjDmFVLF3H9JDTTFQhi+UdBZ1v+\
    +J8j4GqmL6XmAig78Y0Sz59X8EmKO5QrMLonyFGYvgzt1yFLoGFN85uZOrGWFmFVe8FekPKWUxN7DisMyG7bz5m22xE4a+6fjKpX\
    GbWAH2snsiLNw6RUvP+/C0wPSTpHUi1+upIHYibQrkbgb7Ddd4luuLCYZf02HMedNKfs2VpifZmIAEi9SYaZXQ0ZWiQViDxduKaL\
    qVth7ROGlzZx7x9YwmqErMeJcVl9csfRi0nSdI9ZgWU0sQKBgQDn/BIFf6o0MPe2jYR/gW0etd+aoLUeMO51IWg3OiZfsvArGsnX\
    0fFaWyLTjJ2jvNif7NA9MQ4oDWSuqv+lOlqKITCFlHki/2PBSSbv8fxNPQSYiw+e0QSaFKUSrsYcD5YGDgTlhnwL/3OZpIrPfa+2\
    utfDd97dPnj3VGkggGX5iwKBgQDhJINasNO4i9w+lcksTfZ/0x0WVpmmuxaVugOxQn6CdAFeQ7TgGshb+Evr5UonAl6gW6wnc4bf\
    1t2zK2kt9ojUn+0RttbYfT40eJ76vSI7G2G5gt2uJag3XUqMrI24bMyx+7pPoOHUNKSa032Hb4fb0+mEBTJy9wIEWUCPtIkwsQKB\
    gEjEQ67f3bajSYBEobQRF/ZTHEF3eXhv5sxs3zC7l7/a9ATBUWDWJLuv7Juo9uWeXeDEOomHMqaTlOpJDwl35WCAiqTL7rdwnozJ\
    cmI/aGGd6ywiKpMpgyUFpsXWdqPkq61YhmasqYpl5Y/jEfuFtDFAKF/S4OBLMUx7eMJOJC6DAoGADexpJzGqVk5n94Lh5xiHNw6C\
    TQBcDkChu+6+DbdUBZNRBlhflkBxxaZMY7FRbaoq2fXxZpsxayRpn4v+vDXz7lpZme/Zx5evQiV3h4As3sTpvURHm15+0bW2R47g\
    UNiBrDwqIISNkscSqvSLXdXa7BBl76E2pn96I3S1lm2O0nECgYA9clvQsXz0y8AOdsw0lfMgc5fZTWii/K7akZIDpbKMKJE/NvS4\
    B3TB4AGYcuqQpz5tAD5E3YGRZZ5900HaFZ1lhCLDZX9Dh7T/dJXf4o1SOHjQstsSlpNn8jcHxwlLI4uRlbhdtC1jV9lKjg2/GTHq\
    lClZY8CaxCS+XaQMI8NY5A==";

const INPUT: &[u8] = b"eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJqb2UifQ";

fn pair(alg: Alg) -> KeyPair {
    generate(alg).expect("the cryptography makes keys")
}

fn bytes(base64url: &str) -> Vec<u8> {
    URL_SAFE_NO_PAD.decode(base64url).expect("Base64")
}

fn check(alg: Alg, key: &PublicKey, input: &[u8], signature: &[u8]) -> bool {
    let (input, signature) = (Bytes::copy_from_slice(input), Bytes::copy_from_slice(signature));
    verify(&Verification { alg, key: key.clone(), input, signature }).expect("the cryptography knows the algorithm")
}

#[test]
fn new_keys_sign_what_their_public_key_verifies() {
    for (alg, size) in [(Alg::Es256, 64), (Alg::Es384, 96), (Alg::EdDsa, 64)] {
        // Numbers with leading zeros come up too.
        for round in 0..50 {
            let KeyPair { private, public } = pair(alg);
            let input = format!("input {round}");
            let signature = sign(&SignKey::Pkcs8(private), alg, input.as_bytes()).expect("it signs");
            assert_eq!(signature.len(), size);
            assert!(check(alg, &public, input.as_bytes(), &signature));
            assert!(!check(alg, &public, b"another input", &signature));
            assert!(!check(alg, &pair(alg).public, input.as_bytes(), &signature), "another key");
        }
    }
}

#[test]
fn signatures_of_a_wrong_form_do_not_verify() {
    let KeyPair { private, public } = pair(Alg::Es256);
    let signature = sign(&SignKey::Pkcs8(private), Alg::Es256, INPUT).expect("it signs");
    let in_der = der::signature(&signature);
    let long = [signature.as_slice(), &[0]].concat();
    for wrong in [&in_der, &long, &signature[..63].to_vec(), &vec![0; 64], &vec![0xff; 64], &Vec::new()] {
        assert!(!check(Alg::Es256, &public, INPUT, wrong), "{wrong:?}");
    }
    // The key of another algorithm.
    assert!(!check(Alg::Es384, &public, INPUT, &signature));
    assert!(!check(Alg::Rs256, &public, INPUT, &signature));
}

#[test]
fn published_signatures_verify() {
    let es256 = PublicKey::P256 {
        x: bytes("f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU"),
        y: bytes("x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"),
    };
    let ed25519 = PublicKey::Ed25519(bytes("11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"));
    let rsa = PublicKey::Rsa {
        n: bytes(
            "ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-yR\
             T-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXB\
             dQOS-UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9ia\
             GNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ",
        ),
        e: bytes("AQAB"),
    };
    let claims = "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ";
    for (alg, key, input, signature) in [
        (
            // RFC 7515 appendix A.2.
            Alg::Rs256,
            &rsa,
            format!("eyJhbGciOiJSUzI1NiJ9.{claims}"),
            "cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_O8W2Fp5jujGbds9\
             uJdbF9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L07Qe7K0GarZRmB\
             _eSN9383LcOLn6_dO--xi12jzDwusC-eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rq\
             Vt5AXLIhWkWywlVmtVrBp0igcN_IoypGlUPQGe77Rw",
        ),
        (
            // RFC 7515 appendix A.3.
            Alg::Es256,
            &es256,
            format!("eyJhbGciOiJFUzI1NiJ9.{claims}"),
            "DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q",
        ),
        (
            // RFC 8037 appendix A.4.
            Alg::EdDsa,
            &ed25519,
            "eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc".into(),
            "hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg",
        ),
    ] {
        let mut signature = bytes(signature);
        assert!(check(alg, key, input.as_bytes(), &signature), "{alg:?}");
        signature[0] ^= 1;
        assert!(!check(alg, key, input.as_bytes(), &signature), "{alg:?}");
    }
}

#[test]
fn a_published_key_signs_as_published() {
    // RFC 8037 appendices A.1 and A.4.
    let seed = bytes("nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A");
    let pkcs8 = [&[0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20], seed.as_slice()].concat();
    let key = SignKey::Pkcs8(STANDARD.encode(pkcs8).into());
    let input = b"eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc";
    let expected = "hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg";
    assert_eq!(sign(&key, Alg::EdDsa, input).expect("it signs"), bytes(expected));
}

#[test]
fn keys_are_pem_or_base64_and_fit_the_algorithm() {
    let ec = rcgen::KeyPair::generate().expect("a key");
    let pem = SignKey::Pkcs8(ec.serialize_pem().into());
    let base64 = SignKey::Pkcs8(STANDARD.encode(ec.serialize_der()).into());
    for key in [&pem, &base64] {
        let signature = sign(key, Alg::Es256, INPUT).expect("it signs");
        let public = PublicKey::from_spki(&ec.subject_public_key_info()).expect("a key of P-256");
        assert!(check(Alg::Es256, &public, INPUT, &signature));
        assert!(sign(key, Alg::Es384, INPUT).expect_err("another curve").contains("ES384"));
    }
    for alg in [Alg::Rs256, Alg::Rs384, Alg::Rs512, Alg::Ps256, Alg::Ps384, Alg::Ps512] {
        assert_eq!(sign(&SignKey::Pkcs8(RSA.into()), alg, INPUT).expect("it signs").len(), 256);
    }
}

#[test]
fn an_error_of_a_key_shows_nothing_of_it() {
    let secrets = ["canary!", "Y2FuYXJ5", "-----BEGIN PRIVATE KEY-----\nY2FuYXJ5\n-----END PRIVATE KEY-----\n"];
    for secret in secrets {
        let why = sign(&SignKey::Pkcs8(secret.into()), Alg::Es256, INPUT).expect_err("no key");
        assert!(!why.contains("canary") && !why.contains("Y2FuYXJ5"), "{why}");
    }
    let named = sign(&SignKey::Named("of the HSM".into()), Alg::Es256, INPUT).expect_err("no signer");
    assert!(named.contains("of the HSM"));
    assert!(generate(Alg::Rs256).expect_err("none is made").contains("RS256"));
}
