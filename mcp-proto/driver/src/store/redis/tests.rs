//! What requests do to the keys of a real server. These tests need the program `redis-server`.

use super::Redis;
use crate::os::Clock;
use crate::store::{StoreDriver, StorePort, StoreQueue};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;
use core::cell::Cell;
use core::time::Duration;
use mcp_proto::input::ServerCommand;
use mcp_proto::server::store::{
    Epoch, Incarnation, News, NodeItem, PrincipalDigest, RequestDigest, SessionDigest, StoreError, StoreReply,
    StoreRequest, StoreToken, StoredEvent, TaskDigest,
};
use redis::{Client, Connection, FromRedisValue, cmd};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::{env, fs, process, thread};

/// The longest time for a reply, and until something arrives.
const BOUND: Duration = Duration::from_secs(10);
const LONG: Duration = Duration::from_secs(60);
const A: Incarnation = Incarnation([0xa1; 16]);
const B: Incarnation = Incarnation([0xb2; 16]);

/// A server of a test.
struct Server {
    child: Child,
    folder: PathBuf,
}

impl Server {
    #[expect(clippy::disallowed_methods, reason = "a process of its own")]
    fn start(name: &str) -> Self {
        let folder = env::temp_dir().join(format!("mcp-redis-{}-{name}", process::id()));
        fs::create_dir_all(&folder).unwrap();
        let mut command = Command::new("redis-server");
        command.args(["--port", "0", "--save", "", "--dir"]).arg(&folder).arg("--unixsocket").arg(folder.join("s"));
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().expect("redis-server can be run");
        let server = Self { child, folder };
        for _ in 0..1000 {
            if Client::open(server.url()).unwrap().get_connection().is_ok() {
                return server;
            }
            thread::park_timeout(Duration::from_millis(10));
        }
        panic!("redis-server does not start");
    }

    fn url(&self) -> String {
        format!("unix://{}", self.folder.join("s").display())
    }

    fn open(&self) -> Connection {
        Client::open(self.url()).unwrap().get_connection().unwrap()
    }

    /// Carries out a command.
    fn run<T: FromRedisValue>(&self, words: &str) -> T {
        let mut words = words.split(' ');
        let mut command = cmd(words.next().unwrap());
        words.for_each(|word| {
            command.arg(word);
        });
        command.query(&mut self.open()).unwrap()
    }

    /// Closes the connections that wait for what others say. They come back after a second.
    fn cut_readers(&self) {
        let mut cut = 0;
        for _ in 0..1000 {
            let clients = self.run::<String>("CLIENT LIST");
            for client in clients.lines().filter(|client| client.contains("cmd=xread ")) {
                let id = client.strip_prefix("id=").and_then(|rest| rest.split(' ').next()).unwrap();
                cut += self.run::<u64>(&format!("CLIENT KILL ID {id}"));
            }
            if cut > 0 {
                return;
            }
            thread::park_timeout(Duration::from_millis(10));
        }
        panic!("none waits");
    }

    /// Returns the keys with this beginning.
    fn keys(&self, of: &str) -> Vec<String> {
        self.run(&format!("KEYS mcp:{of}*"))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// A server of ours, as far as its store knows.
struct Peer {
    queue: StoreQueue,
    last: Cell<u64>,
    replies: Receiver<(StoreToken, Result<StoreReply, StoreError>)>,
    items: Receiver<NodeItem>,
}

impl Peer {
    fn start(server: &Server) -> Self {
        let ((reply, replies), (deliver, items)) = (channel(), channel());
        let link = move |command| match command {
            ServerCommand::Stored(token, result) => drop(reply.send((token, result))),
            ServerCommand::Arrived(item) => drop(deliver.send(item)),
            _ => {}
        };
        let queue = StoreQueue::new();
        Redis::new(server.url()).start(StorePort::new(queue.clone(), link)).unwrap();
        Self { queue, last: Cell::new(0), replies, items }
    }

    fn send(&self, request: StoreRequest) -> StoreToken {
        self.last.set(self.last.get() + 1);
        self.queue.push(StoreToken(self.last.get()), request);
        StoreToken(self.last.get())
    }

    fn reply(&self, asked: StoreToken) -> StoreReply {
        let (token, result) = self.replies.recv_timeout(BOUND).unwrap();
        assert_eq!(token, asked);
        result.unwrap()
    }

    fn ask(&self, request: StoreRequest) -> StoreReply {
        self.reply(self.send(request))
    }

    /// Carries out requests, perhaps at once.
    fn all(&self, requests: impl IntoIterator<Item = StoreRequest>) -> Vec<StoreReply> {
        let asked: Vec<StoreToken> = requests.into_iter().map(|request| self.send(request)).collect();
        asked.into_iter().map(|token| self.reply(token)).collect()
    }

    fn join(&self, node: Incarnation) -> StoreReply {
        self.ask(StoreRequest::Join { node, lease: LONG })
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.queue.end();
    }
}

fn digest(nth: u16) -> TaskDigest {
    let mut name = [7; 32];
    name[..2].copy_from_slice(&nth.to_be_bytes());
    TaskDigest(name)
}

fn put(nth: u16, version: u64, owner: Option<Incarnation>, ttl: Duration) -> StoreRequest {
    let (record, created) = ("r".into(), 1_700_000_000_000);
    StoreRequest::PutTask { task: digest(nth), version, record, owner, principal: None, created, ttl }
}

fn sweep(peer: &Peer) -> Vec<TaskDigest> {
    match peer.ask(StoreRequest::Orphans { node: B, lease: LONG }) {
        StoreReply::Orphans(found) => found,
        other => panic!("{other:?}"),
    }
}

#[test]
fn node_owns_what_it_works_on_and_not_what_has_ended() {
    let server = Server::start("owns");
    let (first, second) = (Peer::start(&server), Peer::start(&server));
    first.join(A);
    let next = |peer: &Peer| peer.ask(StoreRequest::IsMember { node: A });
    let owned = || server.run::<Vec<String>>(&format!("SMEMBERS mcp:o:{{{A}}}")).len();
    (0..10).for_each(|nth| assert_eq!(first.ask(put(nth, 1, Some(A), LONG)), StoreReply::Done));
    let ttl = server.run::<u64>(&format!("PTTL mcp:o:{{{A}}}"));
    assert!(owned() == 10 && (50_000..=60_000).contains(&ttl), "{ttl}");
    first.ask(put(10, 1, Some(A), LONG * 3));
    first.ask(put(11, 1, Some(A), LONG));
    assert!(server.run::<u64>(&format!("PTTL mcp:o:{{{A}}}")) > 150_000);
    (0..5).for_each(|nth| assert_eq!(first.ask(put(nth, 2, None, LONG)), StoreReply::Done));
    // Another one ends it, and takes one.
    assert_eq!(second.ask(put(5, 2, None, LONG)), StoreReply::Done);
    assert_eq!(second.ask(put(6, 2, Some(B), LONG)), StoreReply::Done);
    assert_eq!(second.ask(put(6, 2, Some(B), LONG)), StoreReply::Done, "its reply was lost");
    // What was not carried out owns nothing.
    assert!(matches!(second.ask(put(7, 1, Some(B), LONG)), StoreReply::Task { owner: Some(A), .. }));
    assert_eq!(second.ask(put(50, 2, Some(B), LONG)), StoreReply::Missing);
    next(&first);
    next(&second);
    assert_eq!((owned(), server.run::<u64>(&format!("SCARD mcp:o:{{{B}}}"))), (5, 1));
    // One that it takes again stays, also if all this is one batch.
    first.ask(put(8, 2, None, LONG));
    first.ask(put(8, 3, Some(A), LONG));
    first.all([put(8, 4, None, LONG), put(8, 5, Some(A), LONG), put(9, 2, None, LONG)]);
    next(&first);
    assert_eq!(owned(), 4);
}

#[test]
fn orphans_are_found_among_what_has_ended() {
    let server = Server::start("orphans");
    let (first, second) = (Peer::start(&server), Peer::start(&server));
    first.join(A);
    second.join(B);
    (0..3).for_each(|nth| drop(first.ask(put(nth, 1, Some(A), LONG))));
    let ended: Vec<String> = (1000..2500).map(|nth| digest(nth).to_string()).collect();
    let mut add = cmd("SADD");
    add.arg(format!("mcp:o:{{{A}}}")).arg(&ended).exec(&mut server.open()).unwrap();
    first.ask(StoreRequest::Leave { node: A });
    let mut found: Vec<TaskDigest> = (0..2).flat_map(|_| sweep(&second)).collect();
    found.sort();
    found.dedup();
    assert_eq!(found, [0, 1, 2].map(digest));
    assert_eq!(server.run::<u64>(&format!("SCARD mcp:o:{{{A}}}")), 3);
}

#[test]
fn hundred_orphans_are_found_at_once() {
    let server = Server::start("hundred");
    let (first, second) = (Peer::start(&server), Peer::start(&server));
    first.join(A);
    second.join(B);
    (0..250).for_each(|nth| drop(first.ask(put(nth, 1, Some(A), LONG))));
    first.ask(StoreRequest::Leave { node: A });
    for left in [250, 150, 50, 0] {
        let found = sweep(&second);
        assert_eq!(found.len(), left.min(100), "{left} are left");
        for task in found {
            let nth = u16::from_be_bytes([task.0[0], task.0[1]]);
            second.ask(put(nth, 2, None, LONG));
        }
    }
    sweep(&second);
    assert_eq!((server.keys("o:"), server.run::<u64>("ZCARD mcp:{m}:nodes")), (vec![], 1));
}

const SESSION: SessionDigest = SessionDigest([5; 32]);
const SHORT: Duration = Duration::from_millis(300);

fn claim(stream: u64, request: &'static str) -> StoreRequest {
    StoreRequest::Claim { session: SESSION, stream, requests: vec![request.into()], node: A, over: None }
}

fn append(stream: u64, number: u64, answers: Option<&'static str>, last: Option<Duration>) -> StoreRequest {
    StoreRequest::Append {
        session: SESSION,
        stream,
        epoch: Epoch { node: A, number: 1 },
        event: StoredEvent { number, data: "x".into() },
        is_sent: true,
        answers: answers.map(|id| RequestDigest::of(id.as_bytes())),
        keep: 1000,
        last,
    }
}

/// Returns the names of the fields of a session but those of its record, without their digests.
fn fields(server: &Server) -> Vec<String> {
    let fields: Vec<String> = server.run(&format!("HKEYS mcp:s:{{{SESSION}}}"));
    let mut fields: Vec<String> = fields.into_iter().filter(|field| field.contains(':')).collect();
    fields.iter_mut().for_each(|field| field.truncate(4));
    fields.sort();
    fields
}

#[test]
fn ended_stream_is_dropped_in_its_time() {
    let server = Server::start("ended");
    let peer = Peer::start(&server);
    let load = StoreRequest::Load { session: SESSION, ttl: LONG };
    let touch = StoreRequest::Touch { session: SESSION, ttl: LONG };
    peer.ask(StoreRequest::Open { session: SESSION, record: "r".into(), ttl: LONG / 2 });
    for stream in 1..=3 {
        peer.ask(claim(stream, ["1", "2", "3"][usize::try_from(stream).unwrap() - 1]));
        peer.ask(append(stream, 1, None, None));
    }
    assert!(fields(&server).len() == 9 && fields(&server)[..6] == ["c:1", "c:2", "c:3", "q:1", "q:2", "q:3"]);
    assert_eq!(peer.ask(append(1, 2, None, Some(SHORT))), StoreReply::Done);
    assert_eq!(peer.ask(append(2, 2, Some("2"), Some(SHORT))), StoreReply::Done);
    let left = fields(&server);
    assert!(left.len() == 5 && left[..4] == ["c:1", "c:2", "c:3", "q:3"], "{left:?}");
    peer.ask(touch.clone());
    peer.ask(load.clone());
    let ttl = |stream: u64| server.run::<i64>(&format!("PTTL mcp:e:{{{SESSION}}}:{stream}"));
    assert!(ttl(1) <= 300 && ttl(2) <= 300 && ttl(3) > 50_000, "{} {} {}", ttl(1), ttl(2), ttl(3));
    let kept = server.run::<i64>(&format!("PTTL mcp:l:{{{SESSION}}}"));
    assert!(kept > 50_000, "{kept}");
    thread::park_timeout(SHORT * 2);
    assert_eq!(peer.ask(StoreRequest::Read { session: SESSION, stream: 1, after: 0 }), StoreReply::Missing);
    peer.ask(touch);
    assert_eq!((fields(&server).len(), &fields(&server)[..2]), (3, &["c:3".to_string(), "q:3".to_string()][..]));
    assert_eq!((server.keys("e:").len(), server.run::<u64>(&format!("ZCARD mcp:l:{{{SESSION}}}"))), (1, 1));
    peer.ask(append(3, 2, Some("3"), Some(LONG)));
    peer.ask(StoreRequest::Close { session: SESSION });
    assert_eq!(server.run::<Vec<String>>("KEYS *"), Vec::<String>::new());
}

fn say(peer: &Peer, what: &str) {
    assert_eq!(peer.ask(StoreRequest::Publish { node: A, news: News::Elicited(what.into()) }), StoreReply::Done);
}

fn heard(what: &str) -> NodeItem {
    NodeItem::News { from: A, news: News::Elicited(what.into()) }
}

#[test]
fn store_that_has_gone_back_and_gone_on_is_noticed() {
    let server = Server::start("back");
    let (first, second) = (Peer::start(&server), Peer::start(&server));
    say(&first, "before");
    second.join(B);
    for say_more in [false, true] {
        if say_more {
            say(&first, "heard");
            assert_eq!(second.items.recv_timeout(BOUND), Ok(heard("heard")));
        }
        server.cut_readers();
        // The same may be said after it went back.
        server.run::<u64>("DEL mcp:c");
        (0..3).for_each(|_| say(&first, "heard"));
        assert_eq!(second.items.recv_timeout(BOUND), Ok(NodeItem::Missed));
        say(&first, "next");
        assert_eq!(second.items.recv_timeout(BOUND), Ok(heard("next")));
        // Nothing was missed.
        server.cut_readers();
        say(&first, "last");
        assert_eq!(second.items.recv_timeout(BOUND), Ok(heard("last")));
    }
}

#[test]
fn node_reads_no_inbox_but_its_own() {
    let server = Server::start("inbox");
    let (first, second) = (Peer::start(&server), Peer::start(&server));
    let item = |nth: u32| NodeItem::Answer { session: SESSION, message: format!("{nth}").into() };
    let mut double = A;
    double.0[15] ^= 1;
    first.join(A);
    assert_eq!(second.join(double), StoreReply::Taken);
    // It would have begun to read by now.
    thread::park_timeout(SHORT);
    for nth in 0..50 {
        assert_eq!(second.ask(StoreRequest::Send { node: A.tag(), item: item(nth) }), StoreReply::Done);
        assert_eq!(first.items.recv_timeout(BOUND), Ok(item(nth)));
    }
    assert!(second.items.recv_timeout(SHORT).is_err());
    first.ask(StoreRequest::Leave { node: A });
    say(&first, "before");
    assert!(matches!(second.join(double), StoreReply::Joined { .. }));
    say(&first, "after");
    second.ask(StoreRequest::Send { node: A.tag(), item: item(50) });
    let arrived: Vec<_> = (0..2).map(|_| second.items.recv_timeout(BOUND).unwrap()).collect();
    assert!(arrived.contains(&heard("after")) && arrived.contains(&item(50)), "{arrived:?}");
}

#[test]
fn policy_that_cannot_be_read_is_a_warning() {
    let server = Server::start("policy");
    let peer = Peer::start(&server);
    assert_eq!(peer.join(A), StoreReply::Joined { warning: None });
    server.run::<String>("ACL SETUSER default -info");
    let joined = peer.join(B);
    let StoreReply::Joined { warning: Some(why) } = &joined else { panic!("{joined:?}") };
    assert!(why.contains("maxmemory-policy could not be read"), "{why}");
    server.run::<String>("ACL SETUSER default +info");
    server.run::<String>("CONFIG SET maxmemory 1gb maxmemory-policy allkeys-lru");
    let rejoin = [StoreRequest::Leave { node: B }, StoreRequest::Join { node: A, lease: LONG }];
    let replies = peer.all(rejoin);
    let StoreReply::Joined { warning: Some(why) } = &replies[1] else { panic!("{replies:?}") };
    assert!(why.contains("allkeys-lru"), "{why}");
}

#[test]
fn list_of_a_principal_drops_what_has_ended() {
    let server = Server::start("list");
    let (peer, principal, clock) = (Peer::start(&server), PrincipalDigest([3; 32]), Clock::start());
    let put = |nth: u16, version: u64, ttl: Duration| {
        // The clock of this node is years late.
        let created = 1_000 + u64::try_from(clock.now().since_origin().as_millis()).unwrap();
        let (task, record, principal) = (digest(nth), nth.to_string().into(), Some(principal));
        let put = StoreRequest::PutTask { task, version, record, owner: None, principal, created, ttl };
        assert_eq!(peer.ask(put), StoreReply::Done);
    };
    let count = || server.run::<u64>(&format!("ZCARD mcp:p:{{{principal}}}")) - 1;
    (0..20).for_each(|nth| put(nth, 1, SHORT * 2));
    thread::park_timeout(SHORT);
    (20..40).for_each(|nth| put(nth, 1, SHORT * 2));
    assert_eq!(count(), 40);
    thread::park_timeout(SHORT + SHORT / 2);
    // The first have ended.
    (40..43).for_each(|nth| put(nth, 1, SHORT));
    assert_eq!(count(), 23);
    let list = || match peer.ask(StoreRequest::ListTasks { principal, after: None, count: 100 }) {
        StoreReply::Tasks(records) => records.len(),
        other => panic!("{other:?}"),
    };
    assert_eq!(list(), 23);
    // One lasts longer than was said first.
    put(42, 2, LONG);
    thread::park_timeout(SHORT * 2);
    put(43, 1, SHORT);
    assert_eq!(list(), 2);
    let ttl = server.run::<u64>(&format!("PTTL mcp:p:{{{principal}}}"));
    assert!((50_000..=60_000).contains(&ttl), "{ttl}");
}
