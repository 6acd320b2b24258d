//! curl and OpenSSL as clients of our servers with TLS.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::commands::{Said, run};
use super::ours::{Ours, STEPS};
use super::{BOUND, Ground, Row, expect};
use crate::adapters::Adapter;
use crate::certificates::Leaf;

const MODERN: &str = "2026-07-28";
const LEGACY: &str = "2025-11-25";

/// What curl exits with if it does not trust the certificate.
const UNTRUSTED: i32 = 60;
/// What curl exits with if the handshake fails otherwise.
const NO_HANDSHAKE: i32 = 35;

/// OpenSSL 3 offers TLS 1.1 only at this level of security.
const OLD_CIPHERS: &str = "DEFAULT@SECLEVEL=0";
/// The alert of rustls to a client that offers no version after TLS 1.1.
const TOO_OLD: &str = "alert handshake failure";

/// The check of a row, with our server.
type Check = fn(&Ground, &Ours) -> Result<String, String>;

const CHECKS: [(&str, Check); 13] = [
    ("curl: 2026-07-28", modern_curl),
    ("curl: a session of 2025-11-25", legacy_curl),
    ("curl: an event stream while the call runs", stream_of_curl),
    ("curl that offers HTTP/2 too gets HTTP/1.1", version_of_http),
    ("curl without the authority refuses", untrusted_by_curl),
    ("curl with another name refuses", other_name_by_curl),
    ("curl with TLS 1.1 at most is refused", old_curl),
    ("curl without TLS gets 400", plain_curl),
    ("openssl s_client: TLS 1.3", |ground, ours| secured(ground, ours, "-tls1_3", "TLSv1.3")),
    ("openssl s_client: TLS 1.2", |ground, ours| secured(ground, ours, "-tls1_2", "TLSv1.2")),
    ("openssl s_client without ALPN", |ground, ours| {
        let said = s_client(ground, ours, &["-tls1_3"], &request())?;
        served(&said).map(|()| "served".into())
    }),
    ("openssl s_client with HTTP/2 only is refused", |ground, ours| {
        refused(ground, ours, &["-alpn", "h2"], "alert no application protocol")
    }),
    ("openssl s_client with TLS 1.1 is refused", |ground, ours| {
        refused(ground, ours, &["-tls1_1", "-cipher", OLD_CIPHERS], TOO_OLD)
    }),
];

/// Returns the rows. After each, the server has no connection left, and serves the next client.
pub(super) fn rows() -> Vec<Row> {
    let row = |adapter: Adapter, (name, check): (&str, Check)| {
        Row::new(format!("{name}, {}", adapter.package()), move |ground| {
            let ours = Ours::serve(adapter, Some(ground.authority.server(&Leaf::default())))?;
            let shown = check(ground, &ours)?;
            ours.is_left()?;
            modern_curl(ground, &ours).map_err(|why| format!("afterwards: {why}"))?;
            ours.is_left()?;
            Ok(shown)
        })
    };
    Adapter::ALL.into_iter().flat_map(|adapter| CHECKS.map(|check| row(adapter, check))).collect()
}

// ---- curl ----

/// The fields of every POST.
const FIELDS: [&str; 2] = ["Accept: application/json, text/event-stream", "Content-Type: application/json"];

/// A message, and the fields beside [`FIELDS`] that its head needs.
struct Post {
    message: Value,
    fields: Vec<String>,
}

/// A request of 2026-07-28.
fn modern(method: &str, params: &Value, fields: &[&str]) -> Post {
    let mut message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    let meta = &mut message["params"]["_meta"];
    meta["io.modelcontextprotocol/protocolVersion"] = MODERN.into();
    meta["io.modelcontextprotocol/clientCapabilities"] = json!({});
    meta["io.modelcontextprotocol/clientInfo"] = json!({"name": "curl", "version": "1"});
    let own = [format!("MCP-Protocol-Version: {MODERN}"), format!("Mcp-Method: {method}")];
    Post { message, fields: own.into_iter().chain(fields.iter().map(ToString::to_string)).collect() }
}

/// A message of a session of 2025-11-25.
fn legacy(session: &str, message: Value) -> Post {
    Post { message, fields: vec![format!("MCP-Protocol-Version: {LEGACY}"), format!("Mcp-Session-Id: {session}")] }
}

/// Returns curl with a time limit, and with the authority that it trusts.
fn curl(root: Option<&OsStr>) -> Command {
    let mut curl = Command::new("curl");
    curl.args(["--silent", "--show-error", "--include", "--max-time", &BOUND.as_secs().to_string()]);
    // Nothing of the user's: no configuration, and no proxy.
    curl.args(["--noproxy", "*"]);
    if let Some(root) = root {
        curl.arg("--cacert").arg(root);
    }
    curl
}

/// Adds the URL of our server and a message, which curl reads from its standard input.
fn posts<'a>(curl: &'a mut Command, url: &str, post: &Post) -> &'a mut Command {
    for field in FIELDS.into_iter().chain(post.fields.iter().map(String::as_str)) {
        curl.args(["--header", field]);
    }
    curl.args(["--data-binary", "@-", url])
}

fn url(ours: &Ours) -> String {
    format!("https://localhost:{}/mcp", ours.address().port())
}

/// Posts a message with the authority, and returns the response of this status.
fn post(ground: &Ground, ours: &Ours, post: &Post, status: u16) -> Result<String, String> {
    let root = ground.path("root.pem");
    let mut curl = curl(Some(root.as_os_str()));
    let said = run(posts(&mut curl, &url(ours), post), post.message.to_string().as_bytes())?;
    let is_so = said.code() == Some(0) && said.stdout.starts_with(&format!("HTTP/1.1 {status} "));
    expect(is_so, || format!("in place of {status}: {}", said.all()))?;
    Ok(said.stdout)
}

/// Returns the message of a response: its body, or its last event.
fn message(response: &str) -> Result<Value, String> {
    let body = response.split_once("\r\n\r\n").ok_or_else(|| format!("no body: {response}"))?.1;
    let data = body.lines().filter_map(|line| line.strip_prefix("data:")).next_back().unwrap_or(body);
    serde_json::from_str(data).map_err(|why| format!("{why}: {response}"))
}

/// Checks that a response lists the tools.
fn lists(response: &str) -> Result<usize, String> {
    let message = message(response)?;
    let tools = message["result"]["tools"].as_array().ok_or_else(|| format!("no tools: {message}"))?;
    expect(tools.iter().any(|tool| tool["name"] == "echo"), || format!("not all tools: {message}"))?;
    Ok(tools.len())
}

fn modern_curl(ground: &Ground, ours: &Ours) -> Result<String, String> {
    let found = post(ground, ours, &modern("server/discover", &json!({}), &[]), 200)?;
    let found = message(&found)?;
    let versions = found["result"]["supportedVersions"].as_array();
    let is_so = versions.is_some_and(|versions| versions.contains(&MODERN.into()));
    expect(is_so, || format!("without {MODERN}: {found}"))?;
    let tools = lists(&post(ground, ours, &modern("tools/list", &json!({}), &[]), 200)?)?;
    Ok(format!("server/discover, and {tools} tools"))
}

fn legacy_curl(ground: &Ground, ours: &Ours) -> Result<String, String> {
    let client = json!({"name": "curl", "version": "1"});
    let params = json!({"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": client});
    let initialize = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params});
    let opened = post(ground, ours, &Post { message: initialize, fields: Vec::new() }, 200)?;
    let agreed = message(&opened)?;
    expect(agreed["result"]["protocolVersion"] == LEGACY, || format!("in place of {LEGACY}: {agreed}"))?;
    let id = opened.lines().filter_map(|line| line.split_once(": "));
    let id = id.filter(|(name, _)| name.eq_ignore_ascii_case("Mcp-Session-Id")).map(|(_, id)| id.trim()).next();
    let id = id.ok_or_else(|| format!("no session: {opened}"))?;
    let ready = legacy(id, json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    post(ground, ours, &ready, 202)?;
    let list = legacy(id, json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"}));
    let tools = lists(&post(ground, ours, &list, 200)?)?;
    Ok(format!("initialize, and {tools} tools"))
}

/// Each event arrives while the call runs: the call goes on only after it has.
fn stream_of_curl(ground: &Ground, ours: &Ours) -> Result<String, String> {
    let call = json!({"name": "steps", "arguments": {}, "_meta": {"progressToken": "t"}});
    let call = modern("tools/call", &call, &["Mcp-Name: steps"]);
    let file = ground.scratch("curl")?.join("call.json");
    std::fs::write(&file, call.message.to_string()).map_err(|why| why.to_string())?;
    let root = ground.path("root.pem");
    let mut curl = curl(Some(root.as_os_str()));
    let input = std::fs::File::open(&file).map_err(|why| why.to_string())?;
    let curl = posts(&mut curl, &url(ours), &call).arg("--no-buffer").stdin(input).stdout(Stdio::piped());
    let mut running = curl.spawn().map_err(|why| why.to_string())?;
    let (mut seen, mut all) = (0, String::new());
    // It ends in time, since curl has a time limit.
    for line in running.stdout.take().into_iter().flat_map(|out| BufReader::new(out).lines().map_while(Result::ok)) {
        if line.contains("notifications/progress") {
            seen += 1;
            ours.next();
        }
        all += &line;
    }
    let status = running.wait().map_err(|why| why.to_string())?;
    let is_so = status.success() && seen == STEPS && all.contains("done");
    expect(is_so, || format!("{status}, {seen} of {STEPS}: {all}"))?;
    Ok(format!("{seen} events, then the result"))
}

/// Lists the tools by a curl with these arguments. With `root` it trusts the authority.
fn lists_by(ground: &Ground, root: bool, args: &[&str], url: &str) -> Result<Said, String> {
    let path = ground.path("root.pem");
    let list = modern("tools/list", &json!({}), &[]);
    let mut curl = curl(root.then_some(path.as_os_str()));
    run(posts(curl.args(args), url, &list), list.message.to_string().as_bytes())
}

fn version_of_http(ground: &Ground, ours: &Ours) -> Result<String, String> {
    let said = lists_by(ground, true, &["--http2", "--verbose"], &url(ours))?;
    lists(&said.stdout)?;
    let is_so = said.stderr.contains("ALPN: offers h2") && said.stderr.contains("ALPN: server accepted http/1.1");
    expect(is_so, || said.all())?;
    Ok("HTTP/1.1".into())
}

/// Checks that curl has exited with this code, for this reason, without a response.
fn fails(said: &Said, code: i32, why: &str) -> Result<String, String> {
    let is_so = said.code() == Some(code) && said.stdout.is_empty() && said.stderr.contains(why);
    expect(is_so, || format!("in place of {code}, {why:?}: {}", said.all()))?;
    Ok(said.stderr.lines().next().unwrap_or_default().to_owned())
}

fn untrusted_by_curl(ground: &Ground, ours: &Ours) -> Result<String, String> {
    fails(&lists_by(ground, false, &[], &url(ours))?, UNTRUSTED, "unable to get local issuer certificate")
}

fn other_name_by_curl(ground: &Ground, ours: &Ours) -> Result<String, String> {
    let port = ours.address().port();
    let resolve = format!("other.test:{port}:127.0.0.1");
    let said = lists_by(ground, true, &["--resolve", &resolve], &format!("https://other.test:{port}/mcp"))?;
    fails(&said, UNTRUSTED, "no alternative certificate subject name matches")
}

fn old_curl(ground: &Ground, ours: &Ours) -> Result<String, String> {
    let said = lists_by(ground, true, &["--tls-max", "1.1", "--ciphers", OLD_CIPHERS], &url(ours))?;
    fails(&said, NO_HANDSHAKE, TOO_OLD)
}

fn plain_curl(ground: &Ground, ours: &Ours) -> Result<String, String> {
    let said = lists_by(ground, false, &[], &format!("http://{}/mcp", ours.address()))?;
    let is_so = said.stdout.starts_with("HTTP/1.1 400 ") && said.stdout.contains("HTTPS, not plain HTTP");
    expect(is_so, || said.all())?;
    Ok("400".into())
}

// ---- OpenSSL ----

/// Runs `openssl s_client` with these arguments and this input until the server closes.
fn s_client(ground: &Ground, ours: &Ours, args: &[&str], input: &[u8]) -> Result<Said, String> {
    let mut openssl = Command::new("openssl");
    openssl.args(["s_client", "-connect", &ours.address().to_string(), "-servername", "localhost"]);
    openssl.args(["-verify_return_error", "-verify_hostname", "localhost", "-ign_eof", "-CAfile"]);
    run(openssl.arg(ground.path("root.pem")).args(args), input)
}

/// The list of the tools, after which the server closes.
fn request() -> Vec<u8> {
    let Post { message, fields } = modern("tools/list", &json!({}), &[]);
    let body = message.to_string();
    let own = ["Host: localhost".to_owned(), "Connection: close".into(), format!("Content-Length: {}", body.len())];
    let fields = FIELDS.map(str::to_owned).into_iter().chain(fields).chain(own);
    let head = fields.fold("POST /mcp HTTP/1.1\r\n".to_owned(), |head, field| head + &field + "\r\n");
    (head + "\r\n" + &body).into_bytes()
}

/// Checks that the request is served, and that the server ends with `close_notify`: OpenSSL reports
/// any other end as an error.
fn served(said: &Said) -> Result<(), String> {
    let is_so = said.code() == Some(0)
        && said.stdout.contains("HTTP/1.1 200 ")
        && said.stdout.contains("\"echo\"")
        && said.stdout.trim_end().ends_with("closed")
        && !said.stderr.contains("unexpected eof");
    expect(is_so, || said.all())
}

fn secured(ground: &Ground, ours: &Ours, flag: &str, version: &str) -> Result<String, String> {
    let said = s_client(ground, ours, &[flag, "-alpn", "h2,http/1.1"], &request())?;
    served(&said)?;
    let version = format!("New, {version}, Cipher is ");
    for part in ["Verification: OK", "Verified peername: localhost", "ALPN protocol: http/1.1", &version] {
        expect(said.stdout.contains(part), || format!("without {part:?}: {}", said.all()))?;
    }
    let line = said.stdout.lines().find(|line| line.starts_with(&version)).unwrap_or_default();
    Ok(format!("{line}, http/1.1, verified, closed by close_notify"))
}

/// The server ends the handshake with the alert of this name.
fn refused(ground: &Ground, ours: &Ours, args: &[&str], alert: &str) -> Result<String, String> {
    let said = s_client(ground, ours, args, &[])?;
    expect(said.code() == Some(1) && said.stderr.contains(alert), || said.all())?;
    Ok(alert.into())
}
