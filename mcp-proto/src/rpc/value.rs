//! Values that an object writes straight into its text.

use super::scalar::{write_integer, write_string};
use super::{Id, Object, RawJson};
use alloc::string::String;
use alloc::vec::Vec;

/// A value of a member of an [`Object`]: a boolean, an integer, a string, an [`Id`], an object, raw
/// JSON, or an array of any of these. For any other type see [`RawJson::encode`].
pub trait JsonValue: Write {}

impl<T: Write> JsonValue for T {}

/// Writes a value as JSON text.
pub trait Write {
    /// Appends the text.
    fn write_json(&self, out: &mut Vec<u8>);

    /// Returns the length of the text, or a little less.
    fn json_len(&self) -> usize;
}

/// The text of a value that is known to be JSON.
pub(super) struct Slice<'a>(pub(super) &'a [u8]);

impl Write for Slice<'_> {
    fn write_json(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.0);
    }

    fn json_len(&self) -> usize {
        self.0.len()
    }
}

impl Write for RawJson {
    fn write_json(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.as_bytes());
    }

    fn json_len(&self) -> usize {
        self.as_bytes().len()
    }
}

impl Write for Object {
    fn write_json(&self, out: &mut Vec<u8>) {
        self.write_to(out);
    }

    fn json_len(&self) -> usize {
        self.text_len()
    }
}

impl Write for str {
    fn write_json(&self, out: &mut Vec<u8>) {
        write_string(out, self);
    }

    fn json_len(&self) -> usize {
        self.len() + 2
    }
}

impl Write for String {
    fn write_json(&self, out: &mut Vec<u8>) {
        write_string(out, self);
    }

    fn json_len(&self) -> usize {
        self.len() + 2
    }
}

impl Write for bool {
    fn write_json(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(if *self { b"true" } else { b"false" });
    }

    fn json_len(&self) -> usize {
        5 - usize::from(*self)
    }
}

impl Write for i64 {
    fn write_json(&self, out: &mut Vec<u8>) {
        write_integer(out, *self < 0, self.unsigned_abs());
    }

    fn json_len(&self) -> usize {
        usize::from(*self < 0) + self.unsigned_abs().json_len()
    }
}

impl Write for u64 {
    fn write_json(&self, out: &mut Vec<u8>) {
        write_integer(out, false, *self);
    }

    fn json_len(&self) -> usize {
        self.checked_ilog10().unwrap_or(0) as usize + 1
    }
}

impl Write for Id {
    fn write_json(&self, out: &mut Vec<u8>) {
        match self {
            Self::Int(n) => n.write_json(out),
            Self::Text(text) => text.write_json(out),
        }
    }

    fn json_len(&self) -> usize {
        match self {
            Self::Int(n) => n.json_len(),
            Self::Text(text) => text.json_len(),
        }
    }
}

impl<T: Write> Write for [T] {
    fn write_json(&self, out: &mut Vec<u8>) {
        out.push(b'[');
        for (n, element) in self.iter().enumerate() {
            if n > 0 {
                out.push(b',');
            }
            element.write_json(out);
        }
        out.push(b']');
    }

    fn json_len(&self) -> usize {
        let commas = self.len().saturating_sub(1);
        self.iter().map(Write::json_len).sum::<usize>() + commas + 2
    }
}

impl<T: Write> Write for Vec<T> {
    fn write_json(&self, out: &mut Vec<u8>) {
        self.as_slice().write_json(out);
    }

    fn json_len(&self) -> usize {
        self.as_slice().json_len()
    }
}

impl<T: Write + ?Sized> Write for &T {
    fn write_json(&self, out: &mut Vec<u8>) {
        (**self).write_json(out);
    }

    fn json_len(&self) -> usize {
        (**self).json_len()
    }
}
