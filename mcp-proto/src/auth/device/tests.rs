use super::*;
use crate::auth::token::{TokenAnswer, read_as};
use crate::exchange::Headers;
use crate::fetch::FetchResponse;
use alloc::boxed::Box;
use alloc::format;

fn read(body: &str) -> Result<DeviceAuthorization, String> {
    let headers = Headers::new().with("Content-Type", "application/json");
    let (url, body) = ("https://as.example/device".to_owned(), body.to_owned().into());
    let response = FetchResponse { status: 200, headers, body, url, redirect: None };
    match read_as("https://as.example/device", &Ok(Box::new(response)), |members| super::read(members, 1000)) {
        TokenAnswer::Tokens(code) => Ok(code),
        TokenAnswer::Other(problem) => Err(problem.why.unwrap_or_default()),
        other => panic!("{other:?}"),
    }
}

fn answer(more: &str) -> String {
    format!(r#"{{"device_code":"d","user_code":"u","verification_uri":"https://as.example/go"{more}}}"#)
}

#[test]
fn code_has_a_lifetime_and_an_interval_within_limits() {
    for (more, lifetime, interval) in [
        (r#","expires_in":600"#, 600, 5),
        (r#","expires_in":"600","interval":"7""#, 600, 7),
        (r#","expires_in":100000,"interval":1"#, 1800, 5),
        (r#","expires_in":1,"interval":1000000"#, 1, 60),
        (r#","expires_in":600,"interval":0"#, 600, 5),
    ] {
        let code = read(&answer(more)).unwrap();
        let seconds = |time: Duration| time.as_secs();
        assert_eq!((seconds(code.lifetime), seconds(code.interval)), (lifetime, interval), "{more}");
        assert_eq!((code.device_code.expose(), code.user_code.expose()), ("d", "u"));
        assert_eq!((&*code.verification_uri, code.verification_uri_complete), ("https://as.example/go", None));
    }
    let more = r#","expires_in":600,"verification_uri_complete":"https://as.example/go/u""#;
    assert_eq!(read(&answer(more)).unwrap().verification_uri_complete.as_deref(), Some("https://as.example/go/u"));
}

#[test]
fn answer_without_a_code_is_an_error() {
    let long = "x".repeat(1001);
    for (body, why) in [
        ("{}".to_owned(), "there is no device code, or one that is too long"),
        (format!(r#"{{"device_code":"{long}"}}"#), "there is no device code, or one that is too long"),
        (r#"{"device_code":"d"}"#.to_owned(), "there is no code for the user, or one that is too long"),
        (
            format!(r#"{{"device_code":"d","user_code":"{long}"}}"#),
            "there is no code for the user, or one that is too long",
        ),
        (r#"{"device_code":"d","user_code":"u"}"#.to_owned(), "there is no page for the user"),
        (answer(""), "the code has no end"),
        (answer(r#","expires_in":0"#), "the code has no end"),
    ] {
        assert_eq!(read(&body), Err(why.to_owned()), "{body}");
    }
}

#[test]
fn interval_grows_up_to_a_minute() {
    let seconds = Duration::from_secs;
    assert_eq!(longer(seconds(5), seconds(5)), seconds(10));
    assert_eq!(longer(seconds(40), seconds(40)), seconds(60));
}
