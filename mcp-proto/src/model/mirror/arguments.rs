//! The annotated arguments of a call (2026-07-28 transports, custom headers from tool parameters).

use super::Mirror;
use crate::rpc::{Id, JsonKind, Object, RawJson};
use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};

/// The greatest absolute value of an integer in a field: up to it, a double is exact.
const MAX_INTEGER: u64 = (1 << 53) - 1;

/// An annotated property, in the arguments of one call.
#[derive(Clone, Copy)]
pub(crate) struct MirrorArgument<'a> {
    /// The name of the field, without the common prefix.
    pub(crate) header: &'a str,
    /// The name of the property.
    pub(crate) argument: &'a str,
    /// The value. `None` if it is absent or `null`, which no field mirrors.
    pub(crate) value: Option<&'a RawJson>,
}

impl Mirror {
    /// Visits each annotated property of these arguments, until one is an error.
    pub(crate) fn visit<E>(
        &self,
        arguments: &Object,
        tell: &mut dyn FnMut(MirrorArgument<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        // There may be many arguments. Each is visited once.
        let annotated = arguments.iter().filter(|(name, _)| self.inner.contains_key(&**name));
        let there: BTreeMap<_, _> = annotated.filter(|(_, value)| value.kind() != JsonKind::Null).collect();
        for (argument, inner) in &self.inner {
            let value = there.get(argument.as_str());
            if let Some(header) = &inner.header {
                tell(MirrorArgument { header, argument, value })?;
            }
            if !inner.inner.is_empty() {
                let object = value.and_then(|value| Object::read(value).ok()).unwrap_or_default();
                inner.visit(&object, tell)?;
            }
        }
        Ok(())
    }
}

/// Returns the text of this argument for a field, before its encoding. `None` for a value that no
/// field can represent.
pub(crate) fn text_of(value: &RawJson) -> Option<String> {
    match value.id() {
        _ if value.kind() == JsonKind::Bool => Some(value.as_str().to_string()),
        Some(Id::Text(text)) => Some(text),
        Some(Id::Int(n)) if n.unsigned_abs() <= MAX_INTEGER => Some(n.to_string()),
        _ => None,
    }
}

/// Returns whether the decoded text of a field equals this argument. Integers compare as numbers:
/// `42.0` is `42`.
pub(crate) fn says(text: &str, value: &RawJson) -> bool {
    let number = || RawJson::parse(text.as_bytes().to_vec()).ok().filter(|json| json.as_str() == text);
    match text_of(value) {
        None => false,
        // A string is not a number.
        Some(_) if value.kind() == JsonKind::Number => {
            number().is_some_and(|number| number.kind() == JsonKind::Number && number.id() == value.id())
        }
        Some(expected) => expected == text,
    }
}
