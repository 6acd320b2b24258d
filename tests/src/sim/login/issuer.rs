//! An authorization server: it registers clients, lets users log in, and issues tokens. The
//! identity provider is one as well.

use super::check::{Addressee, MARK};
use super::keys::Thumbprint;
use super::settings::{ClientKind, Settings};
use mcp_proto::Instant;
use mcp_proto::auth::{Alg, Dpop, Scopes};
use serde_json::json;
use std::collections::BTreeMap;
use std::time::Duration;

/// The ports of the authorization servers of the guarded server, and of the identity provider.
pub(super) const ISSUER_PORTS: [u16; 2] = [9001, 9002];
pub(super) const PROVIDER_PORT: u16 = 9003;
/// The lifetime of a code that a user enters, in seconds, and the interval of the token requests.
pub(super) const CODE_TIME: u64 = 120;
const INTERVAL: Duration = Duration::from_secs(5);

/// A response of a server.
#[derive(Clone, Debug)]
pub(super) struct Response {
    pub(super) status: u16,
    pub(super) fields: Vec<(&'static str, String)>,
    pub(super) body: String,
}

impl Response {
    pub(super) fn json(status: u16, body: &serde_json::Value) -> Self {
        Self { status, fields: vec![("content-type", "application/json".into())], body: body.to_string() }
    }

    pub(super) fn empty(status: u16) -> Self {
        Self { status, fields: Vec::new(), body: String::new() }
    }

    /// An error of an endpoint (RFC 6749 section 5.2).
    pub(super) fn error(status: u16, error: &str) -> Self {
        Self::json(status, &json!({ "error": error }))
    }
}

/// A client that is known.
#[derive(Clone, Debug)]
pub(super) struct Client {
    redirect_uri: String,
    pub(super) secret: Option<String>,
    /// Its private key, with which the signatures of this world are verified.
    pub(super) key: Option<String>,
}

/// A code that was issued.
#[derive(Clone, Debug)]
pub(super) struct Code {
    pub(super) client: String,
    pub(super) redirect_uri: String,
    pub(super) scope: Scopes,
}

/// A code that a user enters at another device.
#[derive(Clone, Debug)]
pub(super) struct Device {
    pub(super) client: String,
    pub(super) scope: Scopes,
    user_code: String,
    /// What the user has decided.
    pub(super) agrees: Option<bool>,
    pub(super) until: Instant,
    /// The interval of the token requests, and the time of the latest one.
    pub(super) interval: Duration,
    pub(super) asked: Instant,
}

/// All tokens of one login.
#[derive(Clone, Debug)]
pub(super) struct Family {
    pub(super) client: String,
    pub(super) scope: Scopes,
    pub(super) is_alive: bool,
    pub(super) refresh: String,
    /// The key that the first request for it had a proof of.
    pub(super) key: Option<Thumbprint>,
}

/// An access token.
#[derive(Clone, Debug)]
pub(super) struct Token {
    pub(super) family: usize,
    pub(super) expires: Instant,
}

/// The authorization server at this port.
#[derive(Debug)]
pub(super) struct Issuer {
    pub(super) port: u16,
    pub(super) settings: Settings,
    pub(super) clients: BTreeMap<String, Client>,
    pub(super) codes: BTreeMap<String, Code>,
    pub(super) devices: BTreeMap<String, Device>,
    pub(super) families: Vec<Family>,
    /// Refresh tokens, with their family. Those that were used stay.
    pub(super) refresh: BTreeMap<String, usize>,
    pub(super) access: BTreeMap<String, Token>,
    minted: u64,
    /// The secrets that were minted since the last time.
    pub(super) secrets: Vec<(String, Addressee)>,
    /// The error of the next token request.
    pub(super) refusal: Option<&'static str>,
    pub(super) refreshes: u64,
    pub(super) grants: u64,
    pub(super) registrations: u64,
}

impl Issuer {
    pub(super) fn new(port: u16, settings: &Settings) -> Self {
        Self {
            port,
            settings: settings.clone(),
            clients: BTreeMap::new(),
            codes: BTreeMap::new(),
            devices: BTreeMap::new(),
            families: Vec::new(),
            refresh: BTreeMap::new(),
            access: BTreeMap::new(),
            minted: 0,
            secrets: Vec::new(),
            refusal: None,
            refreshes: 0,
            grants: 0,
            registrations: 0,
        }
    }

    pub(super) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Mints a text that must not be shown. Each has the marker of this world.
    pub(super) fn mint(&mut self, kind: &str, to: Addressee) -> String {
        self.minted += 1;
        let secret = format!("{MARK}{kind}-{}-{}", self.port, self.minted);
        self.secrets.push((secret.clone(), to));
        secret
    }

    pub(super) fn metadata(&self) -> Response {
        let url = self.url();
        let mut document = json!({
            "issuer": url,
            "authorization_endpoint": format!("{url}/authorize"),
            "token_endpoint": format!("{url}/token"),
            "registration_endpoint": format!("{url}/register"),
            "revocation_endpoint": format!("{url}/revoke"),
            "device_authorization_endpoint": format!("{url}/device"),
            "scopes_supported": ["offline_access"],
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": [self.settings.client.method()],
            "token_endpoint_auth_signing_alg_values_supported": [Alg::Es256.as_str()],
            "authorization_response_iss_parameter_supported": self.settings.names_issuer,
        });
        if self.settings.asks_proofs || self.settings.dpop == Dpop::Required {
            document["dpop_signing_alg_values_supported"] = json!([self.settings.alg.as_str()]);
        }
        Response::json(200, &document)
    }

    pub(super) fn register(&mut self, body: &str) -> Response {
        let request: serde_json::Value = serde_json::from_str(body).expect("a registration is JSON");
        let redirect_uri = request["redirect_uris"][0].as_str().unwrap_or_default().to_owned();
        let is_public = self.settings.client == ClientKind::Public;
        let secret = (!is_public).then(|| self.mint("client", Addressee::Issuer(self.port)));
        self.registrations += 1;
        let client_id = format!("c{}-{}", self.port, self.registrations);
        self.clients.insert(client_id.clone(), Client { redirect_uri, secret: secret.clone(), key: None });
        Response::json(201, &json!({ "client_id": client_id, "client_secret": secret }))
    }

    /// An operator registers a client by hand.
    pub(super) fn give(&mut self, client_id: &str, secret: Option<String>, key: Option<String>) {
        self.clients.insert(client_id.to_owned(), Client { redirect_uri: String::new(), secret, key });
    }

    /// Forgets a client, as an operator does: one that is given for a moment only.
    pub(super) fn forget_client(&mut self) {
        match self.settings.grant.needs_user() {
            true => drop(self.clients.pop_first()),
            false => self.refusal = Some("invalid_client"),
        }
    }

    /// Ends the family of the latest tokens.
    pub(super) fn revoke_latest(&mut self) {
        if let Some(family) = self.families.last_mut() {
            family.is_alive = false;
        }
    }

    /// Ends all access tokens early. Their families live.
    pub(super) fn expire_tokens(&mut self) {
        self.access.clear();
    }

    /// The user agreed at the page with these parameters. Returns the query of the redirect.
    pub(super) fn authorize(&mut self, query: &BTreeMap<String, String>) -> Option<String> {
        let (client, redirect_uri) = (&query["client_id"], &query["redirect_uri"]);
        if self.clients.get(client).is_none_or(|client| client.redirect_uri != *redirect_uri) {
            return None;
        }
        assert_eq!(query["code_challenge_method"], "S256");
        let scope = query.get("scope").map(|scope| Scopes::parse(scope)).unwrap_or_default();
        let code = self.mint("code", Addressee::Issuer(self.port));
        let of = Code { client: client.clone(), redirect_uri: redirect_uri.clone(), scope };
        self.codes.insert(code.clone(), of);
        let iss = match self.settings.names_issuer {
            true => format!("&iss=http%3A%2F%2F127.0.0.1%3A{}", self.port),
            false => String::new(),
        };
        Some(format!("code={code}&state={}{iss}", query["state"]))
    }

    /// A client asks for a code that the user enters at another device.
    pub(super) fn begin_device(&mut self, now: Instant, client: String, form: &BTreeMap<String, String>) -> Response {
        let scope = form.get("scope").map(|scope| Scopes::parse(scope)).unwrap_or_default();
        let code = self.mint("device", Addressee::Issuer(self.port));
        let user_code = self.mint("user", Addressee::Local);
        let until = now + Duration::from_secs(CODE_TIME);
        let (url, interval) = (self.url(), INTERVAL.as_secs());
        let answer = json!({
            "device_code": code, "user_code": user_code, "verification_uri": format!("{url}/enter"),
            "verification_uri_complete": format!("{url}/enter?code={user_code}"), "expires_in": CODE_TIME,
            "interval": interval,
        });
        let device = Device { client, scope, user_code, agrees: None, until, interval: INTERVAL, asked: now };
        self.devices.insert(code, device);
        Response::json(200, &answer)
    }

    /// A user has entered a code, and agrees or not.
    pub(super) fn enter(&mut self, user_code: &str, agrees: bool) {
        for device in self.devices.values_mut().filter(|device| device.user_code == user_code) {
            device.agrees = Some(agrees);
        }
    }

    /// A token ends before its time.
    pub(super) fn revoke(&mut self, form: &BTreeMap<String, String>) -> Response {
        if let Some(&at) = self.refresh.get(&form["token"]) {
            self.families[at].is_alive = false;
        }
        self.access.remove(&form["token"]);
        Response::empty(200)
    }

    /// Returns the scopes of an access token that is valid.
    pub(super) fn scopes(&self, now: Instant, token: &str) -> Option<&Scopes> {
        let token = self.access.get(token).filter(|token| now < token.expires)?;
        Some(&self.families[token.family]).filter(|family| family.is_alive).map(|family| &family.scope)
    }
}
