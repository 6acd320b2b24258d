use super::*;
use crate::error::Refusal;
use crate::exchange::{Closed, RedirectRefusal, Sent};

const URL: &str = "https://issuer/token";

/// The media types of the tables.
const JSON: &str = "application/json";
const FORM: &str = "application/x-www-form-urlencoded; charset=utf-8";
const HTML: &str = "text/html";

fn response(status: u16, media_type: &str, body: &str) -> FetchResponse {
    FetchResponse {
        status,
        headers: Headers::new().with("Content-Type", media_type),
        body: body.to_string().into(),
        url: URL.into(),
        redirect: None,
    }
}

fn answer(response: FetchResponse) -> TokenAnswer {
    read(URL, &Ok(Box::new(response)), 64, &[TokenType::Bearer])
}

fn json(body: &str) -> TokenAnswer {
    answer(response(200, JSON, body))
}

#[track_caller]
fn tokens(answer: TokenAnswer) -> NewTokens {
    match answer {
        TokenAnswer::Tokens(tokens) => tokens,
        other => panic!("{other:?}"),
    }
}

/// Returns the kind of an answer, and its problem.
fn kind(answer: TokenAnswer) -> (&'static str, Problem) {
    match answer {
        TokenAnswer::Tokens(_) => ("tokens", Problem::default()),
        TokenAnswer::InvalidGrant(problem) => ("grant", problem),
        TokenAnswer::InvalidClient(problem) => ("client", problem),
        TokenAnswer::Transient { problem, .. } => ("transient", problem),
        TokenAnswer::Firewall(problem) => ("firewall", problem),
        TokenAnswer::Other(problem) => ("other", problem),
    }
}

// covers: AUTHF-C-005, B-258
#[test]
fn forms_have_the_parameters_of_their_grants() {
    let (code, verifier) = (Secret::new("c d"), Secret::new("v"));
    let form = exchange(&code, &verifier, "http://127.0.0.1:1/callback", Some("https://h/mcp"));
    assert_eq!(
        form.text(),
        "grant_type=authorization_code&code=c+d&redirect_uri=http%3A%2F%2F127.0.0.1%3A1%2Fcallback&code_verifier=v\
         &resource=https%3A%2F%2Fh%2Fmcp"
    );
    assert!(!exchange(&code, &verifier, "x", None).text().contains("resource"));
    let token = Secret::new("r");
    let form = refresh(&token, Some("https://h/mcp"));
    assert_eq!(form.text(), "grant_type=refresh_token&refresh_token=r&resource=https%3A%2F%2Fh%2Fmcp");
    assert_eq!(refresh(&token, None).text(), "grant_type=refresh_token&refresh_token=r");
    assert_eq!(revoke(&token, "refresh_token").text(), "token=r&token_type_hint=refresh_token");
}

// covers: B-237, REDIR-C-008
#[test]
fn request_follows_no_redirect_and_shows_no_secret() {
    let url = HttpTarget::parse(URL).unwrap();
    let headers = Headers::new().with("Authorization", "Basic canary");
    let limits = AuthLimits { token_time: Duration::from_secs(7), max_document: 9, ..AuthLimits::default() };
    let request = request(url.clone(), refresh(&"canary".into(), None), headers, &limits, Reach::Public);
    assert_eq!((request.method.as_str(), request.redirects), ("POST", Redirects::None));
    assert_eq!((request.reach, request.timeout, request.max_body), (Reach::Public, Duration::from_secs(7), 9));
    assert_eq!((request.url.clone(), &*request.body), (url, &b"grant_type=refresh_token&refresh_token=canary"[..]));
    let fields: Vec<_> = request.headers.iter().collect();
    assert_eq!(
        fields,
        [
            ("Authorization", "Basic canary"),
            ("Content-Type", "application/x-www-form-urlencoded"),
            ("Accept", "application/json"),
        ]
    );
    assert!(!format!("{request:?}").contains("canary"));
}

// covers: B-255
#[test]
fn tokens_are_read_as_json() {
    let body = concat!(
        r#"{"access_token":"a","token_type":"Bearer","expires_in":3600,"refresh_token":"r","scope":"b a","#,
        r#""id_token":"i"}"#
    );
    let wanted = NewTokens {
        access: "a".into(),
        token_type: TokenType::Bearer,
        refresh: Some("r".into()),
        expires_in: Some(3600),
        scopes: Some(Scopes::parse("a b")),
    };
    for status in [200, 201] {
        for media_type in [JSON, HTML, FORM] {
            assert_eq!(tokens(answer(response(status, media_type, body))), wanted);
        }
    }
    let indented = body.replace(',', ",\r\n  ");
    assert_eq!(tokens(json(&indented)), wanted);
    let nulls = concat!(
        r#"{"access_token":"a","token_type":"bearer","error":null,"expires_in":null,"refresh_token":null,"#,
        r#""scope":null}"#
    );
    let bare = NewTokens { refresh: None, expires_in: None, scopes: None, ..wanted };
    assert_eq!(tokens(json(nulls)), bare);
    assert_eq!(tokens(json(r#"{"access_token":"a","token_type":"bearer","error":"","refresh_token":""}"#)), bare);
}

// covers: B-255
#[test]
fn tokens_and_errors_are_read_as_a_form_at_200() {
    // As GitHub answers.
    let body = "access_token=gho_16C7&expires_in=28800&refresh_token=ghr_1B4a&scope=&token_type=bearer";
    let found = tokens(answer(response(200, FORM, body)));
    assert_eq!((found.access.expose(), found.refresh), ("gho_16C7", Some("ghr_1B4a".into())));
    assert_eq!((found.expires_in, found.scopes), (Some(28800), Some(Scopes::new())));
    let body = "error=bad_verification_code&error_description=The+code+is+%22old%22.&error_uri=https%3A%2F%2Fx";
    let (kind_found, problem) = kind(answer(response(200, FORM, body)));
    assert_eq!((kind_found, problem.error.as_deref()), ("other", Some("bad_verification_code")));
    assert_eq!(problem.description.as_deref(), Some("The code is \"old\"."));
    assert_eq!((problem.status, &*problem.url, problem.why), (Some(200), URL, None));
    for (status, media_type, body, wanted) in [
        (200, "Application/X-WWW-Form-Urlencoded", "access_token=a&token_type=BEARER", "tokens"),
        (400, FORM, "error=invalid_grant", "grant"),
        (200, HTML, "access_token=a&token_type=bearer", "other"),
        (200, FORM, "a=b", "other"),
        (403, FORM, "a=b", "firewall"),
    ] {
        assert_eq!(kind(answer(response(status, media_type, body))).0, wanted, "{status} {body}");
    }
}

// covers: B-244, B-255
#[test]
fn error_code_counts_at_any_status() {
    for (code, wanted) in [
        ("invalid_grant", "grant"),
        ("invalid_client", "client"),
        ("temporarily_unavailable", "transient"),
        ("server_error", "transient"),
    ] {
        for status in [200, 400, 401, 403, 429, 500, 503] {
            // An error is no success, even with a token.
            let body =
                format!(r#"{{"error":"{code}","error_description":"d","access_token":"a","token_type":"bearer"}}"#);
            let (found, problem) = kind(answer(response(status, JSON, &body)));
            assert_eq!(found, wanted, "{status} {code}");
            assert_eq!((problem.error.as_deref(), problem.description.as_deref()), (Some(code), Some("d")));
            assert_eq!(problem.status, Some(status));
        }
    }
}

// covers: B-244, B-255
#[test]
fn answers_without_tokens_are_told_apart() {
    for (status, media_type, body, wanted) in [
        // Other codes: what they mean is up to the status.
        (400, JSON, r#"{"error":"invalid_request"}"#, "other"),
        (400, JSON, r#"{"error":"unauthorized_client"}"#, "other"),
        (200, JSON, r#"{"error":"bad_refresh_token"}"#, "other"),
        (403, JSON, r#"{"error":"Forbidden"}"#, "other"),
        (429, JSON, r#"{"error":"too many requests"}"#, "transient"),
        (500, JSON, r#"{"status":500,"error":"Internal Server Error"}"#, "transient"),
        (400, JSON, r#"{"error":{"code":400,"message":"m"}}"#, "other"),
        (200, JSON, r#"{"error":{},"access_token":"a","token_type":"bearer"}"#, "other"),
        (503, JSON, r#"{"error":true}"#, "transient"),
        // No code.
        (400, JSON, r#"{"code":400,"error_code":"refresh_token_not_found","msg":"Invalid Refresh Token"}"#, "other"),
        (403, JSON, "{}", "other"),
        (404, JSON, r#"{"message":"x"}"#, "other"),
        (408, JSON, "{}", "transient"),
        (502, JSON, "{}", "transient"),
        (302, JSON, "{}", "other"),
        // No object.
        (403, HTML, "<html>Access denied</html>", "firewall"),
        (404, HTML, "", "firewall"),
        (405, JSON, "[]", "firewall"),
        (400, HTML, "<html>", "other"),
        (401, JSON, "\"error\"", "other"),
        (200, HTML, "<html>Sign in to this network</html>", "other"),
        (204, HTML, "", "other"),
        (408, HTML, "", "transient"),
        (429, HTML, "", "transient"),
        (500, HTML, "<html>", "transient"),
        (503, HTML, "", "transient"),
        (599, HTML, "", "transient"),
    ] {
        let (found, problem) = kind(answer(response(status, media_type, body)));
        assert_eq!(found, wanted, "{status} {body}");
        assert_eq!((problem.status, problem.url.as_str()), (Some(status), URL));
    }
    let supabase = r#"{"code":400,"error_code":"x","msg":"Invalid Refresh Token: Already Used"}"#;
    let (_, problem) = kind(answer(response(400, JSON, supabase)));
    assert_eq!(problem.description.as_deref(), Some("Invalid Refresh Token: Already Used"));
    let redirect = FetchResponse { redirect: Some(RedirectRefusal::Off), ..response(307, HTML, "") };
    let (found, problem) = kind(answer(redirect));
    assert_eq!((found, problem.why.unwrap().contains("redirect")), ("other", true));
}

// covers: B-244
#[test]
fn transient_answer_has_the_time_to_wait() {
    for (status, field, wanted) in [
        (429, "17", Some(17)),
        (503, " 120 ", Some(120)),
        (503, "Wed, 21 Oct 2026 07:28:00 GMT", None),
        (500, "-1", None),
    ] {
        for body in ["", r#"{"error":"slow"}"#, "{}"] {
            let mut response = response(status, JSON, body);
            response.headers.push("Retry-After", field);
            let TokenAnswer::Transient { retry_after, .. } = answer(response) else { panic!("{status} {body}") };
            assert_eq!(retry_after, wanted.map(Duration::from_secs), "{field}");
        }
    }
}

// covers: B-244
#[test]
fn request_without_a_response_is_transient() {
    for (error, wanted) in [
        (FetchError::Timeout(Sent::Maybe), "transient"),
        (FetchError::Closed { sent: Sent::No, why: Closed::Refused }, "transient"),
        (FetchError::Closed { sent: Sent::Maybe, why: Closed::Eof }, "transient"),
        (FetchError::Refused(Refusal::Full), "transient"),
        (FetchError::TooLong, "other"),
    ] {
        let why = error.to_string();
        let (found, problem) = kind(read(URL, &Err(error), 64, &[TokenType::Bearer]));
        assert_eq!((found, problem.why, problem.status), (wanted, Some(why), None));
    }
}

#[test]
fn lifetime_is_a_number_or_digits_and_capped() {
    let days_400 = Some(34_560_000);
    for (value, wanted) in [
        ("3600", Some(3600)),
        ("1", Some(1)),
        ("3599.9", Some(3599)),
        ("3.6e3", Some(3600)),
        ("\"3600\"", Some(3600)),
        ("\" 60 \"", Some(60)),
        ("34560000", days_400),
        ("34560001", days_400),
        ("18446744073709551616", days_400),
        ("1e300", days_400),
        ("\"99999999999999999999999\"", days_400),
        ("0", None),
        ("0.5", None),
        ("-1", None),
        ("\"0\"", None),
        ("\"\"", None),
        ("\" \"", None),
        ("\"-1\"", None),
        ("\"inf\"", None),
        ("\"1e3\"", None),
        ("\"1 day\"", None),
        ("true", None),
        ("null", None),
        ("[60]", None),
    ] {
        let body = format!(r#"{{"access_token":"a","token_type":"Bearer","expires_in":{value}}}"#);
        assert_eq!(tokens(json(&body)).expires_in, wanted, "{value}");
    }
}

#[test]
fn scopes_are_a_text_or_an_array() {
    for (value, wanted) in [
        ("\"a b\"", Some("a b")),
        ("\"\"", Some("")),
        (r#"["b","a","c d"]"#, Some("a b")),
        ("[]", Some("")),
        ("[1]", None),
        ("1", None),
        ("null", None),
    ] {
        let body = format!(r#"{{"access_token":"a","token_type":"Bearer","scope":{value}}}"#);
        assert_eq!(tokens(json(&body)).scopes.map(|scopes| scopes.to_string()).as_deref(), wanted, "{value}");
    }
}

#[test]
fn token_has_the_type_bearer_in_any_case() {
    for (members, wanted) in [
        (r#","token_type":"Bearer""#, "tokens"),
        (r#","token_type":"bearer""#, "tokens"),
        (r#","token_type":"BEARER""#, "tokens"),
        (r#","token_type":"DPoP""#, "other"),
        (r#","token_type":"mac""#, "other"),
        (r#","token_type":"Bearer ""#, "other"),
        (r#","token_type":1"#, "other"),
        (r#","token_type":null"#, "other"),
        ("", "other"),
    ] {
        let (found, problem) = kind(json(&format!(r#"{{"access_token":"a"{members}}}"#)));
        assert_eq!((found, problem.why.is_some()), (wanted, wanted == "other"), "{members}");
    }
}

#[test]
fn token_can_be_sent_and_has_a_limited_length() {
    let (fits, long) = ("x".repeat(64), "x".repeat(65));
    for (access, refresh, is_used) in [
        (fits.as_str(), fits.as_str(), true),
        (&long, "r", false),
        ("a", &long, false),
        ("", "r", false),
        ("a", "", true),
        (r#"!~|:\""#, "/+=", true),
        ("a b", "r", false),
        ("a\\r\\nX: y", "r", false),
        ("\u{e9}", "r", false),
        ("a", "r\\u0000", false),
    ] {
        let body = format!(r#"{{"access_token":"{access}","refresh_token":"{refresh}","token_type":"Bearer"}}"#);
        let (found, problem) = kind(json(&body));
        assert_eq!(found == "tokens", is_used, "{body}");
        assert_eq!(problem.why.is_none(), is_used);
    }
    for token in ["1", "null", "[\"a\"]", "{}"] {
        assert_eq!(kind(json(&format!(r#"{{"access_token":{token},"token_type":"Bearer"}}"#))).0, "other", "{token}");
    }
}

#[test]
fn answer_shows_no_token_and_short_texts() {
    let found = json(r#"{"access_token":"canary-1","refresh_token":"canary-2","token_type":"Bearer"}"#);
    assert!(!format!("{found:?}").contains("canary"));
    let body = format!(r#"{{"error":"{}","error_description":"{}"}}"#, "\u{e9}".repeat(300), "\u{e9}".repeat(900));
    let (_, problem) = kind(answer(response(400, JSON, &body)));
    assert_eq!((problem.error.unwrap().len(), problem.description.unwrap().len()), (256, 1024));
}
