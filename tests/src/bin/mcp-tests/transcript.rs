//! Relays a client and a server over stdio and records their messages: `transcript FILE REVISION
//! COMMAND...`. Lines of the client begin with `> `, lines of the server with `< `. The first line
//! names the revision for `validate`.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::process::{Command, ExitCode, Stdio};
use std::sync::{Arc, Mutex};

pub(crate) fn main(args: Vec<String>) -> ExitCode {
    match run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("transcript: {e}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &[String]) -> io::Result<()> {
    let [file, revision, command, rest @ ..] = args else {
        return Err(io::Error::other("usage: transcript FILE REVISION COMMAND..."));
    };
    let mut log = File::create(file)?;
    writeln!(log, "# revision: {revision}")?;
    let log = Arc::new(Mutex::new(log));
    let mut child = Command::new(command).args(rest).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let (Some(to_server), Some(from_server)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(io::Error::other("no pipes"));
    };
    let down = std::thread::spawn({
        let log = Arc::clone(&log);
        move || copy(BufReader::new(from_server), io::stdout(), "< ", &log)
    });
    // This ends when the client closes its side. The server then gets the end of its input and
    // closes its own side.
    copy(io::stdin().lock(), to_server, "> ", &log)?;
    down.join().map_err(|_| io::Error::other("the reader died"))??;
    child.wait()?;
    Ok(())
}

fn copy(mut from: impl BufRead, mut to: impl Write, mark: &str, log: &Mutex<File>) -> io::Result<()> {
    let mut line = Vec::new();
    while from.read_until(b'\n', &mut line)? > 0 {
        if let Ok(mut log) = log.lock() {
            log.write_all(mark.as_bytes())?;
            log.write_all(&line)?;
        }
        to.write_all(&line)?;
        to.flush()?;
        line.clear();
    }
    Ok(())
}
