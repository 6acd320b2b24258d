//! The steps of a login: the listener, the registration, the page, its answer, and the code.

use super::Flow;
use super::run::{Found, Goal, Page, Stage};
use crate::auth::config::{LoopbackHost, Port, Redirect};
use crate::auth::grant::Grant;
use crate::auth::page::{self, Answer, PageRequest};
use crate::auth::pkce::ProofKey;
use crate::auth::policy;
use crate::auth::record::{ClientSource, Entry, RegisteredClient, Tokens, Version};
use crate::auth::registration::{self, Choice};
use crate::auth::scopes::Scopes;
use crate::auth::secret::Secret;
use crate::auth::step::{AuthReport, Browse, Listen, Output, PageResult, Purpose, SaveFault, StepId, StoreFault};
use crate::auth::token::{self, NewTokens, TokenAnswer};
use crate::error::{AuthError, Problem};
use crate::fetch::{FetchError, FetchRequest, FetchResponse, HttpTarget};
use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use core::time::Duration;

/// Maximum number of registrations that one login tries.
const MAX_REGISTRATIONS: u8 = 3;
/// The port of a redirect URI if nothing listens there and none is configured: the user gives the
/// URL by hand.
const NO_LISTENER_PORT: u16 = 53_682;

impl Flow {
    /// The issuer is known: the redirect URI comes before the registration.
    pub(super) fn begin_login_at_issuer(&mut self) {
        let Some(found) = self.run.as_ref().and_then(|run| run.found.clone()) else { return };
        // The user must not log in for tokens that are not used.
        if let Err(why) = self.new_key(&found) {
            return self.fail(why);
        }
        let stored = self.entry_at_issuer().map(|entry| entry.client.clone());
        let choice = registration::choose(&self.env.config, &found.issuer, stored.as_ref(), self.env.unix());
        let scopes = self.scopes();
        let client = match choice {
            Ok(Choice::Client(client)) => Some(client),
            Ok(Choice::Register) => None,
            Err(why) => return self.fail(why),
        };
        if let Some(Err(why)) = client.as_ref().map(|client| self.check_first_issuer(client, &found)) {
            return self.fail(why);
        }
        let known = client.as_ref().and_then(|client| client.redirect_uri.clone());
        let is_dynamic = client.as_ref().is_none_or(|client| client.source == ClientSource::Dynamic);
        let offered = found.resource.as_ref().and_then(|resource| resource.scopes_supported.clone());
        let Some(run) = &mut self.run else { return };
        run.registers_for = scopes.union(&offered.unwrap_or_default());
        (run.client, run.scopes) = (client, scopes);
        if self.env.config.grant == Grant::Device {
            return match found.issuer.device_endpoint {
                Some(_) => self.redirect_known(String::new()),
                None => self.fail(AuthError::NoDeviceGrant { issuer: found.issuer.issuer.clone() }),
            };
        }
        if !is_dynamic && !found.issuer.iss_parameter {
            self.env.report(AuthReport::MixUpUnprotected(found.issuer.issuer.clone()));
        }
        match &self.env.config.redirect {
            Redirect::Fixed(uri) => {
                let url = uri.clone();
                match policy::check_redirect_uri(&url) {
                    Ok(()) => self.redirect_known(url),
                    Err(fault) => self.fail(AuthError::BadUrl { purpose: "redirect_uri".into(), url, fault }),
                }
            }
            Redirect::Loopback { path, port, .. } => {
                let path = match is_dynamic && !found.issuer.iss_parameter {
                    true => page::callback_path(path, &found.issuer.issuer),
                    false => path.to_string(),
                };
                let first = known.as_deref().filter(|_| port == &Port::Any).and_then(port_of);
                if let Some(host) = known.as_deref().and_then(host_of) {
                    run.host = host;
                }
                self.listen(first, path);
            }
        }
    }

    /// Checks that a client without an issuer of its own was not used at another one before.
    pub(super) fn check_first_issuer(&self, client: &RegisteredClient, found: &Found) -> Result<(), AuthError> {
        registration::check_first_issuer(&self.env.config, client, &found.issuer.issuer, self.kept.entries())
    }

    fn listen(&mut self, first: Option<u16>, path: String) {
        let Redirect::Loopback { port, .. } = &self.env.config.redirect else { return };
        let Some(run) = &mut self.run else { return };
        let until = self.env.now + self.env.config.limits.page_time + Duration::from_secs(60);
        let listen = Listen { host: run.host, first, port: port.clone(), path, until };
        let step = self.env.step(|step| Output::Listen(step, listen));
        run.listener = Some(step);
        self.enter(Stage::Listening(step), Some(Duration::from_secs(10)));
    }

    /// Returns what a login requests: the scopes of the challenge, and all that were requested
    /// before. Without any, those of the resource.
    pub(super) fn scopes(&self) -> Scopes {
        let Some(run) = &self.run else { return Scopes::new() };
        let found = run.found.as_ref();
        let before = self.entry_at_issuer().map(|entry| entry.requested.clone()).unwrap_or_default();
        let resource = found.and_then(|found| found.resource.as_ref()?.scopes_supported.as_ref());
        let resource = resource.filter(|_| before.is_empty());
        let first = run.hints.scope.as_ref().or(resource).cloned().unwrap_or_default();
        let mut scopes = first.union(&self.env.config.scopes).union(&before);
        let offered = found.and_then(|found| found.issuer.scopes_supported.as_ref());
        if self.needs_user() && offered.is_some_and(|offered| offered.contains("offline_access")) {
            scopes.insert("offline_access");
        }
        scopes
    }

    pub(super) fn on_listening(&mut self, step: StepId, outcome: Result<String, StoreFault>) -> bool {
        let Some(run) = &mut self.run else { return false };
        if !matches!(run.stage, Stage::Listening(open) if open == step) {
            return false;
        }
        match outcome {
            Ok(uri) => self.redirect_known(uri),
            Err(why) => {
                self.env.emit(Output::Finish(step, PageResult::Ended));
                run.listener = None;
                let known = run.client.as_ref().and_then(|client| client.redirect_uri.clone());
                let uri = known.unwrap_or_else(|| self.unheard_uri());
                self.env.report(AuthReport::NoListener(why));
                self.redirect_known(uri);
            }
        }
        true
    }

    /// Returns the redirect URI of a listener that could not be opened.
    fn unheard_uri(&self) -> String {
        let Redirect::Loopback { port, path, .. } = &self.env.config.redirect else { return String::new() };
        let host = self.run.as_ref().map_or(LoopbackHost::default(), |run| run.host);
        let port = match port {
            Port::Any => NO_LISTENER_PORT,
            Port::FirstOf(ports) => ports.first().copied().unwrap_or(NO_LISTENER_PORT),
        };
        format!("http://{}:{port}{path}", host.as_str())
    }

    /// The redirect URI is known, or empty without one: a client that was registered with another
    /// one, or with other scopes, registers again.
    fn redirect_known(&mut self, uri: String) {
        let Some(run) = &mut self.run else { return };
        run.redirect_uri = uri;
        let fits = run.client.as_ref().is_some_and(|client| {
            let allows_scopes = client.scopes.is_empty() || client.scopes.contains_all(&run.scopes);
            let is_dynamic = client.source == ClientSource::Dynamic;
            !is_dynamic || allows_scopes && client.redirect_uri.as_deref() == run.redirect_uri()
        });
        match fits {
            true => self.ask_user(),
            false => self.register(),
        }
    }

    fn register(&mut self) {
        let Some(run) = &mut self.run else { return };
        let Some(found) = run.found.clone() else { return };
        let issuer = &found.issuer;
        let Some(url) = issuer.registration_endpoint.as_deref() else {
            // The redirect URI of the stored client is not free, and the issuer registers no other.
            return self.fail(AuthError::NoRegistration { issuer: issuer.issuer.clone() });
        };
        if run.registrations >= MAX_REGISTRATIONS {
            return self.fail(AuthError::Limit("registrations".into()));
        }
        run.registrations += 1;
        let body = registration::request(&self.env.config, run.redirect_uri(), issuer, &run.registers_for);
        let url = url.to_string();
        let limits = self.env.config.limits;
        let request = |target, reach| {
            let (timeout, max_body) = (limits.token_time, limits.max_document);
            let mut request = FetchRequest::post(target, "application/json", body);
            request.headers.push("Accept", "application/json");
            FetchRequest { reach, timeout, max_body, ..request }
        };
        self.post("registration_endpoint", &url, request, Stage::Registering);
    }

    pub(super) fn registered(&mut self, outcome: &Result<Box<FetchResponse>, FetchError>) {
        let Some(run) = &mut self.run else { return };
        let Some(found) = run.found.clone() else { return };
        let url = found.issuer.registration_endpoint.clone().unwrap_or_default();
        let problem = match outcome {
            Ok(response) => match registration::read(response, &found.issuer, run.redirect_uri(), &run.registers_for) {
                Ok(client) => return self.keep_client(client),
                Err(problem) => problem,
            },
            Err(why) => {
                let problem = Problem { url, why: Some(why.to_string()), ..Problem::default() };
                return self.fail(AuthError::Unavailable(problem));
            }
        };
        let is_redirect = problem.error.as_deref() == Some("invalid_redirect_uri");
        if problem.status.is_some_and(|status| status >= 500) {
            self.fail(AuthError::Unavailable(problem));
        } else if is_redirect && run.host == LoopbackHost::V4 && run.listener.is_some() {
            // Some authorization servers know `localhost` only.
            run.host = LoopbackHost::Localhost;
            let (first, path) = (port_of(&run.redirect_uri), path_of(&run.redirect_uri));
            if let Some(listener) = run.listener.take() {
                self.env.emit(Output::Finish(listener, PageResult::Ended));
            }
            self.listen(first, path);
        } else if !is_redirect && !run.registers_for.is_empty() {
            // Some refuse scopes that they do not know.
            run.registers_for = Scopes::new();
            self.register();
        } else {
            self.fail(AuthError::Registration(problem));
        }
    }

    /// Stores a new client: its secret must not be lost with the page. But it does not replace a
    /// client that has tokens before there are others: the user may decline.
    fn keep_client(&mut self, client: RegisteredClient) {
        let Some(run) = &mut self.run else { return };
        let Some(found) = run.found.clone() else { return };
        run.client = Some(client.clone());
        let before = self.kept.entry_of(&found.issuer.issuer);
        if before.is_some_and(|entry| entry.tokens.is_some()) {
            return self.ask_user();
        }
        let entry = Entry {
            issuer: found.issuer.issuer.clone(),
            resource: found.identifier.clone(),
            client,
            requested: before.map(|entry| entry.requested.clone()).unwrap_or_default(),
            tokens: None,
        };
        self.kept.put(entry);
        self.save(Stage::SavingClient);
    }

    /// The client is known: shows the page, or a code.
    pub(super) fn ask_user(&mut self) {
        match self.env.config.grant {
            Grant::Device => self.request_code(),
            _ => self.browse(),
        }
    }

    /// Shows the page.
    fn browse(&mut self) {
        let (state, proof) = (self.env.random_text(), ProofKey::new(self.env.random()));
        let Some(run) = &mut self.run else { return };
        let (Some(found), Some(client)) = (run.found.clone(), run.client.as_ref()) else { return };
        let page = Page { state, verifier: proof.verifier, code: None };
        let omits = self.env.config.compat.omit_resource;
        let request = PageRequest {
            issuer: &found.issuer,
            client_id: &client.client_id,
            source: client.source,
            redirect_uri: &run.redirect_uri,
            scopes: &run.scopes,
            state: &page.state,
            challenge: &proof.challenge,
            resource: (!omits).then_some(&*found.identifier),
            config: &self.env.config,
        };
        let url = page::url(&request);
        let endpoint = found.issuer.authorization_endpoint.as_deref().unwrap_or_default();
        let url = url.and_then(|url| self.endpoint("authorization_endpoint", endpoint).map(|_| url));
        let url = match url {
            Ok(url) => url,
            Err(why) => return self.fail(why),
        };
        let limit = self.env.config.limits.page_time;
        let until = self.env.now + limit;
        let Some(run) = &mut self.run else { return };
        run.page = Some(page);
        let (scopes, redirect_uri) = (run.scopes.clone(), run.redirect_uri.clone());
        let browse = Browse { url, issuer: found.issuer.issuer.clone(), scopes, redirect_uri, until };
        let step = self.env.step(|step| Output::Browse(step, browse));
        run.browser = Some(step);
        self.enter(Stage::Browsing(step), Some(limit));
    }

    pub(super) fn on_redirected(&mut self, step: StepId, url: &str) -> bool {
        if !self.waits_for_user(step) {
            return false;
        }
        let has_tokens = self.entry_at_issuer().is_some_and(|entry| entry.tokens.is_some());
        let Some(run) = &mut self.run else { return false };
        let (Some(page), Some(found)) = (&mut run.page, &run.found) else { return false };
        match page::answer(url, &run.redirect_uri, &page.state, &found.issuer) {
            Answer::Code(code) => {
                page.code = Some(code);
                self.lease(Purpose::Change);
            }
            Answer::Refused(why) if is_about_the_client(&why) && !has_tokens => self.refuse_client(why),
            Answer::Refused(why) | Answer::WrongIssuer(why) => self.fail(why),
            Answer::Ignored(why) => {
                self.env.report(AuthReport::WrongRedirect(why));
                if run.listener == Some(step) {
                    self.env.emit(Output::Ignore(step));
                }
            }
        }
        true
    }

    pub(super) fn on_declined(&mut self, step: StepId) -> bool {
        let waits = self.waits_for_user(step) || self.shows_code(step);
        if waits {
            self.cancel_fetch();
            self.fail(AuthError::Declined);
        }
        waits
    }

    /// Exchanges the code.
    pub(super) fn redeem(&mut self) {
        let omits = self.env.config.compat.omit_resource;
        let Some(run) = &mut self.run else { return };
        let (Some(found), Some(client), Some(page)) = (run.found.clone(), run.client.clone(), run.page.take()) else {
            return;
        };
        let Some(code) = &page.code else { return };
        let resource = (!omits).then_some(&*found.identifier);
        let form = token::exchange(code, &page.verifier, &run.redirect_uri, resource);
        self.request_tokens(client, form, Stage::Redeeming);
    }

    pub(super) fn redeemed(&mut self, outcome: &Result<Box<FetchResponse>, FetchError>) {
        let answer = self.answer(outcome);
        self.end_login(answer);
    }

    /// Ends a login with the answer of the token endpoint.
    pub(super) fn end_login(&mut self, answer: TokenAnswer) {
        match answer {
            TokenAnswer::Tokens(new) => self.keep_new(new),
            TokenAnswer::Transient { problem, .. } => self.fail(AuthError::Unavailable(problem)),
            TokenAnswer::InvalidClient(problem) => self.refuse_client(AuthError::Token(problem)),
            TokenAnswer::InvalidGrant(problem) | TokenAnswer::Firewall(problem) | TokenAnswer::Other(problem) => {
                self.fail(AuthError::Token(problem));
            }
        }
    }

    /// The issuer refuses the client: one that it registered is not used again, also by other
    /// processes.
    pub(super) fn refuse_client(&mut self, why: AuthError) {
        let client = self.run.as_ref().and_then(|run| run.client.as_ref());
        let is_kept = self.kept.entry().is_some_and(|entry| Some(&entry.client) == client);
        if !is_kept || client.is_none_or(|client| client.source != ClientSource::Dynamic) {
            return self.fail(why);
        }
        self.kept.drop_entry();
        self.save(|step| Stage::SavingRefusal(step, Box::new(why)));
    }

    /// The record is stored without the client that was refused.
    pub(super) fn refusal_saved(&mut self, outcome: Result<Version, SaveFault>, why: AuthError) {
        match outcome {
            Ok(version) => self.kept.saved(version),
            Err(SaveFault::Fault(fault)) => self.env.report(AuthReport::NotSaved(fault)),
            // Another process changed it meanwhile, and may have another client.
            Err(SaveFault::Conflict(stored)) => {
                self.kept.load(&self.env, stored);
            }
        }
        self.fail(why);
    }

    /// Uses the new tokens of a login, and stores them.
    pub(super) fn keep_new(&mut self, new: NewTokens) {
        let Some(run) = &self.run else { return };
        let (Some(found), Some(client)) = (run.found.clone(), run.client.clone()) else { return };
        let before = self.kept.entry_of(&found.issuer.issuer);
        let requested = before.map(|entry| entry.requested.clone()).unwrap_or_default();
        let number = before.and_then(|entry| entry.tokens.as_ref()).map_or(0, |tokens| tokens.generation);
        let entry = Entry {
            issuer: found.issuer.issuer.clone(),
            resource: found.identifier.clone(),
            client,
            requested: requested.union(&run.scopes),
            tokens: Some(self.tokens(new, None, number, &run.scopes)),
        };
        self.keep(entry);
    }

    /// Returns the tokens as they are kept. An absent refresh token keeps the one before.
    pub(super) fn tokens(&self, new: NewTokens, before: Option<Secret>, number: u64, requested: &Scopes) -> Tokens {
        Tokens {
            access_token: new.access,
            token_type: new.token_type,
            dpop_key: self.token_request_key().cloned().map(Box::new),
            refresh_token: new.refresh.or(before),
            expires: new.expires_in.map(|lifetime| self.env.unix() + lifetime),
            lifetime: new.expires_in,
            granted: new.scopes.unwrap_or_else(|| requested.clone()),
            // Tokens that were removed meanwhile had a smaller number.
            generation: self.env.unix().max(number + 1),
        }
    }

    /// Uses new tokens, and stores them.
    pub(super) fn keep(&mut self, entry: Entry) {
        let tokens = entry.tokens.as_ref();
        self.env.report(AuthReport::Authorized {
            issuer: entry.issuer.clone(),
            scopes: tokens.map(|tokens| tokens.granted.clone()).unwrap_or_default(),
            expires_in: tokens.and_then(|tokens| tokens.lifetime).map(Duration::from_secs),
            can_refresh: tokens.is_some_and(|tokens| tokens.refresh_token.is_some()),
        });
        self.kept.put(entry);
        self.kept.take(&self.env);
        if let Some(run) = &mut self.run {
            run.failures = 0;
        }
        self.save(Stage::Saving);
    }

    /// Goes on with a login in place of a refresh that is not possible any more.
    pub(super) fn login_instead(&mut self) {
        let hints = self.run.as_mut().map(|run| core::mem::take(&mut run.hints)).unwrap_or_default();
        self.release(Purpose::Change);
        match self.barrier() {
            _ if !self.env.config.interactive => self.fail(AuthError::LoginRequired),
            Some(why) => self.fail(why),
            None => self.begin(Goal::Login { forced: false }, hints),
        }
    }
}

/// Returns whether a page refuses what the client is registered for, so that another registration
/// may help.
fn is_about_the_client(why: &AuthError) -> bool {
    let AuthError::Authorization(problem) = why else { return false };
    matches!(problem.error.as_deref(), Some("invalid_scope" | "unauthorized_client" | "invalid_client"))
}

/// Returns the port of a loopback redirect URI.
fn port_of(uri: &str) -> Option<u16> {
    HttpTarget::parse(uri).ok().map(|target| target.origin.port)
}

fn host_of(uri: &str) -> Option<LoopbackHost> {
    let target = HttpTarget::parse(uri).ok()?;
    [LoopbackHost::V4, LoopbackHost::Localhost].into_iter().find(|host| host.as_str() == &*target.origin.host)
}

fn path_of(uri: &str) -> String {
    HttpTarget::parse(uri).map(|target| target.path).unwrap_or_default()
}
