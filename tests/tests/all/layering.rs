//! The order of the modules in the core. Cargo keeps that of the crates.

use crate::checked_sources::{adapters, core, module, none_found};
use mcp_tests::sources::Source;

/// The modules of the core, each using only those before it.
const ORDER: [&str; 34] = [
    "time",
    "short_map",
    "short_queue",
    "short_set",
    "seed",
    "limits",
    "peer_text",
    "http_support",
    "redact",
    "rpc",
    "trace_context",
    "schema",
    "version",
    "exchange",
    "process",
    "error",
    "event_queue",
    "observer",
    "hook",
    "telemetry",
    "stats",
    "frame",
    "fetch",
    "auth",
    "call",
    "model",
    "input",
    "client",
    "server",
    "span",
    "wired",
    "record",
    "route",
    "lib",
];

/// Parts of the core that only the core may use.
const INNER: [&str; 3] = ["rpc", "frame", "model"];

/// Returns the number of `super` from the file's own module to the root of the crate.
fn depth(source: &Source) -> usize {
    let inside = source.path.strip_prefix("mcp-proto/src/").expect("a file of the core");
    inside.trim_end_matches("mod.rs").trim_end_matches('/').split('/').count()
}

// covers: S0-65
#[test]
fn module_uses_only_earlier_modules() {
    let place = |name: &str| ORDER.iter().position(|known| *known == name);
    let sources = core();
    let mut found = Vec::new();
    for source in sources.iter().filter(|source| module(source) != "lib") {
        let own = module(source);
        let Some(at) = place(own) else {
            found.push(format!("{}: {own} has no place in the order", source.at(1)));
            continue;
        };
        let mut used = source.names_after("crate");
        // The same paths in their other spelling. A path outside of the crate's modules comes from
        // an inline module and is not checked.
        let up = vec!["super"; depth(source)].join("::");
        used.extend(source.names_after(&up).into_iter().filter(|(_, name)| place(name).is_some()));
        for (number, name) in used {
            match place(&name) {
                None => found
                    .push(format!("{}: crate::{name} is no module; name it where it is defined", source.at(number))),
                Some(there) if there > at => {
                    found.push(format!("{}: {own} uses {name}, which stands below it", source.at(number)))
                }
                Some(_) => {}
            }
        }
    }
    none_found(&sources, found);
}

#[test]
fn adapters_import_only_the_public_core() {
    let sources = adapters();
    let mut found = Vec::new();
    for source in &sources {
        for (number, name) in
            source.names_after("mcp_proto").into_iter().filter(|(_, name)| INNER.contains(&name.as_str()))
        {
            // A re-export of the core is not a use of it.
            if !source.lines[number - 1].code.trim_start().starts_with("pub use mcp_proto::") {
                found.push(format!("{}: mcp_proto::{name}", source.at(number)));
            }
        }
    }
    none_found(&sources, found);
}

/// The checks above find nothing in correct sources. These lines show that each can find a breach.
#[test]
fn checks_detect_breaches() {
    let source = Source::new(
        "mcp-proto/src/frame/conn.rs",
        "use crate::{limits, wired::Connection};\nfn a() { super::super::server::b() }\n",
    );
    assert_eq!(source.names_after("crate"), [(1, "limits".to_owned()), (1, "wired".to_owned())]);
    assert_eq!((module(&source), depth(&source)), ("frame", 2));
    assert_eq!(source.names_after("super::super"), [(2, "server".to_owned())]);
    assert_eq!(depth(&Source::new("mcp-proto/src/frame/mod.rs", "")), 1);
}
