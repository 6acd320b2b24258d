//! What the callbacks of our client hear of a server, and what they answer.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use mcp_proto::client::Event;
use mcp_proto::input::Change;
use mcp_proto::model::elicitation::UrlRequest;
use mcp_proto::model::roots::Root;
use mcp_proto::model::sampling::{Block, SampleRequest, SampleResult, ToolUse};
use mcp_proto::{ElicitResult, ErrorObject, Object, Watch};
use serde_json::Value;

use super::SOON;

/// The state that the callbacks of a session share with its steps. Clones share it too.
#[derive(Clone, Default)]
pub struct Ear(Arc<(Mutex<Heard>, Condvar)>);

/// The received events, and the answers to give.
#[derive(Default)]
pub struct Heard {
    /// The content of the user, who then also opens web pages. `None` declines.
    form: Option<Object>,
    /// The URI of the one root.
    root: String,
    asked: Vec<&'static str>,
    notifications: BTreeMap<String, usize>,
    changes: BTreeMap<Change, usize>,
    reconnected: usize,
    lost: Option<String>,
    diagnostics: Vec<String>,
    stderr: Vec<String>,
    /// What the server announces of the watched changes, each time that this was reported.
    pub watching: Vec<Watch>,
    /// Log messages: the level, the logger and the text, and whether the message names its call.
    pub logged: Vec<(String, bool)>,
    /// The web pages that the user was asked to open.
    pub pages: Vec<UrlRequest>,
    /// The ids of complete web pages.
    pub elicited: Vec<String>,
}

impl Heard {
    /// Returns how often this has changed.
    pub fn times(&self, change: &Change) -> usize {
        self.changes.get(change).copied().unwrap_or(0)
    }
}

impl Ear {
    /// Creates the state with this root.
    pub fn new(root: &str) -> Self {
        let ear = Self::default();
        root.clone_into(&mut ear.lock().root);
        ear
    }

    fn lock(&self) -> MutexGuard<'_, Heard> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a call with the content of the user.
    pub(super) fn begin(&self, form: Option<&Value>) -> Result<(), String> {
        let form = form.map(Object::encode).transpose().map_err(|why| why.to_string())?;
        let mut heard = self.lock();
        heard.form = form;
        heard.asked.clear();
        heard.pages.clear();
        Ok(())
    }

    /// Returns the requests of the server since the beginning of the call.
    pub(super) fn asked(&self) -> Vec<&'static str> {
        self.lock().asked.clone()
    }

    pub(super) fn elicit(&self) -> ElicitResult {
        let mut heard = self.lock();
        heard.asked.push("user");
        heard.form.clone().map_or(ElicitResult::Decline, ElicitResult::Accept)
    }

    pub(super) fn open(&self, page: UrlRequest) -> ElicitResult {
        let mut heard = self.lock();
        heard.asked.push("page");
        heard.pages.push(page);
        self.0.1.notify_all();
        if heard.form.is_some() { ElicitResult::Accept(Object::new()) } else { ElicitResult::Decline }
    }

    /// The model uses the offered tool, and then says what the tool has said.
    pub(super) fn sample(&self, question: &SampleRequest) -> Result<SampleResult, ErrorObject> {
        self.lock().asked.push("model");
        let last = question.messages.last().ok_or_else(|| ErrorObject::new(-32602, "no messages"))?;
        let result = last.content.iter().find_map(|block| match block {
            Block::ToolResult(result) => Some(result),
            _ => None,
        });
        Ok(match (result, question.tools.as_deref()) {
            (Some(result), _) => {
                let texts: Vec<&str> = result.content.iter().filter_map(|block| block.as_text()).collect();
                SampleResult::text("none", format!("{} gave {}", result.tool_use_id, texts.concat()))
            }
            (None, Some([tool, ..])) => {
                let input = Object::new().with("a", 6_i64).with("b", 7_i64);
                SampleResult::tool_use("none", [ToolUse::new("use-1", tool.name.as_str(), input)])
            }
            (None, _) => SampleResult::text("none", "forty-two"),
        })
    }

    pub(super) fn roots(&self) -> Result<Vec<Root>, ErrorObject> {
        let mut heard = self.lock();
        heard.asked.push("roots");
        Ok(vec![Root::new(heard.root.as_str()).name("the only one")])
    }

    pub(super) fn event(&self, event: Event) {
        let mut heard = self.lock();
        match event {
            Event::Notification { method, .. } => *heard.notifications.entry(method.into_owned()).or_default() += 1,
            Event::Changed(change) => *heard.changes.entry(change).or_default() += 1,
            Event::Watching(watch) => heard.watching.push(watch),
            Event::Log { call, message } => {
                let logger = message.logger.as_deref().unwrap_or_default();
                let text = format!("{} {logger} {}", message.level, message.data.as_str());
                heard.logged.push((text, call.is_some()));
            }
            Event::Elicited(id) => heard.elicited.push(id),
            Event::Reconnecting { .. } => heard.reconnected += 1,
            Event::ListenerLost { cause, again, .. } => heard.lost = Some(format!("lost: {cause}, again {again:?}")),
            Event::Diagnostic(diagnostic) => heard.diagnostics.push(diagnostic.to_string()),
            _ => return,
        }
        self.0.1.notify_all();
    }

    pub(super) fn line(&self, line: &str) {
        self.lock().stderr.push(line.to_owned());
    }

    /// Returns what was heard.
    pub fn look<T>(&self, look: impl FnOnce(&Heard) -> T) -> T {
        look(&self.lock())
    }

    /// Waits until something was heard.
    ///
    /// # Errors
    /// It was not, and what was heard instead.
    pub fn wait<T>(&self, mut look: impl FnMut(&Heard) -> Option<T>) -> Result<T, String> {
        let waited = self.0.1.wait_timeout_while(self.lock(), SOON, |heard| look(heard).is_none());
        let (heard, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let missed = || {
            let Heard { changes, notifications, watching, logged, elicited, .. } = &*heard;
            format!("not heard; heard was {changes:?}, {notifications:?}, {watching:?}, {logged:?}, {elicited:?}")
        };
        look(&heard).ok_or_else(missed)
    }

    /// Returns how often the tools have changed.
    pub fn changes(&self) -> usize {
        self.lock().times(&Change::Tools)
    }

    /// Waits until something has changed more often than `before`.
    pub fn changed(&self, change: &Change, before: usize) -> Result<usize, String> {
        self.wait(|heard| Some(heard.times(change)).filter(|times| *times > before))
    }

    /// Returns the reason why a listener or a subscription was given up.
    pub fn lost(&self) -> Option<String> {
        self.lock().lost.clone()
    }

    /// Returns how often a stream was resumed.
    pub fn reconnected(&self) -> usize {
        self.lock().reconnected
    }

    /// Returns the diagnostics of our client about the peer.
    pub fn diagnostics(&self) -> Vec<String> {
        self.lock().diagnostics.clone()
    }

    /// Returns the standard error of the peer.
    pub fn stderr(&self) -> Vec<String> {
        self.lock().stderr.clone()
    }
}
