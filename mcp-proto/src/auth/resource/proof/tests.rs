use super::*;
use crate::exchange::Headers;
use crate::rpc::{Object, RawJson};
use alloc::vec::Vec;

/// RFC 9449 section 7.1.
const TOKEN: &str = "Kz~8mXK1EalYznwH-LC-1fBAo.4Ljp~zsPE_NeO.gxU";
const PROOF: &str = "eyJ0eXAiOiJkcG9wK2p3dCIsImFsZyI6IkVTMjU2IiwiandrIjp7Imt0eSI6IkVDIiwieCI6Imw4dEZyaHgtMzR0VjNoUklDUkRZOXpDa0RscEJoRjQyVVFVZldWQVdCRnMiLCJ5IjoiOVZFNGpmX09rX282NHpiVFRsY3VOSmFqSG10NnY5VERWclUwQ2R2R1JEQSIsImNydiI6IlAtMjU2In19.eyJqdGkiOiJlMWozVl9iS2ljOC1MQUVCIiwiaHRtIjoiR0VUIiwiaHR1IjoiaHR0cHM6Ly9yZXNvdXJjZS5leGFtcGxlLm9yZy9wcm90ZWN0ZWRyZXNvdXJjZSIsImlhdCI6MTU2MjI2MjYxOCwiYXRoIjoiZlVIeU8ycjJaM0RaNTNFc05yV0JiMHhXWG9hTnk1OUlpS0NBcWtzbVFFbyJ9.2oW9RP35yRqzhrtNP86L-Ey71EOptxRimPPToA1plemAgR6pxHF8y6-yqyVnmcw6Fy1dqd-jfxSYoMxhAJpLjA";
const NOW: u64 = 1_562_262_618;

fn proofs() -> Proofs {
    Proofs::new("https://resource.example.org/protectedresource", Duration::from_secs(300), None)
}

fn head(target: &str, proofs: &[&str]) -> RequestHead {
    let headers = proofs.iter().fold(Headers::new(), |headers, proof| headers.with("DPoP", proof));
    RequestHead { method: "GET".into(), target: target.into(), headers }
}

const TARGET: &str = "/protectedresource";

fn read(proof: &str, unix: u64) -> Result<Proof, AccessDenial> {
    proofs().read(&head(TARGET, &[proof]), TOKEN, Duration::from_secs(unix))
}

/// Names of members and their values.
type Members<'a> = &'a [(&'a str, &'a str)];

/// The proof of the standard, with these members of its header and its claims in place of their
/// own. An empty value removes the member.
fn changed(header: Members<'_>, claims: Members<'_>) -> String {
    let own = Jwt::read(PROOF).unwrap();
    let change = |own: &Object, changes: Members<'_>| {
        let mut object = own.clone();
        for (name, value) in changes {
            match *value {
                "" => drop(object.remove(name)),
                value => object.set(name, RawJson::parse(value.as_bytes().to_vec()).unwrap()),
            }
        }
        URL_SAFE_NO_PAD.encode(object.to_json().as_bytes())
    };
    format!("{}.{}.c2ln", change(&own.header, header), change(&own.claims, claims))
}

// covers: DPOP-S-012
#[test]
fn proof_of_the_standard_is_read() {
    let proof = read(PROOF, NOW).unwrap();
    assert_eq!(proof.jkt, "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I");
    let Verification { alg, key, input, signature } = *proof.verification;
    assert_eq!((alg, key.thumbprint(), signature.len()), (Alg::Es256, proof.jkt, 64));
    assert_eq!(input, PROOF.rsplit_once('.').unwrap().0);
}

// covers: DPOP-S-012, DPOP-B-017
#[test]
fn each_part_of_a_proof_is_checked() {
    let jwk = r#"{"kty":"EC","crv":"P-256","x":"l8tFrhx-34tV3hRICRDY9zCkDlpBhF42UQUfWVAWBFs","y":"9VE4jf_Ok_o64zbTTlcuNJajHmt6v9TDVrU0CdvGRDA","d":"AAAA"}"#;
    let rows: &[(Members<'_>, Members<'_>, bool)] = &[
        (&[], &[], true),
        (&[("typ", r#""DPoP+JWT""#)], &[], true),
        (&[("kid", r#""x""#)], &[("content_digest", r#""x""#), ("nonce", r#""x""#)], true),
        (&[("typ", "")], &[], false),
        (&[("typ", r#""at+jwt""#)], &[], false),
        (&[("alg", "")], &[], false),
        (&[("alg", r#""none""#)], &[], false),
        (&[("alg", r#""HS256""#)], &[], false),
        (&[("alg", r#""EdDSA""#)], &[], false),
        (&[("crit", r#"["x"]"#)], &[], false),
        (&[("jwk", "")], &[], false),
        (&[("jwk", jwk)], &[], false),
        (&[("jwk", r#"{"kty":"oct","k":"AAAA"}"#)], &[], false),
        (&[], &[("jti", "")], false),
        (&[], &[("jti", r#""""#)], false),
        (&[], &[("jti", "1")], false),
        (&[], &[("htm", "")], false),
        (&[], &[("htm", r#""POST""#)], false),
        (&[], &[("htm", r#""get""#)], false),
        (&[], &[("ath", "")], false),
        (&[], &[("ath", r#""fUHyO2r2Z3DZ53EsNrWBb0xWXoaNy59IiKCAqksmQEp""#)], false),
        (&[], &[("htu", "")], false),
        (&[], &[("iat", "")], false),
        (&[], &[("iat", r#""1562262618""#)], false),
    ];
    for (header, claims, is_valid) in rows {
        let outcome = read(&changed(header, claims), NOW);
        assert_eq!(outcome.is_ok(), *is_valid, "{header:?} {claims:?}");
        assert!(*is_valid || matches!(outcome, Err(AccessDenial::Proof(_))), "{outcome:?}");
    }
}

// covers: DPOP-S-012
#[test]
fn url_of_a_proof_is_compared_in_its_normal_form() {
    let proofs = Proofs::new("https://Mcp.Example:443/a/mcp", Duration::from_secs(300), None);
    for (url, target, is_same) in [
        ("https://mcp.example/a/mcp", "/a/mcp", true),
        ("https://mcp.example/a/mcp", "/a/mcp?b=c", true),
        ("https://mcp.example/a/mcp?d=e#f", "/a/mcp?b=c", true),
        ("HTTPS://MCP.example:443/a/%6dcp", "/a/mcp", true),
        ("https://mcp.example/b/../a/mcp", "/a/./mcp", true),
        ("https://mcp.example/a%2fmcp", "/a%2Fmcp", true),
        ("https://mcp.example", "/", true),
        ("https://mcp.example/a/mcp/", "/a/mcp", false),
        ("https://mcp.example/a/MCP", "/a/mcp", false),
        ("https://mcp.example/a%2fmcp", "/a/mcp", false),
        ("http://mcp.example/a/mcp", "/a/mcp", false),
        ("https://mcp.example:444/a/mcp", "/a/mcp", false),
        ("https://other.example/a/mcp", "/a/mcp", false),
        ("https://u@mcp.example/a/mcp", "/a/mcp", false),
        ("/a/mcp", "/a/mcp", false),
        ("", "/a/mcp", false),
        ("https://mcp.example/", "*", false),
    ] {
        assert_eq!(proofs.is_target(url, target), is_same, "{url} {target}");
    }
    assert!(!Proofs::new("urn:x", Duration::ZERO, None).is_target("https://mcp.example/", "/"));
}

// covers: DPOP-S-013
#[test]
fn proof_is_recent() {
    for (unix, is_recent) in [(NOW, true), (NOW + 299, true), (NOW + 300, false), (NOW - 300, true), (NOW - 301, false)]
    {
        assert_eq!(read(PROOF, unix).is_ok(), is_recent, "{unix}");
    }
    let narrow = Proofs::new("https://resource.example.org", Duration::from_secs(10), None);
    let outcome = narrow.read(&head(TARGET, &[PROOF]), TOKEN, Duration::from_secs(NOW + 10));
    assert!(outcome.is_err());
}

// covers: DPOP-S-012
#[test]
fn request_has_one_proof_of_limited_length() {
    let long = "a".repeat(8193);
    let both = [PROOF, PROOF].join(", ");
    for fields in [&[][..], &[PROOF, PROOF], &["x"], &[""], &[&long], &[&both]] {
        let outcome = proofs().read(&head(TARGET, fields), TOKEN, Duration::from_secs(NOW));
        assert!(matches!(outcome, Err(AccessDenial::Proof(_))), "{fields:?}");
    }
    assert!(proofs().read(&head(TARGET, &[PROOF]), "other", Duration::from_secs(NOW)).is_err());
}

// covers: DPOP-S-013
#[test]
fn proof_is_used_once_for_as_long_as_it_is_valid() {
    let origin = Duration::from_secs(NOW - 1000);
    let now = |unix: u64| Instant::new(Duration::from_secs(unix) - origin);
    let (mut proofs, proof) = (proofs(), read(PROOF, NOW).unwrap());
    assert_eq!(proofs.redeem(&proof, now(NOW), origin), Ok(()));
    for unix in [NOW, NOW + 299] {
        let again = read(PROOF, unix).unwrap();
        assert!(matches!(proofs.redeem(&again, now(unix), origin), Err(AccessDenial::Proof(_))));
    }
    // Another one of the same key, and the same identifier under another key.
    let other = read(&changed(&[], &[("jti", r#""other""#)]), NOW).unwrap();
    assert_eq!(proofs.redeem(&other, now(NOW), origin), Ok(()));
    let key = r#"{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}"#;
    let stranger = read(&changed(&[("jwk", key), ("alg", r#""EdDSA""#)], &[]), NOW).unwrap();
    assert_eq!(proofs.redeem(&stranger, now(NOW), origin), Ok(()));
    assert!(!proofs.is_empty());
    proofs.purge(now(NOW + 300));
    assert!(proofs.is_empty());
}

// covers: DPOP-S-013
#[test]
fn proof_that_expires_while_it_is_verified_is_refused() {
    let origin = Duration::from_secs(NOW - 1000);
    let (mut proofs, proof) = (proofs(), read(PROOF, NOW).unwrap());
    // Its memory would have expired at once, so that the same proof could be used again.
    let late = Instant::new(Duration::from_secs(NOW + 300) - origin);
    for _ in 0..2 {
        assert_eq!(proofs.redeem(&proof, late, origin), Err(AccessDenial::Proof("the proof is too old")));
    }
    let in_time = Instant::new(Duration::from_secs(NOW + 299) - origin);
    assert_eq!(proofs.redeem(&proof, in_time, origin), Ok(()));
}

// covers: DPOP-S-013, DPOP-S-014
#[test]
fn nonce_is_that_of_the_time() {
    let seed = Seed::new([7; 32]);
    let proofs = Proofs::new("https://resource.example.org/x", Duration::from_secs(300), Some(&seed));
    let read = |proof: &str, unix: u64| proofs.read(&head(TARGET, &[proof]), TOKEN, Duration::from_secs(unix));
    let start = NOW / SLOT * SLOT;
    let Err(AccessDenial::Nonce(nonce)) = read(PROOF, start) else { panic!("no nonce") };
    let proof = changed(&[], &[("nonce", &format!("{nonce:?}"))]);
    for (unix, is_valid) in [(start, true), (start + 239, true), (start + 240, false), (start - 1, false)] {
        assert_eq!(read(&proof, unix).is_ok(), is_valid, "{unix}");
    }
    // The clock of the client does not matter. The rest does.
    let wrong = changed(&[], &[("nonce", &format!("{nonce:?}")), ("iat", "1")]);
    assert!(read(&wrong, start).is_ok());
    let wrong = changed(&[], &[("nonce", &format!("{nonce:?}")), ("htm", r#""PUT""#)]);
    assert!(matches!(read(&wrong, start), Err(AccessDenial::Proof(_))));
    for other in ["\"\"", "\"x\"", "1"] {
        let wrong = changed(&[], &[("nonce", other)]);
        assert!(matches!(read(&wrong, start), Err(AccessDenial::Nonce(again)) if again == nonce), "{other}");
    }
    // Another server has other ones, unless it shares the seed.
    let others: Vec<_> = [[7; 32], [8; 32]]
        .map(|seed| NonceKey(Seed::new(seed).derive("nonces of proofs")).current(Duration::from_secs(start)))
        .into();
    assert_eq!((others[0] == nonce, others[1] == nonce, nonce.len()), (true, false, 22));
}
