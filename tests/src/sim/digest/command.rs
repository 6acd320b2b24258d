//! `replay --digest`.

use super::{Digest, SHARE, World, fleets, record, replay_share, show};
use std::io;
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How the command is used.
pub const USAGE: &str = "usage: replay --digest FOLDER [--record | --show WORLD SEED | --diff WORLD SEED]";

/// The hashes of the commit that recorded the inputs. Its first line, a comment, names that commit.
pub const EXPECTED: &str = include_str!("../../../digests.txt");

/// The name of the program that recorded, in the folder of the inputs.
const RECORDER: &str = "recorder";

/// Runs the command, and returns whether everything is as it was.
///
/// # Errors
/// The arguments are wrong, or a file cannot be read or written.
pub fn run(args: &[String]) -> io::Result<bool> {
    let wrong = || io::Error::new(io::ErrorKind::InvalidInput, USAGE);
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let one = |world: &str, seed: &str| {
        let world = World::ALL.into_iter().find(|(known, _)| known.name() == world).map(|(known, _)| known);
        world.zip(seed.parse().ok().filter(|seed| *seed > 0)).ok_or_else(wrong)
    };
    match args[..] {
        [folder] => check(Path::new(folder)),
        [folder, "--record"] => record_all(Path::new(folder)),
        [folder, "--show", world, seed] => {
            let (world, seed) = one(world, seed)?;
            show(world, seed, Path::new(folder), &mut io::stdout().lock()).map(|()| true)
        }
        [folder, "--diff", world, seed] => {
            let (world, seed) = one(world, seed)?;
            diff(world, seed, Path::new(folder))
        }
        _ => Err(wrong()),
    }
}

/// All shares, each with what `each` makes of it, on all cores.
fn shares<T: Send>(each: impl Fn(World, u64) -> io::Result<T> + Sync) -> io::Result<Vec<T>> {
    let shares = |(world, seeds): (World, u64)| (0..seeds / SHARE).map(move |n| (world, n * SHARE + 1));
    let shares: Vec<_> = World::ALL.into_iter().flat_map(shares).collect();
    let (next, results) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some((world, first)) = shares.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let result = each(*world, *first);
                    results.lock().expect("no panic while it is held").push(((world.name(), *first), result));
                }
            });
        }
    });
    let mut results = results.into_inner().expect("as above");
    let place = |name: &str, first: u64| shares.iter().position(|(world, n)| (world.name(), *n) == (name, first));
    results.sort_by_key(|((name, first), _)| place(name, *first));
    results.into_iter().map(|(_, result)| result).collect()
}

fn record_all(folder: &Path) -> io::Result<bool> {
    shares(|world, first| record(world, first, folder))?;
    std::fs::copy(std::env::current_exe()?, folder.join(RECORDER))?;
    for digest in shares(|world, first| replay_share(world, first, folder))? {
        println!("{digest}");
    }
    println!("{}", fleets()?);
    Ok(true)
}

/// Prints the hashes that are not the committed ones.
fn check(folder: &Path) -> io::Result<bool> {
    let expected: Vec<&str> = EXPECTED.lines().filter(|line| !line.starts_with('#')).collect();
    let mut digests = shares(|world, first| replay_share(world, first, folder))?;
    digests.push(fleets()?);
    let differ: Vec<&Digest> =
        digests.iter().filter(|digest| !expected.contains(&digest.to_string().as_str())).collect();
    for digest in &differ {
        println!("{digest} was expected to be another hash");
    }
    println!("{} passed, {} failed", digests.len() - differ.len(), differ.len());
    Ok(differ.is_empty() && digests.len() == expected.len())
}

/// Prints the first line that differs between the engines of this build and those of the recording
/// build, with the lines before it.
fn diff(world: World, seed: u64, folder: &Path) -> io::Result<bool> {
    let mut now = Vec::new();
    show(world, seed, folder, &mut now)?;
    let recorder = folder.join(RECORDER);
    let before = Command::new(recorder)
        .args(["replay".as_ref(), "--digest".as_ref(), folder.as_os_str(), "--show".as_ref(), world.name().as_ref()])
        .arg(seed.to_string())
        .output()?
        .stdout;
    let (before, now) = (String::from_utf8_lossy(&before), String::from_utf8_lossy(&now));
    let (mut before, mut now) = (before.lines(), now.lines());
    let mut last = Vec::new();
    loop {
        match (before.next(), now.next()) {
            (None, None) => return Ok(true),
            (one, other) if one == other => last.extend(one),
            (one, other) => {
                let context = last.len().saturating_sub(10);
                last[context..].iter().for_each(|line| println!("  {line}"));
                println!("- {}\n+ {}", one.unwrap_or("the end"), other.unwrap_or("the end"));
                return Ok(false);
            }
        }
    }
}
