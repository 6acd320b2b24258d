//! The message hook of a client that is recorded: a function of the application, so that what it refuses is an input like any other.

use crate::hook::{Denied, MessageHook};
use alloc::collections::BTreeMap;
use alloc::string::String;
#[cfg(feature = "std")]
use alloc::sync::Arc;
use core::sync::atomic::{AtomicUsize, Ordering};

/// What a hook refuses: the number of the message, counted from 0 over all that it is asked about, and the reason.
pub(super) type Denials = BTreeMap<usize, String>;

/// Refuses what was refused before.
pub(super) fn scripted(denials: &Denials) -> MessageHook {
    let (denials, asked) = (denials.clone(), AtomicUsize::new(0));
    MessageHook::new(move |_| match denials.get(&asked.fetch_add(1, Ordering::Relaxed)) {
        None => Ok(()),
        Some(reason) => Err(Denied::new(reason.as_str())),
    })
}

/// A hook that is listened to.
#[cfg(feature = "std")]
#[derive(Clone, Debug, Default)]
pub(super) struct Overheard(pub(super) Arc<std::sync::Mutex<(usize, Denials)>>);

#[cfg(feature = "std")]
impl Overheard {
    /// The same hook, listened to as long as there is this listener or a clone of it: after that nobody would take what was heard.
    pub(super) fn listen(&self, hook: MessageHook) -> MessageHook {
        let heard = Arc::downgrade(&self.0);
        MessageHook::new(move |seen| {
            let ruling = hook.pass(seen);
            let Some(heard) = heard.upgrade().map(Self) else { return ruling };
            let (asked, denials) = &mut *heard.lock();
            if let Err(Denied(reason)) = &ruling {
                denials.insert(*asked, reason.clone());
            }
            *asked += 1;
            ruling
        })
    }

    /// What it has refused since this was last asked.
    pub(super) fn take(&self) -> Denials {
        core::mem::take(&mut self.lock().1)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, (usize, Denials)> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// Without an operating system there is no lock, and a hook cannot be listened to.
#[cfg(not(feature = "std"))]
#[derive(Clone, Debug, Default)]
pub(super) struct Overheard(());

#[cfg(not(feature = "std"))]
impl Overheard {
    pub(super) fn take(&self) -> Denials {
        Denials::new()
    }
}
