//! The two forms of an ECDSA signature: `ECDSA-Sig-Value` in DER (RFC 3279 section 2.2.3), and the
//! two numbers, one after the other (RFC 7518 section 3.4). Curves up to P-384 need no length of
//! more than one byte.

use alloc::vec;
use alloc::vec::Vec;

const INTEGER: u8 = 0x02;
const SEQUENCE: u8 = 0x30;

/// Returns the two numbers of a signature in DER, each in `size` bytes.
pub(super) fn numbers(der: &[u8], size: usize) -> Option<Vec<u8>> {
    let (content, after) = read(SEQUENCE, der)?;
    let (r, content) = read(INTEGER, content)?;
    let (s, content) = read(INTEGER, content)?;
    let mut raw = vec![0; 2 * size];
    let (first, second) = raw.split_at_mut(size);
    for (number, to) in [(r, first), (s, second)] {
        let digits = without_zeros(number);
        let start = size.checked_sub(digits.len())?;
        to[start..].copy_from_slice(digits);
    }
    (after.is_empty() && content.is_empty()).then_some(raw)
}

/// Returns the signature with these two numbers of the same size in DER.
pub(super) fn signature(raw: &[u8]) -> Vec<u8> {
    let (r, s) = raw.split_at(raw.len() / 2);
    element(SEQUENCE, &[integer(r), integer(s)].concat())
}

fn integer(number: &[u8]) -> Vec<u8> {
    let digits = without_zeros(number);
    // A first bit of 1 would make it negative.
    let padding: &[u8] = if digits.first().is_none_or(|first| *first >= 0x80) { &[0] } else { &[] };
    element(INTEGER, &[padding, digits].concat())
}

fn element(tag: u8, content: &[u8]) -> Vec<u8> {
    debug_assert!(content.len() < 0x80, "invariant: the numbers are of P-384 at most");
    [&[tag, content.len() as u8], content].concat()
}

/// Reads an element. Returns its content and what follows.
fn read(tag: u8, der: &[u8]) -> Option<(&[u8], &[u8])> {
    match der {
        [found, length @ ..0x80, rest @ ..] if *found == tag => rest.split_at_checked(usize::from(*length)),
        _ => None,
    }
}

fn without_zeros(number: &[u8]) -> &[u8] {
    let zeros = number.iter().take_while(|byte| **byte == 0).count();
    &number[zeros..]
}
