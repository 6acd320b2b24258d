// Any split of an HTTP stream gives the same items and responses as the whole stream, and holds no
// more than the limits allow.
#![no_main]
#![forbid(unsafe_code)]

libfuzzer_sys::fuzz_target!(|data: &[u8]| mcp_tests::fuzz::http::check(data));
