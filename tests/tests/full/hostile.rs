//! Hostile servers and hostile bytes against every driver. The program `hostile` runs the same with
//! a whole gibibyte, and prints a table.

use mcp_tests::hostile::{PROGRAMS, failures, range};
use mcp_tests::tests;
use std::path::Path;

/// The test size of a gibibyte: four times the longest line. The number of messages is reduced in
/// proportion.
const SIZE: u64 = 64 << 20;

/// Checks that every host of these rows of the table has the required result, in bounded memory.
#[track_caller]
fn rows(first: &str, last: &str) {
    let failed = failures(&range(PROGRAMS, first, last), Path::new(env!("CARGO_BIN_EXE_mcp-tests")), SIZE, 1);
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// The same, for one row.
#[track_caller]
fn row(name: &str) {
    rows(name, name);
}

tests! {
    // covers: B-118, S0-31
    fn line_over_the_limit_loses_only_that_line => row("a line of 1 GiB");
    // covers: B-118, B-189
    fn resource_over_the_limit_ends_only_its_call => row("a resource of 1 GiB");
    // covers: S0-31, B-274
    fn notifications_in_a_flood_are_reported_or_counted => rows("1,000,000 notifications", "1,000,000 log messages");
    fn untaken_notifications_are_bounded_by_their_bytes => row("208 notifications of 4 MiB, not taken");
    fn flood_in_one_read_takes_linear_time_and_bounded_memory =>
        rows("1,000,000 notifications in one read of a client", "1,000,000 pings in one read of a server");
    // covers: S0-31, B-274
    fn invalid_lines_in_a_flood_are_reported_or_counted =>
        rows("100,000 diagnostics, outputs not taken", "100,000 diagnostics, a listener");
    // covers: B-129, B-130, S2-07, STDIO-S-003, STDIO-C-004, STDIO-C-005
    fn flood_on_standard_error_blocks_nothing => rows("1 GiB to stderr, inherited", "1 GiB to stderr, by lines");
    // covers: B-138, S0-34
    fn server_that_never_reads_is_ended_after_timeouts => row("never reads stdin");
    // covers: B-141, S0-27, S0-33, S2-45
    fn server_that_closes_its_output_ends_its_calls => row("closes stdout and lives on");
    // covers: B-120, S0-31
    fn logs_among_the_messages_are_skipped => row("logs to stdout");
    // covers: B-122, B-127, S2-06, S2-11
    fn other_line_ends_and_a_byte_order_mark_are_accepted => rows("CRLF", "a byte-order mark");
    // covers: B-088, B-094
    fn unreadable_output_fails_the_connection_with_its_cause => rows("UTF-16", "agrees on no revision");
    // covers: B-087, B-141, S0-33
    fn last_output_of_an_exited_program_is_quoted =>
        rows("exits at once with a message", "crashes, and a grandchild holds the pipe");
    // covers: B-145, S2-04
    fn failed_start_of_a_program_fails_the_connection_at_once => rows("does not exist", "is a directory");
}
