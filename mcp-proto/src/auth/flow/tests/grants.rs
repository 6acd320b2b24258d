//! Tokens without a user: the credentials of the client, assertions of a platform, and the login at
//! an identity provider.

use super::rig::{ISSUER, SERVER, World, config, given, with};
use crate::auth::flow::{FlowState, Reaction, Tried};
use crate::auth::form;
use crate::auth::step::{AssertionPurpose, Input, StepId, StoreFault};
use crate::auth::{
    Alg, AuthConfig, ClientAuth, ClientKey, GivenClient, Grant, IdentityProvider, Registration, Scopes, Secret,
    SignKey, SubjectToken,
};
use crate::error::{AuthError, UrlFault};
use crate::rpc::{Object, RawJson};
use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use core::time::Duration;

const CHALLENGE: &str = "Bearer";
const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);
const JWT_BEARER: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";
const PROVIDER: &str = "https://idp.example";

fn machine(registration: Registration) -> AuthConfig {
    with(config(), |config| (config.grant, config.registrations) = (Grant::ClientCredentials, vec![registration]))
}

/// A client with a key.
fn key() -> GivenClient {
    let key = ClientKey { key: SignKey::Named("mine".into()), alg: Alg::Es256, kid: Some("k1".into()) };
    GivenClient { issuer: ISSUER.into(), client_id: "given".into(), auth: ClientAuth::Key(key) }
}

fn workload() -> AuthConfig {
    with(config(), |config| config.grant = Grant::Assertion)
}

fn enterprise(auth: ClientAuth) -> AuthConfig {
    let client = GivenClient { issuer: PROVIDER.into(), client_id: "at-provider".into(), auth };
    let token_endpoint = "https://idp.example/exchange".into();
    let provider = IdentityProvider { token_endpoint, client, subject: SubjectToken::IdToken };
    with(machine(given(ISSUER, Some("s:1"))), |config| config.grant = Grant::Enterprise(Box::new(provider)))
}

/// A world whose issuer knows all ways of authentication but `none`.
fn world(config: AuthConfig) -> World {
    let mut world = World::with(config, 1);
    world.issuer.auth_methods = "client_secret_post client_secret_basic private_key_jwt";
    world
}

fn field<'a>(form: &'a [(String, String)], name: &str) -> Option<&'a str> {
    form.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
}

/// Returns the parts of a JWT that are JSON.
fn jwt(input: &[u8]) -> Vec<Object> {
    let text = core::str::from_utf8(input).unwrap();
    let decode = |part: &str| URL_SAFE_NO_PAD.decode(part).unwrap();
    text.split('.').take(2).map(|part| Object::read(&RawJson::parse(decode(part)).unwrap()).unwrap()).collect()
}

// covers: XAUTH-B-001, XAUTH-C-004, CC-C-004, CC-C-005, CC-C-006
#[test]
fn client_obtains_tokens_with_its_own_secret() {
    let mut world = world(machine(given(ISSUER, Some("s:1"))));
    world.issuer.scopes_supported = Some("b a");
    world.issuer.issuer_scopes = Some("a b offline_access");
    world.log_in();
    assert_eq!(world.token().as_deref(), Some("access-1"));
    let form = &world.issuer.requests[0];
    assert_eq!(field(form, "grant_type"), Some("client_credentials"));
    assert_eq!((field(form, "resource"), field(form, "scope")), (Some(SERVER), Some("a b")));
    assert_eq!(field(form, "client_secret"), None);
    // Form-encoded, then Base64.
    assert_eq!(world.issuer.authorizations[0].as_deref(), Some("Basic Z2l2ZW46cyUzQTE="));
    assert!(world.pages.is_empty() && world.issuer.registrations.is_empty() && world.is_at_rest());
    // What the issuer issues beside it is not kept.
    let entry = &world.store.record.as_ref().unwrap().entries[0];
    assert_eq!(entry.tokens.as_ref().unwrap().refresh_token, None);
}

// covers: CC-C-004
#[test]
fn secret_is_in_the_form_where_the_issuer_lists_only_that() {
    let mut world = world(machine(given(ISSUER, Some("s:1"))));
    world.issuer.auth_methods = "client_secret_post";
    world.log_in();
    assert_eq!(world.issuer.authorizations, [None]);
    assert_eq!(field(&world.issuer.requests[0], "client_secret"), Some("s:1"));
}

// covers: XAUTH-C-002, XAUTH-C-004, CC-C-001, CC-C-002
#[test]
fn client_obtains_tokens_with_its_key() {
    let mut world = world(machine(Registration::Given(key())));
    world.issuer.more = r#","token_endpoint_auth_signing_alg_values_supported":["RS256","ES256"]"#;
    world.log_in();
    let form = &world.issuer.requests[0];
    assert_eq!(field(form, "grant_type"), Some("client_credentials"));
    assert_eq!((field(form, "client_id"), field(form, "client_secret")), (None, None));
    assert_eq!(field(form, "client_assertion_type"), Some("urn:ietf:params:oauth:client-assertion-type:jwt-bearer"));
    let signed = &world.signed[0];
    assert_eq!((&signed.key, signed.alg), (&SignKey::Named("mine".into()), Alg::Es256));
    let input = String::from_utf8(signed.input.to_vec()).unwrap();
    let sent = alloc::format!("{input}.{}", URL_SAFE_NO_PAD.encode([7; 64]));
    assert_eq!(field(form, "client_assertion"), Some(&*sent));
    let [header, claims] = &jwt(&signed.input)[..] else { panic!("{input}") };
    assert_eq!(header.to_json().as_str(), r#"{"alg":"ES256","typ":"JWT","kid":"k1"}"#);
    let text = |name: &str| claims.str(name).unwrap().into_owned();
    assert_eq!((text("iss"), text("sub"), text("aud")), ("given".into(), "given".into(), ISSUER.into()));
    let number = |name: &str| claims.required::<u64>(name).unwrap();
    assert_eq!((number("iat"), number("exp")), (super::rig::EPOCH, super::rig::EPOCH + 60));
    // Each assertion is another one.
    world.pass(MINUTE * 60);
    assert_eq!(world.token().as_deref(), Some("access-2"));
    assert_ne!(jwt(&world.signed[1].input)[1].str("jti"), claims.str("jti"));
    assert!(world.is_at_rest());
}

// covers: CC-C-003
#[test]
fn issuer_that_does_not_know_the_algorithm_gets_no_request() {
    for (methods, more) in [
        ("private_key_jwt", r#","token_endpoint_auth_signing_alg_values_supported":["RS256"]"#),
        ("client_secret_basic", ""),
    ] {
        let mut world = world(machine(Registration::Given(key())));
        (world.issuer.auth_methods, world.issuer.more) = (methods, more);
        world.log_in();
        assert!(matches!(&world.ends[..], [Err(AuthError::NoClientAuth { .. })]), "{:?}", world.ends);
        assert!(world.signed.is_empty() && world.issuer.requests.is_empty());
    }
}

#[test]
fn algorithm_is_spelled_as_the_issuer_does() {
    let mut client = key();
    client.auth = ClientAuth::Key(ClientKey { key: SignKey::Named("e".into()), alg: Alg::EdDsa, kid: None });
    let mut world = world(machine(Registration::Given(client)));
    world.issuer.more = r#","token_endpoint_auth_signing_alg_values_supported":["Ed25519"]"#;
    world.log_in();
    assert_eq!(jwt(&world.signed[0].input)[0].to_json().as_str(), r#"{"alg":"Ed25519","typ":"JWT"}"#);
}

#[test]
fn signature_that_does_not_come_ends_the_run() {
    for (signature, why) in [
        (Some(Err(StoreFault("no key".into()))), "no key"),
        (Some(Ok(Vec::new())), "the signature has a wrong length"),
        (Some(Ok(vec![7; 2000])), "the signature has a wrong length"),
        (None, "it did not answer in time"),
    ] {
        let mut world = world(machine(Registration::Given(key())));
        world.signature = signature;
        world.log_in();
        world.pass(Duration::from_secs(30));
        assert_eq!(world.ends, [Err(AuthError::Signature(why.into()))]);
        assert!(world.is_at_rest() && world.issuer.requests.is_empty());
    }
}

#[test]
fn signature_of_another_step_is_none() {
    let mut world = world(machine(Registration::Given(key())));
    world.signature = None;
    world.log_in();
    let now = world.now;
    assert_eq!(world.flows[0].state(), FlowState::Signing);
    assert!(!world.flows[0].handle(now, Input::Signed(StepId(1), Ok(vec![7; 64]))));
    assert!(!world.flows[0].handle(now, Input::Asserted(StepId(1), Ok("x".into()))));
    assert_eq!(world.flows[0].state(), FlowState::Signing);
}

// covers: CC-C-005, AUTHR-C-023
#[test]
fn credentials_of_another_issuer_are_not_sent() {
    let mut world = world(machine(given("https://other.example", Some("s:1"))));
    world.log_in();
    let given = vec!["https://other.example".to_string()];
    assert_eq!(world.ends, [Err(AuthError::OtherIssuer { given, issuer: ISSUER.into() })]);
    assert!(world.issuer.requests.is_empty());
}

#[test]
fn client_without_an_issuer_stays_at_the_first() {
    let config = || machine(given("", Some("s:1")));
    let mut world = world(config());
    world.log_in();
    assert_eq!(world.token().as_deref(), Some("access-1"));
    let new = "https://new.example".to_string();
    world.issuer.name = new.clone();
    // Also in another process.
    for _ in 0..2 {
        assert_eq!(world.refuse(0, 401, CHALLENGE, &mut Tried::default()), Reaction::Wait);
        world.run();
        let given = vec![ISSUER.to_string()];
        assert_eq!(world.ends.pop(), Some(Err(AuthError::OtherIssuer { given, issuer: new.clone() })));
        world.restart(config());
        world.token();
        world.ends.clear();
    }
    assert_eq!(world.issuer.requests.len(), 1);
}

// covers: CC-C-006
#[test]
fn token_without_a_user_is_renewed_when_a_request_needs_it() {
    let mut world = world(machine(given(ISSUER, Some("s:1"))));
    world.log_in();
    world.pass(MINUTE * 59 - SECOND);
    assert_eq!(world.token().as_deref(), Some("access-1"));
    world.pass(SECOND);
    assert_eq!(world.token().as_deref(), Some("access-2"));
    // And when the server refuses it.
    assert_eq!(world.refuse(0, 401, CHALLENGE, &mut Tried::default()), Reaction::Wait);
    world.run();
    assert_eq!((world.token().as_deref(), world.issuer.requests.len()), (Some("access-3"), 3));
    assert!(world.issuer.requests.iter().all(|form| field(form, "grant_type") == Some("client_credentials")));
    assert!(world.is_at_rest());
}

// covers: CC-C-006
#[test]
fn processes_with_one_record_ask_for_one_token() {
    let mut world = World::with(machine(given(ISSUER, Some("s:1"))), 3);
    world.issuer.auth_methods = "client_secret_basic";
    for at in 0..3 {
        assert_eq!(world.token_of(at), None);
    }
    for at in 0..3 {
        assert_eq!(world.refuse(at, 401, CHALLENGE, &mut Tried::default()), Reaction::Wait);
    }
    world.run();
    assert_eq!(world.issuer.requests.len(), 1);
    for at in 0..3 {
        assert_eq!(world.token_of(at).as_deref(), Some("access-1"));
    }
    assert!(world.is_at_rest());
}

#[test]
fn new_token_without_a_user_that_is_refused_is_final() {
    let mut world = world(machine(given(ISSUER, Some("s:1"))));
    let mut tried = world.log_in();
    assert_eq!(world.refuse(0, 401, CHALLENGE, &mut tried), Reaction::Final(AuthError::Rejected));
    assert_eq!(world.issuer.requests.len(), 1);
}

#[test]
fn refused_client_asks_again_after_a_growing_pause() {
    let mut world = world(machine(given(ISSUER, Some("s:1"))));
    for _ in 0..10 {
        world.issuer.fault("/token", 401, r#"{"error":"invalid_client"}"#);
    }
    world.log_in();
    assert!(matches!(&world.ends[..], [Err(AuthError::Token(_))]), "{:?}", world.ends);
    for (wait, asked) in [(SECOND, 2), (SECOND, 2), (SECOND, 3), (SECOND * 3, 3), (SECOND, 4)] {
        world.pass(wait);
        let reaction = world.refuse(0, 401, CHALLENGE, &mut Tried::default());
        world.run();
        let is_quiet = matches!(reaction, Reaction::Final(AuthError::Quiet(_)));
        assert!(is_quiet || reaction == Reaction::Wait, "{reaction:?}");
        assert_eq!(world.issuer.count("/token"), asked);
    }
    assert!(world.is_at_rest());
}

#[test]
fn early_renewal_that_fails_uses_the_token_that_is_valid() {
    let mut world = world(machine(given(ISSUER, Some("s:1"))));
    world.log_in();
    world.pass(MINUTE * 59);
    world.issuer.fault("/token", 503, "");
    world.issuer.fault("/token", 401, r#"{"error":"invalid_client"}"#);
    assert_eq!(world.token().as_deref(), Some("access-1"));
    assert_eq!(world.token().as_deref(), Some("access-1"));
    assert_eq!(world.issuer.count("/token"), 2);
    world.pass(SECOND * 11);
    assert_eq!(world.token().as_deref(), Some("access-1"));
    assert_eq!(world.issuer.count("/token"), 3);
    assert_eq!(world.token().as_deref(), Some("access-1"), "it does not ask at once again");
    assert_eq!(world.issuer.count("/token"), 3);
    world.pass(SECOND);
    assert_eq!(world.token().as_deref(), Some("access-2"));
}

#[test]
fn issuer_that_fails_for_a_time_is_asked_again() {
    let mut world = world(machine(given(ISSUER, Some("s:1"))));
    world.issuer.fault("/token", 503, "");
    world.issuer.fault("/token", 403, "blocked");
    world.log_in();
    assert_eq!(world.flows[0].state(), FlowState::Waiting);
    let documents = world.issuer.count("/.well-known/oauth-authorization-server");
    world.pass(SECOND * 3);
    assert_eq!(world.token().as_deref(), Some("access-1"));
    assert_eq!(world.issuer.count("/.well-known/oauth-authorization-server"), documents);
    assert!(world.is_at_rest());
}

#[test]
fn step_up_without_a_user_asks_for_more_scopes() {
    let mut world = world(machine(given(ISSUER, Some("s:1"))));
    let mut tried = world.log_in();
    let more = r#"Bearer error="insufficient_scope", scope="files:write""#;
    assert_eq!(world.refuse(0, 403, more, &mut tried), Reaction::Wait);
    world.run();
    assert_eq!(field(&world.issuer.requests[1], "scope"), Some("files:write"));
    let refused = Reaction::Final(AuthError::Scope { scopes: "files:write".into() });
    assert_eq!(world.refuse(0, 403, more, &mut tried), refused);
}

#[test]
fn setting_interactive_has_no_effect_without_a_user() {
    let mut world = world(with(machine(given(ISSUER, Some("s:1"))), |config| config.interactive = false));
    world.log_in();
    assert_eq!(world.token().as_deref(), Some("access-1"));
}

#[test]
fn issuer_without_proof_keys_serves_grants_without_a_user() {
    let mut world = world(machine(given(ISSUER, Some("s:1"))));
    let text = alloc::format!("{{\"issuer\":\"{ISSUER}\",\"token_endpoint\":\"{ISSUER}/token\"}}");
    world.issuer.fault("/.well-known/oauth-authorization-server", 200, &text);
    world.log_in();
    assert_eq!(world.token().as_deref(), Some("access-1"));
}

#[test]
fn logout_authenticates_with_the_key() {
    let mut world = world(machine(Registration::Given(key())));
    world.log_in();
    let now = world.now;
    world.flows[0].logout(now);
    world.run();
    let form = form::decode(&world.issuer.revocations[0]);
    assert_eq!(field(&form, "token"), Some("access-1"));
    assert!(field(&form, "client_assertion").is_some());
    assert_eq!((world.store.record.is_none(), world.signed.len()), (true, 2));
    // Without a signature the record is removed, too.
    world.log_in();
    world.signature = Some(Err(StoreFault("no key".into())));
    let now = world.now;
    world.flows[0].logout(now);
    world.run();
    assert_eq!((world.store.record.is_none(), world.issuer.revocations.len()), (true, 1));
    assert!(world.is_at_rest());
}

// covers: WIF-C-001, WIF-C-002, WIF-C-004
#[test]
fn workload_presents_its_assertion_and_nothing_else() {
    let mut world = world(workload());
    world.issuer.scopes_supported = Some("a");
    world.log_in();
    assert_eq!(world.token().as_deref(), Some("access-1"));
    let asked = &world.asserted[0];
    assert_eq!((asked.purpose, &*asked.audience), (AssertionPurpose::Workload, ISSUER));
    assert_eq!((&*asked.token_endpoint, asked.resource.as_deref()), ("https://as.example/token", Some(SERVER)));
    let form: Vec<_> = world.issuer.requests[0].iter().map(|(name, value)| (&**name, &**value)).collect();
    let wanted = [("grant_type", JWT_BEARER), ("assertion", "the-assertion"), ("scope", "a"), ("resource", SERVER)];
    assert_eq!(form, wanted);
    assert_eq!((world.issuer.authorizations[0].is_none(), world.issuer.registrations.len()), (true, 0));
    // It is another one each time.
    world.assertion = Some(Ok("the-next".into()));
    world.pass(MINUTE * 60);
    assert_eq!(world.token().as_deref(), Some("access-2"));
    assert_eq!(field(&world.issuer.requests[1], "assertion"), Some("the-next"));
    assert!(world.is_at_rest());
}

// covers: WIF-C-003
#[test]
fn refused_assertion_is_neither_repeated_nor_replaced() {
    for error in ["invalid_grant", "invalid_scope", "unauthorized_client"] {
        let mut world = world(workload());
        world.issuer.fault("/token", 400, &alloc::format!("{{\"error\":\"{error}\"}}"));
        world.log_in();
        let [Err(AuthError::Token(problem))] = &world.ends[..] else { panic!("{:?}", world.ends) };
        assert_eq!(problem.error.as_deref(), Some(error));
        assert_eq!((world.issuer.count("/token"), world.asserted.len()), (1, 1));
        let reaction = world.refuse(0, 401, CHALLENGE, &mut Tried::default());
        assert!(matches!(reaction, Reaction::Final(AuthError::Quiet(_))), "{reaction:?}");
        assert!(world.is_at_rest());
    }
}

#[test]
fn assertion_that_does_not_come_ends_the_run() {
    for (assertion, why) in [
        (Some(Err(StoreFault("no file".into()))), "no file"),
        (Some(Ok(Secret::default())), "it is empty"),
        (Some(Ok("x".repeat(20_000).into())), "it is longer than 16384 bytes"),
        (None, "it did not answer in time"),
    ] {
        let mut world = world(workload());
        world.assertion = assertion;
        world.log_in();
        world.pass(Duration::from_secs(30));
        assert_eq!(world.ends, [Err(AuthError::Assertion(why.into()))]);
        assert!(world.is_at_rest() && world.issuer.requests.is_empty());
    }
}

// covers: XAUTH-C-005, XAUTH-C-008, EMA-C-001, EMA-C-002
#[test]
fn login_at_an_identity_provider_becomes_a_token() {
    let mut world = world(enterprise(ClientAuth::Secret("p".into())));
    world.log_in();
    assert_eq!(world.token().as_deref(), Some("access-1"));
    let asked = &world.asserted[0];
    assert_eq!((asked.purpose, &*asked.audience), (AssertionPurpose::Identity, PROVIDER));
    let exchange = &world.issuer.others[0];
    for (name, value) in [
        ("grant_type", "urn:ietf:params:oauth:grant-type:token-exchange"),
        ("requested_token_type", "urn:ietf:params:oauth:token-type:id-jag"),
        ("audience", ISSUER),
        ("resource", SERVER),
        ("subject_token", "the-assertion"),
        ("subject_token_type", "urn:ietf:params:oauth:token-type:id_token"),
        ("client_id", "at-provider"),
    ] {
        assert_eq!(field(exchange, name), Some(value));
    }
    let form = &world.issuer.requests[0];
    assert_eq!((field(form, "grant_type"), field(form, "assertion")), (Some(JWT_BEARER), Some("jag-1")));
    assert_eq!(field(form, "resource"), Some(SERVER));
    assert_eq!(world.issuer.authorizations[0].as_deref(), Some("Basic Z2l2ZW46cyUzQTE="));
    // Neither the grant nor the login at the provider is kept.
    let kept = String::from_utf8(world.store.record.as_ref().unwrap().to_json()).unwrap();
    assert!(!kept.contains("jag-1") && !kept.contains("the-assertion"), "{kept}");
    assert!(world.is_at_rest());
}

// covers: EMA-B-008
#[test]
fn provider_without_tls_gets_nothing() {
    let config = with(enterprise(ClientAuth::Secret("p".into())), |config| {
        if let Grant::Enterprise(provider) = &mut config.grant {
            provider.token_endpoint = "http://idp.example/exchange".into();
        }
    });
    let mut world = world(config);
    world.log_in();
    let [Err(AuthError::BadUrl { purpose, fault, .. })] = &world.ends[..] else { panic!("{:?}", world.ends) };
    assert_eq!((&**purpose, *fault), ("token_endpoint", UrlFault::Plain));
    assert!(world.issuer.others.is_empty() && world.is_at_rest());
}

#[test]
fn client_signs_for_each_of_its_issuers() {
    let at_provider = ClientKey { key: SignKey::Named("other".into()), alg: Alg::Rs256, kid: None };
    let mut config = enterprise(ClientAuth::Key(at_provider));
    config.registrations = vec![Registration::Given(key())];
    let mut world = world(config);
    world.log_in();
    assert_eq!(world.token().as_deref(), Some("access-1"));
    let named = |name: &str| SignKey::Named(name.into());
    let keys: Vec<_> = world.signed.iter().map(|sign| sign.key.clone()).collect();
    assert_eq!(keys, [named("other"), named("mine")]);
    let audiences: Vec<_> =
        world.signed.iter().map(|sign| jwt(&sign.input)[1].str("aud").unwrap().into_owned()).collect();
    assert_eq!(audiences, [PROVIDER, ISSUER]);
}

// covers: EMA-C-004
#[test]
fn client_with_a_document_needs_no_registration() {
    let mut config = enterprise(ClientAuth::None);
    config.registrations = vec![Registration::Document("https://app.example/c.json".into()), Registration::Dynamic];
    let mut world = world(config);
    world.issuer.more = r#","client_id_metadata_document_supported":true"#;
    world.log_in();
    assert_eq!(field(&world.issuer.requests[0], "client_id"), Some("https://app.example/c.json"));
    assert!(world.issuer.registrations.is_empty());
    let registers = with(enterprise(ClientAuth::None), |config| config.registrations = vec![Registration::Dynamic]);
    let mut world = self::world(registers);
    world.log_in();
    assert_eq!(world.ends, [Err(AuthError::NoRegistration { issuer: ISSUER.into() })]);
}

#[test]
fn provider_that_refuses_ends_the_run() {
    for (body, error) in [
        (r#"{"error":"invalid_grant"}"#, Some("invalid_grant")),
        (r#"{"access_token":"t","token_type":"Bearer"}"#, None),
        (r#"{"access_token":"t","token_type":"N_A","issued_token_type":"urn:x"}"#, None),
        (r#"{"token_type":"N_A"}"#, None),
    ] {
        let mut world = world(enterprise(ClientAuth::None));
        world.issuer.fault("/exchange", if error.is_some() { 400 } else { 200 }, body);
        world.log_in();
        let [Err(AuthError::Token(problem))] = &world.ends[..] else { panic!("{body}: {:?}", world.ends) };
        assert_eq!((problem.error.as_deref(), &*problem.url), (error, "https://idp.example/exchange"));
        assert!(world.issuer.requests.is_empty() && world.is_at_rest());
    }
    let mut world = world(enterprise(ClientAuth::None));
    world.issuer.fault("/exchange", 503, "");
    world.log_in();
    world.pass(SECOND);
    assert_eq!((world.token().as_deref(), world.asserted.len()), (Some("access-1"), 2));
}

/// Some issuers repeat what they refuse.
#[test]
fn secrets_that_an_issuer_repeats_are_hidden_in_the_error() {
    let refusal = |what: &str| format!(r#"{{"error":"invalid_grant","error_description":"not {what}: {what}!"}}"#);
    let at_provider = enterprise(ClientAuth::Secret("canary-1".into()));
    for (config, path, sent) in [
        (machine(given(ISSUER, Some("canary-2"))), "/token", "canary-2"),
        (workload(), "/token", "the-assertion"),
        (at_provider.clone(), "/exchange", "canary-1"),
        (at_provider, "/exchange", "the-assertion"),
    ] {
        for (status, body) in [(400, refusal(sent)), (400, format!(r#"{{"error":"not {sent}"}}"#))] {
            let mut world = world(config.clone());
            world.issuer.fault(path, status, &body);
            world.log_in();
            let [Err(why)] = &world.ends[..] else { panic!("{body}: {:?}", world.ends) };
            let shown = format!("{why} {why:?}");
            assert!(shown.contains("not …") && !shown.contains(sent), "{shown}");
        }
    }
}

#[test]
fn later_run_requests_all_scopes_of_before() {
    let mut world = world(with(workload(), |config| config.scopes = Scopes::parse("mine")));
    world.log_in();
    world.pass(MINUTE * 60);
    world.token();
    assert_eq!(field(&world.issuer.requests[1], "scope"), Some("mine"));
}
