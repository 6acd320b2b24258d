//! The login of a client: its flow, whose steps leave as events of the client, and whose HTTP
//! requests are fetches of the client.

use super::{Client, ClientConfig, Event, HttpTarget, Target, Timer, headers};
use crate::auth::{Attach, Flow, FlowState, Generation, Input, Output, Reaction, Refused, StepId, Tried};
use crate::error::{AuthError, DiagnosticKind};
use crate::exchange::{Headers, Origin};
use crate::fetch::{FetchError, FetchResponse};
use crate::seed::Seed;
use crate::time::Instant;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use core::net::IpAddr;

/// The header fields of credentials.
const CREDENTIALS: [&str; 2] = ["Authorization", "DPoP"];

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct Login {
    /// Absent without [`ClientConfig::auth`], and on a connection that is neither HTTP nor a
    /// WebSocket.
    flow: Option<Box<Flow>>,
    is_closed: bool,
    /// The field with the present token. Empty without one, and for one that is bound to a key.
    credentials: Headers,
    /// Whether the present token is bound to a key: each request needs a proof.
    is_bound: bool,
    /// The credentials that it is of.
    generation: Generation,
}

impl Login {
    pub(super) fn new(config: &ClientConfig, seed: &Seed, now: Instant) -> Self {
        let server = match &config.target {
            Target::Http(server) => Some(server.clone()),
            Target::Ws(server) => {
                let scheme = if server.origin.tls { "https" } else { "http" };
                let rest = server.original.split_once("://").map_or("", |(_, rest)| rest);
                HttpTarget::from_parts(server.origin.clone(), server.path.clone(), format!("{scheme}://{rest}"))
            }
            Target::Duplex(_) | Target::NoServer => None,
        };
        let flow = config.auth.as_ref().zip(server).map(|(auth, server)| {
            Box::new(Flow::new(Arc::clone(auth), server, config.origin_unix, seed.derive("login"), now))
        });
        Self { flow, ..Self::default() }
    }

    /// Returns the state of the flow.
    pub(super) fn state(&self) -> Option<FlowState> {
        self.flow.as_ref().map(|flow| flow.state())
    }

    /// Returns whether the client obtains credentials by itself.
    pub(super) const fn is_on(&self) -> bool {
        self.flow.is_some()
    }

    /// Returns the first of these fields of the application that would replace credentials of the
    /// login.
    pub(super) fn other_credentials(&self, fields: &Headers) -> Option<String> {
        let is_credential = |name: &&str| CREDENTIALS.iter().any(|field| name.eq_ignore_ascii_case(field));
        let found = headers::own(fields).map(|(name, _)| name).find(is_credential);
        found.filter(|_| self.is_on()).map(String::from)
    }

    /// Returns the field with the present token.
    pub(super) const fn credentials(&self) -> &Headers {
        &self.credentials
    }

    /// Returns the number of the credentials of the flow. The next request has these.
    pub(super) fn latest(&self) -> Generation {
        self.flow.as_ref().map(|flow| flow.generation()).unwrap_or_default()
    }

    /// Returns the number of the present credentials.
    pub(super) const fn generation(&self) -> Generation {
        self.generation
    }

    /// Prepares the credentials of a request. Returns whether it has to wait for them.
    pub(super) fn must_wait(&mut self, now: Instant) -> bool {
        let Some(flow) = self.flow.as_mut().filter(|_| !self.is_closed) else { return false };
        let waits = matches!(flow.attach(now), Attach::Wait);
        self.prepare(now);
        waits
    }

    /// Prepares the credentials of a request that does not wait.
    fn prepare(&mut self, now: Instant) {
        let Some(flow) = &mut self.flow else { return };
        let generation = flow.generation();
        let attach = flow.attached(now);
        self.is_bound = matches!(attach, Attach::Bound);
        self.credentials = match attach {
            Attach::Bearer(_) if generation == self.generation && self.credentials.get("Authorization").is_some() => {
                return;
            }
            Attach::Bearer(token) => Headers::new().with("Authorization", format!("Bearer {}", token.expose())),
            Attach::None | Attach::Bound | Attach::Wait => Headers::new(),
        };
        self.generation = generation;
    }

    /// Begins the proof of a request whose token is bound to a key. Returns the step that signs it.
    /// `None`: the request needs no proof.
    pub(super) fn prove(&mut self, now: Instant, method: &str, origin: &Origin, path: &str) -> Option<StepId> {
        let flow = self.flow.as_mut().filter(|_| self.is_bound)?;
        let url = HttpTarget::from_parts(origin.clone(), path.into(), String::new())?;
        flow.prove(now, method, &url)
    }

    /// Drops the proof of a request that has ended.
    pub(super) fn withdraw_proof(&mut self, step: StepId) {
        if let Some(flow) = &mut self.flow {
            flow.withdraw_proof(step);
        }
    }

    /// Notes the nonce of a response of the server, if it has one.
    pub(super) fn note_nonce(&mut self, origin: &Origin, nonce: Option<&str>) {
        if let Some(flow) = &mut self.flow {
            flow.note_nonce(origin, nonce);
        }
    }

    /// Returns what happens with a request that the server refused. `None`: nothing, since the
    /// refusal does not concern credentials.
    pub(super) fn refuse(&mut self, now: Instant, refused: &Refused<'_>, tried: &mut Tried) -> Option<Reaction> {
        let flow = self.flow.as_mut().filter(|_| !self.is_closed && Flow::is_challenge(refused))?;
        Some(flow.refuse(now, refused, tried))
    }

    /// Notes the address of the peer of a connection to the server.
    pub(super) fn reached(&mut self, address: Option<IpAddr>) {
        if let Some(flow) = &mut self.flow {
            flow.reached(address);
        }
    }

    /// Handles the end of a fetch of the flow.
    pub(super) fn fetched(&mut self, now: Instant, step: StepId, outcome: &Result<Box<FetchResponse>, FetchError>) {
        if let Some(flow) = &mut self.flow {
            flow.fetched(now, step, outcome);
        }
    }
}

impl Client {
    pub(super) fn on_auth(&mut self, input: Input) {
        let (now, step) = (self.cx.env.now, input.step());
        let was_open = self.cx.env.login.flow.as_mut().is_some_and(|flow| flow.handle(now, input));
        if !was_open {
            self.cx.env.diagnose(DiagnosticKind::BadEvent, format!("step {} of the login is not open", step.0));
        }
    }

    pub(super) fn on_login(&mut self) {
        let now = self.cx.env.now;
        let login = &mut self.cx.env.login;
        if let Some(flow) = login.flow.as_mut().filter(|_| !login.is_closed) {
            flow.login(now);
        }
    }

    pub(super) fn on_logout(&mut self) {
        let now = self.cx.env.now;
        let login = &mut self.cx.env.login;
        if let Some(flow) = login.flow.as_mut().filter(|_| !login.is_closed) {
            flow.logout(now);
        }
    }

    pub(super) fn on_login_timeout(&mut self) {
        let now = self.cx.env.now;
        if let Some(flow) = &mut self.cx.env.login.flow {
            flow.handle_timeout(now);
        }
    }

    /// Handles the outputs of the login, until there are no more. Requests that begin or end
    /// meanwhile may cause others.
    pub(super) fn run_login(&mut self) {
        if !self.cx.env.login.is_on() {
            return;
        }
        loop {
            self.run_link();
            if let Some((step, proof)) = self.cx.env.login.flow.as_mut().and_then(|flow| flow.poll_proof()) {
                self.cx.link.settle_proof(&mut self.cx.env, step, proof);
                continue;
            }
            let Some(output) = self.cx.env.login.flow.as_mut().and_then(|flow| flow.poll_output()) else { break };
            self.on_login_output(output);
        }
        self.cx.env.notice_login();
        let until = self.cx.env.login.flow.as_ref().and_then(|flow| flow.poll_timeout());
        self.cx.env.timers.set(Timer::Login, until);
    }

    fn on_login_output(&mut self, output: Output) {
        let now = self.cx.env.now;
        match output {
            Output::Fetch(step, request) => {
                if let Err(why) = self.fetches.begin_for_login(&mut self.cx.env, step, *request) {
                    self.cx.env.login.fetched(now, step, &Err(FetchError::Refused(why)));
                }
            }
            Output::CancelFetch(step) => self.fetches.cancel_for_login(&mut self.cx.env, step),
            Output::Changed(generation) => {
                self.cx.env.login.prepare(now);
                self.cx.env.event(Event::Auth(Box::new(Output::Changed(generation))));
                self.cx.link.settle_login(&mut self.cx.env, None);
            }
            Output::Failed(why) => {
                self.cx.env.login.prepare(now);
                self.cx.env.event(Event::Auth(Box::new(Output::Failed(why.clone()))));
                self.cx.link.settle_login(&mut self.cx.env, Some(&*why));
            }
            step => self.cx.env.event(Event::Auth(Box::new(step))),
        }
    }

    /// Ends the login, since the client ends.
    pub(super) fn close_login(&mut self) {
        let now = self.cx.env.now;
        self.cx.env.login.is_closed = true;
        let Some(flow) = &mut self.cx.env.login.flow else { return };
        flow.close(now);
        while let Some(output) = self.cx.env.login.flow.as_mut().and_then(|flow| flow.poll_output()) {
            match output {
                Output::CancelFetch(step) => self.fetches.cancel_for_login(&mut self.cx.env, step),
                Output::Fetch(..) => {}
                step => self.cx.env.event(Event::Auth(Box::new(step))),
            }
        }
    }
}

/// What became of a response that concerns credentials.
#[derive(Debug)]
pub(super) enum Challenged {
    /// It does not concern them, or is the end of its request.
    No,
    /// The request waits, or was sent again.
    Waits,
    /// The request ends with this error.
    Failed(Box<AuthError>),
}
