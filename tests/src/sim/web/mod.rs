//! HTTP under faults: a real client, connections that are cut, delayed, stalled, refused and reset,
//! and a model of a server with every possible error. Everything is in virtual time, and a function
//! of its [`Scenario`].
//!
//! The invariants are in `tap` (the bytes on the connections) and in `run` (the events of the
//! application and the runs of the server). [`Web`] also works without random faults and
//! without the model, to measure a client against a server of a few lines.

pub mod model;
mod run;
pub mod site;
pub mod stub;
pub mod tap;
pub mod wire;

pub use model::{Flavour, Model};
pub use site::{Conn, Site, Web};
pub use stub::{Stub, Turn};
pub use tap::Tap;

pub(super) use run::configure;

use super::campaign::{self, Violation};
use super::digest::log::Log;
use super::report::Report;
use super::rng::Rng;
use super::scenario::{self, Less};
use mcp_proto::Era;
use mcp_proto::client::{ListenerStart, Policy, Repeat, Resume, SseDecode, State};
use std::time::Duration;

/// Everything that determines a run.
pub type Scenario = scenario::Scenario<Settings>;

/// The settings of a run.
#[derive(Clone, PartialEq, Debug)]
pub struct Settings {
    /// How the server behaves when it does nothing wrong.
    pub flavour: Flavour,
    /// How the client negotiates.
    pub policy: Policy,
    /// Whether the application answers challenges.
    pub authorize: bool,
    /// Whether it wants to know when the tools change.
    pub watch_tools: bool,
    /// Whether and when the listener is opened.
    pub listener: ListenerStart,
    /// How often the rest of a stream is asked for.
    pub resume: Resume,
    /// Which calls are made a second time.
    pub repeat: Repeat,
    /// The treatment of an event without a message.
    pub sse_decode: SseDecode,
    /// How often the client pings.
    pub ping: Option<Duration>,
    /// How long a listener may be silent.
    pub idle: Duration,
}

impl scenario::Settings for Settings {
    const NAME: &'static str = "web";
    const STATES: &'static [State] =
        &[State::Probing, State::Initializing, State::Ready, State::Lapsed, State::Closing, State::Terminated];

    fn from_seed(seed: u64) -> Scenario {
        let mut rng = Rng::new(seed ^ 0x0077_6562);
        let flavour = Flavour::draw(&mut rng);
        let policy = match (rng.below(3), flavour.era) {
            (0, _) => Policy::Auto,
            (_, Era::Modern) => Policy::Modern,
            (_, Era::Legacy) => Policy::Legacy,
        };
        let capacity = rng.of(&[64, 1024, 16 << 10, 1 << 20]);
        let faults = rng.of(&[0, 40, 100]);
        let operations = 5 + rng.below(40);
        let (authorize, watch_tools) = (rng.per_mille(400), rng.per_mille(500));
        let listener = match rng.below(10) {
            0 => ListenerStart::Never,
            1 => ListenerStart::BeforeInitialized,
            _ => ListenerStart::AfterInitialized,
        };
        let resume = match rng.below(10) {
            0 => Resume::Never,
            1 | 2 => Resume::Strict(2),
            _ => Resume::Progress,
        };
        let repeat = match rng.below(10) {
            0 => Repeat::Never,
            1 => Repeat::Always,
            _ => Repeat::Safe,
        };
        let sse_decode = if rng.per_mille(200) { SseDecode::Reject } else { SseDecode::Skip };
        let ping = rng.per_mille(150).then_some(Duration::from_secs(10));
        let idle = Duration::from_secs(rng.of(&[25, 300]));
        let settings =
            Self { flavour, policy, authorize, watch_tools, listener, resume, repeat, sse_decode, ping, idle };
        Scenario { seed, operations, faults, capacity, less: Less::default(), settings }
    }

    fn attempt(scenario: &Scenario, trace: bool) -> Result<Report, Violation> {
        campaign::attempt(|| Web::<Model>::begin(scenario, trace, Log::default()), Web::<Model>::run, Web::drawn)
    }
}

impl Flavour {
    fn draw(rng: &mut Rng) -> Self {
        let legacy = rng.per_mille(700);
        let mut may = |n: u64| legacy && rng.per_mille(n);
        let sessions = may(750);
        let listener = sessions && may(750);
        let ids = sessions && may(750);
        let polling = ids && may(400);
        let asks_on_listener = listener && may(300);
        let version = rng.of(&["2025-11-25", "2025-11-25", "2025-06-18", "2025-03-26"]);
        Self {
            version,
            era: if legacy { Era::Legacy } else { Era::Modern },
            streams: rng.of(&[0, 500, 1000]),
            sessions,
            listener,
            ids,
            polling,
            retry: rng.of(&[None, Some(20), Some(500), Some(3_000)]),
            asks_on_listener,
            chunked: rng.per_mille(850),
            beats: rng.per_mille(700),
        }
    }
}
