//! Tokens that are bound to a key, with `oidc-provider`: it and the server demand nonces, and the
//! server refuses a proof that it has seen.

use mcp_proto::auth::{Alg, PublicKey, TokenType};

use super::servers::{BOUND, BRIEFLY, Expected, Servers};
use super::steps::{calling, equal, open};
use super::user::{NAME, User, call};

/// A login, calls across the expiry of several tokens, and a client that finds the login later.
pub(super) fn bound(servers: &Servers, user: &User) -> Result<String, String> {
    let url = servers.url(BOUND);
    let client = open(user, &url)?;
    equal(&call(&client, "whoami")?, format!("{NAME} mcp:basic"))?;
    let events = servers.events()?;
    // Each server demands its nonce once: the issuer of the first token request, the server of the
    // first request with a token.
    events.expect(Expected { refused: 1, ..Expected::LOGIN })?;
    equal(&events.denials("use_dpop_nonce"), 1)?;
    let tokens = user.stored(&url)?.and_then(|entry| entry.tokens).ok_or("nothing is stored")?;
    equal(&tokens.token_type, TokenType::Dpop)?;
    let key = tokens.dpop_key.ok_or("no key is stored")?;
    equal(&key.public.fits(Alg::Es256), true)?;
    let calls = calling(&client, BRIEFLY * 3)?;
    client.close()?;
    let events = servers.events()?;
    equal(&(events.pages(), events.denials("invalid_dpop_proof"), events.refreshes() > 0), (0, 0, true))?;
    let refreshes = events.refreshes();
    // The refresh token is bound to the same key.
    let client = user.connect(&url, |login| login.not_interactive()).map_err(|why| why.to_string())?;
    equal(&call(&client, "whoami")?, format!("{NAME} mcp:basic"))?;
    client.close()?;
    let tokens = user.stored(&url)?.and_then(|entry| entry.tokens).ok_or("nothing is stored any more")?;
    equal(&tokens.dpop_key.map(|key| key.public), Some(PublicKey::clone(&key.public)))?;
    equal(&servers.events()?.pages(), 0)?;
    Ok(format!("{calls} calls, {refreshes} refreshes"))
}
