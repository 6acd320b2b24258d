//! The parts of the rows: some bytes, the required outcome, and the invariants for any outcome.

use super::ask::Ask;
use super::link::{Answer, Link};
use super::site::{Site, good};
use super::tools;
use crate::hostile::rows::{DRIVERS, expect, row_on};
use crate::hostile::{Bench, Row};
use mcp_proto::ServerConfig;
use serde_json::Value;
use std::time::Duration;

/// The maximum memory of server and client together, in MiB.
pub(super) const FLAT: u64 = 40;

/// The maximum pause of a client with short limits.
pub(super) const SHORT: Duration = Duration::from_secs(1);

/// A row for every driver.
pub(super) const fn row(name: &'static str, run: fn(&Bench) -> Result<String, String>) -> Row {
    row_on(name, DRIVERS, FLAT, run)
}

/// A row for every driver, with a message of about 4 MiB. It exists in several forms, in the heap
/// of one thread or of several.
pub(super) const fn large_row(name: &'static str, run: fn(&Bench) -> Result<String, String>) -> Row {
    row_on(name, DRIVERS, FLAT + 24, run)
}

/// The required response.
#[derive(Clone, Debug)]
pub(super) struct Gets {
    statuses: &'static [u16],
    code: Option<i64>,
    fields: Vec<(&'static str, &'static str)>,
    then: Then,
    bodiless: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Then {
    /// The server announces that it closes the connection, and does.
    Closes,
    /// The connection stays open.
    Keeps,
    /// As the response announces.
    Either,
}

/// One of these statuses, and the end of the connection.
pub(super) fn closes(statuses: &'static [u16]) -> Gets {
    Gets { statuses, code: None, fields: Vec::new(), then: Then::Closes, bodiless: false }
}

/// One of these statuses on a connection that stays open.
pub(super) fn keeps(statuses: &'static [u16]) -> Gets {
    Gets { then: Then::Keeps, ..closes(statuses) }
}

/// One of these statuses.
pub(super) fn gets(statuses: &'static [u16]) -> Gets {
    Gets { then: Then::Either, ..closes(statuses) }
}

impl Gets {
    /// With this code of an error.
    pub(super) fn code(self, code: i64) -> Self {
        Self { code: Some(code), ..self }
    }

    /// With a field whose value contains this.
    pub(super) fn field(mut self, name: &'static str, value: &'static str) -> Self {
        self.fields.push((name, value));
        self
    }

    /// Without a body, regardless of the head: the request was HEAD.
    pub(super) fn bodiless(self) -> Self {
        Self { bodiless: true, ..self }
    }

    /// Checks that the next response on this connection is this.
    pub(super) fn next(&self, link: &mut Link) -> Result<Answer, String> {
        let answer = if self.bodiless { link.head() } else { link.answer() }?;
        let is_one = self.statuses.contains(&answer.status);
        expect(is_one, || format!("{answer} in place of {:?}", self.statuses))?;
        if !self.bodiless {
            proper(&answer)?;
        }
        if let Some(code) = self.code.filter(|_| answer.status >= 400) {
            let said = answer.json()?;
            expect(said["error"]["code"] == code, || format!("{answer} without the code {code}"))?;
        }
        for (name, value) in &self.fields {
            let is_so = answer.field(name).is_some_and(|said| said.contains(value));
            expect(is_so, || format!("{answer} without {name}: {value}"))?;
        }
        Ok(answer)
    }

    /// Checks that the connection stays open, or ends, as required after that response.
    pub(super) fn after(&self, answer: &Answer, link: &mut Link) -> Result<&'static str, String> {
        let says = answer.field("Connection").is_some_and(|value| value.eq_ignore_ascii_case("close"));
        match self.then {
            Then::Closes if !says => Err(format!("{answer} does not say that the connection is closed")),
            Then::Keeps if says => Err(format!("{answer} closes the connection")),
            _ if says => link.is_over().map(|()| "closed"),
            _ => good(link).map(|()| "kept"),
        }
    }
}

/// Invariants of every response: an error has a JSON-RPC error in it (B-178), and other origins get
/// nothing.
pub(super) fn proper(answer: &Answer) -> Result<(), String> {
    let leak = answer.fields.iter().find(|(name, _)| name.to_ascii_lowercase().starts_with("access-control-"));
    expect(leak.is_none(), || format!("{answer} with {leak:?}"))?;
    if answer.status < 400 {
        return Ok(());
    }
    let said = answer.json().unwrap_or(Value::Null);
    let error = &said["error"];
    let is_so = said["jsonrpc"] == "2.0" && error["code"].is_i64() && error["message"].is_string();
    let is_json = answer.field("Content-Type").is_some_and(|kind| kind.starts_with("application/json"));
    expect(is_so && is_json, || format!("{answer} holds no JSON-RPC error"))
}

/// These bytes get this response. Meanwhile and afterwards others are served, and a call ran only
/// if its response says so.
pub(super) fn met(bench: &Bench, bytes: impl AsRef<[u8]>, gets: &Gets) -> Result<String, String> {
    met_with(bench, |_| {}, bytes, gets)
}

/// The same, for a server with a changed configuration.
pub(super) fn met_with(
    bench: &Bench,
    change: fn(&mut ServerConfig),
    bytes: impl AsRef<[u8]>,
    gets: &Gets,
) -> Result<String, String> {
    let site = bench.site(change)?;
    let shown = meet(&site, bytes.as_ref(), gets)?;
    site.at_rest()?;
    Ok(shown)
}

/// Each of these gets this, on a separate connection. The name distinguishes them.
pub(super) fn each<T: AsRef<[u8]>>(
    bench: &Bench,
    change: fn(&mut ServerConfig),
    cases: impl IntoIterator<Item = (String, T)>,
    gets: &Gets,
) -> Result<String, String> {
    let site = bench.site(change)?;
    let (mut met, mut failed) = (0, Vec::new());
    for (what, bytes) in cases {
        match meet(&site, bytes.as_ref(), gets) {
            Ok(_) => met += 1,
            Err(why) => failed.push(format!("{what:?}: {why}")),
        }
    }
    expect(failed.is_empty() && met > 0, || failed.join("; "))?;
    site.at_rest()?;
    Ok(format!("{met} times {:?}", gets.statuses))
}

/// The same, for a request that is changed in each of these ways.
pub(super) fn each_ask<'a>(
    bench: &Bench,
    values: &[&'a str],
    change: impl Fn(&'a str) -> Ask,
    gets: &Gets,
) -> Result<String, String> {
    each(bench, |_| {}, values.iter().map(|value| (value.to_string(), change(value).bytes())), gets)
}

fn meet(site: &Site, bytes: &[u8], gets: &Gets) -> Result<String, String> {
    let marks = tools::marks();
    let mut link = site.visit()?;
    link.say(bytes);
    let answer = gets.next(&mut link)?;
    site.serves()?;
    let then = gets.after(&answer, &mut link)?;
    drop(link);
    site.serves()?;
    ran(marks, &answer)?;
    Ok(format!("{}, {then}", shown(&answer)))
}

/// A client that writes this, and then the part without end, gets a response. The rest, read so
/// that the response arrives, is not held, and is bounded.
pub(super) fn pours(
    bench: &Bench,
    change: fn(&mut ServerConfig),
    start: &[u8],
    part: &[u8],
    statuses: &'static [u16],
) -> Result<String, String> {
    let site = bench.site(change)?;
    let mut link = site.visit()?;
    link.say(start);
    let pouring = link.pour(part, bench.size)?;
    let refused = closes(statuses);
    let answer = refused.next(&mut link)?;
    site.serves()?;
    refused.after(&answer, &mut link)?;
    link.leave();
    let taken = pouring.join().map_err(|_| "the writer panics")?;
    ran(0, &answer)?;
    site.is_well()?;
    Ok(format!("{}, closed, after {} KiB at most", shown(&answer), taken >> 10))
}

/// Checks that the tool ran once with that response, and otherwise never.
pub(super) fn ran(before: usize, answer: &Answer) -> Result<(), String> {
    let (ran, may) = (tools::marks() - before, usize::from(answer.status == 200));
    expect(ran <= may, || format!("a call has run that must not, and the answer is {answer}"))
}

/// Returns a short form of the response.
pub(super) fn shown(answer: &Answer) -> String {
    match answer.json().ok().and_then(|said| said["error"]["code"].as_i64()) {
        Some(code) => format!("{} ({code})", answer.status),
        None => answer.status.to_string(),
    }
}

/// Sets short timeouts.
pub(super) fn short(config: &mut ServerConfig) {
    let (frame, server) = (&mut config.limits.frame, &mut config.limits.server);
    for limit in [&mut frame.head_timeout, &mut frame.body_timeout, &mut frame.idle_timeout, &mut frame.write_stall] {
        *limit = SHORT;
    }
    server.write_stall = SHORT;
}
