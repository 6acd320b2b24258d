//! What engines do, as hashes that a change of names does not change.
//!
//! [`record`] runs worlds of the simulator and keeps the inputs of their engines, in names of the
//! harness ([`log`]). [`replay`] passes them to engines of this build and writes down the outputs
//! ([`said`]). A change without a change of behaviour gives the same hashes. The files are large
//! and can be made again by the commit that made them, so only the hashes are in the tree.

pub mod apart;
pub mod bare;
pub mod command;
pub mod log;
pub mod pair;
pub mod replay;
pub mod said;
mod settings;

use super::fleet::Fleet;
use log::{Engine, Entry, Op};
use replay::{Replay, Seam};
use settings::Setting;
use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::Path;
use std::time::Duration;

/// Seeds that have one hash, and whose inputs are in one file.
pub const SHARE: u64 = 1000;

/// Fleets that have one hash.
pub const FLEETS: u64 = 200;

/// A subject of a recording: a world of the simulator, and the seam that drives its engines.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum World {
    /// Clients and a server over lines or HTTP, seam A.
    Duplex,
    /// A client and the model of a server over HTTP, seam A.
    Web,
    /// Clients and a server over HTTP, seam A.
    Both,
    /// The servers of [`Both`](Self::Both) once more, at seam B.
    BothB,
    /// A client of lines or HTTP, seam B.
    Pair,
}

impl World {
    /// All, and how many seeds of each are recorded.
    pub const ALL: [(Self, u64); 5] =
        [(Self::Duplex, 20_000), (Self::Web, 4_000), (Self::Both, 4_000), (Self::BothB, 4_000), (Self::Pair, 4_000)];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Duplex => "duplex",
            Self::Web => "web",
            Self::Both => "both",
            Self::BothB => "both-b",
            Self::Pair => "pair",
        }
    }

    /// The name of the files of its inputs.
    const fn file(self) -> &'static str {
        match self {
            Self::BothB => Self::Both.name(),
            other => other.name(),
        }
    }

    /// Runs the world of a seed.
    pub fn run(self, seed: u64) -> Vec<Entry> {
        match self {
            Self::Duplex => settings::record_duplex(seed),
            Self::Web => settings::record_web(seed),
            Self::Both | Self::BothB => settings::record_both(seed),
            Self::Pair => pair::record(seed),
        }
    }

    /// Passes its entries to engines of this build. `each` gets the outputs after each.
    fn replay(self, seed: u64, entries: &[Entry], each: impl FnMut(usize, &mut dyn Iterator<Item = String>)) {
        match self {
            Self::Duplex => replay(Setting::duplex(seed), Seam::A, entries, each),
            Self::Web => replay(Setting::web(seed), Seam::A, entries, each),
            Self::Both => replay(Setting::both(seed), Seam::A, entries, each),
            Self::BothB => replay(Setting::both(seed), Seam::B, entries, each),
            Self::Pair => settings::replay_pair(entries, each),
        }
    }
}

fn replay(
    setting: Setting,
    seam: Seam,
    entries: &[Entry],
    mut each: impl FnMut(usize, &mut dyn Iterator<Item = String>),
) {
    let mut replay = Replay::new(setting, seam);
    for (n, entry) in entries.iter().enumerate() {
        each(n, &mut replay.tell(entry).into_lines());
    }
}

/// Hashes the outputs of the engines: each line, after the input and its time.
pub fn digest(world: World, seed: u64, entries: &[Entry]) -> [u8; 32] {
    let mut hash = hmac_sha256::Hash::new();
    world.replay(seed, entries, |n, lines| {
        for line in lines {
            hash.update(format!("{n} {} {line}\n", entries[n].1));
        }
    });
    hash.finalize()
}

/// The hash of some seeds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Digest {
    /// Of what.
    pub world: &'static str,
    /// The first of [`SHARE`] seeds.
    pub first: u64,
    hash: [u8; 32],
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} ", self.world, self.first)?;
        self.hash.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Records the inputs of a share of the seeds of a world into a folder.
///
/// # Errors
/// The file cannot be written.
///
/// # Panics
/// If an engine with the same inputs has other counters than the one in the run: then a digest
/// would prove nothing.
pub fn record(world: World, first: u64, folder: &Path) -> io::Result<()> {
    if world == World::BothB {
        return Ok(());
    }
    std::fs::create_dir_all(folder)?;
    let mut file = BufWriter::new(File::create(folder.join(format!("{}-{first}.jsonl", world.file())))?);
    for seed in first..first + SHARE {
        let mut entries = world.run(seed);
        world.replay(seed, &entries, |_, lines| lines.for_each(drop));
        entries.retain(|Entry(_, _, op)| !matches!(op, Op::Stats(_)));
        serde_json::to_writer(&mut file, &entries)?;
        file.write_all(b"\n")?;
    }
    file.flush()
}

/// Replays a share of the seeds of a world.
///
/// # Errors
/// The file of its inputs cannot be read.
pub fn replay_share(world: World, first: u64, folder: &Path) -> io::Result<Digest> {
    let mut hash = hmac_sha256::Hash::new();
    for (seed, entries) in (first..).zip(recorded(world, first, folder)?) {
        hash.update(digest(world, seed, &entries?));
    }
    Ok(Digest { world: world.name(), first, hash: hash.finalize() })
}

/// Writes the inputs and outputs of the engines of one seed, line by line: to compare two builds,
/// compare their lines.
///
/// # Errors
/// The file of its inputs cannot be read, or the output cannot be written.
pub fn show(world: World, seed: u64, folder: &Path, to: &mut dyn Write) -> io::Result<()> {
    let first = (seed - 1) / SHARE * SHARE + 1;
    let at = usize::try_from(seed - first).unwrap_or(usize::MAX);
    let missing = || io::Error::new(io::ErrorKind::NotFound, "no such seed");
    let entries = recorded(world, first, folder)?.nth(at).ok_or_else(missing)??;
    let mut written = Ok(());
    world.replay(seed, &entries, |n, lines| {
        let Entry(engine, at, op) = &entries[n];
        let engine = match engine {
            Engine::Client(number) => format!("client {number}"),
            Engine::Server => "server".into(),
        };
        let mut write = |line: &str| {
            if written.is_ok() {
                written = writeln!(to, "{line}");
            }
        };
        write(&format!("{n} {at} {engine} < {}", serde_json::to_string(op).unwrap_or_default()));
        lines.for_each(|line| write(&format!("{n} > {line}")));
    });
    written
}

/// Runs [`FLEETS`] fleets, whose supervisors need no recording: the same seed gives the same inputs
/// as long as the outputs are the same.
///
/// # Errors
/// A run violates an invariant.
pub fn fleets() -> io::Result<Digest> {
    let mut hash = hmac_sha256::Hash::new();
    for seed in 1..=FLEETS {
        let fleet = Fleet { servers: 20, deaths: 100, length: Duration::from_secs(600), seed };
        let report = fleet.run().map_err(io::Error::other)?;
        hash.update(format!("{report:?}\n"));
    }
    Ok(Digest { world: "fleet", first: 1, hash: hash.finalize() })
}

fn recorded(world: World, first: u64, folder: &Path) -> io::Result<impl Iterator<Item = io::Result<Vec<Entry>>>> {
    let file = File::open(folder.join(format!("{}-{first}.jsonl", world.file())))?;
    Ok(BufReader::new(file).lines().map(|line| Ok(serde_json::from_str(&line?)?)))
}
