//! A router that is replaced while clients are connected: by the application, and by a handler.

use super::*;
use mcp_proto::client::Policy;
use mcp_proto::input::{Change, Watch};
use mcp_proto::route::BadReplacement;

/// A server with a tool that adds another one.
fn growing() -> Router {
    Router::new("growing", "1").tools_change().tool(tool("grow"), |cx, (): ()| {
        cx.update(|router| router.tool(tool("grown"), |_cx, (): ()| Ok("grown")))?;
        Ok("it grows")
    })
}

fn names(client: &Client) -> Vec<String> {
    tools_of(client).into_iter().map(|tool| tool.name).collect()
}

// covers: SUB-S-015, RSUB-S-003, RES-S-008
#[test]
fn connected_clients_use_the_replaced_router() {
    let _limit = limit();
    for policy in [Policy::Modern, Policy::Legacy] {
        let server = raw::listening(growing(), ServerOptions::new());
        let url = format!("http://{}/mcp", server.local_addr().expect("an address"));
        let (config, told) = told(ClientOptions::new().set(move |config| config.policy = policy));
        let client = connect_with(url, config).wait().expect("connected");
        let next = |wanted: ClientEvent| {
            while told.recv_timeout(BOUND).expect("an event") != wanted {}
        };
        let watch = Watch::new().with_tools();
        let watcher = client.watch(watch.clone()).expect("it is open");
        next(ClientEvent::Watching(watch));
        assert_eq!(names(&client), ["grow"]);

        assert_eq!(text(call(&client, "grow")), "it grows");
        next(ClientEvent::Changed(Change::Tools));
        assert_eq!(names(&client), ["grow", "grown"]);
        assert_eq!(text(call(&client, "grown")), "grown");

        server.update(|router| router.without_tool("grown")).expect("it offers less");
        next(ClientEvent::Changed(Change::Tools));
        assert_eq!(names(&client), ["grow"]);

        server.replace(Router::new("other", "1")).expect("it offers nothing");
        next(ClientEvent::Changed(Change::Tools));
        assert_eq!(call(&client, "grow").map_err(|e| e.to_rpc_error().code), Err(-32602));
        let prompts = growing().prompts_change();
        assert_eq!(server.replace(prompts), Err(BadReplacement::Undeclared("prompts".into())));
        drop(watcher);
        stop(&server, Duration::ZERO);
    }
}
