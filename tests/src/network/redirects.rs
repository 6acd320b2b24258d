//! Redirects of real servers: nginx in front of ours, and FastMCP under a mount of Starlette.

use std::ffi::OsString;

use mcp_proto::client::Policy;
use mcp_proto::error::HttpError;
use mcp_proto::exchange::RedirectRefusal;
use mcp_proto::{CallError, tools};

use super::nginx::{Front, PLAIN, TLS, passes};
use super::ours::{Echo, Ours, connect};
use super::{Ground, Row, expect};
use crate::adapters::{Adapter, cause};
use crate::interop::listening::{Listening, PORT};
use crate::interop::setup;

/// The locations that redirect, and those behind them.
const MOVED: &str = "location = /moved { return 307 /moved/; }
        location = /moved/ { return 308 /mcp; }
        location = /moved-sse { return 307 /sse; }
        location = /found { return 302 /mcp; }
        location = /slash { return 301 /slash/; }
        location = /slash/ { return 307 /mcp; }
        location = /plain { return 307 http://$host:$server_port/mcp; }
        location = /elsewhere { return 307 http://127.0.0.1:9/mcp; }
        location = /around { return 307 /about; }
        location = /about { return 307 /around; }
        location ~ ^/far/(.*)$ { return 307 /far/x$1; }";

/// How a client reaches our server by redirects: the scheme, the path, the policy, and the name in
/// the rows.
const WAYS: [(&str, &str, Policy, &str); 5] = [
    ("http", "/moved", Policy::Modern, "HTTP"),
    ("http", "/slash", Policy::Modern, "HTTP by 301 to a slash"),
    ("http", "/moved", Policy::Legacy, "HTTP with a session"),
    ("http", "/moved-sse", Policy::Legacy, "HTTP+SSE"),
    ("ws", "/moved", Policy::Modern, "WebSocket"),
];

/// The redirects that a client does not follow, with the scheme of nginx.
const REFUSALS: [(Front, &str, RedirectRefusal); 5] = [
    (PLAIN, "/found", RedirectRefusal::Method),
    (TLS, "/plain", RedirectRefusal::Insecure),
    (PLAIN, "/elsewhere", RedirectRefusal::Origin),
    (PLAIN, "/around", RedirectRefusal::Loop),
    (PLAIN, "/far/", RedirectRefusal::TooMany),
];

/// Returns the rows.
pub(super) fn rows() -> Vec<Row> {
    Adapter::ALL.into_iter().flat_map(of_adapter).collect()
}

fn of_adapter(adapter: Adapter) -> Vec<Row> {
    let name = |what: String| format!("{what}, {}", adapter.package());
    let ways = [PLAIN, TLS].into_iter().flat_map(|front| WAYS.map(|way| (front, way)));
    let mut rows: Vec<Row> = ways
        .map(|(front, way)| {
            let row = name(format!("{} redirects: {}", front.name, way.3));
            Row::new(row, move |ground| passes(ground, adapter, front.with(MOVED), way))
        })
        .collect();
    rows.extend(REFUSALS.map(|(front, path, why)| {
        Row::new(name(format!("{} redirects from {path}: {why:?}", front.name)), move |ground| {
            refused(ground, adapter, front, path, why)
        })
    }));
    rows.extend(
        [Policy::Auto, Policy::Legacy].map(|policy| {
            Row::new(name(format!("FastMCP under a mount, {policy:?}")), move |_| mounted(adapter, policy))
        }),
    );
    rows
}

/// The client does not connect, and the error tells why.
fn refused(
    ground: &Ground,
    adapter: Adapter,
    front: Front,
    path: &str,
    why: RedirectRefusal,
) -> Result<String, String> {
    let ours = Ours::serve(adapter, None)?;
    let nginx = front.with(MOVED).start(ground, &ours)?;
    for policy in [Policy::Modern, Policy::Legacy, Policy::Auto] {
        let failed = match connect(adapter, &front.url(&nginx, "http", path), policy, Some(ground.authority.client())) {
            Ok(_) => return Err(format!("{policy:?}: it is followed")),
            Err(failed) => failed,
        };
        let refusal = cause::<HttpError>(&failed).and_then(|error| error.redirect);
        expect(refusal == Some(why), || format!("{policy:?}: {refusal:?}: {failed}"))?;
    }
    Ok(why.to_string())
}

/// The URL that users give has no slash at its end.
fn mounted(adapter: Adapter, policy: Policy) -> Result<String, String> {
    let python = setup::install_python("requirements-fastmcp.txt")?;
    let script = setup::programs().join("python/mounted.py");
    let command: [OsString; 3] = [python.into(), script.into(), PORT.into()];
    let mut server = Listening::start(&command, &[])?;
    let url = format!("http://127.0.0.1:{}/mcp", server.port());
    let client = connect(adapter, &url, policy, None).map_err(|why| why.to_string())?;
    for _ in 0..3 {
        let answer = client.call(tools::call("echo").arguments(&Echo { text: "hello".into() }));
        let answer = answer.map_err(|why: CallError| format!("{why}; it said {:?}", server.lines()))?;
        expect(answer.first_text() == Some("hello"), || format!("{answer:?}"))?;
    }
    let version = client.server().map(|server| server.version.to_string()).unwrap_or_default();
    client.close()?;
    server.end()?;
    Ok(format!("{version}: three calls"))
}
