// hyper parses the complete requests that we parse in the same way, and stops where we stop, except
// where we are stricter.
#![no_main]
#![forbid(unsafe_code)]

libfuzzer_sys::fuzz_target!(|data: &[u8]| mcp_tests::fuzz::http_server::check(data));
