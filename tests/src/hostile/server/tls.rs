//! Clients that begin TLS and do not finish it, or break it off at any byte.

use super::ask::Ask;
use super::parts::{SHORT, short};
use super::site::{Site, good};
use super::tools;
use crate::hostile::rows::{READERS, becomes, expect, row_on, soon};
use crate::hostile::{Bench, Row};
use rustls::ClientConnection;
use std::io::Write;
use std::thread;
use std::time::{Duration, Instant};

/// The maximum memory of server and client together, in MiB.
const FLAT: u64 = 40;

/// More bytes than the record of an alert has, and fewer than any other response to a hello.
const ALERT: usize = 40;

pub(super) const ROWS: &[Row] = &[
    row_on("begins TLS and says nothing", READERS, FLAT, |b| stalls(b, |_| Ok(Vec::new()))),
    row_on("says half a hello of TLS and nothing more", READERS, FLAT, |b| {
        stalls(b, |site| hello(&mut site.handshake()?).map(|hello| hello[..hello.len() / 2].to_vec()))
    }),
    row_on("says a hello of TLS and never finishes", READERS, FLAT, |b| {
        stalls(b, |site| hello(&mut site.handshake()?))
    }),
    row_on("says its hello of TLS by one byte a second", READERS, FLAT, drips),
    row_on("finishes TLS and says nothing", READERS, FLAT, |b| {
        let site = b.secure_site(short)?;
        let began = Instant::now();
        let _link = site.enter()?;
        site.serves()?;
        site.at_rest()?;
        in_time(began, SHORT)?;
        site.serves()?;
        Ok("closed".into())
    }),
    row_on("finishes TLS and says half a head", READERS, FLAT, |b| {
        let site = b.secure_site(short)?;
        let began = Instant::now();
        let mut link = site.enter()?;
        link.say(b"POST /mcp HT");
        let answer = link.answer()?;
        expect(answer.status == 408, || format!("{answer} in place of 408"))?;
        link.is_over()?;
        in_time(began, SHORT)?;
        site.is_well()?;
        Ok("408, closed by close_notify".into())
    }),
    row_on("stalls in 1,000 handshakes of TLS at once", READERS, 160, crowd),
    row_on("ends its side at every byte of its hello of TLS", READERS, FLAT, cut_hello),
    row_on("resets at every byte of its hello of TLS", READERS, FLAT, |b| {
        let site = b.secure_site(|_| {})?;
        let hello = hello(&mut site.handshake()?)?;
        for end in 0..hello.len() {
            let mut link = site.visit()?;
            link.say(&hello[..end]);
            link.reset();
        }
        site.is_well()?;
        Ok(format!("{} times", hello.len()))
    }),
    row_on("ends its side at every byte of its end of the handshake", READERS, FLAT, cut_end),
    row_on("ends its side at every byte of a request in TLS", READERS, FLAT, cut_request),
    row_on("says its hello of TLS with every byte inverted, one at a time", READERS, FLAT, changed),
    row_on("asks for other keys 10,000 times", READERS, FLAT, rekeys),
    row_on("breaks a record of TLS behind a call, and reads no event of it", READERS, 64, broken),
];

/// Returns the first bytes of a client.
fn hello(tls: &mut ClientConnection) -> Result<Vec<u8>, String> {
    let mut hello = Vec::new();
    while tls.wants_write() {
        tls.write_tls(&mut hello).map_err(|e| e.to_string())?;
    }
    Ok(hello)
}

/// A client that sends only this is disconnected in time. Others are served meanwhile.
fn stalls(bench: &Bench, bytes: fn(&Site) -> Result<Vec<u8>, String>) -> Result<String, String> {
    let site = bench.secure_site(short)?;
    let began = Instant::now();
    let mut link = site.visit()?;
    link.say(&bytes(&site)?);
    site.serves()?;
    let told = link.rest()?.len();
    in_time(began, SHORT)?;
    site.is_well()?;
    Ok(format!("closed, after {told} bytes of the handshake"))
}

/// The pace does not count, only the time.
fn drips(bench: &Bench) -> Result<String, String> {
    const LIMIT: Duration = Duration::from_secs(4);
    let site = bench.secure_site(|config| config.limits.frame.head_timeout = LIMIT)?;
    let hello = hello(&mut site.handshake()?)?;
    let began = Instant::now();
    let mut link = site.visit()?;
    let mut said = 0;
    for byte in hello.chunks(1) {
        link.say(byte);
        said += 1;
        let next = began + Duration::from_secs(said);
        while Instant::now() < next && site.holds().0 > 1 {
            thread::park_timeout(Duration::from_millis(20));
        }
        site.serves()?;
        if site.holds().0 == 1 {
            break;
        }
    }
    link.is_over()?;
    in_time(began, LIMIT)?;
    site.is_well()?;
    Ok(format!("closed, after {said} of {} bytes", hello.len()))
}

/// The limit has passed, with a margin for a loaded machine.
fn in_time(began: Instant, limit: Duration) -> Result<(), String> {
    let took = began.elapsed();
    expect(took > limit * 8 / 10 && took < limit * 15, || format!("it took {took:?}, and the limit is {limit:?}"))
}

/// The times of calls, and of connections with their handshake and a call, each from the shortest.
fn measured(site: &Site) -> Result<[Vec<Duration>; 2], String> {
    const CALLS: usize = 300;
    const HANDSHAKES: usize = 100;
    let timed = |count: usize, once: &dyn Fn() -> Result<(), String>| {
        let mut times = Vec::with_capacity(count);
        for _ in 0..count {
            let began = Instant::now();
            once()?;
            times.push(began.elapsed());
        }
        times.sort_unstable();
        Ok::<_, String>(times)
    };
    Ok([timed(CALLS, &|| site.serves())?, timed(HANDSHAKES, &|| good(&mut site.enter()?))?])
}

/// Some say nothing, some half a hello, and some wait after the certificate of the server.
fn crowd(bench: &Bench) -> Result<String, String> {
    const MANY: u64 = 1000;
    /// Connections that may wait to be accepted.
    const QUEUE: usize = 50;
    /// The maximum wait of another client.
    const TURN: Duration = Duration::from_secs(2);
    let site = bench.secure_site(|config| config.limits.frame.head_timeout = Duration::from_secs(6))?;
    let before = measured(&site)?;
    let (hello, mut links) = (hello(&mut site.handshake()?)?, Vec::new());
    for n in 0..bench.scaled(MANY).max(60) {
        let mut link = site.visit()?;
        link.say(match n % 3 {
            0 => &[],
            1 => &hello[..hello.len() / 2],
            _ => &hello,
        });
        links.push(link);
        // A full queue of the listener would delay the others by the retransmissions of TCP.
        if links.len() % QUEUE == 0 {
            soon(|| site.holds().0 > links.len());
        }
    }
    soon(|| site.holds().0 > links.len());
    let held = site.holds().0 - 1;
    expect(held == links.len(), || format!("{held} of {} are held", links.len()))?;
    let during = measured(&site)?;
    let left = site.holds().0.min(held);
    for link in &mut links {
        link.rest()?;
    }
    site.is_well()?;
    let slowest = during.iter().filter_map(|times| times.last()).max();
    expect(slowest < Some(&TURN), || format!("another client waits for {slowest:?}"))?;
    let p99 = |times: &[Duration]| times.get(times.len() * 99 / 100).map_or(0.0, |time| time.as_secs_f64() * 1e3);
    Ok(format!(
        "{held} are held, and {left} still after the calls; p99 of a call {:.1} ms ({:.1} before), of a handshake and a call \
         {:.1} ms ({:.1} before)",
        p99(&during[0]),
        p99(&before[0]),
        p99(&during[1]),
        p99(&before[1]),
    ))
}

/// The server releases a connection whose client still holds it, and serves the others.
fn is_let_go(site: &Site, at: usize) -> Result<(), String> {
    becomes(|| site.holds() == (1, 0), || format!("cut at byte {at}: {:?} are held", site.holds()))
}

fn cut_hello(bench: &Bench) -> Result<String, String> {
    let site = bench.secure_site(|_| {})?;
    let hello = hello(&mut site.handshake()?)?;
    for end in 0..hello.len() {
        let mut link = site.visit()?;
        link.say(&hello[..end]);
        link.finish();
        let told = link.rest()?;
        expect(told.len() < ALERT, || format!("cut at byte {end}: it says {told:?}"))?;
        is_let_go(&site, end)?;
    }
    site.is_well()?;
    Ok(format!("{} times", hello.len()))
}

/// The server has sent its certificate, and waits for the end of the handshake.
fn cut_end(bench: &Bench) -> Result<String, String> {
    let site = bench.secure_site(|_| {})?;
    let (mut end, mut length) = (0, usize::MAX);
    while end < length {
        let (mut tls, mut link) = (site.handshake()?, site.visit()?);
        link.say(&hello(&mut tls)?);
        while !tls.wants_write() {
            let bytes = link.some()?;
            let mut rest = &bytes[..];
            while !rest.is_empty() {
                tls.read_tls(&mut rest).map_err(|e| e.to_string())?;
                tls.process_new_packets().map_err(|e| e.to_string())?;
            }
        }
        let last = hello(&mut tls)?;
        length = last.len();
        link.say(&last[..end]);
        link.finish();
        link.rest()?;
        is_let_go(&site, end)?;
        end += 1;
    }
    site.is_well()?;
    Ok(format!("{end} times"))
}

/// Only a whole request runs.
fn cut_request(bench: &Bench) -> Result<String, String> {
    let site = bench.secure_site(|_| {})?;
    let ask = Ask::mark().bytes();
    let (mut end, mut length) = (0, usize::MAX);
    while end < length {
        let mut link = site.enter()?;
        let tls = link.tls().ok_or("no TLS")?;
        tls.writer().write_all(&ask).map_err(|e| e.to_string())?;
        let record = hello(tls)?;
        length = record.len();
        link.say_below(&record[..end]);
        link.finish();
        is_let_go(&site, end)?;
        expect(tools::marks() == 0, || format!("cut at byte {end}: the call has run"))?;
        end += 1;
    }
    site.is_well()?;
    Ok(format!("{end} times, and no call has run"))
}

/// Each is a hello to serve, or one to refuse with an alert.
fn changed(bench: &Bench) -> Result<String, String> {
    let site = bench.secure_site(|_| {})?;
    let hello = hello(&mut site.handshake()?)?;
    let mut refused = 0;
    for at in 0..hello.len() {
        let mut changed = hello.clone();
        changed[at] ^= 0xff;
        let mut link = site.visit()?;
        link.say(&changed);
        link.finish();
        refused += usize::from((1..ALERT).contains(&link.rest()?.len()));
        is_let_go(&site, at)?;
    }
    site.is_well()?;
    Ok(format!("{} times, {refused} times an alert", hello.len()))
}

/// The server cannot write its alert, and its engine writes events until the connection ends.
fn broken(bench: &Bench) -> Result<String, String> {
    let site = bench.secure_site(short)?;
    let mut link = site.enter()?;
    link.narrow()?;
    link.say(&Ask::call("tell").with("tag", "told").bytes());
    link.opens()?;
    // The call sends more at once than the connection holds.
    link.until("news")?;
    // The record of a message of 17 bytes that no key has encrypted.
    link.say_below(&[23, 3, 3, 0, 17]);
    link.say_below(&[7; 17]);
    site.serves()?;
    becomes(|| tools::was_stopped("told"), || "the call goes on".into())?;
    site.is_well()?;
    Ok("closed; the call is stopped".into())
}

/// The client reads nothing meanwhile.
fn rekeys(bench: &Bench) -> Result<String, String> {
    let site = bench.secure_site(|_| {})?;
    let mut link = site.enter()?;
    let tls = link.tls().ok_or("no TLS")?;
    let mut records = Vec::new();
    for _ in 0..10_000 {
        tls.refresh_traffic_keys().map_err(|e| e.to_string())?;
        records.extend(hello(tls)?);
    }
    link.say_below(&records);
    is_let_go(&site, records.len())?;
    site.is_well()?;
    Ok("closed".into())
}
