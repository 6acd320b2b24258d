//! A running request: what the engine keeps of it until its response goes out.

use super::client::ClientKey;
use super::incoming::{IncomingRequest, RequestState};
use super::keys::{ReplyTo, TaskKey};
use super::session::Session;
use crate::error::Refusal;
use crate::exchange::ExchangeId;
use crate::input::{Inputs, KeptRouter};
use crate::model::Progress;
use crate::model::lifecycle::meta;
use crate::model::logging::LogLevel;
use crate::rpc::{EncodeError, Id, Object, RawJson, notification};
use crate::time::Instant;
use crate::version::ProtocolVersion;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::String;
use bytes::Bytes;
use core::time::Duration;

/// A request that the application handles, or that waits for its client.
#[derive(Debug)]
pub(super) struct ServedRequest {
    /// The exchange that brought it. It may be over.
    pub(super) exchange: ExchangeId,
    /// The client that its place and its bytes count for.
    pub(super) client: ClientKey,
    pub(super) reply_to: ReplyTo,
    pub(super) id: Id,
    pub(super) version: ProtocolVersion,
    /// The batch that its response belongs to, on a duplex connection.
    pub(super) batch: Option<u64>,
    /// Its progress token.
    pub(super) token: Option<Id>,
    /// The lowest level of log messages that the request wants. `None`: it wants none.
    pub(super) log_level: Option<LogLevel>,
    /// Number of log messages that were dropped since the last one that was sent.
    pub(super) dropped_logs: u32,
    /// The last progress that the application reported.
    pub(super) progress: Option<f64>,
    /// The newest progress notification, if it waits for room.
    pub(super) held: Option<Bytes>,
    /// When the handler was entered last.
    pub(super) since: Instant,
    /// How long it ran in earlier rounds.
    pub(super) spent: Duration,
    pub(super) stage: RequestStage,
    pub(super) place: TaskPlace,
    /// The request for a further round. `None` on 2026-07-28, where the client sends it again,
    /// unless it may become a task.
    pub(super) entry: Option<Box<RequestEntry>>,
    /// The memory that it holds, in bytes, as estimated.
    pub(super) size: usize,
}

impl ServedRequest {
    /// Returns the request, if it is a legacy one.
    pub(super) fn request(&self) -> Option<&IncomingRequest> {
        self.entry.as_ref().map(|entry| &entry.incoming)
    }

    /// Returns whether it is a task of 2026-07-28, about which nothing is sent but its state.
    pub(super) fn is_silent(&self) -> bool {
        self.reply_to == ReplyTo::Task(None)
    }

    /// Returns the size of the pending progress notification, in bytes.
    pub(super) fn held_size(&self) -> Option<usize> {
        self.held.as_ref().map(Bytes::len)
    }

    /// Takes the pending progress notification.
    pub(super) const fn take_held(&mut self) -> Option<Bytes> {
        self.held.take()
    }

    /// Returns the notification for this progress, which must be above the last.
    pub(super) fn write_progress(&mut self, progress: &Progress) -> Result<Bytes, Refusal> {
        if self.is_silent() {
            return Err(Refusal::NotWanted);
        }
        let token = self.token.as_ref().ok_or(Refusal::NotWanted)?;
        let params = Object::new().with(meta::PROGRESS_TOKEN, token);
        let params = progress
            .write(params, self.version.rules().progress_message)
            .ok_or_else(|| Refusal::Unencodable(EncodeError::new("json has no such number")))?;
        if self.progress.is_some_and(|last| progress.progress <= last) {
            return Err(Refusal::NotIncreasing);
        }
        self.progress = Some(progress.progress);
        Ok(notification("notifications/progress", Some(&params)))
    }
}

/// The place of a request among the tasks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum TaskPlace {
    None,
    /// It may become a task.
    Reserved,
    /// It is this task: its client has a response.
    Taken(TaskKey),
}

/// The stage of a request: who acts next.
#[derive(Debug)]
pub(super) enum RequestStage {
    /// The application has its responder.
    Handler,
    /// The client has to respond to requests of the engine.
    Asking(OpenQuestions),
    /// The client has to answer the questions of the task that this request is.
    Waiting,
    /// The request waits for the end of this task (`tasks/result` of 2025-11-25).
    Result(TaskKey),
    /// The request is about a task, and waits for the store.
    Store,
    /// The same, for the end of a task that another server has taken from this one.
    Displaced,
}

/// The engine's requests of one round.
#[derive(Debug, Default)]
pub(super) struct OpenQuestions {
    /// Those without a response: the id on the wire, and the name.
    pub(super) open: BTreeMap<i64, String>,
    /// The state that the handler receives again.
    pub(super) state: Option<RawJson>,
    /// The deadline for the responses.
    pub(super) until: Instant,
}

impl OpenQuestions {
    /// Closes the open questions in the table of their session.
    pub(super) fn close_in(&self, session: &mut Session) {
        self.ids().for_each(|id| {
            session.close_question(id);
        });
    }

    /// Returns the ids of the requests without a response.
    pub(super) fn ids(&self) -> impl Iterator<Item = i64> + '_ {
        self.open.keys().copied()
    }
}

/// A legacy request, for the rounds after the first.
#[derive(Debug)]
pub(super) struct RequestEntry {
    pub(super) incoming: IncomingRequest,
    /// The router of the first round. `None` until the request asks.
    pub(super) router: Option<KeptRouter>,
    pub(super) inputs: Inputs,
    pub(super) rounds: u32,
}

impl RequestEntry {
    /// Returns the state that the handler has got in this round, if other servers share the task.
    pub(super) const fn state(&self) -> Option<&RawJson> {
        match &self.incoming.state {
            Some(RequestState::Kept(state)) => Some(state),
            Some(RequestState::Sealed(_)) | None => None,
        }
    }
}
