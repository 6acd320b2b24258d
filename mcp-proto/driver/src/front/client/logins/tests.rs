//! Logins of a client that nothing drives: its steps need no connection.

use super::super::{Client, Closer, DriverHandle};
use super::*;
use crate::os::block_on_for;
use crate::{ClientOptions, DrivenConnection, MemoryStore, OAuth, Task, TokenStore};
use core::cell::RefCell;
use core::future::{Future, pending};
use core::pin::{Pin, pin};
use core::task::{Context, Waker};
use core::time::Duration;
use mcp_proto::auth::{
    AuthConfig, AuthMethod, ClientSource, Entry, Input, Purpose, Record, RegisteredClient, SaveFault, Scopes,
    StoreFault, StoreKey, Stored, Version,
};
use mcp_proto::client::{ClientConfig, Termination};
use mcp_proto::exchange::{Endpoint, Program};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::yield_now;

/// Maximum time for what happens at once.
const SOON: Duration = Duration::from_secs(20);

const URL: &str = "http://localhost/mcp";

fn key() -> StoreKey {
    StoreKey { server: URL.into(), account: "".into() }
}

/// A client whose driver does nothing but deliver its events.
struct Bench {
    client: Client,
    driving: DriverHandle,
    outputs: Receiver<Output>,
    opening: RefCell<Vec<DrivenConnection>>,
}

impl Bench {
    fn new(options: ClientOptions) -> Self {
        let (sender, outputs) = channel();
        let options = options.on_event(move |event| {
            if let Event::Auth(output) = event {
                let _ = sender.send(*output);
            }
        });
        let config = ClientConfig::url(URL).expect("a URL");
        let (client, driving) = Client::begin(config, options, |_| Box::pin(pending())).expect("a seed");
        Self { client, driving, outputs, opening: RefCell::default() }
    }

    /// A client that has loaded its record.
    fn loaded(oauth: OAuth) -> Self {
        let bench = Self::new(ClientOptions::new().oauth(oauth));
        assert!(matches!(bench.output(), Output::Changed(_)));
        bench
    }

    /// Waits for an output that is an event.
    fn output(&self) -> Output {
        let clock = self.driving.clock();
        let until = clock.now() + SOON;
        loop {
            match self.driving.next_task() {
                Some(Task::Deliver(events)) => events.deliver(),
                // Dropping a connection would close it.
                Some(Task::Open(connection, _)) => self.opening.borrow_mut().push(connection),
                _ => {}
            }
            match self.outputs.try_recv() {
                Ok(output) => return output,
                Err(_) => assert!(clock.now() < until, "no output"),
            }
            yield_now();
        }
    }
}

/// Waits for what comes soon.
fn soon<T>(future: impl Future<Output = T>) -> T {
    block_on_for(SOON, future).expect("in time")
}

/// A store that keeps nothing. It calls this function to store.
struct SavingStore<F>(F);

impl<F: Fn() + Send + Sync> TokenStore for SavingStore<F> {
    fn load(&self, _: &StoreKey) -> Result<Stored, StoreFault> {
        Ok(Stored::default())
    }

    fn save(&self, _: &StoreKey, _: Version, _: Option<&Record>) -> Result<Version, SaveFault> {
        (self.0)();
        Ok(Version::ABSENT)
    }

    fn lease(&self, _: &StoreKey, _: Purpose) -> Result<Option<Box<dyn Send>>, StoreFault> {
        Ok(Some(Box::new(())))
    }
}

/// Returns a client whose logouts wait, what tells that one does, and what ends that.
fn slow_client() -> (Bench, Receiver<()>, Sender<()>) {
    let ((asked, is_asked), (go, may_go)) = (channel(), channel());
    let (asked, may_go) = (Mutex::new(asked), Mutex::new(may_go));
    let store = SavingStore(move || {
        asked.lock().expect("not poisoned").send(()).expect("awaited");
        let _ = may_go.lock().expect("not poisoned").recv_timeout(SOON);
    });
    (Bench::loaded(OAuth::new("test").store(store)), is_asked, go)
}

fn is_pending<T>(future: Pin<&mut impl Future<Output = T>>) -> bool {
    future.poll(&mut Context::from_waker(Waker::noop())).is_pending()
}

#[test]
fn logout_removes_the_record_and_ends() {
    let store = MemoryStore::new();
    let client_id = RegisteredClient {
        client_id: "id".into(),
        client_secret: None,
        secret_expires: None,
        method: AuthMethod::None,
        redirect_uri: None,
        scopes: Scopes::new(),
        source: ClientSource::Dynamic,
    };
    let (issuer, resource) = ("https://issuer.example".into(), URL.into());
    let mut record = Record::default();
    record.entries.push(Entry { issuer, resource, client: client_id, requested: Scopes::new(), tokens: None });
    store.save(&key(), Version::ABSENT, Some(&record)).expect("saved");
    let (sender, reports) = channel();
    let reported = Mutex::new(sender);
    let oauth = OAuth::new("test").store(store.clone()).on_report(move |report| {
        reported.lock().expect("not poisoned").send(report.clone()).expect("awaited");
    });
    let bench = Bench::loaded(oauth);
    let client = &bench.client;
    assert_eq!(soon(client.logout()), Ok(None));
    assert_eq!(reports.try_recv(), Ok(AuthReport::LoggedOut { revoked: None }), "it is reported before");
    assert_eq!(store.load(&key()), Ok(Stored::default()));
    assert_eq!(soon(client.logout()), Ok(None), "there is nothing to remove");
}

#[test]
fn logout_ends_with_the_client() {
    let (Bench { client, driving, opening: _opening, .. }, is_asked, _go) = slow_client();
    let mut logout = pin!(client.logout());
    assert!(is_pending(logout.as_mut()));
    is_asked.recv_timeout(SOON).expect("it waits");
    drop(driving);
    assert_eq!(soon(logout), Err(AuthError::Ended));
    assert_eq!(soon(client.login()), Err(AuthError::Ended));
    assert_eq!(soon(client.logout()), Err(AuthError::Ended));
}

// A process may exit when a client has ended: the page of a login is shown, and a record stored.
#[test]
fn end_of_a_client_waits_for_the_last_steps_of_its_login() {
    let (Bench { client, driving, opening: _opening, .. }, is_asked, go) = slow_client();
    let mut logout = pin!(client.logout());
    assert!(is_pending(logout.as_mut()));
    is_asked.recv_timeout(SOON).expect("it waits");
    drop(driving);
    assert_eq!(soon(logout), Err(AuthError::Ended));
    let closer = client.closer();
    let (mut closing, mut ended) = (pin!(client.close()), pin!(closer.ended()));
    assert!(is_pending(closing.as_mut()) && is_pending(ended.as_mut()), "the store is not done");
    drop(go);
    assert_eq!(soon(closing), Termination::Requested);
    soon(ended);
}

#[test]
fn callback_of_a_login_can_close_its_client() {
    let ((closer, to_close), (closed, is_closed)) = (channel(), channel());
    let (to_close, closed) = (Mutex::new(to_close), Mutex::new(closed));
    let store = SavingStore(move || {
        let closer: Closer = to_close.lock().expect("not poisoned").recv_timeout(SOON).expect("sent");
        closed.lock().expect("not poisoned").send(block_on_for(SOON, closer.close())).expect("awaited");
    });
    let Bench { client, driving, opening: _opening, .. } = Bench::loaded(OAuth::new("test").store(store));
    let mut logout = pin!(client.logout());
    assert!(is_pending(logout.as_mut()));
    drop(driving);
    closer.send(client.closer()).expect("awaited");
    let why = is_closed.recv_timeout(2 * SOON).expect("it ends");
    assert_eq!(why, Some(Termination::Requested), "it does not wait for itself");
}

#[test]
fn login_takes_the_place_of_a_logout_and_ends_with_the_client() {
    let (Bench { client, driving, opening: _opening, .. }, is_asked, go) = slow_client();
    let mut logout = pin!(client.logout());
    assert!(is_pending(logout.as_mut()));
    is_asked.recv_timeout(SOON).expect("it waits");
    let mut login = pin!(client.login());
    assert!(is_pending(login.as_mut()));
    drop(go);
    assert_eq!(soon(logout), Err(AuthError::Ended));
    assert!(is_pending(login.as_mut()), "it has no part in that");
    drop(driving);
    assert_eq!(soon(login), Err(AuthError::Ended));
}

#[test]
fn client_without_http_or_options_has_no_login() {
    let plain = Bench::new(ClientOptions::new()).client;
    let config = ClientConfig::new(Target::Duplex(Endpoint::Program(Program::new("true"))));
    let options = ClientOptions::new().oauth(OAuth::new("test"));
    let (program, _driving) = Client::begin(config, options, |_| Box::pin(pending())).expect("a seed");
    for client in [plain, program] {
        assert_eq!(soon(client.login()), Err(AuthError::Ended));
        assert_eq!(soon(client.logout()), Err(AuthError::Ended));
    }
}

#[test]
fn application_can_carry_out_the_steps_itself() {
    let config = AuthConfig::new("test");
    let bench = Bench::new(ClientOptions::new().set(|client| client.auth = Some(Arc::new(config))));
    let Output::Load(step, of) = bench.output() else { panic!("another step") };
    assert_eq!(of, key());
    bench.client.auth(Input::Loaded(step, Ok(Stored::default())));
    assert!(matches!(bench.output(), Output::Changed(_)));
    let mut logout = pin!(bench.client.logout());
    assert!(is_pending(logout.as_mut()));
    let Output::Save(step, _, Version::ABSENT, None) = bench.output() else { panic!("another step") };
    assert!(is_pending(logout.as_mut()));
    bench.client.auth(Input::Saved(step, Ok(Version::ABSENT)));
    assert_eq!(soon(logout), Ok(None));
}
