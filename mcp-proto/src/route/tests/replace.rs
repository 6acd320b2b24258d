//! A running server whose router is replaced.

use super::*;
use crate::input::Change;
use crate::model::resources::Resource;
use crate::server::ServerConfig;

/// A router that declares everything that it may offer later.
fn declared() -> Router {
    let router = Router::new("n", "1").tools_change().prompts_change().resources_change();
    router.declare(|capabilities| {
        capabilities.completions.get_or_insert_default();
    })
}

/// A router with one element of each list.
fn one_of_each() -> Router {
    declared()
        .tool(tool("t").describe("first"), |_cx, ()| Ok("t"))
        .prompt(prompt("p").argument("a"), |_cx, ()| Ok("p"))
        .resource(resource("x:r"), |_cx| Ok("r"))
        .template(template("y:{id}"), |_cx| Ok("y"))
        .resources_from(|_cx, _| Ok(Vec::<Resource>::new()))
}

impl Bench {
    fn replace(&mut self, next: Router) -> Result<Vec<Change>, BadReplacement> {
        let config = self.server.config().clone();
        self.router.replace(next, &config)
    }
}

#[test]
fn clone_with_an_addition_leaves_the_original_as_it_is() {
    let router = adder();
    let more = router.clone().plain("more", |_cx, (): ()| "more").without_tool("add");
    assert_eq!(names(&Bench::new(router).modern("tools/list", "").unwrap()), ["add"]);
    assert_eq!(names(&Bench::new(more).modern("tools/list", "").unwrap()), ["more"]);
}

// covers: RSUB-S-003
#[test]
fn exactly_the_lists_that_differ_are_returned() {
    let first = one_of_each();
    let edits: [(&[Change], Router); 14] = [
        (&[], first.clone()),
        (&[], first.clone().tool(tool("t").describe("first"), |_cx, ()| Ok("another handler"))),
        (&[], first.clone().method("x/y", |_cx, ()| Ok(()))),
        (&[], first.clone().complete_prompt("p", "a", |_cx, _| Ok(["value"]))),
        (&[Change::Tools], first.clone().tool(tool("t").describe("second"), |_cx, ()| Ok("t"))),
        (&[Change::Tools], first.clone().tool("u", |_cx, ()| Ok("u"))),
        (&[Change::Tools], first.clone().without_tool("t")),
        (&[Change::Prompts], first.clone().prompt(prompt("p").argument("b"), |_cx, ()| Ok("p"))),
        (&[Change::Prompts], first.clone().without_prompt("p")),
        (&[Change::Prompts], first.clone().prompts_from(|_cx, _| Ok([prompt("q")]), |_cx, ()| Ok("q"))),
        (&[Change::Resources], first.clone().without_resource("x:r")),
        (&[Change::Resources], first.clone().without_template("y:{id}")),
        (&[Change::Resources], first.clone().resources_from(|_cx, _| Ok([resource("x:s")]))),
        (&[Change::Tools, Change::Prompts, Change::Resources], declared()),
    ];
    for (n, (changes, next)) in edits.into_iter().enumerate() {
        let mut bench = Bench::new(first.clone());
        assert_eq!(bench.replace(next.clone()).as_deref(), Ok(changes), "{n}");
        assert_eq!(bench.replace(next).as_deref(), Ok(&[][..]), "{n}");
    }
}

#[test]
fn replacement_offers_only_what_was_declared() {
    let offers = |capability: &str, router: Router| match capability {
        "tools" => router.plain("t", |_cx, (): ()| "t"),
        "prompts" => router.prompt("p", |_cx, ()| Ok("p")),
        "resources" => router.resource("x:r", |_cx| Ok("r")),
        "completions" => router.complete_prompt("p", "a", |_cx, _| Ok(["value"])),
        "logging" => router.logging(),
        "tools.listChanged" => router.tools_change(),
        "prompts.listChanged" => router.prompts_change(),
        "resources.listChanged" => router.resources_change(),
        "resources.subscribe" => router.watchable(),
        "com.example/x" => router.extension("com.example/x", Object::new()).unwrap(),
        _ => router.declare(|capabilities| capabilities.other.set(capability, Object::new())),
    };
    let names = ["tools", "prompts", "resources", "completions", "logging"];
    let lists = ["tools.listChanged", "prompts.listChanged", "resources.listChanged", "resources.subscribe"];
    for capability in names.into_iter().chain(lists).chain(["com.example/x", "experimental"]) {
        let plain = || names[..3].iter().fold(Router::new("n", "1"), |router, name| offers(name, router));
        let first = if names.contains(&capability) { Router::new("n", "1") } else { plain() };
        let mut bench = Bench::new(first.clone());
        let refused = bench.replace(offers(capability, first.clone()));
        assert_eq!(refused, Err(BadReplacement::Undeclared(capability.into())));
        assert!(bench.router.is_clone_of(&first), "{capability}: nothing has changed");
        let mut bench = Bench::new(offers(capability, first.clone()));
        assert!(bench.replace(first.clone()).is_ok(), "{capability}: it may offer less");
        assert!(bench.replace(offers(capability, first)).is_ok(), "{capability}: and later as much as before");
    }
}

#[test]
fn declared_list_exists_while_it_is_empty() {
    let mut bench = Bench::new(one_of_each());
    assert!(bench.replace(declared()).is_ok());
    for (method, member) in [
        ("tools/list", "tools"),
        ("prompts/list", "prompts"),
        ("resources/list", "resources"),
        ("resources/templates/list", "resourceTemplates"),
    ] {
        assert_eq!(bench.modern(method, "").unwrap().array(member).unwrap(), [], "{method}");
    }
}

#[test]
fn decision_on_what_is_watched_is_not_lost_by_a_replacement() {
    let open = Router::new("n", "1").watchable();
    let decides = open.clone().on_watch(|_context, _uri| Ok(()));
    assert_eq!(Bench::new(open.clone()).replace(decides.clone()), Err(BadReplacement::OnWatch));
    assert_eq!(Bench::new(decides.clone()).replace(open), Err(BadReplacement::OnWatch));
    assert_eq!(Bench::new(decides.clone()).replace(decides), Ok(vec![]));
}

#[test]
fn configuration_of_the_first_router_stays() {
    let with = |size: usize| {
        let limited = move |config: &mut ServerConfig| config.limits.server.page_size = size;
        named(&["a", "b", "c"]).configure(limited)
    };
    let mut bench = Bench::new(with(2));
    assert_eq!(bench.replace(with(3)), Ok(vec![]));
    assert_eq!(names(&bench.modern("tools/list", "").unwrap()), ["a", "b"]);
    assert_eq!(bench.router.config().limits.server.page_size, 2);
}

/// Asks for a name, and returns it with this word.
fn greeter(word: &'static str) -> Router {
    declared().plain("greet", move |cx: Cx, (): ()| match cx.elicit("name", Form::new("Name?").text("name"))? {
        ElicitResult::Accept(content) => Ok(format!("{word} {}", content.required::<String>("name")?)),
        _ => Err(ToolError::from("no name")),
    })
}

#[test]
fn older_request_keeps_its_router_in_every_round() {
    for next in [greeter("bye"), declared()] {
        let mut bench = Bench::legacy(greeter("hello"), "2025-11-25");
        let asked = bench.line(r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"greet"}}"#);
        assert!(asked[0].contains("elicitation/create"), "{asked:?}");
        bench.replace(next).unwrap();
        let said = bench.line(r#"{"jsonrpc":"2.0","id":1,"result":{"action":"accept","content":{"name":"Ada"}}}"#);
        assert_eq!(text(&outcome(&said[0]).unwrap()), "hello Ada");
    }
    // A request that begins later has the new one.
    let mut bench = Bench::legacy(greeter("hello"), "2025-11-25");
    bench.replace(declared()).unwrap();
    assert_eq!(bench.legacy_call(r#"{"name":"greet"}"#).unwrap_err().code, -32602);
}

#[test]
fn state_of_a_tool_that_is_gone_is_invalid() {
    let retry = |bench: &mut Bench, state: &str| {
        let input = r#""inputResponses":{"name":{"action":"accept","content":{"name":"Ada"}}}"#;
        bench.modern("tools/call", &format!(r#","name":"greet",{input},"requestState":"{state}""#))
    };
    let mut bench = Bench::new(greeter("hello"));
    let asked = bench.modern("tools/call", r#","name":"greet""#).unwrap();
    let state: String = asked.required("requestState").unwrap();
    bench.replace(declared()).unwrap();
    assert_eq!(retry(&mut bench, &state).unwrap_err().code, -32602);
    // Each round is a request of its own, which may have reached another server.
    bench.replace(greeter("bye")).unwrap();
    assert_eq!(text(&retry(&mut bench, &state).unwrap()), "bye Ada");
}

/// Returns the keys in the pages of a list of two elements a page. `change` is called after the
/// first page.
fn walk(
    bench: &mut Bench,
    (method, member, key): (&str, &str, &str),
    change: impl FnOnce(&mut Bench),
) -> Vec<Vec<String>> {
    let (mut change, mut pages, mut rest) = (Some(change), Vec::new(), String::new());
    loop {
        let page = bench.modern(method, &rest).unwrap();
        let elements = page.array(member).unwrap();
        pages.push(elements.iter().map(|element| Object::read(element).unwrap().required(key).unwrap()).collect());
        if let Some(change) = change.take() {
            change(bench);
        }
        let Some(cursor) = page.optional::<String>("nextCursor").unwrap() else { return pages };
        rest = format!(r#","cursor":"{cursor}""#);
    }
}

// covers: PAGE-S-002, PAGE-S-008
#[test]
fn replacement_between_two_pages_repeats_and_skips_nothing() {
    type Add = fn(Router, &str) -> Router;
    type List = ((&'static str, &'static str, &'static str), Add);
    let lists: [List; 4] = [
        (("tools/list", "tools", "name"), |router, name| router.plain(name, |_cx, (): ()| "t")),
        (("prompts/list", "prompts", "name"), |router, name| router.prompt(name, |_cx, ()| Ok("p"))),
        (("resources/list", "resources", "uri"), |router, name| router.resource(name, |_cx| Ok("r"))),
        (("resources/templates/list", "resourceTemplates", "uriTemplate"), |router, name| {
            router.template(format!("{name}/{{id}}").as_str(), |_cx| Ok("y"))
        }),
    ];
    for (list, add) in lists {
        let with = |names: &[&str]| {
            let router = declared().configure(|config| config.limits.server.page_size = 2);
            names.iter().fold(router, |router, name| add(router, &format!("x:{name}")))
        };
        let mut bench = Bench::new(with(&["a", "c", "e", "g"]));
        // The last element of the first page is gone, and there is a new one on each side of it.
        let pages = walk(&mut bench, list, |bench| drop(bench.replace(with(&["a", "b", "d", "e", "g"]))));
        let seen = |page: &[String]| page.iter().map(|key| key.as_bytes()[2] as char).collect::<String>();
        let seen: Vec<String> = pages.iter().map(|page| seen(page)).collect();
        assert_eq!(seen, ["ac", "de", "g"], "{}", list.0);
        let pages = walk(&mut bench, list, |bench| drop(bench.replace(with(&["x"]))));
        assert_eq!(pages.last().unwrap().len(), 1, "{}", list.0);
    }
}
