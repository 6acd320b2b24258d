use super::*;
use crate::auth::token::{TokenAnswer, read_as};
use crate::exchange::Headers;
use crate::fetch::FetchResponse;
use alloc::borrow::ToOwned;
use alloc::boxed::Box;

fn read(body: &str) -> Result<String, Option<String>> {
    let headers = Headers::new().with("Content-Type", "application/json");
    let (url, body) = ("https://idp.example/token".to_owned(), body.to_owned().into());
    let response = FetchResponse { status: 200, headers, body, url, redirect: None };
    match read_as("https://idp.example/token", &Ok(Box::new(response)), |members| grant(members, 16)) {
        TokenAnswer::Tokens(grant) => Ok(grant.expose().to_owned()),
        TokenAnswer::Other(problem) => Err(problem.why),
        other => panic!("{other:?}"),
    }
}

#[test]
fn answer_is_a_grant_and_no_access_token() {
    for body in [
        r#"{"access_token":"jag","token_type":"N_A","issued_token_type":"urn:ietf:params:oauth:token-type:id-jag"}"#,
        r#"{"access_token":"jag","token_type":"n_a","expires_in":300,"scope":"a"}"#,
        r#"{"access_token":"jag"}"#,
    ] {
        assert_eq!(read(body), Ok("jag".into()), "{body}");
    }
    for (body, why) in [
        ("{}", "there is no grant"),
        (r#"{"access_token":""}"#, "there is no grant"),
        (r#"{"access_token":"t","token_type":"Bearer"}"#, "issued an access token in place of a grant"),
        (r#"{"access_token":"t","issued_token_type":"urn:x"}"#, "issued something else than a grant"),
        (r#"{"access_token":"01234567890123456"}"#, "the grant is longer than 16 bytes"),
    ] {
        let found = read(body).unwrap_err().unwrap_or_default();
        assert!(found.ends_with(why), "{body}: {found}");
    }
}

#[test]
fn exchange_names_scopes_only_if_there_are_some() {
    let subject = Secret::from("s");
    let form = |scopes: &Scopes| {
        let exchange = Exchange {
            subject: &subject,
            subject_type: SubjectToken::Saml2,
            audience: "https://as.example",
            resource: "https://h/mcp",
            scopes,
        };
        exchange.form().text().to_owned()
    };
    assert!(!form(&Scopes::new()).contains("&scope="));
    assert!(form(&Scopes::parse("b a")).contains("&scope=a+b"));
    assert!(form(&Scopes::new()).contains("subject_token_type=urn%3Aietf%3Aparams%3Aoauth%3Atoken-type%3Asaml2"));
}
