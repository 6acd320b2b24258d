// What we read as whole requests, hyper reads as the same, and where we stop, it stops too, but for where we are stricter.
#![no_main]
#![forbid(unsafe_code)]

libfuzzer_sys::fuzz_target!(|data: &[u8]| mcp_tests::fuzz::http_server::check(data));
