//! A second reading of the connections of a client: the stream of each request, and whether it is
//! permitted. It sees bytes and times, and only the configuration of the engine.

mod stream;

pub use stream::{Serves, Stream};

use super::wire::{Event, Head, Heard, Request, Requests, Responses};
use mcp_proto::client::{self, Resume, Target};
use mcp_proto::exchange::{Action, ConnectionId, IoEvent, Origin, Shutdown};
use mcp_proto::input::{CallId, ClientCommand, Input, WiredClientInput};
use mcp_proto::{ClientConfig, Instant};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use stream::{LASTING, LATEST, WAIT};

/// A request that was written.
#[derive(Clone, Debug)]
pub struct Sent {
    /// When.
    pub at: Instant,
    /// On which connection.
    pub channel: ConnectionId,
    /// The request.
    pub request: Request,
    /// Its body.
    pub body: Value,
    /// The stream that it begins or resumes.
    pub stream: Option<usize>,
    /// The status of the response.
    pub status: Option<u16>,
    /// Whether the response asks for the same request again, elsewhere or with credentials.
    pub is_asked_again: bool,
    /// The number of bytes of its response.
    pub heard: usize,
    /// Whether its connection had carried another one.
    pub reused: bool,
}

struct Line {
    requests: Requests,
    responses: Responses,
    opened: Instant,
    carried: u32,
    open: Option<Open>,
    /// Bytes are the server's: before TLS those of a tunnel are for the proxy, and from it.
    is_through: bool,
}

/// A request that waits for the end of its answer.
struct Open {
    sent: usize,
    head: Option<Head>,
    delivered: bool,
    advanced: bool,
    is_get: bool,
    /// When the attempt before it ended.
    over_before: Option<Instant>,
}

/// The observations.
pub struct Tap {
    /// Where its connections lead: to the server, or to its proxy.
    pub origin: Origin,
    /// Whether that is a proxy, and whether the connection to the server has TLS.
    is_proxied: bool,
    is_tls: bool,
    /// Every request.
    pub log: Vec<Sent>,
    /// Every stream.
    pub streams: Vec<Stream>,
    /// The fields of every request, by name, with their required value.
    pub fields: Vec<(String, String)>,
    /// The target of the configuration, and those that redirects named.
    targets: BTreeSet<String>,
    authority: String,
    now: Instant,
    lines: BTreeMap<ConnectionId, Line>,
    ids: BTreeMap<String, usize>,
    /// Sessions in their order, and from when on they were the one.
    sessions: Vec<(Instant, Option<String>)>,
    version: Option<String>,
    listener: Option<usize>,
    /// What `Authorization` holds, and from when on.
    grants: Vec<(Instant, Option<String>)>,
    resume: Resume,
    closing: bool,
    ends: u32,
    /// The streams whose response arrived since `look`.
    answered: Vec<usize>,
    /// How many of `log` were looked at.
    looked: usize,
    /// The calls that have ended since then, and how many requests had been written by then.
    ends_of_calls: Vec<(CallId, usize)>,
}

/// Returns the target that a redirect within the origin leads to.
fn within_origin(from: &str, to: &str) -> Option<String> {
    let path = from.split('?').next().unwrap_or_default();
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    match to.chars().next()? {
        _ if to.contains("://") => None,
        '/' => Some(to.into()),
        '?' => Some(format!("{path}{to}")),
        _ => Some(format!("{folder}/{to}")),
    }
}

/// Returns whether two targets differ by the last slash of the path. Then 301 and 302 keep the
/// method of a request.
fn differ_by_slash(one: &str, other: &str) -> bool {
    let (one, other) = (one.split_once('?').unwrap_or((one, "")), other.split_once('?').unwrap_or((other, "")));
    one.1 == other.1 && (one.0.strip_suffix('/') == Some(other.0) || other.0.strip_suffix('/') == Some(one.0))
}

impl Tap {
    /// Of a client with this configuration.
    pub fn new(config: &ClientConfig) -> Self {
        let Target::Http(target) = &config.target else { panic!("a client of a URL") };
        let server = &target.origin;
        let mut origin = server.clone();
        let proxy = config.proxies.route(server).expect("proxies that can be used");
        if let Some(proxy) = proxy {
            (origin.host, origin.port) = (proxy.host().into(), proxy.port());
        }
        Self {
            authority: if server.port == if server.tls { 443 } else { 80 } {
                server.host.to_string()
            } else {
                format!("{}:{}", server.host, server.port)
            },
            is_proxied: proxy.is_some(),
            is_tls: server.tls,
            origin,
            log: Vec::new(),
            streams: Vec::new(),
            answered: Vec::new(),
            looked: 0,
            ends_of_calls: Vec::new(),
            fields: config.headers.iter().map(|(name, value)| (name.to_ascii_lowercase(), value.into())).collect(),
            targets: [target.path.clone()].into(),
            now: Instant::ZERO,
            lines: BTreeMap::new(),
            ids: BTreeMap::new(),
            sessions: vec![(Instant::ZERO, None)],
            version: None,
            listener: None,
            grants: vec![(Instant::ZERO, None)],
            resume: config.resume,
            closing: false,
            ends: 0,
        }
    }

    /// The requests of this method of HTTP.
    pub fn sent<'a>(&'a self, method: &'a str) -> impl Iterator<Item = &'a Sent> {
        self.log.iter().filter(move |sent| sent.request.method == method)
    }

    /// Checks the requests that were written since the last call. `alive` are the tags of the calls
    /// that ran then, and of those that were made since. `tag` is the tag of a call.
    pub(in crate::sim) fn look_at_requests(&mut self, alive: &BTreeSet<u64>, tag: impl Fn(CallId) -> Option<u64>) {
        for (n, sent) in self.log.iter().enumerate().skip(self.looked) {
            let serves = sent.stream.map(|stream| &self.streams[stream].serves);
            if let (Some(Serves::Work(of)), "GET") = (serves, sent.request.method.as_str()) {
                let ended = self.ends_of_calls.iter().any(|(call, before)| *before <= n && tag(*call) == Some(*of));
                let runs = alive.contains(of) && !ended;
                assert!(runs, "the rest of the answer to the call {of} is asked for after its end");
            }
        }
        self.looked = self.log.len();
        self.ends_of_calls.clear();
    }

    /// Checks the responses that came since the last call. `alive` are the tags of the running
    /// calls.
    pub(in crate::sim) fn look(&mut self, alive: &BTreeSet<u64>) {
        for stream in std::mem::take(&mut self.answered) {
            let stream = &self.streams[stream];
            if let (Serves::Work(tag), false) = (&stream.serves, stream.asks) {
                assert!(!alive.contains(tag), "the answer to the call {tag} came, and it goes on");
            }
        }
    }

    /// Keeps an input of the client.
    pub(in crate::sim) fn input(&mut self, now: Instant, input: &WiredClientInput) {
        self.now = now;
        self.closing |= *input == Input::Command(ClientCommand::Close);
        match input {
            Input::Event(channel, IoEvent::Read(bytes)) if self.is_through(*channel) => self.heard(*channel, bytes),
            Input::Event(channel, IoEvent::ReadClosed | IoEvent::Closed(_)) => self.ended(*channel),
            _ => {}
        }
    }

    fn is_through(&self, channel: ConnectionId) -> bool {
        self.lines.get(&channel).is_none_or(|line| line.is_through)
    }

    /// From now on every request has these credentials. A client that closes has no open challenge,
    /// and ignores them.
    pub(in crate::sim) fn grant(&mut self, authorization: String) {
        if !self.closing {
            self.grants.push((self.now, Some(authorization)));
        }
    }

    pub(in crate::sim) fn action(&mut self, action: &Action<client::Event>) {
        match action {
            Action::Open(channel, _) => {
                assert!(!self.closing || self.ends < 2, "a connection after the end");
                let (requests, responses) = (Requests::default(), Responses::default());
                let (carried, open, is_through) = (0, None, !self.is_tls);
                let line = Line { requests, responses, opened: self.now, carried, open, is_through };
                assert!(self.lines.insert(*channel, line).is_none(), "{channel:?} is used twice");
            }
            Action::Secure(channel, _) => {
                let line = self.lines.get_mut(channel).expect("a channel that was opened");
                assert!(!line.is_through, "TLS begins twice, or where there is none");
                line.is_through = true;
            }
            Action::Write(channel, bytes) => {
                let line = self.lines.get_mut(channel).expect("a channel that was opened");
                if !line.is_through {
                    assert!(self.is_proxied && bytes.starts_with(b"CONNECT "), "bytes before TLS");
                    return;
                }
                for request in line.requests.read(bytes) {
                    self.request(*channel, request);
                }
            }
            Action::Close(channel, Shutdown::Abort) => self.ended(*channel),
            Action::Event(client::Event::Ended { call, .. }) => self.ends_of_calls.push((*call, self.log.len())),
            Action::Event(client::Event::ListenerLost { again: Some(_), .. }) => {
                if let Some(listener) = self.listener.map(|listener| &mut self.streams[listener]) {
                    listener.given_up = true;
                    // An attempt without an answer was the last, and is not made once more.
                    if listener.again.take().is_some() {
                        listener.over.get_or_insert(self.now);
                    }
                }
            }
            Action::Read(..) | Action::Close(..) | Action::Notice(..) | Action::Event(_) => {}
        }
    }

    // ---- the output of the client

    fn request(&mut self, channel: ConnectionId, mut request: Request) {
        // Only a proxy that forwards single requests gets its credentials with them.
        let is_forwarded = self.is_proxied && !self.is_tls;
        assert_eq!(request.count("proxy-authorization"), usize::from(is_forwarded), "credentials of the proxy");
        if is_forwarded {
            let path = request.target.strip_prefix("http://").and_then(|rest| rest.strip_prefix(&*self.authority));
            request.target = path.expect("the absolute form").into();
        }
        self.check_fields(&request);
        let body = request.json();
        let line = self.lines.get_mut(&channel).expect("a channel that was opened");
        assert!(line.open.is_none(), "a request before the answer to the one before it");
        line.carried += 1;
        let reused = line.carried > 1;
        let since = if reused { self.now } else { line.opened };
        // A repetition after a dead connection has the age of the original.
        let before = self.log.iter().rfind(|sent| sent.request == request && sent.reused && sent.heard == 0);
        let since = before.map_or(since, |sent| sent.at);
        self.check_era(&request, &body, since);
        let is_get = request.method == "GET";
        let (mut over_before, mut again) = (None, false);
        let stream = match request.method.as_str() {
            "POST" if body.get("method").is_some() && body.get("id").is_some() => Some(self.begin(&request, &body)),
            "POST" => None,
            "GET" => {
                let stream;
                (stream, over_before, again) = self.resume(&request);
                Some(stream)
            }
            "DELETE" => {
                self.ends += 1;
                None
            }
            other => panic!("the method {other}"),
        };
        if self.closing {
            let mut before = self.sent("DELETE");
            if request.method == "POST" && body.get("id").is_none() {
                assert_eq!(before.count(), 0, "{body} after the end of its session");
            } else {
                assert_eq!(request.method, "DELETE", "{body} after the end");
                assert!(before.all(|sent| sent.reused && sent.heard == 0), "a session is ended twice");
                let others = self.lines.iter().filter(|(other, line)| **other != channel && line.open.is_some());
                assert_eq!(others.count(), 0, "the session is ended before what goes on in it");
            }
        }
        let sent = self.log.len();
        let (at, status, is_asked_again) = (self.now, None, false);
        self.log.push(Sent { at, channel, request, body, stream, status, is_asked_again, heard: 0, reused });
        let open = Open { sent, head: None, delivered: false, advanced: false, is_get, over_before };
        if let Some(stream) = stream.filter(|_| !again) {
            self.streams[stream].began = since;
        }
        self.lines.get_mut(&channel).expect("as above").open = Some(open);
    }

    fn check_fields(&self, request: &Request) {
        assert!(self.targets.contains(&request.target), "{}", request.target);
        assert_eq!((request.header("host"), request.count("host")), (Some(self.authority.as_str()), 1));
        let accept = request.header("accept").unwrap_or_default();
        match request.method.as_str() {
            "POST" => {
                assert_eq!(request.header("content-type"), Some("application/json"));
                assert!(accept.contains("application/json") && accept.contains("text/event-stream"), "{accept}");
            }
            "GET" => assert!(accept.contains("text/event-stream") && request.body.is_empty(), "{accept}"),
            _ => assert!(request.body.is_empty()),
        }
        for (name, value) in &self.fields {
            assert_eq!((request.header(name), request.count(name)), (Some(value.as_str()), 1), "the field {name}");
        }
        for name in ["mcp-session-id", "last-event-id", "mcp-protocol-version", "mcp-method", "mcp-name"] {
            assert!(request.count(name) <= 1, "{name} twice");
        }
    }

    /// The fields of the era, and no others. `since`: when the request was made at the earliest.
    fn check_era(&self, request: &Request, body: &Value, since: Instant) {
        let method = body.get("method").and_then(Value::as_str).unwrap_or_default();
        let version = request.header("mcp-protocol-version");
        let session = request.header("mcp-session-id");
        assert!(fits(&self.grants, request.header("authorization"), since), "other credentials than those given last");
        if version == Some("2026-07-28") {
            assert_eq!(request.method, "POST", "2026-07-28 has only POST");
            assert_eq!((session, request.header("last-event-id")), (None, None), "2026-07-28 has no sessions");
            assert_eq!(request.header("mcp-method"), Some(method), "the method is mirrored");
            assert!(!method.is_empty(), "a response to a server of 2026-07-28: {body}");
            if body.get("id").is_some() {
                let inside = body.pointer("/params/_meta/io.modelcontextprotocol~1protocolVersion");
                assert_eq!(inside.and_then(Value::as_str), version, "the revision is in the body too");
            }
            if method == "tools/call" {
                assert_eq!(request.header("mcp-name"), body.pointer("/params/name").and_then(Value::as_str));
            }
            return;
        }
        if method == "initialize" {
            assert_eq!((version, session, request.header("last-event-id")), (None, None, None), "a first request");
            let twice =
                self.lines.values().filter_map(|line| line.open.as_ref()).any(|open| self.is_handshake(open.sent));
            assert!(!twice, "two handshakes at once");
            return;
        }
        assert_eq!(version, self.version.as_deref(), "the revision agreed on, {method}");
        assert!(
            fits(&self.sessions, session, since),
            "session {session:?} on {} {body}, where {:?} were given",
            request.method,
            self.sessions
        );
    }

    fn is_handshake(&self, sent: usize) -> bool {
        let method = self.log[sent].body.get("method").and_then(Value::as_str);
        matches!(method, Some("initialize" | "server/discover"))
    }

    fn begin(&mut self, request: &Request, body: &Value) -> usize {
        let text = body["id"].to_string();
        if let Some(&before) = self.ids.get(&text) {
            let first = &self.log[before];
            assert_eq!(first.body, *body, "an id is used twice");
            // An unchanged repetition: after a challenge or a redirect, or on a dead connection if
            // that is safe.
            let harmless = body.pointer("/params/arguments/harmless").is_none_or(|value| *value == Value::Bool(true));
            let dead = first.reused && first.heard == 0;
            assert!(first.is_asked_again || harmless && dead, "written twice: {body}");
        }
        self.ids.insert(text, self.log.len());
        let serves = match (body["method"].as_str(), body.pointer("/params/arguments/tag").and_then(Value::as_u64)) {
            (Some("tools/call"), Some(tag)) => Serves::Work(tag),
            (Some("subscriptions/listen"), _) => Serves::Listener,
            (method, _) => Serves::Other(method.unwrap_or_default().into()),
        };
        let session = request.header("mcp-session-id").map(String::from);
        self.streams.push(Stream::new(serves, body["id"].clone(), session));
        self.streams.len() - 1
    }

    /// The resumed stream, the start of its idle time, and whether this repeats the latest attempt.
    fn resume(&mut self, request: &Request) -> (usize, Option<Instant>, bool) {
        let session = request.header("mcp-session-id").map(String::from);
        let stream = match request.header("last-event-id") {
            Some(id) => {
                let of = self.streams.iter().rposition(|stream| stream.last_id.as_deref() == Some(id));
                of.unwrap_or_else(|| panic!("{id:?} is the last event of no stream"))
            }
            None => match self.listener.filter(|of| self.streams[*of].session == session) {
                Some(of) => {
                    let stream = &self.streams[of];
                    assert!(stream.last_id.is_none() || stream.refused, "{:?} was forgotten", stream.last_id);
                    of
                }
                None => {
                    self.streams.push(Stream::new(Serves::Listener, Value::Null, session));
                    self.listener = Some(self.streams.len() - 1);
                    return (self.streams.len() - 1, None, false);
                }
            },
        };
        let busy = self.lines.values().filter_map(|line| line.open.as_ref()?.stream(&self.log)).any(|of| of == stream);
        assert!(!busy, "two connections for one stream");
        let now = self.now;
        let stream_log = &mut self.streams[stream];
        assert_eq!(stream_log.session, session, "a stream goes on in another session");
        assert!(!stream_log.answered, "the answer had come: {stream_log:?}");
        let again = stream_log.again.take();
        let over = match again {
            Some(before) => before,
            None => {
                if !stream_log.check_wait(now, self.resume) {
                    // It was given up and is tried from the beginning, which counts as an attempt.
                    (stream_log.empty, stream_log.fruitless, stream_log.short) = (0, 0, 0);
                } else if stream_log.may_have_been_given_up(now) {
                    stream_log.short = 0;
                }
                stream_log.fruitless += 1;
                stream_log.attempts += 1;
                stream_log.over
            }
        };
        (stream_log.over, stream_log.retry_after, stream_log.given_up) = (None, None, false);
        (stream, over, again.is_some())
    }

    // ---- the input of the client

    fn heard(&mut self, channel: ConnectionId, bytes: &[u8]) {
        let Some(line) = self.lines.get_mut(&channel) else { return };
        let Some(open) = &mut line.open else { return };
        self.log[open.sent].heard += bytes.len();
        for heard in line.responses.read(bytes) {
            self.take(channel, heard);
        }
        let Some(line) = self.lines.get(&channel) else { return };
        if let Some(stream) = line.open.as_ref().and_then(|open| open.stream(&self.log)) {
            self.streams[stream].half_retry = line.responses.half_read_retry();
        }
    }

    /// The connection has ended, by whichever side.
    fn ended(&mut self, channel: ConnectionId) {
        let Some(line) = self.lines.get_mut(&channel) else { return };
        if line.carried == 0 {
            let waits = |stream: &&mut Stream| stream.over.is_some() || stream.again.is_some();
            self.streams.iter_mut().filter(waits).for_each(|stream| (stream.unseen, stream.short) = (true, 0));
        }
        for heard in line.responses.end() {
            self.take(channel, heard);
        }
        self.finish(channel);
    }

    fn take(&mut self, channel: ConnectionId, heard: Heard) {
        let Some(open) = self.lines.get_mut(&channel).and_then(|line| line.open.as_mut()) else { return };
        let stream = open.stream(&self.log);
        match heard {
            // The proxy did not pass on the request, and says nothing about it for the server.
            Heard::Head(head) if self.is_proxied && head.status == 407 => self.finish(channel),
            Heard::Head(head) => {
                if let Some(stream) = stream.map(|stream| &mut self.streams[stream]) {
                    if !head.is_success() || open.is_get && !head.is_event_stream() {
                        stream.over.get_or_insert(self.now);
                        stream.retry_after = head.header("retry-after").and_then(|n| n.parse().ok());
                        stream.refused |= !matches!(head.status, 200..=299 | 301..=308 | 401 | 408 | 429 | 502..=504);
                    }
                    if head.is_success() && open.is_get {
                        stream.refused &= !head.is_event_stream();
                    }
                }
                let sent = &mut self.log[open.sent];
                let to = head.header("location").and_then(|to| within_origin(&sent.request.target, to));
                sent.is_asked_again = match head.status {
                    307 | 308 | 401 | 403 => true,
                    301 | 302 => to.as_ref().is_some_and(|to| differ_by_slash(&sent.request.target, to)),
                    _ => false,
                };
                sent.status = Some(head.status);
                self.targets.extend(to);
                open.head = Some(head);
            }
            Heard::Event(event) => self.event(channel, &event),
            Heard::Body(body) => {
                if let Ok(message) = serde_json::from_slice(&body) {
                    self.message(channel, &message);
                }
            }
            Heard::End => {
                let odd = open.head.as_ref().is_some_and(|head| head.is_success() && !head.is_event_stream());
                if let Some(stream) = stream.filter(|_| open.is_get && odd) {
                    self.streams[stream].refused = true;
                }
                self.finish(channel);
            }
            Heard::Broken => self.finish(channel),
        }
    }

    fn event(&mut self, channel: ConnectionId, event: &Event) {
        let Some(open) = self.lines.get_mut(&channel).and_then(|line| line.open.as_mut()) else { return };
        if !open.head.as_ref().is_some_and(Head::is_success) {
            return;
        }
        if let Some(stream) = open.stream(&self.log).map(|stream| &mut self.streams[stream]) {
            let mut repeat = false;
            if let Some(id) = &event.id {
                repeat = stream.latest.iter().any(|(other, data)| other == id && *data == event.data);
                open.advanced |= stream.latest.iter().all(|(other, _)| other != id);
                stream.latest.push_back((id.clone(), event.data.clone()));
                if stream.latest.len() > LATEST {
                    stream.latest.pop_front();
                }
                stream.last_id = Some(id.clone());
            }
            stream.retry = event.retry.or(stream.retry);
            let message: Value = serde_json::from_str(&event.data).unwrap_or_default();
            open.delivered |= !repeat && message.get("jsonrpc").is_some() && message["method"] != "ping";
        }
        if matches!(event.kind.as_str(), "" | "message")
            && let Ok(message) = serde_json::from_str(&event.data)
        {
            self.message(channel, &message);
        }
    }

    fn message(&mut self, channel: ConnectionId, message: &Value) {
        let Some(open) = self.lines.get_mut(&channel).and_then(|line| line.open.as_mut()) else { return };
        let Some(head) = open.head.as_ref().filter(|head| head.is_success()) else { return };
        let session = head.header("mcp-session-id").map(String::from);
        let (sent, stream) = (open.sent, open.stream(&self.log));
        let Some(stream) = stream else { return };
        let is_answer = message.get("result").is_some() || message.get("error").is_some();
        let log = &mut self.streams[stream];
        if !is_answer || message.get("id") != Some(&log.id) || log.answered {
            return;
        }
        log.answered = true;
        log.asks = message.pointer("/result/resultType").is_some_and(|kind| kind == "input_required" || kind == "task");
        self.answered.push(stream);
        if self.log[sent].body["method"] == "initialize"
            && let Some(version) = message.pointer("/result/protocolVersion").and_then(Value::as_str)
        {
            self.version = Some(version.into());
            self.sessions.push((self.now, session));
        }
    }

    /// The exchange on a connection is over.
    fn finish(&mut self, channel: ConnectionId) {
        let Some(open) = self.lines.get_mut(&channel).and_then(|line| line.open.take()) else { return };
        let Some(stream) = open.stream(&self.log) else { return };
        let sent = &self.log[open.sent];
        let (dead, heard, challenged) =
            (sent.reused && sent.heard == 0, sent.heard > 0, matches!(sent.status, Some(301..=308 | 401)));
        let stream = &mut self.streams[stream];
        let lasted = self.now - stream.began >= LASTING;
        let listens = stream.serves == Serves::Listener && open.head.is_some() && (lasted || heard);
        let success = open.head.as_ref().is_some_and(Head::is_event_stream);
        // A `retry` in a truncated event may count or not: the check requires the shorter of the
        // two.
        if let Some(half) = stream.half_retry.take() {
            stream.retry = Some(half.min(stream.retry.unwrap_or(WAIT)));
        }
        if open.is_get && (dead || challenged) {
            // It may be made once more as it was: at once, or with credentials.
            stream.again = Some(open.over_before);
            return;
        }
        stream.delivered = success && open.delivered;
        let is_empty = !success || !(open.delivered || open.advanced || listens);
        stream.empty = if is_empty { stream.empty + 1 } else { 0 };
        stream.short = if lasted { 0 } else { stream.short + 1 };
        if stream.delivered {
            (stream.fruitless, stream.unseen) = (0, false);
        }
        stream.over.get_or_insert(self.now);
    }
}

/// Whether this was the value at any time from `since` on.
fn fits(values: &[(Instant, Option<String>)], value: Option<&str>, since: Instant) -> bool {
    let lasted = |n: usize| values.get(n + 1).is_none_or(|(until, _)| *until >= since);
    (0..values.len()).any(|n| lasted(n) && values[n].1.as_deref() == value)
}

impl Open {
    fn stream(&self, log: &[Sent]) -> Option<usize> {
        log[self.sent].stream
    }
}
