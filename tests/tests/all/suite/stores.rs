//! Servers that share a store.

use super::*;
use mcp_proto::client::Policy;
use mcp_proto::input::{Change, Watch};
use mcp_proto::server::StateKeys;
use std::io::ErrorKind;

fn node(store: &store::SharedMemory) -> Server {
    let router = Router::new("node", "1").tools_change().resources_change().configure(|config| {
        config.state_keys = Some(StateKeys::from([7; 32]));
    });
    raw::listening(router, ServerOptions::new().store(store.clone()))
}

// covers: SUB-S-015
#[test]
fn client_of_one_server_learns_what_changes_at_another() {
    let _limit = limit();
    let store = store::SharedMemory::new();
    let (first, second) = (node(&store), node(&store));
    until(|| [&first, &second].iter().all(|server| server.stats().store.is_member));
    for policy in [Policy::Modern, Policy::Legacy] {
        let url = format!("http://{}/mcp", second.local_addr().expect("an address"));
        let (config, told) = told(ClientOptions::new().set(move |config| config.policy = policy));
        let client = connect_with(url, config).wait().expect("connected");
        let next = |wanted: ClientEvent| {
            while told.recv_timeout(BOUND).expect("an event") != wanted {}
        };
        let watch = Watch::new().with_tools().with_resources();
        let watcher = client.watch(watch.clone()).expect("it is open");
        next(ClientEvent::Watching(watch));
        first.update(|router| router.tool(tool("new"), |_cx, (): ()| Ok("new"))).expect("it offers more");
        next(ClientEvent::Changed(Change::Tools));
        first.update(|router| router.without_tool("new")).expect("it offers less");
        next(ClientEvent::Changed(Change::Tools));
        drop(watcher);
        client.close().wait();
    }
    // A server that ends is no member any more, and the other one goes on.
    stop(&first, Duration::ZERO);
    until(|| store.members() == 1);
    stop(&second, Duration::ZERO);
}

#[test]
fn server_without_keys_does_not_start_with_a_store() {
    let _limit = limit();
    let options = ServerOptions::new().store(store::SharedMemory::new());
    let refused = serve_http((Router::new("node", "1"), options), "127.0.0.1:0").wait().expect_err("it needs keys");
    assert_eq!(refused.kind(), ErrorKind::InvalidInput);
}
