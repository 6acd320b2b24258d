//! nginx between our client and our server. It ends TLS with a certificate of a private authority.

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::time::Duration;

use mcp_proto::CallError;
use mcp_proto::client::Policy;
use mcp_proto::exchange::{Closed, TlsFailureKind};
use mcp_proto::tools;

use super::ours::{Ours, connect, use_all};
use super::{Ground, Row, expect};
use crate::adapters::{Adapter, cause};
use crate::certificates::{Authority, Leaf};
use crate::interop::listening::Listening;

/// How nginx listens, and how it reaches our server.
#[derive(Clone, Copy)]
pub(super) struct Front {
    /// Its name in the rows.
    pub(super) name: &'static str,
    /// Whether clients speak TLS with it.
    tls: bool,
    /// Whether it speaks TLS with our server.
    behind: bool,
    /// Further directives of its server.
    directives: &'static str,
}

pub(super) const PLAIN: Front = Front { name: "nginx", tls: false, behind: false, directives: "" };
pub(super) const TLS: Front = Front { name: "nginx with TLS", tls: true, ..PLAIN };
const BOTH: Front = Front { name: "nginx with TLS on both sides", tls: true, behind: true, ..PLAIN };

/// How a client reaches our server: the path, the scheme, the policy, and the name in the rows.
const WAYS: [(&str, &str, Policy, &str); 5] = [
    ("http", "/mcp", Policy::Modern, "HTTP"),
    ("http", "/mcp", Policy::Legacy, "HTTP with a session"),
    ("http", "/sse", Policy::Legacy, "HTTP+SSE"),
    ("ws", "/mcp", Policy::Modern, "WebSocket"),
    ("ws", "/mcp", Policy::Legacy, "WebSocket, legacy"),
];

/// Returns the rows.
pub(super) fn rows() -> Vec<Row> {
    Adapter::ALL.into_iter().flat_map(of_adapter).collect()
}

fn of_adapter(adapter: Adapter) -> Vec<Row> {
    let name = |name: &str| format!("{name}, {}", adapter.package());
    let ways = [PLAIN, TLS, BOTH].into_iter().flat_map(|front| WAYS.map(|way| (front, way)));
    let mut rows: Vec<Row> = ways
        .map(|(front, way)| {
            let row = name(&format!("{}: {}", front.name, way.3));
            Row::new(row, move |ground| passes(ground, adapter, front, way))
        })
        .collect();
    let only_12 = Front { directives: "ssl_protocols TLSv1.2;", ..TLS };
    let only_11 = Front { directives: "ssl_protocols TLSv1.1; ssl_ciphers DEFAULT@SECLEVEL=0;", ..TLS };
    rows.extend([
        Row::new(name("nginx that ignores X-Accel-Buffering holds events back"), move |ground| {
            is_held(ground, adapter)
        }),
        Row::new(name("nginx with TLS 1.2 only"), move |ground| passes(ground, adapter, only_12, WAYS[0])),
        Row::new(name("nginx with TLS 1.1 only is refused"), move |ground| {
            refused(ground, adapter, only_11, &ground.authority, TlsFailureKind::Incompatible)
        }),
        Row::new(name("nginx with an authority that is not trusted is refused"), move |ground| {
            refused(ground, adapter, TLS, &Authority::new("another"), TlsFailureKind::UnknownIssuer)
        }),
    ]);
    rows
}

impl Front {
    /// The same, with these directives.
    pub(super) const fn with(self, directives: &'static str) -> Self {
        Self { directives, ..self }
    }

    /// Starts it before our server.
    pub(super) fn start(self, ground: &Ground, ours: &Ours) -> Result<Listening, String> {
        let folder = ground.scratch("nginx")?;
        let file = folder.join("nginx.conf");
        let command: Vec<OsString> =
            ["nginx".into(), "-p".into(), folder.clone().into(), "-c".into(), file.clone().into()].into();
        Listening::start_configured(&command, &[], |port| {
            fs::write(&file, self.configuration(ground.folder(), port, ours))
        })
    }

    /// Returns the whole configuration: nothing of the system's is read, and nothing is written
    /// outside of the directory of the row.
    fn configuration(self, certificates: &Path, port: u16, ours: &Ours) -> String {
        let (certificates, behind) = (certificates.display(), ours.address());
        let scheme = if self.behind { "https" } else { "http" };
        let listen = if self.tls {
            format!(
                "listen 127.0.0.1:{port} ssl http2;
        ssl_certificate {certificates}/cert.pem;
        ssl_certificate_key {certificates}/key.pem;"
            )
        } else {
            format!("listen 127.0.0.1:{port};")
        };
        let directives = self.directives;
        format!(
            "daemon off;
master_process off;
pid nginx.pid;
error_log stderr warn;
events {{ worker_connections 256; }}
http {{
    access_log off;
    client_body_temp_path body;
    proxy_temp_path proxy;
    fastcgi_temp_path fastcgi;
    uwsgi_temp_path uwsgi;
    scgi_temp_path scgi;
    map $http_upgrade $connection_upgrade {{
        default upgrade;
        '' '';
    }}
    upstream ours {{
        server {behind};
        keepalive 4;
    }}
    server {{
        {listen}
        {directives}
        location / {{
            proxy_pass {scheme}://ours;
            proxy_http_version 1.1;
            proxy_set_header Host $host;
            proxy_set_header Upgrade $http_upgrade;
            proxy_set_header Connection $connection_upgrade;
            proxy_ssl_name localhost;
            proxy_ssl_verify on;
            proxy_ssl_trusted_certificate {certificates}/root.pem;
        }}
    }}
}}
"
        )
    }

    /// Returns the URL of our server through it. The name is that of the certificate.
    pub(super) fn url(self, nginx: &Listening, scheme: &str, path: &str) -> String {
        format!("{scheme}{}://localhost:{}{path}", if self.tls { "s" } else { "" }, nginx.port())
    }
}

/// Everything works through it, and nothing remains of the client.
pub(super) fn passes(
    ground: &Ground,
    adapter: Adapter,
    front: Front,
    (scheme, path, policy, _): (&str, &str, Policy, &str),
) -> Result<String, String> {
    let tls = front.behind.then(|| ground.authority.server(&Leaf::default()));
    let ours = Ours::serve(adapter, tls)?;
    let mut nginx = front.start(ground, &ours)?;
    let url = front.url(&nginx, scheme, path);
    let client = connect(adapter, &url, policy, Some(ground.authority.client()));
    let used = client.map_err(|why| why.to_string()).and_then(|client| use_all(client, &ours));
    let used = used.map_err(|why| format!("{why}; nginx: {:?}", nginx.lines()))?;
    nginx.end()?;
    ours.is_left()?;
    Ok(used)
}

/// The other rows would notice a proxy that holds back events: this one does.
fn is_held(ground: &Ground, adapter: Adapter) -> Result<String, String> {
    let front = Front { directives: "proxy_ignore_headers X-Accel-Buffering;", ..TLS };
    let ours = Ours::serve(adapter, None)?;
    let nginx = front.start(ground, &ours)?;
    let url = front.url(&nginx, "http", "/mcp");
    let client =
        connect(adapter, &url, Policy::Modern, Some(ground.authority.client())).map_err(|why| why.to_string())?;
    let mut seen = 0;
    let call = tools::call("steps").timeout(Some(Duration::from_secs(1)));
    let ended = client.call(call.on_progress(|_| seen += 1));
    let is_so = seen == 0 && matches!(ended, Err(CallError::Timeout { .. }));
    expect(is_so, || format!("{seen} steps were delivered, and the call ended with {ended:?}"))?;
    client.close()?;
    Ok("no step in 1 s".into())
}

/// A client with this authority does not connect, for this reason.
fn refused(
    ground: &Ground,
    adapter: Adapter,
    front: Front,
    authority: &Authority,
    kind: TlsFailureKind,
) -> Result<String, String> {
    let ours = Ours::serve(adapter, None)?;
    let nginx = front.start(ground, &ours)?;
    for scheme in ["http", "ws"] {
        let url = front.url(&nginx, scheme, "/mcp");
        let why = match connect(adapter, &url, Policy::Auto, Some(authority.client())) {
            Ok(_) => return Err(format!("{url} is accepted")),
            Err(why) => why,
        };
        expect(matches!(cause::<Closed>(&why), Some(Closed::Tls(why)) if why.kind == kind), || {
            format!("{url}: {why}")
        })?;
    }
    Ok(format!("{kind:?}"))
}
