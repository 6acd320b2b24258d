//! A router that is replaced while clients use it, through both engines and their bytes.

use super::{all_configs, offering, over_http, text};
use crate::ClientOptions;
use crate::testing::{Link, LinkOptions};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::time::Duration;
use mcp_proto::client::{Event, Policy};
use mcp_proto::input::{Change, Watch};
use mcp_proto::route::BadReplacement;
use mcp_proto::{
    Call, CallError, CallToolResult, ClientConfig, ElicitResult, Form, Router, prompt, prompts, resource, resources,
    tool, tools,
};

fn declared() -> Router {
    offering().tools_change().prompts_change().resources_change()
}

fn changed(link: &mut Link) -> Vec<Change> {
    let change = |event| if let Event::Changed(change) = event { Some(change) } else { None };
    link.events().into_iter().filter_map(change).collect()
}

fn get<M: mcp_proto::Method>(link: &mut Link, call: Call<M>) -> Result<M::Output, CallError> {
    let calling = link.call(call).expect("it is accepted");
    link.wait(&calling)
}

fn called(link: &mut Link, name: &str) -> String {
    let result: Result<CallToolResult, CallError> = get(link, tools::call(name));
    text(result).unwrap_or_else(|e| e.to_rpc_error().code.to_string())
}

fn listed(link: &mut Link) -> Vec<String> {
    get(link, tools::list()).expect("a page").elements.into_iter().map(|tool| tool.name).collect()
}

// covers: SUB-S-015, RSUB-S-003, RES-S-008
#[test]
fn clients_learn_of_exactly_the_lists_that_differ() {
    for mut config in all_configs() {
        config.watch = Watch::new().with_tools().with_prompts().with_resources();
        let first = declared().tool(tool("t"), |_cx, ()| Ok("first"));
        let mut link = Link::new(first.clone(), config);
        assert_eq!(called(&mut link, "t"), "first");
        link.advance(Duration::from_secs(5));
        link.events();

        let second = first.clone().tool(tool("t"), |_cx, ()| Ok("second")).prompt(prompt("p"), |_cx, ()| Ok("p"));
        link.replace(second).expect("it was declared");
        assert_eq!(changed(&mut link), [Change::Prompts], "{}", link.log());
        assert_eq!(called(&mut link, "t"), "second");
        assert_eq!(get(&mut link, prompts::list()).expect("a page").elements.len(), 1);

        link.replace(declared().resource(resource("x:1"), |_cx| Ok("1"))).expect("it was declared");
        assert_eq!(changed(&mut link), [Change::Tools, Change::Prompts, Change::Resources], "{}", link.log());
        assert_eq!((called(&mut link, "t"), listed(&mut link)), ("-32602".into(), Vec::new()));
        assert_eq!(get(&mut link, resources::read("x:1")).expect("contents").first_text(), Some("1"));

        let more = declared().complete_prompt("p", "a", |_cx, _| Ok(["value"]));
        assert_eq!(link.replace(more), Err(BadReplacement::Undeclared("completions".into())));
        assert_eq!(changed(&mut link), []);
    }
}

#[test]
fn handler_adds_to_the_router_that_is_there_now() {
    let add = |cx: &mcp_proto::Cx, ()| {
        cx.update(|router| router.tool(tool("added"), |_cx, ()| Ok("added")))?;
        cx.update(|router| router.tool(tool("more"), |_cx, ()| Ok("more")))?;
        Ok("done")
    };
    for mut config in all_configs() {
        config.watch = Watch::new().with_tools();
        let mut link = Link::new(declared().tool(tool("add"), add), config);
        link.advance(Duration::from_secs(5));
        link.events();
        assert_eq!(called(&mut link, "add"), "done");
        assert_eq!(listed(&mut link), ["add", "added", "more"]);
        assert_eq!(called(&mut link, "more"), "more");
        assert!(!changed(&mut link).is_empty(), "{}", link.log());
    }
}

#[test]
fn running_request_keeps_its_router_while_its_client_is_asked() {
    let ask = |cx: &mcp_proto::Cx, ()| match cx.elicit("name", Form::new("Name?").text("name"))? {
        ElicitResult::Accept(content) => Ok(format!("hello {}", content.required::<String>("name")?)),
        _ => Err("no name".into()),
    };
    for config in all_configs() {
        let (is_modern, first) = (config.policy == Policy::Modern, declared().tool(tool("ask"), ask));
        let client = ClientOptions::new()
            .on_elicit(|_form| async { ElicitResult::Accept(mcp_proto::Object::new().with("name", "Ada")) });
        let mut link = Link::with(first.clone(), config, LinkOptions::new().client(client));
        link.set_latency(Duration::from_millis(10));
        let calling = link.call(tools::call("ask")).expect("it is accepted");
        while !link.log().lines().any(|line| line.contains("ask begins")) {
            link.advance(Duration::from_millis(1));
        }
        link.replace(declared()).expect("it offers less");
        let outcome = text(link.wait(&calling)).map_err(|e| e.to_rpc_error().code);
        // On 2026-07-28 the call is sent again, to whatever the server offers then.
        assert_eq!(outcome, if is_modern { Err(-32602) } else { Ok("hello Ada".into()) }, "{}", link.log());
    }
}

// covers: HDR-C-040
#[test]
fn changed_header_of_an_argument_costs_one_refusal_and_one_list() {
    let mirrored = |header: &str| {
        let property = format!(r#"{{"a":{{"type":"string","x-mcp-header":"{header}"}}}}"#);
        let schema = format!(r#"{{"type":"object","properties":{property}}}"#);
        #[derive(serde::Deserialize)]
        struct A {
            a: String,
        }
        declared().tool(tool("t").input_schema(schema.as_str()), |_cx, a: A| Ok(a.a))
    };
    let mut config = over_http();
    config.policy = Policy::Modern;
    let mut link = Link::new(mirrored("One"), config);
    let call = |link: &mut Link| {
        let arguments = serde_json::json!({ "a": "x" });
        text(get(link, tools::call("t").arguments(&arguments))).map_err(|e| e.to_string())
    };
    assert_eq!(listed(&mut link), ["t"]);
    let count = |link: &Link, side: &str, what: &str| {
        link.log().lines().filter(|line| line.contains(side) && line.contains(what)).count()
    };
    let costs =
        |link: &Link| (count(link, "server -> client", "-32020"), count(link, "client -> server", "tools/list #"));
    for (n, header) in ["One", "Two", "Three"].into_iter().enumerate() {
        link.replace(mirrored(header)).expect("it was declared");
        let before = costs(&link);
        for _ in 0..3 {
            assert_eq!(call(&mut link), Ok("x".into()), "{header}\n{}", link.log());
        }
        let once = usize::from(n > 0);
        assert_eq!(costs(&link), (before.0 + once, before.1 + once), "{header}\n{}", link.log());
    }
}

#[test]
fn link_replaces_the_router_that_handlers_replace() {
    let mut link = Link::new(declared(), ClientConfig::given());
    let first = declared().tool(tool("t"), |cx, ()| {
        cx.replace(declared().tool(tool("u"), |_cx, ()| Ok("u")))?;
        Ok("t")
    });
    link.replace(first.clone()).expect("it was declared");
    assert_eq!((called(&mut link, "t"), listed(&mut link)), ("t".into(), alloc::vec!["u".into()]));
    link.replace(first).expect("it was declared");
    assert_eq!(listed(&mut link), ["t"]);
}
