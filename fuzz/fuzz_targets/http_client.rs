// What we read as a whole response, hyper reads as the same, and what we do not, it does not either, but for where we are stricter.
#![no_main]
#![forbid(unsafe_code)]

libfuzzer_sys::fuzz_target!(|data: &[u8]| mcp_tests::fuzz::http_client::check(data));
