// hyper parses every complete response that we parse in the same way, and rejects those that we
// reject, except where we are stricter.
#![no_main]
#![forbid(unsafe_code)]

libfuzzer_sys::fuzz_target!(|data: &[u8]| mcp_tests::fuzz::http_client::check(data));
