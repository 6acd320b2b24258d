// A login with any documents ends within its limits. All URLs keep the policy, and no secret leaves
// before the document of its issuer was read.
#![no_main]
#![forbid(unsafe_code)]

libfuzzer_sys::fuzz_target!(|data: &[u8]| mcp_tests::fuzz::metadata::check(data));
