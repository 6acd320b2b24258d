//! Random runs of servers, their clients and a store that fails in every way it can: replies that
//! are slow, lost or doubled, outages, servers that are killed, that sleep and wake, whose clocks
//! run apart, and a store that goes back in time or loses everything.

use super::*;
use crate::seed::Seed;
use crate::server::store::StoreToken;
use crate::time::Instant;

/// A choice from random bytes.
struct Dice(Seed);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        self.0.next_u64() % n
    }

    /// Returns whether something happens that has this chance, in percent.
    fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> Option<T> {
        (!all.is_empty()).then(|| all[self.below(all.len() as u64) as usize])
    }
}

/// A request on its way to the store, or a reply on its way back.
struct Flight {
    due: Duration,
    at: usize,
    life: u32,
    token: StoreToken,
    request: StoreRequest,
    reply: Option<StoreReply>,
}

/// An exchange of a client that sends events or a response.
struct Open {
    at: usize,
    life: u32,
    x: ExchangeId,
    session: usize,
    /// The number of the last event, once it is known.
    last: Option<u64>,
}

struct CallState {
    at: usize,
    life: u32,
    responder: Option<Responder>,
    /// Where its response was seen: an event, or a whole response.
    answered: Option<String>,
    /// The newest event that its client has: its id.
    cursor: Option<String>,
}

struct SessionState {
    client: Client,
    calls: BTreeMap<u32, CallState>,
    next: u32,
    ended: bool,
}

struct World {
    dice: Dice,
    sites: Vec<Site>,
    /// Counts the servers at each place: one that was killed is another afterwards.
    lives: Vec<u32>,
    owns: Vec<Option<Incarnation>>,
    asleep: Vec<bool>,
    store: Memory,
    before: VecDeque<(Duration, Memory)>,
    now: Duration,
    away_until: Duration,
    flights: Vec<Flight>,
    /// When the last request of each server arrives, and its last reply.
    arrived: [Duration; 3],
    replied: [Duration; 3],
    sessions: Vec<SessionState>,
    open: Vec<Open>,
    /// What each event of a stream was: by session and id.
    events: BTreeMap<(usize, String), String>,
    /// The store has lost what it had: events may repeat under other numbers.
    is_tainted: bool,
    answers: u32,
    losses: u32,
    resumed: u32,
}

fn config(config: &mut ServerConfig) {
    announces(config);
    config.state_keys = Some([1; 32].into());
    config.store = Some(Memory::SERVES);
    config.tasks = true;
}

impl World {
    fn new(seed: u64) -> Self {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&seed.to_be_bytes());
        let mut world = Self {
            dice: Dice(Seed::new(bytes)),
            sites: Vec::new(),
            lives: vec![0; 3],
            owns: vec![None; 3],
            asleep: vec![false; 3],
            store: Memory::new(),
            before: VecDeque::new(),
            now: Duration::ZERO,
            away_until: Duration::ZERO,
            flights: Vec::new(),
            arrived: [Duration::ZERO; 3],
            replied: [Duration::ZERO; 3],
            sessions: Vec::new(),
            open: Vec::new(),
            events: BTreeMap::new(),
            is_tainted: false,
            answers: 0,
            losses: 0,
            resumed: 0,
        };
        world.sites = (0..3).map(|_| world.site()).collect();
        world
    }

    fn site(&mut self) -> Site {
        let mut site = Site::with(|_| {});
        let mut seed = [0; 32];
        seed.copy_from_slice(&self.dice.0.next_bytes());
        site.bench = Bench::seeded(seed, config);
        site.bench.now = Instant::new(self.now);
        site.bench.server.handle_timeout(site.bench.now);
        site
    }

    /// Takes what the servers have sent, and puts their requests to the store on their way.
    fn take(&mut self) {
        for at in 0..3 {
            self.sites[at].take();
            for event in core::mem::take(&mut self.sites[at].events) {
                let Event::Store(token, request) = event else { continue };
                if let StoreRequest::Join { node, .. } = &request {
                    self.owns[at] = Some(*node);
                }
                if self.dice.chance(3) {
                    continue;
                }
                let copies = if self.dice.chance(3) { 2 } else { 1 };
                for _ in 0..copies {
                    // The requests of a server arrive in their order.
                    let due = self.now + Duration::from_millis(self.dice.below(60));
                    let due = due.max(self.arrived[at]);
                    self.arrived[at] = due;
                    let (life, request) = (self.lives[at], request.clone());
                    self.flights.push(Flight { due, at, life, token, request, reply: None });
                }
            }
        }
        self.observe();
    }

    /// Delivers what has arrived at the store and at the servers.
    fn deliver(&mut self) {
        loop {
            self.flights.sort_by_key(|flight| (flight.due, flight.token));
            let Some(first) = self.flights.first().filter(|flight| flight.due <= self.now) else { break };
            let due = first.due;
            let mut flight = self.flights.remove(0);
            match flight.reply.take() {
                None if self.now < self.away_until => {}
                None => {
                    let reply = self.store.apply(due, flight.request.clone());
                    if !self.dice.chance(3) {
                        let due = self.now + Duration::from_millis(self.dice.below(60));
                        let due = due.max(self.replied[flight.at]);
                        self.replied[flight.at] = due;
                        self.flights.push(Flight { due, reply: Some(reply), ..flight });
                    }
                }
                Some(reply) if self.lives[flight.at] == flight.life && !self.asleep[flight.at] => {
                    let bench = &mut self.sites[flight.at].bench;
                    bench.server.stored(bench.now, flight.token, Ok(reply));
                    self.take();
                }
                // It sleeps: it finds the reply when it wakes.
                Some(reply) if self.lives[flight.at] == flight.life => {
                    let due = self.now + Duration::from_millis(200);
                    self.flights.push(Flight { due, reply: Some(reply), ..flight });
                }
                Some(_) => {}
            }
        }
        for at in 0..3 {
            let Some(own) = self.owns[at].filter(|_| !self.asleep[at] && self.now >= self.away_until) else { continue };
            for item in self.store.take_arrived(self.now, own) {
                let bench = &mut self.sites[at].bench;
                bench.server.arrived(bench.now, item);
            }
        }
        self.take();
    }

    fn pass(&mut self, time: Duration) {
        self.now += time;
        for at in 0..3 {
            if self.asleep[at] {
                continue;
            }
            // Clocks run apart by a tenth.
            let own = time.mul_f64(0.9 + 0.1 * at as f64);
            self.sites[at].bench.pass(own);
        }
        self.before.push_back((self.now, self.store.clone()));
        while self.before.front().is_some_and(|(at, _)| *at + Duration::from_secs(3) < self.now) {
            self.before.pop_front();
        }
        self.take();
        self.deliver();
    }

    /// Looks at what clients receive.
    fn observe(&mut self) {
        for nth in 0..self.open.len() {
            let Open { at, life, x, session, .. } = self.open[nth];
            if self.lives[at] != life {
                continue;
            }
            for line in self.sites[at].said(x) {
                self.line(nth, session, &line);
            }
        }
    }

    fn line(&mut self, nth: usize, session: usize, line: &str) {
        if let Some((id, data)) = line.split_once('|').filter(|(id, _)| id.starts_with('s')) {
            let id = id.split('(').next().unwrap().to_owned();
            let number: u64 = id.rsplit_once('-').unwrap().1.parse().unwrap();
            let before = self.open[nth].last.replace(number);
            if !self.is_tainted {
                assert!(before.is_none_or(|before| before + 1 == number), "{before:?}, then {line}");
                let known = self.events.insert((session, id.clone()), data.to_owned());
                assert!(known.as_ref().is_none_or(|known| known == data), "{id}: {known:?}, then {data}");
            }
            let stream = id.rsplit_once('-').unwrap().0.to_owned();
            for call in self.sessions[session].calls.values_mut() {
                let is_it = call.cursor.as_ref().is_some_and(|cursor| cursor.starts_with(&format!("{stream}-")));
                if is_it || call.cursor.is_none() && self.open[nth].x.0 == u64::MAX {
                    call.cursor = Some(id.clone());
                }
            }
            self.answer(session, data, &id);
        } else if let Some(body) = line.strip_prefix("200 ").filter(|body| body.starts_with('{')) {
            let place = format!("exchange {nth}");
            self.answer(session, body, &place);
        }
    }

    fn answer(&mut self, session: usize, data: &str, place: &str) {
        if data.is_empty() || !(data.contains(r#""result""#) || data.contains(r#""error""#)) {
            return;
        }
        let crate::rpc::Message::Response(response) = message(data) else { return };
        let crate::rpc::Id::Int(id) = response.id else { return };
        let Some(call) = self.sessions[session].calls.get_mut(&(id as u32)) else { return };
        match response.payload {
            Payload::Result(result) => {
                let result = Object::read(&result).unwrap();
                if let Some(of) = result.get("of") {
                    assert_eq!(of.as_str(), format!("{session}"), "an answer for another client");
                }
                self.answers += 1;
            }
            Payload::Error(_) => self.losses += 1,
        }
        let before = call.answered.replace(place.to_owned());
        assert!(
            self.is_tainted || before.as_ref().is_none_or(|before| before == place),
            "call {id} of {session} ended at {before:?} and at {place}"
        );
    }

    fn awake(&self) -> Vec<usize> {
        (0..3).filter(|at| !self.asleep[*at]).collect()
    }

    fn post(&mut self, at: usize, headers: Headers, body: &str) -> ExchangeId {
        let x = self.sites[at].post(headers, body);
        self.take();
        x
    }

    fn initialize(&mut self) {
        let Some(at) = self.dice.of(&self.awake()) else { return };
        let x = self.post(at, Headers::new(), &initialize("2025-11-25", "{}"));
        for _ in 0..20 {
            self.pass(Duration::from_millis(20));
            if self.sites[at].heads.contains_key(&x) {
                break;
            }
        }
        let head = self.sites[at].heads.get(&x).cloned();
        let Some(session) = head.and_then(|head| head.headers.get("mcp-session-id").map(ToString::to_string)) else {
            return;
        };
        let client = Client { session, version: "2025-11-25" };
        self.sessions.push(SessionState { client, calls: BTreeMap::new(), next: 1, ended: false });
    }

    fn some_session(&mut self) -> Option<usize> {
        let live: Vec<usize> = (0..self.sessions.len()).filter(|nth| !self.sessions[*nth].ended).collect();
        self.dice.of(&live)
    }

    fn begin_call(&mut self) {
        let (Some(session), Some(at)) = (self.some_session(), self.dice.of(&self.awake())) else { return };
        let id = self.sessions[session].next;
        self.sessions[session].next += 1;
        let accept = if self.dice.chance(80) { "application/json, text/event-stream" } else { "application/json" };
        let headers = self.sessions[session].client.headers().with("Accept", accept);
        let x = self.post(at, headers, &call(id));
        let life = self.lives[at];
        self.open.push(Open { at, life, x, session, last: None });
        let state = CallState { at, life, responder: None, answered: None, cursor: None };
        self.sessions[session].calls.insert(id, state);
        self.collect();
    }

    /// Takes the requests that servers have handed out.
    fn collect(&mut self) {
        for at in 0..3 {
            while let Some((responder, incoming)) = self.sites[at].requests.pop_front() {
                let crate::rpc::Id::Int(id) = *responder.id() else { continue };
                let session = self.session_at(at, &incoming);
                if let Some(call) = session.and_then(|nth| self.sessions[nth].calls.get_mut(&(id as u32))) {
                    (call.at, call.life, call.responder) = (at, self.lives[at], Some(responder));
                }
            }
        }
    }

    fn session_at(&self, at: usize, incoming: &IncomingRequest) -> Option<usize> {
        let name = incoming.context.http.as_ref()?.headers.get("mcp-session-id")?;
        let _ = at;
        self.sessions.iter().position(|session| session.client.session == name)
    }

    fn work(&mut self) {
        self.collect();
        let mut running = Vec::new();
        for (nth, session) in self.sessions.iter().enumerate() {
            for (id, call) in &session.calls {
                let lives = self.lives[call.at] == call.life && !self.asleep[call.at];
                if call.responder.is_some() && lives {
                    running.push((nth, *id));
                }
            }
        }
        let Some((nth, id)) = self.dice.of(&running) else { return };
        let is_end = self.dice.chance(40);
        let call = self.sessions[nth].calls.get_mut(&id).unwrap();
        let at = call.at;
        if is_end {
            let responder = call.responder.take().unwrap();
            self.sites[at].complete(responder, &format!(r#"{{"of":{nth}}}"#));
        } else {
            let key = call.responder.as_ref().unwrap().key();
            let bench = &mut self.sites[at].bench;
            let value = self.now.as_secs_f64();
            drop(bench.server.notify(bench.now, key, Note::Progress(crate::model::Progress::new(value))));
        }
        self.take();
    }

    /// A client opens its own stream, or resumes one of its calls.
    fn listen(&mut self) {
        let (Some(session), Some(at)) = (self.some_session(), self.dice.of(&self.awake())) else { return };
        let known: Vec<String> =
            self.events.keys().filter(|(of, _)| *of == session).map(|(_, id)| id.clone()).collect();
        let cursor = if self.dice.chance(80) {
            (!known.is_empty()).then(|| known[self.dice.below(known.len() as u64) as usize].clone())
        } else {
            None
        };
        let headers = match &cursor {
            Some(cursor) => self.sessions[session].client.after(cursor),
            None => self.sessions[session].client.headers(),
        };
        let x = self.sites[at].bare("GET", headers.with("Accept", "text/event-stream"));
        let last = cursor.map(|cursor| cursor.rsplit_once('-').unwrap().1.parse().unwrap());
        self.resumed += u32::from(last.is_some());
        self.open.push(Open { at, life: self.lives[at], x, session, last });
        self.take();
    }

    fn fault(&mut self) {
        match self.dice.below(100) {
            0..40 => {
                if let Some(nth) = (!self.open.is_empty()).then(|| self.dice.below(self.open.len() as u64) as usize) {
                    let Open { at, life, x, .. } = self.open[nth];
                    if self.lives[at] == life && !self.asleep[at] {
                        self.sites[at].cut(x);
                    }
                }
            }
            40..60 => {
                let at = self.dice.below(3) as usize;
                self.asleep[at] = !self.asleep[at] && self.awake().len() > 1;
            }
            60..75 => self.asleep = vec![false; 3],
            75..85 => {
                let at = self.dice.below(3) as usize;
                self.lives[at] += 1;
                self.owns[at] = None;
                self.asleep[at] = false;
                self.sites[at] = self.site();
            }
            85..95 => self.away_until = self.now + Duration::from_millis(self.dice.below(6000)),
            95..98 => {
                if let Some((_, before)) = self.before.front() {
                    self.store = before.clone();
                    self.is_tainted = true;
                }
            }
            _ => {
                self.store = Memory::new();
                self.is_tainted = true;
            }
        }
        self.take();
    }

    fn step(&mut self) {
        match self.dice.below(100) {
            0..30 => {
                let time = Duration::from_millis(self.dice.below(400));
                self.pass(time);
            }
            30..34 => self.initialize(),
            34..50 => self.begin_call(),
            50..74 => self.work(),
            74..86 => self.listen(),
            86..90 => {
                if let Some(at) = self.dice.of(&self.awake()) {
                    let bench = &mut self.sites[at].bench;
                    bench.server.publish(bench.now, Change::Tools);
                    self.take();
                }
            }
            90..92 => {
                let (Some(session), Some(at)) = (self.some_session(), self.dice.of(&self.awake())) else { return };
                if self.dice.chance(30) {
                    self.sessions[session].ended = true;
                    self.sites[at].bare("DELETE", self.sessions[session].client.headers());
                    self.take();
                }
            }
            92..94 => {
                let (Some(session), Some(at)) = (self.some_session(), self.dice.of(&self.awake())) else { return };
                let id = self.dice.below(u64::from(self.sessions[session].next)).max(1);
                let cancel =
                    format!(r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#);
                let headers = self.sessions[session].client.headers();
                self.post(at, headers, &cancel);
            }
            _ => self.fault(),
        }
    }

    /// The faults end. Clients leave, and the servers answer what they still run.
    fn settle(&mut self) {
        self.asleep = vec![false; 3];
        self.away_until = Duration::ZERO;
        for _ in 0..60 {
            for _ in 0..10 {
                self.work();
            }
            self.pass(Duration::from_millis(500));
        }
        for nth in 0..self.open.len() {
            let Open { at, life, x, .. } = self.open[nth];
            if self.lives[at] == life {
                self.sites[at].cut(x);
            }
        }
        self.take();
        // Longer than any session lives.
        for _ in 0..1000 {
            self.pass(Duration::from_secs(4));
        }
    }
}

fn run(seed: u64, steps: usize) -> World {
    let mut world = World::new(seed);
    for _ in 0..steps {
        world.step();
    }
    world.settle();
    world
}

#[test]
fn nothing_is_lost_doubled_or_mixed_up_whatever_fails() {
    let (mut answers, mut losses, mut resumed) = (0, 0, 0);
    for seed in 0..40 {
        let world = run(seed, 250);
        (answers, losses, resumed) = (answers + world.answers, losses + world.losses, resumed + world.resumed);
        assert_eq!((world.store.sessions(world.now), world.store.tasks(world.now)), (0, 0), "seed {seed}");
        for (site, at) in world.sites.iter().zip(0..) {
            let server = &site.bench.server;
            assert_eq!((server.sessions(), server.streams()), (0, 0), "seed {seed}, server {at}");
            assert_eq!(server.wire.env.held_for_store(), 0, "seed {seed}, server {at}");
            assert!(server.wire.http.tails.is_empty() && server.wire.env.exchanges.is_empty(), "seed {seed}");
        }
    }
    assert!(answers > 300 && losses > 5 && resumed > 200, "{answers} {losses} {resumed}");
}
