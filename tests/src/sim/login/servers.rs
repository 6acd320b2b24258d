//! The requests of a process, and the responses of the servers.

use super::super::fault::Fault;
use super::super::report::LoginInput;
use super::issuer::Response;
use super::keys::Proof;
use super::store::ProcessId;
use super::tokens::TokenRequest;
use super::world::{LONG, SERVER_PORT, SimEvent, World};
use mcp_proto::Instant;
use mcp_proto::client::Client;
use mcp_proto::exchange::{ExchangeEvent, ExchangeId, Headers, Inbound, Origin, Peer, RequestHead, ResponseHead};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

/// How long a nonce is the latest one, in seconds. It is accepted twice as long.
const NONCE_TIME: u64 = 120;

/// A request of a process.
#[derive(Debug)]
pub(super) struct Request<'a> {
    pub(super) port: u16,
    pub(super) path: &'a str,
    pub(super) head: &'a RequestHead,
    pub(super) body: &'a str,
    /// Whether it is one of the login.
    pub(super) is_fetch: bool,
}

impl<'a> Request<'a> {
    fn field(&self, name: &str) -> Option<&'a str> {
        self.head.headers.get(name)
    }
}

/// The nonces of the servers. One follows from the time, and from the number of their changes.
#[derive(Debug, Default)]
pub(super) struct Nonces {
    changes: u64,
}

impl Nonces {
    fn at(&self, port: u16, slot: u64) -> String {
        format!("n{port}-{}-{slot}", self.changes)
    }

    fn latest(&self, port: u16, now: Instant) -> String {
        self.at(port, now.since_origin().as_secs() / NONCE_TIME)
    }

    fn accepts(&self, port: u16, now: Instant, nonce: Option<&str>) -> bool {
        let slot = now.since_origin().as_secs() / NONCE_TIME;
        let is = |slot| nonce == Some(&self.at(port, slot));
        is(slot) || slot.checked_sub(1).is_some_and(is)
    }
}

/// Returns whether an exchange is one of the login.
pub(super) const fn is_fetch(exchange: ExchangeId) -> bool {
    exchange.0 >> 63 == 1
}

impl World {
    pub(super) fn begin_exchange(
        &mut self,
        at: usize,
        exchange: ExchangeId,
        origin: &Origin,
        head: &RequestHead,
        body: &[u8],
    ) {
        let body = String::from_utf8_lossy(body).into_owned();
        let path = head.target.split('?').next().unwrap_or_default();
        let request = Request { port: origin.port, path, head, body: &body, is_fetch: is_fetch(exchange) };
        let unix = self.processes[at].unix(self.now);
        let proof = self.checks.sent(&mut self.keys, &request, unix);
        let renews = ["refresh_token", "client_credentials", "token-exchange", "jwt-bearer"];
        let is_renewal = request.is_fetch && path == "/token" && {
            let form = form(&body);
            let grant = form.get("grant_type").and_then(|grant| grant.rsplit(':').next());
            grant.is_some_and(|grant| renews.contains(&grant))
        };
        if is_renewal && !self.scenario.settings.store_fails {
            let open = self.processes.iter().flat_map(|process| process.open.values()).filter(|renews| **renews);
            assert_eq!(open.count(), 0, "two renewals of one record");
        }
        self.processes[at].open.insert(exchange, is_renewal);
        let id = self.processes[at].id;
        let after = match request.is_fetch || self.scenario.faults == 0 {
            true => self.soon(),
            // The response meets any state of the login.
            false => Duration::from_millis(self.rng.of(&[200, 400, 1000, 10_000])),
        };
        if self.chaos.hit(Fault::Lost, 60) {
            self.disturb();
            // Half of the requests arrive, and their responses are lost.
            if self.rng.per_mille(500) {
                self.answer(&request, proof.as_ref());
            }
            return self.later(after, SimEvent::Fail(id, exchange));
        }
        let mut response = self.answer(&request, proof.as_ref());
        if self.scenario.settings.nonces {
            response.fields.push(("dpop-nonce", self.nonces.latest(request.port, self.now)));
        }
        let after = if self.chaos.hit(Fault::Late, 40) {
            self.disturb();
            LONG
        } else {
            after
        };
        self.later(after, SimEvent::Respond(id, exchange, response));
    }

    /// Returns the response of a server to a request.
    fn answer(&mut self, request: &Request<'_>, proof: Option<&Proof>) -> Response {
        if !request.is_fetch {
            return self.serve(request, proof);
        }
        let form = form(request.body);
        self.assertions.sent(&form, false);
        if let Some(response) = self.wrong(request) {
            self.disturb();
            return response;
        }
        if request.port == SERVER_PORT {
            return match request.path {
                "/.well-known/oauth-protected-resource/mcp" => Response::json(200, &self.resource()),
                _ => Response::empty(404),
            };
        }
        if proof.is_some() && self.refuses_nonce(request.port, proof) {
            self.assertions.sent(&form, true);
            return Response::error(400, "use_dpop_nonce");
        }
        let needs_user = self.scenario.settings.grant.needs_user();
        let is_token = request.path == "/token";
        if is_token && !needs_user && self.hit(Fault::GrantRefused, 100) {
            return Response::error(400, self.rng.of(&["invalid_grant", "invalid_scope", "unauthorized_client"]));
        }
        let unbinds = is_token && proof.is_some() && self.hit(Fault::TokenUnbound, 100);
        let is_poll = form.get("grant_type").is_some_and(|grant| grant.ends_with("device_code"));
        let slows_down = is_poll && self.hit(Fault::SlowDown, 200);
        let issuer = self.issuers.iter_mut().find(|issuer| issuer.port == request.port).expect("a known port");
        let mut question = TokenRequest {
            now: self.now,
            form: &form,
            authorization: request.field("authorization"),
            key: proof.map(|proof| proof.key),
            keys: &mut self.keys,
            assertions: &mut self.assertions,
            unbinds,
            slows_down,
        };
        let response = match request.path {
            "/.well-known/oauth-authorization-server" => issuer.metadata(),
            "/register" => issuer.register(request.body),
            "/device" => match issuer.client_of(&mut question) {
                Some(client) => issuer.begin_device(self.now, client, &form),
                None => Response::error(401, "invalid_client"),
            },
            "/token" => issuer.token(question),
            "/revoke" => issuer.revoke(&form),
            _ => Response::empty(404),
        };
        self.checks.minted(std::mem::take(&mut issuer.secrets));
        response
    }

    /// Returns whether a server refuses a proof, since it wants another nonce.
    fn refuses_nonce(&mut self, port: u16, proof: Option<&Proof>) -> bool {
        if !self.scenario.settings.nonces {
            return false;
        }
        if self.hit(Fault::NonceChanged, 60) {
            self.nonces.changes += 1;
        }
        let nonce = proof.and_then(|proof| proof.nonce.as_deref());
        !self.nonces.accepts(port, self.now, nonce)
    }

    fn resource(&self) -> Value {
        let mut document = json!({
            "resource": format!("http://127.0.0.1:{SERVER_PORT}/mcp"),
            "authorization_servers": [self.issuers[self.current].url()],
        });
        if self.scenario.settings.asks_proofs {
            document["dpop_signing_alg_values_supported"] = json!([self.scenario.settings.alg.as_str()]);
        }
        document
    }

    /// Returns a response that is wrong, if there is a fault here.
    fn wrong(&mut self, request: &Request<'_>) -> Option<Response> {
        let here = format!("http://127.0.0.1:{}{}", request.port, request.head.target);
        let is_document = request.path.starts_with("/.well-known/");
        let documents = [Fault::DocumentLoop, Fault::IssuerDown, Fault::IssuerBusy];
        let endpoints = [Fault::IssuerDown, Fault::IssuerBusy, Fault::ErrorAtSuccess];
        let fault = match (request.port == SERVER_PORT, is_document) {
            (true, _) => self.chaos.pick(&[Fault::ResourceDocument, Fault::DocumentLoop, Fault::IssuerDown], 60)?,
            (false, true) if self.rng.per_mille(400) => self.chaos.pick(&[Fault::IssuerDocument], 150)?,
            (false, true) => self.chaos.pick(&documents, 60)?,
            (false, false) => self.chaos.pick(&endpoints, 100)?,
        };
        Some(match fault {
            Fault::DocumentLoop => Response { fields: vec![("location", here)], ..Response::empty(302) },
            Fault::IssuerDown => Response::empty(self.rng.of(&[500, 502, 503, 504])),
            Fault::IssuerBusy => Response { fields: vec![("retry-after", "2".into())], ..Response::empty(429) },
            Fault::ErrorAtSuccess => Response::error(200, "temporarily_unavailable"),
            _ if self.rng.per_mille(500) => Response { body: "<html>".into(), ..Response::empty(200) },
            Fault::ResourceDocument => Response::json(
                200,
                &json!({ "resource": "http://127.0.0.1:7777/mcp", "authorization_servers": ["http://127.0.0.1:9001"] }),
            ),
            _ => Response::json(
                200,
                &json!({
                    "issuer": "http://127.0.0.1:7777", "authorization_endpoint": "http://127.0.0.1:7777/a",
                    "token_endpoint": "http://127.0.0.1:7777/t", "code_challenge_methods_supported": ["S256"],
                }),
            ),
        })
    }

    /// The guarded server: it serves valid tokens of its issuer.
    fn serve(&mut self, request: &Request<'_>, proof: Option<&Proof>) -> Response {
        if self.hit(Fault::TokenRevoked, 40) {
            self.issuers[self.current].expire_tokens();
        }
        if proof.is_some() {
            if self.hit(Fault::ProofRefused, 60) {
                return self.challenge(401, "invalid_dpop_proof", "basic");
            }
            if self.refuses_nonce(SERVER_PORT, proof) {
                return self.challenge(401, "use_dpop_nonce", "basic");
            }
        }
        let token = request.field("authorization").and_then(|field| field.split_once(' ')).map(|(_, token)| token);
        let granted = token.and_then(|token| self.issuers[self.current].scopes(self.now, token)).cloned();
        let Some(granted) = granted else { return self.challenge(401, "invalid_token", "basic") };
        let message: Value = serde_json::from_str(request.body).expect("a message");
        let id = &message["id"];
        let needed: Vec<&str> = match message["params"]["name"].as_str() {
            Some("write") => self.demanded.iter().map(String::as_str).collect(),
            _ => vec!["basic"],
        };
        if !needed.iter().all(|scope| granted.contains(scope)) {
            return self.challenge(403, "insufficient_scope", &needed.join(" "));
        }
        let result = match message["method"].as_str() {
            Some("server/discover") => json!({
                "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}},
                "ttlMs": 0, "cacheScope": "private",
                "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "guarded", "version": "1"}},
            }),
            _ => json!({ "content": [], "resultType": "complete" }),
        };
        Response::json(200, &json!({ "jsonrpc": "2.0", "id": id, "result": result }))
    }

    /// Returns a refusal of the guarded server.
    pub(super) fn challenge(&self, status: u16, error: &str, scope: &str) -> Response {
        let settings = &self.scenario.settings;
        let metadata = format!("http://127.0.0.1:{SERVER_PORT}/.well-known/oauth-protected-resource/mcp");
        let rest = format!("error=\"{error}\", scope=\"{scope}\", resource_metadata=\"{metadata}\"");
        let mut fields = Vec::new();
        let is_of_proof = matches!(error, "use_dpop_nonce" | "invalid_dpop_proof");
        if !is_of_proof {
            fields.push(("www-authenticate", format!("Bearer {rest}")));
        }
        if settings.asks_proofs || is_of_proof {
            fields.push(("www-authenticate", format!("DPoP algs=\"{}\", {rest}", settings.alg.as_str())));
        }
        Response { fields, ..Response::empty(status) }
    }

    pub(super) fn respond(&mut self, id: ProcessId, exchange: ExchangeId, response: Response) {
        let is_fetch = is_fetch(exchange);
        if !is_fetch && matches!(response.status, 401 | 403) {
            self.count_exchange(id, exchange, LoginInput::Refused);
        }
        self.exchange_ends(id, exchange, |client, now| {
            let mut item = |item| client.handle_event(now, exchange, ExchangeEvent::Inbound(item));
            let headers = response.fields.iter().fold(Headers::new(), |all, (name, value)| all.with(name, value));
            item(Inbound::Response(ResponseHead { status: response.status, headers }));
            let body = response.body;
            match (is_fetch, body.is_empty()) {
                (_, true) => {}
                (true, false) => item(Inbound::Body(body.into())),
                (false, false) => {
                    item(Inbound::Message(mcp_proto::rpc::parse(body.into(), 128).expect("a message")));
                }
            }
            item(Inbound::End);
        });
    }

    fn count_exchange(&mut self, id: ProcessId, exchange: ExchangeId, input: LoginInput) {
        if let Some(at) = self.place(id).filter(|at| self.processes[*at].open.contains_key(&exchange)) {
            self.count(at, input);
        }
    }

    pub(super) fn exchange_ends(
        &mut self,
        id: ProcessId,
        exchange: ExchangeId,
        end: impl FnOnce(&mut Client, Instant),
    ) {
        if is_fetch(exchange) {
            self.count_exchange(id, exchange, LoginInput::Fetched);
        }
        let Some(at) = self.place(id) else { return };
        if self.processes[at].open.remove(&exchange).is_none() {
            return;
        }
        let now = self.now;
        let client = &mut self.processes[at].client;
        client.handle_event(now, exchange, ExchangeEvent::Opened(Peer::tcp(([127, 0, 0, 1], SERVER_PORT).into())));
        end(client, now);
        self.drain(at);
    }
}

/// Reads a form. Names are not encoded in what a client writes.
pub(super) fn form(text: &str) -> BTreeMap<String, String> {
    let pairs = text.split('&').filter_map(|pair| pair.split_once('='));
    pairs.map(|(name, value)| (name.to_owned(), decode(value))).collect()
}

fn decode(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        match byte {
            b'%' => {
                let digits = [rest.next(), rest.next()].map(|digit| digit.map_or('0', char::from));
                let digits: String = digits.iter().collect();
                bytes.push(u8::from_str_radix(&digits, 16).expect("two hex digits"));
            }
            b'+' => bytes.push(b' '),
            other => bytes.push(other),
        }
    }
    String::from_utf8(bytes).expect("UTF-8")
}
