//! The browser of the user.

use std::io;
use std::process::{Command, Stdio};
use std::thread;

/// The program that opens a URL in the browser of the user, and its arguments before the URL.
const OPENER: (&str, &[&str]) = if cfg!(windows) {
    ("rundll32", &["url.dll,FileProtocolHandler"])
} else if cfg!(target_os = "macos") {
    ("open", &[])
} else {
    ("xdg-open", &[])
};

/// Starts the browser with this URL, which is one argument: no shell reads it.
///
/// # Errors
/// The system has no such program.
pub(crate) fn open(url: &str) -> io::Result<()> {
    let (program, arguments) = OPENER;
    let mut command = Command::new(program);
    command.args(arguments).arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn()?;
    // It may be the browser itself, and outlive this command.
    thread::spawn(move || child.wait());
    Ok(())
}
