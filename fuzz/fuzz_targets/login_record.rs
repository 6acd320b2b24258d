// Any bytes are a record of logins or are refused. A record is written and read again unchanged,
// and no token is in its `Debug`.
#![no_main]
#![forbid(unsafe_code)]

libfuzzer_sys::fuzz_target!(|data: &[u8]| mcp_tests::fuzz::login_record::check(data));
