//! The client over `mcp-blocking`.

use mcp_blocking::{Client, ClientOptions, tools};
use mcp_proto::call::Custom;
use mcp_proto::{Call, CallToolResult, ProtocolVersion, Tool};
use serde_json::Value;

use super::client::{ROOT, Session, Task, fill, model};

/// Connects to the server of the suite.
///
/// # Errors
/// Why it cannot connect.
pub fn connect(task: &Task) -> Result<Box<dyn Session>, String> {
    let (settings, form) = (task.clone(), task.plan.form.clone());
    let config = ClientOptions::new()
        .set(move |config| settings.configure(config))
        .on_elicit(move |question| fill(&form, &question))
        .on_sample(|_| Ok(model()))
        .roots([ROOT])
        .on_event(|event| eprintln!("{event:?}"))
        .on_message(|message| {
            eprintln!("{message:?}");
            Ok(())
        });
    let client = mcp_blocking::connect_with(task.url.as_str(), config).map_err(|why| why.to_string())?;
    Ok(Box::new(Blocking(client)))
}

struct Blocking(Client);

impl Session for Blocking {
    fn revision(&self) -> Option<ProtocolVersion> {
        self.0.server().map(|server| server.version)
    }

    fn tools(&mut self) -> Result<Vec<Tool>, String> {
        self.0.pages(tools::list()).collect::<Result<_, _>>().map_err(|why| why.to_string())
    }

    fn calls(&mut self, calls: Vec<Call<tools::CallTool>>) -> Result<Vec<CallToolResult>, String> {
        let begun: Vec<_> = calls.into_iter().map(|call| self.0.start(call)).collect();
        let ended = begun.into_iter().map(|call| call.wait());
        ended.collect::<Result<_, _>>().map_err(|why| why.to_string())
    }

    fn ask(&mut self, call: Call<Custom<Value>>) -> Result<Value, String> {
        self.0.call(call).map_err(|why| why.to_string())
    }

    fn close(self: Box<Self>) -> Result<(), String> {
        let why = self.0.close();
        let left = self.0.stats();
        if left.channels == 0 { Ok(()) } else { Err(format!("{why:?}, but {left:?}")) }
    }
}
