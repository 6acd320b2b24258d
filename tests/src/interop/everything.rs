//! The same steps with the servers of others, which offer other things.

use mcp_proto::input::Change;
use mcp_proto::{LogLevel, completion, prompts, resources};
use serde_json::{Value, json};

use super::areas::{member_type, not_found, pass_gate, same, told, watching};
use super::servers::LEGACY;
use super::session::Session;
use super::steps::{Does, Expect, Step, call, step};

const TEXT: &str = "demo://resource/dynamic/text/7";
const BLOB: &str = "demo://resource/dynamic/blob/7";
const DOCUMENT: &str = "demo://resource/static/document/features.md";
/// The graph of `server-memory`.
const GRAPH: &str = "memory://knowledge-graph";
const PAGE: &str = "https://example.org/page";

/// Returns the steps for a revision.
pub fn offered(revision: &str) -> Vec<Step> {
    let check = |name, check| step(name, Does::Check(check));
    let page = json!({ "url": PAGE, "elicitationId": "page-1" });
    let refused = Expect::text("User declined to open the URL (Elicitation ID: page-1)").asks(&["page"]);
    let accepted = Expect::text("User completed the URL").asks(&["page"]).form(json!({}));
    let mut steps = vec![
        check("quiet", quiet),
        check("resources", listed),
        check("read", read),
        check("blob", blob),
        check("templates", templates),
        check("template", template),
        check("missing", |session| not_found(session.client().call(resources::read("demo://none")))),
        check("prompts", listed_prompts),
        check("prompt", prompt),
        check("completion", completed),
        check("variable", completed_variable),
        check("schema", |session| {
            same(&member_type(session, "get-structured-content", "temperature")?, &json!("number"))
        }),
        check("logging", logged),
        check("updated", updated),
        check("grown", grown),
        call("page", "trigger-url-elicitation", page.clone(), accepted),
        call("page refused", "trigger-url-elicitation", page, refused),
        check("gate", gate),
    ];
    steps.retain(|step| revision == LEGACY || !["page", "page refused", "gate"].contains(&step.name));
    with_schemas(revision, steps)
}

/// Returns the steps with `server-filesystem`, which has only tools.
pub fn filesystem(revision: &str) -> Vec<Step> {
    let check = |name, check| step(name, Does::Check(check));
    let steps = vec![
        check("no resources", no_resources),
        check("schema", |session| same(&member_type(session, "read_text_file", "content")?, &json!("string"))),
    ];
    with_schemas(revision, steps)
}

/// Returns the steps with `server-memory`, whose graph is a resource.
pub fn memory(revision: &str) -> Vec<Step> {
    let check = |name, check| step(name, Does::Check(check));
    let steps = vec![
        check("schema", |session| same(&member_type(session, "read_graph", "entities")?, &json!("array"))),
        check("resources", listed_graph),
        check("read", read_graph),
        check("updated", updated_graph),
    ];
    with_schemas(revision, steps)
}

/// Removes the output schemas where a revision has none.
fn with_schemas(revision: &str, mut steps: Vec<Step>) -> Vec<Step> {
    steps.retain(|step| revision >= "2025-06-18" || step.name != "schema");
    steps
}

fn listed_graph(session: &Session) -> Result<String, String> {
    let listed = session.client().all(resources::list()).map_err(told)?;
    let listed: Vec<_> = listed.iter().map(|one| (one.uri.as_str(), one.mime_type.as_deref())).collect();
    same(&listed, &vec![(GRAPH, Some("application/json"))])
}

fn read_graph(session: &Session) -> Result<String, String> {
    let result = session.client().call(resources::read(GRAPH)).map_err(told)?;
    let graph: Value = serde_json::from_str(result.first_text().unwrap_or_default()).map_err(told)?;
    same(&graph["entities"][0]["observations"][0], &json!("likes \u{fc}"))
}

fn updated_graph(session: &Session) -> Result<String, String> {
    let change = Change::Resource(GRAPH.to_owned());
    let bob = json!({ "name": "Bob", "entityType": "person", "observations": [] });
    watching(session, GRAPH, || {
        let before = session.ear().look(|heard| heard.times(&change));
        session.call("create_entities", &json!({ "entities": [bob] }), None)?;
        session.ear().changed(&change, before).map(|times| format!("{times} times"))
    })
}

fn no_resources(session: &Session) -> Result<String, String> {
    match session.client().call(resources::list()) {
        Err(why) if why.to_rpc_error().code == -32601 => Ok(why.to_string()),
        other => Err(format!("{other:?}, expected that there is no such method")),
    }
}

fn listed(session: &Session) -> Result<String, String> {
    let listed = session.client().all(resources::list()).map_err(told)?;
    let document = listed.iter().find(|one| one.uri == DOCUMENT).ok_or_else(|| format!("{listed:?}"))?;
    same(&document.mime_type.as_deref(), &Some("text/markdown"))
}

fn read(session: &Session) -> Result<String, String> {
    let result = session.client().call(resources::read(DOCUMENT)).map_err(told)?;
    let first = result.first_text().and_then(|text| text.lines().next());
    same(&first, &Some("# Everything Server - Features"))
}

fn blob(session: &Session) -> Result<String, String> {
    let result = session.client().call(resources::read(BLOB)).map_err(told)?;
    let bytes = result.contents.first().ok_or("no contents")?.to_bytes().map_err(told)?;
    begins(&String::from_utf8_lossy(&bytes), "Resource 7: This is a base64 blob")
}

fn begins(text: &str, beginning: &str) -> Result<String, String> {
    if text.starts_with(beginning) { Ok(text.to_owned()) } else { Err(format!("{text:?}, expected {beginning:?}")) }
}

fn templates(session: &Session) -> Result<String, String> {
    let listed = session.client().all(resources::templates()).map_err(told)?;
    let mut listed: Vec<&str> = listed.iter().map(|one| one.uri_template.as_str()).collect();
    listed.sort_unstable();
    same(&listed, &vec!["demo://resource/dynamic/blob/{resourceId}", "demo://resource/dynamic/text/{resourceId}"])
}

fn template(session: &Session) -> Result<String, String> {
    let result = session.client().call(resources::read(TEXT)).map_err(told)?;
    begins(result.first_text().unwrap_or_default(), "Resource 7: This is a plaintext resource")
}

fn listed_prompts(session: &Session) -> Result<String, String> {
    let listed = session.client().all(prompts::list()).map_err(told)?;
    let prompt = listed.iter().find(|one| one.name == "args-prompt").ok_or_else(|| format!("{listed:?}"))?;
    let arguments: Vec<_> = prompt.arguments.iter().map(|one| (one.name.as_str(), one.required)).collect();
    same(&arguments, &vec![("city", true), ("state", false)])
}

fn prompt(session: &Session) -> Result<String, String> {
    let get = prompts::get("args-prompt").argument("city", "Bern").argument("state", "BE");
    let result = session.client().call(get).map_err(told)?;
    same(&result.first_text(), &Some("What's weather in Bern, BE?"))
}

fn completed(session: &Session) -> Result<String, String> {
    let department = completion::prompt("completable-prompt").argument("department", "S");
    let departments = session.client().call(department).map_err(told)?;
    same(&departments.values, &vec!["Sales".to_owned(), "Support".to_owned()])?;
    let name = completion::prompt("completable-prompt").argument("name", "").context("department", "Sales");
    let names = session.client().call(name).map_err(told)?;
    // The context came with 2025-06-18. Without it there is no name.
    let wanted: &[&str] = if session.revision().as_str() >= "2025-06-18" { &["David", "Eve", "Frank"] } else { &[] };
    same(&names.values, &wanted.iter().map(|name| (*name).to_owned()).collect())
}

fn completed_variable(session: &Session) -> Result<String, String> {
    let template = completion::template("demo://resource/dynamic/text/{resourceId}").argument("resourceId", "7");
    let result = session.client().call(template).map_err(told)?;
    same(&result.values, &vec!["7".to_owned()])
}

/// The server logs at `info`, which our client does not want, and then does: the level has reached
/// the server when some later requests are answered.
fn quiet(session: &Session) -> Result<String, String> {
    session.client().log_level(Some(LogLevel::Info));
    same(&session.ear().look(|heard| heard.logged.clone()), &Vec::new())
}

fn logged(session: &Session) -> Result<String, String> {
    let wanted = format!("info  \"Received Subscribe Resource request for URI: {TEXT}");
    let found = watching(session, TEXT, || {
        session
            .ear()
            .wait(|heard| heard.logged.iter().map(|(text, _)| text).find(|text| text.starts_with(&wanted)).cloned())
    });
    session.client().log_level(Some(LogLevel::Warning));
    found
}

fn updated(session: &Session) -> Result<String, String> {
    let change = Change::Resource(TEXT.to_owned());
    let toggle = || session.call("toggle-subscriber-updates", &json!({}), None);
    watching(session, TEXT, || {
        let before = session.ear().look(|heard| heard.times(&change));
        toggle()?;
        let times = session.ear().changed(&change, before)?;
        begins(&toggle()?.text, "Stopped simulated resource updates")?;
        Ok(format!("{times} times"))
    })
}

/// A resource is added.
fn grown(session: &Session) -> Result<String, String> {
    let before = session.ear().look(|heard| heard.times(&Change::Resources));
    let arguments = json!({ "name": "a.gz", "data": "data:text/plain,hello" });
    session.call("gzip-file-as-resource", &arguments, None)?;
    session.ear().changed(&Change::Resources, before)?;
    let result = session.client().call(resources::read("demo://resource/session/a.gz")).map_err(told)?;
    let contents = result.contents.first().ok_or("no contents")?;
    let bytes = contents.to_bytes().map_err(told)?;
    same(&(contents.mime_type(), bytes.get(..2)), &(Some("application/gzip"), Some(&[0x1f, 0x8b][..])))
}

/// The server refuses the call until the user has opened a page, and then asks for another.
fn gate(session: &Session) -> Result<String, String> {
    let arguments = json!({ "url": PAGE, "elicitationId": "page-2", "errorPath": true });
    let answer = pass_gate(session, "trigger-url-elicitation", &arguments)?;
    same(&answer.asked, &vec!["page", "page"])?;
    let text = answer.text.lines().next().unwrap_or_default().to_owned();
    if text.ends_with("User completed the URL elicitation flow.") { Ok(text) } else { Err(text) }
}
