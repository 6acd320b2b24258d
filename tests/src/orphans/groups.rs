//! The cases, grouped by how the host ends, with the number of processes that may remain.

use super::{Adapter, Case, Found, Kind, Signalled};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Number of hosts that run at once.
const AT_ONCE: usize = 8;

/// Cases of one kind.
pub struct Group {
    /// How the hosts end.
    pub name: &'static str,
    /// The cases.
    pub cases: Vec<Case>,
    /// Returns the number of processes that remain after a case.
    pub stays: fn(&Case) -> usize,
}

impl Group {
    /// Runs its cases, a few at a time. `host` and `child` are the two programs.
    ///
    /// # Errors
    /// The fault of each case.
    pub fn run(&self, host: &Path, child: &Path) -> Vec<(Case, Result<Found, String>)> {
        let run = |case: &Case| {
            let stays = (self.stays)(case);
            let found = case.run(host, child, stays)?;
            match found.left == stays && found.unreaped == 0 && found.started > 0 {
                true => Ok(found),
                false => Err(format!("{stays} were to be left: {found:?}")),
            }
        };
        let next = AtomicUsize::new(0);
        let work = || {
            let take = || self.cases.get(next.fetch_add(1, Ordering::Relaxed));
            std::iter::from_fn(take).map(|case| (*case, run(case))).collect::<Vec<_>>()
        };
        thread::scope(|scope| {
            let workers: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(work)).collect();
            workers.into_iter().flat_map(|worker| worker.join().expect("no case panics")).collect()
        })
    }
}

/// The started programs: names, and arguments of `misbehaving`.
const CHILDREN: [Kind; 8] = [
    kind("well-behaved", &[]),
    kind("ignores end of input", &["--ignore-eof"]),
    kind("ignores SIGTERM too", &["--ignore-eof", "--ignore-term"]),
    kind("grandchild holds the pipe", &["--grandchild"]),
    kind("stubborn, with a grandchild", &["--grandchild", "--ignore-eof", "--ignore-term"]),
    kind("forks and exits", &["--fork", "--ignore-eof", "--ignore-term"]),
    kind("forks twice and exits", &["--double-fork", "--ignore-eof", "--ignore-term"]),
    Kind { name: "stubborn, behind a shell", args: &["--ignore-eof", "--ignore-term"], shell: true },
];

/// Programs that never complete a connection.
const UNWILLING: [Kind; 6] = [
    kind("exits at once", &["--exit", "no such file"]),
    kind("agrees on no revision", &["--no-version", "--ignore-eof", "--ignore-term"]),
    kind("says nothing", &["--mute"]),
    kind("says nothing, stubborn", &["--mute", "--ignore-eof", "--ignore-term"]),
    kind("says nothing, with a grandchild", &["--mute", "--grandchild", "--ignore-term"]),
    Kind { name: "says nothing, behind a shell", args: &["--mute", "--ignore-eof", "--ignore-term"], shell: true },
];

const BOTH: [Adapter; 2] = [Adapter::BLOCKING, Adapter::SMOL];

const fn kind(name: &'static str, args: &'static [&'static str]) -> Kind {
    Kind { name, args, shell: false }
}

/// Returns all groups.
pub fn groups() -> Vec<Group> {
    let group = |name, cases: Vec<Case>, stays| Group { name, cases, stays };
    // For the living hosts, zombies count as well.
    let living = |end, adapters: &[Adapter]| with(&["--stay"], None, cases(adapters, end, &CHILDREN));
    let deadly = &CHILDREN[..4];
    let interrupted = |flags| with(flags, Some(Signalled::Interrupt), cases(&BOTH, "wait", deadly));
    vec![
        group("return", cases(&Adapter::ALL, "return", &CHILDREN), nothing),
        group("return, Ctrl-C forwarded", with(&["--forward"], None, cases(&BOTH, "return", deadly)), nothing),
        group("error", cases(&Adapter::ALL, "error", &CHILDREN), nothing),
        group("panic", cases(&Adapter::ALL, "panic", &CHILDREN), nothing),
        group("close", [living("close", &Adapter::ALL), living("close-waiting", &BOTH)].concat(), nothing),
        group("drop while a call waits", living("drop-waiting", &BOTH), nothing),
        group("drop of the driver", living("driver", &[Adapter::SMOL]), nothing),
        group("drop of the runtime", living("runtime", &[Adapter::SMOL]), nothing),
        group(
            "failed connection",
            with(
                &["--stay"],
                None,
                [
                    cases(&[Adapter::BLOCKING, Adapter::Loop], "return", &UNWILLING),
                    cases(&[Adapter::SMOL], "handshake", &UNWILLING),
                ]
                .concat(),
            ),
            nothing,
        ),
        group(
            "dropped while connecting",
            with(&["--stay"], None, cases(&[Adapter::SMOL], "abandon", &UNWILLING[2..])),
            nothing,
        ),
        group("SIGKILL", with(&[], Some(Signalled::Kill), cases(&BOTH, "wait", deadly)), heedless),
        group("exit", cases(&BOTH, "exit", deadly), heedless),
        group("return while a thread waits", cases(&[Adapter::BLOCKING], "return-waiting", deadly), heedless),
        group("Ctrl-C", interrupted(&[]), heedless),
        group("Ctrl-C, one group", interrupted(&["--inherit"]), nothing),
        group("Ctrl-C, forwarded", interrupted(&["--forward"]), nothing),
        group("close, one group", with(&["--inherit"], None, cases(&BOTH, "close", deadly)), grandchildren),
    ]
}

fn cases(adapters: &[Adapter], end: &'static str, children: &[Kind]) -> Vec<Case> {
    let of = |adapter: &Adapter| children.iter().map(move |child| (*adapter, *child)).collect::<Vec<_>>();
    let case = |(adapter, child)| Case { adapter, child, end, flags: &[], signal: None };
    adapters.iter().flat_map(of).map(case).collect()
}

fn with(flags: &'static [&'static str], signal: Option<Signalled>, cases: Vec<Case>) -> Vec<Case> {
    cases.into_iter().map(|case| Case { flags, signal, ..case }).collect()
}

fn nothing(_: &Case) -> usize {
    0
}

/// The host cannot act any more. Its children see the end of their input: those that ignore it
/// remain.
fn heedless(case: &Case) -> usize {
    usize::from(!case.child.args.is_empty())
}

/// In the group of the host, only the program itself is ended.
fn grandchildren(case: &Case) -> usize {
    usize::from(case.child.args.contains(&"--grandchild"))
}
