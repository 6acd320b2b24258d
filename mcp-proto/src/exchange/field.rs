//! The grammar of header fields (RFC 9110 section 5). Every field of every request passes it, so it
//! looks at bytes.

/// The bytes of a token, by their number.
const TOKEN: [bool; 256] = {
    let (mut is_token, mut byte) = ([false; 256], 0);
    while byte < 128 {
        is_token[byte] = (byte as u8).is_ascii_alphanumeric();
        byte += 1;
    }
    let (others, mut at) = (b"!#$%&'*+-.^_`|~", 0);
    while at < others.len() {
        is_token[others[at] as usize] = true;
        at += 1;
    }
    is_token
};

/// Returns whether `text` is a token (RFC 9110 section 5.6.2): a method, or the name of a field.
pub(crate) fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| TOKEN[usize::from(byte)])
}

/// Returns whether a value contains no control character except tabs, so that it cannot end its
/// line.
pub(crate) fn is_clean(value: &str) -> bool {
    // Looks at all bytes, so that the compiler can compare many at once.
    !value.bytes().fold(false, |found, byte| found | (byte < b' ') & (byte != b'\t') | (byte == 0x7f))
}

/// Returns a value without the spaces and tabs around it. Another reader may consider other Unicode
/// white space a part of it.
pub(crate) fn trim_blanks(value: &str) -> &str {
    let is_text = |byte: u8| !matches!(byte, b' ' | b'\t');
    match value.bytes().position(is_text) {
        Some(start) => &value[start..=value.bytes().rposition(is_text).unwrap_or(start)],
        None => "",
    }
}

/// Returns the comma-separated members of a value, without blanks around them.
pub(crate) fn members(value: &str) -> impl Iterator<Item = &str> {
    value.split(',').map(trim_blanks)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn bytes_of_tokens_and_values_are_those_of_the_grammar() {
        for byte in 0..=0x7f_u8 {
            let text = char::from(byte).to_string();
            assert_eq!(is_token(&text), byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte));
            assert_eq!(is_clean(&text), byte == b'\t' || !byte.is_ascii_control());
        }
        assert!(!is_token("") && !is_token("\u{e9}") && is_clean("\u{e9}"));
    }

    proptest! {
        #[test]
        fn blanks_are_trimmed_at_both_ends(value in "[ \t]{0,3}(.{0,5}|[a\u{e9}\u{a0}] [\u{e9}\u{a0}])[ \t]{0,3}") {
            prop_assert_eq!(trim_blanks(&value), value.trim_matches([' ', '\t']));
        }
    }
}
