//! The tools of the server, as far as the engine knows them (2026-07-28 transports, client
//! behaviour). The engine learns from every list of tools that it receives. It adds header fields
//! to calls, and validates their results. If the server refuses a call for its fields (`-32020`),
//! the engine fetches the list again and then sends the call a second time.
//!
//! The engine fetches the list with its own call, page by page. This call is sent, waits and ends
//! like any other, but the application receives no event of it.

use super::Client;
use super::call_table::{CallOwner, CallStage, CallState, Errand};
use super::env::Env;
use super::tools::{Lesson, Tools};
use crate::call::{Method, Paged, Pages, RawCall, RawResult};
use crate::error::{CallError, DiagnosticKind};
use crate::input::CallId;
use crate::model::tools;
use crate::rpc::{DecodeError, EncodeError, ErrorObject, Object, RawJson, code};
use crate::schema::{BadSchema, Checker, Validator};
use crate::version::{Era, ProtocolVersion};
use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// The method with the results from which the engine learns.
const LIST: &str = "tools/list";
/// The method with the requests that carry the fields.
pub(super) const CALL: &str = "tools/call";
/// Characters of a tool's name in a diagnostic.
pub(super) const SHOWN: usize = 200;

/// The known tools, and the fetch of their list that is in progress.
#[derive(Debug, Default)]
pub(super) struct Catalogue {
    tools: Tools,
    fetch: Option<Fetch>,
    /// The calls that wait for the fetch.
    waiting: BTreeSet<CallId>,
    /// The calls that were sent a second time. The engine does not send a call a third time.
    repeated: BTreeSet<CallId>,
}

/// A fetch of the list.
#[derive(Debug)]
struct Fetch {
    pages: Pages<Cursors>,
    call: CallId,
}

/// `tools/list`. The engine decodes only the cursor of the next page.
struct Cursors;

impl Method for Cursors {
    type Output = Option<String>;

    fn decode(result: RawResult) -> Result<Option<String>, DecodeError> {
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
    /// Returns the call of the engine that must end before this call continues.
    pub(super) fn awaited(&self, call: CallId) -> Option<CallId> {
        let waits = self.waiting.contains(&call);
        self.fetch.as_ref().map(|fetch| fetch.call).filter(|_| waits)
    }

    /// Returns whether a call may run twice: the application permits it, or the server calls the
    /// tool read-only or idempotent.
    pub(super) fn is_repeatable(&self, call: &RawCall) -> bool {
        let is_safe = |params| self.tools.is_repeatable(params);
        call.options.repeatable || call.method == CALL && call.params.as_ref().is_ok_and(is_safe)
    }

    /// Learns from the result of a call. Returns the result for the application. On a duplex
    /// connection the engine only uses the output schemas, and only if it validates results.
    pub(super) fn learn(
        &mut self,
        env: &mut Env,
        call: Option<&CallState>,
        result: RawJson,
        version: ProtocolVersion,
    ) -> RawJson {
        let lesson = Lesson {
            mirrored: !env.is_duplex() && version.era() == Era::Modern,
            hints: !env.is_duplex(),
            schemas: env.config.validator().is_some(),
            max: env.config.limits.client.max_tools,
        };
        if !lesson.hints && !lesson.schemas || call.is_none_or(|call| call.raw.method != LIST) {
            return result;
        }
        let page = self.tools.learn(&result, &lesson);
        for (name, why) in page.invalid {
            let name: String = name.chars().take(SHOWN).collect();
            env.diagnose(DiagnosticKind::InvalidTool, format!("{name}: {why}"));
        }
        page.without.unwrap_or(result)
    }

    /// Returns what checks the structured content of these params of `tools/call`. `None` if the
    /// server declared nothing, or the tool was not listed.
    pub(super) fn checker(
        &mut self,
        env: &Env,
        validator: &Validator,
        params: &Object,
    ) -> Option<Result<Checker, BadSchema>> {
        self.tools.checker(validator, params, env.config.limits.client.max_compiled_schemas)
    }

    /// Returns the header fields that mirror arguments of a request.
    ///
    /// # Errors
    /// As [`Tools::headers`].
    pub(super) fn headers(
        &self,
        env: &Env,
        method: &str,
        params: &Object,
        version: ProtocolVersion,
    ) -> Result<Vec<(String, String)>, EncodeError> {
        match (method, version.era()) {
            (CALL, Era::Modern) if !env.is_duplex() => self.tools.headers(params),
            _ => Ok(Vec::new()),
        }
    }

    /// Removes a call of the application that has ended. Returns the call of the engine that is no
    /// longer needed, since no other call waits for the list.
    pub(super) fn leave(&mut self, call: CallId) -> Option<CallId> {
        self.repeated.remove(&call);
        let was_last = self.waiting.remove(&call) && self.waiting.is_empty();
        self.fetch.as_ref().map(|fetch| fetch.call).filter(|_| was_last)
    }
}

impl Client {
    /// Returns whether a call that failed with this error waits for the list. The engine then sends
    /// it a second time. Its clock continues to run.
    pub(super) fn refreshes(&mut self, call: CallId, error: &ErrorObject) -> bool {
        let is_new = !self.catalogue.repeated.contains(&call);
        let is_tool = self.calls.get(call).is_some_and(|state| state.raw.method == CALL);
        // In an older revision the server defines the meaning of this code, and the call may have
        // run.
        let is_mismatch = error.code == code::HEADER_MISMATCH && !self.env.is_legacy();
        if !is_mismatch || !is_new || !is_tool || self.env.is_duplex() {
            return false;
        }
        self.calls.leave_request(&mut self.env, call);
        self.calls.set_stage(call, CallStage::Mismatched(error.clone().into()));
        self.catalogue.waiting.insert(call);
        if self.catalogue.fetch.is_none() {
            self.fetch_pages(Pages::new(Cursors::first(), self.env.config.limits.client.max_pages));
        }
        // The fetch may already wait for credentials.
        self.update_clock(call);
        true
    }

    /// Fetches the next page. At the end of the list, sends the calls that wait for it.
    fn fetch_pages(&mut self, mut pages: Pages<Cursors>) {
        match pages.next() {
            Some(page) => {
                let call = self.admit(page.into_raw(), CallOwner::Engine(Errand::Page));
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

    /// Handles the end of the call for a page of the list.
    pub(super) fn on_page(&mut self, outcome: Result<RawResult, CallError>) {
        if let Some(fetch) = self.catalogue.fetch.take() {
            self.on_fetched(fetch.pages, outcome);
        }
    }

    fn on_fetched(&mut self, mut pages: Pages<Cursors>, outcome: Result<RawResult, CallError>) {
        let outcome = outcome.and_then(|result| Ok(Cursors::decode(result)?)).and_then(|page| pages.fetched(Ok(page)));
        match outcome {
            _ if self.catalogue.waiting.is_empty() => {}
            Ok(()) => self.fetch_pages(pages),
            Err(e) => {
                self.env.diagnose(DiagnosticKind::RefreshFailed, e.to_string());
                for call in core::mem::take(&mut self.catalogue.waiting) {
                    let stage = self.calls.set_stage(call, CallStage::Queued);
                    if let Some(CallStage::Mismatched(error)) = stage {
                        self.end(call, Err(CallError::Rpc(*error)));
                    }
                }
            }
        }
    }

    /// Stops the fetch, since no call waits for the list any more.
    fn stop_fetching(&mut self) {
        if let Some(fetch) = &self.catalogue.fetch {
            let call = fetch.call;
            self.on_cancel(call, None);
        }
    }

    /// Clears the known tools and stops the fetch, since the connection has changed or ended.
    /// `again`: the calls that wait for the list are sent on the new connection.
    pub(super) fn forget_tools(&mut self, again: bool) {
        for call in core::mem::take(&mut self.catalogue.waiting).into_iter().filter(|_| again) {
            self.calls.set_stage(call, CallStage::Queued);
        }
        self.stop_fetching();
        self.catalogue.tools.clear();
    }
}

impl Cursors {
    fn first() -> crate::call::Call<Self> {
        crate::call::Call::from_raw(tools::list().into_raw())
    }
}
