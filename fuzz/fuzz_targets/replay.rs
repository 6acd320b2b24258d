// Any bytes are parsed as a replay file or rejected. A parsed scenario is written back unchanged,
// and runs the same twice.
#![no_main]
#![forbid(unsafe_code)]

libfuzzer_sys::fuzz_target!(|data: &[u8]| mcp_tests::fuzz::replay::check(data));
