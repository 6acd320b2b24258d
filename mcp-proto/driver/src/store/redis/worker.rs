//! The two threads of a server, with a connection each: one carries out requests, one waits for
//! what other nodes say.

use super::commands::{Keys, NewsEntry, ScriptName, entry_number, eviction_warning, read_entry, reply};
use crate::store::StorePort;
use crate::sync::{Mutex, lock};
use alloc::borrow::ToOwned;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;
use mcp_proto::exchange::Closed;
use mcp_proto::server::store::{NodeItem, StoreError, StoreRequest, StoreToken};
use redis::{Client, Connection, FromRedisValue, RedisError, RedisResult, Script, Value, cmd, pipe};
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
    /// The number of the last news that were read. `None` before the node has joined.
    place: Mutex<Option<u64>>,
}

impl Worker {
    pub(super) fn start(client: Client, prefix: String, port: StorePort) -> io::Result<()> {
        let scripts = ScriptName::ALL.iter().map(|script| Script::new(script.text())).collect();
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
                        self.port.reply(*token, result.map_err(|why| store_error(&why)));
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
    ) -> RedisResult<Vec<RedisResult<mcp_proto::server::store::StoreReply>>> {
        let mut warning = None;
        if requests.iter().any(|(_, request)| matches!(request, StoreRequest::Join { .. })) {
            // The node hears what others say from before it has joined.
            let place = self.last_news(connection)?;
            *lock(&self.place) = Some(place);
            warning = memory(connection).as_deref().and_then(eviction_warning);
        }
        let calls: Vec<_> = requests.iter().map(|(_, request)| self.keys.call(request)).collect();
        let mut pipeline = pipe();
        pipeline.ignore_errors();
        for call in calls.iter().flatten() {
            let command = pipeline.cmd("EVALSHA").arg(self.script(call.script).get_hash()).arg(1).arg(&call.key);
            for arg in &call.args {
                command.arg(arg);
            }
        }
        let mut numbers: Vec<RedisResult<i64>> = pipeline.query(connection)?;
        let is_unknown = |number: &RedisResult<i64>| number.as_ref().is_err_and(|why| why.code() == Some("NOSCRIPT"));
        if numbers.iter().any(is_unknown) {
            // All of them once more, so that their order stays: each may run twice.
            self.load_scripts(connection)?;
            numbers = pipeline.query(connection)?;
        }
        let mut numbers = numbers.into_iter();
        let result = |call: Option<super::commands::ScriptCall>| match call {
            Some(call) => match numbers.next() {
                Some(number) => number.map(|number| reply(call.script, number, warning.take())),
                None => Err(unknown("a reply is missing")),
            },
            None => Err(unknown("this version has nothing for the request")),
        };
        Ok(calls.into_iter().map(result).collect())
    }

    fn script(&self, name: ScriptName) -> &Script {
        let at = ScriptName::ALL.iter().position(|script| *script == name).unwrap_or_default();
        &self.scripts[at]
    }

    /// Returns the number of the newest news.
    fn last_news(&self, connection: &mut Connection) -> RedisResult<u64> {
        let mut command = cmd("XREVRANGE");
        command.arg(self.keys.news()).arg("+").arg("-").arg("COUNT").arg(1);
        let newest: Vec<NewsEntry> = entries(command.query(connection)?)?;
        match newest.first().map(|(id, _)| entry_number(id)) {
            Some(number) => number.map_err(|why| unknown(&why.to_string())),
            None => Ok(0),
        }
    }

    /// Delivers what other nodes say, until the server has ended.
    fn read(&self) {
        let mut connection = None;
        while !self.port.has_ended() {
            let Some(after) = *lock(&self.place) else {
                thread::sleep(BLOCK / 20);
                continue;
            };
            let read = match &mut connection {
                Some(open) => self.next_news(open, after),
                None => self.connect(BLOCK + REPLY).and_then(|open| self.next_news(connection.insert(open), after)),
            };
            match read {
                Ok(news) => self.deliver(after, news),
                Err(_) => {
                    // The requests of the other thread report it.
                    connection = None;
                    thread::sleep(RETRY);
                }
            }
        }
    }

    /// Waits for news after this number.
    fn next_news(&self, connection: &mut Connection, after: u64) -> RedisResult<Vec<NewsEntry>> {
        let mut command = cmd("XREAD");
        command.arg("COUNT").arg(COUNT).arg("BLOCK").arg(u64::try_from(BLOCK.as_millis()).unwrap_or(u64::MAX));
        command.arg("STREAMS").arg(self.keys.news()).arg(alloc::format!("{after}-0"));
        let streams: Option<Vec<(String, Value)>> = command.query(connection)?;
        streams.into_iter().flatten().map(|(_, read)| entries(read)).try_fold(Vec::new(), |mut all, read| {
            all.extend(read?);
            Ok(all)
        })
    }

    fn deliver(&self, mut after: u64, news: Vec<NewsEntry>) {
        let before = after;
        for entry in news {
            let number = entry_number(&entry.0).unwrap_or(after + 1);
            if number != after + 1 {
                self.port.deliver(NodeItem::Missed);
            }
            after = number;
            // What cannot be read may be anything.
            self.port.deliver(read_entry(entry).unwrap_or(NodeItem::Missed));
        }
        // A node that has joined again meanwhile has another place.
        let mut place = lock(&self.place);
        if *place == Some(before) {
            *place = Some(after);
        }
    }
}

/// Returns the section `memory` of the store. `None` if this user may not see it.
fn memory(connection: &mut Connection) -> Option<String> {
    cmd("INFO").arg("memory").query(connection).ok()
}

/// Reads entries of a stream.
fn entries(value: Value) -> RedisResult<Vec<NewsEntry>> {
    Ok(Vec::<NewsEntry>::from_redis_value(value)?)
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
