//! Notifications over HTTP: their ends, and the pending ones when the client is closed.

use super::*;
use crate::input::NotificationId;

impl Http {
    /// A client with a session, and its tracked notification.
    fn notifying() -> (Self, ExchangeId, NotificationId) {
        let mut http = Self::legacy(|_| ());
        let id = http.rig.tracked();
        let exchange = http.last().0;
        (http, exchange, id)
    }

    fn close(&mut self) {
        self.rig.client.close(self.rig.now);
        self.rig.drain();
    }

    fn is_over(&self) -> bool {
        matches!(self.rig.events.last(), Some(Event::Terminated(Termination::Requested)))
    }

    fn last_method(&self) -> String {
        self.posts().pop().expect("something was started").1.method.into_owned()
    }
}

#[test]
fn http_notification_ends_with_its_status() {
    for status in [202, 500] {
        let (mut http, exchange, id) = Http::notifying();
        http.refuse(exchange, status);
        let outcome = match status {
            202 => Ok(()),
            _ => Err(CallError::Http(HttpError::new(status).into())),
        };
        assert_eq!(http.rig.notified(), [(id.0, outcome)]);
    }
}

#[test]
fn http_notification_without_a_response_times_out() {
    for waits in [false, true] {
        let (mut http, exchange, id) = Http::notifying();
        if waits {
            http.rig.handle_event(exchange, ExchangeEvent::Waiting);
        }
        http.rig.tick(ms(30_000));
        let sent = if waits { Sent::No } else { Sent::Maybe };
        assert_eq!(http.rig.notified(), [(id.0, Err(CallError::Closed { sent, why: Closed::Timeout }))]);
        assert_eq!(http.rig.diagnostics(), [DiagnosticKind::DroppedNotification]);
    }
}

#[test]
fn http_notification_of_a_lost_session_ends_with_it() {
    let (mut http, exchange, id) = Http::notifying();
    http.refuse(exchange, 404);
    assert_eq!(http.rig.notified(), [(id.0, Err(CallError::Http(HttpError::new(404).into())))]);

    let (mut http, _, id) = Http::notifying();
    http.rig.echo();
    http.refuse(http.last().0, 404);
    assert_eq!(http.rig.notified(), [(id.0, Err(CallError::SessionEnded))]);
    assert_eq!(http.rig.diagnostics(), [DiagnosticKind::DroppedNotification]);
}

#[test]
fn close_awaits_notifications_then_deletes_the_session() {
    let (mut http, exchange, id) = Http::notifying();
    http.rig.client.notify(http.rig.now, "acme/other", Object::new()).expect("it is accepted");
    http.rig.drain();
    let other = http.last().0;
    let call = http.rig.echo();
    let called = http.last().0;
    http.close();
    assert!(http.rig.has_ended(call) && http.rig.aborted.contains(&called), "calls end at once");
    assert!(!http.rig.aborted.contains(&exchange) && !http.rig.aborted.contains(&other));
    assert_eq!(http.last_method(), "POST");
    http.refuse(other, 202);
    assert_eq!(http.last_method(), "POST", "the first is not answered");
    http.refuse(exchange, 202);
    assert_eq!(http.rig.notified(), [(id.0, Ok(()))]);
    assert_eq!(http.last_method(), "DELETE");
    assert!(!http.is_over());
    http.refuse(http.rig.exchange(), 200);
    assert!(http.is_over() && http.rig.diagnostics().is_empty(), "{:?}", http.rig.events);
    http.assert_at_rest();
}

#[test]
fn notification_unanswered_at_close_is_a_diagnostic() {
    let (mut http, exchange, id) = Http::notifying();
    http.close();
    http.rig.tick(ms(1999));
    assert_eq!((http.rig.notified(), http.last_method()), (Vec::new(), "POST".to_string()));
    http.rig.tick(ms(1));
    assert!(http.rig.aborted.contains(&exchange));
    assert_eq!(http.rig.diagnostics(), [DiagnosticKind::DroppedNotification]);
    let timeout = CallError::Closed { sent: Sent::Maybe, why: Closed::Timeout };
    assert_eq!(http.rig.notified(), [(id.0, Err(timeout))]);
    assert_eq!(http.last_method(), "DELETE");
    assert!(!http.is_over());
    http.rig.tick(ms(2000));
    assert!(http.is_over());
    http.assert_at_rest();
}

#[test]
fn notification_refused_after_close_is_a_diagnostic() {
    let (mut http, exchange, id) = Http::notifying();
    http.close();
    http.refuse(exchange, 404);
    assert_eq!(http.rig.diagnostics(), [DiagnosticKind::DroppedNotification]);
    assert_eq!(http.rig.notified(), [(id.0, Err(CallError::Http(HttpError::new(404).into())))]);
    assert_eq!(http.last_method(), "DELETE");
}

#[test]
fn close_does_not_wait_for_the_rest_of_a_response() {
    let stream = || Headers::new().with("content-type", "text/event-stream");
    let (mut http, exchange, id) = Http::notifying();
    http.item(exchange, Inbound::Response(ResponseHead { status: 200, headers: stream() }));
    http.close();
    assert_eq!((http.rig.notified(), http.last_method()), ([(id.0, Ok(()))].into(), "DELETE".to_string()));

    let (mut http, exchange, id) = Http::notifying();
    http.close();
    http.item(exchange, Inbound::Response(ResponseHead { status: 200, headers: stream() }));
    assert_eq!((http.rig.notified(), http.last_method()), ([(id.0, Ok(()))].into(), "DELETE".to_string()));
}

#[test]
fn cancellation_announced_before_close_is_awaited() {
    let mut http = Http::legacy(|_| ());
    let call = http.rig.echo();
    http.rig.client.cancel(http.rig.now, call, None);
    http.rig.drain();
    let cancelled = http.last().0;
    http.close();
    assert!(!http.rig.aborted.contains(&cancelled));
    assert_eq!(http.last_method(), "POST");
    http.refuse(cancelled, 202);
    assert_eq!(http.last_method(), "DELETE");
}

#[test]
fn cancellations_responses_and_the_delete_are_urgent() {
    let urgent = |http: &Http| match http.rig.starts.last().expect("something was started").1 {
        Start::Http { urgent, .. } => urgent,
        Start::Duplex(_) | Start::WebSocket { .. } => false,
    };
    let mut http = Http::legacy(|_| ());
    let call = http.rig.echo();
    assert!(!urgent(&http));
    http.rig.client.cancel(http.rig.now, call, None);
    http.rig.drain();
    assert!(urgent(&http));
    http.rig.tracked();
    assert!(!urgent(&http));
    http.refuse(http.last().0, 202);
    http.close();
    http.rig.tick(ms(2000));
    assert!(urgent(&http) && http.last_method() == "DELETE");
}

#[test]
fn notification_that_waits_for_credentials_ends_at_close() {
    let mut http = Http::legacy(|config| config.authorize = true);
    let id = http.rig.tracked();
    http.refuse(http.last().0, 401);
    http.close();
    assert_eq!(http.rig.diagnostics(), [DiagnosticKind::DroppedNotification]);
    let ended = CallError::Closed { sent: Sent::Maybe, why: Closed::Aborted };
    assert_eq!(http.rig.notified(), [(id.0, Err(ended))]);
}
