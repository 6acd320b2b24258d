//! A connected client, whose server can ask on the terminal.

use crate::ask;
use crate::exit::INTERRUPTED;
use crate::failure::Failure;
use crate::login::{self, Pages};
use crate::noise::Noise;
use crate::options::Reach;
use crate::output::{note, one_line, printable};
use crate::target::Server;
use mcp_blocking::mcp_proto::error::{Diagnostic, DiagnosticKind};
use mcp_blocking::tasks::TaskUpdate;
use mcp_blocking::{Client, ClientEvent, ClientOptions, Closer, Progress, Root, Stderr, Target, connecting};
use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

/// The client that Ctrl-C closes.
static CLOSER: Mutex<Option<Closer>> = Mutex::new(None);

/// From now on Ctrl-C closes the client in order, and exits.
pub(crate) fn handle_interrupts() {
    // Without a handler, Ctrl-C ends this process at once.
    drop(ctrlc::set_handler(|| {
        if ask::takes_interrupts() {
            return;
        }
        let closer = closer().clone();
        match closer {
            Some(closer) => closer.exit(INTERRUPTED),
            None => std::process::exit(INTERRUPTED),
        }
    }));
}

/// Returns the options of a client of this server that asks on the terminal, shows what the server
/// says, and uses the login that is stored.
pub(crate) fn options(reach: &Reach, server: &Server, pages: Pages) -> Result<ClientOptions, Failure> {
    let mut options =
        ClientOptions::new().tasks().on_elicit(|form| ask::form(&form)).on_elicit_url(|page| ask::page(&page));
    if !reach.roots.is_empty() {
        let roots: Result<Vec<Root>, Failure> = reach.roots.iter().map(|folder| root(folder)).collect();
        options = options.roots(roots?);
    }
    if let Some(login) = login::of_server(reach, server, pages)? {
        options = options.oauth(login);
    }
    let (is_quiet, is_program, delivery) = (reach.quiet, server.is_program(), Delivery::begin());
    let stderr = match is_quiet {
        true => Stderr::Discard,
        // By lines, so that an error never begins in the middle of one.
        false => Stderr::Lines(Arc::new(|text: &str| note(printable(text)))),
    };
    let told = move |event| {
        let _until_dropped = &delivery;
        if let Some(text) = said(event, is_program).filter(|_| !is_quiet) {
            note(text);
        }
    };
    Ok(options.stderr(stderr).on_event(told))
}

/// Returns the line that shows an event, if it is shown.
fn said(event: ClientEvent, is_program: bool) -> Option<String> {
    match event {
        ClientEvent::Log { message, .. } => {
            let text: Option<String> = message.data.decode().ok();
            let text = text.unwrap_or_else(|| message.data.as_str().to_owned());
            Some(format!("[{}] {}", message.level.as_str(), printable(&text)))
        }
        // Most servers speak an older revision only.
        ClientEvent::Diagnostic(diagnostic) if is_fallback(&diagnostic) => None,
        ClientEvent::Diagnostic(diagnostic) if is_program && Noise::is_about(&diagnostic) => {
            NOISE.lock().unwrap_or_else(PoisonError::into_inner).add(&diagnostic).map(|text| format!("[mcp] {text}"))
        }
        ClientEvent::Diagnostic(diagnostic) => Some(format!("[mcp] {diagnostic}")),
        _ => None,
    }
}

/// What the programs of this command printed beside the protocol.
static NOISE: Mutex<Noise> = Mutex::new(Noise::new());

/// Number of callbacks for events that may still be called.
static DELIVERIES: Mutex<usize> = Mutex::new(0);

/// Signals the end of one.
static DELIVERED: Condvar = Condvar::new();

/// Maximum time for the last events of a client that is closed.
const LAST: Duration = Duration::from_secs(2);

/// Lives as long as the callback for the events of a client, which is dropped after the last one.
pub(crate) struct Delivery(());

impl Delivery {
    pub(crate) fn begin() -> Self {
        *DELIVERIES.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        Self(())
    }

    /// Waits until the last event of every closed client was delivered.
    pub(crate) fn wait_for_all() {
        let open = DELIVERIES.lock().unwrap_or_else(PoisonError::into_inner);
        // A server that never ends must not keep this command.
        drop(DELIVERED.wait_timeout_while(open, LAST, |open| *open > 0));
    }
}

impl Drop for Delivery {
    fn drop(&mut self) {
        *DELIVERIES.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        DELIVERED.notify_all();
    }
}

/// Waits for the end of the last client and for its diagnostics. Returns what the programs printed
/// beside the protocol.
pub(crate) fn finish() -> Noise {
    await_last();
    Delivery::wait_for_all();
    NOISE.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// Returns whether the client went on with an older revision or transport, which is no fault.
pub(crate) fn is_fallback(diagnostic: &Diagnostic) -> bool {
    matches!(diagnostic.kind, DiagnosticKind::FellBackToLegacy | DiagnosticKind::FellBackToSse)
}

fn root(folder: &std::path::Path) -> Result<Root, Failure> {
    let path = folder.canonicalize().map_err(|e| Failure::usage(format!("--root {}: {e}", folder.display())))?;
    let text = path.to_str().ok_or_else(|| Failure::usage("--root: the path is no Unicode"))?;
    let mut uri = String::from("file://");
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'.' | b'_' | b'~' => uri.push(char::from(byte)),
            _ => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    Ok(Root::new(uri))
}

/// Connects with the usual options.
pub(crate) fn open(server: Server, reach: &Reach) -> Result<Client, Failure> {
    let options = options(reach, &server, Pages::OnTerminal)?;
    connect(server, options)
}

/// Connects.
pub(crate) fn connect(server: Server, options: ClientOptions) -> Result<Client, Failure> {
    let connecting = connecting(Target::new(server.config), options)?;
    await_last();
    *closer() = Some(connecting.closer());
    Ok(connecting.wait()?)
}

/// Waits for the end of the last client: its program may still be ending after a limit for
/// connecting was reached.
fn await_last() {
    let closer = closer().clone();
    closer.into_iter().for_each(|closer| drop(closer.close()));
}

fn closer() -> std::sync::MutexGuard<'static, Option<Closer>> {
    CLOSER.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether the line of a terminal has a bar.
static SHOWS_BAR: AtomicBool = AtomicBool::new(false);

/// Ends the line of a bar, if there is one.
pub(crate) fn end_progress() {
    if SHOWS_BAR.swap(false, Ordering::Relaxed) {
        note("");
    }
}

/// Returns a callback that shows progress: as a bar on a terminal, as lines elsewhere.
pub(crate) fn progress() -> impl FnMut(Progress) {
    let is_terminal = io::stderr().is_terminal();
    move |progress| {
        let message = progress.message.as_deref().map(one_line).unwrap_or_default();
        let amount = match progress.fraction() {
            Some(fraction) => format!("{:3.0} %", fraction * 100.0),
            None => format!("{}", progress.progress),
        };
        let mut err = io::stderr().lock();
        // Progress that cannot be shown does not matter.
        let _ = match (is_terminal, progress.fraction()) {
            (false, _) => writeln!(err, "{}", format!("progress {amount} {message}").trim_end()),
            (true, None) => write!(err, "\r\x1b[K{amount} {message}"),
            (true, Some(fraction)) => {
                let done = (fraction.clamp(0.0, 1.0) * WIDTH as f64) as usize;
                write!(err, "\r\x1b[K[{}{}] {amount} {message}", "#".repeat(done), " ".repeat(WIDTH - done))
            }
        };
        let _ = err.flush();
        SHOWS_BAR.store(is_terminal, Ordering::Relaxed);
    }
}

/// Returns a callback that shows the status of a task, once for each change.
pub(crate) fn task() -> impl FnMut(TaskUpdate) {
    let mut last = String::new();
    move |TaskUpdate { task, .. }| {
        let message = task.message.as_deref().map(one_line).unwrap_or_default();
        let shown = format!("task {} {message}", task.status.as_str());
        if shown != last {
            end_progress();
            note(shown.trim_end());
            last = shown;
        }
    }
}

/// Characters of a bar.
const WIDTH: usize = 30;
