//! What the observers of an engine receive.

use crate::client::{ClientCommands, ClientConfig};
use crate::error::{DiagnosticKind, Refusal};
use crate::exchange::{Action, ConnectionId, IoEvent, Peer};
use crate::input::{Change, InputResult, WiredServerInput};
use crate::observer::{Observable, Observer};
use crate::server::{Event, ServerCommands, ServerConfig};
use crate::time::Instant;
use crate::wired::{Kind, WiredClient, WiredServer};
use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use bytes::Bytes;
use core::iter::from_fn;
use std::sync::Mutex;

/// Notes everything, and fails after this number of results.
#[derive(Clone, Debug)]
struct Notes(Arc<Mutex<Vec<String>>>, usize);

impl Notes {
    fn failing_after(results: usize) -> Self {
        Self(Arc::default(), results)
    }

    fn note(&self, text: String) {
        self.0.lock().expect("no panic").push(text);
    }

    fn take(&self) -> Vec<String> {
        core::mem::take(&mut *self.0.lock().expect("no panic"))
    }
}

impl Observer<WiredServer> for Notes {
    fn begin(&mut self, engine: &WiredServer) {
        self.note(format!("begin {}", engine.is_terminated()));
    }

    fn input(&mut self, _: Instant, input: &WiredServerInput, _: Option<Instant>) -> Result<(), String> {
        self.note(format!("{input:?}"));
        Ok(())
    }

    fn accepted(&mut self, _: Instant, connection: ConnectionId, _: Option<Instant>) -> Result<(), String> {
        self.note(format!("accepted {}", connection.0));
        Ok(())
    }

    fn returned(&mut self, returned: &Result<InputResult, Refusal>) -> Result<(), String> {
        self.note(format!("{returned:?}"));
        self.1 -= 1;
        if self.1 == 0 { Err("no room".to_string()) } else { Ok(()) }
    }

    fn output(&mut self, output: Option<&Action<Event>>) {
        self.note(output.map_or("none".to_string(), |output| format!("{output:?}")));
    }
}

fn server() -> WiredServer {
    let config = ServerConfig::new(crate::Implementation::new("observed", "1.0"));
    WiredServer::new(Arc::new(config), [1; 32], Instant::ZERO)
}

#[test]
fn every_observer_receives_inputs_results_and_outputs_in_order() {
    let mut server = server();
    let both = [Notes::failing_after(100), Notes::failing_after(100)];
    both.iter().for_each(|notes| server.observe(Box::new(notes.clone())));
    let connection = server.accept(Instant::ZERO, Kind::Lines, Peer::default());
    server.publish(Instant::ZERO, Change::Tools);
    server.handle_io(Instant::ZERO, connection, IoEvent::Read(Bytes::from_static(b"?\n")));
    server.handle_timeout(Instant::ZERO);
    let outputs: Vec<String> = from_fn(|| server.poll_output()).map(|output| format!("{output:?}")).collect();
    let [first, second] = both.map(|notes| notes.take());
    assert_eq!(first, second);
    let inputs = [
        "begin false",
        "accepted 1",
        "Command(Publish(Tools))",
        "Ok(Done)",
        "Event(ConnectionId(1), Read(b\"?\\n\"))",
        "Ok(Done)",
        "Tick",
        "Ok(Done)",
    ];
    assert_eq!(first[..inputs.len()], inputs);
    assert!(!outputs.is_empty(), "bytes that are not JSON have a diagnostic or an answer");
    let taken: Vec<String> = outputs.into_iter().chain(["none".to_string()]).collect();
    assert_eq!(first[inputs.len()..], taken);
}

#[test]
fn failed_observer_is_reported_once_and_the_others_go_on() {
    let mut server = server();
    let [failing, other] = [Notes::failing_after(2), Notes::failing_after(100)];
    server.observe(Box::new(failing.clone()));
    server.observe(Box::new(other.clone()));
    for _ in 0..5 {
        server.handle_timeout(Instant::ZERO);
    }
    let ended = |output: &Action<Event>| {
        matches!(output, Action::Event(Event::Diagnostic(diagnostic))
            if diagnostic.kind == DiagnosticKind::RecordingEnded && diagnostic.detail.contains("no room"))
    };
    assert_eq!(from_fn(|| server.poll_output()).filter(ended).count(), 1);
    let ticks = |notes: &Notes| notes.take().iter().filter(|note| *note == "Tick").count();
    assert_eq!((ticks(&failing), ticks(&other)), (2, 5));
}

/// Says that each input breaks a rule, and when it needs one.
#[derive(Debug)]
struct Strict;

impl Observer<WiredClient> for Strict {
    fn input(&mut self, _: Instant, _: &crate::input::WiredClientInput, timer: Option<Instant>) -> Result<(), String> {
        Err(format!("an input, and the timer is {timer:?}"))
    }

    fn output(&mut self, _: Option<&Action<crate::client::Event>>) {}

    fn poll_timeout(&self) -> Option<Instant> {
        Some(Instant::from_millis(3))
    }
}

#[test]
fn broken_rule_panics_once_and_its_time_is_a_timer() {
    let mut client = WiredClient::new(Arc::new(ClientConfig::given()), [1; 32], Instant::ZERO);
    let timer = client.poll_timeout();
    client.observe(Box::new(Strict));
    assert_eq!(client.poll_timeout(), Some(Instant::from_millis(3)));
    let panic = std::panic::catch_unwind(core::panic::AssertUnwindSafe(|| client.close(Instant::ZERO)));
    let text = panic.expect_err("a rule is broken").downcast::<String>().expect("text");
    assert_eq!(*text, format!("an input, and the timer is {timer:?}"));
    assert_eq!(client.poll_timeout(), timer, "the observer is gone, and nothing has changed");
    client.close(Instant::ZERO);
}
