//! The scripts. Each uses keys of one hash tag, so that it runs on a cluster, and does the same
//! when it runs twice. `ARGV[1]` of some says what to do.

/// A script, by what it is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Script {
    Node,
    Publish,
    Send,
    Session,
    Claim,
    Append,
    Read,
    Cancel,
    Task,
    Times,
}

impl Script {
    pub(super) const ALL: [Self; 10] = [
        Self::Node,
        Self::Publish,
        Self::Send,
        Self::Session,
        Self::Claim,
        Self::Append,
        Self::Read,
        Self::Cancel,
        Self::Task,
        Self::Times,
    ];

    pub(super) const fn text(self) -> &'static str {
        match self {
            Self::Node => NODE,
            Self::Publish => PUBLISH,
            Self::Send => SEND,
            Self::Session => SESSION,
            Self::Claim => CLAIM,
            Self::Append => APPEND,
            Self::Read => READ,
            Self::Cancel => CANCEL,
            Self::Task => TASK,
            Self::Times => TIMES,
        }
    }
}

/// KEYS: node, inbox. ARGV: what, incarnation, then for `join` the lease, for `renew` the beat, the
/// one before and the lease. Returns 1, or 0 if the node is another one or none.
const NODE: &str = "
local value = redis.call('GET', KEYS[1])
local own = value and string.sub(value, 1, 32) == ARGV[2]
if ARGV[1] == 'join' then
    if value then return own and 1 or 0 end
    redis.call('SET', KEYS[1], ARGV[2] .. ':0', 'PX', ARGV[3])
    redis.call('DEL', KEYS[2])
    return 1
end
if ARGV[1] == 'leave' then
    if own then redis.call('DEL', KEYS[1], KEYS[2]) end
    return 1
end
if not own then return 0 end
if ARGV[1] == 'member' then return 1 end
local beat = string.sub(value, 34)
if beat ~= ARGV[3] and beat ~= ARGV[4] then return 0 end
redis.call('SET', KEYS[1], ARGV[2] .. ':' .. ARGV[3], 'PX', ARGV[5])
redis.call('PEXPIRE', KEYS[2], ARGV[5])
return 1
";

/// KEYS: news. ARGV: incarnation, news, number of entries to keep. Without gaps between the ids, a
/// reader knows that it has missed nothing. No two entries are the same, so that it knows the last
/// one again.
const PUBLISH: &str = "
local last = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)[1]
local id = string.format('%d-0', last and tonumber(string.match(last[1], '^%d+')) + 1 or 1)
local at = table.concat(redis.call('TIME'), '.')
redis.call('XADD', KEYS[1], 'MAXLEN', '~', ARGV[3], id, 'from', ARGV[1], 'news', ARGV[2], 'at', at)
return 1
";

/// KEYS: node, inbox. ARGV: item, maximum number of items, maximum of their bytes. Returns 1, 0
/// without the node, 2 if its inbox is full. The field of each entry is the sum of the bytes so
/// far.
const SEND: &str = "
local ttl = redis.call('PTTL', KEYS[1])
if ttl < 0 then return 0 end
if redis.call('XLEN', KEYS[2]) >= tonumber(ARGV[2]) then return 2 end
local first = redis.call('XRANGE', KEYS[2], '-', '+', 'COUNT', 1)[1]
local last = redis.call('XREVRANGE', KEYS[2], '+', '-', 'COUNT', 1)[1]
local sum = (last and tonumber(last[2][2]) or 0) + #ARGV[1]
local before = first and tonumber(first[2][2]) - #first[2][4] or 0
if sum - before > tonumber(ARGV[3]) then return 2 end
redis.call('XADD', KEYS[2], '*', 'sum', string.format('%d', sum), 'item', ARGV[1])
redis.call('PEXPIRE', KEYS[2], ttl)
return 1
";

/// KEYS: session, the beginning of the keys of its events, its streams. ARGV: what, then for `open`
/// the record and the time, for `load` and `touch` the time, for `change` the version and the
/// record. Returns 1, {version, record, when it was opened}, or 0 without it. The score of a stream
/// is 0, and after its last event when it is dropped: a few of them at once, so that the work is
/// bounded.
const SESSION: &str = "
local kept, time = redis.call('HMGET', KEYS[1], 'v', 'r', 'o'), redis.call('TIME')
local now = string.format('%d', time[1] * 1000 + math.floor(time[2] / 1000))
if ARGV[1] == 'open' then
    if kept[1] then return 1 end
    redis.call('HSET', KEYS[1], 'v', 1, 'r', ARGV[2], 'o', now)
    return redis.call('PEXPIRE', KEYS[1], ARGV[3])
elseif ARGV[1] == 'close' then
    for _, stream in ipairs(redis.call('ZRANGE', KEYS[3], 0, -1)) do redis.call('DEL', KEYS[2] .. stream) end
    redis.call('DEL', KEYS[1], KEYS[3])
    return 1
end
if not kept[1] then return 0 end
if ARGV[1] == 'change' then
    local before, after = tonumber(ARGV[2]), tonumber(kept[1])
    if after == before + 1 and kept[2] == ARGV[3] then return 1 end
    if after ~= before then return kept end
    redis.call('HSET', KEYS[1], 'v', before + 1, 'r', ARGV[3])
    return 1
end
redis.call('PEXPIRE', KEYS[1], ARGV[2])
for _, stream in ipairs(redis.call('ZRANGEBYSCORE', KEYS[3], 1, now, 'LIMIT', 0, 100)) do
    redis.call('HDEL', KEYS[1], 'c:' .. stream)
    redis.call('DEL', KEYS[2] .. stream)
    redis.call('ZREM', KEYS[3], stream)
end
local open = redis.call('ZRANGEBYSCORE', KEYS[3], 0, 0, 'LIMIT', 0, 1000)
for _, stream in ipairs(open) do redis.call('PEXPIRE', KEYS[2] .. stream, ARGV[2], 'GT') end
redis.call('PEXPIRE', KEYS[3], ARGV[2])
return ARGV[1] == 'load' and kept or 1
";

/// KEYS: session, the beginning of the keys of its cancelled requests, its streams. ARGV: stream,
/// incarnation, the epoch that ends or an empty text, then each request and its id. Returns 0
/// without the session, 1 if the stream is over, {incarnation, epoch} of another node, or more. A
/// stream is the field `c:` with its number: incarnation, epoch, last number, last number that was
/// sent, and when it is dropped, or 0. `q:` has its requests without an answer, with 1 if they were
/// cancelled before, and `r:` the stream of each.
const CLAIM: &str = "
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
local field, queue, open = 'c:' .. ARGV[1], 'q:' .. ARGV[1], {}
local value = redis.call('HGET', KEYS[1], field)
local node, epoch, last, sent, over = ARGV[2], '1', '0', '0', '0'
if value then node, epoch, last, sent, over = string.match(value, '(%x+):(%d+):(%d+):(%d+):(%d+)') end
if over ~= '0' then return 1 end
if value and ARGV[3] == node .. ':' .. epoch then
    node, epoch = ARGV[2], string.format('%d', tonumber(epoch) + 1)
elseif node ~= ARGV[2] then
    return {node, epoch}
end
redis.call('HSET', KEYS[1], field, table.concat({node, epoch, last, sent, '0'}, ':'))
if not value then
    redis.call('ZADD', KEYS[3], 0, ARGV[1])
    redis.call('PEXPIRE', KEYS[3], redis.call('PTTL', KEYS[1]))
    for at = 4, #ARGV, 2 do
        local cancelled = redis.call('DEL', KEYS[2] .. ARGV[at])
        table.insert(open, ARGV[at] .. ' ' .. cancelled .. ' ' .. ARGV[at + 1] .. '\\n')
        redis.call('HSET', KEYS[1], 'r:' .. ARGV[at], ARGV[1], queue, table.concat(open))
    end
end
return {node, epoch, last, sent, redis.call('HGET', KEYS[1], queue) or ''}
";

/// KEYS: session, events, the streams of the session. ARGV: stream, incarnation and epoch, number,
/// data, 1 if it is sent, the request that it answers or an empty text, the time that all is kept
/// if it is the last one or 0, the number of events to keep. Returns 0 without the stream, 1, 2 if
/// it is over, {incarnation, epoch} of another epoch, or {last number} if one is missing.
const APPEND: &str = "
local field, queue, is_last = 'c:' .. ARGV[1], 'q:' .. ARGV[1], ARGV[7] ~= '0'
local value = redis.call('HGET', KEYS[1], field)
if not value then return 0 end
local node, epoch, last, sent, over = string.match(value, '(%x+):(%d+):(%d+):(%d+):(%d+)')
local known = redis.call('XRANGE', KEYS[2], ARGV[3] .. '-0', ARGV[3] .. '-0')[1]
if known and known[2][2] == ARGV[4] then return 1 end
if node .. ':' .. epoch ~= ARGV[2] then return {node, epoch} end
if over ~= '0' then return 2 end
if tonumber(ARGV[3]) ~= tonumber(last) + 1 then return {last} end
redis.call('XADD', KEYS[2], 'MAXLEN', ARGV[8], ARGV[3] .. '-0', 'data', ARGV[4])
redis.call('PEXPIRE', KEYS[2], is_last and ARGV[7] or redis.call('PTTL', KEYS[1]))
if ARGV[5] == '1' then sent = ARGV[3] end
if is_last then
    local time = redis.call('TIME')
    over = string.format('%d', time[1] * 1000 + math.floor(time[2] / 1000) + ARGV[7])
    redis.call('ZADD', KEYS[3], over, ARGV[1])
end
if is_last or ARGV[6] ~= '' then
    local left = string.gsub(redis.call('HGET', KEYS[1], queue) or '', '(%x+) [^\\n]*\\n', function(request)
        if not is_last and request ~= ARGV[6] then return nil end
        if redis.call('HGET', KEYS[1], 'r:' .. request) == ARGV[1] then redis.call('HDEL', KEYS[1], 'r:' .. request) end
        return ''
    end)
    if left == '' then redis.call('HDEL', KEYS[1], queue) else redis.call('HSET', KEYS[1], queue, left) end
end
redis.call('HSET', KEYS[1], field, table.concat({node, epoch, ARGV[3], sent, over}, ':'))
return 1
";

/// KEYS: session, events, the streams of the session. ARGV: stream, number, number of events.
/// Returns 0 without the stream, {number before the first that is kept}, or {incarnation, epoch,
/// last number, 1 if it is over, events}. A stream that is over and not kept any more is dropped.
const READ: &str = "
local field = 'c:' .. ARGV[1]
local value = redis.call('HGET', KEYS[1], field)
if not value then return 0 end
local node, epoch, last, sent, over = string.match(value, '(%x+):(%d+):(%d+):(%d+):(%d+)')
local time = redis.call('TIME')
if over ~= '0' and tonumber(over) <= time[1] * 1000 + math.floor(time[2] / 1000) then
    redis.call('HDEL', KEYS[1], field)
    redis.call('DEL', KEYS[2])
    redis.call('ZREM', KEYS[3], ARGV[1])
    return 0
end
local after = tonumber(ARGV[2])
if after > tonumber(last) then return 0 end
local first = redis.call('XRANGE', KEYS[2], '-', '+', 'COUNT', 1)[1]
local before = first and tonumber(string.match(first[1], '^%d+')) - 1 or tonumber(last)
if after < before then return {string.format('%d', before)} end
local events = redis.call('XRANGE', KEYS[2], '(' .. ARGV[2] .. '-0', '+', 'COUNT', ARGV[3])
return {node, epoch, last, over == '0' and '0' or '1', events}
";

/// KEYS: session, the mark of the cancelled request. ARGV: request, time. Returns 0 without the
/// session, 1, or {incarnation, epoch} of the node that runs it.
const CANCEL: &str = "
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
local stream = redis.call('HGET', KEYS[1], 'r:' .. ARGV[1])
local value = stream and redis.call('HGET', KEYS[1], 'c:' .. stream)
if value then return {string.match(value, '(%x+):(%d+)')} end
redis.call('SET', KEYS[2], '1', 'PX', ARGV[2])
return 1
";

/// KEYS: task. ARGV: `get`, or `put`, version, record, owner or an empty text, time. Returns 0
/// without the task, {version, record, owner}, or {the owner before this put, or an empty text}.
/// Or KEYS: what a node owns. ARGV: `own`, task, time.
const TASK: &str = "
if ARGV[1] == 'own' then
    redis.call('SADD', KEYS[1], ARGV[2])
    if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[3]) then redis.call('PEXPIRE', KEYS[1], ARGV[3]) end
    return 1
end
local version, record, owner, before = unpack(redis.call('HMGET', KEYS[1], 'v', 'r', 'o', 'b'))
if ARGV[1] == 'get' then return version and {version, record, owner} or 0 end
if not version then
    if tonumber(ARGV[2]) > 1 then return 0 end
elseif version == ARGV[2] and record == ARGV[3] and owner == ARGV[4] then
    return {before}
elseif tonumber(version) + 1 ~= tonumber(ARGV[2]) then
    return {version, record, owner}
end
before = owner ~= ARGV[4] and owner or ''
redis.call('HSET', KEYS[1], 'v', ARGV[2], 'r', ARGV[3], 'o', ARGV[4], 'b', before)
redis.call('PEXPIRE', KEYS[1], ARGV[5])
return {before}
";

/// KEYS: nodes, sweeper. ARGV: `until`, incarnation and the rest of its lease; or `sweep`,
/// incarnation and time. The second returns nodes whose leases have ended, unless another node has
/// asked within its time. Or KEYS: a revocation. ARGV: `revoke` and the time to keep it; or
/// `revoked` and when a session was opened. The second returns 1, or 0 if the session was opened
/// since. The clocks of a cluster may be two seconds apart. Or KEYS: the tasks of a principal.
/// ARGV: `list`, when a task was created, the task and its time. The entry `-` has, below 0, the
/// longest time from the creation of one of them by its clock to its end by this one: what is older
/// has ended. A few of these are dropped.
const TIMES: &str = "
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
if ARGV[1] == 'revoke' then
    redis.call('SET', KEYS[1], string.format('%d', now), 'PX', ARGV[2])
    return 1
end
if ARGV[1] == 'revoked' then
    return (tonumber(redis.call('GET', KEYS[1])) or -2000) + 2000 >= tonumber(ARGV[2]) and 1 or 0
end
if ARGV[1] == 'list' then
    local longest = math.max(1, now + ARGV[4] - ARGV[2], -(redis.call('ZSCORE', KEYS[1], '-') or 0))
    redis.call('ZADD', KEYS[1], -longest, '-', ARGV[2], ARGV[3])
    local ended = redis.call('ZRANGEBYSCORE', KEYS[1], 0, now - longest - 1, 'LIMIT', 0, 10)
    if ended[1] then redis.call('ZREM', KEYS[1], unpack(ended)) end
    if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[4]) then redis.call('PEXPIRE', KEYS[1], ARGV[4]) end
    return 1
end
if ARGV[1] == 'until' then
    redis.call('ZADD', KEYS[1], now + ARGV[3], ARGV[2])
    return 1
end
local other = redis.call('GET', KEYS[2])
if other and other ~= ARGV[2] then return {} end
redis.call('SET', KEYS[2], ARGV[2], 'PX', ARGV[3])
return redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now, 'LIMIT', 0, 10)
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_are_short() {
        for script in Script::ALL {
            let lines = script.text().trim().lines().count();
            assert!(lines <= 30, "{script:?} has {lines}");
        }
    }
}
