use super::super::asking::{ClientLink, Questions};
use super::super::question::ReplyKey;
use super::super::running::Cancellation;
use super::super::sync::{Mutex, lock};
use super::*;
use bytes::Bytes;
use core::future::{pending, ready};
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use mcp_proto::client::Policy;
use mcp_proto::exchange::{Action, IoEvent, Peer};
use mcp_proto::input::{AuthKey, ClientCommand, InputKey};

/// The questions of a client, and the commands of its callbacks.
struct Bench {
    callbacks: ClientCallbacks,
    questions: Arc<Mutex<Questions>>,
    commands: Arc<Mutex<Vec<ClientCommand>>>,
    link: ClientLink,
}

/// A client whose server asks questions.
struct Engine(WiredClient);

impl Engine {
    /// Creates a client, and passes it these bytes of its server, each as a response to what it
    /// wrote before.
    fn new(config: ClientConfig, responses: &[&str]) -> Self {
        let mut engine = Self(WiredClient::new(Arc::new(config), [1; 32], Instant::ZERO));
        responses.iter().for_each(|response| engine.read(response));
        engine
    }

    fn read(&mut self, text: &str) {
        while let Some(output) = self.0.poll_output() {
            if let Action::Open(id, _) = output {
                self.0.handle_io(Instant::ZERO, id, IoEvent::Opened(Peer::default()));
            }
        }
        let bytes = Bytes::copy_from_slice(text.as_bytes());
        self.0.handle_io(Instant::ZERO, CONNECTION, IoEvent::Read(bytes));
    }

    /// Returns the question that the server has asked.
    fn question(&mut self) -> (ReplyToken, Question) {
        let events = core::iter::from_fn(|| self.0.poll_output()).filter_map(|output| match output {
            Action::Event(event) => Question::of(event).ok(),
            _ => None,
        });
        events.last().expect("a question")
    }
}

const CONNECTION: ConnectionId = ConnectionId(1);

impl Bench {
    fn new(mut options: ClientOptions) -> Self {
        let (questions, commands) = (Arc::<Mutex<Questions>>::default(), Arc::<Mutex<Vec<ClientCommand>>>::default());
        let (asked, told) = (Arc::clone(&questions), Arc::clone(&commands));
        let link: ClientLink = Arc::new(move |command| {
            lock(&asked).answered(&command);
            lock(&told).push(command);
            Ok(())
        });
        Self { callbacks: options.take_callbacks(), questions, commands, link }
    }

    fn begin(&self, (token, question): (ReplyToken, Question)) -> PendingQuestion {
        lock(&self.questions).begin(&self.link, token, question)
    }

    /// Asks, and runs the callback, which does not wait.
    fn ask(&self, question: (ReplyToken, Question)) -> ClientCommand {
        match self.callbacks.route(self.begin(question)) {
            Some(Job::Sync(job)) => job.run(),
            Some(Job::Async(mut job)) => {
                assert!(Pin::new(&mut job).poll(&mut Context::from_waker(Waker::noop())).is_ready());
            }
            None => {}
        }
        self.answered()
    }

    fn answered(&self) -> ClientCommand {
        assert!(lock(&self.questions).is_empty());
        let mut commands = core::mem::take(&mut *lock(&self.commands));
        assert_eq!(commands.len(), 1);
        commands.remove(0)
    }
}

/// Returns the first question of a server over a pair of streams.
fn asked(method: &str, params: &str) -> (ReplyToken, Question) {
    let mut config = ClientConfig::given();
    config.policy = Policy::Legacy;
    let mut options =
        ClientOptions::new().on_elicit(|_| ElicitResult::Decline).on_sample(|_| Err(none())).roots([""; 0]);
    let mut engine = Engine(options.create(config, [1; 32], Instant::ZERO));
    engine.read(
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"protocolVersion\":\"2025-06-18\",\"capabilities\":{},\
         \"serverInfo\":{\"name\":\"s\",\"version\":\"1\"}}}\n",
    );
    engine.read(&format!("{{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"{method}\",\"params\":{params}}}\n"));
    engine.question()
}

fn form() -> (ReplyToken, Question) {
    let schema = r#"{"type":"object","properties":{"it":{"type":"string"}}}"#;
    asked("elicitation/create", &format!(r#"{{"message":"?","requestedSchema":{schema}}}"#))
}

fn sampling() -> (ReplyToken, Question) {
    let message = r#"{"role":"user","content":{"type":"text","text":"?"}}"#;
    asked("sampling/createMessage", &format!(r#"{{"messages":[{message}],"maxTokens":9}}"#))
}

fn roots() -> (ReplyToken, Question) {
    asked("roots/list", "{}")
}

fn challenge() -> (ReplyToken, Question) {
    let mut config = ClientConfig::url("http://localhost/mcp").expect("a URL");
    config.authorize = true;
    let refusal = "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Bearer\r\nContent-Length: 0\r\n\r\n";
    Engine::new(config, &[refusal]).question()
}

fn none() -> ErrorObject {
    ErrorObject::new(7, "none")
}

fn answer(answer: InputAnswer) -> ClientCommand {
    ClientCommand::Answer(InputKey::new(1), answer)
}

fn internal(text: &str) -> ClientCommand {
    answer(InputAnswer::internal(text))
}

fn authorize(with: Authorization) -> ClientCommand {
    ClientCommand::Authorize(AuthKey::new(1), with)
}

#[test]
fn question_is_answered_by_its_callback_in_either_form() {
    let headers = || Authorization::Headers(mcp_proto::Headers::new().with("Authorization", "Bearer b"));
    let sync = ClientOptions::new()
        .on_elicit(|_| ElicitResult::Decline)
        .on_sample(|request| Ok(SampleResult::text("m", request.max_tokens.to_string())))
        .on_roots(|| Err(ErrorObject::new(7, "none")))
        .on_authorize(move |challenge| if challenge.status == 401 { headers() } else { Authorization::Refuse });
    let asynchronous = ClientOptions::new()
        .on_elicit(|_| ready(ElicitResult::Decline))
        .on_sample(|request| ready(Ok(SampleResult::text("m", request.max_tokens.to_string()))))
        .on_roots(|| ready(Err(ErrorObject::new(7, "none"))))
        .on_authorize(move |_| ready(headers()));
    for options in [sync, asynchronous] {
        let bench = Bench::new(options);
        assert_eq!(bench.ask(form()), answer(InputAnswer::Elicitation(ElicitResult::Decline)));
        assert_eq!(bench.ask(sampling()), answer(InputAnswer::Sampling(SampleResult::text("m", "9"))));
        let none = ErrorObject::new(7, "none");
        assert_eq!(bench.ask(roots()), answer(InputAnswer::Error(none)));
        assert_eq!(bench.ask(challenge()), authorize(headers()));
    }
    let bench = Bench::new(ClientOptions::new().roots(["file:///a"]));
    assert_eq!(bench.ask(roots()), answer(InputAnswer::roots(["file:///a"])));
}

#[test]
fn question_without_an_answer_gets_an_error() {
    let bench = Bench::new(ClientOptions::new());
    assert_eq!(bench.ask(form()), internal("the callback does not exist"));
    assert_eq!(bench.ask(challenge()), authorize(Authorization::Refuse));
    drop(bench.begin(sampling()));
    assert_eq!(bench.answered(), internal("the callback was dropped"));
    let explode = |_| -> ElicitResult { std::panic::resume_unwind(Box::new("on purpose")) };
    let bench = Bench::new(ClientOptions::new().on_elicit(explode));
    assert_eq!(bench.ask(form()), internal("the callback panicked"));
}

#[test]
fn withdrawn_question_drops_its_callback() {
    let bench = Bench::new(ClientOptions::new().on_elicit(|_| pending()));
    let Some(Job::Async(mut job)) = bench.callbacks.route(bench.begin(form())) else { panic!("a future") };
    let mut poll = || Pin::new(&mut job).poll(&mut Context::from_waker(Waker::noop()));
    assert!(poll().is_pending());
    let withdrawn: Cancellation = lock(&bench.questions).withdraw(ReplyKey::Input(InputKey::new(1)));
    withdrawn.wake();
    assert!(matches!(poll(), Poll::Ready(_)));
    assert_eq!(bench.answered(), internal("the callback was cancelled"), "the engine ignores it");
}

#[test]
fn options_change_the_configuration_and_declare_capabilities() {
    let mut options = ClientOptions::new()
        .on_elicit(|_| ElicitResult::Cancel)
        .roots(["file:///a"])
        .header("X-Tenant", "a")
        .expect("a valid field")
        .set(|config| config.authorize = true);
    assert!(ClientOptions::new().header("Host", "a").is_err());
    let client = options.create(ClientConfig::given(), [1; 32], Instant::ZERO);
    let config = client.client().config();
    let declared = &config.capabilities;
    assert!(declared.elicitation.is_some() && declared.roots.is_some() && declared.sampling.is_none());
    assert!(config.authorize && config.headers.get("x-tenant") == Some("a"));
}
