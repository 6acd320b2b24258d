//! The token endpoint of an issuer: who asks, with what, and what is issued.

use super::check::{Addressee, MARK};
use super::issuer::{Family, Issuer, PROVIDER_PORT, Response, Token};
use super::keys::{Keys, Thumbprint, decode};
use super::settings::GrantKind;
use mcp_proto::Instant;
use mcp_proto::auth::Scopes;
use serde_json::json;
use std::collections::BTreeMap;
use std::time::Duration;

/// The assertions of the platform and of the identity provider.
#[derive(Debug, Default)]
pub(super) struct Assertions {
    /// Those that no issuer has taken, each with the port of its audience, and whether it was sent.
    open: BTreeMap<String, (u16, bool)>,
    issued: u64,
}

impl Assertions {
    /// Issues an assertion for the issuer at this port.
    pub(super) fn issue(&mut self, audience: u16) -> String {
        self.issued += 1;
        let assertion = format!("{MARK}assertion-{}", self.issued);
        self.open.insert(assertion.clone(), (audience, false));
        assertion
    }

    /// Notes that a request carries an assertion. Each is sent once, whatever the response is,
    /// unless this was about a nonce.
    pub(super) fn sent(&mut self, form: &BTreeMap<String, String>, again: bool) {
        let assertion = form.get("assertion").or_else(|| form.get("subject_token"));
        if let Some((_, is_sent)) = assertion.and_then(|assertion| self.open.get_mut(assertion)) {
            assert!(again || !*is_sent, "an assertion is sent twice");
            *is_sent = !again;
        }
    }

    /// Takes an assertion, which counts once. Returns whether it is for this issuer.
    fn take(&mut self, assertion: &str, port: u16) -> bool {
        self.open.remove(assertion).expect("no assertion is sent twice").0 == port
    }
}

/// A request to the token endpoint, or for the code of a device.
#[derive(Debug)]
pub(super) struct TokenRequest<'a> {
    pub(super) now: Instant,
    pub(super) form: &'a BTreeMap<String, String>,
    pub(super) authorization: Option<&'a str>,
    /// The key that it has a proof of.
    pub(super) key: Option<Thumbprint>,
    pub(super) keys: &'a mut Keys,
    pub(super) assertions: &'a mut Assertions,
    /// Whether a bound token is asked for, and a bearer token issued.
    pub(super) unbinds: bool,
    /// Whether the requests of a device are too frequent.
    pub(super) slows_down: bool,
}

impl TokenRequest<'_> {
    fn text(&self, name: &str) -> &str {
        self.form.get(name).unwrap_or_else(|| panic!("no {name} in {:?}", self.form.keys()))
    }
}

impl Issuer {
    /// Returns the client that a request is from. Empty for a workload.
    pub(super) fn client_of(&self, request: &mut TokenRequest<'_>) -> Option<String> {
        if self.settings.grant == GrantKind::Workload {
            assert!(!request.form.contains_key("client_id") && request.authorization.is_none());
            return Some(String::new());
        }
        if let Some(assertion) = request.form.get("client_assertion") {
            let (id, client) = self.clients.iter().next()?;
            request.keys.assertion(assertion, client.key.as_ref()?, id, &self.url());
            return Some(id.clone());
        }
        let basic = request.authorization.and_then(|field| field.strip_prefix("Basic "));
        let basic = basic.map(|field| String::from_utf8(decode(field)).expect("UTF-8"));
        let secret = match basic.as_deref().and_then(|pair| pair.split_once(':')) {
            Some((_, secret)) => Some(secret),
            None => request.form.get("client_secret").map(String::as_str),
        };
        let id = request.form.get("client_id")?;
        let client = self.clients.get(id)?;
        (client.key.is_none() && client.secret.as_deref() == secret).then(|| id.clone())
    }

    pub(super) fn token(&mut self, mut request: TokenRequest<'_>) -> Response {
        if let Some(error) = self.refusal.take() {
            return Response::error(if error == "invalid_client" { 401 } else { 400 }, error);
        }
        let Some(client) = self.client_of(&mut request) else { return Response::error(401, "invalid_client") };
        let scope = request.form.get("scope").map(|scope| Scopes::parse(scope)).unwrap_or_default();
        let key = request.key;
        let family = |client, scope| Family { client, scope, is_alive: true, refresh: String::new(), key };
        let grant = request.text("grant_type").rsplit(':').next().unwrap_or_default();
        let new = match (grant, self.settings.grant) {
            ("authorization_code", GrantKind::Code) => {
                let Some(code) = self.codes.remove(request.text("code")) else { return invalid_grant() };
                let is_whole = request.form.contains_key("code_verifier");
                if code.client != client || code.redirect_uri != request.text("redirect_uri") || !is_whole {
                    return invalid_grant();
                }
                family(client, code.scope)
            }
            ("device_code", GrantKind::Device) => match self.poll(&request, &client) {
                Ok(scope) => family(client, scope),
                Err(error) => return Response::error(400, error),
            },
            ("refresh_token", GrantKind::Code | GrantKind::Device) => return self.renew(&request, &client),
            ("client_credentials", GrantKind::Program) => family(client, scope),
            ("token-exchange", GrantKind::Enterprise) if self.port == PROVIDER_PORT => {
                return self.exchange(&mut request);
            }
            ("jwt-bearer", GrantKind::Workload | GrantKind::Enterprise) if self.port != PROVIDER_PORT => {
                let assertion = request.form["assertion"].clone();
                if !request.assertions.take(&assertion, self.port) {
                    return invalid_grant();
                }
                family(client, scope)
            }
            (grant, expected) => panic!("the grant {grant} at {} in place of {expected:?}", self.port),
        };
        self.grants += u64::from(!self.settings.grant.needs_user());
        self.families.push(new);
        self.issue(&request, self.families.len() - 1)
    }

    /// Answers whether the user has entered the code.
    fn poll(&mut self, request: &TokenRequest<'_>, client: &str) -> Result<Scopes, &'static str> {
        let code = request.text("device_code");
        let device = self.devices.get_mut(code).filter(|device| device.client == client).ok_or("invalid_grant")?;
        let pause = request.now.since(device.asked);
        assert!(pause >= device.interval, "asked again after {pause:?} in place of {:?}", device.interval);
        device.asked = request.now;
        match device.agrees {
            _ if request.now >= device.until => Err("expired_token"),
            None if request.slows_down => {
                device.interval = (device.interval + Duration::from_secs(5)).min(Duration::from_secs(60));
                Err("slow_down")
            }
            None => Err("authorization_pending"),
            Some(false) => Err("access_denied"),
            Some(true) => self.devices.remove(code).map(|device| device.scope).ok_or("invalid_grant"),
        }
    }

    /// Exchanges the login of a user for a grant at another issuer.
    fn exchange(&mut self, request: &mut TokenRequest<'_>) -> Response {
        let subject = request.form["subject_token"].clone();
        if !request.assertions.take(&subject, self.port) {
            return invalid_grant();
        }
        let audience = request.text("audience").rsplit(':').next().and_then(|port| port.parse().ok());
        let audience = audience.expect("the URL of an issuer");
        let grant = request.assertions.issue(audience);
        self.secrets.push((grant.clone(), Addressee::Issuer(audience)));
        let kind = "urn:ietf:params:oauth:token-type:id-jag";
        Response::json(200, &json!({ "access_token": grant, "issued_token_type": kind, "token_type": "N_A" }))
    }

    fn renew(&mut self, request: &TokenRequest<'_>, client: &str) -> Response {
        let token = request.text("refresh_token");
        let Some(&at) = self.refresh.get(token) else { return invalid_grant() };
        let family = &mut self.families[at];
        assert_eq!(request.key, family.key, "a refresh without the proof that its tokens had");
        if family.refresh != *token {
            // The second use of a token: a thief has it, or had it.
            family.is_alive = false;
        }
        if !family.is_alive || family.client != client {
            return invalid_grant();
        }
        self.refreshes += 1;
        self.issue(request, at)
    }

    fn issue(&mut self, request: &TokenRequest<'_>, at: usize) -> Response {
        let key = request.key.filter(|_| !request.unbinds);
        let access = self.mint("access", Addressee::Server(self.port, key));
        let is_new = self.rotates(at) && self.settings.grant.needs_user();
        let refresh = is_new.then(|| self.mint("refresh", Addressee::Issuer(self.port)));
        if let Some(refresh) = &refresh {
            self.refresh.insert(refresh.clone(), at);
            self.families[at].refresh.clone_from(refresh);
        }
        let lifetime = self.settings.lifetime;
        let expires = request.now + Duration::from_secs(lifetime);
        self.access.insert(access.clone(), Token { family: at, expires });
        let scope = self.families[at].scope.to_string();
        let kind = if key.is_some() { "DPoP" } else { "Bearer" };
        let mut answer = json!({ "access_token": access, "token_type": kind, "expires_in": lifetime, "scope": scope });
        if let Some(refresh) = refresh {
            answer["refresh_token"] = refresh.into();
        }
        Response::json(200, &answer)
    }

    fn rotates(&self, at: usize) -> bool {
        self.settings.rotates || self.families[at].refresh.is_empty()
    }
}

fn invalid_grant() -> Response {
    Response::error(400, "invalid_grant")
}
