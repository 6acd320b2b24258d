//! The values of the variables of a configuration file.

use crate::ask;
use crate::failure::Failure;
use crate::files;
use crate::output::one_line;
use mcp_blocking::mcp_supervisor::config_file::{ConfigFile, InputKind, InputPrompt, Variable};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::env;
use std::path::Path;

/// Looks up the variables of one file. Each question is asked once.
pub(crate) struct Lookup<'a> {
    file: &'a ConfigFile,
    path: &'a Path,
    given: BTreeMap<&'a str, &'a str>,
    answers: RefCell<BTreeMap<String, Option<String>>>,
    /// Why some have no value.
    reasons: RefCell<Vec<String>>,
}

impl<'a> Lookup<'a> {
    /// `path` is that of the file, and `given` are the answers of the command line, as `id=value`.
    pub(crate) fn new(file: &'a ConfigFile, path: &'a Path, given: &'a [String]) -> Result<Self, Failure> {
        let mut answers = BTreeMap::new();
        for answer in given {
            let (id, value) = answer.split_once('=').ok_or_else(|| Failure::usage("--input is written as ID=VALUE"))?;
            if !file.inputs().flatten().any(|prompt| prompt.id == id) {
                let known: Vec<String> = file.inputs().flatten().map(|prompt| one_line(&prompt.id)).collect();
                let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                return Err(Failure::usage(format!("the file has no input {}; its inputs: {known}", one_line(id))));
            }
            answers.insert(id, value);
        }
        Ok(Self { file, path, given: answers, answers: RefCell::default(), reasons: RefCell::default() })
    }

    /// Returns the value of a variable.
    pub(crate) fn value(&self, variable: Variable<'_>) -> Option<String> {
        let folder = || env::current_dir().ok();
        match variable {
            Variable::Environment(name) => env::var(name).ok(),
            Variable::File(name) | Variable::EnvFile(name) => self.content(name),
            Variable::Input(id) => self.answer(id),
            Variable::Editor("workspaceFolder" | "cwd") => folder()?.into_os_string().into_string().ok(),
            Variable::Editor("workspaceFolderBasename") => Some(folder()?.file_name()?.to_str()?.to_owned()),
            Variable::Editor("userHome") => home(),
            Variable::Editor("pathSeparator" | "/") => Some(std::path::MAIN_SEPARATOR.to_string()),
            _ => None,
        }
    }

    /// Returns why variables have no value, each as the end of a sentence.
    pub(crate) fn reasons(&self) -> String {
        self.reasons.borrow().iter().map(|why| format!("; {why}")).collect()
    }

    /// Returns the content of a file. A relative path is one in the folder of the configuration.
    fn content(&self, name: &str) -> Option<String> {
        let path = match name.strip_prefix("~/") {
            Some(below) => Path::new(&home()?).join(below),
            None => self.path.parent().unwrap_or(Path::new("")).join(name),
        };
        let read = files::named(&path);
        read.map_err(|why| self.reasons.borrow_mut().push(format!("{}: {why}", one_line(name)))).ok()
    }

    /// Returns an answer that was given, if the file allows it.
    fn allowed(&self, prompt: &InputPrompt, given: String) -> Option<String> {
        if let InputKind::Pick(options) = &prompt.kind
            && !options.contains(&given)
        {
            let options: Vec<_> = options.iter().map(|option| one_line(option)).collect();
            let why = format!("the input {} is one of {}", one_line(&prompt.id), options.join(", "));
            self.reasons.borrow_mut().push(why);
            return None;
        }
        Some(given)
    }

    fn answer(&self, id: &str) -> Option<String> {
        if let Some(known) = self.answers.borrow().get(id) {
            return known.clone();
        }
        let prompt = self.file.inputs().flatten().find(|prompt| prompt.id == id)?;
        let variable = variable(id);
        let given = self.given.get(id).map(|value| (*value).to_owned()).or_else(|| env::var(&variable).ok());
        let answer = match given {
            Some(given) => self.allowed(prompt, given),
            None => ask::input(prompt).or_else(|| {
                let id = one_line(id);
                let why = format!("the input {id} needs --input {id}=VALUE, or the variable {variable}");
                self.reasons.borrow_mut().push(why);
                None
            }),
        };
        self.answers.borrow_mut().insert(id.to_owned(), answer.clone());
        answer
    }
}

/// Returns the name of the variable of the environment that answers this input.
fn variable(id: &str) -> String {
    let letter = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
    format!("MCP_INPUT_{}", id.chars().map(letter).collect::<String>())
}

fn home() -> Option<String> {
    env::var("HOME").or_else(|_| env::var("USERPROFILE")).ok()
}
