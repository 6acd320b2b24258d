//! The fetch of the list of tools. If the server refuses a call for the header fields that mirror
//! its arguments (`-32020`), the engine fetches the list again and then sends the call a second
//! time (2026-07-28 transports, client behaviour).
//!
//! The engine fetches the list with its own call, page by page. This call is sent, waits and ends
//! like any other, but the application receives no event of it.

use super::call_table::{CallStage, Errand};
use super::ctx::Ctx;
use super::tools::CALL;
use crate::call::{Call, Method, PagedMethod, Pages, RawResult};
use crate::error::{CallError, DiagnosticKind};
use crate::input::{CallId, Change};
use crate::model::tools;
use crate::rpc::{DecodeError, ErrorObject, Object, code};
use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// The fetch that is in progress. The calls that wait for it are those at
/// [`CallStage::Mismatched`].
#[derive(Debug, Default)]
pub(super) struct Refresh {
    fetch: Option<ListFetch>,
}

/// A fetch of the list.
#[derive(Debug)]
struct ListFetch {
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

impl PagedMethod for Cursors {
    type Element = ();

    fn page(cursor: Option<String>) -> (Vec<()>, Option<String>) {
        (Vec::new(), cursor)
    }
}

impl Refresh {
    /// Returns whether a call that failed with this error waits for the list. The engine then sends
    /// it a second time, but never a third time. Its clock continues to run.
    pub(super) fn on_error(&mut self, cx: &mut Ctx, call: CallId, error: &ErrorObject) -> bool {
        // In an older revision the server defines the meaning of this code, and the call may have
        // run.
        let is_mismatch = error.code == code::HEADER_MISMATCH && !cx.env.is_legacy();
        let is_first = cx.calls.get(call).is_some_and(|state| state.raw.method == CALL && !state.refreshed);
        if !is_mismatch || !is_first || cx.env.is_duplex() {
            return false;
        }
        cx.calls.leave_request(&mut cx.env, call);
        cx.calls.mismatch(call, error.clone());
        if self.fetch.is_none() {
            cx.env.drop_changed(&Change::Tools);
            let first = Call::from_raw(tools::list().into_raw());
            self.fetch_page(cx, Pages::new(first, cx.env.config.limits.client.max_pages));
        }
        // The fetch may already wait for credentials.
        cx.update_clock(call);
        true
    }

    /// Fetches the next page. Returns false at the end of the list.
    fn fetch_page(&mut self, cx: &mut Ctx, mut pages: Pages<Cursors>) -> bool {
        let Some(page) = pages.next() else { return false };
        let call = cx.run_own(Errand::Page, page.into_raw());
        self.fetch = Some(ListFetch { pages, call });
        true
    }

    /// Handles the end of the call for a page. Returns the calls that no longer wait: each has to
    /// be sent again, or ends with its error.
    pub(super) fn on_page(
        &mut self,
        cx: &mut Ctx,
        outcome: Result<RawResult, CallError>,
    ) -> Vec<(CallId, Option<Box<ErrorObject>>)> {
        let waiting = cx.calls.mismatched();
        let Some(ListFetch { mut pages, .. }) = self.fetch.take().filter(|_| !waiting.is_empty()) else {
            return Vec::new();
        };
        let page = outcome.and_then(|result| Ok(Cursors::decode(result)?)).and_then(|page| pages.fetched(Ok(page)));
        match page {
            Ok(()) if self.fetch_page(cx, pages) => Vec::new(),
            Ok(()) => waiting.into_iter().map(|call| (call, None)).collect(),
            Err(e) => {
                cx.env.diagnose(DiagnosticKind::RefreshFailed, e.to_string());
                let error = |call| match cx.calls.set_stage(call, CallStage::Queued) {
                    Some(CallStage::Mismatched(error)) => Some((call, Some(error))),
                    _ => None,
                };
                waiting.into_iter().filter_map(error).collect()
            }
        }
    }

    /// Stops the fetch. Returns its call, which has to be cancelled.
    pub(super) fn stop(&mut self) -> Option<CallId> {
        self.fetch.take().map(|fetch| fetch.call)
    }
}
