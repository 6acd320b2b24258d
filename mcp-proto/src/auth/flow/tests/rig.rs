//! A flow with an authorization server, a store and a user around it, in virtual time.

use crate::auth::flow::{Attach, Flow, Reaction, Refused, Tried};
use crate::auth::form;
use crate::auth::step::{
    AuthReport, Browse, Generation, Input, Lease, Output, PageResult, Purpose, SaveFault, StepId, StoreFault, Stored,
};
use crate::auth::{AuthConfig, LoopbackHost, Record, Registration, Version};
use crate::error::AuthError;
use crate::exchange::Headers;
use crate::fetch::{FetchError, FetchRequest, FetchResponse, HttpTarget};
use crate::time::Instant;
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;

pub(super) const SERVER: &str = "https://mcp.example/mcp";
pub(super) const ISSUER: &str = "https://as.example";
/// The Unix time of the origin.
pub(super) const EPOCH: u64 = 1_800_000_000;

/// A response in place of the usual one.
type Fault = Result<(u16, String), FetchError>;

/// What the authorization server does.
#[derive(Debug)]
pub(super) struct Issuer {
    pub(super) name: String,
    pub(super) resource: String,
    pub(super) scopes_supported: Option<&'static str>,
    pub(super) issuer_scopes: Option<&'static str>,
    pub(super) sends_iss: bool,
    pub(super) registers: bool,
    pub(super) revokes: bool,
    pub(super) lifetime: Option<u64>,
    pub(super) rotates: bool,
    pub(super) refreshes: bool,
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
    pub(super) registrations: Vec<String>,
    pub(super) revocations: Vec<String>,
    /// All URLs, in order.
    pub(super) urls: Vec<String>,
}

impl Default for Issuer {
    fn default() -> Self {
        Self {
            name: ISSUER.into(),
            resource: SERVER.into(),
            scopes_supported: None,
            issuer_scopes: None,
            sends_iss: true,
            registers: true,
            revokes: true,
            lifetime: Some(3600),
            rotates: true,
            refreshes: true,
            faults: BTreeMap::new(),
            tokens: 0,
            codes: 0,
            registered: 0,
            refresh: Vec::new(),
            used: Vec::new(),
            requests: Vec::new(),
            registrations: Vec::new(),
            revocations: Vec::new(),
            urls: Vec::new(),
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
        let path = request.url.path.clone();
        if let Some(fault) = self.faults.get_mut(&path).and_then(VecDeque::pop_front) {
            return fault.map(|(status, body)| response(status, &body, &url));
        }
        let body = String::from_utf8(request.body.to_vec()).unwrap();
        let (status, body) = match &*path {
            "/.well-known/oauth-protected-resource/mcp" => (200, self.resource_metadata()),
            "/.well-known/oauth-authorization-server" => (200, self.metadata()),
            "/register" if self.registers => {
                self.registered += 1;
                self.registrations.push(body);
                (201, format!("{{\"client_id\":\"client-{}\"}}", self.registered))
            }
            "/token" => self.token(&body),
            "/revoke" => {
                self.revocations.push(body);
                (200, String::new())
            }
            _ => (404, "not found".into()),
        };
        Ok(response(status, &body, &url))
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
             \"code_challenge_methods_supported\":[\"S256\"],\"token_endpoint_auth_methods_supported\":[\"none\"],\
             \"authorization_response_iss_parameter_supported\":{}",
            self.sends_iss
        );
        for (is_on, member) in
            [(self.registers, "registration_endpoint\":\"/register"), (self.revokes, "revocation_endpoint\":\"/revoke")]
        {
            if is_on {
                let (member, path) = member.split_once("\":\"").unwrap();
                text += &format!(",\"{member}\":\"{name}{path}\"");
            }
        }
        if let Some(scopes) = self.issuer_scopes {
            text += &format!(",\"scopes_supported\":{}", list(scopes));
        }
        text + "}"
    }

    fn token(&mut self, body: &str) -> (u16, String) {
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
        let mut text = format!("{{\"access_token\":\"access-{number}\",\"token_type\":\"Bearer\"");
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

/// Returns a parameter of a URL.
pub(super) fn query(url: &str, name: &str) -> Option<String> {
    let (_, query) = url.split_once('?')?;
    form::decode(query).into_iter().find(|(key, _)| key == name).map(|(_, value)| value)
}

/// One record, shared by several flows, with its leases.
#[derive(Debug, Default)]
pub(super) struct Store {
    pub(super) record: Option<Box<Record>>,
    pub(super) version: Version,
    /// Who holds which lease, and who waits for it.
    held: BTreeMap<Purpose, usize>,
    waiting: VecDeque<(usize, StepId, Purpose)>,
    pub(super) saves: usize,
    pub(super) fails: bool,
}

impl Store {
    pub(super) fn stored(&self) -> Stored {
        Stored { record: self.record.clone(), version: self.version }
    }

    pub(super) fn is_free(&self) -> bool {
        self.held.is_empty() && self.waiting.is_empty()
    }

    fn save(&mut self, expected: Version, record: Option<Box<Record>>) -> Result<Version, SaveFault> {
        if self.fails {
            return Err(SaveFault::Fault(StoreFault("full".into())));
        }
        if expected != self.version {
            return Err(SaveFault::Conflict(self.stored()));
        }
        self.saves += 1;
        self.version = record.as_ref().map_or(Version::ABSENT, |_| Version(self.version.0 + 1));
        self.record = record;
        Ok(self.version)
    }
}

/// What a user does with a page.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum User {
    Accepts,
    Declines,
    Absent,
}

/// Several flows in one world.
pub(super) struct World {
    pub(super) flows: Vec<Flow>,
    pub(super) now: Instant,
    pub(super) issuer: Issuer,
    pub(super) store: Store,
    pub(super) user: User,
    pub(super) listens: bool,
    pub(super) pages: Vec<Browse>,
    /// The open pages: flow, step.
    pub(super) open: Vec<(usize, StepId)>,
    pub(super) listeners: Vec<(usize, StepId)>,
    pub(super) reports: Vec<AuthReport>,
    /// The ends of runs.
    pub(super) ends: Vec<Result<Generation, AuthError>>,
    pub(super) ignored: usize,
    pub(super) shown: Vec<PageResult>,
    /// Whether steps of the store wait.
    pub(super) stalls: bool,
}

pub(super) fn config() -> AuthConfig {
    AuthConfig::new("test")
}

impl World {
    pub(super) fn new() -> Self {
        Self::with(config(), 1)
    }

    pub(super) fn with(config: AuthConfig, flows: usize) -> Self {
        let config = Arc::new(config);
        let flow = |number: usize| Self::flow(&config, number as u8, Instant::ZERO);
        Self {
            flows: (0..flows).map(flow).collect(),
            now: Instant::ZERO,
            issuer: Issuer::default(),
            store: Store::default(),
            user: User::Accepts,
            listens: true,
            pages: Vec::new(),
            open: Vec::new(),
            listeners: Vec::new(),
            reports: Vec::new(),
            ends: Vec::new(),
            ignored: 0,
            shown: Vec::new(),
            stalls: false,
        }
    }

    fn flow(config: &Arc<AuthConfig>, seed: u8, now: Instant) -> Flow {
        let server = HttpTarget::parse(SERVER).unwrap();
        Flow::new(Arc::clone(config), server, Duration::from_secs(EPOCH), [seed; 32], now)
    }

    /// Starts the program again: the first flow is new.
    pub(super) fn restart(&mut self, config: AuthConfig) {
        self.flows = alloc::vec![Self::flow(&Arc::new(config), 99, self.now)];
    }

    /// Handles all outputs, until there are no more.
    pub(super) fn run(&mut self) {
        loop {
            let mut is_idle = true;
            for at in 0..self.flows.len() {
                while let Some(output) = self.flows[at].poll_output() {
                    is_idle = false;
                    self.handle(at, output);
                }
            }
            if is_idle {
                return;
            }
        }
    }

    fn give(&mut self, at: usize, input: Input) {
        assert!(self.flows[at].handle(self.now, input.clone()), "{input:?}");
    }

    fn handle(&mut self, at: usize, output: Output) {
        match output {
            Output::Fetch(step, request) => {
                let outcome = self.issuer.answer(&request);
                assert!(self.flows[at].fetched(self.now, step, &outcome));
            }
            Output::CancelFetch(_) => {}
            Output::Lease(step, _, purpose) => match self.store.held.get(&purpose) {
                None => {
                    self.store.held.insert(purpose, at);
                    self.give(at, Input::Leased(step, Ok(Lease::Held)));
                }
                Some(_) => {
                    self.store.waiting.push_back((at, step, purpose));
                    self.give(at, Input::Leased(step, Ok(Lease::Waiting)));
                }
            },
            Output::Release(_, purpose) => self.release(at, purpose),
            Output::Load(step, _) if self.store.fails => {
                self.give(at, Input::Loaded(step, Err(StoreFault("broken".into()))));
            }
            Output::Load(..) | Output::Save(..) if self.stalls => {}
            Output::Load(step, _) => self.give(at, Input::Loaded(step, Ok(self.store.stored()))),
            Output::Save(step, _, expected, record) => {
                let saved = self.store.save(expected, record);
                self.give(at, Input::Saved(step, saved));
            }
            Output::Listen(step, listen) => {
                self.listeners.push((at, step));
                let host = listen.host.as_str();
                let port = listen.first.unwrap_or(4000 + at as u16);
                let uri = match self.listens {
                    true => Ok(format!("http://{host}:{port}{}", listen.path)),
                    false => Err(StoreFault("in use".into())),
                };
                self.give(at, Input::Listening(step, uri));
            }
            Output::Browse(step, browse) => {
                self.open.push((at, step));
                self.pages.push(browse);
                self.visit(at, step);
            }
            Output::Ignore(_) => self.ignored += 1,
            Output::Finish(step, result) => {
                self.open.retain(|(_, open)| *open != step);
                self.listeners.retain(|(_, open)| *open != step);
                self.shown.push(result);
            }
            Output::Changed(generation) => self.ends.push(Ok(generation)),
            Output::Failed(why) => self.ends.push(Err(*why)),
            Output::Report(report) => self.reports.push(report),
        }
    }

    fn visit(&mut self, at: usize, step: StepId) {
        let input = match self.user {
            User::Accepts => {
                let page = self.pages.last().unwrap().clone();
                Input::Redirected(step, self.issuer.page(&page))
            }
            User::Declines => Input::Declined(step),
            User::Absent => return,
        };
        self.give(at, input);
    }

    fn release(&mut self, at: usize, purpose: Purpose) {
        self.store.waiting.retain(|(waiting, _, wanted)| (*waiting, *wanted) != (at, purpose));
        if self.store.held.get(&purpose) != Some(&at) {
            return;
        }
        self.store.held.remove(&purpose);
        if let Some(next) = self.store.waiting.iter().position(|(_, _, wanted)| *wanted == purpose) {
            let (next, step, _) = self.store.waiting.remove(next).unwrap();
            self.store.held.insert(purpose, next);
            self.give(next, Input::Leased(step, Ok(Lease::Held)));
        }
    }

    /// Passes time, timer by timer.
    pub(super) fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        loop {
            self.run();
            let due = self.flows.iter().filter_map(Flow::poll_timeout).min().filter(|at| *at <= end);
            let Some(at) = due else { break };
            self.now = self.now.max(at);
            self.flows.iter_mut().for_each(|flow| flow.handle_timeout(at));
        }
        self.now = end;
        self.flows.iter_mut().for_each(|flow| flow.handle_timeout(end));
        self.run();
    }

    /// Returns what a request of the first flow carries, once it goes out. `None`: nothing.
    pub(super) fn token(&mut self) -> Option<String> {
        self.token_of(0)
    }

    pub(super) fn token_of(&mut self, at: usize) -> Option<String> {
        for _ in 0..2 {
            match self.flows[at].attach(self.now) {
                Attach::Bearer(token) => return Some(token.expose().to_string()),
                Attach::None => return None,
                Attach::Wait => self.run(),
            }
        }
        match self.flows[at].attach(self.now) {
            Attach::Bearer(token) => Some(token.expose().to_string()),
            Attach::None | Attach::Wait => None,
        }
    }

    /// Gives a refusal to a flow. Returns the reaction before its run.
    pub(super) fn refuse(&mut self, at: usize, status: u16, field: &str, tried: &mut Tried) -> Reaction {
        let sent = self.flows[at].generation();
        self.refuse_sent(at, status, field, tried, sent)
    }

    pub(super) fn refuse_sent(
        &mut self,
        at: usize,
        status: u16,
        field: &str,
        tried: &mut Tried,
        sent: Generation,
    ) -> Reaction {
        let fields = [field.to_string()];
        let refused = Refused { status, fields: &fields, auth_server: None, sent };
        assert!(Flow::is_challenge(&refused));
        self.flows[at].refuse(self.now, &refused, tried)
    }

    /// Logs the first flow in, by a request without credentials.
    pub(super) fn log_in(&mut self) -> Tried {
        assert_eq!(self.token(), None);
        self.ends.clear();
        let mut tried = Tried::default();
        assert_eq!(self.refuse(0, 401, "Bearer", &mut tried), Reaction::Wait);
        self.run();
        tried
    }

    /// Checks that nothing is left open.
    pub(super) fn is_at_rest(&self) -> bool {
        self.open.is_empty()
            && self.listeners.is_empty()
            && self.store.is_free()
            && self.flows.iter().all(|flow| flow.poll_timeout().is_none())
    }
}

/// Registrations of a given client at the issuer.
pub(super) fn given(issuer: &str, secret: Option<&str>) -> Registration {
    Registration::Given(crate::auth::GivenClient {
        issuer: issuer.into(),
        client_id: "given".into(),
        client_secret: secret.map(Into::into),
    })
}

pub(super) const fn localhost() -> LoopbackHost {
    LoopbackHost::Localhost
}
