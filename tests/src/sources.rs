//! The Rust sources of the workspace, line by line, with comments and literals separated.
//!
//! The checks of layering and purity, and the program that counts marks, look for words. A word in
//! a comment or in a string is not a use of the thing that it names, so [`Source`] separates the
//! three. It is a lexer for the few relevant tokens, not a parser.

use std::fs;
use std::path::{Path, PathBuf};

/// One line of a source file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Line {
    /// The code without comments. A string literal is `""`, a character literal `' '`.
    pub code: String,
    /// The text of the comment on this line, without its slashes.
    pub comment: Option<String>,
    /// The string literals that begin on this line, as written between the quotes.
    pub strings: Vec<String>,
    /// Whether the line belongs to code that is compiled for tests only.
    pub test: bool,
    /// Number of characters of the whole line.
    pub width: usize,
}

/// One source file.
#[derive(Clone, Debug, PartialEq)]
pub struct Source {
    /// The path relative to the root of the workspace, with `/`.
    pub path: String,
    /// The lines in order; the first has number 1.
    pub lines: Vec<Line>,
}

/// Returns the root of the workspace.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("invariant: the package is in the workspace").to_path_buf()
}

/// Returns every `.rs` file below `folder` of the workspace, sorted by path. Empty if the directory
/// does not exist.
pub fn below(folder: &str) -> Vec<Source> {
    under(&root(), folder)
}

/// Like [`below`], for the checkout at `root`.
pub fn under(root: &Path, folder: &str) -> Vec<Source> {
    files(root, folder, ".rs").iter().map(|(path, text)| Source::new(path, text)).collect()
}

/// Returns the path relative to `root` and the text of every file below `folder` whose name ends
/// with `end`, sorted by path.
///
/// # Panics
/// If a file cannot be read.
pub fn files(root: &Path, folder: &str, end: &str) -> Vec<(String, String)> {
    let mut files = Vec::new();
    walk(&root.join(folder), end, &mut files);
    files.sort();
    let read = |file: &PathBuf| {
        let text = fs::read_to_string(file).unwrap_or_else(|why| panic!("{}: {why}", file.display()));
        let path = file.strip_prefix(root).expect("invariant: found below the root");
        (path.to_string_lossy().replace('\\', "/"), text)
    };
    files.iter().map(read).collect()
}

fn walk(folder: &Path, end: &str, files: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for path in entries.map(|entry| entry.expect("a folder can be listed").path()) {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() && name != "target" && name != "node_modules" && !name.starts_with('.') {
            walk(&path, end, files);
        } else if name.ends_with(end) {
            files.push(path);
        }
    }
}

impl Source {
    /// Splits `text` into lines. `path` decides whether the whole file is test code.
    pub fn new(path: &str, text: &str) -> Self {
        let mut lines = Lexer::default().run(text);
        for (line, written) in lines.iter_mut().zip(text.lines()) {
            line.width = written.chars().count();
        }
        mark_tests(&mut lines, is_test_path(path));
        Self { path: path.to_owned(), lines }
    }

    /// Returns the lines that are compiled outside of tests, with their numbers.
    pub fn shipped(&self) -> impl Iterator<Item = (usize, &Line)> {
        self.numbered().filter(|(_, line)| !line.test)
    }

    /// Returns all lines, with their numbers.
    pub fn numbered(&self) -> impl Iterator<Item = (usize, &Line)> {
        self.lines.iter().enumerate().map(|(at, line)| (at + 1, line))
    }

    /// Returns `path:number`, as compilers print it.
    pub fn at(&self, number: usize) -> String {
        format!("{}:{number}", self.path)
    }

    /// Returns the names that directly follow `root::` in shipped code, each with its line:
    /// `root::a::b` and `root::{a::B, c}` yield `a` and `c`.
    pub fn names_after(&self, root: &str) -> Vec<(usize, String)> {
        let mut found = Vec::new();
        let (mut text, mut starts) = (String::new(), Vec::new());
        for (number, line) in self.shipped() {
            starts.push((text.len(), number));
            text.push_str(&line.code);
            text.push('\n');
        }
        let line_of = |at: usize| starts[starts.partition_point(|(start, _)| *start <= at) - 1].1;
        for (at, _) in text.match_indices(root) {
            let before = text[..at].chars().next_back();
            let Some(rest) = text[at + root.len()..].strip_prefix("::") else { continue };
            if before.is_some_and(|c| is_word(c) || c == '$') {
                continue;
            }
            let start = text.len() - rest.len();
            found.extend(first_names(rest).into_iter().map(|(offset, name)| (line_of(start + offset), name)));
        }
        found
    }
}

/// Returns the first names of a path or of a group of paths, with their offsets.
fn first_names(text: &str) -> Vec<(usize, String)> {
    let word = |at: usize| text[at..].chars().take_while(|c| is_word(*c)).collect::<String>();
    if !text.starts_with('{') {
        return vec![(0, word(0))];
    }
    let (mut names, mut depth, mut fresh) = (Vec::new(), 0usize, false);
    for (at, c) in text.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ if c.is_whitespace() => continue,
            _ if fresh && is_word(c) => names.push((at, word(at))),
            _ => {}
        }
        if depth == 0 {
            break;
        }
        fresh = depth == 1 && matches!(c, '{' | ',');
    }
    names
}

/// Returns whether `code` contains `word` with no letter, digit or underscore directly before or
/// after it.
pub fn has_word(code: &str, word: &str) -> bool {
    code.match_indices(word).any(|(at, _)| {
        let before = code[..at].chars().next_back().is_some_and(is_word);
        let after = code[at + word.len()..].chars().next().is_some_and(is_word);
        !(before && word.starts_with(is_word) || after && word.ends_with(is_word))
    })
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Returns whether a path is that of test code: `tests.rs` and `tests/` inside a crate's sources,
/// and everything outside `src`.
fn is_test_path(path: &str) -> bool {
    let inside = path.split_once("/src/").map(|(_, inside)| inside);
    inside.is_none_or(|inside| inside.split('/').any(|part| part == "tests" || part == "tests.rs"))
}

/// The attributes of code that is compiled for tests only.
const TEST_ONLY: [&str; 2] = ["#[cfg(test)]", "#[cfg(all(test, "];

/// Marks the items under an attribute of [`TEST_ONLY`], up to the `;` or the closing brace of the
/// item, and the fields, up to their comma.
fn mark_tests(lines: &mut [Line], whole: bool) {
    let (mut inside, mut depth, mut opened) = (false, 0i32, false);
    for line in lines {
        let code = line.code.trim_start();
        if !inside && TEST_ONLY.iter().any(|attribute| code.starts_with(attribute)) {
            (inside, depth, opened) = (true, 0, false);
        }
        line.test = inside || whole;
        if !inside {
            continue;
        }
        let item = if code.starts_with("#[cfg(") { code.split_once(")]").map_or("", |(_, item)| item) } else { code };
        for c in item.chars() {
            match c {
                '{' | '(' | '[' => depth += 1,
                '}' | ')' | ']' => depth -= 1,
                _ => {}
            }
            opened |= c == '{';
            if depth == 0 && (c == ';' || c == '}' && opened) {
                inside = false;
            }
        }
        if depth == 0 && is_field(item) && item.ends_with(',') {
            inside = false;
        }
    }
}

/// Returns whether a line begins a field: a name with a colon.
fn is_field(code: &str) -> bool {
    let code = code.strip_prefix("pub").map_or(code, |rest| rest.split_once(") ").map_or(rest, |(_, rest)| rest));
    let name = code.trim_start().trim_start_matches(|c: char| c == '_' || c.is_ascii_alphanumeric());
    name.len() < code.trim_start().len() && name.starts_with(": ")
}

#[derive(Default)]
enum State {
    #[default]
    Code,
    LineComment,
    /// With the nesting depth.
    BlockComment(usize),
    Text,
    /// With the number of hashes.
    RawText(usize),
}

#[derive(Default)]
struct Lexer {
    state: State,
    lines: Vec<Line>,
    line: Line,
    comment: String,
    text: String,
    /// The line on which the open literal began.
    began: usize,
}

impl Lexer {
    fn run(mut self, source: &str) -> Vec<Line> {
        let chars: Vec<char> = source.chars().collect();
        let mut at = 0;
        while at < chars.len() {
            at += if chars[at] == '\n' { self.newline() } else { self.step(&chars[at..]) };
        }
        self.newline();
        self.lines
    }

    fn newline(&mut self) -> usize {
        match self.state {
            State::LineComment => self.state = State::Code,
            State::Text | State::RawText(_) => self.text.push('\n'),
            _ => {}
        }
        if !self.comment.is_empty() {
            self.line.comment = Some(std::mem::take(&mut self.comment));
        }
        self.lines.push(std::mem::take(&mut self.line));
        1
    }

    /// Handles the token at the front of `rest`. Returns its number of characters.
    fn step(&mut self, rest: &[char]) -> usize {
        let next = rest.get(1).copied();
        match self.state {
            State::LineComment => self.comment.push(rest[0]),
            State::BlockComment(depth) => match (rest[0], next) {
                ('*', Some('/')) => {
                    self.state = if depth == 1 { State::Code } else { State::BlockComment(depth - 1) };
                    return 2;
                }
                ('/', Some('*')) => {
                    self.state = State::BlockComment(depth + 1);
                    return 2;
                }
                (c, _) => self.comment.push(c),
            },
            State::Text => match rest[0] {
                '"' => self.end_text(),
                '\\' if next.is_some_and(|c| c != '\n') => {
                    self.text.extend(&rest[..2]);
                    return 2;
                }
                c => self.text.push(c),
            },
            State::RawText(hashes) => {
                if rest[0] == '"' && rest[1..].iter().take_while(|c| **c == '#').count() >= hashes {
                    self.end_text();
                    return 1 + hashes;
                }
                self.text.push(rest[0]);
            }
            State::Code => return self.step_code(rest),
        }
        1
    }

    fn step_code(&mut self, rest: &[char]) -> usize {
        let next = rest.get(1).copied();
        match (rest[0], next) {
            ('/', Some('/')) => {
                self.state = State::LineComment;
                return 2;
            }
            ('/', Some('*')) => {
                self.state = State::BlockComment(1);
                return 2;
            }
            ('"', _) => self.begin_text(State::Text),
            ('r', Some('"' | '#')) if !self.line.code.chars().next_back().is_some_and(|c| is_word(c) && c != 'b') => {
                let hashes = rest[1..].iter().take_while(|c| **c == '#').count();
                // `r#name` is a raw identifier.
                if rest.get(1 + hashes) == Some(&'"') {
                    self.begin_text(State::RawText(hashes));
                    return 2 + hashes;
                }
                self.line.code.push('r');
            }
            ('\'', Some('\\')) => {
                let end = rest.iter().skip(3).position(|c| *c == '\'').map_or(rest.len(), |end| end + 4);
                self.line.code.push_str("' '");
                return end;
            }
            ('\'', Some(_)) if rest.get(2) == Some(&'\'') => {
                self.line.code.push_str("' '");
                return 3;
            }
            (c, _) => self.line.code.push(c),
        }
        1
    }

    fn begin_text(&mut self, state: State) {
        self.state = state;
        self.began = self.lines.len();
        self.line.code.push('"');
    }

    fn end_text(&mut self) {
        self.state = State::Code;
        self.line.code.push('"');
        let text = std::mem::take(&mut self.text);
        self.lines.get_mut(self.began).unwrap_or(&mut self.line).strings.push(text);
    }
}
