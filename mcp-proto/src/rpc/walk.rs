//! A single traversal of a validated JSON value in text order, for code that would otherwise parse
//! it again at each level.

use super::grammar::{MAX_DEPTH, Scan};
use super::scalar::unescape;
use super::{JsonKind, RawJson};
use alloc::string::String;

/// A position before a value, in a text that is known to be JSON.
pub(crate) struct Walk<'a>(Scan<'a>);

impl<'a> Walk<'a> {
    pub(crate) fn new(json: &'a RawJson) -> Self {
        Self(Scan::new(json.as_bytes(), MAX_DEPTH))
    }

    /// Returns the type of the next value.
    pub(crate) fn kind(&mut self) -> JsonKind {
        self.0.space();
        JsonKind::of(self.0.text.get(self.0.at).copied())
    }

    /// Visits each member of the next value, if it is an object. A value that the visitor does not
    /// read is skipped.
    pub(crate) fn object(&mut self, mut each: impl FnMut(&mut Self, String)) {
        if self.kind() != JsonKind::Object {
            return self.skip();
        }
        self.0.open(b'{');
        let mut first = true;
        while let Ok(Some(key)) = self.0.member(first) {
            first = false;
            let Some(key) = unescape(&self.0.text[key]) else { return };
            self.taken(|walk| each(walk, key));
        }
    }

    /// Like [`object`](Self::object), for the elements of an array.
    pub(crate) fn array(&mut self, mut each: impl FnMut(&mut Self)) {
        if self.kind() != JsonKind::Array {
            return self.skip();
        }
        self.0.open(b'[');
        let mut first = true;
        while let Ok(true) = self.0.element(first) {
            first = false;
            self.taken(&mut each);
        }
    }

    /// Returns the text of the next value, if it is a string. Skips any other value.
    pub(crate) fn text(&mut self) -> Option<String> {
        let kind = self.kind();
        let value = self.0.value(0).ok().filter(|_| kind == JsonKind::String)?;
        unescape(&self.0.text[value.start + 1..value.end - 1])
    }

    fn taken(&mut self, take: impl FnOnce(&mut Self)) {
        self.0.space();
        let before = self.0.at;
        take(self);
        if self.0.at == before {
            self.skip();
        }
    }

    fn skip(&mut self) {
        if self.0.value(0).is_err() {
            // Only a value that is nested deeper than any message may be. Nothing of it is read.
            self.0.at = self.0.text.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;
    use alloc::vec::Vec;

    fn json(text: &str) -> RawJson {
        RawJson::parse(text.as_bytes().to_vec()).unwrap()
    }

    #[test]
    fn each_value_is_visited_once_and_the_rest_is_skipped() {
        let json = json(r#" {"a" : {"x": [1, {"y": "]"}]}, "\u0062": [ "t\n", 2 , ["u"] ], "c":null} "#);
        let mut met = Vec::new();
        Walk::new(&json).object(|walk, key| {
            met.push(format!("{key} {:?}", walk.kind()));
            match key.as_str() {
                "b" => walk.array(|walk| met.push(format!("{:?}", walk.text()))),
                "c" => walk.object(|_, _| met.push("a member of null".into())),
                _ => {}
            }
        });
        assert_eq!(met, ["a Object", "b Array", "Some(\"t\\n\")", "None", "None", "c Null"]);
    }
}
