//! The client: the engine opens the session and keeps its stream open, and hands the events of the
//! dialect to the application.

use mcp_blocking::{Client, ClientEvent, ClientOptions, Object, Policy, RawJson, connect_with};
use std::error::Error;
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

/// The maximum time for the next event of a call.
const PATIENCE: Duration = Duration::from_secs(30);

/// A client of the dialect, which makes one call at a time.
pub(crate) struct SampleClient {
    client: Client,
    /// The types and the data of the events.
    events: Receiver<(String, Object)>,
}

impl SampleClient {
    /// Opens a session.
    pub(crate) fn connect(url: &str) -> Result<Self, Box<dyn Error>> {
        let (tell, events) = mpsc::channel();
        let options = ClientOptions::new()
            .set(|config| {
                config.policy = Policy::Legacy;
                config.control = ["connected", "content", "end", "error"].map(String::from).into();
            })
            .on_event(move |event| {
                if let ClientEvent::Control(control) = event
                    && let Ok(data) = RawJson::parse(control.data)
                    && let Ok(data) = Object::read(&data)
                {
                    tell.send((control.event, data)).ok();
                }
            });
        let client = Self { client: connect_with(url, options)?, events };
        // A call before the stream is open would be refused.
        client.expect("connected")?;
        Ok(client)
    }

    /// Calls a tool with integers as arguments. Returns the contents of its events.
    pub(crate) fn call(&mut self, tool: &str, arguments: &[(&str, i64)]) -> Result<Vec<String>, Box<dyn Error>> {
        let arguments = arguments.iter().fold(Object::new(), |all, (name, value)| all.with(name, *value));
        let params = Object::new().with("name", tool).with("arguments", arguments);
        // Its response is an acknowledgement and no message of JSON-RPC, as for a notification.
        self.client.notify("tools/call", params)?.wait()?;
        let mut contents = Vec::new();
        loop {
            let (event, data) = self.events.recv_timeout(PATIENCE)?;
            match event.as_str() {
                "content" => contents.push(data.required("content")?),
                "error" => return Err(data.required::<String>("error")?.into()),
                _ => return Ok(contents),
            }
        }
    }

    fn expect(&self, wanted: &str) -> Result<(), Box<dyn Error>> {
        let (event, _) = self.events.recv_timeout(PATIENCE)?;
        if event == wanted { Ok(()) } else { Err(format!("{event} in place of {wanted}").into()) }
    }
}
