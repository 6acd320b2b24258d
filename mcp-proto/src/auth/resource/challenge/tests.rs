use super::*;
use crate::auth::challenge::{ProofFault, TokenChallenge};
use alloc::vec::Vec;

fn resource() -> Resource {
    Resource::new("https://host.example/mcp", ["https://issuer.example"]).scopes_supported([
        "offline_access",
        "read",
        "write",
    ])
}

fn denials() -> [AccessDenial; 7] {
    [
        AccessDenial::Missing,
        AccessDenial::Invalid("it has expired"),
        AccessDenial::Malformed("there are two"),
        AccessDenial::Scope(Scopes::parse("a b")),
        AccessDenial::Proof("it was used"),
        AccessDenial::Nonce("n1".into()),
        AccessDenial::Unavailable { retry_after: Duration::from_millis(1500) },
    ]
}

/// Returns the status and the fields of the response to a denial.
fn answered(denial: &AccessDenial, resource: Option<&Resource>) -> (u16, Vec<String>) {
    let document = resource.and_then(Resource::document);
    let response = DenialResponse::new(denial, resource, document.as_ref());
    let fields = response.headers.iter().map(|(name, value)| alloc::format!("{name}: {value}"));
    (response.status, fields.collect())
}

const METADATA: &str = r#"resource_metadata="https://host.example/.well-known/oauth-protected-resource/mcp""#;

// covers: RSRC-S-009, AUTHD-S-003, AUTHD-S-004, AUTHG-S-006, AUTHS-S-001, AUTHS-S-007, AUTHS-S-018,
// AUTHT-S-005, DPOP-S-014
#[test]
fn each_denial_has_its_status_and_challenge() {
    let algs = r#"algs="ES256 EdDSA ES384 PS256 RS256 PS384 RS384 PS512 RS512""#;
    let expected = [
        (401, alloc::format!(r#"Bearer scope="read write", {METADATA}"#)),
        (
            401,
            alloc::format!(
                r#"Bearer error="invalid_token", error_description="it has expired", scope="read write", {METADATA}"#
            ),
        ),
        (400, alloc::format!(r#"Bearer error="invalid_request", error_description="there are two", {METADATA}"#)),
        (403, alloc::format!(r#"Bearer error="insufficient_scope", scope="a b", {METADATA}"#)),
        (
            401,
            alloc::format!(r#"DPoP error="invalid_dpop_proof", error_description="it was used", {algs}, {METADATA}"#),
        ),
        (401, alloc::format!(r#"DPoP error="use_dpop_nonce", {algs}, {METADATA}"#)),
    ];
    let resource = resource();
    let [denials @ .., unavailable] = denials();
    for (denial, (status, challenge)) in denials.iter().zip(expected) {
        let (found, fields) = answered(denial, Some(&resource));
        assert_eq!((found, &*fields[0]), (status, &*alloc::format!("WWW-Authenticate: {challenge}")));
        let more: &[&str] = match denial {
            AccessDenial::Nonce(_) => &["DPoP-Nonce: n1", "Cache-Control: no-store"],
            _ => &[],
        };
        assert_eq!(fields[1..], *more);
    }
    assert_eq!(answered(&unavailable, Some(&resource)), (503, alloc::vec!["Retry-After: 2".into()]));
    let soon = AccessDenial::Unavailable { retry_after: Duration::ZERO };
    assert_eq!(answered(&soon, None), (503, alloc::vec!["Retry-After: 1".into()]));
}

#[test]
fn scopes_without_which_nothing_works_are_asked_for() {
    let resource = resource().scopes_required(["read", "offline_access"]);
    let (_, fields) = answered(&AccessDenial::Missing, Some(&resource));
    assert!(fields[0].contains(r#"scope="read","#), "{fields:?}");
}

#[test]
fn denial_without_a_resource_has_a_bare_challenge() {
    let found = denials().map(|denial| answered(&denial, None).1.remove(0));
    assert_eq!(found[0], "WWW-Authenticate: Bearer");
    assert_eq!(found[3], r#"WWW-Authenticate: Bearer error="insufficient_scope", scope="a b""#);
    let broken = Resource::new("no url", ["https://issuer.example"]);
    assert_eq!(answered(&AccessDenial::Missing, Some(&broken)).1, ["WWW-Authenticate: Bearer"]);
}

// covers: DPOP-S-014
#[test]
fn each_accepted_scheme_has_a_challenge() {
    for (required, schemes) in [(false, &["Bearer", "DPoP"][..]), (true, &["DPoP"])] {
        for denial in [AccessDenial::Missing, AccessDenial::Invalid("x"), AccessDenial::Scope(Scopes::parse("a"))] {
            let (_, fields) = answered(&denial, Some(&resource().dpop(required)));
            let found: Vec<_> = fields.iter().map(|field| field.split(' ').nth(1).unwrap()).collect();
            assert_eq!(found, schemes, "{denial:?}");
            assert!(fields.iter().all(|field| field.contains(METADATA)));
        }
    }
}

// covers: B-194
#[test]
fn no_text_leaves_its_quotation_marks() {
    let mut text = String::new();
    push_quoted(&mut text, "a\"b\\c\r\nX: y\u{e9}\0\t");
    assert_eq!(text, r#"="a\"b\\cX: y""#);
}

#[test]
fn client_reads_the_challenge() {
    let document = resource().document();
    let read = |denial: &AccessDenial| {
        let headers = DenialResponse::new(denial, Some(&resource()), document.as_ref()).headers;
        TokenChallenge::of(headers.all("WWW-Authenticate")).unwrap()
    };
    let missing = read(&AccessDenial::Missing);
    assert_eq!((missing.error, missing.scope), (None, Some(Scopes::parse("read write"))));
    assert_eq!(missing.resource_metadata, document.as_ref().map(|document| document.url.clone()));
    let lacks = read(&AccessDenial::Scope(Scopes::parse("b a")));
    assert!(lacks.is_insufficient_scope());
    assert_eq!(lacks.scope, Some(Scopes::parse("a b")));
    let fault = |denial: &AccessDenial| read(denial).dpop.and_then(|dpop| dpop.fault);
    assert_eq!(fault(&AccessDenial::Nonce("n".into())), Some(ProofFault::Nonce));
    assert_eq!(fault(&AccessDenial::Proof("x")), Some(ProofFault::Invalid));
}
