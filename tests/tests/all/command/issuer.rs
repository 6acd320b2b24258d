//! An authorization server and the MCP server that it guards, at one origin. It logs in everyone
//! who opens its page.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// Its codes and tokens, and the secret of a client: no output may have this text.
pub(crate) const CANARY: &str = "canary";

/// What the servers are like.
#[derive(Clone, Copy, Default)]
pub(crate) struct Setup {
    /// The MCP server lets a client in that has no token.
    pub(crate) is_open: bool,
    /// The authorization server registers no clients, and wants a secret.
    pub(crate) registers_none: bool,
    /// The MCP server refuses the first token for its list of tools, so that it is renewed.
    pub(crate) is_fickle: bool,
    /// The token endpoint refuses every request, and repeats it in the error.
    pub(crate) echoes: bool,
}

/// Both servers. They end with this process.
pub(crate) struct Issuer {
    pub(crate) origin: String,
    asks: Arc<Mutex<Vec<String>>>,
}

/// A request: its method, its path with the query, its fields in lower case, its body.
struct Ask {
    method: String,
    path: String,
    head: String,
    body: String,
}

impl Issuer {
    pub(crate) fn start(setup: Setup) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("it listens");
        let origin = format!("http://{}", listener.local_addr().expect("an address"));
        let asks = Arc::new(Mutex::new(Vec::new()));
        let issuer = Self { origin: origin.clone(), asks: Arc::clone(&asks) };
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (origin, asks) = (origin.clone(), Arc::clone(&asks));
                thread::spawn(move || serve(stream, &origin, setup, &asks));
            }
        });
        issuer
    }

    /// Returns the URL of the MCP server.
    pub(crate) fn url(&self) -> String {
        format!("{}/mcp", self.origin)
    }

    /// Returns the requests so far whose line begins with this, each with its head and its body.
    pub(crate) fn asked(&self, line: &str) -> Vec<String> {
        let asks = self.asks.lock().unwrap_or_else(PoisonError::into_inner);
        asks.iter().filter(|ask| ask.starts_with(line)).cloned().collect()
    }
}

fn serve(mut stream: TcpStream, origin: &str, setup: Setup, asks: &Mutex<Vec<String>>) {
    let Some(ask) = read(&stream) else { return };
    let text = format!("{} {}\n{}\n{}", ask.method, ask.path, ask.head, ask.body);
    asks.lock().unwrap_or_else(PoisonError::into_inner).push(text);
    let (status, fields, body) = answer(&ask, origin, setup);
    let len = body.len();
    let response = format!("HTTP/1.1 {status}\r\n{fields}Content-Length: {len}\r\nConnection: close\r\n\r\n{body}");
    // The client may have gone.
    drop(stream.write_all(response.as_bytes()));
    drop(stream.shutdown(Shutdown::Write));
}

fn read(stream: &TcpStream) -> Option<Ask> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let (mut line, mut head, mut length) = (String::new(), String::new(), 0);
    reader.read_line(&mut line).ok()?;
    loop {
        let mut field = String::new();
        reader.read_line(&mut field).ok()?;
        let field = field.trim_end().to_lowercase();
        if field.is_empty() {
            break;
        }
        if let Some(value) = field.strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
        head.push_str(&field);
        head.push('\n');
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let mut words = line.split(' ').map(str::to_owned);
    Some(Ask { method: words.next()?, path: words.next()?, head, body: String::from_utf8(body).ok()? })
}

fn answer(ask: &Ask, origin: &str, setup: Setup) -> (&'static str, String, String) {
    let json = |status, value: Value| (status, "Content-Type: application/json\r\n".to_owned(), value.to_string());
    let path = ask.path.split('?').next().unwrap_or_default();
    match (ask.method.as_str(), path) {
        ("GET", "/.well-known/oauth-protected-resource/mcp") => {
            let scopes = ["files:read", "files:write"];
            let resource = format!("{origin}/mcp");
            json("200 OK", json!({"resource": resource, "authorization_servers": [origin], "scopes_supported": scopes}))
        }
        ("GET", "/.well-known/oauth-authorization-server") => {
            let methods =
                if setup.registers_none { vec!["client_secret_basic", "private_key_jwt"] } else { vec!["none"] };
            let mut metadata = json!({
                "issuer": origin,
                "authorization_endpoint": format!("{origin}/authorize?tenant=a"),
                "token_endpoint": format!("{origin}/token"),
                "revocation_endpoint": format!("{origin}/revoke"),
                "device_authorization_endpoint": format!("{origin}/device"),
                "code_challenge_methods_supported": ["S256"],
                "token_endpoint_auth_methods_supported": methods,
                "authorization_response_iss_parameter_supported": true,
            });
            if !setup.registers_none {
                metadata["registration_endpoint"] = format!("{origin}/register").into();
            }
            json("200 OK", metadata)
        }
        ("POST", "/register") => {
            let asked: Value = serde_json::from_str(&ask.body).unwrap_or_default();
            json("201 Created", json!({"client_id": "client-1", "redirect_uris": asked["redirect_uris"]}))
        }
        ("GET", "/authorize") => {
            let of = |name: &str| query(&ask.path, name);
            let issuer = origin.replace(':', "%3A").replace('/', "%2F");
            let (redirect_uri, state) = (decoded(&of("redirect_uri")), of("state"));
            let to = format!("{redirect_uri}?code={CANARY}-code&state={state}&iss={issuer}");
            ("302 Found", format!("Location: {to}\r\n"), String::new())
        }
        ("POST", "/token") if setup.echoes => {
            let repeated = format!("Invalid request: {}", ask.body);
            json("400 Bad Request", json!({"error": "invalid_request", "error_description": repeated}))
        }
        ("POST", "/token") => {
            let again = if ask.body.contains("grant_type=refresh_token") { "-renewed" } else { "" };
            let (access, refresh) = (format!("{CANARY}-access{again}"), format!("{CANARY}-refresh{again}"));
            json(
                "200 OK",
                json!({"access_token": access, "token_type": "Bearer", "expires_in": 3600, "refresh_token": refresh,
                    "scope": "files:read"}),
            )
        }
        // The interval is the shortest one that a client obeys.
        ("POST", "/device") => json(
            "200 OK",
            json!({"device_code": format!("{CANARY}-device"), "user_code": "ABCD-EFGH", "interval": 5,
                "verification_uri": format!("{origin}/device"), "expires_in": 600}),
        ),
        ("POST", "/revoke") => json("200 OK", json!({})),
        ("POST", "/mcp") => {
            let is_late = setup.is_fickle && ask.body.contains("tools/list");
            let end = if is_late { "-renewed\n" } else { "" };
            let has_token = ask.head.contains(&format!("authorization: bearer {CANARY}-access{end}"));
            if !has_token && !setup.is_open {
                let metadata = format!("{origin}/.well-known/oauth-protected-resource/mcp");
                let challenge = format!("Bearer resource_metadata=\"{metadata}\", scope=\"files:read\"");
                return ("401 Unauthorized", format!("WWW-Authenticate: {challenge}\r\n"), String::new());
            }
            message(&ask.body)
        }
        (_, "/mcp") => ("405 Method Not Allowed", String::new(), String::new()),
        _ => ("404 Not Found", String::new(), String::new()),
    }
}

/// Answers a message as a server of 2025-06-18 with one tool.
fn message(body: &str) -> (&'static str, String, String) {
    let message: Value = serde_json::from_str(body).unwrap_or_default();
    let result = match message["method"].as_str() {
        Some("initialize") => json!({"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
            "serverInfo": {"name": "guarded", "version": "1"}}),
        Some("tools/list") => json!({"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]}),
        Some("ping") => json!({}),
        _ if message["id"].is_null() => return ("202 Accepted", String::new(), String::new()),
        _ => Value::Null,
    };
    let mut response = json!({"jsonrpc": "2.0", "id": message["id"]});
    match result {
        Value::Null => response["error"] = json!({"code": -32601, "message": "Method not found"}),
        result => response["result"] = result,
    }
    ("200 OK", "Content-Type: application/json\r\n".to_owned(), response.to_string())
}

/// Returns a parameter of a URL as it is there.
pub(crate) fn query(url: &str, name: &str) -> String {
    let query = url.split_once('?').map_or("", |(_, query)| query);
    let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    pairs.find(|(key, _)| *key == name).map(|(_, value)| value.to_owned()).unwrap_or_default()
}

/// Returns a parameter without the escapes that a redirect URI has.
fn decoded(text: &str) -> String {
    text.replace("%3A", ":").replace("%2F", "/")
}

/// Opens a URL of plain HTTP. Returns the head of the response, and its body.
pub(crate) fn get(url: &str) -> String {
    let (host, path) = url.strip_prefix("http://").expect("http:").split_once('/').expect("a path");
    let mut stream = TcpStream::connect(host).expect("it accepts");
    write!(stream, "GET /{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").expect("it reads");
    let mut response = String::new();
    stream.read_to_string(&mut response).expect("a response");
    response
}

/// Opens the page of a login as a browser does. Returns the URL of the redirect.
pub(crate) fn redirect(page: &str) -> String {
    let response = get(page);
    let location = response.lines().find_map(|line| line.strip_prefix("Location: "));
    location.expect("a redirect").trim().to_owned()
}
