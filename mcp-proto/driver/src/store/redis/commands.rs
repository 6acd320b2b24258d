//! What each request means for Redis: a script with its keys and its arguments, and what its reply
//! says. Nothing here connects.
//!
//! | key, after the prefix | type | what it is | life |
//! |---|---|---|---|
//! | `n:{incarnation}` | string | the number of the last renewal of a node | its lease |
//! | `c` | stream | what nodes say to all; the ids are 1-0, 2-0, … | the newest 1000 or more |
//!
//! A script uses one key, so that it runs on a cluster.

use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;
use mcp_proto::server::store::{Incarnation, News, NodeItem, StoreError, StoreReply, StoreRequest};

/// A script. Each returns a number, and does the same when it runs twice.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ScriptName {
    Join,
    Renew,
    Leave,
    Publish,
}

impl ScriptName {
    pub(super) const ALL: [Self; 4] = [Self::Join, Self::Renew, Self::Leave, Self::Publish];

    pub(super) const fn text(self) -> &'static str {
        match self {
            Self::Join => "redis.call('SET', KEYS[1], '0', 'PX', ARGV[1], 'NX') return 1",
            // The beat is this one if the reply to an earlier attempt was lost.
            Self::Renew => {
                "local beat = redis.call('GET', KEYS[1])
                if beat ~= ARGV[1] and beat ~= ARGV[2] then return 0 end
                redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[3])
                return 1"
            }
            Self::Leave => "redis.call('DEL', KEYS[1]) return 1",
            // Without gaps between the ids, a reader knows that it has missed nothing.
            Self::Publish => {
                "local last = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)[1]
                local n = last and tonumber(string.match(last[1], '^%d+')) + 1 or 1
                redis.call('XADD', KEYS[1], 'MAXLEN', '~', ARGV[3], string.format('%d-0', n), 'from', ARGV[1], 'news', ARGV[2])
                return 1"
            }
        }
    }
}

/// A script with its key and its arguments.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct ScriptCall {
    pub(super) script: ScriptName,
    pub(super) key: String,
    pub(super) args: Vec<Vec<u8>>,
}

/// The number of news that the stream keeps at least.
const NEWS: u64 = 1000;

/// The keys of a group of servers.
#[derive(Clone, Debug)]
pub(super) struct Keys {
    pub(super) prefix: String,
}

impl Keys {
    fn node(&self, node: Incarnation) -> String {
        alloc::format!("{}n:{node}", self.prefix)
    }

    /// Returns the key of the stream of news.
    pub(super) fn news(&self) -> String {
        alloc::format!("{}c", self.prefix)
    }

    /// Returns what carries out a request. `None`: this version has nothing for it.
    pub(super) fn call(&self, request: &StoreRequest) -> Option<ScriptCall> {
        let number = |n: u64| n.to_string().into_bytes();
        let millis = |time: &core::time::Duration| number(u64::try_from(time.as_millis()).unwrap_or(u64::MAX).max(1));
        let (script, key, args) = match request {
            StoreRequest::Join { node, lease } => (ScriptName::Join, self.node(*node), vec![millis(lease)]),
            StoreRequest::Renew { node, beat, lease } => {
                let args = vec![number(*beat), number(beat.saturating_sub(1)), millis(lease)];
                (ScriptName::Renew, self.node(*node), args)
            }
            StoreRequest::Leave { node } => (ScriptName::Leave, self.node(*node), Vec::new()),
            StoreRequest::Publish { node, news } => {
                let args = vec![node.to_string().into_bytes(), news.encode(), number(NEWS)];
                (ScriptName::Publish, self.news(), args)
            }
            _ => return None,
        };
        Some(ScriptCall { script, key, args })
    }
}

/// Returns what the number that a script returns says.
pub(super) fn reply(script: ScriptName, number: i64, warning: Option<String>) -> StoreReply {
    match (script, number) {
        (ScriptName::Join, _) => StoreReply::Joined { warning },
        (ScriptName::Renew, 0) => StoreReply::Lapsed,
        (ScriptName::Renew | ScriptName::Leave | ScriptName::Publish, _) => StoreReply::Done,
    }
}

/// An entry of the stream of news: its id, its fields and their values.
pub(super) type NewsEntry = (String, Vec<(String, Vec<u8>)>);

/// Returns the number in the id of an entry.
pub(super) fn entry_number(id: &str) -> Result<u64, StoreError> {
    let number = id.split('-').next().and_then(|number| number.parse().ok());
    number.ok_or_else(|| StoreError::Corrupt("the id of an entry is not one of this program".into()))
}

/// Returns what an entry says.
pub(super) fn read_entry((_, fields): NewsEntry) -> Result<NodeItem, StoreError> {
    let (mut from, mut news) = (None, None);
    for (name, value) in fields {
        match &*name {
            "from" => from = read_incarnation(&value),
            "news" => news = Some(News::decode(value)?),
            _ => {}
        }
    }
    match from.zip(news) {
        Some((from, news)) => Ok(NodeItem::News { from, news }),
        None => Err(StoreError::Corrupt("an entry lacks a part".into())),
    }
}

fn read_incarnation(text: &[u8]) -> Option<Incarnation> {
    let (digits, rest) = text.as_chunks::<2>();
    let pair = |pair: &[u8; 2]| u8::from_str_radix(core::str::from_utf8(pair).ok()?, 16).ok();
    let bytes: Vec<u8> = digits.iter().map(pair).collect::<Option<_>>().filter(|_| rest.is_empty())?;
    bytes.try_into().ok().map(Incarnation)
}

/// Returns why a store may drop what it keeps, from its section `memory`.
pub(super) fn eviction_warning(memory: &str) -> Option<String> {
    let value = |name: &str| memory.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim);
    let policy = value("maxmemory_policy").filter(|policy| *policy != "noeviction")?;
    let is_bounded = value("maxmemory").is_some_and(|max| max != "0");
    is_bounded.then(|| alloc::format!("its maxmemory-policy is {policy}: it may drop what servers need"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::time::Duration;

    const NODE: Incarnation = Incarnation([0xa1; 16]);

    fn keys() -> Keys {
        Keys { prefix: "p:".into() }
    }

    #[test]
    fn each_request_is_one_script_with_one_key() {
        let lease = Duration::from_secs(15);
        let node = alloc::format!("p:n:{}", "a1".repeat(16));
        let rows: [(StoreRequest, ScriptName, &str, &[&str]); 4] = [
            (StoreRequest::Join { node: NODE, lease }, ScriptName::Join, &node, &["15000"]),
            (StoreRequest::Renew { node: NODE, beat: 3, lease }, ScriptName::Renew, &node, &["3", "2", "15000"]),
            (StoreRequest::Leave { node: NODE }, ScriptName::Leave, &node, &[]),
            (
                StoreRequest::Publish { node: NODE, news: News::ChangedAll },
                ScriptName::Publish,
                "p:c",
                &[&"a1".repeat(16), r#"{"format":1,"kind":"all"}"#, "1000"],
            ),
        ];
        for (request, script, key, args) in rows {
            let call = keys().call(&request).unwrap();
            let args: Vec<Vec<u8>> = args.iter().map(|arg| arg.as_bytes().to_vec()).collect();
            assert_eq!(call, ScriptCall { script, key: key.into(), args });
        }
    }

    #[test]
    fn entry_is_read_as_it_was_published() {
        let news = News::Elicited("e".into());
        let call = keys().call(&StoreRequest::Publish { node: NODE, news: news.clone() }).unwrap();
        let fields = vec![("from".into(), call.args[0].clone()), ("news".into(), call.args[1].clone())];
        assert_eq!(read_entry(("7-0".into(), fields)).unwrap(), NodeItem::News { from: NODE, news });
        assert_eq!(entry_number("7-0").unwrap(), 7);
    }

    #[test]
    fn other_entries_are_errors() {
        let entry = |from: &str, news: &str| {
            ("1-0".into(), vec![("from".into(), from.as_bytes().to_vec()), ("news".into(), news.as_bytes().to_vec())])
        };
        let all = r#"{"format":1,"kind":"all"}"#;
        assert!(read_entry(entry(&"a1".repeat(16), all)).is_ok());
        let bad = [
            entry("", all),
            entry(&"a1".repeat(15), all),
            entry(&"a1".repeat(17), all),
            entry(&"xy".repeat(16), all),
            entry(&"a1".repeat(16), "{}"),
            ("1-0".into(), vec![("news".into(), all.as_bytes().to_vec())]),
        ];
        bad.into_iter().for_each(|entry| assert!(read_entry(entry.clone()).is_err(), "{entry:?}"));
        assert!(entry_number("x-0").is_err() && entry_number("").is_err());
    }

    #[test]
    fn store_that_evicts_is_noticed() {
        let memory = |max: &str, policy: &str| {
            alloc::format!("# Memory\r\nused_memory:1\r\nmaxmemory:{max}\r\nmaxmemory_policy:{policy}\r\n")
        };
        assert!(eviction_warning(&memory("1000", "allkeys-lru")).is_some_and(|why| why.contains("allkeys-lru")));
        for fine in [memory("1000", "noeviction"), memory("0", "allkeys-lru"), String::new()] {
            assert_eq!(eviction_warning(&fine), None);
        }
    }
}
