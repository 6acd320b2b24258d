// serde_json accepts every message that we accept, with equal parts. We accept every JSON-RPC
// message that it accepts, with listed exceptions.
#![no_main]
#![forbid(unsafe_code)]

libfuzzer_sys::fuzz_target!(|data: &[u8]| mcp_tests::fuzz::envelope::check(data));
