//! How the driver shares its executor: polled by hand, over a stream in memory.

use crate::{ClientOptions, Stderr, connect_driven};
use smol::future::Future;
use smol::io::{AsyncRead, sink};
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};

/// A server that sends this many lines, one at a time, and then nothing.
struct Flood(Arc<AtomicUsize>);

impl AsyncRead for Flood {
    fn poll_read(self: Pin<&mut Self>, _cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        const LINE: &[u8] = b"{\"jsonrpc\":\"2.0\",\"method\":\"custom/note\"}\n";
        if self.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_err() {
            return Poll::Pending;
        }
        buffer[..LINE.len()].copy_from_slice(LINE);
        Poll::Ready(Ok(LINE.len()))
    }
}

#[derive(Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

// covers: B-277
#[test]
fn driver_is_polled_again_after_its_turns() {
    let left = Arc::new(AtomicUsize::new(2000));
    let (client, driver) =
        connect_driven((Flood(left.clone()), sink()), ClientOptions::new().stderr(Stderr::Discard)).expect("a target");
    let (woken, mut driver) = (Arc::<Woken>::default(), pin!(driver));
    let waker = Waker::from(woken.clone());
    let (mut polls, mut most) = (0, 0);
    woken.wake_by_ref();
    // Only when it was woken, like an executor. Nothing except the driver itself wakes it here.
    while woken.0.swap(false, Ordering::SeqCst) {
        let before = left.load(Ordering::SeqCst);
        assert!(driver.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        most = most.max(before - left.load(Ordering::SeqCst));
        polls += 1;
    }
    assert_eq!(left.load(Ordering::SeqCst), 0, "after {polls} polls no task polls it");
    assert!(most <= 300, "{most} lines in one poll");
    drop(client);
}
