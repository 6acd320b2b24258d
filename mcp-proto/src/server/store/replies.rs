//! What a server does with the results of its requests, and with what other nodes say.

use super::node::Then;
use super::{News, NodeItem, StoreError, StoreReply, StoreToken};
use crate::input::{Change, Principal};
use crate::server::keys::SessionRef;
use crate::server::{Server, SessionEnd};
use alloc::string::String;

impl Server {
    /// The store has carried out a request, or has not. Does nothing for a request whose time is
    /// over.
    pub(in crate::server) fn on_stored(&mut self, token: StoreToken, result: Result<StoreReply, StoreError>) {
        let Some(then) = self.wire.env.settle(token, &result) else { return };
        match (then, result) {
            (Then::Join, Ok(reply)) => {
                if self.wire.env.has_joined(reply) {
                    // What others have said before is not known here.
                    self.take_all_as_changed();
                    self.listens.has_joined();
                    if self.shared.config.shares_tasks() {
                        self.sweep_orphans();
                    }
                }
            }
            (Then::Renew(beat), Ok(reply)) => {
                if !self.wire.env.has_renewed(beat, &reply) {
                    self.lose_streams();
                    self.lose_tasks();
                    self.wire.env.rejoin_store();
                }
            }
            (Then::Publish(news), Err(_)) => self.wire.env.say(news),
            (Then::Revoke(principal), Err(_)) => self.wire.env.say(News::Revoked(principal)),
            (Then::Revoke(principal), Ok(_)) => self.wire.env.publish_news(News::Revoked(principal)),
            // The retry joins or renews.
            (Then::Join | Then::Renew(_) | Then::Leave(_), Err(_)) | (Then::Publish(_), Ok(_)) | (Then::Nothing, _) => {
            }
            (Then::Leave(node), Ok(_)) => self.wire.env.has_left(node),
            (Then::Open(session, x), result) => self.session_is_kept(session, x, result.is_ok()),
            (Then::Load(session), result) => self.session_is_loaded(session, result),
            (Then::IsRevoked(session, kept), result) => self.revocation_is_known(session, *kept, result),
            (Then::Change(session), result) => self.session_is_changed(session, result),
            (Then::Touch(session), Ok(StoreReply::Missing)) => self.end_session(session, SessionEnd::Idle),
            (Then::Touch(session), Err(_)) => self.wire.http.was_not_touched(&mut self.wire.env, session),
            (Then::Touch(_), _) => {}
            (Then::Close(session, x), result) => self.session_is_dropped(session, x, result.is_ok()),
            (Then::Send(forwarded), result) => self.item_is_sent(*forwarded, result),
            (Then::Claim(stream), result) => self.stream_is_claimed(stream, result),
            (Then::Append(stream, place), result) => self.event_is_appended(stream, place, result),
            (Then::PassOn(stream, message), result) => self.message_is_passed_on(stream, message, result),
            (Then::Opening(opening), result) => self.opening_is_stored(opening, result),
            (Then::Tail(x), result) => self.tail_is_read(x, result),
            (Then::IsMember(node), result) => self.member_is_known(node, result),
            (Then::ClaimLost(x), result) => self.lost_is_claimed(x, result),
            (Then::Cancel(session, request), result) => self.cancelled_is_found(session, request, result),
            (Then::TaskPut(task), result) => self.task_is_put(task, result),
            (Then::TaskRead(request), result) => self.task_is_read(request, result),
            (Then::TaskOwner(request, task), result) => self.task_owner_is_known(request, *task, result),
            (Then::TaskChange(request, task, change), result) => {
                let (record, version) = *task;
                self.task_is_changed(request, record, version, change, result);
            }
            (Then::WatchedTask(task), result) => self.watched_task_is_read(task, result),
            (Then::Orphans, Ok(StoreReply::Orphans(tasks))) => self.orphans_are_known(tasks),
            (Then::Orphans, _) => {}
            (Then::Orphan, result) => self.orphan_is_read(result),
        }
        self.wire.env.say_next();
    }

    /// The oldest requests have got no reply in time.
    pub(in crate::server) fn on_store_timeout(&mut self) {
        while let Some(token) = self.wire.env.overdue() {
            self.on_stored(token, Err(StoreError::Timeout));
        }
    }

    /// Handles what another node says.
    pub(in crate::server) fn on_arrived(&mut self, item: NodeItem) {
        let Some(node) = &mut self.wire.env.node else { return };
        if matches!(&item, NodeItem::News { from, .. } if *from == node.own()) {
            return;
        }
        node.arrived += 1;
        match item {
            NodeItem::News { news: News::Closed(session), .. } => {
                if let Some(key) = self.wire.http.session_of_digest(session) {
                    self.end_session(key, SessionEnd::Deleted);
                }
            }
            NodeItem::News { news: News::Session(session), .. } => self.session_is_outdated(session),
            NodeItem::News { news: News::Task(task), .. } => self.task_is_outdated(task),
            NodeItem::News { news: News::Revoked(principal), .. } => self.end_access(&principal),
            NodeItem::News { news: News::Elicited(id), .. } => drop(self.requests.on_elicited(&mut self.wire, &id)),
            NodeItem::News { news: News::Changed(change), .. } => drop(self.listens.publish(&mut self.wire, change)),
            NodeItem::News { news: News::ChangedAll, .. } | NodeItem::Missed => self.take_all_as_changed(),
            NodeItem::Answer { session, message } => self.on_forwarded_answer(session, message),
            NodeItem::Taken { session, stream, epoch } => {
                if let Some(key) = self.wire.http.stream_numbered(session, stream) {
                    self.own_stream_is_taken(key, epoch);
                }
            }
            NodeItem::Tail { session, stream, by } => self.on_tail(session, stream, by),
            NodeItem::Grown { session, stream } => self.on_grown(session, stream),
            NodeItem::Gone { session, stream } => self.on_gone(session, stream),
            NodeItem::Task { task } => self.task_is_doubted(task),
            NodeItem::Own { session, message } => self.on_own_message(session, message),
            NodeItem::Posted { stream, post } => self.on_posted(stream, &post),
            NodeItem::Cancel { session, request } => {
                let key = self.wire.http.session_of_digest(session);
                self.cancel_of_digest(key.map(SessionRef::Http), request);
            }
        }
    }

    /// Anything may have changed: what clients watch, and what is kept of sessions.
    fn take_all_as_changed(&mut self) {
        self.listens.publish_all(&mut self.wire);
        self.all_tasks_are_unstored();
        for session in self.wire.http.shared_sessions() {
            self.session_is_outdated(session);
        }
    }

    /// The application says that something has changed.
    pub(in crate::server) fn on_publish(&mut self, change: Change) {
        if self.listens.publish(&mut self.wire, change.clone()) {
            self.wire.env.say(News::Changed(change));
        }
    }

    /// The application says that a page is complete. Without one here, another node has it.
    pub(in crate::server) fn on_page_complete(&mut self, id: String) {
        if !self.requests.on_elicited(&mut self.wire, &id) {
            self.wire.env.say(News::Elicited(id));
        }
    }

    /// The application ends the access of a principal.
    pub(in crate::server) fn on_revoke(&mut self, principal: &Principal) {
        if !self.is_terminated() {
            self.end_access(principal);
            self.wire.env.say(News::Revoked(principal.clone()));
        }
    }
}
