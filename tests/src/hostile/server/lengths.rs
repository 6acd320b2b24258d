//! Requests whose end is ambiguous, with another request behind one of the two ends: a smuggled
//! request never runs.

use super::ask::Ask;
use super::parts::{closes, each, each_ask, gets, keeps, met, met_with, pours, row, short};
use super::site::good;
use super::tools;
use crate::hostile::rows::expect;
use crate::hostile::{Bench, Row};
use mcp_proto::ServerConfig;

pub(super) const ROWS: &[Row] = &[
    row("smuggles: both lengths", |b| {
        let ways = ["chunked", "Chunked", " chunked", "chunked ", "x", "identity", ""];
        let smuggled = [b"0\r\n\r\n", Ask::mark().bytes().as_slice()].concat();
        each_ask(
            b,
            &ways,
            |way| Ask::call("echo").body(&smuggled).lines(format!("Transfer-Encoding: {way}\r\n")),
            &closes(&[400, 501]),
        )
    }),
    row("smuggles: lengths that differ", |b| {
        let ways = ["Content-Length: 5\r\n", "content-length: 0\r\n", "CONTENT-LENGTH: 00\r\n", "Content-Length:\r\n"];
        each_ask(b, &ways, |way| Ask::mark().lines(way), &closes(&[400]))
    }),
    row("smuggles: a list of lengths", |b| {
        let lists = ["5, 6", "0, 5", "5,", ",5", "5;6", "5 6"];
        each_ask(b, &lists, |list| Ask::mark().unframed().set("Content-Length", list), &closes(&[400]))
    }),
    row("smuggles: a length that is no number", |b| {
        let lengths = ["+5", "-1", "0x5", "1e1", "5.0", "five", "\"5\"", "５", "5\u{a0}", "5\x0b", "1_0", ""];
        each_ask(b, &lengths, |length| Ask::mark().unframed().set("Content-Length", length), &closes(&[400]))
    }),
    row("smuggles: a length beyond all numbers", |b| {
        let lengths =
            ["18446744073709551615", "18446744073709551616", "99999999999999999999999999999999", "9223372036854775808"];
        each_ask(b, &lengths, |length| Ask::mark().unframed().set("Content-Length", length), &closes(&[400, 413]))
    }),
    row("smuggles: an unknown transfer coding", |b| {
        let codings = [
            "gzip",
            "gzip, chunked",
            "chunked, gzip",
            "chunked, chunked",
            "xchunked",
            "chunkedx",
            "identity",
            "chunked;q=1",
            "\"chunked\"",
            "\x0bchunked",
            "chunked\u{a0}",
            "chu nked",
            "",
        ];
        each_ask(
            b,
            &codings,
            |coding| Ask::mark().chunked().set("Transfer-Encoding", coding),
            &closes(&[400, 411, 501]),
        )
    }),
    row("smuggles: transfer codings in two fields", |b| {
        let others = ["chunked", "identity", "gzip", "x"];
        each_ask(
            b,
            &others,
            |other| Ask::mark().chunked().lines(format!("Transfer-Encoding: {other}\r\n")),
            &closes(&[400, 501]),
        )
    }),
    row("smuggles: a transfer coding that is half hidden", |b| {
        let lines = [
            "Transfer-Encoding : chunked\r\n",
            " Transfer-Encoding: chunked\r\n",
            "X: y\r\n Transfer-Encoding: chunked\r\n",
            "X: y\rTransfer-Encoding: chunked\r\n",
            "X: y\nTransfer-Encoding: chunked\r\n",
            "Transfer-Encoding:\r\n chunked\r\n",
            "Transfer-Encoding\0: chunked\r\n",
            "Transfer\u{2010}Encoding: chunked\r\n",
        ];
        each_ask(b, &lines, |line| Ask::mark().lines(line), &closes(&[400]))
    }),
    row("smuggles: the size of a chunk is no number", |b| {
        let sizes = ["x", "-1", "+1", "0x1", "1 1", " 1", "", "g", "1.0", "１", "\"1\"", "1\x0b"];
        let chunks = |size: &str| Ask::mark().chunks(format!("{size}\r\n{{\r\n0\r\n\r\n")).bytes();
        each(b, |_| {}, sizes.map(|size| (size.to_string(), chunks(size))), &closes(&[400]))
    }),
    row("smuggles: the size of a chunk overflows", |b| {
        let sizes = ["10000000000000000", "ffffffffffffffff1", "100000000000000000000000000000001"];
        let chunks = |size: &str| Ask::mark().chunks(format!("{size}\r\n{{\r\n0\r\n\r\n")).bytes();
        each(b, |_| {}, sizes.map(|size| (size.to_string(), chunks(size))), &closes(&[400, 413]))
    }),
    row("smuggles: a chunk that is longer than its size", |b| {
        let bodies =
            ["1\r\n{}\r\n0\r\n\r\n", "1\r\n{0\r\n\r\n", "0\r\nPOST /mcp HTTP/1.1\r\n\r\n", "1\r\n{\r\r\n0\r\n\r\n"];
        each(b, |_| {}, bodies.map(|body| (body.to_string(), Ask::mark().chunks(body).bytes())), &closes(&[400]))
    }),
    row("smuggles: lines of chunks that end with LF or CR", |b| {
        let bodies = [
            "1\n{\r\n0\r\n\r\n",
            "1\r\n{\n0\r\n\r\n",
            "2\r\n{}\r\n0\n\n",
            "1\r{\r\n0\r\n\r\n",
            "2;a\n=b\r\n{}\r\n0\r\n\r\n",
            "2\r\n{}\r\n0\r\n\n",
        ];
        each(b, |_| {}, bodies.map(|body| (body.to_string(), Ask::mark().chunks(body).bytes())), &closes(&[400]))
    }),
    row("smuggles: blanks or an open string behind the size of a chunk", |b| {
        let sizes = ["2 ", "2\t", "2 ;a", "2                 ", "2;a=\"b", "2;a=\"b\\\"", "00000000000000002"];
        let chunks = |size: &str| Ask::mark().chunks(format!("{size}\r\n{{}}\r\n0\r\n\r\n")).bytes();
        each(b, |_| {}, sizes.map(|size| (size.to_string(), chunks(size))), &closes(&[400]))
    }),
    row("smuggles: a transfer coding after chunked", |b| {
        let codings = ["chunked, gzip", "chunked, identity", "identity", "gzip", "chunked, x"];
        each_ask(b, &codings, |coding| Ask::mark().chunked().set("Transfer-Encoding", coding), &closes(&[400]))
    }),
    row("smuggles: a trailer that is none", |b| {
        let trailers = ["X : y\r\n", " X: y\r\n", "X\r\n", "X: y\0\r\n", "POST /mcp HTTP/1.1\r\n", "X: y\r\n z\r\n"];
        let body = |trailer: &str| Ask::mark().chunks(format!("2\r\n{{}}\r\n0\r\n{trailer}\r\n")).bytes();
        each(b, |_| {}, trailers.map(|trailer| (trailer.to_string(), body(trailer))), &closes(&[400]))
    }),
    row("smuggles: a request in a body that is not read", unread_bodies),
    row("smuggles: a request behind a refused body", behind_a_body),
    row("smuggles: a request behind a refused head", |b| {
        let lines = ["X-A : b\r\n", "X-A: b\r\n c\r\n", "X-A\0: b\r\n", "Host: localhost\r\n"];
        let twice = |line: &str| [Ask::call("echo").lines(line).bytes(), Ask::mark().bytes()].concat();
        each(b, |_| {}, lines.map(|line| (line.to_string(), twice(line))), &closes(&[400]))
    }),
    row("smuggles: a request behind one of another site", |b| {
        let strangers = ["Host", "Origin"];
        let twice =
            |field: &str| [Ask::call("echo").set(field, "http://evil.example").bytes(), Ask::mark().bytes()].concat();
        each(b, |_| {}, strangers.map(|field| (field.to_string(), twice(field))), &closes(&[403, 400]))
    }),
    row("smuggles: a request behind one that closes", |b| {
        met(
            b,
            [Ask::call("echo").with("text", "x").set("Connection", "close").bytes(), Ask::mark().bytes()].concat(),
            &closes(&[200]),
        )
    }),
    row("repeats the same length", |b| {
        let ask = Ask::mark();
        let again = format!("Content-Length: {}\r\n", ask.content().len());
        met(b, ask.lines(again).bytes(), &gets(&[200, 400]))
    }),
    row("says no length", |b| met(b, Ask::mark().unframed().bytes(), &closes(&[411, 400]))),
    row("asks in chunks, in HTTP/1.0", |b| {
        met(b, Ask::mark().chunked().line("POST /mcp HTTP/1.0").bytes(), &closes(&[400]))
    }),
    row("asks in chunks", chunks),
    row("promises a chunk of all there is", |b| {
        let sizes = ["ffffffffffffffff", "7fffffffffffffff", "500000"];
        let chunks = |size: &str| [Ask::mark().chunks(format!("{size}\r\n")).bytes(), vec![b' '; 1 << 10]].concat();
        // Its excessive length may be refused before it is read.
        each(b, short, sizes.map(|size| (size.to_string(), chunks(size))), &closes(&[400, 408, 413]))
    }),
    row("writes a chunk without end", |b| poured(b, "ffffffffffff\r\n", "        ")),
    row("extends a chunk without end", |b| poured(b, "2;", "aaaaaaaa")),
    row("extends chunks of one byte without end", |b| {
        let part = format!("1;{}\r\n \r\n", "x".repeat(1000));
        poured(b, "", &part)
    }),
    row("writes zeros before the size of a chunk, without end", |b| poured(b, "", "00000000")),
    row("writes a trailer without end", |b| poured(b, "2\r\n{}\r\n0\r\nX: ", "aaaaaaaa")),
    row("writes trailers without end", |b| poured(b, "2\r\n{}\r\n0\r\n", "X: yyyy\r\n")),
    row("asks with trailers that would change everything", |b| {
        let trailers =
            "Content-Length: 5\r\nTransfer-Encoding: x\r\nHost: evil.example\r\nOrigin: https://evil.example\r\n";
        let ask = Ask::mark();
        let chunks =
            format!("{:x}\r\n{}\r\n0\r\n{trailers}\r\n", ask.content().len(), String::from_utf8_lossy(&ask.content()));
        met(b, ask.chunks(chunks).bytes(), &keeps(&[200]))
    }),
    row("asks with a body that is coded", |b| {
        let codings = ["br", "zstd", "x", "gzip, gzip", "gzip, br, identity"];
        each_ask(b, &codings, |coding| Ask::mark().set("Content-Encoding", coding), &gets(&[415]))
    }),
];

/// An endless chunked body.
fn poured(bench: &Bench, start: &str, part: &str) -> Result<String, String> {
    pours(bench, |_| {}, &Ask::mark().chunks(start).bytes(), part.as_bytes(), &[400, 413, 431])
}

/// The body in chunks of any size and any form.
fn chunks(bench: &Bench) -> Result<String, String> {
    let ask = Ask::mark();
    let body = ask.content();
    let sized = |size: usize, line: fn(usize) -> String| {
        let mut chunks = Vec::new();
        for part in body.chunks(size) {
            chunks.extend([line(part.len()).as_bytes(), part, b"\r\n"].concat());
        }
        [chunks.as_slice(), b"0\r\n\r\n"].concat()
    };
    let cases = [
        ("one", sized(body.len(), |n| format!("{n:x}\r\n"))),
        ("of one byte", sized(1, |n| format!("{n:x}\r\n"))),
        ("in capitals", sized(200, |n| format!("{n:X}\r\n"))),
        ("with zeros", sized(7, |n| format!("000{n:x}\r\n"))),
        ("with extensions", sized(7, |n| format!("{n:x};a=b;c=\"d\"\r\n"))),
    ];
    let cases = cases.map(|(name, chunks)| (name.to_string(), ask.clone().chunks(chunks).bytes()));
    each(bench, |_| {}, cases, &keeps(&[200]))
}

/// The bodies of requests that are refused by their heads, or need no body: they are skipped, and
/// not read as requests.
fn unread_bodies(bench: &Bench) -> Result<String, String> {
    let mark = Ask::mark().bytes();
    let asks = [
        ("GET", Ask::get("2025-11-25", Some("x")).body(&mark).set("Content-Length", &mark.len().to_string())),
        ("DELETE", Ask::delete("2025-11-25", Some("x")).body(&mark).set("Content-Length", &mark.len().to_string())),
        ("PUT", Ask::mark().line("PUT /mcp HTTP/1.1").body(&mark)),
        ("OPTIONS", Ask::mark().line("OPTIONS /mcp HTTP/1.1").body(&mark)),
        ("another path", Ask::mark().line("POST /x HTTP/1.1").body(&mark)),
        ("another type", Ask::mark().set("Content-Type", "text/plain").body(&mark)),
        ("no JSON", Ask::mark().body(&mark)),
    ];
    let cases = asks.map(|(name, ask)| (name.to_string(), ask.bytes()));
    each(bench, |_| {}, cases, &gets(&[400, 404, 405, 415]))
}

/// The bytes after the limit of a body are the rest of it, and not a request.
fn behind_a_body(bench: &Bench) -> Result<String, String> {
    let small: fn(&mut ServerConfig) = |config| config.limits.frame.max_request_body = 1 << 10;
    let mark = Ask::mark().bytes();
    let long = [Ask::call("echo").body("x".repeat(2 << 10)).bytes(), mark.clone()].concat();
    let declared = met_with(bench, small, &long, &closes(&[413]))?;
    let chunked = Ask::call("echo").chunks(format!("800\r\n{}\r\n0\r\n\r\n", "x".repeat(0x800)));
    met_with(bench, small, [chunked.bytes(), mark].concat(), &closes(&[413]))?;
    expect(tools::marks() == 0, || "what is behind has run".into())?;
    // A body of exactly the limit is read, and the bytes after it are a request.
    let site = bench.site(small)?;
    let mut link = site.says(&Ask::call("echo").body(" ".repeat(1 << 10)))?;
    let answer = keeps(&[400]).next(&mut link)?;
    good(&mut link)?;
    Ok(format!("{declared}; at the limit {} and kept", answer.status))
}
