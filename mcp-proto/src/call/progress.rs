//! `notifications/progress`.

use crate::rpc::{DecodeError, Object, RawJson};
use alloc::string::String;

/// The progress of a request.
#[derive(Clone, PartialEq, Debug, Default)]
#[non_exhaustive]
pub struct Progress {
    /// The amount done, in a unit that the handler chooses. It increases with every notification.
    pub progress: f64,
    /// The total amount, if known.
    pub total: Option<f64>,
    /// The current activity, for people. Not sent before 2025-03-26, which introduced it.
    pub message: Option<String>,
}

impl Progress {
    /// Creates a progress of this amount.
    pub const fn new(progress: f64) -> Self {
        Self { progress, total: None, message: None }
    }

    /// Sets the total amount.
    #[must_use]
    pub const fn total(mut self, total: f64) -> Self {
        self.total = Some(total);
        self
    }

    /// Sets the current activity.
    #[must_use]
    pub fn message(mut self, message: impl Into<String>) -> Self {
        self.message = Some(message.into());
        self
    }

    /// Returns the fraction that is done, from 0 to 1. `None` without a positive total.
    pub fn fraction(&self) -> Option<f64> {
        self.total.filter(|total| *total > 0.0).map(|total| (self.progress / total).clamp(0.0, 1.0))
    }

    pub(crate) fn read(params: &Object) -> Result<Self, DecodeError> {
        Ok(Self {
            progress: params.required("progress")?,
            total: params.optional("total")?,
            message: params.optional("message")?,
        })
    }

    /// Writes the members of the params other than the token. Returns `None` for numbers that JSON
    /// cannot represent (NaN, infinities).
    pub(crate) fn write(&self, params: Object, with_message: bool) -> Option<Object> {
        let total = match self.total {
            Some(total) => Some(number(total)?),
            None => None,
        };
        let message = self.message.as_deref().filter(|_| with_message);
        Some(params.with("progress", number(self.progress)?).with_opt("total", total).with_opt("message", message))
    }
}

/// Returns a finite number as JSON. A whole number has no fraction part, since some readers of
/// integers reject one.
fn number(n: f64) -> Option<RawJson> {
    /// From here on, an `f64` does not represent every integer.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let whole = n as i64;
    if n.abs() < EXACT && whole as f64 == n {
        return Some(whole.into());
    }
    n.is_finite().then(|| RawJson::encode(&n).ok()).flatten()
}
