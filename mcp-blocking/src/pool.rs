//! A bounded set of threads that are made on demand and end when they have had nothing to do for a while.

use crate::sync::{self, Condvar, Mutex, MutexGuard, lock};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

/// How long a thread without work is kept.
const IDLE: Duration = Duration::from_secs(10);

/// Does `work` on each job, at most `max` at once, in the order of submission. Dropping it waits for nothing: the
/// threads do what was submitted, and end.
pub(crate) struct Pool<T> {
    inner: Arc<Inner<T>>,
}

struct Inner<T> {
    name: &'static str,
    max: usize,
    work: Box<dyn Fn(T) + Send + Sync>,
    queue: Mutex<Queue<T>>,
    wake: Condvar,
}

struct Queue<T> {
    jobs: VecDeque<T>,
    threads: usize,
    idle: usize,
    closed: bool,
}

impl<T: Send + 'static> Pool<T> {
    pub(crate) fn new(name: &'static str, max: usize, work: impl Fn(T) + Send + Sync + 'static) -> Self {
        let queue = Mutex::new(Queue { jobs: VecDeque::new(), threads: 0, idle: 0, closed: false });
        let inner = Inner { name, max: max.max(1), work: Box::new(work), queue, wake: Condvar::new() };
        Self { inner: Arc::new(inner) }
    }

    /// Hands a job to a thread. Never waits.
    ///
    /// # Errors
    /// The job, if there is no thread and none can be made.
    pub(crate) fn submit(&self, job: T) -> Result<(), T> {
        let mut queue = self.inner.lock();
        queue.jobs.push_back(job);
        if queue.jobs.len() <= queue.idle {
            self.inner.wake.notify_one();
        } else if queue.threads < self.inner.max {
            let inner = Arc::clone(&self.inner);
            match sync::spawn(self.inner.name, move || inner.run()) {
                Ok(()) => queue.threads += 1,
                // The threads there are will come to it.
                Err(_) if queue.threads > 0 => {}
                Err(_) => return queue.jobs.pop_back().map_or(Ok(()), Err),
            }
        }
        Ok(())
    }

    /// Drops the jobs that are not worth doing any more and that no thread has begun.
    pub(crate) fn retain(&self, keep: impl Fn(&T) -> bool) {
        let mut queue = self.inner.lock();
        let (kept, dropped): (VecDeque<T>, VecDeque<T>) = queue.jobs.drain(..).partition(|job| keep(job));
        queue.jobs = kept;
        drop(queue);
        // Outside the lock: it may hold anything of the application.
        drop(dropped);
    }

    /// How many jobs wait for a thread.
    pub(crate) fn waiting(&self) -> usize {
        self.inner.lock().jobs.len()
    }
}

impl<T> Inner<T> {
    fn lock(&self) -> MutexGuard<'_, Queue<T>> {
        lock(&self.queue)
    }

    fn run(&self) {
        let mut queue = self.lock();
        loop {
            if let Some(job) = queue.jobs.pop_front() {
                drop(queue);
                // What a panic means is told by guards inside the job; here it only must not cost the thread.
                drop(catch_unwind(AssertUnwindSafe(|| (self.work)(job))));
                queue = self.lock();
                continue;
            }
            if queue.closed {
                break;
            }
            queue.idle += 1;
            let (woken, waited) = self.wake.wait_timeout(queue, IDLE).unwrap_or_else(PoisonError::into_inner);
            queue = woken;
            queue.idle -= 1;
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

    const BOUND: Duration = Duration::from_secs(20);

    // covers: B-075
    #[test]
    fn no_more_threads_than_allowed_work_at_once_and_nothing_is_lost() {
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
    fn what_is_not_worth_doing_any_more_waits_no_longer() {
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
    fn a_job_that_panics_costs_no_thread_and_no_other_job() {
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
    fn two_jobs_and_one_idle_thread_make_a_second_thread() {
        // The idle thread may take the first job before the second one is there, so this is done often.
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
            // The first waits for the second.
            (1..=2).for_each(|job| pool.submit(job).expect("a thread"));
            assert_eq!(results.recv_timeout(BOUND * 2).expect("an end"), Ok(2));
        }
    }

    #[test]
    fn what_was_submitted_is_done_after_the_pool_is_dropped_and_its_threads_end() {
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
        // The thread is gone, and with it the other end.
        assert_eq!(results.recv_timeout(BOUND), Err(mpsc::RecvTimeoutError::Disconnected));
    }
}
