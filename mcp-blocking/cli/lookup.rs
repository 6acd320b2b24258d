//! The values of the variables of a configuration file.

use crate::ask;
use crate::files;
use crate::output::one_line;
use mcp_blocking::mcp_proto::config_file::{ConfigFile, Variable};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::env;
use std::path::Path;

/// Looks up the variables of one file. Each question is asked once.
pub(crate) struct Lookup<'a> {
    file: &'a ConfigFile,
    path: &'a Path,
    answers: RefCell<BTreeMap<String, Option<String>>>,
    /// Why some have no value.
    reasons: RefCell<Vec<String>>,
}

impl<'a> Lookup<'a> {
    /// `path` is that of the file.
    pub(crate) fn new(file: &'a ConfigFile, path: &'a Path) -> Self {
        Self { file, path, answers: RefCell::default(), reasons: RefCell::default() }
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

    fn answer(&self, id: &str) -> Option<String> {
        if let Some(known) = self.answers.borrow().get(id) {
            return known.clone();
        }
        let prompt = self.file.inputs().flatten().find(|prompt| prompt.id == id)?;
        let answer = ask::input(prompt);
        self.answers.borrow_mut().insert(id.to_owned(), answer.clone());
        answer
    }
}

fn home() -> Option<String> {
    env::var("HOME").or_else(|_| env::var("USERPROFILE")).ok()
}
