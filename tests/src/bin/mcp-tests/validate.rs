//! `validate [--schema FOLDER] [--revision REVISION] FILE...` checks transcripts against the
//! official schema, line by line. The folder contains `REVISION/schema.json`. The default is
//! `../shared/schema` beside the workspace.

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use mcp_tests::sources;
use mcp_tests::validate::{Schema, revision};

pub(crate) fn main(args: Vec<String>) -> ExitCode {
    mcp_tests::exit_code("validate", run(args))
}

fn run(args: Vec<String>) -> Result<bool, String> {
    let mut folder = sources::root().join("../shared/schema");
    let (mut named, mut files) = (None, Vec::new());
    let mut args = args.into_iter();
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or(format!("{arg} needs a value"));
        match arg.as_str() {
            "--schema" => folder = PathBuf::from(value()?),
            "--revision" => named = Some(value()?),
            _ => files.push(arg),
        }
    }
    if !folder.is_dir() {
        return Err(format!("{} is no folder; name the official schemas with --schema", folder.display()));
    }
    let (mut passed, mut failed) = (0, 0);
    for file in &files {
        let text = fs::read_to_string(file).map_err(|why| format!("{file}: {why}"))?;
        let revision =
            named.as_deref().or(revision(&text)).ok_or(format!("{file}: it names no revision, nor does --revision"))?;
        let verdicts = Schema::read(&folder, revision)?.check(&text);
        println!("{file}: {} messages of {revision}", verdicts.len());
        for (number, verdict) in verdicts {
            match verdict {
                Ok(()) => passed += 1,
                Err(why) => {
                    failed += 1;
                    println!("{file}:{number}: {why}\n    {}", text.lines().nth(number - 1).unwrap_or_default());
                }
            }
        }
    }
    println!("validate: {passed} passed, {failed} failed");
    Ok(failed == 0 && passed > 0)
}
