//! A login leaves none of its secrets in what an application logs, prints or records, in both
//! adapters.

use crate::command::issuer::{CANARY, Issuer, Setup, redirect};
use mcp_driver::{Browsed, ClientOptions, ConnectError, MemoryStore, OAuth};
use mcp_proto::record::{Recorder, Recording, Redaction};
use mcp_proto::tools;
use mcp_tests::adapters::{Adapter, Client};
use std::error::Error;
use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

/// What an application shows of a client.
#[derive(Clone, Default)]
struct Shown(Arc<Mutex<Vec<u8>>>);

impl Shown {
    fn add(&self, text: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(format!("{text}\n").as_bytes());
    }

    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()).expect("text")
    }

    /// Adds an error, with all its causes.
    fn add_error(&self, error: &dyn Error) {
        self.add(&format!("{error}\n{error:?}"));
        error.source().into_iter().for_each(|cause| self.add_error(cause));
    }
}

impl Write for Shown {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A program that shows whatever it can of a login.
struct Program {
    adapter: Adapter,
    issuer: Issuer,
    setup: Setup,
    store: MemoryStore,
    shown: Shown,
    recorded: Shown,
}

impl Program {
    fn new(adapter: Adapter, setup: Setup) -> Self {
        let (store, shown, recorded) = Default::default();
        Self { adapter, issuer: Issuer::start(setup), setup, store, shown, recorded }
    }

    /// Starts a client whose user opens each page, and shows everything.
    fn connect(&self, redaction: Redaction) -> Result<Client, ConnectError> {
        self.connect_with(redaction, false)
    }

    /// Starts a client whose user opens each page. `crashes`: its callback panics then.
    fn connect_with(&self, redaction: Redaction, crashes: bool) -> Result<Client, ConnectError> {
        let shown = self.shown.clone();
        let login = OAuth::new("shows").store(self.store.clone()).on_browse(move |page| {
            shown.add(&format!("{page:?}"));
            let returned = redirect(&page.url);
            let browsed = Browsed::Returned(returned);
            shown.add(&format!("{browsed:?}"));
            assert!(!crashes, "{page:?} {browsed:?}");
            browsed
        });
        let login = match self.setup.registers_none {
            true => login.client_secret(&self.issuer.origin, "mine", format!("{CANARY}-secret")),
            false => login,
        };
        let shown = self.shown.clone();
        let login = login.on_report(move |report| shown.add(&format!("{report}\n{report:?}")));
        self.shown.add(&format!("{login:?}"));
        let [events, notices, messages] = [0; 3].map(|_| self.shown.clone());
        let options = ClientOptions::new()
            .oauth(login)
            .on_event(move |event| events.add(&format!("{event:?}")))
            .on_notice(move |connection, notice| notices.add(&format!("{connection:?} {notice:?}")))
            .on_message(move |message| {
                messages.add(&format!("{message:?} {}", message.text()));
                Ok(())
            })
            .record(Recorder::to(redaction, self.recorded.clone()));
        self.shown.add(&format!("{options:?}"));
        self.adapter.connect(self.issuer.url(), options)
    }

    /// Shows a client, and the store.
    fn show(&self, client: &Client) {
        match client {
            Client::Blocking(client) => self.shown.add(&format!("{client:?} {:?}", client.stats())),
            Client::Smol(client, _) => self.shown.add(&format!("{client:?} {:?}", client.stats())),
        }
        self.shown.add(&format!("{:?}", self.store));
    }

    /// Returns the verifiers of the requests so far. The client draws them.
    fn verifiers(&self) -> Vec<String> {
        let asked = self.issuer.asked("POST /token");
        let verifiers = asked.iter().filter_map(|ask| {
            let (_, rest) = ask.split_once("code_verifier=")?;
            rest.split(['&', '\n']).next().map(str::to_owned)
        });
        verifiers.collect()
    }

    /// The text has none of the secrets.
    #[track_caller]
    fn is_clean(&self, text: &str) {
        let verifiers = self.verifiers();
        let of_client = "bwluztpjyw5hcnktc2vjcmv0";
        for secret in [CANARY, of_client].into_iter().chain(verifiers.iter().map(String::as_str)) {
            let at = text.to_lowercase().find(&secret.to_lowercase());
            let around = at.map(|at| text.get(at.saturating_sub(300)..(at + 300).min(text.len())));
            assert!(at.is_none(), "{secret}: {around:?}");
        }
    }
}

/// A login, a token that is renewed, calls, a logout, and a client that is not logged in any more.
fn life(program: &Program, redaction: Redaction) {
    let client = program.connect(redaction).expect("it connects");
    let tools = client.all(tools::list()).expect("a list");
    assert_eq!(tools.len(), 1);
    // There is no such method, which is an error.
    program.shown.add_error(&client.call(tools::call("echo")).expect_err("an error"));
    program.show(&client);
    client.logout().expect("in order");
    program.show(&client);
    program.shown.add(&format!("{:?}", client.close()));
}

// covers: AUTHS-C-017
#[test]
fn login_shows_no_secret_in_any_output() {
    let setup = Setup { is_fickle: true, ..Setup::default() };
    for (adapter, registers_none) in Adapter::ALL.into_iter().flat_map(|adapter| [(adapter, false), (adapter, true)]) {
        let program = Program::new(adapter, Setup { registers_none, ..setup });
        life(&program, Redaction::Redacted);
        let (shown, recorded) = (program.shown.text(), program.recorded.text());
        assert!(program.verifiers().len() == 1 && shown.contains("Authorized"), "{shown}");
        program.is_clean(&shown);
        program.is_clean(&recorded);
        let summary = Recording::read(recorded.as_bytes()).expect("a recording").replay().expect("the same");
        assert!(summary.complete && recorded.contains("code_verifier="), "{summary:?}");
    }
}

// The secrets are there, so the test above would find them.
#[test]
fn raw_recording_of_a_login_has_all_its_secrets() {
    let program = Program::new(Adapter::Blocking, Setup { is_fickle: true, registers_none: true, ..Setup::default() });
    life(&program, Redaction::Raw);
    let (shown, recorded) = (program.shown.text(), program.recorded.text());
    program.is_clean(&shown);
    let verifiers = program.verifiers();
    let canaries = ["access", "access-renewed", "code", "refresh", "refresh-renewed", "secret"];
    let canaries = canaries.map(|name| format!("{CANARY}-{name}"));
    for secret in canaries.iter().chain(&verifiers) {
        assert!(recorded.contains(secret), "{secret}");
    }
}

// Some authorization servers repeat the code or the refresh token in the description of an error.
#[test]
fn secrets_that_an_issuer_repeats_are_not_shown() {
    for (adapter, registers_none) in Adapter::ALL.into_iter().flat_map(|adapter| [(adapter, false), (adapter, true)]) {
        let program = Program::new(adapter, Setup { echoes: true, registers_none, ..Setup::default() });
        let error = program.connect(Redaction::Redacted).map(drop).expect_err("it is refused");
        program.shown.add_error(&error);
        let shown = program.shown.text();
        assert!(shown.contains("Invalid request: "), "{shown}");
        program.is_clean(&shown);
    }
}

// A program that crashes prints what it panics with.
#[test]
fn crash_in_the_middle_of_a_login_shows_no_secret() {
    for (adapter, registers_none) in Adapter::ALL.into_iter().flat_map(|adapter| [(adapter, false), (adapter, true)]) {
        let program = Program::new(adapter, Setup { registers_none, ..Setup::default() });
        let crash = catch_unwind(AssertUnwindSafe(|| program.connect_with(Redaction::Redacted, true).map(drop)));
        match crash {
            Ok(outcome) => program.shown.add_error(&outcome.expect_err("no page was opened")),
            Err(panic) => program.shown.add(panic.downcast_ref::<String>().expect("a text")),
        }
        let (shown, recorded) = (program.shown.text(), program.recorded.text());
        assert!(shown.contains("Returned"), "{shown}");
        program.is_clean(&shown);
        program.is_clean(&recorded);
    }
}
