//! The web pages that clients of 2025-11-25 were asked to open (2025-11-25 elicitation, url mode).
//! Each belongs to the session that was asked, so that no other client is notified of its
//! completion. The application knows when a page is complete, and gives its id.

use super::client::{Bound, ClientKey};
use super::env::ServerEnv;
use super::keys::{ReplyTo, ServerTimer, SessionRef};
use super::requests::Requests;
use super::wire::Wire;
use crate::error::DiagnosticKind;
use crate::input::{LegacyInputRequest, Principal, RequestKey};
use crate::rpc::{ErrorObject, Object, RawJson, code, notification};
use crate::time::Instant;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

/// The pages that are not complete, in the order in which the server forgets them.
#[derive(Debug)]
pub(super) struct ElicitationPages {
    open: BTreeMap<u64, OpenPage>,
    last: u64,
}

/// A page that is not complete.
#[derive(Debug)]
struct OpenPage {
    id: String,
    asked: PageOwner,
    /// When the server forgets it.
    until: Instant,
}

/// Who was asked to open a page.
#[derive(Clone, Debug)]
struct PageOwner {
    session: SessionRef,
    /// The principal of the request that needs the page.
    principal: Option<Principal>,
    /// Where this request is or was answered.
    reply_to: ReplyTo,
    /// The client that the page counts for.
    client: ClientKey,
}

impl ElicitationPages {
    pub(super) const fn new() -> Self {
        Self { open: BTreeMap::new(), last: 0 }
    }

    /// Adds the pages of a request. Returns the reason, and adds none, if the limits leave no room,
    /// or if another client was asked to open a page with one of these ids. A client that has a new
    /// session is the same one if its principal is the same.
    fn open(
        &mut self,
        env: &mut ServerEnv,
        asked: &PageOwner,
        ids: &[&str],
    ) -> Result<(), (DiagnosticKind, &'static str)> {
        let is_same = |page: &OpenPage| {
            page.asked.session == asked.session
                || page.asked.principal.is_some() && page.asked.principal == asked.principal
        };
        let before = self.open.iter().filter(|(_, page)| ids.contains(&page.id.as_str()));
        if before.clone().any(|(_, page)| !is_same(page)) {
            let why = "another client was asked to open a page with this id";
            return Err((DiagnosticKind::InvalidInputRequest, why));
        }
        let before: Vec<u64> = before.map(|(number, _)| *number).collect();
        let more = ids.len() - before.len();
        let room = env.shares.client(asked.client).map(|of| env.check_share(of, Bound::Elicitations, more));
        if room.is_none_or(|room| room.is_err()) {
            return Err((DiagnosticKind::TooManyInputs, "too many web pages are not complete"));
        }
        before.into_iter().for_each(|number| drop(self.remove(env, number)));
        let until = env.now + env.config.limits.server.elicitation_lifetime;
        for id in ids {
            self.last += 1;
            env.shares.add(asked.client, Bound::Elicitations, 1);
            self.open.insert(self.last, OpenPage { id: (*id).into(), asked: asked.clone(), until });
        }
        self.arm(env);
        Ok(())
    }

    /// Removes a page that is complete. Returns who was asked.
    fn complete(&mut self, env: &mut ServerEnv, id: &str) -> Option<PageOwner> {
        let number = self.open.iter().find(|(_, page)| page.id == id).map(|(number, _)| *number)?;
        self.remove(env, number).map(|page| page.asked)
    }

    /// Removes the pages of a session that is over.
    fn leave(&mut self, env: &mut ServerEnv, session: SessionRef) {
        self.remove_all(env, |page| page.asked.session == session);
    }

    /// Removes the pages whose time is over.
    fn expire(&mut self, env: &mut ServerEnv) {
        let now = env.now;
        self.remove_all(env, |page| page.until <= now);
    }

    /// Removes everything, since the server terminates.
    fn clear(&mut self) {
        self.open.clear();
    }

    fn remove_all(&mut self, env: &mut ServerEnv, is_over: impl Fn(&OpenPage) -> bool) {
        let over: Vec<u64> = self.open.iter().filter(|(_, page)| is_over(page)).map(|(number, _)| *number).collect();
        over.into_iter().for_each(|number| drop(self.remove(env, number)));
    }

    fn remove(&mut self, env: &mut ServerEnv, number: u64) -> Option<OpenPage> {
        let page = self.open.remove(&number)?;
        env.shares.give_back(page.asked.client, Bound::Elicitations, 1);
        self.arm(env);
        Some(page)
    }

    fn arm(&self, env: &mut ServerEnv) {
        env.timers.set(ServerTimer::Elicitations, self.open.values().next().map(|page| page.until));
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.open.len()
    }
}

impl Requests {
    /// Forgets the pages of a session that is over.
    pub(super) fn leave_pages(&mut self, env: &mut ServerEnv, session: SessionRef) {
        self.elicitations.leave(env, session);
    }

    /// Forgets the pages whose time is over.
    pub(super) fn forget_pages(&mut self, env: &mut ServerEnv) {
        self.elicitations.expire(env);
    }

    /// Forgets every page, since the server terminates.
    pub(super) fn clear_pages(&mut self) {
        self.elicitations.clear();
    }

    /// A page is complete. Notifies the client that was asked to open it, and no other. Returns
    /// false if no client of this server was.
    pub(super) fn on_elicited(&mut self, wire: &mut Wire, id: &str) -> bool {
        let Some(PageOwner { session, reply_to, .. }) = self.elicitations.complete(&mut wire.env, id) else {
            return false;
        };
        let params = Object::new().with("elicitationId", id);
        let note = notification("notifications/elicitation/complete", Some(&params));
        let to = wire.target_of_later(reply_to, session);
        wire.send(to, note);
        true
    }

    /// Records the pages of a round. An error is the reason why the round is not sent.
    pub(super) fn open_pages(
        &mut self,
        wire: &mut Wire,
        key: RequestKey,
        questions: &[LegacyInputRequest],
    ) -> Result<(), (DiagnosticKind, &'static str)> {
        let ids: Vec<&str> = questions.iter().filter_map(|question| question.elicitation.as_deref()).collect();
        let Some(running) = self.get(key).filter(|_| !ids.is_empty()) else { return Ok(()) };
        let Some(session) = wire.session_of(running.reply_to) else { return Ok(()) };
        let principal = running.request().and_then(|request| request.context.principal.clone());
        let asked = PageOwner { session, principal, reply_to: running.reply_to, client: running.client };
        self.elicitations.open(&mut wire.env, &asked, &ids)
    }
}

/// Returns the error of a request that needs these pages to be complete. `None` if it needs
/// something else.
pub(super) fn pages_required(questions: &[LegacyInputRequest]) -> Option<ErrorObject> {
    let pages = questions.iter().map(|question| question.elicitation.as_ref().and(question.params.clone()));
    let pages: Vec<RawJson> = pages.map(|params| params.map(RawJson::from)).collect::<Option<_>>()?;
    if pages.is_empty() {
        return None;
    }
    let text = "the user has to open a web page first";
    let data = Object::new().with("elicitations", pages);
    Some(ErrorObject::new(code::URL_ELICITATION_REQUIRED, text).with_data(data.into()))
}
