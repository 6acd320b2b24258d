//! Tests of the hashes of what engines do.

use crate::sized;
use mcp_tests::sim::digest::log::Entry;
use mcp_tests::sim::digest::said::plain;
use mcp_tests::sim::digest::{World, digest};

#[test]
fn texts_for_people_and_lengths_that_they_change_are_left_out() {
    let response = |message: &str| {
        let body = format!(r#"{{"jsonrpc":"2.0","id":1,"error":{{"code":-32602,"message":"{message}","data":7}}}}"#);
        let whole = format!("HTTP/1.1 400 Bad Request\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        let event = format!("data: {body}\n\n");
        format!("{whole}\r\n{:x}\r\n{event}\r\n", event.len())
    };
    assert_eq!(plain(response("no").as_bytes()), plain(response(r#"not \"here\", and longer"#).as_bytes()));
    let other_code = response("no").replace("-32602", "-32601");
    assert_ne!(plain(response("no").as_bytes()), plain(other_code.as_bytes()));
    let other_data = response("no").replace(":7}", ":8}");
    assert_ne!(plain(response("no").as_bytes()), plain(other_data.as_bytes()));
    let other_status = response("no").replace("400", "401");
    assert_ne!(plain(response("no").as_bytes()), plain(other_status.as_bytes()));
}

#[test]
fn engines_with_the_same_inputs_have_the_same_outputs() {
    for (world, _) in World::ALL {
        for seed in 1..=sized(5) {
            let entries = world.run(seed);
            // Also compares the counters of the engines.
            let before = digest(world, seed, &entries);
            let text = serde_json::to_string(&entries).unwrap();
            let read: Vec<Entry> = serde_json::from_str(&text).unwrap();
            assert_eq!(digest(world, seed, &read), before, "{} {seed}", world.name());
            let fewer = digest(world, seed, &read[..2]);
            assert_ne!(fewer, before, "{} {seed}", world.name());
        }
    }
}
