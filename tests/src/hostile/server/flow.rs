//! What no check of an engine sees: whether a driver reads on after it has stopped.

use super::ask::Ask;
use super::tools::{free, has_begun};
use crate::hostile::rows::{DRIVERS, expect, row_on, soon};
use crate::hostile::{Bench, Row};

pub(super) const ROWS: &[Row] = &[row_on("asks 24 MiB behind a call that waits", DRIVERS, 144, waits)];

/// The server stops reading when 1 MiB waits behind the call, and must read on when it has ended.
fn waits(bench: &Bench) -> Result<String, String> {
    const ASKS: usize = 384;
    let site = bench.site(|_| {})?;
    let mut link = site.says(&Ask::call("wait").with("tag", "first"))?;
    soon(|| has_begun("first"));
    let text = "x".repeat(64 << 10);
    let asks = Ask::call("echo").with("text", text.as_str()).bytes().repeat(ASKS);
    let taken = link.fill(&asks)?;
    expect(taken < asks.len(), || "the server reads everything ahead".into())?;
    site.serves()?;
    free("first");
    let rest = link.say_beside(asks[taken..].to_vec())?;
    let first = link.answer()?;
    expect(first.json()?["result"]["content"][0]["text"] == "first", || format!("the call is answered with {first}"))?;
    for number in 1..=ASKS {
        let answer = link.answer().map_err(|why| format!("answer {number}: {why}"))?;
        let is_so = answer.status == 200 && answer.body.len() > text.len();
        expect(is_so, || format!("answer {number} is {answer}"))?;
    }
    rest.join().map_err(|_| "the writer panics")?;
    drop(link);
    site.is_well()?;
    Ok(format!("{} MiB were taken before the first answer; then all are answered", taken >> 20))
}
