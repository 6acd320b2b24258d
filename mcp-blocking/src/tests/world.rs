//! The setup of a scenario, its time, and its checks at the end.

use super::os::{Condvar, Pipe, ReadEnd, WriteEnd};
use crate::sync::{Mutex, MutexGuard, lock, wait};
use mcp_driver::model;
use mcp_proto::exchange::ExitStatus;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

thread_local! {
    /// All threads of a schedule are one thread of the real system. Never borrowed across a point
    /// at which the checker may switch.
    pub(super) static WORLD: RefCell<World> = RefCell::default();
}

/// The code of a program: it gets its ends of the pipes, and returns its exit code.
pub(super) type Body = dyn Fn(Held) -> i32 + Send + Sync;

#[derive(Default)]
pub(super) struct World {
    pub(super) capacity: usize,
    pub(super) programs: BTreeMap<String, Arc<Body>>,
    waits: BTreeMap<u64, (Duration, Arc<shuttle::sync::Condvar>)>,
    next_wait: u64,
    /// Counts the operations of threads on pipes and conditions.
    pub(super) deeds: u64,
    /// Counts the waits of callers that read.
    pub(super) waits_of_callers: usize,
    started: Vec<Arc<Proc>>,
}

/// The resources of a program.
pub(super) struct Held {
    pub(super) input: ReadEnd,
    pub(super) output: WriteEnd,
    pub(super) errors: WriteEnd,
    pub(super) process: Arc<Proc>,
}

impl World {
    /// Begins a new world, with pipes of this capacity.
    pub(super) fn begin(capacity: usize) {
        model::begin();
        WORLD.set(Self { capacity, ..Self::default() });
    }

    /// Defines a program of this name.
    pub(super) fn program(name: &str, body: impl Fn(Held) -> i32 + Send + Sync + 'static) {
        WORLD.with_borrow_mut(|world| world.programs.insert(name.into(), Arc::new(body)));
    }

    pub(super) fn started(process: &Arc<Proc>) {
        WORLD.with_borrow_mut(|world| world.started.push(Arc::clone(process)));
    }

    pub(super) fn begin_wait(&mut self, limit: Duration, on: Arc<shuttle::sync::Condvar>) -> (u64, Duration) {
        let until = model::now().saturating_add(limit);
        self.next_wait += 1;
        self.waits.insert(self.next_wait, (until, on));
        (self.next_wait, until)
    }

    pub(super) fn end_wait(&mut self, key: u64) -> Duration {
        self.waits.remove(&key);
        model::now()
    }

    /// Advances the time to the next deadline of a waiting thread, and wakes all threads that wait
    /// for it. Returns false if there is none.
    pub(super) fn tick() -> bool {
        let waits = WORLD.with_borrow(|world| world.waits.values().map(|(until, _)| *until).min());
        let Some(next) = waits.into_iter().chain(model::next()).min() else { return false };
        model::pass_to(next);
        let late = || {
            WORLD.with_borrow(|world| {
                let late = world.waits.values().filter(|(until, _)| *until <= next);
                late.map(|(_, on)| Arc::clone(on)).collect::<Vec<_>>()
            })
        };
        // A thread that is about to wait misses the signal, so it is repeated.
        loop {
            let late = late();
            if late.is_empty() {
                return true;
            }
            late.iter().for_each(|on| on.notify_all());
            shuttle::thread::yield_now();
        }
    }

    /// Waits until every started program has ended and was reaped. The checker notices if this
    /// never happens.
    pub(super) fn end() {
        let started = WORLD.with_borrow_mut(|world| std::mem::take(&mut world.started));
        for process in started {
            drop(process.until(|state| state.reaped));
        }
    }
}

/// A process of the model.
pub(super) struct Proc {
    state: Mutex<ProcState>,
    changed: Condvar,
    read: Vec<Arc<Pipe>>,
    written: Mutex<Vec<Arc<Pipe>>>,
}

#[derive(Default)]
pub(super) struct ProcState {
    pub(super) status: Option<ExitStatus>,
    terminated: bool,
    reaped: bool,
}

impl Proc {
    pub(super) fn new(read: Vec<Arc<Pipe>>, written: Vec<Arc<Pipe>>) -> Arc<Self> {
        Arc::new(Self { state: Mutex::default(), changed: Condvar::new(), read, written: Mutex::new(written) })
    }

    /// Ends the process, unless it has ended.
    pub(super) fn end(&self, status: ExitStatus) {
        let mut state = lock(&self.state);
        if !state.reaped {
            state.status.get_or_insert(status);
        }
        drop(state);
        self.changed.notify_all();
    }

    /// Ends the process and closes its pipes, whatever its threads are doing.
    pub(super) fn cut(&self, status: ExitStatus) {
        self.end(status);
        // Its output first, so that it writes nothing more when its threads notice the end of its
        // input.
        lock(&self.written).iter().for_each(|pipe| pipe.close_writing());
        self.read.iter().for_each(|pipe| pipe.close_reading());
    }

    /// Lets another process hold its outputs, so that they survive its end.
    pub(super) fn share_outputs(&self) {
        lock(&self.written).clear();
    }

    pub(super) fn kill(&self) {
        self.cut(ExitStatus::killed(9));
    }

    pub(super) fn terminate(&self) {
        lock(&self.state).terminated = true;
        self.changed.notify_all();
    }

    /// Waits until it is asked to terminate, or has ended.
    pub(super) fn wait_terminated(&self) {
        drop(self.until(|state| state.terminated || state.status.is_some()));
    }

    /// Waits until it has ended.
    pub(super) fn wait(&self) -> MutexGuard<'_, ProcState> {
        self.until(|state| state.status.is_some())
    }

    /// Waits until it has ended, and reaps it.
    pub(super) fn reap(&self) {
        self.wait().reaped = true;
        self.changed.notify_all();
    }

    fn until(&self, is_so: impl Fn(&ProcState) -> bool) -> MutexGuard<'_, ProcState> {
        let mut state = lock(&self.state);
        while !is_so(&state) {
            state = wait(&self.changed, state, None);
        }
        state
    }
}
