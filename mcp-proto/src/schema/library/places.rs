//! The places of a document: its resources, its anchors, and what a reference leads to. A place
//! holds the number of its resource and the length of its JSON Pointer, and no text: a document of
//! long names and many schemas would otherwise need the product of both.

use super::Bounds;
use super::keywords;
use crate::schema::{BadSchema, SchemaLimit};
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::rc::Rc;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use iri_string::format::ToDedicatedString;
use iri_string::types::{UriAbsoluteString, UriReferenceStr, UriStr};
use jsonschema::Draft;
use serde_json::Value;

/// The base of the references in a document without `$id`.
const NO_BASE: &str = "json-schema:///";

/// A value of the document.
#[derive(Clone, Copy)]
pub(super) struct SchemaPlace<'a> {
    pub(super) value: &'a Value,
    /// The number of the resource that contains it.
    pub(super) resource: usize,
    /// Length of its JSON Pointer, in bytes.
    pub(super) pointer: usize,
}

/// What a reference leads to.
pub(super) struct ReferenceTarget<'a> {
    pub(super) place: SchemaPlace<'a>,
    /// Whether the reference names another resource than the one it is in.
    pub(super) leaves: bool,
}

/// A resource: a schema with `$id`, or the document.
struct SchemaResource<'a> {
    uri: Rc<UriAbsoluteString>,
    root: SchemaPlace<'a>,
}

/// See the [module](self).
pub(super) struct Places<'a> {
    resources: Vec<SchemaResource<'a>>,
    /// The resources by their URIs.
    by_uri: BTreeMap<Rc<UriAbsoluteString>, usize>,
    /// The resources of the schemas with `$id`, by the addresses of their values.
    identified: BTreeMap<usize, usize>,
    /// The anchors, by resource and name.
    anchors: BTreeMap<(usize, &'a str), SchemaPlace<'a>>,
    /// The dynamic anchors, by name.
    dynamic: BTreeMap<&'a str, Vec<SchemaPlace<'a>>>,
    /// Whether a schema has an older dialect than 2020-12.
    is_old: bool,
    /// What is left of [`Bounds::locations`].
    left: usize,
}

impl<'a> SchemaPlace<'a> {
    /// Returns the place of a member.
    pub(super) fn member(self, name: &str, value: &'a Value) -> Self {
        Self { value, pointer: self.pointer + segment(name), ..self }
    }

    /// Returns the place of an element.
    pub(super) fn element(self, at: usize, value: &'a Value) -> Self {
        Self { value, pointer: self.pointer + element(at), ..self }
    }

    /// Returns the address of its value.
    pub(super) fn address(self) -> usize {
        core::ptr::from_ref(self.value) as usize
    }
}

impl<'a> Places<'a> {
    /// Registers the resources and anchors of a document, and checks its dialects.
    ///
    /// # Errors
    /// [`BadSchema`] for an unsupported dialect, an `$id` that is no URI, or the limit of
    /// locations.
    pub(super) fn read(document: &'a Value, bounds: &Bounds) -> Result<Self, BadSchema> {
        let uri = Rc::new(uri(NO_BASE).ok_or_else(|| BadSchema::reference(NO_BASE))?);
        let root = SchemaPlace { value: document, resource: 0, pointer: 0 };
        let mut places = Self {
            by_uri: [(Rc::clone(&uri), 0)].into(),
            resources: [SchemaResource { uri, root }].into(),
            identified: BTreeMap::new(),
            anchors: BTreeMap::new(),
            dynamic: BTreeMap::new(),
            is_old: false,
            left: bounds.locations,
        };
        places.register(root)?;
        Ok(places)
    }

    /// Registers what a value of limited depth and everything in it declare.
    fn register(&mut self, place: SchemaPlace<'a>) -> Result<(), BadSchema> {
        match place.value {
            Value::Array(elements) => {
                let mut elements = elements.iter().enumerate();
                elements.try_for_each(|(at, value)| self.register(place.element(at, value)))
            }
            Value::Object(members) => {
                let place = self.survey(place)?;
                let mut schemas = members.iter().filter(|(name, _)| !keywords::is_data(name));
                schemas.try_for_each(|(name, value)| self.register(place.member(name, value)))
            }
            _ => Ok(()),
        }
    }

    /// Registers what an object declares. Returns its place, in its own resource.
    fn survey(&mut self, mut place: SchemaPlace<'a>) -> Result<SchemaPlace<'a>, BadSchema> {
        if let Some(Value::String(dialect)) = place.value.get("$schema") {
            self.is_old |= keywords::dialect(dialect)? != Draft::Draft202012;
        }
        if let Some(Value::String(id)) = place.value.get("$id") {
            // In draft 7 an `$id` that is only a fragment is an anchor.
            let (id, fragment) = id.split_once('#').unwrap_or((id, ""));
            if !id.is_empty() {
                let uri = Rc::new(self.resolve(place.resource, id)?);
                let next = self.resources.len();
                let resource = *self.by_uri.entry(Rc::clone(&uri)).or_insert(next);
                self.identified.insert(place.address(), resource);
                place.resource = resource;
                if resource == next {
                    self.resources.push(SchemaResource { uri, root: place });
                }
            }
            if !fragment.is_empty() {
                self.anchors.entry((place.resource, fragment)).or_insert(place);
            }
        }
        for keyword in ["$anchor", "$dynamicAnchor"] {
            if let Some(Value::String(name)) = place.value.get(keyword) {
                self.anchors.entry((place.resource, name)).or_insert(place);
                if keyword == "$dynamicAnchor" {
                    self.dynamic.entry(name).or_default().push(place);
                }
            }
        }
        if place.value.get("$recursiveAnchor") == Some(&Value::Bool(true)) {
            self.dynamic.entry("").or_default().push(place);
        }
        Ok(place)
    }

    /// Returns a place in the resource that its own `$id` begins.
    pub(super) fn own(&self, place: SchemaPlace<'a>) -> SchemaPlace<'a> {
        let resource = self.identified.get(&place.address()).copied().unwrap_or(place.resource);
        SchemaPlace { resource, ..place }
    }

    /// Returns whether a schema has an older dialect than 2020-12.
    pub(super) const fn is_old(&self) -> bool {
        self.is_old
    }

    /// Returns the dynamic anchors of a name. The empty name is that of `$recursiveAnchor`.
    pub(super) fn dynamic(&self, name: &str) -> &[SchemaPlace<'a>] {
        self.dynamic.get(name).map_or(&[], Vec::as_slice)
    }

    /// Returns the lengths of the URIs of all resources.
    pub(super) fn lengths(&self) -> Vec<usize> {
        self.resources.iter().map(|resource| resource.uri.as_str().len()).collect()
    }

    /// Returns what a reference leads to.
    ///
    /// # Errors
    /// [`BadSchema::Reference`] if it is not in this document, or [`SchemaLimit::Locations`].
    pub(super) fn find(&mut self, from: SchemaPlace<'a>, to: &str) -> Result<ReferenceTarget<'a>, BadSchema> {
        let missing = || BadSchema::reference(to);
        let (uri, fragment) = to.split_once('#').unwrap_or((to, ""));
        let named = match uri {
            "" => from.resource,
            uri => {
                let uri = self.resolve(from.resource, uri)?;
                *self.by_uri.get(&uri).ok_or_else(missing)?
            }
        };
        let leaves = named != from.resource;
        let fragment = decode(fragment).ok_or_else(missing)?;
        if !fragment.is_empty() && !fragment.starts_with('/') {
            let place = *self.anchors.get(&(named, fragment.as_str())).ok_or_else(missing)?;
            return Ok(ReferenceTarget { place, leaves });
        }
        let mut place = self.resources[named].root;
        for key in fragment.split('/').skip(1) {
            let name = key.replace("~1", "/").replace("~0", "~");
            let value = match place.value {
                Value::Object(members) => members.get(&name),
                Value::Array(elements) => key.parse().ok().and_then(|at: usize| elements.get(at)),
                _ => None,
            };
            place = self.own(place.member(&name, value.ok_or_else(missing)?));
        }
        Ok(ReferenceTarget { place, leaves })
    }

    /// Resolves a reference without a fragment against the URI of a resource.
    fn resolve(&mut self, base: usize, reference: &str) -> Result<UriAbsoluteString, BadSchema> {
        let base = &self.resources[base].uri;
        // The library keeps what each of them is resolved to.
        let length = base.as_str().len() + reference.len();
        self.left = self.left.checked_sub(length).ok_or(BadSchema::Limit(SchemaLimit::Locations))?;
        let resolved = UriReferenceStr::new(reference).ok().map(|to| to.resolve_against(base.as_ref()).to_string());
        resolved.and_then(|resolved| uri(&resolved)).ok_or_else(|| BadSchema::reference(reference))
    }
}

/// Returns the length of a name in a JSON Pointer, with its slash.
pub(super) fn segment(name: &str) -> usize {
    1 + name.len() + name.bytes().filter(|byte| matches!(byte, b'~' | b'/')).count()
}

/// Returns the length of an index in a JSON Pointer, with its slash.
pub(super) fn element(at: usize) -> usize {
    let digits = at.checked_ilog10().unwrap_or_default();
    2 + usize::try_from(digits).unwrap_or_default()
}

/// Returns the JSON Pointer of a value of the document, for an error.
pub(super) fn pointer(document: &Value, value: &Value) -> Option<String> {
    if core::ptr::eq(document, value) {
        return Some(String::new());
    }
    let below = |key: &str, inner| {
        let rest = pointer(inner, value)?;
        Some(format!("/{}{rest}", key.replace('~', "~0").replace('/', "~1")))
    };
    match document {
        Value::Array(elements) => elements.iter().enumerate().find_map(|(at, inner)| below(&at.to_string(), inner)),
        Value::Object(members) => members.iter().find_map(|(name, inner)| below(name, inner)),
        _ => None,
    }
}

fn uri(text: &str) -> Option<UriAbsoluteString> {
    let uri = UriStr::new(text).ok()?;
    UriAbsoluteString::try_from(uri.normalize().to_dedicated_string().to_string()).ok()
}

/// Decodes the percent-encoding of a fragment.
fn decode(fragment: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(fragment.len());
    let mut rest = fragment.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        rest = after;
        if first == b'%' {
            let (digits, after) = rest.split_at_checked(2)?;
            bytes.push(u8::from_str_radix(core::str::from_utf8(digits).ok()?, 16).ok()?);
            rest = after;
        } else {
            bytes.push(first);
        }
    }
    String::from_utf8(bytes).ok()
}
