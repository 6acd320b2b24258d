//! The validation of the results of tools (MCP 2025-06-18 and later, tools: output schema). What is
//! valid is decided by the validator of the application. This module decides which results it sees,
//! and what happens to the others.

use super::tools::{CALL, SHOWN, ToolIndex};
use super::{ClientConfig, call_table::CallState, env::ClientEnv};
use crate::error::{DiagnosticKind, InvalidResult};
use crate::rpc::{JsonKind, Object, RawJson};
use crate::schema::Validator;
use crate::version::ProtocolVersion;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;

/// The validation of the results of tools by a client. Create it with [`report`](Self::report) or
/// [`reject`](Self::reject).
///
/// A result is validated if its tool has an `outputSchema` in the last `tools/list` that the client
/// received on this connection. The client keeps the schemas itself, at most
/// [`max_tools`](crate::limits::ClientLimits::max_tools). Its `structuredContent` must be present
/// and match the schema. Not validated are results with `isError`, results in revisions before
/// 2025-06-18, results of a tool that was not listed, and results of a kind that an extension
/// defines.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct ResultValidation {
    /// The validator. `None`: results are not compared with schemas.
    #[cfg_attr(feature = "record", serde(with = "crate::record::value"))]
    pub validator: Option<Validator>,
    /// What happens to a result that does not match, or whose schema cannot be used.
    pub on_mismatch: OnMismatch,
    /// Whether the `content` of every result of a tool must be an array that is not empty, also in
    /// a result with `isError` and in every revision. Otherwise the call ends with
    /// [`CallError::InvalidResult`](crate::CallError::InvalidResult), whatever `on_mismatch` is.
    /// The specification allows an empty array. Default `false`.
    pub require_content: bool,
}

/// What a client does with a result that does not match its schema.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
pub enum OnMismatch {
    /// It emits a diagnostic, `schema-mismatch` or `bad-schema`, and delivers the result.
    #[default]
    Report,
    /// The call ends with [`CallError::InvalidResult`](crate::CallError::InvalidResult). The tool
    /// has run.
    Reject,
}

impl ResultValidation {
    /// Reports results that do not match, and delivers them.
    pub fn report(validator: Validator) -> Self {
        Self { validator: Some(validator), on_mismatch: OnMismatch::Report, require_content: false }
    }

    /// Ends the calls whose results do not match.
    pub fn reject(validator: Validator) -> Self {
        Self { on_mismatch: OnMismatch::Reject, ..Self::report(validator) }
    }

    /// Compares no result with a schema, but requires [content](Self::require_content).
    pub fn content() -> Self {
        Self { validator: None, on_mismatch: OnMismatch::Report, require_content: true }
    }

    /// Also requires [content](Self::require_content).
    #[must_use]
    pub fn with_content(mut self) -> Self {
        self.require_content = true;
        self
    }
}

impl ClientConfig {
    /// Returns the validator of the results of tools.
    pub(super) fn validator(&self) -> Option<&Validator> {
        self.validate.as_ref()?.validator.as_ref()
    }
}

impl ToolIndex {
    /// Validates the result of a call. Emits the diagnostic of a result that is delivered although
    /// it is not valid.
    ///
    /// # Errors
    /// [`InvalidResult`] if the call ends with it.
    pub(super) fn validate(
        &mut self,
        env: &mut ClientEnv,
        call: Option<&CallState>,
        result: &RawJson,
        version: ProtocolVersion,
    ) -> Result<(), InvalidResult> {
        let config = Arc::clone(&env.config);
        let (Some(validate), Some(call)) = (&config.validate, call) else { return Ok(()) };
        // A result that is no object cannot be decoded.
        let (true, Ok(result)) = (is_of_tool(call), Object::read(result)) else { return Ok(()) };
        // A kind of result that an extension defines has its own shape.
        if result.str("resultType").is_some_and(|kind| kind != "complete") {
            return Ok(());
        }
        if validate.require_content && !has_content(&result) {
            return Err(InvalidResult::NoContent);
        }
        let is_error = result.get("isError").is_some_and(|is_error| is_error == true.into());
        let (Some(validator), Ok(params), false, true) =
            (&validate.validator, &call.raw.params, is_error, version.rules().titles)
        else {
            return Ok(());
        };
        let max = config.limits.client.max_compiled_schemas;
        let fault = match (self.checker(validator, params, max), result.get("structuredContent")) {
            (None, _) => return Ok(()),
            (Some(Err(bad)), _) => InvalidResult::Schema(bad),
            (Some(Ok(_)), None) => InvalidResult::NoStructure,
            (Some(Ok(checker)), Some(value)) => match checker.check(&value) {
                Ok(()) => return Ok(()),
                Err(mismatch) => InvalidResult::Mismatch(mismatch),
            },
        };
        match validate.on_mismatch {
            OnMismatch::Reject => Err(fault),
            OnMismatch::Report => {
                let kind = match fault {
                    InvalidResult::Schema(_) => DiagnosticKind::BadSchema,
                    InvalidResult::Mismatch(_) | InvalidResult::NoStructure | InvalidResult::NoContent => {
                        DiagnosticKind::SchemaMismatch
                    }
                };
                let name: String = params.str("name").unwrap_or_default().chars().take(SHOWN).collect();
                env.diagnose(kind, format!("{name}: {fault}"));
                Ok(())
            }
        }
    }
}

fn is_of_tool(call: &CallState) -> bool {
    call.raw.method == CALL
}

fn has_content(result: &Object) -> bool {
    result.kind("content") == Some(JsonKind::Array)
        && result.get("content").is_some_and(|content| content.elements().next().is_some())
}
