//! Resources, prompts and completion from a typed client to a router, on every transport and in
//! both eras.

use super::{all_configs, offering};
use crate::testing::Link;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use mcp_proto::call::PagedMethod;
use mcp_proto::client::Policy;
use mcp_proto::{
    CallError, ClientConfig, Json, Pages, Router, ToolError, completion, prompt, prompts, resource, resources,
};

type Texts = BTreeMap<String, String>;

fn router() -> Router {
    offering()
        .resource(resource("x:text").mime("text/plain"), |_cx| Ok("plain"))
        .resource_async("x:later", |cx| async move { Ok(format!("later {}", cx.uri())) })
        .template_async("row:{id}", |cx| async move { Ok(Json(cx.variable::<u32>("id")?)) })
        .prompt_async(prompt("greet").argument("name"), |_cx, texts: Texts| async move {
            Ok(format!("Greet {}", texts.get("name").ok_or(ToolError::NotFound)?))
        })
        .complete_prompt("greet", "name", |cx, entered| {
            let value = format!("{entered}+{}", cx.known("tone").unwrap_or_default());
            async move { Ok([value]) }
        })
        .inline(|router| {
            router
                .resource("x:json", |_cx| Ok(Json(7)))
                .template("blob:{+path}", |cx| Ok(cx.path("path")?.as_bytes().to_vec()))
                .prompt("hello", |_cx, ()| Ok("hello"))
                .complete_template("row:{id}", "id", |_cx, entered| Ok([format!("{entered}1")]))
        })
        .configure(|config| config.limits.server.page_size = 2)
}

fn pages<M: PagedMethod>(link: &mut Link, call: mcp_proto::Call<M>, max: usize) -> Result<Vec<M::Element>, CallError> {
    let (mut pages, mut all) = (Pages::new(call, max), Vec::new());
    while let Some(call) = pages.next() {
        let calling = link.call(call).expect("it is accepted");
        pages.fetched(link.wait(&calling))?;
        all.extend(core::iter::from_fn(|| pages.pop()));
    }
    Ok(all)
}

fn get<M: mcp_proto::Method>(link: &mut Link, call: mcp_proto::Call<M>) -> Result<M::Output, CallError> {
    let calling = link.call(call).expect("it is accepted");
    link.wait(&calling)
}

// covers: RES-C-011, PROMPT-C-013, PAGE-C-001, X-07
#[test]
fn everything_that_a_router_offers_can_be_used() {
    for config in all_configs() {
        let policy = config.policy;
        let mut link = Link::new(router(), config);
        let listed = pages(&mut link, resources::list(), 9).unwrap();
        let uris: Vec<&str> = listed.iter().map(|resource| &*resource.uri).collect();
        assert_eq!(
            (uris, listed[2].mime_type.as_deref()),
            (alloc::vec!["x:json", "x:later", "x:text"], Some("text/plain"))
        );
        let templates = pages(&mut link, resources::templates(), 9).unwrap();
        assert_eq!(templates.len(), 2);
        let prompts = pages(&mut link, prompts::list(), 9).unwrap();
        assert_eq!(prompts.iter().map(|prompt| &*prompt.name).collect::<Vec<_>>(), ["greet", "hello"]);

        for (uri, text) in [("x:text", "plain"), ("x:json", "7"), ("x:later", "later x:later"), ("row:8", "8")] {
            assert_eq!(get(&mut link, resources::read(uri)).unwrap().first_text(), Some(text), "{uri}");
        }
        let blob = get(&mut link, resources::read("blob:a/%C3%A9")).unwrap();
        assert_eq!(blob.contents[0].to_bytes().unwrap(), "a/é".as_bytes());
        for uri in ["x:other", "row:x", "blob:../a", "row:1/2"] {
            let missing = get(&mut link, resources::read(uri)).unwrap_err();
            assert!(missing.is_not_found(), "{uri}: {missing}");
            let code = if policy == Policy::Modern { -32602 } else { -32002 };
            assert_eq!(missing.to_rpc_error().code, code, "{uri}");
        }

        let greeting = get(&mut link, prompts::get("greet").argument("name", "Ada")).unwrap();
        assert_eq!(greeting.first_text(), Some("Greet Ada"));
        assert_eq!(get(&mut link, prompts::get("hello")).unwrap().first_text(), Some("hello"));
        for call in [prompts::get("greet"), prompts::get("no")] {
            let error = get(&mut link, call).unwrap_err();
            assert_eq!((error.to_rpc_error().code, error.is_not_found()), (-32602, false));
        }
        let values = get(&mut link, completion::prompt("greet").argument("name", "A").context("tone", "t")).unwrap();
        assert_eq!((values.values, values.total, values.has_more), (alloc::vec!["A+t".into()], Some(1), false));
        let values = get(&mut link, completion::template("row:{id}").argument("id", "9")).unwrap();
        assert_eq!(values.values, ["91"]);
    }
}

// covers: B-284
#[test]
fn list_that_never_ends_is_given_up() {
    let endless = Router::new("n", "1").resources_from(|_cx, after| {
        let last: u64 = after.and_then(|uri| uri[2..].parse().ok()).unwrap_or(0);
        async move { Ok((last..).map(|n| resource(&format!("n:{}", n + 1)))) }
    });
    let mut link = Link::new(endless, ClientConfig::given());
    assert_eq!(pages(&mut link, resources::list(), 5), Err(CallError::TooManyPages(5)));
    let repeating = Router::new("n", "1").method("prompts/list", |_cx, _: serde_json::Value| {
        Ok(Json(serde_json::json!({ "prompts": [{ "name": "p" }], "nextCursor": "again" })))
    });
    let mut link = Link::new(repeating, ClientConfig::given());
    let error = pages(&mut link, prompts::list(), 1000).unwrap_err();
    assert!(matches!(error, CallError::Decode(_)), "{error}");
}
