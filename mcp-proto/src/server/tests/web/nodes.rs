//! Legacy sessions that several servers share: a client reaches any of them with each request.

use super::super::watching::{announces, subscribe, update};
use super::*;
use crate::LogLevel;
use crate::input::{Change, Note, Principal};
use crate::model::logging::LogMessage;
use crate::server::store::{Durability, Incarnation, Memory, Serves, StoreReply, StoreRequest};

/// Servers behind a load balancer, and the store that they share.
struct Nodes {
    sites: Vec<Site>,
    owns: Vec<Option<Incarnation>>,
    store: Memory,
    /// Requests to the store are not carried out, and have no reply.
    is_away: bool,
    /// The requests to the store since the last look, but for those about leases.
    asked: Vec<StoreRequest>,
    /// As whom requests are admitted.
    principal: Option<&'static str>,
}

impl Nodes {
    fn new(count: u8) -> Self {
        Self::with(count, |_| {})
    }

    fn with(count: u8, change: impl Fn(&mut ServerConfig)) -> Self {
        let site = |seed: u8| {
            let mut site = Site::with(|_| {});
            site.bench = Bench::seeded([seed; 32], |config| {
                announces(config);
                config.state_keys = Some([1; 32].into());
                config.store = Some(Memory::SERVES);
                change(config);
            });
            site
        };
        let sites: Vec<Site> = (1..=count).map(site).collect();
        let owns = vec![None; sites.len()];
        let store = Memory::new();
        let mut nodes = Self { sites, owns, store, is_away: false, asked: Vec::new(), principal: None };
        nodes.settle();
        nodes
    }

    fn now(&self) -> Duration {
        self.sites[0].bench.now.since_origin()
    }

    /// Carries out what the servers ask of the store, and delivers what arrives, until nothing is
    /// left.
    fn settle(&mut self) {
        let now = self.now();
        loop {
            let mut is_idle = true;
            for (site, own) in self.sites.iter_mut().zip(&mut self.owns) {
                site.take();
                for event in core::mem::take(&mut site.events) {
                    match event {
                        Event::Store(token, request) => {
                            is_idle = false;
                            match &request {
                                StoreRequest::Join { node, .. } => *own = Some(*node),
                                StoreRequest::Renew { .. } | StoreRequest::Leave { .. } => {}
                                other => self.asked.push(other.clone()),
                            }
                            if !self.is_away {
                                let reply = self.store.apply(now, request);
                                site.bench.server.stored(site.bench.now, token, Ok(reply));
                            }
                        }
                        Event::Admit(token, _) => {
                            is_idle = false;
                            let principal = self.principal.map(|name| Principal(name.into()));
                            site.bench.server.admit(site.bench.now, token, Admission::Accept(principal));
                        }
                        other => site.events.push_back(other),
                    }
                }
                for item in own.filter(|_| !self.is_away).into_iter().flat_map(|own| self.store.take_arrived(now, own))
                {
                    is_idle = false;
                    site.bench.server.arrived(site.bench.now, item);
                }
            }
            if is_idle {
                return;
            }
        }
    }

    fn post(&mut self, at: usize, headers: Headers, body: &str) -> ExchangeId {
        let x = self.sites[at].begin("POST", headers.with("Content-Type", "application/json"));
        self.settle();
        self.sites[at].bench.item(x, read(body));
        self.sites[at].bench.item(x, Inbound::End);
        self.settle();
        x
    }

    fn bare(&mut self, at: usize, method: &str, headers: Headers) -> ExchangeId {
        let x = self.sites[at].begin(method, headers);
        self.settle();
        self.sites[at].bench.item(x, Inbound::End);
        self.settle();
        x
    }

    /// Opens a session at a server.
    fn session(&mut self, at: usize, capabilities: &str) -> Client {
        let x = self.post(at, Headers::new(), &initialize("2025-11-25", capabilities));
        let session = self.sites[at].head(x).headers.get("mcp-session-id").expect("a session").into();
        Client { session, version: "2025-11-25" }
    }

    /// Calls a tool, and returns the whole of what the exchange says.
    fn call(&mut self, at: usize, client: &Client, id: u32) -> Vec<String> {
        let x = self.post(at, client.headers(), &call(id));
        if !self.sites[at].requests.is_empty() {
            let (responder, _) = self.sites[at].handed();
            self.sites[at].complete(responder, "{}");
            self.settle();
        }
        self.sites[at].said(x)
    }

    fn pass(&mut self, time: Duration) {
        self.sites.iter_mut().for_each(|site| site.pass(time));
        self.settle();
    }

    fn asked(&mut self) -> Vec<StoreRequest> {
        core::mem::take(&mut self.asked)
    }

    fn events(&mut self, at: usize) -> Vec<Event> {
        let site = &mut self.sites[at];
        core::iter::from_fn(|| site.event()).collect()
    }
}

const SECOND: Duration = Duration::from_secs(1);

fn ok(id: u32) -> [String; 1] {
    [format!("200 {}", answer(id))]
}

// covers: HTTP-S-010
#[test]
fn session_goes_on_at_every_server() {
    let mut nodes = Nodes::new(2);
    let client = nodes.session(0, "{}");
    let x = nodes.post(1, client.headers(), r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    assert_eq!(nodes.sites[1].said(x), ["202 "]);
    nodes.asked();
    for id in 0..20 {
        let at = usize::try_from(id % 2).unwrap();
        assert_eq!(nodes.call(at, &client, id), ok(id), "call {id} at server {at}");
    }
    // One of them has not had the session before, and both keep it alive.
    let asked = nodes.asked();
    assert!(asked.len() <= 3, "{asked:?}");
}

#[test]
fn call_costs_no_more_than_one_request_to_the_store() {
    let mut nodes = Nodes::new(2);
    let client = nodes.session(0, "{}");
    nodes.call(1, &client, 1);
    for id in 2..200 {
        nodes.asked();
        nodes.pass(SECOND);
        assert_eq!(nodes.call(1, &client, id), ok(id));
        let asked = nodes.asked();
        assert!(asked.len() <= 1, "{asked:?}");
    }
}

// covers: SHTTP-S-021
#[test]
fn session_that_ends_at_one_server_ends_at_all() {
    let mut nodes = Nodes::new(3);
    let client = nodes.session(0, "{}");
    (0..3).for_each(|at| assert_eq!(nodes.call(at, &client, 7 + at as u32), ok(7 + at as u32)));
    // A call runs at one of them.
    let x = nodes.post(2, client.headers(), &call(1));
    let (responder, _) = nodes.sites[2].handed();
    let deleted = nodes.bare(1, "DELETE", client.headers());
    assert_eq!(nodes.sites[1].said(deleted), [r#"200 {"success":true}"#]);
    assert!(nodes.sites[2].said(x)[0].contains("-32603"));
    nodes.sites[2].complete(responder, "{}");
    for at in 0..3 {
        let x = nodes.post(at, client.headers(), &call(2));
        assert_eq!(nodes.sites[at].refusal(x).0, 404);
        let ended = nodes.events(at).into_iter().filter(|event| matches!(event, Event::SessionEnded(..))).count();
        assert_eq!(ended, 1, "server {at}");
    }
    assert_eq!(nodes.store.sessions(nodes.now()), 0);
}

// covers: HTTP-S-013, ELIC-S-001
#[test]
fn question_of_one_server_is_answered_at_another() {
    let mut nodes = Nodes::new(2);
    let client = nodes.session(0, r#"{"elicitation":{}}"#);
    let x = nodes.post(0, client.headers().with("Accept", "text/event-stream, application/json"), &call(1));
    let (responder, _) = nodes.sites[0].handed();
    nodes.sites[0].bench.answer(responder, ask("q"));
    nodes.settle();
    let said = nodes.sites[0].said(x);
    let question = said.iter().find(|line| line.contains("elicitation/create")).unwrap();
    let crate::rpc::Message::Request(question) = message(event(question).1) else { panic!("{said:?}") };
    let crate::rpc::Id::Int(id) = question.id else { panic!("{said:?}") };
    assert!(id < 1 << 53 && id >> 32 == i64::from(nodes.owns[0].unwrap().tag().0));
    let accept = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"action":"accept","content":{{"it":"yes"}}}}}}"#);
    let answered = nodes.post(1, client.headers(), &accept);
    assert_eq!(nodes.sites[1].said(answered), ["202 "]);
    let (responder, incoming) = nodes.sites[0].handed();
    assert!(incoming.inputs["q"].as_ref().is_ok_and(|answer| answer.as_str().contains("yes")));
    nodes.finish(0, responder);
    assert!(nodes.sites[0].said(x).iter().any(|line| line.contains(&answer(1))));
    // Once more: the question is closed, which the server that has asked knows.
    let again = nodes.post(1, client.headers(), &accept);
    assert_eq!((nodes.sites[1].said(again), nodes.sites[0].codes()), (vec!["202 ".into()], vec!["late-answer"]));
}

#[test]
fn answer_to_a_server_that_is_gone_is_accepted_and_reported() {
    let mut nodes = Nodes::new(2);
    let client = nodes.session(0, "{}");
    let id = i64::from(u32::MAX >> 12) << 32 | 1;
    let x = nodes.post(1, client.headers(), &format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#));
    assert_eq!((nodes.sites[1].said(x), nodes.sites[1].codes()), (vec!["202 ".into()], vec!["late-answer"]));
    nodes.is_away = true;
    let x = nodes.post(1, client.headers(), &format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#));
    assert_eq!(nodes.sites[1].said(x), [""; 0]);
    nodes.pass(2 * SECOND);
    assert_eq!(nodes.sites[1].refusal(x).0, 503);
}

// covers: RSUB-C-001, LOG-S-005
#[test]
fn what_a_client_sets_at_one_server_holds_at_all() {
    let mut nodes = Nodes::new(2);
    let client = nodes.session(0, "{}");
    let own = nodes.bare(0, "GET", client.headers().with("Accept", "text/event-stream"));
    let x = nodes.post(1, client.headers(), &subscribe(1, "a:1"));
    assert_eq!(nodes.sites[1].said(x), [r#"200 {"jsonrpc":"2.0","id":1,"result":{}}"#]);
    let updates = |nodes: &mut Nodes| {
        let said = nodes.sites[0].said(own);
        let lines = said.iter().filter(|line| line.contains("resources/updated"));
        lines.map(|line| update(event(line).1).0).collect::<Vec<_>>()
    };
    // It may have missed one before it learned of the subscription.
    assert_eq!(updates(&mut nodes), ["a:1"]);
    let bench = &mut nodes.sites[1].bench;
    bench.server.publish(bench.now, Change::Resource("a:1/part".into()));
    nodes.settle();
    assert_eq!(updates(&mut nodes), ["a:1/part"]);
    let level = legacy("2", "logging/setLevel", r#"{"level":"error"}"#);
    nodes.post(1, client.headers(), &level);
    let x = nodes.post(0, client.headers().with("Accept", "text/event-stream, application/json"), &call(3));
    let (responder, _) = nodes.sites[0].handed();
    for (level, is_sent) in [(LogLevel::Info, false), (LogLevel::Error, true)] {
        let note = Note::Log(LogMessage::new(level, "x"));
        let bench = &mut nodes.sites[0].bench;
        assert_eq!(bench.server.notify(bench.now, responder.key(), note).is_ok(), is_sent, "{level:?}");
    }
    drop((responder, x));
    // It ends at one server, too.
    let x = nodes.post(1, client.headers(), &legacy("4", "resources/unsubscribe", r#"{"uri":"a:1"}"#));
    assert!(nodes.sites[1].said(x)[0].starts_with("200 "));
    let bench = &mut nodes.sites[1].bench;
    bench.server.publish(bench.now, Change::Resource("a:1".into()));
    nodes.settle();
    assert_eq!(updates(&mut nodes), [""; 0]);
}

#[test]
fn changes_at_two_servers_at_once_are_merged() {
    let mut nodes = Nodes::new(3);
    let client = nodes.session(0, "{}");
    (0..3).for_each(|at| drop(nodes.call(at, &client, 9 + at as u32)));
    // Both are on their way before either arrives.
    nodes.is_away = true;
    nodes.post(0, client.headers(), &subscribe(1, "a:0"));
    nodes.post(1, client.headers(), &subscribe(2, "a:1"));
    nodes.is_away = false;
    (0..4).for_each(|_| nodes.pass(SECOND));
    let own = nodes.bare(2, "GET", client.headers().with("Accept", "text/event-stream"));
    for uri in ["a:0", "a:1"] {
        let bench = &mut nodes.sites[0].bench;
        bench.server.publish(bench.now, Change::Resource(uri.into()));
        nodes.settle();
    }
    let said = nodes.sites[2].said(own).concat();
    assert!(said.contains(r#""uri":"a:0""#) && said.contains(r#""uri":"a:1""#), "{said}");
}

// covers: B-146
#[test]
fn session_belongs_to_its_principal_at_every_server() {
    let mut nodes = Nodes::with(2, |config| config.admit = true);
    nodes.principal = Some("ada");
    let client = nodes.session(0, "{}");
    for (name, status) in [(Some("bob"), 404), (None, 404), (Some("ada"), 200), (Some("bob"), 404)] {
        nodes.principal = name;
        for at in [1, 0] {
            for body in [call(1), r#"{"jsonrpc":"2.0","id":1,"result":{}}"#.into()] {
                let x = nodes.post(at, client.headers(), &body);
                while !nodes.sites[at].requests.is_empty() {
                    let (responder, _) = nodes.sites[at].handed();
                    nodes.sites[at].complete(responder, "{}");
                }
                let said = nodes.sites[at].said(x);
                let last = said.last().unwrap();
                let accepted = last.starts_with("200 ") || last.starts_with("202 ");
                assert_eq!(accepted, status == 200, "{name:?} {said:?}");
            }
            let methods: &[&str] = if status == 200 { &[] } else { &["GET", "DELETE"] };
            for method in methods {
                let x = nodes.bare(at, method, client.headers().with("Accept", "text/event-stream"));
                assert!(nodes.sites[at].said(x).last().unwrap().starts_with("404 "), "{name:?} {method}");
            }
        }
    }
}

// covers: B-148
#[test]
fn id_that_no_server_made_never_reaches_the_store() {
    let mut nodes = Nodes::new(1);
    nodes.asked();
    for session in ["x", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"] {
        let client = Client { session: session.into(), version: "2025-11-25" };
        let x = nodes.post(0, client.headers(), &call(1));
        assert_eq!(nodes.sites[0].refusal(x).0, 404);
    }
    assert_eq!(nodes.asked(), []);
}

#[test]
fn without_the_store_sessions_get_503_and_the_rest_goes_on() {
    let mut nodes = Nodes::new(2);
    let client = nodes.session(0, "{}");
    nodes.call(0, &client, 1);
    nodes.is_away = true;
    // The server has a copy, for a time.
    nodes.pass(10 * SECOND);
    assert_eq!(nodes.call(0, &client, 2), ok(2));
    nodes.pass(21 * SECOND);
    let waiting = [
        (0, nodes.post(0, client.headers(), &call(3))),
        (1, nodes.post(1, client.headers(), &call(4))),
        (1, nodes.post(1, Headers::new(), &initialize("2025-11-25", "{}"))),
        (0, nodes.bare(0, "GET", client.headers().with("Accept", "text/event-stream"))),
    ];
    // An exchange whose client leaves meanwhile is forgotten.
    let left = nodes.post(1, client.headers(), &call(5));
    nodes.sites[1].cut(left);
    nodes.pass(2 * SECOND);
    for (at, x) in waiting {
        assert_eq!(nodes.sites[at].head(x).headers.get("Retry-After"), Some("1"));
        assert_eq!(nodes.sites[at].refusal(x).0, 503);
    }
    let modern = Headers::new().with("MCP-Protocol-Version", "2026-07-28").with("Mcp-Method", "tools/list");
    let x = nodes.post(1, modern, &super::super::modern("1", "tools/list", ""));
    let (responder, _) = nodes.sites[1].handed();
    nodes.sites[1].complete(responder, "{}");
    assert!(nodes.sites[1].said(x)[0].starts_with("200 "));
    nodes.is_away = false;
    nodes.pass(2 * SECOND);
    assert_eq!(nodes.call(1, &client, 6), ok(6));
}

#[test]
fn session_ends_when_no_server_is_asked_for_it() {
    let mut nodes = Nodes::with(2, |config| config.limits.server.session_idle = Duration::from_secs(600));
    let (unused, used) = (nodes.session(0, "{}"), nodes.session(0, "{}"));
    let listening = nodes.session(0, "{}");
    nodes.call(1, &used, 1);
    nodes.bare(1, "GET", listening.headers().with("Accept", "text/event-stream"));
    (0..13).for_each(|_| nodes.pass(5 * SECOND));
    // It was never used after its start.
    assert_eq!(nodes.store.sessions(nodes.now()), 2);
    let x = nodes.post(0, unused.headers(), &call(2));
    assert_eq!(nodes.sites[0].refusal(x).0, 404);
    // In steps that the leases survive.
    (0..240).for_each(|_| nodes.pass(5 * SECOND));
    assert_eq!(nodes.store.sessions(nodes.now()), 1, "its stream is open");
    let x = nodes.post(1, used.headers(), &call(3));
    assert_eq!(nodes.sites[1].refusal(x).0, 404);
    assert_eq!(nodes.call(0, &listening, 4), ok(4));
}

#[test]
fn record_that_cannot_be_read_is_an_unknown_session() {
    let mut nodes = Nodes::new(2);
    let client = nodes.session(0, "{}");
    let Some(StoreRequest::Open { session, .. }) = nodes.asked().pop() else { panic!("it was opened") };
    let newer = r#"{"format":2}"#.into();
    let now = nodes.now();
    assert_eq!(nodes.store.apply(now, StoreRequest::Change { session, version: 1, record: newer }), StoreReply::Done);
    let x = nodes.post(1, client.headers(), &call(1));
    assert_eq!(nodes.sites[1].refusal(x).0, 404);
    assert_eq!(nodes.sites[1].codes()[..1], ["record-corrupt"]);
}

#[test]
fn loads_are_bounded_and_one_serves_many_requests() {
    let mut nodes = Nodes::new(2);
    let clients: Vec<Client> = (0..65).map(|_| nodes.session(0, "{}")).collect();
    nodes.asked();
    nodes.is_away = true;
    let waiting: Vec<ExchangeId> = clients.iter().map(|client| nodes.post(1, client.headers(), &call(1))).collect();
    let again = nodes.post(1, clients[0].headers(), &call(2));
    assert_eq!(nodes.asked().len(), 64);
    assert_eq!(nodes.sites[1].refusal(waiting[64]).0, 503);
    nodes.pass(2 * SECOND);
    nodes.is_away = false;
    assert_eq!(nodes.sites[1].refusal(again).0, 503);
    assert!(waiting[..64].iter().all(|x| nodes.sites[1].refusal(*x).0 == 503));
    assert!(nodes.sites[1].bench.server.wire.env.node.as_ref().unwrap().loading.is_empty());
}

/// The fields of a request whose response may be a stream.
fn streaming(client: &Client) -> Headers {
    client.headers().with("Accept", "application/json, text/event-stream")
}

impl Nodes {
    /// Begins a call whose response becomes a stream at once.
    fn stream(&mut self, at: usize, client: &Client, id: u32) -> (ExchangeId, Responder) {
        let x = self.post(at, streaming(client), &call(id));
        let (responder, _) = self.sites[at].handed();
        (x, responder)
    }

    fn progress(&mut self, at: usize, responder: &Responder, value: f64) {
        let bench = &mut self.sites[at].bench;
        bench.server.notify(bench.now, responder.key(), Note::Progress(crate::model::Progress::new(value))).unwrap();
        self.settle();
    }

    fn finish(&mut self, at: usize, responder: Responder) {
        self.sites[at].complete(responder, "{}");
        self.settle();
    }

    fn resume(&mut self, at: usize, client: &Client, cursor: &str) -> ExchangeId {
        self.bare(at, "GET", client.after(cursor).with("Accept", "text/event-stream"))
    }

    /// The node ends without a word.
    fn kill(&mut self, at: usize) {
        self.owns[at] = None;
        let dead = core::mem::replace(&mut self.sites[at], Site::with(|_| {}));
        drop(dead);
    }
}

/// Returns the ids of events, and the data of those that have some.
fn events(said: &[String]) -> (Vec<&str>, Vec<&str>) {
    let events = said.iter().filter(|line| line.contains('|')).map(|line| event(line));
    let (ids, data): (Vec<&str>, Vec<&str>) = events.unzip();
    (ids, data.into_iter().filter(|data| !data.is_empty()).collect())
}

// covers: B-043, S3-34
#[test]
fn event_is_sent_once_the_store_has_it() {
    let mut nodes = Nodes::new(1);
    let client = nodes.session(0, "{}");
    let (x, responder) = nodes.stream(0, &client, 1);
    nodes.is_away = true;
    nodes.progress(0, &responder, 1.0);
    let said = nodes.sites[0].said(x);
    assert_eq!(said, ["200 stream", ":"], "the head, and nothing of the stream");
    nodes.is_away = false;
    nodes.pass(3 * SECOND);
    nodes.pass(SECOND);
    let said = nodes.sites[0].said(x);
    let (ids, data) = events(&said);
    assert_eq!((ids.len(), data.len()), (2, 1), "{said:?}");
    nodes.finish(0, responder);
    let said = nodes.sites[0].said(x);
    assert_eq!((events(&said).1, said.last().unwrap().as_str()), (vec![answer(1).as_str()], "end"));
}

// covers: SHTTP-S-028, S3-13, B-222
#[test]
fn stream_is_resumed_at_another_server_while_its_request_runs() {
    let mut nodes = Nodes::new(3);
    let client = nodes.session(0, "{}");
    let (x, responder) = nodes.stream(0, &client, 1);
    nodes.progress(0, &responder, 1.0);
    nodes.progress(0, &responder, 2.0);
    let said = nodes.sites[0].said(x);
    let first = events(&said).0[1].to_owned();
    nodes.sites[0].cut(x);
    // What it has missed, then what follows.
    let there = nodes.resume(1, &client, &first);
    let said = nodes.sites[1].said(there);
    let (ids, data) = events(&said);
    assert_eq!((ids.len(), data.len()), (1, 1), "{said:?}");
    assert!(data[0].contains(r#""progress":2"#), "{said:?}");
    nodes.progress(0, &responder, 3.0);
    let said = nodes.sites[1].said(there);
    assert!(said[0].contains(r#""progress":3"#), "{said:?}");
    // A third server, from the beginning; and back to the one that runs it.
    let beginning = format!("{}-1", first.rsplit_once('-').unwrap().0);
    let third = nodes.resume(2, &client, &beginning);
    assert_eq!(events(&nodes.sites[2].said(third)).1.len(), 3);
    let back = nodes.resume(0, &client, &beginning);
    assert_eq!(events(&nodes.sites[0].said(back)).1.len(), 3);
    nodes.finish(0, responder);
    for (at, x) in [(0, back), (1, there), (2, third)] {
        let said = nodes.sites[at].said(x);
        assert_eq!((events(&said).1, said.last().unwrap().as_str()), (vec![answer(1).as_str()], "end"), "server {at}");
    }
    // Also once it is over.
    let late = nodes.resume(2, &client, &beginning);
    let said = nodes.sites[2].said(late);
    assert_eq!((events(&said).1.len(), said.last().unwrap().as_str()), (4, "end"));
    nodes.pass(61 * SECOND);
    let gone = nodes.resume(2, &client, &beginning);
    assert_eq!(nodes.sites[2].refusal(gone).0, 400);
    assert!(nodes.sites.iter().all(|site| site.bench.server.streams() == 0));
}

#[test]
fn requests_of_a_lost_server_end_with_an_error_once() {
    let mut nodes = Nodes::new(3);
    let client = nodes.session(1, "{}");
    let (x, responder) = nodes.stream(0, &client, 1);
    nodes.progress(0, &responder, 1.0);
    let said = nodes.sites[0].said(x);
    let cursor = events(&said).0[1].to_owned();
    drop(responder);
    nodes.kill(0);
    let two = [1, 2].map(|at| (at, nodes.resume(at, &client, &cursor)));
    for _ in 0..20 {
        nodes.sites[1].bench.pass(SECOND);
        nodes.sites[2].bench.pass(SECOND);
        nodes.sites[0].bench.now = nodes.sites[1].bench.now;
        nodes.settle();
    }
    for (at, x) in two {
        let said = nodes.sites[at].said(x);
        let (_, data) = events(&said);
        assert_eq!(data.len(), 1, "server {at}: {said:?}");
        let lost = error(data[0]);
        assert_eq!((lost.code, said.last().unwrap().as_str()), (-32603, "end"));
        assert!(lost.message.contains("was lost"));
    }
    let codes = [nodes.sites[1].codes(), nodes.sites[2].codes()].concat();
    assert_eq!(codes.iter().filter(|code| **code == "node-lost").count(), 1, "{codes:?}");
}

#[test]
fn server_that_was_taken_for_dead_writes_nothing_more() {
    let mut nodes = Nodes::new(2);
    let client = nodes.session(1, "{}");
    let (x, responder) = nodes.stream(0, &client, 1);
    nodes.progress(0, &responder, 1.0);
    let said = nodes.sites[0].said(x);
    let cursor = events(&said).0[1].to_owned();
    // It sleeps, and the other one goes on.
    let there = nodes.resume(1, &client, &cursor);
    for _ in 0..20 {
        nodes.sites[1].bench.pass(SECOND);
        let now = nodes.sites[1].bench.now.since_origin();
        let own = nodes.owns[1].unwrap();
        loop {
            nodes.sites[1].take();
            let pending: Vec<Event> = core::mem::take(&mut nodes.sites[1].events).into();
            let mut is_idle = true;
            for event in pending {
                if let Event::Store(token, request) = event {
                    is_idle = false;
                    let reply = nodes.store.apply(now, request);
                    let bench = &mut nodes.sites[1].bench;
                    bench.server.stored(bench.now, token, Ok(reply));
                }
            }
            for item in nodes.store.take_arrived(now, own) {
                let bench = &mut nodes.sites[1].bench;
                bench.server.arrived(bench.now, item);
            }
            if is_idle {
                break;
            }
        }
    }
    let said = nodes.sites[1].said(there);
    assert_eq!(error(events(&said).1[0]).code, -32603, "{said:?}");
    // It wakes, and answers.
    nodes.sites[0].bench.now = nodes.sites[1].bench.now;
    nodes.sites[0].complete(responder, "{}");
    nodes.settle();
    assert_eq!(nodes.sites[0].said(x), ["abort"]);
    assert!(nodes.sites[0].codes().contains(&"fenced"));
    let whole = nodes.resume(1, &client, &cursor);
    assert_eq!(events(&nodes.sites[1].said(whole)).1.len(), 1, "the error, and no answer");
}

// covers: HTTP-S-036
#[test]
fn own_stream_of_a_session_moves_with_its_get() {
    let mut nodes = Nodes::new(2);
    let client = nodes.session(0, "{}");
    let get = |nodes: &mut Nodes, at| nodes.bare(at, "GET", client.headers().with("Accept", "text/event-stream"));
    let tools = |said: &[String]| said.iter().filter(|line| line.contains("tools/list_changed")).count();
    let first = get(&mut nodes, 0);
    nodes.sites[0].said(first);
    let publish = |nodes: &mut Nodes| {
        let bench = &mut nodes.sites[0].bench;
        bench.server.publish(bench.now, Change::Tools);
        nodes.settle();
    };
    publish(&mut nodes);
    assert_eq!(tools(&nodes.sites[0].said(first)), 1);
    let second = get(&mut nodes, 1);
    assert_eq!(nodes.sites[0].said(first), ["end"], "the newest counts");
    nodes.sites[1].said(second);
    publish(&mut nodes);
    let said = nodes.sites[1].said(second);
    assert_eq!((tools(&said), nodes.sites[0].said(first).len()), (1, 0));
    // With a cursor, at the first one again.
    let cursor = events(&said).0[0].to_owned();
    nodes.sites[1].cut(second);
    publish(&mut nodes);
    let third = nodes.resume(0, &client, &cursor);
    assert_eq!(tools(&nodes.sites[0].said(third)), 1);
}

#[test]
fn question_without_a_stream_goes_to_the_server_where_the_client_listens() {
    let mut nodes = Nodes::new(2);
    let client = nodes.session(0, r#"{"elicitation":{}}"#);
    let own = nodes.bare(1, "GET", client.headers().with("Accept", "text/event-stream"));
    nodes.sites[1].said(own);
    // It takes only JSON as the response to its call.
    let x = nodes.post(0, client.headers().with("Accept", "application/json"), &call(1));
    let (responder, _) = nodes.sites[0].handed();
    nodes.sites[0].bench.answer(responder, ask("q"));
    nodes.settle();
    let said = nodes.sites[1].said(own);
    let question = said.iter().find(|line| line.contains("elicitation/create")).expect("it is asked");
    let crate::rpc::Message::Request(question) = message(event(question).1) else { panic!("{said:?}") };
    let accept = format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{"action":"decline"}}}}"#, question.id);
    nodes.post(1, client.headers(), &accept);
    let (responder, _) = nodes.sites[0].handed();
    nodes.finish(0, responder);
    assert_eq!(nodes.sites[0].said(x), ok(1));
}

// covers: CANC-S-001
#[test]
fn request_is_cancelled_at_another_server() {
    let mut nodes = Nodes::new(2);
    let client = nodes.session(0, "{}");
    let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
    let cancelled =
        |nodes: &mut Nodes| nodes.events(0).into_iter().filter(|event| matches!(event, Event::Cancelled(_))).count();
    // It is known which server runs it, after some time.
    for accept in ["application/json", "application/json, text/event-stream"] {
        let x = nodes.post(0, client.headers().with("Accept", accept), &call(1));
        let (responder, _) = nodes.sites[0].handed();
        nodes.pass(SECOND);
        let told = nodes.post(1, client.headers(), cancel);
        assert_eq!((nodes.sites[1].said(told), cancelled(&mut nodes)), (vec!["202 ".into()], 1), "{accept}");
        drop((responder, x));
        nodes.sites[0].codes();
        nodes.pass(SECOND);
    }
    // It comes before that.
    let client = nodes.session(0, "{}");
    let (_, responder) = nodes.stream(0, &client, 1);
    nodes.post(1, client.headers(), cancel);
    assert_eq!(cancelled(&mut nodes), 0);
    nodes.pass(SECOND / 2);
    assert_eq!(cancelled(&mut nodes), 1, "it is claimed");
    drop(responder);
}

#[test]
fn streams_go_on_after_the_store_was_away() {
    let mut nodes = Nodes::new(2);
    let client = nodes.session(0, "{}");
    let (x, responder) = nodes.stream(0, &client, 1);
    nodes.progress(0, &responder, 1.0);
    let there = {
        let said = nodes.sites[0].said(x);
        nodes.resume(1, &client, events(&said).0[0])
    };
    nodes.sites[1].said(there);
    nodes.is_away = true;
    for nth in 2..6 {
        nodes.progress(0, &responder, f64::from(nth));
        nodes.pass(SECOND);
    }
    nodes.is_away = false;
    (0..4).for_each(|_| nodes.pass(2 * SECOND));
    nodes.finish(0, responder);
    nodes.pass(6 * SECOND);
    for (at, x) in [(0, x), (1, there)] {
        let said = nodes.sites[at].said(x);
        let (ids, data) = events(&said);
        let numbers: Vec<u64> = ids.iter().map(|id| id.rsplit_once('-').unwrap().1.parse().unwrap()).collect();
        assert!(numbers.windows(2).all(|two| two[0] + 1 == two[1]), "{numbers:?}");
        assert_eq!((data.len(), said.last().unwrap().as_str()), (5, "end"), "server {at}: {said:?}");
    }
}

// covers: SSE-S-004
#[test]
fn message_posted_at_another_server_reaches_its_stream() {
    let mut nodes = Nodes::with(2, |config| {
        config.sse = Some(SsePaths::default());
        config.admit = true;
    });
    nodes.principal = Some("ada");
    let stream = nodes.sites[0].begin_at("/sse", "GET", Headers::new().with("Accept", "text/event-stream"));
    nodes.settle();
    nodes.sites[0].bench.item(stream, Inbound::End);
    nodes.settle();
    let said = nodes.sites[0].said(stream);
    let endpoint = said.iter().find_map(|line| line.strip_prefix("endpoint|")).expect("an endpoint").to_owned();
    let post = |nodes: &mut Nodes, at: usize, target: &str, body: &str| {
        let headers = Headers::new().with("Content-Type", "application/json").with("X-Own", "1");
        let x = nodes.sites[at].begin_at(target, "POST", headers);
        nodes.settle();
        nodes.sites[at].bench.item(x, read(body));
        nodes.sites[at].bench.item(x, Inbound::End);
        nodes.settle();
        nodes.sites[at].said(x).pop().unwrap()
    };
    for at in [1, 0, 1] {
        let initialize = initialize("2024-11-05", "{}");
        let body = if at == 0 { r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"# } else { &initialize };
        assert_eq!(post(&mut nodes, at, &endpoint, body), "202 ");
    }
    assert_eq!(post(&mut nodes, 1, &endpoint, &call(2)), "202 ");
    let (responder, incoming) = nodes.sites[0].handed();
    let head = incoming.context.http.as_ref().expect("the head of the post");
    assert_eq!((head.headers.get("X-Own"), &*head.method), (Some("1"), "POST"));
    assert_eq!(incoming.context.principal, Some(Principal("ada".into())));
    nodes.finish(0, responder);
    assert!(nodes.sites[0].said(stream).iter().any(|line| line.contains(&answer(2))));
    // Another principal's message does not reach it, and nothing does once it is gone.
    nodes.principal = Some("bob");
    post(&mut nodes, 1, &endpoint, &call(3));
    assert!(nodes.sites[0].requests.is_empty() && nodes.sites[0].codes().contains(&"bad-session"));
    nodes.principal = Some("ada");
    nodes.kill(0);
    nodes.sites[1].bench.pass(20 * SECOND);
    nodes.sites[0].bench.now = nodes.sites[1].bench.now;
    nodes.settle();
    assert!(post(&mut nodes, 1, &endpoint, &call(4)).starts_with("404 "));
    let forged = "/messages?sessionId=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
    assert!(post(&mut nodes, 1, forged, &call(5)).starts_with("404 "));
}

#[test]
fn events_go_out_at_once_if_the_store_may_lag_behind() {
    let mut nodes = Nodes::with(2, |config| config.durability = Durability::Behind);
    let client = nodes.session(0, "{}");
    let (x, responder) = nodes.stream(0, &client, 1);
    nodes.is_away = true;
    nodes.progress(0, &responder, 1.0);
    let said = nodes.sites[0].said(x);
    let (ids, data) = events(&said);
    assert_eq!((ids.len(), data.len()), (2, 1), "{said:?}");
    let cursor = ids[0].to_owned();
    nodes.is_away = false;
    (0..3).for_each(|_| nodes.pass(2 * SECOND));
    nodes.finish(0, responder);
    let said = nodes.sites[0].said(x);
    assert_eq!((events(&said).1, said.last().unwrap().as_str()), (vec![answer(1).as_str()], "end"), "nothing twice");
    // The other server has all of it.
    let there = nodes.resume(1, &client, &cursor);
    assert_eq!(events(&nodes.sites[1].said(there)).1.len(), 2);
}

#[test]
fn events_that_wait_for_the_store_are_bounded_and_answers_are_not_lost() {
    let mut nodes = Nodes::with(1, |config| config.limits.server.max_store_bytes = 1 << 10);
    let client = nodes.session(0, "{}");
    let (x, responder) = nodes.stream(0, &client, 1);
    nodes.progress(0, &responder, 0.5);
    nodes.sites[0].said(x);
    nodes.is_away = true;
    (1..100).for_each(|nth| nodes.progress(0, &responder, f64::from(nth)));
    let env = &nodes.sites[0].bench.server.wire.env;
    assert!(env.held_for_store() <= 1 << 10);
    assert!(nodes.sites[0].codes().contains(&"dropped-notification"));
    nodes.finish(0, responder);
    nodes.is_away = false;
    (0..3).for_each(|_| nodes.pass(2 * SECOND));
    let said = nodes.sites[0].said(x);
    let (_, data) = events(&said);
    assert!(data.len() < 20 && *data.last().unwrap() == answer(1), "{said:?}");
    assert_eq!(nodes.sites[0].bench.server.wire.env.held_for_store(), 0);
}

// covers: R-11
#[test]
fn clients_of_a_server_that_ends_listen_at_another_at_once() {
    let mut nodes = Nodes::new(2);
    let client = nodes.session(0, "{}");
    let own = nodes.bare(0, "GET", client.headers().with("Accept", "text/event-stream"));
    nodes.sites[0].said(own);
    let bench = &mut nodes.sites[0].bench;
    bench.server.shutdown(bench.now, 10 * SECOND);
    nodes.settle();
    assert_eq!(nodes.sites[0].said(own), ["(0)|", "end"]);
    let there = nodes.bare(1, "GET", client.headers().with("Accept", "text/event-stream"));
    assert_eq!(nodes.sites[1].said(there)[0], "200 stream");
    assert_eq!(nodes.call(1, &client, 2), ok(2));
}

#[test]
fn store_that_serves_changes_only_leaves_sessions_to_each_server() {
    let mut nodes = Nodes::with(2, |config| config.store = Some(Serves::CHANGES));
    let client = nodes.session(0, "{}");
    nodes.asked();
    assert_eq!(nodes.call(0, &client, 1), ok(1));
    let x = nodes.post(1, client.headers(), &call(2));
    assert_eq!((nodes.sites[1].refusal(x).0, nodes.asked()), (404, vec![]));
    let own = nodes.bare(0, "GET", client.headers().with("Accept", "text/event-stream"));
    nodes.sites[0].said(own);
    let bench = &mut nodes.sites[1].bench;
    bench.server.publish(bench.now, Change::Tools);
    nodes.settle();
    assert!(nodes.sites[0].said(own).concat().contains("tools/list_changed"));
}
