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
use std::time::Duration;

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

struct Woken(SyncSender<()>);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        // Woken twice is woken.
        let _ = self.0.try_send(());
    }
}

// covers: B-277
#[test]
fn driver_is_polled_again_after_its_turns() {
    let left = Arc::new(AtomicUsize::new(2000));
    let (client, driver) =
        connect_driven((Flood(left.clone()), sink()), ClientOptions::new().stderr(Stderr::Discard)).expect("a target");
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
    assert!(most <= 300, "{most} lines in one poll");
    drop(client);
}
