//! Which models a server prefers.

use crate::rpc::{DecodeError, Object, RawJson};
use alloc::string::String;
use alloc::vec::Vec;

/// The preferred models. Hints take precedence over priorities.
#[derive(Clone, PartialEq, Debug, Default)]
#[non_exhaustive]
pub struct ModelPreferences {
    /// Names of models, or parts of them. The first that matches a model of the client is used.
    pub hints: Vec<String>,
    /// How important low cost is, from 0 to 1.
    pub cost: Option<f64>,
    /// How important low latency is, from 0 to 1.
    pub speed: Option<f64>,
    /// How important capability is, from 0 to 1.
    pub intelligence: Option<f64>,
    /// Members that this type does not name, unchanged.
    pub other: Object,
}

impl ModelPreferences {
    pub(super) fn read(object: Object) -> Result<Self, DecodeError> {
        let hints = object.optional_array("hints")?.unwrap_or_default();
        let name = |hint: &RawJson| Object::read(hint).and_then(|hint| hint.optional("name")).transpose();
        Ok(Self {
            hints: hints.iter().filter_map(name).collect::<Result<_, _>>()?,
            cost: object.optional("costPriority")?,
            speed: object.optional("speedPriority")?,
            intelligence: object.optional("intelligencePriority")?,
            other: object.without(&["hints", "costPriority", "speedPriority", "intelligencePriority"]),
        })
    }

    pub(super) fn write(&self) -> Object {
        let hints = self.hints.iter().map(|name| Object::new().with("name", name.as_str()).into());
        let hints = (!self.hints.is_empty()).then(|| hints.collect::<Vec<RawJson>>());
        Object::new()
            .with_opt("hints", hints)
            .with_opt("costPriority", number(self.cost))
            .with_opt("speedPriority", number(self.speed))
            .with_opt("intelligencePriority", number(self.intelligence))
            .with_all(&self.other)
    }
}

/// Returns a number as JSON. JSON has neither infinity nor NaN.
pub(super) fn number(number: Option<f64>) -> Option<RawJson> {
    number.filter(|number| number.is_finite()).and_then(|number| RawJson::encode(&number).ok())
}
