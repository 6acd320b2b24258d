//! What a driver of a store must keep, as a suite that it is run against.

mod tasks;

use super::{StoreDriver, StorePort, StoreQueue};
use crate::os::Clock;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use bytes::Bytes;
use core::time::Duration;
use mcp_proto::input::ServerCommand;
use mcp_proto::server::store::{
    Epoch, Incarnation, Memory, News, NodeItem, PrincipalDigest, RequestDigest, SessionDigest, StoreReply,
    StoreRequest, StoreToken, StoredEvent,
};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

/// The longest time for a reply, and for something to arrive or to end.
const BOUND: Duration = Duration::from_secs(10);
/// A time that ends while the suite waits for it.
const SHORT: Duration = Duration::from_millis(200);
const LONG: Duration = Duration::from_secs(60);

/// Runs the suite against a driver, which must be connected to a store that no server uses
/// meanwhile. It takes some seconds, and leaves nothing that does not end by itself. Returns the
/// number of requests whose replies were compared with those of [`Memory`].
///
/// ```
/// # #[cfg(feature = "testing")] {
/// let store = mcp_driver::store::SharedMemory::new();
/// assert!(mcp_driver::store::check(&store).unwrap() > 100);
/// # }
/// ```
///
/// # Errors
/// The first reply that differs, or what did not arrive.
pub fn check(driver: &dyn StoreDriver) -> Result<usize, String> {
    let mut suite = Suite { model: Memory::new(), clock: Clock::start(), compared: 0, names: names()? };
    let (first, second) = (Peer::start(driver)?, Peer::start(driver)?);
    suite.leases(&first)?;
    suite.sessions(&first, &second)?;
    suite.streams(&first, &second)?;
    suite.pages(&first)?;
    suite.cancellations(&first)?;
    suite.items(&first, &second)?;
    suite.news(&first, &second)?;
    suite.tasks(&first, &second)?;
    suite.orphans(&first, &second)?;
    suite.revocations(&first, &second)?;
    suite.ends(&first)?;
    Ok(suite.compared)
}

/// A server, as far as its store knows.
struct Peer {
    queue: StoreQueue,
    last: Mutex<u64>,
    replies: Receiver<(StoreToken, Result<StoreReply, String>)>,
    items: Receiver<NodeItem>,
}

struct Suite {
    model: Memory,
    clock: Clock,
    compared: usize,
    /// Names that no other run has.
    names: Vec<u8>,
}

fn names() -> Result<Vec<u8>, String> {
    Ok(crate::seed().map_err(|why| format!("{why}"))?.to_vec())
}

impl Peer {
    fn start(driver: &dyn StoreDriver) -> Result<Self, String> {
        let (reply, replies) = channel();
        let (deliver, items) = channel();
        let senders: Arc<Mutex<(Sender<_>, Sender<_>)>> = Arc::new(Mutex::new((reply, deliver)));
        let link = move |command| {
            let Ok(senders) = senders.lock() else { return };
            // The suite may be over.
            let _ = match command {
                ServerCommand::Stored(token, result) => {
                    senders.0.send((token, result.map_err(|why| format!("{why}")))).map_err(drop)
                }
                ServerCommand::Arrived(item) => senders.1.send(item).map_err(drop),
                _ => Ok(()),
            };
        };
        let queue = StoreQueue::new();
        driver.start(StorePort::new(queue.clone(), link)).map_err(|why| format!("it does not start: {why}"))?;
        Ok(Self { queue, last: Mutex::new(0), replies, items })
    }

    fn send(&self, request: StoreRequest) -> StoreToken {
        let mut last = self.last.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        *last += 1;
        self.queue.push(StoreToken(*last), request);
        StoreToken(*last)
    }

    fn reply(&self, token: StoreToken) -> Result<StoreReply, String> {
        let (replied, result) = self.replies.recv_timeout(BOUND).map_err(|_| String::from("there is no reply"))?;
        if replied != token {
            return Err(format!("the reply to {token:?} is one to {replied:?}"));
        }
        match result? {
            StoreReply::Joined { .. } => Ok(StoreReply::Joined { warning: None }),
            other => Ok(other),
        }
    }

    fn ask(&self, request: StoreRequest) -> Result<StoreReply, String> {
        let token = self.send(request);
        self.reply(token)
    }

    fn arrived(&self) -> Result<NodeItem, String> {
        self.items.recv_timeout(BOUND).map_err(|_| "nothing arrives".into())
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.queue.end();
    }
}

impl Suite {
    fn name<const N: usize>(&self, of: u8) -> [u8; N] {
        let mut name = [of; N];
        name.iter_mut().zip(&self.names).for_each(|(byte, random)| *byte ^= *random);
        name
    }

    fn node(&self, of: u8) -> Incarnation {
        Incarnation(self.name(of))
    }

    fn session(&self, of: u8) -> SessionDigest {
        SessionDigest(self.name(of))
    }

    /// Carries out a request at the store and at the model, and compares the replies. Each has a
    /// time of its own.
    fn same(&mut self, peer: &Peer, request: StoreRequest) -> Result<StoreReply, String> {
        let timeless = |reply| match reply {
            StoreReply::Session { version, record, .. } => StoreReply::Session { version, record, opened: 0 },
            other => other,
        };
        let reply = timeless(peer.ask(request.clone())?);
        let expected = timeless(self.model.apply(self.clock.now().since_origin(), request.clone()));
        self.compared += 1;
        if reply != expected {
            return Err(format!("{request:?}: {reply:?} instead of {expected:?}"));
        }
        Ok(reply)
    }

    /// The same for each of these.
    fn all(&mut self, peer: &Peer, requests: impl IntoIterator<Item = StoreRequest>) -> Result<(), String> {
        requests.into_iter().try_for_each(|request| self.same(peer, request).map(drop))
    }

    fn join(&self, of: u8) -> StoreRequest {
        StoreRequest::Join { node: self.node(of), lease: LONG }
    }

    fn leases(&mut self, peer: &Peer) -> Result<(), String> {
        let renew = |node: Incarnation, beat| StoreRequest::Renew { node, beat, lease: LONG };
        let mut double = self.node(1);
        double.0[15] ^= 1;
        let (a, b) = (self.node(1), self.node(2));
        self.all(
            peer,
            [
                StoreRequest::IsMember { node: a },
                renew(a, 1),
                StoreRequest::Leave { node: a },
                self.join(1),
                self.join(1),
                StoreRequest::Join { node: double, lease: LONG },
                StoreRequest::IsMember { node: a },
                StoreRequest::IsMember { node: double },
                StoreRequest::IsMember { node: b },
                renew(a, 1),
                renew(a, 1),
                renew(a, 2),
                renew(a, 1),
                renew(a, 4),
                renew(double, 3),
                StoreRequest::Leave { node: double },
                StoreRequest::IsMember { node: a },
                StoreRequest::Leave { node: a },
                StoreRequest::IsMember { node: a },
                renew(a, 3),
                StoreRequest::Join { node: double, lease: LONG },
                StoreRequest::Leave { node: double },
            ],
        )
    }

    fn sessions(&mut self, first: &Peer, second: &Peer) -> Result<(), String> {
        let session = self.session(10);
        let open = |record: &'static str| StoreRequest::Open { session, record: record.into(), ttl: LONG };
        let change = |version, record: &'static str| StoreRequest::Change { session, version, record: record.into() };
        let (load, touch) = (StoreRequest::Load { session, ttl: LONG }, StoreRequest::Touch { session, ttl: LONG });
        let close = StoreRequest::Close { session };
        let rows = [
            load.clone(),
            touch.clone(),
            change(1, "x"),
            close.clone(),
            open("a \u{0} \r\n ü"),
            open("b"),
            load.clone(),
            change(2, "c"),
            change(1, "c"),
            change(1, "c"),
            change(1, "d"),
            change(2, ""),
            load.clone(),
            touch.clone(),
            close.clone(),
            load.clone(),
            touch,
            open("e"),
            load,
            close,
        ];
        // It does not matter which server asks.
        for (request, nth) in rows.into_iter().zip(0..) {
            self.same(if nth % 2 == 0 { first } else { second }, request)?;
        }
        Ok(())
    }

    fn append(session: SessionDigest, stream: u64, epoch: Epoch, number: u64, data: &[u8]) -> StoreRequest {
        let event = StoredEvent { number, data: Bytes::copy_from_slice(data) };
        StoreRequest::Append {
            session,
            stream,
            epoch,
            event,
            is_sent: number % 2 == 1,
            answers: None,
            keep: 1000,
            last: None,
        }
    }

    fn streams(&mut self, first: &Peer, second: &Peer) -> Result<(), String> {
        let (session, a, b) = (self.session(20), self.node(1), self.node(2));
        let ids = vec![Bytes::from_static(b"1"), Bytes::from_static(br#""a ] %w \n""#)];
        let claim = |node, over| StoreRequest::Claim { session, stream: 7, requests: ids.clone(), node, over };
        let read = |after| StoreRequest::Read { session, stream: 7, after };
        let (one, two) = (Epoch { node: a, number: 1 }, Epoch { node: b, number: 2 });
        let append = |epoch, number, data: &[u8]| Self::append(session, 7, epoch, number, data);
        self.all(first, [claim(a, None), append(one, 1, b"x"), read(0)])?;
        self.same(first, StoreRequest::Open { session, record: "r".into(), ttl: LONG })?;
        self.all(first, [append(one, 1, b"x"), read(0), claim(a, None), claim(a, None), read(0), read(1)])?;
        self.all(second, [claim(b, None), append(two, 1, b"y"), claim(b, Some(two))])?;
        self.all(
            first,
            [
                append(one, 1, b"\x00\r\n ok"),
                append(one, 1, b"\x00\r\n ok"),
                append(one, 1, b"other"),
                append(one, 3, b"z"),
            ],
        )?;
        self.all(first, [append(one, 2, b""), read(0), read(1), read(2), read(3)])?;
        self.all(second, [claim(b, Some(one)), claim(b, Some(one)), claim(b, None)])?;
        self.all(first, [append(one, 3, b"late"), append(one, 2, b""), claim(a, None), claim(a, Some(one))])?;
        let last = |epoch, number, answers: &[u8], keep| StoreRequest::Append {
            session,
            stream: 7,
            epoch,
            event: StoredEvent { number, data: Bytes::from_static(b"answer") },
            is_sent: true,
            answers: Some(RequestDigest::of(answers)),
            keep: 1000,
            last: keep,
        };
        self.all(second, [last(two, 3, &ids[0], None), claim(b, None), read(2)])?;
        self.all(second, [last(two, 4, &ids[1], Some(LONG)), last(two, 4, &ids[1], Some(LONG)), read(0), read(3)])?;
        self.all(second, [append(two, 5, b"more"), claim(b, None), claim(a, Some(two)), read(4), read(5)])?;
        // Another stream of the session knows nothing of it.
        self.all(first, [StoreRequest::Claim { session, stream: 8, requests: Vec::new(), node: a, over: None }])?;
        self.all(first, [StoreRequest::Read { session, stream: 8, after: 0 }, StoreRequest::Close { session }, read(0)])
    }

    fn pages(&mut self, peer: &Peer) -> Result<(), String> {
        let (session, a) = (self.session(30), self.node(1));
        let epoch = Epoch { node: a, number: 1 };
        self.same(peer, StoreRequest::Open { session, record: "r".into(), ttl: LONG })?;
        self.same(peer, StoreRequest::Claim { session, stream: 0, requests: Vec::new(), node: a, over: None })?;
        // All at once: their order is that of the replies, and of the store.
        let requests: Vec<StoreRequest> = (1..=250)
            .map(|number| Self::append(session, 0, epoch, number, format!("event {number}").as_bytes()))
            .collect();
        let tokens: Vec<StoreToken> = requests.iter().map(|request| peer.send(request.clone())).collect();
        for (token, request) in tokens.into_iter().zip(requests) {
            let (reply, expected) = (peer.reply(token)?, self.model.apply(self.clock.now().since_origin(), request));
            self.compared += 1;
            if reply != expected {
                return Err(format!("an event of many: {reply:?} instead of {expected:?}"));
            }
        }
        let read = |after| StoreRequest::Read { session, stream: 0, after };
        self.all(peer, [0, 100, 200, 249, 250].map(read))?;
        let event = StoredEvent { number: 251, data: "large".into() };
        let (answers, last) = (None, None);
        self.same(
            peer,
            StoreRequest::Append { session, stream: 0, epoch, event, is_sent: true, answers, keep: 3, last },
        )?;
        self.all(peer, [247, 248, 250].map(read))?;
        self.same(peer, StoreRequest::Close { session }).map(drop)
    }

    fn cancellations(&mut self, peer: &Peer) -> Result<(), String> {
        let (session, a) = (self.session(40), self.node(1));
        let id = Bytes::from_static(b"7");
        let request = RequestDigest::of(&id);
        let cancel = StoreRequest::Cancel { session, request, keep: LONG };
        let claim = |stream| StoreRequest::Claim { session, stream, requests: vec![id.clone()], node: a, over: None };
        let (epoch, event) = (Epoch { node: a, number: 1 }, StoredEvent { number: 1, data: "answer".into() });
        let answer = StoreRequest::Append {
            session,
            stream: 1,
            epoch,
            event,
            is_sent: true,
            answers: Some(request),
            keep: 1000,
            last: None,
        };
        self.same(peer, StoreRequest::Open { session, record: "r".into(), ttl: LONG })?;
        self.all(peer, [cancel.clone(), cancel.clone(), claim(1), claim(1), cancel.clone(), answer, cancel, claim(2)])?;
        self.repeated_claims(peer, session)?;
        self.same(peer, StoreRequest::Close { session }).map(drop)
    }

    /// A claim whose reply was lost says once more what was cancelled. A stream that is over has no
    /// requests.
    fn repeated_claims(&mut self, peer: &Peer, session: SessionDigest) -> Result<(), String> {
        let (a, b) = (self.node(1), self.node(2));
        let ids = [br#""b 1 c""#.as_slice(), b"8", b"9"].map(Bytes::from_static);
        let cancel = |id| StoreRequest::Cancel { session, request: RequestDigest::of(id), keep: LONG };
        let claim = |node, over| StoreRequest::Claim { session, stream: 3, requests: ids.clone().into(), node, over };
        let (one, two) = (Epoch { node: a, number: 1 }, Epoch { node: b, number: 2 });
        let append = |epoch, number, answers: Option<&Bytes>, last| StoreRequest::Append {
            session,
            stream: 3,
            epoch,
            event: StoredEvent { number, data: "event".into() },
            is_sent: true,
            answers: answers.map(|id| RequestDigest::of(id)),
            keep: 1000,
            last,
        };
        self.all(peer, [cancel(&ids[1]), cancel(&ids[0]), claim(a, None), claim(a, None)])?;
        self.all(peer, [append(one, 1, None, None), claim(a, None), claim(b, Some(one)), claim(b, Some(one))])?;
        self.all(peer, [append(two, 2, Some(&ids[0]), None), claim(b, None), cancel(&ids[0]), cancel(&ids[2])])?;
        self.all(peer, [append(two, 3, None, Some(LONG)), claim(b, None), cancel(&ids[1]), cancel(&ids[2])])
    }

    fn items(&mut self, first: &Peer, second: &Peer) -> Result<(), String> {
        let (session, a) = (self.session(50), self.node(3));
        let item = |message: String| NodeItem::Answer { session, message: message.into() };
        let send = |item| StoreRequest::Send { node: a.tag(), item };
        self.same(first, send(item("lost".into())))?;
        self.same(second, self.join(3))?;
        for nth in 0..200 {
            self.same(first, send(item(format!("{nth}"))))?;
        }
        let large = item("x".repeat(1 << 20));
        self.same(first, send(large.clone()))?;
        for expected in (0..200).map(|nth| item(format!("{nth}"))).chain([large]) {
            let arrived = second.arrived()?;
            if arrived != expected {
                return Err(format!("{arrived:?} arrives instead of {expected:?}"));
            }
        }
        self.same(second, StoreRequest::Leave { node: a })?;
        self.same(first, send(item("late".into()))).map(drop)
    }

    fn news(&mut self, first: &Peer, second: &Peer) -> Result<(), String> {
        let (a, b) = (self.node(4), self.node(5));
        let said = |node, nth: u32| StoreRequest::Publish { node, news: News::Elicited(format!("{nth}")) };
        self.same(first, said(a, 0))?;
        self.same(second, self.join(5))?;
        for nth in 1..=150 {
            self.same(first, said(a, nth))?;
        }
        self.same(second, said(b, 151))?;
        // A node may hear what it has said itself.
        for nth in 1..=150 {
            let expected = NodeItem::News { from: a, news: News::Elicited(format!("{nth}")) };
            let arrived = second.arrived()?;
            if arrived != expected {
                return Err(format!("{arrived:?} arrives instead of {expected:?}"));
            }
        }
        self.same(second, StoreRequest::Leave { node: b }).map(drop)
    }

    fn revocations(&mut self, first: &Peer, second: &Peer) -> Result<(), String> {
        let (session, principal) = (self.session(70), PrincipalDigest(self.name(71)));
        let other = PrincipalDigest(self.name(72));
        let load = StoreRequest::Load { session, ttl: LONG };
        self.same(first, StoreRequest::Open { session, record: "r".into(), ttl: LONG })?;
        let StoreReply::Session { opened, .. } = first.ask(load)? else {
            return Err("a session that was opened is not kept".into());
        };
        // The clocks of a store may be seconds apart.
        let later = opened + u64::try_from(LONG.as_millis()).unwrap_or(u64::MAX);
        let rows = [
            (StoreRequest::IsRevoked { principal, opened }, StoreReply::Missing),
            (StoreRequest::Revoke { principal, keep: LONG }, StoreReply::Done),
            (StoreRequest::Revoke { principal, keep: LONG }, StoreReply::Done),
            (StoreRequest::IsRevoked { principal, opened }, StoreReply::Done),
            (StoreRequest::IsRevoked { principal, opened: later }, StoreReply::Missing),
            (StoreRequest::IsRevoked { principal: other, opened }, StoreReply::Missing),
            (StoreRequest::Revoke { principal, keep: SHORT }, StoreReply::Done),
        ];
        for ((request, expected), nth) in rows.into_iter().zip(0..) {
            let reply = if nth % 2 == 0 { first } else { second }.ask(request.clone())?;
            if reply != expected {
                return Err(format!("{request:?} is {reply:?}, and not {expected:?}"));
            }
            self.compared += 1;
        }
        self.same(second, StoreRequest::Close { session }).map(drop)
    }

    /// What ends by itself does.
    fn ends(&mut self, peer: &Peer) -> Result<(), String> {
        let (session, a) = (self.session(60), self.node(6));
        let clock = self.clock;
        let until = |request: StoreRequest, expected: StoreReply| {
            let end = clock.now() + BOUND;
            loop {
                let reply = peer.ask(request.clone())?;
                if reply == expected {
                    return Ok(());
                }
                if clock.now() > end {
                    return Err(format!("{request:?} is still {reply:?}"));
                }
                thread::park_timeout(Duration::from_millis(10));
            }
        };
        let load = |ttl| StoreRequest::Load { session, ttl };
        peer.ask(StoreRequest::Join { node: a, lease: SHORT })?;
        until(StoreRequest::IsMember { node: a }, StoreReply::NoNode)?;
        peer.ask(StoreRequest::Open { session, record: "r".into(), ttl: SHORT })?;
        peer.ask(load(LONG))?;
        peer.ask(StoreRequest::Claim { session, stream: 1, requests: Vec::new(), node: a, over: None })?;
        let (epoch, event) = (Epoch { node: a, number: 1 }, StoredEvent { number: 1, data: "x".into() });
        peer.ask(StoreRequest::Append {
            session,
            stream: 1,
            epoch,
            event,
            is_sent: true,
            answers: None,
            keep: 1000,
            last: Some(SHORT),
        })?;
        // A stream that is over is not kept for longer.
        peer.ask(load(LONG))?;
        until(StoreRequest::Read { session, stream: 1, after: 0 }, StoreReply::Missing)?;
        let request = RequestDigest::of(b"1");
        peer.ask(StoreRequest::Cancel { session, request, keep: SHORT })?;
        if peer.ask(load(SHORT))? == StoreReply::Missing {
            return Err("a session that was kept for longer has ended".into());
        }
        until(StoreRequest::Touch { session, ttl: SHORT / 100 }, StoreReply::Missing)?;
        until(load(SHORT), StoreReply::Missing)?;
        self.compared += 9;
        Ok(())
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;
    use crate::store::SharedMemory;

    #[test]
    fn memory_passes() {
        assert!(check(&SharedMemory::new()).unwrap() > 600);
    }
}
