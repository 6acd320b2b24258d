//! The commands of an application to a server.

use super::store::{NodeItem, StoreError, StoreReply, StoreToken};
use crate::error::RefusedCommand;
use crate::input::{Admission, AdmitToken, Answer, Change, InputResult, Note, Principal, RequestKey, ServerCommand};
use crate::time::Instant;
use alloc::borrow::ToOwned;
use core::time::Duration;

/// The commands of an application to a server: of a [`Server`](super::Server) and of what contains
/// one, such as a [`WiredServer`](crate::wired::WiredServer). Each method is a form of
/// [`act`](Self::act).
pub trait ServerCommands {
    /// Executes a command.
    ///
    /// # Errors
    /// [`RefusedCommand`] with the command. Only notifications are refused, and nothing has changed
    /// then: see [`notify`](Self::notify).
    fn act(&mut self, now: Instant, command: ServerCommand) -> Result<InputResult, RefusedCommand<ServerCommand>>;

    /// Answers a request, or requests input of its client. Does nothing if the request was
    /// cancelled or answered, or belongs to another engine.
    #[track_caller]
    fn respond(&mut self, now: Instant, answer: Answer) {
        self.done(now, ServerCommand::Respond(answer));
    }

    /// Sends a notification on a request, before its response.
    ///
    /// # Errors
    /// [`Refusal::Gone`](crate::Refusal::Gone) after the end of the request,
    /// [`Refusal::NotWanted`](crate::Refusal::NotWanted) for progress that the client did not ask
    /// for, for a log message below the level that it wants, and for a method that a handler may
    /// not send ([`Cx::notify`](crate::Cx::notify) lists them),
    /// [`Refusal::NotIncreasing`](crate::Refusal::NotIncreasing),
    /// [`Refusal::Unencodable`](crate::Refusal::Unencodable),
    /// [`Refusal::Full`](crate::Refusal::Full) for a log message or a custom one beyond
    /// [`max_unsent`](crate::limits::ServerLimits::max_unsent),
    /// [`Refusal::Closed`](crate::Refusal::Closed) after the end.
    #[track_caller]
    fn notify(&mut self, now: Instant, to: RequestKey, note: Note) -> Result<(), RefusedCommand<Note>> {
        let applied = self.act(now, ServerCommand::Notify(to, note));
        applied.map(drop).map_err(|refused| {
            refused.map(|command| match command {
                ServerCommand::Notify(_, note) => note,
                other => unreachable!("a server gives back the command that it refuses, and not {other:?}"),
            })
        })
    }

    /// Notifies the clients that listen, and of a changed list every legacy client. Never fails and
    /// never waits: while a client does not read, notifications of one list are merged, and so are
    /// those of one resource ([`max_watched`](crate::limits::ServerLimits::max_watched)). A
    /// resource is announced to the clients that watch its URI, or one that contains it: with
    /// `file:///dir/a` also to those that watch `file:///dir`. Does nothing unless
    /// [`ServerConfig::capabilities`](super::ServerConfig::capabilities) declare it.
    #[track_caller]
    fn publish(&mut self, now: Instant, change: Change) {
        self.done(now, ServerCommand::Publish(change));
    }

    /// The web page of this [`elicitation_id`](crate::Cx::elicitation_id) is complete: the user has
    /// done there what a handler asked for. Notifies the client that was asked to open it
    /// (`notifications/elicitation/complete`), and no other. Never fails and never waits. Does
    /// nothing if the id is not that of a page of a client of 2025-11-25, if the client or its
    /// session has left, or after
    /// [`elicitation_lifetime`](crate::limits::ServerLimits::elicitation_lifetime).
    #[track_caller]
    fn elicited(&mut self, now: Instant, id: &str) {
        self.done(now, ServerCommand::Elicited(id.to_owned()));
    }

    /// Ends everything that was admitted for this principal
    /// ([`Admission::Accept`](crate::input::Admission::Accept)). Its requests are cancelled and
    /// answered `-32603`. Its sessions end ([`Revoked`](super::SessionEnd::Revoked)) with their
    /// streams and their history. Its subscriptions end. Its duplex connections are closed. An HTTP
    /// request whose body has not arrived gets 403, and a later request that names one of its
    /// sessions gets 404.
    ///
    /// It undoes no admission: first stop admitting the principal, then call this. An exchange that
    /// waits for its admission is not touched. A sealed state of its clients is valid again if the
    /// principal is admitted again.
    #[track_caller]
    fn revoke(&mut self, now: Instant, principal: &Principal) {
        self.done(now, ServerCommand::Revoke(principal.clone()));
    }

    /// Returns what became of a request to the store ([`Event::Store`](super::Event::Store)). Does
    /// nothing if its time is over, or it has a result.
    #[track_caller]
    fn stored(&mut self, now: Instant, token: StoreToken, result: Result<StoreReply, StoreError>) {
        self.done(now, ServerCommand::Stored(token, result));
    }

    /// Delivers what another node of the store says. Does nothing without
    /// [`ServerConfig::store`](super::ServerConfig::store).
    #[track_caller]
    fn arrived(&mut self, now: Instant, item: NodeItem) {
        self.done(now, ServerCommand::Arrived(item));
    }

    /// Decides on an HTTP request or a connection of [`Event::Admit`](super::Event::Admit). Does
    /// nothing if that no longer exists.
    #[track_caller]
    fn admit(&mut self, now: Instant, to: AdmitToken, admission: Admission) {
        self.done(now, ServerCommand::Admit(to.key(), admission));
    }

    /// Shuts the server down. It refuses new requests (`-32603`). Running requests have `grace` to
    /// end; then it cancels them and answers them with `-32603`. Then every exchange ends, and
    /// [`Event::Terminated`](super::Event::Terminated) is the last output. A second call can only
    /// shorten `grace`.
    ///
    /// A server with connections also accepts none. Once the requests have ended, the connections
    /// close. It aborts those that have not closed `linger_timeout` + 1 s later, which cuts off a
    /// peer that does not read. `Terminated` comes once all connections have reported
    /// [`IoEvent::Closed`](crate::exchange::IoEvent::Closed). A driver must report it for an
    /// aborted connection too, even if a thread or a process behind the connection still exists.
    #[track_caller]
    fn shutdown(&mut self, now: Instant, grace: Duration) {
        self.done(now, ServerCommand::Shutdown(grace));
    }

    /// Executes a command that is never refused.
    #[doc(hidden)]
    #[track_caller]
    fn done(&mut self, now: Instant, command: ServerCommand) {
        let applied = self.act(now, command);
        debug_assert!(applied.is_ok(), "only notifications are refused");
    }
}
