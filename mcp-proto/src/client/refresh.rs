//! The tools of the server in the engine (2026-07-28 transports, client behaviour): each list of them that passes is learnt from, calls get
//! their header fields, and a call that is refused for its fields (`-32020`) is made a second time once the list was fetched anew.
//!
//! The list is fetched by a call of the engine's own, page by page. It travels, waits and ends like any other; only nothing of it is told.

use super::Client;
use super::calls::{CallOwner, Stage};
use super::tools::Tools;
use crate::call::{Method, Paged, Pages, RawCall, RawResult};
use crate::error::{CallError, DiagnosticKind};
use crate::input::CallId;
use crate::model::tools;
use crate::rpc::{DecodeError, EncodeError, ErrorObject, Object, RawJson, code};
use crate::version::{Era, ProtocolVersion};
use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// The method whose results are learnt from.
const LIST: &str = "tools/list";
/// The method whose requests have the fields.
const CALL: &str = "tools/call";
/// Characters of a tool's name that are shown.
const SHOWN: usize = 200;

/// What is known of the tools, and the list that is being fetched anew.
#[derive(Debug, Default)]
pub(super) struct Catalogue {
    tools: Tools,
    fetch: Option<Fetch>,
    /// The calls that wait for it.
    waiting: BTreeSet<CallId>,
    /// The calls that have been made a second time: there is no third.
    repeated: BTreeSet<CallId>,
}

/// The walk through the list.
#[derive(Debug)]
struct Fetch {
    pages: Pages<Cursors>,
    call: CallId,
}

/// `tools/list`, of which no more is read than where the next page is.
struct Cursors;

impl Method for Cursors {
    type Output = Option<String>;

    fn decode(result: &RawResult) -> Result<Option<String>, DecodeError> {
        Object::read(&result.json)?.optional("nextCursor")
    }
}

impl Paged for Cursors {
    type Element = ();

    fn page(cursor: Option<String>) -> (Vec<()>, Option<String>) {
        (Vec::new(), cursor)
    }
}

impl Catalogue {
    /// Returns the call of the engine whose end this call waits for.
    pub(super) fn awaited(&self, call: CallId) -> Option<CallId> {
        let waits = self.waiting.contains(&call);
        self.fetch.as_ref().map(|fetch| fetch.call).filter(|_| waits)
    }

    /// Returns the number of calls of the engine that have not ended.
    pub(super) fn running(&self) -> usize {
        usize::from(self.fetch.is_some())
    }

    /// Returns whether the server calls the tool of a call read-only or idempotent.
    pub(super) fn is_repeatable(&self, call: &RawCall) -> bool {
        call.method == CALL && call.params.as_ref().is_ok_and(|params| self.tools.is_repeatable(params))
    }
}

impl Client {
    /// The result of a call, as the application gets it. Not on duplex connections, where nothing of it would be used.
    pub(super) fn learn_tools(&mut self, call: CallId, result: RawJson, version: ProtocolVersion) -> RawJson {
        if self.is_duplex() || self.calls.get(&call).is_none_or(|state| state.raw.method != LIST) {
            return result;
        }
        let max = self.config.limits.client.max_tools;
        let page = self.catalogue.tools.learn(&result, version.era() == Era::Modern, max);
        for (name, why) in page.invalid {
            let name: String = name.chars().take(SHOWN).collect();
            self.diagnose(DiagnosticKind::InvalidTool, format!("{name}: {why}"));
        }
        page.without.unwrap_or(result)
    }

    /// The fields that mirror arguments of a request.
    ///
    /// # Errors
    /// As [`Tools::headers`].
    pub(super) fn mirrored(
        &self,
        method: &str,
        params: &Object,
        version: ProtocolVersion,
    ) -> Result<Vec<(String, String)>, EncodeError> {
        match (method, version.era()) {
            (CALL, Era::Modern) if !self.is_duplex() => self.catalogue.tools.headers(params),
            _ => Ok(Vec::new()),
        }
    }

    /// Whether a call that was answered with this error waits for the list and is then made a second time. Its clock runs on.
    pub(super) fn refreshes(&mut self, call: CallId, error: &ErrorObject) -> bool {
        let is_new = !self.catalogue.repeated.contains(&call);
        let is_tool = self.calls.get(&call).is_some_and(|state| state.raw.method == CALL);
        // In an older revision the code is the server's own, and what it answers so may have run.
        let is_mismatch = error.code == code::HEADER_MISMATCH && !self.is_legacy();
        if !is_mismatch || !is_new || !is_tool || self.is_duplex() {
            return false;
        }
        self.leave_request(call);
        self.set_stage(call, Stage::Mismatched(error.clone()));
        self.catalogue.waiting.insert(call);
        if self.catalogue.fetch.is_none() {
            self.fetch(Pages::new(Cursors::first(), self.config.limits.client.max_pages));
        }
        // The list may be waiting for credentials already.
        self.update_clock(call);
        true
    }

    /// Asks for the next page; at the end of the list the calls that wait for it go out.
    fn fetch(&mut self, mut pages: Pages<Cursors>) {
        match pages.next() {
            Some(page) => {
                let call = self.admit(page.into_raw(), CallOwner::Engine);
                self.catalogue.fetch = Some(Fetch { pages, call });
                self.send_admitted(call);
            }
            None => {
                for call in core::mem::take(&mut self.catalogue.waiting) {
                    self.catalogue.repeated.insert(call);
                    self.send_admitted(call);
                }
            }
        }
    }

    /// A call of the application has ended. The engine stops fetching the list if no other call waits for it.
    pub(super) fn leave_catalogue(&mut self, call: CallId) {
        self.catalogue.repeated.remove(&call);
        if self.catalogue.waiting.remove(&call) && self.catalogue.waiting.is_empty() {
            self.stop_fetching();
        }
    }

    /// The call for a page of the list has ended.
    pub(super) fn on_page(&mut self, outcome: Result<RawResult, CallError>) {
        if let Some(fetch) = self.catalogue.fetch.take() {
            self.on_fetched(fetch.pages, outcome);
        }
    }

    fn on_fetched(&mut self, mut pages: Pages<Cursors>, outcome: Result<RawResult, CallError>) {
        let outcome = outcome.and_then(|result| Ok(Cursors::decode(&result)?)).and_then(|page| pages.fetched(Ok(page)));
        match outcome {
            _ if self.catalogue.waiting.is_empty() => {}
            Ok(()) => self.fetch(pages),
            Err(e) => {
                self.diagnose(DiagnosticKind::RefreshFailed, e.to_string());
                for call in core::mem::take(&mut self.catalogue.waiting) {
                    let stage = self.set_stage(call, Stage::Queued);
                    if let Some(Stage::Mismatched(error)) = stage {
                        self.end(call, Err(CallError::Rpc(error)));
                    }
                }
            }
        }
    }

    /// Nobody waits for the list any more.
    fn stop_fetching(&mut self) {
        if let Some(fetch) = &self.catalogue.fetch {
            let call = fetch.call;
            self.on_cancel(call, None);
        }
    }

    /// The connection is another one, on which the calls that wait for the list are made `again`; or there will be none.
    pub(super) fn forget_tools(&mut self, again: bool) {
        for call in core::mem::take(&mut self.catalogue.waiting).into_iter().filter(|_| again) {
            self.set_stage(call, Stage::Queued);
        }
        self.stop_fetching();
        self.catalogue.tools.clear();
    }

    fn set_stage(&mut self, call: CallId, stage: Stage) -> Option<Stage> {
        self.calls.get_mut(&call).map(|state| core::mem::replace(&mut state.stage, stage))
    }

    /// The clocks that go by what this call waits for.
    pub(super) fn update_clocks_of(&mut self, call: CallId) {
        if self.is_own(call) {
            self.update_clocks();
        } else {
            self.update_clock(call);
        }
    }

    /// Returns whether the engine itself made this call.
    pub(super) fn is_own(&self, call: CallId) -> bool {
        self.calls.get(&call).is_some_and(|state| state.owner == CallOwner::Engine)
    }

    /// Calls of the engine's own that have not ended.
    pub(super) fn own_calls(&self) -> usize {
        self.catalogue.running()
    }
}

impl Cursors {
    fn first() -> crate::call::Call<Self> {
        crate::call::Call::from_raw(tools::list().into_raw())
    }
}
