//! Clients that resume streams that are foreign, deleted, or not there yet.

use super::ask::{Ask, LEGACY};
use super::link::Link;
use super::parts::{gets, keeps, row};
use super::sessions::got;
use super::site::Site;
use super::tools::{free, has_begun, was_stopped};
use crate::hostile::rows::{becomes, expect, soon};
use crate::hostile::{Bench, Row};
use mcp_proto::ServerConfig;
use serde_json::{Value, json};
use std::time::Duration;

pub(super) const ROWS: &[Row] = &[
    row("comes back for the stream of another session", |b| {
        let (site, session) = site(b)?;
        let other = site.session(LEGACY)?;
        let (link, event) = primed(&site, &session, 5, "call")?;
        link.reset();
        free("call");
        got(&site, &back(&other, &event), &gets(&[400, 404]))?;
        let told = rest(&site, &session, &event)?;
        expect(answers(&told) == [5], || format!("the rest is {told}"))?;
        Ok("400; its owner gets the rest".into())
    }),
    row("comes back for one of two streams", |b| {
        let (site, session) = site(b)?;
        let (first, event) = primed(&site, &session, 5, "first")?;
        let (second, other) = primed(&site, &session, 6, "second")?;
        first.reset();
        second.reset();
        free("first");
        free("second");
        let told = rest(&site, &session, &event)?;
        expect(answers(&told) == [5], || format!("the rest of the first is {told}"))?;
        let told = rest(&site, &session, &other)?;
        expect(answers(&told) == [6], || format!("the rest of the second is {told}"))?;
        Ok("the rest of that one, and nothing else".into())
    }),
    row("comes back without a session", |b| {
        let (site, session) = site(b)?;
        let (link, event) = primed(&site, &session, 5, "call")?;
        let get = |session| Ask::get(LEGACY, session).set("Last-Event-ID", &event);
        got(&site, &get(None), &keeps(&[400]))?;
        got(&site, &get(Some("guess")), &keeps(&[404]))?;
        drop(link);
        free("call");
        site.serves_session(LEGACY, &session)?;
        Ok("400 and 404".into())
    }),
    row("comes back 50 times at once", at_once),
    row("comes back for a stream that is over, again and again", |b| {
        let (site, session) = site(b)?;
        let (link, event) = primed(&site, &session, 5, "call")?;
        link.reset();
        free("call");
        for _ in 0..20 {
            let told = rest(&site, &session, &event)?;
            expect(answers(&told) == [5], || format!("the rest is {told}"))?;
        }
        site.at_rest()?;
        Ok("the same each time".into())
    }),
    row("comes back to a session that has ended", |b| {
        let (site, session) = site(b)?;
        let (link, event) = primed(&site, &session, 5, "call")?;
        got(&site, &Ask::delete(LEGACY, Some(&session)), &keeps(&[200, 204]))?;
        got(&site, &back(&session, &event), &keeps(&[404]))?;
        becomes(|| was_stopped("call"), || "the call of an ended session goes on".into())?;
        drop(link);
        site.at_rest()?;
        Ok("404; the call is stopped".into())
    }),
    row("comes back for what has not been said", |b| {
        let (site, session) = site(b)?;
        let (link, event) = primed(&site, &session, 5, "call")?;
        let digits = event.trim_end_matches(|c: char| c.is_ascii_digit()).len();
        for number in ["999", "18446744073709551615", "99999999999999999999999999"] {
            got(&site, &back(&session, &format!("{}{number}", &event[..digits])), &keeps(&[400]))?;
        }
        drop(link);
        free("call");
        site.serves_session(LEGACY, &session)?;
        Ok("400, kept".into())
    }),
    row("comes back for what is no event", |b| {
        let (site, session) = site(b)?;
        let (link, event) = primed(&site, &session, 5, "call")?;
        let near = [format!("{event}0"), format!(" {event} x"), event.to_uppercase(), format!("{event},{event}")];
        let ids = [
            "0", "-1", "s", "s-", "s1", "s1-", "-1-1", "s1-1-1", "s0x1-1", "s1-+1", "s１-1", "null", "*", "%", "\u{e9}",
        ];
        for id in ids.map(str::to_string).into_iter().chain(near).filter(|id| *id != event) {
            got(&site, &back(&session, &id), &keeps(&[400])).map_err(|why| format!("{id:?}: {why}"))?;
        }
        drop(link);
        free("call");
        site.serves_session(LEGACY, &session)?;
        Ok("400, kept".into())
    }),
    row("comes back for an event of 10 KiB", |b| {
        let (site, session) = site(b)?;
        for id in ["x".repeat(10 << 10), "9".repeat(10 << 10), format!("s{}-1", "9".repeat(10 << 10))] {
            got(&site, &back(&session, &id), &keeps(&[400]))?;
        }
        site.serves_session(LEGACY, &session)?;
        Ok("400, kept".into())
    }),
    row("comes back for what is not kept any more", purged),
];

/// A server that streams at once, and a session.
fn site(bench: &Bench) -> Result<(Site, String), String> {
    let site = bench.site(at_the_first)?;
    let session = site.session(LEGACY)?;
    Ok((site, session))
}

pub(super) fn at_the_first(config: &mut ServerConfig) {
    config.stream_after = Duration::ZERO;
}

/// A running call, its stream, and the id of its first event.
fn primed(site: &Site, session: &str, id: i64, tag: &str) -> Result<(Link, String), String> {
    primed_by(site, &Ask::legacy_call(LEGACY, Some(session), id, "wait", &json!({"tag": tag})), tag)
}

/// The same, of this call of `wait`.
pub(super) fn primed_by(site: &Site, ask: &Ask, tag: &str) -> Result<(Link, String), String> {
    let mut link = site.says(ask)?;
    link.opens()?;
    let told = link.until("id:")?;
    let event = told.lines().find_map(|line| line.strip_prefix("id:")).unwrap_or_default().trim().to_string();
    expect(!event.is_empty(), || format!("no event id: {told}"))?;
    soon(|| has_begun(tag));
    Ok((link, event))
}

pub(super) fn back(session: &str, event: &str) -> Ask {
    Ask::get(LEGACY, Some(session)).set("Last-Event-ID", event)
}

/// Returns the events of a resumed stream, up to its end.
fn rest(site: &Site, session: &str, event: &str) -> Result<String, String> {
    let answer = site.asked(&back(session, event))?;
    expect(answer.status == 200, || format!("{answer} in place of 200"))?;
    String::from_utf8(answer.body).map_err(|e| e.to_string())
}

/// The ids of the responses in a stream.
pub(super) fn answers(told: &str) -> Vec<i64> {
    let data = told.lines().filter_map(|line| line.strip_prefix("data:"));
    let messages = data.filter_map(|data| serde_json::from_str::<Value>(data).ok());
    messages.filter(|message| message["result"].is_object()).filter_map(|message| message["id"].as_i64()).collect()
}

/// Events that were dropped to shorten the history are not invented, and nothing else replaces
/// them.
fn purged(bench: &Bench) -> Result<String, String> {
    let site = bench.site(|config| {
        at_the_first(config);
        config.limits.server.history_events = 4;
    })?;
    let session = site.session(LEGACY)?;
    let mut link = site.says(&Ask::legacy_call(LEGACY, Some(&session), 5, "tell", &json!({"tag": "call"})))?;
    link.opens()?;
    let first = link.until("id:")?;
    let event = first.lines().find_map(|line| line.strip_prefix("id:")).unwrap_or_default().trim().to_string();
    for _ in 0..40 {
        link.until("notifications/news")?;
    }
    link.reset();
    got(&site, &back(&session, &event), &keeps(&[400]))?;
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 5}});
    got(&site, &Ask::legacy(LEGACY, Some(&session), &cancel), &keeps(&[202]))?;
    becomes(|| was_stopped("call"), || "the call is not cancelled".into())?;
    site.serves_session(LEGACY, &session)?;
    site.at_rest()?;
    Ok("400, kept".into())
}

/// The newest connection gets the rest, once. The others end.
fn at_once(bench: &Bench) -> Result<String, String> {
    let (site, session) = site(bench)?;
    let (link, event) = primed(&site, &session, 5, "call")?;
    let mut links = vec![link];
    for _ in 0..50 {
        let mut link = site.says(&back(&session, &event))?;
        link.opens()?;
        links.push(link);
    }
    free("call");
    let mut told = Vec::new();
    for mut link in links {
        let mut all = Vec::new();
        while let Some(chunk) = link.chunk()? {
            all.extend(chunk);
        }
        told.push(answers(&String::from_utf8_lossy(&all)).len());
    }
    let (newest, others) = told.split_last().ok_or("no client has resumed")?;
    expect(*newest == 1 && others.iter().all(|times| *times == 0), || format!("the answer came {told:?} times"))?;
    site.serves_session(LEGACY, &session)?;
    site.at_rest()?;
    Ok("the newest gets the answer".into())
}
