//! The steps of our client with what a server offers beside tools that answer: resources, prompts,
//! completions, log messages, changed lists, and questions to the model and the user.

use std::fmt::{Debug, Display};
use std::time::Duration;

use mcp_proto::input::Change;
use mcp_proto::model::content::Role;
use mcp_proto::{CallError, Watch, completion, prompts, resources, tools};
use serde_json::{Value, json};

use super::Answer;
use super::servers::{LEGACY, MODERN};
use super::session::Session;
use super::steps::{Does, Expect, Step, call, step};

/// How a server reaches its client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reaches {
    /// At any time.
    Always,
    /// At any time, but not with a message of a call: its response is JSON.
    BesideCalls,
    /// Only with responses.
    Never,
}

/// How long a call is waited for before the next look at what was heard.
const LOOK: Duration = Duration::from_millis(10);
/// The web page of these servers.
const PAGE: &str = "https://example.org/page";

/// Returns the steps with the servers that this project writes with other SDKs.
pub fn offered(revision: &str, reaches: Reaches) -> Vec<Step> {
    let check = |name, check| step(name, Does::Check(check));
    let consulted = Expect::text("the model said: use-1 gave 42").asks(&["model", "model"]);
    let mut steps = vec![
        check("resources", listed),
        check("read", read),
        check("blob", blob),
        check("templates", templates),
        check("template", template),
        check("missing", missing),
        check("prompts", listed_prompts),
        check("prompt", prompt),
        check("completion", completed),
        check("variable", completed_variable),
        check("schema", schema),
        check("logging", logged),
        check("updated", updated),
        check("grown", grown),
        call("consult", "consult", json!({}), consulted),
        check("page", page),
        check("page refused", page_refused),
        check("page told", page_told),
        check("gate", gate),
    ];
    steps.retain(|step| match step.name {
        "schema" => revision >= "2025-06-18",
        "updated" | "grown" => reaches != Reaches::Never,
        "logging" => reaches == Reaches::Always,
        "consult" | "page" | "page refused" => revision == MODERN || (revision == LEGACY && reaches == Reaches::Always),
        "page told" => revision == LEGACY && reaches == Reaches::Always,
        "gate" => revision == LEGACY,
        _ => true,
    });
    steps
}

/// Returns the text of an error.
pub(super) fn told(why: impl Display) -> String {
    why.to_string()
}

/// Requires that two values are equal.
pub(super) fn same<T: Debug + PartialEq>(got: &T, wanted: &T) -> Result<String, String> {
    if got == wanted { Ok(format!("{got:?}")) } else { Err(format!("{got:?}, expected {wanted:?}")) }
}

fn listed(session: &Session) -> Result<String, String> {
    let listed = session.client().all(resources::list()).map_err(told)?;
    let mut listed: Vec<_> = listed.iter().map(|one| (one.uri.as_str(), one.mime_type.as_deref())).collect();
    listed.sort_unstable();
    let wanted = [("note://bytes", "application/octet-stream"), ("note://one", "text/plain")];
    same(&listed, &wanted.map(|(uri, mime)| (uri, Some(mime))).to_vec())
}

fn read(session: &Session) -> Result<String, String> {
    let result = session.client().call(resources::read("note://one")).map_err(told)?;
    let contents: Vec<_> = result.contents.iter().map(|one| (one.uri(), one.mime_type(), one.as_text())).collect();
    same(&contents, &vec![("note://one", Some("text/plain"), Some("the first note"))])
}

fn blob(session: &Session) -> Result<String, String> {
    let result = session.client().call(resources::read("note://bytes")).map_err(told)?;
    let bytes = result.contents.first().ok_or("no contents")?.to_bytes().map_err(told)?;
    same(&bytes, &vec![0, 1, 2, 255])
}

fn templates(session: &Session) -> Result<String, String> {
    let listed = session.client().all(resources::templates()).map_err(told)?;
    same(&listed.iter().map(|one| one.uri_template.as_str()).collect::<Vec<_>>(), &vec!["greet://{name}"])
}

fn template(session: &Session) -> Result<String, String> {
    let result = session.client().call(resources::read("greet://Ann")).map_err(told)?;
    same(&result.first_text(), &Some("hello Ann"))
}

fn missing(session: &Session) -> Result<String, String> {
    not_found(session.client().call(resources::read("note://none")))
}

/// Requires that there is no such resource.
pub(super) fn not_found<T: Debug>(read: Result<T, CallError>) -> Result<String, String> {
    match read {
        Err(why) if why.is_not_found() => Ok(why.to_string()),
        other => Err(format!("{other:?}, expected that it is not found")),
    }
}

fn listed_prompts(session: &Session) -> Result<String, String> {
    let listed = session.client().all(prompts::list()).map_err(told)?;
    let [prompt] = &listed[..] else { return Err(format!("{listed:?}, expected one")) };
    let arguments: Vec<_> = prompt.arguments.iter().map(|one| (one.name.as_str(), one.required)).collect();
    same(&(prompt.name.as_str(), arguments), &("greeting", vec![("name", true)]))
}

fn prompt(session: &Session) -> Result<String, String> {
    let result = session.client().call(prompts::get("greeting").argument("name", "Ann")).map_err(told)?;
    let messages: Vec<_> = result.messages.iter().map(|one| (one.role, one.content.as_text())).collect();
    same(&messages, &vec![(Role::User, Some("Say hello to Ann."))])
}

fn completed(session: &Session) -> Result<String, String> {
    let result = session.client().call(completion::prompt("greeting").argument("name", "An")).map_err(told)?;
    same(&result.values, &vec!["Ann".to_owned(), "Anton".to_owned()])
}

fn completed_variable(session: &Session) -> Result<String, String> {
    let result = session.client().call(completion::template("greet://{name}").argument("name", "B")).map_err(told)?;
    same(&result.values, &vec!["Bob".to_owned()])
}

fn schema(session: &Session) -> Result<String, String> {
    same(&member_type(session, "add", "sum")?, &json!("integer"))
}

/// Returns the type of a member of a tool's result, as the server lists it.
pub(super) fn member_type(session: &Session, tool: &str, member: &str) -> Result<Value, String> {
    let listed = session.client().all(tools::list()).map_err(told)?;
    let tool = listed.iter().find(|one| one.name == tool).ok_or("no such tool")?;
    let schema: Value = tool.output_schema.as_ref().ok_or("no schema")?.decode().map_err(told)?;
    Ok(schema["properties"][member]["type"].clone())
}

/// Our client wants messages from `warning` on, and the server logs one below it first. The stream
/// tells to which call a message belongs: on 2026-07-28 that of the call, before it may be another.
fn logged(session: &Session) -> Result<String, String> {
    says(&session.call("log", &json!({}), None)?, "logged")?;
    let logged = session.ear().wait(|heard| heard.logged.first().cloned())?;
    let (text, named) = logged;
    // Some wrap what they log.
    if !text.starts_with("warning interop ") || !text.contains(r#""high""#) {
        return Err(text);
    }
    match (session.is_web(), session.revision().as_str()) {
        (true, MODERN) => same(&named, &true),
        (true, _) => Ok(text),
        (false, _) => same(&named, &false),
    }
}

/// Watches a resource for a while. The server must announce it then, and no more afterwards.
pub(super) fn watching<T>(session: &Session, uri: &str, then: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    let known = || session.ear().look(|heard| heard.watching.len());
    let next = |before: usize| {
        session.ear().wait(|heard| heard.watching.get(before..)?.last().map(|it| it.uris.contains(uri)))
    };
    let before = known();
    let watcher = session.client().watch(Watch::new().with_uri(uri)).map_err(|why| format!("{why:?}"))?;
    if !next(before)? {
        return Err(format!("the server does not announce {uri}"));
    }
    let result = then()?;
    let before = known();
    drop(watcher);
    if next(before)? { Err(format!("the server still announces {uri}")) } else { Ok(result) }
}

fn updated(session: &Session) -> Result<String, String> {
    let change = Change::Resource("note://one".to_owned());
    watching(session, "note://one", || {
        let before = session.ear().look(|heard| heard.times(&change));
        says(&session.call("touch", &json!({}), None)?, "touched")?;
        session.ear().changed(&change, before).map(|times| format!("{times} times"))
    })
}

/// The server says that its results last: our client does not ask for them again.
pub(super) fn kept(session: &Session) -> Result<String, String> {
    // What was fetched before changes are announced is dropped once they are.
    session.ear().wait(|heard| (!heard.watching.is_empty()).then_some(()))?;
    let client = session.client();
    let once = || -> Result<_, CallError> {
        let lists = (client.all(tools::list())?, client.all(resources::list())?, client.all(prompts::list())?);
        Ok((lists, client.all(resources::templates())?, client.call(resources::read("note://one"))?))
    };
    let first = once().map_err(told)?;
    let before = client.stats();
    if once().map_err(told)? != first {
        return Err("another result".to_owned());
    }
    let after = client.stats();
    same(&after.traffic.messages_out, &before.traffic.messages_out)?;
    let hits = after.cache.hits - before.cache.hits;
    if hits < 5 { Err(format!("{hits} of the cache")) } else { Ok(format!("{hits} of the cache")) }
}

/// A tool, a prompt and a resource are added.
fn grown(session: &Session) -> Result<String, String> {
    session.announced()?;
    let changes = [Change::Tools, Change::Prompts, Change::Resources];
    let before = changes.clone().map(|change| session.ear().look(|heard| heard.times(&change)));
    says(&session.call("grow", &json!({}), None)?, "grown")?;
    for (change, before) in changes.iter().zip(before) {
        session.ear().changed(change, before).map_err(|why| format!("{change:?}: {why}"))?;
    }
    says(&session.call("late", &json!({}), None)?, "came later")?;
    let client = session.client();
    let tools = client.all(tools::list()).map_err(told)?;
    let prompts = client.all(prompts::list()).map_err(told)?;
    let resources = client.all(resources::list()).map_err(told)?;
    let new = [
        tools.iter().any(|one| one.name == "late"),
        prompts.iter().any(|one| one.name == "late"),
        resources.iter().any(|one| one.uri == "note://late"),
    ];
    same(&new, &[true; 3])
}

/// Requires that a tool succeeds with this text.
pub(super) fn says(answer: &Answer, text: &str) -> Result<String, String> {
    same(&(answer.text.as_str(), answer.is_error), &(text, false))
}

fn page(session: &Session) -> Result<String, String> {
    let answer = session.call("page", &json!({}), Some(&json!({})))?;
    let pages = session.ear().look(|heard| heard.pages.clone());
    let pages: Vec<_> = pages.iter().map(|page| (page.url.as_str(), page.message.as_str())).collect();
    same(&pages, &vec![(PAGE, "Please log in.")])?;
    says(&answer, "page: accept")
}

fn page_refused(session: &Session) -> Result<String, String> {
    says(&session.call("page", &json!({}), None)?, "page: decline")
}

/// The page of the step `page` is complete: the server tells it with its id.
fn page_told(session: &Session) -> Result<String, String> {
    let id = session.ear().wait(|heard| heard.elicited.first().cloned())?;
    same(&id.as_str(), &"page-1")
}

/// The server refuses the call until the user has opened a page: our client calls again.
fn gate(session: &Session) -> Result<String, String> {
    says(&pass_gate(session, "gate", &json!({}))?, "let in")
}

/// Calls a tool that needs a web page, which the user completes.
pub(super) fn pass_gate(session: &Session, tool: &str, arguments: &Value) -> Result<Answer, String> {
    session.ear().begin(Some(&json!({})))?;
    let mut call = session.client().start(tools::call(tool).arguments(arguments));
    let page = || session.ear().look(|heard| heard.pages.first()?.elicitation_id.clone());
    let id = loop {
        if let Some(id) = page() {
            break id;
        }
        call = match call.wait_timeout(LOOK) {
            Ok(ended) => return Err(format!("it ended without a page: {ended:?}")),
            Err(call) => call,
        };
    };
    session.client().elicited(&id);
    let result = call.wait().map_err(told)?;
    Ok(Answer::new(&result, Vec::new(), session.ear().asked()))
}
