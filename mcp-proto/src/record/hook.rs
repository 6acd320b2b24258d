//! The message hook of a recorded client. It is a function of the application, so its refusals are
//! inputs like any other.

use crate::hook::{Denial, MessageHook};
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::sync::Arc;
use core::sync::atomic::{AtomicUsize, Ordering};

/// The refusals of a hook: the number of the message, counted from 0 over all that the hook sees,
/// and the reason.
pub(super) type Denials = BTreeMap<usize, String>;

/// Returns a hook that repeats recorded refusals.
pub(super) fn scripted(denials: Denials) -> MessageHook {
    let asked = AtomicUsize::new(0);
    MessageHook::new(move |_| match denials.get(&asked.fetch_add(1, Ordering::Relaxed)) {
        None => Ok(()),
        Some(reason) => Err(Denial::new(reason.as_str())),
    })
}

/// An observed hook.
#[derive(Clone, Debug, Default)]
pub(super) struct Overheard(pub(super) Arc<std::sync::Mutex<(usize, Denials)>>);

impl Overheard {
    /// Returns the same hook, observed while this observer or a clone of it exists.
    pub(super) fn listen(&self, hook: MessageHook) -> MessageHook {
        let heard = Arc::downgrade(&self.0);
        MessageHook::new(move |seen| {
            let ruling = hook.pass(seen);
            let Some(heard) = heard.upgrade().map(Self) else { return ruling };
            let (asked, denials) = &mut *heard.lock();
            if let Err(Denial(reason)) = &ruling {
                denials.insert(*asked, reason.clone());
            }
            *asked += 1;
            ruling
        })
    }

    /// Returns the refusals since the last call.
    pub(super) fn take(&self) -> Denials {
        core::mem::take(&mut self.lock().1)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, (usize, Denials)> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}
