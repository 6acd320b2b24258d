//! What `mcp doctor` finds out about a login: the documents that lead to the authorization server,
//! and what that offers. It registers nothing, and shows no token.

use crate::advice;
use crate::doctor::{ATTEMPT, Report, Verdict, attempt};
use crate::failure::Failure;
use crate::login::{self, NAME, Pages};
use crate::options::Reach;
use crate::output::one_line;
use crate::session;
use crate::target::Server;
use crate::wording;
use mcp_blocking::auth::{Alg, AuthConfig, Scopes, Survey, SurveyedIssuer};
use mcp_blocking::mcp_proto::ClientConfig;
use mcp_blocking::mcp_proto::client::HttpTarget;
use mcp_blocking::mcp_proto::error::{NegotiationCause, TriedUrl};
use mcp_blocking::{ClientOptions, HttpError};
use std::net::{IpAddr, ToSocketAddrs};
use std::sync::Arc;

/// Looks for the authorization server of a server, and reports what it finds.
pub(crate) fn run(server: &Server, reach: &Reach, report: &mut Report) -> Result<(), Failure> {
    let url = login::key(reach, server).map(|key| key.server).unwrap_or_default();
    let Ok(target) = HttpTarget::parse(&url) else { return Ok(()) };
    let challenge = challenge(server, reach);
    match challenge.as_deref() {
        // It lets clients in, and may still demand a login for a tool.
        None => {}
        Some([]) => report.add(Verdict::No, "challenge", "none: the server names no authorization server by itself")?,
        Some(fields) => report.add(Verdict::Ok, "challenge", &one_line(&fields.join(", ")))?,
    }
    let mut config = AuthConfig::new(NAME);
    if let Some(login) = login::identified(server, reach)? {
        drop(login.config(|of_login| config = of_login.clone()));
    }
    let mut survey = Survey::new(config, target.clone(), &challenge.unwrap_or_default(), address(&target));
    let fetcher = Server { name: server.name.clone(), config: ClientConfig::fetcher(), login: None };
    let client = session::connect(fetcher, ClientOptions::new())?;
    while let Some(mut request) = survey.next_request() {
        if request.url.origin == target.origin {
            // As a login does: a proxy before the server may demand them.
            server.config.headers.iter().for_each(|(name, value)| request.headers.push(name, value));
        }
        survey.answer(&client.fetch(request).map(Box::new));
    }
    client.close();
    for TriedUrl { url, why, .. } in survey.tried() {
        match &*one_line(why) {
            "" => report.add(Verdict::Ok, "document", &one_line(url))?,
            why => report.add(Verdict::No, "document", &format!("{}: {why}", one_line(url)))?,
        }
    }
    match survey.end() {
        Some(Ok(found)) => offers(found, report),
        Some(Err(why)) => {
            report.add(Verdict::Fail, "issuer", &why.to_string())?;
            report.advise(advice::of_login(why, &reach.hints(&[url])))
        }
        None => Ok(()),
    }
}

/// Reports what an authorization server offers.
fn offers(found: &SurveyedIssuer, report: &mut Report) -> Result<(), Failure> {
    let issuer = one_line(&found.issuer);
    match found.is_default {
        false => report.add(Verdict::Ok, "issuer", &issuer)?,
        true => report.add(Verdict::No, "issuer", &format!("{issuer} has no metadata: as 2025-03-26 permits"))?,
    }
    report.add(Verdict::Ok, "resource", &one_line(&found.resource))?;
    let ways = [(found.registers, "dynamic"), (found.reads_documents, "client metadata documents")];
    let ways: Vec<&str> = ways.iter().filter(|(has, _)| *has).map(|(_, way)| *way).collect();
    match ways.is_empty() {
        true => report.add(Verdict::No, "registration", "none: it needs a client of yours (--client-id)")?,
        false => report.add(Verdict::Ok, "registration", &ways.join(", "))?,
    }
    let list = |names: &[String], none: &str| match names.is_empty() {
        true => none.to_owned(),
        false => one_line(&names.join(", ")),
    };
    report.add(Verdict::Ok, "authentication", &list(&found.client_auth, "it lists none"))?;
    report.add(Verdict::Ok, "PKCE", &list(&found.pkce, "it lists none"))?;
    let device = if found.has_device_grant { (Verdict::Ok, "offered") } else { (Verdict::No, "not offered") };
    report.add(device.0, "device login", device.1)?;
    let wants = if found.wants_proofs { "the server asks for it" } else { "the server does not ask for it" };
    match found.proof_algs.is_empty() {
        true => report.add(Verdict::No, "DPoP", &format!("not offered; {wants}"))?,
        false => {
            let algs: Vec<&str> = found.proof_algs.iter().copied().map(Alg::as_str).collect();
            report.add(Verdict::Ok, "DPoP", &format!("{}; {wants}", algs.join(", ")))?;
        }
    }
    let scopes = |scopes: &Scopes| if scopes.is_empty() { "none listed".to_owned() } else { scopes.to_string() };
    let listed = format!("{}; at the issuer: {}", scopes(&found.scopes), scopes(&found.issuer_scopes));
    report.add(Verdict::Ok, "scopes", &listed)?;
    found.deviations.iter().try_for_each(|text| report.add(Verdict::Fail, "protocol", &one_line(text)))
}

/// Returns the fields with which the server refuses a client without a login. `None`: it accepts
/// one.
fn challenge(server: &Server, reach: &Reach) -> Option<Vec<String>> {
    let refused = match attempt(server.clone(), (reach, Pages::Off), &Arc::default(), ATTEMPT) {
        Ok((client, _)) => {
            client.close();
            None
        }
        Err(Failure::Connect(error)) => match wording::cause(&error) {
            Some(NegotiationCause::Http(http)) => Some((**http).clone()),
            _ => None,
        },
        Err(_) => None,
    };
    refused.filter(|http: &HttpError| matches!(http.status, 401 | 403)).map(|http| http.auth.www_authenticate)
}

/// Returns the address of a host.
fn address(target: &HttpTarget) -> Option<IpAddr> {
    let mut addresses = (&*target.origin.host, target.origin.port).to_socket_addrs().ok()?;
    addresses.next().map(|address| address.ip())
}
