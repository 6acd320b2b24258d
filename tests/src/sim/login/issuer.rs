//! An authorization server: it registers clients, issues and rotates tokens, and revokes the family
//! of a refresh token that is used twice.

use mcp_proto::Instant;
use mcp_proto::auth::Scopes;
use serde_json::json;
use std::collections::BTreeMap;
use std::time::Duration;

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
    fn error(status: u16, error: &str) -> Self {
        Self::json(status, &json!({ "error": error }))
    }
}

/// A registered client.
#[derive(Clone, Debug)]
struct Client {
    redirect_uri: String,
    secret: String,
}

/// A code that was issued.
#[derive(Clone, Debug)]
struct Code {
    client: String,
    redirect_uri: String,
    scope: Scopes,
}

/// All tokens of one login.
#[derive(Clone, Debug)]
struct Family {
    client: String,
    scope: Scopes,
    is_alive: bool,
    refresh: String,
}

/// An access token.
#[derive(Clone, Debug)]
struct Token {
    family: usize,
    expires: Instant,
}

/// Whom a secret may reach.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Addressee {
    /// This issuer.
    Issuer(u16),
    /// The guarded server, and the issuer that revokes it.
    Server(u16),
}

/// The authorization server at this port.
#[derive(Debug)]
pub(super) struct Issuer {
    pub(super) port: u16,
    lifetime: Duration,
    rotates: bool,
    names_itself: bool,
    clients: BTreeMap<String, Client>,
    codes: BTreeMap<String, Code>,
    families: Vec<Family>,
    /// Refresh tokens, with their family. Those that were used stay.
    refresh: BTreeMap<String, usize>,
    access: BTreeMap<String, Token>,
    minted: u64,
    /// The secrets that were minted since the last time.
    pub(super) secrets: Vec<(String, Addressee)>,
    pub(super) refreshes: u64,
    pub(super) registrations: u64,
}

impl Issuer {
    pub(super) fn new(port: u16, lifetime: u64, rotates: bool, names_itself: bool) -> Self {
        Self {
            port,
            lifetime: Duration::from_secs(lifetime),
            rotates,
            names_itself,
            clients: BTreeMap::new(),
            codes: BTreeMap::new(),
            families: Vec::new(),
            refresh: BTreeMap::new(),
            access: BTreeMap::new(),
            minted: 0,
            secrets: Vec::new(),
            refreshes: 0,
            registrations: 0,
        }
    }

    pub(super) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Mints a text that must not be shown. Each has the marker of this world.
    fn mint(&mut self, kind: &str, to: Addressee) -> String {
        self.minted += 1;
        let secret = format!("{}{kind}-{}-{}", super::check::MARK, self.port, self.minted);
        self.secrets.push((secret.clone(), to));
        secret
    }

    /// Responds to a request.
    pub(super) fn respond(
        &mut self,
        now: Instant,
        path: &str,
        form: &BTreeMap<String, String>,
        body: &str,
    ) -> Response {
        match path {
            "/.well-known/oauth-authorization-server" => self.metadata(),
            "/register" => self.register(body),
            "/token" => self.token(now, form),
            "/revoke" => self.revoke(form),
            _ => Response::empty(404),
        }
    }

    fn metadata(&self) -> Response {
        let url = self.url();
        Response::json(
            200,
            &json!({
                "issuer": url,
                "authorization_endpoint": format!("{url}/authorize"),
                "token_endpoint": format!("{url}/token"),
                "registration_endpoint": format!("{url}/register"),
                "revocation_endpoint": format!("{url}/revoke"),
                "scopes_supported": ["offline_access"],
                "code_challenge_methods_supported": ["S256"],
                "token_endpoint_auth_methods_supported": ["client_secret_post"],
                "authorization_response_iss_parameter_supported": self.names_itself,
            }),
        )
    }

    fn register(&mut self, body: &str) -> Response {
        let request: serde_json::Value = serde_json::from_str(body).expect("a registration is JSON");
        let redirect_uri = request["redirect_uris"][0].as_str().expect("a redirect URI").to_owned();
        let secret = self.mint("client", Addressee::Issuer(self.port));
        let client_id = format!("c{}-{}", self.port, self.minted);
        self.registrations += 1;
        let client = Client { redirect_uri, secret: secret.clone() };
        self.clients.insert(client_id.clone(), client);
        Response::json(201, &json!({ "client_id": client_id, "client_secret": secret }))
    }

    /// Forgets a client, as an operator does. Returns whether there was one.
    pub(super) fn forget_client(&mut self) -> bool {
        self.clients.pop_first().is_some()
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
        let iss =
            if self.names_itself { format!("&iss=http%3A%2F%2F127.0.0.1%3A{}", self.port) } else { String::new() };
        Some(format!("code={code}&state={}{iss}", query["state"]))
    }

    fn token(&mut self, now: Instant, form: &BTreeMap<String, String>) -> Response {
        let id = form.get("client_id").cloned().unwrap_or_default();
        let is_known = self.clients.get(&id).is_some_and(|client| form.get("client_secret") == Some(&client.secret));
        if !is_known {
            return Response::error(401, "invalid_client");
        }
        let family = match form["grant_type"].as_str() {
            "authorization_code" => {
                let Some(code) = self.codes.remove(&form["code"]) else { return Response::error(400, "invalid_grant") };
                if code.client != id || code.redirect_uri != form["redirect_uri"] || !form.contains_key("code_verifier")
                {
                    return Response::error(400, "invalid_grant");
                }
                let family = Family { client: id, scope: code.scope, is_alive: true, refresh: String::new() };
                self.families.push(family);
                self.families.len() - 1
            }
            "refresh_token" => {
                let token = &form["refresh_token"];
                let Some(&at) = self.refresh.get(token) else { return Response::error(400, "invalid_grant") };
                let family = &mut self.families[at];
                if family.refresh != *token {
                    // The second use of a token: a thief has it, or had it.
                    family.is_alive = false;
                }
                if !family.is_alive || family.client != id {
                    return Response::error(400, "invalid_grant");
                }
                self.refreshes += 1;
                at
            }
            other => panic!("the grant {other}"),
        };
        self.issue(now, family)
    }

    fn issue(&mut self, now: Instant, at: usize) -> Response {
        let access = self.mint("access", Addressee::Server(self.port));
        let is_new = self.rotates || self.families[at].refresh.is_empty();
        let refresh = is_new.then(|| self.mint("refresh", Addressee::Issuer(self.port)));
        if let Some(refresh) = &refresh {
            self.refresh.insert(refresh.clone(), at);
            self.families[at].refresh.clone_from(refresh);
        }
        self.access.insert(access.clone(), Token { family: at, expires: now + self.lifetime });
        let scope = self.families[at].scope.to_string();
        let mut answer = json!({
            "access_token": access, "token_type": "Bearer", "expires_in": self.lifetime.as_secs(), "scope": scope,
        });
        if let Some(refresh) = refresh {
            answer["refresh_token"] = refresh.into();
        }
        Response::json(200, &answer)
    }

    fn revoke(&mut self, form: &BTreeMap<String, String>) -> Response {
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
