//! Supervised clients in the model. Each attempt gets a server of its own, over two pipes. Where
//! time passes, it does so beside the tasks: any time limit may come first.

use super::{Flag, after_polls, any, check, config, in_time, join, pipe, router, threads};
use crate::driver::Driver;
use crate::spawned::SharedDriver;
use crate::supervisor::{ClientTask, OnExecutor, SupervisorTask};
use crate::sync::{Mutex, lock};
use crate::{Client, Router, SupervisorOptions, serve, tool, tools};
use mcp_driver::{self, ConnectError, Delay, DriverHandle, Events};
use mcp_proto::{Call, CallError, ClientConfig};
use mcp_supervisor::front::Launch;
use mcp_supervisor::{CallRefusal, Lists, ServerSpec, SupervisedError, Supervision};
use shuttle::future::{block_on, yield_now};
use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

type Supervisor = mcp_supervisor::front::Supervisor<OnPipes>;

/// The executor of the model. With a number of `polls`, each server ends before it.
struct OnPipes {
    executor: OnExecutor,
    polls: Option<usize>,
    runs: Runs,
}

/// How often the servers have run each call of the tool `count`.
type Runs = Arc<[AtomicUsize; 2]>;

#[derive(serde::Serialize, serde::Deserialize)]
struct Which {
    call: usize,
}

/// The tool `count` returns 3.
fn counting(runs: &Runs) -> Router {
    let runs = Arc::clone(runs);
    router(&Flag::default()).tool_async(tool("count"), move |_cx, which: Which| {
        runs[which.call].fetch_add(1, Ordering::SeqCst);
        async {
            yield_now().await;
            Ok(3)
        }
    })
}

impl Launch for OnPipes {
    type Driver = ClientTask;

    fn delay(&self) -> Delay {
        self.executor.delay()
    }

    fn create(&self, client: &Client, driving: DriverHandle) -> ClientTask {
        let ((their_reader, our_writer), (our_reader, their_writer)) = (pipe(256), pipe(256));
        let serving = serve(counting(&self.runs), their_reader, their_writer);
        let polls = self.polls.map(any);
        let serving = smol::future::or(async { drop(serving.await) }, async move {
            match polls {
                Some(polls) => after_polls(polls).await,
                None => pending().await,
            }
        });
        let stream = Some((our_reader, our_writer).into());
        let driver = Driver::new(driving, client.open_timeout(), stream, Some(Box::pin(serving)));
        ClientTask::new(SharedDriver::new(driver))
    }

    fn begin(&self, driver: &ClientTask) -> Result<(), ConnectError> {
        self.executor.begin(driver)
    }

    fn run(&self, callback: Box<dyn FnOnce() + Send>) {
        self.executor.run(callback);
    }

    fn deliver(&self, events: Events) {
        self.executor.deliver(events);
    }

    fn finish(&self, client: &Client, driver: ClientTask) {
        self.executor.finish(client, driver);
    }
}

fn spec() -> ServerSpec {
    let mut spec = ServerSpec::new(ClientConfig::given());
    spec.lists = Lists::NONE;
    spec
}

/// A supervisor of one server `a` that connects again at once. Also returns what waits for the end
/// of its driver, and of those of its clients.
fn supervised(polls: Option<usize>, runs: &Runs) -> (Supervisor, impl FnOnce() + use<>) {
    let mut policy = Supervision::default();
    (policy.waits, policy.max_attempts) = (vec![Duration::ZERO; 100], 100);
    let options = SupervisorOptions::new().policy(policy).clients(|_| config());
    let tasks = Arc::new(Mutex::new(Vec::new()));
    let spawned = Arc::clone(&tasks);
    let executor = OnExecutor::new(Arc::new(move |task| lock(&spawned).push(shuttle::future::spawn(task))));
    let (supervisor, driver) =
        Supervisor::begin(options, OnPipes { executor, polls, runs: Arc::clone(runs) }).expect("a seed");
    let driver = shuttle::future::spawn(SupervisorTask::new(driver));
    supervisor.add("a", spec()).expect("a new key");
    let ended = move || {
        block_on(driver).expect("no panic");
        // It has started them all.
        let tasks = std::mem::take(&mut *lock(&tasks));
        tasks.into_iter().for_each(|task| block_on(task).expect("no panic"));
    };
    (supervisor, ended)
}

fn add(supervisor: &Supervisor, call: Call<tools::CallTool>) -> Result<(), SupervisedError> {
    let sum = block_on(supervisor.call("a", call))?;
    assert_eq!(sum.first_text(), Some("3"));
    Ok(())
}

// covers: B-131, B-277
#[test]
fn supervised_calls_of_two_threads_share_one_client() {
    check(1000, || {
        let (supervisor, ended) = supervised(None, &Runs::default());
        let theirs = supervisor.clone();
        join(threads(2, move |_| add(&theirs, tools::call("add")).expect("an answer")));
        assert_eq!(supervisor.health("a").expect("a server").counters.attempts, 1);
        assert_eq!(block_on(supervisor.close()), 0);
        ended();
    });
}

// covers: B-025, R-33, S0-62
#[test]
fn end_of_a_supervised_server_ends_or_repeats_each_call_once() {
    check(1000, || {
        let runs = Runs::default();
        let (supervisor, ended) = supervised(Some(60), &runs);
        let (theirs, ran) = (supervisor.clone(), Arc::clone(&runs));
        in_time(|| {
            join(threads(2, move |n| {
                let call = tools::call("count").arguments(&Which { call: n });
                match add(&theirs, if n == 0 { call } else { call.repeatable() }) {
                    Ok(()) => assert!(runs[n].load(Ordering::SeqCst) > 0),
                    Err(SupervisedError::Call(
                        CallError::Closed { .. } | CallError::Negotiation(_) | CallError::Timeout { .. },
                    )) => {}
                    Err(SupervisedError::Refused(CallRefusal::Unavailable { .. } | CallRefusal::Timeout { .. })) => {}
                    Err(e) => panic!("{e:?}"),
                }
            }));
            block_on(supervisor.close());
            ended();
        });
        let runs = [&ran[0], &ran[1]].map(|runs| runs.load(Ordering::SeqCst));
        assert!(runs[0] <= 1 && runs[1] <= 2, "{runs:?}");
    });
}

// covers: B-084
#[test]
fn supervised_call_that_meets_a_replacement_has_one_end() {
    check(1000, || {
        let (supervisor, ended) = supervised(None, &Runs::default());
        let theirs = supervisor.clone();
        let threads = threads(3, move |n| {
            if n == 2 {
                assert!(theirs.replace("a", spec()));
                block_on(theirs.close());
                return;
            }
            match add(&theirs, tools::call("add")) {
                Ok(()) | Err(SupervisedError::Call(CallError::Timeout { .. })) => {}
                Err(SupervisedError::Refused(why)) => assert!(!matches!(why, CallRefusal::Unknown), "{why:?}"),
                Err(e) => panic!("{e:?}"),
            }
        });
        in_time(|| {
            join(threads);
            drop(supervisor);
            ended();
        });
    });
}

// covers: B-133
#[test]
fn dropping_the_last_supervisor_ends_its_driver_at_any_point() {
    check(1000, || {
        let (supervisor, ended) = supervised(None, &Runs::default());
        let theirs = supervisor.clone();
        let threads = threads(2, move |n| match n {
            0 => drop(add(&theirs, tools::call("add"))),
            _ => {
                let call = async { drop(theirs.call("a", tools::call("hang")).await) };
                block_on(smol::future::or(call, after_polls(any(8))));
            }
        });
        drop(supervisor);
        in_time(|| {
            join(threads);
            ended();
        });
    });
}
