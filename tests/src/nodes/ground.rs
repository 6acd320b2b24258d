//! Redis, the servers, and nginx before them: child processes with a folder of their own.

use super::server::SERVER;
use crate::adapters::Adapter;
use crate::interop::listening::{Listening, PORT};
use crate::interop::setup;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{env, fs, thread};

/// The number of servers: three of each adapter.
pub(super) const SERVERS: usize = 6;
/// How far Redis goes back.
const BACK: Duration = Duration::from_secs(2);

pub(super) struct Ground {
    folder: PathBuf,
    redis: Listening,
    servers: Vec<Listening>,
    nginx: Listening,
}

impl Ground {
    pub(super) fn start() -> Result<Self, String> {
        let folder = setup::place("nodes")?;
        let empty = |folder: &Path| setup::empty(folder).map_err(|why| format!("{}: {why}", folder.display()));
        empty(&folder)?;
        empty(&folder.join("redis"))?;
        let redis = start_redis(&folder)?;
        let store = format!("redis://127.0.0.1:{}/", redis.port());
        let program = env::current_exe().map_err(|why| why.to_string())?;
        let server = |nth: usize| {
            let adapter = Adapter::ALL[nth % 2].name();
            let words: [OsString; 5] =
                [program.clone().into(), SERVER.into(), adapter.into(), PORT.into(), store.clone().into()];
            Listening::start(&words, &[])
        };
        let servers = (0..SERVERS).map(server).collect::<Result<Vec<_>, _>>()?;
        let nginx = start_nginx(&folder, &servers)?;
        Ok(Self { folder, redis, servers, nginx })
    }

    /// Returns the URL that clients use.
    pub(super) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/mcp", self.nginx.port())
    }

    /// Kills a server, and starts it again.
    pub(super) fn kill(&mut self, nth: usize) -> Result<(), String> {
        self.servers[nth].restart()
    }

    /// Redis starts again from what it had written two seconds before.
    pub(super) fn roll_back(&mut self) -> Result<(), String> {
        let (folder, copy) = (self.folder.join("redis/appendonlydir"), self.folder.join("copy"));
        copy_all(&folder, &copy)?;
        thread::sleep(BACK);
        let port = self.redis.port();
        self.redis.kill_and(|| copy_all(&copy, &folder))?;
        assert_eq!(self.redis.port(), port, "it listens where it did");
        Ok(())
    }
}

fn start_redis(folder: &Path) -> Result<Listening, String> {
    let words = ["redis-server", "--port", PORT, "--bind", "127.0.0.1", "--save", "", "--appendonly", "yes"];
    let more = ["--appendfsync", "always", "--dir"];
    let mut command: Vec<OsString> = words.into_iter().chain(more).map(OsString::from).collect();
    command.push(folder.join("redis").into());
    Listening::start(&command, &[])
}

/// Starts nginx, which sends each request to the next server.
fn start_nginx(folder: &Path, servers: &[Listening]) -> Result<Listening, String> {
    let (place, file) = (folder.join("nginx"), folder.join("nginx/nginx.conf"));
    setup::empty(&place).map_err(|why| format!("{}: {why}", place.display()))?;
    let command: Vec<OsString> = ["nginx".into(), "-p".into(), place.into(), "-c".into(), file.clone().into()].into();
    let upstream: String =
        servers.iter().map(|server| format!("server 127.0.0.1:{} max_fails=0; ", server.port())).collect();
    Listening::start_configured(&command, &[], |port| {
        let text = format!(
            "daemon off; master_process off; pid nginx.pid; error_log stderr crit;
events {{ worker_connections 4096; }}
http {{
    access_log off;
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
