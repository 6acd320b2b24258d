// Any bytes are read as a replay file or refused; what is read is written back the same (a scenario), and runs the same twice.
#![no_main]
#![forbid(unsafe_code)]

libfuzzer_sys::fuzz_target!(|data: &[u8]| mcp_tests::fuzz::replay::check(data));
