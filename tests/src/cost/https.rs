//! Calls over HTTPS of whole programs, beside the official Rust SDK: pairs of a client and a
//! server, with one call of 64 bytes in flight, on a connection that is kept, in the revision
//! 2026-07-28. All have TLS 1.3 of rustls with the cryptography of ring, and the servers one
//! certificate.
//!
//! Every pair runs once in each round, which begins with another pair than the one before. What is
//! printed are medians over the rounds: calls a second, the processor time of a call in each of the
//! two processes, and the ratio of each to the pair with the SDK at both ends in the same round.
//! All run on one core, as in [`anchors`](super::anchors). It is a comparison without a goal.
//!
//! The programs of the SDK run on one thread. Its client keeps connections, which it does not by
//! default: otherwise it would begin each call with a handshake.

use super::anchors::{Report, Server, pin, report};
use super::codec::median;
use crate::certificates::{Authority, Leaf};
use crate::interop::setup;
use crate::peer::Failure;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A client or a server: its name, its program, and its variables.
struct End {
    name: &'static str,
    program: &'static str,
    variables: &'static [(&'static str, &'static str)],
}

const fn end(name: &'static str, program: &'static str, variables: &'static [(&'static str, &'static str)]) -> End {
    End { name, program, variables }
}

const RMCP: &str = "interop-rmcp";

const CLIENTS: [End; 3] = [
    end("rmcp", RMCP, &[("RT", "current")]),
    end("mcp-smol", "peer-smol", &[("RT", "current")]),
    end("mcp-blocking", "peer-blocking", &[]),
];

/// The pool is what a handler of a blocking server has by default.
const SERVERS: [End; 4] = [
    end("rmcp", RMCP, &[("RT", "current")]),
    end("mcp-smol", "peer-smol", &[("HANDLER", "async")]),
    end("mcp-blocking", "peer-blocking", &[("HANDLER", "inline")]),
    end("mcp-blocking, pool", "peer-blocking", &[("HANDLER", "pool")]),
];

/// Measures, and prints the table. `secs`: the seconds of each run.
///
/// # Errors
/// A program does not compile. A run fails.
pub fn print(this: &Path, rounds: usize, secs: &str) -> Result<(), Failure> {
    let site = Site::new(this)?;
    pin();
    let pairs: Vec<(&End, &End)> =
        CLIENTS.iter().flat_map(|client| SERVERS.iter().map(move |server| (client, server))).collect();
    let mut reports: Vec<Vec<Report>> = vec![Vec::new(); pairs.len()];
    for round in 0..rounds {
        for turn in 0..pairs.len() {
            let at = (round + turn) % pairs.len();
            let (client, server) = pairs[at];
            let report = site.run(client, server, secs);
            reports[at].push(report.map_err(|why| format!("{} -> {}: {why}", client.name, server.name))?);
        }
    }
    println!("{}", heading());
    for ((client, server), own) in pairs.iter().zip(&reports) {
        // The first pair is the SDK with itself.
        println!("{:<36}{}", format!("{} -> {}", client.name, server.name), cells(own, &reports[0]));
    }
    Ok(())
}

/// A number of a report, and its name.
type Column = (&'static str, fn(&Report) -> f64);

const COLUMNS: [Column; 3] =
    [("calls/s", |report| report.rate), ("client us", |report| report.client), ("server us", |report| report.server)];

/// Returns the heading of the table.
pub fn heading() -> String {
    let columns = COLUMNS.map(|(name, _)| format!("{name:>12}{:>8}", "ratio"));
    format!("{:<36}{}", "client -> server", columns.concat())
}

/// Returns the medians over the rounds, each with the median of its ratios to another pair.
pub fn cells(own: &[Report], other: &[Report]) -> String {
    let columns = COLUMNS.map(|(_, number)| {
        let ratios = own.iter().zip(other).map(|(own, other)| number(own) / number(other));
        format!("{:>12.1}{:>8.2}", median(own.iter().map(number).collect()), median(ratios.collect()))
    });
    columns.concat()
}

/// The programs, and the directory of `cert.pem`, `key.pem` and `root.pem`.
struct Site {
    own: PathBuf,
    rmcp: PathBuf,
    folder: PathBuf,
}

impl Site {
    fn new(this: &Path) -> Result<Self, Failure> {
        for name in ["peer-smol", "peer-blocking"] {
            setup::beside(name)?;
        }
        let own = this.parent().ok_or("this program is nowhere")?.to_owned();
        let (rmcp, folder) = (setup::install_rmcp_https()?, setup::place("https")?);
        setup::empty(&folder)?;
        Authority::new("the calls over HTTPS").write(&folder, &Leaf::default())?;
        Ok(Self { own, rmcp, folder })
    }

    fn path(&self, end: &End) -> PathBuf {
        if end.program == RMCP { self.rmcp.clone() } else { self.own.join(end.program) }
    }

    fn run(&self, client: &End, server: &End, secs: &str) -> Result<Report, Failure> {
        let file = |name| self.folder.join(name);
        let mut command = Command::new(self.path(server));
        command.envs(server.variables.iter().copied());
        command.env("TLS_CERT", file("cert.pem")).env("TLS_KEY", file("key.pem"));
        let server = Server::start(command, "https")?;
        // A run that hangs is stopped.
        let mut command = Command::new("timeout");
        command.arg("60").arg(self.path(client)).envs(client.variables.iter().copied());
        command.env("TLS_ROOT", file("root.pem"));
        command.args(["drive", "http", "--era", "modern", "--inflight", "1", "--secs", secs, "--payload", "64"]);
        command.args(["--url", &server.url, "--server-pid", &server.child.id().to_string(), "--client", "tuned"]);
        let output = command.stdin(Stdio::null()).stderr(Stdio::inherit()).output()?;
        report(&String::from_utf8_lossy(&output.stdout)).ok_or_else(|| "no report".into())
    }
}
