//! A limit of how often requests are served.

use super::around::Before;
use super::cx::Cx;
use super::output::ToolError;
use crate::rpc::{ErrorObject, Object, code};
use crate::time::Instant;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use core::fmt;
use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use hmac_sha256::Hash;

/// What a [`RateLimit`] counts by: requests with the same key share a rate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Key {
    /// The principal of the request. Without one, as `Client`.
    Principal,
    /// Where the request comes from, whatever its principal: the address, of IPv6 the /64. Where
    /// many clients share one (loopback, a Unix socket, a proxy of the configuration) it is the
    /// session, or else the connection.
    Client,
    /// The tool that is called. Other requests pass.
    Tool,
}

/// How many requests pass in how much time, and how many at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rate {
    /// The time in which one more may pass.
    interval: Duration,
    burst: u32,
}

/// A limit of how often the handlers of a router run, for
/// [`Router::before`](super::Router::before). A request over it gets the JSON-RPC error `429` with
/// `retryAfterMs` in its data. Over HTTP, before a stream has begun, that has the status 429 and
/// `Retry-After` (RFC 6585 section 4).
///
/// Only the first round of a request counts. The time is that of the engine, so that a limit works
/// in virtual time too. It keeps at most 10,000 keys. With more, those that have used the least of
/// their rate are forgotten. It exists on targets with atomic numbers of 64 bits.
///
/// ```
/// use mcp_proto::route::{Key, Rate, RateLimit};
/// use mcp_proto::{Router, tool};
///
/// let router = Router::new("calc", "1.0")
///     .before(RateLimit::by(Key::Client, Rate::per_minute(60).burst(10)))
///     .tool(tool("one"), |_cx, ()| Ok("1"));
/// # drop(router);
/// ```
#[derive(Clone)]
pub struct RateLimit {
    by: Key,
    rate: Rate,
    entries: Arc<[AtomicU64]>,
}

/// The places of the table, in sets of [`WAYS`]. A key has its place in one set.
const SETS: usize = 1250;
const WAYS: usize = 8;

/// An entry is the lower bits of the hash of its key above the time at which its rate is unused
/// again, in units of 16 us: 8 years. 0 is free.
const TIME_BITS: u32 = 44;
const TIME: u64 = (1 << TIME_BITS) - 1;
const UNIT: u64 = 16;

impl Rate {
    /// This many requests a second. 0 counts as 1.
    pub const fn per_second(count: u32) -> Self {
        Self::per(Duration::from_secs(1), count)
    }

    /// This many requests a minute. 0 counts as 1.
    pub const fn per_minute(count: u32) -> Self {
        Self::per(Duration::from_secs(60), count)
    }

    /// This many requests an hour. 0 counts as 1.
    pub const fn per_hour(count: u32) -> Self {
        Self::per(Duration::from_secs(60 * 60), count)
    }

    const fn per(time: Duration, count: u32) -> Self {
        match time.checked_div(count) {
            Some(interval) => Self { interval, burst: count },
            None => Self { interval: time, burst: 1 },
        }
    }

    /// Sets how many requests pass at once after a rest. The default is the number in the time that
    /// the rate names. 0 counts as 1.
    #[must_use]
    pub const fn burst(self, count: u32) -> Self {
        Self { burst: if count == 0 { 1 } else { count }, ..self }
    }
}

impl RateLimit {
    /// Creates a limit that counts by this key. Clones share what they count.
    pub fn by(by: Key, rate: Rate) -> Self {
        Self { by, rate, entries: (0..SETS * WAYS).map(|_| AtomicU64::new(0)).collect() }
    }

    /// Returns the text of the key of a request. `None`: it passes.
    fn key(&self, cx: &Cx) -> Option<String> {
        match self.by {
            Key::Principal => Some(match &cx.context().principal {
                Some(principal) => format!("principal {}", principal.0),
                None => cx.source(),
            }),
            Key::Client => Some(cx.source()),
            Key::Tool if cx.method() == "tools/call" => cx.name().map(String::from),
            Key::Tool => None,
        }
    }

    /// Takes one request of the rate of a key.
    ///
    /// # Errors
    /// After which time there is one.
    fn take(&self, key: &str, now: Instant) -> Result<(), Duration> {
        let hash = Hash::hash(key.as_bytes());
        let [set, tag] = [0, 8].map(|at| hash[at..].first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes)));
        let set = usize::try_from(set % SETS as u64).unwrap_or_default() * WAYS;
        let (set, tag) = (&self.entries[set..set + WAYS], tag << TIME_BITS);
        let units = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX) / UNIT;
        // From 1, so that no entry in use is 0.
        let now = (units(now.since_origin()) + 1).min(TIME);
        let interval = units(self.rate.interval).max(1);
        let slack = interval.saturating_mul(u64::from(self.rate.burst) - 1);
        loop {
            let Some((slot, entry)) = place(set, tag) else { return Ok(()) };
            let unused_at = if entry & !TIME == tag { (entry & TIME).max(now) } else { now };
            let wait = (unused_at - now).saturating_sub(slack);
            if wait > 0 {
                return Err(Duration::from_micros(wait.saturating_mul(UNIT)));
            }
            let next = tag | unused_at.saturating_add(interval).min(TIME);
            if slot.compare_exchange(entry, next, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
                return Ok(());
            }
        }
    }
}

/// Returns the place of a tag in its set, and what is in it: its own, or else the one that is
/// unused first.
fn place(set: &[AtomicU64], tag: u64) -> Option<(&AtomicU64, u64)> {
    let entries = || set.iter().map(|slot| (slot, slot.load(Ordering::Relaxed)));
    let own = entries().find(|(_, entry)| *entry != 0 && entry & !TIME == tag);
    own.or_else(|| entries().min_by_key(|(_, entry)| entry & TIME))
}

impl Before for RateLimit {
    fn before(&self, cx: &Cx) -> Result<(), ToolError> {
        if cx.round() > 0 {
            return Ok(());
        }
        let Some(key) = self.key(cx) else { return Ok(()) };
        self.take(&key, cx.received_at()).map_err(|wait| {
            // Rounded up: a client that comes again after it passes.
            let millis = u64::try_from(wait.as_micros().div_ceil(1000)).unwrap_or(u64::MAX);
            let data = Object::new().with("retryAfterMs", millis);
            ErrorObject::new(code::TOO_MANY_REQUESTS, "too many requests").with_data(data.into()).into()
        })
    }

    fn is_inline(&self) -> bool {
        true
    }
}

impl fmt::Debug for RateLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateLimit").field("by", &self.by).field("rate", &self.rate).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn at(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    #[test]
    fn burst_passes_at_once_and_the_rest_in_its_time() {
        let limit = RateLimit::by(Key::Client, Rate::per_minute(60).burst(3));
        let begun = at(5_000);
        for _ in 0..3 {
            assert_eq!(limit.take("a", begun), Ok(()));
        }
        let wait = limit.take("a", begun).unwrap_err();
        assert!(Duration::from_millis(999) < wait && wait <= Duration::from_secs(1), "{wait:?}");
        assert_eq!(limit.take("b", begun), Ok(()), "another key");
        assert!(limit.take("a", at(5_999)).is_err());
        assert_eq!(limit.take("a", at(6_000)), Ok(()));
        assert!(limit.take("a", at(6_000)).is_err());
        let rested = (0..4).map(|_| limit.take("a", at(60_000)).is_ok()).collect::<Vec<_>>();
        assert_eq!(rested, [true, true, true, false]);
    }

    #[test]
    fn rate_holds_over_a_long_time() {
        for (rate, in_a_minute) in
            [(Rate::per_second(7), 420), (Rate::per_minute(7), 7), (Rate::per_second(900), 54_000)]
        {
            // A burst of one would wait for a whole millisecond more.
            let limit = RateLimit::by(Key::Tool, rate.burst(2));
            let passed = (0..60_000).filter(|millis| limit.take("t", at(*millis)).is_ok()).count();
            assert!(passed.abs_diff(in_a_minute) <= in_a_minute / 8 + 1, "{rate:?}: {passed}");
        }
    }

    #[test]
    fn table_is_bounded_and_forgets_what_is_used_least() {
        let limit = RateLimit::by(Key::Client, Rate::per_hour(2));
        for _ in 0..2 {
            assert_eq!(limit.take("greedy", at(0)), Ok(()));
        }
        for n in 0..20_000 {
            let _ = limit.take(&format!("{n}"), at(0));
        }
        assert!(limit.take("greedy", at(0)).is_err(), "those that used less went first");
        assert_eq!(limit.entries.len(), 10_000);
    }
}
