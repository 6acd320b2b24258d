//! A client with a login: its requests wait for one run, carry the token, and end with its error.

mod cache;
mod dpop;
mod sse;
mod streams;
mod web_socket;

use super::*;
use crate::auth::{
    self, AuthConfig, AuthReport, Generation, KeyPair, Lease, PageResult, PublicKey, Purpose, Record, StepId, Stored,
    Version,
};
use crate::error::AuthError;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;

/// A client of `http://127.0.0.1:8000/mcp?x=1`, the authorization server at the same host, a store
/// and a user.
struct Guarded {
    http: Http,
    /// The starts and events that were handled.
    starts: usize,
    events: usize,
    record: Option<Box<Record>>,
    version: Version,
    /// Responses of the authorization server in place of the usual ones, by path.
    faults: BTreeMap<String, (u16, &'static str)>,
    declines: bool,
    tokens: u64,
    lifetime: u64,
    /// The paths that were fetched.
    paths: Vec<String>,
    held: Vec<Purpose>,
    /// The steps that wait for a signature, if there is none at once.
    unsigned: Vec<StepId>,
    stalls: bool,
}

impl Guarded {
    fn with(set: impl FnOnce(&mut ClientConfig)) -> Self {
        Self::of(set, None)
    }

    /// A client whose store has this record.
    fn of(set: impl FnOnce(&mut ClientConfig), record: Option<Box<Record>>) -> Self {
        let http = Http::with(|config| {
            config.auth = Some(Arc::new(AuthConfig::new("test")));
            set(config);
        });
        let version = if record.is_some() { Version(1) } else { Version::ABSENT };
        Self {
            http,
            starts: 0,
            events: 0,
            record,
            version,
            faults: BTreeMap::new(),
            declines: false,
            tokens: 0,
            lifetime: 3600,
            paths: Vec::new(),
            held: Vec::new(),
            unsigned: Vec::new(),
            stalls: false,
        }
    }

    /// Does everything but to answer requests of MCP.
    fn run(&mut self) {
        loop {
            let (starts, events) = (self.http.rig.starts.len(), self.http.rig.events.len());
            while self.starts < self.http.rig.starts.len() {
                let (exchange, start) = self.http.rig.starts[self.starts].clone();
                self.starts += 1;
                if let Start::Http { raw: true, head, .. } = start {
                    self.fetch(exchange, &head.target, head.headers.get("DPoP").is_some());
                }
            }
            while self.events < self.http.rig.events.len() {
                self.events += 1;
                let input = match &self.http.rig.events[self.events - 1] {
                    Event::Auth(output) => self.step(&output.clone()),
                    _ => None,
                };
                if let Some(input) = input {
                    self.http.rig.client.auth(self.http.rig.now, input);
                    self.http.rig.drain();
                }
            }
            if (starts, events) == (self.http.rig.starts.len(), self.http.rig.events.len()) {
                return;
            }
        }
    }

    fn fetch(&mut self, exchange: ExchangeId, path: &str, has_proof: bool) {
        self.paths.push(path.to_string());
        let base = "http://127.0.0.1:8000";
        let token = format!(
            "{{\"access_token\":\"access-{}\",\"token_type\":\"{}\",\"expires_in\":{},\"refresh_token\":\"r\"}}",
            self.tokens + 1,
            if has_proof { "dpop" } else { "bearer" },
            self.lifetime
        );
        let (status, body) = match (self.faults.get(path), path) {
            (Some((status, body)), _) => (*status, body.to_string()),
            (None, "/.well-known/oauth-protected-resource/mcp") => {
                (200, format!("{{\"resource\":\"{base}/mcp\",\"authorization_servers\":[\"{base}\"]}}"))
            }
            (None, "/.well-known/oauth-authorization-server") => (
                200,
                json!({
                    "issuer": base, "authorization_endpoint": format!("{base}/authorize"),
                    "token_endpoint": format!("{base}/token"), "registration_endpoint": format!("{base}/register"),
                    "code_challenge_methods_supported": ["S256"], "token_endpoint_auth_methods_supported": ["none"],
                    "authorization_response_iss_parameter_supported": true,
                    "dpop_signing_alg_values_supported": ["ES256"],
                })
                .to_string(),
            ),
            (None, "/register") => (201, "{\"client_id\":\"c\"}".into()),
            (None, "/token") => {
                self.tokens += 1;
                (200, token)
            }
            (None, _) => (404, String::new()),
        };
        let headers = Headers::new().with("content-type", "application/json");
        self.http.item(exchange, Inbound::Response(ResponseHead { status, headers }));
        self.http.item(exchange, Inbound::Body(body.into()));
        self.http.item(exchange, Inbound::End);
    }

    fn step(&mut self, output: &auth::Output) -> Option<auth::Input> {
        Some(match output {
            auth::Output::Lease(step, _, purpose) => {
                self.held.push(*purpose);
                auth::Input::Leased(*step, Ok(Lease::Held))
            }
            auth::Output::Release(_, purpose) => {
                self.held.retain(|held| held != purpose);
                return None;
            }
            auth::Output::Load(step, _) => {
                let stored = Stored { record: self.record.clone(), version: self.version };
                auth::Input::Loaded(*step, Ok(stored))
            }
            auth::Output::Save(step, _, expected, record) => {
                assert_eq!(*expected, self.version);
                self.version = Version(self.version.0 + 1);
                self.record = record.clone();
                auth::Input::Saved(*step, Ok(self.version))
            }
            auth::Output::Listen(step, listen) => {
                let uri = format!("http://{}:4000{}", listen.host.as_str(), listen.path);
                auth::Input::Listening(*step, Ok(uri))
            }
            auth::Output::NewKey(step, _) => {
                let public = PublicKey::P256 { x: vec![1; 32], y: vec![2; 32] };
                let pair = KeyPair { private: "private".into(), public };
                auth::Input::KeyMade(*step, Ok(Box::new(pair)))
            }
            auth::Output::Sign(step, _) if self.stalls => {
                self.unsigned.push(*step);
                return None;
            }
            auth::Output::Sign(step, _) => auth::Input::Signed(*step, Ok(vec![7; 64])),
            auth::Output::Browse(step, _) if self.declines => auth::Input::Declined(*step),
            auth::Output::Browse(step, page) => {
                let state = page.url.split("state=").nth(1).unwrap().split('&').next().unwrap();
                let url = format!("{}?code=k&state={state}&iss=http%3A%2F%2F127.0.0.1%3A8000", page.redirect_uri);
                auth::Input::Redirected(*step, url.into())
            }
            _ => return None,
        })
    }

    /// Returns the requests of MCP.
    fn mcp(&self) -> Vec<(ExchangeId, RequestHead, Bytes)> {
        let own = |(exchange, start): &(ExchangeId, Start)| match start {
            Start::Http { raw: false, head, body, .. } => Some((*exchange, head.clone(), body.clone())),
            _ => None,
        };
        self.http.rig.starts.iter().filter_map(own).collect()
    }

    fn last(&self) -> (ExchangeId, Value) {
        let (exchange, _, body) = self.mcp().pop().unwrap();
        let body: Value = serde_json::from_slice(&body).unwrap();
        (exchange, body["id"].clone())
    }

    /// Returns the credentials of each request of MCP.
    fn credentials(&self) -> Vec<Option<String>> {
        let field = |head: &RequestHead| head.headers.get("authorization").map(ToString::to_string);
        self.mcp().iter().map(|(_, head, _)| field(head)).collect()
    }

    fn challenge(&mut self, exchange: ExchangeId, status: u16, field: &str) {
        let headers = Headers::new().with("WWW-Authenticate", field);
        self.http.item(exchange, Inbound::Response(ResponseHead { status, headers }));
        self.http.item(exchange, Inbound::End);
    }

    fn answer_discover(&mut self) {
        let (exchange, id) = self.last();
        self.http.answer(exchange, 200, &discover_body(&id, &["2026-07-28"]));
    }

    /// A client that has logged in during its handshake.
    fn ready() -> Self {
        Self::ready_with(|_| {})
    }

    fn ready_with(set: impl FnOnce(&mut ClientConfig)) -> Self {
        let mut guarded = Self::with(set);
        guarded.run();
        let exchange = guarded.last().0;
        guarded.challenge(exchange, 401, "Bearer");
        guarded.run();
        guarded.answer_discover();
        assert_eq!(guarded.http.rig.client.state(), State::Ready);
        guarded.http.rig.clear();
        guarded.events = 0;
        guarded
    }

    fn outputs(&self) -> Vec<auth::Output> {
        let output = |event: &Event| match event {
            Event::Auth(output) => Some((**output).clone()),
            _ => None,
        };
        self.http.rig.events.iter().filter_map(output).collect()
    }

    fn pages(&self) -> usize {
        self.outputs().iter().filter(|output| matches!(output, auth::Output::Browse(..))).count()
    }
}

fn bearer(token: &str) -> Option<String> {
    Some(format!("Bearer {token}"))
}

// covers: AUTHD-C-005, S0-45, B-214
#[test]
fn handshake_waits_for_the_record_then_for_the_login() {
    let mut guarded = Guarded::with(|_| {});
    assert!(guarded.mcp().is_empty(), "the record is not known yet");
    guarded.run();
    assert_eq!(guarded.credentials(), [None]);
    let (first, _) = guarded.last();
    guarded.challenge(first, 401, "Bearer");
    assert_eq!(guarded.http.rig.client.state(), State::Probing);
    guarded.run();
    assert_eq!(guarded.credentials(), [None, bearer("access-1")]);
    let mcp = guarded.mcp();
    assert_eq!(mcp[0].2, mcp[1].2, "the same bytes");
    guarded.answer_discover();
    assert_eq!(guarded.http.rig.client.state(), State::Ready);
    assert!(guarded.held.is_empty() && guarded.pages() == 1);
    // No fetch of the login is one of the application.
    assert!(!guarded.http.rig.events.iter().any(|event| matches!(event, Event::Fetched { .. })));
    guarded.http.assert_at_rest();
}

#[test]
fn stored_login_is_used_from_the_first_request() {
    let record = Guarded::ready().record;
    let mut guarded = Guarded::of(|_| {}, record);
    guarded.run();
    assert_eq!(guarded.credentials(), [bearer("access-1")]);
    assert_eq!((guarded.pages(), guarded.paths.len()), (0, 0));
}

// covers: B-242, B-251
#[test]
fn calls_wait_for_one_run_and_are_repeated_once() {
    let mut guarded = Guarded::ready();
    let calls: Vec<CallId> = (0..3).map(|_| guarded.http.rig.echo()).collect();
    let sent = guarded.mcp()[2..].to_vec();
    assert_eq!(sent.len(), 3);
    for (exchange, ..) in &sent {
        guarded.challenge(*exchange, 401, "Bearer error=\"invalid_token\"");
    }
    assert_eq!(guarded.mcp().len(), 5);
    guarded.run();
    let again = guarded.mcp()[5..].to_vec();
    assert_eq!(guarded.credentials()[5..], [bearer("access-2"), bearer("access-2"), bearer("access-2")]);
    for (before, after) in sent.iter().zip(&again) {
        assert_eq!(before.2, after.2);
    }
    assert_eq!((guarded.tokens, guarded.pages()), (2, 0), "one refresh");
    for (exchange, _, body) in &again {
        let body: Value = serde_json::from_slice(body).unwrap();
        guarded.http.answer(*exchange, 200, &result(&body["id"]));
    }
    assert!(calls.iter().all(|call| guarded.http.rig.outcome(*call).is_ok()));
    guarded.http.assert_at_rest();
}

// covers: B-250
#[test]
fn failed_login_ends_what_waits_for_it() {
    let mut guarded = Guarded::with(|_| {});
    guarded.declines = true;
    guarded.run();
    let call = guarded.http.rig.echo();
    let exchange = guarded.last().0;
    guarded.challenge(exchange, 401, "Bearer");
    guarded.run();
    let error = guarded.http.rig.outcome(call).clone().unwrap_err();
    assert_eq!(error.unauthorized(), Some(&AuthError::Declined), "{error}");
    let Some(Termination::Negotiation(why)) = guarded.http.rig.termination() else { panic!() };
    assert_eq!(why.unauthorized(), Some(&AuthError::Declined));
    assert_eq!(why.to_string(), "connecting failed after 0 ms: the user declined to log in");
    // 401 says nothing of the era: no `initialize` follows.
    assert_eq!(guarded.mcp().len(), 1);
}

#[test]
fn call_whose_login_fails_leaves_the_client_ready() {
    let mut guarded = Guarded::ready();
    guarded.declines = true;
    guarded.faults.insert("/token".into(), (400, "{\"error\":\"invalid_grant\"}"));
    let call = guarded.http.rig.echo();
    let exchange = guarded.last().0;
    guarded.challenge(exchange, 401, "Bearer");
    guarded.run();
    let error = guarded.http.rig.outcome(call).clone().unwrap_err();
    assert_eq!(error.unauthorized(), Some(&AuthError::Declined));
    assert_eq!(error.sent(), Sent::No);
    assert_eq!(guarded.http.rig.client.state(), State::Ready);
    guarded.http.assert_at_rest();
}

// covers: AUTHS-C-005
#[test]
fn missing_scope_is_asked_for_and_its_call_repeated() {
    let mut guarded = Guarded::ready();
    let call = guarded.http.rig.echo();
    let exchange = guarded.last().0;
    guarded.challenge(exchange, 403, "Bearer error=\"insufficient_scope\", scope=\"write\"");
    guarded.run();
    assert_eq!(guarded.pages(), 1);
    let (exchange, id) = guarded.last();
    guarded.http.answer(exchange, 200, &result(&id));
    assert!(guarded.http.rig.outcome(call).is_ok());
    // Again, at once: an error.
    let call = guarded.http.rig.echo();
    let exchange = guarded.last().0;
    guarded.challenge(exchange, 403, "Bearer error=\"insufficient_scope\", scope=\"write\"");
    guarded.run();
    let error = guarded.http.rig.outcome(call).clone().unwrap_err();
    assert_eq!(error.unauthorized(), Some(&AuthError::Scope { scopes: "write".into() }));
    assert_eq!(guarded.pages(), 1);
}

// covers: AUTHS-C-012
#[test]
fn refused_scope_is_remembered_for_the_name_of_its_call() {
    let mut guarded = Guarded::ready();
    let narrow = "{\"access_token\":\"a\",\"token_type\":\"bearer\",\"scope\":\"read\"}";
    guarded.faults.insert("/token".into(), (200, narrow));
    let mut call = |tool: &str, refusals: usize| {
        let call = guarded.http.rig.call(tools::call(tool));
        for _ in 0..refusals {
            let exchange = guarded.last().0;
            guarded.challenge(exchange, 403, "Bearer error=\"insufficient_scope\", scope=\"write\"");
            guarded.run();
        }
        let error = guarded.http.rig.outcome(call).clone().unwrap_err();
        assert_eq!(error.unauthorized(), Some(&AuthError::Scope { scopes: "write".into() }));
        guarded.pages()
    };
    assert_eq!([call("echo", 2), call("echo", 1), call("other", 2), call("other", 1)], [1, 1, 2, 2]);
}

//
#[test]
fn plain_403_is_no_challenge() {
    let mut guarded = Guarded::ready();
    let call = guarded.http.rig.echo();
    let exchange = guarded.last().0;
    guarded.challenge(exchange, 403, "Bearer");
    guarded.run();
    let Err(CallError::Http(error)) = guarded.http.rig.outcome(call) else { panic!() };
    assert_eq!((error.status, guarded.pages()), (403, 0));
}

#[test]
fn expired_token_is_renewed_before_a_call_goes_out() {
    let mut guarded = Guarded::ready_with(|config| config.timeout = Some(Duration::from_secs(5)));
    guarded.http.rig.tick(Duration::from_secs(3601));
    let call = guarded.http.rig.echo();
    assert_eq!(guarded.mcp().len(), 2, "it waits");
    // Only the total limit runs.
    guarded.http.rig.tick(Duration::from_secs(6));
    assert!(!guarded.http.rig.has_ended(call));
    guarded.run();
    assert_eq!(guarded.credentials()[2..], [bearer("access-2")]);
    let (exchange, id) = guarded.last();
    guarded.http.answer(exchange, 200, &result(&id));
    assert!(guarded.http.rig.outcome(call).is_ok());
    guarded.http.assert_at_rest();
}

#[test]
fn call_that_waits_for_the_login_ends_at_its_total_limit() {
    let mut guarded = Guarded::ready_with(|config| {
        config.reset_on_progress = true;
        config.max_total = Duration::from_secs(8);
    });
    guarded.http.rig.tick(Duration::from_secs(3601));
    let call = guarded.http.rig.echo();
    guarded.http.rig.tick(Duration::from_secs(8));
    let Err(error) = guarded.http.rig.outcome(call) else { panic!() };
    assert_eq!(error.to_string(), "no response within 8000 ms: the request waited for a login");
    assert_eq!(error.sent(), Sent::No);
    guarded.run();
    assert_eq!(guarded.mcp().len(), 2, "it is not sent later");
}

// covers: B-247
#[test]
fn cancelled_call_leaves_the_run_to_the_others() {
    let mut guarded = Guarded::ready();
    guarded.http.rig.tick(Duration::from_secs(3601));
    let (first, second) = (guarded.http.rig.echo(), guarded.http.rig.echo());
    guarded.http.rig.client.cancel(guarded.http.rig.now, first, None);
    guarded.http.rig.drain();
    assert!(matches!(guarded.http.rig.outcome(first), Err(CallError::Cancelled { .. })));
    guarded.run();
    assert_eq!(guarded.mcp().len(), 3);
    let (exchange, id) = guarded.last();
    guarded.http.answer(exchange, 200, &result(&id));
    assert!(guarded.http.rig.outcome(second).is_ok());
}

#[test]
fn own_credentials_beside_a_login_end_the_client_at_once() {
    for (url, field) in [
        ("http://127.0.0.1:8000/mcp", "AUTHORIZATION"),
        ("http://127.0.0.1:8000/mcp", "dpop"),
        ("ws://127.0.0.1:8000/mcp", "Authorization"),
    ] {
        let guarded = Guarded::with(|config| {
            config.target = ClientConfig::url(url).unwrap().target;
            config.headers = Headers::new().with("X-Tenant", "t").with(field, "Bearer own");
        });
        let Some(Termination::Negotiation(why)) = guarded.http.rig.termination() else { panic!("{field}") };
        assert_eq!(why.unauthorized(), Some(&AuthError::OwnCredentials { field: field.into() }));
        assert!(
            why.to_string().ends_with(&format!("a login and the header field {field} exclude each other: remove one")),
            "{why}"
        );
        assert!(guarded.http.rig.starts.is_empty() && guarded.outputs().is_empty());
        assert_eq!(guarded.http.rig.client.poll_timeout(), None);
    }
}

// covers: B-238
#[test]
fn field_of_the_application_goes_to_its_server_alone() {
    let mut guarded = Guarded::with(|config| config.headers = Headers::new().with("X-Tenant", "t"));
    guarded.run();
    let exchange = guarded.last().0;
    guarded.challenge(exchange, 401, "Bearer");
    guarded.run();
    assert_eq!(guarded.credentials(), [None, bearer("access-1")]);
    assert!(guarded.mcp().iter().all(|(_, head, _)| head.headers.get("x-tenant") == Some("t")));
    // No fetch of the login carries it.
    let fetched = guarded.http.rig.starts.iter().filter_map(|(_, start)| match start {
        Start::Http { raw: true, head, .. } => Some(head),
        _ => None,
    });
    for head in fetched {
        let names = ["x-tenant", "authorization", "mcp-protocol-version"];
        assert!(names.iter().all(|name| head.headers.get(name).is_none()), "{head:?}");
    }
}

#[test]
fn login_and_logout_are_commands() {
    let mut guarded = Guarded::with(|_| {});
    guarded.run();
    guarded.http.rig.client.login(guarded.http.rig.now);
    guarded.http.rig.drain();
    guarded.run();
    let changed = |output: &auth::Output| *output == auth::Output::Changed(Generation(1));
    assert!(guarded.outputs().iter().any(changed), "{:?}", guarded.outputs());
    assert!(guarded.record.is_some());
    guarded.answer_discover();
    guarded.http.rig.echo();
    assert_eq!(guarded.credentials(), [None, bearer("access-1")]);
    guarded.http.rig.client.logout(guarded.http.rig.now);
    guarded.http.rig.drain();
    guarded.run();
    let logged_out = auth::Output::Report(AuthReport::LoggedOut { revoked: None });
    assert!(guarded.outputs().contains(&logged_out));
    assert_eq!(guarded.record, None);
    guarded.http.rig.echo();
    assert_eq!(guarded.credentials()[2..], [None]);
}

#[test]
fn client_that_closes_ends_its_login_first() {
    let mut guarded = Guarded::with(|_| {});
    guarded.run();
    let exchange = guarded.last().0;
    guarded.challenge(exchange, 401, "Bearer");
    // Up to the listener: nothing answers it.
    let lease = guarded.outputs().pop().unwrap();
    assert!(matches!(lease, auth::Output::Lease(_, _, Purpose::Login)), "{lease:?}");
    guarded.http.rig.client.close(guarded.http.rig.now);
    guarded.http.rig.drain();
    let outputs = guarded.outputs();
    assert!(outputs.iter().any(|output| matches!(output, auth::Output::Release(_, Purpose::Login))));
    assert!(matches!(guarded.http.rig.events.last(), Some(Event::Terminated(Termination::Requested))));
    assert_eq!(guarded.http.rig.client.poll_timeout(), None);
    assert!(!outputs.iter().any(|output| matches!(output, auth::Output::Finish(_, PageResult::Accepted))));
}

#[test]
fn answer_to_no_step_is_a_diagnostic() {
    let mut guarded = Guarded::ready();
    guarded.http.rig.client.auth(guarded.http.rig.now, auth::Input::Declined(StepId(7)));
    guarded.http.rig.drain();
    assert_eq!(guarded.http.rig.diagnostics(), [DiagnosticKind::BadEvent]);
}

// covers: AUTHT-C-001, AUTHT-C-002
#[test]
fn session_its_listener_and_its_end_carry_the_token() {
    let record = Guarded::ready().record;
    let mut guarded = Guarded::of(|config| config.policy = Policy::Legacy, record);
    guarded.run();
    guarded.http.accept("s1");
    guarded.run();
    let exchange = guarded.mcp().pop().unwrap().0;
    guarded.http.refuse(exchange, 202);
    guarded.run();
    guarded.http.rig.client.close(guarded.http.rig.now);
    guarded.http.rig.drain();
    guarded.run();
    let heads = guarded.mcp();
    let methods: Vec<_> = heads.iter().map(|(_, head, _)| head.method.to_string()).collect();
    assert_eq!(methods.first().map(String::as_str), Some("POST"));
    assert_eq!(methods.last().map(String::as_str), Some("DELETE"), "{methods:?}");
    assert!(guarded.credentials().iter().all(|field| *field == bearer("access-1")), "{methods:?}");
}

#[test]
fn challenge_of_the_listener_leads_to_a_login() {
    let record = Guarded::ready().record;
    let mut guarded = Guarded::of(|config| config.policy = Policy::Legacy, record);
    guarded.run();
    guarded.http.accept("s1");
    guarded.run();
    let note = guarded.mcp().pop().unwrap().0;
    guarded.http.refuse(note, 202);
    guarded.run();
    let (listener, head, _) = guarded.mcp().pop().unwrap();
    assert_eq!(&*head.method, "GET");
    guarded.challenge(listener, 401, "Bearer");
    guarded.run();
    let (_, head, _) = guarded.mcp().pop().unwrap();
    assert_eq!((&*head.method, head.headers.get("authorization")), ("GET", Some("Bearer access-1")));
    assert_eq!((guarded.tokens, guarded.pages()), (1, 0));
}
