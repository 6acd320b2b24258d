//! The login of a client: those that wait for its end, and who carries its steps out.

#[cfg(all(test, not(shuttle)))]
mod tests;

use super::super::shared::Later;
use super::shared::ClientShared;
use super::state::ClientState;
use super::waiters::{EndFuture, Receive, WaitKey, Waiters};
use super::{Client, ClientHandle};
use crate::asking::ClientLink;
use crate::login::{LoginSetup, LoginWorker};
use crate::os::Clock;
use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use mcp_proto::auth::{self, AuthReport, Output};
use mcp_proto::client::{ClientCommands, Event, Target};
use mcp_proto::error::AuthError;
use mcp_proto::input::ClientCommand;
use mcp_proto::time::Instant;

/// Those that wait for the end of a login or a logout, and who carries the steps out.
pub(super) struct Logins {
    pub(super) waiters: Waiters<LoginWait, Option<Outcome>>,
    /// Those of them whose end has not come yet.
    open: BTreeSet<LoginWait>,
    last: u64,
    /// `None` if the application carries the steps out, and after the end.
    worker: Option<LoginWorker>,
    /// After the end, until the last step is carried out.
    leaving: Option<LoginWorker>,
    shared: Weak<ClientShared>,
}

/// Identifies one that waits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum LoginWait {
    Login(u64),
    Logout(u64),
}

/// The end of a login, or that of a logout with what became of the tokens.
pub(super) type Outcome = Result<Option<bool>, AuthError>;

impl Receive for Option<Outcome> {
    fn has_ended(&self) -> bool {
        self.is_some()
    }

    fn abort(&mut self) {
        self.get_or_insert(Err(AuthError::Ended));
    }
}

impl WaitKey for LoginWait {
    type Received = Option<Outcome>;

    fn waiters(state: &mut ClientState) -> &mut Waiters<Self, Self::Received> {
        &mut state.logins.waiters
    }

    /// The login goes on.
    fn forgotten(self, _state: &mut ClientState, _now: Instant) {}
}

impl Logins {
    pub(super) fn new(setup: Option<LoginSetup>, clock: Clock, link: &ClientLink, shared: Weak<ClientShared>) -> Self {
        let worker = setup.map(|setup| LoginWorker::new(setup, clock, Arc::clone(link)));
        Self { waiters: Waiters::default(), open: BTreeSet::new(), last: 0, worker, leaving: None, shared }
    }

    fn begin(&mut self, id: fn(u64) -> LoginWait) -> LoginWait {
        self.last += 1;
        let id = id(self.last);
        self.waiters.begin(id);
        self.open.insert(id);
        id
    }

    /// Ends those that wait for what this output tells, once the steps before it are carried out:
    /// the last page of a login is shown by then.
    fn note(&mut self, output: &Output, later: &mut Later) {
        let (is_meant, outcome): (fn(&LoginWait) -> bool, Outcome) = match output {
            Output::Changed(_) => (LoginWait::is_login, Ok(None)),
            Output::Failed(why) => (LoginWait::is_login, Err(AuthError::clone(why))),
            Output::Report(AuthReport::LoggedOut { revoked }) => (|wait| !wait.is_login(), Ok(*revoked)),
            _ => return,
        };
        self.end(is_meant, outcome, later);
    }

    fn end(&mut self, is_meant: fn(&LoginWait) -> bool, outcome: Outcome, later: &mut Later) {
        let ended: Vec<LoginWait> = self.open.iter().copied().filter(is_meant).collect();
        self.open.retain(|wait| !is_meant(wait));
        if ended.is_empty() {
            return;
        }
        let Some(worker) = &self.worker else {
            return ended.into_iter().for_each(|wait| self.ended(wait, &outcome, later));
        };
        let shared = Weak::clone(&self.shared);
        later.call(worker.call_after(Box::new(move || {
            if let Some(shared) = shared.upgrade() {
                shared.look(|state, later| ended.iter().for_each(|wait| state.logins.ended(*wait, &outcome, later)));
            }
        })));
    }

    fn ended(&mut self, wait: LoginWait, outcome: &Outcome, later: &mut Later) {
        self.waiters.receive(wait, later, |end| {
            end.get_or_insert_with(|| outcome.clone());
        });
    }

    /// The client has ended. The steps before that are still carried out: a page shows the result,
    /// a record is stored.
    pub(super) fn stop(&mut self, later: &mut Later) {
        self.open.clear();
        self.waiters.abort(later);
        let Some(worker) = self.worker.take() else { return };
        let shared = Weak::clone(&self.shared);
        let left = worker.close(Box::new(move || {
            if let Some(shared) = shared.upgrade() {
                shared.look(|state, later| {
                    later.drop_later(state.logins.leaving.take());
                    later.milestone();
                });
            }
        }));
        match left {
            Some(start) => {
                self.leaving = Some(worker);
                later.call(start);
            }
            None => later.drop_later(worker),
        }
    }

    /// Returns whether the last steps are still carried out, for anyone but a callback of them.
    pub(super) fn is_leaving(&self) -> bool {
        self.leaving.as_ref().is_some_and(|worker| !worker.is_here())
    }
}

impl LoginWait {
    const fn is_login(&self) -> bool {
        matches!(self, Self::Login(_))
    }
}

impl ClientState {
    /// Begins a login or a logout with a command.
    fn begin_login(
        &mut self,
        now: Instant,
        command: ClientCommand,
        id: fn(u64) -> LoginWait,
        later: &mut Later,
    ) -> Result<LoginWait, AuthError> {
        let config = self.engine.client().config();
        // A stream has no logins.
        let can = config.auth.is_some() && !matches!(config.target, Target::Duplex(_));
        if self.abandoned || self.terminated.is_some() || !can {
            return Err(AuthError::Ended);
        }
        if matches!(command, ClientCommand::Login) {
            // It takes the place of a logout.
            self.logins.end(|wait| !wait.is_login(), Err(AuthError::Ended), later);
        }
        self.engine.act(now, command).map_err(|_| AuthError::Ended)?;
        Ok(self.logins.begin(id))
    }

    /// Passes an output of the login to who carries it out, to who waits for it, and what happened
    /// to the application.
    pub(super) fn auth(&mut self, output: Box<Output>, later: &mut Later) {
        let is_step = !matches!(*output, Output::Changed(_) | Output::Failed(_) | Output::Report(_));
        if let Some(worker) = &self.logins.worker {
            later.call(worker.push(Output::clone(&output)));
        }
        self.logins.note(&output, later);
        if !is_step || self.logins.worker.is_none() {
            self.tell(Event::Auth(output), later);
        }
    }
}

impl Client {
    /// Logs in, also if no request needs it, and waits for the end: see
    /// [`login`](mcp_proto::ClientCommands::login). The login in the store is replaced. Dropping
    /// the future does not end the login.
    ///
    /// # Errors
    /// [`AuthError`]. [`AuthError::Ended`] if the client ends first, if the user logs out, and
    /// without [`OAuth`](crate::OAuth) or HTTP.
    pub async fn login(&self) -> Result<(), AuthError> {
        self.wait_for_login(ClientCommand::Login, LoginWait::Login).await.map(drop)
    }

    /// Revokes the tokens, removes the login from the store, and waits for the end: see
    /// [`logout`](mcp_proto::ClientCommands::logout). Returns whether the authorization server
    /// confirmed that it revoked the tokens, `None` if it offers no revocation, or if there were
    /// none.
    ///
    /// # Errors
    /// [`AuthError::Ended`] if the client ends first, if a login begins meanwhile, and without
    /// [`OAuth`](crate::OAuth) or HTTP.
    pub async fn logout(&self) -> Result<Option<bool>, AuthError> {
        self.wait_for_login(ClientCommand::Logout, LoginWait::Logout).await
    }

    async fn wait_for_login(&self, command: ClientCommand, id: fn(u64) -> LoginWait) -> Outcome {
        let shared = Arc::clone(self.shared());
        let id = shared.with(|state, now, later| state.begin_login(now, command, id, later))?;
        EndFuture { shared, id }.await
    }
}

impl ClientHandle {
    /// Answers a step of a login, for an application that carries the steps out itself: its
    /// configuration has [`auth`](mcp_proto::ClientConfig::auth), and its options no
    /// [`OAuth`](crate::OAuth). The callback for events receives them as
    /// [`Event::Auth`](mcp_proto::client::Event::Auth).
    pub fn auth(&self, input: auth::Input) {
        self.shared().with(|state, now, _| state.engine.auth(now, input));
    }
}
