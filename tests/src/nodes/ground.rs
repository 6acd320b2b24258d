//! The store, the servers, and nginx before them: child processes with a folder of their own.

use super::crossed::{Crossed, FORMAT};
use super::redis::{Servers, Shape, cli};
use super::server::{RUNS, SERVER, serve};
use crate::adapters::{Adapter, Server};
use crate::interop::listening::{Listening, PORT};
use crate::interop::setup;
use mcp_driver::ServerOptions;
use mcp_driver::store::SharedMemory;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::{env, fs};

/// The number of servers: three of each adapter.
pub(super) const SERVERS: usize = 6;

/// The file of the requests, in the folder of nginx.
const LOG: &str = "access.log";

pub(super) struct Ground {
    folder: PathBuf,
    place: Place,
    nginx: Listening,
}

enum Place {
    /// Each server is a process.
    Apart(Box<Servers>, Vec<Listening>),
    /// They are in this one, which has their store.
    Here(Vec<Server>),
}

impl Ground {
    /// `shape`: that of the store. `None`: it is in memory.
    pub(super) fn start(shape: Option<Shape>) -> Result<Self, String> {
        let folder = setup::place("nodes")?;
        setup::empty(&folder).map_err(|why| format!("{}: {why}", folder.display()))?;
        let adapter = |nth: usize| Adapter::ALL[nth % 2];
        let place = match shape {
            Some(shape) => {
                let store = Servers::start(shape, &folder)?;
                let program = env::current_exe().map_err(|why| why.to_string())?;
                let words = store.words();
                let server = |nth: usize| {
                    let first: [OsString; 4] =
                        [program.clone().into(), SERVER.into(), adapter(nth).name().into(), PORT.into()];
                    let words: Vec<OsString> = first.into_iter().chain(words.iter().map(OsString::from)).collect();
                    Listening::start(&words, &[])
                };
                let servers = (0..SERVERS).map(server).collect::<Result<_, _>>()?;
                Place::Apart(Box::new(store), servers)
            }
            None => {
                let store = SharedMemory::new();
                let server = |nth: usize| {
                    let options = ServerOptions::new().store(store.clone());
                    serve(adapter(nth), options, "127.0.0.1:0", |_| {})
                };
                Place::Here((0..SERVERS).map(server).collect::<Result<_, _>>().map_err(|why| why.to_string())?)
            }
        };
        let nginx = start_nginx(&folder, &place.ports())?;
        Ok(Self { folder, place, nginx })
    }

    /// Returns the address that clients use.
    pub(super) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.nginx.port())
    }

    /// Returns the URL that clients use.
    pub(super) fn url(&self) -> String {
        format!("http://{}/mcp", self.address())
    }

    /// Returns the addresses of the servers.
    pub(super) fn addresses(&self) -> Vec<String> {
        self.place.ports().iter().map(|port| format!("127.0.0.1:{port}")).collect()
    }

    pub(super) const fn can_kill(&self) -> bool {
        matches!(self.place, Place::Apart(..))
    }

    /// Kills a server, and starts it again.
    pub(super) fn kill(&mut self, nth: usize) -> Result<(), String> {
        match &mut self.place {
            Place::Apart(_, servers) => servers[nth].restart(),
            Place::Here(_) => Err("it is in this process".to_owned()),
        }
    }

    /// The store starts again from what it had written two seconds before.
    pub(super) fn roll_back(&mut self) -> Result<(), String> {
        self.store()?.roll_back()
    }

    /// The replica of the store takes over.
    pub(super) fn fail_over(&mut self) -> Result<(), String> {
        self.store()?.fail_over()
    }

    /// Returns the number of tasks that servers work on, as the store has them.
    pub(super) fn owned(&mut self) -> Result<usize, String> {
        let port = self.store()?.port().to_string();
        let keys = cli(["-p", &port, "--scan", "--pattern", "mcp:o:*"])?;
        let count = |key| cli(["-p", &port, "SCARD", key])?.trim().parse::<usize>().map_err(|why| why.to_string());
        keys.lines().map(count).sum()
    }

    /// Writes what the servers have said to files beside the log of nginx.
    pub(super) fn keep_lines(&self) -> Result<(), String> {
        let Place::Apart(_, servers) = &self.place else { return Ok(()) };
        for server in servers {
            let file = self.folder.join(format!("nginx/{}.log", server.port()));
            let lines = server.lines().into_iter().collect::<Vec<_>>().join("\n");
            fs::write(&file, lines).map_err(|why| format!("{}: {why}", file.display()))?;
        }
        Ok(())
    }

    /// Returns what has gone from one server to another.
    pub(super) fn crossed(&self) -> Result<Crossed, String> {
        let log = self.folder.join("nginx").join(LOG);
        let log = fs::read_to_string(&log).map_err(|why| format!("{}: {why}", log.display()))?;
        Ok(Crossed::read(&log))
    }

    /// Returns the number of tasks that have run more than once, since their server was killed.
    pub(super) fn reruns(&self) -> usize {
        let Place::Apart(_, servers) = &self.place else { return 0 };
        let mut runs = BTreeMap::<String, u32>::new();
        let lines = servers.iter().flat_map(Listening::lines);
        lines.filter(|line| line.starts_with(RUNS)).for_each(|line| *runs.entry(line).or_default() += 1);
        runs.values().filter(|runs| **runs > 1).count()
    }

    fn store(&mut self) -> Result<&mut Servers, String> {
        match &mut self.place {
            Place::Apart(store, _) => Ok(store),
            Place::Here(_) => Err("it is in this process".to_owned()),
        }
    }
}

impl Place {
    fn ports(&self) -> Vec<u16> {
        match self {
            Self::Apart(_, servers) => servers.iter().map(Listening::port).collect(),
            Self::Here(servers) => servers.iter().map(|server| server.address().port()).collect(),
        }
    }
}

/// Starts nginx, which sends each request to the next server.
fn start_nginx(folder: &Path, ports: &[u16]) -> Result<Listening, String> {
    let (place, file) = (folder.join("nginx"), folder.join("nginx/nginx.conf"));
    setup::empty(&place).map_err(|why| format!("{}: {why}", place.display()))?;
    let command: Vec<OsString> = ["nginx".into(), "-p".into(), place.into(), "-c".into(), file.clone().into()].into();
    let upstream: String = ports.iter().map(|port| format!("server 127.0.0.1:{port} max_fails=0; ")).collect();
    Listening::start_configured(&command, &[], |port| {
        let text = format!(
            "daemon off; master_process off; pid nginx.pid; error_log stderr crit;
events {{ worker_connections 4096; }}
http {{
    log_format crossed escape=json '{FORMAT}';
    access_log {LOG} crossed;
    client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi;
    scgi_temp_path scgi;
    upstream nodes {{ {upstream} keepalive 64; }}
    server {{
        listen 127.0.0.1:{port};
        location / {{
            proxy_pass http://nodes;
            proxy_http_version 1.1;
            proxy_set_header Connection \"\";
            proxy_buffering off;
            proxy_read_timeout 1h;
        }}
    }}
}}
"
        );
        fs::write(&file, text)
    })
}
