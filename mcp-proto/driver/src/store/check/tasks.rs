//! Tasks, and those of lost nodes.

use super::{BOUND, LONG, Peer, SHORT, Suite};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use bytes::Bytes;
use core::time::Duration;
use mcp_proto::server::store::{PrincipalDigest, StoreReply, StoreRequest, TaskDigest};
use std::thread;

impl Suite {
    fn put(&self, of: u8, version: u64, record: &'static str, owner: Option<u8>) -> StoreRequest {
        StoreRequest::PutTask {
            task: TaskDigest(self.name(of)),
            version,
            record: record.into(),
            owner: owner.map(|owner| self.node(owner)),
            principal: Some(PrincipalDigest(self.name(70))),
            created: 1_700_000_000_000 + u64::from(of / 2),
            ttl: LONG,
        }
    }

    pub(super) fn tasks(&mut self, first: &Peer, second: &Peer) -> Result<(), String> {
        let get = |suite: &Self, of| StoreRequest::GetTask { task: TaskDigest(suite.name(of)) };
        let rows = [
            get(self, 80),
            self.put(80, 2, "a", None),
            self.put(80, 1, "a", Some(1)),
            self.put(80, 1, "a", Some(1)),
            self.put(80, 1, "b", Some(1)),
            get(self, 80),
            self.put(80, 3, "c", None),
            self.put(80, 2, "c", None),
            self.put(80, 2, "c", None),
            self.put(80, 2, "c", Some(2)),
            get(self, 80),
        ];
        for (request, nth) in rows.into_iter().zip(0..) {
            self.same(if nth % 2 == 0 { first } else { second }, request)?;
        }
        // Two of them have the same time: 82 and 83.
        for of in 81..90 {
            let put = self.put(of, 1, "listed", None);
            self.same(first, put)?;
        }
        let principal = PrincipalDigest(self.name(70));
        let after = |suite: &Self, of: u8| Some((1_700_000_000_000 + u64::from(of / 2), TaskDigest(suite.name(of))));
        let places = [None, after(self, 80), after(self, 82), after(self, 83), after(self, 89)];
        for after in places {
            for count in [1, 3, 100] {
                self.same(second, StoreRequest::ListTasks { principal, after, count })?;
            }
        }
        let nobody = PrincipalDigest(self.name(71));
        self.same(first, StoreRequest::ListTasks { principal: nobody, after: None, count: 10 }).map(drop)
    }

    pub(super) fn orphans(&mut self, first: &Peer, second: &Peer) -> Result<(), String> {
        let (lost, lives) = (self.node(7), self.node(8));
        let ask = |node| StoreRequest::Orphans { node, lease: SHORT };
        self.same(first, self.join(7))?;
        self.same(second, self.join(8))?;
        for of in 100..103 {
            let put = self.put(of, 1, "owned", Some(7));
            self.same(first, put)?;
        }
        let moved = self.put(102, 2, "moved", Some(8));
        self.same(second, moved)?;
        self.same(first, StoreRequest::Leave { node: lost })?;
        let end = self.clock.now() + BOUND;
        let expected = [100, 101].map(|of| TaskDigest(self.name(of)));
        loop {
            match second.ask(ask(lives))? {
                StoreReply::Orphans(found) if expected.iter().all(|task| found.contains(task)) => break,
                other if self.clock.now() > end => return Err(format!("{other:?} are no orphans")),
                _ => thread::park_timeout(Duration::from_millis(10)),
            }
        }
        if first.ask(ask(self.node(9)))? != StoreReply::Orphans(Vec::new()) {
            return Err("two nodes look for orphans at once".into());
        }
        for (of, version) in [(100, 2), (101, 2), (102, 3)] {
            let settled = self.put(of, version, "settled", None);
            self.same(second, settled)?;
        }
        match second.ask(ask(lives))? {
            StoreReply::Orphans(found) if !found.iter().any(|task| expected.contains(task)) => {}
            other => return Err(format!("{other:?} are settled")),
        }
        self.same(second, StoreRequest::Leave { node: lives })?;
        self.many_orphans(first, second)
    }

    /// Many tasks of a lost node are found soon, among many that it has ended.
    fn many_orphans(&mut self, first: &Peer, second: &Peer) -> Result<(), String> {
        let (lost, lives) = (self.node(10), self.node(11));
        let task = |suite: &Self, nth: u8| {
            let mut name = suite.name::<32>(12);
            name[31] = nth;
            TaskDigest(name)
        };
        let put = |suite: &Self, nth, version, owner| {
            let (task, record, created) = (task(suite, nth), Bytes::from_static(b"r"), 1_700_000_000_000);
            StoreRequest::PutTask { task, version, record, owner, principal: None, created, ttl: LONG }
        };
        self.same(first, StoreRequest::Join { node: lost, lease: LONG })?;
        self.same(second, StoreRequest::Join { node: lives, lease: LONG })?;
        for nth in 0..250 {
            self.same(first, put(self, nth, 1, Some(lost)))?;
        }
        for nth in 0..125 {
            self.same(first, put(self, nth, 2, None))?;
        }
        self.same(first, StoreRequest::Leave { node: lost })?;
        let mut left: Vec<u8> = (125..250).collect();
        let end = self.clock.now() + BOUND;
        while !left.is_empty() {
            let StoreReply::Orphans(found) = second.ask(StoreRequest::Orphans { node: lives, lease: SHORT })? else {
                return Err("orphans are something else".into());
            };
            if found.len() > 100 || found.len() < left.len().min(100) && self.clock.now() > end {
                return Err(format!("{} orphans are found, of {}", found.len(), left.len()));
            }
            let (settled, others): (Vec<u8>, _) = left.into_iter().partition(|nth| found.contains(&task(self, *nth)));
            for nth in settled {
                self.same(second, put(self, nth, 2, None))?;
            }
            left = others;
        }
        self.same(second, StoreRequest::Leave { node: lives }).map(drop)
    }
}
