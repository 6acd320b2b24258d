//! One response stream.

use super::shared::SharedStream;
use crate::exchange::ExchangeId;
use crate::input::{RequestKey, SessionKey};
use crate::server::batch::Batch;
use crate::short_set::ShortSet;
use crate::version::{Era, ProtocolVersion};
use alloc::boxed::Box;
use alloc::collections::VecDeque;

/// See the [module](self).
#[derive(Debug)]
pub(in crate::server) struct ResponseStream {
    /// The session that can resume it. `None`: it cannot be resumed.
    pub(super) session: Option<SessionKey>,
    /// Its number within the session.
    pub(in super::super) number: u64,
    pub(super) version: ProtocolVersion,
    /// The exchange that carries it at the moment.
    pub(super) exchange: Option<ExchangeId>,
    /// Whether its client accepts events.
    pub(super) can_stream: bool,
    /// Whether it has begun as an event stream. Until then the response can be plain JSON.
    pub(super) streams: bool,
    /// The running requests that it answers.
    pub(super) running: ShortSet<RequestKey>,
    /// The batch that it answers, until a message has to be sent before its array.
    pub(super) batch: Option<Batch>,
    /// The numbers of its kept events.
    pub(super) kept: VecDeque<u64>,
    /// The newest of its events that is no longer kept. A client that has it has missed nothing.
    pub(super) gone: Option<u64>,
    /// The newest of its events that was sent on an exchange.
    pub(super) said: Option<u64>,
    /// Whether it is the session's own, which belongs to no request.
    pub(in super::super) is_own: bool,
    /// Whether everything was sent, or is kept.
    pub(super) is_over: bool,
    /// Whether its client speaks the dialect of tool streams.
    pub(super) speaks_dialect: bool,
    /// What a store has of it, if servers share its session.
    pub(in super::super) shared: Option<Box<SharedStream>>,
}

/// What the eviction of an event means for its stream.
pub(in super::super) struct Eviction {
    /// The client has not received the event, nor lost one before.
    pub(in super::super) is_first_loss: bool,
    /// Nothing is left of the stream.
    pub(in super::super) was_last: bool,
}

impl ResponseStream {
    /// Returns whether its client has left before it received an event id to resume from.
    pub(in crate::server) const fn is_lost(&self) -> bool {
        self.exchange.is_none() && self.said.is_none() && !self.is_own
    }

    /// Returns the session that can resume it.
    pub(in crate::server) const fn session(&self) -> Option<SessionKey> {
        self.session
    }

    /// Returns the exchange that carries it at the moment.
    pub(in crate::server) const fn exchange(&self) -> Option<ExchangeId> {
        self.exchange
    }

    /// Returns the running requests that it answers.
    pub(in crate::server) const fn running(&self) -> &ShortSet<RequestKey> {
        &self.running
    }

    pub(in crate::server) const fn running_mut(&mut self) -> &mut ShortSet<RequestKey> {
        &mut self.running
    }

    /// Returns whether the status of its response has been sent.
    pub(in super::super) const fn has_begun(&self) -> bool {
        self.streams
    }

    /// Returns whether it is one of a legacy client, which can outlive its exchange.
    pub(in super::super) const fn is_legacy(&self) -> bool {
        matches!(self.version.era(), Era::Legacy)
    }

    /// Returns whether the response is sent as events of the dialect of tool streams.
    pub(in super::super) const fn sends_dialect(&self) -> bool {
        self.speaks_dialect && self.can_stream
    }

    /// Returns whether a client that has closed its sending side may still wait for a response on
    /// it. A modern client has cancelled.
    pub(in super::super) fn may_be_awaited(&self) -> bool {
        self.is_legacy() && !self.speaks_dialect && !self.running.is_empty()
    }

    /// Returns whether it is carried by an exchange, or a request of it runs.
    pub(in super::super) fn is_active(&self) -> bool {
        self.exchange.is_some() || !self.running.is_empty()
    }

    /// The history has evicted its oldest event.
    pub(in super::super) fn evict(&mut self, number: u64) -> Eviction {
        self.kept.pop_front();
        let before = self.gone.replace(number);
        Eviction {
            is_first_loss: self.said < Some(number) && before <= self.said,
            was_last: self.is_over && self.kept.is_empty() && self.exchange.is_none(),
        }
    }

    /// Returns whether its messages are kept for a client that is not there.
    pub(in crate::server) const fn is_kept(&self) -> bool {
        self.exchange.is_none() && self.session.is_some() && self.can_stream && !self.is_lost()
    }

    /// Returns whether it begins with an event that has an id and no data, and may be closed before
    /// its end.
    pub(super) fn is_primed(&self) -> bool {
        self.session.is_some() && self.version.rules().polling
    }
}
