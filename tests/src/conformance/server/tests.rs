//! Checks of what the suite relies on.

use std::collections::BTreeSet;

use mcp_proto::rpc::Object;
use mcp_proto::{Handler, Outcome};

use super::{Options, Over, router, tools};

#[test]
fn program_gets_its_address() {
    let read = |words: &str| Options::read(words.split(' ').filter(|word| !word.is_empty()).map(str::to_owned));
    let http = || Over::Http("127.0.0.1:0".to_owned());
    assert_eq!(read("--http 127.0.0.1:0"), Some(Options { over: http(), verbose: false }));
    assert_eq!(read("--verbose --http 127.0.0.1:0"), Some(Options { over: http(), verbose: true }));
    assert_eq!(read("--stdio"), Some(Options { over: Over::Stdio, verbose: false }));
    for wrong in ["", "--http", "--verbose", "--stdio --http 127.0.0.1:0", "--other", "--stdio x"] {
        assert_eq!(read(wrong), None, "{wrong:?}");
    }
}

#[test]
fn every_tool_is_described_on_the_first_page() {
    let all = tools::all();
    let names: BTreeSet<&str> = all.iter().map(|fixture| fixture.tool.name.as_str()).collect();
    assert_eq!(names.len(), all.len(), "each once");
    assert!(all.iter().all(|fixture| fixture.tool.description.as_ref().is_some_and(|text| !text.is_empty())));
    assert_eq!(all[0].tool.required_arguments(), Vec::<String>::new(), "the first can be called without arguments");
    let router = router(|_, _| Handler::inline(|_| Outcome::internal("unused")));
    let config = router.config();
    assert!(all.len() <= config.limits.server.page_size);
    let declared = config.capabilities.tools.expect("tools are declared");
    assert!(declared.list_changed);
}

#[test]
fn a_property_of_one_tool_is_also_in_a_header() {
    let mut found = Vec::new();
    for fixture in tools::all() {
        let schema = Object::read(&fixture.tool.input_schema).expect("an object");
        let properties = schema.optional_object("properties").expect("an object, if any").unwrap_or_default();
        for (name, property) in properties.iter() {
            let property = Object::read(&property).expect("an object");
            if property.get("x-mcp-header").is_some() {
                found.push((
                    fixture.tool.name.clone(),
                    name.into_owned(),
                    property.required::<String>("type").expect("typed"),
                ));
            }
        }
    }
    assert_eq!(found, [("test_custom_header".to_owned(), "value".to_owned(), "string".to_owned())]);
}
