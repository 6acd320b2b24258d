use super::*;
use alloc::borrow::ToOwned;
use mcp_proto::auth::SubjectToken;
use mcp_proto::client::ClientConfig;
use mcp_proto::time::Instant;

/// Returns the configuration of a client with these options.
fn configured(oauth: OAuth) -> Arc<ClientConfig> {
    let config = ClientConfig::url("http://localhost/mcp").expect("a URL");
    let engine = ClientOptions::new().oauth(oauth).create(config, [0; 32], Instant::ZERO);
    Arc::clone(engine.client().config())
}

fn provider() -> IdentityProvider {
    let client = GivenClient { issuer: "https://idp.example".into(), client_id: "app".into(), auth: ClientAuth::None };
    IdentityProvider { token_endpoint: "https://idp.example/token".into(), client, subject: SubjectToken::IdToken }
}

// covers: CC-C-006, EMA-C-009
#[test]
fn client_declares_the_extension_of_its_grant() {
    let none = |_: &AssertionRequest| Err("none".to_owned());
    for (oauth, declared) in [
        (OAuth::new("test"), None),
        (OAuth::new("test").device(), None),
        (OAuth::new("test").machine(), Some("io.modelcontextprotocol/oauth-client-credentials")),
        (OAuth::new("test").assertion(none), None),
        (
            OAuth::new("test").identity_provider(provider()),
            Some("io.modelcontextprotocol/enterprise-managed-authorization"),
        ),
    ] {
        let ids: Vec<String> = configured(oauth).capabilities.extensions.ids().map(Into::into).collect();
        assert_eq!(ids.first().map(String::as_str), declared);
        assert!(ids.len() <= 1, "{ids:?}");
    }
}

#[test]
fn assertion_belongs_to_the_grant_that_was_chosen() {
    let none = |_: &AssertionRequest| Err("none".to_owned());
    let grant = |oauth: OAuth| oauth.config.grant;
    assert_eq!(grant(OAuth::new("test").assertion(none)), Grant::Assertion);
    let enterprise = Grant::Enterprise(Box::new(provider()));
    assert_eq!(grant(OAuth::new("test").identity_provider(provider()).assertion(none)), enterprise);
    assert_eq!(grant(OAuth::new("test").assertion(none).identity_provider(provider())), enterprise);
}

#[test]
fn login_is_interactive_if_something_can_be_shown() {
    let interactive = |oauth: OAuth| configured(oauth).auth.as_ref().is_some_and(|auth| auth.interactive);
    let page = || OAuth::new("test").on_browse(|_| ());
    let code = || OAuth::new("test").on_code(|_| ());
    assert!(interactive(page()) && !interactive(page().device()));
    assert!(!interactive(code()) && interactive(code().device()));
    assert!(!interactive(code().device().not_interactive()));
}

#[test]
fn own_credentials_beside_a_login_end_the_client_at_its_start() {
    let ends = |field: &str| {
        let config = ClientConfig::url("http://localhost/mcp").expect("a URL");
        let options = ClientOptions::new().header(field, "Bearer own").expect("a field");
        options.oauth(OAuth::new("test")).create(config, [0; 32], Instant::ZERO).client().is_terminated()
    };
    assert!(ends("Authorization") && ends("dpop") && !ends("X-Tenant"));
}
