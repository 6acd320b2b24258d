//! The options of a login.

#[cfg(all(test, not(shuttle)))]
mod tests;

use super::store::{MemoryStore, TokenStore};
use crate::ClientOptions;
use crate::keys::MAKES_KEYS;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;
use mcp_proto::Object;
use mcp_proto::auth::{
    Alg, AssertionRequest, AuthConfig, AuthReport, Browse, ClientAuth, ClientKey, DeviceCode, Dpop, GivenClient, Grant,
    IdentityProvider, LoopbackHost, Port, Redirect, Registration, Scopes, Secret, SignKey, SignRequest,
};
use mcp_proto::redact::Url;
use std::fs;
use std::path::PathBuf;

/// How a client logs in at its server (OAuth 2.1), for [`ClientOptions::oauth`]. Clones share their
/// store and their callbacks.
#[derive(Clone)]
#[must_use]
pub struct OAuth {
    pub(super) config: AuthConfig,
    pub(super) setup: LoginSetup,
}

/// What the thread of a login uses.
#[derive(Clone)]
pub(crate) struct LoginSetup {
    pub(super) store: Arc<dyn TokenStore>,
    pub(super) browse: Option<BrowseFn>,
    pub(super) report: Option<ReportFn>,
    pub(super) code: Option<CodeFn>,
    pub(super) assertion: Option<AssertionFn>,
    pub(super) sign: Option<SignFn>,
}

type CodeFn = Arc<dyn Fn(&DeviceCode) -> Browsed + Send + Sync>;
type AssertionFn = Arc<dyn Fn(&AssertionRequest) -> Result<Secret, String> + Send + Sync>;
type SignFn = Arc<dyn Fn(&SignRequest) -> Result<Vec<u8>, String> + Send + Sync>;
type BrowseFn = Arc<dyn Fn(&Browse) -> Browsed + Send + Sync>;
type ReportFn = Arc<dyn Fn(&AuthReport) + Send + Sync>;

/// What became of the page of a login, from [`OAuth::on_browse`].
#[derive(Clone, PartialEq, Eq)]
pub enum Browsed {
    /// It is open, or its URL is shown. The listener gets the redirect.
    Opened,
    /// The user, or the browser of the application, arrived at this URL.
    Returned(String),
    /// The user does not want to log in.
    Declined,
}

impl fmt::Debug for Browsed {
    /// Does not show the code in a URL.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Opened => f.write_str("Opened"),
            Self::Returned(url) => f.debug_tuple("Returned").field(&Url(url)).finish(),
            Self::Declined => f.write_str("Declined"),
        }
    }
}

impl From<()> for Browsed {
    fn from((): ()) -> Self {
        Self::Opened
    }
}

impl OAuth {
    /// Creates the options of a program. Users see its name at the authorization server. The login
    /// is kept in memory.
    pub fn new(client_name: impl Into<String>) -> Self {
        let store = Arc::new(MemoryStore::new());
        let setup = LoginSetup { store, browse: None, report: None, code: None, assertion: None, sign: None };
        let mut config = AuthConfig::new(client_name);
        if MAKES_KEYS {
            config.dpop = Dpop::IfOffered;
        }
        Self { config, setup }
    }

    /// Keeps logins in this store. `Arc<dyn TokenStore>` is one, for several clients.
    pub fn store(mut self, store: impl TokenStore + 'static) -> Self {
        self.setup.store = Arc::new(store);
        self
    }

    /// Sets the callback that shows the page of a login to the user. The URL was checked; a program
    /// opens it as one argument of a command, without a shell. The callback has a thread of its own
    /// and may block, since the listener can get the redirect before it returns. Without this
    /// callback no request begins a login, and one that is begun counts as declined.
    pub fn on_browse<R: Into<Browsed>>(mut self, show: impl Fn(&Browse) -> R + Send + Sync + 'static) -> Self {
        self.setup.browse = Some(Arc::new(move |page| show(page).into()));
        self
    }

    /// Lets users log in at another device, where they enter a code (RFC 8628): for programs on
    /// machines without a browser. The authorization server has to offer it.
    /// [`on_code`](Self::on_code) shows the code.
    pub fn device(mut self) -> Self {
        self.config.grant = Grant::Device;
        self
    }

    /// Sets the callback that shows the page and the code of [`device`](Self::device) to the user.
    /// The URLs were checked. It has a thread of its own and may block. [`Browsed::Declined`] ends
    /// the login, and every other return value means that the code is shown. Without this callback
    /// no request begins such a login.
    pub fn on_code<R: Into<Browsed>>(mut self, show: impl Fn(&DeviceCode) -> R + Send + Sync + 'static) -> Self {
        self.setup.code = Some(Arc::new(move |code| show(code).into()));
        self
    }

    /// Logs in as the program itself, without a user: with the credentials of
    /// [`client_secret`](Self::client_secret), [`private_key`](Self::private_key) or
    /// [`client`](Self::client), which its operator registered at the authorization server.
    pub fn machine(mut self) -> Self {
        self.config.grant = Grant::ClientCredentials;
        self
    }

    /// Uses a client with a secret that is registered already at this issuer: as
    /// [`client`](Self::client). No other issuer gets the secret.
    pub fn client_secret(
        self,
        issuer: impl Into<String>,
        client_id: impl Into<String>,
        secret: impl Into<Secret>,
    ) -> Self {
        let auth = ClientAuth::Secret(secret.into());
        self.client(GivenClient { issuer: issuer.into(), client_id: client_id.into(), auth })
    }

    /// Uses a client with a private key that is registered already at this issuer: as
    /// [`client`](Self::client). The key is PKCS#8, as PEM or as Base64 of DER. It signs an
    /// assertion for each request (`private_key_jwt`), with the cryptography of the features `tls`,
    /// `tls-graviola` or `rustls`.
    pub fn private_key(
        self,
        issuer: impl Into<String>,
        client_id: impl Into<String>,
        key: impl Into<Secret>,
        alg: Alg,
    ) -> Self {
        let auth = ClientAuth::Key(ClientKey { key: SignKey::Pkcs8(key.into()), alg, kid: None });
        self.client(GivenClient { issuer: issuer.into(), client_id: client_id.into(), auth })
    }

    /// Sets the callback that signs with the keys that the configuration only
    /// [names](SignKey::Named): those of a hardware module, or of a service. It returns the
    /// signature as RFC 7518 section 3 defines it. It has a thread of its own and may block, and
    /// the login ends if it takes longer than
    /// [`token_time`](mcp_proto::auth::AuthLimits::token_time).
    pub fn on_sign(mut self, sign: impl Fn(&SignRequest) -> Result<Vec<u8>, String> + Send + Sync + 'static) -> Self {
        self.setup.sign = Some(Arc::new(sign));
        self
    }

    /// Logs in with an assertion of the platform that runs the program, without a client identifier
    /// and without a secret (RFC 7523, workload identity). With
    /// [`identity_provider`](Self::identity_provider), it is what the application has of the login
    /// of its user. The callback is asked each time; as that of [`on_sign`](Self::on_sign), it has
    /// a thread of its own and a limited time.
    pub fn assertion(
        mut self,
        provide: impl Fn(&AssertionRequest) -> Result<Secret, String> + Send + Sync + 'static,
    ) -> Self {
        if !matches!(self.config.grant, Grant::Enterprise(_)) {
            self.config.grant = Grant::Assertion;
        }
        self.setup.assertion = Some(Arc::new(provide));
        self
    }

    /// Logs in with the assertion in this file, which the platform replaces from time to time: as
    /// [`assertion`](Self::assertion). White space around it does not count.
    pub fn assertion_file(self, path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        self.assertion(move |_| {
            let text = fs::read_to_string(&path).map_err(|why| format!("{}: {why}", path.display()))?;
            Ok(Secret::new(text.trim()))
        })
    }

    /// Logs in with the login of a user at the identity provider of an organization, which
    /// [`assertion`](Self::assertion) gives. The client itself is one that
    /// [is registered](Self::client) at the issuer of the server, or has a
    /// [document](Self::client_document).
    pub fn identity_provider(mut self, provider: IdentityProvider) -> Self {
        self.config.grant = Grant::Enterprise(Box::new(provider));
        self
    }

    /// Sets the callback for what happens during logins. It runs on the thread of the login, which
    /// waits for it: it must not wait for the client itself.
    pub fn on_report(mut self, told: impl Fn(&AuthReport) + Send + Sync + 'static) -> Self {
        self.setup.report = Some(Arc::new(told));
        self
    }

    /// Sets whether tokens are bound to a key. Each request then proves that the client has it (RFC
    /// 9449). The store keeps the key with the tokens. Default: if the server asks for it and its
    /// issuer can, with the feature `tls` or `tls-graviola`, which make keys; otherwise not.
    pub fn dpop(mut self, dpop: Dpop) -> Self {
        self.config.dpop = dpop;
        self
    }

    /// Sets the scopes that are requested always, beside those that the server asks for.
    pub fn scopes<S: AsRef<str>>(mut self, scopes: impl IntoIterator<Item = S>) -> Self {
        self.config.scopes = scopes.into_iter().fold(Scopes::new(), |mut all, scope| {
            all.insert(scope.as_ref());
            all
        });
        self
    }

    /// Uses a client that is registered already, at its issuer. It comes before all other ways.
    pub fn client(mut self, client: GivenClient) -> Self {
        self.config.registrations.insert(0, Registration::Given(client));
        self
    }

    /// Uses a client metadata document where the authorization server supports it: the `https:` URL
    /// is the client identifier.
    pub fn client_document(mut self, url: impl Into<String>) -> Self {
        let at = self.config.registrations.iter().take_while(|way| matches!(way, Registration::Given(_))).count();
        self.config.registrations.insert(at, Registration::Document(url.into()));
        self
    }

    /// Sets the account of the user, for a program with several: each has its own login.
    pub fn account(mut self, name: impl Into<String>) -> Self {
        self.config.account = name.into();
        self
    }

    /// Listens for the redirect on this port. Some authorization servers compare it.
    pub fn callback_port(mut self, number: u16) -> Self {
        if let Redirect::Loopback { port, .. } = &mut self.config.redirect {
            *port = Port::FirstOf(vec![number]);
        }
        self
    }

    /// Names `localhost` in the redirect URI in place of `127.0.0.1`. Some authorization servers
    /// know no other host.
    pub fn localhost(mut self) -> Self {
        if let Redirect::Loopback { host, .. } = &mut self.config.redirect {
            *host = LoopbackHost::Localhost;
        }
        self
    }

    /// Lets no request begin a login of a user: it ends with
    /// [`AuthError::LoginRequired`](mcp_proto::error::AuthError::LoginRequired).
    pub fn not_interactive(mut self) -> Self {
        self.config.interactive = false;
        self
    }

    /// Changes any field of the configuration.
    pub fn config(mut self, change: impl FnOnce(&mut AuthConfig)) -> Self {
        change(&mut self.config);
        self
    }
}

impl ClientOptions {
    /// Logs in when the server demands it: see [`OAuth`]. It has effect over HTTP and WebSocket.
    /// With a field `Authorization` or `DPoP` of [`header`](Self::header), the client ends at once
    /// with [`AuthError::OwnCredentials`](mcp_proto::error::AuthError::OwnCredentials).
    pub fn oauth(mut self, oauth: OAuth) -> Self {
        let OAuth { mut config, setup } = oauth;
        // Nothing could be shown.
        config.interactive &= match config.grant {
            Grant::Device => setup.code.is_some(),
            _ => setup.browse.is_some(),
        };
        self.login = Some(setup);
        self.set(move |client| {
            if let Some(id) = config.grant.extension() {
                // The identifier is a valid one.
                let _ = client.capabilities.extensions.declare(id, Object::new());
            }
            client.auth = Some(Arc::new(config));
        })
    }
}

impl fmt::Debug for OAuth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OAuth").field("config", &self.config).finish_non_exhaustive()
    }
}
