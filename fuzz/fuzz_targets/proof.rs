// For any proof of possession and any order of requests and answers, a server decides on each
// request once, and accepts a proof only for its request, token and time, and once.
#![no_main]
#![forbid(unsafe_code)]

libfuzzer_sys::fuzz_target!(|data: &[u8]| mcp_tests::fuzz::proof::check(data));
