//! A panic of the application is contained, wherever it happens.

use super::*;
use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Panics when it is dropped, and counts it.
struct Grenade(Arc<AtomicUsize>);

impl Drop for Grenade {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
        std::panic::resume_unwind(Box::new("on purpose"));
    }
}

/// Returns a callback that counts its events and panics.
fn panics<E>(events: &Arc<AtomicUsize>) -> impl FnMut(E) + Send + Sync + use<E> {
    let events = Arc::clone(events);
    move |_| {
        events.fetch_add(1, Ordering::SeqCst);
        std::panic::resume_unwind(Box::new("on purpose"));
    }
}

// covers: B-278
#[test]
fn panic_in_the_event_callback_is_caught() {
    let _limit = limit();
    let events = Arc::new(AtomicUsize::new(0));
    let config = ClientOptions::new().on_event(panics(&events));
    let client = connect_with(router().0, config).wait().expect("connected");
    assert_eq!(add(&client).as_deref(), Ok("3"));
    assert_eq!(client.close().wait(), Termination::Requested);
    drop(client);
    // Ready, and the end.
    until(|| events.load(Ordering::SeqCst) >= 2);
}

// covers: B-278
#[test]
fn panic_in_the_event_callback_of_a_server_is_caught() {
    let _limit = limit();
    let events = Arc::new(AtomicUsize::new(0));
    let serving = ServerOptions::new().on_event(panics(&events));
    let client = connect(Service::from((router().0, serving))).wait().expect("connected");
    client.notify("custom/note", Object::new()).expect("accepted").wait().expect("its bytes are written");
    assert_eq!(add(&client).as_deref(), Ok("3"));
    until(|| events.load(Ordering::SeqCst) > 0);
    assert_eq!(client.close().wait(), Termination::Requested);
}

/// Creates a server with a tool that never ends and panics when it is dropped. Returns how often it
/// was entered and dropped.
pub(crate) fn grenades() -> (Router, Arc<AtomicUsize>, Arc<AtomicUsize>) {
    let (entered, dropped) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (enter, count) = (entered.clone(), dropped.clone());
    let router = router().0.tool_async(tool("grenade"), move |_cx, ()| {
        enter.fetch_add(1, Ordering::SeqCst);
        let grenade = Grenade(count.clone());
        async move {
            let _grenade = grenade;
            pending::<Result<String, ToolError>>().await
        }
    });
    (router, entered, dropped)
}

// covers: B-149
#[test]
fn panic_while_dropping_a_cancelled_handler_is_caught() {
    let _limit = limit();
    let (router, entered, dropped) = grenades();
    let client = connect(router).wait().expect("connected");
    let cancelled = client.start(tools::call("grenade"));
    until(|| entered.load(Ordering::SeqCst) == 1);
    drop(cancelled);
    until(|| dropped.load(Ordering::SeqCst) == 1);
    assert_eq!(add(&client).as_deref(), Ok("3"));
    assert_eq!(client.close().wait(), Termination::Requested);
}

// covers: B-149
#[test]
fn panic_while_dropping_handlers_of_a_connection_is_caught() {
    let _limit = limit();
    let (router, entered, dropped) = grenades();
    let client = connect(router).wait().expect("connected");
    let held = [(); 2].map(|()| client.start(tools::call("grenade")));
    until(|| entered.load(Ordering::SeqCst) == 2);
    assert_eq!(client.close().wait(), Termination::Requested);
    until(|| dropped.load(Ordering::SeqCst) == 2);
    for held in held {
        held.wait().expect_err("no answer");
    }
}

// covers: B-278
#[test]
fn panic_while_dropping_an_unneeded_answer_is_caught() {
    let _limit = limit();
    let (asked, dropped) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (ask, count) = (asked.clone(), dropped.clone());
    let config = ClientOptions::new().set(|config| config.policy = Policy::Legacy).on_elicit(move |_| {
        ask.fetch_add(1, Ordering::SeqCst);
        let grenade = Grenade(count.clone());
        async move {
            let _grenade = grenade;
            pending::<ElicitResult>().await
        }
    });
    let client = connect_with(router().0, config).wait().expect("connected");
    let greeted = client.start(tools::call("greet"));
    until(|| asked.load(Ordering::SeqCst) == 1);
    drop(greeted);
    until(|| dropped.load(Ordering::SeqCst) == 1);
    assert_eq!(add(&client).as_deref(), Ok("3"));
    assert_eq!(client.close().wait(), Termination::Requested);
}
