//! The questions of a server that callbacks of a client's application work on: their cancel flags,
//! and the way of their answers to the engine.

use super::job::{Cancel, Failure, JobKind, JobWatch, Promise, Recipient};
use super::question::{Question, Reply, ReplyKey, ReplyToken};
use super::running::Cancellation;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use core::fmt;
use mcp_proto::error::Refusal;
use mcp_proto::input::{Authorization, ClientCommand, InputAnswer};

/// The way of the callbacks of a client to its engine, as [`ServerLink`](super::ServerLink) is for
/// a server.
pub type ClientLink = Arc<dyn Fn(ClientCommand) -> Result<(), Refusal> + Send + Sync>;

/// The questions that were passed to the application and are not answered. It belongs to the
/// driver's lock of the engine.
#[derive(Debug, Default)]
pub struct Questions(BTreeMap<ReplyKey, Arc<Cancel>>);

impl Questions {
    /// Begins a question. From here on, its withdrawal finds it.
    pub fn begin(&mut self, link: &ClientLink, token: ReplyToken, question: Question) -> PendingQuestion {
        let cancel = Arc::<Cancel>::default();
        self.0.insert(token.key(), Arc::clone(&cancel));
        PendingQuestion { promise: Promise::new(token, Arc::clone(link), cancel), question }
    }

    /// Cancels a question that the engine has withdrawn.
    pub fn withdraw(&self, key: ReplyKey) -> Cancellation {
        Cancellation::new(self.0.get(&key))
    }

    /// Removes the question that this command answers. Call it for every command of the
    /// [`ClientLink`].
    pub fn answered(&mut self, command: &ClientCommand) {
        match command {
            ClientCommand::Answer(key, _) => drop(self.0.remove(&ReplyKey::Input(*key))),
            ClientCommand::Authorize(key, _) => drop(self.0.remove(&ReplyKey::Authorization(*key))),
            _ => {}
        }
    }

    /// Returns the number of questions.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether there is no question.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// A question on its way to a callback: for
/// [`ClientCallbacks::route`](super::ClientCallbacks::route). Dropping it answers with an error.
#[must_use = "dropping it answers with an error"]
pub struct PendingQuestion {
    promise: Promise<ReplyToken>,
    question: Question,
}

impl PendingQuestion {
    /// Returns what tells whether its answer is still wanted.
    pub fn watch(&self) -> JobWatch {
        JobWatch::new(&self.promise)
    }

    pub(super) fn into_parts(self) -> (Promise<ReplyToken>, Question) {
        (self.promise, self.question)
    }
}

impl fmt::Debug for PendingQuestion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Asking").field(&self.question).finish()
    }
}

impl Recipient for ReplyToken {
    type Value = Reply;
    type Command = ClientCommand;

    fn command(self, result: Result<Reply, Failure>) -> ClientCommand {
        match (self, result) {
            (Self::Input(token), Ok(Reply::Input(answer))) => ClientCommand::Answer(token.key(), answer),
            (Self::Authorization(token), Ok(Reply::Authorization(with))) => ClientCommand::Authorize(token.key(), with),
            (Self::Input(token), result) => {
                let another = |_| "the callback answered another question".into();
                let why = result.map_or_else(|why| why.message("callback"), another);
                ClientCommand::Answer(token.key(), InputAnswer::internal(&why))
            }
            (Self::Authorization(token), _) => ClientCommand::Authorize(token.key(), Authorization::Refuse),
        }
    }

    fn kind(&self) -> JobKind {
        JobKind::Question
    }
}
