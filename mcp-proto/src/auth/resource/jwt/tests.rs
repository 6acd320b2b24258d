use super::*;
use crate::auth::IssuerConfig;
use alloc::format;
use alloc::vec;

const ISSUER: &str = "https://as.example";
const SELF: &str = "https://mcp.example/mcp";
const NOW: u64 = 1_800_000_000;

fn token(header: &str, claims: &str) -> String {
    let encode = |text: &str| URL_SAFE_NO_PAD.encode(text);
    format!("{}.{}.c2ln", encode(header), encode(claims))
}

/// The claims of a valid token, with these in place of their own, and none of these.
fn claims(changes: &[(&str, &str)], without: &[&str]) -> String {
    let mut claims = Object::new()
        .with("iss", ISSUER)
        .with("sub", "u1")
        .with("client_id", "c1")
        .with("aud", SELF)
        .with("exp", NOW + 600)
        .with("iat", NOW)
        .with("scope", "read");
    for (name, value) in changes {
        claims.set(name, RawJson::parse(value.as_bytes().to_vec()).unwrap());
    }
    without.iter().for_each(|name| drop(claims.remove(name)));
    claims.to_json().to_string()
}

fn grant_with(issuer: &IssuerConfig, header: &str, claims: &str) -> Result<Grant, &'static str> {
    let config = VerifierConfig::new(issuer.clone()).implies("admin", ["read", "write"]);
    let rules = Rules { config: &config, issuer, identifier: SELF, unix: Duration::from_secs(NOW) };
    let jwt = Jwt::read(&token(header, claims)).unwrap();
    jwt.alg(&issuer.algs)?;
    jwt.grant(&rules)
}

const HEADER: &str = r#"{"alg":"ES256","typ":"at+jwt"}"#;

fn grant(claims: &str) -> Result<Grant, &'static str> {
    grant_with(&IssuerConfig::jwt(ISSUER), HEADER, claims)
}

#[test]
fn parts_of_the_standard_are_read() {
    // RFC 7515 appendix A.3.
    let text = "eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ.DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q";
    let jwt = Jwt::read(text).unwrap();
    assert_eq!(jwt.alg(&Alg::ALL), Ok(Alg::Es256));
    assert_eq!(
        (jwt.claims.str("iss").as_deref(), time(&jwt.claims, "exp")),
        (Some("joe"), Ok(Some(Duration::from_secs(1_300_819_380))))
    );
    assert_eq!(jwt.input(text), text.rsplit_once('.').unwrap().0);
    assert_eq!((jwt.signature.len(), &jwt.signature[..4]), (64, &[14, 209, 33, 83][..]));
}

#[test]
fn text_of_another_form_is_no_token() {
    let whole = token("{}", "{}");
    assert!(Jwt::read(&whole).is_some());
    for text in [
        "",
        "opaque",
        "a.b",
        &whole[1..],
        &format!("{whole}.a"),
        &format!("{whole}.a.b"),
        &whole.replace("c2ln", "c2ln="),
        &whole.replace("c2ln", "c2l"),
        &token("[]", "{}"),
        &token("{}", "1"),
        &token("{}", "{"),
        &token("{}", "{}").replace("e30.e30", "e30=.e30"),
    ] {
        assert!(Jwt::read(text).is_none(), "{text}");
    }
}

// covers: RSRC-S-013, AUTHT-S-003
#[test]
fn grant_names_issuer_subject_and_client() {
    let access = grant(&claims(&[], &[])).unwrap().access;
    assert_eq!(access.principal.as_str(), r#"["https://as.example","u1","c1"]"#);
    assert_eq!(
        (&*access.issuer, access.subject.as_deref(), access.client.as_deref()),
        (ISSUER, Some("u1"), Some("c1"))
    );
    assert_eq!(access.expires, Some(Duration::from_secs(NOW + 660)));
    assert_eq!(access.claims.str("scope").as_deref(), Some("read"));
    // What must not be the same principal.
    let principal = |changes: &[_], without: &[_]| grant(&claims(changes, without)).unwrap().access.principal.clone();
    assert_eq!(principal(&[], &["client_id"]).as_str(), r#"["https://as.example","u1",null]"#);
    assert_eq!(principal(&[], &["sub"]).as_str(), r#"["https://as.example",null,"c1"]"#);
    let quoted = principal(&[("sub", r#""u1\",\"c1""#)], &["client_id"]);
    assert_eq!(quoted.as_str(), r#"["https://as.example","u1\",\"c1",null]"#);
    for name in ["azp", "cid", "appid"] {
        let named = principal(&[(name, "\"c2\"")], &["client_id"]);
        assert_eq!(named.as_str(), r#"["https://as.example","u1","c2"]"#, "{name}");
    }
}

// covers: RSRC-S-013, AUTHS-S-013
#[test]
fn scopes_are_a_text_or_an_array() {
    for (changes, wanted) in [
        (vec![], "read"),
        (vec![("scope", r#""b a""#)], "a b"),
        (vec![("scope", r#"["b","a c"]"#)], "a b c"),
        (vec![("scope", "null"), ("scp", r#""a""#)], ""),
        (vec![("scope", r#""admin""#)], "admin read write"),
    ] {
        let access = grant(&claims(&changes, &[])).unwrap().access;
        assert_eq!(access.scopes.to_string(), wanted, "{changes:?}");
    }
    let scp = claims(&[("scp", r#"["x"]"#), ("roles", r#""y""#)], &["scope"]);
    assert_eq!(grant(&scp).unwrap().access.scopes.to_string(), "x");
    let named = IssuerConfig::jwt(ISSUER).scope_claim("permissions");
    let text = claims(&[("permissions", r#"["p"]"#)], &[]);
    assert_eq!(grant_with(&named, HEADER, &text).unwrap().access.scopes.to_string(), "p");
    // Without any claim there is no scope.
    assert!(grant(&claims(&[], &["scope"])).unwrap().access.scopes.is_empty());
}

// covers: RSRC-S-001, RSRC-S-004
#[test]
fn header_is_that_of_an_access_token() {
    let open = IssuerConfig::jwt(ISSUER).any_typ();
    let narrow = IssuerConfig::jwt(ISSUER).algs([Alg::Rs256, Alg::EdDsa]);
    for (header, plain, any, some) in [
        (r#"{"alg":"ES256","typ":"at+jwt"}"#, true, true, false),
        (r#"{"alg":"Ed25519","typ":"AT+JWT"}"#, true, true, true),
        (
            r#"{"alg":"RS256","typ":"application/at+jwt","jku":"https://evil.example","x5u":"x","jwk":{}}"#,
            true,
            true,
            true,
        ),
        (r#"{"alg":"RS256","typ":"JWT"}"#, false, true, false),
        (r#"{"alg":"RS256"}"#, false, true, false),
        (r#"{"alg":"RS256","typ":1}"#, false, false, false),
        (r#"{"alg":"ES256","typ":"dpop+jwt"}"#, false, false, false),
        (r#"{"alg":"ES256","typ":"logout+jwt"}"#, false, false, false),
        (r#"{"alg":"none","typ":"at+jwt"}"#, false, false, false),
        (r#"{"alg":"HS256","typ":"at+jwt"}"#, false, false, false),
        (r#"{"alg":"es256","typ":"at+jwt"}"#, false, false, false),
        (r#"{"typ":"at+jwt"}"#, false, false, false),
        (r#"{"alg":"ES256","typ":"at+jwt","crit":["exp"]}"#, false, false, false),
    ] {
        let is_valid = |issuer: &IssuerConfig| grant_with(issuer, header, &claims(&[], &[])).is_ok();
        let found = [is_valid(&IssuerConfig::jwt(ISSUER)), is_valid(&open), is_valid(&narrow)];
        assert_eq!(found, [plain, any, some], "{header}");
    }
}

// covers: RSRC-S-001
#[test]
fn id_token_is_never_accepted() {
    let open = IssuerConfig::jwt(ISSUER).any_typ();
    let header = r#"{"alg":"RS256","typ":"JWT"}"#;
    assert!(grant_with(&open, header, &claims(&[], &[])).is_ok());
    // An ID token of some issuers has the same audience, and nothing but no scope.
    assert!(grant_with(&open, header, &claims(&[], &["scope"])).is_err());
    for claim in ["nonce", "at_hash", "c_hash"] {
        let text = claims(&[(claim, "\"x\"")], &[]);
        assert_eq!(grant_with(&open, header, &text).unwrap_err(), "the token is an ID token", "{claim}");
        assert_eq!(grant(&text).unwrap_err(), "the token is an ID token", "{claim}");
    }
}

// covers: AUTHT-S-004, RSRC-S-003, SEC-S-010, WIF-S-008
#[test]
fn token_for_another_audience_is_refused() {
    for (audience, is_own) in [
        (r#""https://mcp.example/mcp""#, true),
        (r#"["x","https://mcp.example/mcp"]"#, true),
        (r#""https://mcp.example/mcp/""#, false),
        (r#""https://mcp.example""#, false),
        (r#""https://MCP.example/mcp""#, false),
        (r#""https://mcp.example/mcp https://x""#, false),
        (r#""api://own""#, false),
        ("[]", false),
        ("null", false),
        ("[1]", false),
        ("{}", false),
        ("7", false),
    ] {
        assert_eq!(grant(&claims(&[("aud", audience)], &[])).is_ok(), is_own, "{audience}");
    }
    assert!(grant(&claims(&[], &["aud"])).is_err());
    let own = IssuerConfig::jwt(ISSUER).audience("api://own").audience("api://old");
    for (audience, is_own) in [("api://own", true), ("api://old", true), (SELF, false)] {
        let text = claims(&[("aud", &format!("\"{audience}\""))], &[]);
        assert_eq!(grant_with(&own, HEADER, &text).is_ok(), is_own, "{audience}");
    }
}

// covers: AUTHT-S-005, RSRC-S-005
#[test]
fn token_is_valid_in_its_time_with_leeway() {
    for (changes, is_valid) in [
        (vec![("exp", NOW + 1)], true),
        (vec![("exp", NOW - 59)], true),
        (vec![("exp", NOW - 60)], false),
        (vec![("exp", 0)], false),
        (vec![("nbf", NOW + 60)], true),
        (vec![("nbf", NOW + 61)], false),
    ] {
        let changes: Vec<_> = changes.iter().map(|(name, time)| (*name, time.to_string())).collect();
        let changes: Vec<_> = changes.iter().map(|(name, time)| (*name, &**time)).collect();
        assert_eq!(grant(&claims(&changes, &[])).is_ok(), is_valid, "{changes:?}");
    }
    for (exp, is_valid) in [("1e300", true), ("1800000000.5", true), ("-1", false), ("\"1800000600\"", false)] {
        assert_eq!(grant(&claims(&[("exp", exp)], &[])).is_ok(), is_valid, "{exp}");
    }
    assert_eq!(grant(&claims(&[], &["exp"])).unwrap_err(), "the token has no expiry");
    assert!(grant(&claims(&[("nbf", "\"x\"")], &[])).is_err());
    let strict = IssuerConfig::jwt(ISSUER).leeway(Duration::ZERO);
    let expired = claims(&[("exp", &NOW.to_string())], &[]);
    assert_eq!(grant_with(&strict, HEADER, &expired).unwrap_err(), "the token has expired");
}

// covers: DPOP-S-015
#[test]
fn binding_is_to_one_key_or_not_known() {
    let jkt = |cnf: &str| grant(&claims(&[("cnf", cnf)], &[])).map(|grant| grant.jkt.map(|jkt| jkt.to_string()));
    assert_eq!(jkt("null"), Ok(None));
    assert_eq!(jkt(r#"{"jkt":"abc"}"#), Ok(Some("abc".into())));
    for cnf in ["{}", r#"{"x5t#S256":"a"}"#, r#"{"jkt":"a","x5t#S256":"b"}"#, r#"{"jkt":1}"#, "\"a\"", "[]"] {
        assert!(jkt(cnf).is_err(), "{cnf}");
    }
}

// covers: AUTHT-S-003
#[test]
fn token_that_names_no_one_is_refused() {
    // With a client, users whose subject is not read would be one principal.
    for sub in ["1", "{}", "[\"u1\"]", "true"] {
        assert_eq!(grant(&claims(&[("sub", sub)], &[])).unwrap_err(), "the subject of the token is malformed", "{sub}");
    }
    assert_eq!(grant(&claims(&[("sub", "null")], &[])).unwrap().access.subject, None);
    assert_eq!(grant(&claims(&[], &["sub", "client_id"])).unwrap_err(), "the token names no subject");
    assert_eq!(grant(&claims(&[], &["iss"])).unwrap_err(), "the token names no issuer");
    assert!(grant(&claims(&[("scope", "{}")], &[])).is_err());
}
