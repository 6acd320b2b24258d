//! Texts of a peer in diagnostics and errors.

use alloc::string::String;

/// Returns the beginning of a text that the peer chose, so that a diagnostic stays small.
pub(crate) fn excerpt(text: &str) -> String {
    const MAX: usize = 200;
    text.char_indices().nth(MAX).map_or_else(|| text.into(), |(end, _)| alloc::format!("{}…", &text[..end]))
}
