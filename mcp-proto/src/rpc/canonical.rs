//! A canonical text for objects that differ only in white space, in the order of members, or in the
//! escapes of keys.

use super::Object;
use super::grammar::{MAX_DEPTH, Scan};
use super::scalar::unescape;
use super::{JsonKind, RawJson};
use alloc::vec::Vec;
use core::ops::Range;

/// Returns the canonical text of an object, in one pass over it. The members of the object and of
/// all nested objects are sorted by key, and a comma follows each value. Objects with different
/// members have different texts.
pub(crate) fn canonical(object: &Object) -> Vec<u8> {
    let mut text = Canonical(Vec::new());
    let mut members = Vec::new();
    for (key, value) in object.slices() {
        let start = text.0.len();
        let key = text.key(&key);
        text.value(&mut Scan::new(value, MAX_DEPTH));
        members.push(MemberRange { key, range: start..text.0.len() });
    }
    text.sort(members);
    text.0
}

struct Canonical(Vec<u8>);

/// The range of a member in the text.
struct MemberRange {
    key: Range<usize>,
    range: Range<usize>,
}

impl Canonical {
    fn key(&mut self, key: &str) -> Range<usize> {
        let start = self.0.len();
        self.0.extend_from_slice(RawJson::from(key).as_bytes());
        self.0.push(b':');
        start..self.0.len()
    }

    /// Appends the next value. It is nested no deeper than a message may be.
    fn value(&mut self, scan: &mut Scan<'_>) {
        scan.space();
        match JsonKind::of(scan.text.get(scan.at).copied()) {
            JsonKind::Object => {
                self.0.push(b'{');
                self.members(scan);
                self.0.push(b'}');
            }
            JsonKind::Array => {
                self.0.push(b'[');
                scan.open(b'[');
                let mut first = true;
                while let Ok(true) = scan.element(first) {
                    first = false;
                    self.value(scan);
                }
                self.0.push(b']');
            }
            _ => match scan.value(0) {
                Ok(scalar) => self.0.extend_from_slice(&scan.text[scalar]),
                // A validated text has a value here. In any case this must terminate.
                Err(_) => scan.at = scan.text.len(),
            },
        }
        self.0.push(b',');
    }

    fn members(&mut self, scan: &mut Scan<'_>) {
        scan.open(b'{');
        let (mut members, mut first) = (Vec::new(), true);
        while let Ok(Some(key)) = scan.member(first) {
            first = false;
            let start = self.0.len();
            let raw = &scan.text[key.start - 1..=key.end];
            if let Some(key) = raw.contains(&b'\\').then(|| unescape(&scan.text[key])).flatten() {
                self.key(&key);
            } else {
                self.0.extend_from_slice(raw);
                self.0.push(b':');
            }
            let key = start..self.0.len();
            self.value(scan);
            members.push(MemberRange { key, range: start..self.0.len() });
        }
        self.sort(members);
    }

    /// Sorts the members at the end of the text by key.
    fn sort(&mut self, mut members: Vec<MemberRange>) {
        let Some(start) = members.first().map(|member| member.range.start) else { return };
        if members.is_sorted_by_key(|member| &self.0[member.key.clone()]) {
            return;
        }
        members.sort_unstable_by(|one, other| self.0[one.key.clone()].cmp(&self.0[other.key.clone()]));
        let unsorted = self.0.split_off(start);
        for MemberRange { range, .. } in members {
            self.0.extend_from_slice(&unsorted[range.start - start..range.end - start]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::String;

    fn text(json: &str) -> String {
        let json = RawJson::parse(json.as_bytes().to_vec()).unwrap();
        String::from_utf8(canonical(&Object::read(&json).unwrap())).unwrap()
    }

    // covers: MRTR-S-009
    #[test]
    fn only_order_white_space_and_key_escapes_are_ignored() {
        let one = r#""a":[1,{"b":2,"c":"x",},[],],"d":{},"#;
        assert_eq!(text(r#"{"a":[1,{"b":2,"c":"x"},[]],"d":{}}"#), one);
        assert_eq!(text(r#" { "d" : { } , "a" : [ 1 , { "c":"x", "\u0062":2 } , [ ] ] } "#), one);
        assert_eq!(text(r#"{"\"\\":1,"\u0022\u005c\u0000":2}"#), r#""\"\\":1,"\"\\\u0000":2,"#);
        assert_eq!(text("{}"), "");
        let others = [
            r#"{"a":[1,{"b":2,"c":"x"}],"d":{}}"#,
            r#"{"a":[1,{"b":2},{"c":"x"},[]],"d":{}}"#,
            r#"{"a":[{"b":2,"c":"x"},1,[]],"d":{}}"#,
            r#"{"a":[1,{"b":"2","c":"x"},[]],"d":{}}"#,
            r#"{"a":[1,{"b":2,"c":"x","d":{}},[]]}"#,
            r#"{"a":[1,{"b":2,"c":"x"},[[]]],"d":{}}"#,
        ];
        for other in others {
            assert_ne!(text(other), one, "{other}");
        }
    }
}
