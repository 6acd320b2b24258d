// Any text is a configuration file or is refused with a position inside it; no server is lost, and
// no secret is in the text of an error or in the `Debug` of a value.
#![no_main]
#![forbid(unsafe_code)]

libfuzzer_sys::fuzz_target!(|data: &[u8]| mcp_tests::fuzz::config_file::check(data));
