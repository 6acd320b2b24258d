//! Text that a peer chose, in a form that terminals and logs display and do not interpret.

use core::fmt;

/// Text of a peer, for a `Display`. It writes control characters, line ends, bidirectional controls
/// and invisible characters as escapes such as `\n` and `\u{9b}`, and every other character
/// unchanged. Escaping an escaped text changes nothing. It does not allocate.
pub struct Visible<'a>(pub &'a str);

impl fmt::Display for Visible<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0;
        while let Some((at, c)) = rest.char_indices().find(|(_, c)| is_escaped(*c)) {
            let (before, after) = rest.split_at(at);
            write!(f, "{before}{}", c.escape_default())?;
            rest = &after[c.len_utf8()..];
        }
        f.write_str(rest)
    }
}

/// Returns the first bytes of a text, at most `max`, without a part of a character.
pub fn beginning(text: &str, max: usize) -> &str {
    let end = (0..=max.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or_default();
    &text[..end]
}

/// Writes the texts, separated by commas.
pub fn write_list<'a>(f: &mut fmt::Formatter<'_>, texts: impl Iterator<Item = &'a str>) -> fmt::Result {
    for (at, text) in texts.enumerate() {
        write!(f, "{}{}", if at == 0 { "" } else { ", " }, Visible(text))?;
    }
    Ok(())
}

/// Returns whether a terminal or a line reader interprets this character instead of displaying it,
/// or displays nothing: C0, DEL and C1, the line ends of Unicode, the controls of bidirectional
/// text (Unicode Standard Annex 9), which can disguise a line as another one, and the rest of the
/// property `Default_Ignorable_Code_Point` (Unicode Standard 5.21), among them the joiners and
/// spaces of no width, which can make two names look the same.
pub(crate) fn is_escaped(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}')
        || matches!(c, '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}')
        || matches!(c, '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}')
        || matches!(c, '\u{ffa0}' | '\u{fff0}'..='\u{fff8}' | '\u{1bca0}'..='\u{1bca3}')
        || matches!(c, '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::{String, ToString};
    use alloc::vec::Vec;
    use proptest::prelude::*;

    fn visible(text: &str) -> String {
        Visible(text).to_string()
    }

    // covers: S2-44
    #[test]
    fn controls_become_escapes() {
        for (text, shown) in [
            ("\u{1b}[2J", r"\u{1b}[2J"),
            ("a\r\nb\tc", r"a\r\nb\tc"),
            ("\0\u{7}\u{8}\u{1f}\u{7f}", r"\u{0}\u{7}\u{8}\u{1f}\u{7f}"),
            ("\u{80}\u{85}\u{9b}31m\u{9f}", r"\u{80}\u{85}\u{9b}31m\u{9f}"),
            ("a\u{2028}b\u{2029}", r"a\u{2028}b\u{2029}"),
            ("\u{202a}\u{202b}\u{202c}\u{202d}\u{202e}", r"\u{202a}\u{202b}\u{202c}\u{202d}\u{202e}"),
            ("\u{2066}\u{2067}\u{2068}\u{2069}", r"\u{2066}\u{2067}\u{2068}\u{2069}"),
            ("\u{200e}\u{200f}\u{61c}", r"\u{200e}\u{200f}\u{61c}"),
            ("a\u{200b}b\u{200c}c\u{200d}d\u{2060}\u{feff}", r"a\u{200b}b\u{200c}c\u{200d}d\u{2060}\u{feff}"),
            ("\u{ad}\u{34f}\u{180e}\u{2063}\u{3164}\u{fe0f}", r"\u{ad}\u{34f}\u{180e}\u{2063}\u{3164}\u{fe0f}"),
            ("x\u{e0041}\u{e01ef}", r"x\u{e0041}\u{e01ef}"),
        ] {
            assert_eq!(visible(text), shown);
        }
    }

    // covers: S2-44
    #[test]
    fn other_text_is_unchanged() {
        for text in [
            "",
            "tool `x` failed: \"no\" \\ 100 %",
            "Größe, naïve, Ünïcödé",
            "日本語 한국어 中文",
            "😀 👋🏽 e\u{301} עברית العربية",
            "\u{a0}\u{2003}\u{fffd}\u{10ffff}",
        ] {
            assert_eq!(visible(text), text);
        }
    }

    #[test]
    fn lists_are_separated_by_commas() {
        struct List<'a>(&'a [&'a str]);
        impl fmt::Display for List<'_> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write_list(f, self.0.iter().copied())
            }
        }
        assert_eq!(List(&[]).to_string(), "");
        assert_eq!(List(&["a", "b\n", "c"]).to_string(), r"a, b\n, c");
    }

    fn characters() -> impl Strategy<Value = Vec<char>> {
        let often =
            ['\u{1b}', '\r', '\n', '\u{85}', '\u{9b}', '\u{2028}', '\u{202e}', '\u{2066}', '\u{200b}', '\\', 'n'];
        prop::collection::vec(prop_oneof![any::<char>(), prop::sample::select(often.to_vec())], 0..24)
    }

    proptest! {
        // covers: S2-44
        #[test]
        fn only_controls_of_any_text_are_escaped(chars in characters()) {
            let text: String = chars.into_iter().collect();
            let shown = visible(&text);
            prop_assert!(!shown.chars().any(is_escaped));
            prop_assert_eq!(visible(&shown), shown.clone());
            let expected: String =
                text.chars().map(|c| if is_escaped(c) { c.escape_default().to_string() } else { c.into() }).collect();
            prop_assert_eq!(shown, expected);
        }
    }
}
