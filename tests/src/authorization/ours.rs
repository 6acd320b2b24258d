//! A server of ours that accepts the tokens of `oidc-provider`, with clients of ours and of others.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use mcp_driver::{ClientOptions, ServerOptions};
use mcp_proto::auth::{IssuerConfig, Resource, VerifierConfig};
use mcp_proto::server::SsePaths;
use mcp_proto::{Cx, Router, ToolError, tool};

use super::ground::Ground;
use super::servers::{BRIEF, BRIEFLY, Expected, LONG, Servers};
use super::steps::{equal, open};
use super::user::{NAME, User, call};
use crate::adapters::{Adapter, Server};
use crate::browser::{Browser, Consent};
use crate::certificates::{Authority, Leaf};

/// The path of a server whose tokens tell nothing.
const OPAQUE: &str = "/opaque";

/// Our server. Dropping it ends it.
pub(super) struct GuardedServer {
    server: Server,
    pub(super) url: String,
}

/// What an [`GuardedServer`] is like.
pub(super) struct Guard<'a> {
    /// Its path, by which the issuer knows the lifetime of its tokens.
    pub(super) path: &'a str,
    /// Whose tokens it accepts.
    pub(super) issuer: IssuerConfig,
    /// It listens with TLS, with a certificate of this authority.
    pub(super) tls: Option<&'a Authority>,
}

impl Guard<'_> {
    /// Tokens of `oidc-provider` that live for [`BRIEFLY`], and not a second longer.
    pub(super) fn brief(servers: &Servers) -> Self {
        let issuer = IssuerConfig::jwt(servers.issuer()).leeway(Duration::ZERO);
        Self { path: BRIEF, issuer, tls: None }
    }
}

impl GuardedServer {
    /// Starts it. It offers HTTP+SSE at the path `sse` below its own, and WebSocket at its own.
    pub(super) fn start(adapter: Adapter, Guard { path, issuer, tls }: Guard<'_>) -> Result<Self, String> {
        // Its identifier has the port.
        let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        let address = free.map_err(|why| why.to_string())?;
        let url = format!("{}://{address}{path}", if tls.is_some() { "https" } else { "http" });
        let router = Router::new("guarded", "1.0.0").tool(tool("whoami"), |cx, (): ()| whoami(cx));
        let router = router.tool(tool("write").scopes(["mcp:write"]), |cx, (): ()| whoami(cx));
        let router = router.configure(|config| {
            let mut sse = SsePaths::default();
            (sse.stream, sse.messages) = (format!("{path}/sse"), format!("{path}/messages"));
            (config.path, config.sse, config.web_socket) = (Some(path.to_owned()), Some(sse), true);
        });
        let resource = Resource::new(&url, [&issuer.issuer]);
        let resource = resource.scopes_supported(["mcp:basic", "mcp:write"]).scopes_required(["mcp:basic"]);
        let options = ServerOptions::new().verify(resource, VerifierConfig::new(issuer));
        let server = match tls {
            None => adapter.serve_http((router, options), address),
            Some(authority) => {
                let options = options.fetch_with(ClientOptions::new().tls(authority.client()));
                adapter.serve_https((router, options), address, authority.server(&Leaf::default()))
            }
        };
        Ok(Self { server: server.map_err(|why| why.to_string())?, url })
    }

    fn of(servers: &Servers, user: &User) -> Result<Self, String> {
        let guard = Guard { path: LONG, issuer: IssuerConfig::jwt(servers.issuer()), tls: None };
        Self::start(user.adapter(), guard)
    }

    /// Returns the text of an error of a client that shows this token.
    fn refuses(&self, adapter: Adapter, token: &str) -> Result<(), String> {
        let options = ClientOptions::new().header("Authorization", &format!("Bearer {token}"));
        match adapter.connect(&*self.url, options.map_err(|why| why.to_string())?) {
            Err(why) if why.to_string().contains("401") => Ok(()),
            Err(why) => Err(format!("not that the token is refused: {why}")),
            Ok(_) => Err("the token is accepted".to_owned()),
        }
    }
}

impl Drop for GuardedServer {
    fn drop(&mut self) {
        self.server.stop(Duration::ZERO);
    }
}

/// Returns the user and the scopes of a call.
fn whoami(cx: &Cx) -> Result<String, ToolError> {
    let access = cx.granted().ok_or("nothing is granted")?;
    let mut scopes: Vec<&str> = access.scopes.iter().collect();
    scopes.sort_unstable();
    Ok(format!("{} {}", access.subject.as_deref().unwrap_or_default(), scopes.join(" ")))
}

/// A user logs in at our server, and is asked once more for a tool that needs another scope.
pub(super) fn login(servers: &Servers, user: &User) -> Result<String, String> {
    let guarded = GuardedServer::of(servers, user)?;
    let client = open(user, &guarded.url)?;
    equal(&call(&client, "whoami")?, format!("{NAME} mcp:basic"))?;
    servers.events()?.expect(Expected::LOGIN)?;
    equal(&call(&client, "write")?, format!("{NAME} mcp:basic mcp:write"))?;
    servers.events()?.expect(Expected { registrations: 0, ..Expected::LOGIN })?;
    equal(&user.pages(), 2)?;
    client.close()?;
    Ok(String::new())
}

/// Our server refuses tokens that are for another one, that have expired, or that were changed.
pub(super) fn other_tokens(servers: &Servers, user: &User) -> Result<String, String> {
    let token = |url: &str| {
        open(user, url)?.close()?;
        let stored = user.stored(url)?.and_then(|stored| stored.tokens);
        stored.map(|tokens| tokens.access_token.expose().to_owned()).ok_or_else(|| "no tokens are stored".to_owned())
    };
    let guarded = GuardedServer::of(servers, user)?;
    let brief = GuardedServer::start(user.adapter(), Guard::brief(servers))?;
    let (good, short, foreign) = (token(&guarded.url)?, token(&brief.url)?, token(&servers.url(LONG))?);
    guarded.refuses(user.adapter(), &foreign)?;
    guarded.refuses(user.adapter(), &short)?;
    let (claims, signature) = good.rsplit_once('.').ok_or("no JSON Web Token")?;
    guarded.refuses(user.adapter(), &format!("{claims}.A{signature}"))?;
    guarded.refuses(user.adapter(), claims)?;
    thread::sleep(BRIEFLY + Duration::from_secs(1));
    brief.refuses(user.adapter(), &short)?;
    Ok(String::new())
}

/// Our server asks the issuer about tokens that tell nothing.
pub(super) fn opaque(servers: &Servers, user: &User) -> Result<String, String> {
    let issuer = IssuerConfig::introspection(servers.issuer(), "resource", "secret");
    let guarded = GuardedServer::start(user.adapter(), Guard { path: OPAQUE, issuer, tls: None })?;
    let client = open(user, &guarded.url)?;
    equal(&call(&client, "whoami")?, format!("{NAME} mcp:basic"))?;
    client.close()?;
    guarded.refuses(user.adapter(), "unknown")?;
    Ok(String::new())
}

/// A client on the TypeScript SDK logs in at our server.
pub(super) fn typescript(ground: &Ground, user: &User) -> Result<String, String> {
    foreign(ground, user, &ground.node, ground.packages.join("guarded_client.mjs"))
}

/// So does one on the Python SDK.
pub(super) fn python(ground: &Ground, user: &User) -> Result<String, String> {
    foreign(ground, user, &ground.python, ground.programs.join("guarded_client.py"))
}

fn foreign(ground: &Ground, user: &User, interpreter: &PathBuf, script: PathBuf) -> Result<String, String> {
    let servers = Servers::start(ground)?;
    let guarded = GuardedServer::of(&servers, user)?;
    let mut command = Command::new(interpreter);
    command.arg(script).arg(&guarded.url).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut program = Program(command.spawn().map_err(|why| format!("{command:?}: {why}"))?);
    let output = program.0.stdout.take().map(BufReader::new);
    for line in output.into_iter().flat_map(BufRead::lines).map_while(Result::ok) {
        if let Some(page) = line.strip_prefix("PAGE ") {
            let redirect = Browser::new().log_in(page, "http://127.0.0.1:1/", NAME, Consent::Given)?;
            let input = program.0.stdin.take().ok_or("a second page")?;
            writeln!(&input, "{redirect}").map_err(|why| why.to_string())?;
        } else if let Some(text) = line.strip_prefix("SAID ") {
            equal(&text, &*format!("{NAME} mcp:basic"))?;
            return servers.events()?.expect(Expected::LOGIN).map(|()| String::new());
        }
    }
    Err("the program says nothing".to_owned())
}

/// A client as a process. Dropping it ends the process.
struct Program(Child);

impl Drop for Program {
    fn drop(&mut self) {
        // The process may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
