//! Logins: the page, its answer, registrations, scopes, and logouts.

use super::rig::{EPOCH, ISSUER, SERVER, User, World, config, given, localhost, query};
use crate::auth::flow::{Attach, FlowState, Reaction, Tried};
use crate::auth::step::{AuthReport, Generation, Input, PageResult, StepId};
use crate::auth::{AuthConfig, ClientSource, Redirect, Registration, Scopes};
use crate::error::{AuthError, UrlFault};
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::time::Duration;

const CHALLENGE: &str = "Bearer";
const SECOND: Duration = Duration::from_secs(1);

// covers: AUTHD-C-005, AUTHL-C-001, AUTHR-C-001, AUTHR-C-002, AUTHS-C-010, S0-45
#[test]
fn challenge_leads_to_a_page_and_a_token() {
    let mut world = World::new();
    world.issuer.scopes_supported = Some("b a");
    world.log_in();
    assert_eq!(world.ends, [Ok(Generation(1))]);
    assert_eq!(world.token().as_deref(), Some("access-1"));
    assert_eq!(world.flows[0].state(), FlowState::Holding);
    assert!(world.is_at_rest());
    let page = &world.pages[0];
    let get = |name: &str| query(&page.url, name);
    assert_eq!(get("response_type").as_deref(), Some("code"));
    assert_eq!(get("client_id").as_deref(), Some("client-1"));
    assert_eq!(get("scope").as_deref(), Some("a b"));
    assert_eq!(get("resource").as_deref(), Some(SERVER));
    assert_eq!(get("code_challenge_method").as_deref(), Some("S256"));
    assert_eq!(get("redirect_uri").as_deref(), Some("http://127.0.0.1:4000/callback"));
    assert_eq!((&*page.issuer, &*page.redirect_uri), (ISSUER, "http://127.0.0.1:4000/callback"));
    let request = &world.issuer.requests[0];
    let sent = |name: &str| request.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str());
    assert_eq!((sent("code"), sent("resource"), sent("client_id")), (Some("code-1"), Some(SERVER), Some("client-1")));
    assert_eq!(sent("redirect_uri"), Some("http://127.0.0.1:4000/callback"));
    assert!(sent("code_verifier").is_some_and(|verifier| verifier.len() == 43));
    assert_eq!(world.shown, [PageResult::Accepted, PageResult::Accepted]);
    let entry = &world.store.record.as_ref().unwrap().entries[0];
    assert_eq!((&*entry.issuer, &*entry.resource, entry.client.source), (ISSUER, SERVER, ClientSource::Dynamic));
    assert_eq!(entry.requested, Scopes::parse("a b"));
    assert_eq!(entry.tokens.as_ref().unwrap().expires, Some(EPOCH + 3600));
}

// covers: B-242, AUTHF-C-001
#[test]
fn requests_wait_for_one_login() {
    let mut world = World::new();
    assert_eq!(world.token(), None);
    world.user = User::Absent;
    for _ in 0..5 {
        let mut tried = Tried::default();
        assert_eq!(world.refuse(0, 401, CHALLENGE, &mut tried), Reaction::Wait);
    }
    world.run();
    assert_eq!((world.pages.len(), world.flows[0].state()), (1, FlowState::Authorizing));
}

// covers: B-241
#[test]
fn new_token_that_is_refused_is_final_and_opens_no_further_page() {
    let mut world = World::new();
    let mut tried = world.log_in();
    assert_eq!(world.refuse(0, 401, CHALLENGE, &mut tried), Reaction::Final(AuthError::Rejected));
    let mut other = Tried::default();
    world.refuse(0, 401, CHALLENGE, &mut other);
    world.run();
    let quiet = Reaction::Final(AuthError::Quiet(AuthError::Rejected.into()));
    assert_eq!(world.refuse(0, 401, CHALLENGE, &mut other), quiet);
    assert_eq!(world.pages.len(), 1);
}

// covers: B-250
#[test]
fn declined_login_is_not_asked_for_again_at_once() {
    let mut world = World::new();
    world.user = User::Declines;
    world.log_in();
    assert_eq!(world.ends, [Err(AuthError::Declined)]);
    assert!(world.is_at_rest());
    let quiet = Reaction::Final(AuthError::Quiet(AuthError::Declined.into()));
    assert_eq!(world.refuse(0, 401, CHALLENGE, &mut Tried::default()), quiet);
    world.pass(Duration::from_secs(29));
    assert_eq!(world.refuse(0, 401, CHALLENGE, &mut Tried::default()), quiet);
    world.pass(SECOND);
    assert_eq!(world.refuse(0, 401, CHALLENGE, &mut Tried::default()), Reaction::Wait);
    world.run();
    assert_eq!(world.pages.len(), 2);
    // The time doubles.
    world.pass(Duration::from_secs(59));
    assert_eq!(world.refuse(0, 401, CHALLENGE, &mut Tried::default()), quiet);
    // The application may ask at any time.
    world.user = User::Accepts;
    let now = world.now;
    world.flows[0].login(now);
    world.run();
    assert_eq!(world.token().as_deref(), Some("access-1"));
}

#[test]
fn page_without_an_answer_ends_after_five_minutes() {
    let mut world = World::new();
    world.user = User::Absent;
    world.log_in();
    world.pass(Duration::from_secs(299));
    assert_eq!(world.ends, []);
    world.pass(SECOND);
    assert_eq!(world.ends, [Err(AuthError::PageTimeout)]);
    assert!(world.is_at_rest());
}

// covers: B-253, B-254
#[test]
fn wrong_redirects_are_ignored_and_the_login_goes_on() {
    let mut world = World::new();
    world.user = User::Absent;
    world.log_in();
    let (listener, now) = (world.listeners[0].1, world.now);
    for _ in 0..20 {
        let wrong = "http://127.0.0.1:4000/callback?code=evil&state=other".to_string();
        assert!(world.flows[0].handle(now, Input::Redirected(listener, wrong.into())));
        world.run();
    }
    assert_eq!((world.ignored, world.reports.len()), (20, 16));
    assert!(matches!(world.reports[0], AuthReport::WrongRedirect(_)));
    let page = world.pages[0].clone();
    let right = world.issuer.page(&page);
    assert!(world.flows[0].handle(now, Input::Redirected(listener, right.clone().into())));
    world.run();
    assert_eq!(world.ends, [Ok(Generation(1))]);
    // Nothing waits for it any more.
    assert!(!world.flows[0].handle(now, Input::Redirected(listener, right.into())));
    assert_eq!(world.issuer.requests.len(), 1);
}

// covers: AUTHF-C-010, AUTHF-C-015, B-253
#[test]
fn redirect_of_another_issuer_ends_the_login() {
    let mut world = World::new();
    world.user = User::Absent;
    world.log_in();
    let (step, now) = (world.open[0].1, world.now);
    let state = query(&world.pages[0].url, "state").unwrap();
    let url = alloc::format!("http://127.0.0.1:4000/callback?code=x&state={state}&iss=https%3A%2F%2Fevil.example");
    world.flows[0].handle(now, Input::Redirected(step, url.into()));
    world.run();
    let found = Some("https://evil.example".to_string());
    assert_eq!(world.ends, [Err(AuthError::WrongIssuer { wanted: ISSUER.into(), found })]);
    assert!(world.issuer.requests.is_empty() && world.is_at_rest());
}

#[test]
fn refused_consent_says_why() {
    let mut world = World::new();
    world.user = User::Absent;
    world.log_in();
    let (step, now) = (world.open[0].1, world.now);
    let state = query(&world.pages[0].url, "state").unwrap();
    let url = alloc::format!(
        "http://127.0.0.1:4000/callback?error=access_denied&error_description=no&state={state}&iss=https%3A%2F%2Fas.example"
    );
    world.flows[0].handle(now, Input::Redirected(step, url.into()));
    world.run();
    let [Err(AuthError::Authorization(problem))] = &world.ends[..] else { panic!("{:?}", world.ends) };
    assert_eq!((problem.error.as_deref(), problem.description.as_deref()), (Some("access_denied"), Some("no")));
}

// One that refused scopes was used again and again, also by later processes.
#[test]
fn registered_client_that_is_refused_is_not_used_again() {
    for error in ["invalid_scope", "unauthorized_client"] {
        let mut world = World::new();
        world.user = User::Absent;
        world.log_in();
        let (step, now) = (world.open[0].1, world.now);
        let state = query(&world.pages[0].url, "state").unwrap();
        let url =
            alloc::format!("http://127.0.0.1:4000/callback?error={error}&state={state}&iss=https%3A%2F%2Fas.example");
        world.flows[0].handle(now, Input::Redirected(step, url.into()));
        world.run();
        assert!(matches!(&world.ends[..], [Err(AuthError::Authorization(_))]), "{:?}", world.ends);
        assert!(world.store.record.is_none() && world.is_at_rest());
        world.user = User::Accepts;
        world.restart(config());
        world.log_in();
        assert_eq!((world.issuer.registrations.len(), world.token()), (2, Some("access-1".into())), "{error}");
    }
    let mut world = World::new();
    world.issuer.fault("/token", 401, "{\"error\":\"invalid_client\"}");
    world.log_in();
    assert!(matches!(&world.ends[..], [Err(AuthError::Token(_))]), "{:?}", world.ends);
    assert!(world.store.record.is_none() && world.is_at_rest());
    world.restart(config());
    world.log_in();
    assert_eq!((world.issuer.registrations.len(), world.token()), (2, Some("access-1".into())));
    // A page that refuses more scopes costs no tokens.
    world.user = User::Absent;
    let now = world.now;
    world.flows[0].login(now);
    world.run();
    let (step, state) = (world.open[0].1, query(&world.pages[2].url, "state").unwrap());
    let url =
        alloc::format!("http://127.0.0.1:4000/callback?error=invalid_scope&state={state}&iss=https%3A%2F%2Fas.example");
    world.flows[0].handle(now, Input::Redirected(step, url.into()));
    world.run();
    assert_eq!((world.issuer.registrations.len(), world.token()), (2, Some("access-1".into())));
}

// covers: AUTHS-C-002, AUTHS-C-003, AUTHS-C-004, AUTHS-C-015
#[test]
fn scopes_follow_the_challenge_then_the_resource() {
    let requested =
        |supported: Option<&'static str>, challenge: &str, config: AuthConfig, issuer: Option<&'static str>| {
            let mut world = World::with(config, 1);
            (world.issuer.scopes_supported, world.issuer.issuer_scopes) = (supported, issuer);
            assert_eq!(world.token(), None);
            world.refuse(0, 401, challenge, &mut Tried::default());
            world.run();
            query(&world.pages[0].url, "scope")
        };
    let named = "Bearer scope=\"x y\"";
    let also = || {
        let mut config = config();
        config.scopes = Scopes::parse("mine");
        config
    };
    let text = |text: &str| Some(text.to_string());
    assert_eq!(requested(Some("a b"), named, config(), None), text("x y"));
    assert_eq!(requested(Some("a b"), CHALLENGE, config(), None), text("a b"));
    assert_eq!(requested(None, CHALLENGE, config(), None), None);
    assert_eq!(requested(None, named, also(), None), text("mine x y"));
    // A refresh token where the issuer has a scope for it.
    assert_eq!(requested(Some("a"), CHALLENGE, config(), Some("a offline_access")), text("a offline_access"));
    assert_eq!(requested(Some("a offline"), CHALLENGE, config(), Some("a")), text("a offline"));
}

#[test]
fn later_login_requests_what_was_requested_before() {
    let mut world = World::new();
    world.issuer.scopes_supported = Some("a b");
    assert_eq!(world.token(), None);
    world.refuse(0, 401, "Bearer scope=\"a\"", &mut Tried::default());
    world.run();
    let now = world.now;
    world.flows[0].login(now);
    world.run();
    assert_eq!(query(&world.pages[1].url, "scope").as_deref(), Some("a"));
}

// covers: AUTHS-C-005, AUTHS-C-012, B-249
#[test]
fn step_up_requests_all_scopes_without_a_refresh() {
    let mut world = World::new();
    world.issuer.scopes_supported = Some("read write");
    assert_eq!(world.token(), None);
    world.refuse(0, 401, "Bearer scope=\"read\"", &mut Tried::default());
    world.run();
    assert_eq!(query(&world.pages[0].url, "scope").as_deref(), Some("read"));
    let more = "Bearer error=\"insufficient_scope\", scope=\"write\"";
    let mut tried = Tried::default();
    assert_eq!(world.refuse(0, 403, more, &mut tried), Reaction::Wait);
    world.run();
    assert_eq!(query(&world.pages[1].url, "scope").as_deref(), Some("read write"));
    assert_eq!((world.issuer.requests.len(), world.token().as_deref()), (2, Some("access-2")));
    // The client is the one that registered before.
    assert_eq!((world.issuer.registrations.len(), world.pages.len()), (1, 2));
    // The server refuses again: nothing more can be done, for this request and for others.
    let scope = || Reaction::Final(AuthError::Scope { scopes: "write".into() });
    assert_eq!(world.refuse(0, 403, more, &mut tried), scope());
    assert_eq!(world.refuse(0, 403, more, &mut Tried::default()), scope());
    assert_eq!(world.pages.len(), 2);
}

// covers: AUTHR-C-002, AUTHR-C-023
#[test]
fn given_client_is_used_at_its_issuer_only() {
    let mut all = config();
    all.registrations = alloc::vec![given(ISSUER, Some("s3cret")), Registration::Dynamic];
    let mut world = World::with(all, 1);
    world.log_in();
    assert_eq!(query(&world.pages[0].url, "client_id").as_deref(), Some("given"));
    assert!(world.issuer.registrations.is_empty());
    let mut one = config();
    one.registrations = alloc::vec![given("https://other.example", None)];
    let mut world = World::with(one, 1);
    world.log_in();
    let given = alloc::vec!["https://other.example".to_string()];
    assert_eq!(world.ends, [Err(AuthError::OtherIssuer { given, issuer: ISSUER.into() })]);
    assert!(world.pages.is_empty() && world.is_at_rest());
}

#[test]
fn registration_that_refuses_scopes_is_tried_without_them() {
    let mut world = World::new();
    world.issuer.scopes_supported = Some("a");
    world.issuer.fault("/register", 400, "{\"error\":\"invalid_client_metadata\"}");
    world.log_in();
    assert_eq!(world.ends, [Ok(Generation(1))]);
    assert_eq!((world.issuer.registrations.len(), world.issuer.count("/register")), (1, 2));
    assert!(!world.issuer.registrations[0].contains("\"scope\""));
}

// covers: AUTHR-C-017
#[test]
fn refused_loopback_address_is_replaced_by_localhost() {
    let mut world = World::new();
    world.issuer.fault("/register", 400, "{\"error\":\"invalid_redirect_uri\"}");
    world.log_in();
    assert_eq!(world.ends, [Ok(Generation(1))]);
    assert_eq!(world.pages[0].redirect_uri, "http://localhost:4000/callback");
    assert!(world.is_at_rest());
    // The next login begins with it.
    let now = world.now;
    world.flows[0].login(now);
    world.run();
    assert_eq!(
        (world.pages[1].redirect_uri.as_str(), world.issuer.registrations.len()),
        ("http://localhost:4000/callback", 1)
    );
    assert_eq!(localhost().as_str(), "localhost");
}

#[test]
fn client_registers_again_for_further_scopes() {
    let mut world = World::new();
    world.issuer.scopes_supported = Some("read");
    world.log_in();
    world.refuse(0, 403, "Bearer error=\"insufficient_scope\", scope=\"write\"", &mut Tried::default());
    world.run();
    assert!(world.issuer.registrations[1].contains("\"scope\":\"read write\""), "{:?}", world.issuer.registrations);
    assert_eq!(query(&world.pages[1].url, "client_id").as_deref(), Some("client-2"));
}

#[test]
fn login_that_is_declined_leaves_the_tokens_before_it() {
    let mut world = World::new();
    world.issuer.scopes_supported = Some("read");
    world.log_in();
    let stored = world.store.record.clone();
    world.user = User::Declines;
    world.refuse(0, 403, "Bearer error=\"insufficient_scope\", scope=\"write\"", &mut Tried::default());
    world.run();
    assert_eq!((world.ends.last(), world.issuer.registrations.len()), (Some(&Err(AuthError::Declined)), 2));
    assert_eq!(world.store.record, stored);
    world.pass(Duration::from_secs(3700));
    assert_eq!(world.token().as_deref(), Some("access-2"));
}

#[test]
fn failed_registration_is_an_error_with_its_reason() {
    let mut world = World::new();
    for _ in 0..3 {
        world.issuer.fault("/register", 400, "{\"error\":\"unapproved_software_statement\"}");
    }
    world.log_in();
    let [Err(AuthError::Registration(problem))] = &world.ends[..] else { panic!("{:?}", world.ends) };
    assert_eq!(problem.error.as_deref(), Some("unapproved_software_statement"));
    assert!(world.is_at_rest());
}

// covers: AUTHR-C-001
#[test]
fn issuer_without_registration_needs_a_client() {
    let mut world = World::new();
    world.issuer.registers = false;
    world.log_in();
    assert_eq!(world.ends, [Err(AuthError::NoRegistration { issuer: ISSUER.into() })]);
}

// covers: RSRC-C-012, B-236
#[test]
fn metadata_of_another_resource_is_refused() {
    let mut world = World::new();
    world.issuer.resource = "https://other.example/mcp".into();
    world.log_in();
    assert!(matches!(&world.ends[..], [Err(AuthError::ResourceMismatch { .. })]), "{:?}", world.ends);
    assert!(world.pages.is_empty() && world.issuer.count("/register") == 0);
}

#[test]
fn login_without_a_listener_takes_a_url_from_the_user() {
    let mut world = World::new();
    world.listens = false;
    world.log_in();
    assert_eq!(world.ends, [Ok(Generation(1))]);
    assert!(world.reports.iter().any(|report| matches!(report, AuthReport::NoListener(_))));
    assert_eq!(world.pages[0].redirect_uri, "http://127.0.0.1:53682/callback");
    assert!(world.is_at_rest());
}

// covers: AUTHG-C-012
#[test]
fn fixed_redirect_is_of_this_machine_or_has_tls() {
    for (uri, fault) in [
        ("https://app.example/back", None),
        ("http://localhost:9/back", None),
        ("http://[::1]:9/back", None),
        ("http://app.example/back", Some(UrlFault::Plain)),
        ("app.example:/back", Some(UrlFault::Form)),
        ("javascript:alert(1)", Some(UrlFault::Form)),
    ] {
        let mut fixed = config();
        fixed.redirect = Redirect::Fixed(uri.into());
        let mut world = World::with(fixed, 1);
        world.log_in();
        let bad = |fault| AuthError::BadUrl { purpose: "redirect_uri".into(), url: uri.into(), fault };
        assert_eq!(world.ends, [fault.map_or(Ok(Generation(1)), |fault| Err(bad(fault)))], "{uri}");
    }
}

#[test]
fn fixed_redirect_needs_no_listener() {
    let mut fixed = config();
    fixed.redirect = Redirect::Fixed("https://app.example/back".into());
    let mut world = World::with(fixed, 1);
    world.log_in();
    assert_eq!((world.pages[0].redirect_uri.as_str(), world.ends.len()), ("https://app.example/back", 1));
    assert_eq!(world.token().as_deref(), Some("access-1"));
}

// covers: B-248
#[test]
fn client_that_is_not_interactive_opens_no_page_by_itself() {
    let mut quiet = config();
    quiet.interactive = false;
    let mut world = World::with(quiet, 1);
    assert_eq!(world.token(), None);
    let reaction = world.refuse(0, 401, CHALLENGE, &mut Tried::default());
    assert_eq!(reaction, Reaction::Final(AuthError::LoginRequired));
    // A command of the application is no request.
    let now = world.now;
    world.flows[0].login(now);
    world.run();
    assert_eq!((world.pages.len(), world.token().as_deref()), (1, Some("access-1")));
}

#[test]
fn token_request_that_is_refused_says_why() {
    let mut world = World::new();
    world.issuer.fault("/token", 400, "{\"error\":\"invalid_request\",\"error_description\":\"what\"}");
    world.log_in();
    let [Err(AuthError::Token(problem))] = &world.ends[..] else { panic!("{:?}", world.ends) };
    assert_eq!((problem.status, problem.error.as_deref()), (Some(400), Some("invalid_request")));
    assert!(world.is_at_rest());
    // The registration was kept.
    assert_eq!(world.store.record.as_ref().unwrap().entries[0].client.client_id, "client-1");
}

#[test]
fn logout_revokes_the_tokens_and_removes_the_record() {
    let mut world = World::new();
    world.log_in();
    let now = world.now;
    world.flows[0].logout(now);
    world.run();
    assert!(world.reports.contains(&AuthReport::LoggedOut { revoked: Some(true) }));
    assert_eq!((world.store.record.as_ref(), world.issuer.revocations.len()), (None, 2));
    assert!(world.issuer.revocations[0].contains("token=refresh-1"));
    assert_eq!((world.token(), world.flows[0].state()), (None, FlowState::Empty));
    assert!(world.is_at_rest());
}

#[test]
fn logout_goes_on_if_the_issuer_does_not_answer() {
    for (revokes, revoked) in [(false, None), (true, Some(false))] {
        let mut world = World::new();
        world.issuer.revokes = revokes;
        world.issuer.fault("/revoke", 400, "{\"error\":\"invalid_request\"}");
        world.log_in();
        let now = world.now;
        world.flows[0].logout(now);
        world.run();
        assert!(world.reports.contains(&AuthReport::LoggedOut { revoked }), "{:?}", world.reports);
        assert_eq!(world.store.record, None);
    }
}

#[test]
fn logout_without_a_login_removes_nothing_else() {
    let mut world = World::new();
    let now = world.now;
    world.flows[0].logout(now);
    world.run();
    assert_eq!(world.reports, [AuthReport::LoggedOut { revoked: None }]);
    assert!(world.issuer.urls.is_empty() && world.is_at_rest());
}

#[test]
fn logout_while_the_record_is_loaded_waits_for_it() {
    let mut world = World::new();
    world.log_in();
    world.restart(config());
    let now = world.now;
    world.flows[0].attach(now);
    world.flows[0].logout(now);
    world.ends.clear();
    world.run();
    assert_eq!(world.ends, [Ok(Generation(2))]);
    assert_eq!(world.token(), None);
    assert_eq!((world.store.record.as_ref(), world.issuer.revocations.len()), (None, 2));
}

#[test]
fn close_releases_everything() {
    let mut world = World::new();
    world.user = User::Absent;
    world.log_in();
    let now = world.now;
    world.flows[0].close(now);
    world.run();
    assert_eq!(world.ends, [Err(AuthError::Ended)]);
    assert!(world.is_at_rest());
}

// covers: B-246
#[test]
fn login_goes_on_without_a_store() {
    let mut world = World::new();
    world.store.fails = true;
    world.log_in();
    assert_eq!(world.token().as_deref(), Some("access-1"));
    let reported = |wanted: fn(&AuthReport) -> bool| world.reports.iter().any(wanted);
    assert!(reported(|report| matches!(report, AuthReport::NoStore(_))));
    assert!(reported(|report| matches!(report, AuthReport::NotSaved(_))));
    assert!(world.is_at_rest());
}

#[test]
fn answer_to_a_step_that_is_not_open_changes_nothing() {
    let mut world = World::new();
    world.user = User::Absent;
    world.log_in();
    let (state, now) = (world.flows[0].state(), world.now);
    for step in 0..40 {
        let step = StepId(step);
        let is_open = world.open.iter().chain(&world.listeners).any(|(_, open)| *open == step);
        let inputs = [
            Input::Leased(step, Ok(crate::auth::step::Lease::Held)),
            Input::Loaded(step, Ok(crate::auth::step::Stored::default())),
            Input::Saved(step, Ok(crate::auth::Version(9))),
            Input::Listening(step, Ok("http://127.0.0.1:1/x".into())),
        ];
        for input in inputs {
            assert!(!world.flows[0].handle(now, input.clone()), "{input:?}");
        }
        if !is_open {
            assert!(!world.flows[0].handle(now, Input::Declined(step)));
            assert!(!world.flows[0].handle(now, Input::Redirected(step, "".into())));
        }
    }
    assert_eq!((world.flows[0].state(), world.flows[0].poll_output()), (state, None));
}

// covers: AUTHD-C-007, AUTHD-C-008, AUTHR-C-021, AUTHT-C-006, B-257
#[test]
fn new_issuer_gets_nothing_of_the_old_one() {
    let mut world = World::new();
    world.log_in();
    world.issuer.name = "https://new.example".into();
    world.issuer.refresh.clear();
    let mut tried = Tried::default();
    assert_eq!(world.refuse(0, 401, CHALLENGE, &mut tried), Reaction::Wait);
    world.run();
    assert_eq!((world.issuer.registrations.len(), world.pages.len()), (2, 2));
    let new: Vec<&String> = world.issuer.urls.iter().filter(|url| url.starts_with("https://new.example")).collect();
    assert!(new.iter().any(|url| url.ends_with("/token")), "{new:?}");
    assert_eq!(query(&world.pages[1].url, "client_id").as_deref(), Some("client-2"));
    let forms = &world.issuer.requests;
    assert!(forms.iter().all(|form| form.iter().all(|(_, value)| value != "refresh-1")), "{forms:?}");
    // Both are in the record, the latest first.
    let entries = &world.store.record.as_ref().unwrap().entries;
    assert_eq!(entries.iter().map(|entry| entry.issuer.as_str()).collect::<Vec<_>>(), ["https://new.example", ISSUER]);
}

/// Logs in at two issuers. The tokens of the second one are in use.
fn at_two_issuers() -> World {
    let mut world = World::new();
    world.log_in();
    world.issuer.name = "https://new.example".into();
    world.issuer.refresh.clear();
    assert_eq!(world.refuse(0, 401, CHALLENGE, &mut Tried::default()), Reaction::Wait);
    world.run();
    assert_eq!(world.store.record.as_ref().unwrap().entries.len(), 2);
    world
}

// covers: AUTHR-C-021, B-238, B-257
#[test]
fn logout_tells_an_issuer_nothing_of_another_one() {
    let mut world = at_two_issuers();
    // The server names the first issuer again, and the tokens in use are of the second one.
    world.issuer.name = ISSUER.into();
    world.now = world.now + Duration::from_secs(7200);
    let now = world.now;
    world.flows[0].logout(now);
    world.run();
    assert!(world.issuer.urls.iter().all(|url| !url.ends_with("/revoke")), "{:?}", world.issuer.urls);
    assert_eq!(world.store.record, None);
}

// covers: B-250
#[test]
fn refresh_that_is_not_possible_opens_no_second_page() {
    let mut world = at_two_issuers();
    // The server names the first issuer again, which knows the client, and gets no foreign token.
    world.issuer.name = ISSUER.into();
    world.now = world.now + Duration::from_secs(7200);
    world.user = User::Declines;
    let now = world.now;
    assert!(matches!(world.flows[0].attach(now), Attach::Wait));
    world.run();
    assert_eq!((world.pages.len(), world.ends.last()), (3, Some(&Err(AuthError::Declined))));
    assert!(matches!(world.flows[0].attached(now), Attach::Bearer(_)));
    assert_eq!(world.flows[0].state(), FlowState::Holding);
    world.flows[0].attach(now);
    world.run();
    let quiet = AuthError::Quiet(AuthError::Declined.into());
    assert_eq!((world.pages.len(), world.ends.last()), (3, Some(&Err(quiet))));
}
