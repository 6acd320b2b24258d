#![forbid(unsafe_code)]
//! `mcp`: a look at a Model Context Protocol server from the command line.

mod arguments;
mod ask;
mod call;
mod doctor;
mod failure;
mod inspect;
mod list;
mod options;
mod output;
mod session;
mod target;

use clap::{CommandFactory, Parser};
use failure::Failure;
use options::{Cli, Command};
use std::io::{self, Write};
use std::process::ExitCode;

fn main() -> ExitCode {
    let command = Cli::parse().command;
    session::handle_interrupts();
    match run(command) {
        Ok(code) => code,
        Err(failure) => {
            if !failure.is_broken_pipe() {
                eprintln!("mcp: {failure}");
                failure.advice().into_iter().for_each(|advice| eprintln!("     {advice}"));
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
            clap_complete::generate(shell, &mut Cli::command(), "mcp", &mut script);
            io::stdout().write_all(&script)?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Man => {
            clap_mangen::Man::new(Cli::command()).render(&mut io::stdout())?;
            Ok(ExitCode::SUCCESS)
        }
    }
}
