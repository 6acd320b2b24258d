//! The compiled schemas of a tool: its arguments are checked before its handler runs, and its
//! result after (TOOL-S-020). Which validator there is, the application decides.

use super::output::ToolError;
use crate::error::{Diagnostic, DiagnosticKind};
use crate::model::tools::Tool;
use crate::rpc::{ErrorObject, RawJson, code};
use crate::schema::{BadSchema, Checker, Validator};
use crate::version::ProtocolVersion;
use alloc::format;

/// The compiled schemas of a tool.
#[derive(Clone, Debug)]
pub(super) struct Schemas {
    input: Result<Checker, BadSchema>,
    output: Option<Result<Checker, BadSchema>>,
}

impl Schemas {
    pub(super) fn compile(validator: &Validator, tool: &Tool) -> Self {
        Self {
            input: validator.compile(&tool.input_schema),
            output: tool.output_schema.as_ref().map(|schema| validator.compile(schema)),
        }
    }

    /// Returns the first schema that cannot be used.
    pub(super) fn bad(&self) -> Option<&BadSchema> {
        let output = || self.output.as_ref().and_then(|output| output.as_ref().err());
        self.input.as_ref().err().or_else(output)
    }

    /// Checks the arguments of a call. Returns what checks its result, if its client was sent the
    /// output schema (`promised`).
    ///
    /// # Errors
    /// Why the handler of the call must not run.
    pub(super) fn admit(
        &self,
        version: ProtocolVersion,
        arguments: &RawJson,
        promised: bool,
    ) -> Result<Option<Checker>, CallDefect> {
        let usable = |compiled: &Result<Checker, BadSchema>| match compiled {
            Ok(checker) => Ok(checker.clone()),
            Err(bad) => Err(CallDefect::Schema(bad.clone())),
        };
        let input = usable(&self.input)?;
        // Before the tool has an effect whose result cannot be checked.
        let output = self.output.as_ref().filter(|_| promised).map(usable).transpose()?;
        match input.check(arguments) {
            Ok(()) => Ok(output),
            Err(e) => {
                Err(CallDefect::Arguments(ToolError::invalid_arguments(version, format!("invalid arguments: {e}"))))
            }
        }
    }
}

/// Why a call does not run.
#[derive(Debug)]
pub(super) enum CallDefect {
    /// Its arguments do not match.
    Arguments(ToolError),
    /// A schema of its tool cannot be used.
    Schema(BadSchema),
}

impl BadSchema {
    /// Returns the answer to a call of a tool with this schema. The client learns no more, since it
    /// is not its fault.
    pub(super) fn answer(&self, tool: &Tool) -> (ErrorObject, Diagnostic) {
        let error = ErrorObject::new(code::INTERNAL_ERROR, "a schema of the tool cannot be used");
        (error, Diagnostic::new(DiagnosticKind::BadSchema, format!("{}: {self}", tool.name)))
    }
}
