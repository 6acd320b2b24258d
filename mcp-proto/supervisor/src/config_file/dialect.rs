//! The clients whose files differ.

use super::variables::Forms;
use core::time::Duration;

/// The kind of a file, by the client that reads it. The [table](super#dialects) shows the
/// differences.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Dialect {
    /// `mcpServers`: Claude Desktop, Claude Code, Cursor, Windsurf and most others.
    McpServers,
    /// `mcpServers`, where `$NAME` is also a variable: Gemini CLI. A file does not show that it is
    /// one of Gemini CLI: use [`ConfigFile::parse_as`](super::ConfigFile::parse_as).
    GeminiCli,
    /// `servers` and `inputs`: `mcp.json` of VS Code, or both below `mcp` in its older settings.
    VsCode,
    /// `context_servers`: the settings of Zed.
    Zed,
    /// `mcp`: opencode.
    OpenCode,
}

impl Dialect {
    /// Returns how its texts refer to variables.
    pub(super) const fn forms(self) -> Forms {
        match self {
            Self::McpServers | Self::VsCode => Forms::Braces,
            Self::GeminiCli => Forms::Dollar,
            Self::Zed => Forms::None,
            Self::OpenCode => Forms::OpenCode,
        }
    }

    /// Returns a member `timeout` as a time.
    pub(super) const fn timeout(self, value: u64) -> Duration {
        match self {
            Self::Zed => Duration::from_secs(value),
            _ => Duration::from_millis(value),
        }
    }

    /// Returns the keys of the root that may have the list of servers, for people.
    pub(super) const fn roots(self) -> &'static str {
        match self {
            Self::McpServers | Self::GeminiCli => "`mcpServers`",
            Self::VsCode => "`servers`",
            Self::Zed => "`context_servers`",
            Self::OpenCode => "`mcp`",
        }
    }

    /// Returns the member with the variables of the environment.
    pub(super) const fn env(self) -> &'static str {
        match self {
            Self::OpenCode => "environment",
            _ => "env",
        }
    }

    /// Returns whether servers have this member.
    pub(super) fn has(self, key: &str) -> bool {
        match key {
            "type" | "command" | "cwd" | "url" | "headers" | "timeout" | "enabled" | "disabled" => true,
            "environment" => self == Self::OpenCode,
            "args" | "env" | "envFile" | "requestTimeoutMs" => self != Self::OpenCode,
            "serverUrl" | "httpUrl" => matches!(self, Self::McpServers | Self::GeminiCli),
            _ => self.has_login(key),
        }
    }
}
