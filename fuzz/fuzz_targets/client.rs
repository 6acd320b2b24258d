// For any inputs of a client, every call ends exactly once, no output follows the end, no limit is
// exceeded, no state remains, and a replay has the same outputs.
#![no_main]
#![forbid(unsafe_code)]

libfuzzer_sys::fuzz_target!(|data: &[u8]| mcp_tests::fuzz::client::check(data));
