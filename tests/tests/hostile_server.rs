#![forbid(unsafe_code)]
//! Web clients that misbehave, against our own server on every driver. `hostile server` shows all of them as a table.

use mcp_tests::hostile::{SERVER, failures};
use std::path::Path;

/// What stands for a gibibyte.
const SIZE: u64 = 64 << 20;

/// How many rows run at once: most of them wait, for one limit or another to pass.
const AT_ONCE: usize = 9;

/// On every driver the client gets what it should, nobody else suffers, and the memory is bounded.
#[track_caller]
fn rows(names: &[&str]) {
    let failed = failures(SERVER, names, Path::new(env!("CARGO_BIN_EXE_hostile")), SIZE, AT_ONCE);
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

// ---- Heads and lengths ----

// covers: B-178, B-110
#[test]
fn a_head_over_the_limits_is_refused_and_takes_no_memory() {
    rows(&[
        "asks with headers without end",
        "asks with a header without end",
        "asks with a name of a header without end",
        "asks for a target without end",
        "asks by a method without end",
        "writes empty lines without end",
        "writes NUL without end",
        "asks with 100,000 headers",
        "asks with 101 headers",
        "asks with 100 headers",
        "asks for a target of 60,000 bytes",
    ]);
}

// covers: B-178, B-170
#[test]
fn what_is_no_request_is_refused_and_ends_its_connection() {
    rows(&[
        "asks after an empty line",
        "asks in lines that end with LF",
        "asks with a CR where none may be",
        "asks with fields that are none",
        "asks with white space before the first field",
        "asks with a value in Latin-1",
        "asks by a first line that is none",
        "asks in another version of HTTP",
        "asks in HTTP/1.0",
        "asks in HTTP/0.9",
        "speaks HTTP/2",
        "speaks TLS",
        "speaks another protocol",
    ]);
}

#[test]
fn a_target_is_what_it_says_and_nothing_that_looks_like_it() {
    rows(&[
        "asks for the target in full",
        "asks for the target in full, and names another host",
        "asks for a target elsewhere",
        "asks for a target that is none",
        "asks for another path",
        "asks for a tunnel",
        "asks for the options of everything",
    ]);
}

// covers: S2-20
#[test]
fn what_the_endpoint_does_not_do_is_said_so() {
    rows(&[
        "asks by another method",
        "asks by HEAD",
        "asks for an upgrade",
        "asks and expects the unknown",
        "asks and expects to be told to go on",
        "asks to close, in every way",
    ]);
}

#[test]
fn nothing_that_is_smuggled_in_runs() {
    rows(&[
        "smuggles: both lengths",
        "smuggles: lengths that differ",
        "smuggles: a list of lengths",
        "smuggles: a length that is no number",
        "smuggles: a length beyond all numbers",
        "smuggles: an unknown transfer coding",
        "smuggles: transfer codings in two fields",
        "smuggles: a transfer coding that is half hidden",
        "smuggles: the size of a chunk is no number",
        "smuggles: the size of a chunk overflows",
        "smuggles: blanks or an open string behind the size of a chunk",
        "smuggles: a transfer coding after chunked",
        "smuggles: a chunk that is longer than its size",
        "smuggles: lines of chunks that end with LF or CR",
        "smuggles: a trailer that is none",
        "smuggles: a request in a body that nobody reads",
        "smuggles: a request behind a refused body",
        "smuggles: a request behind a refused head",
        "smuggles: a request behind one of another site",
        "smuggles: a request behind one that closes",
    ]);
}

#[test]
fn a_body_has_one_end_or_is_refused() {
    rows(&[
        "repeats the same length",
        "says no length",
        "asks in chunks",
        "asks in chunks, in HTTP/1.0",
        "promises a chunk of all there is",
        "writes a chunk without end",
        "extends a chunk without end",
        "extends chunks of one byte without end",
        "writes zeros before the size of a chunk, without end",
        "writes a trailer without end",
        "writes trailers without end",
        "asks with trailers that would change everything",
        "asks with a body that is coded",
    ]);
}

// ---- Bodies ----

// covers: B-185
#[test]
fn a_body_over_the_limit_is_refused_by_its_length_and_else_by_its_bytes() {
    rows(&[
        "asks with a body over the limit",
        "asks with a body over the limit, in chunks",
        "asks with a string without end, in chunks",
        "asks with an array without end, in chunks",
        "asks with a body of just the limit",
    ]);
}

// covers: B-169, B-158
#[test]
fn only_json_is_read_and_only_what_is_accepted_is_answered() {
    rows(&[
        "asks with a body of another type",
        "asks with a body of no type",
        "asks with a body of JSON, however that is written",
        "accepts what a server does not give",
        "accepts what a server gives, however that is written",
    ]);
}

// covers: B-178, B-171
#[test]
fn a_body_that_is_no_message_is_answered_with_an_error() {
    rows(&[
        "asks with a body that is no JSON",
        "asks with a bomb of arrays",
        "asks with a bomb of objects",
        "asks with a bomb in the arguments",
        "asks with a body that is no message",
        "asks with params that are none",
        "answers what was not asked",
        "asks with an id of 1 MiB",
        "asks by a method of 1 MiB",
    ]);
}

// covers: HTTP-S-031
#[test]
fn a_method_that_there_is_not_is_not_found() {
    rows(&["asks by a method that there is not"]);
}

// covers: HDR-S-003, HDR-S-009, HDR-S-010, HDR-S-011, HDR-S-012, HDR-S-013
#[test]
fn a_head_that_does_not_say_what_the_body_says_is_refused() {
    rows(&["says in its head what its body does not say"]);
}

// covers: B-188
#[test]
fn batches_are_of_one_revision_and_have_a_limit() {
    rows(&[
        "asks with a batch",
        "asks with a batch of 100,000",
        "asks with a batch, 2025-03-26",
        "asks with a batch of 100,000, 2025-03-26",
        "asks with an empty batch, 2025-03-26",
        "asks with a batch, 2025-06-18",
        "asks with a batch, 2025-11-25",
        "asks with a batch of 100,000, 2025-11-25",
        "asks to initialize in a batch",
    ]);
}

// ---- Doors ----

// covers: B-180, B-181, B-182, B-170
#[test]
fn another_host_is_refused_before_its_body_is_read() {
    rows(&[
        "names hosts that are none of ours",
        "names this host, however that is written",
        "names no host",
        "names two hosts",
        "names hosts beside a list",
        "names any host, where any will do",
        "comes from another site, and writes no body",
    ]);
}

// covers: B-180, B-183, S3-43, HTTP-S-002, HTTP-S-003, SHTTP-S-002, SHTTP-S-003
#[test]
fn the_page_of_another_site_is_refused_and_told_nothing() {
    rows(&[
        "comes from another site",
        "comes from this machine",
        "comes from two sites",
        "comes from another site, by any method",
        "asks for leave to come from another site",
    ]);
}

// ---- Paces ----

// covers: B-189, B-174
#[test]
fn whoever_writes_too_slowly_is_let_go_of() {
    rows(&[
        "connects and says nothing",
        "says half a line and nothing more",
        "says half a head and nothing more",
        "says its head and never a body",
        "says half a body and nothing more",
        "says half a size of a chunk and nothing more",
        "says half a chunk and nothing more",
        "never says the last chunk",
        "never says the end of its trailer",
        "is told to go on and does not",
        "says its head by one byte in 50 ms",
        "says a header in 50 ms",
        "says an empty line in 50 ms",
        "says an empty line in 50 ms, after an answer",
        "says its body by one byte in 50 ms",
        "says its body in chunks of one byte in 50 ms",
        "says its body in chunks of one byte with extensions in 50 ms",
        "says its body by 64 bytes in 10 ms",
        "rests after an answer",
    ]);
}

// covers: B-187, B-174
#[test]
fn whoever_does_not_read_is_let_go_of_and_delays_nobody() {
    rows(&[
        "never reads a large answer",
        "never reads an event stream",
        "asks without end and never reads",
        "reads an answer of 8 MiB by 8 KiB in 2 ms",
    ]);
}

// ---- Ends ----

// covers: B-167
#[test]
fn a_client_that_leaves_at_any_byte_frees_what_it_had_and_nothing_else() {
    rows(&[
        "ends its side at every byte of a request",
        "ends its side at every byte of a request in chunks",
        "breaks off at every byte of a request",
        "breaks off at every byte of a request in chunks",
        "ends its side between two requests",
        "ends its side behind a request",
        "breaks off in an answer of 8 MiB",
        "connects and breaks off, 1,000 times",
        "connects and leaves, 1,000 times",
    ]);
}

// covers: B-222, HTTP-S-028, HTTP-S-029, SHTTP-S-028
#[test]
fn a_client_that_leaves_cancels_its_call_in_one_era_and_not_in_the_other() {
    rows(&[
        "ends its side while a call runs",
        "breaks off while a call runs",
        "ends its side while a call runs, 2025-11-25",
        "breaks off while a call runs, 2025-11-25",
        "breaks off in an event stream",
        "ends its side in an event stream",
    ]);
}

// ---- Floods ----

// covers: B-110
#[test]
fn a_flood_is_answered_in_order_and_delays_only_itself() {
    rows(&[
        "asks, and garbage behind it",
        "asks 10,000 times in one write",
        "asks 10,000 times in one write and breaks off",
    ]);
}

// covers: B-189
#[test]
fn more_than_there_may_be_is_told_so() {
    rows(&[
        "more connections than there may be",
        "more calls at once than there may be",
        "listens more often than there may be",
        "opens more sessions than there may be",
    ]);
}

// ---- Sessions ----

// covers: S3-16, S3-17, S3-20, SHTTP-S-047, SHTTP-S-048, SHTTP-S-053, B-100
#[test]
fn a_session_cannot_be_guessed() {
    rows(&[
        "guesses a session",
        "names a session that cannot be",
        "names a session of 60,000 bytes",
        "names two sessions",
        "opens a session, and an id of it tells nothing",
    ]);
}

// covers: S3-19, S3-22, S3-36, S3-42, SHTTP-S-051, SHTTP-S-053, B-100
#[test]
fn a_session_is_needed_and_ends_once() {
    rows(&["names no session", "ends a session twice", "names a revision that there is not"]);
}

// covers: B-109, HTTP-S-034, HTTP-S-035
#[test]
fn where_there_are_no_sessions_nothing_is_to_be_had_with_one() {
    rows(&["asks for sessions where there are none", "names a session and is of 2026-07-28"]);
}

#[test]
fn a_session_has_one_stream_of_its_own() {
    rows(&["asks for the stream of a session without accepting one", "asks for the stream of a session 100 times"]);
}

// covers: B-048
#[test]
fn one_session_is_nothing_to_another() {
    rows(&[
        "uses the session of another principal",
        "says not who it is",
        "answers the question of another session",
        "cancels the call of another session",
        "asks twice under one id",
        "answers nobody",
    ]);
}

// ---- Replays ----

// covers: S3-13, SHTTP-S-045, B-036
#[test]
fn who_comes_back_gets_the_rest_of_its_own_stream() {
    rows(&[
        "comes back for the stream of another session",
        "comes back for one of two streams",
        "comes back without a session",
        "comes back 50 times at once",
        "comes back for a stream that is over, again and again",
        "comes back to a session that has ended",
    ]);
}

// covers: B-038
#[test]
fn who_comes_back_for_what_is_not_there_is_told_so() {
    rows(&[
        "comes back for what has not been said",
        "comes back for what is no event",
        "comes back for an event of 10 KiB",
        "comes back for what is not kept any more",
    ]);
}

// ---- Shares ----

// covers: MRTR-S-024
#[test]
fn a_state_or_an_answer_that_the_server_did_not_ask_for_is_cheap_and_counts_for_nothing() {
    rows(&["asks with a junk state and arguments in 120 arrays", "answers what a handler has not asked"]);
}

// covers: B-187
#[test]
fn one_client_takes_no_more_than_its_share() {
    rows(&[
        "asks in sessions, and closes the connections before the questions are answered",
        "asks with a batch of 1,000 and without a session, 2025-03-26",
        "says 15 KiB of itself, again and again",
        "has its answers kept in 60 sessions",
        "notifies by 4 MiB, 208 times",
    ]);
}
