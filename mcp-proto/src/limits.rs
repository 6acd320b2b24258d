//! Every limit of the engine, its default, and the reason for it. Each field states what happens at
//! the limit.
//!
//! An application sets them in [`ServerConfig::limits`](crate::ServerConfig::limits), with
//! [`Router::configure`](crate::Router::configure), and in
//! [`ClientConfig::limits`](crate::ClientConfig::limits), with the `Config::set` of an adapter.

use core::time::Duration;

/// All limits, grouped by what they apply to.
#[derive(Clone, PartialEq, Debug, Default)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "record", serde(default))]
#[non_exhaustive]
pub struct Limits {
    /// Limits of the client engine.
    pub client: ClientLimits,
    /// Limits of the server engine.
    pub server: ServerLimits,
    /// Limits of the codecs and connections, in both roles.
    pub frame: FrameLimits,
}

impl Limits {
    /// Returns the maximum time for the end of a client, whatever its server does: the steps that
    /// end a program, the rest of a socket, the end of a session. What a driver still waits for
    /// then has failed.
    pub fn end_time(&self) -> Duration {
        let ladder = self.frame.exit_timeout.saturating_add(self.frame.terminate_timeout);
        // First for notifications, then for the session.
        let session = self.client.session_end_time.saturating_mul(2);
        ladder.max(self.frame.linger_timeout.saturating_add(session))
    }
}

/// Limits of the client engine.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "record", serde(default))]
#[non_exhaustive]
pub struct ClientLimits {
    /// Maximum number of calls that have not ended, plus tracked notifications. The engine refuses
    /// a further one with [`Refusal::Full`](crate::Refusal::Full). The same number bounds the HTTP
    /// exchanges of notifications and those of responses to the server: a further notification is
    /// refused, a further response is dropped, with a diagnostic. Default 1024: the ids, timers and
    /// buffers of that many take well under a megabyte.
    pub max_calls: usize,
    /// Maximum number of bytes sent on one exchange that the driver has not written. The engine
    /// refuses a call beyond it with [`Refusal::Full`](crate::Refusal::Full). Responses to the
    /// server and cancellations always pass. Default 16 MiB, one message of the maximum size.
    pub max_unsent: usize,
    /// Maximum number of requests for input that the application has not answered. The engine
    /// answers a further one with an error; on 2026-07-28 the call fails. Default 64.
    pub max_inputs: usize,
    /// Maximum number of rounds of one multi round-trip request. A further request for input fails
    /// the call. Default 10.
    pub max_rounds: u32,
    /// Number of ended calls whose ids the engine remembers, to tell a late response from a stray
    /// one. It forgets the oldest. Default 1024.
    pub max_retired: usize,
    /// Maximum number of notifications and diagnostics that wait for the application. The engine
    /// drops a further one and counts it in one [`Event::Lost`](crate::client::Event::Lost). Events
    /// of calls do not count and are never dropped. Default 1024.
    pub max_queued_events: usize,
    /// Maximum memory of these notifications and diagnostics, in bytes. The engine drops and counts
    /// one beyond it, and every notification that alone is larger. Default 16 MiB.
    pub max_queued_event_bytes: usize,
    /// Maximum time that calls wait for the exit status of a program that has closed its output.
    /// Then they end without it. Default 500 ms.
    pub exit_grace: Duration,
    /// Maximum time to read the rest of an HTTP response after the JSON-RPC response in it, for
    /// late notifications. Then the engine aborts the exchange. Default 5 s.
    pub drain_time: Duration,
    /// Maximum number of parts in that rest. Default 64.
    pub drain_items: usize,
    /// Maximum number of bytes in that rest. Default 64 KiB.
    pub drain_bytes: usize,
    /// Maximum time for accepted notifications over HTTP after the client is closed, and again for
    /// the DELETE of the session. The client aborts HTTP requests that take longer; for a
    /// notification it emits a diagnostic. Default 2 s.
    pub session_end_time: Duration,
    /// Maximum number of pages that [`Pages`](crate::Pages) fetches, and the engine for its own
    /// list of tools. Then they end with an error. Default 1000.
    pub max_pages: usize,
    /// Maximum number of tools that the client caches: of an HTTP server whether a
    /// call may be repeated, and which arguments go into header fields; of every server the output
    /// schema, if the client validates results. A tool counts once per KiB of its names and its
    /// schema. The client forgets the tool that was listed longest ago: it sends calls of it
    /// without the header fields, which a server may refuse, does not repeat them, and does not
    /// validate their results. Default 4096, a few megabytes at most.
    pub max_tools: usize,
    /// Maximum number of URIs that the application watches. The engine refuses a larger set with
    /// [`Refusal::Full`](crate::Refusal::Full). Default 1000: after a gap each is an event, and
    /// `max_queued_events` leaves room for these.
    pub max_watched: usize,
    /// Maximum number of web pages that calls wait for ([`CallError::NoConsent`] describes them),
    /// and of those whose completion the client reports. A call that needs more ends with the error
    /// of the server. The client forgets the oldest page that no call waits for: it ignores its
    /// completion. Default 64.
    ///
    /// [`CallError::NoConsent`]: crate::CallError::NoConsent
    pub max_elicitations: usize,
    /// Maximum time from the consent of the user until the web pages that a call needs are
    /// complete. The timeout of the call does not run meanwhile. Then the call ends with
    /// [`CallError::Timeout`](crate::CallError::Timeout). Default 10 min: a person acts.
    pub elicitation_timeout: Duration,
    /// Maximum number of output schemas that the client keeps compiled. It discards the one that it
    /// compiled first, and compiles it again at the next result of its tool. Default 64: one schema
    /// of a hostile server may take some megabytes.
    pub max_compiled_schemas: usize,
}

/// Limits of the server engine.
///
/// # What one client can cost the others
///
/// A server accepts requests of clients that it does not trust. No cheap request of one client may
/// cost the others their service. Of a limit that all clients share, one client takes at most its
/// share ([`client_shares`](Self::client_shares): a quarter).
///
/// One client is one [`Principal`](crate::input::Principal), if the application admits requests and
/// names one. Without a principal it is one address
/// ([`Peer::address`](crate::exchange::Peer::address)), for IPv6 one network of 64 bits. If the
/// address says nothing about the client (loopback, a Unix socket,
/// [`ServerConfig::proxies`](crate::server::ServerConfig::proxies)), it is one legacy session, and
/// without a session one connection: a client behind a proxy takes no more than its own share. A
/// client that can open any number of connections through a proxy is any number of clients, so a
/// server behind a proxy needs principals.
///
/// | limit | one client takes at most | the others |
/// |---|---|---|
/// | [`max_running_requests`](Self::max_running_requests) | a share; of one connection, session or batch [`max_running_per_exchange`](Self::max_running_per_exchange) | have the rest |
/// | [`max_running_bytes`](Self::max_running_bytes) | a share, with its subscriptions and its answers to questions | have the rest |
/// | [`max_exchanges`](Self::max_exchanges), connections | a share of the connections of its address | have the rest |
/// | [`max_exchanges`](Self::max_exchanges), exchanges | a share | have the rest |
/// | [`max_streams`](Self::max_streams) | a share, by GET, `subscriptions/listen` and HTTP+SSE together | have the rest |
/// | [`max_sessions`](Self::max_sessions) | a share; one without a second message ends after [`session_start`](Self::session_start) | have the rest |
/// | [`max_client_data_total`](Self::max_client_data_total) | a share | have the rest, and all of `history_total` |
/// | [`history_total`](Self::history_total) | a share; beyond it its own longest histories are shortened | lose nothing before it |
/// | [`max_held`](Self::max_held), requests | all of it | send requests of up to 64 KiB |
/// | [`max_held`](Self::max_held), TLS handshakes | a share, by its address | have the rest |
/// | questions of requests whose client is away | a share, for [`away_timeout`](Self::away_timeout) | take these places when they need them |
/// | [`max_unsent`](Self::max_unsent), [`max_backlog`](Self::max_backlog) | what is bounded for its own exchange | notice nothing |
/// | [`max_state_params`](Self::max_state_params) | the time to verify this many bytes for each request | wait for that time at most |
/// | [`max_queued_events`](Self::max_queued_events) | all of it, with notifications and diagnostics | may have theirs counted instead of delivered |
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "record", serde(default))]
#[non_exhaustive]
pub struct ServerLimits {
    /// Number of shares into which the server divides the limits that all clients share:
    /// `max_running_requests`, `max_running_bytes`, `max_exchanges`, `max_streams`, `max_sessions`,
    /// `max_client_data_total`, `history_total`, and for TLS handshakes `max_held`. One client can
    /// take one share of each, but at least one unit. The server treats a request beyond the share
    /// like one beyond the limit, and shortens the client's own histories. With 1, one client can
    /// take everything. Default 4. [`ServerLimits`](Self) defines one client.
    pub client_shares: usize,
    /// Maximum number of running requests of all exchanges. The server answers a further one "busy"
    /// (`-32603`) at once. Responses, cancellations and pings pass. Default 1024.
    pub max_running_requests: usize,
    /// Maximum memory of all running requests and subscriptions, in bytes: ids, methods, params as
    /// text and parsed, heads of HTTP requests, the responses of legacy clients to requests for
    /// input, and the tables of the engine. An estimate: never below the real size, and at most
    /// twice as much. Allocations of handlers do not count. The server answers a request that would
    /// exceed it "busy", and treats a response of a client that would exceed it as an error.
    /// Default 256 MiB.
    pub max_running_bytes: usize,
    /// Maximum number of running requests of one duplex connection or one HTTP session, with the
    /// same answer. Default 256, so that one client cannot take all of them.
    pub max_running_per_exchange: usize,
    /// Maximum number of open exchanges, and of open connections. The server aborts a further
    /// exchange, over HTTP with 503. It refuses a further connection in the same way, if the
    /// protocol has words for it, and closes it. The server also remembers this many exchanges that
    /// it answered before their body was read, until the body ends; events of an exchange that it
    /// has forgotten are diagnostics. Default 4096.
    pub max_exchanges: usize,
    /// Maximum number of bytes sent on one exchange that the driver has not written. The server
    /// refuses a notification beyond it with [`Refusal::Full`](crate::Refusal::Full), keeps only
    /// the newest progress of each token, and answers further requests "busy" (`-32603`). Responses
    /// to running requests pass. The server disconnects a client that continues to send requests
    /// then. Default 1 MiB.
    pub max_unsent: usize,
    /// Number of unwritten bytes of one exchange from which the server answers a further request on
    /// it "busy". Responses are never refused, so the requests are. Default 32 MiB, several large
    /// responses at once.
    pub max_backlog: usize,
    /// Maximum memory of the HTTP requests and of the messages of WebSockets that are being
    /// received, heads and bodies, over all connections of a server, in bytes. Complete ones do not
    /// count. The server answers a request beyond it with 503 and closes its connection, and a
    /// WebSocket with the code 1013, but reads anything on that holds at most 64 KiB; it does not
    /// read a pipelined request, or one that waits for admission. A TLS handshake that is not
    /// complete counts as 80 KiB: the server closes a connection at once whose handshake would
    /// exceed the limit, or with it the share of its address. Applies only to a
    /// [`Connection`](crate::wired::Connection) of a [`SharedServer`](crate::wired::SharedServer)
    /// or a [`WiredServer`](crate::wired::WiredServer). Default 256 MiB.
    pub max_held: usize,
    /// Maximum time in which an exchange with unwritten bytes accepts none. Then the server ends
    /// that exchange only. Default 30 s.
    pub write_stall: Duration,
    /// Maximum time for running requests after the client has closed its side of a duplex
    /// connection. Then the server cancels them and does not answer them. Default 1 s, less than a
    /// client gives a program to exit.
    pub end_grace: Duration,
    /// Maximum number of open requests for input of one request. The server answers a handler that
    /// makes more at once with an error. Default 16.
    pub max_questions: usize,
    /// Maximum number of rounds in which one request may ask for input. Then the server answers it
    /// with an error. Default 10.
    pub max_rounds: u32,
    /// Maximum number of web pages that clients of 2025-11-25 were asked to open and that are not
    /// complete ([`Server::elicited`](crate::ServerCommands::elicited)). A client has its share of
    /// them. The server answers a request that needs a further one with `-32603`. Default 1024.
    pub max_elicitations: usize,
    /// Time after which the server forgets such a page, and notifies no client of its completion.
    /// Default 1 h.
    pub elicitation_lifetime: Duration,
    /// Maximum time for the input of one round from a legacy client. Then the server cancels the
    /// requests for input and answers the request with an error. Default 5 min: a person answers.
    pub ask_timeout: Duration,
    /// Maximum time for the input from a legacy HTTP client that is away: no exchange carries the
    /// stream of the request that asks, nor the stream that its session opened with GET.
    /// `ask_timeout` applies again when the client returns. If there is no room for a further
    /// request, the server answers one that waits for an absent client with an error at once.
    /// Default 30 s.
    pub away_timeout: Duration,
    /// Maximum age of a sealed `requestState`. The server refuses an older one. Default 10 min.
    pub state_lifetime: Duration,
    /// Maximum size of a sealed `requestState`, in bytes. The server neither sends nor accepts a
    /// larger one. Default 64 KiB.
    pub max_state: usize,
    /// Maximum size of the params of a request with a `requestState`, and of a request that asks
    /// for input, in bytes. They are verified together with the state. `_meta`, the state itself
    /// and the input responses do not count. The server answers larger params beside a state with
    /// `-32602`, and a request with larger params that asks with `-32603`. Default 256 KiB:
    /// verification takes a few milliseconds.
    pub max_state_params: usize,
    /// Maximum time until the first request on a duplex connection. Then the server aborts it.
    /// Default `None`: a parent may start a server long before it needs it.
    pub handshake_timeout: Option<Duration>,
    /// Maximum size of the `clientInfo` and of the capabilities that the server keeps of
    /// `initialize`, in bytes. The server ignores a larger `clientInfo`, as it does a malformed
    /// one, and answers larger capabilities with `-32602`. Default 16 KiB.
    pub max_client_data: usize,
    /// Maximum memory of what all legacy clients send about themselves in `initialize`, in bytes,
    /// as estimated after parsing. The server answers a further `initialize` "busy" (`-32603`),
    /// over HTTP with 503. Default 64 MiB.
    pub max_client_data_total: usize,
    /// Maximum number of open sessions. The server answers a further `initialize` over HTTP with
    /// 503. Default 10,000.
    pub max_sessions: usize,
    /// Maximum time of a session without a request and without an open stream. Then the server ends
    /// it. Default 30 min.
    pub session_idle: Duration,
    /// Interval at which the server looks for idle sessions. It also checks a session whenever a
    /// request names it. Default 5 min.
    pub session_sweep: Duration,
    /// Maximum time of a session between `initialize` and the next message. Then the server ends it
    /// like an idle one. Default 1 min.
    pub session_start: Duration,
    /// Maximum number of open streams that no response ends: those of GET, of
    /// `subscriptions/listen` and of HTTP+SSE. The server refuses a further one, over HTTP with
    /// 503. Default 2048.
    pub max_streams: usize,
    /// Maximum number of subscriptions of one duplex connection. The server refuses a further one.
    /// An HTTP session has one stream of its own, and a newer one replaces it. Default 16.
    pub max_streams_per_client: usize,
    /// Maximum number of URIs that one subscription of 2026-07-28, or one session or connection of
    /// an older revision, watches. The server answers a further `resources/subscribe` with
    /// `-32603`, and leaves further URIs out of the acknowledgement of a subscription. As many
    /// updates wait for a client that does not read; beyond that, updates of parts of a watched
    /// resource are merged into one of that resource. The URIs count against `max_running_bytes`
    /// (subscriptions) and `max_client_data_total` (sessions and connections). Default 1000.
    pub max_watched: usize,
    /// Maximum number of events that a session keeps for resumption. The oldest is dropped first.
    /// Default 1000.
    pub history_events: usize,
    /// Maximum size of the events that a session keeps, in bytes. The oldest is dropped first.
    /// Default 10 MiB.
    pub history_bytes: usize,
    /// Maximum size of the events that all sessions keep, in bytes. Beyond it the client that keeps
    /// most loses the oldest events of its longest histories. Default 256 MiB.
    pub history_total: usize,
    /// Time for which the server keeps the events of a stream after its end was written. Default 60
    /// s.
    pub history_keep: Duration,
    /// Maximum time for the application to admit an HTTP request or a connection. Then the server
    /// answers the request with 503, and closes the connection. Default 10 s.
    pub admit_timeout: Duration,
    /// Maximum time for a handler. Then the server answers the request with `-32603` and drops the
    /// handler's outcome. Default `None`.
    pub handler_deadline: Option<Duration>,
    /// Number of elements in one page of `tools/list`, `resources/list`, `resources/templates/list`
    /// and `prompts/list`. Default 100.
    pub page_size: usize,
    /// Maximum size of the URI of `resources/read`, in bytes, which a [`Router`](crate::Router)
    /// compares with every template. The server answers a longer one with `-32602`. Default 8 KiB.
    pub max_uri: usize,
    /// Maximum number of notifications and diagnostics that wait for the application, as for the
    /// client. Default 1024.
    pub max_queued_events: usize,
    /// Maximum memory of these, in bytes, as for the client. Default 16 MiB.
    pub max_queued_event_bytes: usize,
    /// Maximum number of tasks, including those that have ended and are kept, and the running calls
    /// of clients with tasks, which may become tasks. A client has its share of them. Without room
    /// the task that ended first is removed. Then a call runs as any other, and is refused
    /// (`-32603`) if it must become a task. Default 10,000.
    pub max_tasks: usize,
    /// Maximum size of the outcomes of all tasks, in bytes. A client has its share of them. Without
    /// room the task that ended first is removed, and an outcome that has none then becomes the
    /// error `-32603`. Default 256 MiB.
    pub max_task_bytes: usize,
    /// The time for which a task exists after its creation, unless its handler or its client says
    /// another. A task that has not ended by then fails. Default 1 h.
    pub task_ttl: Duration,
    /// The longest such time. Default 24 h.
    pub max_task_ttl: Duration,
    /// The interval in which clients should ask for the state of a task, unless its handler says
    /// another. Default 1 s.
    pub task_poll: Duration,
    /// The time for which a task is kept after its end, even if its own time is over. Default 5
    /// min.
    pub task_keep: Duration,
    /// Maximum number of requests to the store without a reply: what needs another one gets 503.
    /// Also of things that the other nodes do not know, while the store does not reply. Beyond it,
    /// changes are merged into one of everything that is watched, and of anything else the newest
    /// is dropped, with a diagnostic. Default 4096.
    pub max_store_requests: usize,
    /// Maximum memory of what the other nodes do not know, in bytes, as estimated, with the same
    /// outcome. Default 64 MiB.
    pub max_store_bytes: usize,
    /// Maximum time for the reply of a store. Then the request counts as failed; what must reach
    /// the store is sent again, until it is done. Default 2 s.
    pub store_timeout: Duration,
    /// The time for which a server uses its copy of a session that the nodes of a store share,
    /// until it loads the session again. Default 30 s.
    pub session_cache: Duration,
    /// The time after its last renewal for which a node is a member of its store, in the time of
    /// the store. Default 15 s.
    pub node_lease: Duration,
    /// The interval in which a node renews its lease. Much less than `node_lease`, so that some
    /// renewals may fail. What clients send to other nodes for one that is no member waits for
    /// twice this time: the node may join again. Default 5 s.
    pub node_renewal: Duration,
}

impl ServerLimits {
    /// Returns one client's share of a limit ([`client_shares`](Self::client_shares)): at least 1,
    /// unless the limit is 0.
    pub fn share(&self, bound: usize) -> usize {
        (bound / self.client_shares.max(1)).max(bound.min(1))
    }
}

/// Limits of the codecs and connections. Those of bodies and events count the bytes after the
/// content coding is decoded (feature `gzip`); a declared length counts too.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "record", serde(default))]
#[non_exhaustive]
pub struct FrameLimits {
    /// Maximum length of one line without its newline, in bytes. A longer line is one
    /// [`InvalidMessage`](crate::rpc::InvalidMessage); the codec skips its rest without buffering
    /// it. The call that it answers ends with an error, wherever the line has its id. Also the
    /// maximum length of a message of a WebSocket: a longer one closes the connection with the code
    /// 1009. Default 16 MiB.
    pub max_line: usize,
    /// Maximum size of the field values of one server-sent event, in bytes. Comments and unknown
    /// fields do not count. A larger event fails its exchange. Default 16 MiB.
    pub max_event: usize,
    /// Maximum nesting of arrays and objects in one message, at most 128. A deeper message is an
    /// invalid message. Default 128.
    pub max_depth: u32,
    /// Maximum number of elements of one batch. A longer batch is one invalid message. Default
    /// 1000.
    pub max_batch: usize,
    /// Maximum size of a string id and of a string progress token of the peer, in bytes of UTF-8.
    /// The engine answers a request with a longer id with `-32600` and that id, over HTTP with
    /// status 400, and does not keep the id. It ignores a longer progress token, and drops a
    /// cancellation that names a longer id. It is also the maximum size of the id of a server-sent
    /// event: a client does not resume a stream from an event with a longer one. Default 1 KiB.
    pub max_id: usize,
    /// Maximum size of one HTTP head, in bytes. A server answers a larger one with 431. For a
    /// client, a larger head fails the exchange, and so do interim responses that are larger
    /// together. Default 64 KiB.
    pub max_head: usize,
    /// Maximum number of fields of one HTTP head, with the same outcome. Default 100.
    pub max_headers: usize,
    /// Maximum length of the target of an HTTP request, in bytes. A server answers a longer one
    /// with 414, and also a first line that is longer. Default 8 KiB: RFC 9110 section 4.1
    /// recommends at least 8000.
    pub max_target: usize,
    /// Maximum size of a request body that a server accepts, in bytes. It answers a larger one with
    /// 413. Default 4 MiB.
    pub max_request_body: usize,
    /// Maximum size of a response body that a client accepts, in bytes. A larger one fails the
    /// exchange. Default 16 MiB.
    pub max_response_body: usize,
    /// Maximum number of bytes that a connection holds unparsed before it stops reading. Default 1
    /// MiB.
    pub max_read_ahead: usize,
    /// Maximum time to open one connection. Then the connection is closed, and its exchange fails
    /// with [`Closed::Timeout`](crate::exchange::Closed::Timeout).
    /// [`ClientConfig::connect_timeout`](crate::ClientConfig::connect_timeout) limits the whole
    /// start of a client. Default 10 s.
    pub open_timeout: Duration,
    /// Maximum time to receive the head of an HTTP request from its first byte, and the first head
    /// from the accept. A server answers a partial head with 408, and closes a connection without
    /// one. Default 10 s.
    pub head_timeout: Duration,
    /// Maximum time without progress of a body. Content is progress; the framing of chunks is not.
    /// A server answers a request body that stalls with 408, earlier if the body lags behind
    /// `min_rate`. For a client, a response body that stalls fails its exchange with
    /// [`Closed::Timeout`](crate::exchange::Closed::Timeout), unless it is an event stream. Default
    /// 30 s.
    pub body_timeout: Duration,
    /// Maximum time in which the peer accepts no byte of an HTTP request. Then the exchange fails
    /// with [`Closed::Timeout`](crate::exchange::Closed::Timeout). On a server the same applies to
    /// a complete response, earlier if the peer lags behind `min_rate`;
    /// [`ServerLimits::write_stall`] applies to a response that is not complete. Default 30 s.
    pub write_stall: Duration,
    /// Minimum transfer rate, in bytes per second, for request bodies and for completed responses.
    /// A slower client falls behind; a faster one catches up and gains nothing beyond. The outcome
    /// for a client that has fallen behind by `body_timeout` or `write_stall` is that of a stalled
    /// one, so that no trickle holds a connection. The framing of chunks does not count. 0 is no
    /// minimum. Default 1 KiB.
    pub min_rate: usize,
    /// Maximum time from the last byte of the HTTP request to the end of the head of the response.
    /// Then the exchange fails with [`Closed::Timeout`](crate::exchange::Closed::Timeout). Default
    /// `None`: the timeout of the call applies, and a server may send the head only when the work
    /// is done.
    pub response_timeout: Option<Duration>,
    /// Maximum time of a connection without an exchange. Then it is closed. Default 60 s.
    pub idle_timeout: Duration,
    /// Time for which a server reads on after it refused a body, so that the client receives the
    /// response and no reset. Default 2 s.
    pub linger_timeout: Duration,
    /// The time without a byte of the peer after which a WebSocket is checked with a ping (RFC 6455
    /// section 5.5.2). `None`: never, so that a connection that is dead without a close is not
    /// detected. Default 30 s.
    pub ping_interval: Option<Duration>,
    /// Maximum time from such a ping to the next byte of the peer. Then the connection is closed,
    /// and its exchange fails with [`Closed::Timeout`](crate::exchange::Closed::Timeout). Default
    /// 20 s.
    pub pong_timeout: Duration,
    /// Maximum time for a program to exit after its input was closed. Then it is terminated.
    /// Default 2 s.
    pub exit_timeout: Duration,
    /// Maximum time for a program to exit after it was asked to terminate. Then it is killed.
    /// Default 2 s.
    pub terminate_timeout: Duration,
    /// Maximum number of connections to one origin, not counting those with an open event stream. A
    /// further HTTP request waits for one of them while the timeout of its call runs.
    /// [`ClientStats::waiting`](crate::stats::ClientStats::waiting) counts it, and the timeout
    /// error names this wait ([`WaitReason::Connection`](crate::error::WaitReason::Connection)).
    /// Responses to requests of the server, `notifications/cancelled` and the DELETE of a session
    /// do not wait, up to twice this number. Default 64: the concurrent calls of a busy host, and a
    /// small part of the file descriptors of a process.
    pub max_connections_per_origin: usize,
    /// Maximum number of idle connections to one origin; the most recently used ones are kept. A
    /// further one is closed after one second, unless a request uses it before. Default 8:
    /// sequential calls need one, and a burst of calls leaves few open.
    pub max_idle_per_origin: usize,
    /// Maximum number of connections to one origin that do not count as above because an event
    /// stream is open on them, so that no HTTP request waits behind a stream. One beyond it counts
    /// like any other. Default 256: more would use up the file descriptors of a typical process.
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
            max_watched: 1000,
            max_elicitations: 64,
            elicitation_timeout: Duration::from_secs(600),
            max_compiled_schemas: 64,
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
            max_elicitations: 1024,
            elicitation_lifetime: Duration::from_secs(3600),
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
            max_watched: 1000,
            history_events: 1000,
            history_bytes: 10 << 20,
            history_total: 256 << 20,
            history_keep: Duration::from_secs(60),
            admit_timeout: Duration::from_secs(10),
            handler_deadline: None,
            page_size: 100,
            max_uri: 8 << 10,
            max_queued_events: 1024,
            max_queued_event_bytes: 16 << 20,
            max_tasks: 10_000,
            max_task_bytes: 256 << 20,
            task_ttl: Duration::from_secs(60 * 60),
            max_task_ttl: Duration::from_secs(24 * 60 * 60),
            task_poll: Duration::from_secs(1),
            task_keep: Duration::from_secs(5 * 60),
            max_store_requests: 4096,
            max_store_bytes: 64 << 20,
            store_timeout: Duration::from_secs(2),
            session_cache: Duration::from_secs(30),
            node_lease: Duration::from_secs(15),
            node_renewal: Duration::from_secs(5),
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
            ping_interval: Some(Duration::from_secs(30)),
            pong_timeout: Duration::from_secs(20),
            exit_timeout: Duration::from_secs(2),
            terminate_timeout: Duration::from_secs(2),
            max_connections_per_origin: 64,
            max_idle_per_origin: 8,
            max_streams_per_origin: 256,
        }
    }
}
