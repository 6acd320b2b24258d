//! Replays a recording: the same engine gets the same inputs, and must return the same outputs.

use super::line::{self, Line, OutputLine};
use super::mask::Mask;
use super::read::Recording;
use crate::client::ClientConfig;
use crate::exchange::{Action, IoEvent};
use crate::input::Input;
use crate::peer_text::Visible;
use crate::rpc::RawJson;
use crate::wired::WiredClient;
use alloc::string::String;
use alloc::sync::Arc;
use core::fmt;
use core::time::Duration;

/// The contents of a recording.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Summary {
    /// Number of inputs.
    pub inputs: u64,
    /// Number of outputs, which were all reproduced.
    pub outputs: u64,
    /// Number of bytes read.
    pub bytes_read: u64,
    /// Number of bytes to write.
    pub bytes_written: u64,
    /// The duration by the clock of the driver.
    pub time: Duration,
    /// Whether it extends to the end of the client.
    pub complete: bool,
}

/// Where a replay differs from the recording.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Difference {
    /// The line of the recording, from 1.
    pub line: usize,
    /// The recorded output, as its line. `None` if there is none.
    pub recorded: Option<String>,
    /// The output of the replay. `None` if there is none.
    pub replayed: Option<String>,
}

impl Difference {
    /// Maximum number of characters of an output that `Display` shows.
    const SHOWN: usize = 400;

    /// Compares outputs. `number` is that of the line after the header, from 0.
    pub(super) fn check(number: usize, recorded: Option<&RawJson>, replayed: Option<&RawJson>) -> Result<(), Self> {
        let text = |json: &RawJson| json.as_str().into();
        let (recorded, replayed) = (recorded.map(text), replayed.map(text));
        if recorded == replayed { Ok(()) } else { Err(Self { line: number + 2, recorded, replayed }) }
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (recorded, replayed) = (self.recorded.as_deref(), self.replayed.as_deref());
        let same = recorded.unwrap_or_default().chars().zip(replayed.unwrap_or_default().chars());
        let from = same.take_while(|(a, b)| a == b).count().saturating_sub(Self::SHOWN / 2);
        let mut show = |what: &str, text: Option<&str>| match text {
            None => write!(f, "\n{what}: nothing"),
            Some(text) => {
                let shown: String = text.chars().skip(from).take(Self::SHOWN).collect();
                let (before, after) = (from > 0, text.chars().count() > from + Self::SHOWN);
                let dots = |there| if there { "…" } else { "" };
                write!(f, "\n{what}: {}{}{}", dots(before), Visible(&shown), dots(after))
            }
        };
        show("recorded", recorded)?;
        show("replayed", replayed)?;
        Ok(())
    }
}

impl core::error::Error for Difference {}

impl Recording {
    /// Creates a client with the same configuration and seed, applies the same inputs at the same
    /// times, polls its outputs at the same points, and compares each byte by byte.
    ///
    /// # Errors
    /// The first [`Difference`].
    pub fn replay(&self) -> Result<Summary, Difference> {
        let mut config = self.config.clone();
        if config.on_message.is_some() {
            let on_message = Some(super::hook::scripted(&self.denials));
            config = Arc::new(ClientConfig { on_message, ..ClientConfig::clone(&config) });
        }
        config = super::findings::with_validator(config, |_| super::findings::scripted(&self.findings));
        let mut engine = WiredClient::new(config, self.seed, self.start);
        let mut mask = Mask::new(self.redaction, &self.config.target);
        let mut summary = Summary { complete: self.complete, ..Summary::default() };
        let mut latest = self.start;
        // The result of the latest input, which precedes its outputs.
        let mut came = None;
        for (number, recorded) in self.lines.iter().enumerate() {
            let differ = |recorded: Option<&RawJson>, replayed: Option<OutputLine>| {
                let replayed = replayed.and_then(|output| Line::Output(output).json().ok());
                Difference::check(number, recorded, replayed.as_ref())
            };
            match recorded {
                Line::Input(now, input) => {
                    differ(None, came.take())?;
                    summary.inputs += 1;
                    latest = latest.max(*now);
                    if let Input::Event(_, IoEvent::Read(bytes)) = input {
                        summary.bytes_read += bytes.len() as u64;
                    }
                    mask.follow(input);
                    let applied = engine.apply(*now, input.clone());
                    let applied = applied.as_ref().copied().map_err(|refused| &refused.why);
                    came = line::applied(applied, &mask);
                }
                Line::Output(recorded) => {
                    summary.outputs += 1;
                    let replayed = came.take().or_else(|| {
                        let action = engine.poll_output()?;
                        if let Action::Write(_, bytes) = &action {
                            summary.bytes_written += bytes.len() as u64;
                        }
                        Some(line::output(&action, &mut mask))
                    });
                    differ(Some(recorded), replayed)?;
                }
                Line::Denied(..) | Line::Found(..) => {}
                Line::End { .. } => {
                    let more = came.take().or_else(|| engine.poll_output().map(|a| line::output(&a, &mut mask)));
                    differ(None, more)?;
                }
            }
        }
        summary.time = latest.since(self.start);
        Ok(summary)
    }
}
