//! Random actions of the application, the server and the network in any order: the invariants after
//! each step, and at the end.

use super::*;
use crate::Authorization;
use crate::InputAnswer;
use crate::client::call_table::{CallStage, CallState};
use crate::client::link::HttpLink;
use crate::client::{EndpointRefresh, HttpMode, ListenerEnd, ListenerStart, ListenerTime, Repeat, Resume, SseDecode};
use crate::input::{AuthKey, NotificationId};
use alloc::collections::{BTreeMap, BTreeSet};
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Step {
    /// A call. `limited`: with the default timeout.
    Call {
        progress: bool,
        limited: bool,
        repeatable: bool,
    },
    Cancel(u64),
    Notify,
    Answer(u64),
    Authorize(u64, bool),
    /// A response to the n-th exchange on the wire, from the latest.
    Serve(usize, Serve),
    /// An event of the n-th exchange, on the wire or not.
    ExchangeEvent(usize, ExchangeEvent),
    Tick(u64),
    /// Advances the time to the next timer.
    TickToNext,
    Close,
}

/// The response of a server to a posted message.
#[derive(Clone, Debug)]
enum Serve {
    /// The correct response.
    Well,
    /// An event with an id, in a stream that may end.
    Prime { retry: Option<u64>, ends: bool },
    /// An empty stream.
    Stream,
    /// An input request on a stream.
    Ask(u64),
    /// Progress on a stream.
    Progress,
    /// An `input_required` result.
    Round(bool),
    /// A status, and its content type.
    Status(u16, &'static str),
    /// A JSON-RPC error with this status.
    Error(u16, i64),
    /// The response in a batch with others.
    Batch,
    /// The end of the response.
    End,
    /// The end of the connection.
    Fail(Sent),
}

fn message() -> impl Strategy<Value = String> {
    let body = prop_oneof![
        2 => Just(r#""result":{}"#),
        2 => Just(r#""result":{"supportedVersions":["2026-07-28"],"capabilities":{}}"#),
        2 => Just(r#""result":{"protocolVersion":"2025-11-25","capabilities":{}}"#),
        1 => Just(r#""result":{"resultType":"input_required","requestState":"s"}"#),
        1 => Just(r#""result":{"resultType":"input_required","inputRequests":{"r":{"method":"roots/list"}}}"#),
        1 => Just(r#""error":{"code":-32022,"message":"","data":{"supported":["2026-07-28"]}}"#),
        1 => Just(r#""error":{"code":-32020,"message":""}"#),
        1 => Just(r#""method":"ping""#),
        1 => Just(r#""method":"roots/list""#),
        1 => Just(r#""method":"notifications/progress","params":{"progressToken":2,"progress":1}"#),
        1 => Just(r#""method":"notifications/cancelled","params":{"requestId":3}"#),
        1 => Just(r#""junk":1"#),
    ];
    (1..9_u64, body).prop_map(|(id, body)| format!(r#"{{"jsonrpc":"2.0","id":{id},{body}}}"#))
}

fn exchange_event() -> impl Strategy<Value = ExchangeEvent> {
    let read = |text: String| match parse(text.into(), 128) {
        Ok(message) => Inbound::Message(message),
        Err(defect) => Inbound::Invalid(defect),
    };
    let event = |text: String| {
        let data = match parse(text.into(), 128) {
            Ok(message) => Data::Message(message),
            Err(defect) => Data::Invalid(defect),
        };
        Inbound::Event(SseEvent { id: Some("x".into()), retry: None, data })
    };
    let head = |(status, kind): (u16, &str)| {
        let headers = Headers::new().with("content-type", kind).with("mcp-session-id", "other");
        Inbound::Response(ResponseHead { status, headers })
    };
    let status = prop_oneof![Just(200), Just(202), Just(400), Just(401), Just(403), Just(404), Just(405), Just(503)];
    let kind = prop_oneof![Just("text/event-stream"), Just("application/json"), Just("text/html")];
    prop_oneof![
        4 => message().prop_map(read).prop_map(ExchangeEvent::Inbound),
        4 => message().prop_map(event).prop_map(ExchangeEvent::Inbound),
        2 => (status, kind).prop_map(head).prop_map(ExchangeEvent::Inbound),
        2 => Just(ExchangeEvent::Inbound(Inbound::End)),
        1 => Just(ExchangeEvent::Inbound(Inbound::Comment)),
        1 => Just(ExchangeEvent::Inbound(Inbound::Body(Bytes::from_static(b"<html>")))),
        1 => Just(ExchangeEvent::Failed { sent: Sent::Maybe, why: Closed::Reset }),
        1 => Just(ExchangeEvent::Failed { sent: Sent::No, why: Closed::Denied("no".into()) }),
        1 => Just(ExchangeEvent::Unsent(7)),
        2 => Just(ExchangeEvent::Waiting),
        1 => Just(ExchangeEvent::Opened(Peer::default())),
    ]
}

fn serve() -> impl Strategy<Value = Serve> {
    const SCOPE: &str = "Bearer error=\"insufficient_scope\"";
    prop_oneof![
        14 => Just(Serve::Well),
        4 => (prop_oneof![Just(None), (0..90_000_u64).prop_map(Some)], any::<bool>())
            .prop_map(|(retry, ends)| Serve::Prime { retry, ends }),
        2 => Just(Serve::Stream),
        2 => (1..4_u64).prop_map(Serve::Ask),
        1 => Just(Serve::Progress),
        2 => any::<bool>().prop_map(Serve::Round),
        6 => prop_oneof![
            Just((401, "Bearer")), Just((401, "Basic")), Just((403, SCOPE)), Just((403, "")), Just((404, "")), Just((404, "")),
            Just((503, "")), Just((405, "")), Just((200, "")), Just((202, "")), Just((307, "")),
        ].prop_map(|(status, hint)| Serve::Status(status, hint)),
        2 => prop_oneof![Just((400, -32020)), Just((404, -32601)), Just((200, -32603)), Just((401, -32001))]
            .prop_map(|(status, code)| Serve::Error(status, code)),
        1 => Just(Serve::Batch),
        2 => Just(Serve::End),
        2 => prop_oneof![Just(Sent::No), Just(Sent::Maybe)].prop_map(Serve::Fail),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (any::<bool>(), any::<bool>(), any::<bool>())
            .prop_map(|(progress, limited, repeatable)| Step::Call { progress, limited, repeatable }),
        1 => (1..7_u64).prop_map(Step::Cancel),
        1 => Just(Step::Notify),
        2 => (1..7_u64).prop_map(Step::Answer),
        3 => (1..7_u64, any::<bool>()).prop_map(|(key, give)| Step::Authorize(key, give)),
        16 => (0..3_usize, serve()).prop_map(|(n, serve)| Step::Serve(n, serve)),
        2 => (0..6_usize, exchange_event()).prop_map(|(n, event)| Step::ExchangeEvent(n, event)),
        2 => (0..9_000_u64).prop_map(Step::Tick),
        2 => Just(Step::TickToNext),
    ]
}

fn config() -> impl Strategy<Value = ClientConfig> {
    let flags = prop::array::uniform6(any::<bool>());
    let resume = prop_oneof![3 => Just(Resume::Progress), 1 => Just(Resume::Strict(2)), 1 => Just(Resume::Never)];
    let repeat = prop_oneof![3 => Just(Repeat::Safe), 1 => Just(Repeat::Always), 1 => Just(Repeat::Never)];
    let end = prop_oneof![3 => Just(ListenerEnd::Resume), 1 => Just(ListenerEnd::Stop), 1 => Just(ListenerEnd::Ignore)];
    let start = prop_oneof![
        4 => Just(ListenerStart::AfterInitialized),
        1 => Just(ListenerStart::BeforeInitialized),
        1 => Just(ListenerStart::Never)
    ];
    let policy = prop_oneof![2 => Just(Policy::Auto), 2 => Just(Policy::Legacy), 1 => Just(Policy::Modern)];
    (flags, resume, repeat, end, start, policy).prop_map(|(flags, resume, repeat, end, start, policy)| {
        let mut config = ClientConfig::url("http://localhost/mcp").unwrap();
        config.capabilities.roots = Some(Default::default());
        (config.resume, config.repeat, config.compat.listener_end, config.compat.listener) =
            (resume, repeat, end, start);
        config.policy = policy;
        let [authorize, plain, watch, ping, strict, quarter] = flags;
        config.http_mode = if quarter && ping { HttpMode::Sse } else { HttpMode::Auto };
        config.compat.endpoint_refresh = if plain { EndpointRefresh::Continue } else { EndpointRefresh::NewSession };
        (config.authorize, config.compat.retry_plain_403, config.watch.tools) = (authorize, plain, watch);
        config.ping = ping.then_some(Duration::from_secs(20));
        config.compat.sse_decode = if strict { SseDecode::Reject } else { SseDecode::Skip };
        config.compat.listener_start = if quarter { ListenerTime::Quarter } else { ListenerTime::After(ms(3_000)) };
        config
    })
}

/// Returns whether a response is awaited on this exchange.
fn awaits(client: &Client, exchange: ExchangeId) -> bool {
    client.cx.link.http().is_some_and(|http| http.awaits(exchange))
}

/// What the server speaks.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Server {
    Modern,
    Legacy,
    /// HTTP+SSE of 2024-11-05.
    Sse,
}

/// A run: the client and a record of its steps.
struct Run {
    http: Http,
    server: Server,
    /// Exchanges whose response head has arrived.
    heads: BTreeSet<ExchangeId>,
    /// The calls, and whether each has a timeout.
    calls: BTreeMap<CallId, bool>,
    notes: BTreeSet<NotificationId>,
    answered: BTreeSet<AuthKey>,
    replied: BTreeSet<InputKey>,
    events: u64,
}

impl Run {
    fn new(config: ClientConfig, server: Server) -> Self {
        let http = Http { rig: Rig::new(config) };
        let (heads, calls, notes, answered, replied) = Default::default();
        Self { http, server, heads, calls, notes, answered, replied, events: 0 }
    }

    /// Returns the exchanges on the wire, from the latest.
    fn on_the_wire(&self) -> Vec<ExchangeId> {
        let rig = &self.http.rig;
        let is_live = |exchange: &ExchangeId| rig.is_open(*exchange) && !rig.over.contains(exchange);
        rig.starts.iter().rev().map(|(exchange, _)| *exchange).filter(is_live).collect()
    }

    fn step(&mut self, step: &Step) {
        let rig = &mut self.http.rig;
        match step {
            Step::Call { progress, limited, repeatable } => {
                let call = tools::call("x");
                let call = if *progress { call.progress() } else { call };
                let call = if *limited { call } else { call.timeout(None) };
                let call = if *repeatable { call.repeatable() } else { call };
                if let Ok(call) = rig.client.call(rig.now, call) {
                    self.calls.insert(call.id(), *limited);
                }
            }
            Step::Cancel(n) => rig.client.cancel(rig.now, CallId(*n), None),
            Step::Notify => {
                self.notes.extend(rig.client.notify_tracked(rig.now, "n", Object::new()));
            }
            Step::Answer(n) => {
                self.replied.insert(InputKey::new(*n));
                rig.reply(InputKey::new(*n), InputAnswer::roots(["file:///"]));
            }
            Step::Authorize(n, give) => {
                let with = Authorization::Headers(Headers::new().with("Authorization", format!("Bearer {n}")));
                let with = if *give { with } else { Authorization::Refuse };
                self.answered.insert(AuthKey::new(*n));
                rig.client.apply(rig.now, Input::Command(ClientCommand::Authorize(AuthKey::new(*n), with))).unwrap();
            }
            Step::Serve(n, serve) => {
                if let Some(exchange) = self.on_the_wire().get(*n).copied() {
                    self.serve(exchange, serve);
                }
            }
            Step::ExchangeEvent(n, event) => {
                let exchange = rig.starts.iter().rev().nth(*n).map(|(exchange, _)| *exchange);
                if let Some(exchange) = exchange {
                    if matches!(event, ExchangeEvent::Inbound(Inbound::Response(_))) {
                        self.heads.insert(exchange);
                    }
                    rig.handle_event(exchange, event.clone());
                }
            }
            Step::Tick(n) => rig.tick(ms(*n)),
            Step::TickToNext => {
                let wait = rig.client.poll_timeout().map_or(Duration::ZERO, |at| at - rig.now);
                rig.tick(wait);
            }
            Step::Close => rig.client.close(rig.now),
        }
        self.http.rig.drain();
    }

    fn serve(&mut self, exchange: ExchangeId, serve: &Serve) {
        let post = self.http.posts().into_iter().find(|post| post.0 == exchange).unwrap();
        let (_, head, body, _) = post;
        let client = &self.http.rig.client;
        // A resumed response answers the original POST.
        let out: Vec<_> = client.cx.calls.iter().filter_map(|(_, state)| CallState::request(state)).collect();
        let call = out
            .into_iter()
            .find(|id| client.cx.env.ids.exchange(id) == Some(exchange))
            .map(|id| json!(id.to_string().parse::<u64>().unwrap()));
        let (id, method) = (&call.unwrap_or(body["id"].clone()), body["method"].as_str().unwrap_or_default());
        if self.server == Server::Sse {
            return self.serve_sse(exchange, serve, &head, &body);
        }
        let is_new = self.heads.insert(exchange);
        let rig = &mut self.http;
        match serve {
            Serve::Fail(sent) => {
                rig.rig.handle_event(exchange, ExchangeEvent::Failed { sent: *sent, why: Closed::Reset })
            }
            Serve::Status(status, hint) if is_new => {
                let headers = Headers::new().with("www-authenticate", *hint);
                rig.item(exchange, Inbound::Response(ResponseHead { status: *status, headers }));
                self.end(exchange);
            }
            Serve::Error(status, code) if is_new => {
                rig.head(exchange, *status);
                self.say(exchange, &error(id, *code), false);
                self.end(exchange);
            }
            Serve::End | Serve::Status(..) | Serve::Error(..) => self.end(exchange),
            Serve::Stream | Serve::Prime { .. } | Serve::Ask(_) | Serve::Progress => {
                if is_new {
                    rig.stream(exchange);
                }
                self.events += 1;
                let n = self.events;
                match serve {
                    Serve::Prime { retry, ends } if self.is_live(exchange) => {
                        self.http.numbered(exchange, &format!("e{n}"), *retry, None);
                        if *ends {
                            self.end(exchange);
                        }
                    }
                    Serve::Ask(n) => {
                        self.say(exchange, &json!({"jsonrpc": "2.0", "id": n, "method": "roots/list"}), true);
                    }
                    Serve::Progress => self.say(exchange, &note(id, n), true),
                    _ => {}
                }
            }
            Serve::Well | Serve::Round(_) | Serve::Batch => match (&*head.method, method) {
                ("GET", _) if is_new => rig.stream(exchange),
                ("GET", _) if *id == Value::Null => self.end(exchange),
                ("GET", _) => {
                    self.say(exchange, &result(id), true);
                    self.end(exchange);
                }
                ("DELETE", _) => self.end(exchange),
                _ if body["id"] == Value::Null || method.is_empty() => self.accept(exchange, is_new),
                (_, "initialize") => {
                    if is_new {
                        let n = self.events;
                        let headers = Headers::new().with("mcp-session-id", format!("s{n}"));
                        rig.item(exchange, Inbound::Response(ResponseHead { status: 200, headers }));
                    }
                    self.say(
                        exchange,
                        &json!({"jsonrpc": "2.0", "id": id, "result": initialized("2025-11-25")}),
                        false,
                    );
                    self.end(exchange);
                }
                (_, "server/discover") if self.server == Server::Modern => {
                    if is_new {
                        rig.head(exchange, 200);
                    }
                    let mut hello = discover(&["2026-07-28"]);
                    hello["capabilities"] = json!({"tools": {"listChanged": true}});
                    self.say(exchange, &json!({"jsonrpc": "2.0", "id": id, "result": hello}), false);
                    self.end(exchange);
                }
                (_, "server/discover") => {
                    if is_new {
                        rig.head(exchange, 400);
                    }
                    self.end(exchange);
                }
                (_, "subscriptions/listen") => {
                    if is_new {
                        rig.stream(exchange);
                    }
                    self.say(exchange, &super::super::subscription::yes(id), true);
                }
                _ => {
                    if is_new {
                        rig.head(exchange, 200);
                    }
                    let round = match serve {
                        Serve::Round(true) => json!({"resultType": "input_required", "requestState": "s"}),
                        Serve::Round(false) => {
                            json!({"resultType": "input_required", "inputRequests": {"r": {"method": "roots/list"}}})
                        }
                        _ => json!({"content": [], "resultType": "complete", "tools": []}),
                    };
                    let answer = json!({"jsonrpc": "2.0", "id": id, "result": round});
                    if let Serve::Batch = serve {
                        let say = |value: &Value| parse(value.to_string().into(), 128);
                        let batch = vec![say(&note(id, 1)), say(&answer), say(&answer), say(&json!({"id": id}))];
                        if self.is_live(exchange) {
                            self.http.item(exchange, Inbound::Batch(batch));
                        }
                    } else {
                        self.say(exchange, &answer, false);
                    }
                    self.end(exchange);
                }
            },
        }
    }

    /// As a server of HTTP+SSE: the responses to POSTs arrive on the stream.
    fn serve_sse(&mut self, exchange: ExchangeId, serve: &Serve, head: &RequestHead, body: &Value) {
        let is_new = self.heads.insert(exchange);
        self.events += 1;
        let n = self.events;
        let is_get = head.method == "GET";
        match serve {
            Serve::Fail(sent) => {
                let event = ExchangeEvent::Failed { sent: *sent, why: Closed::Reset };
                self.http.rig.handle_event(exchange, event);
            }
            Serve::Status(status, hint) if is_new => {
                let headers = Headers::new().with("www-authenticate", *hint);
                self.http.item(exchange, Inbound::Response(ResponseHead { status: *status, headers }));
                self.end(exchange);
            }
            Serve::Error(status, code) if is_new => {
                self.http.head(exchange, *status);
                self.say(exchange, &error(&body["id"], *code), false);
                self.end(exchange);
            }
            Serve::End | Serve::Status(..) | Serve::Error(..) => self.end(exchange),
            _ if is_get && head.target.starts_with("/mcp") => {
                if is_new {
                    self.http.stream(exchange);
                }
                let event = match serve {
                    Serve::Well | Serve::Stream if is_new => format!("/m?s={}", n / 40),
                    Serve::Batch => "/m?s=other".into(),
                    Serve::Round(true) => "https://elsewhere.example/m".into(),
                    Serve::Prime { .. } => String::new(),
                    Serve::Ask(id) => {
                        let ask = json!({"jsonrpc": "2.0", "id": id, "method": "roots/list"});
                        return self.say(exchange, &ask, true);
                    }
                    _ => return self.answer_pending(exchange),
                };
                if self.is_live(exchange) {
                    match serve {
                        Serve::Prime { retry, .. } => self.http.numbered(exchange, &format!("e{n}"), *retry, None),
                        _ => {
                            let data = Data::Other { event: "endpoint".into(), data: event.into() };
                            self.http.item(exchange, Inbound::Event(SseEvent { id: None, retry: None, data }));
                        }
                    }
                }
            }
            _ if body["method"] == "server/discover"
                || body["method"] == "initialize" && head.target.starts_with("/mcp") =>
            {
                if is_new {
                    self.http.head(exchange, 405);
                }
                self.end(exchange);
            }
            _ => {
                self.accept(exchange, is_new);
                let stream = self.http.posts().into_iter().rev().find(|post| post.1.method == "GET");
                if let Some((stream, ..)) = stream.filter(|_| !matches!(serve, Serve::Stream)) {
                    self.answer_pending(stream);
                }
            }
        }
    }

    /// Answers on the stream the request that waits longest.
    fn answer_pending(&mut self, stream: ExchangeId) {
        let client = &self.http.rig.client;
        let call = client.cx.calls.iter().find_map(|(_, state)| CallState::request(state));
        let call = call.map(|id| (json!(id.to_string().parse::<u64>().unwrap()), json!({"content": []})));
        let last = self.http.posts().into_iter().rev().find(|post| post.2["method"] == "initialize");
        let hello = last.map(|post| (post.2["id"].clone(), initialized("2024-11-05")));
        let answered = if client.state() == State::Initializing { hello } else { call };
        if let Some((id, result)) = answered {
            self.say(stream, &json!({"jsonrpc": "2.0", "id": id, "result": result}), true);
        }
    }

    fn accept(&mut self, exchange: ExchangeId, is_new: bool) {
        if is_new {
            self.http.head(exchange, 202);
        }
        self.end(exchange);
    }

    fn is_live(&self, exchange: ExchangeId) -> bool {
        self.http.rig.is_open(exchange) && !self.http.rig.over.contains(&exchange)
    }

    fn say(&mut self, exchange: ExchangeId, body: &Value, as_event: bool) {
        if self.is_live(exchange) {
            match as_event {
                true => self.http.event(exchange, body),
                false => self.http.item(exchange, Inbound::Message(parse(body.to_string().into(), 128).unwrap())),
            }
        }
    }

    fn end(&mut self, exchange: ExchangeId) {
        if self.is_live(exchange) {
            self.http.item(exchange, Inbound::End);
        }
    }

    /// Checks the invariants that hold between inputs.
    fn check(&self) -> Result<(), TestCaseError> {
        let client = &self.http.rig.client;
        let armed = |timer: Timer| client.cx.env.timers.get(timer).is_some();
        // Client and driver agree on the exchanges on the wire.
        let mut wire = self.on_the_wire();
        wire.sort_unstable();
        let live = client.cx.link.http().expect("it is over HTTP").live();
        prop_assert_eq!(&wire, &live);
        // At most one handshake at a time, with a timer.
        let is_initialize = |exchange: &&ExchangeId| {
            let of = |(x, start): &(ExchangeId, Start)| match start {
                Start::Http { body, .. } => x == *exchange && body.windows(12).any(|w| w == b"\"initialize\""),
                Start::Duplex(_) | Start::WebSocket { .. } => false,
            };
            self.http.rig.starts.iter().any(of)
        };
        let is_up = matches!(client.state(), State::Probing | State::Initializing);
        let out = wire.iter().filter(is_initialize).filter(|x| awaits(client, **x)).count();
        prop_assert!(out <= usize::from(is_up), "{} handshakes in {:?}", out, client.state());
        let waits = |call: CallId| client.cx.waits_for_credentials(call);
        // Each call waits for an event or for a timer.
        for (call, state) in client.cx.calls.iter() {
            match &state.stage {
                CallStage::Queued if is_up => prop_assert!(armed(Timer::Start) || waits(call)),
                CallStage::Queued => {
                    prop_assert!(client.cx.link.is_holding() && armed(Timer::Hold), "{:?}", client.state())
                }
                CallStage::Sent(id) => {
                    let exchange = client.cx.env.ids.exchange(id).expect("a request that is out has its id");
                    let http = client.cx.link.http().expect("it is over HTTP");
                    if let Some(stream) = http.sse_stream() {
                        // Its POST is on the wire, waits, or was accepted; the stream brings the
                        // response.
                        prop_assert!(live.contains(&stream) || armed(Timer::Resume(stream)) || waits(call));
                    } else {
                        prop_assert!(awaits(client, exchange), "nothing waits for {id}");
                        prop_assert!(live.contains(&exchange) || armed(Timer::Resume(exchange)) || waits(call));
                    }
                }
                CallStage::Asking { .. } => prop_assert!(client.cx.questions.owes_answer(call)),
                CallStage::Eliciting(_) => {
                    prop_assert!(client.cx.questions.owes_answer(call) || armed(Timer::Elicitation(call)));
                }
                CallStage::Waiting => prop_assert!(armed(Timer::Round(call))),
                CallStage::Task(task) => prop_assert!(task.has_step() || armed(Timer::Round(call))),
                CallStage::Mismatched(_) => {
                    prop_assert!(client.cx.calls.iter().any(|(call, _)| client.cx.calls.is_own(call)))
                }
            }
            // Its timeout runs exactly while the server has to respond.
            if self.calls.get(&call).copied().unwrap_or_default() {
                let is_task = client.cx.calls.task(call).is_some();
                let ours = client.cx.questions.owes_answer(call) || is_task || waits(call);
                prop_assert_eq!(armed(Timer::Call(call)), !ours, "{:?} {:?}", call, &state.stage);
            }
        }
        // Exchanges other than calls and handshakes have their own timer.
        for exchange in &live {
            let is_stream = client.cx.link.http().and_then(HttpLink::sse_stream) == Some(*exchange);
            let has_timer = !is_stream || client.cx.env.config.listener_idle.is_some() || !is_up;
            if !awaits(client, *exchange) && has_timer {
                let timers = [Timer::Answer(*exchange), Timer::Drain(*exchange), Timer::Idle(*exchange)];
                prop_assert!(timers.into_iter().any(armed), "{:?} may last for ever", exchange);
            }
        }
        // A challenge is asked once.
        let mut open = vec![];
        for event in &self.http.rig.events {
            if let Event::AuthNeeded { token, challenge, .. } = event
                && !self.answered.contains(&token.key())
            {
                prop_assert!(!open.contains(challenge), "asked twice");
                open.push(challenge.clone());
            }
        }
        Ok(())
    }

    /// Checks the invariants after the close.
    fn check_end(&mut self) -> Result<(), TestCaseError> {
        let rig = &mut self.http.rig;
        // First the notifications, then the session.
        for _ in 0..2 {
            rig.tick(Duration::from_secs(3600));
        }
        for call in self.calls.keys() {
            let _ = rig.outcome(*call);
        }
        let mut ended: Vec<u64> = rig.notified().into_iter().map(|(id, _)| id).collect();
        ended.sort_unstable();
        prop_assert!(ended.iter().copied().eq(self.notes.iter().map(|id| id.0)), "{:?}: each ends once", ended);
        prop_assert!(matches!(rig.events.last(), Some(Event::Terminated(_))), "the last of all");
        let questions: BTreeSet<InputKey> = rig.questions().into_iter().map(|(key, _)| key).collect();
        let withdrawn = |event: &Event| match event {
            Event::InputWithdrawn(key) => Some(*key),
            _ => None,
        };
        let withdrawn: BTreeSet<InputKey> = rig.events.iter().filter_map(withdrawn).collect();
        prop_assert!(questions.iter().all(|key| withdrawn.contains(key) || self.replied.contains(key)));
        prop_assert!(rig.sent.is_empty(), "a client posts and says nothing else");
        let before = (rig.events.len(), rig.starts.len(), rig.aborted.len());
        rig.client.close(rig.now);
        rig.client.cancel(rig.now, CallId(1), None);
        for exchange in rig.starts.iter().map(|(exchange, _)| *exchange).collect::<Vec<_>>() {
            rig.handle_event(exchange, ExchangeEvent::Inbound(Inbound::End));
        }
        rig.tick(Duration::from_secs(3600));
        prop_assert_eq!(before, (rig.events.len(), rig.starts.len(), rig.aborted.len()), "after the end nothing comes");
        self.http.assert_at_rest();
        Ok(())
    }
}

proptest! {
    // covers: B-281, B-066, B-098, R-27, R-28
    #[test]
    fn random_http_runs_end_every_call_once_and_leave_no_state(
        config in config(),
        server in prop_oneof![Just(Server::Modern), Just(Server::Legacy), Just(Server::Sse)],
        steps in prop::collection::vec(step(), 0..80),
    ) {
        let mut run = Run::new(config, server);
        // Most runs pass the handshake.
        let hello = (0..steps.len() % 7).map(|_| Step::Serve(0, Serve::Well)).collect::<Vec<_>>();
        for step in hello.iter().chain(&steps) {
            let starts = run.http.rig.starts.len();
            run.step(step);
            run.check()?;
            prop_assert!(run.http.rig.starts.len() - starts <= 50, "it loops");
        }
        run.step(&Step::Close);
        run.check_end()?;
    }
}
