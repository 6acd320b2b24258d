//! Snapshots for metrics: what an engine and its connections hold, and what they have done. This
//! module only defines the numbers, and writes them for a monitoring system; it counts nothing.

use crate::error::DiagnosticKind;
use alloc::collections::BTreeMap;
use alloc::string::String;
use core::fmt::Write as _;
use core::ops::AddAssign;
use core::time::Duration;

/// What a client holds now, and what it has done since it was created.
/// [`WiredClient::stats`](crate::wired::WiredClient::stats) returns it and resets nothing. After
/// the end of the client, the counters keep their last values and the gauges are zero.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct ClientStats {
    /// Calls that have not ended.
    pub calls: usize,
    /// Accepted calls, including those that have ended. Neither a refused call nor a ping of
    /// [`ClientConfig::ping`](crate::ClientConfig::ping) counts.
    pub calls_made: u64,
    /// Requests of the server that wait for the application's answer.
    pub questions: usize,
    /// HTTP requests that wait for a connection, because
    /// [`max_connections_per_origin`](crate::limits::FrameLimits::max_connections_per_origin)
    /// are in use. The timeouts of their calls are running. If this is often above zero, raise that
    /// maximum.
    pub waiting: usize,
    /// Connections that are open, opening or closing.
    pub channels: usize,
    /// Traffic of all connections, including closed ones.
    pub traffic: Traffic,
    /// Bytes that the driver was given to write and has not reported written.
    pub unsent: usize,
    /// Outputs that wait for the driver and, with an adapter, events that wait for the application.
    pub queued: usize,
    /// Notifications that were dropped because the application was too slow: the sum of
    /// [`Event::Lost`](crate::client::Event::Lost), including losses not emitted yet.
    pub lost_notifications: u64,
    /// The same for diagnostics, and for events that count as diagnostics.
    pub lost_diagnostics: u64,
    /// Diagnostics about the server, by kind. Includes those that the application did not receive,
    /// except those that the engine dropped within one input.
    pub diagnostics: BTreeMap<DiagnosticKind, u64>,
    /// Emitted [`Event::Reconnecting`](crate::client::Event::Reconnecting) events.
    pub reconnects: u64,
    /// Emitted [`Event::PingMissed`](crate::client::Event::PingMissed) events.
    pub pings_missed: u64,
    /// The cache of results.
    pub cache: CacheStats,
    /// Threads that outlived their connection: blocked in the operating system, or about to end. A
    /// driver with threads sets it; otherwise it is zero.
    pub detached_threads: usize,
}

/// The cache of a client: [`ClientConfig::cache`](crate::ClientConfig::cache). Without one, all
/// counts are zero.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct CacheStats {
    /// Calls that the cache answered. A failure in whose place an expired result was delivered is
    /// none.
    pub hits: u64,
    /// Calls whose result the cache could have had, and had not. Calls that do not ask it count as
    /// neither.
    pub misses: u64,
    /// Results that were dropped to make room for others.
    pub evicted: u64,
    /// Results that it holds, including expired ones.
    pub entries: usize,
    /// The size of these, as [`Cache::bytes`](crate::client::Cache::bytes) counts it.
    pub bytes: usize,
}

/// What a server holds now, and what it has done since it was created.
/// [`SharedServer::stats`](crate::wired::SharedServer::stats) and
/// [`WiredServer::stats`](crate::wired::WiredServer::stats) return it and reset nothing.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct ServerStats {
    /// Requests that the application received and has not answered.
    pub running: usize,
    /// Handlers whose response has no receiver. A handler counts from its cancellation (by the
    /// client, by its disconnect, at a deadline or at a shutdown) until it returns. A driver that
    /// runs handlers adds these; with mcp-blocking each holds a thread, whose place another
    /// handler may use (`abandoned_threads` of its options).
    /// A handler also counts while it runs for a disconnected client that cannot resume; the
    /// engine counts these, and they are part of `running` too. Handlers that check
    /// [`Cx::is_cancelled`](crate::Cx::is_cancelled) keep this number small.
    pub abandoned_handlers: usize,
    /// Handlers that wait for a thread. They are part of `running`. A driver with a bounded number
    /// of threads sets it; otherwise it is zero.
    pub waiting_handlers: usize,
    /// Requests that the application received, once for each round. Requests that the engine
    /// answers itself do not count.
    pub requests: u64,
    /// Connections that are open or closing.
    pub channels: usize,
    /// Sessions of legacy HTTP clients: see [`Server::sessions`](crate::server::Server::sessions).
    pub sessions: usize,
    /// Open or kept streams of legacy HTTP clients: see
    /// [`Server::streams`](crate::server::Server::streams).
    pub streams: usize,
    /// Traffic of all connections, including closed ones. A
    /// [`SharedServer`](crate::wired::SharedServer) knows what was reported to it with
    /// [`exchange`](crate::wired::SharedServer::exchange).
    pub traffic: Traffic,
    /// Outputs that wait for the driver.
    pub queued: usize,
    /// Notifications that were dropped because the application was too slow.
    pub lost_notifications: u64,
    /// Diagnostics that were dropped because the application was too slow.
    pub lost_diagnostics: u64,
    /// Diagnostics about clients, by kind. Includes those that the application did not receive,
    /// except those that the engine dropped within one input.
    pub diagnostics: BTreeMap<DiagnosticKind, u64>,
    /// The store that it shares with other nodes.
    pub store: StoreStats,
}

/// A server as a node of a [store](crate::server::store). Without a store, all counts are zero.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct StoreStats {
    /// Whether it is a member: it hears what others say.
    pub is_member: bool,
    /// Requests to the store.
    pub requests: u64,
    /// Those that have failed.
    pub failures: u64,
    /// Requests without a reply, and what waits until the store replies.
    pub waiting: usize,
    /// What this node has sent to one other node: answers of clients, and messages for them.
    pub forwarded: u64,
    /// What has arrived from other nodes.
    pub arrived: u64,
    /// The time within which half of the last thousand or so replies came, within a quarter. A
    /// request without a reply counts with
    /// [`store_timeout`](crate::limits::ServerLimits::store_timeout).
    pub p50: Duration,
    /// The same for 99 of a hundred.
    pub p99: Duration,
}

/// Bytes and messages on connections.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Traffic {
    /// Bytes read, including framing and bytes that could not be parsed. Bytes after the end of a
    /// connection do not count.
    pub bytes_in: u64,
    /// Bytes reported written, including framing. Bytes written while a connection was aborted do
    /// not count.
    pub bytes_out: u64,
    /// Messages read: requests, notifications and responses. Each element of a batch counts.
    pub messages_in: u64,
    /// Messages that the driver was given to write, even if it never wrote them. On HTTP, each body
    /// and each event with data counts.
    pub messages_out: u64,
    /// Invalid messages read.
    pub defects_in: u64,
}

impl ClientStats {
    /// Returns the numbers as OpenMetrics text, up to `# EOF`: for the response to a scrape, with
    /// the media type `application/openmetrics-text; version=1.0.0`. Every name begins with
    /// `mcp_client_`. The only label is `code` of the diagnostics; nothing of a server appears.
    ///
    /// Durations and methods are not among the numbers: an
    /// [`Observe`](crate::telemetry::Observe) learns of these.
    pub fn openmetrics(&self) -> String {
        let Self {
            calls,
            calls_made,
            questions,
            waiting,
            channels,
            traffic,
            unsent,
            queued,
            lost_notifications,
            lost_diagnostics,
            diagnostics,
            reconnects,
            pings_missed,
            cache,
            detached_threads,
        } = self;
        let CacheStats { hits, misses, evicted, entries, bytes } = *cache;
        let mut out = MetricsText::new("client");
        out.gauge("calls", "Calls that have not ended", *calls);
        out.counter("calls_made", "Accepted calls", *calls_made);
        out.gauge("questions", "Requests of the server that wait for an answer", *questions);
        out.gauge("waiting_requests", "HTTP requests that wait for a connection", *waiting);
        out.gauge("connections", "Connections that are open, opening or closing", *channels);
        out.traffic(traffic);
        out.gauge("unsent_bytes", "Bytes that are not written yet", *unsent);
        out.gauge("queued_outputs", "Outputs and events that wait for the program", *queued);
        out.counter("lost_notifications", "Notifications that were dropped", *lost_notifications);
        out.counter("lost_diagnostics", "Diagnostics that were dropped", *lost_diagnostics);
        out.counter("reconnects", "Resumptions of a stream", *reconnects);
        out.counter("pings_missed", "Pings without a response", *pings_missed);
        out.counter("cache_hits", "Calls that the cache answered", hits);
        out.counter("cache_misses", "Calls that the cache could have answered", misses);
        out.counter("cache_evicted", "Results that were dropped to make room", evicted);
        out.gauge("cache_entries", "Results that the cache holds", entries);
        out.gauge("cache_bytes", "Bytes of these", bytes);
        out.gauge("detached_threads", "Threads that outlived their connection", *detached_threads);
        out.diagnostics(diagnostics);
        out.end()
    }
}

impl ServerStats {
    /// Returns the numbers as OpenMetrics text, as [`ClientStats::openmetrics`] does. Every name
    /// begins with `mcp_server_`. Nothing of a client appears.
    pub fn openmetrics(&self) -> String {
        let Self {
            running,
            abandoned_handlers,
            waiting_handlers,
            requests,
            channels,
            sessions,
            streams,
            traffic,
            queued,
            lost_notifications,
            lost_diagnostics,
            diagnostics,
            store,
        } = self;
        let StoreStats { is_member, requests: store_requests, failures, waiting, forwarded, arrived, p50, p99 } =
            *store;
        let mut out = MetricsText::new("server");
        out.gauge("running_requests", "Requests without a response", *running);
        out.gauge("abandoned_handlers", "Handlers whose response has no receiver", *abandoned_handlers);
        out.gauge("waiting_handlers", "Handlers that wait for a thread", *waiting_handlers);
        out.counter("requests", "Requests that the program received", *requests);
        out.gauge("connections", "Connections that are open or closing", *channels);
        out.gauge("sessions", "HTTP sessions", *sessions);
        out.gauge("streams", "Streams of legacy HTTP clients", *streams);
        out.traffic(traffic);
        out.gauge("queued_outputs", "Outputs that wait for the program", *queued);
        out.counter("lost_notifications", "Notifications that were dropped", *lost_notifications);
        out.counter("lost_diagnostics", "Diagnostics that were dropped", *lost_diagnostics);
        out.gauge("store_member", "Whether it is a member of its store", usize::from(is_member));
        out.counter("store_requests", "Requests to the store", store_requests);
        out.counter("store_failures", "Requests to the store that have failed", failures);
        out.gauge("store_waiting", "What waits for the store", waiting);
        out.counter("store_forwarded", "What was sent to one other node", forwarded);
        out.counter("store_arrived", "What has arrived from other nodes", arrived);
        out.seconds("store_reply_p50_seconds", "The time within which half of the replies came", p50);
        out.seconds("store_reply_p99_seconds", "The time within which 99 of 100 replies came", p99);
        out.diagnostics(diagnostics);
        out.end()
    }
}

/// Metrics of one side, as OpenMetrics text.
struct MetricsText {
    side: &'static str,
    text: String,
}

impl MetricsText {
    const fn new(side: &'static str) -> Self {
        Self { side, text: String::new() }
    }

    fn family(&mut self, name: &str, kind: &str, help: &str) {
        let Self { side, text } = self;
        // Writing to a text cannot fail.
        let _ = writeln!(text, "# TYPE mcp_{side}_{name} {kind}");
        if let Some(unit) = ["bytes", "seconds"].into_iter().find(|unit| name.ends_with(unit)) {
            let _ = writeln!(text, "# UNIT mcp_{side}_{name} {unit}");
        }
        let _ = writeln!(text, "# HELP mcp_{side}_{name} {help}.");
    }

    fn gauge(&mut self, name: &str, help: &str, value: usize) {
        self.family(name, "gauge", help);
        let _ = writeln!(self.text, "mcp_{}_{name} {value}", self.side);
    }

    fn seconds(&mut self, name: &str, help: &str, value: Duration) {
        self.family(name, "gauge", help);
        let _ = writeln!(self.text, "mcp_{}_{name} {}", self.side, value.as_secs_f64());
    }

    fn counter(&mut self, name: &str, help: &str, value: u64) {
        self.family(name, "counter", help);
        let _ = writeln!(self.text, "mcp_{}_{name}_total {value}", self.side);
    }

    fn traffic(&mut self, traffic: &Traffic) {
        let Traffic { bytes_in, bytes_out, messages_in, messages_out, defects_in } = *traffic;
        self.counter("received_bytes", "Bytes read", bytes_in);
        self.counter("sent_bytes", "Bytes written", bytes_out);
        self.counter("received_messages", "Messages read", messages_in);
        self.counter("sent_messages", "Messages to be written", messages_out);
        self.counter("received_defects", "Invalid messages read", defects_in);
    }

    fn diagnostics(&mut self, diagnostics: &BTreeMap<DiagnosticKind, u64>) {
        self.family("diagnostics", "counter", "Diagnostics about the peers");
        for (code, count) in diagnostics.iter().map(|(kind, count)| (kind.code(), count)) {
            let _ = writeln!(self.text, "mcp_{}_diagnostics_total{{code=\"{code}\"}} {count}", self.side);
        }
    }

    fn end(mut self) -> String {
        self.text.push_str("# EOF\n");
        self.text
    }
}

impl Traffic {
    /// Returns whether all counts are zero.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl AddAssign for Traffic {
    fn add_assign(&mut self, more: Self) {
        self.bytes_in += more.bytes_in;
        self.bytes_out += more.bytes_out;
        self.messages_in += more.messages_in;
        self.messages_out += more.messages_out;
        self.defects_in += more.defects_in;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;
    use alloc::vec::Vec;

    /// Checks the text line by line, and returns its samples.
    fn samples(text: &str) -> Vec<(&str, u64)> {
        let (lines, mut families) = (text.strip_suffix("# EOF\n").expect("an end"), BTreeSet::new());
        let (mut samples, mut family) = (Vec::new(), "");
        for line in lines.lines() {
            match line.split_once(' ').expect("two parts") {
                ("#", rest) => {
                    let mut words = rest.split(' ');
                    let (kind, name) = (words.next().unwrap(), words.next().unwrap());
                    match kind {
                        "TYPE" => assert!(families.insert(name), "{name} occurs once"),
                        "UNIT" => assert_eq!(words.next(), name.rsplit('_').next()),
                        "HELP" => {}
                        other => panic!("{other}"),
                    }
                    assert!(name.bytes().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'_'), "{name}");
                    family = name;
                }
                (sample, value) => {
                    let name = sample.split('{').next().unwrap();
                    assert_eq!(name.strip_suffix("_total").unwrap_or(name), family, "it follows its family");
                    samples.push((sample, value.parse::<f64>().unwrap() as u64));
                }
            }
        }
        samples
    }

    #[test]
    fn openmetrics_contains_every_number_once() {
        let traffic = Traffic { bytes_in: 1, bytes_out: 2, messages_in: 3, messages_out: 4, defects_in: 5 };
        let diagnostics = BTreeMap::from([(DiagnosticKind::Denied, 6), (DiagnosticKind::BadMessage, 7)]);
        let client = ClientStats {
            calls: 8,
            calls_made: u64::MAX,
            traffic,
            diagnostics: diagnostics.clone(),
            ..ClientStats::default()
        };
        let (of_client, text) = (client.openmetrics(), |name: &str, value| (alloc::format!("mcp_{name}"), value));
        let client = samples(&of_client);
        for (name, value) in [
            text("client_calls", 8),
            text("client_calls_made_total", u64::MAX),
            text("client_received_bytes_total", 1),
            text("client_received_defects_total", 5),
            text("client_diagnostics_total{code=\"denied\"}", 6),
            text("client_pings_missed_total", 0),
            text("client_cache_hits_total", 0),
        ] {
            assert!(client.contains(&(&name, value)), "{name} {of_client}");
        }
        let server = ServerStats { sessions: 9, traffic, diagnostics, ..ServerStats::default() }.openmetrics();
        let server = samples(&server);
        assert!(server.contains(&("mcp_server_sessions", 9)) && server.contains(&("mcp_server_sent_bytes_total", 2)));
        // All of the fields, two lines for the diagnostics, five for the traffic, of a client five
        // for the cache, and of a server eight for the store.
        assert_eq!((client.len(), server.len()), (12 + 5 + 5 + 2, 10 + 8 + 5 + 2));
    }
}
