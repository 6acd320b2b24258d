#![forbid(unsafe_code)]
//! Data that an application keeps for each HTTP session: it exists from the beginning of a session
//! to its end, which the engine decides and reports.
//!
//! `cargo run --example session_data` serves two tools that use it.

use mcp_blocking::{Router, Server, ServerEvent, ServerOptions, SessionKey, serve_http, tool};
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The data of all sessions, by name.
#[derive(Clone, Default)]
pub(crate) struct SessionData(Arc<Mutex<Sessions>>);

type Sessions = BTreeMap<SessionKey, BTreeMap<String, String>>;

impl SessionData {
    /// Returns a value. `None` if it was not set, and for a session that has ended.
    pub(crate) fn get(&self, session: SessionKey, name: &str) -> Option<String> {
        self.lock().get(&session)?.get(name).cloned()
    }

    /// Sets a value. Returns false for a session that has ended.
    pub(crate) fn set(&self, session: SessionKey, name: String, value: String) -> bool {
        self.lock().get_mut(&session).map(|data| data.insert(name, value)).is_some()
    }

    /// Returns the number of open sessions.
    pub(crate) fn len(&self) -> usize {
        self.lock().len()
    }

    /// Follows the sessions of a server.
    pub(crate) fn on_event(&self, event: &ServerEvent) {
        match event {
            ServerEvent::SessionOpened(session) => drop(self.lock().insert(*session, BTreeMap::new())),
            ServerEvent::SessionEnded(session, _) => drop(self.lock().remove(session)),
            _ => {}
        }
    }

    fn lock(&self) -> MutexGuard<'_, Sessions> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
pub(crate) struct Entry {
    /// The name.
    pub(crate) name: String,
    /// The value. None: look it up.
    pub(crate) value: Option<String>,
}

/// Serves at this address, with the data.
pub(crate) fn serve(data: &SessionData, address: &str) -> io::Result<Server> {
    let kept = data.clone();
    let router = Router::new("memory", "1.0").tool(
        tool("remember").describe("sets a value of this session, or looks it up").input::<Entry>(),
        move |cx, Entry { name, value }: Entry| {
            let session = cx.context().session.ok_or("this client has no session")?;
            let Some(value) = value else { return Ok(kept.get(session, &name).ok_or("not set")?) };
            if kept.set(session, name, value) { Ok("set".to_owned()) } else { Err("the session has ended".into()) }
        },
    );
    let followed = data.clone();
    let options = ServerOptions::new().on_event(move |event| followed.on_event(&event));
    serve_http((router, options), address)
}

#[cfg_attr(test, expect(dead_code, reason = "the test of this example has its own clients"))]
fn main() -> io::Result<()> {
    let data = SessionData::default();
    let server = serve(&data, "127.0.0.1:8000")?;
    println!("http://127.0.0.1:8000/mcp");
    server.wait();
    println!("{} sessions were open", data.len());
    Ok(())
}
