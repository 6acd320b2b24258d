//! JSON with comments and trailing commas, as editors write it, turned into JSON of the same
//! length.

use alloc::string::String;

/// Replaces comments (`//` to the end of the line, `/* */`) and the comma before a closing bracket
/// by spaces. Every other byte keeps its position. What is no JSON stays so.
///
/// # Errors
/// The position of a `/*` without an end.
pub(super) fn blank(text: &str) -> Result<String, usize> {
    let source = text.as_bytes();
    let mut out = source.to_vec();
    let mut at = 0;
    // The latest byte that is neither space nor comment, and the comma before it that may go.
    let (mut latest, mut comma) = (0, None);
    while let Some(&byte) = source.get(at) {
        let end = match byte {
            b'"' => string_end(source, at),
            b'/' if source.get(at + 1) == Some(&b'/') => {
                let rest = &source[at..];
                let end = at + memchr::memchr2(b'\n', b'\r', rest).unwrap_or(rest.len());
                out[at..end].fill(b' ');
                at = end;
                continue;
            }
            b'/' if source.get(at + 1) == Some(&b'*') => {
                let end = at + 4 + text[at + 2..].find("*/").ok_or(at)?;
                out[at..end].fill(b' ');
                at = end;
                continue;
            }
            b' ' | b'\t' | b'\n' | b'\r' => {
                at += 1;
                continue;
            }
            _ => at + 1,
        };
        if let (b'}' | b']', Some(comma)) = (byte, comma) {
            out[comma] = b' ';
        }
        // A comma that follows no value is a mistake.
        let may_go = byte == b',' && !matches!(latest, 0 | b'[' | b'{' | b',' | b':');
        comma = may_go.then_some(at);
        latest = byte;
        at = end;
    }
    // Comments end at ASCII characters, so they were replaced with whole characters.
    Ok(String::from_utf8(out).unwrap_or_default())
}

/// Returns the end of the string that begins at `start`, or that of the text.
fn string_end(source: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    loop {
        let rest = source.get(at..).unwrap_or_default();
        match memchr::memchr2(b'"', b'\\', rest) {
            None => return source.len(),
            Some(found) if rest[found] == b'"' => return at + found + 1,
            // The escaped character may be a quote.
            Some(found) => at += found + 2,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    // covers: S0-06
    #[test]
    fn comments_and_trailing_commas_become_spaces() {
        for (text, json) in [
            ("[1, // \u{e9}, 2]\n 2]", "[1,          \n 2]"),
            ("/* a */{\"b\": /*,*/ 1,}//", "       {\"b\":       1 }  "),
            ("[1, /* } */ ]", "[1          ]"),
            ("{\"a // b\": \"/* \\\" */\"}", "{\"a // b\": \"/* \\\" */\"}"),
            ("[1,]\r\n//\r\n", "[1 ]\r\n  \r\n"),
        ] {
            assert_eq!(blank(text).as_deref(), Ok(json));
        }
        assert_eq!(blank("[] /* */ /*/"), Err(9));
    }

    #[test]
    fn other_commas_and_slashes_stay() {
        for text in ["[,]", "{,}", "[1,,]", "[1,,2]", ",", "[1,2]", "/", "[1] /", "{\"a\":,}", "\"a", "\"a\\"] {
            assert_eq!(blank(text).as_deref(), Ok(text));
        }
    }

    proptest! {
        #[test]
        fn length_and_line_ends_stay(text in "[\\[\\]{},:\"/*\\\\\n é1]{0,40}") {
            if let Ok(json) = blank(&text) {
                prop_assert_eq!(json.len(), text.len());
                prop_assert_eq!(blank(&json), Ok(json.clone()));
            }
        }
    }
}
