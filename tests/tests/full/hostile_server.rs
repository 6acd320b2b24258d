//! Hostile web clients against our own server on every driver. `hostile server` runs all of them
//! and prints a table.

use mcp_tests::hostile::{BESIDE, Row, SERVER, failures, range};
use mcp_tests::tests;
use std::path::Path;

/// The test size of a gibibyte.
const SIZE: u64 = 64 << 20;

/// The number of rows at once: most of them wait for some timeout.
const AT_ONCE: usize = 9;

/// Checks for these rows of the table that on every driver the client gets the required response,
/// no other client suffers, and the memory is bounded.
#[track_caller]
fn rows(first: &str, last: &str) {
    check(SERVER, first, last, AT_ONCE);
}

/// The same, for one row.
#[track_caller]
fn row(name: &str) {
    rows(name, name);
}

/// The same, for one row that measures the calls of another client: it runs alone.
#[track_caller]
fn row_beside_calls(name: &str) {
    check(BESIDE, name, name, 1);
}

#[track_caller]
fn check(tables: &[&[Row]], first: &str, last: &str, at_once: usize) {
    let failed = failures(&range(tables, first, last), Path::new(env!("CARGO_BIN_EXE_mcp-tests")), SIZE, at_once);
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

tests! {
    // ---- Heads and lengths ----

    // covers: B-178, B-110
    fn head_over_the_limits_is_refused_without_memory =>
        rows("asks with headers without end", "asks for a target of 60,000 bytes");
    // covers: B-178, B-170
    fn invalid_request_is_refused_and_ends_its_connection =>
        rows("asks after an empty line", "speaks another protocol");
    fn request_targets_are_parsed_strictly => rows("asks for the target in full", "asks for the options of everything");
    // covers: S2-20
    fn methods_expectations_and_close_are_handled => rows("asks by another method", "asks to close, in every way");
    fn smuggled_requests_never_run => rows("smuggles: both lengths", "smuggles: a request behind one that closes");
    fn ambiguous_body_length_is_refused => rows("repeats the same length", "asks with a body that is coded");

    // ---- Bodies ----

    // covers: B-185
    fn body_over_the_limit_is_refused_by_length_or_bytes =>
        rows("asks with a body over the limit", "asks with a body of just the limit");
    // covers: B-185
    fn coded_body_is_decoded_within_the_same_limits =>
        rows("asks with a coded body", "asks with a coded body where that is off");
    // covers: B-169, B-158
    fn content_type_and_accept_are_checked =>
        rows("asks with a body of another type", "accepts what a server gives, however that is written");
    // covers: B-178, B-171
    fn body_without_a_message_gets_an_error => rows("asks with a body that is no JSON", "asks by a method of 1 MiB");
    // covers: HTTP-S-031
    fn unknown_method_is_not_found => row("asks by a method that there is not");
    // covers: HDR-S-003, HDR-S-009, HDR-S-010, HDR-S-011, HDR-S-012, HDR-S-013
    fn head_that_contradicts_the_body_is_refused => row("says in its head what its body does not say");
    // covers: B-188
    fn batches_exist_in_one_revision_and_are_bounded => rows("asks with a batch", "asks to initialize in a batch");

    // ---- Doors ----

    // covers: B-180, B-181, B-182, B-170
    fn foreign_host_is_refused_before_its_body_is_read =>
        rows("names hosts that are none of ours", "names any host, where any will do");
    // covers: B-180, B-183, S3-43, HTTP-S-002, HTTP-S-003, SHTTP-S-002, SHTTP-S-003
    fn foreign_origin_is_refused_without_details =>
        rows("comes from another site", "asks for leave to come from another site");

    // ---- Paces ----

    // covers: B-189, B-174
    fn slow_writer_is_disconnected => rows("connects and says nothing", "rests after an answer");
    // covers: B-187, B-174
    fn client_that_does_not_read_is_disconnected =>
        rows("never reads a large answer", "reads an answer of 8 MiB by 8 KiB in 2 ms");

    // ---- Ends ----

    // covers: B-167
    fn disconnect_at_any_byte_frees_only_its_own_resources =>
        rows("ends its side at every byte of a request", "connects and leaves, 1,000 times");
    // covers: B-222, HTTP-S-028, HTTP-S-029, SHTTP-S-028
    fn disconnect_cancels_the_call_only_in_the_modern_era =>
        rows("ends its side while a call runs", "ends its side in an event stream");

    // ---- Floods ----

    // covers: B-110
    fn flood_is_answered_in_order_and_delays_only_itself =>
        rows("asks, and garbage behind it", "asks 10,000 times in one write and breaks off");
    // covers: B-189
    fn connections_and_calls_above_the_limit_are_refused => {
        rows("more connections than there may be", "listens more often than there may be");
        row("opens more sessions than there may be");
    };
    // covers: B-189, RSUB-C-001
    fn number_of_watched_resources_is_bounded => row("watches 100,000 resources");

    // ---- Sessions ----

    // covers: S3-16, S3-17, S3-20, SHTTP-S-047, SHTTP-S-048, SHTTP-S-053, B-100
    fn session_id_cannot_be_guessed => rows("guesses a session", "opens a session, and an id of it tells nothing");
    // covers: S3-19, S3-22, S3-36, S3-42, SHTTP-S-051, SHTTP-S-053, B-100
    fn session_is_required_and_ends_once => rows("names no session", "names a revision that there is not");
    // covers: B-109, HTTP-S-034, HTTP-S-035
    fn server_without_sessions_refuses_session_ids =>
        rows("asks for sessions where there are none", "names a session and is of 2026-07-28");
    fn session_has_one_own_stream =>
        rows("asks for the stream of a session without accepting one", "asks for the stream of a session 100 times");
    // covers: B-048
    fn sessions_are_isolated => rows("uses the session of another principal", "answers without a request");

    // ---- Replays ----

    // covers: S3-13, SHTTP-S-045, B-036
    fn resumption_returns_the_rest_of_the_own_stream =>
        rows("comes back for the stream of another session", "comes back to a session that has ended");
    // covers: B-038
    fn resumption_of_an_unknown_stream_is_refused =>
        rows("comes back for what has not been said", "comes back for what is not kept any more");

    // ---- Shares ----

    // covers: MRTR-S-024
    fn unsolicited_state_or_response_is_cheap_and_ignored =>
        rows("asks with a junk state and arguments in 120 arrays", "answers what a handler has not asked");

    // ---- WebSocket ----

    // covers: WS-B-006, WS-B-016, WS-B-017, WS-B-018, WS-B-019, WS-B-020, WS-B-024, WS-B-025,
    // S2-40, B-269, B-270
    fn websocket_violation_gets_its_code_and_stops_its_calls =>
        rows("sends a frame without a mask", "breaks each rule for frames");
    // covers: WS-B-021, B-271
    fn pings_in_a_flood_leave_one_pong_unwritten =>
        rows("floods pings over a websocket, and reads nothing", "floods pings over a websocket, and reads the pongs");
    // covers: WS-B-026, WS-B-020
    fn websocket_message_is_limited_by_its_bytes =>
        rows("sends a websocket message without end", "sends a websocket message in 1,000,000 empty fragments");
    // covers: B-271, S3-50
    fn silent_websocket_is_disconnected =>
        rows("sends a part of a websocket message and nothing more", "opens a websocket and says nothing");
    // covers: WS-B-022
    fn unanswered_close_of_a_server_is_bounded =>
        rows(
            "never closes a websocket that the server has closed",
            "sends frames without end over a websocket that the server has closed",
        );
    // covers: B-189, B-187
    fn websockets_share_the_memory_for_large_messages =>
        rows(
            "holds back the ends of websocket messages of 15 MiB, 20 times",
            "asks over a websocket without end and never reads",
        );

    // ---- TLS ----

    // covers: B-189, B-174
    fn tls_that_stalls_is_disconnected =>
        rows("begins TLS and says nothing", "stalls in 1,000 handshakes of TLS at once");
    fn tls_that_ends_at_any_byte_is_let_go =>
        rows("ends its side at every byte of its hello of TLS", "ends its side at every byte of a request in TLS");
    fn tls_that_is_changed_or_broken_is_let_go =>
        rows(
            "says its hello of TLS with every byte inverted, one at a time",
            "breaks a record of TLS behind a call, and reads no event of it",
        );

    // ---- Tokens ----

    // covers: AUTHT-S-005, RSRC-S-006
    fn bad_tokens_in_a_flood_cost_little_and_nothing_stays => row_beside_calls("sends 1,000 bad tokens a second");
    // covers: RSRC-S-006
    fn unknown_keys_cause_one_fetch_in_30_s => row("sends 1,000 tokens, each of another unknown key");
    // covers: RSRC-S-006
    fn keys_that_cannot_be_had_are_unavailable_in_time =>
        rows(
            "a token of an issuer that says its keys by one byte a second",
            "a token of an issuer with keys of 1 GiB",
        );
}

// covers: B-187
#[test]
fn one_client_takes_no_more_than_its_share() {
    rows(
        "asks in sessions, and closes the connections before the questions are answered",
        "notifies by 4 MiB, 208 times",
    );
}
