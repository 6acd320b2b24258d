//! What the application of a server does with its requests: it answers at once or later, sends
//! progress, asks its client, or makes a task. Each result names the call that it is for.

use super::node::NodeId;
use super::world::{SimEvent, World};
use mcp_proto::input::{Note, Outcome, RequestKey, ServerCommand};
use mcp_proto::rpc::{Object, RawJson};
use mcp_proto::server::{IncomingRequest, Responder};
use mcp_proto::{Form, Progress, TaskOptions};
use std::time::Duration;

/// A request that the application works on.
#[derive(Debug)]
pub(super) struct Handler {
    responder: Option<Responder>,
    /// The call that it is for.
    of: String,
    /// The steps before the response.
    left: u64,
    asks: bool,
    is_task: Option<bool>,
    /// The answer of the client.
    answer: Option<String>,
}

impl World {
    /// The application gets a request.
    pub(super) fn request(&mut self, at: usize, mut responder: Responder, mut incoming: IncomingRequest) {
        self.report.handled += 1;
        if let Err(error) = responder.open(&mut incoming) {
            // The clocks are apart by more than a state lives, or the client has invented it.
            self.command(at, ServerCommand::Respond(responder.write(Outcome::Error(error))));
            return;
        }
        let arguments = incoming.params.optional_object("arguments").ok().flatten().unwrap_or_default();
        let (Ok(name), Ok(of)) = (incoming.params.required::<String>("name"), arguments.required::<String>("of"))
        else {
            let result = Outcome::Complete(Object::new().with("tools", Vec::<RawJson>::new()));
            self.command(at, ServerCommand::Respond(responder.write(result)));
            return;
        };
        let answer = incoming.inputs.get("q").map(|answer| match answer {
            Ok(answer) => answer.as_str().to_owned(),
            Err(_) => "refused".to_owned(),
        });
        if let Some(answer) = &answer {
            assert!(answer.contains(&of) || answer == "refused", "{of} gets the answer {answer}");
            self.report.answered += 1;
        }
        let owner = of.split_once(' ').map(|(owner, _)| owner);
        let principal = incoming.context.principal.as_ref().map(|principal| principal.as_str());
        assert_eq!(principal, owner, "a request of somebody else");
        let reruns = arguments.optional::<bool>("rerun").ok().flatten();
        let left = match &*name {
            "quick" => 0,
            "slow" | "task" => 1 + self.rng.below(6),
            _ => 1,
        };
        let is_first = answer.is_none();
        let handler = Handler {
            left,
            asks: is_first && (name == "ask" || name == "task" && self.rng.per_mille(300)),
            is_task: (name == "task" && is_first && incoming.rounds == 0).then(|| reruns.unwrap_or(false)),
            answer,
            of,
            responder: Some(responder),
        };
        let key = handler.responder.as_ref().expect("it has one").key();
        let id = self.nodes[at].id;
        self.nodes[at].handlers.insert(key, handler);
        self.work_soon(id, key);
    }

    fn work_soon(&mut self, id: NodeId, key: RequestKey) {
        let longest = self.rng.of(&[5, 100, 2000, 10_000]);
        let after = Duration::from_millis(self.rng.below(longest));
        self.later(after, SimEvent::Work(id, key));
    }

    /// A handler goes on.
    pub(super) fn work(&mut self, id: NodeId, key: RequestKey) {
        let Some(at) = self.place(id) else { return };
        let Some(handler) = self.nodes[at].handlers.get_mut(&key) else { return };
        if let Some(reruns) = handler.is_task.take() {
            self.command(at, ServerCommand::Notify(key, Note::IntoTask(TaskOptions::new().rerun(reruns))));
            return self.work_soon(id, key);
        }
        if handler.left > 0 {
            handler.left -= 1;
            let note = match handler.left % 2 {
                0 => Note::Progress(Progress::new(10.0 - handler.left as f64)),
                _ => Note::Status(format!("{} left", handler.left)),
            };
            self.command(at, ServerCommand::Notify(key, note));
            return self.work_soon(id, key);
        }
        let Some(mut handler) = self.nodes[at].handlers.remove(&key) else { return };
        let Some(responder) = handler.responder.take() else { return };
        let outcome = match handler.asks {
            true => {
                let question = Form::new(handler.of.as_str()).text("it").into();
                let state = RawJson::parse(format!("{:?}", handler.of).into_bytes()).ok();
                Outcome::NeedInput { requests: vec![("q".to_owned(), question)], state }
            }
            false => {
                let answer = handler.answer.map(|answer| answer.contains("accept"));
                Outcome::Complete(Object::new().with("of", handler.of.as_str()).with_opt("answer", answer))
            }
        };
        self.command(at, ServerCommand::Respond(responder.write(outcome)));
    }
}
