//! Configuration files that list MCP servers: the `mcpServers` file of most clients, and its
//! dialects. Text in, values out: this module reads no file and no environment.
//!
//! ```
//! use mcp_supervisor::config_file::{ConfigFile, Trust, Variable};
//!
//! let text = r#"{
//!     // Comments and trailing commas are legal.
//!     "mcpServers": {
//!         "files": {"command": "npx", "args": ["-y", "files-server", "${HOME}"]},
//!         "broken": {"command": 7},
//!     },
//! }"#;
//! let file = ConfigFile::parse(text).unwrap();
//! let lookup = |variable: Variable<'_>| match variable {
//!     Variable::Environment("HOME") => Some("/home/ann".to_owned()), // std::env::var(name).ok()
//!     _ => None,
//! };
//! let mut configs = Vec::new();
//! for (name, server) in file.servers() {
//!     match server {
//!         Ok(entry) if !entry.is_disabled() => {
//!             configs.push(entry.client_config(&lookup, Trust::Trusted).unwrap());
//!         }
//!         Ok(_) => {}
//!         Err(why) => {
//!             assert_eq!(name, "broken");
//!             let shown = "line 5, column 31, mcpServers.broken.command: a string is required";
//!             assert!(why.to_string().starts_with(shown));
//!         }
//!     }
//! }
//! assert_eq!(configs.len(), 1);
//! ```
//!
//! # What is read
//!
//! The text is JSON with comments (`//`, `/* */`), trailing commas, and possibly a byte order mark.
//! It has at most 1 MiB, 1000 servers, and 128 levels. A syntax error is the error of the file. Any
//! other error belongs to one server or input, and does not affect the others. A known key that
//! occurs twice in a server, or the name of a server that occurs twice, is an error. Every member
//! that has no effect is in [`ConfigFile::ignored`]: unknown ones, and those that do not belong to
//! the server, such as `args` beside `url`.
//!
//! | member | meaning |
//! |---|---|
//! | `command`, `args`, `cwd` | the program; `cwd` is not resolved |
//! | `env` (opencode: `environment`) | variables of the program; they win over those of `envFile` |
//! | `envFile` | the path of a file of variables: see [`Variable::EnvFile`] |
//! | `url`, `serverUrl`, `httpUrl` | an address; only one of these and `command` is legal |
//! | `headers` | header fields of every HTTP request; `Accept` and `Content-Type` have no effect: the client writes them itself |
//! | `oauth`, `auth` | the login at the server: the client identifier, its secret, scopes, the port or URL of the redirect, as far as the client documents them. A secret that is no variable has no effect |
//! | `type` | see below |
//! | `timeout`, `requestTimeoutMs` | the timeout of requests; 0: none, also for the start of a listener; the second wins. Opencode 2 has several in an object: `execution` or `request` counts |
//! | `disabled`, `enabled` | whether the server is off: [`ServerEntry::is_disabled`] |
//!
//! | `type` | transport |
//! |---|---|
//! | none | with `command` a program; with a URL that of its scheme, over HTTP [`HttpMode::Auto`](mcp_proto::client::HttpMode::Auto) |
//! | none, with `httpUrl` | Streamable HTTP |
//! | `stdio`, `local` | a program |
//! | `http`, `streamable-http`, `streamableHttp` | Streamable HTTP; `http` in a file of VS Code as `sse` |
//! | `sse`, `remote` | [`HttpMode::Auto`](mcp_proto::client::HttpMode::Auto): many servers of this type speak Streamable HTTP today |
//! | `ws` | WebSocket: the URL has the scheme `ws` or `wss` (feature `ws`) |
//!
//! # Dialects
//!
//! | client | list of servers | variables | unit of `timeout` | source |
//! |---|---|---|---|---|
//! | Claude Desktop | `mcpServers` | as Claude Code (the client itself: unconfirmed) | as Claude Code | its examples |
//! | Claude Code | `mcpServers` | `${VAR}`, `${VAR:-default}`; in plugins `${user_config.NAME}` | ms, of tool calls | code.claude.com/docs/en/mcp, docs/en/plugins-reference |
//! | Cursor | `mcpServers` | `${env:VAR}`, `${workspaceFolder}`, `${userHome}`, … | ms (unconfirmed) | cursor.com/docs/mcp |
//! | Windsurf | `mcpServers`; `serverUrl` | `${env:VAR}`, `${file:path}` | ms (unconfirmed) | docs.windsurf.com/windsurf/cascade/mcp |
//! | Gemini CLI | `mcpServers`; `httpUrl` | `$VAR`, `${VAR}`, `${VAR:-default}`; in extensions `${extensionPath}`, `${workspacePath}`, `${/}` | ms, of requests | docs/tools/mcp-server.md, docs/reference/configuration.md, docs/extensions/reference.md |
//! | VS Code | `servers`, older settings `mcp.servers`; `inputs`, `envFile` | `${input:id}`, `${env:VAR}`, `${workspaceFolder}`, … | ms (unconfirmed) | docs/agents/reference/mcp-configuration.md, docs/reference/variables-reference.md, docs/copilot/chat/mcp-servers.md of 2025 |
//! | Zed | `context_servers`; `enabled`; in older settings `command` is an object of `path`, `args`, `env` | none | s, of tool calls | zed.dev/docs/ai/mcp, crates/settings_content/src/project.rs |
//! | opencode | `mcp`, in version 2 `mcp.servers`; `command` is an array, `environment`, `enabled`, in version 2 `disabled` | `{env:VAR}`, `{file:path}` | ms, of the list of tools, in version 2 of calls | opencode.ai/v1/docs/mcp-servers, opencode.ai/v2/docs/mcp-servers, opencode.ai/docs/config |
//!
//! A file without a list of servers is itself the list if each of its members is a server with a
//! `command` or an address, as in the `.mcp.json` of some plugins of Claude Code. It is one of
//! `mcpServers`, or of the dialect of the caller. `$schema` and remarks (a text under a key that
//! begins with `_` or `/`) are accepted beside the servers.
//!
//! A file does not name its client: [`ConfigFile::parse`] decides by the key of the list. It
//! therefore does not expand `$VAR`, which only Gemini CLI does; for its files use
//! [`ConfigFile::parse_as`]. Cline also writes `mcpServers`, with a `timeout` in seconds
//! (unconfirmed), which is read as milliseconds. Differences from the clients:
//!
//! * A variable without value and default is an error, and not empty (opencode, Windsurf) or left
//!   as it is (Claude Code, Gemini CLI). A look-up may return an empty text. Only an argument keeps
//!   `${NAME}` if `env` of the same server sets `NAME`: the program expands it, as `mcp-remote`
//!   does. `%NAME%`, which Gemini CLI expands on Windows, is text.
//! * An opencode `timeout` holds for all requests. Claude Code ignores a `timeout` below 1000; here
//!   it is as short as it says.
//! * Gemini CLI prefers `httpUrl`, then `url`, if a server has several addresses; here that is an
//!   error. Its root object `mcp` (which servers are allowed) is in [`ConfigFile::ignored`].
//! * A server without a `type` but with a `url` is an error in Claude Code, and not here.
//! * The URLs `unix:` and `pipe:` of VS Code are errors, as are servers of extensions of Zed. Its
//!   `context_server_timeout` has no effect.
//! * The servers of single projects in `~/.claude.json` of Claude Code (`projects`) are not read.
//!
//! Codex has a TOML file (`[mcp_servers.NAME]`), which is an [error of its
//! own](ConfigErrorKind::Toml).
//!
//! # Trust
//!
//! The author of such a file chooses programs that run with the rights of the user. The author of a
//! project is often a stranger, so an application passes [`Trust::Project`] for a project's file,
//! shows the [`Preview`] of each server that needs a confirmation, and calls [`Preview::confirmed`]
//! after the user agreed: nothing is looked up before. Another version of the file needs another
//! confirmation.

mod build;
mod comments;
mod dialect;
mod entry;
mod env_file;
mod error;
mod fields;
mod inputs;
mod limits;
mod login;
#[cfg(feature = "auth")]
mod oauth;
mod position;
mod preview;
mod reader;
mod roots;
mod variables;

#[cfg(test)]
mod tests;

pub use build::Trust;
pub use dialect::Dialect;
pub use entry::ServerEntry;
pub use error::{ConfigError, ConfigErrorKind, EnvFileFault};
pub use inputs::{InputKind, InputPrompt};
pub use preview::Preview;
pub use variables::Variable;

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use error::member_path;
use mcp_proto::rpc::{InvalidKind, LocatedValue, RawJson};
use position::{Lines, Position};
use reader::Reader;
use roots::Roots;

/// A configuration file.
#[derive(Clone, PartialEq, Debug)]
pub struct ConfigFile {
    dialect: Dialect,
    /// In the order of the file.
    servers: Vec<(String, Result<ServerEntry, ConfigError>)>,
    /// The indexes of the servers by their names.
    by_name: BTreeMap<String, usize>,
    inputs: Vec<Result<InputPrompt, ConfigError>>,
    ignored: Vec<IgnoredMember>,
}

/// A member of a file that has no effect here. Its `Debug` does not show its value, which may be a
/// secret.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct IgnoredMember {
    /// The line of the key, from 1.
    pub line: u32,
    /// The column of the key in characters, from 1.
    pub column: u32,
    /// The path, as in [`ConfigError::path`].
    pub path: String,
    /// The value. `None` if it contains half of a surrogate pair.
    pub value: Option<RawJson>,
}

impl fmt::Debug for IgnoredMember {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IgnoredMember")
            .field("line", &self.line)
            .field("column", &self.column)
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

impl ConfigFile {
    /// Maximum length of a text, in bytes: 1 MiB.
    pub const MAX_LEN: usize = limits::MAX_LEN;

    /// Maximum number of servers of a file.
    pub const MAX_SERVERS: usize = limits::MAX_SERVERS;

    /// Parses a file, and finds out its dialect by the key of its list of servers. It never takes a
    /// file for one of Gemini CLI.
    ///
    /// # Errors
    /// The text is no JSON object with a list of servers, has two such lists, or exceeds a limit.
    /// The errors of single servers are in [`servers`](Self::servers).
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        parse(text, None)
    }

    /// Parses a file of this dialect.
    ///
    /// # Errors
    /// As [`parse`](Self::parse). A list of servers of another dialect is not read.
    pub fn parse_as(dialect: Dialect, text: &str) -> Result<Self, ConfigError> {
        parse(text, Some(dialect))
    }

    /// Returns the dialect.
    pub const fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// Returns the servers with their names, in the order of the file. A server that cannot be used
    /// has an error.
    pub fn servers(&self) -> impl Iterator<Item = (&str, Result<&ServerEntry, &ConfigError>)> {
        self.servers.iter().map(|(name, server)| (name.as_str(), server.as_ref()))
    }

    /// Returns the server of this name. `None` if the file has none.
    pub fn server(&self, name: &str) -> Option<Result<&ServerEntry, &ConfigError>> {
        let index = self.by_name.get(name)?;
        self.servers.get(*index).map(|(_, server)| server.as_ref())
    }

    /// Returns the values that the file asks the user for, in the order of the file. Only files of
    /// VS Code have some.
    pub fn inputs(&self) -> impl Iterator<Item = Result<&InputPrompt, &ConfigError>> {
        self.inputs.iter().map(Result::as_ref)
    }

    /// Returns the members without effect, in the order of the file: those that are unknown, at any
    /// level that was read, and those that do not belong to their server. The members of a server
    /// that has an error are incomplete.
    pub fn ignored(&self) -> &[IgnoredMember] {
        &self.ignored
    }
}

fn parse(text: &str, dialect: Option<Dialect>) -> Result<ConfigFile, ConfigError> {
    let whole = |kind| ConfigError::new(Position::START, String::new(), kind);
    if text.len() > limits::MAX_LEN {
        return Err(whole(ConfigErrorKind::TooLong));
    }
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let at = |at| Lines::new(text).position(at);
    let json =
        comments::blank(text).map_err(|end| ConfigError::new(at(end), String::new(), ConfigErrorKind::Comment))?;
    let root = LocatedValue::parse(&json).map_err(|(kind, end)| {
        if is_toml(text) {
            return whole(ConfigErrorKind::Toml);
        }
        let kind = match kind {
            InvalidKind::TooDeep => ConfigErrorKind::TooDeep,
            _ => ConfigErrorKind::Syntax(json.get(end..).and_then(|rest| rest.chars().next())),
        };
        ConfigError::new(at(end), String::new(), kind)
    })?;
    // The list decides on the dialect. Until it is found, none matters.
    let mut reader = Reader::new(text, dialect.unwrap_or(Dialect::McpServers));
    let list = match roots::flat(dialect, root) {
        Some(list) => list,
        None => Roots::read(&mut reader, root)?.list(&mut reader, dialect, root)?,
    };
    reader.dialect = list.dialect;
    let inputs = match &list.inputs {
        Some((path, value)) => inputs::read(&mut reader, path, *value),
        None => Vec::new(),
    };
    let members = reader.members(list.servers, &list.path)?;
    if members.len() > limits::MAX_SERVERS {
        return Err(reader.error(list.servers.at(), &list.path, ConfigErrorKind::TooManyServers));
    }
    let mut file = ConfigFile {
        dialect: list.dialect,
        servers: Vec::with_capacity(members.len()),
        by_name: BTreeMap::new(),
        inputs,
        ignored: Vec::new(),
    };
    for (name, member) in members {
        if list.path.is_empty() && roots::is_remark(&member) {
            reader.ignore(&member, "");
            continue;
        }
        let path = member_path(&list.path, &name);
        if let Some(index) = file.by_name.get(&name) {
            let why = reader.error(member.at, &path, ConfigErrorKind::Duplicate);
            file.servers[*index].1 = Err(why);
            continue;
        }
        let server = fields::read(&mut reader, &name, path, member.value);
        file.by_name.insert(name.clone(), file.servers.len());
        file.servers.push((name, server));
    }
    file.ignored = reader.into_ignored();
    Ok(file)
}

/// Returns whether the first line that is no comment of TOML is a table or an assignment.
fn is_toml(text: &str) -> bool {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with('#'));
    let Some(line) = line else { return false };
    let is_key = |key: &str| {
        let is_bare = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '"' | '\'' | ' ');
        key.contains(|c: char| c.is_ascii_alphabetic()) && key.chars().all(is_bare)
    };
    match line.strip_prefix('[') {
        Some(table) => {
            let table = table.strip_prefix('[').unwrap_or(table);
            table.split_once(']').is_some_and(|(key, _)| is_key(key))
        }
        None => line.split_once('=').is_some_and(|(key, _)| is_key(key)),
    }
}
