//! The handle of a server behind an HTTP library.

mod state;

use mcp_proto::server::ServerCommands;
pub use state::Part;

use super::backlog::Backlog;
#[cfg(feature = "auth")]
use super::guard::Guard;
use super::handle::ServerHandle;
use super::shared::Shared;
use super::{DriverHandle, Route};
use crate::job::{Job, ServerLink};
use crate::options::ServerOptions;
use crate::os::{Clock, seed};
use crate::shared_router::SharedRouter;
use crate::work::Work;
#[cfg(feature = "auth")]
use alloc::boxed::Box;
use alloc::sync::{Arc, Weak};
use bytes::Bytes;
use core::fmt;
#[cfg(feature = "auth")]
use core::future::pending;
use core::future::poll_fn;
use core::ops::Deref;
use core::task::{Context, Poll};
use core::time::Duration;
use mcp_proto::error::Refusal;
use mcp_proto::exchange::{ExchangeId, Peer, RequestHead};
use mcp_proto::frame::BodyDecoder;
use mcp_proto::input::ServerCommand;
use mcp_proto::route::Router;
use mcp_proto::server;
use state::GatewayState;
use std::io;

/// A server behind an HTTP library, which accepts, reads and writes: seam B. Cheap to clone.
/// Dropping the last clone ends everything at once.
///
/// For each request call [`begin_exchange`](Self::begin_exchange), pass the body to the
/// [`Exchange`], and write the parts that it returns. Something must drive the [`DriverHandle`]: a
/// task or a thread of its own, which passes the callbacks to others.
///
/// The library has to meet the conditions that [`exchange`](mcp_proto::exchange) lists for a
/// server. Above all it must notice a client that disconnects during the response, and drop the
/// exchange: look for its switch for half-closed connections, and test it with a call of 2026-07-28
/// that is cancelled. A disconnect cancels no request of an earlier revision: bound those with
/// [`handler_deadline`](mcp_proto::limits::ServerLimits::handler_deadline).
///
/// ```
/// use mcp_driver::{Gateway, Job, Part, ServerOptions, Task, block_on};
/// use mcp_proto::exchange::{Headers, Peer, RequestHead};
/// use mcp_proto::{Progress, Router, tool};
/// use std::thread;
///
/// # fn main() -> std::io::Result<()> {
/// let router = Router::new("clock", "1.0").tool(tool("tick"), |cx, ()| {
///     let _ = cx.progress(Progress::new(1.0));
///     Ok("tock")
/// });
/// let (gateway, driving) = Gateway::begin(router, ServerOptions::new())?;
/// // Its driver: a thread. A task of a runtime gives `DriverHandle::run` the timer of the runtime.
/// let carry_out = |task| match task {
///     Task::Route(routing) => drop(thread::spawn(|| {
///         routing.route().into_iter().for_each(Job::block);
///     })),
///     Task::Deliver(events) => drop(thread::spawn(|| events.deliver())),
///     Task::Open(..) | Task::Drive(..) | Task::Ended => {} // A gateway opens nothing.
/// };
/// thread::spawn(move || driving.block(carry_out));
/// // The library has received a request.
/// let mut headers = Headers::new();
/// for (name, value) in [
///     ("Host", "localhost"),
///     ("Content-Type", "application/json"),
///     ("Accept", "application/json, text/event-stream"),
///     ("MCP-Protocol-Version", "2026-07-28"),
///     ("Mcp-Method", "tools/call"),
///     ("Mcp-Name", "tick"),
/// ] {
///     headers.push(name, value);
/// }
/// let head = RequestHead { method: "POST".into(), target: "/mcp".into(), headers };
/// let mut exchange = gateway.begin_exchange(Peer::default(), head);
/// exchange.body(
///     r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"tick","_meta":{
///     "progressToken":7,"io.modelcontextprotocol/protocolVersion":"2026-07-28",
///     "io.modelcontextprotocol/clientCapabilities":{}}}}"#
///         .into(),
/// );
/// exchange.end();
/// let (mut status, mut written) = (0, Vec::new());
/// loop {
///     match block_on(exchange.part()) {
///         Part::Head(head, None) => status = head.status, // a stream begins: write the head
///         Part::Head(head, Some(body)) => {
///             (status, written) = (head.status, body.to_vec());
///             break; // the whole response
///         }
///         Part::Bytes(bytes) => written.extend(bytes), // write and flush them
///         Part::End => break,
///         Part::Cut => panic!("close the connection: the response is not complete"),
///     }
/// }
/// assert_eq!(status, 200);
/// let written = String::from_utf8_lossy(&written);
/// assert!(written.contains("notifications/progress") && written.contains("tock"));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Gateway(Arc<GatewayOwner>);

/// Ends the gateway when the last owner is dropped. Its exchanges share it without owning it.
struct GatewayOwner {
    shared: Arc<GatewayShared>,
    handle: ServerHandle,
}

impl Drop for GatewayOwner {
    fn drop(&mut self) {
        self.shared.end();
    }
}

impl Gateway {
    /// Creates a gateway, and what its driver drives. The library has chosen the path, so every
    /// path is served, and no WebSocket. The driver runs the callbacks: [`ServerOptions::threads`]
    /// and [`ServerOptions::on_executor`] have an effect only if it reads them.
    ///
    /// # Errors
    /// The operating system provides no random bytes.
    pub fn begin(router: Router, options: ServerOptions) -> io::Result<(Self, DriverHandle)> {
        let shared = GatewayShared::create(router, options)?;
        let driving = DriverHandle(Arc::clone(&shared) as _);
        let handle = ServerHandle::of_gateway(&shared);
        Ok((Self(Arc::new(GatewayOwner { shared, handle })), driving))
    }

    /// Begins the exchange of a request, whose body follows. The target is as received; the
    /// `:authority` of HTTP/2 is a field `Host`. A field value that is not UTF-8 may be replaced:
    /// no field of the protocol has one. After the end of the gateway the response is
    /// [`Part::Cut`].
    pub fn begin_exchange(&self, peer: Peer, head: RequestHead) -> Exchange {
        let shared = Arc::clone(&self.0.shared);
        let id = shared.with(|state, now, _| state.begin(now, peer, head));
        Exchange { shared, id }
    }

    /// Accepts nothing more (503), gives running requests `grace` to end, then ends every response.
    /// Returns when the engine has ended. Needs a running driver.
    pub async fn stop(&self, grace: Duration) {
        let shared = &self.0.shared;
        shared.with(|state, now, _| state.engine.shutdown(now, grace));
        shared.watch(|state| state.backlog.is_ending().then_some(())).await;
    }
}

/// The commands of an application.
impl Deref for Gateway {
    type Target = ServerHandle;

    fn deref(&self) -> &ServerHandle {
        &self.0.handle
    }
}

impl fmt::Debug for Gateway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Gateway(..)")
    }
}

/// One request and its response. Dropping it before the last part means that its client has
/// disconnected.
#[must_use = "dropping it means that the client has disconnected"]
pub struct Exchange {
    shared: Arc<GatewayShared>,
    id: ExchangeId,
}

impl Exchange {
    /// Waits until it is decided whether to read the body: not before the request is admitted, and
    /// not if it is refused. Optional: the body of a request that is not admitted yet is kept, up
    /// to [`FrameLimits::max_request_body`](mcp_proto::limits::FrameLimits::max_request_body).
    pub async fn wants_body(&mut self) -> bool {
        poll_fn(|cx| {
            let wants = self.shared.look(|state, later| state.poll_wants_body(self.id, cx.waker(), later));
            wants.map_or(Poll::Pending, Poll::Ready)
        })
        .await
    }

    /// Passes bytes of the body. Returns whether more are wanted: if not, the response is there.
    pub fn body(&mut self, bytes: Bytes) -> bool {
        self.shared.with(|state, now, later| state.read(now, self.id, later, |decoder| decoder.bytes(bytes)))
    }

    /// Reports the end of the body, also if there was none. Without effect if no more was wanted.
    /// If the body is truncated, drop the exchange instead.
    pub fn end(&mut self) {
        self.shared.with(|state, now, later| state.read(now, self.id, later, BodyDecoder::end));
    }

    /// Waits for the next part of the response. The one before counts as written: ask for the next
    /// one only then, so that the engine notices a client that does not read.
    pub async fn part(&mut self) -> Part {
        poll_fn(|cx| self.poll_part(cx)).await
    }

    /// As [`part`](Self::part), for the body type of a library.
    pub fn poll_part(&mut self, cx: &mut Context<'_>) -> Poll<Part> {
        let part = self.shared.with(|state, now, later| state.poll_part(now, self.id, cx.waker(), later));
        part.map_or(Poll::Pending, Poll::Ready)
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        self.shared.with(|state, now, later| state.gone(now, self.id, later));
    }
}

impl fmt::Debug for Exchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Exchange").field(&self.id).finish()
    }
}

/// What the handles and the driver of one gateway share.
pub(super) type GatewayShared = Shared<GatewayState>;

/// What never changes of a gateway.
pub(super) struct GatewaySetup {
    pub(super) router: SharedRouter,
    options: ServerOptions,
}

impl GatewayShared {
    fn create(router: Router, mut options: ServerOptions) -> io::Result<Arc<Self>> {
        let router = router.configure(|config| {
            config.path = None;
            // The library does not hand out its connection.
            config.web_socket = false;
        });
        let (clock, mut config) = (Clock::start(), router.config());
        config.origin_unix = clock.unix();
        options.configure(&mut config);
        let max = (config.limits.server.max_queued_events, config.limits.server.max_queued_event_bytes);
        #[cfg(feature = "auth")]
        let guard =
            options.guard_state(config.state_keys.as_ref().map(|keys| keys.current), clock, |_| Box::pin(pending()))?;
        let queue = options.store_queue(&config)?;
        let config = Arc::new(config);
        let router = SharedRouter::new(router, Arc::clone(&config));
        let engine = server::Server::new(config, seed()?, clock.now());
        let event = options.take_event();
        let shared = Arc::new_cyclic(|this: &Weak<Self>| {
            #[cfg(feature = "auth")]
            options.set_guard(guard.map(|state| Guard::start(state, clock, this, |state| &mut state.backlog)));
            let this = this.clone();
            let link: ServerLink = Arc::new(move |command| this.upgrade().ok_or(Refusal::Gone)?.command(command));
            let backlog = Backlog::new(link, event, max, options.guard().cloned(), queue.clone());
            Self::new(clock, GatewaySetup { router, options }, GatewayState::new(engine, backlog))
        });
        let this = Arc::downgrade(&shared);
        shared.setup.options.start_store(queue, move |command| {
            if let Some(shared) = this.upgrade() {
                // A command about the store is never refused.
                drop(shared.command(command));
            }
        })?;
        // The engine joins the store.
        shared.with(|_, _, _| ());
        Ok(shared)
    }

    pub(super) fn command(&self, command: ServerCommand) -> Result<(), Refusal> {
        self.setup.options.note(&command);
        self.with(|state, now, _| state.command(now, command))
    }

    /// Ends everything at once. The driver delivers the events that wait.
    fn end(&self) {
        self.with(|state, _, later| state.end(true, later));
    }
}

impl Route for GatewayShared {
    fn route(&self, work: Work) -> Option<Job> {
        work.route(&self.setup.router, &self.setup.options)
    }
}
