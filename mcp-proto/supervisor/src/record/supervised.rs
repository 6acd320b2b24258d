//! The recording of a supervisor: how its policy, its inputs and its outputs are written.

use crate::{
    CallRefusal, Catalogue, Event, Generation, Input, InputReply, ListKind, Listing, Output, ServerSpec, Supervision,
    Supervisor, Ticket,
};
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use core::fmt;
use core::time::Duration;
use mcp_proto::client::{ClientConfig, Target};
use mcp_proto::exchange::Endpoint;
use mcp_proto::input::Change;
use mcp_proto::record::{Log, Mask, Redaction, Replay, bare};
use mcp_proto::time::Instant;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// A supervisor has no callbacks.
#[derive(Serialize, Deserialize)]
pub enum NoNote {}

/// An output, or what an input returned, as it is written.
#[derive(Serialize)]
pub enum OutputLine<K> {
    Done(bool),
    Begun(Ticket),
    /// A call was refused at once: why, and the error in full unless it is redacted.
    Refused(&'static str, Option<String>),
    Resolve(K, Generation, Target),
    Connect(K, Generation, Target),
    Close(Generation),
    Load(Generation, ListKind),
    Run(Ticket, Generation, Option<Duration>),
    End(Ticket),
    Refuse(Ticket, &'static str, Option<String>),
    /// An event: its kind, and the event in full unless it is redacted.
    Event(&'static str, Option<String>),
}

/// Masks the inputs of a supervisor, and writes its outputs.
#[derive(Debug)]
pub struct SupervisorMask(Mask);

impl SupervisorMask {
    fn new(redaction: Redaction) -> Self {
        // Nothing here belongs to one connection.
        Self(Mask::new(redaction, &Target::Duplex(Endpoint::Given)))
    }

    fn returned<K>(&self, returned: &InputReply) -> Option<OutputLine<K>> {
        Some(match returned {
            InputReply::Nothing => return None,
            InputReply::Done(done) => OutputLine::Done(*done),
            InputReply::Call(Ok(ticket)) => OutputLine::Begun(*ticket),
            InputReply::Call(Err(why)) => OutputLine::Refused(refusal(why), self.in_full(why)),
        })
    }

    fn output<K: Clone + fmt::Debug>(&self, output: &Output<K>) -> OutputLine<K> {
        let target = |config: &ClientConfig| self.0.target(&config.target);
        match output {
            Output::Resolve { key, generation, config } => {
                OutputLine::Resolve(key.clone(), *generation, target(config))
            }
            Output::Connect { key, generation, config } => {
                OutputLine::Connect(key.clone(), *generation, target(config))
            }
            Output::Close(generation) => OutputLine::Close(*generation),
            Output::Load { generation, list } => OutputLine::Load(*generation, *list),
            Output::Run { ticket, generation, timeout } => OutputLine::Run(*ticket, *generation, *timeout),
            Output::End { ticket } => OutputLine::End(*ticket),
            Output::Refuse { ticket, why } => OutputLine::Refuse(*ticket, refusal(why), self.in_full(why)),
            Output::Event(event) => OutputLine::Event(kind(event), self.in_full(event)),
        }
    }

    fn in_full(&self, value: &dyn fmt::Debug) -> Option<String> {
        (!self.0.is_on()).then(|| format!("{value:?}"))
    }

    fn input<K>(&self, input: Input<K>) -> Input<K> {
        if !self.0.is_on() {
            return input;
        }
        match input {
            Input::Add(key, spec) => Input::Add(key, self.spec(spec)),
            Input::Replace(key, spec) => Input::Replace(key, self.spec(spec)),
            Input::Resolved(generation, Ok(config)) => {
                Input::Resolved(generation, Ok(Arc::new(self.0.config(&config))))
            }
            Input::Resolved(generation, Err(why)) => Input::Resolved(generation, Err(self.0.text(&why))),
            Input::Ready(generation, capabilities) => {
                Input::Ready(generation, self.0.server_capabilities(&capabilities))
            }
            Input::Ended(generation, why) => Input::Ended(generation, bare::termination(&why)),
            Input::SessionLost(generation, cause) => Input::SessionLost(generation, bare::stream_end(&cause)),
            Input::Changed(generation, Change::Resource(uri)) => {
                Input::Changed(generation, Change::Resource(self.0.uri(&uri)))
            }
            Input::Loaded(generation, list, Ok(loaded)) => {
                Input::Loaded(generation, list, Ok(self.listing(loaded.listing).into()))
            }
            Input::Loaded(generation, list, Err(error)) => Input::Loaded(generation, list, Err(bare::call(&error))),
            Input::Finished(ticket, Err(error)) => Input::Finished(ticket, Err(bare::call(&error))),
            Input::Remove(_)
            | Input::Reconnect(_)
            | Input::Changed(..)
            | Input::PingMissed(..)
            | Input::Call(..)
            | Input::Finished(_, Ok(()))
            | Input::NotBegun(_)
            | Input::Cancel(_)
            | Input::Close
            | Input::Tick => input,
        }
    }

    fn spec(&self, mut spec: ServerSpec) -> ServerSpec {
        spec.config = Arc::new(self.0.config(&spec.config));
        spec.catalogue = self.catalogue(&spec.catalogue);
        spec
    }

    fn listing(&self, listing: Listing) -> Listing {
        let list = listing.kind();
        let mut catalogue = Catalogue::default();
        catalogue.set(listing);
        self.catalogue(&catalogue).get(list).unwrap_or_else(|| Listing::none(list))
    }

    /// Masking changes no member that a list needs.
    fn catalogue(&self, catalogue: &Catalogue) -> Catalogue {
        Catalogue::read(&self.0.object(&catalogue.write()).into()).unwrap_or_default()
    }
}

/// Returns the kind of an event.
const fn kind<K>(event: &Event<K>) -> &'static str {
    match event {
        Event::Up { .. } => "up",
        Event::Listed { .. } => "listed",
        Event::NotListed { .. } => "not-listed",
        Event::Lost { .. } => "lost",
        Event::Reconnecting { .. } => "reconnecting",
        Event::Down { .. } => "down",
        Event::RecordingEnded { .. } => "recording-ended",
        Event::Closed { .. } => "closed",
    }
}

/// Returns the kind of a refusal.
const fn refusal(why: &CallRefusal) -> &'static str {
    match why {
        CallRefusal::Unavailable { .. } => "unavailable",
        CallRefusal::Unknown => "unknown",
        CallRefusal::Timeout { .. } => "timeout",
        CallRefusal::Full => "full",
        CallRefusal::Replaced => "replaced",
        CallRefusal::Removed => "removed",
        CallRefusal::Closed => "closed",
    }
}

impl<K> Replay for Supervisor<K>
where
    K: Clone + Ord + fmt::Debug + Serialize + DeserializeOwned + Send + Sync,
{
    const ENGINE: &'static str = "supervisor";
    const BOUNDS_OUTPUTS: bool = false;
    type Start = Supervision;
    type Note = NoNote;
    type Mask = SupervisorMask;
    type Line = OutputLine<K>;

    fn mask(redaction: Redaction, _: &Supervision) -> SupervisorMask {
        SupervisorMask::new(redaction)
    }

    fn create(log: &Log<Self>) -> Self {
        Self::new(log.start.clone(), log.seed())
    }

    fn apply(&mut self, now: Instant, input: Input<K>) -> InputReply {
        self.apply(now, input)
    }

    fn poll(&mut self) -> Option<Output<K>> {
        self.poll_output()
    }

    fn written(mask: &mut SupervisorMask, input: &Input<K>) -> Input<K> {
        mask.input(input.clone())
    }

    fn may_be_unreadable(_: &Input<K>) -> bool {
        true
    }

    fn returned(mask: &SupervisorMask, returned: &InputReply) -> Option<OutputLine<K>> {
        mask.returned(returned)
    }

    fn output(mask: &mut SupervisorMask, output: &Output<K>) -> OutputLine<K> {
        mask.output(output)
    }

    fn is_last(output: &Output<K>) -> bool {
        matches!(output, Output::Event(Event::Closed { .. }))
    }
}
