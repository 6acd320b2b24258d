use super::super::asking::{ClientLink, Questions};
use super::super::question::ReplyKey;
use super::super::running::Cancelled;
use super::super::sync::{Mutex, lock};
use super::*;
use crate::error::AuthHints;
use crate::input::{AuthKey, AuthToken, ClientCommand, InputKey, InputToken};
use core::future::{pending, ready};
use core::pin::Pin;
use core::task::{Context, Poll, Waker};

/// The questions of a client, and the commands of its callbacks.
struct Bench {
    callbacks: ClientCallbacks,
    questions: Arc<Mutex<Questions>>,
    commands: Arc<Mutex<Vec<ClientCommand>>>,
    link: ClientLink,
}

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

    fn begin(&self, question: Question) -> Asking {
        let token = match &question {
            Question::Input(_) => ReplyToken::Input(InputToken::new(InputKey::new(7))),
            Question::Challenge(_) => ReplyToken::Authorization(AuthToken::new(AuthKey::new(7))),
        };
        lock(&self.questions).begin(&self.link, token, question)
    }

    /// Asks, and runs the callback, which does not wait.
    fn ask(&self, question: Question) -> ClientCommand {
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

fn form() -> Question {
    Question::Input(InputRequest::Elicitation(Form::new("?").text("it").into()))
}

fn sampling() -> Question {
    Question::Input(SampleRequest::new(9).user("?").into())
}

fn challenge() -> Question {
    Question::Challenge(Challenge::new(401, AuthHints::default()))
}

fn answer(answer: InputAnswer) -> ClientCommand {
    ClientCommand::Answer(InputKey::new(7), answer)
}

fn internal(text: &str) -> ClientCommand {
    answer(InputAnswer::internal(text))
}

fn authorize(with: Authorization) -> ClientCommand {
    ClientCommand::Authorize(AuthKey::new(7), with)
}

#[test]
fn question_is_answered_by_its_callback_in_either_form() {
    let headers = || Authorization::Headers(crate::Headers::new().with("Authorization", "Bearer b"));
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
        assert_eq!(bench.ask(Question::Input(InputRequest::Roots)), answer(InputAnswer::Error(none)));
        assert_eq!(bench.ask(challenge()), authorize(headers()));
    }
    let bench = Bench::new(ClientOptions::new().roots(["file:///a"]));
    assert_eq!(bench.ask(Question::Input(InputRequest::Roots)), answer(InputAnswer::roots(["file:///a"])));
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
    let withdrawn: Cancelled = lock(&bench.questions).withdraw(ReplyKey::Input(InputKey::new(7)));
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
