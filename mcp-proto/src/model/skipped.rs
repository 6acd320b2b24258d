//! Elements of a peer's lists that cannot be decoded. They are left out of their list and named, so
//! that one of them does not cost the others. A block of content is not left out: it stays in its
//! place as [`Content::Unknown`].

use super::completion::Complete;
use super::content::Content;
use super::page::List;
use super::prompts::Prompt;
use super::resources::{Resource, ResourceContents, ResourceTemplate};
use super::roots::Root;
use super::sampling::Block;
use super::tools::Tool;
use crate::call::{Method, RawResult};
use crate::rpc::{DecodeError, JsonKind, Object, RawJson};
use alloc::vec::Vec;

pub use crate::call::{SkippedElement, SkippedList};

/// Decodes the elements of a list. Returns those that can be decoded, and the others.
pub(super) fn read_list<T>(
    elements: impl IntoIterator<Item = RawJson>,
    read: impl Fn(&RawJson) -> Result<T, DecodeError>,
) -> (Vec<T>, SkippedList) {
    let mut skipped = SkippedList::default();
    let mut decode = |(index, json): (usize, RawJson)| read(&json).map_err(|why| skipped.push(index, &json, &why)).ok();
    let decoded = elements.into_iter().enumerate().filter_map(&mut decode).collect();
    (decoded, skipped)
}

/// Returns what cannot be decoded in a result of this method, for a diagnostic: elements of a list,
/// or blocks of content. Empty for a result that cannot be decoded at all, which is the error of
/// its call.
pub(crate) fn in_result(method: &str, result: &RawResult) -> SkippedList {
    fn decoded<M: Method>(result: &RawResult, skipped: impl FnOnce(M::Output) -> SkippedList) -> SkippedList {
        M::decode(result.clone()).map(skipped).unwrap_or_default()
    }
    // A kind of result that an extension defines has its own shape.
    let is_own = |object: &Object| object.str("resultType").is_none_or(|kind| kind == "complete");
    let list = |key: &str| Object::read(&result.json).ok().filter(is_own).and_then(|object| object.get(key));
    match method {
        "tools/call" => in_content(list("content").as_ref(), Content::fault),
        "tools/list" => decoded::<List<Tool>>(result, |page| page.skipped),
        "resources/list" => decoded::<List<Resource>>(result, |page| page.skipped),
        "resources/templates/list" => decoded::<List<ResourceTemplate>>(result, |page| page.skipped),
        #[cfg(feature = "skills")]
        "skills/list" => decoded::<List<super::skills::Skill>>(result, |page| page.skipped),
        "prompts/list" => decoded::<List<Prompt>>(result, |page| page.skipped),
        "completion/complete" => decoded::<Complete>(result, |completion| completion.skipped),
        "prompts/get" => in_messages(list("messages").as_ref()),
        "resources/read" => faults(list("contents").as_ref(), ResourceContents::fault),
        _ => SkippedList::default(),
    }
}

/// Returns what cannot be decoded in the answer of a client to a request for input.
pub(crate) fn in_answer(answer: &RawJson) -> SkippedList {
    let Ok(answer) = Object::read(answer) else { return SkippedList::default() };
    match (answer.get("roots"), answer.contains("role")) {
        (Some(roots), _) => faults(Some(&roots), |root| Root::read(root).err()),
        (None, true) => in_content(answer.get("content").as_ref(), Block::fault),
        (None, false) => SkippedList::default(),
    }
}

/// Looks into the content of messages. The position is that of the message.
fn in_messages(messages: Option<&RawJson>) -> SkippedList {
    faults(messages, |message| {
        let content = Object::read(message).ok()?.get("content")?;
        Content::fault(&content).map(|why| why.within("content"))
    })
}

/// Looks into one block of content, or several.
fn in_content(content: Option<&RawJson>, fault: impl Fn(&RawJson) -> Option<DecodeError>) -> SkippedList {
    let Some(block) = content.filter(|content| content.kind() == JsonKind::Object) else {
        return faults(content, fault);
    };
    let mut skipped = SkippedList::default();
    if let Some(why) = fault(block) {
        skipped.push(0, block, &why);
    }
    skipped
}

/// Returns the elements with a fault.
fn faults(list: Option<&RawJson>, fault: impl Fn(&RawJson) -> Option<DecodeError>) -> SkippedList {
    let mut skipped = SkippedList::default();
    for (index, json) in list.into_iter().flat_map(RawJson::elements).enumerate() {
        if let Some(why) = fault(&json) {
            skipped.push(index, &json, &why);
        }
    }
    skipped
}

#[cfg(test)]
mod tests;
