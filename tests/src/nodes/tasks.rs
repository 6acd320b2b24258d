//! Tasks that are to survive: each is called once, and takes as long as some kills.

use crate::adapters::Adapter;
use mcp_driver::ClientOptions;
use mcp_proto::{Object, tools};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// The number of tasks.
const TASKS: usize = 64;
/// How long each takes, if it runs once.
const LENGTH: Duration = Duration::from_secs(20);
/// How long it may take if its servers are killed.
const BOUND: Duration = Duration::from_secs(200);
/// The time until all are tasks.
const BEGINS: Duration = Duration::from_secs(5);

pub(super) struct Tasks {
    running: Arc<AtomicUsize>,
    threads: Vec<JoinHandle<bool>>,
}

impl Tasks {
    /// Begins them.
    pub(super) fn start(url: String) -> Result<Self, String> {
        let running = Arc::new(AtomicUsize::new(TASKS));
        let mut threads = Vec::new();
        for adapter in Adapter::ALL {
            let client = adapter.connect(url.clone(), ClientOptions::new().tasks()).map_err(|why| why.to_string())?;
            let client = Arc::new(client);
            for nth in 0..TASKS / 2 {
                let (client, running) = (Arc::clone(&client), Arc::clone(&running));
                threads.push(thread::spawn(move || {
                    let text = format!("task {} {nth}", adapter.name());
                    let arguments = Object::new().with("text", text.as_str()).with("millis", LENGTH.as_millis() as u64);
                    let result = client.call(tools::call("job").arguments(&arguments).timeout(BOUND));
                    running.fetch_sub(1, Ordering::Relaxed);
                    match &result {
                        Ok(result) if result.first_text() == Some(text.as_str()) => true,
                        other => {
                            println!("{text}: {other:?}");
                            false
                        }
                    }
                }));
            }
        }
        thread::sleep(BEGINS);
        Ok(Self { running, threads })
    }

    pub(super) fn have_ended(&self) -> bool {
        self.running.load(Ordering::Relaxed) == 0
    }

    /// Returns how many are complete, and how many there are.
    pub(super) fn end(self) -> (usize, usize) {
        let ended = self.threads.into_iter().filter_map(|thread| thread.join().ok());
        (ended.filter(|is_complete| *is_complete).count(), TASKS)
    }
}
