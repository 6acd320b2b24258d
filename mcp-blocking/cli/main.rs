#![forbid(unsafe_code)]
//! `mcp`: a look at a Model Context Protocol server from the command line.

mod advice;
mod arguments;
mod ask;
mod browser;
mod call;
mod doctor;
mod exit;
mod failure;
mod files;
mod headers;
mod inspect;
mod list;
mod login;
mod lookup;
mod noise;
mod options;
mod output;
mod schema_text;
mod session;
mod suggest;
mod survey;
mod target;
mod wording;

use clap::{CommandFactory, Parser};
use failure::Failure;
use mcp_blocking::Object;
use options::{Cli, Command};
use output::{Colour, note, one_line};
use std::env;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

fn main() -> ExitCode {
    let command = match Cli::try_parse() {
        Ok(cli) => cli.command,
        Err(wrong) => return wrong_words(&wrong),
    };
    session::handle_interrupts();
    let (hints, is_json, is_quiet) = (command.hints(), command.is_json(), command.is_quiet());
    let ended = run(command);
    let noise = session::finish();
    match ended {
        Ok(code) => {
            let rest = noise.rest().into_iter().filter(|_| !is_quiet);
            rest.for_each(|text| note(format_args!("[mcp] {text}")));
            code
        }
        Err(failure) => {
            let advice = failure.advice(&hints).into_iter().chain(noise.explain()).collect();
            tell(&failure, advice, is_json);
            failure.code()
        }
    }
}

/// Tells the user of a failure, or the program that reads standard output.
fn tell(failure: &Failure, advice: Vec<String>, is_json: bool) {
    if failure.is_broken_pipe() {
        return;
    }
    if is_json && output::json(Object::new().with("error", failure.to_json(advice.clone()))).is_ok() {
        return;
    }
    note(format_args!("{} {failure}", output::painted("mcp:", Colour::Red, &io::stderr())));
    advice.into_iter().for_each(|advice| note(format_args!("     {advice}")));
}

/// Tells what is wrong with the words of the command line, and which ones may have been meant. Or
/// prints the help, which the parser reports in the same way.
fn wrong_words(wrong: &clap::Error) -> ExitCode {
    let words: Vec<String> = env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    let is_json = words.iter().take_while(|word| *word != "--").any(|word| word == "--json");
    if !wrong.use_stderr() {
        // A reader that has gone needs nothing of it.
        let _ = wrong.print();
        return ExitCode::SUCCESS;
    }
    let form: Vec<String> = suggest::form(&words).into_iter().collect();
    // The parser quotes the words, among which may be the password of a URL.
    let urls = words.iter().filter(|word| word.contains("://") || word.contains('@'));
    let text = urls.fold(wrong.to_string(), |text, url| text.replace(url, &output::word(url)));
    if is_json {
        let text = text.lines().next().unwrap_or_default();
        tell(&Failure::usage(text.strip_prefix("error: ").unwrap_or(text)), form, true);
    } else {
        note(text.trim_end());
        form.into_iter().for_each(note);
    }
    ExitCode::from(exit::USAGE)
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
        Command::Login(login) => login::run(login),
        Command::Logout(logout) => login::logout(logout),
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
