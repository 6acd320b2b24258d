//! The world of [`both`] over TLS, and through forward proxies that may answer
//! wrongly. The engines, their applications and all invariants are those of that world.
//!
//! Each end of a connection has a [`Transfer`](mcp_driver::Transfer) above its pipe, as it
//! has in an adapter. Records are cut and delayed with the bytes of the pipe, and connections are
//! lost at any of them. rustls draws its own randomness: a seed repeats lengths and decisions, and
//! no ciphertext. No choice may depend on a byte of it.

mod keys;
mod proxy;
mod wrap;

pub use keys::Keys;
pub use wrap::Wrap;

use super::both;
use super::campaign::{self, Violation};
use super::digest::log::Log;
use super::report::Report;
use super::rng::Rng;
use super::scenario::{self, Scenario};
use mcp_proto::client::{Event, Proxies, Proxy, State};
use mcp_proto::server::Hosts;

/// The server. Loopback addresses have no proxy.
pub const HOST: &str = "mcp.example";
/// What the proxy says itself contains this.
const MARK: &str = "of-the-proxy";
/// The credentials of the proxy, and their form on the wire.
const CREDENTIALS: (&str, &str) = ("ann", "s3cret");
const AUTHORIZATION: &str = "Basic YW5uOnMzY3JldA==";

/// Everything that determines a run.
pub type SecuredScenario = Scenario<SecuredSettings>;

/// How clients reach the server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Road {
    /// Over TCP.
    Plain,
    /// Over TLS.
    Tls,
    /// Over TLS in the tunnel of a proxy.
    Tunnel,
    /// Over a proxy that forwards single requests.
    Forward,
}

impl Road {
    const NAMES: [(&str, Self); 3] = [("tls", Self::Tls), ("tunnel", Self::Tunnel), ("forward", Self::Forward)];

    /// Returns whether the server is reached over TLS.
    pub const fn is_tls(self) -> bool {
        matches!(self, Self::Tls | Self::Tunnel)
    }

    /// Returns the URL of the server.
    pub const fn url(self) -> &'static str {
        match self {
            Self::Plain => "http://localhost/mcp",
            Self::Forward => "http://mcp.example/mcp",
            Self::Tls | Self::Tunnel => "https://mcp.example/mcp",
        }
    }

    /// Returns the proxies of the clients.
    ///
    /// # Panics
    /// Never: the proxy is a legal one.
    pub fn proxies(self) -> Proxies {
        match self {
            Self::Plain | Self::Tls => Proxies::default(),
            Self::Tunnel | Self::Forward => {
                let proxy = Proxy::parse("http://proxy.example:3128").expect("a proxy");
                Proxies::all(proxy.with_credentials(CREDENTIALS.0, CREDENTIALS.1).expect("credentials"))
            }
        }
    }

    /// Returns the hosts that the server answers to.
    pub fn hosts(self) -> Hosts {
        match self {
            Self::Plain => Hosts::Loopback,
            // The malicious peer names the other one.
            Self::Tls | Self::Tunnel | Self::Forward => Hosts::Only(vec![HOST.into(), "localhost".into()]),
        }
    }
}

/// Nothing that a proxy says about a tunnel becomes an event.
pub(super) fn check_event(road: Road, event: &Event) {
    if road == Road::Tunnel {
        assert!(!format!("{event:?}").contains(MARK), "an answer of the proxy becomes one of the server: {event:?}");
    }
}

/// The settings of a run.
#[derive(Clone, PartialEq, Debug)]
pub struct SecuredSettings(both::Settings);

impl SecuredSettings {
    fn on(&self, road: Road) -> Self {
        Self(both::Settings { road, ..self.0.clone() })
    }
}

/// The same scenario with other settings.
fn with<S, T>(scenario: Scenario<S>, settings: impl FnOnce(S) -> T) -> Scenario<T> {
    let Scenario { seed, operations, faults, capacity, less, settings: of } = scenario;
    Scenario { seed, operations, faults, capacity, less, settings: settings(of) }
}

impl scenario::Settings for SecuredSettings {
    const NAME: &'static str = "secured";
    const STATES: &'static [State] = both::Settings::STATES;
    const SERVES: bool = true;

    fn from_seed(seed: u64) -> SecuredScenario {
        let road = Rng::new(seed ^ 0x0073_6563_7572).of(&[Road::Tls, Road::Tunnel, Road::Tunnel, Road::Forward]);
        with(both::Scenario::from_seed(seed), |settings| Self(both::Settings { road, ..settings }))
    }

    fn attempt(scenario: &SecuredScenario, trace: bool) -> Result<Report, Violation> {
        let scenario = with(scenario.clone(), |settings| settings.0);
        let begin = || both::World::begin(&scenario, trace, Log::default());
        campaign::attempt(begin, both::World::run, both::World::drawn)
    }

    fn lines(&self) -> Vec<(&'static str, String)> {
        let road = Road::NAMES.iter().find(|(_, road)| *road == self.0.road).map_or("", |(name, _)| name);
        let mut lines = self.0.lines();
        lines.push(("road", road.into()));
        lines
    }

    fn read(&mut self, key: &str, value: &str) -> Option<()> {
        if key != "road" {
            return self.0.read(key, value);
        }
        self.0.road = Road::NAMES.iter().find(|(name, _)| *name == value)?.1;
        Some(())
    }

    fn simpler(&self) -> Vec<Self> {
        let fewer = self.0.simpler().into_iter().map(Self);
        fewer.chain((self.0.road == Road::Tunnel).then(|| self.on(Road::Tls))).collect()
    }
}
