//! The steps of a login that the driver answers: the store, the listener, keys, signatures and
//! assertions.

use super::super::fault::Fault;
use super::check::Addressee;
use super::issuer::PROVIDER_PORT;
use super::keys::Keys;
use super::process::StepKind;
use super::store::ProcessId;
use super::world::{LONG, SimEvent, World};
use mcp_proto::auth::{
    self, AssertionPurpose, AssertionRequest, Lease, SaveFault, SignKey, SignRequest, StepId, StoreFault,
};
use std::time::Duration;

impl World {
    pub(super) fn step(&mut self, at: usize, output: auth::Output) {
        let id = self.processes[at].id;
        let after = self.soon();
        if let Some((step, kind)) = kind_of(&output) {
            self.processes[at].waits(step, kind);
        }
        match output {
            auth::Output::Lease(step, _, purpose) => match self.store_fault() {
                Some(Fault::StoreFails) => self.reply(at, after, auth::Input::Leased(step, Err(broken()))),
                // The lease is not wanted any more once a late answer comes.
                Some(_) => {}
                None => {
                    let lease = self.store.lease(id, step, purpose);
                    self.reply(at, after, auth::Input::Leased(step, Ok(lease)));
                }
            },
            auth::Output::Release(_, purpose) => self.release(id, purpose),
            auth::Output::Load(step, _) => match self.store_fault() {
                Some(Fault::StoreFails) => self.reply(at, after, auth::Input::Loaded(step, Err(broken()))),
                Some(_) => self.reply(at, LONG, auth::Input::Loaded(step, Err(broken()))),
                None => self.reply(at, after, auth::Input::Loaded(step, Ok(self.store.stored()))),
            },
            auth::Output::Save(step, _, expected, record) => match self.store_fault() {
                Some(Fault::StoreFails) => {
                    if record.is_none() {
                        // The user has logged out: the next login starts with what it needs.
                        self.checks.saved(None);
                    }
                    self.reply(at, after, auth::Input::Saved(step, Err(SaveFault::Fault(broken()))));
                }
                fault => {
                    let saved = self.store.save(expected, record);
                    if saved.is_ok() {
                        self.checks.saved(self.store.record());
                    }
                    self.reply(at, if fault.is_some() { LONG } else { after }, auth::Input::Saved(step, saved));
                }
            },
            auth::Output::Listen(step, listen) => {
                let bound = match self.chaos.hit(Fault::NoListener, 100) {
                    true => Err(StoreFault("no port is free".into())),
                    false => Ok(format!("http://{}:{}{}", listen.host.as_str(), 4000 + id % 100, listen.path)),
                };
                self.reply(at, after, auth::Input::Listening(step, bound));
            }
            auth::Output::Browse(step, page) => self.browse(at, step, &page),
            auth::Output::ShowCode(step, code) => self.show_code(at, step, &code),
            auth::Output::Finish(step, _) => {
                self.processes[at].steps.remove(&step);
            }
            auth::Output::NewKey(step, alg) => {
                let made = match self.hit(Fault::KeyFails, 100) {
                    true => Err(broken()),
                    false => {
                        let pair = self.keys.pair(alg);
                        self.checks.minted(vec![(pair.private.expose().to_owned(), Addressee::Local)]);
                        Ok(Box::new(pair))
                    }
                };
                self.reply(at, after, auth::Input::KeyMade(step, made));
            }
            auth::Output::Sign(step, request) => self.sign(at, step, &request),
            auth::Output::Assert(step, request) => self.assert(at, step, &request),
            _ => {}
        }
    }

    pub(super) fn reply(&mut self, at: usize, after: Duration, input: auth::Input) {
        self.later(after, SimEvent::Answer(self.processes[at].id, input));
    }

    fn store_fault(&mut self) -> Option<Fault> {
        let fails = self.scenario.settings.store_fails;
        let fault = fails.then(|| self.chaos.pick(&[Fault::StoreFails, Fault::StoreStalls], 60)).flatten();
        if fault.is_some() {
            self.disturb();
        }
        fault
    }

    pub(super) fn release(&mut self, id: ProcessId, purpose: auth::Purpose) {
        if let Some((next, step)) = self.store.release(id, purpose) {
            let after = self.soon();
            self.later(after, SimEvent::Answer(next, auth::Input::Leased(step, Ok(Lease::Held))));
        }
    }

    /// Signs a proof, or the assertion of a client.
    fn sign(&mut self, at: usize, step: StepId, request: &SignRequest) {
        let SignKey::Pkcs8(key) = &request.key else { panic!("the key {:?}", request.key) };
        let signed = Ok(Keys::sign(key.expose(), &request.input));
        let fault = self.chaos.pick(&[Fault::SignerFails, Fault::SignerStalls], 60);
        if fault.is_some() {
            self.disturb();
        }
        let signed = if fault == Some(Fault::SignerFails) { Err(broken()) } else { signed };
        // A signer is a call of a function.
        let after = Duration::from_millis(self.rng.of(&[0, 0, 1, 400]));
        let after = if fault == Some(Fault::SignerStalls) { LONG } else { after };
        self.reply(at, after, auth::Input::Signed(step, signed));
    }

    /// The platform, or the application that has logged a user in, gives an assertion.
    fn assert(&mut self, at: usize, step: StepId, request: &AssertionRequest) {
        let audience = request.audience.rsplit(':').next().and_then(|port| port.parse().ok()).expect("an issuer");
        assert_eq!(request.purpose == AssertionPurpose::Identity, audience == PROVIDER_PORT, "{request:?}");
        assert_eq!(request.token_endpoint, format!("http://127.0.0.1:{audience}/token"));
        let fault = self.chaos.pick(&[Fault::AssertionFails, Fault::AssertionStalls], 100);
        if fault.is_some() {
            self.disturb();
        }
        let assertion = self.assertions.issue(audience);
        self.checks.minted(vec![(assertion.clone(), Addressee::Issuer(audience))]);
        let given = if fault == Some(Fault::AssertionFails) { Err(broken()) } else { Ok(assertion.into()) };
        let after = if fault == Some(Fault::AssertionStalls) { LONG } else { self.soon() };
        self.reply(at, after, auth::Input::Asserted(step, given));
    }
}

/// Returns the step of an output that waits for an answer.
const fn kind_of(output: &auth::Output) -> Option<(StepId, StepKind)> {
    Some(match output {
        auth::Output::Lease(step, ..) => (*step, StepKind::Lease),
        auth::Output::Load(step, _) => (*step, StepKind::Load),
        auth::Output::Save(step, ..) => (*step, StepKind::Save),
        auth::Output::Listen(step, _) => (*step, StepKind::Listen),
        auth::Output::Browse(step, _) | auth::Output::ShowCode(step, _) => (*step, StepKind::Page),
        auth::Output::NewKey(step, _) => (*step, StepKind::Key),
        auth::Output::Sign(step, _) => (*step, StepKind::Signature),
        auth::Output::Assert(step, _) => (*step, StepKind::Assertion),
        _ => return None,
    })
}

fn broken() -> StoreFault {
    StoreFault("the disk is full".into())
}
