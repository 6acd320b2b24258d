//! Serving: one future for each connection, which owns its lane and runs its handlers. The engine stands behind a lock that is held for
//! synchronous calls only; parsing, framing and serialising happen outside of it.

use crate::ServerEvent;
use crate::clock::{Alarm, Origin, seed};
use crate::config::{BoxFuture, Service};
use crate::connection::Connection;
use crate::stdio::TakenStdio;
use crate::sync::{Mutex, MutexGuard, Watchers, guarded, lock};
use mcp_proto::exchange::Peer;
use mcp_proto::input::RequestKey;
use mcp_proto::route::FromFn;
use mcp_proto::server::{Event, Incoming, Responder};
use mcp_proto::wired::{Hub, Kind};
use mcp_proto::{Cx, IntoOutput, Outcome, Router, ToolError};
use serde::de::DeserializeOwned;
use smol::future::Future;
use smol::io::{AsyncRead, AsyncWrite};
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Waker};

/// Serves over standard input and output until the input ends and what was asked is answered, or the client is gone.
///
/// While this runs, the two streams belong to it: whatever else reads standard input finds its end, and what is printed goes to standard
/// error.
///
/// # Errors
/// The streams cannot be taken, or the operating system gives no random bytes. How the client left is no error of the server.
pub async fn serve_stdio(service: impl Into<Service>) -> io::Result<()> {
    let taken = TakenStdio::take()?;
    let (reader, writer) = taken.streams()?;
    serve(service, reader, writer).await
}

/// Serves over a reader and a writer until the input ends and what was asked is answered, or the channel breaks. Handlers run inside this
/// future.
///
/// # Errors
/// The operating system gives no random bytes. How the client left is no error of the server: one that goes away breaks the channel as
/// often as it ends it.
pub async fn serve(
    service: impl Into<Service>,
    reader: impl AsyncRead + Send + Unpin + 'static,
    writer: impl AsyncWrite + Send + Unpin + 'static,
) -> io::Result<()> {
    let shared = Shared::new(service.into())?;
    let connection = Connection::join(&shared, Kind::Lines, Peer::default(), Box::new(reader), Box::new(writer), true);
    if let Some(connection) = connection {
        connection.await;
    }
    Ok(())
}

/// What serves a request: a function from [`Cx`] to a future. Made of a closure by [`Router::tool`](crate::Router::tool), or by
/// [`Handler::new`].
pub struct Handler(pub(crate) Box<dyn Fn(Cx) -> BoxFuture<Outcome> + Send + Sync>);

impl fmt::Debug for Handler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Handler")
    }
}

impl Handler {
    /// A handler that reads its arguments itself and makes the whole outcome.
    pub fn new<F, R>(f: F) -> Self
    where
        F: Fn(Cx) -> R + Send + Sync + 'static,
        R: Future<Output = Outcome> + Send + 'static,
    {
        Self(Box::new(move |cx| Box::pin(f(cx))))
    }
}

impl<F, A, R, O> FromFn<F, A> for Handler
where
    F: Fn(Cx, A) -> R + Send + Sync + 'static,
    A: DeserializeOwned + Send + 'static,
    R: Future<Output = Result<O, ToolError>> + Send + 'static,
    O: IntoOutput + Send + 'static,
{
    fn from_fn(f: F) -> Self {
        Self(Box::new(move |cx| match cx.arguments::<A>() {
            Ok(arguments) => {
                let handled = f(cx.clone(), arguments);
                Box::pin(async move { cx.outcome(handled.await) })
            }
            Err(e) => {
                let outcome = cx.outcome(Err::<O, _>(e));
                Box::pin(std::future::ready(outcome))
            }
        }))
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Shared")
    }
}

/// What the connections of one server share.
pub(crate) struct Shared {
    pub(crate) router: Router<Handler>,
    pub(crate) origin: Origin,
    state: Mutex<State>,
    /// Those who wait for the end.
    watchers: Watchers,
}

/// A request to handle, and whether it was cancelled.
pub(crate) type Request = (Responder, Incoming, Arc<AtomicBool>);

pub(crate) struct State {
    pub(crate) hub: Hub,
    event: Option<Box<dyn FnMut(ServerEvent) + Send>>,
    /// Requests that came up while no connection was there to take them.
    pub(crate) requests: Vec<Request>,
    /// Requests whose handler runs, or will: whether each was cancelled, and the lane whose connection runs it, if that is known.
    pub(crate) running: BTreeMap<RequestKey, (Arc<AtomicBool>, Option<u64>)>,
    /// The tasks of the open connections, by lane.
    pub(crate) connections: BTreeMap<u64, Option<Waker>>,
    /// Whoever keeps the time of the engine.
    keeper: Option<Waker>,
    /// Everything is to end at once.
    pub(crate) stopped: bool,
}

impl Shared {
    pub(crate) fn new(service: Service) -> io::Result<Arc<Self>> {
        let origin = Origin::new();
        let Service { router, mut config, event } = service;
        config.origin_unix = origin.unix;
        let state = State {
            hub: Hub::new(Arc::new(config), seed()?, origin.now()),
            event,
            requests: Vec::new(),
            running: BTreeMap::new(),
            connections: BTreeMap::new(),
            keeper: None,
            stopped: false,
        };
        Ok(Arc::new(Self { router, origin, state: Mutex::new(state), watchers: Watchers::default() }))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Tells the engine something, and wakes whom its answer concerns.
    pub(crate) fn tell<T>(&self, tell: impl FnOnce(&mut Hub, mcp_proto::Instant) -> T) -> T {
        let (told, requests) = self.talk(None, tell);
        if !requests.is_empty() {
            let mut state = self.lock();
            state.requests.extend(requests);
            let woken = state.connections.values_mut().find_map(Option::take);
            drop(state);
            woken.into_iter().for_each(Waker::wake);
        }
        told
    }

    /// As [`tell`](Self::tell), for the connection of the lane `by`, which also takes the requests that come up.
    pub(crate) fn talk<T>(
        &self,
        by: Option<u64>,
        tell: impl FnOnce(&mut Hub, mcp_proto::Instant) -> T,
    ) -> (T, Vec<Request>) {
        let mut guard = self.lock();
        let state = &mut *guard;
        let before = state.hub.poll_timeout();
        let told = tell(&mut state.hub, self.origin.now());
        let (mut woken, mut requests, mut over) = (Vec::new(), Vec::new(), false);
        while let Some(event) = state.hub.poll_event() {
            match event {
                Event::Request(responder, incoming) => {
                    let cancelled = Arc::<AtomicBool>::default();
                    state.running.insert(responder.key(), (cancelled.clone(), by));
                    requests.push((responder, incoming, cancelled));
                }
                Event::Cancelled(key) => {
                    if let Some((cancelled, lane)) = state.running.get(&key) {
                        cancelled.store(true, Ordering::Relaxed);
                        let concerned =
                            state.connections.iter_mut().filter(|(of, _)| lane.is_none_or(|lane| lane == **of));
                        woken.extend(concerned.filter_map(|(_, waker)| waker.take()));
                    }
                }
                Event::Terminated => {
                    woken.extend(state.connections.values_mut().filter_map(Option::take));
                    woken.extend(state.keeper.take());
                    over = true;
                }
                other => {
                    if let Some(told) = &mut state.event {
                        guarded(|| told(other));
                    }
                }
            }
        }
        while let Some(lane) = state.hub.poll_woken() {
            woken.extend(state.connections.get_mut(&lane).and_then(Option::take));
        }
        if state.hub.poll_timeout() != before {
            woken.extend(state.keeper.take());
        }
        drop(guard);
        woken.into_iter().for_each(Waker::wake);
        if over {
            self.watchers.wake();
        }
        (told, requests)
    }

    /// Whether the engine's own deadline has come, which then was told. Whoever polls this keeps the time.
    pub(crate) fn poll_time(&self, cx: &mut Context<'_>, alarm: &mut Alarm) -> bool {
        let (deadline, before) = {
            let mut state = self.lock();
            let before = state.keeper.replace(cx.waker().clone());
            (state.hub.poll_timeout(), before)
        };
        drop(before);
        let due = alarm.poll(cx, self.origin, deadline);
        if due {
            self.tell(|hub, now| hub.handle_timeout(now));
        }
        due
    }

    /// Ends everything at once.
    #[cfg(any(unix, feature = "http"))]
    pub(crate) fn stop(&self) {
        let mut state = self.lock();
        state.stopped = true;
        let mut woken: Vec<_> = state.connections.values_mut().filter_map(Option::take).collect();
        woken.extend(state.keeper.take());
        drop(state);
        woken.into_iter().for_each(Waker::wake);
        self.watchers.wake();
    }

    /// Whether no more connections are accepted.
    #[cfg(any(unix, feature = "http"))]
    pub(crate) fn is_ending(&self) -> bool {
        let state = self.lock();
        state.stopped || state.hub.is_terminated()
    }

    /// Waits until no connection is left and none can come.
    #[cfg(any(unix, feature = "http"))]
    pub(crate) async fn over(&self) {
        self.watchers.watch(|| (self.is_ending() && self.lock().connections.is_empty()).then_some(())).await;
    }

    pub(crate) fn leave(&self, lane: u64) {
        self.tell(|hub, now| hub.leave(now, lane));
        let waker = self.lock().connections.remove(&lane);
        // Outside the lock: it may be the last of a task that holds a server.
        drop(waker);
        self.watchers.wake();
    }
}
