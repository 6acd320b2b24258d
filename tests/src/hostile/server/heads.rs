//! Heads that are too long, invalid, or of another protocol.

use super::ask::Ask;
use super::parts::{closes, each, each_ask, gets, keeps, met, met_with, pours, row, short};
use super::tools;
use crate::hostile::rows::expect;
use crate::hostile::{Bench, Row};

pub(super) const ROWS: &[Row] = &[
    row("asks with headers without end", |b| poured(b, "POST /mcp HTTP/1.1\r\n", "X-A: b\r\n", &[431])),
    row("asks with a header without end", |b| {
        poured(b, "POST /mcp HTTP/1.1\r\nHost: localhost\r\nX-A: ", "aaaaaaaa", &[431])
    }),
    row("asks with a name of a header without end", |b| {
        poured(b, "POST /mcp HTTP/1.1\r\nHost: localhost\r\n", "aaaaaaaa", &[431])
    }),
    row("asks for a target without end", |b| poured(b, "POST /", "aaaaaaaa", &[414])),
    row("asks by a method without end", |b| poured(b, "", "AAAAAAAA", &[400, 414, 431, 501])),
    row("writes empty lines without end", empty_lines),
    row("writes NUL without end", |b| poured(b, "", "\0\0\0\0", &[400, 414])),
    row("asks with 100,000 headers", |b| {
        met(b, Ask::mark().lines("X: y\r\n".repeat(100_000)).bytes(), &closes(&[431]))
    }),
    // Host, Accept, Content-Type, the three of the protocol and the length are seven.
    row("asks with 101 headers", |b| met(b, Ask::mark().lines("X: y\r\n".repeat(94)).bytes(), &closes(&[431]))),
    row("asks with 100 headers", |b| met(b, Ask::mark().lines("X: y\r\n".repeat(93)).bytes(), &keeps(&[200]))),
    row("asks for a target of 60,000 bytes", |b| {
        met(b, Ask::mark().line(&format!("POST /{} HTTP/1.1", "a".repeat(60_000))).bytes(), &gets(&[404, 414]))
    }),
    row("asks after an empty line", |b| met(b, [b"\r\n", Ask::mark().bytes().as_slice()].concat(), &keeps(&[200]))),
    row("asks in lines that end with LF", bare_feeds),
    row("asks with a CR where none may be", |b| {
        let lines = ["X-A: b\rX-B: c\r\n", "X-A: b\r\r\n", "X-A:\r b\r\n", "\rX-A: b\r\n", "X-A\r: b\r\n"];
        each_ask(b, &lines, |line| Ask::mark().lines(line), &closes(&[400]))
    }),
    row("asks with fields that are none", |b| {
        let lines = [
            "X-A : b\r\n",
            "X-A\t: b\r\n",
            "X-A: b\r\n c\r\n",
            "X-A: b\r\n\tc\r\n",
            "X-A\r\n",
            ": b\r\n",
            "X A: b\r\n",
            "X-A: b\0c\r\n",
            "X-\0A: b\r\n",
            "X-A: b\x01\r\n",
            "X-A: b\x7f\r\n",
            "X(A): b\r\n",
            "X-Ä: b\r\n",
            "\0\r\n",
        ];
        each_ask(b, &lines, |line| Ask::mark().lines(line), &closes(&[400]))
    }),
    row("asks with white space before the first field", |b| {
        let lines = ["POST /mcp HTTP/1.1\r\n X-A: b", "POST /mcp HTTP/1.1\r\n\tX-A: b", "POST /mcp HTTP/1.1\r\n "];
        each_ask(b, &lines, |line| Ask::mark().line(line), &closes(&[400]))
    }),
    row("asks with a value in Latin-1", |b| met(b, Ask::mark().lines(b"X-A: caf\xe9\r\n").bytes(), &keeps(&[200]))),
    row("asks by a first line that is none", |b| {
        let lines = [
            "POST  /mcp HTTP/1.1",
            "POST /mcp  HTTP/1.1",
            "POST /mcp HTTP/1.1 ",
            " POST /mcp HTTP/1.1",
            "POST\t/mcp\tHTTP/1.1",
            "POST /mcp /mcp HTTP/1.1",
            "POST /m\0cp HTTP/1.1",
            "POST /m\x7fcp HTTP/1.1",
            "POST  HTTP/1.1",
            "POST /mcp",
            "POST",
            "P(ST /mcp HTTP/1.1",
            "POST /mcp HTTP/",
            "POST /mcp HTTP/1.1.1",
            "POST /mcp http/1.1",
            "POST /mcp HTTP/one",
            "HTTP/1.1 200 OK",
        ];
        each_ask(b, &lines, |line| Ask::mark().line(line), &closes(&[400, 505]))
    }),
    row("asks in another version of HTTP", |b| {
        let lines = ["POST /mcp HTTP/2.0", "POST /mcp HTTP/3.0", "POST /mcp HTTP/0.9"];
        each_ask(b, &lines, |line| Ask::mark().line(line), &closes(&[505, 400]))
    }),
    row("asks in HTTP/1.0", |b| met(b, Ask::mark().line("POST /mcp HTTP/1.0").bytes(), &closes(&[200]))),
    row("asks in HTTP/0.9", |b| met_with(b, short, "GET /mcp\r\n", &closes(&[400, 408, 505]))),
    row("speaks HTTP/2", |b| met(b, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0", &closes(&[400, 505]))),
    row("speaks TLS", |b| met_with(b, short, client_hello(), &closes(&[400, 408]))),
    row("speaks another protocol", |b| {
        let greetings = [
            "SSH-2.0-OpenSSH_9.9\r\n\r\n",
            "EHLO there\r\n\r\n",
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n",
            "*1\r\n$4\r\nPING\r\n\r\n",
            "\r\n\r\n\r\n{}\r\n\r\n",
        ];
        each(b, |_| {}, greetings.map(|text| (text.to_string(), text)), &closes(&[400]))
    }),
    row("asks for the target in full", |b| {
        let hosts = ["localhost", "127.0.0.1:80", "LOCALHOST", "[::1]", "localhost:1"];
        let full = |host: &str| Ask::mark().line(&format!("POST http://{host}/mcp HTTP/1.1")).set("Host", host);
        each_ask(b, &hosts, full, &keeps(&[200]))
    }),
    row("asks for the target in full, and names another host", |b| {
        let hosts = ["evil.example", "localhost:1", "127.0.0.1"];
        let full = |host| Ask::mark().line("POST http://localhost/mcp HTTP/1.1").set("Host", host);
        each_ask(b, &hosts, full, &keeps(&[200]))
    }),
    row("asks for a target elsewhere", |b| {
        let targets = [
            "http://evil.example/mcp",
            "http://localhost@evil.example/mcp",
            "http://localhost.evil.example/mcp",
            "http://localhost:80@evil.example/mcp",
        ];
        each_ask(b, &targets, |target| Ask::mark().line(&format!("POST {target} HTTP/1.1")), &gets(&[400, 403]))
    }),
    row("asks for a target that is none", |b| {
        let targets = ["localhost:80", "*", "mcp", "?", "#", "/mcp#part", "http:/mcp", "//localhost/mcp", "\\mcp"];
        each_ask(b, &targets, |target| Ask::mark().line(&format!("POST {target} HTTP/1.1")), &gets(&[400, 403, 404]))
    }),
    row("asks for another path", |b| {
        let paths =
            ["/", "/mcp/", "/MCP", "/mcpx", "/x/../mcp", "/./mcp", "/mcp/..", "/%6dcp", "/mcp%00", "/mcp%2f", "/mcp;x"];
        each_ask(b, &paths, |path| Ask::mark().line(&format!("POST {path} HTTP/1.1")), &gets(&[404]))
    }),
    row("asks for a tunnel", |b| {
        let lines = ["CONNECT localhost:80 HTTP/1.1", "CONNECT evil.example:443 HTTP/1.1", "CONNECT /mcp HTTP/1.1"];
        each_ask(b, &lines, |line| Ask::mark().line(line), &gets(&[400, 404, 405, 501]))
    }),
    row("asks for the options of everything", |b| {
        met(b, "OPTIONS * HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n", &gets(&[400, 404, 405]))
    }),
    row("asks by another method", |b| {
        let methods = ["PUT", "PATCH", "BREW", "post", "Post", "OPTIONS", "TRACE", "PROPFIND", "POSTS", "QUERY"];
        let refused = keeps(&[405]).field("Allow", "POST");
        each_ask(b, &methods, |method| Ask::mark().line(&format!("{method} /mcp HTTP/1.1")), &refused)
    }),
    row("asks by HEAD", |b| {
        met(b, "HEAD /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n", &keeps(&[405]).field("Allow", "POST").bodiless())
    }),
    row("asks for an upgrade", |b| {
        let protocols = ["h2c", "websocket", "TLS/1.0", "HTTP/2.0, SHTTP/1.3"];
        each_ask(
            b,
            &protocols,
            |protocol| Ask::mark().set("Connection", "Upgrade").set("Upgrade", protocol),
            &keeps(&[200]),
        )
    }),
    row("asks and expects the unknown", |b| {
        let expected = ["200-ok", "100-continue, 200-ok", "x", "100-continues", "100-continue; x=y"];
        each_ask(b, &expected, |expected| Ask::mark().set("Expect", expected), &gets(&[417]))
    }),
    row("asks and expects to be told to go on", goes_on),
    row("asks to close, in every way", |b| {
        let ways = ["close", "Close", "keep-alive, close", "close,keep-alive", "x, \tclose ,"];
        each_ask(b, &ways, |way| Ask::mark().set("Connection", way), &closes(&[200]))
    }),
];

/// An endless head.
fn poured(bench: &Bench, start: &str, part: &str, statuses: &'static [u16]) -> Result<String, String> {
    pours(bench, short, start.as_bytes(), part.as_bytes(), statuses)
}

/// No request was made, so no response is needed: the connection ends in time.
fn empty_lines(bench: &Bench) -> Result<String, String> {
    let site = bench.site(short)?;
    let mut link = site.visit()?;
    let pouring = link.pour(b"\r\n", bench.size << 4)?;
    site.serves()?;
    let told = match link.answer() {
        Ok(answer) => {
            expect([400, 408, 431].contains(&answer.status), || format!("{answer} in place of 400"))?;
            link.is_over()?;
            answer.status.to_string()
        }
        Err(why) if why == "it ends without an answer" => "closed without a word".into(),
        Err(why) => return Err(why),
    };
    link.leave();
    pouring.join().map_err(|_| "the writer panics")?;
    site.is_well()?;
    Ok(told)
}

/// Lines that end with LF alone: all of them, or one.
fn bare_feeds(bench: &Bench) -> Result<String, String> {
    let good = String::from_utf8(Ask::mark().head()).map_err(|e| e.to_string())?;
    let body = Ask::mark().content();
    let one = |at: usize| {
        let mut lines: Vec<String> = good.split_inclusive("\r\n").map(str::to_string).collect();
        lines[at] = lines[at].replace("\r\n", "\n");
        lines.concat()
    };
    let count = good.matches("\r\n").count();
    let heads = (0..count).map(one).chain([good.replace("\r\n", "\n"), good.replace("\r\n", "\r")]);
    // Lines with CR alone form one line that does not end before the body.
    let cases = heads.map(|head| (head.clone(), [head.as_bytes(), &body, b"\n\n"].concat()));
    each(bench, |_| {}, cases, &closes(&[400]))
}

/// The client gets `100 Continue` before it writes the body. A client refused for its head does
/// not, and gets the error without a body.
fn goes_on(bench: &Bench) -> Result<String, String> {
    let site = bench.site(|config| config.limits.frame.max_request_body = 4 << 10)?;
    let ask = Ask::mark().set("Expect", "100-continue");
    let mut link = site.visit()?;
    link.say(&ask.head());
    let told = link.answer()?;
    expect(told.status == 100, || format!("{told} in place of 100"))?;
    link.say(&ask.content());
    link.served()?;
    let refused = [
        (ask.clone().body("x".repeat(5 << 10)), closes(&[413])),
        (ask.clone().set("Host", "evil.example"), closes(&[403])),
        (ask.clone().set("Origin", "https://evil.example"), closes(&[403])),
        (ask.line("POST /other HTTP/1.1"), closes(&[404])),
    ];
    let mut told_to = 0;
    for (ask, refused) in &refused {
        let mut link = site.visit()?;
        link.say(&ask.head());
        if let Err(why) = refused.next(&mut link) {
            expect(why.starts_with("100 "), || why)?;
            told_to += 1;
            refused.next(&mut link)?;
        }
    }
    expect(tools::marks() == 1, || format!("{} calls have run", tools::marks()))?;
    site.serves()?;
    Ok(format!("100, then 200; of {} refusals {told_to} come after a 100", refused.len()))
}

/// The first record of a TLS 1.3 client.
fn client_hello() -> Vec<u8> {
    let mut hello = vec![0x16, 0x03, 0x01, 0x00, 0xc8, 0x01, 0x00, 0x00, 0xc4, 0x03, 0x03];
    hello.extend(std::iter::repeat_n(0x5a_u8, 0xc8 - 6));
    hello
}
