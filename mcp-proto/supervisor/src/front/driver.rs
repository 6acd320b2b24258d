//! What drives a supervisor: it starts clients, loads lists, and lets the application resolve
//! configurations.

use super::Launch;
use super::options::{Resolve, ResolveResult};
use super::shared::{SupervisorShared, WeakShared};
use crate::{Generation, ListKind, Listing, LoadedList, Output};
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::future::{Future, poll_fn};
use core::iter::{once, repeat};
use core::marker::PhantomData;
use core::panic::AssertUnwindSafe;
use core::pin::pin;
use core::task::{Context, Poll, Waker};
use mcp_driver::{Client, Clock, guarded};
use mcp_proto::call::{Call, Method, PagedMethod, RawResult, SkippedList};
use mcp_proto::client::ClientConfig;
use mcp_proto::error::{CallError, Refusal};
use mcp_proto::model::{prompts, resources, tools};
use mcp_proto::route::BoxFuture;
use mcp_proto::rpc::DecodeError;
use mcp_proto::time::Instant;
use std::task::Wake;

/// Drives a [`Supervisor`](super::Supervisor). Its loop takes a [`turn`](Self::turn), then sleeps
/// until [`poll_timeout`](Self::poll_timeout), or until [`poll_woken`](Self::poll_woken) is ready.
///
/// Dropping it closes all clients and refuses all calls.
#[must_use = "nothing happens without a driver"]
pub struct SupervisorDriver<L: Launch> {
    shared: SupervisorShared<L>,
    /// Loads of lists, and callbacks that resolve configurations.
    futures: BTreeMap<u64, (Purpose, BoxFuture<()>)>,
    last: u64,
}

/// What a future of the driver is for. A later one for the same purpose takes its place.
#[derive(PartialEq)]
enum Purpose {
    Load(Generation, ListKind),
    Resolve(String),
}

impl<L: Launch> SupervisorDriver<L> {
    pub(super) const fn new(shared: SupervisorShared<L>) -> Self {
        Self { shared, futures: BTreeMap::new(), last: 0 }
    }

    /// Returns the clock of the supervisor.
    pub fn clock(&self) -> Clock {
        self.shared.clock
    }

    /// Carries out what is to be done now. Never waits. Returns false once the supervisor has
    /// ended.
    pub fn turn(&mut self) -> bool {
        if self.shared.poll_timeout().is_some_and(|due| due <= self.shared.now()) {
            self.shared.with(|state, now, _| state.core.handle_timeout(now));
        }
        let Some((outputs, woken, has_events)) = self.shared.take_tasks() else { return false };
        if has_events {
            self.shared.setup.launch.deliver(self.shared.events());
        }
        outputs.into_iter().for_each(|output| self.carry_out(output));
        woken.into_iter().for_each(|future| self.poll(future));
        true
    }

    /// Returns when to take the next turn.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.shared.poll_timeout()
    }

    /// Returns `Ready` if a turn is to be taken, or if the time for that is earlier than the last
    /// one that [`poll_timeout`](Self::poll_timeout) returned. Otherwise wakes the task then.
    pub fn poll_woken(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.shared.poll_woken(cx.waker())
    }

    /// Waits as [`poll_woken`](Self::poll_woken) says.
    pub async fn woken(&self) {
        poll_fn(|cx| self.poll_woken(cx)).await;
    }

    fn carry_out(&mut self, output: Output<String>) {
        match output {
            Output::Connect { key, generation, config } => self.shared.connect(&key, generation, &config),
            Output::Close(generation) => self.shared.close(generation),
            Output::Load { generation, list } => self.load(generation, list),
            Output::Resolve { key, generation, config } => self.resolve(&key, generation, (*config).clone()),
            // The calls and the application have got them already.
            Output::Run { .. } | Output::End { .. } | Output::Refuse { .. } | Output::Event(_) => {}
        }
    }

    fn load(&mut self, generation: Generation, list: ListKind) {
        let shared = self.shared.clone();
        self.spawn(Purpose::Load(generation, list), async move {
            let outcome = match shared.client_of(generation) {
                Some(client) => fetch(&client, list).await,
                None => Err(CallError::Refused(Refusal::Closed)),
            };
            shared.loaded(generation, list, outcome);
        });
    }

    fn resolve(&mut self, key: &str, generation: Generation, config: ClientConfig) {
        let shared = self.shared.clone();
        let report = move |resolved: Option<ResolveResult>| {
            let resolved = resolved.unwrap_or_else(|| Err("the callback panicked".into()));
            shared.with(|state, now, _| state.core.resolved(now, generation, resolved.map(Arc::new)));
        };
        match self.shared.setup.resolve.clone() {
            // One thread for each key: callbacks that never return take none from the others.
            Some(Resolve::Sync(resolve)) => match ResolveGuard::begin(&self.shared, key) {
                Some(resolving) => self.shared.setup.launch.run(Box::new(move || {
                    let resolved = guarded(|| resolve(&resolving.key, config));
                    drop(resolving);
                    report(resolved);
                })),
                None => report(Some(Err("the callback of an earlier attempt has not returned".into()))),
            },
            Some(Resolve::Async(resolve)) => match guarded(|| resolve(key, config)) {
                Some(future) => {
                    let is_of_a_server = |key: &String| self.shared.read(|core| core.health(key).is_some());
                    self.futures.retain(|_, (of, _)| !matches!(of, Purpose::Resolve(key) if !is_of_a_server(key)));
                    self.spawn(Purpose::Resolve(key.into()), async move { report(caught(future).await) });
                }
                None => report(None),
            },
            None => report(Some(Err("the application has no callback that resolves configurations".into()))),
        }
    }

    fn spawn(&mut self, purpose: Purpose, future: impl Future<Output = ()> + Send + 'static) {
        self.last += 1;
        self.futures.retain(|_, (other, _)| *other != purpose);
        self.futures.insert(self.last, (purpose, Box::pin(future)));
        self.poll(self.last);
    }

    fn poll(&mut self, number: u64) {
        let Some((_, future)) = self.futures.get_mut(&number) else { return };
        let waker = Waker::from(Arc::new(FutureWaker { shared: self.shared.downgrade(), number }));
        if future.as_mut().poll(&mut Context::from_waker(&waker)).is_ready() {
            self.futures.remove(&number);
        }
    }
}

impl<L: Launch> Drop for SupervisorDriver<L> {
    fn drop(&mut self) {
        drop(self.shared.begin_end());
        self.shared.end(false);
    }
}

impl<L: Launch> fmt::Debug for SupervisorDriver<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SupervisorDriver").finish_non_exhaustive()
    }
}

/// Lets the driver poll one of its futures.
struct FutureWaker<L: Launch> {
    shared: WeakShared<L>,
    number: u64,
}

impl<L: Launch> Wake for FutureWaker<L> {
    fn wake(self: Arc<Self>) {
        if let Some(shared) = self.shared.upgrade() {
            shared.wake(self.number);
        }
    }
}

/// A synchronous callback that resolves the configuration of the server of this key.
struct ResolveGuard<L: Launch> {
    shared: SupervisorShared<L>,
    key: String,
}

impl<L: Launch> ResolveGuard<L> {
    /// Returns `None` if there is another one, which has not returned.
    fn begin(shared: &SupervisorShared<L>, key: &str) -> Option<Self> {
        let is_new = shared.with(|state, _, _| state.resolving.insert(key.into()));
        is_new.then(|| Self { shared: shared.clone(), key: key.into() })
    }
}

impl<L: Launch> Drop for ResolveGuard<L> {
    fn drop(&mut self) {
        self.shared.with(|state, _, _| state.resolving.remove(&self.key));
    }
}

/// Maximum number of elements of a list, and of bytes in the results with its pages.
const MAX_LIST: (usize, usize) = (100_000, 16 << 20);

/// A method that returns pages, and how long each one is on the wire.
struct MeasuredMethod<M>(PhantomData<M>);

impl<M: PagedMethod> Method for MeasuredMethod<M> {
    type Output = (M::Output, usize);

    fn decode(result: RawResult) -> Result<Self::Output, DecodeError> {
        let len = result.json.as_str().len();
        Ok((M::decode(result)?, len))
    }
}

impl<M: PagedMethod> PagedMethod for MeasuredMethod<M> {
    /// An element. The first one of a page has the length of the page.
    type Element = (M::Element, usize);

    fn page((page, len): Self::Output) -> (Vec<Self::Element>, Option<String>) {
        let (elements, next) = M::page(page);
        let lens = once(len).chain(repeat(0));
        (elements.into_iter().zip(lens).collect(), next)
    }

    fn skipped((page, _): &Self::Output) -> Option<&SkippedList> {
        M::skipped(page)
    }
}

/// Fetches all pages of a list, up to [`MAX_LIST`].
async fn fetch(client: &Client, list: ListKind) -> Result<LoadedList, CallError> {
    async fn all<M: PagedMethod>(
        client: &Client,
        call: Call<M>,
        listing: impl FnOnce(Arc<[M::Element]>) -> Listing,
    ) -> Result<LoadedList, CallError> {
        let raw = call.raw();
        let mut pages = client.pages(Call::<MeasuredMethod<M>>::new(raw.method.clone(), raw.params.clone()));
        let (mut all, mut bytes) = (Vec::new(), 0);
        while let Some(next) = pages.next().await {
            let (element, len) = next?;
            all.push(element);
            bytes += len;
            if all.len() > MAX_LIST.0 || bytes > MAX_LIST.1 {
                return Err(CallError::Decode(DecodeError::new("the list is too long")));
            }
        }
        Ok(LoadedList::new(listing(all.into()), pages.skipped().clone()))
    }
    match list {
        ListKind::Tools => all(client, tools::list(), Listing::Tools).await,
        ListKind::Resources => all(client, resources::list(), Listing::Resources).await,
        ListKind::ResourceTemplates => all(client, resources::templates(), Listing::ResourceTemplates).await,
        ListKind::Prompts => all(client, prompts::list(), Listing::Prompts).await,
    }
}

/// Polls a future of the application. `None` if it panics.
async fn caught<T>(future: BoxFuture<T>) -> Option<T> {
    let mut future = pin!(future);
    poll_fn(|cx| {
        let polled = guarded(AssertUnwindSafe(|| future.as_mut().poll(cx)));
        match polled {
            Some(Poll::Pending) => Poll::Pending,
            Some(Poll::Ready(output)) => Poll::Ready(Some(output)),
            None => Poll::Ready(None),
        }
    })
    .await
}
