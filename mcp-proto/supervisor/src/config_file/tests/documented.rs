//! At least eight files of each client, each in a form that the documentation of the client shows,
//! or its schema. Names and values are invented.

use super::*;
use crate::config_file::entry::ServerLaunch;
use alloc::string::String;
use core::time::Duration;

mod claude_code;
mod claude_desktop;
mod cursor;
mod gemini_cli;
mod opencode;
mod vs_code;
mod windsurf;
mod zed;

/// Files, each with its servers, as [`shown`] writes them, and the members without effect. A server
/// that cannot be used has a `!`, and why.
type Files = [(&'static str, &'static [&'static str], &'static [&'static str])];

/// Writes a server in one line.
fn shown(entry: &ServerEntry) -> String {
    let mut words = [entry.name().to_string()].to_vec();
    words.extend(entry.is_disabled().then(|| "(off)".into()));
    if let ServerLaunch::Url { mode, .. } = &entry.launch {
        words.push(if *mode == HttpMode::Streamable { "streamable".into() } else { "auto".into() });
    }
    words.extend(entry.command().or_else(|| entry.url()).map(String::from));
    words.extend(entry.args().map(String::from));
    words.extend(entry.env_names().map(|name| format!("{name}=")));
    words.extend(entry.header_names().map(|name| format!("{name}:")));
    words.extend(entry.client_id().map(|id| format!("as {id}")));
    words.extend(entry.current_dir().map(|dir| format!("in {dir}")));
    words.extend(entry.env_file().map(|path| format!("with {path}")));
    words.extend(entry.timeout().map(|time| format!("{:?}", time.unwrap_or(Duration::ZERO))));
    words.join(" ")
}

/// Reads the files, and makes a client of every server, whose variables all have values.
#[track_caller]
fn check(dialect: Dialect, files: &Files) {
    assert!(files.len() >= 8);
    for (text, servers, without_effect) in files {
        let file = match dialect {
            // A file does not show that it is one of Gemini CLI.
            Dialect::GeminiCli => ConfigFile::parse_as(dialect, text),
            _ => ConfigFile::parse(text),
        };
        let file = file.unwrap_or_else(|why| panic!("{why}\n{text}"));
        assert_eq!(file.dialect(), dialect, "{text}");
        let found = file.servers().map(|(name, server)| match server {
            Ok(entry) => shown(entry),
            Err(why) => format!("{name}! {}", why.kind),
        });
        assert_eq!(found.collect::<Vec<_>>(), *servers, "{text}");
        assert_eq!(ignored(&file), *without_effect, "{text}");
        assert!(file.inputs().all(|input| input.is_ok()), "{text}");
        let lookup = |variable: Variable<'_>| match variable {
            Variable::EnvFile(_) => Some("A=b\n".to_string()),
            Variable::Environment("API_BASE_URL") | Variable::Editor("user_config.endpoint") => {
                Some("https://api.example".to_string())
            }
            _ => Some("value".to_string()),
        };
        for entry in file.servers().filter_map(|(_, server)| server.ok()) {
            let config = entry.client_config(&lookup, Trust::Trusted);
            assert!(config.is_ok(), "{}: {config:?}", entry.name());
            let asks = entry.command().is_some() || !entry.variables().is_empty();
            assert_eq!(entry.client_config(&lookup, Trust::Project).is_err(), asks, "{}", entry.name());
        }
    }
}

// covers: S0-06, S0-07
#[test]
fn documented_files_of_each_client_are_read() {
    check(Dialect::McpServers, &claude_desktop::FILES);
    check(Dialect::McpServers, &claude_code::FILES);
    check(Dialect::McpServers, &cursor::FILES);
    check(Dialect::McpServers, &windsurf::FILES);
    check(Dialect::GeminiCli, &gemini_cli::FILES);
    check(Dialect::VsCode, &vs_code::FILES);
    check(Dialect::Zed, &zed::FILES);
    check(Dialect::OpenCode, &opencode::FILES);
}

// covers: S0-06
#[test]
fn documented_files_of_codex_are_named_as_toml() {
    // docs/config.md of github.com/openai/codex.
    for text in [
        "[mcp_servers.notes]\ncommand = \"npx\"\nargs = [\"-y\", \"@acme/notes\"]\nenv = { \"NOTES_KEY\" = \"k-123\" }\n",
        "[mcp_servers.notes]\ncommand = \"npx\"\n\n[mcp_servers.notes.env]\nNOTES_KEY = \"k-123\"\n",
        "[mcp_servers.notes]\ncommand = \"notes\"\nenv_vars = [\"NOTES_KEY\"]\ncwd = \"/home/ann/notes\"\n",
        "[mcp_servers.ledger]\nurl = \"https://ledger.example/mcp\"\nbearer_token_env_var = \"LEDGER_TOKEN\"\n",
        "[mcp_servers.ledger]\nurl = \"https://ledger.example/mcp\"\nhttp_headers = { \"X-Acme\" = \"ann\" }\n\
         env_http_headers = { \"X-Acme-Key\" = \"ACME_KEY\" }\n",
        "[mcp_servers.slow]\ncommand = \"slow\"\nstartup_timeout_sec = 25\ntool_timeout_sec = 90\n",
        "[mcp_servers.off]\ncommand = \"off\"\nenabled = false\nenabled_tools = [\"read\"]\ndisabled_tools = [\"remove\"]\n",
        "# Servers\nmodel = \"large\"\n\n[mcp_servers.\"two words\"]\ncommand = 'C:\\acme\\server.exe'\n",
        "[features]\nrmcp_client = true\n\n[mcp_servers.ledger]\nurl = \"https://ledger.example/mcp\"\n",
    ] {
        assert_eq!(ConfigFile::parse(text).unwrap_err().kind, ConfigErrorKind::Toml, "{text}");
    }
}
