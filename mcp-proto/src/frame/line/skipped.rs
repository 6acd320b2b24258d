//! What is kept of a line that is too long: to which request it is the response. Not every program
//! writes the id before the result. The official TypeScript SDK, for one, writes it at the end.

use crate::rpc::{self, InvalidKind, InvalidMessage, Message, Response};
use alloc::vec::Vec;
use bytes::Bytes;

/// Maximum number of bytes of a name or of an id that are kept.
const KEPT: usize = 256;

/// Reads the members of the object that a line is, in pieces, and checks none of their values.
#[derive(Debug, Default)]
pub(super) struct MemberSkipper {
    part: ObjectPart,
    /// Number of open objects and arrays.
    depth: usize,
    in_string: bool,
    is_escaped: bool,
    /// The beginning of the current name or id.
    text: Vec<u8>,
    id: Option<Vec<u8>>,
    /// It is not a response, or not one with a usable id.
    is_other: bool,
}

/// A part of the object.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum ObjectPart {
    #[default]
    Start,
    Name,
    Id,
    Value,
    End,
}

impl MemberSkipper {
    pub(super) fn read(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while let Some((&byte, after)) = rest.split_first().filter(|_| !self.is_other) {
            rest = after;
            if !self.in_string {
                self.outside(byte);
                continue;
            }
            match byte {
                _ if self.is_escaped => self.is_escaped = false,
                b'\\' => self.is_escaped = true,
                b'"' => self.in_string = false,
                // Most of a line that is too long.
                _ if !self.keeps() => {
                    let end = memchr::memchr2(b'"', b'\\', rest).unwrap_or(rest.len());
                    rest = rest.get(end..).unwrap_or_default();
                }
                _ => {}
            }
            self.keep(byte);
        }
    }

    /// Returns the end of the line as an invalid message, if it is a response with an id.
    pub(super) fn finish(self) -> Option<InvalidMessage> {
        let id = self.id.filter(|_| self.part == ObjectPart::End && !self.is_other)?;
        let bare = [&b"{\"jsonrpc\":\"2.0\",\"result\":{},\"id\":"[..], &id, b"}"].concat();
        match rpc::parse(Bytes::from(bare), 2) {
            Ok(Message::Response(Response { id, .. })) => {
                Some(InvalidMessage { id: Some(id), ..InvalidMessage::new(InvalidKind::TooLong, b"") })
            }
            _ => None,
        }
    }

    /// Reads a byte that is in no string.
    fn outside(&mut self, byte: u8) {
        match (self.part, byte) {
            (ObjectPart::Start, b'{') => (self.part, self.depth) = (ObjectPart::Name, 1),
            (ObjectPart::Start | ObjectPart::End, b' ' | b'\t' | b'\r') => {}
            (ObjectPart::Start | ObjectPart::End, _) => self.is_other = true,
            (ObjectPart::Name, b':') if self.depth == 1 => self.begin_value(),
            (_, b',') if self.depth == 1 => self.end_member(ObjectPart::Name),
            (_, b'}' | b']') if self.depth == 1 => self.end_member(ObjectPart::End),
            _ => {
                match byte {
                    b'"' => self.in_string = true,
                    b'{' | b'[' => self.depth += 1,
                    b'}' | b']' => self.depth -= 1,
                    _ => {}
                }
                self.keep(byte);
            }
        }
    }

    fn begin_value(&mut self) {
        self.part = match self.text.trim_ascii() {
            b"\"id\"" => ObjectPart::Id,
            _ => ObjectPart::Value,
        };
        // A request of the peer, and an object that has two ids.
        self.is_other = self.text.trim_ascii() == b"\"method\"" || (self.part == ObjectPart::Id && self.id.is_some());
        self.text.clear();
    }

    fn end_member(&mut self, next: ObjectPart) {
        let text = core::mem::take(&mut self.text);
        if self.part == ObjectPart::Id {
            self.id = Some(text);
        }
        self.part = next;
    }

    /// Returns whether the current part is kept.
    fn keeps(&self) -> bool {
        matches!(self.part, ObjectPart::Name | ObjectPart::Id)
    }

    fn keep(&mut self, byte: u8) {
        if !self.keeps() {
            return;
        }
        if self.text.len() < KEPT {
            self.text.push(byte);
        } else if self.part == ObjectPart::Id {
            self.is_other = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rpc::Id;
    use alloc::format;
    use alloc::string::String;
    use proptest::prelude::*;

    /// Reads a line in pieces of this size.
    fn read(line: &str, size: usize) -> Option<Id> {
        let mut skipped = MemberSkipper::default();
        line.as_bytes().chunks(size).for_each(|piece| skipped.read(piece));
        skipped.finish().map(|defect| defect.id.unwrap())
    }

    #[test]
    fn response_is_known_by_its_id_wherever_that_is() {
        let cases = [
            (r#"{"result":{},"jsonrpc":"2.0","id":7}"#, Some(Id::Int(7))),
            (r#" { "result" : {"id":1,"method":"m"} , "id" : "a\"b" } "#, Some(Id::from("a\"b"))),
            (r#"{"id":7,"result":["}",{"id":[8]},"\"id\":9"]}"#, Some(Id::Int(7))),
            (r#"{"error":{"data":"\\"},"id":-1}"#, Some(Id::Int(-1))),
            (r#"{"params":{},"id":7,"method":"m"}"#, None),
            (r#"{"id":7,"result":{},"id":7}"#, None),
            (r#"{"result":{},"id":null}"#, None),
            (r#"{"result":{},"id":1 2}"#, None),
            (r#"{"result":{},"id":{"id":7}}"#, None),
            (r#"{"result":{},"id":7"#, None),
            (r#"{"result":{},"id":7} x"#, None),
            (r#"{"result":{"id":7}}"#, None),
            (r#"[{"result":{},"id":7}]"#, None),
            ("xxxxxxxxx", None),
            ("", None),
        ];
        for (line, id) in cases {
            for size in [1, 2, 3, 5, 100] {
                assert_eq!(read(line, size), id, "{line}");
            }
        }
        for (length, is_known) in [(250, true), (300, false)] {
            let (name, id) = ("n".repeat(length), "i".repeat(length));
            let line = format!(r#"{{"{name}":1,"result":{{}},"id":"{id}"}}"#);
            assert_eq!(read(&line, 64).is_some(), is_known, "{length}");
        }
    }

    proptest! {
        #[test]
        fn no_value_hides_the_id(
            values in proptest::collection::vec(("[a-z\"\\\\:,{}\\[\\]]{0,9}", "\\PC{0,20}", 0..3_usize), 0..6),
            at in 0..7_usize,
            size in 1..9_usize,
        ) {
            let quote = |text: &str| serde_json::to_string(text).unwrap();
            let mut members: Vec<String> = values
                .iter()
                .map(|(name, text, kind)| {
                    let value = [quote(text), format!("[{{\"id\":{}}}]", quote(text)), "-1.5e3".into()];
                    format!("{}:{}", quote(&format!("x{name}")), value[*kind])
                })
                .collect();
            members.insert(at.min(members.len()), r#""id":7"#.into());
            prop_assert_eq!(read(&format!("{{{}}}", members.join(",")), size), Some(Id::Int(7)));
        }
    }
}
