//! The annotation `x-mcp-header` in the input schema of a tool: where it stands, what it says, and whether it may (2026-07-28 transports,
//! schema extension). One pass over the schema; nothing is resolved or fetched.

#[cfg(feature = "http")]
mod arguments;

#[cfg(feature = "http")]
pub(crate) use arguments::{says, text_of};

use crate::exchange::is_token;
use crate::rpc::{JsonKind, RawJson, Walk};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// The keyword.
const ANNOTATION: &str = "x-mcp-header";

/// Characters of a property path that are shown.
const SHOWN: usize = 200;

/// A schema as far as it matters for header fields: those that are annotated, and the way to them.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Mirror {
    /// What the field that mirrors this value is called, without what all of them begin with.
    pub(crate) header: Option<String>,
    /// The properties with something annotated in them.
    pub(crate) inner: BTreeMap<String, Mirror>,
}

impl Mirror {
    pub(crate) fn is_empty(&self) -> bool {
        self.header.is_none() && self.inner.is_empty()
    }
}

/// Reads the annotations of an input schema.
///
/// # Errors
/// The first thing that is against the rules, for people. The value of each annotation is a token that no other has, not even in another
/// case. It stands on a property of the type `string`, `integer` or `boolean` (or of several of these, `null` among them: such an argument
/// has no field) to which `properties` alone lead. It may stand nowhere else, neither below keywords that hold other schemas nor below
/// ones that are not known here, since a reference may lead there. `default`, `const`, `enum` and `examples` hold data.
pub(crate) fn read(schema: &RawJson) -> Result<Mirror, String> {
    let mentions = |what: &[u8]| memchr::memmem::find(schema.as_bytes(), what).is_some();
    // A key may be written with escapes.
    if !mentions(ANNOTATION.as_bytes()) && !mentions(b"\\u") {
        return Ok(Mirror::default());
    }
    let mut reader = Reader { headers: BTreeSet::new(), path: Vec::new(), fault: None };
    let mirror = reader.schema(&mut Walk::new(schema), Place::Root);
    reader.fault.map_or(Ok(mirror), Err)
}

/// How a schema is reached.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    Root,
    /// By `properties` alone.
    Property,
    Elsewhere,
}

struct Reader {
    /// The names of the fields so far, in small letters.
    headers: BTreeSet<String>,
    /// The keys that led here.
    path: Vec<String>,
    fault: Option<String>,
}

impl Reader {
    fn schema(&mut self, walk: &mut Walk<'_>, place: Place) -> Mirror {
        let mut mirror = Mirror::default();
        let mut annotation = None;
        let mut fits = false;
        walk.object(|walk, key| match key.as_str() {
            ANNOTATION => annotation = Some(walk.text()),
            "type" => fits = is_carried(walk),
            "properties" => {
                let inner = if place == Place::Elsewhere { Place::Elsewhere } else { Place::Property };
                mirror.inner = self.named(walk, key, inner);
            }
            "default" | "const" | "enum" | "examples" => {}
            "$defs" | "definitions" | "patternProperties" | "dependentSchemas" | "dependencies" => {
                self.named(walk, key, Place::Elsewhere);
            }
            _ => self.at(key, |reader| reader.elsewhere(walk)),
        });
        if let Some(value) = annotation {
            mirror.header = self.judge(value, fits, place);
        }
        mirror
    }

    /// Schemas by names that are no keywords; of a name that stands twice the last counts.
    fn named(&mut self, walk: &mut Walk<'_>, key: String, place: Place) -> BTreeMap<String, Mirror> {
        let mut found = BTreeMap::new();
        self.at(key, |reader| {
            walk.object(|walk, name| {
                let mirror = reader.at(name.clone(), |reader| reader.schema(walk, place));
                if mirror.is_empty() {
                    found.remove(&name);
                } else {
                    found.insert(name, mirror);
                }
            });
        });
        found
    }

    /// What may be a schema, or several.
    fn elsewhere(&mut self, walk: &mut Walk<'_>) {
        match walk.kind() {
            JsonKind::Object => drop(self.schema(walk, Place::Elsewhere)),
            JsonKind::Array => walk.array(|walk| self.elsewhere(walk)),
            JsonKind::String | JsonKind::Number | JsonKind::Bool | JsonKind::Null => {}
        }
    }

    fn at<T>(&mut self, key: String, read: impl FnOnce(&mut Self) -> T) -> T {
        self.path.push(key);
        let read = read(self);
        self.path.pop();
        read
    }

    /// The name of the field that an annotation asks for, if it may.
    fn judge(&mut self, value: Option<String>, fits: bool, place: Place) -> Option<String> {
        let fault = match value {
            _ if place != Place::Property => "stands where `properties` alone do not lead",
            None => "is not a string",
            Some(name) if name.is_empty() => "is empty",
            Some(name) if !is_token(&name) => "is not a token",
            Some(_) if !fits => "stands on what is neither `string`, `integer` nor `boolean`",
            Some(name) if !self.headers.insert(name.to_ascii_lowercase()) => "stands twice",
            Some(name) => return Some(name),
        };
        if self.fault.is_none() {
            let path: String = self.path.join("/").chars().take(SHOWN).collect();
            self.fault = Some(format!("`{ANNOTATION}` at `{path}` {fault}"));
        }
        None
    }
}

/// Whether every value of the type that comes next can be put into a field, or has none.
fn is_carried(walk: &mut Walk<'_>) -> bool {
    let is_primitive = |name: Option<String>| matches!(name.as_deref(), Some("string" | "integer" | "boolean"));
    if walk.kind() != JsonKind::Array {
        return is_primitive(walk.text());
    }
    let (mut some, mut all) = (false, true);
    walk.array(|walk| {
        let name = walk.text();
        if name.as_deref() != Some("null") {
            some = true;
            all &= is_primitive(name);
        }
    });
    some && all
}
