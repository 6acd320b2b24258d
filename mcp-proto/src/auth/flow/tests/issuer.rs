//! The authorization server of the tests.

use super::rig::{ISSUER, SERVER};
use crate::auth::form;
use crate::auth::step::Browse;
use crate::exchange::{Headers, Reach};
use crate::fetch::{FetchError, FetchRequest, FetchResponse, Redirects};
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use base64::prelude::{BASE64_URL_SAFE_NO_PAD, Engine as _};

/// The answer to the request for a code for another device.
const DEVICE: &str = r#"{"device_code":"device-1","user_code":"ABCD-EFGH","verification_uri":"https://as.example/go",
    "verification_uri_complete":"https://as.example/go?user_code=ABCD-EFGH","expires_in":600,"interval":5}"#;
/// The answer of the identity provider.
const EXCHANGED: &str = r#"{"access_token":"jag-1","token_type":"N_A",
    "issued_token_type":"urn:ietf:params:oauth:token-type:id-jag"}"#;

/// A provider in place of the usual server.
#[derive(Clone, Copy, Debug)]
pub(super) struct Provider {
    /// Answers a request for this URL with this body: with the status, the media type and the body.
    /// The number counts the token requests before it.
    pub(super) answer: fn(&str, &str, usize) -> (u16, &'static str, String),
    /// The parameters of the redirect that refuses the page with this URL.
    pub(super) refuses: fn(&str) -> Option<&'static str>,
}

/// A response in place of the usual one.
type Fault = Result<(u16, String), FetchError>;

/// What the authorization server does.
#[derive(Debug)]
pub(super) struct Issuer {
    pub(super) name: String,
    /// Answers everything but the metadata of the resource.
    pub(super) provider: Option<Provider>,
    pub(super) resource: String,
    pub(super) scopes_supported: Option<&'static str>,
    pub(super) issuer_scopes: Option<&'static str>,
    pub(super) sends_iss: bool,
    pub(super) registers: bool,
    pub(super) revokes: bool,
    pub(super) lifetime: Option<u64>,
    pub(super) rotates: bool,
    pub(super) refreshes: bool,
    /// The ways of authentication, with spaces between them.
    pub(super) auth_methods: &'static str,
    /// Further members of the metadata, each after a comma.
    pub(super) more: &'static str,
    /// The algorithms of proofs, and the nonce that they need.
    pub(super) dpop: Option<&'static str>,
    pub(super) nonce: Option<&'static str>,
    /// Another nonce than it names.
    pub(super) wants: Option<&'static str>,
    /// The proofs of all token requests.
    pub(super) proofs: Vec<Option<String>>,
    /// Responses in place of the usual ones, by the path.
    pub(super) faults: BTreeMap<String, VecDeque<Fault>>,
    tokens: u64,
    codes: u64,
    registered: u64,
    /// The valid refresh tokens, and those that were used.
    pub(super) refresh: Vec<String>,
    pub(super) used: Vec<String>,
    /// The forms of all token requests.
    pub(super) requests: Vec<Vec<(String, String)>>,
    /// The field `Authorization` of each.
    pub(super) authorizations: Vec<Option<String>>,
    /// The forms of all requests for a code for another device, and to an identity provider.
    pub(super) others: Vec<Vec<(String, String)>>,
    pub(super) registrations: Vec<String>,
    pub(super) revocations: Vec<String>,
    /// All URLs, in order.
    pub(super) urls: Vec<String>,
    /// The method of each request, where its connection may lead, and its redirects.
    pub(super) sent: Vec<(String, Reach, Redirects)>,
}

impl Default for Issuer {
    fn default() -> Self {
        Self {
            name: ISSUER.into(),
            provider: None,
            resource: SERVER.into(),
            scopes_supported: None,
            issuer_scopes: None,
            sends_iss: true,
            registers: true,
            revokes: true,
            lifetime: Some(3600),
            rotates: true,
            refreshes: true,
            auth_methods: "none",
            more: "",
            dpop: None,
            nonce: None,
            wants: None,
            proofs: Vec::new(),
            faults: BTreeMap::new(),
            tokens: 0,
            codes: 0,
            registered: 0,
            refresh: Vec::new(),
            used: Vec::new(),
            requests: Vec::new(),
            authorizations: Vec::new(),
            others: Vec::new(),
            registrations: Vec::new(),
            revocations: Vec::new(),
            urls: Vec::new(),
            sent: Vec::new(),
        }
    }
}

fn list(text: &str) -> String {
    format!("[{}]", text.split(' ').map(|scope| format!("\"{scope}\"")).collect::<Vec<_>>().join(","))
}

impl Issuer {
    pub(super) fn answer(&mut self, request: &FetchRequest) -> Result<Box<FetchResponse>, FetchError> {
        let url = request.url.url();
        self.urls.push(url.clone());
        self.sent.push((request.method.to_string(), request.reach, request.redirects));
        let path = request.url.path.clone();
        if let Some(fault) = self.faults.get_mut(&path).and_then(VecDeque::pop_front) {
            return fault.map(|(status, body)| response(status, &body, &url));
        }
        let body = String::from_utf8(request.body.to_vec()).unwrap();
        if let Some(provider) = self.provider.filter(|_| !url.starts_with("https://mcp.example/")) {
            let (status, media_type, text) = (provider.answer)(&url, &body, self.requests.len());
            match request.headers.get("content-type") {
                Some(form::MEDIA_TYPE) => self.requests.push(form::decode(&body)),
                Some(_) => self.registrations.push(body),
                None => {}
            }
            let headers = Headers::new().with("Content-Type", media_type);
            return Ok(Box::new(FetchResponse { headers, ..*response(status, &text, &url) }));
        }
        let (status, body) = match &*path {
            "/.well-known/oauth-protected-resource/mcp" => (200, self.resource_metadata()),
            "/.well-known/oauth-authorization-server" => (200, self.metadata()),
            "/register" if self.registers => {
                self.registered += 1;
                self.registrations.push(body);
                (201, format!("{{\"client_id\":\"client-{}\"}}", self.registered))
            }
            "/token" => {
                self.authorizations.push(request.headers.get("authorization").map(ToString::to_string));
                self.token(&body, request.headers.get("DPoP"))
            }
            "/device" => {
                self.others.push(form::decode(&body));
                (200, DEVICE.into())
            }
            "/exchange" => {
                self.others.push(form::decode(&body));
                (200, EXCHANGED.into())
            }
            "/revoke" => {
                self.revocations.push(body);
                (200, String::new())
            }
            _ => (404, "not found".into()),
        };
        let mut response = response(status, &body, &url);
        self.nonce.into_iter().for_each(|nonce| response.headers.push("DPoP-Nonce", nonce));
        Ok(response)
    }

    fn resource_metadata(&self) -> String {
        let scopes = self.scopes_supported.map(|scopes| format!(",\"scopes_supported\":{}", list(scopes)));
        let (resource, issuer, scopes) = (&self.resource, &self.name, scopes.unwrap_or_default());
        format!("{{\"resource\":\"{resource}\",\"authorization_servers\":[\"{issuer}\"]{scopes}}}")
    }

    fn metadata(&self) -> String {
        let name = &self.name;
        let mut text = format!(
            "{{\"issuer\":\"{name}\",\"authorization_endpoint\":\"{name}/authorize\",\"token_endpoint\":\"{name}/token\",\
             \"code_challenge_methods_supported\":[\"S256\"],\"token_endpoint_auth_methods_supported\":{},\
             \"authorization_response_iss_parameter_supported\":{}{}",
            list(self.auth_methods),
            self.sends_iss,
            self.more
        );
        for (is_on, member) in
            [(self.registers, "registration_endpoint\":\"/register"), (self.revokes, "revocation_endpoint\":\"/revoke")]
        {
            if is_on {
                let (member, path) = member.split_once("\":\"").unwrap();
                text += &format!(",\"{member}\":\"{name}{path}\"");
            }
        }
        if let Some(algs) = self.dpop {
            text += &format!(",\"dpop_signing_alg_values_supported\":{}", list(algs));
        }
        if let Some(scopes) = self.issuer_scopes {
            text += &format!(",\"scopes_supported\":{}", list(scopes));
        }
        text + "}"
    }

    fn token(&mut self, body: &str, proof: Option<&str>) -> (u16, String) {
        self.proofs.push(proof.map(ToString::to_string));
        let has_nonce = proof.is_none_or(|proof| claim(proof, "nonce").as_deref() == self.wants.or(self.nonce));
        if !has_nonce {
            return (400, "{\"error\":\"use_dpop_nonce\"}".into());
        }
        let kind_of_token = if proof.is_some() && self.dpop.is_some() { "DPoP" } else { "Bearer" };
        let form = form::decode(body);
        let get = |name: &str| form.iter().find(|(key, _)| key == name).map(|(_, value)| value.clone());
        let (kind, refresh) = (get("grant_type"), get("refresh_token"));
        self.requests.push(form);
        if kind.as_deref() == Some("refresh_token") {
            let token = refresh.unwrap();
            if self.used.contains(&token) {
                // The whole family is dead.
                self.refresh.clear();
            }
            if !self.refresh.contains(&token) {
                return (400, "{\"error\":\"invalid_grant\"}".into());
            }
            if self.rotates {
                self.refresh.retain(|known| *known != token);
                self.used.push(token);
            }
        }
        self.tokens += 1;
        let number = self.tokens;
        let mut text = format!("{{\"access_token\":\"access-{number}\",\"token_type\":\"{kind_of_token}\"");
        if self.refreshes && (self.rotates || kind.as_deref() != Some("refresh_token")) {
            self.refresh.push(format!("refresh-{number}"));
            text += &format!(",\"refresh_token\":\"refresh-{number}\"");
        }
        if let Some(lifetime) = self.lifetime {
            text += &format!(",\"expires_in\":{lifetime}");
        }
        (200, text + "}")
    }

    /// Answers a page with the URL of its redirect.
    pub(super) fn page(&mut self, browse: &Browse) -> String {
        self.codes += 1;
        let iss = if self.sends_iss { format!("&iss={}", form::encode_component(&self.name)) } else { String::new() };
        let state = query(&browse.url, "state").unwrap();
        if let Some(refusal) = self.provider.and_then(|provider| (provider.refuses)(&browse.url)) {
            return format!("{}?{refusal}&state={state}", browse.redirect_uri);
        }
        format!("{}?code=code-{}&state={state}{iss}", browse.redirect_uri, self.codes)
    }

    pub(super) fn fault(&mut self, path: &str, status: u16, body: &str) {
        self.faults.entry(path.into()).or_default().push_back(Ok((status, body.into())));
    }

    pub(super) fn count(&self, path: &str) -> usize {
        self.urls.iter().filter(|url| url.ends_with(path)).count()
    }
}

pub(super) fn response(status: u16, body: &str, url: &str) -> Box<FetchResponse> {
    let headers = Headers::new().with("Content-Type", "application/json");
    Box::new(FetchResponse { status, headers, body: body.to_string().into(), url: url.into(), redirect: None })
}

/// Returns a text of the payload of a proof.
pub(super) fn claim(proof: &str, name: &str) -> Option<String> {
    let payload = BASE64_URL_SAFE_NO_PAD.decode(proof.split('.').nth(1)?).unwrap();
    let payload: serde_json::Value = serde_json::from_slice(&payload).unwrap();
    payload[name].as_str().map(ToString::to_string)
}

/// Returns a parameter of a URL.
pub(super) fn query(url: &str, name: &str) -> Option<String> {
    let (_, query) = url.split_once('?')?;
    form::decode(query).into_iter().find(|(key, _)| key == name).map(|(_, value)| value)
}
