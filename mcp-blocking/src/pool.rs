//! A bounded set of threads. They are started on demand, and end after some time without work.
//!
//! Code of the application may never return. Once nothing wants its result, its thread no longer
//! counts, and another one takes its place, up to a number of such threads.

use crate::sync::{self, Condvar, Mutex, MutexGuard, lock};
use mcp_driver::{JobWatch, Rejection};
use mcp_proto::Instant;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::mem::replace;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

/// Maximum time that a thread waits for work before it ends.
const IDLE: Duration = Duration::from_secs(10);

/// The bounds of a [`Pool`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct PoolBounds {
    /// Maximum number of jobs that run at once and are not abandoned, at least 1.
    pub(crate) threads: usize,
    /// Maximum number of them of one client, at least 1.
    pub(crate) share: usize,
    /// Maximum number of abandoned jobs whose places others use.
    pub(crate) abandoned: usize,
    /// Maximum time that jobs wait while none of those before them ends. Then the pool rejects
    /// them. `None`: they wait for any time.
    pub(crate) patience: Option<Duration>,
}

/// Tells of a running job whether it is abandoned: nothing wants its result, and it may never
/// return. It does not change back.
pub(crate) trait Watch {
    fn is_abandoned(&self) -> bool;
}

impl Watch for JobWatch {
    fn is_abandoned(&self) -> bool {
        self.is_unwanted()
    }
}

/// A job that nothing abandons.
impl Watch for () {
    fn is_abandoned(&self) -> bool {
        false
    }
}

/// Runs `work` on each job in the order of submission, within its bounds. Dropping it does not
/// wait: the threads finish all submitted jobs and end.
pub(crate) struct Pool<T, W = ()> {
    inner: Arc<Inner<T, W>>,
}

struct Inner<T, W> {
    name: &'static str,
    bounds: PoolBounds,
    work: Box<dyn Fn(T) + Send + Sync>,
    queue: Mutex<Queue<T, W>>,
    wake: Condvar,
}

/// A job that waits.
struct WaitingJob<T, W> {
    client: u64,
    job: T,
    watch: W,
}

/// A job that runs.
struct RunningJob<W> {
    client: u64,
    watch: W,
    /// Its place is free for another job.
    is_abandoned: bool,
}

/// The jobs of a client that has reached its share.
struct Held<T, W> {
    jobs: VecDeque<WaitingJob<T, W>>,
    stall: Stall,
}

/// How long jobs have waited while nothing moved.
#[derive(Default)]
struct Stall {
    since: Option<Instant>,
    /// The patience is over. Until something moves, further jobs are rejected.
    is_over: bool,
}

struct Queue<T, W> {
    /// Jobs that a thread may begin.
    jobs: VecDeque<WaitingJob<T, W>>,
    stall: Stall,
    /// Number of jobs of each client that may begin or are running, without abandoned ones.
    taken: BTreeMap<u64, usize>,
    held: BTreeMap<u64, Held<T, W>>,
    /// The jobs that run. Places are used again.
    running: Vec<Option<RunningJob<W>>>,
    /// Number of those that are abandoned and whose places are free.
    abandoned: usize,
    /// Clients with a job that is abandoned, and that keeps its place since there are too many.
    overdue: BTreeSet<u64>,
    /// The last tick has found that jobs do not return.
    was_stuck: bool,
    threads: usize,
    /// Threads that wait for a job.
    idle: usize,
    /// A thread was woken or started, and has not looked yet. It wakes the next one if there are
    /// more jobs: so there is one wake-up at a time, and none if the threads at work are fast
    /// enough.
    calling: bool,
    closed: bool,
}

/// What [`Pool::tick`] has found.
pub(crate) struct Look<T> {
    /// Number of jobs that go on waiting.
    pub(crate) waiting: usize,
    /// Number of jobs that run.
    pub(crate) running: usize,
    /// Number of these that are abandoned.
    pub(crate) abandoned: usize,
    /// Since this tick, jobs are rejected because those that run do not return.
    pub(crate) gets_stuck: bool,
    /// Jobs that waited for too long, to be answered without the lock of the pool.
    pub(crate) rejected: Vec<(T, Rejection)>,
}

impl Stall {
    /// A place has become free, or a job has begun.
    fn moved(&mut self) {
        *self = Self::default();
    }

    /// Returns whether the jobs that wait have waited for too long.
    fn is_over(&mut self, now: Instant, waits: bool, patience: Duration) -> bool {
        if !waits {
            self.since = None;
            return false;
        }
        self.is_over |= now.since(*self.since.get_or_insert(now)) >= patience;
        self.is_over
    }
}

impl<T, W: Watch> Queue<T, W> {
    fn new() -> Self {
        Self {
            jobs: VecDeque::new(),
            stall: Stall::default(),
            taken: BTreeMap::new(),
            held: BTreeMap::new(),
            running: Vec::new(),
            abandoned: 0,
            overdue: BTreeSet::new(),
            was_stuck: false,
            threads: 0,
            idle: 0,
            calling: false,
            closed: false,
        }
    }

    /// Adds a job. Returns false if it has to wait for other jobs of its client.
    ///
    /// # Errors
    /// The job, if those before it do not end.
    fn push(&mut self, waiting: WaitingJob<T, W>, bounds: &PoolBounds) -> Result<bool, (T, Rejection)> {
        let client = waiting.client;
        let is_full = self.taken.get(&client).is_some_and(|taken| *taken >= bounds.share);
        let (is_overdue, is_over) = if is_full {
            let is_over = self.held.get(&client).is_some_and(|held| held.stall.is_over);
            // It waits for its own jobs, while others could run.
            (self.overdue.contains(&client), is_over && self.free(bounds) == 0)
        } else if self.jobs.len() >= self.free(bounds) {
            (!self.overdue.is_empty(), self.stall.is_over)
        } else {
            (false, false)
        };
        match bounds.patience {
            Some(_) if is_overdue => return Err((waiting.job, Rejection::HandlersDoNotReturn)),
            Some(_) if is_over => return Err((waiting.job, Rejection::Busy)),
            _ => {}
        }
        if is_full {
            let held = self.held.entry(client);
            held.or_insert_with(|| Held { jobs: VecDeque::new(), stall: Stall::default() }).jobs.push_back(waiting);
        } else {
            *self.taken.entry(client).or_default() += 1;
            self.jobs.push_back(waiting);
        }
        Ok(!is_full)
    }

    /// Returns the number of jobs that may begin beside those that run.
    fn free(&self, bounds: &PoolBounds) -> usize {
        let busy = self.running.iter().flatten().count() - self.abandoned;
        bounds.threads.saturating_sub(busy)
    }

    /// Returns the number of jobs that wait.
    fn waiting(&self) -> usize {
        self.jobs.len() + self.held.values().map(|held| held.jobs.len()).sum::<usize>()
    }

    /// Returns whether further jobs are rejected, at least those of one client.
    fn is_stuck(&self) -> bool {
        !self.overdue.is_empty() || self.stall.is_over || self.held.values().any(|held| held.stall.is_over)
    }

    /// Returns a job to begin.
    fn next(&mut self) -> Option<WaitingJob<T, W>> {
        let next = self.jobs.pop_front()?;
        self.stall.moved();
        Some(next)
    }

    /// A job begins. Returns its place.
    fn begin(&mut self, client: u64, watch: W) -> usize {
        let running = RunningJob { client, watch, is_abandoned: false };
        match self.running.iter().position(Option::is_none) {
            Some(place) => {
                self.running[place] = Some(running);
                place
            }
            None => {
                self.running.push(Some(running));
                self.running.len() - 1
            }
        }
    }

    /// The job of this place has returned.
    fn finish(&mut self, place: usize, bounds: &PoolBounds) {
        let Some(finished) = self.running.get_mut(place).and_then(Option::take) else { return };
        if finished.is_abandoned {
            self.abandoned -= 1;
        } else {
            self.stall.moved();
            self.release(finished.client);
        }
        if !self.overdue.is_empty() {
            // There may be room for one that is.
            self.reclaim(bounds);
        }
        // The next time is reported again.
        self.was_stuck &= self.is_stuck();
    }

    /// Frees the places of the jobs that are abandoned.
    fn reclaim(&mut self, bounds: &PoolBounds) {
        self.overdue.clear();
        for place in 0..self.running.len() {
            let Some(Some(running)) = self.running.get_mut(place) else { continue };
            if running.is_abandoned || !running.watch.is_abandoned() {
                continue;
            }
            let client = running.client;
            if self.abandoned >= bounds.abandoned {
                self.overdue.insert(client);
                continue;
            }
            running.is_abandoned = true;
            self.abandoned += 1;
            self.stall.moved();
            self.release(client);
        }
    }

    /// Frees the place of a client's job for the client's next one.
    fn release(&mut self, client: u64) {
        let held = self.held.get_mut(&client);
        let next = held.and_then(|held| {
            held.stall.moved();
            held.jobs.pop_front()
        });
        if self.held.get(&client).is_some_and(|held| held.jobs.is_empty()) {
            self.held.remove(&client);
        }
        if let Some(job) = next {
            return self.jobs.push_back(job);
        }
        if let Some(taken) = self.taken.get_mut(&client) {
            *taken -= 1;
            if *taken == 0 {
                self.taken.remove(&client);
            }
        }
    }

    /// Takes the jobs that have waited for too long.
    fn reject(&mut self, now: Instant, bounds: &PoolBounds) -> Vec<(T, Rejection)> {
        let (Some(patience), mut rejected) = (bounds.patience, Vec::new()) else { return Vec::new() };
        let is_full = self.free(bounds) == 0;
        for (client, held) in &mut self.held {
            let is_over = held.stall.is_over(now, !held.jobs.is_empty(), patience);
            let why = match self.overdue.contains(client) {
                true => Rejection::HandlersDoNotReturn,
                false if is_over && is_full => Rejection::Busy,
                false => continue,
            };
            rejected.extend(held.jobs.drain(..).map(|waiting| (waiting.job, why)));
        }
        let is_over = self.stall.is_over(now, !self.jobs.is_empty(), patience);
        let is_overdue = !self.overdue.is_empty() && self.free(bounds) == 0;
        if is_over || is_overdue {
            let why = if is_overdue { Rejection::HandlersDoNotReturn } else { Rejection::Busy };
            // The next jobs of their clients take their places.
            while let Some(WaitingJob { client, job, .. }) = self.jobs.pop_front() {
                rejected.push((job, why));
                self.release(client);
            }
        }
        rejected
    }
}

impl<T: Send + 'static> Pool<T> {
    /// Creates a pool for jobs that belong to no client, return, and wait for any time.
    pub(crate) fn new(name: &'static str, threads: usize, work: impl Fn(T) + Send + Sync + 'static) -> Self {
        Self::bounded(name, PoolBounds { threads, share: usize::MAX, abandoned: 0, patience: None }, work)
    }

    /// Submits a job of no client. Never waits.
    ///
    /// # Errors
    /// The job, if there is no thread and none can be started.
    pub(crate) fn submit(&self, job: T) -> Result<(), T> {
        self.submit_of(0, job, (), |_| true).map(drop).map_err(|(job, _)| job)
    }
}

impl<T: Send + 'static, W: Watch + Send + 'static> Pool<T, W> {
    /// Creates a pool that clients share.
    pub(crate) fn bounded(name: &'static str, bounds: PoolBounds, work: impl Fn(T) + Send + Sync + 'static) -> Self {
        let bounds = PoolBounds { threads: bounds.threads.max(1), share: bounds.share.max(1), ..bounds };
        let queue = Mutex::new(Queue::new());
        Self { inner: Arc::new(Inner { name, bounds, work: Box::new(work), queue, wake: Condvar::new() }) }
    }

    /// Submits a job of a client, unless `keep` rejects it. This and [`retain`](Self::retain) look
    /// under one lock, so that a job which is rejected from now on does not remain in the queue.
    /// Returns whether it waits for another one: then call [`tick`](Self::tick) from time to time.
    ///
    /// # Errors
    /// The job that `keep` rejects, the job if there is no thread and none can be started, and the
    /// job that would wait for others which do not return.
    pub(crate) fn submit_of(
        &self,
        client: u64,
        job: T,
        watch: W,
        keep: impl Fn(&T) -> bool,
    ) -> Result<bool, (T, Rejection)> {
        let mut queue = self.inner.lock();
        if !keep(&job) {
            return Err((job, Rejection::Busy));
        }
        if !queue.push(WaitingJob { client, job, watch }, &self.inner.bounds)? {
            return Ok(true);
        }
        let waits = queue.jobs.len() > queue.free(&self.inner.bounds);
        match self.inner.call(queue) {
            Ok(()) => Ok(waits),
            // The existing threads will run it.
            Err(queue) if queue.threads > queue.abandoned => Ok(true),
            Err(mut queue) => {
                let job = queue.jobs.pop_back();
                queue.release(client);
                job.map_or(Ok(false), |waiting| Err((waiting.job, Rejection::Busy)))
            }
        }
    }

    /// Drops the waiting jobs that `keep` rejects.
    pub(crate) fn retain(&self, keep: impl Fn(&T) -> bool) {
        let mut queue = self.inner.lock();
        let mut dropped = Vec::new();
        for held in queue.held.values_mut() {
            let (kept, gone): (VecDeque<_>, VecDeque<_>) = held.jobs.drain(..).partition(|waiting| keep(&waiting.job));
            held.jobs = kept;
            dropped.extend(gone);
        }
        // One without jobs still says that further ones are rejected.
        queue.held.retain(|_, held| !held.jobs.is_empty() || held.stall.is_over);
        let (kept, gone): (VecDeque<_>, VecDeque<_>) = queue.jobs.drain(..).partition(|waiting| keep(&waiting.job));
        queue.jobs = kept;
        for waiting in gone {
            queue.release(waiting.client);
            dropped.push(waiting);
        }
        drop(queue);
        // Outside of the lock: they may hold anything of the application.
        drop(dropped);
    }

    /// Frees the places of abandoned jobs, and takes the jobs that have waited for too long. Call
    /// it while jobs wait, several times within [`PoolBounds::patience`].
    pub(crate) fn tick(&self, now: Instant) -> Look<T> {
        let (inner, mut queue) = (&self.inner, self.inner.lock());
        queue.reclaim(&inner.bounds);
        let rejected = queue.reject(now, &inner.bounds);
        let is_stuck = queue.is_stuck();
        let was_stuck = replace(&mut queue.was_stuck, is_stuck);
        let running = queue.running.iter().flatten();
        let abandoned = running.clone().filter(|job| job.watch.is_abandoned()).count();
        let (running, gets_stuck) = (running.count(), is_stuck && !was_stuck);
        let look = Look { waiting: queue.waiting(), running, abandoned, gets_stuck, rejected };
        // If no thread can be started, the next tick tries again.
        drop(inner.call(queue));
        look
    }

    /// Returns the number of jobs that wait for a thread.
    pub(crate) fn waiting(&self) -> usize {
        self.inner.lock().waiting()
    }
}

impl<T, W> Inner<T, W> {
    fn lock(&self) -> MutexGuard<'_, Queue<T, W>> {
        lock(&self.queue)
    }
}

impl<T: Send + 'static, W: Watch + Send + 'static> Inner<T, W> {
    /// Calls a thread for the waiting jobs, unless one is on its way, or all are at work.
    ///
    /// # Errors
    /// The lock, if no thread can be started.
    fn call<'a>(
        self: &'a Arc<Self>,
        mut queue: MutexGuard<'a, Queue<T, W>>,
    ) -> Result<(), MutexGuard<'a, Queue<T, W>>> {
        if queue.jobs.is_empty() || queue.calling {
            return Ok(());
        }
        if queue.idle > 0 {
            queue.calling = true;
            drop(queue);
            self.wake.notify_one();
        } else if queue.threads - queue.abandoned < self.bounds.threads {
            let inner = Arc::clone(self);
            if sync::spawn(self.name, move || inner.run()).is_err() {
                return Err(queue);
            }
            (queue.calling, queue.threads) = (true, queue.threads + 1);
        }
        Ok(())
    }

    fn run(self: Arc<Self>) {
        let mut queue = self.lock();
        queue.calling = false;
        // Another thread may have taken the place of this one while its job was abandoned.
        while queue.threads - queue.abandoned <= self.bounds.threads {
            if let Some(WaitingJob { client, job, watch }) = queue.next() {
                let place = queue.begin(client, watch);
                // Without another thread, this one runs the next job after this one.
                drop(self.call(queue));
                // Guards inside of the job report a panic. Here it must only not end the thread.
                drop(catch_unwind(AssertUnwindSafe(|| (self.work)(job))));
                queue = self.lock();
                queue.finish(place, &self.bounds);
                continue;
            }
            if queue.closed {
                break;
            }
            queue.idle += 1;
            let (woken, waited) = self.wake.wait_timeout(queue, IDLE).unwrap_or_else(PoisonError::into_inner);
            queue = woken;
            queue.idle -= 1;
            queue.calling = false;
            if waited.timed_out() && queue.jobs.is_empty() {
                break;
            }
        }
        queue.threads -= 1;
    }
}

impl<T, W> Drop for Pool<T, W> {
    fn drop(&mut self) {
        self.inner.lock().closed = true;
        self.inner.wake.notify_all();
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests;
