//! `mcp doctor`: every way to reach a server, and what is wrong with it.

use crate::advice::Hints;
use crate::exit::FAULT;
use crate::failure::Failure;
use crate::list;
use crate::noise::Noise;
use crate::options::{Doctor, Reach};
use crate::output::{line, one_line};
use crate::session::{self, Delivery};
use crate::target::Server;
use mcp_blocking::mcp_proto::client::{HttpMode, Policy, Target};
use mcp_blocking::mcp_proto::error::DiagnosticKind;
use mcp_blocking::mcp_proto::exchange::Endpoint;
use mcp_blocking::mcp_proto::supervise::Catalogue;
use mcp_blocking::mcp_proto::version::Era;
use mcp_blocking::{Client, ClientEvent, ProtocolVersion, Stderr, Versions, ping};
use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Maximum time of each attempt.
const ATTEMPT: Duration = Duration::from_secs(15);

/// Maximum time of the attempt at HTTP+SSE on a server of Streamable HTTP. A server of HTTP+SSE sends
/// its first event at once; another one may keep the stream open without any.
const ENDPOINT: Duration = Duration::from_secs(2);

/// Number of lines of standard error that are shown.
const LAST_LINES: usize = 5;

/// What a server said beside the protocol.
struct Heard {
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
    let (server, _) = doctor.reach.server(doctor.words)?;
    let heard = Arc::new(Mutex::new(Heard::default()));
    line(&format!("server   {}", server.name))?;
    // A time that the user gives is not cut: the first start of a program may take long.
    let limit = if doctor.reach.connect_timeout.is_some() { Duration::MAX } else { ATTEMPT };
    let (client, took) = match attempt(server.clone(), &doctor.reach, &heard, limit) {
        Ok(connected) => connected,
        Err(failure) => {
            report(false, "connect", &failure.to_string())?;
            let hints = Hints { is_doctor: true, ..doctor.reach.hints() };
            failure.advice(&hints).iter().try_for_each(|advice| line(&format!("         {advice}")))?;
            said(&heard)?;
            if !is_final(&failure) {
                transports(&server, &doctor.reach)?;
                revisions(&server, &doctor.reach)?;
            }
            return Ok(failure.code());
        }
    };
    if let Some(info) = client.server() {
        report(true, "connect", &format!("{}, in {}", list::headline(&info), ms(took)))?;
    }
    let mut is_well = examine(&client)?;
    let began = Instant::now();
    client.close();
    drop(client);
    report(true, "close", &format!("in {}", ms(began.elapsed())))?;
    is_well &= said(&heard)?;
    transports(&server, &doctor.reach)?;
    revisions(&server, &doctor.reach)?;
    Ok(if is_well { ExitCode::SUCCESS } else { ExitCode::from(FAULT) })
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
            matches!(why, Closed::Refused | Closed::Unresolved | Closed::Unreachable(_) | Closed::Tls(_))
        }
        NegotiationCause::Http(http) => matches!(http.status, 401 | 403 | 407),
        _ => false,
    }
}

fn attempt(
    mut server: Server,
    reach: &Reach,
    heard: &Arc<Mutex<Heard>>,
    limit: Duration,
) -> Result<(Client, Duration), Failure> {
    server.config.connect_timeout = server.config.connect_timeout.min(limit);
    let (events, lines) = (Arc::clone(heard), Arc::clone(heard));
    let lock = |heard: &Arc<Mutex<Heard>>, hear: &mut dyn FnMut(&mut Heard)| {
        hear(&mut heard.lock().unwrap_or_else(PoisonError::into_inner));
    };
    let (is_program, delivery) = (server.is_program(), Delivery::begin());
    let options = session::options(reach, &server)?
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

/// Fetches what the server offers, and checks it. Returns whether it has no fault.
fn examine(client: &Client) -> Result<bool, Failure> {
    let began = Instant::now();
    let mut is_well = match client.call(ping()) {
        Ok(()) => report(true, "ping", &format!("in {}", ms(began.elapsed())))?,
        Err(e) => report(false, "ping", &e.to_string())?,
    };
    let began = Instant::now();
    let list::Fetched { catalogue, missing, failure, .. } = list::fetch(client, None);
    let missing = match missing.is_empty() {
        true => String::new(),
        false => format!(", without {}", missing.join(", ")),
    };
    report(true, "lists", &format!("{}{missing}, in {}", counts(&catalogue), ms(began.elapsed())))?;
    if let Some(failure) = failure {
        is_well &= report(false, "list", &failure.to_string())?;
    }
    for tool in catalogue.tools.as_deref().unwrap_or_default() {
        if let Err(bad) = tool.check() {
            is_well &= report(false, "tool", &format!("{}: {}", one_line(&bad.name), one_line(&bad.why)))?;
        }
    }
    for resource in catalogue.resources.as_deref().unwrap_or_default() {
        if let Err(bad) = resource.check() {
            is_well &= report(false, "resource", &format!("{}: {}", one_line(&bad.uri), one_line(&bad.why)))?;
        }
    }
    Ok(is_well)
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
fn transports(server: &Server, reach: &Reach) -> Result<(), Failure> {
    if !matches!(server.config.target, Target::Http(_)) {
        return Ok(());
    }
    let of = |mode| {
        let mut server = server.clone();
        server.config.http_mode = mode;
        server
    };
    let limit = match probe("Streamable HTTP", of(HttpMode::Streamable), reach, ATTEMPT)? {
        Some(took) => ENDPOINT.max(4 * took),
        None => ATTEMPT,
    };
    probe("HTTP+SSE", of(HttpMode::Sse), reach, limit).map(drop)
}

/// Tries each revision by itself.
fn revisions(server: &Server, reach: &Reach) -> Result<(), Failure> {
    let has_own_connection = !matches!(server.config.target, Target::Duplex(Endpoint::Given));
    for version in ProtocolVersion::ALL.into_iter().rev().filter(|_| has_own_connection) {
        let mut server = server.clone();
        server.config.versions = Versions::new([version]);
        server.config.policy = if version.era() == Era::Modern { Policy::Modern } else { Policy::Legacy };
        probe(version.as_str(), server, reach, ATTEMPT)?;
    }
    Ok(())
}

/// Tries one way to connect. Returns the time that it took, if it works.
fn probe(name: &str, server: Server, reach: &Reach, limit: Duration) -> Result<Option<Duration>, Failure> {
    match attempt(server, reach, &Arc::default(), limit) {
        Ok((client, took)) => {
            client.close();
            report(true, name, &format!("in {}", ms(took)))?;
            Ok(Some(took))
        }
        // Most servers speak only some of them.
        Err(failure) => {
            line(&format!("no    {name:<16} {failure}"))?;
            Ok(None)
        }
    }
}

/// Prints what the server said beside the protocol. Returns whether it kept to the protocol.
fn said(heard: &Mutex<Heard>) -> Result<bool, Failure> {
    Delivery::wait_for_all();
    let heard = heard.lock().unwrap_or_else(PoisonError::into_inner);
    let mut is_well = true;
    for text in heard.noise.explain() {
        is_well &= report(false, "protocol", &text)?;
    }
    for (kind, (text, count)) in &heard.diagnostics {
        // The client follows a redirect within the origin: the URL works as it is.
        let is_fault = *kind != DiagnosticKind::Redirected;
        is_well &= !is_fault;
        report(
            !is_fault,
            if is_fault { "protocol" } else { "redirect" },
            &format!("{text}{}", if *count > 1 { format!(" ({count} times)") } else { String::new() }),
        )?;
    }
    if !heard.stderr.is_empty() {
        line("standard error ends with")?;
        heard.stderr.iter().try_for_each(|text| line(&format!("         {text}")))?;
    }
    Ok(is_well)
}

/// Prints a finding. Returns whether it is a good one.
fn report(is_ok: bool, what: &str, text: &str) -> Result<bool, Failure> {
    line(&format!("{}  {what:<16} {text}", if is_ok { "ok  " } else { "FAIL" }))?;
    Ok(is_ok)
}

fn ms(time: Duration) -> String {
    format!("{} ms", time.as_millis())
}
