//! The programs for measurements: each drives each other over every transport, and prints its
//! results in the agreed form.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

const PEERS: [&str; 2] = [env!("CARGO_BIN_EXE_peer-blocking"), env!("CARGO_BIN_EXE_peer-smol")];

/// Drives a server, and returns the reported numbers by name.
fn drive(peer: &str, way: &[&str], rest: &[&str]) -> Vec<(String, f64)> {
    let args = ["--inflight", "3", "--secs", "0.1", "--payload", "100"];
    let output = Command::new("timeout").args(["60", peer, "drive"]).args(way).args(args).args(rest).output();
    let output = output.expect("it runs");
    let said = String::from_utf8(output.stdout).expect("unicode");
    let line = said.lines().find_map(|line| line.strip_prefix("REPORT "));
    let line = line.unwrap_or_else(|| panic!("{peer} {way:?}: {said}{}", String::from_utf8_lossy(&output.stderr)));
    let number = |cell: &str| {
        let (name, value) = cell.split_once('=').expect("a name and a number");
        (name.to_string(), value.parse().expect("a number"))
    };
    let report: Vec<(String, f64)> = line.split(' ').map(number).collect();
    assert!(report.len() == 8 && report.iter().all(|(_, value)| value.is_finite()), "{report:?}");
    assert!(report[0].0 == "ops" && report[0].1 > 0.0 && report[1].1 >= 0.1, "{report:?}");
    report
}

#[test]
fn each_peer_drives_each_over_stdio() {
    for driver in PEERS {
        for server in PEERS {
            drive(driver, &["stdio", "--era", "modern"], &["--", server, "serve", "stdio"]);
        }
        let report = drive(driver, &["stdio", "--era", "legacy"], &["--", PEERS[0], "serve", "stdio"]);
        if cfg!(target_os = "linux") {
            // The server was found among the processes.
            assert!(report[6].1 > 0.0 && report[7].1 > 0.0, "{report:?}");
        }
    }
}

#[test]
fn each_peer_drives_each_over_http() {
    for server in PEERS {
        for style in ["json", "sse", "session"] {
            let mut serving = Serving::start(server, style);
            let (url, pid) = (serving.url(), serving.0.id().to_string());
            for driver in PEERS {
                for client in ["default", "tuned"] {
                    let rest = ["--url", &url, "--server-pid", &pid, "--client", client];
                    drive(driver, &["http", "--era", "modern"], &rest);
                }
            }
        }
    }
}

/// A server, ended when it is dropped.
struct Serving(Child);

impl Serving {
    fn start(peer: &str, style: &str) -> Self {
        let mut command = Command::new(peer);
        command.args(["serve", "http", "--style", style]).stdin(Stdio::null()).stdout(Stdio::piped());
        Self(command.spawn().expect("it starts"))
    }

    fn url(&mut self) -> String {
        let mut line = String::new();
        BufReader::new(self.0.stdout.as_mut().expect("piped")).read_line(&mut line).expect("it says where");
        format!("http://{}/mcp", line.trim_end().strip_prefix("LISTENING ").expect("it listens"))
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
