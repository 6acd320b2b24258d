//! `notifications/progress`.

use crate::rpc::{DecodeError, Object, RawJson};
use alloc::string::String;

/// How far a request is.
#[derive(Clone, PartialEq, Debug, Default)]
#[non_exhaustive]
pub struct Progress {
    /// How much is done, in a unit of the handler's choice; increases with every notification.
    pub progress: f64,
    /// How much there is, if known.
    pub total: Option<f64>,
    /// What is being done, for people. Not sent before 2025-03-26, which introduced it.
    pub message: Option<String>,
}

impl Progress {
    /// So much is done.
    pub const fn new(progress: f64) -> Self {
        Self { progress, total: None, message: None }
    }

    /// Out of so much.
    #[must_use]
    pub const fn total(mut self, total: f64) -> Self {
        self.total = Some(total);
        self
    }

    /// What is being done.
    #[must_use]
    pub fn message(mut self, message: impl Into<String>) -> Self {
        self.message = Some(message.into());
        self
    }

    /// The part that is done, from 0 to 1; `None` without a positive total.
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

    /// The members on the wire, beside the token. Numbers that JSON cannot write (NaN, infinities) are refused by `None`.
    pub(crate) fn write(&self, params: Object, with_message: bool) -> Option<Object> {
        let total = match self.total {
            Some(total) => Some(number(total)?),
            None => None,
        };
        let message = self.message.as_deref().filter(|_| with_message);
        Some(params.with("progress", number(self.progress)?).with_opt("total", total).with_opt("message", message))
    }
}

/// A finite number as JSON. A whole one is written without a fraction, which some readers of integers insist on.
fn number(n: f64) -> Option<RawJson> {
    /// From here on not every integer has a number of its own.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let whole = n as i64;
    if n.abs() < EXACT && whole as f64 == n {
        return Some(whole.into());
    }
    n.is_finite().then(|| RawJson::encode(&n).ok()).flatten()
}
