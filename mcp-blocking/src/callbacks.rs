//! The callbacks of the application for requests of the server and for events. They run on threads
//! that hold no lock.

use crate::events::Told;
use mcp_proto::adapter::{Question, Reply};
use mcp_proto::client::Event;
use mcp_proto::exchange::{Action, ConnectionId, ConnectionNotice};
use mcp_proto::{
    Authorization, Challenge, ElicitRequest, ElicitResult, ErrorObject, InputAnswer, InputRequest, Object,
};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

type Elicit = dyn Fn(ElicitRequest) -> ElicitResult + Send + Sync;
type Sample = dyn Fn(Object) -> Result<Object, ErrorObject> + Send + Sync;
type Authorize = dyn Fn(Challenge) -> Authorization + Send + Sync;
type Roots = dyn Fn() -> InputAnswer + Send + Sync;
type Notice = dyn Fn(ConnectionId, ConnectionNotice) + Send + Sync;

#[derive(Clone, Default)]
pub(crate) struct Callbacks {
    pub(crate) elicit: Option<Arc<Elicit>>,
    pub(crate) sample: Option<Arc<Sample>>,
    pub(crate) roots: Option<Arc<Roots>>,
    pub(crate) authorize: Option<Arc<Authorize>>,
    pub(crate) event: Option<Arc<Told<Event>>>,
    pub(crate) notice: Option<Arc<Notice>>,
}

impl Callbacks {
    /// Returns the function for the events and the notices, if the application has registered one.
    pub(crate) fn told(&self) -> Option<Box<dyn FnMut(Action<Event>) + Send>> {
        let (event, notice) = (self.event.clone(), self.notice.clone());
        if event.is_none() && notice.is_none() {
            return None;
        }
        Some(Box::new(move |action| match (action, &event, &notice) {
            (Action::Event(told), Some(event), _) => event(told),
            (Action::Notice(connection, told), _, Some(notice)) => notice(connection, told),
            _ => {}
        }))
    }

    /// Returns the reply to a question.
    ///
    /// # Errors
    /// The callback panicked, or the application has registered none.
    pub(crate) fn reply(&self, question: Question) -> Result<Reply, &'static str> {
        let reply = catch_unwind(AssertUnwindSafe(|| match question {
            Question::Input(request) => self.answer(request).map(Reply::Input),
            Question::Challenge(challenge) => Some(Reply::Authorization(self.authorize.as_ref()?(challenge))),
        }));
        match reply {
            Ok(reply) => reply.ok_or("the client has no callback for this"),
            Err(_) => Err("the client's callback panicked"),
        }
    }

    fn answer(&self, request: InputRequest) -> Option<InputAnswer> {
        match request {
            InputRequest::Elicitation(request) => Some(InputAnswer::Elicitation(self.elicit.as_ref()?(request))),
            InputRequest::Sampling(params) => {
                Some(self.sample.as_ref()?(params).map_or_else(InputAnswer::Error, InputAnswer::Sampling))
            }
            InputRequest::Roots => Some(self.roots.as_ref()?()),
            _ => None,
        }
    }
}

impl fmt::Debug for Callbacks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Callbacks")
            .field("elicit", &self.elicit.is_some())
            .field("sample", &self.sample.is_some())
            .field("roots", &self.roots.is_some())
            .field("authorize", &self.authorize.is_some())
            .field("event", &self.event.is_some())
            .field("notice", &self.notice.is_some())
            .finish()
    }
}
