//! `mcp doctor`: every way to reach a server, and what is wrong with it.

use crate::advice::Hints;
use crate::exit::FAULT;
use crate::failure::Failure;
use crate::list;
use crate::login::{self, Held, Pages};
use crate::noise::Noise;
use crate::options::{Doctor, Reach};
use crate::output::{self, Colour, json, line, one_line};
use crate::session::{self, Delivery};
use crate::survey;
use crate::target::Server;
use mcp_blocking::mcp_proto::client::{HttpMode, Policy, Target};
use mcp_blocking::mcp_proto::error::DiagnosticKind;
use mcp_blocking::mcp_proto::exchange::Endpoint;
use mcp_blocking::mcp_proto::version::Era;
use mcp_blocking::mcp_supervisor::Catalogue;
use mcp_blocking::{Client, ClientEvent, Object, ProtocolVersion, Stderr, Versions, ping};
use std::collections::BTreeMap;
use std::io;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Maximum time of each attempt.
pub(crate) const ATTEMPT: Duration = Duration::from_secs(15);

/// Maximum time of the attempt at HTTP+SSE on a server of Streamable HTTP. A server of HTTP+SSE
/// sends its first event at once; another one may keep the stream open without any.
const ENDPOINT: Duration = Duration::from_secs(2);

/// Number of lines of standard error that are shown.
const LAST_LINES: usize = 5;

/// What a server said beside the protocol.
pub(crate) struct Heard {
    /// The first diagnostic of each kind, and the number of all.
    diagnostics: BTreeMap<DiagnosticKind, (String, usize)>,
    noise: Noise,
    stderr: Vec<String>,
}

impl Default for Heard {
    fn default() -> Self {
        Self { diagnostics: BTreeMap::new(), noise: Noise::new(), stderr: Vec::new() }
    }
}

pub(crate) fn run(doctor: Doctor) -> Result<ExitCode, Failure> {
    let Doctor { words, format, reach } = doctor;
    let hints = Hints { is_doctor: true, ..reach.hints(&words) };
    let (server, _) = reach.server(words)?;
    let heard = Arc::new(Mutex::new(Heard::default()));
    let mut report = Report::begin(&server.name, format.json)?;
    // A time that the user gives is not cut: the first start of a program may take long.
    let limit = if reach.connect_timeout.is_some() { Duration::MAX } else { ATTEMPT };
    let (client, took) = match attempt(server.clone(), (&reach, Pages::Never), &heard, limit) {
        Ok(connected) => connected,
        Err(failure) => {
            report.add(Verdict::Fail, "connect", &failure.to_string())?;
            report.advise(failure.advice(&hints))?;
            let has_logins = login_of(&server, &reach, &mut report)?;
            if has_logins == Some(true) || has_logins.is_some() && failure.login().is_some() {
                survey::run(&server, &reach, &mut report)?;
            }
            said(&heard, &mut report)?;
            if !is_final(&failure) {
                transports(&server, &reach, &mut report)?;
                revisions(&server, &reach, &mut report)?;
            }
            return report.end(failure.exit_code());
        }
    };
    if let Some(info) = client.server() {
        report.add(Verdict::Ok, "connect", &format!("{}, in {}", list::headline(&info), ms(took)))?;
    }
    let has_logins = login_of(&server, &reach, &mut report)?;
    examine(&client, &mut report)?;
    let began = Instant::now();
    client.close();
    drop(client);
    report.add(Verdict::Ok, "close", &format!("in {}", ms(began.elapsed())))?;
    said(&heard, &mut report)?;
    if has_logins == Some(true) {
        survey::run(&server, &reach, &mut report)?;
    }
    transports(&server, &reach, &mut report)?;
    revisions(&server, &reach, &mut report)?;
    let code = if report.is_well { 0 } else { FAULT };
    report.end(code)
}

/// Returns whether another transport or revision cannot help: nothing runs there.
fn is_final(failure: &Failure) -> bool {
    use mcp_blocking::ConnectError;
    use mcp_blocking::mcp_proto::error::NegotiationCause;
    use mcp_blocking::mcp_proto::exchange::Closed;
    let Failure::Connect(error) = failure else { return false };
    let ConnectError::Negotiation(error) = &**error else { return false };
    match &error.cause {
        NegotiationCause::Closed(why) => {
            let is_login = matches!(why, Closed::Unauthorized(_));
            is_login || matches!(why, Closed::Refused | Closed::Unresolved | Closed::Unreachable(_) | Closed::Tls(_))
        }
        NegotiationCause::Http(http) => matches!(http.status, 401 | 403 | 407),
        _ => false,
    }
}

/// Connects, with a login that is stored as `pages` says.
pub(crate) fn attempt(
    mut server: Server,
    (reach, pages): (&Reach, Pages),
    heard: &Arc<Mutex<Heard>>,
    limit: Duration,
) -> Result<(Client, Duration), Failure> {
    server.config.connect_timeout = server.config.connect_timeout.min(limit);
    let (events, lines) = (Arc::clone(heard), Arc::clone(heard));
    let lock = |heard: &Arc<Mutex<Heard>>, hear: &mut dyn FnMut(&mut Heard)| {
        hear(&mut heard.lock().unwrap_or_else(PoisonError::into_inner));
    };
    let (is_program, delivery) = (server.is_program(), Delivery::begin());
    let options = session::options(reach, &server, pages)?
        .on_message(list::bounded())
        .on_event(move |event| {
            let _until_dropped = &delivery;
            if let ClientEvent::Diagnostic(diagnostic) = event
                && !session::is_fallback(&diagnostic)
            {
                lock(&events, &mut |heard| {
                    if is_program && Noise::is_about(&diagnostic) {
                        heard.noise.add(&diagnostic);
                        return;
                    }
                    let text = diagnostic.to_string();
                    heard.diagnostics.entry(diagnostic.kind).or_insert((text, 0)).1 += 1;
                });
            }
        })
        .stderr(Stderr::Lines(Arc::new(move |text: &str| {
            lock(&lines, &mut |heard| {
                heard.stderr.push(one_line(text));
                if heard.stderr.len() > LAST_LINES {
                    heard.stderr.remove(0);
                }
            });
        })));
    let began = Instant::now();
    Ok((session::connect(server, options)?, began.elapsed()))
}

/// Reports the login that is stored for a URL, without its tokens. Returns whether there is one,
/// and `None` if there can be none.
fn login_of(server: &Server, reach: &Reach, report: &mut Report) -> Result<Option<bool>, Failure> {
    const LOGIN: &str = "login";
    match login::held(reach, server) {
        None => return Ok(None),
        Some(Held::Off) => report.add(Verdict::No, LOGIN, "off: the requests have a field Authorization")?,
        Some(Held::Fault(why)) => report.add(Verdict::Fail, LOGIN, &why.to_string())?,
        Some(Held::Logins(logins)) if logins.is_empty() => {
            report.add(Verdict::No, LOGIN, "none is stored")?;
            return Ok(Some(false));
        }
        Some(Held::Logins(logins)) => {
            logins.iter().try_for_each(|login| report.add(Verdict::Ok, LOGIN, login))?;
            return Ok(Some(true));
        }
    }
    Ok(None)
}

/// Fetches what the server offers, and checks it.
fn examine(client: &Client, report: &mut Report) -> Result<(), Failure> {
    let began = Instant::now();
    match client.call(ping()) {
        Ok(()) => report.add(Verdict::Ok, "ping", &format!("in {}", ms(began.elapsed())))?,
        Err(e) => report.add(Verdict::Fail, "ping", &e.to_string())?,
    }
    let began = Instant::now();
    let list::Fetched { catalogue, missing, failure, .. } = list::fetch(client, None);
    let missing = match missing.is_empty() {
        true => String::new(),
        false => format!(", without {}", missing.join(", ")),
    };
    report.add(Verdict::Ok, "lists", &format!("{}{missing}, in {}", counts(&catalogue), ms(began.elapsed())))?;
    if let Some(failure) = failure {
        report.add(Verdict::Fail, "list", &failure.to_string())?;
    }
    for tool in catalogue.tools.as_deref().unwrap_or_default() {
        if let Err(bad) = tool.check() {
            report.add(Verdict::Fail, "tool", &format!("{}: {}", one_line(&bad.name), one_line(&bad.why)))?;
        }
    }
    for resource in catalogue.resources.as_deref().unwrap_or_default() {
        if let Err(bad) = resource.check() {
            report.add(Verdict::Fail, "resource", &format!("{}: {}", one_line(&bad.uri), one_line(&bad.why)))?;
        }
    }
    Ok(())
}

fn counts(catalogue: &Catalogue) -> String {
    let counts = [
        ("tools", catalogue.tools.as_ref().map(|list| list.len())),
        ("resources", catalogue.resources.as_ref().map(|list| list.len())),
        ("templates", catalogue.resource_templates.as_ref().map(|list| list.len())),
        ("prompts", catalogue.prompts.as_ref().map(|list| list.len())),
    ];
    let counts: Vec<_> = counts.iter().filter_map(|(name, count)| Some(format!("{name}: {}", (*count)?))).collect();
    if counts.is_empty() { "none declared".to_owned() } else { counts.join(", ") }
}

/// Tries each transport of HTTP by itself.
fn transports(server: &Server, reach: &Reach, report: &mut Report) -> Result<(), Failure> {
    if !matches!(server.config.target, Target::Http(_)) {
        return Ok(());
    }
    let of = |mode| {
        let mut server = server.clone();
        server.config.http_mode = mode;
        server
    };
    let limit = match probe("Streamable HTTP", of(HttpMode::Streamable), (reach, ATTEMPT), report)? {
        Some(took) => ENDPOINT.max(4 * took),
        None => ATTEMPT,
    };
    probe("HTTP+SSE", of(HttpMode::Sse), (reach, limit), report).map(drop)
}

/// Tries each revision by itself.
fn revisions(server: &Server, reach: &Reach, report: &mut Report) -> Result<(), Failure> {
    let has_own_connection = !matches!(server.config.target, Target::Duplex(Endpoint::Given));
    for version in ProtocolVersion::ALL.into_iter().rev().filter(|_| has_own_connection) {
        let mut server = server.clone();
        server.config.versions = Versions::new([version]);
        server.config.policy = if version.era() == Era::Modern { Policy::Modern } else { Policy::Legacy };
        probe(version.as_str(), server, (reach, ATTEMPT), report)?;
    }
    Ok(())
}

/// Tries one way to connect. Returns the time that it took, if it works.
fn probe(
    name: &str,
    server: Server,
    (reach, limit): (&Reach, Duration),
    report: &mut Report,
) -> Result<Option<Duration>, Failure> {
    match attempt(server, (reach, Pages::Never), &Arc::default(), limit) {
        Ok((client, took)) => {
            client.close();
            report.add(Verdict::Ok, name, &format!("in {}", ms(took)))?;
            Ok(Some(took))
        }
        // Most servers speak only some of them.
        Err(failure) => {
            report.add(Verdict::No, name, &failure.to_string())?;
            Ok(None)
        }
    }
}

/// Reports what the server said beside the protocol.
fn said(heard: &Mutex<Heard>, report: &mut Report) -> Result<(), Failure> {
    Delivery::wait_for_all();
    let heard = heard.lock().unwrap_or_else(PoisonError::into_inner);
    for text in heard.noise.explain() {
        report.add(Verdict::Fail, "protocol", &text)?;
    }
    for (kind, (text, count)) in &heard.diagnostics {
        // The client follows a redirect within the origin: the URL works as it is.
        let (verdict, what) = match kind {
            DiagnosticKind::Redirected => (Verdict::Ok, "redirect"),
            _ => (Verdict::Fail, "protocol"),
        };
        let times = if *count > 1 { format!(" ({count} times)") } else { String::new() };
        report.add(verdict, what, &format!("{text}{times}"))?;
    }
    report.stderr(&heard.stderr)
}

/// What a finding says of the server.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Ok,
    /// It does not have this way to connect, which is no fault.
    No,
    Fail,
}

/// The findings: printed one by one, or as one JSON object in the end.
pub(crate) struct Report {
    is_json: bool,
    server: String,
    findings: Vec<Finding>,
    stderr: Vec<String>,
    /// No finding is a fault.
    is_well: bool,
}

struct Finding {
    verdict: Verdict,
    what: String,
    text: String,
    advice: Vec<String>,
}

impl Report {
    fn begin(server: &str, is_json: bool) -> Result<Self, Failure> {
        if !is_json {
            line(&format!("server   {server}"))?;
        }
        Ok(Self { is_json, server: server.to_owned(), findings: Vec::new(), stderr: Vec::new(), is_well: true })
    }

    pub(crate) fn add(&mut self, verdict: Verdict, what: &str, text: &str) -> Result<(), Failure> {
        self.is_well &= verdict != Verdict::Fail;
        if self.is_json {
            let (what, text) = (what.to_owned(), text.to_owned());
            self.findings.push(Finding { verdict, what, text, advice: Vec::new() });
            return Ok(());
        }
        let (word, colour) = match verdict {
            Verdict::Ok => ("ok  ", Colour::Green),
            Verdict::No => ("no  ", Colour::Bold),
            Verdict::Fail => ("FAIL", Colour::Red),
        };
        Ok(line(&format!("{}  {what:<16} {text}", output::painted(word, colour, &io::stdout())))?)
    }

    /// Adds what to do about the last finding.
    pub(crate) fn advise(&mut self, advice: Vec<String>) -> Result<(), Failure> {
        match self.findings.last_mut() {
            Some(finding) => finding.advice = advice,
            None => advice.iter().try_for_each(|advice| line(&format!("         {advice}")))?,
        }
        Ok(())
    }

    fn stderr(&mut self, lines: &[String]) -> Result<(), Failure> {
        if self.is_json {
            self.stderr = lines.to_vec();
        } else if !lines.is_empty() {
            line("standard error ends with")?;
            lines.iter().try_for_each(|text| line(&format!("         {text}")))?;
        }
        Ok(())
    }

    fn end(self, code: u8) -> Result<ExitCode, Failure> {
        if self.is_json {
            let findings = self.findings.iter().map(|Finding { verdict, what, text, advice }| {
                let verdict = match verdict {
                    Verdict::Ok => "ok",
                    Verdict::No => "no",
                    Verdict::Fail => "fail",
                };
                Object::new()
                    .with("verdict", verdict)
                    .with("what", what)
                    .with("text", text)
                    .with("advice", advice.clone())
            });
            let findings: Vec<Object> = findings.collect();
            let report = Object::new().with("server", &self.server).with("exitCode", i64::from(code));
            json(report.with("findings", findings).with("stderr", self.stderr))?;
        }
        Ok(ExitCode::from(code))
    }
}

fn ms(time: Duration) -> String {
    format!("{} ms", time.as_millis())
}
