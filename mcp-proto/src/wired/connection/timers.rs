//! The one timer of a connection: what it waits for, and what follows when that does not come. Each wait of an HTTP exchange has a time of its own.
//! On a client: to connect, to get the request written, for the head of the answer, and between two parts of its body; an event stream has
//! none. On a server: for a head, for its body, until the answer is taken, and for the next request.

use super::{Answer, Connection, ConnectionOutput, Side};
use crate::exchange::{Closed, ResponseHead, Shutdown};
use crate::time::Instant;
use core::time::Duration;

/// How long a connection is idle that is not to be kept. Callers that make one call after the other on many threads use it again within
/// that; closing it at once would open another for each of their calls.
const SURPLUS_TIME: Duration = Duration::from_secs(1);

/// What is due when the timer of a connection fires.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Due {
    Connect,
    Head,
    Body,
    /// HTTP: the other side takes nothing of the request, or of an answer that was said.
    Write,
    /// HTTP client: the head of the answer.
    Answer,
    Idle,
    /// An ended channel takes no more bytes, or its other side does not end it.
    Linger,
    Exit,
    Terminate,
}

/// How far something lags behind its slowest pace, which the other side sets: a leaky bucket. Time adds to the lag and bytes take from it,
/// but whoever is ahead of the pace has gained nothing for later.
#[derive(Clone, Copy, Debug)]
pub(super) struct RateFloor {
    /// When it was last looked at.
    at: Instant,
    /// Nanoseconds, times the rate: so no byte is lost to rounding, and bytes earn the same together and one by one.
    lag: u128,
}

impl RateFloor {
    pub(super) const fn from(now: Instant) -> Self {
        Self { at: now, lag: 0 }
    }

    /// So many bytes went, at this rate per second at least. It may stand still for so long, and lag no farther.
    pub(super) fn goes_on(&mut self, now: Instant, n: usize, still: Duration, rate: usize) {
        let scaled = |time: Duration| time.as_nanos().saturating_mul(rate as u128);
        let lag = self.lag.saturating_add(scaled(now.since(self.at))).min(scaled(still));
        self.lag = lag.saturating_sub((n as u128).saturating_mul(1_000_000_000));
        self.at = now;
    }

    /// How long it may still stand still. Without a rate, the whole time.
    fn left(self, still: Duration, rate: usize) -> Duration {
        let lag = self.lag.checked_div(rate as u128).unwrap_or_default();
        still.saturating_sub(Duration::from_nanos(u64::try_from(lag).unwrap_or(u64::MAX)))
    }
}

impl Connection {
    /// Fires its timer if it is due; else nothing happens.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.catch_up(now);
        let Some((_, due)) = self.timer.filter(|(at, _)| *at <= self.now) else { return };
        self.timer = None;
        match (due, self.exchange) {
            (Due::Exit, _) => {
                self.ending = Some(Shutdown::Terminate);
                self.outputs.push_back(ConnectionOutput::Close(Shutdown::Terminate));
                self.arm(self.limits.terminate_timeout, Due::Terminate);
            }
            (Due::Head, None) if self.has_begun() => self.overdue("the request head took too long"),
            (Due::Body, Some(_)) if self.side == Side::HttpServer => self.overdue("the request body took too long"),
            (Due::Connect | Due::Body | Due::Write | Due::Answer, Some(exchange)) => {
                self.fail(exchange, Closed::Timeout)
            }
            _ => {
                self.unwritten(&Closed::Timeout);
                self.abort_channel();
            }
        }
    }

    /// Arms the timer for something that may stand still for so long, and lag as far behind
    /// [`min_rate`](crate::limits::FrameLimits::min_rate). So many bytes of it went now.
    pub(super) fn arm_paced(&mut self, n: usize, still: Duration, due: Due) {
        let rate = self.limits.min_rate;
        self.pace.goes_on(self.now, n, still, rate);
        self.arm(self.pace.left(still, rate), due);
    }

    /// HTTP client: it is idle. It is closed soon, unless a request needs it.
    pub(in crate::wired) fn mark_surplus(&mut self, now: Instant) {
        self.now = self.now.max(now);
        if !core::mem::replace(&mut self.surplus, true)
            && let Some((_, Due::Idle)) = self.timer
        {
            self.arm_idle();
        }
    }

    /// HTTP client: no exchange is on it.
    pub(super) fn arm_idle(&mut self) {
        let time = self.limits.idle_timeout;
        self.arm(if self.surplus { time.min(SURPLUS_TIME) } else { time }, Due::Idle);
    }

    pub(super) fn arm(&mut self, after: Duration, due: Due) {
        self.timer = Some((self.now + after, due));
    }

    /// HTTP client: some of the request was written, or is to be written. The time to answer counts from its last byte.
    pub(super) fn arm_request(&mut self) {
        if !matches!(self.answer, Answer::Awaited | Answer::Begun) {
            return;
        }
        if self.unsent > 0 {
            self.arm(self.limits.write_stall, Due::Write);
        } else {
            self.timer = self.limits.response_timeout.map(|after| (self.now + after, Due::Answer));
        }
    }

    /// HTTP client: bytes of the answer came. Those of the head extend nothing.
    pub(super) fn answer_comes(&mut self) {
        if self.answer == Answer::Awaited {
            self.answer = Answer::Begun;
        }
    }

    /// HTTP client: content of the answer came.
    pub(super) fn answer_goes_on(&mut self) {
        match self.answer {
            Answer::Body => self.arm(self.limits.body_timeout, Due::Body),
            Answer::Awaited | Answer::Begun | Answer::Stream => {}
        }
    }

    /// HTTP client: the head of the answer came.
    pub(super) fn answer_begins(&mut self, head: &ResponseHead) {
        if self.side != Side::HttpClient {
            return;
        }
        if is_event_stream(head, self) {
            self.answer = Answer::Stream;
            self.timer = None;
        } else {
            self.answer = Answer::Body;
            self.arm(self.limits.body_timeout, Due::Body);
        }
    }
}

#[cfg(feature = "http")]
fn is_event_stream(head: &ResponseHead, connection: &Connection) -> bool {
    crate::frame::Body::of_response(head, &connection.limits).is_event_stream()
}

#[cfg(not(feature = "http"))]
fn is_event_stream(_: &ResponseHead, _: &Connection) -> bool {
    false
}
