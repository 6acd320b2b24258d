//! The example `quickstart` as a user runs it, with each transport over TCP, in the clear and over
//! TLS. Its client takes the trusted authority from the environment.

use std::process::Command;

use super::commands::run;
use super::{Ground, Row, expect};
use crate::certificates::{Authority, Leaf};
use crate::example;

/// The flags of the transports, and the beginning of the URL.
const TRANSPORTS: [(&str, &str); 3] = [("--http", "http"), ("--sse", "http"), ("--ws", "ws")];

/// What the client prints on its tour.
const TOUR: [&str; 5] =
    ["add: 5", "count is at 5 of 5", "greet: Hello, Ada!", "sleep: cancelled after 200 ms", "closed"];

/// Returns the rows.
pub(super) fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for flags in [&[][..], &["--smol"], &["--legacy"], &["--smol", "--legacy"]] {
        for (transport, scheme) in TRANSPORTS {
            for tls in [false, true] {
                let words: Vec<&str> = [transport].iter().chain(flags).copied().collect();
                let name = format!("quickstart {}{}", words.join(" "), if tls { ", TLS" } else { "" });
                rows.push(Row::new(name, move |ground| tour(ground, &words, scheme, tls)));
            }
        }
    }
    rows.push(Row::new("quickstart --http does not trust the authority, TLS", untrusted));
    rows
}

/// Returns the command of a tour.
fn quickstart(ground: &Ground, words: &[&str], tls: bool) -> Result<Command, String> {
    let mut command = Command::new(example("quickstart")?);
    command.args(words);
    if tls {
        command.arg("--cert").arg(ground.path("cert.pem")).arg("--key").arg(ground.path("key.pem"));
    }
    Ok(command)
}

fn tour(ground: &Ground, words: &[&str], scheme: &str, tls: bool) -> Result<String, String> {
    let mut command = quickstart(ground, words, tls)?;
    let said = run(command.env("SSL_CERT_FILE", ground.path("root.pem")), &[])?;
    let over = format!("over {scheme}{}://127.0.0.1:", if tls { "s" } else { "" });
    for part in TOUR.into_iter().chain([over.as_str()]) {
        expect(said.code() == Some(0) && said.stdout.contains(part), || format!("without {part:?}: {}", said.all()))?;
    }
    Ok(said.stdout.lines().next().unwrap_or_default().to_owned())
}

/// Another authority than that of the server is trusted.
fn untrusted(ground: &Ground) -> Result<String, String> {
    let folder = ground.scratch("other")?;
    let other = Authority::new("another");
    other.write(&folder, &Leaf::default()).map_err(|why| why.to_string())?;
    let mut command = quickstart(ground, &["--http"], true)?;
    let said = run(command.env("SSL_CERT_FILE", folder.join("root.pem")), &[])?;
    let is_so = said.code() == Some(1) && said.stderr.contains("no trusted authority");
    expect(is_so, || said.all())?;
    Ok(said.stderr.trim_end().to_owned())
}
