//! Our client, with an authorization server and a server around it that note what it composes:
//! proofs for token requests and for requests with a token, and its own assertions.

use super::keys::Key;
use super::{NOW, Rng};
use mcp_driver::keys;
use mcp_proto::ClientConfig;
use mcp_proto::auth::{
    Alg, AuthConfig, ClientAuth, ClientKey, Dpop, GivenClient, Grant, Input, Lease, Output, Registration, StoreFault,
    Stored, Version,
};
use mcp_proto::client::{ClientCommands, Event};
use mcp_proto::exchange::{Action, Closed, ConnectionId, Endpoint, IoEvent, Peer, Shutdown};
use mcp_proto::time::Instant;
use mcp_proto::tools;
use mcp_proto::wired::WiredClient;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// The lifetime of the tokens, in seconds.
const LIFETIME: u64 = 600;

/// The characters of names that have to be written as they are.
const NAMES: [&str; 8] = ["a", "Z9", "\"", "\\", "\u{e9}", "\u{1f511}", "\n", "://"];

/// The characters of nonces (RFC 9449 section 8.1).
const NONCES: [char; 10] = ['a', 'Z', '9', '-', '_', '.', '~', '+', '/', '='];

/// What the client composed.
#[derive(Clone, Debug)]
pub(super) enum SignedSample {
    /// A proof for a request with this method, URL and token, at a server with this nonce.
    Proof {
        text: String,
        token: Option<String>,
        method: String,
        url: String,
        nonce: Option<String>,
        unix: u64,
        alg: Alg,
    },
    /// An assertion of this client for this issuer.
    Assertion { text: String, key: Key, alg: Alg, client: String, kid: String, issuer: String, unix: u64 },
}

/// A client.
pub(super) struct Composer {
    client: WiredClient,
    now: Instant,
    key: Key,
    alg: Alg,
    proof_alg: Alg,
    issuer: String,
    server: String,
    client_id: String,
    kid: String,
    /// The path and what was read of each connection.
    hosts: BTreeMap<ConnectionId, (String, Vec<u8>)>,
    nonces: BTreeMap<String, String>,
    composed: Vec<SignedSample>,
    failure: Option<String>,
    rng: Rng,
}

impl Composer {
    /// A client with this key, which has logged in.
    ///
    /// # Errors
    /// It could not log in.
    pub(super) fn new(key: &Key, seed: u64) -> Result<Self, String> {
        let mut rng = Rng::new(seed);
        let alg = rng.of(key.algs);
        let name = |rng: &mut Rng| (0..1 + rng.below(6)).map(|_| rng.of(&NAMES)).collect::<String>();
        let (client_id, kid) = (format!("c{}", name(&mut rng)), name(&mut rng));
        let path = rng.of(&["", "/", "/mcp", "/a/b%20c", "/mcp?tenant=1", "/%C3%A9"]);
        let issuer = rng.of(&["https://as.example", "https://as.example/tenant", "https://as.example:8443"]).to_owned();
        let server = format!("https://mcp.example{path}");
        let given = ClientKey { key: key.sign_key(), alg, kid: Some(kid.clone()) };
        let auth = ClientAuth::Key(given);
        let mut login = AuthConfig::new("jose");
        login.grant = Grant::ClientCredentials;
        login.registrations =
            vec![Registration::Given(GivenClient { issuer: issuer.clone(), client_id: client_id.clone(), auth })];
        login.dpop = Dpop::Required;
        let mut config = ClientConfig::url(&server).map_err(|why| why.to_string())?;
        config.auth = Some(Arc::new(login));
        config.origin_unix = Duration::from_secs(NOW);
        let mut composer = Self {
            client: WiredClient::new(Arc::new(config), rng.seed(), Instant::ZERO),
            now: Instant::ZERO,
            key: key.clone(),
            alg,
            proof_alg: rng.of(&[Alg::Es256, Alg::EdDsa]),
            issuer,
            server,
            client_id,
            kid,
            hosts: BTreeMap::new(),
            nonces: BTreeMap::new(),
            composed: Vec::new(),
            failure: None,
            rng,
        };
        composer.client.login(Instant::ZERO);
        composer.run()?;
        Ok(composer)
    }

    /// Lets the client call a tool, and sometimes renew its token before it. Returns what it
    /// composed, some of it before.
    ///
    /// # Errors
    /// It composed nothing.
    pub(super) fn next(&mut self) -> Result<Vec<SignedSample>, String> {
        let pause = if self.rng.below(4) == 0 { LIFETIME } else { self.rng.below(3) };
        self.now = self.now + Duration::from_secs(pause);
        self.client.handle_timeout(self.now);
        self.client.call(self.now, tools::call("t")).map_err(|why| why.to_string())?;
        self.run()?;
        let composed = std::mem::take(&mut self.composed);
        if composed.is_empty() { Err(format!("nothing was composed for {}", self.server)) } else { Ok(composed) }
    }

    fn run(&mut self) -> Result<(), String> {
        while let Some(action) = self.client.poll_output() {
            self.handle(action);
        }
        self.failure.take().map_or(Ok(()), Err)
    }

    fn handle(&mut self, action: Action<Event>) {
        match action {
            Action::Open(id, Endpoint::Origin(origin) | Endpoint::Within(origin, _)) => {
                let port = if origin.port == 443 { String::new() } else { format!(":{}", origin.port) };
                self.hosts.insert(id, (format!("https://{}{port}", origin.host), Vec::new()));
                self.client.handle_io(self.now, id, IoEvent::Opened(Peer::default()));
            }
            Action::Secure(id, _) => self.client.handle_io(self.now, id, IoEvent::Secured),
            Action::Write(id, bytes) => {
                self.client.handle_io(self.now, id, IoEvent::Written(bytes.len()));
                let Some((_, read)) = self.hosts.get_mut(&id) else { return };
                read.extend_from_slice(&bytes);
                if let Some((head, body)) = whole(read) {
                    read.clear();
                    self.respond(id, &head, &body);
                }
            }
            Action::Close(id, Shutdown::Abort) => self.client.handle_io(self.now, id, IoEvent::Closed(Closed::Aborted)),
            Action::Close(id, _) => self.client.handle_io(self.now, id, IoEvent::Closed(Closed::Eof)),
            Action::Event(Event::Auth(step)) => self.step(*step),
            Action::Event(Event::Ended { outcome: Err(why), .. }) => self.failure = Some(why.to_string()),
            _ => {}
        }
    }

    fn step(&mut self, step: Output) {
        let answer = match step {
            Output::Lease(step, ..) => Input::Leased(step, Ok(Lease::Held)),
            Output::Load(step, _) => Input::Loaded(step, Ok(Stored::default())),
            Output::Save(step, ..) => Input::Saved(step, Ok(Version(1))),
            Output::NewKey(step, alg) => Input::KeyMade(step, keys::generate(alg).map(Box::new).map_err(StoreFault)),
            Output::Sign(step, request) => {
                let signature = keys::sign(&request.key, request.alg, &request.input);
                Input::Signed(step, signature.map_err(StoreFault))
            }
            Output::Failed(why) => {
                self.failure = Some(format!("{why}"));
                return;
            }
            _ => return,
        };
        self.client.auth(self.now, answer);
    }

    fn respond(&mut self, id: ConnectionId, head: &str, body: &str) {
        let host = self.hosts.get(&id).map(|(host, _)| host.clone()).unwrap_or_default();
        let mut words = head.split(' ');
        let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let field = |name: &str| {
            let mut lines = head.lines().filter_map(|line| line.split_once(':'));
            lines.find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim().to_owned())
        };
        let unix = NOW + (self.now - Instant::ZERO).as_secs();
        if let Some(text) = field("dpop") {
            let token = field("authorization").and_then(|field| Some(field.split_once(' ')?.1.to_owned()));
            let url = format!("{host}{}", target.split('?').next().unwrap_or_default());
            let nonce = self.nonces.get(&host).cloned();
            let (method, alg) = (method.to_owned(), self.proof_alg);
            self.composed.push(SignedSample::Proof { text, token, method, url, nonce, unix, alg });
        }
        let form = |name: &str| {
            let fields = body.split('&').filter_map(|field| field.split_once('='));
            fields.filter(|(known, _)| *known == name).map(|(_, value)| value.to_owned()).next()
        };
        if let Some(text) = form("client_assertion") {
            let (key, alg, issuer) = (self.key.clone(), self.alg, self.issuer.clone());
            let (client, kid) = (self.client_id.clone(), self.kid.clone());
            self.composed.push(SignedSample::Assertion { text, key, alg, client, kid, issuer, unix });
        }
        let (status, json) = self.answer(method, &format!("{host}{target}"), body);
        let nonce = if self.rng.below(3) == 0 && method == "POST" {
            let nonce: String = (0..1 + self.rng.below(12)).map(|_| self.rng.of(&NONCES)).collect();
            self.nonces.insert(host, nonce.clone());
            format!("DPoP-Nonce: {nonce}\r\n")
        } else {
            String::new()
        };
        let body = json.to_string();
        let response = format!(
            "HTTP/1.1 {status} x\r\nContent-Type: application/json\r\n{nonce}Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
        self.client.handle_io(self.now, id, IoEvent::Read(response.into()));
    }

    fn answer(&mut self, method: &str, url: &str, body: &str) -> (u16, Value) {
        let (issuer, server) = (&self.issuer, &self.server);
        let token_url = format!("{issuer}/token");
        match method {
            "GET" if url.contains("/.well-known/oauth-protected-resource") => {
                let own = json!({ "resource": server, "authorization_servers": [issuer] });
                (200, own)
            }
            "GET" if url.contains("/.well-known/oauth-authorization-server") => {
                let own = json!({
                    "issuer": issuer, "token_endpoint": token_url,
                    "token_endpoint_auth_methods_supported": ["private_key_jwt"],
                    "token_endpoint_auth_signing_alg_values_supported": [self.alg.as_str()],
                    "grant_types_supported": ["client_credentials"],
                    "dpop_signing_alg_values_supported": [self.proof_alg.as_str()],
                });
                (200, own)
            }
            "POST" if url == token_url => {
                let token = format!("t{:x}", self.rng.draw());
                (200, json!({ "access_token": token, "token_type": "DPoP", "expires_in": LIFETIME }))
            }
            "POST" => {
                let asked: Value = serde_json::from_str(body).unwrap_or_default();
                let result = match asked["method"].as_str() {
                    Some("server/discover") => json!({
                        "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}},
                        "ttlMs": 0, "cacheScope": "private",
                    }),
                    _ => json!({ "resultType": "complete", "content": [] }),
                };
                (200, json!({ "jsonrpc": "2.0", "id": asked["id"], "result": result }))
            }
            _ => (404, Value::Null),
        }
    }
}

/// Returns the head and the body of a request, if it is whole.
fn whole(read: &[u8]) -> Option<(String, String)> {
    let text = String::from_utf8_lossy(read);
    let (head, body) = text.split_once("\r\n\r\n")?;
    let mut lines = head.lines().filter_map(|line| line.split_once(':'));
    let length = lines.find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    let length: usize = length.and_then(|(_, value)| value.trim().parse().ok()).unwrap_or_default();
    (body.len() >= length).then(|| (head.to_owned(), body.to_owned()))
}
