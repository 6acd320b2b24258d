//! Clients that misuse tasks: ids that they guess or that are another's, requests about them in
//! great numbers, and tasks without end.

use super::ask::{Ask, LEGACY};
use super::link::Answer;
use super::parts::{FLAT, row};
use super::site::Site;
use super::tools;
use crate::hostile::rows::{DRIVERS, expect, row_on, soon};
use crate::hostile::{Bench, Row};
use mcp_proto::ServerConfig;
use serde_json::{Value, json};
use std::time::Duration;

pub(super) const ROWS: &[Row] = &[
    row("guesses 10,000 ids of tasks", guesses),
    row("asks for the task of another principal", of_another),
    row("asks 10,000 times for the state of a task", polls),
    row_on("answers what a task does not ask by 3 MiB, 64 times", DRIVERS, FLAT + 24, updates),
    row("makes 1,000 tasks that do not end", many),
    row("wants a task for 2^63 ms", long),
];

/// The longest time of a task here.
const MAX_TTL: Duration = Duration::from_secs(60);

/// The tasks that the server has room for.
const PLACES: usize = 16;

fn with_tasks(config: &mut ServerConfig) {
    config.limits.server.max_task_ttl = MAX_TTL;
    config.limits.server.max_tasks = PLACES;
}

/// A client that has tasks.
fn having(ask: Ask) -> Ask {
    ask.message(|message| {
        message["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] =
            json!({"extensions": {"io.modelcontextprotocol/tasks": {}}});
    })
}

/// A call that becomes a task, and ends when it is released.
fn late(tag: &str) -> Ask {
    having(Ask::call("late")).with("tag", tag)
}

/// A request about a task.
fn about(method: &str, id: &str) -> Ask {
    let id = id.to_owned();
    let ask = having(Ask::modern(method, None)).set("Mcp-Name", &id);
    ask.message(|message| message["params"]["taskId"] = id.into())
}

fn result(answer: &Answer) -> Result<Value, String> {
    let said = answer.json()?;
    expect(said["result"].is_object(), || format!("{answer} in place of a result"))?;
    Ok(said["result"].clone())
}

fn refused(answer: &Answer) -> Result<(), String> {
    let said = answer.json()?;
    expect(said["error"]["code"] == -32602, || format!("{answer} in place of -32602"))
}

/// Makes a task. Returns its id.
fn begin(site: &Site, tag: &str, who: &str) -> Result<String, String> {
    let created = result(&site.asked(&late(tag).who(who))?)?;
    let id = created["taskId"].as_str().map(str::to_owned);
    id.ok_or_else(|| format!("{created} is no task"))
}

/// The task still works, and ends when it is released.
fn ends(site: &Site, tag: &str, id: &str, who: &str) -> Result<(), String> {
    let state = |_: ()| result(&site.asked(&about("tasks/get", id).who(who))?);
    let working = state(())?;
    expect(working["status"] == "working", || format!("{working} in place of a task that works"))?;
    tools::free(tag);
    soon(|| state(()).is_ok_and(|state| state["status"] == "completed"));
    let ended = state(())?;
    expect(ended["result"]["content"][0]["text"] == tag, || format!("{ended} in place of its result"))?;
    site.is_well()
}

fn guesses(bench: &Bench) -> Result<String, String> {
    const TIMES: usize = 10_000;
    let site = bench.site(with_tasks)?;
    let id = begin(&site, "guessed", "good")?;
    let mut link = site.visit()?;
    for n in 0..TIMES {
        // As long as a right one, and not far from it.
        let mut guess = id.clone().into_bytes();
        let at = n % guess.len();
        guess[at] = if guess[at] == b'A' { b'B' } else { b'A' };
        let guess = String::from_utf8(guess).map_err(|e| e.to_string())?;
        link.say(&about(["tasks/get", "tasks/cancel"][n % 2], &guess).bytes());
        refused(&link.answer()?)?;
    }
    drop(link);
    ends(&site, "guessed", &id, "good")?;
    Ok(format!("-32602, {TIMES} times"))
}

fn of_another(bench: &Bench) -> Result<String, String> {
    let site = bench.guarded_site(with_tasks)?;
    let id = begin(&site, "own", "good")?;
    for ask in [
        about("tasks/get", &id),
        about("tasks/cancel", &id),
        about("tasks/update", &id).message(|message| message["params"]["inputResponses"] = json!({})),
    ] {
        refused(&site.asked(&ask.who("eve"))?)?;
    }
    ends(&site, "own", &id, "good")?;
    Ok("-32602, as for an unknown one".into())
}

fn polls(bench: &Bench) -> Result<String, String> {
    const TIMES: usize = 10_000;
    let site = bench.site(with_tasks)?;
    let id = begin(&site, "polled", "good")?;
    let mut link = site.visit()?;
    for _ in 0..TIMES {
        link.say(&about("tasks/get", &id).bytes());
        result(&link.answer()?)?;
    }
    drop(link);
    ends(&site, "polled", &id, "good")?;
    Ok(format!("its state, {TIMES} times"))
}

fn updates(bench: &Bench) -> Result<String, String> {
    const TIMES: usize = 64;
    let site = bench.site(with_tasks)?;
    let id = begin(&site, "updated", "good")?;
    let unasked = "x".repeat(3 << 20);
    let ask = about("tasks/update", &id).message(|message| {
        message["params"]["inputResponses"] = json!({"name": {"action": "accept", "content": unasked}})
    });
    let (bytes, mut link) = (ask.bytes(), site.visit()?);
    for _ in 0..TIMES {
        link.say(&bytes);
        result(&link.answer()?)?;
    }
    drop(link);
    ends(&site, "updated", &id, "good")?;
    Ok(format!("acknowledged and dropped, {TIMES} times"))
}

fn many(bench: &Bench) -> Result<String, String> {
    const TIMES: usize = 1000;
    let site = bench.guarded_site(with_tasks)?;
    let (mut tasks, mut link) = (Vec::new(), site.visit()?);
    for n in 0..TIMES {
        link.say(&late(&format!("many {n}")).who("eve").bytes());
        // Without a place the call is one as any other.
        match result(&link.answer()?)?["taskId"].as_str() {
            Some(id) => tasks.push(id.to_owned()),
            None => expect(!tasks.is_empty(), || "there is no room from the start".into())?,
        }
    }
    expect(tasks.len() < PLACES, || format!("{} tasks for {PLACES} places", tasks.len()))?;
    // Another client has its share.
    let id = begin(&site, "of another", "good")?;
    for id in &tasks {
        link.say(&about("tasks/cancel", id).who("eve").bytes());
        result(&link.answer()?)?;
    }
    drop(link);
    ends(&site, "of another", &id, "good")?;
    Ok(format!("{} of {TIMES} become tasks", tasks.len()))
}

fn long(bench: &Bench) -> Result<String, String> {
    let site = bench.site(with_tasks)?;
    let session = site.session(LEGACY)?;
    let call = Ask::legacy_call(LEGACY, Some(&session), 7, "late", &json!({"tag": "long"}));
    let call = call.message(|message| message["params"]["task"] = json!({"ttl": 1_u64 << 63}));
    let created = result(&site.asked(&call)?)?;
    let ttl = &created["task"]["ttl"];
    expect(*ttl == MAX_TTL.as_millis() as u64, || format!("{ttl} ms in place of {MAX_TTL:?}"))?;
    tools::free("long");
    Ok(format!("a task for {MAX_TTL:?}"))
}
