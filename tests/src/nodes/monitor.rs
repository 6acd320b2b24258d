//! The commands of a store, as it shows them. Its statistics also count those that scripts call.

use super::redis::cli;
use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;

/// The text of the command that ends the count.
const END: &str = "end of the count";
/// The time for what the store shows next.
const SOON: Duration = Duration::from_secs(30);

/// A connection to which the store shows its commands.
pub(super) struct Monitor {
    port: u16,
    counted: std::thread::JoinHandle<Result<u32, String>>,
}

impl Monitor {
    /// Counts from now on.
    pub(super) fn start(port: u16) -> Result<Self, String> {
        let failed = |why: std::io::Error| format!("MONITOR: {why}");
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).map_err(failed)?;
        stream.set_read_timeout(Some(SOON)).and_then(|()| stream.write_all(b"MONITOR\r\n")).map_err(failed)?;
        let mut lines = BufReader::new(stream).split(b'\n');
        let first = lines.next().transpose().map_err(failed)?;
        if first.is_none_or(|first| !first.starts_with(b"+OK")) {
            return Err("the store shows no commands".to_owned());
        }
        let counted = std::thread::spawn(move || {
            let mut count = 0;
            for line in lines {
                let line = String::from_utf8_lossy(&line.map_err(failed)?).into_owned();
                if line.contains(END) {
                    return Ok(count);
                }
                count += u32::from(is_of_client(&line));
            }
            Err("the store shows no more commands".to_owned())
        });
        Ok(Self { port, counted })
    }

    /// Returns the number of commands so far, without those that scripts have called.
    pub(super) fn end(self) -> Result<f64, String> {
        cli(["-p", &self.port.to_string(), "ECHO", END])?;
        self.counted.join().map_err(|_| "the count panicked".to_owned())?.map(f64::from)
    }
}

/// Returns whether a line is a command that no script has called: `+SECONDS [DATABASE ADDRESS]
/// "COMMAND" ...`, with `lua` in the place of an address.
fn is_of_client(line: &str) -> bool {
    let from = line.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    from.is_some_and(|(from, _)| !from.ends_with(" lua"))
}

#[cfg(test)]
mod tests {
    use super::is_of_client;

    #[test]
    fn commands_of_scripts_do_not_count() {
        assert!(is_of_client(r#"+1760000000.000001 [0 127.0.0.1:4000] "evalsha" "6b" "1" "[0 lua]""#));
        assert!(is_of_client(r#"+1760000000.000001 [0 [::1]:4000] "get" "x""#));
        assert!(!is_of_client(r#"+1760000000.000002 [0 lua] "get" "mcp:n:{7}""#));
        assert!(!is_of_client("+OK"));
    }
}
