#![forbid(unsafe_code)]
//! `mcp`: a look at a Model Context Protocol server from the command line.

mod advice;
mod arguments;
mod ask;
mod call;
mod doctor;
mod exit;
mod failure;
mod files;
mod headers;
mod inspect;
mod list;
mod lookup;
mod noise;
mod options;
mod output;
mod schema_text;
mod session;
mod target;
mod wording;

use clap::{CommandFactory, Parser};
use failure::Failure;
use options::{Cli, Command};
use output::{note, one_line};
use std::env;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

fn main() -> ExitCode {
    let command = Cli::parse().command;
    session::handle_interrupts();
    let (hints, is_quiet) = (command.hints(), command.is_quiet());
    let ended = run(command);
    let noise = session::finish();
    match ended {
        Ok(code) => {
            let rest = noise.rest().into_iter().filter(|_| !is_quiet);
            rest.for_each(|text| note(format_args!("[mcp] {text}")));
            code
        }
        Err(failure) => {
            if !failure.is_broken_pipe() {
                note(format_args!("mcp: {failure}"));
                let advice = failure.advice(&hints).into_iter().chain(noise.explain());
                advice.for_each(|advice| note(format_args!("     {advice}")));
            }
            failure.code()
        }
    }
}

fn run(command: Command) -> Result<ExitCode, Failure> {
    match command {
        Command::List(list) => list::run(list),
        Command::Call(call) => call::tool(call),
        Command::Read(read) => call::read(read),
        Command::Prompt(prompt) => call::prompt(prompt),
        Command::Complete(complete) => call::complete(complete),
        Command::Inspect(inspect) => inspect::run(inspect),
        Command::Doctor(doctor) => doctor::run(doctor),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), program_name(), &mut script);
            io::stdout().write_all(&script)?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Man { of } => {
            let mut cli = Cli::command();
            // Gives each command its whole name, such as `mcp-list`.
            cli.build();
            let page = match &of {
                None => Some(&cli),
                Some(name) => cli.find_subcommand(name),
            };
            let unknown = || Failure::usage(format!("`{}` is no command", one_line(of.as_deref().unwrap_or_default())));
            clap_mangen::Man::new(page.ok_or_else(unknown)?.clone()).render(&mut io::stdout())?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// Returns the name under which this program was started: it may be installed under another one.
fn program_name() -> String {
    let path = env::args_os().next().map(PathBuf::from);
    let name = path.as_deref().and_then(|path| path.file_stem()?.to_str().map(str::to_owned));
    name.unwrap_or_else(|| "mcp".to_owned())
}
