//! Clients with bad tokens in great numbers, beside good ones, and issuers whose keys cannot be
//! had.
//!
//! The loop takes no part: it verifies no tokens.

use super::ask::Ask;
use super::floods::beside;
use super::link::Link;
use super::parts::{FLAT, Gets, gets};
use super::site::Site;
use super::tools;
use crate::cost::tokens::verification;
use crate::hostile::rows::{READERS, expect, row_on, spent};
use crate::hostile::{Bench, Row};
use crate::stub::{Ask as StubAsk, Step, Stub, endless, json, say, whole};
use crate::tokens::TokenSigner;
use mcp_proto::auth::{IssuerConfig, Resource, VerifierConfig};
use rustix::time::ClockId;
use std::fs;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// The row that measures times, and so runs alone.
pub(in crate::hostile) const STORM: &[Row] = &[row_on("sends 1,000 bad tokens a second", READERS, FLAT, storm)];

pub(super) const ROWS: &[Row] = &[
    row_on("sends 1,000 tokens, each of another unknown key", READERS, FLAT, unknown_keys),
    row_on("a token of an issuer that says its keys by one byte a second", READERS, FLAT, |b| {
        let slow = || vec![say("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n"), Step::Drip(SPACES, SECOND)];
        without_keys(b, move |_| slow())
    }),
    row_on("a token of an issuer that redirects its keys in a circle", READERS, FLAT, |b| {
        without_keys(b, |ask| {
            let next = if ask.target == KEYS { "/other" } else { KEYS };
            vec![whole("302 Found", format!("Location: {next}\r\n"), "")]
        })
    }),
    row_on("a token of an issuer with keys without end", READERS, FLAT, |b| {
        without_keys(b, |_| vec![say(UNBOUNDED), endless(KEY)])
    }),
    row_on("a token of an issuer with keys of 1 GiB", READERS, FLAT, |b| {
        without_keys(b, |_| {
            vec![say("HTTP/1.1 200 OK\r\nContent-Length: 1073741824\r\n\r\n{\"keys\":["), Step::Repeat(KEY, 1 << 24)]
        })
    }),
];

const SECOND: Duration = Duration::from_secs(1);

/// What a client calls the server.
const RESOURCE: &str = "https://guarded.example/mcp";

const METADATA: &str = "/.well-known/oauth-authorization-server";
const KEYS: &str = "/keys";

const UNBOUNDED: &str = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{\"keys\":[";

const SPACES: &str = "                                                                ";

/// A key that no server knows.
const KEY: &str = r#"{"kty":"EC","crv":"P-1","x":"AAAAAAAAAAAAAAAA","y":"AAAAAAAAAAAAAAA"},"#;

/// The calls and the bad tokens of a second.
const GOOD: usize = 100;
const BAD: usize = 1000;

/// The rounds of a storm, each beside one without it, and the seconds of each.
const ROUNDS: usize = 5;
const SECONDS: usize = if cfg!(debug_assertions) { 1 } else { 3 };

/// The most processor time that the server may take for one of them, beyond that for a request
/// without a token, as a multiple of the verification of its signature alone. Unlike that, it
/// begins with cold caches. The server is unoptimised where debug assertions hold.
const COST: f64 = if cfg!(debug_assertions) { 16.0 } else { 3.0 };

/// The shortest wait that counts: the processors are busy with the clients as well.
const TURN: Duration = Duration::from_millis(if cfg!(debug_assertions) { 500 } else { 1 });

/// By how much the resident memory may differ from what it was after the first round, in KiB.
const STEADY: u64 = 4 << 10;

/// An authorization server that publishes its key.
struct Issuer {
    stub: Stub,
    signer: TokenSigner,
}

impl Issuer {
    fn start() -> Result<Self, String> {
        let mut signer = TokenSigner::new("", RESOURCE);
        let keys = signer.keys();
        let stub = Stub::start(move |ask| match ask.target.as_str() {
            METADATA => metadata(ask),
            KEYS => vec![json(keys.clone())],
            _ => absent(ask),
        });
        let stub = stub.map_err(|e| e.to_string())?;
        signer.issuer = stub.origin();
        Ok(Self { stub, signer })
    }

    /// Returns how often its keys were asked for.
    fn fetches(&self) -> usize {
        asked(&self.stub, KEYS)
    }

    /// Starts our server, which accepts tokens of this issuer, and of another one.
    fn site(&self, bench: &Bench, other: Option<&Stub>) -> Result<Site, String> {
        let resource = Resource::new(RESOURCE, [&self.signer.issuer]);
        let config = VerifierConfig::jwt(&self.signer.issuer);
        let config = match other {
            Some(other) => config.and_issuer(IssuerConfig::jwt(other.origin())),
            None => config,
        };
        bench.verifying_site(resource, config, self.signer.token("good"))
    }
}

fn metadata(ask: &StubAsk) -> Vec<Step> {
    let issuer = format!("http://{}", ask.field("host").unwrap_or_default());
    vec![json(format!(r#"{{"issuer":"{issuer}","jwks_uri":"{issuer}{KEYS}"}}"#))]
}

fn absent(ask: &StubAsk) -> Vec<Step> {
    if ask.what == "open" { Vec::new() } else { vec![whole("404 Not Found", "", "")] }
}

fn asked(stub: &Stub, target: &str) -> usize {
    stub.asks().iter().filter(|ask| ask.target == target).count()
}

/// Good calls take at most twice their time, a bad token costs little, and none stays.
fn storm(bench: &Bench) -> Result<String, String> {
    let issuer = Issuer::start()?;
    let site = issuer.site(bench, None)?;
    let (mut quiet, mut busy) = (Vec::new(), Vec::new());
    let [mut bare, mut cost, mut alone] = [Duration::MAX; 3];
    let (mut sent, mut first) = (0, None);
    for _ in 0..ROUNDS {
        let before = spent(ClockId::ProcessCPUTime);
        quiet.push(slowest(&site)?);
        let own = spent(ClockId::ProcessCPUTime) - before;
        // The processor time of the server for each.
        let beside = |signer, from| {
            let before = spent(ClockId::ProcessCPUTime);
            let (calls, refused) = beside_refused(&site, signer, from)?;
            let both = spent(ClockId::ProcessCPUTime) - before;
            let each = both.saturating_sub(own + refused.client).div_f64(refused.count.max(1) as f64);
            Ok::<_, String>((calls, refused.count, each))
        };
        bare = bare.min(beside(None, 0)?.2);
        let (calls, count, each) = beside(Some(&issuer.signer), sent)?;
        busy.push(calls);
        sent += count;
        (cost, alone) = (cost.min(each), alone.min(verification(&issuer.signer)));
        first.get_or_insert(resident()?);
    }
    let least = if cfg!(debug_assertions) { 1 } else { ROUNDS * SECONDS * BAD * 9 / 10 };
    expect(sent >= least, || format!("only {sent} bad tokens are sent"))?;
    let costs = format!("{cost:?} for a bad token, {bare:?} for none, {alone:?} for a signature");
    expect(cost <= bare + alone.mul_f64(COST), || format!("of the processor {costs}"))?;
    let (quiet, busy) = (median(quiet), median(busy));
    expect(busy <= 2 * quiet.max(TURN), || format!("good calls take {busy:?}, and {quiet:?} without bad tokens"))?;
    let (first, last) = (first.unwrap_or_default(), resident()?);
    expect(last <= first + STEADY, || format!("{first} KiB after the first round, {last} after the last"))?;
    expect(tools::marks() == 0, || "a call with a bad token has run".into())?;
    expect(issuer.fetches() == 1, || format!("the keys are fetched {} times", issuer.fetches()))?;
    site.at_rest()?;
    let (busy, quiet) = (busy.as_micros(), quiet.as_micros());
    Ok(format!("{sent} times 401: {costs}; p99 of good calls {busy} us, {quiet} us without them"))
}

/// The requests that were refused beside good calls.
#[derive(Default)]
struct RefusedRequests {
    count: usize,
    /// The processor time of its clients.
    client: Duration,
}

/// The clients that are refused.
const SENDERS: usize = 4;

/// Makes the good calls of a round beside bad tokens, or beside requests without a token. Returns
/// the 99th percentile of their times.
fn beside_refused(
    site: &Site,
    signer: Option<&TokenSigner>,
    from: usize,
) -> Result<(Duration, RefusedRequests), String> {
    let (over, number) = (AtomicBool::new(false), AtomicUsize::new(from));
    let send = || {
        let (before, mut link, mut count) = (spent(ClockId::ThreadCPUTime), None, 0);
        let mut next = Instant::now();
        while !over.load(Ordering::Relaxed) {
            match signer.map(|signer| signer.forged(number.fetch_add(1, Ordering::Relaxed))) {
                Some(token) => refused(site, &mut link, &Ask::mark().who(&token))?,
                None => answered(site, &mut link, &Ask::mark(), &gets(&[401]))?,
            }
            expect(link.is_some(), || "the connection is closed with the 401".into())?;
            count += 1;
            next = wait(next, SECOND * SENDERS as u32 / BAD as u32);
        }
        Ok(RefusedRequests { count, client: spent(ClockId::ThreadCPUTime) - before })
    };
    thread::scope(|scope| {
        let senders: Vec<_> = (0..SENDERS).map(|_| scope.spawn(send)).collect();
        let calls = slowest(site);
        over.store(true, Ordering::Relaxed);
        let sent: Result<Vec<RefusedRequests>, String> =
            senders.into_iter().map(|one| one.join().map_err(|_| "a bad client panics".to_string())?).collect();
        let all = sent?.into_iter().fold(RefusedRequests::default(), |all, one| RefusedRequests {
            count: all.count + one.count,
            client: all.client + one.client,
        });
        Ok((calls?, all))
    })
}

/// Makes the good calls of a round. Returns the 99th percentile of their times.
fn slowest(site: &Site) -> Result<Duration, String> {
    let mut times = Vec::with_capacity(GOOD * SECONDS);
    let mut next = Instant::now();
    for _ in 0..GOOD * SECONDS {
        next = wait(next, SECOND / GOOD as u32);
        let began = Instant::now();
        site.serves()?;
        times.push(began.elapsed());
    }
    times.sort_unstable();
    Ok(times[times.len() - 1 - times.len() / 100])
}

/// Waits for the next turn. Returns the one after it. One that is late is not made up for, unless
/// it is late by less than a tenth of a second.
fn wait(next: Instant, gap: Duration) -> Instant {
    let now = Instant::now();
    thread::sleep(next.saturating_duration_since(now));
    next.max(now.checked_sub(SECOND / 10).unwrap_or(now)) + gap
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

/// Sends this on the kept connection, or on a new one, and gets 401 for its token.
fn refused(site: &Site, kept: &mut Option<Link>, ask: &Ask) -> Result<(), String> {
    answered(site, kept, ask, &gets(&[401]).field("WWW-Authenticate", "invalid_token"))
}

/// Sends this on the kept connection, or on a new one, and gets this.
fn answered(site: &Site, kept: &mut Option<Link>, ask: &Ask, expected: &Gets) -> Result<(), String> {
    let mut link = match kept.take() {
        Some(link) => link,
        None => site.visit()?,
    };
    link.say(&ask.bytes());
    let answer = expected.next(&mut link)?;
    let closes = answer.field("Connection").is_some_and(|value| value.eq_ignore_ascii_case("close"));
    *kept = Some(link).filter(|_| !closes);
    Ok(())
}

/// Returns the resident memory of this process, in KiB.
fn resident() -> Result<u64, String> {
    let status = fs::read_to_string("/proc/self/status").map_err(|e| e.to_string())?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no VmRSS")?;
    line.trim().trim_end_matches(" kB").parse().map_err(|_| format!("{line} is no size"))
}

/// They cause one fetch of the keys in 30 s, however many there are.
fn unknown_keys(bench: &Bench) -> Result<String, String> {
    const TOKENS: usize = 1000;
    const APART: Duration = Duration::from_secs(30);
    let issuer = Issuer::start()?;
    let site = issuer.site(bench, None)?;
    let (began, mut link) = (Instant::now(), None);
    let mut send = |numbers: Range<usize>| {
        for number in numbers {
            refused(&site, &mut link, &Ask::mark().who(&issuer.signer.of_unknown_key(number)))?;
        }
        // The first one is that of the good client.
        let most = 1 + (began.elapsed().as_secs() / APART.as_secs()) as usize;
        expect(issuer.fetches() <= most, || format!("the keys are fetched {} times", issuer.fetches()))
    };
    send(0..TOKENS)?;
    if bench.size >= 1 << 30 {
        // The keys are older than 30 s from here on.
        thread::sleep((APART + SECOND).saturating_sub(began.elapsed()));
        send(TOKENS..2 * TOKENS)?;
        expect(issuer.fetches() == 2, || "the keys are not fetched again".into())?;
    }
    site.serves()?;
    drop(link);
    expect(tools::marks() == 0, || "a call with a bad token has run".into())?;
    site.at_rest()?;
    Ok(format!("401 for each; {} fetches of the keys in {:.0} s", issuer.fetches(), began.elapsed().as_secs_f64()))
}

/// A token of an issuer whose keys cannot be had is not decided about, in time. Tokens of another
/// issuer are served meanwhile.
fn without_keys(bench: &Bench, keys: impl Fn(&StubAsk) -> Vec<Step> + Send + Sync + 'static) -> Result<String, String> {
    /// The maximum time of a fetch, and of a busy machine.
    const PATIENCE: Duration = Duration::from_secs(20);
    let stub = Stub::start(move |ask| match ask.target.as_str() {
        METADATA => metadata(ask),
        "" => Vec::new(),
        _ => keys(ask),
    });
    let (stub, issuer) = (stub.map_err(|e| e.to_string())?, Issuer::start()?);
    let site = issuer.site(bench, Some(&stub))?;
    let token = TokenSigner::new(&stub.origin(), RESOURCE).token("ada");
    let unavailable = gets(&[503]).field("Retry-After", "");
    let (began, over) = (Instant::now(), AtomicBool::new(false));
    let mut link = site.says(&Ask::mark().who(&token))?;
    link.be_patient(PATIENCE)?;
    let (served, slowest) = thread::scope(|scope| {
        let beside = scope.spawn(|| beside(&site, &over));
        let answered = unavailable.next(&mut link);
        over.store(true, Ordering::Relaxed);
        let beside = beside.join().map_err(|_| "the good client panics".to_string())?;
        answered.and(beside)
    })?;
    let took = began.elapsed();
    // One that comes right after it does not cause another fetch.
    let fetches = stub.asks().len();
    let mut again = site.says(&Ask::mark().who(&token))?;
    again.be_patient(PATIENCE)?;
    unavailable.next(&mut again)?;
    expect(stub.asks().len() == fetches, || "the keys are fetched again at once".into())?;
    expect(fetches <= 6, || format!("{fetches} requests for the keys"))?;
    expect(stub.is_done_within(PATIENCE), || "the connection to the issuer stays open".into())?;
    drop((link, again));
    site.is_well()?;
    expect(tools::marks() == 0, || "a call has run".into())?;
    Ok(format!(
        "503 in {:.1} s, after {fetches} requests to the issuer; meanwhile another was served {served} times, within {} ms",
        took.as_secs_f64(),
        slowest.as_millis()
    ))
}
