//! `mcp list`: what a server offers.

use crate::arguments::usage;
use crate::failure::Failure;
use crate::login::Pages;
use crate::options::{Kind, List};
use crate::output::{self, Colour, json, line, one_line, summary};
use crate::session;
use clap::ValueEnum;
use mcp_blocking::mcp_proto::call::PagedMethod;
use mcp_blocking::mcp_supervisor::{Catalogue, Listing};
use mcp_blocking::{
    Call, CallError, Client, Denial, Direction, Object, ServerInfo, WireMessage, prompts, resources, tools,
};
use std::io;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The indentation of a description, and of the further lines of an element.
const INDENT: usize = 6;

/// Returns a hook that refuses the messages of the server beyond 64 MiB, all together: a server can
/// name one page of a list after the other.
pub(crate) fn bounded() -> impl Fn(&WireMessage<'_>) -> Result<(), Denial> {
    const MAX: usize = 64 << 20;
    let read = AtomicUsize::new(0);
    move |message| {
        if message.direction() == Direction::Out {
            return Ok(());
        }
        let before = read.fetch_add(message.size(), Ordering::Relaxed);
        if before.saturating_add(message.size()) <= MAX {
            return Ok(());
        }
        Err(Denial::new(format!("the lists are larger than {} MiB: the rest was not read", MAX >> 20)))
    }
}

pub(crate) fn run(list: List) -> Result<ExitCode, Failure> {
    let hints = list.reach.hints(&list.words);
    let (server, mut words) = list.reach.server(list.words)?;
    let kind = words.pop_front().map(|word| {
        Kind::from_str(&word, true).map_err(|_| {
            Failure::usage(format!("`{}` is no kind: tools, resources, templates or prompts", output::word(&word)))
        })
    });
    let kind = kind.transpose()?;
    if let Some(word) = words.pop_front() {
        return Err(Failure::usage(format!("`{}` is one word too many", output::word(&word))));
    }
    let options = session::options(&list.reach, &server, Pages::OnTerminal)?.on_message(bounded());
    let client = session::connect(server, options)?;
    let (info, fetched) = (client.server(), fetch(&client, kind));
    client.close();
    if list.format.json {
        let error = fetched.failure.as_ref().map(|failure| failure.to_json(failure.advice(&hints)));
        json(described(info.as_ref()).with_all(&fetched.catalogue.write()).with_opt("error", error))?;
        return Ok(fetched.failure.map_or(ExitCode::SUCCESS, |failure| failure.code()));
    }
    show(info.as_ref(), &fetched)?;
    fetched.failure.map_or(Ok(ExitCode::SUCCESS), Err)
}

/// What was fetched of a server, and why not all of it.
#[derive(Default)]
pub(crate) struct Fetched {
    /// The lists, as far as they were read. A list that is not there is empty.
    pub(crate) catalogue: Catalogue,
    /// The methods that the server does not have, although it declares what they belong to.
    pub(crate) missing: Vec<&'static str>,
    /// The first failure of another kind.
    pub(crate) failure: Option<Failure>,
    /// The server did not answer: no further list is asked for.
    is_over: bool,
}

/// The method of each list.
const TOOLS: &str = "tools/list";
const RESOURCES: &str = "resources/list";
const TEMPLATES: &str = "resources/templates/list";
const PROMPTS: &str = "prompts/list";

/// Fetches the lists that the server declares. One that fails costs no other one.
pub(crate) fn fetch(client: &Client, kind: Option<Kind>) -> Fetched {
    let mut fetched = Fetched::default();
    let Some(info) = client.server() else { return fetched };
    let is_wanted = |one: Kind| kind.is_none_or(|kind| kind == one);
    let (tools, resources, prompts) =
        (info.capabilities.tools.is_some(), info.capabilities.resources.is_some(), info.capabilities.prompts.is_some());
    if is_wanted(Kind::Tools) && tools {
        fetched.load(client, TOOLS, tools::list(), Listing::Tools);
    }
    if is_wanted(Kind::Resources) && resources {
        fetched.load(client, RESOURCES, resources::list(), Listing::Resources);
    }
    if is_wanted(Kind::Templates) && resources {
        fetched.load(client, TEMPLATES, resources::templates(), Listing::ResourceTemplates);
    }
    if is_wanted(Kind::Prompts) && prompts {
        fetched.load(client, PROMPTS, prompts::list(), Listing::Prompts);
    }
    fetched
}

impl Fetched {
    /// Fetches one list, and keeps what was read of it before an error.
    fn load<M: PagedMethod>(
        &mut self,
        client: &Client,
        method: &'static str,
        list: Call<M>,
        listing: fn(Arc<[M::Element]>) -> Listing,
    ) {
        if self.is_over {
            return;
        }
        let (mut elements, mut error) = (Vec::new(), None);
        for element in client.pages(list) {
            match element {
                Ok(element) => elements.push(element),
                Err(e) => error = Some(e),
            }
        }
        let is_missing = error.as_ref().is_some_and(CallError::is_method_not_found);
        let (is_missing, is_empty) = (is_missing && elements.is_empty(), elements.is_empty());
        if error.is_none() || is_missing || !is_empty {
            self.catalogue.set(listing(elements.into()));
        }
        match error {
            None => {}
            Some(_) if is_missing => self.missing.push(method),
            Some(error) => {
                self.is_over = !is_answer(&error);
                self.failure.get_or_insert_with(|| Failure::of(method)(error));
            }
        }
    }
}

/// Returns whether the server answers, so that another request can succeed.
const fn is_answer(error: &CallError) -> bool {
    matches!(error, CallError::Rpc(_) | CallError::Decode(_) | CallError::Http(_) | CallError::ContentType { .. })
}

/// Returns the members of a result that say which server it is from: `server` with what it says of
/// itself, and `revision`.
fn described(info: Option<&ServerInfo>) -> Object {
    let Some(info) = info else { return Object::new() };
    let server = info.implementation.as_ref().map(|of| {
        let version = Some(&of.version).filter(|version| !version.is_empty());
        Object::new()
            .with("name", &of.name)
            .with_opt("version", version)
            .with_opt("title", of.title.as_ref())
            .with_opt("description", of.description())
    });
    Object::new().with_opt("server", server).with("revision", info.version.as_str())
}

/// Returns the name, the version and the revision of a server, as a line.
pub(crate) fn headline(info: &ServerInfo) -> String {
    let of = info.implementation.as_ref();
    let name = of.map_or("a server without a name", |of| of.name.as_str());
    let version = of.filter(|of| !of.version.is_empty()).map(|of| format!(" {}", one_line(&of.version)));
    format!("{}{}, revision {}", one_line(name), version.unwrap_or_default(), info.version.as_str())
}

/// Prints lists for people.
pub(crate) fn show(info: Option<&ServerInfo>, fetched: &Fetched) -> Result<(), Failure> {
    let Fetched { catalogue, missing, .. } = fetched;
    if let Some(info) = info {
        line(&output::painted(&headline(info), Colour::Bold, &io::stdout()))?;
    }
    let missing = |method: &'static str| missing.contains(&method).then_some(method);
    if let Some(tools) = &catalogue.tools {
        section(
            "tools",
            missing(TOOLS),
            tools.iter().map(|tool| {
                (
                    format!("{}({})", one_line(&tool.name), usage(tool)),
                    tool.description.as_deref().or(tool.title.as_deref()),
                )
            }),
        )?;
    }
    if let Some(resources) = &catalogue.resources {
        section(
            "resources",
            missing(RESOURCES),
            resources.iter().map(|resource| {
                let name = resource.description.as_deref().or(resource.title.as_deref()).unwrap_or(&resource.name);
                (one_line(&resource.uri), Some(name))
            }),
        )?;
    }
    if let Some(templates) = &catalogue.resource_templates {
        section(
            "templates",
            missing(TEMPLATES),
            templates.iter().map(|template| {
                let name = template.description.as_deref().or(template.title.as_deref()).unwrap_or(&template.name);
                (one_line(&template.uri_template), Some(name))
            }),
        )?;
    }
    if let Some(prompts) = &catalogue.prompts {
        section(
            "prompts",
            missing(PROMPTS),
            prompts.iter().map(|prompt| {
                let arguments: Vec<_> = prompt
                    .arguments
                    .iter()
                    .map(|argument| format!("{}{}", one_line(&argument.name), if argument.required { "" } else { "?" }))
                    .collect();
                let shown = format!("{}({})", one_line(&prompt.name), arguments.join(", "));
                (shown, prompt.description.as_deref().or(prompt.title.as_deref()))
            }),
        )?;
    }
    Ok(())
}

/// Prints a list, or the method that the server does not have.
fn section<'a>(
    name: &str,
    missing: Option<&str>,
    items: impl Iterator<Item = (String, Option<&'a str>)>,
) -> Result<(), Failure> {
    if let Some(method) = missing {
        return Ok(line(&format!("\n{name}: none (the server has no {method})"))?);
    }
    let items: Vec<_> = items.collect();
    let name = output::painted(&format!("{name}:"), Colour::Bold, &io::stdout());
    line(&format!("\n{name} {}", items.len()))?;
    for (item, description) in items {
        line(&output::wrapped(&format!("  {item}"), INDENT))?;
        if let Some(description) = description.filter(|description| !description.trim().is_empty()) {
            line(&format!("{:INDENT$}{}", "", summary(description, output::width() - INDENT)))?;
        }
    }
    Ok(())
}
