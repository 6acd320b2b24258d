// For any challenges of a server, the client looks for metadata at public addresses only, and finds
// that of a challenge for bearer tokens among those of other schemes.
#![no_main]
#![forbid(unsafe_code)]

libfuzzer_sys::fuzz_target!(|data: &[u8]| mcp_tests::fuzz::challenge::check(data));
