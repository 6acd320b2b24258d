// For any answer of a token endpoint, a login ends. It has a token only if the answer is a success
// that contains it, and a plain one is accepted.
#![no_main]
#![forbid(unsafe_code)]

libfuzzer_sys::fuzz_target!(|data: &[u8]| mcp_tests::fuzz::token_answer::check(data));
