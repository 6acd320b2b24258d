//! Guessed, stolen, ended and excessive session ids, and attempts of one session against another.

use super::ask::{Ask, BATCHES, LEGACY};
use super::link::{Answer, Link};
use super::parts::{Gets, gets, keeps, proper, row, shown};
use super::site::{Site, good};
use super::tools::{self, free, has_begun, was_stopped};
use crate::hostile::rows::{expect, soon};
use crate::hostile::{Bench, Row};
use mcp_proto::ServerConfig;
use mcp_proto::server::Sessions;
use mcp_proto::version::{ProtocolVersion, Versions};
use serde_json::{Value, json};

pub(super) const ROWS: &[Row] = &[
    row("guesses a session", guesses),
    row("names a session that cannot be", |b| {
        let ids =
            ["", " ", "a b", "\u{e9}", "a,b", "\x7f", "\"x\"", "../../etc/passwd", "*", "%", "null", "undefined", "0"];
        named(b, ids.map(str::to_string).to_vec(), &gets(&[400, 404]))
    }),
    row("names a session of 60,000 bytes", |b| named(b, vec!["a".repeat(60_000)], &gets(&[400, 404]))),
    row("names two sessions", two_sessions),
    row("opens a session, and an id of it tells nothing", ids),
    row("names no session", no_session),
    row("ends a session twice", ends_twice),
    row("names a revision that there is not", |b| {
        let site = b.site(|_| {})?;
        let session = site.session(LEGACY)?;
        // The last two are served, but not in this session.
        let none = ["1999-01-01", "2026-07-29", "2025-11-25x", "latest", "0", "2025-11-25, 2025-06-18"];
        for revision in none.into_iter().chain(["2025-06-18", "2025-03-26"]) {
            let ask = Ask::legacy_call(LEGACY, Some(&session), 3, "mark", &json!({}));
            got(&site, &ask.set("MCP-Protocol-Version", revision), &keeps(&[400]))
                .map_err(|why| format!("{revision}: {why}"))?;
        }
        site.serves_session(LEGACY, &session)?;
        unmarked()?;
        Ok("400, kept".into())
    }),
    row("opens more sessions than there may be", opens_too_many),
    row("asks for sessions where there are none", no_sessions),
    row("names a session and is of 2026-07-28", |b| {
        // That revision has no sessions: the field has no meaning.
        let site = b.site(|_| {})?;
        let session = site.session(LEGACY)?;
        for id in [session.as_str(), "guess", ""] {
            let answer = site.asked(&Ask::call("echo").with("text", "x").set("Mcp-Session-Id", id))?;
            let own = answer.field("Mcp-Session-Id");
            expect(answer.status == 200 && own.is_none(), || format!("{id:?} is answered with {answer}"))?;
        }
        got(&site, &Ask::get("2026-07-28", Some(&session)), &keeps(&[405]).field("Allow", "POST"))?;
        got(&site, &Ask::delete("2026-07-28", Some(&session)), &keeps(&[405]).field("Allow", "POST"))?;
        site.serves_session(LEGACY, &session)?;
        Ok("200 without one; GET and DELETE 405".into())
    }),
    row("asks for the stream of a session without accepting one", |b| {
        let site = b.site(|_| {})?;
        let session = site.session(LEGACY)?;
        for accepted in ["application/json", "text/html", "text/*;q=0, application/json", "text/event-streams"] {
            let ask = Ask::get(LEGACY, Some(&session)).set("Accept", accepted);
            got(&site, &ask, &keeps(&[406, 400])).map_err(|why| format!("{accepted}: {why}"))?;
        }
        // A request without the field accepts any type.
        let mut link = site.says(&Ask::get(LEGACY, Some(&session)).without("Accept"))?;
        let head = link.head()?;
        expect([200, 406].contains(&head.status), || format!("{head} without a field"))?;
        site.serves_session(LEGACY, &session)?;
        Ok("406, kept".into())
    }),
    row("asks for the stream of a session 100 times", streams),
    row("uses the session of another principal", another_principal),
    row("says not who it is", |b| {
        let site = b.guarded_site(|_| {})?;
        let challenge = gets(&[401]).field("WWW-Authenticate", "Bearer");
        for ask in
            [Ask::mark(), Ask::initialize(LEGACY), Ask::get(LEGACY, Some("x")), Ask::mark().set("Authorization", "x")]
        {
            refused(&site, &ask, &challenge)?;
            // The server does not wait for a body.
            refused(&site, &ask.clone().body("").set("Content-Length", "1000000").unframed(), &challenge)?;
        }
        refused(&site, &Ask::mark().who("stranger"), &gets(&[403]))?;
        refused(&site, &Ask::mark().set("Host", "evil.example"), &gets(&[403]))?;
        unmarked()?;
        site.is_well()?;
        Ok("401 and a challenge, or 403".into())
    }),
    row("answers the question of another session", answers_for_another),
    row("cancels the call of another session", cancels_another),
    row("asks twice under one id", one_id_twice),
    row("answers without a request", |b| {
        let site = b.site(|_| {})?;
        let session = site.session(LEGACY)?;
        for id in [json!(1), json!("x"), json!(999_999)] {
            let message = json!({"jsonrpc": "2.0", "id": id, "result": {"action": "accept", "content": {}}});
            got(&site, &Ask::legacy(LEGACY, Some(&session), &message), &keeps(&[202, 400]))?;
        }
        site.serves_session(LEGACY, &session)?;
        Ok("202 or 400, kept".into())
    }),
];

/// This request gets this, on a separate connection. A good client is served afterwards.
pub(super) fn got(site: &Site, ask: &Ask, expected: &Gets) -> Result<Answer, String> {
    let mut link = site.says(ask)?;
    let answer = expected.next(&mut link)?;
    expected.after(&answer, &mut link)?;
    site.serves()?;
    Ok(answer)
}

/// The same, with any end of the connection.
fn refused(site: &Site, ask: &Ask, expected: &Gets) -> Result<(), String> {
    let mut link = site.says(ask)?;
    expected.next(&mut link).map_err(|why| format!("{ask:?}: {why}"))?;
    site.serves()
}

/// A foreign session counts as unknown (B-036).
fn another_principal(bench: &Bench) -> Result<String, String> {
    let site = bench.guarded_site(|_| {})?;
    let session = site.session_of(LEGACY, "alice")?;
    let (mut link, id) = asking(&site, &session, "alice")?;
    for who in ["bob", "Alice", "alice2", "good"] {
        for ask in all_of(&session) {
            refused(&site, &ask.who(who), &gets(&[404]))?;
        }
        let reply = json!({"jsonrpc": "2.0", "id": id, "result": {"action": "accept", "content": {"name": "stolen"}}});
        refused(&site, &Ask::legacy(LEGACY, Some(&session), &reply).who(who), &gets(&[404]))?;
    }
    let reply = json!({"jsonrpc": "2.0", "id": id, "result": {"action": "accept", "content": {"name": "mine"}}});
    let told = site.asked(&Ask::legacy(LEGACY, Some(&session), &reply).who("alice"))?;
    expect(told.status == 202, || format!("{told} in place of 202"))?;
    let told = link.until("accepted")?;
    expect(told.contains("mine"), || format!("the call is answered with {told}"))?;
    site.serves_session_of(LEGACY, &session, "alice")?;
    unmarked()?;
    Ok("404; its owner does not notice".into())
}

fn unmarked() -> Result<(), String> {
    expect(tools::marks() == 0, || format!("{} calls have run that must not", tools::marks()))
}

/// A call, a stream and an end with each of these ids get this. None of them is a session.
fn named(bench: &Bench, ids: Vec<String>, expected: &Gets) -> Result<String, String> {
    let site = bench.site(|_| {})?;
    let session = site.session(LEGACY)?;
    for id in &ids {
        for ask in all_of(id) {
            got(&site, &ask, expected).map_err(|why| format!("{:.60?}: {why}", id))?;
        }
    }
    unmarked()?;
    site.serves_session(LEGACY, &session)?;
    Ok(format!("{} ids, each three times", ids.len()))
}

/// Every request that takes a session id.
fn all_of(id: &str) -> [Ask; 3] {
    let call = Ask::legacy_call(LEGACY, Some(id), 3, "mark", &json!({}));
    [call, Ask::get(LEGACY, Some(id)), Ask::delete(LEGACY, Some(id))]
}

/// Texts that look like an id, or are similar to one.
fn guesses(bench: &Bench) -> Result<String, String> {
    let site = bench.site(|_| {})?;
    let real = site.session(LEGACY)?;
    let flip = |at: usize| {
        let mut id = real.clone().into_bytes();
        id[at] = if id[at] == b'0' { b'1' } else { b'0' };
        String::from_utf8_lossy(&id).into_owned()
    };
    let mut ids: Vec<String> = (0..real.len()).map(flip).filter(|id| *id != real).collect();
    ids.extend([real[..real.len() - 1].into(), format!("{real}0"), format!("0{real}"), real.chars().rev().collect()]);
    ids.extend(["00000000-0000-0000-0000-000000000000".into(), "0".repeat(real.len()), "f".repeat(real.len())]);
    for swapped in [real.to_uppercase(), real.to_lowercase()] {
        ids.extend((swapped != real).then_some(swapped));
    }
    for id in &ids {
        for ask in all_of(id) {
            got(&site, &ask, &keeps(&[404])).map_err(|why| format!("{id:?}: {why}"))?;
        }
    }
    unmarked()?;
    site.serves_session(LEGACY, &real)?;
    Ok(format!("404 to {} guesses, each three times", ids.len()))
}

fn two_sessions(bench: &Bench) -> Result<String, String> {
    let site = bench.site(|_| {})?;
    let (mine, other) = (site.session(LEGACY)?, site.session(LEGACY)?);
    for second in [other.as_str(), "guess"] {
        for ask in all_of(&mine) {
            got(&site, &ask.lines(format!("Mcp-Session-Id: {second}\r\n")), &gets(&[400, 404]))?;
        }
    }
    unmarked()?;
    site.serves_session(LEGACY, &mine)?;
    site.serves_session(LEGACY, &other)?;
    Ok("400 or 404".into())
}

fn no_session(bench: &Bench) -> Result<String, String> {
    let required: fn(&mut ServerConfig) = |config| config.sessions = Sessions::Required;
    let site = bench.site(required)?;
    let call = |revision| Ask::legacy_call(revision, None, 3, "mark", &json!({}));
    let note = json!({"jsonrpc": "2.0", "method": "notifications/x"});
    let asks = [
        call(LEGACY),
        call(BATCHES),
        Ask::get(LEGACY, None),
        Ask::delete(LEGACY, None),
        Ask::legacy(LEGACY, None, &note),
    ];
    for ask in asks {
        got(&site, &ask, &keeps(&[400])).map_err(|why| format!("{ask:?}: {why}"))?;
    }
    unmarked()?;
    Ok("400, kept".into())
}

/// Ids consist of visible ASCII, are long, and differ.
fn ids(bench: &Bench) -> Result<String, String> {
    let site = bench.site(|_| {})?;
    let mut ids = Vec::new();
    for _ in 0..100 {
        ids.push(site.session(LEGACY)?);
    }
    for id in &ids {
        let is_so = id.len() >= 22 && id.bytes().all(|byte| (0x21..=0x7e).contains(&byte));
        expect(is_so, || format!("{id:?} can be guessed"))?;
    }
    // Two ids with a long common prefix would have less entropy than their length suggests.
    ids.sort();
    let shared = |pair: &[String]| pair[0].bytes().zip(pair[1].bytes()).take_while(|(one, other)| one == other).count();
    let most = ids.windows(2).map(shared).max().unwrap_or_default();
    expect(most < 10, || format!("two ids share {most} bytes"))?;
    Ok(format!("100 ids of {} bytes", ids[0].len()))
}

fn ends_twice(bench: &Bench) -> Result<String, String> {
    let site = bench.site(|_| {})?;
    let (session, other) = (site.session(LEGACY)?, site.session(LEGACY)?);
    got(&site, &Ask::delete(LEGACY, Some(&session)), &keeps(&[200, 204]))?;
    for ask in all_of(&session).into_iter().rev() {
        got(&site, &ask, &keeps(&[404]))?;
    }
    unmarked()?;
    site.serves_session(LEGACY, &other)?;
    Ok("200, then 404".into())
}

fn opens_too_many(bench: &Bench) -> Result<String, String> {
    const ROOM: usize = 20;
    let site = bench.site(|config| config.limits.server.max_sessions = ROOM)?;
    let sessions: Vec<String> = (0..ROOM).map(|_| site.session(LEGACY)).collect::<Result<_, _>>()?;
    for _ in 0..200 {
        got(&site, &Ask::initialize(LEGACY), &gets(&[503]).field("Retry-After", ""))?;
    }
    for session in &sessions {
        site.serves_session(LEGACY, session)?;
    }
    got(&site, &Ask::delete(LEGACY, sessions.first().map(String::as_str)), &keeps(&[200, 204]))?;
    site.session(LEGACY)?;
    got(&site, &Ask::initialize(LEGACY), &gets(&[503]).field("Retry-After", ""))?;
    site.at_rest()?;
    Ok(format!("{ROOM} sessions, then 503 and Retry-After; one for one that is ended"))
}

fn no_sessions(bench: &Bench) -> Result<String, String> {
    let off: fn(&mut ServerConfig) = |config| config.sessions = Sessions::Off;
    let modern: fn(&mut ServerConfig) = |config| config.versions = Versions::new([ProtocolVersion::V2026_07_28]);
    for change in [off, modern] {
        let site = bench.site(change)?;
        let refused = keeps(&[405]).field("Allow", "POST");
        got(&site, &Ask::get(LEGACY, None), &refused)?;
        got(&site, &Ask::get(LEGACY, Some("guess")), &refused)?;
        got(&site, &Ask::delete(LEGACY, Some("guess")), &refused)?;
        let first = site.asked(&Ask::initialize(LEGACY))?;
        expect(first.field("Mcp-Session-Id").is_none(), || format!("there is a session: {first}"))?;
        proper(&first)?;
    }
    Ok("405 and Allow".into())
}

/// The newest is the only one. The others end, and are not kept.
fn streams(bench: &Bench) -> Result<String, String> {
    let site = bench.site(|_| {})?;
    let (session, other) = (site.session(LEGACY)?, site.session(LEGACY)?);
    let open = |session: &str| {
        let mut link = site.says(&Ask::get(LEGACY, Some(session)))?;
        link.opens()?;
        Ok::<Link, String>(link)
    };
    let apart = open(&other)?;
    let mut links = Vec::new();
    for _ in 0..100 {
        links.push(open(&session)?);
    }
    let newest = links.pop();
    for mut link in links {
        let mut over = || -> Result<(), String> {
            while link.chunk()?.is_some() {}
            Ok(())
        };
        over().map_err(|why| format!("an older stream is not ended: {why}"))?;
    }
    site.serves_session(LEGACY, &session)?;
    site.serves()?;
    drop((newest, apart));
    site.at_rest()?;
    Ok("99 are ended".into())
}

/// Calls a tool with an input request in a session, and reads the stream up to that request.
/// Returns the connection and the id of the request.
pub(super) fn asking(site: &Site, session: &str, who: &str) -> Result<(Link, Value), String> {
    let mut link = site.says(&Ask::legacy_call(LEGACY, Some(session), 9, "ask", &json!({})).who(who))?;
    link.opens()?;
    let told = link.until("elicitation/create")?;
    let question = told.lines().filter_map(|line| line.strip_prefix("data:")).find(|data| data.contains("elicitation"));
    let question: Value = serde_json::from_str(question.unwrap_or_default()).map_err(|e| format!("{e}: {told}"))?;
    Ok((link, question["id"].clone()))
}

fn answers_for_another(bench: &Bench) -> Result<String, String> {
    let site = bench.site(|_| {})?;
    let (victim, thief) = (site.session(LEGACY)?, site.session(LEGACY)?);
    let (mut link, id) = asking(&site, &victim, "good")?;
    let reply =
        |text: &str| json!({"jsonrpc": "2.0", "id": id, "result": {"action": "accept", "content": {"name": text}}});
    got(&site, &Ask::legacy(LEGACY, Some(&thief), &reply("stolen")), &gets(&[202, 400, 404]))?;
    for stranger in [None, Some("guess")] {
        got(&site, &Ask::legacy(LEGACY, stranger, &reply("stolen")), &gets(&[202, 400, 404]))?;
    }
    got(&site, &Ask::legacy(LEGACY, Some(&victim), &reply("mine")), &keeps(&[202]))?;
    let told = link.until("accepted")?;
    expect(told.contains("mine") && !told.contains("stolen"), || format!("the call is answered with {told}"))?;
    Ok("its own answer counts".into())
}

fn cancels_another(bench: &Bench) -> Result<String, String> {
    let site = bench.site(|_| {})?;
    let (victim, thief) = (site.session(LEGACY)?, site.session(LEGACY)?);
    let mut link = site.says(&Ask::legacy_call(LEGACY, Some(&victim), 5, "wait", &json!({"tag": "call"})))?;
    soon(|| has_begun("call"));
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 5}});
    got(&site, &Ask::legacy(LEGACY, Some(&thief), &cancel), &gets(&[202]))?;
    got(&site, &Ask::legacy(LEGACY, None, &cancel), &gets(&[202, 400]))?;
    got(&site, &Ask::legacy(LEGACY, Some("guess"), &cancel), &gets(&[404]))?;
    expect(!was_stopped("call"), || "it is cancelled".into())?;
    free("call");
    let answer = link.answer()?;
    let said = answer.json()?;
    expect(said["result"]["content"][0]["text"] == "call", || format!("it is answered with {answer}"))?;
    Ok("it goes on, and is answered".into())
}

/// The second is refused, and the first is not affected (B-048).
fn one_id_twice(bench: &Bench) -> Result<String, String> {
    let site = bench.site(|_| {})?;
    let (session, other) = (site.session(LEGACY)?, site.session(LEGACY)?);
    let mut link = site.says(&Ask::legacy_call(LEGACY, Some(&session), 5, "wait", &json!({"tag": "call"})))?;
    soon(|| has_begun("call"));
    let second = site.asked(&Ask::legacy_call(LEGACY, Some(&session), 5, "mark", &json!({})))?;
    expect(second.json()?["error"]["code"].is_i64(), || format!("the second is answered with {second}"))?;
    unmarked()?;
    // Another session has its own ids.
    let apart = site.asked(&Ask::legacy_call(LEGACY, Some(&other), 5, "echo", &json!({"text": "x"})))?;
    expect(apart.json()?["result"].is_object(), || format!("another session is answered with {apart}"))?;
    free("call");
    let first = link.answer()?;
    expect(first.json()?["result"].is_object(), || format!("the first is answered with {first}"))?;
    good(&mut link)?;
    Ok(format!("the second is answered with {}, the first with its result", shown(&second)))
}
