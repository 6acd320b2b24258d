//! Forward proxies (RFC 9110 section 3.7): the settings, and the proxy of an origin. The variables
//! of the environment follow the conventions of curl and Go. This module reads no environment.

use super::no_proxy::{NoProxy, is_loopback};
use crate::exchange::Origin;
use crate::fetch::authority_with_port;
use crate::http_support::HttpSupport;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use core::fmt;

/// A forward proxy, reached over TCP without TLS. Its `Debug` shows no credentials, and
/// `==` compares them.
#[derive(Clone, PartialEq, Eq)]
pub struct Proxy {
    host: Arc<str>,
    port: u16,
    /// The value of `Proxy-Authorization`.
    authorization: Option<Arc<str>>,
    support: HttpSupport,
}

impl Proxy {
    /// Parses the URL of a proxy: `http://user:password@host:port`. The scheme and the path are
    /// optional, and the path has no effect. The default port is 80. User and password are
    /// percent-encoded UTF-8 (RFC 3986 section 3.2.1), and become Basic credentials (RFC 7617).
    ///
    /// # Errors
    /// [`BadProxy`] if it is not such a URL. Always without the feature `http`.
    ///
    /// ```
    /// use mcp_proto::client::Proxy;
    ///
    /// # #[cfg(feature = "http")] {
    /// let proxy = Proxy::parse("http://ann:s%40cret@proxy.example:3128").unwrap();
    /// assert_eq!((proxy.host(), proxy.port()), ("proxy.example", 3128));
    /// assert!(!format!("{proxy:?}").contains("ann"));
    /// # }
    /// ```
    pub fn parse(url: &str) -> Result<Self, BadProxy> {
        let support = HttpSupport::get().ok_or(BadProxy::Url)?;
        let whole = if url.contains("://") { url.into() } else { format!("http://{url}") };
        let parsed = iri_string::types::UriAbsoluteStr::new(&whole).map_err(|_| BadProxy::Url)?;
        if !parsed.scheme_str().eq_ignore_ascii_case("http") {
            return Err(BadProxy::Scheme);
        }
        let authority = parsed.authority_components().ok_or(BadProxy::Url)?;
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase();
        if host.is_empty() {
            return Err(BadProxy::Url);
        }
        let port = match authority.port() {
            None | Some("") => 80,
            Some(port) => port.parse().map_err(|_| BadProxy::Url)?,
        };
        let proxy = Self { host: host.into(), port, authorization: None, support };
        match authority.userinfo() {
            None | Some("") => Ok(proxy),
            Some(userinfo) => {
                let (user, password) = userinfo.split_once(':').unwrap_or((userinfo, ""));
                proxy.with_credentials(&decoded(user)?, &decoded(password)?)
            }
        }
    }

    /// Sets the credentials (RFC 7617). The client sends them with every request to the proxy, and
    /// to nothing else.
    ///
    /// # Errors
    /// [`BadProxy::Credentials`] if the user contains a colon, or either a control character.
    pub fn with_credentials(self, user: &str, password: &str) -> Result<Self, BadProxy> {
        let has_control = |text: &str| text.chars().any(char::is_control);
        if user.contains(':') || has_control(user) || has_control(password) {
            return Err(BadProxy::Credentials);
        }
        let credentials = format!("Basic {}", STANDARD.encode(format!("{user}:{password}")));
        Ok(Self { authorization: Some(credentials.into()), ..self })
    }

    /// Returns the host: a name, an IPv4 address, or an IPv6 address without its brackets.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Returns the port.
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// Returns whether the proxy has credentials.
    pub const fn has_credentials(&self) -> bool {
        self.authorization.is_some()
    }

    /// Returns the proxy that has these parts, from a recording. `None` without the feature `http`.
    #[cfg(feature = "record")]
    pub(crate) fn from_parts(host: String, port: u16, authorization: Option<String>) -> Option<Self> {
        let support = HttpSupport::get()?;
        Some(Self { host: host.into(), port, authorization: authorization.map(Into::into), support })
    }

    /// Returns the value of `Proxy-Authorization`, which is secret.
    pub(crate) fn authorization(&self) -> Option<&str> {
        self.authorization.as_deref()
    }

    /// Returns evidence of the feature `http`.
    pub(crate) const fn support(&self) -> HttpSupport {
        self.support
    }

    /// Returns the address of the proxy. `tls` is whether the connection begins TLS later.
    pub(crate) fn address(&self, tls: bool) -> Origin {
        Origin { tls, host: Arc::clone(&self.host), port: self.port }
    }

    /// Returns host and port, for people.
    pub(crate) fn name(&self) -> String {
        authority_with_port(&self.host, self.port)
    }
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Proxy")
            .field("host", &self.host)
            .field("port", &self.port)
            .field("has_credentials", &self.has_credentials())
            .finish_non_exhaustive()
    }
}

/// Decodes a part of the userinfo.
fn decoded(text: &str) -> Result<String, BadProxy> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut parts = text.split('%');
    bytes.extend_from_slice(parts.next().unwrap_or_default().as_bytes());
    for part in parts {
        let (code, rest) = part.split_at_checked(2).ok_or(BadProxy::Credentials)?;
        bytes.push(u8::from_str_radix(code, 16).map_err(|_| BadProxy::Credentials)?);
        bytes.extend_from_slice(rest.as_bytes());
    }
    String::from_utf8(bytes).map_err(|_| BadProxy::Credentials)
}

/// Why a proxy cannot be used. Its text contains nothing of the URL, which may contain a password.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum BadProxy {
    /// It is not a URL with a host. Reserved characters of a password must be percent-encoded.
    Url,
    /// The scheme is not `http`: TLS to a proxy and SOCKS are not supported.
    Scheme,
    /// User and password cannot be Basic credentials (RFC 7617 section 2).
    Credentials,
}

impl fmt::Display for BadProxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Url if HttpSupport::get().is_none() => "HTTP is not compiled in",
            Self::Url => "it is not a URL (in a password, encode reserved characters with %)",
            Self::Scheme => "its scheme is not `http`",
            Self::Credentials => "its user or password is not legal",
        })
    }
}

impl core::error::Error for BadProxy {}

/// The proxies of a client, and the servers that it reaches without one. A server at a loopback
/// address (`localhost`, `*.localhost`, `127.0.0.0/8`, `::1`) never has a proxy.
///
/// ```
/// use mcp_proto::client::{ClientConfig, NoProxy, Proxies, Proxy};
///
/// # #[cfg(feature = "http")] {
/// let mut config = ClientConfig::url("https://server.example/mcp").unwrap();
/// let proxy = Proxy::parse("http://proxy.example:3128").unwrap();
/// config.proxies = Proxies::all(proxy).except(NoProxy::parse("intranet.example, 10.0.0.0/8"));
/// # }
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
pub struct Proxies {
    #[cfg_attr(feature = "record", serde(with = "crate::record::value"))]
    http: ProxySetting,
    #[cfg_attr(feature = "record", serde(with = "crate::record::value"))]
    https: ProxySetting,
    #[cfg_attr(feature = "record", serde(with = "crate::record::value"))]
    except: NoProxy,
}

/// The proxy of one scheme.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) enum ProxySetting {
    #[default]
    None,
    Proxy(Proxy),
    /// A variable of this name, whose value cannot be used.
    Bad(String, BadProxy),
}

impl Proxies {
    /// Returns no proxies.
    pub fn none() -> Self {
        Self::default()
    }

    /// Returns this proxy for all schemes.
    pub fn all(proxy: Proxy) -> Self {
        Self::none().http(proxy.clone()).https(proxy)
    }

    /// Sets the proxy for `http` and `ws`. Requests over `http` have the absolute form (RFC 9112
    /// section 3.2.2), and a connection each, since some proxies close it after a response without
    /// saying so. A WebSocket has a tunnel (RFC 6455 section 4.1).
    #[must_use]
    pub fn http(self, proxy: Proxy) -> Self {
        Self { http: ProxySetting::Proxy(proxy), ..self }
    }

    /// Sets the proxy for `https` and `wss`, which opens a tunnel to the server (RFC 9110 section
    /// 9.3.6).
    #[must_use]
    pub fn https(self, proxy: Proxy) -> Self {
        Self { https: ProxySetting::Proxy(proxy), ..self }
    }

    /// Sets the servers that are reached without a proxy.
    #[must_use]
    pub fn except(self, except: NoProxy) -> Self {
        Self { except, ..self }
    }

    /// Reads the variables of an environment. `lookup` returns the value of a variable, and must
    /// distinguish small from capital letters.
    ///
    /// | scheme | variables, the first one counts that is set and not empty |
    /// |---|---|
    /// | `http`, `ws` | `http_proxy`, `HTTP_PROXY`, `all_proxy`, `ALL_PROXY` |
    /// | `https`, `wss` | `https_proxy`, `HTTPS_PROXY`, `all_proxy`, `ALL_PROXY` |
    /// | exceptions | `no_proxy`, `NO_PROXY`: see [`NoProxy::parse`] |
    ///
    /// `HTTP_PROXY` is ignored if `REQUEST_METHOD` is set: in a CGI program its value is the field
    /// `Proxy` of a request (RFC 3875 section 4.1.18).
    ///
    /// A value that [`Proxy::parse`] refuses is not ignored, since the client would then connect
    /// without the proxy. Connections that need it fail with
    /// [`ProxyFailureKind::Misconfigured`](crate::exchange::ProxyFailureKind::Misconfigured).
    pub fn from_variables(lookup: impl Fn(&str) -> Option<String>) -> Self {
        let is_cgi = lookup("REQUEST_METHOD").is_some();
        let first = |names: &[&str]| {
            let allowed = names.iter().filter(|name| !(is_cgi && **name == "HTTP_PROXY"));
            allowed.filter_map(|name| Some((String::from(*name), lookup(name)?))).find(|(_, value)| !value.is_empty())
        };
        let setting = |names: &[&str]| match first(names) {
            None => ProxySetting::None,
            Some((name, value)) => match Proxy::parse(value.trim()) {
                Ok(proxy) => ProxySetting::Proxy(proxy),
                Err(why) => ProxySetting::Bad(name, why),
            },
        };
        Self {
            http: setting(&["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"]),
            https: setting(&["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"]),
            except: first(&["no_proxy", "NO_PROXY"]).map(|(_, list)| NoProxy::parse(&list)).unwrap_or_default(),
        }
    }

    /// Returns whether there is no proxy for any scheme.
    pub fn is_none(&self) -> bool {
        self.http == ProxySetting::None && self.https == ProxySetting::None
    }

    /// Returns the proxy for this server. `None` if it is reached without one.
    ///
    /// # Errors
    /// The name of the variable that sets the proxy, and why its value cannot be used.
    pub fn route(&self, server: &Origin) -> Result<Option<&Proxy>, (&str, BadProxy)> {
        let setting = if server.tls { &self.https } else { &self.http };
        match setting {
            ProxySetting::None => Ok(None),
            _ if is_loopback(&server.host) || self.except.lists(&server.host, server.port) => Ok(None),
            ProxySetting::Proxy(proxy) => Ok(Some(proxy)),
            ProxySetting::Bad(name, why) => Err((name, *why)),
        }
    }

    /// Masks the credentials in a recording. Their lengths stay.
    #[cfg(feature = "record")]
    pub(crate) fn mask(&mut self, mask: impl Fn(&str) -> String) {
        for setting in [&mut self.http, &mut self.https] {
            if let ProxySetting::Proxy(Proxy { authorization: Some(authorization), .. }) = setting {
                *authorization = mask(authorization).into();
            }
        }
    }
}

#[cfg(test)]
mod tests;
