//! Prompts of a router, requested as text in both eras.

use crate::model::content::Content;
use crate::model::lifecycle::{CacheHints, CacheScope};
use crate::model::page::ListElement;
use crate::model::prompts::{PromptArgument, PromptMessage};
use crate::route::tests::{Bench, outcome};
use crate::rpc::{ErrorObject, Object};
use crate::{Cx, ElicitResult, Form, GetPromptResult, Prompt, Router, ToolError, prompt};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

#[derive(serde::Deserialize)]
struct Guest {
    name: String,
    tone: Option<String>,
}

type Texts = alloc::collections::BTreeMap<String, String>;

fn greeter() -> Router {
    let greet = prompt("greet").describe("Greets").argument("name").argument(PromptArgument::new("tone").optional());
    Router::new("greeter", "1")
        .prompt(greet, |_cx, guest: Guest| Ok(format!("Greet {} {}", guest.name, guest.tone.unwrap_or_default())))
        .prompt("talk", |_cx, ()| Ok([PromptMessage::user("hi"), PromptMessage::assistant("hello")]))
        .prompt("image", |_cx, ()| Ok(Content::image_of([1], "image/png")))
        .prompt("bad", |_cx, ()| Ok(Content::image("?", "image/png")))
        .prompt("own", |_cx, ()| Ok(GetPromptResult::new([]).describe("mine").meta("k", 1_i64)))
        .prompt("gone", |_cx, ()| Ok(None::<String>))
        .prompt("failed", |_cx, ()| Err::<String, _>("no".into()))
}

fn get(bench: &mut Bench, rest: &str) -> Result<Object, ErrorObject> {
    bench.modern("prompts/get", &format!(",{rest}"))
}

fn messages(result: &Object) -> String {
    result.get("messages").unwrap().as_str().to_string()
}

fn names(page: &Object) -> Vec<String> {
    page.array("prompts").unwrap().iter().map(|prompt| Prompt::read(prompt).unwrap().name).collect()
}

#[test]
fn handler_returns_texts_content_or_messages() {
    let mut bench = Bench::new(greeter());
    let greeting = get(&mut bench, r#""name":"greet","arguments":{"name":"Ada","more":"x"}"#).unwrap();
    assert_eq!(messages(&greeting), r#"[{"role":"user","content":{"type":"text","text":"Greet Ada "}}]"#);
    assert_eq!(greeting.str("description").as_deref(), Some("Greets"));
    let talk = get(&mut bench, r#""name":"talk""#).unwrap();
    assert_eq!(
        messages(&talk),
        r#"[{"role":"user","content":{"type":"text","text":"hi"}},{"role":"assistant","content":{"type":"text","text":"hello"}}]"#
    );
    assert!(!talk.contains("description"));
    let image = get(&mut bench, r#""name":"image","arguments":null"#).unwrap();
    assert_eq!(
        messages(&image),
        r#"[{"role":"user","content":{"type":"image","data":"AQ==","mimeType":"image/png"}}]"#
    );
    let own = get(&mut bench, r#""name":"own","arguments":{}"#).unwrap();
    assert_eq!((messages(&own).as_str(), own.str("description").as_deref()), ("[]", Some("mine")));
    assert_eq!(own.object("_meta").unwrap().get("k"), Some(1_i64.into()));
    assert!(!own.contains("ttlMs"), "the messages of a prompt are not cacheable");
}

// covers: PROMPT-S-011, PROMPT-S-012
#[test]
fn invalid_request_for_a_prompt_reaches_no_handler() {
    let mut bench = Bench::new(greeter());
    for (rest, message) in [
        (r#""name":"no""#, "Unknown prompt: no"),
        (r#""name":"gone""#, "Unknown prompt: gone"),
        (r#""name":"greet""#, "Missing required argument: name"),
        (r#""name":"greet","arguments":{"tone":"x"}"#, "Missing required argument: name"),
        (r#""name":"greet","arguments":{"name":7}"#, "`arguments`: `name` is not a string"),
        (r#""name":"greet","arguments":{"name":"a","more":null}"#, "`arguments`: `more` is not a string"),
        (r#""name":"greet","arguments":[]"#, "Missing required argument: name"),
        (r#""name":"greet","arguments":["a"]"#, "`arguments`: expected an object"),
        (r#""title":"greet""#, "`name` is missing"),
    ] {
        let error = get(&mut bench, rest).unwrap_err();
        assert_eq!((error.code, &*error.message), (-32602, message), "{rest}");
        let mut legacy = Bench::legacy(greeter(), "2024-11-05");
        let error = outcome(&legacy.say("prompts/get", &format!("{{{rest}}}"))[0]).unwrap_err();
        assert_eq!((error.code, &*error.message), (-32602, message), "{rest}");
    }
    assert_eq!(get(&mut bench, r#""name":"failed""#).unwrap_err().code, -32603);
}

// covers: PROMPT-S-006, PROMPT-S-010
#[test]
fn content_that_a_prompt_must_not_have_is_not_sent() {
    let mut bench = Bench::new(greeter());
    let error = get(&mut bench, r#""name":"bad""#).unwrap_err();
    assert_eq!((error.code, &*error.message), (-32603, "`data` is not base64"));
}

// covers: DISC-S-006, PROMPT-S-001, PROMPT-S-002, PAGE-S-008, CACHE-S-001, CACHE-S-022
#[test]
fn list_of_prompts_has_pages_with_configured_hints() {
    let router = greeter().configure(|config| {
        config.limits.server.page_size = 3;
        config.prompts_cache = CacheHints::new(4, CacheScope::Public);
    });
    let mut bench = Bench::new(router);
    let declared = bench.modern("server/discover", "").unwrap().object("capabilities").unwrap();
    assert_eq!(declared.get("prompts").unwrap().as_str(), "{}");
    assert!(!declared.contains("resources") && !declared.contains("completions"));
    let (mut pages, mut rest) = (Vec::new(), String::new());
    loop {
        let page = bench.modern("prompts/list", &rest).unwrap();
        assert_eq!((page.required("ttlMs"), page.required::<String>("cacheScope").unwrap()), (Ok(4), "public".into()));
        pages.push(names(&page));
        let Some(cursor) = page.optional::<String>("nextCursor").unwrap() else { break };
        rest = format!(r#","cursor":"{cursor}""#);
    }
    assert_eq!(pages, [&["bad", "failed", "gone"][..], &["greet", "image", "own"], &["talk"]]);
    let mut bench = Bench::new(greeter());
    assert_eq!(bench.modern("prompts/list", "").unwrap().required::<u64>("ttlMs"), Ok(0));
}

// covers: PROMPT-S-003, PROMPT-S-004
#[test]
fn list_of_prompts_is_the_same_after_other_requests() {
    let router = Router::new("n", "1").configure(|config| config.capabilities.prompts = Some(Default::default()));
    assert_eq!(names(&Bench::new(router).modern("prompts/list", "").unwrap()), Vec::<String>::new());
    let mut bench = Bench::new(greeter());
    let first = bench.modern("prompts/list", "").unwrap();
    let _ = get(&mut bench, r#""name":"talk""#);
    let _ = get(&mut bench, r#""name":"gone""#);
    assert_eq!(bench.modern("prompts/list", "").unwrap(), first);
    assert_eq!(Bench::new(greeter()).modern("prompts/list", "").unwrap(), first);
}

#[test]
fn prompts_of_a_source_are_listed_and_got() {
    let stored = ["p1", "p2", "p3"];
    let router = Router::new("stored", "1")
        .prompt("a", |_cx, ()| Ok("a"))
        .prompts_from(
            move |_cx, after| {
                let after = after.unwrap_or_default().to_string();
                Ok(stored.into_iter().filter(move |name| *name > &*after).map(prompt))
            },
            move |cx, _: Texts| Ok(stored.contains(&cx.prompt()).then(|| cx.prompt().to_string())),
        )
        .configure(|config| config.limits.server.page_size = 2);
    let mut bench = Bench::new(router);
    let (mut pages, mut rest) = (Vec::new(), String::new());
    loop {
        let page = bench.modern("prompts/list", &rest).unwrap();
        pages.push(names(&page));
        let Some(cursor) = page.optional::<String>("nextCursor").unwrap() else { break };
        rest = format!(r#","cursor":"{cursor}""#);
    }
    assert_eq!(pages, [&["a"][..], &["p1", "p2"], &["p3"]]);
    assert!(messages(&get(&mut bench, r#""name":"p2""#).unwrap()).contains("p2"));
    let error = get(&mut bench, r#""name":"p9""#).unwrap_err();
    assert_eq!((error.code, &*error.message), (-32602, "Unknown prompt: p9"));
}

// covers: PROMPT-S-005
#[test]
fn prompt_can_ask_in_both_eras() {
    let ask = |cx: &Cx, (): ()| match cx.elicit("who", Form::new("Who?").text("name"))? {
        ElicitResult::Accept(content) => Ok(content.required::<String>("name")?),
        _ => Err(ToolError::from("nobody")),
    };
    let router = || Router::new("n", "1").prompt("ask", ask);
    let mut bench = Bench::new(router());
    let asked = get(&mut bench, r#""name":"ask""#).unwrap();
    assert_eq!(asked.required::<String>("resultType").unwrap(), "input_required");
    let state: String = asked.required("requestState").unwrap();
    let answer = r#"{"who":{"action":"accept","content":{"name":"Ada"}}}"#;
    let rest = format!(r#""name":"ask","inputResponses":{answer},"requestState":"{state}""#);
    assert!(messages(&get(&mut bench, &rest).unwrap()).contains("Ada"));
    let mut bench = Bench::legacy(router(), "2025-11-25");
    assert!(bench.say("prompts/get", r#"{"name":"ask"}"#)[0].contains("elicitation/create"));
}

#[cfg(feature = "schema")]
mod typed {
    use super::*;
    use schemars::JsonSchema;
    use serde::Deserialize;

    #[derive(Deserialize, JsonSchema)]
    struct Report {
        /// what it is about
        #[schemars(title = "Subject")]
        subject: String,
        tone: Option<Tone>,
        #[serde(default)]
        language: String,
    }

    #[derive(Deserialize, JsonSchema)]
    #[serde(rename_all = "lowercase")]
    enum Tone {
        Dry,
        /// with many words
        Flowery,
    }

    // covers: PROMPT-S-011, PROMPT-S-012
    #[test]
    fn arguments_of_a_type_are_listed_and_decoded() {
        let report = prompt("report").arguments_of::<Report>().argument("more");
        // Their order depends on a feature of `serde_json`.
        let mut arguments = report.arguments.clone();
        arguments.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        let subject = PromptArgument::new("subject").title("Subject").describe("what it is about");
        let [language, tone] = ["language", "tone"].map(|name| PromptArgument::new(name).optional());
        assert_eq!(arguments, [language, PromptArgument::new("more"), subject, tone]);

        let mut bench = Bench::new(Router::new("n", "1").prompt(report, |_cx, report: Report| {
            let tone = report.tone.map(|tone| matches!(tone, Tone::Flowery));
            Ok(format!("{} {tone:?} [{}]", report.subject, report.language))
        }));
        let mut get = |arguments: &str| {
            let rest = format!(r#","name":"report","arguments":{{"more":"",{arguments}}}"#);
            bench.modern("prompts/get", &rest).map(|result| result.to_json().as_str().to_string()).map_err(|e| e.code)
        };
        assert!(get(r#""subject":"x""#).unwrap().contains("x None []"));
        assert!(get(r#""subject":"x","tone":"flowery","language":"de""#).unwrap().contains("x Some(true) [de]"));
        for bad in [r#""tone":"dry""#, r#""subject":"x","tone":"loud""#, r#""subject":7"#] {
            assert_eq!(get(bad), Err(-32602), "{bad}");
        }
    }
}
