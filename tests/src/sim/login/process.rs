//! A process: a client, and what its driver holds.

use super::check::Addressee;
use super::issuer::{Issuer, PROVIDER_PORT};
use super::settings::{ClientKind, GrantKind, Settings};
use super::store::ProcessId;
use mcp_proto::Instant;
use mcp_proto::auth::{
    Alg, AuthConfig, ClientAuth, ClientKey, GivenClient, Grant, IdentityProvider, Registration, SignKey, StepId,
};
use mcp_proto::client::{Client, ClientConfig, Policy};
use mcp_proto::exchange::ExchangeId;
use mcp_proto::input::CallId;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// What a step waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum StepKind {
    Lease,
    Load,
    Save,
    Listen,
    Page,
    Key,
    Signature,
    Assertion,
}

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Process {
    pub(super) id: ProcessId,
    pub(super) client: Client,
    unix: Duration,
    /// The open exchanges. True: a renewal of tokens.
    pub(super) open: BTreeMap<ExchangeId, bool>,
    /// How often each call has ended.
    pub(super) calls: BTreeMap<CallId, u32>,
    /// The steps without an answer. A listener and a page are there until they end.
    pub(super) steps: BTreeMap<StepId, StepKind>,
    /// The number of the latest step.
    pub(super) last_step: u64,
    pub(super) pages_shown: u64,
    pub(super) logins: u64,
    pub(super) is_closing: bool,
}

impl Process {
    /// Starts a process at this time. Its clock is this many seconds after 1970.
    pub(super) fn start(id: ProcessId, auth: Arc<AuthConfig>, seed: [u8; 32], now: Instant, unix: Duration) -> Self {
        let mut config = ClientConfig::url("http://127.0.0.1:8000/mcp").expect("a URL");
        config.policy = Policy::Modern;
        config.timeout = Some(Duration::from_secs(40));
        config.auth = Some(auth);
        config.origin_unix = unix;
        config.limits.client.max_queued_events = usize::MAX;
        Self {
            id,
            client: Client::new(Arc::new(config), seed, now),
            unix,
            open: BTreeMap::new(),
            calls: BTreeMap::new(),
            steps: BTreeMap::new(),
            last_step: 0,
            pages_shown: 0,
            logins: 0,
            is_closing: false,
        }
    }

    /// Returns the Unix time in seconds of its clock.
    pub(super) fn unix(&self, now: Instant) -> u64 {
        (self.unix + now.since_origin()).as_secs()
    }

    /// Notes a step that waits for an answer.
    pub(super) fn waits(&mut self, step: StepId, kind: StepKind) {
        self.steps.insert(step, kind);
        self.last_step = self.last_step.max(step.0);
    }

    /// Returns the listener that is open.
    pub(super) fn listener(&self) -> Option<StepId> {
        self.of_kind(StepKind::Listen).next()
    }

    /// Returns the pages and the codes that are shown.
    pub(super) fn pages(&self) -> impl Iterator<Item = StepId> {
        self.of_kind(StepKind::Page)
    }

    fn of_kind(&self, kind: StepKind) -> impl Iterator<Item = StepId> {
        self.steps.iter().filter(move |(_, of)| **of == kind).map(|(step, _)| *step)
    }
}

/// Returns the configuration of all processes. The issuers learn the clients that are given.
pub(super) fn configure(settings: &Settings, issuers: &mut [Issuer; 3], keys: &mut super::keys::Keys) -> AuthConfig {
    let mut config = AuthConfig::new("sim");
    config.dpop = settings.dpop;
    let mut given = |issuer: &mut Issuer| {
        let is_secret = matches!(settings.client, ClientKind::Post | ClientKind::Basic);
        let secret = is_secret.then(|| issuer.mint("client", Addressee::Issuer(issuer.port)));
        let key = (settings.client == ClientKind::Key).then(|| keys.private());
        let auth = match (&secret, &key) {
            (Some(secret), _) => ClientAuth::Secret(secret.as_str().into()),
            (None, Some(key)) => {
                issuer.secrets.push((key.clone(), Addressee::Local));
                let key = SignKey::Pkcs8(key.as_str().into());
                ClientAuth::Key(ClientKey { key, alg: Alg::Es256, kid: None })
            }
            (None, None) => ClientAuth::None,
        };
        let client_id = format!("given-{}", issuer.port);
        issuer.give(&client_id, secret, key);
        GivenClient { issuer: issuer.url(), client_id, auth }
    };
    let [first, second, provider] = issuers;
    match settings.grant {
        GrantKind::Code => {}
        GrantKind::Device => config.grant = Grant::Device,
        GrantKind::Workload => (config.grant, config.registrations) = (Grant::Assertion, Vec::new()),
        GrantKind::Program | GrantKind::Enterprise => {
            config.registrations = [first, second].map(|issuer| Registration::Given(given(issuer))).into();
            config.grant = Grant::ClientCredentials;
        }
    }
    if settings.grant == GrantKind::Enterprise {
        let token_endpoint = format!("http://127.0.0.1:{PROVIDER_PORT}/token");
        let provider = IdentityProvider { token_endpoint, client: given(provider), subject: Default::default() };
        config.grant = Grant::Enterprise(Box::new(provider));
    }
    config
}
