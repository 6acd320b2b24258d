//! A server over HTTP, written from the published pages and not from the engine: sessions, streams,
//! their history, and the work of its tool. At random it makes every possible error of a server.

mod legacy;
mod modern;
mod spoil;

use super::super::app::Work;
use super::super::fault::Fault;
use super::super::net::Net;
use super::Scenario;
use super::site::{Conn, Site, Web};
use super::wire::{self, Request};
use bytes::Bytes;
use mcp_proto::client::Event;
use mcp_proto::{Era, Instant};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

/// How a server behaves when it does nothing wrong.
#[derive(Clone, PartialEq, Debug)]
pub struct Flavour {
    /// Its revision. A legacy server answers `server/discover` as such servers do.
    pub era: Era,
    /// The revision that it agrees on, in the older era.
    pub version: &'static str,
    /// How many of a thousand requests it answers with a stream of events; the others with JSON.
    pub streams: u64,
    /// Whether it has sessions (2025-11-25).
    pub sessions: bool,
    /// Whether it has a listener (2025-11-25): else `GET` is answered 405.
    pub listener: bool,
    /// Whether its events have ids, so that streams can be resumed (2025-11-25).
    pub ids: bool,
    /// Whether it closes streams early and is polled (2025-11-25); needs `ids`.
    pub polling: bool,
    /// The `retry` that it names.
    pub retry: Option<u64>,
    /// Whether it asks on the listener, not on the stream of the call (2025-11-25).
    pub asks_on_listener: bool,
    /// Whether bodies of streams are chunked. Otherwise they end with their connection.
    pub chunked: bool,
    /// Whether it sends a comment every 15 s on streams that are silent.
    pub beats: bool,
}

/// A server and all that it remembers.
#[derive(Debug)]
pub struct Model {
    /// The run that it is part of.
    pub scenario: Scenario,
    /// How it behaves.
    pub flavour: Flavour,
    /// How often the tool was run: by tag and round.
    pub runs: BTreeMap<(u64, u64), u64>,
    /// When its tools changed.
    pub changes: Vec<Instant>,
    /// The token that requests have to show.
    pub token: Option<u64>,
    /// Whether a 401 lasts until another token is shown; else it is one refusal.
    pub wants_tokens: bool,
    tokens: u64,
    /// How often all sessions were lost.
    lost: u64,
    sessions: BTreeMap<String, Session>,
    streams: BTreeMap<u64, Stream>,
    tasks: BTreeMap<u64, Task>,
    later: BTreeMap<(Instant, u64), Job>,
    next: u64,
}

#[derive(Debug, Default)]
struct Session {
    listener: Option<u64>,
}

/// The answer to one request, or the listener.
#[derive(Debug)]
struct Stream {
    session: Option<String>,
    /// The data of each event so far, empty for one with only an id. The id of an event names its
    /// stream and its position.
    history: Vec<String>,
    conn: Option<Conn>,
    done: bool,
    retry: Option<u64>,
    /// It never sends its response, but does this.
    mute: Option<Fault>,
    /// Its message before the response.
    extra: Option<Fault>,
    /// The id of the request of a `subscriptions/listen`.
    subscription: Option<Value>,
}

/// A run of the tool.
#[derive(Debug)]
struct Task {
    id: Value,
    token: Option<Value>,
    work: Work,
    round: u64,
    told: u64,
    asked: u64,
    place: Place,
    session: Option<String>,
    /// The id of the question that waits.
    waits: Option<String>,
    step: Duration,
}

/// Where the answer of a task goes.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Place {
    Json(Conn),
    Stream(u64),
}

#[derive(Debug)]
enum Job {
    Act(u64),
    Reply(Conn, Bytes),
    Poll(u64),
    Die(Conn),
    Beat(u64),
    Change,
}

/// How long between two signs of life.
const BEAT: Duration = Duration::from_secs(15);

impl Site for Model {
    fn request(&mut self, conn: Conn, request: Request, net: &mut Net) {
        let shown = request.header("authorization").and_then(|value| value.strip_prefix("Bearer ")?.parse().ok());
        if self.token.is_some() && self.token != shown && request.method != "DELETE" {
            return self.challenge(conn, net);
        }
        let modern = self.flavour.era == Era::Modern;
        match request.method.as_str() {
            "POST" if modern => self.modern_post(conn, &request, net),
            "POST" => self.legacy_post(conn, &request, net),
            "GET" if !modern => self.legacy_get(conn, &request, net),
            "DELETE" if !modern => self.legacy_delete(conn, &request, net),
            _ => self.reply(conn, wire::response(405, &[("Allow", "POST")], ""), net),
        }
    }

    fn gone(&mut self, conn: Conn, _net: &mut Net) {
        let at: Vec<u64> = self.streams.iter().filter(|(_, s)| s.conn == Some(conn)).map(|(n, _)| *n).collect();
        let modern = self.flavour.era == Era::Modern;
        for stream in at {
            if modern {
                // To close the stream is to cancel (2026-07-28, cancellation).
                self.streams.remove(&stream);
                self.tasks.retain(|_, task| task.place != Place::Stream(stream));
            } else if let Some(stream) = self.streams.get_mut(&stream) {
                stream.conn = None;
            }
        }
        if modern {
            self.tasks.retain(|_, task| task.place != Place::Json(conn));
        }
    }

    fn due(&self) -> Option<Instant> {
        self.later.keys().next().map(|(at, _)| *at)
    }

    fn event(web: &mut Web<Self>, event: Event) {
        web.check(&event);
    }

    fn wake(&mut self, net: &mut Net) {
        let Some((_, job)) = self.later.pop_first() else { return };
        match job {
            Job::Act(task) => self.act(task, net),
            Job::Reply(conn, bytes) => self.reply(conn, bytes, net),
            Job::Poll(stream) => self.detach(stream, net),
            Job::Die(conn) => net.end(conn),
            Job::Beat(stream) => self.beat(stream, net),
            Job::Change => {
                self.change(net);
                let after = Duration::from_millis(net.chaos.rng.below(40_000));
                self.at(net.now + after, Job::Change);
            }
        }
    }
}

impl Model {
    /// The server of a scenario, whose tools change now and then.
    pub fn new(scenario: &Scenario) -> Self {
        let mut model = Self {
            scenario: scenario.clone(),
            flavour: scenario.settings.flavour.clone(),
            runs: BTreeMap::new(),
            changes: Vec::new(),
            token: None,
            wants_tokens: scenario.settings.authorize,
            tokens: 0,
            lost: 0,
            sessions: BTreeMap::new(),
            streams: BTreeMap::new(),
            tasks: BTreeMap::new(),
            later: BTreeMap::new(),
            next: 0,
        };
        model.at(Instant::from_millis(7_000), Job::Change);
        model
    }

    /// Does nothing any more by itself.
    pub fn stop(&mut self) {
        self.later.clear();
    }

    fn at(&mut self, at: Instant, job: Job) {
        self.next += 1;
        self.later.insert((at, self.next), job);
    }

    /// A whole response; what carries it may die soon after.
    fn reply(&mut self, conn: Conn, bytes: Bytes, net: &mut Net) {
        net.write(conn, bytes);
        self.maybe_die(conn, net);
    }

    fn maybe_die(&mut self, conn: Conn, net: &mut Net) {
        if net.chaos.hit(Fault::DeadIdle, 120) {
            let after = Duration::from_millis(net.chaos.rng.below(400));
            self.at(net.now + after, Job::Die(conn));
        }
    }

    /// A JSON-RPC answer as a whole body.
    fn json(&mut self, conn: Conn, status: u16, headers: &[(&str, &str)], body: &Value, net: &mut Net) {
        let mut all = vec![("Content-Type", "application/json")];
        all.extend_from_slice(headers);
        self.reply(conn, wire::response(status, &all, &body.to_string()), net);
    }

    // ---- streams

    fn open(&mut self, session: Option<String>) -> u64 {
        self.next += 1;
        let stream = Stream {
            session,
            history: Vec::new(),
            conn: None,
            done: false,
            retry: self.flavour.retry,
            mute: None,
            extra: None,
            subscription: None,
        };
        self.streams.insert(self.next, stream);
        self.next
    }

    /// Puts a stream on a connection, from this place of its history on.
    fn attach(&mut self, of: u64, conn: Conn, from: usize, headers: &[(&str, &str)], net: &mut Net) {
        let Some(stream) = self.streams.get_mut(&of) else { return };
        let chunked = self.flavour.chunked;
        net.write(conn, wire::stream_head(headers, chunked));
        if let Some(before) = stream.conn.replace(conn) {
            net.end(before);
        }
        if self.flavour.ids && !stream.done {
            // A priming event: an id, and nothing else.
            stream.history.push(String::new());
        }
        if stream.mute == Some(Fault::CommentsOnly) {
            net.write(conn, wire::piece(": nothing\n\n", chunked));
        }
        for n in from..stream.history.len() {
            net.write(conn, wire::piece(&event(of, n, stream, self.flavour.ids), chunked));
        }
        let (done, mute) = (stream.done, stream.mute);
        if done {
            return self.detach(of, net);
        }
        if self.flavour.beats {
            self.at(net.now + BEAT, Job::Beat(of));
        }
        let listens = self.sessions.values().any(|session| session.listener == Some(of));
        if mute.is_some() || self.flavour.polling && (!listens || net.chaos.rng.per_mille(100)) {
            let after = Duration::from_millis(net.chaos.rng.below(if listens { 60_000 } else { 80 }));
            self.at(net.now + after, Job::Poll(of));
        }
    }

    /// Ends the HTTP response that carries a stream. The stream itself may continue.
    fn detach(&mut self, of: u64, net: &mut Net) {
        let Some(conn) = self.streams.get_mut(&of).and_then(|stream| stream.conn.take()) else { return };
        if self.flavour.chunked {
            net.write(conn, wire::LAST_CHUNK);
            self.maybe_die(conn, net);
        } else {
            net.end(conn);
        }
        if self.flavour.era == Era::Modern {
            self.streams.remove(&of);
        }
    }

    /// Sends a message on a stream.
    fn emit(&mut self, of: u64, message: &Value, net: &mut Net) {
        let Some(stream) = self.streams.get_mut(&of) else { return };
        stream.history.push(message.to_string());
        if let Some(conn) = stream.conn {
            let text = event(of, stream.history.len() - 1, stream, self.flavour.ids);
            net.write(conn, wire::piece(&text, self.flavour.chunked));
        }
    }

    fn beat(&mut self, of: u64, net: &mut Net) {
        if let Some(conn) = self.streams.get(&of).and_then(|stream| stream.conn) {
            net.write(conn, wire::piece(": heartbeat\n\n", self.flavour.chunked));
            self.at(net.now + BEAT, Job::Beat(of));
        }
    }

    /// The tools change.
    fn change(&mut self, net: &mut Net) {
        self.changes.push(net.now);
        let listeners: Vec<u64> = self.sessions.values().filter_map(|session| session.listener).collect();
        for stream in listeners {
            self.emit(stream, &json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}), net);
        }
        let subscribed = |(n, stream): (&u64, &Stream)| Some((*n, stream.subscription.clone()?));
        let subscribed: Vec<(u64, Value)> = self.streams.iter().filter_map(subscribed).collect();
        for (stream, id) in subscribed {
            let meta = json!({"io.modelcontextprotocol/subscriptionId": id});
            let note =
                json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": {"_meta": meta}});
            self.emit(stream, &note, net);
        }
    }

    // ---- the tool

    /// Begins to run the tool, and answers where `place` is.
    fn run(&mut self, body: &Value, round: u64, place: Place, session: Option<String>, slow: bool, net: &mut Net) {
        let Some(work) = work(body) else { return };
        self.count_run(body, round);
        let token = body.pointer("/params/_meta/progressToken").cloned();
        let mut step = Duration::from_millis(work.millis / (work.ticks + work.questions + 1));
        if slow {
            step += Duration::from_millis(31_000 + net.chaos.rng.below(60_000));
        }
        let id = body["id"].clone();
        self.next += 1;
        let task = self.next;
        let begun = Task { id, token, work, round, told: 0, asked: 0, place, session, waits: None, step };
        self.tasks.insert(task, begun);
        self.at(net.now + step, Job::Act(task));
    }

    /// The tool has run, whether or not the client learns of it.
    fn count_run(&mut self, body: &Value, round: u64) {
        if let Some(work) = work(body) {
            *self.runs.entry((work.tag, round)).or_default() += 1;
        }
    }

    fn act(&mut self, of: u64, net: &mut Net) {
        let Some(task) = self.tasks.get_mut(&of).filter(|task| task.waits.is_none()) else { return };
        let step = task.step;
        if task.told < task.work.ticks {
            task.told += 1;
            if let (Some(token), Place::Stream(stream)) = (&task.token, task.place) {
                let params = json!({"progressToken": token, "progress": task.told});
                self.emit(
                    stream,
                    &json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params}),
                    net,
                );
            }
            return self.at(net.now + step, Job::Act(of));
        }
        if self.flavour.era == Era::Legacy && task.asked < task.work.questions {
            task.asked += 1;
            if !self.ask(of, net) {
                self.at(net.now + step, Job::Act(of));
            }
            return;
        }
        let Some(task) = self.tasks.remove(&of) else { return };
        let answer = self.answer(&task);
        match task.place {
            Place::Json(conn) => self.json(conn, 200, &[], &answer, net),
            Place::Stream(stream) => self.answer_on(stream, &answer, net),
        }
    }

    /// Sends the response on a stream, and ends it.
    fn answer_on(&mut self, of: u64, answer: &Value, net: &mut Net) {
        let Some(stream) = self.streams.get_mut(&of) else { return };
        if stream.mute.is_some() {
            return;
        }
        let extra = stream.extra.take();
        self.say_extra(of, extra, answer, net);
        self.emit(of, answer, net);
        if let Some(stream) = self.streams.get_mut(&of) {
            stream.done = true;
        }
        self.detach(of, net);
    }

    fn answer(&self, task: &Task) -> Value {
        let Work { tag, padding, questions, .. } = task.work;
        let modern = self.flavour.era == Era::Modern;
        if modern && task.round < questions {
            let form = json!({"type": "object", "properties": {"answer": {"type": "string"}}});
            let question =
                json!({"method": "elicitation/create", "params": {"message": "go on?", "requestedSchema": form}});
            let state = (task.round + 1).to_string();
            let result =
                json!({"resultType": "input_required", "inputRequests": {"q": question}, "requestState": state});
            return json!({"jsonrpc": "2.0", "id": task.id, "result": result});
        }
        let text = format!("{tag}:{}", "x".repeat(padding));
        let mut result = json!({"content": [{"type": "text", "text": text}]});
        if modern {
            result["resultType"] = "complete".into();
        }
        json!({"jsonrpc": "2.0", "id": task.id, "result": result})
    }
}

/// The arguments of a call of the tool.
fn work(body: &Value) -> Option<Work> {
    Work::deserialize(body.pointer("/params/arguments")?).ok()
}

/// An event of a stream as text.
fn event(of: u64, place: usize, stream: &Stream, ids: bool) -> String {
    let id = ids.then(|| format!("s{of}-{place}"));
    let retry = stream.retry.filter(|_| place == 0 || stream.history[place].is_empty());
    wire::event(id.as_deref(), retry, &stream.history[place])
}
