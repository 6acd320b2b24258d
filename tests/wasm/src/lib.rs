//! The engine as a WebAssembly module without an operating system: a client and a server, driven
//! from outside through numbers.
//!
//! The module imports nothing. The host is the driver: it writes bytes into the module's memory,
//! reports events with their times, and asks for the next output.
//!
//! This is the one crate of the project with unsafe code, since its platform requires it: exported
//! names, an allocator, and memory that the host writes to. `mcp-proto` itself forbids it.
#![no_std]
#![deny(unsafe_op_in_unsafe_fn)]

extern crate alloc;

mod heap;

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use bytes::Bytes;
use core::time::Duration;
use mcp_proto::auth::{AuthConfig, Flow};
use mcp_proto::client::{self, HttpTarget, Policy};
use mcp_proto::exchange::{Action, Closed, ConnectionId, IoEvent, Peer, Shutdown};
use mcp_proto::input::CallId;
use mcp_proto::route::RouteResult;
use mcp_proto::wired::{Kind, WiredClient, WiredServer};
use mcp_proto::{ClientCommands, ClientConfig, Cx, Handler, Instant, Outcome, Router, ServerCommands, server, tool, tools};

#[panic_handler]
fn panicked(_: &core::panic::PanicInfo<'_>) -> ! {
    core::arch::wasm32::unreachable()
}

/// The next output: the result of the `poll` functions. Its bytes, if any, are at `text` and
/// `text_len`.
#[derive(Clone, Copy)]
enum Next {
    Nothing = 0,
    Open = 1,
    Write = 2,
    Close = 3,
    /// The two sides have agreed; the text is the revision.
    Ready = 4,
    /// A call ended; the text is its result, or begins with `error: `.
    Ended = 5,
    Terminated = 6,
    /// Anything else; the text says what.
    Other = 7,
}

/// A client over one channel.
pub struct ClientPort {
    engine: WiredClient,
    channel: ConnectionId,
    text: Bytes,
}

/// A server over one channel, with one tool, `add`.
pub struct ServerPort {
    engine: WiredServer,
    router: Router,
    channel: ConnectionId,
    text: Bytes,
}

const fn at(millis: u64) -> Instant {
    Instant::new(Duration::from_millis(millis))
}

fn add(cx: &Cx) -> Outcome {
    // No derive here: the arguments are read as they are.
    let text = cx.raw().as_str();
    let numbers: Vec<i64> =
        text.split(|c: char| !c.is_ascii_digit() && c != '-').filter_map(|part| part.parse().ok()).collect();
    cx.outcome(numbers.iter().sum::<i64>().to_string())
}

/// Begins a login, and returns the number of its first steps.
#[unsafe(no_mangle)]
pub extern "C" fn login_steps() -> u32 {
    let Ok(server) = HttpTarget::parse("https://example.com/mcp") else { return 0 };
    let mut flow = Flow::new(Arc::new(AuthConfig::new("module")), server, Duration::ZERO, [7; 32], at(0));
    flow.login(at(1));
    let mut steps = 0;
    while flow.poll_output().is_some() {
        steps += 1;
    }
    steps
}

/// Memory for `len` bytes that the host writes and then hands over. Never zero.
#[unsafe(no_mangle)]
pub extern "C" fn buffer(len: usize) -> *mut u8 {
    Box::leak(alloc::vec![0_u8; len.max(1)].into_boxed_slice()).as_mut_ptr()
}

/// Takes back what [`buffer`] gave.
///
/// # Safety
/// `ptr` came from `buffer(len)`, and was not handed over before.
unsafe fn taken(ptr: *mut u8, len: usize) -> Bytes {
    // SAFETY: by the contract above, this is the box that `buffer` leaked.
    let whole = unsafe { Box::from_raw(core::ptr::slice_from_raw_parts_mut(ptr, len.max(1))) };
    Bytes::from(whole).slice(..len)
}

/// A client. `legacy` is not zero for one that only knows `initialize`. The 32 bytes of the seed
/// are passed in.
///
/// # Safety
/// `seed` came from `buffer(32)`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn client_new(legacy: u32, seed: *mut u8, now: u64) -> *mut ClientPort {
    // SAFETY: as promised by the caller.
    let seed = unsafe { taken(seed, 32) };
    let mut config = ClientConfig::given();
    config.policy = if legacy == 0 { Policy::Modern } else { Policy::Legacy };
    let engine = WiredClient::new(Arc::new(config), seed_of(&seed), at(now));
    Box::into_raw(Box::new(ClientPort { engine, channel: ConnectionId(0), text: Bytes::new() }))
}

fn seed_of(bytes: &Bytes) -> [u8; 32] {
    let mut seed = [0; 32];
    seed.copy_from_slice(bytes);
    seed
}

/// The channel is open.
///
/// # Safety
/// `client` is live.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn client_opened(client: *mut ClientPort, now: u64) {
    // SAFETY: as promised by the caller; the module has one thread.
    let client = unsafe { &mut *client };
    client.engine.handle_io(at(now), client.channel, IoEvent::Opened(Peer::default()));
}

/// Bytes were read; they are handed over.
///
/// # Safety
/// `client` is live, `ptr` came from `buffer(len)`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn client_bytes(client: *mut ClientPort, ptr: *mut u8, len: usize, now: u64) {
    // SAFETY: as promised by the caller.
    let (client, bytes) = unsafe { (&mut *client, taken(ptr, len)) };
    client.engine.handle_io(at(now), client.channel, IoEvent::Read(bytes));
}

/// The channel is gone.
///
/// # Safety
/// `client` is live.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn client_closed(client: *mut ClientPort, now: u64) {
    // SAFETY: as promised by the caller.
    let client = unsafe { &mut *client };
    client.engine.handle_io(at(now), client.channel, IoEvent::Closed(Closed::Eof));
}

/// Time has passed.
///
/// # Safety
/// `client` is live.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn client_tick(client: *mut ClientPort, now: u64) {
    // SAFETY: as promised by the caller.
    unsafe { &mut *client }.engine.handle_timeout(at(now));
}

/// When to tick next, in milliseconds; -1 for never.
///
/// # Safety
/// `client` is live.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn client_timeout(client: *const ClientPort) -> i64 {
    // SAFETY: as promised by the caller.
    let at = unsafe { &*client }.engine.poll_timeout();
    at.and_then(|at| i64::try_from(at.since_origin().as_millis()).ok()).unwrap_or(-1)
}

/// Calls the tool `add` with two numbers; gives the call, or -1 if it was refused.
///
/// # Safety
/// `client` is live.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn client_add(client: *mut ClientPort, a: i32, b: i32, now: u64) -> i64 {
    // SAFETY: as promised by the caller.
    let client = unsafe { &mut *client };
    let arguments = mcp_proto::Object::new().with("a", i64::from(a)).with("b", i64::from(b));
    let call = tools::call("add").param("arguments", Ok(arguments.into()));
    client.engine.call(at(now), call).map_or(-1, |calling| calling.id().0 as i64)
}

/// Ends the client in order.
///
/// # Safety
/// `client` is live.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn client_close(client: *mut ClientPort, now: u64) {
    // SAFETY: as promised by the caller.
    unsafe { &mut *client }.engine.close(at(now));
}

/// What the client wants next, as a number of `Next`.
///
/// # Safety
/// `client` is live.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn client_poll(client: *mut ClientPort, now: u64) -> u32 {
    // SAFETY: as promised by the caller.
    let client = unsafe { &mut *client };
    let (next, text) = match client.engine.poll_output() {
        None => (Next::Nothing, Bytes::new()),
        Some(Action::Open(channel, _)) => {
            client.channel = channel;
            (Next::Open, Bytes::new())
        }
        Some(Action::Write(channel, bytes)) => {
            // The host takes everything.
            client.engine.handle_io(at(now), channel, IoEvent::Written(bytes.len()));
            (Next::Write, bytes)
        }
        Some(Action::Close(_, how)) => (Next::Close, named(how)),
        Some(Action::Event(client::Event::Ready(info))) => (Next::Ready, info.version.as_str().into()),
        Some(Action::Event(client::Event::Ended { call: CallId(_), outcome })) => match outcome {
            Ok(result) => (Next::Ended, result.json.to_bytes()),
            Err(why) => (Next::Ended, format!("error: {why}").into()),
        },
        Some(Action::Event(client::Event::Terminated(_))) => (Next::Terminated, Bytes::new()),
        // Its server has no TLS.
        Some(Action::Secure(..) | Action::Read(..) | Action::Notice(..)) => (Next::Other, Bytes::new()),
        Some(Action::Event(other)) => (Next::Other, format!("{other:?}").into()),
    };
    client.text = text;
    next as u32
}

fn named(how: Shutdown) -> Bytes {
    let name: String = format!("{how:?}");
    name.into()
}

/// Where the text of the last poll lies.
///
/// # Safety
/// `client` is live.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn client_text(client: *const ClientPort) -> *const u8 {
    // SAFETY: as promised by the caller.
    unsafe { &*client }.text.as_ptr()
}

/// How long it is.
///
/// # Safety
/// `client` is live.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn client_text_len(client: *const ClientPort) -> usize {
    // SAFETY: as promised by the caller.
    unsafe { &*client }.text.len()
}

/// Lets go of the client.
///
/// # Safety
/// `client` is live, and is not after this.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn client_free(client: *mut ClientPort) {
    // SAFETY: as promised by the caller, this is the box that `client_new` made.
    drop(unsafe { Box::from_raw(client) });
}

/// A server with one channel, already accepted. The 32 bytes of the seed are handed over.
///
/// # Safety
/// `seed` came from `buffer(32)`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn server_new(seed: *mut u8, now: u64) -> *mut ServerPort {
    // SAFETY: as promised by the caller.
    let seed = unsafe { taken(seed, 32) };
    let router = Router::new("wasm", "1.0").add(tool("add").describe("adds"), Handler::inline(add));
    let mut engine = WiredServer::new(Arc::new(router.config()), seed_of(&seed), at(now));
    let channel = engine.accept(at(now), Kind::Lines, Peer::default());
    Box::into_raw(Box::new(ServerPort { engine, router, channel, text: Bytes::new() }))
}

/// Bytes were read; they are handed over.
///
/// # Safety
/// `server` is live, `ptr` came from `buffer(len)`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn server_bytes(server: *mut ServerPort, ptr: *mut u8, len: usize, now: u64) {
    // SAFETY: as promised by the caller.
    let (server, bytes) = unsafe { (&mut *server, taken(ptr, len)) };
    server.engine.handle_io(at(now), server.channel, IoEvent::Read(bytes));
}

/// The next output of the server: [`Next::Write`] with its bytes, or nothing. Requests are answered
/// inside.
///
/// # Safety
/// `server` is live.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn server_poll(server: *mut ServerPort, now: u64) -> u32 {
    // SAFETY: as promised by the caller.
    let ServerPort { engine, router, text, .. } = unsafe { &mut *server };
    let mut waiting = VecDeque::new();
    loop {
        match engine.poll_output() {
            Some(Action::Write(channel, bytes)) => {
                engine.handle_io(at(now), channel, IoEvent::Written(bytes.len()));
                *text = bytes;
                return Next::Write as u32;
            }
            Some(Action::Event(server::Event::Request(responder, incoming))) => {
                waiting.push_back(router.route(responder, incoming));
            }
            Some(_) => {}
            None if waiting.is_empty() => return Next::Nothing as u32,
            None => {}
        }
        match waiting.pop_front() {
            Some(RouteResult::Answer(answer)) => engine.respond(at(now), answer),
            Some(RouteResult::Handle { handler, invocation, responder }) => {
                let outcome = handler.call(&Cx::detached(invocation)).expect("no handler here returns a future");
                engine.respond(at(now), responder.write(outcome));
            }
            None => {}
        }
    }
}

/// Where the text of the last poll lies.
///
/// # Safety
/// `server` is live.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn server_text(server: *const ServerPort) -> *const u8 {
    // SAFETY: as promised by the caller.
    unsafe { &*server }.text.as_ptr()
}

/// How long it is.
///
/// # Safety
/// `server` is live.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn server_text_len(server: *const ServerPort) -> usize {
    // SAFETY: as promised by the caller.
    unsafe { &*server }.text.len()
}

/// Lets go of the server.
///
/// # Safety
/// `server` is live, and is not after this.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn server_free(server: *mut ServerPort) {
    // SAFETY: as promised by the caller, this is the box that `server_new` made.
    drop(unsafe { Box::from_raw(server) });
}
