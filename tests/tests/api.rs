#![forbid(unsafe_code)]
//! `tests/api` keeps the public API: the difference of a commit shows every change of it.

use std::collections::BTreeSet;
use std::{env, fs};

use mcp_tests::{api, sources};

/// Rewrites the kept files.
const UPDATE: &str = "UPDATE=1 cargo test -p mcp-tests --test api";

#[test]
fn public_api_is_the_kept_one() {
    let mut found = String::new();
    for name in ["mcp-proto", "mcp-smol", "mcp-blocking"] {
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
