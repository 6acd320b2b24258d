//! Tests of configuration files.

use super::*;
use alloc::format;
use alloc::string::ToString;
use mcp_proto::client::{ClientConfig, HttpMode, Target};
use mcp_proto::exchange::{Endpoint, Program};

mod dialects;
mod documented;
mod errors;
mod flat;
mod limits;
#[cfg(feature = "auth")]
mod logins;
mod trust;

fn parsed(text: &str) -> ConfigFile {
    ConfigFile::parse(text).unwrap()
}

/// Returns the server of this name, which has no error.
#[track_caller]
fn entry<'a>(file: &'a ConfigFile, name: &str) -> &'a ServerEntry {
    file.server(name).unwrap().unwrap()
}

/// Returns the text of the error of a file, or of its server `a`.
#[track_caller]
fn error(text: &str) -> String {
    match ConfigFile::parse(text) {
        Ok(file) => file.server("a").unwrap().unwrap_err().to_string(),
        Err(why) => why.to_string(),
    }
}

/// Returns the values of some variables.
fn lookup(variable: Variable<'_>) -> Option<String> {
    let value = match variable {
        Variable::Environment("TOKEN") => "t0ps3cret",
        Variable::Environment("HOME") | Variable::Editor("userHome") => "/home/ann",
        Variable::Editor("workspaceFolder") => "/home/ann",
        Variable::Input("key") => "t0ps3cret",
        Variable::File("~/.secrets/key") => "t0ps3cret\n",
        Variable::EnvFile("/home/ann/.env") => "# of the project\nA=file\nTOKEN='t0ps3cret'\n",
        _ => return None,
    };
    Some(value.into())
}

#[track_caller]
fn config(file: &ConfigFile, name: &str) -> ClientConfig {
    entry(file, name).client_config(&lookup, Trust::Trusted).unwrap()
}

#[track_caller]
fn program(config: &ClientConfig) -> &Program {
    match &config.target {
        Target::Duplex(Endpoint::Program(program)) => program,
        other => panic!("{other:?}"),
    }
}

/// Returns command and arguments.
#[track_caller]
fn words(config: &ClientConfig) -> Vec<&str> {
    let program = program(config);
    [&program.command].into_iter().chain(&program.args).map(String::as_str).collect()
}

/// Returns the variables that a program gets, `None` for removed ones.
#[track_caller]
fn env(config: &ClientConfig) -> Vec<(&str, Option<&str>)> {
    program(config).env.iter().map(|(name, value)| (name.as_str(), value.as_deref())).collect()
}

/// Returns the URL, and the HTTP transport.
#[track_caller]
fn url(config: &ClientConfig) -> (&str, HttpMode) {
    match &config.target {
        Target::Http(target) => (&target.original, config.http_mode),
        Target::Ws(target) => (&target.original, config.http_mode),
        other => panic!("{other:?}"),
    }
}

fn ignored(file: &ConfigFile) -> Vec<&str> {
    file.ignored().iter().map(|member| member.path.as_str()).collect()
}
