//! The options of a login.

use super::store::{MemoryStore, TokenStore};
use crate::ClientOptions;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec;
use core::fmt;
use mcp_proto::auth::{
    AuthConfig, AuthReport, Browse, GivenClient, LoopbackHost, Port, Redirect, Registration, Scopes,
};

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
}

type BrowseFn = Arc<dyn Fn(&Browse) -> Browsed + Send + Sync>;
type ReportFn = Arc<dyn Fn(&AuthReport) + Send + Sync>;

/// What became of the page of a login, from [`OAuth::on_browse`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Browsed {
    /// It is open, or its URL is shown. The listener gets the redirect.
    Opened,
    /// The user, or the browser of the application, arrived at this URL.
    Returned(String),
    /// The user does not want to log in.
    Declined,
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
        let setup = LoginSetup { store: Arc::new(MemoryStore::new()), browse: None, report: None };
        Self { config: AuthConfig::new(client_name), setup }
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

    /// Sets the callback for what happens during logins. It runs on the thread of the login, which
    /// waits for it: it must not wait for the client itself.
    pub fn on_report(mut self, told: impl Fn(&AuthReport) + Send + Sync + 'static) -> Self {
        self.setup.report = Some(Arc::new(told));
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

    /// Lets no request begin a login: it ends with
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
    pub fn oauth(mut self, oauth: OAuth) -> Self {
        let OAuth { mut config, setup } = oauth;
        // No page could be shown.
        config.interactive &= setup.browse.is_some();
        self.login = Some(setup);
        self.set(move |client| client.auth = Some(Arc::new(config)))
    }
}

impl fmt::Debug for OAuth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OAuth").field("config", &self.config).finish_non_exhaustive()
    }
}
