//! A client that takes all it can of the common resources, and one that sends unsolicited
//! responses.

use super::ask::{Ask, BATCHES, LEGACY};
use super::bodies::answers;
use super::floods::beside;
use super::link::Link;
use super::parts::{gets, row};
use super::replays::{answers as answered, at_the_first, back, primed_by};
use super::sessions::asking;
use super::site::Site;
use super::tools::{free, has_begun};
use crate::hostile::rows::{BLOCKING, DRIVERS, READERS, expect, row_on, soon, spent};
use crate::hostile::{Bench, Row};
use mcp_proto::server::Event;
use rustix::time::ClockId;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

pub(super) const ROWS: &[Row] = &[
    row_on("asks with a junk state and arguments in 120 arrays", DRIVERS, 136, junk),
    row("answers what a handler has not asked", unasked),
    row("asks in sessions, and closes the connections before the questions are answered", gone),
    row("asks with a batch of 1,000 and without a session, 2025-03-26", batch),
    row("says 15 KiB of itself, again and again", much),
    row("has its answers kept in 60 sessions", histories),
    // The events are 16 MiB of it. The allocator keeps freed memory for each thread that has parsed
    // a message, and a busy machine has more of them: 50 to 97 MiB in all. Without a limit it would
    // be 894.
    row_on("notifies by 4 MiB, 208 times", READERS, 160, heavy),
];

/// A state of the right form without a valid seal.
fn junk_state() -> String {
    format!("Aw{}", "A".repeat(1000))
}

/// A call with this number of bytes of arguments in nested arrays, with such a state or without
/// one.
fn nested(bytes: usize, with_state: bool) -> Result<Vec<u8>, String> {
    const DEPTH: usize = 120;
    let text = format!("{}\"{}\"{}", "[".repeat(DEPTH), "x".repeat(bytes), "]".repeat(DEPTH));
    let arrays: Value = serde_json::from_str(&text).map_err(|e| e.to_string())?;
    let ask = Ask::call("echo").with("text", "x").with("arrays", arrays);
    let ask = if with_state { ask.message(|m| m["params"]["requestState"] = junk_state().into()) } else { ask };
    Ok(ask.bytes())
}

/// A call is refused for its state, or succeeds.
fn judged(site: &Site, bytes: &[u8], code: Option<i64>) -> Result<(), String> {
    let mut link = site.visit()?;
    link.say(bytes);
    let answer = link.answer()?;
    let said = answer.json()?;
    let is_so = match code {
        Some(code) => said["error"]["code"] == code,
        None => said["result"].is_object(),
    };
    expect(is_so, || format!("{answer} in place of {code:?}"))
}

/// Returns the minimum processor time of some calls: client and server together.
fn cost(site: &Site, bytes: &[u8], code: Option<i64>) -> Result<Duration, String> {
    let mut least = Duration::MAX;
    for _ in 0..3 {
        let before = spent(ClockId::ProcessCPUTime);
        judged(site, bytes, code)?;
        least = least.min(spent(ClockId::ProcessCPUTime).saturating_sub(before));
    }
    Ok(least)
}

/// Its refusal costs about as much as the same call without a state, and delays no other client.
fn junk(bench: &Bench) -> Result<String, String> {
    const INVALID: Option<i64> = Some(-32602);
    // The rest of the body fits into the rest of 4 MiB.
    let large = (4 << 20) - (8 << 10);
    let site = bench.site(|_| {})?;
    let (plain, junk, small) = (nested(large, false)?, nested(large, true)?, nested(250 << 10, true)?);
    let (honest, refused) = (cost(&site, &plain, None)?, cost(&site, &junk, INVALID)?);
    // Behind a shim, the server is another process, and these are the microseconds of this one.
    // Elsewhere, walking the arguments once for each of their levels costs 120 times as much.
    let most = 3 * honest + Duration::from_millis(20);
    expect(refused < most, || format!("{refused:?} to refuse it, {honest:?} without a state"))?;
    let over = AtomicBool::new(false);
    let (served, slowest) = thread::scope(|scope| {
        let beside = scope.spawn(|| beside(&site, &over));
        let asked =
            (0..4).try_for_each(|_| judged(&site, &junk, INVALID).and_then(|()| judged(&site, &small, INVALID)));
        over.store(true, Ordering::Relaxed);
        let beside = beside.join().map_err(|_| "the good client panics".to_string())?;
        asked?;
        beside
    })?;
    site.at_rest()?;
    Ok(format!(
        "-32602 in {} ms, without a state answered in {} ms; meanwhile another was served {served} times, within {} ms",
        refused.as_millis(),
        honest.as_millis(),
        slowest.as_millis()
    ))
}

/// Each session has an input request and a disconnected client. The full server still serves new
/// requests.
fn gone(bench: &Bench) -> Result<String, String> {
    const PLACES: usize = 4;
    let site = bench.site(|config| config.limits.server.max_running_requests = PLACES)?;
    let mut sessions = Vec::new();
    for _ in 0..PLACES {
        sessions.push(asks_and_leaves(&site)?);
    }
    soon(|| site.holds() == (1, PLACES));
    let held = site.holds();
    expect(held == (1, PLACES), || format!("{held:?} connections and requests in place of (1, {PLACES})"))?;
    site.serves()?;
    for _ in 0..5 * PLACES {
        sessions.push(asks_and_leaves(&site)?);
        site.serves()?;
    }
    for session in &sessions {
        site.asked(&Ask::delete(LEGACY, Some(session)))?;
    }
    site.at_rest()?;
    Ok(format!("{PLACES} places, taken {} times; everybody is served at once", sessions.len()))
}

fn asks_and_leaves(site: &Site) -> Result<String, String> {
    let session = site.session(LEGACY)?;
    let (link, _) = asking(site, &session, "good")?;
    link.reset();
    // The server has noticed.
    soon(|| site.holds().0 == 1);
    Ok(session)
}

/// As many run as one session may run, and the others are refused in the same response.
fn batch(bench: &Bench) -> Result<String, String> {
    const RUN: usize = 16;
    const ALL: usize = 1000;
    let site = bench.site(|config| config.limits.server.max_running_per_exchange = RUN)?;
    let call = |id: usize| {
        let params = json!({"name": "wait", "arguments": {"tag": "batch"}});
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
    };
    let calls = Value::Array((1..=ALL).map(call).collect());
    let mut link = site.says(&Ask::legacy(BATCHES, None, &calls).set("MCP-Protocol-Version", BATCHES))?;
    soon(|| has_begun("batch") && site.holds().1 >= RUN);
    let running = site.holds().1;
    expect(running == RUN, || format!("{running} of them run"))?;
    site.serves()?;
    free("batch");
    let answer = link.answer()?;
    let said = answers(&answer)?;
    let served = said.iter().filter(|one| one["result"].is_object()).count();
    let refused = said.iter().filter(|one| one["error"]["code"] == -32603).count();
    expect((served, refused) == (RUN, ALL - RUN), || format!("{served} are answered, {refused} refused: {answer}"))?;
    drop(link);
    site.at_rest()?;
    Ok(format!("{served} run, {refused} are answered -32603"))
}

/// Beyond the share of one principal each is refused. Another principal resumes its stream and
/// opens sessions.
fn much(bench: &Bench) -> Result<String, String> {
    let site = bench.guarded_site(|config| {
        at_the_first(config);
        config.limits.server.max_client_data_total = 400_000;
    })?;
    let (session, event) = leaves_an_answer(&site, "good", "kept", 100)?;
    let much = |who: &str| {
        let text = "x".repeat(15 << 10);
        let ask = Ask::initialize(LEGACY).who(who);
        ask.message(|m| m["params"]["capabilities"]["experimental"] = json!({"x": {"text": text}}))
    };
    let full = gets(&[503]).field("Retry-After", "").code(-32603);
    let mut opened = Vec::new();
    let mut refused = 0;
    for _ in 0..40 {
        let mut link = site.says(&much("greedy"))?;
        let answer = gets(&[200, 503]).next(&mut link)?;
        match answer.field("Mcp-Session-Id") {
            Some(id) if answer.status == 200 => opened.push(id.to_string()),
            _ => refused += 1,
        }
    }
    expect((1..=7).contains(&opened.len()), || format!("{} of 40 are let in", opened.len()))?;
    let told = site.asked(&back(&session, &event).who("good"))?;
    let rest = String::from_utf8_lossy(&told.body).into_owned();
    expect(answered(&rest) == [5], || format!("another one comes back and gets {told}"))?;
    let open = site.asked(&much("good"))?;
    expect(open.status == 200, || format!("another one asks for a session and gets {open}"))?;
    // An ended one makes room for one.
    site.asked(&Ask::delete(LEGACY, opened.first().map(String::as_str)).who("greedy"))?;
    let again = site.asked(&much("greedy"))?;
    expect(again.status == 200, || format!("there is no room again: {again}"))?;
    let mut link = site.says(&much("greedy"))?;
    full.next(&mut link)?;
    drop(link);
    site.at_rest()?;
    Ok(format!("{} let in, {refused} times 503; another one opens a session and comes back for a stream", opened.len()))
}

/// Leaves a call, so that its response of this number of bytes is kept. Returns the session and the
/// last event id.
fn leaves_an_answer(site: &Site, who: &str, tag: &str, bytes: usize) -> Result<(String, String), String> {
    let session = site.session_of(LEGACY, who)?;
    let arguments = json!({"tag": tag, "bytes": bytes});
    let ask = Ask::legacy_call(LEGACY, Some(&session), 5, "wait", &arguments).who(who);
    let (link, event) = primed_by(site, &ask, tag)?;
    link.reset();
    free(tag);
    soon(|| site.holds().1 == 0);
    Ok((session, event))
}

/// The oldest responses of one principal are evicted, and none of the other, whose response is the
/// longest.
fn histories(bench: &Bench) -> Result<String, String> {
    const SESSIONS: usize = 60;
    let site = bench.guarded_site(|config| {
        at_the_first(config);
        config.limits.server.history_total = 400_000;
    })?;
    let (session, event) = leaves_an_answer(&site, "good", "kept", 60_000)?;
    let mut greedy = BTreeMap::new();
    for n in 0..SESSIONS {
        let (session, event) = leaves_an_answer(&site, "greedy", &format!("greedy {n}"), 10_000)?;
        greedy.insert(session, event);
    }
    let comes_back = |session: &str, event: &str, who: &str| {
        let told = site.asked(&back(session, event).who(who))?;
        let rest = String::from_utf8_lossy(&told.body).into_owned();
        Ok::<_, String>((told.status == 200 && answered(&rest) == [5], told))
    };
    let (is_kept, told) = comes_back(&session, &event, "good")?;
    expect(is_kept && told.body.len() > 60_000, || format!("another one comes back and gets {told}"))?;
    let mut kept = 0;
    for (session, event) in &greedy {
        kept += usize::from(comes_back(session, event, "greedy")?.0);
    }
    // A quarter of 400,000 bytes.
    expect((1..=10).contains(&kept), || format!("{kept} of its {SESSIONS} answers are kept"))?;
    site.at_rest()?;
    Ok(format!("{kept} of {SESSIONS} answers are kept, and that of another one"))
}

/// Responses count only with the state that lists their requests.
fn unasked(bench: &Bench) -> Result<String, String> {
    let site = bench.site(|_| {})?;
    let ask = |text: Option<&str>, state: Option<&str>| {
        Ask::call("ask").message(|message| {
            let params = &mut message["params"];
            params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({"elicitation": {}});
            if let Some(text) = text {
                params["inputResponses"] = json!({"name": {"action": "accept", "content": {"name": text}}});
            }
            if let Some(state) = state {
                params["requestState"] = state.into();
            }
        })
    };
    let slipped = site.asked(&ask(Some("slipped in"), None))?;
    let said = slipped.json()?;
    let result = &said["result"];
    let asks = result["resultType"] == "input_required" && result["inputRequests"]["name"].is_object();
    expect(asks, || format!("it does not ask: {slipped}"))?;
    let state = result["requestState"].as_str().ok_or_else(|| format!("no state: {slipped}"))?;
    let other = site.asked(&ask(Some("slipped in"), Some(&junk_state())))?;
    expect(other.json()?["error"]["code"] == -32602, || format!("with a junk state: {other}"))?;
    let mine = site.asked(&ask(Some("mine"), Some(state)))?;
    let text = mine.json()?["result"]["content"][0]["text"].to_string();
    expect(text.contains("accepted") && text.contains("mine"), || format!("its own answer does not count: {mine}"))?;
    site.is_well()?;
    Ok("it is asked; its answer to the question counts".into())
}

/// Whether the application takes no event.
static RESTS: AtomicBool = AtomicBool::new(false);
static TOLD: AtomicU64 = AtomicU64::new(0);
static LOST: AtomicU64 = AtomicU64::new(0);

fn told(event: &Event) {
    match event {
        Event::Notification { .. } => TOLD.fetch_add(1, Ordering::SeqCst),
        Event::Lost { notifications, .. } => LOST.fetch_add(*notifications, Ordering::SeqCst),
        _ => 0,
    };
    while RESTS.load(Ordering::SeqCst) {
        thread::park_timeout(Duration::from_millis(5));
    }
}

/// Events that the application does not take are counted, and calls are answered meanwhile. With
/// smol the server reports them at once.
fn heavy(bench: &Bench) -> Result<String, String> {
    let count = bench.scaled(208);
    let waits = bench.host == BLOCKING;
    RESTS.store(waits, Ordering::SeqCst);
    let site = bench.told_site(|_| {}, told)?;
    let note = Ask::modern("notifications/x", None).message(|message| {
        message["params"]["x"] = "x".repeat((4 << 20) - (8 << 10)).into();
        message.as_object_mut().map(|message| message.remove("id"));
    });
    let note = note.bytes();
    let mut link: Link = site.visit()?;
    for _ in 0..count {
        link.say(&note);
        let answer = link.answer()?;
        expect(answer.status == 202, || format!("{answer} in place of 202"))?;
        site.serves()?;
    }
    RESTS.store(false, Ordering::SeqCst);
    let counts = || (TOLD.load(Ordering::SeqCst), LOST.load(Ordering::SeqCst));
    let sum = || counts().0 + counts().1;
    soon(|| sum() == count);
    let (told, lost) = counts();
    expect(told + lost == count && (lost > 0) == waits, || format!("{told} are told and {lost} lost of {count}"))?;
    drop(link);
    site.at_rest()?;
    Ok(format!("{told} told, {lost} counted as lost; calls are answered"))
}
