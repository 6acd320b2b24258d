//! The settings of a run: the processes, how they obtain their tokens, and what the run is mainly
//! about.

use super::super::campaign::{self, Violation};
use super::super::fault::Fault;
use super::super::report::{LoginInput, Report, pairs};
use super::super::rng::Rng;
use super::super::scenario::{self, Less};
use super::Scenario;
use super::world::World;
use mcp_proto::auth::{Alg, Dpop, FlowState};
use mcp_proto::client::State;
use std::fmt::Debug;

/// What the clients of a run obtain their tokens with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GrantKind {
    /// A user logs in at a page.
    Code,
    /// A user enters a code at another device.
    Device,
    /// The client itself.
    Program,
    /// An assertion of its platform.
    Workload,
    /// An assertion of an identity provider.
    Enterprise,
}

/// How the clients of a run authenticate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ClientKind {
    /// They name themselves.
    Public,
    /// With a secret in the form.
    Post,
    /// With a secret in a field.
    Basic,
    /// With a key.
    Key,
}

/// What the application does most of all.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Habit {
    Calls,
    Logins,
    Logouts,
    Deaths,
}

/// The settings of a run.
#[derive(Clone, PartialEq, Debug)]
pub struct Settings {
    /// Number of processes that share the store.
    pub processes: u64,
    /// The lifetime of access tokens, in seconds.
    pub lifetime: u64,
    /// Whether refresh tokens rotate.
    pub rotates: bool,
    /// Whether the store may fail. Without it, one renewal of the record is in flight at a time.
    pub store_fails: bool,
    /// Whether redirects name their issuer.
    pub names_issuer: bool,
    /// How far the clock of the second process is ahead, in seconds.
    pub ahead: i64,
    /// What tokens are obtained with.
    pub grant: GrantKind,
    /// How the clients authenticate.
    pub client: ClientKind,
    /// Whether the clients want bound tokens.
    pub dpop: Dpop,
    /// Whether the server asks for bound tokens.
    pub asks_proofs: bool,
    /// The algorithm of proofs.
    pub alg: Alg,
    /// Whether proofs need nonces.
    pub nonces: bool,
    /// The fault that is injected more often than the others.
    pub favourite: Option<Fault>,
    /// The input that comes in this state more often than the others.
    pub probe: Option<(FlowState, LoginInput)>,
}

impl GrantKind {
    const ALL: [Self; 5] = [Self::Code, Self::Device, Self::Program, Self::Workload, Self::Enterprise];
    const USER: &[Self] = &[Self::Code, Self::Device];
    const ASSERTION: &[Self] = &[Self::Workload, Self::Enterprise];
    const MACHINE: &[Self] = &[Self::Program, Self::Workload, Self::Enterprise];

    /// Returns whether a user logs in.
    pub(super) fn needs_user(self) -> bool {
        Self::USER.contains(&self)
    }
}

impl ClientKind {
    const ALL: [Self; 4] = [Self::Public, Self::Post, Self::Basic, Self::Key];

    /// Returns the ways in which the clients of a grant authenticate.
    const fn of(grant: GrantKind) -> &'static [Self] {
        match grant {
            GrantKind::Code | GrantKind::Device => &[Self::Public, Self::Post, Self::Basic],
            GrantKind::Program | GrantKind::Enterprise => &[Self::Post, Self::Basic, Self::Key],
            GrantKind::Workload => &[Self::Public],
        }
    }

    /// Returns the name of the method in metadata.
    pub(super) const fn method(self) -> &'static str {
        match self {
            Self::Public => "none",
            Self::Post => "client_secret_post",
            Self::Basic => "client_secret_basic",
            Self::Key => "private_key_jwt",
        }
    }
}

/// Returns the grants of the runs in which a fault can occur.
fn grants_of_fault(fault: Fault) -> &'static [GrantKind] {
    match fault {
        Fault::PastedTwice | Fault::AnsweredLate | Fault::WrongState | Fault::WrongIssuer | Fault::NoListener => {
            &[GrantKind::Code]
        }
        Fault::SlowDown | Fault::CodeForgotten => &[GrantKind::Device],
        Fault::UserDeclines | Fault::UserRefuses => GrantKind::USER,
        Fault::AssertionFails | Fault::AssertionStalls => GrantKind::ASSERTION,
        Fault::GrantRefused => GrantKind::MACHINE,
        _ => &GrantKind::ALL,
    }
}

/// Returns the share of the runs that are mainly about a fault: a rare one has more.
const fn share_of_fault(fault: Fault) -> usize {
    match fault {
        Fault::AnsweredLate | Fault::CodeForgotten => 9,
        Fault::PastedTwice | Fault::WrongIssuer | Fault::WrongState => 7,
        Fault::AssertionFails | Fault::AssertionStalls => 6,
        Fault::UserDeclines | Fault::UserRefuses | Fault::NoListener => 4,
        Fault::KeyFails | Fault::IssuerMoved => 4,
        Fault::GrantDead | Fault::ClientForgotten | Fault::NonceChanged | Fault::TokenUnbound => 3,
        Fault::ResourceDocument | Fault::ProofRefused | Fault::SignerStalls => 2,
        Fault::Lost | Fault::Late | Fault::IssuerDown | Fault::IssuerBusy | Fault::IssuerDocument => 0,
        Fault::ErrorAtSuccess | Fault::TokenRevoked | Fault::ScopeDemanded => 0,
        _ => 1,
    }
}

/// Returns the share of the runs that are mainly about an input in a state: one that ends a process
/// there, or in a rare state, has more.
fn share_of_probe((state, input): (FlowState, LoginInput)) -> usize {
    let is_rare =
        matches!(state, FlowState::Listening | FlowState::Registering | FlowState::Waiting | FlowState::Revoking);
    match (impossible(state, input), input) {
        (Some(_), _) => 0,
        (None, LoginInput::Close) if is_rare => 10,
        (None, LoginInput::Close | LoginInput::Logout) => 5,
        (None, LoginInput::Refused) if is_rare => 5,
        (None, _) if is_rare => 3,
        (None, _) => 1,
    }
}

/// Returns the grants of the runs in which a state occurs.
fn grants_of_state(state: FlowState) -> &'static [GrantKind] {
    match state {
        FlowState::Listening => &[GrantKind::Code],
        FlowState::Registering | FlowState::Authorizing => GrantKind::USER,
        FlowState::Asserting => GrantKind::ASSERTION,
        _ => &GrantKind::ALL,
    }
}

/// Returns whether a fault is one of proofs.
const fn is_of_proofs(fault: Fault) -> bool {
    matches!(
        fault,
        Fault::KeyFails
            | Fault::SignerFails
            | Fault::SignerStalls
            | Fault::NonceChanged
            | Fault::ProofRefused
            | Fault::TokenUnbound
    )
}

/// Returns why an input cannot come in a state. `None` if it can.
pub(super) const fn impossible(state: FlowState, input: LoginInput) -> Option<&'static str> {
    match (state, input) {
        (
            FlowState::Discovering
            | FlowState::Registering
            | FlowState::Authorizing
            | FlowState::Redeeming
            | FlowState::Revoking,
            LoginInput::Fetched,
        ) => None,
        (_, LoginInput::Fetched) => Some("a run cancels the request whose response it does not wait for any more"),
        _ => None,
    }
}

impl Settings {
    /// Returns what the application does most of all.
    pub(super) fn habit(&self) -> Habit {
        let state = self.probe.map(|(state, _)| state);
        match (self.favourite, state) {
            (Some(Fault::ProcessDies), _) => Habit::Deaths,
            (_, Some(FlowState::Revoking | FlowState::Empty)) => Habit::Logouts,
            (_, Some(FlowState::Holding | FlowState::Waiting | FlowState::Redeeming)) => Habit::Calls,
            (Some(fault), _) if grants_of_fault(fault).len() < GrantKind::ALL.len() => Habit::Logins,
            (Some(Fault::IssuerDocument | Fault::ResourceDocument | Fault::KeyFails | Fault::TokenUnbound), _) => {
                Habit::Logins
            }
            (_, Some(FlowState::Listening | FlowState::Registering | FlowState::Authorizing)) => Habit::Logins,
            _ => Habit::Calls,
        }
    }
}

impl scenario::Settings for Settings {
    const NAME: &'static str = "login";
    const STATES: &'static [State] = &[];
    // A client loads the record when it is constructed, so it is never idle before its end.
    const LOGIN_STATES: &'static [FlowState] = &[
        FlowState::Loading,
        FlowState::Leasing,
        FlowState::Discovering,
        FlowState::Listening,
        FlowState::Registering,
        FlowState::Authorizing,
        FlowState::Signing,
        FlowState::Asserting,
        FlowState::Redeeming,
        FlowState::Waiting,
        FlowState::Saving,
        FlowState::Revoking,
        FlowState::Holding,
        FlowState::Empty,
    ];

    fn from_seed(seed: u64) -> Scenario {
        let mut rng = Rng::new(seed ^ 0x6c6f_6769_6e00);
        let faults = rng.of(&[0, 40, 80, 120]);
        // One input is there for all answers to steps.
        let all = pairs(Self::LOGIN_STATES, &LoginInput::ALL[LoginInput::STEPS - 1..]);
        let probes: Vec<_> = all.into_iter().flat_map(|pair| vec![pair; share_of_probe(pair)]).collect();
        let menu = Fault::menu(Self::NAME).into_iter();
        let menu: Vec<_> = menu.flat_map(|fault| vec![fault; share_of_fault(fault)]).collect();
        // A run is mainly about a pair of a state and an input, or about a fault.
        let probe = (faults > 0 && rng.per_mille(450)).then(|| rng.of(&probes));
        let favourite = (faults > 0 && probe.is_none()).then(|| rng.of(&menu));
        let grant = match (probe, favourite) {
            (Some((state, _)), _) => rng.of(grants_of_state(state)),
            (None, Some(fault)) => rng.of(grants_of_fault(fault)),
            (None, None) => rng.of(&GrantKind::ALL),
        };
        let needs_proofs =
            favourite.is_some_and(is_of_proofs) || probe.is_some_and(|(state, _)| state == FlowState::Signing);
        let dpop = match needs_proofs {
            true => rng.of(&[Dpop::IfOffered, Dpop::Required]),
            false => rng.of(&[Dpop::Off, Dpop::Off, Dpop::IfOffered, Dpop::Required]),
        };
        let store_fails = matches!(favourite, Some(Fault::StoreFails | Fault::StoreStalls));
        let settings = Self {
            processes: 1 + rng.below(3),
            lifetime: rng.of(&[10, 60, 300, 3600]),
            rotates: rng.per_mille(700),
            store_fails: store_fails || faults > 0 && rng.per_mille(300),
            names_issuer: rng.per_mille(700),
            ahead: if faults > 0 { rng.of(&[0, 0, -600, 600]) } else { 0 },
            grant,
            client: rng.of(ClientKind::of(grant)),
            dpop,
            asks_proofs: needs_proofs || rng.per_mille(600),
            alg: rng.of(&[Alg::Es256, Alg::EdDsa]),
            nonces: favourite == Some(Fault::NonceChanged) || rng.per_mille(400),
            favourite,
            probe,
        };
        let operations = 5 + rng.below(40);
        Scenario { seed, operations, faults, capacity: 1, less: Less::default(), settings }
    }

    fn attempt(scenario: &Scenario, trace: bool) -> Result<Report, Violation> {
        campaign::attempt(|| World::begin(scenario, trace), World::run, World::drawn)
    }

    fn impossible(state: FlowState, input: LoginInput) -> Option<&'static str> {
        impossible(state, input)
    }

    fn lines(&self) -> Vec<(&'static str, String)> {
        vec![
            ("processes", self.processes.to_string()),
            ("lifetime", self.lifetime.to_string()),
            ("rotates", self.rotates.to_string()),
            ("store_fails", self.store_fails.to_string()),
            ("names_issuer", self.names_issuer.to_string()),
            ("ahead", self.ahead.to_string()),
            ("grant", format!("{:?}", self.grant)),
            ("client", format!("{:?}", self.client)),
            ("dpop", format!("{:?}", self.dpop)),
            ("asks_proofs", self.asks_proofs.to_string()),
            ("alg", format!("{:?}", self.alg)),
            ("nonces", self.nonces.to_string()),
        ]
    }

    fn read(&mut self, key: &str, value: &str) -> Option<()> {
        match key {
            "processes" => self.processes = value.parse().ok().filter(|n| (1..=1000).contains(n))?,
            "lifetime" => self.lifetime = value.parse().ok().filter(|n| *n > 0)?,
            "rotates" => self.rotates = value.parse().ok()?,
            "store_fails" => self.store_fails = value.parse().ok()?,
            "names_issuer" => self.names_issuer = value.parse().ok()?,
            "ahead" => self.ahead = value.parse().ok()?,
            "grant" => self.grant = named(&GrantKind::ALL, value)?,
            "client" => self.client = named(&ClientKind::ALL, value)?,
            "dpop" => self.dpop = named(&[Dpop::Off, Dpop::IfOffered, Dpop::Required], value)?,
            "asks_proofs" => self.asks_proofs = value.parse().ok()?,
            "alg" => self.alg = named(&Alg::ALL, value)?,
            "nonces" => self.nonces = value.parse().ok()?,
            _ => return None,
        }
        Some(())
    }

    fn simpler(&self) -> Vec<Self> {
        let one = Self { processes: 1, ..self.clone() };
        let on_time = Self { ahead: 0, ..self.clone() };
        let sound = Self { store_fails: false, ..self.clone() };
        let unbound = Self { dpop: Dpop::Off, ..self.clone() };
        let plain = Self { nonces: false, ..self.clone() };
        vec![one, on_time, sound, unbound, plain]
    }
}

/// Returns the one with this name.
fn named<T: Copy + Debug>(all: &[T], name: &str) -> Option<T> {
    all.iter().copied().find(|one| format!("{one:?}") == name)
}
