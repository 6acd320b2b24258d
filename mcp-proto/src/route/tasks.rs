//! Which calls become tasks, and when.

use super::scopes::RouteRefusal;
use crate::model::tasks::{TaskOptions, TaskSupport, undeclared};
use crate::model::tools::Tool;
use crate::rpc::{ErrorObject, code};
use crate::server::{IncomingRequest, TaskOffer};
use crate::version::Era;

impl Tool {
    /// Returns what a call of this tool has to become before its handler runs. `None`: nothing.
    pub(super) fn begins_as(&self, incoming: &IncomingRequest) -> Result<Option<TaskOptions>, RouteRefusal> {
        let error = |code, text| Err(ErrorObject::new(code, text).into());
        let (offer, version) = (incoming.task_offer(), incoming.context.version);
        match (version.era(), self.task, offer) {
            (_, TaskSupport::Optional | TaskSupport::Required, TaskOffer::Place) => {
                Ok(incoming.wanted_task.as_deref().copied().or(self.at_once.then(TaskOptions::new)))
            }
            (Era::Modern, TaskSupport::Required, TaskOffer::None) => Err(undeclared().into()),
            (Era::Legacy, TaskSupport::Required, TaskOffer::None) => {
                error(code::METHOD_NOT_FOUND, "the tool is called as a task only")
            }
            (Era::Legacy, TaskSupport::Never, TaskOffer::Place | TaskOffer::Full) => {
                error(code::METHOD_NOT_FOUND, "the tool cannot be called as a task")
            }
            (_, TaskSupport::Required, TaskOffer::Full) | (Era::Legacy, TaskSupport::Optional, TaskOffer::Full) => {
                error(code::INTERNAL_ERROR, "the server has no room for a task")
            }
            (_, TaskSupport::Never | TaskSupport::Optional, _) => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests;
