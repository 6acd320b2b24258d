//! A server that misbehaves as its arguments and its tools specify, and is correct otherwise.
//!
//! Arguments: `--ignore-eof`, `--ignore-term`, `--grandchild` (which holds the pipes and ignores
//! everything), `--fork`, `--double-fork` (the started process exits, and its child or grandchild
//! serves), `--mute` (never responds), `--no-version` (supports no revision), `--exit TEXT` (writes
//! the text to standard error and exits), `--crlf`, `--bom`, `--utf16`, `--logs` (on standard
//! output). Each of its processes appends its id to the file that the variable `PIDS` names.
#![forbid(unsafe_code)]

use mcp_blocking::{Router, ToolError, serve, tool};
use mcp_proto::version::Versions;
use serde::Deserialize;
use std::env;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{Command, exit};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

fn main() -> io::Result<()> {
    let args: Vec<String> = env::args().skip(1).collect();
    let has = |flag: &str| args.iter().any(|arg| arg == flag);
    if has("--ignore-term") {
        return Err(deaf_to_term(&without(&args, "--ignore-term")));
    }
    tell_pid()?;
    if has("--linger") {
        stay();
    }
    for (flag, next) in [("--double-fork", Some("--fork")), ("--fork", None)] {
        if has(flag) {
            again(without(&args, flag).into_iter().chain(next.map(str::to_string)))?;
            return Ok(());
        }
    }
    if let Some(at) = args.iter().position(|arg| arg == "--exit") {
        eprintln!("{}", args.get(at + 1).map_or("", String::as_str));
        exit(3);
    }
    if has("--grandchild") {
        again(["--linger".to_string()])?;
    }
    if has("--mute") {
        // It reads its input in order to notice the end.
        io::copy(&mut io::stdin(), &mut io::sink())?;
    } else {
        serve_badly(&args)?;
    }
    if has("--ignore-eof") {
        stay();
    }
    Ok(())
}

/// Becomes the same program with `SIGTERM` ignored, since an ignored signal may be inherited.
fn deaf_to_term(args: &[String]) -> io::Error {
    match env::current_exe() {
        Ok(this) => Command::new("/bin/sh").args(["-c", r#"trap "" TERM; exec "$0" "$@""#]).arg(this).args(args).exec(),
        Err(e) => e,
    }
}

fn without(args: &[String], flag: &str) -> Vec<String> {
    args.iter().filter(|arg| *arg != flag).cloned().collect()
}

/// Starts another process of this program with the same streams. Returns once the file that `PIDS`
/// names has its id, so that a count of the processes does not miss it.
fn again(args: impl IntoIterator<Item = String>) -> io::Result<()> {
    let mut next = Command::new(env::current_exe()?).args(args).spawn()?;
    let Some(path) = env::var_os("PIDS") else { return Ok(()) };
    let id = next.id().to_string();
    while next.try_wait()?.is_none() && !fs::read_to_string(&path)?.lines().any(|line| line == id) {
        thread::park_timeout(Duration::from_millis(1));
    }
    Ok(())
}

fn tell_pid() -> io::Result<()> {
    let Some(path) = env::var_os("PIDS") else { return Ok(()) };
    // In one write, since other processes append as well.
    let line = format!("{}\n", std::process::id());
    File::options().append(true).create(true).open(path)?.write_all(line.as_bytes())
}

fn stay() -> ! {
    loop {
        thread::park();
    }
}

fn serve_badly(args: &[String]) -> io::Result<()> {
    let has = |flag: &str| args.iter().any(|arg| arg == flag);
    let style = Style { crlf: has("--crlf"), utf16: has("--utf16"), logs: has("--logs") };
    let output = Output { pipe: Arc::new(Mutex::new(Some(io::stdout().as_fd().try_clone_to_owned()?.into()))), style };
    // From here on, the only descriptor of the pipe is the one above.
    rustix::stdio::dup2_stdout(rustix::stdio::stderr())?;
    if has("--bom") {
        output.raw(|pipe| pipe.write_all(b"\xef\xbb\xbf"))?;
    }
    if style.utf16 {
        output.raw(|pipe| pipe.write_all(b"\xff\xfe"))?;
    }
    let ears = Arc::new(Ears::default());
    let pipe = io::stdin().as_fd().try_clone_to_owned()?.into();
    // The only descriptor of this pipe, too.
    rustix::stdio::dup2_stdin(File::open("/dev/null")?)?;
    let router = router(&output, &ears);
    let input = Input { pipe: Some(pipe), ears };
    let router =
        if has("--no-version") { router.configure(|config| config.versions = Versions::new([])) } else { router };
    serve(router, input, output)
}

#[derive(Deserialize)]
struct Echo {
    text: String,
}

#[derive(Deserialize)]
struct Amount {
    amount: u64,
}

#[derive(Deserialize)]
struct Nothing {}

fn router(output: &Output, ears: &Arc<Ears>) -> Router {
    let [line, many, close] = [(); 3].map(|()| output.clone());
    let [deaf, rest, heard, shut] = [(); 4].map(|()| Arc::clone(ears));
    let done = |done: io::Result<()>| done.map(|()| "done").map_err(ToolError::from);
    Router::new("misbehaving", "1.0")
        .tool(tool("pid").describe("the process that serves"), |_, _: Nothing| Ok(std::process::id()))
        .tool(tool("echo").describe("returns its text"), |_, Echo { text }: Echo| Ok(text))
        .tool(tool("wait").describe("never answers"), |_, _: Nothing| -> Result<(), ToolError> { stay() })
        .tool(tool("crash").describe("ends the process by a signal"), |_, _: Nothing| -> Result<(), ToolError> {
            eprintln!("about to crash");
            std::process::abort()
        })
        .tool(tool("line").describe("writes one line of that many bytes"), move |_, Amount { amount }: Amount| {
            done(line.raw(|pipe| fill(pipe, b"x", amount).and_then(|()| pipe.write_all(b"\n"))))
        })
        .tool(tool("blank").describe("writes that many line feeds"), {
            let output = output.clone();
            move |_, Amount { amount }: Amount| done(output.raw(|pipe| fill(pipe, b"\n", amount)))
        })
        .tool(tool("notes").describe("that many notifications"), move |_, Amount { amount }: Amount| {
            const NOTE: &[u8] = b"{\"jsonrpc\":\"2.0\",\"method\":\"custom/tick\"}\n";
            done(many.raw(|pipe| fill(pipe, NOTE, amount * NOTE.len() as u64)))
        })
        .tool(tool("logs").describe("that many log messages"), {
            let output = output.clone();
            move |_, Amount { amount }: Amount| {
                const LOG: &[u8] = concat!(
                    r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"all is well"}}"#,
                    "\n"
                )
                .as_bytes();
                done(output.raw(|pipe| fill(pipe, LOG, amount * LOG.len() as u64)))
            }
        })
        .tool(tool("large").describe("answers the request 2 with a resource of that many bytes"), {
            let output = output.clone();
            move |_, Amount { amount }: Amount| {
                let start = r#"{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"resource","resource":{"uri":"x:large","text":""#;
                done(output.raw(|pipe| {
                    pipe.write_all(start.as_bytes())?;
                    fill(pipe, b"x", amount)?;
                    pipe.write_all(b"\"}}]}}\n")
                }))
            }
        })
        .tool(tool("nonsense").describe("that many lines that are no messages"), {
            let output = output.clone();
            move |_, Amount { amount }: Amount| done(output.raw(|pipe| fill(pipe, b"?\n", amount * 2)))
        })
        .tool(tool("heavy").describe("that many notifications of 4 MiB"), {
            let output = output.clone();
            move |_, Amount { amount }: Amount| {
                let text = "x".repeat(4 << 20);
                let note =
                    format!(r#"{{"jsonrpc":"2.0","method":"custom/heavy","params":{{"text":"{text}"}}}}"#) + "\n";
                done(output.raw(|pipe| (0..amount).try_for_each(|_| pipe.write_all(note.as_bytes()))))
            }
        })
        .tool(tool("errors").describe("that many bytes to standard error"), move |_, Amount { amount }: Amount| {
            done(fill(
                &mut io::stderr().lock(),
                b"all is well; this line says nothing at all, again and again\n",
                amount,
            ))
        })
        .tool(tool("deaf").describe("reads no more"), move |_, _: Nothing| {
            deaf.state.store(DEAF, Ordering::SeqCst);
            Ok("done")
        })
        .tool(tool("measure").describe("the length of its text"), |_, Echo { text }: Echo| Ok(text.len().to_string()))
        .tool(tool("rest").describe("reads nothing for a second"), move |_, _: Nothing| {
            rest.state.store(RESTS, Ordering::SeqCst);
            Ok("done")
        })
        .tool(tool("heard").describe("that many notifications custom/N/, in their order"), {
            move |_, Amount { amount }: Amount| Ok(heard.heard(amount).join(" "))
        })
        .tool(tool("shut").describe("closes its input, and answers then"), move |_, _: Nothing| {
            // It is closed by now: see `Input`.
            drop(shut.wait_for(|ears| ears.is_shut));
            // The write of the next request fails meanwhile.
            thread::park_timeout(Duration::from_millis(300));
            Ok("done")
        })
        .tool(tool("close").describe("closes its output and lives on"), move |_, _: Nothing| {
            drop(close.pipe.lock().unwrap_or_else(PoisonError::into_inner).take());
            Ok("unheard")
        })
}

/// Writes `pattern` repeatedly, up to this number of bytes.
fn fill(to: &mut impl Write, pattern: &[u8], amount: u64) -> io::Result<()> {
    let block = pattern.repeat((64 << 10) / pattern.len());
    let mut left = amount;
    while left > 0 {
        let n = usize::try_from(left).unwrap_or(usize::MAX).min(block.len());
        to.write_all(&block[..n])?;
        left -= n as u64;
    }
    Ok(())
}

/// How this program reads.
#[derive(Default)]
struct Ears {
    state: AtomicU8,
    heard: Mutex<Heard>,
    changed: Condvar,
}

#[derive(Default)]
struct Heard {
    /// The notifications `custom/N/`.
    notes: Vec<String>,
    /// The end of a line that is not read yet.
    line: Vec<u8>,
    is_shut: bool,
}

/// Reads no more.
const DEAF: u8 = 1;
/// Reads no more for a second.
const RESTS: u8 = 2;
/// Closes the input with the next read.
const SHUT: u8 = 3;

impl Ears {
    /// Waits for a while until this holds.
    fn wait_for(&self, is_so: impl Fn(&Heard) -> bool) -> MutexGuard<'_, Heard> {
        let heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.changed.wait_timeout_while(heard, Duration::from_secs(10), |heard| !is_so(heard));
        waited.unwrap_or_else(PoisonError::into_inner).0
    }

    fn change(&self, change: impl FnOnce(&mut Heard)) {
        change(&mut self.heard.lock().unwrap_or_else(PoisonError::into_inner));
        self.changed.notify_all();
    }

    fn heard(&self, amount: u64) -> Vec<String> {
        self.wait_for(|heard| heard.notes.len() as u64 >= amount).notes.clone()
    }
}

impl Heard {
    /// Notes the numbers in these bytes. Returns whether there is a call of `shut`.
    fn hear(&mut self, bytes: &[u8]) -> bool {
        let mut shuts = false;
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            // A large request is not kept.
            if self.line.len() < 1 << 10 {
                self.line.extend_from_slice(part);
            }
            if part.ends_with(b"\n") {
                let line = String::from_utf8_lossy(&std::mem::take(&mut self.line)).into_owned();
                let number = line.split_once("\"custom/").and_then(|(_, rest)| rest.split('/').next());
                self.notes.extend(number.map(str::to_owned));
                shuts |= line.contains("\"shut\"");
            }
        }
        shuts
    }
}

/// Standard input, while it is needed.
struct Input {
    pipe: Option<File>,
    ears: Arc<Ears>,
}

impl Read for Input {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.ears.state.swap(0, Ordering::SeqCst) {
            DEAF => stay(),
            RESTS => thread::park_timeout(Duration::from_secs(1)),
            SHUT => self.shut(),
            _ => {}
        }
        let Some(pipe) = &mut self.pipe else { return Ok(0) };
        let n = pipe.read(buffer)?;
        let mut shuts = false;
        self.ears.change(|heard| shuts = heard.hear(&buffer[..n]));
        if shuts {
            // Before the handler runs, which may be after the next request.
            self.ears.state.store(SHUT, Ordering::SeqCst);
        }
        Ok(n)
    }
}

impl Input {
    /// Closes the pipe, without an end of the input for the server.
    fn shut(&mut self) -> ! {
        drop(self.pipe.take());
        self.ears.change(|heard| heard.is_shut = true);
        stay()
    }
}

#[derive(Clone, Copy)]
struct Style {
    crlf: bool,
    utf16: bool,
    logs: bool,
}

/// The pipe to the client, and how to write to it. Cloned for writes that bypass the server.
#[derive(Clone)]
struct Output {
    pipe: Arc<Mutex<Option<File>>>,
    style: Style,
}

impl Output {
    /// Writes to the pipe itself, exclusively.
    fn raw(&self, write: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
        match self.pipe.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            Some(pipe) => write(pipe),
            None => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut text = String::from_utf8_lossy(bytes).into_owned();
        if self.style.logs {
            text = text.replace('\n', "\n2026-01-01T00:00:00Z INFO {\"msg\": served a request\n");
        }
        if self.style.crlf {
            text = text.replace('\n', "\r\n");
        }
        let wire: Vec<u8> = match self.style.utf16 {
            true => text.encode_utf16().flat_map(u16::to_le_bytes).collect(),
            false => text.into_bytes(),
        };
        self.raw(|pipe| pipe.write_all(&wire))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
