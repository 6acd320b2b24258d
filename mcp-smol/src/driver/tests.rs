//! How the driver shares its executor: polled by hand, over a stream in memory.

use crate::{ClientOptions, Stderr, connect_driven};
use smol::future::Future;
use smol::io::{AsyncRead, sink};
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

/// A server that sends a number of lines, one at a time, and then nothing. Each takes this time.
struct Flood(Arc<AtomicUsize>, Duration);

impl AsyncRead for Flood {
    fn poll_read(self: Pin<&mut Self>, _cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        const LINE: &[u8] = b"{\"jsonrpc\":\"2.0\",\"method\":\"custom/note\"}\n";
        if self.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_err() {
            return Poll::Pending;
        }
        let began = Instant::now();
        while began.elapsed() < self.1 {
            std::hint::spin_loop();
        }
        buffer[..LINE.len()].copy_from_slice(LINE);
        Poll::Ready(Ok(LINE.len()))
    }
}

struct Woken(SyncSender<()>);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        // Woken twice is woken.
        let _ = self.0.try_send(());
    }
}

/// Drives a client of a server that sends this many lines, until it has. Returns the most lines
/// that one poll has read.
fn most_in_one_poll(lines: usize, each: Duration) -> usize {
    let left = Arc::new(AtomicUsize::new(lines));
    let (client, driver) =
        connect_driven((Flood(left.clone(), each), sink()), ClientOptions::new().stderr(Stderr::Discard))
            .expect("a target");
    let (wake, woken) = sync_channel(1);
    let (waker, mut driver) = (Waker::from(Arc::new(Woken(wake))), pin!(driver));
    waker.wake_by_ref();
    let mut most = 0;
    // Only when it was woken, like an executor. Nothing except the driver itself wakes it here.
    while left.load(Ordering::SeqCst) > 0 {
        woken.recv_timeout(Duration::from_secs(60)).expect("the driver wakes its task");
        let before = left.load(Ordering::SeqCst);
        assert!(driver.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        most = most.max(before - left.load(Ordering::SeqCst));
    }
    drop(client);
    most
}

// covers: B-277
#[test]
fn driver_is_polled_again_after_its_turns() {
    let most = most_in_one_poll(2000, Duration::ZERO);
    assert!(most <= 64, "{most} lines in one poll");
}

// covers: B-074
#[test]
fn poll_ends_once_it_has_taken_long() {
    let most = most_in_one_poll(20, Duration::from_millis(1));
    assert!(most <= 2, "{most} lines in one poll, each of which takes 1 ms");
}
