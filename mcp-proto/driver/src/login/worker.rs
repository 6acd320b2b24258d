//! The thread that carries out the steps of the logins of one client.

mod credentials;
#[cfg(all(test, not(shuttle)))]
mod tests;

use super::listener::Listener;
use super::oauth::Browsed;
use super::oauth::LoginSetup;
use super::spawn;
use crate::asking::ClientLink;
use crate::os::Clock;
use crate::sync::guarded;
use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::format;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::mem::take;
use core::time::Duration;
use mcp_proto::auth::{
    AuthReport, Browse, Input, Lease, Listen, Output, PageResult, Purpose, SaveFault, StepId, StoreFault, StoreKey,
};
use mcp_proto::input::ClientCommand;
use std::io;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};
use std::time::Instant;

/// Bounds of the pauses between attempts to get a lease.
const PAUSES: (Duration, Duration) = (Duration::from_millis(50), Duration::from_millis(500));

/// Carries out the steps of the logins of a client on a thread of its own, in order, and answers
/// them. The thread starts with the first step, and ends with this value: leases and a listener end
/// with it. Steps that store a record are still carried out.
pub(crate) struct LoginWorker(Arc<Worker>);

struct Worker {
    setup: LoginSetup,
    clock: Clock,
    /// The way of the answers.
    link: ClientLink,
    state: Mutex<WorkerState>,
    changed: Condvar,
}

#[derive(Default)]
struct WorkerState {
    tasks: VecDeque<LoginTask>,
    /// There is a thread.
    started: bool,
    thread: Option<ThreadId>,
    /// The client has ended.
    closed: bool,
}

/// What the thread does.
enum LoginTask {
    Step(Output),
    /// Calls this after the steps before it.
    Call(Box<dyn FnOnce() + Send>),
    /// Tries to get the leases that are due.
    Retry,
}

/// What the thread holds for a login.
#[derive(Default)]
struct Held {
    leases: BTreeMap<(StoreKey, Purpose), Box<dyn Send>>,
    waiting: Vec<WaitingLease>,
    /// The listener, and when it ends.
    listener: Option<(StepId, Listener, Instant)>,
}

/// A lease that another process holds.
struct WaitingLease {
    step: StepId,
    of: (StoreKey, Purpose),
    pause: Duration,
    due: Instant,
}

impl LoginWorker {
    pub(crate) fn new(setup: LoginSetup, clock: Clock, link: ClientLink) -> Self {
        Self(Arc::new(Worker { setup, clock, link, state: Mutex::default(), changed: Condvar::new() }))
    }

    /// Adds a step. Call what this returns without the lock of the client.
    pub(crate) fn push(&self, step: Output) -> impl FnOnce() + Send + use<> {
        self.add(LoginTask::Step(step))
    }

    /// Adds a call, which follows the steps before it. As [`push`](Self::push).
    pub(crate) fn call_after(&self, call: Box<dyn FnOnce() + Send>) -> impl FnOnce() + Send + use<> {
        self.add(LoginTask::Call(call))
    }

    /// The client has ended: nothing begins any more. `done` is called after the last step. `None`
    /// if there are no steps: it is not called then. As [`push`](Self::push).
    pub(crate) fn close(&self, done: Box<dyn FnOnce() + Send>) -> Option<impl FnOnce() + Send + use<>> {
        let mut state = self.0.lock();
        state.closed = true;
        if !state.started && state.tasks.is_empty() {
            return None;
        }
        // Under the same lock: the thread ends once it has nothing to do.
        state.tasks.push_back(LoginTask::Call(done));
        drop(state);
        Some(self.woken())
    }

    /// Returns whether this is the thread that carries out the steps: a step must not wait for
    /// itself.
    pub(crate) fn is_here(&self) -> bool {
        self.0.lock().thread == Some(thread::current().id())
    }

    fn add(&self, task: LoginTask) -> impl FnOnce() + Send + use<> {
        self.0.lock().tasks.push_back(task);
        self.woken()
    }

    /// There is a task.
    fn woken(&self) -> impl FnOnce() + Send + use<> {
        self.0.changed.notify_all();
        let worker = Arc::clone(&self.0);
        move || worker.start()
    }
}

impl Drop for LoginWorker {
    fn drop(&mut self) {
        self.0.lock().closed = true;
        self.0.changed.notify_all();
    }
}

impl Worker {
    fn lock(&self) -> MutexGuard<'_, WorkerState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts the thread, unless there is one. Without a thread the steps fail here and now.
    fn start(self: Arc<Self>) {
        let mut state = self.lock();
        if state.started || state.tasks.is_empty() {
            return;
        }
        state.started = true;
        drop(state);
        let worker = Arc::clone(&self);
        if let Err(why) = spawn(move || worker.run()) {
            let mut state = self.lock();
            state.started = false;
            let tasks = take(&mut state.tasks);
            drop(state);
            tasks.into_iter().for_each(|task| self.refuse(task, &why));
        }
    }

    fn run(&self) {
        self.lock().thread = Some(thread::current().id());
        let mut held = Held::default();
        while let Some(task) = self.next(held.due()) {
            match task {
                LoginTask::Step(step) => self.carry_out(step, &mut held),
                LoginTask::Call(call) => {
                    guarded(call);
                }
                LoginTask::Retry => self.retry(&mut held),
            }
        }
        held.leases.into_values().for_each(release);
    }

    /// Waits for the next task. `None` once the client has ended and nothing is left to do.
    fn next(&self, due: Option<Instant>) -> Option<LoginTask> {
        let mut state = self.lock();
        loop {
            if let Some(task) = state.tasks.pop_front() {
                return Some(task);
            }
            if state.closed {
                return None;
            }
            let Some(due) = due else {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let left = due.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Some(LoginTask::Retry);
            }
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn carry_out(&self, step: Output, held: &mut Held) {
        match step {
            Output::Save(step, key, version, record) => {
                let fault = || Err(SaveFault::Fault(panicked()));
                let saved = guarded(|| self.setup.store.save(&key, version, record.as_deref()));
                self.answer(Input::Saved(step, saved.unwrap_or_else(fault)));
            }
            Output::Release(key, purpose) => held.release((key, purpose)),
            Output::Ignore(step) => held.listener_of(step).into_iter().for_each(Listener::ignore),
            Output::Finish(step, result) => held.finish(step, result),
            Output::Report(report) => self.report(&report),
            // Nothing begins any more.
            _ if self.lock().closed => {}
            Output::Lease(step, key, purpose) => self.lease(step, (key, purpose), held),
            Output::Load(step, key) => {
                let loaded = guarded(|| self.setup.store.load(&key)).unwrap_or_else(|| Err(panicked()));
                self.answer(Input::Loaded(step, loaded));
            }
            Output::Listen(step, listen) => self.listen(step, &listen, held),
            Output::Browse(step, page) => self.browse(step, page),
            Output::ShowCode(step, code) => self.show_code(step, *code),
            Output::NewKey(step, alg) => self.make_key(step, alg),
            Output::Sign(step, request) => self.sign(step, *request),
            Output::Assert(step, request) => self.assert(step, *request),
            _ => {}
        }
    }

    fn lease(&self, step: StepId, of: (StoreKey, Purpose), held: &mut Held) {
        match self.try_lease(&of) {
            Ok(Some(lease)) => self.leased(step, of, lease, held),
            Ok(None) => {
                let (pause, due) = (PAUSES.0, Instant::now() + PAUSES.0);
                held.waiting.push(WaitingLease { step, of, pause, due });
                self.answer(Input::Leased(step, Ok(Lease::Waiting)));
            }
            Err(why) => self.answer(Input::Leased(step, Err(why))),
        }
    }

    /// Tries again to get the leases that are due.
    fn retry(&self, held: &mut Held) {
        let now = Instant::now();
        for mut waiting in take(&mut held.waiting) {
            if waiting.due > now {
                held.waiting.push(waiting);
                continue;
            }
            match self.try_lease(&waiting.of) {
                Ok(Some(lease)) => self.leased(waiting.step, waiting.of, lease, held),
                Ok(None) => {
                    waiting.pause = (waiting.pause * 2).min(PAUSES.1);
                    waiting.due = now + waiting.pause;
                    held.waiting.push(waiting);
                }
                Err(why) => self.answer(Input::Leased(waiting.step, Err(why))),
            }
        }
        if held.listener.as_ref().is_some_and(|(_, _, until)| *until <= now) {
            held.listener = None;
        }
    }

    fn try_lease(&self, of: &(StoreKey, Purpose)) -> Result<Option<Box<dyn Send>>, StoreFault> {
        guarded(|| self.setup.store.lease(&of.0, of.1)).unwrap_or_else(|| Err(panicked()))
    }

    fn leased(&self, step: StepId, of: (StoreKey, Purpose), lease: Box<dyn Send>, held: &mut Held) {
        held.leases.insert(of, lease).into_iter().for_each(release);
        self.answer(Input::Leased(step, Ok(Lease::Held)));
    }

    fn listen(&self, step: StepId, listen: &Listen, held: &mut Held) {
        // One that was not finished would have its port.
        held.listener = None;
        let link = Arc::clone(&self.link);
        let bound = Listener::bind(listen, move |url| answer(&link, Input::Redirected(step, url.into())));
        let listening = bound.map(|listener| {
            let uri = listener.uri();
            held.listener = Some((step, listener, self.clock.at(Some(listen.until))));
            uri
        });
        self.answer(Input::Listening(step, listening));
    }

    /// Shows a page on a thread of its own: the listener may get the redirect before the callback
    /// returns.
    fn browse(&self, step: StepId, page: Browse) {
        let link = Arc::clone(&self.link);
        let begun = self.setup.browse.clone().map(|show| {
            spawn(move || match guarded(|| show(&page)) {
                Some(Browsed::Opened) => {}
                Some(Browsed::Returned(url)) => answer(&link, Input::Redirected(step, url.into())),
                Some(Browsed::Declined) | None => answer(&link, Input::Declined(step)),
            })
        });
        if begun.is_none_or(|begun| begun.is_err()) {
            self.answer(Input::Declined(step));
        }
    }

    fn report(&self, report: &AuthReport) {
        if let Some(told) = &self.setup.report {
            guarded(|| told(report));
        }
    }

    /// Answers a step that no thread can carry out.
    fn refuse(&self, task: LoginTask, why: &io::Error) {
        let fault = || StoreFault(format!("there is no thread: {why}"));
        let step = match task {
            LoginTask::Step(step) => step,
            LoginTask::Call(call) => {
                guarded(call);
                return;
            }
            LoginTask::Retry => return,
        };
        match step {
            Output::Lease(step, ..) => self.answer(Input::Leased(step, Err(fault()))),
            Output::Load(step, _) => self.answer(Input::Loaded(step, Err(fault()))),
            Output::Save(step, ..) => self.answer(Input::Saved(step, Err(SaveFault::Fault(fault())))),
            Output::Listen(step, _) => self.answer(Input::Listening(step, Err(fault()))),
            Output::Browse(step, _) | Output::ShowCode(step, _) => self.answer(Input::Declined(step)),
            Output::NewKey(step, _) => self.answer(Input::KeyMade(step, Err(fault()))),
            Output::Sign(step, _) => self.answer(Input::Signed(step, Err(fault()))),
            Output::Assert(step, _) => self.answer(Input::Asserted(step, Err(fault()))),
            Output::Report(report) => self.report(&report),
            _ => {}
        }
    }

    fn answer(&self, input: Input) {
        answer(&self.link, input);
    }
}

impl Held {
    /// Returns when something is to be done without a step.
    fn due(&self) -> Option<Instant> {
        let leases = self.waiting.iter().map(|waiting| waiting.due);
        leases.chain(self.listener.as_ref().map(|(_, _, until)| *until)).min()
    }

    fn release(&mut self, of: (StoreKey, Purpose)) {
        self.waiting.retain(|waiting| waiting.of != of);
        self.leases.remove(&of).into_iter().for_each(release);
    }

    fn listener_of(&self, step: StepId) -> Option<&Listener> {
        self.listener.as_ref().filter(|(of, ..)| *of == step).map(|(_, listener, _)| listener)
    }

    fn finish(&mut self, step: StepId, result: PageResult) {
        if let Some((_, listener, _)) = self.listener.take_if(|(of, ..)| *of == step) {
            listener.finish(result);
        }
    }
}

/// Answers a step. After the end of the client that does nothing.
fn answer(link: &ClientLink, input: Input) {
    let _ = link(ClientCommand::Auth(Box::new(input)));
}

/// Releases a lease of a store, which may be the application's.
fn release(lease: Box<dyn Send>) {
    guarded(|| drop(lease));
}

fn panicked() -> StoreFault {
    StoreFault("the store panicked".to_owned())
}
