//! Web pages that the user opens for a server of 2025-11-25, and the calls that wait for them
//! (2025-11-25 elicitation, url mode). A server asks in a request, or refuses a call with `-32042`
//! until pages are complete. The engine opens no page: the application does, with the consent of
//! the user.

use super::call_table::{CallOwner, CallStage, ElicitedPage};
use super::env::Env;
use super::{Client, Event, Timer};
use crate::error::{CallError, DiagnosticKind};
use crate::input::{CallId, InputKey, InputRequest};
use crate::model::elicitation::{ElicitRequest, ElicitResult, UrlRequest};
use crate::rpc::{DecodeError, ErrorObject, Object, RawJson, code};
use crate::version::Era;
use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// The ids of the pages that the server has named and that are not complete, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Elicitations(VecDeque<String>);

impl Elicitations {
    /// Adds an id. At the limit it forgets the oldest one that no call waits for.
    fn learn(&mut self, env: &Env, id: &str, is_awaited: impl Fn(&str) -> bool) {
        if self.0.iter().any(|known| known == id) {
            return;
        }
        if self.0.len() >= env.config.limits.client.max_elicitations {
            let Some(oldest) = self.0.iter().position(|known| !is_awaited(known)) else { return };
            self.0.remove(oldest);
        }
        self.0.push_back(id.into());
    }

    /// Removes the id of a page that is complete. Returns whether it was known.
    fn complete(&mut self, id: &str) -> bool {
        let known = self.0.iter().position(|known| known == id);
        known.and_then(|at| self.0.remove(at)).is_some()
    }

    /// Forgets every id: the server that named them notifies the client no more.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}

impl Env {
    /// Returns whether pages have ids, which the server can name again.
    fn has_elicitation_ids(&self) -> bool {
        self.version().is_some_and(|version| version.rules().elicitation_modes && version.era() == Era::Legacy)
    }
}

impl Client {
    /// The server asks the user to open a page, in a request: its completion may be notified.
    pub(super) fn learn_page(&mut self, request: &InputRequest) {
        if let InputRequest::Elicitation(ElicitRequest::Url(UrlRequest { elicitation_id: Some(id), .. })) = request
            && self.env.has_elicitation_ids()
        {
            let calls = &self.calls;
            self.elicitations.learn(&self.env, id, |id| calls.awaits_page(id));
        }
    }

    /// Handles the error of a call that needs pages to be complete. Returns false if it is no such
    /// error, or one that the client must pass on.
    pub(super) fn on_pages_required(&mut self, call: CallId, error: &ErrorObject) -> bool {
        if error.code != code::URL_ELICITATION_REQUIRED || !self.env.has_elicitation_ids() {
            return false;
        }
        if !self.env.config.capabilities.elicits_urls() {
            self.env.diagnose(DiagnosticKind::MissingCapability, error.message.as_str());
            return false;
        }
        let is_first =
            self.calls.get(call).is_some_and(|state| state.owner == CallOwner::Application && !state.elicited);
        if !is_first {
            return false;
        }
        let pages = match read_pages(&mut self.env, error.data.as_ref()) {
            Ok(pages) => pages,
            Err(e) => {
                self.env.diagnose(DiagnosticKind::BadParams, format!("{}: {e}", error.code));
                return false;
            }
        };
        let limits = &self.env.config.limits.client;
        let is_full = self.questions.len() + pages.len() > limits.max_inputs
            || self.calls.awaited_pages() + pages.len() > limits.max_elicitations;
        if is_full {
            self.env.diagnose(DiagnosticKind::TooManyInputs, error.code.to_string());
            return false;
        }
        self.calls.leave_request(&mut self.env, call);
        let mut asked = Vec::new();
        for page in pages {
            let id = page.elicitation_id.clone().unwrap_or_default();
            let question = InputRequest::Elicitation(ElicitRequest::Url(page));
            let consent = self.questions.ask_for_call(&mut self.env, question, call);
            asked.push(ElicitedPage { id, consent: Some(consent), is_complete: false });
        }
        let ids: Vec<String> = asked.iter().map(|page| page.id.clone()).collect();
        self.calls.set_stage(call, CallStage::Eliciting(asked));
        let calls = &self.calls;
        ids.iter().for_each(|id| self.elicitations.learn(&self.env, id, |id| calls.awaits_page(id)));
        self.update_clock(call);
        true
    }

    /// Handles the decision of the user about a page that a call needs.
    pub(super) fn on_consent(&mut self, call: CallId, key: InputKey, result: Result<ElicitResult, ErrorObject>) {
        match result {
            Ok(ElicitResult::Accept(_)) => {
                if let Some(page) = self.calls.pages_mut(call).find(|page| page.consent == Some(key)) {
                    page.consent = None;
                }
                if self.calls.pages_mut(call).all(|page| page.consent.is_none()) {
                    let until = self.env.now + self.env.config.limits.client.elicitation_timeout;
                    self.env.timers.set(Timer::Elicitation(call), Some(until));
                }
                self.repeat_if_complete(call);
            }
            Ok(ElicitResult::Decline) => self.end(call, Err(CallError::NoConsent { declined: true })),
            Ok(ElicitResult::Cancel) => self.end(call, Err(CallError::NoConsent { declined: false })),
            Err(error) => self.end(call, Err(CallError::Input(error))),
        }
    }

    /// Handles `notifications/elicitation/complete`. Returns false if the revision does not have
    /// it.
    pub(super) fn on_page_complete(&mut self, params: &Object) -> bool {
        if !self.env.has_elicitation_ids() {
            return false;
        }
        match params.required::<String>("elicitationId") {
            Ok(id) if self.elicitations.complete(&id) => {
                self.env.event(Event::Elicited(id.clone()));
                self.complete_page(&id);
            }
            Ok(id) => self.env.diagnose(DiagnosticKind::UnknownElicitation, id),
            Err(e) => self.env.diagnose(DiagnosticKind::BadParams, format!("notifications/elicitation/complete: {e}")),
        }
        true
    }

    /// The application says that a page is complete.
    pub(super) fn on_elicited(&mut self, id: &str) {
        self.elicitations.complete(id);
        self.complete_page(id);
    }

    fn complete_page(&mut self, id: &str) {
        let waiting: Vec<CallId> = self.calls.iter().map(|(call, _)| call).collect();
        for call in waiting {
            self.calls.pages_mut(call).filter(|page| page.id == id).for_each(|page| page.is_complete = true);
            self.repeat_if_complete(call);
        }
    }

    /// Sends a call again, once, after every page that it needs is complete.
    fn repeat_if_complete(&mut self, call: CallId) {
        let Some(state) = self.calls.get_mut(call) else { return };
        let CallStage::Eliciting(pages) = &state.stage else { return };
        if pages.iter().any(|page| page.consent.is_some() || !page.is_complete) {
            return;
        }
        state.elicited = true;
        state.reached = true;
        state.stage = CallStage::Queued;
        self.env.timers.set(Timer::Elicitation(call), None);
        self.update_clock(call);
        self.send_admitted(call);
    }

    /// Ends the calls that wait for pages: the session that named the pages is over.
    pub(super) fn end_eliciting_calls(&mut self) {
        self.elicitations.clear();
        let is_eliciting = |state: &super::call_table::CallState| matches!(state.stage, CallStage::Eliciting(_));
        let waiting: Vec<CallId> =
            self.calls.iter().filter(|(_, state)| is_eliciting(state)).map(|(call, _)| call).collect();
        waiting.into_iter().for_each(|call| self.end(call, Err(CallError::SessionEnded)));
    }
}

/// Reads the pages in the data of the error: at least one, each with an id of its own.
fn read_pages(env: &mut Env, data: Option<&RawJson>) -> Result<Vec<UrlRequest>, DecodeError> {
    let mut pages: Vec<UrlRequest> = Vec::new();
    for json in Object::read_opt(data)?.array("elicitations")? {
        let ElicitRequest::Url(page) = ElicitRequest::read(&Object::read(&json)?)? else {
            return Err(DecodeError::new("an elicitation is not in url mode"));
        };
        if page.elicitation_id.is_none() {
            return Err(DecodeError::new("an elicitation has no id"));
        }
        check_page(env, &page)?;
        if pages.iter().any(|other| other.elicitation_id == page.elicitation_id) {
            return Err(DecodeError::new("two elicitations have the same id"));
        }
        pages.push(page);
    }
    if pages.is_empty() { Err(DecodeError::new("there are no elicitations")) } else { Ok(pages) }
}

/// Checks a page that the server names. One that others can read or change is reported.
pub(super) fn check_page(env: &mut Env, page: &UrlRequest) -> Result<(), DecodeError> {
    page.check()?;
    if page.elicitation_id.as_ref().is_some_and(|id| id.len() > env.config.limits.frame.max_id) {
        return Err(DecodeError::new("`elicitationId` is too long"));
    }
    if !page.is_secure() {
        env.diagnose(DiagnosticKind::InsecureUrl, page.host().unwrap_or_default());
    }
    Ok(())
}
