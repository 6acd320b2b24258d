//! Calls that wait for a task which an earlier call has left.

use super::TaskHandle;
use crate::client::ctx::Ctx;
use crate::client::{Client, Timer};
use crate::error::{CallError, Refusal};
use crate::input::CallId;

impl Client {
    /// Lets a call that is queued wait for the task that it was made for. Returns false if it was
    /// made for none.
    pub(in crate::client) fn attach(&mut self, call: CallId) -> bool {
        let Some(handle) = self.cx.calls.get(call).and_then(|state| state.raw.options.attach.clone()) else {
            return false;
        };
        if !self.cx.is_of_this_server(&handle) {
            self.end(call, Err(CallError::Refused(Refusal::OtherServer)));
            return true;
        }
        self.await_task(call, *handle);
        // Now, but not within this input: the caller has to know the id of the call first.
        let now = self.cx.env.now;
        self.cx.env.timers.set(Timer::Round(call), Some(now));
        self.listen_for_tasks();
        true
    }
}

impl Ctx {
    /// Returns whether a task is one of this server, in this era.
    fn is_of_this_server(&self, handle: &TaskHandle) -> bool {
        let Some(info) = self.env.server_info() else { return false };
        self.env.config.tasks
            && self.env.server_name() == handle.server
            && info.version.era() == handle.version.era()
            && self.env.config.target.authority() == handle.authority
    }
}
