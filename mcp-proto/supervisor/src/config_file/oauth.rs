//! From the login of a file to the options of a login.

use super::build::Trust;
use super::entry::{ServerEntry, ServerLaunch};
use super::error::{ConfigError, ConfigErrorKind};
use super::login::LoginTexts;
use super::variables::{Forms, Lookup, Variable};
use alloc::string::{String, ToString};
use alloc::vec;
use mcp_driver::OAuth;
use mcp_proto::auth::{ClientAuth, GivenClient, LoopbackHost, Port, Redirect, Secret};
use mcp_proto::client::HttpTarget;

impl ServerEntry {
    /// Returns the options of a login at this server: those of the application, with what the file
    /// says of it. `None` if the file turns logins off, or the server has a command. `lookup` and
    /// `trust` as for [`client_config`](Self::client_config).
    ///
    /// A client identifier without the URL of metadata is one at the authorization server that the
    /// server names: [`GivenClient::issuer`].
    ///
    /// ```
    /// use mcp_driver::{ClientOptions, OAuth};
    /// use mcp_supervisor::config_file::{ConfigFile, Trust};
    ///
    /// let text = r#"{"mcpServers": {"mail": {
    ///     "url": "https://mail.example/mcp", "oauth": {"clientId": "acme", "callbackPort": 4711},
    /// }}}"#;
    /// let file = ConfigFile::parse(text).unwrap();
    /// let entry = file.server("mail").unwrap().unwrap();
    /// let oauth = OAuth::new("my-app").on_browse(|page| println!("open {}", page.url));
    /// let login = entry.login(oauth, &|_| None, Trust::Trusted).unwrap();
    /// let options = login.map_or(ClientOptions::new(), |login| ClientOptions::new().oauth(login));
    /// # drop(options);
    /// ```
    ///
    /// # Errors
    /// As for [`client_config`](Self::client_config).
    pub fn login(
        &self,
        oauth: OAuth,
        lookup: &dyn Fn(Variable<'_>) -> Option<String>,
        trust: Trust,
    ) -> Result<Option<OAuth>, ConfigError> {
        self.check_trust(trust)?;
        match &self.launch {
            ServerLaunch::Program { .. } => Ok(None),
            ServerLaunch::Url { login: None, .. } => Ok(Some(oauth)),
            ServerLaunch::Url { login: Some(login), .. } if login.is_off => Ok(None),
            ServerLaunch::Url { login: Some(login), .. } => self.with_login(oauth, login, lookup).map(Some),
        }
    }

    fn with_login(&self, mut oauth: OAuth, login: &LoginTexts, lookup: Lookup<'_>) -> Result<OAuth, ConfigError> {
        let issuer = match &login.metadata {
            None => None,
            Some(url) => {
                let issuer = issuer_of(&self.resolve(url, lookup)?);
                Some(issuer.ok_or_else(|| self.fault(url, ConfigErrorKind::MetadataUrl))?)
            }
        };
        if let Some(client_id) = &login.client_id {
            let secret = login.client_secret.as_ref().map(|secret| self.resolve(secret, lookup)).transpose()?;
            oauth = oauth.client(GivenClient {
                issuer: issuer.clone().unwrap_or_default(),
                client_id: self.resolve(client_id, lookup)?,
                auth: secret.map_or(ClientAuth::None, |secret| ClientAuth::Secret(Secret::new(secret))),
            });
        }
        for scopes in &login.scopes {
            let scopes = self.resolve(scopes, lookup)?;
            oauth = oauth.config(|config| scopes.split_whitespace().for_each(|scope| config.scopes.insert(scope)));
        }
        if let Some(port) = login.callback_port {
            let redirect = self.redirect(port);
            oauth = oauth.config(|config| config.redirect = redirect);
        }
        if let Some(url) = &login.redirect {
            let redirect = redirect_of(self.resolve(url, lookup)?);
            oauth = oauth.config(|config| config.redirect = redirect);
        }
        Ok(oauth.config(|config| config.issuer = issuer.or(config.issuer.take())))
    }

    /// Returns the redirect URI of a client with this port, which its authorization server
    /// compares: that of opencode, or of Claude Code.
    fn redirect(&self, port: u16) -> Redirect {
        let (host, path) = match self.forms {
            Forms::OpenCode => (LoopbackHost::V4, "/mcp/oauth/callback"),
            _ => (LoopbackHost::Localhost, "/callback"),
        };
        Redirect::Loopback { host, port: Port::FirstOf(vec![port]), path: path.into() }
    }
}

/// Returns the issuer whose metadata is at this URL (RFC 8414 section 3.1).
fn issuer_of(url: &str) -> Option<String> {
    let (base, rest) = url.split_once("/.well-known/")?;
    let forms = ["oauth-authorization-server", "openid-configuration"];
    let path = forms.iter().find_map(|form| rest.strip_prefix(form))?;
    (path.is_empty() || path.starts_with('/')).then(|| [base, path].concat())
}

/// Returns where this redirect URI leads: to a listener if it is one of this machine.
fn redirect_of(url: String) -> Redirect {
    let Ok(target) = HttpTarget::parse(&url) else { return Redirect::Fixed(url) };
    let hosts = [LoopbackHost::V4, LoopbackHost::Localhost];
    match hosts.into_iter().find(|host| host.as_str() == &*target.origin.host && !target.origin.tls) {
        Some(host) => {
            Redirect::Loopback { host, port: Port::FirstOf(vec![target.origin.port]), path: target.path.to_string() }
        }
        None => Redirect::Fixed(url),
    }
}
