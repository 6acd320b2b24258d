//! The servers of a store, and a connection to them: one server, the one that Sentinels name, or
//! those of a cluster.

use super::commands::ScriptCall;
use super::scripts::Script as Name;
use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;
use redis::cluster::{ClusterClient, ClusterConfig, ClusterConnection};
use redis::{
    Client, Cmd, Connection, ConnectionAddr, ConnectionInfo, ConnectionLike, ErrorKind, IntoConnectionInfo, RedisError,
    RedisResult, Script, Value, cmd, pipe,
};
#[cfg(feature = "rustls")]
use rustls::crypto::CryptoProvider;

/// The time to connect, to write, and for a reply of a Sentinel.
const TIME: Duration = Duration::from_secs(2);
/// The number of commands of a batch that may have no reply in time, before the rest is not sent to
/// a cluster: one server that says nothing must not keep the others waiting.
const TIMEOUTS: usize = 2;

/// Where a store is.
pub(super) enum Servers {
    One(Client),
    /// What Sentinels watch under a name. The address of the first part does not matter.
    Sentinel(ConnectionInfo, String, Vec<Client>),
    Cluster(ClusterClient),
}

/// A connection.
pub(super) enum Link {
    One(Connection),
    Cluster(Box<ClusterConnection>),
}

/// The scripts, as the store knows them.
pub(super) struct Scripts(Vec<Script>);

/// A command of a request.
pub(super) struct Step<'a> {
    pub(super) command: Command<'a>,
    pub(super) role: Role,
}

pub(super) enum Command<'a> {
    Plain(Cmd),
    Script(&'a ScriptCall),
}

/// What the result of a command is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Role {
    /// Without it, the result that follows is its error.
    Before,
    Result,
    /// Nothing.
    After,
}

impl Servers {
    pub(super) fn one(url: &str) -> RedisResult<Self> {
        Ok(Self::One(Client::open(url)?))
    }

    pub(super) fn sentinel(url: &str, name: &str, sentinels: &[String]) -> RedisResult<Self> {
        let sentinels = sentinels.iter().map(|url| Client::open(url.as_str())).collect::<RedisResult<_>>()?;
        Ok(Self::Sentinel(url.into_connection_info()?, name.to_owned(), sentinels))
    }

    /// `urls`: some of the servers. They name the others.
    pub(super) fn cluster<'a>(urls: impl IntoIterator<Item = &'a str>) -> RedisResult<Self> {
        // The engine repeats what fails.
        let client = ClusterClient::builder(urls).retries(1).min_retry_wait(1).max_retry_wait(20).build()?;
        Ok(Self::Cluster(client))
    }

    /// Returns whether one read cannot wait for two keys.
    pub(super) const fn is_cluster(&self) -> bool {
        matches!(self, Self::Cluster(_))
    }

    /// Connects. `reply`: the time for each reply.
    pub(super) fn connect(&self, reply: Duration) -> RedisResult<Link> {
        match self {
            Self::One(client) => Ok(Link::One(connected(client, reply)?)),
            Self::Sentinel(servers, name, sentinels) => {
                let mut failure = RedisError::from((ErrorKind::InvalidClientConfig, "there is no Sentinel"));
                for sentinel in sentinels {
                    match primary(servers, name, sentinel, reply) {
                        Ok(open) => return Ok(Link::One(open)),
                        Err(why) => failure = why,
                    }
                }
                Err(failure)
            }
            Self::Cluster(client) => {
                let times = ClusterConfig::new().set_connection_timeout(TIME).set_response_timeout(reply);
                Ok(Link::Cluster(Box::new(client.get_connection_with_config(times)?)))
            }
        }
    }
}

/// Makes sure that connections to these URLs have cryptography if they need it. The crate takes the
/// default of the process, and panics without one if its features do not say which it is.
pub(super) fn secure<'a>(urls: impl IntoIterator<Item = &'a str>) -> RedisResult<()> {
    for url in urls {
        if matches!(url.into_connection_info()?.addr(), ConnectionAddr::TcpTls { .. }) {
            return install_provider();
        }
    }
    Ok(())
}

/// The same choice as that of the TLS of this crate.
#[cfg(any(feature = "tls", feature = "tls-graviola"))]
fn install_provider() -> RedisResult<()> {
    #[cfg(feature = "tls")]
    let provider = rustls::crypto::ring::default_provider();
    #[cfg(not(feature = "tls"))]
    let provider = rustls_graviola::default_provider();
    if CryptoProvider::get_default().is_none() {
        // Another thread may have done it meanwhile.
        let _ = provider.install_default();
    }
    Ok(())
}

#[cfg(not(any(feature = "tls", feature = "tls-graviola")))]
fn install_provider() -> RedisResult<()> {
    #[cfg(feature = "rustls")]
    if CryptoProvider::get_default().is_some() {
        return Ok(());
    }
    let why = "no cryptography for rediss://: install a `CryptoProvider`, or use feature `tls`";
    Err(RedisError::from((ErrorKind::InvalidClientConfig, why)))
}

fn connected(client: &Client, reply: Duration) -> RedisResult<Connection> {
    let open = client.get_connection_with_timeout(TIME)?;
    open.set_read_timeout(Some(reply))?;
    open.set_write_timeout(Some(TIME))?;
    Ok(open)
}

/// Connects to the server that a Sentinel names. A Sentinel may be late: the server says itself
/// whether it is the primary.
fn primary(servers: &ConnectionInfo, name: &str, sentinel: &Client, reply: Duration) -> RedisResult<Connection> {
    let mut asked = connected(sentinel, TIME)?;
    let named: Option<(String, u16)> = cmd("SENTINEL").arg("GET-MASTER-ADDR-BY-NAME").arg(name).query(&mut asked)?;
    let unknown = |why| RedisError::from((ErrorKind::InvalidClientConfig, why));
    let (host, port) = named.ok_or_else(|| unknown("a Sentinel does not know the name"))?;
    let address = match servers.addr() {
        ConnectionAddr::TcpTls { insecure, tls_params, .. } => {
            ConnectionAddr::TcpTls { host, port, insecure: *insecure, tls_params: tls_params.clone() }
        }
        _ => ConnectionAddr::Tcp(host, port),
    };
    let mut open = connected(&Client::open(servers.clone().set_addr(address))?, reply)?;
    let role: Vec<Value> = cmd("ROLE").query(&mut open)?;
    let is_primary = matches!(role.first(), Some(Value::BulkString(role)) if role == b"master");
    if is_primary { Ok(open) } else { Err(unknown("a Sentinel names a replica")) }
}

impl Scripts {
    pub(super) fn new() -> Self {
        Self(Name::ALL.iter().map(|script| Script::new(script.text())).collect())
    }

    fn load(&self, connection: &mut Connection) -> RedisResult<()> {
        self.0.iter().try_for_each(|script| script.load(connection).map(drop))
    }

    /// Returns the command of a step. `whole`: with the text of its script.
    fn command(&self, command: &Command<'_>, whole: bool) -> Cmd {
        let call = match command {
            Command::Plain(command) => return command.clone(),
            Command::Script(call) => call,
        };
        let at = Name::ALL.iter().position(|script| *script == call.script).unwrap_or_default();
        let mut command = if whole { cmd("EVAL") } else { cmd("EVALSHA") };
        match whole {
            true => command.arg(call.script.text()),
            false => command.arg(self.0[at].get_hash()),
        };
        command.arg(call.keys.len()).arg(&call.keys);
        for arg in &call.args {
            command.arg(arg);
        }
        command
    }
}

impl Link {
    /// Returns the connection, for one command.
    pub(super) fn open(&mut self) -> &mut dyn ConnectionLike {
        match self {
            Self::One(open) => open,
            Self::Cluster(open) => &mut **open,
        }
    }

    /// Carries out commands in their order, and returns those of their results that are some. One
    /// server gets all at once, and its connection has an error or each of them has. A cluster gets
    /// one after another, since they are for several servers.
    pub(super) fn run(&mut self, steps: &[Step<'_>], scripts: &Scripts) -> RedisResult<Vec<RedisResult<Value>>> {
        let mut results = Results::default();
        match self {
            Self::One(_) if steps.is_empty() => {}
            Self::One(open) => {
                let mut pipeline = pipe();
                pipeline.ignore_errors();
                for step in steps {
                    pipeline.add_command(scripts.command(&step.command, false));
                }
                let mut returned: Vec<RedisResult<Value>> = pipeline.query(open)?;
                if returned.iter().any(is_unknown) {
                    // All of them once more, so that their order stays: each may run twice.
                    scripts.load(open)?;
                    returned = pipeline.query(open)?;
                }
                steps.iter().zip(returned).for_each(|(step, result)| results.add(step.role, result));
            }
            Self::Cluster(open) => {
                let mut late = Vec::new();
                for step in steps {
                    let is_lease = matches!(step.command, Command::Script(call) if call.script == Name::Node);
                    let result = match (results.before(step.role), late.last()) {
                        (Some(why), _) => Err(why),
                        (None, Some(why)) if late.len() >= TIMEOUTS && !is_lease => Err(RedisError::clone(why)),
                        (None, _) => on_cluster(open, step, scripts),
                    };
                    late.extend(result.as_ref().err().filter(|why| why.is_timeout()).cloned());
                    results.add(step.role, result);
                }
            }
        }
        Ok(results.wanted)
    }
}

/// Carries out a command on a cluster. A server that does not know the script gets all of it.
fn on_cluster(open: &mut ClusterConnection, step: &Step<'_>, scripts: &Scripts) -> RedisResult<Value> {
    let result = open.req_command(&scripts.command(&step.command, false));
    if is_unknown(&result) { open.req_command(&scripts.command(&step.command, true)) } else { result }
}

fn is_unknown(result: &RedisResult<Value>) -> bool {
    matches!(result, Err(why) if why.code() == Some("NOSCRIPT"))
}

#[derive(Default)]
struct Results {
    wanted: Vec<RedisResult<Value>>,
    /// The error of what came before the next one.
    failed: Option<RedisError>,
}

impl Results {
    /// Returns why a command is not to be carried out.
    fn before(&self, role: Role) -> Option<RedisError> {
        self.failed.clone().filter(|_| role == Role::Result)
    }

    fn add(&mut self, role: Role, result: RedisResult<Value>) {
        match (role, result) {
            (Role::Before, Err(why)) => self.failed = Some(why),
            (Role::Before, Ok(_)) | (Role::After, _) => {}
            (Role::Result, result) => self.wanted.push(self.failed.take().map_or(result, Err)),
        }
    }
}

/// Returns whether an error says that a server is a replica now.
pub(super) fn is_demoted(why: &RedisError) -> bool {
    why.code() == Some("READONLY")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed() -> RedisError {
        RedisError::from((ErrorKind::Io, "no reply"))
    }

    #[test]
    #[cfg_attr(
        any(feature = "tls", feature = "tls-graviola"),
        expect(clippy::disallowed_types, clippy::disallowed_methods, reason = "a server that ends connections")
    )]
    fn tls_has_cryptography_or_does_not_start() {
        assert_eq!(secure(["redis://127.0.0.1/", "unix:///a"]), Ok(()));
        let (tls, cluster) = (secure(["rediss://127.0.0.1/"]), secure(["redis://a/", "rediss://b/"]));
        #[cfg(any(feature = "tls", feature = "tls-graviola"))]
        {
            assert_eq!((tls, cluster), (Ok(()), Ok(())));
            assert!(CryptoProvider::get_default().is_some());
            // Its handshake fails, and does not panic.
            let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            let url = alloc::format!("rediss://{}/", listener.local_addr().unwrap());
            let server = std::thread::spawn(move || listener.accept().map(drop));
            assert!(Servers::one(&url).unwrap().connect(TIME).is_err());
            server.join().unwrap().unwrap();
        }
        #[cfg(not(any(feature = "tls", feature = "tls-graviola")))]
        {
            let is_clear = |why: RedisError| why.to_string().contains("CryptoProvider") == cfg!(feature = "rustls");
            assert!(tls.is_err_and(is_clear) && cluster.is_err_and(is_clear));
        }
        assert!(secure(["http://127.0.0.1/"]).is_err());
    }

    #[test]
    fn what_follows_a_failure_has_its_error_and_the_rest_does_not() {
        let mut results = Results::default();
        results.add(Role::Before, Err(failed()));
        assert!(results.before(Role::Result).is_some() && results.before(Role::After).is_none());
        results.add(Role::Result, Ok(Value::Int(1)));
        results.add(Role::After, Err(failed()));
        results.add(Role::Before, Ok(Value::Int(1)));
        results.add(Role::Result, Ok(Value::Int(2)));
        assert!(results.wanted[0].is_err() && results.wanted[1] == Ok(Value::Int(2)));
        assert_eq!(results.wanted.len(), 2);
    }
}
