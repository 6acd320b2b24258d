//! Questions on the terminal. They are written to standard error, so that standard output has only
//! results.

use crate::exit::INTERRUPTED;
use crate::output::{note, one_line, printable};
use mcp_blocking::mcp_supervisor::config_file::{InputKind, InputPrompt};
use mcp_blocking::{ElicitResult, Field, FieldKind, Form, Object, RawJson, UrlRequest};
use std::io::{self, BufRead, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// One question at a time: a server may ask several.
static TERMINAL: Mutex<()> = Mutex::new(());

/// Returns whether there is somebody to ask.
pub(crate) fn can_ask() -> bool {
    io::stdin().is_terminal()
}

/// Returns the next line of standard input, also of one that is no terminal. `None` at its end.
pub(crate) fn answer() -> Option<String> {
    line("")
}

fn prompt(question: &str) {
    let mut err = io::stderr().lock();
    let _ = write!(err, "{question}").and_then(|()| err.flush());
}

/// Asks for one line. `None` at the end of the input.
fn line(question: &str) -> Option<String> {
    prompt(question);
    let mut answer = String::new();
    match io::stdin().lock().read_line(&mut answer) {
        Ok(1..) => Some(answer.trim_end_matches(['\n', '\r']).to_owned()),
        Ok(0) | Err(_) => None,
    }
}

/// Whether a password is read, which the terminal does not show.
static READS_PASSWORD: AtomicBool = AtomicBool::new(false);

/// Returns whether Ctrl-C belongs to a question, which restores the terminal and then exits.
pub(crate) fn takes_interrupts() -> bool {
    READS_PASSWORD.load(Ordering::SeqCst)
}

/// Asks for one line, which the terminal does not show. `None` without a terminal of this process,
/// and at the end of the input.
fn secret(question: &str) -> Option<String> {
    prompt(question);
    READS_PASSWORD.store(true, Ordering::SeqCst);
    let read = rpassword::read_password();
    READS_PASSWORD.store(false, Ordering::SeqCst);
    match read {
        Err(e) if e.kind() == io::ErrorKind::Interrupted => std::process::exit(INTERRUPTED),
        read => read.ok(),
    }
}

/// Asks a question, where only `y` is a yes.
pub(crate) fn confirms(question: &str) -> bool {
    let _terminal = TERMINAL.lock().unwrap_or_else(PoisonError::into_inner);
    can_ask() && line(&format!("{question} [y/N] ")).is_some_and(|answer| answer.trim().eq_ignore_ascii_case("y"))
}

/// Asks for a value of a configuration file.
pub(crate) fn input(prompt: &InputPrompt) -> Option<String> {
    let _terminal = TERMINAL.lock().unwrap_or_else(PoisonError::into_inner);
    if !can_ask() {
        return prompt.default.clone();
    }
    let what = printable(prompt.description.as_deref().unwrap_or(&prompt.id));
    let options = match &prompt.kind {
        InputKind::Pick(options) => {
            format!(" ({})", options.iter().map(|option| one_line(option)).collect::<Vec<_>>().join(", "))
        }
        _ => String::new(),
    };
    let question = format!("{what}{options}: ");
    let answer = if prompt.is_password { secret(&question)? } else { line(&question)? };
    if answer.is_empty() { prompt.default.clone().or(Some(answer)) } else { Some(answer) }
}

/// Asks the user to fill in a form of a server. Without a terminal it is dismissed.
pub(crate) fn form(form: &Form) -> ElicitResult {
    let _terminal = TERMINAL.lock().unwrap_or_else(PoisonError::into_inner);
    let Ok(fields) = form.fields() else { return ElicitResult::Cancel };
    note(format_args!("\nThe server asks: {}", printable(&form.message)));
    if !can_ask() {
        note("Standard input is no terminal: the question is dismissed.");
        return ElicitResult::Cancel;
    }
    note("(! declines, an empty line takes the default, the end of the input dismisses)");
    let mut content = Object::new();
    for field in &fields {
        loop {
            let Some(answer) = line(&label(field)) else { return ElicitResult::Cancel };
            if answer.trim() == "!" {
                return ElicitResult::Decline;
            }
            match value(field, &answer) {
                Ok(Some(value)) => content.set(&field.name, value),
                Ok(None) => {}
                Err(why) => {
                    note(format_args!("  {why}"));
                    continue;
                }
            }
            break;
        }
    }
    match form.check(&content) {
        Ok(()) => ElicitResult::accept(&form.fill(content)),
        Err(why) => {
            note(format_args!("The answers do not fit the form: {why}"));
            ElicitResult::Cancel
        }
    }
}

fn label(field: &Field) -> String {
    let mut label = one_line(field.title.as_deref().unwrap_or(&field.name));
    let options = match &field.kind {
        FieldKind::Boolean => "yes/no".to_owned(),
        FieldKind::Choice(options) => {
            options.iter().map(|option| one_line(&option.value)).collect::<Vec<_>>().join(", ")
        }
        FieldKind::Choices { options, .. } => {
            let options: Vec<_> = options.iter().map(|option| one_line(&option.value)).collect();
            format!("several of, with commas: {}", options.join(", "))
        }
        FieldKind::Integer { .. } => "an integer".to_owned(),
        FieldKind::Number { .. } => "a number".to_owned(),
        FieldKind::Text { format: Some(format), .. } => one_line(format),
        _ => String::new(),
    };
    if let Some(description) = &field.description {
        label = format!("{label}, {}", one_line(description));
    }
    if !options.is_empty() {
        label = format!("{label} ({options})");
    }
    match &field.default {
        Some(default) => format!("{label} [{}]: ", one_line(default.as_str())),
        None if field.required => format!("{label}: "),
        None => format!("{label} (optional): "),
    }
}

/// Returns the value of an answer. `None` leaves the field out.
fn value(field: &Field, answer: &str) -> Result<Option<RawJson>, String> {
    if answer.is_empty() {
        return match (&field.default, field.required, &field.kind) {
            (Some(default), ..) => Ok(Some(default.clone())),
            (None, false, _) => Ok(None),
            (None, true, FieldKind::Text { min: None | Some(0), .. }) => Ok(Some(text(""))),
            (None, true, _) => Err("an answer is required".to_owned()),
        };
    }
    let json = |expected: &str| RawJson::parse(answer.trim().to_owned()).map_err(|_| format!("{expected} is required"));
    match &field.kind {
        FieldKind::Boolean => match answer.trim().to_lowercase().as_str() {
            "y" | "yes" | "true" => Ok(Some(true.into())),
            "n" | "no" | "false" => Ok(Some(false.into())),
            _ => Err("yes or no is required".to_owned()),
        },
        FieldKind::Integer { .. } => {
            answer.trim().parse::<i64>().map(|number| Some(number.into())).map_err(|_| "an integer is required".into())
        }
        FieldKind::Number { .. } => match answer.trim().parse::<f64>() {
            Ok(number) if number.is_finite() => json("a number").map(Some),
            _ => Err("a number is required".to_owned()),
        },
        FieldKind::Choice(options) if options.iter().all(|option| option.value != answer) => {
            Err("one of the options is required".to_owned())
        }
        FieldKind::Choices { .. } => {
            let chosen: Vec<&str> = answer.split(',').map(str::trim).filter(|one| !one.is_empty()).collect();
            RawJson::encode(&chosen).map(Some).map_err(|e| e.to_string())
        }
        FieldKind::Other(_) => Ok(Some(RawJson::parse(answer.to_owned()).unwrap_or_else(|_| text(answer)))),
        _ => Ok(Some(text(answer))),
    }
}

fn text(text: &str) -> RawJson {
    text.into()
}

/// Asks whether the user opens a web page.
pub(crate) fn page(request: &UrlRequest) -> ElicitResult {
    let Some(host) = request.host() else { return ElicitResult::Decline };
    note(format_args!("\nThe server asks you to open a web page: {}", printable(&request.message)));
    note(format_args!("  host {}\n  {}", one_line(host), one_line(&request.url)));
    if !can_ask() {
        note("Standard input is no terminal: the question is dismissed.");
        return ElicitResult::Cancel;
    }
    if confirms("Open it in a browser yourself. Continue?") {
        ElicitResult::Accept(Object::new())
    } else {
        ElicitResult::Decline
    }
}
