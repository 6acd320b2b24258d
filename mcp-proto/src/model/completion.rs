//! Completion of arguments: `completion/complete`.

use super::skipped::SkippedList;
use crate::call::{Call, Method, RawResult};
use crate::rpc::{DecodeError, JsonKind, Object, RawJson};
use crate::version::ProtocolVersion;
use alloc::string::String;
use alloc::vec::Vec;

/// Creates a call that asks for values of an argument of this prompt: name it with
/// [`argument`](Call::argument).
pub fn prompt(name: &str) -> Call<Complete> {
    call(Object::new().with("type", "ref/prompt").with("name", name))
}

/// Creates a call that asks for values of a variable of this resource template: name it with
/// [`argument`](Call::argument).
pub fn template(uri_template: &str) -> Call<Complete> {
    call(Object::new().with("type", "ref/resource").with("uri", uri_template))
}

fn call(reference: Object) -> Call<Complete> {
    Call::new(METHOD, Ok(Object::new().with("ref", reference))).repeatable()
}

const METHOD: &str = "completion/complete";

/// Removes what this revision does not have from the params of a request.
pub(crate) fn lower_params(method: &str, params: &mut Object, version: ProtocolVersion) {
    if method == METHOD && !version.rules().completion_context {
        params.remove("context");
    }
}

/// The method `completion/complete`.
#[derive(Clone, Copy, Debug)]
pub struct Complete;

impl Call<Complete> {
    /// Sets the argument, and the part of its value that the user has entered.
    #[must_use]
    pub fn argument(self, name: &str, value: &str) -> Self {
        self.change(|params| params.set("argument", Object::new().with("name", name).with("value", value)))
    }

    /// Adds an argument whose value is known already. Not sent before 2025-06-18, which introduced
    /// it.
    #[must_use]
    pub fn context(self, name: &str, value: &str) -> Self {
        self.change(|params| {
            let known = params.optional_object("context").ok().flatten().unwrap_or_default();
            let arguments = known.optional_object("arguments").ok().flatten().unwrap_or_default();
            params.set("context", known.with("arguments", arguments.with(name, value)));
        })
    }
}

impl Method for Complete {
    type Output = Completion;

    fn decode(result: RawResult) -> Result<Completion, DecodeError> {
        Completion::from_object(Object::from_json(result.json)?)
    }
}

/// The values that complete an argument.
#[derive(Clone, PartialEq, Debug, Default)]
#[non_exhaustive]
pub struct Completion {
    /// The values, best first: at most [`MAX_VALUES`](Self::MAX_VALUES). A client drops further
    /// ones of a server, and sets `has_more`.
    pub values: Vec<String>,
    /// The values of a server before the last one in `values` that are not texts. They are not
    /// among the others.
    pub skipped: SkippedList,
    /// Number of all values, which may be more than those in `values`.
    pub total: Option<u64>,
    /// Whether there are more values.
    pub has_more: bool,
    /// Other members of the result, such as `_meta`, unchanged.
    pub other: Object,
}

impl Completion {
    /// Maximum number of values in a response (2024-11-05 completion).
    pub const MAX_VALUES: usize = 100;

    /// Creates a completion of all these values. It keeps the first
    /// [`MAX_VALUES`](Self::MAX_VALUES) of them, and their number.
    pub fn new<S: Into<String>>(values: impl IntoIterator<Item = S>) -> Self {
        let mut all = values.into_iter();
        let values: Vec<String> = all.by_ref().take(Self::MAX_VALUES).map(Into::into).collect();
        let rest = all.count();
        let total = u64::try_from(values.len().saturating_add(rest)).ok();
        Self { values, total, has_more: rest > 0, ..Self::default() }
    }

    /// Sets the number of all values, which may be more than those given.
    #[must_use]
    pub const fn total(mut self, total: u64) -> Self {
        self.total = Some(total);
        self
    }

    /// Declares that there are more values than those given.
    #[must_use]
    pub const fn more(mut self) -> Self {
        self.has_more = true;
        self
    }

    fn from_object(result: Object) -> Result<Self, DecodeError> {
        let completion = result.object("completion")?;
        let list = completion.get("values").filter(|list| list.kind() != JsonKind::Null);
        let list = list.ok_or_else(|| DecodeError::new("`values` is missing"))?;
        if list.kind() != JsonKind::Array {
            return Err(DecodeError::new("expected an array").within("values"));
        }
        let (values, skipped, is_cut) = first_texts(&list);
        Ok(Self {
            values,
            skipped,
            total: completion.optional("total")?,
            has_more: completion.optional("hasMore")?.unwrap_or(false) || is_cut,
            other: result.without(&["completion", "resultType"]),
        })
    }

    /// Encodes the result, with at most [`MAX_VALUES`](Self::MAX_VALUES) values.
    pub fn write(&self) -> Object {
        let sent = self.values.get(..Self::MAX_VALUES).unwrap_or(&self.values);
        let is_cut = sent.len() < self.values.len();
        let completion =
            Object::new().with("values", sent).with_opt("total", self.total).with("hasMore", self.has_more || is_cut);
        Object::new().with("completion", completion).with_all(&self.other)
    }
}

/// Returns the first texts of a list that may have any number of elements, what is left out before
/// the last of them, and whether the list has more.
fn first_texts(list: &RawJson) -> (Vec<String>, SkippedList, bool) {
    let (mut values, mut skipped) = (Vec::new(), SkippedList::default());
    for (index, element) in list.elements().enumerate() {
        if values.len() == Completion::MAX_VALUES {
            return (values, skipped, true);
        }
        match element.decode() {
            Ok(value) => values.push(value),
            Err(why) => skipped.push(index, &element, &why),
        }
    }
    (values, skipped, false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;
    use alloc::string::ToString;

    fn decode(json: &str) -> Result<Completion, DecodeError> {
        Complete::decode(RawResult::new(RawJson::parse(String::from(json)).unwrap(), ProtocolVersion::V2026_07_28))
    }

    // covers: COMP-C-006
    #[test]
    fn call_has_the_reference_the_argument_and_its_context() {
        let call = prompt("p").argument("x", "a").context("y", "1").context("z", "2").into_raw();
        assert!(call.options.repeatable);
        let mut params = call.params.unwrap();
        assert_eq!(
            params.to_json().as_str(),
            r#"{"ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"x","value":"a"},"context":{"arguments":{"y":"1","z":"2"}}}"#
        );
        for version in ProtocolVersion::ALL {
            let is_known = version >= ProtocolVersion::V2025_06_18;
            lower_params("completion/complete", &mut params, version);
            assert!(params.contains("context") || !is_known, "{version}");
            let mut sent = params.clone().with("context", Object::new());
            lower_params("completion/complete", &mut sent, version);
            assert_eq!(sent.contains("context"), is_known, "{version}");
            lower_params("custom/method", &mut sent, version);
            params.set("context", Object::new());
        }
        let call = template("db://{id}").argument("id", "").into_raw();
        assert_eq!(
            call.params.unwrap().to_json().as_str(),
            r#"{"ref":{"type":"ref/resource","uri":"db://{id}"},"argument":{"name":"id","value":""}}"#
        );
    }

    // covers: COMP-C-005
    #[test]
    fn partial_results_are_read() {
        let full = decode(r#"{"completion":{"values":["a","b"],"total":9,"hasMore":true},"_meta":{"k":1}}"#).unwrap();
        assert_eq!((full.values.len(), full.total, full.has_more), (2, Some(9), true));
        assert_eq!(full.other.to_json().as_str(), r#"{"_meta":{"k":1}}"#);
        let least = decode(r#"{"resultType":"complete","completion":{"values":[]}}"#).unwrap();
        assert_eq!(least, Completion::default());
        for bad in ["{}", r#"{"completion":[]}"#, r#"{"completion":{}}"#, r#"{"completion":{"values":{}}}"#] {
            assert!(decode(bad).is_err(), "{bad}");
        }
    }

    // covers: COMP-S-002
    #[test]
    fn values_beyond_the_first_100_are_not_kept() {
        for count in [99, 100, 101, 100_000] {
            let values: Vec<String> = (0..count).map(|n: u32| format!("\"{n}\"")).collect();
            let read = decode(&format!(r#"{{"completion":{{"values":[{}]}}}}"#, values.join(","))).unwrap();
            assert_eq!((read.values.len(), read.has_more), (count.min(100) as usize, count > 100));
            assert_eq!(read.values.last().map(|last| last.parse()), Some(Ok(count.min(100) - 1)));
        }
    }

    // covers: COMP-S-002
    #[test]
    fn response_has_at_most_100_values() {
        let all = || (0..1_000_000).map(|n: u32| n.to_string());
        let made = Completion::new(all());
        assert_eq!((made.values.len(), made.total, made.has_more), (100, Some(1_000_000), true));
        let kept = Completion { values: all().take(101).collect(), ..Completion::default() };
        for (completion, has_more) in
            [(made, true), (kept, true), (Completion::new(["a"]), false), (Completion::new(["a"]).more(), true)]
        {
            let written = completion.write().object("completion").unwrap();
            assert!(written.array("values").unwrap().len() <= 100);
            assert_eq!(written.required("hasMore"), Ok(has_more), "{written:?}");
        }
        let json = format!("{:?}", Completion::new(["x"]).total(7).write());
        assert!(json.contains(r#"\"total\":7"#) || json.contains(r#""total":7"#), "{json}");
    }
}
