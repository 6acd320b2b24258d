//! WebSocket clients that break its rules, never end what they begin, or never close. Others, over
//! HTTP and over WebSocket, are served meanwhile.

use super::ask::Ask;
use super::link::Link;
use super::parts::{SHORT, row, short};
use super::site::Site;
use super::tools::{has_begun, was_stopped};
use crate::frames::{
    CLOSE, FRAGMENT, LAST, LONGEST_PING, MORE, NORMAL, PING, PONG, PROTOCOL, TEXT, TOO_BIG, code, masked, plain,
};
use crate::hostile::rows::{DRIVERS, becomes, expect, row_on, soon};
use crate::hostile::{Bench, Row};
use mcp_proto::ServerConfig;
use serde_json::Value;
use std::time::{Duration, Instant};

pub(super) const ROWS: &[Row] = &[
    row("sends a frame without a mask", |b| violates(b, &plain(TEXT, &Ask::mark().content()), PROTOCOL)),
    row("breaks each rule for frames", violations),
    row("floods pings over a websocket, and reads nothing", pings),
    row("floods pings over a websocket, and reads the pongs", pings_and_reads),
    row_on("sends a websocket message without end", DRIVERS, 64, without_end),
    row("announces a websocket message of 4 EiB", |b| violates(b, b"\x81\xff\x40\0\0\0\0\0\0\0\0\0\0\0{", TOO_BIG)),
    row("sends a websocket message in 1,000,000 empty fragments", empty_fragments),
    row("sends a part of a websocket message and nothing more", |b| falls_silent(b, &masked(FRAGMENT, b"{"))),
    row("sends a part of a websocket frame and nothing more", |b| falls_silent(b, b"\x81\xfe\x01")),
    row("opens a websocket and says nothing", |b| falls_silent(b, b"")),
    row("never closes a websocket that the server has closed", |b| never_closes(b, false)),
    row("sends frames without end over a websocket that the server has closed", |b| never_closes(b, true)),
    row_on("holds back the ends of websocket messages of 15 MiB, 20 times", DRIVERS, 176, holds_back),
    row("asks over a websocket without end and never reads", asks_and_never_reads),
];

const HELLO: &[u8] = b"GET /mcp HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
    Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

/// The answer to the key.
const ACCEPT: &str = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";

/// A server of WebSocket.
fn web_socket(config: &mut ServerConfig) {
    config.web_socket = true;
}

/// The same, which checks silent clients soon.
fn watchful(config: &mut ServerConfig) {
    web_socket(config);
    (config.limits.frame.ping_interval, config.limits.frame.pong_timeout) = (Some(SHORT), SHORT);
}

/// A new WebSocket.
fn open(site: &Site) -> Result<Link, String> {
    let mut link = site.visit()?;
    link.say(HELLO);
    let head = link.head()?;
    let is_so = head.status == 101 && head.field("Sec-WebSocket-Accept") == Some(ACCEPT);
    expect(is_so, || format!("{head} in place of a websocket"))?;
    Ok(link)
}

/// Checks that a call over this WebSocket succeeds. Returns the number of pongs before the result.
fn echoes(link: &mut Link) -> Result<u64, String> {
    link.say(&masked(TEXT, &Ask::call("echo").with("text", "still here").content()));
    let mut pongs = 0;
    loop {
        match link.frame()? {
            (TEXT, text) => {
                let said: Value = serde_json::from_slice(&text).map_err(|e| e.to_string())?;
                let is_so = said["result"]["content"][0]["text"] == "still here";
                return expect(is_so, || format!("a call is answered with {said}")).map(|()| pongs);
            }
            (PONG, _) => pongs += 1,
            (PING, _) => {}
            other => return Err(format!("{other:?} in place of a result")),
        }
    }
}

/// Other clients are served: over HTTP, and over a new WebSocket.
fn serves(site: &Site) -> Result<(), String> {
    site.serves()?;
    let mut link = open(site)?;
    echoes(&mut link).map_err(|why| format!("another websocket: {why}"))?;
    link.say(&masked(CLOSE, &NORMAL.to_be_bytes()));
    closes(&mut link, NORMAL)?;
    link.is_over()
}

/// The next frame that is no answer to a ping is a `Close` with this code.
fn closes(link: &mut Link, wanted: u16) -> Result<(), String> {
    loop {
        return match link.frame()? {
            (PONG | PING, _) => continue,
            (CLOSE, payload) if code(&payload) == Some(wanted) => Ok(()),
            (first, payload) => {
                let (shown, code) = (String::from_utf8_lossy(&payload).into_owned(), code(&payload));
                Err(format!("{first:#x} {code:?} {shown:?} in place of a close with {wanted}"))
            }
        };
    }
}

/// The client gets this code, what it has asked for is cancelled, and nothing behind it counts.
fn violates(bench: &Bench, bytes: &[u8], wanted: u16) -> Result<String, String> {
    let site = bench.site(web_socket)?;
    violates_at(&site, bytes, wanted, "first")?;
    site.is_well()?;
    Ok(format!("closed with {wanted}, and its call is stopped"))
}

fn violates_at(site: &Site, bytes: &[u8], wanted: u16, tag: &str) -> Result<(), String> {
    let mut link = open(site)?;
    link.say(&masked(TEXT, &Ask::call("wait").with("tag", tag).content()));
    soon(|| has_begun(tag));
    serves(site)?;
    link.say(bytes);
    link.say(&masked(TEXT, &Ask::mark().content()));
    closes(&mut link, wanted)?;
    link.is_over()?;
    drop(link);
    becomes(|| was_stopped(tag), || "the call goes on".into())?;
    expect(super::tools::marks() == 0, || "a call behind it has run".into())?;
    serves(site)
}

fn violations(bench: &Bench) -> Result<String, String> {
    let site = bench.site(web_socket)?;
    let cases = [
        ("a reserved bit", PROTOCOL, masked(0xc1, b"{}")),
        ("a reserved opcode", PROTOCOL, masked(0x83, b"{}")),
        ("a ping in fragments", PROTOCOL, masked(0x09, b"x")),
        ("a long ping", PROTOCOL, masked(PING, &[b'x'; LONGEST_PING + 1])),
        ("a continuation of nothing", PROTOCOL, masked(MORE, b"x")),
        ("a message inside another one", PROTOCOL, [masked(FRAGMENT, b"{"), masked(TEXT, b"{}")].concat()),
        ("a long form of a length", PROTOCOL, b"\x81\xfe\0\x02\0\0\0\0{}".to_vec()),
        ("half a code", PROTOCOL, masked(CLOSE, b"x")),
        ("a code that is not for the wire", PROTOCOL, masked(CLOSE, &1005_u16.to_be_bytes())),
        ("a binary message", 1003, masked(0x82, b"{}")),
        ("no UTF-8", 1007, masked(TEXT, b"\xff")),
    ];
    for (what, wanted, bytes) in &cases {
        violates_at(&site, bytes, *wanted, what).map_err(|why| format!("{what}: {why}"))?;
    }
    site.is_well()?;
    Ok(format!("{} of them; closed with the code of each, and the calls are stopped", cases.len()))
}

/// All are taken: more than 16 MiB without a message would end the connection. Of those that the
/// server cannot answer at once, it answers only the latest.
fn pings(bench: &Bench) -> Result<String, String> {
    let site = bench.site(web_socket)?;
    let mut link = open(&site)?;
    let part = masked(PING, &[b'p'; LONGEST_PING]);
    let began = Instant::now();
    let size = bench.size.min(12 << 20);
    let pouring = link.pour(&part, size)?;
    let (mut served, mut slowest) = (0, Duration::ZERO);
    while served == 0 || !pouring.is_finished() {
        let asked = Instant::now();
        serves(&site)?;
        slowest = slowest.max(asked.elapsed());
        served += 1;
    }
    let took = began.elapsed();
    let taken = pouring.join().map_err(|_| "the writer panics")?;
    expect(taken >= size, || format!("{taken} bytes are taken"))?;
    let (pongs, most) = (echoes(&mut link)?, taken / part.len() as u64);
    expect((1..most / 4).contains(&pongs), || format!("{pongs} pongs for {most} pings"))?;
    drop(link);
    site.is_well()?;
    let (took, slowest) = (took.as_secs_f64(), slowest.as_secs_f64());
    Ok(format!("{pongs} pongs for {most} pings in {took:.1} s; others are served {served} times, in {slowest:.2} s"))
}

/// Each block of pings is answered at least once before the call behind it.
fn pings_and_reads(bench: &Bench) -> Result<String, String> {
    const BLOCK: usize = 500;
    let site = bench.site(web_socket)?;
    let mut link = open(&site)?;
    let block = masked(PING, b"are you there?").repeat(BLOCK);
    let (count, mut pongs) = (bench.scaled(4_000), 0);
    for number in 0..count {
        link.say(&block);
        let answered = echoes(&mut link)?;
        expect(answered <= BLOCK as u64, || format!("{answered} pongs for {BLOCK} pings"))?;
        pongs += answered;
        if number % 50 == 0 {
            serves(&site)?;
        }
    }
    drop(link);
    site.is_well()?;
    Ok(format!("{pongs} pongs for {count} times {BLOCK} pings; a call behind each block is answered"))
}

/// The message is refused at its limit, and no more of it is held.
fn without_end(bench: &Bench) -> Result<String, String> {
    let site = bench.site(web_socket)?;
    let mut link = open(&site)?;
    link.say(&masked(FRAGMENT, b"\"x"));
    let pouring = link.pour(&masked(MORE, &[b'x'; 16 << 10]), u64::MAX)?;
    serves(&site)?;
    closes(&mut link, TOO_BIG)?;
    serves(&site)?;
    // The server reads on for a limited time, and then ends the connection.
    site.at_rest()?;
    link.leave();
    let taken = pouring.join().map_err(|_| "the writer panics")?;
    site.is_well()?;
    Ok(format!("closed with {TOO_BIG}, after {} MiB at most", taken >> 20))
}

/// A message is complete at its last fragment, however many there are.
fn empty_fragments(bench: &Bench) -> Result<String, String> {
    let site = bench.site(web_socket)?;
    let mut link = open(&site)?;
    let part = masked(MORE, b"");
    link.say(&masked(FRAGMENT, b""));
    let pouring = link.pour(&part, bench.scaled(1_000_000) * part.len() as u64)?;
    serves(&site)?;
    pouring.join().map_err(|_| "the writer panics")?;
    link.say(&masked(LAST, &Ask::call("echo").with("text", "whole").content()));
    let (first, text) = link.frame()?;
    let is_so = first == TEXT && String::from_utf8_lossy(&text).contains("whole");
    expect(is_so, || format!("{first:#x} in place of a result"))?;
    drop(link);
    site.is_well()?;
    Ok("the call is answered".into())
}

/// The connection ends after a ping that is not answered.
fn falls_silent(bench: &Bench, bytes: &[u8]) -> Result<String, String> {
    let site = bench.site(watchful)?;
    let began = Instant::now();
    let mut link = open(&site)?;
    link.say(bytes);
    serves(&site)?;
    let (first, _) = link.frame()?;
    expect(first == PING, || format!("{first:#x} in place of a ping"))?;
    link.is_over()?;
    let took = began.elapsed();
    expect(took > SHORT && took < SHORT * 15, || format!("it takes {took:?}"))?;
    serves(&site)?;
    // The good client was silent too, if not over a websocket.
    site.is_well()?;
    Ok(format!("a ping, and the end after {:.1} s", took.as_secs_f64()))
}

/// The connection ends without an answer, whatever is sent meanwhile.
fn never_closes(bench: &Bench, goes_on: bool) -> Result<String, String> {
    let site = bench.site(web_socket)?;
    let mut link = open(&site)?;
    link.say(&plain(TEXT, b"{}"));
    let pouring = if goes_on { Some(link.pour(&masked(TEXT, &Ask::mark().content()), u64::MAX)?) } else { None };
    closes(&mut link, PROTOCOL)?;
    let began = Instant::now();
    serves(&site)?;
    // The client has not closed it.
    site.at_rest()?;
    let took = began.elapsed();
    link.leave();
    if let Some(pouring) = pouring {
        pouring.join().map_err(|_| "the writer panics")?;
    }
    site.is_well()?;
    expect(super::tools::marks() == 0, || "a call behind the close has run".into())?;
    Ok(format!("gone after {:.1} s", took.as_secs_f64()))
}

/// All connections of a server hold a limited number of bytes of such messages. Small messages pass
/// meanwhile.
fn holds_back(bench: &Bench) -> Result<String, String> {
    const LINKS: usize = 20;
    const LENGTH: usize = 15 << 20;
    let site = bench.site(|config| {
        web_socket(config);
        config.limits.server.max_held = 64 << 20;
    })?;
    let part = masked(MORE, &[b' '; 16 << 10]);
    let mut links = Vec::new();
    for _ in 0..LINKS {
        let mut link = open(&site)?;
        link.say(&masked(FRAGMENT, b" "));
        links.push((link.pour(&part, LENGTH as u64)?, link));
    }
    serves(&site)?;
    // All but those that fit are closed.
    let fit = (64 << 20) / LENGTH;
    becomes(|| site.holds().0 <= fit + 1, || format!("{} connections are open", site.holds().0))?;
    let open = site.holds().0;
    serves(&site)?;
    for (writing, link) in links {
        link.leave();
        writing.join().map_err(|_| "the writer panics")?;
    }
    site.is_well()?;
    Ok(format!("{} of {LINKS} are closed; others are served", LINKS + 1 - open))
}

/// The server never stops reading: what the client has asked for may be cancelled. It refuses most
/// of the calls, and closes the connection when the client does not read the refusals either.
fn asks_and_never_reads(bench: &Bench) -> Result<String, String> {
    let site = bench.site(|config| {
        short(config);
        web_socket(config);
    })?;
    let link = open(&site)?;
    let began = Instant::now();
    let pouring = link.pour(&masked(TEXT, &Ask::call("big").with("bytes", 64 << 10).content()), u64::MAX)?;
    serves(&site)?;
    // It ends when the connection is closed.
    let taken = pouring.join().map_err(|_| "the writer panics")?;
    let took = began.elapsed();
    expect(took < SHORT * 15, || format!("it takes {took:?}"))?;
    serves(&site)?;
    site.is_well()?;
    Ok(format!("cut off after {:.1} s; {} MiB were taken", took.as_secs_f64(), taken >> 20))
}
