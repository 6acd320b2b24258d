//! Scenes of what rests on a server besides connections: sessions, and streams that wait for news.

use super::child::Child;
use super::raw::{self, Conn};
use super::scenes::{MARGIN, at_rest, echo, shown};
use super::{Scale, Shown};
use serde_json::json;

/// The message on a stream when the tools have changed.
const CHANGED: &str = "notifications/tools/list_changed";

/// Sessions without a stream. One connection makes them all, so that none is counted with it.
pub(super) fn sessions(child: &mut Child, scale: &Scale) -> Result<Shown, String> {
    let before = at_rest(child)?;
    let mut control = Conn::open(child.address)?;
    let open = open_sessions(&mut control, scale.resting)?;
    let during = child.look()?;
    end_sessions(&mut control, &open)?;
    control.finish()?;
    let after = child.until("is the connection gone", MARGIN, |look| look.connections == 0)?;
    Ok(shown(scale.resting, before, during, after, "each is begun and ended once".into()))
}

/// Sessions, each with its stream of GET: each stream brings each change once.
pub(super) fn of_sessions(child: &mut Child, scale: &Scale) -> Result<Shown, String> {
    let mut control = Conn::open(child.address)?;
    echo(&mut control, 1, "first")?;
    let open = open_sessions(&mut control, scale.resting)?;
    let before = child.look()?;
    let mut streams = Vec::with_capacity(open.len());
    for session in &open {
        streams.push(begin(child, &raw::get(session))?);
    }
    let during = child.until("are all of them open", MARGIN, |look| look.connections == scale.resting + 1)?;
    let news = news(&mut control, streams)?;
    let after = child.until("are they gone", MARGIN, |look| look.connections == 1)?;
    end_sessions(&mut control, &open)?;
    Ok(shown(scale.resting, before, during, after, news))
}

/// Subscriptions of 2026-07-28: each is acknowledged first, and brings each change once.
pub(super) fn subscriptions(child: &mut Child, scale: &Scale) -> Result<Shown, String> {
    let mut control = Conn::open(child.address)?;
    echo(&mut control, 1, "first")?;
    let before = child.look()?;
    let mut streams = Vec::with_capacity(scale.resting);
    for id in 0..scale.resting as u64 {
        let mut stream = begin(child, &raw::listen(id))?;
        match stream.event()? {
            Some(first) if first["method"] == "notifications/subscriptions/acknowledged" => streams.push(stream),
            other => return Err(format!("a subscription begins with {other:?}")),
        }
    }
    let during = child.until("are all of them open", MARGIN, |look| look.connections == scale.resting + 1)?;
    let news = news(&mut control, streams)?;
    let after = child.until("are they gone", MARGIN, |look| look.connections == 1)?;
    Ok(shown(scale.resting, before, during, after, news))
}

/// A connection with a stream on it.
fn begin(child: &Child, request: &str) -> Result<Conn, String> {
    let mut conn = Conn::open(child.address)?;
    conn.send(request)?;
    match conn.head()? {
        head if head.status == 200 && head.is_stream() => Ok(conn),
        head => Err(format!("no stream: {head:?}")),
    }
}

/// Changes the tools twice, reads the notifications on each stream, and closes them.
fn news(control: &mut Conn, mut streams: Vec<Conn>) -> Result<String, String> {
    for id in 1..=2 {
        let (head, answer) = control.ask(&raw::call(id, "change", json!({})))?;
        if head.status != 200 || answer.get("result").is_none() {
            return Err(format!("the change is answered {}: {answer}", head.status));
        }
        for stream in &mut streams {
            match stream.event()? {
                Some(event) if event["method"] == CHANGED => {}
                other => return Err(format!("a stream brings {other:?}")),
            }
        }
    }
    let count = streams.len();
    for stream in streams {
        let rest = stream.finish()?;
        if String::from_utf8_lossy(&rest).contains(CHANGED) {
            return Err("a change is reported once more".into());
        }
    }
    Ok(format!("{} news, each once", 2 * count))
}

fn open_sessions(control: &mut Conn, count: usize) -> Result<Vec<String>, String> {
    let mut open = Vec::with_capacity(count);
    for id in 0..count as u64 {
        let (head, _) = control.ask(&raw::initialize(id))?;
        let session = head.field("mcp-session-id").ok_or_else(|| format!("no session: {head:?}"))?.to_string();
        let (head, _) = control.ask(&raw::initialized(&session))?;
        if head.status != 202 {
            return Err(format!("a session does not begin: {head:?}"));
        }
        open.push(session);
    }
    Ok(open)
}

fn end_sessions(control: &mut Conn, open: &[String]) -> Result<(), String> {
    for session in open {
        let (head, _) = control.ask(&raw::delete(session))?;
        if head.status != 200 {
            return Err(format!("a session does not end: {head:?}"));
        }
    }
    Ok(())
}
