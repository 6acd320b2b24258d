//! Tests of the peers for measurements: their arguments, and the usage of a process.

use std::time::Duration;

#[cfg(target_os = "linux")]
use mcp_tests::peer::usage::Usage;
use mcp_tests::peer::{Era, Failure, Style, Task, To};

fn read(line: &str) -> Result<Task, Failure> {
    Task::read(line.split(' ').map(|word| if word == "''" { String::new() } else { word.into() }))
}

#[test]
fn words_are_read_as_other_peers_read_them() {
    assert_eq!(read("serve stdio").unwrap(), Task::ServeStdio);
    assert_eq!(read("serve http --style session").unwrap(), Task::ServeHttp(Style::Session));
    let line = "drive stdio --era modern --inflight 64 --secs 0.5 --payload 9 -- server serve --style stdio";
    let Task::Drive(drive) = read(line).unwrap() else { panic!("it is to drive") };
    assert_eq!((drive.era, drive.inflight, drive.payload), (Era::Modern, 64, 9));
    assert_eq!(drive.length, Duration::from_millis(500));
    let words = ["server", "serve", "--style", "stdio"].map(String::from);
    assert_eq!(drive.to, To::Program(words.into()));
    // The measuring program passes an empty word for an option that it does not set.
    let line = "drive http --url http://h/mcp --server-pid 7 --client ''";
    let Task::Drive(drive) = read(line).unwrap() else { panic!("it is to drive") };
    assert_eq!(drive.to, To::Url { url: "http://h/mcp".into(), pid: 7, tuned: false });
    assert_eq!((drive.era, drive.inflight, drive.payload, drive.calls), (Era::Legacy, 1, 64, None));
    let Task::Drive(drive) = read("drive stdio --calls 500 -- server").unwrap() else { panic!("it is to drive") };
    assert_eq!(drive.calls, Some(500));
}

#[test]
fn other_words_are_refused() {
    for line in [
        "",
        "serve",
        "serve http --style",
        "serve http --style x",
        "drive stdio",
        "drive http",
        "drive stdio --era x -- y",
    ] {
        assert!(read(line).is_err(), "{line}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_process_has_memory_and_a_thread_at_least() {
    let own = Usage::own();
    assert!(own.peak >= own.resident && own.resident > 100 && own.threads > 0, "{own:?}");
    assert_eq!(Usage::of(None), Usage::default());
}
