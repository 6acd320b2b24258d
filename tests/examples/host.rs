#![forbid(unsafe_code)]
//! An agent's host for tools: it keeps the servers of a configuration file connected, and gives
//! their tools to a model as one list.
//!
//! ```text
//! cargo run --example host -- mcp.json
//! ```

use mcp_blocking::config_file::{ConfigFile, Trust, Variable};
use mcp_blocking::mcp_supervisor::{NameRules, NamedTool, Prefix};
use mcp_blocking::{
    ClientOptions, ElicitResult, FieldKind, Form, Object, RawJson, ServerSpec, ServerState, Stderr, Supervisor,
    SupervisorEvent, SupervisorOptions, escaped, supervise, tools,
};
use std::collections::BTreeSet;
use std::io::{BufRead, Write, stdin, stdout};
use std::{env, error::Error, fs, sync::Mutex, thread};

fn main() -> Result<(), Box<dyn Error>> {
    let path = env::args().nth(1).ok_or("usage: host FILE")?;
    let mut met = BTreeSet::new();
    let options = SupervisorOptions::new()
        .clients(|server| {
            let server = server.to_owned();
            ClientOptions::new().stderr(Stderr::Discard).on_elicit(move |form| ask(&server, &form))
        })
        .on_event(move |event| match event {
            SupervisorEvent::Up { key, .. } => drop(met.insert(key)),
            SupervisorEvent::Reconnecting { key, cause, .. } => {
                let next = if met.contains(&key) { "it is connected again" } else { "it is tried again" };
                eprintln!("[{key}: {cause}; {next}]");
            }
            SupervisorEvent::Down { key, cause, .. } => eprintln!("[{key} is down: {cause}]"),
            _ => {}
        });
    let supervisor = supervise(options)?;
    add_servers(&supervisor, &fs::read_to_string(path)?)?;
    supervisor.settled();
    loop {
        println!("{}", status(&supervisor));
        let Some(said) = read_line("> ") else { break };
        // The lists may have changed since the last turn.
        let names = supervisor.tool_names(NameRules::COMMON, Prefix::Colliding);
        let known: Vec<&str> = names.iter().map(|tool| tool.name.as_str()).collect();
        let calls = model(&known, &said);
        if calls.is_empty() {
            println!("The model knows these tools: {}", known.join(", "));
        }
        // A model may call several tools at once.
        thread::scope(|scope| {
            for (name, arguments) in calls {
                let (supervisor, tool) = (&supervisor, names.find(&name).cloned());
                scope.spawn(move || match tool {
                    Some(tool) => println!("{name}: {}", call(supervisor, &tool, &arguments)),
                    None => println!("{name}: there is no such tool"),
                });
            }
        });
    }
    supervisor.close();
    Ok(())
}

/// Adds the servers of a file that the user wrote. An error concerns one of them.
fn add_servers(supervisor: &Supervisor, text: &str) -> Result<(), Box<dyn Error>> {
    let lookup = |variable: Variable<'_>| match variable {
        Variable::Environment(name) => env::var(name).ok(),
        Variable::EnvFile(path) | Variable::File(path) => fs::read_to_string(path).ok(),
        _ => None,
    };
    for (name, server) in ConfigFile::parse(text)?.servers() {
        let config = match server {
            Ok(server) if server.is_disabled() => continue,
            Ok(server) => server.client_config(&lookup, Trust::Trusted),
            Err(why) => Err(why.clone()),
        };
        match config {
            Ok(config) => supervisor.add(name, ServerSpec::new(config))?,
            Err(why) => eprintln!("[{why}]"),
        }
    }
    Ok(())
}

/// Calls a tool. The model gets errors too: it may correct itself.
fn call(supervisor: &Supervisor, tool: &NamedTool<String>, arguments: &Object) -> String {
    match supervisor.call(&tool.server, tools::call(&tool.tool).arguments(arguments)) {
        Ok(result) => escaped(result.first_text().unwrap_or("a result without text")).to_string(),
        Err(why) => format!("error: {why}"),
    }
}

/// Takes the place of a language model: it calls the tools that the user names, as in
/// `add a=1 b=2; echo text=hi`.
fn model(known: &[&str], said: &str) -> Vec<(String, Object)> {
    let parts = said.split(';').map(|part| part.split_whitespace().collect::<Vec<_>>());
    let calls = parts.filter_map(|words| {
        let (name, words) = words.split_first()?;
        let pairs = words.iter().filter_map(|word| word.split_once('='));
        let value = |text: &str| RawJson::parse(text.to_owned()).unwrap_or_else(|_| text.into());
        let arguments = pairs.fold(Object::new(), |object, (key, text)| object.with(key, value(text)));
        known.contains(name).then(|| ((*name).to_owned(), arguments))
    });
    calls.collect()
}

/// Returns the state of each server in one line.
fn status(supervisor: &Supervisor) -> String {
    let states = supervisor.keys().into_iter().map(|key| {
        let tools = supervisor.catalogue(&key).tools.map_or(0, |tools| tools.len());
        let state = match supervisor.health(&key).map(|health| health.state) {
            Some(ServerState::Ready { .. }) => "ready",
            Some(ServerState::Down { .. }) | None => "down",
            Some(_) => "connecting",
        };
        format!("{key}: {state}, {tools} tools")
    });
    states.collect::<Vec<_>>().join(" | ")
}

/// Asks the user what a server wants to know. One question at a time: an answer is for its server.
fn ask(server: &str, form: &Form) -> ElicitResult {
    static TERMINAL: Mutex<()> = Mutex::new(());
    let _terminal = TERMINAL.lock();
    println!("{server} asks: {}", escaped(&form.message));
    let mut content = form.defaults();
    for field in form.fields().unwrap_or_default() {
        let Some(answer) = read_line(&format!("{}: ", escaped(&field.name))) else { return ElicitResult::Cancel };
        match field.kind {
            _ if answer.is_empty() => {}
            FieldKind::Text { .. } | FieldKind::Choice(_) => content.set(&field.name, answer.as_str()),
            _ => content.set(&field.name, RawJson::parse(answer).unwrap_or_else(|_| "".into())),
        }
    }
    match form.check(&content) {
        Ok(()) => ElicitResult::accept(&content),
        Err(_) => ElicitResult::Decline,
    }
}

/// Reads a line of the user. `None` at the end of the input.
fn read_line(prompt: &str) -> Option<String> {
    print!("{prompt}");
    stdout().flush().ok()?;
    let mut line = String::new();
    let read = stdin().lock().read_line(&mut line).ok()?;
    (read > 0).then(|| line.trim().to_owned())
}
