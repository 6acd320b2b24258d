//! The proxies that the environment of the process names.

use crate::client::Proxies;
use std::env::vars_os;

/// Returns the proxies of the environment. Names are compared with their case, also on a system
/// that ignores it: there `http_proxy` would find `HTTP_PROXY`, which a CGI program must ignore.
pub(in crate::adapter) fn environment_proxies() -> Proxies {
    Proxies::from_variables(|name| {
        let found = vars_os().find(|(key, _)| key == name);
        found.map(|(_, value)| value.to_string_lossy().into_owned())
    })
}
