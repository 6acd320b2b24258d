#![forbid(unsafe_code)]
//! Hostile web clients against our own server on every driver. `hostile server` runs all of them
//! and prints a table.

use mcp_tests::hostile::{SERVER, failures};
use std::path::Path;

/// The test size of a gibibyte.
const SIZE: u64 = 64 << 20;

/// The number of rows at once: most of them wait for some timeout.
const AT_ONCE: usize = 9;

/// Checks that on every driver the client gets the required response, no other client suffers, and
/// the memory is bounded.
#[track_caller]
fn rows(names: &[&str]) {
    let failed = failures(SERVER, names, Path::new(env!("CARGO_BIN_EXE_hostile")), SIZE, AT_ONCE);
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

// ---- Heads and lengths ----

// covers: B-178, B-110
#[test]
fn head_over_the_limits_is_refused_without_memory() {
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
fn invalid_request_is_refused_and_ends_its_connection() {
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
fn request_targets_are_parsed_strictly() {
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
fn methods_expectations_and_close_are_handled() {
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
fn smuggled_requests_never_run() {
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
        "smuggles: a request in a body that is not read",
        "smuggles: a request behind a refused body",
        "smuggles: a request behind a refused head",
        "smuggles: a request behind one of another site",
        "smuggles: a request behind one that closes",
    ]);
}

#[test]
fn ambiguous_body_length_is_refused() {
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
fn body_over_the_limit_is_refused_by_length_or_bytes() {
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
fn content_type_and_accept_are_checked() {
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
fn body_without_a_message_gets_an_error() {
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
fn unknown_method_is_not_found() {
    rows(&["asks by a method that there is not"]);
}

// covers: HDR-S-003, HDR-S-009, HDR-S-010, HDR-S-011, HDR-S-012, HDR-S-013
#[test]
fn head_that_contradicts_the_body_is_refused() {
    rows(&["says in its head what its body does not say"]);
}

// covers: B-188
#[test]
fn batches_exist_in_one_revision_and_are_bounded() {
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
fn foreign_host_is_refused_before_its_body_is_read() {
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
fn foreign_origin_is_refused_without_details() {
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
fn slow_writer_is_disconnected() {
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
        "does not continue after 100 Continue",
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
fn client_that_does_not_read_is_disconnected() {
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
fn disconnect_at_any_byte_frees_only_its_own_resources() {
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
fn disconnect_cancels_the_call_only_in_the_modern_era() {
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
fn flood_is_answered_in_order_and_delays_only_itself() {
    rows(&[
        "asks, and garbage behind it",
        "asks 10,000 times in one write",
        "asks 10,000 times in one write and breaks off",
    ]);
}

// covers: B-189
#[test]
fn connections_and_calls_above_the_limit_are_refused() {
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
fn session_id_cannot_be_guessed() {
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
fn session_is_required_and_ends_once() {
    rows(&["names no session", "ends a session twice", "names a revision that there is not"]);
}

// covers: B-109, HTTP-S-034, HTTP-S-035
#[test]
fn server_without_sessions_refuses_session_ids() {
    rows(&["asks for sessions where there are none", "names a session and is of 2026-07-28"]);
}

#[test]
fn session_has_one_own_stream() {
    rows(&["asks for the stream of a session without accepting one", "asks for the stream of a session 100 times"]);
}

// covers: B-048
#[test]
fn sessions_are_isolated() {
    rows(&[
        "uses the session of another principal",
        "says not who it is",
        "answers the question of another session",
        "cancels the call of another session",
        "asks twice under one id",
        "answers without a request",
    ]);
}

// ---- Replays ----

// covers: S3-13, SHTTP-S-045, B-036
#[test]
fn resumption_returns_the_rest_of_the_own_stream() {
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
fn resumption_of_an_unknown_stream_is_refused() {
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
fn unsolicited_state_or_response_is_cheap_and_ignored() {
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
