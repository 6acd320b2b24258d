//! The user: a page in a browser, and a code at another device.

use super::super::fault::Fault;
use super::servers::form;
use super::world::{LONG, SimEvent, World};
use mcp_proto::auth::{self, DeviceCode, StepId};
use std::time::Duration;

impl World {
    /// A page or a code is shown: one for each login, and at most three for a request, whose token
    /// may be missing, then have too few scopes, and then die. A start is a request.
    fn shown_to_user(&mut self, at: usize) {
        self.report.pages += 1;
        let process = &mut self.processes[at];
        process.pages_shown += 1;
        let most = process.logins + 3 * (1 + process.calls.len() as u64);
        assert!(process.pages_shown <= most, "{} pages for {} calls", process.pages_shown, process.calls.len());
    }

    /// Returns what goes wrong with a user.
    fn user_fault(&mut self, faults: &[Fault]) -> Option<Fault> {
        let fault = self.chaos.pick(faults, 400);
        if fault.is_some() {
            self.disturb();
        }
        fault
    }

    /// A user sees a page.
    pub(super) fn browse(&mut self, at: usize, step: StepId, page: &auth::Browse) {
        self.shown_to_user(at);
        let (endpoint, query) = page.url.split_once('?').expect("a query");
        let query = form(query);
        let after = Duration::from_millis(500 + self.rng.below(20_000));
        let to = |query: &str| auth::Input::Redirected(step, format!("{}?{query}", page.redirect_uri).into());
        let fault = self.user_fault(&[
            Fault::UserDeclines,
            Fault::UserRefuses,
            Fault::PastedTwice,
            Fault::AnsweredLate,
            Fault::WrongState,
            Fault::WrongIssuer,
        ]);
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

    /// A user sees a code, and enters it at another device.
    pub(super) fn show_code(&mut self, at: usize, step: StepId, code: &DeviceCode) {
        self.shown_to_user(at);
        let after = Duration::from_millis(500 + self.rng.below(20_000));
        let fault = self.user_fault(&[Fault::UserDeclines, Fault::UserRefuses, Fault::CodeForgotten]);
        if fault == Some(Fault::UserDeclines) {
            return self.reply(at, after, auth::Input::Declined(step));
        }
        if fault != Some(Fault::CodeForgotten) {
            let agrees = fault.is_none();
            self.later(after, SimEvent::Entered(code.user_code.expose().to_owned(), agrees));
        }
    }

    /// The user has entered a code.
    pub(super) fn entered(&mut self, user_code: &str, agrees: bool) {
        self.issuers.iter_mut().for_each(|issuer| issuer.enter(user_code, agrees));
    }
}
