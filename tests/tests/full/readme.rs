//! What the documentation tells a new user to copy: every example of a README and of the guide, and
//! the examples on the first page of each crate, compiles in a package of its own with exactly the
//! block of dependencies that precedes it.

use mcp_tests::api::folder;
use mcp_tests::sources::{files, root};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// The clone of the repository in a block of dependencies.
const CLONE: &str = "../mcp/";

/// A block of dependencies, and the examples that it is for.
struct Package {
    dependencies: String,
    examples: Vec<Example>,
}

/// An example, and where it is.
#[derive(Debug, PartialEq)]
struct Example {
    path: String,
    line: usize,
    code: String,
}

/// Adds the examples of a text in Markdown to their packages. `unnamed` is whether a block without
/// a language is Rust, as in the documentation of a crate.
fn collect(path: &str, text: &str, unnamed: bool, packages: &mut Vec<Package>) {
    let (mut package, mut open) = (None, None::<(usize, &str, String)>);
    for (line, text) in (1..).zip(text.lines()) {
        match (text.trim_start().strip_prefix("```"), &mut open) {
            (Some(language), None) => open = Some((line, language, String::new())),
            (None, Some((_, _, block))) => {
                block.push_str(text);
                block.push('\n');
            }
            (Some(_), Some(_)) => {
                let (line, language, block) = open.take().expect("it is open");
                if language == "toml" && block.contains("dependencies]") {
                    let known = packages.iter().position(|package| package.dependencies == block);
                    package = known.or(Some(packages.len()));
                    if known.is_none() {
                        packages.push(Package { dependencies: block, examples: Vec::new() });
                    }
                } else if language.starts_with("rust") || unnamed && matches!(language, "" | "no_run") {
                    let package = package.unwrap_or_else(|| panic!("{path}:{line}: no dependencies precede it"));
                    packages[package].examples.push(Example { path: path.into(), line, code: program(&block) });
                }
            }
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "{path}: a block has no end");
}

/// Returns the program that rustdoc makes of an example.
fn program(example: &str) -> String {
    let shown = |line: &str| format!("{}\n", line.strip_prefix("# ").unwrap_or(if line == "#" { "" } else { line }));
    let code: String = example.lines().map(shown).collect();
    if code.contains("fn main()") { code } else { format!("fn main() {{\n{code}}}\n") }
}

/// Returns the documentation of a crate in its `lib.rs`.
fn documentation(text: &str) -> String {
    let lines = text.lines().filter_map(|line| match line.strip_prefix("//!") {
        Some(shown) => Some(shown.strip_prefix(' ').unwrap_or(shown)),
        // The fence of an example that needs a feature.
        None => line.starts_with("#![cfg_attr(feature").then_some(line)?.contains("\"```\"").then_some("```"),
    });
    lines.map(|line| format!("{line}\n")).collect()
}

/// Returns every block of dependencies with its examples.
fn packages() -> Vec<Package> {
    let mut packages = Vec::new();
    for (path, text) in files(&root(), "", "README.md") {
        collect(&path, &text, false, &mut packages);
    }
    for (path, text) in files(&root(), "mcp-proto/driver/src/guide", ".md") {
        collect(&path, &text, false, &mut packages);
    }
    for name in ["mcp-proto", "mcp-driver", "mcp-supervisor", "mcp-blocking", "mcp-smol"] {
        let path = format!("{}/src/lib.rs", folder(name));
        let text = fs::read_to_string(root().join(&path)).expect("the crate has a root");
        collect(&path, &documentation(&text), true, &mut packages);
    }
    packages
}

/// Writes the packages into a workspace with the versions of this one, so that nothing is fetched.
fn write(packages: &[Package], place: &Path) {
    let _ = fs::remove_dir_all(place.join("packages"));
    let mut members = String::new();
    for (number, package) in packages.iter().enumerate() {
        let name = format!("packages/p{number}");
        let folder = place.join(&name);
        fs::create_dir_all(folder.join("examples")).expect("it can be created");
        let clone = format!("{}/", root().display()).replace('\\', "/");
        let manifest = format!(
            "[package]\nname = \"p{number}\"\nedition = \"2024\"\n\n{}",
            package.dependencies.replace(CLONE, &clone)
        );
        fs::write(folder.join("Cargo.toml"), manifest).expect("it can be written");
        for (number, example) in package.examples.iter().enumerate() {
            let code = format!("// {}:{}\n{}", example.path, example.line, example.code);
            fs::write(folder.join(format!("examples/e{number}.rs")), code).expect("it can be written");
        }
        members.push_str(&format!("    {name:?},\n"));
    }
    let workspace = format!("[workspace]\nresolver = \"3\"\nmembers = [\n{members}]\n");
    fs::write(place.join("Cargo.toml"), workspace).expect("it can be written");
    fs::copy(root().join("Cargo.lock"), place.join("Cargo.lock")).expect("the versions are pinned");
}

#[test]
fn examples_compile_with_the_dependencies_before_them() {
    let packages = packages();
    let place = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("readme");
    fs::create_dir_all(&place).expect("it can be created");
    write(&packages, &place);
    let mut faults = String::new();
    for (number, package) in packages.iter().enumerate() {
        assert!(!package.examples.is_empty(), "no example needs these dependencies:\n{}", package.dependencies);
        // One package at a time: cargo would give each of several the features of all of them.
        let checked = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
            .args(["check", "--offline", "--quiet", "--examples", "-p", &format!("p{number}")])
            .current_dir(&place)
            .env("CARGO_TARGET_DIR", place.join("target"))
            .output()
            .expect("cargo runs");
        if !checked.status.success() {
            let text = String::from_utf8_lossy(&checked.stderr);
            faults.push_str(&format!("{}{text}\n", package.dependencies));
        }
    }
    assert!(faults.is_empty(), "{faults}");
    let examples: usize = packages.iter().map(|package| package.examples.len()).sum();
    assert!(examples >= 19 && packages.len() >= 8, "{examples} examples in {} packages", packages.len());
}

#[test]
fn example_belongs_to_the_block_before_it() {
    let text = concat!(
        "```toml\n[dependencies]\na = \"1\"\n```\n```rust,no_run\none();\n# two();\n#\n```\n```text\nno\n```\n",
        "```toml\n[dev-dependencies]\nb = \"1\"\n```\n```rust\nfn main() {}\n```\n",
        "```toml\n[dependencies]\na = \"1\"\n```\n```\nthree();\n```\n"
    );
    for unnamed in [false, true] {
        let mut packages = Vec::new();
        collect("README.md", text, unnamed, &mut packages);
        let codes = |package: &Package| package.examples.iter().map(|e| e.code.clone()).collect::<Vec<_>>();
        let mut of_the_first = vec!["fn main() {\none();\ntwo();\n\n}\n"];
        of_the_first.extend(unnamed.then_some("fn main() {\nthree();\n}\n"));
        assert_eq!(packages.iter().map(codes).collect::<Vec<_>>(), [of_the_first, vec!["fn main() {}\n"]]);
        assert_eq!(packages[0].dependencies, "[dependencies]\na = \"1\"\n");
    }
    assert_eq!(documentation("//! a\n//!\n//! ```\nuse b;\n"), "a\n\n```\n");
}

#[test]
#[should_panic(expected = "README.md:2: no dependencies precede it")]
fn example_without_dependencies_is_a_fault() {
    collect("README.md", "\n```rust\nfn main() {}\n```\n", false, &mut Vec::new());
}
