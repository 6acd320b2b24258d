//! Whole logins and refreshes at providers as they really answer, with the settings that each one
//! needs. Their documents are shortened to the members that a client reads, and some that it does
//! not know.

use super::issuer::Provider;
use super::rig::{User, World, config, query, with};
use crate::auth::flow::{Reaction, Tried};
use crate::auth::step::AuthReport;
use crate::auth::{
    AuthConfig, ClientAuth, GivenClient, Parameter, ParameterPlace, Prompt, Registration, Scopes, Secret,
};
use crate::error::{AuthError, Problem};
use alloc::format;
use alloc::string::{String, ToString};
use core::time::Duration;

const JSON: &str = "application/json; charset=utf-8";
const FORM: &str = "application/x-www-form-urlencoded; charset=utf-8";

/// The answer of a provider.
type Answer = (u16, &'static str, String);

/// The page of a web server that knows no such document.
fn not_found() -> Answer {
    (404, "text/html", "<!DOCTYPE html><title>Not found</title>".into())
}

fn json(status: u16, text: &str) -> Answer {
    (status, JSON, text.into())
}

fn no_refusal(_: &str) -> Option<&'static str> {
    None
}

/// A program at the server whose issuer is this provider.
fn at(issuer: &str, provider: Provider, change: impl FnOnce(&mut AuthConfig)) -> World {
    let mut world = World::with(with(config(), change), 1);
    (world.issuer.name, world.issuer.sends_iss, world.issuer.provider) = (issuer.into(), false, Some(provider));
    world
}

fn given(issuer: &str, auth: ClientAuth) -> Registration {
    Registration::Given(GivenClient { issuer: issuer.into(), client_id: "app".into(), auth })
}

fn secret() -> ClientAuth {
    ClientAuth::Secret(Secret::from("s3cret"))
}

impl World {
    /// Returns a parameter of the latest page.
    fn shown(&self, name: &str) -> Option<String> {
        query(&self.pages.last().unwrap().url, name)
    }

    /// Returns a parameter of the latest token request.
    fn sent(&self, name: &str) -> Option<&str> {
        let form = self.issuer.requests.last().unwrap();
        form.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    fn problem(&self) -> &Problem {
        match self.ends.last() {
            Some(Err(AuthError::Token(problem) | AuthError::Authorization(problem))) => problem,
            other => panic!("{other:?}"),
        }
    }

    /// The server asks for this scope.
    fn log_in_for(&mut self, scope: &str) {
        assert_eq!(self.token(), None);
        let challenge = format!("Bearer scope=\"{scope}\"");
        assert_eq!(self.refuse(0, 401, &challenge, &mut Tried::default()), Reaction::Wait);
        self.ends.clear();
        self.run();
    }
}

const ENTRA: &str = "https://login.microsoftonline.com/0d4e/v2.0";
const ENTRA_SCOPE: &str = "api://mcp.example/read";

fn entra(url: &str, body: &str, number: usize) -> Answer {
    match url {
        "https://login.microsoftonline.com/0d4e/v2.0/.well-known/openid-configuration" => json(
            200,
            r#"{"token_endpoint":"https://login.microsoftonline.com/0d4e/oauth2/v2.0/token",
            "token_endpoint_auth_methods_supported":["client_secret_post","private_key_jwt","client_secret_basic"],
            "response_modes_supported":["query","fragment","form_post"],"subject_types_supported":["pairwise"],
            "scopes_supported":["openid","profile","email","offline_access"],
            "issuer":"https://login.microsoftonline.com/0d4e/v2.0","request_uri_parameter_supported":false,
            "authorization_endpoint":"https://login.microsoftonline.com/0d4e/oauth2/v2.0/authorize",
            "tenant_region_scope":"EU","cloud_instance_name":"microsoftonline.com"}"#,
        ),
        "https://login.microsoftonline.com/0d4e/oauth2/v2.0/token" if body.contains("&resource=") => json(
            400,
            r#"{"error":"invalid_target",
            "error_description":"AADSTS9010010: The resource parameter doesn't match with the requested scopes.",
            "error_codes":[9010010],"trace_id":"b7b1","correlation_id":"c5a2"}"#,
        ),
        "https://login.microsoftonline.com/0d4e/oauth2/v2.0/token" if body.contains("refresh-dead") => json(
            400,
            r#"{"error":"invalid_grant","error_codes":[700082],"suberror":"bad_token",
            "error_description":"AADSTS700082: The refresh token has expired due to inactivity.",
            "error_uri":"https://login.microsoftonline.com/error?code=700082"}"#,
        ),
        "https://login.microsoftonline.com/0d4e/oauth2/v2.0/token" => json(
            200,
            &format!(
                r#"{{"token_type":"Bearer","scope":"api://mcp.example/read","expires_in":3599,"ext_expires_in":3599,
                "access_token":"entra-{number}","refresh_token":"refresh-{}"}}"#,
                if number == 1 { "dead" } else { "live" }
            ),
        ),
        _ => not_found(),
    }
}

fn entra_refuses(page: &str) -> Option<&'static str> {
    match (query(page, "resource"), query(page, "prompt").as_deref()) {
        (Some(_), _) => Some("error=invalid_target&error_description=AADSTS9010010%3a+The+resource+parameter"),
        // A user who may not consent.
        (None, Some("consent")) => Some("error=access_denied&error_description=AADSTS90094%3a+needs+permission"),
        (None, _) => None,
    }
}

fn at_entra(change: impl FnOnce(&mut AuthConfig)) -> World {
    at(ENTRA, Provider { answer: entra, refuses: entra_refuses }, |config| {
        config.registrations = alloc::vec![given(ENTRA, ClientAuth::None)];
        change(config);
    })
}

// covers: AUTHF-C-007, B-252
#[test]
fn entra_needs_no_resource_no_listed_pkce_and_no_consent() {
    let mut world = at_entra(|_| {});
    world.log_in_for(ENTRA_SCOPE);
    assert_eq!(world.ends, [Err(AuthError::NoPkce { issuer: ENTRA.into(), listed: false })]);
    let mut world = at_entra(|config| config.compat.unlisted_pkce = true);
    world.log_in_for(ENTRA_SCOPE);
    assert_eq!(world.problem().error.as_deref(), Some("invalid_target"));
    assert!(world.problem().description.as_ref().is_some_and(|text| text.starts_with("AADSTS9010010")));

    let mut world = at_entra(|config| (config.compat.unlisted_pkce, config.compat.omit_resource) = (true, true));
    world.log_in_for(ENTRA_SCOPE);
    assert_eq!(world.token().as_deref(), Some("entra-0"));
    assert_eq!(world.shown("scope").as_deref(), Some("api://mcp.example/read offline_access"));
    assert_eq!((world.shown("resource"), world.shown("prompt")), (None, None));
    assert_eq!((world.shown("client_id").as_deref(), world.sent("client_id")), (Some("app"), Some("app")));
    world.pass(Duration::from_secs(3600));
    assert_eq!(world.token().as_deref(), Some("entra-1"));
    assert_eq!((world.sent("resource"), world.sent("grant_type")), (None, Some("refresh_token")));
    // The refresh token is dead, and the user logs in again.
    world.pass(Duration::from_secs(3600));
    assert_eq!((world.token().as_deref(), world.pages.len()), (Some("entra-3"), 2));
}

const AUTH0: &str = "https://tenant.eu.auth0.com/";

fn auth0(url: &str, body: &str, number: usize) -> Answer {
    match url {
        "https://tenant.eu.auth0.com/.well-known/oauth-authorization-server" => json(
            200,
            r#"{"issuer":"https://tenant.eu.auth0.com/",
            "authorization_endpoint":"https://tenant.eu.auth0.com/authorize",
            "token_endpoint":"https://tenant.eu.auth0.com/oauth/token",
            "registration_endpoint":"https://tenant.eu.auth0.com/oidc/register",
            "revocation_endpoint":"https://tenant.eu.auth0.com/oauth/revoke",
            "scopes_supported":["openid","profile","offline_access","email"],
            "code_challenge_methods_supported":["S256","plain"],
            "token_endpoint_auth_methods_supported":["client_secret_basic","private_key_jwt","none"],
            "request_parameter_supported":false,"dpop_signing_alg_values_supported":["ES256"]}"#,
        ),
        "https://tenant.eu.auth0.com/oidc/register" => json(
            201,
            r#"{"client_name":"test","client_id":"auth0-client","client_secret":"unused",
            "redirect_uris":["http://127.0.0.1:4000/callback"],"token_endpoint_auth_method":"none",
            "client_secret_expires_at":0}"#,
        ),
        "https://tenant.eu.auth0.com/oauth/token" if body.contains("auth0-refresh-1") => {
            json(403, r#"{"error":"invalid_grant","error_description":"Unknown or invalid refresh token."}"#)
        }
        "https://tenant.eu.auth0.com/oauth/token" => json(
            200,
            &format!(
                r#"{{"access_token":"auth0-{number}","refresh_token":"auth0-refresh-{number}","id_token":"x.y.z",
                "scope":"openid read offline_access","expires_in":86400,"token_type":"Bearer"}}"#
            ),
        ),
        _ => not_found(),
    }
}

// covers: B-229, B-243
#[test]
fn auth0_has_an_issuer_with_a_slash_and_wants_an_audience() {
    // The server names its issuer without the slash.
    let provider = Provider { answer: auth0, refuses: no_refusal };
    let audience = |place| Parameter { place, name: "audience".into(), value: "https://mcp.example/".into() };
    let mut world = at("https://tenant.eu.auth0.com", provider, |config| {
        config.parameters = alloc::vec![audience(ParameterPlace::Page)];
    });
    world.log_in_for("openid read");
    assert_eq!(world.token().as_deref(), Some("auth0-0"));
    assert_eq!(world.shown("audience").as_deref(), Some("https://mcp.example/"));
    assert_eq!(world.shown("scope").as_deref(), Some("offline_access openid read"));
    assert_eq!(world.shown("prompt").as_deref(), Some("consent"));
    assert_eq!((world.sent("audience"), world.sent("client_id")), (None, Some("auth0-client")));
    let entry = &world.store.record.as_ref().unwrap().entries[0];
    assert_eq!((&*entry.issuer, &entry.client.client_secret), (AUTH0, &None));
    assert!(world.reports.iter().any(|report| matches!(report, AuthReport::Deviation(_))));
    world.pass(Duration::from_secs(86_400));
    assert_eq!(world.token().as_deref(), Some("auth0-1"));
    // 403 is no firewall if it has a code.
    world.pass(Duration::from_secs(86_400));
    assert_eq!((world.token().as_deref(), world.pages.len()), (Some("auth0-3"), 2));
    // Without the tolerance the login ends with both names.
    let mut world = at("https://tenant.eu.auth0.com", provider, |config| config.compat.issuer_slash = false);
    world.log_in_for("openid read");
    let Some(Err(why @ AuthError::Discovery { .. })) = world.ends.last() else { panic!("{:?}", world.ends) };
    let text = why.to_string();
    assert!(text.contains("https://tenant.eu.auth0.com/, and not of https://tenant.eu.auth0.com"), "{text}");
}

const COGNITO: &str = "https://cognito-idp.eu-west-1.amazonaws.com/eu-west-1_ab1";

fn cognito(url: &str, body: &str, number: usize) -> Answer {
    match url {
        "https://cognito-idp.eu-west-1.amazonaws.com/eu-west-1_ab1/.well-known/openid-configuration" => json(
            200,
            r#"{"authorization_endpoint":"https://acme.auth.eu-west-1.amazoncognito.com/oauth2/authorize",
            "end_session_endpoint":"https://acme.auth.eu-west-1.amazoncognito.com/logout",
            "issuer":"https://cognito-idp.eu-west-1.amazonaws.com/eu-west-1_ab1",
            "response_types_supported":["code","token"],
            "revocation_endpoint":"https://acme.auth.eu-west-1.amazoncognito.com/oauth2/revoke",
            "scopes_supported":["openid","email","phone","profile"],
            "token_endpoint":"https://acme.auth.eu-west-1.amazoncognito.com/oauth2/token",
            "token_endpoint_auth_methods_supported":["client_secret_basic","client_secret_post"]}"#,
        ),
        "https://acme.auth.eu-west-1.amazoncognito.com/oauth2/token" if body.contains("refresh_token") => json(
            200,
            &format!(
                r#"{{"access_token":"cognito-{number}","id_token":"x.y.z","token_type":"Bearer","expires_in":3600}}"#
            ),
        ),
        "https://acme.auth.eu-west-1.amazoncognito.com/oauth2/token" => json(
            200,
            &format!(
                r#"{{"access_token":"cognito-{number}","refresh_token":"cognito-refresh","id_token":"x.y.z",
                "token_type":"Bearer","expires_in":3600}}"#
            ),
        ),
        "https://acme.auth.eu-west-1.amazoncognito.com/oauth2/revoke" => (200, "text/plain", String::new()),
        _ => not_found(),
    }
}

// covers: B-229, B-245
#[test]
fn cognito_lists_no_pkce_and_rotates_no_refresh_token() {
    // The server and the configuration name the issuer with a slash, and its own document has none.
    let named = format!("{COGNITO}/");
    let mut world = at(&named, Provider { answer: cognito, refuses: no_refusal }, |config| {
        config.registrations = alloc::vec![given(&format!("{COGNITO}/"), secret())];
        config.compat.unlisted_pkce = true;
        let (name, value) = ("audience".into(), "https://mcp.example/mcp".into());
        config.parameters = alloc::vec![Parameter { place: ParameterPlace::Both, name, value }];
    });
    world.log_in_for("mcp/read");
    assert_eq!(world.token().as_deref(), Some("cognito-0"));
    assert_eq!(world.shown("audience").as_deref(), Some("https://mcp.example/mcp"));
    assert_eq!((world.shown("scope").as_deref(), world.shown("prompt")), (Some("mcp/read"), None));
    assert_eq!(world.sent("audience"), Some("https://mcp.example/mcp"));
    assert!(world.pages[0].url.starts_with("https://acme.auth.eu-west-1.amazoncognito.com/oauth2/authorize?"));
    assert_eq!(world.store.record.as_ref().unwrap().entries[0].issuer, COGNITO);
    for number in 1..4 {
        world.pass(Duration::from_secs(3600));
        assert_eq!(world.token(), Some(format!("cognito-{number}")));
        assert_eq!(world.sent("refresh_token"), Some("cognito-refresh"));
    }
    let now = world.now;
    world.flows[0].logout(now);
    world.run();
    assert!(world.reports.contains(&AuthReport::LoggedOut { revoked: Some(true) }), "{:?}", world.reports);
}

const GOOGLE: &str = "https://accounts.google.com";

fn google(url: &str, body: &str, number: usize) -> Answer {
    match url {
        "https://accounts.google.com/.well-known/openid-configuration" => json(
            200,
            "{\n \"issuer\": \"https://accounts.google.com\",\n\
             \"authorization_endpoint\": \"https://accounts.google.com/o/oauth2/v2/auth\",\n\
             \"device_authorization_endpoint\": \"https://oauth2.googleapis.com/device/code\",\n\
             \"token_endpoint\": \"https://oauth2.googleapis.com/token\",\n\
             \"revocation_endpoint\": \"https://oauth2.googleapis.com/revoke\",\n\
             \"scopes_supported\": [\n  \"openid\",\n  \"email\",\n  \"profile\"\n ],\n\
             \"token_endpoint_auth_methods_supported\": [\n  \"client_secret_post\",\n  \"client_secret_basic\"\n ],\n\
             \"code_challenge_methods_supported\": [\n  \"plain\",\n  \"S256\"\n ]\n}\n",
        ),
        "https://oauth2.googleapis.com/token" if body.contains("authorization_code") => json(
            200,
            &format!(
                "{{\n  \"access_token\": \"ya29.{number}\",\n  \"expires_in\": 3599,\n  \"refresh_token\": \"1//0g\",\n\
                 \"scope\": \"https://www.googleapis.com/auth/drive.readonly\",\n  \"token_type\": \"Bearer\"\n}}"
            ),
        ),
        "https://oauth2.googleapis.com/token" => json(
            200,
            &format!(
                "{{\n  \"access_token\": \"ya29.{number}\",\n  \"expires_in\": 3599,\n  \"token_type\": \"Bearer\"\n}}"
            ),
        ),
        "https://oauth2.googleapis.com/revoke" => json(200, "{}"),
        _ => not_found(),
    }
}

// covers: B-245, B-256
#[test]
fn google_gives_a_refresh_token_for_offline_access() {
    let mut world = at(GOOGLE, Provider { answer: google, refuses: no_refusal }, |config| {
        config.registrations = alloc::vec![given(GOOGLE, secret())];
        let (name, value) = ("access_type".into(), "offline".into());
        config.parameters = alloc::vec![Parameter { place: ParameterPlace::Page, name, value }];
        config.prompt = Prompt::Value("consent".into());
    });
    world.log_in_for("https://www.googleapis.com/auth/drive.readonly");
    assert_eq!(world.token().as_deref(), Some("ya29.0"));
    assert_eq!(world.shown("access_type").as_deref(), Some("offline"));
    assert_eq!(world.shown("prompt").as_deref(), Some("consent"));
    assert_eq!(world.shown("scope").as_deref(), Some("https://www.googleapis.com/auth/drive.readonly"));
    assert_eq!(world.sent("access_type"), None);
    for number in 1..3 {
        world.pass(Duration::from_secs(3600));
        assert_eq!(world.token(), Some(format!("ya29.{number}")));
        assert_eq!(world.sent("refresh_token"), Some("1//0g"));
    }
    let now = world.now;
    world.flows[0].logout(now);
    world.run();
    assert!(world.reports.contains(&AuthReport::LoggedOut { revoked: Some(true) }), "{:?}", world.reports);
}

const KEYCLOAK: &str = "https://sso.example/realms/acme";

fn keycloak(url: &str, body: &str, number: usize) -> Answer {
    match url {
        "https://sso.example/.well-known/oauth-authorization-server/realms/acme"
        | "https://sso.example/.well-known/openid-configuration/realms/acme" => {
            json(404, r#"{"error":"Unable to find matching target resource method"}"#)
        }
        "https://sso.example/realms/acme/.well-known/openid-configuration" => json(
            200,
            r#"{"issuer":"https://sso.example/realms/acme",
            "authorization_endpoint":"https://sso.example/realms/acme/protocol/openid-connect/auth",
            "token_endpoint":"https://sso.example/realms/acme/protocol/openid-connect/token",
            "registration_endpoint":"https://sso.example/realms/acme/clients-registrations/openid-connect",
            "scopes_supported":["openid","offline_access","roles"],"code_challenge_methods_supported":["plain","S256"],
            "token_endpoint_auth_methods_supported":["private_key_jwt","client_secret_basic","none"],
            "authorization_response_iss_parameter_supported":true,"tls_client_certificate_bound_access_tokens":true}"#,
        ),
        "https://sso.example/realms/acme/clients-registrations/openid-connect" if body.contains("\"scope\"") => json(
            403,
            r#"{"error":"insufficient_scope",
            "error_description":"Policy 'Allowed Client Scopes' rejected request to client-registration service."}"#,
        ),
        "https://sso.example/realms/acme/clients-registrations/openid-connect" => json(
            201,
            r#"{"redirect_uris":["http://127.0.0.1:4000/callback"],"token_endpoint_auth_method":"none",
            "client_id":"6f1e","client_name":"test","scope":"roles offline_access","client_id_issued_at":1800000000,
            "client_secret_expires_at":0,"registration_access_token":"not-kept",
            "registration_client_uri":"https://sso.example/realms/acme/clients-registrations/openid-connect/6f1e"}"#,
        ),
        "https://sso.example/realms/acme/protocol/openid-connect/token" if body.contains("kc-refresh-1") => {
            json(400, r#"{"error":"invalid_grant","error_description":"Token is not active"}"#)
        }
        "https://sso.example/realms/acme/protocol/openid-connect/token" => json(
            200,
            &format!(
                r#"{{"access_token":"kc-{number}","expires_in":300,"refresh_expires_in":1800,
                "refresh_token":"kc-refresh-{number}",
                "token_type":"Bearer","not-before-policy":0,"session_state":"s","scope":"read offline_access"}}"#
            ),
        ),
        _ => not_found(),
    }
}

// covers: B-233, B-255
#[test]
fn keycloak_refuses_to_register_scopes_that_it_does_not_know() {
    let mut world = at(KEYCLOAK, Provider { answer: keycloak, refuses: no_refusal }, |_| {});
    world.issuer.sends_iss = true;
    world.log_in_for("read");
    assert_eq!(world.token().as_deref(), Some("kc-0"));
    let registrations = &world.issuer.registrations;
    assert!(registrations[0].contains("\"scope\":\"offline_access read\""), "{registrations:?}");
    assert!(!registrations[1].contains("\"scope\""), "{registrations:?}");
    assert_eq!((registrations.len(), world.shown("scope").as_deref()), (2, Some("offline_access read")));
    let stored = format!("{:?}", world.store.record.as_ref().unwrap().to_json());
    assert!(!stored.contains("not-kept"));
    world.pass(Duration::from_secs(300));
    assert_eq!(world.token().as_deref(), Some("kc-1"));
    // The session has ended. The client is still known, and registers once only.
    world.pass(Duration::from_secs(300));
    assert_eq!((world.token().as_deref(), world.pages.len()), (Some("kc-3"), 2));
    assert_eq!(world.issuer.registrations.len(), 2);
}

const GITHUB: &str = "https://github.com/login/oauth";

fn github(url: &str, body: &str, number: usize) -> Answer {
    match url {
        "https://github.com/.well-known/oauth-authorization-server/login/oauth" => json(
            200,
            r#"{"issuer":"https://github.com/login/oauth",
            "authorization_endpoint":"https://github.com/login/oauth/authorize",
            "token_endpoint":"https://github.com/login/oauth/access_token","response_types_supported":["code"],
            "grant_types_supported":["authorization_code","refresh_token"],
            "code_challenge_methods_supported":["S256"]}"#,
        ),
        "https://github.com/login/oauth/access_token" if number == 0 => {
            (200, FORM, "error=bad_verification_code&error_description=The+code+is+incorrect+or+expired.".into())
        }
        "https://github.com/login/oauth/access_token" if body.contains("ghr_2") => {
            (200, FORM, "error=bad_refresh_token&error_description=The+refresh+token+is+expired.".into())
        }
        "https://github.com/login/oauth/access_token" => (
            200,
            FORM,
            format!(
                "access_token=gho_{number}&expires_in=28800&refresh_token=ghr_{number}\
                 &refresh_token_expires_in=15811200&scope=repo%2Cgist&token_type=bearer"
            ),
        ),
        _ => not_found(),
    }
}

// covers: B-255, B-256
#[test]
fn github_answers_in_forms_and_with_errors_at_200() {
    let mut world = at(GITHUB, Provider { answer: github, refuses: no_refusal }, |config| {
        config.registrations = alloc::vec![given(GITHUB, secret())];
    });
    world.log_in_for("repo");
    assert_eq!((world.problem().status, world.problem().error.as_deref()), (Some(200), Some("bad_verification_code")));
    assert_eq!(world.problem().description.as_deref(), Some("The code is incorrect or expired."));
    assert_eq!(world.store.record, None);
    let now = world.now;
    world.flows[0].login(now);
    world.run();
    assert_eq!(world.token().as_deref(), Some("gho_1"));
    let entry = &world.store.record.as_ref().unwrap().entries[0];
    let tokens = entry.tokens.as_ref().unwrap();
    assert_eq!((&tokens.granted, tokens.lifetime), (&Scopes::parse("repo,gist"), Some(28_800)));
    world.pass(Duration::from_secs(28_800));
    assert_eq!(world.token().as_deref(), Some("gho_2"));
    // The dead refresh token is an error that no standard names.
    world.pass(Duration::from_secs(28_800));
    assert_eq!((world.token().as_deref(), world.pages.len()), (Some("gho_4"), 3));
}

const SUPABASE: &str = "https://ab1.supabase.co/auth/v1";

fn supabase(url: &str, body: &str, number: usize) -> Answer {
    match url {
        "https://ab1.supabase.co/.well-known/oauth-authorization-server/auth/v1" => json(
            200,
            r#"{"issuer":"https://ab1.supabase.co/auth/v1",
            "authorization_endpoint":"https://ab1.supabase.co/auth/v1/oauth/authorize",
            "token_endpoint":"https://ab1.supabase.co/auth/v1/oauth/token",
            "registration_endpoint":"https://ab1.supabase.co/auth/v1/oauth/clients/register",
            "scopes_supported":["openid","profile","email","phone"],"code_challenge_methods_supported":["S256","plain"],
            "token_endpoint_auth_methods_supported":["client_secret_basic","client_secret_post","none"]}"#,
        ),
        "https://ab1.supabase.co/auth/v1/oauth/clients/register" => {
            json(201, r#"{"client_id":"5b0c","client_type":"public","token_endpoint_auth_method":"none"}"#)
        }
        "https://ab1.supabase.co/auth/v1/oauth/token" if body.contains("sb-1") => json(
            400,
            r#"{"code":400,"error_code":"refresh_token_not_found",
            "msg":"Invalid Refresh Token: Refresh Token Not Found"}"#,
        ),
        "https://ab1.supabase.co/auth/v1/oauth/token" => json(
            200,
            &format!(
                r#"{{"access_token":"sb-access-{number}","token_type":"bearer","expires_in":3600,
                "expires_at":1800003600,
                "refresh_token":"sb-{number}","scope":"email"}}"#
            ),
        ),
        _ => not_found(),
    }
}

// covers: B-244
#[test]
fn supabase_refuses_a_refresh_token_without_a_code() {
    let mut world = at(SUPABASE, Provider { answer: supabase, refuses: no_refusal }, |_| {});
    world.log_in_for("email");
    assert_eq!(world.token().as_deref(), Some("sb-access-0"));
    world.pass(Duration::from_secs(3600));
    assert_eq!(world.token().as_deref(), Some("sb-access-1"));
    // The user is asked. Nothing is removed before there are other tokens.
    world.pass(Duration::from_secs(3600));
    world.user = User::Declines;
    assert_eq!(world.token(), None);
    assert_eq!(world.ends.last(), Some(&Err(AuthError::Declined)));
    let tokens = world.store.record.as_ref().unwrap().entries[0].tokens.as_ref().unwrap();
    assert_eq!(tokens.refresh_token.as_ref().map(Secret::expose), Some("sb-1"));
    // A program without a user shows the text of the provider.
    let quiet = with(config(), |config| config.interactive = false);
    world.restart(quiet);
    assert_eq!(world.token(), None);
    let why = world.problem().to_string();
    assert!(why.ends_with("/oauth/token: HTTP 400: Invalid Refresh Token: Refresh Token Not Found"), "{why}");
    world.pass(Duration::from_secs(600));
    let now = world.now;
    world.user = User::Accepts;
    world.flows[0].login(now);
    world.run();
    assert_eq!(world.token().as_deref(), Some("sb-access-4"));
}
