//! The faults of all worlds, and their random choice.

use super::rng::Rng;
use std::collections::{BTreeMap, BTreeSet};

/// Defines [`Fault`]: each fault with the names of the worlds that inject it.
macro_rules! faults {
    ($($(#[$doc:meta])+ $fault:ident: $($world:ident)+,)+) => {
        /// A fault that a run injects: of the network, of messages, of a server and its
        /// application, of clients, and of a malicious peer.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        pub enum Fault {
            $($(#[$doc])+ $fault,)+
        }

        impl Fault {
            /// Returns the faults of the runs of this world.
            pub fn menu(world: &str) -> Vec<Self> {
                let all = [$((Self::$fault, &[$(stringify!($world)),+][..])),+];
                all.into_iter().filter(|(_, worlds)| worlds.contains(&world)).map(|(fault, _)| fault).collect()
            }
        }
    };
}

faults! {
    /// Bytes arrive in pieces.
    Cut: duplex web both secured sse web_socket,
    /// Bytes arrive later.
    Delay: duplex web both secured sse web_socket,
    /// A direction stalls for a while, and its writer with it.
    Stall: duplex web,
    /// The direction to the server stalls for a while.
    StallUp: both secured sse web_socket,
    /// A client reads nothing for a while.
    SlowReader: both secured sse web_socket,
    /// One side sees the end of the other's stream, also within a message.
    HalfClose: duplex web,
    /// The server sees the end of a client's output, and the client continues to read.
    EndUp: both secured,
    /// A client sees the end of the server's output within a response.
    EndDown: both secured sse web_socket,
    /// A connection is lost, at any byte.
    Reset: duplex web,
    /// A connection is lost, at any byte of a client's output.
    ResetUp: both secured sse web_socket,
    /// A connection is lost, at any byte of the server's output.
    ResetDown: both secured sse web_socket,
    /// The connection is refused, or the attempt gets no response.
    Connect: duplex,
    /// The connection is refused.
    Refused: web both secured sse web_socket,
    /// The name has no address.
    Unresolved: web,
    /// There is no way to it.
    Unreachable: web,
    /// The attempt to connect gets no response.
    Hang: web both secured sse web_socket,
    /// A pooled connection ends while it is idle.
    DeadIdle: web both secured,
    /// A pooled connection is found dead when a request is written to it.
    DeadAtWrite: web both secured,
    /// A line that is no message, or bytes of the malicious peer that are no request.
    Garbage: duplex both secured,
    /// A message is lost.
    Drop: duplex,
    /// A message arrives twice.
    Duplicate: duplex,
    /// The id of a response comes back as a string.
    TextId: duplex,
    /// A message is cut short, and the link ends.
    Truncate: duplex,
    /// The program exits.
    Exit: duplex,
    /// 500, 502, 503 or 504; the request may have run.
    Status5xx: web,
    /// 429, sometimes with `Retry-After`.
    Status429: web,
    /// 408.
    Status408: web,
    /// 4xx that will not pass.
    Refusal: web,
    /// Every session is gone: 404 from here on.
    SessionLost: web,
    /// 401: the credentials of a client are no longer good.
    Unauthorized: web both secured,
    /// A redirect: within the origin, to another one, or back to where the request was.
    Redirect: web,
    /// Success, with a body of another type.
    WrongType: web,
    /// 202 for a request.
    Accepted: web,
    /// Success, with nothing.
    Empty: web,
    /// An event stream without an event.
    EmptyStream: web,
    /// A body that is shorter than its length.
    Truncated: web,
    /// Chunks that are none.
    ChunkGarbage: web,
    /// The response comes after every timeout.
    Slow: web,
    /// A stream that names ids and closes, again and again, and holds no answer.
    IdsOnly: web,
    /// A stream of comments.
    CommentsOnly: web,
    /// `retry: 0`.
    RetryZero: web,
    /// `retry: 99999999999`.
    RetryHuge: web,
    /// An event that is no JSON.
    BadEvent: web,
    /// An event of another type.
    ControlEvent: web,
    /// A response without a request.
    ForeignId: web,
    /// The answer twice.
    Twice: web,
    /// `-32020` (2026-07-28).
    HeaderMismatch: web,
    /// `-32021` (2026-07-28).
    MissingCapability: web,
    /// The server dies without a message, and another one starts at its address.
    Crash: both secured sse web_socket,
    /// The server shuts down, and another one starts at its address.
    Restart: both secured,
    /// The credentials of a client do not suffice.
    Forbidden: both secured,
    /// The application takes longer to admit a request than it may.
    AdmitLate: both secured,
    /// The application closes the stream of a request for now, and the client has to resume it.
    CloseStream: both secured,
    /// The application takes longer than any timeout.
    SlowHandler: both secured sse web_socket,
    /// A client cancels a call.
    Cancel: both secured sse web_socket,
    /// A client is gone without a word: nothing of it moves any more.
    Vanish: both secured,
    /// A client is asleep for longer than its session lasts.
    Asleep: both secured sse web_socket,
    /// Another principal speaks in the session of a client.
    StolenSession: both secured,
    /// Another principal asks for the rest of a stream of a client, in the session of that client.
    StolenCursor: both secured,
    /// Another principal ends the session of a client.
    StolenEnd: both secured,
    /// A client requests, in its own session, the events after one of another session.
    ForeignCursor: both secured,
    /// A client cancels, in its own session, the request of another one.
    ForeignCancel: both secured,
    /// A client answers, in its own session, the question that another one was asked.
    ForeignAnswer: both secured,
    /// The malicious peer tries a session id.
    GuessedSession: both secured,
    /// The malicious peer tries an event id of its own session that does not exist.
    GuessedCursor: both secured,
    /// The malicious peer sends the beginning of a request, and then nothing.
    HalfOpen: both secured,
    /// The malicious peer names another host, or another origin.
    ForeignHost: both secured,
    /// The malicious peer sends many requests at once, and reads nothing.
    Unread: both secured,
    /// HTTP+SSE: the endpoint is named once more, perhaps in other words.
    SameEndpoint: sse,
    /// HTTP+SSE: the endpoint moves, and the session stays.
    OtherEndpoint: sse,
    /// HTTP+SSE: an endpoint at another origin.
    ForeignEndpoint: sse,
    /// HTTP+SSE: an endpoint that is no reference.
    BadEndpoint: sse,
    /// WebSocket: a message comes in several frames.
    Reframe: web_socket,
    /// WebSocket: a ping or a pong comes between two frames.
    ControlFrame: web_socket,
    /// WebSocket: a close comes between two messages.
    CloseFrame: web_socket,
    /// WebSocket: a frame that breaks a rule.
    BadFrame: web_socket,
    /// TLS: a byte arrives as another one.
    Corrupt: secured,
    /// TLS: one direction stalls for ever, from the beginning of the handshake.
    HandshakeStall: secured,
    /// Forward proxy: it refuses a tunnel, with a status and fields that could be the server's.
    TunnelRefused: secured,
    /// Forward proxy: it demands credentials for a tunnel.
    TunnelUnauthorized: secured,
    /// Forward proxy: it answers the request for a tunnel with something that is no HTTP.
    TunnelGarbage: secured,
    /// Forward proxy: it never answers the request for a tunnel.
    TunnelSilent: secured,
    /// Forward proxy: it ends within its answer to the request for a tunnel.
    TunnelCut: secured,
    /// Forward proxy: bytes follow the answer that opens the tunnel.
    TunnelTail: secured,
    /// Forward proxy: it answers a request in absolute form with a page of its own.
    ProxyPage: secured,
    /// Forward proxy: it demands credentials for a request in absolute form.
    ProxyUnauthorized: secured,
    /// A request is lost, or its response.
    Lost: login,
    /// A response comes after every timeout.
    Late: login,
    /// The authorization server answers with 500, 502, 503 or 504.
    IssuerDown: login,
    /// The authorization server answers with 429.
    IssuerBusy: login,
    /// The authorization server answers with an error at 200.
    ErrorAtSuccess: login,
    /// The metadata of the resource is not JSON, or for another server.
    ResourceDocument: login,
    /// The metadata of the issuer is not JSON, or names another issuer.
    IssuerDocument: login,
    /// A document redirects to itself.
    DocumentLoop: login,
    /// The authorization server revokes a login.
    GrantDead: login,
    /// The authorization server forgets a client.
    ClientForgotten: login,
    /// Access tokens end before their time.
    TokenRevoked: login,
    /// The server has another authorization server.
    IssuerMoved: login,
    /// A call demands a scope that it did not demand before.
    ScopeDemanded: login,
    /// The user declines.
    UserDeclines: login,
    /// The user refuses at the page.
    UserRefuses: login,
    /// The redirect arrives twice.
    PastedTwice: login,
    /// The user answers when the page has ended.
    AnsweredLate: login,
    /// A redirect of another login arrives first.
    WrongState: login,
    /// The redirect names another issuer.
    WrongIssuer: login,
    /// There is no listener.
    NoListener: login,
    /// The store fails.
    StoreFails: login,
    /// The store answers late.
    StoreStalls: login,
    /// A process dies, and another one takes its place.
    ProcessDies: login,
    /// The user never enters the code.
    CodeForgotten: login,
    /// The authorization server wants to be asked less often.
    SlowDown: login,
    /// The authorization server refuses a grant without a user.
    GrantRefused: login,
    /// There is no assertion.
    AssertionFails: login,
    /// An assertion comes after every timeout.
    AssertionStalls: login,
    /// No key can be made.
    KeyFails: login,
    /// The signer fails.
    SignerFails: login,
    /// The signer answers late.
    SignerStalls: login,
    /// The servers accept no nonce that they issued before.
    NonceChanged: login,
    /// The server refuses a proof that is good.
    ProofRefused: login,
    /// The authorization server issues a bearer token where a bound one was asked for.
    TokenUnbound: login,
    /// A request to the store is lost.
    RequestLost: nodes,
    /// A request to the store arrives twice.
    RequestDoubled: nodes,
    /// A reply of the store is lost.
    ReplyLost: nodes,
    /// A reply of the store comes after its timeout.
    ReplySlow: nodes,
    /// The store cannot be reached for a while.
    StoreAway: nodes,
    /// The store is again what it was two seconds before.
    StoreBack: nodes,
    /// The store has lost everything.
    StoreEmptied: nodes,
    /// A server is killed, and another one starts later.
    NodeKilled: nodes,
    /// A server sleeps for a while, perhaps longer than its lease.
    NodeAsleep: nodes,
    /// Another server starts.
    NodeJoins: nodes,
    /// The connection of a client is lost.
    ConnectionCut: nodes,
}

/// Chooses faults at random, and counts them.
#[derive(Clone, Debug)]
pub struct Chaos {
    /// The generator of the choices.
    pub rng: Rng,
    /// How many of a thousand chances are taken; zero for a clean run.
    pub rate: u64,
    /// The unit of a chance, in hundred-thousandths: a chance is rounded down to a multiple of it.
    pub grain: u64,
    /// Steps that counted.
    pub steps: u64,
    /// Faults injected.
    pub faults: BTreeMap<Fault, u64>,
    /// The number of random faults.
    pub drawn: u64,
    /// Which of these are left out.
    pub skip: BTreeSet<u64>,
    /// A fault that happens some times as often as the others.
    pub favourite: Option<Fault>,
}

/// How many times as often the favourite fault happens, and the most it happens, in percent.
const BIAS: u64 = 6;
const MOST: u64 = 75;

impl Chaos {
    /// A generator that takes this number of a thousand chances.
    pub const fn new(rng: Rng, rate: u64) -> Self {
        Self {
            rng,
            rate,
            grain: 1,
            steps: 0,
            faults: BTreeMap::new(),
            drawn: 0,
            skip: BTreeSet::new(),
            favourite: None,
        }
    }

    /// Returns whether this fault happens here. `scale` is its chance in percent of the usual one.
    pub fn hit(&mut self, fault: Fault, scale: u64) -> bool {
        let hit = self.draw(self.biased(fault, scale));
        if hit {
            self.count(fault);
        }
        hit
    }

    /// Returns which of these faults happens here, if any does.
    pub fn pick(&mut self, faults: &[Fault], scale: u64) -> Option<Fault> {
        if let Some(fault) = self.favourite.filter(|fault| faults.contains(fault))
            && self.hit(fault, scale)
        {
            return Some(fault);
        }
        let hit = self.draw(scale);
        let fault = *faults.get(self.rng.below(faults.len() as u64) as usize).filter(|_| hit)?;
        self.count(fault);
        Some(fault)
    }

    /// Returns the chance of a fault in percent of the usual one.
    fn biased(&self, fault: Fault, scale: u64) -> u64 {
        match self.favourite == Some(fault) && self.rate > 0 {
            true => (scale * BIAS).min(MOST * 1000 / self.rate),
            false => scale,
        }
    }

    fn draw(&mut self, scale: u64) -> bool {
        let chance = self.rate * scale / self.grain;
        let hit = chance > 0 && self.rng.below(100_000 / self.grain) < chance;
        if hit {
            self.drawn += 1;
        }
        hit && !self.skip.contains(&(self.drawn - 1))
    }

    /// Counts a fault that happens.
    pub fn count(&mut self, fault: Fault) {
        self.steps += 1;
        *self.faults.entry(fault).or_default() += 1;
    }
}
