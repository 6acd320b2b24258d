use super::super::store::tests::{key, record};
use super::super::{MemoryStore, OAuth, TokenStore};
use super::*;
use alloc::string::String;
use alloc::vec;
use mcp_proto::auth::{
    Alg, AssertionPurpose, AssertionRequest, DeviceCode, Dpop, LoopbackHost, Port, Record, Scopes, SignKey,
    SignRequest, Stored, Version,
};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};

/// Maximum time for what happens at once.
const SOON: Duration = Duration::from_secs(20);

/// A worker without a client, and its answers.
struct Bench {
    worker: Option<LoginWorker>,
    answers: Receiver<Input>,
    clock: Clock,
}

impl Bench {
    fn new(oauth: OAuth) -> Self {
        let (sender, answers) = channel();
        let sender = Mutex::new(sender);
        let link: ClientLink = Arc::new(move |command| {
            let ClientCommand::Auth(input) = command else { panic!("{command:?}") };
            let _ = sender.lock().expect("not poisoned").send(*input);
            Ok(())
        });
        let clock = Clock::start();
        Self { worker: Some(LoginWorker::new(oauth.setup, clock, link)), answers, clock }
    }

    fn push(&self, step: Output) {
        self.worker.as_ref().expect("not closed").push(step)();
    }

    fn answer(&self) -> Input {
        self.answers.recv_timeout(SOON).expect("an answer")
    }

    /// Waits until all steps so far are carried out.
    fn settle(&self) {
        let (sender, done) = channel();
        self.worker.as_ref().expect("not closed").call_after(Box::new(move || sender.send(()).expect("awaited")))();
        done.recv_timeout(SOON).expect("settled");
    }

    fn lease(&self, step: u64, purpose: Purpose) {
        self.push(Output::Lease(StepId(step), key(""), purpose));
    }

    fn listen(&self, step: u64) -> String {
        let until = self.clock.now() + SOON;
        let (host, port, path) = (LoopbackHost::V4, Port::Any, "/callback".into());
        self.push(Output::Listen(StepId(step), Listen { host, first: None, port, path, until }));
        match self.answer() {
            Input::Listening(of, Ok(uri)) if of == StepId(step) => uri,
            other => panic!("{other:?}"),
        }
    }

    fn browse(&self, step: u64) {
        let page = Browse {
            url: "https://issuer.example/authorize".into(),
            issuer: "https://issuer.example".into(),
            scopes: Scopes::new(),
            redirect_uri: "http://127.0.0.1:1/callback".into(),
            until: self.clock.now() + SOON,
        };
        self.push(Output::Browse(StepId(step), page));
    }
}

/// Makes a request to a redirect URI.
fn get(uri: &str, query: &str) -> String {
    let (host, path) = uri.strip_prefix("http://").and_then(|rest| rest.split_once('/')).expect("a URL");
    let mut stream = TcpStream::connect(host).expect("connected");
    stream.set_read_timeout(Some(SOON)).expect("set");
    write!(stream, "GET /{path}?{query} HTTP/1.1\r\nHost: {host}\r\n\r\n").expect("written");
    let mut response = String::new();
    stream.read_to_string(&mut response).expect("a response");
    response
}

const HELD: Result<Lease, StoreFault> = Ok(Lease::Held);

#[test]
fn steps_of_a_login_are_carried_out_in_order() {
    let store = MemoryStore::new();
    let reports = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&reports);
    let oauth = OAuth::new("test")
        .store(store.clone())
        .on_browse(|_| Browsed::Returned("http://127.0.0.1:1/callback?pasted".into()))
        .on_report(move |report| told.lock().expect("not poisoned").push(report.clone()));
    let bench = Bench::new(oauth);
    bench.lease(1, Purpose::Login);
    bench.push(Output::Load(StepId(2), key("")));
    assert_eq!(bench.answer(), Input::Leased(StepId(1), HELD));
    assert_eq!(bench.answer(), Input::Loaded(StepId(2), Ok(Stored::default())));
    let uri = bench.listen(3);
    bench.browse(4);
    assert_eq!(bench.answer(), Input::Redirected(StepId(4), "http://127.0.0.1:1/callback?pasted".into()));
    let browser = thread::spawn({
        let uri = uri.clone();
        move || (get(&uri, "forged"), get(&uri, "state=s"))
    });
    assert_eq!(bench.answer(), Input::Redirected(StepId(3), format!("{uri}?forged").into()));
    bench.push(Output::Ignore(StepId(3)));
    assert_eq!(bench.answer(), Input::Redirected(StepId(3), format!("{uri}?state=s").into()));
    let record = Box::new(record("https://issuer.example"));
    bench.push(Output::Save(StepId(5), key(""), Version::ABSENT, Some(record.clone())));
    let version = match bench.answer() {
        Input::Saved(StepId(5), Ok(version)) => version,
        other => panic!("{other:?}"),
    };
    bench.push(Output::Report(AuthReport::LoggedOut { revoked: None }));
    bench.push(Output::Finish(StepId(3), PageResult::Accepted));
    bench.push(Output::Finish(StepId(4), PageResult::Accepted));
    bench.push(Output::Release(key(""), Purpose::Login));
    bench.settle();
    assert_eq!(*reports.lock().expect("not poisoned"), [AuthReport::LoggedOut { revoked: None }]);
    assert_eq!(store.load(&key("")), Ok(Stored { record: Some(record), version }));
    assert!(store.lease(&key(""), Purpose::Login).expect("no fault").is_some(), "it is released");
    let (forged, accepted) = browser.join().expect("no panic");
    assert!(forged.starts_with("HTTP/1.1 404 ") && accepted.starts_with("HTTP/1.1 200 "), "{forged}{accepted}");
}

// covers: B-243
#[test]
fn lease_of_another_process_is_awaited() {
    let store = MemoryStore::new();
    let bench = Bench::new(OAuth::new("test").store(store.clone()));
    let take = |purpose| store.lease(&key(""), purpose).expect("no fault");
    let (login, change) = (take(Purpose::Login), take(Purpose::Change));
    bench.lease(1, Purpose::Login);
    bench.lease(2, Purpose::Change);
    for step in [1, 2] {
        assert_eq!(bench.answer(), Input::Leased(StepId(step), Ok(Lease::Waiting)));
    }
    // Other steps do not wait for it.
    bench.push(Output::Load(StepId(3), key("")));
    assert_eq!(bench.answer(), Input::Loaded(StepId(3), Ok(Stored::default())));
    drop(login);
    assert_eq!(bench.answer(), Input::Leased(StepId(1), HELD));
    // One that is not wanted any more is not taken.
    bench.push(Output::Release(key(""), Purpose::Change));
    bench.settle();
    drop(change);
    bench.push(Output::Release(key(""), Purpose::Login));
    bench.lease(4, Purpose::Change);
    assert_eq!(bench.answer(), Input::Leased(StepId(4), HELD));
}

#[test]
fn end_of_the_client_releases_everything_and_loses_no_record() {
    let store = MemoryStore::new();
    let mut bench = Bench::new(OAuth::new("test").store(store.clone()));
    bench.lease(1, Purpose::Login);
    assert_eq!(bench.answer(), Input::Leased(StepId(1), HELD));
    bench.listen(2);
    let (sender, go) = channel::<()>();
    let worker = bench.worker.take().expect("not closed");
    // What follows waits until the client has ended.
    worker.call_after(Box::new(move || assert!(go.recv_timeout(SOON).is_err())))();
    worker.push(Output::Save(StepId(3), key(""), Version::ABSENT, Some(Box::new(record("https://i.example")))))();
    worker.push(Output::Load(StepId(4), key("")))();
    drop(worker);
    drop(sender);
    // This ends when the threads of the worker and of the listener have.
    let answers: Vec<Input> = bench.answers.iter().collect();
    assert!(matches!(&*answers, [Input::Saved(StepId(3), Ok(_))]), "{answers:?}");
    assert!(store.lease(&key(""), Purpose::Login).expect("no fault").is_some());
    assert!(store.load(&key("")).expect("loaded").record.is_some());
}

#[test]
fn page_that_cannot_be_shown_is_declined() {
    fn told(_: &Browse) -> Browsed {
        panic!("a page")
    }
    for (oauth, number) in [
        (OAuth::new("test"), 1),
        (OAuth::new("test").on_browse(|_| Browsed::Declined), 2),
        (OAuth::new("test").on_browse(told), 3),
    ] {
        let bench = Bench::new(oauth);
        bench.browse(number);
        assert_eq!(bench.answer(), Input::Declined(StepId(number)));
    }
}

#[test]
fn page_that_blocks_delays_no_other_step() {
    let (sender, go) = channel::<()>();
    let go = Mutex::new(go);
    let bench = Bench::new(OAuth::new("test").on_browse(move |_| {
        let _ = go.lock().expect("not poisoned").recv_timeout(SOON);
    }));
    bench.browse(1);
    bench.push(Output::Load(StepId(2), key("")));
    assert_eq!(bench.answer(), Input::Loaded(StepId(2), Ok(Stored::default())));
    drop(sender);
}

fn assertion(purpose: AssertionPurpose) -> Box<AssertionRequest> {
    let (audience, token_endpoint) = ("https://issuer.example".into(), "https://issuer.example/token".into());
    Box::new(AssertionRequest { purpose, audience, token_endpoint, resource: None })
}

#[test]
fn assertion_is_asked_for_each_time_and_doubted_aloud() {
    let reports = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&reports);
    let calls = Mutex::new(0);
    let oauth = OAuth::new("test")
        .assertion(move |request| {
            assert_eq!(request.audience, "https://issuer.example");
            let mut calls = calls.lock().expect("not poisoned");
            *calls += 1;
            match *calls {
                1 => Ok("opaque".into()),
                2 => Ok("e30.eyJhdWQiOiJ4In0.c2ln".into()),
                3 => Err("not now".into()),
                _ => panic!("an assertion"),
            }
        })
        .on_report(move |report| told.lock().expect("not poisoned").push(report.clone()));
    let bench = Bench::new(oauth);
    let fault = |why: &str| Err(StoreFault(why.into()));
    let answers =
        [Ok("opaque".into()), Ok("e30.eyJhdWQiOiJ4In0.c2ln".into()), fault("not now"), fault("the callback panicked")];
    for (number, wanted) in (1..).zip(answers) {
        bench.push(Output::Assert(StepId(number), assertion(AssertionPurpose::Workload)));
        assert_eq!(bench.answer(), Input::Asserted(StepId(number), wanted));
    }
    let reports = reports.lock().expect("not poisoned");
    assert!(matches!(&**reports, [AuthReport::Deviation(why)] if why.contains("audience")), "{reports:?}");
}

// covers: WIF-C-004
#[test]
fn assertion_of_a_file_is_read_each_time() {
    let path = std::env::temp_dir().join(format!("mcp-assertion-{}", std::process::id()));
    let bench = Bench::new(OAuth::new("test").assertion_file(&path));
    for (number, text, wanted) in [(1, "first\n", "first"), (2, " second", "second")] {
        std::fs::write(&path, text).expect("written");
        bench.push(Output::Assert(StepId(number), assertion(AssertionPurpose::Workload)));
        assert_eq!(bench.answer(), Input::Asserted(StepId(number), Ok(wanted.into())));
    }
    std::fs::remove_file(&path).expect("removed");
    bench.push(Output::Assert(StepId(3), assertion(AssertionPurpose::Workload)));
    let Input::Asserted(_, Err(StoreFault(why))) = bench.answer() else { panic!("an assertion") };
    assert!(why.contains("mcp-assertion"), "{why}");
}

#[test]
fn code_that_cannot_be_shown_is_declined() {
    let code = || {
        Box::new(DeviceCode {
            user_code: "ABCD".into(),
            verification_uri: "https://issuer.example/go".into(),
            verification_uri_complete: None,
            issuer: "https://issuer.example".into(),
            scopes: Scopes::new(),
            until: Clock::start().now(),
        })
    };
    for (oauth, number) in [
        (OAuth::new("test"), 1),
        (OAuth::new("test").on_code(|_| Browsed::Declined), 2),
        (OAuth::new("test").on_code(|_| -> () { panic!("a code") }), 3),
    ] {
        let bench = Bench::new(oauth);
        bench.push(Output::ShowCode(StepId(number), code()));
        assert_eq!(bench.answer(), Input::Declined(StepId(number)));
    }
    let (sender, shown) = channel();
    let sender = Mutex::new(sender);
    let bench = Bench::new(OAuth::new("test").on_code(move |code| {
        sender.lock().expect("not poisoned").send(code.user_code.expose().to_owned()).expect("awaited");
    }));
    bench.push(Output::ShowCode(StepId(9), code()));
    assert_eq!(shown.recv_timeout(SOON).as_deref(), Ok("ABCD"));
}

#[test]
fn application_signs_with_the_keys_that_it_names() {
    let request = |key: SignKey| Box::new(SignRequest { key, alg: Alg::Es256, input: "e30.e30".into() });
    let named = || SignKey::Named("mine".into());
    let oauth = OAuth::new("test").on_sign(|request| {
        assert_eq!(request.key, SignKey::Named("mine".into()));
        Ok(request.input.to_vec())
    });
    let bench = Bench::new(oauth);
    bench.push(Output::Sign(StepId(1), request(named())));
    assert_eq!(bench.answer(), Input::Signed(StepId(1), Ok(b"e30.e30".to_vec())));
    // A key of the configuration is not the application's.
    bench.push(Output::Sign(StepId(2), request(SignKey::Pkcs8("no key".into()))));
    assert!(matches!(bench.answer(), Input::Signed(StepId(2), Err(_))));
    let bench = Bench::new(OAuth::new("test"));
    bench.push(Output::Sign(StepId(3), request(named())));
    assert!(matches!(bench.answer(), Input::Signed(StepId(3), Err(_))));
}

// covers: DPOP-C-002
#[cfg(any(feature = "tls", feature = "tls-graviola"))]
#[test]
fn key_that_was_made_signs_proofs() {
    use bytes::Bytes;
    use mcp_proto::auth::Verification;

    let bench = Bench::new(OAuth::new("test"));
    bench.push(Output::NewKey(StepId(1), Alg::Es256));
    let Input::KeyMade(StepId(1), Ok(pair)) = bench.answer() else { panic!("no key") };
    let (key, input) = (SignKey::Pkcs8(pair.private), Bytes::from_static(b"e30.e30"));
    let request = SignRequest { key, alg: Alg::Es256, input: input.clone() };
    bench.push(Output::Sign(StepId(2), Box::new(request)));
    let Input::Signed(StepId(2), Ok(signature)) = bench.answer() else { panic!("no signature") };
    let verification = Verification { alg: Alg::Es256, key: pair.public, input, signature: signature.into() };
    assert_eq!(crate::keys::verify(&verification), Ok(true));
    // Keys of RSA are not made.
    bench.push(Output::NewKey(StepId(3), Alg::Rs256));
    assert!(matches!(bench.answer(), Input::KeyMade(StepId(3), Err(_))));
}

#[test]
fn login_binds_its_tokens_where_keys_are_made() {
    let default = if crate::keys::MAKES_KEYS { Dpop::IfOffered } else { Dpop::Off };
    assert_eq!(OAuth::new("test").config.dpop, default);
    assert_eq!(OAuth::new("test").dpop(Dpop::Required).config.dpop, Dpop::Required);
}

/// A store of an application with errors.
struct BrokenStore {
    panics: bool,
}

impl BrokenStore {
    fn fail<T>(&self) -> Result<T, StoreFault> {
        assert!(!self.panics, "a store");
        Err(StoreFault("broken".into()))
    }
}

impl TokenStore for BrokenStore {
    fn load(&self, _: &StoreKey) -> Result<Stored, StoreFault> {
        self.fail()
    }

    fn save(&self, _: &StoreKey, _: Version, _: Option<&Record>) -> Result<Version, SaveFault> {
        self.fail().map_err(SaveFault::Fault)
    }

    fn lease(&self, _: &StoreKey, _: Purpose) -> Result<Option<Box<dyn Send>>, StoreFault> {
        self.fail()
    }
}

// covers: B-246
#[test]
fn errors_and_panics_of_a_store_are_answers() {
    for (panics, text) in [(false, "broken"), (true, "the store panicked")] {
        let fault = || StoreFault(text.into());
        let bench = Bench::new(OAuth::new("test").store(BrokenStore { panics }).on_report(|_| panic!("a report")));
        bench.lease(1, Purpose::Change);
        bench.push(Output::Load(StepId(2), key("")));
        bench.push(Output::Report(AuthReport::OtherLogin));
        bench.push(Output::Save(StepId(3), key(""), Version::ABSENT, None));
        let answers: Vec<Input> = (0..3).map(|_| bench.answer()).collect();
        let wanted = vec![
            Input::Leased(StepId(1), Err(fault())),
            Input::Loaded(StepId(2), Err(fault())),
            Input::Saved(StepId(3), Err(SaveFault::Fault(fault()))),
        ];
        assert_eq!(answers, wanted);
    }
}

#[test]
fn listener_that_cannot_be_bound_is_an_answer() {
    let bench = Bench::new(OAuth::new("test"));
    let until = bench.clock.now() + SOON;
    let (host, port, path) = (LoopbackHost::V4, Port::FirstOf(Vec::new()), "/callback".into());
    bench.push(Output::Listen(StepId(1), Listen { host, first: None, port, path, until }));
    assert!(matches!(bench.answer(), Input::Listening(StepId(1), Err(_))));
}

#[test]
fn listener_ends_in_time_without_an_end_of_the_login() {
    let bench = Bench::new(OAuth::new("test"));
    let until = bench.clock.now();
    let (host, port, path) = (LoopbackHost::V4, Port::Any, "/callback".into());
    bench.push(Output::Listen(StepId(1), Listen { host, first: None, port, path, until }));
    let Input::Listening(_, Ok(uri)) = bench.answer() else { panic!("it did not listen") };
    let address = uri.trim_start_matches("http://").trim_end_matches("/callback");
    let begun = Instant::now();
    while TcpListener::bind(address).is_err() {
        assert!(begun.elapsed() < SOON, "it still listens");
        thread::yield_now();
    }
}
