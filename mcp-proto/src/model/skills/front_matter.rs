//! The front matter of a `SKILL.md` as JSON: YAML between two lines `---` at the beginning of the
//! file.
//!
//! It comes from a peer. It has at most 64 KiB, and is refused if it contains what readers of YAML
//! do not agree on, or what makes a small text large:
//!
//! | YAML | becomes |
//! |---|---|
//! | a plain scalar | what the core schema of YAML 1.2 says: `null`, `true`, numbers, or a text. `yes`, `on` and `2026-01-02` are texts |
//! | `0x1F`, `0o17` | the number. `017` is seventeen |
//! | `1.50` | a number that is written so |
//! | a quoted or block scalar | a text |
//! | an anchor, an alias, a tag, a second document | an error |
//! | `.inf`, `.nan` | an error: JSON has none |
//! | a key that is no text, or twice in its mapping | an error. `"1": x` is a text |
//! | the key `<<`, which merged mappings in YAML 1.1 | an error, unless it is quoted |
//! | more than 32 levels | an error |
//!
//! Two values are the same as JSON values are: in any order of members, numbers by their value. A
//! member that is `null` is the same as none, since writers of JSON leave it out.

use crate::rpc::{JsonKind, Object, RawJson};
use alloc::borrow::Cow;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use saphyr_parser::{Event, Parser, ScalarStyle};

/// Maximum size of the front matter, in bytes.
pub const MAX_BYTES: usize = 64 << 10;

/// Maximum number of mappings and sequences within each other.
pub const MAX_DEPTH: usize = 32;

/// Reads the front matter of a file.
///
/// # Errors
/// Why there is none, for people. It may quote the file.
pub(super) fn read(file: &[u8]) -> Result<Object, String> {
    let text = core::str::from_utf8(file).map_err(|_| "the file is not UTF-8")?;
    let mut parser = Parser::new_from_str(yaml_of(text)?);
    let mut open: Vec<Collection> = Vec::new();
    let mut root = None;
    while let Some(event) = parser.next_event() {
        let (event, _) = event.map_err(|why| format!("its front matter is not YAML: {}", why.info()))?;
        let value = match event {
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => continue,
            Event::DocumentStart(_) if root.is_none() => continue,
            Event::DocumentStart(_) => return Err("its front matter has two documents".into()),
            Event::Alias(_) => return Err("its front matter has an alias".into()),
            Event::Scalar(_, _, 1.., _) | Event::SequenceStart(1.., _) | Event::MappingStart(1.., _) => {
                return Err("its front matter has an anchor".into());
            }
            Event::Scalar(_, _, _, Some(_)) | Event::SequenceStart(_, Some(_)) | Event::MappingStart(_, Some(_)) => {
                return Err("its front matter has a tag".into());
            }
            Event::Scalar(text, style, ..) => match open.last_mut() {
                Some(Collection::Mapping { key: key @ None, keys, .. }) => {
                    *key = Some(read_key(text, style, keys)?);
                    continue;
                }
                _ => read_scalar(&text, style)?,
            },
            Event::SequenceStart(..) | Event::MappingStart(..) => {
                if open.len() == MAX_DEPTH {
                    return Err(format!("its front matter has more than {MAX_DEPTH} levels"));
                }
                if matches!(open.last(), Some(Collection::Mapping { key: None, .. })) {
                    return Err("its front matter has a key that is no text".into());
                }
                open.push(match event {
                    Event::SequenceStart(..) => Collection::Sequence(Vec::new()),
                    _ => Collection::Mapping { members: Vec::new(), keys: BTreeSet::new(), key: None },
                });
                continue;
            }
            Event::SequenceEnd | Event::MappingEnd => match open.pop() {
                Some(Collection::Sequence(values)) => RawJson::encode(&values).map_err(|why| why.to_string())?,
                Some(Collection::Mapping { members, .. }) => members.into_iter().collect::<Object>().into(),
                None => continue,
            },
        };
        match open.last_mut() {
            Some(Collection::Sequence(values)) => values.push(value),
            Some(Collection::Mapping { members, key, .. }) => members.extend(key.take().map(|key| (key, value))),
            None => root = Some(value),
        }
    }
    let root = root.filter(|root| root.kind() == JsonKind::Object).ok_or("its front matter is no mapping")?;
    Object::read(&root).map_err(|why| why.to_string())
}

/// A collection that has not ended.
enum Collection {
    Sequence(Vec<RawJson>),
    Mapping {
        members: Vec<(String, RawJson)>,
        keys: BTreeSet<String>,
        /// The key whose value comes next.
        key: Option<String>,
    },
}

/// Returns the text between the first line `---` and the next one.
fn yaml_of(text: &str) -> Result<&str, String> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut lines = text.split_inclusive('\n');
    let first = lines.next().filter(|line| line.trim_end() == "---").ok_or("it does not begin with a line `---`")?;
    let mut length = 0;
    for line in lines {
        if line.trim_end() == "---" {
            return Ok(text.get(first.len()..first.len() + length).unwrap_or_default());
        }
        length += line.len();
        if length > MAX_BYTES {
            return Err(format!("its front matter has more than {MAX_BYTES} bytes"));
        }
    }
    Err("its front matter has no end".into())
}

fn read_key(text: Cow<'_, str>, style: ScalarStyle, keys: &mut BTreeSet<String>) -> Result<String, String> {
    if style == ScalarStyle::Plain && (text == "<<" || plain(&text)?.is_some()) {
        return Err("its front matter has a key that is no text".into());
    }
    if !keys.insert(text.to_string()) {
        return Err("its front matter has a key twice".into());
    }
    Ok(text.into_owned())
}

fn read_scalar(text: &str, style: ScalarStyle) -> Result<RawJson, String> {
    let plain = if style == ScalarStyle::Plain { plain(text)? } else { None };
    match plain {
        Some(value) => RawJson::parse(value.into_owned().into_bytes()).map_err(|why| why.to_string()),
        None => RawJson::encode(text).map_err(|why| why.to_string()),
    }
}

/// Returns the JSON of a plain scalar of the core schema (YAML 1.2.2 section 10.3.2). `None`: it is
/// a text.
fn plain(text: &str) -> Result<Option<Cow<'_, str>>, String> {
    Ok(match text {
        "" | "~" | "null" | "Null" | "NULL" => Some("null".into()),
        "true" | "True" | "TRUE" => Some("true".into()),
        "false" | "False" | "FALSE" => Some("false".into()),
        _ => number(text)?.map(Cow::Owned),
    })
}

/// Returns a number as JSON writes it. `None`: it is none.
fn number(text: &str) -> Result<Option<String>, String> {
    let large = || format!("its front matter has a number that JSON cannot hold: {text}");
    for (prefix, radix) in [("0x", 16), ("0o", 8)] {
        if let Some(digits) = text.strip_prefix(prefix)
            && !digits.is_empty()
            && digits.chars().all(|digit| digit.is_digit(radix))
        {
            return u64::from_str_radix(digits, radix).map(|value| Some(value.to_string())).map_err(|_| large());
        }
    }
    let (sign, rest) = match text.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", text.strip_prefix('+').unwrap_or(text)),
    };
    if matches!(rest, ".inf" | ".Inf" | ".INF") || matches!(text, ".nan" | ".NaN" | ".NAN") {
        return Err(large());
    }
    let is_digits = |digits: &str| digits.bytes().all(|digit| digit.is_ascii_digit());
    let (mantissa, exponent) = match rest.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (rest, None),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (mantissa, None),
    };
    let digits = exponent.map(|exponent| exponent.strip_prefix(['-', '+']).unwrap_or(exponent));
    let is_number = is_digits(whole)
        && fraction.is_none_or(is_digits)
        && !(whole.is_empty() && fraction.is_none_or(str::is_empty))
        && digits.is_none_or(|digits| !digits.is_empty() && is_digits(digits));
    if !is_number {
        return Ok(None);
    }
    let whole = whole.trim_start_matches('0');
    let mut json = format!("{sign}{}", if whole.is_empty() { "0" } else { whole });
    match fraction {
        Some("") => json.push_str(".0"),
        Some(fraction) => json.push_str(&format!(".{fraction}")),
        None => {}
    }
    if let Some(exponent) = exponent {
        json.push_str(&format!("e{exponent}"));
    }
    // An integer of any length is exact in JSON; what has a fraction or an exponent is a double.
    let is_exact = fraction.is_none() && exponent.is_none();
    let is_finite = || json.parse::<f64>().is_ok_and(f64::is_finite);
    if is_exact || is_finite() { Ok(Some(json)) } else { Err(large()) }
}

/// Returns whether two values are the same.
pub(super) fn same(one: &RawJson, other: &RawJson) -> bool {
    match (one.kind(), other.kind()) {
        (JsonKind::Object, JsonKind::Object) => match (Object::read(one), Object::read(other)) {
            (Ok(one), Ok(other)) => same_objects(&one, &other),
            _ => false,
        },
        (JsonKind::Array, JsonKind::Array) => {
            let (mut one, mut other) = (one.elements(), other.elements());
            loop {
                match (one.next(), other.next()) {
                    (None, None) => return true,
                    (Some(one), Some(other)) if same(&one, &other) => {}
                    _ => return false,
                }
            }
        }
        (JsonKind::String, JsonKind::String) => match (one.decode::<String>(), other.decode::<String>()) {
            (Ok(one), Ok(other)) => one == other,
            _ => false,
        },
        (JsonKind::Number, JsonKind::Number) => same_numbers(one.as_str(), other.as_str()),
        (one_kind, other_kind) => one_kind == other_kind && one.as_str() == other.as_str(),
    }
}

/// Compares objects. Of a member that is there twice the last one counts, as everywhere.
pub(super) fn same_objects(one: &Object, other: &Object) -> bool {
    let (one, other): (BTreeMap<_, _>, BTreeMap<_, _>) = (one.iter().collect(), other.iter().collect());
    let null = RawJson::null();
    // Each member is compared once: twice would double with every level.
    one.iter().all(|(key, value)| same(value, other.get(key).unwrap_or(&null)))
        && other.iter().all(|(key, value)| one.contains_key(key) || same(value, &null))
}

/// Compares numbers: integers digit by digit, since a double does not hold all of them.
fn same_numbers(one: &str, other: &str) -> bool {
    let is_integer = |number: &str| !number.contains(['.', 'e', 'E']);
    if one == other {
        return true;
    }
    match is_integer(one) && is_integer(other) {
        true => false,
        false => match (one.parse::<f64>(), other.parse::<f64>()) {
            (Ok(one), Ok(other)) => one == other,
            _ => false,
        },
    }
}
