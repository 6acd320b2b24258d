//! Clients that call all the time, and check each answer, until standard input ends: `nodes URL
//! COUNT MODE`. The last line of output is what became of the calls.

use std::collections::BTreeMap;
use std::error::Error;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rmcp::model::*;
use rmcp::service::{RequestContext, RunningService};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::{ClientHandler, ClientLifecycleMode, ClientServiceExt, ErrorData, RoleClient};
use serde_json::json;
use tokio::time::{sleep, timeout};

use crate::client::{params, text};

const TIMEOUT: Duration = Duration::from_secs(40);

#[derive(Default)]
struct Tally {
    begun: u64,
    answered: u64,
    failed: BTreeMap<String, u64>,
    slowest: Duration,
    faults: Vec<String>,
    alive: u64,
}

/// What all clients use.
struct Clients {
    url: String,
    mode: ClientLifecycleMode,
    stopped: AtomicBool,
    tally: Mutex<Tally>,
}

/// A client that answers each question with its word.
#[derive(Clone)]
struct Answers(String);

impl ClientHandler for Answers {
    fn get_info(&self) -> ClientConfig {
        let capabilities = ClientCapabilities::builder().enable_elicitation().build();
        ClientConfig::new(capabilities, Implementation::new("nodes-rmcp", "1.0.0"))
    }

    async fn create_elicitation(
        &self,
        _: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        Ok(ElicitResult::new(ElicitationAction::Accept).with_content(json!({ "word": self.0 })))
    }
}

/// Runs them.
pub async fn run(url: &str, count: &str, mode: &str) -> Result<(), Box<dyn Error>> {
    let mode = match mode {
        "modern" => ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] },
        _ => ClientLifecycleMode::Initialize,
    };
    let (stopped, tally) = Default::default();
    let clients = Arc::new(Clients { url: url.to_owned(), mode, stopped, tally });
    let run = |nth: u64| {
        let clients = Arc::clone(&clients);
        tokio::spawn(async move { clients.run(nth).await })
    };
    let running: Vec<_> = (0..count.parse()?).map(run).collect();
    tokio::task::spawn_blocking(|| std::io::copy(&mut std::io::stdin(), &mut std::io::sink())).await??;
    clients.stopped.store(true, Ordering::Relaxed);
    for client in running {
        client.await?;
    }
    let tally = clients.tally.lock().map_err(|why| why.to_string())?;
    let Tally { begun, answered, failed, slowest, faults, alive } = &*tally;
    println!(
        "{}",
        json!({ "begun": begun, "answered": answered, "failed": failed, "slowest": slowest.as_secs_f64(),
            "faults": faults, "alive": alive })
    );
    Ok(())
}

/// Returns a text with those of its numbers that are statuses.
fn with_statuses(text: &str) -> String {
    let is_status = |number: &str| number.len() == 3 && number.starts_with(['4', '5']);
    let parts = text.split_inclusive(|c: char| !c.is_ascii_digit()).map(|part| {
        let (number, rest) = part.split_at(part.find(|c: char| !c.is_ascii_digit()).unwrap_or(part.len()));
        if is_status(number) { part } else { rest }
    });
    parts.collect::<String>().split_whitespace().collect::<Vec<_>>().join(" ")
}

fn below(limit: u64) -> u64 {
    RandomState::new().build_hasher().finish() % limit
}

impl Clients {
    fn tell(&self, tell: impl FnOnce(&mut Tally)) {
        tell(&mut self.tally.lock().expect("no client panics"));
    }

    fn failed(&self, what: &str, why: &str) {
        let cause: String = format!("{what}: {}", with_statuses(why)).chars().take(300).collect();
        self.tell(|tally| *tally.failed.entry(cause).or_default() += 1);
    }

    async fn connect(&self, word: &str) -> Option<RunningService<RoleClient, Answers>> {
        let config = StreamableHttpClientTransportConfig::with_uri(self.url.as_str());
        let transport = StreamableHttpClientTransport::from_config(config);
        let served = Answers(word.to_owned()).serve_with_lifecycle(transport, self.mode.clone());
        match timeout(TIMEOUT, served).await {
            Ok(Ok(service)) => Some(service),
            Ok(Err(why)) => {
                self.failed("connect", &why.to_string());
                None
            }
            Err(_) => {
                self.failed("connect", "no answer");
                None
            }
        }
    }

    /// Is one client. After a failure it connects again.
    async fn run(&self, nth: u64) {
        let word = format!("word-{}-{nth}", std::process::id());
        let mut session = None;
        while !self.stopped.load(Ordering::Relaxed) {
            let tool = ["echo", "slow", "ask"][usize::try_from(below(3)).unwrap_or_default()];
            self.once(&mut session, tool, &word).await;
            sleep(Duration::from_millis(below(2000))).await;
        }
        // A session can have been lost since its last call.
        if self.once(&mut session, "echo", &word).await || self.once(&mut session, "echo", &word).await {
            self.tell(|tally| tally.alive += 1);
        }
    }

    async fn once(&self, session: &mut Option<RunningService<RoleClient, Answers>>, tool: &str, word: &str) -> bool {
        if session.is_none() {
            *session = self.connect(word).await;
        }
        let Some(service) = session else { return false };
        let is_answered = self.call(service, tool, word).await;
        if !is_answered {
            *session = None;
        }
        is_answered
    }

    /// Calls a tool. Returns whether it is answered.
    async fn call(&self, service: &RunningService<RoleClient, Answers>, tool: &str, word: &str) -> bool {
        let mut said = String::new();
        self.tell(|tally| {
            tally.begun += 1;
            said = format!("{word} {}", tally.begun);
        });
        let expected = if tool == "ask" { format!("{said} {word}") } else { said.clone() };
        let begun = Instant::now();
        let called = service.call_tool(params(tool, json!({ "text": said, "millis": below(3000) })));
        let called = timeout(TIMEOUT, called).await;
        self.tell(|tally| tally.slowest = tally.slowest.max(begun.elapsed()));
        match called {
            Ok(Ok(result)) if text(&result) == expected => {
                self.tell(|tally| tally.answered += 1);
                return true;
            }
            Ok(Ok(result)) => {
                self.tell(|tally| tally.faults.push(format!("{tool} of {expected} gave {}", text(&result))));
            }
            Ok(Err(why)) => self.failed(tool, &why.to_string()),
            Err(_) => self.failed(tool, "no answer"),
        }
        false
    }
}
