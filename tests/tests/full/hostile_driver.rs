//! What no check of an engine sees of its driver, and the rows of `hostile --driver` through the
//! shim of an adapter. `hostile --driver` runs all rows against any driver.

use mcp_tests::hostile::{PROGRAMS, Row, SERVER, WEB, failures, range, shim_failures};
use mcp_tests::tests;
use std::path::Path;

/// The test size of a gibibyte.
const SIZE: u64 = 64 << 20;

/// The number of rows at once.
const AT_ONCE: usize = 4;

const TESTS: &str = env!("CARGO_BIN_EXE_mcp-tests");

/// Checks these rows on the three drivers, and through the shim of one adapter.
#[track_caller]
fn rows(names: &[&str]) {
    let failed = failures(&named(names), Path::new(TESTS), SIZE, AT_ONCE);
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    through_shim("smol", names);
}

#[track_caller]
fn through_shim(adapter: &str, names: &[&str]) {
    let failed = through(&format!("{TESTS} shim --adapter {adapter}"), names);
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

fn named(names: &[&str]) -> Vec<&'static Row> {
    let tables = [PROGRAMS, WEB, SERVER].concat();
    names.iter().flat_map(|name| range(&tables, name, name)).collect()
}

/// Returns the faults of these rows through a shim.
fn through(shim: &str, names: &[&str]) -> Vec<String> {
    shim_failures(&named(names), Path::new(TESTS), shim, SIZE, AT_ONCE)
}

tests! {
    // ---- What no check of an engine sees ----

    fn written_bytes_are_reported_to_the_engine_of_a_program => rows(&["reads requests of 40 MiB"]);
    fn written_bytes_are_reported_to_the_engine_over_http => rows(&["takes longer to answer than to read"]);
    fn bytes_are_written_in_their_order => rows(&["hears 200 notifications after a rest"]);
    fn response_is_read_after_a_write_has_failed => rows(&["closes its input and then answers"]);
    fn server_reads_on_after_it_has_stopped => rows(&["asks 24 MiB behind a call that waits"]);
    fn aborted_connection_is_closed => rows(&["a call is cancelled while it waits"]);
}

// ---- Through a shim ----

#[test]
fn rows_of_programs_run_through_a_shim() {
    through_shim(
        "blocking",
        &[
            "1,000,000 notifications",
            "100,000 diagnostics, no listener",
            "never reads stdin",
            "CRLF",
            "agrees on no revision",
            "exits with what a terminal would obey",
            "crashes, and a grandchild holds the pipe",
            "does not exist",
        ],
    );
}

#[test]
fn rows_of_web_servers_run_through_a_shim() {
    through_shim(
        "blocking",
        &[
            "an event over the limit",
            "every status of failure",
            "503 to one call while another one waits",
            "reads the request and says nothing",
            "a web page for everything",
            "ends an idle connection, then a call",
            "primes, and never sends anything again",
            "names an endpoint of another origin, with credentials",
            "masks the frames of a websocket",
            "12 MiB of pings over a websocket, reads no pong",
        ],
    );
}

#[test]
fn rows_of_web_clients_run_through_a_shim() {
    through_shim(
        "blocking",
        &[
            "asks with 101 headers",
            "comes from another site",
            "names hosts beside a list",
            "never reads an event stream",
            "ends its side while a call runs",
            "more connections than there may be",
            "more calls at once than there may be",
            "sends a frame without a mask",
            "never closes a websocket that the server has closed",
        ],
    );
}

#[test]
fn row_without_its_command_is_not_offered() {
    let shim = r#"sh -c 'read line; echo "{\"id\":2,\"not_offered\":\"a client\"}"; cat > /dev/null'"#;
    assert_eq!(through(shim, &["CRLF"]), ["CRLF: not offered: a client"]);
}

#[test]
fn faults_of_the_shim_itself_fail_its_row() {
    let failed = |shim: &str| through(shim, &["CRLF"]).concat();
    let ends = failed("true");
    assert!(ends.contains("the shim ended before its input did (exit status: 0)"), "{ends}");
    let dies = failed("sh -c 'read line; echo about to die >&2; kill -9 $$'");
    assert!(dies.contains("signal: 9") && dies.contains("its standard error: about to die"), "{dies}");
    let babbles = failed("cat");
    assert!(babbles.contains("the shim wrote a line that is no result"), "{babbles}");
    let leaves = failed(&format!("sh -c 'sleep 1000 & exec {TESTS} shim --adapter smol'"));
    assert!(leaves.contains("the shim has ended, but not all that it started: 1 still run"), "{leaves}");
    let fails = failed(&format!("sh -c '{TESTS} shim --adapter smol; exit 3'"));
    assert!(fails.contains("the shim ended with exit status: 3"), "{fails}");
}
