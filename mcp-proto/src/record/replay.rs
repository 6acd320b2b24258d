//! Replaying a recording: the same engine is told the same, and must say the same.

use super::line;
use super::mask::Mask;
use super::read::{Line, Recording};
use crate::client::ClientConfig;
use crate::exchange::Action;
use crate::input::{Input, IoEvent};
use crate::peer_text::Visible;
use crate::rpc::RawJson;
use crate::wired::WiredClient;
use alloc::string::String;
use alloc::sync::Arc;
use core::fmt;
use core::time::Duration;

/// What a recording holds.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Summary {
    /// Inputs.
    pub inputs: u64,
    /// Outputs, each of which was the same again.
    pub outputs: u64,
    /// Bytes that were read.
    pub bytes_read: u64,
    /// Bytes that were to be written.
    pub bytes_written: u64,
    /// How long it took, by the clock of the driver.
    pub time: Duration,
    /// Whether it reaches to the end of the client.
    pub complete: bool,
}

/// Where a replay goes another way than the recording.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Difference {
    /// The line of the recording, from 1.
    pub line: usize,
    /// The output on file, as one JSON object; `None` where there is none.
    pub recorded: Option<String>,
    /// The output of the replay; `None` where there is none.
    pub replayed: Option<String>,
}

impl Difference {
    /// The most that is shown of an output, in characters.
    const SHOWN: usize = 400;
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
    /// Tells a client of the same configuration and seed the same at the same times, takes its outputs when they were taken, and compares
    /// each to the byte.
    ///
    /// # Errors
    /// The first [`Difference`].
    pub fn replay(&self) -> Result<Summary, Difference> {
        let mut config = self.config.clone();
        if config.on_message.is_some() {
            let on_message = Some(super::hook::scripted(&self.denials));
            config = Arc::new(ClientConfig { on_message, ..ClientConfig::clone(&config) });
        }
        let mut engine = WiredClient::new(config, self.seed, self.start);
        let mut mask = Mask::new(self.redaction, &self.config.target);
        let mut summary = Summary { complete: self.complete, ..Summary::default() };
        let mut latest = self.start;
        // What the last input came to, which stands before the outputs.
        let mut came = None;
        for (number, recorded) in self.lines.iter().enumerate() {
            // The first line is the head.
            let differ = |recorded: Option<&RawJson>, replayed: Option<RawJson>| {
                let text = |json: &RawJson| json.as_str().into();
                let (recorded, replayed) = (recorded.map(text), replayed.as_ref().map(text));
                if recorded == replayed { Ok(()) } else { Err(Difference { line: number + 2, recorded, replayed }) }
            };
            match recorded {
                Line::Input(now, input) => {
                    differ(None, came.take())?;
                    summary.inputs += 1;
                    latest = latest.max(*now);
                    if let Input::Event(_, IoEvent::Bytes(bytes)) = input {
                        summary.bytes_read += bytes.len() as u64;
                    }
                    mask.follow(input);
                    let applied = engine.apply(*now, input.clone());
                    came = line::applied(&applied, &mask).map(RawJson::from);
                }
                Line::Output(recorded) => {
                    summary.outputs += 1;
                    let replayed = came.take().or_else(|| {
                        let action = engine.poll_output()?;
                        if let Action::Write(_, bytes) = &action {
                            summary.bytes_written += bytes.len() as u64;
                        }
                        Some(line::output(&action, &mut mask).into())
                    });
                    differ(Some(recorded), replayed)?;
                }
                Line::Denied(..) => {}
                Line::End => {
                    let more = came.take().or_else(|| engine.poll_output().map(|a| line::output(&a, &mut mask).into()));
                    differ(None, more)?;
                }
            }
        }
        summary.time = latest.since(self.start);
        Ok(summary)
    }
}
