//! Logins without a page: with the credentials of the client, and with a code on another device.

use std::thread;

use mcp_driver::OAuth;
use mcp_proto::auth::Alg;

use super::servers::{BRIEF, BRIEFLY, Expected, LONG, Servers};
use super::steps::{calling, equal};
use super::user::{NAME, User, call};
use crate::browser::Browser;

/// A client with a secret obtains tokens, and renews them before they expire.
pub(super) fn secret(servers: &Servers, user: &User) -> Result<String, String> {
    let given = |login: OAuth| login.client_secret(servers.issuer(), "machine", "machine-secret").machine();
    let client = user.connect(&servers.url(BRIEF), given).map_err(|why| why.to_string())?;
    equal(&call(&client, "whoami")?, "machine mcp:basic".to_owned())?;
    let calls = calling(&client, BRIEFLY * 2)?;
    let events = servers.events()?;
    events.expect(Expected::NONE)?;
    let grants = events.grants("client_credentials");
    if !(2..=4).contains(&grants) {
        return Err(format!("{grants} grants"));
    }
    client.close()?;
    Ok(format!("{calls} calls, {grants} grants"))
}

/// A client signs with its key. The next one uses the tokens of the first.
pub(super) fn key(servers: &Servers, user: &User) -> Result<String, String> {
    let key = servers.key()?;
    let given = |login: OAuth| login.private_key(servers.issuer(), "signer", key.clone(), Alg::Es256).machine();
    for grants in [1, 0] {
        let client = user.connect(&servers.url(LONG), given).map_err(|why| why.to_string())?;
        equal(&call(&client, "whoami")?, "signer mcp:basic".to_owned())?;
        let events = servers.events()?;
        events.expect(Expected::NONE)?;
        equal(&events.grants("client_credentials"), grants)?;
        client.close()?;
    }
    Ok(String::new())
}

/// A user enters a code with the browser of another device.
pub(super) fn device(servers: &Servers, user: &User) -> Result<String, String> {
    let shows = |login: OAuth| {
        login.device().on_code(|code| {
            let link = code.verification_uri_complete.as_ref().map(|link| link.expose().to_owned());
            thread::spawn(move || link.map(|link| Browser::new().confirm(&link, NAME)));
        })
    };
    let url = servers.url(LONG);
    let client = user.connect(&url, shows).map_err(|why| why.to_string())?;
    equal(&call(&client, "whoami")?, format!("{NAME} mcp:basic"))?;
    let events = servers.events()?;
    equal(&events.grants("urn:ietf:params:oauth:grant-type:device_code"), 1)?;
    equal(&events.pages(), 1)?;
    client.close()?;
    let tokens = user.stored(&url)?.and_then(|entry| entry.tokens).ok_or("no tokens are stored")?;
    Ok(format!("granted {}, refresh token: {}", tokens.granted, tokens.refresh_token.is_some()))
}
