//! Logins with a code that the user enters at another device (RFC 8628).

use super::rig::{ISSUER, SERVER, World, config, given, with};
use crate::auth::flow::FlowState;
use crate::auth::step::{AuthReport, Input, PageResult};
use crate::auth::{AuthConfig, Grant};
use crate::error::{AuthError, UrlFault};
use crate::exchange::{Closed, Sent};
use crate::fetch::FetchError;
use alloc::string::{String, ToString};
use alloc::vec;
use core::time::Duration;

const SECOND: Duration = Duration::from_secs(1);
pub(super) const OFFERED: &str = r#","device_authorization_endpoint":"https://as.example/device""#;
const PENDING: &str = r#"{"error":"authorization_pending"}"#;

pub(super) fn device() -> AuthConfig {
    with(config(), |config| config.grant = Grant::Device)
}

/// A world whose issuer offers codes, and whose user has not entered one so far as often as this.
fn world(pending: usize) -> World {
    let mut world = World::with(device(), 1);
    world.issuer.more = OFFERED;
    (0..pending).for_each(|_| world.issuer.fault("/token", 400, PENDING));
    world
}

fn field<'a>(form: &'a [(String, String)], name: &str) -> Option<&'a str> {
    form.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
}

#[test]
fn code_that_the_user_enters_leads_to_a_token() {
    let mut world = world(40);
    world.issuer.scopes_supported = Some("a");
    world.log_in();
    let shown = &world.codes[0].1;
    assert_eq!((shown.user_code.expose(), &*shown.verification_uri), ("ABCD-EFGH", "https://as.example/go"));
    let link = shown.verification_uri_complete.as_ref().map(|link| link.expose());
    assert_eq!(link, Some("https://as.example/go?user_code=ABCD-EFGH"));
    assert_eq!((&*shown.issuer, shown.scopes.to_string(), shown.until), (ISSUER, "a".into(), world.now + SECOND * 600));
    let asked = &world.issuer.others[0];
    assert_eq!((field(asked, "client_id"), field(asked, "scope")), (Some("client-1"), Some("a")));
    assert_eq!(field(asked, "resource"), Some(SERVER));
    assert_eq!((world.flows[0].state(), world.issuer.count("/token")), (FlowState::Authorizing, 0));
    world.pass(SECOND * 4);
    assert_eq!(world.issuer.count("/token"), 0);
    world.pass(SECOND);
    assert_eq!((world.issuer.count("/token"), world.ends.len()), (1, 0));
    // More requests than other runs may make.
    world.pass(SECOND * 5 * 40);
    let form = &world.issuer.requests[0];
    assert_eq!(field(form, "grant_type"), Some("urn:ietf:params:oauth:grant-type:device_code"));
    assert_eq!((field(form, "device_code"), field(form, "client_id")), (Some("device-1"), Some("client-1")));
    assert_eq!(field(form, "resource"), Some(SERVER));
    assert_eq!(world.token().as_deref(), Some("access-1"));
    assert!(world.pages.is_empty() && world.is_at_rest());
    assert_eq!(world.shown, [PageResult::Accepted]);
    // And is renewed as any other.
    world.pass(SECOND * 3600);
    assert_eq!(world.token().as_deref(), Some("access-2"));
    assert_eq!(field(&world.issuer.requests[1], "grant_type"), Some("refresh_token"));
}

#[test]
fn client_registers_for_codes_and_not_for_pages() {
    let mut world = world(0);
    world.log_in();
    world.pass(SECOND * 5);
    let body = &world.issuer.registrations[0];
    for part in [
        r#""redirect_uris":[]"#,
        r#""grant_types":["urn:ietf:params:oauth:grant-type:device_code","refresh_token"]"#,
        r#""response_types":[]"#,
        r#""application_type":"native""#,
    ] {
        assert!(body.contains(part), "{body}");
    }
    // It is used again, but not for a page.
    let now = world.now;
    world.flows[0].login(now);
    world.run();
    world.pass(SECOND * 5);
    assert_eq!((world.issuer.registrations.len(), world.codes.len()), (1, 2));
    world.restart(config());
    let now = world.now;
    world.flows[0].login(now);
    world.run();
    assert_eq!((world.issuer.registrations.len(), world.pages.len()), (2, 1));
}

#[test]
fn issuer_without_codes_says_so_before_a_registration() {
    let mut world = world(0);
    world.issuer.more = "";
    world.log_in();
    assert_eq!(world.ends, [Err(AuthError::NoDeviceGrant { issuer: ISSUER.into() })]);
    assert!(world.issuer.registrations.is_empty() && world.is_at_rest());
}

#[test]
fn issuer_slows_the_client_down() {
    let mut world = world(0);
    world.issuer.fault("/token", 400, r#"{"error":"slow_down"}"#);
    world.issuer.fault("/token", 429, r#"{"error":"slow_down"}"#);
    world.issuer.fault("/token", 503, "");
    let closed = Err(FetchError::Closed { sent: Sent::No, why: Closed::Reset });
    world.issuer.faults.entry("/token".into()).or_default().push_back(closed);
    world.log_in();
    // 5 s, then 10, 15, 30 and 60.
    for (wait, asked) in [(5, 1), (9, 1), (1, 2), (14, 2), (1, 3), (29, 3), (1, 4), (59, 4), (1, 5)] {
        world.pass(SECOND * wait);
        assert_eq!(world.issuer.count("/token"), asked);
    }
    assert_eq!(world.token().as_deref(), Some("access-1"));
}

#[test]
fn code_that_expires_ends_the_login() {
    let mut world = world(1000);
    world.log_in();
    world.pass(SECOND * 599);
    assert_eq!(world.ends, []);
    world.pass(SECOND);
    assert_eq!(world.ends, [Err(AuthError::PageTimeout)]);
    assert!(world.is_at_rest());
    let mut world = self::world(0);
    world.issuer.fault("/token", 400, r#"{"error":"expired_token"}"#);
    world.log_in();
    world.pass(SECOND * 5);
    assert_eq!(world.ends, [Err(AuthError::PageTimeout)]);
}

#[test]
fn user_who_declines_ends_the_login() {
    // At the page.
    let mut world = world(0);
    world.issuer.fault("/token", 400, r#"{"error":"access_denied"}"#);
    world.log_in();
    world.pass(SECOND * 5);
    assert!(matches!(&world.ends[..], [Err(AuthError::Authorization(_))]), "{:?}", world.ends);
    assert!(world.is_at_rest());
    // At the program.
    let mut world = self::world(0);
    world.log_in();
    let (step, now) = (world.codes[0].0, world.now);
    assert!(world.flows[0].handle(now, Input::Declined(step)));
    world.run();
    assert_eq!(world.ends, [Err(AuthError::Declined)]);
    assert_eq!((world.issuer.count("/token"), world.is_at_rest()), (0, true));
    assert!(!world.flows[0].handle(now, Input::Declined(step)));
}

#[test]
fn page_for_a_code_is_checked_as_any_other() {
    let answer = |page: &str, link: &str| {
        alloc::format!(
            r#"{{"device_code":"d","user_code":"u","verification_uri":"{page}",
                "verification_uri_complete":"{link}","expires_in":9}}"#
        )
    };
    let mut world = world(0);
    world.issuer.fault("/device", 200, &answer("javascript:alert(1)", "https://as.example/u"));
    world.log_in();
    let bad = AuthError::BadUrl {
        purpose: "verification_uri".into(),
        url: "javascript:alert(1)".into(),
        fault: UrlFault::Form,
    };
    assert_eq!((&world.ends[..], world.codes.len()), (&[Err(bad)][..], 0));
    let mut world = self::world(0);
    world.issuer.fault("/device", 200, &answer("https://as.example/go", "http://evil.example/"));
    world.log_in();
    assert_eq!(world.codes[0].1.verification_uri_complete, None);
    assert!(world.reports.iter().any(|report| matches!(report, AuthReport::Deviation(_))));
}

#[test]
fn request_for_a_code_that_is_refused_ends_the_login() {
    for (status, body) in [(400, r#"{"error":"invalid_scope"}"#), (200, r#"{"device_code":"d"}"#), (404, "no")] {
        let mut world = world(0);
        world.issuer.fault("/device", status, body);
        world.log_in();
        assert!(matches!(&world.ends[..], [Err(AuthError::Authorization(_))]), "{body}: {:?}", world.ends);
        assert!(world.is_at_rest());
    }
    let mut world = world(0);
    world.issuer.fault("/device", 503, "");
    world.log_in();
    assert!(matches!(&world.ends[..], [Err(AuthError::Unavailable(_))]), "{:?}", world.ends);
}

#[test]
fn given_client_asks_for_a_code_with_its_secret() {
    let mut world = World::with(with(device(), |config| config.registrations = vec![given(ISSUER, Some("s"))]), 1);
    (world.issuer.more, world.issuer.auth_methods) = (OFFERED, "client_secret_post");
    world.log_in();
    world.pass(SECOND * 5);
    assert_eq!(field(&world.issuer.others[0], "client_secret"), Some("s"));
    assert_eq!(field(&world.issuer.requests[0], "client_secret"), Some("s"));
    assert_eq!(world.token().as_deref(), Some("access-1"));
}

#[test]
fn client_that_ends_asks_no_more() {
    let mut world = world(1000);
    world.log_in();
    world.pass(SECOND * 7);
    let now = world.now;
    world.flows[0].close(now);
    world.run();
    assert_eq!((world.issuer.count("/token"), world.is_at_rest()), (1, true));
    assert_eq!(world.shown, [PageResult::Ended]);
}
