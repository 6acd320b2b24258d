//! Tables of what is masked and what is not, and properties for arbitrary bytes.

mod codec;

use super::{Arguments, Redactor, Url, is_secret_field, is_secret_name, redact_message};
use crate::rpc::RawJson;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use proptest::prelude::*;

/// Redacts the bytes of a connection, and checks the general properties: the split does not matter,
/// the length stays the same, and redaction is idempotent.
#[track_caller]
fn channel(bytes: &[u8]) -> Vec<u8> {
    let whole = Redactor::new().redact(bytes);
    assert_eq!(whole.len(), bytes.len());
    for cut in 0..=bytes.len() {
        let mut redactor = Redactor::new();
        let mut cut_up = redactor.redact(&bytes[..cut]);
        cut_up.extend(redactor.redact(&bytes[cut..]));
        assert_eq!(cut_up, whole, "cut at {cut}");
    }
    let mut redactor = Redactor::new();
    let single: Vec<u8> = bytes.iter().flat_map(|byte| redactor.redact(&[*byte])).collect();
    assert_eq!(single, whole, "byte by byte");
    assert_eq!(text(&Redactor::new().redact(&whole)), text(&whole), "redacted twice");
    whole
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[track_caller]
fn check(raw: &str, redacted: &str) {
    assert_eq!(text(&channel(raw.as_bytes())), redacted);
    assert_eq!(raw.len(), redacted.len(), "the table is wrong");
}

/// Checks a line of a connection, and the same as a single message, which must stay JSON.
#[track_caller]
fn json(raw: &str, redacted: &str) {
    check(raw, redacted);
    assert_eq!(text(&redact_message(raw.as_bytes())), redacted);
    RawJson::parse(String::from(raw)).expect("the case is json");
    RawJson::parse(String::from(redacted)).expect("what is json stays json");
}

// covers: S2-44, R-16
#[test]
fn values_under_secret_keys_are_masked() {
    json(r#"{"token":"abc"}"#, r#"{"token":"xxx"}"#);
    json(r#"{"a":{"apiKey" : "a\"b","b":"c"}}"#, r#"{"a":{"apiKey" : "x\/x","b":"c"}}"#);
    json(r#"{"access_token":"é","n":1}"#, r#"{"access_token":"~~","n":1}"#);
    json(r#"{"API-KEY":"k","key":"k"}"#, r#"{"API-KEY":"x","key":"k"}"#);
    json(r#"{"\u0074oken":"abc"}"#, r#"{"\u0074oken":"xxx"}"#);
    json(r#"{"password":-12.50e7,"n":12}"#, r#"{"password":-10.00e0,"n":12}"#);
    json(
        r#"{"dbPassword2":"abc","mytokenvalue":"abc","SECRET_NAME":"abc","my.passwd.file":"abc","tokenizer":7}"#,
        r#"{"dbPassword2":"xxx","mytokenvalue":"xxx","SECRET_NAME":"xxx","my.passwd.file":"xxx","tokenizer":1}"#,
    );
    json(r#"{"secret":true,"b":null}"#, r#"{"secret":true,"b":null}"#);
    json(r#"{"secrets":["a",{"b":[1,23]}],"c":["d"]}"#, r#"{"secrets":["x",{"x":[1,10]}],"c":["d"]}"#);
    json(r#"{"credentials":{"user":"u"},"user":"u"}"#, r#"{"credentials":{"xxxx":"x"},"user":"u"}"#);
    json(r#"{"requestState":"c2VhbGVk"}"#, r#"{"requestState":"xxxxxxxx"}"#);
    json(
        r#"{"headers":{"Authorization":"Bearer a","Mcp-Session-Id":"s"}}"#,
        r#"{"headers":{"Authorization":"xxxxxxxx","Mcp-Session-Id":"x"}}"#,
    );
    // On several lines, which a connection by lines does not have.
    let (raw, shown) = ("{\"tokens\":{\n \"a\": 7\n},\"b\":8}", "{\"tokens\":{\n \"x\": 1\n},\"b\":8}");
    assert_eq!(text(&redact_message(raw.as_bytes())), shown);
}

// covers: S2-44
#[test]
fn envelope_of_a_message_is_not_masked() {
    for kept in [
        r#"{"jsonrpc":"2.0","id":"token=1","method":"tools/call","params":{"_meta":{"progressToken":"p1"},"name":"t"}}"#,
        r#"{"jsonrpc":"2.0","id":7,"result":{"nextCursor":"token=b","tools":[{"name":"get_token"}]}}"#,
        r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32602,"message":"no such tool: token"}}"#,
        r#"{"params":{"maxTokens":100,"max_tokens":100,"cursor":"abc","requestId":"r"}}"#,
        r#"{"_meta":{"progressToken":"p1","progress_token":7},"stopReason":"maxTokens","tok":"en"}"#,
        r#"["maxTokens=100&max_tokens=5","progressToken=7"]"#,
        r#"["token","abc"]"#,
        r#"{"a":"token","b":"abc"}"#,
        r#"{"uri":"https://example.com:8080/a?page=2&tokens_used#frag"}"#,
    ] {
        json(kept, kept);
    }
}

/// What an authorization server publishes (RFC 8414), registers (RFC 7591) and issues (RFC 6749).
// covers: S2-44
#[test]
fn names_of_oauth_that_are_no_secrets_are_shown() {
    for kept in [
        r#"{"issuer":"https://as","token_endpoint":"https://as/token","grant_types_supported":["refresh_token"]}"#,
        r#"{"token_endpoint_auth_methods_supported":["client_secret_basic","none"]}"#,
        r#"{"token_endpoint_auth_signing_alg_values_supported":["RS256"],"token_endpoint_auth_method":"none"}"#,
        r#"{"id_token_signing_alg_values_supported":["ES256"],"id_token_signed_response_alg":"ES256"}"#,
        r#"{"token_type":"Bearer","expires_in":3600,"token_expires_in":60,"client_secret_expires_at":1767139200}"#,
        r#"{"tokenType":"DPoP","issued_token_type":"urn:ietf:params:oauth:token-type:access_token"}"#,
        r#"["subject_token_type=urn&token_type_hint=refresh_token&requested-token-type=a"]"#,
    ] {
        json(kept, kept);
    }
    json(
        r#"{"access_token":"abc","token_type":"Bearer","refresh_token":"def","id_token":"ghi","client_secret":"jkl"}"#,
        r#"{"access_token":"xxx","token_type":"Bearer","refresh_token":"xxx","id_token":"xxx","client_secret":"xxx"}"#,
    );
    json(
        r#"{"token":"a","tokens":["b"],"token_type_secret":"c","token_endpoint_token":"d","tokentypes":"e"}"#,
        r#"{"token":"x","tokens":["x"],"token_type_secret":"x","token_endpoint_token":"x","tokentypes":"x"}"#,
    );
    check(
        "POST /token HTTP/1.1\r\nContent-Length: 45\r\n\r\nsubject_token=abc&subject_token_type=a&code=b",
        "POST /token HTTP/1.1\r\nContent-Length: 45\r\n\r\nsubject_token=xxx&subject_token_type=a&code=x",
    );
    assert!(is_secret_name("--token") && !is_secret_name("TOKEN_ENDPOINT") && !is_secret_name("--token-type"));
}

/// Members of metadata, registrations and responses are needed by a replay, and those with a secret
/// are not shown.
// covers: S2-44, B-190
#[test]
fn documents_of_a_login_are_shown_without_their_secrets() {
    for kept in [
        r#"{"dpop_bound_access_tokens":true,"dpop_signing_alg_values_supported":["ES256"]}"#,
        r#"{"dpop_bound_access_tokens_required":false,"tls_client_certificate_bound_access_tokens":true}"#,
        r#"{"requested_token_type":"urn:a","subject_token_type":"urn:b","actor_token_type":"urn:c"}"#,
        r#"{"subject_token_types_supported":["urn:a"],"code_challenge_methods_supported":["S256"]}"#,
        r#"{"authorization_response_iss_parameter_supported":true,"authorization_servers":["https://as"]}"#,
        r#"{"client_id":"c","redirect_uris":["http://127.0.0.1:4711/callback"],"response_types":["code"]}"#,
        r#"{"grant_types":["authorization_code","refresh_token"],"application_type":"native","scope":"a b"}"#,
        r#"{"error":"invalid_grant","error_description":"the code is used","error_uri":"https://as/e"}"#,
        r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32602,"message":"code"}}"#,
        r#"{"code":"E7","code_challenge":"abc","state":"s","iss":"https://as"}"#,
    ] {
        json(kept, kept);
    }
    json(
        r#"{"device_code":"abc","user_code":"WD-JB","verification_uri":"https://as/d","interval":5}"#,
        r#"{"device_code":"xxx","user_code":"xxxxx","verification_uri":"https://as/d","interval":5}"#,
    );
    json(
        r#"{"verification_uri_complete":"https://as/d?user_code=WDJB","expires_in":60}"#,
        r#"{"verification_uri_complete":"https://as/d?user_code=xxxx","expires_in":60}"#,
    );
    json(
        r#"{"registration_access_token":"abc","registration_client_uri":"https://as/c","client_secret":"a"}"#,
        r#"{"registration_access_token":"xxx","registration_client_uri":"https://as/c","client_secret":"x"}"#,
    );
    json(
        r#"{"headers":{"DPoP":"abc","Cookie":"a=b","Authorization":"DPoP abc"},"dpop":"off"}"#,
        r#"{"headers":{"DPoP":"xxx","Cookie":"x~x","Authorization":"xxxxxxxx"},"dpop":"xxx"}"#,
    );
}

// covers: S2-44, B-190
#[test]
fn forms_and_redirects_of_a_login_have_no_secrets() {
    for (raw, shown) in [
        ("code=abc&state=s&iss=https%3A%2F%2Fas", "code=xxx&state=s&iss=https%3A%2F%2Fas"),
        ("error=access_denied&error_description=a+b&state=s", "error=access_denied&error_description=a+b&state=s"),
        (
            "grant_type=authorization_code&code=4%2F0a&code_verifier=v-_",
            "grant_type=authorization_code&code=xxxxxx&code_verifier=xxx",
        ),
        (
            "grant_type=refresh_token&refresh_token=1%2F%2F0&client_id=c",
            "grant_type=refresh_token&refresh_token=xxxxxxxx&client_id=c",
        ),
        ("client_id=c&client_secret=a%26b&scope=a+b", "client_id=c&client_secret=xxxxx&scope=a+b"),
        (
            "client_assertion=e.y.J&client_assertion_type=urn%3Aa",
            "client_assertion=xxxxx&client_assertion_type=urn%3Aa",
        ),
        ("assertion=e.y.J&resource=https%3A%2F%2Fh%2Fmcp", "assertion=xxxxx&resource=https%3A%2F%2Fh%2Fmcp"),
        ("device_code=abc&user_code=abc&token=abc", "device_code=xxx&user_code=xxx&token=xxx"),
        ("token=abc&token_type_hint=refresh_token", "token=xxx&token_type_hint=refresh_token"),
        ("subject_token=abc&subject_token_type=urn%3Aa", "subject_token=xxx&subject_token_type=urn%3Aa"),
        (
            "response_type=code&code_challenge=abc&code_challenge_method=S256",
            "response_type=code&code_challenge=abc&code_challenge_method=S256",
        ),
        ("id_token=abc&access_token=abc&dpop=abc", "id_token=xxx&access_token=xxx&dpop=xxx"),
    ] {
        let form = |text: &str| {
            let length = text.len();
            format!("POST /token HTTP/1.1\r\nHost: as\r\nContent-Length: {length}\r\n\r\n{text}")
        };
        check(&form(raw), &form(shown));
        let redirect = |text: &str| format!("GET /callback?{text} HTTP/1.1\r\nHost: 127.0.0.1:4711\r\n\r\n");
        check(&redirect(raw), &redirect(shown));
        let pasted = |text: &str| format!("[\"http://127.0.0.1:4711/callback?{text}\"]");
        json(&pasted(raw), &pasted(shown));
    }
    let head = |fields: &str| format!("POST /mcp HTTP/1.1\r\nHost: h\r\n{fields}Content-Length: 0\r\n\r\n");
    check(
        &head("Authorization: DPoP a.b\r\nDPoP: e.y.J\r\nCookie: a=b\r\nProxy-Authorization: Basic a\r\n"),
        &head("Authorization: xxxxxxxx\r\nDPoP: xxxxx\r\nCookie: xxx\r\nProxy-Authorization: xxxxxxx\r\n"),
    );
}

/// A replay reads the parameters of a challenge.
// covers: S2-44
#[test]
fn parameters_of_a_challenge_are_shown() {
    let head = |value: &str| format!("HTTP/1.1 401 no\r\nWWW-Authenticate: {value}\r\nContent-Length: 0\r\n\r\n");
    for kept in [
        "Bearer resource_metadata=\"https://h/.well-known/oauth-protected-resource/mcp\", scope=\"a b\"",
        "Bearer error=\"invalid_token\", error_description=\"it has expired\", resource_metadata=\"https://h/r?a=b\"",
        "bearer REALM=\"mcp\",scope=a",
        "Basic realm=\"a\", Bearer realm=\"b\", DPoP algs=\"ES256\", error=\"use_dpop_nonce\"",
        "Bearer  scope = \"a b\"",
        "Bearer authorization_uri=\"https://as/authorize\", client_id=\"c\"",
        "Bearer",
        "Bearer error, Basic realm=a",
    ] {
        check(&head(kept), &head(kept));
    }
    for (raw, shown) in [
        ("Bearer abc.def==", "Bearer axxxxxxxx"),
        ("Bearer hunter2, realm=x", "Bearer xxxxxxx, realm=x"),
        ("Bearer realms, scope=\"a\"", "Bearer realmx, scope=\"a\""),
        ("Bearer realm, Bearer hunter2", "Bearer realm, Bearer xxxxxxx"),
        ("Bearer realm=a, error_description=\"token=abc\"", "Bearer realm=a, error_description=\"token=xxx\""),
        (
            "Bearer resource_metadata=\"https://h/r?access_token=abc\"",
            "Bearer resource_metadata=\"https://h/r?access_token=xxx\"",
        ),
    ] {
        check(&head(raw), &head(shown));
        let shows =
            format!("{:?}", super::HeaderField { name: "www-authenticate", value: raw, side: super::Side::Response });
        assert!(!shows.contains("hunter2") && !shows.contains("abc"), "{shows}");
    }
    // Other fields have no parameters of a challenge.
    check(
        "HTTP/1.1 200 OK\r\nServer: Bearer realm\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nServer: Bearer xxxxx\r\nContent-Length: 0\r\n\r\n",
    );
}

/// Otherwise the length of a request would differ in a replay.
// covers: S2-44
#[test]
fn masked_secret_is_as_long_in_a_form() {
    for (secret, masked) in
        [("1//0a-b.c_d*e", "x~~xxxxxxxxxx"), ("a+b=", "x~x~"), ("a b", "xxx"), ("~%&", "~~~"), ("é", "~~")]
    {
        json(&format!("{{\"refresh_token\":\"{secret}\"}}"), &format!("{{\"refresh_token\":\"{masked}\"}}"));
        let encoded = |text: &str| -> usize {
            let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"*-._ ".contains(byte);
            text.bytes().map(|byte| if plain(&byte) { 1 } else { 3 }).sum()
        };
        assert_eq!(encoded(secret), encoded(masked), "{secret}");
        assert_eq!(super::masked_secret(secret), masked);
    }
}

/// Some servers escape every slash, and others what HTML has a meaning for.
// covers: S2-44
#[test]
fn escape_in_a_masked_secret_stays_one_character() {
    for (raw, masked) in [
        (r"a\/b\/c", r"x\/x\/x"),
        (r"ab\u003d\u003D", r"xx\u007e\u007e"),
        (r#"a\"b\\\n"#, r"x\/x\/\/"),
        (r"a\q\u00g1", r"x\x\u00xx"),
    ] {
        check(&format!("{{\"token\":\"{raw}\",\"a\":\"b\"}}\n"), &format!("{{\"token\":\"{masked}\",\"a\":\"b\"}}\n"));
    }
}

// covers: S2-44, R-16
#[test]
fn credentials_in_urls_are_masked() {
    json(r#"{"uri":"https://h/p?a=b&token=abc&c=d"}"#, r#"{"uri":"https://h/p?a=b&token=xxx&c=d"}"#);
    json(
        r#"["https://h/?code=abc#x","/cb?sessionId=s&key=k e"]"#,
        r#"["https://h/?code=xxx#x","/cb?sessionId=x&key=x e"]"#,
    );
    json(r#"["https:\/\/h\/?a=1\u0026secret=s\u0026b=2"]"#, r#"["https:\/\/h\/?a=1\u0026secret=xxxxxxxxxx"]"#);
    json(
        r#"["h?access%5Ftoken=abc","h?%74oken=abc","?r=%3Fcode%3Dabc&d"]"#,
        r#"["h?access%5Ftoken=xxx","h?%74oken=xxx","?r=%3Fcode%3Dxxx&d"]"#,
    );
    let asked =
        r#"{"method":"elicitation/create","params":{"mode":"url","url":"https://auth.example.com:444/go/k3y?u=1"}}"#;
    let shown =
        r#"{"method":"elicitation/create","params":{"mode":"url","url":"https://auth.example.com:444/xxxxxxxxxx"}}"#;
    json(asked, shown);
    json(
        r#"{"url":"https:\/\/h\/p","url":"/go","url":"https://u@h"}"#,
        r#"{"url":"https:xxxxxxxx","url":"xxx","url":"https://uxx"}"#,
    );
}

// covers: S2-44
#[test]
fn secrets_in_texts_are_found_by_their_names() {
    // What follows the name in JSON inside a string is masked to the end of the string: it is
    // unknown how often the quotes are escaped.
    json(r#"["{\"a\":1,\"token\": \"abc\",\"b\":2}","c"]"#, r#"["{\"a\":1,\"token\":xxxxxxxxxxxxxxxxx","c"]"#);
    json(r#"["{\"token\":\"a\\\"b\",\"a\":1}"]"#, r#"["{\"token\":xxxxxxxxxxxxxxxxxxx"]"#);
    json(r#"["{\"token\":{\"a\":\"b\"}}"]"#, r#"["{\"token\":xxxxxxxxxxxxxx"]"#);
    json(r#"["{\\\"token\\\":\\\"ab\\\"}"]"#, r#"["{\\\"token\\\":xxxxxxxxxxx"]"#);
    json(r#"["a \"token\", and \"maxTokens\":7"]"#, r#"["a \"token\", and \"maxTokens\":7"]"#);
    json(r#"["use Bearer abc.def now","API_KEY=abc x"]"#, r#"["use Bearer xxxxxxx now","API_KEY=xxx x"]"#);
    json(
        r#"["?dbPassword2=abc&b=c","{\"mytokenvalue\":\"abc\"}"]"#,
        r#"["?dbPassword2=xxx&b=c","{\"mytokenvalue\":xxxxxxxx"]"#,
    );
    json(r#"["token=a\nb \ud83d\ude00"]"#, r#"["token=xxxxxxxxxxxxxxxxx"]"#);
    json(r#"["token=a b\ud83d\ude00"]"#, r#"["token=x b\ud83d\ude00"]"#);
}

// covers: S2-44, R-16
#[test]
fn credentials_in_heads_are_masked() {
    check(
        "POST /mcp?token=abc&a=b HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer abc\r\nmcp-session-id:s\r\nX-Api-Key: k\r\n\
         Mcp-Param-Region: eu\r\nMcp-Name: t\r\nContent-Length: 15\r\n\r\n{\"token\":\"abc\"}\
         GET / HTTP/1.1\r\nCookie: a=b\r\nReferer: http://h/?key=v\r\nAccept: text/html; key=v\r\n\r\n",
        "POST /mcp?token=xxx&a=b HTTP/1.1\r\nHost: h\r\nAuthorization: xxxxxxxxxx\r\nmcp-session-id:x\r\nX-Api-Key: x\r\n\
         Mcp-Param-Region: xx\r\nMcp-Name: t\r\nContent-Length: 15\r\n\r\n{\"token\":\"xxx\"}\
         GET / HTTP/1.1\r\nCookie: xxx\r\nReferer: xxxxxxxxxxxxxxx\r\nAccept: text/html; key=x\r\n\r\n",
    );
    check(
        "HTTP/1.1 200 OK\r\nSet-Cookie: a=b\r\nTransfer-Encoding: chunked\r\n\r\n\
         A\r\n{\"token\":\"\r\n5;x=y\r\nabc\"}\r\n0\r\nDate: y\r\n\r\nHTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\nHTTP/1.1 200 OK\r\n\r\n{\"pwd\":\"a\"}",
        "HTTP/1.1 200 OK\r\nSet-Cookie: xxx\r\nTransfer-Encoding: chunked\r\n\r\n\
         A\r\n{\"token\":\"\r\n5;x=y\r\nxxx\"}\r\n0\r\nDate: x\r\n\r\nHTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\nHTTP/1.1 200 OK\r\n\r\n{\"pwd\":\"x\"}",
    );
    check(
        "POST /token HTTP/1.1\r\nContent-Length: 42\r\n\r\ngrant_type=code&code=abc&client_secret=def",
        "POST /token HTTP/1.1\r\nContent-Length: 42\r\n\r\ngrant_type=code&code=xxx&client_secret=xxx",
    );
}

// covers: S2-44
#[test]
fn unfinished_message_does_not_hide_the_next() {
    check("{\"token\":{\"\n{\"a\":\"b\"}\n", "{\"token\":{\"\n{\"a\":\"b\"}\n");
    check("Listening on http://h/?token=a\n{\"token\":\"a\"}\n", "Listening on http://h/?token=x\n{\"token\":\"x\"}\n");
    check(
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\nid: 1\ndata: {\"token\":[\n\nid: 2\ndata: {\"token\":\ndata: \"a\",\"b\":\"c\"}\n\n",
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\nid: 1\ndata: {\"token\":[\n\nid: 2\ndata: {\"token\":\ndata: \"x\",\"b\":\"c\"}\n\n",
    );
    check(
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: {\"a\":\"\r\rdata: {\"token\":\"a\"}\r\n\r\ndata: {\"token\":\"a\"}",
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: {\"a\":\"\r\rdata: {\"token\":\"x\"}\r\n\r\ndata: {\"token\":\"x\"}",
    );
    check("{\"a\":\"\\u1\",\"token\":\"abc\"}", "{\"a\":\"\\u1\",\"token\":\"xxx\"}");
}

// covers: S2-44, R-16
#[test]
fn only_listed_fields_are_shown() {
    check(
        "HTTP/1.1 200 OK\r\nDate: Sunday\r\nServer: s\r\nX-Upstream: a b\r\nMcp-Session-Id: abc\r\nLocation: /p\r\nRetry-After: 7\r\n\
         WWW-Authenticate: Bearer hjk, realm=x\r\nx-a-name-that-is-longer-than-any-that-is-known: a\r\nContent-Length: 2\r\n\r\n{}",
        "HTTP/1.1 200 OK\r\nDate: Sunday\r\nServer: s\r\nX-Upstream: xxx\r\nMcp-Session-Id: xxx\r\nLocation: xx\r\nRetry-After: 7\r\n\
         WWW-Authenticate: Bearer xxx, realm=x\r\nx-a-name-that-is-longer-than-any-that-is-known: x\r\nContent-Length: 2\r\n\r\n{}",
    );
    // A field that a client does not write itself belongs to the application.
    check(
        "GET / HTTP/1.1\r\nHost: h\r\nDate: abc\r\nServer: abc\r\nOcp-Apim-Subscription-Key: abc\r\nX-Auth-Key: abc\r\nUser-Agent: a b\r\n\
         Last-Event-ID: 7\r\nMcp-Method: ping\r\nMCP-Protocol-Version: 2025-11-25\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: h\r\nDate: xxx\r\nServer: xxx\r\nOcp-Apim-Subscription-Key: xxx\r\nX-Auth-Key: xxx\r\nUser-Agent: xxx\r\n\
         Last-Event-ID: 7\r\nMcp-Method: ping\r\nMCP-Protocol-Version: 2025-11-25\r\n\r\n",
    );
    assert!(is_secret_field("X-Auth-Key") && is_secret_field("Date") && !is_secret_field("HOST"));
}

/// No application can set a field that is shown in requests.
// covers: S2-44
#[test]
fn application_fields_are_never_shown() {
    use super::{Side, names};
    use crate::client::BadHeader;
    let candidates =
        ["accept", "Host", "mcp-name", "last-event-id", "te", "keep-alive", "date", "cookie", "origin", "via"];
    for name in candidates.into_iter().chain(names::SHOWN) {
        let shown = names::shows_field(name.as_bytes(), Side::Request);
        assert!(!shown || matches!(BadHeader::check(name, "v"), Err(BadHeader::Reserved(_))), "{name}");
    }
    assert!(names::SHOWN.iter().all(|name| !is_secret_field(name)));
}

// covers: S2-44
#[test]
fn configuration_is_shown_without_secrets() {
    assert!(is_secret_name("GITHUB_TOKEN") && is_secret_name("--api-key") && !is_secret_name("tokyo"));
    let shown = |url| format!("{}", Url(url));
    assert_eq!(
        shown("https://u:p@h:1/a?b=c&token=d;key=e#access_token=f"),
        "https://…@h:1/a?b=c&token=…;key=…#access_token=…"
    );
    assert_eq!(shown("/p?code=a"), "/p?code=…");
    assert_eq!(shown("https://h/a@b"), "https://h/a@b");
    let args = [
        "run",
        "--token",
        "abc",
        "--api-key=abc",
        "-v",
        "--header",
        "Authorization: Bearer abc",
        "PASSWORD=abc",
        "https://u:abc@h/?sig=abc",
        "X-Api-Key:abc",
        "say Bearer abc",
        "--secret",
        "--verbose",
        "plain",
    ];
    let shown = format!("{:?}", Arguments(&args.map(String::from)));
    assert!(!shown.contains("abc"), "{shown}");
    for kept in ["run", "--token", "--header", "--verbose", "plain", "@h/?sig="] {
        assert!(shown.contains(kept), "{kept} in {shown}");
    }
}

/// JSON with keys, values and texts that the redactor looks for.
fn document() -> impl Strategy<Value = serde_json::Value> {
    let words =
        "(token|API_KEY|url|id|a|code=|\\?key=|Bearer |://|@|:|\"|\\\\|\\n|\\[|\\{|%3D|\\u{1F600}|é|&| |1|x){0,6}";
    let leaf = prop_oneof![
        words.prop_map(serde_json::Value::from),
        any::<i32>().prop_map(Into::into),
        any::<bool>().prop_map(Into::into)
    ];
    leaf.prop_recursive(4, 40, 5, move |inner| {
        let key = prop_oneof!["(token|a|url|id|secrets|requestState)", words];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Into::into),
            prop::collection::btree_map(key, inner, 0..5).prop_map(|map| map.into_iter().collect()),
        ]
    })
}

/// Bytes of a connection, mostly from meaningful pieces.
fn pieces() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        "(\"token\":|\"dbPassword2\":|\"maxTokens\":|\"a\":|\"|\\\\|\\{|\\}|\\[|\\]|,|:|=|\\n|\\r\\n|\\n\\n|0|12|-1.5e7|x|u0026|\\\\u00|data: )",
        "(POST /\\?key=a HTTP/1.1\\r\\n|HTTP/1.1 200 OK\\r\\n|Cookie: a\\r\\n|Date: a\\r\\n|Content-Length: 9\\r\\n|Content-Length: 2, 2\\r\\n| a\\r\\n|\\r\\n|5\\r\\nabcde\\r\\n0\\r\\n\\r\\n)",
        "(Transfer-Encoding: chunked\\r\\n|Content-Type: text/event-stream\\r\\n|token=|Bearer |http://u:p@|%26|'|\\\\\")",
        "(HTTP/1.0 204 \\r\\n|GET /bearer HTTP/1.1\\r\\n|Content-Encoding: a\\r\\n|9;\"\\r\\n|HTTP/2 |X HTTP/1.1\\n|X : a\\r\\n)",
        "\\PC{0,3}",
    ];
    let piece = prop_oneof![9 => piece.prop_map(String::into_bytes), 1 => prop::collection::vec(any::<u8>(), 0..4)];
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

proptest! {
    // covers: S2-44
    #[test]
    fn masking_keeps_lengths_at_any_split_and_is_idempotent(bytes in pieces()) {
        channel(&bytes);
    }

    // covers: S2-44
    #[test]
    fn masked_json_is_json_without_secret_values(value in document()) {
        for raw in [serde_json::to_string(&value).unwrap(), serde_json::to_string_pretty(&value).unwrap()] {
            let redacted = redact_message(raw.as_bytes());
            prop_assert_eq!(redacted.len(), raw.len());
            prop_assert_eq!(&redact_message(&redacted), &redacted);
            let read: serde_json::Value = serde_json::from_slice(&redacted).unwrap();
            prop_assert!(masked(&read, false), "{}", text(&redacted));
        }
    }
}

/// Returns whether every string below a secret key is masked.
fn masked(value: &serde_json::Value, secret: bool) -> bool {
    let secret_key = |key: &str| ["token", "secrets", "requestState"].contains(&key);
    match value {
        serde_json::Value::String(text) => !secret || text.bytes().all(|byte| matches!(byte, b'x' | b'~' | b'/')),
        serde_json::Value::Array(items) => items.iter().all(|item| masked(item, secret)),
        serde_json::Value::Object(map) => map.iter().all(|(key, item)| masked(item, secret || secret_key(key))),
        _ => true,
    }
}

// covers: S2-44
#[test]
fn debug_of_the_configuration_shows_no_secret() {
    use crate::client::ClientConfig;
    use crate::exchange::{Endpoint, Headers, Program, RequestHead, ResponseHead, Start};
    use crate::input::Authorization;
    use crate::model::lifecycle::Implementation;
    use crate::server::ServerConfig;
    let program = Program::new("npx")
        .args(["-y", "server", "--api-key", "hunter2", "--token=hunter2", "https://u:hunter2@example.com/?key=hunter2"])
        .args(["--header", "Authorization: Bearer hunter2"])
        .env("HOME_TOKEN", "hunter2");
    let mut server = ServerConfig::new(Implementation::new("s", "1"));
    server.state_keys = Some([77; 32].into());
    let fields = [
        "Ocp-Apim-Subscription-Key",
        "X-Auth-Key",
        "X-Trace",
        "Date",
        "Authorization",
        "cookie",
        "Set-Cookie",
        "Proxy-Authorization",
        "MCP-Session-Id",
        "Mcp-Param-Region",
        "X-Api-Key",
    ];
    let mut headers = Headers::new().with("Referer", "https://example.com/?code=hunter2").with("Accept", "text/html");
    fields.iter().for_each(|name| headers.push(name, "hunter2"));
    let fields_of_a_response = Headers::new()
        .with("Mcp-Session-Id", "hunter2")
        .with("Set-Cookie", "a=hunter2")
        .with("X-Upstream", "hunter2")
        .with("Location", "/?a=hunter2")
        .with("WWW-Authenticate", "Bearer hunter2, realm=x")
        .with("date", "Sunday")
        .with("Retry-After", "7");
    let head = RequestHead { method: "GET".into(), target: "/mcp?sessionId=hunter2".into(), headers };
    let shown = [
        format!("{program:?}"),
        format!("{:?}", ClientConfig::program(program.clone())),
        format!("{:?}", Start::Duplex(Endpoint::Program(program))),
        format!("{server:?}"),
        format!("{head:#?}"),
        format!("{:?}", ResponseHead { status: 200, headers: fields_of_a_response }),
        format!("{:?}", Authorization::Headers(head.headers.clone())),
        format!(
            "{:?}",
            ClientConfig::url("https://example.com/mcp?api_key=hunter2")
                .map(|config| config.header("X-Auth-Key", "hunter2").unwrap())
                .unwrap()
        ),
    ];
    for text in &shown {
        assert!(!text.contains("hunter2") && !text.contains("77, 77"), "{text}");
    }
    for (text, kept) in
        [(0, "npx"), (0, "HOME_TOKEN"), (0, "--api-key"), (0, "@example.com"), (4, "text/html"), (4, "/mcp?sessionId=")]
            .into_iter()
            .chain([(5, "Sunday"), (5, "\"7\""), (5, "realm=x"), (5, "X-Upstream"), (6, "X-Auth-Key")])
    {
        assert!(shown[text].contains(kept), "{kept} in {}", shown[text]);
    }
}
