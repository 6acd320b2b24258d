//! URI templates (RFC 6570, level 1 and `{+variable}`): which URIs belong to one, and the values of
//! its variables in them.
//!
//! A URI is matched from left to right without going back, in a time proportional to its length:
//! a variable ends where the text after it first occurs, and the last one where the rest of the
//! template remains. That is why two variables need text between them.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use iri_string::types::UriStr;

/// A template that was read.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct UriTemplate {
    /// The text before the first variable.
    start: String,
    variables: Vec<Variable>,
}

#[derive(Clone, PartialEq, Debug)]
struct Variable {
    name: String,
    /// Written `{+name}`: its values may contain `/`, `?` and `#`.
    takes_reserved: bool,
    /// The text up to the next variable.
    after: String,
}

/// The characters that end the value of a variable without `+`.
const DELIMITERS: [char; 3] = ['/', '?', '#'];

impl UriTemplate {
    /// Reads a template.
    ///
    /// # Errors
    /// The rule that it violates.
    pub(crate) fn parse(template: &str) -> Result<Self, String> {
        let mut pieces = template.split('{');
        let start = pieces.next().unwrap_or_default();
        if start.contains('}') {
            return Err("a `}` has no `{`".into());
        }
        let mut read = Self { start: start.into(), variables: Vec::new() };
        for piece in pieces {
            let (expression, after) = piece.split_once('}').ok_or("a `{` has no `}`")?;
            if after.contains('}') {
                return Err("a `}` has no `{`".into());
            }
            let name = expression.strip_prefix('+').unwrap_or(expression);
            let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'.';
            if name.is_empty() || !name.bytes().all(is_name) {
                return Err(format!("`{{{expression}}}` is neither `{{name}}` nor `{{+name}}`"));
            }
            if read.variables.iter().any(|variable| variable.name == name) {
                return Err(format!("the variable `{name}` occurs twice"));
            }
            if read.variables.last().is_some_and(|variable| variable.after.is_empty()) {
                return Err(format!("there is no text before the variable `{name}` that would end the one before it"));
            }
            let takes_reserved = name.len() < expression.len();
            read.variables.push(Variable { name: name.into(), takes_reserved, after: after.into() });
        }
        if read.variables.is_empty() {
            return Err("it has no variable".into());
        }
        match is_uri(&read.example()) {
            true => Ok(read),
            false => Err("with values for its variables it is not a URI (RFC 3986)".into()),
        }
    }

    /// Returns the variables and their decoded values, if this URI belongs to the template. No
    /// value is empty.
    pub(crate) fn values(&self, uri: &str) -> Option<Vec<(String, String)>> {
        let mut rest = uri.strip_prefix(&*self.start)?;
        let mut values = Vec::with_capacity(self.variables.len());
        for (n, Variable { name, takes_reserved, after }) in self.variables.iter().enumerate() {
            let end = match n + 1 == self.variables.len() {
                true => rest.strip_suffix(&**after)?.len(),
                false => rest.get(1..)?.find(&**after)? + 1,
            };
            let (value, tail) = rest.split_at(end);
            if value.is_empty() || (!takes_reserved && value.contains(DELIMITERS)) {
                return None;
            }
            values.push((name.clone(), decode(value)?));
            rest = tail.get(after.len()..)?;
        }
        Some(values)
    }

    /// Returns a URI that belongs to it.
    fn example(&self) -> String {
        let mut uri = self.start.clone();
        for variable in &self.variables {
            // A variable at the beginning is a scheme, or a whole URI.
            uri.push_str(match (uri.is_empty(), variable.takes_reserved) {
                (true, true) => "a:0",
                (true, false) => "a",
                (false, _) => "0",
            });
            uri.push_str(&variable.after);
        }
        uri
    }
}

/// Returns whether this is a URI with a scheme (RFC 3986 section 3).
pub(crate) fn is_uri(text: &str) -> bool {
    UriStr::new(text).is_ok()
}

/// Returns whether a URI of a file is without tricks: its path has no `.` and `..`, and no
/// separator or NUL that is encoded (2026-07-28 resources, security considerations). True for every
/// other scheme.
pub(crate) fn is_plain_path(uri: &str) -> bool {
    let Some((scheme, rest)) = uri.split_once(':') else { return true };
    if !scheme.eq_ignore_ascii_case("file") {
        return true;
    }
    let path = rest.split(['?', '#']).next().unwrap_or_default();
    path.split('/').all(|segment| decode(segment).is_some_and(|segment| is_plain_segment(&segment)))
}

/// Returns whether a path of a peer stays below the directory that it is joined to: it is relative,
/// and no segment of it is `..` or contains a separator of another system.
pub(crate) fn stays_below(path: &str) -> bool {
    let has_drive = path.as_bytes().get(1) == Some(&b':');
    !path.is_empty() && !path.starts_with('/') && !has_drive && path.split('/').all(is_plain_segment)
}

pub(crate) fn is_plain_segment(segment: &str) -> bool {
    segment != "." && segment != ".." && !segment.contains(['/', '\\', '\0'])
}

/// Decodes percent-encoded UTF-8 (RFC 3986 section 2.1).
pub(crate) fn decode(text: &str) -> Option<String> {
    if !text.contains('%') {
        return Some(text.to_string());
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut pieces = text.split('%');
    bytes.extend_from_slice(pieces.next().unwrap_or_default().as_bytes());
    for piece in pieces {
        let code = piece.get(..2).filter(|code| code.bytes().all(|digit| digit.is_ascii_hexdigit()))?;
        bytes.push(u8::from_str_radix(code, 16).ok()?);
        bytes.extend_from_slice(piece.get(2..)?.as_bytes());
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn values(template: &str, uri: &str) -> Option<Vec<(String, String)>> {
        UriTemplate::parse(template).unwrap().values(uri)
    }

    fn pairs(values: &[(&str, &str)]) -> Option<Vec<(String, String)>> {
        Some(values.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect())
    }

    #[test]
    fn variables_have_the_decoded_values_of_the_uri() {
        let row = "db://{table}/{id}";
        assert_eq!(values(row, "db://users/7"), pairs(&[("table", "users"), ("id", "7")]));
        assert_eq!(values(row, "db://a%20b/%C3%A9%2Fx"), pairs(&[("table", "a b"), ("id", "é/x")]));
        let file = "repo://{owner}/tree/{+path}.md";
        assert_eq!(values(file, "repo://me/tree/a/b.md.md"), pairs(&[("owner", "me"), ("path", "a/b.md")]));
        assert_eq!(values("x:{a}-{b}", "x:1-2-3"), pairs(&[("a", "1"), ("b", "2-3")]));
        assert_eq!(values("x:?q={q}&n={n}", "x:?q=a&n=b"), pairs(&[("q", "a"), ("n", "b")]));
        assert_eq!(values("{+uri}", "any:thing/at?all"), pairs(&[("uri", "any:thing/at?all")]));
    }

    #[test]
    fn other_uris_do_not_match() {
        let row = "db://{table}/{id}";
        let others = [
            "db://users",
            "db://users/",
            "db:///7",
            "db://users/7/8",
            "db://users/7?x",
            "db://users/7#x",
            "DB://users/7",
            "x",
            "",
            "db://",
            "db://a/%ff",
            "db://a/%zz",
            "db://a/%4",
        ];
        for uri in others {
            assert_eq!(values(row, uri), None, "{uri}");
        }
        assert_eq!(values("x:{a}/y", "x:/y"), None);
        assert_eq!(values("x:{a}/y", "x:1/y/y"), None);
    }

    // covers: RES-S-016
    #[test]
    fn a_template_that_cannot_be_matched_is_an_error() {
        let bad = [
            "db://x",
            "db://{a}{b}",
            "db://{a}/{a}",
            "db://{a",
            "db://a}",
            "db://{}",
            "db://{+}",
            "db://{/a}",
            "db://{a*}",
            "db://{a:3}",
            "db://{a,b}",
            "{a}/b",
            "no scheme/{a}",
            "db://a b/{a}",
            "db://é/{a}",
            "1x:{a}",
            "db://{a}}",
        ];
        for template in bad {
            assert!(UriTemplate::parse(template).is_err(), "{template}");
        }
        for template in ["db://{a}", "{scheme}:x", "{+uri}", "http://h:{port}/", "urn:x:{a.b_c}", "db://%20/{a}"] {
            assert!(UriTemplate::parse(template).is_ok(), "{template}");
        }
    }

    // covers: B-192
    #[test]
    fn matching_takes_a_time_proportional_to_the_uri() {
        let template = UriTemplate::parse("x:{+a}/{+b}/{+c}/{+d}/{+e}/end").unwrap();
        let hostile = format!("x:{}", "a/".repeat(1 << 19));
        // A matcher that goes back would compare some 10^26 splits.
        for _ in 0..8 {
            assert_eq!(template.values(&hostile), None);
        }
    }

    // covers: RES-S-020
    #[test]
    fn a_path_of_a_peer_stays_below_its_directory() {
        for uri in ["file:///a/b", "file:///a/..b/c.", "db://a/../b", "file://h/%20?../x"] {
            assert!(is_plain_path(uri), "{uri}");
        }
        for uri in [
            "file:///a/../b",
            "file:///a/%2e%2E/b",
            "FILE:///./a",
            "file:///a%2Fb",
            "file:///a%5c..%5cb",
            "file:///%00",
        ] {
            assert!(!is_plain_path(uri), "{uri}");
        }
        for path in ["a", "a/b.txt", "..a/b..", "a b"] {
            assert!(stays_below(path), "{path}");
        }
        for path in ["", "/a", "../a", "a/../b", "a/..", "a\\..\\b", "C:/a", "C:a", ".", "a\0b"] {
            assert!(!stays_below(path), "{path}");
        }
    }

    proptest! {
        #[test]
        fn every_expansion_matches_with_the_values_it_was_made_of(a in "[a-z%0-9 é/]{1,9}", b in "\\PC{1,9}") {
            let encode = |text: &str| -> String { text.bytes().map(|byte| format!("%{byte:02X}")).collect() };
            let uri = format!("db://{}/x/{}", encode(&a), encode(&b));
            prop_assert!(is_uri(&uri));
            prop_assert_eq!(values("db://{a}/x/{b}", &uri), pairs(&[("a", &a), ("b", &b)]));
        }

        #[test]
        fn no_uri_panics(template in "[a-c:/{}+?.-]{0,20}", uri in "\\PC{0,30}") {
            if let Ok(template) = UriTemplate::parse(&template) {
                let _ = template.values(&uri);
                prop_assert!(template.values(&template.example()).is_some());
            }
        }
    }
}
