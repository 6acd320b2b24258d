//! What verifies the tokens of a server: a verifier behind a lock of its own, and what carries out
//! its steps. Signatures are verified without any lock, and a client without a server makes the
//! fetches.

use super::backlog::Backlog;
use super::client::Client;
use super::shared::{Front, Later, Shared};
use super::{Delay, DriverHandle, RouteTask, RoutingKind, Task};
use crate::client_options::ClientOptions;
use crate::job::{JobWatch, Promise};
use crate::keys;
use crate::options::TokenCheck;
use crate::os::{Clock, seed};
use crate::sync::{Mutex, MutexGuard, guarded, lock};
use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::string::ToString;
use alloc::sync::{Arc, Weak};
use alloc::task::Wake;
use core::mem::take;
use core::task::Waker;
use core::time::Duration;
use mcp_proto::auth::{
    Access, AccessDenial, Check, CheckId, StepId, StoreFault, Verification, Verifier, VerifierOutput, VerifierReport,
};
use mcp_proto::client::{ClientConfig, FetchError, FetchRequest, FetchResponse};
use mcp_proto::error::{Diagnostic, DiagnosticKind, Refusal};
use mcp_proto::exchange::RequestHead;
use mcp_proto::input::{Admission, AdmitToken, Principal};
use mcp_proto::seed::Seed;
use mcp_proto::time::{Instant, earliest};
use std::io;

/// Decides about the admissions of a server by their tokens. No lock of the server is held in any
/// of its functions.
pub(crate) struct Guard {
    clock: Clock,
    state: Mutex<GuardState>,
    /// The way of its tasks to the driver of the server.
    link: GuardLink,
}

/// Leads to the driver of the server.
type GuardLink = Box<dyn Fn(GuardSignal) + Send + Sync>;

pub(crate) struct GuardState {
    verifier: Verifier,
    /// The admissions that are not decided.
    waiting: BTreeMap<CheckId, Promise<AdmitToken>>,
    last: u64,
    /// Makes the fetches. `None` after the end of the server.
    fetcher: Option<Client>,
    /// What drives it, before the first fetch.
    driving: Option<DriverHandle>,
    /// The timer that the driver of the server knows.
    due: Option<Instant>,
}

/// What the driver of the server has to do.
pub(super) enum GuardSignal {
    /// Drive the client that makes the fetches. A connection has this time to open.
    Drive(DriverHandle, Duration),
    /// Call [`Guard::run`].
    Run,
    /// Call it at this time.
    RunAt(Instant),
    /// Report this to the application.
    Report(Diagnostic),
}

/// A step of the verifier.
enum GuardStep {
    Decide(Promise<AdmitToken>, Result<Arc<Access>, AccessDenial>),
    Verify(StepId, Box<Verification>),
    Fetch(StepId, Box<FetchRequest>),
    Report(VerifierReport),
}

impl GuardState {
    /// Creates the state of a guard. Servers with the same key accept the nonces of each other.
    ///
    /// # Errors
    /// The identifier of the resource or a URL of an issuer is not valid, or the operating system
    /// provides no random bytes.
    pub(crate) fn new(
        check: TokenCheck,
        fetching: ClientOptions,
        key: Option<[u8; 32]>,
        clock: Clock,
        delay: Delay,
    ) -> io::Result<Self> {
        check.resource.check().map_err(|why| io::Error::new(io::ErrorKind::InvalidInput, why.to_string()))?;
        check.config.check().map_err(|why| io::Error::new(io::ErrorKind::InvalidInput, why.to_string()))?;
        let begun = Client::begin(ClientConfig::fetcher(), fetching, delay);
        let (fetcher, driving) = begun.map_err(|why| io::Error::other(why.to_string()))?;
        let seed = key.map_or_else(seed, |key| Ok(Seed::new(key).derive("verifier")))?;
        let verifier = Verifier::new(check.config, check.resource, clock.unix(), seed, clock.now());
        let (waiting, fetcher, driving) = (BTreeMap::new(), Some(fetcher), Some(driving));
        Ok(Self { verifier, waiting, last: 0, fetcher, driving, due: None })
    }
}

impl Guard {
    /// Creates the guard of a server, whose driver finds its tasks in the backlog. It starts
    /// nothing before the first fetch.
    pub(super) fn start<S: Front>(
        state: GuardState,
        clock: Clock,
        server: &Weak<Shared<S>>,
        backlog: fn(&mut S) -> &mut Backlog,
    ) -> Arc<Self> {
        let server = Weak::clone(server);
        let link = move |signal| {
            if let Some(shared) = server.upgrade() {
                shared.with(|state, _, later| backlog(state).signal(signal, later));
            }
        };
        Arc::new(Self { clock, state: Mutex::new(state), link: Box::new(link) })
    }

    /// Decides about an admission: here and now, or once the keys of the issuer are there. Without
    /// a head there is no token.
    pub(crate) fn admit(self: &Arc<Self>, promise: Promise<AdmitToken>, head: Option<Arc<RequestHead>>) {
        let Some(head) = head else { return promise.finish(Ok(Admission::Denied(AccessDenial::Missing))) };
        let watch = JobWatch::new(&promise);
        let mut state = self.lock();
        state.last += 1;
        let id = CheckId(state.last);
        state.waiting.insert(id, promise);
        state.verifier.check(self.clock.now(), Check { id, head: &head });
        drop(state);
        // The engine can remove the credentials from it without a copy.
        drop(head);
        self.carry_out();
        if self.lock().waiting.contains_key(&id) {
            self.withdraw_on_cancel(&watch, id);
        }
    }

    /// Forgets the admission when the engine withdraws it.
    fn withdraw_on_cancel(self: &Arc<Self>, watch: &JobWatch, id: CheckId) {
        let withdrawal = Withdrawal { guard: Arc::downgrade(self), id };
        if watch.wake_on_cancel(&Waker::from(Arc::new(withdrawal))) {
            self.withdraw(id);
        }
    }

    fn withdraw(&self, id: CheckId) {
        let mut state = self.lock();
        state.verifier.withdraw(id);
        let promise = state.waiting.remove(&id);
        drop(state);
        // Outside of the lock: it answers.
        drop(promise);
    }

    /// Fires the timers that are due, and carries out what follows, and what fetches have brought.
    pub(super) fn run(self: &Arc<Self>) {
        let mut state = self.lock();
        state.due = None;
        state.verifier.handle_timeout(self.clock.now());
        drop(state);
        self.carry_out();
    }

    /// Forgets the tokens of a principal.
    pub(crate) fn forget(&self, principal: &Principal) {
        self.lock().verifier.forget(principal);
    }

    /// Ends the fetches: the server has ended.
    fn end(&self) {
        let mut state = self.lock();
        let fetcher = (state.fetcher.take(), state.driving.take());
        drop(state);
        // Outside of the lock: fetches end here.
        drop(fetcher);
    }

    /// Carries out the steps of the verifier until there are none.
    fn carry_out(self: &Arc<Self>) {
        while let Some(step) = self.next() {
            match step {
                GuardStep::Decide(promise, Ok(access)) => promise.finish(Ok(Admission::Granted(access))),
                GuardStep::Decide(promise, Err(why)) => promise.finish(Ok(Admission::Denied(why))),
                GuardStep::Verify(step, verification) => {
                    let verified = guarded(|| keys::verify(&verification));
                    let verified = verified.unwrap_or_else(|| Err("the cryptography panicked".to_owned()));
                    self.lock().verifier.verified(self.clock.now(), step, verified.map_err(StoreFault));
                }
                GuardStep::Fetch(step, request) => self.fetch(step, *request),
                GuardStep::Report(report) => {
                    let report = Diagnostic::new(DiagnosticKind::IssuerUnavailable, report.to_string());
                    (self.link)(GuardSignal::Report(report));
                }
            }
        }
        if let Some(due) = self.earlier_timer() {
            (self.link)(GuardSignal::RunAt(due));
        }
    }

    fn next(&self) -> Option<GuardStep> {
        let mut state = self.lock();
        loop {
            match state.verifier.poll_output()? {
                VerifierOutput::Decided(id, decision) => {
                    if let Some(promise) = state.waiting.remove(&id) {
                        return Some(GuardStep::Decide(promise, decision));
                    }
                }
                VerifierOutput::Verify(step, verification) => return Some(GuardStep::Verify(step, verification)),
                VerifierOutput::Fetch(step, request) => return Some(GuardStep::Fetch(step, request)),
                VerifierOutput::Report(report) => return Some(GuardStep::Report(report)),
                _ => {}
            }
        }
    }

    /// Returns the next timer, if it is earlier than the driver of the server knows.
    fn earlier_timer(&self) -> Option<Instant> {
        let mut state = self.lock();
        let next = state.verifier.poll_timeout()?;
        let is_earlier = state.due.is_none_or(|known| next < known);
        is_earlier.then(|| *state.due.insert(next))
    }

    /// Makes a fetch. Its end is a task for the driver of the server: the verifications that follow
    /// may be many.
    fn fetch(self: &Arc<Self>, step: StepId, request: FetchRequest) {
        let mut state = self.lock();
        let (fetcher, driving) = (state.fetcher.clone(), state.driving.take());
        drop(state);
        let Some(fetcher) = fetcher else {
            return self.fetched(step, &Err(FetchError::Refused(Refusal::Closed)));
        };
        if let Some(driving) = driving {
            (self.link)(GuardSignal::Drive(driving, fetcher.open_timeout()));
        }
        let guard = Arc::downgrade(self);
        fetcher.fetch_then(request, move |outcome| {
            if let Some(guard) = guard.upgrade() {
                guard.fetched(step, &outcome);
                (guard.link)(GuardSignal::Run);
            }
        });
    }

    fn fetched(&self, step: StepId, outcome: &Result<Box<FetchResponse>, FetchError>) {
        self.lock().verifier.fetched(self.clock.now(), step, outcome);
    }

    fn lock(&self) -> MutexGuard<'_, GuardState> {
        lock(&self.state)
    }
}

/// Forgets an admission.
struct Withdrawal {
    guard: Weak<Guard>,
    id: CheckId,
}

impl Wake for Withdrawal {
    fn wake(self: Arc<Self>) {
        if let Some(guard) = self.guard.upgrade() {
            guard.withdraw(self.id);
        }
    }
}

/// What the guard of a server wants of the driver. It belongs to the lock of the server.
#[derive(Default)]
pub(super) struct GuardTasks {
    guard: Option<Arc<Guard>>,
    drives: VecDeque<(DriverHandle, Duration)>,
    /// The guard has to run.
    runs: bool,
    due: Option<Instant>,
    ended: bool,
}

impl GuardTasks {
    pub(super) fn new(guard: Option<Arc<Guard>>) -> Self {
        Self { guard, ..Self::default() }
    }

    /// Handles a signal of the guard. Returns what to report to the application.
    pub(super) fn signal(&mut self, signal: GuardSignal, later: &mut Later) -> Option<Diagnostic> {
        match signal {
            // To drop it ends a client, whose fetches then report to the guard.
            GuardSignal::Drive(driving, _) if self.ended => later.drop_later(driving),
            GuardSignal::Drive(driving, open_timeout) => self.drives.push_back((driving, open_timeout)),
            GuardSignal::Run => self.runs = true,
            GuardSignal::RunAt(due) => self.due = earliest(self.due, Some(due)),
            GuardSignal::Report(report) => return Some(report),
        }
        None
    }

    /// Returns whether there is a task.
    pub(super) fn wait(&self) -> bool {
        !self.drives.is_empty() || (self.runs && self.guard.is_some())
    }

    pub(super) fn next(&mut self) -> Option<Task> {
        if let Some((driving, open_timeout)) = self.drives.pop_front() {
            return Some(Task::Drive(driving, open_timeout));
        }
        let guard = self.guard.as_ref().filter(|_| take(&mut self.runs))?;
        Some(Task::Route(RouteTask(RoutingKind::Guard(Arc::clone(guard)))))
    }

    pub(super) const fn poll_timeout(&self) -> Option<Instant> {
        self.due
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) {
        self.runs |= self.due.take_if(|due| *due <= now).is_some();
    }

    /// The server has ended.
    pub(super) fn end(&mut self, later: &mut Later) {
        self.ended = true;
        self.due = None;
        later.drop_later(take(&mut self.drives));
        if let Some(guard) = self.guard.take() {
            later.call(move || guard.end());
        }
    }
}
