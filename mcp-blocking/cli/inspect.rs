//! `mcp inspect`: every message as it is sent and received, and commands on standard input.

use crate::call::{call_tool, code, show};
use crate::exit::NO_CONNECTION;
use crate::failure::Failure;
use crate::list;
use crate::login::Pages;
use crate::options::{Inspect, Kind};
use crate::output::{line, note, one_line, summary};
use crate::session;
use mcp_blocking::mcp_proto::redact::Url;
use mcp_blocking::{
    Client, Denial, Direction, MessageKind, Recorder, Redaction, Termination, WireMessage, ping, prompts, resources,
};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, IsTerminal};
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Characters of a message that are shown, unless all are.
const SHOWN: usize = 160;

/// Maximum number of requests without a response whose times are kept.
const OPEN: usize = 10_000;

const HELP: &str =
    "commands: tools, resources, templates, prompts, call NAME [ARGUMENTS], read URI, prompt NAME, ping, quit";

pub(crate) fn run(inspect: Inspect) -> Result<ExitCode, Failure> {
    let (server, _) = inspect.reach.server(inspect.words)?;
    let log = Log::new(inspect.full);
    let mut options = session::options(&inspect.reach, &server, Pages::OnTerminal)?.on_message(move |message| {
        log.show(message);
        Ok::<(), Denial>(())
    });
    if let Some(path) = &inspect.record {
        let file = File::create(path).map_err(|e| Failure::usage(format!("{}: {e}", path.display())))?;
        options = options.record(Recorder::to(Redaction::Redacted, file));
    }
    let client = session::connect(server, options)?;
    if let Some(info) = client.server() {
        note(format_args!("connected to {}", list::headline(&info)));
    }
    if io::stdin().is_terminal() {
        note(HELP);
    }
    let (mut command, mut ends) = (String::new(), ExitCode::SUCCESS);
    // Not under one lock: a command may cause a question of the server, which is answered here too.
    while io::stdin().read_line(&mut command)? > 0 {
        match obey(&client, std::mem::take(&mut command).trim()) {
            Ok(Obeyed::Well) => {}
            Ok(Obeyed::ToolError(code)) => ends = code,
            Ok(Obeyed::Quit) => break,
            Err(failure) => {
                note(format_args!("mcp: {failure}"));
                ends = failure.code();
            }
        }
    }
    let why = match client.close() {
        Termination::Requested => {
            note("closed");
            return Ok(ends);
        }
        Termination::Negotiation(why) => why.to_string(),
        Termination::Closed(why) => why.to_string(),
    };
    note(format_args!("closed: {why}"));
    Ok(ExitCode::from(NO_CONNECTION))
}

enum Obeyed {
    Well,
    /// The tool reports an error, with this exit code.
    ToolError(ExitCode),
    Quit,
}

/// Obeys a command.
fn obey(client: &Client, command: &str) -> Result<Obeyed, Failure> {
    let (verb, rest) = command.split_once(char::is_whitespace).unwrap_or((command, ""));
    let (name, arguments) = rest.trim().split_once(char::is_whitespace).unwrap_or((rest.trim(), ""));
    let kind = match verb {
        "tools" => Some(Kind::Tools),
        "resources" => Some(Kind::Resources),
        "templates" => Some(Kind::Templates),
        "prompts" => Some(Kind::Prompts),
        _ => None,
    };
    if let Some(kind) = kind {
        let fetched = list::fetch(client, Some(kind));
        list::show(None, &fetched)?;
        return fetched.failure.map_or(Ok(Obeyed::Well), Err);
    }
    match verb {
        "" => {}
        "call" => {
            let result = call_tool(client, name, words(arguments))?;
            show(&result)?;
            if result.is_error {
                return Ok(Obeyed::ToolError(code(&result)));
            }
        }
        "read" => {
            let request = Failure::of(format!("resources/read {}", Url(name)));
            for contents in client.call(resources::read(name)).map_err(request)?.contents {
                line(&summary(contents.as_text().unwrap_or("[binary]"), SHOWN))?;
            }
        }
        "prompt" => {
            let call = words(arguments)
                .iter()
                .filter_map(|word| word.split_once('='))
                .fold(prompts::get(name), |call, (key, value)| call.argument(key, value));
            let prompt = client.call(call).map_err(Failure::of(format!("prompts/get {name}")))?;
            line(&format!("{} messages", prompt.messages.len()))?;
        }
        "ping" => client.call(ping()).map_err(Failure::of("ping"))?,
        "quit" | "exit" => return Ok(Obeyed::Quit),
        _ => return Err(Failure::usage(format!("`{}` is no command; {HELP}", one_line(verb)))),
    }
    Ok(Obeyed::Well)
}

/// Returns the words of a line. A JSON object is one.
fn words(text: &str) -> Vec<String> {
    let text = text.trim();
    if text.starts_with('{') {
        return vec![text.to_owned()];
    }
    text.split_whitespace().map(str::to_owned).collect()
}

/// The messages of a client, as lines on standard error.
struct Log {
    begun: Instant,
    is_full: bool,
    /// The requests without a response: their methods and times.
    open: Mutex<BTreeMap<(bool, String), (String, Duration)>>,
}

impl Log {
    fn new(is_full: bool) -> Self {
        Self { begun: Instant::now(), is_full, open: Mutex::new(BTreeMap::new()) }
    }

    fn show(&self, message: &WireMessage<'_>) {
        note(format_args!("{}", self.describe(message, self.begun.elapsed())));
    }

    /// Returns the line of a message: time, direction, id, method, the time that a response took,
    /// and the message without secrets.
    fn describe(&self, message: &WireMessage<'_>, at: Duration) -> String {
        let is_out = message.direction() == Direction::Out;
        let arrow = if is_out { "-->" } else { "<--" };
        let id = message.id().map(ToString::to_string);
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let what = match (message.kind(), id) {
            (MessageKind::Request, Some(id)) => {
                let method = one_line(message.method().unwrap_or_default());
                let shown = format!("request {id} {method}");
                if open.len() < OPEN {
                    open.insert((is_out, id), (method, at));
                }
                shown
            }
            (MessageKind::Response | MessageKind::Error, Some(id)) => {
                let kind = if message.kind() == MessageKind::Error { "error" } else { "response" };
                match open.remove(&(!is_out, id.clone())) {
                    Some((method, sent)) => {
                        format!("{kind} {id} {method}, {:.1} ms", (at - sent).as_secs_f64() * 1000.0)
                    }
                    None => format!("{kind} {id}, to no request"),
                }
            }
            (MessageKind::Error, None) => "error without an id".to_owned(),
            _ => format!("notification {}", one_line(message.method().unwrap_or_default())),
        };
        let text = one_line(&message.text());
        let text = if self.is_full { text } else { summary(&text, SHOWN) };
        format!("{:9.3} {arrow} {what}\n              {text}", at.as_secs_f64())
    }
}
