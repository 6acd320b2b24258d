//! The faults of a run over HTTP, and their random choice.

/// A fault that a run injects: first those of the network, then those of the server.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Fault {
    /// Bytes arrive in pieces.
    Cut,
    /// Bytes arrive later.
    Delay,
    /// A direction stalls for a while, and its writer with it.
    Stall,
    /// The server's side of a connection ends in the middle.
    HalfClose,
    /// A connection is gone, at any byte.
    Reset,
    /// The connection is refused.
    Refused,
    /// The name has no address.
    Unresolved,
    /// There is no way to it.
    Unreachable,
    /// The attempt to connect gets no response.
    Hang,
    /// A pooled connection ends while it is idle.
    DeadIdle,
    /// A pooled connection is found dead when a request is written to it.
    DeadAtWrite,
    /// 500, 502, 503 or 504; the request may have run.
    Status5xx,
    /// 429, sometimes with `Retry-After`.
    Status429,
    /// 408.
    Status408,
    /// 4xx that will not pass.
    Refusal,
    /// Every session is gone: 404 from here on.
    SessionLost,
    /// 401 until another token is shown.
    Unauthorized,
    /// A redirect to another origin.
    Redirect,
    /// Success, with a body of another type.
    WrongType,
    /// 202 for a request.
    Accepted,
    /// Success, with nothing.
    Empty,
    /// An event stream without an event.
    EmptyStream,
    /// A body that is shorter than its length.
    Truncated,
    /// Chunks that are none.
    ChunkGarbage,
    /// The response comes after every timeout.
    Slow,
    /// A stream that names ids and closes, again and again, and holds no answer.
    IdsOnly,
    /// A stream of comments.
    CommentsOnly,
    /// `retry: 0`.
    RetryZero,
    /// `retry: 99999999999`.
    RetryHuge,
    /// An event that is no JSON.
    BadEvent,
    /// An event of another type.
    ControlEvent,
    /// A response without a request.
    ForeignId,
    /// The answer twice.
    Twice,
    /// `-32020` (2026-07-28).
    HeaderMismatch,
    /// `-32021` (2026-07-28).
    MissingCapability,
}

impl Fault {
    /// All of them.
    pub const ALL: [Self; 35] = [
        Self::Cut,
        Self::Delay,
        Self::Stall,
        Self::HalfClose,
        Self::Reset,
        Self::Refused,
        Self::Unresolved,
        Self::Unreachable,
        Self::Hang,
        Self::DeadIdle,
        Self::DeadAtWrite,
        Self::Status5xx,
        Self::Status429,
        Self::Status408,
        Self::Refusal,
        Self::SessionLost,
        Self::Unauthorized,
        Self::Redirect,
        Self::WrongType,
        Self::Accepted,
        Self::Empty,
        Self::EmptyStream,
        Self::Truncated,
        Self::ChunkGarbage,
        Self::Slow,
        Self::IdsOnly,
        Self::CommentsOnly,
        Self::RetryZero,
        Self::RetryHuge,
        Self::BadEvent,
        Self::ControlEvent,
        Self::ForeignId,
        Self::Twice,
        Self::HeaderMismatch,
        Self::MissingCapability,
    ];
}

/// The random choices of a run over HTTP against a model of a server.
pub type Chaos = super::super::chaos::Chaos<Fault>;
