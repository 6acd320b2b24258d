//! A user with a browser, and the clients that the user starts. They share a store.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use mcp_driver::{Browsed, ClientOptions, ConnectError, FileStore, OAuth, TokenStore};
use mcp_proto::auth::{Browse, Entry, StoreKey};
use mcp_proto::client::Event;
use mcp_proto::tools;
use rustls::ClientConfig;

use super::program::Program;
use crate::adapters::{Adapter, Client};
use crate::browser::{Browser, Consent};

/// Interval of the calls of a client.
pub(super) const PAUSE: Duration = Duration::from_millis(250);
/// The name of the user at the authorization server.
pub(super) const NAME: &str = "ann";

/// A user.
#[derive(Clone, Debug)]
pub(super) struct User {
    adapter: Adapter,
    store: PathBuf,
    /// What the user trusts beside plain HTTP.
    tls: Option<Arc<ClientConfig>>,
    /// Number of pages that clients showed.
    pages: Arc<AtomicUsize>,
    /// What the clients said of their logins.
    said: Arc<Mutex<Vec<String>>>,
}

impl User {
    pub(super) fn new(adapter: Adapter, store: PathBuf) -> Self {
        Self { adapter, store, tls: None, pages: Arc::default(), said: Arc::default() }
    }

    /// Returns the same user, who trusts the servers that `tls` trusts.
    pub(super) fn trusting(&self, tls: Arc<ClientConfig>) -> Self {
        Self { tls: Some(tls), ..self.clone() }
    }

    /// Returns a thief with a copy of the store as it is now.
    pub(super) fn thief(&self) -> Result<Self, String> {
        let store = self.store.with_extension("stolen");
        let copy = || {
            DirBuilder::new().mode(0o700).create(&store)?;
            for entry in fs::read_dir(&self.store)? {
                let entry = entry?;
                fs::copy(entry.path(), store.join(entry.file_name()))?;
            }
            Ok(())
        };
        copy().map_err(|why: std::io::Error| format!("{}: {why}", store.display()))?;
        Ok(Self { store, pages: Arc::default(), ..self.clone() })
    }

    /// Returns the folder of the store.
    pub(super) fn store(&self) -> &Path {
        &self.store
    }

    /// Returns what the user's programs are built with.
    pub(super) const fn adapter(&self) -> Adapter {
        self.adapter
    }

    /// Starts a client as a program of its own.
    pub(super) fn program(&self, url: &str) -> Result<Program, String> {
        Program::start(self.adapter, url, &self.store)
    }

    /// Starts a client that logs in as `login` says, beside the store.
    pub(super) fn connect(&self, url: &str, login: impl FnOnce(OAuth) -> OAuth) -> Result<Client, ConnectError> {
        let login = login(OAuth::new("auth-tests").store(FileStore::at(&self.store)));
        let user = self.clone();
        let options = ClientOptions::new().oauth(login).on_event(move |event| match event {
            Event::Auth(step) => user.say(format!("{step:?}")),
            Event::Diagnostic(diagnostic) => user.say(format!("{diagnostic:?}")),
            _ => {}
        });
        let options = match &self.tls {
            Some(tls) => options.tls(Arc::clone(tls)),
            None => options,
        };
        self.adapter.connect(url, options)
    }

    /// Answers the questions of a page, and returns the URL of the redirect.
    pub(super) fn redirect(&self, page: &Browse, consent: Consent) -> Result<String, String> {
        Browser::trusting(self.tls.clone()).log_in(&page.url, &page.redirect_uri, NAME, consent)
    }

    /// Returns what the clients said of their logins so far.
    pub(super) fn said(&self) -> Vec<String> {
        self.said.lock().map(|said| said.clone()).unwrap_or_default()
    }

    fn say(&self, line: String) {
        if let Ok(mut said) = self.said.lock() {
            said.push(line);
        }
    }

    /// Starts a client. Where it shows a page, the user logs in with a browser and answers the
    /// question, and the browser follows the redirect to the client.
    pub(super) fn start(&self, url: &str, consent: Consent) -> Result<Client, ConnectError> {
        let user = self.clone();
        self.connect(url, |login| {
            login.on_browse(move |page| {
                user.pages.fetch_add(1, Ordering::Relaxed);
                let (user, page) = (user.clone(), page.clone());
                thread::spawn(move || {
                    let shown = user.redirect(&page, consent).and_then(|url| Browser::new().get(&url));
                    user.say(format!("the last page: {shown:?}"));
                });
                Browsed::Opened
            })
        })
    }

    /// Returns the number of pages that clients have shown since the last time.
    pub(super) fn pages(&self) -> usize {
        self.pages.swap(0, Ordering::Relaxed)
    }

    /// Returns what the store has of this server.
    pub(super) fn stored(&self, url: &str) -> Result<Option<Entry>, String> {
        let key = StoreKey { server: url.to_owned(), account: String::new() };
        let stored = FileStore::at(&self.store).load(&key).map_err(|why| why.to_string())?;
        Ok(stored.record.and_then(|record| record.entries.into_iter().next()))
    }
}

/// Calls a tool of the server, and returns its text.
pub(super) fn call(client: &Client, tool: &str) -> Result<String, String> {
    let result = client.call(tools::call(tool)).map_err(|why| format!("{tool}: {why}"))?;
    result.first_text().map(str::to_owned).ok_or_else(|| format!("{tool}: no text"))
}
