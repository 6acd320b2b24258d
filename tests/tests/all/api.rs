//! `tests/api` keeps the public API: the difference of a commit shows every change of it.

use std::collections::BTreeSet;
use std::{env, fs};

use mcp_tests::{api, sources};

/// Rewrites the kept files.
const UPDATE: &str = "UPDATE=1 cargo test -p mcp-tests --test all api::";

#[test]
fn public_api_is_the_kept_one() {
    let mut found = String::new();
    for name in ["mcp-proto", "mcp-driver", "mcp-supervisor", "mcp-smol", "mcp-blocking"] {
        let path = sources::root().join(format!("tests/api/{name}.txt"));
        let now = api::api(name);
        assert!(now.lines().count() > 20, "{name}: nothing was read");
        if env::var_os("UPDATE").is_some() {
            fs::write(&path, &now).expect("a kept file can be written");
        }
        let kept = fs::read_to_string(&path).unwrap_or_default();
        let (kept, now): (BTreeSet<_>, BTreeSet<_>) = (kept.lines().collect(), now.lines().collect());
        found.extend(kept.difference(&now).map(|line| format!("- {line}\n")));
        found.extend(now.difference(&kept).map(|line| format!("+ {line}\n")));
    }
    assert!(found.is_empty(), "the public API has changed:\n{found}If that is meant: {UPDATE}");
}

/// Names that only one adapter has, with the reason.
const OF_ONE: &[(&str, &str)] = &[
    ("connect_driven", "the driver of mcp-smol is a future, which the application may spawn anywhere"),
    ("Driver", "what `connect_driven` returns"),
    ("Client::ready", "waits for the negotiation of a client of `connect_driven`"),
    ("Elements::all", "an iterator has `collect`"),
    ("Elements::next", "an iterator has it without a definition"),
    ("Elements::poll_next", "for streams of futures"),
    ("Connecting::wait", "mcp-smol awaits it"),
    ("PendingCall::wait", "mcp-smol awaits it"),
    ("PendingCall::wait_timeout", "a future is raced with a timer"),
    ("PendingNotification::wait", "mcp-smol awaits it"),
    ("PendingNotification::wait_timeout", "a future is raced with a timer"),
    ("supervise_on", "mcp-blocking has no executor"),
    ("OnExecutor", "the parameter of the supervisor, which is a private type of mcp-blocking"),
    ("ClientTask", "a type of `OnExecutor`"),
    ("Supervisor::start<C: IntoCall>", "a call is a future, which a thread that blocks cannot pass on"),
];

/// What the fronts have for adapters and for each other, and not for applications.
const FOR_ADAPTERS: &[&str] = &[
    "Client::begin",
    "Client::begin_close",
    "Client::cancel_run",
    "Client::end_time",
    "Client::max_inputs",
    "Client::open_timeout",
    "Client::run",
    "Client::set_on_drop",
    "Client::unset_on_drop",
    "Closer::begin_exit",
    "Closer::end_time",
    "Closer::ended",
    "Supervisor::begin",
    "Supervisor::client_and_driver",
];

/// The types of the front that mcp-smol exports as they are.
const OF_THE_FRONT: &[&str] = &["Client", "Closer", "Elements", "PendingCall", "PendingNotification", "Supervisor"];

#[test]
fn both_adapters_have_the_same_names_with_the_same_arguments() {
    let (smol, blocking) = (surface("mcp-smol", "mcp_smol"), surface("mcp-blocking", "mcp_blocking"));
    assert!(smol.len() > 100, "{smol:?}");
    let excepted = |line: &&String| OF_ONE.iter().any(|(name, _)| line.split('(').next() == Some(name));
    let of_one: Vec<_> = smol.symmetric_difference(&blocking).filter(|line| !excepted(line)).collect();
    assert!(of_one.is_empty(), "only in one adapter: {of_one:#?}");
    for (name, why) in OF_ONE {
        let has = |surface: &BTreeSet<String>| surface.iter().any(|line| line.split('(').next() == Some(name));
        assert!(has(&smol) != has(&blocking), "{name}, an exception since {why}, is in both or in none");
    }
}

/// Returns the names and the functions with their arguments that an adapter has.
fn surface(package: &str, crate_name: &str) -> BTreeSet<String> {
    let (own, front) = (api::api(package), api::api("mcp-driver") + &api::api("mcp-supervisor"));
    let structs = own.lines().filter_map(|line| line.split_once("pub struct ")?.1.split(['<', '(']).next());
    let structs: BTreeSet<&str> = structs.collect();
    let of_the_front = |ty: &str| OF_THE_FRONT.contains(&ty) && !structs.contains(ty);
    let front = front
        .lines()
        .filter_map(|line| line.strip_prefix("mcp_driver::").or_else(|| line.strip_prefix("mcp_supervisor::front::")));
    let front = front.filter(|line| line.split_once(": ").is_some_and(|(ty, _)| of_the_front(ty)));
    let own = own.lines().filter_map(|line| line.strip_prefix(crate_name));
    let found = own.map(|line| line.trim_start_matches("::").trim_start_matches(": ")).chain(front);
    found.filter_map(item).filter(|item| !FOR_ADAPTERS.contains(&item.split('(').next().unwrap_or(item))).collect()
}

/// Returns `Type::function(arguments)` or a name, without what `async` and the traits of streams
/// and addresses make different.
fn item(line: &str) -> Option<String> {
    // Behind it, the header of the `impl`.
    let line = line.split(" [impl").next()?;
    let (ty, definition) = match line.split_once(": pub ") {
        Some((ty, definition)) => (format!("{ty}::"), definition),
        None => (String::new(), line.strip_prefix("pub ")?),
    };
    if let Some(function) = definition.trim_start_matches("async ").strip_prefix("fn ") {
        let arguments = function.find(") -> ").map_or(function, |at| &function[..=at]);
        let arguments = arguments.rfind(')').map_or(arguments, |at| &arguments[..=at]);
        let same = arguments.replace("AsyncToSocketAddrs", "ToSocketAddrs").replace(" + Unpin", "");
        return Some(format!("{ty}{}", same.replace("AsyncRead", "Read").replace("AsyncWrite", "Write")));
    }
    let (kind, name) = definition.split_once(' ')?;
    match kind {
        "use" => name.rsplit([':', ' ']).next().map(str::to_string),
        "struct" | "type" => name.split(['<', '(', ' ']).next().map(str::to_string),
        _ => None,
    }
}
