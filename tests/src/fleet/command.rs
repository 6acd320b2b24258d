//! The command `mcp`, with the servers of the file: each is listed, called and diagnosed once.

use super::file::Entry;
use crate::interop::setup::beside;
use crate::sim::rng::Rng;
use std::path::Path;
use std::process::{Command, Stdio};

/// Runs the command. `file` is the configuration file.
///
/// # Errors
/// What it printed, if that is not what the server offers and answers.
pub(super) fn check(entries: &[Entry], file: &Path, rng: &mut Rng) -> Result<(), String> {
    let program = beside("mcp-command")?;
    for (number, entry) in (1..).zip(entries) {
        let asked = entry.offer.ask(number, rng);
        let arguments = asked.arguments.to_string();
        for (words, expected) in [
            (vec!["list", &entry.key], asked.tool),
            (vec!["call", "--json", &entry.key, asked.tool, &arguments], &asked.answer),
            (vec!["doctor", &entry.key], "ok"),
        ] {
            let mut command = Command::new(&program);
            command.arg(words[0]).args(["--yes", "--config"]).arg(file).args(&words[1..]).stdin(Stdio::null());
            let output = command.output().map_err(|why| format!("{}: {why}", program.display()))?;
            let (printed, told) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
            // What `doctor` finds wrong with the servers of others is not judged here.
            let is_well = output.status.success() || words[0] == "doctor" && output.status.code() == Some(1);
            if !is_well || !printed.contains(expected) {
                return Err(format!("mcp {words:?}: {}: no {expected:?} in {printed:?}; {told}", output.status));
            }
        }
    }
    Ok(())
}
