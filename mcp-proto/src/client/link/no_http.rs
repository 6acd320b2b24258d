//! What a client without the feature `http` does in the places where one over HTTP has something to do: nothing.

use crate::client::Client;
use crate::error::{Awaited, NegotiationError};
use crate::exchange::{ExchangeId, Sent};
use crate::input::{AuthKey, Authorization, CallId};
use crate::rpc::{EncodeError, ErrorObject, Id, Object, RawJson};
use crate::version::ProtocolVersion;

impl Client {
    pub(in crate::client) fn answered(&mut self, _exchange: ExchangeId) {}
    pub(in crate::client) fn begin_session(&mut self) {}
    pub(in crate::client) fn before_initialized(&mut self) {}
    pub(in crate::client) fn delete_session_last(&mut self, _version: Option<ProtocolVersion>) {}
    pub(in crate::client) const fn delete_session(&mut self) -> bool {
        false
    }
    pub(in crate::client) fn end_http_state(&mut self) {}
    pub(in crate::client) fn on_answer_timeout(&mut self, _exchange: ExchangeId) {}
    pub(in crate::client) fn on_authorize(&mut self, _key: AuthKey, _with: Authorization) {}
    pub(in crate::client) fn on_idle(&mut self, _exchange: ExchangeId) {}
    pub(in crate::client) fn on_renewal_failed(&mut self, _why: &NegotiationError) {}
    pub(in crate::client) fn on_resume(&mut self, _exchange: ExchangeId) {}
    pub(in crate::client) fn release(&mut self) {}
    pub(in crate::client) fn forget_tools(&mut self, _again: bool) {}
    pub(in crate::client) fn learn_tools(
        &mut self,
        _call: CallId,
        result: RawJson,
        _version: ProtocolVersion,
    ) -> RawJson {
        result
    }
    pub(in crate::client) fn mirrored(
        &self,
        _method: &str,
        _params: &Object,
        _version: ProtocolVersion,
    ) -> Result<(), EncodeError> {
        Ok(())
    }
    pub(in crate::client) const fn own_calls(&self) -> usize {
        0
    }
    pub(in crate::client) const fn refreshes(&mut self, _call: CallId, _error: &ErrorObject) -> bool {
        false
    }
    pub(in crate::client) fn leave_catalogue(&mut self, _call: CallId) {}
    pub(in crate::client) const fn is_holding(&self) -> bool {
        false
    }
    pub(in crate::client) const fn awaited(&self, _id: &Id) -> (Awaited, Sent) {
        (Awaited::Response, Sent::Maybe)
    }
    pub(in crate::client) const fn is_unsent(&self, _id: &Id) -> bool {
        false
    }
    pub(in crate::client) const fn waits_for_credentials(&self, _call: CallId) -> bool {
        false
    }
}
