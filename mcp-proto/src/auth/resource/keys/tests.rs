use super::*;
use alloc::format;

const EC: &str = r#""kty":"EC","crv":"P-256","x":"l8tFrhx-34tV3hRICRDY9zCkDlpBhF42UQUfWVAWBFs","y":"9VE4jf_Ok_o64zbTTlcuNJajHmt6v9TDVrU0CdvGRDA""#;
const ED: &str = r#""kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo""#;

fn set(keys: &[String]) -> Result<KeySet, &'static str> {
    KeySet::read(format!("{{\n \"keys\": [{}]\r\n}}", keys.join(",\n")).as_bytes())
}

fn key(body: &str, more: &str) -> String {
    format!("{{{body}{more}}}")
}

// covers: RSRC-S-006, RSRC-S-004
#[test]
fn key_is_found_by_name_and_algorithm() {
    let set = set(&[
        key(EC, r#","kid":"a","use":"sig""#),
        key(ED, r#","kid":"b","alg":"EdDSA""#),
        key(ED, r#","kid":"c","key_ops":["verify"]"#),
    ])
    .unwrap();
    for (alg, kid, is_there) in [
        (Alg::Es256, Some("a"), true),
        (Alg::EdDsa, Some("b"), true),
        (Alg::EdDsa, Some("c"), true),
        (Alg::EdDsa, Some("a"), false),
        (Alg::Es256, Some("b"), false),
        (Alg::Es384, Some("a"), false),
        (Alg::Rs256, Some("a"), false),
        (Alg::Es256, Some("d"), false),
        (Alg::Es256, Some(""), false),
        // Without a name, the only one that fits.
        (Alg::Es256, None, true),
        (Alg::EdDsa, None, false),
        (Alg::Rs256, None, false),
    ] {
        assert_eq!(set.find(alg, kid).is_some(), is_there, "{alg:?} {kid:?}");
    }
}

// covers: RSRC-S-004, RSRC-S-002
#[test]
fn keys_that_cannot_be_used_are_left_out() {
    for more in [
        r#","use":"enc""#,
        r#","use":1"#,
        r#","key_ops":["sign"]"#,
        r#","key_ops":"verify""#,
        r#","alg":"RSA-OAEP""#,
        r#","alg":"HS256""#,
        r#","d":"AAAA""#,
    ] {
        assert!(set(&[key(EC, more)]).is_err(), "{more}");
        assert!(set(&[key(EC, more), key(ED, "")]).is_ok(), "{more}");
    }
    assert!(set(&[r#"{"kty":"oct","k":"AyM1SysPpbyDfgZld3umj1qzKObwVMko","kid":"a"}"#.into()]).is_err());
    for document in ["", "[]", "{}", r#"{"keys":{}}"#, r#"{"keys":[]}"#, r#"{"keys":[1,null,"a"]}"#, "<html>"] {
        assert!(KeySet::read(document.as_bytes()).is_err(), "{document}");
    }
}

#[test]
fn set_has_a_limited_number_of_keys() {
    let many: Vec<String> = (0..100).map(|n| key(EC, &format!(r#","kid":"{n}""#))).collect();
    let set = set(&many).unwrap();
    assert_eq!(set.0.len(), 64);
    assert!(set.find(Alg::Es256, Some("63")).is_some() && set.find(Alg::Es256, Some("64")).is_none());
}

// covers: RSRC-S-006
#[test]
fn lifetime_is_that_of_the_response_within_limits() {
    for (fields, seconds) in [
        (&[][..], 600),
        (&["public"], 600),
        (&["public, max-age=300, must-revalidate"], 300),
        (&["public", "Max-Age=\"300\""], 300),
        (&["max-age=0"], 60),
        (&["max-age=99999999"], 86_400),
        (&["max-age=x"], 600),
        (&["s-maxage=5"], 600),
    ] {
        let headers = fields.iter().fold(Headers::new(), |headers, field| headers.with("Cache-Control", field));
        assert_eq!(lifetime(&headers), Duration::from_secs(seconds), "{fields:?}");
    }
}
