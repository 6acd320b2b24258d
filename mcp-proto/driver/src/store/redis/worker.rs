//! The two threads of a server, with a connection each: one carries out requests, one waits for
//! what other nodes say.

use super::commands::{
    Keys, Plain, Returned, ScriptCall, StreamEntry, entry_number, eviction_warning, read_item, read_news, reply, task,
    texts,
};
use super::scripts::Script as Name;
use crate::store::StorePort;
use crate::sync::{Mutex, lock};
use alloc::borrow::ToOwned;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;
use mcp_proto::exchange::Closed;
use mcp_proto::server::store::{
    NodeItem, NodeTag, PrincipalDigest, StoreError, StoreReply, StoreRequest, StoreToken, TaskDigest,
};
use redis::{Client, Connection, FromRedisValue, Pipeline, RedisError, RedisResult, Script, Value, cmd, pipe};
use std::io;
use std::thread;

/// The time to connect, and for a reply.
const REPLY: Duration = Duration::from_secs(2);
/// The time for which a read waits for news. A server that has ended is noticed after it.
const BLOCK: Duration = Duration::from_secs(1);
/// The time until a connection is tried again.
const RETRY: Duration = Duration::from_secs(1);
/// The number of news that one read takes.
const COUNT: usize = 100;

/// What both threads of a server use.
pub(super) struct Worker {
    client: Client,
    keys: Keys,
    scripts: Vec<Script>,
    port: StorePort,
    /// What was read. `None` before the node has joined.
    place: Mutex<Option<Place>>,
}

/// What a node has read.
#[derive(Clone, PartialEq, Debug)]
struct Place {
    node: NodeTag,
    /// The number of the last news.
    news: u64,
    /// The id of the last entry of its inbox.
    item: String,
}

impl Worker {
    pub(super) fn start(client: Client, prefix: String, port: StorePort) -> io::Result<()> {
        let scripts = Name::ALL.iter().map(|script| Script::new(script.text())).collect();
        let worker = Arc::new(Self { client, keys: Keys { prefix }, scripts, port, place: Mutex::new(None) });
        let reading = Arc::clone(&worker);
        thread::Builder::new().name("mcp-store-read".into()).spawn(move || reading.read())?;
        thread::Builder::new().name("mcp-store".into()).spawn(move || worker.write()).map(drop)
    }

    /// Carries out requests until the server has ended.
    fn write(&self) {
        let mut connection = None;
        while let Some(requests) = self.port.take(Duration::MAX) {
            let results = self.connected(&mut connection).and_then(|connection| self.carry_out(connection, &requests));
            match results {
                Ok(results) => {
                    for ((token, _), result) in requests.iter().zip(results) {
                        self.port.reply(*token, result);
                    }
                }
                Err(why) => {
                    connection = None;
                    requests.iter().for_each(|(token, _)| self.port.reply(*token, Err(store_error(&why))));
                }
            }
        }
    }

    fn connected<'a>(&self, connection: &'a mut Option<Connection>) -> RedisResult<&'a mut Connection> {
        Ok(match connection {
            Some(open) => open,
            None => {
                let mut open = self.connect(REPLY)?;
                self.load_scripts(&mut open)?;
                connection.insert(open)
            }
        })
    }

    fn connect(&self, reply: Duration) -> RedisResult<Connection> {
        let open = self.client.get_connection_with_timeout(REPLY)?;
        open.set_read_timeout(Some(reply))?;
        open.set_write_timeout(Some(REPLY))?;
        Ok(open)
    }

    fn load_scripts(&self, connection: &mut Connection) -> RedisResult<()> {
        self.scripts.iter().try_for_each(|script| script.load(connection).map(drop))
    }

    /// Carries out requests, in one pipeline. An error concerns all of them.
    fn carry_out(
        &self,
        connection: &mut Connection,
        requests: &[(StoreToken, StoreRequest)],
    ) -> RedisResult<Vec<Result<StoreReply, StoreError>>> {
        let mut warning = None;
        for (_, request) in requests {
            match request {
                StoreRequest::Join { node, .. } => {
                    // The node hears what others say from before it has joined.
                    let news = self.last_news(connection)?;
                    *lock(&self.place) = Some(Place { node: node.tag(), news, item: "0-0".to_owned() });
                    warning = memory(connection).as_deref().and_then(eviction_warning);
                }
                StoreRequest::Leave { .. } => *lock(&self.place) = None,
                _ => {}
            }
        }
        let calls: Vec<_> = requests.iter().map(|(_, request)| self.keys.call(request)).collect();
        let mut pipeline = pipe();
        pipeline.ignore_errors();
        for ((_, request), call) in requests.iter().zip(&calls) {
            let (before, after) = self.keys.around(request);
            before.iter().for_each(|plain| self.add_plain(&mut pipeline, plain));
            if let Some(call) = call {
                self.add_call(&mut pipeline, call);
            }
            after.iter().for_each(|plain| self.add_plain(&mut pipeline, plain));
        }
        let query = |connection: &mut Connection| match pipeline.is_empty() {
            true => Ok(Vec::new()),
            false => pipeline.query(connection),
        };
        let mut returned: Vec<RedisResult<Value>> = query(connection)?;
        let is_unknown = |returned: &RedisResult<Value>| matches!(returned, Err(why) if why.code() == Some("NOSCRIPT"));
        if returned.iter().any(is_unknown) {
            // All of them once more, so that their order stays: each may run twice.
            self.load_scripts(connection)?;
            returned = query(connection)?;
        }
        let mut returned = returned.into_iter();
        let mut results = Vec::with_capacity(requests.len());
        for ((_, request), call) in requests.iter().zip(calls) {
            let value = call.and_then(|_| returned.next());
            results.push(match (request, value) {
                (StoreRequest::ListTasks { principal, after, count }, _) => {
                    self.list_tasks(connection, *principal, *after, *count).map(Ok)?
                }
                (_, None) => Err(StoreError::Refused("this version has nothing for the request".to_owned())),
                (_, Some(Err(why))) => Err(store_error(&why)),
                (StoreRequest::Orphans { .. }, Some(Ok(lost))) => match parts(lost).and_then(texts) {
                    Ok(lost) => self.orphans(connection, lost).map(Ok)?,
                    Err(why) => Err(why),
                },
                (_, Some(Ok(value))) => parts(value).and_then(|value| reply(request, value, warning.take())),
            });
        }
        Ok(results)
    }

    fn add_call<'a>(&self, pipeline: &'a mut Pipeline, call: &ScriptCall) -> &'a mut Pipeline {
        let command = pipeline.cmd("EVALSHA").arg(self.script(call.script).get_hash()).arg(call.keys.len());
        command.arg(&call.keys);
        for arg in &call.args {
            command.arg(arg);
        }
        command
    }

    fn add_plain(&self, pipeline: &mut Pipeline, plain: &Plain) {
        match plain {
            Plain::Script(call) => self.add_call(pipeline, call).ignore(),
            Plain::AddToSet { key, member } => pipeline.cmd("SADD").arg(key).arg(member).ignore(),
            Plain::AddToList { key, score, member, ttl } => {
                let ttl = u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX);
                pipeline.cmd("ZADD").arg(key).arg(*score).arg(member).ignore();
                // The first sets a time where there is none, the second extends it.
                pipeline.cmd("PEXPIRE").arg(key).arg(ttl).arg("NX").ignore();
                pipeline.cmd("PEXPIRE").arg(key).arg(ttl).arg("GT").ignore()
            }
        };
    }

    /// Reads tasks. What is none any more is `None`.
    fn read_tasks(&self, connection: &mut Connection, tasks: &[String]) -> RedisResult<Vec<Option<StoreReply>>> {
        if tasks.is_empty() {
            return Ok(Vec::new());
        }
        let mut pipeline = pipe();
        pipeline.ignore_errors();
        for task in tasks {
            self.add_call(&mut pipeline, &self.keys.get_task(task));
        }
        let returned: Vec<RedisResult<Value>> = pipeline.query(connection)?;
        let read = |value: RedisResult<Value>| match parts(value.ok()?).ok()? {
            Returned::List(kept) => task(kept).ok(),
            Returned::Number(_) | Returned::Text(_) => None,
        };
        Ok(returned.into_iter().map(read).collect())
    }

    fn list_tasks(
        &self,
        connection: &mut Connection,
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
            let listed: Vec<(String, u64)> = command.arg("WITHSCORES").query(connection)?;
            let is_full = listed.len() == page;
            let places = listed.into_iter().map(|(task, created)| (created, task));
            let is_after = |place: &(u64, String)| after.as_ref().is_none_or(|after| place > after);
            let places: Vec<(u64, String)> = places.filter(is_after).collect();
            let tasks: Vec<String> = places.iter().map(|(_, task)| task.clone()).collect();
            for (task, reply) in tasks.iter().zip(self.read_tasks(connection, &tasks)?) {
                match reply {
                    Some(StoreReply::Task { record, .. }) => records.push(record),
                    _ => cmd("ZREM").arg(&key).arg(task).exec(connection)?,
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

    /// Returns tasks of lost nodes. Drops the nodes that have none.
    fn orphans(&self, connection: &mut Connection, lost: Vec<String>) -> RedisResult<StoreReply> {
        let mut orphans = Vec::new();
        for node in lost {
            let key = self.keys.owned(&node);
            let owned: Vec<String> = cmd("SRANDMEMBER").arg(&key).arg(COUNT).query(connection)?;
            if owned.is_empty() {
                let [nodes, _] = self.keys.members();
                cmd("ZREM").arg(nodes).arg(&node).exec(connection)?;
            }
            for (task, reply) in owned.iter().zip(self.read_tasks(connection, &owned)?) {
                match reply {
                    Some(StoreReply::Task { owner: Some(owner), .. }) if owner.to_string() == node => {
                        orphans.extend(TaskDigest::parse(task));
                    }
                    // Another node has it, or none.
                    _ => cmd("SREM").arg(&key).arg(task).exec(connection)?,
                }
            }
            if orphans.len() >= COUNT {
                break;
            }
        }
        orphans.truncate(COUNT);
        Ok(StoreReply::Orphans(orphans))
    }

    fn script(&self, name: Name) -> &Script {
        let at = Name::ALL.iter().position(|script| *script == name).unwrap_or_default();
        &self.scripts[at]
    }

    /// Returns the number of the newest news.
    fn last_news(&self, connection: &mut Connection) -> RedisResult<u64> {
        let mut command = cmd("XREVRANGE");
        command.arg(self.keys.news()).arg("+").arg("-").arg("COUNT").arg(1);
        let newest: Vec<StreamEntry> = entries(command.query(connection)?)?;
        match newest.first().map(|(id, _)| entry_number(id)) {
            Some(number) => number.map_err(|why| unknown(&why.to_string())),
            None => Ok(0),
        }
    }

    /// Delivers what other nodes say, until the server has ended.
    fn read(&self) {
        let mut connection = None;
        while !self.port.has_ended() {
            let Some(place) = lock(&self.place).clone() else {
                thread::sleep(BLOCK / 20);
                continue;
            };
            let read = match &mut connection {
                Some(open) => self.next(open, &place),
                None => self.connect(BLOCK + REPLY).and_then(|open| self.next(connection.insert(open), &place)),
            };
            match read {
                Ok((news, items)) => self.deliver(&place, news, items),
                Err(_) => {
                    // The requests of the other thread report it.
                    connection = None;
                    thread::sleep(RETRY);
                }
            }
        }
    }

    /// Waits for news and items after a place.
    fn next(&self, connection: &mut Connection, place: &Place) -> RedisResult<(Vec<StreamEntry>, Vec<StreamEntry>)> {
        let (news, inbox) = (self.keys.news(), self.keys.inbox(place.node));
        let mut command = cmd("XREAD");
        command.arg("COUNT").arg(COUNT).arg("BLOCK").arg(u64::try_from(BLOCK.as_millis()).unwrap_or(u64::MAX));
        command.arg("STREAMS").arg(&[&news, &inbox]).arg(&[&alloc::format!("{}-0", place.news), &place.item]);
        let streams: Option<Vec<(String, Value)>> = command.query(connection)?;
        let (mut said, mut sent) = (Vec::new(), Vec::new());
        for (key, read) in streams.into_iter().flatten() {
            if key == news { said = entries(read)? } else { sent = entries(read)? }
        }
        if let Some((last, _)) = sent.last() {
            // Only its reader drops items, and it has taken these.
            cmd("XTRIM").arg(&inbox).arg("MINID").arg(last).exec(connection)?;
        }
        Ok((said, sent))
    }

    fn deliver(&self, place: &Place, news: Vec<StreamEntry>, items: Vec<StreamEntry>) {
        // A node that has joined again meanwhile has another place, and one that has left has none.
        let mut known = lock(&self.place);
        let Some(after) = known.as_mut().filter(|known| *known == place) else { return };
        for item in items {
            after.item.clone_from(&item.0);
            // What cannot be read is for another version.
            if let Ok(item) = read_item(item) {
                self.port.deliver(item);
            }
        }
        for entry in news {
            let number = entry_number(&entry.0).unwrap_or(after.news + 1);
            if number != after.news + 1 {
                self.port.deliver(NodeItem::Missed);
            }
            after.news = number;
            // What cannot be read may be anything.
            self.port.deliver(read_news(entry).unwrap_or(NodeItem::Missed));
        }
    }
}

/// Returns what a script has returned.
fn parts(value: Value) -> Result<Returned, StoreError> {
    Ok(match value {
        Value::Int(number) => Returned::Number(number),
        Value::BulkString(text) => Returned::Text(text),
        Value::SimpleString(text) => Returned::Text(text.into_bytes()),
        Value::Array(list) => Returned::List(list.into_iter().map(parts).collect::<Result<_, _>>()?),
        _ => return Err(StoreError::Corrupt("a script has returned something else".to_owned())),
    })
}

/// Returns the section `memory` of the store. `None` if this user may not see it.
fn memory(connection: &mut Connection) -> Option<String> {
    cmd("INFO").arg("memory").query(connection).ok()
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
    } else if why.is_io_error() || why.is_connection_dropped() || why.is_unrecoverable_error() {
        StoreError::Unreachable(Closed::Unreachable(why.to_string()))
    } else {
        StoreError::Refused(why.to_string())
    }
}
