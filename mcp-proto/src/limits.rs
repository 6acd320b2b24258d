//! Every bound of the engine, its default, and why that number. Each field says what happens when it is reached.
//!
//! They are set in [`ServerConfig::limits`](crate::ServerConfig::limits), with [`Router::configure`](crate::Router::configure), and in
//! [`ClientConfig::limits`](crate::ClientConfig::limits), with the `Config::set` of an adapter.

use core::time::Duration;

/// All bounds, grouped by who keeps them.
#[derive(Clone, PartialEq, Debug, Default)]
#[non_exhaustive]
pub struct Limits {
    /// Bounds of the client engine.
    pub client: ClientLimits,
    /// Bounds of the server engine.
    pub server: ServerLimits,
    /// Bounds of the codecs and connections, in both roles.
    pub frame: FrameLimits,
}

impl Limits {
    /// How long the end of a client takes at most, whatever its server does: the ladder that ends a program, the rest of a socket, the end of a
    /// session. What a driver then still waits for has failed.
    pub fn end_time(&self) -> Duration {
        let ladder = self.frame.exit_timeout.saturating_add(self.frame.terminate_timeout);
        // First for notifications, then for the session.
        let session = self.client.session_end_time.saturating_mul(2);
        ladder.max(self.frame.linger_timeout.saturating_add(session))
    }
}

/// Bounds of the client engine.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct ClientLimits {
    /// Calls that have not ended, and notifications whose end is awaited. A further one is refused with [`Refusal::Full`](crate::Refusal::Full), and so is a
    /// notification over HTTP while as many exchanges are open; of as many answers to the server that it has not taken over HTTP a further
    /// one is dropped, which is a diagnostic. Default 1024: the ids, timers and buffers of that many cost well under a
    /// megabyte.
    pub max_calls: usize,
    /// Bytes handed to one exchange and not yet written. A call beyond it is refused with [`Refusal::Full`](crate::Refusal::Full);
    /// answers to the server and cancellations always pass. Default 16 MiB, one message of the largest size.
    pub max_unsent: usize,
    /// Questions of the server that have not been answered. A further one is answered with an error (a call of the modern era fails).
    /// Default 64.
    pub max_inputs: usize,
    /// Rounds of one multi round-trip request. The result of the last round is returned; a further question fails the call. Default 10.
    pub max_rounds: u32,
    /// Ids of ended calls that are remembered, so that a late answer is told from a stray one. The oldest is forgotten. Default 1024.
    pub max_retired: usize,
    /// Notifications and diagnostics that wait for the application. A further one is counted into one
    /// [`Event::Lost`](crate::client::Event::Lost). Events of calls are not counted and never dropped. Default 1024.
    pub max_queued_events: usize,
    /// Bytes that these notifications and diagnostics hold. One beyond is counted in the same way, and so is every notification that is
    /// larger. Default 16 MiB.
    pub max_queued_event_bytes: usize,
    /// How long calls wait for the exit status of a program that has closed its output, before they end without it. Default 500 ms.
    pub exit_grace: Duration,
    /// How long the rest of an HTTP answer is read after the response in it has come, so that late notifications still arrive. Then the
    /// exchange is aborted. Default 5 s.
    pub drain_time: Duration,
    /// How many items of an HTTP answer are read after the response in it. Default 64.
    pub drain_items: usize,
    /// How many bytes of it. Default 64 KiB.
    pub drain_bytes: usize,
    /// Maximum time for accepted notifications over HTTP after the client is closed, and then again for the DELETE of the session. The client
    /// aborts requests that take longer; for a notification it emits a diagnostic. Default 2 s.
    pub session_end_time: Duration,
    /// Pages that [`Pages`](crate::Pages) fetches before it ends with an error, and so does the list of tools that the engine fetches for
    /// itself. Default 1000.
    pub max_pages: usize,
    /// Tools of an HTTP server of which it is remembered that they may run twice or want arguments in the header; one with long names counts
    /// as several, one for each KiB. Beyond it the tool that was listed longest ago is forgotten: calls of it go without the header fields,
    /// which a server refuses if it insists, and are not repeated. Default 4096, a few megabytes at most.
    pub max_tools: usize,
}

/// Bounds of the server engine.
///
/// # What one client can cost the others
///
/// The server takes requests from clients that it does not trust, and no cheap request of one client costs the others their service. Where a
/// bound is shared by all clients, one client takes at most its share ([`client_shares`](Self::client_shares): a quarter).
///
/// One client is one [`Principal`](crate::input::Principal), if the application admits requests and names it. Without a principal it is one
/// address of the peer ([`Peer::address`](crate::exchange::Peer::address)), of IPv6 one network of 64 bits. Where an address says nothing of
/// the client (loopback, a Unix socket, [`ServerConfig::proxies`](crate::server::ServerConfig::proxies)), it is one session of the older
/// revisions, and without a session one connection: behind a proxy no client costs the others the server, and none has more than its own
/// share. But whoever can open any number of connections through a proxy is any number of clients: a server behind a proxy needs principals.
///
/// | bound | one client takes at most | the others |
/// |---|---|---|
/// | [`max_running_requests`](Self::max_running_requests) | a share; of one connection, session or batch [`max_running_per_exchange`](Self::max_running_per_exchange) | have the rest |
/// | [`max_running_bytes`](Self::max_running_bytes) | a share, with its subscriptions and its answers to questions | have the rest |
/// | [`max_exchanges`](Self::max_exchanges), connections | a share of the connections of its address | have the rest |
/// | [`max_exchanges`](Self::max_exchanges), exchanges | a share | have the rest |
/// | [`max_streams`](Self::max_streams) | a share, by GET and `subscriptions/listen` together | have the rest |
/// | [`max_sessions`](Self::max_sessions) | a share; one without a second message ends after [`session_start`](Self::session_start) | have the rest |
/// | [`max_client_data_total`](Self::max_client_data_total) | a share | have the rest, and all of `history_total` |
/// | [`history_total`](Self::history_total) | a share; beyond it its own longest histories are shortened | lose nothing before it |
/// | [`max_held`](Self::max_held) | all of it | send requests of up to 64 KiB |
/// | questions of requests whose client is away | a share, for [`away_timeout`](Self::away_timeout) | take these places when they need them |
/// | [`max_unsent`](Self::max_unsent), [`max_backlog`](Self::max_backlog) | what is bounded for its own exchange | notice nothing |
/// | [`max_state_params`](Self::max_state_params) | the time to verify so many bytes for each request | wait for that time at most |
/// | [`max_queued_events`](Self::max_queued_events) | all of it, with notifications and diagnostics | may have theirs counted instead of told |
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct ServerLimits {
    /// Into how many shares the bounds that all clients share are divided: `max_running_requests`, `max_running_bytes`, `max_exchanges`,
    /// `max_streams`, `max_sessions`, `max_client_data_total` and `history_total`. One client can take one share of each, at least 1. What it
    /// asks for beyond its share is refused as beyond the bound itself; of histories, its own are shortened. 1: one client can take all.
    /// Default 4. [`ServerLimits`](Self) says who is one client.
    pub client_shares: usize,
    /// Requests that run at once, over all exchanges. A further one is answered "busy" (`-32603`) at once; answers, cancellations and
    /// pings pass. Default 1024.
    pub max_running_requests: usize,
    /// Maximum memory of all running requests and subscriptions together, in bytes: ids, methods, params as text and parsed, heads of HTTP requests, the responses
    /// of older clients to questions, and the tables of the engine. It is an estimate, never below the real size and at most twice as much.
    /// Allocations of handlers do not count. A request that would exceed it is answered "busy"; a client's response that would exceed it
    /// counts as an error. Default 256 MiB.
    pub max_running_bytes: usize,
    /// Requests that run at once on one duplex exchange or in one session over HTTP, with the same answer. Default 256, so that one client
    /// cannot take all.
    pub max_running_per_exchange: usize,
    /// Exchanges that are open at once, and connections. A further exchange is aborted, over HTTP answered 503; a further connection is told
    /// the same where there are words for it, and closed. Of exchanges that were answered before their request body was read, as many are
    /// remembered until the body ends; what comes of one that was forgotten is a diagnostic. Default 4096.
    pub max_exchanges: usize,
    /// Bytes handed to one exchange and not yet written. A notification beyond it is refused with
    /// [`Refusal::Full`](crate::Refusal::Full), progress is kept to the newest of its token, and further requests are answered "busy"
    /// (`-32603`); answers to those that run pass on top. A client that goes on asking for such answers is cut off. Default 1 MiB.
    pub max_unsent: usize,
    /// Bytes handed to one exchange and not yet written beyond which a further request on it is answered "busy": answers are never refused,
    /// so what leads to them is. Default 32 MiB, room for some large answers at once.
    pub max_backlog: usize,
    /// Bytes of HTTP requests that are being read, heads and bodies, that all connections of a server may hold together; what has come whole
    /// does not count. A request for which there is no room left is answered 503 and its connection closed, but one that holds no more than
    /// 64 KiB is always read on; what waits behind an answer, or for its admission, is not read on. A [`Connection`](crate::wired::Connection) that was
    /// not made by a [`SharedServer`](crate::wired::SharedServer) or a [`WiredServer`](crate::wired::WiredServer) has no part in it. Default 256 MiB.
    pub max_held: usize,
    /// How long an exchange may accept no byte while some wait. Then that exchange ends, and only it. Default 30 s.
    pub write_stall: Duration,
    /// How long requests may run on after their client has closed its side of a duplex exchange. Then they are cancelled. Default 1 s,
    /// which lies within the time that a client gives a program to exit.
    pub end_grace: Duration,
    /// Nested questions that one request may have open. A handler that asks more at once gets an error answer. Default 16.
    pub max_questions: usize,
    /// Rounds in which one request may ask. Then it is answered with an error. Default 10.
    pub max_rounds: u32,
    /// How long an older client may take to answer the questions of one round. Then they are cancelled and the request is answered with
    /// an error. Default 5 min: a person answers.
    pub ask_timeout: Duration,
    /// Maximum time for the answers of an older client over HTTP that is away: no exchange carries the stream of the request that asks, nor
    /// the stream that its session opens with GET. When the client comes back, `ask_timeout` holds again. Where there is no room for a
    /// further request, one that asks a client that is away is answered with an error at once. Default 30 s.
    pub away_timeout: Duration,
    /// How long a sealed `requestState` is accepted. Default 10 min.
    pub state_lifetime: Duration,
    /// Bytes of a `requestState` as sealed. A larger one is refused in both directions. Default 64 KiB.
    pub max_state: usize,
    /// Bytes of the params of a request with a `requestState`, and of one that asks, which are verified together with the state; `_meta`, the
    /// state itself and the answers do not count. Larger params beside a state are answered `-32602`, and a request with larger params that
    /// asks `-32603`. Default 256 KiB: they are verified in some milliseconds.
    pub max_state_params: usize,
    /// How long a duplex exchange may stay without a first request. Then it is aborted. Default `None`: a parent may start a server
    /// long before it needs it.
    pub handshake_timeout: Option<Duration>,
    /// Bytes that are kept of what an older client says of itself in `initialize`. A `clientInfo` that is larger is ignored, as one that is
    /// malformed; with capabilities that are larger `initialize` is answered `-32602`. Default 16 KiB.
    pub max_client_data: usize,
    /// Maximum memory of what all older clients say of themselves in `initialize`, in bytes as estimated once it is read. A further
    /// `initialize` is answered "busy" (`-32603`), over HTTP with 503. Default 64 MiB.
    pub max_client_data_total: usize,
    /// Sessions that are open at once. A further `initialize` over HTTP is answered 503. Default 10,000.
    pub max_sessions: usize,
    /// How long a session may be without a request, and without an open stream, before it ends. Default 30 min.
    pub session_idle: Duration,
    /// How often sessions that have been idle for too long are looked for; one that is asked for is looked at in any case. Default 5 min.
    pub session_sweep: Duration,
    /// How long a session may be without the first message after its `initialize`. Then it ends like an idle one. Default 1 min.
    pub session_start: Duration,
    /// Streams that are open at once without a request that would end them: those of GET, and those of `subscriptions/listen`. A further
    /// one is refused. Default 2048.
    pub max_streams: usize,
    /// Subscriptions of one duplex exchange. A further one is refused. A session over HTTP has one stream of its own, of which the newest
    /// counts. Default 16.
    pub max_streams_per_client: usize,
    /// Events that a session keeps for its client to come back for. The oldest goes first. Default 1000.
    pub history_events: usize,
    /// Bytes of the events that a session keeps. The oldest goes first. Default 10 MiB.
    pub history_bytes: usize,
    /// Bytes of the events that all sessions keep together. Beyond it the client that keeps most loses the oldest events of its longest
    /// histories. Default 256 MiB.
    pub history_total: usize,
    /// How long the events of a stream are kept after its end was written. Default 60 s.
    pub history_keep: Duration,
    /// How long the application may take to admit an HTTP request or a connection. Then the request is answered 503, and the connection is
    /// closed. Default 10 s.
    pub admit_timeout: Duration,
    /// How long a handler may take. Then the request is answered `-32603` and the handler's answer is dropped. Default `None`.
    pub handler_deadline: Option<Duration>,
    /// Tools in one page of `tools/list`. Default 100.
    pub page_size: usize,
    /// Notifications and diagnostics that wait for the application, as on the client. Default 1024.
    pub max_queued_events: usize,
    /// Bytes that they hold, as on the client. Default 16 MiB.
    pub max_queued_event_bytes: usize,
}

impl ServerLimits {
    /// What one client may take of a bound that all clients share ([`client_shares`](Self::client_shares)): at least 1, unless the bound is 0.
    pub fn share(&self, bound: usize) -> usize {
        (bound / self.client_shares.max(1)).max(bound.min(1))
    }
}

/// Bounds of the codecs and connections.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct FrameLimits {
    /// Bytes of one line, its newline not counted. A longer one is one [`InvalidMessage`](crate::rpc::InvalidMessage), its rest is skipped unheld.
    /// Default 16 MiB.
    pub max_line: usize,
    /// Bytes of one server-sent event: the values of its fields. Comments and fields that mean nothing are not held and do not count. A
    /// larger one fails its exchange. Default 16 MiB.
    pub max_event: usize,
    /// Nesting of arrays and objects in one message; at most 128, which is also the default. A deeper message is one defect.
    pub max_depth: u32,
    /// Elements of one batch. A longer one is one defect. Default 1000.
    pub max_batch: usize,
    /// Maximum size of a string id and of a string progress token of the peer, in bytes of UTF-8. The engine answers a request with a longer
    /// id with `-32600` and that id, over HTTP with status 400, and does not keep the id. It ignores a longer progress token, and drops a
    /// cancellation that names a longer id. It is also the maximum size of the id of a server-sent event: a client does not resume a stream
    /// from an event with a longer one. Default 1 KiB.
    pub max_id: usize,
    /// Bytes of one HTTP head. A larger one is rejected with 431 by a server, and fails the exchange of a client; so do interim responses
    /// that are larger together. Default 64 KiB.
    pub max_head: usize,
    /// Fields of one HTTP head; same outcome. Default 100.
    pub max_headers: usize,
    /// Bytes of the target of an HTTP request. A longer one is rejected with 414 by a server, and so is a first line that does not end within
    /// them. Default 8 KiB: RFC 9110 section 4.1 asks for 8000 at least.
    pub max_target: usize,
    /// Bytes of a request body that a server accepts; more is rejected with 413. Default 4 MiB.
    pub max_request_body: usize,
    /// Bytes of a response body that a client accepts; more fails the exchange. Default 16 MiB.
    pub max_response_body: usize,
    /// Bytes read and not yet turned into facts that a connection holds before it stops reading. Default 1 MiB.
    pub max_read_ahead: usize,
    /// Maximum time to open one channel. After that the channel is closed, and its exchange fails with
    /// [`Closed::Timeout`](crate::exchange::Closed::Timeout). [`ClientConfig::connect_timeout`](crate::ClientConfig::connect_timeout) bounds
    /// the whole start of a client. Default 10 s.
    pub open_timeout: Duration,
    /// How long an HTTP request head may take from its first byte, and the first head from the accept. A head of which a byte came is then
    /// rejected with 408; without one the connection is closed. Default 10 s.
    pub head_timeout: Duration,
    /// How long a body may stand still: content counts, and the framing of chunks does not. That of a request to a server is then rejected with 408, and the time is shorter by what it lags
    /// behind `min_rate`; that of a response to a client fails its exchange with [`Closed::Timeout`](crate::exchange::Closed::Timeout),
    /// unless it is an event stream, which may rest. Default 30 s.
    pub body_timeout: Duration,
    /// How long the other side may take nothing of an HTTP request that we write. Then its exchange fails with
    /// [`Closed::Timeout`](crate::exchange::Closed::Timeout). On a server the same for an answer once all of it is said, and the time is
    /// shorter by what it lags behind `min_rate`; while it is being said, [`ServerLimits::write_stall`] rules. Default 30 s.
    pub write_stall: Duration,
    /// Bytes per second at which a client at least sends the body of a request, and takes an answer of which all is said. A slower one
    /// falls behind, a faster one catches up and gains nothing beyond; who has fallen behind by `body_timeout` or `write_stall` has the
    /// same outcome as one that stands still. So no trickle holds a connection, however fast it began. The framing of chunks does not
    /// count. Zero: there is no minimum. Default 1 KiB.
    pub min_rate: usize,
    /// How long a server may take to begin its answer, from the last byte of the HTTP request to the end of the head of the response. Then
    /// the exchange fails with [`Closed::Timeout`](crate::exchange::Closed::Timeout). Default `None`: the timeout of a call rules, and a
    /// server may answer with the head only when the work is done.
    pub response_timeout: Option<Duration>,
    /// How long a connection without an exchange is kept. Default 60 s.
    pub idle_timeout: Duration,
    /// How long a server reads on after it refused a body, so that the client sees the answer and no reset. Default 2 s.
    pub linger_timeout: Duration,
    /// How long a program may take to exit after its input was closed, before it is terminated. Default 2 s.
    pub exit_timeout: Duration,
    /// How long a program may take to exit after it was told to terminate, before it is killed. Default 2 s.
    pub terminate_timeout: Duration,
    /// Maximum number of connections to one origin, not counting those with an open event stream. A further request waits for one of them while
    /// the timeout of its call runs. [`ClientStats::waiting`](crate::stats::ClientStats::waiting) counts it, and the timeout error names this
    /// wait ([`Awaited::Connection`](crate::error::Awaited::Connection)). Responses to requests of the server, `notifications/cancelled` and
    /// the DELETE of a session do not wait, up to twice this number. Default 64: the concurrent calls of a busy host, and a small part of the
    /// file descriptors of a process.
    pub max_connections_per_origin: usize,
    /// Maximum number of idle connections to one origin; the most recently used ones are kept. A further one is closed after one second, unless
    /// a request uses it before. Default 8: sequential calls need one, and a burst of calls leaves few open.
    pub max_idle_per_origin: usize,
    /// Connections to one origin that are not counted because an event stream is open on them, so that no request waits behind a stream.
    /// One beyond it counts as any other. Default 256: more than that would take the file descriptors that a process usually has.
    pub max_streams_per_origin: usize,
}

impl Default for ClientLimits {
    fn default() -> Self {
        Self {
            max_calls: 1024,
            max_unsent: 16 << 20,
            max_inputs: 64,
            max_rounds: 10,
            max_retired: 1024,
            max_queued_events: 1024,
            max_queued_event_bytes: 16 << 20,
            exit_grace: Duration::from_millis(500),
            drain_time: Duration::from_secs(5),
            drain_items: 64,
            drain_bytes: 64 << 10,
            session_end_time: Duration::from_secs(2),
            max_pages: 1000,
            max_tools: 4096,
        }
    }
}

impl Default for ServerLimits {
    fn default() -> Self {
        Self {
            client_shares: 4,
            max_running_requests: 1024,
            max_running_bytes: 256 << 20,
            max_running_per_exchange: 256,
            max_exchanges: 4096,
            max_unsent: 1 << 20,
            max_backlog: 32 << 20,
            max_held: 256 << 20,
            write_stall: Duration::from_secs(30),
            end_grace: Duration::from_secs(1),
            max_questions: 16,
            max_rounds: 10,
            ask_timeout: Duration::from_secs(300),
            away_timeout: Duration::from_secs(30),
            state_lifetime: Duration::from_secs(600),
            max_state: 64 << 10,
            max_state_params: 256 << 10,
            handshake_timeout: None,
            max_client_data: 16 << 10,
            max_client_data_total: 64 << 20,
            max_sessions: 10_000,
            session_idle: Duration::from_secs(30 * 60),
            session_sweep: Duration::from_secs(5 * 60),
            session_start: Duration::from_secs(60),
            max_streams: 2048,
            max_streams_per_client: 16,
            history_events: 1000,
            history_bytes: 10 << 20,
            history_total: 256 << 20,
            history_keep: Duration::from_secs(60),
            admit_timeout: Duration::from_secs(10),
            handler_deadline: None,
            page_size: 100,
            max_queued_events: 1024,
            max_queued_event_bytes: 16 << 20,
        }
    }
}

impl Default for FrameLimits {
    fn default() -> Self {
        Self {
            max_line: 16 << 20,
            max_event: 16 << 20,
            max_depth: 128,
            max_batch: 1000,
            max_id: 1 << 10,
            max_head: 64 << 10,
            max_headers: 100,
            max_target: 8 << 10,
            max_request_body: 4 << 20,
            max_response_body: 16 << 20,
            max_read_ahead: 1 << 20,
            open_timeout: Duration::from_secs(10),
            head_timeout: Duration::from_secs(10),
            body_timeout: Duration::from_secs(30),
            write_stall: Duration::from_secs(30),
            min_rate: 1 << 10,
            response_timeout: None,
            idle_timeout: Duration::from_secs(60),
            linger_timeout: Duration::from_secs(2),
            exit_timeout: Duration::from_secs(2),
            terminate_timeout: Duration::from_secs(2),
            max_connections_per_origin: 64,
            max_idle_per_origin: 8,
            max_streams_per_origin: 256,
        }
    }
}
