//! The client over `mcp-smol`.

use std::future::ready;

use mcp_proto::call::Custom;
use mcp_proto::{Call, CallToolResult, ProtocolVersion, Tool};
use mcp_smol::{Client, ClientOptions, tools};
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
        .on_elicit_async(move |question| ready(fill(&form, &question)))
        .on_sample_async(|_| ready(Ok(model())))
        .roots([ROOT])
        .on_event(|event| eprintln!("{event:?}"))
        .on_message(|message| {
            eprintln!("{message:?}");
            Ok(())
        });
    let connecting = mcp_smol::connect_with(task.url.as_str(), config);
    let client = smol::block_on(connecting).map_err(|why| why.to_string())?;
    Ok(Box::new(Smol(client)))
}

struct Smol(Client);

impl Session for Smol {
    fn revision(&self) -> Option<ProtocolVersion> {
        self.0.server().map(|server| server.version)
    }

    fn tools(&mut self) -> Result<Vec<Tool>, String> {
        smol::block_on(self.0.pages(tools::list()).all()).map_err(|why| why.to_string())
    }

    fn calls(&mut self, calls: Vec<Call<tools::CallTool>>) -> Result<Vec<CallToolResult>, String> {
        let begun: Vec<_> = calls.into_iter().map(|call| self.0.start(call)).collect();
        smol::block_on(async {
            let mut results = Vec::new();
            for call in begun {
                results.push(call.await.map_err(|why| why.to_string())?);
            }
            Ok(results)
        })
    }

    fn ask(&mut self, call: Call<Custom<Value>>) -> Result<Value, String> {
        smol::block_on(self.0.call(call)).map_err(|why| why.to_string())
    }

    fn close(self: Box<Self>) -> Result<(), String> {
        let why = smol::block_on(self.0.close());
        let left = self.0.stats();
        if left.channels == 0 { Ok(()) } else { Err(format!("{why:?}, but {left:?}")) }
    }
}
