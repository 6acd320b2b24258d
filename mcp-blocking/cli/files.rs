//! Files that this command reads, with bounds.

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

/// Maximum size of a file of variables, of a value or of header fields, in MiB.
const MAX: u64 = 1;

/// Maximum size of a configuration file, in MiB. Some clients keep their history in it.
const MAX_CONFIG: u64 = 64;

/// Returns the text of a file that a configuration file names: only of a regular one, since a pipe
/// or a device could block or never end.
pub(crate) fn named(path: &Path) -> Result<String, String> {
    // Before it is opened: opening a pipe waits for its other end.
    if !fs::metadata(path).map_err(|e| e.to_string())?.is_file() {
        return Err("it is no regular file".to_owned());
    }
    text(path)
}

/// Returns the text of a configuration file of at most 64 MiB, which may be a pipe.
pub(crate) fn config(path: &Path) -> Result<String, String> {
    within(path, MAX_CONFIG)
}

/// Returns the text of a file of at most 1 MiB that the user names, which may be a pipe.
pub(crate) fn text(path: &Path) -> Result<String, String> {
    within(path, MAX)
}

fn within(path: &Path, mib: u64) -> Result<String, String> {
    let (mut text, max) = (String::new(), mib << 20);
    let file = File::open(path).map_err(|e| e.to_string())?;
    file.take(max + 1).read_to_string(&mut text).map_err(|e| e.to_string())?;
    if text.len() as u64 > max { Err(format!("it is larger than {mib} MiB")) } else { Ok(text) }
}
