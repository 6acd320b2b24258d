//! The faults of a run with both engines.

/// A fault that a run injects: of the network, of the server and its application, of the clients,
/// and of a malicious peer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Fault {
    /// Bytes arrive in pieces.
    Cut,
    /// Bytes arrive later.
    Delay,
    /// The direction to the server stalls for a while.
    StallUp,
    /// A client reads nothing for a while.
    SlowReader,
    /// The server sees the end of a client's output, and the client continues to read.
    EndUp,
    /// A client sees the end of the server's output within a response.
    EndDown,
    /// A connection is lost, at any byte of a client's output.
    ResetUp,
    /// A connection is lost, at any byte of the server's output.
    ResetDown,
    /// The connection is refused.
    Refused,
    /// The attempt to connect gets no response.
    Hang,
    /// A pooled connection is found dead when a request is written to it.
    DeadAtWrite,
    /// A pooled connection ends while it is idle.
    DeadIdle,
    /// The server dies without a message, and another one starts at its address.
    Crash,
    /// The server shuts down, and another one starts at its address.
    Restart,
    /// The credentials of a client are no longer good.
    Unauthorized,
    /// The credentials of a client do not suffice.
    Forbidden,
    /// The application takes longer to admit a request than it may.
    AdmitLate,
    /// The application closes the stream of a request for now, and the client has to resume it.
    CloseStream,
    /// The application takes longer than any timeout.
    SlowHandler,
    /// A client cancels a call.
    Cancel,
    /// A client is gone without a word: nothing of it moves any more.
    Vanish,
    /// A client is asleep for longer than its session lasts.
    Asleep,
    /// Another principal speaks in the session of a client.
    StolenSession,
    /// Another principal asks for the rest of a stream of a client, in the session of that client.
    StolenCursor,
    /// Another principal ends the session of a client.
    StolenEnd,
    /// A client requests, in its own session, the events after one of another session.
    ForeignCursor,
    /// A client cancels, in its own session, the request of another one.
    ForeignCancel,
    /// A client answers, in its own session, the question that another one was asked.
    ForeignAnswer,
    /// The malicious peer tries a session id.
    GuessedSession,
    /// The malicious peer tries an event id of its own session that does not exist.
    GuessedCursor,
    /// The malicious peer sends invalid HTTP, or a part of a request.
    Garbage,
    /// The malicious peer sends the beginning of a request, and then nothing.
    HalfOpen,
    /// The malicious peer names another host, or another origin.
    ForeignHost,
    /// The malicious peer sends many requests at once, and reads nothing.
    Unread,
}

impl Fault {
    /// All of them.
    pub const ALL: [Self; 34] = [
        Self::Cut,
        Self::Delay,
        Self::StallUp,
        Self::SlowReader,
        Self::EndUp,
        Self::EndDown,
        Self::ResetUp,
        Self::ResetDown,
        Self::Refused,
        Self::Hang,
        Self::DeadAtWrite,
        Self::DeadIdle,
        Self::Crash,
        Self::Restart,
        Self::Unauthorized,
        Self::Forbidden,
        Self::AdmitLate,
        Self::CloseStream,
        Self::SlowHandler,
        Self::Cancel,
        Self::Vanish,
        Self::Asleep,
        Self::StolenSession,
        Self::StolenCursor,
        Self::StolenEnd,
        Self::ForeignCursor,
        Self::ForeignCancel,
        Self::ForeignAnswer,
        Self::GuessedSession,
        Self::GuessedCursor,
        Self::Garbage,
        Self::HalfOpen,
        Self::ForeignHost,
        Self::Unread,
    ];
}

/// The random choices of a run with both engines.
pub type Chaos = super::super::chaos::Chaos<Fault>;
