//! The content coding that a client asks for (RFC 9110 section 12.5.3).

use crate::exchange::{Headers, members};
use core::iter;

/// The weight of a coding without one, in thousandths.
const WHOLE: u16 = 1000;

/// Returns whether the sender of these fields takes gzip, and does not like it less than no coding.
/// A coding that is named twice has the smaller weight. One with an invalid weight is refused.
pub(in crate::frame) fn takes_gzip(headers: &Headers) -> bool {
    let (mut gzip, mut any, mut identity) = (None, None, None);
    for member in headers.all("accept-encoding").flat_map(members) {
        let (coding, weight) = match member.split_once(';') {
            Some((coding, parameter)) => (coding.trim_end(), weight(parameter).unwrap_or(0)),
            None => (member, WHOLE),
        };
        let slot = match coding {
            "*" => &mut any,
            coding if super::is_gzip(coding) => &mut gzip,
            coding if coding.eq_ignore_ascii_case("identity") => &mut identity,
            _ => continue,
        };
        *slot = Some(slot.unwrap_or(WHOLE).min(weight));
    }
    let gzip = gzip.or(any).unwrap_or(0);
    gzip > 0 && gzip >= identity.unwrap_or(0)
}

/// Returns a weight in thousandths (RFC 9110 section 12.4.2).
fn weight(parameter: &str) -> Option<u16> {
    let value = parameter.trim().strip_prefix(['q', 'Q'])?.strip_prefix('=')?;
    let (whole, rest) = value.split_once('.').unwrap_or((value, ""));
    if rest.len() > 3 || !rest.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let digits = rest.bytes().chain(iter::repeat(b'0')).take(3);
    match (whole, digits.fold(0, |value, digit| 10 * value + u16::from(digit - b'0'))) {
        ("0", part) => Some(part),
        ("1", 0) => Some(WHOLE),
        _ => None,
    }
}
