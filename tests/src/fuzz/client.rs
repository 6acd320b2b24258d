//! A client with arbitrary input: the first bytes configure it, the rest are steps of its
//! application, its driver and its server.

use super::script::{Script, pieces};
use super::talk;
use crate::sim::report::Transcript;
use bytes::Bytes;
use mcp_proto::client::{Cache, CancelSignal, Event, OnMalformed, Policy};
use mcp_proto::error::DiagnosticKind;
use mcp_proto::exchange::{
    Action, Body, Closed, ConnectionId, Headers, Inbound, IoEvent, Outbound, Peer, Program, ResponseHead, Shutdown,
};
use mcp_proto::frame::{Conn, Kind};
use mcp_proto::input::{CallId, ClientCommand, Input, InputAnswer, InputKey, InputResult, WiredClientInput};
use mcp_proto::model::elicitation::ElicitResult;
use mcp_proto::model::sampling::SampleResult;
use mcp_proto::rpc::{Id, Message, Object, code};
use mcp_proto::wired::WiredClient;
use mcp_proto::{ClientConfig, ErrorObject, Instant, LogLevel, Watch, ping, tools};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// Maximum steps of one script. A shorter script finds the same faults.
const STEPS: usize = 200;

/// For any input, every call ends exactly once, nothing follows the end, limits hold, no state is
/// left, and a replay has the same outputs, for any pieces of the bytes and any times of taking the
/// outputs.
///
/// # Panics
/// If not.
pub fn check(data: &[u8]) {
    let mut script = Script::new(data);
    let mut run = Run::new(&mut script);
    for _ in 0..STEPS {
        if script.is_over() {
            break;
        }
        run.step(&mut script);
    }
    run.end();
    run.replays(u64::from(data.first().copied().unwrap_or_default()));
}

fn config(script: &mut Script<'_>) -> ClientConfig {
    let mut config = match script.below(4) {
        0 | 1 => ClientConfig::program(Program::new("p")),
        2 => ClientConfig::url("http://localhost/mcp").expect("a url"),
        _ => ClientConfig::given(),
    };
    config.policy = *script.pick(&[Policy::Auto, Policy::Modern, Policy::Legacy]);
    let flags = script.byte();
    let flag = |bit: u8| flags >> bit & 1 == 1;
    if flag(0) {
        config = config.with_elicitation();
        let modes = config.capabilities.elicitation.get_or_insert_default();
        (modes.form, modes.url) = (Some(Object::new()), flag(4).then(Object::new));
    }
    if flag(1) {
        config.compat.cancel_signal = CancelSignal::LocalOnly;
    }
    if flag(2) {
        config.compat.malformed = OnMalformed::Fatal;
    }
    if flag(3) {
        config.timeout = None;
    }
    if flag(4) {
        config.capabilities.roots = Some(Default::default());
        config.capabilities.sampling = Some(Default::default());
    }
    config.reset_on_progress = flag(5);
    if flag(5) {
        let mut cache = Cache::default();
        (cache.entries, cache.default_ttl) = (1, Duration::from_secs(2));
        cache.stale_on_error = Some(Duration::from_secs(60));
        config.cache = Some(cache);
    }
    config.compat.match_text_ids = !flag(6);
    let limits = &mut config.limits;
    if flag(7) {
        limits.client.max_calls = 3;
        limits.client.max_watched = 2;
        limits.client.max_inputs = 1;
        limits.client.max_elicitations = 1;
        limits.client.max_rounds = 2;
        limits.client.max_retired = 1;
        limits.client.max_unsent = 600;
        limits.client.drain_items = 2;
        limits.frame.max_line = 700;
        limits.frame.max_event = 400;
        limits.frame.max_response_body = 600;
        limits.frame.max_read_ahead = 300;
        limits.frame.max_connections_per_origin = 2;
        limits.frame.max_streams_per_origin = 1;
    }
    // The events dropped there depend on the times of taking the outputs.
    limits.client.max_queued_events = usize::MAX;
    config
}

/// Some changes to watch.
fn watch(script: &mut Script<'_>) -> Watch {
    let mut watch = Watch::new();
    (watch.tools, watch.resources) = (script.below(2) == 1, script.below(3) == 1);
    (0..script.below(4)).fold(watch, |watch, n| watch.with_uri(format!("a:{n}")))
}

struct Channel {
    /// Reads the output of the client, as a server would.
    reads: Conn,
    opened: bool,
    closed: bool,
    /// Written and not yet reported as such.
    unwritten: usize,
}

/// A request of the client, with its connection.
struct Asked {
    channel: ConnectionId,
    id: Id,
    method: String,
}

struct Run {
    engine: WiredClient,
    config: Arc<ClientConfig>,
    now: Instant,
    log: Vec<(Instant, WiredClientInput)>,
    said: Transcript,
    kind: Kind,
    channels: BTreeMap<ConnectionId, Channel>,
    asked: Vec<Asked>,
    calls: BTreeMap<CallId, bool>,
    questions: BTreeSet<InputKey>,
    terminated: bool,
    /// Bytes came after a response. In two reads, the first could have freed the connection for
    /// another request.
    late: bool,
    /// Connections that the client wants aborted. A driver does it soon.
    aborted: Vec<ConnectionId>,
}

impl Run {
    fn new(script: &mut Script<'_>) -> Self {
        let config = Arc::new(config(script));
        let kind = match config.target {
            mcp_proto::client::Target::Http(_) => Kind::HttpServer,
            _ => Kind::Lines,
        };
        let engine = WiredClient::new(config.clone(), [7; 32], Instant::ZERO);
        let mut run = Self {
            engine,
            config,
            now: Instant::ZERO,
            log: Vec::new(),
            said: Transcript::default(),
            kind,
            channels: BTreeMap::new(),
            asked: Vec::new(),
            calls: BTreeMap::new(),
            questions: BTreeSet::new(),
            terminated: false,
            late: false,
            aborted: Vec::new(),
        };
        run.drain();
        run
    }

    fn step(&mut self, script: &mut Script<'_>) {
        match script.below(16) {
            0 => self.now = self.now + talk::time(script),
            1 | 2 => self.call(script),
            3 => {
                let call = CallId(script.below(6) as u64);
                let _ = self.tell(Input::Command(ClientCommand::Cancel(call, (call.0 == 2).then(|| "why".into()))));
            }
            4 => self.answer(script),
            5 => {
                let note = |method: &str| ClientCommand::Notify(method.to_owned(), Object::new());
                let command = match script.below(8) {
                    0 => note("acme/note"),
                    1 => note("notifications/x"),
                    2 => note("tools/call"),
                    3 => note(""),
                    4 => ClientCommand::RootsChanged,
                    5 => ClientCommand::LogLevel(LogLevel::ALL.get(script.below(9)).copied()),
                    6 => ClientCommand::CredentialsChanged,
                    _ => ClientCommand::Watch(watch(script)),
                };
                let _ = self.tell(Input::Command(command));
            }
            6 | 7 => self.tick(),
            8 => self.open_all(),
            9 | 10 => self.replies(script),
            11 => {
                let text = talk::of_server(script);
                let bytes = self.wrap(script, text);
                let channel = self.channel(script);
                self.handle_event(channel, IoEvent::Read(bytes.into()));
            }
            12 => {
                let bytes = Bytes::copy_from_slice(script.chunk());
                let channel = self.channel(script);
                self.handle_event(channel, IoEvent::Read(bytes));
            }
            13 => self.write_all(),
            14 => {
                let channel = self.channel(script);
                let wire = match script.below(4) {
                    0 => IoEvent::ReadClosed,
                    1 => IoEvent::Opened(Peer::default()),
                    2 => IoEvent::Written(usize::from(script.byte()) * 7),
                    _ => IoEvent::Closed(talk::closed(script)),
                };
                self.handle_event(channel, wire);
            }
            _ => match script.below(8) {
                0 => drop(self.tell(Input::Command(ClientCommand::Close))),
                _ => self.abort_all(),
            },
        }
    }

    /// From here on everything is orderly: the application closes, the driver obeys, time passes.
    fn end(&mut self) {
        let _ = self.tell(Input::Command(ClientCommand::Close));
        for _ in 0..10_000 {
            if self.terminated {
                break;
            }
            self.abort_all();
            match self.engine.poll_timeout() {
                Some(at) => self.now = self.now.max(at),
                None => {
                    // There is no timer: the other side ends.
                    let open: Vec<_> = self.channels.iter().filter(|(_, channel)| !channel.closed).collect();
                    let Some(id) = open.first().map(|(id, _)| **id) else { break };
                    self.handle_event(id, IoEvent::Closed(Closed::Eof));
                }
            }
            self.tick();
        }
        assert!(self.terminated, "it never ends: {:?}", self.engine);
        assert!(self.calls.values().all(|ended| *ended), "a call never ended");
        assert!(self.questions.is_empty(), "a question is left");
        assert_eq!(self.engine.client().running(), 0);
        assert_eq!(self.engine.poll_timeout(), None);
        for wire in [
            IoEvent::Opened(Peer::default()),
            IoEvent::Read(Bytes::from_static(b"{}\n")),
            IoEvent::ReadClosed,
            IoEvent::Written(1),
        ] {
            self.handle_event(ConnectionId(1), wire);
        }
        let refused = self.tell(Input::Command(ClientCommand::Call(ping().into_raw())));
        assert_eq!(refused, None, "a call after the end");
        self.tick();
    }

    /// The same inputs, in other pieces and with outputs taken late, give the same outputs.
    fn replays(&self, cut: u64) {
        let mut engine = WiredClient::new(self.config.clone(), [7; 32], Instant::ZERO);
        let mut said = Transcript::default();
        for (at, input) in &self.log {
            match input {
                Input::Event(channel, IoEvent::Read(bytes)) if !self.late => {
                    for piece in pieces(bytes, cut) {
                        engine.handle_io(*at, *channel, IoEvent::Read(piece));
                    }
                }
                other => drop(engine.apply(*at, other.clone())),
            }
        }
        while let Some(action) = engine.poll_output() {
            said.push(&action);
        }
        assert_eq!(said, self.said);
    }

    // ---- the application

    fn call(&mut self, script: &mut Script<'_>) {
        let raw = match script.below(6) {
            0 => tools::list().into_raw(),
            1 => ping().into_raw(),
            2 => tools::call("t").repeatable().into_raw(),
            3 => tools::call("t").progress().reset_on_progress(true).into_raw(),
            4 => tools::call("t").timeout(None).max_total(Duration::from_secs(5)).into_raw(),
            _ => tools::call("t").progress().timeout(Duration::from_millis(script.below(4) as u64)).into_raw(),
        };
        if let Some(id) = self.tell(Input::Command(ClientCommand::Call(raw))) {
            let running = self.calls.values().filter(|ended| !**ended).count();
            assert!(running <= self.config.limits.client.max_calls, "{id:?} is one too many");
        }
    }

    fn answer(&mut self, script: &mut Script<'_>) {
        if script.below(8) == 7 {
            let id = script.below(3).to_string();
            let _ = self.tell(Input::Command(ClientCommand::Elicited(id)));
            return;
        }
        let key = match script.below(4) {
            3 => InputKey::new(script.below(5) as u64),
            n => self.questions.iter().nth(n).copied().unwrap_or(InputKey::new(1)),
        };
        let answer = match script.below(5) {
            0 => InputAnswer::Elicitation(ElicitResult::Accept(Object::new())),
            1 => InputAnswer::Elicitation(ElicitResult::Cancel),
            2 => InputAnswer::roots(["file:///a"]),
            3 => InputAnswer::Sampling(SampleResult::text("m", "t")),
            _ => InputAnswer::Error(ErrorObject::new(code::INTERNAL_ERROR, "no")),
        };
        self.questions.remove(&key);
        let _ = self.tell(Input::Command(ClientCommand::Answer(key, answer)));
    }

    // ---- the driver

    fn tell(&mut self, input: WiredClientInput) -> Option<CallId> {
        let timeout = self.engine.poll_timeout();
        self.log.push((self.now, input.clone()));
        let call = match self.engine.apply(self.now, input.clone()) {
            Ok(InputResult::Call(id)) => {
                assert!(self.calls.insert(id, false).is_none(), "{id:?} is used twice");
                Some(id)
            }
            Ok(InputResult::Done | InputResult::Notification(_)) => None,
            Err(refused) => {
                assert_eq!(refused.value, input, "it is handed back");
                assert_eq!(self.engine.poll_timeout(), timeout, "a refusal changes nothing");
                assert_eq!(self.engine.poll_output(), None, "a refusal says nothing");
                None
            }
        };
        self.drain();
        call
    }

    fn handle_event(&mut self, channel: ConnectionId, wire: IoEvent) {
        if let Some(known) = self.channels.get_mut(&channel) {
            match &wire {
                IoEvent::Opened(_) => known.opened = true,
                IoEvent::Closed(_) => known.closed = true,
                IoEvent::Written(n) => known.unwritten = known.unwritten.saturating_sub(*n),
                IoEvent::Secured | IoEvent::Read(_) | IoEvent::ReadClosed => {}
            }
        }
        let _ = self.tell(Input::Event(channel, wire));
    }

    fn tick(&mut self) {
        let _ = self.tell(Input::Tick);
        assert!(
            self.engine.poll_timeout().is_none_or(|at| at > self.now),
            "a due timer has not fired: {:?}",
            self.engine.timeout_reason()
        );
    }

    /// Returns one of the newest connections, mostly.
    fn channel(&self, script: &mut Script<'_>) -> ConnectionId {
        let back = script.below(4);
        self.channels.keys().rev().nth(back).or(self.channels.keys().next_back()).copied().unwrap_or(ConnectionId(9))
    }

    fn ids(&self, wanted: impl Fn(&Channel) -> bool) -> Vec<ConnectionId> {
        self.channels.iter().filter(|(_, channel)| !channel.closed && wanted(channel)).map(|(id, _)| *id).collect()
    }

    fn open_all(&mut self) {
        for id in self.ids(|channel| !channel.opened) {
            self.handle_event(id, IoEvent::Opened(Peer::default()));
        }
    }

    fn write_all(&mut self) {
        for id in self.ids(|channel| channel.unwritten > 0) {
            let count = self.channels[&id].unwritten;
            self.handle_event(id, IoEvent::Written(count));
        }
    }

    fn abort_all(&mut self) {
        for id in std::mem::take(&mut self.aborted) {
            if !self.channels[&id].closed {
                self.handle_event(id, IoEvent::Closed(Closed::Aborted));
            }
        }
    }

    /// The server answers one of the newest requests.
    fn replies(&mut self, script: &mut Script<'_>) {
        let back = script.below(3);
        let Some(at) = self.asked.len().checked_sub(1 + back) else { return };
        let asked = self.asked.remove(at);
        let text = talk::answer(script, &asked.id, &asked.method);
        let bytes = self.wrap(script, text);
        self.handle_event(asked.channel, IoEvent::Read(bytes.into()));
    }

    fn wrap(&self, script: &mut Script<'_>, text: String) -> Vec<u8> {
        match self.kind {
            Kind::Lines => (text + "\n").into_bytes(),
            _ => talk::response(script, &text).into_bytes(),
        }
    }

    fn drain(&mut self) {
        while let Some(action) = self.engine.poll_output() {
            assert!(!self.terminated, "after the end: {action:?}");
            self.said.push(&action);
            match action {
                Action::Open(id, _) => {
                    let reads = Conn::new(self.kind, &mcp_proto::limits::FrameLimits::default());
                    let channel = Channel { reads, opened: false, closed: false, unwritten: 0 };
                    assert!(self.channels.insert(id, channel).is_none(), "{id:?} is opened twice");
                    let open = self.ids(|_| true).len();
                    let limits = &self.config.limits.frame;
                    let most = 2 * limits.max_connections_per_origin + limits.max_streams_per_origin;
                    assert!(self.kind == Kind::Lines || open <= most);
                }
                Action::Secure(id, _) => panic!("{id:?} leads to no server with TLS"),
                Action::Write(id, bytes) => self.wrote(id, bytes),
                Action::Close(id, how) => {
                    assert!(self.channels.contains_key(&id), "{id:?} was never opened");
                    if how == Shutdown::Abort {
                        self.aborted.push(id);
                    }
                }
                Action::Read(id, _) => assert!(self.channels.contains_key(&id), "{id:?} was never opened"),
                Action::Notice(..) => {}
                Action::Event(event) => self.event(event),
            }
        }
    }

    fn wrote(&mut self, id: ConnectionId, bytes: Bytes) {
        let channel = self.channels.get_mut(&id).expect("a channel that was opened");
        assert!(channel.opened && !channel.closed, "{id:?} is not open");
        assert!(!bytes.is_empty(), "an empty write");
        channel.unwritten += bytes.len();
        channel.reads.bytes(bytes);
        while let Some(item) = channel.reads.poll_item() {
            match item {
                Inbound::Message(Message::Request(request)) => {
                    self.asked.push(Asked { channel: id, id: request.id, method: request.method.into_owned() });
                }
                Inbound::End => {
                    let head = ResponseHead { status: 200, headers: Headers::new() };
                    channel.reads.encode(Outbound::Response { head, body: Body::Full(Bytes::new()) });
                    while channel.reads.poll_write().is_some() {}
                }
                Inbound::Message(_) | Inbound::Request(_) => {}
                other => panic!("a client wrote {other:?}"),
            }
        }
        assert_eq!(channel.reads.broken(), None);
    }

    fn event(&mut self, event: Event) {
        match event {
            Event::Ended { call, .. } => {
                let ended = self.calls.get_mut(&call);
                let before = ended.map(|ended| std::mem::replace(ended, true));
                assert_eq!(before, Some(false), "{call:?} ends once");
            }
            Event::Progress { call, .. } => assert_eq!(self.calls.get(&call), Some(&false), "progress of {call:?}"),
            Event::InputNeeded { token, call, .. } => {
                assert!(self.questions.insert(token.key()), "asked twice");
                assert!(call.is_none_or(|call| self.calls.get(&call) == Some(&false)), "asked for {call:?}");
                assert!(self.questions.len() <= self.config.limits.client.max_inputs, "too many questions");
            }
            Event::InputWithdrawn(key) => assert!(self.questions.remove(&key), "{key:?} is withdrawn once"),
            Event::Terminated(_) => self.terminated = true,
            Event::Diagnostic(told) if told.kind == DiagnosticKind::LateBytes => self.late = true,
            _ => {}
        }
    }
}
