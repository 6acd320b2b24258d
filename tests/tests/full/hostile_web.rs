//! Hostile web servers against every driver. `hostile web` runs the same and more, and prints a
//! table.

use mcp_tests::hostile::{WEB, failures, range};
use mcp_tests::tests;
use std::path::Path;

/// The test size of a gibibyte: the number of messages is reduced in proportion, and 3 s are
/// observed, not 30 s.
const SIZE: u64 = 64 << 20;

/// The number of rows at once: most of them wait. A row measures its own memory.
const AT_ONCE: usize = 4;

/// Checks that every host of these rows of the table has the required result, in bounded memory.
#[track_caller]
fn rows(first: &str, last: &str) {
    let failed = failures(&range(WEB, first, last), Path::new(env!("CARGO_BIN_EXE_mcp-tests")), SIZE, AT_ONCE);
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// The same, for one row.
#[track_caller]
fn row(name: &str) {
    rows(name, name);
}

tests! {
    // ---- Answers ----

    fn head_over_the_limits_fails_its_call_without_memory => rows("a head without end", "empty lines without end");
    fn invalid_http_fails_its_call_at_once => rows("switches protocols", "an unknown content coding");
    fn invalid_chunks_fail_their_call_at_once => rows("the size of a chunk overflows", "a trailer without end");
    // covers: B-013, B-015
    fn body_or_event_over_the_limit_fails_its_call =>
        rows("a chunk without end, JSON", "the id of an event without end");
    // covers: B-013, B-015
    fn coded_bomb_fails_its_call_in_bounded_memory =>
        rows("a coded body of 1 GiB, JSON", "a coded event of 1 GiB");
    fn coded_flood_ends_its_call => rows("coded comments of 1 GiB", "coded events of 1 GiB");
    fn invalid_coded_body_fails_its_call_at_once =>
        rows("a coded body of empty blocks", "a coded body and more behind it");
    // covers: HTTP-C-025, B-009
    fn endless_meaningless_data_ends_its_call =>
        rows("a field of an event without end", "other events without end");
    // covers: S0-20, S1-05
    fn stream_is_read_until_its_response_and_then_closed =>
        rows("1,000,000 notifications in a stream", "a stream that stays open after the answer");
    // covers: B-014
    fn truncated_response_fails_its_call_with_the_cause => rows("a body cut short", "bytes after the answer");
    // covers: S0-49
    fn malformed_response_fails_its_call_with_the_cause => rows("not JSON", "an event that is not UTF-8");
    // covers: B-008
    fn invalid_event_is_skipped_and_reported => row("an event that is not JSON, then the answer");
    // covers: S1-03, B-002, B-011
    fn slow_or_unusual_response_is_accepted =>
        rows("the answer by one byte in 2 ms", "the answer in CR, LF and CR LF, after a mark");

    // ---- Statuses ----

    // covers: S0-46, S0-47, S2-17, B-152
    fn error_status_fails_only_its_call_with_its_details =>
        rows("every status of failure", "503 to one call while another one waits");
    fn server_text_in_errors_has_no_control_characters => row("answers with what a terminal would obey");
    // covers: S0-48, B-151
    fn json_rpc_error_counts_with_any_status =>
        rows("400 with a JSON-RPC error for the request", "200 with a JSON-RPC error");
    // covers: B-156, B-157
    fn redirect_is_an_error_and_is_not_followed =>
        rows("redirects to another origin, with credentials", "redirects without end, each time further");
    // covers: B-024
    fn response_of_another_type_is_not_read =>
        rows("the answer under another type", "types with parameters, in any case");
    // covers: S0-19, B-028
    fn empty_response_fails_its_call => rows("202 for a request", "the answer to another request");
    // covers: B-150
    fn any_success_status_accepts_a_notification => {
        row("notifications answered by any 2xx with any body");
        row("initialized answered by any 2xx with any body");
    };
    // covers: B-152
    fn failed_notification_is_reported_and_ends_nothing => row("notifications answered by failures");

    // ---- Links ----

    // covers: S0-28, S0-42, B-155
    fn stalled_response_ends_only_its_call_and_connection =>
        rows("reads the request and says nothing", "vanishes while the connection is idle");
    // covers: B-154
    fn only_repeatable_calls_survive_a_lost_connection =>
        rows("ends the connection in place of an answer", "ends new connections before a request");

    // ---- Doors ----

    // covers: B-024, S0-46, S0-47
    fn other_peers_fail_the_connection_with_their_description =>
        rows("a web page for everything", "an empty 200 for everything");
    // covers: B-156
    fn login_page_is_not_followed => row("a login page elsewhere");
    // covers: B-013, B-087
    fn endless_or_silent_peer_fails_the_connection_soon => rows("a head without end for everything", "speaks first");

    // ---- Streams ----

    // covers: S1-01, S1-02, S1-08, S1-11, B-019, B-020, B-023
    fn stream_without_resumption_fails_after_two_requests => row("primes, and never sends anything again");
    // covers: S1-09, B-019, B-020, B-022, B-023
    fn stream_with_only_new_ids_is_resumed_with_backoff => row("primes, and sends a new id for ever, retry: 50");
    // covers: B-020, B-022
    fn retry_of_zero_is_raised_to_a_minimum => row("primes, and sends a new id for ever, retry: 0");
    // covers: B-019, B-020, B-022
    fn stream_without_new_events_fails_after_two_requests =>
        rows("replays its first event for ever, retry: 0", "sends pings without an id for ever, retry: 0");
    // covers: B-019, B-020, B-022
    fn stream_with_messages_is_resumed_once_a_second => row("sends a new message for ever, retry: 0");
    // covers: B-020, B-022, B-029
    fn listener_cut_after_each_message_reopens_once_a_second =>
        rows(
            "a listener that sends a ping and ends, for ever",
            "a listener that sends a new message and ends, for ever",
        );
    // covers: B-028
    fn event_id_beyond_the_limit_is_not_sent_back => row("an event id of 4 KiB");
    // covers: S1-06, S1-13, B-022
    fn excessive_retry_is_bounded => rows("retry: 99999999999", "a retry that is no number");
    // covers: B-024
    fn other_response_to_a_resumption_ends_the_call =>
        rows("goes on with a web page without end", "goes on with a redirect");
    // covers: S1-08, B-019, B-026
    fn temporary_failures_get_two_attempts =>
        rows("goes on with 503, for ever", "goes on with an event over the limit");
    // covers: S1-01, S1-02, S1-09, B-023, B-026
    fn stream_resumes_after_a_temporary_failure =>
        rows("goes on after 503 and Retry-After", "a primed stream that is cut in a chunk");
    // covers: S1-10, B-028
    fn stream_without_an_event_id_is_not_resumed => row("a stream that ends unprimed");
    // covers: B-027
    fn stream_ends_with_its_call =>
        rows("a primed stream, goes on and says nothing", "a call is over while its stream is awaited");

    // ---- Lists ----

    // covers: B-284, B-189
    fn list_without_end_is_given_up => rows("a list of tools without end", "a list of tools in a circle");
    // covers: B-013, B-189
    fn result_over_the_limit_fails_its_call => row("a result of 1 GiB");

    // ---- HTTP+SSE ----

    // covers: B-261
    fn stream_without_an_endpoint_fails_the_connection_in_time =>
        rows("comments without end, and no endpoint", "an endpoint and the end, again and again");
    // covers: B-264
    fn endpoints_in_a_flood_cause_no_request =>
        rows("1,000,000 equal endpoints during a call", "1,000,000 changing endpoints during a call");

    // ---- WebSocket ----

    // covers: WS-B-026, WS-B-006
    fn websocket_message_over_the_limit_ends_its_connection =>
        rows("a websocket message without end", "a websocket message of 4 EiB");
    // covers: WS-B-021, B-271
    fn pings_in_a_flood_leave_one_pong_unwritten =>
        rows("12 MiB of pings over a websocket", "12 MiB of pings over a websocket, reads no pong");
    fn websocket_frames_without_a_message_end_its_connection => {
        row("a websocket message of empty fragments without end");
        row("pings over a websocket without end");
    };
    // covers: WS-B-020, S2-43
    fn endless_websocket_message_ends_with_the_call_timeout => {
        row("a websocket message of 1,000,000 empty fragments");
        rows("a part of a websocket message and nothing more", "a part of a websocket frame and nothing more");
    };
    // covers: B-271
    fn silent_websocket_ends_calls_without_a_timeout => row("a part of a websocket message, and answers no ping");
    // covers: WS-C-023, WS-B-022
    fn unanswered_close_of_a_client_is_bounded =>
        rows("never answers the close of a websocket", "answers the close of a websocket by pings without end");
    // covers: WS-B-016, WS-B-017, WS-B-018, WS-B-019, WS-B-020, WS-B-024, WS-B-025,
    // S2-38, S2-39, B-269, B-270
    fn websocket_violation_of_a_server_ends_every_call_once =>
        rows("masks the frames of a websocket", "goes on after a broken rule of a websocket");

    // ---- Sessions and listeners ----

    // covers: S0-52, S0-54
    fn calls_wait_for_an_open_listener_at_most_a_second =>
        rows("initialized never answered", "listeners refused in every way");
}

// covers: B-156, S0-40, SHTTP-C-049, SHTTP-C-050, B-262, B-263
#[test]
fn neither_credentials_nor_the_session_leave_the_origin() {
    // An endpoint of HTTP+SSE that is elsewhere.
    rows(
        "names an endpoint of another origin, with credentials",
        "an endpoint that redirects to another origin, with credentials",
    );
    rows(
        "a redirected listener, with credentials and a session",
        "a redirected DELETE, with credentials and a session",
    );
}

tests! {
    // covers: B-019, B-020
    fn short_lived_listener_is_reopened_rarely =>
        rows("a listener that ends again and again", "a listener that is reset again and again");
    // covers: B-013, B-068
    fn bad_listener_takes_no_memory_and_no_call_slot =>
        rows("a listener with comments without end", "10,000 pings in a listener");
    // covers: B-029
    fn vanished_listener_is_detected => row("a listener that vanishes");
    // covers: TLS-C-006
    fn tls_that_ends_or_drips_fails_the_connection =>
        rows("ends its side at every byte of its handshake of TLS", "says its handshake of TLS by one byte a second");
    // covers: PROXY-C-004
    fn proxy_that_reflects_pours_or_drips_fails_the_connection =>
        rows("a proxy that reflects every request", "a proxy that responds by one byte a second");
    fn documents_of_a_login_that_trickle_end_it_in_time =>
        rows("the metadata of a resource by one byte a second", "tokens by one byte a second");
    fn documents_of_a_login_without_end_take_no_memory =>
        rows("the metadata of a resource without end", "tokens without end");
    // covers: REDIR-C-008
    fn documents_of_a_login_in_a_circle_end_it =>
        rows("metadata that redirect in a circle", "issuers whose metadata name each other");
    fn issuers_beyond_the_first_four_are_not_tried => rows("10,000 issuers", "1,000 issuers");
    // covers: B-241
    fn token_refused_at_once_ends_the_login => row("a challenge to every token, each with other metadata");
    fn listener_of_a_login_outlives_other_programs => row("1,000 connections to the listener of a login");
    // covers: S3-20, S3-21
    fn ended_session_is_replaced_once => rows("a session that has ended", "sessions that end at once");
    fn invalid_session_id_is_not_used => row("session ids that are none");
    // covers: S0-38, S0-41, S3-22
    fn session_delete_is_bounded_and_its_failure_ignored =>
        rows("a DELETE that is never answered", "a DELETE answered without end");
}
