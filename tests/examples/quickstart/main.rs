//! A tour of the engine in one program: a client and a server over a pipe or over a transport of
//! the web, with threads or with smol.
//!
//! ```text
//! cargo run --example quickstart                    our own server as a child process, blocking
//! cargo run --example quickstart -- --smol          the same with smol
//! cargo run --example quickstart -- --http          the same over HTTP on loopback
//! cargo run --example quickstart -- --sse           the same over HTTP+SSE of 2024-11-05
//! cargo run --example quickstart -- --ws            the same over a WebSocket
//! cargo run --example quickstart -- --legacy        the same with a legacy client
//! cargo run --example quickstart -- npx -y @modelcontextprotocol/server-everything
//! cargo run --example quickstart -- --tool echo --args '{"message":"hi"}' \
//!     npx -y @modelcontextprotocol/server-everything
//! cargo run --example quickstart -- http://127.0.0.1:8000/mcp
//! cargo run --example quickstart -- --serve --http  our own server over HTTP
//! SSL_CERT_FILE=root.pem cargo run --example quickstart -- --http --cert cert.pem --key key.pem
//!                                                   over HTTPS, with a certificate for 127.0.0.1
//! ```
#![forbid(unsafe_code)]

mod blocking;
mod smol;

use mcp_proto::client::{ClientConfig, Policy};
use mcp_proto::{Program, RawJson, Tool};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::error::Error;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;

/// What the command line asks for.
#[derive(Default)]
struct Options {
    smol: bool,
    web: Option<Transport>,
    legacy: bool,
    /// The command is this example's own server: take the whole tour.
    tour: bool,
    /// Be the server, on standard input and output, or on a free port of loopback.
    serve: bool,
    /// The files of the server's certificate and of its key: serve with TLS.
    cert: Option<String>,
    key: Option<String>,
    tool: Option<String>,
    args: Option<RawJson>,
    /// Somebody's server: a program and its arguments, or a URL.
    command: Vec<String>,
}

/// A transport over TCP.
#[derive(Clone, Copy)]
enum Transport {
    Http,
    Sse,
    WebSocket,
}

impl Transport {
    /// Its URL at our server. The client needs nothing else.
    fn url(self, server: SocketAddr, tls: bool) -> String {
        let s = if tls { "s" } else { "" };
        match self {
            Self::Http => format!("http{s}://{server}/mcp"),
            Self::Sse => format!("http{s}://{server}/sse"),
            Self::WebSocket => format!("ws{s}://{server}/mcp"),
        }
    }
}

fn main() -> ExitCode {
    let options = match parse(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(why) => {
            eprintln!(
                "quickstart: {why}\nusage: quickstart [--smol] [--http | --sse | --ws] [--cert FILE --key FILE] [--legacy] [--tool NAME --args JSON] [COMMAND... | URL]"
            );
            return ExitCode::from(2);
        }
    };
    let done = match (options.serve, options.smol) {
        (true, false) => blocking::serve(&options),
        (true, true) => smol::serve(&options),
        (false, false) => blocking::run(&options),
        (false, true) => smol::run(&options),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("quickstart: {e}");
            ExitCode::FAILURE
        }
    }
}

fn parse(mut words: impl Iterator<Item = String>) -> Result<Options, String> {
    let mut options = Options::default();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--smol" => options.smol = true,
            "--http" => options.web = Some(Transport::Http),
            "--sse" => options.web = Some(Transport::Sse),
            "--ws" => options.web = Some(Transport::WebSocket),
            "--legacy" => options.legacy = true,
            "--tour" => options.tour = true,
            "--serve" => options.serve = true,
            "--cert" => options.cert = Some(words.next().ok_or("--cert needs a file")?),
            "--key" => options.key = Some(words.next().ok_or("--key needs a file")?),
            "--tool" => options.tool = Some(words.next().ok_or("--tool needs a name")?),
            "--args" => {
                let text = words.next().ok_or("--args needs a JSON object")?;
                options.args = Some(RawJson::parse(text).map_err(|e| format!("--args: {e}"))?);
            }
            flag if flag.starts_with("--") => return Err(format!("unknown flag {flag}")),
            _ => {
                options.command = std::iter::once(word).chain(words).collect();
                break;
            }
        }
    }
    Ok(options)
}

impl Options {
    /// The program to start: the one given, or this example itself as a server.
    fn program(&self) -> Result<Program, std::io::Error> {
        match self.command.split_first() {
            Some((command, args)) => Ok(Program::new(command).args(args)),
            None => {
                let me = std::env::current_exe()?.to_string_lossy().into_owned();
                let program = Program::new(me).arg("--serve");
                Ok(if self.smol { program.arg("--smol") } else { program })
            }
        }
    }

    /// The URL, if one was given in place of a program.
    fn url(&self) -> Option<&str> {
        self.command.first().map(String::as_str).filter(|word| word.contains("://"))
    }

    /// Whether the server is our own, so that its tools are known.
    fn is_tour(&self) -> bool {
        self.tour || self.command.is_empty()
    }

    /// The configuration of a server with TLS, if it has a certificate.
    fn tls(&self) -> Result<Option<Arc<ServerConfig>>, Box<dyn Error>> {
        let (cert, key) = match (&self.cert, &self.key) {
            (Some(cert), Some(key)) => (cert, key),
            (None, None) => return Ok(None),
            _ => return Err("--cert and --key need each other".into()),
        };
        let chain = CertificateDer::pem_file_iter(cert)?.collect::<Result<_, _>>()?;
        let key = PrivateKeyDer::from_pem_file(key)?;
        Ok(Some(Arc::new(ServerConfig::builder().with_no_client_auth().with_single_cert(chain, key)?)))
    }

    fn configure(&self, config: &mut ClientConfig) {
        if self.legacy {
            config.policy = Policy::Legacy;
        }
    }

    /// Chooses the tool of an unknown server to call: the requested one, or the first read-only
    /// tool that needs no argument.
    fn choose<'a>(&'a self, tools: &'a [Tool]) -> Option<&'a str> {
        let harmless = |tool: &&Tool| tool.annotations.read_only == Some(true) && tool.required_arguments().is_empty();
        self.tool.as_deref().or_else(|| tools.iter().find(harmless).map(|tool| tool.name.as_str()))
    }
}

/// The arguments of the tool `add`.
#[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
struct Add {
    a: i64,
    b: i64,
}

/// The arguments of the tool `count`.
#[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
struct Count {
    to: u32,
}

/// A tool without arguments.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

/// The form that the tool `greet` shows, filled in.
#[derive(serde::Deserialize)]
struct Name {
    name: String,
}

/// One line about each tool.
fn print_tools(tools: &[Tool]) {
    let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
    println!("{} tools: {}", names.len(), names.join(", "));
}

/// The first lines of what a tool returned.
fn print_result(name: &str, result: &mcp_proto::CallToolResult) {
    let text = result.first_text().unwrap_or("(no text)");
    let failed = if result.is_error { " (the tool failed)" } else { "" };
    println!("{name}{failed}: {}", text.lines().take(5).collect::<Vec<_>>().join("\n    "));
}
