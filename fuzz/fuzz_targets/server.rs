// Whatever a server is told, no request is handed out or cancelled twice, nothing follows the end, limits hold, and nothing is left.
#![no_main]
#![forbid(unsafe_code)]

libfuzzer_sys::fuzz_target!(|data: &[u8]| mcp_tests::fuzz::server::check(data));
