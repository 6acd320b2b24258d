//! A bounded set of threads. They are started on demand, and end after some time without work.

use crate::sync::{self, Condvar, Mutex, MutexGuard, lock};
use std::collections::{BTreeMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

/// Maximum time that a thread waits for work before it ends.
const IDLE: Duration = Duration::from_secs(10);

/// Runs `work` on each job in the order of submission, for at most `max` jobs at once and at most
/// `share` of one client. Dropping it does not wait: the threads finish all submitted jobs and end.
pub(crate) struct Pool<T> {
    inner: Arc<Inner<T>>,
}

struct Inner<T> {
    name: &'static str,
    max: usize,
    share: usize,
    work: Box<dyn Fn(T) + Send + Sync>,
    queue: Mutex<Queue<T>>,
    wake: Condvar,
}

struct Queue<T> {
    /// Jobs that a thread may begin, each with its client.
    jobs: VecDeque<(u64, T)>,
    /// Number of jobs of each client that may begin or are running.
    taken: BTreeMap<u64, usize>,
    /// Jobs of clients that have reached their share.
    held: BTreeMap<u64, VecDeque<T>>,
    threads: usize,
    /// Threads that wait for a job.
    idle: usize,
    /// A thread was woken or started, and has not looked yet. It wakes the next one if there are
    /// more jobs: so there is one wake-up at a time, and none if the threads at work are fast
    /// enough.
    calling: bool,
    closed: bool,
}

impl<T> Queue<T> {
    /// Adds a job. Returns false if it has to wait for other jobs of its client.
    fn push(&mut self, client: u64, job: T, share: usize) -> bool {
        let taken = self.taken.entry(client).or_default();
        if *taken >= share {
            self.held.entry(client).or_default().push_back(job);
            return false;
        }
        *taken += 1;
        self.jobs.push_back((client, job));
        true
    }

    /// Frees the slot of a client's finished job for the client's next one.
    fn release(&mut self, client: u64) {
        let next = self.held.get_mut(&client).and_then(VecDeque::pop_front);
        if self.held.get(&client).is_some_and(VecDeque::is_empty) {
            self.held.remove(&client);
        }
        if let Some(job) = next {
            return self.jobs.push_back((client, job));
        }
        if let Some(taken) = self.taken.get_mut(&client) {
            *taken -= 1;
            if *taken == 0 {
                self.taken.remove(&client);
            }
        }
    }
}

impl<T: Send + 'static> Pool<T> {
    /// Creates a pool for jobs that belong to no client.
    pub(crate) fn new(name: &'static str, max: usize, work: impl Fn(T) + Send + Sync + 'static) -> Self {
        Self::shared(name, max, usize::MAX, work)
    }

    /// Creates a pool that clients share.
    pub(crate) fn shared(
        name: &'static str,
        max: usize,
        share: usize,
        work: impl Fn(T) + Send + Sync + 'static,
    ) -> Self {
        let (jobs, taken, held) = (VecDeque::new(), BTreeMap::new(), BTreeMap::new());
        let queue = Mutex::new(Queue { jobs, taken, held, threads: 0, idle: 0, calling: false, closed: false });
        let (max, share) = (max.max(1), share.max(1));
        let inner = Inner { name, max, share, work: Box::new(work), queue, wake: Condvar::new() };
        Self { inner: Arc::new(inner) }
    }

    /// Submits a job of no client. Never waits.
    ///
    /// # Errors
    /// The job, if there is no thread and none can be started.
    pub(crate) fn submit(&self, job: T) -> Result<(), T> {
        self.submit_of(0, job, |_| true)
    }

    /// Submits a job of a client, unless `keep` rejects it. This and [`retain`](Self::retain) look
    /// under one lock, so that a job which is rejected from now on does not remain in the queue.
    ///
    /// # Errors
    /// As [`submit`](Self::submit), and the job that `keep` rejects.
    pub(crate) fn submit_of(&self, client: u64, job: T, keep: impl Fn(&T) -> bool) -> Result<(), T> {
        let mut queue = self.inner.lock();
        if !keep(&job) {
            return Err(job);
        }
        if !queue.push(client, job, self.inner.share) {
            return Ok(());
        }
        match self.inner.call(queue) {
            Ok(()) => Ok(()),
            // The existing threads will run it.
            Err(queue) if queue.threads > 0 => Ok(()),
            Err(mut queue) => {
                let job = queue.jobs.pop_back();
                queue.release(client);
                job.map_or(Ok(()), |(_, job)| Err(job))
            }
        }
    }

    /// Drops the waiting jobs that `keep` rejects.
    pub(crate) fn retain(&self, keep: impl Fn(&T) -> bool) {
        let mut queue = self.inner.lock();
        let mut dropped = Vec::new();
        for held in queue.held.values_mut() {
            let (kept, gone) = held.drain(..).partition(|job| keep(job));
            *held = kept;
            let gone: VecDeque<T> = gone;
            dropped.extend(gone);
        }
        queue.held.retain(|_, held| !held.is_empty());
        let (kept, gone): (VecDeque<_>, VecDeque<_>) = queue.jobs.drain(..).partition(|(_, job)| keep(job));
        queue.jobs = kept;
        for (client, job) in gone {
            queue.release(client);
            dropped.push(job);
        }
        drop(queue);
        // Outside of the lock: they may hold anything of the application.
        drop(dropped);
    }
}

impl<T> Inner<T> {
    fn lock(&self) -> MutexGuard<'_, Queue<T>> {
        lock(&self.queue)
    }

    /// Calls a thread for the waiting jobs, unless one is on its way, or all are at work.
    ///
    /// # Errors
    /// The lock, if no thread can be started.
    fn call<'a>(self: &'a Arc<Self>, mut queue: MutexGuard<'a, Queue<T>>) -> Result<(), MutexGuard<'a, Queue<T>>>
    where
        T: Send + 'static,
    {
        if queue.jobs.is_empty() || queue.calling {
            return Ok(());
        }
        if queue.idle > 0 {
            queue.calling = true;
            drop(queue);
            self.wake.notify_one();
        } else if queue.threads < self.max {
            let inner = Arc::clone(self);
            if sync::spawn(self.name, move || inner.run()).is_err() {
                return Err(queue);
            }
            (queue.calling, queue.threads) = (true, queue.threads + 1);
        }
        Ok(())
    }

    fn run(self: Arc<Self>)
    where
        T: Send + 'static,
    {
        let mut queue = self.lock();
        queue.calling = false;
        loop {
            if let Some((client, job)) = queue.jobs.pop_front() {
                // Without another thread, this one runs the next job after this one.
                drop(self.call(queue));
                // Guards inside of the job report a panic. Here it must only not end the thread.
                drop(catch_unwind(AssertUnwindSafe(|| (self.work)(job))));
                queue = self.lock();
                queue.release(client);
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

impl<T> Drop for Pool<T> {
    fn drop(&mut self) {
        self.inner.lock().closed = true;
        self.inner.wake.notify_all();
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;
    use std::sync::mpsc;

    impl<T> Pool<T> {
        /// Returns the number of jobs that wait for a thread.
        pub(crate) fn waiting(&self) -> usize {
            let queue = self.inner.lock();
            queue.jobs.len() + queue.held.values().map(VecDeque::len).sum::<usize>()
        }
    }

    const BOUND: Duration = Duration::from_secs(20);

    // covers: B-075
    #[test]
    fn pool_respects_its_thread_limit_and_loses_no_job() {
        let (done, results) = mpsc::channel();
        let working = Mutex::new((0, 0));
        let pool = Pool::new("test", 3, move |job: u32| {
            let mut now = working.lock().expect("no panic");
            now.0 += 1;
            now.1 = now.1.max(now.0);
            drop(now);
            std::thread::yield_now();
            let mut now = working.lock().expect("no panic");
            now.0 -= 1;
            done.send((job, now.1)).expect("heard");
        });
        (0..200).for_each(|job| pool.submit(job).expect("a thread"));
        let mut seen: Vec<(u32, i32)> = (0..200).map(|_| results.recv_timeout(BOUND).expect("a result")).collect();
        assert!(seen.iter().all(|(_, at_once)| *at_once <= 3));
        seen.sort_unstable();
        assert!(seen.iter().map(|(job, _)| *job).eq(0..200));
    }

    // covers: B-075
    #[test]
    fn unneeded_jobs_are_dropped() {
        let (done, results) = mpsc::channel();
        let (open, gate) = mpsc::channel();
        let gate = Mutex::new(gate);
        let pool = Pool::new("test", 1, move |job: u32| {
            gate.lock().expect("no panic").recv_timeout(BOUND).expect("opened");
            done.send(job).expect("heard");
        });
        pool.submit(0).expect("a thread");
        (1..=100).for_each(|job| pool.submit(job).expect("a thread"));
        pool.retain(|job| job % 50 == 0);
        assert!(pool.waiting() <= 3);
        (0..3).for_each(|_| open.send(()).expect("heard"));
        let seen: Vec<u32> = (0..3).map(|_| results.recv_timeout(BOUND).expect("a result")).collect();
        assert_eq!(seen, [0, 50, 100]);
    }

    // covers: B-281
    #[test]
    fn panicking_job_affects_no_thread_and_no_other_job() {
        let (done, results) = mpsc::channel();
        let pool = Pool::new("test", 1, move |job: u32| {
            if job == 0 {
                std::panic::resume_unwind(Box::new("the job fails"));
            }
            done.send(job).expect("heard");
        });
        (0..3).for_each(|job| pool.submit(job).expect("a thread"));
        assert_eq!(results.recv_timeout(BOUND), Ok(1));
        assert_eq!(results.recv_timeout(BOUND), Ok(2));
    }

    // covers: B-075
    #[test]
    fn two_jobs_and_one_idle_thread_start_a_second_thread() {
        // The idle thread may take the first job before there is a second one, so this repeats
        // often.
        for _ in 0..100 {
            let (done, results) = mpsc::channel();
            let (ready, gate) = mpsc::channel();
            let gate = Mutex::new(gate);
            let pool = Pool::new("test", 2, move |job: u32| match job {
                0 => {}
                1 => done.send(gate.lock().expect("no panic").recv_timeout(BOUND)).expect("heard"),
                _ => ready.send(job).expect("heard"),
            });
            pool.submit(0).expect("a thread");
            let end = std::time::Instant::now() + BOUND;
            while pool.inner.lock().idle == 0 {
                assert!(std::time::Instant::now() < end, "the thread is never idle");
                std::thread::yield_now();
            }
            // The first job waits for the second.
            (1..=2).for_each(|job| pool.submit(job).expect("a thread"));
            assert_eq!(results.recv_timeout(BOUND * 2).expect("an end"), Ok(2));
        }
    }

    #[test]
    fn dropped_pool_finishes_its_jobs_and_ends_its_threads() {
        let (done, results) = mpsc::channel();
        let (open, gate) = mpsc::channel();
        let gate = Mutex::new(gate);
        let pool = Pool::new("test", 1, move |job: u32| {
            gate.lock().expect("no panic").recv_timeout(BOUND).expect("opened");
            done.send(job).expect("heard");
        });
        (0..2).for_each(|job| pool.submit(job).expect("a thread"));
        drop(pool);
        (0..2).for_each(|_| open.send(()).expect("heard"));
        assert_eq!(results.recv_timeout(BOUND), Ok(0));
        assert_eq!(results.recv_timeout(BOUND), Ok(1));
        // The thread has ended, and with it the other end.
        assert_eq!(results.recv_timeout(BOUND), Err(mpsc::RecvTimeoutError::Disconnected));
    }

    // covers: B-187
    #[test]
    fn one_client_gets_at_most_its_share_of_the_threads() {
        const BOUND: Duration = Duration::from_secs(20);
        let (entered, inside) = mpsc::channel();
        let (open, gate) = mpsc::channel::<()>();
        let gate = Mutex::new(gate);
        let pool = Pool::shared("test", 4, 2, move |job: (u64, u32)| {
            entered.send(job).expect("heard");
            if job.0 == 1 {
                lock(&gate).recv_timeout(BOUND).expect("opened");
            }
        });
        (0..5).for_each(|n| pool.submit_of(1, (1, n), |_| true).expect("a thread"));
        let mut begun: Vec<_> = (0..2).map(|_| inside.recv_timeout(BOUND).expect("begun")).collect();
        begun.sort_unstable();
        assert_eq!(begun, [(1, 0), (1, 1)]);
        (0..3).for_each(|n| pool.submit_of(2, (2, n), |_| true).expect("a thread"));
        let mut begun: Vec<_> = (0..3).map(|_| inside.recv_timeout(BOUND).expect("begun")).collect();
        begun.sort_unstable();
        assert_eq!(begun, [(2, 0), (2, 1), (2, 2)], "another client does not wait");
        assert_eq!(pool.waiting(), 3);
        pool.retain(|job| job.1 != 3);
        assert_eq!(pool.waiting(), 2);
        for n in [2, 4] {
            open.send(()).expect("heard");
            assert_eq!(inside.recv_timeout(BOUND), Ok((1, n)), "its own follow in their order");
        }
        (0..2).for_each(|_| open.send(()).expect("heard"));
    }
}
