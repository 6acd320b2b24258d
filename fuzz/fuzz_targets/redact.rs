// For the bytes of any connection, redaction keeps lengths, splits and ids, masks the secrets, and
// finds the same lengths as the codec.
#![no_main]
#![forbid(unsafe_code)]

libfuzzer_sys::fuzz_target!(|data: &[u8]| mcp_tests::fuzz::redact::check(data));
