//! The cache of results, in both adapters with a server of each: what is fresh is not asked for.

use mcp_driver::ClientOptions;
use mcp_proto::client::{Cache, Event, Policy};
use mcp_proto::input::Watch;
use mcp_proto::model::lifecycle::{CacheHints, CacheScope};
use mcp_proto::{Change, Router, resource, resources, tool, tools};
use mcp_tests::adapters::{Adapter, Client, Server};
use std::sync::mpsc;
use std::time::Duration;

/// A server whose results last an hour.
fn serve(adapter: Adapter) -> Server {
    let hour = |scope| CacheHints::new(3_600_000, scope);
    let router = Router::new("s", "1")
        .tools_change()
        .configure(|config| {
            config.limits.server.page_size = 1;
            config.list_cache = hour(CacheScope::Public);
            config.read_cache = hour(CacheScope::Private);
        })
        .tool(tool("a"), |_, ()| Ok("a"))
        .tool(tool("b"), |_, ()| Ok("b"))
        .resource(resource("x:text"), |_cx| Ok("text"));
    adapter.serve_http(router, "127.0.0.1:0").expect("it listens")
}

fn connect(adapter: Adapter, server: &Server, options: ClientOptions) -> Client {
    adapter.connect(&*format!("http://{}/mcp", server.address()), options).expect("it connects")
}

fn text(client: &Client) -> String {
    let read = client.call(resources::read("x:text")).expect("it is read");
    read.contents[0].as_text().expect("a text").to_owned()
}

// covers: CACHE-C-007, CACHE-C-015, CACHE-C-017, CACHE-C-018, CACHE-C-020, CACHE-S-016
#[test]
fn what_is_fresh_is_not_asked_for_again() {
    for (of_server, of_client) in Adapter::ALL.into_iter().flat_map(|one| Adapter::ALL.map(|other| (one, other))) {
        let server = serve(of_server);
        let (changed, changes) = mpsc::channel();
        let options = ClientOptions::new().cache(Cache::default()).on_event(move |event| {
            if let Event::Changed(_) | Event::Watching(_) = event {
                changed.send(event).expect("the test waits");
            }
        });
        let client = connect(of_client, &server, options);
        let sent = || (client.stats().traffic.messages_out, server.stats().requests);
        let all = || client.all(tools::list()).expect("the list");
        let (first, read) = (all(), text(&client));
        assert_eq!((first.len(), &*read), (2, "text"));
        let before = sent();
        assert_eq!((all(), text(&client)), (first.clone(), read), "{of_server:?} {of_client:?}");
        assert_eq!(sent(), before, "nothing was sent");
        let cache = client.stats().cache;
        assert_eq!((cache.hits, cache.misses, cache.entries), (3, 3, 3));

        // Other credentials have no part in what is private.
        client.credentials_changed();
        text(&client);
        assert_eq!((sent().1, all()), (before.1 + 1, first.clone()));

        // The present list, from its beginning.
        assert_eq!(client.all(tools::list().fresh()).expect("the list"), first);
        assert_eq!(sent().1, before.1 + 3);

        // A change ends every page, and nothing else.
        let watcher = client.watch(Watch::new().with_tools()).expect("it is watched");
        let watching = changes.recv_timeout(Duration::from_secs(10)).expect("the server responds");
        assert_eq!(watching, Event::Watching(Watch::new().with_tools()));
        // The first announcements may have come too late for what was fetched before.
        let watched = sent().1 + 2;
        for _ in 0..2 {
            assert_eq!((all(), sent().1), (first.clone(), watched));
        }
        server.publish(Change::Tools);
        let change = changes.recv_timeout(Duration::from_secs(10)).expect("it is announced");
        assert_eq!(change, Event::Changed(Change::Tools));
        assert_eq!((all(), text(&client).len(), sent().1), (first.clone(), 4, watched + 2));
        drop(watcher);
        client.close().expect("in order");

        // Without a cache, and with a revision that has no hints.
        for (policy, cache) in [(Policy::Modern, None), (Policy::Legacy, Some(Cache::default()))] {
            let options = ClientOptions::new().set(move |config| (config.policy, config.cache) = (policy, cache));
            let client = connect(of_client, &server, options);
            let before = server.stats().requests;
            for _ in 0..2 {
                assert_eq!(client.all(tools::list()).expect("the list"), first);
            }
            assert_eq!(server.stats().requests, before + 4, "{policy:?}");
            client.close().expect("in order");
        }
        server.stop(Duration::ZERO);
    }
}
