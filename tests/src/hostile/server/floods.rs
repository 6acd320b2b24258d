//! Too much at once: requests in one write, garbage behind them, more connections and more calls
//! than the limits.

use super::ask::{Ask, LEGACY};
use super::parts::{closes, gets, proper, row, shown};
use super::site::{Site, good};
use super::tools::{self, free, has_begun};
use crate::hostile::rows::{DRIVERS, expect, row_on, soon};
use crate::hostile::{Bench, Row};
use serde_json::Value;
use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

pub(super) const ROWS: &[Row] = &[
    row("asks, and garbage behind it", garbage),
    row_on("asks 10,000 times in one write", DRIVERS, 64, |b| {
        pipelined(b, 10_000, |id| Ask::call("echo").with("text", "x").message(|m| m["id"] = id.into()), 200)
    }),
    row_on("asks 10,000 times in one write and breaks off", DRIVERS, 64, |b| {
        let site = b.site(|_| {})?;
        let asks = Ask::call("echo").with("text", "x").bytes().repeat(10_000);
        let mut link = site.visit()?;
        let writing = link.say_beside(asks)?;
        link.served()?;
        link.reset();
        // The connection breaks when its last descriptor, the writer's, is closed. It writes all of
        // it, without reading the responses.
        writing.join().map_err(|_| "the writer panics")?;
        site.is_well()?;
        Ok("let go of".into())
    }),
    row_on("asks 10,000 times in one write what there is not", DRIVERS, 64, |b| {
        pipelined(b, 10_000, |id| Ask::modern("x/y", None).message(|m| m["id"] = id.into()), 404)
    }),
    row_on("asks nonsense 10,000 times in one write", DRIVERS, 64, |b| {
        pipelined(b, 10_000, |_| Ask::mark().body("{"), 400)
    }),
    row_on("asks by another method 10,000 times in one write", DRIVERS, 64, |b| {
        pipelined(b, 10_000, |_| Ask::mark().line("PUT /mcp HTTP/1.1"), 405)
    }),
    row_on("notifies 10,000 times in one write", DRIVERS, 64, |b| {
        let note =
            |_| Ask::modern("notifications/x", None).message(|m| drop(m.as_object_mut().map(|m| m.remove("id"))));
        pipelined(b, 10_000, note, 202)
    }),
    row_on("guesses sessions 10,000 times in one write", DRIVERS, 64, |b| {
        let guess = |id: u64| {
            let session = format!("{:032x}", id.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            Ask::legacy_call(LEGACY, Some(&session), 1, "mark", &serde_json::json!({}))
        };
        pipelined(b, 10_000, guess, 404)
    }),
    row("more connections than there may be", connections),
    row("more calls at once than there may be", calls),
    row("listens more often than there may be", listens),
    row_on("watches 100,000 resources", DRIVERS, 88, watches),
];

/// Everything before it is answered, and nothing after it.
fn garbage(bench: &Bench) -> Result<String, String> {
    let site = bench.site(|_| {})?;
    let nonsense: [&[u8]; 6] = [
        b"garbage\r\n\r\n",
        b"\0\0\0\0\r\n\r\n",
        b"{}\n\n",
        b"HTTP/1.1 200 OK\r\n\r\n",
        b" \r\n\r\n",
        b"5\r\nhello\r\n0\r\n\r\n",
    ];
    for nonsense in nonsense {
        let before = tools::marks();
        let mut link = site.visit()?;
        let first = Ask::call("echo").with("text", "x").bytes();
        link.say(&[&first, nonsense, Ask::mark().bytes().as_slice()].concat());
        let answer = link.answer()?;
        expect(answer.status == 200, || format!("{answer} in place of 200"))?;
        let refused = closes(&[400]);
        let answer = refused.next(&mut link)?;
        site.serves()?;
        refused.after(&answer, &mut link)?;
        expect(tools::marks() == before, || "what is behind the garbage has run".into())?;
    }
    site.is_well()?;
    Ok("200, then 400, closed".into())
}

/// Each is answered in order, with its own id. A good client is served meanwhile, without much
/// delay.
fn pipelined(bench: &Bench, count: u64, ask: fn(u64) -> Ask, status: u16) -> Result<String, String> {
    let site = bench.site(|_| {})?;
    let asks: Vec<u8> = (1..=count).flat_map(|id| ask(id).bytes()).collect();
    let mut link = site.visit()?;
    let over = AtomicBool::new(false);
    let (served, slowest) = thread::scope(|scope| {
        let beside = scope.spawn(|| beside(&site, &over));
        let writing = link.say_beside(asks);
        let mut read = || {
            for id in 1..=count {
                let answer = link.answer().map_err(|why| format!("answer {id}: {why}"))?;
                expect(answer.status == status, || format!("answer {id} is {answer}"))?;
                proper(&answer)?;
                let said = answer.json().map_or(Value::Null, |mut said| said["id"].take());
                expect(said.is_null() || said == id || said == 1, || format!("answer {id} is that to {said}"))?;
            }
            Ok(())
        };
        let read: Result<(), String> = read();
        over.store(true, Ordering::Relaxed);
        let beside = beside.join().map_err(|_| "the good client panics".to_string())?;
        writing?.join().map_err(|_| "the writer panics".to_string())?;
        read?;
        beside
    })?;
    good(&mut link)?;
    drop(link);
    expect(tools::marks() == 0, || format!("{} calls have run that must not", tools::marks()))?;
    site.at_rest()?;
    Ok(format!(
        "{count} times {status}; meanwhile another was served {served} times, within {} ms",
        slowest.as_millis()
    ))
}

/// The maximum wait of another client during a flood. If that is too short, a quarter of the
/// flood's time, since the machine is busy with other work as well.
const TURN: Duration = Duration::from_secs(2);

/// Makes calls until the flood is over. Returns their number, and the maximum time.
pub(super) fn beside(site: &Site, over: &AtomicBool) -> Result<(u64, Duration), String> {
    let (mut served, mut slowest, flood) = (0, Duration::ZERO, Instant::now());
    while served == 0 || !over.load(Ordering::Relaxed) {
        let began = Instant::now();
        site.serves()?;
        slowest = slowest.max(began.elapsed());
        served += 1;
    }
    expect(slowest < TURN.max(flood.elapsed() / 4), || format!("another client waits for {slowest:?}"))?;
    Ok((served, slowest))
}

/// A connection above the limit gets an error, and is served when there is room again.
fn connections(bench: &Bench) -> Result<String, String> {
    const ROOM: usize = 16;
    let site = bench.site(|config| config.limits.server.max_exchanges = ROOM)?;
    let mut links = Vec::new();
    // The good client has one connection.
    for _ in 1..ROOM {
        let mut link = site.visit()?;
        good(&mut link)?;
        links.push(link);
    }
    let full = closes(&[503]).field("Retry-After", "");
    for _ in 0..20 {
        let mut link = site.says(&Ask::mark())?;
        let answer = full.next(&mut link)?;
        full.after(&answer, &mut link)?;
        site.serves()?;
    }
    for link in &mut links {
        good(link)?;
    }
    drop(links);
    site.at_rest()?;
    let served = || site.asked(&Ask::call("echo").with("text", "x")).is_ok_and(|answer| answer.status == 200);
    soon(served);
    expect(served(), || "there is no room again".into())?;
    expect(tools::marks() == 0, || "a refused call has run".into())?;
    Ok("503, Retry-After, closed; then there is room again".into())
}

/// A call above the limit gets an error, and runs when there is room again.
fn calls(bench: &Bench) -> Result<String, String> {
    let site = bench.site(|config| config.limits.server.max_running_requests = 4)?;
    let tags = ["a", "b", "c", "d"];
    let mut links = Vec::new();
    for tag in tags {
        let link = site.says(&Ask::call("wait").with("tag", tag))?;
        soon(|| has_begun(tag));
        links.push(link);
    }
    let full = gets(&[503]).field("Retry-After", "").code(-32603);
    let mut link = site.says(&Ask::mark())?;
    let answer = full.next(&mut link)?;
    expect(answer.json()?["id"] == 1, || format!("{answer} does not say whose it is"))?;
    for (tag, link) in tags.iter().zip(&mut links) {
        free(tag);
        let answer = link.answer()?;
        expect(answer.status == 200, || format!("{tag} is answered with {answer}"))?;
    }
    site.serves()?;
    drop((link, links));
    site.at_rest()?;
    expect(tools::marks() == 0, || "a refused call has run".into())?;
    Ok(format!("{}, Retry-After; then there is room again", shown(&answer)))
}

/// A connection above the limit gets an error, for any client. The others continue, and a closed
/// one makes room.
fn listens(bench: &Bench) -> Result<String, String> {
    const ROOM: usize = 8;
    let site = bench.site(|config| config.limits.server.max_streams = ROOM)?;
    let ask = Ask::modern("subscriptions/listen", None)
        .message(|message| message["params"]["notifications"] = serde_json::json!({"toolsListChanged": true}));
    let listen = || {
        let mut link = site.says(&ask)?;
        link.opens()?;
        link.until("acknowledged")?;
        Ok::<_, String>(link)
    };
    let mut links = (0..ROOM).map(|_| listen()).collect::<Result<Vec<_>, _>>()?;
    let full = gets(&[503]).field("Retry-After", "");
    for _ in 0..50 {
        let mut link = site.says(&ask)?;
        full.next(&mut link)?;
        site.serves()?;
    }
    links.pop();
    let again = RefCell::new(None);
    soon(|| {
        *again.borrow_mut() = listen().ok();
        again.borrow().is_some()
    });
    expect(again.take().is_some(), || "there is no room again".into())?;
    drop(links);
    site.is_well()?;
    Ok("503 and Retry-After; then there is room again".into())
}

/// A subscription, and a session, watch as many resources as one may. The server says which.
fn watches(bench: &Bench) -> Result<String, String> {
    const MANY: u64 = 100_000;
    const ROOM: usize = 1000;
    let site = bench.site(|_| {})?;
    let uris: Vec<String> = (0..bench.scaled(MANY)).map(|n| format!("x:{n:06}")).collect();
    let ask = Ask::modern("subscriptions/listen", None)
        .message(|message| message["params"]["notifications"] = serde_json::json!({"resourceSubscriptions": uris}));
    let mut link = site.says(&ask)?;
    link.opens()?;
    let said = link.until(&format!("x:{:06}", ROOM - 1))?;
    expect(said.matches("\"x:").count() == ROOM, || format!("acknowledged: {said:.200}"))?;
    drop(link);
    let session = site.session(LEGACY)?;
    let subscribe = |id: usize| {
        let params = serde_json::json!({"uri": format!("x:{id}")});
        let message =
            serde_json::json!({"jsonrpc": "2.0", "id": id, "method": "resources/subscribe", "params": params});
        Ask::legacy(LEGACY, Some(&session), &message).bytes()
    };
    let mut link = site.visit()?;
    let writing = link.say_beside((0..2 * ROOM).flat_map(subscribe).collect())?;
    for id in 0..2 * ROOM {
        let answer = link.answer().map_err(|why| format!("answer {id}: {why}"))?;
        let refused = answer.json()?["error"]["code"] == -32603;
        expect(refused == (id >= ROOM), || format!("subscription {id} is answered with {answer}"))?;
    }
    writing.join().map_err(|_| "the writer panics")?;
    drop(link);
    site.serves_session(LEGACY, &session)?;
    site.is_well()?;
    Ok(format!("{ROOM} are watched by each; the others are refused"))
}
