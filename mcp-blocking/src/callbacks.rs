//! What the application registered to answer its server and to be told of events. Runs on threads that hold no lock.

use crate::events::Told;
use mcp_proto::client::Event;
use mcp_proto::{ElicitRequest, ElicitResult, ErrorObject, InputAnswer, InputRequest, Object};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

type Elicit = dyn Fn(ElicitRequest) -> ElicitResult + Send + Sync;
type Sample = dyn Fn(Object) -> Result<Object, ErrorObject> + Send + Sync;
type Roots = dyn Fn() -> InputAnswer + Send + Sync;

#[derive(Clone, Default)]
pub(crate) struct Callbacks {
    pub(crate) elicit: Option<Arc<Elicit>>,
    pub(crate) sample: Option<Arc<Sample>>,
    pub(crate) roots: Option<Arc<Roots>>,
    pub(crate) event: Option<Arc<Told<Event>>>,
}

impl Callbacks {
    /// Answers a question of the server, also when the callback panics or there is none: the server waits for it.
    pub(crate) fn answer(&self, request: InputRequest) -> InputAnswer {
        let answer = catch_unwind(AssertUnwindSafe(|| match request {
            InputRequest::Elicitation(request) => Some(InputAnswer::Elicitation(self.elicit.as_ref()?(request))),
            InputRequest::Sampling(params) => {
                Some(self.sample.as_ref()?(params).map_or_else(InputAnswer::Error, InputAnswer::Sampling))
            }
            InputRequest::Roots => Some(self.roots.as_ref()?()),
            _ => None,
        }));
        match answer {
            Ok(Some(answer)) => answer,
            Ok(None) => InputAnswer::internal("the client has no callback for this"),
            Err(_) => InputAnswer::internal("the client's callback panicked"),
        }
    }
}

impl fmt::Debug for Callbacks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Callbacks")
            .field("elicit", &self.elicit.is_some())
            .field("sample", &self.sample.is_some())
            .field("roots", &self.roots.is_some())
            .field("event", &self.event.is_some())
            .finish()
    }
}
