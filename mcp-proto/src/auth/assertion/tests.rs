use super::*;
use crate::auth::AssertionPurpose;

const ISSUER: &str = "https://as.example";

fn doubt(claims: &str) -> Option<String> {
    let request = AssertionRequest {
        purpose: AssertionPurpose::Workload,
        audience: ISSUER.into(),
        token_endpoint: "https://as.example/token".into(),
        resource: None,
    };
    let jwt = format!("e30.{}.c2ln", URL_SAFE_NO_PAD.encode(claims));
    request.doubt(&jwt.into(), 1000)
}

// covers: WIF-C-004, WIF-C-005
#[test]
fn assertion_for_others_or_too_old_is_doubted() {
    for claims in [
        r#"{"aud":"https://as.example","exp":1001}"#,
        r#"{"aud":"https://as.example/"}"#,
        r#"{"aud":["x","https://as.example/token"],"exp":1000000.5}"#,
        // It is no claim set: the issuer decides.
        "[]",
        "no JSON",
    ] {
        assert_eq!(doubt(claims), None, "{claims}");
    }
    let audience = || Some("the assertion does not name its audience https://as.example".into());
    for claims in [r#"{"aud":"https://other.example"}"#, r#"{"aud":["a","b"]}"#, "{}", r#"{"aud":[]}"#] {
        assert_eq!(doubt(claims), audience(), "{claims}");
    }
    for claims in [r#"{"aud":"https://as.example","exp":1000}"#, r#"{"exp":5}"#] {
        assert_eq!(doubt(claims), Some("the assertion has expired".into()), "{claims}");
    }
}

#[test]
fn assertion_that_is_no_jwt_is_not_doubted() {
    let request = AssertionRequest {
        purpose: AssertionPurpose::Workload,
        audience: ISSUER.into(),
        token_endpoint: String::new(),
        resource: None,
    };
    for text in ["", "opaque", "a.b", "a.%%.c", "..", "PHNhbWw+"] {
        assert_eq!(request.doubt(&text.into(), 0), None, "{text}");
    }
}
