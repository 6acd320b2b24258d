//! The results and errors of `server/discover` and `initialize`.

use crate::client::env::ClientEnv;
use crate::error::DiagnosticKind;
use crate::model::capabilities::{self, ServerCapabilities};
use crate::model::lifecycle::{self, Implementation, ServerInfo, meta};
use crate::rpc::{DecodeError, ErrorObject, Object, RawJson};
use crate::version::ProtocolVersion;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

pub(super) fn read_discover(
    result: &RawJson,
    asked: ProtocolVersion,
) -> Result<(Vec<String>, ServerInfo), DecodeError> {
    let object = Object::read(result)?;
    if let Some(kind) = object.optional::<String>("resultType")?.filter(|kind| kind != "complete") {
        return Err(DecodeError::new(format!("`resultType` is {kind}")));
    }
    let theirs = object.required("supportedVersions")?;
    let meta = object.optional_object(meta::META)?.unwrap_or_default();
    let info = ServerInfo {
        version: asked,
        implementation: meta.optional_object(meta::SERVER_INFO)?.map(Implementation::read).transpose()?,
        capabilities: ServerCapabilities::read(
            capabilities::read_member(&object)?.ok_or_else(|| DecodeError::new("`capabilities` is missing"))?,
        ),
        instructions: object.optional("instructions")?,
    };
    Ok((theirs, info))
}

pub(super) fn read_initialize(result: &RawJson) -> Result<(String, ServerInfo), DecodeError> {
    let object = Object::read(result)?;
    let theirs: String = object.required("protocolVersion")?;
    let info = ServerInfo {
        version: ProtocolVersion::ALL[0],
        implementation: object.optional_object("serverInfo")?.map(Implementation::read).transpose()?,
        capabilities: ServerCapabilities::read(capabilities::read_member(&object)?.unwrap_or_default()),
        instructions: object.optional("instructions")?,
    };
    Ok((theirs, info))
}

/// Emits a diagnostic if the server says of itself something that is taken as it is meant.
pub(super) fn note_deviation(env: &mut ClientEnv, result: &RawJson, info: Option<RawJson>) {
    let capabilities = Object::read(result).ok().and_then(|result| result.get("capabilities"));
    if let Some(detail) = lifecycle::deviation("serverInfo", info.as_ref(), capabilities.as_ref()) {
        env.diagnose(DiagnosticKind::Deviation, detail);
    }
}

/// Returns the revisions that an error names in `data.supported`. `None` if it names none that the
/// client can read.
pub(super) fn supported(error: &ErrorObject) -> Option<Vec<String>> {
    Object::read(error.data.as_ref()?).ok()?.optional("supported").ok()?
}
