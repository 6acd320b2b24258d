use super::super::store::tests::{check_leases, check_race, check_store, key, record};
use super::*;
use alloc::string::ToString;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU32, Ordering};
use std::env;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

/// A folder of one test, which it removes.
struct TestFolder(PathBuf);

impl TestFolder {
    fn new() -> Self {
        static LAST: AtomicU32 = AtomicU32::new(0);
        let number = LAST.fetch_add(1, Ordering::Relaxed);
        let folder = env::temp_dir().join(format!("mcp-logins-{}-{number}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        Self(folder)
    }

    fn store(&self) -> FileStore {
        FileStore::at(&self.0)
    }

    fn names(&self) -> Vec<String> {
        let names = fs::read_dir(&self.0).expect("a folder").map(|file| file.expect("a file").file_name());
        let mut names: Vec<String> = names.map(|name| name.into_string().expect("text")).collect();
        names.sort();
        names
    }

    /// Returns the file of a record.
    fn file(&self) -> PathBuf {
        self.0.join(file_name(&key("")))
    }

    fn save(&self) -> Version {
        self.store().save(&key(""), Version::ABSENT, Some(&record("https://one.example"))).expect("saved")
    }
}

impl Drop for TestFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

// covers: B-243
#[test]
fn record_in_a_file_is_replaced_if_it_has_the_expected_version() {
    let folder = TestFolder::new();
    check_store(&folder.store(), &folder.store());
    let stores = [folder.store(), folder.store(), folder.store(), folder.store()];
    check_race(&[&stores[0], &stores[1], &stores[2], &stores[3]]);
}

#[test]
fn lease_in_a_file_is_held_once_and_released_by_drop() {
    let folder = TestFolder::new();
    check_leases(&folder.store(), &folder.store());
}

/// The variable that names the folder to the child process of a test.
const CHILD: &str = "MCP_TEST_LEASE_OF";

// covers: B-243
#[test]
fn lease_ends_with_its_process() {
    if let Some(folder) = env::var_os(CHILD) {
        let _lease = FileStore::at(folder).lease(&key(""), Purpose::Login).expect("no fault").expect("free");
        println!("held");
        // Until it is killed.
        std::io::stdin().read_to_end(&mut Vec::new()).ok();
        return;
    }
    let folder = TestFolder::new();
    let mut child = Command::new(env::current_exe().expect("a path"))
        .args(["--exact", "login::file_store::tests::lease_ends_with_its_process", "--nocapture"])
        .env(CHILD, &folder.0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("a process");
    let output = BufReader::new(child.stdout.take().expect("piped"));
    let held = output.lines().map_while(Result::ok).any(|line| line.contains("held"));
    let take = || folder.store().lease(&key(""), Purpose::Login).expect("no fault");
    let is_held = take().is_none();
    child.kill().expect("killed");
    child.wait().expect("ended");
    assert!(held && is_held, "{held}, {is_held}");
    assert!(take().is_some());
}

#[test]
fn file_is_named_by_a_hash_of_server_and_account() {
    let folder = TestFolder::new();
    folder.save();
    let name = file_name(&key(""));
    assert!(name.len() == 32 && name.bytes().all(|byte| byte.is_ascii_hexdigit()), "{name}");
    assert_ne!(name, file_name(&key("another")));
    assert_eq!(folder.names(), [name.clone(), format!("{name}.write")]);
    drop(folder.store().lease(&key(""), Purpose::Login));
    drop(folder.store().lease(&key(""), Purpose::Change));
    assert_eq!(folder.names(), [&*name, &format!("{name}.lock"), &format!("{name}.login"), &format!("{name}.write")]);
}

#[test]
fn content_that_is_no_record_is_refused_and_left_alone() {
    let folder = TestFolder::new();
    let version = folder.save();
    let good = fs::read(folder.file()).expect("read");
    let half = &good[..good.len() / 2];
    let newer: &[u8] = br#"{"version":2,"logins":[]}"#;
    let long = [b" ".repeat(MAX_RECORD), good.clone()].concat();
    for (content, why) in [(half, "rm "), (b"", "rm "), (newer, "format 2"), (&*long, "too long")] {
        fs::write(folder.file(), content).expect("written");
        let told = folder.store().load(&key("")).expect_err("refused").to_string();
        assert!(told.contains(why) && told.contains(&folder.file().display().to_string()), "{told}");
        for (expected, new) in [(version, None), (Version::of(content), Some(record("https://two.example")))] {
            let saved = folder.store().save(&key(""), expected, new.as_ref());
            assert!(matches!(saved, Err(SaveFault::Fault(_))), "{saved:?}");
        }
        assert!(fs::read(folder.file()).expect("read") == content);
    }
}

#[test]
fn new_file_that_a_process_left_is_no_record() {
    let folder = TestFolder::new();
    let version = folder.save();
    let new = folder.0.join(format!("{}.new", file_name(&key(""))));
    fs::write(&new, b"{\"vers").expect("written");
    assert_eq!(folder.store().load(&key("")).expect("loaded").version, version);
    let saved = folder.store().save(&key(""), version, Some(&record("https://two.example"))).expect("saved");
    assert!(!new.exists() && folder.store().load(&key("")).expect("loaded").version == saved);
}

#[test]
fn program_has_a_folder_of_its_own() {
    for (program, name) in [
        ("my-app_1.0", "my-app_1.0"),
        ("a b/c\\d", "a_b_c_d"),
        ("../../x", "_.._x"),
        ("..", "program"),
        ("", "program"),
        ("\u{e9}", "_"),
    ] {
        assert_eq!(sanitized(program), name);
    }
    assert_eq!(sanitized(&"x".repeat(1000)).len(), 64);
}

#[cfg(all(unix, not(target_vendor = "apple")))]
#[test]
fn folder_of_a_user_follows_the_environment() {
    let folder = |variables: &[(&str, &str)]| {
        user_folder(|name| variables.iter().find(|(known, _)| *known == name).map(|(_, path)| PathBuf::from(path)))
    };
    assert_eq!(folder(&[("HOME", "/home/u")]), Ok("/home/u/.local/state".into()));
    assert_eq!(folder(&[("HOME", "/home/u"), ("XDG_STATE_HOME", "/state")]), Ok("/state".into()));
    let told = folder(&[]).expect_err("no folder").to_string();
    assert_eq!(told, "the environment variable HOME is no absolute path");
}

#[cfg(unix)]
mod unix {
    use super::*;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

    fn mode(path: &Path) -> u32 {
        fs::symlink_metadata(path).expect("a file").mode() & 0o7777
    }

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("its owner may");
    }

    /// Returns the errors of everything that a store does.
    fn faults(store: &FileStore) -> Vec<String> {
        let loaded = store.load(&key("")).map(drop);
        let saved = store.save(&key(""), Version::ABSENT, Some(&record("https://two.example"))).map(drop);
        let saved = saved.map_err(|why| match why {
            SaveFault::Fault(why) => why,
            SaveFault::Conflict(found) => panic!("{found:?}"),
        });
        [loaded, saved].into_iter().map(|done| done.expect_err("refused").to_string()).collect()
    }

    // covers: AUTHG-B-008, AUTHS-C-017
    #[test]
    fn only_the_owner_can_read_a_login() {
        let folder = TestFolder::new();
        folder.save();
        drop(folder.store().lease(&key(""), Purpose::Login));
        assert_eq!(mode(&folder.0), 0o700);
        for name in folder.names() {
            assert_eq!(mode(&folder.0.join(&name)), 0o600, "{name}");
        }
    }

    // covers: AUTHS-C-017
    #[test]
    fn what_others_can_read_is_refused_with_a_command_for_repair() {
        let folder = TestFolder::new();
        let version = folder.save();
        for (path, private, open, command) in [
            (folder.file(), 0o600, 0o640, "chmod 600 "),
            (folder.file(), 0o600, 0o602, "chmod 600 "),
            (folder.0.clone(), 0o700, 0o750, "chmod 700 "),
            (folder.0.clone(), 0o700, 0o701, "chmod 700 "),
        ] {
            set_mode(&path, open);
            let wanted = format!("{command}{}", path.display());
            faults(&folder.store()).iter().for_each(|told| assert!(told.contains(&wanted), "{told}"));
            assert_eq!(mode(&path), open, "it is left alone");
            set_mode(&path, private);
        }
        assert_eq!(folder.store().load(&key("")).expect("repaired").version, version);
        let lock = folder.0.join(format!("{}.login", file_name(&key(""))));
        fs::write(&lock, "").expect("written");
        set_mode(&lock, 0o644);
        let told = folder.store().lease(&key(""), Purpose::Login).err().expect("refused").to_string();
        assert!(told.contains(&format!("chmod 600 {}", lock.display())), "{told}");
    }

    // covers: AUTHS-C-017
    #[test]
    fn links_are_not_followed() {
        let (folder, elsewhere) = (TestFolder::new(), TestFolder::new());
        folder.save();
        elsewhere.save();
        fs::remove_file(folder.file()).expect("removed");
        symlink(elsewhere.file(), folder.file()).expect("a link");
        let wanted = format!("rm {}", folder.file().display());
        faults(&folder.store()).iter().for_each(|told| assert!(told.contains(&wanted), "{told}"));
        fs::remove_file(folder.file()).expect("removed");
        // A new record does not go where a link leads that was there first.
        let new = folder.0.join(format!("{}.new", file_name(&key(""))));
        let before = fs::read(elsewhere.file()).expect("read");
        symlink(elsewhere.file(), &new).expect("a link");
        folder.save();
        assert!(fs::read(elsewhere.file()).expect("read") == before && !new.exists());
        let linked = elsewhere.0.join("linked");
        symlink(&folder.0, &linked).expect("a link");
        let wanted = format!("rm {}", linked.display());
        faults(&FileStore::at(&linked)).iter().for_each(|told| assert!(told.contains(&wanted), "{told}"));
        let lock = folder.0.join(format!("{}.lock", file_name(&key(""))));
        symlink(elsewhere.file(), &lock).expect("a link");
        assert!(folder.store().lease(&key(""), Purpose::Change).is_err());
    }

    #[test]
    fn what_is_no_file_is_refused_at_once() {
        let folder = TestFolder::new();
        folder.save();
        fs::remove_file(folder.file()).expect("removed");
        fs::create_dir(folder.file()).expect("a folder");
        faults(&folder.store());
        fs::remove_dir(folder.file()).expect("removed");
        let pipe = Command::new("mkfifo").arg("-m").arg("600").arg(folder.file()).status().expect("a program");
        assert!(pipe.success());
        faults(&folder.store());
        fs::remove_file(folder.file()).expect("removed");
        fs::remove_dir_all(&folder.0).expect("removed");
        fs::write(&folder.0, "").expect("a file");
        faults(&folder.store());
        fs::remove_file(&folder.0).expect("removed");
    }

    #[test]
    fn command_of_an_error_is_one_for_a_shell() {
        for (path, word) in
            [("/a/b-c_d.e", "/a/b-c_d.e"), ("/a b", "'/a b'"), ("/a$(x)", "'/a$(x)'"), ("/it's", r"'/it'\''s'")]
        {
            assert_eq!(quoted(Path::new(path)), word);
        }
    }
}
