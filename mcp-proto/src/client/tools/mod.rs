//! What a client knows of the tools of the server it is connected to: which arguments each wants mirrored into header fields (2026-07-28
//! transports, custom headers from tool parameters), and which may run twice. Learnt from every `tools/list` that passes, asked for by
//! whomever; forgotten with the connection.

#[cfg(test)]
mod tests;

use crate::model::headers::{PARAM, encode};
use crate::model::mirror::{self, Mirror};
use crate::rpc::{EncodeError, Object, RawJson};
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// So many bytes of names count as one more tool.
const WEIGHT: usize = 1 << 10;

/// The tools of one connection of which there is anything to know.
#[derive(Debug, Default)]
pub(super) struct Tools {
    known: BTreeMap<String, Known>,
    /// Their names in the order in which they were listed last.
    order: BTreeMap<u64, String>,
    listed: u64,
    weight: usize,
}

#[derive(Debug)]
struct Known {
    /// The place in `order`.
    place: u64,
    weight: usize,
    repeatable: bool,
    mirror: Mirror,
}

/// What there was in one page of `tools/list`.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct Page {
    /// The page without the tools that are left out; `None` if it stands as it is.
    pub(super) without: Option<RawJson>,
    /// The tools that are left out, and why.
    pub(super) invalid: Vec<(String, String)>,
}

impl Tools {
    /// Takes a page of `tools/list` to knowledge: of at most `max` tools, the one that was listed longest ago being forgotten first. If
    /// arguments are mirrored on this connection, tools that are annotated against the rules are left out of the page. What is no tool
    /// stays for whoever reads the page.
    pub(super) fn learn(&mut self, result: &RawJson, mirrored: bool, max: usize) -> Page {
        let mut page = Page::default();
        let Ok(mut object) = Object::read(result) else { return page };
        let Ok(Some(tools)) = object.optional_array("tools") else { return page };
        let count = tools.len();
        let mut kept = Vec::with_capacity(count);
        for json in tools {
            let valid = Object::read(&json).ok().and_then(|tool| {
                let name: String = tool.optional("name").ok().flatten()?;
                let mirror = match tool.get("inputSchema").filter(|_| mirrored) {
                    Some(schema) => mirror::read(schema),
                    None => Ok(Mirror::default()),
                };
                Some((name, mirror, is_repeatable(&tool)))
            });
            match valid {
                Some((name, Err(why), _)) => {
                    self.forget(&name);
                    page.invalid.push((name, why));
                    continue;
                }
                Some((name, Ok(mirror), repeatable)) => self.keep(name, mirror, repeatable, max),
                None => {}
            }
            kept.push(json);
        }
        if kept.len() < count {
            object.set("tools", kept.into());
            page.without = Some(object.to_json());
        }
        page
    }

    /// Whether the server says of the tool that these params of `tools/call` name that it may run twice: that it only reads, or that a
    /// second run changes nothing more.
    pub(super) fn is_repeatable(&self, params: &Object) -> bool {
        self.called(params).is_some_and(|known| known.repeatable)
    }

    /// The fields that mirror arguments of these params of `tools/call`. None for a tool that was not listed.
    ///
    /// # Errors
    /// [`EncodeError`] if an argument that must be mirrored cannot be: it is no string, boolean or integer, or an integer beyond what a
    /// field may carry. A server must refuse such a call, since the field is missing.
    pub(super) fn headers(&self, params: &Object) -> Result<Vec<(String, String)>, EncodeError> {
        let mut fields = Vec::new();
        if let Some(known) = self.called(params)
            && let Ok(Some(arguments)) = params.optional_object("arguments")
        {
            known.mirror.visit(&arguments, &mut |place| {
                let Some(value) = place.value else { return Ok(()) };
                let (argument, field) = (place.argument, format!("{PARAM}{}", place.header));
                let text = mirror::text_of(value).ok_or_else(|| {
                    let why = "is no string, boolean or safe integer, and the server wants it in the header";
                    EncodeError::new(format!("the argument `{argument}` {why} {field}"))
                })?;
                fields.push((field, encode(&text)));
                Ok(())
            })?;
        }
        Ok(fields)
    }

    /// The connection is another one.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    fn called(&self, params: &Object) -> Option<&Known> {
        let name: String = params.optional("name").ok().flatten()?;
        self.known.get(&name)
    }

    fn keep(&mut self, name: String, mirror: Mirror, repeatable: bool, max: usize) {
        self.forget(&name);
        // Of most tools there is nothing to know.
        if mirror.is_empty() && !repeatable {
            return;
        }
        let weight = 1 + (2 * name.len() + weigh(&mirror)) / WEIGHT;
        self.listed += 1;
        let place = self.listed;
        self.weight += weight;
        self.order.insert(place, name.clone());
        self.known.insert(name, Known { place, weight, repeatable, mirror });
        while self.weight > max
            && let Some((_, oldest)) = self.order.first_key_value()
        {
            self.forget(&oldest.clone());
        }
    }

    fn forget(&mut self, name: &str) {
        if let Some(known) = self.known.remove(name) {
            self.order.remove(&known.place);
            self.weight -= known.weight;
        }
    }
}

fn is_repeatable(tool: &Object) -> bool {
    let annotations = tool.optional_object("annotations").ok().flatten().unwrap_or_default();
    ["readOnlyHint", "idempotentHint"].iter().any(|hint| annotations.get(hint) == Some(&true.into()))
}

/// Bytes of names in a mirror, and of what holds them.
fn weigh(mirror: &Mirror) -> usize {
    let inner: usize = mirror.inner.iter().map(|(name, inner)| name.len() + weigh(inner)).sum();
    size_of::<Mirror>() + mirror.header.as_ref().map_or(0, String::len) + inner
}
