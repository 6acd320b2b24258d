//! The settings of a client that the environment of the process names.

use crate::ClientOptions;
use alloc::string::String;
use core::fmt;
use core::time::Duration;
use mcp_proto::client::{ListenerTime, Proxies};
use mcp_proto::error::escaped;
use std::env::{var_os, vars_os};

/// Returns the proxies of the environment. Names are compared with their case, also on a system
/// that ignores it: there `http_proxy` would find `HTTP_PROXY`, which a CGI program must ignore.
pub(crate) fn environment_proxies() -> Proxies {
    Proxies::from_variables(|name| {
        let found = vars_os().find(|(key, _)| key == name);
        found.map(|(_, value)| value.to_string_lossy().into_owned())
    })
}

/// Returns a variable of the environment that is an absolute path.
#[cfg(feature = "auth")]
pub(crate) fn environment_path(name: &str) -> Option<std::path::PathBuf> {
    var_os(name).map(Into::into).filter(|path: &std::path::PathBuf| path.is_absolute())
}

impl ClientOptions {
    /// Sets the timeout of calls to that of a variable of the environment, in milliseconds, as
    /// `OMP_MCP_TIMEOUT_MS` is used. 0 is no timeout, neither for calls nor for the start of the
    /// listener ([`Compat::listener_start`](mcp_proto::client::ClientCompat::listener_start)).
    /// Changes nothing if the variable is not set, or empty. The environment is read now.
    ///
    /// # Errors
    /// [`BadTimeout`] if the value is another text.
    pub fn timeout_from_environment(self, name: &str) -> Result<Self, BadTimeout> {
        let Some(value) = var_os(name).filter(|value| !value.is_empty()) else { return Ok(self) };
        let value = value.to_string_lossy();
        let timeout = timeout(&value).ok_or_else(|| BadTimeout { name: name.into(), value: (*value).into() })?;
        Ok(self.set(move |config| {
            config.timeout = timeout;
            if timeout.is_none() {
                config.compat.listener_start = ListenerTime::Unlimited;
            }
        }))
    }
}

/// Returns the timeout of a text. `None` if it is no number of milliseconds.
fn timeout(text: &str) -> Option<Option<Duration>> {
    // A sign is not a part of a number here.
    let digits = text.trim();
    let millis: u64 = digits.parse().ok().filter(|_| digits.bytes().all(|byte| byte.is_ascii_digit()))?;
    Some(Some(Duration::from_millis(millis)).filter(|timeout| !timeout.is_zero()))
}

/// A variable of the environment is no timeout. Its `Display` has
/// [escapes](mcp_proto::error#text-of-a-peer).
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct BadTimeout {
    /// The name of the variable.
    pub name: String,
    /// Its value.
    pub value: String,
}

impl fmt::Display for BadTimeout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, value } = self;
        write!(f, "the variable {} is no number of milliseconds: {}", escaped(name), escaped(value))
    }
}

impl core::error::Error for BadTimeout {}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;
    use alloc::string::ToString;
    use alloc::sync::Arc;
    use mcp_proto::client::ClientConfig;
    use mcp_proto::time::Instant;

    fn created(mut options: ClientOptions) -> Arc<ClientConfig> {
        let client = options.create(ClientConfig::given(), [1; 32], Instant::ZERO);
        Arc::clone(client.client().config())
    }

    // covers: S0-53, R-24
    #[test]
    fn timeout_is_a_number_of_milliseconds() {
        for (text, expected) in [
            ("0", Some(None)),
            ("1", Some(Some(1))),
            (" 45000\n", Some(Some(45_000))),
            ("+1", None),
            ("-1", None),
            ("1.5", None),
            ("30s", None),
            ("99999999999999999999", None),
        ] {
            let found = timeout(text).map(|timeout| timeout.map(|timeout| timeout.as_millis()));
            assert_eq!(found, expected, "{text:?}");
        }
    }

    // covers: S0-53
    #[test]
    fn variable_that_is_not_set_changes_nothing_and_text_is_refused() {
        let options = ClientOptions::new().timeout_from_environment("MCP_PROTO_NOT_SET").unwrap();
        assert_eq!(created(options).timeout, ClientConfig::given().timeout);
        // Cargo sets it for tests.
        let refused = ClientOptions::new().timeout_from_environment("CARGO_PKG_NAME").unwrap_err();
        let shown = "the variable CARGO_PKG_NAME is no number of milliseconds: mcp-driver";
        assert_eq!(refused.to_string(), shown);
        // The number of a version.
        let minor = ClientOptions::new().timeout_from_environment("CARGO_PKG_VERSION_MAJOR").unwrap();
        let config = created(minor);
        assert_eq!((config.timeout, config.compat.listener_start), (None, ListenerTime::Unlimited));
    }
}
