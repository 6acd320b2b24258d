//! What the parts of a flow share: the configuration, the time, random values, and the outputs.

use crate::auth::config::AuthConfig;
use crate::auth::record::StoreKey;
use crate::auth::secret::Secret;
use crate::auth::step::{AuthReport, Output, StepId};
use crate::fetch::{FetchRequest, HttpTarget};
use crate::seed::Seed;
use crate::time::Instant;
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::sync::Arc;
use base64::prelude::{BASE64_URL_SAFE_NO_PAD, Engine as _};
use core::net::IpAddr;
use core::time::Duration;

/// See the [module](self).
#[derive(Debug)]
pub(super) struct FlowEnv {
    pub(super) config: Arc<AuthConfig>,
    pub(super) server: HttpTarget,
    pub(super) key: StoreKey,
    /// The address to which the client's own connection to the server led, if that is known.
    pub(super) peer: Option<IpAddr>,
    pub(super) now: Instant,
    origin_unix: Duration,
    seed: Seed,
    out: VecDeque<Output>,
    last_step: u64,
    /// The ignored redirects that were reported.
    reported: u32,
}

/// Maximum number of ignored redirects that are reported.
const MAX_REPORTED: u32 = 16;

impl FlowEnv {
    pub(super) fn new(
        config: Arc<AuthConfig>,
        server: HttpTarget,
        origin_unix: Duration,
        seed: [u8; 32],
        now: Instant,
    ) -> Self {
        let (url, account) = (&server.original, config.account.clone());
        let key = StoreKey { server: url.split('#').next().unwrap_or(url).into(), account };
        Self {
            config,
            server,
            key,
            peer: None,
            now,
            origin_unix,
            seed: Seed::new(seed),
            out: VecDeque::new(),
            last_step: 0,
            reported: 0,
        }
    }

    /// Adds an output.
    pub(super) fn emit(&mut self, output: Output) {
        self.out.push_back(output);
    }

    pub(super) fn poll(&mut self) -> Option<Output> {
        self.out.pop_front()
    }

    pub(super) fn report(&mut self, report: AuthReport) {
        if matches!(report, AuthReport::WrongRedirect(_)) {
            if self.reported >= MAX_REPORTED {
                return;
            }
            self.reported += 1;
        }
        self.emit(Output::Report(report));
    }

    /// Adds an output with a new step.
    pub(super) fn step(&mut self, output: impl FnOnce(StepId) -> Output) -> StepId {
        self.last_step += 1;
        let step = StepId(self.last_step);
        self.emit(output(step));
        step
    }

    pub(super) fn fetch(&mut self, request: FetchRequest) -> StepId {
        self.step(|step| Output::Fetch(step, Box::new(request)))
    }

    /// Returns 32 bytes that cannot be guessed.
    pub(super) fn random(&mut self) -> [u8; 32] {
        self.seed.next_bytes()
    }

    /// Returns a text that cannot be guessed.
    pub(super) fn random_text(&mut self) -> Secret {
        Secret::new(BASE64_URL_SAFE_NO_PAD.encode(self.random()))
    }

    /// Returns the Unix time in seconds.
    pub(super) fn unix(&self) -> u64 {
        self.now.unix(self.origin_unix).as_secs()
    }
}
