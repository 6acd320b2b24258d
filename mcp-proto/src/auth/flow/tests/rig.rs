//! A flow with an authorization server, a store and a user around it, in virtual time.

use super::issuer::Issuer;
pub(super) use super::issuer::{claim, query};
use crate::auth::flow::{Attach, Flow, Reaction, Refused, RequestProof, Tried};
use crate::auth::step::{
    AssertionRequest, AuthReport, Browse, DeviceCode, Generation, Input, Lease, Output, PageResult, Purpose, SaveFault,
    StepId, StoreFault, Stored,
};
use crate::auth::{
    Alg, AuthConfig, ClientAuth, KeyPair, LoopbackHost, PublicKey, Record, Registration, Secret, SignRequest, Version,
};
use crate::error::AuthError;
use crate::fetch::HttpTarget;
use crate::time::Instant;
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;

pub(super) const SERVER: &str = "https://mcp.example/mcp";
pub(super) const ISSUER: &str = "https://as.example";
/// The Unix time of the origin.
pub(super) const EPOCH: u64 = 1_800_000_000;

/// One record, shared by several flows, with its leases.
#[derive(Debug, Default)]
pub(super) struct Store {
    pub(super) record: Option<Box<Record>>,
    pub(super) version: Version,
    /// Who holds which lease, and who waits for it.
    held: BTreeMap<Purpose, usize>,
    waiting: VecDeque<(usize, StepId, Purpose)>,
    pub(super) saves: usize,
    pub(super) fails: bool,
}

impl Store {
    pub(super) fn stored(&self) -> Stored {
        Stored { record: self.record.clone(), version: self.version }
    }

    pub(super) fn is_free(&self) -> bool {
        self.held.is_empty() && self.waiting.is_empty()
    }

    fn save(&mut self, expected: Version, record: Option<Box<Record>>) -> Result<Version, SaveFault> {
        if self.fails {
            return Err(SaveFault::Fault(StoreFault("full".into())));
        }
        if expected != self.version {
            return Err(SaveFault::Conflict(self.stored()));
        }
        self.saves += 1;
        self.version = record.as_ref().map_or(Version::ABSENT, |_| Version(self.version.0 + 1));
        self.record = record;
        Ok(self.version)
    }
}

/// What a user does with a page.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum User {
    Accepts,
    Declines,
    Absent,
}

/// Several flows in one world.
pub(super) struct World {
    pub(super) flows: Vec<Flow>,
    pub(super) now: Instant,
    pub(super) issuer: Issuer,
    pub(super) store: Store,
    pub(super) user: User,
    pub(super) listens: bool,
    pub(super) pages: Vec<Browse>,
    /// The open pages: flow, step.
    pub(super) open: Vec<(usize, StepId)>,
    pub(super) listeners: Vec<(usize, StepId)>,
    pub(super) reports: Vec<AuthReport>,
    /// The ends of runs.
    pub(super) ends: Vec<Result<Generation, AuthError>>,
    pub(super) ignored: usize,
    pub(super) shown: Vec<PageResult>,
    /// Whether steps of the store wait.
    pub(super) stalls: bool,
    /// What was to be signed, and the signature. `None`: it does not come.
    pub(super) signed: Vec<SignRequest>,
    pub(super) signature: Option<Result<Vec<u8>, StoreFault>>,
    /// The assertions that were asked for, and what there is. `None`: nothing comes.
    pub(super) asserted: Vec<AssertionRequest>,
    pub(super) assertion: Option<Result<Secret, StoreFault>>,
    /// The codes that are shown to the user.
    pub(super) codes: Vec<(StepId, DeviceCode)>,
    /// The algorithms of the keys that were made, and the step of the latest one.
    pub(super) keys: Vec<Alg>,
    pub(super) asked: Option<StepId>,
}

pub(super) fn config() -> AuthConfig {
    AuthConfig::new("test")
}

/// A changed configuration.
pub(super) fn with(mut config: AuthConfig, change: impl FnOnce(&mut AuthConfig)) -> AuthConfig {
    change(&mut config);
    config
}

impl World {
    pub(super) fn new() -> Self {
        Self::with(config(), 1)
    }

    pub(super) fn with(config: AuthConfig, flows: usize) -> Self {
        let config = Arc::new(config);
        let flow = |number: usize| Self::flow(&config, number as u8, Instant::ZERO);
        Self {
            flows: (0..flows).map(flow).collect(),
            now: Instant::ZERO,
            issuer: Issuer::default(),
            store: Store::default(),
            user: User::Accepts,
            listens: true,
            pages: Vec::new(),
            open: Vec::new(),
            listeners: Vec::new(),
            reports: Vec::new(),
            ends: Vec::new(),
            ignored: 0,
            shown: Vec::new(),
            stalls: false,
            signed: Vec::new(),
            signature: Some(Ok(alloc::vec![7; 64])),
            asserted: Vec::new(),
            assertion: Some(Ok("the-assertion".into())),
            codes: Vec::new(),
            keys: Vec::new(),
            asked: None,
        }
    }

    fn flow(config: &Arc<AuthConfig>, seed: u8, now: Instant) -> Flow {
        let server = HttpTarget::parse(SERVER).unwrap();
        Flow::new(Arc::clone(config), server, Duration::from_secs(EPOCH), [seed; 32], now)
    }

    /// Starts the program again: the first flow is new.
    pub(super) fn restart(&mut self, config: AuthConfig) {
        self.flows = alloc::vec![Self::flow(&Arc::new(config), 99, self.now)];
    }

    /// Handles all outputs, until there are no more: one of each flow in turn.
    pub(super) fn run(&mut self) {
        loop {
            let mut is_idle = true;
            for at in 0..self.flows.len() {
                if let Some(output) = self.flows[at].poll_output() {
                    is_idle = false;
                    self.handle(at, output);
                }
            }
            if is_idle {
                return;
            }
        }
    }

    fn give(&mut self, at: usize, input: Input) {
        assert!(self.flows[at].handle(self.now, input.clone()), "{input:?}");
    }

    pub(super) fn handle(&mut self, at: usize, output: Output) {
        match output {
            Output::Fetch(step, request) => {
                let outcome = self.issuer.answer(&request);
                assert!(self.flows[at].fetched(self.now, step, &outcome));
            }
            Output::CancelFetch(_) => {}
            Output::NewKey(step, alg) => {
                self.keys.push(alg);
                self.asked = Some(step);
                let pair = || Box::new(key(self.keys.len(), alg));
                if let Some(pair) = self.signature.clone().map(|signature| signature.map(|_| pair())) {
                    self.give(at, Input::KeyMade(step, pair));
                }
            }
            Output::Sign(step, request) => {
                self.signed.push(*request);
                if let Some(signature) = self.signature.clone() {
                    self.give(at, Input::Signed(step, signature));
                }
            }
            Output::Assert(step, request) => {
                self.asserted.push(*request);
                if let Some(assertion) = self.assertion.clone() {
                    self.give(at, Input::Asserted(step, assertion));
                }
            }
            Output::ShowCode(step, code) => {
                self.open.push((at, step));
                self.codes.push((step, *code));
            }
            Output::Lease(step, _, purpose) => match self.store.held.get(&purpose) {
                None => {
                    self.store.held.insert(purpose, at);
                    self.give(at, Input::Leased(step, Ok(Lease::Held)));
                }
                Some(_) => {
                    self.store.waiting.push_back((at, step, purpose));
                    self.give(at, Input::Leased(step, Ok(Lease::Waiting)));
                }
            },
            Output::Release(_, purpose) => self.release(at, purpose),
            Output::Load(step, _) if self.store.fails => {
                self.give(at, Input::Loaded(step, Err(StoreFault("broken".into()))));
            }
            Output::Load(..) | Output::Save(..) if self.stalls => {}
            Output::Load(step, _) => self.give(at, Input::Loaded(step, Ok(self.store.stored()))),
            Output::Save(step, _, expected, record) => {
                let saved = self.store.save(expected, record);
                self.give(at, Input::Saved(step, saved));
            }
            Output::Listen(step, listen) => {
                self.listeners.push((at, step));
                let host = listen.host.as_str();
                let port = listen.first.unwrap_or(4000 + at as u16);
                let uri = match self.listens {
                    true => Ok(format!("http://{host}:{port}{}", listen.path)),
                    false => Err(StoreFault("in use".into())),
                };
                self.give(at, Input::Listening(step, uri));
            }
            Output::Browse(step, browse) => {
                self.open.push((at, step));
                self.pages.push(browse);
                self.visit(at, step);
            }
            Output::Ignore(_) => self.ignored += 1,
            Output::Finish(step, result) => {
                self.open.retain(|(_, open)| *open != step);
                self.listeners.retain(|(_, open)| *open != step);
                self.shown.push(result);
            }
            Output::Changed(generation) => self.ends.push(Ok(generation)),
            Output::Failed(why) => self.ends.push(Err(*why)),
            Output::Report(report) => self.reports.push(report),
        }
    }

    fn visit(&mut self, at: usize, step: StepId) {
        let input = match self.user {
            User::Accepts => {
                let page = self.pages.last().unwrap().clone();
                Input::Redirected(step, self.issuer.page(&page).into())
            }
            User::Declines => Input::Declined(step),
            User::Absent => return,
        };
        self.give(at, input);
    }

    fn release(&mut self, at: usize, purpose: Purpose) {
        self.store.waiting.retain(|(waiting, _, wanted)| (*waiting, *wanted) != (at, purpose));
        if self.store.held.get(&purpose) != Some(&at) {
            return;
        }
        self.store.held.remove(&purpose);
        if let Some(next) = self.store.waiting.iter().position(|(_, _, wanted)| *wanted == purpose) {
            let (next, step, _) = self.store.waiting.remove(next).unwrap();
            self.store.held.insert(purpose, next);
            self.give(next, Input::Leased(step, Ok(Lease::Held)));
        }
    }

    /// Passes time, timer by timer.
    pub(super) fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        loop {
            self.run();
            let due = self.flows.iter().filter_map(Flow::poll_timeout).min().filter(|at| *at <= end);
            let Some(at) = due else { break };
            self.now = self.now.max(at);
            self.flows.iter_mut().for_each(|flow| flow.handle_timeout(at));
        }
        self.now = end;
        self.flows.iter_mut().for_each(|flow| flow.handle_timeout(end));
        self.run();
    }

    /// Returns what a request of the first flow carries, once it goes out. `None`: nothing.
    pub(super) fn token(&mut self) -> Option<String> {
        self.token_of(0)
    }

    pub(super) fn token_of(&mut self, at: usize) -> Option<String> {
        for _ in 0..3 {
            match self.flows[at].attach(self.now) {
                Attach::Bearer(token) => return Some(token.expose().to_string()),
                Attach::Bound => {
                    let proof = self.prove(at).ok()?;
                    return proof.fields.get("Authorization").map(ToString::to_string);
                }
                Attach::None => return None,
                Attach::Wait => self.run(),
            }
        }
        None
    }

    /// Has the proof of a POST to the server signed.
    pub(super) fn prove(&mut self, at: usize) -> Result<RequestProof, AuthError> {
        let url = HttpTarget::parse(SERVER).unwrap();
        let step = self.flows[at].prove(self.now, "POST", &url).unwrap();
        self.run();
        let (signed, proof) = self.flows[at].poll_proof().unwrap();
        assert_eq!(signed, step);
        proof
    }

    /// Gives a refusal to a flow. Returns the reaction before its run.
    pub(super) fn refuse(&mut self, at: usize, status: u16, field: &str, tried: &mut Tried) -> Reaction {
        let sent = self.flows[at].generation();
        self.refuse_sent(at, status, field, tried, sent)
    }

    /// Gives the refusal of an operation to the first flow, and runs.
    pub(super) fn refuse_operation(&mut self, operation: &str, field: &str, tried: &mut Tried) -> Reaction {
        let (fields, sent) = ([field.to_string()], self.flows[0].generation());
        let refused = Refused { status: 403, fields: &fields, auth_server: None, sent, operation };
        let reaction = self.flows[0].refuse(self.now, &refused, tried);
        self.run();
        reaction
    }

    pub(super) fn refuse_sent(
        &mut self,
        at: usize,
        status: u16,
        field: &str,
        tried: &mut Tried,
        sent: Generation,
    ) -> Reaction {
        let fields = [field.to_string()];
        let refused = Refused { status, fields: &fields, auth_server: None, sent, operation: "" };
        assert!(Flow::is_challenge(&refused));
        self.flows[at].refuse(self.now, &refused, tried)
    }

    /// Logs the first flow in, by a request without credentials.
    pub(super) fn log_in(&mut self) -> Tried {
        assert_eq!(self.token(), None);
        self.ends.clear();
        let mut tried = Tried::default();
        assert_eq!(self.refuse(0, 401, "Bearer", &mut tried), Reaction::Wait);
        self.run();
        tried
    }

    /// Checks that nothing is left open.
    pub(super) fn is_at_rest(&self) -> bool {
        self.open.is_empty()
            && self.listeners.is_empty()
            && self.store.is_free()
            && self.flows.iter().all(|flow| flow.poll_timeout().is_none())
    }
}

/// Returns the key pair with this number.
pub(super) fn key(number: usize, alg: Alg) -> KeyPair {
    let bytes = [number as u8; 32].to_vec();
    let public = match alg {
        Alg::EdDsa => PublicKey::Ed25519(bytes),
        _ => PublicKey::P256 { x: bytes.clone(), y: bytes },
    };
    KeyPair { private: format!("key-{number}").into(), public }
}

/// Registrations of a given client at the issuer.
pub(super) fn given(issuer: &str, secret: Option<&str>) -> Registration {
    Registration::Given(crate::auth::GivenClient {
        issuer: issuer.into(),
        client_id: "given".into(),
        auth: secret.map_or(ClientAuth::None, |secret| ClientAuth::Secret(secret.into())),
    })
}

pub(super) const fn localhost() -> LoopbackHost {
    LoopbackHost::Localhost
}
