//! Web pages that the user opens for a server of 2025-11-25, and the calls that wait for them
//! (2025-11-25 elicitation, url mode). A server asks in a request, or refuses a call with `-32042`
//! until pages are complete. The engine opens no page: the application does, with the consent of
//! the user.

use super::call_table::{CallOwner, CallStage, CallState, CallTable, ElicitedPage};
use super::ctx::Ctx;
use super::env::ClientEnv;
use super::{Client, Event, Timer};
use crate::client::call_table::CallReach;
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
    /// The server asks the user to open a page, in a request: its completion may be notified.
    pub(super) fn on_question(&mut self, cx: &Ctx, request: &InputRequest) {
        if let InputRequest::Elicitation(ElicitRequest::Url(UrlRequest { elicitation_id: Some(id), .. })) = request
            && cx.env.has_elicitation_ids()
        {
            self.learn(cx, id);
        }
    }

    /// Adds an id. At the limit it forgets the oldest one that no call waits for.
    fn learn(&mut self, cx: &Ctx, id: &str) {
        if self.0.iter().any(|known| known == id) {
            return;
        }
        if self.0.len() >= cx.env.config.limits.client.max_elicitations {
            let Some(oldest) = self.0.iter().position(|known| !cx.calls.awaits_page(known)) else { return };
            self.0.remove(oldest);
        }
        self.0.push_back(id.into());
    }

    /// Handles the error of a call that needs pages to be complete. Returns false if it is no such
    /// error, or one that the client must pass on.
    pub(super) fn on_error(&mut self, cx: &mut Ctx, call: CallId, error: &ErrorObject) -> bool {
        if error.code != code::URL_ELICITATION_REQUIRED || !cx.env.has_elicitation_ids() {
            return false;
        }
        if !cx.env.config.capabilities.elicits_urls() {
            cx.env.diagnose(DiagnosticKind::MissingCapability, error.message.as_str());
            return false;
        }
        let is_first = |state: &CallState| state.owner == CallOwner::Application && state.reached < CallReach::Elicited;
        if !cx.calls.get(call).is_some_and(is_first) {
            return false;
        }
        let pages = match read_pages(&mut cx.env, error.data.as_ref()) {
            Ok(pages) => pages,
            Err(e) => {
                cx.env.diagnose(DiagnosticKind::BadParams, format!("{}: {e}", error.code));
                return false;
            }
        };
        let limits = &cx.env.config.limits.client;
        let is_full = cx.questions.len() + pages.len() > limits.max_inputs
            || cx.calls.awaited_pages() + pages.len() > limits.max_elicitations;
        if is_full {
            cx.env.diagnose(DiagnosticKind::TooManyInputs, error.code.to_string());
            return false;
        }
        cx.calls.leave_request(&mut cx.env, call);
        let mut asked = Vec::new();
        for page in pages {
            let id = page.elicitation_id.clone().unwrap_or_default();
            let question = InputRequest::Elicitation(ElicitRequest::Url(page));
            let consent = cx.questions.ask_for_call(&mut cx.env, question, call);
            asked.push(ElicitedPage { id, consent: Some(consent), is_complete: false });
        }
        let ids: Vec<String> = asked.iter().map(|page| page.id.clone()).collect();
        cx.calls.set_stage(call, CallStage::Eliciting(asked));
        ids.iter().for_each(|id| self.learn(cx, id));
        cx.update_clock(call);
        true
    }

    /// Handles `notifications/elicitation/complete`. Returns the id of the page, if the server has
    /// named it.
    pub(super) fn on_notification(&mut self, env: &mut ClientEnv, params: &Object) -> Option<String> {
        match params.required::<String>("elicitationId") {
            Ok(id) if self.complete(&id) => {
                env.event(Event::Elicited(id.clone()));
                return Some(id);
            }
            Ok(id) => env.diagnose(DiagnosticKind::UnknownElicitation, id),
            Err(e) => env.diagnose(DiagnosticKind::BadParams, format!("notifications/elicitation/complete: {e}")),
        }
        None
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

impl ClientEnv {
    /// Returns whether pages have ids, which the server can name again.
    pub(super) fn has_elicitation_ids(&self) -> bool {
        self.version().is_some_and(|version| version.rules().elicitation_modes && version.era() == Era::Legacy)
    }
}

impl CallTable {
    /// Handles the consent of the user to a page that a call needs.
    fn consent(&mut self, env: &mut ClientEnv, call: CallId, key: InputKey) {
        if let Some(page) = self.pages_mut(call).find(|page| page.consent == Some(key)) {
            page.consent = None;
        }
        if self.pages_mut(call).all(|page| page.consent.is_none()) {
            let until = env.now + env.config.limits.client.elicitation_timeout;
            env.timers.set(Timer::Elicitation(call), Some(until));
        }
    }

    /// Queues a call again, once, after every page that it needs is complete. Returns whether it
    /// does.
    fn requeue_elicited(&mut self, env: &mut ClientEnv, call: CallId) -> bool {
        let Some(state) = self.get_mut(call) else { return false };
        let CallStage::Eliciting(pages) = &state.stage else { return false };
        if pages.iter().any(|page| page.consent.is_some() || !page.is_complete) {
            return false;
        }
        state.reached = CallReach::Elicited;
        state.stage = CallStage::Queued;
        env.timers.set(Timer::Elicitation(call), None);
        true
    }
}

impl Client {
    /// Handles the decision of the user about a page that a call needs.
    pub(super) fn on_consent(&mut self, call: CallId, key: InputKey, result: Result<ElicitResult, ErrorObject>) {
        match result {
            Ok(ElicitResult::Accept(_)) => {
                self.cx.calls.consent(&mut self.cx.env, call, key);
                self.repeat_if_complete(call);
            }
            Ok(ElicitResult::Decline) => self.end(call, Err(CallError::NoConsent { declined: true })),
            Ok(ElicitResult::Cancel) => self.end(call, Err(CallError::NoConsent { declined: false })),
            Err(error) => self.end(call, Err(CallError::Input(error))),
        }
    }

    /// Handles the completion of a page, which the server or the application has announced.
    pub(super) fn on_page_complete(&mut self, id: &str) {
        self.elicitations.complete(id);
        for call in self.cx.calls.ids() {
            self.cx.calls.pages_mut(call).filter(|page| page.id == id).for_each(|page| page.is_complete = true);
            self.repeat_if_complete(call);
        }
    }

    fn repeat_if_complete(&mut self, call: CallId) {
        if self.cx.calls.requeue_elicited(&mut self.cx.env, call) {
            self.cx.update_clock(call);
            self.send_admitted(call);
        }
    }

    /// Ends the calls that wait for pages: the session that named the pages is over.
    pub(super) fn end_eliciting_calls(&mut self) {
        self.elicitations.clear();
        for call in self.cx.calls.eliciting() {
            self.end(call, Err(CallError::SessionEnded));
        }
    }
}

/// Reads the pages in the data of the error: at least one, each with an id of its own.
fn read_pages(env: &mut ClientEnv, data: Option<&RawJson>) -> Result<Vec<UrlRequest>, DecodeError> {
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
pub(super) fn check_page(env: &mut ClientEnv, page: &UrlRequest) -> Result<(), DecodeError> {
    page.check()?;
    if page.elicitation_id.as_ref().is_some_and(|id| id.len() > env.config.limits.frame.max_id) {
        return Err(DecodeError::new("`elicitationId` is too long"));
    }
    if !page.is_secure() {
        env.diagnose(DiagnosticKind::InsecureUrl, page.host().unwrap_or_default());
    }
    Ok(())
}
