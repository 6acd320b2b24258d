//! The lookup of a command on Windows.

use alloc::string::String;
use alloc::vec::Vec;
use std::path::{Path, PathBuf};

/// Finds the file that the shell of Windows would start for a command. A launcher such as `npx` is
/// a script there, `npx.cmd`, and the system itself finds only programs (`.exe`).
///
/// `dirs` are the directories of `PATH`. They are not used if the command is a path. An empty or
/// relative one is skipped: it would find a file in the current directory, which others may be able
/// to write to. `extensions` is `PATHEXT`, if set. `is_file` is called for each candidate, in
/// order. A file without one of the extensions is not a candidate, since `npx.cmd` has a sibling
/// `npx` for other systems. Returns `None` if there is no such file. The caller may then leave the
/// lookup to the system.
pub fn find_launcher(
    command: &str,
    dirs: impl IntoIterator<Item = PathBuf>,
    extensions: Option<&str>,
    is_file: impl Fn(&Path) -> bool,
) -> Option<PathBuf> {
    // Files that the system can start, by itself or with its command interpreter. `PATHEXT` orders
    // them and may omit some.
    const STARTABLE: [&str; 4] = [".com", ".exe", ".bat", ".cmd"];
    let listed: Vec<String> = extensions.map_or_else(Vec::new, |listed| {
        listed.split(';').map(str::to_ascii_lowercase).filter(|one| STARTABLE.contains(&one.as_str())).collect()
    });
    let listed = if listed.is_empty() { STARTABLE.map(String::from).to_vec() } else { listed };
    let small = command.to_ascii_lowercase();
    let whole = listed.iter().any(|extension| small.ends_with(extension.as_str()));
    let endings = whole.then_some("").into_iter().chain(listed.iter().map(String::as_str));
    let names: Vec<String> = endings.map(|ending| alloc::format!("{command}{ending}")).collect();
    let is_path = command.contains(['/', '\\', ':']);
    let listed = dirs.into_iter().filter(|dir| !is_path && dir.is_absolute());
    let dirs = is_path.then(PathBuf::new).into_iter().chain(listed);
    dirs.flat_map(|dir| names.iter().map(move |name| dir.join(name)).collect::<Vec<_>>()).find(|file| is_file(file))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where absolute paths begin.
    const ROOT: &str = if cfg!(windows) { "C:\\" } else { "/" };

    // covers: B-146
    #[test]
    fn relative_directories_are_not_searched_for_a_launcher() {
        let found = |dirs: &[&str]| find_launcher("npx", dirs.iter().map(PathBuf::from), None, |_| true);
        for dir in ["", ".", "..", "bin", "./bin", "node_modules/.bin"] {
            assert_eq!(found(&[dir]), None, "{dir:?}");
            let kept = Path::new(ROOT).join("node");
            assert_eq!(found(&[dir, kept.to_str().expect("unicode")]), Some(kept.join("npx.com")), "{dir:?}");
        }
    }

    // covers: B-146
    #[test]
    fn launcher_lookup_matches_the_windows_shell() {
        let found = |command: &str, extensions: Option<&str>, files: &[&str]| {
            let dirs = ["system", "node", "tools"].map(|dir| Path::new(ROOT).join(dir));
            let below = |file: &Path| file.strip_prefix(ROOT).unwrap_or(file).to_string_lossy().replace('\\', "/");
            let file = find_launcher(command, dirs, extensions, |file| {
                files.iter().any(|known| below(file).eq_ignore_ascii_case(known))
            });
            file.map(|file| below(&file).to_lowercase())
        };
        let node = ["node/npx", "node/npx.cmd", "node/node.exe", "tools/npx.exe", "tools/run.js", "tools/x.y.bat"];
        let usual = Some(".COM;.EXE;.BAT;.CMD;.VBS;.JS");
        assert_eq!(found("npx", usual, &node).as_deref(), Some("node/npx.cmd"), "the first folder wins");
        assert_eq!(found("npx", Some(".exe"), &node).as_deref(), Some("tools/npx.exe"), "only what is listed");
        assert_eq!(found("NPX.CMD", None, &node).as_deref(), Some("node/npx.cmd"), "an extension may be given");
        assert_eq!(found("node", Some(""), &node).as_deref(), Some("node/node.exe"), "without a list");
        assert_eq!(found("x.y", usual, &node).as_deref(), Some("tools/x.y.bat"), "another dot is no extension");
        assert_eq!(found("run", usual, &node), None, "the system cannot start it");
        assert_eq!(found("uvx", usual, &node), None);
        let order = ["node/a.cmd", "node/a.exe", "system/a"];
        assert_eq!(found("a", Some(".CMD;.EXE"), &order).as_deref(), Some("node/a.cmd"), "in the order of the list");
        for path in ["tools/npx", "./npx", "c:npx"] {
            assert_eq!(found(path, usual, &["node/npx.exe", "tools/tools/npx.exe"]), None, "{path}");
        }
        assert_eq!(found("tools/npx", usual, &node).as_deref(), Some("tools/npx.exe"));
    }
}
