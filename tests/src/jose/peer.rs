//! The other libraries, as processes.

use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// An answer: a value, or why there is none.
pub(super) type Answer = Result<Value, String>;

/// A library. Dropping it ends its process.
#[derive(Debug)]
pub(super) struct Peer {
    pub(super) name: &'static str,
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    asked: usize,
}

impl Peer {
    /// Starts a program with an interpreter.
    pub(super) fn start(name: &'static str, interpreter: &Path, program: &Path) -> Result<Self, String> {
        let mut command = Command::new(interpreter);
        command.arg(program).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(|why| format!("{}: {why}", interpreter.display()))?;
        let input = child.stdin.take();
        let output = child.stdout.take().ok_or("a pipe is missing")?;
        Ok(Self { name, child, input, output: BufReader::new(output), asked: 0 })
    }

    /// Tells it the rules.
    pub(super) fn tell(&mut self, rules: &Value) -> Result<(), String> {
        self.write(rules)
    }

    /// Asks all these questions. [`answers`](Self::answers) has to follow.
    pub(super) fn ask(&mut self, questions: Vec<Value>) -> Result<(), String> {
        self.asked = questions.len();
        self.write(&Value::Array(questions))
    }

    fn write(&mut self, line: &Value) -> Result<(), String> {
        let input = self.input.as_mut().ok_or("a pipe is missing")?;
        let written = writeln!(input, "{line}").and_then(|()| input.flush());
        written.map_err(|why| format!("{}: {why}", self.name))
    }

    /// Returns the answers to the latest questions.
    pub(super) fn answers(&mut self) -> Result<Vec<Answer>, String> {
        let mut line = String::new();
        self.output.read_line(&mut line).map_err(|why| format!("{}: {why}", self.name))?;
        let answers: Vec<(bool, Value)> =
            serde_json::from_str(&line).map_err(|why| format!("{} says {line:?}: {why}", self.name))?;
        if answers.len() != self.asked {
            return Err(format!("{} answers {} of {} questions", self.name, answers.len(), self.asked));
        }
        let answer = |(is_there, value): (bool, Value)| {
            if is_there { Ok(value) } else { Err(value.as_str().unwrap_or_default().to_owned()) }
        };
        Ok(answers.into_iter().map(answer).collect())
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        drop(self.input.take());
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
