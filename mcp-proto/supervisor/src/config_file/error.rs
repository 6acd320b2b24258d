//! What is wrong with a configuration file, and where.

use super::position::Position;
use alloc::format;
use alloc::string::String;
use core::fmt::{self, Write};
use mcp_proto::client::{BadHeader, BadUrl};
use mcp_proto::peer_text::{Visible, beginning};
use mcp_proto::rpc::JsonKind;

/// Maximum length of a key in a path, in bytes. Paths of many members of a long name would
/// otherwise take much more memory than the file.
const SHOWN_KEY: usize = 64;

/// Why a configuration file, one of its servers, or one of its inputs cannot be used. Its text has
/// [escapes](mcp_proto::error#text-of-a-peer), and contains no value of a variable or header field,
/// no argument and no URL.
///
/// ```
/// use mcp_supervisor::config_file::ConfigFile;
///
/// let text = r#"{"mcpServers": {"a": {"command": "npx", "args": ["-y", 1]}}}"#;
/// let file = ConfigFile::parse(text).unwrap();
/// let why = file.server("a").unwrap().unwrap_err();
/// assert_eq!(
///     why.to_string(),
///     "line 1, column 56, mcpServers.a.args[1]: a string is required, not a number"
/// );
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct ConfigError {
    /// The line in the file, from 1.
    pub line: u32,
    /// The column in characters, from 1. A byte order mark does not count.
    pub column: u32,
    /// The path of the value, as in `mcpServers.github.args[1]`. Empty for the whole file. Keys of
    /// more than 64 bytes are cut.
    pub path: String,
    /// What is wrong.
    pub kind: ConfigErrorKind,
}

/// What is wrong with a configuration file.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ConfigErrorKind {
    /// The text is longer than [`ConfigFile::MAX_LEN`](super::ConfigFile::MAX_LEN).
    TooLong,
    /// The list has more servers than [`ConfigFile::MAX_SERVERS`](super::ConfigFile::MAX_SERVERS).
    TooManyServers,
    /// The JSON is nested deeper than 128.
    TooDeep,
    /// The file is TOML, not JSON.
    Toml,
    /// The file is no JSON at this character. `None`: it ends too early.
    Syntax(Option<char>),
    /// A comment has no end.
    Comment,
    /// A string contains half of a surrogate pair, which is no text.
    Surrogate,
    /// The root has no list of servers under one of these keys.
    NoServers(&'static str),
    /// Two members exclude each other.
    Conflict(&'static str, &'static str),
    /// A key occurs twice in an object, or an id twice among the inputs.
    Duplicate,
    /// The value has the wrong type.
    WrongType {
        /// The required type.
        expected: &'static str,
        /// The type of the value.
        found: JsonKind,
    },
    /// A member is missing.
    Missing(&'static str),
    /// The command is empty.
    EmptyCommand,
    /// The type of the server or input is unknown.
    UnknownType(String),
    /// The type of the server needs another member.
    TypeNeeds {
        /// The type.
        kind: &'static str,
        /// The missing member.
        member: &'static str,
    },
    /// The URL cannot be used.
    Url(BadUrl),
    /// The type of the server needs a URL of this scheme.
    UrlScheme(&'static str),
    /// The header field cannot be used.
    Header(BadHeader),
    /// The name of an environment variable is empty, or contains `=` or NUL.
    EnvName,
    /// A text for a program contains NUL.
    Nul,
    /// The timeout is no whole number from 0.
    Timeout,
    /// The port is no whole number from 1 to 65535.
    Port,
    /// The URL is not one at which an authorization server has its metadata.
    MetadataUrl,
    /// A variable begins with `${` and has no `}`.
    Unterminated,
    /// A variable has no usable name, or its default contains another variable.
    BadVariable,
    /// The look-up returned no value for this variable.
    UnknownVariable(String),
    /// The look-up returned no content for the file of variables.
    EnvFileMissing,
    /// A line of the file of variables cannot be read.
    EnvFile {
        /// The line in that file, from 1.
        line: u32,
        /// What is wrong with it.
        fault: EnvFileFault,
    },
    /// The server comes from a project and needs a confirmation:
    /// [`Trust::Project`](super::Trust::Project).
    Unconfirmed,
}

/// What is wrong with a line of a file of variables (`envFile`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum EnvFileFault {
    /// The line is not `NAME=value`.
    NoAssignment,
    /// A value in quotes has no end, or text after it.
    Quotes,
    /// The name is empty or contains white space, or the value contains NUL.
    Illegal,
    /// The text is longer than [`ConfigFile::MAX_LEN`](super::ConfigFile::MAX_LEN).
    TooLong,
}

impl ConfigError {
    pub(super) const fn new(at: Position, path: String, kind: ConfigErrorKind) -> Self {
        Self { line: at.line, column: at.column, path, kind }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}", self.line, self.column)?;
        if !self.path.is_empty() {
            write!(f, ", {}", Visible(&self.path))?;
        }
        write!(f, ": {}", self.kind)
    }
}

impl core::error::Error for ConfigError {}

impl fmt::Display for ConfigErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong => f.write_str("the text is longer than 1 MiB"),
            Self::TooManyServers => f.write_str("the list has more than 1000 servers"),
            Self::TooDeep => f.write_str("the JSON is nested deeper than 128"),
            Self::Toml => f.write_str("this is a TOML file, as Codex has; only JSON is read"),
            Self::Syntax(None) => f.write_str("the text ends too early: a quote or a closing bracket is missing"),
            Self::Syntax(Some('"')) => f.write_str("a string is not expected here: a comma or colon may be missing"),
            Self::Syntax(Some('\'')) => f.write_str("JSON has double quotes around strings, not single ones"),
            Self::Syntax(Some('\n' | '\r')) => f.write_str("the line ends inside a string: a quote may be missing"),
            Self::Syntax(Some(c)) => write!(f, "`{}` is not expected here", Visible(c.encode_utf8(&mut [0; 4]))),
            Self::Comment => f.write_str("the comment has no end: `*/` is missing"),
            Self::Surrogate => f.write_str("the string contains half of a surrogate pair"),
            Self::NoServers(keys) => write!(f, "the file has no list of servers: {keys} is missing"),
            Self::Conflict(one, other) => write!(f, "`{one}` and `{other}` exclude each other: remove one"),
            Self::Duplicate => f.write_str("it occurs twice: remove or rename one"),
            Self::WrongType { expected, found } => write!(f, "{expected} is required, not {}", kind_name(*found)),
            Self::Missing(members) => write!(f, "{members} is missing"),
            Self::EmptyCommand => f.write_str("the command is empty"),
            Self::UnknownType(kind) => {
                write!(f, "the type `{}` is unknown", Visible(beginning(kind, SHOWN_KEY)))
            }
            Self::TypeNeeds { kind, member } => write!(f, "the type `{kind}` needs `{member}`"),
            Self::Url(why) => write!(f, "the URL cannot be used: {why}"),
            Self::UrlScheme(schemes) => write!(f, "the type needs {schemes} URL"),
            Self::Header(why) => write!(f, "{why}"),
            Self::EnvName => {
                f.write_str("the name of an environment variable is not empty, and contains no `=` or NUL")
            }
            Self::Nul => f.write_str("a program cannot be given the character NUL"),
            Self::Timeout => f.write_str("a whole number from 0 is required"),
            Self::Port => f.write_str("a whole number from 1 to 65535 is required"),
            Self::MetadataUrl => {
                f.write_str("the URL of metadata of an authorization server contains /.well-known/ and its form")
            }
            Self::Unterminated => f.write_str("a variable begins with `${` and has no `}`"),
            Self::BadVariable => {
                f.write_str("a variable needs a name, and its default cannot contain another variable")
            }
            Self::UnknownVariable(name) => {
                write!(f, "the variable `{}` has no value", Visible(beginning(name, SHOWN_KEY)))
            }
            Self::EnvFileMissing => f.write_str("this file of variables was not found"),
            Self::EnvFile { line, fault } => write!(f, "line {line} of this file: {fault}"),
            Self::Unconfirmed => f.write_str("the server comes from a project: it needs a confirmation"),
        }
    }
}

impl fmt::Display for EnvFileFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoAssignment => "NAME=value is required",
            Self::Quotes => "a value in quotes has no end, or text after it",
            Self::Illegal => "the name is empty or contains white space, or the value contains NUL",
            Self::TooLong => "the text is longer than 1 MiB",
        })
    }
}

const fn kind_name(kind: JsonKind) -> &'static str {
    match kind {
        JsonKind::Object => "an object",
        JsonKind::Array => "an array",
        JsonKind::String => "a string",
        JsonKind::Number => "a number",
        JsonKind::Bool => "a boolean",
        JsonKind::Null => "null",
    }
}

/// Returns the path of a member. A key that is no plain word is in brackets.
pub(super) fn member_path(base: &str, key: &str) -> String {
    let shown = beginning(key, SHOWN_KEY);
    let more = if shown.len() < key.len() { "…" } else { "" };
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '$' | '@' | '/');
    if !key.is_empty() && shown.chars().all(is_plain) {
        let dot = if base.is_empty() { "" } else { "." };
        return format!("{base}{dot}{shown}{more}");
    }
    let mut path = format!("{base}[");
    // A `String` takes all that is written.
    let _ = write!(path, "{}", QuotedText(shown));
    path.pop();
    path + more + "\"]"
}

/// Returns the path of an element.
pub(super) fn element_path(base: &str, index: usize) -> String {
    format!("{base}[{index}]")
}

/// A text in quotes, with escapes for terminals and for the quotes: different texts look different.
pub(super) struct QuotedText<'a>(pub(super) &'a str);

impl fmt::Display for QuotedText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        let mut rest = self.0;
        while let Some(at) = rest.find(['"', '\\']) {
            write!(f, "{}\\{}", Visible(&rest[..at]), &rest[at..=at])?;
            rest = &rest[at + 1..];
        }
        write!(f, "{}\"", Visible(rest))
    }
}
