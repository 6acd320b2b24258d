//! How the engines of a scenario are configured.

use crate::sim::app;
use crate::sim::{Scenario, Transport};
use mcp_proto::client::Restart;
use mcp_proto::exchange::Program;
use mcp_proto::{ClientConfig, Router, ServerConfig};
use std::time::Duration;

/// The configuration of the clients of a scenario.
pub(in crate::sim) fn configure(scenario: &Scenario) -> ClientConfig {
    let mut config = match scenario.transport {
        Transport::Lines => ClientConfig::program(Program::new("sim").arg(app::SECRET).env("TOKEN", app::SECRET)),
        Transport::Http => ClientConfig::url(&format!("http://localhost/mcp?api_key={}", app::SECRET)).expect("a url"),
    };
    config.policy = scenario.policy;
    config.restart = scenario.restart.then(Restart::default);
    config.ping = scenario.ping.then_some(Duration::from_secs(5));
    config.ping_timeout = Duration::from_secs(30);
    config = config.with_elicitation();
    config.limits.client.max_calls = 16;
    config.limits.client.max_queued_events = usize::MAX;
    config
}

/// The configuration of the server of every scenario.
pub(in crate::sim) fn configure_server(router: &Router) -> ServerConfig {
    let mut config = router.config();
    config.limits.server.page_size = 3;
    config.limits.server.ask_timeout = Duration::from_secs(60);
    config
}
