//! The requests of a process, and the responses of the servers.

use super::super::fault::Fault;
use super::issuer::Response;
use super::store::ProcessId;
use super::world::{LONG, SERVER_PORT, SimEvent, World};
use mcp_proto::Instant;
use mcp_proto::client::Client;
use mcp_proto::exchange::{ExchangeEvent, ExchangeId, Headers, Inbound, Origin, Peer, RequestHead, ResponseHead};
use serde_json::{Value, json};
use std::collections::BTreeMap;

impl World {
    pub(super) fn begin_exchange(
        &mut self,
        at: usize,
        exchange: ExchangeId,
        origin: &Origin,
        head: &RequestHead,
        body: &[u8],
        raw: bool,
    ) {
        let body = String::from_utf8_lossy(body).into_owned();
        self.checks.sent(origin, head, &body);
        let is_refresh = raw && body.contains("grant_type=refresh_token");
        if is_refresh && !self.scenario.settings.store_fails {
            let open = self.processes.iter().flat_map(|process| process.open.values()).filter(|refresh| **refresh);
            assert_eq!(open.count(), 0, "two refreshes of one record");
        }
        self.processes[at].open.insert(exchange, is_refresh);
        let id = self.processes[at].id;
        let after = self.soon();
        if self.chaos.hit(Fault::Lost, 60) {
            self.disturb();
            // Half of the requests arrive, and their responses are lost.
            if self.rng.per_mille(500) {
                self.answer(origin, head, &body, raw);
            }
            return self.later(after, SimEvent::Fail(id, exchange));
        }
        let response = self.answer(origin, head, &body, raw);
        let after = if self.chaos.hit(Fault::Late, 40) {
            self.disturb();
            LONG
        } else {
            after
        };
        self.later(after, SimEvent::Respond(id, exchange, response));
    }

    /// Returns the response of a server to a request.
    fn answer(&mut self, origin: &Origin, head: &RequestHead, body: &str, raw: bool) -> Response {
        let path = head.target.split('?').next().unwrap_or_default().to_owned();
        if !raw {
            return self.serve(head, body);
        }
        if let Some(response) = self.wrong(origin, &path, &head.target) {
            self.disturb();
            return response;
        }
        if origin.port == SERVER_PORT {
            return match path.as_str() {
                "/.well-known/oauth-protected-resource/mcp" => Response::json(200, &self.resource()),
                _ => Response::empty(404),
            };
        }
        let now = self.now;
        let issuer = self.issuers.iter_mut().find(|issuer| issuer.port == origin.port).expect("a known port");
        let response = issuer.respond(now, &path, &form(body), body);
        self.checks.minted(std::mem::take(&mut issuer.secrets));
        response
    }

    fn resource(&self) -> Value {
        json!({
            "resource": format!("http://127.0.0.1:{SERVER_PORT}/mcp"),
            "authorization_servers": [self.issuers[self.current].url()],
        })
    }

    /// Returns a response that is wrong, if there is a fault here.
    fn wrong(&mut self, origin: &Origin, path: &str, target: &str) -> Option<Response> {
        let here = format!("http://127.0.0.1:{}{target}", origin.port);
        let is_document = path.starts_with("/.well-known/");
        let documents = [Fault::DocumentLoop, Fault::IssuerDown, Fault::IssuerBusy];
        let fault = match (origin.port == SERVER_PORT, is_document) {
            (true, _) => self.chaos.pick(&[Fault::ResourceDocument, Fault::DocumentLoop, Fault::IssuerDown], 60)?,
            (false, true) if self.rng.per_mille(400) => self.chaos.pick(&[Fault::IssuerDocument], 150)?,
            (false, true) => self.chaos.pick(&documents, 60)?,
            (false, false) => self.chaos.pick(&[Fault::IssuerDown, Fault::IssuerBusy, Fault::ErrorAtSuccess], 100)?,
        };
        Some(match fault {
            Fault::DocumentLoop => Response { fields: vec![("location", here)], ..Response::empty(302) },
            Fault::IssuerDown => Response::empty(self.rng.of(&[500, 502, 503, 504])),
            Fault::IssuerBusy => Response { fields: vec![("retry-after", "2".into())], ..Response::empty(429) },
            Fault::ErrorAtSuccess => Response::json(200, &json!({ "error": "temporarily_unavailable" })),
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
    fn serve(&mut self, head: &RequestHead, body: &str) -> Response {
        if self.chaos.hit(Fault::TokenRevoked, 40) {
            self.issuers[self.current].expire_tokens();
            self.disturb();
        }
        let token = head.headers.get("authorization").and_then(|field| field.strip_prefix("Bearer "));
        let granted = token.and_then(|token| self.issuers[self.current].scopes(self.now, token)).cloned();
        let challenge = |status, error: &str, scope: &str| {
            let metadata = format!("http://127.0.0.1:{SERVER_PORT}/.well-known/oauth-protected-resource/mcp");
            let field = format!("Bearer {error}scope=\"{scope}\", resource_metadata=\"{metadata}\"");
            Response { fields: vec![("www-authenticate", field)], ..Response::empty(status) }
        };
        let Some(granted) = granted else { return challenge(401, "", "basic") };
        let message: Value = serde_json::from_str(body).expect("a message");
        let id = &message["id"];
        let needed: Vec<&str> = match message["params"]["name"].as_str() {
            Some("write") => self.demanded.iter().map(String::as_str).collect(),
            _ => vec!["basic"],
        };
        if !needed.iter().all(|scope| granted.contains(scope)) {
            return challenge(403, "error=\"insufficient_scope\", ", &needed.join(" "));
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

    pub(super) fn respond(&mut self, id: ProcessId, exchange: ExchangeId, response: Response) {
        let raw = exchange.0 >> 63 == 1;
        self.exchange_ends(id, exchange, |client, now| {
            let mut item = |item| client.handle_event(now, exchange, ExchangeEvent::Inbound(item));
            let headers = response.fields.iter().fold(Headers::new(), |all, (name, value)| all.with(name, value));
            item(Inbound::Response(ResponseHead { status: response.status, headers }));
            let body = response.body;
            match (raw, body.is_empty()) {
                (_, true) => {}
                (true, false) => item(Inbound::Body(body.into())),
                (false, false) => {
                    item(Inbound::Message(mcp_proto::rpc::parse(body.into(), 128).expect("a message")));
                }
            }
            item(Inbound::End);
        });
    }

    pub(super) fn exchange_ends(
        &mut self,
        id: ProcessId,
        exchange: ExchangeId,
        end: impl FnOnce(&mut Client, Instant),
    ) {
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
