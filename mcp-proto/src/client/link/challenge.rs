//! The rule for challenges: which responses ask for credentials, and how often.

use crate::client::env::ClientEnv;

/// The statuses that were answered with credentials, since the server last accepted them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct TriedStatuses {
    unauthorized: bool,
    forbidden: bool,
}

impl TriedStatuses {
    pub(super) fn mark(&mut self, status: u16) {
        match status {
            401 => self.unauthorized = true,
            _ => self.forbidden = true,
        }
    }

    const fn has(self, status: u16) -> bool {
        if status == 401 { self.unauthorized } else { self.forbidden }
    }
}

/// Returns whether a response with this status and these `WWW-Authenticate` fields is a challenge
/// that the application answers. Each status is one once, so that there is no loop.
pub(super) fn is_challenge<'a>(
    env: &ClientEnv,
    status: u16,
    mut fields: impl Iterator<Item = &'a str>,
    tried: TriedStatuses,
) -> bool {
    let answerable = match status {
        401 => true,
        403 => env.config.compat.retry_plain_403 || fields.any(|field| field.contains("insufficient_scope")),
        _ => false,
    };
    env.config.authorize && answerable && !tried.has(status)
}
