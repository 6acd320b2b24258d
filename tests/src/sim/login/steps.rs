//! The steps of a login: the answers of the store, of the listener and of the user.

use super::super::fault::Fault;
use super::servers::form;
use super::store::ProcessId;
use super::world::{LONG, SimEvent, World};
use mcp_proto::auth::{self, Lease, SaveFault, StepId, StoreFault};
use std::time::Duration;

impl World {
    pub(super) fn step(&mut self, at: usize, output: auth::Output) {
        let id = self.processes[at].id;
        let after = self.soon();
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
                self.processes[at].listener = Some(step);
                let bound = match self.chaos.hit(Fault::NoListener, 100) {
                    true => Err(StoreFault("no port is free".into())),
                    false => Ok(format!("http://{}:{}{}", listen.host.as_str(), 4000 + id % 100, listen.path)),
                };
                self.reply(at, after, auth::Input::Listening(step, bound));
            }
            auth::Output::Browse(step, page) => self.browse(at, step, &page),
            auth::Output::Finish(step, _) => {
                let process = &mut self.processes[at];
                process.listener.take_if(|open| *open == step);
                process.pages.retain(|open| *open != step);
            }
            _ => {}
        }
    }

    fn reply(&mut self, at: usize, after: Duration, input: auth::Input) {
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

    /// A user sees a page.
    fn browse(&mut self, at: usize, step: StepId, page: &auth::Browse) {
        self.report.pages += 1;
        let process = &mut self.processes[at];
        process.pages.push(step);
        process.pages_shown += 1;
        let most = 2 + process.logins + 2 * process.calls.len() as u64;
        assert!(process.pages_shown <= most, "{} pages for {} calls", process.pages_shown, process.calls.len());
        let (endpoint, query) = page.url.split_once('?').expect("a query");
        let query = form(query);
        let after = Duration::from_millis(500 + self.rng.below(20_000));
        let to = |query: &str| auth::Input::Redirected(step, format!("{}?{query}", page.redirect_uri));
        let faults = [
            Fault::UserDeclines,
            Fault::UserRefuses,
            Fault::PastedTwice,
            Fault::AnsweredLate,
            Fault::WrongState,
            Fault::WrongIssuer,
        ];
        let fault = self.chaos.pick(&faults, 300);
        if fault.is_some() {
            self.disturb();
        }
        if fault == Some(Fault::UserDeclines) {
            return self.reply(at, after, auth::Input::Declined(step));
        }
        let iss = |port: u16| format!("&iss=http%3A%2F%2F127.0.0.1%3A{port}");
        let issuer = self.issuers.iter_mut().find(|issuer| endpoint.starts_with(&issuer.url())).expect("an issuer");
        let own_iss = if self.scenario.settings.names_issuer { iss(issuer.port) } else { String::new() };
        if fault == Some(Fault::UserRefuses) {
            let refusal = format!("error=access_denied&state={}{own_iss}", query["state"]);
            return self.reply(at, after, to(&refusal));
        }
        let Some(answer) = issuer.authorize(&query) else { return self.reply(at, after, auth::Input::Declined(step)) };
        self.checks.minted(std::mem::take(&mut issuer.secrets));
        match fault {
            Some(Fault::AnsweredLate) => self.reply(at, LONG, to(&answer)),
            Some(Fault::PastedTwice) => {
                self.reply(at, after, to(&answer));
                self.reply(at, after + Duration::from_millis(1), to(&answer));
            }
            Some(Fault::WrongState) => {
                self.reply(at, after / 2, to("code=other&state=other"));
                self.reply(at, after, to(&answer));
            }
            Some(Fault::WrongIssuer) => {
                let other = answer.split("&iss=").next().unwrap_or_default().to_owned() + &iss(6666);
                self.reply(at, after, to(&other));
            }
            _ => self.reply(at, after, to(&answer)),
        }
    }
}

fn broken() -> StoreFault {
    StoreFault("the disk is full".into())
}
