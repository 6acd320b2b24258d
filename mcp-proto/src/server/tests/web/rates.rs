//! Requests over a rate: the status says so.

use super::*;

#[test]
fn request_over_a_rate_has_its_status_in_both_eras() {
    let mut site = Site::new();
    let client = site.session("2025-11-25", "{}");
    let modern_headers = || {
        Headers::new()
            .with("MCP-Protocol-Version", "2026-07-28")
            .with("Mcp-Method", "tools/call")
            .with("Mcp-Name", "t")
            .with("Accept", "application/json, text/event-stream")
    };
    let error = |data: Option<Object>| {
        let error = ErrorObject::new(429, "too many requests");
        Outcome::Error(match data {
            Some(data) => error.with_data(data.into()),
            None => error,
        })
    };
    for (data, after) in [(Some(Object::new().with("retryAfterMs", 1_001_u64)), Some("2")), (None, None)] {
        for is_modern in [false, true] {
            let x = match is_modern {
                false => site.post(client.headers(), &legacy("7", "tools/call", r#"{"name":"t"}"#)),
                true => site.post(modern_headers(), &modern("7", "tools/call", r#","name":"t","arguments":{}"#)),
            };
            let (responder, _) = site.handed();
            site.bench.answer(responder, error(data.clone()));
            assert_eq!(site.refusal(x), (429, 429));
            assert_eq!(site.head(x).headers.get("retry-after"), after);
        }
    }
}
