use super::*;
use crate::skills::read_skill;
use alloc::string::ToString;
use alloc::sync::Arc;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use mcp_proto::skills::ServedSkill;
use std::fs;

const TEXT: &str = "---\nname: refunds\ndescription: d\n---\n";

/// A directory that is removed again.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static LAST: AtomicU32 = AtomicU32::new(0);
        let number = LAST.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(alloc::format!("mcp-skill-{}-{number}", std::process::id()));
        let folder = Self(path);
        fs::create_dir_all(folder.at("skill")).expect("created");
        folder.write("skill/SKILL.md", TEXT);
        folder
    }

    fn at(&self, path: &str) -> PathBuf {
        self.0.join(path)
    }

    fn write(&self, path: &str, bytes: impl AsRef<[u8]>) {
        let path = self.at(path);
        fs::create_dir_all(path.parent().expect("one")).expect("created");
        fs::write(path, bytes).expect("written");
    }

    fn read(&self) -> Result<ServedSkill, SkillFolderError> {
        read_skill("refunds", self.at("skill"))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

fn uris(skill: &ServedSkill) -> Vec<&str> {
    skill.entry().files().iter().map(|file| file.uri.as_str()).collect()
}

// covers: SKILL-S-009, SKILL-S-010
#[test]
fn directory_becomes_a_skill_with_all_its_files() {
    let folder = Folder::new();
    folder.write("skill/forms/a b.md", "x");
    folder.write("skill/forms/deep/logo.png", b"\0\xff");
    folder.write("skill/.git/config", "secret");
    folder.write("skill/.env", "secret");
    let skill = folder.read().expect("a skill");
    let expected =
        ["skill://refunds/SKILL.md", "skill://refunds/forms/a%20b.md", "skill://refunds/forms/deep/logo.png"];
    assert_eq!(uris(&skill), expected);
    // What was read stays what it is.
    folder.write("skill/forms/a b.md", "y");
    let y = folder.read().expect("a skill");
    assert_ne!(y.entry().files()[1].digest, skill.entry().files()[1].digest);
    fs::remove_file(folder.at("skill/SKILL.md")).expect("removed");
    assert!(matches!(folder.read(), Err(SkillFolderError::Skill(_))));
    assert!(matches!(read_skill("refunds", folder.at("none")), Err(SkillFolderError::Io { .. })));
    assert!(matches!(read_skill("refunds", folder.at("skill/.env")), Err(SkillFolderError::NoFile(_))));
}

// covers: SKILL-C-012
#[test]
fn directory_that_is_too_large_is_refused() {
    let folder = Folder::new();
    for n in 1..MAX_FILES {
        folder.write(&alloc::format!("skill/d{}/{n}", n % 7), "");
    }
    assert_eq!(folder.read().expect("as many as there may be").entry().files().len(), MAX_FILES);
    folder.write("skill/more", "");
    assert!(matches!(folder.read(), Err(SkillFolderError::TooLarge(_))));
    let folder = Folder::new();
    // A file without blocks: the limit counts what would be read.
    let sparse = File::create(folder.at("skill/big")).expect("created");
    sparse.set_len(MAX_BYTES).expect("grown");
    assert!(matches!(folder.read(), Err(SkillFolderError::TooLarge(_))));
    sparse.set_len(MAX_BYTES - TEXT.len() as u64).expect("shrunk");
    assert!(folder.read().is_ok());
    let folder = Folder::new();
    folder.write(&alloc::format!("skill/{}x", "d/".repeat(30)), "");
    assert!(matches!(folder.read(), Err(SkillFolderError::TooLarge(_))));
}

#[cfg(unix)]
mod links {
    use super::*;
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;
    use std::thread;

    const SECRET: &str = "the secret of another user";

    // covers: SKILL-S-009
    #[test]
    fn link_pipe_or_socket_is_no_file() {
        let folder = Folder::new();
        folder.write("secret", SECRET);
        fs::create_dir(folder.at("outside")).expect("created");
        let refused = |place: &str| {
            let found = folder.read();
            assert!(
                matches!(&found, Err(SkillFolderError::NoFile(path)) if *path == folder.at(place)),
                "{place}: {found:?}"
            );
            fs::remove_file(folder.at(place)).expect("removed");
        };
        for (target, link) in [
            ("../secret", "skill/a"),
            ("../outside", "skill/b"),
            ("SKILL.md", "skill/c"),
            ("none", "skill/d"),
            ("/", "skill/e"),
        ] {
            symlink(target, folder.at(link)).expect("linked");
            refused(link);
        }
        drop(UnixListener::bind(folder.at("skill/s")).expect("bound"));
        refused("skill/s");
        let pipe = folder.at("skill/p");
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RUSR).expect("made");
        refused("skill/p");
        symlink("skill", folder.at("link")).expect("linked");
        assert!(matches!(read_skill("refunds", folder.at("link")), Err(SkillFolderError::NoFile(_))));
        assert!(folder.read().is_ok());
    }

    // covers: SKILL-S-009
    #[test]
    fn name_that_hides_another_is_refused() {
        for name in ["a\\b", "c:d"] {
            let folder = Folder::new();
            folder.write(&alloc::format!("skill/{name}"), "");
            assert!(matches!(folder.read(), Err(SkillFolderError::Skill(_))), "{name}");
        }
        let folder = Folder::new();
        folder.write("skill/%2e%2e/%2fetc", "");
        assert_eq!(uris(&folder.read().expect("plain names"))[0], "skill://refunds/%252e%252e/%252fetc");
    }

    /// Exchanges a file and a directory for links to secrets, again and again, while they are read.
    // covers: SKILL-S-009
    #[test]
    fn exchanged_link_is_never_followed() {
        let folder = Arc::new(Folder::new());
        folder.write("secret", SECRET);
        folder.write("vault/key", SECRET);
        folder.write("skill/file", "honest");
        folder.write("skill/dir/key", "honest");
        let ends = Arc::new(AtomicBool::new(false));
        let exchange = {
            let (folder, ends) = (Arc::clone(&folder), Arc::clone(&ends));
            thread::spawn(move || {
                let mut rounds = 0_u32;
                while !ends.load(Ordering::Relaxed) {
                    // A rename replaces the file at once: there is always one.
                    symlink("../secret", folder.at("skill-link")).expect("linked");
                    fs::rename(folder.at("skill-link"), folder.at("skill/file")).expect("exchanged");
                    fs::rename(folder.at("skill/dir"), folder.at("dir")).expect("moved");
                    symlink("../vault", folder.at("skill/dir")).expect("linked");
                    folder.write("new", "honest");
                    fs::rename(folder.at("new"), folder.at("skill/file")).expect("exchanged");
                    fs::remove_file(folder.at("skill/dir")).expect("removed");
                    fs::rename(folder.at("dir"), folder.at("skill/dir")).expect("moved");
                    rounds += 1;
                }
                rounds
            })
        };
        let (mut read, mut refused) = (0, 0);
        let until = std::time::Instant::now() + core::time::Duration::from_secs(20);
        while (read < 50 || refused < 50) && std::time::Instant::now() < until {
            match skill_files(&folder.at("skill")) {
                Ok(files) => {
                    read += 1;
                    for (name, bytes) in files {
                        assert_ne!(String::from_utf8(bytes).expect("text"), SECRET, "{name}");
                    }
                }
                Err(SkillFolderError::NoFile(_)) => refused += 1,
                Err(e) => assert!(matches!(e, SkillFolderError::Io { .. }), "{}", e.to_string()),
            }
        }
        ends.store(true, Ordering::Relaxed);
        assert!(exchange.join().expect("no panic") > 0 && read >= 50 && refused >= 50, "{read} {refused}");
    }
}
