//! Guarded servers of others: the official SDKs for TypeScript and Python with the tokens of
//! `oidc-provider`, and two that have an authorization server of their own.

use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use mcp_driver::ConnectError;
use mcp_proto::auth::Scopes;
use mcp_proto::error::AuthError;

use super::ground::Ground;
use super::servers::Servers;
use super::steps::{calling, equal, open, unauthorized};
use super::user::{NAME, User, call};
use crate::adapters::Client;
use crate::browser::between;

/// Maximum time until a server listens.
const START: Duration = Duration::from_secs(60);
/// The lifetime of FastMCP's access tokens.
const BRIEFLY: Duration = Duration::from_secs(5);
/// The shortest lifetime of the access tokens of `workers-oauth-provider`.
const MINUTE: Duration = Duration::from_secs(60);

/// A server as a process. Dropping it ends the process.
#[derive(Debug)]
pub(super) struct Server {
    child: Child,
    pub(super) url: String,
}

impl Server {
    /// Starts a program, and waits until it names its URL with `read`.
    fn start(mut command: Command, read: fn(&str) -> Option<String>) -> Result<Self, String> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|why| format!("{command:?}: {why}"))?;
        let (output, errors) = (child.stdout.take(), child.stderr.take());
        // From here on the process is ended in any case.
        let mut server = Self { child, url: String::new() };
        let (say, said) = mpsc::channel();
        thread::spawn(move || {
            let lines = output.into_iter().flat_map(|output| BufReader::new(output).lines()).map_while(Result::ok);
            // The receiver takes one line.
            lines.filter_map(|line| read(&line)).for_each(|url| drop(say.send(url)));
        });
        let complaints = thread::spawn(move || {
            let mut text = String::new();
            errors.into_iter().for_each(|mut errors| drop(errors.read_to_string(&mut text)));
            text
        });
        match said.recv_timeout(START) {
            Ok(url) => server.url = url,
            Err(why) => {
                drop(server);
                let complaints = complaints.join().unwrap_or_default();
                return Err(format!("{command:?} does not listen: {why}\n{complaints}"));
            }
        }
        Ok(server)
    }

    /// Starts one of our programs, which writes `LISTENING URL`.
    pub(super) fn program(interpreter: &PathBuf, script: PathBuf, argument: &str) -> Result<Self, String> {
        let mut command = Command::new(interpreter);
        command.arg(script).arg(argument);
        Self::start(command, |line| line.strip_prefix("LISTENING ").map(str::to_owned))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The process may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The server of the TypeScript SDK accepts the token of a login at `oidc-provider`.
pub(super) fn typescript(ground: &Ground, user: &User) -> Result<String, String> {
    let servers = Servers::start(ground)?;
    let script = ground.packages.join("guarded_server.mjs");
    guarded(user, &Server::program(&ground.node, script, servers.issuer())?)
}

/// So does that of the Python SDK.
pub(super) fn python(ground: &Ground, user: &User) -> Result<String, String> {
    let servers = Servers::start(ground)?;
    let script = ground.programs.join("guarded_server.py");
    guarded(user, &Server::program(&ground.python, script, servers.issuer())?)
}

fn guarded(user: &User, server: &Server) -> Result<String, String> {
    let client = open(user, &server.url)?;
    equal(&call(&client, "whoami")?, format!("{NAME} mcp:basic"))?;
    equal(&user.pages(), 1)?;
    client.close()?;
    let client = again(user, server).map_err(|why| why.to_string())?;
    equal(&call(&client, "whoami")?, format!("{NAME} mcp:basic"))?;
    client.close()?;
    Ok(String::new())
}

/// FastMCP with its authorization server in memory: opaque tokens, an issuer with a slash at its
/// end, no `iss`, and no client without a secret. It refuses a refresh token that was used before,
/// and no other one for that.
pub(super) fn fastmcp(ground: &Ground, user: &User) -> Result<String, String> {
    let script = ground.programs.join("fastmcp_server.py");
    let server = Server::program(&ground.python, script, &BRIEFLY.as_secs().to_string())?;
    let client = open(user, &server.url)?;
    equal(&call(&client, "whoami")?, "mcp:basic".to_owned())?;
    let thief = user.thief()?;
    refreshed(user, &server, &client, BRIEFLY)?;
    not_logged_in(&thief, &server)?;
    equal(&call(&client, "whoami")?, "mcp:basic".to_owned())?;
    equal(&user.pages(), 0)?;
    client.close()?;
    let client = again(user, &server).map_err(|why| why.to_string())?;
    equal(&call(&client, "whoami")?, "mcp:basic".to_owned())?;
    logged_out(user, &server, client)
}

/// `workers-oauth-provider` on its runtime: rotating tokens, `iss`, and step-up.
pub(super) fn workers(ground: &Ground, user: &User) -> Result<String, String> {
    let mut command = Command::new(&ground.workerd);
    command.arg("serve").arg(ground.packages.join("worker.capnp")).arg("--control-fd=1");
    let server = Server::start(command, |line| {
        between(line, "\"socket\":\"http\",\"port\":", "}").map(|port| format!("http://127.0.0.1:{port}/mcp"))
    })?;
    let has = |text: String, scopes: &str| match Scopes::parse(&text).contains_all(&Scopes::parse(scopes)) {
        true => Ok(()),
        false => Err(format!("{text:?} has not all of {scopes:?}")),
    };
    let client = open(user, &server.url)?;
    has(call(&client, "whoami")?, "mcp:basic")?;
    equal(&user.pages(), 1)?;
    has(call(&client, "write")?, "mcp:basic mcp:write")?;
    equal(&user.pages(), 1)?;
    refreshed(user, &server, &client, MINUTE)?;
    has(call(&client, "write")?, "mcp:basic mcp:write")?;
    let other = open(user, &server.url)?;
    has(call(&other, "write")?, "mcp:basic mcp:write")?;
    let shown = logged_out(user, &server, client)?;
    // Its tokens are revoked.
    equal(&user.pages(), 0)?;
    has(call(&other, "whoami")?, "mcp:basic")?;
    equal(&user.pages(), 1)?;
    other.close()?;
    Ok(shown)
}

/// Starts a client that shows no page.
fn again(user: &User, server: &Server) -> Result<Client, ConnectError> {
    user.connect(&server.url, |login| login.not_interactive())
}

/// The tokens are renewed before they expire, and the calls go on: those of several clients, which
/// share each refresh.
fn refreshed(user: &User, server: &Server, client: &Client, lifetime: Duration) -> Result<(), String> {
    let authorized = || user.said().iter().filter(|line| line.starts_with("Report(Authorized")).count();
    user.pages();
    let before = authorized();
    let other = || again(user, server).map_err(|why| why.to_string());
    let others = [other()?, other()?];
    let calls = |client| calling(client, lifetime + Duration::from_secs(1));
    thread::scope(|scope| {
        let others: Vec<_> = others.iter().map(|other| scope.spawn(move || calls(other))).collect();
        calls(client)?;
        others.into_iter().try_for_each(|other| other.join().map_err(|_| "a client panicked".to_owned())?.map(drop))
    })?;
    others.into_iter().try_for_each(|other| other.close().map(drop))?;
    let refreshes = authorized() - before;
    if !(1..=2).contains(&refreshes) {
        return Err(format!("{refreshes} refreshes"));
    }
    equal(&user.pages(), 0)
}

/// The user logs out, and the next client has to log in.
fn logged_out(user: &User, server: &Server, client: Client) -> Result<String, String> {
    let revoked = client.logout().map_err(|why| why.to_string())?;
    equal(&user.stored(&server.url)?, None)?;
    client.close()?;
    not_logged_in(user, server)?;
    Ok(format!("revoked: {revoked:?}"))
}

/// A client that shows no page is not logged in.
fn not_logged_in(user: &User, server: &Server) -> Result<(), String> {
    match again(user, server) {
        Err(why) if unauthorized(&why) == Some(&AuthError::LoginRequired) => Ok(()),
        Err(why) => Err(format!("not that a login is required: {why}")),
        Ok(_) => Err("a client is logged in".to_owned()),
    }
}
