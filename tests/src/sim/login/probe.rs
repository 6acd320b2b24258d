//! Inputs that no correct driver gives, or that come at an odd time, so that each meets each state.

use super::super::report::LoginInput;
use super::process::StepKind;
use super::servers::is_fetch;
use super::world::{SimEvent, World};
use mcp_proto::auth::{self, FlowState, Lease, StepId, StoreFault, Version};
use mcp_proto::client::{ClientCommands, Event, Output};

/// Maximum number of probes of a run.
const MAX_PROBES: u64 = 24;

impl World {
    /// Looks closely at the state of a process: at one that does not last, and at that of the
    /// settings.
    pub(super) fn look(&mut self, at: usize) {
        let Some(state) = self.processes[at].client.login_state().filter(|_| self.chaos.rate > 0) else { return };
        let probe = self.scenario.settings.probe.filter(|(of, _)| *of == state);
        if let Some((_, input)) = probe.filter(|_| self.probes < MAX_PROBES && self.rng.per_mille(700)) {
            self.probes += 1;
            if !LoginInput::ALL[..LoginInput::STEPS].contains(&input) {
                return self.provoke(at, input);
            }
            let answers = LoginInput::ALL[..LoginInput::STEPS].repeat(3);
            answers.into_iter().for_each(|answer| self.answer_dead_step(at, answer));
        }
        let is_brief = !matches!(state, FlowState::Holding | FlowState::Empty | FlowState::Idle);
        if is_brief && self.rng.per_mille(60) {
            match self.rng.below(40) {
                0 => self.log_in(at),
                1 => self.log_out(at),
                2 if self.rng.per_mille(300) => self.close(at),
                2..=9 => self.call(at, "whoami"),
                _ => {
                    let input = self.rng.of(&LoginInput::ALL[..LoginInput::STEPS]);
                    self.answer_dead_step(at, input);
                }
            }
        }
    }

    /// Applies an input now.
    pub(super) fn provoke(&mut self, at: usize, input: LoginInput) {
        match input {
            LoginInput::Call => self.call(at, "whoami"),
            LoginInput::Login => self.log_in(at),
            LoginInput::Logout => self.log_out(at),
            LoginInput::Close => self.close(at),
            LoginInput::Tick => {
                self.count(at, LoginInput::Tick);
                self.processes[at].client.handle_timeout(self.now);
                self.drain(at);
            }
            LoginInput::Fetched => self.hasten(at, true),
            LoginInput::Refused => self.hasten(at, false),
            answer => self.answer_dead_step(at, answer),
        }
    }

    /// Lets a response arrive now: one of the login, or one of the server, which refuses.
    fn hasten(&mut self, at: usize, fetch: bool) {
        let process = &self.processes[at];
        let is_meant = |happening: &SimEvent| match happening {
            SimEvent::Respond(id, exchange, _) | SimEvent::Fail(id, exchange) => {
                *id == process.id && is_fetch(*exchange) == fetch && process.open.contains_key(exchange)
            }
            SimEvent::Answer(..) | SimEvent::Entered(..) => false,
        };
        let Some(key) = self.agenda.iter().find(|(_, happening)| is_meant(happening)).map(|(key, _)| *key) else {
            return;
        };
        match self.agenda.remove(&key) {
            Some(SimEvent::Respond(id, exchange, _) | SimEvent::Fail(id, exchange)) if !fetch => {
                self.disturb();
                let refusal = self.challenge(401, "invalid_token", "basic");
                self.respond(id, exchange, refusal);
            }
            Some(happening) => self.take(happening),
            None => {}
        }
    }

    /// Answers a step that is not open, or with an answer of another kind. It changes nothing.
    fn answer_dead_step(&mut self, at: usize, input: LoginInput) {
        let Some(step) = self.dead_step(at, input) else { return };
        let broken = || StoreFault("none".into());
        let fails = self.rng.per_mille(300);
        let uri = "http://127.0.0.1:1/callback";
        let answer = match input {
            LoginInput::Leased => auth::Input::Leased(step, if fails { Err(broken()) } else { Ok(Lease::Held) }),
            LoginInput::Loaded => {
                auth::Input::Loaded(step, if fails { Err(broken()) } else { Ok(self.store.stored()) })
            }
            LoginInput::Saved if fails => auth::Input::Saved(step, Err(auth::SaveFault::Conflict(self.store.stored()))),
            LoginInput::Saved => auth::Input::Saved(step, Ok(Version(1))),
            LoginInput::Listening => auth::Input::Listening(step, if fails { Err(broken()) } else { Ok(uri.into()) }),
            LoginInput::Redirected => auth::Input::Redirected(step, format!("{uri}?code=x&state=y").into()),
            LoginInput::Declined => auth::Input::Declined(step),
            LoginInput::KeyMade => auth::Input::KeyMade(step, Err(broken())),
            LoginInput::Signed => auth::Input::Signed(step, if fails { Err(broken()) } else { Ok(vec![1; 64]) }),
            _ => auth::Input::Asserted(step, if fails { Err(broken()) } else { Ok("x".into()) }),
        };
        let before = self.processes[at].client.login_state();
        self.count(at, input);
        let client = &mut self.processes[at].client;
        client.auth(self.now, answer.clone());
        while let Some(output) = client.poll_output() {
            let is_diagnostic = matches!(output, Output::Event(Event::Diagnostic(_)));
            assert!(is_diagnostic, "{answer:?} in {before:?} causes {output:?}");
        }
        assert_eq!(client.login_state(), before, "{answer:?} changes the state");
    }

    /// Returns a step that does not wait for this answer: one that is over, one that waits for
    /// another answer, or one that does not exist.
    fn dead_step(&mut self, at: usize, input: LoginInput) -> Option<StepId> {
        let (process, rng) = (&self.processes[at], &mut self.rng);
        let accepts = |kind: &StepKind| match input {
            LoginInput::Leased => *kind == StepKind::Lease,
            LoginInput::Loaded => *kind == StepKind::Load,
            LoginInput::Saved => *kind == StepKind::Save,
            LoginInput::Listening => *kind == StepKind::Listen,
            LoginInput::Redirected | LoginInput::Declined => matches!(kind, StepKind::Listen | StepKind::Page),
            LoginInput::KeyMade => *kind == StepKind::Key,
            LoginInput::Signed => *kind == StepKind::Signature,
            _ => *kind == StepKind::Assertion,
        };
        let others: Vec<StepId> =
            process.steps.iter().filter(|(_, kind)| !accepts(kind)).map(|(step, _)| *step).collect();
        let step = match rng.below(4) {
            0 | 1 if !others.is_empty() => rng.of(&others),
            2 => StepId(process.last_step + 1 + rng.below(50)),
            _ => StepId(1 + rng.below(process.last_step.max(1))),
        };
        let is_open = process.steps.get(&step).is_some_and(accepts);
        (!is_open && !process.client.is_terminated()).then_some(step)
    }
}
