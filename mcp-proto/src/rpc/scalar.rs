//! JSON strings and integers (RFC 8259), read from validated text and written.

use super::grammar::plain;
use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;

/// Returns the text of a JSON string. `None` for another value, or for a string with a lone
/// surrogate.
pub(super) fn read_string(value: &[u8]) -> Option<String> {
    unescape(value.strip_prefix(b"\"")?.strip_suffix(b"\"")?)
}

/// Like [`read_string`]. Borrows a text without escapes.
pub(super) fn read_str(value: &[u8]) -> Option<Cow<'_, str>> {
    let raw = value.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    match memchr::memchr(b'\\', raw) {
        Some(_) => unescape(raw).map(Cow::Owned),
        None => core::str::from_utf8(raw).ok().map(Cow::Borrowed),
    }
}

/// Returns a validated JSON number as an integer: any 64-bit integer, and an integer up to 2^53 in
/// any other notation (`1.0`, `10e-1`), which a peer with doubles can represent exactly. Uses
/// decimal arithmetic, so that a fraction is not lost in the rounding of a double.
pub(super) fn read_integer(value: &[u8]) -> Option<i64> {
    let text = core::str::from_utf8(value).ok()?;
    if !text.starts_with(|c: char| c == '-' || c.is_ascii_digit()) {
        return None;
    }
    if let Ok(n) = text.parse() {
        return Some(n);
    }
    let (negative, text) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = || whole.bytes().chain(fraction.bytes());
    let all = whole.len() + fraction.len();
    let leading = digits().take_while(|&d| d == b'0').count();
    if leading == all {
        return Some(0);
    }
    let trailing = digits().rev().take_while(|&d| d == b'0').count();
    // An exponent that does not fit moves the digits out of range, or behind the decimal point.
    let exponent = exponent.parse::<i64>().ok()?;
    let zeros =
        exponent.checked_sub(i64::try_from(fraction.len()).ok()?)?.checked_add(i64::try_from(trailing).ok()?)?;
    let zeros = u32::try_from(zeros).ok().filter(|&zeros| zeros <= 16)?;
    if all - leading - trailing > 16 {
        return None;
    }
    let significant = digits().skip(leading).take(all - leading - trailing);
    let n = significant.fold(0, |n, d| n * 10 + i64::from(d - b'0')).checked_mul(10_i64.pow(zeros))?;
    (n <= 1 << 53).then_some(if negative { -n } else { n })
}

/// Returns the text between the quotes of a validated JSON string, unescaped. `None` if it has a
/// lone surrogate.
pub(super) fn unescape(raw: &[u8]) -> Option<String> {
    let mut rest = core::str::from_utf8(raw).ok()?;
    let mut out = String::with_capacity(rest.len());
    while let Some((plain, escape)) = rest.split_once('\\') {
        out.push_str(plain);
        let kind = escape.chars().next()?;
        rest = escape.get(kind.len_utf8()..)?;
        out.push(match kind {
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'u' => {
                let unit = hex(rest.get(..4)?.as_bytes())?;
                rest = rest.get(4..)?;
                match char::from_u32(unit.into()) {
                    Some(c) => c,
                    None => {
                        let low = hex(rest.strip_prefix("\\u")?.get(..4)?.as_bytes())?;
                        rest = rest.get(6..)?;
                        char::decode_utf16([unit, low]).next()?.ok()?
                    }
                }
            }
            other => other,
        });
    }
    out.push_str(rest);
    Some(out)
}

/// Parses four hexadecimal digits.
fn hex(digits: &[u8]) -> Option<u16> {
    digits.iter().try_fold(0, |n, &d| Some(n << 4 | u16::try_from(char::from(d).to_digit(16)?).ok()?))
}

/// Appends an integer.
pub(crate) fn write_integer(out: &mut Vec<u8>, is_negative: bool, mut magnitude: u64) {
    // The digits, from the last to the first, and a sign.
    let mut digits = [0; 20];
    let mut at = digits.len();
    while at == digits.len() || magnitude > 0 {
        at -= 1;
        digits[at] = b'0' + (magnitude % 10) as u8;
        magnitude /= 10;
    }
    if is_negative {
        out.push(b'-');
    }
    out.extend_from_slice(&digits[at..]);
}

/// Appends a JSON string. Escapes only what RFC 8259 section 7 requires.
pub(super) fn write_string(out: &mut Vec<u8>, text: &str) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    out.push(b'"');
    let mut rest = text.as_bytes();
    loop {
        let (run, special) = rest.split_at(plain(rest));
        out.extend_from_slice(run);
        let Some((&byte, after)) = special.split_first() else { break };
        rest = after;
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            _ => {
                out.extend_from_slice(b"\\u00");
                out.extend_from_slice(&[HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
            }
        }
    }
    out.push(b'"');
}
