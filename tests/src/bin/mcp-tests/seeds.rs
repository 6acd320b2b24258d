//! Converts transcripts of the quickstart to seeds for the fuzz targets: `seeds FOLDER
//! TRANSCRIPT...`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{fs, io};

pub(crate) fn main(args: Vec<String>) -> ExitCode {
    let mut args = args.into_iter().map(PathBuf::from);
    let made = args.next().map(|folder| args.try_for_each(|file| seeds(&folder, &file)));
    match made {
        Some(Ok(())) => ExitCode::SUCCESS,
        Some(Err(e)) => {
            eprintln!("seeds: {e}");
            ExitCode::FAILURE
        }
        None => {
            eprintln!("usage: seeds FOLDER TRANSCRIPT...");
            ExitCode::FAILURE
        }
    }
}

fn seeds(folder: &Path, file: &Path) -> io::Result<()> {
    let text = fs::read_to_string(file)?;
    let stem = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let side = |mark: &str| text.lines().filter_map(|line| line.strip_prefix(mark)).collect::<Vec<_>>();
    let (client, server) = (side("> "), side("< "));
    let put = |target: &str, name: String, seed: &[u8]| {
        let folder = folder.join(target);
        fs::create_dir_all(&folder)?;
        fs::write(folder.join(name), seed)
    };
    for (name, lines) in [("client", &client), ("server", &server)] {
        // The largest limit, and pieces of any size.
        put("line", format!("{stem}-{name}"), &[&[5, 0, 1][..], (lines.join("\n") + "\n").as_bytes()].concat())?;
        for (n, line) in lines.iter().enumerate() {
            put("envelope", format!("{stem}-{name}-{n}"), line.as_bytes())?;
        }
    }
    for (n, line) in client.iter().enumerate() {
        let request = format!(
            "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{line}",
            line.len()
        );
        put("http", format!("{stem}-request-{n}"), &[&[1, 0, 2, 2, 2, 1][..], request.as_bytes()].concat())?;
    }
    let events: String = server.iter().map(|line| format!("data: {line}\n\n")).collect();
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";
    put("http", format!("{stem}-events"), &[&[0, 0, 2, 2, 2, 1][..], head.as_bytes(), events.as_bytes()].concat())?;
    for policy in 0..3 {
        // A program with elicitation: the connection opens, calls are made, and the server sends
        // its lines.
        let mut script = vec![0, policy, 1, 8];
        for line in &server {
            script.extend([1, 3]);
            said(&mut script, 12, line);
        }
        put("client", format!("{stem}-{policy}"), &script)?;
    }
    let mut script = vec![0, 0];
    for line in &client {
        said(&mut script, 7, line);
        script.extend([8, 0, 10]);
    }
    put("server", stem, &script)
}

/// Returns the line as steps that read bytes from the newest connection, at most 255 each.
fn said(script: &mut Vec<u8>, step: u8, line: &str) {
    for piece in format!("{line}\n").as_bytes().chunks(255) {
        script.extend([step, piece.len() as u8]);
        script.extend_from_slice(piece);
        script.push(0);
    }
}
