// Any split of a stream of lines gives the same items as the whole stream and as a naive
// implementation, and holds no more than one line.
#![no_main]
#![forbid(unsafe_code)]

libfuzzer_sys::fuzz_target!(|data: &[u8]| mcp_tests::fuzz::line::check(data));
