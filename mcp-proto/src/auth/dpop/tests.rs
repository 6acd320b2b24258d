use super::*;
use crate::auth::jws::compact;
use crate::rpc::RawJson;
use alloc::string::ToString;
use alloc::vec::Vec;
use serde_json::Value;

/// The proof of RFC 9449 section 4.1, figure 2.
const PROOF: &str = concat!(
    "eyJ0eXAiOiJkcG9wK2p3dCIsImFsZyI6IkVTMjU2IiwiandrIjp7Imt0eSI6IkVDIiwieCI6Imw4dEZyaHgtMzR0VjNoUklDUkRZOXpDa0Rsc",
    "EJoRjQyVVFVZldWQVdCRnMiLCJ5IjoiOVZFNGpmX09rX282NHpiVFRsY3VOSmFqSG10NnY5VERWclUwQ2R2R1JEQSIsImNydiI6IlAtMjU2In19",
    ".eyJqdGkiOiItQndDM0VTYzZhY2MybFRjIiwiaHRtIjoiUE9TVCIsImh0dSI6Imh0dHBzOi8vc2VydmVyLmV4YW1wbGUuY29tL3Rva2VuIiwia",
    "WF0IjoxNTYyMjYyNjE2fQ.2-GxA6T8lP4vfrg8v-FdWP0A0zdrj8igiMLvqRMUvwnteg4PtFLbdLXiOSsX0x7NVY-FNyJK70nfbV37xRZT3Lg",
);

/// The access token of section 7.1, figure 12, and its hash in figure 13.
const TOKEN: &str = "Kz~8mXK1EalYznwH-LC-1fBAo.4Ljp~zsPE_NeO.gxU";
const TOKEN_HASH: &str = "fUHyO2r2Z3DZ53EsNrWBb0xWXoaNy59IiKCAqksmQEo";

fn decoded(part: &str) -> Vec<u8> {
    BASE64_URL_SAFE_NO_PAD.decode(part).unwrap()
}

fn parts(jws: &str) -> Vec<Value> {
    jws.split('.').take(2).map(|part| serde_json::from_slice(&decoded(part)).unwrap()).collect()
}

fn key() -> PublicKey {
    let jwk = parts(PROOF)[0]["jwk"].to_string();
    PublicKey::read(&Object::read(&RawJson::parse_indented(jwk.as_bytes()).unwrap()).unwrap()).unwrap()
}

fn claims<'a>(url: &'a HttpTarget, token: Option<&'a Secret>, nonce: Option<&'a str>) -> ProofClaims<'a> {
    ProofClaims { method: "POST", url, issued: 1_562_262_616, id: "-BwC3ESc6acc2lTc".into(), token, nonce }
}

// covers: DPOP-C-002, DPOP-C-004
#[test]
fn proof_of_the_specification_is_composed() {
    let url = HttpTarget::parse("https://server.example.com/token").unwrap();
    let input = input(&key(), &claims(&url, None, None)).unwrap();
    // The payload to the byte, the header up to the order of its members.
    assert_eq!(input.split('.').nth(1), PROOF.split('.').nth(1));
    assert_eq!(parts(&input), parts(PROOF));
    let signature = decoded(PROOF.split('.').nth(2).unwrap());
    assert_eq!(compact(&input, &signature).split('.').nth(2), PROOF.split('.').nth(2));
}

// covers: DPOP-C-002, DPOP-C-003, DPOP-B-017
#[test]
fn proof_with_a_token_has_its_hash_and_the_nonce() {
    let url = HttpTarget::parse("HTTPS://Resource.Example.org:443/a/b?c=%20d").unwrap();
    let token = Secret::from(TOKEN);
    let input = input(&key(), &ProofClaims { method: "GET", ..claims(&url, Some(&token), Some("n+1")) }).unwrap();
    let wanted = serde_json::json!({
        "jti": "-BwC3ESc6acc2lTc", "htm": "GET", "htu": "https://resource.example.org/a/b", "iat": 1_562_262_616,
        "ath": TOKEN_HASH, "nonce": "n+1"
    });
    assert_eq!(parts(&input)[1], wanted);
}

#[test]
fn header_names_the_algorithm_of_the_key() {
    let url = HttpTarget::parse("http://[::1]:8080/").unwrap();
    let ed25519 = PublicKey::Ed25519([7; 32].to_vec());
    let parts = parts(&input(&ed25519, &claims(&url, None, None)).unwrap());
    assert_eq!((&parts[0]["alg"], &parts[0]["typ"]), (&"EdDSA".into(), &"dpop+jwt".into()));
    assert_eq!(parts[1]["htu"], "http://[::1]:8080/");
    assert_eq!(parts[0]["jwk"]["kty"], "OKP");
    let none = PublicKey::Rsa { n: [1; 256].to_vec(), e: [1].to_vec() };
    assert_eq!(input(&none, &claims(&url, None, None)), None);
}

#[test]
fn id_has_16_bytes() {
    assert_eq!(id(&[0xff; 32]), "_____________________w");
    assert_ne!(id(&[1; 32]), id(&[2; 32]));
}

fn listed(names: &str) -> Option<ProofAlgs> {
    (names != "-").then(|| ProofAlgs::listed(names.split(' ')))
}

// covers: DPOP-C-008
#[test]
fn algorithm_follows_from_both_lists() {
    let (es256, eddsa) = (Some(Alg::Es256), Some(Alg::EdDsa));
    for (resource, issuer, if_offered, required) in [
        ("-", "-", None, Ok(es256)),
        ("-", "ES256", None, Ok(es256)),
        ("ES256", "-", None, Ok(es256)),
        ("ES256", "ES256 RS256", es256, Ok(es256)),
        ("EdDSA ES256", "EdDSA ES256", es256, Ok(es256)),
        ("EdDSA ES256", "EdDSA", eddsa, Ok(eddsa)),
        ("EdDSA", "ES256 EdDSA", eddsa, Ok(eddsa)),
        ("EdDSA", "ES256", None, Err(NoCommonAlg)),
        ("es256", "ES256", None, Err(NoCommonAlg)),
        ("-", "RS256 none HS256", None, Err(NoCommonAlg)),
        ("", "ES256", None, Err(NoCommonAlg)),
    ] {
        let (resource, issuer) = (listed(resource), listed(issuer));
        assert_eq!(choose(Dpop::Off, resource, issuer), Ok(None));
        assert_eq!(choose(Dpop::IfOffered, resource, issuer), Ok(if_offered), "{resource:?} {issuer:?}");
        assert_eq!(choose(Dpop::Required, resource, issuer), required, "{resource:?} {issuer:?}");
    }
}

fn origin(port: u16) -> Origin {
    Origin { tls: true, host: "h".into(), port }
}

// covers: DPOP-C-007
#[test]
fn latest_nonce_of_each_server_is_kept() {
    let mut nonces = Nonces::default();
    assert!(nonces.note(&origin(1), Some("a")) && nonces.note(&origin(2), Some("b")));
    assert_eq!((nonces.get(&origin(1)), nonces.get(&origin(2)), nonces.get(&origin(3))), (Some("a"), Some("b"), None));
    assert!(nonces.note(&origin(1), Some("c")));
    assert!(!nonces.note(&origin(1), None));
    assert_eq!(nonces.get(&origin(1)), Some("c"));
    for port in 0..100 {
        nonces.note(&origin(port), Some("d"));
    }
    assert_eq!((nonces.0.len(), nonces.get(&origin(99)), nonces.get(&origin(1))), (MAX_SERVERS, Some("d"), None));
}

#[test]
fn nonce_has_a_form_and_a_length() {
    for (nonce, is_one) in [
        ("eyJ7S_zG.eyJH0-Z.HX4w-7v", true),
        ("!#$%&'()*+,/:;<=>?@[]^`{|}~", true),
        (&*"x".repeat(MAX_NONCE), true),
        (&*"x".repeat(MAX_NONCE + 1), false),
        ("", false),
        ("a b", false),
        ("a\"", false),
        ("a\\", false),
        ("\u{e9}", false),
        ("a\n", false),
    ] {
        let mut nonces = Nonces::default();
        assert_eq!(nonces.note(&origin(1), Some(nonce)), is_one, "{nonce}");
        assert_eq!(nonces.get(&origin(1)), Some(nonce).filter(|_| is_one));
    }
}
