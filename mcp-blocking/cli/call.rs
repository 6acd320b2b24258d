//! One request: `mcp call`, `read`, `prompt` and `complete`.

use crate::arguments;
use crate::exit;
use crate::failure::Failure;
use crate::options::{Call, Complete, Prompt, Read};
use crate::output::{self, json, line, note, one_line, text};
use crate::session;
use mcp_blocking::mcp_proto::model::content::Role;
use mcp_blocking::mcp_proto::redact::Url;
use mcp_blocking::{
    CallError, CallToolResult, Client, Content, Object, ProtocolVersion, Tool, completion, prompts, resources, tools,
};
use std::collections::VecDeque;
use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

/// Takes a word of the command line.
fn take(words: &mut VecDeque<String>, what: &str) -> Result<String, Failure> {
    words.pop_front().ok_or_else(|| Failure::usage(format!("{what} is missing")))
}

fn no_more(words: &mut VecDeque<String>) -> Result<(), Failure> {
    match words.pop_front() {
        Some(word) => Err(Failure::usage(format!("`{}` is one word too many", output::word(&word)))),
        None => Ok(()),
    }
}

pub(crate) fn tool(call: Call) -> Result<ExitCode, Failure> {
    let (server, mut words) = call.reach.server(call.words)?;
    let name = take(&mut words, "TOOL")?;
    let client = session::open(server, &call.reach)?;
    let result = call_tool(&client, &name, words)?;
    client.close();
    if call.format.json {
        json(result.write())?;
    } else {
        show(&result)?;
    }
    Ok(code(&result))
}

/// Returns the exit code of a call with this result.
pub(crate) fn code(result: &CallToolResult) -> ExitCode {
    if result.is_error { ExitCode::from(exit::FAULT) } else { ExitCode::SUCCESS }
}

/// Calls a tool with arguments that fit its schema.
pub(crate) fn call_tool(
    client: &Client,
    name: &str,
    words: impl IntoIterator<Item = String>,
) -> Result<CallToolResult, Failure> {
    let tool = find(client, name)?;
    let arguments = arguments::object(words, &tool.input_schema)?;
    arguments::check(&tool, &arguments)?;
    let call = tools::call(name).arguments(&arguments).on_progress(session::progress()).on_task(session::task());
    let result = client.call(call);
    session::end_progress();
    result.map_err(Failure::of(format!("tools/call {name}")))
}

/// Maximum number of tools that an error names.
const NAMED: usize = 200;

/// Returns the tool of this name.
fn find(client: &Client, name: &str) -> Result<Tool, Failure> {
    let mut names = Vec::new();
    for tool in client.pages(tools::list()) {
        let tool = tool.map_err(Failure::of("tools/list"))?;
        if tool.name == name {
            return Ok(tool);
        }
        if names.len() < NAMED {
            names.push(one_line(&tool.name));
        } else if names.len() == NAMED {
            names.push("…".to_owned());
        }
    }
    let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    Err(Failure::usage(format!("the server has no tool {}; its tools: {names}", output::word(name))))
}

/// Prints the result of a tool for people.
pub(crate) fn show(result: &CallToolResult) -> Result<(), Failure> {
    if result.is_error {
        note("mcp: the tool reports an error:");
    }
    for content in &result.content {
        show_content(content)?;
    }
    if let (Some(structured), true) = (&result.structured, result.content.is_empty()) {
        text(structured.as_str())?;
    }
    Ok(())
}

fn show_content(content: &Content) -> Result<(), Failure> {
    match content {
        Content::Text { text: content, .. } => text(content)?,
        Content::Image { data, mime_type, .. } | Content::Audio { data, mime_type, .. } => {
            line(&format!("[{}, {} bytes in Base64; --json shows them]", one_line(mime_type), data.len()))?;
        }
        Content::Resource { resource, .. } => match resource.as_text() {
            Some(content) => text(content)?,
            None => line(&format!("[resource {}; --json shows it]", one_line(resource.uri())))?,
        },
        Content::ResourceLink { uri, name, .. } => line(&format!("[link to {}: {}]", one_line(name), one_line(uri)))?,
        _ => line("[content of another type; --json shows it]")?,
    }
    Ok(())
}

/// Returns the revision of a connected client.
fn version(client: &Client) -> ProtocolVersion {
    client.server().map_or(ProtocolVersion::V2026_07_28, |info| info.version)
}

pub(crate) fn read(read: Read) -> Result<ExitCode, Failure> {
    let (server, mut words) = read.reach.server(read.words)?;
    let uri = take(&mut words, "URI")?;
    no_more(&mut words)?;
    let client = session::open(server, &read.reach)?;
    let version = version(&client);
    let request = format!("resources/read {}", Url(&uri));
    let result = client.call(resources::read(&uri)).map_err(Failure::of(request.as_str()))?;
    client.close();
    if read.format.json {
        json(result.write(version))?;
        return Ok(ExitCode::SUCCESS);
    }
    for contents in &result.contents {
        match contents.as_text() {
            Some(content) => text(content)?,
            None => {
                let bytes = contents.to_bytes().map_err(CallError::Decode).map_err(Failure::of(request.as_str()))?;
                if io::stdout().is_terminal() {
                    line(&format!("[{} bytes; redirect standard output to a file]", bytes.len()))?;
                } else {
                    io::stdout().lock().write_all(&bytes)?;
                }
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn prompt(prompt: Prompt) -> Result<ExitCode, Failure> {
    let (server, mut words) = prompt.reach.server(prompt.words)?;
    let name = take(&mut words, "NAME")?;
    let mut call = prompts::get(&name);
    for word in words {
        let (key, value) = word
            .split_once('=')
            .ok_or_else(|| Failure::usage(format!("`{}` is no argument: key=value", one_line(&word))))?;
        call = call.argument(key, value);
    }
    let client = session::open(server, &prompt.reach)?;
    let result = client.call(call).map_err(Failure::of(format!("prompts/get {name}")))?;
    let version = version(&client);
    client.close();
    if prompt.format.json {
        let messages: Vec<_> = result.messages.iter().map(|message| message.write(version)).collect();
        json(Object::new().with_opt("description", result.description.as_deref()).with("messages", messages))?;
        return Ok(ExitCode::SUCCESS);
    }
    for message in &result.messages {
        line(match message.role {
            Role::User => "user:",
            Role::Assistant => "assistant:",
        })?;
        show_content(&message.content)?;
    }
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn complete(complete: Complete) -> Result<ExitCode, Failure> {
    let (server, mut words) = complete.reach.server(complete.words)?;
    let of = take(&mut words, "PROMPT or TEMPLATE")?;
    let argument = take(&mut words, "ARGUMENT")?;
    let value = words.pop_front().unwrap_or_default();
    no_more(&mut words)?;
    let call = if of.contains("://") { completion::template(&of) } else { completion::prompt(&of) };
    let client = session::open(server, &complete.reach)?;
    let request = format!("completion/complete {argument}");
    let result = client.call(call.argument(&argument, &value)).map_err(Failure::of(request))?;
    client.close();
    if complete.format.json {
        json(result.write())?;
        return Ok(ExitCode::SUCCESS);
    }
    for value in &result.values {
        text(value)?;
    }
    if result.has_more {
        note("mcp: the server has more values");
    }
    Ok(ExitCode::SUCCESS)
}
