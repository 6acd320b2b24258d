//! The login at a server as a file has it, and what becomes of it.

use super::*;
use mcp_driver::OAuth;
use mcp_proto::auth::{AuthConfig, ClientAuth, GivenClient, LoopbackHost, Port, Redirect, Registration};

/// Returns the configuration of a login at the server `a`. `None`: logins are off.
fn login(file: &ConfigFile) -> Option<AuthConfig> {
    let oauth = OAuth::new("test").scopes(["own"]);
    let login = entry(file, "a").login(oauth, &lookup, Trust::Trusted).unwrap();
    let mut found = None;
    login.map(|oauth| oauth.config(|config| found = Some(config.clone())));
    found
}

/// Returns the client that a login has beside its own registration.
fn client(config: &AuthConfig) -> Option<&GivenClient> {
    match &config.registrations[..] {
        [Registration::Given(client), Registration::Dynamic] => Some(client),
        [Registration::Dynamic] => None,
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn of_server(text: &str) -> AuthConfig {
    login(&parsed(text)).unwrap()
}

// covers: S0-06
#[test]
fn claude_code_names_a_client_its_port_and_its_issuer() {
    let config = of_server(
        r#"{"mcpServers": {"a": {"url": "https://a.example/mcp", "oauth": {
            "clientId": "acme", "callbackPort": 9555, "scopes": "read  write",
            "authServerMetadataUrl": "https://login.example/.well-known/oauth-authorization-server/tenant"
        }}}}"#,
    );
    let issuer = "https://login.example/tenant".to_string();
    let expected = GivenClient { issuer: issuer.clone(), client_id: "acme".into(), auth: ClientAuth::None };
    assert_eq!((client(&config), config.issuer.as_ref()), (Some(&expected), Some(&issuer)));
    assert_eq!(config.scopes.to_string(), "own read write");
    let (host, port) = (LoopbackHost::Localhost, Port::FirstOf([9555].into()));
    assert_eq!(config.redirect, Redirect::Loopback { host, port, path: "/callback".into() });
    let without = of_server(r#"{"mcpServers": {"a": {"url": "https://a.example/mcp", "oauth": {"scopes": ""}}}}"#);
    assert_eq!((client(&without), without.scopes.to_string().as_str()), (None, "own"));
    for (url, issuer) in [
        ("https://l.example/.well-known/openid-configuration", Some("https://l.example")),
        ("https://l.example/t/.well-known/openid-configuration", Some("https://l.example/t")),
        ("https://l.example/.well-known/other", None),
        ("https://l.example/.well-known/openid-configurations", None),
        ("https://l.example/", None),
    ] {
        let text = format!(
            r#"{{"mcpServers": {{"a": {{"url": "https://a/", "oauth": {{"authServerMetadataUrl": "{url}"}}}}}}}}"#
        );
        let login = entry(&parsed(&text), "a").login(OAuth::new("test"), &lookup, Trust::Trusted);
        let found = login.map(|login| {
            let mut found = None;
            drop(login.unwrap().config(|config| found = config.issuer.clone()));
            found
        });
        assert_eq!(found.map_err(|why| why.kind), issuer.map(|i| Some(i.into())).ok_or(ConfigErrorKind::MetadataUrl));
    }
}

// covers: S0-06
#[test]
fn secret_of_a_login_is_a_variable() {
    let secret = |text: &str| {
        let file = parsed(text);
        let config = login(&file).unwrap();
        let client = client(&config).unwrap();
        assert!(!format!("{file:?}").contains("t0ps3cret"), "{file:?}");
        let known = match &client.auth {
            ClientAuth::Secret(secret) => Some(secret.expose().to_string()),
            _ => None,
        };
        (client.issuer.clone(), known, ignored(&file).len())
    };
    let known = (String::new(), Some("t0ps3cret".to_string()), 0);
    let cursor = |value: &str| {
        let auth = format!(r#"{{"CLIENT_ID": "acme", "CLIENT_SECRET": "{value}", "scopes": ["list"]}}"#);
        secret(&format!(r#"{{"mcpServers": {{"a": {{"url": "https://a.example/", "auth": {auth}}}}}}}"#))
    };
    assert_eq!(cursor("${env:TOKEN}"), known);
    assert_eq!(cursor("s-123"), (String::new(), None, 1), "one in the file has no effect");
    let open_code = r#"{"mcp": {"a": {"type": "remote", "url": "https://a.example/",
        "oauth": {"clientId": "acme", "clientSecret": "{env:TOKEN}", "callback_port": 9555}}}}"#;
    assert_eq!(secret(open_code), known);
    let file = ConfigFile::parse_as(
        Dialect::GeminiCli,
        r#"{"mcpServers": {"a": {"url": "https://a.example/", "oauth": {
            "enabled": true, "clientId": "acme", "clientSecret": "$TOKEN", "redirectUri": "http://localhost:9555/cb"
        }}}}"#,
    );
    let config = login(&file.unwrap()).unwrap();
    let (host, port) = (LoopbackHost::Localhost, Port::FirstOf([9555].into()));
    assert_eq!(config.redirect, Redirect::Loopback { host, port, path: "/cb".into() });
}

#[test]
fn file_turns_logins_off() {
    let off = r#"{"mcp": {"a": {"type": "remote", "url": "https://a.example/", "oauth": false}}}"#;
    assert_eq!(login(&parsed(off)), None);
    let gemini = r#"{"mcpServers": {"a": {"url": "https://a.example/", "oauth": {"enabled": false}}}}"#;
    assert_eq!(login(&ConfigFile::parse_as(Dialect::GeminiCli, gemini).unwrap()), None);
    let program = r#"{"mcpServers": {"a": {"command": "a", "oauth": {"clientId": "acme"}}}}"#;
    assert_eq!((login(&parsed(program)), ignored(&parsed(program)).len()), (None, 1));
    // A login that no client documents has no effect.
    let text = r#"{"mcpServers": {"a": {"url": "https://a.example/", "oauth": true}}}"#;
    assert_eq!((client(&of_server(text)), &ignored(&parsed(text))[..]), (None, &["mcpServers.a.oauth"][..]));
}

#[test]
fn wrong_login_is_an_error_of_its_server() {
    let wrong =
        |login: &str| error(&format!(r#"{{"mcpServers": {{"a": {{"url": "https://a/", "oauth": {login}}}}}}}"#));
    assert!(wrong(r#"{"clientId": 1}"#).ends_with("mcpServers.a.oauth.clientId: a string is required, not a number"));
    for port in ["0", "65536", "1.5", "-1"] {
        let why = wrong(&format!(r#"{{"callbackPort": {port}}}"#));
        assert!(why.ends_with("oauth.callbackPort: a whole number from 1 to 65535 is required"), "{why}");
    }
    assert!(wrong(r#"{"scopes": [1]}"#).ends_with("oauth.scopes[0]: a string is required, not a number"));
}

// covers: SEC-C-009
#[test]
fn variable_of_a_login_needs_a_confirmation() {
    let file = parsed(
        r#"{"mcpServers": {
            "a": {"url": "https://a.example/", "auth": {"CLIENT_ID": "acme", "CLIENT_SECRET": "${env:TOKEN}"}},
            "b": {"url": "https://b.example/", "oauth": {"clientId": "acme"}}
        }}"#,
    );
    let of = |name| entry(&file, name).login(OAuth::new("test"), &lookup, Trust::Project);
    assert_eq!(of("a").unwrap_err().kind, ConfigErrorKind::Unconfirmed);
    assert!(entry(&file, "a").client_config(&lookup, Trust::Project).is_err() && of("b").is_ok());
    assert_eq!(
        entry(&file, "a").preview().to_string(),
        "server \"a\"\nurl https://a.example/\nlogs in as the client \"acme\"\ngets the variable \"TOKEN\""
    );
}
