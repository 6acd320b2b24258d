//! A stream as its connections show it, and when the next round of it may begin.

use mcp_proto::Instant;
use mcp_proto::client::Resume;
use serde_json::Value;
use std::collections::VecDeque;
use std::time::Duration;

/// The wait without a `retry` of the server.
pub(super) const WAIT: u64 = 1000;
/// The maximum waits of the backoff: after a round with a message, of a request, and of a listener.
/// The last one is also the wait after the loss of a listener.
const CEILINGS: (u64, u64, u64) = (1_000, 5_000, 30_000);
/// The minimum and the maximum `retry` of a server that count.
const CLAMP: (u64, u64) = (10, 300_000);
/// A round of this length resets the backoff, and a listener with this lifetime has made progress.
pub(super) const LASTING: Duration = Duration::from_secs(10);

/// Events that a repeat is compared to.
pub(super) const LATEST: usize = 16;

/// The purpose of a stream.
#[derive(Clone, Debug, PartialEq)]
pub enum Serves {
    /// A call of the tool `work`: its tag.
    Work(u64),
    /// Messages of the server without a request: the listener.
    Listener,
    /// Any other request: its method.
    Other(String),
}

/// A response and the connections over which it came.
#[derive(Clone, Debug)]
pub struct Stream {
    /// Its purpose.
    pub serves: Serves,
    /// The id of its request as JSON.
    pub id: Value,
    /// The session it belongs to.
    pub session: Option<String>,
    /// The id of the last event of it that arrived.
    pub last_id: Option<String>,
    /// Whether the response has arrived.
    pub answered: bool,
    /// Whether the response only asks for input.
    pub asks: bool,
    /// Attempts to resume it, without the first request.
    pub attempts: u32,
    /// Attempts since a round brought a message.
    pub(super) fruitless: u32,
    /// Rounds in a row that brought nothing, the first request counted.
    pub empty: u32,
    /// Rounds in a row that were short.
    pub(super) short: u32,
    /// The last round brought a message.
    pub(super) delivered: bool,
    /// The latest events that have an id: id and data.
    pub(super) latest: VecDeque<(String, String)>,
    /// When the latest round began.
    pub(super) began: Instant,
    pub(super) retry: Option<u64>,
    pub(super) half_retry: Option<u64>,
    pub(super) retry_after: Option<u64>,
    pub(super) over: Option<Instant>,
    pub(super) refused: bool,
    /// The loss was reported to the application.
    pub(super) given_up: bool,
    /// An attempt may be invisible, since its connection did not open.
    pub(super) unseen: bool,
    /// The next attempt repeats the latest one without a wait: the end of the one before that
    /// counts.
    pub(super) again: Option<Option<Instant>>,
}

impl Stream {
    pub(super) fn new(serves: Serves, id: Value, session: Option<String>) -> Self {
        Self {
            serves,
            id,
            session,
            last_id: None,
            answered: false,
            asks: false,
            attempts: 0,
            fruitless: 0,
            empty: 0,
            short: 0,
            delivered: false,
            latest: VecDeque::new(),
            began: Instant::ZERO,
            retry: None,
            half_retry: None,
            retry_after: None,
            over: None,
            refused: false,
            given_up: false,
            unseen: false,
            again: None,
        }
    }

    /// Checks that an attempt may be made now. False: it is one after the last, a long time later.
    pub(super) fn check_wait(&self, now: Instant, resume: Resume) -> bool {
        let over = self.over.unwrap_or_else(|| panic!("an attempt before the end of the one before: {self:?}"));
        let waited = (now - over).as_millis() as u64;
        let named = self.retry.unwrap_or(WAIT).clamp(CLAMP.0, CLAMP.1);
        let after = self.retry_after.map_or(0, |seconds| (seconds * 1000).clamp(CLAMP.0, CLAMP.1));
        assert!(waited >= named.max(after), "{waited} ms after {named} ms were named: {self:?}");
        let over = match resume {
            Resume::Progress => {
                let ceiling = match self.serves {
                    _ if self.delivered => CEILINGS.0,
                    Serves::Listener => CEILINGS.2,
                    Serves::Work(_) | Serves::Other(_) => CEILINGS.1,
                };
                let doublings = self.short.saturating_sub(2).min(20);
                let doubled = named.saturating_mul(1 << doublings).min(ceiling).max(named);
                assert!(waited >= doubled, "{waited} ms in place of {doubled} ms: {self:?}");
                self.empty >= 2
            }
            Resume::Strict(most) if self.serves == Serves::Listener => self.fruitless >= most,
            Resume::Strict(most) => self.attempts >= most,
            Resume::Never => true,
        };
        let over = over || self.given_up;
        if self.given_up || (over && !self.unseen) || self.refused {
            assert!(self.serves == Serves::Listener, "an attempt after the last: {self:?}");
            assert!(waited >= CEILINGS.2.max(named), "{waited} ms after it was given up: {self:?}");
        }
        !(over || self.refused)
    }

    /// Returns whether the client may have given up the listener before this attempt. It does not
    /// report that again until the listener is open, and the last round may be the invisible one.
    pub(super) fn may_have_been_given_up(&self, now: Instant) -> bool {
        let waited = self.over.map_or(0, |over| (now - over).as_millis() as u64);
        self.serves == Serves::Listener && self.unseen && waited >= CEILINGS.2
    }
}
