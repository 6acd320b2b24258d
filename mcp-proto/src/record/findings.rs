//! The validator of a recorded client. It is a value of the application, so what it finds wrong is
//! recorded as it happens, like the refusals of a message hook.

use crate::client::ClientConfig;
use crate::rpc::RawJson;
use crate::schema::{BadSchema, Checker, Mismatch, Validator};
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use core::sync::atomic::{AtomicUsize, Ordering};
use serde::{Deserialize, Serialize};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What a validator found wrong.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Finding {
    /// It did not compile a schema.
    Schema(BadSchema),
    /// A value did not match.
    Value(Mismatch),
}

/// The findings of a validator: the number of the schema or value, counted from 0 over all that the
/// validator sees.
pub(super) type Findings = BTreeMap<usize, Finding>;

impl Finding {
    /// Returns it without its texts, which are of the peer.
    pub(super) fn masked(self) -> Self {
        match self {
            Self::Schema(_) => Self::Schema(BadSchema::invalid("", "")),
            Self::Value(_) => Self::Value(Mismatch::new("", "")),
        }
    }
}

/// Returns a configuration with another validator, if it has one.
pub(super) fn with_validator(
    config: Arc<ClientConfig>,
    replace: impl FnOnce(&Validator) -> Validator,
) -> Arc<ClientConfig> {
    let Some(validate) = config.validate.as_ref() else { return config };
    let Some(validator) = &validate.validator else { return config };
    let mut validate = validate.clone();
    validate.validator = Some(replace(validator));
    Arc::new(ClientConfig { validate: Some(validate), ..ClientConfig::clone(&config) })
}

/// Returns a validator that repeats recorded findings.
pub(super) fn scripted(findings: Findings) -> Validator {
    let state = Arc::new((findings, AtomicUsize::new(0)));
    Validator::new(move |_: &RawJson| {
        let next =
            |(findings, asked): &(Findings, AtomicUsize)| findings.get(&asked.fetch_add(1, Ordering::Relaxed)).cloned();
        if let Some(Finding::Schema(bad)) = next(&state) {
            return Err(bad);
        }
        let state = Arc::clone(&state);
        Ok(Checker::new(move |_: &RawJson| match next(&state) {
            Some(Finding::Value(mismatch)) => Err(mismatch),
            _ => Ok(()),
        }))
    })
}

/// The findings of an observed validator since they were last taken.
#[derive(Clone, Debug, Default)]
pub(super) struct FindingsLog(Arc<Mutex<(usize, Findings)>>);

impl FindingsLog {
    /// Returns the same validator, observed while this observer or a clone of it exists.
    pub(super) fn listen(&self, validator: Validator) -> Validator {
        let observed = Arc::downgrade(&self.0);
        let note = move |finding| {
            if let Some(observed) = observed.upgrade() {
                Self(observed).note(finding);
            }
        };
        Validator::new(move |schema: &RawJson| {
            let compiled = validator.compile(schema);
            note(compiled.as_ref().err().cloned().map(Finding::Schema));
            let (checker, note) = (compiled?, note.clone());
            Ok(Checker::new(move |value: &RawJson| {
                let checked = checker.check(value);
                note(checked.as_ref().err().cloned().map(Finding::Value));
                checked
            }))
        })
    }

    /// Returns the findings since the last call.
    pub(super) fn take(&self) -> Findings {
        core::mem::take(&mut self.lock().1)
    }

    fn note(&self, finding: Option<Finding>) {
        let (asked, findings) = &mut *self.lock();
        if let Some(finding) = finding {
            findings.insert(*asked, finding);
        }
        *asked += 1;
    }

    fn lock(&self) -> MutexGuard<'_, (usize, Findings)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
