//! Variables in the texts of a configuration file.

use super::error::ConfigErrorKind;
use super::position::Position;
use alloc::collections::BTreeSet;
use alloc::string::String;

/// A value that a file refers to. The application looks it up: this crate reads no environment and
/// no file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[non_exhaustive]
pub enum Variable<'a> {
    /// A variable of the environment: `${NAME}`, `${NAME:-default}`, `${env:NAME}`; `$NAME` in a
    /// file of Gemini CLI; `{env:NAME}` in a file of opencode.
    Environment(&'a str),
    /// An answer of the user: `${input:id}`. See [`ConfigFile::inputs`](super::ConfigFile::inputs).
    Input(&'a str),
    /// A value of an editor, as written between the braces: `workspaceFolder`,
    /// `workspaceFolderBasename`, `userHome`, `pathSeparator`, `/`, `cwd`, another one that VS Code
    /// predefines, such as `execPath`, or one with a colon, such as `config:python.path`. Also
    /// `extensionPath` and `workspacePath` of an extension of Gemini CLI, and `user_config.NAME` of
    /// a plugin of Claude Code.
    Editor(&'a str),
    /// The content of a file: `${file:path}`, or `{file:path}` in a file of opencode. White space
    /// around it is left out, such as the end of its last line. A path that begins with `~/` is one
    /// in the home directory.
    File(&'a str),
    /// The content of the file of variables at this path: the member `envFile`.
    EnvFile(&'a str),
}

/// Looks a variable up. `None` if it has no value.
pub(super) type Lookup<'a> = &'a dyn Fn(Variable<'_>) -> Option<String>;

/// The variables of editors without a colon. A `${…}` with another name is of the environment.
const OF_EDITORS: [&str; 22] = [
    "workspaceFolder",
    "workspaceFolderBasename",
    "userHome",
    "pathSeparator",
    "/",
    "cwd",
    "file",
    "fileWorkspaceFolder",
    "fileBasename",
    "fileBasenameNoExtension",
    "fileExtname",
    "fileDirname",
    "fileDirnameBasename",
    "relativeFile",
    "relativeFileDirname",
    "lineNumber",
    "columnNumber",
    "selectedText",
    "execPath",
    "defaultBuildTask",
    // Extensions of Gemini CLI.
    "extensionPath",
    "workspacePath",
];

/// What the options of a plugin of Claude Code begin with.
const OF_PLUGINS: &str = "user_config.";

/// How texts refer to variables.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Forms {
    /// Not at all.
    None,
    /// `${…}`.
    Braces,
    /// `${…}` and `$NAME`.
    Dollar,
    /// `{env:NAME}` and `{file:path}`.
    OpenCode,
}

/// A part of a text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Part<'a> {
    Text(&'a str),
    Variable(Variable<'a>, Option<&'a str>),
}

/// A text of a file, as written.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Template {
    pub(super) text: String,
    pub(super) at: Position,
    /// The path below the server.
    pub(super) path: String,
}

impl Template {
    /// Checks the text. Returns whether it refers to a variable.
    ///
    /// # Errors
    /// A reference that cannot be read.
    pub(super) fn check(&self, forms: Forms) -> Result<bool, ConfigErrorKind> {
        let mut parts = Parts { rest: &self.text, forms };
        parts.try_fold(false, |any, part| Ok(any | matches!(part?, Part::Variable(..))))
    }

    /// Returns the variables that it refers to.
    pub(super) fn variables(&self, forms: Forms) -> impl Iterator<Item = Variable<'_>> {
        Parts { rest: &self.text, forms }.filter_map(|part| match part {
            Ok(Part::Variable(variable, _)) => Some(variable),
            Ok(Part::Text(_)) | Err(_) => None,
        })
    }

    /// Returns the text with the values of its variables. `${NAME}` and `$NAME` without a value
    /// stay if `of_program` has the name: the program that gets the text knows the value.
    ///
    /// # Errors
    /// Another variable without a value and without a default.
    pub(super) fn resolve(
        &self,
        forms: Forms,
        lookup: Lookup<'_>,
        of_program: &BTreeSet<&str>,
    ) -> Result<String, ConfigErrorKind> {
        let mut text = String::with_capacity(self.text.len());
        let mut parts = Parts { rest: &self.text, forms };
        loop {
            let before = parts.rest;
            let Some(part) = parts.next() else { return Ok(text) };
            match part? {
                Part::Text(part) => text.push_str(part),
                Part::Variable(variable, default) => match (lookup(variable), default) {
                    (Some(value), _) if matches!(variable, Variable::File(_)) => text.push_str(value.trim()),
                    (Some(value), _) => text.push_str(&value),
                    (None, Some(default)) => text.push_str(default),
                    (None, None) => {
                        let name = variable.name();
                        let written = &before[..before.len() - parts.rest.len()];
                        // No program expands `${env:NAME}`.
                        let is_bare = written.trim_matches(['$', '{', '}']) == name;
                        let is_kept = matches!(variable, Variable::Environment(_)) && is_bare;
                        if !is_kept || !of_program.contains(name) {
                            return Err(ConfigErrorKind::UnknownVariable(name.into()));
                        }
                        text.push_str(written);
                    }
                },
            }
        }
    }
}

impl<'a> Variable<'a> {
    /// Returns its name, id or path.
    pub const fn name(self) -> &'a str {
        match self {
            Self::Environment(name) | Self::Input(name) | Self::Editor(name) | Self::File(name) => name,
            Self::EnvFile(path) => path,
        }
    }
}

/// The parts of a text, one after the other. After an error there are none.
struct Parts<'a> {
    rest: &'a str,
    forms: Forms,
}

impl<'a> Iterator for Parts<'a> {
    type Item = Result<Part<'a>, ConfigErrorKind>;

    fn next(&mut self) -> Option<Self::Item> {
        let sign = match self.forms {
            Forms::None => None,
            Forms::Braces | Forms::Dollar => self.rest.find('$'),
            Forms::OpenCode => self.rest.find('{'),
        };
        match sign {
            Some(0) => Some(self.reference()),
            _ if self.rest.is_empty() => None,
            sign => Some(Ok(self.text(sign.unwrap_or(self.rest.len())))),
        }
    }
}

impl<'a> Parts<'a> {
    /// Takes this number of bytes as text.
    fn text(&mut self, len: usize) -> Part<'a> {
        let (text, rest) = self.rest.split_at(len);
        self.rest = rest;
        Part::Text(text)
    }

    /// Takes what a sign at the beginning opens.
    fn reference(&mut self) -> Result<Part<'a>, ConfigErrorKind> {
        let whole = self.rest;
        let found = if let Some(inside) = whole.strip_prefix("${").filter(|_| self.forms != Forms::OpenCode) {
            let found = inside.split_once('}').ok_or(ConfigErrorKind::Unterminated);
            found.and_then(|(inside, rest)| Ok((in_braces(inside)?, rest)))
        } else if self.forms == Forms::Dollar {
            let name = whole[1..].split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next().unwrap_or_default();
            match name {
                "" => return Ok(self.text(1)),
                name => Ok((Part::Variable(Variable::Environment(name), None), &whole[1 + name.len()..])),
            }
        } else if self.forms == Forms::OpenCode {
            let (kind, inside): (fn(&'a str) -> Variable<'a>, _) = match whole.strip_prefix("{env:") {
                Some(inside) => (Variable::Environment, inside),
                None => match whole.strip_prefix("{file:") {
                    Some(inside) => (Variable::File, inside),
                    None => return Ok(self.text(1)),
                },
            };
            match inside.split_once('}') {
                Some((name, rest)) => named(kind(name)).map(|variable| (Part::Variable(variable, None), rest)),
                // No later reference has an end either.
                None => return Ok(self.text(whole.len())),
            }
        } else {
            return Ok(self.text(1));
        };
        match found {
            Ok((part, rest)) => {
                self.rest = rest;
                Ok(part)
            }
            Err(why) => {
                self.rest = "";
                Err(why)
            }
        }
    }
}

/// Returns what `${…}` refers to.
fn in_braces(inside: &str) -> Result<Part<'_>, ConfigErrorKind> {
    if let Some(id) = inside.strip_prefix("input:") {
        return Ok(Part::Variable(named(Variable::Input(id))?, None));
    }
    let (name, default) = match inside.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (inside, None),
    };
    // The first `}` ends the reference, so that another one inside would be cut.
    if default.is_some_and(|default| default.contains("${")) {
        return Err(ConfigErrorKind::BadVariable);
    }
    let variable = match name.strip_prefix("env:") {
        Some(name) => Variable::Environment(name),
        None if name.starts_with("file:") => Variable::File(&name["file:".len()..]),
        None if name.contains(':') || name.starts_with(OF_PLUGINS) || OF_EDITORS.contains(&name) => {
            Variable::Editor(name)
        }
        None => Variable::Environment(name),
    };
    Ok(Part::Variable(named(variable)?, default))
}

/// Refuses a variable whose name no environment has.
fn named(variable: Variable<'_>) -> Result<Variable<'_>, ConfigErrorKind> {
    let is_legal = match variable {
        Variable::Environment(name) => !name.contains(['=', '\0']),
        _ => true,
    };
    if is_legal && !variable.name().is_empty() { Ok(variable) } else { Err(ConfigErrorKind::BadVariable) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;
    use proptest::prelude::*;

    fn template(text: &str) -> Template {
        Template { text: text.into(), at: Position::START, path: String::new() }
    }

    /// Returns the text with its variables, named by their kinds.
    fn resolved(text: &str, forms: Forms) -> Result<String, ConfigErrorKind> {
        let lookup = |variable: Variable<'_>| match variable {
            Variable::Environment("UNSET" | "OWN") => None,
            Variable::Environment("EMPTY") => Some(String::new()),
            Variable::Environment(name) => Some(alloc::format!("<{name}>")),
            Variable::Input(id) => Some(alloc::format!("<input {id}>")),
            Variable::Editor(name) => Some(alloc::format!("<editor {name}>")),
            Variable::File(path) | Variable::EnvFile(path) => Some(alloc::format!(" <file {path}>\r\n")),
        };
        template(text).resolve(forms, &lookup, &["OWN"].into())
    }

    // covers: S0-06
    #[test]
    fn references_are_those_of_the_client() {
        for (text, braces, dollar, open_code) in [
            ("a", "a", "a", "a"),
            ("${A}", "<A>", "<A>", "${A}"),
            ("x${A}y${env:B}z", "x<A>y<B>z", "x<A>y<B>z", "x${A}y$<B>z"),
            ("${UNSET:-d}${A:-d}${EMPTY:-d}", "d<A>", "d<A>", "${UNSET:-d}${A:-d}${EMPTY:-d}"),
            ("${UNSET:-}", "", "", "${UNSET:-}"),
            ("${input:key}", "<input key>", "<input key>", "${input:key}"),
            (
                "${workspaceFolder}/a",
                "<editor workspaceFolder>/a",
                "<editor workspaceFolder>/a",
                "${workspaceFolder}/a",
            ),
            ("${config:a.b}", "<editor config:a.b>", "<editor config:a.b>", "${config:a.b}"),
            ("${execPath}", "<editor execPath>", "<editor execPath>", "${execPath}"),
            (
                "${extensionPath}${/}",
                "<editor extensionPath><editor />",
                "<editor extensionPath><editor />",
                "${extensionPath}${/}",
            ),
            ("${user_config.a}", "<editor user_config.a>", "<editor user_config.a>", "${user_config.a}"),
            ("a${OWN}$OWN-${OWN:-d}", "a${OWN}$OWN-d", "a${OWN}$OWN-d", "a${OWN}$OWN-${OWN:-d}"),
            ("${file:/k}", "<file /k>", "<file /k>", "$<file /k>"),
            ("$A_1-$", "$A_1-$", "<A_1>-$", "$A_1-$"),
            ("$$A", "$$A", "$<A>", "$$A"),
            ("{env:A}{file:./k}{b}", "{env:A}{file:./k}{b}", "{env:A}{file:./k}{b}", "<A><file ./k>{b}"),
            ("{env:A", "{env:A", "{env:A", "{env:A"),
        ] {
            assert_eq!(resolved(text, Forms::Braces).as_deref(), Ok(braces));
            assert_eq!(resolved(text, Forms::Dollar).as_deref(), Ok(dollar));
            assert_eq!(resolved(text, Forms::OpenCode).as_deref(), Ok(open_code));
            assert_eq!(resolved(text, Forms::None).as_deref(), Ok(text));
        }
    }

    #[test]
    fn references_that_cannot_be_read_are_errors() {
        for (text, why) in [
            ("a ${A", ConfigErrorKind::Unterminated),
            ("${", ConfigErrorKind::Unterminated),
            ("${}", ConfigErrorKind::BadVariable),
            ("${env:}", ConfigErrorKind::BadVariable),
            ("${input:}", ConfigErrorKind::BadVariable),
            ("${:-d}", ConfigErrorKind::BadVariable),
            ("${A=B}", ConfigErrorKind::BadVariable),
            ("${A:-${B}}", ConfigErrorKind::BadVariable),
        ] {
            assert_eq!(template(text).check(Forms::Braces), Err(why.clone()), "{text}");
            assert_eq!(resolved(text, Forms::Dollar), Err(why));
            assert_eq!(template(text).check(Forms::OpenCode).is_err(), text.contains("{env:}"));
        }
        for (text, forms, name) in [
            ("${env:OWN}", Forms::Braces, "OWN"),
            ("{env:OWN}", Forms::OpenCode, "OWN"),
            ("${env:env}", Forms::Braces, "env"),
            ("${file}", Forms::Braces, "file"),
        ] {
            let own = [name].into();
            let why = ConfigErrorKind::UnknownVariable(name.into());
            assert_eq!(template(text).resolve(forms, &|_| None, &own), Err(why), "{text}");
        }
        let why = resolved("secret ${UNSET}", Forms::Braces).unwrap_err();
        assert_eq!(why, ConfigErrorKind::UnknownVariable("UNSET".into()));
        assert_eq!(why.to_string(), "the variable `UNSET` has no value");
    }

    proptest! {
        #[test]
        fn any_text_is_resolved_or_refused(text in "[${}a:=\\-envfile]{0,30}") {
            for forms in [Forms::None, Forms::Braces, Forms::Dollar, Forms::OpenCode] {
                let template = template(&text);
                let resolved = template.resolve(forms, &|_| Some("".into()), &BTreeSet::new());
                prop_assert_eq!(template.check(forms).is_ok(), resolved.is_ok());
                let any = template.variables(forms).next().is_some();
                if let Ok(found) = template.check(forms) {
                    prop_assert_eq!(found, any);
                }
            }
        }
    }
}
