//! What the handles, the driver and the connections of one client share.

#[cfg(feature = "auth")]
use super::super::first;
use super::super::shared::{Engine as _, Front as _, Shared};
use super::super::{Delay, Task};
#[cfg(feature = "auth")]
use super::logins::Logins;
use super::state::ClientState;
use crate::ConnectError;
use crate::asking::ClientLink;
use crate::client_observer::CallTag;
use crate::client_options::{ClientEventCallback, ClientOptions, NoticeCallback};
use crate::os::{Clock, seed};
use crate::sync::guarded;
use crate::tls::TlsConnector;
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::string::ToString;
use alloc::sync::{Arc, Weak};
use core::task::Waker;
use core::time::Duration;
use mcp_proto::call::{Call, CallHandle, Method, RawCall};
use mcp_proto::client::{ClientCommands, ClientConfig, Event, Termination};
use mcp_proto::error::Refusal;
use mcp_proto::exchange::{Action, Closed, ConnectionId, IoEvent};
use mcp_proto::process::Stderr;
use mcp_proto::span::Span;
use mcp_proto::wired::ConnectionOutput;

/// Time for the end of a client beyond the time limits of its shutdown.
pub(super) const MARGIN: Duration = Duration::from_secs(1);

/// Maximum of [`ClientShared::end_time`]. A longer time could overflow an instant of the system,
/// and is never needed.
const MAX_END_TIME: Duration = Duration::from_secs(3600);

pub(in crate::front) type ClientShared = Shared<ClientState>;

/// What never changes of a client.
pub(in crate::front) struct ClientSetup {
    pub(super) delay: Delay,
    /// How its connections begin TLS.
    pub(in crate::front) connector: TlsConnector,
    config: Arc<ClientConfig>,
}

/// The result of the second step of a turn.
pub(in crate::front) struct ClientTurn {
    pub(in crate::front) outputs: VecDeque<ConnectionOutput>,
    /// The connection has to be aborted.
    pub(in crate::front) stopped: bool,
    /// There is a task, which the driver of the connection carries out.
    pub(in crate::front) has_task: bool,
}

impl ClientShared {
    pub(super) fn create(
        mut config: ClientConfig,
        mut options: ClientOptions,
        delay: Delay,
    ) -> Result<Arc<Self>, ConnectError> {
        let clock = Clock::start();
        config.origin_unix = clock.unix();
        let seed = seed().map_err(|e| ConnectError::System(e.to_string()))?;
        let engine = options.create(config, seed, clock.now());
        let callback = one_callback(options.take_event(), options.take_notice());
        let config = Arc::clone(engine.client().config());
        Ok(Arc::new_cyclic(|this: &Weak<Self>| {
            #[cfg(feature = "auth")]
            let shared = this.clone();
            let this = this.clone();
            let link: ClientLink = Arc::new(move |command| {
                let shared = this.upgrade().ok_or(Refusal::Gone)?;
                shared.with(|state, now, _| state.command(now, command))
            });
            #[cfg(feature = "auth")]
            let logins = Logins::new(options.login.take(), clock, &link, shared);
            let state = ClientState::new(
                engine,
                &mut options,
                callback,
                link,
                #[cfg(feature = "auth")]
                logins,
            );
            Self::new(clock, ClientSetup { delay, connector: options.connector(), config }, state)
        }))
    }

    /// Makes a call.
    pub(super) fn call<M: Method>(&self, mut call: Call<M>) -> Result<CallHandle<M>, Refusal> {
        let span = self.begin_span(call.raw_mut());
        self.with(|state, now, later| state.call(now, call, span, later))
    }

    /// Makes a call of a supervisor.
    pub(super) fn run(&self, tag: CallTag, mut call: RawCall) {
        let span = self.begin_span(&mut call);
        self.with(|state, now, later| state.run(now, tag, call, span, later));
    }

    /// Tells the telemetry, if there is any, that a call begins. No lock is held.
    fn begin_span(&self, call: &mut RawCall) -> Option<Span> {
        let config = &self.setup.config;
        let telemetry = config.observe.as_ref()?;
        guarded(|| Span::of_call(telemetry, call, &config.target, self.clock.now()))
    }

    /// Returns the destination of a program's standard error.
    pub(in crate::front) fn stderr(&self) -> Stderr {
        self.look(|state, _| state.stderr.clone())
    }

    pub(super) fn close(&self) {
        self.with(|state, now, later| {
            state.engine.close(now);
            state.abandoned |= !state.begun;
            if state.abandoned {
                // Nothing was started, so there is nothing to end.
                state.abandon(now, later);
            }
        });
    }

    /// Closes the client, and waits for its end.
    pub(super) async fn end(&self) -> Termination {
        self.close();
        let why = self.watch_unless_exiting(|state| state.terminated.clone()).await;
        #[cfg(feature = "auth")]
        self.left().await;
        why
    }

    /// Waits for the end, also if the process exits with this client.
    pub(super) async fn ended(&self) {
        self.watch(|state| state.terminated.as_ref().map(drop)).await;
        #[cfg(feature = "auth")]
        self.left().await;
    }

    /// Waits for the last steps of a login, for a short time: the process may exit after it.
    #[cfg(feature = "auth")]
    pub(super) async fn left(&self) {
        let left = self.watch(|state| (!state.logins.is_leaving()).then_some(()));
        first(left, (self.setup.delay)(MARGIN)).await;
    }

    /// Waits until `look` returns a value. Waits forever if the process exits with this client
    /// ([`Closer::exit`](super::Closer::exit)).
    pub(super) async fn watch_unless_exiting<T>(&self, mut look: impl FnMut(&ClientState) -> Option<T>) -> T {
        self.watch(|state| if state.exit.is_some() { None } else { look(state) }).await
    }

    /// Returns the maximum time until everything has ended, plus a margin.
    pub(super) fn end_time(&self) -> Duration {
        let limits = self.look(|state, _| state.engine.client().config().limits.end_time());
        limits.saturating_add(MARGIN).min(MAX_END_TIME)
    }
}

/// For the driver of a connection.
impl ClientShared {
    pub(in crate::front) fn next_task_of_connection(self: &Arc<Self>) -> Option<Task> {
        self.look(|state, _| state.next_task(self))
    }

    /// The second step of a turn: reports what happened to a connection, and returns the outputs
    /// for it. Registers the waker of its driver.
    pub(in crate::front) fn exchange(&self, id: ConnectionId, event: Option<IoEvent>, waker: &Waker) -> ClientTurn {
        let ((outputs, stopped), has_task) = self.change(false, |state, now, later| {
            // The client does not know the connection any more: it has closed, or the client has
            // ended at once.
            let Some(connection) = state.connections.get_mut(&id) else { return (VecDeque::new(), state.abandoned) };
            // So that its own outputs do not wake it.
            let before = connection.take_waker();
            if let Some(event) = event {
                if matches!(event, IoEvent::Closed(_)) {
                    state.connections.remove(&id);
                }
                state.engine.handle_io(now, id, event);
                state.sort(now, later);
            }
            let Some(connection) = state.connections.get_mut(&id) else {
                later.replaced(before);
                return (VecDeque::new(), false);
            };
            connection.register(before, waker, later);
            (connection.take(), false)
        });
        ClientTurn { outputs, stopped, has_task }
    }

    /// Reports that the driver has dropped a connection.
    pub(in crate::front) fn dropped(&self, id: ConnectionId) {
        self.with(|state, now, later| {
            if let Some(mut connection) = state.connections.remove(&id) {
                state.engine.handle_io(now, id, IoEvent::Closed(Closed::Aborted));
                later.replaced(connection.take_waker());
            }
        });
    }
}

/// Returns the callbacks for events and for changes of connections as one.
fn one_callback(
    mut event: Option<ClientEventCallback>,
    mut notice: Option<NoticeCallback>,
) -> Option<Box<dyn FnMut(Action<Event>) + Send>> {
    if event.is_none() && notice.is_none() {
        return None;
    }
    Some(Box::new(move |action| match (action, &mut event, &mut notice) {
        (Action::Event(happened), Some(event), _) => event(happened),
        (Action::Notice(connection, happened), _, Some(notice)) => notice(connection, happened),
        _ => {}
    }))
}
