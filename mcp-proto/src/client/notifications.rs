//! Notifications whose delivery is reported (`notify_tracked`): accepted by the server over HTTP,
//! written on a duplex exchange, or abandoned. The engine keeps no record of other notifications.

use super::ctx::Ctx;
use super::env::ClientEnv;
use super::{Event, State};
use crate::error::{CallError, Refusal};
use crate::exchange::{Closed, Sent};
use crate::input::NotificationId;
use crate::rpc::Object;
use alloc::collections::BTreeMap;
use alloc::string::String;

/// The tracked notifications whose delivery has not ended, in the order in which they were sent.
#[derive(Debug, Default)]
pub(super) struct Notifications {
    last: u64,
    open: BTreeMap<NotificationId, DeliveryStage>,
}

/// The stage of the delivery of a tracked notification.
#[derive(Clone, Copy, Debug)]
enum DeliveryStage {
    /// On its own HTTP exchange, which stores the id.
    Http,
    /// Among the outputs of the engine, or taken by the driver, which has not yet reported how much
    /// it has to write. The driver has taken the notification once it has taken this number of
    /// outputs.
    Queued(u64),
    /// In the buffer of the driver. The notification is written once the driver has written this
    /// number of bytes of the duplex exchange.
    Handed(u64),
}

impl Notifications {
    /// Stops tracking a notification.
    pub(super) fn untrack(&mut self, id: NotificationId) {
        self.open.remove(&id);
    }

    /// Ends the delivery of a notification. Does nothing if the notification is not tracked.
    pub(super) fn end(&mut self, env: &mut ClientEnv, id: NotificationId, outcome: Result<(), CallError>) {
        if self.open.remove(&id).is_some() {
            env.event(Event::NotificationEnded { notification: id, outcome });
        }
    }

    /// Handles a report of the driver about the duplex exchange: the bytes written so far, and the
    /// bytes written once everything that the driver holds is written.
    pub(super) fn on_written(&mut self, env: &mut ClientEnv, written: u64, with_unsent: u64) {
        let taken = env.out.taken();
        for place in self.open.values_mut().rev() {
            match place {
                DeliveryStage::Queued(output) if *output <= taken => *place = DeliveryStage::Handed(with_unsent),
                DeliveryStage::Queued(_) => {}
                DeliveryStage::Handed(_) | DeliveryStage::Http => break,
            }
        }
        while let Some((&id, &DeliveryStage::Handed(end))) = self.open.first_key_value()
            && end <= written
        {
            self.end(env, id, Ok(()));
        }
    }

    /// Handles the denial, by a message hook, of the latest output that the driver took. The output
    /// is no request. If the driver has taken a tracked notification, the output is that
    /// notification.
    pub(super) fn on_denied(&mut self, env: &mut ClientEnv, reason: String) {
        let taken = env.out.taken();
        let denied = self.open.iter().find(|(_, place)| matches!(place, DeliveryStage::Queued(at) if *at <= taken));
        if let Some(id) = denied.map(|(id, _)| *id) {
            self.end(env, id, Err(CallError::Denied { sent: Sent::No, reason }));
        }
    }

    /// Ends every delivery, since the duplex exchange or the client has ended.
    pub(super) fn end_all(&mut self, env: &mut ClientEnv, why: &Closed) {
        while let Some((&id, _)) = self.open.first_key_value() {
            self.end(env, id, Err(CallError::Closed { sent: Sent::Maybe, why: why.clone() }));
        }
    }

    /// Sends a notification.
    pub(super) fn send(cx: &mut Ctx, method: &str, params: &Object) -> Result<(), Refusal> {
        Self::check(cx)?;
        cx.send_notification(method, params, None);
        Ok(())
    }

    /// Sends a notification, and reports its delivery.
    pub(super) fn track(&mut self, cx: &mut Ctx, method: &str, params: &Object) -> Result<NotificationId, Refusal> {
        Self::check(cx)?;
        if self.open.len() >= cx.env.config.limits.client.max_calls.max(1) {
            return Err(Refusal::Full);
        }
        self.last += 1;
        let id = NotificationId(self.last);
        let next = DeliveryStage::Queued(cx.env.out.pushed() + 1);
        self.open.insert(id, if cx.env.is_duplex() { next } else { DeliveryStage::Http });
        cx.send_notification(method, params, Some(id));
        Ok(id)
    }

    /// Notifies the server that the roots have changed, if the client has declared that it does.
    /// 2026-07-28 has no such notification: the server asks for the roots when it needs them. A
    /// server asks again after each negotiation.
    pub(super) fn send_roots_changed(cx: &mut Ctx) -> Result<(), Refusal> {
        let declared = cx.env.config.capabilities.roots.as_ref().is_some_and(|roots| roots.list_changed);
        match cx.env.state() {
            State::Closing | State::Terminated => Err(Refusal::Closed),
            State::NoServer => Err(Refusal::NoServer),
            State::Ready if declared && cx.env.is_legacy() => {
                Self::send(cx, "notifications/roots/list_changed", &Object::new())
            }
            _ => Ok(()),
        }
    }

    fn check(cx: &Ctx) -> Result<(), Refusal> {
        match cx.env.state() {
            State::Ready => {}
            State::NoServer => return Err(Refusal::NoServer),
            _ => return Err(Refusal::Closed),
        }
        if cx.env.only_calls_tools() {
            return Err(Refusal::NotInDialect);
        }
        let full = cx.link.is_full(&cx.env) || cx.link.has_many_exchanges(&cx.env);
        if full { Err(Refusal::Full) } else { Ok(()) }
    }
}
