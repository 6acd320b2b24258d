// Any cut of an event stream gives the items of the whole stream, and its events are those that another decoder reads.
#![no_main]
#![forbid(unsafe_code)]

libfuzzer_sys::fuzz_target!(|data: &[u8]| mcp_tests::fuzz::sse::check(data));
