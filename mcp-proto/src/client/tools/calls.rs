//! What the client takes from the known tools for its calls, and what it learns from their results.

use super::{CALL, LIST, Lesson, SHOWN, Tools};
use crate::call::RawCall;
use crate::client::call_table::CallState;
use crate::client::env::Env;
use crate::error::DiagnosticKind;
use crate::rpc::{EncodeError, Object, RawJson};
use crate::version::{Era, ProtocolVersion};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

impl Tools {
    /// Returns whether a call may run twice: the application permits it, or the server calls the
    /// tool read-only or idempotent.
    pub(in crate::client) fn may_run_twice(&self, call: &RawCall) -> bool {
        let is_safe = |params| self.is_repeatable(params);
        call.options.repeatable || call.method == CALL && call.params.as_ref().is_ok_and(is_safe)
    }

    /// Learns from the result of a call. Returns the result for the application. On a duplex
    /// connection the engine only uses the output schemas, and only if it validates results.
    pub(in crate::client) fn learn_from(
        &mut self,
        env: &mut Env,
        call: Option<&CallState>,
        result: RawJson,
        version: ProtocolVersion,
    ) -> RawJson {
        let lesson = Lesson {
            mirrored: !env.is_duplex() && version.era() == Era::Modern,
            hints: !env.is_duplex(),
            schemas: env.config.validator().is_some(),
            max: env.config.limits.client.max_tools,
        };
        if !lesson.hints && !lesson.schemas || call.is_none_or(|call| call.raw.method != LIST) {
            return result;
        }
        let page = self.learn(&result, &lesson);
        for (name, why) in page.invalid {
            let name: String = name.chars().take(SHOWN).collect();
            env.diagnose(DiagnosticKind::InvalidTool, format!("{name}: {why}"));
        }
        page.without.unwrap_or(result)
    }

    /// Returns the header fields that mirror arguments of a request.
    ///
    /// # Errors
    /// As [`headers`](Self::headers).
    pub(in crate::client) fn mirrored(
        &self,
        env: &Env,
        method: &str,
        params: &Object,
        version: ProtocolVersion,
    ) -> Result<Vec<(String, String)>, EncodeError> {
        match (method, version.era()) {
            (CALL, Era::Modern) if !env.is_duplex() => self.headers(params),
            _ => Ok(Vec::new()),
        }
    }
}
