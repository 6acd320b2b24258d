//! What each request means for Redis: a script with its keys and its arguments, and what its reply
//! says. Nothing here connects.
//!
//! | key, after the prefix | type | what it is | life |
//! |---|---|---|---|
//! | `n:{tag}` | string | the incarnation of a node, and the number of its last renewal | its lease |
//! | `i:{tag}` | stream | what other nodes send to it | its lease; it drops what it has read |
//! | `c` | stream | what nodes say to all; the ids are 1-0, 2-0, … | the newest 1000 or more |
//! | `s:{session}` | hash | the record of a session, and its streams | its time |
//! | `e:{session}:stream` | stream | the events of a stream; the ids are 1-0, 2-0, … | as its session, and some time after its end |
//! | `l:{session}` | sorted set | its streams, by when they are dropped | as its session |
//! | `x:{session}:request` | string | a request that was cancelled before it was claimed | a second |
//! | `t:{task}` | hash | the record of a task, its version and its owner | its time |
//! | `p:{principal}` | sorted set | the tasks of a principal, by their creation | that of its tasks |
//! | `o:{incarnation}` | set | the tasks that a node works on | that of its tasks, or until it has none |
//! | `r:{principal}` | string | when the access of a principal has ended | twice that of a session |
//! | `{m}:nodes` `{m}:sweeper` | sorted set, string | the ends of leases; who looks for lost nodes | until a node has no task; a lease |
//!
//! The braces are part of a key, so that the keys of one script are at one node of a cluster.

use super::scripts::Script;
use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;
use bytes::Bytes;
use core::time::Duration;
use mcp_proto::server::store::{
    Epoch, Incarnation, News, NodeItem, NodeTag, PrincipalDigest, RequestDigest, SessionDigest, StoreError, StoreReply,
    StoreRequest, StoredEvent,
};

/// A script with its keys and its arguments.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct ScriptCall {
    pub(super) script: Script,
    pub(super) keys: Vec<String>,
    pub(super) args: Vec<Vec<u8>>,
}

/// What comes before and after the script of a request. What it returns does not matter.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct Around {
    /// Without it, the request fails.
    pub(super) before: Option<ScriptCall>,
    pub(super) after: Option<ScriptCall>,
}

/// A task in the set of what a node works on.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Member {
    pub(super) key: String,
    pub(super) task: String,
}

/// What a script returns.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum ScriptValue {
    Number(i64),
    Text(Vec<u8>),
    List(Vec<Self>),
}

/// The number of news that are kept at least.
const KEPT: u64 = 1000;
/// The number of events that one reply has.
const PAGE: u64 = 100;
/// The number of items that a node has not taken, and their bytes.
const INBOX: (u64, u64) = (10_000, 64 << 20);

/// The keys of a group of servers.
#[derive(Clone, Debug)]
pub(super) struct Keys {
    pub(super) prefix: String,
}

impl Keys {
    fn node(&self, tag: NodeTag) -> Vec<String> {
        vec![format!("{}n:{{{tag}}}", self.prefix), self.inbox(tag)]
    }

    /// Returns the key of the inbox of a node.
    pub(super) fn inbox(&self, tag: NodeTag) -> String {
        format!("{}i:{{{tag}}}", self.prefix)
    }

    /// Returns the key of the stream of news.
    pub(super) fn news(&self) -> String {
        format!("{}c", self.prefix)
    }

    fn session(&self, session: SessionDigest) -> String {
        format!("{}s:{{{session}}}", self.prefix)
    }

    fn events(&self, session: SessionDigest, stream: impl ToString) -> String {
        format!("{}e:{{{session}}}:{}", self.prefix, stream.to_string())
    }

    fn streams(&self, session: SessionDigest) -> String {
        format!("{}l:{{{session}}}", self.prefix)
    }

    fn cancelled(&self, session: SessionDigest, request: impl ToString) -> String {
        format!("{}x:{{{session}}}:{}", self.prefix, request.to_string())
    }

    fn task(&self, task: impl ToString) -> String {
        format!("{}t:{{{}}}", self.prefix, task.to_string())
    }

    /// Returns the key of the tasks of a principal.
    pub(super) fn principal(&self, principal: PrincipalDigest) -> String {
        format!("{}p:{{{principal}}}", self.prefix)
    }

    fn revoked(&self, principal: PrincipalDigest) -> Vec<String> {
        vec![format!("{}r:{{{principal}}}", self.prefix)]
    }

    /// Returns the key of the tasks that a node works on.
    pub(super) fn owned(&self, node: impl ToString) -> String {
        format!("{}o:{{{}}}", self.prefix, node.to_string())
    }

    /// Returns the keys of the leases, and of the node that looks for lost ones.
    pub(super) fn members(&self) -> [String; 2] {
        [format!("{}{{m}}:nodes", self.prefix), format!("{}{{m}}:sweeper", self.prefix)]
    }

    /// Returns the call that notes how long the lease of a node lasts.
    fn until(&self, node: Incarnation, lease: Duration) -> ScriptCall {
        let lease = u64::try_from(lease.as_millis()).unwrap_or(u64::MAX).min(1 << 52);
        let args = vec![text("until"), text(node), text(lease)];
        ScriptCall { script: Script::Times, keys: self.members().into(), args }
    }

    /// Returns the call that reads a task.
    pub(super) fn get_task(&self, task: impl ToString) -> ScriptCall {
        ScriptCall { script: Script::Task, keys: vec![self.task(task)], args: vec![text("get")] }
    }

    /// Returns the call that returns lost nodes.
    pub(super) fn lost(&self, node: Incarnation, lease: Duration) -> ScriptCall {
        let args = vec![text("sweep"), text(node), millis(lease)];
        ScriptCall { script: Script::Times, keys: self.members().into(), args }
    }

    /// Returns what comes before and after the script of a request.
    pub(super) fn around(&self, request: &StoreRequest) -> Around {
        let after = |call| Around { before: None, after: Some(call) };
        match request {
            StoreRequest::Join { node, lease } | StoreRequest::Renew { node, lease, .. } => {
                after(self.until(*node, *lease))
            }
            // The tasks that it has left are those of a lost node.
            StoreRequest::Leave { node } => after(self.until(*node, Duration::ZERO)),
            StoreRequest::PutTask { task, owner, principal, created, ttl, .. } => {
                let owned = owner.map(|owner| self.member(owner, task));
                let before = owned.map(|owned| ScriptCall {
                    script: Script::Task,
                    keys: vec![owned.key],
                    args: vec![text("own"), text(owned.task), millis(*ttl)],
                });
                // Each put may make it last longer.
                let listed = principal.map(|principal| ScriptCall {
                    script: Script::Times,
                    keys: vec![self.principal(principal)],
                    args: vec![text("list"), text(created), text(task), millis(*ttl)],
                });
                Around { before, after: listed }
            }
            _ => Around::default(),
        }
    }

    fn member(&self, node: impl ToString, task: impl ToString) -> Member {
        Member { key: self.owned(node), task: task.to_string() }
    }

    /// Returns what a request adds to what a node owns.
    pub(super) fn taken(&self, request: &StoreRequest) -> Option<Member> {
        match request {
            StoreRequest::PutTask { task, owner: Some(owner), .. } => Some(self.member(owner, task)),
            _ => None,
        }
    }

    /// Returns what a node does not own, from what the script of a request has returned: it did
    /// before, or it was added for a request that was not carried out.
    pub(super) fn freed(&self, request: &StoreRequest, returned: &ScriptValue) -> Option<Member> {
        let StoreRequest::PutTask { task, owner, .. } = request else { return None };
        let node = match returned {
            ScriptValue::List(list) => match &list[..] {
                [ScriptValue::Text(before)] if !before.is_empty() => String::from_utf8_lossy(before).into_owned(),
                [_, _, ScriptValue::Text(other)] => {
                    owner.map(|node| node.to_string()).filter(|node| node.as_bytes() != other)?
                }
                _ => return None,
            },
            ScriptValue::Number(0) => owner.map(|node| node.to_string())?,
            ScriptValue::Number(_) | ScriptValue::Text(_) => return None,
        };
        Some(self.member(node, task))
    }

    /// Returns what carries out a request. `None`: this version has nothing for it.
    pub(super) fn call(&self, request: &StoreRequest) -> Option<ScriptCall> {
        let (script, keys, args) = match request {
            StoreRequest::Join { node, lease } => {
                (Script::Node, self.node(node.tag()), vec![text("join"), text(node), millis(*lease)])
            }
            StoreRequest::Renew { node, beat, lease } => {
                let beats = [text(beat), text(beat.saturating_sub(1))];
                let args = [text("renew"), text(node)].into_iter().chain(beats).chain([millis(*lease)]);
                (Script::Node, self.node(node.tag()), args.collect())
            }
            StoreRequest::Leave { node } => (Script::Node, self.node(node.tag()), vec![text("leave"), text(node)]),
            StoreRequest::IsMember { node } => (Script::Node, self.node(node.tag()), vec![text("member"), text(node)]),
            StoreRequest::Publish { node, news } => {
                (Script::Publish, vec![self.news()], vec![text(node), news.encode(), text(KEPT)])
            }
            StoreRequest::Send { node, item } => {
                (Script::Send, self.node(*node), vec![item.encode(), text(INBOX.0), text(INBOX.1)])
            }
            StoreRequest::Open { session, record, ttl } => {
                return Some(self.on_session(*session, vec![text("open"), record.to_vec(), millis(*ttl)]));
            }
            StoreRequest::Load { session, ttl } => {
                return Some(self.on_session(*session, vec![text("load"), millis(*ttl)]));
            }
            StoreRequest::Touch { session, ttl } => {
                return Some(self.on_session(*session, vec![text("touch"), millis(*ttl)]));
            }
            StoreRequest::Change { session, version, record } => {
                return Some(self.on_session(*session, vec![text("change"), text(version), record.to_vec()]));
            }
            StoreRequest::Close { session } => return Some(self.on_session(*session, vec![text("close")])),
            StoreRequest::Claim { session, stream, requests, node, over } => {
                let mut args = vec![text(stream), text(node), over.map(epoch_text).unwrap_or_default()];
                args.extend(requests.iter().flat_map(|id| [text(RequestDigest::of(id)), id.to_vec()]));
                let keys = vec![self.session(*session), self.cancelled(*session, ""), self.streams(*session)];
                (Script::Claim, keys, args)
            }
            StoreRequest::Append { session, stream, epoch, event, is_sent, answers, keep, last } => {
                let args = vec![
                    text(stream),
                    epoch_text(*epoch),
                    text(event.number),
                    event.data.to_vec(),
                    text(u8::from(*is_sent)),
                    answers.map(text).unwrap_or_default(),
                    last.map_or_else(|| text(0), millis),
                    text((*keep).max(1)),
                ];
                let keys = vec![self.session(*session), self.events(*session, stream), self.streams(*session)];
                (Script::Append, keys, args)
            }
            StoreRequest::Read { session, stream, after } => {
                let keys = vec![self.session(*session), self.events(*session, stream), self.streams(*session)];
                (Script::Read, keys, vec![text(stream), text(after), text(PAGE)])
            }
            StoreRequest::Cancel { session, request, keep } => {
                let keys = vec![self.session(*session), self.cancelled(*session, request)];
                (Script::Cancel, keys, vec![text(request), millis(*keep)])
            }
            StoreRequest::Revoke { principal, keep } => {
                (Script::Times, self.revoked(*principal), vec![text("revoke"), millis(*keep)])
            }
            StoreRequest::IsRevoked { principal, opened } => {
                (Script::Times, self.revoked(*principal), vec![text("revoked"), text(opened)])
            }
            StoreRequest::PutTask { task, version, record, owner, ttl, .. } => {
                let owner = owner.map(text).unwrap_or_default();
                let args = vec![text("put"), text(version), record.to_vec(), owner, millis(*ttl)];
                (Script::Task, vec![self.task(task)], args)
            }
            StoreRequest::GetTask { task } => return Some(self.get_task(task)),
            StoreRequest::Orphans { node, lease } => return Some(self.lost(*node, *lease)),
            _ => return None,
        };
        Some(ScriptCall { script, keys, args })
    }

    fn on_session(&self, session: SessionDigest, args: Vec<Vec<u8>>) -> ScriptCall {
        let keys = vec![self.session(session), self.events(session, ""), self.streams(session)];
        ScriptCall { script: Script::Session, keys, args }
    }
}

fn text(value: impl ToString) -> Vec<u8> {
    value.to_string().into_bytes()
}

fn millis(time: Duration) -> Vec<u8> {
    text(u64::try_from(time.as_millis()).unwrap_or(u64::MAX).clamp(1, 1 << 52))
}

fn epoch_text(epoch: Epoch) -> Vec<u8> {
    text(format!("{}:{}", epoch.node, epoch.number))
}

/// Returns what the script of a request has returned.
pub(super) fn reply(
    request: &StoreRequest,
    returned: ScriptValue,
    warning: Option<String>,
) -> Result<StoreReply, StoreError> {
    use ScriptValue::{List, Number};
    Ok(match (request, returned) {
        (StoreRequest::Join { .. }, Number(1)) => StoreReply::Joined { warning },
        (StoreRequest::Join { .. }, Number(0)) => StoreReply::Taken,
        (StoreRequest::Renew { .. }, Number(0)) => StoreReply::Lapsed,
        (StoreRequest::IsMember { .. } | StoreRequest::Send { .. }, Number(0)) => StoreReply::NoNode,
        (StoreRequest::Send { .. }, Number(2)) => StoreReply::Full,
        (StoreRequest::Claim { .. }, Number(1)) | (StoreRequest::Append { .. }, Number(2)) => StoreReply::Over,
        (StoreRequest::PutTask { .. }, List(found)) if found.len() == 1 => StoreReply::Done,
        (_, Number(0)) => StoreReply::Missing,
        (_, Number(1)) => StoreReply::Done,
        (StoreRequest::Load { .. } | StoreRequest::Change { .. }, List(kept)) => {
            let [version, record, opened] = parts(kept)?;
            StoreReply::Session { version: number(version)?, record: bytes(record)?.into(), opened: number(opened)? }
        }
        (StoreRequest::PutTask { .. } | StoreRequest::GetTask { .. }, List(kept)) => task(kept)?,
        (StoreRequest::Claim { .. }, List(found)) if found.len() == 5 => claimed(parts(found)?)?,
        (StoreRequest::Claim { .. } | StoreRequest::Cancel { .. }, List(found)) => StoreReply::Owned(epoch(found)?),
        (StoreRequest::Append { .. }, List(found)) if found.len() == 2 => StoreReply::Fenced(epoch(found)?),
        (StoreRequest::Append { .. } | StoreRequest::Read { .. }, List(found)) if found.len() == 1 => {
            let [last] = parts(found)?;
            StoreReply::Gap(number(last)?)
        }
        (StoreRequest::Read { after, .. }, List(found)) => read(*after, parts(found)?)?,
        (_, _) => return Err(corrupt("a script has returned something else")),
    })
}

fn corrupt(why: &str) -> StoreError {
    StoreError::Corrupt(why.to_owned())
}

fn parts<const N: usize>(list: Vec<ScriptValue>) -> Result<[ScriptValue; N], StoreError> {
    list.try_into().map_err(|_| corrupt("a script has returned another number of parts"))
}

fn bytes(part: ScriptValue) -> Result<Vec<u8>, StoreError> {
    match part {
        ScriptValue::Text(text) => Ok(text),
        ScriptValue::Number(number) => Ok(number.to_string().into_bytes()),
        ScriptValue::List(_) => Err(corrupt("a script has returned a list for a text")),
    }
}

fn string(part: ScriptValue) -> Result<String, StoreError> {
    String::from_utf8(bytes(part)?).map_err(|_| corrupt("a script has returned bytes for a text"))
}

fn number(part: ScriptValue) -> Result<u64, StoreError> {
    string(part)?.parse().map_err(|_| corrupt("a script has returned something else for a number"))
}

/// Returns a task that a script has returned.
pub(super) fn task(kept: Vec<ScriptValue>) -> Result<StoreReply, StoreError> {
    let [version, record, owner] = parts(kept)?;
    let owner = string(owner)?;
    let owner = if owner.is_empty() { None } else { Some(Incarnation::parse(&owner)?) };
    Ok(StoreReply::Task { version: number(version)?, record: bytes(record)?.into(), owner })
}

/// Returns the texts in a list.
pub(super) fn texts(returned: ScriptValue) -> Result<Vec<String>, StoreError> {
    match returned {
        ScriptValue::List(list) => list.into_iter().map(string).collect(),
        ScriptValue::Number(_) | ScriptValue::Text(_) => Err(corrupt("there is no list")),
    }
}

fn epoch(found: Vec<ScriptValue>) -> Result<Epoch, StoreError> {
    let [node, count] = parts(found)?;
    Ok(Epoch { node: Incarnation::parse(&string(node)?)?, number: number(count)? })
}

fn claimed([node, count, last, sent, queue]: [ScriptValue; 5]) -> Result<StoreReply, StoreError> {
    let (mut open, mut cancelled) = (Vec::new(), Vec::new());
    for line in string(queue)?.lines() {
        let mut words = line.splitn(3, ' ');
        let (Some(request), Some(is_cancelled), Some(id)) = (words.next(), words.next(), words.next()) else {
            return Err(corrupt("a request has no id"));
        };
        open.push(Bytes::copy_from_slice(id.as_bytes()));
        if is_cancelled == "1" {
            cancelled.push(RequestDigest::parse(request)?);
        }
    }
    let epoch = epoch(vec![node, count])?;
    Ok(StoreReply::Claimed { epoch, last: number(last)?, sent: number(sent)?, open, cancelled })
}

fn read(after: u64, [node, count, last, is_over, events]: [ScriptValue; 5]) -> Result<StoreReply, StoreError> {
    let ScriptValue::List(entries) = events else { return Err(corrupt("there is no list of events")) };
    let event = |entry: ScriptValue| {
        let ScriptValue::List(entry) = entry else { return Err(corrupt("an event is no entry")) };
        let [id, fields] = parts(entry)?;
        let ScriptValue::List(fields) = fields else { return Err(corrupt("an event has no fields")) };
        let [_, data] = parts(fields)?;
        Ok(StoredEvent { number: entry_number(&string(id)?)?, data: bytes(data)?.into() })
    };
    let events = entries.into_iter().map(event).collect::<Result<Vec<_>, _>>()?;
    let end = events.last().map_or(after, |event| event.number);
    let is_over = number(is_over)? == 1 && end == number(last)?;
    Ok(StoreReply::Stream { events, owner: epoch(vec![node, count])?, is_over })
}

/// The fields of an entry of a stream, and their values.
pub(super) type Fields = Vec<(String, Vec<u8>)>;
/// An entry of a stream: its id and its fields.
pub(super) type StreamEntry = (String, Fields);

/// Returns the number in the id of an entry.
pub(super) fn entry_number(id: &str) -> Result<u64, StoreError> {
    let number = id.split('-').next().and_then(|number| number.parse().ok());
    number.ok_or_else(|| corrupt("the id of an entry is not one of this program"))
}

/// Returns what an entry of the stream of news says.
pub(super) fn read_news((_, fields): StreamEntry) -> Result<NodeItem, StoreError> {
    let (mut from, mut news) = (None, None);
    for (name, value) in fields {
        match &*name {
            "from" => from = Some(Incarnation::parse(&String::from_utf8_lossy(&value))?),
            "news" => news = Some(News::decode(value)?),
            _ => {}
        }
    }
    match from.zip(news) {
        Some((from, news)) => Ok(NodeItem::News { from, news }),
        None => Err(corrupt("an entry lacks a part")),
    }
}

/// Returns what an entry of an inbox says.
pub(super) fn read_item((_, fields): StreamEntry) -> Result<NodeItem, StoreError> {
    let item = fields.into_iter().find(|(name, _)| name == "item");
    let (_, item) = item.ok_or_else(|| corrupt("an entry lacks a part"))?;
    Ok(NodeItem::decode(item)?)
}

/// Returns why a store may drop what it keeps, from the sections `memory` of its servers.
pub(super) fn eviction_warning(memories: &[String]) -> Option<String> {
    memories.iter().find_map(|memory| {
        let value =
            |name: &str| memory.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim);
        let policy = value("maxmemory_policy").filter(|policy| *policy != "noeviction")?;
        let is_bounded = value("maxmemory").is_some_and(|max| max != "0");
        is_bounded.then(|| format!("its maxmemory-policy is {policy}: it may drop what servers need"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODE: Incarnation = Incarnation([0xa1; 16]);

    fn keys() -> Keys {
        Keys { prefix: "p:".into() }
    }

    #[test]
    fn keys_of_a_script_are_at_one_node_of_a_cluster() {
        let session = SessionDigest([5; 32]);
        let epoch = Epoch { node: NODE, number: 3 };
        let time = Duration::from_secs(1);
        let event = StoredEvent { number: 1, data: "x".into() };
        let requests = [
            StoreRequest::Join { node: NODE, lease: time },
            StoreRequest::Send { node: NODE.tag(), item: NodeItem::Missed },
            StoreRequest::Load { session, ttl: time },
            StoreRequest::Claim { session, stream: 7, requests: Vec::new(), node: NODE, over: Some(epoch) },
            StoreRequest::Append {
                session,
                stream: 7,
                epoch,
                event,
                is_sent: true,
                answers: None,
                keep: 9,
                last: None,
            },
            StoreRequest::Read { session, stream: 7, after: 0 },
            StoreRequest::Cancel { session, request: RequestDigest([1; 32]), keep: time },
        ];
        let tag = |key: &String| key.split_once('{').unwrap().1.split_once('}').unwrap().0.to_owned();
        for request in requests {
            let call = keys().call(&request).unwrap();
            let tags: Vec<String> = call.keys.iter().map(tag).collect();
            assert!(tags.windows(2).all(|two| two[0] == two[1]) && call.keys.iter().all(|key| key.starts_with("p:")));
        }
    }

    #[test]
    fn entry_is_read_as_it_was_written() {
        let news = News::Elicited("e".into());
        let call = keys().call(&StoreRequest::Publish { node: NODE, news: news.clone() }).unwrap();
        let fields = vec![("from".into(), call.args[0].clone()), ("news".into(), call.args[1].clone())];
        assert_eq!(read_news(("7-0".into(), fields)).unwrap(), NodeItem::News { from: NODE, news });
        let item = NodeItem::Grown { session: SessionDigest([5; 32]), stream: 7 };
        let call = keys().call(&StoreRequest::Send { node: NODE.tag(), item: item.clone() }).unwrap();
        assert_eq!(read_item(("1-0".into(), vec![("item".into(), call.args[0].clone())])).unwrap(), item);
        assert_eq!(entry_number("7-0").unwrap(), 7);
        assert!(entry_number("x-0").is_err() && entry_number("").is_err());
        assert!(read_item(("1-0".into(), Vec::new())).is_err() && read_news(("1-0".into(), Vec::new())).is_err());
    }

    #[test]
    fn store_that_evicts_is_noticed() {
        let memory = |max: &str, policy: &str| format!("# Memory\r\nmaxmemory:{max}\r\nmaxmemory_policy:{policy}\r\n");
        let safe = [memory("1000", "noeviction"), memory("0", "allkeys-lru"), String::new()];
        assert_eq!(eviction_warning(&safe), None);
        let one = [&safe[..], &[memory("1000", "allkeys-lru")]].concat();
        assert!(eviction_warning(&one).is_some_and(|why| why.contains("allkeys-lru")));
    }
}
