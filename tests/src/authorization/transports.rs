//! A server of ours with the tokens of `oidc-provider`, on other ways than plain streamable HTTP.

use std::thread;
use std::time::Instant;

use mcp_proto::client::Termination;
use mcp_proto::exchange::Closed;

use super::ground::Ground;
use super::ours::{Guard, GuardedServer};
use super::servers::{BRIEFLY, Expected, Servers};
use super::steps::{calling, equal, open};
use super::user::{NAME, PAUSE, User, call};
use crate::certificates::Authority;

/// All servers listen with TLS, the issuer as well.
pub(super) fn https(ground: &Ground, user: &User) -> Result<String, String> {
    let authority = Authority::new("the authority of the tests");
    let user = user.trusting(authority.client());
    let servers = Servers::with_tls(ground, &authority, &user.store().with_extension("certificates"))?;
    let guard = Guard { tls: Some(&authority), ..Guard::brief(&servers) };
    let guarded = GuardedServer::start(user.adapter(), guard)?;
    life(&servers, &user, &guarded.url)
}

/// The transport of 2024-11-05.
pub(super) fn sse(servers: &Servers, user: &User) -> Result<String, String> {
    let guarded = GuardedServer::start(user.adapter(), Guard::brief(servers))?;
    life(servers, user, &format!("{}/sse", guarded.url))
}

/// WebSocket. The connection ends with the token that it began with, and the client with the
/// connection. The next client renews the token.
pub(super) fn web_socket(servers: &Servers, user: &User) -> Result<String, String> {
    let guarded = GuardedServer::start(user.adapter(), Guard::brief(servers))?;
    let url = guarded.url.replacen("http", "ws", 1);
    let client = open(user, &url)?;
    equal(&call(&client, "whoami")?, format!("{NAME} mcp:basic"))?;
    servers.events()?.expect(Expected::LOGIN)?;
    let (late, mut calls) = (Instant::now() + BRIEFLY * 2, 0);
    while call(&client, "whoami").is_ok() {
        if Instant::now() > late {
            return Err("the connection outlives its token".to_owned());
        }
        calls += 1;
        thread::sleep(PAUSE);
    }
    match client.close()? {
        Termination::Closed(Closed::WebSocket { code: Some(1008), .. }) => {}
        ended => return Err(format!("not that the token has expired: {ended:?}")),
    }
    let refreshes = found_later(servers, user, &url)?;
    equal(&refreshes, 1)?;
    Ok(format!("{calls} calls"))
}

/// A login, calls across the expiry of several tokens, and a client that finds the login later.
fn life(servers: &Servers, user: &User, url: &str) -> Result<String, String> {
    let client = open(user, url)?;
    equal(&call(&client, "whoami")?, format!("{NAME} mcp:basic"))?;
    servers.events()?.expect(Expected::LOGIN)?;
    let calls = calling(&client, BRIEFLY * 2)?;
    client.close()?;
    let events = servers.events()?;
    events.expect(Expected::NONE)?;
    let refreshes = events.refreshes();
    if refreshes == 0 {
        return Err("no refresh".to_owned());
    }
    found_later(servers, user, url)?;
    Ok(format!("{calls} calls, {refreshes} refreshes"))
}

/// A client uses the login that is stored, and shows no page. Returns the number of refreshes.
fn found_later(servers: &Servers, user: &User, url: &str) -> Result<usize, String> {
    let client = user.connect(url, |login| login.not_interactive()).map_err(|why| why.to_string())?;
    equal(&call(&client, "whoami")?, format!("{NAME} mcp:basic"))?;
    client.close()?;
    let events = servers.events()?;
    events.expect(Expected::NONE)?;
    equal(&user.pages(), 1)?;
    Ok(events.refreshes())
}
