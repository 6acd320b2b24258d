//! Behaviour of the threads.

use super::*;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};

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
    let (entered, inside) = mpsc::channel();
    let (open, gate) = mpsc::channel::<()>();
    let gate = Mutex::new(gate);
    let pool = Pool::bounded("test", bounds(4, 2, 0), move |job: (u64, u32)| {
        entered.send(job).expect("heard");
        if job.0 == 1 {
            lock(&gate).recv_timeout(BOUND).expect("opened");
        }
    });
    (0..5).for_each(|n| assert_eq!(submit(&pool, 1, (1, n), ()), n >= 2));
    let mut begun: Vec<_> = (0..2).map(|_| inside.recv_timeout(BOUND).expect("begun")).collect();
    begun.sort_unstable();
    assert_eq!(begun, [(1, 0), (1, 1)]);
    for n in 0..3 {
        submit(&pool, 2, (2, n), ());
    }
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

const PATIENCE: Duration = Duration::from_secs(5);

fn bounds(threads: usize, share: usize, abandoned: usize) -> PoolBounds {
    PoolBounds { threads, share, abandoned, patience: Some(PATIENCE) }
}

fn submit<T: Send + 'static, W: Watch + Send + 'static>(pool: &Pool<T, W>, client: u64, job: T, watch: W) -> bool {
    pool.submit_of(client, job, watch, |_| true).map_err(|(_, why)| why).expect("it is not rejected")
}

fn until(mut is_so: impl FnMut() -> bool) {
    let end = std::time::Instant::now() + BOUND;
    while !is_so() {
        assert!(std::time::Instant::now() < end, "the condition did not come true");
        std::thread::yield_now();
    }
}

/// Abandons the job that it watches.
#[derive(Clone, Default)]
struct Flag(Arc<AtomicBool>);

impl Flag {
    fn set(&self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

impl Watch for Flag {
    fn is_abandoned(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}

/// A pool whose jobs tell that they have begun, and return when they are released.
struct Gated {
    pool: Pool<u32, Flag>,
    begun: Receiver<u32>,
    /// Releases the job of this number.
    gates: BTreeMap<u32, Sender<()>>,
    flags: BTreeMap<u32, Flag>,
    seconds: u64,
}

impl Gated {
    fn new(bounds: PoolBounds, jobs: u32) -> Self {
        let (told, begun) = mpsc::channel();
        let (gates, waits): (BTreeMap<_, _>, BTreeMap<_, _>) = (0..jobs)
            .map(|job| {
                let (open, gate) = mpsc::channel();
                ((job, open), (job, Mutex::new(gate)))
            })
            .unzip();
        let told = Mutex::new(told);
        let pool = Pool::bounded("test", bounds, move |job: u32| {
            lock(&told).send(job).expect("heard");
            lock(&waits[&job]).recv_timeout(BOUND).expect("released");
        });
        Self { pool, begun, gates, flags: BTreeMap::new(), seconds: 0 }
    }

    /// Submits a job of a client. Returns whether it waits.
    fn submit(&mut self, client: u64, job: u32) -> Result<bool, Rejection> {
        let flag = self.flags.entry(job).or_default().clone();
        self.pool.submit_of(client, job, flag, |_| true).map_err(|(_, why)| why)
    }

    /// Submits jobs of a client, and waits until all of them run.
    fn run(&mut self, client: u64, jobs: std::ops::Range<u32>) {
        jobs.clone().for_each(|job| assert_eq!(self.submit(client, job), Ok(false)));
        let mut begun: Vec<_> = jobs.clone().map(|_| self.begun.recv_timeout(BOUND).expect("begun")).collect();
        begun.sort_unstable();
        assert!(begun.into_iter().eq(jobs));
    }

    fn abandon(&self, job: u32) {
        self.flags[&job].set();
    }

    fn release(&self, job: u32) {
        self.gates[&job].send(()).expect("it waits");
    }

    /// Looks after this number of seconds. Returns the rejected jobs.
    fn look(&mut self, seconds: u64) -> Vec<(u32, Rejection)> {
        self.seconds += seconds;
        self.pool.tick(Instant::new(Duration::from_secs(self.seconds))).rejected
    }

    fn begins(&self, job: u32) {
        assert_eq!(self.begun.recv_timeout(BOUND), Ok(job));
    }

    /// Returns the numbers of threads, and of those whose places are used again.
    fn threads(&self) -> (usize, usize) {
        let queue = self.pool.inner.lock();
        (queue.threads, queue.abandoned)
    }
}

// covers: B-174
#[test]
fn place_of_an_abandoned_job_is_used_again() {
    let mut gated = Gated::new(bounds(2, 2, 2), 5);
    gated.run(1, 0..2);
    assert_eq!(gated.submit(1, 2), Ok(true), "it waits");
    gated.abandon(0);
    assert!(gated.look(0).is_empty());
    gated.begins(2);
    assert_eq!(gated.threads(), (3, 1));
    // One more, and its place.
    assert_eq!(gated.submit(1, 3), Ok(true));
    gated.abandon(1);
    gated.look(0);
    gated.begins(3);
    assert_eq!(gated.threads(), (4, 2));
    // A job that returns late gives no place back, and its thread ends.
    assert_eq!(gated.submit(1, 4), Ok(true));
    gated.release(0);
    until(|| gated.threads() == (3, 1));
    assert_eq!((gated.pool.waiting(), gated.begun.try_recv().is_err()), (1, true), "both places are in use");
    gated.release(1);
    until(|| gated.threads() == (2, 0));
    gated.release(2);
    gated.begins(4);
    [3, 4].into_iter().for_each(|job| gated.release(job));
    until(|| gated.pool.inner.lock().taken.is_empty());
    assert!(gated.pool.inner.lock().running.iter().all(Option::is_none));
}

// covers: B-174
#[test]
fn jobs_beyond_the_abandoned_ones_are_rejected() {
    let mut gated = Gated::new(bounds(2, 2, 1), 9);
    gated.run(1, 0..2);
    [0, 1].into_iter().for_each(|job| gated.abandon(job));
    // The place of one of them is free, and that of the other is not.
    let look = gated.pool.tick(Instant::ZERO);
    assert_eq!((look.running, look.abandoned, look.gets_stuck, look.rejected.len()), (2, 2, true, 0));
    gated.run(1, 2..3);
    assert_eq!(gated.submit(1, 3), Err(Rejection::HandlersDoNotReturn));
    assert_eq!(gated.submit(2, 4), Err(Rejection::HandlersDoNotReturn), "no place is left for another client");
    assert!(!gated.pool.tick(Instant::ZERO).gets_stuck, "it is told once");
    // One that returns makes room for the other.
    gated.release(0);
    until(|| gated.pool.inner.lock().overdue.is_empty());
    assert_eq!(gated.threads(), (3, 1));
    gated.run(2, 5..6);
    [1, 2, 5].into_iter().for_each(|job| gated.release(job));
    until(|| gated.threads().1 == 0 && gated.pool.inner.lock().taken.is_empty());
    gated.run(1, 6..8);
    [6, 7].into_iter().for_each(|job| gated.release(job));
}

// covers: B-174
#[test]
fn jobs_that_wait_are_rejected_when_too_many_are_abandoned() {
    let mut gated = Gated::new(bounds(2, 1, 0), 6);
    gated.run(1, 0..1);
    gated.run(2, 1..2);
    // One waits for its client, one for a place.
    assert_eq!((gated.submit(1, 2), gated.submit(3, 3)), (Ok(true), Ok(true)));
    gated.abandon(0);
    let mut rejected = gated.look(0);
    rejected.sort_unstable_by_key(|(job, _)| *job);
    assert_eq!(rejected, [(2, Rejection::HandlersDoNotReturn), (3, Rejection::HandlersDoNotReturn)]);
    assert_eq!(gated.pool.waiting(), 0);
    // Another client's own jobs return: it waits for them.
    gated.release(1);
    until(|| gated.pool.inner.lock().taken.len() == 1);
    gated.run(2, 4..5);
    [0, 4].into_iter().for_each(|job| gated.release(job));
    until(|| gated.pool.inner.lock().taken.is_empty());
    gated.run(1, 5..6);
    gated.release(5);
}

// covers: B-174
#[test]
fn jobs_that_wait_too_long_are_rejected_and_then_at_once() {
    let mut gated = Gated::new(bounds(2, 2, 2), 9);
    gated.run(1, 0..2);
    assert_eq!(gated.submit(2, 2), Ok(true));
    assert!(gated.look(1).is_empty());
    assert_eq!(gated.submit(1, 3), Ok(true), "it waits for its own client");
    assert!(gated.look(1).is_empty() && gated.look(3).is_empty());
    // Both waits are over, each by itself.
    assert_eq!(gated.look(1), [(2, Rejection::Busy)]);
    assert_eq!(gated.look(1), [(3, Rejection::Busy)]);
    assert_eq!((gated.submit(1, 4), gated.submit(2, 4)), (Err(Rejection::Busy), Err(Rejection::Busy)));
    // The end of one changes that for everybody.
    gated.release(0);
    until(|| gated.pool.inner.lock().idle == 1);
    gated.run(1, 4..5);
    assert_eq!((gated.submit(1, 5), gated.submit(2, 6)), (Ok(true), Ok(true)));
    assert!(gated.look(4).is_empty(), "they wait from now on");
    gated.release(1);
    gated.begins(6);
    // A job that begins is a sign of life.
    assert!(gated.look(4).is_empty());
    gated.release(4);
    gated.begins(5);
    [5, 6].into_iter().for_each(|job| gated.release(job));
}

// covers: B-174
#[test]
fn full_share_of_one_client_waits_while_others_have_threads() {
    let mut gated = Gated::new(bounds(4, 2, 0), 9);
    gated.run(1, 0..2);
    assert_eq!(gated.submit(1, 2), Ok(true));
    gated.look(0);
    let look = gated.pool.tick(Instant::new(PATIENCE));
    assert!(look.rejected.is_empty() && look.gets_stuck && look.waiting == 1);
    gated.run(2, 4..6);
    let look = gated.pool.tick(Instant::new(2 * PATIENCE));
    assert_eq!(look.rejected, [(2, Rejection::Busy)], "no thread is left");
    assert!(!look.gets_stuck && look.waiting == 0);
    assert_eq!(gated.submit(1, 3), Err(Rejection::Busy));
    // What the application drops changes nothing.
    gated.pool.retain(|_| false);
    assert_eq!(gated.submit(1, 3), Err(Rejection::Busy));
    [0, 1, 4, 5].into_iter().for_each(|job| gated.release(job));
    until(|| gated.pool.inner.lock().taken.is_empty());
    gated.run(1, 6..8);
    [6, 7].into_iter().for_each(|job| gated.release(job));
}

// covers: B-174
#[test]
fn pool_without_patience_rejects_nothing() {
    let mut gated = Gated::new(PoolBounds { patience: None, ..bounds(1, 1, 0) }, 3);
    gated.run(1, 0..1);
    gated.abandon(0);
    assert_eq!((gated.submit(1, 1), gated.submit(2, 2)), (Ok(true), Ok(true)));
    assert!(gated.look(0).is_empty() && gated.look(1_000_000).is_empty());
    (0..3).for_each(|job| gated.release(job));
    gated.begins(2);
    gated.begins(1);
}
