// Whatever a client is told, every call ends exactly once, nothing follows the end, limits hold, nothing is left, and a replay says the same.
#![no_main]
#![forbid(unsafe_code)]

libfuzzer_sys::fuzz_target!(|data: &[u8]| mcp_tests::fuzz::client::check(data));
