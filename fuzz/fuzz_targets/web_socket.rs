// Any split of a WebSocket gives both sides the messages and the end that an independent reader
// finds in the whole, and everything that is written is well-formed.
#![no_main]
#![forbid(unsafe_code)]

libfuzzer_sys::fuzz_target!(|data: &[u8]| mcp_tests::fuzz::web_socket::check(data));
