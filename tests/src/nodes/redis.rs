//! The stores, as child processes: Redis alone, Redis with a replica and Sentinels, or a cluster of
//! three.

use crate::interop::listening::{Listening, PORT};
use crate::interop::setup;
use mcp_driver::store::Redis;
use std::ffi::OsString;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use std::{fs, thread};

/// How far Redis goes back.
const BACK: Duration = Duration::from_secs(2);
/// The name under which Sentinels watch the store.
const NAME: &str = "nodes";
/// The time for a failover, and for a cluster to form.
const SETTLES: Duration = Duration::from_secs(60);

/// How a store is made up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shape {
    /// One server.
    One,
    /// A primary, a replica, and three Sentinels.
    Sentinel,
    /// Three shards.
    Cluster,
}

impl Shape {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::One, Self::Sentinel, Self::Cluster];

    /// Returns its name in the arguments of programs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::One => "redis",
            Self::Sentinel => "sentinel",
            Self::Cluster => "cluster",
        }
    }

    /// Returns the shape with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|shape| shape.name() == name)
    }

    /// Returns the store with these URLs, the way [`Servers::words`] gives them.
    pub fn store(self, urls: &[String]) -> Option<Redis> {
        let (first, others) = urls.split_first()?;
        let store = Redis::new(first.as_str());
        Some(match self {
            Self::One => store,
            Self::Sentinel => store.sentinel(NAME, others.iter().cloned()),
            Self::Cluster => store.cluster(others.iter().cloned()),
        })
    }
}

/// The processes of a store.
pub(super) struct Servers {
    shape: Shape,
    folder: PathBuf,
    /// The primary first, or all of a cluster.
    servers: Vec<Listening>,
    sentinels: Vec<Listening>,
}

impl Servers {
    pub(super) fn start(shape: Shape, folder: &Path) -> Result<Self, String> {
        let folder = folder.join("redis");
        empty(&folder)?;
        let mut started = Self { shape, folder, servers: Vec::new(), sentinels: Vec::new() };
        match shape {
            Shape::One => started.add(&[])?,
            Shape::Sentinel => {
                started.add(&[])?;
                let primary = started.servers[0].port().to_string();
                started.add(&["--replicaof", "127.0.0.1", &primary])?;
                for nth in 0..3 {
                    started.add_sentinel(nth, &primary)?;
                }
                // They have to know of the replica.
                started.until("slaves=1", |started| started.ask_sentinel(&["INFO", "sentinel"]))?;
            }
            Shape::Cluster => {
                for _ in 0..3 {
                    let bus = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|socket| socket.local_addr());
                    let bus = bus.map_err(|why| why.to_string())?.port().to_string();
                    let node = ["--cluster-enabled", "yes", "--cluster-node-timeout", "2000", "--cluster-port", &bus];
                    started.add(&node)?;
                }
                let addresses = started.servers.iter().map(|server| format!("127.0.0.1:{}", server.port()));
                let words = ["--cluster", "create"].map(str::to_owned).into_iter().chain(addresses);
                cli(words.chain(["--cluster-yes".to_owned()]))?;
                started.until("cluster_state:ok", |started| {
                    let port = started.servers[2].port().to_string();
                    cli(["-p", &port, "CLUSTER", "INFO"])
                })?;
            }
        }
        Ok(started)
    }

    /// Returns what [`Shape::store`] takes: its name, and URLs.
    pub(super) fn words(&self) -> Vec<String> {
        let url = |server: &Listening| format!("redis://127.0.0.1:{}/", server.port());
        let own = if self.shape == Shape::Cluster { &self.servers[..] } else { &self.servers[..1] };
        let urls = own.iter().chain(&self.sentinels).map(url);
        [self.shape.name().to_owned()].into_iter().chain(urls).collect()
    }

    /// Returns the port of the first server.
    pub(super) fn port(&self) -> u16 {
        self.servers[0].port()
    }

    /// Checks what the suite of stores has left: keys that end by themselves, the news and the
    /// members. Nothing of a session or of what a node owns, since all have ended.
    pub(super) fn check_left(&self) -> Result<(), String> {
        let count = if self.shape == Shape::Cluster { self.servers.len() } else { 1 };
        for server in &self.servers[..count] {
            let port = server.port().to_string();
            for key in cli(["-p", &port, "KEYS", "*"])?.lines().filter(|key| !key.is_empty()) {
                let ttl = cli(["-p", &port, "PTTL", key])?;
                let ends = !ttl.trim().starts_with('-');
                let is_kept = ["mcp:c", "mcp:{m}:nodes"].contains(&key) || ttl.trim() == "-2";
                let has_ended = ["mcp:s:", "mcp:e:", "mcp:l:", "mcp:o:"].iter().any(|of| key.starts_with(of));
                if has_ended || !ends && !is_kept {
                    return Err(format!("{key} is left for {} ms", ttl.trim()));
                }
            }
        }
        Ok(())
    }

    /// The first server starts again from what it had written two seconds before.
    pub(super) fn roll_back(&mut self) -> Result<(), String> {
        let (written, copy) = (self.folder.join("0/appendonlydir"), self.folder.join("copy"));
        copy_all(&written, &copy)?;
        thread::sleep(BACK);
        self.servers[0].kill_and(|| copy_all(&copy, &written))
    }

    /// The primary ends, and the replica takes its place. The old one comes back as its replica.
    pub(super) fn fail_over(&mut self) -> Result<(), String> {
        let [old, new] = [0, 1].map(|nth: usize| self.servers[nth].port());
        let sentinel = self.sentinels[0].port().to_string();
        self.servers[0].kill_and(|| {
            until(&new.to_string(), || cli(["-p", &sentinel, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", NAME]))
        })?;
        self.servers.swap(0, 1);
        until("role:slave", || cli(["-p", &old.to_string(), "INFO", "replication"]))
    }

    fn add(&mut self, more: &[&str]) -> Result<(), String> {
        let folder = self.folder.join(self.servers.len().to_string());
        empty(&folder)?;
        let words = ["redis-server", "--port", PORT, "--bind", "127.0.0.1", "--save", "", "--appendonly", "yes"];
        // What was written before a kill is in the file: only a machine that crashes loses it.
        let rest = ["--appendfsync", "no", "--dir"];
        let mut command: Vec<OsString> = words.iter().chain(more).chain(&rest).map(OsString::from).collect();
        command.push(folder.into());
        self.servers.push(Listening::start(&command, &[])?);
        Ok(())
    }

    fn add_sentinel(&mut self, nth: usize, primary: &str) -> Result<(), String> {
        let folder = self.folder.join(format!("sentinel-{nth}"));
        empty(&folder)?;
        let file = folder.join("sentinel.conf");
        let command: Vec<OsString> = ["redis-server".into(), file.clone().into(), "--sentinel".into()].into();
        self.sentinels.push(Listening::start_configured(&command, &[], |port| {
            let text = format!(
                "port {port}
bind 127.0.0.1
sentinel monitor {NAME} 127.0.0.1 {primary} 2
sentinel down-after-milliseconds {NAME} 8000
sentinel failover-timeout {NAME} 10000
"
            );
            fs::write(&file, text)
        })?);
        Ok(())
    }

    fn ask_sentinel(&self, words: &[&str]) -> Result<String, String> {
        let port = self.sentinels[0].port().to_string();
        cli(["-p", &port].into_iter().chain(words.iter().copied()))
    }

    fn until(&self, text: &str, ask: impl Fn(&Self) -> Result<String, String>) -> Result<(), String> {
        until(text, || ask(self))
    }
}

/// Waits until a command prints something.
fn until(text: &str, ask: impl Fn() -> Result<String, String>) -> Result<(), String> {
    let begun = Instant::now();
    loop {
        let said = ask();
        if said.as_ref().is_ok_and(|said| said.contains(text)) {
            return Ok(());
        }
        if begun.elapsed() > SETTLES {
            return Err(format!("no {text:?} in {said:?}"));
        }
        thread::sleep(Duration::from_millis(100));
    }
}

pub(super) fn cli<W: AsRef<std::ffi::OsStr>>(words: impl IntoIterator<Item = W>) -> Result<String, String> {
    let mut command = Command::new("redis-cli");
    let output = command.args(words).stdin(Stdio::null()).output().map_err(|why| format!("redis-cli: {why}"))?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    match output.status.success() {
        true => Ok(said),
        false => Err(format!("redis-cli: {said}{}", String::from_utf8_lossy(&output.stderr))),
    }
}

fn empty(folder: &Path) -> Result<(), String> {
    setup::empty(folder).map_err(|why| format!("{}: {why}", folder.display()))
}

/// Makes a folder a copy of another one.
fn copy_all(from: &Path, to: &Path) -> Result<(), String> {
    let copied = setup::empty(to).and_then(|()| {
        for entry in fs::read_dir(from)? {
            let entry = entry?;
            fs::copy(entry.path(), to.join(entry.file_name()))?;
        }
        Ok(())
    });
    copied.map_err(|why| format!("{}: {why}", from.display()))
}
