//! Requests that name another host, or come from a page of another site.

use super::ask::{Ask, LEGACY};
use super::link::Answer;
use super::parts::{closes, each, each_ask, gets, keeps, met, row};
use crate::hostile::rows::expect;
use crate::hostile::{Bench, Row};
use mcp_proto::ServerConfig;
use mcp_proto::server::Hosts;

pub(super) const ROWS: &[Row] = &[
    row("names hosts that are none of ours", |b| {
        each_ask(b, STRANGERS, |host| Ask::mark().set("Host", host), &closes(&[400, 403]))
    }),
    row("names this host, however that is written", |b| {
        let hosts = [
            "localhost",
            "LocalHost",
            "localhost:1",
            "localhost:65535",
            "127.0.0.1",
            "127.0.0.1:8000",
            "127.200.3.4",
            "[::1]",
            "[::1]:8000",
            " localhost\t",
        ];
        each_ask(b, &hosts, |host| Ask::mark().set("Host", host), &keeps(&[200]))
    }),
    row("names no host", |b| met(b, Ask::mark().without("Host").bytes(), &closes(&[400, 403]))),
    row("names two hosts", |b| {
        let others = ["localhost", "evil.example", ""];
        each_ask(b, &others, |other| Ask::mark().lines(format!("Host: {other}\r\n")), &closes(&[400, 403]))
    }),
    row("comes from another site, and writes no body", |b| {
        // It is refused by its head alone.
        let origin = Ask::mark().set("Origin", "https://evil.example");
        let host = Ask::mark().set("Host", "evil.example");
        let cases = [("Origin", origin), ("Host", host)].map(|(name, ask)| (name.to_string(), ask.head()));
        each(b, |_| {}, cases, &closes(&[403]))
    }),
    row("names hosts beside a list", listed),
    row("names any host, where any will do", |b| {
        let any: fn(&mut ServerConfig) = |config| config.hosts = Hosts::Any;
        let named = ["evil.example", "localhost", "x:1"];
        let cases = named.map(|host| (host.to_string(), Ask::mark().set("Host", host).bytes()));
        each(b, any, cases, &keeps(&[200]))
    }),
    row("comes from another site", |b| {
        each_ask(b, FOREIGN, |origin| Ask::mark().set("Origin", origin), &closes(&[400, 403]))
    }),
    row("comes from this machine", |b| {
        let origins = ["http://localhost", "http://localhost:3000", "https://127.0.0.1:8443", "http://[::1]:6274"];
        each_ask(b, &origins, |origin| Ask::mark().set("Origin", origin), &keeps(&[200]))
    }),
    row("comes from two sites", |b| {
        let origins = ["https://evil.example", "null"];
        each_ask(
            b,
            &origins,
            |origin| Ask::mark().set("Origin", "http://localhost").lines(format!("Origin: {origin}\r\n")),
            &closes(&[400, 403]),
        )
    }),
    row("comes from another site, by any method", |b| {
        let asks = [
            ("GET", Ask::get(LEGACY, Some("x"))),
            ("DELETE", Ask::delete(LEGACY, Some("x"))),
            ("initialize", Ask::initialize(LEGACY)),
            ("OPTIONS", Ask::mark().line("OPTIONS /mcp HTTP/1.1")),
            ("a form", Ask::mark().set("Content-Type", "text/plain")),
            ("another path", Ask::mark().line("POST /x HTTP/1.1")),
        ];
        let cases = asks.map(|(name, ask)| (name.to_string(), ask.set("Origin", "https://evil.example").bytes()));
        each(b, |_| {}, cases, &gets(&[403, 404]))
    }),
    row("asks for leave to come from another site", |b| {
        let origins = ["https://evil.example", "http://localhost:3000"];
        let preflight = |origin| {
            let ask = Ask::get(LEGACY, None).line("OPTIONS /mcp HTTP/1.1").set("Origin", origin);
            ask.set("Access-Control-Request-Method", "POST").set("Access-Control-Request-Headers", "mcp-session-id")
        };
        each_ask(b, &origins, preflight, &gets(&[403, 405]))
    }),
];

/// Hosts and origins that a browser could send, and that some parser of an authority takes for ours
/// (B-180, B-181, B-182).
const STRANGERS: &[&str] = &[
    "evil.example",
    "evil.example:80",
    "localhost.evil.example",
    "localhost.evil.example:80",
    "evil-localhost",
    "localhostevil.example",
    "127.0.0.1.evil.example",
    "127.0.0.1:80.evil.example",
    "localhost:80.evil.example",
    "localhost:evil.example",
    "localhost:80:80",
    "localhost:80@evil.example",
    "localhost@evil.example",
    "user@localhost",
    "user:pass@localhost",
    "evil.example@localhost",
    "evil.example#@localhost",
    "evil.example/@localhost",
    "evil.example\\@localhost",
    "evil.example?@localhost",
    "localhost/evil.example",
    "localhost\\evil.example",
    "localhost#evil.example",
    "localhost?evil.example",
    "localhost, evil.example",
    "evil.example, localhost",
    "localhost evil.example",
    "localhost%00.evil.example",
    "%6cocalhost",
    "local%68ost",
    "ｌocalhost",
    "localhost\u{3002}",
    "[::1].evil.example",
    "[::1]evil.example",
    "[::1",
    "::1",
    "[::1]:80:80",
    "[::1]:x",
    "[::1%25lo]",
    "[localhost]",
    "[127.0.0.1]",
    "0.0.0.0",
    "0.0.0.0:80",
    "[::]",
    "0",
    "10.0.0.1",
    "128.0.0.1",
    "169.254.169.254",
    "[fe80::1]",
    ":80",
    "http://localhost",
    "localhost:99999",
    "localhost:-1",
    "localhost:+80",
    "localhost: 80",
];

const FOREIGN: &[&str] = &[
    "https://evil.example",
    "http://evil.example:80",
    "null",
    "NULL",
    "http://localhost.evil.example",
    "http://localhost@evil.example",
    "http://localhost:80@evil.example",
    "http://evil.example/localhost",
    "http://evil.example#localhost",
    "http://evil.example?localhost",
    "http://127.0.0.1.evil.example",
    "http://0.0.0.0",
    "http://[::]",
    "http://[::1].evil.example",
    "http://10.0.0.1",
    "localhost",
    "//localhost",
    "http:localhost",
    "http:///localhost",
    "http://",
    "http://localhost:evil.example",
    "http://localhost/",
    "http://localhost http://evil.example",
    "http://localhost, http://evil.example",
    "file://",
    "chrome-extension://abcdefgh",
    "moz-extension://localhost.evil.example",
    "data:text/html,x",
    "blob:http://evil.example",
    "about:blank",
];

/// A list compares names and ports exactly.
fn listed(bench: &Bench) -> Result<String, String> {
    let site = bench.site(|config| {
        let hosts = ["localhost", "example.com:8443", "api.example.com", "[2001:db8::1]:8443"];
        config.hosts = Hosts::Only(hosts.map(str::to_string).into());
    })?;
    let cases = [
        (200, "example.com:8443"),
        (200, "EXAMPLE.com:8443"),
        (200, "api.example.com"),
        (200, "api.example.com:1234"),
        (200, "[2001:db8::1]:8443"),
        (403, "example.com"),
        (403, "example.com:8444"),
        (403, "example.com:84430"),
        (403, "example.com:8443.evil.example"),
        (403, "xexample.com:8443"),
        (403, "x.example.com:8443"),
        (403, "api.example.com.evil.example"),
        (403, "api.example.com@evil.example"),
        (403, "[2001:db8::1]"),
        (403, "[2001:db8::2]:8443"),
        (403, "127.0.0.1"),
    ];
    let mut wrong = Vec::new();
    for (status, host) in cases {
        for (field, value) in [("Host", host.to_string()), ("Origin", format!("https://{host}"))] {
            let answer: Answer = site.asked(&Ask::call("mark").set(field, &value))?;
            if answer.status != status && !(status == 403 && answer.status == 400) {
                wrong.push(format!("{field}: {value} is answered with {answer}"));
            }
        }
    }
    expect(wrong.is_empty(), || wrong.join("; "))?;
    site.serves()?;
    Ok(format!("{} names, as host and as origin", cases.len()))
}
