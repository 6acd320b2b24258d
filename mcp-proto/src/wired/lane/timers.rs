//! The one timer of a lane: what it waits for, and what follows when that does not come. Each wait of an HTTP exchange has a time of its own:
//! to connect, to get the request written, for the head of the answer, and between two parts of its body. An event stream has none.

use super::{Answer, Lane, LaneOutput, Side};
use crate::exchange::{Closed, ResponseHead, Shutdown};
use crate::time::Instant;
use core::time::Duration;

/// What is due when the timer of a lane fires.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Due {
    Connect,
    Head,
    Body,
    /// HTTP client: the other side takes nothing of the request.
    Write,
    /// HTTP client: the head of the answer.
    Answer,
    Idle,
    /// An ended channel takes no more bytes, or its other side does not end it.
    Linger,
    Exit,
    Terminate,
}

impl Lane {
    /// Fires its timer if it is due; else nothing happens.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.catch_up(now);
        let Some((_, due)) = self.timer.filter(|(at, _)| *at <= self.now) else { return };
        self.timer = None;
        match (due, self.exchange) {
            (Due::Exit, _) => {
                self.ending = Some(Shutdown::Terminate);
                self.outputs.push_back(LaneOutput::Close(Shutdown::Terminate));
                self.arm(self.limits.terminate_timeout, Due::Terminate);
            }
            (Due::Connect | Due::Body | Due::Write | Due::Answer, Some(exchange)) => {
                self.fail(exchange, Closed::Timeout)
            }
            _ => self.abort_channel(),
        }
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

    /// HTTP client: bytes of the answer came. Those of the head extend nothing, those of a body do.
    pub(super) fn answer_goes_on(&mut self) {
        match self.answer {
            Answer::Awaited => self.answer = Answer::Begun,
            Answer::Begun | Answer::Stream => {}
            Answer::Body => self.arm(self.limits.body_timeout, Due::Body),
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
fn is_event_stream(head: &ResponseHead, lane: &Lane) -> bool {
    crate::frame::Body::of_response(head, &lane.limits).is_event_stream()
}

#[cfg(not(feature = "http"))]
fn is_event_stream(_: &ResponseHead, _: &Lane) -> bool {
    false
}
