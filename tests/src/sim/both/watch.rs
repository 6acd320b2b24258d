//! A second reading of the output of a server on its connections: its owner, its stream, and
//! whether it is permitted. It sees bytes, and the reported storage. It does not depend on the
//! engine or the applications.

use super::super::app::Mark;
use super::super::web::tap::Serves;
use super::super::web::wire::{Event, Head, Heard, Request, Requests, Responses};
use super::Scenario;
use mcp_proto::Instant;
use mcp_proto::exchange::ConnectionId;
use mcp_proto::input::SessionKey;
use mcp_proto::server::{self, KeptEvent, Sessions};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

/// The maximum overhead of a stored event beside its data.
const OVERHEAD: usize = 64;

/// The peer of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Peer {
    /// The number of the client.
    pub(super) number: u64,
    /// On whose behalf it speaks, where the server asks for that.
    pub(super) principal: Option<u64>,
}

/// A request that was written and is not answered.
#[derive(Clone, Debug)]
struct Asked {
    request: Request,
    body: Value,
    serves: Serves,
    session: Option<String>,
    cursor: Option<String>,
    /// Its session had ended when it was written.
    late: bool,
}

/// The answer that is being written.
#[derive(Debug)]
struct Reply {
    asked: Option<Asked>,
    status: u16,
    /// The stream that it carries, and the place of its next event.
    stream: Option<(u64, usize)>,
    over: bool,
}

struct Conn {
    peer: Peer,
    /// The input of the server is not HTTP.
    opaque: bool,
    requests: Requests,
    responses: Responses,
    asked: VecDeque<Asked>,
    reply: Option<Reply>,
    /// Answers that were complete.
    answered: u64,
}

/// An event of a session that was to be kept.
#[derive(Debug)]
struct Told {
    stream: u64,
    size: usize,
    /// It was evicted out of turn, with all earlier events of its stream, for an event larger than
    /// the limit.
    is_gone: bool,
}

/// A session, open or ended.
#[derive(Debug)]
pub(super) struct Session {
    /// The principal that opened it.
    pub(super) peer: Peer,
    /// Whether it has ended, and whether the application knows.
    pub(super) over: bool,
    told: bool,
    /// The ids of its events: the stream, and the place within.
    pub(super) ids: BTreeMap<String, (u64, usize)>,
    /// Whether the server received `initialized` of its client.
    ready: bool,
    key: Option<SessionKey>,
    /// Its events in their order.
    kept: Vec<Told>,
    /// The calls by the ids of their requests.
    pub(super) works: BTreeMap<String, u64>,
    /// The ids of requests that their client cancelled, also before they were written: the two may
    /// arrive in either order.
    cancels: BTreeSet<String>,
}

#[derive(Default)]
struct Stream {
    events: Vec<Kept>,
    serves: Option<Serves>,
    /// The place of the answer.
    answer: Option<usize>,
    /// When that was written.
    over: Option<Instant>,
    /// The connection that carries it.
    at: Option<ConnectionId>,
}

struct Kept {
    data: String,
    /// Its place among all events of the session.
    ordinal: usize,
    written: bool,
}

/// The observations.
pub(super) struct Watch {
    /// All sessions there ever were.
    pub(super) sessions: BTreeMap<String, Session>,
    /// The ids of questions that were asked in sessions.
    pub(super) questions: Vec<(String, Value)>,
    /// Calls whose answers went on after they had broken off.
    pub(super) resumed: BTreeSet<u64>,
    /// Statuses of responses.
    pub(super) statuses: BTreeMap<u16, u64>,
    /// Events that were kept, and events that were written once more.
    pub(super) events: (u64, u64),
    conns: BTreeMap<ConnectionId, Conn>,
    names: BTreeMap<SessionKey, String>,
    /// Sessions whose id was not seen, and ids whose session was not.
    opened: VecDeque<SessionKey>,
    named: VecDeque<String>,
    /// A session whose end was just confirmed to its client.
    deleted: Option<String>,
    streams: BTreeMap<(SessionKey, u64), Stream>,
    /// The client and the tag of calls that were cancelled.
    cancelled: BTreeSet<(u64, u64)>,
    scenario: Scenario,
    keep: Duration,
}

impl Watch {
    pub(super) fn new(scenario: &Scenario, keep: Duration) -> Self {
        Self {
            sessions: BTreeMap::new(),
            questions: Vec::new(),
            resumed: BTreeSet::new(),
            statuses: BTreeMap::new(),
            events: (0, 0),
            conns: BTreeMap::new(),
            names: BTreeMap::new(),
            opened: VecDeque::new(),
            named: VecDeque::new(),
            deleted: None,
            streams: BTreeMap::new(),
            cancelled: BTreeSet::new(),
            scenario: scenario.clone(),
            keep,
        }
    }

    /// Another server has started, without any earlier state.
    pub(super) fn restarted(&mut self) {
        self.conns.clear();
        self.names.clear();
        self.opened.clear();
        self.named.clear();
        self.streams.clear();
        self.questions.clear();
        self.sessions.values_mut().for_each(|session| (session.over, session.told) = (true, true));
    }

    /// The server shuts down: it ends its listeners, and drops their stored events.
    pub(super) fn shut_down(&mut self) {
        let Self { sessions, streams, .. } = self;
        for session in sessions.values_mut() {
            let Some(key) = session.key else { continue };
            for told in &mut session.kept {
                let stream = streams.get(&(key, told.stream));
                told.is_gone |= stream.is_some_and(|stream| stream.serves == Some(Serves::Listener));
            }
        }
    }

    /// Returns the number of open sessions.
    pub(super) fn open_sessions(&self) -> usize {
        self.sessions.values().filter(|session| !session.over).count()
    }

    // ---- connections

    pub(super) fn open(&mut self, conn: ConnectionId, peer: Peer) {
        let (requests, responses) = (Requests::default(), Responses::default());
        let conn_state =
            Conn { peer, opaque: false, requests, responses, asked: VecDeque::new(), reply: None, answered: 0 };
        assert!(self.conns.insert(conn, conn_state).is_none(), "{conn:?} is used twice");
    }

    /// Later input on it is not parsed.
    pub(super) fn make_opaque(&mut self, conn: ConnectionId) {
        if let Some(conn) = self.conns.get_mut(&conn) {
            conn.opaque = true;
        }
    }

    pub(super) fn gone(&mut self, conn: ConnectionId) {
        self.conns.remove(&conn);
    }

    /// Whether it has carried a request, and none is on it.
    pub(super) fn is_idle(&self, conn: ConnectionId) -> bool {
        self.conns.get(&conn).is_some_and(|conn| conn.answered > 0 && conn.asked.is_empty() && conn.reply.is_none())
    }

    /// A client writes.
    pub(super) fn says(&mut self, conn: ConnectionId, bytes: &[u8]) {
        let Some(line) = self.conns.get_mut(&conn).filter(|line| !line.opaque) else { return };
        let peer = line.peer;
        for request in line.requests.read(bytes) {
            let asked = self.ask(peer, request);
            self.conns.get_mut(&conn).expect("as above").asked.push_back(asked);
        }
    }

    fn ask(&mut self, peer: Peer, request: Request) -> Asked {
        let body = if request.method == "POST" { request.json() } else { Value::Null };
        let tag = body.pointer("/params/arguments/tag").and_then(Value::as_u64);
        let serves = match (request.method.as_str(), body["method"].as_str(), tag) {
            ("GET", ..) | (_, Some("subscriptions/listen"), _) => Serves::Listener,
            (_, Some("tools/call"), Some(tag)) => Serves::Work(tag),
            (http, method, _) => Serves::Other(method.unwrap_or(http).into()),
        };
        let session = request.header("mcp-session-id").map(String::from);
        let cursor = request.header("last-event-id").map(String::from);
        let mut late = false;
        if let Some(known) = session.as_ref().and_then(|id| self.sessions.get_mut(id)) {
            late = known.over;
            if let (Serves::Work(tag), true) = (&serves, known.peer == peer) {
                let id = body["id"].to_string();
                self.cancelled.extend(known.cancels.contains(&id).then_some((peer.number, *tag)));
                known.works.insert(id, *tag);
            }
            if body["method"] == "notifications/cancelled" && known.peer == peer {
                let id = body["params"]["requestId"].to_string();
                self.cancelled.extend(known.works.get(&id).map(|tag| (peer.number, *tag)));
                known.cancels.insert(id);
            }
        }
        Asked { request, body, serves, session, cursor, late }
    }

    /// The server writes.
    pub(super) fn hears(&mut self, now: Instant, conn: ConnectionId, bytes: &[u8]) {
        let Some(line) = self.conns.get_mut(&conn) else { return };
        for heard in line.responses.read(bytes) {
            match heard {
                Heard::Head(head) => self.head(now, conn, &head),
                Heard::Event(event) => self.event(now, conn, &event),
                Heard::Body(body) => self.body(conn, &body),
                Heard::End => {
                    let line = self.conns.get_mut(&conn).expect("as above");
                    line.reply = None;
                    line.answered += 1;
                }
                Heard::Broken => panic!("the server breaks the framing on {conn:?}"),
            }
        }
    }

    // ---- responses

    fn head(&mut self, now: Instant, conn: ConnectionId, head: &Head) {
        *self.statuses.entry(head.status).or_default() += 1;
        let line = self.conns.get_mut(&conn).expect("a connection that is open");
        assert!(line.reply.is_none(), "an answer within an answer");
        let asked = line.asked.pop_front();
        let (peer, opaque) = (line.peer, line.opaque);
        assert!(asked.is_some() || opaque || head.status >= 400, "an answer to nothing: {head:?}");
        let mut reply = Reply { asked: None, status: head.status, stream: None, over: false };
        if let Some(asked) = asked {
            self.judge(now, peer, &asked, head);
            if let (Some((key, stream, next)), true) = (self.place(&asked), head.is_success()) {
                reply.stream = Some((stream, next));
                let log = self.streams.entry((key, stream)).or_default();
                log.at = Some(conn);
                // A client that resumes after the response gets it.
                if log.answer.is_some_and(|answer| next > answer) {
                    log.over.get_or_insert(now);
                }
                if let Some(Serves::Work(tag)) = log.serves {
                    self.resumed.insert(tag);
                }
            }
            reply.asked = Some(asked);
        }
        self.conns.get_mut(&conn).expect("as above").reply = Some(reply);
    }

    /// Returns the position from which a request resumes a stream.
    fn place(&self, asked: &Asked) -> Option<(SessionKey, u64, usize)> {
        let (session, cursor) = (self.sessions.get(asked.session.as_ref()?)?, asked.cursor.as_ref()?);
        let (stream, at) = *session.ids.get(cursor)?;
        Some((session.key?, stream, at + 1))
    }

    /// Whether this may be the answer.
    fn judge(&mut self, now: Instant, peer: Peer, asked: &Asked, head: &Head) {
        let status = head.status;
        let told = || format!("{status} to {} {:?} of {peer:?}", asked.request.method, asked.request);
        if let (Some(id), true) = (head.header("mcp-session-id"), asked.session.is_none()) {
            assert_eq!(asked.serves, Serves::Other("initialize".into()), "a session for something else: {}", told());
            assert!(id.bytes().all(|byte| (0x21..=0x7e).contains(&byte)) && id.len() >= 16, "the session id {id:?}");
            let (ids, kept, works) = (BTreeMap::new(), Vec::new(), BTreeMap::new());
            let cancels = BTreeSet::new();
            let session =
                Session { peer, over: false, told: false, ids, ready: false, key: None, kept, works, cancels };
            assert!(self.sessions.insert(id.into(), session).is_none(), "the session id {id} twice");
            self.named.push_back(id.into());
        }
        if self.scenario.settings.sessions == Sessions::Off
            || asked.request.header("mcp-protocol-version") == Some("2026-07-28")
        {
            return;
        }
        let Some(session) = asked.session.as_ref().map(|id| self.sessions.get_mut(id)) else { return };
        let Some(session) = session else {
            return assert!(is_refusal(status), "served in a session that was never given: {}", told());
        };
        if asked.late {
            return assert!(is_refusal(status), "served in a session that has ended: {}", told());
        }
        if session.peer.principal != peer.principal {
            return assert!(is_refusal(status), "served in the session of {:?}: {}", session.peer, told());
        }
        assert!(status != 404 || session.over, "a session that is there is not found: {}", told());
        if asked.request.method == "DELETE" && head.is_success() {
            session.over = true;
            self.deleted.clone_from(&asked.session);
        }
        session.ready |= status == 202 && asked.body["method"] == "notifications/initialized";
        let session = &self.sessions[asked.session.as_ref().expect("as above")];
        if let Some(cursor) = &asked.cursor {
            let known = session.ids.get(cursor);
            assert!(!head.is_success() || known.is_some(), "goes on after what was never said: {}", told());
            let is_there = known.is_some_and(|(stream, at)| self.is_there(now, session, *stream, *at));
            assert!(status != 400 || !is_there, "the rest of a stream that must be kept is not: {}", told());
        }
    }

    /// Whether an event and all after it must still be kept.
    fn is_there(&self, now: Instant, session: &Session, stream: u64, at: usize) -> bool {
        let Some(log) = session.key.and_then(|key| self.streams.get(&(key, stream))) else { return false };
        // Without an answer to wait for, a stream ends when its call is cancelled.
        let is_cancelled =
            matches!(log.serves, Some(Serves::Work(tag)) if self.cancelled.contains(&(session.peer.number, tag)));
        !is_cancelled
            && log.over.is_none_or(|over| now - over < self.keep)
            && fits(&session.kept[log.events[at].ordinal..], &self.scenario)
    }

    fn body(&mut self, conn: ConnectionId, body: &[u8]) {
        let line = self.conns.get(&conn).expect("a connection that is open");
        let Some(reply) = &line.reply else { return };
        let text = String::from_utf8_lossy(body);
        let serves = reply.asked.as_ref().map(|asked| &asked.serves);
        check_marks(line.peer, serves, &text);
        if reply.status >= 400 {
            let error: Value = serde_json::from_str(&text).unwrap_or_default();
            assert!(error["error"]["code"].is_i64(), "{} with {text:?}", reply.status);
        }
    }

    // ---- events

    fn event(&mut self, now: Instant, conn: ConnectionId, event: &Event) {
        let line = self.conns.get_mut(&conn).expect("a connection that is open");
        let peer = line.peer;
        let reply = line.reply.as_mut().expect("an event has a head before it");
        let asked = reply.asked.as_ref().unwrap_or_else(|| panic!("an event without a request: {event:?}"));
        assert!(!reply.over, "an event after the answer: {event:?}");
        let message: Value = serde_json::from_str(&event.data).unwrap_or_default();
        let session = asked.session.as_ref().and_then(|id| self.sessions.get_mut(id));
        let Some((session, key)) = session.and_then(|session| session.key.map(|key| (session, key))) else {
            assert_eq!(event.id, None, "an event that cannot be resumed from has an id: {asked:?}");
            check_marks(peer, Some(&asked.serves), &event.data);
            reply.over = is_answer(&message) && message["id"] == asked.body["id"];
            return;
        };
        let Some(id) = &event.id else {
            return assert!(event.data.is_empty(), "an event of a session without an id: {event:?}");
        };
        let (stream, at) = *session.ids.get(id).unwrap_or_else(|| panic!("{event:?} was said and not kept"));
        let log = self.streams.get_mut(&(key, stream)).expect("it has an event");
        match reply.stream {
            Some(place) => assert_eq!((stream, at), place, "another event than the next one: {event:?} to {asked:?}"),
            None => {
                let new = log.serves.is_none() && at == 0;
                let listens = asked.serves == Serves::Listener;
                let again = log.serves == Some(Serves::Listener) && listens;
                // Input requests may have been stored for a later listener, and dropped.
                let late = log.serves.is_none() && listens && at > 0 && {
                    let after = &session.kept[log.events[at - 1].ordinal..];
                    after[0].is_gone || !fits(after, &self.scenario)
                };
                assert!(new || again || late, "a stream of {:?} begins with {event:?} for {asked:?}", log.serves);
                log.serves = Some(asked.serves.clone());
                log.at = Some(conn);
            }
        }
        reply.stream = Some((stream, at + 1));
        assert_eq!(log.at, Some(conn), "two connections for one stream: {event:?}");
        check_marks(peer, log.serves.as_ref(), &event.data);
        let kept = &mut log.events[at];
        assert_eq!(kept.data, event.data, "the event {id} is not what was kept");
        let ordinal = kept.ordinal;
        let again = std::mem::replace(&mut kept.written, true);
        reply.over = log.answer == Some(at);
        assert!(!reply.over || log.serves != Some(Serves::Listener), "an answer on a stream without a request");
        if reply.over {
            log.over.get_or_insert(now);
        }
        if again {
            self.events.1 += 1;
            let session = asked.session.clone().expect("as above");
            self.check_history(now, &session, key, ordinal);
        }
    }

    /// An event is replayed: it and all later ones must fit into the limits.
    fn check_history(&self, now: Instant, session: &str, key: SessionKey, ordinal: usize) {
        let held = |told: &&Told| {
            let over = self.streams.get(&(key, told.stream)).and_then(|stream| stream.over);
            !told.is_gone && over.is_none_or(|over| now - over <= self.keep)
        };
        let kept = self.sessions[session].kept[ordinal..].iter().filter(held);
        let (count, bytes) = kept.fold((0, 0), |(count, bytes), told| (count + 1, bytes + told.size));
        assert!(count <= self.scenario.settings.history_events, "{count} events are kept");
        assert!(bytes <= self.scenario.settings.history_bytes, "{bytes} bytes are kept");
    }

    /// The server reports a session, or a stored event.
    pub(super) fn told(&mut self, event: &server::Event) {
        match event {
            server::Event::SessionOpened(key) => self.opened.push_back(*key),
            server::Event::SessionEnded(key, _) => {
                let name = self.names.get(key);
                let session = name.and_then(|name| self.sessions.get_mut(name));
                if let Some(session) = session {
                    assert!(!std::mem::replace(&mut session.told, true), "a session ended twice");
                    session.over = true;
                }
            }
            server::Event::Kept(kept) => self.keep(kept),
            _ => {}
        }
    }

    fn keep(&mut self, kept: &KeptEvent) {
        self.events.0 += 1;
        let name = self.names.get(&kept.session).expect("a session that was opened");
        let session = self.sessions.get_mut(name).expect("it has a name");
        assert!(!session.told, "an event of a session that has ended");
        let stream = self.streams.entry((kept.session, kept.stream)).or_default();
        assert_eq!(stream.answer, None, "an event after the answer: {kept:?}");
        let place = (kept.stream, stream.events.len());
        assert!(session.ids.insert(kept.id.clone(), place).is_none(), "the event id {} twice", kept.id);
        let data = String::from_utf8(kept.data.to_vec()).expect("JSON is text");
        let message: Value = serde_json::from_str(&data).unwrap_or_default();
        if is_answer(&message) {
            stream.answer = Some(place.1);
        }
        if message["method"] == "elicitation/create" {
            self.questions.push((name.clone(), message["id"].clone()));
        }
        stream.events.push(Kept { data, ordinal: session.kept.len(), written: false });
        let (stream, size) = (kept.stream, kept.data.len());
        let is_gone = size > self.scenario.settings.history_bytes;
        if is_gone {
            session.kept.iter_mut().filter(|told| told.stream == stream).for_each(|told| told.is_gone = true);
        }
        session.kept.push(Told { stream, size, is_gone });
    }

    /// The server has no pending output.
    pub(super) fn settle(&mut self) {
        while let Some(name) = self.named.pop_front() {
            let key = self.opened.pop_front().expect("a session id that opened no session");
            self.sessions.get_mut(&name).expect("it was named").key = Some(key);
            assert!(self.names.insert(key, name).is_none(), "a session was opened twice");
        }
        self.opened.clear();
        if let Some(name) = self.deleted.take() {
            assert!(self.sessions[&name].told, "a session that was deleted goes on");
        }
    }

    /// Whether the server knows that the client of a session is ready. After a lost `initialized`
    /// it sends no changes.
    pub(super) fn is_ready(&self, number: u64) -> bool {
        let own = self.sessions.values().filter(|session| session.peer.number == number && !session.over);
        own.max_by_key(|session| session.key).is_none_or(|session| session.ready)
    }

    /// Returns the principal that opened this session.
    pub(super) fn owner(&self, key: SessionKey) -> Option<&Session> {
        self.names.get(&key).and_then(|name| self.sessions.get(name))
    }

    /// Whether a request in this session may be cancelled: its client cancelled it, or the session
    /// is over.
    pub(super) fn may_cancel(&self, key: SessionKey, mark: Mark) -> bool {
        self.cancelled.contains(&(mark.host, mark.tag)) || self.owner(key).is_none_or(|session| session.over)
    }
}

/// Whether these events can all be kept at the same time.
fn fits(events: &[Told], scenario: &Scenario) -> bool {
    let bytes: usize = events.iter().map(|told| told.size + OVERHEAD).sum();
    events.len() <= scenario.settings.history_events && bytes <= scenario.settings.history_bytes
}

fn check_marks(peer: Peer, serves: Option<&Serves>, text: &str) {
    for mark in Mark::all(text) {
        assert_eq!(mark.host, peer.number, "{peer:?} gets a message of another peer: {text}");
        // A question whose own stream was lost is asked on that of the session. The
        // same holds for the completion of a web page whose request is over.
        if serves == Some(&Serves::Listener) && text.contains("elicitation/c") {
            continue;
        }
        assert_eq!(serves, Some(&Serves::Work(mark.tag)), "{peer:?} gets it on another stream: {text}");
    }
}

/// Whether it is the answer to a request.
fn is_answer(message: &Value) -> bool {
    message.get("method").is_none() && (message.get("result").is_some() || message.get("error").is_some())
}

/// Checks the response to a client without such a session.
const fn is_refusal(status: u16) -> bool {
    matches!(status, 401 | 403 | 404 | 408 | 503)
}
