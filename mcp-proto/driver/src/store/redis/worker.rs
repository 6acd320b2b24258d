//! The threads of a server, with a connection each: one carries out requests, one reads the news
//! and the inbox. On a cluster two threads read, since the news and the inbox of a node are at
//! different servers.

use super::commands::{
    Fields, Keys, Member, ScriptCall, ScriptValue, StreamEntry, entry_number, eviction_warning, read_item, read_news,
    reply, task, texts,
};
use super::link::{Command, Link, Role, Scripts, Servers, Step, is_demoted};
use crate::store::StorePort;
use crate::sync::{Mutex, lock};
use alloc::borrow::ToOwned;
use alloc::collections::BTreeSet;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use mcp_proto::exchange::Closed;
use mcp_proto::server::store::{
    Incarnation, NodeItem, PrincipalDigest, StoreError, StoreReply, StoreRequest, StoreToken, TaskDigest,
};
use redis::{Cmd, FromRedisValue, RedisError, RedisResult, Value, cmd};
use std::io;
use std::thread;

/// The time for a reply.
const REPLY: Duration = Duration::from_secs(2);
/// The time for which a read waits for news. A server that has ended is noticed after it.
const BLOCK: Duration = Duration::from_secs(1);
/// The time until a connection is tried again.
const RETRY: Duration = Duration::from_secs(1);
/// The number of news that one read takes.
const COUNT: usize = 100;
/// The number of tasks that one request for orphans looks at.
const LOOKED_AT: usize = 1000;

/// What the threads of a server use.
pub(super) struct Worker {
    servers: Servers,
    keys: Keys,
    scripts: Scripts,
    port: StorePort,
    /// What was read. `None` before the node has joined.
    place: Mutex<Option<Place>>,
    /// Counts the connections that requests have lost: the store may be another server now.
    lost: AtomicU64,
    /// What nodes do not own any more. The next batch removes it. A task that is removed late costs
    /// only its place.
    freed: Mutex<BTreeSet<Member>>,
}

/// What a thread reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Reads {
    All,
    News,
    Items,
}

/// What a node has read.
#[derive(Clone, PartialEq, Debug)]
struct Place {
    node: Incarnation,
    news: Newest,
    /// The id of the last entry of its inbox.
    item: String,
}

/// The last news of a store, or those that a node has read last.
#[derive(Clone, PartialEq, Debug, Default)]
struct Newest {
    /// 0: there are none.
    number: u64,
    fields: Fields,
}

impl Worker {
    pub(super) fn start(servers: Servers, prefix: String, port: StorePort) -> io::Result<()> {
        let reads: &[Reads] = if servers.is_cluster() { &[Reads::News, Reads::Items] } else { &[Reads::All] };
        let (keys, scripts) = (Keys { prefix }, Scripts::new());
        let (place, lost, freed) = (Mutex::new(None), AtomicU64::new(0), Mutex::new(BTreeSet::new()));
        let worker = Arc::new(Self { servers, keys, scripts, port, place, lost, freed });
        for reads in reads {
            let reading = Arc::clone(&worker);
            thread::Builder::new().name("mcp-store-read".into()).spawn(move || reading.read(*reads))?;
        }
        thread::Builder::new().name("mcp-store".into()).spawn(move || worker.write()).map(drop)
    }

    /// Carries out requests until the server has ended.
    fn write(&self) {
        let mut link = None;
        while let Some(requests) = self.port.take(Duration::MAX) {
            let results = self.connected(&mut link).and_then(|link| self.carry_out(link, &requests));
            let results = match results {
                Ok(results) => results,
                Err(why) => requests.iter().map(|_| Err(store_error(&why))).collect(),
            };
            // The store may be elsewhere now, or a part of it.
            if results.iter().any(|result| matches!(result, Err(StoreError::Timeout | StoreError::Unreachable(_)))) {
                link = None;
                self.lost.fetch_add(1, Ordering::Relaxed);
            }
            for ((token, _), result) in requests.iter().zip(results) {
                self.port.reply(*token, result);
            }
        }
    }

    fn connected<'a>(&self, link: &'a mut Option<Link>) -> RedisResult<&'a mut Link> {
        Ok(match link {
            Some(open) => open,
            None => link.insert(self.servers.connect(REPLY)?),
        })
    }

    /// Carries out requests, in order. An error of the connection concerns all of them.
    fn carry_out(
        &self,
        link: &mut Link,
        requests: &[(StoreToken, StoreRequest)],
    ) -> RedisResult<Vec<Result<StoreReply, StoreError>>> {
        let (mut news, mut warning) = (Newest::default(), None);
        for (_, request) in requests {
            match request {
                StoreRequest::Join { .. } => {
                    // The node hears what others say from before it has joined.
                    news = self.last_news(link)?;
                    warning = unsafe_memory(link);
                }
                StoreRequest::Leave { node } => self.forget(*node),
                _ => {}
            }
        }
        let calls: Vec<_> = requests.iter().map(|(_, request)| self.keys.call(request)).collect();
        let around: Vec<_> = requests.iter().map(|(_, request)| self.keys.around(request)).collect();
        let mut steps = Vec::new();
        for (around, call) in around.iter().zip(&calls) {
            let step = |call, role| Step { command: Command::Script(call), role };
            steps.extend(around.before.as_ref().map(|call| step(call, Role::Before)));
            steps.extend(call.as_ref().map(|call| step(call, Role::Result)));
            steps.extend(around.after.as_ref().map(|call| step(call, Role::After)));
        }
        let freed = self.still_freed(requests);
        steps.extend(removals(&freed));
        let mut returned = link.run(&steps, &self.scripts)?.into_iter();
        lock(&self.freed).clear();
        let mut results = Vec::with_capacity(requests.len());
        for ((_, request), call) in requests.iter().zip(&calls) {
            let value = call.as_ref().and_then(|_| returned.next());
            let result = match (request, value) {
                (StoreRequest::ListTasks { principal, after, count }, _) => {
                    self.list_tasks(link, *principal, *after, *count).map_err(|why| store_error(&why))
                }
                (_, None) => Err(StoreError::Refused("this version has nothing for the request".to_owned())),
                (_, Some(Err(why))) => Err(store_error(&why)),
                (StoreRequest::Orphans { .. }, Some(Ok(lost))) => {
                    let lost = parts(lost).and_then(texts);
                    lost.and_then(|lost| self.orphans(link, lost).map_err(|why| store_error(&why)))
                }
                (_, Some(Ok(value))) => parts(value).and_then(|value| {
                    self.note_owners(request, &value);
                    reply(request, value, warning.clone())
                }),
            };
            match (request, &result) {
                (StoreRequest::Join { node, .. }, Ok(StoreReply::Joined { .. })) => self.begin(*node, &news),
                (StoreRequest::Leave { node }, _) => self.forget(*node),
                (StoreRequest::Renew { node, .. }, Ok(StoreReply::Lapsed)) => self.forget(*node),
                _ => {}
            }
            results.push(result);
        }
        Ok(results)
    }

    /// The node has joined: from now on its readers deliver its inbox, and the news after these.
    fn begin(&self, node: Incarnation, news: &Newest) {
        let mut place = lock(&self.place);
        if place.as_ref().is_none_or(|place| place.node != node) {
            *place = Some(Place { node, news: news.clone(), item: "0-0".to_owned() });
        }
    }

    /// The node is no member any more: the inbox may be that of another one.
    fn forget(&self, node: Incarnation) {
        lock(&self.place).take_if(|place| place.node == node);
    }

    /// Returns what was freed before, but for what these requests add again.
    fn still_freed(&self, requests: &[(StoreToken, StoreRequest)]) -> BTreeSet<Member> {
        let mut freed = lock(&self.freed);
        for taken in requests.iter().filter_map(|(_, request)| self.keys.taken(request)) {
            freed.remove(&taken);
        }
        freed.clone()
    }

    /// Notes what a request has removed from what nodes own, and added to it.
    fn note_owners(&self, request: &StoreRequest, returned: &ScriptValue) {
        let mut freed = lock(&self.freed);
        if let Some(taken) = self.keys.taken(request) {
            freed.remove(&taken);
        }
        freed.extend(self.keys.freed(request, returned));
    }

    /// Reads tasks. What is none any more is `None`. What cannot be read is an error of its own.
    fn read_tasks(
        &self,
        link: &mut Link,
        tasks: &[String],
    ) -> RedisResult<Vec<Result<Option<StoreReply>, StoreError>>> {
        let calls: Vec<ScriptCall> = tasks.iter().map(|task| self.keys.get_task(task)).collect();
        let steps: Vec<Step<'_>> =
            calls.iter().map(|call| Step { command: Command::Script(call), role: Role::Result }).collect();
        let read = |value: RedisResult<Value>| match parts(value.map_err(|why| store_error(&why))?)? {
            ScriptValue::List(kept) => task(kept).map(Some),
            ScriptValue::Number(0) => Ok(None),
            ScriptValue::Number(_) | ScriptValue::Text(_) => Err(StoreError::Corrupt("it is no task".to_owned())),
        };
        Ok(link.run(&steps, &self.scripts)?.into_iter().map(read).collect())
    }

    fn list_tasks(
        &self,
        link: &mut Link,
        principal: PrincipalDigest,
        after: Option<(u64, TaskDigest)>,
        count: usize,
    ) -> RedisResult<StoreReply> {
        let key = self.keys.principal(principal);
        let (mut records, mut after) = (Vec::new(), after.map(|(created, task)| (created, task.to_string())));
        let page = count.saturating_add(COUNT);
        while records.len() < count {
            let from = after.as_ref().map_or(0, |(created, _)| *created);
            let mut command = cmd("ZRANGE");
            command.arg(&key).arg(from).arg("+inf").arg("BYSCORE").arg("LIMIT").arg(0).arg(page);
            let listed: Vec<(String, u64)> = command.arg("WITHSCORES").query(link.open())?;
            let is_full = listed.len() == page;
            let places = listed.into_iter().map(|(task, created)| (created, task));
            let is_after = |place: &(u64, String)| after.as_ref().is_none_or(|after| place > after);
            let places: Vec<(u64, String)> = places.filter(is_after).collect();
            let tasks: Vec<String> = places.iter().map(|(_, task)| task.clone()).collect();
            for (task, reply) in tasks.iter().zip(self.read_tasks(link, &tasks)?) {
                match reply {
                    Ok(Some(StoreReply::Task { record, .. })) => records.push(record),
                    Ok(_) => cmd("ZREM").arg(&key).arg(task).exec(link.open())?,
                    // It may be there still.
                    Err(why) => return Err(unknown(&why.to_string())),
                }
            }
            match places.into_iter().next_back().filter(|_| is_full) {
                Some(last) => after = Some(last),
                None => break,
            }
        }
        records.truncate(count);
        Ok(StoreReply::Tasks(records))
    }

    /// Returns tasks of lost nodes, of those that it looks at. Drops the nodes that have none, and
    /// what they do not own any more, so that a later request looks at others.
    fn orphans(&self, link: &mut Link, lost: Vec<String>) -> RedisResult<StoreReply> {
        let (mut orphans, mut looked_at) = (BTreeSet::new(), 0);
        'nodes: for node in lost {
            let key = self.keys.owned(&node);
            loop {
                let owned: Vec<String> = cmd("SRANDMEMBER").arg(&key).arg(COUNT).query(link.open())?;
                if owned.is_empty() {
                    let [nodes, _] = self.keys.members();
                    cmd("ZREM").arg(nodes).arg(&node).exec(link.open())?;
                    break;
                }
                let (mut ended, is_all) = (Vec::new(), owned.len() < COUNT);
                for (task, reply) in owned.iter().zip(self.read_tasks(link, &owned)?) {
                    match reply {
                        Ok(Some(StoreReply::Task { owner: Some(owner), .. })) if owner.to_string() == node => {
                            orphans.extend(TaskDigest::parse(task));
                        }
                        // Another node has it, or none.
                        Ok(_) => ended.push(task),
                        // A later sweep finds it.
                        Err(_) => {}
                    }
                }
                if !ended.is_empty() {
                    cmd("SREM").arg(&key).arg(ended).exec(link.open())?;
                }
                looked_at += owned.len();
                if orphans.len() >= COUNT || looked_at >= LOOKED_AT {
                    break 'nodes;
                }
                if is_all {
                    break;
                }
            }
        }
        Ok(StoreReply::Orphans(orphans.into_iter().take(COUNT).collect()))
    }

    /// Returns the newest news.
    fn last_news(&self, link: &mut Link) -> RedisResult<Newest> {
        let mut command = cmd("XREVRANGE");
        command.arg(self.keys.news()).arg("+").arg("-").arg("COUNT").arg(1);
        let Some((id, fields)) = entries(command.query(link.open())?)?.pop() else { return Ok(Newest::default()) };
        let number = entry_number(&id).map_err(|why| unknown(&why.to_string()))?;
        Ok(Newest { number, fields })
    }

    /// Delivers what other nodes say, until the server has ended.
    fn read(&self, reads: Reads) {
        let mut link = None;
        while !self.port.has_ended() {
            let Some(place) = lock(&self.place).clone() else {
                self.port.ends_within(BLOCK / 20);
                continue;
            };
            let lost = self.lost.load(Ordering::Relaxed);
            let read = match &mut link {
                Some((open, since)) if *since == lost => self.next(open, &place, reads),
                _ => self.servers.connect(BLOCK + REPLY).and_then(|open| {
                    let (open, _) = link.insert((open, lost));
                    if reads != Reads::Items {
                        self.look_back(open, &place)?;
                    }
                    Ok(Default::default())
                }),
            };
            let read = read.and_then(|(news, items)| {
                let taken = self.deliver(&place, news, items);
                taken.zip(link.as_mut()).map_or(Ok(()), |(taken, (open, _))| self.drop_taken(open, &place, &taken))
            });
            if read.is_err() {
                // The requests of the other thread report it.
                link = None;
                self.port.ends_within(RETRY);
            }
        }
    }

    /// Of a store that has gone back in time, the next news are not those after the ones that were
    /// read last: these are gone, or others have their number.
    fn look_back(&self, link: &mut Link, place: &Place) -> RedisResult<()> {
        if place.news.number > 0 {
            let (mut command, id) = (cmd("XRANGE"), alloc::format!("{}-0", place.news.number));
            command.arg(self.keys.news()).arg(&id).arg(&id);
            let is_there = entries(command.query(link.open())?)?.iter().any(|(_, fields)| *fields == place.news.fields);
            if !is_there {
                let newest = self.last_news(link)?;
                let mut known = lock(&self.place);
                let is_same = |known: &&mut Place| known.node == place.node && known.news == place.news;
                if let Some(known) = known.as_mut().filter(is_same) {
                    known.news = newest;
                    self.port.deliver(NodeItem::Missed);
                }
            }
        }
        Ok(())
    }

    /// Waits for news and items after a place.
    fn next(&self, link: &mut Link, place: &Place, reads: Reads) -> RedisResult<(Vec<StreamEntry>, Vec<StreamEntry>)> {
        let (news, inbox) = (self.keys.news(), self.keys.inbox(place.node.tag()));
        let after_news = alloc::format!("{}-0", place.news.number);
        let (keys, after) = match reads {
            Reads::All => (vec![&news, &inbox], vec![&after_news, &place.item]),
            Reads::News => (vec![&news], vec![&after_news]),
            Reads::Items => (vec![&inbox], vec![&place.item]),
        };
        let mut command = cmd("XREAD");
        command.arg("COUNT").arg(COUNT).arg("BLOCK").arg(u64::try_from(BLOCK.as_millis()).unwrap_or(u64::MAX));
        command.arg("STREAMS").arg(keys).arg(after);
        let streams: Option<Vec<(String, Value)>> = command.query(link.open())?;
        let (mut said, mut sent) = (Vec::new(), Vec::new());
        for (key, read) in streams.into_iter().flatten() {
            if key == news { said = entries(read)? } else { sent = entries(read)? }
        }
        Ok((said, sent))
    }

    /// Drops from an inbox what comes before an item. Only its reader does, which has taken that.
    fn drop_taken(&self, link: &mut Link, place: &Place, item: &str) -> RedisResult<()> {
        cmd("XTRIM").arg(self.keys.inbox(place.node.tag())).arg("MINID").arg(item).exec(link.open())
    }

    /// Delivers what was read at a place. Returns the last item.
    fn deliver(&self, place: &Place, news: Vec<StreamEntry>, items: Vec<StreamEntry>) -> Option<String> {
        // A node that has joined again meanwhile has another place, and one that has left has none.
        let mut known = lock(&self.place);
        let after = known.as_mut().filter(|known| known.node == place.node)?;
        let mut taken = None;
        if after.item == place.item {
            for item in items {
                after.item.clone_from(&item.0);
                taken = Some(item.0.clone());
                // What cannot be read is for another version.
                if let Ok(item) = read_item(item) {
                    self.port.deliver(item);
                }
            }
        }
        if after.news == place.news {
            for entry in news {
                let number = entry_number(&entry.0).unwrap_or(after.news.number + 1);
                if number != after.news.number + 1 {
                    self.port.deliver(NodeItem::Missed);
                }
                after.news = Newest { number, fields: entry.1.clone() };
                // What cannot be read may be anything.
                self.port.deliver(read_news(entry).unwrap_or(NodeItem::Missed));
            }
        }
        taken
    }
}

/// Returns the commands that remove tasks from what nodes own.
fn removals(freed: &BTreeSet<Member>) -> Vec<Step<'static>> {
    let mut removals: Vec<(&str, Cmd)> = Vec::new();
    for Member { key, task } in freed {
        match removals.last_mut() {
            Some((last, command)) if *last == key => {
                command.arg(task);
            }
            _ => {
                let mut command = cmd("SREM");
                command.arg(key).arg(task);
                removals.push((key, command));
            }
        }
    }
    removals.into_iter().map(|(_, command)| Step { command: Command::Plain(command), role: Role::After }).collect()
}

/// Returns what a script has returned.
fn parts(value: Value) -> Result<ScriptValue, StoreError> {
    Ok(match value {
        Value::Int(number) => ScriptValue::Number(number),
        Value::BulkString(text) => ScriptValue::Text(text),
        Value::SimpleString(text) => ScriptValue::Text(text.into_bytes()),
        Value::Array(list) => ScriptValue::List(list.into_iter().map(parts).collect::<Result<_, _>>()?),
        _ => return Err(StoreError::Corrupt("a script has returned something else".to_owned())),
    })
}

/// Returns why a store may drop what it keeps, from the section `memory` of each of its servers.
fn unsafe_memory(link: &mut Link) -> Option<String> {
    let texts = cmd("INFO").arg("memory").query(link.open()).and_then(|info| {
        let texts = match info {
            Value::Map(of_servers) => of_servers.into_iter().map(|(_, text)| String::from_redis_value(text)).collect(),
            text => String::from_redis_value(text).map(|text| vec![text]),
        };
        Ok(texts?)
    });
    match texts {
        Ok(texts) => eviction_warning(&texts),
        Err(why) => Some(alloc::format!("its maxmemory-policy could not be read: {why}")),
    }
}

/// Reads entries of a stream.
fn entries(value: Value) -> RedisResult<Vec<StreamEntry>> {
    Ok(Vec::<StreamEntry>::from_redis_value(value)?)
}

fn unknown(why: &str) -> RedisError {
    RedisError::from((redis::ErrorKind::UnexpectedReturnType, "unexpected reply", why.to_owned()))
}

fn store_error(why: &RedisError) -> StoreError {
    if why.is_timeout() {
        StoreError::Timeout
    } else if why.is_connection_refusal() {
        StoreError::Unreachable(Closed::Refused)
    } else if why.is_io_error() || why.is_connection_dropped() || why.is_unrecoverable_error() || is_demoted(why) {
        StoreError::Unreachable(Closed::Unreachable(why.to_string()))
    } else {
        StoreError::Refused(why.to_string())
    }
}
