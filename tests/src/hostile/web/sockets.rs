//! WebSocket servers that break its rules, or never end what they begin.

use super::parts::{LONG, PATIENCE, answered, broken, changed, fails, good, impatient, late, modern, row};
use super::socket_stub::{SocketStub, Wire, answer, text};
use crate::frames::{FRAGMENT, LAST, LONGEST_PING, MORE, NORMAL, PING, POLICY, PROTOCOL, TEXT, TOO_BIG, masked, plain};
use crate::hostile::client::{Client, Place, Seen, Setup, failed};
use crate::hostile::rows::{DRIVERS, becomes, expect, row_on};
use crate::hostile::{Bench, Row};
use crate::stub::SOON;
use mcp_proto::exchange::{Closed, Sent};
use mcp_proto::{CallError, ClientConfig, tools};
use serde_json::{Value, json};
use std::io;
use std::time::{Duration, Instant};

pub(super) const ROWS: &[Row] = &[
    row_on("a websocket message without end", DRIVERS, 64, |b| {
        let part = plain(MORE, &[b'x'; 16 << 10]);
        too_big(b, move |wire, _| wire.pour_beside(&plain(FRAGMENT, b"\"x"), &part, u64::MAX, b""))
    }),
    row("a websocket message of 4 EiB", |b| too_big(b, |wire, _| wire.say(b"\x81\x7f\x40\0\0\0\0\0\0\0{"))),
    row("a websocket message of empty fragments without end", |b| {
        let part = plain(MORE, b"");
        has_no_message(b, move |wire, _| wire.pour_beside(&plain(FRAGMENT, b"{"), &part, u64::MAX, b""))
    }),
    row("a websocket message of 1,000,000 empty fragments", empty_fragments),
    row("12 MiB of pings over a websocket", |b| pings(b, Wire::pour_beside)),
    row("12 MiB of pings over a websocket, reads no pong", |b| pings(b, Wire::pour)),
    row("pings over a websocket without end", |b| {
        let part = plain(PING, &[b'p'; LONGEST_PING]);
        has_no_message(b, move |wire, _| wire.pour_beside(b"", &part, u64::MAX, b""))
    }),
    row("a part of a websocket message and nothing more", |b| {
        never_ends(b, |wire, _| wire.say(&plain(FRAGMENT, b"{\"jsonrpc\":")))
    }),
    row("a part of a websocket frame and nothing more", |b| never_ends(b, |wire, _| wire.say(b"\x81\x7e\x01"))),
    row("a part of a websocket message, and answers no ping", no_sign_of_life),
    row("never answers the close of a websocket", |b| never_closes(b, b"")),
    row("answers the close of a websocket by pings without end", |b| never_closes(b, &plain(PING, b"and?"))),
    row("masks the frames of a websocket", |b| {
        violates(b, "a server that masks", PROTOCOL, |wire, id| {
            wire.say(&masked(TEXT, text(id, json!({"content": []})).as_bytes()))
        })
    }),
    row("breaks each rule for the frames of a websocket", violations),
    row("goes on after a broken rule of a websocket", |b| {
        violates(b, "a reserved bit is set", PROTOCOL, |wire, id| {
            let again = answer(id, "bad");
            wire.pour_beside(&plain(0xc1, b"{}"), &again, u64::MAX, b"")
        })
    }),
];

/// The time that a client waits for a server that does not close its connection.
const LINGER: Duration = Duration::from_secs(2);

impl Bench {
    /// A client of the stub after negotiation.
    fn dial(&self, stub: &SocketStub, setup: Setup) -> Result<Client, String> {
        let seen = Seen::default();
        self.open(Place::Url(stub.url()), setup, &seen).map_err(|e| failed(&e, &seen))
    }
}

/// Closes a client whose server does not close the connection. The client waits for that, for a
/// limited time.
fn lingers(client: Client) -> Result<Duration, String> {
    let took = client.close()?;
    expect(took < LINGER + SOON, || format!("the close takes {took:?}"))?;
    Ok(took)
}

/// The client has closed its only connection, with this code.
fn left(stub: &SocketStub, code: u16) -> Result<(), String> {
    becomes(|| stub.told().open == 0, || format!("it is still open: {:?}", stub.told()))?;
    let told = stub.told();
    expect(told.closes == [Some(code)] && told.connections == 1, || format!("{told:?}"))
}

/// The end of a connection ends every call once, with its cause. The server goes on as it likes,
/// and answers no `Close`. A driver may begin the two calls in any order.
fn violates(
    bench: &Bench,
    why: &str,
    code: u16,
    bad: impl Fn(&mut Wire, &Value) -> io::Result<()> + Send + Sync + 'static,
) -> Result<String, String> {
    let stub = SocketStub::start(move |wire, id| {
        wire.await_call("wait")?;
        bad(wire, id)?;
        wire.hear_out()
    })?;
    let linger = |config: &mut ClientConfig| config.limits.frame.linger_timeout = PATIENCE;
    let mut client = bench.dial(&stub, changed(linger))?;
    good(&mut client)?;
    let began = Instant::now();
    let is_so = broken(why);
    for ended in client.call_both([tools::call("wait"), tools::call("bad")]) {
        expect(ended.as_ref().is_err_and(&is_so), || format!("a call ends with {ended:?}"))?;
    }
    let took = began.elapsed();
    let later = client.call(tools::call("good"));
    let is_closed = matches!(later, Err(CallError::Refused(_) | CallError::Closed { sent: Sent::No, .. }));
    expect(is_closed, || format!("a later call ends with {later:?}"))?;
    lingers(client)?;
    left(&stub, code)?;
    let mut calls = stub.told().calls;
    calls.sort();
    expect(calls == ["bad", "good", "wait"], || format!("{calls:?}"))?;
    Ok(format!("both calls end after {:.1} s: {why}; closed with {code}", took.as_secs_f64()))
}

fn too_big(
    bench: &Bench,
    bad: impl Fn(&mut Wire, &Value) -> io::Result<()> + Send + Sync + 'static,
) -> Result<String, String> {
    violates(bench, "a message over the limit", TOO_BIG, bad)
}

/// 16 MiB of frames without a message end the connection.
fn has_no_message(
    bench: &Bench,
    bad: impl Fn(&mut Wire, &Value) -> io::Result<()> + Send + Sync + 'static,
) -> Result<String, String> {
    violates(bench, "16 MiB of frames without a message", POLICY, bad)
}

fn violations(bench: &Bench) -> Result<String, String> {
    let protocol = |why, bytes: Vec<u8>| (why, PROTOCOL, bytes);
    let cases = [
        protocol("a reserved bit is set", plain(0xc1, b"{}")),
        protocol("a reserved opcode", plain(0x83, b"{}")),
        protocol("a fragmented control frame", plain(0x09, b"x")),
        protocol("a control frame of more than 125 bytes", plain(PING, &[b'x'; LONGEST_PING + 1])),
        protocol("a continuation without a message", plain(MORE, b"x")),
        protocol("a message inside another one", [plain(FRAGMENT, b"{"), plain(TEXT, b"{}")].concat()),
        protocol("a length in a form that is too long", b"\x81\x7e\0\x02{}".to_vec()),
        protocol("half of a close code", plain(0x88, b"x")),
        protocol("a close code that must not be sent", plain(0x88, &1005_u16.to_be_bytes())),
        ("a binary message", 1003, plain(0x82, b"{}")),
        ("text that is not UTF-8", 1007, plain(TEXT, b"\xff")),
    ];
    let count = cases.len();
    for (why, code, bytes) in cases {
        violates(bench, why, code, move |wire, _| wire.say(&bytes)).map_err(|failed| format!("{why}: {failed}"))?;
    }
    Ok(format!("{count} of them; all calls end with the cause, and the connection with its code"))
}

/// The call ends at its own timeout, and the client closes the connection in time.
fn never_ends(
    bench: &Bench,
    bad: impl Fn(&mut Wire, &Value) -> io::Result<()> + Send + Sync + 'static,
) -> Result<String, String> {
    let stub = SocketStub::start(move |wire, id| {
        bad(wire, id)?;
        wire.hear_out()
    })?;
    let mut client = bench.dial(&stub, impatient())?;
    answered(&mut client, "good")?;
    let error = fails(&mut client, "bad", late)?;
    let took = lingers(client)?;
    left(&stub, NORMAL)?;
    Ok(format!("{error}; closed in {:.1} s", took.as_secs_f64()))
}

/// A message is complete at its last fragment, however many there are.
fn empty_fragments(bench: &Bench) -> Result<String, String> {
    let count = bench.scaled(1_000_000);
    let part = plain(MORE, b"");
    let stub = SocketStub::start(move |wire, id| {
        let text = text(id, json!({"content": [{"type": "text", "text": "bad"}]}));
        let last = plain(LAST, text.as_bytes());
        wire.pour_beside(&plain(FRAGMENT, b""), &part, count * part.len() as u64, &last)
    })?;
    let mut client = bench.dial(&stub, modern())?;
    answered(&mut client, "bad")?;
    good(&mut client)?;
    client.close()?;
    left(&stub, NORMAL)?;
    Ok("the call and later ones are answered".into())
}

/// Writes something, a part repeatedly for a number of bytes, and an end.
type Pour = fn(&mut Wire, &[u8], &[u8], u64, &[u8]) -> io::Result<()>;

/// The result behind them arrives. If the server reads no pong, most of them are never sent.
fn pings(bench: &Bench, pour: Pour) -> Result<String, String> {
    const SIZE: u64 = 12 << 20;
    let (size, part) = (SIZE, plain(PING, &[b'p'; LONGEST_PING]));
    let stub = SocketStub::start(move |wire, id| pour(wire, b"", &part, size, &answer(id, "bad")))?;
    let mut client = bench.dial(&stub, modern())?;
    answered(&mut client, "bad")?;
    // It follows all pongs.
    good(&mut client)?;
    let pongs = stub.told().pongs;
    let most = SIZE / (LONGEST_PING as u64 + 2);
    expect((1..most).contains(&pongs), || format!("{pongs} pongs for {most} pings"))?;
    let seen = client.leave()?;
    left(&stub, NORMAL)?;
    seen.is_silent()?;
    Ok(format!("answered; {pongs} pongs for {most} pings"))
}

/// A call without a timeout ends as well.
fn no_sign_of_life(bench: &Bench) -> Result<String, String> {
    let stub = SocketStub::start(|wire, _| {
        wire.say(&plain(FRAGMENT, b"{"))?;
        wire.hear_out()
    })?;
    let change = |config: &mut ClientConfig| {
        config.limits.frame.open_timeout = LONG;
        (config.limits.frame.ping_interval, config.limits.frame.pong_timeout) = (Some(PATIENCE), PATIENCE);
    };
    let mut client = bench.dial(&stub, Setup { timeout: None, ..changed(change) })?;
    let began = Instant::now();
    let lost = |error: &CallError| matches!(error, CallError::Closed { why: Closed::Timeout, .. });
    let error = fails(&mut client, "bad", lost)?;
    let took = began.elapsed();
    expect(took >= PATIENCE && took < SOON, || format!("it takes {took:?}"))?;
    client.close()?;
    becomes(|| stub.told().open == 0, || "it is still open".into())?;
    Ok(format!("{error}, after {:.1} s", took.as_secs_f64()))
}

/// The client ends the connection by itself after a limited time, whatever is said meanwhile.
fn never_closes(bench: &Bench, instead: &[u8]) -> Result<String, String> {
    let instead = instead.to_vec();
    let stub = SocketStub::start(move |wire, id| {
        wire.say(&answer(id, "bad"))?;
        if !instead.is_empty() {
            wire.pour_beside(b"", &instead, u64::MAX, b"")?;
        }
        wire.hear_out()
    })?;
    let mut client = bench.dial(&stub, modern())?;
    answered(&mut client, "bad")?;
    let took = lingers(client)?;
    expect(took > LINGER / 2, || format!("it is gone after {took:?}"))?;
    left(&stub, NORMAL)?;
    Ok(format!("closed in {:.1} s", took.as_secs_f64()))
}
