// What we accept as a message, serde_json accepts with equal parts; what it calls a JSON-RPC message, we accept, listed exceptions aside.
#![no_main]
#![forbid(unsafe_code)]

libfuzzer_sys::fuzz_target!(|data: &[u8]| mcp_tests::fuzz::envelope::check(data));
