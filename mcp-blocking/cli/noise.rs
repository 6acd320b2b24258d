//! What a program prints on standard output that is no message: folded, and named as what it is.

use crate::output::summary;
use mcp_blocking::mcp_proto::error::{Diagnostic, DiagnosticKind};
use mcp_blocking::mcp_proto::rpc::InvalidKind;

/// Number of lines that are shown. The others are counted.
const SHOWN: usize = 3;

/// Characters of a line that are shown.
const WIDTH: usize = 160;

/// The lines of a program that are no messages.
#[derive(Clone, Debug)]
pub(crate) struct Noise {
    lines: usize,
    /// Number of these that are JSON.
    json: usize,
    first: String,
    form: Option<Form>,
}

/// A form of messages that MCP does not have.
#[derive(Clone, Copy, Debug)]
enum Form {
    /// Headers before each message, as language servers have them.
    Length,
    /// JSON over several lines.
    Pretty,
}

impl Noise {
    pub(crate) const fn new() -> Self {
        Self { lines: 0, json: 0, first: String::new(), form: None }
    }

    /// Returns whether a diagnostic of a program is about a line that is no message. A line beyond
    /// the limit may be one.
    pub(crate) fn is_about(diagnostic: &Diagnostic) -> bool {
        diagnostic.kind == DiagnosticKind::BadMessage && !diagnostic.detail.starts_with(InvalidKind::TooLong.as_str())
    }

    /// Takes note of such a diagnostic. Returns what to show of it, if it is one of the first.
    pub(crate) fn add(&mut self, diagnostic: &Diagnostic) -> Option<String> {
        // The detail is the reason and the line.
        let (why, line) = diagnostic.detail.split_once(": ").unwrap_or((&diagnostic.detail, ""));
        let no_json = [InvalidKind::Syntax, InvalidKind::Truncated, InvalidKind::Utf8];
        let is_json = no_json.iter().all(|kind| kind.as_str() != why);
        let shown = summary(line, WIDTH);
        self.lines += 1;
        self.json += usize::from(is_json);
        self.form = self.form.or_else(|| Form::of(line.trim()));
        if self.lines == 1 {
            self.first.clone_from(&shown);
        }
        let what = if is_json { "no message" } else { "no JSON" };
        (self.lines <= SHOWN).then(|| format!("a line on standard output is {what}: {shown}"))
    }

    /// Returns what to add at the end to the lines that were shown.
    pub(crate) fn rest(&self) -> Vec<String> {
        let more = self.lines.saturating_sub(SHOWN);
        let count = (more > 0).then(|| format!("and {more} more {}", self.kind(more)));
        count.into_iter().chain(self.form.map(Form::text)).collect()
    }

    /// Returns what explains an error after these lines.
    pub(crate) fn explain(&self) -> Vec<String> {
        let (lines, first) = (self.lines, &self.first);
        let count = match lines {
            0 => None,
            1 => Some(format!("the program printed 1 {}: {first}", self.kind(lines))),
            _ => Some(format!("the program printed {lines} {}; the first: {first}", self.kind(lines))),
        };
        count.into_iter().chain(self.form.map(Form::text)).collect()
    }

    fn kind(&self, lines: usize) -> String {
        let what = if self.json == 0 { "JSON" } else { "messages" };
        if lines == 1 { format!("line that is no {what}") } else { format!("lines that are no {what}") }
    }
}

impl Form {
    fn of(line: &str) -> Option<Self> {
        let is_length = line.get(..15).is_some_and(|start| start.eq_ignore_ascii_case("content-length:"));
        let is_pretty = matches!(line, "{" | "[") || line.starts_with("\"jsonrpc\"");
        if is_length { Some(Self::Length) } else { is_pretty.then_some(Self::Pretty) }
    }

    fn text(self) -> String {
        match self {
            Self::Length => {
                "its messages have a head with Content-Length, as those of language servers: MCP has one message a line"
            }
            Self::Pretty => "it prints JSON over several lines: a message of MCP is one line",
        }
        .to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noise(lines: &[(InvalidKind, &str)]) -> (Noise, Vec<String>) {
        let mut noise = Noise::new();
        let diagnostic = |(kind, line): &(InvalidKind, &str)| {
            Diagnostic::new(DiagnosticKind::BadMessage, format!("{}: {line}", kind.as_str()))
        };
        let shown = lines.iter().filter_map(|line| noise.add(&diagnostic(line))).collect();
        (noise, shown)
    }

    #[test]
    fn lines_after_the_third_are_counted() {
        let (one, shown) = noise(&[(InvalidKind::Syntax, "Listening: 80")]);
        assert_eq!(shown, ["a line on standard output is no JSON: Listening: 80"]);
        assert_eq!(one.explain(), ["the program printed 1 line that is no JSON: Listening: 80"]);
        assert!(one.rest().is_empty());
        let (many, shown) = noise(&[(InvalidKind::Syntax, "a\u{1b}[2J"); 12]);
        assert_eq!(shown.len(), 3);
        assert_eq!(many.rest(), ["and 9 more lines that are no JSON"]);
        assert_eq!(many.explain(), [r"the program printed 12 lines that are no JSON; the first: a\u{1b}[2J"]);
        let (logs, _) = noise(&[(InvalidKind::NotJsonRpc, "{\"level\":30}"), (InvalidKind::Syntax, "x")]);
        assert!(logs.explain()[0].starts_with("the program printed 2 lines that are no messages; "));
        assert!(noise(&[]).0.explain().is_empty());
    }

    #[test]
    fn other_framings_are_named() {
        let of = |lines: &[&str]| {
            let lines: Vec<_> = lines.iter().map(|line| (InvalidKind::Syntax, *line)).collect();
            noise(&lines).0.explain().into_iter().nth(1)
        };
        assert!(of(&["content-length: 5", "{}x"]).is_some_and(|text| text.contains("Content-Length")));
        assert!(of(&["{", "  \"jsonrpc\": \"2.0\","]).is_some_and(|text| text.contains("several lines")));
        assert_eq!(of(&["Listening"]), None);
    }

    // A line beyond the limit is a matter of the limit.
    #[test]
    fn line_over_the_limit_is_no_noise() {
        let long = Diagnostic::new(DiagnosticKind::BadMessage, format!("{}: {{", InvalidKind::TooLong.as_str()));
        assert!(!Noise::is_about(&long));
    }
}
