//! What no check of an engine sees: whether a driver reports what it has written, in which order it
//! writes, and what it reads after a write has failed.

use super::client::Setup;
use super::rows::{DRIVERS, call, expect, gone, pid, row_on};
use super::{Bench, Row};
use mcp_proto::{CallError, tools};
use serde_json::json;
use std::time::{Duration, Instant};

pub(super) const ROWS: &[Row] = &[
    // A request of 4 MiB exists in several forms.
    row_on("reads requests of 40 MiB", DRIVERS, 96, large_requests),
    row_on("hears 200 notifications after a rest", DRIVERS, 48, in_order),
    row_on("closes its input and then answers", DRIVERS, 64, answers_late),
];

/// The size of one request.
const LARGE: usize = 4 << 20;

/// The engine refuses a call once 16 MiB are not reported as written.
fn large_requests(bench: &Bench) -> Result<String, String> {
    const CALLS: usize = 10;
    let mut client = bench.start(&[], Setup::default())?;
    let text = "x".repeat(LARGE);
    for number in 1..=CALLS {
        let answer = client.call(call("measure", &json!({"text": text})));
        let length = answer.as_ref().ok().and_then(|answer| answer.first_text());
        expect(length == Some(LARGE.to_string().as_str()), || format!("call {number} ends with {answer:?}"))?;
    }
    client.close()?;
    Ok(format!("{CALLS} calls are answered"))
}

/// More than a pipe holds waits while the program rests. It must arrive as it was sent.
fn in_order(bench: &Bench) -> Result<String, String> {
    const NOTES: usize = 200;
    let mut client = bench.start(&[], Setup::default())?;
    client.call(tools::call("rest")).map_err(|e| e.to_string())?;
    let began = Instant::now();
    let long = "x".repeat(4 << 10);
    for number in 0..NOTES {
        client.notify(&format!("custom/{number}/{long}")).map_err(|e| format!("notification {number}: {e}"))?;
    }
    let heard = client.call(call("heard", &json!({"amount": NOTES})));
    let wanted: Vec<String> = (0..NOTES).map(|number| number.to_string()).collect();
    let is_so = heard.as_ref().is_ok_and(|heard| heard.first_text() == Some(&wanted.join(" ")));
    expect(is_so, || format!("they are heard as {heard:?}"))?;
    client.close()?;
    Ok(format!("all of them, in order, after {:.1} s", began.elapsed().as_secs_f64()))
}

/// The program no longer reads, so a large write fails, and the response to an earlier call is
/// still on its way.
fn answers_late(bench: &Bench) -> Result<String, String> {
    let mut client = bench.start(&[], Setup::default())?;
    let pid = pid(&mut client)?;
    let unread = call("measure", &json!({"text": "x".repeat(LARGE)})).timeout(Duration::from_secs(2));
    let [answer, unread] = client.call_both([tools::call("shut"), unread]);
    let is_so = answer.as_ref().is_ok_and(|answer| answer.first_text() == Some("done"));
    expect(is_so, || format!("the call ends with {answer:?}"))?;
    let is_so = matches!(unread, Err(CallError::Timeout { .. } | CallError::Closed { .. }));
    expect(is_so, || format!("the call that was not read ends with {unread:?}"))?;
    client.close()?;
    gone(&pid)?;
    Ok(format!("the first call is answered; the second: {}", unread.map_or_else(|e| e.to_string(), |_| String::new())))
}
