//! How the work of each reader of a peer's lists grows with the list, in instructions that
//! callgrind counts: a peer chooses how long a list is, so the work must grow with its length, and
//! not with the square of it.

use crate::peer::Failure;
use mcp_proto::call::RawResult;
use mcp_proto::model::capabilities::ClientCapabilities;
use mcp_proto::model::page::{List, ListElement};
use mcp_proto::{
    Form, InputRequest, Method, Object, Prompt, ProtocolVersion, RawJson, Resource, ResourceTemplate, Tool, completion,
    prompts, resources, tools,
};
use mcp_supervisor::{Catalogue, NameRules, Prefix, ToolNames};
use std::fmt::Display;
use std::hint::black_box;
use std::path::Path;
use std::process::Command;

/// The lengths that are compared.
pub const LENGTHS: [usize; 2] = [400, 800];

/// The work at the second length, in parts of that at the first one.
pub const MAX_RATIO: f64 = 2.5;

const NEWEST: ProtocolVersion = ProtocolVersion::V2026_07_28;

/// A reader, and the text with a list of this length that it reads.
struct Reader {
    name: &'static str,
    text: fn(usize) -> String,
    read: fn(&RawJson),
}

const READERS: [Reader; 22] = [
    Reader { name: "with-all", text: members, read: |json| drop(black_box(object(json).with_all(&other(json)))) },
    Reader { name: "replace-all", text: members, read: |json| drop(black_box(object(json).with_all(&object(json)))) },
    Reader { name: "members", text: members, read: |json| drop(black_box(object(json).to_json())) },
    Reader { name: "tools", text: |n| page("tools", n, tool), read: decode::<List<Tool>> },
    Reader {
        name: "broken-tools",
        text: |n| page("tools", n, |n| format!(r#"{{"name":"{n}"}}"#)),
        read: decode::<List<Tool>>,
    },
    Reader { name: "members-of-a-tool", text: odd_tool, read: |json| drop(black_box(a_tool(json).write(NEWEST))) },
    Reader {
        name: "icons",
        text: |n| with_list(&tool(0), "icons", n, |_| r#"{"src":"data:,"}"#.into()),
        read: |json| drop(a_tool(json)),
    },
    Reader { name: "annotated-arguments", text: annotated, read: |json| drop(black_box(a_tool(json).check())) },
    Reader { name: "resources", text: |n| page("resources", n, resource), read: decode::<List<Resource>> },
    Reader {
        name: "templates",
        text: |n| page("resourceTemplates", n, template),
        read: decode::<List<ResourceTemplate>>,
    },
    Reader {
        name: "contents",
        text: |n| page("contents", n, |_| r#"{"uri":"x:","text":"t"}"#.into()),
        read: decode::<resources::Read>,
    },
    Reader { name: "prompts", text: |n| page("prompts", n, named), read: decode::<List<Prompt>> },
    Reader {
        name: "arguments-of-a-prompt",
        text: |n| page("prompts", 1, |_| with_list(&named(0), "arguments", n, named)),
        read: decode::<List<Prompt>>,
    },
    Reader { name: "messages", text: |n| page("messages", n, |_| message()), read: decode::<prompts::Get> },
    Reader { name: "blocks", text: |n| page("content", n, |_| block()), read: decode::<tools::CallTool> },
    Reader { name: "broken-blocks", text: |n| page("content", n, |n| n.to_string()), read: decode::<tools::CallTool> },
    Reader {
        name: "no-completions",
        text: |n| format!(r#"{{"completion":{}}}"#, page("values", n, |n| n.to_string())),
        read: decode::<completion::Complete>,
    },
    Reader {
        name: "roots",
        text: |n| page("roots", n, |n| format!(r#"{{"uri":"file:///{n}"}}"#)),
        read: |json| drop(black_box(InputRequest::Roots.read_answer(json))),
    },
    Reader {
        name: "sampling",
        text: |n| with_list(r#"{"maxTokens":1}"#, "messages", n, |_| message()),
        read: |json| drop(black_box(InputRequest::read("sampling/createMessage", Some(json)))),
    },
    Reader {
        name: "extensions",
        text: |n| format!(r#"{{"extensions":{},"x":{}}}"#, members(n), members(n)),
        read: |json| drop(black_box(ClientCapabilities::read(&object(json)))),
    },
    Reader { name: "form", text: form, read: read_form },
    Reader { name: "catalogue", text: |n| page("tools", n, tool), read: read_catalogue },
];

/// Returns the names of the readers.
pub fn readers() -> impl Iterator<Item = &'static str> {
    READERS.iter().map(|reader| reader.name)
}

/// Reads a list of this length: what is counted.
///
/// # Errors
/// There is no such reader, or the length is no number.
pub fn read(reader: &str, length: &str) -> Result<(), Failure> {
    let reader = READERS.iter().find(|one| one.name == reader).ok_or("no reader")?;
    let json = RawJson::parse((reader.text)(length.parse()?)).map_err(|e| e.to_string())?;
    measured_growth(reader.read, &json);
    Ok(())
}

#[inline(never)]
fn measured_growth(read: fn(&RawJson), json: &RawJson) {
    read(json);
}

/// Returns the instructions of a reader for a list of this length. `cost`: the program that runs
/// [`read`] when its arguments are `cost growth READER LENGTH`.
///
/// # Errors
/// There is no valgrind.
pub fn instructions(cost: &Path, reader: &str, length: usize) -> Result<u64, Failure> {
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--tool=callgrind", "--callgrind-out-file=/dev/null", "--toggle-collect=*measured_growth*"]);
    valgrind.arg(cost).args(["cost", "growth", reader, &length.to_string()]);
    let output = valgrind.output().map_err(|e| format!("valgrind: {e}"))?;
    let text = String::from_utf8_lossy(&output.stderr);
    let number = text.lines().find_map(|line| line.split_once("Collected : ")).map(|(_, number)| number.trim());
    match number {
        Some(number) if output.status.success() => Ok(number.parse()?),
        _ => Err(format!("valgrind: {text}").into()),
    }
}

fn object(json: &RawJson) -> Object {
    Object::read(json).expect("an object")
}

/// Returns an object with as many members of other names.
fn other(json: &RawJson) -> Object {
    object(json).iter().map(|(key, value)| (format!("other {key}"), value)).collect()
}

fn a_tool(json: &RawJson) -> Tool {
    Tool::read(json).expect("a tool")
}

fn decode<M: Method>(json: &RawJson) {
    drop(black_box(M::decode(RawResult::new(json.clone(), NEWEST)).expect("a result")));
}

fn read_form(json: &RawJson) {
    let mut form = Form::new("?");
    form.schema = json.clone();
    let content = form.fill(Object::new());
    assert!(form.fields().is_ok() && content.is_empty());
}

fn read_catalogue(json: &RawJson) {
    let catalogue = Catalogue::read(json).expect("a catalogue");
    let tools = catalogue.tools.clone().unwrap_or_default();
    let tools = tools.iter().flat_map(|tool| ["a", "b"].map(|server| (server, tool.name.clone())));
    black_box(ToolNames::new(tools, NameRules::COMMON, Prefix::Colliding, |_, _| None));
    black_box(catalogue.write());
}

fn list<T: Display>(n: usize, element: impl Fn(usize) -> T) -> String {
    let elements: Vec<String> = (0..n).map(|n| element(n).to_string()).collect();
    elements.join(",")
}

fn page(key: &str, n: usize, element: impl Fn(usize) -> String) -> String {
    format!(r#"{{"{key}":[{}]}}"#, list(n, element))
}

/// Returns an object with a list as its last member.
fn with_list(object: &str, key: &str, n: usize, element: impl Fn(usize) -> String) -> String {
    format!(r#"{},"{key}":[{}]}}"#, &object[..object.len() - 1], list(n, element))
}

fn members(n: usize) -> String {
    format!("{{{}}}", list(n, |n| format!(r#""member {n}":{n}"#)))
}

fn named(n: usize) -> String {
    format!(r#"{{"name":"{n}"}}"#)
}

fn tool(n: usize) -> String {
    format!(r#"{{"name":"{n}","inputSchema":{{"type":"object"}}}}"#)
}

fn odd_tool(n: usize) -> String {
    let members = members(n);
    format!(r#"{},{}"#, &tool(0)[..tool(0).len() - 1], &members[1..])
}

fn annotated(n: usize) -> String {
    let property = |n| format!(r#""{n}":{{"type":"string","x-mcp-header":"H{n}"}}"#);
    let properties = list(n, property);
    format!(r#"{{"name":"t","inputSchema":{{"type":"object","properties":{{{properties}}}}}}}"#)
}

fn resource(n: usize) -> String {
    format!(r#"{{"uri":"x:{n}","name":"{n}"}}"#)
}

fn template(n: usize) -> String {
    format!(r#"{{"uriTemplate":"x:{n}/{{a}}","name":"{n}"}}"#)
}

fn block() -> String {
    r#"{"type":"text","text":"t"}"#.into()
}

fn message() -> String {
    format!(r#"{{"role":"user","content":{}}}"#, block())
}

fn form(n: usize) -> String {
    let required = list(n, |n| format!(r#""{n}""#));
    let properties = list(n, |n| format!(r#""{n}":{{"type":"string"}}"#));
    format!(r#"{{"type":"object","required":[{required}],"properties":{{{properties}}}}}"#)
}
