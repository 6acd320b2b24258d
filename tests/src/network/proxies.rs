//! Forward proxies between our client and our server: tinyproxy and squid, with and without
//! credentials.

use std::ffi::OsString;
use std::fs;

use mcp_proto::client::{Policy, Proxies, Proxy};
use mcp_proto::exchange::{Closed, ProxyFailureKind};
use mcp_proto::server::Hosts;

use super::ours::{Ours, connect_through, use_all};
use super::{Ground, Row, expect};
use crate::adapters::{Adapter, cause};
use crate::certificates::Leaf;
use crate::interop::listening::Listening;

/// Leads to this machine, and is no loopback address, which never has a proxy. Only a server that
/// allows any host allows it.
const HOST: &str = "0.0.0.0";

/// The credentials of the proxies, in a URL.
const GOOD: &str = "ann:s3cret@";

/// A program.
#[derive(Clone, Copy, PartialEq)]
enum Program {
    Tinyproxy,
    Squid,
}

/// How a client reaches our server: the scheme, the path, the policy, and the name in the rows.
const WAYS: [(&str, &str, Policy, &str); 6] = [
    ("http", "/mcp", Policy::Modern, "HTTP"),
    ("http", "/mcp", Policy::Legacy, "HTTP with a session"),
    ("http", "/sse", Policy::Legacy, "HTTP+SSE"),
    ("https", "/mcp", Policy::Modern, "HTTP with TLS"),
    ("ws", "/mcp", Policy::Modern, "WebSocket"),
    ("wss", "/mcp", Policy::Modern, "WebSocket with TLS"),
];

/// Returns the rows.
pub(super) fn rows() -> Vec<Row> {
    let programs = [Program::Tinyproxy, Program::Squid];
    let each = programs.into_iter().flat_map(|program| Adapter::ALL.map(|adapter| (program, adapter)));
    each.flat_map(|(program, adapter)| of(program, adapter)).collect()
}

fn of(program: Program, adapter: Adapter) -> Vec<Row> {
    let name = |name: String| format!("{}{name}, {}", program.name(), adapter.package());
    let ways = [false, true].into_iter().flat_map(|credentials| WAYS.map(|way| (credentials, way)));
    let mut rows: Vec<Row> = ways
        .map(|(credentials, way)| {
            let with = if credentials { " with credentials" } else { "" };
            let row = name(format!("{with}: {}", way.3));
            Row::new(row, move |ground| passes(ground, adapter, program, credentials, way))
        })
        .collect();
    for (given, what) in [("", "no credentials"), ("ann:wrong@", "wrong credentials")] {
        let row = name(format!(" refuses {what}"));
        rows.push(Row::new(row, move |ground| refused(ground, adapter, program, given)));
    }
    rows.push(Row::new(name(" cannot reach a server".into()), move |ground| unreachable(ground, adapter, program)));
    rows
}

impl Program {
    const fn name(self) -> &'static str {
        match self {
            Self::Tinyproxy => "tinyproxy",
            Self::Squid => "squid",
        }
    }

    /// Starts it. It reads nothing of the system's configuration.
    fn start(self, ground: &Ground, credentials: bool) -> Result<Listening, String> {
        let folder = ground.scratch(self.name())?;
        let file = folder.join("proxy.conf");
        let arguments: &[&str] = match self {
            Self::Tinyproxy => &["-d", "-c"],
            Self::Squid => &["-N", "-f"],
        };
        let mut command: Vec<OsString> = vec![self.name().into()];
        command.extend(arguments.iter().map(OsString::from));
        command.push(file.clone().into());
        Listening::start_configured(&command, &[], |port| {
            fs::write(
                &file,
                match self {
                    Self::Tinyproxy => tinyproxy(port, credentials),
                    Self::Squid => squid(port, credentials),
                },
            )
        })
    }
}

fn tinyproxy(port: u16, credentials: bool) -> String {
    let credentials = if credentials { "BasicAuth ann s3cret" } else { "" };
    format!("Port {port}\nListen 127.0.0.1\nTimeout 60\nMaxClients 100\nLogLevel Error\n{credentials}\n")
}

/// It sends credentials in one line to a program, which it runs as another user.
fn squid(port: u16, credentials: bool) -> String {
    const CHECK: &str = "/bin/sed -u -e s/^ann.s3cret$/OK/ -e t -e s/.*/ERR/";
    let access = match credentials {
        true => format!(
            "auth_param basic program {CHECK}\nauth_param basic children 1\nacl known proxy_auth REQUIRED\n\
             http_access allow known\nhttp_access deny all"
        ),
        false => "http_access allow all".into(),
    };
    format!(
        "http_port 127.0.0.1:{port}\n{access}\ncache deny all\naccess_log none\ncache_log /dev/null\n\
         pid_filename none\nshutdown_lifetime 0 seconds\ncoredump_dir none\n"
    )
}

/// Returns the proxy at this port, with these credentials.
fn through(port: u16, credentials: &str) -> Result<Proxies, String> {
    let proxy = Proxy::parse(&format!("http://{credentials}127.0.0.1:{port}"));
    proxy.map(Proxies::all).map_err(|why| why.to_string())
}

/// Everything works through it, and nothing remains of the client.
fn passes(
    ground: &Ground,
    adapter: Adapter,
    program: Program,
    credentials: bool,
    (scheme, path, policy, _): (&str, &str, Policy, &str),
) -> Result<String, String> {
    let leaf = Leaf { names: &[HOST], ..Leaf::default() };
    let tls = ["https", "wss"].contains(&scheme).then(|| ground.authority.server(&leaf));
    let ours = Ours::serve_as(adapter, tls, Hosts::Any)?;
    let mut proxy = program.start(ground, credentials)?;
    let url = format!("{scheme}://{HOST}:{}{path}", ours.address().port());
    let proxies = through(proxy.port(), if credentials { GOOD } else { "" })?;
    let client = connect_through(adapter, &url, policy, Some(ground.authority.client()), proxies);
    let used = client.map_err(|why| why.to_string()).and_then(|client| use_all(client, &ours));
    let used = used.map_err(|why| format!("{why}; the proxy: {:?}", proxy.lines()))?;
    proxy.end()?;
    ours.is_left()?;
    Ok(used)
}

/// It demands credentials, and the error names it. Tinyproxy responds to wrong ones with 401, which
/// over HTTP could be the response of the server.
fn refused(ground: &Ground, adapter: Adapter, program: Program, given: &str) -> Result<String, String> {
    let ours = Ours::serve_as(adapter, None, Hosts::Any)?;
    let proxy = program.start(ground, true)?;
    let mut told = String::new();
    let (schemes, kind, status): (&[&str], _, _) = match program {
        Program::Tinyproxy if !given.is_empty() => (&["https", "ws"], ProxyFailureKind::Refused, "401"),
        _ => (&["http", "https", "ws"], ProxyFailureKind::Unauthorized, "407"),
    };
    for scheme in schemes {
        let url = format!("{scheme}://{HOST}:{}/mcp", ours.address().port());
        let failed = failure(ground, adapter, &url, through(proxy.port(), given)?)?;
        let named = [&format!(":{}", proxy.port()), status].iter().all(|word| failed.1.contains(*word));
        expect(failed.0 == kind && named && !failed.1.contains("wrong@"), || format!("{url}: {failed:?}"))?;
        told = failed.1;
    }
    Ok(told)
}

/// It opens no tunnel to a server that is not there.
fn unreachable(ground: &Ground, adapter: Adapter, program: Program) -> Result<String, String> {
    let proxy = program.start(ground, false)?;
    let (kind, told) = failure(ground, adapter, &format!("wss://{HOST}:9/mcp"), through(proxy.port(), "")?)?;
    expect(kind == ProxyFailureKind::Refused, || format!("{kind:?}: {told}"))?;
    Ok(told)
}

/// Returns how the proxy refused a client.
fn failure(
    ground: &Ground,
    adapter: Adapter,
    url: &str,
    proxies: Proxies,
) -> Result<(ProxyFailureKind, String), String> {
    match connect_through(adapter, url, Policy::Auto, Some(ground.authority.client()), proxies) {
        Ok(_) => Err(format!("{url} is accepted")),
        Err(why) => match cause::<Closed>(&why) {
            Some(Closed::Proxy(failure)) => Ok((failure.kind, why.to_string())),
            other => Err(format!("{url}: {other:?}: {why}")),
        },
    }
}
