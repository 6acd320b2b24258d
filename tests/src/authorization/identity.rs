//! The login of a user at an identity provider, `oidc-provider`, opens a server whose authorization
//! server trusts it: FastMCP.

use mcp_driver::OAuth;
use mcp_proto::auth::{ClientAuth, GivenClient, IdentityProvider, Secret, SubjectToken};
use mcp_proto::error::{AuthError, Problem};

use super::foreign::Server;
use super::ground::Ground;
use super::servers::{BRIEFLY, DESK, Servers};
use super::steps::{calling, equal, unauthorized};
use super::user::{NAME, User, call};

/// The grant type of the exchange.
const EXCHANGE: &str = "urn:ietf:params:oauth:grant-type:token-exchange";

/// Tokens without a page, calls across their expiry with a new grant each time, and a client that
/// finds the tokens later. A user whose login is another one gets nothing.
pub(super) fn fastmcp(ground: &Ground, user: &User) -> Result<String, String> {
    let servers = Servers::start(ground)?;
    let script = ground.programs.join("fastmcp_identity.py");
    let server = Server::program(&ground.python, script, servers.issuer())?;
    let subject = servers.id_token()?;
    servers.events()?;
    let given = |issuer: &str, client_id: &str| {
        let (issuer, client_id) = (issuer.to_owned(), client_id.to_owned());
        GivenClient { issuer, client_id, auth: ClientAuth::None }
    };
    let login = |subject: &str| {
        let subject = Secret::from(subject);
        let provider = IdentityProvider {
            token_endpoint: format!("{}/token", servers.issuer()),
            client: given(servers.issuer(), DESK.0),
            subject: SubjectToken::IdToken,
        };
        // FastMCP's issuer is the origin of its server.
        let client = given(server.url.trim_end_matches("mcp"), "app");
        move |login: OAuth| login.client(client).identity_provider(provider).assertion(move |_| Ok(subject.clone()))
    };
    let client = user.connect(&server.url, login(&subject)).map_err(|why| why.to_string())?;
    equal(&call(&client, "whoami")?, format!("{NAME} mcp:basic"))?;
    let calls = calling(&client, BRIEFLY * 2)?;
    client.close()?;
    let exchanges = servers.events()?.grants(EXCHANGE);
    if !(2..=4).contains(&exchanges) {
        return Err(format!("{exchanges} exchanges"));
    }
    let client = user.connect(&server.url, login(&subject)).map_err(|why| why.to_string())?;
    equal(&call(&client, "whoami")?, format!("{NAME} mcp:basic"))?;
    client.close()?;
    let (claims, _) = subject.rsplit_once('.').ok_or("no JSON Web Token")?;
    let other = login(&format!("{claims}.AAAA"));
    match user.connect(&server.url, |login| other(login).account("other")).map(drop) {
        Err(why) if refused(unauthorized(&why)) => {}
        other => return Err(format!("not that the identity provider refuses: {other:?}")),
    }
    Ok(format!("{calls} calls, {exchanges} exchanges"))
}

fn refused(why: Option<&AuthError>) -> bool {
    matches!(why, Some(AuthError::Token(Problem { error: Some(error), .. })) if &**error == "invalid_grant")
}
