//! Clients that close their side, or disconnect, at every point of an exchange.

use super::ask::{Ask, LEGACY};
use super::link::Link;
use super::parts::{proper, row};
use super::site::{Site, good};
use super::tools::{self, free, has_begun, was_stopped};
use crate::hostile::rows::{DRIVERS, becomes, expect, row_on};
use crate::hostile::{Bench, Row};
use serde_json::json;

pub(super) const ROWS: &[Row] = &[
    row("ends its side at every byte of a request", |b| ends_at(b, &Ask::mark().bytes(), Link::finish)),
    row("ends its side at every byte of a request in chunks", |b| {
        ends_at(b, &Ask::mark().chunked().bytes(), Link::finish)
    }),
    row("breaks off at every byte of a request", |b| breaks_at(b, &Ask::mark().bytes())),
    row("breaks off at every byte of a request in chunks", |b| breaks_at(b, &Ask::mark().chunked().bytes())),
    row("ends its side between two requests", |b| {
        let site = b.site(|_| {})?;
        let mut link = site.visit()?;
        good(&mut link)?;
        link.finish();
        link.is_over()?;
        site.is_well()?;
        Ok("closed without a word".into())
    }),
    row("ends its side behind a request", |b| {
        let site = b.site(|_| {})?;
        // The server may treat it as disconnected, since it looks the same. It must not keep it, or
        // send a part of a response.
        for _ in 0..50 {
            let mut link = site.says(&Ask::call("echo").with("text", "x"))?;
            link.finish();
            match link.answer() {
                Ok(answer) => {
                    expect(answer.status == 200, || format!("{answer} in place of 200"))?;
                    link.is_over()?;
                }
                Err(why) => expect(why == "it ends without an answer", || why)?,
            }
        }
        site.is_well()?;
        Ok("answered or cancelled, and closed".into())
    }),
    row_on("breaks off in an answer of 8 MiB", DRIVERS, 120, |b| {
        let site = b.site(|_| {})?;
        for _ in 0..4 {
            let mut link = site.says(&Ask::call("big").with("bytes", 8 << 20))?;
            link.opens()?;
            link.reset();
            site.serves()?;
        }
        site.at_rest()?;
        Ok("let go of".into())
    }),
    row("connects and breaks off, 1,000 times", |b| comes_and_goes(b, Link::reset)),
    row("connects and leaves, 1,000 times", |b| comes_and_goes(b, drop)),
    row("ends its side while a call runs", |b| {
        let (site, link) = waiting(b)?;
        link.finish();
        stopped(&site, Some(link))
    }),
    row("breaks off while a call runs", |b| {
        let (site, link) = waiting(b)?;
        link.reset();
        stopped(&site, None)
    }),
    row("ends its side while a call runs, 2025-11-25", |b| {
        let (site, mut link) = waiting_in_a_session(b)?;
        link.finish();
        goes_on(&site)?;
        free("call");
        let answer = link.answer()?;
        let text = String::from_utf8_lossy(&answer.body).into_owned();
        expect(text.contains(r#""text":"call""#), || format!("it is answered with {answer}"))?;
        link.is_over()?;
        site.at_rest()?;
        expect(!was_stopped("call"), || "a disconnect is taken for a cancellation".into())?;
        Ok("it goes on, and is answered".into())
    }),
    row("breaks off while a call runs, 2025-11-25", |b| {
        let (site, link) = waiting_in_a_session(b)?;
        link.reset();
        goes_on(&site)?;
        free("call");
        site.at_rest()?;
        expect(!was_stopped("call"), || "a disconnect is taken for a cancellation".into())?;
        Ok("it goes on".into())
    }),
    row("breaks off in an event stream", |b| {
        let (site, link) = told(b)?;
        link.reset();
        stopped(&site, None)
    }),
    row("ends its side in an event stream", |b| {
        let (site, link) = told(b)?;
        link.finish();
        becomes(|| was_stopped("call"), || "the call goes on".into())?;
        let (mut link, limit) = (link, 64 << 20);
        let rest = link.rest()?.len();
        expect(rest < limit, || format!("{rest} more bytes"))?;
        site.is_well()?;
        Ok("the call is stopped, and the connection closed".into())
    }),
];

/// Maximum number of open connections: each takes some descriptors.
const AT_ONCE: usize = 50;

/// A request that is cut there, followed by the end of the client's side. The server closes its
/// side, with an error or without a response, and runs nothing.
fn ends_at(bench: &Bench, bytes: &[u8], end: fn(&Link)) -> Result<String, String> {
    let site = bench.site(|_| {})?;
    let cuts: Vec<usize> = (0..bytes.len()).collect();
    let (mut silent, mut refused) = (0, 0);
    for cuts in cuts.chunks(AT_ONCE) {
        let mut links = Vec::new();
        for cut in cuts {
            let mut link = site.visit()?;
            link.say(&bytes[..*cut]);
            end(&link);
            links.push((cut, link));
        }
        for (cut, mut link) in links {
            match link.answer() {
                Ok(answer) => {
                    proper(&answer)?;
                    let is_so = [400, 408].contains(&answer.status);
                    expect(is_so, || format!("cut at {cut} it is answered with {answer}"))?;
                    link.is_over()?;
                    refused += 1;
                }
                Err(why) if why == "it ends without an answer" => silent += 1,
                Err(why) => return Err(format!("cut at {cut}: {why}")),
            }
        }
        site.serves()?;
    }
    expect(tools::marks() == 0, || "a part of a call has run".into())?;
    site.at_rest()?;
    Ok(format!("{silent} times closed without a word, {refused} times refused"))
}

fn breaks_at(bench: &Bench, bytes: &[u8]) -> Result<String, String> {
    let site = bench.site(|_| {})?;
    for cut in 0..bytes.len() {
        let mut link = site.visit()?;
        link.say(&bytes[..cut]);
        link.reset();
        if cut % AT_ONCE == 0 {
            in_turn(&site)?;
        }
    }
    in_turn(&site)?;
    site.at_rest()?;
    expect(tools::marks() == 0, || "a part of a call has run".into())?;
    Ok(format!("{} times let go of", bytes.len()))
}

/// A running call of 2026-07-28.
fn waiting(bench: &Bench) -> Result<(Site, Link), String> {
    let site = bench.site(|_| {})?;
    let link = site.says(&Ask::call("wait").with("tag", "call"))?;
    begun(&site)?;
    Ok((site, link))
}

/// A running call of 2025-11-25. Its response is JSON.
fn waiting_in_a_session(bench: &Bench) -> Result<(Site, Link), String> {
    let site = bench.site(|config| config.stream_after = std::time::Duration::from_secs(60))?;
    let session = site.session(LEGACY)?;
    let link = site.says(&Ask::legacy_call(LEGACY, Some(&session), 5, "wait", &json!({"tag": "call"})))?;
    begun(&site)?;
    Ok((site, link))
}

/// A running call of 2026-07-28 that has sent progress.
fn told(bench: &Bench) -> Result<(Site, Link), String> {
    let site = bench.site(|_| {})?;
    let mut link = site.says(&Ask::call("tell").with("tag", "call"))?;
    link.opens()?;
    link.until("notifications/news")?;
    Ok((site, link))
}

fn begun(site: &Site) -> Result<(), String> {
    becomes(|| has_begun("call"), || "the call does not begin".into())?;
    site.serves()
}

/// The call was cancelled, and its connection is closed without a response.
fn stopped(site: &Site, link: Option<Link>) -> Result<String, String> {
    becomes(|| was_stopped("call"), || "the call goes on".into())?;
    if let Some(mut link) = link {
        link.is_over()?;
    }
    site.is_well()?;
    Ok("the call is stopped".into())
}

/// The call continues without its client. Others are served for a while, long enough for the server
/// to notice.
fn goes_on(site: &Site) -> Result<(), String> {
    for _ in 0..20 {
        site.serves()?;
    }
    expect(!was_stopped("call"), || "a disconnect is taken for a cancellation".into())
}

fn comes_and_goes(bench: &Bench, go: fn(Link)) -> Result<String, String> {
    let site = bench.site(|_| {})?;
    for n in 0..1000 {
        go(site.visit()?);
        if n % AT_ONCE == 0 {
            in_turn(&site)?;
        }
    }
    in_turn(&site)?;
    site.at_rest()?;
    Ok("let go of".into())
}

/// Earlier connections have been accepted. The operating system bounds and hides the ones that were
/// not.
fn in_turn(site: &Site) -> Result<(), String> {
    site.serves()?;
    good(&mut site.visit()?)
}
