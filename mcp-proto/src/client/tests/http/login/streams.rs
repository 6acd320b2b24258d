//! Streams that the client opens for itself: a login that failed ends the attempts, so that none of
//! them opens a page later. One that may succeed later does not.

use super::*;
use crate::client::tests::subscription::hello;
use crate::error::StreamEnd;

const GONE: (u16, &str) = (400, "{\"error\":\"invalid_grant\"}");
const DOWN: (u16, &str) = (503, "");

impl Guarded {
    /// A ready client that watches tools. Its latest request opens the stream for their changes.
    fn watching(token: (u16, &'static str)) -> Self {
        let mut guarded = Self::of(|config| config.watch.tools = true, Self::ready().record);
        guarded.tokens = 1;
        guarded.run();
        let (exchange, id) = guarded.last();
        guarded.http.answer(exchange, 200, &json!({"jsonrpc": "2.0", "id": id, "result": hello(true)}));
        guarded.declines = true;
        guarded.faults.insert("/token".into(), token);
        guarded
    }

    /// The same with a session of 2025-11-25.
    fn listening(token: (u16, &'static str)) -> Self {
        let set = |config: &mut ClientConfig| (config.policy, config.watch.tools) = (Policy::Legacy, true);
        let mut guarded = Self::of(set, Self::ready().record);
        guarded.tokens = 1;
        guarded.run();
        guarded.http.accept("s1");
        let note = guarded.mcp().pop().unwrap().0;
        guarded.http.refuse(note, 202);
        guarded.declines = true;
        guarded.faults.insert("/token".into(), token);
        guarded
    }

    /// The server refuses the token of the latest request.
    fn lose_latest(&mut self) {
        let exchange = self.mcp().pop().unwrap().0;
        self.challenge(exchange, 401, "Bearer");
        self.run();
    }

    /// Lets time pass until there is another request.
    fn await_next(&mut self) {
        let count = self.mcp().len();
        let mut seconds = 0;
        while self.mcp().len() == count {
            assert!(seconds < 120, "it goes on");
            self.pass(1);
            seconds += 1;
        }
    }

    fn pass(&mut self, seconds: u64) {
        for _ in 0..seconds {
            self.http.rig.tick(Duration::from_secs(1));
            self.run();
        }
    }
}

// covers: B-250
#[test]
fn declined_login_ends_the_attempts_of_a_subscription() {
    let mut guarded = Guarded::watching(GONE);
    assert_eq!(guarded.mcp().pop().unwrap().1.headers.get("mcp-method"), Some("subscriptions/listen"));
    let count = guarded.mcp().len();
    guarded.lose_latest();
    guarded.pass(3600);
    assert_eq!((guarded.mcp().len(), guarded.pages()), (count, 1));
    assert!(guarded.http.rig.events.contains(&Event::Watching(Watch::new())));
    assert!(guarded.http.rig.diagnostics().contains(&DiagnosticKind::ListenerOff));
    guarded.http.assert_at_rest();
}

// covers: B-250
#[test]
fn declined_login_ends_the_attempts_of_a_listener() {
    let mut guarded = Guarded::listening(GONE);
    assert_eq!(&*guarded.mcp().pop().unwrap().1.method, "GET");
    let count = guarded.mcp().len();
    guarded.lose_latest();
    guarded.pass(3600);
    assert_eq!((guarded.mcp().len(), guarded.pages()), (count, 1));
    assert!(guarded.http.rig.diagnostics().contains(&DiagnosticKind::ListenerOff));
    // Calls do without it.
    guarded.http.rig.echo();
    assert_eq!(guarded.mcp().len(), count + 1);
}

// covers: B-250
#[test]
fn open_listener_that_loses_its_token_is_reported_once() {
    let mut guarded = Guarded::listening(GONE);
    let listener = guarded.mcp().pop().unwrap().0;
    guarded.http.stream(listener);
    guarded.http.rig.handle_event(listener, ExchangeEvent::Failed { sent: Sent::Maybe, why: Closed::Reset });
    let next = guarded.http.rig.client.poll_timeout().unwrap() - guarded.http.rig.now;
    guarded.http.rig.tick(next);
    let count = guarded.mcp().len();
    guarded.lose_latest();
    guarded.pass(3600);
    assert_eq!((guarded.mcp().len(), guarded.pages()), (count, 1));
    let cause = StreamEnd::Closed(Closed::Unauthorized(Box::new(AuthError::Declined)));
    let lost = Event::ListenerLost { cause, again: None, ends_session: false };
    assert_eq!(guarded.http.rig.events.iter().filter(|event| **event == lost).count(), 1);
}

// covers: B-244
#[test]
fn streams_try_again_while_the_issuer_is_down() {
    for mut guarded in [Guarded::watching(DOWN), Guarded::listening(DOWN)] {
        guarded.lose_latest();
        guarded.await_next();
        guarded.faults.clear();
        // The first of these come soon after the failure, and the issuer is not asked again.
        let is_renewed = (0..5).any(|_| {
            guarded.lose_latest();
            let is_renewed = guarded.credentials().pop().unwrap() == bearer("access-2");
            if !is_renewed {
                guarded.await_next();
            }
            is_renewed
        });
        assert!(is_renewed && guarded.pages() == 0);
    }
}
