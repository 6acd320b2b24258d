//! The command line.

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use std::path::PathBuf;

/// Look at a Model Context Protocol server.
///
/// TARGET is a URL (http:, https:, ws:, wss:), or with --config the name of a server of that file.
/// Without TARGET, the command after -- starts the server.
#[derive(Parser)]
#[command(
    name = "mcp",
    version,
    after_help = "Exit codes: 0 success, 1 the server or the tool answered with an error, 2 wrong arguments or file, \
                  3 no connection, 4 timeout, 5 declined, 130 interrupted"
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

/// How to print a result.
#[derive(Args)]
pub(crate) struct Format {
    /// Print JSON
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
    /// Send this header field with every HTTP request, as 'Name: value'
    #[arg(long = "header", value_name = "FIELD")]
    pub(crate) headers: Vec<String>,
    /// Maximum time of a call, in seconds; 0 is no limit [default: that of the file, or 30]
    #[arg(long, value_name = "SECONDS")]
    pub(crate) timeout: Option<f64>,
    /// Maximum time for connecting, in seconds [default: 60]
    #[arg(long, value_name = "SECONDS")]
    pub(crate) connect_timeout: Option<f64>,
    /// Speak only this revision, such as 2025-06-18
    #[arg(long, value_name = "REVISION")]
    pub(crate) revision: Option<String>,
    /// Tell the server of this folder (roots)
    #[arg(long = "root", value_name = "FOLDER")]
    pub(crate) roots: Vec<PathBuf>,
    /// Hide what the server logs and writes to standard error
    #[arg(long, short)]
    pub(crate) quiet: bool,
    /// The command that starts the server, after --
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
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
    /// TARGET, the tool, and its arguments: key=value, a JSON object, @FILE, or - (standard input)
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
