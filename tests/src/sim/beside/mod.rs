//! Both engines over the transports beside Streamable HTTP, under faults: HTTP+SSE of 2024-11-05
//! and WebSocket. Clients of several revisions, a server with an application, and between them a
//! relay that adds `endpoint` events, and that splits, adds and breaks frames. Everything is in
//! virtual time, and a function of its scenario.

mod end;
mod relay;
mod run;

pub use end::Beside;

use super::campaign::{self, Violation};
use super::fault::Fault;
use super::report::Report;
use super::rng::Rng;
use super::scenario::{self, Less, Scenario};
use mcp_proto::client::State;

/// A server, its clients, and the connections between them.
pub type World = super::world::World<Beside>;

/// Everything that determines a run over HTTP+SSE.
pub type SseScenario = Scenario<SseSettings>;

/// The settings of a run over HTTP+SSE.
#[derive(Clone, PartialEq, Debug)]
pub struct SseSettings {
    /// How many clients there are at once.
    pub clients: u64,
}

/// The settings of a run over WebSocket.
#[derive(Clone, PartialEq, Debug)]
pub struct WebSocketSettings {
    /// How many clients there are at once.
    pub clients: u64,
}

/// A transport of one connection for all messages of a server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Transport {
    /// HTTP+SSE of 2024-11-05.
    Sse,
    /// WebSocket.
    WebSocket,
}

/// Implements the settings of both transports, which have the same numbers.
macro_rules! settings {
    ($settings:ident, $name:literal, $transport:expr) => {
        impl scenario::Settings for $settings {
            const NAME: &'static str = $name;
            // Other worlds count the inputs in each state. Over one connection many do not occur.
            const STATES: &'static [State] = &[];

            fn from_seed(seed: u64) -> Scenario<Self> {
                let mut rng = Rng::new(seed ^ 0x0062_6573_6964);
                let settings = Self { clients: rng.of(&[1, 1, 2, 3]) };
                let (operations, faults) = (rng.of(&[30, 60, 120]), rng.of(&[0, 40, 40, 100]));
                let capacity = rng.of(&[64, 1024, 16 << 10, 1 << 20]);
                Scenario { seed, operations, faults, capacity, less: Less::default(), settings }
            }

            fn attempt(scenario: &Scenario<Self>, trace: bool) -> Result<Report, Violation> {
                let clients = scenario.settings.clients;
                let begin = || World::begin(scenario, $transport, clients, trace);
                campaign::attempt(begin, World::run, World::drawn)
            }

            fn lines(&self) -> Vec<(&'static str, String)> {
                vec![("clients", self.clients.to_string())]
            }

            fn read(&mut self, key: &str, value: &str) -> Option<()> {
                self.clients = value.parse().ok().filter(|n| key == "clients" && (1..=1000).contains(n))?;
                Some(())
            }

            fn simpler(&self) -> Vec<Self> {
                vec![Self { clients: 1 }]
            }
        }
    };
}

settings!(SseSettings, "sse", Transport::Sse);
settings!(WebSocketSettings, "web_socket", Transport::WebSocket);
