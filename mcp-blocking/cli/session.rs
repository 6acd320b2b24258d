//! A connected client, whose server can ask on the terminal.

use crate::ask;
use crate::exit::INTERRUPTED;
use crate::failure::Failure;
use crate::options::Reach;
use crate::output::{note, one_line, printable};
use crate::target::Server;
use mcp_blocking::mcp_proto::error::{Diagnostic, DiagnosticKind};
use mcp_blocking::{Client, ClientEvent, ClientOptions, Closer, Progress, Root, Stderr, Target, connecting};
use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

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

/// Returns the options of a client that asks on the terminal, and shows what the server says.
pub(crate) fn options(reach: &Reach) -> Result<ClientOptions, Failure> {
    let mut options = ClientOptions::new().on_elicit(|form| ask::form(&form)).on_elicit_url(|page| ask::page(&page));
    if !reach.roots.is_empty() {
        let roots: Result<Vec<Root>, Failure> = reach.roots.iter().map(|folder| root(folder)).collect();
        options = options.roots(roots?);
    }
    if reach.quiet {
        return Ok(options.stderr(Stderr::Discard));
    }
    // By lines, so that an error never begins in the middle of one.
    let options = options.stderr(Stderr::Lines(Arc::new(|text: &str| note(printable(text)))));
    Ok(options.on_event(|event| match event {
        ClientEvent::Log { message, .. } => {
            let text: Option<String> = message.data.decode().ok();
            let text = text.unwrap_or_else(|| message.data.as_str().to_owned());
            note(format_args!("[{}] {}", message.level.as_str(), printable(&text)));
        }
        // Most servers speak an older revision only.
        ClientEvent::Diagnostic(diagnostic) if is_fallback(&diagnostic) => {}
        ClientEvent::Diagnostic(diagnostic) => note(format_args!("[mcp] {diagnostic}")),
        _ => {}
    }))
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

/// Connects.
pub(crate) fn connect(server: Server, options: ClientOptions) -> Result<Client, Failure> {
    let connecting = connecting(Target::new(server.config), options)?;
    *closer() = Some(connecting.closer());
    Ok(connecting.wait()?)
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

/// Characters of a bar.
const WIDTH: usize = 30;
