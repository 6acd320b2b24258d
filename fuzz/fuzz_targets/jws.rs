// For any bearer token and any order of requests and answers, a server decides on each request
// once, and accepts a token if and only if a second reader of its algorithm, key and claims does.
#![no_main]
#![forbid(unsafe_code)]

libfuzzer_sys::fuzz_target!(|data: &[u8]| mcp_tests::fuzz::jws::check(data));
