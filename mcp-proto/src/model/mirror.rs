//! The annotation `x-mcp-header` in the input schema of a tool: its location, its value, and
//! whether it is valid (2026-07-28 transports, schema extension). One pass over the schema. Nothing
//! is resolved or fetched.

mod arguments;

pub(crate) use arguments::{says, text_of};

use crate::exchange::is_token;
use crate::rpc::{JsonKind, RawJson, Walk};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// The keyword.
const ANNOTATION: &str = "x-mcp-header";

/// Maximum number of characters of a property path in an error.
const SHOWN: usize = 200;

/// The annotated properties of a schema, and the paths to them.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Mirror {
    /// The name of the field that mirrors this value, without the common prefix.
    pub(crate) header: Option<String>,
    /// The properties that contain an annotation.
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
/// The first violation of the rules, for people. The value of each annotation is a token. No two
/// are equal, regardless of case. The annotated property has the type `string`, `integer` or
/// `boolean` (or several of these, possibly with `null`, whose arguments have no field), and only
/// `properties` lead to it. An annotation anywhere else is invalid, both below keywords that
/// contain other schemas and below unknown keywords, since a reference may point there. `default`,
/// `const`, `enum` and `examples` contain data.
pub(crate) fn read(schema: &RawJson) -> Result<Mirror, String> {
    let mentions = |what: &[u8]| memchr::memmem::find(schema.as_bytes(), what).is_some();
    // A key may be written with escapes.
    if !mentions(ANNOTATION.as_bytes()) && !mentions(b"\\u") {
        return Ok(Mirror::default());
    }
    let mut reader = MirrorReader { headers: BTreeSet::new(), path: Vec::new(), fault: None };
    let mirror = reader.schema(&mut Walk::new(schema), SchemaPosition::Root);
    reader.fault.map_or(Ok(mirror), Err)
}

/// The position of a schema: how it is reached.
#[derive(Clone, Copy, PartialEq)]
enum SchemaPosition {
    Root,
    /// Only by `properties`.
    Property,
    Elsewhere,
}

struct MirrorReader {
    /// The names of the fields so far, in lower case.
    headers: BTreeSet<String>,
    /// The keys on the path to the current schema.
    path: Vec<String>,
    fault: Option<String>,
}

impl MirrorReader {
    fn schema(&mut self, walk: &mut Walk<'_>, place: SchemaPosition) -> Mirror {
        let mut mirror = Mirror::default();
        let mut annotation = None;
        let mut fits = false;
        walk.object(|walk, key| match key.as_str() {
            ANNOTATION => annotation = Some(walk.text()),
            "type" => fits = is_carried(walk),
            "properties" => {
                let inner = if place == SchemaPosition::Elsewhere {
                    SchemaPosition::Elsewhere
                } else {
                    SchemaPosition::Property
                };
                mirror.inner = self.named(walk, key, inner);
            }
            "default" | "const" | "enum" | "examples" => {}
            "$defs" | "definitions" | "patternProperties" | "dependentSchemas" | "dependencies" => {
                self.named(walk, key, SchemaPosition::Elsewhere);
            }
            _ => self.at(key, |reader| reader.elsewhere(walk)),
        });
        if let Some(value) = annotation {
            mirror.header = self.judge(value, fits, place);
        }
        mirror
    }

    /// Reads schemas below names that are not keywords. The last of a repeated name counts.
    fn named(&mut self, walk: &mut Walk<'_>, key: String, place: SchemaPosition) -> BTreeMap<String, Mirror> {
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

    /// Reads a value that may be a schema, or several.
    fn elsewhere(&mut self, walk: &mut Walk<'_>) {
        match walk.kind() {
            JsonKind::Object => drop(self.schema(walk, SchemaPosition::Elsewhere)),
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

    /// Returns the name of the field that a valid annotation defines.
    fn judge(&mut self, value: Option<String>, fits: bool, place: SchemaPosition) -> Option<String> {
        let fault = match value {
            _ if place != SchemaPosition::Property => "is not reachable by `properties` alone",
            None => "is not a string",
            Some(name) if name.is_empty() => "is empty",
            Some(name) if !is_token(&name) => "is not a token",
            Some(_) if !fits => "is on a type other than `string`, `integer` and `boolean`",
            Some(name) if !self.headers.insert(name.to_ascii_lowercase()) => "occurs twice",
            Some(name) => return Some(name),
        };
        if self.fault.is_none() {
            let path: String = self.path.join("/").chars().take(SHOWN).collect();
            self.fault = Some(format!("`{ANNOTATION}` at `{path}` {fault}"));
        }
        None
    }
}

/// Returns whether every value of the next type either fits into a field or has none.
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
