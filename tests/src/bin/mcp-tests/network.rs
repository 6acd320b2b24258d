//! Runs our clients and servers beside curl, OpenSSL, nginx, tinyproxy, squid and FastMCP, and the
//! example `quickstart` over each transport. Prints a line for each row. `network [WORDS]` runs
//! only the rows whose name contains the words. The programs have to be installed, and the example
//! built.

use std::process::ExitCode;
use std::time::Instant;

use mcp_tests::exit_code;
use mcp_tests::network::{Ground, rows};

pub(crate) fn main(args: Vec<String>) -> ExitCode {
    exit_code("network", run(&args))
}

fn run(args: &[String]) -> Result<bool, String> {
    let words = args.join(" ");
    let ground = Ground::new()?;
    let (mut passed, mut failed) = (0, 0);
    for row in rows().iter().filter(|row| row.name.contains(&words)) {
        let began = Instant::now();
        let (mark, shown) = match row.run(&ground) {
            Ok(shown) => {
                passed += 1;
                ("ok  ", shown)
            }
            Err(why) => {
                failed += 1;
                ("FAIL", why)
            }
        };
        println!("{mark} {:<84} {:>5.1} s  {shown}", row.name, began.elapsed().as_secs_f64());
    }
    println!("network: {passed} passed, {failed} failed");
    Ok(failed == 0 && passed > 0)
}
