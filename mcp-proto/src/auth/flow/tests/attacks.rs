//! What a hostile server, issuer or page tries during a login.

use super::rig::{ISSUER, User, World, config, given, query};
use crate::auth::flow::{Reaction, Tried};
use crate::auth::step::{AuthReport, Generation, Input};
use crate::error::{AuthError, UrlFault};
use crate::exchange::Reach;
use crate::fetch::Redirects;
use alloc::format;
use alloc::string::{String, ToString};

const METADATA: &str = "/.well-known/oauth-authorization-server";

/// The metadata of the issuer with these members in place of its own.
fn metadata(members: &[(&str, &str)]) -> String {
    let mut document = serde_json::json!({
        "issuer": ISSUER, "authorization_endpoint": format!("{ISSUER}/authorize"),
        "token_endpoint": format!("{ISSUER}/token"), "registration_endpoint": format!("{ISSUER}/register"),
        "code_challenge_methods_supported": ["S256"], "authorization_response_iss_parameter_supported": true,
        "token_endpoint_auth_methods_supported": ["none"],
    });
    for (name, value) in members {
        document[*name] = serde_json::from_str(value).unwrap();
    }
    document.to_string()
}

/// A login at the issuer with this document.
fn login_with(members: &[(&str, &str)]) -> World {
    let mut world = World::new();
    world.issuer.fault(METADATA, 200, &metadata(members));
    // The other well-known URL has nothing.
    world.log_in();
    world
}

impl World {
    /// The first flow gets a redirect at its page. Returns whether it waits for one.
    fn redirect(&mut self, url: &str) -> bool {
        let (page, now) = (self.open.last().map(|(_, step)| *step), self.now);
        let is_open = page.is_some_and(|step| self.flows[0].handle(now, Input::Redirected(step, url.into())));
        self.run();
        is_open
    }
}

// covers: AUTHF-C-009, B-253, B-254
#[test]
fn redirects_of_other_logins_are_dropped_and_this_one_goes_on() {
    // An attacker has a login of its own at the same issuer, and its whole redirect.
    let mut attacker = World::new();
    attacker.restart(config());
    attacker.user = User::Absent;
    attacker.log_in();
    let page = attacker.pages[0].clone();
    let foreign = attacker.issuer.page(&page);
    let mut world = World::new();
    world.user = User::Absent;
    world.log_in();
    let page = world.pages[0].clone();
    let first = world.issuer.page(&page);
    assert!(world.redirect(&first));
    let now = world.now;
    world.flows[0].login(now);
    world.run();
    let page = world.pages[1].clone();
    let right = world.issuer.page(&page);
    let state = query(&page.url, "state").unwrap();
    for wrong in [
        foreign,
        // Of the login before.
        first,
        format!("{}?code=x", page.redirect_uri),
        format!("{}?code=x&state=&iss=https%3A%2F%2Fas.example", page.redirect_uri),
        format!("{}?code=x&state={state}&state={state}", page.redirect_uri),
        right.replace("127.0.0.1", "evil.example"),
    ] {
        assert!(world.redirect(&wrong), "{wrong}");
        assert_eq!((world.ends.len(), world.issuer.requests.len()), (1, 1), "{wrong}");
    }
    assert!(world.redirect(&right));
    assert_eq!((world.ends.last(), world.issuer.requests.len()), (Some(&Ok(Generation(2))), 2));
    // No code is sent a second time.
    assert!(!world.redirect(&right));
    assert_eq!(world.issuer.requests.len(), 2);
}

// covers: B-253
#[test]
fn answer_of_one_issuer_is_not_taken_for_that_of_another() {
    let mut world = World::new();
    world.issuer.sends_iss = false;
    world.log_in();
    let old = world.pages[0].redirect_uri.clone();
    world.issuer.name = "https://new.example".into();
    world.issuer.refresh.clear();
    world.user = User::Absent;
    assert_eq!(world.refuse(0, 401, "Bearer", &mut Tried::default()), Reaction::Wait);
    world.run();
    let page = world.pages[1].clone();
    assert_ne!(page.redirect_uri, old);
    // The state is right, and the place is that of the first issuer.
    let state = query(&page.url, "state").unwrap();
    assert!(world.redirect(&format!("{old}?code=of-the-first&state={state}")));
    assert_eq!((world.ends.len(), world.issuer.requests.len()), (1, 1));
    let right = world.issuer.page(&page);
    assert!(world.redirect(&right));
    assert_eq!((world.ends.len(), world.issuer.requests.len()), (2, 2));
    // A client that is given has one redirect URI for all issuers.
    let mut one = config();
    one.registrations = alloc::vec![given(ISSUER, None)];
    let mut world = World::with(one, 1);
    world.issuer.sends_iss = false;
    world.log_in();
    assert!(world.reports.contains(&AuthReport::MixUpUnprotected(ISSUER.into())));
}

// covers: AUTHG-C-012, B-239
#[test]
fn documents_change_neither_the_redirect_uri_nor_the_client() {
    let evil = "https%3A%2F%2Fevil.example";
    let query_of = |name: &str| format!("\"{ISSUER}/authorize?{name}={evil}&response_mode=query\"");
    for name in ["redirect_uri", "client_id", "state", "code_challenge", "%72edirect_uri"] {
        let endpoint = query_of(name);
        let mut world = World::new();
        world.issuer.fault(METADATA, 200, &metadata(&[("authorization_endpoint", &endpoint)]));
        world.issuer.fault("/register", 201, "{\"client_id\":\"c\",\"redirect_uris\":[\"https://evil.example/\"]}");
        world.log_in();
        assert_eq!(world.ends, [Ok(Generation(1))], "{name}");
        let (page, form) = (&world.pages[0], &world.issuer.requests[0]);
        assert!(!page.url.contains("evil") && page.url.contains("response_mode=query"), "{}", page.url);
        assert_eq!(page.redirect_uri, "http://127.0.0.1:4000/callback");
        assert!(form.contains(&("redirect_uri".into(), page.redirect_uri.clone())), "{form:?}");
    }
}

// covers: SEC-C-001, SEC-C-003, B-193, B-237, B-239
#[test]
fn endpoint_that_may_not_be_used_ends_the_login_before_its_page() {
    for (name, url, fault) in [
        ("authorization_endpoint", "javascript:alert(1)", UrlFault::Form),
        ("authorization_endpoint", "file:///etc/passwd", UrlFault::Form),
        ("authorization_endpoint", "http://as.example/authorize", UrlFault::Plain),
        ("token_endpoint", "https://169.254.169.254/token", UrlFault::Reach),
        ("token_endpoint", "https://[::ffff:169.254.169.254]/token", UrlFault::Reach),
        ("token_endpoint", "http://127.0.0.1:9/token", UrlFault::Plain),
    ] {
        let world = login_with(&[(name, &format!("\"{url}\""))]);
        let Some(Err(why @ AuthError::Discovery { .. })) = world.ends.last() else { panic!("{:?}", world.ends) };
        assert!(why.to_string().contains(&fault.to_string()), "{name}: {why}");
        assert!(world.pages.is_empty() && world.issuer.registrations.is_empty() && world.is_at_rest());
    }
}

// covers: SEC-C-001, REDIR-C-008, B-237
#[test]
fn each_request_of_a_login_is_limited_to_public_addresses() {
    let mut world = World::new();
    world.flows[0].reached(Some("93.184.215.14".parse().unwrap()));
    world.log_in();
    world.pass(core::time::Duration::from_secs(3600));
    assert_eq!(world.token().as_deref(), Some("access-2"));
    let now = world.now;
    world.flows[0].logout(now);
    world.run();
    // Two documents twice, a registration, two token requests, two revocations.
    assert!(world.issuer.sent.len() >= 8, "{:?}", world.issuer.urls);
    for (method, reach, redirects) in &world.issuer.sent {
        assert_eq!(*reach, Reach::Public);
        assert!(method == "GET" || *redirects == Redirects::None, "{method} {redirects:?}");
    }
    // The driver connects to no address beyond that, whatever a document names.
    let world = login_with(&[("token_endpoint", "\"https://10.0.0.1/token\"")]);
    assert_eq!(world.issuer.sent.last().unwrap().1, Reach::Public);
    assert!(!Reach::Public.allows("10.0.0.1".parse().unwrap()));
}

// covers: REDIR-C-008, B-237
#[test]
fn token_request_that_is_redirected_goes_nowhere_else() {
    for status in [301, 302, 303, 307, 308] {
        let mut world = World::new();
        world.issuer.fault("/token", status, "");
        world.log_in();
        let Some(Err(AuthError::Token(problem))) = world.ends.last() else { panic!("{:?}", world.ends) };
        assert_eq!((problem.status, world.issuer.count("/token")), (Some(status), 1));
        assert!(world.issuer.urls.last().unwrap().ends_with("/token") && world.is_at_rest());
    }
}

// covers: AUTHF-C-003, B-252
#[test]
fn issuer_without_a_safe_proof_key_shows_no_page() {
    for (methods, listed) in [("[\"plain\"]", true), ("[]", false), ("null", false)] {
        let world = login_with(&[("code_challenge_methods_supported", methods)]);
        assert_eq!(world.ends, [Err(AuthError::NoPkce { issuer: ISSUER.to_string(), listed })]);
        assert!(world.pages.is_empty() && world.issuer.registrations.is_empty() && world.is_at_rest());
    }
}
