// Any bytes are a skill or are refused. A client accepts the files of what a server accepts, and no
// other byte. JSON is read as itself.
#![no_main]
#![forbid(unsafe_code)]

libfuzzer_sys::fuzz_target!(|data: &[u8]| mcp_tests::fuzz::skill::check(data));
