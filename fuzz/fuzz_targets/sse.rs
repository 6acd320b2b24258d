// Any split of an event stream gives the items of the whole stream, with the events that another
// decoder finds.
#![no_main]
#![forbid(unsafe_code)]

libfuzzer_sys::fuzz_target!(|data: &[u8]| mcp_tests::fuzz::sse::check(data));
