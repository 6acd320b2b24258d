//! Settings of a server for clients that deviate from the specification or from most others.

/// The settings of a [`ServerConfig`](super::ServerConfig) that only some clients need. With the
/// defaults the server also works with most clients that deviate from the specification.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct ServerCompat {
    /// Whether input responses (`inputResponses` of 2026-07-28) without a `requestState` reach the
    /// handler. Default no: the engine drops them and reports it. The engine seals a state with
    /// everything that it requests, so a client that responds brings one. Yes is for clients that
    /// send an input response which the server did not request. Set it only if no handler takes an
    /// input response for a proof that its request was shown to a user.
    pub unasked_answers: bool,
    /// Whether a legacy client may use the id of a finished request again on its connection or
    /// session. Default yes, for clients that do so, although the specification forbids it. If not,
    /// the last 1024 ids of each are remembered.
    pub reuse_ids: bool,
    /// The response to a GET that resumes a stream after an event which the server does not keep.
    /// Default [`UnknownEvent::Refuse`].
    pub unknown_event: UnknownEvent,
}

/// The response to a GET that resumes a stream after an event which the server does not keep, or
/// never sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum UnknownEvent {
    /// Status 400 with an error: the client learns of the gap.
    #[default]
    Refuse,
    /// The session's own stream, from its oldest event that is kept. For clients that treat a
    /// refusal as the end of the session, and can do with a gap or with an event twice.
    ReplayFromOldest,
}

impl Default for ServerCompat {
    fn default() -> Self {
        Self { unasked_answers: false, reuse_ids: true, unknown_event: UnknownEvent::Refuse }
    }
}
