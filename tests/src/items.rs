//! The items of a Rust file: functions, types, impl blocks, modules and imports, with signatures.
//!
//! A scanner of tokens over the code that [`Source`] has separated from comments and literals. It
//! parses no expressions and expands no macros: it skips macros and the bodies of functions. Code
//! for tests has no items.

use std::ops::Range;

use crate::sources::Source;

/// One item.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Item {
    /// The keyword: `fn`, `struct`, `enum`, `union`, `trait`, `type`, `const`, `static`, `mod`,
    /// `impl` or `use`.
    pub kind: String,
    /// The name. An impl block and an import have none.
    pub name: String,
    /// The visibility as written, empty for a private item.
    pub visibility: String,
    /// The attributes, each with its brackets.
    pub attributes: Vec<String>,
    /// The text before the body or the value, in one line, without attributes and visibility.
    pub signature: String,
    /// The fields of a struct or the variants of an enum, in order, without attributes.
    pub parts: Vec<String>,
    /// The items of a module, trait or impl block.
    pub children: Vec<Item>,
    /// The lines from the visibility to the end of the body.
    pub lines: Range<usize>,
}

impl Item {
    /// Whether any crate may use the item, as far as its own visibility decides.
    pub fn is_public(&self) -> bool {
        self.visibility == "pub"
    }

    /// Whether the item is a type or a trait.
    pub fn is_type(&self) -> bool {
        ["struct", "enum", "union", "trait", "type"].contains(&self.kind.as_str())
    }
}

/// Returns the shipped items of a file.
pub fn items(source: &Source) -> Vec<Item> {
    let mut scanner = Scanner::default();
    for (number, line) in source.shipped() {
        scanner.push(&line.code, number);
    }
    scanner.items(0..scanner.tokens.len())
}

/// Returns the text in one line, as rustfmt writes a short one.
fn one_line(text: &str) -> String {
    let mut text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for (long, short) in
        [("( ", "("), (", )", ")"), (" )", ")"), ("[ ", "["), (", ]", "]"), (", }", " }"), (", >", ">")]
    {
        text = text.replace(long, short);
    }
    text.trim_end_matches(',').to_owned()
}

/// Whether a name can contain `c`.
pub fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

struct Token {
    text: Range<usize>,
    line: usize,
}

#[derive(Default)]
struct Scanner {
    code: String,
    tokens: Vec<Token>,
}

impl Scanner {
    fn push(&mut self, line: &str, number: usize) {
        let base = self.code.len();
        self.code.push_str(line);
        self.code.push('\n');
        let mut at = 0;
        while let Some(first) = line[at..].chars().next() {
            let rest = &line[at..];
            let length = if is_word(first) {
                rest.find(|c| !is_word(c)).unwrap_or(rest.len())
            } else {
                ["::", "->", "=>"]
                    .iter()
                    .find(|mark| rest.starts_with(**mark))
                    .map_or(first.len_utf8(), |mark| mark.len())
            };
            if !first.is_whitespace() {
                self.tokens.push(Token { text: base + at..base + at + length, line: number });
            }
            at += length;
        }
    }

    fn at(&self, token: usize) -> &str {
        self.tokens.get(token).map_or("", |token| &self.code[token.text.clone()])
    }

    fn text(&self, range: Range<usize>) -> String {
        if range.is_empty() {
            return String::new();
        }
        one_line(&self.code[self.tokens[range.start].text.start..self.tokens[range.end - 1].text.end])
    }

    /// Returns the token after the bracket that closes the one at `open`.
    fn close(&self, open: usize, end: usize) -> usize {
        let mut depth = 0;
        for at in open..end {
            match self.at(at) {
                "(" | "[" | "{" => depth += 1,
                ")" | "]" | "}" => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                return at + 1;
            }
        }
        end
    }

    /// Returns the first of `marks` from `at` on that is inside no bracket.
    fn find(&self, mut at: usize, end: usize, marks: &[&str]) -> usize {
        while at < end && !marks.contains(&self.at(at)) {
            at = if ["(", "[", "{"].contains(&self.at(at)) { self.close(at, end) } else { at + 1 };
        }
        at
    }

    /// Returns the attributes from `at` on and the token after them.
    fn attributes(&self, mut at: usize, end: usize) -> (Vec<String>, usize) {
        let mut found = Vec::new();
        while at < end && self.at(at) == "#" {
            let open = at + 1 + usize::from(self.at(at + 1) == "!");
            let close = self.close(open, end);
            found.push(self.text(open..close));
            at = close;
        }
        (found, at)
    }

    fn items(&self, range: Range<usize>) -> Vec<Item> {
        let (mut found, mut at) = (Vec::new(), range.start);
        while at < range.end {
            let (attributes, start) = self.attributes(at, range.end);
            let mut word = start + usize::from(self.at(start) == "pub");
            if word > start && self.at(word) == "(" {
                word = self.close(word, range.end);
            }
            let (visibility, from) = (self.text(start..word), word);
            while ["async", "unsafe", "default", "extern", "\""].contains(&self.at(word))
                || self.at(word) == "const" && ["fn", "unsafe", "async"].contains(&self.at(word + 1))
            {
                word += 1;
            }
            let item = match self.at(word) {
                "fn" | "struct" | "enum" | "union" | "trait" | "type" | "const" | "static" | "mod" | "impl" | "use" => {
                    self.item(word, from, range.end)
                }
                name => {
                    // A macro, or a token that begins no item.
                    let open = self.find(word, range.end, &["{", "(", "[", ";"]);
                    let is_macro = name.starts_with(is_word) && self.at(word + 1) == "!";
                    at = if is_macro { self.close(open, range.end) } else { word + 1 };
                    continue;
                }
            };
            let (item, next) = item;
            let lines = self.tokens[start].line..self.tokens[next - 1].line + 1;
            found.push(Item { visibility, attributes, lines, ..item });
            at = next;
        }
        found
    }

    /// Returns the item whose keyword is the token `word`, and the token after it.
    fn item(&self, word: usize, from: usize, end: usize) -> (Item, usize) {
        let kind = self.at(word).to_owned();
        let head = match kind.as_str() {
            "use" | "type" => self.find(word, end, &[";"]),
            "const" | "static" => self.find(word, end, &["=", ";"]),
            _ => self.find(word, end, &["{", ";"]),
        };
        let has_body = self.at(head) == "{";
        let next = if has_body { self.close(head, end) } else { (self.find(head, end, &[";"]) + 1).min(end) };
        let body = if has_body { head + 1..next - 1 } else { 0..0 };
        let name = if ["impl", "use"].contains(&kind.as_str()) { "" } else { self.at(word + 1) }.to_owned();
        let (mut parts, mut children) = (Vec::new(), Vec::new());
        match kind.as_str() {
            "mod" | "trait" | "impl" => children = self.items(body),
            "struct" | "enum" | "union" => parts = self.parts(body),
            _ => {}
        }
        (Item { kind, name, signature: self.text(from..head), parts, children, ..Item::default() }, next)
    }

    /// Returns the parts of a list that commas separate, without their attributes.
    fn parts(&self, range: Range<usize>) -> Vec<String> {
        let (mut found, mut at) = (Vec::new(), range.start);
        while at < range.end {
            let (_, start) = self.attributes(at, range.end);
            let mut comma = self.find(start, range.end, &[","]);
            let angles = |mark: &str, to: usize| (start..to).filter(|token| self.at(*token) == mark).count();
            while comma < range.end && angles("<", comma) > angles(">", comma) {
                comma = self.find(comma + 1, range.end, &[","]);
            }
            found.push(self.text(start..comma));
            at = comma + 1;
        }
        found
    }
}
