//! Steps that want a key, a signature, an assertion, or a code to be shown. Each callback has a
//! thread of its own, so that it delays no other step.

use super::super::oauth::Browsed;
use super::super::spawn;
use super::{Worker, answer};
use crate::keys;
use crate::sync::guarded;
use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use mcp_proto::auth::{
    Alg, AssertionRequest, AuthReport, DeviceCode, Input, Secret, SignKey, SignRequest, StepId, StoreFault,
};
use std::time::{SystemTime, UNIX_EPOCH};

impl Worker {
    /// Shows a code. Only a user who declines is an answer.
    pub(super) fn show_code(&self, step: StepId, code: DeviceCode) {
        let link = Arc::clone(&self.link);
        let begun = self.setup.code.clone().map(|show| {
            spawn(move || match guarded(|| show(&code)) {
                Some(Browsed::Opened | Browsed::Returned(_)) => {}
                Some(Browsed::Declined) | None => answer(&link, Input::Declined(step)),
            })
        });
        if begun.is_none_or(|begun| begun.is_err()) {
            self.answer(Input::Declined(step));
        }
    }

    /// Makes a key pair for proofs.
    pub(super) fn make_key(&self, step: StepId, alg: Alg) {
        let pair = keys::generate(alg).map(Box::new).map_err(StoreFault);
        self.answer(Input::KeyMade(step, pair));
    }

    /// Signs with a key of the configuration or of a login, or lets the application sign.
    pub(super) fn sign(&self, step: StepId, request: SignRequest) {
        let callback = self.setup.sign.clone().filter(|_| matches!(request.key, SignKey::Named(_)));
        let Some(sign) = callback else {
            return self.answer(signed(step, keys::sign(&request.key, request.alg, &request.input)));
        };
        let link = Arc::clone(&self.link);
        let begun = spawn(move || {
            let signature = guarded(|| sign(&request)).unwrap_or_else(|| Err("the callback panicked".to_owned()));
            answer(&link, signed(step, signature));
        });
        if let Err(why) = begun {
            self.answer(signed(step, Err(format!("there is no thread: {why}"))));
        }
    }

    /// Asks the application for an assertion, and reports what seems wrong with it.
    pub(super) fn assert(&self, step: StepId, request: AssertionRequest) {
        let Some(provide) = self.setup.assertion.clone() else {
            return self.answer(asserted(step, Err("the application provides none".to_owned())));
        };
        let (link, report) = (Arc::clone(&self.link), self.setup.report.clone());
        let begun = spawn(move || {
            let assertion = guarded(|| provide(&request)).unwrap_or_else(|| Err("the callback panicked".to_owned()));
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
            let doubt = assertion.as_ref().ok().and_then(|assertion| request.doubt(assertion, now));
            if let (Some(told), Some(doubt)) = (report, doubt) {
                guarded(|| told(&AuthReport::Deviation(doubt)));
            }
            answer(&link, asserted(step, assertion));
        });
        if let Err(why) = begun {
            self.answer(asserted(step, Err(format!("there is no thread: {why}"))));
        }
    }
}

fn signed(step: StepId, signature: Result<Vec<u8>, String>) -> Input {
    Input::Signed(step, signature.map_err(StoreFault))
}

fn asserted(step: StepId, assertion: Result<Secret, String>) -> Input {
    Input::Asserted(step, assertion.map_err(StoreFault))
}
