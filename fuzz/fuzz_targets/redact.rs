// Whatever goes over a channel, redacting keeps its length, its cuts and its ids, loses its secrets, and reads lengths as the codec does.
#![no_main]
#![forbid(unsafe_code)]

libfuzzer_sys::fuzz_target!(|data: &[u8]| mcp_tests::fuzz::redact::check(data));
