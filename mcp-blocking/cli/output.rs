//! Text of a server, for a terminal or for a program that reads it.

use mcp_blocking::mcp_proto::error::escaped;
use mcp_blocking::mcp_proto::redact::Url;
use mcp_blocking::mcp_proto::rpc::RawJson;
use std::env;
use std::fmt;
use std::io::{self, IsTerminal, Write};

/// Writes a line of text to standard output.
pub(crate) fn line(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.write_all(b"\n")
}

/// Writes a line to standard error, which may be closed: `eprintln!` would panic then.
pub(crate) fn note(text: impl fmt::Display) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// What a text on a terminal looks like.
#[derive(Clone, Copy)]
pub(crate) enum Colour {
    Bold,
    Green,
    Red,
}

/// Returns a text with a colour, if this stream is a terminal that shows colours and the user wants
/// them (`NO_COLOR`, no-color.org).
pub(crate) fn painted(text: &str, colour: Colour, stream: &impl IsTerminal) -> String {
    let is_set = |name: &str| env::var_os(name).is_some_and(|value| !value.is_empty());
    let is_dumb = env::var_os("TERM").is_some_and(|term| term == "dumb");
    if !stream.is_terminal() || is_dumb || is_set("NO_COLOR") {
        return text.to_owned();
    }
    let code = match colour {
        Colour::Bold => 1,
        Colour::Green => 32,
        Colour::Red => 31,
    };
    format!("\u{1b}[{code}m{text}\u{1b}[0m")
}

/// Characters of a line where standard output is no terminal.
const WIDTH: usize = 78;

/// The least of a line that is shown on a narrow terminal.
const NARROW: usize = 20;

/// Returns the characters of a line of standard output.
pub(crate) fn width() -> usize {
    if io::stdout().is_terminal() { columns().unwrap_or(WIDTH).max(NARROW) } else { WIDTH }
}

#[cfg(unix)]
fn columns() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
    (size.ws_col > 0).then_some(size.ws_col.into())
}

#[cfg(not(unix))]
fn columns() -> Option<usize> {
    env::var("COLUMNS").ok()?.parse().ok()
}

/// Returns a list with commas in lines that fit a terminal, with this indentation after the first.
/// Where standard output is no terminal, it stays one line.
pub(crate) fn wrapped(text: &str, indent: usize) -> String {
    if io::stdout().is_terminal() { wrap(text, indent, width()) } else { text.to_owned() }
}

fn wrap(text: &str, indent: usize, width: usize) -> String {
    let (mut lines, mut used) = (String::new(), 0);
    for piece in text.split_inclusive(", ") {
        if used > indent && used + piece.trim_end().chars().count() > width {
            lines.truncate(lines.trim_end().len());
            lines.push_str(&format!("\n{:indent$}", ""));
            used = indent;
        }
        lines.push_str(piece);
        used += piece.chars().count();
    }
    lines
}

/// Writes JSON as a line. A terminal gets no control characters.
pub(crate) fn json(value: impl Into<RawJson>) -> io::Result<()> {
    let value = value.into();
    if io::stdout().is_terminal() { line(&ascii_controls(value.as_str())) } else { line(value.as_str()) }
}

/// Returns JSON in which characters that could change what a terminal shows are escaped. They occur
/// in strings only.
fn ascii_controls(json: &str) -> String {
    let mut shown = String::with_capacity(json.len());
    for c in json.chars() {
        let mut place = [0; 4];
        let one: &str = c.encode_utf8(&mut place);
        if c.is_ascii_whitespace() || *one == *escaped(one).to_string() {
            shown.push(c);
        } else {
            let mut place = [0; 2];
            c.encode_utf16(&mut place).iter().for_each(|unit| shown.push_str(&format!("\\u{unit:04x}")));
        }
    }
    shown
}

/// Writes text of a server. A terminal gets no control characters, which could change what it shows
/// of anything else.
pub(crate) fn text(text: &str) -> io::Result<()> {
    if io::stdout().is_terminal() { line(&printable(text)) } else { line(text) }
}

/// Returns text with escapes, except for the ends of lines and tabs.
pub(crate) fn printable(text: &str) -> String {
    let kept = ['\n', '\t'];
    let pieces = text.split_inclusive(kept).map(|piece| match piece.strip_suffix(kept) {
        Some(before) => format!("{}{}", escaped(before), &piece[before.len()..]),
        None => escaped(piece).to_string(),
    });
    pieces.collect()
}

/// Returns the first line of a description, of at most this many characters.
pub(crate) fn summary(text: &str, max: usize) -> String {
    let first = printable(text.trim()).lines().next().unwrap_or_default().to_owned();
    if first.chars().count() <= max {
        return first;
    }
    first.chars().take(max.saturating_sub(1)).chain(['…']).collect()
}

/// Returns a text that is one line, whatever it contains.
pub(crate) fn one_line(text: &str) -> String {
    escaped(text).to_string()
}

/// Returns a word of the command line as one line. Where it may be a URL, its password is hidden,
/// and the secrets of its query.
pub(crate) fn word(text: &str) -> String {
    match text.split_once('@') {
        // A URL without its scheme: the user forgot it.
        Some((_, host)) if !text.contains("://") => format!("…@{}", Url(host.rsplit('@').next().unwrap_or(host))),
        _ => Url(text).to_string(),
    }
}

/// Returns a word of the command line as a user types it in a shell, without the secrets of a URL.
pub(crate) fn argument(text: &str) -> String {
    quoted(&word(text))
}

/// Returns a text as one word of a shell. Of a text of a peer, the shell evaluates nothing.
pub(crate) fn quoted(text: &str) -> String {
    let shown = one_line(text);
    let is_plain = |c: char| c.is_alphanumeric() || "-._~:/@%+,=…".contains(c);
    if shown.chars().all(is_plain) && !shown.is_empty() { shown } else { format!("'{}'", shown.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn argument_is_one_word_of_a_shell() {
        let shown = ["https://h:80/x", "https://h/x?a=1&token=secret", "a b", "it's", ""].map(argument);
        assert_eq!(shown, ["https://h:80/x", "'https://h/x?a=1&token=…'", "'a b'", r"'it'\''s'", "''"]);
        assert_eq!(quoted("https://h/$(id)\n"), r"'https://h/$(id)\n'");
    }

    #[test]
    fn line_breaks_after_a_comma_where_a_terminal_ends() {
        assert_eq!(wrap("  t(a: integer, b: string)", 8, 20), "  t(a: integer,\n        b: string)");
        assert_eq!(wrap("  t(a: integer, b: string)", 8, 80), "  t(a: integer, b: string)");
        assert_eq!(wrap("abcdefghij, k", 2, 4), "abcdefghij,\n  k");
        assert_eq!(wrap("", 2, 4), "");
    }

    #[test]
    fn word_hides_the_password_of_a_url() {
        let hidden =
            ["https://ann:secret@h/x?token=secret&a=1", "ann:secret@h:80/x", "ann:sec@ret@h:80/x?token=secret"]
                .map(word);
        assert_eq!(hidden, ["https://…@h/x?token=…&a=1", "…@h:80/x", "…@h:80/x?token=…"]);
        assert_eq!(word("to\nols"), "to\\nols");
    }

    // covers: S2-44
    #[test]
    fn text_of_a_server_cannot_control_the_terminal() {
        assert_eq!(printable("a\tb\nc"), "a\tb\nc");
        assert_eq!(printable("\u{1b}[2J\r\u{202e}x"), "\\u{1b}[2J\\r\\u{202e}x");
        assert_eq!(summary("one\ntwo", 10), "one");
        assert_eq!(summary("a long description", 6), "a lon…");
        assert_eq!(one_line("a\nb\tc"), "a\\nb\\tc");
        let json = "{\"a\": \"\\\\ \u{9b}2J\u{202e}\u{7f}é😀\"}";
        assert_eq!(ascii_controls(json), "{\"a\": \"\\\\ \\u009b2J\\u202e\\u007fé😀\"}");
    }
}
