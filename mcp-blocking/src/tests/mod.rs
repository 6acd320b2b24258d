//! The client and the server under a model checker: many schedules of all their threads, over an
//! operating system whose pipes hold one byte and whose time passes only when a scenario requests
//! it.
//!
//! The checker fails a schedule in which a thread waits forever. So every scenario also proves that
//! all threads end: a lost wake-up, a deadlock and a remaining thread are the same finding.
//! `RUSTFLAGS='--cfg shuttle' cargo test -p mcp-blocking --lib tests::`

pub(crate) mod os;
mod programs;
mod reading;
mod scenarios;
#[cfg(feature = "tls")]
mod securing;
mod supervised;
mod world;

use crate::{ClientOptions, Router, tool};
use mcp_proto::client::Policy;
use shuttle::scheduler::{PctScheduler, RandomScheduler, Scheduler};
use std::task::Poll;
use std::time::Duration;
use world::World;

/// Runs a scenario under this many schedules of each kind: random ones, and ones with few
/// preemptions at the worst points.
fn check(schedules: usize, capacity: usize, scenario: impl Fn() + Send + Sync + Clone + 'static) {
    let scaled = |part: usize| ((schedules as f64 * scale()) as usize / part).max(1);
    let kinds: [Box<dyn Scheduler + Send>; 2] = [
        Box::new(RandomScheduler::new_from_seed(1, scaled(2))),
        Box::new(PctScheduler::new_from_seed(2, 3, scaled(2))),
    ];
    let mut run = 0;
    for kind in kinds {
        let mut config = shuttle::Config::new();
        config.stack_size = 256 << 10;
        config.silence_warnings = true;
        config.ungraceful_shutdown_config.immediately_return_on_panic = true;
        let scenario = scenario.clone();
        run += shuttle::Runner::new(kind, config).run(move || {
            World::begin(capacity);
            scenario();
            World::end();
        });
    }
    // On its own line, so that the progress output of the tests does not hide it from the step that
    // counts.
    println!("\nchecked: {run} schedules");
}

/// `MODEL_SCALE=10` makes ten times as many schedules.
fn scale() -> f64 {
    std::env::var("MODEL_SCALE").ok().and_then(|scale| scale.parse().ok()).unwrap_or(1.0)
}

/// Like [`pass_time`], but only while nothing else happens, as on a fast machine.
fn pass_idle_time(is_over: impl Fn() -> bool) {
    // A runnable thread is chosen within this many steps.
    const LONG: u32 = 500;
    let deeds = || world::WORLD.with_borrow(|world| world.deeds);
    while !is_over() {
        let before = deeds();
        (0..LONG).for_each(|_| shuttle::thread::yield_now());
        if deeds() == before && !is_over() {
            World::tick();
        }
    }
}

/// Lets time pass until `is_over`, at any point of a schedule.
fn pass_time(is_over: impl Fn() -> bool) {
    while !is_over() {
        World::tick();
        shuttle::thread::yield_now();
    }
}

#[derive(serde::Serialize, serde::Deserialize)]
struct Text {
    text: String,
}

fn router() -> Router {
    Router::new("model", "1")
        .tool(tool("echo"), |_cx, echo: Text| Ok(echo.text))
        .inline(|router| router.tool(tool("inline"), |_cx, echo: Text| Ok(echo.text)))
        .tool_async(tool("never"), |_cx, ()| std::future::pending::<Result<String, _>>())
        .tool(tool("progress"), |cx, echo: Text| {
            drop(cx.progress(mcp_proto::Progress::new(1.0)));
            Ok(echo.text)
        })
        .tool_async(tool("later"), |_cx, echo: Text| {
            let (mut text, mut polls) = (Some(echo.text), 0);
            std::future::poll_fn(move |cx| {
                polls += 1;
                match text.take_if(|_| polls > 2) {
                    Some(text) => Poll::Ready(Ok(text)),
                    None => {
                        cx.waker().wake_by_ref();
                        Poll::Pending
                    }
                }
            })
        })
}

fn config() -> ClientOptions {
    ClientOptions::new().set(|config| config.policy = Policy::Modern)
}

/// Sets the time limits for the shutdown of a program, step by step.
fn ladder(config: ClientOptions) -> ClientOptions {
    config.set(|config| {
        config.limits.frame.exit_timeout = Duration::from_secs(1);
        config.limits.frame.terminate_timeout = Duration::from_secs(1);
    })
}
