//! Servers behind a load balancer, with a store that they share: a client reaches any of them with
//! each request.

mod bounds;
mod chaos;
mod moves;
mod sessions;
mod streams;
mod tasks;

use super::super::watching::{announces, subscribe, update};
use super::*;
use crate::LogLevel;
use crate::input::{Change, Note, Principal};
use crate::model::logging::LogMessage;
use crate::server::store::{Durability, Incarnation, Memory, Serves, StoreError, StoreReply, StoreRequest, StoreToken};

/// Servers behind a load balancer, and the store that they share.
struct Nodes {
    sites: Vec<Site>,
    owns: Vec<Option<Incarnation>>,
    store: Memory,
    /// Requests to the store are not carried out, and have no reply.
    is_away: bool,
    /// Requests to the store are carried out, and have no reply.
    loses_replies: bool,
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
        let mut nodes =
            Self { sites, owns, store, is_away: false, loses_replies: false, asked: Vec::new(), principal: None };
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
                                StoreRequest::Renew { .. }
                                | StoreRequest::Leave { .. }
                                | StoreRequest::Orphans { .. } => {}
                                other => self.asked.push(other.clone()),
                            }
                            if !self.is_away {
                                let reply = self.store.apply(now, request);
                                if self.loses_replies {
                                    continue;
                                }
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

    /// Like [`settle`](Self::settle), for at most `max` requests, and what becomes of them as
    /// `fate` says. Returns their number.
    fn settle_with(
        &mut self,
        max: usize,
        mut fate: impl FnMut(usize, StoreToken, &StoreRequest, &mut Memory) -> Fate,
    ) -> usize {
        let (now, mut count) = (self.now(), 0);
        loop {
            let before = count;
            let mut has_arrived = false;
            for (at, (site, own)) in self.sites.iter_mut().zip(&mut self.owns).enumerate() {
                site.take();
                for event in core::mem::take(&mut site.events) {
                    let Event::Store(token, request) = event else {
                        site.events.push_back(event);
                        continue;
                    };
                    count += 1;
                    if let StoreRequest::Join { node, .. } = &request {
                        *own = Some(*node);
                    }
                    let result = match fate(at, token, &request, &mut self.store) {
                        Fate::Store => Ok(self.store.apply(now, request)),
                        Fate::Result(result) => result,
                        Fate::Nothing => continue,
                    };
                    site.bench.server.stored(site.bench.now, token, result);
                }
                for item in own.iter().flat_map(|own| self.store.take_arrived(now, *own)) {
                    has_arrived = true;
                    site.bench.server.arrived(site.bench.now, item);
                }
            }
            if count >= max || count == before && !has_arrived {
                return count;
            }
        }
    }

    /// Begins a POST without carrying out what it asks of the store.
    fn begin_post(&mut self, at: usize, headers: Headers, body: &str) -> ExchangeId {
        let x = self.sites[at].begin("POST", headers.with("Content-Type", "application/json"));
        self.sites[at].bench.item(x, read(body));
        self.sites[at].bench.item(x, Inbound::End);
        x
    }

    fn publish(&mut self, at: usize, change: Change) {
        let bench = &mut self.sites[at].bench;
        bench.server.publish(bench.now, change);
        self.settle();
    }

    /// Opens the own stream of a session.
    fn listen(&mut self, at: usize, client: &Client) -> ExchangeId {
        self.bare(at, "GET", client.headers().with("Accept", "text/event-stream"))
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

/// What becomes of a request to the store.
enum Fate {
    /// It is carried out.
    Store,
    Result(Result<StoreReply, StoreError>),
    /// There is no reply.
    Nothing,
}

const SECOND: Duration = Duration::from_secs(1);

fn ok(id: u32) -> [String; 1] {
    [format!("200 {}", answer(id))]
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
