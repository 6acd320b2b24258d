//! The header fields of the command line. No error shows a value.

use crate::failure::Failure;
use crate::files;
use crate::options::Reach;
use crate::output::one_line;
use std::env;

/// Returns the fields of `--header` and `--header-file`.
pub(crate) fn fields(reach: &Reach) -> Result<Vec<(String, String)>, Failure> {
    let mut fields = Vec::new();
    for path in &reach.header_files {
        let of_file = |why: String| Failure::usage(format!("--header-file {}: {why}", path.display()));
        let text = files::text(path).map_err(of_file)?;
        for (at, text) in text.lines().enumerate() {
            if text.trim().is_empty() || text.starts_with('#') {
                continue;
            }
            let (name, value) = text.split_once(':').ok_or_else(|| of_file(format!("line {} is no field", at + 1)))?;
            fields.push((name.trim().to_owned(), value.trim().to_owned()));
        }
    }
    for field in &reach.headers {
        fields.push(of_option(field)?);
    }
    Ok(fields)
}

/// Reads `Name: value`, or `Name=@VARIABLE`.
fn of_option(field: &str) -> Result<(String, String), Failure> {
    match field.split_once("=@").filter(|(name, _)| !name.contains(':')) {
        Some((name, variable)) => {
            let value = env::var(variable).map_err(|_| {
                let (name, variable) = (one_line(name), one_line(variable));
                Failure::usage(format!("--header {name}: the environment has no variable {variable}"))
            })?;
            Ok((name.trim().to_owned(), value.trim().to_owned()))
        }
        None => {
            let (name, value) = field
                .split_once(':')
                .ok_or_else(|| Failure::usage("--header is written as 'Name: value' or NAME=@VARIABLE"))?;
            Ok((name.trim().to_owned(), value.trim().to_owned()))
        }
    }
}
