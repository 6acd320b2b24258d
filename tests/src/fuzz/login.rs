//! A login with an authorization server, a store and a user around it. The targets of logins
//! replace one of them each.

use bytes::Bytes;
use mcp_proto::auth::{AuthConfig, Browse, Flow, FlowState, Generation, Input, Lease, Output, Record, Stored, Version};
use mcp_proto::client::{FetchError, FetchRequest, FetchResponse, HttpTarget, Redirects};
use mcp_proto::error::AuthError;
use mcp_proto::exchange::{Headers, Reach};
use mcp_proto::time::Instant;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

/// The server.
pub const SERVER: &str = "https://mcp.example/mcp";
/// Its authorization server.
pub const ISSUER: &str = "https://as.example";

/// The token that the honest authorization server issues.
pub const TOKEN: &str = "access-of-a-login";

/// The most outputs of one login, and the most times at which its clock is asked.
const MOST_OUTPUTS: usize = 2_000;
const MOST_TIMERS: usize = 200;

/// The most requests of one login, with those that revoke.
const MOST_FETCHES: usize = 26;

/// The header fields that a request may have.
const FIELDS: [&str; 5] = ["accept", "authorization", "content-type", "mcp-protocol-version", "user-agent"];

/// What surrounds a flow.
pub trait Surroundings {
    /// Answers a request.
    fn answer(&mut self, request: &FetchRequest) -> Result<Box<FetchResponse>, FetchError>;

    /// Returns the URLs of the redirects of a page, in order. After them the user declines.
    fn visit(&mut self, page: &Browse) -> Vec<String>;
}

/// A login from its beginning to its end.
pub struct Login {
    /// The requests, in order.
    pub fetched: Vec<FetchRequest>,
    /// The pages, in order.
    pub pages: Vec<Browse>,
    /// The ends of runs.
    pub ends: Vec<Result<Generation, AuthError>>,
    /// The record that was stored last.
    pub record: Option<Box<Record>>,
    /// The state at the end.
    pub state: FlowState,
}

impl Login {
    /// Logs in, with this record in the store.
    ///
    /// # Panics
    /// If the login does not end, leaves something open, or makes a request or shows a page that
    /// it must not.
    pub fn run(config: AuthConfig, record: Option<Record>, around: &mut dyn Surroundings) -> Self {
        let server = HttpTarget::parse(SERVER).expect("it is a URL");
        let flow = Flow::new(Arc::new(config), server, Duration::from_secs(1_800_000_000), [7; 32], Instant::ZERO);
        let version = record.as_ref().map_or(Version::ABSENT, |_| Version(1));
        let stored = Stored { record: record.map(Box::new), version };
        let mut run = Run { flow, now: Instant::ZERO, stored, open: Vec::new(), leases: Vec::new(), outputs: 0 };
        let mut login =
            Self { fetched: Vec::new(), pages: Vec::new(), ends: Vec::new(), record: None, state: FlowState::Idle };
        run.flow.login(Instant::ZERO);
        run.settle(&mut login, around);
        for _ in 0..MOST_TIMERS {
            let Some(at) = run.flow.poll_timeout() else { break };
            run.now = run.now.max(at);
            run.flow.handle_timeout(run.now);
            run.settle(&mut login, around);
        }
        assert!(run.flow.poll_timeout().is_none(), "it waits for ever");
        assert!(!login.ends.is_empty(), "it has no end");
        assert!(run.open.is_empty() && run.leases.is_empty(), "open: {:?}, leases: {:?}", run.open, run.leases);
        login.state = run.flow.state();
        assert!(matches!(login.state, FlowState::Holding | FlowState::Empty), "{:?}", login.state);
        assert!(!format!("{:?}", run.flow).contains(TOKEN), "`Debug` shows a token");
        login.record = run.stored.record;
        login
    }

    /// Returns the forms of the token requests.
    pub fn token_requests(&self) -> impl Iterator<Item = Vec<(String, String)>> {
        let forms = self.fetched.iter().map(|request| parameters(&String::from_utf8_lossy(&request.body)));
        forms.filter(|form| form.iter().any(|(name, _)| name == "grant_type"))
    }
}

struct Run {
    flow: Flow,
    now: Instant,
    stored: Stored,
    /// Listeners and pages.
    open: Vec<mcp_proto::auth::StepId>,
    leases: Vec<mcp_proto::auth::Purpose>,
    outputs: usize,
}

impl Run {
    fn settle(&mut self, login: &mut Login, around: &mut dyn Surroundings) {
        while let Some(output) = self.flow.poll_output() {
            self.outputs += 1;
            assert!(self.outputs < MOST_OUTPUTS, "it does not end");
            self.handle(output, login, around);
        }
    }

    fn give(&mut self, input: Input) {
        self.flow.handle(self.now, input);
    }

    fn handle(&mut self, output: Output, login: &mut Login, around: &mut dyn Surroundings) {
        match output {
            Output::Fetch(step, request) => {
                check_request(&request);
                let outcome = around.answer(&request);
                login.fetched.push(*request);
                assert!(login.fetched.len() <= MOST_FETCHES, "too many requests");
                assert!(self.flow.fetched(self.now, step, &outcome), "the step is open");
            }
            Output::Lease(step, _, purpose) => {
                self.leases.push(purpose);
                self.give(Input::Leased(step, Ok(Lease::Held)));
            }
            Output::Release(_, purpose) => self.leases.retain(|held| *held != purpose),
            Output::Load(step, _) => self.give(Input::Loaded(step, Ok(self.stored.clone()))),
            Output::Save(step, _, expected, record) => {
                assert_eq!(expected, self.stored.version, "a change in between is seen");
                let version = record.as_ref().map_or(Version::ABSENT, |_| Version(expected.0 + 1));
                self.stored = Stored { record, version };
                self.give(Input::Saved(step, Ok(version)));
            }
            Output::Listen(step, listen) => {
                self.open.push(step);
                let uri = format!("http://{}:{}{}", listen.host.as_str(), listen.first.unwrap_or(4711), listen.path);
                self.give(Input::Listening(step, Ok(uri)));
            }
            Output::Browse(step, page) => {
                check_page(&page);
                self.open.push(step);
                let redirects = around.visit(&page);
                login.pages.push(page);
                redirects.into_iter().for_each(|url| self.give(Input::Redirected(step, url.into())));
                self.give(Input::Declined(step));
            }
            Output::Finish(step, _) => self.open.retain(|open| *open != step),
            Output::Changed(generation) => login.ends.push(Ok(generation)),
            Output::Failed(why) => {
                assert!(!format!("{why} {why:?}").contains(TOKEN), "an error shows a token");
                login.ends.push(Err(*why));
            }
            Output::CancelFetch(_) | Output::Ignore(_) => {}
            Output::Report(report) => {
                assert!(!format!("{report} {report:?}").contains(TOKEN), "a report shows a token")
            }
            other => panic!("{other:?}"),
        }
    }
}

/// Checks a request: the server is at a public name, so all its URLs lead to public addresses by
/// TLS.
fn check_request(request: &FetchRequest) {
    let url = &request.url;
    assert!(url.origin.tls, "without TLS: {url:?}");
    let is_own = url.origin == HttpTarget::parse(SERVER).expect("it is a URL").origin;
    assert_eq!(request.reach, if is_own { Reach::Any } else { Reach::Public }, "{url:?}");
    if let Ok(address) = url.origin.host.parse::<IpAddr>() {
        assert!(Reach::Public.allows(address), "{url:?}");
    }
    assert!(url.path.len() <= 4096 && !url.path.contains('#'), "{url:?}");
    assert!(request.method == "GET" || request.redirects == Redirects::None, "a form is sent on: {request:?}");
    assert!(matches!(&*request.method, "GET" | "POST"), "{request:?}");
    for (name, _) in request.headers.iter() {
        assert!(FIELDS.contains(&&*name.to_ascii_lowercase()), "{name} of {request:?}");
    }
}

fn check_page(page: &Browse) {
    assert!(page.url.starts_with("https://") && page.url.len() <= 8 << 10, "{page:?}");
    assert!(HttpTarget::parse(&page.url).is_ok(), "{page:?}");
    let query = page.url.split_once('?').map(|(_, query)| query).unwrap_or_default();
    let found = parameters(query);
    let get = |name: &str| found.iter().rev().find(|(key, _)| key == name).map(|(_, value)| value.as_str());
    assert_eq!((get("response_type"), get("code_challenge_method")), (Some("code"), Some("S256")), "{page:?}");
    assert!(get("state").is_some_and(|state| state.len() >= 43), "{page:?}");
    assert_eq!(get("redirect_uri"), Some(&*page.redirect_uri), "{page:?}");
}

/// A response as JSON.
pub fn json(status: u16, body: impl Into<Bytes>, url: &str) -> Box<FetchResponse> {
    respond(status, "application/json", body, url)
}

/// A response of a media type.
pub fn respond(status: u16, media_type: &str, body: impl Into<Bytes>, url: &str) -> Box<FetchResponse> {
    let headers = Headers::new().with("Content-Type", media_type);
    Box::new(FetchResponse::new(status, headers, body, url))
}

/// The URL of a request.
pub fn url(request: &FetchRequest) -> String {
    format!("https://{}:{}{}", request.url.origin.host, request.url.origin.port, request.url.path)
}

/// The answer of an authorization server that follows every rule.
pub fn honest(request: &FetchRequest) -> Box<FetchResponse> {
    let url = url(request);
    let found = |body: String| json(200, body, &url);
    match (&*request.method, request.url.path.split('?').next().unwrap_or_default()) {
        ("GET", "/.well-known/oauth-protected-resource/mcp") => {
            found(format!("{{\"resource\":\"{SERVER}\",\"authorization_servers\":[\"{ISSUER}\"]}}"))
        }
        ("GET", "/.well-known/oauth-authorization-server") => found(issuer_metadata()),
        ("POST", _) if !request.body.starts_with(b"{") => {
            found(format!("{{\"access_token\":\"{TOKEN}\",\"token_type\":\"Bearer\",\"expires_in\":3600}}"))
        }
        ("POST", _) => json(201, "{\"client_id\":\"client\"}", &url),
        _ => json(404, "", &url),
    }
}

/// The metadata of the honest authorization server.
pub fn issuer_metadata() -> String {
    format!(
        "{{\"issuer\":\"{ISSUER}\",\"authorization_endpoint\":\"{ISSUER}/authorize\",\
         \"token_endpoint\":\"{ISSUER}/token\",\"registration_endpoint\":\"{ISSUER}/register\",\
         \"code_challenge_methods_supported\":[\"S256\"],\"authorization_response_iss_parameter_supported\":true}}"
    )
}

/// The redirect of a user who logs in.
pub fn redirect(page: &Browse) -> String {
    let query = page.url.split_once('?').map(|(_, query)| query).unwrap_or_default();
    let state = parameters(query).into_iter().rev().find(|(name, _)| name == "state").map(|(_, state)| state);
    format!("{}?code=a-code&state={}&iss={}", page.redirect_uri, state.unwrap_or_default(), encoded(&page.issuer))
}

/// Encodes a value of a form.
pub fn encoded(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._*".contains(&byte);
    text.bytes().map(|b| if plain(b) { char::from(b).to_string() } else { format!("%{b:02X}") }).collect()
}

/// Decodes a query or a form.
pub fn parameters(text: &str) -> Vec<(String, String)> {
    let pairs = text.split('&').filter(|pair| !pair.is_empty());
    pairs.map(|pair| pair.split_once('=').unwrap_or((pair, ""))).map(|(a, b)| (decoded(a), decoded(b))).collect()
}

fn decoded(text: &str) -> String {
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let [first, after @ ..] = rest {
        let digit = |at: usize| after.get(at).and_then(|byte| char::from(*byte).to_digit(16));
        rest = after;
        match (first, digit(0).zip(digit(1))) {
            (b'%', Some((high, low))) => {
                bytes.push((high << 4 | low) as u8);
                rest = &after[2..];
            }
            (b'+', _) => bytes.push(b' '),
            (byte, _) => bytes.push(*byte),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
