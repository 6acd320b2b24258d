//! The message hook of a recorded client. It is a function of the application, so its refusals and
//! replacements are inputs like any other.

use crate::hook::{Denial, MessageHook, Ruling};
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use core::sync::atomic::{AtomicUsize, Ordering};

/// What a hook did not let pass as it was: the number of the message, counted from 0 over all that
/// the hook sees, and the replacement or the refusal.
pub(super) type Rulings = BTreeMap<usize, Result<Ruling, Denial>>;

/// Returns a hook that repeats what was recorded.
pub(super) fn scripted(rulings: Rulings) -> MessageHook {
    let asked = AtomicUsize::new(0);
    MessageHook::new(move |_| match rulings.get(&asked.fetch_add(1, Ordering::Relaxed)) {
        None => Ok(Ruling::Pass),
        Some(ruling) => ruling.clone(),
    })
}

/// An observed hook.
#[derive(Clone, Debug, Default)]
pub(super) struct Overheard(pub(super) Arc<std::sync::Mutex<(usize, Rulings)>>);

impl Overheard {
    /// Returns the same hook, observed while this observer or a clone of it exists.
    pub(super) fn listen(&self, hook: MessageHook) -> MessageHook {
        let heard = Arc::downgrade(&self.0);
        MessageHook::new(move |seen| {
            let ruling = hook.pass(seen);
            let Some(heard) = heard.upgrade().map(Self) else { return ruling };
            let (asked, rulings) = &mut *heard.lock();
            if ruling != Ok(Ruling::Pass) {
                rulings.insert(*asked, ruling.clone());
            }
            *asked += 1;
            ruling
        })
    }

    /// Returns the refusals and replacements since the last call.
    pub(super) fn take(&self) -> Rulings {
        core::mem::take(&mut self.lock().1)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, (usize, Rulings)> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}
