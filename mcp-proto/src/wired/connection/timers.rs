//! The one timer of a connection: the event for which it waits, and the consequence of a timeout.
//! Each wait of an HTTP exchange has its own timeout. On a client: to connect, to write the
//! request, for the head of the response, and between two parts of its body. An event stream has no
//! timeout. On a server: for a head, for its body, until the peer has accepted the response, and
//! for the next request.

use super::{Connection, ConnectionOutput, ConnectionRole, ResponseProgress};
use crate::exchange::{Closed, ResponseHead, Shutdown};
use crate::frame::{Media, Work, media_type};
use crate::time::Instant;
use crate::wired::ConnectionInput;
use core::time::Duration;

/// Time for which a surplus connection stays idle before it is closed. Callers that make one call
/// after the other on many threads use the connection again within that time. Closing it at once
/// would open another one for each of their calls.
const SURPLUS_TIME: Duration = Duration::from_secs(1);

/// The pause after the work of one turn, in which the driver serves the others. A few received
/// bytes can become very many by their content coding, and many can become no message at all.
pub(super) const PAUSE: Duration = Duration::from_millis(1);

/// The wait that is over when the timer of a connection fires.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Due {
    Connect,
    Head,
    Body,
    /// HTTP: the peer accepts nothing of the request, or of a response.
    Write,
    /// HTTP client: the head of the response.
    Answer,
    Idle,
    /// The peer of a closing connection accepts no more bytes, or does not close.
    Linger,
    Exit,
    Terminate,
    /// WebSocket: the peer is silent.
    Ping,
    /// WebSocket: the peer does not answer a ping.
    Pong,
}

/// The lag of a transfer behind its minimum rate: a leaky bucket. The peer sets the speed. Time
/// adds to the lag and bytes reduce it, but a transfer ahead of the rate gains nothing for later.
#[derive(Clone, Copy, Debug)]
pub(super) struct RateFloor {
    /// The time of the last update.
    at: Instant,
    /// In nanoseconds, multiplied by the rate: no byte is lost to rounding, and bytes count the
    /// same together and one by one.
    lag: u128,
}

impl RateFloor {
    pub(super) const fn from(now: Instant) -> Self {
        Self { at: now, lag: 0 }
    }

    /// Counts `n` transferred bytes, at a minimum of `rate` bytes per second. `still` is the
    /// maximum stall, and the maximum of the lag.
    pub(super) fn goes_on(&mut self, now: Instant, n: usize, still: Duration, rate: usize) {
        let scaled = |time: Duration| time.as_nanos().saturating_mul(rate as u128);
        let lag = self.lag.saturating_add(scaled(now.since(self.at))).min(scaled(still));
        self.lag = lag.saturating_sub((n as u128).saturating_mul(1_000_000_000));
        self.at = now;
    }

    /// Returns the time for which the transfer may still stall. Without a rate, that is the whole
    /// time.
    fn left(self, still: Duration, rate: usize) -> Duration {
        let lag = self.lag.checked_div(rate as u128).unwrap_or_default();
        still.saturating_sub(Duration::from_nanos(u64::try_from(lag).unwrap_or(u64::MAX)))
    }
}

impl Connection {
    /// Fires the timer if it is due. Otherwise does nothing.
    #[track_caller]
    pub fn handle_timeout(&mut self, now: Instant) {
        self.observe_input(now, || ConnectionInput::Tick);
        self.catch_up(now);
        let paused = self.pauses();
        self.resume();
        // What was received before a pause comes before what is due: it may set the timer again.
        while paused && self.events.is_empty() && self.step() {}
        let Some((_, due)) = self.timer.filter(|(at, _)| *at <= self.now) else { return };
        self.timer = None;
        match (due, self.exchange) {
            (Due::Exit, _) => {
                self.ending = Some(Shutdown::Terminate);
                self.outputs.push_back(ConnectionOutput::Close(Shutdown::Terminate));
                self.arm(self.limits.terminate_timeout, Due::Terminate);
            }
            (Due::Ping, Some(_)) => self.ping_web_socket(),
            (Due::Head, None) if self.has_begun() => self.overdue("the request head took too long"),
            (Due::Body, Some(_)) if self.role == ConnectionRole::HttpServer => {
                self.overdue("the request body took too long")
            }
            (Due::Connect | Due::Body | Due::Write | Due::Answer | Due::Pong, Some(exchange)) => {
                self.fail(exchange, Closed::Timeout)
            }
            _ => {
                self.unwritten(&Closed::Timeout);
                self.abort_channel();
            }
        }
    }

    /// Returns whether the rest of what was received is parsed after a pause.
    pub(super) fn pauses(&self) -> bool {
        self.resume.is_some() && self.exchange.is_some()
    }

    /// Begins a turn, unless a pause is not over: what happens meanwhile does not shorten it.
    pub(super) fn resume(&mut self) {
        if !self.pauses() || self.resume.is_none_or(|at| at <= self.now) {
            self.begin_part();
        }
    }

    pub(super) fn begin_part(&mut self) {
        (self.work, self.resume) = (Work::of_turn(), None);
    }

    /// Returns whether this end has opened the connection.
    pub(super) fn is_client(&self) -> bool {
        match self.role {
            ConnectionRole::DuplexClient { .. } | ConnectionRole::HttpClient | ConnectionRole::WsClient => true,
            ConnectionRole::DuplexServer | ConnectionRole::HttpServer | ConnectionRole::WsServer => false,
        }
    }

    /// Arms the timer for a transfer that may stall for `still`, and lag as far behind
    /// [`min_rate`](crate::limits::FrameLimits::min_rate). `n` bytes of it were transferred now.
    pub(super) fn arm_paced(&mut self, n: usize, still: Duration, due: Due) {
        let rate = self.limits.min_rate;
        self.pace.goes_on(self.now, n, still, rate);
        self.arm(self.pace.left(still, rate), due);
    }

    /// HTTP client: the connection is idle. It is closed soon, unless a request needs it.
    pub(in crate::wired) fn mark_surplus(&mut self, now: Instant) {
        self.now = self.now.max(now);
        if !core::mem::replace(&mut self.surplus, true)
            && let Some((_, Due::Idle)) = self.timer
        {
            self.arm_idle();
        }
    }

    /// HTTP client: the connection has no exchange.
    pub(super) fn arm_idle(&mut self) {
        let time = self.limits.idle_timeout;
        self.arm(if self.surplus { time.min(SURPLUS_TIME) } else { time }, Due::Idle);
    }

    pub(super) fn arm(&mut self, after: Duration, due: Due) {
        self.timer = Some((self.now + after, due));
    }

    /// HTTP client: a part of the request was written, or is to be written. The timeout of the
    /// response starts at its last byte.
    pub(super) fn arm_request(&mut self) {
        if !matches!(self.answer, ResponseProgress::Awaited | ResponseProgress::Begun) {
            return;
        }
        if self.unsent > 0 {
            self.arm(self.limits.write_stall, Due::Write);
        } else {
            self.timer = self.limits.response_timeout.map(|after| (self.now + after, Due::Answer));
        }
    }

    /// HTTP client: received bytes of the response. Those of the head extend no timeout.
    pub(super) fn answer_comes(&mut self) {
        if self.answer == ResponseProgress::Awaited {
            self.answer = ResponseProgress::Begun;
        }
    }

    /// HTTP client: received content of the response.
    pub(super) fn answer_goes_on(&mut self) {
        match self.answer {
            ResponseProgress::Body => self.arm(self.limits.body_timeout, Due::Body),
            ResponseProgress::Awaited | ResponseProgress::Begun | ResponseProgress::Stream => {}
        }
    }

    /// HTTP client: received the head of the response.
    pub(super) fn answer_begins(&mut self, head: &ResponseHead) {
        if self.role != ConnectionRole::HttpClient {
            return;
        }
        if media_type(&head.headers) == Media::EventStream {
            self.answer = ResponseProgress::Stream;
            self.timer = None;
        } else {
            self.answer = ResponseProgress::Body;
            self.arm(self.limits.body_timeout, Due::Body);
        }
    }
}
