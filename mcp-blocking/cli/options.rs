//! The command line.

use crate::advice::Hints;
use crate::exit;
use crate::output::argument;
use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use mcp_blocking::auth::Alg;
use mcp_blocking::mcp_proto::limits::FrameLimits;
use std::path::PathBuf;

/// Look at a Model Context Protocol server.
///
/// TARGET is a URL (http:, https:, ws:, wss:), or with --config the name of a server of that file.
/// Without TARGET, the command after -- starts the server.
#[derive(Parser)]
#[command(
    name = "mcp",
    version,
    after_help = exit::HELP
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// List what a server offers
    #[command(override_usage = "mcp list [OPTIONS] <TARGET> [KIND]\n       mcp list [OPTIONS] [KIND] -- <COMMAND>...")]
    List(List),
    /// Call a tool
    #[command(
        override_usage = "mcp call [OPTIONS] <TARGET> <TOOL> [ARGUMENTS]...\n       mcp call [OPTIONS] <TOOL> [ARGUMENTS]... -- <COMMAND>..."
    )]
    Call(Call),
    /// Read a resource
    #[command(override_usage = "mcp read [OPTIONS] <TARGET> <URI>\n       mcp read [OPTIONS] <URI> -- <COMMAND>...")]
    Read(Read),
    /// Get a prompt
    #[command(
        override_usage = "mcp prompt [OPTIONS] <TARGET> <NAME> [KEY=VALUE]...\n       mcp prompt [OPTIONS] <NAME> [KEY=VALUE]... -- <COMMAND>..."
    )]
    Prompt(Prompt),
    /// Complete an argument of a prompt or of a resource template
    #[command(
        override_usage = "mcp complete [OPTIONS] <TARGET> <PROMPT|TEMPLATE> <ARGUMENT> [VALUE]\n       mcp complete [OPTIONS] <PROMPT|TEMPLATE> <ARGUMENT> [VALUE] -- <COMMAND>..."
    )]
    Complete(Complete),
    /// Show every message, and give commands on standard input
    #[command(override_usage = "mcp inspect [OPTIONS] <TARGET>\n       mcp inspect [OPTIONS] -- <COMMAND>...")]
    Inspect(Inspect),
    /// Try every way to reach a server, and say what works
    #[command(override_usage = "mcp doctor [OPTIONS] <TARGET>\n       mcp doctor [OPTIONS] -- <COMMAND>...")]
    Doctor(Doctor),
    /// Log in to a server in a browser, for this and all other commands
    #[command(override_usage = "mcp login [OPTIONS] <TARGET>")]
    Login(Login),
    /// Remove a login, and revoke its tokens
    #[command(override_usage = "mcp logout [OPTIONS] <TARGET>")]
    Logout(Logout),
    /// Print a script for the completion of a shell
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Print the man page, or that of a command
    Man {
        /// The command
        #[arg(value_name = "COMMAND")]
        of: Option<String>,
    },
}

impl Command {
    /// Returns what the advice after a failure depends on.
    pub(crate) fn hints(&self) -> Hints {
        let (words, reach) = match self {
            Self::List(List { words, reach, .. })
            | Self::Call(Call { words, reach, .. })
            | Self::Read(Read { words, reach, .. })
            | Self::Prompt(Prompt { words, reach, .. })
            | Self::Complete(Complete { words, reach, .. })
            | Self::Inspect(Inspect { words, reach, .. })
            | Self::Doctor(Doctor { words, reach, .. })
            | Self::Login(Login { words, reach, .. })
            | Self::Logout(Logout { words, reach }) => (words, reach),
            Self::Completions { .. } | Self::Man { .. } => return Hints::default(),
        };
        Hints { is_login: matches!(self, Self::Login(_)), ..reach.hints(words) }
    }

    /// Returns whether the user wants to see nothing of what the server says beside the protocol.
    pub(crate) fn is_quiet(&self) -> bool {
        self.reach().is_some_and(|reach| reach.quiet)
    }

    /// Returns whether the result, and a failure, are for a program.
    pub(crate) fn is_json(&self) -> bool {
        match self {
            Self::List(List { format, .. })
            | Self::Call(Call { format, .. })
            | Self::Read(Read { format, .. })
            | Self::Prompt(Prompt { format, .. })
            | Self::Complete(Complete { format, .. })
            | Self::Doctor(Doctor { format, .. }) => format.json,
            Self::Inspect(_) | Self::Login(_) | Self::Logout(_) | Self::Completions { .. } | Self::Man { .. } => false,
        }
    }

    fn reach(&self) -> Option<&Reach> {
        match self {
            Self::List(List { reach, .. })
            | Self::Call(Call { reach, .. })
            | Self::Read(Read { reach, .. })
            | Self::Prompt(Prompt { reach, .. })
            | Self::Complete(Complete { reach, .. })
            | Self::Inspect(Inspect { reach, .. })
            | Self::Doctor(Doctor { reach, .. })
            | Self::Login(Login { reach, .. })
            | Self::Logout(Logout { reach, .. }) => Some(reach),
            Self::Completions { .. } | Self::Man { .. } => None,
        }
    }
}

impl Reach {
    /// Returns what the advice after a failure depends on. The first word is the target, unless a
    /// command after `--` is.
    pub(crate) fn hints(&self, words: &[String]) -> Hints {
        let names = self.headers.iter().filter_map(|field| field.split([':', '=']).next());
        Hints {
            has_revision: self.revision.is_some(),
            has_credentials: !self.header_files.is_empty()
                || names.into_iter().any(|name| name.trim().eq_ignore_ascii_case("authorization")),
            max_message: self.max_message(),
            is_doctor: false,
            is_login: false,
            is_machine: self.identity.is_program(),
            login: self.login_line(words),
        }
    }

    /// Returns the line to type for a login to this target.
    fn login_line(&self, words: &[String]) -> Option<String> {
        let target = words.first().filter(|_| self.command.is_empty())?;
        let mut line = "mcp login".to_owned();
        if let Some(file) = &self.config {
            line = format!("{line} --config {}", argument(&file.to_string_lossy()));
        }
        line = format!("{line} {}", argument(target));
        let Identity { client_id, client_secret_env, client_key, key_alg, issuer, .. } = &self.identity;
        let options = [
            ("--account", self.account.clone()),
            ("--issuer", issuer.clone()),
            ("--client-id", client_id.clone()),
            ("--client-secret-env", client_secret_env.clone()),
            ("--client-key", client_key.as_ref().map(|path| path.to_string_lossy().into_owned())),
            ("--key-alg", key_alg.map(|alg| alg.as_str().to_owned())),
        ];
        for (option, value) in options {
            if let Some(value) = value {
                line = format!("{line} {option} {}", argument(&value));
            }
        }
        Some(line)
    }

    /// Returns the maximum size of a message of the server, in bytes.
    pub(crate) fn max_message(&self) -> usize {
        self.max_message.unwrap_or_else(|| FrameLimits::default().max_line)
    }
}

/// Reads a size in bytes, which may end with K, M or G, and after that with B or iB.
fn size(text: &str) -> Result<usize, String> {
    let upper = text.trim().to_ascii_uppercase();
    let upper = upper.strip_suffix("IB").or_else(|| upper.strip_suffix('B')).unwrap_or(&upper);
    let (number, shift) = match upper.char_indices().next_back() {
        Some((at, 'K')) => (&upper[..at], 10),
        Some((at, 'M')) => (&upper[..at], 20),
        Some((at, 'G')) => (&upper[..at], 30),
        _ => (upper, 0),
    };
    let bytes = number.trim().parse::<usize>().ok().and_then(|number| number.checked_mul(1 << shift));
    bytes.filter(|bytes| *bytes > 0).ok_or_else(|| "a number of bytes is required, such as 64M".to_owned())
}

/// How to print a result.
#[derive(Args)]
pub(crate) struct Format {
    /// Print JSON, also of a failure (the help of mcp has its shape)
    #[arg(long)]
    pub(crate) json: bool,
}

/// How to reach a server.
#[derive(Args)]
pub(crate) struct Reach {
    /// Read TARGET from this configuration file (mcpServers, or the file of VS Code, Zed, opencode)
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// The file is one of Gemini CLI, where $NAME is a variable too
    #[arg(long, requires = "config")]
    pub(crate) gemini: bool,
    /// Start commands of a configuration file without asking
    #[arg(long)]
    pub(crate) yes: bool,
    /// Answer an input of the file (VS Code); without it, a variable such as MCP_INPUT_ID does
    #[arg(long = "input", value_name = "ID=VALUE", requires = "config")]
    pub(crate) inputs: Vec<String>,
    /// Name every variable that a command of a file inherits
    #[arg(long)]
    pub(crate) verbose: bool,
    /// Send this header field with every HTTP request: 'Name: value', or NAME=@VARIABLE with the
    /// value of an environment variable, which the list of processes does not show
    #[arg(long = "header", value_name = "FIELD")]
    pub(crate) headers: Vec<String>,
    /// Send the header fields of this file, one 'Name: value' a line
    #[arg(long = "header-file", value_name = "FILE")]
    pub(crate) header_files: Vec<PathBuf>,
    /// Maximum time of a call, in seconds; 0 is no limit [default: that of the file, or 30]
    #[arg(long, value_name = "SECONDS")]
    pub(crate) timeout: Option<f64>,
    /// Maximum time for connecting, in seconds [default: 60]
    #[arg(long, value_name = "SECONDS")]
    pub(crate) connect_timeout: Option<f64>,
    /// Maximum size of a message of the server, such as 64M (powers of 1024) [default: 16M]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) max_message: Option<usize>,
    /// Speak only this revision, such as 2025-06-18
    #[arg(long, value_name = "REVISION")]
    pub(crate) revision: Option<String>,
    /// Use the login of this account, if there are several at one server
    #[arg(long, value_name = "NAME")]
    pub(crate) account: Option<String>,
    /// Tell the server of this folder (roots)
    #[arg(long = "root", value_name = "FOLDER")]
    pub(crate) roots: Vec<PathBuf>,
    /// Hide what the server logs and writes to standard error
    #[arg(long, short)]
    pub(crate) quiet: bool,
    #[command(flatten)]
    pub(crate) identity: Identity,
    /// The command that starts the server, after --
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

/// Who this program is at an authorization server.
#[derive(Args)]
pub(crate) struct Identity {
    /// Log in as the client itself, without a user, whenever a token is needed
    #[arg(long, requires = "proof", help_heading = LOGIN)]
    pub(crate) machine: bool,
    /// Use a client that is registered already, at the authorization server of --issuer
    #[arg(long, value_name = "ID", requires = "issuer", help_heading = LOGIN)]
    pub(crate) client_id: Option<String>,
    /// Its secret is in this environment variable
    #[arg(long, value_name = "VARIABLE", requires = "client_id", group = "proof", help_heading = LOGIN)]
    pub(crate) client_secret_env: Option<String>,
    /// Its private key is in this file: PKCS#8 as PEM (private_key_jwt)
    #[arg(long, value_name = "FILE", requires = "client_id", group = "proof", help_heading = LOGIN)]
    pub(crate) client_key: Option<PathBuf>,
    /// What the key signs with: ES256, ES384, EdDSA, RS256, PS256, … [default: ES256]
    #[arg(long, value_name = "ALG", requires = "client_key", value_parser = alg, help_heading = LOGIN)]
    pub(crate) key_alg: Option<Alg>,
    /// Log in with the assertion in this file, which the platform replaces (workload identity)
    #[arg(long, value_name = "FILE", conflicts_with_all = ["machine", "client_id"], help_heading = LOGIN)]
    pub(crate) assertion_file: Option<PathBuf>,
    /// Log in at this authorization server only
    #[arg(long, value_name = "URL", help_heading = LOGIN)]
    pub(crate) issuer: Option<String>,
}

/// The heading of the options of an identity.
const LOGIN: &str = "Login";

impl Identity {
    /// Returns whether a login needs no user.
    pub(crate) const fn is_program(&self) -> bool {
        self.machine || self.assertion_file.is_some()
    }
}

/// Reads the name of an algorithm.
fn alg(name: &str) -> Result<Alg, String> {
    Alg::parse(name).ok_or_else(|| format!("one of {} is required", Alg::ALL.map(Alg::as_str).join(", ")))
}

#[derive(Args)]
pub(crate) struct List {
    /// TARGET, and what to list: tools, resources, templates, prompts (default all)
    #[arg(value_name = "WORDS", num_args = 0..=2)]
    pub(crate) words: Vec<String>,
    #[command(flatten)]
    pub(crate) format: Format,
    #[command(flatten)]
    pub(crate) reach: Reach,
}

#[derive(Args)]
pub(crate) struct Call {
    /// TARGET, the tool, and its arguments: key=value, key:=JSON, key=@FILE, a JSON object, @FILE,
    /// or - (standard input)
    #[arg(value_name = "WORDS", num_args = 0..)]
    pub(crate) words: Vec<String>,
    #[command(flatten)]
    pub(crate) format: Format,
    #[command(flatten)]
    pub(crate) reach: Reach,
}

#[derive(Args)]
pub(crate) struct Read {
    /// TARGET and the URI
    #[arg(value_name = "WORDS", num_args = 0..=2)]
    pub(crate) words: Vec<String>,
    #[command(flatten)]
    pub(crate) format: Format,
    #[command(flatten)]
    pub(crate) reach: Reach,
}

#[derive(Args)]
pub(crate) struct Prompt {
    /// TARGET, the name, and the arguments
    #[arg(value_name = "WORDS", num_args = 0..)]
    pub(crate) words: Vec<String>,
    #[command(flatten)]
    pub(crate) format: Format,
    #[command(flatten)]
    pub(crate) reach: Reach,
}

#[derive(Args)]
pub(crate) struct Complete {
    /// TARGET, the prompt or template, the argument, and what was typed
    #[arg(value_name = "WORDS", num_args = 0..=4)]
    pub(crate) words: Vec<String>,
    #[command(flatten)]
    pub(crate) format: Format,
    #[command(flatten)]
    pub(crate) reach: Reach,
}

#[derive(Args)]
pub(crate) struct Inspect {
    /// TARGET
    #[arg(value_name = "WORDS", num_args = 0..=1)]
    pub(crate) words: Vec<String>,
    /// Record the client in this file, for the program replay
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
    /// Show messages in full length
    #[arg(long)]
    pub(crate) full: bool,
    #[command(flatten)]
    pub(crate) reach: Reach,
}

#[derive(Args)]
pub(crate) struct Doctor {
    /// TARGET
    #[arg(value_name = "WORDS", num_args = 0..=1)]
    pub(crate) words: Vec<String>,
    #[command(flatten)]
    pub(crate) format: Format,
    #[command(flatten)]
    pub(crate) reach: Reach,
}

#[derive(Args)]
pub(crate) struct Login {
    /// TARGET
    #[arg(value_name = "WORDS", num_args = 0..=1)]
    pub(crate) words: Vec<String>,
    /// Request this scope, beside those that the server asks for
    #[arg(long = "scope", value_name = "SCOPE")]
    pub(crate) scopes: Vec<String>,
    /// Print the URL of the page, and start no browser
    #[arg(long)]
    pub(crate) no_browser: bool,
    /// Log in at another device: print a page and the code to enter there
    #[arg(long, conflicts_with_all = ["machine", "assertion_file"])]
    pub(crate) device: bool,
    /// Listen for the redirect on this port of 127.0.0.1 [default: a free one]
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) callback_port: Option<u16>,
    /// Use the client metadata document at this https: URL, where the authorization server does
    #[arg(long, value_name = "URL")]
    pub(crate) client_document: Option<String>,
    #[command(flatten)]
    pub(crate) reach: Reach,
}

#[derive(Args)]
pub(crate) struct Logout {
    /// TARGET
    #[arg(value_name = "WORDS", num_args = 0..=1)]
    pub(crate) words: Vec<String>,
    #[command(flatten)]
    pub(crate) reach: Reach,
}

/// What `list` lists.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    Tools,
    Resources,
    Templates,
    Prompts,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn size_has_a_unit() {
        let sizes = ["1", "2k", "64M", "64 MiB", "1GB", "3kib"].map(size);
        let expected = [1, 2 << 10, 64 << 20, 64 << 20, 1 << 30, 3 << 10];
        assert_eq!(sizes, expected.map(Ok));
        for wrong in ["", "0", "-1", "M", "1.5M", "99999999999G", "1T"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
    }
}
