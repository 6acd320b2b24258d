//! The cache of results over HTTP, where requests have streams, sessions, header fields and tokens
//! of their own.

use super::*;
use crate::client::tests::cache::with_cache;
use crate::client::{Cache, ListenerEnd};
use crate::model::{prompts, resources};

impl Http {
    /// A client with a cache, after the negotiation with a server of 2026-07-28.
    fn caching(set: impl FnOnce(&mut ClientConfig)) -> Self {
        let mut http = Self::with(|config| {
            config.cache = Some(Cache::default());
            set(config);
        });
        let (exchange, id) = http.last();
        http.answer(exchange, 200, &discover_body(&id, &["2026-07-28"]));
        http.rig.clear();
        http
    }

    /// Makes a call that is posted, and answers it.
    fn fetch(&mut self, call: Call<impl Method>, result: &Value) {
        let count = self.rig.starts.len();
        let call = self.rig.call(call);
        assert_eq!(self.rig.starts.len(), count + 1, "it is posted");
        let (exchange, id) = self.last();
        self.answer(exchange, 200, &json!({"jsonrpc": "2.0", "id": id, "result": result}));
        assert_eq!(self.rig.outcome(call).as_ref().unwrap().age, None);
    }

    /// Returns whether the cache answers a call.
    fn hits(&mut self, call: Call<impl Method>) -> bool {
        let count = self.rig.starts.len();
        let call = self.rig.call(call);
        assert_eq!(self.rig.has_ended(call), self.rig.starts.len() == count);
        self.rig.has_ended(call)
    }

    /// Returns the fields of the last POST that mirror arguments.
    fn mirrored(&self) -> Vec<(String, String)> {
        let (_, head, ..) = self.posts().pop().unwrap();
        let fields = head.headers.iter().filter(|(name, _)| name.starts_with("Mcp-Param-"));
        fields.map(|(name, value)| (name.to_string(), value.to_string())).collect()
    }
}

fn page(scope: &str) -> Value {
    json!({"resultType": "complete", "ttlMs": 60_000, "cacheScope": scope})
}

fn tool(name: &str) -> Value {
    let argument = json!({"type": "string", "x-mcp-header": "A"});
    json!({"name": name, "inputSchema": {"type": "object", "properties": {"a": argument}}})
}

fn listed(tools: &Value) -> Value {
    let mut page = page("public");
    page["tools"] = tools.clone();
    page
}

// covers: HDR-C-016, HDR-C-025, CACHE-C-007
#[test]
fn cached_list_of_tools_mirrors_arguments() {
    let bad = json!({"name": "bad", "inputSchema": {"properties": {"a": {"type": "null", "x-mcp-header": "A"}}}});
    let second = || tools::list().param("cursor", Ok("2".into()));
    let mut http = Http::caching(|config| config.limits.client.max_tools = 2);
    let called = |http: &mut Http, name: &str| {
        http.rig.call(tools::call(name).arguments(&json!({"a": "x"})));
        !http.mirrored().is_empty()
    };
    http.fetch(tools::list(), &listed(&json!([tool("t"), bad, tool("u")])));
    assert_eq!(http.rig.diagnostics(), [DiagnosticKind::InvalidTool]);
    assert!(called(&mut http, "t") && called(&mut http, "u"));
    // Another page takes the place of it, and the first one is not read again.
    http.fetch(second(), &listed(&json!([tool("v"), tool("w")])));
    assert!(!called(&mut http, "t") && called(&mut http, "w"));
    assert!(http.hits(tools::list()));
    assert!(called(&mut http, "t") && called(&mut http, "u") && !called(&mut http, "w"));
    assert!(http.hits(second()));
    assert!(!called(&mut http, "t") && called(&mut http, "v"));
    assert_eq!(http.rig.diagnostics(), [DiagnosticKind::InvalidTool], "once");
    let names = |http: &Http| {
        let ends = http.rig.events.iter().filter_map(|event| match event {
            Event::Ended { outcome: Ok(result), .. } if result.age.is_some() => Some(result.json.as_str().to_owned()),
            _ => None,
        });
        ends.collect::<Vec<_>>()
    };
    assert!(!names(&http)[0].contains("bad"), "as the result of the server was delivered");
    // A page that is known is not learned again.
    let mut http = Http::caching(|_| {});
    http.fetch(tools::list(), &listed(&json!([tool("t")])));
    http.fetch(second(), &listed(&json!([tool("v")])));
    let before = http.rig.client.cx.tools.changes();
    assert!(http.hits(tools::list()) && http.hits(second()) && http.hits(tools::list()));
    assert_eq!(http.rig.client.cx.tools.changes(), before);
    assert!(called(&mut http, "t") && called(&mut http, "v"));
}

// covers: HDR-C-040, CACHE-C-013
#[test]
fn refused_header_fields_end_the_cached_list() {
    let mut http = Http::caching(|_| {});
    let second = || tools::list().param("cursor", Ok("2".into()));
    http.fetch(tools::list(), &listed(&json!([tool("t")])));
    http.fetch(second(), &listed(&json!([tool("v")])));
    http.rig.call(tools::call("t"));
    let (exchange, id) = http.last();
    http.answer(exchange, 400, &error(&id, -32020));
    // The client fetches the list in any case, and keeps what it gets.
    assert_eq!(http.lines(http.posts().len() - 1), ["POST tools/list"]);
    let (exchange, id) = http.last();
    assert!(!http.hits(second()));
    let result = listed(&json!([tool("t"), tool("w")]));
    http.answer(exchange, 200, &json!({"jsonrpc": "2.0", "id": id, "result": result}));
    assert_eq!(http.lines(http.posts().len() - 1), ["POST tools/call"]);
    assert!(http.hits(tools::list()));
    // Its failure is not covered up.
    let mut http = Http::caching(|config| {
        config.cache = with_cache(|cache| cache.stale_on_error = Some(Duration::MAX));
    });
    http.fetch(tools::list(), &listed(&json!([tool("t")])));
    let call = http.rig.call(tools::call("t"));
    let (exchange, id) = http.last();
    http.answer(exchange, 400, &error(&id, -32020));
    http.refuse(http.last().0, 500);
    assert!(matches!(http.rig.outcome(call), Err(CallError::Rpc(_))));
}

// covers: CACHE-C-013
#[test]
fn expired_result_covers_an_outage_and_no_refusal() {
    let stale = |config: &mut ClientConfig| {
        config.cache = with_cache(|cache| cache.stale_on_error = Some(ms(60_000)));
        config.repeat = Repeat::Never;
    };
    let lost = ExchangeEvent::Failed { sent: Sent::Maybe, why: Closed::Reset };
    type Fails<'a> = &'a dyn Fn(&mut Http, ExchangeId, &Value);
    let ways: [(bool, Fails<'_>); 6] = [
        (true, &|http, exchange, _| http.refuse(exchange, 503)),
        (true, &|http, exchange, _| http.put_off(exchange, 7)),
        (true, &|http, exchange, _| http.rig.handle_event(exchange, lost.clone())),
        (false, &|http, exchange, _| http.refuse(exchange, 410)),
        (false, &|http, exchange, _| http.refuse(exchange, 401)),
        (false, &|http, exchange, id| http.answer(exchange, 500, &error(id, -32603))),
    ];
    for (n, (is_covered, fail)) in ways.into_iter().enumerate() {
        let mut http = Http::caching(stale);
        http.fetch(tools::list(), &listed(&json!([tool("t")])));
        http.rig.tick(ms(60_000));
        let call = http.rig.call(tools::list());
        let (exchange, id) = http.last();
        fail(&mut http, exchange, &id);
        assert_eq!(http.rig.outcome(call).is_ok(), is_covered, "{n}");
        let told = http.rig.diagnostics().contains(&DiagnosticKind::StaleResult);
        assert_eq!(told, is_covered, "{n}: {:?}", http.rig.events);
    }
}

// covers: CACHE-C-017
#[test]
fn session_and_listener_take_their_results_along() {
    let older = |set: fn(&mut ClientConfig)| {
        Http::legacy(move |config| {
            config.cache = with_cache(|cache| cache.default_ttl = ms(60_000));
            set(config);
        })
    };
    let is_get = |(_, head, ..): &(ExchangeId, RequestHead, Value, bool)| head.method == "GET";
    let listener = |http: &Http| http.posts().into_iter().rfind(is_get).unwrap().0;
    // The listener ends, and opens again.
    for end in [ListenerEnd::Resume, ListenerEnd::Stop, ListenerEnd::Ignore] {
        let mut http = older(|_| {});
        Arc::make_mut(&mut http.rig.client.cx.env.config).compat.listener_end = end;
        http.fetch(resources::list(), &json!({}));
        assert!(http.hits(resources::list()));
        http.rig.call(prompts::list());
        let (exchange, id) = http.last();
        http.item(listener(&http), Inbound::End);
        http.answer(exchange, 200, &json!({"jsonrpc": "2.0", "id": id, "result": {}}));
        assert!(!http.hits(prompts::list()), "it may have changed since it was sent");
        http.fetch(resources::list(), &json!({}));
        assert!(http.hits(resources::list()), "it never depended on the listener");
        if end == ListenerEnd::Resume {
            http.rig.tick(ms(2_000));
            http.stream(listener(&http));
            assert!(!http.hits(resources::list()), "between the two it may have changed");
        }
    }
    // The listener is silent.
    let mut http = older(|config| config.listener_idle = Some(ms(5_000)));
    http.fetch(resources::list(), &json!({}));
    http.rig.tick(ms(5_000));
    assert!(!http.hits(resources::list()));
    // The session ends.
    let mut http = older(|config| config.compat.listener = ListenerStart::Never);
    http.fetch(resources::list(), &json!({}));
    http.rig.echo();
    http.refuse(http.last().0, 404);
    assert_eq!(http.rig.client.cache_stats().entries, 0);
    let waiting = http.rig.call(resources::list());
    assert!(!http.rig.has_ended(waiting), "there is no session");
    http.accept("s2");
    http.refuse(http.last().0, 202);
    assert!(!http.hits(tools::list()));
}

#[test]
fn call_that_waits_for_the_listener_is_no_hit() {
    let mut http = Http::initialized(|config| {
        config.cache = with_cache(|cache| cache.default_ttl = ms(60_000));
    });
    let first = http.rig.call(tools::list());
    let second = http.rig.call(tools::list());
    http.refuse(http.last().0, 202);
    http.stream(http.last().0);
    for call in [first, second] {
        assert!(!http.rig.has_ended(call));
    }
}
