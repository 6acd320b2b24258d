//! Clients that write too slowly, read too slowly, or do not read at all. Only the slow client
//! bears the cost.

use super::ask::Ask;
use super::link::Link;
use super::parts::{SHORT, closes, proper, row, short, shown};
use super::site::{Site, good};
use super::tools;
use crate::hostile::rows::{DRIVERS, becomes, expect, row_on, soon};
use crate::hostile::{Bench, Row};
use std::thread;
use std::time::{Duration, Instant};

pub(super) const ROWS: &[Row] = &[
    row("connects and says nothing", |b| stalls(b, b"")),
    row("says half a line and nothing more", |b| stalls(b, b"POST /mc")),
    row("says half a head and nothing more", |b| {
        let head = Ask::mark().head();
        stalls(b, &head[..head.len() - 2])
    }),
    row("says its head and never a body", |b| stalls(b, &Ask::mark().head())),
    row("says half a body and nothing more", |b| {
        let all = Ask::mark().bytes();
        stalls(b, &all[..all.len() - 1])
    }),
    row("says half a size of a chunk and nothing more", |b| stalls(b, &Ask::mark().chunks("1").bytes())),
    row("says half a chunk and nothing more", |b| stalls(b, &Ask::mark().chunks("5\r\n{").bytes())),
    row("never says the last chunk", |b| {
        let all = Ask::mark().chunked().bytes();
        stalls(b, &all[..all.len() - 5])
    }),
    row("never says the end of its trailer", |b| {
        let all = Ask::mark().chunked().bytes();
        stalls(b, &[&all[..all.len() - 2], b"X: y\r\n"].concat())
    }),
    row("does not continue after 100 Continue", |b| {
        let site = b.site(short)?;
        let began = Instant::now();
        let mut link = site.visit()?;
        link.say(&Ask::mark().set("Expect", "100-continue").head());
        let told = link.answer()?;
        expect(told.status == 100, || format!("{told} in place of 100"))?;
        ended(&site, &mut link, began)
    }),
    row("says its head by one byte in 50 ms", |b| drips(b, b"POST /mcp HTTP/1.1\r\nX-A: ", b"a")),
    row("says a header in 50 ms", |b| drips(b, b"POST /mcp HTTP/1.1\r\n", b"X-A: b\r\n")),
    row("says an empty line in 50 ms", |b| drips(b, b"", b"\r\n")),
    row("says an empty line in 50 ms, after an answer", |b| {
        drips(b, &Ask::call("echo").with("text", "x").bytes(), b"\r\n")
    }),
    row("says its body by one byte in 50 ms", |b| {
        drips(b, &Ask::mark().unframed().set("Content-Length", "10000").head(), b" ")
    }),
    row("says its body in chunks of one byte in 50 ms", |b| drips(b, &Ask::mark().chunks("").head(), b"1\r\n \r\n")),
    // More than the minimum rate in total, with 20 bytes of content per second.
    row("says its body in chunks of one byte with extensions in 50 ms", |b| {
        let part = b"1;xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\r\n \r\n";
        drips(b, &Ask::mark().chunks("").head(), part)
    }),
    row("says its body by 64 bytes in 10 ms", |b| {
        let site = b.site(short)?;
        let mut link = site.visit()?;
        let ask = Ask::mark();
        let ask = ask.clone().body([ask.content(), vec![b' '; 12 << 10]].concat());
        link.say(&ask.head());
        for part in ask.content().chunks(64) {
            link.say(part);
            thread::park_timeout(Duration::from_millis(10));
        }
        let answer = link.answer()?;
        expect(answer.status == 200, || format!("{answer} in place of 200"))?;
        Ok("200: slow is no fault".into())
    }),
    row("rests after an answer", |b| {
        let site = b.site(short)?;
        let began = Instant::now();
        let mut link = site.visit()?;
        good(&mut link)?;
        link.is_over()?;
        in_time(began)?;
        site.is_well()?;
        Ok("closed without a word".into())
    }),
    // Two responses of 8 MiB exist at once, in several intermediate forms.
    row_on("never reads a large answer", DRIVERS, 160, never_reads),
    row_on("never reads an event stream", DRIVERS, 64, never_reads_events),
    row_on("asks without end and never reads", DRIVERS, 64, asks_and_never_reads),
    row_on("reads an answer of 8 MiB by 8 KiB in 2 ms", DRIVERS, 120, |b| {
        let site = b.site(short)?;
        let mut link = site.visit()?;
        link.narrow()?;
        link.say(&Ask::call("big").with("bytes", 8 << 20).bytes());
        let began = Instant::now();
        let answer = link.answer_in_parts(8 << 10, Duration::from_millis(2))?;
        let (length, took) = (answer.body.len(), began.elapsed());
        expect(answer.status == 200 && length > 8 << 20, || format!("{length} bytes: {answer}"))?;
        expect(took > SHORT, || format!("that is not slow: {took:?}"))?;
        site.serves()?;
        Ok(format!("200, all of it, in {:.1} s", took.as_secs_f64()))
    }),
];

/// A client that sends only this is disconnected in time, perhaps with 408.
fn stalls(bench: &Bench, bytes: &[u8]) -> Result<String, String> {
    let site = bench.site(short)?;
    let began = Instant::now();
    let mut link = site.visit()?;
    link.say(bytes);
    let told = ended(&site, &mut link, began)?;
    let answered = told.starts_with("408");
    expect(answered || bytes.is_empty(), || format!("{told} in place of 408"))?;
    Ok(told)
}

/// A client that sends this repeatedly is disconnected in time, at any pace.
fn drips(bench: &Bench, start: &[u8], part: &'static [u8]) -> Result<String, String> {
    let site = bench.site(short)?;
    let began = Instant::now();
    let mut link = site.visit()?;
    link.say(start);
    if start.ends_with(b"}") {
        link.served()?;
    }
    let dripping = link.drip(part, Duration::from_millis(50))?;
    let told = ended(&site, &mut link, began)?;
    link.leave();
    dripping.join().map_err(|_| "the writer panics")?;
    Ok(told)
}

/// The connection ends in time, with 408 or without a response. Others are served meanwhile and
/// afterwards.
fn ended(site: &Site, link: &mut Link, began: Instant) -> Result<String, String> {
    site.serves()?;
    let told = match link.answer() {
        Err(why) if why == "it ends without an answer" => "closed without a word".to_string(),
        Err(why) => return Err(why),
        Ok(answer) => {
            proper(&answer)?;
            expect([400, 408].contains(&answer.status), || format!("{answer} in place of 408"))?;
            closes(&[]).after(&answer, link)?;
            format!("{}, closed", shown(&answer))
        }
    };
    in_time(began)?;
    site.is_well()?;
    expect(tools::marks() == 0, || "half a call has run".into())?;
    Ok(told)
}

/// The limit has passed, with a margin for a loaded machine. `began` is before the moment from
/// which the server counts, which it may round. Without the limit it takes 30 s or has no end.
fn in_time(began: Instant) -> Result<(), String> {
    let took = began.elapsed();
    let is_so = took > SHORT * 8 / 10 && took < SHORT * 15;
    expect(is_so, || format!("it took {took:?}, and the limit is {SHORT:?}"))
}

/// Its response is cut, and no other client waits.
fn never_reads(bench: &Bench) -> Result<String, String> {
    let site = bench.site(short)?;
    let mut links = Vec::new();
    for _ in 0..2 {
        let link = site.says(&Ask::call("big").with("bytes", 8 << 20))?;
        links.push(link);
    }
    // The others are served until the limit has passed.
    for _ in 0..20 {
        site.serves()?;
        thread::park_timeout(Duration::from_millis(20));
    }
    site.at_rest()?;
    let mut most = 0;
    for mut link in links {
        let told = link.rest()?.len();
        expect(told < 8 << 20, || format!("{told} bytes are there"))?;
        most = most.max(told);
    }
    site.serves()?;
    Ok(format!("cut off, {} KiB at most were taken", most >> 10))
}

/// The events are bounded, and the end of the stream ends the call.
fn never_reads_events(bench: &Bench) -> Result<String, String> {
    let site = bench.site(short)?;
    let mut link = site.says(&Ask::call("tell").with("tag", "told"))?;
    soon(|| tools::has_begun("told"));
    site.serves()?;
    becomes(|| tools::was_stopped("told"), || "the call goes on".into())?;
    site.is_well()?;
    let told = link.rest()?.len();
    Ok(format!("cut off, {} KiB were taken; the call is stopped", told >> 10))
}

/// The server stops reading, and then closes the connection.
fn asks_and_never_reads(bench: &Bench) -> Result<String, String> {
    let site = bench.site(short)?;
    let link = site.visit()?;
    let ask = Ask::call("big").with("bytes", 64 << 10).bytes();
    let pouring = link.pour(&ask, 1 << 30)?;
    site.serves()?;
    // It blocks until the connection is closed.
    let taken = pouring.join().map_err(|_| "the writer panics")?;
    expect(taken < 68 << 20, || format!("{taken} bytes are taken"))?;
    site.is_well()?;
    Ok(format!("cut off, {} KiB were taken", taken >> 10))
}
