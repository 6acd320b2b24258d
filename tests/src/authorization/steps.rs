//! The steps of the life of a login.

use std::collections::VecDeque;
use std::thread;
use std::time::{Duration, Instant};

use mcp_driver::{Browsed, ConnectError, OAuth};
use mcp_proto::auth::Scopes;
use mcp_proto::error::{AuthError, NegotiationError, Problem};
use mcp_proto::tools;

use super::bound;
use super::foreign;
use super::grants;
use super::ground::Ground;
use super::identity;
use super::leases;
use super::ours;
use super::program::Program;
use super::servers::{BRIEF, BRIEFLY, Expected, LONG, Servers, TEN};
use super::transports;
use super::user::{NAME, PAUSE, User, call};
use crate::adapters::{Adapter, Client, cause};
use crate::browser::Consent;

/// Number of clients that share a store.
const CLIENTS: usize = 8;
/// For how long they call.
const WHILE: Duration = Duration::from_secs(16);
/// Maximum time until one of them is logged in.
const SOON: Duration = Duration::from_secs(60);
/// For how long programs call, and the interval at which one of them is killed.
const LONGER: Duration = Duration::from_secs(300);
const KILLED: Duration = Duration::from_secs(15);

/// One step, with an adapter.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// Its name.
    pub name: &'static str,
    run: Run,
}

/// What a step needs.
#[derive(Clone, Copy, Debug)]
enum Run {
    /// The servers of `op.mjs`.
    Own(fn(&Servers, &User) -> Result<String, String>),
    /// A server that it starts.
    Foreign(fn(&Ground, &User) -> Result<String, String>),
}

/// All steps. Those that take the longest come first.
pub const STEPS: [Step; 29] = [
    Step { name: "programs that are killed", run: Run::Own(killed) },
    Step { name: "workers-oauth-provider", run: Run::Foreign(foreign::workers) },
    Step { name: "rotation among clients", run: Run::Own(rotation) },
    Step { name: "expiry", run: Run::Own(expiry) },
    Step { name: "credentials of the client", run: Run::Own(grants::secret) },
    Step { name: "a code on another device", run: Run::Own(grants::device) },
    Step { name: "a dead family of tokens", run: Run::Own(dead_family) },
    Step { name: "tokens that are bound to a key", run: Run::Own(bound::bound) },
    Step { name: "a login without leases", run: Run::Own(leases::without) },
    Step { name: "an identity provider", run: Run::Foreign(identity::fastmcp) },
    Step { name: "our server over https", run: Run::Foreign(transports::https) },
    Step { name: "our server over HTTP+SSE", run: Run::Own(transports::sse) },
    Step { name: "our server over WebSocket", run: Run::Own(transports::web_socket) },
    Step { name: "FastMCP", run: Run::Foreign(foreign::fastmcp) },
    Step { name: "a guarded TypeScript server", run: Run::Foreign(foreign::typescript) },
    Step { name: "a guarded Python server", run: Run::Foreign(foreign::python) },
    Step { name: "our server", run: Run::Own(ours::login) },
    Step { name: "our server and other tokens", run: Run::Own(ours::other_tokens) },
    Step { name: "our server asks about tokens", run: Run::Own(ours::opaque) },
    Step { name: "our server, a TypeScript client", run: Run::Foreign(ours::typescript) },
    Step { name: "our server, a Python client", run: Run::Foreign(ours::python) },
    Step { name: "login and call", run: Run::Own(login) },
    Step { name: "kept across a restart", run: Run::Own(restart) },
    Step { name: "step-up", run: Run::Own(step_up) },
    Step { name: "a key of the client", run: Run::Own(grants::key) },
    Step { name: "logout", run: Run::Own(logout) },
    Step { name: "a refused consent", run: Run::Own(refused) },
    Step { name: "a refused step-up", run: Run::Own(refused_step_up) },
    Step { name: "a pasted redirect", run: Run::Own(pasted) },
];

impl Step {
    /// Takes the step, with new servers and a new user. Returns what is worth a word about it.
    ///
    /// # Errors
    /// What is wrong, and what the clients said of their logins.
    pub fn take(&self, ground: &Ground, adapter: Adapter) -> Result<String, String> {
        let user = ground.user(self.name, adapter);
        let result = match self.run {
            Run::Own(run) => Servers::start(ground).and_then(|servers| run(&servers, &user)),
            Run::Foreign(run) => run(ground, &user),
        };
        result.map_err(|why| user.said().into_iter().fold(why, |text, line| format!("{text}\n    | {line}")))
    }
}

/// A user who has never been here logs in, and calls a tool.
fn login(servers: &Servers, user: &User) -> Result<String, String> {
    let url = servers.url(LONG);
    let client = open(user, &url)?;
    equal(&call(&client, "whoami")?, format!("{NAME} mcp:basic"))?;
    let tools = client.all(tools::list()).map_err(|why| why.to_string())?;
    equal(&tools.len(), 2)?;
    servers.events()?.expect(Expected::LOGIN)?;
    equal(&user.pages(), 1)?;
    let stored = user.stored(&url)?.ok_or("nothing is stored")?;
    let tokens = stored.tokens.ok_or("no tokens are stored")?;
    equal(&tokens.refresh_token.is_some(), true)?;
    client.close()?;
    Ok(format!("requested {}, granted {}", stored.requested, tokens.granted))
}

/// The next client of the same user logs in from the store.
fn restart(servers: &Servers, user: &User) -> Result<String, String> {
    let url = servers.url(LONG);
    let client = open(user, &url)?;
    client.close()?;
    servers.events()?.expect(Expected::LOGIN)?;
    let client = user.connect(&url, |login| login.not_interactive()).map_err(|why| why.to_string())?;
    equal(&call(&client, "whoami")?, format!("{NAME} mcp:basic"))?;
    let events = servers.events()?;
    events.expect(Expected::NONE)?;
    equal(&events.refreshes(), 0)?;
    client.close()?;
    Ok(String::new())
}

/// Tokens are refreshed before they expire, and by the next client if they expired meanwhile.
fn expiry(servers: &Servers, user: &User) -> Result<String, String> {
    let url = servers.url(BRIEF);
    let client = open(user, &url)?;
    let calls = calling(&client, BRIEFLY * 2)?;
    servers.events()?.expect(Expected::LOGIN)?;
    client.close()?;
    thread::sleep(BRIEFLY + Duration::from_secs(1));
    let client = user.connect(&url, |login| login.not_interactive()).map_err(|why| why.to_string())?;
    call(&client, "whoami")?;
    let events = servers.events()?;
    events.expect(Expected::NONE)?;
    equal(&events.refreshes(), 1)?;
    client.close()?;
    Ok(format!("{calls} calls"))
}

/// Clients with one store show one page, and share the tokens: each refresh token is used once.
fn rotation(servers: &Servers, user: &User) -> Result<String, String> {
    let url = servers.url(BRIEF);
    let calls: Result<Vec<usize>, String> = thread::scope(|scope| {
        let client = || {
            let client = open(user, &url)?;
            let calls = calling(&client, WHILE)?;
            client.close()?;
            Ok(calls)
        };
        let clients: Vec<_> = (0..CLIENTS).map(|_| scope.spawn(client)).collect();
        clients.into_iter().map(|client| client.join().map_err(|_| "a client panicked".to_owned())?).collect()
    });
    let events = servers.events()?;
    let calls: usize = calls.map_err(|why| format!("{why}: {events:?}"))?.iter().sum();
    events.expect(Expected::LOGIN)?;
    equal(&user.pages(), 1)?;
    // One for each lifetime, which is renewed a second before its end.
    let most = WHILE.as_secs() / (BRIEFLY.as_secs() - 1) + 1;
    let refreshes = events.refreshes();
    if !(2..=most).contains(&(refreshes as u64)) {
        return Err(format!("{refreshes} refreshes in {} s", WHILE.as_secs()));
    }
    Ok(format!("{calls} calls, {refreshes} refreshes"))
}

/// The same with programs. Now and then one is killed, and replaced: none waits for the lease of a
/// dead one. What dies between the response to its token request and its save leaves
/// dead tokens, and the user logs in once more.
fn killed(servers: &Servers, user: &User) -> Result<String, String> {
    let url = servers.url(TEN);
    let mut programs: VecDeque<Program> = (0..CLIENTS).map(|_| user.program(&url)).collect::<Result<_, _>>()?;
    let soon = Instant::now() + SOON;
    while user.stored(&url)?.is_none_or(|stored| stored.tokens.is_none()) {
        if Instant::now() > soon {
            return Err(format!("no program logs in: {:?}", servers.events()?));
        }
        thread::sleep(PAUSE);
    }
    let until = Instant::now() + LONGER;
    let mut kills = 0;
    while Instant::now() < until {
        thread::sleep(KILLED);
        // The oldest, at a time that depends on the speed of the machine.
        drop(programs.pop_front());
        programs.push_back(user.program(&url)?);
        kills += 1;
    }
    thread::sleep(KILLED);
    let calls: Result<Vec<usize>, String> = programs.into_iter().map(Program::end).collect();
    let events = servers.events()?;
    let calls = calls.map_err(|why| format!("{why}: {events:?}"))?;
    let lost = events.pages().saturating_sub(1);
    if lost > 1 || calls.contains(&0) {
        return Err(format!("{calls:?} calls, {events:?}"));
    }
    events.expect(Expected { registrations: 1, pages: 1 + lost, codes: 1 + lost, refused: lost })?;
    let calls: usize = calls.iter().sum();
    Ok(format!("{calls} calls, {} refreshes, {kills} killed, {lost} logins lost", events.refreshes()))
}

/// A tool demands more than was granted: the user is asked once, for all scopes.
fn step_up(servers: &Servers, user: &User) -> Result<String, String> {
    let url = servers.url(LONG);
    let both = format!("{NAME} mcp:basic mcp:write");
    let client = open(user, &url)?;
    equal(&call(&client, "whoami")?, format!("{NAME} mcp:basic"))?;
    servers.events()?.expect(Expected::LOGIN)?;
    equal(&call(&client, "write")?, both.clone())?;
    equal(&call(&client, "whoami")?, both.clone())?;
    let events = servers.events()?;
    events.expect(Expected { registrations: 0, ..Expected::LOGIN })?;
    equal(&user.pages(), 2)?;
    client.close()?;
    let client = user.connect(&url, |login| login.not_interactive()).map_err(|why| why.to_string())?;
    equal(&call(&client, "write")?, both)?;
    servers.events()?.expect(Expected::NONE)?;
    let stored = user.stored(&url)?.ok_or("nothing is stored")?;
    equal(&stored.requested.contains_all(&Scopes::parse("mcp:basic mcp:write")), true)?;
    client.close()?;
    Ok(format!("requested {}", stored.requested))
}

/// A refresh token that was used before is used once more, as a thief would. The authorization
/// server then refuses all that came from that login, and the user logs in again.
fn dead_family(servers: &Servers, user: &User) -> Result<String, String> {
    let url = servers.url(BRIEF);
    let client = open(user, &url)?;
    let stored = user.stored(&url)?.ok_or("nothing is stored")?;
    let first = stored.tokens.and_then(|tokens| tokens.refresh_token).ok_or("no refresh token")?;
    calling(&client, BRIEFLY)?;
    servers.events()?.expect(Expected::LOGIN)?;
    equal(&servers.refresh(&stored.client.client_id, first.expose())?, Some("invalid_grant".to_owned()))?;
    calling(&client, BRIEFLY)?;
    // The thief, and the client.
    servers.events()?.expect(Expected { registrations: 0, refused: 2, ..Expected::LOGIN })?;
    equal(&user.pages(), 2)?;
    client.close()?;
    Ok(String::new())
}

/// The authorization server revokes the tokens of a user who logs out, and the store forgets them.
fn logout(servers: &Servers, user: &User) -> Result<String, String> {
    let url = servers.url(LONG);
    let client = open(user, &url)?;
    servers.events()?.expect(Expected::LOGIN)?;
    let stored = user.stored(&url)?.ok_or("nothing is stored")?;
    let token = stored.tokens.and_then(|tokens| tokens.refresh_token).ok_or("no refresh token")?;
    equal(&client.logout().map_err(|why| why.to_string())?, Some(true))?;
    equal(&user.stored(&url)?, None)?;
    equal(&servers.refresh(&stored.client.client_id, token.expose())?, Some("invalid_grant".to_owned()))?;
    match user.connect(&url, |login| login.not_interactive()) {
        Err(why) if unauthorized(&why) == Some(&AuthError::LoginRequired) => {}
        Err(why) => return Err(format!("not that a login is required: {why}")),
        Ok(_) => return Err("a client is logged in".to_owned()),
    }
    servers.events()?.expect(Expected { refused: 1, ..Expected::NONE })?;
    client.login().map_err(|why| why.to_string())?;
    // No request asked for it, so it is for all that the server offers.
    equal(&call(&client, "whoami")?, format!("{NAME} mcp:basic mcp:write"))?;
    servers.events()?.expect(Expected::LOGIN)?;
    equal(&user.pages(), 2)?;
    client.close()?;
    Ok(String::new())
}

/// A user who refuses is not asked again, and the application hears of it.
fn refused(servers: &Servers, user: &User) -> Result<String, String> {
    let url = servers.url(LONG);
    match user.start(&url, Consent::Refused) {
        Err(why) if denied(unauthorized(&why)) => {}
        Err(why) => return Err(format!("not that the user refused: {why}")),
        Ok(_) => return Err("a client is logged in".to_owned()),
    }
    servers.events()?.expect(Expected { codes: 0, ..Expected::LOGIN })?;
    equal(&user.pages(), 1)?;
    match user.connect(&url, |login| login.on_browse(|_| Browsed::Declined)) {
        Err(why) if unauthorized(&why) == Some(&AuthError::Declined) => {}
        Err(why) => return Err(format!("not that the user declined: {why}")),
        Ok(_) => return Err("a client is logged in".to_owned()),
    }
    // The registration is kept.
    servers.events()?.expect(Expected::NONE)?;
    Ok(String::new())
}

/// A user who refuses further scopes keeps those of before, and is not asked again at once.
fn refused_step_up(servers: &Servers, user: &User) -> Result<String, String> {
    let url = servers.url(LONG);
    open(user, &url)?.close()?;
    user.pages();
    let client = user.start(&url, Consent::Refused).map_err(|why| why.to_string())?;
    match client.call(tools::call("write")) {
        Err(why) if denied(why.unauthorized()) => {}
        other => return Err(format!("not that the user refused: {other:?}")),
    }
    if let Ok(result) = client.call(tools::call("write")) {
        return Err(format!("it is allowed now: {result:?}"));
    }
    equal(&user.pages(), 1)?;
    equal(&call(&client, "whoami")?, format!("{NAME} mcp:basic"))?;
    client.close()?;
    Ok(String::new())
}

/// The application gets the URL of the redirect from the user: no listener is needed.
fn pasted(servers: &Servers, user: &User) -> Result<String, String> {
    let url = servers.url(LONG);
    let paste = |login: OAuth| {
        let user = user.clone();
        login.on_browse(move |page| match user.redirect(page, Consent::Given) {
            Ok(url) => Browsed::Returned(url),
            Err(why) => {
                eprintln!("{why}");
                Browsed::Declined
            }
        })
    };
    let client = user.connect(&url, paste).map_err(|why| why.to_string())?;
    equal(&call(&client, "whoami")?, format!("{NAME} mcp:basic"))?;
    servers.events()?.expect(Expected::LOGIN)?;
    client.close()?;
    Ok(String::new())
}

/// Starts a client whose user consents.
pub(super) fn open(user: &User, url: &str) -> Result<Client, String> {
    user.start(url, Consent::Given).map_err(|why| why.to_string())
}

/// Calls a tool for this time, and returns the number of calls.
pub(super) fn calling(client: &Client, time: Duration) -> Result<usize, String> {
    let until = Instant::now() + time;
    let mut calls = 0;
    while Instant::now() < until {
        call(client, "whoami").map_err(|why| format!("call {calls}: {why}"))?;
        calls += 1;
        thread::sleep(PAUSE);
    }
    Ok(calls)
}

/// Returns why a client that could not connect is not logged in.
pub(super) fn unauthorized(error: &ConnectError) -> Option<&AuthError> {
    cause::<NegotiationError>(error)?.unauthorized()
}

/// Returns whether the user refused at the authorization server.
fn denied(why: Option<&AuthError>) -> bool {
    let refusal = |error: &AuthError| match error {
        AuthError::Authorization(Problem { error, .. }) => error.as_deref() == Some("access_denied"),
        _ => false,
    };
    why.is_some_and(refusal)
}

pub(super) fn equal<T: PartialEq + std::fmt::Debug>(found: &T, expected: T) -> Result<(), String> {
    if *found == expected { Ok(()) } else { Err(format!("{found:?} in place of {expected:?}")) }
}
