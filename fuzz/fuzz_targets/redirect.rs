// Of any redirects of a page, only one with the state and the issuer of the login gives a code, and
// it is sent once.
#![no_main]
#![forbid(unsafe_code)]

libfuzzer_sys::fuzz_target!(|data: &[u8]| mcp_tests::fuzz::redirect::check(data));
