// For any inputs of a server, no request is emitted or cancelled twice, no output follows the end,
// no limit is exceeded, and no state remains.
#![no_main]
#![forbid(unsafe_code)]

libfuzzer_sys::fuzz_target!(|data: &[u8]| mcp_tests::fuzz::server::check(data));
