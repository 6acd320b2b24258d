//! What goes wrong in a run with both engines.

/// A fault that a run injects: of the network, of the server and its application, of the clients, and of a peer that means harm.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Fault {
    /// Bytes arrive in pieces.
    Cut,
    /// Bytes arrive later.
    Delay,
    /// The way to the server stands still for a while.
    StallUp,
    /// A client reads nothing for a while.
    SlowReader,
    /// The server hears the end of what a client says, and the client hears on.
    EndUp,
    /// A client hears the end of what the server says, in the middle.
    EndDown,
    /// A connection is gone, at any byte of what a client says.
    ResetUp,
    /// A connection is gone, at any byte of what the server says.
    ResetDown,
    /// Nobody listens.
    Refused,
    /// Nobody answers the attempt to connect.
    Hang,
    /// A pooled connection is found dead when a request is written to it.
    DeadAtWrite,
    /// A pooled connection ends while it is idle.
    DeadIdle,
    /// The server is gone without a word, and another one comes up at its address.
    Crash,
    /// The server ends in order, and another one comes up at its address.
    Restart,
    /// The credentials of a client are no longer good.
    Unauthorized,
    /// The credentials of a client do not suffice.
    Forbidden,
    /// The application takes longer to admit a request than it may.
    AdmitLate,
    /// The application ends the stream of a request for now, and the client has to come back.
    CloseStream,
    /// The application takes longer than anyone waits.
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
    /// A client asks, in its own session, for what comes after an event of another one.
    ForeignCursor,
    /// A client cancels, in its own session, the request of another one.
    ForeignCancel,
    /// A client answers, in its own session, the question that another one was asked.
    ForeignAnswer,
    /// Somebody tries a session id.
    GuessedSession,
    /// Somebody tries an event id of his own session that was never given.
    GuessedCursor,
    /// Somebody says what is no HTTP, or half of it.
    Garbage,
    /// Somebody says the beginning of a request, and then nothing.
    HalfOpen,
    /// Somebody names another host, or comes from another origin.
    ForeignHost,
    /// Somebody asks much at once, and reads nothing.
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

/// The lots of a run with both engines.
pub type Chaos = super::super::chaos::Chaos<Fault>;
