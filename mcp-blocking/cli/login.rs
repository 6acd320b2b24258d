//! `mcp login` and `mcp logout`, and how the other commands use a login that is stored.

use crate::ask;
use crate::browser;
use crate::failure::Failure;
use crate::files;
use crate::options::{Identity, Login, Logout, Reach};
use crate::output::{self, line, note, one_line};
use crate::session;
use crate::target::Server;
use mcp_blocking::auth::{
    Alg, AuthReport, Browse, ClientAuth, ClientKey, DeviceCode, Entry, GivenClient, SaveFault, Scopes, Secret, SignKey,
    StoreFault, StoreKey,
};
use mcp_blocking::mcp_proto::client::Target;
use mcp_blocking::{Browsed, ClientOptions, FileStore, OAuth, TokenStore};
use std::collections::VecDeque;
use std::env;
use std::io::{self, IsTerminal};
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

/// The name of this program at authorization servers, and of the folder of its logins.
pub(crate) const NAME: &str = "mcp";

pub(crate) fn run(login: Login) -> Result<ExitCode, Failure> {
    let (server, words) = login.reach.server(login.words.clone())?;
    let (key, store) = (place(&login.reach, &server, words)?, FileStore::user(NAME).map_err(of_store)?);
    if has_credentials(&server) {
        return Err(Failure::usage(EXCLUDED));
    }
    let (is_obtained, not_stored) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(None)));
    let oauth = identified(&server, &login.reach)?.ok_or_else(|| Failure::usage(OFF))?;
    let oauth = configured(oauth, &login).store(store.clone());
    let (fault, is_quiet, has_browser) = (Arc::clone(&not_stored), login.reach.quiet, !login.no_browser);
    // A page is shown, or tokens without one have come.
    let [page_shown, code_shown, came] = [&is_obtained; 3].map(Arc::clone);
    let is_program = login.reach.identity.is_program();
    let listens = Arc::new(AtomicBool::new(true));
    let unheard = Arc::clone(&listens);
    let oauth = oauth
        .on_browse(move |page| {
            page_shown.store(true, Ordering::Relaxed);
            show(page, has_browser);
            returned(page, listens.load(Ordering::Relaxed))
        })
        .on_code(move |code| {
            code_shown.store(true, Ordering::Relaxed);
            show_code(code);
        })
        .on_report(move |report| match report {
            AuthReport::NoStore(why) | AuthReport::NotSaved(why) => {
                *fault.lock().unwrap_or_else(PoisonError::into_inner) = Some(why.clone());
            }
            AuthReport::NoListener(why) => {
                unheard.store(false, Ordering::Relaxed);
                note(format_args!("[mcp] no redirect arrives here: {why}"));
            }
            // It is printed in the end, with what is stored.
            AuthReport::Authorized { .. } => {
                came.fetch_or(is_program, Ordering::Relaxed);
            }
            _ if is_quiet => {}
            report => note(format_args!("[mcp] {report}")),
        });
    // A server that lets a client in without credentials, or with those that are stored, begins no
    // login by itself.
    let client = session::connect(server, ClientOptions::new().oauth(oauth))?;
    let ended = if is_obtained.load(Ordering::Relaxed) { Ok(()) } else { client.login() };
    client.close();
    ended.map_err(|error| Failure::Login(Box::new(error)))?;
    if let Some(why) = not_stored.lock().unwrap_or_else(PoisonError::into_inner).take() {
        return Err(of_store(why));
    }
    if let Some(entry) = entries(&store, &key).map_err(of_store)?.first() {
        line(&format!("logged in {}", described(entry, now())))?;
        let granted = entry.tokens.as_ref().map(|tokens| &tokens.granted);
        let is_missing = |scope: &&String| granted.is_some_and(|granted| !granted.contains(scope));
        let missing: Vec<String> = login.scopes.iter().filter(is_missing).map(|scope| one_line(scope)).collect();
        if !missing.is_empty() {
            note(format_args!("not granted: {}", missing.join(" ")));
        }
    }
    line(&format!("stored in {}", one_line(&store.path(&key).display().to_string())))?;
    if is_program {
        note("Other commands use it as it is; with the same options they also renew it.");
    }
    Ok(ExitCode::SUCCESS)
}

/// Removes a login. That needs no server: if it cannot be reached, its tokens are not revoked.
pub(crate) fn logout(logout: Logout) -> Result<ExitCode, Failure> {
    let (server, words) = logout.reach.server(logout.words)?;
    let (key, store) = (place(&logout.reach, &server, words)?, FileStore::user(NAME).map_err(of_store)?);
    if store.load(&key).map_err(of_store)?.record.is_none() {
        line(&format!("no login is stored for {}", server.name))?;
        return Ok(ExitCode::SUCCESS);
    }
    let revoked = match of_server(&logout.reach, &server, Pages::Never)? {
        Some(login) => session::connect(server, ClientOptions::new().oauth(login)).map_err(|why| why.to_string()),
        None => Err("the requests have credentials of their own".to_owned()),
    };
    let revoked = revoked.and_then(|client| {
        let revoked = client.logout();
        client.close();
        revoked.map_err(|why| why.to_string())
    });
    // Also if the client could not.
    remove(&store, &key).map_err(of_store)?;
    let told = match revoked {
        Ok(Some(true)) => "logged out, and the tokens are revoked".to_owned(),
        Ok(Some(false)) => "logged out; the authorization server did not confirm that it revoked the tokens".to_owned(),
        Ok(None) => "logged out".to_owned(),
        Err(why) => format!("logged out; the tokens are not revoked: {why}"),
    };
    line(&told)?;
    Ok(ExitCode::SUCCESS)
}

/// Removes a record, whatever its version.
fn remove(store: &FileStore, key: &StoreKey) -> Result<(), StoreFault> {
    let mut found = store.load(key)?;
    while found.record.is_some() {
        match store.save(key, found.version, None) {
            Ok(_) => break,
            // Another program has changed it meanwhile.
            Err(SaveFault::Conflict(other)) => found = other,
            Err(SaveFault::Fault(why)) => return Err(why),
        }
    }
    Ok(())
}

/// Whether a request without a login shows the page of one.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pages {
    /// If a user reads standard error, and answers.
    OnTerminal,
    Never,
    /// A login that is stored is not used either.
    Off,
}

/// Returns how a client of this server uses the login that is stored. `None` if its requests have
/// credentials of their own, or if it has no URL.
pub(crate) fn of_server(reach: &Reach, server: &Server, pages: Pages) -> Result<Option<OAuth>, Failure> {
    if pages == Pages::Off {
        return Ok(None);
    }
    if key(reach, server).is_none() || has_credentials(server) {
        return match reach.identity.is_program() {
            true if has_credentials(server) => Err(Failure::usage(EXCLUDED)),
            true => Err(Failure::usage(NO_LOGIN)),
            false => Ok(None),
        };
    }
    let Some(login) = identified(server, reach)? else { return Ok(None) };
    let is_quiet = reach.quiet;
    let login = login.on_report(move |report| {
        if !is_quiet && is_of_the_user(report) {
            note(format_args!("[mcp] {report}"));
        }
    });
    // Without a home nothing is stored.
    let login = match FileStore::user(NAME) {
        Ok(store) => login.store(store),
        Err(_) => login,
    };
    if pages == Pages::Never || !ask::can_ask() || !io::stderr().is_terminal() {
        return Ok(Some(login.not_interactive()));
    }
    // Standard input is that of the command.
    Ok(Some(login.on_browse(|page| show(page, true))))
}

const EXCLUDED: &str = "a login and a field Authorization of your own exclude each other: leave out one";
const OFF: &str = "the file turns logins of this server off";
const NO_LOGIN: &str = "a program has no login: TARGET is a URL";

/// Returns whether a report is about the surroundings of the user, and not about the servers.
const fn is_of_the_user(report: &AuthReport) -> bool {
    matches!(
        report,
        AuthReport::OtherLogin | AuthReport::NoStore(_) | AuthReport::NotSaved(_) | AuthReport::NoListener(_)
    )
}

/// Returns the options of a login that the command line asks for.
fn configured(mut oauth: OAuth, login: &Login) -> OAuth {
    oauth = oauth.config(|config| login.scopes.iter().for_each(|scope| config.scopes.insert(scope)));
    if login.device {
        oauth = oauth.device();
    }
    if let Some(port) = login.callback_port {
        oauth = oauth.callback_port(port);
    }
    match &login.client_document {
        Some(url) => oauth.client_document(url),
        None => oauth,
    }
}

/// Returns the options of this account and client. `None` if a file turns logins off.
pub(crate) fn identified(server: &Server, reach: &Reach) -> Result<Option<OAuth>, Failure> {
    let Identity { machine, client_id, client_secret_env, client_key, key_alg, assertion_file, issuer } =
        &reach.identity;
    let Some(oauth) = server.login.clone() else { return Ok(None) };
    let mut oauth = oauth.account(account(reach));
    if let (Some(client_id), Some(issuer)) = (client_id, issuer) {
        let key = client_key.as_deref().map(|path| key_of(path, key_alg.unwrap_or(Alg::Es256))).transpose()?;
        let secret = client_secret_env.as_deref().map(secret).transpose()?.map(ClientAuth::Secret);
        let auth = key.or(secret).unwrap_or_default();
        oauth = oauth.client(GivenClient { issuer: issuer.clone(), client_id: client_id.clone(), auth });
    }
    if *machine {
        oauth = oauth.machine();
    }
    if let Some(path) = assertion_file {
        oauth = oauth.assertion_file(path);
    }
    Ok(Some(oauth.config(|config| config.issuer = issuer.clone().or(config.issuer.take()))))
}

/// Returns the private key in a file.
fn key_of(path: &Path, alg: Alg) -> Result<ClientAuth, Failure> {
    let text = files::text(path)
        .map_err(|why| Failure::usage(format!("--client-key {}: {why}", one_line(&path.to_string_lossy()))))?;
    Ok(ClientAuth::Key(ClientKey { key: SignKey::Pkcs8(Secret::new(text)), alg, kid: None }))
}

fn secret(variable: &str) -> Result<Secret, Failure> {
    let value = env::var(variable).map_err(|_| {
        Failure::usage(format!("--client-secret-env: the environment has no variable {}", one_line(variable)))
    })?;
    Ok(Secret::new(value))
}

fn account(reach: &Reach) -> &str {
    reach.account.as_deref().unwrap_or_default()
}

/// Returns whether the requests have a field `Authorization`, which no login replaces.
fn has_credentials(server: &Server) -> bool {
    server.config.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("authorization"))
}

/// Returns the name of the record of this server. `None` if it has no URL.
pub(crate) fn key(reach: &Reach, server: &Server) -> Option<StoreKey> {
    let url = match &server.config.target {
        Target::Http(target) => target.original.clone(),
        // The same server, with the same tokens.
        Target::Ws(target) => target.original.replacen("ws", "http", 1),
        _ => return None,
    };
    let server = url.split('#').next().unwrap_or_default().to_owned();
    Some(StoreKey { server, account: account(reach).to_owned() })
}

/// Returns the name of the record of the only target of the command line.
fn place(reach: &Reach, server: &Server, mut rest: VecDeque<String>) -> Result<StoreKey, Failure> {
    if let Some(word) = rest.pop_front() {
        return Err(Failure::usage(format!("`{}` is one word too many", output::word(&word))));
    }
    key(reach, server).ok_or_else(|| Failure::usage(NO_LOGIN))
}

fn of_store(why: StoreFault) -> Failure {
    Failure::Output(io::Error::other(format!("the store of logins: {why}")))
}

/// Shows the page of a login, and starts a browser with it.
fn show(page: &Browse, has_browser: bool) {
    let scopes = if page.scopes.is_empty() { String::new() } else { format!(" for {}", page.scopes) };
    note(format_args!("Log in at {}{scopes}. Open this page in a browser:", one_line(&page.issuer)));
    note(one_line(&page.url));
    if has_browser {
        // It is shown in any case, so it does not matter if there is no browser.
        drop(browser::open(&page.url));
    }
}

/// Shows a code that the user enters at another device.
fn show_code(code: &DeviceCode) {
    let scopes = if code.scopes.is_empty() { String::new() } else { format!(" for {}", code.scopes) };
    let issuer = one_line(&code.issuer);
    note(format_args!("Log in at {issuer}{scopes}. Open this page on any device, and enter the code there:"));
    note(one_line(&code.verification_uri));
    note(format_args!("Code: {}", one_line(code.user_code.expose())));
}

/// Waits for a line with the URL at which a browser arrived. At the end of the input, the listener
/// alone waits for it.
fn returned(page: &Browse, listens: bool) -> Browsed {
    match ask::can_ask() {
        true if listens => note("If the browser is on another machine, paste here the URL at which it arrives."),
        true => note("In the end the browser shows an error: paste here the URL that it shows then."),
        false => {}
    }
    while let Some(text) = ask::answer() {
        let url = text.trim();
        if url.starts_with(&page.redirect_uri) {
            return Browsed::Returned(url.to_owned());
        }
        if !url.is_empty() {
            note(format_args!("That is another URL: it begins with {}", one_line(&page.redirect_uri)));
        }
    }
    Browsed::Opened
}

/// Returns what is stored for a server: the last login first.
fn entries(store: &FileStore, key: &StoreKey) -> Result<Vec<Entry>, StoreFault> {
    Ok(store.load(key)?.record.map(|record| record.entries).unwrap_or_default())
}

/// What is known of the logins at a server.
pub(crate) enum Held {
    /// The requests have credentials of their own.
    Off,
    /// A line for each.
    Logins(Vec<String>),
    Fault(StoreFault),
}

/// Returns what is stored for this server, without secrets. `None` if it has no URL, or the user no
/// home.
pub(crate) fn held(reach: &Reach, server: &Server) -> Option<Held> {
    let key = key(reach, server)?;
    if has_credentials(server) {
        return Some(Held::Off);
    }
    Some(match entries(&FileStore::user(NAME).ok()?, &key) {
        Ok(entries) => Held::Logins(entries.iter().map(|entry| described(entry, now())).collect()),
        Err(why) => Held::Fault(why),
    })
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// Returns the issuer, the scopes and the end of a login, in Unix seconds.
fn described(entry: &Entry, now: u64) -> String {
    let issuer = one_line(&entry.issuer);
    let Some(tokens) = &entry.tokens else { return format!("at {issuer}: a client, without tokens") };
    let scopes = |scopes: &Scopes| if scopes.is_empty() { String::new() } else { format!(" for {scopes}") };
    let end = match tokens.expires {
        None => "without a stated end".to_owned(),
        Some(expires) if expires <= now => format!("expired {} ago", span(now - expires)),
        Some(expires) => format!("expires in {}", span(expires - now)),
    };
    let then = if tokens.refresh_token.is_some() { ", and is renewed" } else { "" };
    format!("at {issuer}{}: {end}{then}", scopes(&tokens.granted))
}

/// Returns a time for people, with its two largest units.
fn span(seconds: u64) -> String {
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    let two = |large: u64, unit: &str, small: u64, other: &str| match small {
        0 => format!("{large} {unit}"),
        _ => format!("{large} {unit} {small} {other}"),
    };
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => two(minutes, "min", seconds % 60, "s"),
        3600..86_400 => two(hours, "h", minutes % 60, "min"),
        _ => two(days, "d", hours % 24, "h"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mcp_blocking::auth::{AuthMethod, ClientSource, RegisteredClient, TokenType, Tokens};

    fn entry(tokens: Option<Tokens>) -> Entry {
        let client = RegisteredClient {
            client_id: "id".to_owned(),
            client_secret: Some(Secret::new("canary")),
            secret_expires: None,
            method: AuthMethod::Basic,
            redirect_uri: None,
            scopes: Scopes::new(),
            source: ClientSource::Dynamic,
        };
        let (issuer, resource) = ("https://i\u{1b}".to_owned(), "https://h/mcp".to_owned());
        Entry { issuer, resource, client, requested: Scopes::new(), tokens }
    }

    #[test]
    fn stored_login_is_described_without_its_secrets() {
        let of = |expires, refresh: Option<&str>| {
            let tokens = Tokens {
                access_token: Secret::new("canary"),
                refresh_token: refresh.map(Secret::new),
                expires,
                lifetime: None,
                granted: Scopes::parse("a b"),
                generation: 1,
                token_type: TokenType::Bearer,
                dpop_key: None,
            };
            described(&entry(Some(tokens)), 1000)
        };
        assert_eq!(
            of(Some(1090), Some("canary")),
            r"at https://i\u{1b} for a b: expires in 1 min 30 s, and is renewed"
        );
        assert_eq!(of(Some(1000), None), r"at https://i\u{1b} for a b: expired 0 s ago");
        assert_eq!(of(None, None), r"at https://i\u{1b} for a b: without a stated end");
        assert_eq!(described(&entry(None), 0), r"at https://i\u{1b}: a client, without tokens");
    }

    #[test]
    fn span_has_two_units() {
        let spans = [59, 60, 3599, 3600, 86_399, 90_000, 864_000].map(span);
        assert_eq!(spans, ["59 s", "1 min", "59 min 59 s", "1 h", "23 h 59 min", "1 d 1 h", "10 d"]);
    }
}
